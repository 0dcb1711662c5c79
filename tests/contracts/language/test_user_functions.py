"""Python functions that decide computed predicates."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from cli_fixture import invoke
from plug_in_fixture import provide

import hapax

PLACES = """
computed is_close_to(Number A, Number B)
computed way_between(Number A, Number B, Number K)
lies_at("x", 1). lies_at("y", 2). lies_at("z", 9).
lies_at(X, A) & lies_at(Y, B) & is_close_to(A, B) & X \\= Y -> is_near(X, Y)
lies_at(X, A) & lies_at(Y, B) & way_between(A, B, K) & not is_close_to(A, B) -> is_far(X, Y, K)
"""


def registered(limit: int = 3, version: str = "1") -> list[tuple[object, ...]]:
    """The calls of the two functions of PLACES."""
    calls: list[tuple[object, ...]] = []

    def is_close_to(a: int, b: int) -> bool:
        calls.append((a, b))
        return abs(a - b) < limit

    hapax.register_function(is_close_to, version=version)
    hapax.register_function(lambda a, b: abs(a - b) / 2, name="way_between")
    return calls


def test_a_function_tests_and_a_function_gives_a_value() -> None:
    """By goal, by derivation, negated, inside of a list; each pair of arguments is asked once."""
    calls = registered()
    rules = hapax.parse_rules(PLACES)
    with hapax.KnowledgeBase() as kb:
        near = hapax.query("is_near(X, Y)", rules, kb).rows
        far = hapax.query("is_far(x, Y, K)", rules, kb).rows
        listed = hapax.query("findall(X, (lies_at(X, A), is_close_to(A, 1)), L)", rules, kb).rows
        proof = str(hapax.why("is_near(x, y)", rules, kb))
        derived = hapax.derive(rules, kb).report
        again = hapax.query("is_near(X, Y)", rules, kb).rows

    assert near == again == [("x", "y"), ("y", "x")]
    assert far == [("z", 4)]
    assert listed == [(["x", "y"],)]
    assert "is_close_to(1, 2)  [computed]" in proof
    assert [rule.statements for rule in derived.rules] == [2, 4]
    assert len(calls) == len(set(calls))


def test_another_version_is_another_derivation() -> None:
    """Rules that were read with the older function keep it; what it derived is derived anew."""
    registered()
    before = hapax.parse_rules(PLACES)
    with hapax.KnowledgeBase() as kb:
        hapax.derive(before, kb)
        registered(limit=100, version="2")
        after = hapax.parse_rules(PLACES)
        old = len(hapax.query("is_near(X, Y)", before, kb))
        new = len(hapax.query("is_near(X, Y)", after, kb))
        report = hapax.derive(after, kb).report

    assert (old, new) == (2, 6)
    assert report.rules[0].statements == 6
    assert hapax.compile_rules(after, "rules") == hapax.compile_rules(before, "rules")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a, b: 1 / 0, "is_close_to raises ZeroDivisionError"),
        (lambda a, b: None, "is_close_to gives None, which is no value"),
        (lambda a, b: float("nan"), "is_close_to gives nan"),
    ],
)
def test_a_function_that_fails_is_told_with_the_row(function: Callable[..., object], words: str) -> None:
    """As every calculation without a value."""
    registered()
    hapax.register_function(function, name="is_close_to", version="broken")
    rules = hapax.parse_rules(PLACES)
    with hapax.KnowledgeBase() as kb:
        found = hapax.query("is_near(X, Y)", rules, kb)

    assert found.rows == []
    assert words in found.warnings[0]
    assert "for 9 rows" in found.warnings[0] or "for 6 rows" in found.warnings[0]


def test_decimals_and_texts_are_given_as_such() -> None:
    """Numbers as int or Decimal, texts as str; a float is taken as the decimal that it shows."""
    given: list[object] = []
    hapax.register_function(lambda a: given.append(a) or 0.1, name="share_of")
    rules = hapax.parse_rules(
        'computed share_of(Any A, Number K)\np(1). p(1.5). p("a").\np(A) & share_of(A, K) -> q(A, K)\n'
    )
    with hapax.KnowledgeBase() as kb:
        found = hapax.query("q(A, K)", rules, kb).rows

    assert {(type(value), value) for value in given} == {(int, 1), (Decimal, Decimal("1.5")), (str, "a")}
    assert {row[1] for row in found} == {Decimal("0.1")}


def test_without_a_function_the_declaration_is_a_fault() -> None:
    """And so is one with another number of arguments."""
    registered()
    for line in ("computed is_unheard_of(Number A)", "computed is_close_to(Number A, Number B, Number C, Number D)"):
        with pytest.raises(hapax.RulesRejected, match="HPX021"):
            hapax.parse_rules(line)


def test_a_function_needs_a_fixed_number_of_arguments() -> None:
    """A rule names each."""
    with pytest.raises(hapax.HapaxError, match="fixed number"):
        hapax.register_function(max)


def test_rules_that_come_with_a_knowledge_base_call_no_function(tmp_path: Path) -> None:
    """The file may be a stranger's, and a function may read what he names."""
    registered()
    path = tmp_path / "places.rules"
    path.write_text(PLACES, "utf-8")
    with hapax.KnowledgeBase(tmp_path / "a.db") as kb:
        hapax.keep_rules(kb, path)
    path.unlink()
    told = invoke("query", "is_near(X, Y)", "--db", str(tmp_path / "a.db"))

    assert told.exit_code != 0
    assert "HPX021" in f"{told.output}{told.exception}"


def test_a_package_adds_a_function(tmp_path: Path) -> None:
    """By an entry point, whose package's version is the function's."""
    (tmp_path / "closeness.py").write_text("def is_close(a, b):\n    return abs(a - b) < 3\n", "utf-8")
    provide(tmp_path, "closeness", {"is_close_to": "closeness:is_close"}, "hapax.functions")
    rules = tmp_path / "places.rules"
    lines = [line for line in PLACES.splitlines() if "way_between" not in line]
    rules.write_text("\n".join(lines), "utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path.cwd())])
    command = [sys.executable, "-m", "hapax.cli", "query", "is_near(x, Y)", "--rules", str(rules)]
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert ended.stdout.split() == ["Y", "y"], ended.stderr


@pytest.mark.parametrize("dialect", ["prolog", "duckdb"])
def test_other_languages_refuse_it(dialect: str) -> None:
    """They have no Python."""
    registered()
    with pytest.raises(hapax.HapaxError, match="is_close_to"):
        hapax.compile_rules(hapax.parse_rules(PLACES), dialect)
