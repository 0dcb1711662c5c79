"""Search plans, recursion, strata and graphs."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar.dependencies import (
    PLANS,
    SearchPlan,
    dependency_graph,
    evaluation_layers,
    graph_text,
    negative_cycles,
    plan,
    recursive_predicates,
    search_plans,
    strata,
    unreachable_variables,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Comparison, Literal, Variable

TABLE_2 = """is_allergic_to(Person X, Food Allergen A) & is_ingredient_in(Ingredient Z, Dish B)
  & is_one_type_of(Ingredient Z, Food Allergen A) -> is_not_able_to_eat(Person X, Dish B)"""
RULE_0 = """lived_in(Person P, Geographic Location A) & lived_during(Person P, Historical Time Period D)
  & existed_during(Geographic Location A, Historical Time Period D) & was_invented_in(Product or Technology C, Year Y)
  & is_more_than_a_century_earlier_than(Historical Time Period D, Year Y)
  -> is_not_able_to_use(Person P, Product or Technology C)"""
RULE_46 = """is_allergic_to(Person A, Substance X) & includes(Name of Cosmetics B, Substance X)
  -> cannot_use(Person A, Name of Cosmetics B)"""
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
    ],
)
def test_link_orders_are_the_papers(text: str, preset: str, order: str) -> None:
    """The presets give the orders that the paper and its released code give, the generic variable first."""
    assert first_plan(text, preset=preset).order == tuple(order)


def test_link_searches_a_chain_with_a_functional_variable_conclusion_first() -> None:
    """A functional variable makes LINK start at the conclusion, as in rule7 of its release."""
    text = """was_born_in(Person P, Period B) & was_invented_in(Product A, Year Y) & is_earlier_than(Period B, Year Y)
      -> is_not_able_to_use(Person P, Product A)"""

    assert first_plan(text, preset="link").order == tuple("PBYA")
    assert first_plan(INVENTED + text, preset="link").order == tuple("PAYB")


def test_what_is_functional_of_the_generic_variable_alone_does_not_count() -> None:
    """Nobody can know when Person X died, so such a predicate does not turn LINK's order round."""
    text = """functional died_in(Person, Period)
    died_in(Person A, Period X) & was_made_in(Artifact B, Period Y) & is_before(Period X, Period Y)
      -> cannot_create(Person A, Artifact B)"""

    assert first_plan(text, preset="link").order == tuple("AXYB")


def test_years_wait_for_their_key() -> None:
    """The cheapest order binds a war before its year and never asks which wars ended in a year."""
    steps = {step.variable.name: step for step in first_plan(WAR).steps}

    assert first_plan(WAR).order == tuple("XAEBY")
    assert [name for name, step in steps.items() if step.functional] == ["E", "Y"]
    assert str(steps["Y"].generators[0]) == "was_invented_in(Invention B, Year Y)"
    assert [str(item) for item in steps["Y"].closes] == [
        "was_invented_in(Invention B, Year Y)",
        "is_before(Year E, Year Y)",
    ]


def test_cost_counts_shared_questions() -> None:
    """Twenty wars and twenty inventions cost one question per list and two calls per year."""
    cost = first_plan(WAR).cost

    assert (cost.questions, cost.calls) == (1 + 20 + 1 + 20, 4 + 40 + 4 + 40)


def test_cheapest_comes_first_and_includes_the_presets() -> None:
    """Plans are sorted by cost, and none of LINK's orders is missing from a small rule's list."""
    library = library_of(TABLE_2)
    plans = search_plans(library.rules[0], library)

    assert [candidate.cost.calls for candidate in plans] == sorted(candidate.cost.calls for candidate in plans)
    assert {tuple("XAZB"), tuple("XBZA")} <= {candidate.order for candidate in plans}
    assert plan(library.rules[0], library) == plans[0]


def test_a_constraint_generates_before_an_information_atom() -> None:
    """The first variable is asked for with a constraint although its other argument is still free."""
    first = first_plan(TABLE_2, preset="premise-first").steps[0]

    assert str(first.generators[0]) == "is_one_type_of(Ingredient Z, Food Allergen A)"
    assert [str(item) for item in first.closes] == ["is_allergic_to(Person X, Food Allergen A)"]


def test_an_information_atom_generates_where_nothing_else_can() -> None:
    """A person's age is asked for with the sentence about the person."""
    text = """computed is_under(Age A, Age B) := A < B
    is_of_age(Person A, Age X) & needs(Machine B, Age Y) & is_under(Age X, Age Y)
      -> cannot_operate(Person A, Machine B)"""
    steps = {step.variable.name: step for step in first_plan(text).steps}

    assert [str(literal) for literal in steps["X"].generators] == ["is_of_age(Person A, Age X)"]


def test_of_several_closing_literals_the_best_generates_and_the_others_verify() -> None:
    """A functional literal with a known key is asked; an oracle literal with the same variable is judged."""
    text = """functional lies_in(City, Country)
    lives_in(Person X, City A) & exports_to(Country C, City A) & lies_in(City A, Country C) & makes(Country C, Good B)
      -> can_buy(Person X, Good B)"""
    step = first_plan(text, preset="premise-first").steps[1]

    assert (step.variable.name, step.functional) == ("C", True)
    assert [literal.atom.predicate for literal in step.generators] == ["lies_in", "exports_to"]


