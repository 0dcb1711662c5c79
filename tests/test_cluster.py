"""A search spread over workers, in one process: what each part of `engine/cluster` promises without any Ray."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from cluster_fixture import SETTINGS, Threads, Walks, alone, answered, asked, chain_job, noted, opening, shipped, spread
from hypothesis import given
from hypothesis import strategies as st
from openai_fake import FakeServer

from benchmarks.common import SHIPPED, chosen_rules
from benchmarks.comparison import differences
from hapax.engine.cluster.gathering import GATHERED, LOCK, Gathering, locked
from hapax.engine.cluster.owner import PLACE, Opening, Owner, Post
from hapax.engine.cluster.routing import Nothing, owner_of, routed
from hapax.engine.cluster.running import Spread, search_spread
from hapax.engine.cluster.walking import Ahead, Walking
from hapax.engine.search.job import SearchJob
from hapax.engine.search.oracle import model_name
from hapax.engine.search.search import search
from hapax.grammar.errors import HapaxError
from hapax.kb import asking, rows
from hapax.kb.records import AttemptRecord, CallRecord, FactRecord, Source, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends import openai_aliases
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.backends.openai_transport import Limits, RetryPolicy
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import KNOWLEDGE, Models
from hapax.llm_oracle.registry import OpeningOptions

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The knowledge base of the search in one process."""
    return alone(tmp_path_factory.mktemp("alone"))


def runs(database: Path) -> list[Any]:
    with KnowledgeBase(database, read_only=True) as kb:
        return [(run.id, run.status, run.summary) for run in kb.runs()]


def call(text: str, model: str = "m") -> CallRecord:
    return CallRecord(content_id("call", text), "critic", model, {"claim": text}, {"probability": 0.5}, created="2026")


def test_a_spread_search_ends_as_one_in_one_process(undisturbed: Path, tmp_path: Path) -> None:
    """Every row and the run's report are the same, no request reaches a model twice, and no shard is left."""
    report, cluster = spread(tmp_path, Threads(3))

    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0
    assert runs(tmp_path / "spread.db") == runs(undisturbed)
    assert max(Counter(asked(tmp_path)).values()) == 1
    assert len(asked(tmp_path)) == report.statistics[KNOWLEDGE].calls + sum(
        statistics.calls for role, statistics in report.statistics.items() if role in ("critic", "likelihood")
    )
    assert (cluster.walks_failed, cluster.kept) == (0, 0)
    assert cluster.walks > 0
    assert not (tmp_path / "shards").exists()


def test_a_chain_of_critics_decides_alike_on_workers(tmp_path: Path) -> None:
    """Workers ask the same critics in turn: the facts, the decisions and the critics that they name are the same."""
    job, _ = chain_job(tmp_path, "alone")
    with job.kb:
        search(job)
        judges = {row[0].partition("/")[0] for row in job.kb.query("SELECT model FROM assessments WHERE basis IS NULL")}
        sources = job.kb.query("SELECT count(*) FROM assessments WHERE basis IS NOT NULL")[0][0]
    spread_job, opened = chain_job(tmp_path, "spread")
    with spread_job.kb:
        search_spread(spread_job, Spread(Threads(3), opened, tmp_path / "shards"))

    assert sources > 0
    assert any(judge.startswith("simulated") for judge in judges)
    assert sum(differences(tmp_path / "alone.db", tmp_path / "spread.db").values()) == 0


def test_walks_that_fail_cost_time_alone(undisturbed: Path, tmp_path: Path) -> None:
    """The search asks itself what a failed walk did not, and the report says why it failed."""
    _, cluster = spread(tmp_path, Threads(2, fails="the walker has no legs"))

    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0
    assert (cluster.walks, cluster.faults) == (0, ("the walker has no legs",))
    assert cluster.walks_failed > 0


