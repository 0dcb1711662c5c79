"""The programs of `examples/classics`: their answers are those of a second engine, and three are refused with a reason."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax

CLASSICS = Path(__file__).parents[2] / "examples" / "classics"
PROGRAMS = {path.stem: path for path in sorted(CLASSICS.glob("*.rules"))}
ASKED = {
    name: found[1]
    for name, path in PROGRAMS.items()
    if (found := re.search(r"% ask: (\w+/\d)", path.read_text("utf-8")))
}
REFUSED = {
    name: found[1]
    for name, path in PROGRAMS.items()
    if (found := re.search(r"% refused: (HPX\d+)", path.read_text("utf-8")))
}


def second_engine(name: str, indicator: str) -> set[str]:
    """The atoms of the predicate by SWI-Prolog, if the program has a file for it, else by clingo."""
    predicate, _, arity = indicator.partition("/")
    prolog = CLASSICS / f"{name}.pl"
    if prolog.exists():
        atom = f"{predicate}({', '.join('ABCD'[: int(arity)])})"
        goal = f"forall({atom}, (write_canonical({atom}), nl)), halt"
        done = subprocess.run(
            ["swipl", "-q", "-g", goal, prolog], capture_output=True, text=True, check=True, timeout=60
        )
        return set(done.stdout.split())
    clingo = pytest.importorskip("clingo")
    control = clingo.Control(["--warn=none"])
    control.add("base", [], PROGRAMS[name].read_text("utf-8"))
    control.ground([("base", [])])
    atoms = set[str]()
    control.solve(
        on_model=lambda model: atoms.update(
            str(symbol)
            for symbol in model.symbols(atoms=True)
            if (symbol.name, len(symbol.arguments)) == (predicate, int(arity))
        )
    )
    return atoms


def by_hapax(name: str, indicator: str) -> set[str]:
    predicate, _, arity = indicator.partition("/")
    program = hapax.program(PROGRAMS[name].read_text("utf-8"))
    rows = program.query(f"{predicate}({', '.join('ABCD'[: int(arity)])})").rows
    return {f"{predicate}({','.join(map(str, row))})" for row in rows}


def test_there_are_twenty_classics() -> None:
    """Each is asked or refused."""
    assert len(PROGRAMS) >= 20
    assert {*ASKED, *REFUSED} == set(PROGRAMS)


@pytest.mark.parametrize("name", ASKED)
def test_a_classic_has_the_answers_of_a_second_engine(name: str) -> None:
    """They lie beside it, and `check` has nothing to say."""
    answers = CLASSICS / "answers" / f"{name}.txt"
    if os.environ.get("HAPAX_RENEW_GOLDEN"):
        answers.parent.mkdir(exist_ok=True)
        answers.write_text("".join(f"{atom}\n" for atom in sorted(second_engine(name, ASKED[name]))), "utf-8")
    expected = set(answers.read_text("utf-8").splitlines())

    assert expected
    assert by_hapax(name, ASKED[name]) == expected
    assert second_engine(name, ASKED[name]) == expected
    assert invoke("check", str(PROGRAMS[name])).stdout == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_beyond_the_language_is_refused_with_its_reason(name: str) -> None:
    """By a code that `explain` explains."""
    refused = invoke("check", str(PROGRAMS[name]))

    assert refused.exit_code == 4
    assert REFUSED[name] in refused.stdout
