"""A `hapax.toml` that lies in the working folder may come from a stranger: it sets the settings of searches alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from cli_fixture import invoke, run
from command_lines import commands

from hapax import cli

CITIES = ("Paris", "Lima")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_an_unnamed_file_directs_no_output() -> None:
    """`output` of a file that nobody named is ignored: the export goes to stdout and the user's file stays."""
    configure('[export]\noutput = "../private.txt"\nformat = "csv"\n')

    result = run("export")

    assert Path("../private.txt").read_text("utf-8") == "mine\n"
    assert "Paris" in result.stdout
    assert "hapax.toml" in result.stderr
    assert "[export] output" in result.stderr
    assert "--config hapax.toml" in result.stderr


def test_an_unnamed_file_chooses_no_knowledge_base() -> None:
    """`db` of a file that nobody named creates no knowledge base elsewhere."""
    configure('db = "../elsewhere.db"\n')

    run("import", "cities.csv", "--predicate", "is_city", "--columns", "city", "--rules", "own.rules")

    assert not Path("../elsewhere.db").exists()


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


def test_no_other_option_of_any_command_is_taken_from_an_unnamed_file() -> None:
    """Every command keeps its own defaults for options that name a file, a host, a model, a process or a budget."""
    settings = {
        *("answer-tokens", "beam", "calibrated", "calls", "certify-by", "compat", "confidence", "distribution"),
        *("ends", "fact-threshold", "keep-share", "measure", "plan", "precision", "profile", "promise", "seed"),
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


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, "db ="])
def test_a_file_that_cannot_be_read_is_an_error_with_a_remedy(text: str) -> None:
    """Broken and endlessly nested files end with a message and no traceback."""
    configure(text)

    result = invoke("data", "stats")

    assert result.exit_code == 1
    assert "hapax.toml" in result.stderr
    assert "--config" in result.stderr


def test_the_environment_names_a_file_by_its_whole_path() -> None:
    """A relative HAPAX_CONFIG would name the file of every folder that the user enters, so it is refused."""
    configure('[export]\nformat = "jsonl"\n')

    relative = invoke("export", environment={"HAPAX_CONFIG": "hapax.toml"})
    whole = invoke("export", environment={"HAPAX_CONFIG": str(Path("hapax.toml").resolve())})

    assert relative.exit_code == 2
    assert "HAPAX_CONFIG" in relative.stderr
    assert whole.stdout.startswith("{")