def test_a_budget_is_kept_by_the_whole_cluster(tmp_path: Path) -> None:
    """With a budget nothing is asked ahead, so no more requests reach the model than it allows; the rest resumes."""
    report, cluster = spread(tmp_path, Threads(2), budget=Budget(max_calls=100))

    assert report.status == "budget"
    assert cluster.walks == 0
    sent = sum(statistics.calls for role, statistics in report.statistics.items() if role != "evaluator")
    assert len(asked(tmp_path)) == sent <= 100


class Stopping(Threads):
    """A cluster that fails for good once a worker was asked so often."""

    asks = 0

    def begin(self, number: int, method: str, *arguments: Any) -> Any:
        self.asks += method == "ask"
        if self.asks > 150 and method == "ask":
            raise KeyboardInterrupt
        return super().begin(number, method, *arguments)


def test_an_interrupted_search_goes_on_from_what_workers_answered(undisturbed: Path, tmp_path: Path) -> None:
    """The next run, with another number of workers, takes their shards in and asks none of it again."""
    with pytest.raises(KeyboardInterrupt):
        spread(tmp_path, Stopping(2))
    before = answered(tmp_path)
    first = len(asked(tmp_path))
    assert list((tmp_path / "shards").glob("shard-*.db"))

    spread(tmp_path, Threads(3))

    assert not before & set(asked(tmp_path)[first:])
    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0


def test_answers_that_nobody_gathered_are_taken_in(undisturbed: Path, tmp_path: Path) -> None:
    """Shards are enough: without the knowledge base and what was gathered, their answers are not asked for again."""
    with pytest.raises(KeyboardInterrupt):
        spread(tmp_path, Stopping(2))
    for path in (*tmp_path.glob("spread.db*"), *(tmp_path / "shards").glob(f"{GATHERED}*")):
        path.unlink()
    with KnowledgeBase(next((tmp_path / "shards").glob("shard-*.db"))) as shard:
        shard.add(rows.ATTEMPTS, [AttemptRecord("request 1", "critic", "tiny@1", "chat/completions", "2026-01-01")])
    before, first = answered(tmp_path), len(asked(tmp_path))

    _, cluster = spread(tmp_path, Threads(2))

    assert cluster.taken_in == len(before) > 0
    with KnowledgeBase(tmp_path / "spread.db", read_only=True) as kb:
        assert [attempt.id for attempt in kb.attempts()] == ["request 1"]
    assert not before & set(asked(tmp_path)[first:])
    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0


def test_a_worker_that_cannot_take_known_answers_ends_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the answers that were handed to it a worker would ask again, so its fault is the search's."""
    spread(tmp_path, Threads(2))

    def full(_: Owner, calls: Sequence[CallRecord]) -> None:
        assert calls
        raise HapaxError("no room")

    monkeypatch.setattr(Owner, "take_in", full)
    with pytest.raises(HapaxError, match="no room"):
        spread(tmp_path, Threads(2))


def test_an_answer_that_is_not_needed_is_kept(tmp_path: Path) -> None:
    """Answers for walks that the search did not need are not in the result; they stay in the folder for later searches."""
    with locked(tmp_path / "shards"), KnowledgeBase(tmp_path / "shards" / GATHERED) as pool:
        pool.record_calls([call("nobody asks this")])

    _, cluster = spread(tmp_path, Threads(2))

    assert cluster.kept == 1
    with KnowledgeBase(tmp_path / "shards" / GATHERED, read_only=True) as pool:
        assert list(pool.calls()) == [call("nobody asks this").request_id]
    with KnowledgeBase(tmp_path / "spread.db", read_only=True) as kb:
        assert call("nobody asks this").request_id not in kb.calls()


class Noting(Threads):
    """A cluster that notes what its walks are given."""

    ahead: Ahead

    def walkers(self, ahead: Ahead) -> Walks:
        self.ahead = ahead
        return super().walkers(ahead)


