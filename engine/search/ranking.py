"""The likelihood gate: which beams a step keeps (LINK, section 2.3). Pure functions of scores and values."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from hapax.grammar.terms import Value
from hapax.kb.records import Distribution

KEEP_SHARE = 0.75

PENALTY_WEIGHT = 3.0
"""Cost of ROUGE-L between the values of a beam of the head distribution, in nats per token (LINK's released code)."""

PERSON = "PersonX"
"""LINK's released code puts this for every generic variable, and compares values with it, too."""

CACHED_COMPARISONS = 50_000
"""Size of the caches of split values and compared pairs: enough for a few rules, not for a whole run."""

K = TypeVar("K", bound=Hashable)

_WORD = re.compile(r"[a-z0-9]+")


def keep_count(count: int, share: float, beam: int) -> int:
    """Number of beams that a step keeps of `count`: the share, rounded up, and at most `beam`."""
    # 0.07 * 100 is 7.000000000000001, which must not be rounded up to 8.
    return min(beam, math.ceil(round(share * count, 9)))


def kept(
    scores: Sequence[float], ties: Sequence[object], distribution: Distribution, share: float, beam: int
) -> list[int]:
    """Positions of the kept beams, best first: the least likely for the long tail, the likeliest for the head.

    `ties` decide between equal scores, so that the result depends on the set of beams and not on their order.
    """
    # Sorted in ascending order: the head's scores are negated, so that ties are decided alike at both ends.
    sign = -1.0 if distribution is Distribution.HEAD else 1.0
    order = sorted(range(len(scores)), key=lambda position: (sign * scores[position], repr(ties[position])))
    return order[: keep_count(len(scores), share, beam)]


def kept_at_ends(
    pools: Mapping[Distribution, Mapping[K, float]], chance: Callable[[K], float], share: float, beam: int
) -> dict[Distribution, list[K]]:
    """The kept beams of each distribution by their scores, best first.

    Where more beams have the last score than can stay, an end takes first those that the other end does not want, and
    among them chance decides, in opposite order at the two ends: no beam that is tied at both goes to both as long as
    there are others. `chance` gives a beam's number in [0, 1), the same at both ends and whatever the beams' order.
    """
    ends = {distribution: _RankedEnd(pool, distribution, share, beam) for distribution, pool in pools.items()}
    chosen: dict[Distribution, list[K]] = {}
    for distribution, end in ends.items():
        # Rank among tied beams: 0 if the other end does not want it, 1 if it is tied or chosen there, 2 if it is sure.
        avoided: dict[K, int] = {}
        for rival, rival_end in ends.items():
            if rival is distribution:
                continue
            if rival in chosen:  # its choice is made
                avoided |= dict.fromkeys(chosen[rival], 1)
            else:
                avoided |= dict.fromkeys(rival_end.tied, 1)
                avoided |= dict.fromkeys(rival_end.sure, 2)
        chosen[distribution] = end.chosen(avoided, chance)
    return chosen


class _RankedEnd(Generic[K]):
    """One end of a ranking: the beams that surely stay, and those tied for the remaining places."""

    def __init__(self, pool: Mapping[K, float], distribution: Distribution, share: float, beam: int) -> None:
        count = keep_count(len(pool), share, beam)
        self._sign = -1.0 if distribution is Distribution.HEAD else 1.0
        ordered = sorted(pool, key=lambda item: self._sign * pool[item])
        self.sure, self.tied, self._places = ordered[:count], list[K](), 0
        if 0 < count < len(ordered) and pool[ordered[count - 1]] == pool[ordered[count]]:
            limit = pool[ordered[count]]
            self.sure = [item for item in ordered[:count] if pool[item] != limit]
            self.tied = [item for item in ordered if pool[item] == limit]
            self._places = count - len(self.sure)

    def chosen(self, avoided: Mapping[K, int], chance: Callable[[K], float]) -> list[K]:
        """The beams that stay; those to be avoided least come first among the tied ones."""
        tied = sorted(self.tied, key=lambda item: (avoided.get(item, 0), self._sign * chance(item)))
        return [*self.sure, *tied[: self._places]]


def equal_texts(scores: Mapping[Any, float]) -> int:
    """Number of texts whose score another text has, too."""
    counts = Counter(scores.values())
    return sum(count for count in counts.values() if count > 1)


def repetition_penalty(value: Value, earlier: Sequence[Value]) -> float:
    """The penalty for the head: 3 x ROUGE-L between the new value and each value before it in the beam, summed."""
    return PENALTY_WEIGHT * math.fsum(_rouge_l(str(value), str(before)) for before in earlier)


def released_penalty(value: Value, earlier: Sequence[Value]) -> float:
    """The penalty as LINK's released code computes it: the mean over the earlier values, `PersonX` among them."""
    return repetition_penalty(value, (PERSON, *earlier)) / (len(earlier) + 1)


def random_score(seed: int, *parts: object) -> float:
    """A number in [0, 1) that depends on its arguments alone: the random ranker of the paper's ablation."""
    digest = hashlib.sha256(repr((seed, *parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)  # 56 bits; a float holds 53 of them


@lru_cache(CACHED_COMPARISONS)
def _words(text: str) -> tuple[str, ...]:
    """The text's words as the tokenizer of the rouge_score package splits them."""
    return tuple(_WORD.findall(text.lower()))


@lru_cache(CACHED_COMPARISONS)
def _rouge_l(left: str, right: str) -> float:
    """ROUGE-L (F measure): twice the longest common subsequence of words over the number of words."""
    from rapidfuzz.distance import Indel

    left_words, right_words = _words(left), _words(right)
    # Indel similarity is this very quotient; for two empty sequences it is 1, where ROUGE has 0.
    return Indel.normalized_similarity(left_words, right_words) if left_words and right_words else 0.0
