"""Facts of a source on their way into the knowledge base, stored batch by batch in a transaction of their own."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import itemgetter

from hapax.grammar.parsing.declarations import Tolerance
from hapax.grammar.terms import Value
from hapax.kb import connection, rows
from hapax.kb.atoms.facts import StoredRelation
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

CACHE_KIB = 8 * 1024
"""Memory of SQLite while facts arrive, for pages and again for sorting; a larger one is no faster."""

LINES_SHOWN = 5
"""Lines of repeated facts that are kept for a message."""


@dataclass(frozen=True, slots=True, eq=False)
class FactKind:
    """Facts of one predicate with the same types. `beginning`: what their identities are hashed from first.

    `kinds`: by place, from 0, `Number`, `Date` and the like where the rules have them; `texts`: the places of a Text,
    where 1984 is a text, too. `key`: places of the key's columns, outside of which a fact may have empty cells.
    """

    predicate: str
    indicator: str
    types: tuple[str, ...]
    beginning: str
    kinds: Mapping[int, str]
    texts: frozenset[int]
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FactKey:
    """Places of arguments that identify a fact: no two facts agree at all of them. `words` says so in messages.

    `columns`: names of all arguments, to name rows in messages; empty for a functional predicate. `tolerance`:
    of the last argument.
    """

    places: tuple[int, ...]
    words: str
    columns: Sequence[str]
    tolerance: Tolerance | None = None
    is_declared: bool = False


class ArrivingFacts:
    """The facts of a source: new ones are stored batch by batch, claims on stored ones at the end.

    A relation that is new gets its index when all facts are read.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb
        self.transaction = ExitStack()
        """The transaction of all that is stored, from the first batch on."""
        self._first = 0
        """The number of the first new fact."""
        self._count = 0
        self.repeats: Counter[str] = Counter()
        """Facts that repeat an earlier one of the source, by indicator."""
        self.repeated_lines: list[int] = []
        """Lines of the first of them."""
        self._refs, self._lines = array("q"), array("q")
        """Number and line of the first fact of each run in which both go up by one."""
        self._new: dict[str, StoredRelation] = {}
        """Relations without an index, by indicator."""

    def numbers(self, lines: Sequence[int]) -> range:
        """Numbers for facts of these lines."""
        if not self._first:
            self._begin()
        refs = self._kb.relations.new_refs(len(lines))
        is_one_run = lines[-1] - lines[0] == len(lines) - 1
        for ref, line in zip(refs, lines[:1] if is_one_run else lines, strict=False):
            if not self._refs or ref - self._refs[-1] != line - self._lines[-1]:
                self._refs.append(ref)
                self._lines.append(line)
        return refs

    def _line(self, ref: int) -> int:
        place = bisect_right(self._refs, ref) - 1
        return self._lines[place] + ref - self._refs[place]

    def _begin(self) -> None:
        """Begin to store, in a transaction that ends with the intake."""
        self._kb.sql(f"PRAGMA cache_size = -{CACHE_KIB}")
        self.transaction.callback(self._kb.sql, f"PRAGMA cache_size = -{connection.CACHE_KIB}")
        self.transaction.enter_context(self._kb.transaction())
        ((last,),) = self._kb.sql("SELECT last FROM fact_numbers")
        self._first = last + 1
        # Stored facts that the source has, too, with its line and what it says of them.
        columns = "relation, ref, line, source, types, basis, PRIMARY KEY (relation, ref)"
        self._kb.sql("DROP TABLE IF EXISTS temp.claims")
        self._kb.sql(f"CREATE TEMP TABLE claims ({columns}) WITHOUT ROWID")

    def add(
        self,
        kind: FactKind,
        refs: Sequence[int],
        columns: Sequence[Sequence[Value]],
        identities: Sequence[bytes],
        bases: Sequence[str | None],
    ) -> None:
        """Add facts of a kind, with their numbers. `bases`: what the source has in place of canonical names."""
        relations, types = self._kb.relations, str(rows.NAMES.encode(kind.types))
        relation = self._new.get(kind.indicator) or relations.get(kind.indicator)
        if relation is None:
            (relation,) = relations.made({kind.indicator: types}, indexed=False).values()
            self._new[kind.indicator] = relation
        tags = list(map(self._kb.symbols.tags, columns))
        own = None if types == relation.types else types
        has_origins = own is not None or any(bases)
        origins = [(own, None, None, None, None, basis) for basis in bases] if has_origins else ()
        known = relations.insert(relation, refs, tags, identities, origins)
        self._count += len(refs) - len(known)
        for place in known:
            found = relations.find(relation, [column[place] for column in tags])
            assert found is not None  # noqa: S101  it is known
            ref, source = found
            line = self._line(refs[place])
            claim = (relation.number, ref, line, source, own, bases[place])
            sql = "INSERT OR IGNORE INTO temp.claims VALUES (?, ?, ?, ?, ?, ?)"
            if ref >= self._first or not self._kb.write(sql, [claim]):
                self._note_repeat(kind.indicator, line)

    def _note_repeat(self, indicator: str, line: int) -> None:
        self.repeats[indicator] += 1
        if len(self.repeated_lines) < LINES_SHOWN:
            self.repeated_lines.append(line)

    def index(self) -> None:
        """Index the new relations, and count the facts that repeat an earlier one; to be called when all are read."""
        for indicator, relation in self._new.items():
            for ref in self._kb.relations.index_new(relation):
                self._count -= 1
                self._note_repeat(indicator, self._line(ref))
        self._new.clear()

    def facts(self, indicators: Iterable[str]) -> Iterator[FactRecord]:
        """The facts of these predicates as the source gives them."""
        for relation in self._made(indicators):
            found = self._kb.relations.records(relation, f"WHERE r.ref IN ({self._arrived(relation)})")
            for _, fact in list(found):
                yield FactRecord(fact.predicate, fact.arguments, fact.types, Source.GIVEN)

    def _made(self, indicators: Iterable[str]) -> list[StoredRelation]:
        found = (self._kb.relations.get(indicator) for indicator in sorted(indicators))
        return [relation for relation in found if relation is not None and self._first]

    def _arrived(self, relation: StoredRelation) -> str:
        """SELECT of the numbers of a relation's facts that the source has."""
        new = f"SELECT ref FROM {relation.table} WHERE ref >= {self._first}"  # noqa: S608  ours
        return f"{new} UNION ALL SELECT ref FROM temp.claims WHERE relation = {relation.number}"  # noqa: S608  ours

    def with_same_key(self, indicator: str, key: FactKey) -> Iterator[list[tuple[int, FactRecord]]]:
        """Facts with one key, by line; 0 stands for the line of a fact that is stored alone."""
        for relation in self._made([indicator]):
            keys = ", ".join(relation.columns[place] for place in key.places) or "1"
            touched = f"SELECT {keys} FROM {relation.table} WHERE ref IN ({self._arrived(relation)})"  # noqa: S608  ours
            groups_of = f"FROM {relation.table} WHERE ({keys}) IN ({touched}) GROUP BY {keys}"
            crowded = f"SELECT {keys} {groups_of} HAVING count(*) > 1"
            wanted = f"SELECT ref FROM {relation.table} WHERE ({keys}) IN ({crowded})"  # noqa: S608  ours
            claims = f"SELECT ref, line FROM temp.claims WHERE relation = {relation.number} AND ref IN ({wanted})"  # noqa: S608
            line_of = dict(self._kb.sql(claims))
            groups: dict[tuple[Value, ...], list[tuple[int, FactRecord]]] = {}
            for ref, fact in self._kb.relations.records(relation, f"WHERE r.ref IN ({wanted})"):
                same = tuple(fact.arguments[place] for place in key.places)
                line = self._line(ref) if ref >= self._first else line_of.get(ref, 0)
                groups.setdefault(same, []).append((line, fact))
            for group in groups.values():
                covered = key.tolerance is not None and key.tolerance.covers_all(
                    [fact.arguments[-1] for _, fact in group]
                )
                if not covered:
                    yield sorted(group, key=itemgetter(0))

    def withdraw(self, facts: Iterable[FactRecord]) -> list[tuple[int, str]]:
        """Take back those facts that the source has, and return the lines of their rows and their indicators."""
        withdrawn = []
        for fact in facts:
            (relation,) = self._made([fact.indicator])
            ref, _ = self._kb.relations.find(relation, self._kb.symbols.tags(fact.arguments)) or (0, None)
            if ref >= self._first:
                withdrawn.append((self._line(ref), relation.indicator))
                self._count -= 1
                self._kb.relations.delete(relation, [ref])
            else:
                sql = "DELETE FROM temp.claims WHERE relation = ? AND ref = ? RETURNING line"
                found = self._kb.sql(sql, (relation.number, ref))
                withdrawn += [(line, relation.indicator) for (line,) in found]
        return sorted(withdrawn)

    def store(self) -> tuple[int, Counter[Source]]:
        """Settle the claims, and end the transaction.

        Returns the number of distinct facts, and how many of them were known before by their source.
        """
        known: Counter[Source] = Counter()
        if self._first:
            relations = {relation.number: relation for relation in self._kb.relations.all()}
            for source, count in self._kb.sql("SELECT source, count(*) FROM temp.claims GROUP BY source"):
                known[Source(source or Source.GIVEN)] += count
            # Nothing else is better than a given fact with the types of its relation.
            differing = "c.types IS NOT NULL OR c.basis IS NOT NULL OR c.ref IN (SELECT ref FROM fact_origins)"
            sql = f"SELECT relation, ref, types, basis FROM temp.claims AS c WHERE {differing}"  # noqa: S608  ours
            for number, ref, types, basis in self._kb.sql(sql):
                self._kb.relations.improve(relations[number], ref, (types, None, None, None, None, basis))
            # Withdrawn facts that are given again stand again.
            self._kb.settle_withdrawals()
        self.transaction.close()
        return self._count + known.total(), known
