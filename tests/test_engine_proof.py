"""Proof trees: JSON both ways, text, sharing and depth."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.engine.inference.proof import By, Proof, instantiated, proof_from_json, proof_text
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Substitution, Variable


def goal(predicate: str, *values: str | int | Decimal) -> Literal:
    return Literal(Atom(predicate, tuple(map(Constant, values))))


def example() -> Proof:
    shared = Proof(goal("is_in", "saffron", "paella"), By.FACT, fact_id="f1")
    inner = Proof(goal("is_found_in", "paella"), By.RULE, "inner", (shared,))
    earlier = Comparison("<", Constant(Decimal("1.50")), Arithmetic("+", Constant(2), Constant(1)))
    return Proof(
        Literal(Atom("is_not_able_to_eat", (Variable("X", "Person"), Constant("paella")))),
        By.RULE,
        "allergy",
        (
            Proof(Literal(Atom("is_allergic_to", (Variable("X", "Person"), Constant("saffron")))), By.ASSUMPTION),
            shared,
            inner,
            inner,
            Proof(earlier, By.COMPUTED),
            Proof(Literal(goal("is_safe", "paella").atom, negated=True), By.NEGATION),
        ),
    )


def test_json_round_trip() -> None:
    """A proof written as JSON text and read back writes the same JSON."""
    written = json.loads(json.dumps(example().to_json()))

    assert proof_from_json(written).to_json() == example().to_json()


def test_shared_parts_stand_once() -> None:
    """A part that is used twice is one step, which two others name."""
    steps = example().to_json()["steps"]

    assert [step["by"] for step in steps].count("fact") == 1
    assert steps[0]["premises"].count(steps[0]["premises"][2]) == 2


def test_text_tells_each_part_by_what() -> None:
    """The text is indented, gives reasons, and does not repeat a part that has parts."""
    lines = proof_text(example()).splitlines()

    assert lines[0].endswith("[by rule allergy]")
    assert lines[1].endswith("[assumed]")
    assert sum("[shown above]" in line for line in lines) == 1
    assert lines[-1] == '  not is_safe("paella")  [is_safe("paella") was not provable]'


def test_fact_ids_once_each() -> None:
    """The facts that a proof stands on."""
    assert example().fact_ids() == ("f1",)


def test_deep_proofs_do_not_overrun_the_stack() -> None:
    """A recursion of ten thousand steps is written, read and printed."""
    proof = Proof(goal("p", 0), By.FACT, fact_id="f")
    for number in range(1, 10_000):
        proof = Proof(goal("p", number), By.RULE, "step", (proof,))

    written = json.loads(json.dumps(proof.to_json()))

    assert len(proof_from_json(written).parts()) == 10_000
    assert len(proof_text(proof).splitlines()) == 10_000


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"steps": []},
        {"steps": [{}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": []}, "by": "magic"}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": []}, "by": "rule", "premises": [0]}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": []}, "by": "rule", "premises": [7]}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": [None]}, "by": "fact"}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": [{"decimal": "x"}]}, "by": "fact"}]},
        {"steps": "nonsense"},
    ],
)
def test_a_damaged_proof_is_told(tree: dict[str, object]) -> None:
    """Malformed JSON, and a step that is its own premise, are refused with a reason."""
    with pytest.raises(HapaxError, match="cannot be read"):
        proof_from_json(tree)


def test_instantiation_reaches_into_arithmetic() -> None:
    """Every bound variable is replaced, unbound ones stay."""
    year = Variable("Y", "Year")
    comparison = Comparison("<", year, Arithmetic("+", year, Variable("Z", "Year")))

    assert instantiated(comparison, Substitution((("Y", Constant(3)),))) == Comparison(
        "<", Constant(3), Arithmetic("+", Constant(3), Variable("Z", "Year"))
    )


@given(
    values=st.lists(st.one_of(st.text(), st.integers(), st.decimals(allow_nan=False, allow_infinity=False)), min_size=1)
)
def test_any_value_survives_json(values: list[str | int | Decimal]) -> None:
    """Texts, numbers and decimals come back with their type."""
    read = proof_from_json(json.loads(json.dumps(Proof(goal("p", *values), By.FACT).to_json())))

    assert isinstance(read.goal, Literal)
    found = [term.value for term in read.goal.atom.arguments if isinstance(term, Constant)]
    assert [(type(value), str(value)) for value in found] == [(type(value), str(value)) for value in values]
