"""Metadata with which Datasette opens a knowledge base: titles, facets, hidden inner tables, queries with sentences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.grammar.arguments import checked
from hapax.kb.store import STANDING, KnowledgeBase


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table in words, its facets, the column that labels its rows, and the column by which the newest come first."""

    text: str
    facets: tuple[str, ...] = ()
    label: str = ""
    newest_by: str = ""


DESCRIPTIONS = {
    "runs": TableDescription("Searches, imports and other runs.", ("command", "status"), "command", "started"),
    "rules": TableDescription("Rules as runs read them last.", ("domain", "principle", "polarity"), "name"),
    "predicates": TableDescription("Predicates with their sentence templates.", ("kind",), "indicator"),
    "constants": TableDescription("Values that have data types.", (), "constant"),
    "type_facts": TableDescription("Data types of values.", ("data_type",)),
    "questions": TableDescription("Questions for values that models were asked.", ("data_type",), "patterns"),
    "calls": TableDescription("Requests to models and their answers.", ("role", "model"), "", "created"),
    "attempts": TableDescription("Requests that left for servers.", ("role", "model", "outcome"), "", "started"),
    "candidates": TableDescription("Values that models proposed.", ("rejected_by_parser",), "value"),
    "assessments": TableDescription("Scores of texts by models.", ("measure", "model"), "text"),
    "decisions": TableDescription("Verdicts of gates on values.", ("gate", "accepted", "rule", "distribution")),
    "facts": TableDescription("Accepted and given facts.", ("predicate", "source"), "arguments"),
    "statements": TableDescription("Statements of rules.", ("rule", "distribution", "run_id"), "conclusion"),
    "proofs": TableDescription("The proof of each statement."),
    "votes": TableDescription("Judgements of people.", ("question", "voter", "answer")),
    "model_profiles": TableDescription("The prompt profile that suits each model.", (), "model"),
    "rule_texts": TableDescription("The rule files that were last used.", ("command",), "name"),
    "denials": TableDescription("Atoms that a critic denied for sure.", ("predicate",), "arguments"),
    "conflicts": TableDescription("Facts that broke a declaration.", ("declaration",)),
    "withdrawals": TableDescription("Withdrawn facts.", ("predicate", "author"), "arguments", "withdrawn"),
    "fact_labels": TableDescription(
        "Facts labelled as true or false.", ("predicate", "is_true", "source"), "arguments"
    ),
    "calibrations": TableDescription("Probabilities behind critics' scores.", ("method",), "critic"),
    "certificates": TableDescription(
        "Promises on the precision of facts and statements.", ("fact_group", "method"), "fact_group"
    ),
    "judging_draws": TableDescription("Draws of facts and statements for people to judge.", ("kind",), "kind"),
    "drawn_items": TableDescription("Facts and statements of these draws with their chances."),
}
"""The tables that people read. All others are inner ones."""

SENTENCE = "'If ' || premise || ', then ' || conclusion || '.'"
"""SQL for the text of a statement."""


def _argument(place: int) -> str:
    """SQL for the text of an argument of a fact, which may be a decimal."""
    cell = f"json_extract(facts.arguments, '$[{place}]')"
    decimal = f"json_extract(facts.arguments, '$[{place}].decimal')"
    return f"CASE json_type(facts.arguments, '$[{place}]') WHEN 'object' THEN {decimal} ELSE {cell} END"


def _worded() -> str:
    """SQL for a fact in the words of its predicate, or as an atom."""
    text = "predicates.affirmative"
    for place in range(4):
        text = f"replace({text}, '[{place + 1}]', coalesce({_argument(place)}, ''))"
    return f"coalesce({text}, facts.predicate || ' ' || facts.arguments)"


QUERIES = {
    "statements_in_words": (
        "Statements as sentences",
        "Those that stand, the most likely first; a statement at both ends has two rows.",
        f"SELECT id, rule, distribution, {SENTENCE} AS statement, log_likelihood FROM statements "  # noqa: S608  ours
        f"WHERE {STANDING} ORDER BY log_likelihood IS NULL, log_likelihood DESC LIMIT 1000",
    ),
    "statements_with_word": (
        "Statements with a word",
        "Part of a premise or a conclusion.",
        f"SELECT id, rule, distribution, {SENTENCE} AS statement, log_likelihood FROM statements "  # noqa: S608  ours
        f"WHERE instr(lower(premise || ' ' || conclusion), lower(:word)) > 0 AND {STANDING} LIMIT 1000",
    ),
    "facts_in_words": (
        "Facts as sentences",
        "In the words of their predicates, the least probable first.",
        f"SELECT {_worded()} AS sentence, facts.probability, facts.source, facts.basis FROM facts "  # noqa: S608  ours
        "LEFT JOIN predicates ON predicates.name = facts.predicate "
        "AND json_array_length(predicates.argument_types) = json_array_length(facts.arguments) "
        "ORDER BY facts.probability IS NULL, facts.probability LIMIT 1000",
    ),
    "nearly_accepted": (
        "Values that nearly passed a gate",
        "The closest to the threshold first.",
        "SELECT questions.patterns AS question, candidates.value, decisions.gate, decisions.score, "
        "decisions.threshold, decisions.reason FROM decisions JOIN candidates ON candidates.id = decisions.subject "
        "JOIN questions ON questions.id = candidates.question_id WHERE NOT decisions.accepted "
        "AND decisions.score < decisions.threshold ORDER BY decisions.threshold - decisions.score LIMIT 1000",
    ),
    "rules_in_numbers": (
        "Rules with their numbers of statements",
        "Distinct statements of all runs, at each end.",
        "SELECT rules.name, count(DISTINCT CASE distribution WHEN 'head' THEN statements.id END) AS head, "  # noqa: S608
        "count(DISTINCT CASE distribution WHEN 'long_tail' THEN statements.id END) AS long_tail "
        f"FROM rules LEFT JOIN statements ON statements.rule = rules.name AND {STANDING} GROUP BY rules.name",
    ),
}
"""Queries by name: title, description and SQL."""


@checked
def datasette_metadata(database: str | Path) -> dict[str, Any]:
    """Metadata with which Datasette opens a knowledge base: facets, hidden inner tables, queries with sentences."""
    name = Path(database).stem
    with KnowledgeBase(database, read_only=True) as kb:
        names = kb.database.table_names()
    tables: dict[str, dict[str, Any]] = {}
    for table in names:
        if (description := DESCRIPTIONS.get(table)) is None:
            tables[table] = {"hidden": True}
            continue
        tables[table] = {"description": description.text}
        if description.facets:
            tables[table]["facets"] = list(description.facets)
        if description.label:
            tables[table]["label_column"] = description.label
        if description.newest_by:
            tables[table]["sort_desc"] = description.newest_by
    queries = {}
    for query, (title, text, sql) in QUERIES.items():
        queries[query] = {"title": title, "description": text, "sql": sql}
    described = {"description": "A knowledge base of Hapax: statements with their proofs.", "tables": tables}
    return {"title": name, "databases": {name: {**described, "queries": queries}}}
