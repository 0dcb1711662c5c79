"""The oracle: asking in batches, judging, storing, sharing, restoring, the budget."""

import pytest

from hapax.engine.search.gates import CRITIC
from hapax.engine.search.inquiry import Inquiry, question_words
from hapax.engine.search.oracle import Oracle, OracleSettings
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Atom, Constant
from hapax.kb.records import AtomPattern, FactRecord, Question, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget, BudgetReached
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Generation, Models
from hapax.llm_oracle.scripted import ScriptedModel

RULES = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "?".
functional was_invented_in(Object, Year): "[1] was invented in [2]" / "[1] was not invented in [2]" / "?".
computed is_earlier(Year A, Year B) := A < B: "[1] is earlier than [2]" / "[1] is not earlier than [2]" / "?".
given was_born_in(Person, Year): "[1] was born in [2]" / "[1] was not born in [2]" / "?".
fact was_born_in("Ada", 1815).
"""
LIBRARY = parse_library([("test.rules", RULES)])
BUTTER = Question((AtomPattern("is_ingredient_in", ("butter", None)),), "Dish")
PHONE = Question((AtomPattern("was_invented_in", ("telephone", None)),), "Year", functional=True)


def scripted(dishes=("paella", "toast", "soap"), critic=None, **more):
    script = {
        "generate": {"butter is an ingredient in [B]": list(dishes), "telephone was invented in [B]": [1876]},
        "critic": {
            "Butter is an ingredient in soap.": 0.1,
            "Soap is a dish.": 0.2,
            "Butter is an ingredient in paella.": 0.86,
            **(critic or {}),
        },
        "likelihood": {},
        "defaults": {"critic": 0.9, "likelihood": -10},
    }
    return ScriptedModel({**script, **more})


def oracle_of(model, kb=None, settings=None, budget=None, run_id="run"):
    kb = kb or KnowledgeBase()
    return Oracle(kb, LIBRARY, Models(model, model, model, model), settings, run_id, journal=Journal(kb, budget))


def test_accepted_values_become_facts_and_all_else_is_kept_with_its_reason():
    """Candidates, scores, verdicts, facts and type facts are stored, what the parser refused included."""
    model = scripted(generate={"butter": "1. paella.\n2. soap.\n3. [B].\n"})
    oracle = oracle_of(model)

    assert oracle.answer([BUTTER]) == {BUTTER: ["paella"]}
    kb = oracle.kb
    assert [(fact.arguments, fact.probability) for fact in kb.facts("is_ingredient_in")] == [
        (("butter", "paella"), 0.86)
    ]
    assert [(type_fact.constant, type_fact.data_type) for type_fact in kb.type_facts()] == [("paella", "Dish")]
    verdicts = {
        kb.candidate(decision.subject).value: (decision.gate, decision.accepted)
        for decision in kb.decisions(run_id="run")
    }
    assert verdicts == {"paella": ("critic", True), "soap": ("type", False), "[B]": ("parser", False)}
    assert kb.question_state(BUTTER).exhausted


def test_prompt_is_the_papers_and_later_calls_exclude_what_came():
    """The first prompt is LINK's, byte for byte; decoding excludes earlier values; two calls without a value end it."""
    model = scripted()
    oracle_of(model).answer([BUTTER])

    assert (
        model.prompts
        == [
            "Give me 50 values of B to fill in the sentence 'butter is an ingredient in [B]' in the format '1. value.', "
            "where B is a dish."
        ]
        * 3
    )


def test_link_names_accepted_values_in_the_prompt():
    """Under LINK's ways the accepted values stand in the prompt and the rejected ones' tokens are banned."""
    model = scripted()
    oracle = oracle_of(model, settings=OracleSettings(link_exclusion=True))
    oracle.answer([BUTTER])

    assert model.prompts[1].endswith("where B is a dish. Do not generate these values: paella, toast.")
    second = list(oracle.kb.calls().values())
    assert any(list(call.request.get("banned_tokens_of", ())) == ["soap"] for call in second)


def test_a_question_is_asked_once_for_everybody():
    """Equal questions of one batch, of a later one and of a later run are not asked again."""
    model, kb = scripted(), KnowledgeBase()
    oracle = oracle_of(model, kb)
    oracle.answer([BUTTER, BUTTER])
    oracle.answer([BUTTER])
    asked = len(model.prompts)
    other_seed = OracleSettings(parameters=oracle.settings.parameters.__class__(seed=7))

    again = oracle_of(model, kb, other_seed, run_id="later").answer([BUTTER])

    assert asked == 3
    assert len(model.prompts) == 3
    assert again == {BUTTER: ["paella", "toast"]}


def test_another_knowledge_model_is_asked_itself():
    """That one model has no more to say does not answer for another."""
    kb = KnowledgeBase()
    oracle_of(scripted(), kb).answer([BUTTER])
    another = scripted(("curry",))

    assert oracle_of(another, kb).answer([BUTTER]) == {BUTTER: ["curry"]}


