"""A reference: the facts and names of a mapping for one rule library, read from its tables when first needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from hapax.grammar.data_types import type_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import Closedness, PredicateKind, Tolerance
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.grammar.writing.words import plain_letters
from hapax.kb.exchange.foreign_files import check_columns
from hapax.kb.exchange.tables import add_width_fault, opened
from hapax.kb.exchange.values import refusal
from hapax.kb.records import content_id
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.references.loaders import LOADERS
from hapax.llm_oracle.references.mapping import ReferenceMapping, SourceSection, TypeSection

_MARKS = re.compile(r"[^\w\s]|_")


def name_key(name: str) -> str:
    """Key under which spellings are the same: without case, diacritics, punctuation and a leading article.

    A name that consists of marks alone is its own key.
    """
    letters = plain_letters(name).casefold()
    # An apostrophe or full stop joins (D.C.), any other mark separates (Guinea-Bissau).
    joined = letters.replace("'", "").replace("’", "").replace("ʼ", "").replace(".", "")
    words = _MARKS.sub(" ", joined).replace("&", " and ").split()
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    return " ".join(words) or name


def value_key(value: Value) -> Value:
    """Key of an argument: a number is its own."""
    return name_key(value) if isinstance(value, str) else value


@dataclass(slots=True)
class NamedEntity:
    """A canonical name and its popularity. Bearers of one name are one entity: a rule cannot tell them apart."""

    name: str
    popularity: float = 0.0


class NameIndex:
    """Names and aliases of one data type."""

    def __init__(self) -> None:
        self.entities: dict[str, NamedEntity] = {}
        """By the key of the canonical name."""
        self._aliases: dict[str, list[str]] = {}

    def add(self, name: str, popularity: float = 0.0, aliases: Iterable[str] = ()) -> None:
        """Add a canonical name. A repeated name keeps the highest popularity."""
        key = name_key(name)
        entity = self.entities.setdefault(key, NamedEntity(name))
        entity.popularity = max(entity.popularity, popularity)
        for alias in aliases:
            keys = self._aliases.setdefault(name_key(alias), [])
            if key not in keys:
                keys.append(key)

    def meanings(self, name: str) -> list[str]:
        """Keys of all entities that bear a name, be it their canonical one or an alias; none if it is unknown."""
        key = name_key(name)
        own = [key] if key in self.entities else []
        return [*own, *(entity for entity in self._aliases.get(key, ()) if entity != key)]

    def keys(self, name: str) -> list[str]:
        """Keys of the entities that a name can mean, none if it is unknown. A canonical name means its own entity."""
        key = name_key(name)
        return [key] if key in self.entities else self._aliases.get(key, [])

    def canonical(self, name: str) -> str | None:
        """The canonical name; None if the name is unknown or ambiguous."""
        keys = self.keys(name)
        return self.entities[keys[0]].name if len(keys) == 1 else None

    def popularity(self, name: str) -> float | None:
        """Popularity of the entity of this name; None if the name is unknown or ambiguous."""
        keys = self.keys(name)
        return self.entities[keys[0]].popularity if len(keys) == 1 else None


LONGEST_NAME = 400
"""Characters of a name, as of a value in a sentence that is read."""

CONTRADICTING_SHOWN = 5
"""Right values that the basis of a denial lists."""

MOST_FAULTS = 10
"""Faults of a table that a message lists."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Truth of a claim by a reference, None if it does not cover the claim, and the row or listing that says so."""

    truth: bool | None
    basis: str = ""


NOT_COVERED = Verdict(None)


