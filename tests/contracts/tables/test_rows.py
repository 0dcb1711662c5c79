"""Rows of a table as facts: by the names of their columns, with a key, and with empty cells."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax

TRIPS = "flight,carrier,air_time\nu1,UA,100\nu2,AA,\nu3,UA,50\nu1,UA,100\n"
MAPPING = "- {predicate: trip, columns: [flight, carrier, air_time], key: flight}\n"
RULES = """
type Minutes < Number
given trip(id: Trip, carrier: Carrier, air_time: Minutes)
trip(id: I, air_time: T) & T > 60 -> is_long(I)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder, with a table, its mapping and rules over it."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"trips.csv": TRIPS, "map.yaml": MAPPING, "trips.rules": RULES}.items():
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
        Path("trips.rules").write_text(RULES.replace("Minutes)\n", "Minutes) key id\n"), "utf-8")
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
