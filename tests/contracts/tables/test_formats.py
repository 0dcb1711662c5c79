"""Files of facts: what goes out comes back, each faulty row is named by its line, and a table is read in any form."""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax

ROOT = Path(hapax.__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "knowledge-base.md").read_text("utf-8")
RULES = """
type Feet < Number.
given lies_at(Airport, Feet): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?".
given is_near(Airport, Airport): "[1] is near [2]" / "[1] is not near [2]" / "is [1] near [2]?".
functional opened_in(Airport, Year) within 1: "[1] opened in [2]" / "[1] did not open in [2]" / "did [1]?".
asymmetric is_near/2
"""
LIES_AT = hapax.TableMapping.of("lies_at", ["airport", "elevation"])
ANY_VALUE = st.one_of(st.text(), st.integers(), st.decimals(allow_nan=False, allow_infinity=False))
HARD_TEXTS = st.sampled_from([
    "", " ", "1984", "-0", "1.5", "1E+5", '"', '"x"', '{"decimal": "1"}', '{"decimal', "a,b", "a\nb", "\r", "\0",
    "predicate", "true", "=1+1", "+1", "-x", "@cmd", '"x\n,' * 50_000,
])  # fmt: skip
ROWS = st.lists(st.lists(ANY_VALUE | HARD_TEXTS, min_size=2, max_size=2), max_size=8)


@pytest.fixture
def kb() -> Any:
    with hapax.KnowledgeBase() as opened:
        yield opened


def stored(kb: hapax.KnowledgeBase) -> list[tuple[object, ...]]:
    return sorted((fact.arguments for fact in kb.facts()), key=str)


def imported(text: str, form: str = "csv", **options: Any) -> list[tuple[object, ...]]:
    """Predicates and arguments of the facts of a text."""
    with hapax.KnowledgeBase() as kb:
        hapax.import_facts(kb, io.StringIO(text), form=form, **options)
        return [(fact.predicate, *fact.arguments) for fact in kb.facts()]


def exported(kb: hapax.KnowledgeBase, form: str, predicate: str | None = None) -> str:
    stream = io.StringIO()
    hapax.export_facts(kb, stream, form=form, predicate=predicate)
    return stream.getvalue()


def refused(kb: hapax.KnowledgeBase, source: Any, **options: Any) -> list[int]:
    """The lines for which a file is refused; nothing of it is stored."""
    before = stored(kb)
    with pytest.raises(hapax.FactsRejected) as caught:
        hapax.import_facts(kb, source, rules=hapax.parse_rules(RULES), **options)
    assert stored(kb) == before
    return [fault.line for fault in caught.value.faults]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@given(ROWS)
@settings(max_examples=cases(15), deadline=None)
def test_what_is_exported_imports_as_the_same_facts(form: str, rows: list[list[Any]]) -> None:
    """Facts with any texts and numbers survive the way through a file exactly, formulas and long texts too."""
    rules = hapax.parse_rules("given p(A, B)\ngiven q(A)")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "p", rows, rules)
        hapax.add_facts(kb, "q", [row[:1] for row in rows], rules)
        before = sorted(repr((fact.predicate, *fact.arguments)) for fact in kb.facts())
        text = exported(kb, form)

    assert sorted(map(repr, imported(text, form))) == before


def test_cells_of_a_csv_file_are_numbers_or_texts() -> None:
    """Numbers are numbers, leading zeros and quotes make texts, a header, blanks and empty rows do not count.

    A power of ten has a sign or a point before it, as programs print it; `1e5` may be a code.
    """
    text = (
        "predicate,who,when\nwas_born_in,Ada, 1815 \n\n"
        'is_called,1984,"""1984"""\ncosts,tea,2.50\ncode,007\ncode,1e5\nweighs,ant,1.5e3\nweighs,flea,1e-07\npadded,a,,\n'
    )

    assert imported(text) == [
        ("was_born_in", "Ada", 1815),
        ("is_called", 1984, "1984"),
        ("costs", "tea", Decimal("2.50")),
        ("code", "007"),
        ("code", "1e5"),
        ("weighs", "ant", 1500),
        ("weighs", "flea", Decimal("1E-7")),
        ("padded", "a"),
    ]
    assert imported("id,Argument2,note,predicate,arg1\n7,milk,sure,dislikes,Ada\n8,,,is_old,Ur\n") == [
        ("dislikes", "Ada", "milk"),
        ("is_old", "Ur"),
    ]


