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

ATLAS_FOLDER = Path(__file__).parent / "atlas"
LONGEST_VALUE = 36
"""Characters. Longer values are sentences rather than names."""
POPULARITY_FLOOR = 1.0
"""Zipf value (log10 of occurrences per 10**9 words) of words that wordfreq does not list."""
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


@dataclass(frozen=True, slots=True)
class AtlasFault:
    """A fault in an atlas file. `line` counts from 1."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class AtlasRejected(HapaxError):  # noqa: N818  # named like RulesRejected
    """An atlas with faults. The message lists all of them, one per line."""

    def __init__(self, faults: Iterable[AtlasFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


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
    """Read the `*.atlas` files of a folder. Raises `AtlasRejected` with all faults of all files."""
    return parse_atlas((path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.atlas")))


def parse_atlas(sources: Iterable[tuple[str, str]]) -> Atlas:
    """Read (file name, text) pairs. Raises `AtlasRejected` with all faults."""
    reader = _AtlasReader()
    for file, text in sources:
        reader.read(file, text)
    if not reader.relations and not reader.faults:
        reader.faults.append(AtlasFault("<atlas>", 1, "no predicate found. Write `predicate name(Type, Type) key 1`."))
    if reader.faults:
        raise AtlasRejected(reader.faults)
    return Atlas(reader.relations.values())


@lru_cache(maxsize=100_000)
def popularity(entity: str) -> float:
    """Popularity of a name on the zipf scale (about 1 to 7): halfway between its words' mean and its rarest word.

    A leading article is ignored.
    """
    from wordfreq import zipf_frequency  # loading the word list costs 0.2 s

    words = entity.removeprefix("the ").split() or [entity]
    scores = [max(POPULARITY_FLOOR, zipf_frequency(word, "en")) for word in words]
    # The mean alone would call `Key lime pie` well known, the rarest word alone would call `Lake Superior` rare.
    return (math.fsum(scores) / len(scores) + min(scores)) / 2


class _AtlasReader:
    """Reads atlas files line by line and collects their faults."""

    def __init__(self) -> None:
        self.relations: dict[str, Relation] = {}
        self.faults: list[AtlasFault] = []
        self._current: Relation | None = None

    def read(self, file: str, text: str) -> None:
        self._current = None
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.strip()
            if not words or words.startswith("#"):
                continue
            step = self._open if words.startswith("predicate ") else self._add
            self.faults.extend(AtlasFault(file, number, message) for message in step(words))

    def _open(self, line: str) -> Iterator[str]:
        match = _HEADER.fullmatch(line)
        self._current = None
        if match is None:
            yield "malformed header. Write `predicate name(Type, Type) key 1` or `... key 2 functional`."
            return
        types = (match["first"].strip(), match["second"].strip())
        self._current = Relation(match["name"], types, int(match["key"]) - 1, match["functional"] is not None)
        if match["name"] in self.relations:
            yield f"{match['name']} already has a header above. Put all its lines under one header."
        else:
            self.relations[match["name"]] = self._current

    def _add(self, line: str) -> Iterator[str]:
        relation = self._current
        if relation is None:
            yield "this line is not below a valid `predicate` header. Write one above it."
            return
        key, colon, rest = line.partition(":")
        key, values = key.strip(), tuple(value.strip() for value in rest.split(";"))
        if not colon:
            yield "no colon. Write `key: value; value`."
            return
        yield from _value_faults(key, relation.argument_types[relation.key])
        for value in values:
            yield from _value_faults(value, relation.argument_types[1 - relation.key])
        if len(set(values)) < len(values):
            yield f"a value of {key} is repeated. Remove one of the two."
        if relation.functional and len(values) != 1:
            yield f"{relation.predicate} is functional, but {key} has {len(values)} values. Give one."
        if key in relation.values:
            yield f"{key} is already a key of {relation.predicate}. Join the two lines."
        relation.values.setdefault(key, values)  # faulty or not, so that a repeated key is found


def _value_faults(value: str, data_type: str) -> Iterator[str]:
    if not value:
        yield "an empty value. Remove the separator or write the value."
    if len(value) > LONGEST_VALUE:
        yield f"{value[:LONGEST_VALUE]}... has {len(value)} characters, more than {LONGEST_VALUE}. Shorten it."
    if _FORBIDDEN.search(value):
        yield f"{value!r} contains a character that would end a value. Spell it without."
    # An empty value already has its fault.
    if bool(_NUMBER.fullmatch(value)) != (data_type in NUMERIC_TYPES) and value:
        numeric = ", ".join(sorted(NUMERIC_TYPES))
        yield f"{value} as a {data_type}: values of numeric types ({numeric}), and only these, are written in digits."
