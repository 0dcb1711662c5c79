"""A search on a real Ray cluster of several processes, killed by SIGKILL where it hurts: the workers, and the search."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer, Unusable
from served import is_judging, is_listing, models_file, prompt_of

import hapax
from tools.comparison import differences

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).parents[2]
AIRPORTS = ROOT / "docs" / "examples" / "airports"
WORKERS = 3
SECONDS = 0.05
"""The time of a request, so that kills meet requests in flight."""
AT_ONCE = 6
"""Requests that the server may be answering, which a kill may lose."""
NAMES = ["alder", "birch", "cedar", "dogwood", "elm", "fir", "gorse", "hazel"]
CHOSEN = ("ore_of_an_alloy", "expert", "driving_age", "currency", "scratching", "fallen_before_invention")


@dataclass
class Searches:
    """Searches of six shipped rules on a server that notes the lists and verdicts it is asked for."""

    fake: FakeServer
    folder: Path
    asked: list[str] = field(default_factory=list)

    def note(self, number: int, asked: Asked) -> None:
        if is_listing(asked) or (is_judging(asked) and "Paris" not in prompt_of(asked)):  # others are probes
            self.asked.append(json.dumps(asked.body, sort_keys=True))
        time.sleep(SECONDS)

    @contextmanager
    def process(self, database: Path, *executor: str) -> Iterator[subprocess.Popen[str]]:
        """The process of a search; the requests of searches before it are forgotten."""
        models = ("-m", "openai:small", "--likelihood", "frequency", "--aliases", str(self.folder / "models.yaml"))
        sizes = ("--profile", "hapax", "--beam", "3", "--calls", "1", "--no-progress")
        rules = [word for name in CHOSEN for word in ("--rule", name)]
        command = [sys.executable, "cli.py", "search", *rules, *models, *sizes, "--db", str(database), *executor]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def on_ray(self, folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
        return self.process(folder / "kb.db", "--executor", "ray", "--workers", str(WORKERS))

    def lost(self) -> int:
        """Number of requests that were sent again."""
        return len(self.asked) - len(set(self.asked))

    def wait_for(self, count: int, process: subprocess.Popen[str]) -> None:
        while len(self.asked) < count and process.poll() is None:
            time.sleep(SECONDS)


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searches]:
    """The server, and in `alone.db` the search in one process."""
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("alone")
    with FakeServer({"defaults": {"generate": NAMES}}) as fake:
        models_file(folder, fake, logprobs="none", completion=False, max_concurrency=AT_ONCE, revision="1")
        found = Searches(fake, folder)
        fake.misbehave = found.note
        with found.process(folder / "alone.db") as process:
            finished(process)
        yield found


@pytest.fixture
def places(searches: Searches) -> list[int]:
    """Places in the order of all requests, none at their very end."""
    with hapax.KnowledgeBase(searches.folder / "alone.db", read_only=True) as kb:
        requests = len([call for call in kb.calls().values() if call.role in ("knowledge", "critic")])
    draw = random.Random(1)
    searches.asked.clear()
    return sorted(draw.randrange(requests // 20, requests * 8 // 10) for _ in range(6))


def finished(process: subprocess.Popen[str]) -> str:
    _, told = process.communicate(timeout=240)
    assert process.returncode == 0, told
    return told


def is_whole(searches: Searches, folder: Path) -> bool:
    """True if no row differs from the search in one process, and no shard is left."""
    assert not (folder / "kb.db-shards").exists()
    return sum(differences(searches.folder / "alone.db", folder / "kb.db").values()) == 0


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


def at_work(process: subprocess.Popen[str], *kinds: str) -> list[int]:
    """The workers (`Owner`) and walks of the search."""
    names = tuple(f"ray::{kind}" for kind in kinds or ("Owner", "walk"))
    return sorted(number for number, command in below(process.pid).items() if command.startswith(names))


@pytest.mark.usefixtures("places")
def test_several_processes_find_what_one_does(searches: Searches, tmp_path: Path) -> None:
    """On Ray no row differs, every request reaches a model once, and the cluster and its workers are told."""
    with searches.on_ray(tmp_path) as process:
        told = finished(process)

    assert f"Starting a Ray cluster on this machine with {WORKERS} workers\n" in told
    assert "RAY_BACKEND_LOG_LEVEL" not in told
    assert searches.lost() == 0
    assert is_whole(searches, tmp_path)


def test_killed_workers_change_nothing(searches: Searches, tmp_path: Path, places: list[int]) -> None:
    """Workers and walks killed at random places: no row differs, and no answered request is sent again."""
    killed, draw = Counter[str](), random.Random(2)
    with searches.on_ray(tmp_path) as process:
        for number, place in enumerate(places):
            searches.wait_for(place, process)
            kind = ("Owner", "walk")[number % 2]
            if alive := at_work(process, kind):
                os.kill(draw.choice(alive), signal.SIGKILL)
                killed[kind] += 1
        finished(process)

    assert killed["Owner"] >= 2
    assert searches.lost() <= AT_ONCE * killed["Owner"]
    assert is_whole(searches, tmp_path)


def test_a_killed_search_goes_on(searches: Searches, tmp_path: Path, places: list[int]) -> None:
    """The searching process killed three times: its workers end with it, and the last run ends as an undisturbed one."""
    for place in places[::2]:
        with searches.on_ray(tmp_path) as process:
            searches.wait_for(place, process)
            begun = at_work(process)
            process.kill()
            process.wait()
        end = time.monotonic() + 60
        while [number for number in begun if Path(f"/proc/{number}").exists()] and time.monotonic() < end:
            time.sleep(0.1)
        assert not [number for number in begun if Path(f"/proc/{number}").exists()]
    with searches.on_ray(tmp_path) as process:
        finished(process)

    assert searches.lost() <= 3 * AT_ONCE
    assert is_whole(searches, tmp_path)


def hapax_search(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`hapax search` in a process of its own."""
    command = [sys.executable, "cli.py", "search", *map(str, arguments), "--no-progress"]
    given = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=300)


