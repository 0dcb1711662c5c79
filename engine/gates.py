"""The gates, pure: what decides whether a proposed value is believed, and which beams a step keeps.

Models score; the thresholds live here. The critic's threshold follows the LINK paper (appendix C) or LINK's released
code; the likelihood gate follows section 2.3. Nothing here asks, stores or rolls dice.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from grammar.terms import Value
from kb.records import Distribution

START = 0.85
STEP = 0.05
TYPE_FLOOR = 0.65
KEEP_SHARE = 0.75
PENALTY_WEIGHT = 3.0
"""How much ROUGE-L between values costs a beam of the head distribution, in nats a token (LINK's released code)."""

COMPARED_KEPT = 50_000
"""Values and pairs of values whose comparison is remembered: those of some rules, not of a whole run."""

_WORD = re.compile(r"[a-z0-9]+")


# --- the critic's threshold -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CriticRule:
    """How a threshold moves. `fixed`: not at all. `released`: set by the best score of the first call, at most `start`.

    Otherwise the paper's: start, one step down for each call that leaves nothing accepted until something is, from then
    on one step up for each call whose best value clears the higher threshold.
    """

    start: float = START
    step: float = STEP
    floor: float = 0.0
    cap: float = 1.0
    fixed: bool = False
    released: bool = False


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a score must reach now. Once `is_set`, it never falls."""

    value: float
    is_set: bool = False

    @classmethod
    def initial(cls, rule: CriticRule) -> Threshold:
        return cls(rule.start, is_set=rule.fixed)

    def after(self, scores: Sequence[float], earlier: Sequence[float], rule: CriticRule) -> Threshold:
        """The threshold after one call's scores; only their maximum counts, so their order does not.

        `earlier` are the scores of the calls before, which a lowered threshold may yet accept. A call without scores
        changes nothing: it says nothing about the critic.
        """
        if rule.fixed or not scores:
            return self
        if rule.released:
            return self._released(max(scores), rule)
        if self.is_set:
            raised = round(self.value + rule.step, 9)
            return Threshold(raised, is_set=True) if max(scores) >= raised <= rule.cap else self
        best = max((*scores, *earlier))
        if best >= self.value:
            return Threshold(self.value, is_set=True)
        lowered = max(rule.floor, round(self.value - rule.step, 9))
        return Threshold(lowered, is_set=best >= lowered)

    def _released(self, best: float, rule: CriticRule) -> Threshold:
        """LINK's code: the best score rounded down to a step, at most `start`; rises with a better call."""
        reached = max(rule.floor, min(rule.start, round(math.floor(round(best / rule.step, 9)) * rule.step, 9)))
        return Threshold(max(reached, self.value) if self.is_set else reached, is_set=True)


@dataclass(frozen=True, slots=True)
class Judged:
    """A value with its scores; None where there is nothing to judge (a number's type, an open question's fact).

    `probability` is the lowest of P(yes) over the claims about the value.
    """

    value: Value
    type_probability: float | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a judged value: which gate decided (`type` or `critic`), by which score and threshold, and why."""

    judged: Judged
    accepted: bool
    gate: str
    score: float | None
    threshold: float | None
    reason: str


class CriticGate:
    """The two thresholds of one question, fed call by call. Verdicts follow the thresholds of the moment they are read.

    `prior` are the probabilities of the values before in the beam: LINK's code judges the mean of the whole beam. With
    `fact_first` every value moves the factual threshold, otherwise only those of the right type do.
    """

    def __init__(
        self, type_rule: CriticRule, fact_rule: CriticRule, prior: tuple[float, ...] = (), fact_first: bool = False
    ) -> None:
        self._type_rule, self._fact_rule = type_rule, fact_rule
        self._prior, self._fact_first = prior, fact_first
        self.type_threshold = Threshold.initial(type_rule)
        self.fact_threshold = Threshold.initial(fact_rule)
        self._judged: list[Judged] = []
        self._once_accepted: set[int] = set()

    def add(self, batch: Sequence[Judged]) -> int:
        """Take one call's values; gives how many of them are accepted now."""
        before = len(self._judged)
        types = [judged.type_probability for judged in self._judged]
        self.type_threshold = self.type_threshold.after(
            _given(judged.type_probability for judged in batch), _given(types), self._type_rule
        )
        self.fact_threshold = self.fact_threshold.after(
            self._fact_scores(batch), self._fact_scores(self._judged), self._fact_rule
        )
        self._judged.extend(batch)
        accepted = {place for place, judged in enumerate(self._judged) if self._passes(judged)}
        self._once_accepted |= accepted
        return sum(place >= before for place in accepted)

    @property
    def verdicts(self) -> list[Verdict]:
        """One verdict per value, in the order they came."""
        return [self._verdict(judged, place in self._once_accepted) for place, judged in enumerate(self._judged)]

    @property
    def accepted(self) -> list[Judged]:
        return [judged for judged in self._judged if self._passes(judged)]

    def _fact_scores(self, batch: Sequence[Judged]) -> list[float]:
        return _given(self._score(judged) for judged in batch if self._fact_first or self._type_passes(judged))

    def _score(self, judged: Judged) -> float | None:
        if judged.probability is None or not self._prior:
            return judged.probability
        return fmean((*self._prior, judged.probability))

    def _type_passes(self, judged: Judged) -> bool:
        return judged.type_probability is None or judged.type_probability >= self.type_threshold.value

    def _passes(self, judged: Judged) -> bool:
        score = self._score(judged)
        return self._type_passes(judged) and (score is None or score >= self.fact_threshold.value)

    def _verdict(self, judged: Judged, once_accepted: bool) -> Verdict:
        score = self._score(judged)
        checks = [
            ("type", judged.type_probability, self.type_threshold.value, "of its type"),
            ("critic", score, self.fact_threshold.value, "true"),
        ]
        if self._fact_first:
            checks.reverse()
        for gate, reached, threshold, what in checks:
            if reached is not None and reached < threshold:
                reason = f"P({what}) {reached:.3f} is below the threshold {threshold:.2f}"
                if once_accepted:
                    reason += ", which rose after it was accepted"
                return Verdict(judged, False, gate, reached, threshold, reason)
        gate, reached, threshold, what = next((c for c in reversed(checks) if c[1] is not None), checks[0])
        if reached is None:
            return Verdict(judged, True, gate, None, None, "nothing to judge")
        return Verdict(judged, True, gate, reached, threshold, f"P({what}) {reached:.3f} reaches {threshold:.2f}")


# --- the likelihood gate ----------------------------------------------------------------------------------------------


def keep_count(count: int, share: float, beam: int) -> int:
    """How many of `count` beams a step keeps: the share, rounded up, and never more than `beam`."""
    return min(beam, math.ceil(round(share * count, 9)))


def kept(
    scores: Sequence[float], ties: Sequence[object], distribution: Distribution, share: float, beam: int
) -> list[int]:
    """Positions of the beams that stay, best first: the least likely for the long tail, the likeliest for the head.

    `ties` decide between equal scores, so that the result depends on the set of beams alone.
    """
    sign = -1.0 if distribution is Distribution.HEAD else 1.0
    order = sorted(range(len(scores)), key=lambda place: (sign * scores[place], repr(ties[place])))
    return order[: keep_count(len(scores), share, beam)]


def repetition_penalty(value: Value, earlier: Sequence[Value]) -> float:
    """LINK's penalty for the head: 3 x ROUGE-L between the new value and each value before it in the beam."""
    return PENALTY_WEIGHT * math.fsum(_rouge_l(str(value), str(other)) for other in earlier)


def random_score(seed: int, *parts: object) -> float:
    """A number in [0, 1) that depends on its arguments alone: the ranker of the paper's ablation."""
    digest = hashlib.sha256(repr((seed, *parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


@lru_cache(COMPARED_KEPT)
def _words(text: str) -> tuple[str, ...]:
    """The words that ROUGE compares, by its own tokenizer's rule."""
    return tuple(_WORD.findall(text.lower()))


@lru_cache(COMPARED_KEPT)
def _rouge_l(one: str, other: str) -> float:
    """ROUGE-L (F measure): twice the longest common subsequence of words over the number of words."""
    from rapidfuzz.distance import Indel

    first, second = _words(one), _words(other)
    return Indel.normalized_similarity(first, second) if first and second else 0.0


def _given(scores: Iterable[float | None]) -> list[float]:
    return [score for score in scores if score is not None]
