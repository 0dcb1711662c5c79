"""Expressions of rules, and functions that users add."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from plug_in_fixture import provide

import hapax

# --- expressions ------------------------------------------------------------------------------------------------------


HALVES = """
given size(Thing, Number)
@generic none
size(X, K) & M = 8 / K -> half(X, M)
@generic none
size(X, K) & size(Y, L) & K < L -> is_smaller(X, Y)
"""


def base(rules: hapax.Library, predicate: str, rows: Any) -> hapax.KnowledgeBase:
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, predicate, rows, rules)
    return kb


def test_a_comparison_without_a_value_is_told_with_its_row_and_a_count() -> None:
    """By goal and by derivation, of the rows that the rest of the premise has; where all have one nothing is told."""
    rules = hapax.parse_rules(HALVES, "halves.rules")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "size", [("a", 4), ("b", 0), ("c", 0)], rules)
        found = hapax.query("half(X, M)", rules, kb)
        told = hapax.derive(rules, kb).report.failures
        unrelated = hapax.query("is_smaller(X, Y)", rules, kb)
        goal = hapax.query("size(X, K), 1 / K > 2", rules, kb)

    text = (
        "halves.rules:4:14: rule rule1: \"M = 8 / K\" has no value for 2 rows, such as K = 0, X = 'b': division by zero"
    )
    assert found.rows == [("a", 2)]
    assert found.warnings == told == (text,)
    assert unrelated.warnings == ()
    assert [line.partition(": ")[0] for line in goal.warnings] == ["the goal"]


def test_rows_that_another_premise_excludes_are_not_told() -> None:
    """Whatever the order in which the base tests the conditions."""
    rules = hapax.parse_rules(
        "given size(Thing, Number)\n@generic none\n1 / K > 0 & size(X, K) & K > 0 -> is_large(X)\n"
    )
    with base(rules, "size", [("a", 4), ("b", 0)]) as kb:
        found = hapax.query("is_large(X)", rules, kb)

    assert (found.rows, found.warnings) == ([("a",)], ())


def test_the_command_tells_of_comparisons_without_a_value(tmp_path: Path) -> None:
    """On the error stream, with the exit status 0."""
    rules, kb = tmp_path / "halves.rules", tmp_path / "halves.db"
    rules.write_text(HALVES + 'fact size("b", 0)\n', "utf-8")
    hapax.KnowledgeBase(kb).close()
    derived = invoke("derive", str(rules), "--db", str(kb))

    assert derived.exit_code == 0
    assert "has no value for 1 row, such as K = 0" in derived.stderr


def test_texts_that_differ_are_no_dates_without_a_value() -> None:
    """Where another comparison has no value, an equation between texts is not told with it."""
    rows = 'loan(1, "2023-01-02", "2023-01-01"). loan(2, "2023-01-02", "soon").'
    found = hapax.program(f'{rows}\nloan(I, R, L) & R > L & R \\= "" -> is_back(I).').query("is_back(X)")

    assert (found.rows, [warning.count("has no value") for warning in found.warnings]) == ([(1,)], [1])
    assert "R > L" in found.warnings[0]


def test_typed_cells_become_texts_that_rules_calculate_with() -> None:
    """Dates, date-times, times, durations and booleans of Python and pandas."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "name": ["a"],
            "day": [dt.date(2012, 12, 1)],
            "at": [pandas.Timestamp("2012-12-01T08:30:00+01:00")],
            "clock": [dt.time(8, 30)],
            "took": [pandas.Timedelta(hours=36)],
            "is_open": [True],
        }
    )
    rules = hapax.parse_rules(
        "given shop(Text, Date, DateTime, Time, Duration, Text)\n@generic none\n"
        'shop(N, D, A, C, T, O) & O = "true" & D < "2013-01-01" & H = hour(A) & M = minute(C) & K = hours(T) & E = D + T '
        "-> is_open(N, H, M, K, E)"
    )
    with base(rules, "shop", frame) as kb:
        rows = hapax.query("shop(N, D, A, C, T, O)", rules, kb).rows
        found = hapax.query("is_open(N, H, M, K, E)", rules, kb).rows

    assert rows == [("a", "2012-12-01", "2012-12-01T08:30:00+01:00", "08:30:00", "P1DT12H", "true")]
    assert found == [("a", 8, 30, 36, "2012-12-02T12:00:00")]


