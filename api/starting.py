"""A folder to start from: a table's mapping, rules over it, settings, and the commands that use them.

Each guess is a line that a person can change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from shlex import quote

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.parser import parse_rules
from hapax.grammar.values.moments import DATE, DATE_TIME, moment_of
from hapax.grammar.writing.prolog_text import SYSTEM_NAMES
from hapax.kb.exchange.foreign_files import check_columns
from hapax.kb.exchange.intake import FactFault, FactIntake, RulesForFacts
from hapax.kb.exchange.mappings import TableMapping
from hapax.kb.exchange.tables import OpenTable, add_rows, opened
from hapax.kb.exchange.values import Unreadable, encode_value
from hapax.kb.files.whole_files import atomic_text_file
from hapax.kb.store import KnowledgeBase

ROWS_READ = 10_000
"""First rows of a table, from which types and key are guessed."""

_NUMBERS = 0.8
"""A column is a Number if more than this share of its cells are: the rest may be faulty, but a code has letters."""

_KEYS = 0.8
"""Least share of distinct values in a column that was probably meant as a key."""

_KEY_NAME = re.compile("(^|_)(id|key|code|no|nr|number)$")

_OTHER_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")


@dataclass(frozen=True, slots=True)
class GuessedColumn:
    """A column of a table: its header, its name in rules, its type, and the values of the rows that were read."""

    header: str
    name: str
    data_type: str
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StartedFolder:
    """The files that were written, and the commands to go on with, from inside the folder.

    `faults`: rows that an import refuses by these guesses. `notes`: what else to look at in the table.
    """

    files: tuple[Path, ...]
    commands: tuple[str, ...]
    faults: tuple[FactFault, ...]
    notes: tuple[str, ...]


@checked
def start_folder(table: str | Path, folder: str | Path | None = None, name: str | None = None) -> StartedFolder:
    """Write mapping, rules and settings for a table into a folder, by default one named like the table.

    The table is a file that `import_facts` reads with a mapping; `name`: of the table in a SQLite file. Raises
    HapaxError for a table without a header and rows, and for a folder that has one of these files already.
    """
    table = Path(table)
    read, faults = _first_rows(table, name)
    predicate = _names([name or table.stem])[0]
    predicate = f"{predicate}_row" if predicate in (*SYSTEM_NAMES, "mod") else predicate
    columns = _guessed_columns(read)
    key, is_repeated = _guessed_key(columns)
    rule, goal = _first_rule(predicate, columns, key or columns[0])
    folder = Path(folder or table.parent / predicate)
    texts = {
        folder / "map.yaml": _mapping(predicate, columns, key, name, is_repeated),
        folder / f"{predicate}.rules": _rules(table, predicate, columns, rule),
        folder / "hapax.toml": _SETTINGS,
    }
    if taken := [str(path) for path in texts if path.exists()]:
        verb = "exists" if len(taken) == 1 else "exist"
        raise HapaxError(f"{', '.join(taken)} {verb} already. Name another folder, or delete what is there.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        with atomic_text_file(str(path)) as stream:
            stream.write(text)
    mapping, rules_file, _ = texts
    faults += _refused(read, TableMapping.read(mapping), texts[rules_file], table)
    rules = quote(f"{predicate}.rules")
    skipping = " --skip-faulty" if faults else ""
    commands = (
        f"hapax import {quote(str(table.resolve()))} --map map.yaml --rules {rules}{skipping}",
        f"hapax query {quote(goal)} {rules}",
        f"hapax derive {rules}",
    )
    faults.sort(key=lambda fault: fault.line)
    return StartedFolder(tuple(texts), commands, tuple(faults), tuple(_other_notations(columns)))


def _first_rows(table: Path, name: str | None) -> tuple[OpenTable, list[FactFault]]:
    """The columns and first rows of a table, without the rows that cannot be read, and their faults."""
    with FactIntake(KnowledgeBase(), str(table)) as intake, opened(table, intake, name=name) as found:
        read = replace(found, rows=list(islice(found.rows, ROWS_READ)), total=0, done=None)
        if not read.rows:
            raise HapaxError(f"{table} has no rows below its header, so nothing can be guessed from it.")
        check_columns(read.columns, read.columns, f"{table}:1")
        return read, intake.faults


def _guessed_columns(read: OpenTable) -> list[GuessedColumn]:
    columns = []
    for place, (header, name) in enumerate(zip(read.columns, _names(read.columns), strict=True)):
        cells = [row[place] for _, row in read.rows if len(row) == len(read.columns)]
        found = zip(read.values(cells), cells, strict=True)
        values = tuple(str(cell) if isinstance(value, Unreadable) else value for value, cell in found)
        columns.append(GuessedColumn(header, name, _type_of(values), values))
    return columns


def _refused(read: OpenTable, mapping: TableMapping, rules: str, table: Path) -> list[FactFault]:
    """The faults of the rows that an import with this mapping and these rules refuses."""
    library = parse_rules(rules)
    with FactIntake(KnowledgeBase(), str(table), RulesForFacts(library, strict=True)) as intake:
        add_rows(read, mapping, intake)
        return list(intake.store(skip_faulty=True).faults)


def _names(headers: Sequence[str]) -> list[str]:
    """Names of rules for headers, each once."""
    names: list[str] = []
    for place, header in enumerate(headers, 1):
        name = re.sub(r"\W+", "_", header.strip()).strip("_").lower()
        name = name if name and name[0].isalpha() and name != "not" else f"column_{name or place}"
        names.append(f"{name}_{place}" if name in names else name)
    return names


def _type_of(values: Sequence[object]) -> str:
    """The type that most of the values have; the others are faults, which an import reports."""
    known = [value for value in values if value is not None]
    moments = Counter(moment.kind for value in known if isinstance(value, str) and (moment := moment_of(value)))
    if 2 * moments.total() > len(known):
        return DATE_TIME if moments.keys() == {DATE, DATE_TIME} else moments.most_common(1)[0][0]
    numbers = [value for value in known if isinstance(value, int | Decimal)]
    return "Number" if len(numbers) > _NUMBERS * len(known) else "Text"


def _guessed_key(columns: Sequence[GuessedColumn]) -> tuple[GuessedColumn | None, bool]:
    """The first column, or one named like a key, that no two rows have in common; True if some rows repeat it.

    One that nearly is a key is one, too: without a key an empty cell would be a text.
    """
    rows = list(zip(*(column.values for column in columns), strict=True))
    for column in columns:
        if column is not columns[0] and not _KEY_NAME.search(column.name):
            continue
        # A row that is there twice is one fact.
        first = dict(zip(reversed(column.values), reversed(rows), strict=True))
        is_repeated = any(first[value] != row for value, row in zip(column.values, rows, strict=True))
        if None not in first and (not is_repeated or len(first) > _KEYS * len(rows)):
            return column, is_repeated
    return None, False


def _other_notations(columns: Sequence[GuessedColumn]) -> list[str]:
    """Notes about columns of texts that are dates or numbers in another notation, each with how one is written."""
    notes = []
    for column in columns:
        known = [str(value) for value in column.values if value is not None and column.data_type == "Text"]
        if known and column.values[0] is not None and _OTHER_DATE.fullmatch(known[0]):
            notes.append(f"{column.header} stays a Text: dates are written as 2012-12-01, and not as {known[0]}.")
        found = [match for match in map(_OTHER_NUMBER.fullmatch, known) if match is not None]
        written = next((match for match in found if _plain_number(match) != match[0]), None)
        # Of one unit: house numbers have many.
        units = {match["before"] or match["behind"] for match in found} - {None}
        if written and len(found) > _NUMBERS * len(known) and len(units) < _UNITS:
            plain = f"{column.header} stays a Text: a number is written {_plain_number(written)}, and not {written[0]}."
            mixed = f" The column has {' and '.join(sorted(units))}: write all in one unit." if len(units) > 1 else ""
            notes.append(plain + mixed)
    return notes


_UNITS = 3
"""Fewer units than this are in a column of numbers."""

_OTHER_NUMBER = re.compile(
    r"(?P<before>[$€£¥]|[A-Z]{3} )?(?P<whole>[-+]?(?:\d{1,3}(?:[.,'’ ]\d{3})+|\d+))(?P<decimals>[.,]\d+)?"
    r"\s?(?P<behind>[$€£¥%‰]|°\s?[CF]?|[^\W\d_]{1,5}\.?(?:[/²³][^\W\d_]*)?)?"
)
"""A number with a sign of money before it, or with one or a unit behind it."""


def _plain_number(found: re.Match[str]) -> str:
    """The number of a match as rules have it."""
    return re.sub("[.,'’ ]", "", found["whole"]) + (found["decimals"] or "").replace(",", ".")


def _mapping(
    predicate: str, columns: Sequence[GuessedColumn], key: GuessedColumn | None, name: str | None, is_repeated: bool
) -> str:
    lines = [f"table: {encode_value(name)}"] if name else []
    if key is None and any(None in column.values for column in columns):
        lines.append('empty: fact  # an empty cell is the text ""; skip leaves out its row')
    lines += ["# Each row is one fact, whose arguments are these columns in this order.", "facts:"]
    lines += [f"- predicate: {predicate}", "  columns:"]
    lines += [f"  - {encode_value(column.header)}" for column in columns]
    if key:
        remark = (
            "some rows repeat it; delete this line if it is no key" if is_repeated else "no two rows have the same one"
        )
        lines.append(f"  key: {encode_value(key.header)}  # {remark}")
    return "".join(f"{line}\n" for line in lines)


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
        # Not the greatest, of which nothing has more.
        below = [value for value in known if value < known[-1]] or known
        middle = min(known[len(known) // 2], below[-1])
        name = f"has_much_{number.name}"
        premise = f"{predicate}({key.name}: K, {number.name}: N) & N > {middle}"
        return f"{premise} -> {name}(K)", f"{name}(K)"
    column = others[0] if others else key
    return f"{predicate}({key.name}: K, {column.name}: V) -> has_{column.name}(K, V)", f"has_{column.name}(K, V)"


_SETTINGS = """\
# Settings of searches in this folder. Remove the # before a line to use it; `hapax search --help` lists all.
# [search]
# beam = 50
# keep-share = 0.25
"""
