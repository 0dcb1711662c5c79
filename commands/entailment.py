"""`evaluate entailment`: which predicate entails which, and whether a scorer knows the direction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.console import err, print_table
from commands.options import (
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
from grammar.words import counted

if TYPE_CHECKING:
    from evaluation.entailment.pairs import EntailmentPair
    from evaluation.entailment.scorers import Measure, Scorer
    from kb.store import KnowledgeBase

SCORERS = (
    "critic, likelihood, encoder, random, frequency, prior, scores:FILE, graph:PATH[@SIMILARITY], wordnet[:LEXICON]"
)
"""What --scorer takes."""

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

with_files = click.argument("files", nargs=-1, required=True, type=FILE)


def with_scorers(default: tuple[str, ...], others: str = "") -> Callable[[F], F]:
    """The option --scorer; `others`: what it takes beside `SCORERS`."""
    told = f"{others}{SCORERS}; several are compared."
    return click.option("--scorer", "named", multiple=True, default=default, show_default=True, help=told)


with_model_options = together(
    click.option(
        "-m", "--model", default="embedded", show_default=True, help="Model of critic, likelihood and encoder."
    ),
    with_opening,
    with_budget,
    with_database,
)

with_patterns = click.option(
    "--patterns",
    type=click.Choice(["directional", "symmetric", "original"]),
    default="directional",
    show_default=True,
    help="Which prompts of Schmitt and Schütze a model judges or learns from.",
)


@click.group()
def entailment() -> None:
    """Measure directional predicate entailment on LevyHolt, SherLIiC and their like.

    \b
    hapax evaluate entailment data train.txt dev.txt --out subsets
    hapax evaluate entailment score dev.txt --scorer critic --scorer prior --train train.txt
    """


@entailment.command()
@with_files
@click.option("--out", type=FOLDER, help="Folder for the subsets of each split.")
@click.option("--seed", default=0, show_default=True, help="Draws the split of pairs whose converse is in another.")
@with_json
def data(files: tuple[Path, ...], out: Path | None, seed: int, as_json: bool) -> None:
    """Count the four sub-groups of each split, and split again so that no pair is apart from its converse.

    Each file is a split, named by its name. --out writes the splits, all pairings of sub-groups, and the twin of each
    that shows the hypothesis only. docs/entailment.md tells the form of the files.

    \b
    hapax evaluate entailment data train.txt dev.txt
    hapax evaluate entailment data train.txt dev.txt --seed 7 --out subsets
    """
    from evaluation.entailment.datasets import DataReport, read_splits, write_subsets

    report = DataReport.of(read_splits(files), seed)
    if out is not None:
        written = write_subsets(report.splits, out)
        err.print(f"{counted(written, 'file')} in {out}", markup=False)
    if as_json:
        click.echo(json.dumps(report.to_json()))
        return
    for title, columns, rows in report.tables():
        print_table(columns, rows, title=title)
    err.print(report.note, markup=False, soft_wrap=True)


@entailment.command()
@with_files
@with_scorers(("critic",))
@with_patterns
@click.option(
    "--shown",
    type=click.Choice(["both", "hypothesis", "premise"]),
    default="both",
    show_default=True,
    help="What a scorer sees; both: and the hypothesis alone beside it.",
)
@click.option("--train", multiple=True, type=FILE, help="Pairs that frequency and prior count; needed by these two.")
@click.option("--out", type=FOLDER, help="Folder for the curves: PNG, SVG, CSV, TSV.")
@with_model_options
@with_queue
@with_json
def score(files: tuple[Path, ...], out: Path | None, as_json: bool, **options: Any) -> None:
    """Score premises and hypotheses, on each subset and with hypotheses alone: what is entailment, what is artefact.

    A model's answers go through the journal of --db, so that nothing is asked twice.

    \b
    hapax evaluate entailment score dev.txt --scorer random --scorer prior --train train.txt
    hapax evaluate entailment score dev.txt --scorer critic -m hf:google/flan-t5-xl --out curves
    """
    from evaluation.entailment import report
    from evaluation.entailment.datasets import read_splits
    from evaluation.entailment.metrics import refuse_one_label
    from evaluation.entailment.scorers import Shown

    pairs = [pair for split in read_splits(files).values() for pair in split]
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, files)))
    if options["train"]:
        _warn_of_leaks([pair for split in read_splits(options["train"]).values() for pair in split], pairs)
    with open_kb(options["database"]) as kb, err.status("Scoring"):
        scorers = [open_scorer(one, kb, options) for one in dict.fromkeys(options["named"])]
        results = list(report.measure(scorers, pairs, Shown(options["shown"]), options["seed"]))
    if out is not None:
        report.write_curves(results, out)
    if as_json:
        click.echo(json.dumps(report.to_json(results)))
        return
    print_table(report.COLUMNS, report.rows(results))
    found = dict.fromkeys(one.finding for one in results if one.finding)
    err.print("\n".join(f"{name}: {report.FINDINGS[name]}" for name in found), markup=False, soft_wrap=True)


def _warn_of_leaks(training: Sequence[EntailmentPair], measured: Sequence[EntailmentPair]) -> None:
    """A pair whose converse was learnt is no test of what is known of the direction."""
    from evaluation.entailment.groups import leaks

    if crossing := leaks({"training": training, "measured": measured}):
        told = counted(crossing, "pair stands", "pairs stand")
        err.print(
            f"[yellow]warning[/] {told} in the training and the measured files, as themselves or as their converse. "
            "`hapax evaluate entailment data ... --out FOLDER` splits anew.",
            soft_wrap=True,
        )


def open_scorer(name: str, kb: KnowledgeBase, options: Mapping[str, Any]) -> Scorer:
    """The scorer of this name, with the options that it needs."""
    from evaluation.entailment import scorers
    from evaluation.entailment.datasets import read_splits
    from evaluation.entailment.prompts import Direction

    looked_up = _looked_up(name, options)
    if looked_up is not None:
        return looked_up
    if name == "random":
        return scorers.RandomScorer(options["seed"])
    if name in ("frequency", "prior"):
        if not options["train"]:
            raise click.UsageError(f"--scorer {name} counts pairs: name their files by --train.")
        training = [pair for split in read_splits(options["train"]).values() for pair in split]
        return scorers.FrequencyScorer.of(training) if name == "frequency" else scorers.PriorScorer.of(training)
    if name in ("critic", "likelihood"):
        return scorers.PatternScorer(
            f"{name} {options['model']}", open_measure(name, kb, options), Direction(options["patterns"])
        )
    if name == "encoder":
        return _encoder(kb, options)
    raise click.UsageError(f"No scorer {name}: choose {SCORERS}.")


def _encoder(kb: KnowledgeBase, options: Mapping[str, Any]) -> Scorer:
    """An encoder in this process, its answers through the journal."""
    from evaluation.entailment.scorers import LikenessScorer
    from llm_oracle.backends.encoder import CLOSE, OPEN, EncoderSimilarity
    from llm_oracle.calls import FREE, JournaledLikelihood

    kind, _, source = options["model"].partition(":")
    if kind != "hf" or not source:
        raise click.UsageError("--scorer encoder takes a Hugging Face encoder: -m hf:NAME_OR_PATH.")
    model = EncoderSimilarity.load(source, options["device"], options["dtype"])
    journal = open_journal(kb, options)
    journal.prices[model.identity.name] = FREE
    ranker = JournaledLikelihood(model, journal)
    return LikenessScorer(
        f"encoder {source}", lambda texts: [one.per_token for one in ranker.log_likelihoods(texts)], (OPEN, CLOSE)
    )


def _looked_up(name: str, options: Mapping[str, Any]) -> Scorer | None:
    """A scorer that asks no model: a file of scores, entailment graphs, WordNet."""
    kind, _, argument = name.partition(":")
    if kind == "scores" and argument:
        from evaluation.entailment.scorers import FileScorer

        return FileScorer(Path(argument))
    if kind == "graph" and argument:
        from evaluation.entailment.graph_files import GraphScorer

        path, _, block = argument.partition("@")
        return GraphScorer(path, block)
    if kind == "wordnet":
        from evaluation.entailment.lexicon import Lexicon, WordNetScorer

        return WordNetScorer(Lexicon.open(argument or options.get("lexicon", ""), options.get("language", "EN")))
    return None


def open_measure(role: str, kb: KnowledgeBase, options: Mapping[str, Any]) -> Measure:
    """A model's P(yes) of sentences, or their log-likelihood per token, through the journal."""
    from llm_oracle.calls import JournaledCritic, JournaledLikelihood
    from llm_oracle.registry import open_model

    journal = open_journal(kb, options)
    model = open_model(options["model"], role, opening_options(None, options, journal))
    if role == "critic":
        critic = JournaledCritic(model, journal)
        return lambda texts: [one.probability for one in critic.probabilities(texts)]
    ranker = JournaledLikelihood(model, journal)
    return lambda texts: [one.per_token for one in ranker.log_likelihoods(texts)]


