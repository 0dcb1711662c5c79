"""Rows on their way in: checks of intake, and rows of tables."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run

import hapax

# --- intake -----------------------------------------------------------------------------------------------------------


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


# --- rows -------------------------------------------------------------------------------------------------------------


TRIPS = "flight,carrier,air_time\nu1,UA,100\nu2,AA,\nu3,UA,50\nu1,UA,100\n"
MAPPING = "- {predicate: trip, columns: [flight, carrier, air_time], key: flight}\n"
ROWS_RULES = """
type Minutes < Number
given trip(id: Trip, carrier: Carrier, air_time: Minutes)
trip(id: I, air_time: T) & T > 60 -> is_long(I)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder, with a table, its mapping and rules over it."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"trips.csv": TRIPS, "map.yaml": MAPPING, "trips.rules": ROWS_RULES}.items():
        Path(name).write_text(text, "utf-8")


def imported(same_key: str = "refuse", **options: str) -> tuple[hapax.KnowledgeBase, hapax.ImportReport]:
    kb = hapax.KnowledgeBase()
    mapping, rules = hapax.TableMapping.read(Path("map.yaml")), hapax.load_rules("trips.rules")
    mapping = mapping.model_copy(update=options)
    return kb, hapax.import_facts(kb, "trips.csv", mapping=mapping, rules=rules, same_key=same_key)


def test_a_row_is_one_fact_and_rules_name_its_columns() -> None:
    """No second row lends it a value."""
    invoke("import", "trips.csv", "--map", "map.yaml", "--rules", "trips.rules", "--db", "t.db")

    assert invoke("check", "trips.rules").stdout == ""
    assert invoke("query", "is_long(I)", "--db", "t.db").stdout.split() == ["I", "u1"]
    assert invoke("query", "trip(air_time: T, id: u3)", "--db", "t.db").stdout.split() == ["T", "50"]
    assert invoke("query", "trip(air_time: T, id: I), T < 60", "--db", "t.db").stdout.split() == ["T", "I", "50", "u3"]


def test_an_empty_cell_is_no_fault() -> None:
    """It is counted by its column. With the option it is the empty text, with which no comparison holds."""
    kb, report = imported(empty="fact")
    rules = hapax.load_rules("trips.rules")

    assert (report.faults, report.empty, report.added) == ((), {"trip.air_time": 1}, 3)
    assert hapax.query('trip(id: I, air_time: "")', rules, kb).rows == [("u2",)]
    assert hapax.query("is_long(I)", rules, kb).rows == [("u1",)]


MISSING_CELLS = """
type Minutes < Number
given trip(id: Trip, carrier: Carrier, air_time: Minutes)
trip(id: I) -> is_trip(I)
trip(id: I, air_time: T) -> has_time(I)
trip(id: I, air_time: T) & is_missing(T) -> has_none(I)
trip(id: I, carrier: C) & trip(id: J, carrier: C) & I \\= J -> are_alike(I, J)
trip(id: I, carrier: C, air_time: T) & (is_missing(C) | T < 60) -> is_odd(I)
trip(id: I) & not trip(id: I, carrier: _, air_time: 100) -> is_other(I)
trip(id: I, air_time: T) & not is_missing(T) & T > 60 -> is_long(I)
trip(id: I) & not (trip(id: I, carrier: C) & is_missing(C)) -> has_carrier(I)
aggregate minutes(Number K) := K = sum(Minutes T, Trip I: trip(I, _, T))
aggregate unknown(Number K) := K = count(Trip I: trip(I, _, T) & is_missing(T))
"""
MISSING_TRIPS = [("u1", "UA", 100), ("u2", "AA", None), ("u3", "UA", 50), ("u4", None, None), ("u5", None, 7)]
MISSING_ATOMS = {
    "is_trip(A)": {("u1",), ("u2",), ("u3",), ("u4",), ("u5",)},
    "has_time(A)": {("u1",), ("u3",), ("u5",)},
    "has_none(A)": {("u2",), ("u4",)},
    "are_alike(A, B)": {("u1", "u3"), ("u3", "u1")},
    "is_odd(A)": {("u3",), ("u5",)},
    "is_other(A)": {("u2",), ("u3",), ("u4",), ("u5",)},
    "is_long(A)": {("u1",)},
    "has_carrier(A)": {("u1",), ("u2",), ("u3",)},
    "minutes(A)": {(157,)},
    "unknown(A)": {(2,)},
    "trip(A, B, _)": {("u1", "UA"), ("u2", "AA"), ("u3", "UA")},
    "trip(id: A, air_time: T), is_missing(T)": {("u2",), ("u4",)},
    "findall(I, trip(I, _, _), L), length(L, A), trip(B, 'UA', C), C > 60": {(5, "u1", 100)},
}


