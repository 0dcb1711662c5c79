"""Instruction-only generation: a model fills in a whole rule at once, without search, critic or ranking (LINK, 3.1)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any

from hapax.engine.search.oracle import GENERATION_BATCH
from hapax.evaluation.link.likelihood_measures import KNOWLEDGE_MODEL
from hapax.evaluation.link.lint import GivenStatementWriter
from hapax.evaluation.shared.stored_statements import INSTRUCT
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, Seed, Temperature, check_ranges
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Arithmetic, Constant, Expression, Literal, Value, Variable
from hapax.grammar.writing.verbalize import literal_text
from hapax.kb.records import (
    ASSESSMENTS,
    PREDICATES,
    RULES,
    RUNS,
    Assessment,
    Distribution,
    PredicateRecord,
    RuleRecord,
    RunRecord,
    StatementRecord,
    content_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.protocols import (
    EVALUATOR,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
)
from hapax.llm_oracle.questions.prompts import LONG_TAIL_WORDINGS, InstructionParts, instruction_prompt
from hapax.llm_oracle.reading.link_replies import MOST_LINES, parse_values, without_numbering

LONGEST_ROW = 1000
"""Characters of a line that are parsed."""

RAW_SHOWN = 200
"""Characters of a line that are kept with its row."""

_ENDS = " \t.,;|"


class Drop(StrEnum):
    """Reason why a line was dropped."""

    NO_ROW = "no row"
    """It names no variable: chatter, or another format."""
    INCOMPLETE = "incomplete"
    """A variable has no value, or two."""
    UNUSABLE = "unusable value"
    """A value that a search would also drop: too long, a list, or not a number where one is needed."""
    REPEATED = "repeated"
    """The row equals an earlier one."""
    CUT = "cut off"
    """The token limit ended the reply within this line."""


@dataclass(frozen=True, slots=True)
class RowVariable:
    """A variable that has a value in each row. `numeric`: its values are numbers."""

    name: str
    data_type: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class GeneratedRow:
    """A line of a reply: the values in the order of the variables, or the reason why there are none."""

    values: tuple[Value, ...]
    raw: str
    dropped: Drop | None = None
    reason: str = ""


def row_variables(rule: Rule, library: Library) -> tuple[RowVariable, ...]:
    """The searched variables of a rule, sorted by name as in the paper."""
    variables = sorted(rule.searched, key=lambda variable: variable.name)
    return tuple(
        RowVariable(variable.name, variable.data_type, library.is_numeric(variable.data_type)) for variable in variables
    )


def row_text(variables: Sequence[RowVariable], values: Sequence[Value]) -> str:
    """A row as in the requested format, without its number: `A=milk, B=paneer`."""
    return ", ".join(f"{variable.name}={value}" for variable, value in zip(variables, values, strict=True))


def row_key(values: Sequence[Value]) -> tuple[Value, ...]:
    """Key by which rows are equal: the case of letters is ignored."""
    return tuple(value.casefold() if isinstance(value, str) else value for value in values)


def parse_rows(text: str, variables: Sequence[RowVariable], cut: bool = False) -> list[GeneratedRow]:
    """Parse each non-empty line of a reply. `cut`: the token limit ended the reply, so its last line is incomplete.

    Values are cleaned as in a search (`llm_oracle/reading/link_replies.py`).
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A hostile reply may have millions of lines.
    rows = [_row(line, variables) for line in lines[:MOST_LINES]]
    # A line with its newline is complete, and so is the last of those that are parsed if more follow.
    if cut and rows and len(lines) <= MOST_LINES and not text.endswith("\n"):
        rows[-1] = GeneratedRow((), rows[-1].raw, Drop.CUT, "the token limit ended it")
    return rows


def _row(line: str, variables: Sequence[RowVariable]) -> GeneratedRow:
    raw = line[:RAW_SHOWN]
    pieces = _pieces(without_numbering(line[:LONGEST_ROW]), variables)
    if not pieces:
        return GeneratedRow((), raw, Drop.NO_ROW, f"has no {variables[0].name}=" if variables else "has no variable")
    values: list[Value] = []
    for variable in variables:
        # A variable named twice is a fault: nobody can say which value is meant.
        texts = [text for name, text in pieces if name == variable.name]
        if len(texts) != 1 or not texts[0]:
            fault = f"has {variable.name} twice" if len(texts) > 1 else f"has no value for {variable.name}"
            return GeneratedRow((), raw, Drop.INCOMPLETE, fault)
        # A search parses numbered lists, so the value is dressed as one.
        (parsed,) = parse_values(f"1. {texts[0]}.", variable.name, variable.data_type, variable.numeric)
        if parsed.rejected is not None:
            return GeneratedRow((), raw, Drop.UNUSABLE, f"{variable.name} {parsed.rejected}")
        values.append(parsed.value)
    return GeneratedRow(tuple(values), raw)


