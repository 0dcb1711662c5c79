"""LINK's baseline by instruction only: judges of statements, its session, and its tables beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from typing import Annotated, Any, Protocol

from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.judgements import Judgements
from hapax.engine.kept_rules import chosen_rules, sound_rules
from hapax.engine.questions.decidable import Origin, origin_of
from hapax.engine.questions.score_maps import short_model_name
from hapax.evaluation.link.instruct import (
    BUDGET,
    NO_ROWS,
    Drop,
    Instructed,
    InstructReport,
    InstructSettings,
    StreamReport,
    instruct,
)
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, made
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Literal, Substitution, Value
from hapax.grammar.values.calculation import holds
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import BudgetReached, CallStatistics
from hapax.llm_oracle.journaled_models import JournaledCritic
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, CriticScore, Generator
from hapax.llm_oracle.questions.prompts import LONG_TAIL_WORDINGS, fact_claim, long_tail_wording, type_claim
from hapax.llm_oracle.registry import open_shared, with_journal
from hapax.llm_oracle.scripts.simulated import SimulatedModel

Truth = Callable[[str, Sequence[Value]], bool | None]
"""Truth of a fact (indicator, arguments); None: unknown."""

TypeTruth = Callable[[Value, str], bool | None]
"""True if a value is of a data type; None: unknown."""

UNDECIDED = 0.5
"""P(yes) above which a critic's claim counts as true, and below which as false."""


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Truth that statements are judged by. Without `types`, data types are not judged."""

    facts: Truth
    types: TypeTruth | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Number of right cases among those whose truth is known."""

    right: int = 0
    known: int = 0

    @property
    def value(self) -> float | None:
        return self.right / self.known if self.known else None

    @classmethod
    def of(cls, verdicts: Iterable[bool | None]) -> Share:
        """Count the verdicts that are True, and those that are not None."""
        decided = [verdict for verdict in verdicts if verdict is not None]
        return cls(sum(decided), len(decided))

    def __str__(self) -> str:
        """`83.33 of 12`: percent right, and how many are known; `n/a` where none is."""
        return f"{100 * self.right / self.known:.2f} of {self.known}" if self.known else "n/a"


@dataclass(frozen=True, slots=True)
class StatementJudgement:
    """Verdicts on one statement; None: unknown. `overall` is the one that counts as right."""

    typed: bool | None
    factual: bool | None
    overall: bool | None


@dataclass(frozen=True, slots=True)
class JudgedAccuracy:
    """A row of LINK's tables 3 and 7 to 10. `judge`: name of the judge."""

    statements: int
    data_type: Share
    factuality: Share
    overall: Share
    judge: str = ""


class Judge(Protocol):
    """A judge of statements, with a name for tables."""

    @property
    def name(self) -> str: ...

    def verdict(self, statement: StatementRecord) -> StatementJudgement: ...


def accuracy(statements: Sequence[StatementRecord], judge: Judge) -> JudgedAccuracy:
    """Count the right statements among those that the judge can decide."""
    judgements = [judge.verdict(statement) for statement in statements]
    return JudgedAccuracy(
        len(statements),
        Share.of(judgement.typed for judgement in judgements),
        Share.of(judgement.factual for judgement in judgements),
        Share.of(judgement.overall for judgement in judgements),
        judge.name,
    )


