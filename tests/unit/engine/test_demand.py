"""The demand loop: which questions a goal needs, and that nothing uncertain is answered before they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.search.demand import DemandBudget, DemandResult, Missing, missing_questions, run_demand
from hapax.engine.search.inquiry import Inquiry, QuestionAnswer
from hapax.grammar.parser import parse_goal, parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value
from hapax.kb.records import AtomPattern, Question
from hapax.kb.store import KnowledgeBase

RULES = """
oracle is_ingredient_in(Ingredient, Dish).
oracle falls_under(Ingredient, Food Allergen).
functional was_invented_in(Thing, Year).
given is_recalled(Ingredient).
is_allergic_to(Person X, Food Allergen A) & falls_under(Ingredient Z, Food Allergen A)
  & is_ingredient_in(Ingredient Z, Dish B)
  & not is_recalled(Ingredient Z) -> is_not_able_to_eat(Person X, Dish B).
oracle borders(Place, Place).
borders(Place A, Place B) -> reaches(Place A, Place B).
borders(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C).
"""
WORLD: set[tuple[str, tuple[Value, ...]]] = {
    ("falls_under", ("shrimp", "shellfish")),
    ("falls_under", ("crab", "shellfish")),
    ("is_ingredient_in", ("shrimp", "paella")),
    ("is_ingredient_in", ("crab", "bisque")),
    ("borders", ("a", "b")),
    ("borders", ("b", "c")),
    ("borders", ("c", "a")),
    ("was_invented_in", ("wheel", -3500)),
}


class Table:
    """An oracle that knows WORLD and writes down what it was asked."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.atoms: list[Atom] = []

    def answers(self, inquiries: Sequence[Inquiry]) -> Mapping[Inquiry, QuestionAnswer]:
        return {inquiry: self._answer(inquiry) for inquiry in inquiries}

    def _answer(self, inquiry: Inquiry) -> QuestionAnswer:
        assert inquiry.question not in self.questions
        self.questions.append(inquiry.question)
        (pattern,) = inquiry.question.patterns
        free = pattern.arguments.index(None)
        fits = [
            values[free]
            for name, values in sorted(WORLD, key=repr)
            if name == pattern.predicate
            and all(
                want is None or want == got or str(want)[:1] == "["
                for want, got in zip(pattern.arguments, values, strict=True)
            )
        ]
        return QuestionAnswer(dict.fromkeys(fits, 1.0))

    def verify(self, atoms: Sequence[Atom]) -> Mapping[Atom, bool]:
        assert not set(atoms) & set(self.atoms)
        self.atoms.extend(atoms)
        return {
            atom: (atom.predicate, tuple(term.value for term in atom.arguments if isinstance(term, Constant))) in WORLD
            for atom in atoms
        }


@pytest.fixture(scope="module")
def library() -> Library:
    return parse_library([("f.rules", RULES)])


Demand = Callable[..., DemandResult]


@pytest.fixture
def demand(prolog: PrologSession, library: Library, fresh_kb: KnowledgeBase) -> Demand:
    """Runs a goal to the end of a budget, by default without one."""

    def run(goal: str, oracle: Table, budget: DemandBudget | None = None, assume: Sequence[str] = ()) -> DemandResult:
        return run_demand(Theory(library, fresh_kb, tuple(assume)), goal, oracle, budget, session=prolog)

    return run


def question(predicate: str, data_type: str, *arguments: Value | None, functional: bool = False) -> Question:
    return Question((AtomPattern(predicate, arguments),), data_type, functional)


def missing(kb: KnowledgeBase, library: Library, goal: str) -> Missing:
    return missing_questions(Theory(library, kb), parse_goal(goal, library))


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("is_ingredient_in(X, paella)", question("is_ingredient_in", "Ingredient", None, "paella")),
        ("is_ingredient_in(shrimp, X)", question("is_ingredient_in", "Dish", "shrimp", None)),
        ("is_ingredient_in(X, Y)", question("is_ingredient_in", "Ingredient", None, "[B]")),
        ("was_invented_in(wheel, Y)", question("was_invented_in", "Year", "wheel", None, functional=True)),
        ("was_invented_in(T, 1876)", question("was_invented_in", "Thing", None, 1876)),
        ("\\+ borders(a, X)", question("borders", "Place", "a", None)),
        ("aggregate_all(count, borders(a, _), N)", question("borders", "Place", "a", None)),
    ],
)
def test_questions_by_what_is_free(fresh_kb: KnowledgeBase, library: Library, goal: str, expected: Question) -> None:
    """One free argument asks for it; several ask for values of the first one's type first."""
    assert missing(fresh_kb, library, goal).questions == {expected}


