"""Every way in checks facts alike: rows of values, tables in memory, and files by the command line."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run

import hapax

RULES = """type Minutes < Number
given delayed(Flight, Minutes): "[1] is late by [2] minutes"
given lasts(Minutes, Minutes): "what was to last [1] minutes lasts [2]"
given likes(Person, Person): "[1] likes [2]"
given rich(Person): "[1] is rich"
functional born_in(Person, City): "[1] was born in [2]"
"""


class ArrowFrame:
    """A table that passes its columns on by Arrow's protocol, and whose iteration gives them, as that of polars."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = list(columns)
        self._cells = columns

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self._cells.values())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pytest.importorskip("pyarrow").table(self._cells).__arrow_c_stream__(requested_schema)


class OtherTable:
    """A table that has columns and no protocol by which to read its rows."""

    columns = ("a", "b")

    def __iter__(self) -> Iterator[list[str]]:
        return iter([["ann", "bob"], ["carl", "dora"]])


@pytest.fixture
def rules() -> hapax.Library:
    return hapax.parse_rules(RULES)


def facts_of(kb: hapax.KnowledgeBase) -> list[tuple[object, ...]]:
    return [(fact.predicate, *fact.arguments) for fact in kb.facts()]


def test_a_table_is_read_by_rows(rules: hapax.Library) -> None:
    """The columns of a table are the arguments, also where as many rows as columns could be taken for them."""
    frame = ArrowFrame({"a": ["ann", "bob"], "b": ["carl", "dora"]})
    wanted = [("likes", "ann", "carl"), ("likes", "bob", "dora")]
    mapping = hapax.TableMapping.of("likes", ["a", "b"])
    with hapax.KnowledgeBase() as kb:
        assert hapax.add_facts(kb, "likes", frame, rules) == 2
        assert facts_of(kb) == wanted
    with hapax.KnowledgeBase() as kb:
        assert hapax.import_facts(kb, frame, mapping=mapping, rules=rules).added == 2
        assert facts_of(kb) == wanted


@pytest.mark.parametrize(
    "table",
    [OtherTable(), {"a": ["ann"], "b": ["bob"]}, [{"ann", "bob"}], ["ab"]],
    ids=["columns alone", "dict of columns", "sets", "texts"],
)
def test_an_object_without_rows_is_refused(rules: hapax.Library, table: Any) -> None:
    """Tables that do not say how they are read, dicts of columns, sets and texts as rows store nothing."""
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError):
            hapax.add_facts(kb, "likes", table, rules)
        assert facts_of(kb) == []