def test_walks_know_the_facts_that_users_gave_alone(tmp_path: Path) -> None:
    """An answer of an earlier run is no fact of a walk, which asks for it and so has it answered."""
    spread(tmp_path, Threads(1))
    with KnowledgeBase(tmp_path / "spread.db") as kb:
        kb.add_facts([FactRecord("is_ripe", ("pear",), (), Source.GIVEN)])
        assert any(fact.source is Source.MODEL for fact in kb.facts())
    cluster = Noting(1)
    spread(tmp_path, cluster)

    assert [fact.predicate for fact in cluster.ahead.given] == ["is_ripe"]


class Announcing(Threads):
    """A cluster that tells when it is asked first."""

    def __init__(self, worker_count: int) -> None:
        super().__init__(worker_count)
        self.is_asked = threading.Event()

    def begin(self, number: int, method: str, *arguments: Any) -> Any:
        if method == "ask":
            self.is_asked.set()
        return super().begin(number, method, *arguments)


def test_nobody_else_asks_while_walks_do(tmp_path: Path) -> None:
    """A second search of the same knowledge base waits for the first, and asks nothing that walks have asked."""
    cluster = Announcing(2)
    library, rules = shipped()

    def other() -> None:
        assert cluster.is_asked.wait(60)
        with KnowledgeBase(tmp_path / "spread.db") as kb:
            model = noted(tmp_path / "asked.log", Journal(kb))
            search(SearchJob(library, rules[::-1], kb, Models(model, model, model, FrequencyLikelihood()), SETTINGS))

    with ThreadPoolExecutor(1) as thread:
        beside = thread.submit(other)
        spread(tmp_path, cluster, seconds=0.01)
        beside.result()

    assert max(Counter(asked(tmp_path)).values()) == 1


def test_a_search_on_a_cluster_waits_for_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up behind another process that keeps asking for the same knowledge base."""
    monkeypatch.setattr(asking, "WAIT_SECONDS", 0.1)
    with KnowledgeBase(tmp_path / "spread.db") as kb, kb.asking(), ThreadPoolExecutor(1) as thread:
        searching = thread.submit(spread, tmp_path, Threads(1))
        with pytest.raises(HapaxError, match=r"spread\.db-asking"):
            searching.result()

    assert asked(tmp_path) == []


@contextmanager
def gathering(folder: Path, count: int = 2) -> Iterator[tuple[Threads, Gathering]]:
    """Workers, and who gathers from them, for a knowledge base that knows one answer of the model `m`.

    Another model of the run is the simulated one."""
    with KnowledgeBase(folder / "known.db") as kb:
        kb.record_calls([call("known"), call("another model's", "n")])
    cluster = Threads(count)
    with (
        locked(folder / "shards"),
        cluster.workers(opening(folder / "asked.log"), folder / "shards") as owners,
    ):
        simulated = model_name(noted(folder / "asked.log", Journal(Nothing())))
        yield cluster, Gathering(owners, folder / "shards", folder / "known.db", ["m", simulated])


def ended(folder: Path, dies_at: int, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Number of answers kept by a run that dies before this many changes to files at its end; None: it died."""
    steps = iter(range(dies_at))
    real = {name: getattr(Path, name) for name in ("unlink", "rename", "replace")}

    def step(name: str) -> Any:
        def does(path: Path, *more: Any, **options: Any) -> Any:
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return real[name](path, *more, **options)

        return does

    with gathering(folder) as (_, gathered):
        gathered.begin()
        with monkeypatch.context() as patched:
            for name in real:
                patched.setattr(Path, name, step(name))
            try:
                return gathered.end()
            except KeyboardInterrupt:
                return None


