"""The Prolog worker: whose modules it imports, what goals can reach, and hostile goals behind the grammar."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hapax.engine.prolog.isolation import KEPT_VARIABLES
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import LimitExceeded, PrologError, PrologSession
from hapax.grammar.errors import HapaxError

# --- isolation --------------------------------------------------------------------------------------------------------


SHORT = QueryLimits(seconds=2.0, memory_mb=256)
PROGRAM = ":- dynamic e/1.\ne(alive).\n"


@pytest.fixture(scope="module")
def prolog() -> Iterator[PrologSession]:
    with PrologSession() as session:
        session.load(PROGRAM)
        yield session


def still_answers(session: PrologSession) -> bool:
    return session.solutions("e(X)", ["X"]).rows == [("alive",)]


@pytest.fixture
def keyed(own_start: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrologSession]:
    """A session whose parent has keys in its environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HAPAX_DB", "secret.db")
    with PrologSession() as session:
        yield session


def test_goals_and_programs_see_no_key(keyed: PrologSession) -> None:
    """`getenv` finds nothing in a goal, not even a variable that the worker keeps, and no key while a program loads."""
    names = "lists:member(N, ['OPENAI_API_KEY', 'HAPAX_DB', 'HOME', 'PATH'])"
    keyed.load(f":- dynamic seen/1.\n:- forall({names}, (getenv(N, _) -> assertz(seen(N)) ; true)).\n")

    assert keyed.solutions("seen(N)", ["N"]).rows == [("PATH",)]
    for name in ("OPENAI_API_KEY", "PATH"):
        assert keyed.solutions(f"getenv('{name}', X)", ["X"], trusted=True).rows == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
def test_the_workers_environment_holds_only_the_allowed_names(own_start: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lists only `KEPT_VARIABLES` for the worker's process, and no folder of configuration."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    def children() -> set[str]:
        return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}

    before = children()
    with PrologSession() as session:
        session.load(PROGRAM)
        found = [Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0") for pid in children() - before]
    entries = {entry for each in found for entry in each if entry}
    names = {entry.partition("=")[0] for entry in entries}

    assert "PATH" in names
    assert names <= {*KEPT_VARIABLES, "XDG_CONFIG_HOME"}
    assert f"XDG_CONFIG_HOME={os.devnull}" in entries


@pytest.mark.parametrize("goal", ["\\+ missing(X)", "missing(X)"])
def test_errors_keep_their_kind_also_under_negation(prolog: PrologSession, goal: str) -> None:
    """An error inside a goal, negated or not, is an exception with its kind, never a plain failure."""
    with pytest.raises(PrologError) as caught:
        prolog.solutions(goal, [], trusted=True)

    assert caught.value.kind == "existence_error"
    assert still_answers(prolog)


@pytest.mark.parametrize(
    "goal",
    [
        "X is 3**(10**9)",
        "catch((repeat, fail), _, true), repeat, fail",
        "repeat, assertz(e(bomb)), fail",
        "findall(X, between(1, inf, X), _)",
        "halt",
        "abort",
        "thread_create((repeat, fail), _), repeat, fail",
    ],
)
def test_what_gets_past_the_walker_is_contained(prolog: PrologSession, goal: str) -> None:
    """Even a trusted goal that loops, swallows, eats memory or halts only costs its own process."""
    with pytest.raises(HapaxError):
        prolog.solutions(goal, [], SHORT, trusted=True)
    assert still_answers(prolog)


def test_runaway_recursion_is_contained() -> None:
    """A stack overflow is told as a memory limit, and the next goal is answered; the worker's own memory is not counted."""
    with PrologSession() as session:
        session.load(PROGRAM + "p(X) :- p(f(X)), e(_).\n")
        with pytest.raises(LimitExceeded):
            session.solutions("p(a)", [], QueryLimits(memory_mb=128))
        assert still_answers(session)
        small = QueryLimits(memory_mb=40)
        assert len(session.solutions("findall(N, between(1, 300000, N), L)", [], small, trusted=True).rows) == 1


def test_a_limit_that_fires_early_breaks_no_library(prolog: PrologSession) -> None:
    """Libraries are there from the start, so that no goal is cut off while one is loading."""
    for goal in ("member(X, [a])", "nth1(1, [a], X)", "aggregate_all(bag(Y), e(Y), X)"):
        with pytest.raises(LimitExceeded):
            prolog.solutions(f"{goal}, between(1, inf, Z), Z < 0", ["X"], QueryLimits(inferences=1000))
        assert prolog.solutions(goal, ["X"]).rows


# --- hostile ----------------------------------------------------------------------------------------------------------


GOALS = yaml.safe_load((Path(__file__).parents[2] / "red_team.yaml").read_text("utf-8"))["goals"]
LIMITS = QueryLimits(seconds=0.3, inferences=20_000_000, answers=100, memory_mb=96)
HOSTILE_PROGRAM = """
e(alive).
n(1).
loop(A) :- e(A), loop(A).
grow(B) :- n(A), grow(A), B is A + 1.
"""


@pytest.fixture(scope="module")
def session() -> Iterator[PrologSession]:
    with PrologSession() as session:
        session.load(HOSTILE_PROGRAM)
        yield session


def processes_of(group: int) -> int:
    """The number of processes in the group, 0 without /proc."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = stat.read_text("utf-8", "replace").rpartition(") ")[2].split()[:3]
        except (OSError, ValueError):
            continue
        found += state != "Z" and int(owner) == group
    return found


@pytest.mark.parametrize("case", GOALS, ids=[f"{number}-{case['why']}"[:60] for number, case in enumerate(GOALS)])
def test_a_goal_past_the_grammar_is_contained(
    case: dict[str, Any], session: PrologSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused or ends, no file and no process is left, and the same session answers the next goal."""
    monkeypatch.chdir(tmp_path)
    text = case["text"].replace("{file}", str(tmp_path / "made"))
    text = text.replace("{many}", case.get("many", "") * case.get("count", 0))
    for trusted in (False, True):
        with suppress(PrologError, LimitExceeded):
            session.solutions(text, [], LIMITS, trusted=trusted)

    assert session.solutions("e(X)", ["X"]).rows == [("alive",)]
    assert list(tmp_path.iterdir()) == []
    process = session._process
    assert process is not None
    assert processes_of(process.pid) <= 1
