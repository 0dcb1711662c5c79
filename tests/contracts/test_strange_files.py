"""Files of strangers: tables that would run SQL or unpack without end, and knowledge bases with objects not ours."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

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
    return [
        "import",
        source,
        *chosen,
        "--predicate",
        "lies_in",
        "--columns",
        columns,
        "--db",
        source.with_name("kb.db"),
    ]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base with three facts."""
    table = tmp_path / "facts.csv"
    table.write_text("predicate,argument1,argument2\nlies_in,Oslo,Norway\nlies_in,Rome,Italy\nlies_in,Bonn,Germany\n")
    path = tmp_path / "theirs.db"
    run("import", table, "--db", path)
    return path


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A file with one more fact."""
    path = tmp_path / "one.csv"
    path.write_text("predicate,argument1,argument2\nlies_in,Kyiv,Ukraine\n")
    return path


# -- SQLite tables of other programs


@pytest.mark.parametrize("select", [ENDLESS, f"SELECT {LARGE} AS name, 'b' AS place"], ids=["endless", "large"])
def test_a_view_of_a_strangers_file_is_not_run(tmp_path: Path, select: str) -> None:
    """A view may take any time and memory, so it is refused with the way to copy its rows."""
    source = tmp_path / "city? 100%.sqlite"
    change(source, f"CREATE VIEW cities AS {select}")

    result = bounded(*importing(source))

    assert result.returncode == 1
    assert "cities is a view" in result.stderr
    assert "CREATE TABLE copy AS" in result.stderr


@pytest.mark.parametrize("module", ["fts5(name, place)", "dbstat"])
def test_a_virtual_table_of_a_strangers_file_is_not_run(tmp_path: Path, module: str) -> None:
    """The rows of a virtual table come from code that the file chooses."""
    source = tmp_path / "c.db"
    change(source, f"CREATE VIRTUAL TABLE cities USING {module}")

    result = invoke(*importing(source))

    assert result.exit_code == 1
    assert "virtual table" in result.output


def test_a_calculated_column_is_refused_and_stored_ones_are_read(tmp_path: Path) -> None:
    """A column that is calculated for each reading is refused where it is wanted, and no other column suffers."""
    source = tmp_path / "c.db"
    change(
        source,
        f"CREATE TABLE cities (name TEXT, place TEXT, big AS ({LARGE}), both TEXT AS (name || place) STORED)",
        "INSERT INTO cities (name, place) VALUES ('Oslo', 'Norway')",
    )
    refused = bounded(*importing(source, columns="name,big"))
    read = bounded(*importing(source, columns="name,both"))

    assert refused.returncode == 1
    assert "column big" in refused.stderr
    assert read.returncode == 0, read.stderr
    assert "OsloNorway" in run("export", "--format", "csv", "--db", tmp_path / "kb.db").output


def test_a_long_cell_beside_the_wanted_ones_is_no_obstacle(tmp_path: Path) -> None:
    """A picture in another column is not read; a cell that is too long for a fact is a fault of its row."""
    source = tmp_path / "c.db"
    change(
        source,
        "CREATE TABLE cities (name TEXT, picture BLOB, place TEXT)",
        "INSERT INTO cities VALUES ('Oslo', zeroblob(20000000), 'Norway'), ('Rome', NULL, hex(zeroblob(600000)))",
    )
    strict = invoke(*importing(source))
    lenient = invoke(*importing(source), "--skip-faulty")

    assert strict.exit_code == 1
    assert "c.db:2" in strict.output
    assert "characters" in strict.output
    assert lenient.exit_code == 0
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


def test_a_huge_cell_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """A cell of hundreds of megabytes is refused with the table's name."""
    source = tmp_path / "c.db"
    change(source, "CREATE TABLE cities (name, place)", "INSERT INTO cities VALUES ('a', zeroblob(400000000))")

    result = bounded(*importing(source))

    assert result.returncode == 1
    assert "cities has more than" in result.stderr


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


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A small Parquet file with one cell of 300 MB among short ones."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    names = ["x" * 300_000_000, *map(str, range(1000))]
    table = arrow.table({"name": names, "place": ["b"] * len(names)})
    parquet.write_table(table, path, compression="zstd", use_dictionary=["place"], write_statistics=False)
    return path


def test_a_parquet_cell_that_unpacks_to_much_more_is_refused(packed: Path) -> None:
    """A small file may unpack to any size; its column is refused before it does, and the others are read."""
    assert packed.stat().st_size < 100_000

    refused = bounded(*importing(packed, None))
    read = bounded(*importing(packed, None, "place,place"))

    assert refused.returncode == 1
    assert "c.parquet" in refused.stderr
    assert "column name" in refused.stderr
    assert read.returncode == 0, read.stderr


