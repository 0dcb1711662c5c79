"""Read facts about a model from its folder: size, hash of the weights, and settings of the training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.embedded.atlas import Atlas


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model.

    `training` has the settings of the run and its duration in minutes; it is empty if the folder does not record them.
    """

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
    """Read the facts. Raises HapaxError if the folder contains no model in a single safetensors file."""
    from safetensors import safe_open

    weights = folder / "model.safetensors"
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        content = weights.read_bytes()
    except (OSError, ValueError) as fault:
        raise HapaxError(f"{folder} contains no model to measure ({fault}). Run `make model`.") from fault
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
    extra = {name: record[name] for name in ("facts", "minutes") if name in record}
    return {**record.get("settings", {}), **extra}
