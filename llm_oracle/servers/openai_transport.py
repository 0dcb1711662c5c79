"""Sends requests to an OpenAI-compatible server, many at a time, with adaptive concurrency, rate limits and retries.

A reply is untrusted: it may be cut off, endless, not JSON, or quote the key. The key goes into one header and nowhere
else; if a server quotes it, it is removed from the reply.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

import httpx2
from aiolimiter import AsyncLimiter

from hapax.grammar.remedies import Setting
from hapax.kb.files import system
from hapax.kb.records import Outcome
from hapax.llm_oracle.budget import ACCOUNT, Account, BudgetReached
from hapax.llm_oracle.protocols import NO_USAGE, Stream, Usage
from hapax.llm_oracle.servers.openai_aliases import Alias, ServedModel
from hapax.llm_oracle.servers.openai_outcomes import Kind, Unanswered, error_of
from hapax.llm_oracle.servers.openai_wire import ServerReply, parsed, unusable

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

NEXT_LOOK = 0.01
"""Seconds after which a request that the budget has no room for looks again."""

FIRST_PAUSE, LONGEST_PAUSE, MOST_PAUSES = 0.5, 30.0, 600.0
"""Seconds of the pauses between attempts, and of all pauses of one request."""

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request: path below the base URL (below the host if it begins with /), body, and most tokens it can use.

    `read`: reads its answer from a reply; raises Unanswered for one without a usable answer. Nothing is charged for a
    request that can use no tokens, such as one to a tokenizer.
    """

    path: str
    body: Mapping[str, Any]
    read: Callable[[ServerReply], Any]
    most: Usage = field(default_factory=Usage)

    @property
    def prompt(self) -> str:
        """The prompt, without the system prompt of a chat."""
        messages = self.body.get("messages")
        return str(messages[-1]["content"] if messages else self.body.get("prompt", self.body.get("state", "")))


class Transport(Protocol):
    """Carries requests to wherever answers come from."""

    def stream(self, questions: Iterable[Sequence[ServerRequest]]) -> Stream[list[Any]]:
        """The answers to the requests of each question, as they arrive; questions are taken when there is room.

        A request that is refused for its own content, or never has a usable reply, has an `Unanswered` as answer. Any
        other permanent failure is raised after the answers that arrived.
        """


@dataclass(slots=True)
class Attempt:
    """One attempt to send a request. `spent`: tokens used; None: it did not leave. `outcome`: how it ended.

    `key`: the same for all attempts of which the server may have answered one that was lost on the way. A server that
    knows such keys then sends that answer again, and charges it once. Until a reply says otherwise, a request that left
    has used as much as it can: the answer may be charged though it was lost on the way.
    """

    request: ServerRequest
    key: str
    spent: Usage | None
    outcome: Outcome = Outcome.LOST

    def read(self, body: Any) -> Any:
        """The answer in a reply with status 200. Raises Unanswered if there is none."""
        reply = ServerReply(body, self.request.prompt)
        self.spent = reply.usage if self.request.most.tokens else Usage()
        self.outcome = Outcome.UNUSABLE  # until its answer is read
        failure = reply.failure(bool(self.request.body.get("echo")))
        if failure is not None:
            if failure.kind is Kind.REFUSED:
                self.outcome, failure.usage = Outcome.REFUSED, self.spent
            if not failure.has_reply:
                self.failed(failure)
            raise failure
        answer = self.request.read(reply)
        self.outcome = Outcome.ANSWERED
        return answer

    def failed(self, error: Unanswered) -> Unanswered:
        """Learn that an error came, for which nothing is charged."""
        self.outcome = Outcome.ERROR
        self.spent = Usage(requests=0) if error.status == 429 else Usage()  # 429: the server has not taken it
        return error


