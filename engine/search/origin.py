"""Source of a literal's truth, and so of the values that it gives to variables."""

from __future__ import annotations

from enum import StrEnum

from hapax.grammar.rules import ASKED_KINDS, Library, PredicateKind
from hapax.grammar.terms import Literal


class Origin(StrEnum):
    """Source of a step's values."""

    MODEL = "model"
    GIVEN = "given"
    DERIVED = "derived"
    COMPUTED = "computed"


def origin_of(literal: Literal, library: Library) -> Origin:
    """Source of the literal's truth. A predicate that is both asked and derived is asked."""
    indicator = literal.atom.indicator
    signature = library.signature(indicator)
    if indicator in library.derived and not (signature.declared and signature.kind in ASKED_KINDS):
        return Origin.DERIVED
    if signature.kind is PredicateKind.COMPUTED:
        return Origin.COMPUTED
    if signature.kind is PredicateKind.GIVEN and indicator in library.standing:
        return Origin.DERIVED  # facts follow by its declared properties, an aggregate or an exception
    return Origin.GIVEN if signature.kind is PredicateKind.GIVEN else Origin.MODEL
