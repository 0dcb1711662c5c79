"""Frozen records of the knowledge base, each with its table, and with identities derived from their content.

An identity is a hash of the content alone, so that knowledge bases from two machines merge without renumbering.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from hapax.grammar.parsing.declarations import PredicateSignature, Templates
from hapax.grammar.rules import Rule
from hapax.grammar.terms import MISSING, Atom, Constant, Term, Value
from hapax.grammar.writing.verbalize import StatementText
from hapax.kb.atoms.symbols import canonical
from hapax.kb.exchange import values
from hapax.kb.exchange.values import writer
from hapax.kb.files import system
from hapax.kb.rows import Bindings, Codec, Json, OnConflict, Probability, Score, TableSchema, Tree, text_cell


def content_id(kind: str, *parts: object) -> str:
    """Stable identity of a record's content, 32 hex digits."""
    # Lone surrogates have a hash, too, as callers look up texts that no cell can hold. Half of the digest is enough:
    # among 10^9 records two have the same 128 bits with a probability below 10^-20.
    canonical = _CANONICAL([kind, *parts])
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def canonical_text(value: object) -> str:
    """The value in the form in which `content_id` takes it."""
    return _CANONICAL(value)


def _encoded(value: object) -> object:
    if isinstance(value, Decimal):
        return {"decimal": _canonical_decimal(value)}
    raise TypeError(f"no canonical form for {type(value).__name__}")


_CANONICAL = writer(json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_encoded))


def _canonical_decimal(value: Decimal) -> str:
    """One form for equal decimals: 1.10 and 1.1 are one constant. Never rounds, unlike `Decimal.normalize`."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # infinity or NaN
        return str(value)
    written = "".join(map(str, digits)).lstrip("0")
    significant = written.rstrip("0")
    if not significant:
        return "0"
    # 1.10 is 110E-2, and it becomes 11E-1, as 1.1 does.
    return f"{'-' if sign else ''}{significant}E{exponent + len(written) - len(significant)}"


class Distribution(StrEnum):
    """Head or long tail of a statement's likelihood, named as in the papers."""

    HEAD = "head"
    LONG_TAIL = "long_tail"


class Source(StrEnum):
    """Origin of a fact: given by the user, or proposed by a model."""

    GIVEN = "given"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class AtomPattern:
    """An atom with None at the free position: `is_ingredient_in(None, "paella")`."""

    predicate: str
    arguments: tuple[Value | None, ...]

    @property
    def indicator(self) -> str:
        return f"{self.predicate}/{len(self.arguments)}"

    def filled(self, term: Term) -> Atom:
        """The atom with a term at the free positions."""
        arguments = (term if argument is None else Constant(argument) for argument in self.arguments)
        return Atom(self.predicate, tuple(arguments))


def _encode_patterns(patterns: tuple[AtomPattern, ...]) -> str:
    cells = [f"[{values.encode_value(p.predicate)},{values.encode_values(p.arguments)}]" for p in patterns]
    return f"[{','.join(cells)}]"


def _decode_patterns(cell: str) -> tuple[AtomPattern, ...]:
    patterns = []
    for predicate, items in values.load_list(cell):
        arguments = tuple(None if item is None else values.plain_value(item) for item in items)
        patterns.append(AtomPattern(text_cell(predicate), arguments))
    return tuple(patterns)


PATTERNS = Codec(_encode_patterns, _decode_patterns)


@dataclass(frozen=True, slots=True)
class Question:
    """Which values of `data_type` make every pattern true? Asked once for all beams, distributions, rules and runs.

    By default a question has one pattern; `--compat` joins more, as LINK does. `functional`: there is one right value.
    """

    patterns: Annotated[tuple[AtomPattern, ...], PATTERNS]
    data_type: str
    functional: bool = False

    @property
    def id(self) -> str:
        return content_id(
            "question", [[p.predicate, list(p.arguments)] for p in self.patterns], self.data_type, self.functional
        )


@dataclass(frozen=True, slots=True)
class QuestionState:
    """Progress of a question: calls made, calls in a row without an accepted value, and whether it is exhausted."""

    calls: int = 0
    calls_without_acceptance: int = 0
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class QuestionRow(Question):
    """A question with its state."""

    calls: int = 0
    calls_without_acceptance: int = 0
    exhausted: bool = False

    @property
    def question(self) -> Question:
        return Question(self.patterns, self.data_type, self.functional)

    @property
    def state(self) -> QuestionState:
        return QuestionState(self.calls, self.calls_without_acceptance, self.exhausted)


# The state after more calls is the later one.
QUESTIONS = TableSchema.of("questions", QuestionRow, preferred=("calls", "exhausted"))


