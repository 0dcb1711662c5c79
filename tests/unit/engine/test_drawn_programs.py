"""Random programs by SQL, by Prolog, by loops over the facts, and by ProbLog: no difference."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from random_cases import cases

from hapax.engine.prolog.session import PrologSession
from tools.differential import compare_program
from tools.drawn_programs import Compared
from tools.probable_programs import by_problog, compare_chances

# --- differential -----------------------------------------------------------------------------------------------------


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


# --- probable ---------------------------------------------------------------------------------------------------------


needs_problog = pytest.mark.skipif(
    not (find_spec("problog") and find_spec("pysdd")), reason="ProbLog 2 or the extra `probability` is not installed"
)
PROGRAMS = int(os.environ.get("HAPAX_TEST_PROBABLE_PROGRAMS", "5"))


@needs_problog
def test_probabilities_of_rule_files_are_those_of_problog() -> None:
    """Answers and statements over recursion, negation, denials and entailments: exact within 1e-9, bounds around."""
    found = Compared()
    for number in range(PROGRAMS):
        compare_chances(f"1-{number}", found)

    assert not found.differences, found.differences[0]
    assert found.counts["programs"] == PROGRAMS
    assert found.counts["answers, exact"] > 3 * PROGRAMS
    assert found.counts["statements"]
    assert found.counts["answers, bounds"]


@needs_problog
def test_another_probability_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ProbLog has other numbers, each is told with its goal and its program."""
    monkeypatch.setattr(
        "tools.probable_programs.by_problog",
        lambda text: {
            name: {row: chance * 0.999 for row, chance in rows.items()} for name, rows in by_problog(text).items()
        },
    )
    found = Compared()
    compare_chances("1-1", found)

    assert any("exact" in difference and "ProbLog has" in difference for difference in found.differences)
    assert "::" in found.differences[0]
