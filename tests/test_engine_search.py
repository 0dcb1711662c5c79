"""Knowledge beam search on a simulated world and on scripted models."""

import gc
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.engine.certificates import Promise
from hapax.engine.search.beams import RuleSearch, substitution_subject
from hapax.engine.search.inquiry import Inquiry, QuestionAnswer
from hapax.engine.search.job import SearchJob
from hapax.engine.search.progress import ProgressCounter
from hapax.engine.search.report import PackedStatements, Unanswerable
from hapax.engine.search.search import search, unanswerable
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import CriticRule
from hapax.evaluation.link.ablation import Experiment, ablation
from hapax.evaluation.link.judging import GroundTruth
from hapax.grammar.dependencies import plan
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Constant
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.answers import MOST_LINES
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import ModelIdentity, Models
from hapax.llm_oracle.scripted import ScriptedModel
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

VOCABULARY = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "?".
oracle is_one_type_of(Ingredient, Allergen): "[1] is one type of [2]" / "[1] is not one type of [2]" / "?".
functional was_invented_in(Tool, Year): "the [1] was invented in [2]" / "the [1] was not invented in [2]" / "?".
given owns(Person, Tool): "[1] owns [2]" / "[1] does not own [2]" / "?".
"""
ALLERGY = """
@name allergy
is_allergic_to(Person X, Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Allergen A)
  -> cannot_eat(Person X, Dish B).
"""
OLDER = """
@name older_tool
@generic X
owns(Person X, Tool A) & was_invented_in(Tool A, Year V) & was_invented_in(Tool B, Year W) & W < V
  -> could_have_owned(Person X, Tool B).
"""
HARMLESS = """
@name harmless
is_allergic_to(Person X, Allergen A) & is_one_type_of(Ingredient Y, Allergen A) & is_ingredient_in(Ingredient Y, Dish C)
  & is_ingredient_in(Ingredient Z, Dish C) & not is_one_type_of(Ingredient Z, Allergen A) -> may_eat(Person X, Ingredient Z).
"""
RECURSIVE = """
oracle is_part_of(Part, Part): "[1] is part of [2]" / "[1] is not part of [2]" / "?".
@name part
is_part_of(Part A, Part B) -> belongs_to(Part A, Part B).
@name part_of_part
is_part_of(Part A, Part B) & belongs_to(Part B, Part C) -> belongs_to(Part A, Part C).
@name repair
repairs(Person X, Part A) & belongs_to(Part A, Part B) -> can_work_on(Person X, Part B).
"""
FESTIVAL = """
oracle hosts(City, Festival): "[1] hosts [2]" / "[1] does not host [2]" / "?".
@name festival
likes(Person X, Festival B) & hosts(City A, Festival B) -> may_visit(Person X, City A).
"""
REGION = """
given lies_in(Place, Place): "[1] lies in [2]" / "[1] does not lie in [2]" / "?".
@name within
lies_in(Place A, Place B) -> is_within(Place A, Place B).
@name region
tours(Person X, Region B) & is_within(City A, Region B) -> may_see(Person X, City A).
"""
SMALL = SimulationSettings(entities_per_type=40, facts_per_argument=6.0)
BOTH = (Distribution.HEAD, Distribution.LONG_TAIL)


def library_of(*texts):
    return parse_library([("test.rules", "\n".join((VOCABULARY, *texts)))])


def simulated(library, seed=1):
    model = SimulatedModel(SimulatedWorld(library, seed, SMALL))
    return Models(model, model, model, model)


def searched(*texts, rules=None, kb=None, journal=None, **options):
    library = library_of(*texts)
    chosen = [library.rule(name) for name in rules] if rules else library.rules
    settings = SearchSettings(**{"beam": 12, "calls_per_question": 2, "values_per_call": 15, **options})
    kb = kb or KnowledgeBase()
    return search(SearchJob(library, chosen, kb, simulated(library), settings, journal)), kb, library


def test_every_step_that_led_to_a_statement_keeps_its_verdict_on_likelihood():
    """Where ends are cut at each step, each beginning of a statement's values has its accepted decision, and no other."""
    _, kb, _ = searched(ALLERGY, beam=25, ends="overlapping", measure="paper")

    kept = [json.loads(decision.subject) for decision in kb.decisions(gate="likelihood") if decision.accepted]
    whole = [dict(values) for values in kept if len(values) == 3]
    assert {len(values) for values in kept} == {1, 2, 3}
    assert all(any(dict(values).items() <= ends.items() for ends in whole) for values in kept)
    for ends in whole:
        beginnings = [values for values in kept if dict(values).items() <= ends.items()]
        assert {len(values) for values in beginnings} == {1, 2, 3}


