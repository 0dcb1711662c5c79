"""What `check` says of a proposed rule beside the library, and whether anything stands against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from grammar import faults
from grammar.checks import check_library
from grammar.errors import Diagnostic, Severity
from grammar.rules import OBJECT, Library, PredicateSignature


def joined(library: Library, additions: Iterable[Library]) -> Library:
    """The library with the additions. A predicate that two of them declare over different types takes both."""
    listed = list(additions)
    pairs = (*library.subtypes, *(pair for one in listed for pair in one.subtypes))
    whole = replace(library, subtypes=tuple(dict.fromkeys(pairs)))
    declared = {one.indicator: one for one in library.signatures if one.declared}
    added: dict[str, PredicateSignature] = {}
    for signature in (signature for one in listed for signature in one.signatures):
        known = declared.get(signature.indicator)
        if known is None:
            first = added.setdefault(signature.indicator, signature)
            added[signature.indicator] = replace(first, argument_types=_wider(first, signature, whole))
        elif (known.kind, known.argument_types) != (signature.kind, signature.argument_types):
            added[signature.indicator] = signature  # a clash, which `check` tells
    return replace(
        whole,
        rules=(*library.rules, *(rule for one in listed for rule in one.rules)),
        signatures=(
            *(one for one in library.signatures if one.declared or one.indicator not in added),
            *added.values(),
        ),
    )


def _wider(one: PredicateSignature, other: PredicateSignature, library: Library) -> tuple[str, ...]:
    return tuple(_common(pair, library) for pair in zip(one.argument_types, other.argument_types, strict=True))


def _common(types: tuple[str, str], library: Library) -> str:
    """The first type that has both below it: one of the two, else a declared one, else Object."""
    above = (*types, *(upper for _, upper in library.subtypes), OBJECT)
    return next((one for one in above if all(library.is_subtype(lower, one) for lower in types)), types[0])


def verdict(addition: Library, library: Library, earlier: Sequence[Library] = ()) -> tuple[Diagnostic, ...]:
    """What `check` finds in the addition's one rule and its declarations, beside the library and earlier additions.

    These must be without errors: an error that appears is the addition's.
    """
    here = addition.rules[0].place.file
    return tuple(
        one
        for one in check_library(joined(library, (*earlier, addition)))
        if here in (one.place.file, *(place.file for place in one.related)) or one.severity is Severity.ERROR
    )


def refusal(addition: Library, diagnostics: Sequence[Diagnostic]) -> str | None:
    """Why the rule is of no use: an error, or a rule that says as much already. None: nothing stands against it."""
    here = addition.rules[0].place.file
    for one in diagnostics:
        redundant = one.code in (faults.DUPLICATE.code, faults.SUBSUMED.code) and one.place.file == here
        if redundant or one.severity is Severity.ERROR:
            return f"{one.code}: {one.message}"
    return None
