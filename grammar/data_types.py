"""Data types: the built-in ones, and which types are subtypes of others."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import combinations

from hapax.grammar.terms import ANY, reached
from hapax.grammar.values.moments import DATE, DATE_TIME, DURATION, TIME

NUMBER = "Number"
"""The supertype of all numeric types, which comparisons of order and arithmetic need."""

OBJECT = "Object"
"""The supertype of all types but persons: LINK expands types under Person and under Object (paper, appendix B)."""

PERSON = "Person"

TEXT = "Text"

KINDS = (NUMBER, TEXT, DATE, TIME, DATE_TIME, DURATION)
"""The types whose values calculations take."""

BUILT_IN_SUBTYPES: tuple[tuple[str, str], ...] = (("Year", NUMBER), ("Age", NUMBER))


@lru_cache(maxsize=10_000)  # called for every argument of every rule, many times
def type_key(data_type: str) -> str:
    """The type's name without differences of case and of blanks; spellings with one key name one type."""
    return " ".join(data_type.casefold().split())


class TypeLattice:
    """Types with the pairs of them that are declared as subtype and supertype."""

    subtypes: tuple[tuple[str, str], ...]

    @cached_property
    def _supertypes(self) -> dict[str, frozenset[str]]:
        """Keys of all supertypes, by type key."""
        parents: dict[str, set[str]] = {}
        for lower, upper in (*BUILT_IN_SUBTYPES, *self.subtypes):
            parents.setdefault(type_key(lower), set()).add(type_key(upper))
        # Types declared in a cycle are supertypes of one another and so equal; `check` reports the cycle.
        return {lower: frozenset(reached(parents[lower], lambda key: parents.get(key, ()))) for lower in parents}

    def is_subtype(self, lower: str, upper: str) -> bool:
        """True if every `lower` is an `upper`. A type is its own subtype, and all types but persons are objects."""
        if type_key(lower) == type_key(upper) or upper == ANY or self.is_declared_subtype(lower, upper):
            return True
        if lower == ANY:
            return False
        return type_key(upper) == type_key(OBJECT) and not self.is_person(lower)

    def is_declared_subtype(self, lower: str, upper: str) -> bool:
        """True if declarations put `lower` below `upper`; that all but persons are objects does not count."""
        return type_key(upper) in self.supertypes(lower)

    def supertypes(self, data_type: str) -> frozenset[str]:
        """Keys of its declared supertypes; types declared in a cycle have the same ones, themselves among them."""
        return self._supertypes.get(type_key(data_type), frozenset())

    def is_numeric(self, data_type: str) -> bool:
        """True for Number, Year, Age and the types declared below them."""
        return type_key(NUMBER) in (type_key(data_type), *self.supertypes(data_type))

    def may_be_numeric(self, data_type: str) -> bool:
        """True for numeric types and their supertypes, such as Time above Year: some values can be numbers."""
        return self.is_numeric(data_type) or any(self.is_subtype(numeric, data_type) for numeric in self._numeric)

    @cached_property
    def _numeric(self) -> tuple[str, ...]:
        """Number and the keys of its subtypes."""
        return (NUMBER, *(key for key in self._supertypes if self.is_numeric(key)))

    def kind_of(self, data_type: str) -> str:
        """The built-in type that a type is or stands below: Number, Text, Date ...; Object for one of anything."""
        keys = {type_key(data_type), *self.supertypes(data_type)}
        return next((kind for kind in KINDS if type_key(kind) in keys), OBJECT)

    def is_person(self, data_type: str) -> bool:
        return type_key(PERSON) in (type_key(data_type), *self.supertypes(data_type))

    def most_specific(self, data_types: tuple[str, ...]) -> str | None:
        """The type that is a subtype of all the others; None if two of them are unrelated."""
        if len(set(data_types)) == 1:
            return data_types[0]
        for first, second in combinations(data_types, 2):
            if not (self.is_subtype(first, second) or self.is_subtype(second, first)):
                return None
        lowest = (lower for lower in data_types if all(self.is_subtype(lower, upper) for upper in data_types))
        return next(lowest, None)
