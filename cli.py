"""The command line: read options, call one function, print. Data goes to stdout, progress and logs to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget reached, 4 rules rejected, 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hapax.commands.shared.console import Commands, be_quiet, be_verbose
from hapax.commands.shared.declared import CONFIGURATION, use_defaults, with_program

VERBS = {
    "init": "hapax.commands.starting_commands:init",
    "check": "hapax.commands.rule_commands:check",
    "plan": "hapax.commands.search_commands:plan",
    "search": "hapax.commands.search_commands:search",
    "derive": "hapax.commands.reasoning:derive",
    "query": "hapax.commands.reasoning:query",
    "ask": "hapax.commands.reasoning:ask",
    "why": "hapax.commands.reasoning:why",
    "why-not": "hapax.commands.reasoning:why_not",
    "shell": "hapax.commands.starting_commands:shell",
    "import": "hapax.commands.store_commands:import_",
    "export": "hapax.commands.store_commands:export",
    "serve": "hapax.commands.serve:serve",
    "report": "hapax.commands.serve:report",
    "doctor": "hapax.commands.starting_commands:doctor",
}
GROUPS = {
    "data": "hapax.commands.shared.groups:data",
    "model": "hapax.commands.shared.groups:model",
    "evaluate": "hapax.commands.papers.experiments:evaluate",
    "votes": "hapax.commands.papers.votes:votes",
    "rules": "hapax.commands.rule_expansion:rules",
    "kb": "hapax.commands.shared.groups:kb",
}
"""The commands and groups of Hapax, each with its place. All others are entry points of the group `hapax.commands`."""


# The prefix lets click read HAPAX_SEARCH_BEAM and the like from the environment.
@click.group(
    cls=Commands,
    core=VERBS | GROUPS,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "HAPAX"},
)
@click.version_option(package_name="hapax-kb", prog_name="hapax")
@click.option(
    "--config",
    "configuration",
    envvar="HAPAX_CONFIG",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"TOML file with defaults of options.  [default: {CONFIGURATION} in this folder, for search settings only]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print data and errors, without progress, notes and warnings.")
@click.option("-v", "--verbose", count=True, help="Log each round of calls to a model; given twice, their texts, too.")
@with_program
@click.pass_context
def main(context: click.Context, /, configuration: Path | None, quiet: bool, verbose: int, **_: Any) -> None:
    """Hapax searches for what a language model rarely says, checks it, stores it and reasons over it.

    Options can also be set by the environment, as HAPAX_<COMMAND>_<OPTION> and HAPAX_DB for --db, and in the file of
    --config, as `db = "my.db"` for all commands and below `[search]` for one. The command line comes before the
    environment, and that before the file. A hapax.toml in the working folder sets only the settings of searches.
    Options of models, such as --device, stand before the command.
    """
    if quiet and verbose:
        raise click.UsageError("-q and -v contradict each other.")
    from hapax.llm_oracle.egress import guard

    # Before any command runs, since every connection is checked from then on.
    guard()
    be_quiet(quiet)
    be_verbose(verbose)
    # A file that is named counts, even if the folder has another one.
    path = configuration or (CONFIGURATION if CONFIGURATION.is_file() else None)
    if path is not None:
        use_defaults(context, path, is_named=configuration is not None)


if __name__ == "__main__":
    main()
