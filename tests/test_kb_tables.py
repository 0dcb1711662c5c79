"""Tables of any form become facts by a mapping of their columns, and each fault is told with its row."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cli_fixture import run

import hapax
from hapax.grammar.errors import HapaxError
from hapax.kb import tables
from hapax.kb.intake import FactsRejected
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.kb.tables import TableMapping

RULES = """
type Feet < Number.
given lies_at(Airport, Feet): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?".
given is_near(Airport, Airport): "[1] is near [2]" / "[1] is not near [2]" / "is [1] near [2]?".
given flies_to(Person, Airport): "[1] flies to [2]" / "[1] does not fly to [2]" / "does [1] fly to [2]?".
given tires_at(Person, Airport): "[1] tires at [2]" / "[1] does not tire at [2]" / "does [1] tire at [2]?".
asymmetric is_near/2
@name height
flies_to(Person P, Airport A) & lies_at(Airport A, Feet H) & H > 8000 -> tires_at(Person P, Airport A)
"""
LIES_AT = TableMapping.of("lies_at", ["airport", "elevation"])
ROWS: list[tuple[str, int | float]] = [("Heathrow", 83), ("El Alto", 13355), ("Årø", -3), ('"q"', 1.5)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("air.rules").write_text(RULES, encoding="utf-8")
    return tmp_path


def written(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def stored(kb: KnowledgeBase) -> list[tuple[object, ...]]:
    return sorted((fact.arguments for fact in kb.facts()), key=str)


def faults(kb: KnowledgeBase, source: Any, mapping: TableMapping = LIES_AT) -> list[tuple[int, str]]:
    """Lines and kinds of the faults for which a table is refused; nothing of it is stored."""
    before = stored(kb)
    with pytest.raises(FactsRejected) as refused:
        hapax.import_facts(kb, source, mapping=mapping, rules=hapax.parse_rules(RULES))
    assert stored(kb) == before
    return [(fault.line, fault.kind) for fault in refused.value.faults]


def as_csv(path: Path) -> Path:
    return written(str(path / "t.csv"), 'airport,elevation\nHeathrow,83\nEl Alto,13355\nÅrø,-3\n"""q""",1.5\n')


def as_tsv(path: Path) -> Path:
    text = '\ufeff airport \t"elevation"\nHeathrow\t83\nEl Alto\t13355\nÅrø\t-3\n"""q"""\t1.5\n'
    return written(str(path / "t.tsv"), text)


def as_json_lines(path: Path) -> Path:
    lines = [json.dumps({"elevation": height, "airport": name, "more": []}) for name, height in ROWS]
    return written(str(path / "t.jsonl"), "\n".join(lines))


def as_frame(_: Path) -> Any:
    return pytest.importorskip("pandas").DataFrame(ROWS, columns=["airport", "elevation"])


def as_parquet(path: Path) -> Path:
    pytest.importorskip("pyarrow")
    as_frame(path).to_parquet(path / "t.parquet")
    return path / "t.parquet"


def as_sqlite(path: Path) -> Path:
    with sqlite3.connect(path / "t.sqlite") as connection:
        connection.execute('CREATE TABLE "air ports" (airport, elevation)')
        connection.executemany('INSERT INTO "air ports" VALUES (?, ?)', ROWS)
    connection.close()
    return path / "t.sqlite"


@pytest.mark.parametrize("form", [as_csv, as_tsv, as_json_lines, as_frame, as_parquet, as_sqlite])
def test_every_form_gives_the_same_facts(form: Callable[[Path], Any], tmp_path: Path, fresh_kb: KnowledgeBase) -> None:
    """Texts, integers, decimals and quotes come in alike, whatever the table is stored in."""
    plain = KnowledgeBase()
    plain_csv = hapax.import_facts(plain, as_csv(tmp_path), mapping=LIES_AT)
    mapping = LIES_AT.model_copy(update={"table": "air ports"})
    report = hapax.import_facts(fresh_kb, form(tmp_path), mapping=mapping)

    assert (report.read, report.added) == (plain_csv.read, plain_csv.added) == (4, 4)
    in_csv = {("q" if "q" in str(row[0]) else row[0], row[1]) for row in stored(plain)}
    assert {("q" if "q" in str(row[0]) else row[0], row[1]) for row in stored(fresh_kb)} == in_csv


@pytest.mark.parametrize("form", [as_csv, as_json_lines, as_sqlite])
@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_table_that_may_not_be_read_is_told(
    form: Callable[[Path], Any], closed: str, tmp_path: Path, fresh_kb: KnowledgeBase
) -> None:
    """A file without the right to read it, or in a folder without the right to enter it, is an error with its name."""
    mapping = LIES_AT.model_copy(update={"table": "air ports"})
    hapax.import_facts(KnowledgeBase(), as_csv(tmp_path), mapping=LIES_AT)  # imports what reading needs
    user = os.geteuid()
    # Not in `tmp_path`, whose parents only their owner may enter.
    with TemporaryDirectory() as name:
        folder = Path(name)
        table = form(folder)
        table.chmod(0 if closed == "file" else 0o644)
        folder.chmod(0o755 if closed == "file" else 0)
        if user == 0:  # who may read everything
            os.seteuid(65534)
        try:
            with pytest.raises(HapaxError, match=re.escape(str(table))):
                hapax.import_facts(fresh_kb, table, mapping=mapping)
        finally:
            os.seteuid(user)
            folder.chmod(0o755)


@pytest.mark.usefixtures("folder")
def test_all_faulty_rows_are_told_in_the_order_of_the_file(fresh_kb: KnowledgeBase) -> None:
    """Short and long rows, texts for numbers, blanks and broken bytes are faults of their rows, and nothing comes in."""
    lines = ["airport,elevation", "Gatwick,83 ft", "Short", "Long,1,2", "Blank, ", "\ud800,4", "Gatwick,203", ""]
    table = written("t.csv", "\n".join(lines).encode("utf-8", "surrogatepass"))
    expected = ["text for a number", "short row", "long row", "empty cell", "faulty cell"]

    assert faults(fresh_kb, table) == list(zip(range(2, 7), expected, strict=True))
    report = hapax.import_facts(fresh_kb, table, mapping=LIES_AT, rules=hapax.parse_rules(RULES), skip_faulty=True)
    assert (report.added, len(report.faults)) == (1, 5)
    assert "argument 2 of lies_at/2 is '83 ft', where the rules have a number (Feet)" in str(report.faults[0])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "mark"), [("t.csv", ";"), ("t.csv", "|"), ("t.csv", "\t"), ("t.tsv", "\t"), ("t.csv", ",")]
)
def test_the_separator_is_read_from_the_header(name: str, mark: str, fresh_kb: KnowledgeBase) -> None:
    """A header without commas is split at its other marks, after a byte order mark, too; rows of blanks say nothing."""
    table = written(name, f"\ufeffairport{mark}elevation\r\n{mark}\r\nGatwick{mark}202\r\n{mark}\r\n")
    hapax.import_facts(fresh_kb, table, mapping=LIES_AT)

    assert stored(fresh_kb) == [("Gatwick", 202)]


@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_dates_are_texts_and_missing_cells_are_named(form: str, tmp_path: Path, fresh_kb: KnowledgeBase) -> None:
    """Dates and times of data frames and Parquet files become ISO texts; every kind of missing cell is a fault."""
    pandas = pytest.importorskip("pandas")
    times = [pandas.Timestamp("1965-01-01"), pandas.Timestamp("1965-01-01 05:06"), pandas.NaT]
    columns = {"airport": ["El Alto", "Orly", "Tegel"], "opened": times, "day": [date(1965, 1, 2)] * 3}
    source = pandas.DataFrame({**columns, "height": pandas.array([1, 2, None], dtype="Int64")})
    if form == "parquet":
        pytest.importorskip("pyarrow")
        source.to_parquet(tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    for column in ("opened", "day", "height"):
        mapping = TableMapping.of("has", ["airport", column])
        report = hapax.import_facts(fresh_kb, source, mapping=mapping, skip_faulty=True)
        assert [fault.kind for fault in report.faults] == ([] if column == "day" else ["empty cell"])

    values = {value for _, value in stored(fresh_kb)}
    assert values == {"1965-01-01", "1965-01-01T05:06:00", "1965-01-02", 1, 2}


@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_short_floats_keep_their_digits(form: str, tmp_path: Path, fresh_kb: KnowledgeBase) -> None:
    """A float of 32 bits is stored as the decimal that it shows; an empty one is a missing cell."""
    pandas = pytest.importorskip("pandas")
    heights = pandas.Series([3.1, 0.001, 2.0, None], dtype="float32")
    source = pandas.DataFrame({"airport": ["Orly", "Tegel", "Gatwick", "Luton"], "height": heights})
    if form == "parquet":
        pytest.importorskip("pyarrow")
        source.to_parquet(tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    report = hapax.import_facts(
        fresh_kb, source, mapping=TableMapping.of("has", ["airport", "height"]), skip_faulty=True
    )

    assert stored(fresh_kb) == [("Gatwick", 2), ("Orly", Decimal("3.1")), ("Tegel", Decimal("0.001"))]
    assert [fault.kind for fault in report.faults] == ["empty cell"]


@pytest.mark.usefixtures("folder")
def test_repeats_are_named_and_nul_is_text(fresh_kb: KnowledgeBase) -> None:
    """A row that says what an earlier row said is counted once and named; NUL and line breaks are part of a text."""
    table = written("t.csv", 'airport,elevation\n"a\0\nb",1\nc,2\nc,2\n')
    report = hapax.import_facts(fresh_kb, table, mapping=LIES_AT)

    assert (report.read, report.repeats, stored(fresh_kb)) == (2, 1, [("a\0\nb", 1), ("c", 2)])
    assert "line 5" in report.warnings[0]


@pytest.mark.usefixtures("folder")
def test_one_table_gives_facts_of_several_predicates(fresh_kb: KnowledgeBase) -> None:
    """A mapping file names the columns of each predicate, fixed values and the delimiter."""
    mapping = """