def test_a_dictionary_of_parquet_is_not_copied_for_each_row(tmp_path: Path) -> None:
    """Rows that name one long text of a dictionary take the memory of one."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    places = arrow.array(["p" * 2_000_000]).dictionary_encode()
    rows = arrow.DictionaryArray.from_arrays(arrow.array([0] * 2000, arrow.int32()), places.dictionary)
    parquet.write_table(arrow.table({"name": list(map(str, range(2000))), "place": rows}), path, compression="zstd")

    result = bounded(*importing(path, None))

    assert result.returncode == 1
    assert "c.parquet:2000" in result.stderr or "c.parquet:1" in result.stderr
    assert "characters" in result.stderr


@pytest.mark.parametrize("name", ["c.csv", "c.jsonl", "c.sqlite"])
def test_one_limit_of_length_holds_for_all_tables(tmp_path: Path, name: str) -> None:
    """A text of a million characters is a value, and one of two million is a fault of its row, in each form."""
    path = tmp_path / name
    cells = [("a", "x" * 1_000_000), ("b", "y" * 2_000_000)]
    if name == "c.sqlite":
        change(path, "CREATE TABLE cities (name, place)")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany("INSERT INTO cities VALUES (?, ?)", cells)
    elif name == "c.csv":
        path.write_text("name,place\n" + "".join(f"{first},{second}\n" for first, second in cells))
    else:
        path.write_text("".join(json.dumps(dict(zip(("name", "place"), row, strict=True))) + "\n" for row in cells))

    result = invoke(*importing(path, "cities" if name == "c.sqlite" else None), "--skip-faulty")

    assert result.exit_code == 0, result.output
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

THIEF = "CREATE TRIGGER thief AFTER INSERT ON facts BEGIN DELETE FROM facts WHERE id = NEW.id; END"


def damages(database: Path) -> list[str]:
    result = invoke("verify", "--db", database, "--json")
    found = json.loads(result.stdout)["damages"]
    assert result.exit_code == (1 if found else 0)
    return [f"{damage['table']} {damage['row']}" for damage in found]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        (THIEF, "trigger thief"),
        ("CREATE TRIGGER thief AFTER INSERT ON runs BEGIN INSERT INTO runs SELECT * FROM runs; END", "trigger thief"),
        ("CREATE UNIQUE INDEX thief ON facts (predicate)", "index thief"),
        ("CREATE INDEX thief ON facts (hex(zeroblob(400000000)))", "index thief"),
        ("ALTER TABLE facts ADD COLUMN thief INTEGER CHECK (predicate <> 'lies_in')", "table facts"),
        ("ALTER TABLE facts ADD COLUMN thief INTEGER", "table facts"),
    ],
)
def test_what_decides_on_writes_is_named_and_nothing_is_written(
    database: Path, one: Path, sql: str, named: str
) -> None:
    """A trigger, index or table that Hapax did not make so is a damage, and no command writes to its file."""
    if "CHECK" in sql:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("DELETE FROM facts")
    elif "UNIQUE" in sql or "hex" in sql:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("DELETE FROM facts WHERE rowid > 1")
    before = damages(database)
    change(database, sql.replace("hex(zeroblob(400000000))", "hex(arguments)"))

    assert damages(database) == [f"schema {named}", *before]
    result = invoke("import", one, "--db", database)
    assert result.exit_code == 1
    assert named.split()[1] in result.output
    assert "hapax merge" in result.output
    merged = run("merge", database, "--db", database.with_name("own.db"))
    assert merged.exit_code == 0


def test_a_seal_is_broken_by_a_trigger(database: Path, tmp_path: Path) -> None:
    """A trigger that came after the seal is named by `verify`, and changes the root."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    run("verify", "--db", database, "--seal", key)
    change(database, THIEF)

    found = damages(database)

    assert found[0] == "schema trigger thief"
    assert any(damage.startswith("seal ") for damage in found[1:])
    assert invoke("verify", "--db", database, "--seal", key).exit_code == 1


