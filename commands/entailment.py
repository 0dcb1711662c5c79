"""`evaluate entailment`: entailments between predicates, and whether a scorer knows their direction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hapax.commands.console import err, print_result, print_table
from hapax.commands.options import (
    F,
    Finite,
    open_journal,
    open_kb,
    opening_options,
    read_library,
    together,
    with_budget,
    with_database,
    with_dry_run,
    with_json,
    with_opening,
    with_queue,
    with_rules,
)
from hapax.grammar.words import counted

if TYPE_CHECKING:
    from hapax.evaluation.entailment.pairs import EntailmentPair
    from hapax.evaluation.entailment.scorers import EntailmentScorer, Measure
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.calls import JournaledLikelihood

SCORERS = (
    "critic, likelihood, encoder, random, frequency, prior, scores:FILE, graph:PATH[@SIMILARITY], wordnet[:LEXICON]"
)
"""The values of --scorer."""

DRAWS_SHOWN = 10
"""Draws that `train` lists, the best first."""

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

with_files = click.argument("files", nargs=-1, required=True, type=FILE)


def with_scorers(default: tuple[str, ...], others: str = "") -> Callable[[F], F]:
    """The option --scorer; `others` are its values beside `SCORERS`."""
    description = f"{others}{SCORERS}; repeat the option to compare scorers."
    return click.option("--scorer", "named", multiple=True, default=default, show_default=True, help=description)


def with_model(description: str) -> Callable[[F], F]:
    """The option --model with this help text."""
    return click.option("-m", "--model", default="embedded", show_default=True, help=description)


with_model_options = together(
    with_model("Model for critic, likelihood and encoder."), with_opening, with_budget, with_database
)


def with_training_pairs(description: str) -> Callable[[F], F]:
    """The option --train with this help text."""
    return click.option("--train", multiple=True, type=FILE, help=description)


with_at_least = click.option(
    "--at-least", type=Finite(0, 1), default=0.5, show_default=True, help="Ignore entailments with a lower score."
)

with_patterns = click.option(
    "--patterns",
    type=click.Choice(["directional", "symmetric", "original"]),
    default="directional",
    show_default=True,
    help="Prompts of Schmitt and Schütze that a model judges or learns from.",
)


@click.group()
def entailment() -> None:
    """Measure directional predicate entailment on LevyHolt, SherLIiC and similar data sets.

    \b
    hapax evaluate entailment data train.txt dev.txt --out subsets
    hapax evaluate entailment score dev.txt --scorer critic --scorer prior --train train.txt
    """


@entailment.command()
@with_files
@click.option("--out", type=FOLDER, help="Folder for the subsets of each split.")
@click.option(
    "--seed", default=0, show_default=True, help="Seed for assigning pairs whose converse is in another split."
)
@with_json
def data(files: tuple[Path, ...], out: Path | None, seed: int, as_json: bool) -> None:
    """Count the four sub-groups of each split, after splitting again to keep each pair with its converse.

    Each file is a split and gives it its name. --out writes the new splits, all pairings of sub-groups, and a
    hypothesis-only twin of each. docs/entailment.md describes the file formats.

    \b
    hapax evaluate entailment data train.txt dev.txt
    hapax evaluate entailment data train.txt dev.txt --seed 7 --out subsets
    """
    from hapax.evaluation.entailment.datasets import DataReport, read_splits, write_subsets

    report = DataReport.of(read_splits(files), seed)
    if out is not None:
        written = write_subsets(report.splits, out)
        err.print(f"{counted(written, 'file')} in {out}", markup=False)
    print_result(report.result, as_json)


@entailment.command()
@with_files
@with_scorers(("critic",))
@with_patterns
@click.option(
    "--shown",
    type=click.Choice(["both", "hypothesis", "premise"]),
    default="both",
    show_default=True,
    help="Sides of a pair that a scorer sees; both: also measure the hypothesis alone.",
)
@with_training_pairs("Pairs that frequency and prior count; required by these scorers.")
@click.option("--out", type=FOLDER, help="Folder for the curves (PNG, SVG, CSV, TSV).")
@with_model_options
@with_queue
@with_json
def score(files: tuple[Path, ...], out: Path | None, as_json: bool, **options: Any) -> None:
    """Measure scorers on each subset, with whole pairs and with hypotheses alone, to separate entailment from artefact.

    Answers of models are kept in the journal of --db, so no sentence is asked twice.

    \b
    hapax evaluate entailment score dev.txt --scorer random --scorer prior --train train.txt
    hapax evaluate entailment score dev.txt --scorer critic -m hf:google/flan-t5-xl --out curves
    """
    from hapax.evaluation.entailment import report
    from hapax.evaluation.entailment.datasets import read_splits
    from hapax.evaluation.entailment.metrics import refuse_one_label
    from hapax.evaluation.entailment.scorers import VisibleSides

    pairs = list(chain.from_iterable(read_splits(files).values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, files)))  # before any model is asked
    if options["train"]:
        _warn_of_leaks(list(chain.from_iterable(read_splits(options["train"]).values())), pairs)
    with open_kb(options["database"]) as kb, err.status("Scoring"):
        scorers = [open_scorer(name, kb, options) for name in dict.fromkeys(options["named"])]
        # Measured to the end before anything is written: a budget that ends here leaves no partial curves.
        results = list(report.measure(scorers, pairs, VisibleSides(options["shown"]), options["seed"]))
    if out is not None:
        report.write_curves(results, out)
    print_result(report.experiment_result(results), as_json)


def _warn_of_leaks(training: Sequence[EntailmentPair], measured: Sequence[EntailmentPair]) -> None:
    """Warn if pairs or their converses are in both sets: after training on the converse, no test of the direction."""
    from hapax.evaluation.entailment.groups import leaks

    if crossing := leaks({"training": training, "measured": measured}):
        leaking = counted(crossing, "pair is", "pairs are")
        err.print(
            f"[yellow]warning[/] {leaking} in both the training and the measured files, unchanged or as the converse. "
            "Split the files again with `hapax evaluate entailment data ... --out FOLDER`.",
            soft_wrap=True,
        )


def open_scorer(name: str, kb: KnowledgeBase, options: Mapping[str, Any]) -> EntailmentScorer:
    """The scorer of this name. Raises click.UsageError for an unknown name or a missing option."""
    from hapax.evaluation.entailment import scorers
    from hapax.evaluation.entailment.datasets import read_splits
    from hapax.evaluation.entailment.prompts import Direction

    without_model = _without_model(name, options)
    if without_model is not None:
        return without_model
    if name == "random":
        return scorers.RandomScorer(options["seed"])
    if name in ("frequency", "prior"):
        if not options["train"]:
            raise click.UsageError(f"--scorer {name} counts training pairs: name their files with --train.")
        training = list(chain.from_iterable(read_splits(options["train"]).values()))
        return scorers.FrequencyScorer.of(training) if name == "frequency" else scorers.PriorScorer.of(training)
    if name in ("critic", "likelihood"):
        measure = open_measure(name, kb, options)
        return scorers.PatternScorer(f"{name} {options['model']}", measure, Direction(options["patterns"]))
    if name == "encoder":
        return _encoder(kb, options)
    raise click.UsageError(f"There is no scorer {name}. Choose {SCORERS}.")


def _encoder(kb: KnowledgeBase, options: Mapping[str, Any]) -> EntailmentScorer:
    """The scorer of an encoder that runs in this process and keeps its answers in the journal."""
    from hapax.evaluation.entailment.scorers import LikenessScorer
    from hapax.llm_oracle.backends.encoder import CLOSE, OPEN, EncoderSimilarity
    from hapax.llm_oracle.budget import FREE
    from hapax.llm_oracle.calls import JournaledLikelihood

    kind, _, source = options["model"].partition(":")
    if kind != "hf" or not source:
        raise click.UsageError("--scorer encoder needs a Hugging Face encoder: -m hf:NAME_OR_PATH.")
    model = EncoderSimilarity.load(source, options["device"], options["dtype"])
    journal = open_journal(kb, options)
    journal.prices[model.identity.name] = FREE  # it runs in this process
    return LikenessScorer(f"encoder {source}", _per_token(JournaledLikelihood(model, journal)), (OPEN, CLOSE))


def _per_token(ranker: JournaledLikelihood) -> Measure:
    return lambda texts: [likelihood.per_token for likelihood in ranker.log_likelihoods(texts)]


def _without_model(name: str, options: Mapping[str, Any]) -> EntailmentScorer | None:
    """A scorer that asks no model (a file of scores, entailment graphs, WordNet); None for other names."""
    kind, _, argument = name.partition(":")
    if kind == "scores" and argument:
        from hapax.evaluation.entailment.scorers import FileScorer

        return FileScorer(Path(argument))
    if kind == "graph" and argument:
        from hapax.evaluation.entailment.graph_files import GraphScorer

        path, _, block = argument.partition("@")  # as in graph:PATH@SIMILARITY
        return GraphScorer(path, block)
    if kind == "wordnet":
        from hapax.evaluation.entailment.lexicon import Lexicon, WordNetScorer

        return WordNetScorer(Lexicon.open(argument or options.get("lexicon", ""), options.get("language", "EN")))
    return None


def open_measure(role: str, kb: KnowledgeBase, options: Mapping[str, Any]) -> Measure:
    """A model's P(yes) or log-likelihood per token of sentences, kept in the journal."""
    from hapax.llm_oracle.calls import JournaledCritic, JournaledLikelihood
    from hapax.llm_oracle.registry import open_model

    journal = open_journal(kb, options)
    model = open_model(options["model"], role, opening_options(None, options, journal))
    if role == "critic":
        critic = JournaledCritic(model, journal)
        return lambda texts: [answer.probability for answer in critic.probabilities(texts)]
    return _per_token(JournaledLikelihood(model, journal))


