"""`evaluate winograd rules` and `prove`: pronouns resolved by theories, with proofs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import err, out, print_table
from commands.options import (
    open_journal,
    open_kb,
    opening_options,
    read_library,
    refuse_faulty,
    with_budget,
    with_database,
    with_json,
    with_opening,
    with_queue,
)

if TYPE_CHECKING:
    from evaluation.winograd.data import WinogradItem
    from evaluation.winograd.theories.measure import RuleAnswer
    from evaluation.winograd.theories.proving import Referee

with_theories = click.option(
    "--theories",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of theories (*.rules) and patterns (*.toml); default: shipped.",
)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--source", "sources", multiple=True, help="Only items of these sources, such as CR-WSC-H.")
@click.option("--item", "shown", multiple=True, help="Print the proofs of these items, by id.")
@click.option("--mapper", help="Model that maps sentences to atoms; default: the patterns do.")
@with_theories
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def rules(paths: tuple[Path, ...], sources: tuple[str, ...], shown: tuple[str, ...], **options: Any) -> None:
    """Answer Winograd schemas by theories: entities become roles, and Prolog proves which role the pronoun means.

    Prints how much is answered and how much of that is right, answers that differ from the label, and the families
    that are not covered, with reasons. With --mapper a model says which atoms a sentence states; it sees no entity, and
    a reply that holds anything but the theories' atoms is refused.

    \b
    hapax evaluate winograd rules wsc_273_annotated_final.csv generated_modify_tq.csv
    hapax evaluate winograd rules wsc_273_annotated_final.csv --source CR-WSC-H --item CR-WSC-H:14
    """
    from evaluation.winograd.data import read_items
    from evaluation.winograd.theories.measure import to_json

    items = [item for path in paths for item in read_items(path) if not sources or item.source in sources]
    unknown = sorted(set(shown) - {item.id for item in items})
    if unknown:
        raise click.UsageError(f"No item is called {unknown[0]!r}. --json names all.")
    answers = _answers([one for one in items if one.id in shown] if shown else items, options)
    if options["as_json"]:
        click.echo(json.dumps(to_json(answers), ensure_ascii=False))
        return
    if not shown:
        _print_report(answers)
        return
    for one in answers:
        _print_proof(one)


@click.command()
@click.argument("sentence")
@click.option("-o", "--option", "options", multiple=True, required=True, help="What the pronoun can mean; give two.")
@click.option("--pronoun", default="", help="The pronoun asked for, if the sentence has several.")
@with_theories
def prove(sentence: str, options: tuple[str, ...], pronoun: str, folder: Path | None) -> None:
    """Say what the pronoun of a sentence means, with the proof.

    \b
    hapax evaluate winograd prove "The ant could not lift the crumb because it was too heavy." -o ant -o crumb
    """
    if len(options) != 2:
        raise click.UsageError("Give two options: -o ant -o crumb.")
    pair = (options[0], options[1])
    with _referee(folder) as referee:
        for line in referee.resolve(sentence, pair, pronoun).lines(pair):
            out.print(escape(line), soft_wrap=True)


def _answers(items: list[WinogradItem], options: dict[str, Any]) -> list[RuleAnswer]:
    """All items resolved, by the patterns or by the model of --mapper through the journal."""
    from evaluation.winograd.theories.measure import answer_all

    with _referee(options["folder"]) as referee:
        if options["mapper"] is None:
            return answer_all(items, lambda item: referee.resolve(item.text, item.options, item.pronoun))
        from evaluation.winograd.theories.mapping import ROLE, mapped_by
        from llm_oracle.calls import KNOWLEDGE, JournaledGenerator
        from llm_oracle.registry import open_instructed

        with open_kb(options["database"]) as kb:
            journal = open_journal(kb, options)
            model = open_instructed(options["mapper"], KNOWLEDGE, opening_options(None, options, journal))
            generator = JournaledGenerator(model, journal, role=ROLE)
            return answer_all(items, mapped_by(generator, referee, items, options["seed"]))


def _referee(folder: Path | None) -> Referee:
    from evaluation.winograd.theories.patterns import load_patterns
    from evaluation.winograd.theories.proving import Referee

    if folder is None:
        return Referee()
    library = read_library([folder])
    refuse_faulty(library)
    return Referee(library, load_patterns(folder.glob("*.toml")))


def _print_proof(one: RuleAnswer) -> None:
    out.print(escape(f"{one.item.id}  {one.item.text}"), soft_wrap=True)
    for line in one.resolution.lines(one.item.options):
        out.print(escape(f"  {line}"), soft_wrap=True)
    out.print()


def _print_report(answers: list[RuleAnswer]) -> None:
    from evaluation.winograd.theories.measure import COLUMNS, figures, uncovered, wrong

    print_table(COLUMNS, [one.row for one in figures(answers)])
    differing = [
        (one.item.id, one.item.text, one.item.options[1 - one.item.answer], one.item.options[one.item.answer])
        for one in wrong(answers)
    ]
    if differing:
        out.print()
        print_table(("item", "sentence", "answer", "label"), differing, title="Answers that differ from the label")
    missing = [
        (one.family, one.source, f"{one.unanswered} of {one.items}", "; ".join(one.reasons), one.example.text)
        for one in uncovered(answers)
    ]
    if missing:
        out.print()
        print_table(("family", "source", "unanswered", "why", "for example"), missing, title="Not covered")
    err.print("Accuracies are over what is answered.")
