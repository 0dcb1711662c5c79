"""Journal, cache and budget: what stands between the search and the models.

`JournaledGenerator` and its two siblings wrap a model and keep its protocol. A request is known by a hash of everything
that can change its answer; an answer that the journal holds is never asked for again. Misses are sent in batches; a
batch is reserved in the budget before it is sent and written to the journal before anybody sees it, so that a kill
loses the batch in flight and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

from grammar.errors import HapaxError
from grammar.words import counted
from kb.records import CallRecord, content_id
from llm_oracle.protocols import (
    Critic,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
    ModelIdentity,
    PartlyAnswered,
    Usage,
)

KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR = "knowledge", "critic", "likelihood", "evaluator"
"""The roles that statistics are kept by. Ranker and evaluator share answers where they are one model."""

PROBE = "probe"
"""Whose calls those are that find out what a server can do."""

REFUSED = "refused"
"""The field of a stored response that says why the model refused this request; an answer has none."""

BYTES_PER_TOKEN = 3
"""Of UTF-8 text, on the low side for English, so that a reservation is rather too high than too low."""


class CallStore(Protocol):
    """What the journal needs of a knowledge base."""

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]: ...

    def record_calls(self, calls: Sequence[CallRecord]) -> None: ...


class Unwritten:
    """A store that answers from another and writes nothing: a plan asks what a server can do, and changes no file."""

    def __init__(self, store: CallStore) -> None:
        self._store = store

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:
        return self._store.calls(request_ids)

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        """Nothing is kept."""


@runtime_checkable
class Reserving(Protocol):
    """A critic that needs more for a claim than its tokens and one of answer, such as several votes."""

    def reserved(self, claim: str) -> Usage: ...


@dataclass(frozen=True, slots=True)
class Price:
    """Money per million tokens, in whatever currency the whole price table uses."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        return (self.prompt * usage.prompt_tokens + self.completion * usage.completion_tokens) / 1_000_000


FREE = Price(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one invocation may send; None: no limit. Answers from the journal cost nothing.

    `roles`: whose calls count, so that a limit on calls can mean the knowledge model alone; None: everybody's.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    roles: frozenset[str] | None = None

    def counts(self, role: str) -> bool:
        return self.roles is None or role in self.roles


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """What was sent and what the journal answered. `cost` is None as soon as one price in it is unknown.

    `refused`: how many of both the model refused to answer.
    """

    calls: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    refused: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: CallStatistics) -> CallStatistics:
        return CallStatistics(
            self.calls + other.calls,
            self.hits + other.hits,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.refused + other.refused,
        )


class BudgetReached(HapaxError):  # noqa: N818  # an outcome that is planned for, with its own exit code
    """The next request would go beyond the budget; it was not sent.

    `used` is what this invocation has spent, `answers` what the interrupted request did get, aligned with its input
    (None where the budget stopped it). Everything answered is in the journal, so a later run goes on from here.
    """

    def __init__(self, limit: str, allowed: float, used: CallStatistics) -> None:
        self.limit = limit
        self.allowed = allowed
        self.used = used
        self.answers: tuple[Any, ...] = ()
        cost = "unknown" if used.cost is None else f"{used.cost:.4f}"
        super().__init__(
            f"Budget reached: the next request would exceed the limit of {allowed:g} on {limit}; so far "
            f"{counted(used.calls, 'call')}, {counted(used.tokens, 'token')}, cost {cost}. "
            "Raise the limit and run the same command: nothing is asked twice."
        )


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Told to a progress bar: what one batch sent, or what the journal answered before any was sent."""

    role: str
    sent: int
    hits: int


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks whom: the role that statistics are kept under, the kind of request, and the model."""

    role: str
    kind: str
    model: ModelIdentity
    batch_size: int


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A request as the journal keeps it, with the most tokens it can take."""

    id: str
    request: Mapping[str, Any]
    reserved: Usage


@dataclass(frozen=True, slots=True)
class Answered:
    """A model's answer as the journal keeps it."""

    response: Mapping[str, Any]
    usage: Usage


