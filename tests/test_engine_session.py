"""The Prolog session: programs, goals, limits, and what leaves typed and whole."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.session import (
    MAX_GOAL_CHARACTERS,
    MAX_GOAL_DEPTH,
    MAX_NUMBER_DIGITS,
    START_SECONDS,
    GoalRefused,
    LimitExceeded,
    PrologError,
    PrologSession,
    PrologTerm,
    QueryLimits,
    _answers,
)
from hapax.grammar.prolog_text import prolog_value

POPEN = subprocess.Popen
OWN_PROLOG = sorted((Path(__file__).parents[1] / "engine" / "inference").glob("*.pl"))

PROGRAM = """
:- dynamic edge/2, nothing/1.
edge(a, b).
edge(b, c).
edge(c, a).
:- table reach/2.
reach(X, Y) :- edge(X, Y).
reach(X, Y) :- reach(X, Z), edge(Z, Y).
hapax_secret(1).
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[PrologSession]:
    with PrologSession() as session:
        yield session


@pytest.fixture
def prolog(worker: PrologSession) -> PrologSession:
    worker.load(PROGRAM)
    return worker


@pytest.mark.parametrize("file", OWN_PROLOG, ids=lambda file: file.name)
def test_our_own_prolog_loads_whole(file: Path) -> None:
    """No clause of the engine is left out for a syntax error."""
    done = subprocess.run(["swipl", "-q", "-g", "halt", file], capture_output=True, text=True, timeout=60, check=True)

    assert "ERROR" not in done.stderr


def test_solutions_come_as_rows(prolog: PrologSession) -> None:
    """One row an answer, one cell a variable, in the order asked for."""
    assert prolog.solutions("edge(X, Y)", ["Y", "X"]).rows == [("b", "a"), ("c", "b"), ("a", "c")]


def test_a_goal_without_variables_holds_or_not(prolog: PrologSession) -> None:
    """A true goal has one empty row, a false one none."""
    assert prolog.solutions("edge(a, b)", []).rows == [()]
    assert prolog.solutions("edge(b, a)", []).rows == []


def test_recursion_over_a_cycle_ends(prolog: PrologSession) -> None:
    """Tabled recursion terminates on cyclic data."""
    assert sorted(prolog.solutions("reach(a, X)", ["X"]).rows) == [("a",), ("b",), ("c",)]


def test_a_predicate_without_facts_fails(prolog: PrologSession) -> None:
    """The world is closed for declared predicates."""
    assert prolog.solutions("nothing(X)", ["X"]).rows == []


def test_types_stay_apart(prolog: PrologSession) -> None:
    """Texts, whole numbers, fractions, lists, terms and free variables are told apart."""
    rows = prolog.solutions("member(X, ['1', 1, 5r2, 1.5, [a, [b]], f(_, 'x y'), _])", ["X"]).rows

    assert [row[0] for row in rows] == [
        "1",
        1,
        Decimal("2.5"),
        Decimal("1.5"),
        PrologTerm("[]", ("a", PrologTerm("[]", ("b",)))),
        PrologTerm("f", (PrologTerm("_"), "x y")),
        PrologTerm("_"),
    ]


def test_fractions_without_end_are_cut(prolog: PrologSession) -> None:
    """A third becomes a decimal of 28 digits that equals no other decimal; what ends stays exact."""
    rows = prolog.solutions("member(X, [1r3, -1r1024, 1r5])", ["X"]).rows

    third, *others = (row[0] for row in rows)
    assert (str(third), third == Decimal(1) / Decimal(3)) == (f"0.{'3' * 28}", False)
    assert others == [Decimal(-1) / Decimal(1024), Decimal("0.2")]


def test_infinities_are_no_values(prolog: PrologSession) -> None:
    """Infinities and other values that Hapax has no number for come as terms."""
    assert isinstance(prolog.solutions("X is inf", ["X"], trusted=True).rows[0][0], PrologTerm)


def test_answers_are_cut_and_say_so(prolog: PrologSession) -> None:
    """More answers than allowed are cut off, not an error."""
    answers = prolog.solutions("edge(X, _)", ["X"], QueryLimits(answers=2))

    assert answers.truncated
    assert len(answers.rows) == 2
    assert not prolog.solutions("edge(X, _)", ["X"], QueryLimits(answers=3)).truncated
    assert not prolog.solutions("between(1, 10000, X)", ["X"]).truncated
    assert prolog.solutions("between(1, 10001, X)", ["X"]).truncated


