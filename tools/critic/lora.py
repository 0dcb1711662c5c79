"""Trainable adapters for the linear layers of a network, saved in the form that `backends/adapters.py` merges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from hapax.llm_oracle.backends.adapters import DOWN, UP

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


def adapt(network: Any, first_layer: int = 0, rank: int = RANK) -> dict[str, AdaptedLinear]:
    """Put adapters on all projections from a layer on, in place, by name; the rest of the network is frozen."""
    network.requires_grad_(requires_grad=False)
    adapted: dict[str, AdaptedLinear] = {}
    for name, module in list(network.named_modules()):
        number = next((int(part) for part in name.split(".") if part.isdigit()), -1)
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in PROJECTIONS and number >= first_layer:
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
