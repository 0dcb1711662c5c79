"""The static checks of a library, and the part of it that can be evaluated in spite of errors.

Checks of single rules are in `rule_checks.py`, those of predicates and types in `predicate_checks.py`, those of pairs
of rules in `pair_checks.py`; the others have files of their own, too. A new check joins the tuple of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from hapax.grammar.checking.declaration_checks import DECLARATION_CHECKS
from hapax.grammar.checking.faults import Check, RuleFault
from hapax.grammar.checking.pair_checks import PAIR_CHECKS
from hapax.grammar.checking.predicate_checks import PREDICATE_CHECKS
from hapax.grammar.checking.rule_checks import CERTAIN_CHECKS, RULE_CHECKS
from hapax.grammar.errors import Diagnostic, Place, RulesRejected, Severity
from hapax.grammar.parsing.declarations import SAME_AS, AggregateDeclaration, Constraint, LeftOut
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import BodyLiteral, Literal

if TYPE_CHECKING:  # lark, which the parser loads, is not needed to check a library
    from hapax.grammar.parsing.parser import ReadRules


# The order decides nothing: diagnostics are sorted by place.
CHECKS: tuple[Check, ...] = (
    *RULE_CHECKS,
    *PREDICATE_CHECKS,
    *PAIR_CHECKS,
    *DECLARATION_CHECKS,
)

FAULTS: tuple[RuleFault, ...] = tuple(
    sorted(set(chain.from_iterable(check.faults for check in CHECKS)), key=lambda fault: fault.code)
)
"""The kinds of diagnostics that CHECKS can find, by code."""


def check_library(library: Library) -> tuple[Diagnostic, ...]:
    """The diagnostics of all checks, by file, line and column."""
    return _sorted(_found(CHECKS, library))


def library_errors(library: Library) -> tuple[Diagnostic, ...]:
    """The errors alone; checks that find none are not run."""
    checks = [check for check in CHECKS if any(fault.severity is Severity.ERROR for fault in check.faults)]
    return _sorted(found for found in _found(checks, library) if found.severity is Severity.ERROR)


def check_read(read: ReadRules) -> tuple[Diagnostic, ...]:
    """The diagnostics of reading and of checks; of all checks if every statement could be read."""
    return _sorted([*read.diagnostics, *_found(CERTAIN_CHECKS if read.diagnostics else CHECKS, read.library)])


def _found(checks: Iterable[Check], library: Library) -> list[Diagnostic]:
    return list(chain.from_iterable(check(library) for check in checks))


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    # Two atoms of a rule can cause one and the same diagnostic; it is reported once.
    distinct = dict.fromkeys(diagnostics)
    return tuple(
        sorted(distinct, key=lambda found: (found.place.file, found.place.line, found.place.column, found.code))
    )


# The part without errors


def sound_part(library: Library, trusted: str = "") -> Library:
    """The library without what cannot be evaluated; its `left_out` has that, each with the errors that are the reason.

    A rule, aggregate or constraint is left out for an error of its own, and a rule or aggregate also if it needs a
    predicate that one of these concludes: it would conclude too little. Raises RulesRejected for any other error, such
    as one of a type, or of `same_as`, on which everything depends. `trusted`: a file whose errors do not count.
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
    found: dict[Statement, list[Diagnostic]] = {}
    for error in errors:
        faulty = _statement_at(error.place, library)
        if faulty is None:
            raise RulesRejected(errors)
        # The related places of a cycle are those of its other rules.
        for statement in (faulty, *(_statement_at(place, library) for place in error.related)):
            if statement is not None:
                found.setdefault(statement, []).append(error)
    left_out = [_left_out(statement, reasons) for statement, reasons in found.items()]
    # Inferred signatures stay, so that a predicate keeps its types without the rules that used it first.
    sound = _without(library.completed(), found)
    dependents = dict(_dependents(sound, left_out))
    left_out += dependents.values()
    if any(item.indicator == SAME_AS for item in left_out):
        raise RulesRejected(errors)
    return replace(_without(sound, dependents), left_out=tuple(left_out))


Statement = Rule | AggregateDeclaration | Constraint
"""A statement of a rule file that can be left out."""


def _without(library: Library, statements: Iterable[Statement]) -> Library:
    gone = set(statements)
    return replace(
        library,
        rules=tuple(rule for rule in library.rules if rule not in gone),
        declarations=tuple(item for item in library.declarations if item not in gone),
    )


def _statement_at(place: Place, library: Library) -> Statement | None:
    """The statement that a place is in; None if it cannot be left out, or if it is read under several names."""
    removable = (item for item in library.declarations if isinstance(item, AggregateDeclaration | Constraint))
    found = [statement for statement in (*library.rules, *removable) if statement.place.contains(place)]
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
    statements: tuple[Rule | AggregateDeclaration, ...] = (*library.rules, *library.aggregates)
    waiting: dict[Rule | AggregateDeclaration, list[str]] = {}
    for statement in statements:
        items: list[BodyLiteral] = [*statement.premise]
        if isinstance(statement, Rule):
            items += chain.from_iterable(exception.premise for exception in statement.exceptions)
        waiting[statement] = [item.atom.indicator for item in items if isinstance(item, Literal)]
    while found := [statement for statement, names in waiting.items() if not lacking.keys().isdisjoint(names)]:
        for statement in found:
            needed = next(name for name in waiting.pop(statement) if name in lacking)
            reason = f"It needs {needed}, which {lacking[needed].name} concludes."
            dependent = _left_out(statement, lacking[needed].errors, reason)
            lacking.setdefault(dependent.indicator, dependent)
            yield statement, dependent
