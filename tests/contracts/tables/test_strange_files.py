"""Files of strangers: tables that would run SQL or unpack without end, and knowledge bases with objects not ours."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run

import hapax

MEMORY = 2 << 30
"""Bytes of address space for a command that must not unpack what it reads."""

ENDLESS = "WITH RECURSIVE n(name, place) AS (SELECT 'a', 'b' UNION ALL SELECT name, place FROM n) SELECT * FROM n"
LARGE = "hex(zeroblob(400000000))"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for sql in statements:
            connection.execute(sql)


def bounded(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with at most `MEMORY` and 90 seconds."""
    return subprocess.run(
        [sys.executable, "-m", "hapax.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )


def importing(source: Path, table: str | None = "cities", columns: str = "name,place") -> list[object]:
    chosen = ["--table", table] if table else []
    database = source.with_name("kb.db")
    return ["import", source, *chosen, "--predicate", "lies_in", "--columns", columns, "--db", database]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base with three facts."""
    table = tmp_path / "facts.csv"
    table.write_text("predicate,argument1,argument2\nlies_in,Oslo,Norway\nlies_in,Rome,Italy\nlies_in,Bonn,Germany\n")
    run("import", table, "--db", tmp_path / "theirs.db")
    return tmp_path / "theirs.db"


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A file with one more fact."""
    path = tmp_path / "one.csv"
    path.write_text("predicate,argument1,argument2\nlies_in,Kyiv,Ukraine\n")
    return path


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Rules of which `derive` keeps the file's name."""
    path = tmp_path / "places.rules"
    path.write_text(
        'given lies_in(City, Country): "[1] lies in [2]"\ngiven is_near(City, City): "[1] is near [2]"\n'
        "@name near\nlies_in(City A, Country C) & lies_in(City B, Country C) -> is_near(City A, City B)\n"
    )
    return path


# -- SQLite tables of other programs


REFUSED = {
    "an endless view": (f"CREATE VIEW cities AS {ENDLESS}", "cities is a view"),
    "a large view": (f"CREATE VIEW cities AS SELECT {LARGE} AS name, 'b' AS place", "CREATE TABLE copy AS"),
    "a virtual table": ("CREATE VIRTUAL TABLE cities USING fts5(name, place)", "virtual table"),
    "pages as a table": ("CREATE VIRTUAL TABLE cities USING dbstat", "virtual table"),
    "a calculated column": (f"CREATE TABLE cities (name TEXT, place AS ({LARGE}))", "column place"),
    "a huge cell": ("CREATE TABLE cities AS SELECT 'a' AS name, zeroblob(100000000) AS place", "cities has more than"),
}


@pytest.mark.parametrize(("sql", "words"), REFUSED.values(), ids=REFUSED)
def test_what_a_strangers_table_would_run_or_unpack_is_refused(tmp_path: Path, sql: str, words: str) -> None:
    """Views, virtual tables and calculated columns take any time and memory: refused first, with the place or a remedy."""
    source = tmp_path / "city? 100%.sqlite"
    change(source, sql)
    result = bounded(*importing(source))

    assert result.returncode == 1
    assert words in result.stderr


def test_a_long_or_calculated_cell_beside_the_wanted_ones_is_no_obstacle(tmp_path: Path) -> None:
    """A picture in another column is not read; a cell that is too long for a fact is a fault of its row."""
    source = tmp_path / "c.db"
    change(
        source,
        f"CREATE TABLE cities (name TEXT, picture BLOB, place TEXT, big AS ({LARGE}))",
        "INSERT INTO cities VALUES ('Oslo', zeroblob(20000000), 'Norway'), ('Rome', NULL, hex(zeroblob(600000)))",
    )
    strict = invoke(*importing(source))
    run(*importing(source), "--skip-faulty")

    assert strict.exit_code == 1
    assert "c.db:2" in strict.output
    assert "characters" in strict.output
    assert "lies_in,Oslo,Norway" in run("export", "--format", "csv", "--db", tmp_path / "kb.db").output


def test_nothing_is_left_beside_a_table_that_is_read(tmp_path: Path) -> None:
    """A file whose program keeps a log is read without a log or an index of ours in its folder."""
    source = tmp_path / "theirs/c.db"
    source.parent.mkdir()
    change(source, "PRAGMA journal_mode = WAL", "CREATE TABLE cities (name, place)", "INSERT INTO cities VALUES (1, 2)")
    before = source.read_bytes()

    run("import", source, "--table", "cities", "--predicate", "p", "--columns", "name,place", "--db", tmp_path / "k.db")

    assert list(source.parent.iterdir()) == [source]
    assert source.read_bytes() == before


def test_pages_that_are_used_many_times_are_damage(tmp_path: Path) -> None:
    """A forged file of some pages, each of which names the next one 80 times, does not give rows without end."""
    source = tmp_path / "c.db"
    rows = ", ".join("('a', 'b')" for _ in range(2_000))
    change(
        source,
        "PRAGMA page_size = 512",
        "CREATE TABLE cities (name, place)",
        f"INSERT INTO cities VALUES {rows}",  # noqa: S608  ours
    )
    with closing(sqlite3.connect(source)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master")
    content = bytearray(source.read_bytes())
    leaves = [page for page in range(2, len(content) // 512) if content[(page - 1) * 512] == 13]
    chain = [root, *leaves[:10]]
    for page, below in pairwise(chain):
        # An interior page of a table (kind 5) with 80 cells, all of which are the one at 500, and a last child.
        head = bytes([5, 0, 0]) + (80).to_bytes(2, "big") + (500).to_bytes(2, "big") + b"\0" + below.to_bytes(4, "big")
        page_content = head + (500).to_bytes(2, "big") * 80
        page_content = page_content.ljust(500, b"\0") + below.to_bytes(4, "big") + b"\1"
        content[(page - 1) * 512 : page * 512] = page_content.ljust(512, b"\0")
    source.write_bytes(content)

    result = bounded(*importing(source))

    assert result.returncode == 1
    assert "damaged" in result.stderr


# -- Parquet and texts


def test_what_parquet_packs_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """One cell of 120 MB in a small file, and 2,000 rows of one long text; the columns beside it are read."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = ["x" * 120_000_000, *map(str, range(1000))]
    table = arrow.table({"name": names, "place": ["b"] * len(names)})
    packed: dict[str, Any] = {"use_dictionary": ["place"], "compression": "zstd", "write_statistics": False}
    parquet.write_table(table, tmp_path / "c.parquet", **packed)
    places = arrow.array(["p" * 2_000_000]).dictionary_encode()
    rows = arrow.DictionaryArray.from_arrays(arrow.array([0] * 2000, arrow.int32()), places.dictionary)
    table = arrow.table({"name": list(map(str, range(2000))), "place": rows})
    parquet.write_table(table, tmp_path / "d.parquet", compression="zstd")
    large, read = (bounded(*importing(tmp_path / "c.parquet", None, names)) for names in ("name,place", "place,place"))
    many = bounded(*importing(tmp_path / "d.parquet", None))

    assert (tmp_path / "c.parquet").stat().st_size < 100_000
    assert (large.returncode, read.returncode, many.returncode) == (1, 0, 1), read.stderr
    assert "column name" in large.stderr
    assert "d.parquet:1" in many.stderr or "d.parquet:2000" in many.stderr


@pytest.mark.parametrize("name", ["c.csv", "c.jsonl"])
def test_one_limit_of_length_holds_for_all_tables(tmp_path: Path, name: str) -> None:
    """A text of a million characters is a value, and one of two million is a fault of its row, in each form."""
    cells = [("a", "x" * 1_000_000), ("b", "y" * 2_000_000)]
    lines = [json.dumps({"name": first, "place": second}) for first, second in cells]
    text = ["name,place", *map(",".join, cells)] if name == "c.csv" else lines
    (tmp_path / name).write_text("\n".join(text) + "\n")
    result = run(*importing(tmp_path / name, None), "--skip-faulty")

    assert "2000000 characters" in result.output
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        assert [len(str(fact.arguments[1])) for fact in kb.facts()] == [1_000_000]


def test_a_mapping_whose_merges_multiply_is_refused(tmp_path: Path) -> None:
    """Eight lines of YAML that merge into 43 million fields are a fault of the file."""
    lines = [f"a0: &a0 {{{', '.join(f'k{number}: 1' for number in range(9))}}}"]
    lines += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}" for level in range(1, 8)]
    mapping, table = tmp_path / "m.yaml", tmp_path / "c.csv"
    mapping.write_text("\n".join([*lines, "facts: [{predicate: lies_in, columns: [name, place]}]"]))
    table.write_text("name,place\nOslo,Norway\n")

    result = bounded("import", table, "--map", mapping, "--db", tmp_path / "kb.db")

    assert result.returncode == 1
    assert "merges" in result.stderr


# -- knowledge bases of strangers

THIEF = "CREATE TRIGGER thief AFTER INSERT ON _relation_1 BEGIN DELETE FROM _relation_1 WHERE ref = NEW.ref; END"


def damages(database: Path) -> list[str]:
    result = invoke("kb", "verify", "--db", database, "--json")
    found = json.loads(result.stdout)["damages"]
    assert result.exit_code == (1 if found else 0)
    return [f"{damage['table']} {damage['row']}" for damage in found]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        (THIEF, "trigger thief"),
        ("CREATE TRIGGER thief AFTER INSERT ON runs BEGIN INSERT INTO runs SELECT * FROM runs; END", "trigger thief"),
        ("CREATE UNIQUE INDEX thief ON _relation_1 (a1)", "index thief"),
        ("CREATE INDEX thief ON _relation_1 (hex(id))", "index thief"),
        ("ALTER TABLE _relation_1 ADD COLUMN thief INTEGER CHECK (a1 <> 0)", "table _relation_1"),
    ],
)
def test_what_decides_on_writes_is_named_and_nothing_is_written(
    database: Path, one: Path, sql: str, named: str
) -> None:
    """A trigger, index or table that Hapax did not make so is a damage, and no command writes to its file."""
    change(database, sql)

    assert damages(database) == [f"schema {named}"]
    result = invoke("import", one, "--db", database)
    assert result.exit_code == 1
    assert named.split()[1] in result.output
    assert "hapax data merge" in result.output
    run("data", "merge", database, "--db", database.with_name("own.db"))


def test_other_programs_may_add_tables(database: Path, one: Path) -> None:
    """Tables, plain indexes and views of others are named, and change nothing; a trigger is a damage."""
    change(
        database,
        "CREATE TABLE notes (text)",
        "CREATE INDEX facts_by_second ON _relation_1 (a2 DESC, a1)",
        f"CREATE VIEW zz AS {ENDLESS}",
    )
    others = " ".join(json.loads(run("kb", "verify", "--db", database, "--json").stdout)["others"])

    assert all(name in others for name in ("notes", "facts_by_second", "zz"))
    assert damages(database) == []
    run("import", one, "--db", database)
    change(database, THIEF)
    assert damages(database)[0] == "schema trigger thief"


def test_what_derive_makes_is_recognised(database: Path, places: Path) -> None:
    """Tables, indexes and views that commands make for single predicates and rules are no damage."""
    run("derive", "--rules", places, "--db", database)
    found = json.loads(run("kb", "verify", "--db", database, "--json").stdout)
    with closing(sqlite3.connect(database)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

    assert (found["damages"], found["others"]) == ([], [])
    assert {"derived_statements", "_relation_1", "_instances_1"} <= names
    change(database, "DROP VIEW derived_statements", f"CREATE VIEW derived_statements AS {ENDLESS}")
    assert damages(database) == ["schema view derived_statements"]
    run("derive", "--rules", places, "--db", database)
    assert damages(database) == []
    change(database, "DROP INDEX idx_statements_id")
    assert damages(database) == ["schema index idx_statements_id"]


@pytest.mark.parametrize("command", ["data stats", "kb verify", "import"])
def test_a_calculated_column_of_a_strangers_knowledge_base_is_not_read(database: Path, one: Path, command: str) -> None:
    """A table of Hapax with a calculated column is refused by every command."""
    change(database, f"ALTER TABLE _relation_1 ADD COLUMN big TEXT AS ({LARGE})")

    result = invoke(*command.split(), *([one] if command == "import" else []), "--db", database)

    assert result.exit_code == 1
    assert "_relation_1" in result.output


@pytest.mark.parametrize("command", ["data stats", "import"])
def test_a_list_of_migrations_that_never_ends_is_not_read(database: Path, one: Path, command: str) -> None:
    """The table by which a file is recognised is looked at first, and a view in its place is not read."""
    rows = "SELECT 'hapax', 'a', 'b' UNION ALL SELECT * FROM n"
    change(
        database,
        "ALTER TABLE _sqlite_migrations RENAME TO before",
        f"CREATE VIEW _sqlite_migrations AS WITH RECURSIVE n(migration_set, name, applied_at) AS ({rows}) "  # noqa: S608
        "SELECT * FROM n",
    )

    result = bounded(*command.split(), *([one] if command == "import" else []), "--db", database)

    assert result.returncode == 1
    assert "_sqlite_migrations" in result.stderr


def test_a_file_that_a_knowledge_base_names_is_not_read_if_it_is_larger(database: Path, places: Path) -> None:
    """A knowledge base keeps names of rule files, and they may be those of anything else on this machine."""
    run("derive", "--rules", places, "--db", database)
    os.truncate(places, 8 << 30)
    result = bounded("query", "lies_in(oslo, X)", "--db", database)

    assert "places.rules has changed" in result.stderr
    assert "MemoryError" not in result.stderr
    assert result.returncode in (0, 1)