def _pieces(line: str, variables: Sequence[RowVariable]) -> list[tuple[str, str]]:
    """The variables that a line names, each with the text up to the next one. `A: milk` counts if there is no `A=`."""
    # Longest first: in `AB=milk`, the variable is AB, not A.
    names = "|".join(sorted((re.escape(variable.name) for variable in variables), key=len, reverse=True))
    if not names:
        return []
    for sign in "=:":
        # A name after the start of the line or a separator, perhaps in brackets or quotes: `[A]=`, `**B** :`, `"Z"=`.
        marks = list(
            re.finditer(rf"(?:^|(?<=[\s,;|]))[\[(*\"']{{0,2}}(?P<name>{names})[\])*\"']{{0,2}}\s{{0,3}}{sign}", line)
        )
        if marks:
            # A value ends where the next variable begins, so commas inside it do no harm.
            ends = [*(mark.start() for mark in marks[1:]), len(line)]
            return [(mark["name"], line[mark.end() : end].strip(_ENDS)) for mark, end in zip(marks, ends, strict=True)]
    return []


_OPERATORS: Mapping[str, str] = {
    "<": "is less than",
    "=<": "is at most",
    ">": "is greater than",
    ">=": "is at least",
    "=": "is",
    "\\=": "is not",
}


def rule_sentence(rule: Rule, library: Library) -> str:
    """The rule as a sentence with slots such as `[B]`; a generic variable reads `Person X` (paper, table 2)."""
    generic = [variable for variable in rule.variables if variable.name in rule.generic]
    names = {variable.name: f"{variable.data_type} {variable.name}" for variable in generic}
    bound = {name: Constant(words) for name, words in names.items()}
    clauses = []
    for condition in rule.premise:
        if isinstance(condition, Literal):
            clauses.append(literal_text(condition, library, bound))
        else:
            # As in `2 * [V] is less than [W]`; the operator in words is no longer one that Hapax reads.
            left, right = _slotted(condition.left, names), _slotted(condition.right, names)
            clauses.append(str(replace(condition, left=left, right=right, operator=_OPERATORS[condition.operator])))
    return f"If {' and '.join(clauses)}, then {literal_text(rule.conclusion, library, bound)}."


