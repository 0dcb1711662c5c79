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
from hapax.grammar.terms import Atom, BodyLiteral, Variable, variable_names


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


AGGREGATE_FUNCTIONS = ("count", "sum", "min", "max", "avg")
"""The functions of aggregates. All but `count` are of the first counted variable, whose values are numbers."""


@dataclass(frozen=True, slots=True)
class AggregateDeclaration:
    """`aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))`.

    The atom holds for each group of bindings of the premise that agree in the atom's other variables, with the
    function's value over the distinct values of the `counted` variables as `result`.
    """

    atom: Atom
    result: str
    function: str
    counted: tuple[Variable, ...]
    premise: tuple[BodyLiteral, ...]
    place: Place = field(default=Place(), compare=False, repr=False)

    @property
    def group(self) -> tuple[Variable, ...]:
        """The variables of the atom without the result."""
        return tuple(variable for variable in self.atom.variables if variable.name != self.result)

    @property
    def is_evaluable(self) -> bool:
        """True if the function is known and the result is a variable of the atom alone; `check` reports the rest."""
        is_own = self.result in variable_names([self.atom]) and self.result not in variable_names(self.premise)
        return self.function in AGGREGATE_FUNCTIONS and is_own

    def __str__(self) -> str:
        counted, premise = ", ".join(map(str, self.counted)), " & ".join(map(str, self.premise))
        return f"aggregate {self.atom} := {self.result} = {self.function}({counted}: {premise})"


Declaration: TypeAlias = PropertyDeclaration | ClosedDeclaration | DisjointTypes | Constraint | AggregateDeclaration
