"""Any text as a goal is rejected, or calls only allowed predicates and also passes Prolog's own sandbox."""

from __future__ import annotations

from functools import cache

from any_input import assert_explained, check_any_input, text_of

from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.program import answers_program
from hapax.engine.prolog.session import LimitExceeded, PrologError, PrologSession
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import BUILT_INS, PrologCall, every_item
from hapax.grammar.parsing.parser import parse_goal, parse_library
from hapax.grammar.terms import Literal
from hapax.grammar.writing.prolog_text import GoalText

LIBRARY = parse_library(
    [("f.rules", "oracle p(Thing).\noracle q(Thing, Thing).\ncomputed is_less(Number A, Number B) := A < B.")]
)
CALLABLE = {*BUILT_INS, "^/2"}
KNOWN = {"p/1", "q/2", "is_less/2"}
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
        written = GoalText(LIBRARY).of(goal.premise)
    except HapaxError as error:
        assert_explained(error)
        return
    items = list(every_item(goal.premise))
    assert {item.indicator for item in items if isinstance(item, PrologCall)} <= CALLABLE
    assert {item.atom.indicator for item in items if isinstance(item, Literal)} <= KNOWN
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


def test_any_goal() -> None:
    """A goal is refused with a reason, or calls nothing but allowed predicates."""
    check_any_input(check, SEEDS, "goals", 30)
