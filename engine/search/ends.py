"""The two ends of a ranking: disjoint, with nothing of the middle, and not filled by one value.

Pure functions of scores and values. LINK's ends, 75 % of each step (section 2.3), are in `ranking.py`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from hapax.kb.records import Distribution
from hapax.llm_oracle.measures import Measure, TextMeasures

END_SHARE = 1 / 3
"""Share of a rule's statements at each end; the rest is the middle."""

VALUE_SHARE = 1 / 4
"""Largest share of an end whose statements may have the same value of a variable, unless there are few values."""

SMALL_POOL = 6
"""A pool with fewer statements has fewer than two at each end."""

Values = tuple[object, ...]
"""The values of a statement, by the order of its rule's variables."""


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """A head and a long-tail statement of one rule that differ in a single value."""

    head: str
    long_tail: str


@dataclass(frozen=True, slots=True)
class Ends:
    """Statements of one rule by end, the most extreme first. Whatever is at neither end is in the middle.

    `crowded`: those that an end leaves out because it has enough statements with one of their values. `pool`: number of
    statements from which the ends are cut. `pairs`: statements of both ends that match.
    """

    head: tuple[str, ...]
    long_tail: tuple[str, ...]
    crowded: tuple[str, ...] = ()
    pool: int = 0
    pairs: tuple[MatchedPair, ...] = ()

    def of(self, distribution: Distribution) -> tuple[str, ...]:
        """The statements of one end."""
        return self.head if distribution is Distribution.HEAD else self.long_tail


@dataclass(frozen=True, slots=True)
class EndSize:
    """Share of a pool at each end, and the most statements.

    `splits_ties`: chance orders statements with equal scores; otherwise tied ones are at no end. `by_pairs`: the scores
    are those of `pair`, so that the pool is the half with the commoner names.
    """

    share: float = END_SHARE
    most: int | None = None
    splits_ties: bool = False
    by_pairs: bool = False

    def of(self, count: int) -> int:
        """Statements at each end of a pool, before crowded ones leave."""
        # 0.29 * 100 is a little less than 29: without the epsilon a statement would be lost.
        third = max(1, math.floor(count * self.share + 1e-9))
        return min(count // 2, third, count if self.most is None else self.most)


def ends(
    scores: Mapping[str, float],
    values: Mapping[str, Values],
    chance: Callable[[str], float],
    size: EndSize | None = None,
) -> Ends:
    """Split the statements of a rule by their scores; higher is likelier.

    `chance` gives a statement's number in [0, 1), by which equal scores are ordered. Unless ties are split, statements
    that share the score at which one end stops with the other end are in neither.
    """
    wanted = size or EndSize()
    order = sorted(scores, key=lambda text: (scores[text], chance(text)))
    # At most half of the pool, so that the ends never share a statement.
    count = wanted.of(len(order))
    tail, head = order[:count], order[::-1][:count]
    if count and not wanted.splits_ties and scores[tail[-1]] == scores[head[-1]]:
        # The tie spans the middle: which of its statements falls to which end would be chance.
        limit = scores[tail[-1]]
        tail = [text for text in tail if scores[text] != limit]
        head = [text for text in head if scores[text] != limit]
    # For each variable the number of its different values in the pool.
    columns = zip(*(values[text] for text in order), strict=True)
    distinct = [len(set(column)) for column in columns]
    chosen_head, chosen_tail = _SpreadStatements(values, head, distinct), _SpreadStatements(values, tail, distinct)
    crowded = (*chosen_head.crowded, *chosen_tail.crowded)
    return Ends(tuple(chosen_head.texts), tuple(chosen_tail.texts), crowded, len(order))


def pair_pool(measures: Mapping[str, TextMeasures]) -> list[str]:
    """The half of a pool whose names are the commoner: among them `pair` tells rare combinations, not rare names.

    All statements, if the names' rarity is unknown.
    """
    priors = {
        text: measure.scores[Measure.PRIOR] for text, measure in measures.items() if Measure.PRIOR in measure.scores
    }
    if len(priors) < len(measures) or not priors:
        return list(measures)
    middle = statistics.median(priors.values())
    return [text for text in measures if priors[text] >= middle]


@dataclass
class _SpreadStatements:
    """The statements of one end, without those whose values it has often enough already.

    `distinct`: number of values of each variable in the whole pool.
    """

    values: Mapping[str, Values]
    ordered: Sequence[str]
    distinct: Sequence[int]
    texts: list[str] = field(default_factory=list)
    crowded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        most = [self._most(count) for count in self.distinct]
        seen: list[Counter[object]] = [Counter() for _ in most]
        for text in self.ordered:
            row = self.values[text]
            if any(counts[value] >= limit for counts, value, limit in zip(seen, row, most, strict=True)):
                self.crowded.append(text)
                continue
            self.texts.append(text)
            for counts, value in zip(seen, row, strict=True):
                counts[value] += 1

    def _most(self, distinct: int) -> int:
        """Most statements with one of `distinct` values: the share, or twice the even share where values are few."""
        return math.ceil(len(self.ordered) * min(1.0, max(VALUE_SHARE, 2 / distinct)))


def matched_pairs(split: Ends, values: Mapping[str, Values], tokens: Mapping[str, int]) -> list[MatchedPair]:
    """Pairs whose values are equal but for one, and whose numbers of name tokens differ by one at most.

    A statement is in one pair at most. The most extreme statements are paired first.
    """
    # Statements with a common frame differ in the value at its place alone.
    partners: dict[tuple[int, Values], list[str]] = defaultdict(list)
    for text in split.long_tail:
        for frame in _frames(values[text]):
            partners[frame].append(text)
    taken: set[str] = set()
    pairs = []
    for text in split.head:
        candidates = chain.from_iterable(partners[frame] for frame in _frames(values[text]))
        partner = next((near for near in candidates if _matches(text, near, taken, tokens)), None)
        if partner is not None:
            taken.add(partner)
            pairs.append(MatchedPair(text, partner))
    return pairs


def divided(
    scores: Mapping[str, float],
    values: Mapping[str, Values],
    measures: Mapping[str, TextMeasures],
    chance: Callable[[str], float],
    size: EndSize,
) -> Ends:
    """The ends of a rule's statements by their scores, with the pairs that match. A single statement is long tail.

    `measures`: all that the ranker says of them; without the numbers of tokens, no pairs are matched.
    """
    if len(scores) == 1:
        return Ends((), tuple(scores), pool=1)
    # A pair of rare names is rare because of the names, which says nothing about the pair.
    pool = pair_pool(measures) if size.by_pairs and measures else list(scores)
    split = ends({text: scores[text] for text in pool}, values, chance, size)
    if len(measures) < len(scores):
        return split
    tokens = {text: measures[text].name_tokens for text in scores}
    return replace(split, pairs=tuple(matched_pairs(split, values, tokens)))


def _frames(values: Values) -> list[tuple[int, Values]]:
    """For each value, the other values and its own place among them."""
    return [(place, values[:place] + values[place + 1 :]) for place in range(len(values))]


def _matches(text: str, partner: str, taken: set[str], tokens: Mapping[str, int]) -> bool:
    return partner not in taken and abs(tokens[text] - tokens[partner]) <= 1
