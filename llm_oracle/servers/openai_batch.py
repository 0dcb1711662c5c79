"""The offline queue: missing requests are written as OpenAI Batch files, and results of such batches are read.

A request is identified by a hash of its server, path and body, so that a result answers it whenever it comes up again.
Answers go through the journal like any other; a request without a result is queued and its question stays open.

A batch is for one server, endpoint and model, and has OpenAI's maximum size, so a queue may be several files: the named
one and others beside it, with -2, -3 ... after its name. They are written in a hidden folder and moved into place at
the end, so that a command that fails leaves the earlier queue unchanged.

The ledger has each request before its file lands, as queued, and its result when it is read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from hapax.llm_oracle.servers.openai_outcomes import Refused, TransientFault
from hapax.llm_oracle.servers.openai_transport import Attempt, refused_reply, refused_result
from hapax.llm_oracle.servers.openai_wire import Answer, ReadReply, ServerRequest, normalised

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


@dataclass
class QueueFile:
    """One batch: requests to one endpoint and model of one server.

    `path`: its place once the queue has landed; `temporary`: where it is written until then.
    """

    path: Path
    temporary: Path
    place: str
    url: str
    model: str
    count: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{counted(self.count, 'request')} in {self.path}: {self.url} of {self.model} at {self.place}"

    def has_room(self, line: bytes) -> bool:
        return self.count < MOST_REQUESTS and self.size + len(line) <= MOST_BYTES

    def add(self, line: bytes) -> None:
        with _writing(self.path), self.temporary.open("ab") as file:
            file.write(line)
        self.count += 1
        self.size += len(line)


class BatchQueue:
    """Answers requests from results files, and writes the others to queue files. Nothing is sent.

    End it with `land` or `discard`; until then, earlier files with the same names are unchanged.

    `files`: the batches written so far. `faulty`: number of results without a usable answer, whose requests are queued
    again.
    """

    def __init__(self, path: Path, results: Sequence[Path] = ()) -> None:
        self.path = path
        self.files: list[QueueFile] = []
        self.faulty = 0
        # A queue may not overwrite the results that it reads.
        self._inputs = [file.resolve() for file in results]
        self._results: dict[str, Any] = {}
        for file in results:
            # Of two results of one request the later file's counts.
            self._results.update(_results(file))
        self._queued: set[str] = set()
        self._folder: Path | None = None
        self._writing = ExitStack()
        self._check_writable(path)

    def land(self) -> None:
        """Move the files into place, over those of an earlier queue. A queue without requests is one empty file."""
        with _writing(self.path):
            if not self.files:
                self._temporary(self.path).touch()
            for path in [file.path for file in self.files] or [self.path]:
                publish(self._temporary(path), path)
            # An earlier queue may have had more files. Leave files alone that only look like one of them.
            for earlier in set(_numbered(self.path)) - {file.path for file in self.files}:
                if _beginning(earlier) == BEGINS and earlier.resolve() not in self._inputs:
                    own_files.remove(earlier)
        self.discard()

    def discard(self) -> None:
        """Delete the files written so far; the earlier queue is unchanged."""
        self._writing.close()
        self._folder = None

    def _temporary(self, path: Path) -> Path:
        """Where the file of this path is written until the queue lands."""
        if self._folder is None:
            with _writing(path):
                self._folder = self._writing.enter_context(unfinished(self.path.absolute())).parent
        return self._folder / path.name

    @property
    def count(self) -> int:
        return len(self._queued)

    def summary(self) -> Iterator[str]:
        """Lines on the requests in each file and the number of unusable results."""
        yield from [str(file) for file in self.files] or [f"0 requests in {self.path}"]
        if self.faulty:
            yield f"{counted(self.faulty, 'result was', 'results were')} unusable"

    def to(self, server: Server) -> QueueTransport:
        """The transport for a server."""
        return QueueTransport(self, server)

    def answer(self, name: str) -> Any:
        """The result of a request: a reply or a refusal. Raises KeyError if there is none."""
        return self._results[name]

    def add(self, name: str, place: str, request: ServerRequest) -> None:
        """Queue a request to the server `place`, once."""
        if name in self._queued:
            return
        self._queued.add(name)
        url, model = f"/v1/{request.path}", str(request.body.get("model", ""))
        # `custom_id` comes first: by it (`BEGINS`) a queue is recognised.
        line = json.dumps({"custom_id": name, "method": "POST", "url": url, "body": request.body}).encode() + b"\n"
        # Only the last of them can have room, since files are filled one after the other.
        matching = [file for file in self.files if (file.place, file.url, file.model) == (place, url, model)]
        if not matching or not matching[-1].has_room(line):
            path = self._next_path()
            matching.append(QueueFile(path, self._temporary(path), place, url, model))
            self.files.append(matching[-1])
        matching[-1].add(line)

    def _next_path(self) -> Path:
        if not self.files:
            return self.path
        path = self.path.with_name(f"{self.path.stem}-{len(self.files) + 1}{self.path.suffix}")
        self._check_writable(path)
        return path

    def _check_writable(self, path: Path) -> None:
        """Raise HapaxError unless the path can be written and holds nothing but an earlier queue."""
        if _beginning(path) not in (b"", BEGINS) or path.resolve() in self._inputs:
            raise HapaxError(
                f"{path} would be overwritten, but it is not a queue of Hapax.",
                Remedy("Name another file for {}.", Setting("queue")),
            )
        if not path.parent.is_dir():
            raise HapaxError(
                f"{path}: no such folder {path.parent}.",
                Remedy("Create it, or name another file for {}.", Setting("queue")),
            )
        if not os.access(path if path.exists() else path.parent, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise HapaxError(
                f"{path}: no permission to write the queue.",
                Remedy("Grant it, or name another file for {}.", Setting("queue")),
            )


@dataclass(frozen=True, slots=True)
class QueueTransport:
    """A transport that answers from a queue's results and adds the rest to it."""

    queue: BatchQueue
    server: Server

    def stream(self, requests: Iterable[ServerRequest], read: ReadReply[Answer]) -> Stream[Answer | Refused]:
        """The answers in one group; raises Queued after it if some are missing."""
        answers: list[tuple[int, Answer | Refused]] = []
        count = 0
        entries: list[BatchedRequest] = []
        for position, request in enumerate(requests):
            count += 1
            name = content_id("batch", self.server.place, request.path, request.body)
            attempt = Attempt(request, request.most, name, Outcome.QUEUED)
            try:
                answers.append((position, self._read(self.queue.answer(name), attempt, read)))
            except (KeyError, TransientFault) as fault:  # no result, or one that cannot be read
                # An unusable result was charged, so it has a row beside that of the request, which is queued again.
                if isinstance(fault, TransientFault):
                    self.queue.faulty += 1
                    entries.append(_entry(attempt, self.queue.answer(name)))
                entries.append(_entry(Attempt(request, request.most, name, Outcome.QUEUED)))
                self.queue.add(name, self.server.place, request)
            else:
                entries.append(_entry(attempt))
        if (account := ACCOUNT.get()) is not None:
            account.ledger.enter_batched(account, entries)
        yield answers
        if len(answers) < count:
            raise Queued(self.queue.path)

    def _read(self, result: Any, attempt: Attempt, read: ReadReply[Answer]) -> Answer | Refused:
        request = attempt.request
        if isinstance(result, Refused):
            attempt.spent, attempt.outcome = result.usage, Outcome.REFUSED
            message, said = self.server.redacted(str(result)), self.server.redacted(result.said)
            return Refused(message, result.status, said, result.kind, result.usage)
        # A result was not received by this program, so it may still contain the key.
        reply = normalised(self.server.redacted_json(result))
        attempt.replied(200, reply)
        answer = refused_reply(reply, request, self.server.place) or read(reply, request)
        attempt.outcome = Outcome.REFUSED if isinstance(answer, Refused) else Outcome.ANSWERED
        return answer


def _entry(attempt: Attempt, unusable: Any = None) -> BatchedRequest:
    """The ledger's row of a request, which its answer replaces. An unusable result has a row of its own."""
    name = ("batched", attempt.key) if unusable is None else ("batched", attempt.key, json.dumps(unusable))
    return BatchedRequest(content_id(*name), attempt.request.path, attempt.spent or Usage(), attempt.outcome)


def _numbered(path: Path) -> Iterator[Path]:
    """The numbered files beside a queue."""
    named = re.compile(rf"{re.escape(path.stem)}-\d+{re.escape(path.suffix)}")
    if path.parent.is_dir():
        for file in path.parent.iterdir():
            if named.fullmatch(file.name) and file.is_file():
                yield file


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
        answer = body if status == 200 else refused_result(status, body, where)
        if answer is not None:
            yield str(name), answer
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise HapaxError(
            f"{where}: not a result of a batch. Each line should be an object with custom_id and response, as in "
            "OpenAI's output files."
        ) from None