def test_premises_that_bind_nothing_become_facts_by_the_critics_verdict():
    """The last premise of a triangle is judged for each pair: true ones are stored with the verdict, and prove statements."""
    text = (
        "@name triangle\n@generic none\nis_part_of(Part A, Machine B) & is_made_of(Part A, Material C) & "
        "contains(Machine B, Material C) -> wears_out_with(Machine B, Material C)\n"
    )
    report, kb, _ = searched(text, beam=25)
    proposed = {
        candidate.id for found in kb.candidates_of([q.id for q in kb.questions()]).values() for candidate in found
    }
    judged = [decision for decision in kb.decisions(gate="critic") if decision.subject not in proposed]

    assert report.statements
    assert {decision.accepted for decision in judged} == {True, False}
    assert {fact.predicate for fact in kb.facts()} == {"is_part_of", "is_made_of", "contains"}


def test_a_fact_has_the_data_type_under_which_its_value_was_accepted():
    """A rule that asks for spices where ingredients are declared stores spices."""
    library = library_of(
        'type Spice < Ingredient\noracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "?".\n'
        'given is_dish(Dish)\nfact is_dish("paella")\n@name spiced\n@generic none\n'
        "is_dish(Dish B) & is_in(Spice Z, Dish B) -> is_spiced_with(Dish B, Spice Z)\n"
    )
    model = ScriptedModel({"defaults": {"critic": 0.95, "likelihood": -12, "generate": ["saffron", "cumin"]}})
    with KnowledgeBase() as kb:
        search(SearchJob(library, library.rules, kb, Models(model, model, model, model), SearchSettings()))
        types = {fact.arguments[0]: fact.types for fact in kb.facts() if fact.predicate == "is_in"}

    assert types == {"saffron": ("Spice", "Dish"), "cumin": ("Spice", "Dish")}


@pytest.mark.parametrize(("source", "same"), [(Source.MODEL, True), (Source.GIVEN, False)])
def test_derived_steps_rest_on_the_search_itself(source, same):
    """Facts that another run left, or this one before it was killed, change no result; facts that users gave do."""
    kb = KnowledgeBase()
    library = library_of(RECURSIVE)
    parts = SimulatedWorld(library, 1, SMALL).entities("Part")
    types = ("Part", "Part")
    kb.add_facts(FactRecord("is_part_of", (part, parts[0]), types, source, 0.9, None, "earlier") for part in parts[1:])

    undisturbed, _, _ = searched(RECURSIVE, rules=["repair"])
    report, _, _ = searched(RECURSIVE, rules=["repair"], kb=kb)

    assert undisturbed.statements
    assert ([rule.to_json() for rule in report.rules] == [rule.to_json() for rule in undisturbed.rules]) is same
    assert (report.statements == undisturbed.statements) is same


class Looking(ProgressCounter):
    """Notes, whenever rules begin, of which predicates facts and answers are still in memory."""

    def __init__(self):
        super().__init__()
        self.alive = []
        self.others = {
            id(item): item for item in _held()
        }  # what earlier tests have left; kept, so that no id is given anew

    def searching(self, rules, calls):
        super().searching(rules, calls)
        found = [item for item in _held() if id(item) not in self.others]
        facts = {item.predicate for item in found if type(item) is FactRecord}
        asked = {pattern.predicate for item in found if type(item) is Inquiry for pattern in item.question.patterns}
        self.alive.append(facts | asked)


def _held():
    """All facts and inquiries in memory."""
    gc.collect()
    return [item for item in gc.get_objects() if type(item) in (FactRecord, Inquiry)]


def test_what_no_later_rule_needs_leaves_the_memory():
    """Facts and answers stay while a rule that asks about their predicates is to come, and no longer."""
    library, looking = library_of(ALLERGY, FESTIVAL, HARMLESS, OLDER), Looking()
    settings = SearchSettings(beam=6, calls_per_question=1, values_per_call=10, rules_together=1)
    report = search(SearchJob(library, library.rules, KnowledgeBase(), simulated(library), settings, progress=looking))

    assert [rule.rule for rule in report.rules] == ["allergy", "festival", "harmless", "older_tool"]
    of_food = {"is_ingredient_in", "is_one_type_of"}
    predicates = {*of_food, "hosts", "was_invented_in"}
    assert [indicators & predicates for indicators in looking.alive] == [set(), of_food, of_food, set()]
    assert all(rule.statements for rule in report.rules[:2])


