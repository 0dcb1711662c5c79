"""A running search is seen, paused, continued and ended from the browser, and pays nothing twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer
from served import Served, serving

import hapax

ROOT = Path(hapax.__file__).resolve().parents[1]
PRESSED_AT = 4
"""Number of the request of a run during which something happens to the search."""
SECONDS = 30.0


def press(pages: Served, place: str, wish: str, origin: str = "") -> int:
    """The status of the answer to a pressed button."""
    sent = origin or f"http://{pages.host}:{pages.port}"
    return pages.ask(place, "POST", urlencode({"wish": wish}), Origin=sent).status


def waited(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def last_run(database: Path) -> str:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return kb.runs()[-1].id


def amid(database: Path, event: Callable[[str], Any]) -> Callable[[int, Asked], None]:
    """At the fourth request of a run the event happens, with the place of its page."""
    seen: list[int] = []

    def happen(number: int, _: Asked) -> None:
        with hapax.KnowledgeBase(database, read_only=True) as kb:
            runs = kb.runs()
        if runs:
            seen.append(number)
            if len(seen) == PRESSED_AT:
                event(f"/run/{runs[-1].id}")
                time.sleep(0.3)  # longer than a search needs to look

    return happen


def statements(database: Path) -> set[str]:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return {statement.text for statement in kb.statements()}


def requests(server: FakeServer) -> Counter[str]:
    return Counter(json.dumps([asked.path, asked.body], sort_keys=True) for asked in server.asked)


def command(folder: Path, server: FakeServer) -> tuple[str, ...]:
    (folder / "money.rules").write_text(RULES, "utf-8")
    model = f"openai:tiny@{server.url}"
    roles = ("-m", model, "--critic", model, "--likelihood", "frequency", "--evaluator", "frequency")
    return ("search", str(folder / "money.rules"), *roles, "--db", str(folder / "kb.db"), "--no-progress", *EVERY_END)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], Counter[str]]:
    """The statements of an undisturbed search, and its requests."""
    folder = tmp_path_factory.mktemp("whole")
    with FakeServer(WORLD) as server:
        result = invoke(*command(folder, server))
        assert result.exit_code == 0, result.output
        return statements(folder / "kb.db"), requests(server)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base without a run."""
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.add_facts(kb, "owns", [("ann", "tea")], hapax.parse_rules("given owns(Person, Thing)"))
    return tmp_path / "kb.db"


def test_a_search_pauses_and_goes_on_from_the_browser(database: Path, whole: tuple[set[str], Counter[str]]) -> None:
    """While it is paused nothing is asked and its page says so; then it ends as if undisturbed, and paid nothing twice."""
    results: list[Result] = []
    answers: list[int] = []
    with FakeServer(WORLD) as server, serving(database, "--control") as pages:
        server.misbehave = amid(database, lambda place: answers.append(press(pages, place, "pause")))
        words = command(database.parent, server)
        search = threading.Thread(target=lambda: results.append(invoke(*words)), daemon=True)
        search.start()
        waited(lambda: bool(answers))
        run = last_run(database)
        waited(lambda: "Paused." in pages.ask(f"/run/{run}").text)
        before = len(server.asked)
        time.sleep(0.5)
        while_paused = len(server.asked)
        state = json.loads(pages.ask(f"/run/{run}?format=json").text)["state"]
        answers.append(press(pages, f"/run/{run}", "go on"))
        search.join(SECONDS)

    assert answers == [303, 303]
    assert while_paused == before < sum(whole[1].values())
    assert state["sent"]["knowledge"]["calls"] > 0
    assert results[0].exit_code == 0, results[0].output
    assert (statements(database), requests(server)) == whole
    assert list(database.parent.glob("kb.db-*")) == []


def test_a_search_that_the_browser_ends_goes_on_by_its_command(
    database: Path, whole: tuple[set[str], Counter[str]]
) -> None:
    """It ends as by Ctrl-C when what is under way is answered; the same command asks for the rest alone."""
    with FakeServer(WORLD) as server, serving(database, "--control") as pages:
        server.misbehave = amid(database, lambda place: press(pages, place, "end"))
        words = command(database.parent, server)
        ended, asked = invoke(*words), len(server.asked)
        again = invoke(*words)

    assert ended.exit_code == 130, ended.output
    assert asked < sum(whole[1].values())
    assert again.exit_code == 0, again.output
    assert (statements(database), requests(server)) == whole


@pytest.mark.slow
def test_a_search_whose_process_was_killed_has_no_buttons(database: Path) -> None:
    """Its page says that it ended before its end; nobody may press without --control, and from another site never."""
    with FakeServer(WORLD) as server, serving(database, "--control") as pages, serving(database) as without:
        process: list[subprocess.Popen[bytes]] = []
        found: list[int] = []

        def kill(place: str) -> None:
            found.append(press(without, place, "pause"))
            found.append(press(pages, place, "pause", "http://evil.example"))
            found.append(press(pages, place, "explode"))
            process[0].kill()

        server.misbehave = amid(database, kill)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, str(ROOT / "cli.py"), *command(database.parent, server)]
        process.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        process[0].wait(SECONDS)
        place = f"/run/{last_run(database)}"
        page = pages.ask(place).text
        late = press(pages, place, "pause")

    assert found == [404, 403, 400]
    assert "has ended before its end" in page
    assert "<button name" not in page
    assert late == 400