delimiter: ";"
facts:
- {predicate: lies_at, columns: [airport, elevation]}
- {predicate: is_in, columns: [airport, {value: Europe}]}
"""
    table = written("t.csv", "airport;elevation\nTegel;122\n\nTempelhof, Berlin;164\n")
    report = hapax.import_facts(fresh_kb, table, mapping=TableMapping.read(written("m.yaml", mapping)))

    assert report.predicates == {"lies_at/2": 2, "is_in/2": 2}
    assert ("Tempelhof, Berlin", "Europe") in stored(fresh_kb)


@pytest.mark.usefixtures("folder")
def test_a_large_table_is_checked_to_its_last_row(fresh_kb: KnowledgeBase) -> None:
    """Of 100,000 rows a faulty last one keeps all out; without it all come in."""
    rows = "".join(f"Airport {number},{number % 9000}\n" for number in range(100_000))
    table = written("t.csv", "airport,elevation\n" + rows + "last,high\n")

    assert faults(fresh_kb, table) == [(100_002, "text for a number")]
    hapax.import_facts(fresh_kb, table, mapping=LIES_AT, rules=hapax.parse_rules(RULES), skip_faulty=True)
    assert fresh_kb.fact_counts() == {"lies_at/2": 100_000}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "airport,elevatoin\na,1\n", "no column 'elevation'. Did you mean elevatoin?"),
        ("t.jsonl", '{"airport": "a", "elevatoin": 1}', "no column 'elevation'. Did you mean elevatoin?"),
        ("t.csv", "airport,airport,elevation\na,b,1\n", "'airport' is there twice"),
        ("t.csv", "", "has no header"),
        ("t.csv", "airport,elevation\nBogotá,1\n".encode("utf-16"), "is UTF-16, not UTF-8"),
        ("t.csv", 'airport,elevation\n"open,3\n', "not valid CSV"),
        ("t.jsonl", '{"airport"', "not valid JSON"),
        ("t.jsonl", "[1]", "not a JSON object"),
        ("t.sqlite", "no database" * 100, "cannot be read"),
        ("t.xlsx", "", "tables are read from"),
        ("none.csv", None, "there is no such file"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_unreadable_table_is_refused_with_its_place(
    name: str, content: str | None, message: str, fresh_kb: KnowledgeBase
) -> None:
    """A table without the columns, or that is none, is refused by a message that names the file and the remedy."""
    if content is not None:
        written(name, content)
    with pytest.raises(HapaxError) as refused:
        hapax.import_facts(fresh_kb, name, mapping=LIES_AT.model_copy(update={"table": "airports"}))

    assert message in str(refused.value)
    assert str(refused.value).startswith(name)
    assert stored(fresh_kb) == []


@pytest.mark.usefixtures("folder")
def test_columns_of_no_predicate_or_of_another_number_are_refused(fresh_kb: KnowledgeBase) -> None:
    """The error names the file, and the predicate of the rules that has a similar name or another number."""
    table = written("t.csv", "airport,elevation\na,1\n")
    three = {"facts": [{"predicate": "lies_at", "columns": ["airport", "elevation", "airport"]}]}
    refusals = []
    for mapping in (TableMapping.model_validate(three), TableMapping.of("lies_a", ["airport", "elevation"])):
        with pytest.raises(HapaxError) as refused:
            hapax.import_facts(fresh_kb, table, mapping=mapping, rules=hapax.parse_rules(RULES))
        refusals.append(str(refused.value))

    assert refusals == [
        "t.csv: lies_at has 3 arguments here and 2 in the rules. Name as many columns as the predicate has arguments.",
        "t.csv: lies_a is not a predicate of the rules; did you mean lies_at.",
    ]
    assert stored(fresh_kb) == []


@pytest.mark.usefixtures("folder")
def test_a_batch_of_faulty_rows_alone_leaves_those_of_the_next(
    fresh_kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of two rows, the first all too short or too long: every fault has its line, and the other rows come in."""
    monkeypatch.setattr(tables, "_BATCH", 2)
    table = written("t.csv", "airport,elevation\na\nb,1,2\nc,3\nd,4\ne\n")

    assert faults(fresh_kb, table) == [(2, "short row"), (3, "long row"), (6, "short row")]
    hapax.import_facts(fresh_kb, table, mapping=LIES_AT, skip_faulty=True)
    assert stored(fresh_kb) == [("c", 3), ("d", 4)]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "facts: 3",
        "{{",
        "!!python/object/apply:os.system [id]",
        "facts: [{predicate: Lies, columns: [a]}]",
        "facts: [{predicate: p, columns: []}]",
        "facts: [{predicate: p, columns: [a], more: 1}]",
        "facts: &a [*a]",
        "facts: 2024-99-99",
        "facts: [{predicate: p, columns: [{value: 1.5}]}]",
        'delimiter: "\\n"\nfacts: [{predicate: p, columns: [a]}]',
        b"\xff\xfe\x00",
        "a: " + "[" * 3000,
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_faulty_mapping_is_an_error_with_an_example(content: str | bytes) -> None:
    """Whatever the file has, the message names it, and no object is built from it."""
    with pytest.raises(HapaxError, match=r"^m\.yaml"):
        TableMapping.read(written("m.yaml", content))


