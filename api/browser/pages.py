"""The content of the pages of one statement, entity, predicate or rule, read at one moment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple

from hapax.api.browser import table_pages as tables
from hapax.api.browser.rendering import LARGEST, evenly_spread, graph, histogram
from hapax.api.browser.runs import NO_FIGURES, search_figures
from hapax.api.browser.table_pages import SENTENCE, Page, StoredTable, Wanted
from hapax.engine.answers.derivation import statement_by_id
from hapax.engine.explain import Explainer, stored_rule, what_fell, with_stored_predicates
from hapax.engine.inference.proof import Story
from hapax.engine.inference.theory import Theory
from hapax.engine.judgements import Judgements
from hapax.engine.search.promises import StoredCertificate, certificates_of, certificates_of_statement
from hapax.evaluation.shared.estimates import difference_of_means
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES, judgement_text
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import Goal
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Literal, Value
from hapax.grammar.writing.prolog_text import atom_goal, goal_name, prolog_value
from hapax.grammar.writing.verbalize import statement_text
from hapax.kb.exchange.values import decode_value, decode_values
from hapax.kb.judgement_records import VoteRecord
from hapax.kb.records import (
    PATTERNS,
    PREDICATES,
    RULES,
    STATEMENTS,
    Distribution,
    RuleRecord,
    RunRecord,
    StatementRecord,
)
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.kb.word_index import WordMatches

MOST_LINES = 300
"""Lines of one story on a page; `hapax why` prints all."""
MOST_DEPTH = 40
"""Deepest nesting of a story's lists; deeper lines are shown at this depth. Browsers stop at 512 nested elements."""


class NotStored(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """The knowledge base holds nothing of this name."""


class Fallen(NotStored):
    """A statement that was stored and no longer holds, with the reason."""


class StoryLine(NamedTuple):
    """One line of a story. `opens`: the next line is its first child; `closes`: number of lists that end after it."""

    part: Story
    opens: bool
    unfolded: bool
    closes: int


def nested(story: Story) -> tuple[list[StoryLine], int]:
    """The first lines of a story, which open and close lists, and the number of the others.

    Without recursion, because a proof may be deeper than Python's stack.
    """
    # Lazily: only the first lines of a long proof are put into words.
    lines = [(min(depth, MOST_DEPTH), part) for depth, part in islice(story.lines(), MOST_LINES)]
    # After the last line all lists end.
    next_depths = [*(depth for depth, _ in lines[1:]), 0]
    nested_lines = []
    for (depth, part), next_depth in zip(lines, next_depths, strict=True):
        # A conclusion shows its premises at once; whatever is behind a fact unfolds with one click.
        unfolded = part.kind not in ("goal", "ranking") or any(child.kind == "goal" for child in part.children)
        nested_lines.append(StoryLine(part, next_depth > depth, unfolded, max(0, depth - next_depth)))
    # Counted without keeping them: a proof may have millions of lines.
    return nested_lines, sum(1 for _ in story.lines()) - len(nested_lines)


@dataclass(frozen=True, slots=True)
class StatementPage:
    """A statement with its story, votes, ends and values. One that `derive` concluded has no ends.

    `lines`: the first of its proof; `more`: number of the others. `ranking`: how its values were chosen and ranked, if
    a search did it. `votes`: question, answer and number. `certificates`: promises on the statement and on the facts of
    its proof.
    """

    record: StatementRecord
    story: Story
    lines: list[StoryLine]
    more: int
    ranking: list[StoryLine]
    votes: list[tuple[str, str, int]]
    judgement: str
    ends: list[Distribution]
    certificates: list[StoredCertificate]

    def tables(self, kb: KnowledgeBase) -> dict[str, StoredTable]:
        """The tables behind the page by name."""
        return {
            "statement": tables.statement_rows(self.record, self.ends),
            "proof": story_table(self.story),
            "facts": tables.proof_facts(kb, self.record.id),
            "votes": tables.votes(kb, self.record.id),
        }


@dataclass(frozen=True)
class StatementReader:
    """Reads the pages of statements. Votes and rules are read once for all of them."""

    kb: KnowledgeBase
    library: Library

    @cached_property
    def _theory(self) -> Theory:
        # In the sentences that the knowledge base has for its predicates.
        return with_stored_predicates(Theory(self.library, self.kb))

    @cached_property
    def _judged(self) -> Judgements:
        return Judgements.stored(self.kb)

    @cached_property
    def _votes(self) -> dict[str, list[VoteRecord]]:
        """Votes by the row of their statement; statements that read the same share a row."""
        votes: dict[str, list[VoteRecord]] = {}
        for vote in self.kb.votes():
            votes.setdefault(self._judged.row(vote.statement_id), []).append(vote)
        return votes

    def page(self, identity: str) -> StatementPage:
        """The page of a statement. Raises NotStored for an unknown id, and Fallen for one that no longer holds."""
        kb = self.kb
        stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [identity])
        # Of the rows of a statement at several ends or of several runs, the newest.
        record = stored[-1] if stored else statement_by_id(kb, self.library, identity)
        if record is None:
            for fallen in kb.matching(STATEMENTS, id=identity):
                if reason := what_fell(self._theory, fallen):
                    raise Fallen(reason.message)
            raise NotStored(f"No statement has the id {identity}.")
        story = Explainer(self._theory).statement(record)
        # The proof comes last.
        *ranked, proof = story.children
        ranking = nested(Story("How its values were chosen and ranked", "ranking", tuple(ranked)))[0] if ranked else []
        votes = Counter((vote.question, vote.answer) for vote in self._votes.get(self._judged.row(record.id), ()))
        facts = kb.facts_by_id(text for (text,) in kb.sql(_PROOF_FACTS, (record.id,))).values()
        return StatementPage(
            record,
            story,
            *nested(proof),
            ranking,
            [(*voted, count) for voted, count in sorted(votes.items())],
            judgement_text(self._judged.of(record.id)),
            sorted({statement.distribution for statement in stored}),
            [*certificates_of_statement(kb, record), *certificates_of(kb, facts)],
        )


