"""Random programs by SQL, by Prolog and by loops over the facts: no difference."""

from __future__ import annotations

from fractions import Fraction

import pytest
from random_cases import cases

from hapax.engine.inference.session import PrologSession
from tools.clingo_programs import by_clingo, has_clingo
from tools.differential import ComparedPrograms, compare_program
from tools.drawn_programs import SIGNATURES, Call, DrawnProgram, DrawnRule


@pytest.mark.parametrize("programs", [cases(6), pytest.param(cases(60), marks=pytest.mark.slow)])
def test_engines_agree_on_random_programs(prolog: PrologSession, programs: int) -> None:
    """Aggregates, exceptions, closed predicates and recursion, while facts come and go: statements, proofs and answers."""
    found = ComparedPrograms()
    for number in range(programs):
        compare_program(f"test-{number}", prolog, found)

    assert not found.differences, found.differences[0]
    assert found.programs == programs
    assert found.statements > 10 * programs
    assert found.aggregates_by_clingo > programs / 10 or not has_clingo()


@pytest.mark.skipif(not has_clingo(), reason="clingo is not installed")
def test_clingo_counts_adds_up_and_takes_the_least_and_the_greatest_number_of_a_group() -> None:
    """Texts count as tuples but not as numbers, equal tuples count once, and decimals stay exact."""
    counted = Call("sold", ("X", "Y", "M"))
    rules = [
        DrawnRule("", Call(function, ("X", "K")), (counted,), function=function, counted=("M", "Y"))
        for function in ("count", "sum", "min", "max")
    ]
    signatures = {**SIGNATURES, **dict.fromkeys(("count", "sum", "min", "max"), "TN")}
    program = DrawnProgram(signatures, layers=[rules])
    sold = {("a", "x", Fraction(2)), ("a", "y", Fraction(2)), ("a", "x", Fraction(-1, 2)), ("a", "x", "light")}
    answer = by_clingo(program, {"sold": {*sold, ("b", "x", "light")}})

    assert answer is not None
    atoms, _ = answer
    assert atoms["count"] == {("a", Fraction(4)), ("b", Fraction(1))}
    assert atoms["sum"] == {("a", Fraction(7, 2))}
    assert atoms["min"] == {("a", Fraction(-1, 2))}
    assert atoms["max"] == {("a", Fraction(2))}


def test_a_difference_is_told_with_its_program(prolog: PrologSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that loses statements is found, and the report has the seed, the rules and the facts."""
    monkeypatch.setattr("tools.differential.read_statements", lambda *_: iter(()))
    found = ComparedPrograms()
    compare_program("test-0", prolog, found)

    assert "seed test-" in found.differences[0]
    assert "derive, rule_" in found.differences[0]
    assert "given edge(Thing, Thing)." in found.differences[0]
