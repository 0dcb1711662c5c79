"""The scripted model answers from a file and says what its script lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.prompts import knowledge_prompt
from hapax.llm_oracle.protocols import Critic, GenerationParameters, GenerationRequest, Generator, LikelihoodModel
from hapax.llm_oracle.scripted import ScriptedModel

SCRIPT = {
    "generate": {
        "is an ingredient in [B]": ["naan", "saag chicken", 7],
        "butter is an ingredient in [B]": "1. paella.\nno item",
    },
    "critic": {"Butter is in naan.": 0.9},
    "likelihood": {"Butter is in naan.": -8, "Two.": [-3.5, 7]},
}
PARAMETERS = GenerationParameters()


def ask(model: ScriptedModel, sentence: str, *excluded: str) -> str:
    request = GenerationRequest(knowledge_prompt("B", sentence, "Dish"), excluded)
    return model.generate([request], PARAMETERS)[0].text


def test_longest_part_of_a_prompt_answers() -> None:
    """A list becomes a numbered list, a text stands as it is, and the most specific entry wins."""
    model = ScriptedModel(SCRIPT)

    assert ask(model, "ghee is an ingredient in [B]") == "1. naan.\n2. saag chicken.\n3. 7."
    assert ask(model, "butter is an ingredient in [B]") == "1. paella.\nno item"
    assert len(model.prompts) == 2


def test_excluded_values_are_left_out() -> None:
    """A scripted list obeys the request's exclusions, whatever their case."""
    assert ask(ScriptedModel(SCRIPT), "ghee is an ingredient in [B]", "Naan", "7") == "1. saag chicken."


def test_scores_are_the_script_s() -> None:
    """Claims and texts are looked up whole; a total alone counts the words but the first."""
    model = ScriptedModel(SCRIPT)
    (score,) = model.probabilities(["Butter is in naan."])
    whole, pair = model.log_likelihoods(["Butter is in naan.", "Two."])

    assert score.probability == 0.9
    assert (whole.total, whole.token_count) == (-8.0, 3)
    assert (pair.total, pair.token_count) == (-3.5, 7)
    assert (model.claims, model.texts) == (["Butter is in naan."], ["Butter is in naan.", "Two."])
    assert all(isinstance(model, role) for role in (Generator, Critic, LikelihoodModel))


def test_missing_answer_names_the_request() -> None:
    """An unknown request is an error that quotes it, unless there is a default."""
    model = ScriptedModel(SCRIPT)
    with pytest.raises(HapaxError, match="Ghee is in naan"):
        model.probabilities(["Ghee is in naan."])
    with pytest.raises(HapaxError, match="lies in"):
        ask(model, "Rome lies in [B]")

    kind = ScriptedModel({**SCRIPT, "defaults": {"generate": [], "critic": 0.1, "likelihood": -9}})
    assert kind.probabilities(["Ghee is in naan."])[0].probability == 0.1
    assert ask(kind, "Rome lies in [B]") == ""
    assert kind.log_likelihoods(["New."])[0].total == -9.0


def test_script_file(tmp_path: Path) -> None:
    """A file's name and content make the model's identity."""
    path = tmp_path / "naan.json"
    path.write_text(json.dumps(SCRIPT))
    first = ScriptedModel.from_file(path)
    path.write_text(json.dumps({**SCRIPT, "critic": {}}))

    assert first.identity.name == "scripted/naan.json"
    assert ScriptedModel.from_file(path).identity.revision != first.identity.revision


@pytest.mark.parametrize("text", ["", "[]", '{"critic": []}', "nonsense", "[" * 100_000, '{"oracle": {}}'])
def test_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    """A script that is no JSON object of objects is an error that names it."""
    path = tmp_path / "script.json"
    path.write_text(text)

    with pytest.raises(HapaxError, match="script"):
        ScriptedModel.from_file(path)


@pytest.mark.parametrize(
    "script",
    [
        {"generate": {"a": 7}},
        {"generate": {"a": [None]}},
        {"critic": {"a": "high"}},
        {"critic": {"a": True}},
        {"likelihood": {"a": [1]}},
        {"defaults": {"critic": None}},
    ],
)
def test_wrong_kind_of_answer_is_refused(script: dict[str, Any]) -> None:
    """An answer of the wrong kind is found when the script is opened, not when it is needed."""
    with pytest.raises(HapaxError, match="the answer in"):
        ScriptedModel(script)
