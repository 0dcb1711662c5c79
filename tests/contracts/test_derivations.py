"""`derive` on the command line: what it prints, stores and writes, and its limits."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run

import hapax

ROUTES = """
given road(Place, Place)
given closed(Place)
given age(Thing, Number)
@name onward
@generic none
road(Place A, Place B) & reaches(Place B, Place C) & C \\= A & not closed(Place C) -> serves(Place A, Place C)
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
reaches(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@name next
@generic none
age(Thing X, Number N) & Number M = N - 3 & M / 2 < 1.5 -> was(Thing X, Number M)
"""
ONWARD = ("--rule", "onward")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rules and a knowledge base with a ring of three places, in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("routes.rules").write_text(ROUTES, "utf-8")
    rules = hapax.load_rules("routes.rules")
    with hapax.KnowledgeBase("hapax.db") as kb:
        hapax.add_facts(kb, "road", [tuple(pair) for pair in ("ab", "bc", "ca")], rules)
        hapax.add_facts(kb, "age", [("tom", 5), ("eve", -7), ("old", 50)], rules)
    return tmp_path


def test_a_derivation_is_printed_stored_and_written(world: Path) -> None:
    """`derive` counts the statements of each rule, writes them with proofs to both formats, and `stats` counts them."""
    from pyarrow import parquet

    for ending in ("jsonl", "parquet"):
        shown = run("derive", "routes.rules", *ONWARD, "-o", f"out.{ending}").stdout
        assert shown.splitlines()[1].split()[:2] == ["onward", "6"]
    lines = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    rows = parquet.read_table("out.parquet").to_pylist()

    assert sorted(line["statement"] for line in lines)[0] == "If road(a, b) and b reaches b, then a serves b."
    assert all(line["proof"]["steps"][0]["premises"] for line in lines)
    assert [json.loads(line["proof"]) for line in rows] == [line["proof"] for line in lines]
    assert json.loads(run("data", "stats", "--json").stdout)["derived"] == {"onward": 6}
    as_json = json.loads(run("derive", "routes.rules", *ONWARD, "--json").stdout)
    assert as_json["atoms"] == {"reaches/2": 9}
    assert [(rule["rule"], rule["statements"]) for rule in as_json["rules"]] == [("onward", 6)]


def test_a_full_disk_keeps_the_earlier_file(world: Path) -> None:
    """Where a file cannot be written whole the earlier one stays; with space the new one takes its place."""
    file = world / "written" / "out.jsonl"
    file.parent.mkdir()
    Path("far.rules").write_text(
        "given road(Place, Place)\n@generic none\nroad(Place A, Place B) -> far(Place A, Place B)\n"
    )
    arguments = ["derive", "far.rules", "-o", str(file)]
    run(*arguments)
    before = file.read_bytes()
    names = [hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(2000)]
    with hapax.KnowledgeBase("hapax.db") as kb:
        hapax.add_facts(kb, "road", [("b", name) for name in names], hapax.load_rules("far.rules"))
    run("derive", "far.rules")
    # A limit of the size of files stands for a full disk.
    ended = limited(arguments, 40_000)

    assert ended.returncode == 1, ended.stderr
    assert file.name in ended.stderr.replace("\n", "")
    assert "Traceback" not in ended.stderr
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    run(*arguments)
    assert file.read_bytes() != before


def limited(arguments: list[str], size: int) -> subprocess.CompletedProcess[str]:
    """A command in a process that may write no file larger than this."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-m", "hapax.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, preexec_fn=limit)


def test_a_rule_that_tests_only_what_is_assumed_is_left_out(world: Path) -> None:
    """A test of a value that no fact gives leaves the rule without statements, with the reason, and no error."""
    Path("age.rules").write_text(
        "given is_of_age(Person, Age)\ngiven needs(Thing, Age)\n@name grown\n@generic A\n"
        "is_of_age(Person A, Age X) & needs(Thing B, Age Y) & X < Y -> cannot_use(Person A, Thing B)\n"
    )
    ended = run("derive", "age.rules", "-o", "none.jsonl")

    assert "grown" in ended.stderr
    assert Path("none.jsonl").read_bytes() == b""


# --- limits -----------------------------------------------------------------------------------------------------------

COUNTING = """
given starts(Thing, Number)
fact starts("a", 1)
@generic none
starts(Thing A, Number N) -> counts(Thing A, Number N)
@generic none
counts(Thing A, Number N) & Number M = N + 1 -> counts(Thing A, Number M)
@name many
@generic none
counts(Thing A, Number N) & N > 9 -> has_many(Thing A, Number N)
"""
CLIQUE = """
given n(Thing, Thing)
@generic none
n(Thing A, Thing G) & n(Thing B, Thing G) & n(Thing C, Thing G) & n(Thing D, Thing G) -> four(Thing A, Thing B, Thing C, Thing D)
"""


@pytest.mark.parametrize("text", [COUNTING, CLIQUE])
def test_a_time_limit_ends_a_derivation(text: str) -> None:
    """Recursion that counts for ever, and a join too large, end with LimitExceeded and leave what was derived before."""
    rules = hapax.parse_rules(f"given p(Thing)\n@name own\n@generic none\np(Thing X) -> q(Thing X)\n{text}")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "p", [("x",)], rules)
        hapax.derive(rules, kb, only="own")
        if text is CLIQUE:
            hapax.add_facts(kb, "n", [(f"v{number}", "g") for number in range(300)], rules)
        with pytest.raises(hapax.LimitExceeded) as ended:
            hapax.derive(rules, kb, seconds=0.3)
        if text is COUNTING:
            for asked in (hapax.why, hapax.why_not):
                with pytest.raises(hapax.LimitExceeded):
                    asked("counts(a, 0.5)", rules, kb, seconds=0.3)

        assert ended.value.limit == "seconds"
        assert "0.3" in str(ended.value)
        assert hapax.stats(kb).derived == {"own": 1}