def test_a_chain_of_critics_decides_alike_on_ray(tmp_path: Path) -> None:
    """Workers on Ray ask the same critics in turn: every row of the knowledge base is that of one process."""
    pytest.importorskip("ray")
    header, *lines = (AIRPORTS / "airports.csv").read_text("utf-8").splitlines()
    (tmp_path / "airports.csv").write_text("\n".join((header, *lines[::2], "")), encoding="utf-8")
    mapping = (AIRPORTS / "airports.yaml").read_text("utf-8").replace("closedness: closed\n", "closedness: open\n")
    (tmp_path / "half.yaml").write_text(mapping, encoding="utf-8")
    critics = f"reference:{tmp_path / 'half.yaml'},simulated"
    models = ("-m", f"reference:{AIRPORTS / 'airports.yaml'}", "--critic", critics, "--likelihood", "frequency")
    for name, executor in (("alone", ()), ("spread", ("--executor", "ray", "--workers", "2"))):
        ended = hapax_search(AIRPORTS / "airports.rules", *models, "--db", tmp_path / f"{name}.db", *executor)
        assert ended.returncode == 0, ended.stderr

    assert sum(differences(tmp_path / "alone.db", tmp_path / "spread.db").values()) == 0


@pytest.mark.parametrize(("limit", "most"), [("--max-calls", 25), ("--max-tokens", 1500)])
def test_a_limit_holds_over_the_workers_of_ray(tmp_path: Path, limit: str, most: int) -> None:
    """Two workers together send no more than the limit, unusable replies included, and the ledger has each request."""
    pytest.importorskip("ray")
    rules, db = tmp_path / "a.rules", tmp_path / "kb.db"
    rules.write_text(RULES, encoding="utf-8")
    with FakeServer(WORLD) as fake:
        aliases = models_file(tmp_path, fake, logprobs="none", completion=False)
        fake.misbehave = unusable = Unusable()
        models = ("-m", "openai:small", "--likelihood", "frequency", "--aliases", aliases, "--profile", "hapax")
        result = hapax_search(rules, *models, "--executor", "ray", "--workers", "2", "--db", db, limit, most)
        sent, charged = len(fake.asked), unusable.tokens
    with hapax.KnowledgeBase(db, read_only=True) as kb:
        spending = hapax.ledger(kb).spending

    assert f"would exceed the limit of {most} on {limit.removeprefix('--max-')}; so far" in result.stderr
    assert " 0 walks" not in result.stderr
    assert sent > 10
    assert (charged if limit == "--max-tokens" else sent) <= most
    assert sum(row.requests for row in spending) == sent
    assert sum(row.prompt_tokens + row.completion_tokens for row in spending) == charged


def test_ray_is_started_without_reports_of_its_use(tmp_path: Path) -> None:
    """Before Ray is imported, its reports to its makers are off, unless the user has chosen otherwise."""
    (tmp_path / "ray.py").write_text("import os\nraise SystemExit('it is ' + os.environ['RAY_USAGE_STATS_ENABLED'])\n")
    for chosen, expected in (({}, "0"), ({"RAY_USAGE_STATS_ENABLED": "1"}, "1")):
        where = ("--executor", "ray", "--db", tmp_path / "kb.db")
        ended = hapax_search("-m", "simulated", *where, PYTHONPATH=str(tmp_path), **chosen)

        assert f"it is {expected}" in ended.stderr, ended
