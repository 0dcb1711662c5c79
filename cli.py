"""The command line: read options, call one function, print. Data goes to stdout, progress and logs to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget reached, 4 rules rejected, 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path

import click

from hapax.commands.configuration import CONFIGURATION, use_defaults
from hapax.commands.console import Commands, be_quiet, be_verbose

COMMANDS = {
    "backup": "hapax.commands.store:backup",
    "check": "hapax.commands.rules:check",
    "compile": "hapax.commands.rules:compile",
    "derive": "hapax.commands.derive:derive",
    "doctor": "hapax.commands.machine:doctor",
    "explain": "hapax.commands.rules:explain",
    "export": "hapax.commands.store:export",
    "fmt": "hapax.commands.rules:fmt",
    "import": "hapax.commands.store:import_",
    "ledger": "hapax.commands.spending:ledger",
    "lsp": "hapax.commands.editor:serve_editor",
    "mcp": "hapax.commands.agents:serve_mcp",
    "merge": "hapax.commands.store:merge",
    "models": "hapax.commands.machine:list_models",
    "plan": "hapax.commands.search:plan",
    "query": "hapax.commands.reasoning:query",
    "restore": "hapax.commands.store:restore",
    "retract": "hapax.commands.retract:retract",
    "search": "hapax.commands.search:search",
    "stats": "hapax.commands.store:stats",
    "verify": "hapax.commands.store:verify",
    "why": "hapax.commands.reasoning:why",
    "why-not": "hapax.commands.reasoning:why_not",
}
"""The commands of the core, each with its place. All others are entry points of the group `hapax.commands`."""


# The prefix lets click read HAPAX_SEARCH_BEAM and the like from the environment.
@click.group(
    cls=Commands,
    core=COMMANDS,
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
@click.pass_context
def main(context: click.Context, configuration: Path | None, quiet: bool, verbose: int) -> None:
    """Hapax searches for what a language model rarely says, checks it, stores it and reasons over it.

    Every option can also be set by the environment, as HAPAX_<COMMAND>_<OPTION> and HAPAX_DB for --db, and in the file
    of --config, as `db = "my.db"` for all commands and below `[search]` for one. The command line comes first, then the
    environment, then the file. A hapax.toml in the working folder is read without --config, but sets only the settings
    of searches.
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
