"""Audit of scorers: direction, answers that cannot all hold, and the probabilities of pairs by their scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import networkx as nx

from hapax.engine.certificates import JudgedScore, Promise, ThresholdChoice, choose_threshold
from hapax.engine.entailment import STRONG
from hapax.engine.entailment.graph import Edge, keep_margin, store_entailments
from hapax.evaluation.calibration.fitting import CalibrationMeasures, LabelledScore, best_map, held_out, measures
from hapax.evaluation.entailment.datasets import (
    SubGroup,
    chain_completions,
    directional_couples,
    negated_hypotheses,
    pair_and_converse,
    sub_groups,
)
from hapax.evaluation.entailment.pairs import (
    EntailmentPair,
    Key,
    Triple,
    TypedTriple,
    predicate_name,
    predicate_words,
    type_name,
)
from hapax.evaluation.entailment.scorers import EntailmentScorer, FileScorer, VisibleSides
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mean_share, share
from hapax.evaluation.shared.lazy import scipy
from hapax.evaluation.shared.result_tables import ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.kb.store import KnowledgeBase

DIRECTION = Promise(0.95, 0.9)
"""The promise on the directions of couples that a lead keeps."""

ANY_TYPE = "Thing"
"""Type of the arguments of a triple without types, as in entGraph's files."""


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Probability that each pair of a set is an entailment, by its score, learned from the other couples' labels.

    `method`: the map of scores that fits all pairs best, which is quantiles, logistic or isotonic; `measured`: what the
    probabilities are worth.
    """

    method: str
    values: tuple[float, ...]
    measured: CalibrationMeasures


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


# --- probabilities ----------------------------------------------------------------------------------------------------


def pair_probabilities(pairs: Sequence[EntailmentPair], scores: Sequence[float]) -> PairProbabilities:
    """Probabilities by `evaluation/calibration/fitting.py`; a pair and its converse are in the same fold."""
    # Scorers differ in scale, so each score is replaced by the share of scores below it, with half of its ties.
    quantiles = (scipy.stats.rankdata(scores) - 0.5) / len(scores)
    labels = [
        LabelledScore(float(quantile), pair.entailed, "", repr(pair_and_converse(pair)))
        for quantile, pair in zip(quantiles, pairs, strict=True)
    ]
    values = held_out(labels)
    method = best_map(labels).method
    return PairProbabilities("quantiles" if method == "raw" else method, tuple(values), measures(labels, values))


def lead(pairs: Sequence[EntailmentPair], probabilities: Sequence[float]) -> ThresholdChoice:
    """The least lead of a pair's probability over its converse's that keeps `DIRECTION` for the couples of a set."""
    judged = []
    for true, false in directional_couples(pairs):
        difference = probabilities[true] - probabilities[false]
        judged.append(JudgedScore(abs(difference), difference > 0))
    return choose_threshold(judged, [couple.score for couple in judged], DIRECTION)


def probable_edges(pairs: Sequence[EntailmentPair], probabilities: Sequence[float]) -> list[Edge]:
    """Entailments between the predicates of pairs, each with its pairs' mean probability.

    Left out are pairs that lack a predicate on a side, or a common argument.
    """
    by_atoms: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for pair, probability in zip(pairs, probabilities, strict=True):
        atoms = _atoms(pair)
        if atoms is not None:
            by_atoms[atoms].append(probability)
    edges = [Edge.of(*atoms, round(sum(values) / len(values), 6)) for atoms, values in by_atoms.items()]
    return [edge for edge in edges if not edge.is_trivial]


def _atoms(pair: EntailmentPair) -> tuple[str, str] | None:
    """Premise and hypothesis in rule notation."""
    order = _order(pair)
    if order is None:
        return None
    try:
        premise, hypothesis = map(triple_name, (pair.premise, pair.hypothesis))
    except ValueError:
        return None
    arguments = [
        f"{data_type} {variable}" for data_type, variable in zip(argument_types(pair.premise), "AB", strict=True)
    ]
    return f"{premise}({', '.join(arguments)})", f"{hypothesis}({', '.join(arguments[place] for place in order)})"


def triple_name(side: Triple) -> str:
    """The name of a triple's predicate in rules. Raises ValueError if it has no word for one."""
    relation = side.relation if isinstance(side, TypedTriple) else ""
    return predicate_name(predicate_words(relation or side.predicate), side.sentence)


def argument_types(side: Triple) -> tuple[str, str]:
    """The types of a triple's arguments in rule notation; things, where it has none."""
    first, second = side.types if isinstance(side, TypedTriple) else ("", "")
    return (type_name(first) or ANY_TYPE, type_name(second) or ANY_TYPE)


def _order(pair: EntailmentPair) -> tuple[int, int] | None:
    """Places of the hypothesis' arguments in the premise; None if they have none in common."""
    if pair.swapped:
        return (1, 0)
    subject, _, object_ = pair.premise.key
    hypothesis_subject, _, hypothesis_object = pair.hypothesis.key
    return (0, 1) if subject == hypothesis_subject or object_ == hypothesis_object else None


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
