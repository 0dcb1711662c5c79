"""`evaluate winograd rules` and `prove`: resolve pronouns by theories, with proofs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.console import out, print_json
from hapax.commands.experiments import print_result
from hapax.commands.model_options import open_journal, opening_options, with_budget, with_opening, with_queue
from hapax.commands.options import open_kb, with_database, with_json
from hapax.commands.winograd import with_skip_faulty, with_skip_leaked
from hapax.evaluation.winograd.data import METHODS, PARTS, part_of

if TYPE_CHECKING:
    from hapax.evaluation.shared.results import Evaluation
    from hapax.evaluation.winograd.data import WinogradItem
    from hapax.evaluation.winograd.theories.measure import RuleAnswer

with_theories = click.option(
    "--theories",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of theories (*.rules) and patterns (*.toml); default: the shipped ones.",
)

with_method = click.option(
    "--method",
    type=click.Choice(METHODS),
    default="patterns",
    show_default=True,
    help="patterns: sentence patterns and roles; reasoner: a parser, WordNet and weighed proofs (extra `english`).",
)

with_least = click.option(
    "--least",
    type=click.FloatRange(0.5, 1),
    help="Least probability at which the reasoner answers: higher answers less, and more of it rightly.",
)

with_pair_consistent = click.option(
    "--pair-consistent",
    is_flag=True,
    help="For the reasoner: give the two sentences of a pair different answers, by what it knows of both.",
)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--source", "sources", multiple=True, help="Use only items of these sources, such as CR-WSC-H.")
@click.option("--item", "item_ids", multiple=True, help="Print the proofs of this item, given by its id.")
@click.option("--mapper", help="Model that maps sentences to atoms; default: the patterns.")
@click.option(
    "--part",
    type=click.Choice(PARTS),
    help="Use one half of the schemas, chosen by a hash of the schema: the reasoner was written with `read` in view.",
)
@with_skip_faulty
@with_skip_leaked
@with_method
@with_least
@with_pair_consistent
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

    docs/winograd.md says where the published files are from.

    \b
    hapax evaluate winograd rules wsc_273_annotated_final.csv generated_modify_tq.csv
    hapax evaluate winograd rules wsc_273_annotated_final.csv --source CR-WSC-H --item CR-WSC-H:14
    hapax evaluate winograd rules mine.jsonl --method reasoner
    """
    items = _read_items(paths, sources, options)
    items = [item for item in items if options["part"] in (None, part_of(item))]
    # Before any sentence is resolved, which may cost calls.
    unknown = sorted(set(item_ids) - {item.id for item in items})
    if unknown:
        raise click.UsageError(f"There is no item {unknown[0]!r}. Use --json to list all items.")
    if item_ids:
        # With their partners, which have a say in pair-consistent answers.
        pairs = {item.pair for item in items if item.id in item_ids and options["pair_consistent"]}
        items = [item for item in items if item.id in item_ids or item.pair in pairs]
    evaluation = _resolved(items, options)
    # For programs, the result contains the proofs of all items.
    if options["as_json"] or not item_ids:
        print_result(evaluation, options["as_json"])
        return
    for answer in evaluation.value:
        if answer.item.id not in item_ids:
            continue
        out.print(escape(f"{answer.item.id}  {answer.item.text}"), soft_wrap=True)
        for line in answer.resolution.lines(answer.item.options):
            out.print(escape(f"  {line}"), soft_wrap=True)
        out.print()


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--source", "sources", multiple=True, help="Use only items of these sources, such as CR-WSC-H.")
@click.option("-m", "--model", help="Only answers of models whose name begins with this text.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="reasoner",
    show_default=True,
    help="Method that proves answers; the reasoner needs the extra `english`.",
)
@with_pair_consistent
@with_skip_faulty
@with_skip_leaked
@with_database
@with_json
def hybrid(paths: tuple[Path, ...], sources: tuple[str, ...], database: str, as_json: bool, **options: Any) -> None:
    """Answer by proof where there is one, and by a model elsewhere, with the risk at each coverage.

    The model's answers are those that `ask` stored; the most confident ones come first, by the margin of their scores.

    docs/winograd.md says where the published files are from.

    \b
    hapax evaluate winograd ask wsc_273_annotated_final.csv -m smollm2 --method likelihood-partial
    hapax evaluate winograd hybrid wsc_273_annotated_final.csv
    """
    _check_pair_consistent(options)
    items = _read_items(paths, sources, options)
    with open_kb(database, read_only=True, begun_by="hapax evaluate winograd ask") as kb:
        evaluation = hapax.combine_proofs(kb, items, **options)
    print_result(evaluation, as_json)


def _read_items(paths: tuple[Path, ...], sources: tuple[str, ...], options: dict[str, Any]) -> list[WinogradItem]:
    """The items of files, of all sources or of those named, less what `--skip-faulty` and `--skip-leaked` leave out."""
    # Taken out, since the rest of the options goes to the API by name.
    left_out = {name: options.pop(name) for name in ("skip_faulty", "skip_leaked")}
    items = hapax.read_schemas(*paths, **left_out)
    return [item for item in items if not sources or item.source in sources]


