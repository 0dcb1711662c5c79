"""`evaluate booqa`: build boolean questions from a corpus of triples, and answer them with scorers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.papers.entailment import (
    EXISTING_FOLDER,
    FILE,
    FOLDER,
    with_model_options,
)
from hapax.commands.papers.link_experiments import print_result
from hapax.commands.shared.common_options import with_json
from hapax.commands.shared.console import err
from hapax.commands.shared.declared import F, declared
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import asking, with_queue
from hapax.grammar.options import made
from hapax.grammar.writing.words import counted

with_corpus_options = declared(hapax.AnswerOptions, "language", "lexicon")


def with_count(name: str, default: int, description: str, lowest: int = 1) -> Callable[[F], F]:
    """An option with a whole number that is at least `lowest`."""
    return click.option(name, type=click.IntRange(lowest), default=default, show_default=True, help=description)


@click.group(cls=CommandGroup, path="evaluate.booqa.")
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
# The defaults are the parameters of the release.
@with_count("--pair-from", 15, "Fewest mentions of an entity pair in a slice.")
@with_count("--pair-below", 30, "Keep pairs with fewer mentions than this; 0: no limit.", lowest=0)
@with_count("--predicate-from", 30, "Fewest occurrences of a predicate in the corpus.")
@with_count("--predicate-below", 0, "Keep predicates with fewer occurrences than this; 0: no limit.", lowest=0)
@declared(hapax.BuildSettings, "negatives", "sample", "frequency_map")
@click.option(
    "--senses",
    type=click.Choice(["first", "critic"]),
    default="first",
    show_default=True,
    help="Sense of a word to replace: first (in WordNet), or the one that a critic (-m) chooses.",
)
@with_model_options
@with_json
def build(triples: tuple[Path, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Build questions: positives that the corpus states, and negatives with a hyponym that it never states.

    docs/papers/booqa.md describes the corpus and the steps.

    \b
    hapax evaluate booqa build triples.jsonl --out booqa
    hapax evaluate booqa build triples.jsonl --out booqa --senses critic -m hf:google/flan-t5-xl
    """

    settings = made(
        hapax.BuildSettings,
        options,
        pair=hapax.CountRange(options["pair_from"], options["pair_below"]),
        predicate=hapax.CountRange(options["predicate_from"], options["predicate_below"]),
    )
    words = hapax.QuestionWords(options["lexicon"] or "", options["senses"], options["model"])
    with asking(options, "Building") as (kb, opening, _):
        evaluation = hapax.build_questions(kb, triples, out, settings, words=words, opening=opening)
    print_result(evaluation, as_json)
    err.print(f"{counted(sum(map(len, evaluation.value.sets.values())), 'question')} in {out}", markup=False)


@booqa.command()
@click.argument("folder", type=EXISTING_FOLDER)
@click.option("--corpus", multiple=True, required=True, type=FILE, help="Triples that the questions were built from.")
@declared(
    hapax.AnswerOptions,
    *("scorers", "context", "chosen", "premises", "smooth_premise", "smooth_hypothesis", "neighbours"),
    *("patterns", "training"),
)
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

    answering = made(hapax.AnswerOptions, options)
    # With their premises, which the corpus is read for.
    sets = hapax.read_questions(folder, options["corpus"], answering, seed=options["seed"])
    # Before scoring: external scorers get the pairs even if a budget ends it.
    if options["pairs"] is not None:
        written = hapax.write_question_pairs(sets, options["pairs"])
        err.print(f"{counted(written, 'pair')} in {options['pairs']}", markup=False)
    with asking(options, "Scoring") as (kb, opening, _):
        evaluation = hapax.answer_questions(kb, sets, answering, opening)
    if out is not None:
        hapax.write_answers(evaluation, out)
    print_result(evaluation, as_json)
