"""`why` and `why-not`: the story of a statement or atom down to call, verdict and missing premise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.beams import substitution_subject
from engine.derive import derive_statements
from engine.explain import Story, story_text, why, why_not
from engine.session import PrologSession
from grammar.errors import HapaxError
from grammar.parser import parse_library
from grammar.rules import Library
from grammar.terms import Constant, Substitution
from kb.records import (
    Assessment,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    Pattern,
    Question,
    QuestionState,
    Source,
    StatementRecord,
)
from kb.store import KnowledgeBase

RULES = """
oracle is_ingredient_in(Ingredient, Dish):
  "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "is [1] an ingredient in [2]?".
given is_recalled(Ingredient).
computed is_before(Year A, Year B) := A < B.
@name allergy
is_allergic_to(Person X, Food Allergen A) & falls_under(Ingredient Z, Food Allergen A)
  & is_ingredient_in(Ingredient Z, Dish B)
  & not is_recalled(Ingredient Z) -> is_not_able_to_eat(Person X, Dish B).
@name shared
is_ingredient_in(Ingredient Z, Dish B) & is_ingredient_in(Ingredient Z, Dish C) & B \\= C -> resembles(Dish B, Dish C).
@name direct
borders(Place A, Place B) -> reaches(Place A, Place B).
@name onward
borders(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C).
"""
ASKED = Question((Pattern("is_ingredient_in", (None, "paella")),), "Ingredient")
CALL = CallRecord("call-1", "knowledge", "tiny", {"prompt": "Give me 50 values of A"}, {"text": "1. shrimp\n2. chalk"})
SHRIMP = Candidate(ASKED.id, "shrimp", "1. shrimp", "call-1", 0)
CHALK = Candidate(ASKED.id, "chalk", "2. chalk", "call-1", 1)
CLAIM = Assessment("Shrimp is an ingredient in paella.", "probability", "tiny", 0.97)


@pytest.fixture(scope="module")
def prolog() -> Iterator[PrologSession]:
    with PrologSession() as session:
        yield session


@pytest.fixture(scope="module")
def library() -> Library:
    return parse_library([("f.rules", RULES)])


@pytest.fixture
def kb(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """One call, two candidates: shrimp was accepted, chalk rejected."""
    fresh_kb.record_call(CALL)
    fresh_kb.set_question_state(ASKED, QuestionState(1, 0, exhausted=True))
    fresh_kb.add_candidates([SHRIMP, CHALK])
    fresh_kb.add_assessments([CLAIM])
    fresh_kb.add_decisions(
        [
            Decision("run1", "critic", SHRIMP.id, True, 0.97, 0.85, "P(yes) reaches 0.85", assessment_ids=(CLAIM.id,)),
            Decision("run1", "critic", CHALK.id, False, 0.12, 0.85, "P(yes) is below 0.85"),
        ]
    )
    fresh_kb.add_facts(
        [
            FactRecord(
                "is_ingredient_in", ("shrimp", "paella"), ("Ingredient", "Dish"), Source.MODEL, 0.97, SHRIMP.id, "run1"
            ),
            FactRecord("falls_under", ("shrimp", "shellfish"), ("Ingredient", "Food Allergen"), Source.GIVEN),
            *(
                FactRecord("borders", pair, ("Place", "Place"), Source.MODEL, 0.9)
                for pair in (("a", "b"), ("b", "c"), ("c", "a"))
            ),
        ]
    )
    return fresh_kb


@pytest.fixture
def statement(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> StatementRecord:
    kept = Substitution((("A", Constant("shellfish")), ("Z", Constant("shrimp")), ("B", Constant("paella"))))
    (found,) = derive_statements(
        prolog, library, library.rule("allergy"), {Distribution.LONG_TAIL: [kept]}, kb.facts(), "run1"
    )
    kb.add_statements([found])
    subject = substitution_subject(found.substitution)
    kb.add_decisions(
        [
            Decision(
                "run1", "likelihood", subject, True, -3.2, -3.0, "among the lowest", "allergy", Distribution.LONG_TAIL
            )
        ]
    )
    return found


def kinds(story: Story) -> list[str]:
    return [part.kind for _, part in story.lines()]


def test_a_statement_is_told_down_to_its_calls(library: Library, kb: KnowledgeBase, statement: StatementRecord) -> None:
    """Statement, gates, rule, facts, prompt, answer, P(yes) and threshold are all in the story."""
    told = story_text(why(kb, library, statement.id))

    for part in (
        statement.text,
        "likelihood gate for allergy (long_tail): accepted, score -3.200, threshold -3.000: among the lowest",
        "[by rule allergy]",
        "[assumed]",
        "[given]",
        'is_recalled("shrimp") was not provable',
        "call call-1 to tiny: 'Give me 50 values of A'",
        "proposed as '1. shrimp', line 1 of the answer",
        "critic gate: accepted, score 0.970, threshold 0.850: P(yes) reaches 0.85",
        "P(yes) 0.970 for 'Shrimp is an ingredient in paella.' by tiny",
    ):
        assert part in told


def test_statements_are_found_by_their_text(library: Library, kb: KnowledgeBase, statement: StatementRecord) -> None:
    """Case, blanks and the full stop do not matter."""
    found = why(kb, library, "  " + statement.text.upper().rstrip("."))

    assert kinds(found)[0] == "statement"


def test_a_fact_is_told(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A ground atom that is a fact tells its candidate's story."""
    story = why(kb, library, "is_ingredient_in(shrimp, paella)", session=prolog)

    assert kinds(story) == ["goal", "fact", "candidate", "call", "gate", "assessment"]


