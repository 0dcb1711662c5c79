"""Evaluation of comparisons and arithmetic over bound variables, with the same results as the generated Prolog.

A beam search tests thousands of small comparisons; evaluating them here over exact fractions saves a Prolog call for
each. `tests/unit/engine/test_gates.py` compares it with Prolog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import add, ge, gt, le, lt, mul, sub, truediv

from hapax.grammar.terms import Arithmetic, Comparison, Expression, Value, Variable, number_of

_OPERATIONS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul, "/": truediv}
_ORDERS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {"<": lt, "=<": le, ">": gt, ">=": ge}


def holds(comparison: Comparison, bindings: Mapping[str, Value]) -> bool:
    """True if the comparison holds. It is false for an order of texts, and for a division by zero on either side."""
    left, right = evaluated(comparison.left, bindings), evaluated(comparison.right, bindings)
    if left is None or right is None:
        return False
    if comparison.operator in ("=", "\\="):
        return (left == right) == (comparison.operator == "=")
    if isinstance(left, str) or isinstance(right, str):
        return False
    return _ORDERS[comparison.operator](left, right)


def evaluated(expression: Expression, bindings: Mapping[str, Value]) -> Fraction | str | None:
    """The expression's value: a text, an exact number, or None if it has none."""
    if not isinstance(expression, Arithmetic):
        value = bindings[expression.name] if isinstance(expression, Variable) else expression.value
        # A Decimal such as 0.1 becomes exactly 1/10.
        return value if isinstance(value, str) else Fraction(value)
    left, right = evaluated(expression.left, bindings), evaluated(expression.right, bindings)
    # A text does not calculate, and None comes from a division by zero further down.
    if not isinstance(left, Fraction) or not isinstance(right, Fraction) or (expression.operator == "/" and not right):
        return None
    return _OPERATIONS[expression.operator](left, right)


def assigned(expression: Expression, bindings: Mapping[str, Value]) -> Value | None:
    """The expression's value as that of a constant; None if it has no value."""
    value = evaluated(expression, bindings)
    if not isinstance(value, Fraction):
        return value
    return number_of(value)
