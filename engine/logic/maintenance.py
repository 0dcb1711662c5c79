"""Derived atoms and rule instances follow changes of facts, at a cost in proportion to what changes.

Derived predicates are maintained layer by layer. What rested on a row that is gone, or on the absence of a row that is
new, is taken out; then what has another derivation comes back, and what is new is added semi-naively (delete and
rederive: Gupta, Mumick and Subrahmanian 1993, section 7). Instances of a rule name the rows that they join, so those of
a row that is gone are deleted by its number, and new ones are joined from the new rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.engine.logic.compile import CompiledPremise
from hapax.grammar.errors import HapaxError
from hapax.kb.atoms.changes import TableChange, TableChanges
from hapax.kb.atoms.derived_relations import Relations, StoredDerivation
from hapax.kb.atoms.facts import columns_of

_MOST_REMOVED = 0.1
"""Share of a predicate's atoms beyond which filling its table again is no slower than deleting and rederiving."""

# Atoms that may be taken out whatever their share: a tenth of a few atoms is soon reached.
_FEW = 1_000


class NotMaintained(HapaxError):  # noqa: N818  named after the situation, as all our errors are
    """A predicate or rule that is to be derived anew; the message gives the reason."""


@dataclass(frozen=True)
class MaintainedPremise:
    """A premise over the tables, over the views of their states before, and over those of their states now."""

    tables: tuple[str, ...]
    old: CompiledPremise
    now: CompiledPremise


@dataclass(frozen=True)
class MaintainedClause:
    """A rule of a derived predicate: the predicate's table, the premise and SQL for the conclusion's arguments."""

    table: str
    premise: MaintainedPremise
    head: tuple[str, ...]


@dataclass(frozen=True)
class MaintainedLayer:
    """Predicates that depend on each other: their tables by indicator, their clauses and stated atoms."""

    tables: Mapping[str, str]
    clauses: Sequence[MaintainedClause]
    stated: Sequence[tuple[str, Sequence[int]]]
    """Table and tags of each atom that a rule file states."""


