"""Models of this process, spread over workers: the search asks as always, and its journal keeps every answer.

Models on servers stay where they are: one process already asks a server many questions at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.critics.measures import Measure, measures_of
from hapax.llm_oracle.journaled_models import JournaledModel, TokenReserving
from hapax.llm_oracle.protocols import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
    PairModel,
    PopularityModel,
    SpannedText,
    Stream,
    Structuring,
    Usage,
    in_request_order,
    reads_origins,
)
from hapax.llm_oracle.registry import PARAPHRASED, chain_parts, open_shared, runs_in_process

AT_ONCE = 32
"""Most requests in one call to a worker."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The models that each worker opens at its first request. `names`: model strings by role."""

    names: Mapping[str, str]
    options: OpeningOptions


class ModelWorker:
    """Answers for models in one process of a cluster.

    Errors are returned as text, because not every cluster transports exceptions whole.
    """

    def __init__(self, opening: Opening) -> None:
        self._names = opening.names
        self._opened = OpenedModels(opening.options)

    def identity(self, role: str) -> ModelIdentity | str:
        """The identity of a role's model, or why it cannot be opened."""
        try:
            identity: ModelIdentity = open_shared(self._opened, self._names[role], role).identity
        except HapaxError as fault:
            return str(fault)
        return identity

    def answers(self, role: str, asked: Sequence[Any], *parameters: GenerationParameters) -> list[Any] | str:
        """The answers of a role's model, or the error that prevented them."""
        try:
            model: Any = open_shared(self._opened, self._names[role], role)
            if role == KNOWLEDGE:
                return list(model.generate(asked, *parameters))
            if role == CRITIC:
                return list(model.probabilities(asked))
            if isinstance(asked[0], SpannedText):  # all are of one kind
                return list(model.span_log_likelihoods(asked))
            return list(model.log_likelihoods(asked))
        except HapaxError as fault:
            return str(fault)


class Workers(Protocol):
    """The workers of a cluster. Both methods raise HapaxError if a worker is gone for good."""

    @property
    def count(self) -> int: ...

    def identities(self, role: str) -> list[ModelIdentity | str]:
        """The value of `ModelWorker.identity` of every worker."""

    def answers(self, calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, list[Any] | str]]:
        """Positions of calls of `ModelWorker.answers` and their results as they arrive. A free worker gets the next."""


class SpreadModel:
    """A model whose requests the workers answer."""

    def __init__(self, model: Any, role: str, workers: Workers) -> None:
        self.identity: ModelIdentity = model.identity
        self._role, self._workers = role, workers

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]:
        """Answers in batches, as workers give them. Raises HapaxError with a worker's message."""
        size = max(1, min(AT_ONCE, math.ceil(len(asked) / self._workers.count)))
        starts = range(0, len(asked), size)
        calls = [(self._role, asked[start : start + size], *parameters) for start in starts]
        for number, answers in self._workers.answers(calls):
            if isinstance(answers, str):
                raise HapaxError(f"A worker: {answers}")
            yield list(enumerate(answers, starts[number]))


class SpreadGenerator(SpreadModel):
    """The knowledge model of the workers."""

    def __init__(self, model: Any, role: str, workers: Workers) -> None:
        super().__init__(model, role, workers)
        self.structures = isinstance(model, Structuring) and model.structures

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return in_request_order(self.stream(requests, parameters), len(requests))


class SpreadCritic(SpreadModel):
    """The critic of the workers."""

    def __init__(self, model: Any, role: str, workers: Workers) -> None:
        super().__init__(model, role, workers)
        self.reads_origins = reads_origins(model)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return in_request_order(self.stream(claims), len(claims))


class ReservingCritic(SpreadCritic):
    """A critic of the workers that reserves tokens as the opened one does."""

    def __init__(self, model: TokenReserving, role: str, workers: Workers) -> None:
        super().__init__(model, role, workers)
        self._model = model

    def reserved(self, claim: str) -> Usage:
        return self._model.reserved(claim)


class SpreadLikelihood(SpreadModel):
    """The ranker or the evaluator of the workers."""

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))


class SpreadSpanLikelihood(SpreadLikelihood):
    """A ranker or evaluator of the workers that also scores the values in a text."""

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))


def names_to_spread(names: Mapping[str, str | None], models: Models) -> dict[str, str]:
    """The model strings, by role, of the models that workers can answer for.

    These run in this process and load something: a list of words or names is looked up faster here. `names`: as the
    user gave them; a ranker without a name is the knowledge model where that ranks.
    """
    named = {**names, CRITIC: names[CRITIC] or names[KNOWLEDGE]}
    if named[LIKELIHOOD] is None and models.likelihood.identity == models.knowledge.identity:
        named[LIKELIHOOD] = names[KNOWLEDGE]
    found = {}
    for role, name in named.items():
        model = _of_role(models, role)
        is_looked_up = isinstance(model, PopularityModel | PairModel) or getattr(model, "words_are_independent", False)
        parts = [] if name is None else [part for link in chain_parts(name) for part in chain_parts(link, "+")]
        if name and not is_looked_up and all(runs_in_process(part.removeprefix(PARAPHRASED)) for part in parts):
            found[role] = name
    return found


def spread(models: Models, roles: Sequence[str], workers: Workers) -> Models:
    """The models, with the workers in the place of those of these roles.

    Raises HapaxError if a worker cannot open one, or opens another one under its name.
    """
    made: dict[str, Any] = {}
    for role in roles:
        model = _of_role(models, role)
        _check(model.identity, workers.identities(role))
        made[role] = _kind(model, role)(model, role, workers)
    return replace(models, **made)


def _of_role(models: Models, role: str) -> Any:
    model = getattr(models, role)
    return model.model if isinstance(model, JournaledModel) else model


def _kind(model: Any, role: str) -> Callable[..., SpreadModel]:
    """The class with the abilities of the opened model."""
    if role == KNOWLEDGE:
        return SpreadGenerator
    if role == CRITIC:
        return ReservingCritic if isinstance(model, TokenReserving) else SpreadCritic
    return SpreadSpanLikelihood if Measure.SPAN in measures_of(model) else SpreadLikelihood


def _check(here: ModelIdentity, workers: Sequence[ModelIdentity | str]) -> None:
    for number, there in enumerate(workers):
        if isinstance(there, str):
            raise HapaxError(f"Worker {number}: {there}")
        if there != here:
            raise HapaxError(
                f"Worker {number} opened {here.name} as {there.revision or there.name}, this process "
                f"as {here.revision or here.name}: their answers would differ.",
                Remedy("Give all machines the same files, versions and {}.", Setting("dtype")),
            )
