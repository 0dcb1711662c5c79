"""Instruction-only generation: a model fills in a whole rule at once, without search, critic or ranking (LINK, 3.1).

The default instruction gives the head, a wording of table 11 behind it the long tail. Statements are stored under a run
of their own. Nothing has checked their values, so none of them becomes a fact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from engine.oracle import GENERATION_BATCH, model_name
from evaluation.baselines.rows import Drop, RowVariable, parse_rows, row_key, row_text, row_variables
from evaluation.baselines.wording import rule_sentence
from evaluation.distributions import KNOWLEDGE_MODEL
from evaluation.experiments import INSTRUCT
from evaluation.stated import Stated
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from grammar.terms import Value
from kb.records import Assessment, Distribution, PredicateRecord, RuleRecord, RunRecord, StatementRecord, content_id
from kb.store import KnowledgeBase
from llm_oracle.calls import EVALUATOR, BudgetReached, Journal, JournaledGenerator, JournaledLikelihood
from llm_oracle.prompts import LONG_TAIL_WORDINGS, InstructionParts, instruction_prompt
from llm_oracle.protocols import (
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
)

ROW_TOKENS = 40
"""Room for one row of a reply: three values of a few words and their marks."""

IDLE_CALLS = 2
"""Calls without a new row after which a model is not asked again."""

COMPLETE = "complete"
REPEATS = "repeats itself"
NO_ROWS = "gives no rows"
CALLS = "most calls reached"
BUDGET = "budget reached"


@dataclass(frozen=True, slots=True)
class InstructSettings:
    """How a model is instructed. The defaults are the paper's.

    `wording`: which of table 11 asks for the long tail, from 1. `count`: statements of each rule and distribution.
    `calls`: most calls for them. `released`: the prompt as the released code spells it. `bias`: also a logit bias of
    -100 on the tokens of values whose rows came again, from models that can.
    """

    wording: int = 1
    count: int = 200
    values_per_call: int = 50
    calls: int = 8
    temperature: float = 0.7
    released: bool = False
    bias: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.wording <= len(LONG_TAIL_WORDINGS):
            raise HapaxError(f"There is no wording {self.wording}. LINK's table 11 has 1 to {len(LONG_TAIL_WORDINGS)}.")
        if min(self.count, self.values_per_call, self.calls) < 1:
            raise HapaxError("Count, values and calls should each be at least 1.")

    @property
    def parameters(self) -> GenerationParameters:
        tokens = ROW_TOKENS * self.values_per_call
        return GenerationParameters(self.temperature, max_tokens=tokens, seed=self.seed)


@dataclass(frozen=True, slots=True)
class StreamReport:
    """One rule and distribution. `dropped` counts lines by reason; `end` says why no more was asked."""

    rule: str
    distribution: Distribution
    statements: tuple[StatementRecord, ...]
    dropped: Mapping[Drop, int]
    calls: int
    hits: int
    end: str


@dataclass(frozen=True, slots=True)
class InstructReport:
    """What one wording brought. `budget`: the message of the budget that was reached."""

    run_id: str
    model: str
    settings: InstructSettings
    streams: tuple[StreamReport, ...]
    budget: str | None = None

    @property
    def statements(self) -> tuple[StatementRecord, ...]:
        return tuple(one for stream in self.streams for one in stream.statements)

    def of(self, rule: str) -> dict[Distribution, StreamReport]:
        """The rule's streams."""
        return {one.distribution: one for one in self.streams if one.rule == rule}

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.rule for one in self.streams))

    def delta(self, rule: str) -> float | None:
        """How much likelier the rule's head is than its long tail, in nats a token; None where one is missing."""
        streams = self.of(rule)
        head, long_tail = (_mean(streams[each].statements) for each in Distribution)
        return None if head is None or long_tail is None else head - long_tail

    @property
    def mean_delta(self) -> float | None:
        deltas = [delta for rule in self.rules if (delta := self.delta(rule)) is not None]
        return math.fsum(deltas) / len(deltas) if deltas else None


