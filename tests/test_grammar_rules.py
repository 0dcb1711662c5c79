"""Queries of a library: types, names and opposites."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hapax.grammar.errors import Diagnostic, HapaxError, Place, Severity
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Tolerance

LIBRARY = parse_library(
    [
        (
            "test.rules",
            "type Car < Vehicle. type Period < Year. type Patient < Person. opposite likes hates\n"
            "likes(Patient X, Car A) -> is_able_to_drive(Patient X, Car A)",
        )
    ]
)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ("Car", "vehicle", True),
        ("Vehicle", "Car", False),
        ("Period", "Number", True),
        ("Car", "Object", True),
        ("Patient", "Object", False),
        ("Patient", "Person", True),
        ("X  y", "x Y", True),
        ("Car", "Person", False),
    ],
)
def test_subtypes_close_over_declarations(lower: str, upper: str, expected: bool) -> None:
    """Subtyping is reflexive and transitive, blind to case, and puts all but persons under Object."""
    assert LIBRARY.is_subtype(lower, upper) is expected


def test_circles_of_types_end() -> None:
    """Types declared in a cycle are subtypes of one another; nothing hangs."""
    library = Library(subtypes=(("A", "B"), ("B", "A")))

    assert library.is_subtype("A", "B")
    assert library.is_subtype("B", "A")


def test_numeric_types_descend_from_number() -> None:
    """Year, Age and their declared subtypes are numeric."""
    assert [LIBRARY.is_numeric(name) for name in ("Number", "age", "Period", "Car")] == [True, True, True, False]


def test_opposites_are_declared_or_built_in() -> None:
    """Both directions hold; a name without opposite has none."""
    pairs = [
        LIBRARY.opposite_of(name) for name in ("likes", "hates", "can_fly", "is_not_able_to_drive", "runs", "can_")
    ]

    assert pairs == ["hates", "likes", "cannot_fly", "is_able_to_drive", None, None]


def test_generic_defaults_know_subtypes_of_person() -> None:
    """A Patient is a person, so it is the one a statement speaks about."""
    assert LIBRARY.rules[0].generic == ("X",)


def test_unknown_names_are_errors_that_help() -> None:
    """A missing rule or predicate is reported with the nearest known name."""
    with pytest.raises(HapaxError, match="Did you mean rule1"):
        LIBRARY.rule("rule11")
    with pytest.raises(HapaxError, match="Did you mean likes/2"):
        LIBRARY.signature("like/2")


def test_diagnostics_read_as_one_line() -> None:
    """Place, severity, code, fact, remedy, other places."""
    fault = Diagnostic("HPX100", Severity.WARNING, Place("a", 1, 2), "it is so", "Do that.", (Place("b", 3, 4),))

    assert str(fault) == "a:1:2: warning HPX100: it is so. Do that. (see also b:3:4)"


@pytest.mark.parametrize(
    ("tolerance", "values", "agree"),
    [
        ("2", ("a", "a"), True),
        ("2", ("a", "b"), False),
        ("2", ("1", 1), False),
        ("2", (1, 3), True),
        ("2", (1, 4, 2), False),
        ("2", (1, Decimal("3.01")), False),
        ("5%", (95, 100), True),
        ("5%", (-100, -95), True),
        ("5%", (94, 100, 97), False),
        ("0%", ("a", "a", "a"), True),
        ("0%", ("a", "a", 1), False),
        ("2", (Decimal("1e1000"), 10**1000 + 2), True),
        ("2", (Decimal("1e99999999"), Decimal("10e99999998")), True),
        ("50%", (Decimal("1e99999999"), Decimal("1.1e99999999")), False),
        ("2", (1, Decimal("1e-99999999")), False),
    ],
)
def test_values_agree_within_a_tolerance(tolerance: str, values: tuple[str | int | Decimal, ...], agree: bool) -> None:
    """Numbers agree up to the difference, or the percentage of the larger one; texts, and numbers beyond the largest
    power of ten, only if they are equal.
    """
    parsed = Tolerance.parsed(tolerance)

    assert str(parsed) == tolerance
    assert parsed.covers_all(values) is agree
    if len(values) == 2:
        assert parsed.covers(*values) is parsed.covers(*reversed(values)) is agree


def test_constants_alone_type_an_argument_of_an_undeclared_predicate() -> None:
    """A variable goes before constants; these give Number, or Object where one of them is a text."""
    rules = """
        scores(Person X, 3) & rides(Person X, "bike") & rides(Person X, 4) & counts(1, Person X) -> wins(Person X)
        counts(Age A, Person X) -> ages(Person X, Age A)
    """
    library = parse_library([("t", rules)])

    found = {name: library.signature(name).argument_types for name in ("scores/2", "rides/2", "counts/2")}
    assert found == {"scores/2": ("Person", "Number"), "rides/2": ("Person", "Object"), "counts/2": ("Age", "Person")}


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (5, "rule0, rule1, rule2, rule3, rule4."),
        (6, "rule0, rule1, rule2, rule3, rule4 and 1 more."),
    ],
)
def test_an_unknown_rule_is_told_with_five_known_ones(count: int, told: str) -> None:
    """The number of the others is said only where there are some."""
    lines = [f"@name rule{number}\n@generic none\np(T X, T Y) -> q{number}(T X, T Y)\n" for number in range(count)]
    library = parse_library([("a.rules", "".join(lines))])

    with pytest.raises(HapaxError) as refused:
        library.rule("zzz")
    assert str(refused.value) == f"No rule is named zzz in a.rules. Known rules: {told}"
