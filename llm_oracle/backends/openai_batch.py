"""The offline queue: what a search lacks as a file in OpenAI's Batch format, and the results of such a batch taken in.

A request is known by a hash over its path and body, so that results answer it whenever it comes up again. Answers go
through the journal like any other; a request without one is queued and its question stays open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from grammar.errors import HapaxError
from kb.records import content_id
from llm_oracle.backends.openai_limits import Fault
from llm_oracle.backends.openai_models import OpenAICritic, OpenAIGenerator, OpenAILikelihood
from llm_oracle.backends.openai_transport import Answer, Ask, Read
from llm_oracle.calls import (
    EVALUATOR,
    LIKELIHOOD,
    BudgetReached,
    CallStatistics,
    Journal,
    JournaledCritic,
    JournaledGenerator,
    JournaledLikelihood,
)
from llm_oracle.protocols import (
    Critic,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
    Models,
)

Item = TypeVar("Item")


class Queued(BudgetReached):
    """The request was written to the queue instead of being sent."""

    def __init__(self, path: Path) -> None:
        self.limit, self.allowed, self.used = "requests sent", 0, CallStatistics()
        self.answers: tuple[Any, ...] = ()
        HapaxError.__init__(
            self,
            f"What is missing stands in {path}. Have it answered as a batch, then run the same command with its "
            "results; a search may need several such rounds.",
        )


class BatchQueue:
    """A transport that answers from results files and writes the rest to a queue file. Nothing is sent.

    `count`: requests queued so far; `faulty`: results that hold no usable answer, whose requests are queued again.
    """

    def __init__(self, path: Path, results: Sequence[Path] = ()) -> None:
        self.path = path
        self.faulty = 0
        self._results = {name: body for file in results for name, body in _results(file)}
        self._queued: set[str] = set()
        _refuse_foreign(path, results)
        path.write_text("", encoding="utf-8")

    @property
    def count(self) -> int:
        return len(self._queued)

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer]:
        """The answers, if the results hold all of them; raises Queued if not."""
        answers: list[Answer] = []
        for ask in asks:
            name = content_id("batch", ask.path, ask.body)
            try:
                answers.append(read(self._results[name], ask))
            except KeyError:
                self._queue(name, ask)
            except Fault:
                self.faulty += 1
                self._queue(name, ask)
        if len(answers) < len(asks):
            raise Queued(self.path)
        return answers

    def _queue(self, name: str, ask: Ask) -> None:
        if name in self._queued:
            return
        self._queued.add(name)
        line = {"custom_id": name, "method": "POST", "url": f"/v1/{ask.path}", "body": ask.body}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _refuse_foreign(path: Path, results: Sequence[Path]) -> None:
    """A queue is written anew each time, over an earlier queue but over no other file."""
    try:
        begins = path.read_bytes()[:13] if path.exists() else b""
    except OSError as fault:
        raise HapaxError(f"{path}: the queue cannot be written: {fault}.") from fault
    if begins not in (b"", b'{"custom_id":') or path.resolve() in [one.resolve() for one in results]:
        raise HapaxError(f"{path} is no queue of Hapax and would be overwritten. Name another file for --queue.")


def _results(path: Path) -> Iterator[tuple[str, Any]]:
    """The body of each answered request by its name; requests that failed are left out and so asked again."""
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
        if response.get("status_code") == 200:
            yield str(name), response["body"]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise HapaxError(
            f"{where}: no result of a batch. Each line is an object with custom_id and response, as OpenAI gives it."
        ) from None


def queued(models: Models, journal: Journal) -> Models:
    """The models whose requests go to a queue, wrapped so that each answer that is there is used."""

    def scorer(model: LikelihoodModel, role: str) -> LikelihoodModel:
        return QueuedLikelihood(model, journal, role=role) if isinstance(model, OpenAILikelihood) else model

    knowledge: Generator = models.knowledge
    critic: Critic = models.critic
    if isinstance(knowledge, OpenAIGenerator):
        knowledge = QueuedGenerator(knowledge, journal)
    if isinstance(critic, OpenAICritic):
        critic = QueuedCritic(critic, journal)
    return Models(knowledge, critic, scorer(models.likelihood, LIKELIHOOD), scorer(models.evaluator, EVALUATOR))


class QueuedGenerator(JournaledGenerator):
    """A journaled generator that goes on behind a request without an answer."""

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        ask = super().generate
        return _one_by_one(requests, lambda request: ask([request], parameters))


class QueuedCritic(JournaledCritic):
    """A journaled critic that goes on behind a claim without an answer."""

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        ask = super().probabilities
        return _one_by_one(claims, lambda claim: ask([claim]))


class QueuedLikelihood(JournaledLikelihood):
    """A journaled likelihood model that goes on behind a text without an answer."""

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        ask = super().log_likelihoods
        return _one_by_one(texts, lambda text: ask([text]))


def _one_by_one(items: Sequence[Item], ask: Callable[[Item], list[Answer]]) -> list[Answer]:
    """All answers there are; what stopped the first of the others is raised behind the last, with the answers."""
    answers: list[Answer | None] = []
    stopped: BudgetReached | None = None
    for item in items:
        try:
            answers += ask(item)
        except BudgetReached as reached:
            stopped = stopped or reached
            answers.append(None)
    if stopped is not None:
        stopped.answers = tuple(answers)
        raise stopped
    return [answer for answer in answers if answer is not None]
