"""Sends requests to an OpenAI-compatible server, many at a time, with adaptive concurrency, rate limits and retries.

A reply is untrusted: it may be cut off, endless, not JSON, or quote the key. The key goes into one header and nowhere
else; if a server quotes it, it is removed from the reply.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from queue import Empty, SimpleQueue
from typing import Any, Generic
from uuid import uuid4

import httpx2
from aiolimiter import AsyncLimiter
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from hapax.grammar.remedies import CALL, Setting
from hapax.kb import system
from hapax.kb.records import NO_USABLE_REPLY, Outcome
from hapax.llm_oracle.backends.openai_outcomes import (
    Kind,
    Refused,
    RetriesExhausted,
    ServerError,
    TransientFault,
    error_in,
    error_of,
    one_line,
)
from hapax.llm_oracle.backends.openai_wire import Answer, ReadReply, ServerRequest, parsed, refusal, texts, usage
from hapax.llm_oracle.backends.redaction import redacted
from hapax.llm_oracle.budget import ACCOUNT, Account, BudgetReached
from hapax.llm_oracle.protocols import Stream, Usage

MOST_REPLY_BYTES = 16 * 2**20

MOST_FAILING = 5
"""Different requests in a row without a usable reply after which a server counts as down. Four bad questions may stand
together; five, with no answer among them, cost more than a look at the server."""

DECREASE = 0.75
SUCCESSES_PER_STEP = 25
COOL_DOWN = 2.0
"""Seconds after a refusal in which further ones count as the same congestion and do not slow down again."""

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Server:
    """Address and key of a server. `place` names it in messages and in the journal.

    `key_name`: the variable of the environment that has its key; empty where the user named none.

    `proxy`: URL of the proxy on the way; empty: none.
    """

    base_url: str
    place: str
    key: str = field(default="", repr=False)
    key_name: str = ""
    proxy: str = field(default="", repr=False)
    query: str = ""
    """The version of the interface behind each address, as Azure wants it: `api-version=2024-10-21`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers, by name."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of headers that no message and no row may have."""

    def url(self, path: str) -> str:
        """The address of a path, below the host if it begins with `/`, else below the base URL."""
        # `join` follows the rules of links.
        address = httpx2.URL(f"{self.base_url}/").join(path)
        return f"{address}?{self.query}" if self.query else str(address)

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers of a request."""
        found = {"Content-Type": "application/json", "Accept": "application/json", **self.headers}
        if self.key:
            found["Authorization"] = f"Bearer {self.key}"
        if self.key and self.query:  # Azure
            found["api-key"] = self.key
        return found

    def redacted(self, text: str) -> str:
        """The text with the secrets replaced, whole and in pieces."""
        for secret in (self.key, *self.secrets):
            text = redacted(text, secret)
        return text

    def redacted_json(self, value: Any) -> Any:
        """A JSON tree with the key replaced in all strings and names."""
        if isinstance(value, str):
            return self.redacted(value)
        if isinstance(value, list):
            return [self.redacted_json(item) for item in value]
        if isinstance(value, dict):
            return {self.redacted(name): self.redacted_json(item) for name, item in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class Limits:
    """The user's limits on a server's use. None: no limit."""

    max_concurrency: int = 16
    rpm: float | None = None
    tpm: float | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of failed attempts, pauses between them in seconds, and the limit on all pauses of one request."""

    attempts: int = 5
    first_pause: float = 0.5
    longest_pause: float = 30.0
    seconds: float = 600.0
    timeout: float = 120.0
    """Seconds of one attempt, from the first byte sent to the last byte read."""

    def retrying(self, sleep: Sleep) -> AsyncRetrying:
        """A new count of attempts for one request. The last fault is raised when the attempts are used up."""
        random_pause = wait_random_exponential(multiplier=self.first_pause, max=self.longest_pause)
        failed_attempts = 0

        def pause(state: RetryCallState) -> float:
            fault = _transient_fault(state)
            return random_pause(state) if fault.retry_after is None else fault.retry_after

        def is_over(state: RetryCallState) -> bool:
            nonlocal failed_attempts
            # A pause that the server asks for is kept within `seconds`, however often it asks.
            failed_attempts += _transient_fault(state).kind is not Kind.BUSY
            return failed_attempts >= self.attempts or state.idle_for + state.upcoming_sleep > self.seconds

        return AsyncRetrying(
            retry=retry_if_exception(_is_worth_another), wait=pause, stop=is_over, sleep=sleep, reraise=True
        )


