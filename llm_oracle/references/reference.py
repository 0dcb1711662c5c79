"""A reference: the facts and names of a mapping for one rule library, read from its tables when first needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

from hapax.grammar.data_types import type_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import Closedness, PredicateKind, Tolerance
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.kb.records import content_id
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.references.mapping import Mapping, PredicateSection, SourceSection, TypeSection
from hapax.llm_oracle.references.names import NameIndex, value_key
from hapax.llm_oracle.references.reference_tables import Cell, TableRow, read_table, table_faults

LONGEST_NAME = 400
"""Characters of a name, as of a value in a sentence that is read."""

CONTRADICTING_SHOWN = 5
"""Right values that the basis of a denial lists."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Truth of a claim by a reference, None if it does not cover the claim, and the row or listing that says so."""

    truth: bool | None
    basis: str = ""


NOT_COVERED = Verdict(None)


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A fact of a reference, with the row of the table that states it."""

    arguments: tuple[Value, ...]
    popularity: float
    number: int


@dataclass(slots=True)
class ReferenceRelation:
    """All facts of a predicate. Keys are those of `value_key`."""

    indicator: str
    table: str
    closedness: Closedness
    source: SourceSection
    tolerance: Tolerance | None = None
    rows: dict[tuple[Value, ...], ReferenceRow] = field(default_factory=dict)
    _by_argument: dict[tuple[int, Value], list[tuple[Value, ...]]] = field(default_factory=dict)

    def add(self, row: ReferenceRow) -> None:
        """Add a fact. Of rows with the same fact the first counts, with the highest popularity."""
        keys = tuple(value_key(value) for value in row.arguments)
        known = self.rows.get(keys)
        if known is not None:
            if row.popularity > known.popularity:
                self.rows[keys] = ReferenceRow(known.arguments, row.popularity, known.number)
            return
        self.rows[keys] = row
        for position, key in enumerate(keys):
            self._by_argument.setdefault((position, key), []).append(keys)

    def with_argument(self, position: int, key: Value) -> list[ReferenceRow]:
        """The facts with a key at this position."""
        return [self.rows[keys] for keys in self._by_argument.get((position, key), ())]

    def cited(self, row: ReferenceRow) -> str:
        """A row as a decision cites it."""
        listed = ", ".join(map(str, row.arguments))
        return f"{self.source.title}, {self.table} row {row.number}: {self.indicator.partition('/')[0]}({listed})"

    def verdict(self, keys: tuple[Value, ...]) -> Verdict:
        """Truth of the fact with these keys."""
        row = self.rows.get(keys) or self._tolerated(keys)
        if row is not None:
            return Verdict(truth=True, basis=self.cited(row))
        if self.closedness is Closedness.OPEN:
            return NOT_COVERED
        about = self.with_argument(0, keys[0])
        if self.closedness is Closedness.CLOSED_FOR_FIRST and not about:
            return NOT_COVERED
        basis = f"{self.source.title}, {self.table} ({self.closedness.value}): no such row"
        if about:
            right = [" ".join(map(str, row.arguments[1:])) for row in about[:CONTRADICTING_SHOWN]]
            more = ", ..." if len(about) > CONTRADICTING_SHOWN else ""
            basis += f"; for {about[0].arguments[0]} it has {', '.join(right)}{more} (row {about[0].number})"
        return Verdict(truth=False, basis=basis)

    def _tolerated(self, keys: tuple[Value, ...]) -> ReferenceRow | None:
        """The fact whose last argument is the same within the predicate's tolerance."""
        if self.tolerance is None:
            return None
        for row in self.with_argument(0, keys[0]):
            same = tuple(map(value_key, row.arguments[:-1])) == keys[:-1]
            if same and self.tolerance.covers(row.arguments[-1], keys[-1]):
                return row
        return None


