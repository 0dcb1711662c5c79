"""Attributes of a rule (`@domain`, `@principle`, `@polarity`, `@generic`): their values and their defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hapax.grammar.terms import BodyLiteral, Literal, Variable, variable_names


class Domain(StrEnum):
    """The paper's four domains (section 2.2), as the rule files write them."""

    TEMPORAL = "temporal"
    OUTCOMES = "outcomes and effects"
    NATURAL = "natural properties"
    LOCATIONAL = "locational"


class Principle(StrEnum):
    """The paper's two principles (section 2.2): conditions that agree with each other, or rule each other out."""

    COMPATIBILITY = "compatibility"
    EXCLUSION = "exclusion"


class Polarity(StrEnum):
    """Affirming or denying conclusion; template 7 of the probing takes its label from it."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class GenericBy(StrEnum):
    """The convention that chose a rule's generic variables, in the words that `plan` prints."""

    ATTRIBUTE = "@generic"
    PERSON = "by default, a person"
    POSITION = "by default, first argument"
    NOTHING = "by default"
    FACTS = "over facts, of which no model is asked"


PRINCIPLE_SPELLINGS = {
    "compatibility": Principle.COMPATIBILITY,
    "exclusion": Principle.EXCLUSION,
    "mutual exclusivity": Principle.EXCLUSION,  # the paper's name
}

# A whole word of the name: cannot_plant, has_no_use_for, but neither is_known_by nor is_notable.
_NEGATIVE_NAME = re.compile(r"(?:^|_)(?:not|no|never|cannot)(?:_|$)")


@dataclass(frozen=True, slots=True)
class StatementCap:
    """The most statements of each end of a search that share a value of one of these variables (`@most 2 per A B`).

    Without it, a rule that only compares two years fills a list with one war and every invention.
    """

    count: int
    variables: tuple[str, ...]

    @classmethod
    def parsed(cls, text: str) -> StatementCap | None:
        """The cap that a text such as `2 per A B` states; None for any other text."""
        match text.split():
            case [count, "per", *names] if count.isdecimal() and int(count) > 0 and names:
                return cls(int(count), tuple(dict.fromkeys(names)))
        return None

    def __str__(self) -> str:
        return f"{self.count} per {' '.join(self.variables)}"


def default_polarity(conclusion: Literal) -> Polarity:
    """Negative if the predicate's name denies (`cannot_plant`, `is_not_able_to_eat`, `has_no_use_for`)."""
    return Polarity.NEGATIVE if _NEGATIVE_NAME.search(conclusion.atom.predicate) else Polarity.POSITIVE


def default_principle(polarity: Polarity) -> Principle:
    """The paper ties the two: compatible conditions allow something, excluding ones forbid it."""
    return Principle.EXCLUSION if polarity is Polarity.NEGATIVE else Principle.COMPATIBILITY


def default_generic(
    premise: Sequence[BodyLiteral], conclusion: Literal, is_person: Callable[[str], bool]
) -> tuple[tuple[str, ...], GenericBy]:
    """Names of the variables that are generic without `@generic`, and the convention that chose them.

    These are the persons that premise and conclusion share; without any, the first argument of the premise's first
    atom, if the conclusion mentions it.
    """
    atoms = [item.atom for item in premise if isinstance(item, Literal)]
    in_premise = variable_names(atoms)
    persons = [
        variable.name
        for variable in conclusion.variables
        if is_person(variable.data_type) and variable.name in in_premise
    ]
    if persons:
        return tuple(dict.fromkeys(persons)), GenericBy.PERSON
    first = atoms[0].arguments[0] if atoms and atoms[0].arguments else None
    if isinstance(first, Variable) and first.name in variable_names([conclusion]):
        return (first.name,), GenericBy.POSITION
    return (), GenericBy.NOTHING