def test_a_derived_premise_finds_the_types_of_values_among_the_facts_of_all_rules():
    """The facts of earlier rules are kept for it, although it asks about none of their predicates."""
    library, kb = library_of(FESTIVAL, REGION), KnowledgeBase()
    world = SimulatedWorld(library, 1, SMALL)
    cities = world.entities("City")
    within = [(city, world.entities("Region")[0]) for city in cities]
    kb.add_facts(FactRecord("lies_in", pair, ("Place", "Region"), Source.GIVEN) for pair in within)
    settings = SearchSettings(beam=30, calls_per_question=2, values_per_call=15, rules_together=1)

    report = search(
        SearchJob(library, [library.rule("festival"), library.rule("region")], kb, simulated(library), settings)
    )

    hosts, seen = (
        {dict(statement.substitution)["A"] for statement in rule.statements[Distribution.HEAD]} for rule in report.rules
    )
    assert seen <= set(cities)
    assert seen & hosts


@given(st.lists(st.tuples(st.text(), st.integers() | st.decimals(allow_nan=False), st.none() | st.floats(-9, 0))))
def test_packed_statements_are_those_that_were_packed(cells):
    """Whatever a model said, a report gives the records that the search derived, and their mean."""
    records = [
        StatementRecord(
            "r", Distribution.HEAD, "run", (("A", text), ("B", number)), text, "c", text, {"steps": []}, score
        )
        for text, number, score in cells
    ]
    packed = PackedStatements(records)
    scores = [score for _, _, score in cells if score is not None]

    assert (list(packed), len(packed)) == (records, len(records))
    assert packed.mean_log_likelihood == (math.fsum(scores) / len(scores) if scores else None)


def test_a_search_leaves_the_collection_of_garbage_as_it_was():
    """While it runs Python looks for garbage less often; afterwards as often as before, however the search ended."""
    during, before = [], gc.get_threshold()

    class Watching(ProgressCounter):
        def advanced(self, calls, hits, accepted, rejected):
            during.append(gc.get_threshold())
            raise KeyboardInterrupt

    library = library_of(ALLERGY)
    with pytest.raises(KeyboardInterrupt):
        search(SearchJob(library, library.rules, KnowledgeBase(), simulated(library), progress=Watching()))

    assert during[0][0] > before[0]
    assert gc.get_threshold() == before


def test_search_finds_head_and_long_tail_with_a_difference():
    """Both distributions get statements, the head's are likelier, and everything is in the store."""
    report, kb, _ = searched(ALLERGY)
    (line,) = report.rules

    assert all(line.count(distribution) > 3 for distribution in BOTH)
    assert line.delta > 0
    assert {statement.distribution for statement in kb.statements(run_id=report.run_id)} == set(BOTH)
    assert {decision.gate for decision in kb.decisions(run_id=report.run_id)} >= {
        "parser",
        "type",
        "critic",
        "likelihood",
    }
    assert kb.run(report.run_id).status == "done"
    assert line.examples(Distribution.HEAD)[0].startswith("If PersonX is allergic to ")
    assert line.gates["likelihood"].share < 1
    assert line.calls == report.statistics["knowledge"].calls


def test_every_statement_rests_on_stored_facts():
    """Each statement's constraint atoms are facts of the store."""
    report, kb, library = searched(ALLERGY)
    rule = library.rule("allergy")
    facts = {(fact.predicate, fact.arguments) for fact in kb.facts()}

    for statement in report.statements:
        bound = dict(statement.substitution)
        for literal in rule.literals:
            if not rule.is_information(literal):
                arguments = tuple(bound[term.name] for term in literal.atom.arguments)
                assert (literal.atom.predicate, arguments) in facts


def test_numbers_are_compared_by_arithmetic_and_never_by_the_critic():
    """A comparison of two asked years costs no claim and holds in every statement."""
    report, kb, _ = searched(OLDER)

    for statement in report.statements:
        bound = dict(statement.substitution)
        assert bound["W"] < bound["V"]
    assert report.rules[0].gates["computed"].judged > 0
    assert not [call for call in kb.calls().values() if "<" in str(call.request.get("claim", ""))]


