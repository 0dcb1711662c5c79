"""The critic with a trained adapter: merging on a tiny network, and claims that its card leaves to others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backends.adapters import merge, read_adapter
from hapax.llm_oracle.backends.trained_critic import ADAPTER, CARD, FOLDER, CriticCard, MeasuredPredicate, read_card
from hapax.llm_oracle.prompts import critic_prompt
from hapax.llm_oracle.registry import open_model
from tools.critic.lora import adapt, save_adapter

BIRTHS = MeasuredPredicate("was_born_in", ("[1] was born in [2]", "[1] was not born in [2]"), 0.5, 40, judged=False)
PLACES = MeasuredPredicate("was_born_in_the_city_of", ("[1] was born in the city of [2]",), 0.9, 40, judged=True)


def network() -> LlamaForCausalLM:
    torch.manual_seed(1)
    size = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=32, max_position_embeddings=32, **size)).eval()


@torch.no_grad()
def test_a_merged_adapter_gives_the_logits_of_training(tmp_path: Path) -> None:
    """The network with merged weights answers like the one with trainable adapters, and unlike the base."""
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    base = network()
    trained = network()
    adapted = adapt(trained, first_layer=1, rank=3)
    for layer in adapted.values():
        layer.up.copy_(0.3 * torch.randn_like(layer.up))
    save_adapter(adapted, tmp_path / "adapter.safetensors", {"base": "tiny"})

    before = base(ids).logits
    merge(base, read_adapter(tmp_path / "adapter.safetensors"))

    assert {name.split(".")[2] for name in adapted} == {"1"}
    assert torch.allclose(base(ids).logits, trained(ids).logits, atol=1e-2)
    assert not torch.allclose(base(ids).logits, before, atol=1e-1)


def test_an_adapter_of_another_network_is_refused(tmp_path: Path) -> None:
    """Shapes or layers that the network does not have are an error that names the model of the adapter."""
    name = "model.layers.0.self_attn.q_proj"
    tensors = {f"{name}.down": torch.zeros(2, 99), f"{name}.up": torch.zeros(16, 2)}
    save_file(tensors, tmp_path / "wide.safetensors", {"base": "another model"})
    with pytest.raises(HapaxError, match=r"16 x 99.*another model"):
        merge(network(), read_adapter(tmp_path / "wide.safetensors"))

    save_file({f"{name}.down": torch.zeros(2, 16)}, tmp_path / "half.safetensors")
    with pytest.raises(HapaxError, match="not an adapter"):
        read_adapter(tmp_path / "half.safetensors")

    (tmp_path / "text.safetensors").write_text("nothing", encoding="utf-8")
    with pytest.raises(HapaxError, match="cannot be read as an adapter"):
        read_adapter(tmp_path / "text.safetensors")


@pytest.mark.parametrize(
    ("claim", "refused"),
    [
        ("Marie Curie was born in 1867.", True),
        ("Marie Curie was not born in 1867.", True),
        (critic_prompt("Marie Curie was born in 1867."), True),
        ("Marie Curie was born in the city of Warsaw.", False),
        ("Marie Curie won two prizes.", False),
        ("", False),
    ],
)
def test_the_longest_template_that_fits_decides_what_is_covered(claim: str, refused: bool) -> None:
    """A claim of a predicate that the card excludes is refused; one by a longer template of another is judged."""
    card = CriticCard((BIRTHS, PLACES), bar=0.65)

    assert card.refusing(claim) == (BIRTHS if refused else None)


def test_a_faulty_card_is_an_error(tmp_path: Path) -> None:
    """A card that is no JSON, or lacks a field, names the file."""
    path = tmp_path / "card.json"
    for text in ("{", json.dumps({"bar": 0.6, "predicates": {"p": {}}}), "[]"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(HapaxError, match=r"card\.json cannot be read as a critic's card"):
            read_card(path)


def test_the_shipped_adapter_is_small_and_has_a_card_of_what_it_may_not_judge() -> None:
    """The package holds an adapter of at most 12 MB with its hash, and every predicate's figure decides if it is judged."""
    card = json.loads((FOLDER / CARD).read_text(encoding="utf-8"))
    adapter = read_adapter(FOLDER / ADAPTER)

    assert (FOLDER / ADAPTER).stat().st_size <= 12_000_000
    assert card["adapter"]["sha256"].startswith(adapter.revision)
    assert {tensor.dtype for tensor in adapter.tensors.values()} == {torch.float16}
    for entry in read_card(FOLDER / CARD).predicates:
        assert entry.judged is (entry.area >= card["bar"])
        assert entry.templates
    assert (FOLDER / "README.md").read_text(encoding="utf-8").count("| `") == len(card["predicates"])


@pytest.mark.parametrize("role", ["knowledge", "likelihood", "evaluator"])
def test_it_is_refused_in_roles_that_it_was_not_trained_for(role: str) -> None:
    """The string serves as a critic alone, and the error names models for the role."""
    with pytest.raises(HapaxError, match=rf"smollm2-critic cannot be the {role} model\. Choose one of embedded"):
        open_model("smollm2-critic", role)
