"""Explanations of the codes of diagnostics: meaning, an example that has the fault, and the example without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from hapax.grammar.arguments import checked
from hapax.grammar.checking.faults import KB_FAULTS, MODEL_FAULTS
from hapax.grammar.checking.library_checks import FAULTS, check_read
from hapax.grammar.errors import Diagnostic, GoalRejected, HapaxError, Severity
from hapax.grammar.parsing.hints import FORM_HINTS, GOAL_HINTS, UNREADABLE
from hapax.grammar.remedies import Operation, Remedy

EXAMPLE = "example.rules"
"""Name of an explained example in its diagnostics' places."""

_CALLABLE = 'fact p("a")'
"""Rules for the examples of goals."""


@dataclass(frozen=True, slots=True)
class FaultExplanation:
    """The meaning of a code.

    `diagnostics`: of the example; none where they depend on a file, the facts of a knowledge base or a model.
    `mended`: the example without the fault; empty for faults that other rules do not mend.
    """

    code: str
    name: str
    severity: Severity
    found_by: str
    example: str
    mended: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()


@checked
def explain_fault(code: str) -> FaultExplanation:
    """The meaning of a fault's code such as HPX113, an example and the corrected example. Raises HapaxError."""
    catalogue = explained_codes()
    entry = catalogue.get(code.strip().upper())
    if entry is None:
        remedy = "Codes are {} to {}; {} lists them."
        raise HapaxError(
            f"There is no code {code!r}.", Remedy(remedy, min(catalogue), max(catalogue), Operation("explain_fault"))
        )
    if entry.found_by in (READING_RULES, READING_GOALS, CHECKING) and entry.code != UNREADABLE.code:
        found = diagnostics_of(entry.example, entry.found_by == READING_GOALS)
        return replace(entry, diagnostics=tuple(diagnostic for diagnostic in found if diagnostic.code == entry.code))
    return entry


READING_RULES, READING_GOALS, CHECKING = "reading rules", "reading goals", "`hapax check`"


@cache
def explained_codes() -> dict[str, FaultExplanation]:
    """All codes in order, without diagnostics: `explain_fault` adds them."""
    entries: dict[str, FaultExplanation] = {}
    for found_by, hints in ((READING_RULES, FORM_HINTS), (READING_GOALS, GOAL_HINTS)):
        for hint in hints:
            shown = (hint.examples[0], hint.mended)
            entries[hint.code] = FaultExplanation(hint.code, hint.label, Severity.ERROR, found_by, *shown)
    checks = {CHECKING: FAULTS, "`hapax check --db FILE`": KB_FAULTS, "`hapax rules lint -m MODEL`": MODEL_FAULTS}
    for found_by, faults in checks.items():
        for fault in faults:
            shown = (fault.example, fault.mended)
            entries[fault.code] = FaultExplanation(fault.code, fault.name, fault.severity, found_by, *shown)
    return dict(sorted(entries.items()))


def diagnostics_of(text: str, is_goal: bool) -> tuple[Diagnostic, ...]:
    """The diagnostics of an example: of a goal over `p/1`, or of a rule file."""
    from hapax.grammar.parsing.parser import parse_goal, parse_library, read_texts

    if not is_goal:
        return check_read(read_texts([(EXAMPLE, text)]))
    try:
        parse_goal(text, parse_library([(EXAMPLE, _CALLABLE)]))
    except GoalRejected as rejected:
        return rejected.diagnostics
    return ()
