"""The offline queue: missing requests are written as OpenAI Batch files, and results of such batches are read.

A request is identified by a hash of its server, path and body, so that a result answers it whenever it comes up again.
Answers go through the journal like any other; a request without a result is queued and its question stays open.

A batch is for one server, endpoint and model, and has OpenAI's maximum size, so a queue may be several files: the named
one and others beside it, with -2, -3 ... after its name. They are written at the end, so that a command that fails
leaves the earlier queue unchanged. The ledger has each request before its file lands, as queued, and its result when it
is read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.files import own_files
from hapax.kb.files.unfinished import publish, unfinished
from hapax.kb.records import Outcome, content_id
from hapax.llm_oracle.budget import ACCOUNT, BatchedRequest, Deferred
from hapax.llm_oracle.protocols import Stream, Usage
from hapax.llm_oracle.servers.openai_aliases import Server
from hapax.llm_oracle.servers.openai_outcomes import Kind, Unanswered, error_of
from hapax.llm_oracle.servers.openai_transport import Attempt, ServerRequest

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""Limits of one batch, from OpenAI's guide to its Batch API."""

BEGINS = b'{"custom_id":'
"""Beginning of every queue file, by which an earlier queue is recognised before it is overwritten."""


class Queued(Deferred):
    """Requests were written to the queue instead of being sent."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"The missing requests are in {path}. Have them answered as a batch, then run the same {CALL} "
            f"with the results ({Setting('results', 'FILE')}). This may take several rounds."
        )


@dataclass(slots=True)
class QueueFile:
    """One batch: requests to one endpoint and model of one server."""

    path: Path
    place: str
    url: str
    model: str
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    def __str__(self) -> str:
        return f"{counted(len(self.lines), 'request')} in {self.path}: {self.url} of {self.model} at {self.place}"

    def takes(self, line: bytes, place: str, url: str, model: str) -> bool:
        """True if a request to this server, endpoint and model has room in the file."""
        has_room = len(self.lines) < MOST_REQUESTS and self.size + len(line) <= MOST_BYTES
        return has_room and (self.place, self.url, self.model) == (place, url, model)


class BatchQueue:
    """Answers requests from results files, and keeps the others for queue files. Nothing is sent.

    `land` writes the files; until then, earlier files with the same names are unchanged.

    `results`: replies, or Unanswered, by the names of their requests. `files`: the batches so far. `faulty`: number of
    results without a usable answer, whose requests are queued again.
    """

    def __init__(self, path: Path, results: Sequence[Path] = ()) -> None:
        self.path = path
        self.files: list[QueueFile] = []
        self.faulty = 0
        # A queue may not overwrite the results that it reads.
        self._inputs = [file.resolve() for file in results]
        self.results: dict[str, Any] = {}
        for file in results:
            # Of two results of one request the later file's counts.
            self.results.update(_results(file))
        self._queued: set[str] = set()
        self._check_writable(path)

    def land(self) -> None:
        """Move the files into place, over those of an earlier queue. A queue without requests is one empty file."""
        files = {file.path: file.lines for file in self.files} or {self.path: []}
        with _writing(self.path), unfinished(self.path.absolute()) as temporary:
            for path, lines in files.items():
                with temporary.with_name(path.name).open("wb") as stream:
                    stream.writelines(lines)
            for path in files:
                publish(temporary.with_name(path.name), path)
            # An earlier queue may have had more files. Leave files alone that only look like one of them.
            numbered = re.compile(rf"{re.escape(self.path.stem)}-\d+{re.escape(self.path.suffix)}")
            for other in set(self.path.parent.iterdir()).difference(files):
                is_queue = numbered.fullmatch(other.name) and other.is_file() and _beginning(other) == BEGINS
                if is_queue and other.resolve() not in self._inputs:
                    own_files.remove(other)

    def summary(self) -> Iterator[str]:
        """Lines on the requests in each file and the number of unusable results."""
        yield from [str(file) for file in self.files] or [f"0 requests in {self.path}"]
        if self.faulty:
            yield f"{counted(self.faulty, 'result was', 'results were')} unusable"

    def add(self, name: str, place: str, request: ServerRequest) -> None:
        """Queue a request to the server `place`, once."""
        if name in self._queued:
            return
        self._queued.add(name)
        url, model = f"/v1/{request.path}", str(request.body.get("model", ""))
        # `custom_id` comes first: by it (`BEGINS`) a queue is recognised.
        line = json.dumps({"custom_id": name, "method": "POST", "url": url, "body": request.body}).encode() + b"\n"
        file = next((file for file in self.files if file.takes(line, place, url, model)), None)
        if file is None:
            number = f"-{len(self.files) + 1}" if self.files else ""
            file = QueueFile(self.path.with_name(f"{self.path.stem}{number}{self.path.suffix}"), place, url, model)
            self._check_writable(file.path)
            self.files.append(file)
        file.lines.append(line)
        file.size += len(line)

    def _check_writable(self, path: Path) -> None:
        """Raise HapaxError unless the path can be written and holds nothing but an earlier queue."""
        fault = ""
        if _beginning(path) not in (b"", BEGINS) or path.resolve() in self._inputs:
            fault = "it would be overwritten, but it is not a queue of Hapax"
        elif not path.parent.is_dir():
            fault = f"no such folder {path.parent}"
        elif not os.access(path if path.exists() else path.parent, os.W_OK) or not os.access(path.parent, os.W_OK):
            fault = "no permission to write the queue"
        if fault:
            raise HapaxError(f"{path}: {fault}.", Remedy("Name another file for {}.", Setting("queue")))


@dataclass(frozen=True, slots=True)
class QueueTransport:
    """A transport that answers from a queue's results and adds the rest to it."""

    queue: BatchQueue
    server: Server

    def stream(self, questions: Iterable[Sequence[ServerRequest]]) -> Stream[list[Any]]:
        """The answers in one group; raises Queued after it if some are missing."""
        answers: list[tuple[int, list[Any]]] = []
        entries: list[BatchedRequest] = []
        is_complete = True
        for position, requests in enumerate(questions):
            found = [self._answer(request, entries) for request in requests]
            if None in found:
                is_complete = False
            else:
                answers.append((position, found))
        if (account := ACCOUNT.get()) is not None:
            account.ledger.enter_batched(account, entries)
        yield answers
        if not is_complete:
            raise Queued(self.queue.path)

    def _answer(self, request: ServerRequest, entries: list[BatchedRequest]) -> Any:
        """The answer by the results; None for a request that is queued. Adds its rows of the ledger to `entries`."""
        name = content_id("batch", self.server.place, request.path, request.body)
        attempt = Attempt(request, name, request.most, Outcome.QUEUED)
        try:
            answer = self._read(self.queue.results[name], attempt)
        except (KeyError, Unanswered) as fault:  # no result, or one that cannot be read
            # An unusable result was charged, so it has a row beside that of the request, which is queued again.
            if isinstance(fault, Unanswered):
                self.queue.faulty += 1
                entries.append(_entry(attempt, self.queue.results[name]))
            attempt = Attempt(request, name, request.most, Outcome.QUEUED)
            self.queue.add(name, self.server.place, request)
            answer = None
        entries.append(_entry(attempt))
        return answer

    def _read(self, result: Any, attempt: Attempt) -> Any:
        try:
            if isinstance(result, Unanswered):
                raise attempt.failed(result)
            # A result was not received by this program, so it may still contain the key.
            return attempt.read(self.server.redacted_json(result))
        except Unanswered as fault:
            if fault.kind is not Kind.REFUSED:
                raise
            attempt.outcome = Outcome.REFUSED
            return fault.worded(self.server, attempt.request.path)


