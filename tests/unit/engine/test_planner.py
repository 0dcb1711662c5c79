"""The planner: figures of a plan by hand, and that no search goes beyond its upper limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases
from search_fixture import ALLERGY, HARMLESS, OLDER, RECURSIVE, VOCABULARY

from hapax.engine.search.expectation import KEYED, LARGE, OPEN, ExpectedBeams, Experience, type_size
from hapax.engine.search.job import SearchJob
from hapax.engine.search.plan import plan_run
from hapax.engine.search.search import DEMAND, search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.parser import load_library, parse_library
from hapax.kb.records import CallRecord, RunRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Price
from hapax.llm_oracle.pace import ServerPace
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, Models, Usage
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

SMALL = SimulationSettings(entities_per_type=40, facts_per_argument=6.0)
SETTINGS = SearchSettings(beam=8, calls_per_question=2, values_per_call=15)
PESTS = """
type Bird < Animal.
type Frog < Animal.
type Hedgehog < Animal.
given fights(Person, Pest): "[1] fights [2]"
given likes(Person, Bird): "[1] likes [2]"
given should_keep(Person, Animal): "[1] should keep [2]"
given should_allow(Person, Pest): "[1] should allow [2]"
oracle is_welcome_against(Animal, Pest): "[1] is welcome against [2]"
oracle feeds_on(Bird, Pest): "[1] feeds on [2]"

@name drive_away
fights(Person X, Pest A) & is_welcome_against(Animal B, Pest A) -> should_keep(Person X, Animal B).

@name feed
fights(Person X, Pest A) & feeds_on(Bird B, Pest A) -> should_keep(Person X, Bird B).
"""
REPAIRS = """
oracle is_part_of(Part, Part): "[1] is part of [2]" / "[1] is not part of [2]" / "?".
given repairs(Person, Part)
given works_on(Person, Part)

@name part
is_part_of(Part A, Part B) -> belongs_to(Part A, Part B).

@name repair
repairs(Person X, Part A) & belongs_to(Part A, Part B) -> can_work_on(Person X, Part B).

