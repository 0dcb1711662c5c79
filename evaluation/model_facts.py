"""What a model folder says about itself: size, identity of its weights, and how it was trained."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammar.errors import HapaxError
from llm_oracle.embedded.atlas import Atlas


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """`training` holds the settings of the run, its minutes included; empty if the folder does not tell them."""

    parameters: int
    layers: int
    width: int
    vocabulary: int
    weight_bytes: int
    weights_sha256: str
    atlas_facts: int
    atlas_predicates: int
    training: Mapping[str, Any]


def read_model_facts(folder: Path, atlas: Atlas) -> ModelFacts:
    """Raises HapaxError if the folder holds no model in one safetensors file."""
    from safetensors import safe_open

    weights = folder / "model.safetensors"
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        content = weights.read_bytes()
    except (OSError, ValueError) as fault:
        raise HapaxError(f"{folder} holds no model to measure ({fault}). Run `make model`.") from fault
    with safe_open(weights, framework="np") as tensors:
        parameters = sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return ModelFacts(
        parameters,
        config["num_hidden_layers"],
        config["hidden_size"],
        config["vocab_size"],
        len(content),
        hashlib.sha256(content).hexdigest(),
        len(atlas.facts),
        len(atlas.relations),
        _training(folder / "hapax.json"),
    )


def _training(listing: Path) -> dict[str, Any]:
    if not listing.is_file():
        return {}
    record = json.loads(listing.read_text("utf-8")).get("training", {})
    told = {name: record[name] for name in ("facts", "minutes") if name in record}
    return {**record.get("settings", {}), **told}
