"""Audits of scorers: what they affirm without a reason, direction, and answers that cannot all hold."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Any

import networkx as nx

from hapax.engine.certificates import ThresholdChoice
from hapax.engine.entailment import STRONG
from hapax.engine.entailment.graph import keep_margin, store_entailments
from hapax.evaluation.entailment.datasets import (
    Entities,
    Frequency,
    SubGroup,
    chain_completions,
    directional_couples,
    negated_hypotheses,
    pair_and_converse,
    random_premises,
    rare_and_frequent,
    sub_groups,
    swapped,
)
from hapax.evaluation.entailment.metrics import TwinFigure, compare, concordance, released_area
from hapax.evaluation.entailment.pairs import EntailmentPair, Key
from hapax.evaluation.entailment.probabilities import (
    DIRECTION,
    PairProbabilities,
    lead,
    pair_probabilities,
    probable_edges,
)
from hapax.evaluation.entailment.scorers import EntailmentScorer, FileScorer, Measure, VisibleSides
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mean_share, of_groups, share
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.results import ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.kb.store import KnowledgeBase

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
    return ExperimentResult(tables, [_bias_json(single_audit) for single_audit in audits], details, notes)


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


def _bias_json(single_audit: BiasAudit) -> dict[str, object]:
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


SETS_SHOWN = 5
"""Contradictory sets of each kind that are printed; `--json` has all."""

_NEGATIONS = frozenset({"not", "n't", "never", "no"})
_SUPPORT = frozenset({"do", "does", "did"})
"""Auxiliaries that a negated verb has and a plain one has not."""


class ContradictionKind(StrEnum):
    """Kinds of contradictory sets."""

    TRANSITIVITY = "transitivity"
    PARAPHRASE = "paraphrase"
    NEGATION = "negation"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A smallest set of answers that cannot all hold. `affirmed`: pairs in words; `denied`: the pair that follows."""

    kind: ContradictionKind
    affirmed: tuple[tuple[str, str], ...]
    denied: tuple[str, str] | None = None

    def __str__(self) -> str:
        chain = "; ".join(f"{premise} => {hypothesis}" for premise, hypothesis in self.affirmed)
        if self.denied is None:
            return f"affirmed: {chain}"
        return f"affirmed: {chain}; denied: {self.denied[0]} => {self.denied[1]}"


@dataclass(frozen=True, slots=True)
class DirectionFigures:
    """Direction of a scorer on couples, each a true pair and its false converse.

    `right`, `both`, `neither` and `wrong`: shares of couples of which the true pair alone, both, none or the converse
    alone is affirmed. `direction`: share of couples whose true pair scores higher, ties counting half. `calibrated`:
    the same after each score is reduced by that of its hypothesis without a premise, as contextual calibration does
    with a prompt without content (Zhao et al. 2021, section 4); nan if there are no such scores. `symmetry`: share of
    paraphrases of which both directions are affirmed or none is.
    """

    right: Estimate
    both: Estimate
    neither: Estimate
    wrong: Estimate
    direction: Estimate
    calibrated: Estimate
    symmetry: Estimate


@dataclass(frozen=True, slots=True)
class CheckedAnswers:
    """Contradictory sets among answers, the smallest first.

    `chains`: pairs that a chain of other affirmed pairs leads to; `negations`: couples of contrary hypotheses.
    """

    contradictions: tuple[Contradiction, ...]
    chains: int
    negations: int

    def of_kind(self, kind: ContradictionKind) -> list[Contradiction]:
        """The contradictory sets of a kind, the smallest first."""
        return [contradiction for contradiction in self.contradictions if contradiction.kind is kind]


@dataclass(frozen=True, slots=True)
class ConsistencyAudit:
    """A scorer's direction and contradictions on a set of pairs. Pairs that score `threshold` or more are affirmed.

    `lead`: how far the probability of a pair must be above that of its converse, so that its direction is right.
    """

    scorer: str
    pairs: tuple[EntailmentPair, ...]
    threshold: float
    figures: DirectionFigures
    answers: CheckedAnswers
    probabilities: PairProbabilities
    lead: ThresholdChoice


