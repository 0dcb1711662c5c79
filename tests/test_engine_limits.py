"""Time limits, sizes and wrong wishes at which the engine stops, each told with its remedy or its effect."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hapax.engine.cluster.walking import Ahead, walk
from hapax.engine.inference import bulk_derivation
from hapax.engine.inference.bulk_derivation import derive_all, find_statement, read_statements
from hapax.engine.inference.conflicts import FactConflict, settlement
from hapax.engine.inference.session import GoalAnswers, PrologSession, QueryLimits
from hapax.engine.inference.theory import Theory
from hapax.engine.mining.mine import MiningOptions, mine
from hapax.engine.near_misses import near_misses
from hapax.engine.probability import exact as diagrams
from hapax.engine.probability.exact import TooLarge, exact
from hapax.engine.probability.ground import GroundProgram
from hapax.engine.probability.proofs import upper_bounds
from hapax.engine.run_memory import last_account
from hapax.engine.search.progress import ProgressCounter
from hapax.engine.search.settings import SearchSettings
from hapax.engine.withdrawal import withdraw_facts
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Rule
from hapax.kb.records import FactRecord, RunRecord, Source
from hapax.kb.store import KnowledgeBase

JOIN = "@name it\n@generic none\nroad(Place A, Place B) & road(Place B, Place C) & A \\= C -> leads(Place A, Place C)\n"


def facts(*rows: tuple[str, ...], source: Source = Source.GIVEN) -> list[FactRecord]:
    return [FactRecord(name, values, (), source, 0.9 if source is Source.MODEL else None) for name, *values in rows]  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_derivation_needs_a_time_above_zero(seconds: float, fresh_kb: KnowledgeBase) -> None:
    """Zero, negative and endless times are refused."""
    library = parse_library([("f", JOIN)])
    with pytest.raises(HapaxError, match=r"^seconds is .*\. Set it to a number above 0\.$"):
        derive_all(fresh_kb, library, library.rules, seconds=seconds)


class _Watched(PrologSession):
    """A session that notes the time limits of its goals."""

    limits: list[float]

    def solutions(self, goal: str, names: Sequence[str], limits: QueryLimits, **options: Any) -> GoalAnswers:
        self.limits.append(limits.seconds)
        return super().solutions(goal, names, limits, **options)


def test_prolog_gets_the_time_that_a_derivation_has_left(fresh_kb: KnowledgeBase) -> None:
    """A goal's limit is less than the whole time, of which some is gone by then."""
    library = parse_library([("f", JOIN)])
    with _Watched() as session:
        session.limits = []
        derive_all(fresh_kb, library, library.rules, "prolog", session, seconds=100)

    assert session.limits
    assert all(0 < seconds < 100 for seconds in session.limits)


def test_a_rule_that_was_never_derived_has_no_statement(fresh_kb: KnowledgeBase) -> None:
    """The error names the command that derives it."""
    library = parse_library([("f", JOIN)])
    assert find_statement(fresh_kb, library, lambda *_: True) is None
    with pytest.raises(HapaxError, match=r"no statements of rule it are stored\. Run `hapax derive` first\."):
        list(read_statements(fresh_kb, library, library.rule("it")))


def test_a_conflict_of_given_facts_has_no_loser() -> None:
    """Nobody knows which given fact is wrong, so that a person is asked to correct one; a model's fact loses to it."""
    given, other, said = (
        FactRecord("year", ("p", year), (), source, chance)
        for year, source, chance in ((1900, Source.GIVEN, None), (1950, Source.GIVEN, None), (1960, Source.MODEL, 0.99))
    )
    settled = settlement(FactConflict("functional year(Place, Year)", (given, other)), {})

    assert settled.lost == ()
    assert settled.reason == "every fact is given, or covered by a reference: correct the facts or the declaration"
    assert settlement(FactConflict("functional year(Place, Year)", (given, said)), {said.id: 0.99}).lost == (said,)


def test_a_fact_of_a_rule_file_cannot_be_withdrawn(fresh_kb: KnowledgeBase) -> None:
    """It would still hold, so that the file has to change first; one that is stored nowhere is said to be in the file."""
    library = parse_library([("f", 'fact road("a", "b")\nfact road("b", "c")\n' + JOIN)])
    fresh_kb.add_facts([FactRecord("road", ("a", "b"), (), Source.GIVEN)])
    theory = Theory(library, fresh_kb)

    with pytest.raises(HapaxError, match=r"A rule file states road\(a, b\) as well, .* Delete it there first\."):
        withdraw_facts(theory, ["road(a, b)"], "wrong")
    with pytest.raises(HapaxError, match=r"A rule file states it: delete it there\."):
        withdraw_facts(theory, ["road(b, c)"], "wrong")
    with pytest.raises(HapaxError, match=r"Run `hapax export` to see the facts\."):
        withdraw_facts(theory, ["road(b, d)"], "wrong")
    assert len(list(fresh_kb.facts())) == 1


def test_names_in_lists_of_a_goal_are_looked_for(fresh_kb: KnowledgeBase) -> None:
    """A name that no fact has is told, wherever it stands in the goal, with the one that it resembles."""
    library = parse_library([("f", JOIN)])
    fresh_kb.add_facts(facts(("road", "Paris", "Rome")))
    told = near_misses(Theory(library, fresh_kb), "member(X, ['Pariss', 'Oslo']), road(X, _)")

    assert [text.partition(".")[0] for text in told] == ["No fact has 'Pariss'", "No fact has 'Oslo'"]