def _is_worth_another(fault: BaseException) -> bool:
    """True if another attempt may bring an answer: the same limit would cut off the same answer again."""
    return isinstance(fault, TransientFault) and fault.kind is not Kind.CUT_OFF


def _transient_fault(state: RetryCallState) -> TransientFault:
    fault = state.outcome.exception() if state.outcome else None
    if not isinstance(fault, TransientFault):
        raise TypeError("only TransientFault is retried")
    return fault


class Health:
    """Health of a server, by what came of its requests. Used in the transport's loop only, but for `down`."""

    def __init__(self) -> None:
        self.answers = 0
        self.down: RetriesExhausted | None = None
        """Set when too many different requests in a row had no usable reply."""
        self._failing: set[str] = set()

    def answered(self) -> None:
        """The server gave an answer, or refused one request."""
        self.answers += 1
        self._failing.clear()

    def failed(self, request: ServerRequest, fault: RetriesExhausted) -> None:
        """No attempt of the request brought a usable reply."""
        # By prompt, because the samples and votes on one question fail together.
        self._failing.add(request.prompt)
        if len(self._failing) >= MOST_FAILING:
            self.down = fault
            self._failing.clear()

    def raise_if_down(self) -> None:
        """Raise RetriesExhausted once after too many failures."""
        down, self.down = self.down, None
        if down is not None:
            raise down


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

    def __init__(self, limits: Limits, concurrency: Concurrency, sleep: Sleep = asyncio.sleep) -> None:
        self.concurrency = concurrency
        self._sleep = sleep
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
                await self._sleep(pause)
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
        self.count = 0
        """Requests without an answer."""
        self._most = most
        self._parts = 1
        self._unstored = 0
        self._ended: Counter[int] = Counter()
        self._sent: set[Future[Answer]] = set()
        self._finished: SimpleQueue[tuple[int, Future[Answer]]] = SimpleQueue()

    def fill(
        self, waiting: Iterator[tuple[int, ServerRequest]], send: Callable[[ServerRequest], Future[Answer]]
    ) -> BudgetReached | None:
        """Send requests while there is room; the exception if making one asks for tokens beyond the budget."""
        try:
            while self._unstored < max(self._most, self._parts) and (item := next(waiting, None)) is not None:
                position, request = item
                self._parts = request.parts
                self.count += 1
                self._unstored += 1
                answer = send(request)
                self._sent.add(answer)
                answer.add_done_callback(partial(self._end, position))
        except BudgetReached as reached:
            return reached
        return None

    def _end(self, position: int, answer: Future[Answer]) -> None:
        self._finished.put((position, answer))

    def finished(self) -> tuple[list[tuple[int, Answer]], list[tuple[int, BaseException]]]:
        """The answers and exceptions of the requests that are finished; waits for the first."""
        group = [self._finished.get()]
        # Empty ends the loop: `SimpleQueue` has no method that returns all of its items.
        with suppress(Empty):
            while True:
                group.append(self._finished.get_nowait())
        self.count -= len(group)
        answers: list[tuple[int, Answer]] = []
        faults: list[tuple[int, BaseException]] = []
        for position, done in group:
            self._sent.discard(done)
            fault = done.exception()
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
        for answer in self._sent:
            answer.cancel()


