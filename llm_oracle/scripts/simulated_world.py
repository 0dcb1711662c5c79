"""A world whose truth is known, so that a search can be measured without any real model.

A `SimulatedWorld` is made from a rule library and a seed. Each data type has invented entities, ranked by popularity
(Zipf). A hash decides if a fact holds, so the truth needs no table and two worlds with the same seed agree.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain, product, zip_longest

from hapax.grammar.data_types import type_key
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.kb.records import content_id
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.reading.sentence_reader import SentenceReader, is_placeholder

FIRST_NUMBER, NUMBER_STEP = 1400, 3
"""A numeric type holds FIRST_NUMBER and every third number after it, which can be read as years."""

MOST_DENSITY = 0.5
"""Most true atoms of a predicate, as a share, in a world with few entities."""

FINGERPRINT_DIGITS = 12

_SYLLABLES = tuple(map("".join, product("bdfgklmnprstvz", "aeiou")))


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Sizes of the world and error rates of its models. All rates are shares between 0 and 1."""

    entities_per_type: int = 120
    facts_per_argument: float = 8.0
    """Expected number of right values for a question of an oracle predicate."""
    recall: float = 0.9
    """Share of the true facts that the generator knows at all."""
    precision: float = 0.75
    """Share of a list's well-formed lines that are true, as long as the generator knows enough true values."""
    duplicates: float = 0.1
    malformed: float = 0.05
    """Shares of lines that repeat an earlier one, and of lines that are not list items."""
    critic_recall: float = 0.95
    """Share of true claims that get P(yes) >= 0.85."""
    critic_false_alarms: float = 0.03
    """Share of false claims that get P(yes) >= 0.85."""


@dataclass(frozen=True, slots=True)
class SentenceAtom:
    """A sentence read as an atom. `arguments`: value at each position, None for a placeholder; `slots`: their texts."""

    signature: PredicateSignature
    arguments: tuple[Value | None, ...]
    slots: tuple[str, ...]
    denied: bool = False

    def filled(self, values: Mapping[str, Value]) -> list[Value | None]:
        """The arguments, with values for some of the slots by their texts."""
        return [values.get(slot, known) for slot, known in zip(self.slots, self.arguments, strict=True)]