class ReferenceTable:
    """The rows of a table by their numbers: the line of a file, or the row of a loader, from 1.

    Faults of rows are collected, and reported together. `file` names the table in messages.
    """

    progress = None
    rows: Mapping[int, Mapping[str, Any]]

    def __init__(self, mapping: ReferenceMapping, name: str, folder: Path) -> None:
        section = mapping.tables[name]
        self.file = f"Table {name}" if section.file is None else str(folder / section.file)
        self._faults: dict[str, None] = {}
        if section.loader is None:
            columns, self.rows = self._read(mapping.columns(name))
        elif section.loader in LOADERS:
            self.rows = dict(enumerate(LOADERS[section.loader](), 1))
            columns = list(next(iter(self.rows.values()), ()))
        else:
            known = ", ".join(sorted(LOADERS))
            raise HapaxError(f"{self.file}: no loader {section.loader!r} is registered. Choose one of {known}.")
        self.refuse()
        if not self.rows:
            raise HapaxError(f"{self.file}: has no rows. Fill the table, or remove it from the mapping.")
        check_columns(mapping.columns(name), columns, f"{self.file}:1")

    def _read(self, wanted: Sequence[str]) -> tuple[Sequence[str], dict[int, dict[str, Any]]]:
        with opened(Path(self.file), self, wanted) as table:
            rows = {}
            for line, cells in table.rows:
                if len(cells) == len(table.columns):
                    rows[line] = dict(zip(table.columns, cells, strict=True))
                else:
                    add_width_fault(line, cells, len(table.columns), self)
            return table.columns, rows

    def add_fault(self, line: int, message: str, kind: str = "") -> None:
        """Add a fault of the row with this number. `kind` is for other readers."""
        del kind
        self._faults[f"{self.file}:{line}: {message}."] = None

    def refuse(self) -> None:
        """Raise HapaxError with the faults so far, if there are any."""
        lines, self._faults = list(self._faults), {}
        if lines:
            more = [f"{len(lines) - MOST_FAULTS} more faults."] if len(lines) > MOST_FAULTS else []
            raise HapaxError("\n".join((*lines[:MOST_FAULTS], *more, "Correct these rows.")))

    def text(self, line: int, column: str) -> str:
        """The text of a cell; empty if it is blank or faulty."""
        cell = self.rows[line].get(column)
        text = " ".join(str(cell).split()) if isinstance(cell, str) else "" if cell is None else str(cell)
        if isinstance(cell, bool | list | tuple | dict):
            self.add_fault(line, f"column {column!r} has {text[:40]!r}, which is neither a text nor a number")
        elif len(text) > LONGEST_NAME:
            self.add_fault(
                line, f"column {column!r} has {len(text)} characters; of a name at most {LONGEST_NAME} are read"
            )
        elif reason := refusal(text):
            self.add_fault(line, f"column {column!r}: {reason}")
        elif not text.isprintable():
            self.add_fault(line, f"column {column!r} has a control character: {text[:40]!r}")
        else:
            return text
        return ""

    def popularity(self, line: int, column: str | None) -> float:
        """The popularity in a column, 0 without one and for a blank cell."""
        text = self.text(line, column) if column else ""
        number = parse_number(text) if text else 0
        if number is None or number < 0:
            self.add_fault(line, f"column {column!r} has {text[:40]!r}, which is not a popularity, a number from 0")
            return 0.0
        return float(number)


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A fact of a reference, with the number of the table's row that states it."""

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
        keys = tuple(map(value_key, row.arguments))
        known = self.rows.get(keys)
        if known is None:
            for place in enumerate(keys):
                self._by_argument.setdefault(place, []).append(keys)
        elif row.popularity <= known.popularity:
            return
        self.rows[keys] = row if known is None else replace(known, popularity=row.popularity)

    def matching(self, bound: Mapping[int, Value]) -> Iterator[ReferenceRow]:
        """The facts with these keys at these positions."""
        if not bound:
            yield from self.rows.values()
            return
        # By the index of the first bound argument; the other ones are compared row by row.
        first, *rest = bound.items()
        for keys in self._by_argument.get(first, ()):
            if all(keys[position] == wanted for position, wanted in rest):
                yield self.rows[keys]

    def cited(self, row: ReferenceRow) -> str:
        """A row as a decision cites it."""
        listed = ", ".join(map(str, row.arguments))
        return f"{self.source.title}, {self.table} row {row.number}: {self.indicator.partition('/')[0]}({listed})"

    def verdict(self, keys: tuple[Value, ...]) -> Verdict:
        """Truth of the fact with these keys; its last argument may differ within the predicate's tolerance."""
        row = self.rows.get(keys)
        if row is None and self.tolerance is not None:
            same = self.matching(dict(enumerate(keys[:-1])))
            row = next((row for row in same if self.tolerance.covers(row.arguments[-1], keys[-1])), None)
        if row is not None:
            return Verdict(truth=True, basis=self.cited(row))
        about = list(self.matching({0: keys[0]}))
        is_silent = self.closedness is Closedness.CLOSED_FOR_FIRST and not about
        if is_silent or self.closedness is Closedness.OPEN:
            return NOT_COVERED
        basis = f"{self.source.title}, {self.table} ({self.closedness.value}): no such row"
        if about:
            right = [" ".join(map(str, row.arguments[1:])) for row in about[:CONTRADICTING_SHOWN]]
            more = ", ..." if len(about) > CONTRADICTING_SHOWN else ""
            basis += f"; for {about[0].arguments[0]} it has {', '.join(right)}{more} (row {about[0].number})"
        return Verdict(truth=False, basis=basis)

    def refuse_contradictions(self, table: ReferenceTable) -> None:
        """Raise HapaxError for rows that agree in all arguments but the last, of which one is right."""
        firsts: dict[tuple[Value, ...], ReferenceRow] = {}
        for keys, row in self.rows.items():
            first = firsts.setdefault(keys[:-1], row)
            if first is not row:
                known = " ".join(map(str, first.arguments[:-1]))
                table.add_fault(
                    row.number,
                    f"says {row.arguments[-1]} of {known}, row {first.number} says {first.arguments[-1]}, but "
                    f"{self.indicator} has one right value. Remove one of the rows, or write `homonyms: true` in the "
                    "mapping if they are about different bearers of the name",
                )
        table.refuse()


