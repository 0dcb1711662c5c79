"""Mapping of records to tables: columns with their codecs, the key, and the order that settles conflicts.

Every `add` and every merge is generated from these descriptions. Of two rows with one key the greater wins, in a total
order over all columns; so merging twice changes nothing, and either direction gives the same content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb import values
from hapax.kb.records import (
    Assessment,
    AtomPattern,
    AttemptRecord,
    CalibrationRecord,
    CallRecord,
    Candidate,
    CertificateRecord,
    ConflictRecord,
    Decision,
    DenialRecord,
    Distribution,
    DrawnItem,
    FactLabel,
    FactRecord,
    JudgingDraw,
    Outcome,
    PredicateRecord,
    ProfileRecord,
    Question,
    QuestionState,
    RuleRecord,
    RuleTextRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
    Withdrawal,
    content_id,
)

OTHER_CONTENT = "the identity belongs to other content"

RESTORE = Remedy("Restore the file from a copy, or delete the row; {} lists all such rows.", Operation("verify"))

SqlValue: TypeAlias = str | int | float | None
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion between a field and a cell, neither of them None.

    `encode` raises `ValueRefused`, `decode` ValueError or TypeError.
    """

    encode: Callable[[Any], SqlValue]
    decode: Callable[[Any], Any]


def _text(value: str) -> str:
    if type(value) is str and value.isascii():  # the common case, which needs no further check
        return value
    if not isinstance(value, str):
        raise values.ValueRefused(f"expected a text, not {type(value).__name__}; convert it first")
    if reason := values.refusal(value):
        raise values.ValueRefused(reason)
    return str(value)


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise values.ValueRefused("the number needs more than 64 bits; use a smaller one")
    return int(value)


def _real(value: float) -> float:
    if math.isnan(value):
        raise values.ValueRefused("the score is not a number (NaN); fix the model that returned it")
    return float(value)


def _score(value: float) -> float:
    # Minus infinity is allowed: a text without tokens has it as its mean log-likelihood, and ranks last.
    if value == math.inf:
        raise values.ValueRefused("the score is infinite; fix the model that returned it")
    return _real(value)


def _probability(value: float) -> float:
    if not 0.0 <= value <= 1.0:  # false for NaN, too
        raise values.ValueRefused(f"{value!r} is no probability; give a number from 0 to 1")
    return float(value)


def _bindings(cell: str) -> tuple[tuple[str, Any], ...]:
    return tuple((_text(name), values.plain_value(value)) for name, value in values.load_list(cell))


def _encode_bindings(bindings: tuple[tuple[str, Any], ...]) -> str:
    return "[" + ",".join(f"[{values.encode_value(n)},{values.encode_value(v)}]" for n, v in bindings) + "]"


def _encode_patterns(patterns: tuple[AtomPattern, ...]) -> str:
    cells = [f"[{values.encode_value(p.predicate)},{values.encode_values(p.arguments)}]" for p in patterns]
    return f"[{','.join(cells)}]"


def _decode_patterns(cell: str) -> tuple[AtomPattern, ...]:
    patterns = []
    for predicate, items in values.load_list(cell):
        arguments = tuple(None if item is None else values.plain_value(item) for item in items)
        patterns.append(AtomPattern(_text(predicate), arguments))
    return tuple(patterns)


def _enum(members: type[StrEnum]) -> Codec:
    return Codec(lambda member: members(member).value, members)


TEXT = Codec(_text, _text)
INTEGER = Codec(_integer, int)
REAL = Codec(_real, float)
SCORE = Codec(_score, _score)
PROBABILITY = Codec(_probability, _probability)
BOOLEAN = Codec(int, bool)
VALUE = Codec(values.encode_value, values.decode_value)
VALUES = Codec(values.encode_values, values.decode_values)
NAMES = Codec(lambda names: values.encode_values(tuple(map(_text, names))), values.decode_values)
TREE = Codec(values.encode_tree, values.decode_tree)
# A server's request or response may contain a map `{"decimal": "1"}` that is not one of our decimals.
JSON = Codec(partial(values.encode_tree, decimals=False), partial(values.decode_tree, decimals=False))
BINDINGS = Codec(_encode_bindings, _bindings)
PATTERNS = Codec(_encode_patterns, _decode_patterns)