NO_USABLE_REPLY = "no usable reply: "
"""Begins the field `refused` of a response if no attempt of the request brought an answer; the reason follows."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """An answered request to a model: the whole request with its sample index, and the whole response.

    `refused` in a response: why it has no answer. A model that refused does so again; a request without a usable reply
    (`is_unusable`) may be asked again.
    """

    request_id: str
    role: str
    model: str
    request: Json
    response: Json
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Score | None = None
    """In the currency of the price table; None if the price is unknown."""
    created: str = ""

    @property
    def is_unusable(self) -> bool:
        return str(self.response.get("refused", "")).startswith(NO_USABLE_REPLY)


# The first answer stays, as in `KnowledgeBase.record_calls`.
CALLS = TableSchema.of(
    "calls", CallRecord, ("request_id",), preferred=("-created",), disagreement="response", on_conflict=OnConflict.KEEP
)


class Outcome(StrEnum):
    """End of a request to a server."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """A reply that permanently refuses this request."""
    UNUSABLE = "unusable"
    """A reply with status 200 that lacks what was asked for; it is charged, and the request is repeated."""
    ERROR = "error"
    """A reply with another status, which is not charged."""
    LOST = "lost"
    """No whole reply came, so the request was perhaps charged."""
    UNSENT = "unsent"
    """The request did not leave."""
    QUEUED = "queued"
    """The request is in a batch file that somebody else sends, and no result of it was read."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One request that left for a server, written before it was sent, or before the file of its batch was.

    While `outcome` is None no reply was recorded, and tokens and cost are the most that the request can use; so are
    those of a lost one. `cost` is None if the price is unknown.
    """

    id: str
    role: str
    model: str
    path: str
    """Path of the request at the server, such as `chat/completions`."""
    started: str
    finished: str | None = None
    outcome: Outcome | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Score | None = None


# A row without an outcome loses.
ATTEMPTS = TableSchema.of("attempts", AttemptRecord, preferred=("finished",), indexes=("model",), is_late=True)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that a model proposed for a question, accepted or not.

    `raw`: the entry of the reply; `position`: its number there, from 0. `rejected_by_parser`: why it is not a value;
    None if it is one.
    """

    question_id: str
    value: Value
    raw: str
    call_id: str
    position: int
    rejected_by_parser: str | None = None

    @property
    def id(self) -> str:
        # A reply that is no value is identified by its text instead.
        return content_id("candidate", self.question_id, self.value, self.raw if self.rejected_by_parser else "")


