"""`evaluate winograd`: ask, score, generate, annotate and export concept-reversed Winograd schemas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.shared.common_options import open_kb, opened, with_database, with_json
from hapax.commands.shared.console import BUDGET_REACHED, DONE, note, print_json, say, show
from hapax.commands.shared.declared import declared
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import asking, with_asking, with_dry_run
from hapax.grammar.options import from_options
from hapax.grammar.writing.words import counted

# Written out, so that `--help` does not import the evaluation.
METHODS = ("zero-shot", "one-shot", "winowhy", "zs-cot", "cot", "aot", "aot-staged")
ASK_METHODS = (*METHODS, "likelihood", "likelihood-partial", "likelihood-pmi", "likelihood-choice", "all")
# Commands that store the data which other commands of this group show.
ASK, IMPORT = "hapax evaluate winograd ask", "hapax votes import"

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

with_files = click.argument("paths", nargs=-1, required=True, type=_FILE)
with_file = click.argument("path", type=_FILE)


@click.group(cls=CommandGroup, path="evaluate.winograd.")
def winograd() -> None:
    """Ask, score and generate concept-reversed Winograd schemas (CR-WSC), and abstract before answering (AoT).

    \b
    hapax evaluate winograd data wsc_273_annotated_final.csv generated_modify_tq.csv
    hapax evaluate winograd ask wsc_273_annotated_final.csv --method all -m openai:gpt-4.1 --max-calls 2000
    hapax evaluate winograd tables
    """


@winograd.command()
@with_files
@with_json
def data(paths: tuple[Path, ...]) -> None:
    """Read Winograd schemas, count them by source, and list faulty rows.

    Rows count from 0 after the header. docs/papers/winograd.md describes the published files and the form of your own.

    \b
    hapax evaluate winograd data wsc_273_annotated_final.csv generated_modify_tq.csv
    """
    show(hapax.count_schemas(*paths))


@winograd.command()
@with_files
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(ASK_METHODS),
    help="How to ask: by a prompt, or by likelihood (docs/papers/winograd.md); all: the paper's six prompts. "
    " [default: zero-shot]",
)
@declared(hapax.AskSettings, "variant")
@click.option(
    "--prompt", "prompts", multiple=True, metavar="NAME=FILE", help="Ask with your own prompt, for example for AoT2."
)
@declared(hapax.SchemaAskOptions, "model", "sources", "limit")
@declared(hapax.AskSettings, "temperature", "tokens")
@with_dry_run
@with_asking
def ask(paths: tuple[Path, ...], **options: Any) -> None:
    """Ask a model about pairs of sentences, by one or more methods, and store the answers for `tables`.

    Concepts that AoT states for entities are stored as facts `abstracts_to`. After a budget ended the command, run it
    again to continue.

    \b
    hapax evaluate winograd ask wsc_273_annotated_final.csv --method all -m openai:gpt-4.1 --max-calls 2000
    hapax evaluate winograd ask generated_modify_tq.csv --method aot-staged -m hf:mistralai/Mistral-7B-Instruct-v0.2
    hapax evaluate winograd ask generated_modify_tq.csv --prompt AoT2=my_prompt.txt -m openai:gpt-4.1
    """
    # Not as click's default: with --prompt alone nothing else is asked.
    if not options["methods"] and not options["prompts"]:
        options["methods"] = ("zero-shot",)
    wanted = hapax.SchemaAskOptions.from_options(options)
    with asking(options, "Loading models") as (kb, opening, tell):

        def progress(method: str, done: int, total: int) -> None:
            tell(f"Asking {method} about pairs", done, total)

        # Asking stores its runs: those of a dry run go to a knowledge base in memory.
        stored = open_kb(None) if options["dry_run"] else kb
        evaluation = hapax.ask_schemas(stored, paths, wanted, opening, progress=progress)
    show(evaluation)
    assert opening.journal is not None  # noqa: S101  `asking` gave it
    used = opening.journal.total
    note(f"{counted(used.calls, 'call')}, {counted(used.hits, 'answer')} from the journal")
    sys.exit(BUDGET_REACHED if any(run.record.status == "budget" for run in evaluation.value) else DONE)


@winograd.command()
@with_database
@with_json
def tables(**_: Any) -> None:
    """Print tables 1, 2, 3 and 5 of the stored answers, McNemar's test between methods, and the paper's own tables.

    \b
    hapax evaluate winograd tables
    """
    show(hapax.tabulate_schemas(opened(read_only=True, begun_by=ASK)))


@winograd.command()
@with_files
@click.option("--first", default="cot", show_default=True, help="First method.")
@click.option("--second", default="aot", show_default=True, help="Second method, whose failures are tagged.")
@declared(hapax.compare_cases)
@with_database
@with_json
def cases(paths: tuple[Path, ...], **options: Any) -> None:
    """Show the stored replies of two methods to the same pairs, with the kind of failure as a tag.

    Tags: a wrong level of abstraction, a kept cue, or a reply that cannot be read. Pairs that the second method fails
    on come first.

    \b
    hapax evaluate winograd cases wsc_273_annotated_final.csv
    hapax evaluate winograd cases generated_modify_tq.csv --first zero-shot --second aot-staged
    """
    kb, methods = opened(read_only=True, begun_by=ASK), (options["first"], options["second"])
    show(from_options(hapax.compare_cases, options, kb=kb, paths=paths, methods=methods))


@winograd.command()
@with_file
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that proposes entities.")
@click.option("--base", help="Base model, which must fail on a new pair; default: the proposing model.")
@click.option("--likelihood", help="Model that measures association; default: the proposing model.")
@click.option(
    "--out", "target", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSONL file to write."
)
@declared(
    hapax.SchemaGenerationOptions,
    *("source", "prompts", "base_method", "threshold", "limit"),
    "temperature",
)
@with_asking
def generate(path: Path, target: Path, **options: Any) -> None:
    """Generate a new concept-reversed set from any file of Winograd schemas.

    A model proposes analogous entities for the source's sentences. A new pair is kept if associations favour the wrong
    answer and the base model fails on it. Have people judge the result with `sheets`.

    \b
    hapax evaluate winograd generate wsc_273_annotated_final.csv -m openai:gpt-4.1 --base hf:gpt2 --out reversed.jsonl
    """
    generation = hapax.SchemaGenerationOptions.from_options(options)
    with asking(options, "Loading models") as (kb, opening, tell):
        evaluation = hapax.generate_schemas(kb, path, generation, opening, progress=tell)
    generated = evaluation.value
    # A set cut short by a budget is not written; the same command continues it.
    if not generated.stopped:
        hapax.write_schemas(evaluation, target)
    show(evaluation)
    note(generated.stopped or f"{target}: {counted(len(generated.accepted), 'pair')}")
    sys.exit(BUDGET_REACHED if generated.stopped else DONE)


@winograd.command()
@with_file
@declared(hapax.SchemaSheetOptions, "annotators", "disputed", "per_sheet", "seed", "forms")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="sheets",
    show_default=True,
    help="Folder to write the sheets to.",
)
@with_database
@with_json
def sheets(path: Path, folder: Path, **options: Any) -> None:
    """Write sheets on which annotators say what each pronoun means and if the schema is usable.

    \b
    hapax evaluate winograd sheets reversed.jsonl --annotator ann --annotator bob
    hapax evaluate winograd sheets reversed.jsonl --disputed --annotator eve
    """
    # Only --disputed reads votes; other sheets need no knowledge base with an import.
    kb = opened(read_only=options["disputed"], begun_by=IMPORT if options["disputed"] else "")
    _print_files(hapax.export_schema_sheets(kb, path, from_options(hapax.SchemaSheetOptions, options), folder))


@winograd.command()
@with_file
@click.option(
    "--out", "target", type=click.Path(path_type=Path, dir_okay=False), help="JSONL file to write the kept schemas to."
)
@with_database
@with_json
def judged(path: Path, target: Path | None, **_: Any) -> None:
    """Measure the agreement of annotators on a file's schemas, and write the schemas to keep.

    A schema is kept if it has at least two annotators, and most of them give its label and find it usable.

    \b
    hapax evaluate winograd judged reversed.jsonl --out verified.jsonl
    """
    evaluation = hapax.judge_schemas(opened(read_only=True, begun_by=IMPORT), path)
    show(evaluation)
    if target is not None:
        hapax.write_schemas(evaluation, target)


@winograd.command()
@with_files
@declared(hapax.SchemaExportOptions, "sources", "variant", "name")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="tasks",
    show_default=True,
    help="Folder to write the tasks to.",
)
@with_json
def export(paths: tuple[Path, ...], folder: Path, **options: Any) -> None:
    """Write pairs as tasks for lm-evaluation-harness, with single, pair and consistency scores.

    \b
    hapax evaluate winograd export wsc_273_annotated_final.csv generated_modify_tq.csv --out tasks
    """
    _print_files(hapax.export_schemas(paths, folder, from_options(hapax.SchemaExportOptions, options)))


def _print_files(paths: list[Path]) -> None:
    """The written files, one per line or as JSON."""
    print_json({"files": paths})
    for path in paths:
        say(path)