def _slotted(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression with slots or words in place of variable names."""
    if isinstance(expression, Variable):
        return replace(expression, name=names.get(expression.name, f"[{expression.name}]"))
    if isinstance(expression, Arithmetic):
        return replace(expression, operands=tuple(_slotted(operand, names) for operand in expression.operands))
    return expression


ROW_TOKENS = 40
"""Tokens for a row of a reply: three values of a few words, with names and punctuation."""

# LINK's released search gives a beam up after as many.
IDLE_CALLS = 2
"""Calls in a row without a new row of values after which a model is not asked again."""

# Reasons why a model is not asked again (`StreamReport.end`).
COMPLETE = "complete"
REPEATS = "repeats itself"
NO_ROWS = "gives no rows"
CALLS = "most calls reached"
BUDGET = "budget reached"


@checked
@dataclass(frozen=True, slots=True)
class InstructSettings:
    """Settings of an instruction; the defaults are the paper's.

    `wording`: number in table 11 of the wording that asks for the long tail. `count`, `calls`: most statements of a
    rule and distribution, and most calls for them. `released`: spell the prompt as the released code does.
    """

    wording: int = 1
    count: Annotated[int, Option("Statements per rule and distribution.", least=1)] = 200
    # Replies are numbered lists, read with numbers of up to four digits.
    values_per_call: Annotated[int, Option("Statements per call.", name="values", least=1, most=9_999)] = 50
    # Twice what 200 rows need at 50 a call.
    calls: Annotated[int, Option("Most calls per rule and distribution.", least=1)] = 8
    temperature: Temperature = 0.7
    released: Annotated[bool, Option("Spell the prompt as LINK's released code does, not as its table 2.")] = False
    seed: Seed = 0

    def __post_init__(self) -> None:
        if not 1 <= self.wording <= len(LONG_TAIL_WORDINGS):
            raise HapaxError(
                f"There is no wording {self.wording}. Use 1 to {len(LONG_TAIL_WORDINGS)}, as in LINK's table 11."
            )
        check_ranges(self)

    @property
    def parameters(self) -> GenerationParameters:
        # A reply has at most as many rows as are asked for.
        tokens = ROW_TOKENS * self.values_per_call
        return GenerationParameters(self.temperature, max_tokens=tokens, seed=self.seed)


@dataclass(frozen=True, slots=True)
class StreamReport:
    """Statements of one rule and distribution. `dropped`: lines by reason; `end`: why the model was not asked again."""

    rule: str
    distribution: Distribution
    statements: tuple[StatementRecord, ...]
    dropped: Mapping[Drop, int]
    calls: int
    hits: int
    end: str


@dataclass(frozen=True, slots=True)
class InstructReport:
    """Statements by one wording. `budget`: the message of the budget that was reached."""

    run_id: str
    model: str
    settings: InstructSettings
    streams: tuple[StreamReport, ...]
    budget: str | None = None

    @property
    def statements(self) -> tuple[StatementRecord, ...]:
        return tuple(chain.from_iterable(stream.statements for stream in self.streams))

    def of(self, rule: str) -> dict[Distribution, StreamReport]:
        """The streams of a rule."""
        return {stream.distribution: stream for stream in self.streams if stream.rule == rule}

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stream.rule for stream in self.streams))

    def delta(self, rule: str) -> float | None:
        """The rule's mean log-likelihood of head minus long tail, in nats per token; None if either has none."""
        streams = self.of(rule)
        head, long_tail = (_mean(streams[distribution].statements) for distribution in Distribution)
        return None if head is None or long_tail is None else head - long_tail

    @property
    def mean_delta(self) -> float | None:
        deltas = [delta for delta in map(self.delta, self.rules) if delta is not None]
        return math.fsum(deltas) / len(deltas) if deltas else None


@dataclass(frozen=True, slots=True)
class Instructed:
    """Library, rules and models of an instruction; the same for all wordings."""

    library: Library
    rules: Sequence[Rule]
    knowledge: Generator
    evaluator: LikelihoodModel


def instruct(instructed: Instructed, kb: KnowledgeBase, settings: InstructSettings, journal: Journal) -> InstructReport:
    """Ask for statements of all rules and both distributions, measure them and store them.

    The same call again replays the journal and sends nothing. If a budget is reached, answers so far are kept.
    """
    run = run_record(instructed, settings)
    kb.add(RUNS, [run])
    kb.add(PREDICATES, (PredicateRecord.of(signature) for signature in instructed.library.completed().signatures))
    kb.add(RULES, map(RuleRecord.of, instructed.rules))
    try:
        report = _Instruction(instructed, kb, settings, journal, run.id).report()
    except BaseException as fault:  # Ctrl-C too: no run may stay unfinished in the knowledge base
        kb.finish_run(run.id, "interrupted" if isinstance(fault, KeyboardInterrupt) else "failed")
        raise
    with kb.transaction():
        kb.add_statements(report.statements)
        kb.finish_run(run.id, "budget" if report.budget else "done", _summary(report))
    return report


def run_record(instructed: Instructed, settings: InstructSettings) -> RunRecord:
    """The run's record; equal rules in equal words, settings and models are the same run."""
    # The head's prompts alone: the number of the long-tail wording is among the settings.
    prompts = [_prompt(rule, instructed.library, settings, None) for rule in instructed.rules]
    rules = [str(rule) for rule in instructed.rules]
    names = [instructed.knowledge.identity.title, instructed.evaluator.identity.title]
    identity = content_id("run", "instruct", rules, prompts, asdict(settings), names)
    recorded = {
        KNOWLEDGE_MODEL: names[0],
        "evaluator": names[1],
        **asdict(settings),
        "rules": [rule.name for rule in instructed.rules],
        "distributions": [distribution.value for distribution in Distribution],
    }
    return RunRecord.now(identity, INSTRUCT, recorded)


def _prompt(rule: Rule, library: Library, settings: InstructSettings, wording: int | None) -> str:
    variables = tuple((variable.name, variable.data_type) for variable in row_variables(rule, library))
    parts = InstructionParts(
        variables, rule_sentence(rule, library), settings.values_per_call, wording, settings.released
    )
    return instruction_prompt(parts)


@dataclass
class _Stream:
    """Rows of one rule and distribution while the model is asked for more."""

    writer: GivenStatementWriter
    prompt: str
    variables: tuple[RowVariable, ...]
    settings: InstructSettings
    rows: dict[tuple[Value, ...], tuple[Value, ...]] = field(default_factory=dict)
    dropped: Counter[Drop] = field(default_factory=Counter)
    calls: int = 0
    hits: int = 0
    idle: int = 0
    end: str | None = None

    def request(self) -> GenerationRequest:
        """The next request; it excludes the rows so far, in the way that the backend supports."""
        excluded = tuple(row_text(self.variables, values) for values in self.rows.values())
        # After a reply without a new row the request is the same: the index makes the journal ask for another sample.
        return GenerationRequest(self.prompt, excluded, sample_index=self.idle)

    def take(self, reply: Generation, sent: bool) -> None:
        """Parse a reply and decide whether to ask again. `sent` False: the journal had the reply."""
        self.calls += sent
        self.hits += not sent
        rows = parse_rows(reply.text, self.variables, cut=reply.finish_reason == "length")
        new = 0
        for row in rows:
            # By the key, so that rows that differ in case alone are repeats.
            key = row_key(row.values)
            if row.dropped is not None:
                self.dropped[row.dropped] += 1
            # A repeat within one reply counts like a repeat of an earlier one.
            elif key in self.rows:
                self.dropped[Drop.REPEATED] += 1
            # Rows beyond the count are not kept, but they are not dropped for a fault either.
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
        names = [variable.name for variable in self.variables]
        return [self.writer.statement(dict(zip(names, values, strict=True))) for values in self.rows.values()]


class _Instruction:
    """A run of an instruction. In each round, every stream that has not ended makes one call."""

    def __init__(
        self, instructed: Instructed, kb: KnowledgeBase, settings: InstructSettings, journal: Journal, run_id: str
    ) -> None:
        self._instructed, self._kb, self._settings, self._journal = instructed, kb, settings, journal
        self._run_id = run_id
        self._budget: BudgetReached | None = None

    def report(self) -> InstructReport:
        streams = []
        for rule in self._instructed.rules:
            streams.append(self._stream(rule, Distribution.HEAD, None))
            streams.append(self._stream(rule, Distribution.LONG_TAIL, self._settings.wording))
        generator = JournaledGenerator(self._instructed.knowledge, self._journal, GENERATION_BATCH)
        while active := [stream for stream in streams if stream.end is None]:
            self._round(active, generator)
        reports = self._measured(streams)
        name = generator.identity.title
        return InstructReport(
            self._run_id, name, self._settings, tuple(reports), str(self._budget) if self._budget else None
        )

    def _stream(self, rule: Rule, distribution: Distribution, wording: int | None) -> _Stream:
        library = self._instructed.library
        prompt = _prompt(rule, library, self._settings, wording)
        writer = GivenStatementWriter(library, rule, distribution, self._run_id)
        return _Stream(writer, prompt, row_variables(rule, library), self._settings)

    def _round(self, streams: Sequence[_Stream], generator: JournaledGenerator) -> None:
        requests = [stream.request() for stream in streams]
        parameters = self._settings.parameters
        call_ids = generator.call_ids(requests, parameters)
        # Before the requests: afterwards the journal has all of them.
        known = self._journal.store.calls(call_ids)
        try:
            replies: Sequence[Generation | None] = generator.generate(requests, parameters)
        except BudgetReached as reached:
            self._budget = self._budget or reached
            replies = reached.answers
        for stream, call_id, reply in zip(streams, call_ids, replies, strict=True):
            if reply is None:  # not answered within the budget
                stream.end = BUDGET
            else:
                stream.take(reply, call_id not in known)

    def _measured(self, streams: Iterable[_Stream]) -> list[StreamReport]:
        """Reports with the evaluator's mean token log-likelihood of each statement, as far as the budget goes."""
        written = [(stream, stream.statements()) for stream in streams]
        every_statement = chain.from_iterable(statements for _, statements in written)
        texts = list(dict.fromkeys(statement.text for statement in every_statement))
        evaluator = JournaledLikelihood(self._instructed.evaluator, self._journal, role=EVALUATOR)
        try:
            scores: Sequence[LogLikelihood | None] = evaluator.log_likelihoods(texts)
        except BudgetReached as reached:
            self._budget = self._budget or reached
            scores = reached.answers
        scored = {text: score for text, score in zip(texts, scores, strict=True) if score is not None}
        name = evaluator.identity.title
        self._kb.add(
            ASSESSMENTS,
            (
                Assessment(text, "log_likelihood", name, score.total, score.token_count)
                for text, score in scored.items()
            ),
        )
        # A text without a token has no mean.
        means = {text: score.per_token for text, score in scored.items() if score.token_count}
        reports = []
        for stream, statements in written:
            measured = [replace(statement, log_likelihood=means.get(statement.text)) for statement in statements]
            rule, distribution = stream.writer.rule.name, stream.writer.distribution
            counts = (dict(stream.dropped), stream.calls, stream.hits)
            reports.append(StreamReport(rule, distribution, tuple(measured), *counts, stream.end or COMPLETE))
        return reports


def _mean(statements: Sequence[StatementRecord]) -> float | None:
    scores = [statement.log_likelihood for statement in statements if statement.log_likelihood is not None]
    return math.fsum(scores) / len(scores) if scores else None


def _summary(report: InstructReport) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    statements = {distribution.value: 0 for distribution in Distribution}
    for stream in report.streams:
        dropped.update({drop.value: count for drop, count in stream.dropped.items()})
        statements[stream.distribution.value] += len(stream.statements)
    return {
        "statements": statements,
        "dropped": dict(dropped),
        "mean_delta": report.mean_delta,
        "cut": sorted({stream.rule for stream in report.streams if stream.end == BUDGET}),
    }
