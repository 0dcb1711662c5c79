"""Thresholds of the critic's scores. They move from call to call as in the LINK paper, or as in its released code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option

START = 0.85
STEP = 0.05
"""The LINK paper's start and step of the critic's threshold (appendix C)."""

TYPE_FLOOR = 0.65
"""The LINK paper's lowest threshold for data types (appendix C)."""

FACT_FLOOR = 0.70
"""Hapax's lowest threshold for facts, a step above that for types, because critics judge facts worse (appendix C).

The paper has none, so that its threshold may fall until a critic of pure noise passes everything. With the embedded
model, whose P(yes) are mostly near 0 or 1, the best of a question without a true value reaches 0.69.
"""

_DIGITS = 9
"""Digits to which thresholds are rounded: 0.85 - 0.05 would otherwise be 0.7999999999999999."""


@checked
@dataclass(frozen=True, slots=True)
class CriticRule:
    """The rule by which a threshold moves (LINK paper, appendix C).

    It begins at `start`. Each call that leaves nothing accepted lowers it by one step, until something is accepted.
    From then on each call whose best score reaches one step more raises it by that step.

    `fixed`: it does not move. `released`: LINK's released code, which sets it by the best score of the first call, at
    most to `start`. `falls_at_end`: if a question ends with nothing accepted, it goes on falling to the floor, and the
    stored scores are compared again. A question has too few calls for a modest critic otherwise.

    `str()` and `parse` write and read it as the options of the command line do. Raises HapaxError unless
    0 <= floor <= start <= cap <= 1 and the step is above 0.
    """

    start: float = START
    step: float = STEP
    floor: float = 0.0
    cap: float = 1.0
    fixed: bool = False
    released: bool = False
    falls_at_end: bool = False

    def __post_init__(self) -> None:
        # Negated, so that NaN is refused too.
        if not 0.0 <= self.floor <= self.start <= self.cap <= 1.0:
            numbers = f"floor {self.floor:g}, start {self.start:g} and cap {self.cap:g}"
            raise HapaxError(f"A threshold has {numbers}. Choose 0 <= floor <= start <= cap <= 1.")
        if not self.step > 0.0:
            raise HapaxError(f"The step of a threshold is {self.step:g}. Set it above 0.")

    @classmethod
    @checked
    def at(cls, value: float) -> CriticRule:
        """A threshold that does not move."""
        return cls(value, floor=value, fixed=True)

    @classmethod
    @checked
    def parse(cls, text: str) -> CriticRule:
        """The rule that a text states: `0.75` is a fixed threshold, `start=0.8,floor=0.6` a moving one.

        Omitted parts have Hapax's defaults. Raises HapaxError for any other text.
        """
        try:
            if "=" not in text:
                return cls.at(float(text))
            pairs = [assignment.split("=") for assignment in text.split(",")]
            numbers = {name.strip(): float(number) for name, number in pairs}
        except ValueError:  # of `float`, or of a pair that is none
            numbers, pairs = {}, []
        if not numbers or not set(numbers) <= set(_PARTS) or len(numbers) < len(pairs):
            parts = ",".join(f"{part}=NUMBER" for part in _PARTS)
            raise HapaxError(f"{text!r} is not a threshold. Give a number such as 0.75, or some of {parts}.")
        # The usual start gives way to a given floor or cap, and the usual floor to a given start.
        usual = min(numbers.get("cap", 1.0), max(START, numbers.get("floor", 0.0)))
        start = numbers.get("start", usual)
        floor = numbers.get("floor", min(FACT_FLOOR, start))
        return cls(start, numbers.get("step", STEP), floor, numbers.get("cap", 1.0), falls_at_end=True)

    def __str__(self) -> str:
        if self.fixed:
            return format(self.start, ".12g")
        return ",".join(f"{part}={getattr(self, part):.12g}" for part in _PARTS)


FactThreshold: TypeAlias = Annotated[
    CriticRule | None,
    Option(
        "P(yes) that facts need: a fixed number, or a threshold that moves with the scores of each question, by start, "
        "step, floor and cap.  [default: start=0.85,step=0.05,floor=0.7,cap=1]",
        metavariable="P|NAME=P,...",
        read=CriticRule.parse,
        in_any_folder=True,
    ),
]

TypeThreshold: TypeAlias = Annotated[
    CriticRule | None,
    Option(
        "P(yes) that the data types of values need, in the same form.  [default: 0.65]",
        metavariable="P|NAME=P,...",
        read=CriticRule.parse,
        in_any_folder=True,
    ),
]


_PARTS = ("start", "step", "floor", "cap")
"""Numbers of a moving threshold that a text may state."""

DEFAULT_RULE = CriticRule(floor=FACT_FLOOR, falls_at_end=True)
"""Hapax's own rule for facts."""


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
            # It rises only if the best score reaches the higher threshold and the cap allows it.
            return Threshold(raised, is_set=True) if max(scores) >= raised <= rule.cap else self
        best = max((*scores, *earlier))
        if best >= self.value:
            return Threshold(self.value, is_set=True)
        lowered = max(rule.floor, round(self.value - rule.step, _DIGITS))
        return Threshold(lowered, is_set=best >= lowered)

    def at_end(self, scores: Sequence[float], rule: CriticRule) -> Threshold:
        """The threshold at the end of a question with these scores in all: lower if nothing reached it so far."""
        if self.is_set or rule.fixed or not rule.falls_at_end or not scores:
            return self
        best, value = max(scores), self.value
        while best < value > rule.floor:
            value = max(rule.floor, round(value - rule.step, _DIGITS))
        return Threshold(value, is_set=best >= value)

    def _after_released(self, best: float, rule: CriticRule) -> Threshold:
        """The best score rounded down to a multiple of the step, at most `start`; a better call raises it."""
        # LINK's own floor of floats: 0.75 // 0.05 is 14.0, so that 0.75 reaches 0.7.
        reached = max(rule.floor, min(rule.start, round(best // rule.step * rule.step, _DIGITS)))
        return Threshold(max(reached, self.value) if self.is_set else reached, is_set=True)
