"""`query`, `why` and `why-not`: Prolog over the knowledge base."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import BUDGET_REACHED, DONE, err, print_table
from commands.options import (
    Finite,
    load_models,
    open_journal,
    open_kb,
    query_limits,
    read_library,
    with_assume,
    with_budget,
    with_database,
    with_json,
    with_limits,
    with_models,
    with_queue,
    with_rules,
)
from grammar.words import counted

if TYPE_CHECKING:
    from engine.explain import Story
    from engine.query import QueryResult
    from grammar.rules import Library
    from kb.store import KnowledgeBase

with_entail = click.option(
    "--entail",
    type=Finite(0, 1),
    metavar="SCORE",
    help="Prove through stored entailments of this score and more, too.",
)


@click.command()
@click.argument("goal")
@with_rules
@with_database
@with_assume
@with_entail
@click.option("--ask", is_flag=True, help="Ask a model for the facts that the goal lacks.")
@with_models
@with_budget
@with_queue
@with_limits
@with_json
def query(goal: str, paths: tuple[Path, ...], database: str, assume: tuple[str, ...], **options: Any) -> None:
    """Answer a Prolog goal over the knowledge base.

    \b
    hapax query 'is_ingredient_in(butter, Dish)'
    hapax query 'is_not_able_to_eat(tom, Dish)' --assume 'is_allergic_to(tom, shellfish)'
    hapax query 'aggregate_all(count, is_a_cheese_from(_, "Italy"), N)' --json
    hapax query 'is_made_from_milk_of(feta, Animal)' --ask
    hapax query 'went_to(john, Place)' --entail 0.8
    """
    from engine.query import Theory, run_query

    library = read_library(paths)
    limits = query_limits(options)
    if options["queue"] is not None and not options["ask"]:
        raise click.UsageError("--queue goes with --ask: without it nothing is asked.")
    if not options["ask"]:
        with open_kb(database, read_only=True) as kb:
            theory = Theory(_entailing(library, kb, options["entail"]), kb, assume)
            _print_answers(run_query(theory, goal, limits), options["as_json"])
        return
    begins = not Path(database).exists()
    from engine.demand import DemandBudget, run_demand
    from engine.oracle import Oracle

    with open_kb(database) as kb:
        if begins:
            err.print(f"{database} is new: what is answered is kept there.", markup=False, soft_wrap=True)
        library = _entailing(library, kb, options["entail"])
        journal = open_journal(kb, options)
        models = load_models(library, options, journal=journal)
        oracle = Oracle(kb, library, models, run_id="query", journal=journal)
        result = run_demand(Theory(library, kb, assume), goal, oracle, DemandBudget(limits=limits))
    _print_answers(result.result, options["as_json"])
    if result.stopped:
        err.print(escape(str(oracle.budget_reached or result.stopped)), soft_wrap=True)
    sys.exit(DONE if result.complete else BUDGET_REACHED)


@click.command()
@click.argument("text")
@with_rules
@with_database
@with_assume
@with_entail
@with_json
def why(text: str, paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Tell the whole story of a statement (its text or id) or of a fact, down to call, prompt, scores and thresholds.

    It is told in the words that the knowledge base stores; --rules is for what rules derive.

    \b
    hapax why 'is_ingredient_in(butter, "chicken Kiev")'
    hapax why 'If PersonX is allergic to milk, then PersonX is not able to eat chicken Kiev.'
    """
    from engine.explain import why as explain
    from engine.query import Theory

    with open_kb(database, read_only=True) as kb:
        library = _entailing(read_library(paths), kb, options["entail"])
        _print_story(explain(Theory(library, kb, options["assume"]), text), options["as_json"])


@click.command("why-not")
@click.argument("atom")
@with_rules
@with_database
@with_assume
@with_entail
@with_json
def why_not(atom: str, paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Say which gate stopped a value, or which premise of which rule failed.

    \b
    hapax why-not 'is_ingredient_in(butter, hummus)'
    """
    from engine.explain import why_not as explain
    from engine.query import Theory

    with open_kb(database, read_only=True) as kb:
        library = _entailing(read_library(paths), kb, options["entail"])
        _print_story(explain(Theory(library, kb, options["assume"]), atom), options["as_json"])


def _entailing(library: Library, kb: KnowledgeBase, at_least: float | None) -> Library:
    """The library with the stored entailments of this score and more as rules; without a score as it is."""
    if at_least is None:
        return library
    from engine.entailment import edges, with_entailments

    return with_entailments(library, edges(kb, at_least))


def _print_story(story: Story, as_json: bool) -> None:
    from engine.explain import story_text

    click.echo(json.dumps(story.to_json(), ensure_ascii=False, indent=2) if as_json else story_text(story))


def _print_answers(result: QueryResult, as_json: bool) -> None:
    if as_json:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        click.echo(json.dumps({"answers": rows, "truncated": result.truncated}, ensure_ascii=False, default=_plain))
    elif not result.columns:
        click.echo("true" if result.holds else "false")
    elif result.rows:
        print_table(result.columns, (tuple(map(str, row)) for row in result.rows))
    if not result.rows and result.columns and not as_json:
        err.print("No answer.")
    if result.truncated:
        first = counted(len(result.rows), "answer is", "answers are")
        err.print(f"Only the first {first} shown; --answers raises the limit.")


def _plain(value: object) -> object:
    """A Prolog term or an exact number as JSON; a list as a list, any other term as its text."""
    if type(value).__name__ == "PrologTerm" and value.name == "[]":  # type: ignore[attr-defined]
        return list(value.arguments)  # type: ignore[attr-defined]
    return float(value) if type(value).__name__ == "Decimal" else str(value)  # type: ignore[arg-type]  # it is a Decimal
