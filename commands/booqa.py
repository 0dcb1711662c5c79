"""`evaluate booqa`: boolean questions built from a corpus of triples, and scorers that answer them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.console import err, print_table
from commands.entailment import FILE, FOLDER, open_measure, open_scorer, with_model_options, with_patterns, with_scorers
from commands.options import open_kb, together, with_json, with_queue
from grammar.words import counted

if TYPE_CHECKING:
    from evaluation.booqa.premises import Asked
    from evaluation.booqa.scoring import Method
    from evaluation.entailment.graph_files import Neighbours, Smoothing
    from evaluation.entailment.lexicon import SenseChoice
    from kb.store import KnowledgeBase

with_corpus_options = together(
    click.option(
        "--language", type=click.Choice(["EN", "ZH"]), default="EN", show_default=True, help="Language of the corpus."
    ),
    click.option("--days", type=click.IntRange(1, 366), default=3, show_default=True, help="Length of a time slice."),
    click.option("--lexicon", default="", help="WordNet such as oewn:2024; default: the only one of the language."),
)


@click.group()
def booqa() -> None:
    """Build BoOQA from a corpus of triples, and let scorers answer its questions.

    \b
    hapax evaluate booqa build triples.jsonl --out booqa
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer graph:graphs --scorer frequency
    """


@booqa.command()
@click.argument("triples", nargs=-1, required=True, type=FILE)
@click.option("--out", required=True, type=FOLDER, help="Folder for dev.jsonl, test.jsonl and report.json.")
@with_corpus_options
@click.option(
    "--unit",
    type=click.Choice(["triple", "sentence", "document"]),
    default="document",
    show_default=True,
    help="What mentions of an entity pair are counted by.",
)
@click.option(
    "--pair-from",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    help="Mentions of a pair in a slice, at least.",
)
@click.option(
    "--pair-below", type=click.IntRange(0), default=30, show_default=True, help="Fewer than these; 0: no limit."
)
@click.option(
    "--predicate-from",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Occurrences of a predicate in the corpus, at least.",
)
@click.option("--predicate-below", type=click.IntRange(0), default=0, help="Fewer than these; 0: no limit.")
@click.option(
    "--negatives", type=click.IntRange(1), default=2, show_default=True, help="Negatives of a positive at most."
)
@click.option("--sample", type=click.IntRange(1), default=40_000, show_default=True, help="Positives in dev and test.")
@click.option(
    "--frequency-map/--no-frequency-map",
    default=True,
    show_default=True,
    help="Make negatives as frequent as positives.",
)
@click.option(
    "--senses",
    default="first",
    show_default=True,
    help="Which sense of a word is replaced: first (WordNet's order), all, critic (by -m), or a file.",
)
@with_model_options
@with_json
def build(triples: tuple[Path, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Build questions: what the corpus says, and hyponyms of it that it never says of the same two entities.

    A line of the corpus is a triple with its types, date and document, or a sentence of the release. Without --senses
    the first sense in WordNet is meant, whatever the sentence; the release asked a model. docs/booqa.md tells the
    forms.

    \b
    hapax evaluate booqa build triples.jsonl --out booqa --seed 7
    hapax evaluate booqa build triples.jsonl --out booqa --senses critic -m hf:google/flan-t5-xl
    """
    from evaluation.booqa.build import BuildSettings, Words, build_into
    from evaluation.booqa.filters import Between, Unit
    from evaluation.entailment.lexicon import Lexicon

    same = ("language", "days", "negatives", "sample", "frequency_map", "seed")
    settings = BuildSettings(
        unit=Unit(options["unit"]),
        pair=Between(options["pair_from"], options["pair_below"]),
        predicate=Between(options["predicate_from"], options["predicate_below"]),
        **{name: options[name] for name in same},
    )
    lexicon = Lexicon.open(options["lexicon"], options["language"])
    with open_kb(options["database"]) as kb, err.status("Building"):
        built = build_into(out, triples, Words(lexicon, _senses(options, kb)), settings)
    if as_json:
        click.echo(json.dumps(built.to_json(settings), ensure_ascii=False))
        return
    print_table(("step", "left", "dropped"), built.rows())
    err.print(f"{counted(sum(map(len, built.sets.values())), 'question')} in {out}", markup=False)


