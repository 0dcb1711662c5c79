"""Names of a data type: the canonical name and the popularity behind any spelling or alias."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hapax.grammar.terms import Value
from hapax.grammar.writing.words import plain_letters

_MARKS = re.compile(r"[^\w\s]|_")


def name_key(name: str) -> str:
    """Key under which spellings are the same: without case, diacritics, punctuation and a leading article.

    A name that consists of marks alone is its own key.
    """
    letters = plain_letters(name).casefold()
    # An apostrophe or full stop joins (D.C.), any other mark separates (Guinea-Bissau).
    joined = letters.replace("'", "").replace("’", "").replace("ʼ", "").replace(".", "")
    words = _MARKS.sub(" ", joined).replace("&", " and ").split()
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    return " ".join(words) or name


def value_key(value: Value) -> Value:
    """Key of an argument: a number is its own."""
    return name_key(value) if isinstance(value, str) else value


@dataclass(slots=True)
class NamedEntity:
    """A canonical name and its popularity. Bearers of one name are one entity: a rule cannot tell them apart."""

    name: str
    popularity: float = 0.0


class NameIndex:
    """Names and aliases of one data type."""

    def __init__(self) -> None:
        self.entities: dict[str, NamedEntity] = {}
        """By the key of the canonical name."""
        self._aliases: dict[str, list[str]] = {}

    def add(self, name: str, popularity: float = 0.0, aliases: Iterable[str] = ()) -> None:
        """Add a canonical name. A repeated name keeps the highest popularity."""
        key = name_key(name)
        entity = self.entities.setdefault(key, NamedEntity(name))
        entity.popularity = max(entity.popularity, popularity)
        for alias in aliases:
            keys = self._aliases.setdefault(name_key(alias), [])
            if key not in keys:
                keys.append(key)

    def meanings(self, name: str) -> list[str]:
        """Keys of all entities that bear a name, be it their canonical one or an alias; none if it is unknown."""
        key = name_key(name)
        own = [key] if key in self.entities else []
        return [*own, *(entity for entity in self._aliases.get(key, ()) if entity != key)]

    def keys(self, name: str) -> list[str]:
        """Keys of the entities that a name can mean, none if it is unknown. A canonical name means its own entity."""
        key = name_key(name)
        return [key] if key in self.entities else self._aliases.get(key, [])

    def canonical(self, name: str) -> str | None:
        """The canonical name; None if the name is unknown or ambiguous."""
        keys = self.keys(name)
        return self.entities[keys[0]].name if len(keys) == 1 else None

    def popularity(self, name: str) -> float | None:
        """Popularity of the entity of this name; None if the name is unknown or ambiguous."""
        keys = self.keys(name)
        return self.entities[keys[0]].popularity if len(keys) == 1 else None

    @property
    def total(self) -> float:
        """Sum of all popularities."""
        return sum(entity.popularity for entity in self.entities.values())
