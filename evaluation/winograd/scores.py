"""Scores of answered pairs: single and pair accuracy, consistency, unparsed replies, and McNemar's test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.lazy import scipy


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """Answer to a sentence. `strict`: the option read, or None if none was; `released`: 0, 1 or -1."""

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


Right = Callable[[SentenceAnswer], bool]


@dataclass(frozen=True, slots=True)
class Scores:
    """The paper's three scores, with Wilson intervals over sentences, pairs and families."""

    single: Estimate
    pair: Estimate
    consistency: Estimate

    @classmethod
    def of(cls, answers: Sequence[SentenceAnswer], right: Right) -> Scores:
        """Scores of the answers. `right` says which answers count as right."""
        pairs: dict[str, bool] = {}
        families: dict[str, bool] = {}
        for answer in answers:
            # One wrong sentence makes its pair and its family wrong.
            pairs[answer.pair] = pairs.get(answer.pair, True) and right(answer)
            families[answer.family] = families.get(answer.family, True) and right(answer)
        single = [right(answer) for answer in answers]
        return cls(share(single), share(list(pairs.values())), share(list(families.values())))


@dataclass(frozen=True, slots=True)
class ReadingScores:
    """Scores of the same replies by the strict and by the released reading, and the share without a strict answer."""

    strict: Scores
    released: Scores
    unparsed: Estimate


def measure(answers: Sequence[SentenceAnswer]) -> ReadingScores:
    """Scores of one method on one source.

    Consistency is the share of families with right answers to all sentences, 1/m sum floor(C/N) (section 3.3).
    """
    return ReadingScores(
        Scores.of(answers, lambda answer: answer.right),
        Scores.of(answers, lambda answer: answer.right_as_released),
        share([answer.strict is None for answer in answers]),
    )


@dataclass(frozen=True, slots=True)
class McNemar:
    """Comparison of two methods: numbers of sentences that only one answers right, and the exact two-sided p-value."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: Iterable[SentenceAnswer], second: Iterable[SentenceAnswer]) -> McNemar | None:
    """McNemar's exact test on the sentences that both methods answered; None if there are none."""
    first_right = {answer.item: answer.right for answer in first}
    outcomes = [(first_right[answer.item], answer.right) for answer in second if answer.item in first_right]
    if not outcomes:
        return None
    only_first, only_second = outcomes.count((True, False)), outcomes.count((False, True))
    differing = only_first + only_second
    # The binomial test needs at least one trial.
    p_value = float(scipy.stats.binomtest(only_first, differing).pvalue) if differing else 1.0
    return McNemar(only_first, only_second, p_value)
