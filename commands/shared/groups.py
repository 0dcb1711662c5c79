"""Groups of commands, each of which is imported when it runs: `hapax query` waits for no other command.

Below, the groups that the verbs leave over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from pkgutil import get_data, resolve_name
from typing import Any

import click

from hapax.grammar.errors import HapaxError
from hapax.grammar.plug_ins import load, plug_ins

GROUP = "hapax.commands"
"""Entry-point group of commands. The name of a command in a group begins with that of the group: `evaluate.grid`."""


class CommandTable(MutableMapping[str, click.Command]):
    """The commands of a group by name, loaded when they are looked up.

    `core`: places of commands as `MODULE:NAME`. All others are entry points, whose names begin with `path`. None of
    them can take the name of a command of the core.
    """

    def __init__(self, path: str = "", core: Mapping[str, str] | None = None) -> None:
        self._path, self._core = path, core or {}
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            place = self._core.get(name)
            self._loaded[name] = resolve_name(place) if place else load(plug_ins(GROUP)[self._path + name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        below = (name.removeprefix(self._path) for name in plug_ins(GROUP) if name.startswith(self._path))
        return iter(dict.fromkeys((*self._loaded, *self._core, *(name for name in below if "." not in name))))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def help_of(self, name: str) -> str:
        """The help of a command. Those of Hapax are not loaded for it: their sources say it."""
        if name not in self._loaded:
            place = self._core.get(name) or plug_ins(GROUP)[self._path + name].value
            module, _, attribute = place.partition(":")
            if module.startswith("hapax."):
                return _docstrings(module)[attribute]
        try:
            return self[name].help or ""
        except HapaxError as fault:  # of another package
            return str(fault)


@cache
def _docstrings(module: str) -> Mapping[str, str]:
    """The docstrings of a module's functions by name, without importing it. Importing all commands takes long."""
    folder, _, name = module.rpartition(".")
    source = get_data(folder, f"{name}.py") or b""
    functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    return {function.name: ast.get_docstring(function) or "" for function in functions}


MOVED = {
    "backup": "kb backup",
    "calibrate": "model calibrate",
    "compile": "rules compile",
    "dataset": "data dataset",
    "explain": "rules explain",
    "ledger": "model ledger",
    "lsp": "rules lsp",
    "mcp": "kb mcp",
    "merge": "data merge",
    "models": "model list",
    "restore": "kb restore",
    "retract": "data retract",
    "stats": "data stats",
    "verify": "kb verify",
}
"""Commands by their earlier names, which this version still understands."""


class CommandGroup(click.Group):
    """A group whose commands are loaded when they run, to which entry points add more.

    `path`: how the names of its entry points begin, such as `evaluate.`; nothing for the program itself.
    """

    def __init__(self, *arguments: Any, path: str = "", core: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.core = core or {}
        self.commands = self._table = CommandTable(path, self.core)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the first sentence of the help of each, as click does, without importing them."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        rows = [(name, click.Command(name, help=self._table.help_of(name)).get_short_help_str(limit)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  as click calls it
        """The commands of the core in their own order, then all others by name."""
        return [*self.core, *sorted(name for name in self._table if name not in self.core)]


# --- groups that the verbs leave over ---------------------------------------------------------------------------------


@click.group(
    cls=CommandGroup,
    path="data.",
    core={
        "merge": "hapax.commands.store_commands:merge",
        "retract": "hapax.commands.store_commands:retract",
        "stats": "hapax.commands.store_commands:stats",
    },
)
def data() -> None:
    """Merge, withdraw, count and publish facts and statements.

    \b
    hapax data stats --db hapax.db
    hapax data retract "uses_currency(Norway, euro)" --reason "it is the krone"
    hapax data dataset my_lint
    """


@click.group(
    cls=CommandGroup,
    path="model.",
    core={"ledger": "hapax.commands.store_commands:ledger", "list": "hapax.commands.starting_commands:list_models"},
)
def model() -> None:
    """List model backends, calibrate critics, and list what was asked of servers.

    \b
    hapax model list
    hapax model calibrate --critic embedded --labels reference:all
    """


@click.group(
    cls=CommandGroup,
    path="kb.",
    core={
        "backup": "hapax.commands.store_commands:backup",
        "mcp": "hapax.commands.serve:serve_mcp",
        "restore": "hapax.commands.store_commands:restore",
        "verify": "hapax.commands.store_commands:verify",
    },
)
def kb() -> None:
    """Back up, restore and verify the file of a knowledge base, and offer it to agents.

    \b
    hapax kb backup copy.db --db hapax.db
    hapax kb verify --db hapax.db
    """
