"""Mapping of records to tables: cells, keys, and the order that settles conflicts.

A table is declared once, beside its record (`records`): its columns are the record's fields, and a field's type gives
the type of the cell. SQL that creates, reads, writes and merges rows is made from the declaration. Of two rows with one
key the greater wins, in a total order over all columns; so merging twice changes nothing, and either direction gives
the same content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property, partial
from types import NoneType
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.terms import MISSING, Value
from hapax.kb.exchange import values

OTHER_CONTENT = "the identity belongs to other content"

RESTORE = Remedy("Restore the file from a copy, or delete the row; {} lists all such rows.", Operation("verify"))

SqlValue: TypeAlias = str | int | float | None
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion between a field and a cell, neither of them None.

    `encode` raises `ValueRefused`, `decode` ValueError or TypeError.
    """

    encode: Callable[[Any], SqlValue]
    decode: Callable[[Any], Any]
    sql_type: str = "TEXT"


def text_cell(value: str) -> str:
    """The text, if a cell can hold it. Raises `ValueRefused`."""
    if type(value) is str and value.isascii():  # the common case, which needs no further check
        return value
    if not isinstance(value, str):
        raise values.ValueRefused(f"expected a text, not {type(value).__name__}; convert it first")
    if reason := values.refusal(value):
        raise values.ValueRefused(reason)
    return str(value)


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise values.ValueRefused("the number needs more than 64 bits; use a smaller one")
    return int(value)


def _real(value: float) -> float:
    if math.isnan(value):
        raise values.ValueRefused("the score is not a number (NaN); fix the model that returned it")
    return float(value)


def _score(value: float) -> float:
    # Minus infinity is allowed: a text without tokens has it as its mean log-likelihood, and ranks last.
    if value == math.inf:
        raise values.ValueRefused("the score is infinite; fix the model that returned it")
    return _real(value)


def _probability(value: float) -> float:
    if not 0.0 <= value <= 1.0:  # false for NaN, too
        raise values.ValueRefused(f"{value!r} is no probability; give a number from 0 to 1")
    return float(value)


def _bindings(cell: str) -> tuple[tuple[str, Any], ...]:
    pairs = values.load_list(cell)
    return tuple((text_cell(name), MISSING if value is None else values.plain_value(value)) for name, value in pairs)


def _encode_bindings(bindings: tuple[tuple[str, Any], ...]) -> str:
    return "[" + ",".join(f"[{values.encode_value(n)},{values.encode_value(v)}]" for n, v in bindings) + "]"


TEXT = Codec(text_cell, text_cell)
INTEGER = Codec(_integer, int, "INTEGER")
REAL = Codec(_real, float, "REAL")
SCORE = Codec(_score, _score, "REAL")
PROBABILITY = Codec(_probability, _probability, "REAL")
BOOLEAN = Codec(int, bool, "INTEGER")
VALUE = Codec(values.encode_value, values.decode_value)
VALUES = Codec(
    values.encode_values,
    lambda cell: tuple(MISSING if item is None else item for item in values.decode_values(cell)),
)
NAMES = Codec(lambda names: values.encode_values(tuple(map(text_cell, names))), values.decode_values)
TREE = Codec(values.encode_tree, values.decode_tree)
# A server's request or response may contain a map `{"decimal": "1"}` that is not one of our decimals.
JSON = Codec(partial(values.encode_tree, decimals=False), partial(values.decode_tree, decimals=False))
BINDINGS = Codec(_encode_bindings, _bindings)

_OF_TYPES: dict[object, Codec] = {
    str: TEXT,
    int: INTEGER,
    float: REAL,
    bool: BOOLEAN,
    Value: VALUE,
    tuple[Value, ...]: VALUES,
    tuple[str, ...]: NAMES,
}
"""Codecs by the type of a field. A field with another one names it: `Annotated[float, SCORE]`."""

Score: TypeAlias = Annotated[float, SCORE]
Probability: TypeAlias = Annotated[float, PROBABILITY]
Tree: TypeAlias = Annotated[Mapping[str, Any], TREE]
Json: TypeAlias = Annotated[Mapping[str, Any], JSON]
Bindings: TypeAlias = Annotated[tuple[tuple[str, Value], ...], BINDINGS]