def test_a_pattern_that_would_run_for_ever_is_ended() -> None:
    """Its row is told, and no other pattern suffers."""
    rules = hapax.parse_rules("given word(Text, Text)\n@generic none\nword(W, P) & matches(W, P) -> fits(W, P)\n")
    patterns = ("(?R)", "a{1000000000}", "((a{1000}){1000}){1000}", "(")
    with base(rules, "word", [("ab", "^a"), *(("ab", pattern) for pattern in patterns)]) as kb:
        began = time.monotonic()
        found = hapax.query("fits(W, P)", rules, kb)
        seconds = time.monotonic() - began

    assert found.rows == [("ab", "^a")]
    assert "for 4 rows" in found.warnings[0]
    assert seconds < 30


@pytest.mark.parametrize(
    ("dialect", "item"),
    [
        ("prolog", "year(D) > 2000"),
        ("prolog", 'matches(W, "^a")'),
        ("duckdb", "D + 3 days > D"),
        ("postgres", 'matches(W, "^a")'),
        ("spark", "A ** A > 3"),
    ],
)
def test_what_another_language_lacks_is_refused_with_the_reason(dialect: str, item: str) -> None:
    """Never translated to something else."""
    rules = hapax.parse_rules(f"given p(Text, Date, Number)\n@generic none\np(W, D, A) & {item} -> q(W)\n")
    with pytest.raises(hapax.HapaxError, match=r"has|have|about|cannot be written"):
        hapax.compile_rules(rules, dialect)


COUNTRIES = """
country("Norway", 5, "2012-11-29").
country("Peru", 7.5, "2013-01-02").
"""


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ('country(C, _, _), starts_with(C, "Nor")', [("Norway",)]),
        ('country(C, _, _), not contains(C, "w")', [("Peru",)]),
        ("country(_, _, D), year(D) = 2013, L is month(D)", [("2013-01-02", 1)]),
        ('country(C, _, D), D + 30 days < "2013-01-01"', [("Norway", "2012-11-29")]),
        ('findall(C, (country(C, _, _), contains(C, "r")), L)', [(["Norway", "Peru"],)]),
        ("aggregate_all(count, (country(_, _, D), month(D) = 1), K)", [(1,)]),
        ("setof(Y, C^N^D^(country(C, N, D), Y = year(D)), L)", [([2012, 2013],)]),
    ],
)
def test_goals_have_the_functions_of_rules(goal: str, rows: list[tuple[object, ...]]) -> None:
    """Also inside of lists and counts, which Prolog makes."""
    rules = hapax.parse_rules(COUNTRIES)
    with hapax.KnowledgeBase() as kb:
        found = hapax.query(goal, rules, kb).rows

    columns = len(rows[0])
    assert [row[-columns:] for row in found] == rows


def test_a_function_beside_what_only_prolog_answers_is_refused() -> None:
    """With the remedy."""
    rules = hapax.parse_rules(COUNTRIES)
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="as a rule"):
        hapax.query("findall(C, country(C, _, _), L), country(_, _, D), year(D) > 2012", rules, kb)


def test_a_type_that_no_declaration_puts_below_another_takes_numbers() -> None:
    """Minutes are numbers without being declared so; a person is none."""
    text = "given trip(id: Trip, air_time: Minutes)\ntrip(7, 410).\ntrip(id: I, air_time: Minutes T) & T ** 2 > 400 -> long(I)\n"
    rules = hapax.parse_rules(text)
    with hapax.KnowledgeBase() as kb:
        found = hapax.query("long(I)", rules, kb).rows
    faults = [item.code for item in hapax.check_rules(hapax.parse_rules("given age(Person, Age)\nage(7, 41).\n"))]

    assert found == [(7,)]
    assert "HPX113" in faults


# --- functions --------------------------------------------------------------------------------------------------------


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
