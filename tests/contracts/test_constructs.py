"""The table of constructs in docs/language.md: each has a program in `tests/programs/`, and a second engine's outcome."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = re.search(r"\n\| construct \|.*?\n\n", (ROOT / "docs" / "language.md").read_text("utf-8"), re.DOTALL)
SECTIONS = dict(
    section.split("\n", 1)
    for section in (ROOT / "tests" / "programs" / "constructs.rules").read_text("utf-8").split("%% ")[1:]
)
ELSEWHERE = {"probabilities": "test_probabilities.py", "proofs, reasons why not, withdrawal": "test_explanations.py"}
"""Constructs whose outcome is no set of atoms, with the tests that have it."""


def expected(section: str) -> set[str]:
    """The atoms that the section says follow, without blanks and quotation marks."""
    return {plain(line) for line in re.findall(r"^%= (\w+\(.*\))$", section, re.MULTILINE)}


def plain(atom: str) -> str:
    return re.sub(r"[\s'\"]", "", atom)


def by_clingo(program: str, _: set[str], __: Path) -> set[str] | None:
    """The atoms of the one model; None if there is none."""
    control = pytest.importorskip("clingo").Control(["--warn=none"])
    control.add("base", [], program)
    control.ground([("base", [])])
    models: list[set[str]] = []
    control.solve(on_model=lambda model: models.append(set(map(str, model.symbols(atoms=True)))))
    return models[0] if models else None


def by_swipl(program: str, indicators: set[str], folder: Path) -> set[str]:
    """The atoms of the predicates."""
    (folder / "program.pl").write_text(f":- set_prolog_flag(prefer_rationals, true).\n{program}", "utf-8")
    goals = []
    for indicator in indicators:
        name, _, arity = indicator.partition("/")
        atom = f"{name}({', '.join('ABCDEFG'[: int(arity)])})"
        goals.append(f"forall({atom}, (print({atom}), nl))")
    command = ["swipl", "-q", "-g", ", ".join([*goals, "halt"]), folder / "program.pl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.splitlines())


def by_duckdb(program: str, _: set[str], __: Path) -> set[str]:
    """The texts that the SQL gives."""
    return {text for (text,) in pytest.importorskip("duckdb").sql(program).fetchall()}


ENGINES = {"clingo": by_clingo, "swipl": by_swipl, "duckdb": by_duckdb}
COMPARED = {
    title: engine[1] for title, text in SECTIONS.items() if (engine := re.search(r"second engine: (\w+)", text))
}


@pytest.mark.parametrize("title", COMPARED)
def test_a_second_engine_has_the_outcome(title: str, tmp_path: Path) -> None:
    """The same program in clingo, SWI-Prolog or DuckDB gives the atoms that the section expects, or no model."""
    section = SECTIONS[title]
    program = "\n".join(re.findall(r"^%: (.*)$", section, re.MULTILINE))
    atoms = expected(section)
    indicators = {f"{atom.partition('(')[0]}/{atom.count(',') + 1}" for atom in atoms}

    found = ENGINES[COMPARED[title]](program, indicators, tmp_path)

    if not atoms:
        assert "%= finds HPX" in section
        assert found is None
    else:
        assert found is not None
        names = {indicator.partition("/")[0] for indicator in indicators}
        assert {plain(atom) for atom in found if atom.partition("(")[0] in names} == atoms


def test_each_row_of_the_table_has_a_program() -> None:
    """The sections are named like the rows."""
    assert TABLE is not None
    rows = {line.split("|")[1].strip().replace("`", "") for line in TABLE[0].strip().splitlines()[2:]}

    assert rows == {*COMPARED, *ELSEWHERE}
    assert all((ROOT / "tests" / "contracts" / name).exists() for name in ELSEWHERE.values())
