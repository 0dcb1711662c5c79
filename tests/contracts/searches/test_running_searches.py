"""A running search is seen in the browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer
from served import serving

import hapax

ROOT = Path(hapax.__file__).resolve().parents[1]
PRESSED_AT = 4
"""Number of the request of a run during which something happens to the search."""
SECONDS = 30.0


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

    return happen


def command(folder: Path, server: FakeServer) -> tuple[str, ...]:
    (folder / "money.rules").write_text(RULES, "utf-8")
    model = f"openai:tiny@{server.url}"
    roles = ("-m", model, "--critic", model, "--likelihood", "frequency", "--evaluator", "frequency")
    return ("search", str(folder / "money.rules"), *roles, "--db", str(folder / "kb.db"), "--no-progress", *EVERY_END)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base without a run."""
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.add_facts(kb, "owns", [("ann", "tea")], hapax.parse_rules("given owns(Person, Thing)"))
    return tmp_path / "kb.db"


def test_a_running_search_is_seen_in_the_browser(database: Path) -> None:
    """Its page says how far it is and what it has asked so far; once it has ended, its file is gone."""
    seen: list[str] = []
    states: list[dict[str, Any]] = []
    with FakeServer(WORLD) as server, serving(database) as pages:

        def look(place: str) -> None:
            seen.append(pages.ask(place).text)
            states.append(json.loads(pages.ask(f"{place}?format=json").text)["state"])

        server.misbehave = amid(database, look)
        result = invoke(*command(database.parent, server))
        page = pages.ask(f"/run/{last_run(database)}").text

    assert result.exit_code == 0, result.output
    assert "<strong>Running</strong>, rule" in seen[0]
    assert (states[0]["process"], states[0]["rules"]) == (
        os.getpid(),
        seen[0].partition("</strong>, ")[2].partition(".")[0],
    )
    assert "<strong>Running</strong>" not in page
    assert list(database.parent.glob("kb.db-*")) == []


@pytest.mark.slow
def test_a_search_whose_process_was_killed_is_said_to_have_ended(database: Path) -> None:
    """Its page says that it ended before its end."""
    with FakeServer(WORLD) as server, serving(database) as pages:
        process: list[subprocess.Popen[bytes]] = []
        server.misbehave = amid(database, lambda _: process[0].kill())
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, str(ROOT / "cli.py"), *command(database.parent, server)]
        process.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        process[0].wait(SECONDS)
        page = pages.ask(f"/run/{last_run(database)}").text

    assert "has ended before its end" in page
