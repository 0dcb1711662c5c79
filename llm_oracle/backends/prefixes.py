"""Which beginnings of texts are worth computing once: a plan over token sequences, without any network.

A plan is a list of levels. A piece of the first level begins a text, one of a later level goes on behind its parent in
the level before, and the last level has one piece for each text. Each level but the last costs a pass of the network
more, so it is there only if it saves more tokens than such a pass is worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that are computed together. `parent`: its place in the level before, 0 in the first level.

    `start`: tokens of the text before it. A piece without tokens hands its parent on to texts that share nothing there.
    """

    parent: int
    start: int
    tokens: Tokens


Level = tuple[Piece, ...]


def whole(texts: Sequence[Tokens]) -> list[Level]:
    """The plan that shares nothing."""
    return [tuple(Piece(0, 0, text) for text in texts)]


def shared(texts: Sequence[Tokens], pass_cost: int) -> list[Level]:
    """The plan that shares beginnings, as long as a level more saves more than `pass_cost` tokens.

    The beginnings that save most are split off first; then they and what is behind them are split in the same way. The
    last token of a text is always its own.
    """
    return _split(whole(texts)[0], pass_cost)


def _split(pieces: Level, pass_cost: int) -> list[Level]:
    """Levels of which the last has a piece for each of these, in order."""
    by_parent: dict[int, list[int]] = defaultdict(list)
    for place, piece in enumerate(pieces):
        by_parent[piece.parent].append(place)
    found = {parent: _best_cuts(places, pieces) for parent, places in by_parent.items()}
    if sum(saved for saved, _ in found.values()) <= pass_cost:
        return [pieces]
    begins: list[Piece] = []
    rest = list(pieces)
    for parent, places in by_parent.items():
        cuts = found[parent][1]
        in_cuts = {place for cut in cuts for place in cut.places}
        alone = _Cut(tuple(place for place in places if place not in in_cuts), 0)
        for cut in (*cuts, *([alone] if alone.places else [])):
            for place in cut.places:
                piece = pieces[place]
                rest[place] = Piece(len(begins), piece.start + cut.length, piece.tokens[cut.length :])
            first = pieces[cut.places[0]]
            begins.append(Piece(parent, first.start, first.tokens[: cut.length]))
    return _split(tuple(begins), pass_cost) + _split(tuple(rest), pass_cost)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Texts, by place, that share their next `length` tokens."""

    places: tuple[int, ...]
    length: int


def _best_cuts(places: Sequence[int], pieces: Sequence[Piece]) -> tuple[int, list[_Cut]]:
    """Disjoint groups of texts with a common beginning that save most together, and the tokens they save."""
    keys = {place: pieces[place].tokens[:-1] for place in places}
    return _cuts_below(sorted(places, key=keys.__getitem__), keys)


def _cuts_below(ordered: Sequence[int], keys: dict[int, Tokens]) -> tuple[int, list[_Cut]]:
    """Either all these texts share what they have in common, or groups of them share more, whichever saves more."""
    if len(ordered) < 2:
        return 0, []
    # In lexical order, what the first and the last have in common all have.
    length = _common(keys[ordered[0]], keys[ordered[-1]])
    together = (len(ordered) - 1) * length
    borders = [0, len(ordered)]
    borders[1:1] = [
        place
        for place, (one, other) in enumerate(pairwise(ordered), 1)
        if keys[one][length : length + 1] != keys[other][length : length + 1]
    ]
    if len(borders) == 2:  # equal beginnings to their ends
        return together, [_Cut(tuple(ordered), length)] if length else []
    apart = [_cuts_below(ordered[begin:end], keys) for begin, end in pairwise(borders)]
    saved = sum(gain for gain, _ in apart)
    if together >= saved:
        return together, [_Cut(tuple(ordered), length)] if length else []
    return saved, [cut for _, cuts in apart for cut in cuts]


def _common(one: Tokens, other: Tokens) -> int:
    """How many tokens two texts share at their beginnings."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