def test_a_search_killed_at_its_end_keeps_what_was_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it dies as it clears up, the next search finds the answers that this one did not need."""
    kept: int | None = None
    dies_at = 0
    while kept is None:
        folder = tmp_path / str(dies_at)
        (folder / "shards").mkdir(parents=True)
        with KnowledgeBase(folder / "shards" / GATHERED) as pool:
            pool.record_calls([call("nobody asks this")])

        kept = ended(folder, dies_at, monkeypatch)

        assert ended(folder, 1000, monkeypatch) == 1
        assert {path.name for path in (folder / "shards").iterdir()} == {GATHERED, LOCK, PLACE}
        with KnowledgeBase(folder / "shards" / GATHERED, read_only=True) as pool:
            assert list(pool.calls()) == [call("nobody asks this").request_id]
        dies_at += 1
    assert dies_at > 4


def test_what_was_answered_last_is_gathered_at_the_end(tmp_path: Path) -> None:
    """An answer that the knowledge base does not have yet is kept, although nothing was gathered since it came."""
    with gathering(tmp_path) as (cluster, gathered):
        gathered.begin()
        models = noted(tmp_path / "log", Journal(Nothing()))
        routed(Models(models, models, models, FrequencyLikelihood()), cluster).critic.probabilities(["A claim."])

        assert gathered.end() == 1


def shard_calls(owner: Owner) -> set[str]:
    return {call.request_id for call in owner.after(0, 1000)[0]}


def test_workers_learn_what_the_knowledge_base_knows(tmp_path: Path) -> None:
    """Before the first question each known answer of the run's models is in the shard of its own worker alone."""
    with gathering(tmp_path) as (cluster, gathered):
        gathered.begin()

        own = owner_of(call("known").request_id, 2)
        assert shard_calls(cluster.owners[own]) == {call("known").request_id}
        assert shard_calls(cluster.owners[1 - own]) == set()


def test_a_worker_without_its_shard_is_told_again(tmp_path: Path) -> None:
    """It says that it is too early to ask until it has what was known and what was gathered before."""
    with gathering(tmp_path, 1) as (cluster, gathered):
        gathered.begin()
        model = noted(tmp_path / "log", Journal(Nothing()))
        models = routed(Models(model, model, model, FrequencyLikelihood()), cluster)
        models.critic.probabilities(["A claim."])
        gathered.gather()
        for path in (tmp_path / "shards").glob("shard-*"):
            path.unlink()
        cluster.restart(0)

        assert not cluster.begin(0, "ask", "critic", ["A claim."]).result().seeded
        gathered.gather()

        assert gathered.restarted == 1
        assert cluster.begin(0, "ask", "critic", ["A claim."]).result().seeded
        assert len(asked(tmp_path)) == 1


def test_a_worker_repeats_requests_as_the_alias_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's model has the attempts of its alias, and its share of the requests at a time, as in one process."""
    monkeypatch.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.01))
    aliases = tmp_path / "models.yaml"
    with FakeServer(misbehave=lambda number, asked: (500, b"", {})) as fake:
        stated = {"logprobs": "none", "completion": False, "attempts": 3, "max_concurrency": 4}
        entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, **stated}
        aliases.write_text(json.dumps([entry]), encoding="utf-8")
        options = OpeningOptions(aliases=aliases)
        owner = Owner(
            Post(0, 2, tmp_path / "shards", "run"), Opening("openai:small", None, "frequency", "frequency", options)
        )

        assert "HTTP 500" in owner.identities().fault
        assert len(fake.asked) == 3
        assert [attempt.outcome for attempt in owner.attempts()] == 3 * ["error"]


def test_a_fault_of_a_worker_is_told_with_its_number(tmp_path: Path) -> None:
    """An error of a model, or of opening it, in a worker is an error of the search."""
    post = Post(0, 1, tmp_path, "run")
    script = tmp_path / "script.json"
    script.write_text("{}")
    owner = Owner(post, Opening(f"scripted:{script}", None, None, "frequency", opening(tmp_path / "log").options))
    owner.finish_seeding()

    assert "no answer" in owner.ask("critic", ["A claim."]).fault
    script.unlink()
    assert "cannot be read" in Owner(post, owner._opening).identities().fault


