"""A search on a real Ray cluster of several processes, killed by SIGKILL where it hurts: the workers, and the search."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from tools.comparison import differences

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).parents[3]
AIRPORTS = ROOT / "docs" / "examples" / "airports"
WORKERS = 3
CHOSEN = ("ore_of_an_alloy", "expert", "driving_age", "currency", "scratching", "fallen_before_invention")
RULES = tuple(word for name in CHOSEN for word in ("--rule", name))
SEARCH = (*RULES, "-m", "simulated", "--likelihood", "frequency", "--beam", "40")


@contextmanager
def process(database: Path, *executor: str) -> Iterator[subprocess.Popen[str]]:
    """The process of a search of the shipped rules."""
    command = [sys.executable, "cli.py", "search", *SEARCH, "--no-progress", "--db", str(database), *executor]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def on_ray(folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    return process(folder / "kb.db", "--executor", "ray", "--workers", str(WORKERS))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The knowledge base of the search in one process."""
    pytest.importorskip("ray")
    database = tmp_path_factory.mktemp("alone") / "alone.db"
    with process(database) as started:
        finished(started)
    return database


def finished(started: subprocess.Popen[str]) -> str:
    _, told = started.communicate(timeout=240)
    assert started.returncode == 0, told
    return told


def is_whole(alone: Path, folder: Path) -> bool:
    """True if no row differs from the search in one process."""
    return sum(differences(alone, folder / "kb.db").values()) == 0


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


def at_work(started: subprocess.Popen[str]) -> list[int]:
    """The workers of the search."""
    return sorted(number for number, command in below(started.pid).items() if command.startswith("ray::RayWorker"))


def begun(started: subprocess.Popen[str]) -> list[int]:
    """The workers, once there are all of them."""
    while started.poll() is None and len(workers := at_work(started)) < WORKERS:
        time.sleep(0.05)
    return workers


def test_several_processes_find_what_one_does(alone: Path, tmp_path: Path) -> None:
    """On Ray no row differs, and the cluster and its workers are told."""
    with on_ray(tmp_path) as started:
        told = finished(started)

    assert f"Starting a Ray cluster on this machine with {WORKERS} workers\n" in told
    assert is_whole(alone, tmp_path)


def test_killed_workers_change_nothing(alone: Path, tmp_path: Path) -> None:
    """Workers killed at random times: no row differs."""
    killed, draw = 0, random.Random(2)
    with on_ray(tmp_path) as started:
        begun(started)
        while started.poll() is None and killed < 5:
            time.sleep(draw.random())
            for worker in at_work(started)[:1]:
                os.kill(worker, signal.SIGKILL)
                killed += 1
        finished(started)

    assert killed >= 2
    assert is_whole(alone, tmp_path)


def test_a_killed_search_goes_on(alone: Path, tmp_path: Path) -> None:
    """The searching process killed three times: its workers end with it, and the last run ends as an undisturbed one."""
    for seconds in (0.2, 1.0, 2.0):
        with on_ray(tmp_path) as started:
            workers = begun(started)
            time.sleep(seconds)
            started.kill()
            started.wait()
        end = time.monotonic() + 60
        while [number for number in workers if Path(f"/proc/{number}").exists()] and time.monotonic() < end:
            time.sleep(0.1)
        assert not [number for number in workers if Path(f"/proc/{number}").exists()]
    with on_ray(tmp_path) as started:
        finished(started)

    assert is_whole(alone, tmp_path)


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


def test_servers_are_asked_by_the_search_itself(tmp_path: Path) -> None:
    """With models on servers alone no cluster is started."""
    pytest.importorskip("ray")
    where = ("--executor", "ray", "--db", tmp_path / "kb.db")
    ended = hapax_search("-m", "openai:none@http://127.0.0.1:9", "--likelihood", "frequency", *where)

    assert "Starting a Ray cluster" not in ended.stderr


def test_ray_is_started_without_reports_of_its_use(tmp_path: Path) -> None:
    """Before Ray is imported, its reports to its makers are off, unless the user has chosen otherwise."""
    (tmp_path / "ray.py").write_text("import os\nraise SystemExit('it is ' + os.environ['RAY_USAGE_STATS_ENABLED'])\n")
    for chosen, expected in (({}, "0"), ({"RAY_USAGE_STATS_ENABLED": "1"}, "1")):
        where = ("--executor", "ray", "--db", tmp_path / "kb.db")
        ended = hapax_search("-m", "simulated", *where, PYTHONPATH=str(tmp_path), **chosen)

        assert f"it is {expected}" in ended.stderr, ended