@dataclass(frozen=True, slots=True)
class Instructed:
    """What is instructed about what, and who measures. The same for all wordings."""

    library: Library
    rules: Sequence[Rule]
    knowledge: Generator
    evaluator: LikelihoodModel


def instruct(instructed: Instructed, kb: KnowledgeBase, settings: InstructSettings, journal: Journal) -> InstructReport:
    """Ask for statements of all rules, both distributions side by side, measure them and store them.

    The same call again replays the journal and asks nothing twice. When a budget is reached, what was answered is kept.
    """
    run = run_record(instructed, settings)
    kb.start_run(run)
    kb.add_predicates(PredicateRecord.of(signature) for signature in instructed.library.completed().signatures)
    kb.add_rules(RuleRecord(one.name, str(one), one.domain, one.principle, one.polarity) for one in instructed.rules)
    try:
        report = _Instruction(instructed, kb, settings, journal, run.id).report()
    except BaseException as fault:
        kb.finish_run(run.id, "interrupted" if isinstance(fault, KeyboardInterrupt) else "failed")
        raise
    with kb.transaction():
        kb.add_statements(report.statements)
        kb.finish_run(run.id, "budget" if report.budget else "done", _summary(report))
    return report


def run_record(instructed: Instructed, settings: InstructSettings) -> RunRecord:
    """The run's identity: the same rules in the same words, settings and models are the same run."""
    prompts = [_prompt(rule, instructed.library, settings, None) for rule in instructed.rules]
    rules = [str(rule) for rule in instructed.rules]
    names = [model_name(instructed.knowledge), model_name(instructed.evaluator)]
    identity = content_id("run", "instruct", rules, prompts, asdict(settings), names)
    told = {
        KNOWLEDGE_MODEL: names[0],
        "evaluator": names[1],
        **asdict(settings),
        "rules": [rule.name for rule in instructed.rules],
        "distributions": [one.value for one in Distribution],
    }
    return RunRecord(identity, INSTRUCT, told, identity, datetime.now(UTC).isoformat(timespec="milliseconds"))


def _prompt(rule: Rule, library: Library, settings: InstructSettings, wording: int | None) -> str:
    variables = tuple((one.name, one.data_type) for one in row_variables(rule, library))
    parts = InstructionParts(
        variables, rule_sentence(rule, library), settings.values_per_call, wording, settings.released
    )
    return instruction_prompt(parts)


@dataclass
class _Stream:
    """One rule and distribution while it is asked about."""

    stated: Stated
    prompt: str
    variables: tuple[RowVariable, ...]
    settings: InstructSettings
    rows: dict[tuple[Value, ...], tuple[Value, ...]] = field(default_factory=dict)
    repeated: dict[str, None] = field(default_factory=dict)
    """Values of rows that came again."""
    dropped: Counter[Drop] = field(default_factory=Counter)
    calls: int = 0
    hits: int = 0
    idle: int = 0
    end: str | None = None

    def request(self) -> GenerationRequest:
        """The next call: what was given is excluded, as the backend can."""
        given = tuple(row_text(self.variables, values) for values in self.rows.values())
        banned = tuple(self.repeated) if self.settings.bias else ()
        return GenerationRequest(self.prompt, given, banned, sample_index=self.idle)

    def take(self, reply: Generation, sent: bool) -> None:
        """Read a reply, and decide whether to ask again."""
        self.calls += sent
        self.hits += not sent
        rows = parse_rows(reply.text, self.variables, cut=reply.finish_reason == "length")
        new = 0
        for row in rows:
            key = row_key(row.values)
            if row.dropped is not None:
                self.dropped[row.dropped] += 1
            elif key in self.rows:
                self.dropped[Drop.REPEATED] += 1
                self.repeated.update(dict.fromkeys(str(value) for value in row.values))
            elif len(self.rows) < self.settings.count:
                self.rows[key] = row.values
                new += 1
        self.idle = 0 if new else self.idle + 1
        self.end = self._end(any(row.dropped is None for row in rows))

    def _end(self, has_rows: bool) -> str | None:
        if len(self.rows) >= self.settings.count:
            return COMPLETE
        if self.idle >= IDLE_CALLS:
            return REPEATS if has_rows else NO_ROWS
        return CALLS if self.calls + self.hits >= self.settings.calls else None

    def statements(self) -> list[StatementRecord]:
        names = [one.name for one in self.variables]
        return [self.stated.statement(dict(zip(names, values, strict=True))) for values in self.rows.values()]


