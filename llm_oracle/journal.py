"""Journal of model calls: cached answers from the store, new answers from the model within the budget.

A request is identified by a hash of everything that can change its answer; a request whose answer is stored is never
sent again. The rest is sent in batches, or all at once to a model that streams. Each batch is reserved in the budget
before it is sent, and each answer is stored as it arrives and before anything uses it, so that a killed process loses
only the requests in flight. A store that is a locked file keeps them in a file beside it, and sending stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.record_store import FileMoved
from hapax.kb.records import CallRecord
from hapax.llm_oracle.budget import (
    ACCOUNT,
    Account,
    AttemptWriter,
    Budget,
    BudgetReached,
    CallStatistics,
    DeferralCollector,
    Deferred,
    Ledger,
    Price,
)
from hapax.llm_oracle.protocols import ModelIdentity, Stream, Usage

PROBE = "probe"
"""Role under which capability probes of servers are counted."""

REFUSED = "refused"
"""Field of a stored response with the reason why there is no answer; absent from an answer."""


class CallStore(Protocol):
    """The part of a knowledge base that the journal uses."""

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]: ...

    def record_calls(self, calls: Sequence[CallRecord]) -> None: ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that several processes may use at the same time."""

    def asking(self) -> AbstractContextManager[None]:
        """Hold the exclusive lock on asking models for this store."""

    def writes_elsewhere(self) -> int:
        """Counter that changes when another process writes to the store."""

    def bring_home(self) -> bool:
        """Store the answers that wait beside a file that took none; False if there are none.

        Raises HapaxError if it still takes none.
        """


@runtime_checkable
class RevisionStore(Protocol):
    """A store that knows which revisions of a model answered."""

    def newest_revision(self, model: str) -> str | None:
        """Revision of the model of this name that gave the newest answer, maybe empty; None if none did."""


@runtime_checkable
class AttemptStore(Protocol):
    """A store that keeps requests that left for servers."""

    @property
    def attempt_log(self) -> AttemptWriter: ...


class ReadOnlyCallStore:
    """A store that answers from another one and records nothing, for plans that must not change a file."""

    def __init__(self, store: CallStore) -> None:
        self._store = store

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:
        return self._store.calls(request_ids)

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        """Discard the calls."""

    def newest_revision(self, model: str) -> str | None:
        return self._store.newest_revision(model) if isinstance(self._store, RevisionStore) else None


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Progress event: number of requests that a batch sent, or that the journal answered before any was sent."""

    role: str
    sent: int
    hits: int


@dataclass(frozen=True, slots=True)
class Asker:
    """Origin of some requests: the role for statistics, the kind of request, and the model.

    `batch_size`: maximum requests per batch; None: no maximum.
    """

    role: str
    kind: str
    model: ModelIdentity
    batch_size: int | None


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A request in the form the journal stores, with the maximum number of tokens that it can use."""

    id: str
    request: Mapping[str, Any]
    reserved: Usage


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A model's answer in the form the journal stores."""

    response: Mapping[str, Any]
    usage: Usage


Send = Callable[[Sequence[int]], Stream[StoredAnswer]]
"""Sends the requests at these positions of the input to the model; yields answers by their positions in this batch."""


