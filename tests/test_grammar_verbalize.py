"""Atoms and rules in words."""

from __future__ import annotations

import pytest

from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Substitution, Variable
from hapax.grammar.verbalize import atom_text, negated_template, question_template, spelled_template, statement_text


def read(text: str) -> Library:
    return parse_library([("test.rules", text)])


ALLERGY = read(
    'oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]"\n'
    "is_allergic_to(Historical Person X, Allergen A) & is_ingredient_in(Ingredient Z, Dish B)"
    " & is_one_type_of(Z, Allergen A)"
    " & not likes(X, A) -> is_not_able_to_eat(X, B)"
)
ATOM = Atom("is_ingredient_in", (Variable("Z", "Ingredient"), Variable("B", "Dish")))


def test_a_statement_tells_what_concerns_the_generic_variable() -> None:
    """Premise literals without the generic variable are left out; it prints as type and name, others as values."""
    values = Substitution((("A", Constant("nuts")), ("Z", Constant("peanut"))))

    assert statement_text(ALLERGY.rules[0], ALLERGY, values) == (
        "HistoricalPersonX is allergic to nuts and it is not true that HistoricalPersonX likes nuts",
        "HistoricalPersonX is not able to eat [B]",
    )


@pytest.mark.parametrize(
    ("text", "premise"),
    [
        ("p(Tool A, Tool B) & q(Tool B, Tool C) -> r(Tool C, Tool A)", "ToolA p [B]"),
        (
            "@generic X\np(Person X) & q(Person X, Tool A) & s(Tool A, Tool B) & s(Tool B, Tool C) -> r(Person X, Tool C)",
            "PersonX p and PersonX q [A]",
        ),
    ],
)
def test_a_statement_speaks_of_what_was_searched(text: str, premise: str) -> None:
    """Literals about the generic variable are enough if they mention a value that was searched for the premise alone."""
    library = read(text)

    assert statement_text(library.rules[0], library).premise == premise


def test_the_whole_premise_is_stated_where_nothing_else_would_be() -> None:
    """Without a generic variable the statement mentions every positive literal."""
    library = read("@generic none\np(Tool A, Tool B) & not q(Tool B) & q(Tool B) -> r(Tool A)")

    assert statement_text(library.rules[0], library) == ("[A] p [B] and [B] q", "[A] r")


def test_values_are_never_read_as_slots() -> None:
    """A value that looks like a slot, or like a regular expression's group, stays as it is."""
    values = Substitution((("Z", Constant("[2] \\1 \\g<0>")), ("B", Constant("[1]"))))

    assert atom_text(ATOM, ALLERGY, values) == "[2] \\1 \\g<0> is an ingredient in [1]"


def test_numbers_read_as_numbers() -> None:
    """Numbers print without quotes."""
    atom = Atom("was_born_in", (Constant("Ada"), Constant(1815)))

    assert atom_text(atom, Library()) == "Ada was born in 1815"


def test_missing_forms_are_made() -> None:
    """The negated and the question form follow from the affirmative one."""
    assert atom_text(ATOM, ALLERGY, form="negated") == "[Z] is not an ingredient in [B]"
    assert atom_text(ATOM, ALLERGY, form="question") == "is [Z] an ingredient in [B]?"


@pytest.mark.parametrize(
    ("affirmative", "negated", "question"),
    [
        ("[1] can plant [2]", "[1] cannot plant [2]", "can [1] plant [2]?"),
        ("[1] cannot plant [2]", "[1] can plant [2]", "is it true that [1] cannot plant [2]?"),
        ("[1] is not able to eat [2]", "[1] is able to eat [2]", "is it true that [1] is not able to eat [2]?"),
        ("[1] was born in [2]", "[1] was not born in [2]", "was [1] born in [2]?"),
        (
            "[1] has a branch in [2]",
            "it is not true that [1] has a branch in [2]",
            "is it true that [1] has a branch in [2]?",
        ),
        ("[1] lived in [2]", "it is not true that [1] lived in [2]", "is it true that [1] lived in [2]?"),
        ("[1] should take [2]", "[1] should not take [2]", "should [1] take [2]?"),
    ],
)
def test_forms_follow_the_verb(affirmative: str, negated: str, question: str) -> None:
    """Auxiliaries take "not" and move to the front; other verbs are denied and asked as a whole."""
    assert (negated_template(affirmative), question_template(affirmative)) == (negated, question)


def test_names_are_spelled_out() -> None:
    """A predicate without template reads as its name, whatever its arity."""
    assert [spelled_template("is_allergic_to", arity) for arity in (1, 2, 3)] == [
        "[1] is allergic to",
        "[1] is allergic to [2]",
        "[1] is allergic to [2] and [3]",
    ]