@dataclass(frozen=True, eq=False)
class TableSchema(Generic[R]):
    """Description of a table. `columns` are named like the record's fields; `computed` columns need the whole record.

    `preferred` columns decide first between two rows with one key: the greatest value wins and NULL loses, after a
    leading `-` the smallest wins. Two rows with one key contradict each other if they differ in `disagreement`.
    `side` is a table with further fields of the record under the same key.
    """

    name: str
    record: Callable[..., R]
    key: tuple[str, ...]
    columns: Mapping[str, Codec]
    computed: Mapping[str, Callable[[Any], SqlValue]] = field(default_factory=dict)
    preferred: tuple[str, ...] = ()
    disagreement: str | None = None
    side: TableSchema[Any] | None = None

    @property
    def tables(self) -> tuple[TableSchema[Any], ...]:
        return (self, self.side) if self.side else (self,)

    @property
    def all_columns(self) -> tuple[str, ...]:
        return (*self.computed, *self.columns)

    def row(self, record: R) -> tuple[SqlValue, ...]:
        """The record's cells in the order of `all_columns`. Raises `ValueRefused`, which names table and column."""
        try:
            cells = [None if (value := getattr(record, name)) is None else code(value) for name, code in self._encoders]
        except values.ValueRefused:
            raise self._refused(record) from None
        # Identities come last: hashing would fail without a reason on a value that its codec refuses with one.
        return (*[compute(record) for compute in self.computed.values()], *cells)

    @cached_property
    def _encoders(self) -> tuple[tuple[str, Callable[[Any], SqlValue]], ...]:
        return tuple((name, codec.encode) for name, codec in self.columns.items())

    def _refused(self, record: R) -> values.ValueRefused:
        """The error for the record's first faulty cell, found again here so that writing good records stays fast."""
        for name, encode in self._encoders:
            value = getattr(record, name)
            try:
                _ = None if value is None else encode(value)
            except values.ValueRefused as error:
                return values.ValueRefused(f"{self.name}.{name}: {error}")
        raise AssertionError("refused a cell that can be written")

    @property
    def select(self) -> str:
        """`SELECT` of the computed columns and all record fields, joined with the side table."""
        fields = [f"{self.name}.{column}" for column in self.all_columns]
        if self.side:
            fields += [f"{self.side.name}.{column}" for column in self.side.columns]
        join = f" JOIN {self.side.name} USING ({', '.join(self.side.key)})" if self.side else ""
        return f"SELECT {', '.join(fields)} FROM {self.name}{join}"  # noqa: S608 - names are ours

    def read(self, row: tuple[Any, ...]) -> R:
        """The record of a row from `select`. Raises HapaxError for a cell that another program changed.

        An identity is a hash of content, so a change of that content shows in it.
        """
        fields: dict[str, Any] = {}
        # `select` puts the computed columns first.
        for (name, decode), cell in zip(self._decoders, row[len(self.computed) :], strict=True):
            try:
                fields[name] = None if cell is None else decode(cell)
            except (ValueError, TypeError, HapaxError) as error:
                raise self._foreign_cell(name, cell, str(error), row) from error
        record = self.record(**fields)
        # Not strict: a row begins with the computed columns, and the others were read above.
        for (name, compute), cell in zip(self.computed.items(), row, strict=False):
            if compute(record) != cell:
                raise self._foreign_cell(name, cell, OTHER_CONTENT, row)
        return record

    @cached_property
    def _decoders(self) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
        columns = {**self.columns, **(self.side.columns if self.side else {})}
        return tuple((name, codec.decode) for name, codec in columns.items())

    def check(self, row: tuple[Any, ...]) -> None:
        """Raise HapaxError unless Hapax could have written the row: readable, storable and with the right identity."""
        record = self.read(row)
        for table in self.tables:
            table.row(record)

    def _foreign_cell(self, column: str, cell: object, fault: str, row: tuple[Any, ...]) -> HapaxError:
        cells = dict(zip(self.all_columns, row, strict=False))
        key = ", ".join(f"{name} {str(cells[name])[:60]!r}" for name in self.key)
        content = [str(cells[name])[:60] for name in self.columns if cells.get(name) is not None]
        return HapaxError(
            f"{self.name}.{column}: the cell {str(cell)[:60]!r} was not written by Hapax ({fault}; row with {key}: "
            f"{', '.join(content)[:120]}). {RESTORE}"
        )

    def insert(self, on_conflict: OnConflict, source: str | None = None) -> str:
        """`INSERT` of rows, or of all rows of another attached table `source`."""
        names = ", ".join(self.all_columns)
        marks = ", ".join("?" * len(self.all_columns))
        # Without `WHERE true` SQLite would parse ON CONFLICT as a join condition.
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
        # All other columns follow, so that of two different rows one is always the greater.
        first = [name.lstrip("-") for name in self.preferred]
        order = [*self.preferred, *(name for name in payload if name not in first)]
        new, old = zip(*(self._compared(name) for name in order), strict=True)
        return f"{update} WHERE ({', '.join(new)}) > ({', '.join(old)})"

    def _compared(self, column: str) -> tuple[str, str]:
        """Expressions for a column of the new and of the old row, swapped where the smaller value wins."""
        name = column.lstrip("-")
        # NULL compares with nothing; -9e999 is SQLite's minus infinity, below every text and number.
        new, old = f"coalesce(excluded.{name}, -9e999)", f"coalesce({self.name}.{name}, -9e999)"
        return (old, new) if column.startswith("-") else (new, old)


