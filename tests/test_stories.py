"""Stories of facts and statements, line by line: their whole texts are in `tests/golden/`."""

from __future__ import annotations

from itertools import product

import pytest
from golden_fixture import compared

from hapax.engine.explain import fact_lines, story_text, why, why_not
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.probability.answers import METHODS, ProbabilityOptions
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.kb.records import (
    Assessment,
    AtomPattern,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    Question,
    QuestionState,
    Source,
)
from hapax.kb.store import KnowledgeBase

RULES = """
oracle lives_in(Animal, Place): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?".
"""
ASKED = Question((AtomPattern("lives_in", (None, "reef")),), "Animal")
LONG_PROMPT = "p" * 600
CALLS = [
    CallRecord("call-1", "knowledge", "tiny", {"prompt": LONG_PROMPT}, {"text": "1. eel\n2. ray"}),
    CallRecord("call-2", "knowledge", "hf/m@" + "a" * 40, {"messages": LONG_PROMPT}, {"text": "eel"}),
    CallRecord("call-3", "critic", "tiny", {}, {"refused": "I cannot say"}),
    CallRecord("call-4", "critic", "tiny", {}, {"text": "yes"}),
]
FIRST = Candidate(ASKED.id, "eel", "1. eel", "call-1", 0)
SECOND = Candidate(ASKED.id, "eel", "eel", "call-2", 3, "no number before it")
LOST = Candidate(ASKED.id, "eel", "eel again", "call-9", 1)
RAY = Candidate(ASKED.id, "ray", "2. ray", "call-1", 1, "too short")
CLAUSE, SENTENCE = "eel lives in reef", "Eel lives in reef."
YES = Assessment(SENTENCE, "probability", "tiny", 0.9701, call_id="call-4")


@pytest.fixture
def library() -> Library:
    return parse_library([("f.rules", RULES)])


@pytest.fixture
def told_kb(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """Two facts with every kind of record that a story tells."""
    fresh_kb.record_calls(CALLS)
    fresh_kb.set_question_states([(ASKED, QuestionState(2))])
    fresh_kb.add_candidates([FIRST, SECOND, LOST, RAY])
    fresh_kb.add_assessments(
        [
            YES,
            Assessment(SENTENCE, "probability", "strict", 0.0, call_id="call-3"),
            Assessment(SENTENCE, "probability", "given", 1.0, basis="the list of reefs"),
            Assessment(CLAUSE, "type_probability", "tiny", 0.75),
            Assessment(CLAUSE, "log_likelihood", "tiny", -12.0, 4),
            Assessment(CLAUSE, "log_likelihood", "single", -12.0, 1),
            Assessment(CLAUSE, "log_likelihood", "other", -12.0),
            Assessment(CLAUSE, "paper", "tiny", -3.0),
            Assessment("ray lives in reef", "log_likelihood", "tiny", -1.0, 1),
        ]
    )
    fact = FactRecord("lives_in", ("eel", "reef"), ("Animal", "Place"), Source.MODEL, 0.97, FIRST.id, "run1")
    fresh_kb.add_decisions(
        [
            Decision("run1", "critic", FIRST.id, True, 0.97, 0.85, "P(yes) reaches 0.85", assessment_ids=(YES.id,)),
            Decision("run1", "parser", RAY.id, False, None, None, "too short"),
            Decision("run1", "likelihood", fact.id, True, -3.0, None, "kept", "r", Distribution.HEAD),
            Decision("run2", "likelihood", fact.id, False, None, -2.5, "cut", "r", Distribution.LONG_TAIL, 0),
            Decision("run3", "likelihood", fact.id, False, -2.0, -2.5, "cut", "r", None, 2),
            Decision("run4", "likelihood", fact.id, True, -2.0, -2.5, "kept", None, Distribution.HEAD),
        ]
    )
    fresh_kb.add_facts([fact])
    return fresh_kb


def told(kb: KnowledgeBase, library: Library, *values: str) -> str:
    atom = Atom("lives_in", tuple(map(Constant, values)))
    return "".join(story_text(line) + "\n" for line in fact_lines(kb, library, atom))


def test_a_fact_is_told_with_all_that_was_asked_and_decided(told_kb: KnowledgeBase, library: Library) -> None:
    """Fact, proposals, calls, gates and scores each have a line with model, score, threshold and reason."""
    compared("stories/a_fact", told(told_kb, library, "eel", "reef"))


def test_a_rejected_value_is_told(told_kb: KnowledgeBase, library: Library) -> None:
    """The parser's verdict is told once, be it a gate's decision or a note of the candidate."""
    compared("stories/a_rejected_value", told(told_kb, library, "ray", "reef"))


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (FactRecord("lives_in", ("a", "b"), (), Source.GIVEN), "given by the user"),
        (
            FactRecord("lives_in", ("a", "b"), (), Source.GIVEN, basis="as A in f.csv"),
            "given by the user, as A in f.csv",
        ),
        (FactRecord("lives_in", ("a", "b"), (), Source.MODEL), "run unknown"),
        (FactRecord("lives_in", ("a", "b"), (), Source.MODEL, 0.0, run_id="r"), "P(yes) 0.000, run r"),
        (FactRecord("lives_in", ("a", "b"), (), Source.MODEL, run_id="r", basis="atlas"), "run r, source: atlas"),
    ],
)
def test_the_line_of_a_fact_says_where_it_comes_from(
    fresh_kb: KnowledgeBase, library: Library, fact: FactRecord, line: str
) -> None:
    """A given fact names the spelling of its file, a model's fact its score, run and source."""
    fresh_kb.add_facts([fact])

    assert told(fresh_kb, library, "a", "b") == f"fact {fact.id}, {line}\n"


