"""The planner: figures of a plan by hand, and beside those of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
from search_fixture import ALLERGY, OLDER, VOCABULARY

from hapax.engine.gates.inquiry import Inquiry, QuestionAnswer
from hapax.engine.inference.theory import Theory
from hapax.engine.prolog.session import PrologSession
from hapax.engine.search.demand_loop import DemandBudget, DemandResult, Missing, missing_questions, run_demand
from hapax.engine.search.estimate import estimate_run
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.parsing.parser import load_library, parse_goal, parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value
from hapax.kb.records import ATTEMPTS, AtomPattern, AttemptRecord, Outcome, Question
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Price, ServerPace
from hapax.llm_oracle.protocols import Models, Usage
from hapax.llm_oracle.questions.prompts import critic_prompt
from hapax.llm_oracle.scripts.simulated import SimulatedModel, SimulatedWorld, SimulationSettings

SMALL = SimulationSettings(entities_per_type=40, facts_per_argument=6.0)
SETTINGS = SearchSettings(beam=8, calls_per_question=2, values_per_call=15)


def library_of(*texts):
    """Rules that need not pass all checks."""
    return parse_library([("test.rules", "\n".join((VOCABULARY, *texts)))])


def prepared(*texts):
    library = library_of(*texts)
    model = SimulatedModel(SimulatedWorld(library, 1, SMALL))
    return library, model, Models(model, model, model, model)


class Served:
    """A simulated model that reports the tokens of whole prompts, as servers do."""

    def __init__(self, model):
        self.model, self.identity = model, model.identity

    def generate(self, requests, parameters):
        answers = self.model.generate(requests, parameters)
        usages = (
            Usage(len(request.prompt) // 4, len(answer.text) // 4)
            for request, answer in zip(requests, answers, strict=True)
        )
        return [replace(answer, usage=usage) for answer, usage in zip(answers, usages, strict=True)]

    def probabilities(self, claims):
        answers = zip(claims, self.model.probabilities(claims), strict=True)
        return [replace(answer, usage=Usage(len(critic_prompt(claim)) // 4, 1)) for claim, answer in answers]

    def log_likelihoods(self, texts):
        answers = zip(texts, self.model.log_likelihoods(texts), strict=True)
        return [replace(answer, token_count=len(text) // 4) for text, answer in answers]


@pytest.mark.parametrize("beam", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_the_expected_figures_are_near_what_a_search_takes(beam):
    """Over the shipped rules calls and tokens of paid roles are within a factor of 1.3, other calls within 2."""
    library = load_library([Path(__file__).parents[4] / "rules"])
    rules = [rule for rule in library.rules if not library.is_definition(rule)][::3]
    model = SimulatedModel(SimulatedWorld(library, 3))
    served = Served(model)
    models = Models(served, served, model, model)
    wanted = SearchSettings(beam=beam)
    with KnowledgeBase() as kb:
        estimate = estimate_run(SearchJob(library, rules, kb, models, wanted))
        spent = search(SearchJob(library, rules, kb, models, wanted)).statistics

    for role, estimated in estimate.roles.items():
        assert spent[role].calls / 2 <= estimated.calls <= 2 * spent[role].calls, role
    for role in ("knowledge", "critic"):
        assert spent[role].calls / 1.3 <= estimate.roles[role].calls <= 1.3 * spent[role].calls, role
        assert spent[role].tokens / 1.3 <= estimate.roles[role].tokens <= 1.3 * spent[role].tokens, role


@pytest.mark.parametrize("path", ["allergy/my.rules", "models/dish.rules"])
def test_calls_and_tokens_of_all_roles_are_foreseen(path):
    """On a server that counts whole prompts and texts, each role takes what was expected, within a factor of 1.3."""
    library = load_library([Path(__file__).parents[4] / "examples" / path])
    served = Served(SimulatedModel(SimulatedWorld(library, 7)))
    models, wanted = Models(served, served, served, served), SearchSettings(beam=60)
    with KnowledgeBase() as kb:
        estimate = estimate_run(SearchJob(library, library.rules, kb, models, wanted))
        spent = search(SearchJob(library, library.rules, kb, models, wanted)).statistics

    for role, used in spent.items():
        assert used.calls / 1.3 <= estimate.roles[role].calls <= 1.3 * used.calls, role
        assert used.tokens / 1.3 <= estimate.roles[role].tokens <= 1.3 * used.tokens, role


def test_a_comparison_lets_half_of_the_expected_beams_pass():
    """A rule whose comparison may fail is expected to give half the statements of the same rule without it."""
    free = OLDER.replace(" & W < V", "").replace("older_tool", "any_tool")
    library, _, models = prepared(OLDER, free)
    with KnowledgeBase() as kb:
        estimate = estimate_run(
            SearchJob(library, library.rules, kb, models, SearchSettings(beam=1000, likelihood="random"))
        )
    compared, uncompared = (rule.statements for rule in estimate.rules)

    assert compared == pytest.approx(uncompared / 2, rel=0.01)


def test_money_needs_every_price():
    """Cost follows the price table; one unknown price makes the whole unknown, not zero."""
    library, model, models = prepared(ALLERGY)
    name = model.identity.name
    with KnowledgeBase() as kb:
        priced = estimate_run(SearchJob(library, library.rules, kb, models, SETTINGS), prices={name: Price(1.0, 2.0)})
        unpriced = estimate_run(SearchJob(library, library.rules, kb, models, SETTINGS))

    assert priced.cost is not None
    assert priced.cost > 0
    assert unpriced.cost is None


def test_repeated_requests_are_expected_again(fresh_kb: KnowledgeBase) -> None:
    """Of 50 requests to the critic 40 were answered: a fourth more calls are expected, with their tokens and money."""
    library, model, models = prepared(ALLERGY)
    name = model.identity.name
    prices = {name: Price(1e6, 0.0)}
    before = estimate_run(SearchJob(library, library.rules, fresh_kb, models, SETTINGS), prices=prices).roles
    for outcome, count in ((Outcome.ANSWERED, 40), (Outcome.UNUSABLE, 10), (Outcome.QUEUED, 7), (Outcome.UNSENT, 3)):
        attempts = (
            AttemptRecord(f"{outcome}{number}", "critic", name, "x", "2026", "2026", outcome, 30, 2, 0.1)
            for number in range(count)
        )
        fresh_kb.add(ATTEMPTS, attempts)
    after = estimate_run(SearchJob(library, library.rules, fresh_kb, models, SETTINGS), prices=prices).roles
    calls = ceil(before["critic"].calls * 50 / 40)

    assert after["critic"].calls == calls
    assert after["critic"].tokens == 32 * calls
    assert after["critic"].cost == 30 * calls
    assert after["knowledge"] == before["knowledge"]


@pytest.mark.parametrize(
    ("pace", "requests", "rounds", "seconds"),
    [
        (ServerPace(1, latency=0.5), 100, 4, 50.0),
        (ServerPace(10, latency=0.5), 100, 1, 5.225),
        (ServerPace(10, latency=0.5), 4, 4, 2.0),
        (ServerPace(10, latency=0.5, speed=10), 100, 1, 15.675),
        (ServerPace(10, rpm=60), 100, 1, 100.0),
        (ServerPace(10, rpm=60, latency=0.5), 100, 1, 100.0),
        (ServerPace(10, tpm=600), 10, 1, 50.0),
        (ServerPace(10), 100, 1, None),
        (ServerPace(10), 0, 1, 0.0),
    ],
)
def test_wall_time_follows_from_limits_and_latency(pace, requests, rounds, seconds):
    """The slowest of requests per minute, tokens per minute, and rounds of as many at a time as are allowed."""
    found = pace.seconds(requests, Usage(40, 10), rounds)

    assert found == (None if seconds is None else pytest.approx(seconds))


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
        ("forall(member(P, [a, b]), borders(P, c))", {(None, "c")}),
    ],
)
def test_what_only_prolog_answers_has_its_atoms_asked_for(
    fresh_kb: KnowledgeBase, library: Library, goal: str, asked: set[tuple[Value | None, ...]]
) -> None:
    """A list of choices gives its values; what is inside a condition or a collection is asked for as well."""
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
    assert result.result.rows == []
    assert "limit" in result.stopped


@pytest.mark.parametrize("goal", ["aggregate_all(count, borders(_, _), N)", "is_not_able_to_eat(tom, X)"])
def test_aggregates_and_negation_in_rules_are_withheld(demand: Demand, goal: str) -> None:
    """Counting what is not known yet, or negation anywhere in the rules below, is no answer either."""
    result = demand(goal, Table(), DemandBudget(questions=1), ["is_allergic_to(tom, shellfish)"])

    assert not result.complete
    assert result.result.rows == []


def test_positive_answers_stand_when_the_budget_ends(demand: Demand) -> None:
    """Without negation, what is known is true whatever else is asked: it is answered, marked incomplete."""
    result = demand("reaches(a, X)", Table(), DemandBudget(questions=2))

    assert result.result.rows == [("b",), ("c",)]
    assert not result.complete


def test_a_shared_variable_and_denied_atoms_are_verified(demand: Demand) -> None:
    """`borders(X, X)` proposes values for X and judges each pair; true atoms hold, refused ones do not."""
    shared, denied = demand("borders(X, X)", Table()), demand("borders(a, b), \\+ borders(b, a)", Table())

    assert (shared.complete, shared.result.holds) == (True, False)
    assert denied.result.holds