class OnConflict(StrEnum):
    """Treatment of a row whose key exists already."""

    KEEP = "keep"  # the first row stays
    REPLACE = "replace"  # the last row stays
    BEST = "best"  # the greater row stays, in the table's order


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question with its state."""

    patterns: tuple[AtomPattern, ...]
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
    """Index entry from an atom with a free position to a question that asked for it."""

    question_id: str
    position: int
    predicate: str
    pattern_key: str


def pattern_key(pattern: AtomPattern) -> str:
    """Key of the index entries for a pattern."""
    return content_id("pattern", pattern.predicate, list(pattern.arguments))


def pattern_index(question: Question) -> list[PatternRow]:
    """Index entries of a question, one for each pattern."""
    return [
        PatternRow(question.id, position, pattern.predicate, pattern_key(pattern))
        for position, pattern in enumerate(question.patterns)
    ]


def statement_key(statement: StatementRecord) -> str:
    """Key of a statement's row: a statement has a row for each run and distribution that derived it."""
    return content_id("derivation", statement.id, statement.run_id, statement.distribution)


def constant_id(type_fact: TypeFact) -> str:
    """Key of a constant, which has one row however many types it has."""
    return content_id("constant", type_fact.constant)


RULES = TableSchema(
    "rules",
    RuleRecord,
    ("name",),
    dict.fromkeys(("name", "text", "domain", "principle", "polarity"), TEXT),
    disagreement="text",
)
PREDICATES = TableSchema(
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
CONSTANTS = TableSchema("constants", TypeFact, ("constant_id",), {"constant": VALUE}, {"constant_id": constant_id})
TYPE_FACTS = TableSchema(
    "type_facts",
    TypeFact,
    ("constant_id", "data_type"),
    {"data_type": TEXT, "probability": PROBABILITY},
    {"constant_id": constant_id},
    side=CONSTANTS,
)
QUESTIONS = TableSchema(
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
    # The state after more calls is the later one.
    preferred=("calls", "exhausted"),
)
PATTERN_INDEX = TableSchema(
    "question_patterns",
    PatternRow,
    ("question_id", "position"),
    {"question_id": TEXT, "position": INTEGER, "predicate": TEXT, "pattern_key": TEXT},
)
CALLS = TableSchema(
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
        "cost": SCORE,
        "created": TEXT,
    },
    # The first answer stays, as in `KnowledgeBase.record_calls`.
    preferred=("-created",),
    disagreement="response",
)
ATTEMPTS = TableSchema(
    "attempts",
    AttemptRecord,
    ("id",),
    {
        "id": TEXT,
        "role": TEXT,
        "model": TEXT,
        "path": TEXT,
        "started": TEXT,
        "finished": TEXT,
        "outcome": _enum(Outcome),
        "prompt_tokens": INTEGER,
        "completion_tokens": INTEGER,
        "cost": SCORE,
    },
    # A row without an outcome loses.
    preferred=("finished",),
)
CANDIDATES = TableSchema(
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
ASSESSMENTS = TableSchema(
    "assessments",
    Assessment,
    ("id",),
    {
        "text": TEXT,
        "measure": TEXT,
        "model": TEXT,
        "score": SCORE,
        "token_count": INTEGER,
        "call_id": TEXT,
        "basis": TEXT,
    },
    {"id": lambda assessment: assessment.id},
    disagreement="score",
)
DECISIONS = TableSchema(
    "decisions",
    Decision,
    ("id",),
    {
        "run_id": TEXT,
        "gate": TEXT,
        "subject": TEXT,
        "accepted": BOOLEAN,
        "score": SCORE,
        "threshold": REAL,
        "reason": TEXT,
        "rule": TEXT,
        "distribution": _enum(Distribution),
        "step": INTEGER,
        "assessment_ids": NAMES,
    },
    {"id": lambda decision: decision.id},
)
FACTS = TableSchema(
    "facts",
    FactRecord,
    ("id",),
    {
        "predicate": TEXT,
        "arguments": VALUES,
        "types": NAMES,
        "source": _enum(Source),
        "probability": PROBABILITY,
        "candidate_id": TEXT,
        "run_id": TEXT,
        "basis": TEXT,
    },
    {"id": lambda fact: fact.id},
    preferred=("-source", "probability", "types", "candidate_id", "-run_id"),  # "given" < "model"
)
PROOFS: TableSchema[Any] = TableSchema("proofs", dict, ("key",), {"proof": TREE}, {"key": statement_key})
STATEMENTS = TableSchema(
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
        "log_likelihood": SCORE,
    },
    {"key": statement_key, "id": lambda statement: statement.id},
    preferred=("log_likelihood",),
    side=PROOFS,
)
RUNS = TableSchema(
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
VOTES = TableSchema(
    "votes",
    VoteRecord,
    ("id",),
    dict.fromkeys(("statement_id", "question", "voter", "answer", "comment"), TEXT),
    {"id": lambda vote: vote.id},
    disagreement="answer",
)

RULE_TEXTS = TableSchema(
    "rule_texts",
    RuleTextRecord,
    ("name",),
    dict.fromkeys(("name", "text", "command"), TEXT),
    {"checksum": lambda record: record.checksum},
    disagreement="text",
)
PROFILES = TableSchema(
    "model_profiles",
    ProfileRecord,
    ("model",),
    {"model": TEXT, "profile": TEXT, "scores": JSON},
)

DENIALS = TableSchema(
    "denials",
    DenialRecord,
    ("id",),
    {"predicate": TEXT, "arguments": VALUES, "probability": PROBABILITY, "run_id": TEXT},
    {"id": lambda denial: denial.id},
)
CONFLICTS = TableSchema(
    "conflicts",
    ConflictRecord,
    ("id",),
    {
        "declaration": TEXT,
        "facts": NAMES,
        "lost": NAMES,
        "reason": TEXT,
        "run_id": TEXT,
    },
    {"id": lambda conflict: conflict.id},
)
WITHDRAWALS = TableSchema(
    "withdrawals",
    Withdrawal,
    ("fact_id", "withdrawn"),
    {
        "predicate": TEXT,
        "arguments": VALUES,
        "types": NAMES,
        "source": _enum(Source),
        "reason": TEXT,
        "author": TEXT,
        "withdrawn": TEXT,
        "probability": PROBABILITY,
        "candidate_id": TEXT,
        "run_id": TEXT,
        "basis": TEXT,
        "restored": TEXT,
    },
    {"fact_id": lambda withdrawal: withdrawal.fact.id},
    # A withdrawal that either file undid is undone.
    preferred=("restored",),
)

LABELS = TableSchema(
    "fact_labels",
    FactLabel,
    ("id",),
    {"predicate": TEXT, "arguments": VALUES, "is_true": BOOLEAN, "source": TEXT},
    {"id": lambda label: label.id, "fact_id": lambda label: label.fact_id},
    disagreement="is_true",
)
CALIBRATIONS = TableSchema(
    "calibrations",
    CalibrationRecord,
    ("critic",),
    {
        "critic": TEXT,
        "method": TEXT,
        "parameters": JSON,
        "sample": NAMES,
        "sources": NAMES,
        "metrics": JSON,
        "created": TEXT,
    },
    {"checksum": lambda record: record.checksum},
    preferred=("created",),
)
CERTIFICATES = TableSchema(
    "certificates",
    CertificateRecord,
    ("id",),
    {
        "fact_group": TEXT,
        "precision": REAL,
        "confidence": REAL,
        "method": TEXT,
        "basis": JSON,
        "threshold": REAL,
        "labels": INTEGER,
        "false": INTEGER,
        "bound": REAL,
        "accepted": INTEGER,
        "pool": INTEGER,
        "sample": TEXT,
        "shift": REAL,
        "reason": TEXT,
        "created": TEXT,
        "run_id": TEXT,
        "after_run": TEXT,
        "ends": JSON,
    },
    {"id": lambda certificate: certificate.id},
    preferred=("created", "after_run", "ends"),
)
JUDGING_DRAWS = TableSchema(
    "judging_draws",
    JudgingDraw,
    ("kind",),
    {"kind": TEXT, "salt": TEXT, "settings": JSON, "reach": REAL, "created": TEXT},
    preferred=("created",),
)
DRAWN_ITEMS = TableSchema(
    "drawn_items",
    DrawnItem,
    ("salt", "item_id"),
    {"salt": TEXT, "item_id": TEXT, "score": SCORE, "weight": REAL, "draw": REAL},
)

RECORD_TABLES: tuple[TableSchema[Any], ...] = (
    RUNS,
    RULES,
    PREDICATES,
    TYPE_FACTS,
    QUESTIONS,
    PATTERN_INDEX,
    CALLS,
    ATTEMPTS,
    CANDIDATES,
    ASSESSMENTS,
    DECISIONS,
    FACTS,
    STATEMENTS,
    VOTES,
    PROFILES,
    RULE_TEXTS,
    DENIALS,
    CONFLICTS,
    WITHDRAWALS,
    LABELS,
    CALIBRATIONS,
    CERTIFICATES,
    JUDGING_DRAWS,
    DRAWN_ITEMS,
)
TABLES: tuple[TableSchema[Any], ...] = tuple(chain.from_iterable(entry.tables for entry in RECORD_TABLES))
"""Every table of the schema."""