@entailment.command()
@with_files
@with_rules
@with_database
def facts(files: tuple[Path, ...], paths: tuple[Path, ...], database: str) -> None:
    """Store entailments between predicates as facts `entails(P, Q, Score)`, for `check`, `query --entail` and `why`.

    Lines are `premise TAB hypothesis TAB score`; a premise is an atom such as shopped_in(Person X, Shop Y). Types that
    the rules declare may be left out.

    \b
    hapax evaluate entailment facts edges.tsv --db hapax.db
    """
    from engine.entailment import read_edges, store_edges

    library = read_library(paths)
    found = [edge for file in files for edge in read_edges(file, library)]
    with open_kb(database) as kb:
        stored = store_edges(kb, found)
    left_out = len(found) - stored
    told = f"; {counted(left_out, 'line')} left out: every atom entails itself" if left_out else ""
    err.print(f"{counted(stored, 'entailment')} in {database}{told}", markup=False, soft_wrap=True)


@entailment.command()
@click.option("--at-least", type=Finite(0, 1), default=0.5, show_default=True, help="Leave weaker entailments out.")
@click.option(
    "--form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="Chains and paraphrases as text, or the graph for a plotting program.",
)
@click.option("--out", type=FOLDER, help="Folder for the plot: PNG, SVG and CSV.")
@with_database
@with_json
def graph(at_least: float, form: str, out: Path | None, database: str, as_json: bool) -> None:
    """Show what follows from what by the stored entailments: chains, closed by Prolog, and paraphrases, its circles.

    \b
    hapax evaluate entailment graph
    hapax evaluate entailment graph --form mermaid
    hapax evaluate entailment graph --at-least 0.8 --out figures
    """
    from engine.entailment import EntailmentGraph, edges
    from engine.session import PrologSession
    from evaluation.entailment import graphs

    begun_by = "hapax evaluate entailment facts"
    with open_kb(database, read_only=True, begun_by=begun_by) as kb, PrologSession() as session:
        one = EntailmentGraph(edges(kb, at_least), session)
        if out is not None:
            graphs.write_plot(one, out)
        if as_json:
            click.echo(json.dumps(graphs.to_json(one), ensure_ascii=False))
        elif form == "text":
            click.echo("\n".join(graphs.lines(one)))
        else:
            click.echo(graphs.drawing_text(one, form))


