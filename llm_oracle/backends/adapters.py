"""LoRA adapters (Hu et al. 2022, section 4): small matrices that are added to the weights of a network once, at load.

An adapter is a safetensors file. For a linear layer `NAME` with weight W (out x in) it has `NAME.down` (rank x in) and
`NAME.up` (rank x out), both in 8-bit integers, and `NAME.scale` (rank), and W becomes W + up.T @ (scale * down).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backends.weights import check_sums, file_hash

PARTS = (".down", ".up", ".scale")


@dataclass(frozen=True)
class Adapter:
    """The matrices of an adapter, by tensor name, its metadata, and a hash of its file."""

    path: Path
    tensors: Mapping[str, torch.Tensor]
    metadata: Mapping[str, str]
    revision: str

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the adapted layers."""
        return tuple(name.removesuffix(PARTS[0]) for name in self.tensors if name.endswith(PARTS[0]))


def read_adapter(path: Path) -> Adapter:
    """Read an adapter. Raises HapaxError for a file that is unreadable, no adapter, or not as SHA256SUMS states."""
    check_sums(path.parent)
    try:
        with safe_open(path, framework="pt") as stream:
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118  # it is not a dict
            metadata = stream.metadata() or {}
        revision = file_hash(path)[:12]
    except (OSError, SafetensorError) as fault:
        raise HapaxError(f"{path} cannot be read as an adapter: {fault}. Install Hapax anew.") from fault
    adapter = Adapter(path, tensors, metadata, revision)
    # No part of a layer may be missing, and there is nothing else.
    if not tensors or {name + part for name in adapter.layers for part in PARTS} != set(tensors):
        parts = ", ".join(f"NAME{part}" for part in PARTS)
        raise HapaxError(f"{path} is not an adapter: its tensors are not {parts} of each layer. Install Hapax anew.")
    return adapter


@torch.no_grad()
def merge(network: Any, adapter: Adapter) -> None:
    """Add the adapter to the network's weights, in place. Raises HapaxError if it is made for another network."""
    for name in adapter.layers:
        down, up, scale = (adapter.tensors[name + part].float() for part in PARTS)
        try:
            weight = network.get_submodule(name).weight
        except AttributeError:
            weight = None
        if weight is None or tuple(weight.shape) != (up.shape[1], down.shape[1]):
            raise HapaxError(
                f"{adapter.path.name} does not fit the model: there is no layer {name} of {up.shape[1]} x "
                f"{down.shape[1]}. Use the model that it was trained for: {adapter.metadata.get('base', 'unknown')}."
            )
        # The sum is rounded once, to the weight's own format.
        product = up.T @ (scale[:, None] * down)
        weight.copy_((weight.float() + product.to(weight.device)).to(weight.dtype))
