"""Model strings open models; what cannot be opened says what could be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke

import hapax

LIBRARY = hapax.parse_rules('oracle is_in(Food, Dish): "[1] is in [2]".')
SCRIPT: dict[str, Any] = {
    "generate": {"is in [B]": ["naan", "saag"], "ghee is in [B]": "1. paella.\nno item"},
    "critic": {"Butter is in naan.": 0.9},
    "likelihood": {"Butter is in naan.": -8, "Two.": [-3.5, 7]},
}


def scripted(folder: Path, script: dict[str, Any]) -> str:
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    return f"scripted:{folder / 'script.json'}"


def test_roles_are_chosen_one_by_one(tmp_path: Path) -> None:
    """Critic and likelihood are the knowledge model unless named; a simulated one takes its seed from string or option."""
    script = scripted(tmp_path, SCRIPT)
    one = hapax.open_models(script)
    mixed = hapax.open_models("simulated:7", script, "frequency", "simulated", library=LIBRARY, seed=3)

    assert one.knowledge is one.critic is one.likelihood
    names = [model.identity.name for model in (mixed.knowledge, mixed.critic, mixed.likelihood, mixed.evaluator)]
    assert names == ["simulated", "scripted/script.json", "frequency", "simulated"]
    assert "seed 7" in mixed.knowledge.identity.revision
    assert "seed 3" in mixed.evaluator.identity.revision


@pytest.mark.parametrize(
    "model", ["", "gpt", "openai", "openai:", "scripted", "hf:", "frequency:de", "Embedded", "\x00"]
)
def test_an_unknown_string_names_what_exists(model: str) -> None:
    """A string that names no model lists the forms that do."""
    with pytest.raises(hapax.HapaxError, match=r"embedded.*hf:NAME_OR_PATH.*openai:MODEL.*scripted:PATH"):
        hapax.open_models(model)


@pytest.mark.parametrize(
    ("model", "says"),
    [("frequency", "embedded"), ("simulated", "rules"), ("simulated:x", "simulated:7"), ("smollm2-critic", "embedded"),
     ("reference:nowhere", "geo"), ("scripted:none.json", "none.json"), ("gguf:none.gguf", "none.gguf")],
)  # fmt: skip
def test_a_model_that_cannot_play_its_role_says_what_would_help(model: str, says: str) -> None:
    """The error names another model, or what is missing."""
    with pytest.raises(hapax.HapaxError) as caught:
        hapax.open_models(model, library=None if model == "simulated" else LIBRARY)

    assert says in str(caught.value)


def test_the_list_says_roles_and_what_is_missing() -> None:
    """Every backend has roles and abilities, and a remedy exactly if it cannot be used."""
    listings = json.loads(invoke("model", "list", "--json").stdout)

    assert {"embedded", "frequency", "openai:MODEL"} <= {listing["name"] for listing in listings}
    assert all(listing["roles"] and listing["abilities"] for listing in listings)
    assert all(listing["available"] == (listing["remedy"] == "") for listing in listings)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"critic": []}', "[" * 100_000, '{"oracle": {}}', '{"generate": {"a": 7}}', '{"critic": {"a": true}}',
     '{"likelihood": {"a": [1]}}', '{"defaults": {"critic": null}}'],
)  # fmt: skip
def test_a_faulty_script_is_refused_when_it_is_opened(text: str, tmp_path: Path) -> None:
    """A script of another shape is an error that names the file."""
    (tmp_path / "script.json").write_text(text, "utf-8")

    with pytest.raises(hapax.HapaxError, match="script"):
        hapax.open_models(f"scripted:{tmp_path / 'script.json'}")