@pytest.mark.usefixtures("folder")
def test_a_faulty_mapping_names_each_place() -> None:
    """The message has the place of each fault, what stands there, and what to write instead."""
    content = 'delimiter: "\\n"\nfacts: [{predicate: Lies at, columns: [a]}, {columns: [b]}]'
    with pytest.raises(HapaxError) as error:
        TableMapping.read(written("m.yaml", content))

    assert str(error.value) == (
        "m.yaml: facts.0.predicate: 'Lies at' is not a predicate name; write a name like is_allergic_to; "
        "facts.1.predicate: Field required; "
        "delimiter: '\\n' cannot separate cells; write a character such as ; or \\t. "
        "Write, for example: facts: [{predicate: lies_at, columns: [airport, elevation]}]"
    )


@pytest.mark.usefixtures("folder")
def test_imports_use_the_kept_rules() -> None:
    """`import --rules` keeps the rules; later imports are checked against them, and an unknown predicate only warns."""
    good = written("good.csv", "airport,elevation\nHeathrow,83\n")
    bad = written("bad.csv", "airport,elevation\nGatwick,203 ft\n")
    options = ("--columns", "airport,elevation", "--db", "air.db")
    run("import", good, "--predicate", "lies_at", *options, "--rules", "air.rules")
    refused = run("import", bad, "--predicate", "lies_at", *options, code=1)
    unknown = run("import", bad, "--predicate", "lies_att", *options)
    run("derive", "--db", "air.db")

    assert "bad.csv:2: argument 2 of lies_at/2 is '203 ft'" in refused.output
    assert "no rule uses lies_att/2" in unknown.output


