"""The command line: read options, call one function, print. Data goes to stdout, progress and logs to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget reached, 4 rules rejected, 130 interrupted.
"""

from __future__ import annotations

import click

from hapax.commands import (
    agents,
    baselines,
    booqa,
    calibrate,
    dataset,
    derive,
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
    soundness,
    store,
    votes,
    winograd,
    winograd_rules,
)
from hapax.commands.console import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "HAPAX"})
@click.version_option(package_name="hapax-kb", prog_name="hapax")
def main() -> None:
    """Hapax searches for what a language model rarely says, checks it, stores it and reasons over it.

    Every option can also be set by the environment: HAPAX_<COMMAND>_<OPTION>, and HAPAX_DB for --db.
    """


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
    store.stats,
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
):
    main.add_command(command)

evaluate.evaluate.add_command(baselines.instruct)
evaluate.evaluate.add_command(baselines.grid)
evaluate.evaluate.add_command(entailment.entailment)
evaluate.evaluate.add_command(booqa.booqa)
evaluate.evaluate.add_command(winograd.winograd)
evaluate.evaluate.add_command(soundness.soundness)
winograd.winograd.add_command(winograd_rules.rules)
winograd.winograd.add_command(winograd_rules.prove)


if __name__ == "__main__":
    main()
