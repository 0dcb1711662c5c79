"""The journal asks a model nothing twice."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from hapax.kb.files.spill import spill_path, spilled
from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Account, Budget, BudgetReached, CallStatistics, Ledger
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    ModelIdentity,
    ReplyForm,
    Usage,
)
from hapax.llm_oracle.servers.openai_outcomes import Unanswered
from hapax.llm_oracle.servers.openai_transport import Concurrency
from hapax.llm_oracle.servers.openai_wire import ServerReply
from hapax.llm_oracle.servers.redaction import redacted

PARAMETERS = GenerationParameters(max_tokens=10)


class CountingModel:
    """A critic and a generator; counts what reaches it."""

    identity = ModelIdentity("counting", "r1")

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return [Generation(f"1. {request.prompt}.", "stop", Usage(3, 2)) for request in requests]

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self.batches.append(list(claims))
        return [CriticScore(1 / (2 + len(claim)), Usage(5, 1)) for claim in claims]


REQUEST = GenerationRequest("prompt", ("x",), ("y",), 0)
CHANGED_REQUESTS = [
    replace(REQUEST, prompt="prompt "),
    replace(REQUEST, excluded_values=("x", "z")),
    replace(REQUEST, excluded_values=()),
    replace(REQUEST, banned_tokens_of=("z",)),
    replace(REQUEST, sample_index=1),
    replace(REQUEST, form=ReplyForm(1, "Dish")),
]
CHANGED_PARAMETERS = [
    replace(PARAMETERS, temperature=0.8),
    replace(PARAMETERS, top_p=0.9),
    replace(PARAMETERS, max_tokens=11),
    replace(PARAMETERS, seed=1),
]


@pytest.mark.parametrize("request_", CHANGED_REQUESTS)
def test_any_change_of_a_request_is_a_miss(request_: GenerationRequest) -> None:
    """Every field of a request is part of its identity."""
    generator = JournaledGenerator(CountingModel(), Journal(KnowledgeBase()))

    assert generator.call_ids([request_], PARAMETERS) != generator.call_ids([REQUEST], PARAMETERS)


def test_every_field_has_a_case() -> None:
    """A field added to a request or to the parameters needs a case above, other words for the same question do not."""
    changed = {
        name
        for base, variants in ((REQUEST, CHANGED_REQUESTS), (PARAMETERS, CHANGED_PARAMETERS))
        for variant in variants
        for name in base.__dataclass_fields__
        if getattr(base, name) != getattr(variant, name)
    }

    fields = {*GenerationRequest.__dataclass_fields__, *GenerationParameters.__dataclass_fields__}
    assert changed == fields - {"listed"}


def test_duplicates_are_sent_once(fresh_kb: KnowledgeBase) -> None:
    """Equal claims of one batch are one request and get one answer each."""
    model, journal = CountingModel(), Journal(fresh_kb)

    scores = JournaledCritic(model, journal).probabilities(["a", "bb", "a", "a"])

    assert model.batches == [["a", "bb"]]
    assert scores[0] == scores[2] == scores[3] != scores[1]
    assert journal.statistics["critic"] == CallStatistics(2, 2, 10, 2, None)


class WatchedStore(KnowledgeBase):
    """Counts what it is asked for, and lets something happen before it gives the right to ask."""

    def __init__(self, path: Path, before_asking: Callable[[], object] = lambda: None) -> None:
        super().__init__(path)
        self.looked_up: list[int] = []
        self._before_asking = before_asking

    def calls(self, request_ids: Iterable[str] | None = None) -> dict[str, CallRecord]:
        ids = list(request_ids or ())
        self.looked_up.append(len(ids))
        return super().calls(ids)

    def asking(self) -> AbstractContextManager[None]:
        self._before_asking()
        return super().asking()


def test_what_another_process_asked_meanwhile_is_not_asked_again(tmp_path: Path) -> None:
    """Between the look at the store and the right to ask, another one may have asked: then there is a second look."""
    model, second = CountingModel(), CountingModel()

    def meanwhile() -> None:
        with KnowledgeBase(tmp_path / "hapax.db") as its_own:
            JournaledCritic(second, Journal(its_own)).probabilities(["b"])

    kb = WatchedStore(tmp_path / "hapax.db", meanwhile)
    with kb:
        scores = JournaledCritic(model, Journal(kb)).probabilities(["a", "b"])

        assert (kb.looked_up, model.batches, second.batches) == ([2, 2], [["a"]], [["b"]])
        assert [score.probability for score in scores] == [1 / 3, 1 / 3]


OWN, ALIAS = "sk-planted-own-0123456789abcdef", "sk-planted-alias-fedcba9876543210"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (ALIAS, "[key]"),
        (ALIAS[::-1], "[key]"),
        (f"first {ALIAS[:24]} and then {ALIAS[24:]}", "first [key] and then 876543210"),
        (" ".join(ALIAS), "[key]"),
        (
            f"it ends with {ALIAS[-14:]}, it begins with sk-planted-alias",
            "it ends with [key], it begins with [key]",
        ),
        ("nine8765, dcba and planted alias trees", "nine8765, dcba and planted alias trees"),
    ],
)
def test_pieces_of_a_key_are_removed(said: str, kept: str) -> None:
    """A key is found reversed, with signs in between and in parts of twelve signs with a digit; shorter ones stay."""
    assert redacted(said, ALIAS) == kept


CHOICE = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}


def test_two_first_choices_are_a_fault() -> None:
    """Two different choices of the same index are no answer, since either could be meant."""
    reply = ServerReply({"choices": [CHOICE, {**CHOICE, "message": {"content": "b"}}]})

    with pytest.raises(Unanswered):
        assert reply.answers


@pytest.mark.parametrize("count", [2**40, -4, 10**30, True, "7"])
def test_a_count_beyond_any_context_window_is_not_believed(count: object) -> None:
    """Usage that no model can have is replaced by an estimate from the text."""
    usage = {"prompt_tokens": count, "completion_tokens": count}
    found = ServerReply({"choices": [CHOICE], "usage": usage}, "a b c").usage

    assert 0 < found.prompt_tokens < 100
    assert 0 < found.completion_tokens < 100


def call(name: str) -> CallRecord:
    return CallRecord(name, "critic", "tiny", {"claim": name}, {"probability": 0.5}, 3, 1, 0.25, "now")


def test_a_torn_line_is_no_answer(tmp_path: Path) -> None:
    """Answers behind a lock lie beside the file; a line that a killed process wrote in part is left out; all others come home
    with the next command that writes."""
    database = tmp_path / "kb.db"
    with KnowledgeBase(database) as kb, closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        kb.record_calls([call("first")])
        assert kb.calls(["first"]) == {"first": call("first")}
        with spill_path(database).open("ab") as stream:
            stream.write(spill_path(database).read_bytes()[:25])
        kb.record_calls([call("second")])
        assert [record.request_id for record in spilled(database)] == ["first", "second"]
        other.execute("ROLLBACK")
    with KnowledgeBase(database) as kb:
        assert set(kb.calls()) == {"first", "second"}
    assert not spill_path(database).exists()


ATTEMPTS = """
import json, socket, sys
from hapax.llm_oracle import egress

