"""Merge another knowledge base into this one.

Merging is idempotent, and its content does not depend on the direction: identities are content hashes, and of two rows
with one identity the greater stays, whichever file it came from (`rows.TableSchema.preferred`). Contradictions between
the files are reported, never averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Value
from hapax.kb import rows
from hapax.kb.connection import reading_uri, sweep, translated
from hapax.kb.exchange import values
from hapax.kb.files.backups import changed_rows
from hapax.kb.records import FACTS, PREDICATES, USER, FactRecord
from hapax.kb.rows import OnConflict, TableSchema
from hapax.kb.schema import INDEX_PROOFS, TABLES
from hapax.kb.store import KnowledgeBase

# Facts in memory at a time.
_BATCH = 10_000

# Characters of a verdict that a conflict quotes.
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Conflict:
    """An identity with contradicting verdicts. `kind` is a table's name, `functional` or `rejected`."""

    kind: str
    identity: str
    verdicts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.identity}: {' / '.join(self.verdicts)}"


@dataclass(frozen=True, slots=True)
class MergeReport:
    """Counts of new rows by table, of rows replaced by the other file's, and the contradictions found.

    `fallen`: texts of stored statements that facts of the other file refute.
    """

    added: dict[str, int]
    replaced: dict[str, int]
    conflicts: tuple[Conflict, ...]
    fallen: tuple[str, ...] = ()


def merge(kb: KnowledgeBase, path: str | Path) -> MergeReport:
    """Add everything from the file at `path`, or nothing. That file is only read; HapaxError if it is damaged."""
    path = Path(path)
    if kb.path and path.exists() and kb.path.resolve() == path.resolve():
        return MergeReport({}, {}, _functional_conflicts(kb))
    there = _checked(path)
    with _attached(kb, path), kb.transaction():
        # Before the rows are added: a row that is replaced no longer differs from the other file's.
        disagreements = [*_disagreements(kb, there), *_rejected(kb)]
        # An upsert's row count does not tell new rows from replaced ones, so the new ones are counted apart.
        before = kb.row_counts()
        changed = dict.fromkeys(before, 0)
        for table in TABLES:
            if table is FACTS:
                changed[table.name] = _merge_facts(kb, path)
            elif table in there:
                if table.is_late:
                    kb.make(table.name)
                insert = table.insert(OnConflict.BEST, f"other.{table.name}")
                changed[table.name] = kb.connection.execute(insert).rowcount
        added = {name: count - before[name] for name, count in kb.row_counts().items()}
        _settle_withdrawals(kb)
        replaced = {name: changed[name] - added[name] for name in changed}
        return MergeReport(_nonzero(added), _nonzero(replaced), (*disagreements, *_functional_conflicts(kb)))


def _settle_withdrawals(kb: KnowledgeBase) -> None:
    """Withdraw what the user of either file withdrew. Other facts that are in either file stand."""
    # Of two proofs under one key the other file's may have stayed, so all are indexed anew.
    kb.sql("DELETE FROM statement_facts")
    for index in INDEX_PROOFS:
        kb.sql(index)
    kb.sql("UPDATE statement_facts SET checked = NULL")  # the facts of the other file may refute any
    kb.relations.remove(item.fact for item in kb.withdrawals() if item.author == USER)
    standing = {(item.fact_id,) for item in kb.withdrawals() if kb.fact(item.predicate, item.arguments)}
    # When neither file says: both give the same time.
    kb.write(
        "UPDATE withdrawals SET restored = (SELECT max(again.withdrawn) FROM withdrawals AS again "
        "WHERE again.fact_id = withdrawals.fact_id) WHERE restored IS NULL AND fact_id = ?",
        sorted(standing),
    )


def _merge_facts(kb: KnowledgeBase, path: Path) -> int:
    """Add the facts of the other file, and return the number of changes."""
    changes = 0
    with KnowledgeBase(path, read_only=True) as source:
        for relation in source.relations.all():
            found = source.relations.records(relation)
            while batch := [fact for _, fact in islice(found, _BATCH)]:
                changes += kb.relations.add(batch)
    return changes


