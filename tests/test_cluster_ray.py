"""A search on a real Ray cluster of several processes, killed by SIGKILL where it hurts: the workers, and the search."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cluster_fixture import Unusable, alone, answered, asked, chain_job, opening_at
from money_fixture import RULES, WORLD
from openai_fake import FakeServer

import hapax
from benchmarks.comparison import differences
from hapax.engine.cluster.routing import AT_ONCE
from hapax.engine.search.search import search
from hapax.kb.store import KnowledgeBase

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).parent.parent
WORKERS = 3
SECONDS = 0.05
"""The time of a batch, so that kills meet requests in flight."""

IN_FLIGHT = AT_ONCE
"""Requests of each worker that a kill may lose. It sends a model in its own process one call at a time, whoever asks: walks and
the search have up to `CALLS_AHEAD` more each waiting, which cost nothing. (To a server it sends as many calls as Ray lets
in, `ASKED_AT_ONCE`.)"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The knowledge base of the search in one process."""
    pytest.importorskip("ray")
    return alone(tmp_path_factory.mktemp("alone"))


def test_a_chain_of_critics_decides_alike_on_ray(tmp_path: Path) -> None:
    """Workers on Ray ask the same critics in turn: every row of the knowledge base is that of one process."""
    pytest.importorskip("ray")
    job, _ = chain_job(tmp_path, "alone")
    with job.kb:
        search(job)
    program = (
        f"import pathlib, cluster_fixture; cluster_fixture.chain_on_ray(pathlib.Path({str(tmp_path)!r}), {WORKERS})"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=240)

    assert sum(differences(tmp_path / "alone.db", tmp_path / "spread.db").values()) == 0


