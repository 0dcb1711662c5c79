"""Statements that `derive` concluded, found by their ids through an index.

The index is made when such a statement is first looked up by its id, and follows later derivations then. An entry may
outlive its instance, so that what it names is compared with the id when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb.atoms.derived_relations import BATCH, Relations
from hapax.kb.atoms.derived_statements import RuleWords
from hapax.kb.atoms.symbols import Symbols
from hapax.kb.connection import translated
from hapax.kb.records import statement_id
from hapax.kb.store import KnowledgeBase

_RULES = "SELECT name, number, words, indexed FROM derivations WHERE words IS NOT NULL ORDER BY number"
_FOUND = (
    "SELECT name, number, words, instance FROM derived_ids JOIN derivations USING (number) "
    "WHERE derived_ids.id = ? AND words IS NOT NULL ORDER BY name, instance"
)


@dataclass(frozen=True, slots=True)
class _RuleInstances:
    """The instances of a rule: the names of its variables, and the last instance that is in the index."""

    rule: str
    number: int
    names: tuple[str, ...]
    indexed: int

    @property
    def table(self) -> str:
        return f"_instances_{self.number}"

    @property
    def columns(self) -> str:
        return ", ".join(["id", *(f"v{place}" for place, _ in enumerate(self.names, 1))])

    def ids(self, symbols: Symbols, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, int, int]]:
        """The entries of these rows: id, the rule's number and the instance."""
        values = symbols.values(tag for row in rows for tag in row[1:] if tag is not None)
        for instance, *tags in rows:
            pairs = zip(self.names, tags, strict=True)
            bound = [(name, values[tag]) for name, tag in pairs if tag is not None]
            yield statement_id(self.rule, bound), self.number, instance


class DerivedIds:
    """The index of an open knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    @property
    def is_complete(self) -> bool:
        """True if all statements are in the index, which has none of rules whose words were not stored."""
        if self._kb.sql("SELECT 1 FROM derivations WHERE kind = 'rule' AND words IS NULL"):
            return False
        return self._kb.has("derived_ids") and not self._unindexed()

    def prepare(self) -> bool:
        """Index the statements that are not in the index yet; True if all are in it then.

        Nothing is done if the file may not be written, or if another process is writing to it.
        """
        if self.is_complete:
            return True
        if self._kb.path is None or not self._kb.is_read_only:
            self._add()
            return self.is_complete
        try:
            # A second connection writes, and gives up at once where it cannot: without the index a look-up is slower.
            with KnowledgeBase(self._kb.path) as writer, writer.transaction(seconds=0):
                DerivedIds(writer)._add()
        except HapaxError:
            return False
        return self.is_complete

    def find(self, identity: str) -> Iterator[tuple[str, int]]:
        """Rule and number of the instances that are the statement with this id."""
        symbols = Relations(self._kb).symbols
        for rule, number, words, instance in self._kb.sql(_FOUND, (identity,)):
            entry = _RuleInstances(rule, number, RuleWords.from_json(words).variables, instance)
            for row in self._kb.sql(f"SELECT {entry.columns} FROM {entry.table} WHERE id = ?", (instance,)):  # noqa: S608
                if list(entry.ids(symbols, [row])) == [(identity, number, instance)]:
                    yield rule, instance

    def all(self, rules: Sequence[str] = ()) -> Iterator[str]:
        """The ids in the index whose instances are there, of these rules or of all."""
        for entry in self._rules():
            if not rules or entry.rule in rules:
                sql = f"SELECT DISTINCT d.id FROM derived_ids AS d JOIN {entry.table} AS i ON i.id = d.instance "  # noqa: S608  ours
                for (identity,) in self._kb.sql(f"{sql} WHERE d.number = ?", (entry.number,)):
                    yield identity

    def _rules(self) -> list[_RuleInstances]:
        return [
            _RuleInstances(rule, number, RuleWords.from_json(words).variables, indexed)
            for rule, number, words, indexed in self._kb.sql(_RULES)
        ]

    def _unindexed(self) -> list[_RuleInstances]:
        """The rules with instances that are not in the index."""
        found = []
        with translated(self._kb.place):
            for waiting in self._rules():
                sql = f"SELECT 1 FROM {waiting.table} WHERE id > ? LIMIT 1"  # noqa: S608  ours
                if self._kb.sql(sql, (waiting.indexed,)):
                    found.append(waiting)
        return found

    def _add(self) -> None:
        """Index what is not in the index yet, in one transaction."""
        conn, symbols = self._kb.connection, Relations(self._kb).symbols
        with self._kb.transaction():
            self._kb.make("derived_ids")
            for waiting in self._unindexed():
                # Entries of instances that were replaced since.
                conn.execute(
                    "DELETE FROM derived_ids WHERE number = ? AND instance > ?", (waiting.number, waiting.indexed)
                )
                sql = f"SELECT {waiting.columns} FROM {waiting.table} WHERE id > ? ORDER BY id"  # noqa: S608  ours
                cursor, last = conn.execute(sql, (waiting.indexed,)), waiting.indexed
                while batch := cursor.fetchmany(BATCH):
                    conn.executemany("INSERT OR REPLACE INTO derived_ids VALUES (?, ?, ?)", waiting.ids(symbols, batch))
                    last = batch[-1][0]
                conn.execute("UPDATE derivations SET indexed = ? WHERE number = ?", (last, waiting.number))
