"""Thresholds of the critic's scores. They move from call to call as in the LINK paper, or as in its released code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

START = 0.85
STEP = 0.05
"""The LINK paper's start and step of the critic's threshold (appendix C)."""

TYPE_FLOOR = 0.65
"""The LINK paper's lowest threshold for data types (appendix C)."""

_DIGITS = 9
"""Digits to which thresholds are rounded: 0.85 - 0.05 would otherwise be 0.7999999999999999."""


@dataclass(frozen=True, slots=True)
class CriticRule:
    """The rule by which a threshold moves (LINK paper, appendix C).

    It begins at `start`. Each call that leaves nothing accepted lowers it by one step, until something is accepted.
    From then on each call whose best score reaches one step more raises it by that step.

    `fixed`: it does not move. `released`: LINK's released code, which sets it by the best score of the first call, at
    most to `start`.
    """

    start: float = START
    step: float = STEP
    floor: float = 0.0
    cap: float = 1.0
    fixed: bool = False
    released: bool = False


DEFAULT_RULE = CriticRule()


@dataclass(frozen=True, slots=True)
class Threshold:
    """The score that is accepted now. Once `is_set`, it never falls."""

    value: float
    is_set: bool = False

    @classmethod
    def initial(cls, rule: CriticRule) -> Threshold:
        return cls(rule.start, is_set=rule.fixed)

    def after(self, scores: Sequence[float], earlier: Sequence[float], rule: CriticRule) -> Threshold:
        """The threshold after one call's scores; only their maximum counts, so their order does not.

        `earlier`: scores of the calls before, which a lowered threshold may still accept.
        """
        # A call without scores says nothing about the critic, so it changes nothing.
        if rule.fixed or not scores:
            return self
        if rule.released:
            return self._after_released(max(scores), rule)
        if self.is_set:
            raised = round(self.value + rule.step, _DIGITS)
            return Threshold(raised, is_set=True) if max(scores) >= raised <= rule.cap else self
        best = max((*scores, *earlier))
        if best >= self.value:
            return Threshold(self.value, is_set=True)
        lowered = max(rule.floor, round(self.value - rule.step, _DIGITS))
        return Threshold(lowered, is_set=best >= lowered)

    def _after_released(self, best: float, rule: CriticRule) -> Threshold:
        """The best score rounded down to a multiple of the step, at most `start`; a better call raises it."""
        # LINK's own floor of floats: 0.75 // 0.05 is 14.0, so that 0.75 reaches 0.7.
        reached = max(rule.floor, min(rule.start, round(best // rule.step * rule.step, _DIGITS)))
        return Threshold(max(reached, self.value) if self.is_set else reached, is_set=True)