def consistency(
    scorer: EntailmentScorer, pairs: Sequence[EntailmentPair], threshold: float | None, completed: int, seed: int
) -> ConsistencyAudit:
    """Audit a scorer on a set. `threshold` None: as many pairs of the set are affirmed as are true, up to ties.

    `completed`: largest number of chains and of negated hypotheses that are made from the set and scored beside it.
    Scores of files exist for the pairs of the set alone, so nothing is completed there.
    """
    made: list[EntailmentPair] = []
    if scorer.sees is VisibleSides.BOTH and not isinstance(scorer, FileScorer):
        for steps in chain_completions(pairs, completed, seed):
            made += steps
        made += negated_hypotheses(pairs, completed, seed)
    # Together, so that a model is asked in one batch.
    scores = scorer.scores([*pairs, *made])
    own = scores[: len(pairs)]
    if threshold is None:
        # The score of the n-th pair for n true pairs; ties at it are affirmed as well.
        threshold = sorted(own, reverse=True)[max(sum(pair.entailed for pair in pairs), 1) - 1]
    affirmed = [score >= threshold for score in scores]
    answers = check_answers([*pairs, *made], affirmed)
    probabilities = pair_probabilities(pairs, own)
    return ConsistencyAudit(
        scorer.name,
        tuple(pairs),
        threshold,
        _figures(scorer, pairs, own, affirmed),
        answers,
        probabilities,
        lead(pairs, probabilities.values),
    )


def _figures(
    scorer: EntailmentScorer, pairs: Sequence[EntailmentPair], scores: Sequence[float], affirmed: Sequence[bool]
) -> DirectionFigures:
    couples = directional_couples(pairs)
    outcomes = [(affirmed[true], affirmed[false]) for true, false in couples]
    calibrated = NOTHING
    alone = _alone(scorer, pairs)
    if alone is not None:
        reduced = [score - without for score, without in zip(scores, alone, strict=True)]
        calibrated = mean_share([_wins(reduced[true], reduced[false]) for true, false in couples])
    return DirectionFigures(
        right=share([outcome == (True, False) for outcome in outcomes]),
        both=share([outcome == (True, True) for outcome in outcomes]),
        neither=share([outcome == (False, False) for outcome in outcomes]),
        wrong=share([outcome == (False, True) for outcome in outcomes]),
        direction=mean_share([_wins(scores[true], scores[false]) for true, false in couples]),
        calibrated=calibrated,
        symmetry=share(_symmetries(pairs, affirmed)),
    )


def _alone(scorer: EntailmentScorer, pairs: Sequence[EntailmentPair]) -> list[float] | None:
    """Scores of the hypotheses without a premise; None for a scorer of these alone, and for a file that has none."""
    if scorer.sees is VisibleSides.HYPOTHESIS or (isinstance(scorer, FileScorer) and scorer.sees is None):
        return None
    return scorer.scores([pair.hypothesis_only for pair in pairs])


def _wins(true: float, false: float) -> float:
    return 0.5 if true == false else float(true > false)


def _symmetries(pairs: Sequence[EntailmentPair], affirmed: Sequence[bool]) -> list[bool]:
    """For each couple of paraphrases in the set: True if both directions are affirmed or none is."""
    answers: defaultdict[object, dict[object, bool]] = defaultdict(dict)
    # `affirmed` goes on with the pairs that were made.
    for pair, group, holds in zip(pairs, sub_groups(pairs), affirmed, strict=False):
        if group is SubGroup.PARAPHRASES:
            answers[pair_and_converse(pair)].setdefault(pair.key, holds)
    return [len(set(ways.values())) == 1 for ways in answers.values() if len(ways) == 2]