@pytest.mark.parametrize(
    ("predicate", "rows", "fault"),
    [
        ("delayed", [("F1", 5), ("F8", "ninety")], "number"),
        ("delayed", [("F1", 5), ("F8", "2026-11-28")], "number"),
        ("lasts", [(5, 6), (5, "six")], "number"),
        ("lasts", [(5, 6), ("five", 6)], "number"),
        ("likes", [("ann", "bob"), ("ann",)], "1 argument"),
        ("likes", [("ann", "bob"), ("ann", None)], "empty"),
        ("born_in", [("ann", "Oslo"), ("ann", "Rome")], "functional"),
    ],
)
def test_every_way_in_refuses_what_breaks_a_declaration(
    rules: hapax.Library, tmp_path: Path, predicate: str, rows: list[tuple[Any, ...]], fault: str
) -> None:
    """Rows of Python, a table and files of both forms are refused for the same reason, and nothing is stored."""
    (tmp_path / "r.rules").write_text(RULES, "utf-8")
    lines = [",".join([predicate, *("" if cell is None else str(cell) for cell in row)]) for row in rows]
    (tmp_path / "f.csv").write_text("\n".join(["predicate,argument1,argument2", *lines]) + "\n", "utf-8")
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.FactsRejected, match=f"{predicate}:.*{fault}"):
            hapax.add_facts(kb, predicate, rows, rules)
        if all(len(row) == 2 for row in rows):
            columns = [[None if row[place] is None else str(row[place]) for row in rows] for place in (0, 1)]
            with pytest.raises(hapax.FactsRejected, match=fault):
                hapax.add_facts(kb, predicate, ArrowFrame(dict(zip("ab", columns, strict=True))), rules)
        assert facts_of(kb) == []
    records = [json.dumps({"predicate": predicate, "arguments": row}) for row in rows]
    (tmp_path / "f.jsonl").write_text("\n".join(records) + "\n", "utf-8")
    for name in ("f.csv", "f.jsonl"):
        refused = invoke("import", tmp_path / name, "--rules", tmp_path / "r.rules", "--db", tmp_path / "kb.db")
        assert refused.exit_code == 1
        assert fault in refused.stderr or predicate in refused.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"predicate": "is rich"},
        {"arguments": ()},
        {"arguments": ("ann", None)},
        {"arguments": ("ann", "x" * 2_000_000)},
        {"arguments": ("ann", "\ud800")},
        {"types": ("Person",)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_record_that_cannot_be_a_fact_is_not_stored(rules: hapax.Library, change: dict[str, Any]) -> None:
    """The knowledge base itself refuses what the intake of files refuses, and stores none of the records."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "likes", [("ann", "bob")], rules)
        (fact,) = kb.facts()
        with pytest.raises(hapax.HapaxError):
            kb.add_facts([replace(fact, arguments=("carl", "dora")), replace(fact, **change)])
        assert facts_of(kb) == [("likes", "ann", "bob")]


def test_given_facts_replace_those_of_models_and_count_as_new(rules: hapax.Library) -> None:
    """Known facts are not counted again."""
    with hapax.KnowledgeBase() as kb:
        assert hapax.add_facts(kb, "likes", [("ann", "bob")], rules) == 1
        assert hapax.add_facts(kb, "likes", [("ann", "bob"), ("bob", "ann")], rules) == 1


def test_a_declared_predicate_is_known_to_an_import(tmp_path: Path) -> None:
    """A row shorter than the header is a fact where the rules declare its predicate with that many arguments."""
    (tmp_path / "r.rules").write_text(RULES, "utf-8")
    (tmp_path / "f.csv").write_text("predicate,argument1,argument2\nlikes,ann,bob\nrich,ann\n", "utf-8")

    run("import", tmp_path / "f.csv", "--rules", tmp_path / "r.rules", "--db", tmp_path / "kb.db")

    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        assert facts_of(kb) == [("likes", "ann", "bob"), ("rich", "ann")]


def test_an_import_refuses_what_is_no_date_of_a_declared_column(tmp_path: Path) -> None:
    """A month 13, a number and a word are told with their lines; dates and date-times stand for one another."""
    (tmp_path / "r.rules").write_text("given left(Trip, Date)\n", "utf-8")
    lines = ["predicate,argument1,argument2", "left,a,2013-12-31", "left,b,2013-12-31T08:00", "left,c,"]
    (tmp_path / "f.csv").write_text("\n".join([*lines, "left,d,2013-13-01", "left,e,2013", "left,f,soon"]), "utf-8")

    refused = invoke("import", tmp_path / "f.csv", "--rules", tmp_path / "r.rules", "--db", tmp_path / "kb.db")

    assert refused.exit_code == 1
    told = [
        line.removeprefix("error: ").split(":")[1] for line in refused.stderr.splitlines() if "a date (Date)" in line
    ]
    assert told == ["5", "6", "7"]


def test_a_merge_refuses_given_facts_that_break_a_declaration(tmp_path: Path) -> None:
    """A knowledge base with a text for a number is not merged into one whose rules have a number there."""
    (tmp_path / "r.rules").write_text(RULES, "utf-8")
    (tmp_path / "f.csv").write_text("predicate,argument1,argument2\nlikes,ann,bob\n", "utf-8")
    (tmp_path / "g.csv").write_text("predicate,argument1,argument2\ndelayed,F8,ninety\nlikes,bob,ann\n", "utf-8")
    run("import", tmp_path / "f.csv", "--rules", tmp_path / "r.rules", "--db", tmp_path / "kb.db")
    run("import", tmp_path / "g.csv", "--db", tmp_path / "other.db")

    refused = invoke("data", "merge", tmp_path / "other.db", "--db", tmp_path / "kb.db")

    assert refused.exit_code == 1
    assert "ninety" in refused.stderr
    assert "hapax data retract" in refused.stderr
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        assert facts_of(kb) == [("likes", "ann", "bob")]


def test_a_refused_import_leaves_nothing_behind(tmp_path: Path) -> None:
    """The rows before a faulty one were read in many batches; no fact, no predicate and no name of them stays."""
    table, database = tmp_path / "likes.csv", tmp_path / "kb.db"
    rows = [f"likes,p{number},q{number}" for number in range(2_000)]
    table.write_text("\n".join(["predicate,argument1,argument2", *rows, "likes,"]) + "\n")
    run("import", table, "--db", database, "--skip-faulty")
    before = sorted(run("export", "--format", "csv", "--db", database).stdout.splitlines())
    table.write_text("\n".join(["predicate,argument1,argument2", "hates,x,y", *rows, "hates,"]) + "\n")
    refused = invoke("import", table, "--db", database)

    assert refused.exit_code == 1
    assert sorted(run("export", "--format", "csv", "--db", database).stdout.splitlines()) == before
    with hapax.KnowledgeBase(database) as kb:
        assert kb.sql("SELECT count(*) FROM symbols WHERE symbol = '\"x\"'") == [(0,)]
        assert [name for (name,) in kb.sql("SELECT predicate FROM relations")] == ["likes"]


def test_rows_are_checked_alike_together_and_alone() -> None:
    """A long table has the facts and the faults that its rows have one by one, of whatever classes its cells are."""
    pandas = pytest.importorskip("pandas")
    rules = hapax.parse_rules("given seen(Person, Number, Date, Text)\n")
    drawn = random.Random(7)
    texts = ["ann", "Žofie", "", " ", "\ud83d", "x" * 200, "null", "true"]
    numbers = [1, -1, 0, 2**64, Decimal("1.5"), Decimal("1.50"), Decimal("2.0"), "7", None, float("nan"), 1.0, True]
    dates = ["2013-01-01", "2013-02-30", "2013-01-01T10:00:00", 5, date(2013, 1, 2), None]
    odd = (texts, numbers, dates, [*texts, *numbers])
    rows = [
        [drawn.choice(cells) if drawn.random() < 0.04 else usual for cells, usual in zip(odd, plain, strict=True)]
        for plain in ([f"n{n}", n, "2013-01-01", f"t{n % 7}"] for n in range(560))
    ]
    together, alone = hapax.KnowledgeBase(), hapax.KnowledgeBase()
    with together, alone:
        columns = ["name", "n", "day", "note"]
        mapping = hapax.TableMapping.of("seen", columns)
        table = pandas.DataFrame(rows, columns=columns, dtype=object)
        found = hapax.import_facts(together, table, mapping=mapping, rules=rules, skip_faulty=True)
        faults = []
        for line, row in enumerate(rows, 1):
            single = pandas.DataFrame([row], columns=columns, dtype=object)
            report = hapax.import_facts(alone, single, mapping=mapping, rules=rules, skip_faulty=True)
            faults += [(line, fault.message, fault.kind) for fault in report.faults]
        assert [(fault.line, fault.message, fault.kind) for fault in found.faults] == faults
        assert len({kind for _, _, kind in faults}) == 3
        assert found.added == len(together.facts()) > 400
        assert [(fact.id, fact.arguments) for fact in together.facts()] == [
            (fact.id, fact.arguments) for fact in alone.facts()
        ]
