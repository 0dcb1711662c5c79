"""A running search is seen, paused, continued and ended from the browser, and pays nothing twice."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer

import hapax

ROOT = Path(hapax.__file__).resolve().parents[1]
PRESSED_AT = 4
"""Number of the request of a run during which something happens to the search."""
SECONDS = 30.0


class Pages:
    """The pages of a process of `hapax serve`."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.host, self.token = parts.netloc, parts.query.removeprefix("token=")

    def ask(self, place: str, wish: str = "", **headers: str) -> tuple[int, str]:
        """Status and text of a page, or of the answer to a pressed button."""
        method, body = ("POST", f"wish={wish}") if wish else ("GET", "")
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Origin": f"http://{self.host}",
            "Content-Type": "application/x-www-form-urlencoded",
            **headers,
        }
        with closing(http.client.HTTPConnection(self.host, timeout=SECONDS)) as connection:
            connection.request(method, place, body.replace(" ", "+"), sent)
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8")

    def state(self, run: str) -> dict[str, Any]:
        return json.loads(self.ask(f"/run/{run}?format=json")[1])["state"] or {}


@contextmanager
def serving(database: Path, *options: str) -> Iterator[Pages]:
    command = [sys.executable, "cli.py", "serve", "--db", str(database), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stderr is not None
        try:
            yield Pages(next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line))))
        finally:
            server.kill()


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
        server.misbehave = amid(database, lambda place: answers.append(pages.ask(place, "pause")[0]))
        words = command(database.parent, server)
        search = threading.Thread(target=lambda: results.append(invoke(*words)), daemon=True)
        search.start()
        waited(lambda: bool(answers))
        run = last_run(database)
        waited(lambda: "Paused." in pages.ask(f"/run/{run}")[1])
        before = len(server.asked)
        time.sleep(0.5)
        while_paused = len(server.asked)
        sent = pages.state(run)["sent"]["knowledge"]["calls"]
        answers.append(pages.ask(f"/run/{run}", "go on")[0])
        search.join(SECONDS)

    assert answers == [303, 303]
    assert while_paused == before < sum(whole[1].values())
    assert sent > 0
    assert results[0].exit_code == 0, results[0].output
    assert (statements(database), requests(server)) == whole
    assert list(database.parent.glob("kb.db-*")) == [database.with_name("kb.db-asking")]


def test_a_search_that_the_browser_ends_goes_on_by_its_command(
    database: Path, whole: tuple[set[str], Counter[str]]
) -> None:
    """It ends as by Ctrl-C when what is under way is answered; the same command asks for the rest alone."""
    with FakeServer(WORLD) as server, serving(database, "--control") as pages:
        server.misbehave = amid(database, lambda place: pages.ask(place, "end"))
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
            found.append(without.ask(place, "pause")[0])
            found.append(pages.ask(place, "pause", Origin="http://evil.example")[0])
            found.append(pages.ask(place, "explode")[0])
            process[0].kill()

        server.misbehave = amid(database, kill)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, str(ROOT / "cli.py"), *command(database.parent, server)]
        process.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        process[0].wait(SECONDS)
        place = f"/run/{last_run(database)}"
        page = pages.ask(place)[1]
        late = pages.ask(place, "pause")[0]

    assert found == [404, 403, 400]
    assert "has ended before its end" in page
    assert "<button name" not in page
    assert late == 400
