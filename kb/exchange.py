"""Facts from and to files: CSV and JSONL in, CSV, JSONL and Prolog out. What is written reads back as the same facts.

A CSV row is `predicate,argument,...`; a first row that begins with `predicate` is a header. Where a header numbers its
columns (`argument1`, `arg2`), they may stand in any order, and others beside them; a row then has a cell for each of
them, empty where its predicate has fewer arguments, and none beyond. A cell is a number if it is written
like one (`1876`, `3.5`), otherwise a text. A text that looks like a number, begins with a quotation mark or like a
spreadsheet's formula, or has blanks at its ends stands as a JSON string inside the cell: `"1984"`. Empty cells at the
end of a row do not count, as spreadsheets write them to fill rows up; an empty text is `""`.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from grammar.errors import HapaxError
from grammar.prolog_text import SYSTEM_NAMES, prolog_atom, prolog_value
from grammar.terms import Value
from grammar.words import counted
from kb import rows, values
from kb.records import FactRecord, Source

if TYPE_CHECKING:
    from kb.store import KnowledgeBase

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:E[+-][0-9]+)?")
_VARIABLE = re.compile("[A-Z_]")
"""How a word begins that goals read as a variable."""

_NUMBERED = re.compile(r"arg(?:ument)?[ _]?([1-9][0-9]?)")
_FORMULA = "=+-@＝＋－＠"
"""How a text begins that a spreadsheet would take for a formula and run."""

_FIELDS = ("predicate", "arguments", "types", "source", "probability")
"""What an export writes into a JSONL line. An import takes the first three: an imported fact is a given one."""

_EXAMPLE = '{"predicate": "is_allergic_to", "arguments": ["Ada", "milk"]}'
_FAULTS_SHOWN = 20
_MAX_CELL = 1 << 30
"""Characters in a CSV cell; Python's own limit of 128 kB is too small for hostile and for honest texts."""