class Concurrency:
    """Number of requests at a time, adapted to the server (AIMD); never below one.

    Up to the first refusal it grows by one after each success, so it doubles with each round. A refusal reduces it to
    three quarters; from then on it grows by one after 25 successes.
    """

    def __init__(self, most: int, clock: Callable[[], float] = system.monotonic, start: int = 4) -> None:
        self.most = max(1, most)
        self.allowed = float(min(start, self.most))
        self._clock = clock
        self._cool_at = self._resume_at = -math.inf

    def succeeded(self) -> None:
        self.allowed = min(float(self.most), self.allowed + (1 if self._cool_at < 0 else 1 / SUCCESSES_PER_STEP))

    def refused(self, wait: float | None = None) -> None:
        """Slow down, once for all refusals of a cool-down, and send nothing new for `wait` seconds."""
        now = self._clock()
        if now >= self._cool_at:
            self.allowed = max(1.0, self.allowed * DECREASE)
            self._cool_at = now + COOL_DOWN
        self._resume_at = max(self._resume_at, now + (wait or 0.0))

    @property
    def pause(self) -> float:
        """Seconds until the server accepts the next request."""
        return max(0.0, self._resume_at - self._clock())


class Throttle:
    """Admits requests within all limits: `async with throttle.slot(tokens): send`."""

    def __init__(self, limits: Alias) -> None:
        self.concurrency = Concurrency(limits.max_concurrency)
        self._open = int(self.concurrency.allowed)
        self._places = asyncio.Semaphore(self._open)
        # Requests are spread evenly, because servers enforce a limit per minute over seconds, too; tokens may come in
        # bursts of a minute's worth, so that a long request fits.
        self._requests = AsyncLimiter(1, 60 / limits.rpm) if limits.rpm else None
        self._tokens = AsyncLimiter(limits.tpm, 60) if limits.tpm else None

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[None]:
        """The place of one request among those in flight."""
        await self._places.acquire()
        try:
            if pause := self.concurrency.pause:
                await asyncio.sleep(pause)
            if self._tokens:
                # A request above a minute's limit could never be acquired in full.
                await self._tokens.acquire(min(max(1, tokens), self._tokens.max_rate))
            if self._requests:
                await self._requests.acquire()
            yield
        except Unanswered as fault:
            if fault.kind is Kind.BUSY or (fault.status or 0) >= 500:
                self.concurrency.refused(fault.wait)
            raise
        else:
            self.concurrency.succeeded()
        finally:
            # The place is open again, with others if more are allowed now; it stays taken if fewer are.
            more = max(-1, int(self.concurrency.allowed) - self._open)
            self._open += more
            for _ in range(1 + more):
                self._places.release()