def test_withdrawals_are_told_with_their_ends(told_kb: KnowledgeBase, library: Library) -> None:
    """A withdrawal that was undone says when; one that stands does not."""
    (fact,) = told_kb.facts()
    told_kb.withdraw([fact.id], "no eel", "user")
    told_kb.restore([fact.id])
    told_kb.withdraw([fact.id], "no reef", "critic gate")
    undone, standing = (line for line in told(told_kb, library, "eel", "reef").splitlines() if "withdrawn" in line)

    assert undone.startswith("withdrawn by the user on ")
    assert ": no eel; restored on " in undone
    assert undone.endswith(" UTC")
    assert len(undone.rpartition("restored on ")[2]) == len("2026-01-01 00:00:00 UTC")
    assert "T" not in undone.rpartition("restored on ")[2].removesuffix(" UTC")
    assert standing.startswith("withdrawn by critic gate on ")
    assert standing.endswith(": no reef")


@pytest.mark.parametrize(("length", "shown"), [(600, LONG_PROMPT), (601, LONG_PROMPT + " ...")])
def test_prompts_are_quoted_up_to_a_length(fresh_kb: KnowledgeBase, library: Library, length: int, shown: str) -> None:
    """A prompt of 600 characters is told whole; of a longer one, the first 600."""
    fresh_kb.record_calls([CallRecord("c", "knowledge", "tiny", {"prompt": "p" * length}, {})])
    fresh_kb.set_question_states([(ASKED, QuestionState(1))])
    fresh_kb.add_candidates([Candidate(ASKED.id, "eel", "eel", "c", 0)])

    assert f"call c to the knowledge model tiny: '{shown}'" in told(fresh_kb, library, "eel", "reef")


