"""`evaluate entailment` and `evaluate booqa`: entailments between predicates, and boolean questions for scorers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

import hapax
from hapax.commands.shared.common_options import opened, read_library, with_database, with_json, with_rules
from hapax.commands.shared.console import note, print_json, say, show
from hapax.commands.shared.declared import declared, of_program
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import asking, with_asking, with_budget, with_dry_run
from hapax.grammar.options import from_options
from hapax.grammar.writing.words import counted

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

with_files = click.argument("files", nargs=-1, required=True, type=FILE)
with_model = declared(hapax.ScorerOptions, "model")


@click.group(cls=CommandGroup, path="evaluate.entailment.")
def entailment() -> None:
    """Measure directional predicate entailment on LevyHolt, SherLIiC and similar data sets.

    \b
    hapax evaluate entailment data train.txt dev.txt --out subsets
    hapax evaluate entailment score dev.txt --scorer critic --scorer prior --train train.txt
    """


@entailment.command()
@with_files
@click.option("--out", type=FOLDER, help="Folder for the subsets of each split.")
@declared(hapax.split_entailments)
@with_json
def data(files: tuple[Path, ...], out: Path | None, seed: int) -> None:
    """Count the four sub-groups of each split, after splitting again to keep each pair with its converse.

    Each file is a split and gives it its name. --out writes the new splits, all pairings of sub-groups, and a
    hypothesis-only twin of each. docs/papers/entailment.md describes the file formats.

    \b
    hapax evaluate entailment data train.txt dev.txt
    hapax evaluate entailment data train.txt dev.txt --seed 7 --out subsets
    """
    # Pairs move between splits, so all files are read together.
    evaluation = hapax.split_entailments(*files, seed=seed)
    if out is not None:
        note(f"{counted(hapax.write_entailment_splits(evaluation, out), 'file')} in {out}")
    show(evaluation)


@entailment.command()
@with_files
@declared(hapax.EntailmentOptions, "scorers", "patterns")
@declared(hapax.EntailmentOptions, "sides")
@click.option("--no-twin", is_flag=True, help="Skip hypotheses alone, which halves the number of questions.")
@declared(hapax.EntailmentOptions, "released")
@declared(hapax.EntailmentOptions, "training")
@click.option("--out", type=FOLDER, help="Folder for the curves (PNG, SVG, CSV, TSV).")
@with_model
@with_dry_run
@with_asking
def score(files: tuple[Path, ...], out: Path | None, **options: Any) -> None:
    """Measure scorers on each subset, with whole pairs and with hypotheses alone, to separate entailment from artefact.

    Answers of models are kept in the journal of --db, so no sentence is asked twice.

    \b
    hapax evaluate entailment score dev.txt --scorer random --scorer prior --train train.txt
    hapax evaluate entailment score dev.txt --scorer critic -m hf:google/flan-t5-xl --out curves
    """
    scoring = from_options(hapax.EntailmentOptions, options, twin=not options["no_twin"])
    with asking(options, "Scoring") as (kb, opening, tell):
        # Measured to the end before anything is written: a budget that ends here leaves no partial curves.
        evaluation = hapax.score_entailments(kb, files, scoring, opening, progress=partial(tell, "Scoring sentences"))
    if out is not None:
        hapax.draw_entailments(evaluation, out)
    show(evaluation)


@entailment.command()
@with_files
@with_rules
@with_database
@with_json
def facts(files: tuple[Path, ...], paths: tuple[Path, ...], database: str) -> None:
    """Store entailments between predicates as facts `entails(P, Q, Score)`, for `check`, `query --entail` and `why`.

    Lines are `premise TAB hypothesis TAB score`; a premise is an atom such as shopped_in(Person X, Shop Y). Types that
    the rules declare may be omitted.

    \b
    hapax evaluate entailment facts edges.tsv --db hapax.db
    """
    # All files are read before the knowledge base is opened: a faulty line stores nothing.
    edges = hapax.read_entailments(read_library(paths), *files)
    stored = hapax.store_entailments(opened(), edges)
    trivial = len(edges) - stored
    print_json({"stored": stored, "skipped": trivial})
    remark = f"; skipped {counted(trivial, 'line')}, since every atom entails itself" if trivial else ""
    note(f"{counted(stored, 'entailment')} in {database}{remark}")


@entailment.command()
@with_rules
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that judges the sentences.")
@declared(hapax.judge_entailments)
@with_dry_run
@with_asking
def predicates(paths: tuple[Path, ...], **options: Any) -> None:
    """Ask a model which predicates of the rules entail which; store what it affirms as facts `entails(P, Q, Score)`.

    Asks about every two predicates whose arguments match by type. The score is (1 + P(yes) of the best pattern - P(yes)
    of the best antipattern) / 2.

    \b
    hapax evaluate entailment predicates --rules my.rules --dry-run
    hapax evaluate entailment predicates --rules my.rules -m hf:google/flan-t5-xl --at-least 0.8
    """
    library = read_library(paths)
    if options["dry_run"]:
        pairs = hapax.count_entailment_candidates(library)
        print_json({"pairs": pairs})
        say(f"{counted(pairs, 'pair')} of predicates, up to 8 sentences each")
        return
    with asking(options, "Scoring") as (kb, opening, _):
        judging = hapax.ScorerOptions(options["model"])
        judged = hapax.judge_entailments(kb, library, judging, opening, at_least=options["at_least"])
    show(judged)


@entailment.command()
@click.argument("folder", type=EXISTING_FOLDER)
@click.argument("dev_file", metavar="DEV", type=FILE)
@click.argument("test_file", metavar="TEST", type=FILE)
@declared(hapax.select_draw)
@with_json
def select(folder: Path, dev_file: Path, test_file: Path, draws: int) -> None:
    """Select the best draw of a fine-tuning on DEV, and measure it on TEST, once.

    FOLDER has a folder for each draw of hyperparameters, with dev.txt and test.txt: lines of `truth score`.

    \b
    hapax evaluate entailment select gauge dev.txt test.txt
    """
    show(hapax.select_draw(folder, dev_file, test_file, draws=draws))


# --- boolean questions -----------------------------------------------------------------------------------------------

with_corpus_options = declared(hapax.AnswerOptions, "language", "lexicon")


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
@declared(
    hapax.BuildSettings,
    *("pair_from", "pair_below", "predicate_from", "predicate_below", "negatives", "sample", "frequency_map"),
)
@declared(hapax.QuestionWords, "senses")
@with_model
@of_program
@with_budget
@with_database
@with_json
def build(triples: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Build questions: positives that the corpus states, and negatives with a hyponym that it never states.

    docs/papers/booqa.md describes the corpus and the steps.

    \b
    hapax evaluate booqa build triples.jsonl --out booqa
    hapax evaluate booqa build triples.jsonl --out booqa --senses critic -m hf:google/flan-t5-xl
    """
    settings = from_options(hapax.BuildSettings, options)
    words = hapax.QuestionWords(options["lexicon"] or "", options["senses"], options["model"])
    with asking(options, "Building") as (kb, opening, _):
        evaluation = hapax.build_questions(kb, triples, out, settings, words=words, opening=opening)
    show(evaluation)
    note(f"{counted(sum(map(len, evaluation.value.sets.values())), 'question')} in {out}")


@booqa.command("score")
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
@with_model
@with_asking
def answer(folder: Path, out: Path | None, **options: Any) -> None:
    """Answer each question by the premise that most entails it, and measure how well scores separate true from false.

    The premises of a question are what the corpus states of the same two entities in the same slice.

    \b
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer frequency --scorer graph:graphs
    hapax evaluate booqa score booqa --corpus triples.jsonl --scorer critic -m hf:google/flan-t5-xl --out answers
    """
    answering = from_options(hapax.AnswerOptions, options)
    # With their premises, which the corpus is read for.
    sets = hapax.read_questions(folder, options["corpus"], answering, seed=options["seed"])
    # Before scoring: external scorers get the pairs even if a budget ends it.
    if options["pairs"] is not None:
        written = hapax.write_question_pairs(sets, options["pairs"])
        note(f"{counted(written, 'pair')} in {options['pairs']}")
    with asking(options, "Scoring") as (kb, opening, _):
        evaluation = hapax.answer_questions(kb, sets, answering, opening)
    if out is not None:
        hapax.write_answers(evaluation, out)
    show(evaluation)
