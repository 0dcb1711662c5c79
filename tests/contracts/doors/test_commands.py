"""Commands as people use them: `commands/*.yaml` says what each prints, writes and ends with.

A file has a world (`files`, and commands that run `before` its cases) and `cases`. A case begins in a copy of this world:

    - does: The behaviour in one sentence.
      files: {my.rules: TEXT}           # further files
      steps:
      - run: hapax check my.rules       # stdin: TEXT, environment: {NAME: TEXT}
        code: 4                         # 0 where it is left out
        prints: [HPX101]                # words on stdout
        says: ['my.rules:1:12']         # words on stderr
        never: [Traceback]              # words on neither
        json: {faults: [{code: HPX101, line: int}]}
        writes: {out.csv: [ann]}        # files, with words in them
        leaves_out: [hapax.db]          # files that must not be there

`json` is the shape of stdout: names of types (`int`, `str`, `number`, `bool`, `list`, `dict`, `null`, `any`) or values; a list gives the shape
of its first elements, a mapping some of the keys. A case with a single step may have its keys itself.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
import yaml
from cli_fixture import commands, invoke, run
from click.testing import CliRunner

import hapax
from hapax import cli
from hapax.cli import main

FOLDER = Path(__file__).parents[1] / "commands"
KEYS = {"run", "stdin", "environment", "code", "prints", "says", "never", "json", "writes", "leaves_out"}
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "int": int, "str": str, "number": (int, float), "bool": bool, "list": list, "dict": dict, "null": type(None), "any": object,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A case of a file."""

    path: Path
    does: str
    files: Mapping[str, str]
    steps: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.path.stem}: {self.does}"


