"""Hostile input against Prolog: nothing executes, nothing crashes the process, the session answers the next goal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hapax.engine.inference.program import DemandState, build_program
from hapax.engine.inference.session import GoalRefused, LimitExceeded, PrologError, PrologSession, QueryLimits
from hapax.engine.inference.theory import Theory, run_query
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parser import parse_library
from hapax.grammar.prolog_text import prolog_value
from hapax.grammar.terms import Atom, Constant
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

SHORT = QueryLimits(seconds=2.0, memory_mb=256)

HOSTILE_TEXTS = [
    "it's",
    'say "x"',
    "back\\slash",
    "tab\tnew\nline\r",
    "a'), shell('touch /tmp/hapax_was_here'), ('b",
    ":- halt.",
    "'; DROP TABLE facts; --",
    "\u202eright to left",
    "emoji \U0001f600 and e\u0301",
    "r1l0:e4:halt",
    "% comment /* another */",
    "[]",
    "{}",
    "",
    "1876",
    "Variable",
    "x" * 1_000_000,
]


@pytest.fixture(scope="module")
def prolog() -> Iterator[PrologSession]:
    with PrologSession() as session:
        session.load(":- dynamic e/1.\ne(alive).\n")
        yield session


def still_answers(session: PrologSession) -> bool:
    return session.solutions("e(X)", ["X"]).rows == [("alive",)]


@pytest.mark.parametrize("goal", ["\\+ missing(X)", "missing(X)"])
def test_errors_keep_their_kind_also_under_negation(prolog: PrologSession, goal: str) -> None:
    """Check 1: an error inside a goal, negated or not, is a Python exception with its kind, never a plain failure."""
    with pytest.raises(PrologError) as caught:
        prolog.solutions(goal, [], trusted=True)
    assert caught.value.kind == "existence_error"
    assert still_answers(prolog)


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=range(len(HOSTILE_TEXTS)))
def test_hostile_texts_round_trip(text: str) -> None:
    """Check 2: a fact with any text in it comes back as it was, through rule files' quoting and a real query."""
    library = parse_library([("f.rules", "oracle says(Person, Thing).")])
    with KnowledgeBase() as kb:
        kb.add_facts([FactRecord("says", ("tom", text), ("Person", "Thing"), Source.MODEL)])

        assert run_query(Theory(library, kb), "says(tom, X)").rows == [(text,)]


@pytest.mark.parametrize("number", [2**31, 2**40, 2**63 - 1, 2**63, -(2**63) - 1, 10**40])
def test_large_numbers_round_trip(prolog: PrologSession, number: int) -> None:
    """Check 2: whole numbers are exact, beyond 64 bits too."""
    assert prolog.solutions(f"X = {prolog_value(number)}", ["X"]).rows == [(number,)]


@pytest.mark.parametrize("text", ["nul \0 inside", "half \ud800 character"])
def test_what_prolog_cannot_hold_is_refused(prolog: PrologSession, text: str) -> None:
    """Check 2: NUL and lone surrogates are refused with a reason, wherever a person brings them in."""
    library = parse_library([("f.rules", "oracle says(Person, Thing).")])
    assumed = Atom("says", (Constant("tom"), Constant(text)))

    with pytest.raises(HapaxError):
        build_program(library, [], assumed=[assumed])
    with pytest.raises(HapaxError):
        prolog.solutions(f"X = '{text}'", ["X"])
    with pytest.raises(HapaxError):
        prolog.load(f"p('{text}').")
    prolog.load(":- dynamic e/1.\ne(alive).\n")
    assert still_answers(prolog)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where the shell that started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_control_c_ends_an_endless_goal(prolog: PrologSession) -> None:
    """Check 3: SIGINT ends a goal long before its own limit, and the session goes on."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        prolog.solutions("between(1, inf, X), X < 0", ["X"], QueryLimits(seconds=60, inferences=10**12))
    timer.join()
    assert still_answers(prolog)


def test_answers_taken_apart_cannot_crash(prolog: PrologSession) -> None:
    """Check 4: answers are plain lists, so two of them can be read in turn."""
    first = iter(prolog.solutions("between(1, 3, X)", ["X"]).rows)
    second = iter(prolog.solutions("between(4, 6, X)", ["X"]).rows)

    assert [next(first), next(second), next(first), next(second)] == [(1,), (4,), (2,), (5,)]


@pytest.mark.parametrize("bracket", ["(", "[", "{", "f("])
def test_deep_goals_are_refused_before_the_parser(prolog: PrologSession, bracket: str) -> None:
    """Check 5: nesting that would crash Prolog's parser never reaches it."""
    closing = {"(": ")", "[": "]", "{": "}", "f(": ")"}[bracket]
    with pytest.raises(PrologError, match="nests"):
        prolog.solutions("X = " + bracket * 20_000 + "a" + closing * 20_000, ["X"])
    assert still_answers(prolog)