@pytest.mark.usefixtures("folder")
def test_a_table_without_a_mapping_is_refused_beside_kept_rules() -> None:
    """A table whose first column is no predicate brings no facts; a header, a repeated word or facts of before do."""
    run("import", written("good.csv", "lies_at,Heathrow,83\n"), "--rules", "air.rules", "--db", "air.db")
    table = written("table.csv", "name,country\nheathrow,UK\n")
    refused = run("import", table, "--db", "air.db", code=1)
    strict = run("import", table, "--rules", "air.rules", "--db", "air.db", code=1)
    own = run("import", written("own.csv", "predicate,who\nflies,Ann\nflies,Ann\n"), "--db", "air.db")
    again = run("import", written("more.csv", "flies,Bob\n"), "--db", "air.db")
    beside = run("import", written("beside.csv", "flies,Cyd\nsails,Dan\n"), "--db", "air.db")
    repeated = run("import", written("two.csv", "hums,Ann\nsings,Bob\nhums,Bob\n"), "--db", "air.db")

    for output in (refused.output, strict.output):
        assert "table.csv:1: the first column holds no predicate of the rules" in " ".join(output.split())
        assert "--predicate NAME --columns FIRST,SECOND" in output
    assert "1 of flies/1" in own.output
    assert "1 fact repeats an earlier one: line 3" in own.output
    assert "1 fact read" in again.output
    assert "2 facts read" in beside.output
    assert "3 facts read" in repeated.output


