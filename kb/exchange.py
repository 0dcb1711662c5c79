"""Import of facts from CSV and JSONL files, and export to CSV, JSONL and Prolog. Exported facts import unchanged.

A CSV row is `predicate,argument,...`; a first row that begins with `predicate` is a header. If a header numbers its
columns (`argument1`, `arg2`), they may come in any order and among other columns; each row then has a cell for every
column, empty where its predicate has fewer arguments, and no further cells. A cell is a number if it is written like
one (`1876`, `3.5`), otherwise a text. A text is written as a JSON string inside the cell (`"1984"`) if it looks like a
number or a spreadsheet formula, begins with a quotation mark, or has blanks at its ends. Empty cells at the end of a
row are ignored, since spreadsheets pad rows with them; an empty text is `""`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import IO, Any

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.prolog_text import SYSTEM_NAMES, prolog_atom, prolog_value
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.terms import Value
from hapax.grammar.words import counted
from hapax.kb import values
from hapax.kb.csv_text import escaped, is_harmless, text_cell, write_rows
from hapax.kb.foreign_files import LONGEST_CELL, text_lines
from hapax.kb.intake import FactIntake, ImportReport, RulesForFacts, short, some
from hapax.kb.records import FactRecord
from hapax.kb.store import KnowledgeBase

# `1876`, `-3.5` and `1.5E+30` are numbers; `007`, `+1`, `.5` and `1e5` stay texts.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
# `3.5`, `1.20`, `1E-7` with a capital E, as Python prints decimals.
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:E[+-][0-9]+)?")
# `argument1`, `arg 2`, `arg_3` ... up to 99.
_NUMBERED_COLUMN = re.compile(r"arg(?:ument)?[ _]?([1-9][0-9]?)")

# Fields of an exported JSONL line. An import reads the first three: imported facts are given ones.
_FIELDS = ("predicate", "arguments", "types", "source", "probability")

_EXAMPLE = '{"predicate": "is_allergic_to", "arguments": ["Ada", "milk"]}'


@dataclass(frozen=True, slots=True)
class UnexportableFact:
    """A fact that the format cannot represent, with the reason."""

    fact: FactRecord
    reason: str


@dataclass(frozen=True, slots=True)
class FactExportReport:
    """Result of an export: number of facts written, and facts that the format cannot represent."""

    written: int
    left_out: tuple[UnexportableFact, ...] = ()


def import_facts(
    kb: KnowledgeBase,
    source: str | Path | IO[str],
    *,
    form: str | None = None,
    skip_faulty: bool = False,
    rules: RulesForFacts | None = None,
) -> ImportReport:
    """Import the facts of a file as given facts. `form` is `csv` or `jsonl`; None takes it from the file name.

    Other packages can add forms (`kb/fact_readers.py`), which are read from files alone. `rules`: those whose
    declarations the facts must fit.
    Raises `FactsRejected` with every fault, and imports nothing, unless `skip_faulty` is set.
    """
    file = str(source) if isinstance(source, str | Path) else str(getattr(source, "name", "<stream>"))
    form = form or Path(file).suffix.lstrip(".").lower()
    added = None
    if form not in _READERS:
        # Imported late: looking for other packages' readers takes longer than to read a small file.
        from hapax.kb.fact_readers import added_reader

        added = added_reader(form) if isinstance(source, str | Path) else None
        if added is None:
            raise HapaxError(
                f"{file}: facts are imported from csv or jsonl, not from {form!r}.",
                Remedy(
                    "Give the file one of these endings, or say which columns of a table are the arguments: {}.",
                    Setting("mapping.columns"),
                ),
            )
    reading = FactIntake(kb, file, rules)
    if added is not None:
        for line, predicate, arguments in added(Path(file)):
            reading.add_fact(line, predicate, arguments)
    elif isinstance(source, str | Path):
        with _opened(Path(source)) as stream:
            _READERS[form](stream, reading)
    else:
        _READERS[form](source, reading)
    return reading.store(skip_faulty)


def _opened(path: Path) -> IO[str]:
    try:
        # A byte that is not UTF-8 becomes a lone surrogate, which is then reported as a fault of its row.
        return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as error:
        raise HapaxError(f"{path}: {error.strerror}. Name a readable file.") from error


def _read_csv(stream: IO[str], reading: FactIntake) -> None:
    limit = csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(text_lines(stream, reading.file), strict=True)
    columns = _Columns()
    try:
        for line, cells in _csv_rows(reader, reading):
            if not any(cell.strip() for cell in cells):
                continue
            if line == 1 and (header := _header(cells, reading.file)) is not None:
                columns = header
                reading.names_predicates = True
                reading.unused = dict.fromkeys(header.unused, line)
                continue
            try:
                predicate, *rest = columns.fact_cells(cells)
                arguments = [parse_cell(cell) for cell in _without_padding(rest)]
                columns.refuse_short_row(cells, f"{predicate.strip()}/{len(arguments)}", reading)
            except ValueError as error:
                reading.add_fault(line, str(error))
            else:
                reading.add_fact(line, predicate.strip(), arguments)
    finally:
        csv.field_size_limit(limit)  # the limit belongs to the whole process


@dataclass(frozen=True, slots=True)
class _Columns:
    """Positions of the predicate and its arguments in a row, in this order; None for all cells as they are."""

    places: tuple[int, ...] | None = None
    width: int = 0
    unused: tuple[str, ...] = ()

    def fact_cells(self, cells: list[str]) -> list[str]:
        """Cells of the predicate and its arguments. Raises ValueError for a row wider than its header."""
        if self.places is None:
            return cells
        if len(_without_padding(cells)) > self.width:
            raise ValueError(
                f"the row has more cells than the {self.width} columns of the header; name all columns in the header"
            )
        return [cells[place] if place < len(cells) else "" for place in self.places]

    def refuse_short_row(self, cells: list[str], indicator: str, reading: FactIntake) -> None:
        """Raise ValueError for a row shorter than its header, unless its predicate is known with that many arguments.

        The row may have lost an argument.
        """
        wanted = max(self.places) + 1 if self.places else 0
        if len(cells) < wanted and indicator not in reading.known:
            raise ValueError(
                f"the row has {counted(len(cells), 'cell')} where the header has {wanted}, and {indicator} is not "
                "known; add the missing argument, or an empty cell if there is none"
            )


def _header(cells: list[str], file: str) -> _Columns | None:
    """Columns of a header row; None if the row is a fact.

    Raises HapaxError if a column is missing: then no row can be read, even with `skip_faulty`.
    """

    def refused(fact: str) -> HapaxError:
        return HapaxError(f"{file}:1: {fact}. Nothing was imported.")

    names = [cell.strip().lower() for cell in cells]
    # One cell with semicolons or tabs inside: the table was saved with another separator.
    if len(names) == 1 and re.search(r"\S[;\t]", names[0]):
        raise refused("the cells are not separated by commas; save the file with commas")
    places: dict[int, int] = {}
    repeated = False
    for place, name in enumerate(names):
        if match := _NUMBERED_COLUMN.fullmatch(name):
            repeated |= int(match[1]) in places
            places[int(match[1])] = place
    # `predicate` alone can head facts of any number of arguments; without it the row is the first fact.
    if not places:
        return _Columns() if names[0] == "predicate" else None
    if "predicate" not in names:
        raise refused("the header has no column `predicate`; give this name to the column of predicates")
    if repeated:
        raise refused("the header gives two arguments the same number; number them 1, 2, 3 ...")
    if missing := set(range(1, len(places) + 1)) - places.keys():
        raise refused(f"the header has no column `argument{min(missing)}`; number the arguments 1, 2, 3 ...")
    used = (names.index("predicate"), *(places[number] for number in sorted(places)))
    unused = tuple(cell.strip() for place, cell in enumerate(cells) if place not in used and cell.strip())
    return _Columns(used, len(cells), unused)


def _csv_rows(reader: Any, reading: FactIntake) -> Iterator[tuple[int, list[str]]]:
    """Rows with their first lines. A row that is not valid CSV is a fault, and the next line begins a new row."""
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reading.add_fault(line, f"not valid CSV: {error}; double each quotation mark inside a quoted cell")


def _without_padding(cells: list[str]) -> list[str]:
    while cells and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def parse_cell(cell: str) -> Value:
    """Value of a CSV cell. Raises ValueError for an empty cell and for an invalid JSON string."""
    text = cell.strip()
    if not text:
        raise ValueError('a cell before the last is empty; write "" for an empty text')
    if text.startswith(('"', '{"decimal"')):
        try:
            return values.plain_value(values.load_json(text))
        except ValueError as error:
            raise ValueError(f"{short(text)} is not a JSON string ({error}); close it with a quotation mark") from error
    if _INTEGER.fullmatch(text):
        # Refused here, because Python's own error is advice to programmers.
        if len(text) > values.MAX_PLACES:
            raise ValueError(f"the integer has {len(text)} digits; write it as a text in quotation marks")
        return int(text)
    return values.decimal_value(text) if _DECIMAL.fullmatch(text) else text


def cell_text(value: Value) -> str:
    """CSV cell for a value: its plain text if `parse_cell` turns that back into the value, otherwise JSON."""
    plain = str(value)
    if plain and is_harmless(plain):
        try:
            # The text `1876` would come back as a number, so it is written as JSON.
            again = parse_cell(plain)
        except ValueError:
            again = None
        if type(again) is type(value) and str(again) == plain:
            return plain
    return escaped(values.encode_value(value))


def _read_jsonl(stream: IO[str], reading: FactIntake) -> None:
    reading.names_predicates = True
    for line, text in enumerate(text_lines(stream, reading.file), 1):
        if not text.strip():
            continue
        try:
            entry = values.load_json(text)
        except ValueError as error:
            reading.add_fault(line, f"not valid JSON: {error}; write one object per line")
            continue
        if not isinstance(entry, dict):
            reading.add_fault(line, f"not a JSON object; write {_EXAMPLE}")
            continue
        unused = [name for name in entry if name not in _FIELDS]
        missing = [name for name in ("predicate", "arguments") if name not in entry]
        if missing:
            found = f", only {some(map(short, unused))}" if unused else ""
            reading.add_fault(line, f"no {' and no '.join(missing)}{found}; write {_EXAMPLE}")
            continue
        for name in unused:
            reading.unused.setdefault(name, line)
        reading.add_fact(line, entry["predicate"], entry["arguments"], entry.get("types"))


_READERS: Mapping[str, Callable[[IO[str], FactIntake], None]] = {"csv": _read_csv, "jsonl": _read_jsonl}


@checked
def export_facts(
    kb: KnowledgeBase, stream: IO[str], *, form: str = "prolog", predicate: str | None = None
) -> FactExportReport:
    """Write facts to a text stream, ordered by predicate, as `prolog` (loads in SWI-Prolog), `csv` or `jsonl`.

    A fact that the format cannot represent is left out and reported.
    """
    writers: dict[str, Callable[[FactRecord, int], str]] = {
        "prolog": _prolog_line,
        "csv": _csv_line,
        "jsonl": _jsonl_line,
    }
    if form not in writers:
        raise HapaxError(
            f"{kb.place}: facts are exported as {', '.join(writers)}, not as {form!r}. Choose one of these."
        )
    # Prolog requires the clauses of a predicate to be adjacent.
    facts = sorted(kb.facts(predicate), key=lambda fact: (fact.predicate, len(fact.arguments)))
    if predicate is not None and not facts:
        _refuse_unknown(kb, predicate)
    arity = max((len(fact.arguments) for fact in facts), default=0)
    stream.write(_first_line(form, arity))
    written, left_out = 0, []
    for fact in facts:
        try:
            line = writers[form](fact, arity)
        except HapaxError as error:
            left_out.append(UnexportableFact(fact, str(error)))
            continue
        stream.write(line + "\n")
        written += 1
    return FactExportReport(written, tuple(left_out))


def _refuse_unknown(kb: KnowledgeBase, predicate: str) -> None:
    """Raise HapaxError for a predicate without facts, unless a rule file declared it and it merely has none yet."""
    if any(predicate in (declared.name, declared.indicator) for declared in kb.predicates()):
        return
    counts = kb.fact_counts()
    # Reversed, so that of several arities of a name the smallest stays.
    names = {indicator.rpartition("/")[0]: indicator for indicator in reversed(counts)}
    near = get_close_matches(predicate.rpartition("/")[0] or predicate, names, n=3, cutoff=0.6)
    if near:
        remedy = f"Did you mean {' or '.join(names[name] for name in near)}?"
    elif counts:
        remedy = f"It has facts of {some(counts)}."
    else:
        remedy = "It has no facts at all; search or import some first."
    raise HapaxError(f"{kb.place}: there are no facts of {short(predicate)}. {remedy}")


def _first_line(form: str, arity: int) -> str:
    if form == "csv":
        return ",".join(["predicate", *(f"argument{position}" for position in range(1, arity + 1))]) + "\n"
    return ":- encoding(utf8).\n" if form == "prolog" else ""


def _prolog_line(fact: FactRecord, _: int) -> str:
    indicator = f"{fact.predicate}/{len(fact.arguments)}"
    if indicator in SYSTEM_NAMES:
        raise HapaxError(f"{indicator} is built into Prolog and cannot be redefined. Rename the predicate.")
    return f"{prolog_atom(fact.predicate)}({', '.join(map(prolog_value, fact.arguments))})."


def _csv_line(fact: FactRecord, arity: int) -> str:
    cells = [text_cell(fact.predicate), *map(cell_text, fact.arguments), *[""] * (arity - len(fact.arguments))]
    line = StringIO()
    write_rows(line, [cells], cell=str, end="")
    return line.getvalue()


def _jsonl_line(fact: FactRecord, _: int) -> str:
    return json.dumps(
        {
            "predicate": fact.predicate,
            "arguments": list(fact.arguments),
            "types": list(fact.types),
            "source": fact.source.value,
            "probability": fact.probability,
        },
        ensure_ascii=False,
        default=values.encode_decimal,
    )