@dataclass
class Reference:
    """The facts and names of one mapping for a library. Tables are read when a predicate or type is first needed.

    Raises HapaxError for faulty tables.
    """

    mapping: ReferenceMapping
    folder: Path
    library: Library
    _tables: dict[str, ReferenceTable] = field(default_factory=dict)
    _relations: dict[str, ReferenceRelation] = field(default_factory=dict)
    _names: dict[str, NameIndex | None] = field(default_factory=dict)

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
                path = self.folder / table.file
                # Reading the table says what is wrong with a file that is not there.
                files.append(path.read_bytes().hex() if path.is_file() else "")
        sources = [self.mapping.source_of(table).title for table in self.mapping.tables]
        return content_id("reference", self.mapping.model_dump_json(), sources, *files)[:12]

    # -- judging

    def judge(self, indicator: str, arguments: Sequence[Value]) -> Verdict:
        """Truth of a ground atom: true if it is so of any bearers of the names, false if it is so of none."""
        if indicator not in self.predicates:
            return NOT_COVERED
        relation = self.relation(indicator)
        types = self._argument_types(indicator)
        # For each argument the keys that it can mean, of which every combination is looked up.
        meanings = [self._meanings(value, data_type) for value, data_type in zip(arguments, types, strict=True)]
        verdicts = {verdict.truth: verdict for verdict in map(relation.verdict, reversed([*product(*meanings)]))}
        # False only if the tables deny it of all bearers.
        return verdicts.get(True) or (NOT_COVERED if None in verdicts else verdicts[False])

    def judge_type(self, value: Value, data_type: str) -> Verdict:
        """Truth of a claim of a data type: true where it or a subtype lists the name, false where it is closed."""
        closed: SourceSection | None = None
        for name, section in self.mapping.types.items():
            names = self.names(name) if self._is_a(name, data_type) else None
            if names is None:
                continue
            source = self.mapping.source_of(section.table)
            if names.keys(str(value)):
                return Verdict(truth=True, basis=f"{source.title}, {section.table}: lists {value} as {name}")
            if type_key(name) == type_key(data_type) and section.closedness == "closed":
                closed = source
        for indicator in self.predicates:
            for position, own_type in enumerate(self._argument_types(indicator)):
                # A mapped type has its own list of names.
                is_told = self.mapping.predicates[indicator].typed and self._is_a(own_type, data_type)
                if is_told and self.names(own_type) is None:
                    relation = self.relation(indicator)
                    for row in relation.matching({position: value_key(value)}):
                        return Verdict(truth=True, basis=relation.cited(row))
        if closed is not None:
            return Verdict(truth=False, basis=f"{closed.title}: lists all values of {data_type}, but not {value}")
        return NOT_COVERED

    # -- proposing

    def values(self, indicator: str, pattern: Sequence[Value | None], position: int) -> dict[Value, float]:
        """Values at an open position that make the pattern true, with their popularity; None matches anything."""
        types = self._argument_types(indicator)
        bound: dict[int, Value] = {}
        for place, value in enumerate(pattern):
            if value is not None:
                meanings = self._meanings(value, types[place], canonical_first=True)
                if len(meanings) != 1:
                    return {}  # an ambiguous name is not a question that a table can answer
                bound[place] = meanings[0]
        popularities: dict[Value, float] = {}
        # Without a popularity of the row, that of the value.
        names = None if self.mapping.predicates[indicator].popularity else self.names(types[position])
        for row in self.relation(indicator).matching(bound):
            value = row.arguments[position]
            popularity = row.popularity if names is None else names.popularity(str(value)) or 0.0
            popularities[value] = max(popularities.get(value, 0.0), popularity)
        return popularities

    # -- names

    def canonical(self, value: str, data_type: str) -> str | None:
        """The canonical name of a value of a data type or a subtype; None if no name or several match."""
        found: dict[str, str] = {}
        for name in self.mapping.types:
            names = self.names(name) if self._is_a(name, data_type) else None
            if names is not None:
                found.update((key, names.entities[key].name) for key in names.keys(value))
        return next(iter(found.values())) if len(found) == 1 else None

    def names_type(self, data_type: str) -> bool:
        """True if the mapping lists names of a data type or of a subtype."""
        return any(self._is_a(name, data_type) for name in self.mapping.types)

    def _meanings(self, value: Value, data_type: str, *, canonical_first: bool = False) -> list[Value]:
        """Keys of all that an argument can mean; an unknown name means itself.

        `canonical_first`: a canonical name means nothing else.
        """
        if isinstance(value, str) and self.library.is_numeric(data_type):
            number = parse_number(value, data_type)
            return [value_key(value) if number is None else number]
        names = self.names(data_type) if isinstance(value, str) else None
        keys = [] if names is None else (names.keys if canonical_first else names.meanings)(str(value))
        return [*keys] or [value_key(value)]

    def _is_a(self, lower: str, upper: str) -> bool:
        return type_key(lower) == type_key(upper) or self.library.is_subtype(lower, upper)

    def _argument_types(self, indicator: str) -> tuple[str, ...]:
        return self.library.signature(indicator).argument_types

    # -- reading

    def _table(self, name: str) -> ReferenceTable:
        if name not in self._tables:
            self._tables[name] = ReferenceTable(self.mapping, name, self.folder)
        return self._tables[name]

    def _section(self, data_type: str) -> TypeSection | None:
        key = type_key(data_type)
        return next((section for name, section in self.mapping.types.items() if type_key(name) == key), None)

    def names(self, data_type: str) -> NameIndex | None:
        """Names of a mapped data type, of rows that have one; None for any other type."""
        key = type_key(data_type)
        if key not in self._names:
            section = self._section(data_type)
            self._names[key] = None if section is None else self._read_names(section)
        return self._names[key]

    def _read_names(self, section: TypeSection) -> NameIndex:
        table, names = self._table(section.table), NameIndex()
        separator = self.mapping.tables[section.table].separator
        for line, cells in table.rows.items():
            if name := table.text(line, section.name):
                # The table's own name stays an alias of the canonical one.
                aliases = [name] if name in section.rename else []
                for column in section.aliases:
                    aliases += _names_in(cells.get(column), separator)
                names.add(section.rename.get(name, name), table.popularity(line, section.popularity), aliases)
        for alias, name in section.also.items():
            names.add(name, aliases=[alias])
        table.refuse()
        return names

    def relation(self, indicator: str) -> ReferenceRelation:
        """The facts of one of the `predicates`. Rows with a blank argument say nothing."""
        if indicator in self._relations:
            return self._relations[indicator]
        section, signature = self.mapping.predicates[indicator], self.library.signature(indicator)
        table, source = self._table(section.table), self.mapping.source_of(section.table)
        relation = ReferenceRelation(indicator, section.table, section.closedness, source, signature.tolerance)
        for line in table.rows:
            places = zip(section.arguments, signature.argument_types, strict=True)
            arguments = [self._argument(table, line, column, data_type) for column, data_type in places]
            known = tuple(argument for argument in arguments if argument is not None)
            if len(known) == len(arguments):
                popularity = table.popularity(line, section.popularity)
                relation.add(ReferenceRow(known, popularity, line))
                if section.symmetric:
                    relation.add(ReferenceRow(known[::-1], popularity, line))
        table.refuse()
        if signature.kind is PredicateKind.FUNCTIONAL and not section.homonyms:
            relation.refuse_contradictions(table)
        self._relations[indicator] = relation
        return relation

    def _argument(self, table: ReferenceTable, line: int, column: str, data_type: str) -> Value | None:
        """The canonical value in a column; None if the cell is blank or faulty."""
        text = table.text(line, column)
        if text and self.library.is_numeric(data_type):
            number = parse_number(text, data_type)
            if number is None:
                table.add_fault(line, f"column {column!r} has {text[:40]!r}, which is not a {data_type}")
            return number
        names, section = self.names(data_type), self._section(data_type)
        if names is None or section is None:
            return text or None
        # The table's own name is renamed even where other entities bear it, too.
        return section.rename.get(text) or names.canonical(text) or text or None


def _names_in(cell: Any, separator: str) -> Iterable[str]:
    """The names in a cell of aliases."""
    names = cell.split(separator) if isinstance(cell, str) else cell if isinstance(cell, list | tuple) else ()
    stripped = (str(name).strip() for name in names)
    return [name for name in stripped if 0 < len(name) <= LONGEST_NAME and name.isprintable()]