def test_denied_literals_need_a_sure_no():
    """A beam with `not p` stays only where the critic is sure that p is false, and Prolog then finds no such fact."""
    report, kb, _ = searched(HARMLESS)
    assert report.statements

    for statement in report.statements:
        bound = dict(statement.substitution)
        claim = f"{bound['Z']} is one type of {bound['A']}."
        claim = claim[:1].upper() + claim[1:]
        scores = kb.assessments(
            [claim], "probability", "simulated@" + simulated(library_of(HARMLESS)).critic.identity.revision
        )
        assert all(score.score <= 0.15 + 1e-9 for score in scores.values())


def test_derived_predicates_are_searched_by_their_rules():
    """Values of a recursive predicate come from the rules, and the facts they lack are asked for."""
    report, kb, _ = searched(RECURSIVE, rules=["repair"], beam=4, values_per_call=4, calls_per_question=1)

    assert report.statements
    assert kb.facts("is_part_of")
    assert any(step.get("rule") == "part" for step in report.statements[0].proof["steps"])


def test_a_budget_that_ends_a_derivation_denies_nothing():
    """Where the facts of a derived predicate could not be asked to the end, `not` does not hold for want of them."""
    text = (
        RECURSIVE
        + """
@name foreign
repairs(Person X, Part A) & is_part_of(Part A, Part B) & not belongs_to(Part B, Part A) -> leaves_alone(Person X, Part B).
"""
    )
    whole, _, _ = searched(text, rules=["foreign"], beam=3, values_per_call=3, calls_per_question=1)
    spent = whole.statistics["knowledge"].calls
    journal = Journal(KnowledgeBase(), Budget(max_calls=spent - 1, roles=frozenset({"knowledge"})))
    cut, _, _ = searched(text, rules=["foreign"], journal=journal, beam=3, values_per_call=3, calls_per_question=1)

    assert whole.statements
    assert cut.cut == ("foreign",)
    assert len(cut.statements) < len(whole.statements)


def test_rules_share_their_questions():
    """A rule that asks what another has asked sends nothing."""
    twin = ALLERGY.replace("@name allergy", "@name twin")
    report, _, _ = searched(ALLERGY, twin)
    first, second = report.rules

    assert first.calls > 0
    assert (second.calls, second.hits) == (0, first.calls)
    assert second.count(Distribution.HEAD) == first.count(Distribution.HEAD)


def test_the_same_search_again_asks_nothing():
    """A second run in the same store answers everything from it, with the same statements."""
    kb = KnowledgeBase()
    first, _, _ = searched(ALLERGY, kb=kb)
    again, _, _ = searched(ALLERGY, kb=kb)

    assert {role: statistics.calls for role, statistics in again.statistics.items() if statistics.calls} == {}
    assert [statement.text for statement in again.statements] == [statement.text for statement in first.statements]
    assert again.run_id == first.run_id
    assert len(kb.runs()) == 1


def test_other_settings_are_another_run():
    """Everything that changes the result changes the run's identity."""
    kb = KnowledgeBase()
    ids = {searched(ALLERGY, kb=kb, beam=beam)[0].run_id for beam in (3, 4)}

    assert len(ids) == 2


def test_order_of_a_set_of_rules_does_not_change_a_rules_statements():
    """Searched with others or alone, a rule gives the same statements."""
    alone, _, _ = searched(ALLERGY)
    among, _, _ = searched(OLDER, HARMLESS, ALLERGY)

    def told(report):
        return [statement.text for statement in report.statements if statement.rule == "allergy"]

    assert told(among) == told(alone)


def test_random_ranker_takes_delta_away():
    """Without likelihoods head and long tail lie closer together than with them."""
    full, _, _ = searched(ALLERGY, beam=25)
    random, _, _ = searched(ALLERGY, beam=25, likelihood="random")
    none, _, _ = searched(ALLERGY, beam=25, likelihood="none")

    assert abs(random.mean_delta) < full.mean_delta
    assert none.mean_delta == 0


