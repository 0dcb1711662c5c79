"""Calls to workers: as many at a time as there are, within parts of a budget that no two of them share.

A worker counts each request before it leaves. So whatever it repeats, the parts are never exceeded, and neither is
their sum. What a part leaves over is in the next ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from hapax.engine.cluster.owner import Allowance, OwnerReply
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy
from hapax.kb import system
from hapax.llm_oracle.budget import Account, Allotment, BudgetReached, CallStatistics
from hapax.llm_oracle.protocols import GenerationParameters, Stream

SEEDING_SECONDS = 600.0
"""Time limit for seeding a worker that was restarted."""

PAUSE_SECONDS = 0.2


class Pending(Protocol):
    """A call to a worker. `result` waits for it, and raises HapaxError if the worker is gone for good."""

    def done(self) -> bool: ...

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...


class Owners(Protocol):
    """The workers. `begin` calls a method of `Owner` by name; methods that ask models do not delay the others."""

    @property
    def count(self) -> int: ...

    def begin(self, number: int, method: str, *arguments: Any) -> Pending: ...


def when_seeded(owners: Owners, number: int, question: Sequence[Any], pending: Pending) -> OwnerReply:
    """The reply of a worker, repeated until the worker is seeded, if it was restarted on another machine.

    Raises HapaxError with a worker's message.
    """
    deadline = system.monotonic() + SEEDING_SECONDS
    reply: OwnerReply = pending.result()
    while not reply.seeded:
        if system.monotonic() > deadline:
            raise HapaxError(
                f"A worker that was restarted did not receive the known answers in {SEEDING_SECONDS:g} s.",
                Remedy("Run the same {} again: no collected answer is asked for twice.", CALL),
            )
        # Meanwhile `Gathering.gather` seeds the worker, in its own thread.
        system.sleep(PAUSE_SECONDS)
        reply = owners.begin(number, *question).result()
    if reply.fault:
        raise HapaxError(f"Worker {number}: {reply.fault}")
    return reply


class AllottedCalls:
    """Calls within a budget, which one process keeps. `counted`: requests in a worker's ledger that are counted."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._counted = dict.fromkeys(range(owners.count), CallStatistics())

    def stream(
        self,
        account: Account,
        role: str,
        calls: Sequence[tuple[int, list[int]]],
        asked: Sequence[Any],
        parameters: Sequence[GenerationParameters],
    ) -> Stream[Any]:
        """The answers of these calls, which are a worker's number and positions in `asked`, as they return in order.

        Raises BudgetReached when all that is left of the budget is too little for the next request.
        """
        waiting, under_way = deque(calls), deque[tuple[int, list[int], tuple[Any, ...], Allotment, Any]]()
        # As many calls as there are workers; one at a time once a part was too small.
        most = self._owners.count
        while waiting or under_way:
            while waiting and len(under_way) < most:
                number, positions = waiting.popleft()
                allotment = account.ledger.allot(account, most - len(under_way))
                allowance = Allowance(allotment.budget, account.price, self._counted[number])
                question: tuple[Any, ...] = (
                    "ask_within",
                    allowance,
                    role,
                    [asked[position] for position in positions],
                    *parameters,
                )
                under_way.append((number, positions, question, allotment, self._owners.begin(number, *question)))
            number, positions, question, allotment, pending = under_way.popleft()
            reply = when_seeded(self._owners, number, question, pending)
            is_lost = not pending.result().seeded  # it was restarted without its ledger
            reached = self._settle(number, allotment, reply, is_lost)
            pairs = list(zip(positions, reply.answers, strict=True))
            yield [(position, answer) for position, answer in pairs if answer is not None]
            if open_positions := [position for position, answer in pairs if answer is None]:
                if most == 1 and reached is not None:
                    # The worker knows its part of the budget alone; a person set the whole one.
                    raise BudgetReached(reached, account.ledger.budget.allowed(reached), account.ledger.used)
                # A part was too small: from here on each call gets all that is left, when the others have returned.
                most = 1
                # Before the others, so that the worker's requests keep their order.
                waiting.appendleft((number, open_positions))

    def _settle(self, number: int, allotment: Allotment, reply: OwnerReply, is_lost: bool) -> str | None:
        """Count what a worker used; returns the name of the limit that it reached."""
        spent = reply.spent
        if spent is None:
            raise TypeError("a reply without its use of the allowance")
        allotment.account.ledger.settle_allotment(allotment, allotment.most if is_lost else spent.used)
        self._counted[number] = spent.ledger
        return None if spent.reached is None else spent.reached[0]
