"""Files of which some rules have errors or conclude nothing, by the command line and by `import hapax`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import invoke, run

import hapax

FAULTY = """
given a(Thing)
given n(Thing, Number)
@name good
@generic none
a(Thing X) -> b(Thing X)
@name other
@generic none
b(Thing X) -> c(Thing X)
@name unbound
@generic none
a(Thing X) -> d(Thing Y)
@name needs
@generic none
d(Thing X) & a(Thing X) -> e(Thing X)
@name negates
@generic none
a(Thing X) & not d(Thing X) -> f(Thing X)
@name excepts
@generic none
a(Thing X) -> g(Thing X) unless e(Thing X)
@name cycle
@generic none
a(Thing X) & not h(Thing X) -> h(Thing X)
aggregate es(Number K) := K = count(Thing X: e(Thing X))
aggregate as(Number K) := K = count(Thing X: a(Thing X))
fact a("x")
"""
HARMLESS = """
given a(Thing)
given n(Thing, Number)
@name good
@generic none
a(Thing X) -> b(Thing X)
@name tautology
@generic none
b(Thing X) -> b(Thing X)
@name never
@generic none
n(Thing X, Number K) & K > 3 & K < 2 -> m(Thing X)
@name divides
@generic none
n(Thing X, Number K) & K / 0 > 2 -> q(Thing X)
@name top
@generic none
b(Thing X) -> t(Thing X)
fact a("x")
fact n("x", 1)
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "my.rules"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base without facts."""
    path = tmp_path / "kb.db"
    hapax.KnowledgeBase(path).close()
    return path


def test_rules_that_conclude_nothing_change_no_answer(tmp_path: Path, database: Path) -> None:
    """They are warnings; all other rules are derived and asked for, and goals about what never holds have no answer."""
    rules = write(tmp_path, HARMLESS)
    found = {item["code"]: item["severity"] for item in json.loads(run("check", rules, "--json").stdout)}
    assert [found[code] for code in ("HPX104", "HPX108", "HPX125")] == ["warning"] * 3
    derived = run("derive", rules, "--db", database)

    assert "tautology is left out" in derived.stderr
    assert "top" in derived.stdout
    for goal, answers in (("b(X)", [{"X": "x"}]), ("t(X)", [{"X": "x"}]), ("m(X)", []), ("q(X)", [])):
        output = run("query", goal, "--rules", rules, "--db", database, "--json").stdout
        assert json.loads(output)["answers"] == answers
    assert "good" in run("why", "b(x)", "--rules", rules, "--db", database).stdout


@pytest.mark.parametrize(("goal", "answers"), [("c(X)", [{"X": "x"}]), ("as(N)", [{"N": 1}]), ("b(x)", [{}])])
def test_goals_that_need_no_faulty_rule_are_answered(
    tmp_path: Path, database: Path, goal: str, answers: list[dict[str, object]]
) -> None:
    """The faulty rule is named on stderr, and the goal has its answer."""
    result = run("query", goal, "--rules", write(tmp_path, FAULTY), "--db", database, "--json")

    assert json.loads(result.stdout)["answers"] == answers
    assert "unbound is left out" in result.stderr


@pytest.mark.parametrize("goal", ["d(X)", "e(X)", "f(X)", "g(X)", "es(N)", "a(X), \\+ e(X)"])
def test_goals_that_need_a_faulty_rule_are_refused_with_its_place(tmp_path: Path, database: Path, goal: str) -> None:
    """Directly, by a rule, a negation, an exception or an aggregate: any answer could be wrong."""
    result = invoke("query", goal, "--rules", write(tmp_path, FAULTY), "--db", database)

    assert result.exit_code != 0
    assert "12 | a(Thing X)" in result.output
    assert "rule unbound" in result.output
    assert "HPX101" in result.output
    assert "HPX109" not in result.stdout


def test_derive_leaves_out_faulty_rules_and_those_that_need_them(tmp_path: Path, database: Path) -> None:
    """The others are derived, a faulty rule that is named is refused, and so is a file of faulty rules alone."""
    rules = write(tmp_path, FAULTY)
    result = run("derive", rules, "--db", database, "--json")
    report = json.loads(result.stdout)

    assert [rule["rule"] for rule in report["rules"]] == ["other"]
    assert report["atoms"] == {"as/1": 1, "b/1": 1}
    for name in ("unbound", "needs", "negates", "excepts", "cycle", "es/1"):
        assert f"{name} is left out" in result.stderr
    assert "unbound" in invoke("derive", rules, "--rule", "needs", "--db", database).output
    assert invoke("derive", rules, "--rule", "needs", "--db", database).exit_code != 0
    alone = write(tmp_path, "@name unbound\na(Thing X) & b(Thing X, Thing Z) -> d(Thing X, Thing Y)\n")
    assert invoke("derive", alone, "--db", database).exit_code != 0


def test_a_fault_of_the_declarations_refuses_the_file(tmp_path: Path, database: Path) -> None:
    """Types in a cycle concern every rule; a line that cannot be read does, too."""
    for text in (f"{FAULTY}type Food < Meal\ntype Meal < Food\n", f"{FAULTY}a(Thing X -> b(Thing X)\n"):
        result = invoke("query", "b(X)", "--rules", write(tmp_path, text), "--db", database)

        assert result.exit_code != 0
        assert "my.rules" in result.output