CLIMBS = """
oracle fell_in(Climber, Place): "[1] fell in [2]" / "[1] did not fall in [2]" / "did [1] fall in [2]?".
given climbs(Climber).
given guides(Climber, Climber).
functional was_born(Climber, Year).
given was_first(Climber).
given knows_of(Climber, Place).
closed knows_of/2 by 1
computed is_early(Year Y) := Y * 2 < 3000 + 800.
computed is_odd(Year Y) := Y * 2 = 6 - 1.
aggregate falls(Climber C, Number N) := N = count(Place P: fell_in(Climber C, Place P)).
@name risk
climbs(Climber C) & fell_in(Climber C, Place P) -> risked(Climber C, Place P).
@name fame
risked(Climber C, Place P) & was_born(Climber C, Year Y) & not was_first(Climber C) & is_early(Year Y)
  -> is_famous(Climber C).
@name met
risked(Climber C, Place P) & risked(Climber D, Place P) & C \\= D -> met(Climber C, Climber D).
@name safe
climbs(Climber C) & not fell_in(Climber C, Place P) & knows_of(Climber C, Place P) -> passed(Climber C, Place P).
@name lost
climbs(Climber C) & not knows_of(Climber C, "eiger") -> was_lost(Climber C).
@name swiss
climbs(Climber C) & fell_in(Climber C, "eiger") -> saw(Climber C, "Swiss").
@name same
guides(Climber C, Climber D) -> ropes(Climber C, Climber C).
@name generic
@generic X
trusts(Climber X, Climber D) & guides(Climber D, Climber C) -> follows(Climber X, Climber C).
"""
CLIMB_FACTS = [
    ("climbs", ("ann",), Source.GIVEN, None),
    ("climbs", ("bob",), Source.GIVEN, None),
    ("climbs", ("cid",), Source.GIVEN, None),
    ("guides", ("ann", "bob"), Source.GIVEN, None),
    ("fell_in", ("ann", "eiger"), Source.MODEL, 0.9),
    ("fell_in", ("bob", "eiger"), Source.MODEL, 0.8),
    ("fell_in", ("cid", "monch"), Source.MODEL, 0.7),
    ("was_born", ("ann", 1880), Source.GIVEN, None),
    ("was_born", ("bob", 1881), Source.GIVEN, None),
    ("was_born", ("cid", 1901), Source.GIVEN, None),
    ("was_first", ("bob",), Source.GIVEN, None),
    ("knows_of", ("bob", "monch"), Source.GIVEN, None),
]


@pytest.fixture
def climbers(fresh_kb: KnowledgeBase) -> Theory:
    fresh_kb.add_facts(
        FactRecord(name, values, (), source, score, basis="as Robert" if name == "was_first" else None)
        for name, values, source, score in CLIMB_FACTS
    )
    return Theory(parse_library([("climbs.rules", CLIMBS)]), fresh_kb)


def test_stories_of_climbers_are_told_line_by_line(climbers: Theory, prolog: PrologSession) -> None:
    """What holds is told with its proof and probability, what does not with all that is missing."""
    goals = [
        "is_famous(ann)", "met(ann, bob)", "was_first(bob)", "falls(ann, 1)", "passed(bob, monch)",
        "is_famous(bob)", "is_famous(cid)", "is_famous(dan)", "met(ann, ann)", "met(ann, cid)", "is_odd(3)",
        "is_early(1900)", "is_early(\"x\")", "falls(ann, 9)", "falls(dan, 0)", "was_born(ann, 1)", "was_first(zed)",
        "fell_in(ann, monch)", "passed(ann, eiger)", "passed(cid, eiger)", "was_lost(bob)", "was_lost(ann)",
        "saw(cid, \"Swiss\")", "saw(cid, \"French\")", "ropes(ann, bob)", "ropes(bob, bob)", "follows(ann, bob)",
        "trusts(bob, ann)",
    ]  # fmt: skip
    told = []
    for goal in goals:
        try:
            story = why(climbers, goal, prolog)
        except HapaxError as refusal:
            told.append(f"why {goal}: {refusal}")
            story = why_not(climbers, goal, prolog)
        told.append(story_text(story) + "\n")
    for goal, options in product(("is_famous(ann)", "met(ann, bob)"), METHODS):
        story = why(climbers, goal, prolog, probability=ProbabilityOptions(options))
        told.append("\n".join([goal, *story_text(story).splitlines()[1:4]]) + "\n")

    compared("stories/climbers", "\n".join(told))
