"""Comparisons and sums over bound variables, in bulk and exactly as the generated Prolog decides them.

A beam search tests thousands of small comparisons; a Python evaluator over exact fractions saves one Prolog call each.
`tests/test_engine_gates.py` holds it against Prolog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from operator import ge, gt, le, lt

from grammar.terms import Arithmetic, Comparison, Constant, Expression, Value, Variable

_ORDERS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {"<": lt, "=<": le, ">": gt, ">=": ge}


def holds(comparison: Comparison, bindings: Mapping[str, Value]) -> bool:
    """Whether the comparison is true; what has no order (texts) or no value (a division by zero) is not."""
    left, right = evaluated(comparison.left, bindings), evaluated(comparison.right, bindings)
    if left is None or right is None:
        return False
    if comparison.operator in ("=", "\\="):
        return (left == right) == (comparison.operator == "=")
    if isinstance(left, str) or isinstance(right, str):
        return False
    return _ORDERS[comparison.operator](left, right)


def evaluated(expression: Expression, bindings: Mapping[str, Value]) -> Fraction | str | None:
    """The expression's value: a text, an exact number, or None where it has none."""
    if isinstance(expression, Variable):
        return _exact(bindings[expression.name])
    if isinstance(expression, Constant):
        return _exact(expression.value)
    left, right = evaluated(expression.left, bindings), evaluated(expression.right, bindings)
    if not isinstance(left, Fraction) or not isinstance(right, Fraction):
        return None
    return _combined(expression, left, right)


def assigned(expression: Expression, bindings: Mapping[str, Value]) -> Value | None:
    """The expression's value as a constant holds it; None where it has none, or no finite decimal form."""
    value = evaluated(expression, bindings)
    if not isinstance(value, Fraction):
        return value
    if value.denominator == 1:
        return value.numerator
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return decimal if Fraction(decimal) == value else None


def _combined(expression: Arithmetic, left: Fraction, right: Fraction) -> Fraction | None:
    match expression.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / right if right else None


def _exact(value: Value) -> Fraction | str:
    return value if isinstance(value, str) else Fraction(value)
