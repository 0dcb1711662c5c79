"""LoRA adapters (Hu et al. 2022, section 4): small matrices that are added to the weights of a network once, at load.

An adapter is a safetensors file. For a linear layer `NAME` with weight W (out x in) it has `NAME.down` (rank x in) and
`NAME.up` (out x rank), and W becomes W + scale * up @ down. `scale` and what else concerns the adapter are in the
file's metadata.
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

DOWN, UP = ".down", ".up"


@dataclass(frozen=True)
class Adapter:
    """The matrices of an adapter, by tensor name, its metadata, and a hash of its file."""

    path: Path
    tensors: Mapping[str, torch.Tensor]
    metadata: Mapping[str, str]
    revision: str

    @property
    def scale(self) -> float:
        return float(self.metadata.get("scale", "1"))

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the adapted layers."""
        return tuple(name.removesuffix(DOWN) for name in self.tensors if name.endswith(DOWN))


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
    # Neither half of a layer may be missing, and there is nothing else.
    halves = {name + DOWN for name in adapter.layers} | {name + UP for name in adapter.layers}
    if not halves or halves != set(tensors):
        raise HapaxError(f"{path} is not an adapter: its tensors are not pairs of NAME{DOWN} and NAME{UP}.")
    return adapter


@torch.no_grad()
def merge(network: Any, adapter: Adapter) -> None:
    """Add the adapter to the network's weights, in place. Raises HapaxError if it is made for another network."""
    for name in adapter.layers:
        down, up = adapter.tensors[name + DOWN].float(), adapter.tensors[name + UP].float()
        try:
            weight = network.get_submodule(name).weight
        except AttributeError:
            weight = None
        if weight is None or tuple(weight.shape) != (up.shape[0], down.shape[1]):
            raise HapaxError(
                f"{adapter.path.name} does not fit the model: there is no layer {name} of {up.shape[0]} x "
                f"{down.shape[1]}. Use the model that it was trained for: {adapter.metadata.get('base', 'unknown')}."
            )
        # The sum is rounded once, to the weight's own format.
        product = adapter.scale * (up @ down)
        weight.copy_((weight.float() + product.to(weight.device)).to(weight.dtype))
