"""Every kind of fault of a server, at every request: the same answers in the end, or a clean stop and then the same."""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from money_fixture import WORLD
from openai_fake import FAULTS, Asked, Changed, FakeServer, Reply

from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends import openai_aliases, openai_transport
from hapax.llm_oracle.backends.openai_transport import RetryPolicy
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.prompts import knowledge_prompt
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.registry import open_models

Fault = Reply | Changed | bytes | str

PROMPTS = [knowledge_prompt(slot, words, "City", 3) for slot, words in (("A", "[A] is a city in [B]"),)]
CLAIMS = ["Norway uses the euro.", "Oslo is a city in Norway."]
TEXTS = ["Banjul is a city in The Gambia."]

SHORT, LONG = 0.25, 10.0
"""Seconds of an attempt, for the faults that end by time-out and for the others."""

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def each_choice(change: Callable[[dict[str, Any]], object]) -> Changed:
    def changed(body: Any) -> Any:
        for choice in body.get("choices", []):
            change(choice)
        return body

    return changed


def with_scores(score: float) -> Changed:
    """Every log-probability is this one."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: score if name == "logprob" else spoilt(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [score if type(inner) is float else spoilt(inner) for inner in value]
        return value

    return each_choice(lambda choice: choice.update(logprobs=spoilt(choice["logprobs"])) if "logprobs" in choice else 0)


def with_decoy(body: Any) -> Any:
    """A second choice that nobody asked for, sent before the first."""
    choice = {"message": {"content": "1. nowhere."}, "text": "nowhere", "finish_reason": "stop", "index": 1}
    return {**body, "choices": [choice, *body["choices"]]} if "choices" in body else body


OVER_SOON: dict[str, Fault] = {
    **{name: fault for name, fault in FAULTS.items() if name != "no text"},
    "408": (408, {}, {}),
    "409": (409, {}, {}),
    "425": (425, {}, {}),
    "502": (502, b"<html><h1>Bad Gateway</h1></html>", {"Content-Type": "text/html"}),
    "504": (504, b"", {}),
    "529": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, {}),
    "429 until a date that is past": (429, {}, {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}),
    "429 with a time that is none": (429, {}, {"Retry-After": "soon"}),
    "429 with a negative time": (429, {}, {"Retry-After": "-5"}),
    "429 for nan seconds": (429, {}, {"Retry-After": "nan"}),
    "no reply in time": "hang",
    "a reply that drips": "drip",
    "reset within the body": "reset",
    "plain garbage": b"\x00\xff garbage\r\n\r\n",
    "garbage of TLS": b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "broken chunks": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "chunks that end early": OK + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"choices"',
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    "gzip that is none": (200, b"not gzip at all", {"Content-Encoding": "gzip"}),
    "a gzip bomb": (200, gzip.compress(b" " * 4_000_000), {"Content-Encoding": "gzip"}),
    "an endless reply": (200, b" " * 600_000, {}),
    "a list": (200, [], {}),
    "null": (200, None, {}),
    "UTF-16": (200, json.dumps({"choices": []}).encode("utf-16"), {}),
    "a reply in Latin-1": (200, b'{"choices": [{"text": "\xe9"}]}', {}),
    "an error with status 200": (200, {"error": {"message": "try again", "code": 500}}, {}),
    "no choice of several": lambda body: {**body, "choices": []},
}
"""Faults that are over at the next attempt."""

SLOW = ("no reply in time", "a reply that drips")

HARMLESS: dict[str, Fault] = {
    "choices out of order": with_decoy,
    "another model's name": lambda body: {**body, "model": "another"},
    "absurd counts of tokens": lambda body: {**body, "usage": {**body.get("usage", {}), "completion_tokens": -7}},
    "fields nobody knows": lambda body: {**body, "choices ": None, "x": [[[[]]]]},
    "a header twice": (429, {}, {"Retry-After": "0", "retry-after": "0"}),
}
"""Faults that change no answer."""

LACKING: dict[str, Fault] = {
    "nan": with_scores(math.nan),
    "infinite": with_scores(-math.inf),
    "positive": with_scores(2.5),
    "no text": FAULTS["no text"],
    "choices that are none": (200, {"choices": [None]}, {}),
}
"""Faults by which a probe decides that the server lacks a feature; after a success they are over at the next attempt."""

FINAL: dict[str, Fault] = {
    "401": (401, {"error": {"message": "invalid key"}}, {}),
    "402": (402, {}, {}),
    "403": (403, {}, {}),
    "a quota that is spent": (429, {"error": {"code": "insufficient_quota", "message": "no money"}}, {}),
    "429 for a year": (429, {}, {"Retry-After": "31536000"}),
    "429 until a date far off": (429, {}, {"Retry-After": "Fri, 31 Dec 2999 23:59:59 GMT"}),
    "501": (501, {}, {}),
    "a redirection": (302, b"", {"Location": "http://127.0.0.1:9/"}),
}
"""Faults that no further attempt would mend."""


@dataclass
class At:
    """The fault at the request with this number, or, with None, at the first attempt of every one."""

    fault: Fault
    number: int | None = None
    made: int = 0
    seen: set[str] = field(default_factory=set)

    def __call__(self, number: int, asked: Asked) -> Fault | None:
        name = json.dumps([asked.path, asked.body], sort_keys=True)
        here = name not in self.seen if self.number is None else number == self.number
        self.seen.add(name)
        self.made += here
        return self.fault if here else None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.0, timeout=LONG))
    monkeypatch.setattr(openai_transport, "MOST_REPLY_BYTES", 500_000)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("HAPAX_ALIASES", raising=False)


def ask(fake: FakeServer, database: Path) -> None:
    """Ask as a search does, for a list, judgements and scores, by models that are opened anew."""
    aliases = database.parent / "models.yaml"
    aliases.write_text(
        json.dumps([{"model_id": "small", "model_name": "tiny", "api_base": fake.url, "revision": "1"}]), "utf-8"
    )
    with KnowledgeBase(database) as kb:
        journal = Journal(kb)
        models = open_models(
            "openai:small", evaluator="openai:small", options=OpeningOptions(aliases=aliases, journal=journal)
        )
        JournaledGenerator(models.knowledge, journal).generate(
            [GenerationRequest(one) for one in PROMPTS], GenerationParameters(max_tokens=50)
        )
        JournaledCritic(models.critic, journal).probabilities(CLAIMS)
        JournaledLikelihood(models.likelihood, journal).log_likelihoods(TEXTS)


def answers(database: Path) -> list[tuple[str, str]]:
    """Requests and responses of the journal, without probes."""
    with sqlite3.connect(database) as connection:
        sql = "SELECT request, response FROM calls WHERE role <> 'probe' ORDER BY request"
        return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[str, str]], int, int]:
    """The answers without a fault, the number of requests, and how many of them only find out what the server can do."""
    database = tmp_path_factory.mktemp("good") / "kb.db"
    with FakeServer(WORLD) as fake:
        ask(fake, database)
        asked = len(fake.asked)
        return answers(database), asked, asked - len(answers(database))


Good = tuple[list[tuple[str, str]], int, int]


@pytest.mark.parametrize("name", [*OVER_SOON, *HARMLESS])
def test_a_fault_at_every_request_changes_no_answer(
    name: str, good: Good, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every request answered wrongly the first time, all answers are those of a server without faults."""
    if name in SLOW:
        monkeypatch.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.0, timeout=SHORT))
    at = At({**OVER_SOON, **HARMLESS}[name])
    with FakeServer(WORLD, misbehave=at) as fake:
        ask(fake, tmp_path / "kb.db")

    assert answers(tmp_path / "kb.db") == good[0]
    assert at.made >= good[1]


