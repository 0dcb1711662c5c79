"""`plan` and `search`: what a run would cost, the run, and its report on the screen."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import BUDGET_REACHED, DONE, err, number_text, out, print_table, progress_display
from commands.executor import Executor, with_executor
from commands.options import (
    chosen_rules,
    load_models,
    open_journal,
    open_kb,
    read_library,
    refuse_faulty,
    search_settings,
    with_budget,
    with_chosen,
    with_database,
    with_gate_switches,
    with_json,
    with_models,
    with_paths,
    with_queue,
    with_search_settings,
)
from commands.rules import _print_plans
from grammar.words import counted

if TYPE_CHECKING:
    from engine.plan import Range, RunEstimate
    from engine.report import RuleReport, SearchReport, Unanswerable
    from grammar.rules import Library, Rule
    from llm_oracle.protocols import Models


@click.command()
@with_paths
@with_chosen
@click.option("--graph", type=click.Choice(["text", "mermaid", "dot"]), help="Print the dependency graph in this form.")
@with_search_settings
@with_gate_switches
@with_models
@with_database
@with_json
def plan(paths: tuple[Path, ...], chosen: tuple[str, ...], graph: str | None, **options: Any) -> None:
    """Show in which order variables would be searched and what a run would cost, before anything is asked.

    What is expected follows from the answers in the knowledge base, or, without any, from what was measured. What is
    said at most holds for models that give no more values than they are asked for; it is far off where a premise is
    derived by rules.

    \b
    hapax plan --rule allergy
    hapax plan --rule allergy --graph mermaid
    hapax plan --db hapax.db --beam 50
    """
    from grammar.dependencies import graph_text, search_plans

    library = read_library(paths)
    rules = chosen_rules(library, chosen)
    if graph:
        click.echo("\n".join(graph_text(rule, library, graph) for rule in rules))  # type: ignore[arg-type]  # click checked it
        return
    if chosen:
        for rule in rules:
            _print_plans(rule, search_plans(rule, library), options["as_json"])
    print_estimate(estimate_run(library, rules, options), options["as_json"])


@click.command()
@with_paths
@with_chosen
@with_search_settings
@with_gate_switches
@with_models
@with_budget
@with_queue
@with_database
@with_json
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Example statements per rule and distribution.",
)
@click.option("--no-progress", is_flag=True, help="No progress bar, nor lines of progress where it cannot be drawn.")
@click.option("--dry-run", is_flag=True, help="Only say what the run would cost.")
@with_executor
def search(paths: tuple[Path, ...], chosen: tuple[str, ...], **options: Any) -> None:
    """Search head and long-tail knowledge for rules, store it, and derive statements from it.

    The same command goes on where it was interrupted and asks nothing twice.

    \b
    hapax search
    hapax search --rule allergy --distribution long_tail --beam 50
    hapax search my.rules -m hf:meta-llama/Llama-3.1-8B --critic hf:google/flan-t5-xxl --max-calls 5000
    hapax search -m openai:gpt-4.1 --likelihood frequency --queue next.jsonl --results answered.jsonl
    hapax search rules/library -m openai:my-model --executor ray --ray-address auto
    """
    library = read_library(paths)
    refuse_faulty(library)
    rules = chosen_rules(library, chosen)
    if options["dry_run"]:
        print_estimate(estimate_run(library, rules, options), options["as_json"])
        return
    settings = search_settings(options)
    executor = Executor(library, options)
    with open_kb(options["database"]) as kb:
        journal = open_journal(kb, options)
        models = load_models(library, options, journal)
        _warn_of_loose_facts(models, options)
        with progress_display(not options["no_progress"]) as progress:
            report = executor.search(library, rules, kb, models, settings, progress=progress, journal=journal)
    _print_search(report, library, options)
    executor.told()
    sys.exit(BUDGET_REACHED if report.status == "budget" else DONE)


def estimate_run(library: Library, rules: Sequence[Rule], options: dict[str, Any]) -> RunEstimate:
    """What a search of these rules would ask, with what is stored taken off."""
    from engine.plan import plan_run
    from llm_oracle.calls import Journal, Unwritten
    from llm_oracle.registry import price_table

    known = Path(options["database"]).exists()
    with open_kb(options["database"] if known else None, read_only=known) as kb:
        models = load_models(library, options, journal=Journal(Unwritten(kb)))
        return plan_run(library, rules, kb, models, search_settings(options), prices=price_table(models))


def print_estimate(estimate: RunEstimate, as_json: bool) -> None:
    """The estimate rule by rule, and by role with its price."""
    if as_json:
        click.echo(json.dumps(asdict(estimate), ensure_ascii=False))
        return
    rules = [one for one in estimate.rules if one.skipped is None]
    rows = (
        (
            one.rule,
            one.generic,
            " ".join(one.order),
            *(_total(getattr(step, what) for step in one.steps) for what in ("questions", "calls", "claims")),
        )
        for one in rules
    )
    print_table(("rule", "generic", "order", "questions", "calls", "claims judged"), rows)
    print_skipped({one.rule: one.skipped for one in estimate.rules if one.skipped is not None})
    out.print()
    costs = (
        (
            role,
            one.model,
            _range(one.calls),
            _range(one.tokens),
            "price unknown" if one.cost is None else f"{one.cost[0]:.2f} to {one.cost[1]:.2f}",
        )
        for role, one in estimate.roles.items()
    )
    print_table(("role", "model", "calls", "tokens", "money"), costs, title="The whole run, as expected and at most")


def _range(several: Range) -> str:
    return f"{several.expected}, at most {several.most}"


def _total(ranges: Iterable[Range]) -> str:
    listed = list(ranges)
    return f"{sum(one.expected for one in listed)}, at most {sum(one.most for one in listed)}"


def _print_search(report: SearchReport, library: Library, options: dict[str, Any]) -> None:
    if options["as_json"]:
        click.echo(json.dumps({"run": report.run_id, "status": report.status, **report.summary()}, ensure_ascii=False))
        return
    domains = list(dict.fromkeys(rule.domain for rule in report.searched))
    for domain in domains:
        rules = [rule for rule in report.searched if rule.domain == domain]
        if domains != [None]:
            out.print(f"\n[bold]{escape(domain or 'rules without a domain')}[/]")
        for rule in rules:
            _print_examples(rule, options["examples"])
        out.print()
        columns = ("rule", "head", "long tail", "in both", "critic", "likelihood", "delta", "calls", "hits")
        print_table(columns, map(_line, rules))
    print_skipped({one.rule: one.skipped for one in report.rules if one.skipped is not None})
    _print_empty(report, library)
    _print_totals(report, options)
    if report.budget:
        err.print(escape(report.budget))


def _warn_of_loose_facts(models: Models, options: dict[str, Any]) -> None:
    """Settings under which much that is false becomes a fact, and stays one for every later query."""
    reasons = []
    if options["no_critic"]:
        reasons.append("--no-critic takes every value for true.")
    if options["compat"] == "released":
        reasons.append("LINK's released threshold starts at the best of the first values, however low that is.")
    if options["compat"] and models.knowledge.identity.knows is not None:
        reasons.append(
            f"{models.knowledge.identity.name} was never taught LINK's prompts and answers many of them wrongly."
        )
    if reasons:
        told = f"{' '.join(reasons)} It all stays in {options['database']}; --db keeps such a run apart."
        err.print(f"[yellow]warning[/] {escape(told)}", soft_wrap=True)


def print_skipped(skipped: Mapping[str, Unanswerable]) -> None:
    """What the models do not know, rule by rule, and once what helps."""
    alike: dict[tuple[str, str], list[str]] = {}
    for rule, one in skipped.items():
        alike.setdefault((one.model, one.remedy), []).append(f"  {rule}: {', '.join(one.unknown)}")
    for (model, remedy), lines in alike.items():
        rules = counted(len(lines), "rule that asks", "rules that ask")
        told = escape(f"{rules} for what {model} does not know. {remedy}")
        err.print(f"[yellow]skipped[/] {told}", soft_wrap=True)
        err.print(escape("\n".join(lines)), soft_wrap=True)


def _print_empty(report: SearchReport, library: Library) -> None:
    """Rules that found nothing, and what may have kept them from it: a model is asked in the templates' words."""
    for one in report.searched:
        if any(one.statements.values()) or one.cut:
            continue
        signatures = {literal.atom.indicator for literal in library.rule(one.rule).literals}
        wordless = sorted(name for name in signatures if library.signature(name).templates is None)
        told = f"{one.rule} has no statement: no values for all its variables passed the gates."
        if wordless:
            told += (
                f" {', '.join(wordless)} {'has' if len(wordless) == 1 else 'have'} no template, so that the model was "
                "asked in words made of the names: declare them, or name the files that do beside yours."
            )
        err.print(f"[yellow]empty[/] {escape(told)}", soft_wrap=True)


