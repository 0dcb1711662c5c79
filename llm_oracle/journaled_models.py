"""Models whose calls go through the journal: each wrapper keeps the protocol of the model it wraps."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from hapax.grammar.errors import HapaxError
from hapax.kb.files import system
from hapax.kb.records import CallRecord, content_id
from hapax.llm_oracle.budget import BudgetReached, estimated_tokens
from hapax.llm_oracle.journal import Asker, Journal, PreparedCall, StoredAnswer
from hapax.llm_oracle.protocols import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    ClaimText,
    Critic,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
    ModelIdentity,
    PopularityModel,
    Scored,
    SpanLikelihoodModel,
    SpannedText,
    Stream,
    Streaming,
    Usage,
    reads_origins,
    single_group,
)

_LOGGER = logging.getLogger("hapax.calls")

WrappedModel = TypeVar("WrappedModel", Generator, Critic, LikelihoodModel)
Answer = TypeVar("Answer", Generation, CriticScore, LogLikelihood)


@runtime_checkable
class TokenReserving(Protocol):
    """A critic that can use more for a claim than the claim's tokens and one answer token, such as a vote."""

    def reserved(self, claim: str) -> Usage: ...


class JournaledModel(ABC, Generic[WrappedModel, Answer]):
    """Common part of the wrappers. A stored response has the fields of an answer that are not the default."""

    kind: str
    """Kind of request, part of a call's identity."""
    answer: type[Answer]
    always: frozenset[str]
    """Fields that every stored response has."""
    role: str
    batch_size = 128

    def __init__(
        self, model: WrappedModel, journal: Journal, batch_size: int | None = None, role: str | None = None
    ) -> None:
        self.model: WrappedModel = model
        self.role = role or self.role
        self._journal = journal
        # A streaming model does its own batching, so it gets all requests at once.
        batch = None if isinstance(model, Streaming) else batch_size or self.batch_size
        self._asker = Asker(self.role, self.kind, model.identity, batch)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    @abstractmethod
    def prepared(self, asked: Any, *parameters: GenerationParameters) -> PreparedCall:
        """A request in the form that the journal stores."""

    def call_ids(self, asked: Sequence[Any], *parameters: GenerationParameters) -> list[str]:
        """Ids of these requests in the journal, so that candidates can name the call they came from."""
        return [self.prepared(request, *parameters).id for request in asked]

    def _stored(self, answer: Answer) -> StoredAnswer:
        response: dict[str, Any] = {}
        for field in fields(answer):
            value = getattr(answer, field.name)
            default = field.default if field.default_factory is MISSING else field.default_factory()
            if field.name in self.always or (field.name != "usage" and value != default):
                # In valid UTF-8: a lone surrogate from a broken reply becomes a question mark.
                response[field.name] = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        return StoredAnswer(response, answer.usage)

    def _read(self, record: CallRecord) -> Answer:
        content = {**record.response, "usage": Usage(record.prompt_tokens, record.completion_tokens)}
        names = [field.name for field in fields(self.answer)]
        return self.answer(**{name: content[name] for name in names if name in content})

    def _prepare(self, request: Mapping[str, Any], reserved: Usage) -> PreparedCall:
        model = self._asker.model
        # Without the role: likelihood and evaluator share answers if they are one model.
        return PreparedCall(content_id("call", self.kind, model.name, model.revision, request), request, reserved)

    def _journaled(
        self,
        calls: Sequence[PreparedCall],
        asked: Sequence[Any],
        ask: Callable[[Sequence[Any]], Sequence[Answer]],
        *parameters: GenerationParameters,
    ) -> list[Answer]:
        """The answers to `asked`, from the journal or the model. `calls` is aligned with `asked`."""

        def send(batch: Sequence[int]) -> Iterator[Sequence[tuple[int, StoredAnswer]]]:
            requests = [asked[position] for position in batch]
            for group in self._sent(requests, ask, *parameters):
                yield [(position, self._stored(answer)) for position, answer in group]

        began = system.monotonic()
        try:
            records = self._journal.answers(self._asker, calls, send)
            self._log(calls, records, system.monotonic() - began)
            return [self._read(record) for record in records]
        except BudgetReached as reached:
            # The journal gives records; callers of the model expect its answers.
            reached.answers = tuple(None if record is None else self._read(record) for record in reached.answers)
            raise

    def _log(self, calls: Sequence[PreparedCall], records: Sequence[CallRecord], seconds: float) -> None:
        if not calls:
            return
        sent = sum(call.id in self._journal.missed for call in calls)
        _LOGGER.info(
            "%s %s: %d sent, %d stored, %.1f s", self.role, self.identity.name, sent, len(calls) - sent, seconds
        )
        for call, record in zip(calls, records, strict=True):
            # In full, with prompts and answers, which only somebody who looks for a fault wants to see.
            _LOGGER.debug("%s %s asked %s, answered %s", self.role, self.identity.name, call.request, record.response)

    def _sent(
        self,
        requests: Sequence[Any],
        ask: Callable[[Sequence[Any]], Sequence[Answer]],
        *parameters: GenerationParameters,
    ) -> Stream[Answer]:
        """The model's answers as they arrive. Raises HapaxError unless there is one per request."""
        if isinstance(self.model, Streaming):
            return self.model.stream(requests, *parameters)

        def checked() -> Sequence[Answer]:
            answers = ask(requests)
            if len(answers) != len(requests):
                raise HapaxError(
                    f"{self.identity.name} gave {len(answers)} answers to {len(requests)} requests. "
                    f"Choose another model for the role {self.role}."
                )
            return answers

        return single_group(checked)

    def _unusable(self, fault: str) -> HapaxError:
        return HapaxError(
            f"{self.identity.name} gave {fault}, which is not a valid score. "
            f"Choose another model for the role {self.role}."
        )


