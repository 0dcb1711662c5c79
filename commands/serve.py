"""A knowledge base in a web browser (`serve`), as one page (`report`), and as tools of a language model (`mcp`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import hapax
from hapax.commands.shared.common_options import (
    open_kb,
    opened,
    read_library,
    with_database,
    with_json,
    with_limits,
    with_rules,
)
from hapax.commands.shared.console import Left, ToolCalls, leaving, note, out, print_json, working
from hapax.commands.shared.declared import declared
from hapax.commands.shared.model_options import (
    load_models,
    open_journal,
    question_settings,
    with_budget,
    with_models,
    with_questions,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.options import from_options
from hapax.grammar.remedies import worded_for
from hapax.grammar.writing.language_page import language_page
from hapax.grammar.writing.words import counted
from hapax.kb.files.whole_files import atomic_text_file

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from hapax.api.agent_tools import AgentTools, AskingModels


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
@click.option("--ask", is_flag=True, help="Let goals ask models, after a forecast; new facts are stored.")
@with_models
@with_questions
@with_budget
def serve(paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Show the knowledge base in a web browser: entities, statements with proofs, rules, goals, running searches.

    Open the printed address: it has a token, without which nobody is answered. Nothing is written, except votes with
    --judge and facts with --ask.

    \b
    hapax serve --db hapax.db
    hapax serve --db hapax.db --port 8080 --judge
    hapax serve --db hapax.db --ask -m openai:gpt-4.1 --max-cost 1
    """
    from hapax.api.browser.app import Browser
    from hapax.api.browser.serving import browser_server

    asking = asking_models(paths, database, options) if options["ask"] else None
    with working("Opening"):
        browser = Browser(database, paths, options["judge"], asking)
        server = browser_server(browser, options["host"], options["port"])
    note(f"{database}: {server.link} (Ctrl-C ends it)")
    with leaving(Left.STORED):
        server.run()


# --- the report -------------------------------------------------------------------------------------------------------


@click.command()
@click.option("-o", "--output", required=True, help="HTML file to write; - for stdout.")
@declared(hapax.ReportOptions)
@with_rules
@with_database
@with_json
def report(output: str, paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Write the pages of a run, its rules and their typical statements with proofs as one HTML file.

    They are the pages of `hapax serve`. The file needs no network and runs no script but its own. Name rule files with
    --rules if derived predicates play a part, as for `why`.

    \b
    hapax report -o report.html
    hapax report --rule allergy --statements 50 -o allergy.html
    """
    if out.quiet and output == "-":
        raise click.UsageError("--json prints to stdout, where -o - writes the page. Name a file with -o.")
    kb, report_options = opened(read_only=True), from_options(hapax.ReportOptions, options, database=database)
    # Rendered before the file is opened, so that an error keeps an older page.
    with working("Drawing the pages"):
        page = hapax.report(kb, read_library(paths, database), report_options)
    with atomic_text_file(output) as stream:
        stream.write(page.html)
    run, rules = page.content.run, page.content.rules
    # Bytes of UTF-8, as in the file.
    size = len(page.html.encode())
    print_json({"file": output, "run": None if run is None else run.run.id, "rules": len(rules), "bytes": size})
    if run is not None and run.warning:
        note(run.warning, "note:")
    about = "derived statements" if run is None else f"run {run.run.id}"
    note(f"{about}: {counted(len(rules), 'rule')}, {counted(size // 1000, 'kB', 'kB')}")


# --- agents -----------------------------------------------------------------------------------------------------------


@click.command("mcp")
@with_rules
@with_database
@click.option("--ask", is_flag=True, help="Offer the tool `ask` as well, which asks models and stores their facts.")
@with_models
@with_questions
@with_budget
@with_limits
def serve_mcp(paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Offer the knowledge base to a language model as tools, by the Model Context Protocol over stdin and stdout.

    The tools answer goals, find and explain statements, and check rules. They write nothing; with --ask and a budget,
    which holds for all its questions together, one more asks models for missing facts.

    \b
    hapax kb mcp --db hapax.db
    hapax kb mcp --db hapax.db --ask -m openai:gpt-4.1 --max-cost 1
    """
    from hapax.api.agent_tools import AgentTools

    if missing := missing_of("agents"):
        raise HapaxError(missing)
    asking = asking_models(paths, database, options) if options["ask"] else None
    # The protocol has stdin and stdout for itself: nothing else may be printed there.
    with leaving(Left.STORED), worded_for(ToolCalls()):
        limits = from_options(hapax.QueryLimits, options)
        mcp_server(AgentTools(database, paths, limits=limits, asking=asking)).run("stdio")


def asking_models(paths: tuple[Path, ...], database: str, options: dict[str, Any]) -> AskingModels:
    """The models that a server asks by these options. Raises UsageError without a budget."""
    from hapax.api.agent_tools import AskingModels

    if all(options[name] is None for name in ("max_calls", "max_tokens", "max_cost")):
        raise click.UsageError("--ask needs a budget: --max-calls, --max-tokens or --max-cost.")
    # The rules in which a simulated model has its world.
    library = read_library(paths, database)
    with open_kb(database) as kb:
        # This journal stores the probes of servers; each call of `ask` gets one of its own.
        journal = open_journal(kb, options)
        models = load_models(library, options, journal)
    return AskingModels(models, journal.budget, from_options(question_settings, options), journal.used)


def mcp_server(tools: AgentTools) -> MCPServer[Any]:
    """The server that offers these tools."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.resources import TextResource

    from hapax.api.agent_tools import INSTRUCTIONS

    server: MCPServer[Any] = MCPServer(
        "hapax", instructions=INSTRUCTIONS, version=version("hapax-kb"), log_level="WARNING"
    )
    for tool in tools.tools:
        server.add_tool(_refusing(tool))
    page = TextResource(uri="hapax://language", name="language", mime_type="text/markdown", text=language_page())
    server.add_resource(page)
    return server


def _refusing(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The tool with Hapax's errors as the messages that the agent reads."""
    from mcp.server.mcpserver.exceptions import ToolError

    # With the name, docstring and parameters of the tool, which the model reads.
    @wraps(tool)
    def call(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)
        except HapaxError as fault:
            raise ToolError(str(fault)) from fault

    return call
