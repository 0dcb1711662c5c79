"""Questions about single things: `hapax.query`, `why` and `why-not` of an open base, and as cold commands.

All facts of the base share a value, so that an index by that value finds everything, and one question has many proofs.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import hapax
from benchmarks.inference import fill, written
from benchmarks.measuring import Figure, Size, Turn, Way, compared, median_of, process_cost, seconds_of

RULES = """
given is_a(Thing, Kind): "[1] is a [2]" / "[1] is not a [2]" / "is [1] a [2]?".
given edge(Thing, Thing): "[1] leads to [2]" / "[1] does not lead to [2]" / "does [1] lead to [2]?".
@name near
@generic none
edge(Thing A, Thing B) & edge(Thing B, Thing C) -> is_near(Thing A, Thing C).
"""
ASKED = 20
"""Questions of a turn, each about another thing; the figure is the mean of one."""

FEW = 5


def figures(size: Size) -> Iterator[Figure]:
    """All figures of questions."""
    facts, proofs = size.pick(100, 100_000, 1_000_000), size.pick(10, 1000, 10_000)
    rules = hapax.parse_rules(RULES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "my.rules").write_text(RULES, "utf-8")
        for count in (facts // 10, facts):
            base = filled(folder, count, proofs, rules)
            with hapax.KnowledgeBase(base) as kb:
                seconds = seconds_of(partial(hapax.query, "is_a(x1, Kind)", rules, kb))
                yield median_of(f"first question, {count:,} facts", "hapax", "s", [seconds])
                yield from warm(kb, rules, count, size)
        with hapax.KnowledgeBase(base) as kb:
            yield from explained(kb, rules, facts, proofs, size)
        yield from cold(base, facts, size)
        yield from cold(filled(folder, FEW, FEW, rules), FEW, size)


def filled(folder: Path, facts: int, proofs: int, rules: hapax.Library) -> Path:
    """A base of facts with a common value, and edges from `s` to `t` by as many ways as the question has proofs."""
    middles = [f"m{way}" for way in range(proofs)]
    edges = [*(("s", middle) for middle in middles), *((middle, "t") for middle in middles)]
    base = folder / f"{facts}.db"
    fill(base, written(folder, {"is_a": [(f"x{row}", "bird") for row in range(facts)], "edge": edges}), rules)
    return base


def indexed_table(path: str | Path, facts: int) -> sqlite3.Connection:
    """The facts as a table of SQLite, indexed by the first argument."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(
        "CREATE TABLE is_a AS WITH RECURSIVE row(n) AS "
        "(SELECT 0 UNION ALL SELECT n + 1 FROM row WHERE n < ?) SELECT 'x' || n AS x, 'bird' AS y FROM row",
        [facts - 1],
    )
    connection.execute("CREATE INDEX by_x ON is_a (x)")
    return connection


# --- warm -------------------------------------------------------------------------------------------------------------


def warm(kb: hapax.KnowledgeBase, rules: hapax.Library, facts: int, size: Size) -> Iterator[Figure]:
    """Questions of an open base with one argument bound and with both, beside an indexed table of SQLite."""
    names = [f"x{row * facts // ASKED}" for row in range(min(ASKED, facts))]

    def each(ask: Callable[[str], Sequence[Any]]) -> Way:
        """The way of asking about each name; the cost is the milliseconds of one question."""

        def way() -> Turn:
            found: list[Any] = []
            seconds = seconds_of(lambda: found.extend(row for name in names for row in ask(name)))
            return Turn({"ms": 1000 * seconds / len(names)}, len(found))

        return way

    with closing(indexed_table(":memory:", facts)) as table:
        ways = {
            "one argument bound": (
                lambda name: hapax.query(f"is_a({name}, Kind)", rules, kb),
                lambda name: table.execute("SELECT y FROM is_a WHERE x = ?", (name,)).fetchall(),
            ),
            "both arguments bound": (
                lambda name: hapax.query(f"is_a({name}, bird)", rules, kb),
                lambda name: table.execute("SELECT 1 FROM is_a WHERE x = ? AND y = 'bird'", (name,)).fetchall(),
            ),
        }
        for bound, (ours, theirs) in ways.items():
            work = f"question, {bound}, {facts:,} facts"
            yield from compared(work, {"hapax": each(ours), "SQLite": each(theirs)}, size, {("hapax", "ms"): 1})


def explained(kb: hapax.KnowledgeBase, rules: hapax.Library, facts: int, proofs: int, size: Size) -> Iterator[Figure]:
    """Questions with many proofs, and explanations of an open base. Lines count as results."""
    questions: dict[str, Callable[[], Sequence[Any]]] = {
        f"question with {proofs:,} proofs": lambda: hapax.query("is_near(s, t)", rules, kb),
        f"`why` with {proofs:,} proofs": lambda: hapax.why("is_near(s, t)", rules, kb).lines,
        f"`why-not` with {proofs:,} ways to look at": lambda: hapax.why_not("is_near(s, x1)", rules, kb).lines,
        f"`why` of one of {facts:,} facts": lambda: hapax.why("is_a(x1, bird)", rules, kb).lines,
        f"`why-not` beside {facts:,} facts": lambda: hapax.why_not("is_a(x1, fish)", rules, kb).lines,
    }
    for work, ask in questions.items():

        def way(ask: Callable[[], Sequence[Any]] = ask) -> Turn:
            found: list[Any] = []
            return Turn({"s": seconds_of(lambda: found.extend(ask()))}, len(found))

        yield from compared(work, {"hapax": way}, size, {("hapax", "s"): 1})


# --- cold -------------------------------------------------------------------------------------------------------------

BY_SQLITE = """
import sqlite3
print(sqlite3.connect(sys.argv[1]).execute("SELECT y FROM is_a WHERE x = 'x1'").fetchall())
"""


def cold(base: Path, facts: int, size: Size) -> Iterator[Figure]:
    """The command `query` in a new process, beside a Python process that asks SQLite."""
    peer = base.with_suffix(".sqlite")
    indexed_table(peer, facts).close()
    words: list[str | Path] = ["query", "is_a(x1, Kind)", "--rules", base.with_name("my.rules"), "--db", base]
    ways = {"hapax": lambda: process_cost(words), "SQLite": lambda: process_cost([peer], BY_SQLITE)}
    targets = {("hapax", "s"): 0.35, ("hapax", "MB"): 50}
    yield from compared(f"cold command `query`, {facts:,} facts", ways, size, targets)
