"""Any text as a goal is rejected, or calls only allowed predicates and also passes Prolog's own sandbox."""

from __future__ import annotations

from functools import cache

from any_input import assert_explained, check_any_input, text_of

from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.program import answers_program
from hapax.engine.prolog.session import LimitExceeded, PrologError, PrologSession
from hapax.grammar.errors import HapaxError
from hapax.grammar.goal_language import AGGREGATES, ARITHMETIC, BUILT_INS, Compound, GoalTerm, goal_text
from hapax.grammar.parsing.parser import parse_goal, parse_library

LIBRARY = parse_library(
    [("f.rules", "oracle p(Thing).\noracle q(Thing, Thing).\ncomputed is_less(Number A, Number B) := A < B.")]
)
KNOWN = {*BUILT_INS, *AGGREGATES, *ARITHMETIC, "^/2", "p/1", "q/2", "is_less/2"}
LIMITS = QueryLimits(seconds=2, inferences=20_000, answers=20, memory_mb=128)
NEVER = ("refused", "syntax_error", "died", "load", "unavailable", "error")
"""Kinds of Prolog errors that an allowed goal cannot cause."""

SEEDS = (
    b"p(X), \\+ q(X, 'soy milk'); X = \"a\\\\b\"",
    b"findall(X-Y, q(X, Y), [H|T]), length(T, N), N > 3 * (2 - 1)",
    b"aggregate_all(max(X, Y), q(X, Y), max(A, B)), setof(X, Y^q(X, Y), L)",
    b"X is 7 // 2 mod 3 + abs(-1.5e3), between(1, 5, X), forall(p(X), q(X, _))",
    b"system:shell(ls)",
    b"p('\\x41\\'), q(\"\", '\xc3\xa9')",
)


def check(data: bytes) -> None:
    """Raise if the contract is broken."""
    text = text_of(data)
    try:
        goal = parse_goal(text, LIBRARY)
        written = goal_text(goal)
    except HapaxError as error:
        assert_explained(error)
        return
    assert not _unknown_calls(goal.term)
    try:
        _session().solutions(written, goal.variables, LIMITS)
    except LimitExceeded:
        return
    except PrologError as error:
        if error.kind in NEVER:
            raise


@cache
def _session() -> PrologSession:
    session = PrologSession()
    session.load(answers_program(LIBRARY, []))
    return session


def _unknown_calls(term: GoalTerm) -> set[str]:
    """Indicators in the positions of goals that are not in KNOWN. Data may have any functor."""
    if not isinstance(term, Compound):
        return set()
    goals: tuple[GoalTerm, ...] = ()
    if term.functor in (",", ";", "->") or term.indicator in ("forall/2", "\\+/1", "once/1"):
        goals = term.arguments
    elif term.indicator in ("findall/3", "aggregate_all/3", "setof/3", "bagof/3"):
        goals = (_unquantified(term.arguments[1]),)
    # A conjunction has any number of arguments, so its indicator is not in KNOWN.
    unknown = set() if term.functor in (",", ";") else {term.indicator} - KNOWN
    return unknown.union(*map(_unknown_calls, goals))


def _unquantified(term: GoalTerm) -> GoalTerm:
    while isinstance(term, Compound) and term.indicator == "^/2":
        term = term.arguments[1]
    return term


def test_any_goal() -> None:
    """A goal is refused with a reason, or calls nothing but allowed predicates."""
    check_any_input(check, SEEDS, "goals", 30)
