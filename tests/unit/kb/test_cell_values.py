"""Values in cells of SQLite, and the identities that rest on how they are written."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import CutDecimal, Value, decimal_of
from hapax.kb import values
from hapax.kb.records import content_id

DECIMAL = st.decimals(allow_nan=False, allow_infinity=False)
ANY_VALUE = st.one_of(st.text(), st.integers(), st.integers(-(2**200), 2**200), DECIMAL)
NO_THIRDS = [json.dumps({"decimal": "0.3333333333333333333333333333", "exact": text}) for text in ("1/2", "1/0", "x")]
JSON_TREE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(ANY_VALUE | st.none()))
def test_values_come_back_exactly(items: list[Value | None]) -> None:
    """Texts, integers of any size and decimals come back as what they were, None as the free position."""
    encoded = values.encode_values(tuple(items))

    assert [repr(item) for item in values.decode_values(encoded)] == [repr(item) for item in items]


@given(st.fractions())
def test_a_number_that_never_ends_comes_back_exactly(exact: Any) -> None:
    """A third is written with its first digits and its fraction, and no fact can have it."""
    number = decimal_of(exact)
    cell = values.encode_value(number)

    assert values.decode_value(cell) == number
    if isinstance(number, CutDecimal):
        assert json.loads(cell) == {"decimal": str(number), "exact": str(exact)}
        assert values.refusal(number)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("half \ud83d", "U+D83D"),
        ("caf\udce9", "0xE9"),
        (1 << 20_000, "bits"),
        (Decimal("NaN"), "finite"),
        (Decimal("-Infinity"), "finite"),
        (True, "bool"),
        (1.5, "float"),
        (b"bytes", "bytes"),
    ],
    ids=["surrogate", "byte", "long integer", "nan", "infinity", "bool", "float", "bytes"],
)
def test_what_cannot_be_held_is_refused_with_a_reason(value: Any, reason: str) -> None:
    """A value that would not come back exactly is an expected error that says why."""
    assert reason in values.refusal(value)
    with pytest.raises(HapaxError, match=reason.replace("+", r"\+")):
        values.encode_value(value)


@pytest.mark.parametrize(
    "cell",
    ["true", "[1]", "{}", "null", '{"decimal":"x"}', '{"decimal":"NaN"}', "NaN", *NO_THIRDS, "[" * 10**5],
    ids=lambda cell: cell[:20],
)
def test_cells_that_hold_no_value_are_errors(cell: str) -> None:
    """A cell that another program wrote never becomes a value, and never ends the process."""
    with pytest.raises(ValueError, match=r"."):
        values.decode_value(cell)


@given(st.dictionaries(st.text(), JSON_TREE, max_size=3))
@settings(max_examples=30)
def test_trees_come_back_exactly(tree: dict[str, Any]) -> None:
    """A server's response is read back unchanged, maps that look like a decimal included."""
    assert values.decode_tree(values.encode_tree(tree, decimals=False), decimals=False) == tree


@given(JSON_TREE, st.booleans())
def test_the_writer_writes_what_the_encoder_of_json_writes(tree: Any, ascii_only: bool) -> None:
    """Identities rest on it, so it may differ in no character."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, separators=(",", ":"), sort_keys=True)

    assert values.writer(encoder)(tree) == encoder.encode(tree)


def test_proofs_hold_decimals_and_answers_half_characters() -> None:
    """A proof may hold decimals; an answer with half a character is kept, for it was paid for."""
    tree = {"value": Decimal("1.50"), "text": "half \ud83d", "looks like one": {"decimal": "no"}}

    assert values.decode_tree(values.encode_tree(tree)) == tree
    with pytest.raises(values.ValueRefused):
        values.encode_tree({"a": Decimal(1)}, decimals=False)


def test_trees_refuse_what_json_cannot_hold() -> None:
    """An object, a nesting without end, and a text that is no map are refused."""
    endless: dict[str, object] = {}
    endless["self"] = endless
    for tree in ({"x": object()}, {"x": {1, 2}}, endless):
        with pytest.raises(HapaxError, match="JSON"):
            values.encode_tree(tree)
    for text in ("[1]", "[" * 10**5):
        with pytest.raises((TypeError, ValueError)):
            values.decode_tree(text)


@given(DECIMAL, DECIMAL)
def test_identities_of_decimals_agree_with_equality(first: Decimal, second: Decimal) -> None:
    """Two decimals have one identity exactly when they are equal."""
    assert (content_id("x", first) == content_id("x", second)) == (first == second)