def test_an_equation_gives_a_value_without_a_question() -> None:
    """`V = expression`, written or in a computed predicate, binds V for nothing."""
    text = """functional ended_in(War, Year)
    computed is_decade_after(Year A, Year B) := A = B + 10
    fell_in(Person X, War A) & ended_in(War A, Year E) & F = E + 1 & is_decade_after(Year G, Year F)
      & opened_in(Museum B, Year F) -> missed(Person X, Museum B, Year G)"""
    steps = {step.variable.name: step for step in first_plan(text).steps}

    assert str(steps["F"].assignment) == "F = E + 1"
    assert str(steps["G"].assignment) == "G = F + 10"
    assert steps["G"].generators == ()


def test_a_constant_is_a_key() -> None:
    """A literal with a constant leads the search: viruses first, then what they cause."""
    text = """functional is_a_kind_of(Pathogen, Kind)
    has(Person X, Disease A) & is_caused_by(Disease A, Pathogen P) & is_a_kind_of(Pathogen P, "virus")
      -> cannot_be_cured_of(Person X, Disease A)"""

    assert first_plan(text).order == tuple("XPA")


@pytest.mark.parametrize(
    ("literal", "questions"), [('is_in("Paris", Area A)', 1 + 10), ("is_in(City C, Area A)", 1 + 20 + 20 * 10)]
)
def test_a_question_without_a_bound_argument_has_twice_the_values(literal: str, questions: int) -> None:
    """A constant or a bound variable is a key; a question without a key is expected to keep 20 values, not 10."""
    library = library_of(f"@generic none\n{literal} & has(Area A, Shop B) -> sells(Area A, Shop B)")

    assert plan(library.rules[0], library, "premise-first").cost.questions == questions


def test_given_predicates_are_never_asked() -> None:
    """Values from stored facts cost no call."""
    library = library_of(
        "given owns(Author, Book)\nlikes(Person X, Author A) & owns(Author A, Book B) -> reads(Person X, Book B)"
    )

    assert search_plans(library.rules[0], library)[0].cost.calls == 0


def test_a_derived_predicate_costs_what_its_rules_ask() -> None:
    """A recursive predicate is costed once for each oracle predicate below it."""
    text = """loves(Person X, Area A) & within(Place B, Area A) -> visits(Person X, Place B)
    in_town(Place A, Area B) -> within(Place A, Area B)
    within(Place A, Place B) & within(Place B, Area C) -> within(Place A, Area C)"""

    assert first_plan(text).cost.calls == 4 + 20 * 4


def test_a_variable_out_of_reach_is_refused_by_name() -> None:
    """A variable that is only compared has no plan; the error names it and its place."""
    library = library_of(
        "computed is_before(Year A, Year B) := A < B\n"
        "p(Person X, Year A) & q(Year A, Town D) & is_before(Year A, Year B) -> r(Person X, Town D)"
    )
    rule = library.rules[0]

    assert [variable.name for variable in unreachable_variables(rule, library)] == ["B"]
    with pytest.raises(HapaxError, match="no search order: nothing gives a value to Year B"):
        search_plans(rule, library)


@pytest.mark.parametrize(
    "premise",
    [
        "p(Person X, A A) & q(A A, B B) & r(B B, C C) & s(C C, A A)",  # a cycle
        "p(Person X, A A) & q(A A, B B) & r(A A, C C) & s(A A, D D)",  # a branching
        "p(Person X, A A) & q(A A, B B, C C) & r(B B, C C, D D)",  # any arity
        "p(Person X, A A) & q(B B, C C)",  # two parts
        "p(Person X, A A) & q(A A, B B) & r(A A, B B) & not s(B B, A A)",  # several literals over one pair
    ],
)
def test_any_shape_has_plans(premise: str) -> None:
    """Every premise is closed by each of its plans, whatever its shape."""
    library = library_of(f"{premise} -> t(Person X, B B)")
    rule = library.rules[0]

    for candidate in search_plans(rule, library):
        assert_complete(candidate, rule)


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
    predicates = st.sampled_from(["p", "q", "r"])
    found = draw(st.lists(st.tuples(predicates, chosen), min_size=1, max_size=6, unique_by=str))
    literals = [Literal(Atom(predicate, tuple(arguments))) for predicate, arguments in found]
    variables = [variable for literal in literals for variable in literal.variables]
    comparison = [Comparison("\\=", variables[0], variables[-1])] if draw(st.booleans()) else []
    generic = (variables[0].name,) if draw(st.booleans()) else ()
    premise = (*dict.fromkeys(literals), *comparison)
    return Rule("random", premise, Literal(Atom("c", (variables[0], variables[-1]))), generic=generic)