def test_an_empty_cell_has_no_value(tmp_path: Path) -> None:
    """`_` matches it, a variable does not, is_missing finds it; derived, on demand, in DuckDB and in SWI-Prolog."""
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in MISSING_TRIPS]
    Path("trips.csv").write_text("\n".join(["flight,carrier,air_time", *lines, ",UA,9"]), "utf-8")
    Path("trips.rules").write_text(MISSING_CELLS, "utf-8")
    rules = hapax.load_rules("trips.rules")
    kb, report = imported()
    found = {goal: answers(goal, rules, kb) for goal in MISSING_ATOMS}
    hapax.derive(rules, kb)
    derived = {goal: answers(goal, rules, kb) for goal in MISSING_ATOMS}

    assert (report.added, report.incomplete) == (5, 1)
    assert found == derived == MISSING_ATOMS
    assert hapax.compile_rules(hapax.parse_rules(hapax.compile_rules(rules, "rules")), "rules") == (
        hapax.compile_rules(rules, "rules")
    )
    atoms = {goal: rows for goal, rows in MISSING_ATOMS.items() if "trip(" not in goal}
    assert by_duckdb(rules, atoms) == atoms
    assert by_swipl(rules, kb, atoms, tmp_path) == atoms


UNNAMED = "given trip(Trip, Carrier, Number)\nlasts(I, T) :- trip(I, _, T).\nsame(I, J) :- trip(I, _, T), trip(J, _, T), I \\= J."


def test_a_key_of_the_mapping_alone_leaves_empty_cells_without_value(tmp_path: Path) -> None:
    """Where the declaration names no columns, compiled rules test the cells, too, and mining sees no edge of them."""
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in MISSING_TRIPS]
    Path("trips.csv").write_text("\n".join(["flight,carrier,air_time", *lines]), "utf-8")
    Path("trips.rules").write_text(UNNAMED, "utf-8")
    rules = hapax.load_rules("trips.rules")
    kb, _ = imported()
    atoms = {goal: answers(goal, rules, kb) for goal in ("lasts(A, B)", "same(A, B)")}

    assert {cell for row in atoms["lasts(A, B)"] for cell in row if cell is None or cell == ""} == set()
    assert len(atoms["lasts(A, B)"]) == len([row for row in MISSING_TRIPS if row[2] is not None])
    assert by_duckdb(rules, atoms) == atoms
    assert by_swipl(rules, kb, atoms, tmp_path) == atoms


def test_mining_finds_no_constant_in_an_empty_cell() -> None:
    """Ten people without a town do not live in one town."""
    rules = hapax.parse_rules("given lives(id: Person, town: Town) key id\ngiven is_tall(Person)")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "lives", [(f"p{number}", None) for number in range(12)], rules)
        hapax.add_facts(kb, "is_tall", [(f"p{number}",) for number in range(12)], rules)
        options = hapax.MiningOptions(constants=True, min_support=3)
        assert [rule.rule.sentence for rule in hapax.mine_rules(rules, kb, options).rules] == []


def answers(goal: str, rules: hapax.Library, kb: hapax.KnowledgeBase) -> set[tuple[object, ...]]:
    """The values of A, B and C in the answers of a goal."""
    found = hapax.query(goal, rules, kb)
    places = [place for place, name in enumerate(found.columns) if name in "ABC"]
    return {tuple(row[place] for place in places) for row in found.rows}


def by_duckdb(rules: hapax.Library, atoms: Iterable[str]) -> dict[str, set[tuple[object, ...]]]:
    """The atoms of the views that the rules are for DuckDB."""
    database = pytest.importorskip("duckdb", reason="needs the extra `sql`").connect()
    database.execute(hapax.compile_rules(rules, "duckdb"))
    database.executemany("INSERT INTO trip_3 VALUES (?, ?, ?)", MISSING_TRIPS)
    tables = {goal: f"{goal.partition('(')[0]}_{goal.count(',') + 1}" for goal in atoms}
    return {goal: set(database.execute(f"FROM {table}").fetchall()) for goal, table in tables.items()}


