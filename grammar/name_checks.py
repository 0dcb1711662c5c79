"""Constants of rule files that a reference knows under other names, which other facts then do not meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from hapax.grammar import faults
from hapax.grammar.errors import Diagnostic, TextRepair
from hapax.grammar.rules import Library, atoms_of
from hapax.grammar.terms import Atom, Constant

Canonical = Callable[[str, str], str | None]
"""The canonical name of a value of a data type; None if it is unknown or ambiguous."""


def other_names(library: Library, canonical: Canonical, title: str) -> Iterator[Diagnostic]:
    """Constants in facts and rules that are not canonical names. `title`: of the reference."""
    for atom in chain(library.facts, atoms_of(library.rules)):
        signature = library.signature(atom.indicator)
        for number, (term, data_type) in enumerate(zip(atom.arguments, signature.argument_types, strict=False)):
            if not isinstance(term, Constant) or not isinstance(term.value, str):
                continue
            name = canonical(term.value, data_type)
            if name is not None and name != term.value:
                yield _diagnostic(atom, number, str(term), str(Constant(name)), title)


def _diagnostic(atom: Atom, number: int, written: str, name: str, title: str) -> Diagnostic:
    place = atom.argument_places[number] if number < len(atom.argument_places) else atom.place
    assert place is not None  # noqa: S101  the atoms of files have places
    found = faults.OTHER_NAME.at(
        place,
        f"{title} names {written} {name}, so facts under the one name do not meet those under the other",
        f"Write {name}",
    )
    return replace(found, fix=(TextRepair(place, written, name),))
