"""A whole rule in words, as in an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Arithmetic, Constant, Expression, Literal, Variable
from hapax.grammar.verbalize import literal_text

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
    generic = [variable for variable in rule.variables if variable.name in rule.generic]
    names = {variable.name: f"{variable.data_type} {variable.name}" for variable in generic}
    bound = {name: Constant(words) for name, words in names.items()}
    clauses = []
    for condition in rule.premise:
        if isinstance(condition, Literal):
            clauses.append(literal_text(condition, library, bound))
        else:
            # As in `2 * [V] is less than [W]`; the operator in words is no longer one that Hapax reads.
            left, right = _slotted(condition.left, names), _slotted(condition.right, names)
            clauses.append(str(replace(condition, left=left, right=right, operator=_OPERATORS[condition.operator])))
    return f"If {' and '.join(clauses)}, then {literal_text(rule.conclusion, library, bound)}."


def _slotted(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression with slots or words in place of variable names."""
    if isinstance(expression, Variable):
        return replace(expression, name=names.get(expression.name, f"[{expression.name}]"))
    if isinstance(expression, Arithmetic):
        return replace(expression, operands=tuple(_slotted(operand, names) for operand in expression.operands))
    return expression