def test_stored_scores_pass_other_thresholds_without_a_call():
    """A later run with a higher threshold rejects by the stored scores, and the fact that stood on them goes."""
    model, kb = scripted(), KnowledgeBase()
    oracle_of(model, kb).answer([BUTTER])
    claims = len(model.claims)

    strict = OracleSettings(rules={CRITIC.name: CriticRule(0.88, fixed=True)})
    oracle = oracle_of(model, kb, strict, run_id="strict")

    assert oracle.answer([BUTTER]) == {BUTTER: ["toast"]}
    assert len(model.claims) == claims
    assert [fact.arguments for fact in kb.facts("is_ingredient_in")] == [("butter", "toast")]


def test_a_fact_with_other_support_stays():
    """A fact that one question rejects and another accepts in the same run is kept."""
    model = scripted(critic={"Butter is an ingredient in paella.": 0.86})
    model._generate = {**model._generate, "[A] is an ingredient in paella": ["butter"]}
    oracle = oracle_of(model)
    reverse = Question((AtomPattern("is_ingredient_in", (None, "paella")),), "Ingredient")
    oracle.answer([reverse])

    fact = oracle.kb.fact("is_ingredient_in", ("butter", "paella"))
    oracle.known.reject([FactRecord(fact.predicate, fact.arguments, (), Source.MODEL, candidate_id="other")])

    assert oracle.kb.fact("is_ingredient_in", ("butter", "paella")) == fact


def test_functional_samples_must_agree():
    """A functional question is asked twice; its value counts if the first values agree."""
    agreeing, differing = scripted(), scripted()
    answers = iter(["1. 1876.\n", "1. 1877.\n"])
    differing._generation = lambda request: type(agreeing._generation(request))(next(answers))

    assert oracle_of(agreeing).answer([PHONE]) == {PHONE: [1876]}
    assert len([prompt for prompt in agreeing.prompts if "the correct value of B" in prompt]) == 2
    oracle = oracle_of(differing)
    assert oracle.answer([PHONE]) == {PHONE: []}
    assert {decision.gate for decision in oracle.kb.decisions(run_id="run")} == {"agreement"}
    assert oracle_of(differing, oracle.kb, run_id="later").answer([PHONE]) == {PHONE: []}


@pytest.mark.parametrize(
    ("tolerance", "years", "taken"),
    [
        ("", (1876, 1877), []),
        (" within 2", (1876, 1877), [1876]),
        (" within 2", (1878, 1876), [1878]),
        (" within 2", (1876, 1879), []),
        (" within 0.5", (1876, 1877), []),
        (" within 0.1%", (1876, 1877), [1876]),
        (" within 0.1 %", (1876, 1879), []),
    ],
)
def test_samples_agree_within_the_declared_tolerance(tolerance, years, taken):
    """The first of two answers that lie near enough is taken; the other is rejected, with the reason."""
    library = parse_library([("test.rules", RULES.replace("(Object, Year)", f"(Object, Year){tolerance}"))])
    model = scripted()
    answers = iter([f"1. {year}.\n" for year in years])
    model._generation = lambda request: Generation(next(answers))
    kb = KnowledgeBase()

    def asked(library, run_id):
        oracle = Oracle(kb, library, Models(model, model, model, model), run_id=run_id, journal=Journal(kb))
        return oracle.answer([PHONE])[PHONE]

    assert asked(library, "first") == taken
    reasons = {decision.reason for decision in kb.decisions(run_id="first") if not decision.accepted}
    assert len(reasons) == 1
    assert ("first and is taken" in next(iter(reasons))) == bool(taken)
    assert asked(library, "again") == taken
    # The stored answers are judged by the tolerance of the rules that ask.
    assert asked(parse_library([("test.rules", RULES.replace("(Object, Year)", "(Object, Year) within 9"))]), "wide")
    assert asked(LIBRARY, "strict") == []


def test_numbers_are_judged_by_the_fact_alone():
    """No type claim is put about a year."""
    model = scripted()
    oracle_of(model).answer([PHONE])

    assert model.claims == ["Telephone was invented in 1876."]


def test_unclaimed_patterns_only_word_the_prompt():
    """An open question is judged by its type alone and makes no fact."""
    model = scripted(generate={"[A] is an ingredient in [B]": ["butter"]})
    oracle = oracle_of(model)
    inquiry = Inquiry(Question((AtomPattern("is_ingredient_in", (None, "[B]")),), "Ingredient"), ())

    assert oracle.answers([inquiry])[inquiry].values == ["butter"]
    assert model.claims == ["Butter is an ingredient."]
    assert oracle.kb.facts() == []


def test_without_critic_everything_readable_is_accepted():
    """No claim is put, and each value becomes a fact without a probability."""
    model = scripted()
    oracle = oracle_of(model, settings=OracleSettings(critic=False))

    assert oracle.answer([BUTTER])[BUTTER] == ["paella", "toast", "soap"]
    assert model.claims == []
    assert {fact.probability for fact in oracle.kb.facts()} == {None}


