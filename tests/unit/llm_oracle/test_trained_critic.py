"""The trained critic: its adapter is merged as it says, and its card decides what it judges."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from tiny_models import tiny_llama, tiny_tokenizer

from hapax.llm_oracle.backends.adapters import merge, read_adapter
from hapax.llm_oracle.backends.trained_critic import CriticCard, MeasuredPredicate


def test_a_merged_weight_is_the_sum_of_base_and_product(tmp_path: Path) -> None:
    """The product of both halves of an adapter is added to its layer, and to no other."""
    network = tiny_llama(tiny_tokenizer())
    name = "model.layers.1.self_attn.q_proj"
    down, up = torch.randn(3, 32), torch.randn(32, 3)
    save_file({f"{name}.down": down, f"{name}.up": up}, tmp_path / "a.safetensors", {"base": "tiny"})
    before = {key: value.clone() for key, value in network.state_dict().items()}

    merge(network, read_adapter(tmp_path / "a.safetensors"))

    changed = {key for key, value in network.state_dict().items() if not torch.equal(value, before[key])}
    assert changed == {f"{name}.weight"}
    found = network.state_dict()[f"{name}.weight"]
    assert torch.allclose(found, before[f"{name}.weight"] + up @ down, atol=1e-4)


def test_the_longest_template_that_fits_decides_what_is_covered() -> None:
    """A claim of a predicate that the card excludes is refused; one by a longer template of another is judged."""
    births = MeasuredPredicate("was_born_in", ("[1] was born in [2]",), 0.5, 40, judged=False)
    places = MeasuredPredicate("was_born_in_the_city_of", ("[1] was born in the city of [2]",), 0.9, 40, judged=True)
    card = CriticCard((births, places), bar=0.65)

    assert card.refusing("Marie Curie was born in 1867.") == births
    assert card.refusing("Marie Curie was born in the city of Warsaw.") is None
    assert card.refusing("Marie Curie won two prizes.") is None