def cases() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text("utf-8"))["cases"]:
            steps = entry.get("steps") or [{key: value for key, value in entry.items() if key in KEYS}]
            unknown = {key for step in steps for key in step} - KEYS | entry.keys() - KEYS - {"does", "files", "steps"}
            assert not unknown, f"{path.name}, {entry['does']}: unknown keys {unknown}"
            yield Case(path, entry["does"], entry.get("files", {}), tuple(steps))


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The folder in which the commands before the cases of a file have run; they run once."""

    @cache
    def made(path: Path) -> Path:
        about = yaml.safe_load(path.read_text("utf-8"))
        folder = tmp_path_factory.mktemp(path.stem)
        write(folder, about.get("files", {}))
        with chdir(folder):
            for line in about.get("before", ()):
                result = invoke(*shlex.split(line)[1:])
                assert result.exit_code == 0, f"{line}\n{result.output}"
        return folder

    return made


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_command_does_what_its_case_says(case: Case, world_of: Callable[[Path], Path], tmp_path: Path) -> None:
    """Exit code, words on stdout and stderr, shape of JSON and written files are those of the case."""
    folder = tmp_path / "case"
    shutil.copytree(world_of(case.path), folder)
    write(folder, case.files)
    with chdir(folder):
        for step in case.steps:
            check(step, folder)


def check(step: Mapping[str, Any], world: Path) -> None:
    words = shlex.split(step["run"])
    assert words[0] == "hapax"
    result = invoke(*words[1:], answers=step.get("stdin", ""), environment=step.get("environment"))
    shown = f"{step['run']}\nstdout:\n{result.stdout}\nstderr:\n{result.stderr}"
    assert result.exit_code == step.get("code", 0), shown
    assert [word for word in step.get("prints", ()) if flat(word) not in flat(result.stdout)] == [], shown
    assert [word for word in step.get("says", ()) if flat(word) not in flat(result.stderr)] == [], shown
    assert [word for word in step.get("never", ()) if flat(word) in flat(result.stdout + result.stderr)] == [], shown
    if "json" in step:
        differences = list(unlike(json.loads(result.stdout), step["json"], "$"))
        assert differences == [], shown
    for name, parts in step.get("writes", {}).items():
        text = (world / name).read_text("utf-8", "replace")
        assert [part for part in parts if part not in text] == [], f"{name}:\n{text[:2000]}"
    assert [name for name in step.get("leaves_out", ()) if (world / name).exists()] == [], shown


def flat(text: object) -> str:
    """A text in one line: where a message is wrapped depends on the terminal."""
    return " ".join(str(text).split())


def unlike(value: Any, shape: Any, at: str) -> Iterator[str]:
    """Places at which a JSON value has another shape."""
    if isinstance(shape, dict):
        missing = [key for key in shape if not isinstance(value, dict) or key not in value]
        yield from (f"{at}: no {key!r} in {value!r}" for key in missing)
        for key in shape.keys() - set(missing):
            yield from unlike(value[key], shape[key], f"{at}.{key}")
    elif isinstance(shape, list):
        if not isinstance(value, list) or len(value) < len(shape):
            yield f"{at}: {value!r} has fewer than {len(shape)} elements"
        else:
            for number, inner in enumerate(shape):
                yield from unlike(value[number], inner, f"{at}[{number}]")
    elif not is_like(value, shape):
        yield f"{at}: {value!r} is not {shape!r}"


def is_like(value: Any, shape: Any) -> bool:
    """A value of the named type, or the value itself; a truth value is no number."""
    if isinstance(shape, str) and shape in TYPES:
        return isinstance(value, TYPES[shape]) and not (isinstance(value, bool) and shape in ("int", "number"))
    return bool(value == shape)


WITHOUT_JSON = {
    "rules compile": "prints Prolog, rules or LINK's JSON",
    "export": "prints facts in a format of --format",
    "rules lsp": "speaks a protocol",
    "kb mcp": "speaks a protocol",
    "init": "writes files",
    "shell": "answers one goal after another",
    "serve": "serves pages, each table of which is there as JSON",
}
"""Commands without --json, each with its reason."""


COMMANDS = dict(commands())


def examples(name: str) -> list[str]:
    """The lines in the help of a command that call it, without its name."""
    text = COMMANDS[name].help or ""
    return re.findall(rf"^ *(?:\\S+=\\S+ )?hapax {re.escape(name)}(?: (.*))?$", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_examples_that_it_accepts(name: str) -> None:
    """The help shows the command at work, with options and arguments that it has."""
    command = COMMANDS[name]

    assert examples(name)
    for line in examples(name):
        words = shlex.split(line, comments=True)
        words = words[: words.index(">")] if ">" in words else words
        # With the settings of the program, since a command keeps the help option of its first context.
        context = click.Context(command, info_name=name, parent=click.Context(main, **main.context_settings))
        given, left_over, _ = command.make_parser(context).parse_args(words)
        assert not left_over, line
        assert {option.name for option in command.params if option.required} <= given.keys(), line


def test_a_command_is_called_by_its_own_name() -> None:
    """Where the program says a command is, there is one of that name."""
    assert {name: command.name for name, command in COMMANDS.items()} == {name: name.split()[-1] for name in COMMANDS}


def test_the_list_of_commands_shows_the_help_of_each() -> None:
    """The list is read from the sources of the commands, and says what click would say of the commands themselves."""
    context = click.Context(main)
    listed, made = (click.HelpFormatter(width=100) for _ in range(2))
    main.format_commands(context, listed)
    click.Group.format_commands(main, context, made)

    assert listed.getvalue() == made.getvalue()


def test_a_command_that_reports_prints_json() -> None:
    """--json is everywhere, except where the output is itself data, text or a conversation."""
    without = {name for name, command in COMMANDS.items() if not any("--json" in item.opts for item in command.params)}

    assert without == {*WITHOUT_JSON}


SITUATIONS = [
    ("query 'p(X)' --db none.db", 1, ["none.db", "Import"]),
    ("import none.csv --rules my.rules --db kb.db", 2, ["none.csv"]),
    ("rules compile none.rules", 2, ["none.rules:1:1", "HPX060"]),
    ("query 'eat(ann, X)' --db kb.db", 1, ["<goal>:1:1", "eat/2", "eats/2"]),
    ("query 'eats(ann, X' --db kb.db", 1, ["<goal>:1:11", '"("']),
    ("query 'eats(bob, X)' --db kb.db", 0, ["`hapax why-not`", "bob"]),
    ("rules compile my.rules --rule my", 1, ["my.rules", "may?"]),
    ("why-not 'eats(ann, rye)' --db kb.db", 1, ["`hapax why 'eats(ann, rye)' --db kb.db`"]),
    ("why 'eats(ann, oat)' --db kb.db", 1, ["`hapax why-not 'eats(ann, oat)' --db kb.db`"]),
    ("data retract 'eats(ann, rye)' --db kb.db", 2, ["--reason"]),
    ("data retract 'eats(ann, oat)' --reason x --db kb.db", 1, ["kb.db", "eats(ann, oat)"]),
    ("import bad.csv --rules my.rules --db kb.db", 1, ["bad.csv:2", "Nothing was imported", "--skip-faulty"]),
    ("import empty.csv --rules my.rules --db kb.db", 1, ["empty.csv:2", "Nothing was imported", "--skip-faulty"]),
    ("import wide.csv --rules my.rules --db kb.db", 1, ["wide.csv:1", "hapax init", "--columns", "--map"]),
    ("import fruit.csv --db new.db", 1, ["fruit.csv:1", "hapax init", "--columns", "--map"]),
    ("import wide.csv --predicate eats --columns name,dish --db kb.db", 1, ["wide.csv:1", "'dish'", "name, food"]),
    ("search my.rules -m opnai:x --db kb.db", 1, ["'opnai:x'", "openai:MODEL", "`hapax model list`"]),
    ("search my.rules -m scripted:none.json --db kb.db", 1, ["none.json"]),
    ("search my.rules -m openai:gpt-4.1 --db kb.db", 1, ["OPENAI_API_KEY", "OPENAI_BASE_URL"]),
    ("data stats --db notes.db", 1, ["notes.db", "SQLite"]),
    ("kb backup copy.db --db kb.db", 1, ["copy.db"]),
    ("check my.rules --jsn", 2, ["'--jsn'", "'--json'"]),
    ("chek my.rules", 2, ["'chek'", "'check'"]),
    ("derive bad.rules --db kb.db", 4, ["bad.rules:1:20", "HPX004"]),
    ("derive my.rules --db other.db", 1, ["other.db"]),
    ("data merge none.db --db kb.db", 1, ["none.db"]),
    ("report --db kb.db -o report.html", 1, ["kb.db", "`hapax search`"]),
]
"""Commands in the folder below, their exit codes, and the place, fact and remedy that each names."""


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rules, a knowledge base and faulty files."""
    folder = tmp_path_factory.mktemp("kitchen")
    templates = '"[1] {0} [2]" / "[1] does not {0} [2]" / "does [1] {0} [2]?"'
    rules = (
        f"given eats(Person, Food): {templates.format('eat')}\noracle is_in(Food, Dish): {templates.format('go with')}\n"
        "@name may\neats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
    )
    files = {
        "my.rules": rules,
        "bad.rules": "p(T X, T Y) & q(T X)\n",
        "facts.csv": "predicate,argument1,argument2\neats,ann,rye\n",
        "bad.csv": "predicate,argument1,argument2\neats,ann\n",
        "empty.csv": "predicate,argument1,argument2\neats,ann,\n",
        "wide.csv": "name,food\nann,rye\n",
        "fruit.csv": "Fruit name,price\napple,3\npear,4\n",
        "notes.db": "a text that is no database, but is long enough to be read as one",
        "copy.db": "x",
    }
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    with chdir(folder):
        assert invoke("import", "facts.csv", "--rules", "my.rules", "--db", "kb.db").exit_code == 0
    return folder