class Maintainer:
    """Applies the changes of relations to derived atoms and rule instances."""

    def __init__(self, relations: Relations, changes: TableChanges, tables: Mapping[str, str]) -> None:
        """`tables`: by indicator, those of derived predicates as soon as they are known."""
        self.relations, self.changes, self._tables = relations, changes, tables

    def old(self) -> dict[str, str]:
        """Names of the states before, by indicator."""
        return {indicator: self._view(table, "old") for indicator, table in self._tables.items()}

    def now(self) -> dict[str, str]:
        """Names of the states now, by indicator."""
        return {indicator: self._view(table, "now") for indicator, table in self._tables.items()}

    def _view(self, table: str, state: str) -> str:
        change = self.changes.get(table)
        return table if change is None else str(getattr(change, state))

    def affects(self, body: CompiledPremise) -> bool:
        """True if a table that the premise reads has changed."""
        tables = {*body.tables, *(self._tables[item.indicator] for item in body.absent)}
        return any(self.changes.get(table) is not None for table in tables)

    def open(self, tables: Mapping[str, str]) -> None:
        """Open the changes of a layer's tables, by indicator, before its clauses are compiled."""
        for indicator, table in tables.items():
            self.changes.open(table, columns_of(indicator))

    # -- derived predicates

    def maintain(self, layer: MaintainedLayer) -> None:
        """Bring the tables of a layer up to date. Raises NotMaintained, and leaves them as they were."""
        for indicator, table in layer.tables.items():
            columns = columns_of(indicator)
            typed = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
            key = ", ".join(columns)
            # heads: candidates, by their cells; round: rows that the last round took out or added, by number.
            for name, kind in (
                ("heads", f"{typed}, PRIMARY KEY ({key})"),
                ("round", f"{typed}, ref INTEGER, PRIMARY KEY ({key})"),
            ):
                self.relations.run(f"DROP TABLE IF EXISTS temp.{name}_{table}")
                self.relations.run(f"CREATE TEMP TABLE {name}_{table} ({kind}) WITHOUT ROWID")
        self._remove(layer)
        self._add(layer)
        for indicator, table in layer.tables.items():
            change = self._change(table)
            gone, new = self.changes.count(change.gone), self.changes.count(change.new)
            self.relations.maintained(indicator, new - gone)
            if not gone and not new:
                self.changes.discard(table)
            for name in ("heads", "round"):
                self.relations.run(f"DROP TABLE temp.{name}_{table}")

    def give_up(self, layer: Mapping[str, str]) -> None:
        """Forget the changes of a layer, by indicator, which is to be filled again."""
        for table in layer.values():
            self.changes.discard(table)

    def _change(self, table: str) -> TableChange:
        change = self.changes.get(table)
        assert change is not None  # noqa: S101  it was opened
        return change

    def _remove(self, layer: MaintainedLayer) -> None:
        """Take out all atoms of which a derivation is gone, in rounds: more than are gone, if some have another one."""
        # Facts that are gone, and clauses whose premise may hold no longer.
        for table, change in self._facts(layer):
            self._candidates(table, f"SELECT {', '.join(change.columns)} FROM {change.gone}")  # noqa: S608  ours
        for clause in layer.clauses:
            for select in self._seeds(layer, clause, removing=True):
                self._candidates(clause.table, select)
        allowed = {
            table: max(_FEW, _MOST_REMOVED * self.relations.atom_count(indicator))
            for indicator, table in layer.tables.items()
        }
        while self._remove_round(layer):
            for table, most in allowed.items():
                if self.changes.count(self._change(table).gone) > most:
                    raise NotMaintained("what is gone may take a tenth of its atoms with it")
            # What followed from the rows of this round may fall in the next one.
            self._recursive(layer, removing=True)
        if any(self.changes.count(self._change(table).gone) for table in allowed) and any(
            "(" in cell for clause in layer.clauses for cell in clause.head
        ):
            raise NotMaintained("a rule of it calculates, so that other derivations of an atom cannot be looked up")

    def _remove_round(self, layer: MaintainedLayer) -> int:
        """Move the candidates that are atoms to the rows that are gone; returns how many were not among them before."""
        removed = 0
        for table in layer.tables.values():
            change = self._change(table)
            cells = ", ".join(f"x.{column}" for column in (*change.columns, "ref"))
            # Only what this round moves is followed in the next one.
            self.relations.run(f"DELETE FROM temp.round_{table}")  # noqa: S608  ours
            removed += self.relations.run(
                f"INSERT INTO temp.round_{table} SELECT {cells} FROM temp.heads_{table} AS h "  # noqa: S608  ours
                # SQLite keeps the order of a CROSS JOIN: from the few candidates to the index of the table.
                f"CROSS JOIN {change.now} AS x ON {change.same('x', 'h')}"
            )
            self.relations.run(f"INSERT INTO {change.gone} SELECT * FROM temp.round_{table}")  # noqa: S608  ours
            self.relations.run(f"DELETE FROM temp.heads_{table}")  # noqa: S608  ours
        return removed

    def _add(self, layer: MaintainedLayer) -> None:
        """Bring back what has another derivation, and add what is new, in rounds."""
        for clause in layer.clauses:
            change = self._change(clause.table)
            # What is gone comes back if a clause, a rule file or a fact still gives it.
            if self.changes.count(change.gone):
                same = [f"h.{column} = {cell}" for column, cell in zip(change.columns, clause.head, strict=True)]
                heads = [f"h.{column}" for column in change.columns]
                self._candidates(clause.table, clause.premise.now.select_from([f"{change.gone} AS h"], heads, same))
        for table, tags in layer.stated:
            self._candidates(table, f"SELECT {', '.join(map(str, tags))}")
        for indicator, table in layer.tables.items():
            change, relation = self._change(table), self.relations.relation(indicator)
            cells = ", ".join(f"h.{column}" for column in change.columns)
            facts = self._view(relation, "now")
            still = f"SELECT {cells} FROM {change.gone} AS h CROSS JOIN {facts} AS r ON {change.same('r', 'h')}"  # noqa: S608
            self._candidates(table, still)
        for table, change in self._facts(layer):
            self._candidates(table, f"SELECT {', '.join(change.columns)} FROM {change.new}")  # noqa: S608  ours
        for clause in layer.clauses:
            for select in self._seeds(layer, clause, removing=False):
                self._candidates(clause.table, select)
        while self._add_round(layer):
            self._recursive(layer, removing=False)

    def _add_round(self, layer: MaintainedLayer) -> int:
        """Restore the candidates that are gone, and insert those that are missing; returns their number."""
        added = 0
        for table in layer.tables.values():
            change, latest = self._change(table), f"temp.round_{table}"
            key = ", ".join(change.columns)
            cells = ", ".join(f"x.{column}" for column in (*change.columns, "ref"))
            # Rows that are inserted below get larger numbers.
            high = self.relations.highest(table)
            self.relations.run(f"DELETE FROM {latest}")  # noqa: S608  ours
            added += self.relations.run(
                f"INSERT INTO {latest} SELECT {cells} FROM temp.heads_{table} AS h "  # noqa: S608  ours
                f"CROSS JOIN {change.gone} AS x ON {change.same('x', 'h')}"
            )
            # A row that is gone is still in the table, under its number; only the views leave it out.
            self.relations.run(f"DELETE FROM {change.gone} WHERE ({key}) IN (SELECT {key} FROM {latest})")  # noqa: S608
            self.relations.run(f"INSERT OR IGNORE INTO {table} ({key}) SELECT {key} FROM temp.heads_{table}")  # noqa: S608
            inserted = f"SELECT {key}, ref FROM {table} WHERE ref > {high}"  # noqa: S608  ours
            self.relations.run(f"INSERT INTO {change.new} {inserted}")
            added += self.relations.run(f"INSERT INTO {latest} {inserted}")
            self.relations.run(f"DELETE FROM temp.heads_{table}")  # noqa: S608  ours
        return added

    def _facts(self, layer: MaintainedLayer) -> Iterator[tuple[str, TableChange]]:
        """Tables of the layer whose predicates have facts that changed, with the change of these facts."""
        for indicator, table in layer.tables.items():
            change = self.changes.get(self.relations.relation(indicator))
            if change is not None:
                yield table, change

    def _seeds(self, layer: MaintainedLayer, clause: MaintainedClause, *, removing: bool) -> Iterator[str]:
        """SELECTs of the conclusions that lower tables' changes may take out or add."""
        body = clause.premise.old if removing else clause.premise.now
        own = set(layer.tables.values())
        for place, table in enumerate(clause.premise.tables):
            change = self.changes.get(table)
            # Changes of the layer's own tables are followed round by round instead, by `_recursive`.
            if change is not None and table not in own:
                rows = change.gone if removing else change.new
                yield body.select_from([f"{rows} AS t{place}"], clause.head, ())
        for absent in body.absent:
            change = self.changes.get(self._tables[absent.indicator])
            if change is not None:
                # A negation takes out when a row appears, and adds when one vanishes.
                appeared, vanished = (change.new, change.gone) if removing else (change.gone, change.new)
                yield body.select_from([f"{appeared} AS d"], clause.head, [absent.matches("d")])
                # A row with the first arguments makes other atoms false, until the last such row is gone.
                if absent.covered:
                    same = absent.matches("d", absent.covered)
                    yield body.select_from([f"{vanished} AS d"], clause.head, [same])

    def _recursive(self, layer: MaintainedLayer, *, removing: bool) -> None:
        """Candidates that follow from a row of the last round and any rows."""
        own = set(layer.tables.values())
        for clause in layer.clauses:
            # What may be lost held in the states before; what may be new holds in those now.
            body = clause.premise.old if removing else clause.premise.now
            for place, table in enumerate(clause.premise.tables):
                if table in own and self.changes.count(f"temp.round_{table}"):
                    select = body.select_from([f"temp.round_{table} AS t{place}"], clause.head, ())
                    self._candidates(clause.table, select)

    def _candidates(self, table: str, select: str) -> None:
        self.relations.run(f"INSERT OR IGNORE INTO temp.heads_{table} {select}")

    # -- instances of rules

    def instances(self, derivation: StoredDerivation, premise: MaintainedPremise, values: Sequence[str]) -> int:
        """Bring a rule's stored instances up to date and return their number. `values`: SQL of the variables."""
        table = derivation.table
        premises = [f"p{number}" for number in range(1, len(premise.tables) + 1)]
        key = ", ".join(premises)
        numbers = ", ".join(f"{name} INTEGER NOT NULL" for name in premises)
        self.relations.run("DROP TABLE IF EXISTS temp.unmatched")
        self.relations.run(f"CREATE TEMP TABLE unmatched ({numbers}, PRIMARY KEY ({key})) WITHOUT ROWID")
        self.relations.index_premises(derivation, len(premises))
        # Numbers of rows are those of before in the first step, and those of now in the others.
        difference = -self._delete(table, key, self._lost(premise))
        self._move(table, premise, premises)
        difference -= self._delete(table, key, self._contradicted(premise))
        variables = [f"v{number}" for number in range(1, len(values) + 1)]
        cells = ", ".join([*variables, *premises])
        typed = ", ".join([*(f"{name} INTEGER" for name in variables), numbers])
        self.relations.run("DROP TABLE IF EXISTS temp.matched")
        self.relations.run(f"CREATE TEMP TABLE matched ({typed}, PRIMARY KEY ({key})) WITHOUT ROWID")
        # An instance may be found by a new row and by a negation as well.
        for select in self._found(premise, [*values, *premise.now.references]):
            self.relations.run(f"INSERT OR IGNORE INTO temp.matched {select}")
        self.relations.before_new_instances(derivation)
        difference += self.relations.run(f"INSERT INTO {table} ({cells}) SELECT {cells} FROM temp.matched")  # noqa: S608
        self.relations.run("DROP TABLE temp.unmatched")
        self.relations.run("DROP TABLE temp.matched")
        return self.relations.recount(derivation, difference)

    def _delete(self, table: str, key: str, selects: Iterable[str]) -> int:
        """Delete the instances whose premises, by number, are in rows of SELECTs; returns how many there were."""
        self.relations.run("DELETE FROM temp.unmatched")
        count = 0
        for select in selects:
            count += self.relations.run(f"INSERT OR IGNORE INTO temp.unmatched {select}")
        unmatched = f"SELECT {key} FROM temp.unmatched"  # noqa: S608  ours
        return self.relations.run(f"DELETE FROM {table} WHERE ({key}) IN ({unmatched})") if count else 0  # noqa: S608

    def _lost(self, premise: MaintainedPremise) -> Iterator[str]:
        """SELECTs of the premises, by number, of instances with a row that is gone."""
        for place, table in enumerate(premise.tables):
            change = self.changes.get(table)
            if change is not None:
                yield premise.old.select_from([f"{change.gone} AS t{place}"], premise.old.references, ())

    def _move(self, table: str, premise: MaintainedPremise, names: Sequence[str]) -> None:
        """Give the premises of instances the new numbers of rows that have moved."""
        for name, source in zip(names, premise.tables, strict=True):
            change = self.changes.get(source)
            if change is not None and self.changes.count(change.moved):
                now = f"(SELECT m.now FROM {change.moved} AS m WHERE m.ref = {name})"  # noqa: S608  ours
                where = f"{name} IN (SELECT ref FROM {change.moved})"  # noqa: S608  ours
                self.relations.run(f"UPDATE {table} SET {name} = {now} WHERE {where}")  # noqa: S608  ours

    def _kept(self, body: CompiledPremise, premise: MaintainedPremise, places: range) -> CompiledPremise:
        """The premise with only rows that were there before and are now, in these places."""
        tables = list(body.tables)
        for place in places:
            tables[place] = self._view(premise.tables[place], "kept")
        return replace(body, tables=tuple(tables))

    def _contradicted(self, premise: MaintainedPremise) -> Iterator[str]:
        """SELECTs of the premises, by number, of instances whose negations held before and may no longer hold."""
        body = self._kept(premise.old, premise, range(len(premise.tables)))
        for absent in body.absent:
            table = self._tables[absent.indicator]
            change = self.changes.get(table)
            if change is None:
                continue
            yield body.select_from([f"{change.new} AS d"], body.references, [absent.matches("d")])
            # It also ceases to hold where no row with its first arguments is left.
            if absent.covered:
                unknown = f"NOT {absent.known_false(change.now)}"
                conditions = [absent.matches("d", absent.covered), unknown]
                yield body.select_from([f"{change.gone} AS d"], body.references, conditions)

    def _found(self, premise: MaintainedPremise, columns: Sequence[str]) -> Iterator[str]:
        """SELECTs of new instances: of those that join a new row, and of those whose negations did not hold before."""
        for place, table in enumerate(premise.tables):
            change = self.changes.get(table)
            if change is not None:
                # The first new row of an instance is in this place, so that each is given once.
                body = self._kept(premise.now, premise, range(place))
                yield body.select_from([f"{change.new} AS t{place}"], columns, ())
        body = self._kept(premise.now, premise, range(len(premise.tables)))
        for absent in body.absent:
            change = self.changes.get(self._tables[absent.indicator])
            if change is None:
                continue
            yield body.select_from([f"{change.gone} AS d"], columns, [absent.matches("d")])
            # It also begins to hold with the first row that has its first arguments.
            if absent.covered:
                unknown_before = f"NOT {absent.known_false(change.old)}"
                conditions = [absent.matches("d", absent.covered), unknown_before]
                yield body.select_from([f"{change.new} AS d"], columns, conditions)
