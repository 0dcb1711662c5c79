"""Invariants after a simulation: nothing lost, nothing paid twice, and the same content as without faults."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import hapax
from hapax.engine.logic.derive import read_statements
from hapax.kb.connection import reading_uri
from hapax.kb.records import ATTEMPTS, CALLS, RUNS, TABLES, Outcome
from hapax.kb.store import KnowledgeBase
from tools.comparison import CLOCKS, SUMMARIES
from tools.simulate.network import SimulatedModelServer
from tools.simulate.scenarios import DATABASE, DERIVED, TARGET, Scenario, rules

IN_FLIGHT = 16
"""Requests at a time to a server, and in a batch of a model in this process."""

FIGURES = frozenset({"prompt_tokens", "completion_tokens", "cost"})

Content = dict[str, tuple[str, ...]]


def content(folder: Path, scenario: Scenario) -> Content:
    """Everything that the folder keeps, apart from times, in an order of its own."""
    found: Content = {}
    with closing(sqlite3.connect(reading_uri(folder / DATABASE), uri=True)) as connection:
        found |= dict(_rows(connection))
    if scenario.derives:
        with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
            for name in DERIVED:
                statements = read_statements(kb, rules(), rules().rule(name))
                found[f"derived {name}"] = tuple(sorted(map(repr, statements)))
            for table in ("derivations", "relations"):
                lines = kb.sql(f"SELECT * FROM {table}")  # noqa: S608  ours
                found[f"derived tables, {table}"] = tuple(sorted(map(repr, lines)))
    return found | whole_files(folder)


def whole_files(folder: Path) -> Content:
    """Files that must appear complete or not at all."""
    paths = (folder / "out.csv", *sorted((folder / TARGET).rglob("*")))
    return {
        f"file {path.relative_to(folder)}": (path.read_text("utf-8", "replace"),) for path in paths if path.is_file()
    }


def torn_files(folder: Path, earlier: Content, expected: Content) -> Iterator[str]:
    """Files that are neither as before a command nor as after it. Between the two there may be none."""
    found = whole_files(folder)
    new = {name: lines for name, lines in expected.items() if name.startswith("file ")}
    if found and found not in (earlier, new):
        yield from differences(found, new if len(found) >= len(new) else earlier)


def torn_queues(folder: Path) -> Iterator[str]:
    """Queue files with a line that was not written whole, which somebody might send."""
    for path in sorted(folder.glob("next*.jsonl")):
        text = path.read_text("utf-8", "replace")
        if not _is_whole(text):
            yield f"{path.name} is not whole: {text[-80:]!r}"


def _is_whole(text: str) -> bool:
    """True if each line is JSON to its end."""
    try:
        for line in text.splitlines():
            json.loads(line)
    except ValueError:
        return False
    return not text or text.endswith("\n")


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[str, ...]]]:
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for table in TABLES:
        if table is ATTEMPTS or table.name not in found:
            continue
        ignored = CLOCKS | (SUMMARIES if table is RUNS else frozenset())
        names = [name for name in table.all_columns if name not in ignored]
        if table is CALLS:  # a probe's figures count its repeated requests
            names = [f"iif(role = 'probe', NULL, {name})" if name in FIGURES else name for name in names]
        columns = ", ".join(names)
        rows = connection.execute(f"SELECT {columns} FROM {table.name}")  # noqa: S608  ours
        yield table.name, tuple(sorted(map(repr, rows)))


def differences(found: Content, expected: Content) -> Iterator[str]:
    """A line for each part that is not as expected."""
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            here, there = Counter(found.get(name, ())), Counter(expected.get(name, ()))
            missing, excess = list((there - here).elements()), list((here - there).elements())
            yield f"{name}: missing {missing[:2]}, too many {excess[:2]}"[:600]


def damages(folder: Path) -> Iterator[str]:
    """Findings of `verify`."""
    with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
        for damage in hapax.verify(kb).damages:
            yield f"verify: {damage}"


def leftovers(folder: Path) -> Iterator[str]:
    """Answers beside the file after a run that could bring them home."""
    if (folder / f"{DATABASE}-answers").exists():
        yield "answers are left beside the file"


def ledger(folder: Path, provider: SimulatedModelServer, in_flight: int) -> Iterator[str]:
    """Differences between the attempts in the file and the account of the server.

    Up to `in_flight` attempts may have been written down by processes that then died before they sent them.
    """
    with KnowledgeBase(folder / DATABASE, read_only=True) as kb:
        attempts = [attempt for attempt in kb.attempts() if attempt.outcome not in (Outcome.UNSENT, Outcome.QUEUED)]
    outcomes = Counter(attempt.outcome for attempt in attempts)
    sure = outcomes[Outcome.ANSWERED] + outcomes[Outcome.REFUSED] + outcomes[Outcome.UNUSABLE]
    perhaps = len(attempts) - sure - outcomes[Outcome.ERROR]
    replies = len(provider.charged) + provider.repeated
    doubled = provider.faults.get("double request", 0)
    if replies < sure:
        yield f"ledger: {sure} answered, but the server answered {replies}"
    if replies > sure + perhaps + doubled:
        yield f"ledger: {sure} answered and {perhaps} perhaps, but the server answered {replies}"
    arrived = len(provider.served) + provider.repeated
    if arrived > len(attempts) + doubled:
        yield f"ledger: {len(attempts)} attempts, but {arrived} requests arrived"
    if len(attempts) > arrived + provider.faults.get("lost request", 0) + in_flight:
        yield f"ledger: {len(attempts)} attempts, but only {arrived} requests arrived"
    tokens = sum(attempt.prompt_tokens + attempt.completion_tokens for attempt in attempts)
    extra = sum(request.tokens for request in provider.charged if request.is_extra)
    if sum(request.tokens for request in provider.charged) > tokens + extra:
        yield f"ledger: {tokens} tokens, but the server charged more"
