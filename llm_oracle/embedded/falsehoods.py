"""What the critic must say no to: wrong facts of six kinds and wrong types, none of them true by the atlas.

A quarter of all falsehoods, chosen by a hash of their sentence, is never used in training; the gate measures on them.
"""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, AtlasFact, Relation
from llm_oracle.embedded.wording import Wording
from llm_oracle.prompts import sentence, type_claim

HELD_OUT_SHARE = 4
"""One falsehood in so many is held out."""
FARTHEST_YEAR = 30
"""How far a near miss of a year goes, in years."""
ATTEMPTS = 20
"""Draws before a falsehood of one kind is given up; some relations have too few values for some kinds."""

OPEN_TYPES: tuple[frozenset[str], ...] = (
    frozenset({"Animal", "Ingredient", "Raw Material", "Plant", "Food Allergen", "Food Group", "Beverage", "Cheese"}),
    frozenset({"Animal", "Plant", "Pathogen", "Equipment", "Animal Class"}),
    frozenset({"Element", "Metal", "Mineral", "Nutrient", "Alloy", "Drug", "Ingredient", "Raw Material"}),
    frozenset({"Historical Figure", "Author", "Director", "Person", "Profession"}),
    frozenset({"Landmark", "Structure", "Invention", "City"}),
    frozenset({"Invention", "Tool", "Instrument", "Equipment", "Sport"}),
    frozenset({"Invention", "Ingredient", "Raw Material", "Beverage", "Drug", "Alloy", "Dish"}),
    frozenset({"Disease", "Pathogen", "Phobia"}),
    frozenset({"Book", "Film"}),
    frozenset({"City", "Country"}),
    frozenset({"Dish", "Ingredient", "Food Group"}),
    frozenset({"Planet", "Star", "Moon"}),
    NUMERIC_TYPES | {"Time", "Historical Time Period"},
)
"""Groups of types whose entities may well be of each other's type (apple: plant, ingredient) though no line says so."""
LOOSE_TYPES = frozenset({"Subject", "Feared Thing", "Object", "Product or Technology", "Person", "Location", "Time"})
"""Types too wide for the atlas to say what is not of them."""


class Falsehood(StrEnum):
    """How a wrong fact was made from a true one."""

    OTHER_VALUE = "other value"
    NEAR_VALUE = "near value"
    OTHER_KEY = "other key"
    WRONG_TYPE = "wrong type"
    GARBLED = "garbled"
    BLENDED = "blended"


FALSEHOOD_WEIGHTS = {
    Falsehood.OTHER_VALUE: 3.0,
    Falsehood.NEAR_VALUE: 2.0,
    Falsehood.OTHER_KEY: 3.0,
    Falsehood.WRONG_TYPE: 2.0,
    Falsehood.GARBLED: 1.0,
    Falsehood.BLENDED: 1.0,
}


@dataclass(frozen=True, slots=True)
class WrongFact:
    """A false fact with how it was made."""

    fact: AtlasFact
    kind: Falsehood


def is_held_out(claim: str) -> bool:
    """Whether a falsehood with this sentence is kept from training. Stable over machines and versions."""
    return zlib.crc32(claim.encode("utf-8")) % HELD_OUT_SHARE == 0


