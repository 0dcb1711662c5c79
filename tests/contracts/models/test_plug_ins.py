"""Additions of other packages: models by the entry points `hapax.models`, commands by `hapax.commands`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plug_in_fixture import EXAMPLE, install, provide
from served import evaluator

import hapax

ROOT = Path(__file__).parents[3]


def run(target: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(target)}
    command = [sys.executable, ROOT / "cli.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_example_package_installs_and_searches(tmp_path: Path) -> None:
    """The package of docs/reference/backends.md, installed, is listed by `hapax model list` and answers a search in all roles."""
    target = tmp_path / "site"
    install(EXAMPLE, target, tmp_path)
    rules = tmp_path / "currency.rules"
    rules.write_text(
        'oracle uses_currency(Country, Currency): "[1] uses [2]" / "[1] does not use [2]" / "does [1] use [2]?"\n'
        'given lives_in(Person, Country): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"\n'
        'given can_pay_with(Person, Currency): "[1] can pay with [2]" / "[1] cannot pay with [2]" / "can [1]?"\n'
        "@name currency\n"
        "lives_in(Person X, Country A) & uses_currency(Country A, Currency B) -> can_pay_with(Person X, Currency B)\n"
    )

    listed = run(target, "model", "list", "--json")
    searched = run(target, "search", rules, "-m", "echo:krone,franc", "--db", tmp_path / "kb.db", "--beam", "2")

    assert listed.returncode == 0, listed.stderr
    (echo,) = [listing for listing in json.loads(listed.stdout) if listing["name"].startswith("echo")]
    assert echo["name"] == "echo:VALUE,..."
    assert echo["available"]
    assert "hapax-echo" in echo["abilities"]
    assert searched.returncode == 0, searched.stderr
    assert "krone" in searched.stdout


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of this process, for packages."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("BACKEND = 7", "is of type int, not a hapax.llm_oracle.backend.Backend"),
        ("from hapax.llm_oracle.backend import Backend\nBACKEND = Backend(open=id, roles=('judge',), abilities='')", "roles"),
        ("", "AttributeError"),
    ],
)  # fmt: skip
def test_a_faulty_plug_in_is_named(site: Path, module: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package and the remedy; `hapax model list` shows it and goes on; other models are not affected."""
    monkeypatch.delitem(sys.modules, "faulty_models", raising=False)
    (site / "faulty_models.py").write_text(module)
    provide(site, "broken-package", {"faulty": "faulty_models:BACKEND"})

    with pytest.raises(hapax.HapaxError, match=r"^broken-package: .*pip uninstall broken-package") as error:
        hapax.open_models("faulty:x")
    listing = hapax.list_models().listings[-1]

    assert fault in str(error.value)
    assert (listing.name, listing.available, listing.remedy) == ("faulty", False, str(error.value))
    assert evaluator("frequency").identity.name == "frequency"
    monkeypatch.delitem(sys.modules, "faulty_models", raising=False)


def test_a_plug_in_cannot_take_a_name(site: Path) -> None:
    """A built-in backend keeps its name, and of two plug-ins with one name neither is chosen; both are told."""
    provide(site, "first", {"frequency": "nowhere:BACKEND", "twice": "nowhere:BACKEND"})
    provide(site, "second", {"twice": "elsewhere:BACKEND"})

    remedies = {listing.name: listing.remedy for listing in hapax.list_models().listings if not listing.available}

    assert evaluator("frequency").identity.name == "frequency"
    assert remedies["frequency"].startswith("first: the model backend `frequency` has the name of one that is built in")
    with pytest.raises(
        hapax.HapaxError, match=r"first and second: these packages each provide a model backend `twice`"
    ):
        hapax.open_models("twice:x")


COMMANDS = """
import click

@click.command()
@click.argument("name")
def greet(name):
    \"\"\"Greet somebody.\"\"\"
    click.echo(f"Good day, {name}")
"""


def test_a_package_adds_commands(tmp_path: Path) -> None:
    """A command of another package runs, and is listed with its help, in the program and in a group; none is replaced."""
    (tmp_path / "greetings.py").write_text(COMMANDS)
    places = dict.fromkeys(("greet", "evaluate.greet", "check"), "greetings:greet")
    provide(tmp_path, "greetings", {**places, "broken": "no_such_module:run"}, "hapax.commands")

    listed, below = run(tmp_path, "--help").stdout, run(tmp_path, "evaluate", "--help").stdout
    broken = run(tmp_path, "broken")

    assert re.search(r"greet +Greet somebody\.", listed)
    assert re.search(r"greet +Greet somebody\.", below)
    assert re.search(r"check +Check rules", listed)
    assert run(tmp_path, "greet", "Ann").stdout == run(tmp_path, "evaluate", "greet", "Ann").stdout == "Good day, Ann\n"
    assert broken.returncode == 1
    assert re.search(r"error: greetings: .*no_such_module.*pip uninstall greetings", broken.stderr)


EXECUTOR = """
from contextlib import contextmanager

import click

class Loud:
    options = staticmethod(click.option("--loudness", default=1))

    def __init__(self, library, options):
        self.loudness = options["loudness"]

    @contextmanager
    def spread(self, models):
        click.echo("!" * self.loudness)
        yield models
"""


def test_a_package_adds_an_executor(tmp_path: Path) -> None:
    """A search runs with the models of another package's executor, whose option it takes."""
    (tmp_path / "loud_searches.py").write_text(EXECUTOR)
    provide(tmp_path, "loud-searches", {"loud": "loud_searches:Loud"}, "hapax.executors")
    small = ("--rule", "currency", "-m", "simulated", "--beam", "2", "--values", "2", "--calls", "1", "--no-progress")

    searched = run(tmp_path, "search", *small, "--db", tmp_path / "kb.db", "--executor", "loud", "--loudness", "3")

    assert searched.returncode == 0, searched.stderr
    assert searched.stdout.startswith("!!!\n")
