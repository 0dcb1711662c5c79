"""The part of a library that can be evaluated: without the rules that have errors, and those that need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from hapax.grammar.checks import library_errors
from hapax.grammar.declarations import AggregateDeclaration, Constraint
from hapax.grammar.errors import Diagnostic, Place, RulesRejected
from hapax.grammar.rules import LeftOut, Library, Rule
from hapax.grammar.terms import BodyLiteral, Literal


def sound_part(library: Library, trusted: str = "") -> Library:
    """The library without what cannot be evaluated; its `left_out` has that, each with the errors that are the reason.

    A rule, aggregate or constraint is left out for an error of its own, and a rule or aggregate also if it needs a
    predicate that one of these concludes: it would conclude too little. Raises RulesRejected for any other error, such
    as one of a type. `trusted`: a file whose errors do not count.
    """
    if library.left_out is not None:
        return library
    # Whoever asks many questions of the same rules has them checked once.
    if trusted not in library.sound_parts:
        library.sound_parts[trusted] = _sound_part(library, trusted)
    return library.sound_parts[trusted]


def _sound_part(library: Library, trusted: str) -> Library:
    errors = [error for error in library_errors(library) if error.place.file != trusted]
    if not errors:
        return replace(library, left_out=())
    statements = _StatementPlaces(library)
    found: dict[Statement, list[Diagnostic]] = {}
    for error in errors:
        faulty = statements.at(error.place)
        if faulty is None:
            raise RulesRejected(errors)
        # The related places of a cycle are those of its other rules.
        for statement in (faulty, *map(statements.at, error.related)):
            if statement is not None:
                found.setdefault(statement, []).append(error)
    left_out = [_left_out(statement, reasons) for statement, reasons in found.items()]
    # Inferred signatures stay, so that a predicate keeps its types without the rules that used it first.
    sound = _without(library.completed(), found)
    dependents = dict(_dependents(sound, left_out))
    return replace(_without(sound, dependents), left_out=(*left_out, *dependents.values()))


Statement = Rule | AggregateDeclaration | Constraint
"""A statement of a rule file that can be left out."""


def _without(library: Library, statements: Iterable[Statement]) -> Library:
    gone = set(statements)
    return replace(
        library,
        rules=tuple(rule for rule in library.rules if rule not in gone),
        declarations=tuple(item for item in library.declarations if item not in gone),
    )


class _StatementPlaces:
    """Finds the statement that a place is in: the last one in its file that begins before it."""

    def __init__(self, library: Library) -> None:
        starts: dict[str, list[tuple[int, int, Statement | None]]] = {}
        statements: list[tuple[Place | None, Statement | None]] = [(rule.place, rule) for rule in library.rules]
        for item in library.declarations:
            is_removable = isinstance(item, AggregateDeclaration | Constraint)
            statements.append((item.place, item if is_removable else None))  # type: ignore[arg-type]
        statements += [(signature.place, None) for signature in library.signatures if signature.declared]
        statements += [(atom.place, None) for atom in (*library.facts, *library.examples)]
        statements += [(place, None) for place in library.places.values()]
        for place, statement in statements:
            if place is not None:
                starts.setdefault(place.file, []).append((place.line, place.column, statement))
        self._starts = starts

    def at(self, place: Place) -> Statement | None:
        """The statement; None if it cannot be left out, or if several begin at one place."""
        before = [start for start in self._starts.get(place.file, ()) if start[:2] <= (place.line, place.column)]
        last = max((start[:2] for start in before), default=None)
        # An aggregate begins where the declaration of its predicate does.
        found = [statement for *start, statement in before if tuple(start) == last and statement is not None]
        return found[0] if len(found) == 1 else None


def _left_out(statement: Statement, errors: Sequence[Diagnostic], because: str = "") -> LeftOut:
    if isinstance(statement, Rule):
        name, indicator = f"rule {statement.name}", statement.conclusion.atom.indicator
    elif isinstance(statement, AggregateDeclaration):
        name, indicator = f"aggregate {statement.atom.indicator}", statement.atom.indicator
    else:
        name, indicator = f'"{statement}"', ""
    distinct = tuple(dict.fromkeys(errors))
    return LeftOut(name, indicator, distinct, because or " ".join(error.text for error in distinct))


def _dependents(library: Library, left_out: Sequence[LeftOut]) -> Iterator[tuple[Statement, LeftOut]]:
    """The rules and aggregates that need what was left out, directly or by others of them."""
    lacking = {item.indicator: item for item in reversed(left_out) if item.indicator}
    waiting: list[Rule | AggregateDeclaration] = [*library.rules, *library.aggregates]
    has_grown = bool(lacking)
    while has_grown:
        has_grown = False
        for statement in list(waiting):
            needed = next((name for name in _needed(statement) if name in lacking), None)
            if needed is not None:
                reason = f"It needs {needed}, which {lacking[needed].name} concludes."
                dependent = _left_out(statement, lacking[needed].errors, reason)
                lacking.setdefault(dependent.indicator, dependent)
                waiting.remove(statement)
                has_grown = True
                yield statement, dependent


def _needed(statement: Rule | AggregateDeclaration) -> Iterator[str]:
    """Indicators of the predicates in the premise and in the exceptions."""
    items: list[BodyLiteral] = [*statement.premise]
    if isinstance(statement, Rule):
        items += chain.from_iterable(exception.premise for exception in statement.exceptions)
    yield from (item.atom.indicator for item in items if isinstance(item, Literal))
