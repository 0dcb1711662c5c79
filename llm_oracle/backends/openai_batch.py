"""The offline queue: what a search lacks as a file in OpenAI's Batch format, and the results of such a batch taken in.

A request is known by a hash over its path and body, so that results answer it whenever it comes up again. Answers go
through the journal like any other; a request without one is queued and its question stays open.

A batch is of one server, endpoint and model, and no larger than OpenAI takes, so a queue may be several files: the one
named and, beside it, others with -2, -3 ... behind its name. They are written beside their places and put there at the
end, so that a command that fails leaves the queue of before.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammar.errors import HapaxError
from grammar.words import counted
from kb.records import content_id
from llm_oracle.backends.openai_limits import Fault
from llm_oracle.backends.openai_transport import Answer, Ask, Read, Refused, Server, refused_reply, refused_result
from llm_oracle.calls import PutOff
from llm_oracle.protocols import Stream, at_once

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""Of one batch, by OpenAI's guide to its Batch API."""

BEGINS = b'{"custom_id":'


class Queued(PutOff):
    """The request was written to the queue instead of being sent."""

    def __init__(self, path: Path, answers: Sequence[Answer | Refused | None]) -> None:
        super().__init__(
            f"What is missing stands in {path}. Have it answered as a batch, then run the same command with its "
            "results by --results; it may take several such rounds."
        )
        self.answers = tuple(answers)


@dataclass
class QueueFile:
    """One batch: requests to one endpoint and model of one server. `path`: where it is to stand in the end."""

    path: Path
    place: str
    url: str
    model: str
    count: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{counted(self.count, 'request')} in {self.path}: {self.url} of {self.model} at {self.place}"

    def has_room(self, line: bytes) -> bool:
        return self.count < MOST_REQUESTS and self.size + len(line) <= MOST_BYTES

    @property
    def beside(self) -> Path:
        """Where it is written until then."""
        return _beside(self.path)

    def add(self, line: bytes) -> None:
        with _writing(self.path), self.beside.open("ab") as file:
            file.write(line)
        self.count += 1
        self.size += len(line)


class BatchQueue:
    """Answers from results files, and queue files for the rest. Nothing is sent.

    Either `land` or `discard` ends it; until then what stood under the names of its files stays.

    `files`: the batches written so far; `faulty`: results that hold no usable answer, whose requests are queued again.
    """

    def __init__(self, path: Path, results: Sequence[Path] = ()) -> None:
        self.path = path
        self.files: list[QueueFile] = []
        self.faulty = 0
        self._inputs = [one.resolve() for one in results]
        self._results = {name: body for file in results for name, body in _results(file)}
        self._queued: set[str] = set()
        self._refuse_foreign(path)

    def land(self) -> None:
        """Put the files in their places, over those of an earlier queue; without requests one empty file."""
        with _writing(self.path):
            if not self.files:
                _beside(self.path).touch()
            for path in [file.path for file in self.files] or [self.path]:
                if path.exists():
                    shutil.copymode(path, _beside(path))
                _beside(path).replace(path)
            for earlier in set(_numbered(self.path)) - {file.path for file in self.files}:
                if _begins(earlier) == BEGINS and earlier.resolve() not in self._inputs:
                    earlier.unlink()

    def discard(self) -> None:
        """Take away what was written, and leave the earlier queue as it was."""
        for file in self.files:
            file.beside.unlink(missing_ok=True)

    @property
    def count(self) -> int:
        return len(self._queued)

    def told(self) -> Iterator[str]:
        """What stands where, and how many results helped nothing."""
        yield from [str(file) for file in self.files] or [f"0 requests in {self.path}"]
        if self.faulty:
            yield f"{counted(self.faulty, 'result was', 'results were')} of no use"

    def to(self, server: Server) -> QueueTransport:
        """The transport to that server."""
        return QueueTransport(self, server)

    def answer(self, name: str) -> Any:
        """The result of that name: a reply or a refusal. Raises KeyError where there is none."""
        return self._results[name]

    def add(self, name: str, place: str, ask: Ask) -> None:
        """Queue a request, once."""
        if name in self._queued:
            return
        self._queued.add(name)
        url, model = f"/v1/{ask.path}", str(ask.body.get("model", ""))
        line = json.dumps({"custom_id": name, "method": "POST", "url": url, "body": ask.body}).encode() + b"\n"
        alike = [file for file in self.files if (file.place, file.url, file.model) == (place, url, model)]
        if not alike or not alike[-1].has_room(line):
            alike.append(QueueFile(self._next_path(), place, url, model))
            self.files.append(alike[-1])
        alike[-1].add(line)

    def _next_path(self) -> Path:
        if not self.files:
            return self.path
        path = self.path.with_name(f"{self.path.stem}-{len(self.files) + 1}{self.path.suffix}")
        self._refuse_foreign(path)
        return path

    def _refuse_foreign(self, path: Path) -> None:
        """A queue is written anew each time, over an earlier queue but over no other file."""
        if _begins(path) not in (b"", BEGINS) or path.resolve() in self._inputs:
            raise HapaxError(f"{path} is no queue of Hapax and would be overwritten. Name another file for --queue.")
        if not path.parent.is_dir():
            raise HapaxError(f"{path}: there is no such folder. Make it, or name another file for --queue.")
        if not os.access(path if path.exists() else path.parent, os.W_OK) or not os.access(path.parent, os.W_OK):
            raise HapaxError(f"{path}: the queue cannot be written there. Allow writing, or name another file.")


