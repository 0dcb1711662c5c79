"""Defaults from a file that --config names, and how much a command tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import invoke, run

NAMED = ("--config", "hapax.toml")
IMPORT = ("import", "facts.csv", "--predicate", "contains", "--columns", "dish,spice", "--rules", "own.rules")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HAPAX_DB", raising=False)
    (tmp_path / "own.rules").write_text("given contains(Dish, Spice)\n", "utf-8")
    return tmp_path


def configure(text: str, name: str = "hapax.toml") -> None:
    Path(name).write_text(text, "utf-8")


def add_fact(database: str, dish: str) -> None:
    Path("facts.csv").write_text(f"dish,spice\n{dish},saffron\n", "utf-8")
    run(*IMPORT, "--db", database)


def test_options_of_the_file_are_defaults_of_all_commands_that_have_them() -> None:
    """A value at the top of the named file is the default of each command with that option; stderr names the file."""
    add_fact("mine.db", "paella")
    configure('db = "mine.db"\n')

    result = run(*NAMED, "query", "contains(paella, X)")

    assert "saffron" in result.stdout
    assert "Options from hapax.toml" in result.stderr


def test_the_command_line_and_the_environment_come_before_the_file() -> None:
    """--db comes before HAPAX_DB, which comes before the file."""
    for name in ("typed", "environment", "file"):
        add_fact(f"{name}.db", f"dish_of_{name}")
    configure('db = "file.db"\n')

    of_file = run(*NAMED, "query", "contains(X, saffron)").stdout
    of_environment = invoke(*NAMED, "query", "contains(X, saffron)", environment={"HAPAX_DB": "environment.db"}).stdout
    typed = invoke(
        *NAMED, "query", "contains(X, saffron)", "--db", "typed.db", environment={"HAPAX_DB": "environment.db"}
    ).stdout

    assert "dish_of_file" in of_file
    assert "dish_of_environment" in of_environment
    assert "dish_of_typed" in typed


def test_the_table_of_a_command_comes_before_the_top_of_the_file() -> None:
    """[query] sets options of query alone, and over values for all commands."""
    add_fact("query.db", "paella")
    add_fact("all.db", "risotto")
    configure('db = "all.db"\n[query]\ndb = "query.db"\njson = true\n')

    queried = run(*NAMED, "query", "contains(X, saffron)").stdout
    exported = run(*NAMED, "export").stdout

    assert json.loads(queried)
    assert "paella" in queried
    assert "risotto" not in queried
    assert "risotto" in exported


def test_typed_rules_come_in_place_of_the_file_s() -> None:
    """`check PATH` checks that file alone, where the file names others; without a path it checks those."""
    configure('rules = ["faulty.rules"]\n')
    Path("faulty.rules").write_text("given likes(Person)\nlikes(X, Y) -> likes(Y).\n", "utf-8")
    Path("right.rules").write_text("given loves(Person, Dish)\n", "utf-8")

    assert invoke(*NAMED, "check", "right.rules").exit_code == 0
    assert invoke(*NAMED, "check").exit_code == 4


def test_another_file_is_named_by_config() -> None:
    """--config reads the named file and not the one in the folder."""
    add_fact("mine.db", "paella")
    configure('db = "nowhere.db"\n')
    configure('db = "mine.db"\n', "other.toml")

    result = run("--config", "other.toml", "query", "contains(paella, X)")

    assert "saffron" in result.stdout
    assert "Options from other.toml" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bean = 3", "hapax.toml: bean is not an option of any command. Did you mean beam?"),
        ("[serch]\nbeam = 3", "hapax.toml: [serch] names no command. Did you mean search?"),
        ("[evaluate.likelyhood]\nout = 'x'", "[evaluate.likelyhood] names no command. Did you mean likelihood?"),
        ("[search]\nbaem = 3", "hapax.toml: baem is not an option of `hapax search`. Did you mean beam?"),
        ("[search]\nbeam = [3]", "beam of `hapax search` takes one value"),
        ("[search]\njson = 1", "json of `hapax search` is true or false"),
        ("[search]\nbeam = true", "beam of `hapax search` takes a value"),
        ("db = ", "hapax.toml: Invalid value (at end of document)"),
    ],
)
def test_faults_of_the_file_are_named(text: str, message: str) -> None:
    """A misspelt command or option, a value of another kind and broken TOML are errors with the place and a remedy."""
    configure(text)

    result = invoke(*NAMED, "stats")

    assert result.exit_code == 1
    assert message in result.stderr


def test_quiet_commands_print_data_and_errors_alone() -> None:
    """With -q stderr is empty unless the command fails."""
    configure('db = "mine.db"\n')
    Path("facts.csv").write_text("dish,spice\npaella,saffron\n", "utf-8")

    done = run("-q", *NAMED, *IMPORT)
    failed = invoke("-q", *NAMED, "query", "no goal (")
    told = run(*NAMED, *IMPORT)

    assert done.stderr == ""
    assert "no goal (" in failed.output
    assert "1 fact read" in told.stderr


def test_quiet_and_verbose_contradict_each_other() -> None:
    """-q with -v is wrong usage."""
    result = invoke("-q", "-v", "stats")

    assert result.exit_code == 2
    assert "-q and -v contradict each other." in result.stderr


def test_words_between_colons_are_no_emoji() -> None:
    """A value such as :100: is printed as it is."""
    add_fact("mine.db", "CR-WSC-H:100:")

    assert "CR-WSC-H:100:" in run("query", "contains(X, saffron)", "--db", "mine.db").stdout