def _entry(attempt: Attempt, unusable: Any = None) -> BatchedRequest:
    """The ledger's row of a request, which its answer replaces. An unusable result has a row of its own."""
    name = ("batched", attempt.key) if unusable is None else ("batched", attempt.key, json.dumps(unusable))
    return BatchedRequest(content_id(*name), attempt.request.path, attempt.spent or Usage(), attempt.outcome)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Translate errors of the file system into HapaxError."""
    try:
        yield
    except OSError as fault:
        raise HapaxError(
            f"{path}: the queue cannot be written ({fault.strerror}). Free some space, or name another file."
        ) from fault


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINS))
    except FileNotFoundError:
        return b""
    except OSError as fault:
        raise HapaxError(
            f"{path}: the queue cannot be read: {fault}.", Remedy("Name another file for {}.", Setting("queue"))
        ) from fault


def _results(path: Path) -> Iterator[tuple[str, Any]]:
    """Name and reply or refusal of each request. Failed requests are left out, so that they are queued again."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield from _result(line, f"{path}:{number}")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: the results cannot be read: {fault}. Give the batch's output file.") from fault


def _result(line: str, where: str) -> Iterator[tuple[str, Any]]:
    try:
        result = json.loads(line)
        name, response = result["custom_id"], result.get("response") or {}
        status, body = response.get("status_code"), response.get("body")
        answer = body if status == 200 else error_of(status if isinstance(status, int) else 0, json.dumps(body))
        is_answer = not isinstance(answer, Unanswered) or answer.kind is Kind.REFUSED
        if answer is not None and is_answer:
            yield str(name), answer
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise HapaxError(
            f"{where}: not a result of a batch. Each line should be an object with custom_id and response, as in "
            "OpenAI's output files."
        ) from None