@dataclass(frozen=True)
class SimulatedWorld:
    """Entities and truth. `holds` never changes for the same library, seed and settings."""

    library: Library
    seed: int = 0
    settings: SimulationSettings = field(default_factory=SimulationSettings)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Keys of all data types in the library, in order of first mention."""
        library = self.library.completed()
        types = (
            *(signature.argument_types for signature in library.signatures),
            *([variable.data_type for variable in rule.variables] for rule in library.rules),
            *library.subtypes,
        )
        return tuple(dict.fromkeys(map(type_key, chain.from_iterable(types))))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the settings and types, which distinguishes worlds with the same seed."""
        types = [list(self.types), sorted(map(list, self.library.subtypes))]
        return content_id("world", asdict(self.settings), *types)[:FINGERPRINT_DIGITS]

    @cached_property
    def _own_entities(self) -> dict[str, tuple[Value, ...]]:
        """Entities of each type itself, most popular first. A type with subtypes has only theirs."""
        count = self.settings.entities_per_type
        divided = {type_key(supertype) for _, supertype in self.library.subtypes}
        names = _names(random.Random(f"names {self.seed}"))  # noqa: S311  # reproducible, not secret
        numbers = tuple(FIRST_NUMBER + NUMBER_STEP * place for place in range(count))
        entities: dict[str, tuple[Value, ...]] = {}
        # The names are drawn from one generator, so the order of the types is part of the world.
        for data_type in self.types:
            if data_type not in divided:
                is_numeric = self.library.is_numeric(data_type)
                entities[data_type] = numbers if is_numeric else tuple(next(names) for _ in range(count))
        return entities

    @cached_property
    def _siblings(self) -> dict[Value, tuple[Value, ...]]:
        """The entities of an entity's own type."""
        siblings: dict[Value, tuple[Value, ...]] = {}
        for entities in self._own_entities.values():
            siblings.update(dict.fromkeys(entities, entities))
        return siblings

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Popularity rank of each name within its type, from 0. Names are in lower case."""
        ranks: dict[str, int] = {}
        for entities in self._own_entities.values():
            ranks.update((entity, rank) for rank, entity in enumerate(entities) if isinstance(entity, str))
        return ranks

    _extensions: dict[str, tuple[Value, ...]] = field(default_factory=dict, init=False, compare=False)
    _members: dict[str, frozenset[Value]] = field(default_factory=dict, init=False, compare=False)

    def entities(self, data_type: str) -> tuple[Value, ...]:
        """All entities of a type and its subtypes, most popular first."""
        key = type_key(data_type)
        if key not in self._extensions:
            subtypes = [subtype for subtype in self.types if self.library.is_subtype(subtype, key)]
            # By rank: the first of each subtype, then the second ones.
            ranks = zip_longest(*(self._own_entities.get(subtype, ()) for subtype in subtypes))
            self._extensions[key] = tuple(entity for entity in dict.fromkeys(chain(*ranks)) if entity is not None)
        return self._extensions[key]

    def is_a(self, value: Value, data_type: str) -> bool:
        if data_type not in self._members:
            self._members[data_type] = frozenset(self.entities(data_type))
        return value in self._members[data_type]

    def holds(self, indicator: str, arguments: Sequence[Value]) -> bool:
        """Tell if a fact is true. Arguments of a wrong type make it false.

        A functional predicate has one right last argument in each type of it that has no subtypes.
        """
        signature = self.library.signature(indicator)
        if not self.are_typed(signature, arguments):
            return False
        if signature.kind is PredicateKind.FUNCTIONAL:
            # Each type without subtypes chooses for itself, so the value's siblings are all that it competes with.
            choices = self._siblings[arguments[-1]]
            return arguments[-1] == choices[int(self.chance("function", indicator, *arguments[:-1]) * len(choices))]
        count = len(self.entities(signature.argument_types[-1]))
        density = min(MOST_DENSITY, self.settings.facts_per_argument / max(1, count))
        return self.chance("fact", indicator, *arguments) < density

    def popularity(self, word: str) -> float | None:
        """Zipf probability of an entity's name; None for any other word."""
        rank = self._ranks.get(word)
        if rank is None:
            return None
        # ln n + 0.58 approximates the harmonic number, so that the probabilities of a type sum to 1.
        return 1 / ((rank + 1) * (math.log(self.settings.entities_per_type) + 0.58))

    def named(self, words: str) -> Value:
        """The value of a sentence's argument: an entity in any case, a number, or unknown text."""
        folded = words.strip().casefold()
        if folded in self._ranks:
            return folded
        number = parse_number(words)
        return words.strip() if number is None else number

    def chance(self, *parts: object) -> float:
        """A number in [0, 1) that depends only on the seed and these parts."""
        # U+0000 keeps the parts apart: `ab`, `c` is not `a`, `bc`.
        digest = hashlib.sha256("\0".join(map(str, (self.seed, *parts))).encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:7]) / 2**56  # seven bytes: a float has 53 bits

    @cached_property
    def _reader(self) -> SentenceReader:
        return SentenceReader(self.library)

    def read(self, clause: str) -> list[SentenceAtom]:
        """All readings of a clause as an atom of the library."""
        readings = []
        for reading in self._reader.readings(clause):
            values = tuple(None if is_placeholder(text) else self.named(text) for text in reading.slots)
            readings.append(SentenceAtom(reading.signature, values, reading.slots, reading.denied))
        return readings

    def fits(self, reading: SentenceAtom) -> bool:
        """True if all values have the types of their positions."""
        return self.are_typed(reading.signature, reading.arguments)

    def are_typed(self, signature: PredicateSignature, arguments: Sequence[Value | None]) -> bool:
        """True if all values have the types of their positions; None has every type."""
        typed = zip(arguments, signature.argument_types, strict=True)
        return all(value is None or self.is_a(value, data_type) for value, data_type in typed)


def _names(rng: random.Random) -> Iterator[str]:
    """Invented words of three syllables, each once, in an order that depends on the seed."""
    total = len(_SYLLABLES) ** 3
    # A step without a common divisor visits every number before it repeats one.
    step = rng.choice([step for step in range(total // 3, total // 2) if math.gcd(step, total) == 1])
    place = rng.randrange(total)
    while True:
        place = (place + step) % total
        first, rest = divmod(place, len(_SYLLABLES) ** 2)
        yield _SYLLABLES[first] + _SYLLABLES[rest // len(_SYLLABLES)] + _SYLLABLES[rest % len(_SYLLABLES)]
