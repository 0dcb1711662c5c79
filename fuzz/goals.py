"""Target: goals. A text is refused, or calls only what is on the list; Prolog's own walker lets it pass, too."""

from __future__ import annotations

from functools import cache

from fuzz.common import instrumented, run, text_of, told

with instrumented(__name__):
    from engine.program import build_program
    from engine.session import LimitExceeded, PrologError, PrologSession, QueryLimits
    from grammar.errors import HapaxError
    from grammar.goals import AGGREGATES, ARITHMETIC, BUILT_INS, Compound, GoalTerm, goal_text
    from grammar.parser import parse_goal, parse_library

LIBRARY = parse_library(
    [("f.rules", "oracle p(Thing).\noracle q(Thing, Thing).\ncomputed is_less(Number A, Number B) := A < B.")]
)
KNOWN = {*BUILT_INS, *AGGREGATES, *ARITHMETIC, "^/2", "p/1", "q/2", "is_less/2"}
LIMITS = QueryLimits(seconds=2, inferences=20_000, answers=20, memory_mb=128)
NEVER = ("refused", "syntax_error", "died", "load", "unavailable", "error")
"""Kinds of errors that an allowed goal cannot have."""

SEEDS = (
    b"p(X), \\+ q(X, 'soy milk'); X = \"a\\\\b\"",
    b"findall(X-Y, q(X, Y), [H|T]), length(T, N), N > 3 * (2 - 1)",
    b"aggregate_all(max(X, Y), q(X, Y), max(A, B)), setof(X, Y^q(X, Y), L)",
    b"X is 7 // 2 mod 3 + abs(-1.5e3), between(1, 5, X), forall(p(X), q(X, _))",
    b"system:shell(ls)",
    b"p('\\x41\\'), q(\"\", '\xc3\xa9')",
)


def check(data: bytes) -> None:
    """Raises for anything but the contract."""
    text = text_of(data)
    try:
        goal = parse_goal(text, LIBRARY)
        written = goal_text(goal)
    except HapaxError as refused:
        told(refused)
        return
    assert not _unknown(goal.term)
    try:
        _session().solutions(written, goal.variables, LIMITS)
    except LimitExceeded:
        return
    except PrologError as refused:
        if refused.kind in NEVER:
            raise


@cache
def _session() -> PrologSession:
    session = PrologSession()
    session.load(build_program(LIBRARY, []))
    return session


def _unknown(term: GoalTerm) -> set[str]:
    """What stands where something is called and is not on the list. Data may hold any functor."""
    if not isinstance(term, Compound):
        return set()
    if term.functor in (",", ";"):
        return {name for part in term.arguments for name in _unknown(part)}
    if term.indicator in ("findall/3", "aggregate_all/3", "setof/3", "bagof/3"):
        inner = _unknown(_unquantified(term.arguments[1]))
    elif term.indicator in ("forall/2", "\\+/1"):
        inner = {name for part in term.arguments for name in _unknown(part)}
    else:
        inner = set()
    return inner | ({term.indicator} - KNOWN)


def _unquantified(term: GoalTerm) -> GoalTerm:
    while isinstance(term, Compound) and term.indicator == "^/2":
        term = term.arguments[1]
    return term


if __name__ == "__main__":
    run("goals", check, SEEDS)
