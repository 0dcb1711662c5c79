"""Plans which common beginnings of texts to compute once. Works on token sequences, without any network.

A plan is a list of levels. A piece of the first level begins a text, a piece of a later level continues its parent in
the level before, and the last level has one piece per text. Each level but the last costs another pass of the network,
so it must save more tokens than such a pass is worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that are computed together. `parent`: its index in the level before, 0 in the first level.

    `start`: number of tokens of the text before it. A piece without tokens passes its parent on to texts that share
    nothing at this level.
    """

    parent: int
    start: int
    tokens: Tokens


Level = tuple[Piece, ...]


def whole(texts: Sequence[Tokens]) -> list[Level]:
    """The plan without sharing."""
    return [tuple(Piece(0, 0, text) for text in texts)]


def shared(texts: Sequence[Tokens], pass_cost: int) -> list[Level]:
    """The plan that shares beginnings, as long as another level saves more than `pass_cost` tokens.

    The beginnings that save most are split off first; then they and the rests are split in the same way. The last token
    of a text is never shared.
    """
    return _split(whole(texts)[0], pass_cost)


def _split(pieces: Level, pass_cost: int) -> list[Level]:
    """Levels whose last one has a piece for each of these, in order."""
    by_parent: dict[int, list[int]] = defaultdict(list)
    for place, piece in enumerate(pieces):
        by_parent[piece.parent].append(place)
    found = {parent: _best_cuts(places, pieces) for parent, places in by_parent.items()}
    if sum(saved for saved, _ in found.values()) <= pass_cost:
        return [pieces]
    beginnings: list[Piece] = []
    rest = list(pieces)
    for parent, places in by_parent.items():
        _, cuts = found[parent]
        in_cuts: set[int] = set()
        for cut in cuts:
            in_cuts.update(cut.places)
        remaining = tuple(place for place in places if place not in in_cuts)
        if remaining:
            # An empty piece keeps their parent reachable from the next level.
            cuts = [*cuts, _Cut(remaining, 0)]
        for cut in cuts:
            for place in cut.places:
                piece = pieces[place]
                rest[place] = Piece(len(beginnings), piece.start + cut.length, piece.tokens[cut.length :])
            first = pieces[cut.places[0]]
            beginnings.append(Piece(parent, first.start, first.tokens[: cut.length]))
    return _split(tuple(beginnings), pass_cost) + _split(tuple(rest), pass_cost)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Texts, by index, that share their next `length` tokens."""

    places: tuple[int, ...]
    length: int


def _best_cuts(places: Sequence[int], pieces: Sequence[Piece]) -> tuple[int, list[_Cut]]:
    """The saved tokens, and the disjoint groups of texts with a common beginning that save most in total."""
    # Without the last token of each text, which is never shared.
    keys = {place: pieces[place].tokens[:-1] for place in places}
    return _cuts_below(sorted(places, key=keys.__getitem__), keys)


def _cuts_below(ordered: Sequence[int], keys: dict[int, Tokens]) -> tuple[int, list[_Cut]]:
    """One group of all these texts, or separate groups with longer beginnings, whichever saves more."""
    if len(ordered) < 2:
        return 0, []
    # In lexical order, a beginning that the first and the last share is shared by all.
    length = _common_length(keys[ordered[0]], keys[ordered[-1]])
    together = (len(ordered) - 1) * length
    borders = [0]
    for place, (left, right) in enumerate(pairwise(ordered), 1):
        if keys[left][length : length + 1] != keys[right][length : length + 1]:
            borders.append(place)
    borders.append(len(ordered))
    if len(borders) == 2:  # equal up to their last tokens
        return together, [_Cut(tuple(ordered), length)] if length else []
    apart = [_cuts_below(ordered[begin:end], keys) for begin, end in pairwise(borders)]
    saved = sum(gain for gain, _ in apart)
    if together >= saved:
        return together, [_Cut(tuple(ordered), length)] if length else []
    groups: list[_Cut] = []
    for _, cuts in apart:
        groups += cuts
    return saved, groups


def _common_length(left: Tokens, right: Tokens) -> int:
    """Number of tokens that two texts share at their beginnings."""
    shortest = min(len(left), len(right))
    return next((place for place in range(shortest) if left[place] != right[place]), shortest)
