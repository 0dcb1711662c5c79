"""Roles of a word in an event, those within a phrase included: the owner of the object, the noun of a comparison."""

from __future__ import annotations

from hapax.evaluation.winograd.reasoner.events import ParsedEvent
from hapax.evaluation.winograd.reasoner.parsing import Parse

CORE = ("subject", "object", "dative")
OWNED = "poss"
"""Marker of an owner: the role `object/poss` is that of Jack in "changed Jack's oil"."""

_WITHIN = frozenset(
    {"poss", "compound", "appos", "conj", "pobj", "prep", "nmod", "agent", "npadvmod", "advmod", "amod"}
)
"""Relations by which a word belongs to the phrase of its head."""


def role_of(parse: Parse, event: ParsedEvent, index: int) -> str | None:
    """Role of a word in an event; `object/poss`, `object/for`, `than` for a word within the phrase of a role."""
    by_word = {filler: role for role, filler in event.roles.items()}
    if index in by_word:
        return by_word[index]
    markers: list[str] = []
    token = parse[index]
    # Up the phrase, from the word to the filler of a role or the event itself.
    while token.index not in by_word and token.index != event.place:
        if token.relation not in _WITHIN or token.head == token.index:
            return None
        if token.relation == "prep":
            markers.append(token.lemma)
        elif token.relation == "poss":
            markers.append(OWNED)
        token = parse[token.head]
    if "than" in markers:
        return "than"
    within = by_word.get(token.index)
    # The marker nearest to the event: in "a book on the friend of B" that is `on`.
    marker = markers[-1] if markers else ""
    if within is None:
        return marker or None
    return f"{within}/{marker}" if marker else within


def base_role(role: str) -> str:
    """The role whose phrase has the word: `object` of `object/poss`."""
    return role.partition("/")[0]


def last_marker(role: str) -> str:
    """The preposition, or `poss`, by which the word is within the phrase: `for` of `object/for`; "" without."""
    return role.partition("/")[2]
