"""Full-text search over the sentences and values of a knowledge base, by an index that is kept beside it.

The index (SQLite's FTS5) lies in a temporary database of the process, not in the file: a reader needs no right to
write, no writer pays for it, and files stay as small as they are.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hapax.grammar.writing.words import plain_letters
from hapax.kb.atoms.symbols import is_plain
from hapax.kb.connection import reading_uri, translated
from hapax.kb.exchange.values import refusal

BEST = 100
"""Sentences and values that a search returns, each."""
MOST_RANKED = 20_000
"""With more sentences than this, the first ones are taken instead of the best: ranking all of them takes seconds."""


def _plain(column: str) -> str:
    """SQL for a text with plain letters."""
    return f"CASE WHEN {is_plain(column)} THEN {column} ELSE plain_letters({column}) END"


_TOKENS = "tokenize = unicode61, prefix = '2 3'"
# `content = ''`: the index has rowids alone, and the sentences stay in the stored file.
_TABLES = f"""
CREATE VIRTUAL TABLE sentences USING fts5(words, content = '', {_TOKENS});
CREATE VIRTUAL TABLE substitutions USING fts5(cells, content = '', tokenize = unicode61);
CREATE VIRTUAL TABLE names USING fts5(words, name UNINDEXED, {_TOKENS});
"""

_SENTENCES = f"""
SELECT rowid, {_plain("text")} FROM (
    SELECT rowid, premise || ' ' || conclusion AS text FROM stored.statements
)
"""  # noqa: S608  ours
_SUBSTITUTIONS = "SELECT rowid, substitution FROM stored.statements"
# Decimals are objects in cells; what another program spoiled has no values.
_CELL = "CASE cell.type WHEN 'object' THEN json_extract(cell.value, '$.decimal') ELSE cell.value END"
_NAMES = f"""
SELECT {_CELL} AS name
FROM stored.facts, json_each(CASE WHEN json_valid(facts.arguments) THEN facts.arguments ELSE '[]' END) AS cell
UNION
SELECT {_CELL}
FROM stored.candidates, json_each(
    CASE WHEN json_valid(candidates.value) THEN json_array(json(candidates.value)) ELSE '[]' END
) AS cell
"""  # noqa: S608  ours
_STATE = """
SELECT (SELECT max(rowid) FROM stored.statements), (SELECT count(*) FROM stored.statements),
    (SELECT total(length(premise) + length(conclusion)) FROM stored.statements),
    (SELECT max(ref) FROM stored.facts), (SELECT count(*) FROM stored.facts),
    (SELECT max(rowid) FROM stored.candidates), (SELECT count(*) FROM stored.candidates)
"""
"""The last rows, their numbers and the length of the sentences, by which a change is noticed."""


@dataclass(frozen=True, slots=True)
class WordMatches:
    """Rows of `statements`, and values, that contain all words, the best first, with their total numbers."""

    rows: tuple[int, ...]
    row_count: int
    names: tuple[str, ...]
    name_count: int


class WordIndex:
    """An index of one file, which follows its changes. Calls from different threads wait for each other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        # An empty name: a temporary database, which SQLite deletes with its connection.
        self._connection = sqlite3.connect("", uri=True, check_same_thread=False, isolation_level=None)
        # The tokenizer folds marks, but not letters such as the O of "Ødegaard".
        self._connection.create_function("plain_letters", 1, plain_letters, deterministic=True)
        self._connection.executescript(_TABLES)
        self._first: threading.Thread | None = None
        self._stamp: tuple[tuple[int, int] | None, ...] = ()
        self._state: tuple[float | None, ...] = ()

    def ready(self, seconds: float) -> bool:
        """True if the index is there, for which at most `seconds` are waited; it is made in a thread if need be."""
        if self._first is None:
            self._first = threading.Thread(target=self._begin, daemon=True)
            self._first.start()
        self._first.join(seconds)
        return not self._first.is_alive()

    def _begin(self) -> None:
        # A file that cannot be read is an error of the search that follows.
        with self._lock, suppress(sqlite3.Error):
            self._follow()

    def close(self) -> None:
        """Delete the index."""
        with self._lock:
            self._connection.close()

    def search(self, words: str) -> WordMatches:
        """Sentences and values with all words or words that begin with them, in any case, accents left aside.

        Raises HapaxError for a file that cannot be read.
        """
        # Quoted each, no word is an operator of FTS5, whose own text ends at NUL.
        parts = plain_letters(words).replace("\0", " ").split()
        terms = [f'"{word.replace(chr(34), chr(34) * 2)}"*' for word in parts if any(map(str.isalnum, word))]
        if not terms or refusal(words):
            return WordMatches((), 0, (), 0)
        with self._lock, translated(str(self._path)):
            self._follow()
            rows, row_count = self._matches("sentences", "rowid", " ".join(terms))
            names, name_count = self._matches("names", "name", " ".join(terms))
        return WordMatches(tuple(map(int, rows)), row_count, tuple(map(str, names)), name_count)

    def with_value(self, text: str) -> tuple[int, ...] | None:
        """Rows of `statements` that may substitute the value whose JSON is this text, and all that do.

        None if there are more than MOST_RANKED. Raises HapaxError for a file that cannot be read.
        """
        if not any(map(str.isalnum, text)) or refusal(text):
            return None
        phrase = '"' + text.replace('"', " ").replace("\0", " ") + '"'
        sql = "SELECT rowid FROM substitutions WHERE substitutions MATCH ? LIMIT ?"
        with self._lock, translated(str(self._path)):
            self._follow()
            rows = self._connection.execute(sql, (phrase, MOST_RANKED + 1)).fetchall()
        return None if len(rows) > MOST_RANKED else tuple(row for (row,) in rows)

    def _matches(self, table: str, column: str, terms: str) -> tuple[list[int | str], int]:
        run = self._connection.execute
        ((count,),) = run(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (terms,))  # noqa: S608  ours
        order = "rank, rowid" if count <= MOST_RANKED else "rowid"
        sql = f"SELECT {column} FROM {table} WHERE {table} MATCH ? ORDER BY {order} LIMIT ?"  # noqa: S608  ours
        return [cell for (cell,) in run(sql, (terms, BEST))], count

    def _follow(self) -> None:
        """Bring the index up to date: after a change of statements, facts or candidates everything is indexed anew."""
        # A commit changes the WAL, a checkpoint the file itself.
        stamp = tuple(_stamp(Path(f"{self._path}{end}")) for end in ("", "-wal"))
        if stamp == self._stamp:
            return
        run = self._connection.execute
        run("ATTACH DATABASE ? AS stored", (reading_uri(self._path),))
        try:
            run("BEGIN")
            state = tuple(run(_STATE).fetchone())
            if state != self._state:
                self._fill()
            run("COMMIT")
            self._stamp, self._state = stamp, state
        finally:
            if self._connection.in_transaction:
                run("ROLLBACK")
            run("DETACH DATABASE stored")

    def _fill(self) -> None:
        """Index everything anew."""
        run = self._connection.execute
        for table in ("sentences", "substitutions"):
            run(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")  # noqa: S608  ours
        run("DELETE FROM names")
        run(f"INSERT INTO sentences (rowid, words) {_SENTENCES}")
        run(f"INSERT INTO substitutions (rowid, cells) {_SUBSTITUTIONS}")
        run(f"INSERT INTO names (words, name) SELECT {_plain('name')}, name FROM ({_NAMES}) WHERE name IS NOT NULL")  # noqa: S608


def _stamp(path: Path) -> tuple[int, int] | None:
    """Time of the last change and size of a file; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
