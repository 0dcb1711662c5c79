"""The page `docs/commands.md`, made from the commands' own help: `python -m scripts.commands_page`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import cleandoc

import click

from hapax.cli import main

WIDTH = 100
EXAMPLES = 1
"""The most examples of a command on the page."""

_TOP = """# Commands

<!-- Made by `python -m scripts.commands_page > docs/commands.md`; change the docstrings and options in commands/. -->

`hapax search --help` prints all options of `search`, with more examples. On this page an option of many commands is
once, under [shared options](#shared-options), and a command names it below its own.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | failed; the message says what to do |
| 2 | wrong usage; a named file is missing, or of another kind |
| 3 | budget reached; answers so far are kept |
| 4 | rules rejected |
| 130 | interrupted; answers so far are kept |

Data goes to stdout, everything else to stderr. `hapax -q COMMAND` prints only data and errors. Options of models, such
such as `--device`, go before the command: `hapax --seed 2 search`.

## Defaults in a file

A TOML file, named by `--config` or by `HAPAX_CONFIG`, sets options by their long names, for all commands or for one:

```toml
db = "airports.db"
rules = ["airports.rules"]

[search]
knowledge = "smollm2"
beam = 400

[evaluate.likelihood]
evaluator = ["smollm2", "frequency"]
```

The command line overrides the environment (`HAPAX_DB` for `--db`, `HAPAX_<COMMAND>_<OPTION>` for others), which
overrides the file.

A `hapax.toml` in the working folder is read without being named. It may have come with the folder, so it sets only
settings of searches, such as `beam` or thresholds. Files, hosts, models, prices and budgets are ignored there, with a
warning. `hapax --config hapax.toml` takes everything in it.

## Commands of other packages

A package adds [click](https://click.palletsprojects.com) commands by entry points of the group `hapax.commands`. The
name of a command in a group begins with the group:

```toml
[project.entry-points."hapax.commands"]
greet = "hapax_greetings:greet"
"evaluate.greetings" = "hapax_greetings:evaluate"
```

Entry points of the group `hapax.executors` have the models of a search answer elsewhere, chosen by `search --executor`:
called with the rules and options of a search, one has `spread(models)`, a context with the models to search by.

A plug-in cannot replace a command of Hapax. It runs with your permissions: install only packages that you trust.

## Completion

Put `eval "$(_HAPAX_COMPLETE=bash_source hapax)"` into `~/.bashrc`. For zsh write `zsh_source`; for fish,
`_HAPAX_COMPLETE=fish_source hapax | source`.
"""

_NATURAL = re.compile(r"; x>=[01](?=\])|\[x>=[01]\]")

Option = tuple[str, str]
"""Names and help of an option, as `--help` prints them."""


def commands_page() -> str:
    """The whole page: shared options, then one section per command in the order of the program's own list."""
    root = click.Context(
        main, info_name="hapax", terminal_width=WIDTH, max_content_width=WIDTH, **main.context_settings
    )
    contexts = list(_contexts(root))
    users = Counter(option for context in contexts for option in _options(context))
    shared = [option for option, count in users.items() if count > 1]
    formatter = root.make_formatter()
    formatter.write_dl(shared)
    sections = [_section(context, shared) for context in contexts]
    return "\n".join([_TOP, "## Shared options\n", _fenced(formatter.getvalue()), *sections])


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """The command of a context and all commands below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None  # noqa: S101  # it was listed
            yield from _contexts(click.Context(command, parent=context, info_name=name))


def _options(context: click.Context) -> list[Option]:
    """The options of a command, without `--help` and without bounds that go without saying."""
    records = (option.get_help_record(context) for option in context.command.get_params(context))
    return [
        (names.removesuffix(" RANGE"), _NATURAL.sub("", text).rstrip())
        for names, text in filter(None, records)
        if names.startswith("-") and not names.endswith("--help")
    ]


def _section(context: click.Context, shared: Sequence[Option]) -> str:
    """Usage, description and own options of a command, then the names of its shared options."""
    command = context.command
    path = context.command_path
    formatter = context.make_formatter()
    options = _options(context)
    if isinstance(command, click.Group):
        formatter.write_text(cleandoc(command.help or "").partition("\n\n")[0])  # the rest is above
    else:
        if any(isinstance(parameter, click.Argument) for parameter in command.params):
            formatter.write(f"{path} {' '.join(command.collect_usage_pieces(context)[1:])}\n\n")
        formatter.write(_with_few_examples(_help_text(context)))
    if own := [option for option in options if option not in shared]:
        with formatter.section("Options"):
            formatter.write_dl(own)
    if isinstance(command, click.Group):
        with formatter.section("Commands"):
            formatter.write_text(", ".join(command.list_commands(context)))
    parts = [f"## {path}\n", _fenced(formatter.getvalue())]
    if names := [f"`{_long_name(option)}`" for option in options if option in shared]:
        parts.append(f"[Shared](#shared-options): {', '.join(names)}\n")
    return "\n".join(parts)


def _help_text(context: click.Context) -> str:
    formatter = context.make_formatter()
    context.command.format_help_text(context, formatter)
    return formatter.getvalue()


def _with_few_examples(text: str) -> str:
    """The help of a command up to its first example; `--help` has the others."""
    lines = text.splitlines(keepends=True)
    examples = [number for number, line in enumerate(lines) if line.startswith("  hapax ")]
    return "".join(line for number, line in enumerate(lines) if number not in examples[EXAMPLES:])


def _long_name(option: Option) -> str:
    names = option[0].replace(",", " ").split()
    return next((name for name in names if name.startswith("--")), names[0])


def _fenced(text: str) -> str:
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return f"```\n{chr(10).join(lines)}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(commands_page())
