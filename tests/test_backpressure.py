"""While the file takes no answers, sending stops, and answers wait in a file beside it until it takes them again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fault_harness import ROOT, TESTS, wait_until
from money_fixture import WORLD
from openai_fake import Asked, FakeServer
from test_oracle_openai import opened

from hapax.grammar.errors import HapaxError
from hapax.kb import connection as connection_module
from hapax.kb.records import CallRecord
from hapax.kb.spill import spill_path, spilled
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.openai_transport import Limits
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CriticScore, ModelIdentity

CLAIMS = [f"Milk is in naan {number}." for number in range(60)]
IN_FLIGHT = 4


def judge(database: str, url: str, place: str) -> list[CriticScore]:
    """Ask the server for all claims, at most `IN_FLIGHT` at a time."""
    fake: Any = SimpleNamespace(url=url, place=place)
    with KnowledgeBase(database) as kb:
        critic = opened(fake, limits=Limits(IN_FLIGHT)).critic()
        return JournaledCritic(critic, Journal(kb)).probabilities(CLAIMS)


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another connection's write lock."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=10)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def call(name: str) -> CallRecord:
    return CallRecord(
        name, "critic", "tiny", {"claim": name}, {"probability": 0.5, "text": "a\nb é"}, 3, 1, 0.25, "now"
    )


def stored(database: Path) -> set[str]:
    """Ids of the answers in the file itself."""
    with closing(sqlite3.connect(database)) as connection:
        return {name for (name,) in connection.execute("SELECT request_id FROM calls")}


def test_a_kill_behind_a_lock_costs_what_is_in_flight_at_most(tmp_path: Path) -> None:
    """Another connection locks the file amid a run, and the run is killed: all but `max_concurrency` answers are kept."""
    database = tmp_path / "kb.db"
    KnowledgeBase(database).close()
    other = sqlite3.connect(database, isolation_level=None, check_same_thread=False, timeout=10)
    asked: list[str] = []

    def lock_at_the_tenth(_: int, request: Asked) -> None:
        if "naan" not in json.dumps(request.body):
            return
        asked.append(str(request.body))
        if len(asked) == 10:
            other.execute("BEGIN IMMEDIATE")

    with FakeServer(WORLD) as fake:
        fake.misbehave = lock_at_the_tenth
        arguments = (str(database), fake.url, fake.place)
        script = f"import test_backpressure as here; here.judge(*{arguments!r})"
        path = os.pathsep.join([str(ROOT), str(TESTS)])
        process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
        wait_until(lambda: bool(spilled(database)) or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        other.execute("ROLLBACK")
        other.close()
        sent = len(asked)
        kept = stored(database) | {record.request_id for record in spilled(database)}
        assert 10 <= sent < len(CLAIMS)
        assert sent - len(kept) <= IN_FLIGHT

        scores = judge(str(database), fake.url, fake.place)

    assert len(scores) == len(CLAIMS) == len(stored(database))
    assert len(asked) == len(CLAIMS) + sent - len(kept)
    assert not spill_path(database).exists()


def test_votes_on_claims_that_are_not_stored_are_bounded_like_answers() -> None:
    """One vote of each claim is refused for a while: the other votes that wait for it stay within `max_concurrency`."""
    most, votes = 12, 10
    answered: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    stored_claims: set[str] = set()
    unstored: list[int] = []

    def one_vote_fails(_: int, request: Asked) -> tuple[int, Any, dict[str, str]] | None:
        body = json.dumps(request.body)
        claim = next((claim for claim in CLAIMS if claim in body), None)
        if claim is None:
            return None
        if request.body["seed"] == first_seed.setdefault(claim, request.body["seed"]) and refused[claim] < 3:
            refused[claim] += 1
            return 503, {"error": "down"}, {"Retry-After": "0"}
        answered[claim] += 1
        unstored.append(sum(answered[waiting] for waiting in {*answered} - stored_claims))
        return None

    first_seed: dict[str, int] = {}
    with FakeServer(WORLD, frozenset({"logprobs", "n", "systemone"})) as fake:
        critic = opened(fake, limits=Limits(most)).critic()
        fake.misbehave = one_vote_fails
        for group in critic.stream(CLAIMS[:12]):
            stored_claims |= {CLAIMS[position] for position, _ in group}

    assert stored_claims == {*CLAIMS[:12]}
    assert sum(answered.values()) == 12 * votes
    assert max(unstored) <= most


def test_answers_come_home_with_the_next_command(tmp_path: Path) -> None:
    """An answer behind a lock is on disk and found at once; whoever opens the file next for writing moves it there."""
    database = tmp_path / "kb.db"
    with KnowledgeBase(database) as kb, locked(database):
        kb.record_calls([call("first")])
        assert kb.calls(["first"]) == {"first": call("first")}
        assert stored(database) == set()
        with KnowledgeBase(database) as second:  # still locked
            assert set(second.calls()) == {"first"}
    assert spill_path(database).exists()
    with KnowledgeBase(database, read_only=True) as reader:
        assert set(reader.calls()) == {"first"}
    KnowledgeBase(database).close()

    assert stored(database) == {"first"}
    assert not spill_path(database).exists()


def test_a_torn_line_is_no_answer(tmp_path: Path) -> None:
    """A line that a process wrote in part when it was killed is left out; answers before and after it are read."""
    database = tmp_path / "kb.db"
    with KnowledgeBase(database) as kb, locked(database):
        kb.record_calls([call("first")])
        with spill_path(database).open("ab") as stream:
            stream.write(spill_path(database).read_bytes()[:25])
        kb.record_calls([call("second")])

        assert [record.request_id for record in spilled(database)] == ["first", "second"]


class InProcess:
    """A critic that does not stream; it counts the claims that it is asked, and locks the file at the first."""

    identity = ModelIdentity("local")

    def __init__(self, other: sqlite3.Connection) -> None:
        self.asked: list[str] = []
        self._other = other

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        if not self.asked:
            self._other.execute("BEGIN IMMEDIATE")
        self.asked += claims
        return [CriticScore(0.9) for _ in claims]


def test_no_batch_is_asked_while_answers_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without a server gets no second batch until the first is in the file; the message names the file beside."""
    monkeypatch.setattr(connection_module, "BUSY_SECONDS", 0.2)
    database = tmp_path / "kb.db"
    with KnowledgeBase(database) as kb, closing(sqlite3.connect(database, isolation_level=None)) as other:
        model = InProcess(other)
        critic = JournaledCritic(model, Journal(kb), batch_size=5)
        with pytest.raises(HapaxError, match=r"another process has been writing.*safe in kb\.db-answers"):
            critic.probabilities(CLAIMS)
        assert model.asked == CLAIMS[:5]
        other.execute("ROLLBACK")
        critic.probabilities(CLAIMS)

    assert model.asked == CLAIMS
    assert len(stored(database)) == len(CLAIMS)


def test_an_answer_that_fits_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file beside cannot be written either, the fault of the knowledge base is raised, and asking stops."""
    monkeypatch.setattr(connection_module, "BUSY_SECONDS", 0.2)
    database = tmp_path / "kb.db"
    spill_path(database).mkdir()
    with KnowledgeBase(database) as kb, closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HapaxError, match="another process has been writing"):
            kb.record_calls([call("first")])
