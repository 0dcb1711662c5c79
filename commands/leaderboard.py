"""`leaderboard`: many models on one frozen dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.console import BUDGET_REACHED, DONE, err
from hapax.commands.declared import declared
from hapax.commands.experiments import print_result
from hapax.commands.model_options import open_journal, opening_options, with_budget, with_opening, with_queue
from hapax.commands.options import open_kb, with_database, with_json
from hapax.grammar.options import made
from hapax.grammar.words import counted
from hapax.kb.whole_files import atomic_text_file


@click.command()
@click.argument("folder", metavar="DATASET", type=click.Path(path_type=Path))
@with_database
@declared(hapax.LeaderboardOptions, "models", "way", "sample", "temperature")
@click.option("--html", help="HTML file to write; - for stdout.")
@with_opening
@with_budget
@with_queue
@with_json
def leaderboard(folder: Path, database: str, html: str | None, **options: Any) -> None:
    """Ask models LINK's 13 questions about each statement of a frozen dataset, and compare head with long tail.

    DATASET is a folder that `hapax dataset` wrote; its checksum is verified. Answers are kept in the knowledge base, so
    that no question is asked twice and an interrupted command continues. docs/leaderboard.md explains the figures.

    \b
    hapax leaderboard lint-of-mine -m embedded -m smollm2
    hapax leaderboard lint-of-mine -m openai:gpt-4.1 --ask text --max-cost 5 --html board.html
    """
    dataset = hapax.load_dataset(folder)
    wish = made(hapax.LeaderboardOptions, options)
    with open_kb(database) as kb:
        journal = open_journal(kb, options)
        with err.status("Loading models") as status:
            board = hapax.leaderboard(
                dataset,
                wish,
                opening_options(None, options, journal),
                kb=kb,
                progress=lambda name, done, total: status.update(
                    f"Asking {name}: {done} of {counted(total, 'statement')}"
                ),
            )
    if html is not None:
        with atomic_text_file(html) as stream:
            stream.write(board.value.html)
    # With `-` the page is on stdout.
    if html != "-":
        print_result(board, options["as_json"])
    sys.exit(BUDGET_REACHED if board.value.stopped else DONE)
