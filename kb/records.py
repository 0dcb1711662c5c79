"""What the knowledge base holds, as frozen records with content-derived identities.

An identity is a hash of the content alone, so that two knowledge bases filled on two machines merge without
renumbering.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from grammar.rules import PredicateSignature, Templates
from grammar.terms import Value
from grammar.verbalize import StatementText
from kb.values import writer


def content_id(kind: str, *parts: object) -> str:
    """A stable 32-hex-digit identity of a record's content."""
    canonical = _CANONICAL([kind, *parts])
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _encoded(value: object) -> object:
    if isinstance(value, Decimal):
        return {"decimal": _canonical_decimal(value)}
    raise TypeError(f"no canonical form for {type(value).__name__}")


_CANONICAL = writer(json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_encoded))


def _canonical_decimal(value: Decimal) -> str:
    """Equal decimals have one form: 1.10 and 1.1 are one constant. No rounding, unlike `Decimal.normalize`."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return str(value)
    written = "".join(map(str, digits)).lstrip("0")
    significant = written.rstrip("0")
    if not significant:
        return "0"
    return f"{'-' if sign else ''}{significant}E{exponent + len(written) - len(significant)}"


class Distribution(StrEnum):
    """Named as the papers name them."""

    HEAD = "head"
    LONG_TAIL = "long_tail"


class Source(StrEnum):
    """Where a fact came from."""

    GIVEN = "given"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Pattern:
    """An atom with None at the free position: `is_ingredient_in(None, "paella")`."""

    predicate: str
    arguments: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Which values of `data_type` make every pattern true? Asked once for all beams, distributions, rules and runs.

    Hapax's default asks with one pattern; `--compat` joins several, as LINK does. `functional`: one right value.
    """

    patterns: tuple[Pattern, ...]
    data_type: str
    functional: bool = False

    @property
    def id(self) -> str:
        return content_id(
            "question", [[p.predicate, list(p.arguments)] for p in self.patterns], self.data_type, self.functional
        )


@dataclass(frozen=True, slots=True)
class QuestionState:
    """The journal line of a question."""

    calls: int = 0
    calls_without_acceptance: int = 0
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One answered request to a model: the whole request, its sample index and the whole response."""

    request_id: str
    role: str
    model: str
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """In the currency of the price table; None: the price is unknown."""
    created: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that a model proposed for a question, kept or not. `rejected_by_parser`: why it never became a value."""

    question_id: str
    value: Value
    raw: str
    call_id: str
    position: int
    rejected_by_parser: str | None = None

    @property
    def id(self) -> str:
        return content_id("candidate", self.question_id, self.value, self.raw if self.rejected_by_parser else "")


@dataclass(frozen=True, slots=True)
class Assessment:
    """One model's score of one text. `measure` is `probability`, `type_probability` or `log_likelihood`.

    For a log-likelihood `score` is the total in nats and `token_count` the number of tokens behind it.
    """

    text: str
    measure: str
    model: str
    score: float
    token_count: int = 0
    call_id: str | None = None

    @property
    def id(self) -> str:
        return content_id("assessment", self.text, self.measure, self.model)


@dataclass(frozen=True, slots=True)
class Decision:
    """One gate's verdict on one subject, with the score, the threshold and the reason. Never changed, only added to.

    `subject` is a candidate id for the critic gate and a canonical substitution for the likelihood gate.
    """

    run_id: str
    gate: str
    subject: str
    accepted: bool
    score: float | None
    threshold: float | None
    reason: str
    rule: str | None = None
    distribution: Distribution | None = None
    step: int | None = None
    assessment_ids: tuple[str, ...] = ()
    """The assessments behind the score, for `why`."""

    @property
    def id(self) -> str:
        return content_id(
            "decision", self.run_id, self.gate, self.subject, self.rule, self.distribution, self.step, self.accepted
        )


@dataclass(frozen=True, slots=True)
class FactRecord:
    """A ground atom held true. `types` are the data types the arguments were accepted under."""

    predicate: str
    arguments: tuple[Value, ...]
    types: tuple[str, ...]
    source: Source
    probability: float | None = None
    candidate_id: str | None = None
    run_id: str | None = None

    @property
    def id(self) -> str:
        return content_id("fact", self.predicate, list(self.arguments))


@dataclass(frozen=True, slots=True)
class TypeFact:
    """A constant was accepted as a value of a data type. `probability` is the critic's; None: the user said so."""

    constant: Value
    data_type: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule as its library last wrote it, so that statements can be read without the rule files."""

    name: str
    text: str
    domain: str | None = None
    principle: str | None = None
    polarity: str | None = None


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


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """One annotator's answer to one question about a statement; a second answer of the same voter replaces it.

    A question of the predicate audit is about a fact: then `statement_id` is the fact's.
    """

    statement_id: str
    question: str
    voter: str
    answer: str
    comment: str = ""

    @property
    def id(self) -> str:
        return content_id("vote", self.statement_id, self.question, self.voter)


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """A premise and a conclusion in words, with the substitution and the proof (a JSON tree, see `engine/proof.py`)."""

    rule: str
    distribution: Distribution
    run_id: str
    substitution: tuple[tuple[str, Value], ...]
    premise: str
    conclusion: str
    ranking_text: str
    proof: Mapping[str, Any]
    log_likelihood: float | None = None
    """Mean token log-likelihood of the statement under the evaluator, in nats."""

    @property
    def id(self) -> str:
        return content_id("statement", self.rule, [[name, value] for name, value in self.substitution])

    @property
    def text(self) -> str:
        return StatementText(self.premise, self.conclusion).sentence


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """Where a statement is kept: once for each run and distribution that derived it, under its own key."""

    key: str
    id: str
    rule: str
    distribution: Distribution
    run_id: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One invocation with its settings; `fingerprint` is what makes a later invocation the same run."""

    id: str
    command: str
    settings: Mapping[str, Any]
    fingerprint: str
    started: str
    finished: str | None = None
    status: str = "running"
    """running, done, interrupted, budget or failed."""
    summary: Mapping[str, Any] = field(default_factory=dict)