def test_distinct_answers(prolog: PrologSession) -> None:
    """Repeated rows can be left out."""
    goal = "member(X, [b, b])"

    assert len(prolog.solutions(goal, ["X"]).rows) == 2
    assert len(prolog.solutions(goal, ["X"], distinct=True).rows) == 1


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("findall(X, edge(X, _), R)", PrologTerm("[]", ("a", "b", "c"))),
        ("aggregate_all(count, edge(_, _), R)", 3),
        ("aggregate_all(max(X), member(X, [1, 7, 2]), R)", 7),
        ("aggregate_all(bag(X), edge(X, _), R)", PrologTerm("[]", ("a", "b", "c"))),
        ("aggregate_all(set(X), member(X, [b, a, b]), R)", PrologTerm("[]", ("a", "b"))),
        ("aggregate_all(sum(X), member(X, [1, 2]), R)", 3),
        ("aggregate_all(min(X), member(X, [2, 1]), R)", 1),
        ("aggregate_all(max(X, Y), member(X-Y, [1-a, 3-b]), R)", PrologTerm("max", (3, "b"))),
        ("aggregate_all(min(X, Y), member(X-Y, [1-a, 3-b]), R)", PrologTerm("min", (1, "a"))),
        ("nth1(R, [a, b], b)", 2),
        ("setof(X, Y^edge(X, Y), R)", PrologTerm("[]", ("a", "b", "c"))),
        ("bagof(X, edge(X, b), R)", PrologTerm("[]", ("a",))),
        ("(forall(edge(X, _), reach(X, a)) -> R = yes ; R = no)", "yes"),
        ("length([a, b], R)", 2),
        ("between(2, 2, R)", 2),
        ("sort([b, a, b], R)", PrologTerm("[]", ("a", "b"))),
        ("msort([b, a, b], R)", PrologTerm("[]", ("a", "b", "b"))),
        ("sum_list([1, 2], R)", 3),
        ("max_list([1, 2], R)", 2),
        ("min_list([1, 2], R)", 1),
        ("nth1(2, [a, b], R)", "b"),
        ("(\\+ edge(b, a), R = gone)", "gone"),
        ("R is 7 rdiv 2 * 2", 7),
    ],
)
def test_what_goals_may_call(prolog: PrologSession, goal: str, expected: object) -> None:
    """The allow-list lets the usual ways of asking through."""
    assert prolog.solutions(goal, ["R"]).rows == [(expected,)]


@pytest.mark.parametrize(
    ("goal", "kind"),
    [
        ("nth1(a, [a], _)", "type_error"),
        ("length(L, -1)", "domain_error"),
        ("X is foo + 1", "type_error"),
        ("X < 1", "instantiation_error"),
        ("sum_list([a], _)", "type_error"),
        ("max_list([1|_], _)", "existence_error"),
        ("X = 1.5, length(_, X)", "type_error"),
        ("edge(a, b", "syntax_error"),
        ("edge(a, b). edge(a, b)", "syntax_error"),
        ("", "syntax_error"),
    ],
)
def test_faulty_goals_tell_their_kind(prolog: PrologSession, goal: str, kind: str) -> None:
    """A rejected goal raises an error with Prolog's name for it, and the session stays usable."""
    with pytest.raises(PrologError) as caught:
        prolog.solutions(goal, [])
    assert caught.value.kind == kind
    assert prolog.solutions("edge(a, b)", []).rows == [()]


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("N = 0, X is 1 rdiv N", "The goal divides by zero for some of its values."),
        ("N = 'it''s', X is N + 1", 'The goal calculates with the text "it\'s", which is no number.'),
        ("X is N + 1", "The goal needs a value in is/2 that a variable does not have yet."),
        ("N =:= 1", "The goal needs a value in =:=/2 that a variable does not have yet."),
        ("N = 1.5, length(L, N)", "length/2 needs a whole number, not 1.5. Correct the value"),
        ("N is -1, length(L, N)", "length/2 needs a whole number from 0 on, not -1. Correct the value"),
        ("L = [1|_], sum_list(L, N)", "sum_list/2 needs a list whose items and end are known. Put the part"),
        ("L = foo, max_list(L, N)", "max_list/2 needs a list, not foo. Correct the value"),
    ],
)
def test_arithmetic_without_a_value_is_told_in_words(prolog: PrologSession, goal: str, message: str) -> None:
    """Division by zero, texts and unbound variables are named with a remedy, without Prolog's own terms."""
    with pytest.raises(PrologError) as caught:
        prolog.solutions(goal, [])
    assert str(caught.value).startswith(message)