class Falsehoods:
    """Draws wrong facts and wrong types for an atlas."""

    def __init__(self, atlas: Atlas, wording: Wording) -> None:
        self._atlas, self._wording = atlas, wording
        self._true_claims = {sentence(wording.claim(fact.predicate, fact.arguments)) for fact in atlas.facts}
        self._types_of: dict[str, set[str]] = defaultdict(set)
        for predicate in atlas.relations:
            for position in (0, 1):
                for entity in atlas.true_values(predicate, position):
                    self._types_of[entity.casefold()].update(wording.predicates[predicate].data_types[position])
        self._values = {name: _every_value(relation) for name, relation in atlas.relations.items()}
        self._keys = {name: tuple(relation.values) for name, relation in atlas.relations.items()}
        self._entities = tuple((entity, data_type) for data_type in atlas.types for entity in atlas.entities(data_type))

    def wrong_fact(self, fact: AtlasFact, rng: random.Random, held_out: bool = False) -> WrongFact | None:
        """A falsehood near a true fact, held out or not as asked; None if chance finds none."""
        kind = rng.choices(list(FALSEHOOD_WEIGHTS), weights=list(FALSEHOOD_WEIGHTS.values()))[0]
        for _ in range(ATTEMPTS):
            arguments = self._wrong_arguments(fact, kind, rng)
            claim = sentence(self._wording.claim(fact.predicate, arguments))
            if claim not in self._true_claims and is_held_out(claim) == held_out:
                return WrongFact(AtlasFact(fact.predicate, arguments), kind)
        return None

    def wrong_type(self, rng: random.Random, held_out: bool = False) -> str | None:
        """The claim that some entity is of a type it is not, or None if chance finds none."""
        for _ in range(ATTEMPTS):
            entity, _ = rng.choice(self._entities)
            data_type = rng.choice(self._deniable_types if rng.random() < 0.5 else self._frequent_types)
            known = self._types_of[entity.casefold()] - LOOSE_TYPES
            if not known or not all(_exclusive(one, data_type) for one in known):
                continue
            claim = type_claim(_garbled(entity, rng) if rng.random() < 0.1 else entity, data_type)
            if is_held_out(claim) == held_out:
                return claim
        return None

    @cached_property
    def _deniable_types(self) -> tuple[str, ...]:
        return tuple(data_type for data_type in self._atlas.types if data_type not in LOOSE_TYPES)

    @cached_property
    def _frequent_types(self) -> tuple[str, ...]:
        """Types as often as true claims name them, so that a type's name alone tells nothing."""
        return tuple(data_type for _, data_type in self._entities if data_type not in LOOSE_TYPES)

    def _wrong_arguments(self, fact: AtlasFact, kind: Falsehood, rng: random.Random) -> tuple[str, str]:
        relation = self._atlas.relations[fact.predicate]
        key, value = fact.arguments if relation.key == 0 else fact.arguments[::-1]
        if kind is Falsehood.OTHER_KEY:
            return relation.arguments(rng.choice(self._keys[relation.predicate]), value)
        if kind in (Falsehood.GARBLED, Falsehood.BLENDED):
            if rng.random() < 0.5:
                return relation.arguments(self._invented(key, kind, rng), value)
            return relation.arguments(key, self._invented(value, kind, rng))
        if kind is Falsehood.WRONG_TYPE:
            return relation.arguments(key, self._alien(relation, rng))
        numeric = relation.argument_types[1 - relation.key] in NUMERIC_TYPES
        if kind is Falsehood.NEAR_VALUE and numeric:
            return relation.arguments(key, _near_number(value, self._values[relation.predicate], rng))
        if kind is Falsehood.NEAR_VALUE:
            # What a model confuses: drawn as often as it is true of other keys.
            return relation.arguments(key, rng.choice(self._values[relation.predicate]))
        return relation.arguments(key, rng.choice(self._distinct_values[relation.predicate]))

    def _invented(self, name: str, kind: Falsehood, rng: random.Random) -> str:
        """A name that the atlas does not have, made from one that it has."""
        for _ in range(ATTEMPTS):
            other, _ = rng.choice(self._entities)
            invented = _garbled(name, rng) if kind is Falsehood.GARBLED else _blended(name, other, rng)
            if invented.casefold() not in self._types_of:
                return invented
        return _garbled(name, rng)

    @cached_property
    def _distinct_values(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(dict.fromkeys(values)) for name, values in self._values.items()}

    def _alien(self, relation: Relation, rng: random.Random) -> str:
        """An entity that never stands where this relation's values stand."""
        own = set(self._distinct_values[relation.predicate])
        expected = relation.argument_types[1 - relation.key]
        for _ in range(ATTEMPTS):
            entity, data_type = rng.choice(self._entities)
            if data_type != expected and entity not in own:
                return entity
        return _garbled(rng.choice(self._values[relation.predicate]), rng)


def _every_value(relation: Relation) -> tuple[str, ...]:
    """The relation's values, each as often as it is true."""
    return tuple(value for values in relation.values.values() for value in values)


def _exclusive(one: str, other: str) -> bool:
    """Whether what is of the one type can be told not to be of the other."""
    return one != other and not any(one in group and other in group for group in OPEN_TYPES)


def _near_number(value: str, known: tuple[str, ...], rng: random.Random) -> str:
    """A year within `FARTHEST_YEAR`, or a neighbouring value of a smaller scale; near misses are the hardest."""
    if len(value) == 4 and value.isdigit():
        return str(int(value) + rng.choice((-1, 1)) * rng.randint(1, FARTHEST_YEAR))
    ordered = sorted(set(known), key=float)
    place = ordered.index(value) + rng.choice((-3, -2, -1, 1, 2, 3))
    return ordered[min(max(place, 0), len(ordered) - 1)]


def _blended(value: str, other: str, rng: random.Random) -> str:
    """A name made of the beginning of the one and the end of the other, as a sampling model runs names together."""
    head, tail = (value, other) if rng.random() < 0.5 else (other, value)
    return (head[: rng.randint(1, len(head))] + tail[rng.randint(0, len(tail) - 1) :]).strip() or "q"


def _garbled(value: str, rng: random.Random) -> str:
    """The value with two to four letters changed, so that it names nothing."""
    letters = list(value)
    for _ in range(rng.randint(2, 4)):
        place = rng.randrange(len(letters))
        edit = rng.randrange(3)
        if edit == 0 and len(letters) > 2:
            del letters[place]
        elif edit == 1:
            letters.insert(place, rng.choice("0123456789" if value.isdigit() else "abcdefghijklmnopqrstuvwxyz"))
        else:
            letters[place] = rng.choice("0123456789" if value.isdigit() else "abcdefghijklmnopqrstuvwxyz")
    return "".join(letters).strip() or "q"
