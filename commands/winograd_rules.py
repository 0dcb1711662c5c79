"""`evaluate winograd rules` and `prove`: resolve pronouns by theories, with proofs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from hapax.api.operations import refuse_faulty
from hapax.commands.console import out, print_result
from hapax.commands.options import (
    open_journal,
    open_kb,
    opening_options,
    read_library,
    with_budget,
    with_database,
    with_json,
    with_opening,
    with_queue,
)

if TYPE_CHECKING:
    from hapax.evaluation.winograd.data import WinogradItem
    from hapax.evaluation.winograd.theories.measure import RuleAnswer
    from hapax.evaluation.winograd.theories.proving import Referee

with_theories = click.option(
    "--theories",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of theories (*.rules) and patterns (*.toml); default: the shipped ones.",
)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--source", "sources", multiple=True, help="Use only items of these sources, such as CR-WSC-H.")
@click.option("--item", "item_ids", multiple=True, help="Print the proofs of this item, given by its id.")
@click.option("--mapper", help="Model that maps sentences to atoms; default: the patterns.")
@with_theories
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def rules(paths: tuple[Path, ...], sources: tuple[str, ...], item_ids: tuple[str, ...], **options: Any) -> None:
    """Answer Winograd schemas by theories: entities become roles, and Prolog proves which role the pronoun means.

    Prints coverage and accuracy, wrong answers, and the families that are not covered, with reasons. With --mapper a
    model lists the atoms that a sentence states. It does not see the entities, and a reply with anything but the
    theories' atoms is refused.

    \b
    hapax evaluate winograd rules wsc_273_annotated_final.csv generated_modify_tq.csv
    hapax evaluate winograd rules wsc_273_annotated_final.csv --source CR-WSC-H --item CR-WSC-H:14
    """
    from hapax.evaluation.winograd.data import read_items
    from hapax.evaluation.winograd.theories.measure import rules_result

    items: list[WinogradItem] = []
    for path in paths:
        items += [item for item in read_items(path) if not sources or item.source in sources]
    # Before any sentence is resolved, which may cost calls.
    unknown = sorted(set(item_ids) - {item.id for item in items})
    if unknown:
        raise click.UsageError(f"There is no item {unknown[0]!r}. Use --json to list all items.")
    answers = _answers([item for item in items if item.id in item_ids] if item_ids else items, options)
    # For programs, the result contains the proofs of all items.
    if options["as_json"] or not item_ids:
        print_result(rules_result(answers), options["as_json"])
        return
    for answer in answers:
        out.print(escape(f"{answer.item.id}  {answer.item.text}"), soft_wrap=True)
        for line in answer.resolution.lines(answer.item.options):
            out.print(escape(f"  {line}"), soft_wrap=True)
        out.print()


@click.command()
@click.argument("sentence")
@click.option(
    "-o", "--option", "options", multiple=True, required=True, help="An entity that the pronoun can mean; give two."
)
@click.option("--pronoun", default="", help="The pronoun to resolve, if the sentence has more than one.")
@with_theories
def prove(sentence: str, options: tuple[str, ...], pronoun: str, folder: Path | None) -> None:
    """Resolve the pronoun of a sentence and print the proof.

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
    """Resolve all items, by the patterns or by the model of --mapper through the journal."""
    from hapax.evaluation.winograd.theories.measure import answer_all

    with _referee(options["folder"]) as referee:
        if options["mapper"] is None:
            return answer_all(items, lambda item: referee.resolve(item.text, item.options, item.pronoun))
        from hapax.evaluation.winograd.theories.mapping import ROLE, mapped_by
        from hapax.llm_oracle.calls import JournaledGenerator
        from hapax.llm_oracle.protocols import KNOWLEDGE
        from hapax.llm_oracle.registry import open_instructed

        with open_kb(options["database"]) as kb:
            journal = open_journal(kb, options)
            model = open_instructed(options["mapper"], KNOWLEDGE, opening_options(None, options, journal))
            generator = JournaledGenerator(model, journal, role=ROLE)
            return answer_all(items, mapped_by(generator, referee, items, options["seed"]))


def _referee(folder: Path | None) -> Referee:
    from hapax.evaluation.winograd.theories.patterns import load_patterns
    from hapax.evaluation.winograd.theories.proving import Referee

    if folder is None:
        return Referee()
    library = read_library([folder])
    refuse_faulty(library)
    return Referee(library, load_patterns(folder.glob("*.toml")))