LIMITS: dict[str, Callable[[], Any]] = {
    "inferences": lambda: hapax.QueryLimits(inferences=100_000),
    "seconds": lambda: hapax.QueryLimits(seconds=0.2, inferences=10**12),
    "memory": lambda: hapax.QueryLimits(seconds=100, memory_mb=150, inferences=10**12),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_goal_ends_at_its_limits(limit: str) -> None:
    """Inferences, time and memory end a goal with the name of its limit, and the next goal is answered."""
    pairs = "findall([X, Y], (between(1, 100000, X), between(1, 100000, Y)), L)"
    goal = pairs if limit == "memory" else "between(1, 1000000000000, X), X < 0"
    rules = hapax.parse_rules("given p(Thing)\n")
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.LimitExceeded) as ended:
            hapax.query(goal, rules, kb, options=hapax.QueryOptions(limits=LIMITS[limit]()))

        assert ended.value.limit == limit
        assert hapax.query("X = 1", rules, kb).rows == [(1,)]


@pytest.mark.parametrize(
    ("goal", "word"),
    [
        ("X = f(X)", "itself"),
        ("X = " + "[" * 1001 + "]" * 1001, "100 "),
        ("true".ljust(100_001), "100000"),
        ("X is 10 ** 1000 * 10 ** 1000 * 10 ** 1000 * 10 ** 1000 * 10 ** 1000", "10000 bits"),
    ],
)
def test_goals_and_answers_without_measure_are_refused(goal: str, word: str) -> None:
    """Endless terms, brackets, characters, digits and exponents: the limit is named."""
    rules = hapax.parse_rules("given p(Thing)\n")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match=word):
        hapax.query(goal, rules, kb)


def test_answers_are_sorted_typed_and_cut_at_their_limit() -> None:
    """Numbers before texts; whole numbers, decimals, the first digits of a third, lists and terms are told apart."""
    rules = hapax.parse_rules("given p(Thing)\n")
    options = hapax.QueryOptions(limits=hapax.QueryLimits(answers=5))
    with hapax.KnowledgeBase() as kb:
        found = hapax.query("member(X, [b, 3, '3', a, 2.5, [a, 1]])", rules, kb).rows
        third = hapax.query("X is 1 / 3, Y is 1.1 ** 3", rules, kb).rows[0]
        cut, whole = (hapax.query(f"between(1, {most}, X)", rules, kb, options=options) for most in (9, 5))

    assert found == [(Decimal("2.5"),), (3,), ("3",), ("a",), ("b",), (["a", 1],)]
    assert (str(third[0]), third[1]) == ("0." + "3" * 28, Decimal("1.331"))
    assert (len(cut), cut.truncated, whole.truncated) == (5, True, False)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("X is N + 1", ["variable", "N"]),
        ("N is -1, length(L, N)", ["length/2", "-1"]),
        ("q(L), sum_list(L, N)", ["sum_list/2", "list"]),
        ("nth1(a, [a], N)", ["nth1/3", "whole number"]),
    ],
)
def test_a_goal_that_cannot_calculate_says_with_what(goal: str, words: list[str]) -> None:
    """Unbound variables and wrong values are named, and the next goal is answered."""
    rules = hapax.parse_rules('given p(Number)\ngiven q(Thing)\nfact p(0)\nfact q("it\'s")\n')
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError) as refused:
            hapax.query(goal, rules, kb)

        assert [word for word in words if word not in str(refused.value)] == [], refused.value
        assert hapax.query("p(N)", rules, kb).rows == [(0,)]


@pytest.mark.parametrize("goal", ["p(N), X is 1 / N", "q(N), X is N + 1", "q(N), N > 1"])
def test_a_goal_calculates_as_rules_do(goal: str) -> None:
    """With a text, and by zero, nothing is calculated or compared: there is no answer, and no error."""
    rules = hapax.parse_rules('given p(Number)\ngiven q(Thing)\nfact p(0)\nfact q("it\'s")\n')
    with hapax.KnowledgeBase() as kb:
        assert hapax.query(goal, rules, kb).rows == []