def test_a_derived_atom_is_proved(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A derived atom tells its rules down to the facts, on cyclic data too."""
    told = story_text(why(kb, library, "reaches(a, a)", session=prolog))

    assert told.count("[by rule onward]") == 2
    assert told.count("[fact]") == 3


def test_an_assumption_takes_part(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """What was assumed is told as assumed."""
    story = why(kb, library, "is_not_able_to_eat(tom, paella)", ["is_allergic_to(tom, shellfish)"], prolog)

    assert 'is_allergic_to("tom", "shellfish")  [assumed]' in story_text(story)


def test_why_of_what_does_not_hold_names_why_not(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """The error says which command explains it."""
    with pytest.raises(HapaxError, match="why-not"):
        why(kb, library, "is_ingredient_in(chalk, paella)", session=prolog)


def test_why_of_nonsense_says_what_it_reads(library: Library, kb: KnowledgeBase) -> None:
    """A text that is neither a statement nor an atom is told as such."""
    with pytest.raises(HapaxError, match="No statement"):
        why(kb, library, "The moon is made of cheese")


def test_the_gate_that_stopped_a_value(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A rejected candidate tells gate, score, threshold and reason."""
    told = story_text(why_not(kb, library, "is_ingredient_in(chalk, paella)", session=prolog))

    assert "critic gate: rejected, score 0.120, threshold 0.850: P(yes) is below 0.85" in told
    assert "proposed as '2. chalk'" in told


def test_asked_and_never_proposed(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A value that no model proposed tells which question was asked, and how often."""
    told = story_text(why_not(kb, library, "is_ingredient_in(saffron, paella)", session=prolog))

    assert "no model proposed it" in told
    assert 'is_ingredient_in(?, "paella") as Ingredient: 1 call, exhausted' in told


def test_nobody_asked(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """An atom that no question touched says so and how to ask."""
    assert "nobody asked; `hapax query --ask` does" in story_text(why_not(kb, library, "borders(x, y)", session=prolog))


@pytest.mark.parametrize(
    ("atom", "reason"),
    [
        ("is_recalled(shrimp)", "no given fact says so"),
        ("is_before(2, 1)", "arithmetic says no"),
        ("is_allergic_to(tom, shellfish)", "--assume states it"),
    ],
)
def test_what_is_never_asked_says_why(
    prolog: PrologSession, library: Library, kb: KnowledgeBase, atom: str, reason: str
) -> None:
    """Given and computed predicates and hypotheses have reasons of their own."""
    assert reason in story_text(why_not(kb, library, atom, session=prolog))


def test_the_premise_that_had_no_fact(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A rule that failed tells its first premise without a fact, with the values so far and what stands behind it."""
    assume = ["is_allergic_to(tom, shellfish)"]

    told = story_text(why_not(kb, library, "is_not_able_to_eat(tom, bisque)", assume, prolog))

    assert "rule allergy: its premise is_ingredient_in(Ingredient Z, Dish B) has no fact" in told
    assert 'nothing makes is_ingredient_in("shrimp", "bisque") hold' in told
    assert "nobody asked" in told


def test_a_hypothesis_that_nobody_made(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Without an assumption the rule fails at its hypothesis, and the story names the option."""
    told = story_text(why_not(kb, library, "is_not_able_to_eat(tom, paella)", session=prolog))

    assert "its premise is_allergic_to(Person X, Food Allergen A) has no fact" in told
    assert "--assume" in told


def test_a_negation_or_comparison_that_failed(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Tests that failed are told with their values."""
    kb.add_facts([FactRecord("is_recalled", ("shrimp",), ("Ingredient",), Source.GIVEN)])
    assume = ["is_allergic_to(tom, shellfish)"]

    recalled = story_text(why_not(kb, library, "is_not_able_to_eat(tom, paella)", assume, prolog))
    same = story_text(why_not(kb, library, "resembles(paella, paella)", session=prolog))

    assert 'is_recalled("shrimp") holds, and the rule wants that it does not' in recalled
    assert '"paella" \\= "paella" is false' in same


def test_why_not_of_what_holds_names_why(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """The error says which command explains what does hold."""
    with pytest.raises(HapaxError, match="hapax why '"):
        why_not(kb, library, "borders(a, b)", session=prolog)


def test_stories_as_json_are_flat(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Each line has its depth, kind and text."""
    lines = why(kb, library, "borders(a, b)", session=prolog).to_json()

    assert [line["depth"] for line in lines] == [0, 1]
    assert lines[0]["kind"] == "goal"