@dataclass(frozen=True, slots=True)
class QueueTransport:
    """A transport that answers from a queue's results and adds the rest to it."""

    queue: BatchQueue
    server: Server

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        """The answers, if the results hold all of them; raises Queued, with those that they hold, if not."""
        answers: list[Answer | Refused | None] = []
        for ask in asks:
            name = content_id("batch", self.server.place, ask.path, ask.body)
            try:
                found = self.queue.answer(name)
                answers.append(self._read(found, ask, read))
            except (KeyError, Fault) as lack:
                self.queue.faulty += isinstance(lack, Fault)
                self.queue.add(name, self.server.place, ask)
                answers.append(None)
        found = [one for one in answers if one is not None]
        if len(found) < len(asks):
            raise Queued(self.queue.path, answers)
        return found

    def stream(self, asks: Iterable[Ask], read: Read[Answer]) -> Stream[Answer | Refused]:
        """What the results hold at once; raises Queued behind it if they lack any."""
        return at_once(lambda: self.ask(list(asks), read))

    def _read(self, found: Any, ask: Ask, read: Read[Answer]) -> Answer | Refused:
        if isinstance(found, Refused):
            told, said = self.server.hidden(str(found)), self.server.hidden(found.said)
            return Refused(told, found.status, said, found.alone, found.usage)
        reply = self.server.without_key(found)
        return refused_reply(reply, ask, self.server.place) or read(reply, ask)


def _numbered(path: Path) -> Iterator[Path]:
    """The numbered files beside a queue."""
    named = re.compile(rf"{re.escape(path.stem)}-\d+{re.escape(path.suffix)}")
    if path.parent.is_dir():
        yield from [one for one in path.parent.iterdir() if named.fullmatch(one.name) and one.is_file()]


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raises HapaxError where the system does not let the queue be written."""
    try:
        yield
    except OSError as fault:
        raise HapaxError(
            f"{path}: the queue cannot be written ({fault.strerror}). Free some space, or name another file."
        ) from fault


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINS))
    except FileNotFoundError:
        return b""
    except OSError as fault:
        raise HapaxError(f"{path}: the queue cannot be written: {fault}.") from fault


def _results(path: Path) -> Iterator[tuple[str, Any]]:
    """The body or refusal of each request by its name; requests that failed are left out and so asked again."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield from _result(line, f"{path}:{number}")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: the results cannot be read: {fault}.") from fault


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
            f"{where}: no result of a batch. Each line is an object with custom_id and response, as OpenAI gives it."
        ) from None
