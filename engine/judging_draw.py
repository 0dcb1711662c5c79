"""Draws of items to judge, in which some items are more probable than others, and the labels that they brought.

Priority sampling (Duffield, Lund, Thorup 2007, Journal of the ACM 54): each item has a weight and a random number, and
items are judged in the order of number / weight. However far people get, each item was as probable to be reached as its
weight says, so that a draw can go on at any time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hapax.kb.records import DRAWN_ITEMS, JUDGING_DRAWS, DrawnItem, JudgingDraw, content_id
from hapax.kb.store import KnowledgeBase

DrawKind = Literal["predicates", "soundness", "derived"]
"""The items that are drawn: facts, statements of searches (both are kinds of sheets), or statements of `derive`."""

NEVER = 2.0
"""Random number of a label that no draw brought: above every probability."""


LOW_PART = 0.5
"""Part of a draw's items below the cut, by which the share of true values of the whole pool is estimated."""

LEAST_UNCERTAINTY = 0.2
"""Weight of the surest value below the cut, relative to one of probability one half."""


def cut_of(probabilities: Sequence[float], risk: float) -> float:
    """The probability above which labels decide a promise: where half of the permitted share is expected to be false.

    At least a twentieth of the pool lies above it, and a quarter where nothing is so probable, such as without a
    calibration.
    """
    ordered = sorted(probabilities, reverse=True)
    expected, best = 0.0, 0
    for place, probability in enumerate(ordered, start=1):
        expected += 1.0 - probability
        # The mean expected falseness of the best `place` values is at most half of the permitted share.
        if expected <= place * risk / 2:
            best = place
    if best < max(len(ordered) // 20, 1):
        best = max(len(ordered) // 4, 1)
    return ordered[best - 1]


def draw_weights(probabilities: Sequence[float], cut: float, low: float | None = None) -> tuple[list[float], float]:
    """The weights of a draw, and the weight `low` of the most uncertain value below the cut.

    From the cut on all weights are 1, so that the labels there are an even sample of every threshold above the cut.
    Below it they follow the standard deviation of a value's truth, by which an estimate of the whole gains most
    (Zrnic and Candes 2024, arXiv 2403.03208, section 3).
    """
    relative = [max(LEAST_UNCERTAINTY, 2 * math.sqrt(max(value * (1.0 - value), 0.0))) for value in probabilities]
    if low is None:
        above = sum(value >= cut for value in probabilities)
        below = math.fsum(part for part, value in zip(relative, probabilities, strict=True) if value < cut)
        low = min(1.0, LOW_PART / (1.0 - LOW_PART) * above / below) if below else 1.0
    return [1.0 if value >= cut else low * part for part, value in zip(relative, probabilities, strict=True)], low


def random_number(salt: str, item_id: str) -> float:
    """An even random number between 0 and 1 that depends on the draw and the item alone."""
    # 13 hexadecimal digits are 52 bits, which a float holds; the half keeps the number off 0 and 1.
    return (int(content_id("draw", salt, item_id)[:13], 16) + 0.5) / 16**13


def is_given_out(draw: JudgingDraw, item: DrawnItem) -> bool:
    """True if the item was given to people to judge."""
    return item.draw < draw.reach * item.weight


@dataclass(frozen=True)
class DrawnLabels:
    """The draw of `votes next` as a certificate counts it. `reach` None: there is none.

    Labels of items that the draw gave out are thinned to an even sample; labels that came otherwise, from references or
    sheets of `votes export`, count as they are.
    """

    reach: float | None = None
    items: Mapping[str, DrawnItem] = field(default_factory=dict)
    is_other: bool = False
    """True if the draw was made by the scores of another critic, so that its labels are no sample here."""

    @classmethod
    def stored(cls, kb: KnowledgeBase, kind: DrawKind, critic: str) -> DrawnLabels:
        """The draw of a knowledge base, for a certificate of this critic's scores."""
        draw = kb.first(JUDGING_DRAWS, kind=kind)
        if draw is None:
            return cls()
        items = {item.item_id: item for item in kb.matching(DRAWN_ITEMS, salt=draw.salt)}
        return cls(draw.reach, items, draw.settings.get("critic") != critic)

    def of(self, item_id: str) -> tuple[float | None, float]:
        """Random number and weight of an item; no number for an item that the draw did not give out."""
        item = self.items.get(item_id)
        if item is None or self.reach is None:
            return None, 1.0
        is_drawn = item.draw < self.reach * item.weight
        if self.is_other:
            return (NEVER if is_drawn else None), 1.0
        return (item.draw if is_drawn else None), item.weight