@dataclass(frozen=True)
class TruthJudge:
    """Judge by a ground truth for facts and types; arithmetic and given facts are decided as in a search.

    `searched`: the statements were derived by a search, so a derived atom holds whenever its facts do. The truth of
    derived atoms is unknown for statements that no search derived.
    """

    library: Library
    truth: GroundTruth
    known: RunFacts
    name: str = "known facts"
    searched: bool = True

    def verdict(self, statement: StatementRecord) -> StatementJudgement:
        """The judgement of a statement; without a truth for types, `overall` is `factual`."""
        factual = conjunction(self._requirements(statement))
        of_type = self.truth.types
        if of_type is None:
            return StatementJudgement(None, factual, factual)
        typed = conjunction(of_type(value, data_type) for value, data_type in typed_values(statement, self.library))
        return StatementJudgement(typed, factual, conjunction((typed, factual)))

    def is_true(self, atom: Atom) -> bool | None:
        return self.truth.facts(*_key(atom)) if atom.is_ground else None

    def _requirements(self, statement: StatementRecord) -> Iterator[bool | None]:
        """Truth of each comparison and atom that constrains the searched values."""
        rule = self.library.rule(statement.rule)
        values = dict(statement.substitution)
        for comparison in rule.comparisons:
            if not rule.is_information(comparison):
                bound = all(variable.name in values for variable in comparison.variables)
                yield holds(comparison, values) if bound else None
        for atom, literal in _constraints(statement, self.library):
            match origin_of(literal, self.library):
                # The truth of the atom itself; the negation is applied below.
                case Origin.MODEL:
                    truth = self.is_true(atom)
                case Origin.DERIVED:
                    # As the search has derived it: a negated atom is false then.
                    truth = not literal.negated if self.searched else None
                case _:
                    probability = self.known.truth(atom) if atom.is_ground else None
                    truth = None if probability is None else probability > 0
            # A negated literal holds where its atom does not.
            yield None if truth is None else truth != literal.negated


@dataclass(frozen=True)
class VoteJudge:
    """Judge by people's votes on the truth of statements and on data types; a tie decides nothing."""

    judged: Judgements
    name: str = "people's votes"

    def knows(self, statement: StatementRecord) -> bool:
        """True if anybody voted on the statement."""
        return self.judged.row(statement.id) in self.judged.texts

    def verdict(self, statement: StatementRecord) -> StatementJudgement:
        """Typed if every question on a data type was affirmed, factual if the statement is true."""
        judgement = self.judged.of(statement.id)
        return StatementJudgement(judgement.typed, judgement.is_true, conjunction((judgement.typed, judgement.is_true)))


def critic_truth(
    statements: Iterable[StatementRecord], library: Library, critic: JournaledCritic
) -> tuple[GroundTruth, BudgetReached | None]:
    """Ask a critic about all facts and types in one batch; claims that a budget cut off are unknown."""
    # Claims by fact and by type, so that verdicts find them again without wording them.
    facts: dict[tuple[str, tuple[Value, ...]], str] = {}
    types: dict[tuple[Value, str], str] = {}
    for statement in statements:
        for atom, _ in _model_atoms(statement, library):
            facts[_key(atom)] = fact_claim(atom, library)
        for value, data_type in typed_values(statement, library):
            if not library.is_numeric(data_type):
                types[value, data_type] = type_claim(str(value), data_type)
    claims = list(dict.fromkeys((*facts.values(), *types.values())))
    reached = None
    try:
        scores: Sequence[CriticScore | None] = critic.probabilities(claims)
    except BudgetReached as stopped:
        # As long as the claims, with None for those that were not answered.
        scores, reached = stopped.answers, stopped
    by_claim = dict(zip(claims, scores, strict=True))

    def verdict(claim: str | None) -> bool | None:
        score = None if claim is None else by_claim.get(claim)
        # None: not asked, or cut off by the budget.
        # Exactly 0.5, which critics also give to claims that they do not cover, decides nothing.
        return None if score is None or score.probability == UNDECIDED else score.probability > UNDECIDED

    def of_type(value: Value, data_type: str) -> bool | None:
        # Whether a value is a number can be seen; a critic is not asked about it.
        if library.is_numeric(data_type):
            return not isinstance(value, str)
        return verdict(types.get((value, data_type)))

    return GroundTruth(lambda name, values: verdict(facts.get((name, tuple(values)))), of_type), reached


def typed_values(statement: StatementRecord, library: Library) -> list[tuple[Value, str]]:
    """The statement's searched values with the types of their variables."""
    types = {variable.name: variable.data_type for variable in library.rule(statement.rule).searched}
    return [(value, types[name]) for name, value in statement.substitution if name in types]


