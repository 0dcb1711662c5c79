"""Every kind of fault of a server, at every request: the same answers in the end, or a clean stop and then the same."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from money_fixture import WORLD
from openai_fake import FAULTS, Asked, Changed, FakeServer, Reply
from served import found, models_file, prompt_of, search

import hapax

Fault = Reply | Changed | bytes | str

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
    "a gzip bomb": (200, gzip.compress(b" " * 20_000_000), {"Content-Encoding": "gzip"}),
    "an endless reply": (200, b" " * 20_000_000, {}),
    "a list": (200, [], {}),
    "null": (200, None, {}),
    "UTF-16": (200, json.dumps({"choices": []}).encode("utf-16"), {}),
    "a reply in Latin-1": (200, b'{"choices": [{"text": "\xe9"}]}', {}),
    "an error with status 200": (200, {"error": {"message": "try again", "code": 500}}, {}),
    "no choice of several": lambda body: {**body, "choices": []},
}
"""Faults that are over at the next attempt."""

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

STRIDE = 16
"""A normal run refuses one request of so many."""


@dataclass
class InTurn:
    """Each request that is no probe, or with `probes` any, meets the next of these faults at its first attempt."""

    faults: list[Fault]
    probes: bool = True
    met: dict[str, Fault] = field(default_factory=dict)

    def __call__(self, number: int, asked: Asked) -> Fault | None:
        name = json.dumps([asked.path, asked.body], sort_keys=True)
        if name in self.met or (is_probe(asked) and not self.probes):
            return None
        self.met[name] = self.faults[len(self.met) % len(self.faults)]
        return self.met[name]


def is_probe(asked: Asked) -> bool:
    """True for a question of which the answer only shows what the server can do."""
    return not re.search("is a city in (?!Japan)|uses the", prompt_of(asked))


def ask(fake: FakeServer, folder: Path, *more: str, **fields: Any) -> Result:
    """A search that asks the server for lists, judgements and scores."""
    aliases = models_file(folder, fake, revision="1", **fields)
    options = (*more, "--evaluator", "openai:small", "--aliases", aliases, "--profile", "hapax", "--calls", "1")
    return search(folder, "openai:small", *options)


def answers(folder: Path) -> set[tuple[str, str]]:
    """Requests and responses of the journal, without probes; none where there is no knowledge base."""
    if not (folder / "kb.db").exists():
        return set()
    with hapax.KnowledgeBase(folder / "kb.db", read_only=True) as kb:
        calls = [call for call in kb.calls().values() if call.role != "probe"]
    return {(json.dumps(dict(call.request), sort_keys=True), json.dumps(dict(call.response))) for call in calls}


@dataclass
class Chaos:
    """Most requests meet up to three faults, drawn by seed, and then an answer; few meet one that ends the run."""

    seed: int
    met: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    """Requests that count in `--max-calls`."""

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.share = self.draw.choice([0.3, 0.6, 0.9])

    def __call__(self, number: int, asked: Asked) -> Fault | None:
        name = json.dumps([asked.path, asked.body], sort_keys=True)
        faults = OVER_SOON | HARMLESS if self.draw.random() < 0.97 else FINAL
        fault = self.draw.choice([*faults.values()])
        if self.met[name] == 3 or self.draw.random() > self.share or (faults is FINAL and is_probe(asked)):
            fault = None
        self.met[name] += fault is not None
        self.counted += not (isinstance(fault, tuple) and fault[0] == 429)
        return fault


Good = tuple[set[tuple[str, str]], list[Asked], Any]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Good:
    """The answers without a fault, and the requests."""
    folder = tmp_path_factory.mktemp("good")
    with FakeServer(WORLD) as fake:
        ended = ask(fake, folder)
        assert ended.exit_code == 0, ended.output
        return answers(folder), fake.asked, found(folder)


def turned(faults: dict[str, Fault], first: int) -> list[Fault]:
    """The faults, beginning with this one."""
    return [*faults.values()][first:] + [*faults.values()][:first]


def some(count: int, step: int) -> list[Any]:
    """All numbers below a count, of which every `step`th is one of the normal run."""
    return [number if number % step == 0 else pytest.param(number, marks=pytest.mark.slow) for number in range(count)]


@pytest.mark.parametrize("first", some(len(OVER_SOON | HARMLESS), 24))
def test_a_fault_at_every_request_changes_no_answer(first: int, good: Good, tmp_path: Path) -> None:
    """With every request answered wrongly the first time, all answers are those of a server without faults."""
    in_turn = InTurn(turned(OVER_SOON | HARMLESS, first))
    with FakeServer(WORLD, misbehave=in_turn) as fake:
        ended = ask(fake, tmp_path, timeout=2)

    assert ended.exit_code == 0, ended.output
    assert answers(tmp_path) == good[0]
    assert len(in_turn.met) >= len(good[1]) >= 24


@pytest.mark.parametrize("first", some(len(LACKING), len(LACKING)))
def test_a_reply_that_lacks_something_is_asked_for_again(first: int, good: Good, tmp_path: Path) -> None:
    """A score that is no log-probability, or a choice that is none, is not believed at any request behind the probes."""
    with FakeServer(WORLD, misbehave=InTurn(turned(LACKING, first), probes=False)) as fake:
        ended = ask(fake, tmp_path)

    assert ended.exit_code == 0, ended.output
    assert answers(tmp_path) == good[0]


@pytest.mark.parametrize("step", some(STRIDE, STRIDE))
@pytest.mark.parametrize("name", FINAL)
def test_a_refusal_at_any_request_is_a_clean_stop(name: str, step: int, good: Good, tmp_path: Path) -> None:
    """Whichever request is refused for good, that is said, what came is kept, and the next run asks for the rest."""
    for number in range(1 + (step + list(FINAL).index(name)) % STRIDE, len(good[1]) + 1, STRIDE):
        folder = tmp_path / str(number)
        folder.mkdir()
        with FakeServer(WORLD, misbehave=lambda place, asked, at=number: FINAL[name] if place == at else None) as fake:
            ended = ask(fake, folder)
            refused = fake.asked[number - 1]
            kept = answers(folder)
            fake.misbehave = lambda number, asked: None
            before = len(fake.asked)
            assert ask(fake, folder).exit_code == 0
            sent = len(fake.asked) - before

        assert kept <= answers(folder)
        # A run without the server's likelihoods has those of word frequencies beside.
        assert sent <= len(good[1]) - len(kept & good[0])
        if not is_probe(refused):  # some probes have another way to find the same out
            assert ended.exit_code == 1
            assert answers(folder) == good[0]


@pytest.mark.parametrize("seed", some(40, 20))
def test_chaos_ends_in_the_undisturbed_base(seed: int, good: Good, tmp_path: Path) -> None:
    """Faults at most requests, and runs that end by a limit or for good: facts, statements and answers are the same."""
    chaos = Chaos(seed)
    with FakeServer(WORLD, misbehave=chaos) as fake:
        for most in chaos.draw.sample(range(1, 40), 2):
            before = chaos.counted
            ask(fake, tmp_path, "--max-calls", str(most), timeout=1)
            assert chaos.counted - before <= most
        for _ in range(12):
            ended = ask(fake, tmp_path, timeout=1)
            if ended.exit_code == 0:
                break

    assert ended.exit_code == 0, ended.output
    assert answers(tmp_path) == good[0]
    assert found(tmp_path) == good[2]
