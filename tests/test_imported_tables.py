"""Imports of files of every form, faulty rows included: reports, refusals and facts are in `tests/golden/`."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents

import hapax
from hapax.api.importing import rules_for_facts
from hapax.grammar.errors import HapaxError
from hapax.kb import intake, tables
from hapax.kb.exchange import import_facts
from hapax.kb.intake import FactNames
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.kb.tables import TableMapping, import_table

RULES = """
type Feet < Number.
given lies_at(Airport, Feet).
functional opened_in(Airport, Year).
given is_near(Airport, Airport).
given is_hub(Airport).
asymmetric is_near/2
@name high
@generic none
lies_at(Airport A, Feet H) & H > 100 -> is_high(Airport A).
@name unknown
@generic none
is_high(Airport A) & not is_hub(Airport A) -> is_remote(Airport A).
"""
HIGH = TableMapping.of("lies_at", ["airport", "feet"])
SEVERAL = {
    "facts": [
        {"predicate": "lies_at", "columns": ["airport", "feet"]},
        {"predicate": "opened_in", "columns": ["airport", "year"]},
        {"predicate": "is_hub", "columns": ["airport"]},
    ]
}
LONG = "x" * 41

CSV_FACTS = {
    "plain": "predicate,argument1,argument2\nlies_at,LHR,83\nis_near,LHR,LGW\nlies_at,LHR,83\n",
    "types": "predicate,argument1,argument2,type1,type2\nlies_at,LHR,83,Airport,Feet\nsees,LHR,LGW,Airport,\n",
    "no header": "lies_at,LHR,83\nlies_at,CDG,392\n",
    "faulty": (
        "predicate,argument1,argument2,more\nlies_at,LHR,high,\nlies_at,,83,\n,LHR,83,\nLies at,LHR,83,x\n"
        f"lies_at,{LONG},{LONG},y\nlies_at,LHR,,\nis_hub,LHR,,\nopened_in,LHR,1946,\nopened_in,LHR,1947,\n"
        'is_near,LHR,LGW,\nis_near,LGW,LHR,\nlies_at,"a\nb",x,\nlies_at,CDG,1e3,\nlies_at,ORY,1_000,\n'
    ),
    "another number of arguments": "predicate,argument1,argument2\nis_hub,LHR,LGW\nlies_at,LHR\nlies_at,LHR,83,9\n",
    "unknown names": "predicate,argument1,argument2\nlie_at,LHR,83\nhub_of,LHR,LGW\nis_nears,LHR,LGW\n",
    "empty": "",
    "header alone": "predicate,argument1\n",
    "variables": "predicate,argument1\nIs_hub,LHR\n_hub,LHR\nis_hub,X\n",
    "shifted": "argument1,argument2,predicate\nLHR,83,lies_at\nCDG,392,lies_at\n",
}
JSON_FACTS = {
    "plain": '{"predicate": "lies_at", "arguments": ["LHR", 83]}\n\n{"predicate": "lies_at", "arguments": ["CDG", 392.5]}\n',
    "faulty": (
        '{"predicate": "lies_at"}\n{"arguments": ["LHR", 83]}\n[1]\n{"predicate": "lies_at", "arguments": "LHR"}\n'
        '{"predicate": "lies_at", "arguments": []}\n{"predicate": "lies_at", "arguments": [null, 1]}\n'
        '{"predicate": "lies_at", "arguments": [true, 1]}\n{"predicate": "lies_at", "arguments": ["LHR", 1e400]}\n'
        '{"predicate": "lies_at", "arguments": ["LHR", 83], "types": ["Airport"]}\n{"predicate": 3, "arguments": [1]}\n'
        '{"predicate": "lies_at", "arguments": [["LHR"], 83], "note": 1}\n{"predicate": "lies_at", "arguments": ["LHR", "83"]}\n'
    ),
    "broken": '{"predicate": "lies_at", "arguments": ["LHR", 83]}\n{"predicate"\n',
    "types": '{"predicate": "sees", "arguments": ["LHR", "LGW"], "types": ["Airport", "Airport"]}\n',
}


def outcome(
    source: Any, *, stored: list[FactRecord] | None = None, names: FactNames | None = None, **options: Any
) -> str:
    """The report or the refusal of an import with and without its faulty rows, and the facts."""
    lines = []
    for skip_faulty in (False, True):
        with KnowledgeBase() as kb:
            kb.add_facts(stored or [])
            try:
                if names is None:
                    report = hapax.import_facts(kb, source, skip_faulty=skip_faulty, **options)
                else:
                    report = renamed(kb, source, names, skip_faulty=skip_faulty, **options)
                figures = {name: value for name, value in report.to_json().items() if value and name != "faults"}
                lines += [json.dumps(figures, default=str), *map(str, report.faults)]
            except HapaxError as refusal:
                lines.append(f"{type(refusal).__name__}: {refusal}")
            facts = sorted(kb.facts(), key=lambda fact: (fact.predicate, str(fact.arguments)))
            lines += [f"  {fact.predicate}{fact.arguments} {fact.types} {fact.source} {fact.basis}" for fact in facts]
        if not skip_faulty and not lines[0].startswith("FactsRejected"):
            break
    return "".join(f"{line}\n" for line in lines)


def renamed(kb: KnowledgeBase, source: Any, names: FactNames, *, rules: Any, skip_faulty: bool, **options: Any) -> Any:
    """An import under canonical names."""
    fitting = replace(rules_for_facts(kb, rules), names=names)
    if "mapping" in options:
        return import_table(kb, source, options["mapping"], rules=fitting, skip_faulty=skip_faulty)
    return import_facts(kb, source, rules=fitting, skip_faulty=skip_faulty)


def written(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_files_of_facts_are_imported_as_before() -> None:
    """CSV and JSONL with a predicate in each row, with and without rules, have these reports and facts."""
    rules = hapax.parse_rules(RULES)
    told = []
    for ending, files in (("csv", CSV_FACTS), ("jsonl", JSON_FACTS)):
        for name, content in files.items():
            source = written(f"facts.{ending}", content)
            told += [f"# {ending}, {name}\n", outcome(source), "# by rules\n", outcome(source, rules=rules)]
    claimed = [FactRecord("lies_at", ("LHR", 83), (), Source.MODEL, 0.9)]
    known = [FactRecord("is_near", ("LGW", "LHR"), (), Source.GIVEN)]
    source = written("facts.csv", CSV_FACTS["plain"])
    told += ["# claimed before\n", outcome(source, stored=claimed, rules=rules)]
    told += ["# in conflict\n", outcome(source, stored=known, rules=rules)]

    compared("imported/facts", "".join(told))


def sqlite_file(name: str, columns: str, rows: list[tuple[object, ...]]) -> Path:
    with sqlite3.connect(name) as connection:
        connection.execute(f"CREATE TABLE airports ({columns})")
        connection.execute("CREATE TABLE other (name)")
        connection.executemany(f"INSERT INTO airports VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608
    connection.close()
    return Path(name)


def folder(name: str) -> Path:
    Path(name).mkdir()
    return Path(name)


TABLES: dict[str, Callable[[], Path]] = {
    "csv": lambda: written("t.csv", "airport,feet,year\nLHR,83,1946\nCDG,high,1974\n,12,1900\nORY,291\nLGW,202,1958,9\n"),
    "lines in cells": lambda: written("l.csv", 'airport,feet\n"a\r\nb",1\n"c\n\nd",x\n\ne,y\n"f",2\n'),
    "windows": lambda: written("w.csv", "\ufeffairport;feet\r\nLHR;83\r\nCDG;x\r\n"),
    "tsv": lambda: written("t.tsv", "airport\tfeet\nLHR\t83\na,b\tx\n"),
    "text": lambda: written("t.txt", "airport|feet\nLHR|83\nCDG|x|1\n"),
    "latin": lambda: written("n.csv", b"airport,feet\nZ\xfcrich,1\n"),
    "nul": lambda: written("z.csv", "airport,feet\na\0b,1\n"),
    "quotes": lambda: written("q.csv", 'airport,feet\n"a ""b""",1\n"c"d,2\n"e,3\n'),
    "other columns": lambda: written("o.csv", "airports,foot\nLHR,83\n"),
    "twice": lambda: written("d.csv", "airport,airport,feet\nLHR,CDG,83\n"),
    "empty": lambda: written("e.csv", ""),
    "header alone": lambda: written("h.csv", "airport,feet\n"),
    "json": lambda: written("t.jsonl", '\n{"airport": "LHR", "feet": 83}\n{"airport": "CDG"}\n{"feet": 3.50, "airport": "ORY"}\n'),
    "json, no column": lambda: written("n.jsonl", '{"airport": "LHR", "elevation": 83}\n{"airport": "CDG", "foot": 1}\n'),
    "json, broken": lambda: written("b.jsonl", '{"airport": "LHR", "feet": 83}\n{"airport": \n'),
    "json, list": lambda: written("l.jsonl", '{"airport": "LHR", "feet": 83}\n["CDG", 392]\n'),
    "sqlite": lambda: sqlite_file("t.db", "airport, feet", [("LHR", 83), ("CDG", None), ("ORY", "x"), (b"b", 1)]),
    "sqlite, no column": lambda: sqlite_file("n.sqlite", "airport, feets", [("LHR", 83)]),
    "no sqlite": lambda: written("x.db", "airport,feet\n"),
    "no form": lambda: written("t.xls", "airport,feet\n"),
    "no file": lambda: Path("missing.csv"),
    "folder": lambda: folder("folder.csv"),
}  # fmt: skip


