"""`report`: write the pages of a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

import hapax
from hapax.commands.console import err, print_json
from hapax.commands.declared import declared
from hapax.commands.options import open_kb, read_library, with_database, with_json, with_rules
from hapax.grammar.options import made
from hapax.grammar.words import counted
from hapax.kb.whole_files import atomic_text_file


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
    if options["as_json"] and output == "-":
        raise click.UsageError("--json prints to stdout, where -o - writes the page. Name a file with -o.")
    report_options = made(hapax.ReportOptions, options, database=database)
    # Rendered before the file is opened, so that an error keeps an older page.
    with open_kb(database, read_only=True) as kb:
        page = hapax.report(kb, read_library(paths, database), report_options)
    with atomic_text_file(output) as stream:
        stream.write(page.html)
    content = page.content
    if options["as_json"]:
        # Bytes of UTF-8, as in the file.
        size = len(page.html.encode())
        run_id = None if content.run is None else content.run.run.id
        print_json({"file": output, "run": run_id, "rules": len(content.rules), "bytes": size})
        return
    if content.run is not None and content.run.warning:
        err.print(f"[yellow]note:[/] {escape(content.run.warning)}", soft_wrap=True)
    about = "derived statements" if content.run is None else f"run {content.run.run.id}"
    err.print(
        f"{escape(about)}: {counted(len(content.rules), 'rule')}, "
        f"{counted(len(page.html.encode()) // 1000, 'kB', 'kB')}",
        soft_wrap=True,
    )