@pytest.mark.usefixtures("folder")
def test_facts_that_break_a_declaration_are_refused(fresh_kb: KnowledgeBase) -> None:
    """Rows that contradict each other or a given fact are faults, and without them the rest comes in."""
    near, rules = TableMapping.of("is_near", ["a", "b"]), hapax.parse_rules(RULES)
    first = written("t.csv", "a,b\nA,B\nB,A\nC,D\n")
    second = written("u.csv", "a,b\nD,C\n")

    assert faults(fresh_kb, first, near) == [(2, "broken declaration"), (3, "broken declaration")]
    report = hapax.import_facts(fresh_kb, first, mapping=near, rules=rules, skip_faulty=True)
    assert (stored(fresh_kb), report.predicates) == ([("C", "D")], {"is_near/2": 1})
    assert faults(fresh_kb, second, near) == [(2, "broken declaration")]


@pytest.mark.usefixtures("folder")
def test_two_values_of_a_functional_predicate_are_refused(fresh_kb: KnowledgeBase) -> None:
    """Both rows of a file, or the row that contradicts a given fact, are faults; values within the tolerance agree."""
    rules = hapax.parse_rules(
        'functional opened_in(Airport, Year) within 1: "[1] opened in [2]" / "[1] did not open in [2]" / "did [1]?".\n'
        'functional is_in(Airport, Country): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?".'
    )
    opened, lies_in = TableMapping.of("opened_in", ["a", "year"]), TableMapping.of("is_in", ["a", "country"])
    first = written("t.csv", "a,year\nTegel,1948\nGatwick,1933\nTegel,1974\nOrly,1932\nOrly,1933\nTegel,1948\n")
    with pytest.raises(FactsRejected) as refused:
        hapax.import_facts(fresh_kb, first, mapping=opened, rules=rules)

    assert [(fault.line, fault.kind) for fault in refused.value.faults] == [(row, "second value") for row in (2, 4, 7)]
    assert 'is functional, but has 2 values: opened_in("Tegel", 1948), opened_in("Tegel", 1974)' in str(refused.value)
    report = hapax.import_facts(fresh_kb, first, mapping=opened, rules=rules, skip_faulty=True)
    assert (report.predicates, len(report.faults)) == ({"opened_in/2": 3}, 3)
    second = written("u.csv", "a,year\nGatwick,1933\nGatwick,1935\nOrly,1931\n")
    again = hapax.import_facts(fresh_kb, second, mapping=opened, rules=rules, skip_faulty=True)
    assert [fault.line for fault in again.faults] == [2, 3, 4]

    fresh_kb.add_facts([FactRecord("is_in", ("Orly", "Spain"), ("Airport", "Country"), Source.MODEL, 0.9)])
    claimed = hapax.import_facts(fresh_kb, written("v.csv", "a,country\nOrly,France\n"), mapping=lies_in, rules=rules)
    assert (claimed.added, claimed.faults) == (1, ())
    assert 'is_in("Orly", "Spain"), by facts of a model' in claimed.warnings[0]
    fresh_kb.add_facts([FactRecord("is_in", ("Ezeiza", "Spain"), ("Airport", "Country"), Source.MODEL, 0.9)])
    table = written("w.csv", "a,country\nEzeiza,Argentina\nQuito,Ecuador\nQuito,Peru\n")
    both = hapax.import_facts(fresh_kb, table, mapping=lies_in, rules=rules, skip_faulty=True)
    assert ([fault.line for fault in both.faults], len(both.warnings)) == ([3, 4], 1)  # claimed before refused


