"""Declared properties, closedness, disjoint types and constraints: text, meaning as rules, and round trips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.checks import check_library
from hapax.grammar.closedness import Closedness
from hapax.grammar.declarations import (
    ClosedDeclaration,
    Constraint,
    Declaration,
    DisjointTypes,
    Property,
    PropertyDeclaration,
)
from hapax.grammar.errors import RulesRejected
from hapax.grammar.parser import parse_library
from hapax.grammar.printing import format_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Comparison, Constant, Literal, Variable

PREDICATES = ("borders/2", "is_part_of/2", "closed/1", "never_met/2")
TYPES = ("Country", "Food Allergen", "closed shop")

properties = st.builds(PropertyDeclaration, st.sampled_from(Property), st.sampled_from(PREDICATES))
closed = st.builds(
    ClosedDeclaration,
    st.sampled_from(PREDICATES),
    st.sampled_from((Closedness.CLOSED, Closedness.CLOSED_FOR_FIRST)),
)
disjoint = st.builds(DisjointTypes, st.sampled_from(TYPES), st.sampled_from(TYPES))
variables = st.sampled_from([Variable(name, TYPES[0]) for name in "AB"])
terms = variables | st.builds(Constant, st.sampled_from(("never", 'quote "', 3)))
literals = st.builds(
    lambda name, left, right, negated: Literal(Atom(name, (left, right)), negated),
    st.sampled_from(("borders", "never", "closed", "symmetric")),
    terms,
    terms,
    st.booleans(),
)
comparisons = st.builds(Comparison, st.sampled_from(("<", "=", "\\=")), variables, terms)


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    """A constraint whose variables all have a type."""
    bound = Literal(Atom("lies_near", (Variable("A", TYPES[0]), Variable("B", TYPES[0]))))
    return Constraint((bound, *draw(st.lists(literals | comparisons, max_size=3))))


@given(others=st.lists(properties | closed | disjoint, max_size=5), forbidden=st.lists(constraints(), max_size=3))
def test_declarations_come_back_as_they_were(others: list[Declaration], forbidden: list[Constraint]) -> None:
    """A library that is printed and read again has the same declarations; constraints are read last."""
    library = Library(declarations=(*others, *forbidden))

    assert parse_library([("f.rules", format_library(library))]).declarations == library.declarations


def test_disjoint_types_of_a_word_each_need_no_comma() -> None:
    """`disjoint City Country` is `disjoint City, Country`; more words need the comma."""
    assert parse_library([("f.rules", "disjoint City Country")]).declarations == (DisjointTypes("City", "Country"),)
    with pytest.raises(RulesRejected, match="HPX058"):
        parse_library([("f.rules", "disjoint Food Allergen Person")])


def test_keywords_stay_names_of_predicates() -> None:
    """A predicate may be called never, closed or symmetric."""
    text = "never(Person X, Shop A) & closed(Shop A) & symmetric(Shop A, Shop B) -> transitive(Person X, Shop B)"

    assert [atom.predicate for atom in parse_library([("f.rules", text)]).rules[0].atoms] == [
        *("never", "closed", "symmetric", "transitive")
    ]


def test_of_two_closednesses_the_stronger_holds() -> None:
    """A predicate that is closed altogether is closed for each first argument as well."""
    library = parse_library([("f.rules", "closed p/2 by 1\nclosed p/2\nclosed p/2 by 1\nclosed q/2 by 1")])

    assert [library.closedness(name) for name in ("p/2", "q/2", "r/2")] == [
        *(Closedness.CLOSED, Closedness.CLOSED_FOR_FIRST, Closedness.OPEN)
    ]


@pytest.mark.parametrize(
    ("types", "is_possible"),
    [
        ("Town, Town", True),
        ("Town, Place", True),
        ("Place, Person", False),
        ("Town, Dish", False),
        ("Town", False),
        ("Town, Town, Town", False),
    ],
)
def test_a_property_needs_two_arguments_of_which_one_type_covers_both(types: str, is_possible: bool) -> None:
    """A predicate is symmetric or transitive only if a value of its first argument may stand at the second."""
    arity = types.count(",") + 1
    library = parse_library([("f.rules", f"type Town < Place\noracle p({types})\ntransitive p/{arity}")])

    assert ("HPX120" not in {found.code for found in check_library(library)}) is is_possible


def test_what_a_property_forbids_has_the_types_of_the_predicate() -> None:
    """An asymmetric predicate forbids a pair and its mirror, each variable of the type at its first place."""
    library = parse_library([("f.rules", "type Town < Place\noracle lies_in(Town, Place)\nasymmetric lies_in/2")])

    (constraint,) = library.constraints
    assert [str(item) for item in constraint.premise] == ["lies_in(Town A, Place B)", "lies_in(Place B, Town A)"]


def test_an_oracle_predicate_is_open_until_it_is_closed_or_derived() -> None:
    """Only declared oracle predicates are open: given, derived and undeclared ones are false where they are absent."""
    library = parse_library([(
        "f.rules",
        "oracle p(T, T)\nfunctional f(T, T)\noracle c(T, T)\nclosed c/2\ngiven g(T, T)\noracle d(T, T)\n"
        "p(T A, T B) & u(T A, T B) -> d(T A, T B)",
    )])  # fmt: skip

    assert [name for name in ("p/2", "f/2", "c/2", "g/2", "d/2", "u/2") if library.is_open(name)] == ["p/2", "f/2"]


def test_stated_facts_are_compared_with_disjoint_types() -> None:
    """A text that stated facts have under disjoint types is an error with these facts; a number is none."""
    library = parse_library([(
        "f.rules",
        "disjoint Animal, Plant\ntype Dog < Animal\ndisjoint Year, Height\n"
        "given barks_at(Dog, Plant)\ngiven grows_in(Plant, Place)\ngiven sank_in(Ship, Year)\ngiven rises(Hill, Height)\n"
        'fact barks_at("Rose", "Oak")\nfact grows_in("Rose", "Oslo")\nfact barks_at("Fern", "Fern")\n'
        'fact barks_at("Rex", "Ivy")\nfact sank_in("Vasa", 1628)\nfact rises("Kekes", 1628)',
    )])  # fmt: skip

    found = [item for item in check_library(library) if item.code == "HPX123"]

    assert [(item.place.line, item.message) for item in found] == [
        (1, 'barks_at("Rose", "Oak") and grows_in("Rose", "Oslo") break "disjoint Animal, Plant"'),
        (1, 'barks_at("Fern", "Fern") breaks "disjoint Animal, Plant"'),
    ]


@pytest.mark.parametrize(
    ("death", "constraint", "codes"),
    [
        (1800, "A < B", ["HPX123"]),
        (1880, "A < B", []),
        (1940, "A - B > 120", ["HPX123"]),
        (1900, "A - B > 120", []),
        (1815, "A = B", ["HPX123"]),
        (1815, "A \\= B", []),
    ],
)
def test_stated_facts_are_compared_with_a_constraint(death: int, constraint: str, codes: list[str]) -> None:
    """A constraint with comparisons is broken by stated facts whose values satisfy them."""
    library = parse_library([(
        "f.rules",
        f"given was_born_in(Poet, Year)\ngiven died_in(Poet, Year)\n"
        f"never died_in(Poet X, Year A) & was_born_in(Poet X, Year B) & {constraint}\n"
        f'fact died_in("Ada", {death})\nfact was_born_in("Ada", 1815)\nfact was_born_in("Ben", 1700)',
    )])  # fmt: skip

    assert [found.code for found in check_library(library) if found.code < "HPX2"] == codes


def test_a_rule_with_the_name_of_a_closure_does_not_replace_it() -> None:
    """A declaration's rule joins the library once, also where a rule of the user has its name."""
    text = (
        "given near(Place, Place).\nsymmetric near/2.\n"
        '@name "symmetric near/2"\nlikes(Person X, Place A) & near(Place A, Place B) -> likes_too(Person X, Place B)\n'
    )
    library = parse_library([("near.rules", text)])
    closed = library.with_closure()

    assert [rule.by_declaration for rule in closed.rules] == [False, True]
    assert closed.with_closure() is closed
