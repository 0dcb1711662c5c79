"""Learning from labelled sentences: weights of the theory's rules, the least probability, and a learning curve.

Weights are those of a log-linear model over the difference of the two readings, fitted by maximum a posteriori from the
priors of `weighing.py`. Everything is measured on folds of families that a fit did not see.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.lazy import np, scipy
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.reasoner.reasoning import Reasoner, StatedSentence
from hapax.evaluation.winograd.reasoner.weighing import MARGIN_ALONE, RuleWeights

FOLDS = 8
PRECISION = 2.0
"""Precision of the prior of a theory's rule: its weight strays by about 0.7 from where it starts."""

INDUCED_PRECISION = 8.0
"""Precision of the prior of an acquired rule, which starts from 0."""

TARGET = 0.9
"""Share of right answers that the least probability is chosen for."""

CURVE = (0.125, 0.25, 0.5, 1.0)
"""Shares of the training families on the learning curve."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A sentence, what it states, and the names of the rules that speak for either reading."""

    item: WinogradItem
    stated: StatedSentence | None
    evidence: tuple[tuple[str, ...], tuple[str, ...]]

    def vector(self) -> dict[str, int]:
        """For each rule 1 if it speaks for the first reading alone, -1 for the second alone."""
        # A rule that speaks for both readings changes nothing and is left out.
        first, second = map(set, self.evidence)
        return dict.fromkeys(first - second, 1) | dict.fromkeys(second - first, -1)


def observed(items: Iterable[WinogradItem], reasoner: Reasoner) -> list[Observation]:
    """The items as the reasoner reads them."""
    found = []
    for item in items:
        stated = reasoner.stated(item.text, item.options, item.pronoun, item.pronoun_start)
        readings = ((), ()) if stated is None else tuple(reading.evidence for reading in reasoner.readings(stated))
        found.append(Observation(item, stated, (readings[0], readings[1])))
    return found


Fold = tuple[list[Observation], list[Observation]]


def fitted(observations: Sequence[Observation], priors: Mapping[str, float]) -> dict[str, float]:
    """Weights of all rules with a prior."""
    names = list(priors)
    place = {name: number for number, name in enumerate(names)}
    start = np.array([priors[name] for name in names])
    # The theory's rules start above 0, acquired ones at 0.
    precision = np.where(start > 0, PRECISION, INDUCED_PRECISION)
    design = np.zeros((len(observations), len(names)))
    for row, observation in enumerate(observations):
        for name, value in observation.vector().items():
            # Turned so that a positive entry speaks for the right reading.
            design[row, place[name]] = value if observation.item.answer == 0 else -value
    if not names:
        return {}

    return dict(zip(names, map(float, _most_likely(design, start, precision)), strict=True))


