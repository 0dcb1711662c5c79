"""`hapax.search` with models that answer at once: its own time for each row that it stores, and the command's memory.

The models are simulated, and their answers are looked up, so that almost all of the time is the search's own. The peer
writes the rows of all tables of the file again, by `executemany` into tables without an index.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import hapax
from benchmarks.measuring import ROOT, Figure, Size, Turn, compared, process_cost, seconds_of

RULES = (ROOT / "rules", ROOT / "rules" / "library")


class LookupModel:
    """A simulated model in all roles, which answers each request once and then looks its answer up."""

    def __init__(self, models: hapax.Models) -> None:
        self.identity = models.knowledge.identity
        self.models = hapax.Models(self, self, self, self)
        self._answering = models
        self._known: dict[tuple[str, Any], Any] = {}

    def generate(self, requests: Sequence[Any], parameters: Any) -> list[Any]:
        return self._looked_up(requests, lambda asked: self._answering.knowledge.generate(asked, parameters))

    def probabilities(self, claims: Sequence[str]) -> list[Any]:
        return self._looked_up(claims, self._answering.critic.probabilities)

    def log_likelihoods(self, texts: Sequence[str]) -> list[Any]:
        return self._looked_up(texts, self._answering.likelihood.log_likelihoods)

    def _looked_up(self, asked: Sequence[Any], answer: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
        role = answer.__qualname__
        for request in asked:
            if (role, request) not in self._known:
                (self._known[role, request],) = answer([request])
        return [self._known[role, request] for request in asked]

    def asked(self, role: str) -> list[Any]:
        """The requests to the method of this name, in order and once each."""
        return [request for name, request in self._known if name.endswith(role)]


def figures(size: Size) -> Iterator[Figure]:
    """All figures of searches."""
    for count in size.pick((1,), (2,), (2, 8)):
        yield from overhead(count, size)
    names, beam = chosen(hapax.load_rules(*RULES), size.pick(1, 8, 24)), size.pick(2, 20, 100)
    only = [word for name in names for word in ("--rule", name)]
    with tempfile.TemporaryDirectory() as folder:
        models = ["-m", "simulated:1", "--evaluator", "simulated:1"]
        words: list[str | Path] = [
            "search",
            *RULES,
            *only,
            *models,
            "--no-progress",
            "--beam",
            str(beam),
            "--db",
            f"{folder}/new.db",
        ]
        work = f"command `search`, {len(names)} rules, beam {beam}"
        yield from compared(work, {"hapax": lambda: process_cost(words)}, size._replace(turns=1))


def chosen(library: hapax.Library, count: int) -> list[str]:
    """The names of so many rules that are searched, spread evenly."""
    names = [rule.name for rule in library.rules if rule.generic and rule.withdrawn is None]
    return [names[place * len(names) // count] for place in range(count)]


def overhead(rules: int, size: Size) -> Iterator[Figure]:
    """Microseconds of a search for each row that it stores."""
    library = hapax.load_rules(*RULES)
    model = LookupModel(hapax.open_models("simulated:1", library=library))
    only, beam = chosen(library, rules), size.pick(2, 100, 200)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.db"

        def searched() -> Turn:
            for old in Path(folder).glob("search.db*"):
                old.unlink()
            with hapax.KnowledgeBase(path) as kb:
                settings = hapax.SearchSettings(beam=beam)
                seconds = seconds_of(lambda: hapax.search(library, kb, model.models, settings, only=only))
                rows = sum(kb.counts().values())
            return Turn({"us a row": 1e6 * seconds / rows}, rows)

        rows = searched().results  # asks the model

        def written() -> Turn:
            contents = list(tables_of(path))
            with closing(sqlite3.connect(path.with_name("peer.db"), isolation_level=None)) as copy:
                seconds = seconds_of(lambda: write(copy, contents))
            path.with_name("peer.db").unlink()
            return Turn({"us a row": 1e6 * seconds / rows}, rows)

        work = f"search of {rules} rules, beam {beam}, {rows:,} rows"
        ways = {"hapax": searched, "executemany": written}
        yield from compared(work, ways, size, {("hapax", "us a row"): 20})


def tables_of(path: Path) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
    """The number of columns and the rows of each table of a file."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            found = connection.execute(f"SELECT * FROM [{name}]")  # noqa: S608  the file's own names
            yield len(found.description), found.fetchall()


def write(connection: sqlite3.Connection, contents: Sequence[tuple[int, Sequence[tuple[Any, ...]]]]) -> None:
    """Write the rows into new tables, in one transaction."""
    connection.execute("BEGIN")
    for number, (width, rows) in enumerate(contents):
        columns = ", ".join(f"c{column}" for column in range(width))
        connection.execute(f"CREATE TABLE t{number} ({columns})")
        connection.executemany(f"INSERT INTO t{number} VALUES ({', '.join('?' * width)})", rows)  # noqa: S608  our names
    connection.execute("COMMIT")