_PROOF_FACTS = "SELECT fact_id FROM statement_facts WHERE key IN (SELECT key FROM statements WHERE id = ?)"


def story_table(story: Story) -> StoredTable:
    """The lines of a story with their depths, from 0."""
    rows = [(depth, part.text) for depth, part in islice(story.lines(), tables.MOST_ROWS)]
    return StoredTable(("depth", "line"), rows, "", Page(rows=tables.MOST_ROWS))


FEW = Page(rows=10)
STRIKING = 3
"""Statements on the front page, each of another rule."""
MOST_STARTS = 40
"""Predicates that the page for asking lists."""
_ANY_FACT = (
    "SELECT arguments FROM facts WHERE predicate = ? AND json_valid(arguments) "
    "AND json_array_length(arguments) = ? LIMIT 1"
)
MOST_SCORED = 25_000
"""Statements of a rule that its plots take at least, where it has more than twice as many."""
MOST_RESAMPLED = 10_000
"""Scores from which on a difference has no interval: resampling a million takes minutes, and the interval is narrow."""


def front_tables(kb: KnowledgeBase) -> dict[str, StoredTable]:
    """Tables of a knowledge base as a whole: numbers, striking and disputed statements, rules, and the latest runs."""
    rules = tables.rules(kb, Page(order=f"{tables.MINUS}statements"))
    counts = {"statements": sum(row[-1] for row in rules.rows), "facts": sum(kb.fact_counts().values())}
    return {
        "counts": StoredTable(("what", "rows"), list(counts.items()), "", Page()),
        "striking": _striking(kb, [str(rule) for rule, *_ in rules.rows]),
        "disputed": _disputed(kb),
        "rules": rules,
        "runs": tables.runs(kb, Page(rows=5)),
    }


def _striking(kb: KnowledgeBase, rules: Sequence[str]) -> StoredTable:
    """The least likely statement of the long tail of each of some rules; where there is no tail, any statement."""
    orders = {Distribution.LONG_TAIL.value: "log-likelihood", Distribution.HEAD.value: "log-likelihood"}
    orders[tables.DERIVED] = ""
    found: list[tuple[Any, ...]] = []
    for end, order in orders.items():
        for rule in rules[: 2 * STRIKING] if not found else ():
            table = tables.statements(kb, Wanted(rule=rule, end=end), Page(rows=1, order=order))
            found += [(row[0], row[table.columns.index("statement")], rule) for row in table.rows]
    return StoredTable(("id", "statement", "rule"), found[:STRIKING], "", Page())