@booqa.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--corpus", multiple=True, required=True, type=FILE, help="The triples that the questions are from.")
@with_scorers(("frequency", "null"), "frequency (of the corpus), null, ")
@click.option(
    "--context",
    type=click.Choice(["triple", "sentence", "documents"]),
    default="triple",
    show_default=True,
    help="What premises are: triples of the same entities, their sentences, or sentences of similar documents.",
)
@click.option(
    "--set",
    "chosen",
    type=click.Choice(["dev", "test", "both"]),
    default="both",
    show_default=True,
    help="Which questions; both: every set in the folder.",
)
@click.option(
    "--premises", type=click.IntRange(1), default=3200, show_default=True, help="Premises of a question at most."
)
@click.option("--smooth-premise", default="", help="Stand-ins in graphs: hypernym, hyponym, or lm:FILE.")
@click.option("--smooth-hypothesis", default="", help="The same for hypotheses.")
@click.option("--neighbours", type=click.IntRange(1), default=4, show_default=True, help="Stand-ins of a predicate.")
@with_patterns
@click.option("--train", multiple=True, type=FILE, help="Pairs that prior counts.")
@click.option("--out", type=FOLDER, help="Folder for curves and scores.")
@click.option("--pairs", type=FOLDER, help="Folder for every premise with its question, for scorers elsewhere.")
@with_corpus_options
@with_model_options
@with_queue
@with_json
def score(folder: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    """Answer each question by the premise that entails it most, and measure how true answers are told from false ones.

    Premises are what the corpus says of the same two entities in the same slice.

    \b
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer frequency --scorer graph:graphs
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer critic -m hf:google/flan-t5-xl --out answers
    """
    from evaluation.booqa import scoring

    asked = _asked(folder, options)
    if options["pairs"] is not None:
        written = sum(scoring.write_pairs(some, options["pairs"] / f"pairs-{name}.txt") for name, some in asked.items())
        err.print(f"{counted(written, 'pair')} in {options['pairs']}", markup=False)
    with open_kb(options["database"]) as kb, err.status("Scoring"):
        methods = [_method(one, kb, options) for one in dict.fromkeys(options["named"])]
        answers = list(scoring.measure(methods, asked, options["seed"]))
    if out is not None:
        scoring.write_answers(answers, out)
    if as_json:
        click.echo(json.dumps(scoring.to_json(answers)))
        return
    print_table(scoring.COLUMNS, scoring.rows(answers))
    err.print(scoring.premises_told(asked), markup=False)


def _asked(folder: Path, options: Mapping[str, Any]) -> dict[str, Sequence[Asked]]:
    """The questions with their premises by set; the corpus is read once for all of them."""
    from collections import Counter

    from evaluation.booqa.corpus import sentences
    from evaluation.booqa.premises import Asking, Context, ask
    from evaluation.booqa.records import read_set
    from evaluation.entailment.metrics import refuse_one_label

    sets = {name: some for name, some in read_set(folder).items() if options["chosen"] in (name, "both")}
    if not sets:
        raise click.UsageError(f"{folder} has no set {options['chosen']}.")
    for name, some in sets.items():
        refuse_one_label([one.label for one in some], f"{folder}, set {name}")
    asking = Asking(options["language"], Context(options["context"]), options["premises"], seed=options["seed"])
    corpus = sentences(options["corpus"], options["days"], Counter())
    found = iter(ask([one for some in sets.values() for one in some], corpus, asking))
    return {name: [next(found) for _ in some] for name, some in sets.items()}


def _method(name: str, kb: KnowledgeBase, options: Mapping[str, Any]) -> Method:
    from evaluation.booqa.premises import Context
    from evaluation.booqa.scoring import BestPremise, Frequency, Null
    from evaluation.entailment.graph_files import GraphScorer

    if name == "null":
        return Null()
    if name == "frequency":
        return Frequency()
    scorer = open_scorer(name, kb, options)
    if isinstance(scorer, GraphScorer):
        if options["context"] != "triple":
            raise click.UsageError("Entailment graphs hold predicates, not sentences: leave --context at triple.")
        scorer = replace(scorer, smoothing=_smoothing(options))
    return BestPremise(scorer, Context(options["context"]))


def _smoothing(options: Mapping[str, Any]) -> Smoothing:
    from evaluation.entailment.graph_files import Smoothing

    return Smoothing(*(_neighbours(options[name], options) for name in ("smooth_premise", "smooth_hypothesis")))


def _neighbours(name: str, options: Mapping[str, Any]) -> Neighbours | None:
    from evaluation.entailment.graph_files import read_neighbours
    from evaluation.entailment.lexicon import Lexicon, Way, neighbours

    if not name:
        return None
    if name.startswith("lm:"):
        return read_neighbours(Path(name.removeprefix("lm:")), options["neighbours"])
    if name not in tuple(Way):
        raise click.UsageError(f"No stand-ins {name}: choose hypernym, hyponym or lm:FILE.")
    return neighbours(Lexicon.open(options["lexicon"], options["language"]), Way(name), options["neighbours"])


def _senses(options: Mapping[str, Any], kb: KnowledgeBase) -> SenseChoice:
    from evaluation.booqa.negatives import senses_by_critic, senses_from_file
    from evaluation.entailment.lexicon import every_sense, first_sense

    known: dict[str, SenseChoice] = {"first": first_sense, "all": every_sense}
    name = options["senses"]
    if name == "critic":
        return senses_by_critic(open_measure("critic", kb, options))
    return known[name] if name in known else senses_from_file(Path(name))