@name novice
repairs(Person X, Part A) & works_on(Person X, Part B) & not belongs_to(Part A, Part B) -> is_new_to(Person X, Part B).
"""


def library_of(*texts):
    """Rules that need not pass all checks."""
    return parse_library([("test.rules", "\n".join((VOCABULARY, *texts)))])


def prepared(*texts):
    library = library_of(*texts)
    model = SimulatedModel(SimulatedWorld(library, 1, SMALL))
    return library, model, Models(model, model, model, model)


@settings(max_examples=cases(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=st.sampled_from([ALLERGY, OLDER, HARMLESS, RECURSIVE, ALLERGY + HARMLESS]),
    seed=st.integers(0, 50),
    wanted=st.builds(
        SearchSettings,
        beam=st.integers(1, 6),
        keep_share=st.sampled_from([None, 0.3, 0.5]),
        ends=st.sampled_from([None, "overlapping"]),
        calls_per_question=st.integers(1, 3),
        values_per_call=st.integers(1, 8),
        compat=st.sampled_from([None, "paper", "released"]),
        critic=st.booleans(),
        likelihood=st.sampled_from(["model", "random"]),
    ),
    before=st.booleans(),
)
def test_no_search_goes_beyond_the_upper_bound(text, seed, wanted, before):
    """Whatever the rules, the world and the settings, and whatever another search has left in the journal."""
    library = library_of(text)
    rules = [rule for rule in library.rules if not library.is_definition(rule)]
    # A malformed line may hold a value more than was asked for, and the bound is for models that keep to the number.
    model = SimulatedModel(SimulatedWorld(library, seed, replace(SMALL, malformed=0.0)))
    models = Models(model, model, model, model)
    with KnowledgeBase() as kb:
        if before:
            search(
                SearchJob(library, rules, kb, models, SearchSettings(beam=2, calls_per_question=1, values_per_call=3))
            )
        estimate = plan_run(library, rules, kb, models, wanted)
        report = search(SearchJob(library, rules, kb, models, wanted))

    for role, spent in report.statistics.items():
        assert spent.calls <= estimate.roles[role].calls.most, role


@pytest.mark.parametrize("beam", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_the_expected_figures_are_near_what_a_search_takes(beam):
    """Over the shipped rules, in a simulated world, within a factor of 2 in each role; the bound holds there, too."""
    library = load_library([Path(__file__).parents[3] / "rules"])
    rules = [rule for rule in library.rules if not library.is_definition(rule)][::3]
    model = SimulatedModel(SimulatedWorld(library, 3))
    models = Models(model, model, model, model)
    wanted = SearchSettings(beam=beam)
    with KnowledgeBase() as kb:
        estimate = plan_run(library, rules, kb, models, wanted)
        spent = search(SearchJob(library, rules, kb, models, wanted)).statistics

    for role, estimated in estimate.roles.items():
        assert spent[role].calls / 2 <= estimated.calls.expected <= 2 * spent[role].calls, role
        assert spent[role].calls <= estimated.calls.most, role


def test_a_comparison_lets_half_of_the_expected_beams_pass():
    """A rule whose comparison may fail is expected to give half the statements of the same rule without it."""
    free = OLDER.replace(" & W < V", "").replace("older_tool", "any_tool")
    library, _, models = prepared(OLDER, free)
    with KnowledgeBase() as kb:
        estimate = plan_run(library, library.rules, kb, models, SearchSettings(beam=1000, likelihood="none"))
    compared, uncompared = (rule.statements.expected for rule in estimate.rules)

    assert compared == pytest.approx(uncompared / 2, rel=0.01)


def test_a_type_with_subtypes_has_the_values_of_all_of_them():
    """Which animals a pest fears brings more values than which pests an animal fears; an open question counts its type."""
    library = library_of(PESTS)
    experience = Experience(LARGE, SearchSettings())

    def claims(rule: str) -> list[int]:
        with KnowledgeBase() as kb:
            _, _, models = prepared(PESTS)
            estimate = plan_run(library, [library.rule(rule)], kb, models, SearchSettings())
        return [step.claims.expected for step in estimate.rules[0].steps]

    assert type_size(library, "Animal") == 3
    assert type_size(library, "Bird") == type_size(library, "Pest") == 1
    keyed, open_question = experience.of(KEYED, 3.0), experience.of(OPEN, 3.0)
    assert keyed.proposed == pytest.approx(3 * experience.of(KEYED).proposed)
    assert open_question.proposed == 200  # what its calls can bring
    assert claims("drive_away")[-1] > 2 * claims("feed")[-1]


def test_a_cut_by_rank_keeps_the_values_of_the_beams_that_stay():
    """Of 40 values with five beams each, a fifth of the beams holds about 27, not 40."""
    rows = ExpectedBeams(SearchSettings(beam=20))
    rows.begin(1, {})
    rows.extend("A", 40, 1)
    rows.extend("B", 5, rows.keys(["A"]))
    rows.rank(20, ranked=True)

    assert rows.together == 40
    assert 26 < rows.distinct["A"] < 28


def test_money_needs_every_price():
    """Cost follows the price table; one unknown price makes the whole unknown, not zero."""
    library, model, models = prepared(ALLERGY)
    name = model.identity.name
    with KnowledgeBase() as kb:
        priced = plan_run(library, library.rules, kb, models, SETTINGS, prices={name: Price(1.0, 2.0)})
        unpriced = plan_run(library, library.rules, kb, models, SETTINGS)

    assert priced.cost is not None
    assert 0 < priced.cost[0] <= priced.cost[1]
    assert unpriced.cost is None


def test_the_demand_loop_limits_what_a_derived_premise_may_ask():
    """In each goal of 200 atoms the loop asks 20,000 questions at most, and checks as many facts."""
    library = library_of(REPAIRS)
    _, _, models = prepared(REPAIRS)
    settings = replace(SETTINGS, calls_per_question=2, values_per_call=15)
    with KnowledgeBase() as kb:
        found, denied = plan_run(library, [library.rule("repair"), library.rule("novice")], kb, models, settings).rules

    first, second = found.steps
    assert first.questions.most == DEMAND.questions == 20_000
    assert first.calls.most == 2 * 20_000  # two calls a question
    assert first.claims.most == 2 * 30 * 20_000 + DEMAND.verifications  # a type and a fact for each of 30 values
    assert first.values.most == 30 * 20_000
    assert second.values.most == 2 * settings.beam * 30 * 20_000  # both ends are kept
    # 480 pairs of both values need three goals; the value before them has questions of its own.
    assert denied.steps[1].values.most == 2 * settings.beam * 30 == 480
    assert denied.steps[1].questions.most == 2 * settings.beam + 3 * 20_000
    assert denied.steps[1].claims.most == 2 * 480 + 3 * (2 * 30 * 20_000 + 20_000)
    # Half of the expected pairs pass the premise.
    assert denied.steps[1].values.expected == 240


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


def test_wall_time_of_a_model_in_this_process_follows_from_its_answers():
    """Each answer took the time since the one before it or since its run began; long pauses lie between runs."""
    library, model, models = prepared(ALLERGY)
    moments = ["10:00:04", "10:00:04", "10:00:06", "12:00:00", "12:00:02"]
    calls = []
    for number, moment in enumerate(moments):
        created = f"2026-01-01T{moment}+00:00"
        calls.append(CallRecord(str(number), KNOWLEDGE, model.identity.title, {}, {}, created=created))
    with KnowledgeBase() as kb:
        unknown = plan_run(library, library.rules, kb, models, SETTINGS).roles[KNOWLEDGE]
        kb.start_run(RunRecord("r", "search", {}, "f", "2026-01-01T10:00:00.000000+00:00"))
        kb.record_calls(calls)
        known = plan_run(library, library.rules, kb, models, SETTINGS).roles

    assert unknown.seconds is None
    assert known[CRITIC].seconds is None  # its answers are not there
    assert known[KNOWLEDGE].seconds == pytest.approx(
        (2 * known[KNOWLEDGE].calls.expected, 2 * known[KNOWLEDGE].calls.most)
    )