@dataclass
class Reference:
    """The facts and names of one mapping for a library. Tables are read when a predicate or type is first needed.

    Raises HapaxError for faulty tables, and if the mapping has predicates of which the library knows none.
    """

    mapping: Mapping
    folder: Path
    library: Library
    _tables: dict[str, list[TableRow]] = field(default_factory=dict)
    _relations: dict[str, ReferenceRelation] = field(default_factory=dict)
    _names: dict[str, NameIndex] = field(default_factory=dict)

    @cached_property
    def predicates(self) -> tuple[str, ...]:
        """Indicators of the mapped predicates that the library has."""
        known = {signature.indicator for signature in self.library.completed().signatures}
        return tuple(indicator for indicator in self.mapping.predicates if indicator in known)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Data types of which the reference knows values: those that it maps, and those of its predicates' arguments.

        Supertypes are included: a city is a location.
        """
        known = list(self.mapping.types)
        for indicator in self.predicates:
            if self.mapping.predicates[indicator].typed:
                known += self._argument_types(indicator)
        types = {type_key(data_type): data_type for data_type in known}
        for _, upper in self.library.subtypes:
            if any(self._is_a(lower, upper) for lower in known):
                types.setdefault(type_key(upper), upper)
        return tuple(types.values())

    @cached_property
    def revision(self) -> str:
        """Hash of the mapping, its sources' versions and the files of its tables."""
        files = []
        for table in self.mapping.tables.values():
            if table.file is not None:
                try:
                    files.append((self.folder / table.file).read_bytes().hex())
                except OSError:
                    files.append("")  # reading the table says what is wrong
        sources = [self.mapping.source_of(table).title for table in self.mapping.tables]
        return content_id("reference", self.mapping.model_dump_json(), sources, *files)[:12]

    def relation(self, indicator: str) -> ReferenceRelation:
        """The facts of one of the `predicates`."""
        if indicator not in self._relations:
            self._relations[indicator] = self._read_relation(indicator, self.mapping.predicates[indicator])
        return self._relations[indicator]

    def names(self, data_type: str) -> NameIndex | None:
        """Names of a mapped data type; None for any other."""
        key = type_key(data_type)
        if key not in self._names:
            sections = [section for name, section in self.mapping.types.items() if type_key(name) == key]
            if not sections:
                return None
            self._names[key] = self._read_names(sections[0])
        return self._names[key]

    # -- judging

    def judge(self, indicator: str, arguments: Sequence[Value]) -> Verdict:
        """Truth of a ground atom: true if it is so of any bearers of the names, false if it is so of none."""
        if indicator not in self.predicates:
            return NOT_COVERED
        relation = self.relation(indicator)
        types = self._argument_types(indicator)
        # For each argument the keys that it can mean, of which every combination is looked up.
        meanings = [self._meanings(value, data_type) for value, data_type in zip(arguments, types, strict=True)]
        verdicts = [relation.verdict(keys) for keys in product(*meanings)]
        true = next((verdict for verdict in verdicts if verdict.truth), None)
        if true is not None:
            return true
        # False only if the tables deny it of all bearers.
        return NOT_COVERED if any(verdict.truth is None for verdict in verdicts) else verdicts[0]

    def judge_type(self, value: Value, data_type: str) -> Verdict:
        """Truth of a claim of a data type: true where it or a subtype lists the name, false where it is closed."""
        closed: SourceSection | None = None
        for name, section in self.mapping.types.items():
            if not self._is_a(name, data_type):
                continue
            names = self.names(name)
            source = self.mapping.source_of(section.table)
            if names is not None and names.keys(str(value)):
                return Verdict(truth=True, basis=f"{source.title}, {section.table}: lists {value} as {name}")
            if type_key(name) == type_key(data_type) and section.closedness is Closedness.CLOSED:
                closed = source
        verdict = self._type_by_arguments(value, data_type)
        if verdict.truth is None and closed is not None:
            return Verdict(truth=False, basis=f"{closed.title}: lists all values of {data_type}, but not {value}")
        return verdict

    def _type_by_arguments(self, value: Value, data_type: str) -> Verdict:
        """True for an argument of a row, whose type is that of its predicate."""
        for indicator in self.predicates:
            if not self.mapping.predicates[indicator].typed:
                continue
            for position, own_type in enumerate(self._argument_types(indicator)):
                if not self._is_a(own_type, data_type) or self.names(own_type) is not None:
                    continue  # a mapped type has its own list of names
                rows = self.relation(indicator).with_argument(position, value_key(value))
                if rows:
                    return Verdict(truth=True, basis=self.relation(indicator).cited(rows[0]))
        return NOT_COVERED

    # -- proposing

    def values(self, indicator: str, pattern: Sequence[Value | None], position: int) -> dict[Value, float]:
        """Values at an open position that make the pattern true, with their popularity; None matches anything."""
        relation = self.relation(indicator)
        types = self._argument_types(indicator)
        bound: dict[int, Value] = {}
        for place, value in enumerate(pattern):
            if value is None:
                continue
            meanings = self._meanings(value, types[place], canonical_first=True)
            if len(meanings) != 1:
                return {}  # an ambiguous name is not a question that a table can answer
            bound[place] = meanings[0]
        popularities: dict[Value, float] = {}
        names = self.names(types[position])
        for row in self._matching(relation, bound):
            value = row.arguments[position]
            popularity = row.popularity
            # Without a popularity of the row, that of the value.
            if names is not None and not self.mapping.predicates[indicator].popularity:
                popularity = names.popularity(str(value)) or 0.0
            popularities[value] = max(popularities.get(value, 0.0), popularity)
        return popularities

    @staticmethod
    def _matching(relation: ReferenceRelation, bound: dict[int, Value]) -> Iterator[ReferenceRow]:
        if not bound:
            yield from relation.rows.values()
            return
        # By the index of the first bound argument; the other ones are compared row by row.
        (place, key), *rest = bound.items()
        for row in relation.with_argument(place, key):
            if all(value_key(row.arguments[position]) == wanted for position, wanted in rest):
                yield row

    # -- names

    def canonical(self, value: str, data_type: str) -> str | None:
        """The canonical name of a value of a data type or a subtype; None if no name or several match."""
        found: dict[str, str] = {}
        for name in self.mapping.types:
            if self._is_a(name, data_type):
                names = self.names(name)
                keys = names.keys(value) if names is not None else []
                found.update((key, names.entities[key].name) for key in keys if names is not None)
        return next(iter(found.values())) if len(found) == 1 else None

    def names_type(self, data_type: str) -> bool:
        """True if the mapping lists names of a data type or of a subtype."""
        return any(self._is_a(name, data_type) for name in self.mapping.types)

    def _meanings(self, value: Value, data_type: str, *, canonical_first: bool = False) -> list[Value]:
        """Keys of all that an argument can mean; an unknown name means itself.

        `canonical_first`: a canonical name means nothing else.
        """
        if not isinstance(value, str):
            return [value]
        if self.library.is_numeric(data_type):
            number = parse_number(value, data_type)
            return [value_key(value) if number is None else number]
        names = self.names(data_type)
        keys: list[Value] = []
        if names is not None:
            keys += names.keys(value) if canonical_first else names.meanings(value)
        return keys or [value_key(value)]

    def _is_a(self, lower: str, upper: str) -> bool:
        return type_key(lower) == type_key(upper) or self.library.is_subtype(lower, upper)

    def _argument_types(self, indicator: str) -> tuple[str, ...]:
        return self.library.signature(indicator).argument_types

    # -- reading

    def _rows(self, table: str) -> list[TableRow]:
        if table not in self._tables:
            self._tables[table] = read_table(table, self.mapping.tables[table], self.folder)
        return self._tables[table]

    def _checked_rows(self, table: str, columns: Iterable[str]) -> list[TableRow]:
        """The rows of a table that has these columns."""
        rows = self._rows(table)
        if not rows:
            raise HapaxError(f"{self._place(table)}: has no rows. Fill the table, or remove it from the mapping.")
        missing = [column for column in columns if column not in rows[0].cells]
        if missing:
            raise HapaxError(
                f"{self._place(table)}: has no column {', '.join(map(repr, missing))}; "
                f"its columns are {', '.join(map(repr, rows[0].cells))}. Correct the mapping or the table."
            )
        return rows

    def _place(self, table: str) -> str:
        file = self.mapping.tables[table].file
        return f"Table {table}" if file is None else str(self.folder / file)

    def _read_names(self, section: TypeSection) -> NameIndex:
        """Names of a data type. Rows without a name say nothing."""
        optional = [section.popularity] if section.popularity else []
        rows = self._checked_rows(section.table, [section.name, *section.aliases, *optional])
        names, faults = NameIndex(), _Faults(self._place(section.table))
        for row in rows:
            name = faults.text(row, section.name)
            if not name:
                continue
            # The table's own name stays an alias of the canonical one.
            aliases = [name] if name in section.rename else []
            for column in section.aliases:
                aliases += _names_in(row.cells.get(column), self.mapping.tables[section.table].separator)
            names.add(section.rename.get(name, name), faults.popularity(row, section.popularity), aliases)
        for alias, name in section.also.items():
            names.add(name, aliases=[alias])
        faults.refuse()
        return names

    def _read_relation(self, indicator: str, section: PredicateSection) -> ReferenceRelation:
        """The facts of a predicate. Rows with a blank argument say nothing."""
        optional = [section.popularity] if section.popularity else []
        rows = self._checked_rows(section.table, [*section.arguments, *optional])
        signature = self.library.signature(indicator)
        source = self.mapping.source_of(section.table)
        relation = ReferenceRelation(indicator, section.table, section.closedness, source, signature.tolerance)
        faults = _Faults(self._place(section.table))
        for row in rows:
            arguments: list[Value] = []
            for column, data_type in zip(section.arguments, signature.argument_types, strict=True):
                value = self._argument(row, column, data_type, faults)
                if value is None:
                    break
                arguments.append(value)
            if len(arguments) < len(section.arguments):
                continue
            popularity = faults.popularity(row, section.popularity)
            relation.add(ReferenceRow(tuple(arguments), popularity, row.number))
            if section.symmetric:
                relation.add(ReferenceRow(tuple(reversed(arguments)), popularity, row.number))
        if signature.kind is PredicateKind.FUNCTIONAL and not section.homonyms:
            faults.add_contradictions(relation)
        faults.refuse()
        return relation

    def _argument(self, row: TableRow, column: str, data_type: str, faults: _Faults) -> Value | None:
        """The canonical value in a column; None if the cell is blank or faulty."""
        text = faults.text(row, column)
        if not text:
            return None
        if self.library.is_numeric(data_type):
            number = parse_number(text, data_type)
            if number is None:
                faults.add(row, f"column {column!r} has {text[:40]!r}, which is not a {data_type}")
            return number
        names = self.names(data_type)
        if names is None:
            return text
        # The table's own name is renamed even where other entities bear it, too.
        return self._section(data_type).rename.get(text) or names.canonical(text) or text

    def _section(self, data_type: str) -> TypeSection:
        key = type_key(data_type)
        return next(section for name, section in self.mapping.types.items() if type_key(name) == key)