@contextmanager
def driver(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that searches on Ray."""
    program = f"import pathlib, cluster_fixture as one; print(one.on_ray(pathlib.Path({str(folder)!r}), {WORKERS}, {SECONDS}))"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finished(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    return output


def below(ancestor: int) -> dict[int, str]:
    """The processes that a process has begun, with their children: number and command line."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            commands[int(folder.name)] = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
            parents[int(folder.name)] = int((folder / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
    found = {ancestor}
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    return {number: commands[number] for number in found - {ancestor}}


def works(command: str, *kinds: str) -> bool:
    """True if a command line is that of a worker or a walk."""
    return command.startswith(tuple(f"ray::{kind}" for kind in kinds or ("Owner", "walk")))


def kill_one(process: subprocess.Popen[str], draw: random.Random, kind: str) -> bool:
    """Kill a worker (`Owner`) or a walk of the search; False: there was none."""
    alive = sorted(number for number, command in below(process.pid).items() if works(command, kind))
    if not alive:
        return False
    os.kill(draw.choice(alive), signal.SIGKILL)
    return True


def wait_for(count: int, folder: Path, process: subprocess.Popen[str]) -> None:
    while len(asked(folder)) < count and process.poll() is None:
        time.sleep(0.05)


def places(undisturbed: Path, draw: random.Random, count: int) -> list[int]:
    """So many places in the order of all requests, none at their very end."""
    requests = len((undisturbed.parent / "alone.log").read_text("ascii").split("\n"))
    return sorted(draw.randrange(requests // 20, requests * 8 // 10) for _ in range(count))


class Watch:
    """Answers given before a kill are not asked for again after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: list[tuple[int, set[str]]] = []

    def note(self) -> None:
        known = answered(self.folder)
        self.known.append((len(asked(self.folder)), known))

    @property
    def again(self) -> int:
        log = asked(self.folder)
        return sum(request_id in known for at, known in self.known for request_id in log[at:])

    @property
    def lost(self) -> int:
        return sum(Counter(asked(self.folder)).values()) - len(set(asked(self.folder)))


def test_several_processes_find_what_one_does(undisturbed: Path, tmp_path: Path) -> None:
    """On Ray no row differs, and every request reaches a model once."""
    with driver(tmp_path) as process:
        output = finished(process)

    assert f"workers={WORKERS}" in output
    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0
    assert Counter(asked(tmp_path)).most_common(1)[0][1] == 1
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_workers_change_nothing(undisturbed: Path, tmp_path: Path, seed: int) -> None:
    """Workers and walks killed at random places: no row differs, and no answered request is sent again."""
    draw, watch, killed = random.Random(seed), Watch(tmp_path), Counter[str]()
    with driver(tmp_path) as process:
        for number, place in enumerate(places(undisturbed, draw, 6)):
            wait_for(place, tmp_path, process)
            kind = ("Owner", "walk")[number % 2]
            killed[kind] += kill_one(process, draw, kind)
            watch.note()
        finished(process)

    assert killed["Owner"] >= 2
    assert watch.again == 0
    assert watch.lost <= IN_FLIGHT * killed["Owner"]
    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0


def test_a_killed_search_goes_on(undisturbed: Path, tmp_path: Path) -> None:
    """The searching process killed three times: its workers end with it, and the last run ends as an undisturbed one."""
    draw, watch = random.Random(3), Watch(tmp_path)
    for place in places(undisturbed, draw, 3):
        with driver(tmp_path) as process:
            wait_for(place, tmp_path, process)
            begun = [number for number, command in below(process.pid).items() if works(command)]
            process.kill()
            process.wait()
        end = time.monotonic() + 60
        while [number for number in begun if Path(f"/proc/{number}").exists()] and time.monotonic() < end:
            time.sleep(0.1)
        assert not [number for number in begun if Path(f"/proc/{number}").exists()]
        watch.note()
    with driver(tmp_path) as process:
        finished(process)

    assert watch.again == 0
    assert watch.lost <= 3 * WORKERS * IN_FLIGHT
    assert sum(differences(undisturbed, tmp_path / "spread.db").values()) == 0
    assert not (tmp_path / "shards").exists()


def test_a_search_on_ray_says_what_starts_and_nothing_of_ray(tmp_path: Path) -> None:
    """Standard error has the cluster and its workers, no log of Ray's own, and no walks where none were made."""
    pytest.importorskip("ray")
    rules = tmp_path / "a.rules"
    rules.write_text("is_in(Part A, Whole B) & has(Person X, Whole B) -> has_too(Person X, Part A)\n", encoding="utf-8")
    models = ("-m", "simulated", "--likelihood", "simulated", "--evaluator", "simulated", "--no-progress")
    ray = ("--executor", "ray", "--workers", "2", "--db", tmp_path / "kb.db")

    output = subprocess.run(
        [sys.executable, "cli.py", "search", rules, *models, *ray], cwd=ROOT, capture_output=True, text=True, check=True
    ).stderr

    assert "Starting a Ray cluster on this machine with 2 workers\n" in output
    assert "RAY_BACKEND_LOG_LEVEL" not in output
    assert " 0 walks" not in output


@pytest.mark.parametrize(("limit", "most"), [("--max-calls", 25), ("--max-tokens", 1500)])
def test_a_limit_holds_over_the_workers_of_ray(tmp_path: Path, limit: str, most: int) -> None:
    """Two workers together send no more than the limit, unusable replies included, and the ledger has each request."""
    pytest.importorskip("ray")
    rules, db = tmp_path / "a.rules", tmp_path / "kb.db"
    rules.write_text(RULES, encoding="utf-8")
    with FakeServer(WORLD) as fake:
        opening_at(fake, tmp_path)
        fake.misbehave = unusable = Unusable()
        models = ("-m", "openai:small", "--likelihood", "frequency", "--aliases", tmp_path / "models.yaml")
        ray = ("--executor", "ray", "--workers", "2", "--db", db, "--no-progress", "--profile", "hapax")
        result = subprocess.run(
            [sys.executable, "cli.py", "search", rules, *models, *ray, limit, str(most)],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        sent, charged = len(fake.asked), unusable.tokens
    with KnowledgeBase(db, read_only=True) as kb:
        spending = hapax.ledger(kb).spending

    assert f"would exceed the limit of {most} on {limit.removeprefix('--max-')}; so far" in result.stderr
    assert sent > 10
    assert (charged if limit == "--max-tokens" else sent) <= most
    assert sum(row.requests for row in spending) == sent
    assert sum(row.prompt_tokens + row.completion_tokens for row in spending) == charged


def test_ray_is_started_without_reports_of_its_use() -> None:
    """Before Ray is imported, its reports to its makers are off, unless the user has chosen otherwise."""
    shown = "import os; import hapax.engine.cluster.on_ray; print(os.environ['RAY_USAGE_STATS_ENABLED'])"
    for chosen, expected in (({}, "0"), ({"RAY_USAGE_STATS_ENABLED": "1"}, "1")):
        others = {name: value for name, value in os.environ.items() if name != "RAY_USAGE_STATS_ENABLED"}
        command = [sys.executable, "-c", shown]
        found = subprocess.run(command, env={**others, **chosen}, check=True, capture_output=True, text=True)

        assert found.stdout.strip() == expected
