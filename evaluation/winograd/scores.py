"""How well pairs are answered: single and pair accuracy, consistency, unparsed replies, and McNemar's test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats  # type: ignore[import-untyped]  # ships no types

from evaluation.estimates import Estimate, share


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one sentence. `strict`: the option read, None where none was; `released`: 0, 1 or -1."""

    item: str
    pair: str
    family: str
    gold: int
    strict: int | None
    released: int

    @property
    def right(self) -> bool:
        return self.strict == self.gold

    @property
    def right_as_released(self) -> bool:
        return self.released == self.gold


Right = Callable[[Answer], bool]


@dataclass(frozen=True, slots=True)
class Scores:
    """The paper's three figures. Intervals are Wilson's, over sentences, pairs and families."""

    single: Estimate
    pair: Estimate
    consistency: Estimate

    @classmethod
    def of(cls, answers: Sequence[Answer], right: Right) -> Scores:
        return cls(
            share([right(one) for one in answers]),
            share(list(_whole(answers, lambda one: one.pair, right))),
            share(list(_whole(answers, lambda one: one.family, right))),
        )

    def to_json(self) -> dict[str, Any]:
        return {name: estimate_json(getattr(self, name)) for name in ("single", "pair", "consistency")}


@dataclass(frozen=True, slots=True)
class Measured:
    """Scores by the strict and by the released reading of the same replies, and the share that is not read strictly."""

    strict: Scores
    released: Scores
    unparsed: Estimate

    def to_json(self) -> dict[str, Any]:
        return {
            "strict": self.strict.to_json(),
            "released": self.released.to_json(),
            "unparsed": estimate_json(self.unparsed),
        }


def measure(answers: Sequence[Answer]) -> Measured:
    """All figures of one method on one source.

    Consistency is the share of families of which every sentence is answered right, 1/m sum floor(C/N) (section 3.3).
    """
    return Measured(
        Scores.of(answers, lambda one: one.right),
        Scores.of(answers, lambda one: one.right_as_released),
        share([one.strict is None for one in answers]),
    )


@dataclass(frozen=True, slots=True)
class McNemar:
    """Two methods on the same sentences: how many each alone answers right, and the exact two-sided p-value."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: Iterable[Answer], second: Iterable[Answer]) -> McNemar | None:
    """McNemar's exact test on the sentences that both answered; None if there are none."""
    rights = {one.item: one.right for one in first}
    both = [(rights[one.item], one.right) for one in second if one.item in rights]
    if not both:
        return None
    one, other = both.count((True, False)), both.count((False, True))
    p_value = float(stats.binomtest(one, one + other).pvalue) if one + other else 1.0
    return McNemar(one, other, p_value)


def estimate_json(estimate: Estimate) -> Mapping[str, float | int | None]:
    """The value, its interval and the number of cases; None for what cannot be measured."""
    told = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {**{name: None if value != value else value for name, value in told.items()}, "count": estimate.count}  # noqa: PLR0124  # only nan differs from itself


def _whole(answers: Iterable[Answer], group: Callable[[Answer], str], right: Right) -> Iterable[bool]:
    grouped: dict[str, bool] = {}
    for one in answers:
        grouped[group(one)] = grouped.get(group(one), True) and right(one)
    return grouped.values()