def test_a_walk_tells_the_error_that_ended_it() -> None:
    """A rule that does not exist ends a walk with a text instead of an error."""
    library = parse_library([("f", JOIN)])
    ahead = Ahead(library, (), None, SearchSettings())  # type: ignore[arg-type]

    assert "nowhere" in walk(ahead, ["nowhere"])


def test_a_paused_search_says_so() -> None:
    """While it waits there is no time left to tell."""
    counter = ProgressCounter()
    counter.paused(True)
    assert counter.left == ", paused from a browser"
    counter.paused(False)
    assert counter.left == ""


def test_a_run_of_another_program_has_no_account(fresh_kb: KnowledgeBase) -> None:
    """A summary of another shape is passed over."""
    fresh_kb.start_run(RunRecord("r", "search", {}, "", "2026-01-01T00:00:00"))
    fresh_kb.finish_run("r", summary={"rules": [{"rule": "it", "account": [{"step": "one"}]}]})

    assert last_account(fresh_kb, "it") is None


def test_too_many_events_are_too_large_for_a_diagram(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit the probability is computed, and beyond it the diagram is given up."""
    program = GroundProgram()
    root = program.node("root", 1)
    for place in range(4):
        event = program.node(f"e{place}")
        program.weights[event] = 0.5
        program.add(root, [event], [])
    monkeypatch.setattr(diagrams, "MOST_EVENTS", 4)
    assert exact(program, root) == pytest.approx(1 - 0.5**4)
    monkeypatch.setattr(diagrams, "MOST_EVENTS", 3)

    with pytest.raises(TooLarge):
        exact(program, root)


def test_a_bound_that_still_moves_after_the_last_round_is_one() -> None:
    """In a circle of more nodes than rounds, nodes that rest on rules have the bound 1, and facts their own."""
    for size, bound in ((60, 0.5), (150, 1.0)):
        program = GroundProgram()
        fact = program.node("fact")
        program.weights[fact] = 0.5
        circle = [program.node(f"a{place}", 1) for place in range(size)]
        program.add(circle[0], [fact], [])
        for place in range(1, size):
            program.add(circle[place], [circle[place - 1]], [])
        program.add(circle[0], [circle[-1]], [])
        bounds = upper_bounds(program, program.below(circle[-1]))

        assert bounds[fact] == 0.5
        assert bounds[circle[-1]] >= bound


def family(kb: KnowledgeBase) -> None:
    rows = []
    for number in range(20):
        rows += [("mother_of", f"m{number}", f"c{number}"), ("parent_of", f"m{number}", f"c{number}")]
        rows.append(("child_of", f"c{number}", f"m{number}"))
    kb.add_facts(facts(*rows))


def test_mining_without_time_to_read_is_refused(fresh_kb: KnowledgeBase) -> None:
    """The error says how much time there was, and to allow more; a time of zero is refused before."""
    family(fresh_kb)
    library = parse_library([("f", JOIN)])
    with pytest.raises(
        HapaxError, match=r"The time limit of .* was over before all facts were read\. Allow more seconds\."
    ):
        mine(fresh_kb, library, MiningOptions(seconds=1e-9))
    with pytest.raises(HapaxError, match=r"seconds is 0\.0\. Set it to a number above 0\."):
        MiningOptions(seconds=0.0)


def test_an_assumed_atom_may_have_a_negative_number(fresh_kb: KnowledgeBase) -> None:
    """A sign before a number is part of it; before a name it makes no constant."""
    library = parse_library([("f", "given depth(Place, Number)\n" + JOIN)])

    assert [str(atom) for atom in Theory(library, fresh_kb, ("depth(a, -5)", "depth(b, -0.5)")).assumed] == [
        'depth("a", -5)',
        'depth("b", -0.5)',
    ]
    with pytest.raises(HapaxError, match=r"\(- b\) cannot be an argument of a predicate"):
        _ = Theory(library, fresh_kb, ("depth(a, -b)",)).assumed


@pytest.mark.parametrize("seconds", [None, 70.0])
def test_each_rule_has_the_time_of_prolog_unless_all_have_one(
    seconds: float | None, fresh_kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rules that take forty seconds each are derived by default, and are too much for seventy in all."""
    library = parse_library([("f", JOIN.replace("@name it", f"@name {name}")) for name in ("one", "two", "three")])
    fresh_kb.add_facts(facts(("road", "a", "b"), ("road", "b", "c")))
    clock = [time.monotonic()]
    monkeypatch.setattr(bulk_derivation, "BULK_LIMITS", replace(bulk_derivation.BULK_LIMITS, seconds=60.0))
    monkeypatch.setattr("hapax.engine.inference.bulk_derivation.system.monotonic", lambda: clock[0])
    # SQLite asks for the time at every step.
    monkeypatch.setattr("hapax.kb.connection._STEPS", 1)
    derive = bulk_derivation._RuleDeriver.derive

    def slow(self: Any, rule: Rule, **options: Any) -> Any:
        derived = derive(self, rule, **options)
        clock[0] += 40.0
        return derived

    monkeypatch.setattr(bulk_derivation._RuleDeriver, "derive", slow)
    if seconds is None:
        report = derive_all(fresh_kb, library, library.rules)
        assert [rule.statements for rule in report.rules] == [1, 1, 1]
    else:
        with pytest.raises(HapaxError, match=r"needs more than 70 seconds; nothing of it is stored"):
            derive_all(fresh_kb, library, library.rules, seconds=seconds)