class HttpTransport:
    """Answers over HTTP. A failure that concerns more than one request ends the others.

    The event loop runs in its own thread, so that limits hold across batches and callers may have a loop themselves.
    """

    def __init__(
        self,
        server: Server,
        limits: Limits | None = None,
        retries: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.server = server
        self.retries = retries or RetryPolicy()
        limits = limits or Limits()
        self.concurrency = Concurrency(limits.max_concurrency)
        self._throttle = Throttle(limits, self.concurrency, sleep)
        self._health = Health()
        self._sleep = sleep
        self._settled = asyncio.Condition()
        self._loop = asyncio.new_event_loop()
        # Loading certificates takes a while; do it only for HTTPS.
        encrypted = httpx2.create_ssl_context() if server.base_url.startswith("https:") else False
        # Without a limit of the pool's own: `Throttle` limits the requests.
        connections = httpx2.Limits(max_connections=None, max_keepalive_connections=self.concurrency.most)
        self._client = httpx2.AsyncClient(
            headers=server.all_headers,
            timeout=self.retries.timeout,
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
        under_way: UnderWay[Answer | Refused] = UnderWay(self.concurrency.most)
        reached: BudgetReached | None = None
        # Requests that had no reply at all, until another one shows that the server works.
        unconfirmed: list[tuple[int, Answer | Refused]] = []
        try:
            while True:
                reached = reached or under_way.fill(waiting, send)
                if not under_way.count:
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
                self._health.raise_if_down()
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
        answers_before = self._health.answers
        spent = Usage()
        try:
            async for attempt in self.retries.retrying(self._sleep):
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
                        self._health.answered()
                        return answer
        except Refused as refused:
            # A server that has answered others may dislike this request alone, if it says anything.
            is_doubtful = refused.kind is Kind.NOT_ACCEPTED and (refused.status or 0) < 500 and refused.said
            if is_doubtful and self._health.answers:
                return self._unusable(request, TransientFault(refused.said), spent, works=False)
            if not refused.of_this_request:
                raise
            self._health.answered()
            return refused
        except TransientFault as fault:
            return self._unusable(request, fault, spent, self._health.answers > answers_before)
        raise AssertionError("retrying ends by an answer or a fault")

    def _unusable(self, request: ServerRequest, fault: TransientFault, spent: Usage, works: bool) -> Refused:
        """The answer to a request without a usable reply. `works`: the server answered others in the meantime.

        Raises RetriesExhausted if the server is down or has no time.
        """
        message = (
            f"{self.server.place} gave no usable reply to {request.path}: {fault.reason}. "
            f"Check the server, then run the same {CALL}: nothing that was answered is lost."
        )
        has_replied = fault.status == HTTPStatus.OK
        # A server that wants a pause wants it from all requests, and takes none meanwhile.
        is_busy = fault.kind is Kind.BUSY or fault.retry_after is not None
        if is_busy or not fault.left or not (has_replied or works):
            raise RetriesExhausted(message, fault.status, fault.kind) from None
        # A server that replies, and answers others, works: this request alone is at fault.
        if not (has_replied and works):
            remedy = (
                f"Requests without a usable reply are asked again with {Setting('retry_unusable')}."
                if has_replied
                else ""
            )
            down = RetriesExhausted(f"{message} {remedy}".strip(), fault.status, fault.kind)
            self._health.failed(request, down)
        reason = f"{NO_USABLE_REPLY}{one_line(fault.reason)}"
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
        answer = refused_reply(reply, attempt.request, self.server.place) or read(reply, attempt.request)
        attempt.outcome = Outcome.REFUSED if isinstance(answer, Refused) else Outcome.ANSWERED
        return answer

    async def _post(self, attempt: Attempt) -> Any:
        request = attempt.request
        body, headers = json.dumps(request.body).encode(), {"Idempotency-Key": attempt.key}
        try:
            async with (
                asyncio.timeout(self.retries.timeout),  # the client's own limit is per read, so a slow drip evades it
                self._client.stream("POST", self.server.url(request.path), content=body, headers=headers) as response,
            ):
                content = await _content(response)
        except TimeoutError:
            raise TransientFault(f"no reply within {self.retries.timeout:g} seconds", None, kind=Kind.AWAY) from None
        except httpx2.HTTPError as fault:
            left = not isinstance(fault, _NOT_SENT)
            if not left:
                attempt.spent = None
            reason = one_line(self.server.redacted(str(fault))) or "no connection"
            raise TransientFault(f"{type(fault).__name__}: {reason}", None, kind=Kind.AWAY, left=left) from None
        # Portkey answers by 246 where a check failed that does not forbid anything.
        is_answered = 200 <= response.status_code < 300
        attempt.replied(200 if is_answered else response.status_code)
        # Redacted both before and after the JSON is parsed: an escaped key shows only afterwards.
        if not is_answered:
            text = self.server.redacted(content.decode("utf-8", "replace"))
            raise self._fault(error_of(response.status_code, text, response.headers))
        reply = self.server.redacted_json(parsed(content))
        attempt.replied(200, reply)
        return reply

    def _fault(self, error: ServerError) -> TransientFault | Refused:
        error = replace(error, message=self.server.redacted(error.message))
        return error.fault(self.server.place, self.server.key_name, self.server.base_url)


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
    """The refusal that a reply with status 200 contains; None if it contains an answer."""
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
