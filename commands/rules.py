"""`check` and `compile`: what rules say and whether they hold together."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from commands.console import DONE, RULES_REJECTED, err, out, print_diagnostics, print_table
from commands.options import SHIPPED_RULES, chosen_rules, open_kb, read_library, with_chosen, with_json, with_paths
from grammar.errors import Severity
from grammar.words import counted

if TYPE_CHECKING:
    from engine.kb_checks import KbFinding
    from grammar.dependencies import SearchPlan
    from grammar.rules import Rule


@click.command()
@with_paths
@click.option("--db", "database", default=None, envvar="HAPAX_DB", help="Check against this knowledge base, too.")
@click.option("--all", "every", is_flag=True, help="Print all notes of a kind; default: the first few. JSON has all.")
@with_json
def check(paths: tuple[Path, ...], database: str | None, every: bool, as_json: bool) -> None:
    """Check rules for faults, redundancy and contradictions. PATHS: rule files or folders; default: the shipped ones.

    \b
    hapax check my.rules
    hapax check rules --db hapax.db
    """
    from grammar.checks import check_read
    from grammar.parser import read_rules

    read = read_rules(list(paths) or [SHIPPED_RULES])
    library = read.library
    diagnostics = list(check_read(read))
    findings: tuple[KbFinding, ...] = ()
    if database is not None and not read.faults:
        from engine.kb_checks import check_kb
        from engine.session import PrologSession

        with open_kb(database, read_only=True) as kb, PrologSession() as session:
            findings = check_kb(library, kb, session)
        diagnostics += (one.diagnostic for one in findings)
    print_diagnostics(diagnostics, as_json, every)
    found = {severity: sum(one.severity == severity for one in diagnostics) for severity in Severity}
    if not as_json:
        _print_proofs(findings)
        err.print(", ".join((counted(len(library.rules), "rule"), *(counted(found[each], each) for each in Severity))))
    sys.exit(RULES_REJECTED if found[Severity.ERROR] else DONE)


@click.command()
@with_paths
@with_chosen
@click.option(
    "--format", "form", type=click.Choice(["prolog", "rules", "link-json"]), default="prolog", show_default=True
)
def compile(paths: tuple[Path, ...], chosen: tuple[str, ...], form: str) -> None:  # noqa: A001  # the verb users type
    """Print rules as a Prolog program, as rule text or as LINK's rules.json.

    \b
    hapax compile > program.pl && swipl program.pl
    hapax compile rules.json --format rules
    """
    from dataclasses import replace

    from engine.derive import relevant_library
    from grammar.link_json import to_link_json
    from grammar.printing import format_library
    from grammar.prolog_text import program_text

    library = read_library(paths)
    if chosen:
        rules = chosen_rules(library, chosen)
        part = relevant_library(library, *rules)
        library = replace(part, rules=tuple(dict.fromkeys((*part.rules, *rules))))
    writers = {"prolog": program_text, "rules": format_library, "link-json": to_link_json}
    click.echo(writers[form](library).rstrip())


def _print_proofs(findings: Iterable[KbFinding]) -> None:
    from engine.proof import proof_text

    for finding in findings:
        for number, proof in enumerate(finding.proofs, 1):
            out.print(escape(f"\n{finding.diagnostic.code}, proof {number}:\n{proof_text(proof)}"))


def _print_plans(rule: Rule, plans: Sequence[SearchPlan], as_json: bool) -> None:
    if as_json:
        shown = [{"order": one.order, "steps": list(map(str, one.steps)), **asdict(one.cost)} for one in plans]
        click.echo(json.dumps({"rule": rule.name, "plans": shown}, ensure_ascii=False))
        return
    costs = ((str(one.cost.questions), str(one.cost.calls), str(one.cost.checks)) for one in plans)
    rows = (
        (" ".join(one.order), *cost, "; ".join(map(str, one.steps))) for one, cost in zip(plans, costs, strict=True)
    )
    print_table(("order", "questions", "calls", "checks", "steps"), rows, title=f"{rule.name}: {rule.sentence}")
