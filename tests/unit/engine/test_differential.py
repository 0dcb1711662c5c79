"""Random programs by SQL, by Prolog and by loops over the facts: no difference."""

from __future__ import annotations

import pytest
from random_cases import cases

from hapax.engine.prolog.session import PrologSession
from tools.differential import compare_program
from tools.drawn_programs import Compared


@pytest.mark.parametrize("programs", [cases(6), pytest.param(cases(60), marks=pytest.mark.slow)])
def test_engines_agree_on_random_programs(prolog: PrologSession, programs: int) -> None:
    """Aggregates, exceptions, closed predicates and recursion, while facts come and go: statements, proofs and answers."""
    found = Compared()
    for number in range(programs):
        compare_program(f"draw-{number}", prolog, found)

    assert not found.differences, found.differences[0]
    assert found.counts["programs"] == programs
    assert found.counts["statements"] > 10 * programs
    assert found.counts["goals"] > 2 * programs


def test_a_difference_is_told_with_its_program(prolog: PrologSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that loses statements is found, and the report has the seed, the rules and the facts."""
    monkeypatch.setattr("tools.differential.read_statements", lambda *_: iter(()))
    found = Compared()
    compare_program("draw-0", prolog, found)

    assert "seed draw-" in found.differences[0]
    assert "derive, rule_" in found.differences[0]
    assert "given edge(Thing, Thing)." in found.differences[0]