def test_tables_are_imported_as_before() -> None:
    """Tables of every form, with faulty rows and without their columns, have these reports and facts."""
    rules = hapax.parse_rules(RULES)
    told = []
    for name, table in TABLES.items():
        source = table()
        mapping = HIGH.model_copy(update={"table": "airports"}) if "sqlite" in name else HIGH
        told += [
            f"# {name}\n",
            outcome(source, mapping=mapping),
            "# by rules\n",
            outcome(source, mapping=mapping, rules=rules),
        ]
    source = sqlite_file("u.db", "airport, feet", [("LHR", 83)])
    told += ["# no table named\n", outcome(source, mapping=HIGH)]
    told += ["# another table\n", outcome(source, mapping=HIGH.model_copy(update={"table": "airport"}))]
    several = TableMapping.model_validate(SEVERAL)
    told += ["# several\n", outcome(TABLES["csv"](), mapping=several, rules=rules)]

    compared("imported/tables", "".join(told))


def test_data_frames_and_parquet_files_are_imported_as_before() -> None:
    """Typed cells become texts and numbers by what they show; what is neither is told with its row."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    cells = [1, 2.0, 2.5, float("nan"), float("inf"), None, "text", Decimal("1.10"), date(2020, 1, 2), time(3, 4)]
    cells += [datetime(2020, 1, 2), datetime(2020, 1, 2, 3), True, b"bytes", (1,), "", " blank "]
    mixed = pandas.DataFrame(
        {"airport": [f"a{k}" for k in range(len(cells))], "feet": pandas.Series(cells, dtype=object)}
    )
    narrow = pandas.DataFrame({"airport": ["a", "b"], "feet": pandas.Series([3.1, 4.0], dtype="float32")})
    whole = pandas.DataFrame({"airport": ["a", "b"], "feet": pandas.Series([3, -4], dtype="int16")})
    told = []
    for name, frame in (("mixed", mixed), ("narrow", narrow), ("whole", whole)):
        told += [f"# {name}\n", outcome(frame, mapping=HIGH)]
    for name, frame in (("narrow", narrow), ("whole", whole)):
        frame.to_parquet(f"{name}.parquet")
        told += [f"# {name}.parquet\n", outcome(Path(f"{name}.parquet"), mapping=HIGH)]
    told += ["# no parquet\n", outcome(written("broken.parquet", "no"), mapping=HIGH)]
    told += ["# no mapping\n", outcome(whole)]

    compared("imported/frames", "".join(told))


CITIES = {"Peking": "Beijing", "Pekin": "Beijing", "Beijing": "Beijing", "Bombay": "Mumbai", "Mumbai": "Mumbai"}
CITY_RULES = """
given lies_in(City, Country).
functional has_people(City, Number).
given is_port(City).
"""


def test_values_are_stored_under_canonical_names_as_before() -> None:
    """Renamed values keep what the file has as their basis; unknown ones stay, and the first few are named."""
    rules = hapax.parse_rules(CITY_RULES)
    names = FactNames("the atlas", lambda value, data_type: CITIES.get(value) if data_type == "City" else None)
    rows = "city,country,people\nPeking,China,1\nBeijing,China,1\nBombay,India,2\nRome,Italy,3\nOslo,Norway,\n"
    table = written(
        "c.csv", rows + "Paris,France,x\nBern,Swiss,4\nPekin,China,9\n" + "".join(f"City {k},X,{k}\n" for k in range(9))
    )
    plain = "predicate,argument1,argument2\nlies_in,Peking,China\nlies_in,Rome,Italy\nis_port,Bombay\nsees,Peking,x\n"
    facts = written("f.csv", plain + "lies_in,Beijing,China\nhas_people,Bombay,9\nhas_people,Mumbai,8\n")
    claimed = [FactRecord("has_people", ("Beijing", 7), (), Source.MODEL, 0.9)]
    several = {
        "facts": [
            {"predicate": "lies_in", "columns": ["city", "country"]},
            {"predicate": "has_people", "columns": ["city", "people"]},
        ]
    }
    told = []
    for stored in ([], claimed):
        for skip_faulty in (False, True):
            for source in (table, facts):
                with KnowledgeBase() as kb:
                    kb.add_facts(stored)
                    fitting = replace(rules_for_facts(kb, rules), names=names)
                    try:
                        if source is table:
                            report = import_table(
                                kb, source, TableMapping.model_validate(several), rules=fitting, skip_faulty=skip_faulty
                            )
                        else:
                            report = import_facts(kb, source, skip_faulty=skip_faulty, rules=fitting)
                        told += [json.dumps(report.to_json(), default=str)]
                    except HapaxError as refusal:
                        told.append(str(refusal))
                    told.append(contents(kb, shown=30))

    compared("imported/names", "\n".join(told))


def test_many_faults_are_counted_by_kind() -> None:
    """Of more than twenty faults the first are told, then the number of the others, and of all by kind."""
    rules = hapax.parse_rules(RULES)
    told = []
    for count in (20, 21, 22):
        rows = "".join(f"lies_at,A{k},x\n" if k % 3 else f"lies_at,A{k}\n" for k in range(count))
        told.append(outcome(written("many.csv", "predicate,argument1,argument2\n" + rows), rules=rules))
    words = [f"word{k}" for k in range(7)]
    for count in (1, 2, 5, 6, 7):
        rows = "".join(f"{word},x\n" for word in words[:count])
        told.append(outcome(written("words.csv", rows), rules=rules))
        told.append(outcome(written("words.csv", rows)))
        told.append(outcome(written("words.csv", rows + "is_hub,x\n"), rules=rules))
        told.append(outcome(written("repeats.csv", "predicate,argument1\n" + "is_hub,x\n" * count)))

    compared("imported/faults", "\n".join(told))


@pytest.mark.parametrize("form", ["csv", "jsonl", "frame"])
def test_large_tables_are_counted_to_the_last_row(form: str) -> None:
    """Facts beyond the size of a batch are all stored, and their repeats and faults are told by row."""
    count = 10_050
    if form == "frame":
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame(
            {"airport": [f"a{k % 10_040}" for k in range(count)], "feet": [k % 10_040 for k in range(count)]}
        )
    elif form == "csv":
        table = written("big.csv", "airport,feet\n" + "".join(f"a{k % 10_040},{k % 10_040}\n" for k in range(count)))
    else:
        table = written(
            "big.jsonl", "".join(f'{{"airport": "a{k % 10_040}", "feet": {k % 10_040}}}\n' for k in range(count))
        )
    with KnowledgeBase() as kb:
        report = hapax.import_facts(kb, table, mapping=HIGH)
        assert (report.read, report.added, report.repeats, kb.counts()["facts"]) == (10_040, 10_040, 10, 10_040)
        first = 10_041 + (form == "csv")
        lines = ", ".join(str(line) for line in range(first, first + 5))
        assert report.warnings == (
            f"{table if form != 'frame' else 'DataFrame'}: 10 facts repeat an earlier one: line {lines} ....",
        )


CELLS = (
    "LHR",
    "CDG",
    "LGW",
    " LHR ",
    "",
    "83",
    "392",
    "-7",
    "0.5",
    "1e3",
    "1_000",
    "high",
    "1946",
    "1947",
    LONG,
    '"q"',
)
DRAWN = ("lies_at", "lies_at", "opened_in", "is_near", "is_near", "is_hub", "sees", "is_far", "Lies at", "")
RENAMED = {"LHR": "London", "LGW": "London", "CDG": "Paris", "high": "High"}


def drawn_file(chance: random.Random) -> tuple[Path, TableMapping | None]:
    """A file of facts, with or without a header, as CSV or JSONL, or a table with its mapping; some rows are faulty."""
    rows = []
    faulty = chance.choice([0.0, 0.1, 0.3])
    for _ in range(chance.randrange(1, 14)):
        name = chance.choice(DRAWN if chance.random() < faulty else DRAWN[:7])
        cells = [chance.choice(CELLS[:3]), chance.choice(CELLS[:3] if name == "is_near" else CELLS[5:9])]
        cells = cells[: 1 if name == "is_hub" else 2]
        if chance.random() < faulty:
            cells[chance.randrange(len(cells))] = chance.choice(CELLS)
        if chance.random() < faulty / 2:
            cells = chance.choice([cells[:-1], [*cells, chance.choice(CELLS)]])
        rows.append([name, *cells])
    rows += chance.sample(rows, min(len(rows), chance.randrange(3)))
    match chance.choice(["csv", "csv", "jsonl", "table", "table"]):
        case "csv":
            header = chance.choice([["predicate,argument1,argument2"], ["predicate,argument1,argument2,type1"], []])
            lines = [",".join(cell.replace('"', '""') for cell in row) for row in rows]
            return written("drawn.csv", "\n".join([*header, *lines]) + "\n"), None
        case "jsonl":
            numbers: dict[str, object] = {"83": 83, "392": 392, "-7": -7, "0.5": 0.5, "1946": 1946, "": None}
            lines = [
                json.dumps({"predicate": name, "arguments": [numbers.get(cell, cell) for cell in cells]})
                for name, *cells in rows
            ]
            return written("drawn.jsonl", "\n".join(lines) + "\n"), None
        case _:
            lines = [",".join(cell.replace('"', '""') for cell in row[1:]) for row in rows]
            mapping = chance.choice(
                [HIGH, TableMapping.of("opened_in", ["airport", "feet"]), TableMapping.of("is_hub", ["feet"])]
            )
            return written("drawn_table.csv", "\n".join(["airport,feet", *lines]) + "\n"), mapping


@pytest.mark.parametrize("part", range(3))
def test_drawn_files_are_imported_alike_by_batches_of_any_size(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file has its recorded report, faults and facts, whether two rows or all are read at once."""
    rules = hapax.parse_rules(RULES)
    names = FactNames("the atlas", lambda value, _: RENAMED.get(value))
    lines = []
    for seed in range(part * 30, part * 30 + 30):
        chance = random.Random(f"table {seed}")
        source, mapping = drawn_file(chance)
        stored = [
            FactRecord("is_near", ("LGW", "LHR"), (), Source.GIVEN),
            FactRecord("opened_in", ("CDG", 1946), (), chance.choice([Source.GIVEN, Source.MODEL]), 0.9),
        ]
        options: dict[str, Any] = chance.choice([{}, {"rules": rules}, {"rules": rules, "names": names}])
        options = {**options, "mapping": mapping} if mapping else options
        known = chance.choice([[], stored])
        told = outcome(source, stored=known, **options)
        with monkeypatch.context() as small:
            for module in (intake, tables):
                small.setattr(module, "_BATCH", 2)
            assert outcome(source, stored=known, **options) == told
        lines.append(f"{seed} {source.name} {checksum(told.splitlines())} {told.splitlines()[0][:150]}")
    compared(f"imported/drawn_{part}", "\n".join(lines) + "\n")
