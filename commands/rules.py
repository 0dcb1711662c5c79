"""The commands `check` and `compile`, for rule files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from hapax.api.operations import SHIPPED_RULES, chosen_rules
from hapax.commands.console import DONE, RULES_REJECTED, err, out, print_diagnostics
from hapax.commands.options import open_kb, read_library, with_chosen, with_json, with_paths
from hapax.grammar.errors import Severity
from hapax.grammar.words import counted

if TYPE_CHECKING:
    from hapax.engine.kb_checks import KbFinding


@click.command()
@with_paths
@click.option("--db", "database", default=None, envvar="HAPAX_DB", help="Also check against this knowledge base.")
@click.option("--all", "every", is_flag=True, help="Print all notes of a kind, not only the first few; JSON has all.")
@with_json
def check(paths: tuple[Path, ...], database: str | None, every: bool, as_json: bool) -> None:
    """Check rules for errors, redundancy and contradictions. PATHS: rule files or folders; default: the shipped ones.

    \b
    hapax check my.rules
    hapax check rules --db hapax.db
    """
    from hapax.grammar.checks import check_read
    from hapax.grammar.parser import read_rules

    read = read_rules(list(paths) or [SHIPPED_RULES])
    library = read.library
    diagnostics = list(check_read(read))
    findings: tuple[KbFinding, ...] = ()
    # Where only a part of the rules could be read, findings about the facts would mislead.
    if database is not None and not read.diagnostics:
        from hapax.engine.inference.session import PrologSession
        from hapax.engine.kb_checks import check_kb

        with open_kb(database, read_only=True) as kb, PrologSession() as session:
            findings = check_kb(library, kb, session)
        diagnostics += (finding.diagnostic for finding in findings)
    print_diagnostics(diagnostics, as_json, every)
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    if not as_json:
        _print_proofs(findings)
        summary = [counted(len(library.rules), "rule")]
        summary += [counted(counts[severity], severity) for severity in Severity]
        err.print(", ".join(summary))
    sys.exit(RULES_REJECTED if counts[Severity.ERROR] else DONE)


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

    from hapax.engine.inference.derive import relevant_library
    from hapax.grammar.link_json import to_link_json
    from hapax.grammar.printing import format_library
    from hapax.grammar.prolog_text import program_text

    library = read_library(paths)
    if chosen:
        rules = chosen_rules(library, chosen)
        part = relevant_library(library, *rules)
        # A chosen rule stays even if the part needed to derive its conclusion leaves it out.
        library = replace(part, rules=tuple(dict.fromkeys((*part.rules, *rules))))
    writers = {"prolog": program_text, "rules": format_library, "link-json": to_link_json}
    click.echo(writers[form](library).rstrip())


def _print_proofs(findings: Iterable[KbFinding]) -> None:
    from hapax.engine.inference.proof import proof_text

    for finding in findings:
        for number, proof in enumerate(finding.proofs, 1):
            out.print(escape(f"\n{finding.diagnostic.code}, proof {number}:\n{proof_text(proof)}"))
