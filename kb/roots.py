"""Merkle roots of the rows of a knowledge base: one for each run, and one over them.

Leaves and nodes are hashed as in RFC 6962 (SHA-256 of 00 and the leaf, of 01 and two nodes). A leaf is a row of a table
as JSON; leaves are sorted, so the order of writing does not matter and a backup has the roots of its original.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hapax.kb import rows
from hapax.kb.records import RUNS, TABLES
from hapax.kb.store import KnowledgeBase
from hapax.kb.verification import strange_objects

SHARED = ""
"""Name of the rows that belong to no run, such as answers of models, given facts, rules and votes."""


STRANGE = "objects of other programs"
"""Name of the tables, indexes, triggers and views that Hapax did not make, or not so. No run's id has blanks."""


@dataclass(frozen=True, slots=True)
class RunRoot:
    """The root of one run's rows. `run`: its id, `SHARED` or `STRANGE`."""

    run: str
    rows: int
    root: str


@dataclass(frozen=True, slots=True)
class Roots:
    """The roots of a knowledge base by run; `root` is that over the runs' lines."""

    runs: tuple[RunRoot, ...]

    @property
    def root(self) -> str:
        return merkle_root(sorted(_leaf(_line(run)) for run in self.runs))

    @property
    def run_count(self) -> int:
        """Number of runs, without the rows that belong to none."""
        return sum(run.run not in (SHARED, STRANGE) for run in self.runs)

    @property
    def text(self) -> str:
        """The text that a seal signs."""
        lines = ["hapax seal 1", f"root {self.root}", *map(_line, self.runs)]
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def read(cls, text: str) -> Roots:
        """The roots of a seal's text. Raises ValueError for any other text."""
        head, root, *lines = text.splitlines()
        runs = []
        for line in lines:
            word, digest, count, name = line.split(" ", 3)
            runs.append(RunRoot(json.loads(name), int(count), digest))
            if word != "run":
                raise ValueError(f"the line {line[:60]!r} is none of a seal")
        roots = cls(tuple(runs))
        if head != "hapax seal 1" or root != f"root {roots.root}":
            raise ValueError("its root is not that of its lines")
        return roots

    def changed_since(self, sealed: Roots) -> list[tuple[str, str]]:
        """Runs whose rows are not as sealed, each with the difference in words."""
        now = {run.run: run for run in self.runs}
        before = {run.run: run for run in sealed.runs}
        changes = []
        for run in sorted({*now, *before}):
            if run not in now:
                changes.append((run, "its rows are gone"))
            elif run not in before:
                changes.append((run, f"it is not in the seal, with {now[run].rows} rows"))
            elif now[run] != before[run]:
                changes.append((run, f"it had {before[run].rows} rows and has {now[run].rows}, not all the same"))
        return changes


def roots_of(kb: KnowledgeBase) -> Roots:
    """The roots of everything that Hapax stored, and of the objects of the file that it did not make.

    Indexes and derived tables are left out, as they can be made again.
    """
    leaves: dict[str, list[bytes]] = {}
    for strange in strange_objects(kb):
        entry = strange.object
        text = json.dumps([str(strange.is_gone), entry.kind, entry.name, entry.table, entry.sql])
        leaves.setdefault(STRANGE, []).append(_leaf(text))
    for table in (table for table in TABLES if kb.has(table.name)):
        for run, leaf in _leaves(kb, table):
            leaves.setdefault(run, []).append(leaf)
    found = []
    for run, hashes in sorted(leaves.items()):
        hashes.sort()
        found.append(RunRoot(run, len(hashes), merkle_root(hashes)))
    return Roots(tuple(found))


def merkle_root(leaves: Sequence[bytes]) -> str:
    """The root over hashed leaves, in hexadecimal digits."""
    # Pairs level by level, which gives the same tree as the recursive split of RFC 6962, section 2.1.
    level = list(leaves)
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\1" + level[at] + level[at + 1]).digest() for at in range(0, len(level) - 1, 2)]
        # The last of an odd number goes up as it is, so the tree splits at powers of two as that of RFC 6962.
        level = pairs + level[len(level) // 2 * 2 :]
    return level[0].hex() if level else hashlib.sha256().hexdigest()


def _leaves(kb: KnowledgeBase, table: rows.TableSchema[object]) -> Iterator[tuple[str, bytes]]:
    """Run and hashed leaf of each row of a table."""
    columns = ", ".join(f"{table.name}.{name}" for name in table.all_columns)
    run = f"{table.name}.run_id"
    if table is RUNS:  # a run owns its own row
        run = "runs.id"
    elif "run_id" not in table.all_columns:
        run = "NULL"
    for name, *cells in kb.connection.execute(f"SELECT {run}, {columns} FROM {table.name}"):  # noqa: S608  ours
        # Another program may have written what JSON has no form for.
        yield str(name or SHARED), _leaf(json.dumps([table.name, *cells], separators=(",", ":"), default=repr))


def _leaf(text: str) -> bytes:
    return hashlib.sha256(b"\0" + text.encode("ascii")).digest()


def _line(run: RunRoot) -> str:
    return f"run {run.root} {run.rows} {json.dumps(run.run)}"
