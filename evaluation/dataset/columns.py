"""The columns of the four tables, described once: JSONL, Parquet and the card's features all follow from this."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kb.values import encode_decimal

Kind = Literal["string", "bool", "int32", "float64", "json"]
"""`json`: an object in JSONL, and in Parquet, whose columns have one type each, the same object as a text."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `fields` make it a record of columns, `many` a list; `about` is what the card says of it."""

    name: str
    about: str = ""
    kind: Kind = "string"
    fields: tuple[Column, ...] = ()
    many: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One configuration of the dataset."""

    name: str
    about: str
    columns: tuple[Column, ...]


STATEMENTS = Table(
    "statements",
    "one row a statement and distribution",
    (
        Column("id", "identity of the statement, the same in both distributions"),
        Column("distribution", "`head` or `long_tail`, as the split"),
        Column("in_both", "whether the statement is in head and long tail", "bool"),
        Column("rule", "name of the rule"),
        Column("domain", "domain of the rule, or `no domain`"),
        Column("principle", "`compatibility` or `exclusion`"),
        Column("polarity", "whether the conclusion affirms (`positive`) or denies (`negative`)"),
        Column("premise", "the premise in words"),
        Column("conclusion", "the conclusion in words"),
        Column("label", "`entailment`, or `contradiction` where people's votes turned it"),
        Column("label_source", "`votes`, or `rule` where nobody has judged the statement"),
        Column(
            "substitution",
            "the values, with `kind` text, integer or decimal",
            fields=(Column("variable"), Column("data_type"), Column("value"), Column("kind")),
            many=True,
        ),
        Column("log_likelihood", "of the statement by the run's evaluator, mean over tokens, nats", "float64"),
        Column(
            "log_likelihoods",
            "all stored ones: the evaluators' of the statement, the ranker's of what it ranked; mean over tokens, nats",
            fields=(
                Column("role"),
                Column("model"),
                Column("per_token", kind="float64"),
                Column("tokens", kind="int32"),
            ),
            many=True,
        ),
        Column(
            "facts",
            "the facts of the proof, with the critic's P(yes), or none where a person gave the fact",
            fields=(Column("id"), Column("fact"), Column("source"), Column("probability", kind="float64")),
            many=True,
        ),
        Column("least_probability", "the lowest P(yes) among them", "float64"),
        Column("rarest_word_zipf", "Zipf frequency of the rarest word of the values; beyond the paper", "float64"),
        Column("proof", "the proof as a list of steps, the root first", "json"),
        Column("proof_text", "the proof in words, indented"),
        Column(
            "sources", "what the proof rests on: fact (a model's), given, computed, negation, assumption", many=True
        ),
        Column("run", "the run that derived the statement; `metadata.json` has its settings"),
        Column("knowledge_model", "who proposed values"),
        Column("critic_model", "who judged them"),
        Column("likelihood_model", "who ranked them"),
        Column("evaluator_model", "who measured `log_likelihood`"),
    ),
)
FACTS = Table(
    "facts",
    "the facts that the proofs rest on",
    (
        Column("id", "identity of the fact"),
        Column("predicate", "name of the predicate"),
        Column("arguments", "its arguments", many=True),
        Column("types", "the data types they were accepted under", many=True),
        Column("text", "the fact in words"),
        Column("source", "`model` or `given`"),
        Column("probability", "the critic's P(yes)", "float64"),
        Column("run", "the run that accepted it"),
    ),
)
PROBES = Table(
    "probes",
    "the 13 questions of LINK's table 12 about each statement",
    (
        Column("id", "identity of statement and template"),
        Column("statement", "identity of the statement"),
        Column("distribution", "`head` or `long_tail`, as the split"),
        Column("rule", "name of the rule"),
        Column("domain", "domain of the rule"),
        Column("template", "number of the template, 1 to 13", "int32"),
        Column("question", "the question"),
        Column("answers", "the two answers that it leaves, the positive one first", many=True),
        Column("label", "which of them is right, 0 or 1", "int32"),
    ),
)
ANNOTATIONS = Table(
    "annotations",
    "people's votes on the statements, without names and comments",
    (
        Column("statement", "identity of the statement"),
        Column("question", "what was asked"),
        Column("annotator", "number of the annotator in this dataset", "int32"),
        Column("answer", "what was answered"),
    ),
)

Row = Mapping[str, Any]
"""The cells of one row by column; a cell of kind `json` is still an object."""


def json_line(row: Row) -> str:
    """The row as a line of JSONL, keys in the order of the columns."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=encode_decimal) + "\n"


def flat(row: Row, table: Table) -> dict[str, Any]:
    """The row with its JSON objects as texts."""
    objects = {one.name for one in table.columns if one.kind == "json"}
    return {name: json_text(cell) if name in objects else cell for name, cell in row.items()}


def json_text(tree: object) -> str:
    """JSON without blanks, keys in order."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=encode_decimal)