# --- contradictions ---------------------------------------------------------------------------------------------------


def check_answers(pairs: Sequence[EntailmentPair], affirmed: Sequence[bool]) -> CheckedAnswers:
    """The sets of answers that cannot all hold; `affirmed` says for each pair that it is an entailment."""
    # None stands for a set that was checked and is consistent.
    chains = list(_chains(pairs, affirmed))
    negations = list(_negations(pairs, affirmed))
    contradictions = [contradiction for contradiction in (*chains, *negations) if contradiction is not None]
    contradictions.sort(key=lambda contradiction: len(contradiction.affirmed))
    return CheckedAnswers(tuple(contradictions), len(chains), len(negations))


def _chains(pairs: Sequence[EntailmentPair], affirmed: Sequence[bool]) -> Iterator[Contradiction | None]:
    """For each pair that a chain of two or more others leads to: the contradiction, None if the pair is affirmed."""
    graph: nx.DiGraph[Key] = nx.DiGraph()
    words: dict[Key, str] = {}
    answers: dict[tuple[Key, Key], bool] = {}
    for pair, holds in zip(pairs, affirmed, strict=True):
        # Of a repeated pair the first answer counts.
        answers.setdefault(pair.key, holds)
        for side in (pair.premise, pair.hypothesis):
            words.setdefault(side.key, side.sentence)
    graph.add_edges_from(key for key, holds in answers.items() if holds)
    for (premise, hypothesis), holds in answers.items():
        path = _shortest(graph, premise, hypothesis)
        if path is None:
            continue
        if holds:
            yield None
            continue
        steps = tuple((words[start], words[end]) for start, end in pairwise(path))
        # A step that is affirmed both ways is a paraphrase, which another pair takes for none.
        is_paraphrase = any(graph.has_edge(end, start) for start, end in pairwise(path))
        kind = ContradictionKind.PARAPHRASE if is_paraphrase else ContradictionKind.TRANSITIVITY
        yield Contradiction(kind, steps, (words[premise], words[hypothesis]))


def _shortest(graph: nx.DiGraph[Key], start: Key, end: Key) -> list[Key] | None:
    """A shortest path of two or more edges; None if there is none."""
    if start not in graph or end not in graph or start == end:
        return None
    # Without the direct edge: the pair itself is the answer in question. A view copies nothing.
    others = nx.restricted_view(graph, [], [(start, end)]) if graph.has_edge(start, end) else graph
    try:
        path: list[Key] = nx.shortest_path(others, start, end)
    except nx.NetworkXNoPath:
        return None
    return path


def _negations(pairs: Sequence[EntailmentPair], affirmed: Sequence[bool]) -> Iterator[Contradiction | None]:
    """For two pairs with one premise and contrary hypotheses: the contradiction if both are affirmed, else None."""
    sides: defaultdict[tuple[Key, tuple[str, ...]], dict[bool, int]] = defaultdict(dict)
    for number, pair in enumerate(pairs):
        stem, is_negated = _stem(pair.hypothesis.sentence)
        sides[pair.premise.key, stem].setdefault(is_negated, number)
    for by_polarity in sides.values():
        if len(by_polarity) < 2:
            continue
        if all(affirmed[number] for number in by_polarity.values()):
            both = (pairs[number] for number in by_polarity.values())
            steps = tuple((pair.premise.sentence, pair.hypothesis.sentence) for pair in both)
            yield Contradiction(ContradictionKind.NEGATION, steps)
        else:
            yield None


def _stem(sentence: str) -> tuple[tuple[str, ...], bool]:
    """The words of a sentence without negation, its auxiliary and endings in -s, and True if it was negated."""
    tokens = sentence.casefold().replace("n't", " n't").split()
    is_negated = any(token in _NEGATIONS for token in tokens)
    plain = [token for token in tokens if token not in _NEGATIONS]
    if is_negated:
        plain = [token for token in plain if token not in _SUPPORT]
    # "does not own" has no ending, "owns" has one.
    return tuple(token.removesuffix("s") for token in plain), is_negated


