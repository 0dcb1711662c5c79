"""Words for the facts of the atlas, as in a search, and falsehoods: wrong facts of five kinds, and wrong types.

A quarter of all falsehoods, selected by a hash of their sentence, is held out of training for the release gate.
"""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.parsing.parser import load_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Variable
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, AtlasFact, Relation
from hapax.llm_oracle.questions.prompts import sentence, type_claim

RULES_FOLDER = Path(__file__).parents[2] / "rules"
NARROWER_TYPES = frozenset({"Weapon"})
"""Types that rules use for an argument although some entities of the atlas there are not of the type; not taught."""


@dataclass(frozen=True, slots=True)
class PredicateWording:
    """The affirmative template of a predicate, and the type names that rules use for its arguments."""

    template: str
    data_types: tuple[tuple[str, ...], tuple[str, ...]]
    functional: bool
    """True if a search asks for the last argument with the functional prompt."""

    def words(self, first: str, second: str) -> str:
        """The atom in words; an open argument is given as its slot, such as `[B]`."""
        # By way of \0, because the first argument may contain "[2]".
        return self.template.replace("[1]", "\0").replace("[2]", second).replace("\0", first)

    @property
    def middle(self) -> str:
        """The text between the two arguments, with the blank before it but not the one after it."""
        return self.template.partition("[1]")[2].partition("[2]")[0].rstrip()


class AtlasWording:
    """Words for every predicate of an atlas."""

    def __init__(self, atlas: Atlas, library: Library) -> None:
        self.library = library
        used = _types_in_rules(library)
        signatures = {
            signature.name: signature for signature in library.signatures if len(signature.argument_types) == 2
        }
        self.predicates: dict[str, PredicateWording] = {}
        for predicate, relation in atlas.relations.items():
            signature = signatures.get(predicate)
            if signature is None or signature.templates is None:
                raise HapaxError(
                    f"The atlas lists {predicate}, but no rule file declares it with templates. Declare it."
                )
            types = []
            declared_types = zip(relation.argument_types, signature.argument_types, strict=True)
            for position, (own, declared) in enumerate(declared_types):
                # The atlas's own type comes first, and no type is repeated.
                types.append(tuple(dict.fromkeys((own, declared, *used.get((predicate, position), ())))))
            first, second = types
            functional = signature.kind is PredicateKind.FUNCTIONAL
            self.predicates[predicate] = PredicateWording(signature.templates.affirmative, (first, second), functional)

    def claim(self, predicate: str, arguments: Sequence[object]) -> str:
        """The fact in words, without a capital letter or a full stop."""
        first, second = map(str, arguments)
        return self.predicates[predicate].words(first, second)


def load_wording(atlas: Atlas, folder: Path = RULES_FOLDER) -> AtlasWording:
    """The words for the atlas in the rule files of a folder."""
    return AtlasWording(atlas, load_library([folder]))


def _types_in_rules(library: Library) -> dict[tuple[str, int], tuple[str, ...]]:
    """The variable types that rules use at each argument position of each predicate."""
    used: dict[tuple[str, int], dict[str, None]] = {}
    for rule in library.rules:
        for atom in rule.atoms:
            for position, term in enumerate(atom.arguments):
                if isinstance(term, Variable) and term.data_type not in NARROWER_TYPES:
                    used.setdefault((atom.predicate, position), {})[term.data_type] = None
    return {place: tuple(types) for place, types in used.items()}


HELD_OUT_SHARE = 4
"""One falsehood in this many is held out."""
FARTHEST_YEAR = 30
"""Greatest distance of a near miss from the true year."""
ATTEMPTS = 20
"""Most draws for a falsehood of a kind; some relations have too few values for some kinds."""

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
"""Groups of types that may share entities (apple: plant, ingredient) even if the atlas does not list them as both."""
LOOSE_TYPES = frozenset({"Subject", "Feared Thing", "Object", "Product or Technology", "Person", "Location", "Time"})
"""Types so wide that the atlas cannot decide which entities do not belong to them."""


class Falsehood(StrEnum):
    """Ways of making a wrong fact from a true one."""

    OTHER_VALUE = "other value"
    NEAR_VALUE = "near value"
    OTHER_KEY = "other key"
    WRONG_TYPE = "wrong type"
    GARBLED = "garbled"


FALSEHOOD_WEIGHTS = {
    Falsehood.OTHER_VALUE: 3.0,
    Falsehood.NEAR_VALUE: 2.0,
    Falsehood.OTHER_KEY: 3.0,
    Falsehood.WRONG_TYPE: 2.0,
    Falsehood.GARBLED: 2.0,
}