@dataclass(frozen=True, slots=True)
class FactFault:
    """Why one row of a file is no fact. `line` is where the row begins, from 1."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class FactsRejected(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A file of facts with faults, of which nothing was imported. `faults` holds all of them."""

    def __init__(self, faults: Iterable[FactFault]) -> None:
        self.faults = tuple(faults)
        shown = [str(fault) for fault in self.faults[:_FAULTS_SHOWN]]
        if more := len(self.faults) - len(shown):
            shown.append(f"... and {counted(more, 'more fault')}")
        shown.append("Nothing was imported. Mend these rows, or skip them with --skip-faulty.")
        super().__init__("\n".join(shown))


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `promoted`: a model's facts that are now given; `known`: facts that were given before.

    `predicates`: how many facts were read of each, by indicator, most first; `warnings`: what may be a mistake.
    """

    read: int
    added: int
    promoted: int
    known: int
    faults: tuple[FactFault, ...] = ()
    predicates: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A fact that the format cannot hold, and why."""

    fact: FactRecord
    reason: str


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, and what its format could not hold."""

    written: int
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True)
class _Reading:
    """A file being read: facts and faults pile up side by side, so that all faults are told at once."""

    file: str
    types: Mapping[str, tuple[str, ...]]
    """Argument types by indicator, for rows that name none."""
    known: Callable[[], Iterable[str]] = tuple
    """The indicators of which there are facts or declarations."""
    facts: list[FactRecord] = field(default_factory=list)
    faults: list[FactFault] = field(default_factory=list)
    unused: dict[str, int] = field(default_factory=dict)
    """Columns or fields that say nothing to an import, with the line where each was met first."""

    def take(self, line: int, predicate: object, arguments: object, types: object = None) -> None:
        try:
            self.facts.append(self._fact(predicate, arguments, types))
        except ValueError as error:
            self.fault(line, str(error))

    def fault(self, line: int, message: str) -> None:
        self.faults.append(FactFault(self.file, line, message))

    def _fact(self, predicate: object, arguments: object, types: object) -> FactRecord:
        if not isinstance(predicate, str) or not predicate.isidentifier():
            raise ValueError(f"{_short(predicate)} is no predicate name; write one like is_allergic_to")
        if not isinstance(arguments, list) or not arguments:
            raise ValueError(f"{predicate} has no arguments; write at least one")
        for position, argument in enumerate(arguments, 1):
            if reason := values.refusal(argument):
                raise ValueError(f"argument {position} of {predicate}: {reason}")
        indicator = f"{predicate}/{len(arguments)}"
        if types is None:
            types = self.types.get(indicator, ())
        return FactRecord(predicate, tuple(arguments), _types(types, indicator), Source.GIVEN)


def import_facts(
    kb: KnowledgeBase, source: str | Path | IO[str], *, form: str | None = None, skip_faulty: bool = False
) -> ImportReport:
    """Hold the facts of a file true, as given facts. `form` is `csv` or `jsonl`; None: as the file's ending says.

    Raises `FactsRejected` with every fault, and imports nothing, unless the faulty rows are to be skipped.
    """
    file = str(source) if isinstance(source, str | Path) else str(getattr(source, "name", "<stream>"))
    read = _reader(form or Path(file).suffix.lstrip(".").lower(), file)
    types = {predicate.indicator: predicate.argument_types for predicate in kb.predicates()}
    reading = _Reading(file, types, cache(lambda: frozenset((*types, *kb.fact_counts()))))
    if isinstance(source, str | Path):
        with _opened(Path(source)) as stream:
            read(stream, reading)
    else:
        read(source, reading)
    if reading.faults and not skip_faulty:
        raise FactsRejected(reading.faults)
    return _stored(kb, reading)


def _stored(kb: KnowledgeBase, reading: _Reading) -> ImportReport:
    facts = {fact.id: fact for fact in reading.facts}
    with kb.transaction():
        before = {fact.id: fact.source for fact in kb.select_in(rows.FACTS, "id", facts)}
        kb.add_facts(facts.values())
    promoted = sum(source is Source.MODEL for source in before.values())
    counts = Counter(f"{fact.predicate}/{len(fact.arguments)}" for fact in facts.values())
    return ImportReport(
        read=len(facts),
        added=len(facts) - len(before),
        promoted=promoted,
        known=len(before) - promoted,
        faults=tuple(reading.faults),
        predicates=dict(counts.most_common()),
        warnings=tuple(_warnings(reading, counts)),
    )


def _warnings(reading: _Reading, predicates: Iterable[str]) -> Iterator[str]:
    """What was read and may be a mistake: columns without a use, and predicates that no goal can name."""
    if reading.unused:
        yield (
            f"{reading.file}:{min(reading.unused.values())}: not used: {_some(map(_short, reading.unused))}. "
            "An import reads the predicate, its arguments and, in JSONL, their types."
        )
    unnamed = [one for one in predicates if _VARIABLE.match(one)]
    if unnamed:
        yield (
            f"{reading.file}: no goal can ask for {_some(unnamed)}: a name that begins with a capital letter is a "
            "variable. Write the predicate first, such as is_allergic_to, and then its arguments."
        )


def _some(names: Iterable[str], most: int = 5) -> str:
    """The names, of many the first few."""
    listed = list(names)
    return ", ".join(listed[:most]) + (" ..." if len(listed) > most else "")


def _reader(form: str, file: str) -> Callable[[IO[str], _Reading], None]:
    readers = {"csv": _read_csv, "jsonl": _read_jsonl}
    if form not in readers:
        raise HapaxError(f"{file}: facts come as csv or jsonl, not as {form!r}. Give the file one of these endings.")
    return readers[form]


def _opened(path: Path) -> IO[str]:
    try:
        # A byte that is no UTF-8 becomes a half character, which is a fault of its row.
        return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as error:
        raise HapaxError(f"{path}: {error.strerror}. Name a file that can be read.") from error


def _read_csv(stream: IO[str], reading: _Reading) -> None:
    limit = csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(stream, strict=True)
    columns = _Columns()
    try:
        for line, cells in _csv_rows(reader, reading):
            if not any(cell.strip() for cell in cells):
                continue
            header = _header(cells, reading.file) if line == 1 else None
            if header is not None:
                columns = header
                reading.unused = dict.fromkeys(header.unused, line)
                continue
            try:
                predicate, *rest = columns.chosen(cells)
                arguments = [parse_cell(cell) for cell in _without_padding(rest)]
                columns.refuse_short(cells, f"{predicate.strip()}/{len(arguments)}", reading)
            except ValueError as error:
                reading.fault(line, str(error))
            else:
                reading.take(line, predicate.strip(), arguments)
    finally:
        csv.field_size_limit(limit)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where a row has its predicate and its arguments. `places` None: all cells, as they stand."""

    places: tuple[int, ...] | None = None
    width: int = 0
    unused: tuple[str, ...] = ()

    def chosen(self, cells: list[str]) -> list[str]:
        """The predicate's cell and those of the arguments. Raises ValueError for a row wider than its header."""
        if self.places is None:
            return cells
        if len(_without_padding(cells)) > self.width:
            raise ValueError(f"the row has more cells than the {self.width} columns of the header; name all columns")
        return [cells[place] if place < len(cells) else "" for place in self.places]

    def refuse_short(self, cells: list[str], indicator: str, reading: _Reading) -> None:
        """A row that ends before its header's arguments may lack one. Raises ValueError, unless its fact is of a
        predicate that is known with so few.
        """
        wanted = max(self.places) + 1 if self.places else 0
        if len(cells) < wanted and indicator not in reading.known():
            raise ValueError(
                f"the row has {counted(len(cells), 'cell')} where the header has {wanted}, and {indicator} is not "
                "known; add the argument, or an empty cell where there is none"
            )


