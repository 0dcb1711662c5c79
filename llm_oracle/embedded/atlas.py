"""The atlas: the hand-written list of true facts on which the embedded model is trained.

An atlas file is UTF-8 text. `predicate name(Type, Type) key 1` begins a relation; each following line has one key and
all values of the other argument that are true for it. The world is closed per key: values that a key's line does not
list are false for that key, and nothing is known about a key without a line.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.rankers.word_frequency import zipf_frequency

ATLAS_FOLDER = Path(__file__).parent / "atlas"
LONGEST_VALUE = 36
"""Characters. Longer values are sentences rather than names."""
POPULARITY_FLOOR = 1.0
"""Zipf value (log10 of occurrences per 10**9 words) of words that the table of frequencies does not have."""
NUMERIC_TYPES = frozenset({"Number", "Year", "Age", "Kilograms", "Mohs Hardness"})
"""Types whose values are written in digits. No other type may have such values."""

# `predicate orbits(Moon, Planet) key 1 functional`.
_HEADER = re.compile(
    r"predicate (?P<name>[a-z]\w*)\((?P<first>[^,()]+), (?P<second>[^,()]+)\) "
    r"key (?P<key>[12])(?P<functional> functional)?"
)
# Characters at which the reader of replies would end or split a value.
_FORBIDDEN = re.compile(r"[,;:/()\[\]{}\"\\\x00-\x1f]")
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class AtlasFact:
    """A true fact. Both arguments are text; numbers are written in digits."""

    predicate: str
    arguments: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Relation:
    """All facts of a predicate. `key`: the argument position (0 or 1) for whose values the lists are complete."""

    predicate: str
    argument_types: tuple[str, str]
    key: int
    functional: bool
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of the other argument by key, in the order of the file."""

    def arguments(self, key: str, value: str) -> tuple[str, str]:
        """Key and value in the predicate's order of arguments."""
        return (key, value) if self.key == 0 else (value, key)

    @property
    def facts(self) -> Iterator[AtlasFact]:
        for key, values in self.values.items():
            for value in values:
                yield AtlasFact(self.predicate, self.arguments(key, value))


class Atlas:
    """All relations of the atlas files, with the truth of facts and the entities of types."""

    def __init__(self, relations: Iterable[Relation]) -> None:
        self.relations = {relation.predicate: relation for relation in relations}
        facts: list[AtlasFact] = []
        for relation in self.relations.values():
            facts += relation.facts
        self.facts = tuple(facts)
        self._true = {(fact.predicate, fact.arguments) for fact in self.facts}
        self._entities: dict[str, dict[str, None]] = defaultdict(dict)
        for fact in self.facts:
            for data_type, argument in zip(self.relations[fact.predicate].argument_types, fact.arguments, strict=True):
                self._entities[data_type][argument] = None

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self._entities)

    def entities(self, data_type: str) -> tuple[str, ...]:
        """All entities of a type, in order of first occurrence."""
        return tuple(self._entities.get(data_type, ()))

    def knows(self, predicate: str) -> bool:
        return predicate in self.relations

    def knows_key(self, predicate: str, arguments: Sequence[object]) -> bool:
        """True if the atlas has a line for the key among these arguments, so that `holds` is conclusive."""
        relation = self.relations.get(predicate)
        return relation is not None and len(arguments) == 2 and str(arguments[relation.key]) in relation.values

    def holds(self, predicate: str, arguments: Sequence[object]) -> bool:
        """True if the fact is listed. Numbers may be given as numbers."""
        return (predicate, tuple(map(str, arguments))) in self._true

    def truth(self, indicator: str, arguments: Sequence[object]) -> bool | None:
        """Like `holds`, for an indicator such as `orbits/2`; None if the atlas does not have the predicate."""
        predicate = indicator.partition("/")[0]
        return self.holds(predicate, arguments) if self.knows(predicate) else None

    def type_truth(self, value: object, data_type: str) -> bool | None:
        """True if an entity is listed under the type; None if the atlas does not have the type."""
        return str(value) in self._entities[data_type] if data_type in self._entities else None

    def true_values(self, predicate: str, position: int, given: object | None = None) -> tuple[str, ...]:
        """Values at `position` (0 or 1) in the predicate's facts, only those with `given` as the other argument."""
        if predicate not in self.relations:
            return ()
        values: dict[str, None] = {}
        for fact in self.relations[predicate].facts:
            if given is None or fact.arguments[1 - position] == str(given):
                values[fact.arguments[position]] = None
        return tuple(values)


def load_atlas(folder: Path = ATLAS_FOLDER) -> Atlas:
    """Read the `*.atlas` files of a folder. Raises HapaxError for the first faulty line."""
    return parse_atlas((path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.atlas")))


def parse_atlas(sources: Iterable[tuple[str, str]]) -> Atlas:
    """Read (file name, text) pairs. Raises HapaxError for the first faulty line."""
    relations: dict[str, Relation] = {}
    for file, text in sources:
        relation: Relation | None = None
        for number, line in enumerate(map(str.strip, text.splitlines()), 1):
            header = _HEADER.fullmatch(line)
            key, _, rest = (part.strip() for part in line.partition(":"))
            values = tuple(map(str.strip, rest.split(";")))
            if header and header["name"] not in relations:
                types = (header["first"].strip(), header["second"].strip())
                relation = Relation(header["name"], types, int(header["key"]) - 1, header["functional"] is not None)
                relations[relation.predicate] = relation
            elif relation is not None and _fits(key, values, relation):
                relation.values[key] = values
            elif line and not line.startswith("#"):
                raise HapaxError(f"{file}:{number}: {line[:100]!r} does not belong here. {_FORM}")
    return Atlas(relations.values())


_FORM = (
    "Write `predicate NAME(Type, Type) key 1` (or `key 2 functional`) once for each predicate, and below it lines "
    "`KEY: value; value`, each key and value once. Values of numeric types, and only these, are written in digits; "
    f"others have at most {LONGEST_VALUE} characters, without , ; : / quotation marks and brackets."
)


def _fits(key: str, values: Sequence[str], relation: Relation) -> bool:
    """True for a new key of a relation with values of its types, one if it is functional."""
    types = (relation.argument_types[relation.key], relation.argument_types[1 - relation.key])
    typed = [(key, types[0]), *((value, types[1]) for value in values)]
    are_names = all(0 < len(name) <= LONGEST_VALUE and not _FORBIDDEN.search(name) for name, _ in typed)
    are_typed = all(bool(_NUMBER.fullmatch(name)) == (data_type in NUMERIC_TYPES) for name, data_type in typed)
    is_new = key not in relation.values and len(set(values)) == len(values)
    return are_names and are_typed and is_new and (len(values) == 1 or not relation.functional)


@lru_cache(maxsize=100_000)
def popularity(entity: str) -> float:
    """Popularity of a name on the zipf scale (about 1 to 7): halfway between its words' mean and its rarest word.

    A leading article is ignored.
    """
    words = entity.removeprefix("the ").split() or [entity]
    scores = [max(POPULARITY_FLOOR, zipf_frequency(word)) for word in words]
    # The mean alone would call `Key lime pie` well known, the rarest word alone would call `Lake Superior` rare.
    return (math.fsum(scores) / len(scores) + min(scores)) / 2