def test_rounds_go_on_until_nothing_is_missing(demand: Demand) -> None:
    """The answers of one round lead to the questions of the next; each is asked once."""
    table = Table()
    result = demand("is_not_able_to_eat(tom, X)", table, assume=["is_allergic_to(tom, shellfish)"])
    asked = [question.patterns[0].arguments for question in table.questions]

    assert result.result.rows == [("bisque",), ("paella",)]
    assert result.complete
    assert result.rounds == 2
    assert asked == [(None, "shellfish"), ("crab", None), ("shrimp", None)]


@pytest.mark.parametrize(
    ("goal", "asked"),
    [
        ("member(D, [paella, soup]), is_ingredient_in(I, D)", {(None, "paella"), (None, "soup")}),
        ("findall(P, borders(a, P), L), length(L, N)", {("a", None)}),
        ("(is_ingredient_in(I, paella) -> I \\= x ; is_ingredient_in(I, soup))", {(None, "paella"), (None, "soup")}),
        ("forall(member(P, [a, b]), borders(P, c))", {("a", "c"), ("b", "c")}),
    ],
)
def test_what_prolog_binds_before_a_call_is_known_to_it(
    fresh_kb: KnowledgeBase, library: Library, goal: str, asked: set[tuple[Value | None, ...]]
) -> None:
    """A built-in before a call gives its values; what is inside a condition or a collection is asked for as well."""
    found = missing(fresh_kb, library, goal)
    patterns = {need.pattern.arguments for need in found.needs}
    atoms = {tuple(term.value for term in atom.arguments if isinstance(term, Constant)) for atom in found.atoms}

    assert patterns | atoms == asked


def test_recursion_asks_along_the_way(demand: Demand) -> None:
    """A recursive goal over a cycle asks for each place once and ends."""
    table = Table()
    result = demand("reaches(a, X)", table)

    assert result.result.rows == [("a",), ("b",), ("c",)]
    assert {question.patterns[0].arguments for question in table.questions} == {("a", None), ("b", None), ("c", None)}


def test_uncertain_negation_is_withheld(demand: Demand) -> None:
    """While something is missing, a negation that only lacks its fact is not answered."""
    result = demand("\\+ borders(a, b)", Table(), DemandBudget(verifications=0))

    assert not result.complete
    assert result.withheld
    assert result.result.rows == []
    assert "limit" in result.stopped


@pytest.mark.parametrize("goal", ["aggregate_all(count, borders(_, _), N)", "is_not_able_to_eat(tom, X)"])
def test_aggregates_and_negation_in_rules_are_withheld(demand: Demand, goal: str) -> None:
    """Counting what is not known yet, or negation anywhere in the rules below, is no answer either."""
    assert demand(goal, Table(), DemandBudget(questions=1), ["is_allergic_to(tom, shellfish)"]).withheld


def test_positive_answers_stand_when_the_budget_ends(demand: Demand) -> None:
    """Without negation, what is known is true whatever else is asked: it is answered, marked incomplete."""
    result = demand("reaches(a, X)", Table(), DemandBudget(questions=2))

    assert result.result.rows == [("b",), ("c",)]
    assert not result.complete
    assert not result.withheld


def test_a_shared_variable_and_denied_atoms_are_verified(demand: Demand) -> None:
    """`borders(X, X)` proposes values for X and judges each pair; true atoms hold, refused ones do not."""
    shared, denied = demand("borders(X, X)", Table()), demand("borders(a, b), \\+ borders(b, a)", Table())

    assert (shared.complete, shared.result.holds) == (True, False)
    assert denied.result.holds
