"""Check a proposed rule together with the library, and decide whether it can be accepted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hapax.grammar.checks import check_library
from hapax.grammar.errors import Diagnostic, Severity
from hapax.grammar.rules import OBJECT, Library, PredicateSignature

# tautology, premise that never holds, division by zero, duplicate, subsumed and implied rule
_REDUNDANT = frozenset(("HPX104", "HPX108", "HPX125", "HPX205", "HPX206", "HPX222"))
"""Codes of the warnings about a rule that concludes nothing new."""


def with_additions(library: Library, additions: Iterable[Library]) -> Library:
    """The library with the additions. A predicate declared over different types by two of them gets wider types."""
    rules, subtypes, signatures = list(library.rules), list(library.subtypes), list[PredicateSignature]()
    for addition in additions:
        rules += addition.rules
        subtypes += addition.subtypes
        signatures += addition.signatures
    whole = replace(library, rules=tuple(rules), subtypes=tuple(dict.fromkeys(subtypes)))
    declared = {signature.indicator: signature for signature in library.signatures if signature.declared}
    added: dict[str, PredicateSignature] = {}
    for signature in signatures:
        known = declared.get(signature.indicator)
        if known is None:
            first = added.setdefault(signature.indicator, signature)
            types = zip(first.argument_types, signature.argument_types, strict=True)
            wider = tuple(_common_supertype(pair, whole) for pair in types)
            added[signature.indicator] = replace(first, argument_types=wider)
        elif (known.kind, known.argument_types) != (signature.kind, signature.argument_types):
            added[signature.indicator] = signature  # a clash, which `check` reports
    kept = (item for item in library.signatures if item.declared or item.indicator not in added)
    return replace(whole, signatures=(*kept, *added.values()))


def _common_supertype(types: tuple[str, str], library: Library) -> str:
    """The first supertype of both types: one of the two, else a declared type, else Object; for want of one, the first.

    Persons are no objects.
    """
    candidates = (*types, *(upper for _, upper in library.subtypes), OBJECT)
    common = (upper for upper in candidates if all(library.is_subtype(data_type, upper) for data_type in types))
    return next(common, types[0])


def check_addition(addition: Library, library: Library, earlier: Sequence[Library] = ()) -> tuple[Diagnostic, ...]:
    """Diagnostics of the addition's rule and declarations, checked together with the library and earlier additions.

    The library and the earlier additions must be free of errors: every error is taken to be the addition's.
    """
    file = addition.rules[0].place.file
    found: list[Diagnostic] = []
    for diagnostic in check_library(with_additions(library, (*earlier, addition))):
        files = {diagnostic.place.file, *(place.file for place in diagnostic.related)}
        if file in files or diagnostic.severity is Severity.ERROR:
            found.append(diagnostic)
    return tuple(found)


def objection_to(addition: Library, diagnostics: Sequence[Diagnostic]) -> str | None:
    """Why the addition cannot be accepted: it has an error, or concludes nothing new. None if it can be."""
    file = addition.rules[0].place.file
    for diagnostic in diagnostics:
        redundant = diagnostic.code in _REDUNDANT and diagnostic.place.file == file
        if redundant or diagnostic.severity is Severity.ERROR:
            return f"{diagnostic.code}: {diagnostic.message}"
    return None