def test_a_failed_sending_is_repeated_by_one_thread_at_a_time(tmp_path: Path) -> None:
    """Five threads ask the same; the first one's sending fails: the next one alone sends it again, and no other."""
    owner = Owner(Post(0, 1, tmp_path, "run"), opening(tmp_path / "log"))
    count, sending, pause = 5, threading.Lock(), threading.Event()
    all_ask = threading.Barrier(count + 1)
    sent: list[list[str]] = []
    kept: set[str] = set()

    def answers(requests: Sequence[str]) -> list[str]:
        assert sending.acquire(blocking=False), "two send at a time"
        try:
            if missing := [text for text in requests if text not in kept]:
                sent.append(missing)
                pause.wait(0.1)  # in which the others find it being sent
                if len(sent) == 1:
                    raise HapaxError("The server is gone.")
                kept.update(missing)
            return [text.upper() for text in requests]
        finally:
            sending.release()

    def ask() -> Sequence[str]:
        all_ask.wait(60)
        return owner._answers(["1", "2", "1"], ["a", "b", "a"], (), answers)

    with ThreadPoolExecutor(count) as threads:
        ended = [threads.submit(ask) for _ in range(count)]
        all_ask.wait(60)
    faults = [future.exception() for future in ended]

    assert [str(fault) for fault in faults if fault] == ["The server is gone."]
    assert [future.result() for future in ended if not future.exception()] == [["A", "B", "A"]] * (count - 1)
    assert sent == [["a", "b"], ["a", "b"]]


def test_a_folder_serves_one_search_at_a_time(tmp_path: Path) -> None:
    """A second search with the same folder of shards is refused, and told what helps."""
    with locked(tmp_path), pytest.raises(HapaxError, match=r"another search.*--shards"), locked(tmp_path):
        pass


def test_a_folder_of_the_user_stays(tmp_path: Path) -> None:
    """Only a folder that a search made goes, be it one that was killed; whatever else lies there stays in any case."""
    with locked(tmp_path / "made" / "here"):
        (tmp_path / "made" / "here" / PLACE).touch()
        (tmp_path / "made" / "here" / "killed").touch()
    (tmp_path / "made" / "here" / "killed").unlink()
    with locked(tmp_path / "made" / "here"):
        pass
    assert not (tmp_path / "made" / "here").exists()

    (tmp_path / "own").mkdir()
    with locked(tmp_path / "own"):
        (tmp_path / "own" / PLACE).touch()
    assert [path.name for path in (tmp_path / "own").iterdir()] == [LOCK]


def test_a_lock_that_its_holder_deleted_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gets the lock of a file that the last holder has just deleted locks the file that is there now."""
    flock = fcntl.flock
    deleted: list[Any] = []

    def late(file: Any, operation: int) -> None:
        if not deleted:
            deleted.append(file)
            (tmp_path / "shards" / LOCK).unlink()
            (tmp_path / "shards").rmdir()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with (
        locked(tmp_path / "shards"),
        pytest.raises(HapaxError, match="another search"),
        locked(tmp_path / "shards"),
    ):
        pass
    assert not (tmp_path / "shards").exists()


def test_a_folder_that_cannot_be_locked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks, or a file in the folder's place, is not taken for another search."""
    (tmp_path / "file").touch()
    with pytest.raises(HapaxError, match=r"cannot be created and locked \(.+\)"), locked(tmp_path / "file"):
        pass

    def without(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with pytest.raises(HapaxError, match=r"No locks available.*--shards"), locked(tmp_path / "shards"):
        pass


def test_a_knowledge_base_in_memory_is_refused(tmp_path: Path) -> None:
    """Workers learn what it knows from its file."""
    library, rules = chosen_rules([SHIPPED], 1)
    opened = opening(tmp_path / "log")
    models = opened.open(Journal(Nothing()), 1)
    with KnowledgeBase() as kb, pytest.raises(HapaxError, match="in a file"):
        search_spread(SearchJob(library, rules, kb, models, SETTINGS), Spread(Threads(1), opened, tmp_path))


def test_a_worker_with_another_model_is_refused(tmp_path: Path) -> None:
    """Answers of two versions under one name would be mixed, so the search does not begin."""
    library, rules = chosen_rules([SHIPPED], 1)
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"defaults": {"generate": []}}))
    opened = Opening(f"scripted:{script}", None, None, "frequency", opening(tmp_path / "log").options)
    models = opening(tmp_path / "log").open(Journal(Nothing()), 1)
    with KnowledgeBase(tmp_path / "one.db") as kb, pytest.raises(HapaxError, match="Worker 0 opened"):
        search_spread(SearchJob(library, rules, kb, models, SETTINGS), Spread(Threads(1), opened, tmp_path / "s"))