def _disputed(kb: KnowledgeBase) -> StoredTable:
    """Statements about which voters differ."""
    select = (
        f"SELECT DISTINCT id, {SENTENCE} FROM statements WHERE {STANDING} AND id IN (SELECT statement_id FROM votes "  # noqa: S608  ours
        f"GROUP BY statement_id, question HAVING count(DISTINCT answer) > 1) ORDER BY id LIMIT {FEW.rows}"
    )
    return StoredTable(("id", "statement"), kb.sql(select), f"{select};", Page())


def entity_tables(
    kb: KnowledgeBase, name: str, few: Page, among: Callable[[str], Sequence[int] | None]
) -> dict[str, StoredTable]:
    """Tables of all that is known about a value: facts, statements by end, rejected claims and types.

    `few`: the wanted part of all but facts and types; `among` as in `tables.statements`. Raises
    NotStored if nothing mentions the value.
    """
    about = Wanted(about=name)
    parts = {"facts": tables.facts(kb, about, Page(rows=max(few.rows, 200)))}
    parts |= {end: tables.statements(kb, replace(about, end=end), few, among) for end in tables.ENDS}
    parts["rejected"] = rejected_claims(kb, about, few)
    parts["types"] = tables.types_of(kb, name)
    if not any(table.rows for table in parts.values()):
        raise NotStored(f"Nothing here mentions {name!r}. Search the statements for a part of it.")
    return parts


LOOKED_THROUGH = 1_000
"""Decisions of gates that are looked through for the first rejected claims of a page."""


def rejected_claims(kb: KnowledgeBase, wanted: Wanted, few: Page) -> StoredTable:
    """Values that gates rejected and that are no facts now, each with its newest rejection."""
    most, wanted = max(few.rows, LOOKED_THROUGH), replace(wanted, verdict="rejected")
    page = Page(few.number, most, few.order)
    cells, more, sql = tables.claim_rows(wanted).window(kb, page, (few.number - 1) * most, most)
    found = {cell[:2]: tables.claim_row(cell) for cell in cells if not _is_fact(kb, *cell[:2])}
    columns = ("asked", "value", "gate", "score", "threshold", "reason")
    return StoredTable(columns, list(found.values())[: few.rows], sql, page, more or len(found) > few.rows)


def _is_fact(kb: KnowledgeBase, patterns: str, value: str) -> bool:
    """True if a value makes a fact of one of the patterns of its question."""
    try:
        proposed = Constant(decode_value(value))
        atoms = (pattern.filled(proposed) for pattern in PATTERNS.decode(patterns))
        return any(kb.fact(atom.predicate, atom.values) is not None for atom in atoms)
    except (ValueError, TypeError, HapaxError):
        return False  # a cell that another program spoiled, which is shown as it is


def derived_counts(kb: KnowledgeBase, library: Library) -> dict[str, int]:
    """Number of stored derived atoms by predicate; for a predicate that no rule uses, number of its statements."""
    statements, counts = kb.derived_counts(), Counter[str]()
    for rule in library.rules:
        counts[rule.conclusion.atom.indicator] += statements.get(rule.name, 0)
    found = {**counts, **kb.derived_predicates()}
    return {indicator: count for indicator, count in found.items() if indicator not in library.excepted}


def with_columns(table: StoredTable, names: Sequence[str]) -> StoredTable:
    """A table of the facts of one predicate with a column for each argument that has a name."""
    if not names or any(len(row[1]) != len(names) for row in table.rows):
        return table
    rows = [(*((part,) for part in row[1]), *row[2:]) for row in table.rows]
    return replace(table, columns=(*names, *table.columns[2:]), rows=rows)


def search_tables(kb: KnowledgeBase, matches: WordMatches) -> dict[str, StoredTable]:
    """The values and statements of a search, the best first; each statement that stands once."""
    # The index gives few rows, however many match.
    marks = ",".join("?" * len(matches.rows))
    sql = f"SELECT rowid, id, {SENTENCE} FROM statements WHERE {STANDING} AND statements.rowid IN ({marks})"  # noqa: S608
    found = {row: (identity, sentence) for row, identity, sentence in kb.sql(sql, matches.rows)}
    # In the order of the matches; a statement at both ends has two rows.
    statements = list(dict(found[row] for row in matches.rows if row in found).items())
    listed = ", ".join(tables.literal(identity) for identity, _ in statements)
    shown = f"SELECT DISTINCT id, {SENTENCE} FROM statements WHERE id IN ({listed});"  # noqa: S608  for reading
    return {
        "values": StoredTable(("value",), [(name,) for name in matches.names], "", Page()),
        "statements": StoredTable(("id", "statement"), statements, shown, Page()),
    }


