"""LINK's baseline by instruction only (3.1): a model fills in a whole rule, without search, critic or ranking."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import chain, product
from statistics import fmean
from typing import Annotated, Any

from hapax.engine.kept_rules import chosen_rules, sound_rules
from hapax.engine.search.oracle import GENERATION_BATCH
from hapax.evaluation.link.judging import COLUMNS, JudgedAccuracy, judge_of, printed_table
from hapax.evaluation.link.likelihood import KNOWLEDGE_MODEL
from hapax.evaluation.link.lint_import import GivenStatementWriter
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, grouped
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES, INSTRUCT
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, Seed, Temperature, check_ranges, from_options
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Arithmetic, Constant, Expression, Literal, Value, Variable
from hapax.grammar.writing.verbalize import literal_text
from hapax.grammar.writing.words import counted, two_decimals
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
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import BudgetReached, CallStatistics
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.protocols import (
    CRITIC,
    EVALUATOR,
    KNOWLEDGE,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
)
from hapax.llm_oracle.questions.prompts import (
    LONG_TAIL_WORDINGS,
    InstructionParts,
    instruction_prompt,
    long_tail_wording,
)
from hapax.llm_oracle.reading.link_replies import MOST_LINES, parse_values, without_numbering
from hapax.llm_oracle.registry import open_shared, with_journal

LONGEST_ROW = 1000
"""Characters of a line that are parsed."""

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


GeneratedRow = tuple[Value, ...] | Drop
"""A line of a reply: the values in the order of the variables, or the reason why there are none."""


def row_variables(rule: Rule, library: Library) -> tuple[RowVariable, ...]:
    """The searched variables of a rule, sorted by name as in the paper."""
    variables = []
    for variable in sorted(rule.searched, key=lambda variable: variable.name):
        variables.append(RowVariable(variable.name, variable.data_type, library.is_numeric(variable.data_type)))
    return tuple(variables)


def parse_rows(text: str, variables: Sequence[RowVariable], cut: bool = False) -> list[GeneratedRow]:
    """Parse each non-empty line of a reply. `cut`: the token limit ended the reply, so its last line is incomplete.

    Values are cleaned as in a search (`llm_oracle/reading/link_replies.py`).
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A hostile reply may have millions of lines.
    rows = [_row(line, variables) for line in lines[:MOST_LINES]]
    # A line with its newline is complete, and so is the last of those that are parsed if more follow.
    if cut and rows and len(lines) <= MOST_LINES and not text.endswith("\n"):
        rows[-1] = Drop.CUT
    return rows


def _row(line: str, variables: Sequence[RowVariable]) -> GeneratedRow:
    pieces = _pieces(without_numbering(line[:LONGEST_ROW]), variables)
    if not pieces:
        return Drop.NO_ROW
    values: list[Value] = []
    for variable in variables:
        # A variable named twice is a fault: nobody can say which value is meant.
        texts = [text for name, text in pieces if name == variable.name]
        if len(texts) != 1 or not texts[0]:
            return Drop.INCOMPLETE
        # A search parses numbered lists, so the value is dressed as one.
        (parsed,) = parse_values(f"1. {texts[0]}.", variable.name, variable.data_type, variable.numeric)
        if parsed.rejected is not None:
            return Drop.UNUSABLE
        values.append(parsed.value)
    return tuple(values)


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


