"""The command `mcp`: a knowledge base as tools of a language model."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import hapax
from hapax.commands.console import Left, leaving
from hapax.commands.model_options import (
    load_models,
    open_journal,
    question_settings,
    with_budget,
    with_models,
    with_questions,
)
from hapax.commands.options import open_kb, read_library, with_database, with_limits, with_rules
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.options import made

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from hapax.api.agent_tools import AgentTools, AskingModels


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
    with leaving(Left.STORED):
        limits = made(hapax.QueryLimits, options)
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
    return AskingModels(models, journal.budget, made(question_settings, options), journal.used)


def mcp_server(tools: AgentTools) -> MCPServer[Any]:
    """The server that offers these tools."""
    from mcp.server.mcpserver import MCPServer

    from hapax.api.agent_tools import INSTRUCTIONS

    server: MCPServer[Any] = MCPServer(
        "hapax", instructions=INSTRUCTIONS, version=version("hapax-kb"), log_level="WARNING"
    )
    for tool in tools.tools:
        server.add_tool(_refusing(tool))
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
