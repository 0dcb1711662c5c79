"""How each record stands in its table: columns with their codecs, the key, and which of two rows wins.

Every `add` and every merge is made from these descriptions. Where two rows have one key, the winner is the greater one
in a total order over all columns; so merging twice changes nothing, and either direction gives the same content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Generic, TypeAlias, TypeVar

from grammar.errors import HapaxError
from kb import values
from kb.records import (
    Assessment,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    Pattern,
    PredicateRecord,
    Question,
    QuestionState,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
    content_id,
)

Cell: TypeAlias = str | int | float | None
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Codec:
    """Between a field and a cell. None stays None; `encode` raises `ValueRefused`, `decode` ValueError or TypeError."""

    encode: Callable[[Any], Cell]
    decode: Callable[[Any], Any]


def _text(value: str) -> str:
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        raise values.ValueRefused(f"{type(value).__name__} where a text belongs; convert it first")
    if reason := values.refusal(value):
        raise values.ValueRefused(reason)
    return str(value)


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise values.ValueRefused("the number needs more than 64 bits; give a smaller one")
    return int(value)


def _real(value: float) -> float:
    if math.isnan(value):
        raise values.ValueRefused("the score is not a number (NaN); mend the model that gave it")
    return float(value)


def _bindings(cell: str) -> tuple[tuple[str, Any], ...]:
    return tuple((_text(name), values.plain_value(value)) for name, value in values.load_list(cell))


def _encode_bindings(bindings: tuple[tuple[str, Any], ...]) -> str:
    return "[" + ",".join(f"[{values.encode_value(n)},{values.encode_value(v)}]" for n, v in bindings) + "]"


def _encode_patterns(patterns: tuple[Pattern, ...]) -> str:
    each = (f"[{values.encode_value(p.predicate)},{values.encode_values(p.arguments)}]" for p in patterns)
    return "[" + ",".join(each) + "]"


def _decode_patterns(cell: str) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(_text(predicate), tuple(None if item is None else values.plain_value(item) for item in arguments))
        for predicate, arguments in values.load_list(cell)
    )


def _enum(members: type[StrEnum]) -> Codec:
    return Codec(lambda member: members(member).value, members)


TEXT = Codec(_text, _text)
INTEGER = Codec(_integer, int)
REAL = Codec(_real, float)
BOOLEAN = Codec(int, bool)
VALUE = Codec(values.encode_value, values.decode_value)
VALUES = Codec(values.encode_values, values.decode_values)
NAMES = Codec(lambda names: values.encode_values(tuple(map(_text, names))), values.decode_values)
TREE = Codec(values.encode_tree, values.decode_tree)
JSON = Codec(partial(values.encode_tree, decimals=False), partial(values.decode_tree, decimals=False))
"""What went to a server and came back, where a map `{"decimal": "1"}` is no decimal of ours."""
BINDINGS = Codec(_encode_bindings, _bindings)
PATTERNS = Codec(_encode_patterns, _decode_patterns)


@dataclass(frozen=True, eq=False)
class Table(Generic[R]):
    """One table. `columns` bear the names of the record's fields; `computed` columns follow from the whole record.

    `preferred` are the columns that decide first between two rows of one key, greatest first and NULL lowest; a leading
    `-` means smallest first. `disagreement` is the column in which two rows of one key contradict each other.
    `side` is a table that holds further fields of the same record under the same key.
    """

    name: str
    record: Callable[..., R]
    key: tuple[str, ...]
    columns: Mapping[str, Codec]
    computed: Mapping[str, Callable[[Any], Cell]] = field(default_factory=dict)
    preferred: tuple[str, ...] = ()
    disagreement: str | None = None
    side: Table[Any] | None = None

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        return (self, self.side) if self.side else (self,)

    @property
    def all_columns(self) -> tuple[str, ...]:
        return (*self.computed, *self.columns)

    def row(self, record: R) -> tuple[Cell, ...]:
        """The record's cells in the order of `all_columns`. Raises HapaxError naming table and column."""
        try:
            cells = [None if (value := getattr(record, name)) is None else code(value) for name, code in self._encoders]
        except values.ValueRefused:
            raise self._refused(record) from None
        # Only now the identities: hashing would choke on a value that a codec refuses with a reason.
        return (*[compute(record) for compute in self.computed.values()], *cells)

    @cached_property
    def _encoders(self) -> tuple[tuple[str, Callable[[Any], Cell]], ...]:
        return tuple((name, codec.encode) for name, codec in self.columns.items())

    def _refused(self, record: R) -> values.ValueRefused:
        """Why the record's first faulty cell cannot be written."""
        for name, encode in self._encoders:
            value = getattr(record, name)
            try:
                _ = None if value is None else encode(value)
            except values.ValueRefused as error:
                return values.ValueRefused(f"{self.name}.{name}: {error}")
        raise AssertionError("a cell was refused that can be written")

    @property
    def select(self) -> str:
        """`SELECT` of the computed columns and all record fields, the side table joined."""
        fields = [f"{table.name}.{column}" for table in self.tables for column in table.columns]
        names = ", ".join([*(f"{self.name}.{column}" for column in self.computed), *fields])
        join = f" JOIN {self.side.name} USING ({', '.join(self.side.key)})" if self.side else ""
        return f"SELECT {names} FROM {self.name}{join}"  # noqa: S608 - names are ours

    def read(self, row: tuple[Any, ...]) -> R:
        """The record of a row that `select` gave. Raises HapaxError when a cell was changed by another program."""
        fields: dict[str, Any] = {}
        columns = [(name, codec) for table in self.tables for name, codec in table.columns.items()]
        for (name, codec), cell in zip(columns, row[len(self.computed) :], strict=True):
            try:
                fields[name] = None if cell is None else codec.decode(cell)
            except (ValueError, TypeError, HapaxError) as error:
                raise self._strange(name, cell, str(error)) from error
        return self.record(**fields)

    def check(self, row: tuple[Any, ...]) -> None:
        """Raises HapaxError unless the row could be ours: readable, storable, and under its content's identity."""
        record = self.read(row)
        for table in self.tables:
            table.row(record)
        for (name, compute), cell in zip(self.computed.items(), row[: len(self.computed)], strict=True):
            if compute(record) != cell:
                raise self._strange(name, cell, "the identity belongs to another content")

    def _strange(self, column: str, cell: object, fault: str) -> HapaxError:
        return HapaxError(
            f"{self.name}.{column}: the cell {str(cell)[:60]!r} was not written by Hapax ({fault}). "
            "Restore the file from a copy, or delete the row."
        )

    def insert(self, on_conflict: OnConflict, source: str | None = None) -> str:
        """`INSERT` of rows, or of another attached table `source`."""
        names = ", ".join(self.all_columns)
        marks = ", ".join("?" * len(self.all_columns))
        # SQLite needs the `WHERE true`: otherwise it takes ON CONFLICT for a join.
        origin = f"SELECT {names} FROM {source} WHERE true ORDER BY rowid" if source else f"VALUES ({marks})"  # noqa: S608
        action = f"ON CONFLICT ({', '.join(self.key)}) {self._action(on_conflict)}"
        return f"INSERT INTO {self.name} ({names}) {origin} {action}"

    def _action(self, on_conflict: OnConflict) -> str:
        payload = [name for name in self.all_columns if name not in self.key]
        if on_conflict is OnConflict.KEEP or not payload:
            return "DO NOTHING"
        update = "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in payload)
        if on_conflict is OnConflict.REPLACE:
            return update
        first = [name.lstrip("-") for name in self.preferred]
        order = [*self.preferred, *(name for name in payload if name not in first)]
        new, old = zip(*(self._compared(name) for name in order), strict=True)
        return f"{update} WHERE ({', '.join(new)}) > ({', '.join(old)})"

    def _compared(self, column: str) -> tuple[str, str]:
        """A column of the new and of the old row; -9e999 is SQLite's minus infinity, below every text and number."""
        name = column.lstrip("-")
        new, old = f"coalesce(excluded.{name}, -9e999)", f"coalesce({self.name}.{name}, -9e999)"
        return (old, new) if column.startswith("-") else (new, old)