def test_budget_cuts_cleanly_and_a_later_run_goes_on():
    """A budget ends the run with what is complete and names the rules; without it the run goes on from the journal."""
    kb = KnowledgeBase()
    journal = Journal(kb, Budget(max_calls=16, roles=frozenset({"knowledge"})))
    cut, _, _ = searched(OLDER, ALLERGY, kb=kb, journal=journal)
    assert cut.status == "budget"
    assert "allergy" in cut.cut
    assert kb.run(cut.run_id).status == "budget"
    assert cut.statistics["knowledge"].calls == 16

    whole, _, _ = searched(OLDER, ALLERGY, kb=kb)
    fresh, _, _ = searched(OLDER, ALLERGY)

    assert whole.statistics["knowledge"].calls + 16 == fresh.statistics["knowledge"].calls
    assert [statement.text for statement in whole.statements] == [statement.text for statement in fresh.statements]


def test_ctrl_c_marks_the_run_and_goes_up():
    """An interrupt is raised again, the run says so, and nothing answered is lost."""
    library, kb = library_of(ALLERGY), KnowledgeBase()
    models = simulated(library)
    calls = []

    def generate(requests, parameters):
        calls.append(len(requests))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return SimulatedModel.generate(models.knowledge, requests, parameters)

    models.knowledge.generate = generate
    settings = SearchSettings(beam=6, calls_per_question=2, values_per_call=15)
    with pytest.raises(KeyboardInterrupt):
        search(SearchJob(library, library.rules, kb, models, settings))

    assert [run.status for run in kb.runs()] == ["interrupted"]
    assert sum(call.role == "knowledge" for call in kb.calls().values()) == sum(calls[:2])


class Limited:
    """A model that knows some predicates and types only."""

    def __init__(self, knows=None, types=None):
        self.identity = ModelIdentity("limited", "1", knows, types)


def test_unknown_predicates_and_types_skip_a_rule_with_the_way_out():
    """The reason names what is not known and the option that brings another model."""
    library = library_of(ALLERGY)
    rule = library.rule("allergy")
    able = Limited()
    few = Limited(knows=("is_ingredient_in/2",))
    untyped = Limited(types=("allergen", "dish"))

    assert unanswerable(rule, library, Models(able, able, able, able)) is None
    reason = unanswerable(rule, library, Models(few, able, able, able))
    assert reason == Unanswerable(
        "limited", ("is_one_type_of/2",), "Choose a model that knows them with --knowledge and --critic."
    )
    reason = unanswerable(rule, library, Models(able, untyped, able, able))
    assert reason == Unanswerable("limited", ("the type Ingredient",), "Choose a model that knows them with --critic.")


def test_progress_is_told():
    """The display hears which rules come next and then every call, hit and verdict."""
    library, tally = library_of(ALLERGY, OLDER), ProgressCounter()
    settings = SearchSettings(beam=6, calls_per_question=2, values_per_call=15, rules_together=1)
    report = search(SearchJob(library, library.rules, KnowledgeBase(), simulated(library), settings, progress=tally))

    assert tally.rules == "rule 2 of 2"
    assert (tally.calls, tally.hits) == (report.statistics["knowledge"].calls, report.statistics["knowledge"].hits)
    assert tally.accepted > 0
    assert tally.rejected > 0


def test_tally_tells_the_time_left_by_the_rules_that_are_over():
    """Rules that took fewer calls than expected count in full once they are over, and none counts for more."""
    now = [100.0]
    tally = ProgressCounter(clock=lambda: now[0])
    tally.started(3, 400)
    assert (tally.share, tally.left) == (0.0, "")

    tally.searching(["a", "b"], 300)
    tally.advanced(9, 1, 20, 5)
    now[0] += 30
    assert (tally.rules, tally.share, tally.left) == ("rules 1 to 2 of 3", 10 / 400, "")
    tally.advanced(20, 0, 0, 0)
    now[0] += 30
    assert (tally.share, tally.left) == (30 / 400, ", 0:12:20 left")

    tally.searching(["c"], 100)
    assert (tally.rules, tally.share, tally.left) == ("rule 3 of 3", 0.75, ", 0:00:20 left")
    tally.advanced(250, 0, 1, 1)
    assert (tally.share, tally.left) == (1.0, "")
    assert tally.counts == "279 calls, 1 hit, 21 accepted, 6 rejected"


