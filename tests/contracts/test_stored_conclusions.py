"""Goals about what `derive` has stored, by the command line and by `import hapax`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run

import hapax

RULES = """
given n(Thing, Number)
given bad(Thing)
@name pairs
@generic none
n(Thing X, Number A) & n(Thing Y, Number B) & A + B = 7 -> sevens(Thing X, Thing Y)
@name good
@generic none
sevens(Thing X, Thing Y) & not bad(Thing X) -> good(Thing X)
@name third
@generic none
n(Thing X, Number A) & Number K = A / 3 -> third(Thing X, Number K)
aggregate size(Number K) := K = count(Thing X: good(Thing X))
"""
FEW = ("--inferences", "60000")
"""A limit under which 90,000 pairs of numbers cannot be compared."""


def write(folder: Path, text: str, name: str = "my.rules") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return write(tmp_path, RULES)


@pytest.fixture
def database(tmp_path: Path, rules: Path) -> Path:
    """A knowledge base with 300 numbered things and all that follows."""
    path = tmp_path / "kb.db"
    lines = "".join(f"n,t{number},{number}\n" for number in range(300))
    with hapax.KnowledgeBase(path) as kb:
        hapax.import_facts(kb, write(tmp_path, f"predicate,a1,a2\n{lines}bad,t1,\n".replace(",\n", "\n"), "facts.csv"))
    run("derive", rules, "--db", path)
    return path


def answers(goal: str, database: Path, *options: object) -> list[Any]:
    found: list[Any] = json.loads(run("query", goal, "--db", database, "--json", *options).stdout)["answers"]
    return found


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("aggregate_all(count, sevens(X, Y), N)", [{"N": 8}]),
        ("sevens(t3, Y)", [{"Y": "t4"}]),
        ("sevens(X, Y), good(Y), X = t1", [{"X": "t1", "Y": "t6"}]),
        ("good(t1)", []),
        ("sevens(nobody, Y)", []),
        ("size(N)", [{"N": 7}]),
        ("findall(X, good(X), L), length(L, N)", None),
    ],
)
def test_stored_conclusions_answer_goals(database: Path, goal: str, expected: list[Any] | None) -> None:
    """Derived atoms are read instead of proved again, within the limits of a goal."""
    found = answers(goal, database, *FEW)

    assert found[0]["N"] == 7 if expected is None else found == expected


def test_conclusions_are_proved_again_where_facts_have_changed(tmp_path: Path, rules: Path, database: Path) -> None:
    """After an import and after a withdrawal the answers are those of the facts as they are, before and after derive."""
    run("import", write(tmp_path, "predicate,a1,a2\nn,new,5\n", "more.csv"), "--db", database)

    assert answers("sevens(new, Y)", database) == [{"Y": "t2"}]
    run("derive", rules, "--db", database)
    assert answers("sevens(new, Y)", database, *FEW) == [{"Y": "t2"}]
    assert answers("size(N)", database, *FEW) == [{"N": 8}]
    run("data", "retract", "n(new, 5)", "--reason", "wrong", "--db", database)
    assert answers("sevens(new, Y)", database) == []
    assert answers("size(N)", database) == [{"N": 7}]


def test_assumptions_and_other_rules_change_what_follows(tmp_path: Path, database: Path) -> None:
    """Stored conclusions follow from the stored facts and by the rules that derived them, and from nothing else."""
    other = write(tmp_path, RULES.replace("A + B = 7", "A + B = 3"), "other.rules")

    assert answers("size(N)", database, "--assume", "bad(t2)") == [{"N": 6}]
    assert answers("sevens(X, fresh)", database, "--assume", "n(fresh, 4)") == [{"X": "t3"}]
    assert answers("aggregate_all(count, sevens(X, Y), N)", database, "--rules", other) == [{"N": 4}]
