"""Bias of scorers: what they affirm without a premise that says so (McKenna et al. 2023, Cheng et al. 2025)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from hapax.evaluation.entailment.groups import pair_and_converse
from hapax.evaluation.entailment.metrics import TwinFigure, compare, concordance, released_area
from hapax.evaluation.entailment.pairs import EntailmentPair
from hapax.evaluation.entailment.perturbations import (
    Entities,
    Frequency,
    random_premises,
    rare_and_frequent,
    swapped,
)
from hapax.evaluation.entailment.scorers import EntailmentScorer, FileScorer, Measure, VisibleSides
from hapax.evaluation.shared.drawing import COLOURS, file_name, single, write_figure
from hapax.evaluation.shared.estimates import NOTHING, Estimate, of_groups
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Remedy, Setting

ATTESTED = 0.5
"""P(yes) from which on a model affirms a hypothesis alone."""

FEWEST_SHARE = 0.05
"""A model that affirms fewer or more than all but this share of the hypotheses is split at its median instead."""

FEWEST = 10
"""Fewest pairs on which a condition is measured."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A scorer's behaviour on some pairs, changed or selected.

    `affirmed`: share of pairs with at least the threshold; `rel` AUCREL and `order` concordance, nan where all labels
    are equal. `against`: difference of `affirmed` from that of the condition which it is compared with.
    """

    name: str
    pairs: int
    affirmed: Estimate
    rel: Estimate = NOTHING
    order: Estimate = NOTHING
    against: Estimate = NOTHING


@dataclass(frozen=True)
class BiasAudit:
    """All conditions of a scorer on a set. `notes`: conditions that could not be measured, and why."""

    scorer: str
    threshold: float
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Condition]:
        return {condition.name: condition for condition in self.conditions}


@dataclass(frozen=True)
class AuditSetting:
    """Resources of an audit: word frequency, entities by list, and the model's judgement of sentences.

    `attest` gives P(yes) of sentences; without it, a scorer that takes hypotheses alone judges them itself.
    """

    frequency: Frequency
    entities: Mapping[str, Entities] = field(default_factory=dict)
    attest: Measure | None = None
    seed: int = 0


WHOLE = "as given"
HYPOTHESIS_ONLY = "hypothesis alone"
RANDOM, RANDOM_TYPED = "random premise", "random premise, same types"
RARE, FREQUENT = "rare entities", "frequent entities"
ATTESTED_PAIRS, UNATTESTED_PAIRS = "hypothesis affirmed alone", "hypothesis not affirmed alone"
ATTESTATION_AGREES, ATTESTATION_DIFFERS = "attestation agrees with the label", "attestation contradicts the label"
COMMONER, RARER = "hypothesis commoner than premise", "hypothesis rarer than premise"
FREQUENCY_AGREES, FREQUENCY_DIFFERS = "frequency agrees with the label", "frequency contradicts the label"


def audit(scorer: EntailmentScorer, pairs: Sequence[EntailmentPair], setting: AuditSetting) -> BiasAudit:
    """Measure a scorer under every condition that it can be asked about.

    At the threshold as many of the given pairs are affirmed as are true. Files have scores of the given pairs alone,
    so for them only halves of these are measured.
    """
    return _Audit(scorer, list(pairs), setting).run()


class _Audit:
    """Scores of one scorer, and the conditions measured so far."""

    def __init__(self, scorer: EntailmentScorer, pairs: list[EntailmentPair], setting: AuditSetting) -> None:
        self.scorer, self.pairs, self.setting = scorer, pairs, setting
        self.scores = scorer.scores(pairs)
        self.labels = [pair.entailed for pair in pairs]
        # As many pairs are affirmed as are true, up to ties: the best F1 of a scorer at chance affirms everything.
        self.threshold = sorted(self.scores, reverse=True)[max(sum(self.labels), 1) - 1]
        self.affirmed = [score >= self.threshold for score in self.scores]
        self.conditions: list[Condition] = []
        self.notes: list[str] = []

    def run(self) -> BiasAudit:
        everything = range(len(self.pairs))
        self._add(WHOLE, everything)
        if self.scorer.sees is VisibleSides.BOTH:
            self._add_changed(HYPOTHESIS_ONLY, [pair.hypothesis_only for pair in self.pairs], labelled=True)
        # A file has the scores of its own pairs alone.
        if self.scorer.sees is VisibleSides.BOTH and not isinstance(self.scorer, FileScorer):
            self._random_premises()
            self._other_entities()
        self._attestation()
        self._frequency()
        return BiasAudit(self.scorer.name, self.threshold, tuple(self.conditions), tuple(self.notes))

    def _random_premises(self) -> None:
        for name, typed in ((RANDOM, False), (RANDOM_TYPED, True)):
            changed = random_premises(self.pairs, typed, self.setting.seed)
            # Every label is false now, so there is no area to measure.
            self._add_changed(name, changed, labelled=False)

    def _other_entities(self) -> None:
        rare, frequent = rare_and_frequent(self.pairs, self.setting.frequency)
        for name, entities in {RARE: rare, FREQUENT: frequent, **self.setting.entities}.items():
            self._add_changed(name, swapped(self.pairs, entities, self.setting.seed), labelled=True)

    def _add_changed(self, name: str, changed: Sequence[EntailmentPair | None], labelled: bool) -> None:
        chosen = [number for number, pair in enumerate(changed) if pair is not None]
        if len(chosen) < FEWEST:
            self.notes.append(f"{name}: only {len(chosen)} pairs can be changed so, fewer than {FEWEST}")
            return
        scores = self.scorer.scores([pair for pair in changed if pair is not None])
        affirmed = [score >= self.threshold for score in scores]
        # Paired: the change is that of the same pairs, before and after.
        before = [self.affirmed[number] for number in chosen]
        change = self._estimate(_difference, chosen, affirmed, before)
        condition = self._condition(name, chosen, affirmed, scores if labelled else None)
        self.conditions.append(replace(condition, against=change))

    def _attestation(self) -> None:
        attested = self._attested()
        if attested is None:
            self.notes.append(
                f"attestation: {self.scorer.name} has no judgement of hypotheses alone; give their scores, as in "
                "scores:FILE+TWIN"
            )
            return
        if len(set(attested)) < 2:
            self.notes.append("attestation: no hypothesis scores above the median, so there are no halves")
            return
        self._halves(attested, (ATTESTED_PAIRS, UNATTESTED_PAIRS), (ATTESTATION_AGREES, ATTESTATION_DIFFERS))

    def _attested(self) -> list[bool] | None:
        """True for each hypothesis that is affirmed without a premise; None if nothing can judge them alone."""
        if self.setting.attest is not None:
            sentences = [f"{pair.hypothesis.sentence}." for pair in self.pairs]
            judged, threshold = self.setting.attest(sentences), ATTESTED
        elif self.scorer.sees is None:
            return None
        else:
            judged = self.scorer.scores([pair.hypothesis_only for pair in self.pairs])
            threshold = self.threshold
        attested = [score >= threshold for score in judged]
        share = sum(attested) / len(attested)
        if not FEWEST_SHARE <= share <= 1 - FEWEST_SHARE:
            median = float(np.median(judged))
            attested = [score > median for score in judged]
            self.notes.append(
                f"attestation: {share:.0%} of the hypotheses are affirmed alone; those above the median, {median:.3f}, "
                "are taken instead"
            )
        return attested

    def _frequency(self) -> None:
        premises, hypotheses = [pair.premise for pair in self.pairs], [pair.hypothesis for pair in self.pairs]
        # A whole sentence stands in the place of the subject and has no predicate.
        premise = self.setting.frequency([triple.predicate or triple.subject for triple in premises])
        hypothesis = self.setting.frequency([triple.predicate or triple.subject for triple in hypotheses])
        commoner = [own > of_premise for own, of_premise in zip(hypothesis, premise, strict=True)]
        if len(set(commoner)) < 2:
            self.notes.append("frequency: all hypotheses are on one side of their premises")
            return
        self._halves(commoner, (COMMONER, RARER), (FREQUENCY_AGREES, FREQUENCY_DIFFERS))

    def _halves(self, cue: Sequence[bool], sides: tuple[str, str], halves: tuple[str, str]) -> None:
        """The pairs where the cue holds and where not, and those where it equals the label and where not."""
        with_cue = [number for number, holds in enumerate(cue) if holds]
        without = [number for number, holds in enumerate(cue) if not holds]
        # Over all pairs: a resample needs pairs with and without the cue.
        change = self._estimate(_contrast, range(len(cue)), self.affirmed, cue)
        self._add(sides[0], with_cue, change)
        self._add(sides[1], without)
        for name, agrees in zip(halves, (True, False), strict=True):
            self._add(name, [number for number, holds in enumerate(cue) if (holds == self.labels[number]) is agrees])

    def _add(self, name: str, chosen: Sequence[int], change: Estimate = NOTHING) -> None:
        if len(chosen) < FEWEST:
            self.notes.append(f"{name}: only {len(chosen)} pairs, fewer than {FEWEST}")
            return
        scores = [self.scores[number] for number in chosen]
        condition = self._condition(name, chosen, [self.affirmed[number] for number in chosen], scores)
        self.conditions.append(replace(condition, against=change))

    def _condition(
        self, name: str, chosen: Sequence[int], affirmed: Sequence[bool], scores: Sequence[float] | None
    ) -> Condition:
        share = self._estimate(_first_mean, chosen, affirmed, affirmed)
        labels = [self.labels[number] for number in chosen]
        if scores is None or len(set(labels)) < 2:
            return Condition(name, len(chosen), share)
        clusters = [pair_and_converse(self.pairs[number]) for number in chosen]
        figures = {"rel": released_area, "order": concordance}
        compared: dict[str, TwinFigure] = compare(labels, [scores], figures, clusters, self.setting.seed)
        return Condition(name, len(chosen), share, compared["rel"].whole, compared["order"].whole)

    def _estimate(
        self, statistic: Callable[[Any], float], chosen: Sequence[int], first: Sequence[bool], second: Sequence[bool]
    ) -> Estimate:
        """A statistic of two columns of zeros and ones; a pair and its converse are resampled together."""
        clusters: dict[object, list[tuple[float, float]]] = {}
        for number, *cells in zip(chosen, first, second, strict=True):
            clusters.setdefault(pair_and_converse(self.pairs[number]), []).append((float(cells[0]), float(cells[1])))
        return of_groups(statistic, [np.array(rows) for rows in clusters.values()])


def _first_mean(rows: Any) -> float:
    return float(np.mean(rows[:, 0]))


def _difference(rows: Any) -> float:
    return float(np.mean(rows[:, 0] - rows[:, 1]))


def _contrast(rows: Any) -> float:
    """Share of the first column where the second is 1, less that where it is 0; nan if either never is."""
    with_cue, without = rows[rows[:, 1] == 1, 0], rows[rows[:, 1] == 0, 0]
    return float(np.mean(with_cue) - np.mean(without)) if len(with_cue) and len(without) else math.nan


# --- report -----------------------------------------------------------------------------------------------------------


def audit_result(audits: Sequence[BiasAudit]) -> ExperimentResult:
    """A table for each scorer, all figures, and the findings in words."""
    tables, details, notes = [], [], []
    for single_audit in audits:
        rows = []
        for condition in single_audit.conditions:
            figures = (condition.affirmed, condition.rel, condition.order)
            rows.append((condition.name, str(condition.pairs), *(_text(figure) for figure in figures)))
        columns = ("condition", "pairs", "affirmed", "AUCREL", "concordance")
        tables.append(ResultTable(single_audit.scorer, columns, rows))
        details += [f"{single_audit.scorer}: {sentence}" for sentence in findings(single_audit)]
        notes += [f"{single_audit.scorer}: {note}" for note in single_audit.notes]
    return ExperimentResult(tables, [_figures(single_audit) for single_audit in audits], details, notes)


def findings(single_audit: BiasAudit) -> Iterator[str]:
    """The conclusions at 95 %, in words."""
    known = single_audit.by_name
    for name in (RANDOM_TYPED, RANDOM):
        if name in known:
            share = known[name].affirmed
            verdict = "affirms what no premise supports" if share.low > FEWEST_SHARE else "hardly affirms it"
            yield f"with a {name} it still affirms {_share(share)} of the pairs: it {verdict}."
            break
    # Random premises are reported above, and conditions of the two cues below.
    for name, condition in known.items():
        if name in (RANDOM, RANDOM_TYPED, ATTESTED_PAIRS, COMMONER) or math.isnan(condition.against.value):
            continue
        verb = _verdict(condition.against, "affirms more with", "affirms fewer with", "is not moved by")
        yield f"it {verb} {name} (difference {_text(condition.against)})."
    for name, cue in ((ATTESTED_PAIRS, "it affirms the hypothesis alone"), (COMMONER, "the hypothesis is commoner")):
        if name in known:
            change = known[name].against
            verb = _verdict(change, "affirms an entailment more often", "affirms one less often", "is not moved")
            yield f"it {verb} where {cue} (difference {_text(change)})."
    for agrees, differs, cue in (
        (ATTESTATION_AGREES, ATTESTATION_DIFFERS, "attestation"),
        (FREQUENCY_AGREES, FREQUENCY_DIFFERS, "frequency"),
    ):
        if agrees in known and differs in known and not math.isnan(known[differs].order.value):
            first, second = known[agrees], known[differs]
            apart = first.order.low > second.order.high
            verdict = "one figure for both hides this" if apart else "the intervals overlap"
            yield (
                f"AUCREL is {_text(first.rel)} where {cue} agrees with the label and {_text(second.rel)} where it "
                f"contradicts it: {verdict}."
            )


def _verdict(change: Estimate, more: str, less: str, same: str) -> str:
    return more if change.low > 0 else less if change.high < 0 else same


def _figures(single_audit: BiasAudit) -> dict[str, object]:
    return {
        "scorer": single_audit.scorer,
        "threshold": single_audit.threshold,
        "conditions": list(single_audit.conditions),
        "findings": list(findings(single_audit)),
        "notes": list(single_audit.notes),
    }


def _text(figure: Estimate) -> str:
    return figure.text(2, 2, empty="")


def _share(figure: Estimate) -> str:
    return figure.text(0, 0, scale=100).replace(" (", " % (", 1)


@checked
@extras_named()
def draw_audit(evaluation: Evaluation[list[BiasAudit]], folder: str | Path) -> list[Path]:
    """Write a figure for each scorer (PNG, SVG, CSV): the share affirmed under each condition, with its interval."""
    audits, folder = evaluation.value, Path(folder)
    if not audits:
        raise HapaxError("There is no audit to draw.", Remedy("Name a scorer with {}.", Setting("options.scorers")))
    written: list[Path] = []
    for single_audit in audits:
        rows = []
        for condition in single_audit.conditions:
            affirmed = condition.affirmed
            rows.append((condition.name, condition.pairs, affirmed.value, affirmed.low, affirmed.high))
        table = ResultTable("", ("condition", "pairs", "affirmed", "low", "high"), rows)
        height = 0.8 + 0.28 * len(rows)
        drawn = single((5.6, height), partial(_draw, single_audit))
        written += write_figure(folder / f"bias-{file_name(single_audit.scorer)}", drawn, table)
    return written


def _draw(single_audit: BiasAudit, axes: Any) -> None:
    # The axis grows upwards, so the first condition comes last and stands at the top.
    for place, condition in enumerate(reversed(single_audit.conditions)):
        share = condition.affirmed
        colour = COLOURS[0] if condition.name == WHOLE else COLOURS[1]
        axes.plot([share.low, share.high], [place, place], color=colour, linewidth=1.2)
        axes.plot([share.value], [place], "o", color=colour, markersize=4)
    names = [condition.name for condition in reversed(single_audit.conditions)]
    axes.set(xlim=(0, 1), xlabel="share of pairs affirmed", title=single_audit.scorer)
    axes.set_yticks(range(len(names)), names)
