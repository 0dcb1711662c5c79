"""Words of a predicate in a parser's notation, such as `(shop.1,shop.in.2)` or `在·X·工作`, and its name in rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from hapax.grammar.prolog_text import OWN_NAMES, SYSTEM_NAMES

_PARSED = re.compile(r"([^()]*)\((.*)\.\d,(.*)\.\d\)")
"""The prefix, and the predicate once for each argument."""

_JOINTS = re.compile(r"[.\-_]+")
_BLANKS = re.compile(r"[\s_]+")
# Prefix, and for each argument the words and the number of its slot: `try__(visit.1,visit.2)`.
_RELATION = re.compile(r"([^()]*)\((.+)\.(\d),(.+)\.(\d)\)")

NODES_REMEMBERED = 200_000
"""Size of the cache of parsed nodes. Nodes beyond it are parsed again, so that memory stays bounded."""

_AUXILIARIES = frozenset({"is", "are", "would", "should", "must", "have"})


def predicate_words(predicate: str, language: str = "EN") -> tuple[str, ...]:
    """The words of a predicate in lower case: `NEG__(go.1,go.to.2)` is `do not go to`.

    Chinese words are separated by `·`, and `X` marks the object's place.
    """
    parsed = _PARSED.fullmatch(predicate.strip())
    if language == "ZH":
        return tuple(part for part in (parsed[2] if parsed else predicate.strip()).split("·") if part)
    if parsed is None:
        return tuple(word for word in _BLANKS.split(predicate.casefold()) if word)
    return _with_prefix(parsed[1], _split(parsed[3]))  # the second half of an English parse has the preposition


def surface(words: tuple[str, ...], language: str = "EN") -> str:
    """The words joined to the predicate of a triple, in the form that the prompts take."""
    return ("·" if language == "ZH" else " ").join(words)


def _split(text: str) -> tuple[str, ...]:
    return tuple(word for word in _JOINTS.split(text.casefold()) if word)


def _with_prefix(prefix: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """`try__(visit.1,visit.2)` is `try to visit`."""
    before = _split(prefix)
    if not before:
        return words
    if before == ("neg",):
        return (words[0], "not", *words[1:]) if words[:1] and words[0] in _AUXILIARIES else ("do", "not", *words)
    if len(before) == 1:
        before = (*before, "to")
    # A prefix that ends in the predicate's first word does not repeat it.
    return (*before, *(words[1:] if words[:1] == before[-1:] else words))


# --- nodes of graphs --------------------------------------------------------------------------------------------------


class GraphNode(NamedTuple):
    """A predicate of a graph: its name in rules, and the labels of its arguments' types, such as `person_1`."""

    name: str
    labels: tuple[str, str]

    @property
    def premise(self) -> str:
        """The atom over A and B in rule notation."""
        return self._atom("AB")

    def entailed_by(self, premise: GraphNode) -> str:
        """The atom over the premise's variables, matched by type. Raises ValueError for other types."""
        if self.labels == premise.labels:
            return self._atom("AB")
        if self.labels == premise.labels[::-1]:
            return self._atom("BA")
        raise ValueError(f"the types {'#'.join(self.labels)} are not those of the premise, {'#'.join(premise.labels)}")

    def _atom(self, variables: str) -> str:
        arguments = (f"{type_name(label)} {name}" for label, name in zip(self.labels, variables, strict=True))
        return f"{self.name}({', '.join(arguments)})"


@lru_cache(maxsize=NODES_REMEMBERED)
def graph_node(text: str) -> GraphNode:
    """Read a node such as `(shop.1,shop.in.2)#person#location`. Raises ValueError for any other text.

    The argument in the lower slot comes first. If the slots are not 1 and 2, as in a passive, they are in the name.
    """
    relation, first, second = ("", "", "") if text.count("#") < 2 else text.rsplit("#", 2)
    found = _RELATION.fullmatch(relation.strip())
    labels = first.strip(), second.strip()
    if found is None or not all(map(type_name, labels)):
        raise ValueError(f"{text[:80]} is not a predicate such as (shop.1,shop.in.2)#person#location")
    prefix, *slots = found.groups()
    words, place, other_words, other_place = slots
    # Slots are single digits, so they compare as texts.
    if place > other_place:
        words, place, other_words, other_place = other_words, other_place, words, place
        labels = labels[::-1]
    # The usual shape: the second half repeats the first, with a preposition: `shop`, `shop.in`.
    if (place, other_place) == ("1", "2") and f"{other_words}.".startswith(f"{words}."):
        spoken: Sequence[str] = predicate_words(f"{prefix}({words}.1,{other_words}.2)")
    else:
        spoken = (*predicate_words(f"{prefix}({words}.1,{words}.2)"), place, *other_words.split("."), other_place)
    return GraphNode(predicate_name(spoken, text), labels)


def predicate_name(words: Sequence[str], text: str) -> str:
    """The name in rules of a predicate in words, such as `shop_in`. Raises ValueError with `text` if no word fits."""
    name = re.sub(r"\W+", "_", "_".join(words).casefold()).strip("_")
    if not name:
        raise ValueError(f"{text[:80]} has no word that can be the name of a predicate")
    # A rule cannot define Prolog's `write/2`, and a name begins with a small letter.
    if f"{name}/2" in SYSTEM_NAMES or name.startswith(OWN_NAMES) or not (name[0].islower() and name[0].isascii()):
        return f"does_{name}"
    return name


@lru_cache(maxsize=4096)
def type_name(label: str) -> str:
    """The type of a label in rule notation: `Written Work` for `written_work_1`; empty if it has no letter."""
    plain = re.sub(r"_[12]$", "", label)
    words = [word for word in re.split(r"[\W_]+", plain) if word]
    return " ".join(word[0].upper() + word[1:] for word in words) if words and words[0][0].isalpha() else ""
