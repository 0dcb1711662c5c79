"""Declarations about predicates and types beyond their signatures: closedness, properties, disjointness, constraints.

`symmetric` and `transitive` give facts, as the rules of `Library.closure_rules`. `asymmetric`, `irreflexive`,
`disjoint` and `never` forbid facts together, as the constraints of `Library.constraints`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from hapax.grammar.closedness import Closedness
from hapax.grammar.errors import Place
from hapax.grammar.terms import BodyLiteral


class Property(StrEnum):
    """A property of a predicate of two arguments, by its keyword."""

    SYMMETRIC = "symmetric"
    ASYMMETRIC = "asymmetric"
    IRREFLEXIVE = "irreflexive"
    TRANSITIVE = "transitive"


GENERATING = (Property.SYMMETRIC, Property.TRANSITIVE)
"""Properties from which facts follow; the others forbid facts."""


@dataclass(frozen=True, slots=True)
class PropertyDeclaration:
    """`symmetric p/2` and the like."""

    property: Property
    indicator: str
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.property} {self.indicator}"


@dataclass(frozen=True, slots=True)
class ClosedDeclaration:
    """`closed p/2` or, closed for each first argument, `closed p/2 by 1`."""

    indicator: str
    closedness: Closedness = Closedness.CLOSED
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"closed {self.indicator}{' by 1' if self.closedness is Closedness.CLOSED_FOR_FIRST else ''}"


@dataclass(frozen=True, slots=True)
class DisjointTypes:
    """`disjoint Person, Dish`: no constant is of both types."""

    first: str
    second: str
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"disjoint {self.first}, {self.second}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """`never A & B`: premises that do not hold together. `origin`: the declaration that forbids them."""

    premise: tuple[BodyLiteral, ...]
    origin: str = field(default="", compare=False, repr=False)
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"never {' & '.join(map(str, self.premise))}"


Declaration: TypeAlias = PropertyDeclaration | ClosedDeclaration | DisjointTypes | Constraint
