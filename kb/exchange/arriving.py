"""Facts of a source on their way into the knowledge base, stored batch by batch in a transaction of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from hapax.grammar.parsing.declarations import Tolerance
from hapax.grammar.terms import Value
from hapax.kb import rows
from hapax.kb.atoms.facts import StoredRelation
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True, eq=False)
class FactKind:
    """Facts of one predicate with the same types. `beginning`: what their identities are hashed from first.

    `kinds`: by place, from 0, `Number`, `Date` and the like where the rules have them; `texts`: the places of a Text,
    where 1984 is a text, too. `is_followed`: they can break a declaration, so that their lines are needed when all are
    read. `key`: places of the key's columns, outside of which a fact may have empty cells.
    """

    predicate: str
    indicator: str
    types: tuple[str, ...]
    beginning: str
    kinds: Mapping[int, str]
    texts: frozenset[int]
    is_followed: bool
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FactKey:
    """Places of arguments of which no two facts of a predicate have the same values; `words` say so.

    `columns`: names of all arguments, by which rows are told; empty for those of a functional predicate. `tolerance`:
    of the last argument.
    """

    places: tuple[int, ...]
    words: str
    columns: Sequence[str]
    tolerance: Tolerance | None = None
    is_declared: bool = False


class FactBatch(NamedTuple):
    """Facts of one kind, by places in what waited. `bases`: what the source has in place of canonical names."""

    kind: FactKind
    places: Sequence[int]
    lines: Sequence[int]
    arguments: Sequence[Sequence[Value]]
    identities: Sequence[bytes]
    bases: Sequence[str | None]


class ArrivingFacts:
    """The facts of a source: new ones are stored batch by batch, claims on stored ones at the end."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.transaction = ExitStack()
        """The transaction of all that is stored, from the first batch on."""
        self._first = 0
        """The number of the first new fact."""
        self._count = 0
        self._repeats: list[tuple[int, str]] = []

    def add(self, batches: Sequence[FactBatch], count: int) -> None:
        """Add facts, which are at some of `count` places."""
        relations = self._kb.relations
        if not self._first:
            self._begin()
        refs = relations.new_refs(count)
        made = relations.made({kind.indicator: str(rows.NAMES.encode(kind.types)) for kind, *_ in batches})
        for batch in batches:
            self._insert(made[batch.kind.indicator], batch, [refs[place] for place in batch.places])

    def _begin(self) -> None:
        """Begin to store, in a transaction that ends with the intake."""
        self.transaction.enter_context(self._kb.transaction())
        ((last,),) = self._kb.sql("SELECT last FROM fact_numbers")
        self._first = last + 1
        # Of facts that can break a declaration the lines, and those that claim a stored fact with what they say of it.
        for sql in (
            "DROP TABLE IF EXISTS temp.arriving",
            "DROP TABLE IF EXISTS temp.claims",
            "CREATE TEMP TABLE arriving (relation, ref, line, PRIMARY KEY (relation, ref)) WITHOUT ROWID",
            "CREATE TEMP TABLE claims (relation, ref, source, types, basis, PRIMARY KEY (relation, ref)) WITHOUT ROWID",
        ):
            self._kb.sql(sql)

    def _insert(self, relation: StoredRelation, batch: FactBatch, refs: list[int]) -> None:
        tags = self._kb.symbols.tags_of_rows(batch.arguments)
        types = str(rows.NAMES.encode(batch.kind.types))
        own = None if types == relation.types else types
        is_plain = own is None and not any(batch.bases)
        origins = None if is_plain else [(own, None, None, None, None, basis) for basis in batch.bases]
        known = self._kb.relations.insert(relation, refs, tags, batch.identities, origins)
        self._count += len(refs) - len(known)
        for place in known:
            refs[place] = self._claim(relation, batch.lines[place], tags[place], (types, batch.bases[place]))
        if batch.kind.is_followed:
            lines = [(relation.number, ref, line) for ref, line in zip(refs, batch.lines, strict=True)]
            self._kb.write("INSERT OR IGNORE INTO temp.arriving VALUES (?, ?, ?)", lines)

    def _claim(self, relation: StoredRelation, line: int, tags: Sequence[int], origin: tuple[str, str | None]) -> int:
        """Note a fact that is stored already, or that repeats an earlier one of the source; returns its number."""
        ref, source = self._kb.relations.find(relation, tags)
        sql = "INSERT OR IGNORE INTO temp.claims VALUES (?, ?, ?, ?, ?)"
        if ref >= self._first or not self._kb.write(sql, [(relation.number, ref, source, *origin)]):
            self._repeats.append((line, relation.indicator))
        return ref

    def facts(self, indicators: Iterable[str]) -> Iterator[FactRecord]:
        """The facts of these predicates as the source gives them."""
        for relation in self._made(indicators):
            found = self._kb.relations.records(
                relation, "JOIN temp.arriving AS a ON a.relation = ? AND a.ref = r.ref", [relation.number]
            )
            for _, fact in list(found):
                yield FactRecord(fact.predicate, fact.arguments, fact.types, Source.GIVEN)

    def _made(self, indicators: Iterable[str]) -> list[StoredRelation]:
        found = (self._kb.relations.get(indicator) for indicator in sorted(indicators))
        return [relation for relation in found if relation is not None and self._first]

    def with_same_key(self, indicator: str, key: FactKey) -> Iterator[list[tuple[int, FactRecord]]]:
        """Facts with one key, by line; 0 stands for the line of a fact that is stored alone."""
        for relation in self._made([indicator]):
            keys = ", ".join(relation.columns[place] for place in key.places) or "1"
            arriving = f"SELECT ref FROM temp.arriving WHERE relation = {relation.number}"  # noqa: S608  ours
            touched = f"SELECT {keys} FROM {relation.table} WHERE ref IN ({arriving})"  # noqa: S608  ours
            groups_of = f"FROM {relation.table} WHERE ({keys}) IN ({touched}) GROUP BY {keys}"
            crowded = f"SELECT {keys} {groups_of} HAVING count(*) > 1"
            wanted = f"SELECT ref FROM {relation.table} WHERE ({keys}) IN ({crowded})"  # noqa: S608  ours
            lines = f"SELECT ref, line FROM temp.arriving WHERE relation = {relation.number} AND ref IN ({wanted})"  # noqa: S608
            line_of = dict(self._kb.sql(lines))
            groups: dict[tuple[Value, ...], list[tuple[int, FactRecord]]] = {}
            for ref, fact in self._kb.relations.records(relation, f"WHERE r.ref IN ({wanted})"):
                same = tuple(fact.arguments[place] for place in key.places)
                groups.setdefault(same, []).append((line_of.get(ref, 0), fact))
            for group in groups.values():
                covered = key.tolerance is not None and key.tolerance.covers_all(
                    [fact.arguments[-1] for _, fact in group]
                )
                if not covered:
                    yield sorted(group, key=itemgetter(0))

    def withdraw(self, identities: Iterable[str]) -> list[tuple[int, str]]:
        """Take back facts of the source, and return the lines of their rows and their indicators."""
        withdrawn = []
        for relation in self._kb.relations.all():
            for identity in identities:
                sql = (
                    f"SELECT r.ref, a.line FROM {relation.table} AS r JOIN temp.arriving AS a "  # noqa: S608  ours
                    "ON a.relation = ? AND a.ref = r.ref WHERE r.id = ?"
                )
                for ref, line in self._kb.sql(sql, (relation.number, bytes.fromhex(identity))):
                    withdrawn.append((line, relation.indicator))
                    self._count -= ref >= self._first
                    self._kb.sql(f"DELETE FROM {relation.table} WHERE ref = ? AND ref >= ?", (ref, self._first))  # noqa: S608
                    for table in ("arriving", "claims"):
                        where = "relation = ? AND ref = ?"
                        self._kb.sql(f"DELETE FROM temp.{table} WHERE {where}", (relation.number, ref))  # noqa: S608
        return sorted(withdrawn)

    def store(self) -> tuple[int, Counter[Source], list[tuple[int, str]]]:
        """Settle the claims, and end the transaction.

        Returns the number of distinct facts, how many of them were known before by their source, and line and indicator
        of each fact that repeats an earlier one.
        """
        known: Counter[Source] = Counter()
        if self._first:
            relations = {relation.number: relation for relation in self._kb.relations.all()}
            for number, ref, source, types, basis in self._kb.sql("SELECT * FROM temp.claims"):
                known[Source(source or Source.GIVEN)] += 1
                origin = (None if types == relations[number].types else types, None, None, None, None, basis)
                self._kb.relations.improve(relations[number], ref, origin)
            # Withdrawn facts that are given again stand again.
            self._kb.settle_withdrawals()
        self.transaction.close()
        return self._count + known.total(), known, self._repeats