def by_swipl(
    rules: hapax.Library, kb: hapax.KnowledgeBase, atoms: Iterable[str], folder: Path
) -> dict[str, set[tuple[object, ...]]]:
    """The atoms that SWI-Prolog finds with the compiled rules and the exported facts."""
    if shutil.which("swipl") is None:
        pytest.skip("needs the program swipl")
    facts = StringIO()
    hapax.export_facts(kb, facts)
    (folder / "rules.pl").write_text(hapax.compile_rules(rules, "prolog"), "utf-8")
    asserted = [f":- assertz(hapax:{line.rstrip('.')})." for line in facts.getvalue().splitlines()[1:]]
    (folder / "facts.pl").write_text("\n".join(asserted), "utf-8")
    goals = [f"forall(hapax:{goal}, (writeq({goal.replace('(', '-(', 1)}), nl))" for goal in atoms]
    command = ["swipl", "-q", "-g", ", ".join([*goals, "halt"]), "rules.pl", "facts.pl"]
    lines = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout
    found: dict[str, set[tuple[object, ...]]] = {goal: set() for goal in atoms}
    names = {goal.partition("(")[0]: goal for goal in atoms}
    for line in lines.splitlines():
        name, _, cells = line.partition("-")
        row = cells.strip("()").split(",")
        found[names[name]].add(tuple(int(cell) if cell.isdigit() else cell for cell in row))
    return found


def test_facts_with_empty_cells_come_back(tmp_path: Path) -> None:
    """From exported CSV and JSONL by rules whose declaration has the key, and from rows and frames; keys are whole."""
    rules = hapax.parse_rules(MISSING_CELLS.replace("air_time: Minutes)", "air_time: Minutes) key id"))
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "trip", MISSING_TRIPS, rules)
        for form in ("csv", "jsonl"):
            with (tmp_path / f"facts.{form}").open("w", encoding="utf-8") as stream:
                hapax.export_facts(kb, stream, form=form)
            with hapax.KnowledgeBase() as other:
                hapax.import_facts(other, tmp_path / f"facts.{form}", rules=hapax.FactRules(rules))
                assert set(other.facts()) == set(kb.facts())
        with pytest.raises(hapax.HapaxError, match="empty"):
            hapax.add_facts(kb, "trip", [(None, "UA", 1)], rules)
    with hapax.KnowledgeBase() as other, pytest.raises(hapax.HapaxError, match="empty"):
        hapax.add_facts(other, "trip", MISSING_TRIPS, hapax.parse_rules(MISSING_CELLS))


def test_an_empty_cell_can_be_refused() -> None:
    """With its line and column."""
    with pytest.raises(hapax.FactsRejected) as rejected:
        imported(empty="refuse")

    assert [(fault.line, "air_time" in fault.message) for fault in rejected.value.faults] == [(3, True)]


def test_two_rows_with_one_key_are_told_by_row() -> None:
    """They are refused unless all their values agree, or kept with a warning."""
    Path("trips.csv").write_text(f"{TRIPS}u3,UA,55\n", "utf-8")
    with pytest.raises(hapax.FactsRejected) as rejected:
        imported()
    kb, report = imported(same_key="keep")

    assert [fault.line for fault in rejected.value.faults] == [6]
    assert "line 4" in rejected.value.faults[0].message
    assert any("line 6" in warning and "line 4" in warning for warning in report.warnings)
    assert len(hapax.query("trip(id: u3, air_time: T)", hapax.load_rules("trips.rules"), kb)) == 2


@pytest.mark.parametrize("key", ["mapping", "declaration"])
def test_a_corrected_table_replaces_the_rows_with_its_keys(key: str) -> None:
    """Or is refused, by row: a key holds of stored facts, too; what rested on the replaced facts falls."""
    if key == "declaration":
        Path("map.yaml").write_text(MAPPING.replace(", key: flight", ""), "utf-8")
        Path("trips.rules").write_text(ROWS_RULES.replace("Minutes)\n", "Minutes) key id\n"), "utf-8")
    options = ("--map", "map.yaml", "--rules", "trips.rules", "--db", "t.db")
    invoke("import", "trips.csv", *options)
    invoke("derive", "--db", "t.db")
    Path("trips.csv").write_text(TRIPS.replace("u1,UA,100", "u1,UA,10"), "utf-8")
    refused = invoke("import", "trips.csv", *options)
    taken = invoke("import", "trips.csv", *options, "--same-key", "replace", "--json")
    again = invoke("import", "trips.csv", *options)

    assert refused.exit_code == 1
    assert "trips.csv:2: " in refused.output
    assert "air_time is 100 and not 10" in refused.output
    assert json.loads(taken.stdout)["replaced"] == {'trip("u1", "UA", 100)': 'trip("u1", "UA", 10)'}
    assert again.exit_code == 0
    assert invoke("query", "trip(id: u1, air_time: T)", "--db", "t.db").stdout.split() == ["T", "10"]
    assert invoke("query", "is_long(I)", "--db", "t.db").stdout == ""
    assert invoke("kb", "verify", "--db", "t.db").exit_code == 0


