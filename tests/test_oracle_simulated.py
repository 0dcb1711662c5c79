"""The simulated world answers real prompts with known truth and the error rates it was given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hapax.grammar.parser import load_library, parse_library
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.verbalize import Form, atom_text
from hapax.llm_oracle.answers import parse_values
from hapax.llm_oracle.prompts import functional_prompt, knowledge_prompt, sentence, type_claim
from hapax.llm_oracle.protocols import Critic, GenerationParameters, GenerationRequest, Generator, LikelihoodModel
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

RULES = """
type Food Allergen < Object.
type Nut < Ingredient.
type Spice < Ingredient.
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]".
oracle is_served_with(Dish, Beverage): "with [2] goes [1]".
functional was_invented_in(Dish, Year): "[1] was invented in [2]".
oracle costs_in(Dish, Country, Number).
"""
LIBRARY = parse_library([("test.rules", RULES)])
PARAMETERS = GenerationParameters()


@pytest.fixture(scope="module")
def world() -> SimulatedWorld:
    """A world of the default sizes."""
    return SimulatedWorld(LIBRARY, seed=5)


@pytest.fixture(scope="module")
def model(world: SimulatedWorld) -> SimulatedModel:
    """Its models."""
    return SimulatedModel(world)


def test_truth_depends_on_the_seed_alone(world: SimulatedWorld) -> None:
    """Two worlds of one seed agree in names and facts, another seed gives another world."""
    again, different = SimulatedWorld(LIBRARY, seed=5), SimulatedWorld(LIBRARY, seed=6)
    pair = (world.entities("Ingredient")[0], world.entities("Dish")[0])

    assert world.entities("Dish") == again.entities("Dish") != different.entities("Dish")
    assert world.holds("is_ingredient_in/2", pair) == again.holds("is_ingredient_in/2", pair)
    assert SimulatedModel(world).identity == SimulatedModel(again).identity != SimulatedModel(different).identity


def test_worlds_of_one_seed_are_told_apart() -> None:
    """Other settings or other types make another world, and its answers another model's; other wording does not."""
    libraries = [parse_library([("test.rules", text)]) for text in (RULES, RULES + "oracle is_old(City).", RULES + " ")]
    same, more, again = (SimulatedModel(SimulatedWorld(library, 5)).identity for library in libraries)
    different = SimulatedModel(SimulatedWorld(LIBRARY, 5, SimulationSettings(recall=0.8))).identity

    assert same == again
    assert len({same, more, different}) == 3


def test_every_sentence_is_read_back() -> None:
    """Among the templates of a large library each sentence, affirmed or denied, is read as what it was made from."""
    library = load_library([Path(__file__).parent.parent / "rules" / "library"])
    large = SimulatedWorld(library)
    for signature in library.signatures:
        values = tuple(large.entities(data_type)[0] for data_type in signature.argument_types)
        atom = Atom(signature.name, tuple(map(Constant, values)))
        forms: tuple[tuple[Form, bool], ...] = (("affirmative", False), ("negated", True))
        for form, denied in forms:
            words = sentence(atom_text(atom, library, form=form)).removesuffix(".")
            read = [(reading.signature, reading.arguments, reading.denied) for reading in large.read(words)]

            assert (signature, values, denied) in read, words


def test_types_nest(world: SimulatedWorld) -> None:
    """A type with subtypes has their entities and no others; numeric types have numbers."""
    assert set(world.entities("Ingredient")) == {*world.entities("Nut"), *world.entities("spice")}
    assert set(world.entities("Nut")).isdisjoint(world.entities("Spice"))
    assert all(isinstance(year, int) for year in world.entities("Year"))
    assert world.is_a(world.entities("Nut")[3], "Ingredient")


def test_prompt_is_understood(world: SimulatedWorld, model: SimulatedModel) -> None:
    """A question's true values are those whose facts hold, for any argument and template order."""
    dish, drink = world.entities("Dish")[3], world.entities("Beverage")[4]

    true, false = model.values(knowledge_prompt("A", f"[A] is an ingredient in {dish}", "Ingredient"))
    assert true == [value for value in world.entities("Ingredient") if world.holds("is_ingredient_in/2", (value, dish))]
    assert len(true) + len(false) == len(world.entities("Ingredient"))

    true, _ = model.values(knowledge_prompt("B", f"with {drink} goes [B]", "Dish"))
    assert true == [value for value in world.entities("Dish") if world.holds("is_served_with/2", (value, drink))]


def test_joined_prompt_asks_for_what_makes_all_true(world: SimulatedWorld, model: SimulatedModel) -> None:
    """Several atoms over one variable are joined by "and"; placeholders restrict nothing."""
    dishes = world.entities("Dish")[:2]
    words = f"[A] is an ingredient in {dishes[0]} and [A] is an ingredient in {dishes[1]}"
    both, _ = model.values(knowledge_prompt("A", words, "Ingredient"))

    assert both == [
        value
        for value in world.entities("Ingredient")
        if all(world.holds("is_ingredient_in/2", (value, dish)) for dish in dishes)
    ]
    everything, _ = model.values(knowledge_prompt("A", "[A] is an ingredient in [B]", "Nut"))
    assert everything == list(world.entities("Nut"))


def test_functional_question_has_one_right_value(world: SimulatedWorld, model: SimulatedModel) -> None:
    """A functional prompt gets one line, and exactly one year is right."""
    dish = world.entities("Dish")[0]
    prompt = functional_prompt("Y", f"{dish} was invented in [Y]", "Year")
    true, _ = model.values(prompt)

    assert len(true) == 1
    (answer,) = SimulatedModel(
        SimulatedWorld(LIBRARY, 5, SimulationSettings(recall=1, precision=1, malformed=0))
    ).generate([GenerationRequest(prompt)], PARAMETERS)
    assert answer.text == f"1. {true[0]}."


