"""Encoding of values in cells, and refused values."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.engine.inference.proof import By, Proof, proof_from_json
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Comparison, Constant, CutDecimal, decimal_of
from hapax.kb import values
from hapax.kb.records import FactRecord, Source, content_id

NO_THIRDS = [
    json.dumps({"decimal": "0.3333333333333333333333333333", "exact": text}) for text in ("1/2", "1/0", "1/4", "x")
]
ANY_VALUE = st.one_of(
    st.text(), st.integers(), st.integers(-(2**200), 2**200), st.decimals(allow_nan=False, allow_infinity=False)
)


@given(st.lists(ANY_VALUE | st.none()))
def test_values_come_back_exactly(items):
    """Texts, integers of any size and decimals come back as what they were, None as the free position."""
    encoded = values.encode_values(tuple(items))

    assert [repr(item) for item in values.decode_values(encoded)] == [repr(item) for item in items]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("half \ud83d", "half a character (U+D83D)"),
        ("caf\udce9", "byte 0xE9 is not UTF-8"),
        (1 << 20_000, "more than 10000 bits"),
        (Decimal("NaN"), "is not a finite number"),
        (Decimal("-Infinity"), "is not a finite number"),
        (True, "bool is not a value"),
        (1.5, "float is not a value"),
        (b"bytes", "bytes is not a value"),
    ],
    ids=["surrogate", "byte", "long integer", "nan", "infinity", "bool", "float", "bytes"],
)
def test_what_cannot_be_held_is_refused_with_a_reason(value, reason):
    """A value that would not come back exactly is an expected error that says why."""
    assert reason in values.refusal(value)
    with pytest.raises(HapaxError, match="; "):
        values.encode_value(value)


@given(st.fractions())
def test_a_number_that_never_ends_comes_back_exactly(exact):
    """A third is written with its first digits and its fraction, in cells and in proofs, and no fact can have it."""
    number = decimal_of(exact)
    cell = values.encode_value(number)
    proof = Proof(Comparison("=", Constant(number), Constant(number)), By.COMPUTED)

    assert values.decode_value(cell) == number
    assert proof_from_json(json.loads(values.encode_tree(proof.to_json()))).goal == proof.goal
    if isinstance(number, CutDecimal):
        assert json.loads(cell) == {"decimal": str(number), "exact": str(exact)}
        assert "give a decimal near it" in values.refusal(number)


@pytest.mark.parametrize(
    "cell",
    ["true", "[1]", "{}", "null", '{"decimal":"x"}', '{"decimal":"NaN"}', "NaN", *NO_THIRDS, "[" * 10**5],
    ids=lambda cell: cell[:20],
)
def test_cells_that_hold_no_value_are_errors(cell):
    """A cell that another program wrote never becomes a value, and never ends the process."""
    with pytest.raises(ValueError, match=r"."):
        values.decode_value(cell)


JSON_TREE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON_TREE, max_size=3))
@settings(max_examples=30, deadline=None)
def test_trees_come_back_exactly(tree):
    """A server's response is read back unchanged, maps that look like a decimal included."""
    assert values.decode_tree(values.encode_tree(tree, decimals=False), decimals=False) == tree


@given(JSON_TREE, st.booleans())
@settings(deadline=None)
def test_the_writer_writes_what_the_encoder_writes(tree, ascii_only):
    """Identities rest on it, so it may differ in no character."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, separators=(",", ":"), sort_keys=True)

    assert values.writer(encoder)(tree) == encoder.encode(tree)


def test_a_python_without_the_encoder_in_c_writes_the_same(monkeypatch):
    """Where there is none, the encoder itself is used."""
    monkeypatch.setattr(values, "c_make_encoder", None)

    assert values.writer(json.JSONEncoder())({"a": ["é", None, 1.5]}) == '{"a": ["\\u00e9", null, 1.5]}'


def test_trees_hold_decimals_and_half_characters():
    """A proof may hold decimals; an answer with half a character is kept, for it was paid for."""
    tree = {"value": Decimal("1.50"), "text": "half \ud83d", "looks like one": {"decimal": "no"}}

    assert values.decode_tree(values.encode_tree(tree)) == tree


def test_trees_refuse_what_json_cannot_hold():
    """An object, or a nesting without end, is refused with a reason."""
    endless: dict[str, object] = {}
    endless["self"] = endless
    for tree in ({"x": object()}, {"x": {1, 2}}, endless):
        with pytest.raises(HapaxError, match="JSON cannot represent it"):
            values.encode_tree(tree)
    with pytest.raises(TypeError, match="expected an object"):
        values.decode_tree("[1]")
    with pytest.raises(ValueError, match="too deep"):
        values.decode_tree("[" * 10**5)


def test_equal_decimals_have_one_identity():
    """1.10 and 1.1 are one constant, 1 and "1" and 1.0 are three."""
    same = [Decimal("1.1"), Decimal("1.10"), Decimal("11E-1"), Decimal("0.0011E3")]
    different = [1, "1", Decimal("1.0"), Decimal("10"), Decimal("-1"), Decimal("0")]

    assert len({content_id("x", value) for value in same}) == 1
    assert len({content_id("x", value) for value in different}) == len(different)
    assert content_id("x", Decimal("-0.00")) == content_id("x", Decimal(0))


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_identities_of_decimals_agree_with_equality(first, second):
    """Two decimals have one identity exactly when they are equal."""
    assert (content_id("x", first) == content_id("x", second)) == (first == second)


def test_an_identity_speaks_of_content_alone():
    """A fact's identity is its atom, whoever asserted it."""
    given_fact = FactRecord("is_old", ("Ur",), (), Source.GIVEN)
    model_fact = FactRecord("is_old", ("Ur",), ("City",), Source.MODEL, 0.9, "c", "r")

    assert given_fact.id == model_fact.id


def test_a_tree_without_decimals_has_none() -> None:
    """A server's request or response is kept as it is: a decimal is refused there, and written as a map elsewhere."""
    assert values.encode_tree({"b": Decimal("1.50"), "a": "\ud800é"}) == '{"a":"\\ud800\\u00e9","b":{"decimal":"1.50"}}'
    assert values.encode_tree({"a": "é"}, decimals=False) == '{"a":"é"}'
    for text in ("plain", "\ud800"):
        with pytest.raises(values.ValueRefused, match="JSON cannot represent it"):
            values.encode_tree([text, Decimal(1)], decimals=False)