class Reached(Exception):
    pass

def stop(event, arguments):  # runs behind the guard, before anything is sent
    if event in ("socket.getaddrinfo", "socket.connect"):
        raise Reached

permitted, hosts = map(json.loads, sys.argv[1:])
egress.permit(*permitted)
egress.guard()
sys.addaudithook(stop)
reached = []
for host in hosts:
    own = socket.socket().connect if host[0].isdigit() else socket.create_connection
    for connect in (socket.create_connection, own):
        try:
            connect((host, 443))
        except Reached:
            reached.append(host)
        except PermissionError:
            pass
print(json.dumps(reached))
"""


def reached(permitted: Sequence[str], hosts: Sequence[str]) -> set[str]:
    """The hosts that a guarded process may reach, by the resolver or by the address alone."""
    command = [sys.executable, "-c", ATTEMPTS, json.dumps(permitted), json.dumps(hosts)]
    root = Path(__file__).parents[3]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True, cwd=root)
    return set(json.loads(ended.stdout))


def test_a_guarded_process_reaches_named_hosts_alone() -> None:
    """Names that are permitted and those below them are looked up, as is this machine; no other name is."""
    hosts = ["models.example", "eu.models.example", "notmodels.example", "telemetry.example", "localhost", "127.0.0.1"]

    assert reached(["models.example"], hosts) == {"models.example", "eu.models.example", "localhost", "127.0.0.1"}


def test_addresses_are_guarded_without_names() -> None:
    """Where no name is permitted, an address is reached only if it is permitted itself."""
    assert reached(["192.0.2.1"], ["192.0.2.1", "192.0.2.2", "::1"]) == {"192.0.2.1", "::1"}
    assert reached([], ["192.0.2.1"]) == set()


def test_a_reservation_waits_for_those_under_way() -> None:
    """Tokens that were reserved and not used are free again once the request has ended."""
    ledger = Ledger(Budget(max_tokens=100))
    account = Account(ledger, "critic", None)

    first = account.reserve(Usage(0, 80))
    assert first is not None
    assert account.reserve(Usage(0, 80)) is None
    first.settle(Usage(0, 10))
    second = account.reserve(Usage(0, 80))
    assert second is not None
    second.settle(None)

    assert ledger.used == CallStatistics(1, 0, 0, 10, None)
    with pytest.raises(BudgetReached):
        account.reserve(Usage(0, 91))
    with pytest.raises(BudgetReached):  # smaller ones do not overtake
        account.reserve(Usage(0, 1))


def test_concurrency_adapts() -> None:
    """Twice as many at a time each round until a refusal, then one more after 25 successes; a refusal takes a quarter,
    once per cool-down, and never the last one."""
    now = [0.0]
    concurrency = Concurrency(14, lambda: now[0])
    for expected in (8, 14):
        for _ in range(int(concurrency.allowed)):
            concurrency.succeeded()
        assert concurrency.allowed == expected

    concurrency.refused()
    concurrency.refused()
    assert concurrency.allowed == 10.5
    assert concurrency.pause == 0
    for _ in range(50):
        concurrency.succeeded()
    assert concurrency.allowed == pytest.approx(12.5)

    for _ in range(40):
        now[0] += 10
        concurrency.refused(5.0)
    assert concurrency.allowed == 1
    assert concurrency.pause == 5.0