def _most_likely(design: np.ndarray, start: np.ndarray, precision: np.ndarray | float) -> np.ndarray:
    """Weights by maximum a posteriori. `design`: rows of values, above 0 where they speak for what is right."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins, strayed = design @ weights, weights - start
        # The negative log posterior; logaddexp(0, -m) is log(1 + exp(-m)) without overflow.
        value = float(np.logaddexp(0, -margins).sum() + (precision * strayed**2).sum() / 2)
        # The second value is its gradient (`jac=True`).
        return value, -(design.T @ (1 / (1 + np.exp(margins)))) + precision * strayed

    found: np.ndarray = scipy.optimize.minimize(loss, start.copy(), jac=True, method="L-BFGS-B").x
    return found


@dataclass(frozen=True, slots=True)
class HeldOutAnswer:
    """The better reading of a sentence by weights that did not see its family; `sureness` 0.5 means no preference.

    `signs`: values by which its sureness is estimated.
    """

    item: WinogradItem
    sureness: float
    right: bool
    signs: Mapping[str, float]


def folds_of(observations: Sequence[Observation], share_of_families: float) -> Iterator[Fold]:
    """Folds by families: training sentences, of this share of the other families, and the sentences to test."""
    for fold in range(FOLDS):
        # By family: the two sentences of a schema are never in different folds.
        inside = [int(_chance("fold", seen.item) * FOLDS) == fold for seen in observations]
        training = [
            seen
            for seen, tested in zip(observations, inside, strict=True)
            if not tested and _chance("share", seen.item) < share_of_families
        ]
        yield training, [seen for seen, tested in zip(observations, inside, strict=True) if tested]


def answered(observations: Iterable[Observation], weights: Mapping[str, float]) -> list[HeldOutAnswer]:
    """The better reading of each sentence by these weights."""
    answers = []
    by_margin = RuleWeights(weights, 0.5)
    for observation in observations:
        difference = sum(weights[name] * value for name, value in observation.vector().items())
        right = difference != 0 and (difference > 0) is (observation.item.answer == 0)
        is_earlier = observation.stated is not None and observation.stated.is_earlier
        signs = by_margin.signs(observation.evidence, is_earlier)
        answers.append(HeldOutAnswer(observation.item, by_margin.sureness(signs), right, signs))
    return answers


def confidence_of(answers: Iterable[HeldOutAnswer]) -> dict[str, float]:
    """Weights of the signs of sureness, by which of these answers are right."""
    design = [
        [value if answer.right else -value for value in answer.signs.values()]
        for answer in answers
        if answer.signs["margin"]
    ]
    start = np.array(list(MARGIN_ALONE.values()))
    if not design:
        return dict(MARGIN_ALONE)
    return dict(zip(MARGIN_ALONE, map(float, _most_likely(np.array(design), start, 1.0)), strict=True))


def calibrated(answers: Sequence[HeldOutAnswer]) -> list[HeldOutAnswer]:
    """The answers with a sureness by weights of the signs that did not see their families either."""
    folds = [int(_chance("confidence", answer.item) * FOLDS) for answer in answers]
    weighed = [
        RuleWeights({}, 0.5, confidence_of(answer for answer, at in zip(answers, folds, strict=True) if at != fold))
        for fold in range(FOLDS)
    ]
    return [
        replace(answer, sureness=weighed[fold].sureness(answer.signs))
        for answer, fold in zip(answers, folds, strict=True)
    ]


def _chance(purpose: str, item: WinogradItem) -> float:
    """A number below 1 by a hash of the family, so that sentences of one schema stay together."""
    digest = hashlib.sha256(f"{purpose}:{item.family.rpartition(':')[2]}".encode()).hexdigest()
    return int(digest[:12], 16) / 16**12


@dataclass(frozen=True, slots=True)
class Covered:
    """Share of answered sentences, and of these the right ones."""

    answered: Estimate
    right: Estimate


def covered(answers: Sequence[HeldOutAnswer], least: float) -> Covered:
    """Coverage and accuracy at a least probability."""
    given = [answer for answer in answers if answer.sureness > 0.5 and answer.sureness >= least]
    chosen = {id(answer) for answer in given}
    return Covered(share([id(answer) in chosen for answer in answers]), share([answer.right for answer in given]))


def least_probability(answers: Sequence[HeldOutAnswer], target: float = TARGET) -> float:
    """The least probability with the largest coverage at which the target share of answers is right."""
    ranked = sorted((answer for answer in answers if answer.sureness > 0.5), key=lambda answer: -answer.sureness)
    best, right = 1.0, 0
    for number, answer in enumerate(ranked, 1):
        right += answer.right
        # The last place at which the target holds has the largest coverage.
        if right / number >= target:
            best = answer.sureness
    # Rounded down, so that the answer that was counted stays in.
    return int(best * 1000) / 1000


def weights_text(weights: RuleWeights, observations: Sequence[Observation]) -> str:
    """Weights as TOML, each with the sentences in which it speaks for the right reading alone, and its families."""
    right, wrong = Counter[str](), Counter[str]()
    for observation in observations:
        for name, value in observation.vector().items():
            (right if (value > 0) is (observation.item.answer == 0) else wrong)[name] += 1
    families: dict[str, set[tuple[str, str]]] = {name: set() for name in weights.weights}
    for observation in observations:
        for name in {*observation.evidence[0], *observation.evidence[1]}:
            families.setdefault(name, set()).add((observation.item.source, observation.item.family))
    lines = [
        "# Weights of the rules in nats, by `hapax evaluate winograd learn`; behind each: number of sentences with",
        "# the right and the wrong reading. `least`: the probability below which there is no answer.",
        f"least = {weights.least}",
        "",
        "[weights]",
    ]
    for name, weight in weights.weights.items():
        lines.append(f"{name} = {weight:.2f}  # {right[name]} right, {wrong[name]} wrong")
    lines += ["", "# Log odds of a right answer by the signs of how sure it is.", "[confidence]"]
    lines += [f"{name} = {weight:.3f}" for name, weight in weights.confidence.items()]
    lines += ["", "# Families of schemas in which each rule speaks for a reading.", "[families]"]
    lines += [f"{name} = {len(families[name])}" for name in weights.weights]
    return "\n".join(lines) + "\n"