def _header(cells: list[str], file: str) -> _Columns | None:
    """The columns that a header names; None: the row is a fact.

    Raises HapaxError where a column is missing: no row can be read then, so there is nothing to skip.
    """

    def refused(fact: str) -> HapaxError:
        return HapaxError(f"{file}:1: {fact}. Nothing was imported.")

    names = [cell.strip().lower() for cell in cells]
    if len(names) == 1 and re.search(r"\S[;\t]", names[0]):
        raise refused("the cells are not parted by commas; save the file with commas")
    numbered = [(int(match[1]), place) for place, name in enumerate(names) if (match := _NUMBERED.fullmatch(name))]
    numbers = dict(numbered)
    if not numbers:
        return _Columns() if names[0] == "predicate" else None
    if "predicate" not in names:
        raise refused("the header has no column `predicate`; give that name to the column of the predicates")
    if len(numbers) < len(numbered):
        raise refused("the header numbers two arguments alike; number them from 1 on")
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        missing = next(one for one in range(1, len(names) + 1) if one not in numbers)
        raise refused(f"the header has no column `argument{missing}`; number the arguments from 1 on")
    places = (names.index("predicate"), *(numbers[one] for one in sorted(numbers)))
    unused = tuple(cell.strip() for place, cell in enumerate(cells) if place not in places and cell.strip())
    return _Columns(places, len(cells), unused)