@entailment.command()
@with_rules
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that judges.")
@click.option("--at-least", type=Finite(0, 1), default=0.5, show_default=True, help="Store entailments of this score.")
@with_dry_run
@with_opening
@with_budget
@with_queue
@with_database
@with_json
def predicates(paths: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Ask a model which predicates of the rules entail which; store what it affirms as facts `entails(P, Q, Score)`.

    Every two predicates whose arguments can be paired off by their types are asked about in their own sentences. The
    score is (1 + the best pattern's P(yes) less the best antipattern's) / 2.

    \b
    hapax evaluate entailment predicates --rules my.rules --dry-run
    hapax evaluate entailment predicates --rules my.rules -m hf:google/flan-t5-xl --at-least 0.8
    """
    from engine.entailment import store_edges
    from evaluation.entailment.predicates import candidates, score_candidates

    library = read_library(paths)
    found = list(candidates(library))
    if options["dry_run"]:
        click.echo(
            json.dumps({"pairs": len(found)})
            if as_json
            else f"{counted(len(found), 'pair')} of predicates, up to 8 sentences each"
        )
        return
    with open_kb(options["database"]) as kb, err.status("Scoring"):
        edges = score_candidates(found, library, open_measure("critic", kb, options))
        strong = sorted((edge for edge in edges if edge.score >= options["at_least"]), key=lambda one: -one.score)
        store_edges(kb, strong)
    if as_json:
        told = [{"premise": str(one.premise), "hypothesis": str(one.hypothesis), "score": one.score} for one in strong]
        click.echo(json.dumps({"pairs": len(found), "entailments": told}, ensure_ascii=False))
        return
    print_table(
        ("score", "premise", "hypothesis"), ((f"{e.score:.2f}", str(e.premise), str(e.hypothesis)) for e in strong)
    )
    err.print(f"{len(strong)} of {counted(len(found), 'pair')} stored in {options['database']}", markup=False)


@entailment.command()
@click.argument("train_file", metavar="TRAIN", type=FILE)
@click.argument("dev_file", metavar="DEV", type=FILE)
@click.option("--base", required=True, help="Checkpoint to begin with: a folder, or a name such as roberta-base.")
@click.option("--out", required=True, type=FOLDER, help="Folder of this training.")
@click.option("--draws", type=click.IntRange(1), default=100, show_default=True, help="Sets of hyperparameters tried.")
@click.option("--epochs", type=click.IntRange(1), default=5, show_default=True, help="Passes over the training pairs.")
@click.option("--frozen", is_flag=True, help="Only the classification head learns.")
@click.option("--hypothesis-only", is_flag=True, help="Train and measure without premises: the artefact's share.")
@with_patterns
@click.option("--device", default="auto", show_default=True, help="Where it is trained.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn.")
def train(train_file: Path, dev_file: Path, out: Path, device: str, **options: Any) -> None:
    """Fine-tune an encoder or decoder on the prompts of Schmitt and Schütze, by the paper's protocol.

    Hyperparameters are drawn at random, each draw is trained and measured on DEV, and the weights of the best by AUC50
    are kept. Stopped at any point, the same command goes on after the draws that are done.

    \b
    hapax evaluate entailment train train.txt dev.txt --base roberta-base --out gauge
    hapax evaluate entailment train train.txt dev.txt --base roberta-base --out alone --hypothesis-only
    hapax evaluate entailment test gauge test.txt
    """
    from functools import partial

    from evaluation.entailment.pairs import read_pairs
    from evaluation.entailment.prompts import Direction
    from evaluation.entailment.tuning import Protocolled, Training
    from llm_oracle.finetuning import SentenceClassifier, TuningSettings

    _warn_of_leaks(read_pairs(train_file), read_pairs(dev_file))
    settings = TuningSettings(epochs=options["epochs"], frozen=options["frozen"], seed=options["seed"])
    direction = Direction(options["patterns"])
    training = Training(out)
    load = partial(SentenceClassifier.load, device=device, seed=settings.seed)
    if not training.is_begun:
        with err.status("Loading the checkpoint"):
            load(options["base"])  # a folder begun with what cannot be loaded could not go on with another
    training.begin(
        Protocolled(options["base"], direction, options["hypothesis_only"], options["draws"], settings),
        train_file,
        dev_file,
    )
    training.run((read_pairs(train_file), read_pairs(dev_file)), load, lambda line: err.print(line, markup=False))
    shown = training.results[:10]
    rates = (
        (f"{one.draw.learning_rate:.2g}", f"{one.draw.weight_decay:.2g}", str(one.draw.accumulated)) for one in shown
    )
    figures = ((f"{one.auc50:.3f}", f"{one.auc_norm:.3f}", f"{one.f1:.3f}") for one in shown)
    rows = ((str(one.number + 1), *rate, *some) for one, rate, some in zip(shown, rates, figures, strict=True))
    columns = ("draw", "learning rate", "weight decay", "batches a step", "AUC50", "AUCnorm", "F1")
    print_table(columns, rows, title="The best draws, on dev")


@entailment.command("test")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("test_file", metavar="TEST", type=FILE)
@click.option("--device", default="auto", show_default=True, help="Where the model runs.")
@with_json
def test_(folder: Path, test_file: Path, device: str, as_json: bool) -> None:
    """Measure a training's best draw on TEST, once; its scores are left in the folder for `score --scorer scores:FILE`.

    \b
    hapax evaluate entailment test gauge test.txt
    hapax evaluate entailment score test.txt --scorer scores:gauge/test-scores.txt
    """
    from functools import partial

    from evaluation.entailment.pairs import read_pairs
    from evaluation.entailment.tuning import Training
    from llm_oracle.finetuning import SentenceClassifier

    found = Training(folder).test(test_file, read_pairs(test_file), partial(SentenceClassifier.load, device=device))
    if as_json:
        click.echo(json.dumps(found))
        return
    names = ("auc50", "auc_norm", "auc_rel", "f1")
    rows = [
        (name, *(f"{one[measure]:.3f}" for measure in names)) for name, one in (("dev", found["dev"]), ("test", found))
    ]
    print_table(("set", "AUC50", "AUCnorm", "AUCREL", "F1"), rows)
