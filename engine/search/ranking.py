"""The likelihood gate: which beams a step keeps (LINK, section 2.3). Pure functions of scores and values."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hapax.grammar.terms import Value
from hapax.kb.records import Distribution

KEEP_SHARE = 0.75

PENALTY_WEIGHT = 3.0
"""Cost of ROUGE-L between the values of a beam of the head distribution, in nats per token (LINK's released code)."""

PERSON = "PersonX"
"""LINK's released code puts this for every generic variable, and compares values with it, too."""

CACHED_COMPARISONS = 50_000
"""Size of the caches of split values and compared pairs: enough for a few rules, not for a whole run."""

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