class JournaledGenerator(JournaledModel[Generator, Generation]):
    """A Generator whose answers go through the journal."""

    kind = "generate"
    answer = Generation
    always = frozenset({"text", "finish_reason"})
    role = KNOWLEDGE
    batch_size = 16

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return self.answers([self.prepared(request, parameters) for request in requests], requests, parameters)

    def answers(
        self, calls: Sequence[PreparedCall], requests: Sequence[GenerationRequest], parameters: GenerationParameters
    ) -> list[Generation]:
        """Like `generate`, for requests that are already prepared."""
        return self._journaled(calls, requests, lambda batch: self.model.generate(batch, parameters), parameters)

    def prepared(self, asked: GenerationRequest, *parameters: GenerationParameters) -> PreparedCall:
        content = {**asked.content, "parameters": asdict(parameters[0])}
        return self._prepare(content, Usage(estimated_tokens(asked.prompt), parameters[0].max_tokens))


class JournaledCritic(JournaledModel[Critic, CriticScore]):
    """A Critic whose answers go through the journal."""

    kind = "probability"
    answer = CriticScore
    always = frozenset({"probability"})
    role = CRITIC

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        calls = [self.prepared(claim) for claim in claims]
        return self._journaled(calls, claims, self.model.probabilities)

    def prepared(self, asked: str, *_: GenerationParameters) -> PreparedCall:
        request = {"claim": str(asked)}
        if isinstance(asked, ClaimText) and reads_origins(self.model):
            request["about"] = asked.about
        reserved = self.model.reserved(asked) if isinstance(self.model, TokenReserving) else None
        # Most critics take the tokens of the claim, and one for the answer.
        return self._prepare(request, reserved or Usage(estimated_tokens(asked), 1))

    def _stored(self, answer: CriticScore) -> StoredAnswer:
        if not 0.0 <= answer.probability <= 1.0:  # false for NaN, too
            raise self._unusable(f"a probability of {answer.probability}")
        return super()._stored(answer)


class JournaledLikelihood(JournaledModel[LikelihoodModel, LogLikelihood]):
    """A LikelihoodModel whose answers go through the journal."""

    kind = "log_likelihood"
    answer = LogLikelihood
    always = frozenset({"total", "token_count"})
    role = LIKELIHOOD

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self.scores(texts)

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        """Like `log_likelihoods`, with a score for each span. Raises HapaxError for a model that scores no spans."""
        if not isinstance(self.model, SpanLikelihoodModel):
            raise HapaxError(
                f"{self.identity.name} scores whole sentences only, not the values in them. "
                "Choose another model for this measure."
            )
        return self.scores(texts)

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        """Like `PopularityModel.counts`. Raises HapaxError for a model that counts no names."""
        if not isinstance(self.model, PopularityModel):
            raise HapaxError(f"{self.identity.name} counts no names. Choose another model for this measure.")
        return [answer.total for answer in self.scores(names)]

    def scores(self, asked: Sequence[Scored]) -> list[LogLikelihood]:
        """The scores of texts, of texts with spans, or of names, all of one kind. A count of names is the total."""
        return self._journaled([self.prepared(request) for request in asked], asked, self._score)

    def _score(self, asked: Sequence[Any]) -> Sequence[LogLikelihood]:
        # All are of one kind (see `scores`), so the first tells which.
        if isinstance(asked[0], SpannedText):
            answers: Sequence[LogLikelihood] = cast(SpanLikelihoodModel, self.model).span_log_likelihoods(asked)
            return answers
        if isinstance(asked[0], tuple):
            return [LogLikelihood(count, 0) for count in cast(PopularityModel, self.model).counts(asked)]
        return self.model.log_likelihoods(asked)

    def prepared(self, asked: Scored, *_: GenerationParameters) -> PreparedCall:
        if isinstance(asked, tuple):
            return self._prepare({"names": asked}, Usage())
        text = asked.text if isinstance(asked, SpannedText) else asked
        spans = {"spans": asked.spans} if isinstance(asked, SpannedText) else {}
        return self._prepare({"text": text, **spans}, Usage(estimated_tokens(text), 0))  # scoring generates nothing

    def _stored(self, answer: LogLikelihood) -> StoredAnswer:
        if not math.isfinite(answer.total):
            raise self._unusable(f"a log-likelihood of {answer.total}")
        return super()._stored(answer)

    def _read(self, record: CallRecord) -> LogLikelihood:
        found = super()._read(record)
        return replace(found, spans=tuple((total, count) for total, count in found.spans))  # JSON has no tuples