Sent = dict[Future[list[Any]], tuple[int, Sequence[ServerRequest]]]
"""Questions without an answer, by their position and requests."""


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
        """Prompts without a usable reply since the last answer. By prompt, because the samples and votes on one
        question fail together."""
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

    def stream(self, questions: Iterable[Sequence[ServerRequest]]) -> Stream[list[Any]]:
        """The answers as they arrive. Closing the stream cancels the requests in flight.

        At most as many requests as the server takes at a time are without a stored answer. When the budget is reached,
        requests in flight are still answered; then BudgetReached is raised.
        """
        account = ACCOUNT.get()
        if account is not None:
            account.is_metered = True
        waiting = enumerate(questions)
        sent: Sent = {}
        # Questions to which no reply came at all, until an answer to another one shows that the server works.
        unconfirmed: list[tuple[int, list[Any]]] = []
        reached: BaseException | None = None
        try:
            while True:
                reached = reached or self._fill(sent, waiting, account)
                if not sent:
                    break
                answers, fault = self._finished(sent)
                if any(_is_sign_of_life(found) for _, found in answers):
                    answers, unconfirmed = [*unconfirmed, *answers], []
                else:
                    unconfirmed += [answer for answer in answers if _is_without_reply(answer[1])]
                    answers = [answer for answer in answers if not _is_without_reply(answer[1])]
                if answers:
                    yield answers
                if fault is not None and not isinstance(fault, BudgetReached):
                    raise fault
                reached = reached or fault
            if unconfirmed:
                yield unconfirmed
            if reached is not None:
                raise reached
        finally:
            for asked in sent:
                asked.cancel()

    def _fill(
        self, sent: Sent, waiting: Iterator[tuple[int, Sequence[ServerRequest]]], account: Account | None
    ) -> BudgetReached | None:
        """Send questions while there is room; the exception if making one asks for tokens beyond the budget.

        Whoever takes answers has stored those before, so that the answers of what is sent are all that may be lost.
        """
        try:
            while not sent or self._has_room(sent):
                position, requests = next(waiting)
                asked = asyncio.run_coroutine_threadsafe(self._question(requests, account), self._loop)
                sent[asked] = position, requests
        except StopIteration:
            pass
        except BudgetReached as reached:
            return reached
        return None

    def _has_room(self, sent: Sent) -> bool:
        _, requests = next(iter(sent.values()))  # all questions of a stream have as many
        return (len(sent) + 1) * max(1, len(requests)) <= self._settings.max_concurrency

    def _finished(self, sent: Sent) -> tuple[list[tuple[int, list[Any]]], BaseException | None]:
        """The answers to the questions that are finished, and a fault that ends the run; waits for the first."""
        answers: list[tuple[int, list[Any]]] = []
        end: BaseException | None = None
        for done in wait(sent, return_when=FIRST_COMPLETED).done:
            position, requests = sent.pop(done)
            fault = done.exception()
            if fault is None:
                found = done.result()
                fault = self._end_by(found, requests)
                if fault not in found:
                    answers.append((position, found))
            if end is None or isinstance(end, BudgetReached):
                end = fault or end
        return answers, end

    async def _question(self, requests: Sequence[ServerRequest], account: Account | None) -> list[Any]:
        """The answers to the requests of a question, all of which end before a fault of one is raised."""
        answers = await asyncio.gather(
            *(self._answer(request, account) for request in requests), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Unanswered):
                raise answer
        return answers

    async def _answer(self, request: ServerRequest, account: Account | None) -> Any:
        """The answer, or the last fault if the attempts are used up or would bring the same."""
        key, spent = str(uuid4()), NO_USAGE
        attempts = failed = 0
        paused = 0.0
        answered_before = self._answered
        while True:
            attempt = Attempt(request, key, request.most)
            attempts += 1
            try:
                async with self._throttle.slot(request.most.tokens):
                    answer = await self._metered(attempt, account)
            except Unanswered as caught:
                fault = caught
            else:
                self._answered += 1
                return answer
            spent += attempt.spent or NO_USAGE
            fault.usage, fault.others_answered = spent, self._answered > answered_before
            if not fault.is_transient:
                if (fewer := _with_fewer_tokens(request, fault)) is not None:
                    request = fewer
                    continue
                self._answered += fault.kind is Kind.REFUSED
                return fault
            # A pause that the server asks for is no failure, and is kept within the limit of all pauses.
            failed += fault.kind is not Kind.BUSY
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts - 1, 10))
            pause = random.uniform(0, longest) if fault.wait is None else fault.wait  # noqa: S311  # not a secret
            paused += max(pause, FIRST_PAUSE)
            # The same limit would cut off the same answer again.
            if fault.kind is Kind.CUT_OFF or failed >= self._settings.attempts or paused > MOST_PAUSES:
                return fault
            if fault.has_reply:
                key = str(uuid4())  # by the old one the same unusable reply might come again
            await asyncio.sleep(pause)

    def _end_by(self, answers: list[Any], requests: Sequence[ServerRequest]) -> Unanswered | None:
        """The fault after which no other question can be asked: one of the answers, or that too many are missing."""
        end: Unanswered | None = None
        for answer, request in zip(answers, requests, strict=True):
            if isinstance(answer, Unanswered):
                # A server that has answered others may dislike this request alone, if it says anything.
                if answer.kind is Kind.NOT_ACCEPTED and (answer.status or 0) < 500 and answer.said and self._answered:
                    answer.kind, answer.status, answer.others_answered = Kind.UNUSABLE, 200, False
                answer.worded(self._server, request.path)
            if not isinstance(answer, Unanswered) or answer.kind is Kind.REFUSED:
                self._failing.clear()
                continue
            # A server that wants a pause wants it from all requests, and takes none meanwhile.
            is_busy = answer.kind is Kind.BUSY or answer.wait is not None
            is_alone = answer.is_sent and (answer.has_reply or answer.others_answered)
            if not answer.is_transient or is_busy or not is_alone:
                end = end or answer
            # A server that replies, and answers others, works: this request alone is at fault.
            elif not (answer.has_reply and answer.others_answered):
                self._failing.add(request.prompt)
            if len(self._failing) >= MOST_FAILING:
                self._failing.clear()
                end = Unanswered(answer.kind, answer.said, answer.status).worded(self._server, request.path)
                asked_again = f" Requests without a usable reply are asked again with {Setting('retry_unusable')}."
                end.message += asked_again * answer.has_reply
        return end

    async def _metered(self, attempt: Attempt, account: Account | None) -> Any:
        """The answer; the request is reserved and written down before it is sent, and settled whatever comes."""
        if account is None:
            return await self._sent(attempt)
        while (reservation := account.ledger.reserve(account, attempt.request.most, attempt.request.path)) is None:
            await asyncio.sleep(NEXT_LOOK)  # whatever ends next may leave room: it has probably used less than it could
        is_written = reservation.written is None
        try:
            if reservation.written is not None:
                await asyncio.wrap_future(reservation.written)
                is_written = True
            return await self._sent(attempt)
        finally:
            reservation.settle(attempt.spent if is_written else None, attempt.outcome)

    async def _sent(self, attempt: Attempt) -> Any:
        """Send a request and read its answer."""
        body, headers = json.dumps(attempt.request.body).encode(), {"Idempotency-Key": attempt.key}
        url, seconds = self._server.url(attempt.request.path), self._settings.timeout
        try:
            async with (
                asyncio.timeout(seconds),  # the client's own limit is per read, so a slow drip evades it
                self._client.stream("POST", url, content=body, headers=headers) as response,
            ):
                content = await _content(response)
        except TimeoutError:
            raise Unanswered(Kind.AWAY, f"no reply within {seconds:g} seconds", None) from None
        except httpx2.HTTPError as fault:
            is_sent = not isinstance(fault, _NOT_SENT)
            if not is_sent:
                attempt.spent = None
            said = f"{type(fault).__name__}: {str(fault) or 'no connection'}"
            raise Unanswered(Kind.AWAY, said, None, is_sent=is_sent) from None
        # Portkey answers by 246 where a check failed that does not forbid anything.
        if not 200 <= response.status_code < 300:
            # Redacted here, and again when it is shown: an escaped key shows only after the JSON is parsed.
            text = self._server.redacted(content.decode("utf-8", "replace"))
            raise attempt.failed(error_of(response.status_code, text, response.headers))
        attempt.outcome = Outcome.UNUSABLE  # at most, until it is parsed
        return attempt.read(self._server.redacted_json(parsed(content)))


def _is_sign_of_life(answers: Sequence[Any]) -> bool:
    """True if one of the answers shows that the server works."""
    return any(not isinstance(answer, Unanswered) or not answer.is_transient for answer in answers)


def _is_without_reply(answers: Sequence[Any]) -> bool:
    """True for a question to which no reply came, or errors only: perhaps the server is down."""
    return not _is_sign_of_life(answers) and not all(answer.has_reply for answer in answers)


def _with_fewer_tokens(request: ServerRequest, refused: Unanswered) -> ServerRequest | None:
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


async def _content(response: httpx2.Response) -> bytes:
    """The body. Raises Unanswered if it is larger than MOST_REPLY_BYTES."""
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > MOST_REPLY_BYTES:
            raise unusable(f"a reply of more than {MOST_REPLY_BYTES // 2**20} MiB")
    return bytes(content)


def _serve(loop: asyncio.AbstractEventLoop, client: httpx2.AsyncClient) -> None:
    """Run requests until the loop is stopped, then close the connections."""
    loop.run_forever()
    loop.run_until_complete(client.aclose())
    loop.close()