def _check_pair_consistent(options: dict[str, Any]) -> None:
    if options["pair_consistent"] and options["method"] != "reasoner":
        raise click.UsageError("--pair-consistent is for --method reasoner, which estimates probabilities.")


def _resolved(items: list[WinogradItem], options: dict[str, Any]) -> Evaluation[list[RuleAnswer]]:
    """Resolve all items, by the patterns or by the model of --mapper through the journal."""
    if options["method"] == "reasoner" and (options["mapper"] or options["folder"]):
        raise click.UsageError("--method reasoner takes neither --mapper nor --theories.")
    _check_pair_consistent(options)
    method = _method(options)
    # Only a model's answers are stored.
    if options["mapper"] is None:
        if options["pair_consistent"]:
            return hapax.resolve_schema_pairs(items, method)
        return hapax.resolve_schemas(items, options["folder"], method=method)
    with open_kb(options["database"]) as kb:
        opening = opening_options(None, options, open_journal(kb, options))
        return hapax.resolve_schemas(items, options["folder"], kb=kb, mapper=options["mapper"], opening=opening)


@click.command()
@click.argument("sentence")
@click.option(
    "-o", "--option", "options", multiple=True, required=True, help="An entity that the pronoun can mean; give two."
)
@click.option("--pronoun", default="", help="The pronoun to resolve, if the sentence has more than one.")
@with_method
@with_least
@with_theories
@with_json
def prove(sentence: str, options: tuple[str, ...], as_json: bool, **chosen: Any) -> None:
    """Resolve the pronoun of a sentence and print the proof.

    \b
    hapax evaluate winograd prove "The ant could not lift the crumb because it was too heavy." -o ant -o crumb
    """
    if len(options) != 2:
        raise click.UsageError("Give two options: -o ant -o crumb.")
    folder = chosen["folder"]
    if chosen["method"] == "reasoner" and folder is not None:
        raise click.UsageError("--method reasoner does not take --theories.")
    # Of exactly two, as the API wants it; the option itself may be given any number of times.
    pair = (options[0], options[1])
    resolution = hapax.resolve_pronoun(
        sentence, pair, pronoun=chosen["pronoun"], theories=folder, method=_method(chosen)
    )
    if as_json:
        answer = None if resolution.answer is None else pair[resolution.answer]
        print_json({"answer": answer, "lack": resolution.lack, "lines": resolution.lines(pair)})
        return
    for line in resolution.lines(pair):
        out.print(escape(line), soft_wrap=True)


def _method(options: dict[str, Any]) -> str:
    """The method as the API takes it: with the least probability behind a colon, if one is given."""
    if options["least"] is None:
        return str(options["method"])
    if options["method"] != "reasoner":
        raise click.UsageError("--least is for --method reasoner, which estimates probabilities.")
    return f"{options['method']}:{options['least']}"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--source", "sources", multiple=True, help="Use only items of these sources, such as CR-WSC-H.")
@click.option("--part", type=click.Choice(PARTS), help="Learn from one half of the schemas.")
@click.option(
    "--whole",
    "wholes",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Learn from all schemas of this file, too, whatever --part.",
)
@click.option("--proposer", help="Model that proposes rules for sentences without proof, beside induction.")
@click.option(
    "--out", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for the files."
)
@with_skip_faulty
@with_skip_leaked
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def learn(paths: tuple[Path, ...], sources: tuple[str, ...], folder: Path, **options: Any) -> None:
    """Learn weights and rules for the reasoner from labelled schemas, with a learning curve.

    Rules are proposed by induction, and by the model of --proposer, and taken if they hold in enough sentences, fail
    in no source and for no type of entity, and say something new. All figures are of families that a fit did not see.
    Writes weights.toml, acquired.rules and review.csv, a sheet of the rules in words for a person. Run again with the
    same folder, it does not take the rules to which the person has answered no on that sheet.

    docs/winograd-theories.md says where the files of sentences are from.

    \b
    hapax evaluate winograd learn dpr_train.jsonl --part read --out lesson
    hapax evaluate winograd learn dpr_train.jsonl --part read --whole examples/schemas/written.jsonl --out lesson
    """
    from hapax.evaluation.winograd.reasoner.lessons import learn_from_schemas, write_lesson

    # The folder of an earlier lesson has the sheet on which a person answered.
    review = folder if folder.is_dir() else None
    items = [item for item in _read_items(paths, sources, options) if options["part"] in (None, part_of(item))]
    items += hapax.read_schemas(*options["wholes"])
    if options["proposer"] is None:
        evaluation = learn_from_schemas(items, review=review)
    else:
        with open_kb(options["database"]) as kb:
            opening = opening_options(None, options, open_journal(kb, options))
            evaluation = learn_from_schemas(items, opening=opening, proposer=options["proposer"], review=review)
    write_lesson(evaluation, folder)
    print_result(evaluation, options["as_json"])