def rule_page(
    kb: KnowledgeBase,
    library: Library,
    name: str,
    statement_url: Callable[[object], str] | None,
    *,
    few: Page = FEW,
    run: RunRecord | None = None,
) -> dict[str, Any]:
    """The page of a rule: the rule with its picture, its last search step by step, its scores, and its statements.

    `head` and `long_tail` have so many statements, the likeliest and the least likely, `derived` those of `derive`.
    `statement_url` gives the page of a statement by its id, to which dots lead; None: no dots. `run`: the one whose
    figures and statements are shown; None: the newest search's figures, and the statements of all. `every`: the plots
    are of one in so many statements.

    Raises NotStored if the knowledge base holds no rule of this name.
    """
    record, rule = _rule_record(kb, library, name), stored_rule(kb, name, library)
    shown_run, figures = _last_search(kb, name) if run is None else (run, search_figures(kb, run).get("rules", {}))
    ((count,),) = kb.sql("SELECT count(*) FROM statements WHERE rule = ?", (name,))
    every = max(1, count // MOST_SCORED)
    scored = {} if shown_run is None else _scored(kb, shown_run.id, name, every)
    scores = {end: [score for score, _ in pairs] for end, pairs in scored.items()}
    wanted = Wanted(rule=name, run=run.id if run else "")
    typical = {Distribution.HEAD: "-log-likelihood", Distribution.LONG_TAIL: "log-likelihood"}
    ends = {
        end.value: tables.statements(kb, replace(wanted, end=end), replace(few, order=order))
        for end, order in typical.items()
    }
    return {
        "record": record,
        "sentence": statement_text(rule, library).sentence if rule else "",
        "graph": graph(rule, library) if rule else None,
        "figures": figures.get(name, NO_FIGURES),
        "run": shown_run,
        "histogram": histogram(scores, {end.value: title for end, title in DISTRIBUTION_NAMES.items()}),
        "dots": _dots(kb, scored, statement_url) if statement_url else None,
        "every": every,
        "delta": _delta(*scores.values()) if scores and all(scores.values()) else "",
        **ends,
        "derived": tables.statements(kb, Wanted(rule=name, end=tables.DERIVED), few),
    }


def _rule_record(kb: KnowledgeBase, library: Library, name: str) -> RuleRecord:
    """The rule as searches stored it, else as `derive` used it. Raises NotStored for any other name."""
    stored = next((record for record in kb.select(RULES) if record.name == name), None)
    if stored is not None:
        return stored
    if name not in kb.derived_counts():
        raise NotStored(f"The knowledge base holds no rule {name!r}.")
    used = next((rule for rule in library.rules if rule.name == name), None)
    return RuleRecord.of(used) if used else RuleRecord(name, "")


def _scored(kb: KnowledgeBase, run_id: str, rule: str, every: int) -> dict[str, list[tuple[float, int]]]:
    """Finite log-likelihoods of a rule's statements with their rows, lowest first, by end; {} without any.

    Numbers alone: with a million statements their texts would take seconds and a gigabyte.
    """
    sql = (
        "SELECT distribution, log_likelihood, statements.rowid FROM statements "  # noqa: S608  ours
        # By rowid, so that a page that is opened again shows the same statements.
        f"WHERE run_id = ? AND rule = ? AND statements.rowid % ? = 0 AND abs(log_likelihood) < {LARGEST} "
        f"AND {STANDING} ORDER BY log_likelihood, id"
    )
    scored: dict[str, list[tuple[float, int]]] = {end.value: [] for end in Distribution}
    for end, score, row in kb.sql(sql, (run_id, rule, every)):
        if end in scored:  # another program may write other ends
            scored[end].append((score, row))
    return scored if any(scored.values()) else {}


def _delta(head: Sequence[float], long_tail: Sequence[float]) -> str:
    """Mean of head less that of the long tail, with its interval where resampling is quick."""
    if len(head) + len(long_tail) > MOST_RESAMPLED:
        return f"{fmean(head) - fmean(long_tail):.2f}"
    return str(difference_of_means(head, long_tail))


def _dots(
    kb: KnowledgeBase, scored: Mapping[str, Sequence[tuple[float, int]]], statement_url: Callable[[object], str]
) -> dict[str, Any] | None:
    """Some statements of each end as dots, evenly spread over their ranks; `count`: of all with a score."""
    picked = [(end, *pair) for end, pairs in scored.items() for pair in evenly_spread(pairs)]
    # The chosen rows alone are read with their texts.
    marks = ",".join("?" * len(picked))
    sql = f"SELECT rowid, id, {SENTENCE} FROM statements WHERE rowid IN ({marks})"  # noqa: S608  ours
    texts = {row: (identity, text) for row, identity, text in kb.sql(sql, [row for *_, row in picked])}
    dots = []
    for end, score, row in picked:
        identity, text = texts[row]
        dots.append({"kind": end, "score": score, "text": text, "href": statement_url(identity)})
    return {"form": "dots", "dots": dots, "count": sum(map(len, scored.values()))} if dots else None


def _last_search(kb: KnowledgeBase, rule: str) -> tuple[RunRecord | None, Mapping[str, Any]]:
    """The newest search that says how it went with the rule, with its figures by rule."""
    for run in reversed(kb.runs()):
        figures: Mapping[str, Any] = search_figures(kb, run).get("rules", {})
        if rule in figures:
            return run, figures
    return None, {}


def goal_starts(kb: KnowledgeBase, library: Library) -> list[dict[str, Any]]:
    """Goals about the predicates of a knowledge base, those with the most facts first.

    Each `goal` comes with the number of its `facts`, the `example` of the same goal about a value of one, and what the
    predicate `says`.
    """
    counts, known = Counter(kb.fact_counts()), labels(kb, library)
    counts.update(derived_counts(kb, library))
    starts = []
    for indicator in sorted({*counts, *known}, key=lambda name: (-counts.get(name, 0), name))[:MOST_STARTS]:
        name, _, arity = indicator.rpartition("/")
        types = library.signature(indicator).argument_types if library.knows(indicator) else ("Value",) * int(arity)
        variables = [_variable(types, place) for place in range(len(types))]
        cells = kb.sql(_ANY_FACT, (name, int(arity))) if counts.get(indicator) and len(types) > 1 else []
        goal, example = goal_name(name), ""
        for (cell,) in cells:
            with suppress(ValueError, TypeError, HapaxError):  # a cell that another program spoiled
                # The first argument is a value of this knowledge base, the others are asked for.
                example = f"{goal}({', '.join([prolog_value(decode_values(cell)[0] or ''), *variables[1:]])})"
        if variables:
            goal = f"{goal}({', '.join(variables)})"
        says, facts = known.get(indicator, ""), counts.get(indicator, 0)
        starts.append({"goal": goal, "says": says, "facts": facts, "example": example})
    return starts


def _variable(types: Sequence[str], place: int) -> str:
    """A variable that is called like its type, with a number where the type occurs again."""
    name = re.sub(r"[^0-9A-Za-z]", "", types[place].title()).lstrip("0123456789") or "Value"
    return f"{name}{place + 1}" if types.count(types[place]) > 1 else name


def atoms_of_answer(goal: Goal, row: Mapping[str, Value]) -> list[str]:
    """The atoms of a goal that an answer makes ground, each with a proof of its own."""
    values = {name: Constant(value) for name, value in row.items()}
    atoms = (item.atom.replaced(values) for item in goal.premise if isinstance(item, Literal))
    return [atom_goal(atom) for atom in atoms if atom.is_ground]


def labels(kb: KnowledgeBase, library: Library) -> Mapping[str, str]:
    """The predicates by name/arity, with the sentence of each."""
    known: dict[str, str] = {}
    for record in kb.select(PREDICATES):
        known[record.indicator] = record.affirmative or ""
    for signature in library.signatures:
        if signature.indicator in library.excepted:
            continue  # of Hapax's own, for `unless`
        # Stored declarations come first, since statements were worded by them.
        known.setdefault(signature.indicator, signature.templates.affirmative if signature.templates else "")
    return known