class OnConflict(StrEnum):
    """What happens to a row whose key is there already."""

    KEEP = "keep"  # the first one stays
    REPLACE = "replace"  # the last one stays
    BEST = "best"  # the greater one stays, in the table's order


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question with its state."""

    patterns: tuple[Pattern, ...]
    data_type: str
    functional: bool
    calls: int = 0
    calls_without_acceptance: int = 0
    exhausted: bool = False

    @classmethod
    def of(cls, question: Question, state: QuestionState) -> QuestionRow:
        return cls(
            question.patterns,
            question.data_type,
            question.functional,
            state.calls,
            state.calls_without_acceptance,
            state.exhausted,
        )

    @property
    def question(self) -> Question:
        return Question(self.patterns, self.data_type, self.functional)

    @property
    def state(self) -> QuestionState:
        return QuestionState(self.calls, self.calls_without_acceptance, self.exhausted)


@dataclass(frozen=True, slots=True)
class PatternRow:
    """The index from an atom with a free position to the questions that asked for it."""

    question_id: str
    position: int
    predicate: str
    pattern_key: str


def pattern_key(pattern: Pattern) -> str:
    """What finds the questions that asked for a pattern."""
    return content_id("pattern", pattern.predicate, list(pattern.arguments))


def pattern_index(question: Question) -> list[PatternRow]:
    """The entries under which a question is found."""
    return [
        PatternRow(question.id, position, pattern.predicate, pattern_key(pattern))
        for position, pattern in enumerate(question.patterns)
    ]


def statement_key(statement: StatementRecord) -> str:
    """A statement is kept once for each run and distribution that derived it."""
    return content_id("derivation", statement.id, statement.run_id, statement.distribution)


def constant_id(type_fact: TypeFact) -> str:
    """A constant is kept once, whatever types it has."""
    return content_id("constant", type_fact.constant)


RULES = Table(
    "rules",
    RuleRecord,
    ("name",),
    dict.fromkeys(("name", "text", "domain", "principle", "polarity"), TEXT),
    disagreement="text",
)
PREDICATES = Table(
    "predicates",
    PredicateRecord,
    ("indicator",),
    {
        "name": TEXT,
        "argument_types": NAMES,
        "kind": TEXT,
        "affirmative": TEXT,
        "negated": TEXT,
        "question": TEXT,
    },
    {"indicator": lambda predicate: predicate.indicator},
    disagreement="kind",
)
CONSTANTS = Table("constants", TypeFact, ("constant_id",), {"constant": VALUE}, {"constant_id": constant_id})
TYPE_FACTS = Table(
    "type_facts",
    TypeFact,
    ("constant_id", "data_type"),
    {"data_type": TEXT, "probability": REAL},
    {"constant_id": constant_id},
    side=CONSTANTS,
)
QUESTIONS = Table(
    "questions",
    QuestionRow,
    ("id",),
    {
        "patterns": PATTERNS,
        "data_type": TEXT,
        "functional": BOOLEAN,
        "calls": INTEGER,
        "calls_without_acceptance": INTEGER,
        "exhausted": BOOLEAN,
    },
    {"id": lambda row: row.question.id},
    preferred=("calls", "exhausted"),
)
PATTERN_INDEX = Table(
    "question_patterns",
    PatternRow,
    ("question_id", "position"),
    {"question_id": TEXT, "position": INTEGER, "predicate": TEXT, "pattern_key": TEXT},
)
CALLS = Table(
    "calls",
    CallRecord,
    ("request_id",),
    {
        "request_id": TEXT,
        "role": TEXT,
        "model": TEXT,
        "request": JSON,
        "response": JSON,
        "prompt_tokens": INTEGER,
        "completion_tokens": INTEGER,
        "cost": REAL,
        "created": TEXT,
    },
    preferred=("-created",),
    disagreement="response",
)
CANDIDATES = Table(
    "candidates",
    Candidate,
    ("id",),
    {
        "question_id": TEXT,
        "value": VALUE,
        "raw": TEXT,
        "call_id": TEXT,
        "position": INTEGER,
        "rejected_by_parser": TEXT,
    },
    {"id": lambda candidate: candidate.id},
)
ASSESSMENTS = Table(
    "assessments",
    Assessment,
    ("id",),
    {
        "text": TEXT,
        "measure": TEXT,
        "model": TEXT,
        "score": REAL,
        "token_count": INTEGER,
        "call_id": TEXT,
    },
    {"id": lambda assessment: assessment.id},
    disagreement="score",
)
DECISIONS = Table(
    "decisions",
    Decision,
    ("id",),
    {
        "run_id": TEXT,
        "gate": TEXT,
        "subject": TEXT,
        "accepted": BOOLEAN,
        "score": REAL,
        "threshold": REAL,
        "reason": TEXT,
        "rule": TEXT,
        "distribution": _enum(Distribution),
        "step": INTEGER,
        "assessment_ids": NAMES,
    },
    {"id": lambda decision: decision.id},
)
FACTS = Table(
    "facts",
    FactRecord,
    ("id",),
    {
        "predicate": TEXT,
        "arguments": VALUES,
        "types": NAMES,
        "source": _enum(Source),
        "probability": REAL,
        "candidate_id": TEXT,
        "run_id": TEXT,
    },
    {"id": lambda fact: fact.id},
    preferred=("-source", "probability", "types", "candidate_id", "-run_id"),  # given < model
)
PROOFS: Table[Any] = Table("proofs", dict, ("key",), {"proof": TREE}, {"key": statement_key})
STATEMENTS = Table(
    "statements",
    StatementRecord,
    ("key",),
    {
        "rule": TEXT,
        "distribution": _enum(Distribution),
        "run_id": TEXT,
        "substitution": BINDINGS,
        "premise": TEXT,
        "conclusion": TEXT,
        "ranking_text": TEXT,
        "log_likelihood": REAL,
    },
    {"key": statement_key, "id": lambda statement: statement.id},
    preferred=("log_likelihood",),
    side=PROOFS,
)
RUNS = Table(
    "runs",
    RunRecord,
    ("id",),
    {
        "id": TEXT,
        "command": TEXT,
        "settings": TREE,
        "fingerprint": TEXT,
        "started": TEXT,
        "finished": TEXT,
        "status": TEXT,
        "summary": TREE,
    },
    preferred=("finished",),
)
VOTES = Table(
    "votes",
    VoteRecord,
    ("id",),
    dict.fromkeys(("statement_id", "question", "voter", "answer", "comment"), TEXT),
    {"id": lambda vote: vote.id},
    disagreement="answer",
)

RECORD_TABLES: tuple[Table[Any], ...] = (
    RUNS,
    RULES,
    PREDICATES,
    TYPE_FACTS,
    QUESTIONS,
    PATTERN_INDEX,
    CALLS,
    CANDIDATES,
    ASSESSMENTS,
    DECISIONS,
    FACTS,
    STATEMENTS,
    VOTES,
)
TABLES: tuple[Table[Any], ...] = tuple(table for entry in RECORD_TABLES for table in entry.tables)
"""Every table of the schema."""
