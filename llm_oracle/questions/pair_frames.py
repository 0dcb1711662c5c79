"""Sentences in which a value stands beside another value of its statement, and beside those of other statements.

How much likelier a name is beside another one than anyway (pointwise mutual information) needs the probability that it
has anyway, in the same sentence. That is its mean beside the names that other statements have in the other one's place:
they are of the same type, so the mean holds what the sentence and the type make likely (a domain frame as in Holtzman
et al. 2021, with the values of the domain in it). The sentence says as little as possible and is read in both orders:
in a rule's own sentence, in its one order, language models and word vectors agree less on which names go together.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, permutations

from hapax.llm_oracle.protocols import SpannedText

START = "\n"
"""Put before a text whose values are scored: the first token of a text has no score, and it may be a value's."""

SENTENCE = "{} has to do with {}."

OTHERS = 6
"""Names beside which a name has its mean, at most."""


@dataclass(frozen=True, slots=True)
class PairFrame:
    """A name of a statement beside another one of its names, and beside those in the other one's place elsewhere.

    The spans are those of the name, which comes second.
    """

    name: str
    beside: SpannedText
    beside_others: tuple[SpannedText, ...]


def pair_frames(statements: Sequence[tuple[SpannedText, Sequence[str]]]) -> Mapping[SpannedText, tuple[PairFrame, ...]]:
    """For each statement, of which the names at its spans are given, its ordered pairs of names.

    A statement whose sentence no other one has, with other names, has frames without other names.
    """
    # The names at each place of the statements that have the same sentence around their names.
    at_place: dict[tuple[tuple[str, ...], int], dict[str, None]] = defaultdict(dict)
    for text, names in statements:
        for place, name in enumerate(names):
            at_place[_around(text), place][name] = None
    # By a hash of the names, so that later statements change the draw as little as possible. Two more than needed,
    # since a pair leaves out its own names.
    drawn = {place: sorted(names, key=_content_hash)[: OTHERS + 2] for place, names in at_place.items()}
    frames = {}
    for text, names in statements:
        pairs = []
        for (place, partner), (_, name) in permutations(enumerate(names), 2):
            others = [drawn_name for drawn_name in drawn[_around(text), place] if drawn_name not in (partner, name)]
            beside_others = tuple(_beside(drawn_name, name) for drawn_name in others[:OTHERS])
            pairs.append(PairFrame(name, _beside(partner, name), beside_others))
        frames[text] = tuple(pairs)
    return frames


def _around(text: SpannedText) -> tuple[str, ...]:
    """The pieces of a text between its spans."""
    # 0, start, end, start, end ... length: every second piece lies between spans.
    edges = [0, *chain.from_iterable(text.spans), len(text.text)]
    return tuple(text.text[start:end] for start, end in list(pairwise(edges))[::2])


def _content_hash(name: str) -> str:
    """A number in hexadecimal digits that looks drawn by chance."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _beside(partner: str, name: str) -> SpannedText:
    before, between, after = SENTENCE.split("{}")
    start = len(begun := START + before + partner + between)
    return SpannedText(begun + name + after, ((start, start + len(name)),))
