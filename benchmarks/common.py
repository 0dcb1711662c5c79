"""What the benchmarks share: which rules, which world, on which machine, and where the figures go."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from grammar.parser import load_library
from grammar.rules import Library, Rule
from llm_oracle.simulated import SimulatedModel, SimulatedWorld, SimulationSettings

LIBRARY = Path(__file__).parent.parent / "rules" / "library"
SHIPPED = LIBRARY.parent

FACTS = SimulationSettings().facts_per_argument


def chosen_rules(paths: Sequence[Path], count: int | None = None) -> tuple[Library, list[Rule]]:
    """The rules of these files and folders (default: the library); of these so many, spread evenly over all."""
    library = load_library(list(paths) or [LIBRARY])
    rules = [rule for rule in library.rules if not library.is_definition(rule)]
    if count is None or count >= len(rules):
        return library, rules
    return library, [rules[place * len(rules) // count] for place in range(count)]


def simulated(library: Library, seed: int, facts: float = FACTS) -> SimulatedModel:
    """The model of a world over the rules, in which a question has so many right values."""
    return SimulatedModel(SimulatedWorld(library, seed, SimulationSettings(facts_per_argument=facts)))


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "hapax": version("hapax-kb"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def write_figures(path: Path | None, figures: Mapping[str, Any]) -> None:
    """The figures as JSON, if a file was named."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "utf-8")
