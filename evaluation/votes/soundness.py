"""Shares of true statements by rule and over rules, from people's votes, whichever sheet or draw they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated

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
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    EVERY_STATEMENT,
    JudgedCounts,
    StatementChoice,
    chosen_statements,
    latest_statements,
    statement_rows,
)
from hapax.grammar.arguments import checked
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation
from hapax.grammar.writing.words import counted
from hapax.kb.records import StatementRecord
from hapax.kb.store import KnowledgeBase


@checked
@dataclass(frozen=True, slots=True)
class SoundnessOptions(StatementChoice):
    """Statements that count, and the bar: the share of true statements below which a rule is marked."""

    bar: Annotated[float, Option("Share of true statements below which a rule is marked.", least=0, most=1)] = RULE_BAR


EVENLY, WEIGHTED = "statements, drawn evenly over rules", "weighted by the rules' sizes"
"""The first two shares of a result."""


@dataclass(frozen=True, slots=True)
class SoundnessResult:
    """Counts by rule, and shares of true statements over rules, with whole rules resampled for the interval.

    `shares`: by what they are of; a statement at both ends counts at both. `false`: false statements with the answer
    and a reader's comment.
    """

    rules: tuple[RuleSoundness, ...]
    shares: Mapping[str, Estimate]
    bar: float
    voters: tuple[str, ...]
    false: Sequence[tuple[StatementRecord, str, str]]

    @property
    def below(self) -> list[str]:
        """The rules below the bar."""
        return [rule.rule for rule in self.rules if rule.is_below(self.bar)]

    def evaluation(self) -> Evaluation[SoundnessResult]:
        """The tables, the false statements with the readers' comments, and notes."""
        summary = [(name, percent(estimate), estimate.count) for name, estimate in self.shares.items()]
        by_rule, figures = [], {}
        # The worst rules first; 2 is above every share and puts rules without a verdict last.
        for rule in sorted(self.rules, key=lambda rule: (rule.sound / rule.judged if rule.judged else 2, rule.rule)):
            reasons = [rule.reasons.get(reason, 0) for reason in (FALSE_FACTS, UNSOUND_RULE)]
            estimate = share([True] * rule.sound + [False] * (rule.judged - rule.sound))
            mark = f"below {self.bar:g}" if rule.is_below(self.bar) else ""
            by_rule.append((rule.rule, percent(estimate), rule.judged, *reasons, rule.unsure, mark))
            figures[rule.rule] = {"counts": rule, "share": estimate}
        columns = ("rule", "true, %", "judged", "false facts", "does not follow", "unsure", "")
        tables = (
            ResultTable("Shares with 95 % intervals; whole rules are resampled", ("", "%", "of"), summary),
            ResultTable("True statements by rule, with Wilson's intervals", columns, by_rule),
        )
        shown = {"bar": self.bar, "voters": self.voters, "shares": self.shares, "rules": figures, "below": self.below}
        details = [f"{answer}: {record.text}{f' ({note})' if note else ''}" for record, answer, note in self.false]
        return Evaluation(self, tables, shown, details, tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        readers = ", ".join(self.voters) or "nobody"
        yield f"Judged by {readers}. Statements on which votes are undecided are not counted."
        if self.below:
            yield f"{counted(len(self.below), 'rule')} below {self.bar:g}: {', '.join(self.below)}."


@checked
def evaluate_soundness(kb: KnowledgeBase, options: SoundnessOptions | None = None) -> Evaluation[SoundnessResult]:
    """Share of the statements that are true, by rule and over rules, from the votes of people.

    `options`: the statements that count, and the bar for rules. `export_sheets` writes sheets of soundness, and
    `import_sheets` reads them.
    """
    return measure(kb, options or SoundnessOptions()).evaluation()


def measure(kb: KnowledgeBase, options: SoundnessOptions) -> SoundnessResult:
    """Count the judgements on all statements of the chosen rules."""
    texts = statement_rows(latest_statements(kb, options))
    found = Judgements.stored(kb)
    statements: dict[str, StatementRecord] = {}
    for members in texts.values():
        statements |= {found.row(key): record for key, record in members.items()}
    rules = {key: record.rule for key, record in statements.items()}
    verdicts = {key: answer for key, answer in share_verdicts(found).items() if key in statements}
    shares = {
        EVENLY: _over_rules(verdicts, rules),
        WEIGHTED: _over_rules(verdicts, rules, Counter(rules.values())),
    }
    # A statement may stand in both distributions, and then counts in each.
    for distribution, members in texts.items():
        keys = set(map(found.row, members))
        own = {key: answer for key, answer in verdicts.items() if key in keys}
        shares[f"{DISTRIBUTION_NAMES[distribution].replace(' ', '-')} statements"] = _over_rules(own, rules)
    wording = {}
    for key, judgement in found.texts.items():
        if key in statements and judgement.reads_well is not None:
            wording[key] = SOUND if judgement.reads_well else "no"
    shares["good English"] = _over_rules(wording, rules)
    comments = {}
    for vote in kb.votes():
        if vote.question in (SOUNDNESS_QUESTION, ENTAILMENT_QUESTION):
            comments[found.row(vote.statement_id)] = vote.comment
    false = []
    for key, answer in sorted(verdicts.items(), key=lambda entry: (rules[entry[0]], statements[entry[0]].text)):
        if answer not in (SOUND, UNSURE):
            false.append((statements[key], answer, comments.get(key, "")))
    voters = set().union(*(found.texts[key].voters for key in verdicts))
    counts = tuple(rule_soundness(rules, verdicts).values())
    return SoundnessResult(counts, shares, options.bar, tuple(sorted(voters)), false)


def truth_lines(kb: KnowledgeBase, choice: StatementChoice = EVERY_STATEMENT) -> list[str]:
    """The number of these statements that people judged, and the share of true ones, in sentences.

    The card of a dataset, the page about a run and the report on votes all show these.
    """
    latest = chosen_statements(kb, choice, kb.statements())
    if not any(latest.values()):
        return []
    judged = shared_judgements(Judgements.stored(kb), chain.from_iterable(latest.values()))
    return [JudgedCounts.of(judged).sentence(), *share_lines(kb, choice)]


def share_lines(kb: KnowledgeBase, choice: StatementChoice = EVERY_STATEMENT) -> list[str]:
    """The share of true statements with its interval, in a sentence; none where votes decide nothing."""
    if not any(chosen_statements(kb, choice, kb.statements()).values()):
        return []
    result = measure(kb, SoundnessOptions(choice.rules, choice.runs))
    evenly, weighted = result.shares[EVENLY], result.shares[WEIGHTED]
    if not evenly.count:
        return []
    return [
        f"Of the {counted(evenly.count, 'statement')} that votes decide {percent(evenly)} % "
        f"are true, and {percent(weighted)} % weighted by the rules' sizes, with 95 % intervals over "
        f"rules ({Operation('evaluate_soundness')})."
    ]


def _over_rules(
    verdicts: Mapping[str, str], rules: Mapping[str, str], sizes: Mapping[str, int] | None = None
) -> Estimate:
    """Share of true statements with whole rules resampled. `sizes`: weights of rules; else all statements weigh the
    same.
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
        estimate = share([bool(estimate.value)] * len(groups))
    # The count is that of statements, although rules were resampled.
    return replace(estimate, count=sum(map(len, groups)))