@dataclass
class Stream:
    """Statements of one rule and distribution, asked for call by call.

    `rows`: by their values, in which the case of letters is ignored; `dropped`: lines by reason; `calls`, `hits`:
    replies of the model and of the journal; `idle`: calls since the last new row; `end`: why the model was not asked
    again; `statements`: written and measured at the end.
    """

    writer: GivenStatementWriter
    prompt: str
    variables: tuple[RowVariable, ...]
    settings: InstructSettings
    rows: dict[tuple[Value, ...], dict[str, Value]] = field(default_factory=dict)
    dropped: Counter[Drop] = field(default_factory=Counter)
    calls: int = 0
    hits: int = 0
    idle: int = 0
    end: str = ""
    statements: list[StatementRecord] = field(default_factory=list)

    def request(self) -> GenerationRequest:
        """The next request; it excludes the rows so far, in the way that the backend supports."""
        excluded = []
        for row in self.rows.values():
            # As in the requested format, without a number: `A=milk, B=paneer`.
            excluded.append(", ".join(f"{name}={value}" for name, value in row.items()))
        # After a reply without a new row the request is the same: the index makes the journal ask for another sample.
        return GenerationRequest(self.prompt, tuple(excluded), sample_index=self.idle)

    def take(self, reply: Generation, sent: bool) -> None:
        """Parse a reply and decide whether to ask again. `sent` False: the journal had the reply."""
        self.calls += sent
        self.hits += not sent
        rows = parse_rows(reply.text, self.variables, cut=reply.finish_reason == "length")
        known, names = len(self.rows), [variable.name for variable in self.variables]
        for row in rows:
            if isinstance(row, Drop):
                self.dropped[row] += 1
                continue
            key = tuple(value.casefold() if isinstance(value, str) else value for value in row)
            # Rows that differ in case alone are repeats, within one reply, too.
            if key in self.rows:
                self.dropped[Drop.REPEATED] += 1
            # Rows beyond the count are not kept, but they are not dropped for a fault either.
            elif len(self.rows) < self.settings.count:
                self.rows[key] = dict(zip(names, row, strict=True))
        self.idle = 0 if len(self.rows) > known else self.idle + 1
        if len(self.rows) >= self.settings.count:
            self.end = COMPLETE
        elif self.idle >= IDLE_CALLS:
            self.end = NO_ROWS if all(isinstance(row, Drop) for row in rows) else REPEATS
        elif self.calls + self.hits >= self.settings.calls:
            self.end = CALLS


@dataclass(frozen=True, slots=True)
class InstructReport:
    """Statements by one wording. `streams`: head and long tail of each rule; `budget`: the budget that was reached."""

    run_id: str
    model: str
    settings: InstructSettings
    streams: tuple[Stream, ...]
    budget: str | None = None

    @property
    def statements(self) -> list[StatementRecord]:
        return list(chain.from_iterable(stream.statements for stream in self.streams))

    @property
    def by_rule(self) -> dict[str, list[Stream]]:
        """Head and long tail by rule."""
        return grouped(self.streams, lambda stream: stream.writer.rule.name)

    @property
    def mean_delta(self) -> float | None:
        deltas = [delta for delta in map(delta_of, self.by_rule.values()) if delta is not None]
        return fmean(deltas) if deltas else None


def delta_of(streams: Iterable[Stream]) -> float | None:
    """Mean log-likelihood of head minus long tail, in nats per token; None if either has none."""
    head, long_tail = (
        [record.log_likelihood for record in stream.statements if record.log_likelihood is not None]
        for stream in streams
    )
    return fmean(head) - fmean(long_tail) if head and long_tail else None


def dropped_lines(streams: Iterable[Stream]) -> dict[str, int]:
    """Number of dropped lines by reason, zeros as well, because each reason is a column."""
    counts: Counter[Drop] = Counter()
    for stream in streams:
        counts.update(stream.dropped)
    return {drop.value: counts[drop] for drop in Drop}


@dataclass(frozen=True, slots=True)
class Instructed:
    """Library, rules and models of an instruction; the same for all wordings."""

    library: Library
    rules: Sequence[Rule]
    knowledge: Generator
    evaluator: LikelihoodModel

    def prompt(self, rule: Rule, settings: InstructSettings, wording: int | None) -> str:
        """The prompt for statements of a rule; `wording` None: for the head."""
        variables = tuple((variable.name, variable.data_type) for variable in row_variables(rule, self.library))
        parts = (variables, rule_sentence(rule, self.library), settings.values_per_call, wording, settings.released)
        return instruction_prompt(InstructionParts(*parts))


