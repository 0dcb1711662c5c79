"""The processor's speed in float32 and bfloat16, measured once and kept in the cache.

Asking for the features of a processor would not do: some support bfloat16 and multiply no faster in it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hapax.kb.files.unfinished import replace_file
from hapax.llm_oracle.weights.cache import cache_folder

ROWS, WIDTH, INNER = 256, 576, 1536
"""Shape of the measured product: (ROWS, WIDTH) by (WIDTH, INNER), one feed-forward layer of a small language model."""

ROUNDS = 20
"""Products in each format. The fastest counts, because other programs can only slow one down."""

CLEARLY = 1.5
"""Least speed of bfloat16 relative to float32 at which it is preferred, so that chance decides no near tie."""


@dataclass(frozen=True, slots=True)
class ProcessorSpeed:
    """Fastest times of one matrix product in microseconds, and what they hold for."""

    processor: str
    torch: str
    float32: float
    bfloat16: float

    @property
    def ratio(self) -> float:
        """Speed of bfloat16 relative to float32."""
        return self.float32 / self.bfloat16

    @property
    def prefers_bfloat16(self) -> bool:
        return self.ratio >= CLEARLY


@cache
def processor_speed() -> ProcessorSpeed:
    """The speed of this processor: from the cache, else measured now, which loads torch and takes under a second."""
    path = cache_folder() / "processor.json"
    processor, torch_version = _processor(), version("torch")
    with suppress(OSError, ValueError, TypeError):
        stored = ProcessorSpeed(**json.loads(path.read_text("utf-8")))
        if (stored.processor, stored.torch) == (processor, torch_version) and min(stored.float32, stored.bfloat16) > 0:
            return stored
    measured = ProcessorSpeed(processor, torch_version, *_race())
    # A cache that cannot be written costs a measurement per process, no more.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(asdict(measured)))
    return measured


def _processor() -> str:
    """A name of the processor's make, with the number of threads: a home folder may be shared between machines."""
    make = platform.processor() or platform.machine()
    with suppress(OSError):
        # Linux describes each core; the first stands for all.
        core = Path("/proc/cpuinfo").read_text("utf-8").partition("\n\n")[0]
        fields = [line.partition(":") for line in core.splitlines()]
        described = {name.strip(): value.strip() for name, _, value in fields}
        make = described.get("model name", make)
        extensions = described.get("flags", described.get("Features", "")).split()
        make = " ".join([make, *sorted(name for name in extensions if "bf16" in name)])
    return f"{make}, {os.cpu_count()} cores"


def _race() -> tuple[float, float]:
    """Microseconds of the product in float32 and in bfloat16."""
    import torch

    formats = (torch.float32, torch.bfloat16)
    operands = {name: (torch.randn(ROWS, WIDTH).to(name), torch.randn(INNER, WIDTH).to(name)) for name in formats}
    times: dict[torch.dtype, list[float]] = {name: [] for name in formats}
    threads = torch.get_num_threads()
    # On one thread: on a busy machine, threads that wait for each other would decide.
    torch.set_num_threads(1)
    try:
        # In turn, so that a busy moment slows both.
        for _ in range(ROUNDS):
            for name, (rows, weights) in operands.items():
                began = time.perf_counter()
                torch.nn.functional.linear(rows, weights)
                times[name].append(time.perf_counter() - began)
    finally:
        torch.set_num_threads(threads)
    # Not zero on a coarse clock, since `ratio` divides by it.
    fastest = [max(1e6 * min(times[name]), 0.001) for name in formats]
    return fastest[0], fastest[1]