def test_deep_queries_are_refused_by_the_grammar() -> None:
    """Check 5: the front door refuses depth as well."""
    library = parse_library([("f.rules", "oracle says(Person, Thing).")])
    with KnowledgeBase() as kb, pytest.raises(RulesRejected):
        run_query(Theory(library, kb), "says(tom, " + "[" * 20_000 + "]" * 20_000 + ")")


@pytest.mark.parametrize(
    "goal",
    [
        "shell('touch {file}')",
        "print_message(error, format('~@', [shell('touch {file}')]))",
        "findall(X, shell('touch {file}'), _)",
        "aggregate_all(count, shell('touch {file}'), _)",
        "aggregate_all(G, e(_), _)",
        "setof(X, Y^shell('touch {file}'), _)",
        "forall(e(_), shell('touch {file}'))",
        "\\+ \\+ shell('touch {file}')",
        "(e(_) -> shell('touch {file}') ; true)",
        "call(shell('touch {file}'))",
        "G = shell('touch {file}'), G",
        "system:shell('touch {file}')",
        "hapax_host:answer(a, b, c, d)",
        "hapax_rule(A, B, C, D, E)",
        "open('{file}', write, _)",
        "assertz(e(x))",
        "retractall(e(_))",
        "consult('{file}')",
        "catch(e(_), _, true)",
        "nb_setval(a, b)",
        "halt",
        "abort",
        "'$set_source_module'(user)",
        "atom_length(abc, _)",
        "42",
    ],
)
def test_goals_outside_the_allow_list_are_refused(prolog: PrologSession, goal: str, tmp_path: Path) -> None:
    """Check 6: the walker refuses what it does not know, at any depth, and nothing of it runs."""
    file = tmp_path / "made"
    with pytest.raises(GoalRefused):
        prolog.solutions(goal.replace("{file}", str(file)), [])
    assert not file.exists()
    assert still_answers(prolog)


@pytest.mark.parametrize(
    "goal",
    [
        "X is 3**(10**9)",
        "catch((repeat, fail), _, true), repeat, fail",
        "repeat, assertz(e(bomb)), fail",
        "length(L, N), N > 100000000",
        "numlist_(0, [])",
        "findall(X, between(1, inf, X), _)",
        "halt",
        "abort",
        "thread_create((repeat, fail), _), repeat, fail",
    ],
)
def test_what_gets_past_the_walker_is_contained(prolog: PrologSession, goal: str) -> None:
    """Check 6: even a trusted goal that loops, swallows, eats memory or halts only costs its own process."""
    with pytest.raises(HapaxError):
        prolog.solutions(goal, [], SHORT, trusted=True)
    assert still_answers(prolog)


def test_files_and_programs_stay_shut(prolog: PrologSession, tmp_path: Path) -> None:
    """Check 6: a goal that got past the walker can open no file and start no program."""
    file = tmp_path / "made"
    prolog.solutions(f"(catch(shell('touch {file}'), _, true) -> true ; true)", [], SHORT, trusted=True)
    prolog.solutions(f"catch(open('{file}', write, _), _, true)", [], SHORT, trusted=True)

    assert not file.exists()


def test_runaway_recursion_is_contained() -> None:
    """Check 6: a stack overflow is told as a memory limit, and the next goal is answered."""
    with PrologSession() as session:
        session.load("e(alive).\np(X) :- p(f(X)), e(_).\n")
        with pytest.raises(LimitExceeded, match="ask for fewer answers"):
            session.solutions("p(a)", [], QueryLimits(memory_mb=128))
        assert still_answers(session)


