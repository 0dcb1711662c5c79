"""Proof trees as JSON: read as they were written, and damaged ones refused."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from hapax.engine.inference.proof import By, Proof, proof_from_json
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Variable


def goal(predicate: str, *values: str | int | Decimal) -> Literal:
    return Literal(Atom(predicate, tuple(map(Constant, values))))


def example() -> Proof:
    shared = Proof(goal("is_in", "saffron", "paella"), By.FACT, fact_id="f1")
    inner = Proof(goal("is_found_in", "paella"), By.RULE, "inner", (shared,))
    earlier = Comparison("<", Constant(Decimal("1.50")), Arithmetic("+", (Constant(2), Constant(1))))
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
