"""Probabilities of the pairs of a labelled set by a scorer, and how far a direction must lead to be trusted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hapax.engine.certificates import JudgedScore, Promise, ThresholdChoice, choose_threshold
from hapax.engine.entailment.graph import Edge
from hapax.evaluation.calibration.fitting import CalibrationMeasures, LabelledScore, best_map, held_out, measures
from hapax.evaluation.entailment.datasets import directional_couples, pair_and_converse
from hapax.evaluation.entailment.pairs import (
    EntailmentPair,
    Triple,
    TypedTriple,
    predicate_name,
    predicate_words,
    type_name,
)

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


def pair_probabilities(pairs: Sequence[EntailmentPair], scores: Sequence[float]) -> PairProbabilities:
    """Probabilities by `evaluation/calibration/fitting.py`; a pair and its converse are in the same fold."""
    # Scorers differ in scale, so their scores are replaced by quantiles.
    quantiles = _quantiles(scores)
    labels = [
        LabelledScore(quantile, pair.entailed, "", repr(pair_and_converse(pair)))
        for quantile, pair in zip(quantiles, pairs, strict=True)
    ]
    values = held_out(labels)
    method = best_map(labels).method
    return PairProbabilities("quantiles" if method == "raw" else method, tuple(values), measures(labels, values))


def _quantiles(scores: Sequence[float]) -> list[float]:
    """Share of the scores below each, with half of its ties: above 0 and below 1."""
    ordered = sorted(scores)
    return [(bisect_left(ordered, score) + bisect_right(ordered, score)) / (2 * len(ordered)) for score in scores]


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
