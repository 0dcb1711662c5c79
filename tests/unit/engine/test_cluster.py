"""A search spread over workers, in one process: equal results, nothing asked twice or lost, budgets kept, without any Ray."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cluster_fixture import (
    SETTINGS,
    Threads,
    alone,
    answered,
    asked,
    noted,
    opening,
    opening_at,
    shipped,
    spread,
)
from hypothesis import given
from hypothesis import strategies as st
from money_fixture import RULES, WORLD
from openai_fake import FakeServer, Unusable

import hapax
from hapax.engine.cluster.owner import PLACE, Allowance, Opening, Owner, Post
from hapax.engine.cluster.routing import Nothing, owner_of, routed
from hapax.engine.cluster.running import GATHERED, LOCK, Gathering, Spread, Walking, locked, search_spread
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.kb.records import ATTEMPTS, AttemptRecord, CallRecord, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends import openai_aliases
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.backends.openai_transport import Limits, RetryPolicy
from hapax.llm_oracle.budget import Budget, CallStatistics, Price
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import KNOWLEDGE, Models
from tools.comparison import differences


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.01))


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
        shard.add(ATTEMPTS, [AttemptRecord("request 1", "critic", "tiny@1", "chat/completions", "2026-01-01")])
    before, first = answered(tmp_path), len(asked(tmp_path))

    _, cluster = spread(tmp_path, Threads(2))

    assert cluster.taken_in == len(before) > 0
    with KnowledgeBase(tmp_path / "spread.db", read_only=True) as kb:
        assert [attempt.id for attempt in kb.attempts()] == ["request 1"]
    assert not before & set(asked(tmp_path)[first:])
    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0


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
        simulated = noted(folder / "asked.log", Journal(Nothing())).identity.title
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

        assert not cluster.begin(0, "ask", None, "critic", ["A claim."]).result().seeded
        gathered.gather()

        assert gathered.restarted == 1
        assert cluster.begin(0, "ask", None, "critic", ["A claim."]).result().seeded
        assert len(asked(tmp_path)) == 1


def test_a_folder_serves_one_search_at_a_time(tmp_path: Path) -> None:
    """A second search with the same folder of shards is refused, and told what helps."""
    with locked(tmp_path), pytest.raises(HapaxError, match=r"another search.*`shards`"), locked(tmp_path):
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


def test_a_worker_with_another_model_is_refused(tmp_path: Path) -> None:
    """Answers of two versions under one name would be mixed, so the search does not begin."""
    library, rules = shipped(1)
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"defaults": {"generate": []}}))
    opened = Opening(f"scripted:{script}", None, None, "frequency", opening(tmp_path / "log").options)
    models = opening(tmp_path / "log").open(Journal(Nothing()), 1)
    with KnowledgeBase(tmp_path / "one.db") as kb, pytest.raises(HapaxError, match="Worker 0 opened"):
        search_spread(SearchJob(library, rules, kb, models, SETTINGS), Spread(Threads(1), opened, tmp_path / "s"))


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
    with pytest.raises(HapaxError, match="fewer `workers`"):
        Limits(2).shared(3)


class OnePrice(dict[str, Price]):
    """The same price for each model."""

    def get(self, *_: object) -> Price:  # type: ignore[override]
        return Price(1e6, 1e6)


def spread_search(folder: Path, opening: Opening, budget: Budget | None = None) -> SearchReport:
    """A search on two workers, at a price of 1 for a token."""
    library = hapax.parse_rules(RULES)
    with KnowledgeBase(folder / "kb.db") as kb:
        journal = Journal(kb, budget)
        journal.prices = OnePrice()
        models = opening.open(journal, 1)
        job = SearchJob(library, library.rules, kb, models, SearchSettings(profile="hapax"), journal)
        return search_spread(job, Spread(Threads(2), opening, folder / "shards"))[0]


@pytest.mark.parametrize("budget", [Budget(max_calls=25), Budget(max_tokens=1500), Budget(max_cost=1500.0)])
def test_no_worker_sends_more_than_is_left(tmp_path: Path, budget: Budget) -> None:
    """A server that charges for unusable replies never charges more than the limit, and the ledger agrees with it."""
    with FakeServer(WORLD) as fake:
        opening = opening_at(fake, tmp_path)
        fake.misbehave = first = Unusable()
        report = spread_search(tmp_path, opening, budget)
        sent, used = len(fake.asked), first.tokens
        fake.misbehave = second = Unusable()
        whole = spread_search(tmp_path, opening)
        charged = used + second.tokens
        with KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
            spending = hapax.ledger(kb).spending
        count = len(fake.asked)

    assert (report.status, whole.status) == ("budget", "done")
    assert sum(statistics.calls for statistics in report.statistics.values()) >= sent - 2  # probes are no calls
    assert budget.exceeded(CallStatistics(sent, 0, used, 0, float(used))) is None
    assert sent > 10
    assert sum(row.requests for row in spending) == count
    assert sum(row.prompt_tokens + row.completion_tokens for row in spending) == charged
    assert sum(row.unusable for row in spending) > 3


def test_a_worker_that_died_has_used_a_part_of_its_allowance(tmp_path: Path) -> None:
    """Attempts of its ledger that were not reported count in the allowance of the call that is repeated."""
    with FakeServer(WORLD) as fake:
        opening, post = opening_at(fake, tmp_path), Post(0, 1, tmp_path / "shards", "run")
        claims = [f"Milk is in naan {number}." for number in range(8)]
        allowance = Allowance(Budget(max_calls=8), None, CallStatistics(0, 0, 0, 0, None))
        owner = Owner(post, opening)
        post.folder.mkdir()
        owner.finish_seeding()
        owner.ask(None, "critic", claims[:2])
        died = len(fake.asked)
        reply = Owner(post, opening).ask(allowance, "critic", claims)

    assert reply.spent is not None
    assert reply.spent.reached == ("calls", 8 - died)
    assert len(fake.asked) == reply.spent.used.calls == reply.spent.ledger.calls <= 8
    assert 2 <= sum(answer is not None for answer in reply.answers) < len(claims)
