"""Evaluation of comparisons and arithmetic over bound variables, with the same results as the generated Prolog.

A beam search tests thousands of small comparisons; evaluating them here over exact fractions saves a Prolog call for
each. `tests/unit/engine/search/test_gates.py` compares it with Prolog.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from hapax.grammar.terms import Arithmetic, Comparison, Expression, Value, Variable, number_of
from hapax.grammar.values.functions import FUNCTIONS, Exact, compared
from hapax.grammar.values.moments import Moment, NoValue


def holds(comparison: Comparison, bindings: Mapping[str, Value]) -> bool:
    """True if the comparison holds. It is false where one of its sides has no value, or both have no common order."""
    try:
        return _holds(comparison, bindings)
    except NoValue:
        return False


def fault(comparison: Comparison) -> str:
    """The reason why a comparison of constants has no value; empty if it holds or does not."""
    try:
        _holds(comparison, {})
    except NoValue as reason:
        return str(reason)
    return ""


def _holds(comparison: Comparison, bindings: Mapping[str, Value]) -> bool:
    left, right = (_calculated(side, bindings) for side in comparison.sides)
    if comparison.operator in ("=", "\\=") and not any(isinstance(side, Arithmetic) for side in comparison.sides):
        return (left == right) == (comparison.operator == "=")
    return compared(comparison.operator, left, right)


def _calculated(expression: Expression, bindings: Mapping[str, Value]) -> Exact:
    """The expression's value. Raises NoValue."""
    if isinstance(expression, Arithmetic):
        function = FUNCTIONS.get(expression.operator)
        if function is None:
            raise NoValue(f"there is no function {expression.operator}")
        return function.call(*(_calculated(part, bindings) for part in expression.operands))
    value = bindings[expression.name] if isinstance(expression, Variable) else expression.value
    # A Decimal such as 0.1 becomes exactly 1/10.
    return value if isinstance(value, str) else Fraction(value)


def evaluated(expression: Expression, bindings: Mapping[str, Value]) -> Fraction | str | None:
    """The expression's value: a text, an exact number, or None if it has none."""
    try:
        value = _calculated(expression, bindings)
        return str(value) if isinstance(value, str | Moment) else Fraction(value)
    except NoValue:
        return None


def assigned(expression: Expression, bindings: Mapping[str, Value]) -> Value | None:
    """The expression's value as that of a constant; None if it has no value."""
    value = evaluated(expression, bindings)
    return number_of(value) if isinstance(value, Fraction) else value