def test_every_faulty_row_of_a_csv_file_is_named(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """Broken bytes, open quotes, missing cells and numbers too large are faults of their lines; on request the rest is stored."""
    file = written(
        tmp_path,
        "facts.csv",
        b"\xef\xbb\xbfis_old,Ur\n"  # 1: fine, after a byte order mark
        b"1st,x\n"  # 2: no name
        b"is_old\n"  # 3: no argument
        b'is_old,"two\nlines"\n'  # 4 and 5: fine
        b"is_old,caf\xe9\n"  # 6: Latin-1
        b'is_old,"""open"\n'  # 7: a JSON string that does not end
        b"is_old,,x\n"  # 8: an empty cell in between
        b'is_old,"a"b\n'  # 9: no CSV
        b"is_old," + b"9" * 5000 + b"\n"  # 10: too long a number
        b"is_old,1E+99999999999999999999999\n",  # 11: too big a number
    )
    with pytest.raises(hapax.FactsRejected) as caught:
        hapax.import_facts(kb, file)
    assert [fault.line for fault in caught.value.faults] == [2, 3, 6, 7, 8, 9, 10, 11]
    assert f"{file}:6: " in str(caught.value)
    assert stored(kb) == []

    report = hapax.import_facts(kb, file, skip_faulty=True)
    assert (report.added, len(report.faults), stored(kb)) == (2, 8, [("Ur",), ("two\nlines",)])


def test_every_faulty_line_of_json_is_named(kb: hapax.KnowledgeBase) -> None:
    """A line that is not valid JSON, not an object, or not a fact is a fault; a number with a point is a decimal."""
    lines = [
        '{"predicate": "is_old", "arguments": ["Ur"]}',
        "{",
        "[1]",
        '{"arguments": ["x"]}',
        '{"predicate": "p", "arguments": []}',
        '{"predicate": "p", "arguments": [true]}',
        '{"predicate": "p", "arguments": [["x"]]}',
        '{"predicate": "p", "arguments": [NaN]}',
        '{"predicate": "p", "arguments": ["\\ud83d"]}',
        '{"predicate": "p", "arguments": ["x"], "types": ["A", "B"]}',
        '{"predicate": "p", "arguments": ["x"], "types": "A"}',
        "[" * 100_000,
        '{"predicate": "p", "arguments": [' + "9" * 5000 + "]}",
    ]
    with pytest.raises(hapax.FactsRejected) as caught:
        hapax.import_facts(kb, io.StringIO("\n".join(lines)), form="jsonl")

    assert [fault.line for fault in caught.value.faults] == list(range(2, len(lines) + 1))
    good = '{"predicate": "costs", "arguments": ["tea", 2.50], "types": ["Drink", "Number"]}'
    assert imported(good, "jsonl") == [("costs", "tea", Decimal("2.50"))]


def test_a_row_that_does_not_fit_its_numbered_header_is_a_fault(kb: hapax.KnowledgeBase) -> None:
    """Too many cells, and too few where neither an empty cell nor the knowledge base says that it is meant."""
    text = "predicate,argument1,argument2\nnear,Oslo,Bergen\nnear,Oslo\nnosuch,1,2,3\nis_old,Ur,\n"
    with pytest.raises(hapax.FactsRejected) as caught:
        hapax.import_facts(kb, io.StringIO(text), form="csv")
    report = hapax.import_facts(kb, io.StringIO(text), form="csv", skip_faulty=True)
    known = hapax.import_facts(kb, io.StringIO("predicate,argument1,argument2\nis_old,Troy\n"), form="csv")

    assert [fault.line for fault in caught.value.faults] == [3, 4]
    assert report.predicates == {"near/2": 1, "is_old/1": 1}
    assert known.predicates == {"is_old/1": 1}


@pytest.mark.skipif(shutil.which("swipl") is None, reason="needs SWI-Prolog")
def test_prolog_text_loads_without_a_warning_and_runs_nothing(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """SWI-Prolog reads every fact back, hostile ones included; what it cannot hold is left out and reported."""
    hostile = [
        "'). :- halt. p('",
        "a\\nb\\",
        "line\nbreak",
        "\u202eright to left",
        "{}",
        "[]",
        "😀",
        "Xyz",
        "_",
        "%",
        "/*",
        "",
    ]
    rules = hapax.parse_rules("given text(T, N)\ngiven costs(N)\n")
    hapax.add_facts(kb, "text", [(text, position) for position, text in enumerate(hostile)], rules)
    hapax.add_facts(kb, "costs", [(number,) for number in (-1, 2**70, Decimal("2.50"))], rules)
    hapax.import_facts(kb, io.StringIO('{"predicate": "halt", "arguments": [1]}\n{"predicate": "text", "arguments": ["a\\u0000b", 99]}'), form="jsonl")  # fmt: skip
    with (tmp_path / "facts.pl").open("w", encoding="utf-8") as stream:
        report = hapax.export_facts(kb, stream, form="prolog")
    goal = "forall(text(T,I),(atom_codes(T,C),print(I-C),nl)),forall(costs(N),(print(N),nl))"
    done = subprocess.run(
        ["swipl", "-q", "-g", goal, "-t", "halt", str(tmp_path / "facts.pl")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    assert (done.stderr, report.written, len(report.left_out)) == ("", len(hostile) + 3, 2)
    codes = [f"{position}-[{','.join(str(ord(c)) for c in text)}]" for position, text in enumerate(hostile)]
    assert sorted(done.stdout.split()) == sorted([*codes, "-1", str(2**70), "5r2"])


# --- tables with columns of their own ---------------------------------------------------------------------------------

TABLE: list[tuple[str, int | float]] = [("Heathrow", 83), ("El Alto", 13355), ("Årø", -3), ("q", 1.5)]


def as_csv(folder: Path) -> Path:
    return written(folder, "t.csv", "airport,elevation\nHeathrow,83\nEl Alto,13355\nÅrø,-3\nq,1.5\n")


def as_tsv(folder: Path) -> Path:
    text = '\ufeff airport \t"elevation"\r\n\t\r\nHeathrow\t83\r\nEl Alto\t13355\r\nÅrø\t-3\r\n"q"\t1.5\r\n'
    return written(folder, "t.csv", text)


def as_json_lines(folder: Path) -> Path:
    lines = [json.dumps({"elevation": height, "airport": name, "more": []}) for name, height in TABLE]
    return written(folder, "t.jsonl", "\n".join(lines))


def as_semicolons(folder: Path) -> Path:
    return written(folder, "t.csv", "airport;elevation\nHeathrow;83\nEl Alto;13355\nÅrø;-3\nq;1.5\n")


def as_frame(_: Path) -> Any:
    return pytest.importorskip("pandas").DataFrame(TABLE, columns=["airport", "elevation"])


def as_parquet(folder: Path) -> Path:
    pytest.importorskip("pyarrow")
    as_frame(folder).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def as_sqlite(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "t.sqlite")) as connection, connection:
        connection.execute('CREATE TABLE "air ports" (airport, elevation)')
        connection.executemany('INSERT INTO "air ports" VALUES (?, ?)', TABLE)
    return folder / "t.sqlite"


@pytest.mark.parametrize("form", [as_csv, as_tsv, as_semicolons, as_json_lines, as_frame, as_parquet, as_sqlite])
def test_every_form_of_a_table_gives_the_same_facts(
    form: Callable[[Path], Any], tmp_path: Path, kb: hapax.KnowledgeBase
) -> None:
    """Texts, integers and decimals come in alike; the separator is read from the header, and rows of blanks say nothing."""
    report = hapax.import_facts(kb, form(tmp_path), mapping=LIES_AT.model_copy(update={"table": "air ports"}))

    assert (report.read, report.added) == (4, 4)
    assert stored(kb) == [("El Alto", 13355), ("Heathrow", 83), ("q", Decimal("1.5")), ("Årø", -3)]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "sqlite"])
def test_an_import_tells_how_much_of_a_file_is_read(ending: str, tmp_path: Path, kb: hapax.KnowledgeBase) -> None:
    """The callback of a knowledge base gets growing numbers, up to the bytes of a text or the rows of another table."""
    table, rows = tmp_path / f"t.{ending}", [(f"airport {number}", number) for number in range(5000)]
    if ending == "csv":
        table.write_text("airport,elevation\n" + "".join(f"{name},{height}\n" for name, height in rows), "utf-8")
    elif ending == "jsonl":
        table.write_text("".join(json.dumps({"airport": name, "elevation": height}) + "\n" for name, height in rows))
    elif ending == "parquet":
        pytest.importorskip("pyarrow")
        frame = pytest.importorskip("pandas").DataFrame(rows, columns=["airport", "elevation"])
        frame.to_parquet(table)
    else:
        with closing(sqlite3.connect(table)) as connection, connection:
            connection.execute("CREATE TABLE airports (airport, elevation)")
            connection.executemany("INSERT INTO airports VALUES (?, ?)", rows)
    told: list[tuple[int, int]] = []
    kb.progress = lambda done, total: told.append((done, total))
    hapax.import_facts(kb, table, mapping=LIES_AT)

    total = table.stat().st_size if ending in ("csv", "jsonl") else len(rows)
    assert {of for _, of in told} == {total}
    assert told == sorted(told)
    assert told[0][0] < total / 2
    assert told[-1] == (total, total)
    assert len(set(told)) > 5


@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_dates_short_floats_and_missing_cells_of_frames(form: str, tmp_path: Path, kb: hapax.KnowledgeBase) -> None:
    """Dates become ISO texts, a float of 32 bits the decimal that it shows, and every kind of missing cell is empty."""
    pandas = pytest.importorskip("pandas")
    source = pandas.DataFrame(
        {
            "airport": ["El Alto", "Orly", "Tegel"],
            "opened": [pandas.Timestamp("1965-01-01"), pandas.Timestamp("1965-01-01 05:06"), pandas.NaT],
            "day": [date(1965, 1, 2)] * 3,
            "height": pandas.array([1, 2, None], dtype="Int64"),
            "short": pandas.Series([3.1, 0.001, None], dtype="float32"),
        }
    )
    if form == "parquet":
        pytest.importorskip("pyarrow")
        source.to_parquet(tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    for column in ("opened", "day", "height", "short"):
        mapping = hapax.TableMapping.of("has", ["airport", column])
        report = hapax.import_facts(kb, source, mapping=mapping)
        assert report.empty == ({} if column == "day" else {f"has.{column}": 1})

    values = {value for _, value in stored(kb)}
    assert values == {"1965-01-01", "1965-01-01T05:06:00", "1965-01-02", 1, 2, Decimal("3.1"), Decimal("0.001")}


def test_faulty_rows_of_a_table_are_named_in_the_order_of_the_file(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """Short and long rows, texts for numbers and broken bytes are faults of their rows; repeats are counted once."""
    lines = "airport,elevation\nGatwick,83 ft\nShort\nLong,1,2\nBlank, \n\ud800,4\nGatwick,203\nGatwick,203"
    table = written(tmp_path, "t.csv", lines.encode("utf-8", "surrogatepass"))

    assert refused(kb, table, mapping=LIES_AT) == [2, 3, 4, 6]
    report = hapax.import_facts(kb, table, mapping=LIES_AT, rules=hapax.parse_rules(RULES), skip_faulty=True)
    assert (report.added, report.repeats, len(report.faults), report.empty) == (1, 1, 4, {"lies_at.elevation": 1})


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mapping", [LIES_AT, None])
def test_lines_are_those_of_the_file_behind_a_cell_of_several_lines(
    mapping: Any, ending: str, kb: hapax.KnowledgeBase, tmp_path: Path
) -> None:
    """Line breaks inside quoted cells count, in rows that are fine and in faulty ones, by columns and by predicates."""
    rows = ['"two\nlines",1', "Gatwick,83 ft", '"three\n\nlines",2', '"two\nlines",x', "El Alto,high"]
    lines = ["airport,elevation", *rows] if mapping else ["predicate,a,b", *(f"lies_at,{row}" for row in rows)]
    table = written(tmp_path, "t.csv", "".join(f"{line}\n" for line in lines).replace("\n", ending))

    assert refused(kb, table, mapping=mapping) == [4, 8, 10]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "airport,elevatoin\na,1\n", "elevatoin"),
        ("t.csv", "airport,airport,elevation\na,b,1\n", "twice"),
        ("t.csv", "", "header"),
        ("t.csv", "airport,elevation\nBogotá,1\n".encode("utf-16"), "UTF-16"),
        ("t.csv", 'airport,elevation\n"open,3\n', "CSV"),
        ("t.jsonl", '{"airport"', "JSON"),
        ("t.sqlite", "no database" * 100, "cannot be read"),
        ("t.xlsx", "", "read from"),
        ("none.csv", None, "no such file"),
    ],
)
def test_an_unreadable_table_is_refused_with_its_place(
    name: str, content: str | bytes | None, words: str, kb: hapax.KnowledgeBase, tmp_path: Path
) -> None:
    """A table without the columns, or that is none, is refused by a message that names the file."""
    if content is not None:
        written(tmp_path, name, content)
    with pytest.raises(hapax.HapaxError, match=re.escape(words)) as caught:
        hapax.import_facts(kb, tmp_path / name, mapping=LIES_AT.model_copy(update={"table": "airports"}))

    assert str(caught.value).startswith(str(tmp_path / name))
    assert stored(kb) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{{",
        "!!python/object/apply:os.system [id]",
        "facts: [{predicate: Lies, columns: [a]}]",
        "facts: [{predicate: p, columns: [a], more: 1}]",
        "facts: &a [*a]",
        'delimiter: "\\n"\nfacts: [{predicate: p, columns: [a]}]',
        b"\xff\xfe\x00",
        "a: " + "[" * 3000,
    ],
)
def test_a_faulty_mapping_is_an_error_with_its_file(content: str | bytes, tmp_path: Path) -> None:
    """Whatever the file has, the message names it, and no object is built from it."""
    path = written(tmp_path, "m.yaml", content)
    with pytest.raises(hapax.HapaxError, match=f"^{re.escape(str(path))}"):
        hapax.TableMapping.read(path)


def test_the_mapping_of_the_page_gives_its_facts(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """The table and the mapping file of docs/reference/knowledge-base.md give the six facts that it speaks of."""
    blocks = dict(re.findall(r"^```(yaml|text)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
    mapping = hapax.TableMapping.read(written(tmp_path, "mapping.yaml", blocks["yaml"]))
    hapax.import_facts(kb, written(tmp_path, "airports.txt", blocks["text"]), mapping=mapping)

    assert len(stored(kb)) == 6
    assert {("El Alto", 13325), ("Schiphol", "airport")} <= set(stored(kb))


def test_a_file_of_facts_of_another_form_is_refused(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """The error names the ending, and those that are read."""
    with pytest.raises(hapax.HapaxError, match="csv or jsonl, not from 'triples'"):
        hapax.import_facts(kb, written(tmp_path, "facts.triples", "milk is_in tea\n"))