def test_what_is_left_is_corrected_by_the_answers_so_far():
    """Once a step's questions are known, the calls expected of its rules are near those that they take."""

    class Listening(ProgressCounter):
        expected = 0

        def expecting(self, calls):
            super().expecting(calls)
            self.expected = self._expected

    library, tally = library_of(ALLERGY, OLDER), Listening()
    settings = SearchSettings(beam=3, calls_per_question=1, values_per_call=5)
    search(SearchJob(library, library.rules, KnowledgeBase(), simulated(library), settings, progress=tally))

    asked = tally.calls + tally.hits
    assert asked / 2 <= tally.expected <= 2 * asked


def test_the_calls_left_grow_with_the_calls_of_a_question():
    """A step that asks about each of its values is expected to take so many calls for each of them."""

    class Listening(ProgressCounter):
        left = ()

        def expecting(self, calls):
            super().expecting(calls)
            self.left = (*self.left, calls)

    library = library_of(ALLERGY)
    left = {}
    for calls in (1, 2, 6):
        tally, settings = Listening(), SearchSettings(beam=3, calls_per_question=calls)
        search(SearchJob(library, library.rules, KnowledgeBase(), simulated(library), settings, progress=tally))
        left[calls] = tally.left[0]

    assert left[1] > 0
    assert left == {calls: calls * left[1] for calls in left}


def test_statements_in_both_distributions_are_counted():
    """Where a pool is small, overlapping ends keep its middle: the report says how many statements they share."""
    small, _, _ = searched(ALLERGY, beam=12, ends="overlapping")
    whole, _, _ = searched(ALLERGY, beam=1000, keep_share=1.0, ends="overlapping")
    parted, _, _ = searched(ALLERGY, beam=1000, keep_share=1.0, ends="overlapping", distributions=(Distribution.HEAD,))

    head, long_tail = (
        {statement.id for statement in small.statements if statement.distribution is distribution}
        for distribution in BOTH
    )
    assert small.summary()["statements"]["in_both"] == len(head & long_tail)
    assert whole.summary()["statements"]["in_both"] == whole.rules[0].count(Distribution.HEAD) > 0
    assert parted.summary()["statements"]["in_both"] == 0


def test_calls_for_derived_predicates_count_for_the_rule_that_needs_them():
    """The rules' calls add up to what was sent, and what the journal answers again are as many hits."""
    kb = KnowledgeBase()
    options = {"rules": ["repair"], "beam": 4, "values_per_call": 4, "calls_per_question": 1, "kb": kb}
    first, _, _ = searched(RECURSIVE, **options)
    again, _, _ = searched(RECURSIVE, **options)

    assert first.rules[0].calls == first.statistics["knowledge"].calls > 0
    assert (again.rules[0].calls, again.rules[0].hits) == (0, first.rules[0].calls)


@pytest.mark.parametrize("compat", ["paper", "released"])
def test_compat_modes_run_through(compat):
    """LINK's two behaviours give statements of their own; the released one asks for twice the values at first."""
    report, kb, _ = searched(ALLERGY, compat=compat, plan="link")
    prompts = [call.request["prompt"] for call in kb.calls().values() if call.role == "knowledge"]

    assert report.statements
    assert prompts[0].startswith(f"Give me {'30 diverse' if compat == 'released' else 15} values of ")
    assert any("Do not generate these values: " in prompt for prompt in prompts)
    assert report.rules[0].calls == report.statistics["knowledge"].calls


def ranking_texts(settings):
    library = library_of(ALLERGY)
    rule_search = RuleSearch(plan(library.rules[0], library, "premise-first"), library, settings, "run")
    seen = []
    for value in ("dairy", "butter", "toast"):
        rule_search.extend({beam: QuestionAnswer({value: 0.9}) for beam in rule_search.beams})
        seen += rule_search.texts().values()
        rule_search.advance_unranked()
    assert rule_search.substitutions()[Distribution.HEAD][0]["B"] == Constant("toast")
    return seen


def test_ranking_text_tells_what_models_are_asked():
    """Hapax ranks the atoms that a model decides; before the first has its values, the value as what it is."""
    assert ranking_texts(SearchSettings()) == [
        "Dairy is an allergen.",
        "Butter is one type of dairy.",
        "Butter is an ingredient in toast and butter is one type of dairy.",
    ]


