"""Sentences in which a value stands beside the other values of its rule: what it is likely anyway, in its own frame.

How much likelier a name is beside another one than anyway (pointwise mutual information) needs the probability that the
name has anyway in this place of this sentence. A neutral sentence tells it badly. The statements of a rule are one
sentence with other values, so the name is put beside the values of other statements, and the mean is taken (a domain
frame as in Holtzman et al. 2021, with the values of the domain in it).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from hapax.llm_oracle.protocols import SpannedText

OTHERS = 6
"""Statements from which earlier values are taken, at most."""


@dataclass(frozen=True, slots=True)
class SplitText:
    """A text cut at its names: names are as they stand there, `between` has one part more than there are names."""

    between: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, spanned: SpannedText) -> SplitText:
        """Cut a text at its spans."""
        # 0, start, end, start, end ... length: even pieces lie between the names, odd ones are the names.
        edges = [0, *chain.from_iterable(spanned.spans), len(spanned.text)]
        pieces = [spanned.text[start:end] for start, end in pairwise(edges)]
        return cls(tuple(pieces[::2]), tuple(pieces[1::2]))

    def beside(self, earlier: Sequence[str]) -> SpannedText:
        """The text with other names before, in which the next name has the span."""
        names = (*earlier, *self.names[len(earlier) :])
        text, start = self.between[0], 0
        for place, (name, part) in enumerate(zip(names, self.between[1:], strict=True)):
            start = len(text) if place == len(earlier) else start
            text += name + part
        return SpannedText(text, ((start, start + len(names[len(earlier)])),))


Frames = Mapping[tuple[SpannedText, int], tuple[SpannedText, ...]]
"""For a text and the number of a name after its first one: the texts in which it stands beside other names."""


def _content_hash(names: Sequence[str]) -> str:
    """A number in hexadecimal digits that looks drawn by chance."""
    return hashlib.sha256(repr(tuple(names)).encode("utf-8", "surrogatepass")).hexdigest()


def pair_frames(texts: Sequence[SpannedText]) -> Frames:
    """The frames of each text's names after the first; none for a text whose sentence no other text has."""
    split = {text: SplitText.of(text) for text in texts if len(text.spans) > 1}
    earlier: dict[tuple[tuple[str, ...], int], dict[tuple[str, ...], None]] = defaultdict(dict)
    for parts in split.values():
        for place in range(1, len(parts.names)):
            earlier[parts.between, place][parts.names[:place]] = None
    # By a hash of the names, so that later statements change the draw as little as possible.
    # One more than needed, since each text leaves out its own names.
    drawn = {sentence: sorted(names, key=_content_hash)[: OTHERS + 1] for sentence, names in earlier.items()}
    frames = {}
    for text, parts in split.items():
        for place in range(1, len(parts.names)):
            others = [names for names in drawn[parts.between, place] if names != parts.names[:place]][:OTHERS]
            frames[text, place] = tuple(parts.beside(names) for names in others)
    return frames