def _checked(path: Path) -> list[TableSchema[Any]]:
    """The tables of a file. Raises HapaxError unless Hapax could have written each row, so that none is damaged."""
    with KnowledgeBase(path, read_only=True) as source:
        for table in TABLES:
            for damage in changed_rows(source, table):
                raise HapaxError(f"{path}: {damage.reason}")
        return [table for table in TABLES if source.has(table.name)]


@contextmanager
def _attached(kb: KnowledgeBase, path: Path) -> Iterator[None]:
    """Attach the file for reading, under the schema name `other`."""
    with translated(str(path)):
        kb.connection.execute("ATTACH DATABASE ? AS other", [reading_uri(path)])
    try:
        yield
    finally:
        kb.connection.execute("DETACH DATABASE other")
        sweep(path)


def _disagreements(kb: KnowledgeBase, tables: Iterable[TableSchema[Any]]) -> Iterator[Conflict]:
    """Rows with one identity that differ in their table's `disagreement` column. `tables`: the other file's."""
    for table in tables:
        column = table.disagreement
        if column is None or not kb.has(table.name):
            continue
        here, there = f"here.{column}", f"there.{column}"
        # The last digits of a score in single precision depend on the machine and even on the batch.
        slack = f"1e-6 * max(1, abs({here}), abs({there}))"
        differs = f"abs({here} - {there}) > {slack}" if table.columns[column] is rows.SCORE else f"{here} <> {there}"
        sql = (
            f"SELECT here.{table.key[0]}, substr({here}, 1, {_SHOWN}), substr({there}, 1, {_SHOWN}) "  # noqa: S608
            f"FROM main.{table.name} AS here JOIN other.{table.name} AS there "
            f"USING ({table.key[0]}) WHERE {differs} ORDER BY here.{table.key[0]}"
        )
        for identity, *verdicts in kb.connection.execute(sql):
            yield Conflict(table.name, identity, tuple(sorted(verdicts)))


def _rejected(kb: KnowledgeBase) -> Iterator[Conflict]:
    """Facts of one file whose candidate was rejected in the other."""
    for holder, judge in (("main", "other"), ("other", "main")):
        sql = f"""
            SELECT fact.predicate, fact.arguments, min(decision.reason)
            FROM {holder}.facts AS fact JOIN {judge}.decisions AS decision ON decision.subject = fact.candidate_id
            WHERE NOT decision.accepted AND fact.id NOT IN (SELECT id FROM {judge}.facts)
            GROUP BY fact.id ORDER BY fact.id
        """  # noqa: S608 - the schema names are ours
        for predicate, arguments, reason in kb.connection.execute(sql):
            yield Conflict("rejected", f"{predicate}({arguments[1:-1][:_SHOWN]})", ("held", f"rejected: {reason}"))


def _functional_conflicts(kb: KnowledgeBase) -> tuple[Conflict, ...]:
    """Functional predicates with more than one value for the same other arguments."""
    groups: dict[tuple[str, tuple[Value, ...]], list[FactRecord]] = {}
    for predicate in kb.select(PREDICATES):
        if predicate.kind == "functional":
            for fact in kb.facts(predicate.indicator):
                groups.setdefault((fact.predicate, fact.arguments[:-1]), []).append(fact)
    conflicts = []
    for (predicate_name, bound_arguments), facts in groups.items():
        if len(facts) > 1:
            bound = values.encode_values(bound_arguments)[1:-1]
            atom = f"{predicate_name}({bound[:_SHOWN]}{', ' if bound else ''}_)"
            results = sorted(str(fact.arguments[-1])[:_SHOWN] for fact in facts)
            conflicts.append(Conflict("functional", atom, tuple(results)))
    return tuple(sorted(conflicts, key=str))


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