def test_the_last_of_several_rows_with_one_key_stays() -> None:
    """With `replace`, in one file as in several."""
    Path("trips.csv").write_text(f"{TRIPS}u3,UA,55\nu3,UA,60\n", "utf-8")
    kb, report = imported(same_key="replace")

    assert set(report.replaced) == {'trip("u3", "UA", 50)', 'trip("u3", "UA", 55)'}
    assert set(hapax.query("trip(I, _, T)", hapax.load_rules("trips.rules"), kb).rows) == {("u1", 100), ("u3", 60)}
    assert kb.withdrawals() == []


def test_a_key_is_a_column_of_the_fact() -> None:
    """Otherwise the columns are named."""
    Path("map.yaml").write_text(MAPPING.replace("key: flight", "key: tail"), "utf-8")

    refused = invoke("import", "trips.csv", "--map", "map.yaml", "--db", "t.db")
    assert refused.exit_code == 1
    assert "Choose from flight, carrier, air_time" in refused.output


@pytest.mark.parametrize("end", ["", ".", ': "[1] takes [2] minutes on [3]"'])
def test_a_key_may_have_several_columns(end: str) -> None:
    """With or without a point behind them, or templates."""
    rules = hapax.parse_rules(f"given trip(id: Trip, air_time: Minutes, day: Text) key id, day{end}\n")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="key id, day"):
        hapax.add_facts(kb, "trip", [("a", 1, "mo"), ("a", 3, "mo")], rules)


def test_a_declaration_has_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of a mapping, for each way in and for what is stored already; a column that is none is named."""
    monkeypatch.chdir(tmp_path)
    text = 'given trip(id: Trip, air_time: Minutes, day: Text) key id, day: "[1] takes [2] minutes on [3]"\n'
    Path("trips.rules").write_text(text, "utf-8")
    rules = hapax.load_rules("trips.rules")
    with hapax.KnowledgeBase("trips.db") as kb:
        hapax.add_facts(kb, "trip", [("a", 1, "mo"), ("a", 2, "tu"), ("a", 1, "mo")], rules)
        with pytest.raises(
            hapax.HapaxError, match="trip/3 has the key id, day, but a stored fact has id 'a', day 'mo', too"
        ):
            hapax.add_facts(kb, "trip", [("a", 3, "mo")], rules)
        assert "HPX402" not in invoke("check", "trips.rules", "--db", "trips.db").stdout
        hapax.add_facts(kb, "trip", [("a", 3, "mo")], hapax.parse_rules("given trip(Trip, Minutes, Text)"))

    assert (
        'has 2 values: trip("a", 1, "mo"), trip("a", 3, "mo")'
        in invoke("check", "trips.rules", "--db", "trips.db").stdout
    )
    assert hapax.compile_rules(rules, "rules").strip() == text.strip()
    with pytest.raises(hapax.HapaxError, match="trip has no column ident"):
        hapax.parse_rules("given trip(id: Trip, day: Text) key ident")


def test_a_column_of_texts_has_texts_alone(tmp_path: Path) -> None:
    """Cells that look like numbers are texts where the rules declare a Text, and numbers elsewhere."""
    rules = hapax.parse_rules(
        'given book(id: Number, title: Text, zip: Code)\ntype Code < Text\nbook(title: "1984", id: I) -> is_it(I)'
    )
    table = tmp_path / "books.csv"
    table.write_text("id,title,zip\n1,1984,01234\n2,Emma,98765\n3,1.50,-3\n", "utf-8")
    with hapax.KnowledgeBase() as kb:
        hapax.import_facts(kb, table, mapping=hapax.TableMapping.of("book", ["id", "title", "zip"]), rules=rules)
        found = hapax.query("book(id: I, title: T, zip: Z)", rules, kb)
        hits = hapax.query("is_it(I)", rules, kb)

    assert set(found.rows) == {(1, "1984", "01234"), (2, "Emma", "98765"), (3, "1.50", "-3")}
    assert hits.rows == [(1,)]


def test_cells_of_other_programs_have_their_own_quotation_marks() -> None:
    """A cell that begins with one and is no JSON string is a text; semicolons are found by the header."""
    Path("words.csv").write_text('english;german\nhi;"""hallo"" sagen"\nrun;"laufen, ""rennen"""\n', "utf-8")
    kb = hapax.KnowledgeBase()
    report = hapax.import_facts(kb, "words.csv", mapping=hapax.TableMapping.of("word", ["english", "german"]))

    assert report.faults == ()
    assert {fact.arguments for fact in kb.facts("word")} == {("hi", '"hallo" sagen'), ("run", 'laufen, "rennen"')}
