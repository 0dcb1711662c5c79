"""Trainable adapters for the linear layers of a network, saved in the form that `backends/adapters.py` merges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from hapax.llm_oracle.backends.adapters import DOWN, UP, Adapter

RANK = 16
SCALE = 2.0
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class AdaptedLinear(nn.Module):
    """A frozen linear layer plus a trainable product of two thin matrices, which begins at zero."""

    def __init__(self, layer: nn.Linear, rank: int = RANK) -> None:
        super().__init__()
        self.frozen = layer.requires_grad_(requires_grad=False)
        device = layer.weight.device
        self.down = nn.Parameter(torch.empty(rank, layer.in_features, device=device))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank, device=device))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        thin = functional.linear(states, self.down.to(states.dtype) * SCALE)
        return self.frozen(states) + functional.linear(thin, self.up.to(states.dtype))  # type: ignore[no-any-return]


def adapt(network: Any, rank: int = RANK) -> dict[str, AdaptedLinear]:
    """Put adapters on all projections, in place, by name; the rest of the network is frozen."""
    network.requires_grad_(requires_grad=False)
    adapted: dict[str, AdaptedLinear] = {}
    for name, module in list(network.named_modules()):
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in PROJECTIONS:
            adapted[name] = AdaptedLinear(module, rank)
            parent, _, own = name.rpartition(".")
            setattr(network.get_submodule(parent), own, adapted[name])
    return adapted


def save_adapter(adapted: Mapping[str, AdaptedLinear], path: Path, metadata: Mapping[str, str]) -> None:
    """Write the matrices in float16. The file appears as a whole."""
    tensors: dict[str, torch.Tensor] = {}
    for name, layer in adapted.items():
        tensors[name + DOWN] = layer.down.detach().to("cpu", torch.float16).contiguous()
        tensors[name + UP] = layer.up.detach().to("cpu", torch.float16).contiguous()
    unfinished = path.with_suffix(".unfinished")
    save_file(tensors, unfinished, {"scale": str(SCALE), **metadata})
    unfinished.replace(path)


def mean(adapters: Sequence[Adapter], rank: int) -> dict[str, torch.Tensor]:
    """Matrices of the mean of adapters of the same layers (Wortsman et al. 2022, Model soups).

    Each adapter adds a product of two thin matrices to a layer. The mean of such products has the sum of their ranks;
    the largest singular values are kept, up to `rank`.
    """
    tensors: dict[str, torch.Tensor] = {}
    for layer in adapters[0].layers:
        up = torch.cat([adapter.tensors[layer + UP].float() / len(adapters) for adapter in adapters], dim=1)
        down = torch.cat([adapter.tensors[layer + DOWN].float() for adapter in adapters])
        # The product is as large as the layer; the singular values of the two small factors are its own.
        left, left_factor = torch.linalg.qr(up)
        right, right_factor = torch.linalg.qr(down.T)
        rows, values, columns = torch.linalg.svd(left_factor @ right_factor.T)
        roots = values[:rank].sqrt()
        tensors[layer + UP] = (left @ rows[:, :rank] * roots).half().contiguous()
        tensors[layer + DOWN] = (roots[:, None] * columns[:rank] @ right.T).half().contiguous()
    return tensors