CANDIDATES = TableSchema.of(
    "candidates",
    Candidate,
    references={"question_id": "questions.id", "call_id": "calls.request_id"},
    indexes=("question_id",),
    on_conflict=OnConflict.KEEP,
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """A model's score of a text. `measure` is `probability`, `type_probability` or `log_likelihood`.

    For a log-likelihood, `score` is the total in nats and `token_count` the number of tokens it sums over.
    """

    text: str
    measure: str
    model: str
    score: Score
    token_count: int = 0
    call_id: str | None = None
    basis: str | None = None
    """The source on which the score rests, such as a row of a reference."""

    @property
    def id(self) -> str:
        return content_id("assessment", self.text, self.measure, self.model)


ASSESSMENTS = TableSchema.of(
    "assessments",
    Assessment,
    disagreement="score",
    references={"call_id": "calls.request_id"},
    on_conflict=OnConflict.KEEP,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """A gate's verdict on a subject, with score, threshold and reason. Decisions are added, never changed.

    `subject` is a candidate id for the critic gate and a canonical substitution for the likelihood gate.
    """

    run_id: str
    gate: str
    subject: str
    accepted: bool
    score: Score | None
    threshold: float | None
    reason: str
    rule: str | None = None
    distribution: Distribution | None = None
    step: int | None = None
    assessment_ids: tuple[str, ...] = ()
    """Assessments that the score was computed from, for `why`."""

    @property
    def id(self) -> str:
        # Without score and reason: a resumed run that repeats a verdict adds no row.
        return content_id(
            "decision", self.run_id, self.gate, self.subject, self.rule, self.distribution, self.step, self.accepted
        )


DECISIONS = TableSchema.of(
    "decisions",
    Decision,
    references={"run_id": "runs.id", "rule": "rules.name"},
    indexes=("subject", "run_id, gate"),
    on_conflict=OnConflict.KEEP,
)


@dataclass(frozen=True, slots=True)
class FactRecord:
    """A ground atom that is taken as true. `types` are the data types under which its arguments were accepted."""

    predicate: str
    arguments: tuple[Value, ...]
    types: tuple[str, ...]
    source: Source
    probability: Probability | None = None
    candidate_id: str | None = None
    run_id: str | None = None
    basis: str | None = None
    """The source that states the fact, such as a row of a reference; None if a model alone says so."""

    @property
    def indicator(self) -> str:
        return f"{self.predicate}/{len(self.arguments)}"

    @property
    def ground_atom(self) -> Atom:
        return Atom(self.predicate, tuple(map(Constant, self.arguments)))

    @property
    def text(self) -> str:
        """The fact as rule text."""
        return str(self.ground_atom)

    @property
    def id(self) -> str:
        return fact_id(self.predicate, self.arguments)


def fact_id(predicate: str, arguments: Iterable[Value]) -> str:
    """Identity of a fact: 2 and 2.0 are one constant."""
    return content_id("fact", predicate, identity_cells(arguments))


def identity_cells(arguments: Iterable[Value]) -> list[Value | None]:
    """The arguments as a fact's identity has them; None for a missing one."""
    return [None if value is MISSING else canonical(value) for value in arguments]


# A view of the tables of single predicates, into which `facts.FactRelations` writes.
FACTS = TableSchema.of(
    "facts",
    FactRecord,
    preferred=("-source", "probability", "types", "candidate_id", "-run_id"),  # "given" < "model"
    order="ref",
)


@dataclass(frozen=True, slots=True)
class TypeFact:
    """A constant accepted as a value of a data type. `probability` is the critic's; None if the user gave the type."""

    constant: Value
    data_type: str
    probability: Probability | None = None

    @property
    def constant_id(self) -> str:
        """Key of the constant, which may have several types."""
        return content_id("constant", self.constant)


TYPE_FACTS = TableSchema.of(
    "type_facts",
    TypeFact,
    ("constant_id", "data_type"),
    indexes=("data_type",),
    on_conflict=OnConflict.BEST,
    is_late=True,
)


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """The prompt profile that suits a model, with the share of known answers that each profile brought.

    `model`: NAME@REVISION.
    """

    model: str
    profile: str
    scores: Json


MODEL_PROFILES = TableSchema.of("model_profiles", ProfileRecord, ("model",), is_late=True)


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule as its library last wrote it; with it, statements can be read without the rule files."""

    name: str
    text: str
    domain: str | None = None
    principle: str | None = None
    polarity: str | None = None

    @classmethod
    def of(cls, rule: Rule) -> RuleRecord:
        return cls(rule.name, str(rule), rule.domain, rule.principle, rule.polarity)


RULES = TableSchema.of("rules", RuleRecord, ("name",), disagreement="text")


@dataclass(frozen=True, slots=True)
class RuleTextRecord:
    """A rule file that was last used on the knowledge base. `command`: the one that stored it.

    Files of the shipped rules are stored without their text, since they come with Hapax.
    """

    name: str
    text: str
    command: str

    @property
    def checksum(self) -> str:
        return content_id("rule text", self.text)


RULE_TEXTS = TableSchema.of(
    "rule_texts", RuleTextRecord, ("name",), also=("checksum",), disagreement="text", on_conflict=OnConflict.KEEP
)


@dataclass(frozen=True, slots=True)
class PredicateRecord:
    """A predicate as its library last declared it."""

    name: str
    argument_types: tuple[str, ...]
    kind: str
    affirmative: str | None = None
    negated: str | None = None
    question: str | None = None

    @property
    def indicator(self) -> str:
        return f"{self.name}/{len(self.argument_types)}"

    @classmethod
    def of(cls, signature: PredicateSignature) -> PredicateRecord:
        templates = signature.templates or Templates("")
        return cls(
            signature.name,
            signature.argument_types,
            signature.kind.value,
            templates.affirmative or None,
            templates.negated,
            templates.question,
        )


PREDICATES = TableSchema.of("predicates", PredicateRecord, ("indicator",), disagreement="kind")


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """A premise and a conclusion in words, with their substitution and proof (a JSON tree).

    `substitution`: names of variables with their values.
    """

    rule: str
    distribution: Distribution
    run_id: str
    substitution: Bindings
    premise: str
    conclusion: str
    proof: Tree
    log_likelihood: Score | None = None
    """Mean token log-likelihood of the statement under the evaluator, in nats."""

    @property
    def key(self) -> str:
        """Key of the row: a statement has one for each run and distribution that derived it."""
        return content_id("derivation", self.id, self.run_id, self.distribution)

    @property
    def id(self) -> str:
        return statement_id(self.rule, self.substitution)

    @property
    def text(self) -> str:
        return StatementText(self.premise, self.conclusion).sentence


STATEMENTS = TableSchema.of(
    "statements",
    StatementRecord,
    ("key",),
    also=("id",),
    preferred=("log_likelihood",),
    references={"rule": "rules.name", "run_id": "runs.id"},
    # Pages list a million statements by likelihood, end and sentence without reading all of them.
    indexes=(
        "id",
        "run_id, rule",
        "rule",
        "log_likelihood",
        "rule, log_likelihood",
        "distribution, log_likelihood",
        "premise",
    ),
)


def statement_id(rule: str, substitution: Iterable[tuple[str, Value]]) -> str:
    """Identity of a statement: its rule and its values."""
    return content_id("statement", rule, [[name, value] for name, value in substitution])


def text_id(premise: str, conclusion: str) -> str:
    """Identity of a statement's text, shared by statements that differ only in values of hidden variables."""
    return content_id("text", StatementText(premise, conclusion).sentence)


@dataclass(frozen=True, slots=True)
class DenialRecord:
    """An atom of which a critic said a sure no: P(yes) at most 1 less the threshold of truth.

    Stored for open predicates that rules negate: only these negations need it.
    """

    predicate: str
    arguments: tuple[Value, ...]
    probability: Probability
    run_id: str | None = None

    @property
    def indicator(self) -> str:
        return f"{self.predicate}/{len(self.arguments)}"

    @property
    def ground_atom(self) -> Atom:
        return Atom(self.predicate, tuple(map(Constant, self.arguments)))

    @property
    def id(self) -> str:
        return content_id("denial", self.predicate, list(self.arguments))


DENIALS = TableSchema.of("denials", DenialRecord, indexes=("predicate",), on_conflict=OnConflict.KEEP, is_late=True)


@dataclass(frozen=True, slots=True)
class ConflictRecord:
    """Facts that break a declaration together, as a search opened and decided it.

    `facts` and `lost` are texts of atoms; `reason` says with which scores. `lost` is empty where every fact is given.
    """

    declaration: str
    facts: tuple[str, ...]
    lost: tuple[str, ...]
    reason: str
    run_id: str

    @property
    def id(self) -> str:
        return content_id("conflict", self.declaration, list(self.facts), self.run_id)


CONFLICTS = TableSchema.of("conflicts", ConflictRecord, indexes=("run_id",), is_late=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal(FactRecord):
    """A fact that no longer stands, as it was stored, with the reason, the author and the times (ISO 8601, UTC).

    `author`: `user`, the name of a gate, `calibration` or `another program`. A search never brings back what the user
    withdrew. `restored`: when the fact came back; None while it is withdrawn.
    """

    reason: str
    author: str
    withdrawn: str
    restored: str | None = None

    @classmethod
    def of(cls, fact: FactRecord, reason: str, author: str, withdrawn: str) -> Withdrawal:
        """The withdrawal of a fact at a time."""
        stored = {name: getattr(fact, name) for name in FACTS.columns}
        return cls(**stored, reason=reason, author=author, withdrawn=withdrawn)

    @property
    def fact_id(self) -> str:
        return self.id

    @property
    def fact(self) -> FactRecord:
        """The fact as it was stored."""
        return FactRecord(**{name: getattr(self, name) for name in FACTS.columns})

    @property
    def atom(self) -> str:
        """The fact as an atom."""
        return str(self.ground_atom)

    def to_json(self) -> dict[str, str]:
        """Id and atom of the fact, author, time and reason."""
        return {
            "fact": self.id,
            "atom": self.atom,
            "author": self.author,
            "withdrawn": self.withdrawn,
            "reason": self.reason,
        }

    @property
    def text(self) -> str:
        """Author, time and reason in words."""
        by = "the user" if self.author == USER else self.author
        return f"withdrawn by {by} on {self.withdrawn[:19].replace('T', ' ')} UTC: {self.reason}"


# A withdrawal that either file undid is undone.
WITHDRAWALS = TableSchema.of(
    "withdrawals",
    Withdrawal,
    ("fact_id", "withdrawn"),
    preferred=("restored",),
    indexes=("predicate",),
    on_conflict=OnConflict.KEEP,
)


USER = "user"
"""Author of the withdrawals of `hapax data retract`."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """An invocation with its settings; a later invocation with the same `fingerprint` continues this run."""

    id: str
    command: str
    settings: Tree
    fingerprint: str
    started: str
    finished: str | None = None
    status: str = "running"
    """running, done, interrupted, budget or failed."""
    summary: Tree = field(default_factory=dict)

    @classmethod
    def now(cls, identity: str, command: str, settings: Mapping[str, Any]) -> RunRecord:
        """A run that starts now. Its id is its fingerprint, so the same invocation again continues it."""
        return cls(identity, command, settings, identity, system.now().isoformat(timespec="milliseconds"))


@dataclass(frozen=True, slots=True)
class LeftOutRow:
    """A faulty row that an import left out, of the last import of its file. `cells`: of the fact, as texts."""

    file: str
    line: int
    predicate: str
    cells: tuple[str, ...]
    reason: str


LEFT_OUT_ROWS = TableSchema.of("left_out_rows", LeftOutRow, ("file", "line"), is_late=True)
RUNS = TableSchema.of("runs", RunRecord, preferred=("finished",), indexes=("fingerprint",))
