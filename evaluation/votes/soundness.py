"""`evaluate soundness`: the share of a rule's statements that are true, by the votes of readers and of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any

from hapax.engine.judgements import (
    ENTAILMENT_QUESTION,
    FALSE_FACTS,
    MODEL_VOTER,
    RULE_BAR,
    SOUND,
    SOUNDNESS_QUESTION,
    UNSOUND_RULE,
    UNSURE,
    Judgements,
    RuleSoundness,
    rule_soundness,
    share_verdicts,
    shared_judgements,
)
from hapax.evaluation.link.probing_questions import (
    STATEMENTS_PER_BATCH,
    TEMPLATES,
    ProbeAnswer,
    ProbeItem,
    ProbeMethod,
    ProbeSettings,
    items_of,
    open_asker,
)
from hapax.evaluation.shared.estimates import NOTHING, Estimate, of_groups, percent, share
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable, for_batches
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    DistinctTexts,
    JudgedCounts,
    chosen_statements,
    latest_statements,
    stored_library,
)
from hapax.evaluation.votes.voting_items import ItemSource, SampleOptions, subject_id
from hapax.evaluation.votes.voting_questions import SheetKind
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.options import ChosenRules, ChosenRuns, Option, Seed
from hapax.grammar.remedies import Operation
from hapax.grammar.writing.words import counted
from hapax.kb.records import VOTES, Distribution, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE
from hapax.llm_oracle.registry import open_model, with_journal

SAMPLE = 150
"""Statements that are drawn if no number is given."""

_TRUTH = TEMPLATES[0]
"""The question to a model: `Is it true that if ..., ...?`"""


@checked
@dataclass(frozen=True, slots=True)
class SoundnessOptions:
    """Statements to judge, and the bar. `model`: a judge, asked in the way `way`; None: only votes are counted.

    `sample`: number of statements, drawn evenly over rules and distributions; None: all. `bar`: share of true
    statements below which a rule is marked.
    """

    model: Annotated[str | None, Option("Model that judges the drawn statements.", short="-m")] = None
    way: Annotated[
        ProbeMethod,
        Option(
            "How to ask: for P(yes), a reply, or a chain of thought and a reply.",
            name="ask",
        ),
    ] = ProbeMethod.CRITIC
    sample: Annotated[
        int | None, Option("Statements to draw, evenly over rules and distributions; 0: all.", least=0, none="0")
    ] = SAMPLE
    rules: ChosenRules = ()
    runs: ChosenRuns = ()
    seed: Seed = 0
    bar: Annotated[float, Option("Share of true statements below which a rule is marked.", least=0, most=1)] = RULE_BAR

    @property
    def drawn(self) -> SampleOptions:
        """The draw, as the sheets of people use it."""
        return SampleOptions(self.seed, self.sample, rules=self.rules, runs=self.runs, evenly=True)


@dataclass(frozen=True, slots=True)
class SoundnessResult:
    """Counts by rule, and the shares of true statements over rules, with whole rules resampled for the interval.

    `weighted`: each rule by its number of statements in the knowledge base. `by_distribution`: a statement at both ends
    counts at both. `wording`: share of statements in good English, by people. `stopped`: message of a budget.
    """

    rules: tuple[RuleSoundness, ...]
    overall: Estimate
    weighted: Estimate
    by_distribution: Mapping[Distribution, Estimate]
    wording: Estimate
    bar: float
    voters: tuple[str, ...] = ()
    false: Sequence[tuple[StatementRecord, str, str]] = field(default_factory=tuple)
    stopped: str | None = None

    @property
    def below(self) -> tuple[RuleSoundness, ...]:
        """The rules below the bar."""
        return tuple(rule for rule in self.rules if rule.is_below(self.bar))

    def to_result(self) -> ExperimentResult:
        """The tables, the false statements with the readers' comments, and notes."""
        details = [f"{answer}: {record.text}{f' ({note})' if note else ''}" for record, answer, note in self.false]
        return ExperimentResult((self._summary(), self._by_rule()), self._figures(), details, tuple(self._notes()))

    def _rows(self) -> list[tuple[str, Estimate]]:
        rows = [("statements, drawn evenly over rules", self.overall), ("weighted by the rules' sizes", self.weighted)]
        for distribution, estimate in self.by_distribution.items():
            rows.append((f"{DISTRIBUTION_NAMES[distribution].replace(' ', '-')} statements", estimate))
        return [*rows, ("good English", self.wording)]

    def _summary(self) -> ResultTable:
        rows = [(name, percent(estimate), str(estimate.count)) for name, estimate in self._rows()]
        return ResultTable("Shares with 95 % intervals; whole rules are resampled", ("", "%", "of"), rows)

    def _by_rule(self) -> ResultTable:
        columns = ("rule", "true, %", "judged", "false facts", "does not follow", "no (model)", "unsure", "")
        rows = []
        # The worst rules first; 2 is above every share and puts rules without a verdict last.
        for rule in sorted(self.rules, key=lambda rule: (rule.sound / rule.judged if rule.judged else 2, rule.rule)):
            reasons = [str(rule.reasons.get(reason, 0)) for reason in (FALSE_FACTS, UNSOUND_RULE, "no")]
            estimate = percent(_rule_share(rule))
            mark = f"below {self.bar:g}" if rule.is_below(self.bar) else ""
            rows.append((rule.rule, estimate, str(rule.judged), *reasons, str(rule.unsure), mark))
        return ResultTable("True statements by rule, with Wilson's intervals", columns, rows)

    def _figures(self) -> dict[str, Any]:
        return {
            "bar": self.bar,
            "voters": self.voters,
            "shares": dict(self._rows()),
            "rules": {rule.rule: {"counts": rule, "share": _rule_share(rule)} for rule in self.rules},
            "below": [rule.rule for rule in self.below],
            "stopped": self.stopped,
        }

    def _notes(self) -> Iterator[str]:
        readers = ", ".join(self.voters) or "nobody"
        yield f"Judged by {readers}. Statements on which votes are undecided are not counted."
        if self.below:
            names = ", ".join(rule.rule for rule in self.below)
            yield f"{counted(len(self.below), 'rule')} below {self.bar:g}: {names}."
        if self.stopped:
            yield self.stopped


