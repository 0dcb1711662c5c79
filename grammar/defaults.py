"""What a rule means where its text says nothing: polarity, principle and generic variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from grammar.rules import PERSON, GenericBy, Polarity, Principle
from grammar.terms import BodyLiteral, Literal, Variable

PRINCIPLE_SPELLINGS = {
    "compatibility": Principle.COMPATIBILITY,
    "exclusion": Principle.EXCLUSION,
    "mutual exclusivity": Principle.EXCLUSION,  # the paper's name
}

_NEGATIVE_NAME = re.compile(r"(?:^|_)(?:not|no|never|cannot)(?:_|$)")


def default_polarity(conclusion: Literal) -> Polarity:
    """Negative where the predicate's name denies (`cannot_plant`, `is_not_able_to_eat`, `has_no_use_for`)."""
    denies = bool(_NEGATIVE_NAME.search(conclusion.atom.predicate)) != conclusion.negated
    return Polarity.NEGATIVE if denies else Polarity.POSITIVE


def default_principle(polarity: Polarity) -> Principle:
    """The paper ties the two: compatible conditions allow something, excluding ones forbid it."""
    return Principle.EXCLUSION if polarity is Polarity.NEGATIVE else Principle.COMPATIBILITY


def is_person_alone(data_type: str) -> bool:
    """The answer of a library without declarations."""
    return data_type.casefold() == PERSON.casefold()


def default_generic(
    premise: Sequence[BodyLiteral], conclusion: Literal, is_person: Callable[[str], bool] = is_person_alone
) -> tuple[str, ...]:
    """Persons of both premise and conclusion; else the first argument of the first premise atom, if concluded about."""
    return inferred_generic(premise, conclusion, is_person)[0]


def inferred_generic(
    premise: Sequence[BodyLiteral], conclusion: Literal, is_person: Callable[[str], bool]
) -> tuple[tuple[str, ...], GenericBy]:
    """`default_generic`, and which of its conventions found the variables."""
    atoms = [item.atom for item in premise if isinstance(item, Literal)]
    told = {variable.name for atom in atoms for variable in atom.variables}
    persons = [one.name for one in conclusion.variables if is_person(one.data_type) and one.name in told]
    if persons:
        return tuple(dict.fromkeys(persons)), GenericBy.PERSON
    first = atoms[0].arguments[0] if atoms else None
    concluded = {variable.name for variable in conclusion.variables}
    if isinstance(first, Variable) and first.name in concluded:
        return (first.name,), GenericBy.POSITION
    return (), GenericBy.NOTHING
