"""A folder to start from: a table's mapping, rules over it, settings, and the commands that use them.

Each guess is a line that a person can change.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from shlex import quote

from hapax.grammar.errors import HapaxError
from hapax.kb.csv_text import cell_value
from hapax.kb.values import encode_value
from hapax.kb.whole_files import atomic_text_file

ROWS_READ = 1_000
"""First rows of a table, from which types and key are guessed."""

_DELIMITERS = ",\t;|"


@dataclass(frozen=True, slots=True)
class GuessedColumn:
    """A column of a table: its header, its name in rules, its type, and the values of the rows that were read."""

    header: str
    name: str
    data_type: str
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StartedFolder:
    """The files that were written, and the commands to go on with, from inside the folder."""

    files: tuple[Path, ...]
    commands: tuple[str, ...]


def start_folder(table: Path, folder: Path | None = None) -> StartedFolder:
    """Write mapping, rules and settings for a CSV or TSV table into a folder, by default one named like the table.

    Raises HapaxError for a table without a header and rows, and for a folder that has one of these files already.
    """
    columns, delimiter = _guessed_columns(table)
    predicate = _names([table.stem])[0]
    folder = folder or table.parent / predicate
    key = next((column for column in columns if _is_key(column)), None)
    rule, goal = _first_rule(predicate, columns, key or columns[0])
    texts = {
        folder / "map.yaml": _mapping(predicate, columns, key, delimiter),
        folder / f"{predicate}.rules": _rules(table, predicate, columns, rule),
        folder / "hapax.toml": _SETTINGS,
    }
    if taken := [str(path) for path in texts if path.exists()]:
        raise HapaxError(f"{', '.join(taken)} exists already. Name another folder, or delete it.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        with atomic_text_file(str(path)) as stream:
            stream.write(text)
    rules = quote(f"{predicate}.rules")
    commands = (
        f"hapax import {quote(str(table.resolve()))} --map map.yaml --rules {rules}",
        f"hapax query {quote(goal)} {rules} --db hapax.db",
        f"hapax derive {rules}",
    )
    return StartedFolder(tuple(texts), commands)


def _guessed_columns(table: Path) -> tuple[list[GuessedColumn], str]:
    """The columns, and the sign that separates them."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            stream.seek(0)
            delimiter = max(_DELIMITERS, key=first.count)
            header, *rows = islice(csv.reader(stream, delimiter=delimiter), ROWS_READ + 1)
    except (OSError, ValueError, csv.Error) as fault:
        reason = getattr(fault, "strerror", None) or "it has no header"
        raise HapaxError(f"{table}: this table cannot be read: {reason}. Name a CSV or TSV file in UTF-8.") from fault
    if not rows:
        raise HapaxError(f"{table} has no rows below its header, so nothing can be guessed from it.")
    columns = []
    for place, (cell, name) in enumerate(zip(header, _names(header), strict=True)):
        values = tuple(_value(row[place]) for row in rows if place < len(row))
        columns.append(GuessedColumn(cell.strip(), name, _type_of(values), values))
    return columns, delimiter


def _value(cell: str) -> object:
    try:
        return cell_value(cell)
    except ValueError:
        return cell


def _names(headers: Sequence[str]) -> list[str]:
    """Names of rules for headers, each once."""
    names: list[str] = []
    for place, header in enumerate(headers, 1):
        name = re.sub(r"\W+", "_", header.strip()).strip("_").lower()
        name = name if name and name[0].isalpha() and name != "not" else f"column_{name or place}"
        names.append(f"{name}_{place}" if name in names else name)
    return names


def _type_of(values: Sequence[object]) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int | Decimal) for value in known):
        return "Number"
    if known and all(_is_moment(value, date) for value in known):
        return "Date"
    if known and all(_is_moment(value, datetime) for value in known):
        return "DateTime"
    return "Text"


def _is_moment(value: object, kind: type[date]) -> bool:
    try:
        kind.fromisoformat(str(value))
    except ValueError:
        return False
    return True


def _is_key(column: GuessedColumn) -> bool:
    return None not in column.values and len(set(column.values)) == len(column.values)


def _mapping(predicate: str, columns: Sequence[GuessedColumn], key: GuessedColumn | None, delimiter: str) -> str:
    listed = ", ".join(encode_value(column.header) for column in columns)
    guess = f"\n  key: {encode_value(key.header)}  # no two rows have the same one" if key else ""
    separated = "" if delimiter == "," else f"delimiter: {encode_value(delimiter)}\n"
    return (
        f"{separated}# Each row is one fact, whose arguments are these columns in this order.\n"
        f"facts:\n- predicate: {predicate}\n  columns: [{listed}]{guess}\n"
    )


def _rules(table: Path, predicate: str, columns: Sequence[GuessedColumn], rule: str) -> str:
    arguments = ", ".join(f"{column.name}: {column.data_type}" for column in columns)
    return (
        f"# The names and types of the columns are guesses from the first rows of {table.name}. Change what is wrong.\n"
        f"given {predicate}({arguments})\n\n"
        "# A rule names the columns that it needs. This one is an example.\n"
        f"{rule}\n"
    )


def _first_rule(predicate: str, columns: Sequence[GuessedColumn], key: GuessedColumn) -> tuple[str, str]:
    """A rule over a column of numbers, else over a column of texts, and the goal that asks for what it concludes."""
    others = [column for column in columns if column is not key]
    number = next((column for column in others if column.data_type == "Number"), None)
    if number is not None:
        known = sorted(value for value in number.values if isinstance(value, int | Decimal))
        middle = known[len(known) // 2]
        name = f"has_much_{number.name}"
        premise = f"{predicate}({key.name}: K, {number.name}: N) & N > {middle}"
        return f"{premise} -> {name}(K)", f"{name}(K)"
    other = others[0] if others else key
    return f"{predicate}({key.name}: K, {other.name}: V) -> has_{other.name}(K, V)", f"has_{other.name}(K, V)"


_SETTINGS = """\
# Settings of searches in this folder. Remove the # before a line to use it; `hapax search --help` lists all.
# [search]
# beam = 50
# keep-share = 0.25
"""