def _print_totals(report: SearchReport, options: dict[str, Any]) -> None:
    counts = report.summary()["statements"]
    both = f", {counts['in_both']} of them in both" if options["distribution"] == "both" else ""
    out.print(
        f"\n{counts['head']} head and {counted(counts['long_tail'], 'long-tail statement')} "
        f"in {escape(options['database'])}{both}; mean delta {number_text(report.mean_delta)}"
    )
    if counts["in_both"]:
        out.print(
            f"Statements are in both where a step has few values: each end keeps {100 * options['keep_share']:g}% of "
            f"them (--keep-share; LINK's paper: 75%), {options['beam']} at most (--beam)."
        )
    sent = {role: one.calls for role, one in report.statistics.items()}
    out.print(
        f"{counted(sum(sent.values()), 'call')} sent in this run{f': {_by_name(sent)}' if any(sent.values()) else ''}. "
        "The table counts those to the knowledge model, `hapax stats` those of all runs."
    )
    if refused := {role: one.refused for role, one in report.statistics.items() if one.refused}:
        told = counted(sum(refused.values()), "request was", "requests were")
        err.print(
            f"[yellow]refused[/] {told} refused by a model: {_by_name(refused)}. They are not asked again; "
            "`hapax stats` tells why.",
            soft_wrap=True,
        )


def _by_name(counts: Mapping[str, int]) -> str:
    """`knowledge 204, critic 310`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _print_examples(rule: RuleReport, count: int) -> None:
    from kb.records import Distribution

    for distribution in Distribution:
        for text in rule.examples(distribution, count):
            out.print(f"[dim]{distribution.value:>9}[/]  {escape(text)}")


def _line(rule: RuleReport) -> tuple[str, ...]:
    from kb.records import Distribution

    shares = (rule.gates[gate].share if gate in rule.gates else None for gate in ("critic", "likelihood"))
    return (
        rule.rule + (" (cut)" if rule.cut else ""),
        str(rule.count(Distribution.HEAD)),
        str(rule.count(Distribution.LONG_TAIL)),
        str(rule.in_both),
        *("-" if share is None else f"{share:.0%}" for share in shares),
        number_text(rule.delta),
        str(rule.calls),
        str(rule.hits),
    )