def test_predicate_without_template_and_of_three_places(world: SimulatedWorld, model: SimulatedModel) -> None:
    """A predicate without template is read by the words of its name, with all its arguments."""
    dish, country = world.entities("Dish")[0], world.entities("Country")[0]
    true, _ = model.values(knowledge_prompt("N", f"{dish} costs in {country} and [N]", "Number"))

    assert true == [value for value in world.entities("Number") if world.holds("costs_in/3", (dish, country, value))]


def test_generator_has_the_error_rates_asked_for(world: SimulatedWorld) -> None:
    """Over many lists, precision and recall are the settings', and noise is there and can be turned off."""
    settings = SimulationSettings(recall=0.8, precision=0.7, duplicates=0.0, malformed=0.0)
    model = SimulatedModel(replace(world, settings=settings))
    right = wrong = possible = 0
    for dish in world.entities("Dish")[:60]:
        prompt = knowledge_prompt("A", f"[A] is an ingredient in {dish}", "Ingredient")
        true = set(model.values(prompt)[0])
        (answer,) = model.generate([GenerationRequest(prompt)], PARAMETERS)
        values = [item.value for item in parse_values(answer.text, "A", "Ingredient")]
        assert len(set(values)) == len(values)
        right += len(true & set(values))
        wrong += len(set(values) - true)
        possible += len(true)

    assert right / (right + wrong) == pytest.approx(0.7, abs=0.06)
    assert right / possible == pytest.approx(0.8, abs=0.06)


def test_noise_is_dropped_by_the_parser(world: SimulatedWorld, model: SimulatedModel) -> None:
    """Repeated and malformed lines occur, and every one has a reason to be dropped."""
    prompts = [
        knowledge_prompt("A", f"[A] is an ingredient in {dish}", "Ingredient") for dish in world.entities("Dish")
    ]
    answers = model.generate([GenerationRequest(prompt) for prompt in prompts], PARAMETERS)
    parsed = [item for answer in answers for item in parse_values(answer.text, "A", "Ingredient")]
    reasons = {(item.rejected or "").split(" ")[0] for item in parsed}

    assert reasons == {"", "repeats", "does", "names", "is"}


def test_excluded_values_do_not_come_and_samples_differ(world: SimulatedWorld, model: SimulatedModel) -> None:
    """Exclusion is obeyed; the sample index and the seed give other lists, the same request the same."""
    prompt = knowledge_prompt("A", f"[A] is an ingredient in {world.entities('Dish')[0]}", "Ingredient")
    true = model.values(prompt)[0]
    request = GenerationRequest(prompt)
    requests = [request, request, replace(request, sample_index=1), replace(request, excluded_values=(str(true[0]),))]
    texts = [generation.text for generation in model.generate(requests, PARAMETERS)]

    assert texts[0] == texts[1] != texts[2]
    assert str(true[0]) not in texts[3]
    assert model.generate([request], replace(PARAMETERS, seed=1))[0].text != texts[0]


def test_critic_has_the_error_rates_asked_for(world: SimulatedWorld, model: SimulatedModel) -> None:
    """The share of true and of false claims at 0.85 or more is the settings'; a denied claim turns round."""
    dishes = world.entities("Dish")
    facts = [(ingredient, dish) for ingredient in world.entities("Ingredient") for dish in dishes]
    scores = model.probabilities([sentence(f"{ingredient} is an ingredient in {dish}") for ingredient, dish in facts])
    sure = {True: [0, 0], False: [0, 0]}
    for fact, score in zip(facts, scores, strict=True):
        count = sure[world.holds("is_ingredient_in/2", fact)]
        count[0] += score.probability >= 0.85
        count[1] += 1

    assert sure[True][0] / sure[True][1] == pytest.approx(0.95, abs=0.03)
    assert sure[False][0] / sure[False][1] == pytest.approx(0.03, abs=0.02)
    false = next(fact for fact in facts if not world.holds("is_ingredient_in/2", fact))
    assert model._believes(f"{false[0]} is not an ingredient in {false[1]}.")


def test_critic_judges_types(world: SimulatedWorld, model: SimulatedModel) -> None:
    """Type claims are judged by the entity's type and its supertypes; anything else is not believed."""
    nut = str(world.entities("Nut")[0])

    assert model._believes(type_claim(nut, "Nut"))
    assert model._believes(type_claim(nut, "Ingredient"))
    assert not model._believes(type_claim(nut, "Spice"))
    assert not model._believes(type_claim("unheard-of", "Nut"))
    assert not model._believes("Nonsense")


def test_likelihood_falls_with_rank(world: SimulatedWorld, model: SimulatedModel) -> None:
    """The same sentence is the less likely, the lower its entity ranks."""
    nuts = world.entities("Nut")
    scores = [score.per_token for score in model.log_likelihoods([f"{nut} is good." for nut in nuts])]

    assert scores == sorted(scores, reverse=True)
    assert all(isinstance(model, role) for role in (Generator, Critic, LikelihoodModel))


@pytest.mark.parametrize("prompt", ["", "What?", "x" * 10**6, knowledge_prompt("B", "x" * 10**5, "Dish")])
def test_other_prompts_have_no_true_values(model: SimulatedModel, prompt: str) -> None:
    """A prompt that is not about the world is answered without a fault."""
    assert model.values(prompt)[0] == []
    assert model.generate([GenerationRequest(prompt)], PARAMETERS)[0].text == ""
