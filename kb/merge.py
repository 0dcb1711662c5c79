"""Taking over what another knowledge base knows.

Idempotent, and in content commutative: identities are content hashes, and of two rows with one identity the greater one
stays, whichever file it came from (`rows.Table.preferred`). What the two files disagree on is reported, never averaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammar.errors import HapaxError
from kb import rows, values
from kb.connection import reading_uri, sweep, translated
from kb.records import FactRecord
from kb.rows import OnConflict, Table

if TYPE_CHECKING:
    from kb.store import KnowledgeBase

_SHOWN = 200
"""Characters of a verdict that a conflict repeats."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One identity with several verdicts. `kind` is a table's name, `functional` or `rejected`."""

    kind: str
    identity: str
    verdicts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.identity}: {' / '.join(self.verdicts)}"


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge did: new rows by table, rows that gave way to the other file's, and the contradictions found."""

    added: dict[str, int]
    replaced: dict[str, int]
    conflicts: tuple[Conflict, ...]


def merge(kb: KnowledgeBase, other: Path) -> MergeReport:
    """Take over everything from `other`, which is only read. A damaged one raises HapaxError and changes nothing."""
    if kb.path and other.exists() and kb.path.resolve() == other.resolve():
        return MergeReport({}, {}, _functional_conflicts(kb))
    _check(other)
    with _attached(kb, other), kb.transaction():
        disagreements = [*_disagreements(kb), *_rejected(kb)]
        before = kb.counts()
        changed = {table.name: _take_over(kb, table) for table in rows.TABLES}
        added = {name: count - before[name] for name, count in kb.counts().items()}
        replaced = {name: changed[name] - added[name] for name in changed}
        return MergeReport(_nonzero(added), _nonzero(replaced), (*disagreements, *_functional_conflicts(kb)))


def _check(other: Path) -> None:
    """Every row must be one that Hapax could have written: a strange file must not spoil this one."""
    from kb.store import KnowledgeBase  # the store offers `merge`, so it imports this module

    with KnowledgeBase(other, read_only=True) as source, translated(str(other)):
        for table in rows.RECORD_TABLES:
            for row in source.database.conn.execute(table.select):
                try:
                    table.check(row)
                except HapaxError as error:
                    raise HapaxError(f"{other}: {error}") from error


@contextmanager
def _attached(kb: KnowledgeBase, other: Path) -> Iterator[None]:
    """The other file under the schema name `other`, for reading."""
    with translated(str(other)):
        kb.database.conn.execute("ATTACH DATABASE ? AS other", [reading_uri(other)])
    try:
        yield
    finally:
        kb.database.conn.execute("DETACH DATABASE other")
        sweep(other)


def _take_over(kb: KnowledgeBase, table: Table[Any]) -> int:
    return kb.database.conn.execute(table.insert(OnConflict.BEST, f"other.{table.name}")).rowcount


def _disagreements(kb: KnowledgeBase) -> Iterator[Conflict]:
    """Rows of one identity that differ where they must not."""
    for table in rows.TABLES:
        column = table.disagreement
        if column is None:
            continue
        here, there = f"here.{column}", f"there.{column}"
        # Two machines, and two batches of one, compute one score with different last digits of single precision.
        slack = f"1e-6 * max(1, abs({here}), abs({there}))"
        differs = f"abs({here} - {there}) > {slack}" if table.columns[column] is rows.REAL else f"{here} <> {there}"
        sql = (
            f"SELECT here.{table.key[0]}, substr({here}, 1, {_SHOWN}), substr({there}, 1, {_SHOWN}) "  # noqa: S608
            f"FROM main.{table.name} AS here JOIN other.{table.name} AS there "
            f"USING ({table.key[0]}) WHERE {differs} ORDER BY here.{table.key[0]}"
        )
        for identity, *verdicts in kb.database.conn.execute(sql):
            yield Conflict(table.name, identity, tuple(sorted(verdicts)))


def _rejected(kb: KnowledgeBase) -> Iterator[Conflict]:
    """Facts held in one file whose candidate was rejected in the other."""
    for holder, judge in (("main", "other"), ("other", "main")):
        sql = f"""
            SELECT held.predicate, held.arguments, min(decision.reason)
            FROM {holder}.facts AS held JOIN {judge}.decisions AS decision ON decision.subject = held.candidate_id
            WHERE NOT decision.accepted AND held.id NOT IN (SELECT id FROM {judge}.facts)
            GROUP BY held.id ORDER BY held.id
        """  # noqa: S608 - the schema names are ours
        for predicate, arguments, reason in kb.database.conn.execute(sql):
            yield Conflict("rejected", f"{predicate}({arguments[1:-1][:_SHOWN]})", ("held", f"rejected: {reason}"))


def _functional_conflicts(kb: KnowledgeBase) -> tuple[Conflict, ...]:
    """Functional predicates with two values for the rest."""
    groups: dict[tuple[str, tuple[object, ...]], list[FactRecord]] = {}
    for predicate in kb.predicates():
        if predicate.kind == "functional":
            for fact in kb.facts(predicate.indicator):
                groups.setdefault((fact.predicate, fact.arguments[:-1]), []).append(fact)
    conflicts = (
        Conflict("functional", _open_atom(facts[0]), tuple(sorted(str(fact.arguments[-1])[:_SHOWN] for fact in facts)))
        for facts in groups.values()
        if len(facts) > 1
    )
    return tuple(sorted(conflicts, key=str))


def _open_atom(fact: FactRecord) -> str:
    bound = values.encode_values(fact.arguments[:-1])[1:-1]
    return f"{fact.predicate}({bound[:_SHOWN]}{', ' if bound else ''}_)"


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
