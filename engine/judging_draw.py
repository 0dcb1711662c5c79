"""Draws of items to judge, in which some items are more probable than others, and the labels that they brought.

Priority sampling (Duffield, Lund, Thorup 2007, Journal of the ACM 54): each item has a weight and a random number, and
items are judged in the order of number / weight. However far people get, each item was as probable to be reached as its
weight says, so that a draw can go on at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hapax.kb.records import DrawnItem, JudgingDraw, content_id
from hapax.kb.store import KnowledgeBase

DrawKind = Literal["predicates", "soundness"]
"""Kind of the sheets on which items are judged: facts, or statements."""

NEVER = 2.0
"""Random number of a label that no draw brought: above every probability."""


def random_number(salt: str, item_id: str) -> float:
    """An even random number between 0 and 1 that depends on the draw and the item alone."""
    return (int(content_id("draw", salt, item_id)[:13], 16) + 0.5) / 16**13


def is_given_out(draw: JudgingDraw, item: DrawnItem) -> bool:
    """True if the item was given to people to judge."""
    return item.draw < draw.reach * item.weight


def chance(draw: JudgingDraw, item: DrawnItem) -> float:
    """Probability with which the draw has reached the item."""
    return min(1.0, draw.reach * item.weight)


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
        draw = kb.judging_draw(kind)
        if draw is None:
            return cls()
        items = {item.item_id: item for item in kb.drawn_items(draw)}
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