class _Faults:
    """Faults of a table's rows, collected so that all are reported at once."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._lines: dict[str, None] = {}

    def add(self, row: TableRow, fault: str) -> None:
        self._lines[f"{self._place}:{row.number}: {fault}."] = None

    def text(self, row: TableRow, column: str) -> str:
        """The text of a cell; empty if it is blank or faulty."""
        cell = row.cells.get(column)
        if cell is None:
            return ""
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            self.add(row, f"column {column!r} has {str(cell)[:40]!r}, which is neither a text nor a number")
            return ""
        text = " ".join(str(cell).split())
        if len(text) > LONGEST_NAME:
            self.add(row, f"column {column!r} has a name of {len(text)} characters; at most {LONGEST_NAME} are read")
            return ""
        return text

    def popularity(self, row: TableRow, column: str | None) -> float:
        """The popularity in a column, 0 without one."""
        text = self.text(row, column) if column else ""
        # A blank cell has no popularity, which is no fault.
        number = parse_number(text) if text else 0
        if number is None or number < 0:
            self.add(row, f"column {column!r} has {text[:40]!r}, which is not a popularity, a number from 0")
            return 0.0
        return float(number)

    def add_contradictions(self, relation: ReferenceRelation) -> None:
        """Rows of a functional predicate that agree in all arguments but the last."""
        values: defaultdict[tuple[Value, ...], list[ReferenceRow]] = defaultdict(list)
        for keys, row in relation.rows.items():
            values[keys[:-1]].append(row)
        for rows in values.values():
            if len(rows) > 1:
                first, second = rows[:2]
                known = " ".join(map(str, first.arguments[:-1]))
                line = (
                    f"{self._place}:{second.number}: says {second.arguments[-1]} of {known}, row {first.number} says "
                    f"{first.arguments[-1]}, but {relation.indicator} has one right value. Remove one of the rows, or "
                    "write `homonyms: true` in the mapping if they are about different bearers of the name"
                )
                self._lines[f"{line}."] = None

    def refuse(self) -> None:
        """Raise HapaxError if there are faults."""
        if self._lines:
            raise HapaxError(table_faults(list(self._lines), "Correct these rows."))


def _names_in(cell: Cell, separator: str) -> list[str]:
    """The names in a cell of aliases."""
    names = cell.split(separator) if isinstance(cell, str) else cell if isinstance(cell, list | tuple) else []
    return [str(name).strip() for name in names if 0 < len(str(name).strip()) <= LONGEST_NAME]
