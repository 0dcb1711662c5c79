"""Shared parts of the benchmarks: rules, simulated world, description of the machine, and output of figures."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library, Rule
from hapax.llm_oracle.protocols import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    Models,
)
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

LIBRARY = Path(__file__).parent.parent / "rules" / "library"
SHIPPED = LIBRARY.parent

FACTS = SimulationSettings().facts_per_argument


def chosen_rules(paths: Sequence[Path], count: int | None = None) -> tuple[Library, list[Rule]]:
    """The rules of these files and folders (default: the library), or `count` of them, spread evenly."""
    library = load_library(list(paths) or [LIBRARY])
    rules = [rule for rule in library.rules if not library.is_definition(rule) and rule.withdrawn is None]
    if count is None or count >= len(rules):
        return library, rules
    return library, [rules[place * len(rules) // count] for place in range(count)]


def simulated(library: Library, seed: int, facts: float = FACTS) -> SimulatedModel:
    """The model of a simulated world over the rules; `facts` is the mean number of right values of a question."""
    return SimulatedModel(SimulatedWorld(library, seed, SimulationSettings(facts_per_argument=facts)))


class DelegatingModel(ABC):
    """A model that passes the requests of all roles, together with the method that answers them, to `_answered`."""

    def __init__(self, models: Models) -> None:
        self.identity = models.knowledge.identity
        self._models = models

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return self._answered(KNOWLEDGE, requests, self._models.knowledge.generate, parameters)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return self._answered(CRITIC, claims, self._models.critic.probabilities)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self._answered(LIKELIHOOD, texts, self._models.likelihood.log_likelihoods)

    @abstractmethod
    def _answered(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        """The answers, as `answer(asked, *more)` returns them."""


def machine() -> dict[str, Any]:
    """Description of the machine and of the software versions."""
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
    """Write the figures as JSON; do nothing if `path` is None."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "utf-8")
