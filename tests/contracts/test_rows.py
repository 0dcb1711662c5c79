"""Rows of a table as facts: by the names of their columns, with a key, and with empty cells."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("empty", "facts", "missing"), [("skip", 2, []), ("fact", 3, [("u2",)])], ids=["left out", "kept"]
)
def test_an_empty_cell_is_no_fault(empty: str, facts: int, missing: list[tuple[str]]) -> None:
    """It is counted by its column; kept, it is found as the empty text, and no comparison with it holds."""
    kb, report = imported(empty=empty)
    rules = hapax.load_rules("trips.rules")

    assert report.faults == ()
    assert report.empty == {"trip.air_time": 1}
    assert report.added == facts
    assert hapax.query('trip(id: I, air_time: "")', rules, kb).rows == missing
    assert hapax.query("is_long(I)", rules, kb).rows == [("u1",)]


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
    assert {fact.arguments for fact in kb.facts("trip")} == {("u1", "UA", 100), ("u3", "UA", 60)}
    assert kb.withdrawals() == []


def test_a_key_is_a_column_of_the_fact() -> None:
    """Otherwise the columns are named."""
    Path("map.yaml").write_text(MAPPING.replace("key: flight", "key: tail"), "utf-8")

    refused = invoke("import", "trips.csv", "--map", "map.yaml", "--db", "t.db")
    assert refused.exit_code == 1
    assert "Choose from flight, carrier, air_time" in refused.output


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