def instruct(instructed: Instructed, kb: KnowledgeBase, settings: InstructSettings, journal: Journal) -> InstructReport:
    """Ask for statements of all rules and both distributions, measure them and store them.

    The same call again replays the journal and sends nothing. If a budget is reached, answers so far are kept.
    """
    library, rules = instructed.library, instructed.rules
    # The head's prompts alone: the number of the long-tail wording is among the settings.
    prompts = [instructed.prompt(rule, settings, None) for rule in rules]
    names = [instructed.knowledge.identity.title, instructed.evaluator.identity.title]
    # Equal rules in equal words, settings and models are the same run.
    identity = content_id("run", "instruct", list(map(str, rules)), prompts, asdict(settings), names)
    ends = {"rules": [rule.name for rule in rules], "distributions": [end.value for end in Distribution]}
    recorded = {KNOWLEDGE_MODEL: names[0], "evaluator": names[1], **asdict(settings), **ends}
    kb.add(RUNS, [RunRecord.now(identity, INSTRUCT, recorded)])
    kb.add(PREDICATES, (PredicateRecord.of(signature) for signature in library.completed().signatures))
    kb.add(RULES, map(RuleRecord.of, rules))
    streams = []
    for rule, distribution in product(rules, Distribution):
        wording = settings.wording if distribution is Distribution.LONG_TAIL else None
        writer = GivenStatementWriter(library, rule, distribution, identity)
        prompt, variables = instructed.prompt(rule, settings, wording), row_variables(rule, library)
        streams.append(Stream(writer, prompt, variables, settings))
    try:
        reached = _ask(streams, JournaledGenerator(instructed.knowledge, journal, GENERATION_BATCH), settings, journal)
        measuring = _measure(streams, JournaledLikelihood(instructed.evaluator, journal, role=EVALUATOR), kb)
    except BaseException as fault:  # Ctrl-C too: no run may stay unfinished in the knowledge base
        kb.finish_run(identity, "interrupted" if isinstance(fault, KeyboardInterrupt) else "failed")
        raise
    budget = reached or measuring
    report = InstructReport(identity, names[0], settings, tuple(streams), str(budget) if budget else None)
    sizes = {end: sum(record.distribution is end for record in report.statements) for end in Distribution}
    summary = {
        "statements": sizes,
        "dropped": {reason: count for reason, count in dropped_lines(streams).items() if count},
        "mean_delta": report.mean_delta,
        "cut": sorted({stream.writer.rule.name for stream in streams if stream.end == BUDGET}),
    }
    with kb.transaction():
        kb.add_statements(report.statements)
        kb.finish_run(identity, "budget" if budget else "done", summary)
    return report


def _ask(
    streams: Sequence[Stream], generator: JournaledGenerator, settings: InstructSettings, journal: Journal
) -> BudgetReached | None:
    """Ask in rounds, in which every stream that has not ended makes one call; the budget that was reached."""
    budget: BudgetReached | None = None
    # A reply has at most as many rows as are asked for.
    tokens = ROW_TOKENS * settings.values_per_call
    parameters = GenerationParameters(settings.temperature, max_tokens=tokens, seed=settings.seed)
    while active := [stream for stream in streams if not stream.end]:
        requests = [stream.request() for stream in active]
        call_ids = generator.call_ids(requests, parameters)
        # Before the requests: afterwards the journal has all of them.
        known = journal.store.calls(call_ids)
        try:
            replies: Sequence[Generation | None] = generator.generate(requests, parameters)
        except BudgetReached as reached:
            budget = budget or reached
            replies = reached.answers
        for stream, call_id, reply in zip(active, call_ids, replies, strict=True):
            if reply is None:  # not answered within the budget
                stream.end = BUDGET
            else:
                stream.take(reply, call_id not in known)
    return budget


def _measure(streams: Sequence[Stream], evaluator: JournaledLikelihood, kb: KnowledgeBase) -> BudgetReached | None:
    """Write the statements with the evaluator's mean token log-likelihoods, as far as the budget goes; that budget."""
    budget = None
    for stream in streams:
        stream.statements = list(map(stream.writer.statement, stream.rows.values()))
    texts = list(dict.fromkeys(record.text for stream in streams for record in stream.statements))
    try:
        answers: Sequence[LogLikelihood | None] = evaluator.log_likelihoods(texts)
    except BudgetReached as reached:
        answers, budget = reached.answers, reached
    name, means, assessments = evaluator.identity.title, {}, []
    for text, score in zip(texts, answers, strict=True):
        if score is not None:
            assessments.append(Assessment(text, "log_likelihood", name, score.total, score.token_count))
            # A text without a token has no mean.
            means[text] = score.per_token if score.token_count else None
    kb.add(ASSESSMENTS, assessments)
    for stream in streams:
        stream.statements = [replace(record, log_likelihood=means.get(record.text)) for record in stream.statements]
    return budget