@pytest.mark.parametrize("name", FINAL)
def test_a_refusal_at_any_request_is_a_clean_stop(name: str, good: Good, tmp_path: Path) -> None:
    """Whichever request is refused for good, that is said, what came is kept, and the next run asks for the rest."""
    for number in range(1, good[1] + 1):
        database = tmp_path / f"{number}.db"
        with FakeServer(WORLD, misbehave=At(FINAL[name], number)) as fake:
            with suppress(HapaxError):  # some probes have another way to find the same out
                ask(fake, database)
            # Where the first request is refused, nothing came and no file is left.
            kept = set(answers(database)) if database.exists() else set()
            fake.misbehave = lambda number, asked: None
            before = len(fake.asked)
            ask(fake, database)
            assert kept <= set(answers(database))
            assert len(fake.asked) - before <= good[1] - len(kept)
        if number > good[2]:
            assert answers(database) == good[0]


@pytest.mark.parametrize("name", LACKING)
def test_a_reply_that_lacks_something_is_asked_for_again(name: str, good: Good, tmp_path: Path) -> None:
    """A score that is no log-probability, or a choice that is none, is not believed at any request behind the probes."""
    for number in range(good[2] + 1, good[1] + 1):
        database = tmp_path / f"{number}.db"
        with FakeServer(WORLD, misbehave=At(LACKING[name], number)) as fake:
            ask(fake, database)
        assert answers(database) == good[0], number