def _rule_share(rule: RuleSoundness) -> Estimate:
    return share([True] * rule.sound + [False] * (rule.judged - rule.sound))


@checked
@extras_named()
def evaluate_soundness(
    kb: KnowledgeBase,
    options: SoundnessOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[SoundnessResult]:
    """Share of the statements that are true, by rule and over rules, from the votes on sheets of soundness.

    `options`: a model that judges the drawn statements first, if any, the draw, and the bar for rules. No question is
    asked twice. `export_sheets` writes the sheets and `import_sheets` reads them.
    """
    options, stopped = options or SoundnessOptions(), None
    if options.model is not None:
        opening, journal = with_journal(kb, opening, budget)
        stopped = _judge(kb, options, replace(opening, library=stored_library(kb)), journal, progress)
    return Evaluation.of(measure(kb, options, stopped))


def _judge(
    kb: KnowledgeBase,
    options: SoundnessOptions,
    opening: OpeningOptions,
    journal: Journal,
    progress: Callable[[int, int], None] | None,
) -> str | None:
    """Ask a model about the drawn statements and store its answers as votes; gives the message of a reached budget.

    No question is asked twice, so that the same call goes on after an interruption.
    """
    model = open_model(options.model or "embedded", CRITIC if options.way is ProbeMethod.CRITIC else KNOWLEDGE, opening)
    voter = f"{MODEL_VOTER}{model.identity.name}@{model.identity.revision}"
    ask = open_asker(options.way, model, journal, ProbeSettings(seed=options.seed))
    statements = _drawn_statements(kb, options)
    items, _ = items_of(kb, statements)

    def ask_batch(batch: Sequence[ProbeItem]) -> None:
        answers = ask([(item, _TRUTH) for item in batch])
        # Stored batch by batch, so that an interruption loses no answer.
        kb.add(VOTES, (_vote(answer, voter) for answer in answers))

    def finished(done: int) -> None:
        if progress is not None:
            progress(done, len(items))

    stopped = for_batches(items, STATEMENTS_PER_BATCH, ask_batch, finished)
    return str(stopped) if stopped else None


def _vote(answer: ProbeAnswer, voter: str) -> VoteRecord:
    """The vote of a model; a reply that cannot be read, or is refused, is undecided."""
    words = {True: SOUND, False: "no", None: UNSURE}
    comment = "" if answer.probability is None else f"P(yes) {answer.probability:.3f}"
    return VoteRecord(
        answer.item.statement_id, SOUNDNESS_QUESTION, voter, words[answer.verdict.positive], comment or answer.reply
    )


def _drawn_statements(kb: KnowledgeBase, options: SoundnessOptions) -> list[StatementRecord]:
    drawn = ItemSource(kb, SheetKind.SOUNDNESS).draw(options.drawn)
    identities = {subject_id(item.id) for item in drawn.items}
    statements: dict[str, StatementRecord] = {}
    for members in latest_statements(kb, options.rules, options.runs).values():
        statements |= members
    return [statement for key, statement in statements.items() if key in identities]


def measure(kb: KnowledgeBase, options: SoundnessOptions, stopped: str | None = None) -> SoundnessResult:
    """Count the judgements on all statements of the chosen rules, whichever sheet or draw they come from."""
    texts = DistinctTexts.of(latest_statements(kb, options.rules, options.runs))
    found = Judgements.stored(kb, models=True)
    statements: dict[str, StatementRecord] = {}
    for members in texts.statements.values():
        statements |= {found.row(key): record for key, record in members.items()}
    sizes = Counter(record.rule for record in statements.values())
    verdicts = {key: answer for key, answer in share_verdicts(found).items() if key in statements}
    rules = {key: record.rule for key, record in statements.items()}
    by_distribution = {}
    # A statement may stand in both distributions, and then counts in each.
    for distribution, members in texts.statements.items():
        keys = set(map(found.row, members))
        own = {key: answer for key, answer in verdicts.items() if key in keys}
        by_distribution[distribution] = _over_rules(own, rules, {})
    wording = {}
    for key, judgement in found.texts.items():
        if key in statements and judgement.reads_well is not None:
            wording[key] = SOUND if judgement.reads_well else "no"
    false = [(statements[key], answer) for key, answer in verdicts.items() if answer not in (SOUND, UNSURE)]
    comments = _comments(kb, found)
    return SoundnessResult(
        tuple(rule_soundness(rules, verdicts).values()),
        _over_rules(verdicts, rules, {}),
        _over_rules(verdicts, rules, sizes),
        by_distribution,
        _over_rules(wording, rules, {}),
        options.bar,
        tuple(sorted(set().union(*(found.texts[key].voters for key in verdicts)))),
        [(record, answer, comments.get(found.row(record.id), "")) for record, answer in _by_rule_and_text(false)],
        stopped,
    )


def _by_rule_and_text(false: list[tuple[StatementRecord, str]]) -> list[tuple[StatementRecord, str]]:
    return sorted(false, key=lambda entry: (entry[0].rule, entry[0].text))


def _comments(kb: KnowledgeBase, found: Judgements) -> dict[str, str]:
    """A comment on the truth of each statement, by row."""
    questions = (SOUNDNESS_QUESTION, ENTAILMENT_QUESTION)
    return {found.row(vote.statement_id): vote.comment for vote in kb.votes() if vote.question in questions}


def truth_lines(kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()) -> list[str]:
    """The number of these statements that people judged, and the share of true ones, in sentences.

    The card of a dataset, the page about a run and the report on votes all show these.
    """
    latest = chosen_statements(kb, rules, runs)
    if not any(latest.values()):
        return []
    judged = shared_judgements(Judgements.stored(kb), chain.from_iterable(latest.values()))
    return [JudgedCounts.of(judged).sentence(), *share_lines(kb, rules, runs)]


def share_lines(kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()) -> list[str]:
    """The share of true statements with its interval, in a sentence; none where votes decide nothing."""
    if not any(chosen_statements(kb, rules, runs).values()):
        return []
    result = measure(kb, SoundnessOptions(rules=tuple(rules), runs=tuple(runs)))
    if not result.overall.count:
        return []
    models = [voter.removeprefix(MODEL_VOTER) for voter in result.voters if voter.startswith(MODEL_VOTER)]
    judges = f", judged also by {', '.join(models)}" if models else ""
    return [
        f"Of the {counted(result.overall.count, 'statement')} that votes decide {percent(result.overall)} % "
        f"are true, and {percent(result.weighted)} % weighted by the rules' sizes, with 95 % intervals over "
        f"rules ({Operation('evaluate_soundness')}{judges})."
    ]


def _over_rules(verdicts: Mapping[str, str], rules: Mapping[str, str], sizes: Mapping[str, int]) -> Estimate:
    """Share of true statements with whole rules resampled. `sizes`: weights of rules; without any all statements weigh
    the same.
    """
    by_rule: dict[str, list[bool]] = {}
    for key, answer in verdicts.items():
        if answer != UNSURE:
            by_rule.setdefault(rules[key], []).append(answer == SOUND)
    if not by_rule:
        return NOTHING
    groups = []
    for rule, hits in sorted(by_rule.items()):
        # Each judged statement stands for `weight` statements of its rule.
        weight = sizes[rule] / len(hits) if sizes else 1.0
        # Rows of (hit, weight), a group for each rule.
        groups.append(np.array([(float(hit), weight) for hit in hits]))
    estimate = of_groups(lambda rows: float(np.average(rows[:, 0], weights=rows[:, 1])), groups)
    if estimate.value in (0.0, 1.0):
        # Resamples of equal answers are all equal; Wilson's interval takes each rule for a single case.
        wilson = share([bool(estimate.value)] * len(groups))
        estimate = Estimate(estimate.value, wilson.low, wilson.high, len(groups))
    # The count is that of statements, although rules were resampled.
    return Estimate(estimate.value, estimate.low, estimate.high, sum(map(len, groups)))