Answer = TypeVar("Answer")

Send = Callable[[Sequence[int]], Sequence[Answered]]
"""Sends the requests at these positions of the input to the model; one answer each, in order. May raise PartlyAnswered
with the answers that came."""


class Journal:
    """Answers from the store where it can, from the model where it must, within the budget.

    `prices`: by model name. A model that is not in it has an unknown price, which a limit on cost refuses.
    """

    def __init__(
        self,
        store: CallStore,
        budget: Budget | None = None,
        prices: Mapping[str, Price] | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        self.store = store
        self.budget = budget or Budget()
        self.prices = dict(prices or {})
        self.on_batch = on_batch
        self._statistics: dict[str, CallStatistics] = {}

    @property
    def statistics(self) -> dict[str, CallStatistics]:
        """By role, in order of first use."""
        return dict(self._statistics)

    @property
    def total(self) -> CallStatistics:
        return sum(self._statistics.values(), CallStatistics())

    def answers(self, asker: Asker, calls: Sequence[PreparedCall], send: Send) -> list[CallRecord]:
        """One record per call, in order; equal calls are sent once.

        Raises BudgetReached, with the records got so far as `answers`, when the next request would break the budget.
        """
        first_at: dict[str, int] = {}
        for position, call in enumerate(calls):
            first_at.setdefault(call.id, position)
        known = dict(self.store.calls(list(first_at))) if calls else {}
        waiting = [position for call_id, position in first_at.items() if call_id not in known]
        refused = sum(call.id in known and REFUSED in known[call.id].response for call in calls)
        self._count(asker, CallStatistics(hits=len(calls) - len(waiting), refused=refused))
        self._report(asker, sent=0, hits=len(calls) - len(waiting))
        try:
            while waiting:
                batch = self._affordable(asker, calls, waiting[: asker.batch_size])
                for record in self._send_batch(asker, calls, batch, send):
                    known[record.request_id] = record
                waiting = waiting[len(batch) :]
        except BudgetReached as reached:
            reached.answers = tuple(known.get(call.id) for call in calls)
            raise
        return [known[call.id] for call in calls]

    def _affordable(self, asker: Asker, calls: Sequence[PreparedCall], batch: Sequence[int]) -> Sequence[int]:
        """As much of the batch as the budget allows, at least one request; none left raises BudgetReached."""
        if not self.budget.counts(asker.role):
            return batch
        used = self._counted()
        price = self._price(asker.model)
        fitting = 0
        wanted = used
        for position in batch:
            reserved = calls[position].reserved
            wanted += _spent(1, reserved, price)
            limit = self._exceeded(wanted)
            if limit is not None and fitting == 0:
                raise BudgetReached(*limit, used)
            if limit is not None:
                break
            fitting += 1
        return batch[:fitting]

    def _exceeded(self, wanted: CallStatistics) -> tuple[str, float] | None:
        budget = self.budget
        if budget.max_calls is not None and wanted.calls > budget.max_calls:
            return "calls", budget.max_calls
        if budget.max_tokens is not None and wanted.tokens > budget.max_tokens:
            return "tokens", budget.max_tokens
        if budget.max_cost is not None and wanted.cost is not None and wanted.cost > budget.max_cost:
            return "cost", budget.max_cost
        return None

    def _price(self, model: ModelIdentity) -> Price | None:
        price = self.prices.get(model.name)
        if price is None and self.budget.max_cost is not None:
            raise HapaxError(
                f"The price of {model.name} is unknown, so a limit on cost cannot be kept. Give its price per million "
                "tokens by --price MODEL=IN,OUT or in its alias, or limit calls or tokens instead."
            )
        return price

    def _counted(self) -> CallStatistics:
        counted = (spent for role, spent in self._statistics.items() if self.budget.counts(role))
        return sum(counted, CallStatistics())

    def _send_batch(
        self, asker: Asker, calls: Sequence[PreparedCall], batch: Sequence[int], send: Send
    ) -> list[CallRecord]:
        try:
            answers = send(batch)
        except PartlyAnswered as failed:
            came = zip(batch, failed.answers, strict=False)
            self._keep(asker, [(calls[position], answer) for position, answer in came if answer is not None])
            raise
        if len(answers) != len(batch):
            raise HapaxError(
                f"{asker.model.name} gave {len(answers)} answers to {len(batch)} requests. "
                f"Choose another model for the role {asker.role}."
            )
        return self._keep(asker, [(calls[position], answer) for position, answer in zip(batch, answers, strict=True)])

    def _keep(self, asker: Asker, answered: Sequence[tuple[PreparedCall, Answered]]) -> list[CallRecord]:
        price = self.prices.get(asker.model.name)
        records = [_record(asker, call, answer, price) for call, answer in answered]
        self.store.record_calls(records)
        spent = (replace(_spent(1, one.usage, price), refused=int(REFUSED in one.response)) for _, one in answered)
        self._count(asker, sum(spent, CallStatistics()))
        self._report(asker, sent=len(records), hits=0)
        return records

    def _count(self, asker: Asker, more: CallStatistics) -> None:
        self._statistics[asker.role] = self._statistics.get(asker.role, CallStatistics()) + more

    def _report(self, asker: Asker, sent: int, hits: int) -> None:
        if self.on_batch is not None and (sent or hits):
            self.on_batch(BatchReport(asker.role, sent, hits))


class JournaledGenerator:
    """A Generator whose answers go through the journal."""

    def __init__(self, model: Generator, journal: Journal, batch_size: int = 16, role: str = KNOWLEDGE) -> None:
        self.model = model
        self._journal = journal
        self._asker = Asker(role, "generate", model.identity, batch_size)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        calls = [self.prepared(request, parameters) for request in requests]

        def send(batch: Sequence[int]) -> list[Answered]:
            some = [requests[position] for position in batch]
            return _answered(lambda: self.model.generate(some, parameters), self._answered)

        return _read(self._journal, self._asker, calls, send, _generation)

    def call_ids(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[str]:
        """What the journal calls these requests, so that candidates can name the call they came from."""
        return [self.prepared(request, parameters).id for request in requests]

    def prepared(self, request: GenerationRequest, parameters: GenerationParameters) -> PreparedCall:
        content = {**asdict(request), "parameters": asdict(parameters)}
        return _prepared(self._asker, content, Usage(_estimated_tokens(request.prompt), parameters.max_tokens))

    def _answered(self, answer: Generation) -> Answered:
        response = {"text": _storable(answer.text), "finish_reason": answer.finish_reason}
        return Answered({**response, **_refusal(answer)}, answer.usage)


class JournaledCritic:
    """A Critic whose answers go through the journal."""

    def __init__(self, model: Critic, journal: Journal, batch_size: int = 128, role: str = CRITIC) -> None:
        self.model = model
        self._journal = journal
        self._asker = Asker(role, "probability", model.identity, batch_size)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        calls = [self.prepared(claim) for claim in claims]

        def send(batch: Sequence[int]) -> list[Answered]:
            some = [claims[position] for position in batch]
            return _answered(lambda: self.model.probabilities(some), self._answered)

        return _read(self._journal, self._asker, calls, send, _critic_score)

    def call_ids(self, claims: Sequence[str]) -> list[str]:
        """What the journal calls these requests."""
        return [self.prepared(claim).id for claim in claims]

    def prepared(self, claim: str) -> PreparedCall:
        usual = Usage(_estimated_tokens(claim), 1)
        return _prepared(
            self._asker, {"claim": claim}, self.model.reserved(claim) if isinstance(self.model, Reserving) else usual
        )

    def _answered(self, score: CriticScore) -> Answered:
        if not 0.0 <= score.probability <= 1.0:
            raise _unusable(self.identity, f"a probability of {score.probability}")
        return Answered({"probability": score.probability, **_refusal(score)}, score.usage)


class JournaledLikelihood:
    """A LikelihoodModel whose answers go through the journal."""

    def __init__(self, model: LikelihoodModel, journal: Journal, batch_size: int = 128, role: str = LIKELIHOOD) -> None:
        self.model = model
        self._journal = journal
        self._asker = Asker(role, "log_likelihood", model.identity, batch_size)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        calls = [self.prepared(text) for text in texts]

        def send(batch: Sequence[int]) -> list[Answered]:
            some = [texts[position] for position in batch]
            return _answered(lambda: self.model.log_likelihoods(some), self._answered)

        return _read(self._journal, self._asker, calls, send, _log_likelihood)

    def call_ids(self, texts: Sequence[str]) -> list[str]:
        """What the journal calls these requests."""
        return [self.prepared(text).id for text in texts]

    def prepared(self, text: str) -> PreparedCall:
        return _prepared(self._asker, {"text": text}, Usage(_estimated_tokens(text), 0))

    def _answered(self, score: LogLikelihood) -> Answered:
        if not math.isfinite(score.total):
            raise _unusable(self.identity, f"a log-likelihood of {score.total}")
        response = {"total": score.total, "token_count": score.token_count, **_refusal(score)}
        return Answered(response, Usage(score.token_count, 0))


def _answered(ask: Callable[[], Sequence[Answer]], answered: Callable[[Answer], Answered]) -> list[Answered]:
    """The model's answers as the journal keeps them, in the exception too."""
    try:
        return [answered(one) for one in ask()]
    except PartlyAnswered as failed:
        failed.answers = tuple(None if one is None else answered(one) for one in failed.answers)
        raise


def _refusal(answer: Generation | CriticScore | LogLikelihood) -> dict[str, str]:
    return {REFUSED: _storable(answer.refused)} if answer.refused else {}


def _read(
    journal: Journal,
    asker: Asker,
    calls: Sequence[PreparedCall],
    send: Send,
    read: Callable[[CallRecord], Answer],
) -> list[Answer]:
    """The journal's records as the protocol's answers, in the exception too."""
    try:
        return [read(record) for record in journal.answers(asker, calls, send)]
    except BudgetReached as reached:
        reached.answers = tuple(None if record is None else read(record) for record in reached.answers)
        raise


def _prepared(asker: Asker, request: Mapping[str, Any], reserved: Usage) -> PreparedCall:
    request_id = content_id("call", asker.kind, asker.model.name, asker.model.revision, request)
    return PreparedCall(request_id, request, reserved)


def _record(asker: Asker, call: PreparedCall, answer: Answered, price: Price | None) -> CallRecord:
    return CallRecord(
        call.id,
        asker.role,
        f"{asker.model.name}@{asker.model.revision}" if asker.model.revision else asker.model.name,
        call.request,
        answer.response,
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
        None if price is None else price.of(answer.usage),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _usage(record: CallRecord) -> Usage:
    return Usage(record.prompt_tokens, record.completion_tokens)


def _generation(record: CallRecord) -> Generation:
    response = record.response
    return Generation(response["text"], response["finish_reason"], _usage(record), response.get(REFUSED, ""))


def _critic_score(record: CallRecord) -> CriticScore:
    return CriticScore(record.response["probability"], _usage(record), record.response.get(REFUSED, ""))


def _log_likelihood(record: CallRecord) -> LogLikelihood:
    response = record.response
    return LogLikelihood(response["total"], response["token_count"], response.get(REFUSED, ""))


def _spent(calls: int, usage: Usage, price: Price | None) -> CallStatistics:
    cost = None if price is None else price.of(usage)
    return CallStatistics(calls, 0, usage.prompt_tokens, usage.completion_tokens, cost)


def _estimated_tokens(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + 1


def _storable(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate from a broken reply becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _unusable(model: ModelIdentity, what: str) -> HapaxError:
    return HapaxError(f"{model.name} gave {what}, which is no score. Choose another model for this role.")