def test_compat_ranking_text_is_links():
    """Exactly LINK's: every atom whose variables have values, generic ones as PersonX, the conclusion last."""
    assert ranking_texts(SearchSettings(compat="paper")) == [
        "PersonX is allergic to dairy.",
        "PersonX is allergic to dairy and butter is one type of dairy.",
        "PersonX is allergic to dairy and butter is an ingredient in toast and butter is one type of dairy and "
        "PersonX cannot eat toast.",
    ]


def test_head_is_penalised_for_repeated_words():
    """Of two equally likely beams, an overlapping head prefers the one whose values share no word; the long tail does not care."""
    library = library_of(ALLERGY)
    rule_search = RuleSearch(
        plan(library.rules[0], library, "premise-first"),
        library,
        SearchSettings(keep_share=0.5, ends="overlapping"),
        "run",
    )
    rule_search.extend({beam: QuestionAnswer({"peanut": 0.9}) for beam in rule_search.beams})
    rule_search.advance_unranked()
    values = {"peanut butter": 0.9, "satay": 0.9}
    rule_search.extend({beam: QuestionAnswer(values) for beam in rule_search.beams})
    rule_search.rank(rule_search.texts(), dict.fromkeys(rule_search.texts().values(), -2.0))

    kept = {distribution: beam.values[-1] for beam in rule_search.beams for distribution in beam.distributions}
    assert kept == {Distribution.HEAD: "satay", Distribution.LONG_TAIL: "peanut butter"}


def test_the_paper_has_no_penalty():
    """Under `--compat paper` equally likely beams of the head are equal, whatever words their values share."""
    library = library_of(ALLERGY)
    rule_search = RuleSearch(
        plan(library.rules[0], library, "premise-first"), library, SearchSettings(compat="paper"), "run"
    )
    for values in ({"peanut": 0.9}, {"peanut butter": 0.9, "satay": 0.9}):
        rule_search.extend({beam: QuestionAnswer(values) for beam in rule_search.beams})
        rule_search.decisions.clear()
        rule_search.rank(rule_search.texts(), dict.fromkeys(rule_search.texts().values(), -2.0))

    rule_search.finish()

    assert {decision.score for decision in rule_search.decisions} == {-2.0}


def test_given_facts_feed_the_search():
    """A constraint that the user states is searched in the store and never asked."""
    text = 'given lives_in(Animal, Sea): "[1] lives in [2]" / "?" / "?".\n@name sea\nlikes(Person X, Sea A) & lives_in(Animal B, Sea A) -> may_meet(Person X, Animal B).'
    kb = KnowledgeBase()
    kb.add_facts([FactRecord("lives_in", (f"fish {n}", "sea"), ("Animal", "Sea"), Source.GIVEN) for n in range(4)])
    report, _, _ = searched(text, kb=kb)

    assert {dict(statement.substitution)["B"] for statement in report.statements} <= {f"fish {n}" for n in range(4)}
    assert report.statements
    assert "knowledge" not in report.statistics


LIMITS = (
    *((name, 1) for name in ("beam", "calls_per_question", "values_per_call", "answer_tokens", "rules_together")),
    ("values_per_call", MOST_LINES),
    ("temperature", 0),
    ("keep_share", 0.01),
    ("keep_share", 0.5),
)


