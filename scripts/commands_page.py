"""The page `docs/commands.md`, made from the commands' own help: `python -m scripts.commands_page`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hapax.cli import main

WIDTH = 100

_TOP = """# Commands

<!-- Made by `python -m scripts.commands_page > docs/commands.md`; change the docstrings and options in commands/. -->

After `make search` or `make test` the program is `.venv/bin/hapax`; `.venv/bin/python cli.py` is the same.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | failed; one line says what and what to do |
| 2 | wrong usage |
| 3 | budget reached; what was answered is kept |
| 4 | rules rejected; a goal that cannot be asked of sound rules is 1 |
| 130 | interrupted; what was answered is kept |

Data goes to stdout, everything else to stderr; `hapax -q COMMAND` leaves out all of the latter but errors,
`hapax -v COMMAND` adds a line for each round of calls to a model, and `-vv` their texts.

Options of models, such as `--device`, stand before the command: `hapax --seed 2 search`. Behind it they work in this
version, too, as do commands by their earlier names, such as `verify` for `kb verify`; a line says how to write them.

## Defaults in a file

The file that `--config` or `HAPAX_CONFIG` names sets options by their long names, for every command that has them or
for one:

```toml
db = "airports.db"
rules = ["airports.rules"]

[search]
knowledge = "smollm2"
beam = 400
max-calls = 2000

[evaluate.likelihood]
evaluator = ["smollm2", "frequency"]
```

The command line comes first, then the environment, then the file; its paths start at the working folder. A name that
no command has is an error. `HAPAX_CONFIG` takes a whole path.

Without either, `hapax.toml` of the working folder is read. It may have come with the folder, so it sets only the
settings of searches: `beam`, `temperature`, `seed`, thresholds, promises and the like, but no file, host, model, price
or budget. A warning names what it tried beyond that; `hapax --config hapax.toml` takes all of it.

## Commands of other packages

A package adds commands by entry points of the group `hapax.commands`. Each is a command of
[click](https://click.palletsprojects.com); before the name of one in a group stands the group's:

```toml
[project.entry-points."hapax.commands"]
greet = "hapax_greetings:greet"
"evaluate.greetings" = "hapax_greetings:evaluate"
```

Entry points of the group `hapax.executors` search in place of this process, by the names of `search --executor`. Each
is called with the rules and the options of a search; `search(job)` gives the report, and `print_report()` says what
else was done. Its attribute `options` is a decorator that adds options to the command.

Hapax keeps its own commands: none can be replaced. A command that cannot be loaded names its package and the remedy
when it is called. A plug-in is code that runs with your permissions: install only packages that you trust.

## Completion

`eval "$(_HAPAX_COMPLETE=bash_source hapax)"` in `~/.bashrc` completes commands and options (`zsh_source` in `~/.zshrc`,
`_HAPAX_COMPLETE=fish_source hapax | source` in fish).
"""


def commands_page() -> str:
    """The whole page: one section per command, in the order of the program's own list."""
    root = click.Context(
        main, info_name="hapax", terminal_width=WIDTH, max_content_width=WIDTH, **main.context_settings
    )
    return "\n".join([_TOP, *(_section(context) for context in _contexts(root))])


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """The command of a context and all commands below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None  # noqa: S101  # it was listed
            yield from _contexts(click.Context(command, parent=context, info_name=name))


def _section(context: click.Context) -> str:
    lines = (line.rstrip() for line in context.command.get_help(context).splitlines())
    return f"## {context.command_path}\n\n```\n{chr(10).join(lines)}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(commands_page())
