"""What the benchmarks share: which rules, which world, on which machine, and where the figures go."""

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

from grammar.parser import load_library
from grammar.rules import Library, Rule
from llm_oracle.calls import CRITIC, KNOWLEDGE, LIKELIHOOD
from llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    Models,
)
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


class Beside(ABC):
    """A model that hands everything it is asked, in whichever role, to others' answers by way of `_answered`."""

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
        """What `answer(asked, *more)` gives, and whatever is to be done beside."""


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