def conjunction(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued "and": False if any verdict is False, else None if any is unknown, else True."""
    # False decides even beside an unknown: a statement with one false fact is wrong.
    distinct = set(verdicts)
    if False in distinct:
        return False
    return None if None in distinct else True


def _constraints(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """The constraint atoms with the statement's values, each with its literal in the rule."""
    rule = library.rule(statement.rule)
    bound = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
    for literal in rule.literals:
        if not rule.is_information(literal):
            yield bound.apply(literal.atom), literal


def _model_atoms(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """The ground constraint atoms whose facts come from a model."""
    for atom, literal in _constraints(statement, library):
        if atom.is_ground and origin_of(literal, library) is Origin.MODEL:
            yield atom, literal


def _key(atom: Atom) -> tuple[str, tuple[Value, ...]]:
    return atom.indicator, tuple(term.value for term in atom.arguments if isinstance(term, Constant))


COLUMNS = ("Data Type", "Factuality", "Overall")

Row = tuple[str, float, float, float]
"""A method and its three accuracies in percent."""


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of the paper. `first`: heading of its first column."""

    number: int
    title: str
    first: str
    rows: tuple[Row, ...]


TABLE_3 = PrintedTable(
    3,
    "long-tail statements",
    "",
    (("ChatGPT", 85.40, 67.50, 56.44), ("GPT4", 91.80, 84.82, 78.23), ("LINK", 94.23, 88.71, 83.95)),
)
TABLE_7 = PrintedTable(
    7,
    "temperatures",
    "Temperature",
    (("0.5", 89.05, 93.21, 82.94), ("0.7", 89.00, 92.33, 82.25), ("1.0", 88.08, 91.75, 81.00)),
)
TABLE_8 = PrintedTable(
    8,
    "critic and reranker, long tail",
    "",
    (
        ("LINK", 93.42, 97.50, 91.33),
        ("    w/o critic", 52.58, 52.08, 33.00),
        ("    w/o critic+reranker", 75.42, 73.92, 58.25),
        ("LINK with GPT4", 92.75, 96.17, 89.25),
        ("    w/o critic", 63.00, 58.17, 40.00),
        ("    w/o critic+reranker", 88.33, 83.50, 74.50),
    ),
)
TABLE_9 = PrintedTable(
    9,
    "critic and reranker, head",
    "",
    (
        ("LINK", 95.17, 97.75, 93.00),
        ("    w/o critic", 80.33, 73.50, 59.75),
        ("    w/o critic+reranker", 76.66, 74.83, 59.33),
        ("LINK with GPT4", 92.17, 98.08, 90.83),
        ("    w/o critic", 91.00, 80.42, 72.08),
        ("    w/o critic+reranker", 88.17, 85.33, 75.58),
    ),
)
TABLE_10 = PrintedTable(
    10,
    "knowledge models",
    "",
    (("Zero-shot GPT4", 85.44, 88.42, 74.39), ("LINK", 93.42, 97.50, 91.33), ("LINK with GPT4", 92.75, 96.17, 89.25)),
)
GRID: Mapping[int, PrintedTable] = {table.number: table for table in (TABLE_7, TABLE_8, TABLE_9, TABLE_10)}


@dataclass
class Jury:
    """Chooses judges. `budget`: the budget that stopped the critic, if one did."""

    kb: KnowledgeBase
    library: Library
    critic: JournaledCritic | None = None
    budget: BudgetReached | None = field(default=None, init=False)

    def judge(self, statements: Sequence[StatementRecord], author: Generator, searched: bool) -> Judge:
        """Choose the judge of statements. `author`: who proposed their values; `searched`: a search derived them."""
        if self.critic is not None:
            truth, reached = critic_truth(statements, self.library, self.critic)
            self.budget = self.budget or reached
            name = f"the critic {short_model_name(self.critic.identity.title)}"
        # A vote on one statement is enough: those without votes are then unknown, never judged by somebody else.
        elif any(map(self._votes.knows, statements)):
            return self._votes
        elif isinstance(author, SimulatedModel):
            world = author.world
            name, truth = f"the simulated world {world.seed}", GroundTruth(world.holds, world.is_a)
        else:
            name, truth = "the atlas", self._atlas
        return TruthJudge(self.library, truth, self._facts, name, searched)

    @cached_property
    def _votes(self) -> VoteJudge:
        return VoteJudge(Judgements.stored(self.kb))

    @cached_property
    def _facts(self) -> RunFacts:
        return RunFacts(self.kb, self.library)

    @cached_property
    def _atlas(self) -> GroundTruth:
        from hapax.llm_oracle.embedded.atlas import load_atlas

        atlas = load_atlas()
        return GroundTruth(atlas.truth, atlas.type_truth)


_NAMES = ("A", "B", "Z")
"""Variables of the paper's example."""


def instruct_tables(reports: Sequence[InstructReport], accuracies: Sequence[JudgedAccuracy]) -> tuple[ResultTable, ...]:
    """Statements by rule, delta by wording, accuracy, and LINK's table 3. `accuracies`: head and long tail of each
    report in turn.
    """
    return (_by_rule(reports), _by_wording(reports), _accuracy(reports, accuracies), printed_table(TABLE_3))


def printed_table(printed: PrintedTable) -> ResultTable:
    """A table of the paper, with its own figures."""
    rows = []
    for name, *figures in printed.rows:
        rows.append((name, *(f"{figure:.2f}" for figure in figures)))
    return ResultTable(f"LINK's paper, table {printed.number}: {printed.title}", (printed.first, *COLUMNS), rows)


def accuracy_cells(judged: JudgedAccuracy | None) -> tuple[str, str, str]:
    """Data type, factuality and overall in percent, each with the number judged; `n/a` where none was."""
    if judged is None:
        return ("n/a", "n/a", "n/a")
    return (str(judged.data_type), str(judged.factuality), str(judged.overall))


def dropped_json(streams: Iterable[StreamReport]) -> dict[str, int]:
    """Number of dropped lines by reason."""
    counts: Counter[Drop] = Counter()
    for stream in streams:
        counts.update(stream.dropped)
    # Zeros as well, because each reason is a column.
    return {drop.value: counts[drop] for drop in Drop}


def two_decimals(value: float | None) -> str:
    """Two decimals, or `n/a`."""
    return "n/a" if value is None else f"{value:.2f}"


def _by_rule(reports: Sequence[InstructReport]) -> ResultTable:
    drops = [drop.value for drop in Drop]
    columns = ("rule", "wording", "head", "long tail", *drops, "calls", "hits", "delta", "ended")
    rows = []
    for rule in reports[0].rules:
        for report in reports:
            streams = list(report.of(rule).values())
            statements = [str(len(stream.statements)) for stream in streams]
            dropped = map(str, dropped_json(streams).values())
            calls, hits = sum(stream.calls for stream in streams), sum(stream.hits for stream in streams)
            # Head and long tail usually end for the same reason, which is then named once.
            end = "; ".join(dict.fromkeys(stream.end for stream in streams))
            wording = str(report.settings.wording)
            rows.append(
                (rule, wording, *statements, *dropped, str(calls), str(hits), two_decimals(report.delta(rule)), end)
            )
    return ResultTable(f"Statements by instruction only, {reports[0].model}", columns, rows)


def _by_wording(reports: Sequence[InstructReport]) -> ResultTable:
    rows = []
    for report in reports:
        wording = report.settings.wording
        rows.append((str(wording), long_tail_wording(wording, _NAMES), two_decimals(report.mean_delta)))
    return ResultTable("Mean delta by wording (LINK, figure 13)", ("wording", "", "mean delta"), rows)


def _accuracy(reports: Sequence[InstructReport], accuracies: Sequence[JudgedAccuracy]) -> ResultTable:
    rows = []
    # The accuracies come in the same order: head and long tail of each report.
    for (report, distribution), judged in zip(product(reports, Distribution), accuracies, strict=True):
        place = (str(report.settings.wording), DISTRIBUTION_NAMES[distribution])
        rows.append((*place, str(judged.statements), *accuracy_cells(judged)))
    judges = ", ".join(dict.fromkeys(judged.judge for judged in accuracies))
    columns = ("wording", "distribution", "statements", *COLUMNS)
    return ResultTable(f"Accuracy in percent (LINK, table 3), judged by {judges}", columns, rows)


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
    def of(cls, options: Mapping[str, Any]) -> InstructOptions:
        """From the options of the command line."""
        wordings = wording_numbers(options["wordings"])
        return made(cls, options, wordings=wordings, settings=made(InstructSettings, options))


@dataclass(frozen=True, slots=True)
class InstructResult:
    """Statements that a model wrote, measured and judged. `accuracies`: head and long tail of each report in turn."""

    reports: tuple[InstructReport, ...]
    accuracies: tuple[JudgedAccuracy, ...]
    calls: CallStatistics
    budget: str | None = None

    def to_result(self) -> ExperimentResult:
        """All tables and figures; the statements themselves are in the knowledge base."""
        figures = {
            "model": self.reports[0].model,
            "calls": {"sent": self.calls.calls, "from_journal": self.calls.hits},
            "stopped": self.budget,
            "wordings": self._wordings(),
        }
        return ExperimentResult(instruct_tables(self.reports, self.accuracies), figures, notes=tuple(self._notes()))

    def examples(self, count: int) -> Iterator[tuple[Distribution, str]]:
        """The first statements of each rule and distribution by the first wording."""
        for stream in self.reports[0].streams:
            for statement in stream.statements[:count]:
                yield stream.distribution, statement.text

    def _wordings(self) -> list[dict[str, Any]]:
        # Head and long tail of each report in turn.
        accuracies = iter(self.accuracies)
        wordings = []
        for report in self.reports:
            wordings.append(
                {
                    "wording": report.settings.wording,
                    "run": report.run_id,
                    "mean_delta": report.mean_delta,
                    "accuracy": {distribution: next(accuracies) for distribution in Distribution},
                    "rules": [_rule_json(report, rule) for rule in report.rules],
                }
            )
        return wordings

    def _notes(self) -> Iterator[str]:
        streams = list(chain.from_iterable(report.streams for report in self.reports))
        # Wordings share the head, so a statement can be in several reports.
        written: set[str] = set()
        for stream in streams:
            written.update(statement.id for statement in stream.statements)
        yield (
            f"{counted(len(written), 'statement')} stored beside those of searches; nothing has checked them, and none "
            f"is a fact. {counted(self.calls.calls, 'call')} sent, {self.calls.hits} answered from the journal."
        )
        dropped, rows = sum(dropped_json(streams).values()), sum(len(stream.statements) for stream in streams)
        if dropped > MOST_DROPPED * (dropped + rows) or all(stream.end == NO_ROWS for stream in streams):
            yield (
                f"{self.reports[0].model} does not follow the format of the instruction: "
                f"{counted(dropped, 'line was', 'lines were')} dropped and {counted(rows, 'row')} kept."
            )
        if self.budget:
            yield self.budget


def wording_numbers(names: Iterable[str]) -> tuple[int, ...]:
    """The numbers of wordings named `paper`, `all`, or `1` to `10`; ascending, each once."""
    numbers: set[int] = set()
    for name in names:
        if name == "all":
            numbers.update(range(1, len(LONG_TAIL_WORDINGS) + 1))
        else:
            # Section 3.1 uses the first wording of table 11.
            numbers.add(1 if name == "paper" else int(name))
    return tuple(sorted(numbers))


@checked
@extras_named()
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
    jury = Jury(kb, rules, JournaledCritic(critic, journal) if critic else None)
    statements = list(chain.from_iterable(report.statements for report in reports))
    # For all reports together, so that a critic is asked in one batch.
    judge = jury.judge(statements, knowledge, searched=False)
    accuracies = []
    for report in reports:
        for distribution in Distribution:
            part = [statement for statement in report.statements if statement.distribution is distribution]
            accuracies.append(accuracy(part, judge))
    # A budget that ends one report ends those after it as well; the first message tells why.
    budgets = [report.budget for report in reports if report.budget] + ([str(jury.budget)] if jury.budget else [])
    return Evaluation.of(
        InstructResult(tuple(reports), tuple(accuracies), journal.total, budgets[0] if budgets else None)
    )


def _rule_json(report: InstructReport, rule: str) -> dict[str, Any]:
    streams = report.of(rule)
    return {
        "rule": rule,
        **{distribution.value: len(stream.statements) for distribution, stream in streams.items()},
        "dropped": dropped_json(streams.values()),
        "calls": sum(stream.calls for stream in streams.values()),
        "hits": sum(stream.hits for stream in streams.values()),
        "delta": report.delta(rule),
        "ended": {distribution.value: stream.end for distribution, stream in streams.items()},
        "cut": any(stream.end == BUDGET for stream in streams.values()),
    }
