"""`evaluate soundness`: the share of a rule's statements that are true, by the votes of readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any

from hapax.engine.judgements import (
    ENTAILMENT_QUESTION,
    FALSE_FACTS,
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
from hapax.evaluation.shared.estimates import NOTHING, Estimate, of_groups, percent, share
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    DistinctTexts,
    JudgedCounts,
    chosen_statements,
    latest_statements,
)
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.options import ChosenRules, ChosenRuns, Option
from hapax.grammar.remedies import Operation
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase


@checked
@dataclass(frozen=True, slots=True)
class SoundnessOptions:
    """Statements that count, and the bar: the share of true statements below which a rule is marked."""

    rules: ChosenRules = ()
    runs: ChosenRuns = ()
    bar: Annotated[float, Option("Share of true statements below which a rule is marked.", least=0, most=1)] = RULE_BAR


@dataclass(frozen=True, slots=True)
class SoundnessResult:
    """Counts by rule, and the shares of true statements over rules, with whole rules resampled for the interval.

    `weighted`: each rule by its number of statements in the knowledge base. `by_distribution`: a statement at both ends
    counts at both. `wording`: share of statements in good English.
    """

    rules: tuple[RuleSoundness, ...]
    overall: Estimate
    weighted: Estimate
    by_distribution: Mapping[Distribution, Estimate]
    wording: Estimate
    bar: float
    voters: tuple[str, ...] = ()
    false: Sequence[tuple[StatementRecord, str, str]] = field(default_factory=tuple)

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
        columns = ("rule", "true, %", "judged", "false facts", "does not follow", "unsure", "")
        rows = []
        # The worst rules first; 2 is above every share and puts rules without a verdict last.
        for rule in sorted(self.rules, key=lambda rule: (rule.sound / rule.judged if rule.judged else 2, rule.rule)):
            reasons = [str(rule.reasons.get(reason, 0)) for reason in (FALSE_FACTS, UNSOUND_RULE)]
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
        }

    def _notes(self) -> Iterator[str]:
        readers = ", ".join(self.voters) or "nobody"
        yield f"Judged by {readers}. Statements on which votes are undecided are not counted."
        if self.below:
            names = ", ".join(rule.rule for rule in self.below)
            yield f"{counted(len(self.below), 'rule')} below {self.bar:g}: {names}."


def _rule_share(rule: RuleSoundness) -> Estimate:
    return share([True] * rule.sound + [False] * (rule.judged - rule.sound))


@checked
@extras_named()
def evaluate_soundness(kb: KnowledgeBase, options: SoundnessOptions | None = None) -> Evaluation[SoundnessResult]:
    """Share of the statements that are true, by rule and over rules, from the votes of people.

    `options`: the statements that count, and the bar for rules. `export_sheets` writes sheets of soundness, and
    `import_sheets` reads them.
    """
    return Evaluation.of(measure(kb, options or SoundnessOptions()))


def measure(kb: KnowledgeBase, options: SoundnessOptions) -> SoundnessResult:
    """Count the judgements on all statements of the chosen rules, whichever sheet or draw they come from."""
    texts = DistinctTexts.of(latest_statements(kb, options.rules, options.runs))
    found = Judgements.stored(kb)
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
    return [
        f"Of the {counted(result.overall.count, 'statement')} that votes decide {percent(result.overall)} % "
        f"are true, and {percent(result.weighted)} % weighted by the rules' sizes, with 95 % intervals over "
        f"rules ({Operation('evaluate_soundness')})."
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
