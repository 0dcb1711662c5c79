"""Journal, cache and budget: what stands between the search and the models.

`JournaledGenerator` and its two siblings wrap a model and keep its protocol. A request is known by a hash of everything
that can change its answer; an answer that the journal holds is never asked for again. Misses are sent in batches, or
all at once to a model that takes them so; they are reserved in the budget before they are sent, and answers are written
to the journal as they come and before anybody sees them, so that a kill loses what is in flight and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
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
    Stream,
    Streaming,
    Usage,
    at_once,
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


@runtime_checkable
class Shared(Protocol):
    """A store that several processes may use: within `asking` no other one asks models on its behalf.

    `writes_elsewhere` gives another number once another process has written to it.
    """

    def asking(self) -> AbstractContextManager[None]: ...

    def writes_elsewhere(self) -> int: ...


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

    @property
    def is_unlimited(self) -> bool:
        return self.max_calls is None and self.max_tokens is None and self.max_cost is None

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


class PutOff(BudgetReached, PartlyAnswered):
    """Requests that were not sent but written down, to be answered elsewhere. Others may still be asked."""

    def __init__(self, message: str) -> None:
        PartlyAnswered.__init__(self, message)
        self.limit, self.allowed, self.used = "requests sent", 0.0, CallStatistics()


class GoingOn:
    """Around each of several askings: one that was put off does not keep the others from being asked.

    `settle`, behind the last, raises what put off the first.
    """

    def __init__(self) -> None:
        self.first: PutOff | None = None

    def __enter__(self) -> None:
        """Nothing is to be prepared."""

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> bool:
        if not isinstance(fault, PutOff):
            return False
        self.first = self.first or fault
        return True

    def settle(self) -> None:
        """Raises PutOff if anything was put off."""
        if self.first is not None:
            raise self.first


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Told to a progress bar: what one batch sent, or what the journal answered before any was sent."""

    role: str
    sent: int
    hits: int


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks whom: the role that statistics are kept under, the kind of request, and the model.

    `batch_size`: requests that the model is sent at once; None: any number.
    """

    role: str
    kind: str
    model: ModelIdentity
    batch_size: int | None


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

Send = Callable[[Sequence[int]], Stream[Answered]]
"""Sends the requests at these positions of the input to the model; gives answers by their places in this batch."""


class Journal:
    """Answers from the store where it can, from the model where it must, within the budget.

    `prices`: by model name. A model that is not in it has an unknown price, which a limit on cost refuses. `missed`:
    what the store lacked of the requests that were asked last.
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
        self.missed: frozenset[str] = frozenset()
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

        Raises BudgetReached, with the records got so far as `answers`, when the next request would break the budget;
        PutOff, likewise, once all others were asked.
        """
        wanted = list(dict.fromkeys(call.id for call in calls))
        shared = self.store if isinstance(self.store, Shared) else None
        written = shared.writes_elsewhere() if shared else 0
        known = dict(self.store.calls(wanted)) if wanted else {}
        missing = [call_id for call_id in wanted if call_id not in known]
        if shared is None or not missing:
            return self._answers(asker, calls, known, send)
        with shared.asking():
            if shared.writes_elsewhere() != written:  # by who had asked when this one looked, or while it waited
                known.update(self.store.calls(missing))
            return self._answers(asker, calls, known, send)

    def _answers(
        self, asker: Asker, calls: Sequence[PreparedCall], known: dict[str, CallRecord], send: Send
    ) -> list[CallRecord]:
        """What is known, and what the model answers to the rest."""
        first_at: dict[str, int] = {}
        for position, call in enumerate(calls):
            first_at.setdefault(call.id, position)
        waiting = [position for call_id, position in first_at.items() if call_id not in known]
        self.missed = frozenset(calls[position].id for position in waiting)
        refused = sum(call.id in known and REFUSED in known[call.id].response for call in calls)
        self._count(asker, CallStatistics(hits=len(calls) - len(waiting), refused=refused))
        self._report(asker, sent=0, hits=len(calls) - len(waiting))
        going_on = GoingOn()
        try:
            while waiting:
                batch = self._affordable(asker, calls, waiting[: asker.batch_size])
                with going_on:
                    for group in send(batch):
                        records = self._keep(asker, [(calls[batch[place]], answer) for place, answer in group])
                        known.update((record.request_id, record) for record in records)
                waiting = waiting[len(batch) :]
            going_on.settle()
        except BudgetReached as reached:
            reached.answers = tuple(known.get(call.id) for call in calls)
            raise
        return [known[call.id] for call in calls]

    def _affordable(self, asker: Asker, calls: Sequence[PreparedCall], batch: Sequence[int]) -> Sequence[int]:
        """As much of the batch as the budget allows, at least one request; none left raises BudgetReached."""
        if self.budget.is_unlimited or not self.budget.counts(asker.role):
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

    def _keep(self, asker: Asker, answered: Sequence[tuple[PreparedCall, Answered]]) -> list[CallRecord]:
        price = self.prices.get(asker.model.name)
        records = [_record(asker, call, answer, price) for call, answer in answered]
        try:
            self.store.record_calls(records)
        except HapaxError as fault:
            raise HapaxError(
                f"{fault} {counted(len(records), 'answer')} of {asker.model.name} had come and could not be kept, so "
                "nothing more is asked: the same command asks for these again, and for no others."
            ) from fault
        spent = (replace(_spent(1, one.usage, price), refused=int(REFUSED in one.response)) for _, one in answered)
        self._count(asker, sum(spent, CallStatistics()))
        self._report(asker, sent=len(records), hits=0)
        return records

    def _count(self, asker: Asker, more: CallStatistics) -> None:
        self._statistics[asker.role] = self._statistics.get(asker.role, CallStatistics()) + more

    def _report(self, asker: Asker, sent: int, hits: int) -> None:
        if self.on_batch is not None and (sent or hits):
            self.on_batch(BatchReport(asker.role, sent, hits))


class Foreseeing(Journal):
    """Sends nothing but the probes of servers, and writes nothing: a request without a stored answer is put off.

    `missing`: those requests by id. What rests on their answers is not foreseen.
    """

    def __init__(self, store: CallStore) -> None:
        super().__init__(Unwritten(store))
        self.missing: dict[str, PreparedCall] = {}

    @property
    def tokens(self) -> int:
        """The most that they can take."""
        return sum(one.reserved.prompt_tokens + one.reserved.completion_tokens for one in self.missing.values())

    def answers(self, asker: Asker, calls: Sequence[PreparedCall], send: Send) -> list[CallRecord]:
        """What is stored. Raises PutOff if that is not all."""

        def put_off(batch: Sequence[int]) -> Stream[Answered]:
            self.missing.update((calls[position].id, calls[position]) for position in batch)
            raise PutOff("Nothing was sent.")

        return super().answers(asker, calls, send if asker.kind == PROBE else put_off)


class JournaledGenerator:
    """A Generator whose answers go through the journal."""

    def __init__(self, model: Generator, journal: Journal, batch_size: int = 16, role: str = KNOWLEDGE) -> None:
        self.model, self.role = model, role
        self._journal = journal
        self._asker = _asker(role, "generate", model, batch_size)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return self.answers([self.prepared(request, parameters) for request in requests], requests, parameters)

    def answers(
        self, calls: Sequence[PreparedCall], requests: Sequence[GenerationRequest], parameters: GenerationParameters
    ) -> list[Generation]:
        """What `generate` gives, for requests that were prepared before."""

        def send(batch: Sequence[int]) -> Stream[Answered]:
            some = [requests[position] for position in batch]
            came = _came(self, some, lambda: self.model.generate(some, parameters), parameters)
            return ([(place, self._answered(answer)) for place, answer in group] for group in came)

        return _read(self._journal, self._asker, calls, send, _generation)

    def call_ids(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[str]:
        """What the journal calls these requests, so that candidates can name the call they came from."""
        return [self.prepared(request, parameters).id for request in requests]

    def prepared(self, request: GenerationRequest, parameters: GenerationParameters) -> PreparedCall:
        fields = {name: getattr(request, name) for name in GenerationRequest.__slots__}
        content = {**fields, "parameters": asdict(parameters)}
        return _prepared(self._asker, content, Usage(_estimated_tokens(request.prompt), parameters.max_tokens))

    def _answered(self, answer: Generation) -> Answered:
        response = {"text": _storable(answer.text), "finish_reason": answer.finish_reason}
        return Answered({**response, **_refusal(answer)}, answer.usage)


class JournaledCritic:
    """A Critic whose answers go through the journal."""

    def __init__(self, model: Critic, journal: Journal, batch_size: int = 128, role: str = CRITIC) -> None:
        self.model, self.role = model, role
        self._journal = journal
        self._asker = _asker(role, "probability", model, batch_size)
        self._reserved = model.reserved if isinstance(model, Reserving) else _one_token

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        calls = [self.prepared(claim) for claim in claims]

        def send(batch: Sequence[int]) -> Stream[Answered]:
            some = [claims[position] for position in batch]
            came = _came(self, some, lambda: self.model.probabilities(some))
            return ([(place, self._answered(answer)) for place, answer in group] for group in came)

        return _read(self._journal, self._asker, calls, send, _critic_score)

    def call_ids(self, claims: Sequence[str]) -> list[str]:
        """What the journal calls these requests."""
        return [self.prepared(claim).id for claim in claims]

    def prepared(self, claim: str) -> PreparedCall:
        return _prepared(self._asker, {"claim": claim}, self._reserved(claim))

    def _answered(self, score: CriticScore) -> Answered:
        if not 0.0 <= score.probability <= 1.0:
            raise _unusable(self.identity, f"a probability of {score.probability}")
        return Answered({"probability": score.probability, **_refusal(score)}, score.usage)


class JournaledLikelihood:
    """A LikelihoodModel whose answers go through the journal."""

    def __init__(self, model: LikelihoodModel, journal: Journal, batch_size: int = 128, role: str = LIKELIHOOD) -> None:
        self.model, self.role = model, role
        self._journal = journal
        self._asker = _asker(role, "log_likelihood", model, batch_size)

    @property
    def identity(self) -> ModelIdentity:
        return self.model.identity

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        calls = [self.prepared(text) for text in texts]

        def send(batch: Sequence[int]) -> Stream[Answered]:
            some = [texts[position] for position in batch]
            came = _came(self, some, lambda: self.model.log_likelihoods(some))
            return ([(place, self._answered(answer)) for place, answer in group] for group in came)

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


def _asker(role: str, kind: str, model: Generator | Critic | LikelihoodModel, batch_size: int) -> Asker:
    return Asker(role, kind, model.identity, None if isinstance(model, Streaming) else batch_size)


def _came(
    journaled: JournaledGenerator | JournaledCritic | JournaledLikelihood,
    asked: Sequence[Any],
    ask: Callable[[], Sequence[Answer]],
    *parameters: GenerationParameters,
) -> Stream[Answer]:
    """The model's answers as they come, or at once. Raises HapaxError where there is not one for each request."""
    model = journaled.model
    if isinstance(model, Streaming):
        return model.stream(asked, *parameters)

    def checked() -> Sequence[Answer]:
        answers = ask()
        if len(answers) != len(asked):
            raise HapaxError(
                f"{model.identity.name} gave {len(answers)} answers to {len(asked)} requests. "
                f"Choose another model for the role {journaled.role}."
            )
        return answers

    return at_once(checked)


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


def _one_token(claim: str) -> Usage:
    """What most critics need: the claim's tokens and one of answer."""
    return Usage(_estimated_tokens(claim), 1)


def _estimated_tokens(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + 1


def _storable(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate from a broken reply becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _unusable(model: ModelIdentity, what: str) -> HapaxError:
    return HapaxError(f"{model.name} gave {what}, which is no score. Choose another model for this role.")
