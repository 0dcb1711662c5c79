"""The mean of trained adapters (Wortsman et al. 2022, Model soups): `python -m tools.critic.averaging A B --to C`.

Each adapter adds a product of two thin matrices to a layer. The mean of such products has the sum of their ranks; the
largest singular values are kept, up to `--rank`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backends.adapters import DOWN, UP, Adapter, read_adapter

RANK = 19
"""The adapter of all layers then has 11.6 MB in float16."""


def mean(adapters: Sequence[Adapter], rank: int) -> dict[str, torch.Tensor]:
    """Matrices of the mean. Raises HapaxError if the adapters differ in base, layers or scale."""
    first = adapters[0]
    for adapter in adapters:
        if (adapter.layers, adapter.scale, adapter.metadata["base"]) != (
            first.layers,
            first.scale,
            first.metadata["base"],
        ):
            raise HapaxError(f"{adapter.path} adapts another network or other layers than {first.path}.")
    tensors: dict[str, torch.Tensor] = {}
    for layer in first.layers:
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


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adapters", type=Path, nargs="+")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=RANK)
    options = parser.parse_args()
    adapters = [read_adapter(path) for path in options.adapters]
    claims = sum(int(adapter.metadata["claims"]) for adapter in adapters)
    metadata = {
        "base": adapters[0].metadata["base"],
        "scale": str(adapters[0].scale),
        "claims": str(claims),
        "trainings": str(len(adapters)),
    }
    save_file(mean(adapters, options.rank), options.to, metadata)


if __name__ == "__main__":
    main()
