"""`evaluate winograd`: concept-reversed Winograd schemas, asked, scored, generated, judged by people and exported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import BUDGET_REACHED, DONE, err, out, print_pages, print_table
from commands.options import (
    Finite,
    dry_run,
    open_journal,
    open_kb,
    opening_options,
    print_foreseen,
    with_budget,
    with_database,
    with_dry_run,
    with_json,
    with_opening,
    with_queue,
)
from grammar.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("zero-shot", "one-shot", "winowhy", "zs-cot", "cot", "aot", "aot-staged", "all")
SHOWN_ROWS = 12
"""How many rows of one fault are named."""
ASK, IMPORT = "hapax evaluate winograd ask", "hapax evaluate winograd import"
"""The commands that store what others of this group show."""

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

with_files = click.argument("paths", nargs=-1, required=True, type=_FILE)
with_file = click.argument("path", type=_FILE)
with_sources = click.option("--source", "sources", multiple=True, help="Only these sources, such as CR-WSC-H.")
with_published = click.option(
    "--as-published", "published", is_flag=True, help="Rows exactly as the release asks them, faults and all."
)
with_variant = click.option(
    "--variant",
    type=click.Choice(["paper", "notebook"]),
    default="paper",
    show_default=True,
    help="Prompts as the paper prints them, or as its notebooks send them.",
)


@click.group()
def winograd() -> None:
    """Ask, score and make concept-reversed Winograd schemas (CR-WSC), and abstract before answering (AoT).

    \b
    hapax evaluate winograd data wsc_273_annotated_final.csv generated_modify_tq.csv
    hapax evaluate winograd ask wsc_273_annotated_final.csv --method all -m openai:gpt-4.1 --max-calls 2000
    hapax evaluate winograd tables
    """


@winograd.command()
@with_files
@with_published
@click.option("--all-rows", is_flag=True, help="Name every row of a fault.")
@with_json
def data(paths: tuple[Path, ...], published: bool, all_rows: bool, as_json: bool) -> None:
    """Read Winograd schemas, count them by source, and list the rows that are faulty.

    Rows count from 0 after the header. Read are the annotated WSC file (WSC273 and CR-WSC-H), the generated file
    (CR-WSC-M), and any CSV or JSONL file with text, pronoun, options (or entity1 and entity2) and label.

    \b
    hapax evaluate winograd data wsc_273_annotated_final.csv generated_modify_tq.csv
    """
    from evaluation.winograd.data import read_file, source_counts

    files = [read_file(path, published) for path in paths]
    counts = source_counts([item for one in files for item in one.items])
    faults = [fault for one in files for fault in one.faults]
    if as_json:
        click.echo(
            json.dumps(
                {"sources": [one._asdict() for one in counts], "faults": [fault.to_json() for fault in faults]},
                ensure_ascii=False,
            )
        )
        return
    rows = [(one.source, str(one.sentences), str(one.pairs), str(one.families)) for one in counts]
    print_table(("source", "sentences", "pairs", "families"), rows)
    for fault in faults:
        out.print(escape(fault.told(None if all_rows else SHOWN_ROWS)))
    err.print(f"{counted(len(faults), 'fault')}")


@winograd.command()
@with_files
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(METHODS),
    help="How pairs are asked; all: the paper's six.  [default: zero-shot]",
)
@with_variant
@click.option("--prompt", "prompts", multiple=True, metavar="NAME=FILE", help="A prompt of your own, such as for AoT2.")
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that is asked.")
@with_sources
@with_published
@click.option("--limit", type=click.IntRange(1), help="Pairs of each source at most.")
@click.option("--temperature", type=Finite(0), default=0.0, show_default=True, help="Sampling temperature.")
@click.option("--reply-tokens", type=click.IntRange(1), default=512, show_default=True, help="Tokens of a reply.")
@with_opening
@with_budget
@with_queue
@with_dry_run
@with_database
@with_json
def ask(paths: tuple[Path, ...], **options: Any) -> None:
    """Ask a model about pairs of sentences, by one method or several, and store the answers for `tables`.

    Prints single and pair accuracy by the strict reading and by the released one, consistency, and how many answers
    are not read at all. The mapping from entities to concepts that AoT states is stored as facts `abstracts_to`. The
    same command goes on where a budget ended it and asks nothing twice.

    \b
    hapax evaluate winograd ask wsc_273_annotated_final.csv --method all -m openai:gpt-4.1 --max-calls 2000
    hapax evaluate winograd ask generated_modify_tq.csv --method aot-staged -m hf:mistralai/Mistral-7B-Instruct-v0.2
    hapax evaluate winograd ask generated_modify_tq.csv --prompt AoT2=my_prompt.txt -m openai:gpt-4.1
    """
    from evaluation.winograd.runs import AskOptions, AskSession
    from evaluation.winograd.tables import run_page

    if not options["methods"] and not options["prompts"]:
        options["methods"] = ("zero-shot",)
    if options["dry_run"]:
        with dry_run(options["database"]) as (_, foreseeing), open_kb(None) as scratch:
            session = AskSession(scratch, AskOptions.of(options), opening_options(None, options, foreseeing))
            list(session.ask(paths, foreseeing))
        print_foreseen(foreseeing, options["as_json"])
        return
    with open_kb(options["database"]) as kb:
        journal = open_journal(kb, options)
        session = AskSession(kb, AskOptions.of(options), opening_options(None, options, journal))
        with err.status("Loading models") as status:
            runs = list(
                session.ask(
                    paths, journal, lambda what, done, total: status.update(f"Asking {what}: {done} of {total} pairs")
                )
            )
    if options["as_json"]:
        click.echo(json.dumps([run.to_json() for run in runs], ensure_ascii=False))
    else:
        print_pages([run_page(runs)])
    used = journal.total
    err.print(f"{counted(used.calls, 'call')}, {counted(used.hits, 'answer')} from the journal")
    if session.stopped:
        err.print(escape(str(session.stopped)), soft_wrap=True)
    sys.exit(BUDGET_REACHED if session.stopped else DONE)


@winograd.command()
@click.option("--released", is_flag=True, help="Score by the released reading of replies instead of the strict one.")
@with_database
@with_json
def tables(released: bool, database: str, as_json: bool) -> None:
    """Print tables 1, 2, 3 and 5 of what was asked, McNemar's test between methods, and the paper's tables apart.

    \b
    hapax evaluate winograd tables
    hapax evaluate winograd tables --released
    """
    from evaluation.winograd.runs import stored_runs
    from evaluation.winograd.tables import pages, remarks

    with open_kb(database, read_only=True, begun_by=ASK) as kb:
        runs = stored_runs(kb)
    if as_json:
        click.echo(json.dumps([run.to_json() for run in runs], ensure_ascii=False))
    else:
        print_pages(pages(runs, released))
    for line in remarks(runs):
        err.print(escape(line), soft_wrap=True)


@winograd.command()
@with_files
@click.option("--first", default="cot", show_default=True, help="Method on the left.")
@click.option("--second", default="aot", show_default=True, help="Method on the right, whose failures are tagged.")
@click.option("-m", "--model", help="Only runs of models whose name begins so.")
@with_sources
@click.option("--most", type=click.IntRange(1), default=10, show_default=True, help="Pairs shown of each source.")
@with_database
@with_json
def cases(paths: tuple[Path, ...], **options: Any) -> None:
    """Show two methods' stored replies to the same pairs side by side, with the paper's two kinds of failure as tags.

    Pairs that the second method fails come first.

    \b
    hapax evaluate winograd cases wsc_273_annotated_final.csv
    hapax evaluate winograd cases generated_modify_tq.csv --first zero-shot --second aot-staged
    """
    from evaluation.winograd.cases import stored_cases

    wanted = (options["first"], options["second"])
    with open_kb(options["database"], read_only=True, begun_by=ASK) as kb:
        found = stored_cases(kb, paths, wanted, options["model"], options["sources"])
    shown = [case for several in found.values() for case in several[: options["most"]]]
    if options["as_json"]:
        click.echo(json.dumps([case.to_json() for case in shown], ensure_ascii=False))
        return
    for case in shown:
        for line in case.lines():
            out.print(escape(line))
        out.print()


@winograd.command()
@with_file
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that proposes entities.")
@click.option("--base", help="Model that must fail on a new pair; default: the proposing model.")
@click.option("--likelihood", help="Model that measures association; default: the proposing model.")
@click.option("--out", "target", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSONL to write.")
@click.option("--source", help="Source to start from, such as WSC273; default: the file's first.")
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    type=click.Choice(["1", "2", "3", "4", "5", "released"]),
    default=("1", "2", "3", "4", "5"),
    show_default=True,
    help="The paper's analogy prompts by number, or that of the released transcripts.",
)
@click.option(
    "--base-method",
    type=click.Choice([*METHODS[:-2], "critic"]),
    default="zero-shot",
    show_default=True,
    help="How the base model is asked; critic: it judges claims, as Flan-T5 can.",
)
@click.option(
    "--threshold",
    type=Finite(-1000, 1000),
    default=0.0,
    show_default=True,
    help="Nats by which the wrong answer is favoured at least.",
)
@click.option(
    "--keep-share",
    "share",
    type=Finite(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share kept of each source pair's, the most adversarial first.",
)
@click.option("--most", type=click.IntRange(1), default=5, show_default=True, help="New pairs of each source pair.")
@click.option("--limit", type=click.IntRange(1), help="Source pairs at most.")
@click.option("--temperature", type=Finite(0), default=0.0, show_default=True, help="Sampling temperature.")
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def generate(path: Path, target: Path, **options: Any) -> None:
    """Make a new concept-reversed set from any file of Winograd schemas.

    A model proposes analogous entities; they are put into the source's sentences, so the reasoning stays. Kept is what
    favours the wrong answer by association and what the base model fails on. Every verdict is stored with its score and
    threshold. Have the result judged with `sheets`.

    \b
    hapax evaluate winograd generate wsc_273_annotated_final.csv -m openai:gpt-4.1 --base hf:google/flan-t5-xl
    """
    from evaluation.winograd.generation import GenerateOptions, GenerateSession

    with open_kb(options["database"]) as kb:
        journal = open_journal(kb, options)
        session = GenerateSession(kb, GenerateOptions.of(options), opening_options(None, options, journal), journal)
        with err.status("Loading models") as status:
            made = session.generate(path, status.update)
    if not made.stopped:
        _write(target, made.lines())
    if options["as_json"]:
        click.echo(json.dumps(made.to_json(), ensure_ascii=False))
    else:
        print_table(("", "count"), [(name, str(count)) for name, count in made.counts()])
    err.print(escape(made.stopped or f"{target}: {counted(len(made.accepted), 'pair')}"))
    sys.exit(BUDGET_REACHED if made.stopped else DONE)


@winograd.command()
@with_file
@click.option(
    "--annotator",
    "annotators",
    multiple=True,
    default=("annotator-1", "annotator-2"),
    show_default=True,
    help="Who judges; two, as in the paper.",
)
@click.option("--disputed", is_flag=True, help="Only what annotators differ on, for one who adjudicates.")
@click.option("--per-sheet", type=click.IntRange(1), help="Schemas on a sheet at most; default: all on one.")
@click.option("--seed", default=0, show_default=True, help="Seed of the order.")
@click.option(
    "--format", "form", type=click.Choice(["html", "csv", "both"]), default="both", show_default=True, help="Files."
)
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="sheets",
    show_default=True,
    help="Folder.",
)
@with_database
def sheets(path: Path, folder: Path, database: str, **options: Any) -> None:
    """Write sheets on which people say what each pronoun means and whether the schema can be used.

    \b
    hapax evaluate winograd sheets reversed.jsonl --annotator ann --annotator bob
    hapax evaluate winograd sheets reversed.jsonl --disputed --annotator eve
    """
    from evaluation.winograd.people import SheetOptions, export_sheets

    form = options.pop("form")
    forms = ("html", "csv") if form == "both" else (form,)
    with open_kb(database, read_only=options["disputed"], begun_by=IMPORT if options["disputed"] else "") as kb:
        written = export_sheets(kb, path, SheetOptions(forms=forms, **options), folder)
    for one in written:
        click.echo(one)


@winograd.command("import")
@with_file
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--skip-faulty", is_flag=True, help="Leave faulty rows out instead of refusing all files.")
@with_database
def import_(path: Path, files: tuple[Path, ...], skip_faulty: bool, database: str) -> None:
    """Import filled sheets about the schemas of a file.

    \b
    hapax evaluate winograd import reversed.jsonl sheets/schemas-ann.csv sheets/schemas-bob.csv
    """
    from evaluation.winograd.people import take_in

    with open_kb(database) as kb:
        report = take_in(kb, path, files, skip_faulty)
    for fault in report.faults:
        err.print(escape(str(fault)))
    err.print(f"{counted(len(report.votes), 'vote')} of {counted(report.voters, 'annotator')}; {report.added} new")


@winograd.command()
@with_file
@click.option(
    "--out", "target", type=click.Path(path_type=Path, dir_okay=False), help="JSONL of the schemas that stay."
)
@with_database
@with_json
def judged(path: Path, target: Path | None, database: str, as_json: bool) -> None:
    """Say how far annotators agree on a file's schemas, and write those that stay.

    A schema stays if most of its annotators, two at least, give its label and find it usable.

    \b
    hapax evaluate winograd judged reversed.jsonl --out verified.jsonl
    """
    from evaluation.winograd.people import annotated

    with open_kb(database, read_only=True, begun_by=IMPORT) as kb:
        found = annotated(kb, path)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        print_pages(found.pages())
    if target is not None:
        _write(target, found.lines())


@winograd.command()
@with_files
@with_sources
@with_variant
@click.option("--name", default="winograd", show_default=True, help="First part of the tasks' names.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["lm-eval", "inspect"]),
    default=("lm-eval", "inspect"),
    show_default=True,
    help="Whose tasks.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="tasks",
    show_default=True,
    help="Folder.",
)
def export(paths: tuple[Path, ...], folder: Path, **options: Any) -> None:
    """Write pairs as tasks of lm-evaluation-harness and Inspect, with single, pair and consistency scores.

    \b
    hapax evaluate winograd export wsc_273_annotated_final.csv generated_modify_tq.csv --out tasks
    """
    from evaluation.winograd.export import ExportOptions
    from evaluation.winograd.export import export as export_tasks
    from evaluation.winograd.prompts import Variant

    options["variant"] = Variant(options["variant"])
    for one in export_tasks(paths, ExportOptions(**options), folder):
        click.echo(one)


def _write(target: Path, lines: Iterator[str]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(lines), encoding="utf-8", newline="\n")
