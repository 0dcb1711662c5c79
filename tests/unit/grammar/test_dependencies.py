"""Search plans and their costs on rules worked by hand."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.dependencies import (
    PLANS,
    SearchPlan,
    plan,
    search_plans,
)
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Comparison, Literal, Variable
from hapax.grammar.writing.printing import graph_text

TABLE_2 = """is_allergic_to(Person X, Food Allergen A) & is_ingredient_in(Ingredient Z, Dish B)
  & is_one_type_of(Ingredient Z, Food Allergen A) -> is_not_able_to_eat(Person X, Dish B)"""
RULE_0 = """lived_in(Person P, Geographic Location A) & lived_during(Person P, Historical Time Period D)
  & existed_during(Geographic Location A, Historical Time Period D) & was_invented_in(Product or Technology C, Year Y)
  & is_more_than_a_century_earlier_than(Historical Time Period D, Year Y)
  -> is_not_able_to_use(Person P, Product or Technology C)"""
RULE_46 = """is_allergic_to(Person A, Substance X) & includes(Name of Cosmetics B, Substance X)
  -> cannot_use(Person A, Name of Cosmetics B)"""
RULE_7 = """was_born_in(Person P, Period B) & was_invented_in(Product A, Year Y) & is_earlier_than(Period B, Year Y)
  -> is_not_able_to_use(Person P, Product A)"""
KNOWN_OF_THE_GENERIC = """functional died_in(Person, Period)
died_in(Person A, Period X) & was_made_in(Artifact B, Period Y) & is_before(Period X, Period Y)
  -> cannot_create(Person A, Artifact B)"""
INVENTED = "functional was_invented_in(Object, Year)\n"
WAR = """functional ended_in(War, Year)
functional was_invented_in(Invention, Year)
computed is_before(Year A, Year B) := A < B
fell_in(Person X, War A) & ended_in(War A, Year E) & was_invented_in(Invention B, Year Y) & is_before(Year E, Year Y)
  -> cannot_have_used(Person X, Invention B)"""


def library_of(text: str) -> Library:
    return parse_library([("t.rules", text)])


def first_plan(text: str, **options: str) -> SearchPlan:
    library = library_of(text)
    return plan(library.rules[0], library, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "preset", "order"),
    [
        (TABLE_2, "premise-first", "XAZB"),
        (TABLE_2, "conclusion-first", "XBZA"),
        (TABLE_2, "link", "XAZB"),
        (RULE_0, "premise-first", "PADYC"),
        (RULE_0, "link", "PADYC"),
        (INVENTED + RULE_0, "link", "PADYC"),
        (RULE_46, "link", "AXB"),
        (RULE_7, "link", "PBYA"),
        (INVENTED + RULE_7, "link", "PAYB"),
        (KNOWN_OF_THE_GENERIC, "link", "AXYB"),
    ],
)
def test_link_orders_are_the_papers(text: str, preset: str, order: str) -> None:
    """The presets give the orders of the paper and of its released code; a functional variable begins at the conclusion."""
    assert first_plan(text, preset=preset).order == tuple(order)


def test_years_wait_for_their_key() -> None:
    """The cheapest order binds a war before its year; lists cost one question, and each year two calls."""
    found = first_plan(WAR)
    steps = {step.variable.name: step for step in found.steps}

    assert found.order == tuple("XAEBY")
    assert [name for name, step in steps.items() if step.functional] == ["E", "Y"]
    assert str(steps["Y"].generators[0]) == "was_invented_in(Invention B, Year Y)"
    assert (found.cost.questions, found.cost.calls) == (1 + 109 + 1 + 109, 4 + 218 + 4 + 218)


@pytest.mark.parametrize(
    ("text", "preset", "variable", "generators"),
    [
        (TABLE_2, "premise-first", "A", ["is_one_type_of"]),  # a constraint goes before what is said of the person
        (
            "is_of_age(Person A, Age X) & needs(Machine B, Age Y) & X < Y -> cannot_operate(Person A, Machine B)",
            "cheapest",
            "X",
            ["is_of_age"],
        ),
        (
            "functional lies_in(City, Country)\nlives_in(Person X, City A) & exports_to(Country C, City A)"
            " & lies_in(City A, Country C) & makes(Country C, Good B) -> can_buy(Person X, Good B)",
            "premise-first",
            "C",
            ["lies_in", "exports_to"],  # what is functional with a known key is asked, the other is judged
        ),
    ],
)
def test_the_best_literal_generates_a_variable(text: str, preset: str, variable: str, generators: list[str]) -> None:
    """A constraint before an information atom, a functional literal with its key before others."""
    (step,) = (step for step in first_plan(text, preset=preset).steps if step.variable.name == variable)

    assert [literal.atom.predicate for literal in step.generators] == generators


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("given owns(Author, Book)\nlikes(Person X, Author A) & owns(Author A, Book B) -> reads(Person X, Book B)", 0),
        (
            "loves(Person X, Area A) & within(Place B, Area A) -> visits(Person X, Place B)\n"
            "in_town(Place A, Area B) -> within(Place A, Area B)\n"
            "within(Place A, Place B) & within(Place B, Area C) -> within(Place A, Area C)",
            3 + 109 * 3,  # once for each oracle predicate below the recursive one
        ),
        (
            "given p(City, Year)\n@generic none\np(City X, Year A) & Year B = A + 1 & Year C = B + 1 -> r(City X, Year C)",
            0,
        ),
    ],
)
def test_stored_and_calculated_values_cost_nothing(text: str, calls: int) -> None:
    """A derived predicate costs what its rules ask."""
    assert first_plan(text).cost.calls == calls


@pytest.mark.parametrize(
    ("literal", "questions"), [('is_in("Paris", Area A)', 1 + 5), ("is_in(City C, Area A)", 1 + 109 + 200)]
)
def test_a_question_without_a_bound_argument_has_more_values(literal: str, questions: int) -> None:
    """A constant or a bound variable is a key; a question without a key is expected to keep more values."""
    library = library_of(f"@generic none\n{literal} & has(Area A, Shop B) -> sells(Area A, Shop B)")

    assert plan(library.rules[0], library, "premise-first").cost.questions == questions


def assert_complete(candidate: SearchPlan, rule: Rule) -> None:
    """Each searched variable once, each premise item closed once, no generator ahead of its time."""
    searched = {variable.name for item in rule.premise for variable in item.variables} - set(rule.generic)
    assert sorted(step.variable.name for step in candidate.steps) == sorted(searched)
    assert sorted(str(item) for step in candidate.steps for item in step.closes) == sorted(map(str, rule.premise))
    for step in candidate.steps:
        source = (step.assignment.left,) if step.assignment else step.generators[0].variables
        assert step.variable in source


@pytest.mark.parametrize("size", [30, 60])
def test_large_rules_have_a_bounded_number_of_plans(size: int) -> None:
    """A beam limits the orders of a large rule, and every run gives the same plans."""
    variables = [Variable(f"V{number}", "T") for number in range(size)]
    literals = tuple(Literal(Atom("p", pair)) for pair in combinations(variables[: size // 4], 2))
    chain = tuple(Literal(Atom("q", pair)) for pair in pairwise(variables))
    rule = Rule("large", (*literals, *chain), Literal(Atom("r", (variables[0], variables[-1]))), generic=())
    library = Library((rule,)).completed()
    plans = search_plans(rule, library)

    assert 1 < len(plans) <= PLANS
    assert plans == search_plans(rule, library)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    names = draw(st.lists(st.sampled_from("ABCDEF"), min_size=2, max_size=6, unique=True))
    variables = [Variable(name, "Thing") for name in names]
    chosen = st.lists(st.sampled_from(variables), min_size=1, max_size=3)
    found = draw(st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), chosen), min_size=1, max_size=6, unique_by=str))
    literals = [Literal(Atom(predicate, tuple(arguments))) for predicate, arguments in found]
    variables = [variable for literal in literals for variable in literal.variables]
    comparison = [Comparison("\\=", variables[0], variables[-1])] if draw(st.booleans()) else []
    generic = (variables[0].name,) if draw(st.booleans()) else ()
    premise = (*dict.fromkeys(literals), *comparison)
    return Rule("random", premise, Literal(Atom("c", (variables[0], variables[-1]))), generic=generic)


@given(rules())
def test_every_plan_of_a_random_rule_is_complete(rule: Rule) -> None:
    """For any premise, each plan binds all variables and closes all items, and the first is the cheapest."""
    library = Library((rule,)).completed()
    plans = search_plans(rule, library)

    for candidate in plans if plans[0].steps else ():
        assert_complete(candidate, rule)
        assert candidate.cost.calls >= plans[0].cost.calls


def test_graphs_of_rules_hold_any_text() -> None:
    """Quotation marks and angle brackets of a text end no label of Mermaid or Graphviz."""
    library = library_of(
        '@name c\nlikes(Person X, Dish A) & is_in(Dish A, Menu B) & A \\= "no \\"1\\" <b>" -> buys(Person X, Menu B)'
    )
    rule = library.rules[0]

    assert "  A -- B: is_in(A, B) [oracle]" in graph_text(rule, library).splitlines()
    assert "<b>" not in graph_text(rule, library, "mermaid")
