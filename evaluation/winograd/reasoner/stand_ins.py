"""A sentence with plain stand-ins for its entities, for parsing: an unusual entity cannot mislead the parser then."""

from __future__ import annotations

from dataclasses import dataclass

from hapax.evaluation.winograd.reasoner.parsing import Parse
from hapax.evaluation.winograd.reasoner.stating import ParsedSchema

_NAMES = ("Mary", "John")
_NOUNS = ("man", "woman")
_PLURALS = ("men", "women")
_BEFORE_NOUNS = ("DT", "PDT", "PRP$", "JJ", "JJR", "JJS", "POS", "CD", "WP$")
"""Tags of the words after which a noun stands, and no name."""


@dataclass(frozen=True, slots=True)
class StandInSentence:
    """The text, the two stand-ins in the order of the entities, and the place of the pronoun."""

    text: str
    options: tuple[str, str]
    pronoun_start: int


def with_stand_ins(text: str, schema: ParsedSchema) -> StandInSentence | None:
    """The sentence with a name, a noun or a plural for each entity; None if the entities overlap."""
    order = sorted((0, 1), key=lambda number: schema.spans[number].start)
    if schema.spans[order[0]].stop > schema.spans[order[1]].start:
        return None
    options, start = ["", ""], schema.pronoun.start
    # From the end, so that earlier places stay what they are; numbered by mention, whatever the options' order.
    for place, number in reversed(list(enumerate(order))):
        span = schema.spans[number]
        options[number] = _stand_in(schema.parse, span, schema.heads[number].tag, place)
        first, last = schema.parse[span[0]], schema.parse[span[-1]]
        end = last.start + len(last.text)
        text = text[: first.start] + options[number] + text[end:]
        if first.start < schema.pronoun.start:
            start += len(options[number]) - (end - first.start)
    return StandInSentence(text, (options[0], options[1]), start)


def _stand_in(parse: Parse, span: range, tag: str, place: int) -> str:
    if tag in ("NNS", "NNPS"):
        return _PLURALS[place]
    before = parse[span.start - 1].tag if span.start else ""
    return (_NOUNS if before in _BEFORE_NOUNS else _NAMES)[place]