def test_the_memory_limit_counts_what_the_goal_adds(prolog: PrologSession) -> None:
    """The memory of the worker itself, which Prolog and Python have mapped, is no part of a goal's limit."""
    goal = "findall(N, between(1, 300000, N), L), length(L, M)"
    found = prolog.solutions(goal, [], QueryLimits(memory_mb=40), trusted=True)

    assert len(found.rows) == 1
    assert still_answers(prolog)


def test_the_time_limit_names_its_option(prolog: PrologSession) -> None:
    """Check 6: a goal over its time says which option gives it more."""
    with pytest.raises(LimitExceeded, match="--seconds") as caught:
        prolog.solutions("repeat, fail", [], QueryLimits(seconds=0.2), trusted=True)
    assert caught.value.limit == "seconds"


@pytest.mark.parametrize(
    ("program", "line"),
    [("p(a).\np(X :- q.\n", 2), ("p(a).\n\n\nq('unclosed.\n", 4), ("p(a).\n:- no_such_directive(x).\n", 2)],
)
def test_a_faulty_program_raises_with_its_line(prolog: PrologSession, program: str, line: int) -> None:
    """Check 7: loading never passes over a fault in silence."""
    with pytest.raises(PrologError) as caught:
        prolog.load(program)
    assert caught.value.line == line
    prolog.load(":- dynamic e/1.\ne(alive).\n")
    assert still_answers(prolog)


def test_text_keys_are_atoms() -> None:
    """Check 9: texts in facts are atoms, which index well, never strings."""
    library = parse_library([("f.rules", "oracle says(Person, Thing).")])
    with PrologSession() as session:
        session.load(
            build_program(library, [FactRecord("says", ("tom s", "y" * 100), ("Person", "Thing"), Source.MODEL)])
        )

        assert session.solutions("says(X, Y), atom(X), atom(Y)", [], trusted=True).rows == [()]


def test_nothing_loads_itself_after_the_start(prolog: PrologSession) -> None:
    """Check 10: libraries are there from the start, so a limit that fires early cannot break one."""
    for goal in ("member(X, [a])", "nth1(1, [a], X)", "aggregate_all(bag(Y), e(Y), X)"):
        with pytest.raises(LimitExceeded):
            prolog.solutions(f"{goal}, between(1, inf, Z), Z < 0", ["X"], QueryLimits(inferences=1000))
        assert prolog.solutions(goal, ["X"]).rows

    assert prolog.solutions("current_prolog_flag(autoload, X)", ["X"], trusted=True).rows == [("false",)]
    assert prolog.solutions("current_prolog_flag(debug_on_error, X)", ["X"], trusted=True).rows == [("false",)]


@pytest.mark.parametrize("name", ["write", "hapax_rule", "hapax_fact_"])
def test_names_that_are_taken_are_refused_with_a_remedy(name: str) -> None:
    """Predicates that SWI-Prolog reserves, and the program's helpers, are refused by name with a remedy."""
    with pytest.raises(HapaxError, match="Rename"):
        build_program(parse_library([("f.rules", f"oracle {name}(Person, Thing).")]), [])


@pytest.mark.parametrize("name", ["halt", "print", "member", "consult", "instance_of", "shell", "need"])
def test_predicates_named_like_prolog_s_own_are_only_facts(name: str) -> None:
    """A rule file may use a name that Prolog knows: it is then an ordinary predicate."""
    library = parse_library([("f.rules", f"oracle {name}(Person, Thing).")])
    fact = FactRecord(name, ("tom", "x"), ("Person", "Thing"), Source.MODEL)
    with KnowledgeBase() as kb:
        kb.add_facts([fact])

        assert run_query(Theory(library, kb), f"{name}(tom, X)").rows == [("x",)]


def test_a_stored_value_with_nul_does_not_block_its_predicate(fresh_kb):
    """A fact that Prolog cannot hold is left out; the predicate's other facts still answer, with and without demand."""
    library = parse_library([("t", "oracle likes(Person, Food)\n")])
    fresh_kb.add_facts(
        FactRecord("likes", ("tom", food), ("Person", "Food"), Source.GIVEN) for food in ("soup\0", "bread")
    )

    assert run_query(Theory(library, fresh_kb), "likes(tom, X)").rows == [("bread",)]
    assert "bread" in build_program(library, fresh_kb.facts(), state=DemandState())