@settings(deadline=None)
@given(rules())
def test_every_plan_of_a_random_rule_is_complete(rule: Rule) -> None:
    """For any premise, each plan binds all variables and closes all items, and the first is the cheapest."""
    library = Library((rule,)).completed()
    plans = search_plans(rule, library)

    for candidate in plans if plans[0].steps else ():
        assert_complete(candidate, rule)
        assert candidate.cost.calls >= plans[0].cost.calls


RECURSIVE = """in_town(Place A, Place B) -> within(Place A, Place B)
within(Place A, Place B) & within(Place B, Place C) -> within(Place A, Place C)
odd(Place A, Place B) & near(Place A, Place B) -> even(Place A, Place B)
even(Place A, Place B) & near(Place A, Place B) -> odd(Place A, Place B)
"""


def test_recursion_is_found_directly_and_round_a_corner() -> None:
    """A predicate that uses itself and two that use each other are recursive; those below them are not."""
    assert recursive_predicates(library_of(RECURSIVE)) == {"within/2", "odd/2", "even/2"}
    assert recursive_predicates(library_of(TABLE_2)) == frozenset()


def test_strata_put_a_predicate_above_what_it_negates() -> None:
    """A negated predicate is complete one layer below the rule that negates it."""
    text = RECURSIVE + "place(Place A, Place B) & not within(Place A, Place B) -> outside(Place A, Place B)"
    layers = strata(library_of(text))

    assert len(layers) == 2
    assert layers[1] == {"outside/2"}
    assert "within/2" in layers[0]
    assert strata(Library()) == ()


def test_without_a_negated_conclusion_no_graph_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rule files negate no derived predicate: there is no cycle to look for, and `check` starts without a graph."""
    library = library_of(
        """p(T A, T B) & not s(T A, T B) -> r(T A, T B)
        r(T A, T B) & p(T A, T B) -> q(T A, T B)"""
    )
    monkeypatch.setattr("hapax.grammar.dependencies.predicate_graph", lambda _: pytest.fail("a graph was built"))

    assert negative_cycles(library) == ()


def test_a_rule_of_comparisons_alone_is_evaluated_too() -> None:
    """The conclusion of a rule without literals has its layer."""
    assert evaluation_layers(library_of("A = 3 -> p(Number A)")) == (frozenset({"p/1"}),)


def test_a_predicate_on_its_own_negation_has_no_stratum() -> None:
    """The cycle is reported once per group of predicates."""
    library = library_of(
        """p(T A, T B) & not q(T A, T B) -> r(T A, T B)
        r(T A, T B) & s(T A, T B) -> q(T A, T B)
        s(T A, T B) & not w(T A, T B) -> w(T A, T B)"""
    )

    assert negative_cycles(library) == (("r/2", "q/2", "r/2"), ("w/2", "w/2"))
    with pytest.raises(HapaxError, match="depends on its own negation"):
        strata(library)


def test_the_graph_joins_variables_through_literals() -> None:
    """Variables and literals are nodes; the conclusion is the last literal."""
    graph = dependency_graph(library_of(TABLE_2).rules[0])

    assert sorted(graph[1]) == ["B", "Z"]
    assert graph.nodes[3]["conclusion"]
    assert graph.nodes["X"]["generic"]


def test_graph_texts() -> None:
    """The same graph to read, for Mermaid and for Graphviz."""
    library = library_of(
        '@name c\nlikes(Person X, Dish A) & is_in(Dish A, Menu B) & A \\= "no \\"1\\" <b>" -> buys(Person X, Menu B)'
    )
    rule = library.rules[0]

    assert graph_text(rule, library).splitlines() == [
        "c",
        "  Person X (generic, never searched)",
        "  Dish A",
        "  Menu B",
        "  X -- A: likes(X, A) [oracle]",
        "  A -- B: is_in(A, B) [oracle]",
        '  A: A \\= "no \\"1\\" <b>" [comparison]',
        "  X -- B: buys(X, B) [conclusion]",
    ]
    mermaid = graph_text(rule, library, "mermaid")
    assert mermaid.startswith('graph LR\n  X(["Person X"])\n')
    assert "<b>" not in mermaid
    dot = graph_text(rule, library, "dot")
    assert dot.startswith('graph "c" {\n  X [label="Person X", shape=ellipse, style=dashed];\n')
    assert '\\"no \\\\\\"1' in dot


def test_a_step_names_the_literals_that_it_completes() -> None:
    """The text of a step has its variable, the literal that is asked, and those whose values are all known then."""
    library = parse_library([("table2.rules", TABLE_2)])

    assert [str(step) for step in plan(library.rules[0], library).steps] == [
        "Z by is_ingredient_in(Z, B)",
        "A by is_one_type_of(Z, A), then is_allergic_to(X, A)",
        "B by is_ingredient_in(Z, B)",
    ]


def test_a_generic_variable_is_not_searched() -> None:
    """The variables to be searched are those of the rule, in order, without the generic ones."""
    (rule,) = parse_library([("table2.rules", TABLE_2)]).rules

    assert [variable.name for variable in rule.searched] == ["A", "Z", "B"]