# --- the experiment ---------------------------------------------------------------------------------------------------

_NAMES = ("A", "B", "Z")
"""Variables of the paper's example."""

MOST_DROPPED = 0.5
"""Share of dropped lines above which a note says that the model does not follow the format."""


@checked
@dataclass(frozen=True, slots=True)
class InstructOptions:
    """Options of the command. `wordings`: numbers in LINK's table 11, ascending."""

    model: Annotated[str, Option("Model that is instructed.", short="-m")] = "embedded"
    wordings: tuple[int, ...] = (1,)
    settings: InstructSettings = field(default_factory=InstructSettings)
    evaluator: Annotated[str, Option("Model that measures delta.")] = "frequency"
    critic: Annotated[
        str | None,
        Option("Model that judges the statements; default: votes if there are any, else known facts."),
    ] = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> InstructOptions:
        """From the options of the command line, where wordings are named `paper`, `all`, or `1` to `10`."""
        numbers: set[int] = set()
        for name in options["wordings"]:
            # Section 3.1 uses the first wording of table 11.
            every = range(1, len(LONG_TAIL_WORDINGS) + 1)
            numbers.update(every if name == "all" else [1 if name == "paper" else int(name)])
        settings = from_options(InstructSettings, options)
        return from_options(cls, options, wordings=tuple(sorted(numbers)), settings=settings)


