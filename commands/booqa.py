"""`evaluate booqa`: build boolean questions from a corpus of triples, and answer them with scorers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hapax.commands.console import err, print_result
from hapax.commands.entailment import (
    EXISTING_FOLDER,
    FILE,
    FOLDER,
    open_measure,
    open_scorer,
    with_model_options,
    with_patterns,
    with_scorers,
    with_training_pairs,
)
from hapax.commands.options import F, open_kb, together, with_json, with_queue
from hapax.grammar.words import counted

if TYPE_CHECKING:
    from hapax.evaluation.booqa.premises import QuestionWithPremises
    from hapax.evaluation.booqa.scoring import AnswerScorer
    from hapax.evaluation.entailment.graph_files import Neighbours
    from hapax.evaluation.entailment.lexicon import SenseChoice
    from hapax.kb.store import KnowledgeBase

with_corpus_options = together(
    click.option(
        "--language", type=click.Choice(["EN", "ZH"]), default="EN", show_default=True, help="Language of the corpus."
    ),
    click.option("--days", type=click.IntRange(1, 366), default=3, show_default=True, help="Length of a time slice."),
    click.option("--lexicon", default="", help="WordNet such as oewn:2024; default: the only one for the language."),
)


def with_count(name: str, default: int, description: str, lowest: int = 1) -> Callable[[F], F]:
    """An option with a whole number that is at least `lowest`."""
    return click.option(name, type=click.IntRange(lowest), default=default, show_default=True, help=description)


@click.group()
def booqa() -> None:
    """Build BoOQA from a corpus of triples, and answer its questions with scorers.

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
    help="Unit in which mentions of an entity pair are counted.",
)
# The defaults are the parameters of the release.
@with_count("--pair-from", 15, "Fewest mentions of an entity pair in a slice.")
@with_count("--pair-below", 30, "Keep pairs with fewer mentions than this; 0: no limit.", lowest=0)
@with_count("--predicate-from", 30, "Fewest occurrences of a predicate in the corpus.")
@with_count("--predicate-below", 0, "Keep predicates with fewer occurrences than this; 0: no limit.", lowest=0)
@with_count("--negatives", 2, "Most negatives of a positive.")
@with_count("--sample", 40_000, "Number of positives in dev and test together.")
@click.option(
    "--frequency-map/--no-frequency-map",
    default=True,
    show_default=True,
    help="Draw negatives that are as frequent as positives.",
)
@click.option(
    "--senses",
    default="first",
    show_default=True,
    help="Sense of a word to replace: first (in WordNet), all, critic (chosen by -m), or a file.",
)
@with_model_options
@with_json
def build(triples: tuple[Path, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Build questions: positives that the corpus states, and negatives with a hyponym that it never states.

    A line of the corpus is a triple with its types, date and document, or a sentence of the release. By default words
    are taken in their first sense in WordNet, whatever the sentence; the release asked a model. docs/booqa.md describes
    the formats.

    \b
    hapax evaluate booqa build triples.jsonl --out booqa --seed 7
    hapax evaluate booqa build triples.jsonl --out booqa --senses critic -m hf:google/flan-t5-xl
    """
    from hapax.evaluation.booqa.build import BuildSettings, HyponymSource, build_into
    from hapax.evaluation.booqa.filters import Between, Unit
    from hapax.evaluation.entailment.lexicon import Lexicon

    same = ("language", "days", "negatives", "sample", "frequency_map", "seed")
    settings = BuildSettings(
        unit=Unit(options["unit"]),
        pair=Between(options["pair_from"], options["pair_below"]),
        predicate=Between(options["predicate_from"], options["predicate_below"]),
        **{name: options[name] for name in same},
    )
    lexicon = Lexicon.open(options["lexicon"], options["language"])
    with open_kb(options["database"]) as kb, err.status("Building"):
        built = build_into(out, triples, HyponymSource(lexicon, _senses(options, kb)), settings)
    print_result(built.result(settings), as_json)
    err.print(f"{counted(sum(map(len, built.sets.values())), 'question')} in {out}", markup=False)


@booqa.command()
@click.argument("folder", type=EXISTING_FOLDER)
@click.option("--corpus", multiple=True, required=True, type=FILE, help="Triples that the questions were built from.")
@with_scorers(("frequency", "null"), "frequency (of the corpus), null, ")
@click.option(
    "--context",
    type=click.Choice(["triple", "sentence", "documents"]),
    default="triple",
    show_default=True,
    help="Kind of premises: triples of the same entities, their sentences, or sentences of similar documents.",
)
@click.option(
    "--set",
    "chosen",
    type=click.Choice(["dev", "test", "both"]),
    default="both",
    show_default=True,
    help="Set of questions; both: every set in the folder.",
)
@with_count("--premises", 3200, "Most premises of a question.")
@click.option(
    "--smooth-premise", default="", help="Stand-ins for premises missing from a graph: hypernym, hyponym, or lm:FILE."
)
@click.option("--smooth-hypothesis", default="", help="Stand-ins for missing hypotheses, as above.")
@with_count("--neighbours", 4, "Most stand-ins of a predicate.")
@with_patterns
@with_training_pairs("Pairs that prior counts; required by this scorer.")
@click.option("--out", type=FOLDER, help="Folder for curves and scores.")
@click.option("--pairs", type=FOLDER, help="Folder for each premise with its question, for external scorers.")
@with_corpus_options
@with_model_options
@with_queue
@with_json
def score(folder: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    """Answer each question by the premise that most entails it, and measure how well scores separate true from false.

    The premises of a question are what the corpus states of the same two entities in the same slice.

    \b
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer frequency --scorer graph:graphs
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer critic -m hf:google/flan-t5-xl --out answers
    """
    from hapax.evaluation.booqa import scoring

    sets = _question_sets(folder, options)
    if options["pairs"] is not None:
        written = 0
        for name, questions in sets.items():
            written += scoring.write_pairs(questions, options["pairs"] / f"pairs-{name}.txt")
        err.print(f"{counted(written, 'pair')} in {options['pairs']}", markup=False)
    with open_kb(options["database"]) as kb, err.status("Scoring"):
        methods = [_method(name, kb, options) for name in dict.fromkeys(options["named"])]
        answers = list(scoring.measure(methods, sets, options["seed"]))
    if out is not None:
        scoring.write_answers(answers, out)
    print_result(scoring.experiment_result(answers, sets), as_json)


def _question_sets(folder: Path, options: Mapping[str, Any]) -> dict[str, Sequence[QuestionWithPremises]]:
    """The questions with their premises by set; the corpus is read once for all of them."""
    from collections import Counter

    from hapax.evaluation.booqa.corpus import sentences
    from hapax.evaluation.booqa.premises import Context, PremiseSettings, ask
    from hapax.evaluation.booqa.records import read_set
    from hapax.evaluation.entailment.metrics import refuse_one_label

    sets = {name: questions for name, questions in read_set(folder).items() if options["chosen"] in (name, "both")}
    if not sets:
        raise click.UsageError(f"{folder} contains no set {options['chosen']}.")
    for name, questions in sets.items():  # before the corpus is read and any model is asked
        refuse_one_label([question.label for question in questions], f"{folder}, set {name}")
    context = Context(options["context"])
    settings = PremiseSettings(options["language"], context, options["premises"], seed=options["seed"])
    corpus = sentences(options["corpus"], options["days"], Counter())
    # The answers come in the order of the questions, so each set takes as many as it has.
    with_premises = iter(ask(list(chain.from_iterable(sets.values())), corpus, settings))
    return {name: list(islice(with_premises, len(questions))) for name, questions in sets.items()}


def _method(name: str, kb: KnowledgeBase, options: Mapping[str, Any]) -> AnswerScorer:
    from hapax.evaluation.booqa.premises import Context
    from hapax.evaluation.booqa.scoring import BestPremise, Frequency, Null
    from hapax.evaluation.entailment.graph_files import GraphScorer, Smoothing

    # Before `open_scorer`, whose frequency counts training pairs; this one counts the corpus.
    if name == "null":
        return Null()
    if name == "frequency":
        return Frequency()
    scorer = open_scorer(name, kb, options)
    if isinstance(scorer, GraphScorer):
        if options["context"] != "triple":
            raise click.UsageError("Entailment graphs contain predicates, not sentences: use --context triple.")
        premise = _neighbours(options["smooth_premise"], options)
        hypothesis = _neighbours(options["smooth_hypothesis"], options)
        scorer = replace(scorer, smoothing=Smoothing(premise, hypothesis))
    return BestPremise(scorer, Context(options["context"]))


def _neighbours(name: str, options: Mapping[str, Any]) -> Neighbours | None:
    from hapax.evaluation.entailment.graph_files import read_neighbours
    from hapax.evaluation.entailment.lexicon import Lexicon, ReplacementDirection, neighbours

    if not name:
        return None
    if name.startswith("lm:"):
        return read_neighbours(Path(name.removeprefix("lm:")), options["neighbours"])
    if name not in tuple(ReplacementDirection):
        raise click.UsageError(f"There are no stand-ins {name}. Choose hypernym, hyponym or lm:FILE.")
    lexicon = Lexicon.open(options["lexicon"], options["language"])
    return neighbours(lexicon, ReplacementDirection(name), options["neighbours"])


def _senses(options: Mapping[str, Any], kb: KnowledgeBase) -> SenseChoice:
    from hapax.evaluation.booqa.negatives import senses_by_critic, senses_from_file
    from hapax.evaluation.entailment.lexicon import every_sense, first_sense

    choices: dict[str, SenseChoice] = {"first": first_sense, "all": every_sense}
    name = options["senses"]
    if name == "critic":
        return senses_by_critic(open_measure("critic", kb, options))
    return choices[name] if name in choices else senses_from_file(Path(name))
