"""Models whose calls go through the journal: each wrapper keeps the protocol of the model it wraps."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from hapax.grammar.errors import HapaxError
from hapax.kb.files import system
from hapax.kb.records import CallRecord, content_id
from hapax.llm_oracle.budget import BudgetReached, estimated_tokens
from hapax.llm_oracle.journal import REFUSED, Asker, Journal, PreparedCall, StoredAnswer
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
    """Common part of the wrappers. `_stored` and `_read` translate an answer into a journal's response and back."""

    kind: str
    """Kind of request, part of a call's identity."""

    def __init__(self, model: WrappedModel, journal: Journal, batch_size: int, role: str) -> None:
        self.model: WrappedModel = model
        self.role = role
        self._journal = journal
        # A streaming model does its own batching, so it gets all requests at once.
        batch = None if isinstance(model, Streaming) else batch_size
        self._asker = Asker(role, self.kind, model.identity, batch)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    @abstractmethod
    def _stored(self, answer: Answer) -> StoredAnswer: ...

    @abstractmethod
    def _read(self, record: CallRecord) -> Answer: ...

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

    def __init__(self, model: Generator, journal: Journal, batch_size: int = 16, role: str = KNOWLEDGE) -> None:
        super().__init__(model, journal, batch_size, role)

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return self.answers([self.prepared(request, parameters) for request in requests], requests, parameters)

    def answers(
        self, calls: Sequence[PreparedCall], requests: Sequence[GenerationRequest], parameters: GenerationParameters
    ) -> list[Generation]:
        """Like `generate`, for requests that are already prepared."""
        return self._journaled(calls, requests, lambda batch: self.model.generate(batch, parameters), parameters)

    def call_ids(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[str]:
        """Ids of these requests in the journal, so that candidates can name the call they came from."""
        return [self.prepared(request, parameters).id for request in requests]

    def prepared(self, request: GenerationRequest, parameters: GenerationParameters) -> PreparedCall:
        content = {**request.content, "parameters": asdict(parameters)}
        return self._prepare(content, Usage(estimated_tokens(request.prompt), parameters.max_tokens))

    def _stored(self, answer: Generation) -> StoredAnswer:
        response = {"text": _storable(answer.text), "finish_reason": answer.finish_reason}
        return StoredAnswer({**response, **_refusal(answer)}, answer.usage)

    def _read(self, record: CallRecord) -> Generation:
        response = record.response
        return Generation(response["text"], response["finish_reason"], _usage(record), response.get(REFUSED, ""))


class JournaledCritic(JournaledModel[Critic, CriticScore]):
    """A Critic whose answers go through the journal."""

    kind = "probability"

    def __init__(self, model: Critic, journal: Journal, batch_size: int = 128, role: str = CRITIC) -> None:
        super().__init__(model, journal, batch_size, role)
        self._reserved = model.reserved if isinstance(model, TokenReserving) else _claim_and_one_token

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        calls = [self.prepared(claim) for claim in claims]
        return self._journaled(calls, claims, self.model.probabilities)

    def call_ids(self, claims: Sequence[str]) -> list[str]:
        """Ids of these claims in the journal."""
        return [self.prepared(claim).id for claim in claims]

    def prepared(self, claim: str) -> PreparedCall:
        request = {"claim": str(claim)}
        if isinstance(claim, ClaimText) and reads_origins(self.model):
            request["about"] = claim.about
        return self._prepare(request, self._reserved(claim))

    def _stored(self, answer: CriticScore) -> StoredAnswer:
        if not 0.0 <= answer.probability <= 1.0:  # false for NaN, too
            raise self._unusable(f"a probability of {answer.probability}")
        response: dict[str, Any] = {"probability": answer.probability, **_refusal(answer)}
        # Only what differs from most critics: older journals have the probability alone.
        if not answer.covered:
            response["covered"] = False
        if answer.basis:
            response["basis"] = _storable(answer.basis)
        if answer.judge:
            response["judge"] = answer.judge
        if answer.members:
            response["members"] = dict(answer.members)
        return StoredAnswer(response, answer.usage)

    def _read(self, record: CallRecord) -> CriticScore:
        response = record.response
        return CriticScore(
            response["probability"],
            _usage(record),
            response.get(REFUSED, ""),
            response.get("covered", True),
            response.get("basis", ""),
            response.get("judge", ""),
            response.get("members", {}),
        )


class JournaledLikelihood(JournaledModel[LikelihoodModel, LogLikelihood]):
    """A LikelihoodModel whose answers go through the journal."""

    kind = "log_likelihood"

    def __init__(self, model: LikelihoodModel, journal: Journal, batch_size: int = 128, role: str = LIKELIHOOD) -> None:
        super().__init__(model, journal, batch_size, role)

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

    def call_ids(self, asked: Sequence[Scored]) -> list[str]:
        """Ids of these requests in the journal."""
        return [self.prepared(request).id for request in asked]

    def prepared(self, asked: Scored) -> PreparedCall:
        if isinstance(asked, SpannedText):
            return self._prepare({"text": asked.text, "spans": asked.spans}, _reservation(asked.text))
        if isinstance(asked, tuple):
            return self._prepare({"names": asked}, Usage())
        return self._prepare({"text": asked}, _reservation(asked))

    def _stored(self, answer: LogLikelihood) -> StoredAnswer:
        if not math.isfinite(answer.total):
            raise self._unusable(f"a log-likelihood of {answer.total}")
        response = {"total": answer.total, "token_count": answer.token_count, **_refusal(answer)}
        if answer.spans:
            response["spans"] = answer.spans
        if answer.first is not None:
            response["first"] = answer.first
        return StoredAnswer(response, Usage(answer.token_count, 0))  # scoring generates nothing

    def _read(self, record: CallRecord) -> LogLikelihood:
        response = record.response
        # JSON has no tuples.
        spans = tuple((total, count) for total, count in response.get("spans", ()))
        refused, first = response.get(REFUSED, ""), response.get("first")
        return LogLikelihood(response["total"], response["token_count"], refused, spans, first)


def _refusal(answer: Generation | CriticScore | LogLikelihood) -> dict[str, str]:
    return {REFUSED: _storable(answer.refused)} if answer.refused else {}


def _usage(record: CallRecord) -> Usage:
    return Usage(record.prompt_tokens, record.completion_tokens)


def _reservation(text: str) -> Usage:
    """Tokens of a text that is scored: nothing is generated."""
    return Usage(estimated_tokens(text), 0)


def _claim_and_one_token(claim: str) -> Usage:
    """Reservation for most critics: the tokens of the claim, and one of the answer."""
    return Usage(estimated_tokens(claim), 1)


def _storable(text: str) -> str:
    """The text in valid UTF-8: a lone surrogate from a broken reply becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
