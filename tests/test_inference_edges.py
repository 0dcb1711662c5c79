"""Limits of inference met exactly, and states of it that seldom occur."""

from __future__ import annotations

import signal
from decimal import Decimal

import pytest

import hapax
from hapax.engine.inference import landlock, session
from hapax.engine.inference.bulk_derivation import derive_all
from hapax.engine.inference.conflicts import new_conflicts
from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.inference.session import MAX_GOAL_DEPTH, PrologSession, QueryLimits
from hapax.engine.inference.sql import NotCompiled, _NumberExpression
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.kb.argument_index import ArgumentIndex
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase


def fact(predicate: str, *arguments: Value) -> FactRecord:
    return FactRecord(predicate, arguments, ("T",) * len(arguments), Source.GIVEN)


def statements(kb: KnowledgeBase) -> set[str]:
    return {str(row[0]) for row in kb.query("SELECT conclusion FROM derived_statements")}


@pytest.mark.parametrize(
    ("text", "largest", "over", "is_compiled"),
    [
        ("1", (1 << 62) - 1, 1, True), ("1", 1 << 62, 1, False), ("1", 1, (1 << 62) - 1, True), ("1", 1, 1 << 62, False),
        ("1" * 2000, 1, 1, True), ("1" * 2001, 1, 1, False),
    ],
)  # fmt: skip
def test_a_calculation_may_be_as_large_as_sqlite_counts(text: str, largest: int, over: int, is_compiled: bool) -> None:
    """Sixty-two bits and two thousand characters of SQL; larger ones are left to Prolog."""
    if is_compiled:
        assert _NumberExpression(text, largest, over).largest == largest
    else:
        with pytest.raises(NotCompiled):
            _NumberExpression(text, largest, over)


def test_an_abort_with_half_the_memory_in_use_is_for_want_of_memory() -> None:
    """With less, the goal asked for a block that does not fit, or Prolog has a fault."""
    limits = QueryLimits(memory_mb=100)
    for resident, told in ((50, "The goal needs more than 100 MB"), (49, "SWI-Prolog aborted while it ran the goal")):
        reply = {"kind": "cancelled", "signal": signal.SIGABRT, "resident_mb": resident}
        with pytest.raises(HapaxError, match=told):
            session._answers(b"", reply, limits)


@pytest.mark.parametrize("looked_up", [False, True])
def test_facts_that_prolog_cannot_hold_are_not_known(fresh_kb: KnowledgeBase, *, looked_up: bool) -> None:
    """A search takes no values from them, be they read or looked up; 2.50 is 2.5, and 2.0 is 2."""
    numbers = [Decimal("2.50"), Decimal("2.0"), Decimal("1e3000"), Decimal("-1e-3000")]
    fresh_kb.add_facts([fact("weighs", "a", number) for number in numbers])
    known = KnownFacts(fresh_kb, hapax.parse_rules("given weighs(T, Number)"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArgumentIndex, "is_looked_up", lambda *_: looked_up)
        known.looks_up = looked_up
        found = known.given(Atom("weighs", (Constant("a"), Variable("N", "Number"))), "N")

        assert known.is_looked_up("weighs/2") is looked_up
        assert sorted(map(str, found)) == ["2", "2.5"]
        assert len(known.of("weighs/2")) == len(known.given_rows("weighs/2")) == 2


def test_a_fact_that_no_constraint_is_about_brings_no_conflict(fresh_kb: KnowledgeBase) -> None:
    """Only facts of the constraint's predicates are compared."""
    library = hapax.parse_rules("given p(T, T)\ngiven q(T, T)\nnever p(T X, T Y) & q(T X, T Y)\ngiven r(T, T)")
    fresh_kb.add_facts([fact("p", "a", "b")])

    assert new_conflicts(fresh_kb, library, [fact("r", "a", "b")]) == []
    (conflict,) = new_conflicts(fresh_kb, library, [fact("r", "a", "b"), fact("q", "a", "b")])
    assert [item.predicate for item in conflict.facts] == ["p", "q"]


def test_a_rule_without_a_positive_premise_is_derived_anew(fresh_kb: KnowledgeBase) -> None:
    """Its statement falls when what it denies becomes a fact, and comes back."""
    library = hapax.parse_rules('given p(T)\n@name n\n@generic none\nnot p("a") -> q("b")')
    derive_all(fresh_kb, library, library.rules)
    assert statements(fresh_kb) == {"b q"}

    denied = fact("p", "a")
    fresh_kb.add_facts([denied])
    derive_all(fresh_kb, library, library.rules)
    assert statements(fresh_kb) == set()

    fresh_kb.withdraw([denied.id], "wrong", "user")
    derive_all(fresh_kb, library, library.rules)
    assert statements(fresh_kb) == {"b q"}


def test_a_list_with_a_tail_gives_a_goal_its_values(fresh_kb: KnowledgeBase) -> None:
    """Facts are looked up by what the list has, and others are no answers."""
    rules = hapax.parse_rules("given p(T)")
    fresh_kb.add_facts([fact("p", value) for value in "abc"])

    found = hapax.query("T = [b], L = [a|T], member(X, L), p(X)", rules, fresh_kb)
    assert sorted(answer["X"] for answer in found) == ["a", "b"]


def test_brackets_beside_each_other_are_not_nested(prolog: PrologSession) -> None:
    """A goal with more of them than may be nested is answered."""
    cells = ", ".join(f"f({number})" for number in range(MAX_GOAL_DEPTH + 1))

    assert prolog.solutions(f"L = [{cells}], length(L, N)", ("N",)).rows == [(MAX_GOAL_DEPTH + 1,)]


def test_a_process_that_does_not_become_ready_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the reason, and nothing of the process stays."""
    monkeypatch.setattr(session, "_reply", lambda *_: (b"", {"kind": "unavailable", "message": "no library"}))
    with PrologSession() as own:
        with pytest.raises(HapaxError, match=r"^SWI-Prolog does not start: no library\. Run"):
            own.solutions("true", ())

        assert (own._process, own._connection) == (None, None)


def test_landlock_is_of_linux_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere its system call has another meaning, so that it is not made."""
    monkeypatch.setattr(landlock.sys, "platform", "darwin")
    monkeypatch.setattr(landlock, "ctypes", None)

    assert landlock.interface_version() == 0
