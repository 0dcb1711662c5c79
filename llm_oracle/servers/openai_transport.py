"""Sends requests to an OpenAI-compatible server, many at a time, with adaptive concurrency, rate limits and retries.

A reply is untrusted: it may be cut off, endless, not JSON, or quote the key. The key goes into one header and nowhere
else; if a server quotes it, it is removed from the reply.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Generic
from uuid import uuid4

import httpx2
from aiolimiter import AsyncLimiter
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from hapax.grammar.remedies import CALL, Setting
from hapax.kb.files import system
from hapax.kb.records import NO_USABLE_REPLY, Outcome
from hapax.llm_oracle.budget import ACCOUNT, Account, BudgetReached
from hapax.llm_oracle.protocols import Stream, Usage
from hapax.llm_oracle.servers.openai_aliases import Alias, ServedModel
from hapax.llm_oracle.servers.openai_outcomes import (
    Kind,
    Refused,
    RetriesExhausted,
    ServerError,
    TransientFault,
    error_in,
    error_of,
    one_line,
    wait_of,
)
from hapax.llm_oracle.servers.openai_wire import Answer, ReadReply, ServerRequest, excuse, parsed, refusal, texts, usage

MOST_REPLY_BYTES = 16 * 2**20

MOST_FAILING = 5
"""Different requests in a row without a usable reply after which a server counts as down. Four bad questions may stand
together; five, with no answer among them, cost more than a look at the server."""

DECREASE = 0.75
SUCCESSES_PER_STEP = 25
COOL_DOWN = 2.0
"""Seconds after a refusal in which further ones count as the same congestion and do not slow down again."""

LEAST_ANSWER = 64
"""Tokens of an answer below which a server that refuses their number is not asked with fewer."""

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)

FIRST_PAUSE, LONGEST_PAUSE, MOST_PAUSES = 0.5, 30.0, 600.0
"""Seconds of the pauses between attempts, and of all pauses of one request."""


def _retrying(most_attempts: int) -> AsyncRetrying:
    """A new count of attempts for one request. The last fault is raised when the attempts are used up."""
    random_pause = wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)
    failed_attempts = 0

    def pause(state: RetryCallState) -> float:
        fault = _transient_fault(state)
        return random_pause(state) if fault.retry_after is None else fault.retry_after

    def is_over(state: RetryCallState) -> bool:
        nonlocal failed_attempts
        # A pause that the server asks for is kept within the limit of all pauses, however often it asks.
        failed_attempts += _transient_fault(state).kind is not Kind.BUSY
        return failed_attempts >= most_attempts or state.idle_for + state.upcoming_sleep > MOST_PAUSES

    return AsyncRetrying(
        retry=retry_if_exception(_is_worth_another), wait=pause, stop=is_over, sleep=asyncio.sleep, reraise=True
    )


def _is_worth_another(fault: BaseException) -> bool:
    """True if another attempt may bring an answer: the same limit would cut off the same answer again."""
    return isinstance(fault, TransientFault) and fault.kind is not Kind.CUT_OFF


def _transient_fault(state: RetryCallState) -> TransientFault:
    fault = state.outcome.exception() if state.outcome else None
    if not isinstance(fault, TransientFault):
        raise TypeError("only TransientFault is retried")
    return fault


class Concurrency:
    """Number of requests at a time, adapted to the server (AIMD); never below one.

    Up to the first refusal it grows by one after each success, so it doubles with each round. A refusal reduces it to
    three quarters; from then on it grows by one after 25 successes.
    """

    def __init__(self, most: int, clock: Callable[[], float] = system.monotonic, start: int = 4) -> None:
        self.most = max(1, most)
        self.allowed = float(min(start, self.most))
        self._clock = clock
        self._successes = 0
        self._per_step = 1
        self._cool_at = self._resume_at = -math.inf

    def succeeded(self) -> None:
        self._successes += 1
        if self._successes >= self._per_step:
            self._successes = 0
            self.allowed = min(self.allowed + 1, float(self.most))

    def refused(self, retry_after: float | None = None) -> None:
        """Slow down, once for all refusals of a cool-down, and send nothing new for `retry_after` seconds."""
        now = self._clock()
        if now >= self._cool_at:
            self.allowed = max(1.0, self.allowed * DECREASE)
            self._successes, self._per_step = 0, SUCCESSES_PER_STEP
            self._cool_at = now + COOL_DOWN
        self._resume_at = max(self._resume_at, now + (retry_after or 0.0))

    @property
    def pause(self) -> float:
        """Seconds until the server accepts the next request."""
        return max(0.0, self._resume_at - self._clock())


class Throttle:
    """Admits requests within all limits: `async with throttle.slot(tokens): send`."""

    def __init__(self, limits: Alias) -> None:
        self.concurrency = Concurrency(limits.max_concurrency)
        # Requests are spread evenly, because servers enforce a limit per minute over seconds, too; tokens may come in
        # bursts of a minute's worth, so that a long request fits.
        self._requests = AsyncLimiter(1, 60 / limits.rpm) if limits.rpm else None
        self._tokens = AsyncLimiter(limits.tpm, 60) if limits.tpm else None
        self._in_flight = 0
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[None]:
        """The place of one request among those in flight."""
        await self._enter(tokens)
        try:
            yield
        except TransientFault as fault:
            if fault.is_congestion:
                self.concurrency.refused(fault.retry_after)
            raise
        else:
            self.concurrency.succeeded()
        finally:
            await self._leave()

    async def _enter(self, tokens: int) -> None:
        """Wait until another request of this size may be sent."""
        async with self._freed:
            try:
                await self._freed.wait_for(lambda: self._in_flight < int(self.concurrency.allowed))
            except asyncio.CancelledError:
                # The wake-up may have come just before; pass it on, or another waiter sleeps for ever.
                self._freed.notify()
                raise
            self._in_flight += 1
        try:
            if pause := self.concurrency.pause:
                await asyncio.sleep(pause)
            if self._tokens:
                # A request above a minute's limit could never be acquired in full.
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            if self._requests:
                await self._requests.acquire()
        except BaseException:
            # The place was counted before the waits: cancelled in one of them, it would stay taken for ever.
            await self._leave()
            raise

    async def _leave(self) -> None:
        """End a request."""
        async with self._freed:
            self._in_flight -= 1
            # Wake only as many as there is room for: waking all of them each time takes longer than their requests.
            self._freed.notify(max(0, int(self.concurrency.allowed) - self._in_flight))


@dataclass(slots=True)
class Attempt:
    """One attempt to send a request. `spent`: tokens used; None: it did not leave. `outcome`: how it ended.

    `key`: the same for all attempts of which the server may have answered one that was lost on the way. A server that
    knows such keys then sends that answer again, and charges it once.

    Until a reply says otherwise, a request that left has used as much as it can: the answer may be charged though it
    was lost on the way.
    """

    request: ServerRequest
    spent: Usage | None
    key: str
    outcome: Outcome = Outcome.LOST

    def replied(self, status: int, reply: Any = None) -> None:
        """Learn what a reply with this status charges: nothing for an error."""
        self.outcome = Outcome.ERROR if status != HTTPStatus.OK else Outcome.UNUSABLE  # until its answer was read
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.spent = Usage(requests=0)  # the server has not taken it
        elif status != HTTPStatus.OK or not self.request.is_charged:
            self.spent = Usage()
        elif reply is not None:
            self.spent = usage(reply, self.request.prompt, _said(reply))


def _said(reply: Any) -> Sequence[str]:
    """The texts of a reply, by which its tokens are estimated; none if it cannot be read."""
    with suppress(TransientFault):
        return texts(reply)
    return ()


class UnderWay(Generic[Answer]):
    """The requests of one stream that are sent, or whose answers are not stored yet: so many answers may be lost.

    Those that are stored together keep their places until all of them are answered. There are as many places as the
    parts of one claim, if that is more, and requests take them in their order, so the oldest can always be answered.
    """

    def __init__(self, most: int) -> None:
        self.sent: dict[Future[Answer], int] = {}
        """The positions of requests without an answer."""
        self._most = most
        self._parts = 1
        self._unstored = 0
        self._ended: Counter[int] = Counter()

    def fill(
        self, waiting: Iterator[tuple[int, ServerRequest]], send: Callable[[ServerRequest], Future[Answer]]
    ) -> BudgetReached | None:
        """Send requests while there is room; the exception if making one asks for tokens beyond the budget."""
        try:
            while self._unstored < max(self._most, self._parts) and (item := next(waiting, None)) is not None:
                position, request = item
                self._parts = request.parts
                self._unstored += 1
                self.sent[send(request)] = position
        except BudgetReached as reached:
            return reached
        return None

    def finished(self) -> tuple[list[tuple[int, Answer]], list[tuple[int, BaseException]]]:
        """The answers and exceptions of the requests that are finished; waits for the first."""
        answers: list[tuple[int, Answer]] = []
        faults: list[tuple[int, BaseException]] = []
        for done in wait(self.sent, return_when=FIRST_COMPLETED).done:
            position, fault = self.sent.pop(done), done.exception()
            if fault is None:
                answers.append((position, done.result()))
            else:
                faults.append((position, fault))
        return answers, faults

    def stored(self, positions: Iterable[int]) -> None:
        """The answers of these requests are with their taker, or will never come."""
        for position in positions:
            together = position // self._parts
            self._ended[together] += 1
            if self._ended[together] == self._parts:
                del self._ended[together]
                self._unstored -= self._parts

    def cancel(self) -> None:
        for answer in self.sent:
            answer.cancel()


class HttpTransport:
    """Answers over HTTP. A failure that concerns more than one request ends the others.

    The event loop runs in its own thread, so that limits hold across batches and callers may have a loop themselves.
    """

    def __init__(self, served: ServedModel) -> None:
        server = self._server = served.server
        self._settings = served.alias
        self._throttle = Throttle(served.alias)
        self._answered = 0
        """Number of requests that were answered, or refused alone."""
        self._failing: set[str] = set()
        """Prompts without a usable reply since the last answer."""
        self._down: RetriesExhausted | None = None
        """Set when too many of them failed."""
        self._settled = asyncio.Condition()
        self._loop = asyncio.new_event_loop()
        # Loading certificates takes a while; do it only for HTTPS.
        encrypted = httpx2.create_ssl_context() if server.base_url.startswith("https:") else False
        # Without a limit of the pool's own: `Throttle` limits the requests.
        connections = httpx2.Limits(max_connections=None, max_keepalive_connections=self._settings.max_concurrency)
        self._client = httpx2.AsyncClient(
            headers=server.headers,
            timeout=self._settings.timeout,
            verify=encrypted,
            limits=connections,
            proxy=server.proxy or None,
            # Otherwise HTTP_PROXY in the environment would get the key.
            trust_env=False,
        )
        # The thread must not refer to `self`, or the transport would never be collected and the loop never stopped.
        threading.Thread(target=_serve, args=(self._loop, self._client), daemon=True).start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def stream(self, requests: Iterable[ServerRequest], read: ReadReply[Answer]) -> Stream[Answer | Refused]:
        """The answers as they arrive. Closing the stream cancels the requests in flight.

        A request without a usable reply counts as refused. When the budget is reached, requests in flight are still
        answered; then BudgetReached is raised.
        """
        account = ACCOUNT.get()
        if account is not None:
            account.is_metered = True

        def send(request: ServerRequest) -> Future[Answer | Refused]:
            return asyncio.run_coroutine_threadsafe(self._answer(request, read, account), self._loop)

        waiting = enumerate(requests)
        under_way: UnderWay[Answer | Refused] = UnderWay(self._settings.max_concurrency)
        reached: BudgetReached | None = None
        # Requests that had no reply at all, until another one shows that the server works.
        unconfirmed: list[tuple[int, Answer | Refused]] = []
        try:
            while True:
                reached = reached or under_way.fill(waiting, send)
                if not under_way.sent:
                    break
                finished, faults = under_way.finished()
                answers = [answer for answer in finished if not _is_without_reply(answer[1])]
                if any(not _is_unusable(answer) for _, answer in answers):
                    answers, unconfirmed = [*unconfirmed, *answers], []
                unconfirmed += [answer for answer in finished if _is_without_reply(answer[1])]
                if answers:
                    yield answers
                # Whoever takes the next answers has stored these.
                under_way.stored(position for position, _ in (*finished, *faults))
                if self._down is not None:
                    down, self._down = self._down, None
                    raise down
                reached = reached or _budget_reached(fault for _, fault in faults)
            if unconfirmed:
                yield unconfirmed
            if reached is not None:
                raise reached
        finally:
            under_way.cancel()

    async def _answer(
        self, request: ServerRequest, read: ReadReply[Answer], account: Account | None
    ) -> Answer | Refused:
        key = str(uuid4())
        answered_before = self._answered
        spent = Usage()
        try:
            async for attempt in _retrying(self._settings.attempts):
                with attempt:
                    async with self._throttle.slot(request.tokens):
                        sent = Attempt(request, request.most, key)
                        try:
                            answer = await self._metered(sent, read, account)
                        except TransientFault as fault:
                            spent = _sum(spent, sent.spent)
                            if fault.status == HTTPStatus.OK:
                                key = str(uuid4())  # by the old one the same unusable reply might come again
                            raise
                        self._works()
                        return answer
        except Refused as refused:
            fewer = _with_fewer_tokens(request, refused)
            if fewer is not None:
                return await self._answer(fewer, read, account)
            # A server that has answered others may dislike this request alone, if it says anything.
            is_doubtful = refused.kind is Kind.NOT_ACCEPTED and (refused.status or 0) < 500 and refused.said
            if is_doubtful and self._answered:
                return self._unusable(request, TransientFault(refused.said), spent, works=False)
            if not refused.of_this_request:
                raise
            self._works()
            return refused
        except TransientFault as fault:
            return self._unusable(request, fault, spent, self._answered > answered_before)
        raise AssertionError("retrying ends by an answer or a fault")

    def _works(self) -> None:
        """The server gave an answer, or refused one request."""
        self._answered += 1
        self._failing.clear()

    def _unusable(self, request: ServerRequest, fault: TransientFault, spent: Usage, works: bool) -> Refused:
        """The answer to a request without a usable reply. `works`: the server answered others in the meantime.

        Raises RetriesExhausted if the server is down or has no time.
        """
        said = self._server.redacted(fault.reason.rstrip("."))
        message = (
            f"{self._server.place} gave no usable reply to {request.path}: {said}. "
            f"Check the server, then run the same {CALL}: nothing that was answered is lost."
        )
        has_replied = fault.status == HTTPStatus.OK
        # A server that wants a pause wants it from all requests, and takes none meanwhile.
        is_busy = fault.kind is Kind.BUSY or fault.retry_after is not None
        if is_busy or not fault.left or not (has_replied or works):
            raise RetriesExhausted(message, fault.status, fault.kind) from None
        # A server that replies, and answers others, works: this request alone is at fault.
        if not (has_replied and works):
            # By prompt, because the samples and votes on one question fail together.
            self._failing.add(request.prompt)
        if len(self._failing) >= MOST_FAILING:
            more = f" Requests without a usable reply are asked again with {Setting('retry_unusable')}."
            self._down = RetriesExhausted(message + more * has_replied, fault.status, fault.kind)
            self._failing.clear()
        reason = f"{NO_USABLE_REPLY}{one_line(said)}"
        return Refused(message, fault.status, reason, fault.kind, spent)

    async def _metered(self, attempt: Attempt, read: ReadReply[Answer], account: Account | None) -> Answer | Refused:
        """The answer; the request is reserved and written down before it is sent, and settled whatever comes."""
        request = attempt.request
        if account is None:
            return await self._sent(attempt, read)
        while (reservation := account.ledger.reserve(account, request.most, request.path)) is None:
            # The next request to end may leave room: it has probably used less than it could.
            async with self._settled:
                await self._settled.wait()
        is_written = reservation.written is None
        try:
            if reservation.written is not None:
                await asyncio.wrap_future(reservation.written)
                is_written = True
            return await self._sent(attempt, read)
        finally:
            reservation.settle(attempt.spent if is_written else None, attempt.outcome)
            async with self._settled:
                self._settled.notify_all()

    async def _sent(self, attempt: Attempt, read: ReadReply[Answer]) -> Answer | Refused:
        """Send a request and read its answer."""
        reply = await self._post(attempt)
        if (error := error_in(reply)) is not None:
            attempt.replied(error.status)
            raise self._fault(error)
        answer = refused_reply(reply, attempt.request, self._server.place) or read(reply, attempt.request)
        attempt.outcome = Outcome.REFUSED if isinstance(answer, Refused) else Outcome.ANSWERED
        return answer

    async def _post(self, attempt: Attempt) -> Any:
        request = attempt.request
        body, headers = json.dumps(request.body).encode(), {"Idempotency-Key": attempt.key}
        try:
            async with (
                asyncio.timeout(self._settings.timeout),  # the client's own limit is per read, so a slow drip evades it
                self._client.stream("POST", self._server.url(request.path), content=body, headers=headers) as response,
            ):
                content = await _content(response)
        except TimeoutError:
            raise TransientFault(f"no reply within {self._settings.timeout:g} seconds", None, kind=Kind.AWAY) from None
        except httpx2.HTTPError as fault:
            left = not isinstance(fault, _NOT_SENT)
            if not left:
                attempt.spent = None
            reason = one_line(self._server.redacted(str(fault))) or "no connection"
            raise TransientFault(f"{type(fault).__name__}: {reason}", None, kind=Kind.AWAY, left=left) from None
        # Portkey answers by 246 where a check failed that does not forbid anything.
        is_answered = 200 <= response.status_code < 300
        attempt.replied(200 if is_answered else response.status_code)
        # Redacted both before and after the JSON is parsed: an escaped key shows only afterwards.
        if not is_answered:
            text = self._server.redacted(content.decode("utf-8", "replace"))
            raise self._fault(error_of(response.status_code, text, response.headers))
        reply = self._server.redacted_json(parsed(content))
        attempt.replied(200, reply)
        return reply

    def _fault(self, error: ServerError) -> TransientFault | Refused:
        error = replace(error, message=self._server.redacted(error.message))
        return error.fault(self._server.place, self._server.key_name, self._server.base_url)


def _with_fewer_tokens(request: ServerRequest, refused: Refused) -> ServerRequest | None:
    """The request with half as many tokens for its answer, if their number is refused; None where it is small."""
    name = next((name for name in ("max_tokens", "max_completion_tokens") if name in request.body), "")
    tokens = request.body.get(name, 0) // 2
    if tokens < LEAST_ANSWER or not _TOKENS_REFUSED.search(refused.said):
        return None
    most = replace(request.most, completion_tokens=math.ceil(request.most.completion_tokens / 2))
    return replace(request, body={**request.body, name: tokens}, most=most)


_TOKENS_REFUSED = re.compile(
    r"max_(completion_)?tokens\b.*\d|at most \d+ (completion|output) tokens|context length.*\bcompletion", re.IGNORECASE
)


def _is_unusable(answer: object) -> bool:
    return isinstance(answer, Refused) and answer.is_unusable


def _is_without_reply(answer: object) -> bool:
    """True for a request to which no reply came, or errors only: perhaps the server is down."""
    return isinstance(answer, Refused) and answer.is_unusable and answer.status != HTTPStatus.OK


def _sum(spent: Usage, more: Usage | None) -> Usage:
    more = more or Usage()
    return Usage(spent.prompt_tokens + more.prompt_tokens, spent.completion_tokens + more.completion_tokens)


def _budget_reached(faults: Iterable[BaseException]) -> BudgetReached | None:
    """The first BudgetReached; raises any other fault."""
    reached: BudgetReached | None = None
    for fault in faults:
        if not isinstance(fault, BudgetReached):
            raise fault
        reached = reached or fault
    return reached


def refused_reply(reply: Any, request: ServerRequest, place: str) -> Refused | None:
    """The refusal that a reply with status 200 contains; None if it contains an answer.

    Raises TransientFault for a reply that contains the excuse of a server.
    """
    # An echo repeats what was asked.
    if not request.body.get("echo") and (said := excuse(reply)):
        wait = wait_of(said)
        kind = Kind.UNUSABLE if wait is None else Kind.BUSY
        raise TransientFault(f"the server says in the place of an answer: {said}", 200, wait, kind=kind)
    reason = refusal(reply)
    if not reason:
        return None
    charged = usage(reply, request.prompt, ())
    return Refused(f"{place} refused: {reason}.", 200, reason, usage=charged)


def refused_result(status: Any, body: Any, place: str) -> Refused | None:
    """The refusal of one request that an error's status and body describe; None for any other error."""
    error = error_of(status, json.dumps(body), {}) if isinstance(status, int) else None
    if error is None or error.kind is not Kind.REFUSED:
        return None
    return Refused(f"{place} refused ({status}): {error.message}.", status, error.message)


async def _content(response: httpx2.Response) -> bytes:
    """The body. Raises TransientFault if it is larger than MOST_REPLY_BYTES."""
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > MOST_REPLY_BYTES:
            raise TransientFault(f"a reply of more than {MOST_REPLY_BYTES // 2**20} MiB")
    return bytes(content)


def _serve(loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient) -> None:
    """Run requests until the loop is stopped, then close the connections."""
    loop.run_forever()
    loop.run_until_complete(client.aclose())
    loop.close()