class Journal:
    """Answers requests from the store if possible, else from the model, within the budget.

    `prices`: by model name. A model that is missing has an unknown price, which a limit on cost rejects.
    `retry_unusable`: ask once more for what had no usable reply. `missed`: ids of the requests of the latest `answers`
    that the store did not hold.
    """

    def __init__(
        self,
        store: CallStore,
        budget: Budget | None = None,
        prices: Mapping[str, Price] | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        *,
        retry_unusable: bool = False,
    ) -> None:
        self.store = store
        self.retry_unusable = retry_unusable
        self.budget = budget or Budget()
        self.prices = dict(prices or {})
        self.on_batch = on_batch
        self.missed: frozenset[str] = frozenset()
        self._unanswered: set[str] = set()
        """Requests without an answer that are counted already: a search may read an answer again."""
        self._asked_again: set[str] = set()
        """Requests that still had no usable reply when they were asked again."""
        self._ledger = Ledger(self.budget, store.attempt_log if isinstance(store, AttemptStore) else None)

    @property
    def statistics(self) -> dict[str, CallStatistics]:
        """Statistics by role, in order of first use."""
        return self._ledger.statistics

    @property
    def total(self) -> CallStatistics:
        return sum(self.statistics.values(), CallStatistics())

    @property
    def used(self) -> CallStatistics:
        """The statistics that count in the budget."""
        return self._ledger.used

    def newest_revision(self, model: str) -> str | None:
        """Revision of the model of this name that gave the newest stored answer; None if none did."""
        return self.store.newest_revision(model) if isinstance(self.store, RevisionStore) else None

    def answers(self, asker: Asker, calls: Sequence[PreparedCall], send: Send) -> list[CallRecord]:
        """One record per call, in order; equal calls are sent once.

        Raises BudgetReached, with the records so far as `answers`, when the next request would exceed the budget.
        Raises Deferred, likewise, after all other requests were sent.
        """
        wanted = list(dict.fromkeys(call.id for call in calls))
        shared = self.store if isinstance(self.store, SharedStore) else None
        # Read before the records: a write after this line then shows as a changed counter below.
        writes_before = shared.writes_elsewhere() if shared else 0
        known = self._stored(wanted)
        missing = [call_id for call_id in wanted if call_id not in known]
        if shared is None or not missing:
            return self._answers(asker, calls, known, send)
        with shared.asking():
            # Another process may have answered some of them before this one held the lock.
            if shared.bring_home() or shared.writes_elsewhere() != writes_before:
                known.update(self._stored(missing))
            return self._answers(asker, calls, known, send)

    def _stored(self, wanted: Sequence[str]) -> dict[str, CallRecord]:
        """The stored answers, without those that are to be asked for again."""
        found = dict(self.store.calls(wanted)) if wanted else {}
        if not self.retry_unusable:
            return found
        return {name: call for name, call in found.items() if not call.is_unusable or name in self._asked_again}

    def _answers(
        self, asker: Asker, calls: Sequence[PreparedCall], known: dict[str, CallRecord], send: Send
    ) -> list[CallRecord]:
        """Complete the known records with the model's answers to the other calls."""
        first_positions: dict[str, int] = {}
        for position, call in enumerate(calls):
            first_positions.setdefault(call.id, position)
        waiting = [position for call_id, position in first_positions.items() if call_id not in known]
        self.missed = frozenset(calls[position].id for position in waiting)
        hits = len(calls) - len(waiting)
        stored = {call.id: known[call.id] for call in calls if call.id in known and REFUSED in known[call.id].response}
        uncounted = [record for name, record in stored.items() if name not in self._unanswered]
        self._ledger.count(asker.role, sum(map(_without_answer, uncounted), CallStatistics(hits=hits)))
        self._unanswered.update(stored)
        self._report(asker, sent=0, hits=hits)
        deferrals = DeferralCollector()
        try:
            # Batch by batch, because the budget is checked against what the earlier ones really used.
            while waiting:
                batch = self._affordable(asker, calls, waiting[: asker.batch_size])
                with deferrals:
                    self._send(asker, calls, batch, known, send)
                waiting = waiting[len(batch) :]
                if waiting and isinstance(self.store, SharedStore):
                    self.store.bring_home()  # nothing is sent while the file takes no answers
            # Only now, when all other requests have been sent.
            deferrals.raise_first()
        except BudgetReached as reached:
            reached.answers = tuple(known.get(call.id) for call in calls)
            reached.used = self.used  # requests that were under way have ended
            raise
        return [known[call.id] for call in calls]

    def _send(
        self,
        asker: Asker,
        calls: Sequence[PreparedCall],
        batch: Sequence[int],
        known: dict[str, CallRecord],
        send: Send,
    ) -> None:
        """Send a batch and complete the known records with its answers."""
        account = Account(self._ledger, asker.role, self.prices.get(asker.model.name), asker.model.name)
        token = ACCOUNT.set(account)
        try:
            # Each group is stored as it arrives, so an interruption loses no answer that was paid for.
            for group in send(batch):
                answered = [(calls[batch[position]], answer) for position, answer in group]
                for record in self._keep(asker, answered, account):
                    known[record.request_id] = record
        finally:
            ACCOUNT.reset(token)

    def _affordable(self, asker: Asker, calls: Sequence[PreparedCall], batch: Sequence[int]) -> Sequence[int]:
        """The longest beginning of the batch that fits the budget. Raises BudgetReached if not even one call fits."""
        if self.budget.is_unlimited or not self.budget.counts(asker.role):
            return batch
        used = self.used
        price = self._price(asker.model)
        wanted = used
        for fitting, position in enumerate(batch):
            wanted += CallStatistics.of_call(calls[position].reserved, price)
            limit = self.budget.exceeded(wanted)
            if limit is not None and fitting == 0:
                raise BudgetReached(*limit, used)
            if limit is not None:
                return batch[:fitting]
        return batch

    def _price(self, model: ModelIdentity) -> Price | None:
        price = self.prices.get(model.name)
        # An unknown price must not count as zero.
        if price is None and self.budget.max_cost is not None:
            raise HapaxError(
                f"The price of {model.name} is unknown, so a limit on cost cannot be enforced.",
                Remedy(
                    "Give its price per million tokens with {}=IN,OUT or in its alias, or limit calls or "
                    "tokens instead.",
                    Setting("prices", "MODEL"),
                ),
            )
        return price

    def _keep(
        self, asker: Asker, answered: Sequence[tuple[PreparedCall, StoredAnswer]], account: Account
    ) -> list[CallRecord]:
        """Store the answers and count them, or only the refusals of a model that counts its requests itself."""
        records = [_record(asker, call, answer, account.price) for call, answer in answered]
        # Stored before anything is counted or returned: an answer in use is an answer that survives a kill.
        try:
            self.store.record_calls(records)
        except FileMoved:
            raise  # they are stored, in a copy
        except HapaxError as fault:
            raise HapaxError(
                f"{fault} {counted(len(records), 'answer')} of {asker.model.name} arrived but could not be stored, so "
                "asking has stopped.",
                Remedy("Run the same {} again: it asks for these again and for no others.", CALL),
            ) from fault
        spent = sum(map(_without_answer, records), CallStatistics())
        # A metered model has settled tokens and cost request by request.
        if not account.is_metered:
            spent = sum((CallStatistics.of_call(answer.usage, account.price) for _, answer in answered), spent)
        self._unanswered.update(record.request_id for record in records if REFUSED in record.response)
        self._asked_again.update(record.request_id for record in records if record.is_unusable)
        self._ledger.count(asker.role, spent)
        self._report(asker, sent=len(records), hits=0)
        return records

    def _report(self, asker: Asker, sent: int, hits: int) -> None:
        if self.on_batch is not None and (sent or hits):
            self.on_batch(BatchReport(asker.role, sent, hits))


