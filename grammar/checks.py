"""The static checks of a library.

Checks of single rules stand in `rule_checks.py`, those of predicates and types in `predicate_checks.py`, those of pairs
of rules in `pair_checks.py`; the others have files of their own, too. A new check joins the tuple of its file.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from hapax.grammar.declaration_checks import DECLARATION_CHECKS
from hapax.grammar.errors import Diagnostic, Severity
from hapax.grammar.faults import Check, RuleFault
from hapax.grammar.pair_checks import PAIR_CHECKS
from hapax.grammar.predicate_checks import PREDICATE_CHECKS
from hapax.grammar.rule_checks import RULE_CHECKS
from hapax.grammar.rules import Library

if TYPE_CHECKING:  # lark, which the parser loads, is not needed to check a library
    from hapax.grammar.parser import ReadRules

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
    """The diagnostics of reading, and of the checks that are valid without the statements that could not be read."""
    checks: Iterable[Check] = CHECKS
    if read.missing == "rules":
        checks = [check for check in CHECKS if check.even_if_incomplete]
    elif read.missing == "declarations":
        # Each check would report what a missing declaration settles.
        checks = ()
    return _sorted([*read.diagnostics, *_found(checks, read.library)])


def _found(checks: Iterable[Check], library: Library) -> list[Diagnostic]:
    return list(chain.from_iterable(check(library) for check in checks))


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    # Two atoms of a rule can cause one and the same diagnostic; it is reported once.
    distinct = dict.fromkeys(diagnostics)
    return tuple(
        sorted(distinct, key=lambda found: (found.place.file, found.place.line, found.place.column, found.code))
    )