def _codec(hint: Any) -> tuple[Codec, bool]:
    """The codec of a field's type, and whether the field may be None."""
    if hint in _OF_TYPES:
        return _OF_TYPES[hint], False
    if NoneType in get_args(hint):
        (kind,) = (part for part in get_args(hint) if part is not NoneType)
        return _codec(kind)[0], True
    if get_origin(hint) is Annotated:
        return hint.__metadata__[0], False
    return Codec(lambda member: hint(member).value, hint), False  # an enumeration of texts


class OnConflict(StrEnum):
    """Treatment of a row whose key exists already."""

    KEEP = "keep"  # the first row stays
    REPLACE = "replace"  # the last row stays
    BEST = "best"  # the greater row stays, in the table's order


@dataclass(frozen=True, eq=False)
class TableSchema(Generic[R]):
    """Description of a table.

    `columns` are named like the record's fields, and those in `optional` may be NULL; `computed` columns are properties
    of the record. `on_conflict`: what writing does to a row with the key of a new one. Of two files' rows with one key
    `preferred` columns decide first: the greatest value wins and NULL loses, after a leading `-` the smallest wins. Two
    such rows contradict each other if they differ in `disagreement`. `references`: other table and column
    by column, as `rules.name`. `indexes`: the columns of each index. `order`: the column by which records are in the
    order of storage, another one than the rowid for a view. `is_late`: the table is made with its first row.
    """

    name: str
    record: Callable[..., R]
    key: tuple[str, ...]
    columns: Mapping[str, Codec]
    optional: frozenset[str]
    computed: tuple[str, ...] = ()
    on_conflict: OnConflict = OnConflict.REPLACE
    preferred: tuple[str, ...] = ()
    disagreement: str | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[str, ...] = ()
    order: str = "rowid"
    is_late: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        record: type[R],
        key: tuple[str, ...] = ("id",),
        *,
        also: tuple[str, ...] = (),
        **options: Any,
    ) -> TableSchema[R]:
        """The table of a dataclass's records. `also`: properties with a column, beside those of the key.

        `options`: further fields of `TableSchema`.
        """
        hints = get_type_hints(record, include_extras=True)
        names = [entry.name for entry in fields(record)]  # type: ignore[arg-type]
        codecs = {name: _codec(hints[name]) for name in names}
        return cls(
            name,
            record,
            key,
            {name: codec for name, (codec, _) in codecs.items()},
            frozenset(name for name, (_, is_optional) in codecs.items() if is_optional),
            tuple(name for name in (*key, *also) if name not in names),
            **options,
        )

    @property
    def all_columns(self) -> tuple[str, ...]:
        return (*self.computed, *self.columns)

    @property
    def sql(self) -> list[str]:
        """Statements that create the table and its indexes; none of a view."""
        if self.order != "rowid":
            return []
        lines = []
        for name in self.all_columns:
            line = f'"{name}" {self.columns[name].sql_type if name in self.columns else "TEXT"}'
            if name not in self.key:
                line += "" if name in self.optional else " NOT NULL"
            elif len(self.key) == 1:
                line += " PRIMARY KEY"
            if target := self.references.get(name):
                line += ' REFERENCES "{}"("{}")'.format(*target.split("."))
            lines.append(line)
        if len(self.key) > 1:
            lines.append("PRIMARY KEY ({})".format(", ".join(f'"{name}"' for name in self.key)))
        joined = ",\n   ".join(lines)
        statements = [f'CREATE TABLE "{self.name}" (\n   {joined}\n) STRICT']
        for columns in self.indexes:
            listed = ", ".join(f'"{column}"' for column in columns.split(", "))
            name = f'"idx_{self.name}_{columns.replace(", ", "_")}"'
            statements.append(f'CREATE INDEX {name}\n    ON "{self.name}" ({listed})')
        return statements

    def row(self, record: R) -> tuple[SqlValue, ...]:
        """The record's cells in the order of `all_columns`. Raises `ValueRefused`, which names table and column."""
        cells: list[SqlValue] = []
        for name, encode in self._encoders:
            value = getattr(record, name)
            try:
                cells.append(None if value is None else encode(value))
            except values.ValueRefused as error:
                raise values.ValueRefused(f"{self.name}.{name}: {error}") from None
        # Identities come last: hashing would fail without a reason on a value that its codec refuses with one.
        return (*[getattr(record, name) for name in self.computed], *cells)

    @cached_property
    def _encoders(self) -> tuple[tuple[str, Callable[[Any], SqlValue]], ...]:
        return tuple((name, codec.encode) for name, codec in self.columns.items())

    @property
    def select(self) -> str:
        """`SELECT` of the computed columns and all record fields."""
        fields = [f"{self.name}.{column}" for column in self.all_columns]
        return f"SELECT {', '.join(fields)} FROM {self.name}"  # noqa: S608 - names are ours

    def read(self, row: tuple[Any, ...]) -> R:
        """The record of a row from `select`. Raises HapaxError for a cell that another program changed.

        An identity is a hash of content, so a change of that content shows in it.
        """
        decoded: dict[str, Any] = {}
        # `select` puts the computed columns first.
        for (name, decode), cell in zip(self._decoders, row[len(self.computed) :], strict=True):
            try:
                if cell is None and name not in self.optional:
                    raise ValueError("it is empty")
                decoded[name] = None if cell is None else decode(cell)
            except (ValueError, TypeError, HapaxError) as error:
                raise self._foreign_cell(name, cell, str(error), row) from error
        record = self.record(**decoded)
        # Not strict: a row begins with the computed columns, and the others were read above.
        for name, cell in zip(self.computed, row, strict=False):
            if getattr(record, name) != cell:
                raise self._foreign_cell(name, cell, OTHER_CONTENT, row)
        return record

    @cached_property
    def _decoders(self) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
        return tuple((name, codec.decode) for name, codec in self.columns.items())

    def check(self, row: tuple[Any, ...]) -> None:
        """Raise HapaxError unless Hapax could have written the row: readable, storable and with the right identity."""
        self.row(self.read(row))

    def _foreign_cell(self, column: str, cell: object, fault: str, row: tuple[Any, ...]) -> HapaxError:
        cells = dict(zip(self.all_columns, row, strict=False))
        key = ", ".join(f"{name} {str(cells[name])[:60]!r}" for name in self.key)
        content = [str(cells[name])[:60] for name in self.columns if cells.get(name) is not None]
        return HapaxError(
            f"{self.name}.{column}: the cell {str(cell)[:60]!r} was not written by Hapax ({fault}; row with {key}: "
            f"{', '.join(content)[:120]}). {RESTORE}"
        )

    def insert(self, on_conflict: OnConflict, source: str | None = None) -> str:
        """`INSERT` of rows, or of all rows of another attached table `source`."""
        names = ", ".join(self.all_columns)
        marks = ", ".join("?" * len(self.all_columns))
        # Without `WHERE true` SQLite would parse ON CONFLICT as a join condition.
        origin = f"SELECT {names} FROM {source} WHERE true ORDER BY rowid" if source else f"VALUES ({marks})"  # noqa: S608
        action = f"ON CONFLICT ({', '.join(self.key)}) {self._action(on_conflict)}"
        return f"INSERT INTO {self.name} ({names}) {origin} {action}"

    def _action(self, on_conflict: OnConflict) -> str:
        payload = [name for name in self.all_columns if name not in self.key]
        if on_conflict is OnConflict.KEEP or not payload:
            return "DO NOTHING"
        update = "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in payload)
        if on_conflict is OnConflict.REPLACE:
            return update
        # All other columns follow, so that of two different rows one is always the greater.
        first = [name.lstrip("-") for name in self.preferred]
        order = [*self.preferred, *(name for name in payload if name not in first)]
        new, old = zip(*(self._compared(name) for name in order), strict=True)
        return f"{update} WHERE ({', '.join(new)}) > ({', '.join(old)})"

    def _compared(self, column: str) -> tuple[str, str]:
        """Expressions for a column of the new and of the old row, swapped where the smaller value wins."""
        name = column.lstrip("-")
        # NULL compares with nothing; -9e999 is SQLite's minus infinity, below every text and number.
        new, old = f"coalesce(excluded.{name}, -9e999)", f"coalesce({self.name}.{name}, -9e999)"
        return (old, new) if column.startswith("-") else (new, old)