@pytest.mark.parametrize(("command", "code", "named"), SITUATIONS, ids=[line for line, *_ in SITUATIONS])
def test_what_is_wrong_is_named_with_its_place_and_remedy(
    command: str, code: int, named: list[str], kitchen: Path
) -> None:
    """Each fault has its exit code, and names the file, the fact and what to do."""
    with chdir(kitchen):
        result = invoke(*shlex.split(command), environment={"OPENAI_API_KEY": ""})

    said = " ".join(result.output.split())
    assert [part for part in named if part not in said] == []
    assert result.exit_code == code


FLIGHTS = "Flight No.,carrier,day,air time\n" + "".join(
    f"u{number},{'UA' if number % 3 else 'AA'},2013-01-{number:02},{50 * number if number != 4 else ''}\n"
    for number in range(1, 10)
)
FAMILY = "parent(ann, bob). parent(bob, carol).\nancestor(X, Y) :- parent(X, Y).\nancestor(X, Z) :- parent(X, Y), ancestor(Y, Z).\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my flights.csv").write_text(FLIGHTS, "utf-8")
    Path("family.rules").write_text(FAMILY, "utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_table_becomes_a_folder_whose_commands_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` guesses names, types and key; the commands that it prints give answers, without a warning."""
    told = run("init", "my flights.csv").stdout
    commands = [shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  hapax")]
    monkeypatch.chdir(folder / "my_flights")
    rules = Path("my_flights.rules").read_text("utf-8")
    results = [invoke(*command) for command in commands]

    assert "given my_flights(flight_no: Text, carrier: Text, day: Date, air_time: Number)" in rules
    assert 'key: "Flight No."' in Path("map.yaml").read_text("utf-8")
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    assert not any("warning" in result.output for result in results)
    assert "u9" in results[1].stdout


@pytest.mark.usefixtures("folder")
def test_a_table_with_semicolons_and_a_column_not_is_begun_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mapping names the sign between the cells, and a word of the language is no column's name."""
    Path("odd.csv").write_text("name;not;height,m\nann;1;1,75\nbob;2;1,80\n", "utf-8")
    commands = [
        shlex.split(line)[1:] for line in run("init", "odd.csv").stdout.splitlines() if line.startswith("  hapax")
    ]
    monkeypatch.chdir(folder / "odd")
    results = [invoke(*command) for command in commands]

    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]


FAULTY = """id;day;amount;at
1;2024-01-05;12.50;08:30
2;2024-02-30;7;09:15
3;2024-03-01;n/a;10:00
3;2024-03-02;8;10:05
5;2024-03-04;9
6;2024-03-05;;11:00
7;2024-03-06;4;12:00
8;2024-03-07;5;12:10
9;2024-03-08;5;12:10
"""


@pytest.mark.usefixtures("folder")
def test_faults_of_a_table_are_told_at_the_beginning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad dates and numbers and short rows, by line; what nearly is a key is one, and commands take the rest, empty cells
    too."""
    Path("orders.csv").write_text(FAULTY, "utf-8")
    begun = invoke("init", "orders.csv")
    commands = [shlex.split(line)[1:] for line in begun.stdout.splitlines() if line.startswith("  hapax")]
    monkeypatch.chdir(folder / "orders")
    results = [invoke(*command) for command in commands]
    rules, mapping = Path("orders.rules").read_text("utf-8"), Path("map.yaml").read_text("utf-8")

    for line, word in {3: "2024-02-30", 4: "n/a", 6: "3 cells"}.items():
        assert any(text.startswith(f"orders.csv:{line}:") and word in text for text in begun.stderr.splitlines())
    assert "given orders(id: Number, day: Date, amount: Number, at: Time)" in rules
    assert 'key: "id"  # some rows repeat it' in mapping
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    assert "6 facts read" in results[0].output
    assert not any("has no value for" in result.output for result in results)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "sqlite", "tsv"])
def test_each_table_that_is_imported_can_be_begun_with(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns are guessed, whatever the file; of a SQLite file's only table nobody gives the name."""
    frame = pd.DataFrame({"id": ["a", "b", "c"], "day": ["2024-01-01", "2024-02-29", None], "n": [1.5, 2.5, 3.5]})
    path = Path(f"stock.{kind}")
    if kind == "sqlite":
        with sqlite3.connect(path) as connection:
            frame.to_sql("stock", connection, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t", index=False)
    told = run("init", path).stdout
    commands = [shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  hapax")]
    monkeypatch.chdir(folder / "stock")
    results = [invoke(*command) for command in commands]

    assert "given stock(id: Text, day: Date, n: Number)" in Path("stock.rules").read_text("utf-8")
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    assert results[1].stdout.split() == ["K", "c"]


@pytest.mark.usefixtures("folder")
def test_nothing_of_the_users_is_overwritten() -> None:
    """A folder that has one of the files is refused, and so is a table without rows."""
    run("init", "my flights.csv", "here")
    Path("here/map.yaml").write_text("mine", "utf-8")
    again = invoke("init", "my flights.csv", "here")
    Path("empty.csv").write_text("a,b\n", "utf-8")
    empty = invoke("init", "empty.csv")

    assert (again.exit_code, empty.exit_code) == (1, 1)
    assert "map.yaml" in again.output
    assert Path("here/map.yaml").read_text("utf-8") == "mine"


@pytest.mark.usefixtures("folder")
def test_goals_one_after_another() -> None:
    """The shell answers goals, `why` and `why-not`, names faults and goes on; a fault in a script is its exit code."""
    lines = "ancestor(ann, X)\nwhy ancestor(ann, carol)\nancestor(ann\nwhy-not ancestor(carol, ann)\npredicates\nquit\n"
    result = CliRunner().invoke(main, ["shell", "family.rules"], input=lines)
    good = CliRunner().invoke(main, ["shell", "family.rules"], input="ancestor(bob, carol)\n")

    assert {"bob", "carol"} <= set(result.stdout.split())
    assert "parent(bob, carol)" in result.stdout.replace('"', "")
    assert "ancestor/2" in result.stdout
    assert "HPX012" in result.output
    assert (result.exit_code, good.exit_code) == (1, 0)
    assert good.stdout.strip() == "true"


@pytest.mark.usefixtures("folder")
def test_values_complete_what_is_typed() -> None:
    """Texts of facts that begin so, capital letters apart."""
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, "is_old", [("Rome",), ("rome*",), ("Rouen",)], hapax.parse_rules("given is_old(City)\n"))

    assert kb.texts_beginning("Ro") == ["Rome", "Rouen"]
    assert kb.texts_beginning("rome*") == ["rome*"]


CITIES = ("Paris", "Lima")


@pytest.fixture
def configuration_of_strangers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with a private file, and a cloned folder with a knowledge base, which is the working folder."""
    (tmp_path / "private.txt").write_text("mine\n", "utf-8")
    clone = tmp_path / "clone"
    clone.mkdir()
    monkeypatch.chdir(clone)
    for name in ("HAPAX_DB", "HAPAX_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    Path("cities.csv").write_text("city\n" + "\n".join(CITIES) + "\n", "utf-8")
    Path("own.rules").write_text("given is_city(City)\nis_city(X) -> is_place(X).\n", "utf-8")
    run("import", "cities.csv", "--predicate", "is_city", "--columns", "city", "--rules", "own.rules")
    return clone


def configure(text: str) -> None:
    Path("hapax.toml").write_text(text, "utf-8")


@pytest.mark.usefixtures("configuration_of_strangers_folder")
def test_an_unnamed_file_directs_no_output() -> None:
    """`output` of a file that nobody named is ignored: the export goes to stdout and the user's file stays."""
    configure('[export]\noutput = "../private.txt"\nformat = "csv"\n')

    result = run("export")

    assert Path("../private.txt").read_text("utf-8") == "mine\n"
    assert "Paris" in result.stdout
    assert "hapax.toml" in result.stderr
    assert "[export] output" in result.stderr
    assert "--config hapax.toml" in result.stderr


@pytest.mark.usefixtures("configuration_of_strangers_folder")
def test_an_unnamed_file_chooses_no_knowledge_base() -> None:
    """`db` of a file that nobody named creates no knowledge base elsewhere."""
    configure('db = "../elsewhere.db"\n')

    run("import", "cities.csv", "--predicate", "is_city", "--columns", "city", "--rules", "own.rules")

    assert not Path("../elsewhere.db").exists()


@pytest.mark.usefixtures("configuration_of_strangers_folder")
def test_an_unnamed_file_chooses_no_model_budget_or_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search asks the model of the command line; beam, seed and the like are taken from the folder's file."""
    received: dict[str, Any] = {}
    monkeypatch.setattr(cli.main.commands["search"], "callback", lambda **values: received.update(values))
    configure(
        'seed = 5\n[search]\nknowledge = "openai:x@http://203.0.113.1/v1"\nmax-cost = 99\nexecutor = "ray"\nbeam = 3\n'
    )

    result = run("search")

    assert (received["knowledge"], received["max_cost"]) == ("embedded", None)
    assert (received["beam"], received["seed"]) == (3, 5)
    for name in ("knowledge", "max-cost", "executor"):
        assert f"[search] {name}" in result.stderr
    assert "[search] beam" not in result.stderr


@pytest.mark.usefixtures("configuration_of_strangers_folder")
def test_no_other_option_of_any_command_is_taken_from_an_unnamed_file() -> None:
    """Every command keeps its own defaults for options that name a file, a host, a model, a process or a budget."""
    settings = {
        *("answer-tokens", "beam", "calibrated", "calls", "certify-by", "compat", "confidence", "distribution"),
        *(
            "ends",
            "enough",
            "fact-threshold",
            "keep-share",
            "measure",
            "plan",
            "precision",
            "profile",
            "promise",
            "seed",
        ),
        *("statement-precision", "temperature", "type-threshold", "values"),
    }
    taken, tried = set(), 0
    for path, command in commands():
        options = [item for item in command.params if isinstance(item, click.Option)]
        named = {max(option.opts, key=len).removeprefix("--"): option for option in options}
        names = sorted(name for name in named if not name.startswith("no-") and name != "help")
        table = path.replace(" ", ".")
        tried += len(names)
        for some in (names[start : start + 5] for start in range(0, len(names), 5)):  # the warning names five
            lines = [f"{name} = {'true' if named[name].is_flag else repr('1')}" for name in some]
            configure("\n".join([f"[{table}]", *lines]))
            said = " ".join(run(*path.split(), "--help").stderr.split())
            taken |= {name for name in some if not re.search(rf"\[{table}\] {name}(?![\w-])", said)}

    assert taken <= settings, taken - settings
    assert tried > 500


@pytest.mark.usefixtures("configuration_of_strangers_folder")
@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, "db ="])
def test_a_file_that_cannot_be_read_is_an_error_with_a_remedy(text: str) -> None:
    """Broken and endlessly nested files end with a message and no traceback."""
    configure(text)

    result = invoke("data", "stats")

    assert result.exit_code == 1
    assert "hapax.toml" in result.stderr
    assert "--config" in result.stderr


@pytest.mark.usefixtures("configuration_of_strangers_folder")
def test_the_environment_names_a_file_by_its_whole_path() -> None:
    """A relative HAPAX_CONFIG would name the file of every folder that the user enters, so it is refused."""
    configure('[export]\nformat = "jsonl"\n')

    relative = invoke("export", environment={"HAPAX_CONFIG": "hapax.toml"})
    whole = invoke("export", environment={"HAPAX_CONFIG": str(Path("hapax.toml").resolve())})

    assert relative.exit_code == 2
    assert "HAPAX_CONFIG" in relative.stderr
    assert whole.stdout.startswith("{")
