"""A whole rule in words, as an instruction tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grammar.rules import Library, Rule
from grammar.terms import Arithmetic, Comparison, Constant, Expression, Literal, Variable
from grammar.verbalize import literal_text

_OPERATORS: Mapping[str, str] = {
    "<": "is less than",
    "=<": "is at most",
    ">": "is greater than",
    ">=": "is at least",
    "=": "is",
    "\\=": "is not",
}


def rule_sentence(rule: Rule, library: Library) -> str:
    """The rule as a sentence with slots such as `[B]`; a generic variable reads `Person X` (paper, table 2)."""
    names = {one.name: f"{one.data_type} {one.name}" for one in rule.variables if one.name in rule.generic}
    bound = {name: Constant(words) for name, words in names.items()}
    told = [
        literal_text(item, library, bound) if isinstance(item, Literal) else _comparison_text(item, names)
        for item in rule.premise
    ]
    return f"If {' and '.join(told)}, then {literal_text(rule.conclusion, library, bound)}."


def _comparison_text(comparison: Comparison, names: Mapping[str, str]) -> str:
    """`2 * [V] is less than [W]`."""
    slotted = replace(comparison, left=_slotted(comparison.left, names), right=_slotted(comparison.right, names))
    return str(replace(slotted, operator=_OPERATORS[comparison.operator]))


def _slotted(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression with what a reader sees in place of its variables' names."""
    if isinstance(expression, Variable):
        return replace(expression, name=names.get(expression.name, f"[{expression.name}]"))
    if isinstance(expression, Arithmetic):
        return replace(expression, left=_slotted(expression.left, names), right=_slotted(expression.right, names))
    return expression