@entailment.command()
@with_files
@with_rules
@with_database
def facts(files: tuple[Path, ...], paths: tuple[Path, ...], database: str) -> None:
    """Store entailments between predicates as facts `entails(P, Q, Score)`, for `check`, `query --entail` and `why`.

    Lines are `premise TAB hypothesis TAB score`; a premise is an atom such as shopped_in(Person X, Shop Y). Types that
    the rules declare may be omitted.

    \b
    hapax evaluate entailment facts edges.tsv --db hapax.db
    """
    from hapax.engine.entailment.graph import read_edges, store_edges

    library = read_library(paths)
    # All files are read before the knowledge base is opened: a faulty line stores nothing.
    entailments = list(chain.from_iterable(read_edges(file, library) for file in files))
    with open_kb(database) as kb:
        stored = store_edges(kb, entailments)
    trivial = len(entailments) - stored
    remark = f"; skipped {counted(trivial, 'line')}, since every atom entails itself" if trivial else ""
    err.print(f"{counted(stored, 'entailment')} in {database}{remark}", markup=False, soft_wrap=True)


@entailment.command()
@with_at_least
@click.option(
    "--form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="Chains and paraphrases as text, or the graph for Mermaid or Graphviz.",
)
@click.option("--out", type=FOLDER, help="Folder for the plot (PNG, SVG, CSV).")
@with_database
@with_json
def graph(at_least: float, form: str, out: Path | None, database: str, as_json: bool) -> None:
    """Show the transitive closure of the stored entailments: chains of predicates, and paraphrases (its cycles).

    \b
    hapax evaluate entailment graph
    hapax evaluate entailment graph --form mermaid
    hapax evaluate entailment graph --at-least 0.8 --out figures
    """
    from hapax.engine.entailment.graph import EntailmentGraph, edges
    from hapax.engine.inference.session import PrologSession
    from hapax.evaluation.entailment import graphs

    begun_by = "hapax evaluate entailment facts"
    with open_kb(database, read_only=True, begun_by=begun_by) as kb, PrologSession() as session:
        stored = EntailmentGraph(edges(kb, at_least), session)
        if out is not None:
            graphs.write_plot(stored, out)
        if as_json:
            click.echo(json.dumps(graphs.to_json(stored), ensure_ascii=False))
        elif form == "text":
            click.echo("\n".join(graphs.lines(stored)))
        else:
            click.echo(graphs.drawing_text(stored, form))