def _csv_rows(reader: Any, reading: _Reading) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line on which each begins; a row that is no CSV is a fault, and the next line a new row."""
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reading.fault(line, f"no CSV: {error}; double each quotation mark inside a quoted cell")


def _without_padding(cells: list[str]) -> list[str]:
    while cells and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def parse_cell(cell: str) -> Value:
    """The value of a CSV cell. Raises ValueError for an empty cell and for a JSON string that is not one."""
    text = cell.strip()
    if not text:
        raise ValueError('a cell before the last one is empty; write "" for an empty text')
    if text.startswith(('"', '{"decimal"')):
        try:
            return values.plain_value(values.load_json(text))
        except ValueError as error:
            raise ValueError(f"{_short(text)} is no JSON string ({error}); close it with a quotation mark") from error
    if _INTEGER.fullmatch(text):
        return _integer(text)
    return values.decimal_value(text) if _DECIMAL.fullmatch(text) else text


def _integer(text: str) -> int:
    """Python itself refuses integers of more than 4,300 digits, with advice for programmers."""
    if len(text) > values.MAX_INTEGER_BITS // 3:
        raise ValueError(f"the integer has {len(text)} digits; give it as a text in quotation marks")
    return int(text)


def cell_text(value: Value) -> str:
    """The cell that reads back as the value: as it is where that is enough, else as JSON."""
    plain = str(value)
    if plain.isprintable() and plain and not (isinstance(value, str) and plain[0] in _FORMULA):
        try:
            again = parse_cell(plain)
        except ValueError:
            again = None
        if type(again) is type(value) and str(again) == plain:
            return plain
    return values.encode_value(value)


def _read_jsonl(stream: IO[str], reading: _Reading) -> None:
    for line, text in enumerate(stream, 1):
        if not text.strip():
            continue
        try:
            entry = values.load_json(text)
        except ValueError as error:
            reading.fault(line, f"no JSON: {error}; write one object a line")
            continue
        if not isinstance(entry, dict):
            reading.fault(line, f"no object; write {_EXAMPLE}")
            continue
        unused = [one for one in entry if one not in _FIELDS]
        missing = [one for one in ("predicate", "arguments") if one not in entry]
        if missing:
            found = f", only {_some(map(_short, unused))}" if unused else ""
            reading.fault(line, f"no {' and no '.join(missing)}{found}; write {_EXAMPLE}")
            continue
        for name in unused:
            reading.unused.setdefault(name, line)
        reading.take(line, entry["predicate"], entry["arguments"], entry.get("types"))


def _types(types: object, indicator: str) -> tuple[str, ...]:
    """Either no types at all or one for each argument."""
    if not isinstance(types, list | tuple) or not all(isinstance(t, str) for t in types):
        raise ValueError(f"the types of {indicator} are no list of texts; leave them out")
    if types and len(types) != int(indicator.rpartition("/")[2]):
        raise ValueError(f"{indicator} has {len(types)} types; give one for each argument, or none")
    for data_type in types:
        if reason := values.refusal(data_type):
            raise ValueError(f"a type of {indicator}: {reason}")
    return tuple(types)


def export_facts(kb: KnowledgeBase, form: str, stream: IO[str], predicate: str | None = None) -> ExportReport:
    """Write facts, ordered by predicate, as `prolog` (loads in SWI-Prolog), `csv` or `jsonl`.

    A fact that the format cannot hold is left out and reported.
    """
    writers: dict[str, Callable[[FactRecord, int], str]] = {
        "prolog": _prolog_line,
        "csv": _csv_line,
        "jsonl": _jsonl_line,
    }
    if form not in writers:
        raise HapaxError(f"{kb.place}: facts are exported as {', '.join(writers)}, not as {form!r}. Name one of these.")
    # Prolog wants the clauses of one name and arity together.
    facts = sorted(kb.facts(predicate), key=lambda fact: (fact.predicate, len(fact.arguments)))
    if predicate is not None and not facts:
        _refuse_unknown(kb, predicate)
    arity = max((len(fact.arguments) for fact in facts), default=0)
    stream.write(_opening(form, arity))
    written, left_out = 0, []
    for fact in facts:
        try:
            line = writers[form](fact, arity)
        except HapaxError as error:
            left_out.append(LeftOut(fact, str(error)))
            continue
        stream.write(line + "\n")
        written += 1
    return ExportReport(written, tuple(left_out))


def _refuse_unknown(kb: KnowledgeBase, predicate: str) -> None:
    """No facts of a predicate that a search declared are no facts; of one that nobody knows they are a slip."""
    if any(predicate in (one.name, one.indicator) for one in kb.predicates()):
        return
    counts = kb.fact_counts()
    names = {one.rpartition("/")[0]: one for one in reversed(counts)}
    near = get_close_matches(predicate.rpartition("/")[0] or predicate, names, n=3, cutoff=0.6)
    if near:
        remedy = f"Did you mean {' or '.join(names[one] for one in near)}?"
    elif counts:
        remedy = f"It holds facts of {_some(counts)}."
    else:
        remedy = "It holds no facts at all; search or import some first."
    raise HapaxError(f"{kb.place}: there are no facts of {_short(predicate)}. {remedy}")


def _opening(form: str, arity: int) -> str:
    """The line before the facts."""
    if form == "csv":
        return ",".join(["predicate", *(f"argument{position}" for position in range(1, arity + 1))]) + "\n"
    return ":- encoding(utf8).\n" if form == "prolog" else ""


def _prolog_line(fact: FactRecord, _: int) -> str:
    indicator = f"{fact.predicate}/{len(fact.arguments)}"
    if indicator in SYSTEM_NAMES:
        raise HapaxError(f"{indicator} is Prolog's own and cannot be defined. Rename the predicate.")
    return f"{prolog_atom(fact.predicate)}({', '.join(map(prolog_value, fact.arguments))})."


def _csv_line(fact: FactRecord, arity: int) -> str:
    cells = (fact.predicate, *map(cell_text, fact.arguments), *[""] * (arity - len(fact.arguments)))
    return ",".join('"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\r\n') else cell for cell in cells)


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


def _short(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 40 else text[:37] + "..."
