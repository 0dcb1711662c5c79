"""Entailments between predicates: data sets split, scorers measured, and graphs stored, judged and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.api.evaluations import Evaluation
from hapax.api.schemas import with_journal
from hapax.engine.entailment import STRONG
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Remedy, Setting

if TYPE_CHECKING:
    from hapax.engine.entailment.closure import EntailmentGraph
    from hapax.engine.entailment.graph import Edge
    from hapax.evaluation.entailment.bias import BiasAudit
    from hapax.evaluation.entailment.consistency import ConsistencyAudit
    from hapax.evaluation.entailment.datasets import DataReport
    from hapax.evaluation.entailment.measuring import ConsistencyOptions, EntailmentOptions
    from hapax.evaluation.entailment.opening import Patterns, ScorerOptions
    from hapax.evaluation.entailment.report import SubsetResult
    from hapax.evaluation.entailment.tuning import DrawResult
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.budget import Budget


@checked
@extras_named()
def split_entailments(*paths: str | Path, seed: int = 0, skip_faulty: bool = False) -> Evaluation[DataReport]:
    """Split the pairs of files again, so that each is with its converse, and count the sub-groups of each split.

    Each file is a split and gives it its name. `seed` decides where pairs go whose converse is in another file.
    Faulty lines refuse their file, or are left out and named in a note.
    """
    from hapax.evaluation.entailment.datasets import DataReport, read_splits

    skipped: list[str] = []
    splits = read_splits([Path(path) for path in paths], skipped if skip_faulty else None)
    report = DataReport.of(splits, seed, skipped)
    return Evaluation(report, report.result)


@checked
@extras_named()
def write_entailment_splits(evaluation: Evaluation[DataReport], folder: str | Path) -> int:
    """Write the new splits, all pairings of sub-groups and hypothesis-only twins; return the number of files."""
    from hapax.evaluation.entailment.datasets import write_subsets

    return write_subsets(evaluation.value.splits, Path(folder))


@checked
@extras_named()
def score_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[SubsetResult]]:
    """Measure scorers on each subset of the pairs, with whole pairs and with hypotheses alone.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    `progress` is called with the sentences done and their number. Raises HapaxError for an unknown scorer, a missing
    option, and pairs that all have one label.
    """
    from hapax.evaluation.entailment.measuring import EntailmentOptions, measure_files
    from hapax.evaluation.entailment.opening import ScorerSession
    from hapax.evaluation.entailment.report import experiment_result

    opening, _ = with_journal(kb, opening, budget)
    chosen = options or EntailmentOptions()
    session = ScorerSession(kb, chosen, opening, progress)
    results, notes = measure_files(session, [Path(path) for path in paths], chosen, opening.seed)
    return Evaluation(results, experiment_result(results, notes))


@checked
@extras_named()
def draw_entailments(evaluation: Evaluation[list[SubsetResult]], folder: str | Path) -> list[Path]:
    """Write the precision-recall curves of each subset (PNG, SVG, CSV, TSV), and return the paths."""
    from hapax.evaluation.entailment.report import write_curves

    return write_curves(evaluation.value, Path(folder))


@checked
@extras_named()
def audit_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[BiasAudit]]:
    """Measure what scorers affirm without a premise that says so, by random premises, other entities and halves.

    The halves are by attestation (is the hypothesis affirmed alone?) and by word frequency. Entities come from the set
    and from the knowledge base's head and long tail, where their types are those of the pairs. `opening` and
    `progress`: as for `score_entailments`.
    """
    from hapax.evaluation.entailment.bias import audit_result
    from hapax.evaluation.entailment.measuring import EntailmentOptions, audit_files
    from hapax.evaluation.entailment.opening import ScorerSession

    opening, _ = with_journal(kb, opening, budget)
    chosen = options or EntailmentOptions()
    session = ScorerSession(kb, chosen, opening, progress)
    audits = audit_files(session, kb, [Path(path) for path in paths], chosen, opening.seed)
    return Evaluation(audits, audit_result(audits))


@checked
@extras_named()
def draw_audit(evaluation: Evaluation[list[BiasAudit]], folder: str | Path) -> list[Path]:
    """Write a figure for each scorer of an audit (PNG, SVG, CSV), and return the paths."""
    from hapax.evaluation.entailment.bias import write_audit

    return write_audit(evaluation.value, Path(folder))


@checked
@extras_named()
def audit_consistency(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: ConsistencyOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[ConsistencyAudit]]:
    """Audit whether scorers know the direction of entailments, and whether their answers can all hold.

    Chains of two pairs of the set are completed, and hypotheses negated, as far as scorers judge new pairs. `opening`
    and `progress`: as for `score_entailments`.
    """
    from hapax.evaluation.entailment.consistency import consistency_result
    from hapax.evaluation.entailment.measuring import ConsistencyOptions, consistency_of_files
    from hapax.evaluation.entailment.opening import ScorerSession

    opening, _ = with_journal(kb, opening, budget)
    chosen = options or ConsistencyOptions()
    session = ScorerSession(kb, chosen, opening, progress)
    audits, notes = consistency_of_files(session, [Path(path) for path in paths], chosen, opening.seed)
    return Evaluation(audits, consistency_result(audits, notes))


@checked
def store_audited_entailments(kb: KnowledgeBase, audit: ConsistencyAudit, at_least: float = STRONG) -> int:
    """Store the audited pairs as facts `entails(P, Q, Probability)`, and the lead as margin of directions in checks.

    Returns the number of entailments, which have at least this probability.
    """
    from hapax.engine.entailment.audited import keep_margin
    from hapax.engine.entailment.lookup import store_entailments
    from hapax.evaluation.entailment.probabilities import probable_edges

    edges = [edge for edge in probable_edges(audit.pairs, audit.probabilities.values) if edge.score >= at_least]
    stored = store_entailments(kb, edges)
    # From this lead on `check --db` takes a direction for sure.
    keep_margin(kb, audit.scorer, audit.lead.threshold)
    return stored


# --- graphs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EntailmentChains:
    """The stored entailments and what follows from them. `of`: the predicate from which chains begin; empty: all."""

    graph: EntailmentGraph
    of: str = ""
    at_least: float = 0.0

    @property
    def text(self) -> str:
        """The strongest chain from each predicate to each one that it entails, then the sets of paraphrases."""
        from hapax.evaluation.entailment.graphs import chain_lines, lines

        return "\n".join(chain_lines(self.graph, self.of, self.at_least) if self.of else lines(self.graph))

    def to_json(self) -> dict[str, Any]:
        """Edges, chains and paraphrases as a JSON object; with `of` the chains alone."""
        from hapax.evaluation.entailment.graphs import chains_json, to_json

        return chains_json(self.graph, self.of, self.at_least) if self.of else to_json(self.graph)

    def drawing(self, form: str) -> str:
        """The graph in the language of Mermaid or Graphviz; `form` is `mermaid` or `dot`."""
        from hapax.evaluation.entailment.graphs import drawing_text

        return drawing_text(self.graph, form)

    @extras_named()
    def write_plot(self, folder: str | Path) -> tuple[Path, ...]:
        """Write a plot (PNG, SVG) and the edges (CSV), and return the paths."""
        from hapax.evaluation.entailment.graphs import write_plot

        return write_plot(self.graph, Path(folder))


MOST_CLOSED = 20_000
"""Entailments whose whole closure is computed; that of a larger graph would not fit on any screen, nor in memory."""


@checked
def entailment_chains(kb: KnowledgeBase, at_least: float = STRONG, of: str = "") -> EntailmentChains:
    """The transitive closure of the stored entailments with at least this score, and its paraphrases.

    `of`: the name of a predicate; only the chains from it, whose scores have at least this product. They are looked up.
    Raises HapaxError for more than 20,000 entailments without it, and for a predicate that entails nothing.
    """
    from hapax.engine.entailment.closure import EntailmentGraph
    from hapax.engine.entailment.graph import edges
    from hapax.engine.entailment.lookup import StoredEdges, edges_out_of

    if of:
        found = edges_out_of(kb, [of], at_least)
        if not found:
            raise HapaxError(f"{kb.place} has no entailment of {of} with a score of {at_least:g} or more. Lower it.")
        return EntailmentChains(EntailmentGraph(found), of, at_least)
    if (count := StoredEdges(kb).count()) > MOST_CLOSED:
        raise HapaxError(
            f"{kb.place} has {count:,} entailments, too many for all their chains.",
            Remedy("Name a predicate with {}, or count them with {}.", Setting("predicate"), Setting("summary")),
        )
    return EntailmentChains(EntailmentGraph(edges(kb, at_least)))


@dataclass(frozen=True)
class EntailmentsJudged:
    """Outcome of `judge_entailments`: the number of pairs of predicates, and the stored edges, the strongest first."""

    pairs: int
    edges: tuple[Edge, ...]

    def to_json(self) -> dict[str, Any]:
        """The pairs and edges as a JSON object."""
        entailments = []
        for edge in self.edges:
            atoms = {"premise": str(edge.premise), "hypothesis": str(edge.hypothesis)}
            entailments.append({**atoms, "score": edge.score})
        return {"pairs": self.pairs, "entailments": entailments}


@checked
@extras_named()
def judge_entailments(
    kb: KnowledgeBase,
    rules: Library,
    options: ScorerOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    at_least: float = STRONG,
    budget: Budget | None = None,
) -> EntailmentsJudged:
    """Ask a model which predicates of the rules entail which, and store what has at least this score.

    The score is (1 + P(yes) of the best pattern - P(yes) of the best antipattern) / 2.
    """
    from hapax.engine.entailment.graph import store_edges
    from hapax.evaluation.entailment.opening import ScorerOptions, ScorerSession
    from hapax.evaluation.entailment.predicates import candidates, score_candidates
    from hapax.llm_oracle.protocols import CRITIC

    opening, _ = with_journal(kb, opening, budget)
    measure = ScorerSession(kb, options or ScorerOptions(), opening).measure(CRITIC)
    pairs = list(candidates(rules))
    strong = [edge for edge in score_candidates(pairs, rules, measure) if edge.score >= at_least]
    # The strongest first, as the result lists them.
    strong.sort(key=lambda edge: -edge.score)
    store_edges(kb, strong)
    return EntailmentsJudged(len(pairs), tuple(strong))


# --- trained models ---------------------------------------------------------------------------------------------------


@checked
@dataclass(frozen=True)
class TrainingOptions:
    """Options of fine-tuning: the checkpoint to start from, the prompts, and how much is tried.

    `hypothesis_only`: without premises, to expose artefacts. `draws`: sets of hyperparameters. `epochs`: passes over
    the training pairs. `frozen`: only the classification head learns. `seed`: of all random choices.
    """

    base: str
    patterns: Patterns = "directional"
    hypothesis_only: bool = False
    draws: int = 100
    epochs: int = 5
    frozen: bool = False
    seed: int = 0


@checked
@extras_named()
def train_entailment(
    train: str | Path,
    dev: str | Path,
    folder: str | Path,
    options: TrainingOptions,
    *,
    device: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> list[DrawResult]:
    """Fine-tune a model on pairs by the paper's protocol, and return its draws, the best on dev first.

    Called again with the same folder, it resumes after the last finished draw. `progress` is called with lines of text.
    Needs the extra `local`.
    """
    from functools import partial

    from hapax.evaluation.entailment.opening import leak_warning
    from hapax.evaluation.entailment.pairs import read_pairs
    from hapax.evaluation.entailment.prompts import Direction
    from hapax.evaluation.entailment.tuning import TrainingFolder, TrainingProtocol
    from hapax.llm_oracle.finetuning import SentenceClassifier, TuningSettings

    say = progress or (lambda _: None)
    splits = read_pairs(Path(train)), read_pairs(Path(dev))
    # Pairs of train that are in dev, too, would make the measures too good.
    warning = leak_warning(*splits)
    if warning:
        say(warning)
    settings = TuningSettings(epochs=options.epochs, frozen=options.frozen, seed=options.seed)
    direction = Direction(options.patterns)
    protocol = TrainingProtocol(options.base, direction, options.hypothesis_only, options.draws, settings)
    training = TrainingFolder(Path(folder))
    load = partial(SentenceClassifier.load, device=device, seed=options.seed)
    if not training.is_begun:
        load(protocol.base)  # before the folder is bound to a checkpoint that cannot be loaded
    # Refuses a folder that holds another training.
    training.begin(protocol, Path(train), Path(dev))
    training.run(splits, load, say)
    return training.results


@checked
@extras_named()
def evaluate_training(folder: str | Path, path: str | Path, *, device: str = "auto") -> dict[str, Any]:
    """Measure the best draw of a training on a test set, once, and return its figures. Needs the extra `local`."""
    from functools import partial

    from hapax.evaluation.entailment.pairs import read_pairs
    from hapax.evaluation.entailment.tuning import TrainingFolder
    from hapax.llm_oracle.finetuning import SentenceClassifier

    load = partial(SentenceClassifier.load, device=device)
    return TrainingFolder(Path(folder)).test(Path(path), read_pairs(Path(path)), load)
