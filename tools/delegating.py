"""A model that passes on what it is asked, for models of simulations and tests that note or change it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

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