def is_held_out(claim: str) -> bool:
    """True if a falsehood with this sentence is held out of training."""
    # Unlike `hash`, a checksum is the same on all machines and in all runs.
    return zlib.crc32(claim.encode("utf-8")) % HELD_OUT_SHARE == 0


class Falsehoods:
    """Draws wrong facts and wrong types for an atlas."""

    def __init__(self, atlas: Atlas, wording: AtlasWording) -> None:
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

    def wrong_fact(self, fact: AtlasFact, rng: random.Random, held_out: bool = False) -> AtlasFact | None:
        """A falsehood made from a true fact, held out or not as asked; None if `ATTEMPTS` draws find none."""
        kind = rng.choices(list(FALSEHOOD_WEIGHTS), weights=list(FALSEHOOD_WEIGHTS.values()))[0]
        for _ in range(ATTEMPTS):
            arguments = self._wrong_arguments(fact, kind, rng)
            claim = sentence(self._wording.claim(fact.predicate, arguments))
            if claim not in self._true_claims and is_held_out(claim) == held_out:
                return AtlasFact(fact.predicate, arguments)
        return None

    def wrong_type(self, rng: random.Random, held_out: bool = False) -> str | None:
        """A claim that an entity is of a wrong type, held out or not as asked; None if `ATTEMPTS` draws find none."""
        for _ in range(ATTEMPTS):
            entity, _ = rng.choice(self._entities)
            data_type = rng.choice(self._deniable_types if rng.random() < 0.5 else self._frequent_types)
            # An entity with loose types alone cannot be denied any type.
            known = self._types_of[entity.casefold()] - LOOSE_TYPES
            if not known or not all(_exclusive(known_type, data_type) for known_type in known):
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
        """Types, repeated as often as in true claims, so that the name of a type alone reveals nothing."""
        return tuple(data_type for _, data_type in self._entities if data_type not in LOOSE_TYPES)

    def _wrong_arguments(self, fact: AtlasFact, kind: Falsehood, rng: random.Random) -> tuple[str, str]:
        relation = self._atlas.relations[fact.predicate]
        key, value = fact.arguments if relation.key == 0 else fact.arguments[::-1]
        if kind is Falsehood.OTHER_KEY:
            return relation.arguments(rng.choice(self._keys[relation.predicate]), value)
        if kind is Falsehood.GARBLED:
            if rng.random() < 0.5:
                return relation.arguments(_garbled(key, rng), value)
            return relation.arguments(key, _garbled(value, rng))
        if kind is Falsehood.WRONG_TYPE:
            return relation.arguments(key, self._alien(relation, rng))
        numeric = relation.argument_types[1 - relation.key] in NUMERIC_TYPES
        if kind is Falsehood.NEAR_VALUE and numeric:
            return relation.arguments(key, _near_number(value, self._values[relation.predicate], rng))
        if kind is Falsehood.NEAR_VALUE:
            # The value that a model is most likely to confuse: drawn as often as it is true of other keys.
            return relation.arguments(key, rng.choice(self._values[relation.predicate]))
        return relation.arguments(key, rng.choice(self._distinct_values[relation.predicate]))

    @cached_property
    def _distinct_values(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(dict.fromkeys(values)) for name, values in self._values.items()}

    def _alien(self, relation: Relation, rng: random.Random) -> str:
        """An entity that is not a value of this relation."""
        own = set(self._distinct_values[relation.predicate])
        expected = relation.argument_types[1 - relation.key]
        for _ in range(ATTEMPTS):
            entity, data_type = rng.choice(self._entities)
            if data_type != expected and entity not in own:
                return entity
        return _garbled(rng.choice(self._values[relation.predicate]), rng)


def _every_value(relation: Relation) -> tuple[str, ...]:
    """The relation's values, each repeated for every key that has it."""
    return tuple(chain.from_iterable(relation.values.values()))


def _exclusive(first: str, second: str) -> bool:
    """True if an entity of the first type is certainly not of the second."""
    return first != second and not any(first in group and second in group for group in OPEN_TYPES)


def _near_number(value: str, known: tuple[str, ...], rng: random.Random) -> str:
    """A year within `FARTHEST_YEAR`, or for other numbers one of the nearest values of the relation."""
    if len(value) == 4 and value.isdigit():
        return str(int(value) + rng.choice((-1, 1)) * rng.randint(1, FARTHEST_YEAR))
    ordered = sorted(set(known), key=float)
    place = ordered.index(value) + rng.choice((-3, -2, -1, 1, 2, 3))
    return ordered[min(max(place, 0), len(ordered) - 1)]


def _garbled(value: str, rng: random.Random) -> str:
    """The value with two to four random edits, so that it names nothing."""
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
