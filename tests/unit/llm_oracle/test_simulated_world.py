"""The simulated world answers real prompts with known truth and the error rates it was given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hapax.grammar.parser import parse_library
from hapax.llm_oracle.answers import parse_values
from hapax.llm_oracle.prompts import knowledge_prompt
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
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