@entailment.command()
@with_rules
@with_model("Model that judges the sentences.")
@with_at_least
@with_dry_run
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def predicates(paths: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Ask a model which predicates of the rules entail which; store what it affirms as facts `entails(P, Q, Score)`.

    Every two predicates whose arguments can be matched by type are put to the model in their own sentences. The score
    is (1 + P(yes) of the best pattern - P(yes) of the best antipattern) / 2.

    \b
    hapax evaluate entailment predicates --rules my.rules --dry-run
    hapax evaluate entailment predicates --rules my.rules -m hf:google/flan-t5-xl --at-least 0.8
    """
    from hapax.engine.entailment.graph import store_edges
    from hapax.evaluation.entailment.predicates import candidates, score_candidates

    library = read_library(paths)
    pairs = list(candidates(library))
    if options["dry_run"]:
        click.echo(
            json.dumps({"pairs": len(pairs)})
            if as_json
            else f"{counted(len(pairs), 'pair')} of predicates, up to 8 sentences each"
        )
        return
    with open_kb(options["database"]) as kb, err.status("Scoring"):
        edges = score_candidates(pairs, library, open_measure("critic", kb, options))
        strong = [edge for edge in edges if edge.score >= options["at_least"]]
        strong.sort(key=lambda edge: -edge.score)
        store_edges(kb, strong)
    if as_json:
        entailments = []
        for edge in strong:
            atoms = {"premise": str(edge.premise), "hypothesis": str(edge.hypothesis)}
            entailments.append({**atoms, "score": edge.score})
        click.echo(json.dumps({"pairs": len(pairs), "entailments": entailments}, ensure_ascii=False))
        return
    rows = [(f"{edge.score:.2f}", str(edge.premise), str(edge.hypothesis)) for edge in strong]
    print_table(("score", "premise", "hypothesis"), rows)
    err.print(f"{len(strong)} of {counted(len(pairs), 'pair')} stored in {options['database']}", markup=False)


@entailment.command()
@click.argument("train_file", metavar="TRAIN", type=FILE)
@click.argument("dev_file", metavar="DEV", type=FILE)
@click.option("--base", required=True, help="Checkpoint to start from: a folder, or a name such as roberta-base.")
@click.option("--out", required=True, type=FOLDER, help="Folder for this training.")
@click.option("--draws", type=click.IntRange(1), default=100, show_default=True, help="Sets of hyperparameters to try.")
@click.option("--epochs", type=click.IntRange(1), default=5, show_default=True, help="Passes over the training pairs.")
@click.option("--frozen", is_flag=True, help="Train only the classification head.")
@click.option("--hypothesis-only", is_flag=True, help="Train and measure without premises, to expose artefacts.")
@with_patterns
@click.option("--device", default="auto", show_default=True, help="Device to train on.")
@click.option("--seed", default=0, show_default=True, help="Seed of all random choices.")
def train(train_file: Path, dev_file: Path, out: Path, device: str, **options: Any) -> None:
    """Fine-tune an encoder or decoder on the prompts of Schmitt and Schütze, by the paper's protocol.

    Hyperparameters are drawn at random, each draw is trained and measured on DEV, and the weights of the draw with the
    best AUC50 are kept. After an interruption, run the same command again: it resumes after the last finished draw.

    \b
    hapax evaluate entailment train train.txt dev.txt --base roberta-base --out gauge
    hapax evaluate entailment train train.txt dev.txt --base roberta-base --out alone --hypothesis-only
    hapax evaluate entailment test gauge test.txt
    """
    from functools import partial

    from hapax.evaluation.entailment.pairs import read_pairs
    from hapax.evaluation.entailment.prompts import Direction
    from hapax.evaluation.entailment.tuning import TrainingFolder, TrainingProtocol
    from hapax.llm_oracle.finetuning import SentenceClassifier, TuningSettings

    _warn_of_leaks(read_pairs(train_file), read_pairs(dev_file))
    settings = TuningSettings(epochs=options["epochs"], frozen=options["frozen"], seed=options["seed"])
    direction = Direction(options["patterns"])
    training = TrainingFolder(out)
    load = partial(SentenceClassifier.load, device=device, seed=settings.seed)
    if not training.is_begun:
        with err.status("Loading the checkpoint"):
            load(options["base"])  # before the folder is bound to a checkpoint that cannot be loaded
    training.begin(
        TrainingProtocol(options["base"], direction, options["hypothesis_only"], options["draws"], settings),
        train_file,
        dev_file,
    )
    training.run((read_pairs(train_file), read_pairs(dev_file)), load, lambda line: err.print(line, markup=False))
    rows = []
    for result in training.results[:DRAWS_SHOWN]:
        draw = result.draw
        settings_cells = (f"{draw.learning_rate:.2g}", f"{draw.weight_decay:.2g}", str(draw.accumulated))
        measures = (result.auc50, result.auc_norm, result.f1)
        # Draws count from 0 in the folder, from 1 for people.
        rows.append((str(result.number + 1), *settings_cells, *(f"{measure:.3f}" for measure in measures)))
    columns = ("draw", "learning rate", "weight decay", "batches a step", "AUC50", "AUCnorm", "F1")
    print_table(columns, rows, title="The best draws, on dev")


@entailment.command("test")
@click.argument("folder", type=EXISTING_FOLDER)
@click.argument("test_file", metavar="TEST", type=FILE)
@click.option("--device", default="auto", show_default=True, help="Device to run the model on.")
@with_json
def test_(folder: Path, test_file: Path, device: str, as_json: bool) -> None:
    """Measure the best draw of a training on TEST, once.

    Its scores are written into the folder, for `score --scorer scores:FILE`.

    \b
    hapax evaluate entailment test gauge test.txt
    hapax evaluate entailment score test.txt --scorer scores:gauge/test-scores.txt
    """
    from functools import partial

    from hapax.evaluation.entailment.pairs import read_pairs
    from hapax.evaluation.entailment.tuning import TrainingFolder
    from hapax.llm_oracle.finetuning import SentenceClassifier

    figures = TrainingFolder(folder).test(
        test_file, read_pairs(test_file), partial(SentenceClassifier.load, device=device)
    )
    if as_json:
        click.echo(json.dumps(figures))
        return
    names = ("auc50", "auc_norm", "auc_rel", "f1")
    rows = [
        ("dev", *(f"{figures['dev'][name]:.3f}" for name in names)),
        ("test", *(f"{figures[name]:.3f}" for name in names)),
    ]
    print_table(("set", "AUC50", "AUCnorm", "AUCREL", "F1"), rows)
