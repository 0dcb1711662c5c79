"""The command line: read options, call one function, print. Data goes to stdout, progress and logs to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget reached, 4 rules rejected, 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path

import click

from hapax.commands import (
    agents,
    baselines,
    booqa,
    calibrate,
    dataset,
    derive,
    editor,
    entailment,
    evaluate,
    leaderboard,
    machine,
    reasoning,
    report,
    retract,
    rule_expansion,
    rules,
    search,
    serve,
    soundness,
    spending,
    store,
    votes,
    winograd,
    winograd_robustness,
    winograd_rules,
)
from hapax.commands.configuration import CONFIGURATION, use_defaults
from hapax.commands.console import Commands, be_quiet, be_verbose


# The prefix lets click read HAPAX_SEARCH_BEAM and the like from the environment.
@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "HAPAX"})
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


# click lists them by name, whatever their order here.
for command in (
    rules.check,
    rules.fmt,
    rules.explain,
    rules.compile,
    rule_expansion.rules,
    search.plan,
    search.search,
    evaluate.evaluate,
    derive.derive,
    reasoning.query,
    reasoning.why,
    reasoning.why_not,
    report.report,
    serve.serve,
    serve.datasette,
    store.stats,
    spending.ledger,
    store.backup,
    store.restore,
    store.verify,
    store.import_,
    store.export,
    store.merge,
    retract.retract,
    dataset.dataset,
    leaderboard.leaderboard,
    votes.votes,
    calibrate.calibrate,
    machine.list_models,
    machine.doctor,
    agents.serve_mcp,
    editor.serve_editor,
):
    main.add_command(command)

# Here, so that the module of a group need not import those of its commands.
evaluate.evaluate.add_command(baselines.instruct)
evaluate.evaluate.add_command(baselines.grid)
evaluate.evaluate.add_command(entailment.entailment)
evaluate.evaluate.add_command(booqa.booqa)
evaluate.evaluate.add_command(winograd.winograd)
evaluate.evaluate.add_command(soundness.soundness)
winograd.winograd.add_command(winograd_rules.rules)
winograd.winograd.add_command(winograd_rules.prove)
winograd.winograd.add_command(winograd_rules.hybrid)
winograd.winograd.add_command(winograd_rules.learn)
winograd.winograd.add_command(winograd_robustness.reword)
winograd.winograd.add_command(winograd_robustness.robustness)


if __name__ == "__main__":
    main()