@given(st.text(), st.integers(1, 100))
def test_every_request_has_one_owner(text: str, count: int) -> None:
    """It is the number of one of the workers."""
    assert 0 <= owner_of(content_id("call", text), count) < count


def test_every_process_names_the_same_owner() -> None:
    """Processes with other hash seeds send a request to the same worker."""
    numbers = [content_id("call", number) for number in range(100)]
    owners = [owner_of(number, 7) for number in numbers]
    code = "import sys; from hapax.engine.cluster.routing import owner_of; "
    code += "print([owner_of(number, 7) for number in sys.argv[1:]])"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code, *numbers]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
        assert json.loads(printed) == owners


def test_requests_are_spread_evenly() -> None:
    """No worker has much more than its share, or much less."""
    shares = Counter(owner_of(content_id("call", number), 8) for number in range(8000))
    assert len(shares) == 8
    assert max(shares.values()) < 1.2 * 1000
    assert min(shares.values()) > 0.8 * 1000


class Pocket:
    """Walkers that only note what they were given."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.given: list[tuple[str, ...]] = []

    def begin(self, names: Any) -> Any:
        self.given.append(tuple(names))
        return self

    def done(self) -> bool:
        return True

    def result(self) -> str:
        return ""


@given(st.integers(0, 40), st.integers(1, 5), st.integers(1, 8), st.integers(0, 40))
def test_walks_are_ahead_of_the_search(rules: int, count: int, together: int, reached: int) -> None:
    """Every rule behind those that the search has in hand is walked once, in order, and none before them."""
    names = [f"r{number}" for number in range(rules)]
    walkers = Pocket(count)
    walking = Walking(names, together, walkers)
    in_hand = names[:reached]
    if in_hand:
        walking.reached(in_hand)
    for _ in range(rules + 1):
        walking.advance()

    assert [name for walk in walkers.given for name in walk] == names[len(in_hand) :]
    assert all(len(walk) <= together for walk in walkers.given)


def test_limits_hold_for_all_workers_together() -> None:
    """Each worker has its part of concurrency and rates; more workers than requests at a time are refused."""
    assert Limits(16, 60.0, None).shared(4) == Limits(4, 15.0, None)
    with pytest.raises(HapaxError, match="fewer --workers"):
        Limits(2).shared(3)


def test_without_ray_the_command_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor that is not there is an error with its remedy, and no knowledge base is begun."""
    monkeypatch.setitem(sys.modules, "ray", None)
    database = tmp_path / "one.db"

    result = invoke("search", "-m", "simulated", "--executor", "ray", "--db", database)

    assert result.exit_code == 1
    assert "pip install 'hapax-kb[ray]'" in result.stderr
    assert not database.exists()


def test_a_queue_is_not_spread(tmp_path: Path) -> None:
    """--queue sends nothing, so that it does not go with an executor."""
    result = invoke("search", "--executor", "ray", "--queue", tmp_path / "q.jsonl")

    assert result.exit_code == 2
    assert "--queue" in result.stderr
