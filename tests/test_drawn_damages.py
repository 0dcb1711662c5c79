"""Knowledge bases with a drawn cell changed by another program: every reader gives its rows or a clear error."""

from __future__ import annotations

import io
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from golden_fixture import compared
from kb_contents import TIME, checksum
from recorded_searches import RULES, job_of

import hapax
from hapax.engine.explain import story_text, why
from hapax.engine.inference.bulk_derivation import derive_all
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.engine.search.search import search
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.exchange import export_facts
from hapax.kb.records import FactRecord, Source
from hapax.kb.roots import roots_of
from hapax.kb.store import KnowledgeBase
from hapax.kb.story import fact_story

LIBRARY = parse_library([("islands.rules", RULES)])
TABLES = ("runs", "rules", "questions", "calls", "candidates", "decisions", "assessments", "denials", "type_facts")
CELLS = (None, "", "x", 5, 0.5, -1, "[]", "[1]", '["a",true]', '["a"]', '{"a": 1}', "{", "null", b"\xff", "1" * 40)
"""What another program may write."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a search, its statements and their derivation."""
    path = tmp_path_factory.mktemp("sound") / "kb.db"
    with KnowledgeBase(path) as kb:
        ships = [FactRecord("sails", (f"ship {n}", f"place {n}"), ("Ship", "Place"), Source.GIVEN) for n in range(4)]
        kb.add_facts(ships)
        search(job_of(kb, {}))
        derive_all(kb, LIBRARY, LIBRARY.rules)
    return path


def damaged(path: Path, chance: random.Random) -> str:
    """Change a cell of a drawn row; returns what was changed, or that the table takes no such value."""
    connection = sqlite3.connect(path)
    table = chance.choice((*TABLES, *("facts", "statements", "proofs") * 4))
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    column, rows = chance.choice(columns), connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
    row, other = chance.randrange(1, rows + 1), chance.randrange(1, rows + 1)
    neighbour = f"(SELECT {column} FROM {table} WHERE rowid = {other})"  # noqa: S608  drawn from the table itself
    new, cell = ("?", chance.choice(CELLS)) if chance.randrange(3) else (neighbour, None)
    try:
        with connection:
            values = (cell,) if new == "?" else ()
            connection.execute(f"UPDATE {table} SET {column} = {new} WHERE rowid = {row}", values)  # noqa: S608
    except sqlite3.Error as refusal:
        return f"{table}.{column}: {refusal}"
    finally:
        connection.close()
    return f"{table}.{column}, row {row}: {cell!r}" if new == "?" else f"{table}.{column}, row {row} as row {other}"


def exported(kb: KnowledgeBase, form: str) -> str:
    stream = io.StringIO()
    report = export_facts(kb, form, stream)
    return f"{stream.getvalue()} {report}"


def readings(kb: KnowledgeBase, library: Library, prolog: PrologSession) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each way to read a knowledge base, by name."""
    theory = Theory(library, kb)
    yield "verify", lambda: [(found.table, found.row, found.reason) for found in hapax.verify(kb).damages]
    yield "rows of runs", lambda: [(run.run, run.rows) for run in roots_of(kb).runs]
    yield "facts", kb.facts
    yield "statements", kb.statements
    yield "denials", kb.denials
    yield "calls", kb.calls
    yield "candidates", lambda: kb.candidates_of([question.id for question in kb.questions()])
    yield "decisions", kb.decisions
    yield "story of a fact", lambda: [fact_story(kb, fact.predicate, fact.arguments) for fact in kb.facts()[::9]]
    yield "why", lambda: [story_text(why(theory, found.id, prolog)) for found in kb.statements()[:3]]
    yield "query", lambda: run_query(theory, "can_reach(X, A)", session=prolog).rows
    yield "csv", lambda: exported(kb, "csv")
    yield "prolog", lambda: exported(kb, "prolog")
    yield "derive", lambda: [(rule.rule, rule.engine) for rule in derive_all(kb, library, library.rules).rules]
    yield "derived", lambda: sorted(kb.derived_counts().items())


def told(path: Path, prolog: PrologSession) -> dict[str, str]:
    """A checksum of what each reader gives, or the first words of its error."""
    found = {}
    with KnowledgeBase(path) as kb:
        for name, reading in readings(kb, LIBRARY, prolog):
            try:
                found[name] = checksum([TIME.sub("TIME", str(reading())).replace(str(path.parent), "")])
            except HapaxError as refusal:
                found[name] = " ".join(str(refusal).replace(str(path.parent), "").split())[:150]
    return found


@pytest.mark.parametrize("part", range(4))
def test_a_changed_cell_is_read_or_named(part: int, sound: Path, tmp_path: Path, prolog: PrologSession) -> None:
    """Each reader gives the rows that were read over, or an error in words; none ends in a fault of its own."""
    path = tmp_path / "kb.db"
    shutil.copy(sound, path)
    undamaged = told(path, prolog)
    lines = ["undamaged", *(f"  {name}: {text}" for name, text in undamaged.items())]
    for seed in range(part * 20, part * 20 + 20):
        shutil.copy(sound, path)
        lines.append(f"{seed} {damaged(path, random.Random(f'damage {seed}'))}")
        lines += [f"  {name}: {text}" for name, text in told(path, prolog).items() if text != undamaged[name]]
    compared(f"damages/{part}", "\n".join(lines) + "\n")
