"""A running search seen, paused, continued and ended from the browser."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser_fixture import ADDRESS, browsing
from cli_fixture import EVERY_END, invoke
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer
from starlette.testclient import TestClient

from hapax.api.browser.app import Browser
from hapax.kb.records import RunRecord
from hapax.kb.running import RunFiles, RunState, Wish
from hapax.kb.store import KnowledgeBase

PAUSED_AT = 4
"""Number of the request during which somebody presses a button."""
SECONDS = 30.0


@contextmanager
def browsed(database: Path, control: bool = True) -> Iterator[TestClient]:
    with browsing(Browser(database, control=control), Origin=ADDRESS) as client:
        yield client


def run_of(database: Path) -> str:
    with KnowledgeBase(database, read_only=True) as kb:
        return kb.runs()[-1].id


def waited(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


class Search(threading.Thread):
    """A search through a server, in a thread, during whose fourth request of a run somebody presses a button."""

    def __init__(self, folder: Path, server: FakeServer, wish: Wish | None) -> None:
        super().__init__(daemon=True)
        self.database, self.server, self.wish = folder / "kb.db", server, wish
        (folder / "money.rules").write_text(RULES, "utf-8")
        server.misbehave = self.press
        model = f"openai:tiny@{server.url}"
        roles = ("-m", model, "--critic", model, "--likelihood", "frequency", "--evaluator", "frequency")
        self.command = ("search", folder / "money.rules", *roles, "--db", self.database, "--no-progress", *EVERY_END)
        self.pressed = 0

    def press(self, number: int, asked: Asked) -> None:
        if self.wish and self.database.exists():
            with KnowledgeBase(self.database, read_only=True) as kb:
                runs = kb.runs()
            if runs and runs[-1].status == "running":
                self.pressed += 1
                if self.pressed == PAUSED_AT:
                    RunFiles(self.database, runs[-1].id).ask(self.wish)
                    time.sleep(0.3)  # longer than a search needs to look

    def run(self) -> None:
        self.result = invoke(*self.command)

    def texts(self) -> set[str]:
        with KnowledgeBase(self.database, read_only=True) as kb:
            return {statement.text for statement in kb.statements()}


def requests(server: FakeServer) -> Counter[str]:
    """The requests with their numbers."""
    return Counter(json.dumps([asked.path, asked.body], sort_keys=True) for asked in server.asked)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], Counter[str]]:
    """The statements of an undisturbed search, and its requests."""
    with FakeServer(WORLD) as server:
        search = Search(tmp_path_factory.mktemp("whole"), server, None)
        search.run()
        assert search.result.exit_code == 0, search.result.output
        return search.texts(), requests(server)


def test_a_search_pauses_and_goes_on_from_the_browser(tmp_path: Path, whole: tuple[set[str], Counter[str]]) -> None:
    """While it is paused nothing is asked and its page says so; then it ends as if undisturbed, and paid nothing twice."""
    with FakeServer(WORLD) as server:
        search = Search(tmp_path, server, Wish.PAUSE)
        search.start()
        waited(lambda: search.pressed >= PAUSED_AT)
        run_id = run_of(search.database)
        files = RunFiles(search.database, run_id)
        waited(lambda: (state := files.read()) is not None and state.is_paused)
        asked = len(server.asked)
        with browsed(search.database) as client:
            page = client.get(f"/run/{run_id}").text
            figures = client.get(f"/run/{run_id}?format=json").json()
            time.sleep(0.5)
            while_paused = len(server.asked)
            answer = client.post(f"/run/{run_id}", data={"wish": "go on"}, follow_redirects=False)
        search.join(SECONDS)
        made = requests(server)

    assert "Paused." in page
    assert "Go on" in page
    assert figures["state"]["sent"]["knowledge"]["calls"] > 0
    assert while_paused == asked < sum(whole[1].values())
    assert answer.status_code == 303
    assert search.result.exit_code == 0, search.result.output
    assert search.texts() == whole[0]
    assert made == whole[1]
    assert list(tmp_path.glob("kb.db-*-????????????????")) == []


def test_a_search_that_the_browser_ends_goes_on_by_its_command(
    tmp_path: Path, whole: tuple[set[str], Counter[str]]
) -> None:
    """It ends as by Ctrl-C when what is under way is answered; the same command asks for the rest alone."""
    with FakeServer(WORLD) as server:
        search = Search(tmp_path, server, Wish.END)
        search.run()
        ended, asked = search.result, len(server.asked)
        search.wish = None
        search.run()
        made = requests(server)

    assert ended.exit_code == 130, ended.output
    assert asked < sum(whole[1].values())
    assert search.result.exit_code == 0, search.result.output
    assert search.texts() == whole[0]
    assert made == whole[1]


def test_a_search_is_left_alone_without_permission(tmp_path: Path) -> None:
    """Without --control, or from another site, no wish is written; a run that has ended cannot be asked."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("r", "search", {}, "f", "2026-01-01T00:00:00+00:00"))
    files = RunFiles(tmp_path / "kb.db", "r")
    with browsed(tmp_path / "kb.db", control=False) as client:
        refused = client.post("/run/r", data={"wish": "pause"})
    with browsed(tmp_path / "kb.db") as client:
        foreign = client.post("/run/r", data={"wish": "pause"}, headers={"Origin": "http://evil.example"})
        silent = client.post("/run/r", data={"wish": "pause"})
        unknown = client.post("/run/r", data={"wish": "explode"})

    assert (refused.status_code, foreign.status_code, silent.status_code, unknown.status_code) == (404, 403, 400, 400)
    assert "is not running" in silent.text
    assert files.wish() is None


def test_a_search_whose_process_was_killed_is_named(tmp_path: Path) -> None:
    """The page of a run whose process is gone says so, whatever its record says, and offers no button."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("r", "search", {}, "f", "2026-01-01T00:00:00+00:00"))
    RunFiles(tmp_path / "kb.db", "r").write(RunState(process.pid, socket.gethostname(), time.time(), 1.0))
    with browsed(tmp_path / "kb.db") as client:
        page = client.get("/run/r").text

    assert "has ended before its end" in page
    assert "<button name" not in page
    assert "data-running" not in page


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"process": -1}', "\x00", '{"process": "1", "host": 2}'])
def test_a_state_that_another_program_wrote_is_none(tmp_path: Path, text: str) -> None:
    """A file that no search has written shows nothing and breaks nothing."""
    files = RunFiles(tmp_path / "kb.db", "../../r")
    files.write(RunState(1, "elsewhere", 0.0, 1.0))
    (written,) = tmp_path.glob("kb.db-running-*")
    written.write_text(text, "utf-8")

    assert files.read() is None
