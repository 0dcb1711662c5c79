"""`serve`: a knowledge base in a web browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from hapax.commands.agents import asking_models
from hapax.commands.console import Left, err, leaving
from hapax.commands.model_options import with_budget, with_models, with_questions
from hapax.commands.options import with_database, with_rules


@click.command()
@with_rules
@with_database
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at; 0.0.0.0: for all machines of the network.",
)
@click.option(
    "--port", default=8001, show_default=True, type=click.IntRange(0, 65535), help="Port to listen at; 0: a free one."
)
@click.option("--judge", is_flag=True, help="Let people judge statements in the browser; their votes are stored.")
@click.option(
    "--schemas",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of Winograd schemas that people can judge, too; with --judge.",
)
@click.option("--control", is_flag=True, help="Let people pause running searches, have them go on, and end them.")
@click.option("--ask", is_flag=True, help="Let goals ask models, after a forecast; new facts are stored.")
@with_models
@with_questions
@with_budget
def serve(paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Show the knowledge base in a web browser: entities, statements with proofs, rules, goals, running searches.

    Open the printed address: it has a token, without which nobody is answered. Nothing is written, except votes with
    --judge, facts with --ask, and requests to running searches with --control.

    \b
    hapax serve --db hapax.db
    hapax serve --db hapax.db --port 8080 --judge
    hapax serve --db hapax.db --judge --schemas examples/schemas/mine.jsonl
    hapax serve --db hapax.db --ask -m openai:gpt-4.1 --max-cost 1
    """
    from hapax.api.browser.app import Browser
    from hapax.api.browser.serving import browser_server

    if options["schemas"] and not options["judge"]:
        raise click.UsageError("--schemas names schemas to judge. Give --judge with it.")
    asking = asking_models(paths, database, options) if options["ask"] else None
    browser = Browser(database, paths, options["judge"], options["control"], asking, options["schemas"])
    server = browser_server(browser, options["host"], options["port"])
    err.print(f"{escape(str(database))}: {server.link} (Ctrl-C ends it)", soft_wrap=True)
    with leaving(Left.STORED):
        server.run()
