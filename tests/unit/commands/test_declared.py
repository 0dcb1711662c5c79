"""Options of the command line, made from what a class or a function declares."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner

import hapax
from hapax.cli import main
from hapax.commands.shared.console import CommandLine
from hapax.commands.shared.declared import SearchSetting, declared
from hapax.engine.prolog.session import LimitExceeded
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, check_ranges, from_options
from hapax.grammar.remedies import Operation, Remedy, Setting, worded_for


class Colour(StrEnum):
    """Choices."""

    RED = "red"
    BLUE = "blue"


def doubled(text: str) -> int:
    if not text.isdigit():
        raise HapaxError(f"{text} is no number. Write one.")
    return 2 * int(text)


@dataclass(frozen=True)
class Settings:
    """A field of each kind."""

    wanted: Annotated[str, Option("A text that must be given.")]
    count: Annotated[int, Option("A number.", name="number-of", least=1, most=9)] = 3
    share: Annotated[float, Option("A share.", above=0, below=1)] = 0.5
    limit: Annotated[int | None, Option("A limit.", least=1, none="all")] = 7
    colours: Annotated[tuple[Colour, ...], Option("Colours.", name="colour", short="-c")] = (Colour.RED,)
    way: Annotated[Literal["left", "right"] | None, Option("A way.")] = None
    twice: Annotated[int | None, Option("A number to double.", default="4", read=doubled)] = None
    told: Annotated[int, Option("A number.  [default: it depends]")] = 5
    loud: Annotated[bool, Option("A switch.", switch=True)] = True
    file: Annotated[Path | None, Option("A file.", path="file", in_any_folder=True)] = None
    inner: int = 0


@click.command()
@declared(Settings)
def command(**options: Any) -> None:
    click.echo(from_options(Settings, options, inner=8))


def said(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_fields_keep_their_defaults() -> None:
    """An option that is not given keeps the default of the class; one that is written as text is read."""
    assert said("--wanted", "a") == str(Settings("a", twice=8, inner=8))


def test_options_set_the_fields() -> None:
    """Choices become members, repeated options tuples, and the word for no limit None."""
    given: tuple[str, ...] = (
        "--number-of",
        "9",
        "--share",
        ".1",
        "--limit",
        "all",
        "-c",
        "blue",
        "--colour",
        "red",
        "--way",
        "left",
    )
    given += ("--twice", "10", "--told", "6", "--no-loud", "--file", "x")

    expected = Settings("a", 9, 0.1, None, (Colour.BLUE, Colour.RED), "left", 20, 6, False, Path("x"), 8)
    assert said("--wanted", "a", *given) == str(expected)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ((), "Missing option '--wanted'"),
        (("--number-of", "10"), "1<=x<=9"),
        (("--share", "1"), "0<x<1"),
        (("--share", "nan"), "not a finite number"),
        (("--limit", "none"), "not a valid number or all"),
        (("--colour", "green"), "'red', 'blue'"),
        (("--twice", "x"), "x is no number. Write one."),
    ],
)
def test_faulty_values_are_usage_errors(arguments: tuple[str, ...], fault: str) -> None:
    """Each names the option and the range or the choices."""
    result = CliRunner().invoke(command, ("--wanted", "a", *arguments) if arguments else ())

    assert result.exit_code == 2
    assert fault in result.output


def test_the_help_shows_defaults_once() -> None:
    """A default that the help tells in words is not shown again; an empty one not at all."""
    text = CliRunner().invoke(command, ["--help"], terminal_width=200).output

    for shown in ("[default: 3; 1<=x<=9]", "[default: 7; x>=1]", "[default: red]", "[default: loud]", "[default: 4]"):
        assert shown in text
    assert text.count("[default: it depends]") == 1
    assert [option.name for option in command.params if isinstance(option, SearchSetting)] == ["file"]


def test_the_range_of_an_option_holds_in_python() -> None:
    """`check_ranges` refuses what the command line refuses, and nan."""
    faulty = {
        "count": (0, "at least 1 and at most 9"),
        "share": (1.0, "above 0 and below 1"),
        "limit": (0, "at least 1"),
    }
    for name, (value, words) in faulty.items():
        with pytest.raises(HapaxError, match=f"^{name} is {value}. Set it to a number {words}.$"):
            check_ranges(Settings("a", **{name: value}))
    with pytest.raises(HapaxError, match="share is nan"):
        check_ranges(Settings("a", share=float("nan")))
    check_ranges(Settings("a", limit=None))


ROOT = Path(__file__).parents[3]
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api")


def named(kind: str) -> set[str]:
    """The names in the sources' `Setting("...")` or `Operation("...")`."""
    names = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == kind:
                    names |= {first.value for first in node.args[:1] if isinstance(first, ast.Constant)}
    return names


def commands(group: click.Group, before: str = "hapax") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{before} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before} {name}")


def test_every_setting_has_an_option() -> None:
    """An option that a remedy names can be typed: the first word of its wording is an option of some command."""
    options = {
        option
        for _, command in commands(main)
        for parameter in command.get_params(click.Context(command))
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    worded = {name: CommandLine().setting(Setting(name)).strip("`").split()[0] for name in named("Setting")}

    assert len(worded) > 50
    assert {name: option for name, option in worded.items() if option not in options} == {}


def test_every_operation_is_a_command_and_a_function() -> None:
    """An operation is called by its name in Python, and typed by that of a command."""
    typed = {name for name, _ in commands(main)}
    worded = {name: CommandLine().operation(Operation(name)).strip("`") for name in named("Operation")}

    assert len(worded) > 20
    assert {name for name in worded if name not in hapax.__all__} == set()
    assert {name for name, words in worded.items() if words.partition(" --")[0] not in typed} == set()


def test_an_error_is_worded_where_it_is_shown() -> None:
    """The same error names an argument in Python and an option on the command line; its remedy stays data."""
    error = HapaxError("It took too long.", Remedy("Raise {}.", Setting("limits.seconds")))

    assert str(error) == "It took too long. Raise `limits.seconds`."
    with worded_for(CommandLine()):
        assert str(error) == "It took too long. Raise --seconds."
    assert str(error).endswith("`limits.seconds`.")


def test_an_error_of_another_process_arrives_whole() -> None:
    """An error is pickled with its remedy and its fields, whatever the arguments of its class."""
    error = LimitExceeded("The goal needs more time.", "seconds")

    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own

    assert (type(arrived), str(arrived), arrived.limit) == (LimitExceeded, str(error), "seconds")