@pytest.mark.usefixtures("folder")
def test_an_old_knowledge_base_is_searched_for_facts_that_do_not_fit() -> None:
    """`check --db` names facts with another arity, and texts where the rules compute with numbers."""
    facts = [("Gatwick", "83 ft"), ("Heathrow",), ("Quito", 7874)]
    lines = (json.dumps({"predicate": "lies_at", "arguments": arguments}) for arguments in facts)
    run("import", written("old.jsonl", "\n".join(lines)), "--db", "old.db")
    told = run("check", "air.rules", "--db", "old.db", code=4).output

    assert told.count("HPX404") == 2
    assert '1 fact (lies_at("Heathrow")) of lies_at/1, but the rules have lies_at/2' in told
    assert '1 fact (lies_at("Gatwick", "83 ft")) has a text as argument 2' in told


@pytest.mark.usefixtures("folder")
def test_the_mapping_of_the_knowledge_base_page_gives_its_facts(fresh_kb: KnowledgeBase) -> None:
    """The table and the mapping file on the page give the six facts that it speaks of."""
    page = (Path(__file__).parent.parent / "docs" / "knowledge-base.md").read_text("utf-8")
    blocks = dict(re.findall(r"^```(yaml|text)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    mapping = TableMapping.read(written("mapping.yaml", blocks["yaml"]))
    hapax.import_facts(fresh_kb, written("airports.txt", blocks["text"]), mapping=mapping)

    assert len(stored(fresh_kb)) == 6
    assert {("El Alto", 13325), ("Schiphol", "airport")} <= set(stored(fresh_kb))
