"""The rule language: text, LINK's JSON and Prolog on the outside, immutable trees inside.

Public API: import from here. Deeper modules may move.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from grammar.errors import Diagnostic, HapaxError, RulesRejected, Severity
from grammar.goals import Goal, goal_text
from grammar.printing import format_library, rule_text
from grammar.prolog_text import clause_text, program_text, prolog_atom, prolog_value
from grammar.rules import (
    Domain,
    Library,
    Place,
    Polarity,
    PredicateKind,
    PredicateSignature,
    Principle,
    Rule,
    Templates,
)
from grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Substitution, Variable
from grammar.verbalize import StatementText, atom_text, statement_text

if TYPE_CHECKING:
    from grammar.link_json import from_link_json, to_link_json
    from grammar.parser import load_library, parse_goal, parse_library, parse_rule

_ON_USE = {
    "from_link_json": "grammar.link_json",
    "to_link_json": "grammar.link_json",
    "load_library": "grammar.parser",
    "parse_goal": "grammar.parser",
    "parse_library": "grammar.parser",
    "parse_rule": "grammar.parser",
}

__all__ = [
    "Arithmetic",
    "Atom",
    "Comparison",
    "Constant",
    "Diagnostic",
    "Domain",
    "Goal",
    "HapaxError",
    "Library",
    "Literal",
    "Place",
    "Polarity",
    "PredicateKind",
    "PredicateSignature",
    "Principle",
    "Rule",
    "RulesRejected",
    "Severity",
    "StatementText",
    "Substitution",
    "Templates",
    "Variable",
    "atom_text",
    "clause_text",
    "format_library",
    "from_link_json",
    "goal_text",
    "load_library",
    "parse_goal",
    "parse_library",
    "parse_rule",
    "program_text",
    "prolog_atom",
    "prolog_value",
    "rule_text",
    "statement_text",
    "to_link_json",
]


def __getattr__(name: str) -> object:
    """What reads text is imported on first use: lark takes a good part of the time of `hapax --help`."""
    if name in _ON_USE:
        return getattr(import_module(_ON_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