@dataclass(frozen=True, slots=True)
class InstructResult:
    """Statements that a model wrote, measured and judged. `accuracies`: by distribution, for each report."""

    reports: tuple[InstructReport, ...]
    accuracies: tuple[Mapping[Distribution, JudgedAccuracy], ...]
    calls: CallStatistics
    budget: str | None = None

    def examples(self, count: int) -> Iterator[tuple[Distribution, str]]:
        """The first statements of each rule and distribution by the first wording."""
        for stream in self.reports[0].streams:
            for statement in stream.statements[:count]:
                yield stream.writer.distribution, statement.text

    def evaluation(self) -> Evaluation[InstructResult]:
        """Statements by rule, delta by wording, accuracy, and LINK's table 3."""
        by_rule, by_wording, accuracies, wordings = [], [], [], []
        for report, judged in zip(self.reports, self.accuracies, strict=True):
            number, rules = report.settings.wording, []
            for rule, streams in report.by_rule.items():
                ends = {stream.writer.distribution.value: stream for stream in streams}
                figures: dict[str, Any] = {
                    **{name: len(stream.statements) for name, stream in ends.items()},
                    "dropped": dropped_lines(streams),
                    "calls": sum(stream.calls for stream in streams),
                    "hits": sum(stream.hits for stream in streams),
                    "delta": delta_of(streams),
                    "ended": {name: stream.end for name, stream in ends.items()},
                    "cut": any(stream.end == BUDGET for stream in streams),
                }
                rules.append({"rule": rule, **figures})
                sizes = (figures[name] for name in ends)
                numbers = (*figures["dropped"].values(), figures["calls"], figures["hits"])
                # Head and long tail usually end for the same reason, which is then named once.
                reasons = "; ".join(dict.fromkeys(figures["ended"].values()))
                by_rule.append((rule, number, *sizes, *numbers, two_decimals(figures["delta"]), reasons))
            by_wording.append((number, long_tail_wording(number, _NAMES), two_decimals(report.mean_delta)))
            for distribution, accuracy in judged.items():
                accuracies.append((number, DISTRIBUTION_NAMES[distribution], accuracy.statements, *accuracy.cells))
            run = {"wording": number, "run": report.run_id, "mean_delta": report.mean_delta}
            wordings.append({**run, "accuracy": judged, "rules": rules})
        # By wording within each rule.
        order = list(self.reports[0].by_rule)
        by_rule.sort(key=lambda row: order.index(row[0]))
        judges = ", ".join(dict.fromkeys(accuracy.judge for judged in self.accuracies for accuracy in judged.values()))
        model = self.reports[0].model
        of_rules = ("rule", "wording", "head", "long tail", *(drop.value for drop in Drop))
        tables = (
            ResultTable(
                f"Statements by instruction only, {model}", (*of_rules, "calls", "hits", "delta", "ended"), by_rule
            ),
            ResultTable("Mean delta by wording (LINK, figure 13)", ("wording", "", "mean delta"), by_wording),
            ResultTable(
                f"Accuracy in percent (LINK, table 3), judged by {judges}",
                ("wording", "distribution", "statements", *COLUMNS),
                accuracies,
            ),
            printed_table(3),
        )
        calls = {"sent": self.calls.calls, "from_journal": self.calls.hits}
        shown = {"model": model, "calls": calls, "stopped": self.budget, "wordings": wordings}
        return Evaluation(self, tables, shown, notes=tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        streams = list(chain.from_iterable(report.streams for report in self.reports))
        # Wordings share the head, so a statement can be in several reports.
        written = {statement.id for report in self.reports for statement in report.statements}
        yield (
            f"{counted(len(written), 'statement')} stored beside those of searches; nothing has checked them, and none "
            f"is a fact. {counted(self.calls.calls, 'call')} sent, {self.calls.hits} answered from the journal."
        )
        dropped, rows = sum(dropped_lines(streams).values()), sum(len(stream.statements) for stream in streams)
        if dropped > MOST_DROPPED * (dropped + rows) or all(stream.end == NO_ROWS for stream in streams):
            yield (
                f"{self.reports[0].model} does not follow the format of the instruction: "
                f"{counted(dropped, 'line was', 'lines were')} dropped and {counted(rows, 'row')} kept."
            )
        if self.budget:
            yield self.budget


@checked
def evaluate_instruction(
    rules: Library,
    kb: KnowledgeBase,
    options: InstructOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Evaluation[InstructResult]:
    """Have a model write statements by instruction only, without search, critic or ranking: LINK's baseline.

    `options`: the model, the wordings and the judges. `opening`: options of opening them; its journal, if any, has the
    budget. `progress` is called with each wording's number before it is used.
    """
    rules, options = sound_rules(rules), options or InstructOptions()
    chosen = chosen_rules(rules, only)
    opening, journal = with_journal(kb, opening)
    if not chosen:
        raise HapaxError(
            "No rule to write statements of.", Remedy("Name a rule file, or a rule with {}.", Setting("only"))
        )
    # A simulated model makes its world from the rules.
    opened = OpenedModels(replace(opening, library=rules))
    knowledge = open_shared(opened, options.model, KNOWLEDGE)
    evaluator = open_shared(opened, options.evaluator, EVALUATOR)
    critic = open_shared(opened, options.critic, CRITIC) if options.critic else None
    # The same for all wordings, so the journal answers the head's requests of each further wording.
    instructed = Instructed(rules, chosen, knowledge, evaluator)
    reports = []
    for wording in options.wordings:
        if progress is not None:
            progress(wording)
        reports.append(instruct(instructed, kb, replace(options.settings, wording=wording), journal))
    statements = list(chain.from_iterable(report.statements for report in reports))
    # For all reports together, so that a critic is asked in one batch.
    judging_critic = JournaledCritic(critic, journal) if critic else None
    judge = judge_of(kb, rules, statements, knowledge, critic=judging_critic)
    accuracies = []
    for report in reports:
        by_distribution = {}
        for distribution in Distribution:
            part = [statement for statement in report.statements if statement.distribution is distribution]
            by_distribution[distribution] = JudgedAccuracy.of(part, judge)
        accuracies.append(by_distribution)
    # A budget that ends one report ends those after it as well; the first message tells why.
    budgets = [report.budget for report in reports if report.budget] + ([str(judge.budget)] if judge.budget else [])
    budget = budgets[0] if budgets else None
    return InstructResult(tuple(reports), tuple(accuracies), journal.total, budget).evaluation()