# --- report -----------------------------------------------------------------------------------------------------------


def consistency_result(audits: Sequence[ConsistencyAudit], notes: Sequence[str] = ()) -> ExperimentResult:
    """Couples, contradictions and probabilities of each scorer, and its smallest contradictory sets."""
    tables: list[ResultTable] = []
    details: list[str] = []
    for audit in audits:
        figures = audit.figures
        rows = [
            ("true pair alone affirmed", figures.right),
            ("both affirmed", figures.both),
            ("neither affirmed", figures.neither),
            ("false converse alone affirmed", figures.wrong),
            ("true pair scores higher", figures.direction),
            ("the same, less the hypothesis alone", figures.calibrated),
            ("paraphrases alike both ways", figures.symmetry),
        ]
        columns = ("couples", "number", "share, %")
        cells = [(name, str(figure.count), figure.text(1, 0, scale=100, empty="-")) for name, figure in rows]
        tables.append(ResultTable(audit.scorer, columns, cells))
        checked = {
            ContradictionKind.TRANSITIVITY: audit.answers.chains,
            ContradictionKind.PARAPHRASE: audit.answers.chains,
            ContradictionKind.NEGATION: audit.answers.negations,
        }
        counts = [(kind.value, str(len(audit.answers.of_kind(kind))), str(number)) for kind, number in checked.items()]
        columns = ("contradictory sets", "number", "checked")
        tables.append(ResultTable(f"{audit.scorer}: answers that cannot all hold", columns, counts))
        details += [f"{audit.scorer}: {sentence}" for sentence in _findings(audit)]
    return ExperimentResult(tables, [_plain(audit) for audit in audits], details, notes)


def _findings(audit: ConsistencyAudit) -> Iterator[str]:
    for kind in ContradictionKind:
        for contradiction in audit.answers.of_kind(kind)[:SETS_SHOWN]:
            yield f"{kind}: {contradiction}"
    measured = audit.probabilities.measured
    yield (
        f"probabilities by its scores ({audit.probabilities.method}): Brier {measured.brier.text(3, 3)}, calibration "
        f"error {measured.ece.text(3, 3)}, both on couples that were held out."
    )
    if audit.lead.threshold is None:
        lacking = "" if audit.lead.more_labels is None else f"; about {audit.lead.more_labels:,} more couples would do"
        yield f"no lead of its probabilities makes a direction sure enough: {audit.lead.reason}{lacking}."
    else:
        yield (
            f"directions with a lead of {audit.lead.threshold:.3f} or more in probability, {audit.lead.accepted} of "
            f"{audit.lead.pool} couples: {DIRECTION}."
        )


def _plain(audit: ConsistencyAudit) -> dict[str, object]:
    return {
        "scorer": audit.scorer,
        "threshold": audit.threshold,
        "couples": audit.figures,
        "chains": audit.answers.chains,
        "negations": audit.answers.negations,
        "contradictions": [
            {"kind": contradiction.kind, "affirmed": contradiction.affirmed, "denied": contradiction.denied}
            for contradiction in audit.answers.contradictions
        ],
        "probabilities": {"method": audit.probabilities.method, "measured": audit.probabilities.measured},
        "lead": audit.lead,
    }


@checked
def store_audited_entailments(kb: KnowledgeBase, audit: ConsistencyAudit, at_least: float = STRONG) -> int:
    """Store the audited pairs as facts `entails(P, Q, Probability)`, and the lead as margin of directions in checks.

    Returns the number of entailments, which have at least this probability.
    """
    edges = [edge for edge in probable_edges(audit.pairs, audit.probabilities.values) if edge.score >= at_least]
    stored = store_entailments(kb, edges)
    # From this lead on `check --db` takes a direction for sure.
    keep_margin(kb, audit.scorer, audit.lead.threshold)
    return stored