class PlanningJournal(Journal):
    """Journal of a plan: it sends only probes of servers, stores nothing, and defers requests without stored answers.

    `missing`: the deferred requests by id, each with its role. Requests that depend on their answers are not foreseen.
    """

    def __init__(self, store: CallStore, *, retry_unusable: bool = False) -> None:
        super().__init__(ReadOnlyCallStore(store), retry_unusable=retry_unusable)
        self.missing: dict[str, tuple[str, PreparedCall]] = {}

    @property
    def tokens(self) -> int:
        """Maximum number of tokens that the missing requests can use."""
        return sum(call.reserved.tokens for _, call in self.missing.values())

    def answers(self, asker: Asker, calls: Sequence[PreparedCall], send: Send) -> list[CallRecord]:
        """The stored records. Raises Deferred if some are missing."""

        def defer(batch: Sequence[int]) -> Stream[StoredAnswer]:
            for position in batch:
                self.missing[calls[position].id] = (asker.role, calls[position])
            raise Deferred("Nothing was sent.")

        # Without probes a plan could not say how many requests a vote takes.
        return super().answers(asker, calls, send if asker.kind == PROBE else defer)


def _without_answer(call: CallRecord) -> CallStatistics:
    """The statistics of why a call has no answer; empty if it has one."""
    is_refused = REFUSED in call.response and not call.is_unusable
    return CallStatistics(refused=int(is_refused), unusable=int(call.is_unusable))


def _record(asker: Asker, call: PreparedCall, answer: StoredAnswer, price: Price | None) -> CallRecord:
    return CallRecord(
        call.id,
        asker.role,
        f"{asker.model.name}@{asker.model.revision}" if asker.model.revision else asker.model.name,
        call.request,
        answer.response,
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
        None if price is None else price.of(answer.usage),
        system.now().isoformat(timespec="seconds"),
    )