def test_the_program_is_replaced(prolog: PrologSession) -> None:
    """A second program leaves nothing of the first."""
    prolog.load(":- dynamic other/1.\nother(x).\n")

    assert prolog.solutions("other(X)", ["X"]).rows == [("x",)]
    with pytest.raises(GoalRefused):
        prolog.solutions("edge(X, Y)", ["X"])


def test_goals_leave_no_trace(prolog: PrologSession) -> None:
    """Clauses that a goal asserts or retracts are gone with its process."""
    assert prolog.solutions("assertz(edge(x, y)), retractall(edge(a, _))", [], trusted=True).rows == [()]
    assert len(prolog.solutions("edge(X, Y)", ["X", "Y"]).rows) == 3


def test_several_threads_share_a_session(prolog: PrologSession) -> None:
    """Goals of several threads queue up; none crashes and each gets its own answers."""
    found: dict[str, object] = {}

    def ask(start: str) -> None:
        found[start] = prolog.solutions(f"edge({start}, X)", ["X"]).rows

    threads = [threading.Thread(target=ask, args=(start,)) for start in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {"a": [("b",)], "b": [("c",)], "c": [("a",)]}


def test_two_sessions_do_not_mix() -> None:
    """Each session has a program of its own."""
    with PrologSession() as first, PrologSession() as second:
        first.load("p(1).\n")
        second.load("p(2).\n")

        assert first.solutions("p(X)", ["X"]).rows == [(1,)]
        assert second.solutions("p(X)", ["X"]).rows == [(2,)]


def test_a_dead_worker_is_replaced(prolog: PrologSession) -> None:
    """After the worker was killed, one goal fails with a clear error and the next is answered from the same program."""
    assert prolog._process is not None
    os.kill(prolog._process.pid, signal.SIGKILL)
    prolog._process.wait()

    with pytest.raises(PrologError, match="next goal starts a new one"):
        prolog.solutions("edge(a, X)", ["X"])
    assert prolog.solutions("edge(a, X)", ["X"]).rows == [("b",)]


def test_a_worker_that_starts_too_slowly_is_told_apart_from_one_that_ended(
    own_start: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is too busy the error gives the seconds that the start had, and the next goal is answered."""
    started: list[subprocess.Popen[bytes]] = []

    def recorded(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(POPEN(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", recorded)
    with PrologSession() as session:
        monkeypatch.setattr("hapax.engine.inference.session.START_SECONDS", 0.0)
        with pytest.raises(PrologError, match="has not started in 0 seconds"):
            session.solutions("X = 1", ["X"])
        # The worker that was too slow is not left to run on.
        assert started[0].wait(START_SECONDS) < 0
        monkeypatch.setattr("hapax.engine.inference.session.START_SECONDS", START_SECONDS)
        assert session.solutions("X = 1", ["X"]).rows == [(1,)]


def test_a_closed_session_starts_again(own_start: None) -> None:
    """Closing frees the process; using the session again brings the program back."""
    session = PrologSession()
    session.load("p(1).\n")
    session.close()

    assert session.solutions("p(X)", ["X"]).rows == [(1,)]
    session.close()


def test_no_worker_names_doctor(own_start: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Prolog cannot start, the error says what to run."""
    monkeypatch.setattr("sys.executable", "/bin/false")

    with pytest.raises(PrologError, match="hapax doctor"):
        PrologSession().solutions("true", [])


def test_an_unknown_variable_name_is_refused(prolog: PrologSession) -> None:
    """Variable names cannot carry Prolog text into the goal."""
    with pytest.raises(PrologError, match="variable name"):
        prolog.solutions("true", ["X), halt, (true"])


def test_inference_limit_names_its_option(prolog: PrologSession) -> None:
    """A goal over its inferences ends with the option that raises them."""
    with pytest.raises(LimitExceeded, match="--inferences") as caught:
        prolog.solutions("between(1, inf, X), X < 0", ["X"], QueryLimits(inferences=100_000))
    assert caught.value.limit == "inferences"


@settings(max_examples=cases(15), deadline=None)
@given(
    values=st.lists(
        st.one_of(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers())
    )
)
def test_values_round_trip(worker: PrologSession, values: list[str | int]) -> None:
    """Any text and any whole number comes back as it went in."""
    worker.load(":- dynamic v/2.\n" + "".join(f"v({i}, {prolog_value(value)}).\n" for i, value in enumerate(values)))

    rows = worker.solutions("v(I, X)", ["I", "X"]).rows

    assert rows == [(i, value) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("goal_of_size", "limit", "message"),
    [
        (lambda size: "X = " + "f(" * size + "a" + ")" * size, MAX_GOAL_DEPTH, "nests 1001 brackets; at most 1000 are"),
        ("true".ljust, MAX_GOAL_CHARACTERS, "has 1000001 characters; at most 1000000 are"),
        (lambda size: f"X is 10**{size - 1}", MAX_NUMBER_DIGITS, "number of 4301 digits; at most 4300 are"),
    ],
    ids=["brackets", "characters", "digits"],
)
def test_sizes_up_to_the_limit_are_allowed(
    prolog: PrologSession, goal_of_size: Callable[[int], str], limit: int, message: str
) -> None:
    """A goal or answer as large as the limit allows passes; one larger by one is rejected with both figures."""
    variables = ["X"] if "X" in goal_of_size(1) else []

    assert len(prolog.solutions(goal_of_size(limit), variables).rows) == 1
    with pytest.raises(PrologError, match=message):
        prolog.solutions(goal_of_size(limit + 1), variables)


def test_a_decimal_in_a_recursive_head_does_not_abort(worker: PrologSession) -> None:
    """`d(K, K) :- K = 5r2` aborted SWI-Prolog 9.0.4 while it compiled the clause."""
    worker.load(":- table d/2.\nd(K, K) :- K = 5r2, h(K).\nd(K, M) :- d(M, M), d(M, K).\nh(5r2).\n")

    assert worker.solutions("d(A, B)", ("A", "B")).rows == [(Decimal("2.5"), Decimal("2.5"))]


def test_an_abort_is_told_as_an_abort(worker: PrologSession) -> None:
    """A process that aborts with little memory in use has not run out of it."""
    worker.load("p(1).\n")
    with pytest.raises(PrologError, match="SWI-Prolog aborted") as raised:
        _answers(b"", {"kind": "done", "signal": signal.SIGABRT, "resident_mb": 20}, QueryLimits(memory_mb=1000))
    assert raised.value.kind == "aborted"
    with pytest.raises(LimitExceeded, match="1000 MB"):
        _answers(b"", {"kind": "done", "signal": signal.SIGABRT, "resident_mb": 900}, QueryLimits(memory_mb=1000))


def test_an_answer_that_contains_itself_is_told() -> None:
    """A goal whose answer has no end names the equation's form instead of Prolog's inner error."""
    with PrologSession() as session, pytest.raises(PrologError, match="contains itself"):
        session.solutions("X = f(X)", ("X",), distinct=True)


def test_a_session_shortens_the_limits_of_its_goals() -> None:
    """A goal ends with the session's time, although its own limit is longer."""
    with PrologSession(0.2) as session, pytest.raises(LimitExceeded, match=r"0\.2 seconds"):
        session.solutions("repeat, fail", (), QueryLimits(seconds=500, inferences=10**14), trusted=True)


def test_a_worker_that_does_not_end_is_killed() -> None:
    """Closing waits for half a second, then ends the process with all that it has started, also without a connection."""
    session = PrologSession()
    stubborn = POPEN(["sleep", "60"], start_new_session=True)
    session._process = stubborn
    session.close()

    assert stubborn.returncode == -signal.SIGKILL
    session.close()  # nothing is left to close


def test_a_program_that_ends_prolog_answers_no_goal(own_start: None) -> None:
    """The error says what happened, and the session starts again with the next program."""
    with PrologSession() as session:
        with pytest.raises(PrologError, match=r"^The Prolog process ended or hung .* The next goal starts a new one"):
            session.load(":- halt.\np(1).\n")
        session.load("p(2).\n")
        assert session.solutions("p(X)", ["X"]).rows == [(2,)]