@pytest.mark.parametrize(("name", "limit"), LIMITS)
def test_settings_reach_to_their_limits(name, limit):
    """The least and the greatest number of each setting make a search."""
    assert getattr(SearchSettings(**{name: limit}), name) == limit


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(
            ({name: 0}, f"{name} is 0. Set it to a whole number from 1.")
            for name in ("beam", "calls_per_question", "values_per_call", "answer_tokens", "rules_together")
        ),
        ({"values_per_call": MOST_LINES + 1}, "values of a reply are read. Set it to at most that"),
        ({"temperature": -0.1}, "temperature is -0.1. Set it to a number from 0."),
        ({"temperature": math.nan}, "temperature is nan. Set it to a number from 0."),
        ({"temperature": math.inf}, "temperature is inf. Set it to a number from 0."),
        ({"keep_share": 0.0}, "keep_share is 0. Set it above 0, and to at most 1."),
        ({"keep_share": 1.5}, "keep_share is 1.5. Set it above 0, and to at most 1."),
        ({"keep_share": 0.51}, "ends that share nothing have at most half of the statements each"),
        ({"distributions": ()}, "There is no distribution to search. Set distributions to head, long_tail or both."),
        ({"profile": "none of these"}, "none of these"),
        ({"measure": "weight"}, "measure is 'weight'. Choose paper or"),
        ({"compat": "paper", "measure": "slor"}, "compat paper ranks by LINK's own measure."),
        ({"compat": "paper", "ends": "disjoint"}, "compat paper has LINK's own ends."),
        ({"compat": "paper", "fact_threshold": CriticRule(0.5)}, "compat paper has LINK's own thresholds."),
        ({"compat": "paper", "type_threshold": CriticRule(0.5)}, "compat paper has LINK's own thresholds."),
        ({"compat": "released", "calibrated": True}, "compat released compares raw scores."),
        ({"compat": "paper", "promise": Promise()}, "compat paper compares raw scores."),
        ({"compat": "paper", "statement_promise": Promise()}, "compat paper compares raw scores."),
        ({"promise": Promise(), "fact_threshold": CriticRule(0.5)}, "A promise has its own thresholds of facts."),
        ({"promise": Promise(), "critic": False}, "Without a critic nothing can be promised."),
        ({"statement_promise": Promise(), "critic": False}, "Without a critic nothing can be promised."),
        ({"fact_threshold": CriticRule(0.5), "threshold_cap": 0.9}, "There are two caps of the fact threshold."),
        ({"likelihood": "most"}, "likelihood"),
        ({"ends": "both"}, "ends"),
    ],
)
def test_settings_refuse_what_makes_no_search(given, message):
    """Nonsense, and options that exclude each other, are refused with a remedy."""
    with pytest.raises(HapaxError) as error:
        SearchSettings(**given)

    assert message in str(error.value)


def test_options_of_a_compatible_search_that_change_nothing_are_allowed():
    """LINK's own measure and overlapping ends are what a compatible search has anyway."""
    assert SearchSettings(compat="paper", measure="paper", ends="overlapping").compat == "paper"
    assert SearchSettings(statement_promise=Promise(), fact_threshold=CriticRule(0.5)).critic
    assert SearchSettings(ends="overlapping", keep_share=1.0).keep_share == 1.0


def test_subjects_are_canonical():
    """The text of a substitution depends on its content, not on the order of its variables."""
    assert (
        substitution_subject([("B", "x"), ("A", 1)])
        == substitution_subject([("A", 1), ("B", "x")])
        == '[["A",1],["B","x"]]'
    )


def test_ablation_fills_the_papers_tables():
    """All four variants, both distributions: the critic is what makes statements true, the likelihood what parts them."""
    library = library_of(ALLERGY)
    world = SimulatedWorld(library, 1, SMALL)
    models, kb = simulated(library), KnowledgeBase()
    settings = SearchSettings(beam=25, calls_per_question=2, values_per_call=15)
    experiment = Experiment(library, library.rules, models, settings)
    report = ablation(experiment, kb, GroundTruth(world.holds, world.is_a))

    assert len(report.cells) == 8
    full, bare = (report.cell(name, Distribution.HEAD) for name in ("full", "w/o critic"))
    assert full.facts.value > bare.facts.value + 0.1
    assert full.overall.value > bare.overall.value
    assert report.deltas["full"] > abs(report.deltas["w/o likelihood"])
    assert kb.facts() == []
    assert all(report.log_likelihoods["full"][distribution]["allergy"] for distribution in BOTH)


def test_scripted_models_make_a_search_that_can_be_followed():
    """One allergen, one ingredient, two dishes: exactly these statements come out."""
    script = {
        "generate": {
            "[B] where B is an allergen": [],
            "[A] is one type of [B]": ["dairy"],
            "[A] is one type of dairy": ["butter"],
            "butter is an ingredient in [B]": ["toast", "paella"],
            "PersonX": ["dairy"],
        },
        "defaults": {"critic": 0.95, "likelihood": -12, "generate": ["dairy"]},
    }
    library, model = library_of(ALLERGY), ScriptedModel(script)
    models = Models(model, model, model, model)
    report = search(
        SearchJob(
            library,
            library.rules,
            KnowledgeBase(),
            models,
            SearchSettings(keep_share=1.0, ends="overlapping", plan="premise-first"),
        )
    )

    assert {(statement.distribution, statement.text) for statement in report.statements} == {
        (distribution, f"If PersonX is allergic to dairy, then PersonX cannot eat {dish}.")
        for distribution in BOTH
        for dish in ("toast", "paella")
    }
