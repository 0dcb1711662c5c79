"""Explanations of the codes of diagnostics: meaning, an example that has the fault, and the example without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from hapax.grammar.arguments import checked
from hapax.grammar.checks import FAULTS, check_read
from hapax.grammar.errors import Diagnostic, GoalRejected, HapaxError, Severity
from hapax.grammar.faults import KB_FAULTS, MODEL_FAULTS
from hapax.grammar.hints import FORM_HINTS, GOAL_HINTS, UNREADABLE
from hapax.grammar.mended import MENDED
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
        codes = sorted(catalogue)
        raise HapaxError(
            f"There is no code {code!r}.",
            Remedy("Codes are {} to {}; {} lists them.", codes[0], codes[-1], Operation("explain_fault")),
        )
    return _completed(entry)


@cache
def explained_codes() -> dict[str, FaultExplanation]:
    """All codes in order, with neither diagnostics nor mended examples: `explanation` adds them."""
    entries = [
        FaultExplanation(entry.code, entry.label, Severity.ERROR, "reading rules", entry.examples[0])
        for entry in FORM_HINTS
    ]
    entries += [
        FaultExplanation(entry.code, entry.label, Severity.ERROR, "reading goals", entry.examples[0])
        for entry in GOAL_HINTS
    ]  # fmt: skip
    for found_by, faults in (
        ("`hapax check`", FAULTS),
        ("`hapax check --db FILE`", KB_FAULTS),
        ("`hapax rules lint -m MODEL`", MODEL_FAULTS),
    ):
        entries += [
            FaultExplanation(fault.code, fault.name, fault.severity, found_by, fault.example) for fault in faults
        ]
    return {entry.code: entry for entry in sorted(entries, key=lambda entry: entry.code)}


def _completed(entry: FaultExplanation) -> FaultExplanation:
    """The explanation with the diagnostics of its example and the mended example."""
    of_rules = entry.found_by in ("reading rules", "`hapax check`") and entry.code != UNREADABLE.code
    of_goal = entry.found_by == "reading goals"
    found = diagnostics_of(entry.example, of_goal) if of_rules or of_goal else ()
    matching = tuple(diagnostic for diagnostic in found if diagnostic.code == entry.code)
    mended = MENDED.get(entry.code, "")
    return replace(entry, mended=mended, diagnostics=matching)


def diagnostics_of(text: str, is_goal: bool) -> tuple[Diagnostic, ...]:
    """The diagnostics of an example: of a goal over `p/1`, or of a rule file."""
    from hapax.grammar.parser import parse_goal, parse_library, read_texts

    if not is_goal:
        return check_read(read_texts([(EXAMPLE, text)]))
    try:
        parse_goal(text, parse_library([(EXAMPLE, _CALLABLE)]))
    except GoalRejected as rejected:
        return rejected.diagnostics
    return ()
