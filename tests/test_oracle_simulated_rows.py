"""Rows for a whole rule that a simulated model writes by instruction: right and wrong, whatever the wording."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hapax.grammar.parser import parse_library
from hapax.llm_oracle.prompts import InstructionParts, instruction_prompt
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

LIBRARY = parse_library(
    [
        (
            "test.rules",
            'oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "?" / "?".\n'
            'oracle belongs_to(Animal, Family): "[1] belongs to the [2]" / "?" / "?".\n'
            'oracle belongs_to_group(Ingredient, Group): "[1] belongs to the [2]" / "?" / "?".\n',
        )
    ]
)
PARTS = InstructionParts(
    (("B", "Dish"), ("G", "Group"), ("Z", "Ingredient")),
    "If Person X likes [G] and [Z] is an ingredient in [B] and [Z] belongs to the [G], then Person X likes [B].",
    count=10,
)
CLEAN = SimulationSettings(entities_per_type=20, precision=1.0, duplicates=0.0, malformed=0.0)


def written(parts: InstructionParts = PARTS, settings: SimulationSettings = CLEAN, *excluded: str) -> list[str]:
    model = SimulatedModel(SimulatedWorld(LIBRARY, 1, settings))
    request = GenerationRequest(instruction_prompt(parts), excluded)
    (reply,) = model.generate([request], GenerationParameters())
    return reply.text.splitlines()


def row(line: str) -> dict[str, str]:
    return dict(piece.split("=") for piece in line.partition(". ")[2].split(", "))


def test_rows_of_a_sure_model_are_true() -> None:
    """Every atom of the premise holds of each row, the clause that reads two ways in the one that its types allow."""
    world = SimulatedWorld(LIBRARY, 1, CLEAN)
    found = [row(line) for line in written()]

    assert len(found) > 5
    for values in found:
        assert world.holds("is_ingredient_in/2", [values["Z"], values["B"]])
        assert world.holds("belongs_to_group/2", [values["Z"], values["G"]])


def test_given_rows_do_not_come_again() -> None:
    """Rows that a request excludes are left out, and no row comes twice."""
    first = [line.partition(". ")[2] for line in written()]
    second = [line.partition(". ")[2] for line in written(PARTS, CLEAN, *first)]

    assert len(set(first)) == len(first)
    assert not set(first) & set(second)


def test_noise_breaks_the_format() -> None:
    """A model with faults writes lines that are no row."""
    lines = written(replace(PARTS, count=50), replace(CLEAN, precision=0.2, malformed=0.9))

    assert any("Z=" not in line for line in lines)


@pytest.mark.parametrize("released", [False, True])
def test_every_spelling_is_understood(released: bool) -> None:
    """The released code's prompt is answered like the paper's, and so is a long-tail wording."""
    assert written(replace(PARTS, wording=3, released=released))