class _Instruction:
    """One run: all streams go through it, a call of each at a time."""

    def __init__(
        self, instructed: Instructed, kb: KnowledgeBase, settings: InstructSettings, journal: Journal, run_id: str
    ) -> None:
        self._instructed, self._kb, self._settings, self._journal = instructed, kb, settings, journal
        self._run_id = run_id
        self._budget: BudgetReached | None = None

    def report(self) -> InstructReport:
        streams = [
            self._stream(rule, distribution, wording)
            for rule in self._instructed.rules
            for distribution, wording in (
                (Distribution.HEAD, None),
                (Distribution.LONG_TAIL, self._settings.wording),
            )
        ]
        generator = JournaledGenerator(self._instructed.knowledge, self._journal, GENERATION_BATCH)
        while going_on := [one for one in streams if one.end is None]:
            self._round(going_on, generator)
        reports = self._measured(streams)
        name = model_name(generator)
        return InstructReport(
            self._run_id, name, self._settings, tuple(reports), str(self._budget) if self._budget else None
        )

    def _stream(self, rule: Rule, distribution: Distribution, wording: int | None) -> _Stream:
        library = self._instructed.library
        prompt = _prompt(rule, library, self._settings, wording)
        stated = Stated(library, rule, distribution, self._run_id)
        return _Stream(stated, prompt, row_variables(rule, library), self._settings)

    def _round(self, streams: Sequence[_Stream], generator: JournaledGenerator) -> None:
        requests = [one.request() for one in streams]
        parameters = self._settings.parameters
        call_ids = generator.call_ids(requests, parameters)
        known = self._journal.store.calls(call_ids)
        try:
            replies: Sequence[Generation | None] = generator.generate(requests, parameters)
        except BudgetReached as reached:
            self._budget = self._budget or reached
            replies = reached.answers
        for one, call_id, reply in zip(streams, call_ids, replies, strict=True):
            if reply is None:
                one.end = BUDGET
            else:
                one.take(reply, call_id not in known)

    def _measured(self, streams: Iterable[_Stream]) -> list[StreamReport]:
        """The streams' statements with the evaluator's mean token log-likelihoods, as far as the budget goes."""
        statements = [(one, one.statements()) for one in streams]
        texts = list(dict.fromkeys(each.text for _, several in statements for each in several))
        evaluator = JournaledLikelihood(self._instructed.evaluator, self._journal, role=EVALUATOR)
        try:
            scores: Sequence[LogLikelihood | None] = evaluator.log_likelihoods(texts)
        except BudgetReached as reached:
            self._budget = self._budget or reached
            scores = reached.answers
        found = {text: score for text, score in zip(texts, scores, strict=True) if score is not None}
        name = model_name(evaluator)
        self._kb.add_assessments(
            Assessment(text, "log_likelihood", name, score.total, score.token_count) for text, score in found.items()
        )
        means = {text: score.per_token for text, score in found.items() if score.token_count}
        return [
            StreamReport(
                one.stated.rule.name,
                one.stated.distribution,
                tuple(replace(each, log_likelihood=means.get(each.text)) for each in several),
                dict(one.dropped),
                one.calls,
                one.hits,
                one.end or COMPLETE,
            )
            for one, several in statements
        ]


def _mean(statements: Sequence[StatementRecord]) -> float | None:
    scores = [one.log_likelihood for one in statements if one.log_likelihood is not None]
    return math.fsum(scores) / len(scores) if scores else None


def _summary(report: InstructReport) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    for one in report.streams:
        dropped.update({drop.value: count for drop, count in one.dropped.items()})
    return {
        "statements": {
            each.value: sum(len(one.statements) for one in report.streams if one.distribution is each)
            for each in Distribution
        },
        "dropped": dict(dropped),
        "mean_delta": report.mean_delta,
        "cut": sorted({one.rule for one in report.streams if one.end == BUDGET}),
    }