def test_given_facts_come_first_and_need_no_critic():
    """Given facts are among the answers, whatever the models say."""
    kb = KnowledgeBase()
    kb.add_facts([FactRecord("is_ingredient_in", ("butter", "Soap"), ("Ingredient", "Dish"), Source.GIVEN)])

    assert oracle_of(scripted(), kb).answer([BUTTER])[BUTTER] == ["Soap", "paella", "toast"]
    assert kb.fact("is_ingredient_in", ("butter", "Soap")).source is Source.GIVEN


def atom(predicate, *values):
    return Atom(predicate, tuple(map(Constant, values)))


def test_verify_asks_the_critic_only_where_nothing_else_decides():
    """Computed and given atoms cost no claim; judged ones that hold become facts."""
    model = scripted()
    oracle = oracle_of(model)
    atoms = {
        atom("is_earlier", 1800, 1900): True,
        atom("is_earlier", 1900, 1800): False,
        atom("was_born_in", "Ada", 1815): True,
        atom("was_born_in", "Ada", 1816): False,
        atom("is_ingredient_in", "butter", "toast"): True,
        atom("is_ingredient_in", "butter", "soap"): False,
    }

    assert oracle.verify(list(atoms)) == atoms
    assert len(model.claims) == 2
    assert [fact.arguments for fact in oracle.kb.facts()] == [("butter", "toast")]


def test_budget_keeps_what_was_answered():
    """Where the budget ends, the reply is kept and nothing is stored that follows from a part of the replies."""
    oracle = oracle_of(scripted(), budget=Budget(max_calls=1, roles=frozenset({"knowledge"})))

    with pytest.raises(BudgetReached, match="Raise the limit"):
        oracle.answer([BUTTER])
    assert oracle.kb.counts()["calls"] > 0
    assert (oracle.kb.facts(), oracle.kb.decisions(run_id="run"), oracle.kb.question_state(BUTTER).exhausted) == (
        [],
        [],
        False,
    )

    oracle.takes_parts = True
    inquiry = Inquiry(BUTTER, BUTTER.patterns)
    answer = oracle.answers([inquiry])[inquiry]
    assert (answer.values, answer.complete) == (["paella", "toast"], False)


def test_budget_of_the_critic_leaves_values_unjudged():
    """A value that could not be judged is not accepted, and nothing is said against it."""
    oracle = oracle_of(scripted(), budget=Budget(max_calls=0, roles=frozenset({"critic"})))
    inquiry = Inquiry(BUTTER, BUTTER.patterns)

    with pytest.raises(BudgetReached):
        oracle.answers([inquiry])
    assert oracle.kb.decisions(run_id="run") == []
    assert len(oracle.kb.candidates(BUTTER)) == 3


@pytest.mark.parametrize("hostile", ["x" * 64, "'); DROP TABLE facts; --", "halt.", "\u202eright to left", "[A]", "🧈"])
def test_hostile_values_are_stored_or_refused_with_a_reason(hostile):
    """Whatever a model proposes ends as an accepted value or as a candidate with the parser's reason."""
    oracle = oracle_of(scripted((hostile,)))
    values = oracle.answer([BUTTER])[BUTTER]

    refused = [candidate for candidate in oracle.kb.candidates(BUTTER) if candidate.rejected_by_parser]
    assert bool(values) != bool(refused)


def test_question_words_name_the_variable_by_its_place():
    """All rules that ask one question ask it in the same words."""
    assert question_words(BUTTER, LIBRARY) == ("B", "butter is an ingredient in [B]")


@pytest.mark.parametrize(("probability", "is_true"), [(0.85, True), (0.8499, False)])
def test_an_atom_whose_score_is_exactly_the_threshold_is_true(probability, is_true):
    """The threshold itself is enough, for an atom as for a value; what is below it is false."""
    atom = Atom("is_ingredient_in", (Constant("butter"), Constant("soup")))
    oracle = oracle_of(scripted(critic={"Butter is an ingredient in soup.": probability}))

    assert oracle.verify([atom]) == {atom: is_true}
    assert len(oracle.kb.facts("is_ingredient_in")) == is_true
    (decision,) = oracle.kb.decisions(run_id="run")
    assert ("reaches" in decision.reason) == is_true


def test_facts_of_users_and_arithmetic_have_probability_one_or_zero():
    """Given and computed facts are certain, and so is the absence of a given fact; the critic is not asked."""
    ada, year = Constant("Ada"), Constant(1815)
    expected = {
        Atom("was_born_in", (ada, year)): 1.0,
        Atom("was_born_in", (ada, Constant(1816))): 0.0,
        Atom("is_earlier", (year, Constant(1816))): 1.0,
        Atom("is_earlier", (year, year)): 0.0,
    }
    oracle = oracle_of(scripted())

    assert oracle.probabilities(expected) == expected
    assert not oracle.kb.decisions(run_id="run")