def test_other_programs_may_add_tables_and_the_seal_has_them(database: Path, one: Path, tmp_path: Path) -> None:
    """Tables, plain indexes and views of other programs are named, change nothing, and are part of the seal."""
    change(
        database,
        "CREATE TABLE notes (text)",
        "CREATE INDEX facts_by_source ON facts (source, predicate DESC)",
        f"CREATE VIEW zz AS {ENDLESS}",
    )
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)

    result = run("verify", "--db", database, "--seal", key, "--json")
    others = " ".join(json.loads(result.stdout)["others"])

    assert all(name in others for name in ("notes", "facts_by_source", "zz"))
    assert "notes" in run("verify", "--db", database).output
    change(database, "DROP VIEW zz")
    assert damages(database) == ["seal objects of other programs"]
    run("import", one, "--db", database)


def test_a_trigger_of_hapax_that_is_gone_is_named(database: Path) -> None:
    """Without its triggers a file does not notice what other programs change."""
    change(database, "DROP TRIGGER fact_withdrawn")

    assert damages(database) == ["schema trigger fact_withdrawn"]


def test_what_derive_makes_is_recognised(database: Path, tmp_path: Path) -> None:
    """Tables, indexes and views that commands make for single predicates and rules are no damage."""
    rules = tmp_path / "places.rules"
    rules.write_text(
        'given lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"\n'
        'given is_near(City, City): "[1] is near [2]" / "[1] is not near [2]" / "is [1] near [2]?"\n'
        "@name near\n"
        "lies_in(City A, Country C) & lies_in(City B, Country C) -> is_near(City A, City B)\n"
    )
    derived = invoke("derive", "--rules", rules, "--db", database)
    assert derived.exit_code == 0, derived.output

    found = json.loads(run("verify", "--db", database, "--json").stdout)

    assert (found["damages"], found["others"]) == ([], [])
    with closing(sqlite3.connect(database)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert {"derived_statements", "_relation_1", "_instances_1"} <= names

    change(database, "DROP VIEW derived_statements", f"CREATE VIEW derived_statements AS {ENDLESS}")
    assert damages(database) == ["schema view derived_statements"]
    run("derive", "--rules", rules, "--db", database)
    assert damages(database) == []


@pytest.mark.parametrize("command", ["stats", "verify", "import"])
def test_a_calculated_column_of_a_strangers_knowledge_base_is_not_read(database: Path, one: Path, command: str) -> None:
    """A table of Hapax with a calculated column is refused by every command."""
    change(database, f"ALTER TABLE facts ADD COLUMN big TEXT AS ({LARGE})")

    result = invoke(command, *([one] if command == "import" else []), "--db", database)

    assert result.exit_code == 1
    assert "facts" in result.output


@pytest.mark.parametrize("command", ["stats", "import"])
def test_a_list_of_migrations_that_never_ends_is_not_read(database: Path, one: Path, command: str) -> None:
    """The table by which a file is recognised is looked at first, and a view in its place is not read."""
    rows = "SELECT 'hapax', 'a', 'b' UNION ALL SELECT * FROM n"
    change(
        database,
        "ALTER TABLE _sqlite_migrations RENAME TO before",
        f"CREATE VIEW _sqlite_migrations AS WITH RECURSIVE n(migration_set, name, applied_at) AS ({rows}) "  # noqa: S608
        "SELECT * FROM n",
    )

    result = bounded(command, *([one] if command == "import" else []), "--db", database)

    assert result.returncode == 1
    assert "_sqlite_migrations" in result.stderr


def test_a_file_that_a_knowledge_base_names_is_not_read_if_it_is_larger(database: Path, tmp_path: Path) -> None:
    """A knowledge base keeps names of rule files, and they may be those of anything else on this machine."""
    rules = tmp_path / "places.rules"
    rules.write_text(
        'given lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"\n'
    )
    run("derive", "--rules", rules, "--db", database)
    os.truncate(rules, 8 << 30)

    result = bounded("query", "lies_in(oslo, X)", "--db", database)

    assert "places.rules has changed" in result.stderr
    assert "MemoryError" not in result.stderr
    assert result.returncode in (0, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_long_statement_on_a_strangers_knowledge_base(database: Path, number: int) -> None:
    """Ctrl-C and SIGTERM end a statement that would run for ever."""
    change(database, f"CREATE VIEW derived_statements AS {ENDLESS}")
    process = subprocess.Popen(
        [sys.executable, "-c", _LONG, str(database)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    os.kill(process.pid, number)
    try:
        process.communicate(timeout=10)
    finally:
        process.kill()

    assert process.returncode != 0


_LONG = """
import signal
import sys
import hapax
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
with hapax.KnowledgeBase(sys.argv[1], read_only=True) as kb:
    print("open", flush=True)
    kb.query("SELECT count(*) FROM derived_statements")
"""
