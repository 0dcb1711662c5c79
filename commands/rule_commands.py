"""`check`, `explain`, `compile` and `lsp`, for rule files, and the forms in which `check` reports."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
from rich.markup import escape

import hapax
from hapax.api.rules import FORMS, check_files, fix_files
from hapax.commands.shared.common_options import (
    open_kb,
    read_library,
    with_chosen,
    with_json,
    with_paths,
    with_rules,
)
from hapax.commands.shared.console import (
    DONE,
    diagnostic_json,
    note,
    out,
    print_diagnostics,
    print_json,
    print_table,
    rejected_code,
)
from hapax.commands.shared.declared import Finite
from hapax.grammar.checking.code_explanations import explained_codes
from hapax.grammar.errors import Diagnostic, Place, Severity
from hapax.grammar.writing.words import counted

if TYPE_CHECKING:
    from hapax.grammar.checking.code_explanations import FaultExplanation


@click.command()
@with_paths
@click.option("--db", "database", default=None, envvar="HAPAX_DB", help="Also check against this knowledge base.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Form of the faults.",
)
@click.option(
    "--entailment-from",
    "at_least",
    type=Finite(0, 1),
    help="Lowest score of stored entailments, or of chains of them, that count against rules.  [default: 0.5]",
)
@click.option(
    "--entailment-margin",
    "margin",
    type=Finite(0, 1),
    help="Least lead of an entailment's score over its reverse.  [default: 0.2]",
)
@click.option("--names", help="Reference whose canonical names constants should have, such as reference:geo.")
@click.option("--fix", is_flag=True, help="First fix faults in PATHS with a single remedy.")
@with_json
def check(paths: tuple[Path, ...], database: str | None, form: str, **options: Any) -> None:
    """Check rules for errors, redundancy and contradictions. PATHS: rule files or folders; default: `shipped`.

    \b
    hapax check my.rules
    hapax check --db hapax.db
    hapax check my.rules --names reference:geo --fix
    hapax check my.rules --db hapax.db --entailment-from 0.8 --entailment-margin 0.1
    """
    # Others keep the defaults of `EntailmentLimits`.
    limits = {name: options[name] for name in ("at_least", "margin") if options[name] is not None}
    if limits and database is None:
        raise click.UsageError("--entailment-from and --entailment-margin need the knowledge base of --db.")
    if options["fix"] and not paths:
        raise click.UsageError("--fix changes files. Name them as PATHS.")
    # Before the check, which then reports what is left.
    for place, old, new in fix_files(paths, options["names"]) if options["fix"] else ():
        note(f"{place}: changed {json.dumps(old)} to {json.dumps(new)}")
    opening = None if database is None else lambda: open_kb(database, read_only=True)
    # Only with a knowledge base are entailments loaded, which take libraries with them.
    limited = hapax.EntailmentLimits(**limits) if limits else None
    checked = check_files(paths, opening, limited, options["names"])
    counts = Counter(diagnostic.severity for diagnostic in checked.diagnostics)
    # --json is short for --format json.
    form = "json" if out.quiet else form
    out.quiet = form == "json"
    print_json(list(map(diagnostic_json, checked.diagnostics)))
    if form == "sarif":
        click.echo(sarif_text(checked.diagnostics))
    elif form == "text":
        print_diagnostics(checked.diagnostics)
        for code, number, text in checked.proofs:
            out.print(escape(f"\n{code}, proof {number}:\n{text}"))
        summary = [counted(len(checked.library.rules), "rule")]
        summary += [counted(counts[severity], severity) for severity in Severity]
        note(", ".join(summary))
    sys.exit(rejected_code(checked.diagnostics) if counts[Severity.ERROR] else DONE)


@click.command()
@click.argument("code", required=False)
@with_json
def explain(code: str | None) -> None:
    """Explain a fault by its CODE: its meaning, an example, and the example corrected. Without CODE: list all codes.

    \b
    hapax rules explain HPX113
    """
    if code is None:
        entries = explained_codes().values()
        print_json(list(map(explanation_json, entries)))
        print_table(("code", "severity", "fault"), [(entry.code, entry.severity, entry.name) for entry in entries])
        return
    entry = hapax.explain_fault(code)
    print_json(explanation_json(entry))
    out.print(escape(f"{entry.code} ({entry.severity}): {entry.name}. Found by {entry.found_by}."))
    if entry.diagnostics:
        out.print()
        # The example is in no file, so its text is given for the excerpts.
        print_diagnostics(entry.diagnostics, texts={entry.diagnostics[0].place.file: entry.example})
    for title, text in (("Example", entry.example), ("Corrected", entry.mended)):
        if text:
            out.print(escape(f"\n{title}:\n\n{indent(text, '    ')}"))


def explanation_json(entry: FaultExplanation) -> dict[str, Any]:
    """The fields of an explanation, with its diagnostics as in `check --json`."""
    return {**asdict(entry), "diagnostics": list(map(diagnostic_json, entry.diagnostics))}


@click.command()
@with_paths
@with_chosen
@click.option("--to", "form", type=click.Choice(FORMS), default="prolog", show_default=True)
def compile(paths: tuple[Path, ...], chosen: tuple[str, ...], form: str) -> None:  # noqa: A001  # the verb users type
    """Print rules as a Prolog program, as rule text, as LINK's rules.json or as the SQL of a database.

    rules.json is the file of LINK's released code. The SQL has a table for the facts of each predicate, and views of
    what follows from them.

    \b
    hapax rules compile > program.pl && swipl program.pl
    hapax rules compile rules.json --to rules
    hapax rules compile my.rules --to duckdb > rules.sql
    """
    # `echo` ends the text with a line break.
    click.echo(hapax.compile_rules(read_library(paths), form, only=chosen).rstrip())


@click.command("lsp")
@with_rules
@click.option(
    "--db",
    "database",
    envvar="HAPAX_DB",
    type=click.Path(path_type=Path),
    help="Knowledge base whose facts are counted.",
)
def serve_editor(paths: tuple[Path, ...], database: Path | None) -> None:
    """Serve editors over stdin and stdout by the Language Server Protocol: faults, meanings, completion, new names.

    A file is checked with the other files of --rules if it is one of them, otherwise alone, as `hapax check FILE` does.

    \b
    hapax rules lsp
    hapax rules lsp --rules rules --db hapax.db
    """
    from hapax.api.rule_editor import RuleEditor

    RuleEditor(paths, database).server.start_io()


# --- forms of diagnostics for other programs --------------------------------------------------------------------------

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_text(diagnostics: Iterable[Diagnostic]) -> str:
    """A SARIF log with one run and one result for each diagnostic."""
    results = list(map(_result, diagnostics))
    used = {result["ruleId"] for result in results}
    rules = [{"id": entry.code, "shortDescription": {"text": entry.name}} for entry in explained_codes().values()]
    driver = {"name": "hapax", "rules": [rule for rule in rules if rule["id"] in used]}
    # Columns count code points, as the parser does; SARIF would take them for units of UTF-16.
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "level": diagnostic.severity.value,  # SARIF has the same three words
        "message": {"text": diagnostic.text},
        "locations": [_location(diagnostic.place)],
    }
    if diagnostic.related:
        result["relatedLocations"] = list(map(_location, diagnostic.related))
    return result


def _location(place: Place) -> dict[str, Any]:
    path = Path(place.file)
    region = {"startLine": place.line, "startColumn": place.column}
    if place.end_line is not None and place.end_column is not None:
        # As in a place, the end is behind the last character.
        region |= {"endLine": place.end_line, "endColumn": place.end_column}
    # GitHub takes a relative address as one in the repository.
    address = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": address}, "region": region}}
