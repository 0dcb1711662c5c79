"""The three roles a model can play, as narrow batch-first protocols, and what passes through them.

Output is always aligned with input. Models score and propose; thresholds live in `engine/gates.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from grammar.errors import HapaxError

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """How one generation is sampled. All of it is part of the request's identity."""

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt with what the decoder must not produce.

    `excluded_values`: whole values that were given before; none of them comes in the answer.
    `banned_tokens_of`: texts whose tokens get a logit bias of -100 (LINK's way; servers that know `logit_bias`).
    `sample_index`: the how-manieth sample of this very request (a functional question is asked twice).
    """

    prompt: str
    excluded_values: tuple[str, ...] = ()
    banned_tokens_of: tuple[str, ...] = ()
    sample_index: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the backend counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Generation:
    """One reply. `finish_reason` is `length` where the token limit cut it, else `stop`.

    `refused`: why the model answers this request never, such as a content filter; empty: it did answer.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    refused: str = ""


@dataclass(frozen=True, slots=True)
class CriticScore:
    """P(yes) after softmax over the yes and the no answer alone; of a refused claim nothing is known, which is 0.5."""

    probability: float
    usage: Usage = field(default_factory=Usage)
    refused: str = ""


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Natural log of a text's probability, and over how many tokens.

    The first token, which nothing predicts, is left out. A refused text has no tokens and must not be ranked.
    """

    total: float
    token_count: int
    refused: str = ""

    @property
    def per_token(self) -> float:
        """Mean token log-likelihood: what ranks (LINK, section 2.3). An empty text ranks below everything."""
        return self.total / self.token_count if self.token_count else float("-inf")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What the journal, the report and `models` call a model."""

    name: str
    """Such as `embedded`, `hf/google/flan-t5-large`, `scripted/allergy.json`."""
    revision: str = ""
    """What changes when its answers may change: a weights hash, a script's hash, a seed."""
    knows: tuple[str, ...] | None = None
    """Indicators of the predicates it can answer; None: it claims no limit."""
    types: tuple[str, ...] | None = None
    """Data types that it can judge values of, in any case; None: it claims no limit."""


class PartlyAnswered(HapaxError):  # noqa: N818  # what matters is what was answered
    """The model failed for good amidst a batch. `answers`: those that had come, in their places, None elsewhere."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.answers: tuple[Any, ...] = ()


Stream: TypeAlias = Iterator[Sequence[tuple[int, Answer]]]
"""Answers with the places of their requests, in groups as they come. May end by PartlyAnswered, behind what came."""


def at_once(ask: Callable[[], Sequence[Answer]]) -> Stream[Answer]:
    """A batch as a stream of one group: all answers, or those that came before the model failed."""
    try:
        answers = ask()
    except PartlyAnswered as failed:
        yield [(place, answer) for place, answer in enumerate(failed.answers) if answer is not None]
        raise
    yield list(enumerate(answers))


def gathered(stream: Stream[Answer], count: int) -> list[Answer]:
    """A stream's answers in the order of their requests; where it ends early, in the exception, too."""
    answers: list[Any] = [None] * count
    try:
        for group in stream:
            for place, answer in group:
                answers[place] = answer
    except PartlyAnswered as failed:
        failed.answers = tuple(answers)
        raise
    return answers


class Model(Protocol):
    """What every role has: a name and revision for the journal."""

    @property
    def identity(self) -> ModelIdentity: ...


@runtime_checkable
class Generator(Model, Protocol):
    """Proposes values: the knowledge model."""

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]: ...


@runtime_checkable
class Critic(Model, Protocol):
    """Judges claims, each a finished sentence such as `Butter is an ingredient in saag chicken.`"""

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]: ...


@runtime_checkable
class LikelihoodModel(Model, Protocol):
    """Says how likely a text is."""

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]: ...


@runtime_checkable
class Streaming(Protocol):
    """A model that takes any number of requests at once and answers each as soon as it can, such as one on a server.

    What its role is asked by: `GenerationRequest`s with their parameters, claims, or texts.
    """

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]: ...


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a run by role. The evaluator judges delta and should not be the ranker (LINK, section 3.2)."""

    knowledge: Generator
    critic: Critic
    likelihood: LikelihoodModel
    evaluator: LikelihoodModel
