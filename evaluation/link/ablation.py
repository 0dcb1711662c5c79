"""Ablation of critic and likelihood gate: the same rules searched with and without each (LINK, appendix D).

The four variants share a journal, so a request that two of them need is sent once. Each variant has a store of its own
for facts: facts that no critic has judged must not reach the user's knowledge base. Judged by a ground truth, the
statements give the columns of the paper's tables 8 and 9; their likelihoods by variant are its figure 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.kept_rules import chosen_rules
from hapax.engine.search.progress import Watcher
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.evaluation.link.judging import GroundTruth, Share, TruthJudge, accuracy
from hapax.evaluation.link.likelihood.figures import ablation_plot, write
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.rules import Library, Rule
from hapax.kb.records import ASSESSMENTS, PREDICATES, RULES, RUNS, Distribution, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.measures import Measure
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.registry import journal_of


@dataclass(frozen=True, slots=True)
class Experiment:
    """Rules, models and settings that all variants share.

    `keep`: store the searches' statements, but none of their facts, in the knowledge base.
    """

    library: Library
    rules: Sequence[Rule]
    models: Models
    settings: SearchSettings = field(default_factory=SearchSettings)
    keep: bool = False


@dataclass(frozen=True, slots=True)
class AblationVariant:
    """A row of the tables, with its settings."""

    name: str
    critic: bool
    likelihood: bool


# The paper has the first, the second and the last; the third shows the gate's part alone.
VARIANTS = (
    AblationVariant("full", critic=True, likelihood=True),
    AblationVariant("w/o critic", critic=False, likelihood=True),
    AblationVariant("w/o likelihood", critic=True, likelihood=False),
    AblationVariant("w/o critic+likelihood", critic=False, likelihood=False),
)


@dataclass(frozen=True, slots=True)
class AblationCell:
    """Accuracy of one variant and distribution. `facts`: share of true facts, each distinct fact counted once."""

    variant: str
    distribution: Distribution
    statements: int
    data_type: Share
    factuality: Share
    overall: Share
    facts: Share


@dataclass(frozen=True, slots=True)
class AblationReport:
    """The cells of tables 8 and 9, delta by variant, and the likelihoods of figure 6."""

    cells: tuple[AblationCell, ...]
    deltas: Mapping[str, float | None]
    log_likelihoods: Mapping[str, Mapping[Distribution, Mapping[str, tuple[float, ...]]]]
    """Variant -> distribution -> rule -> mean token log-likelihoods of its statements, in nats, ascending."""
    reports: Mapping[str, SearchReport] = field(default_factory=dict)

    def cell(self, variant: str, distribution: Distribution) -> AblationCell:
        return next(cell for cell in self.cells if (cell.variant, cell.distribution) == (variant, distribution))

    def to_result(self) -> ExperimentResult:
        """Accuracies in the layout of tables 8 and 9, and mean deltas."""
        rows = []
        for cell in self.cells:
            accuracies = (cell.data_type, cell.factuality, cell.overall, cell.facts)
            rows.append((cell.distribution.value, cell.variant, str(cell.statements), *map(str, accuracies)))
        columns = ("distribution", "variant", "statements", "data type", "factuality", "overall", "true facts")
        deltas = [(name, "n/a" if delta is None else f"{delta:.2f}") for name, delta in self.deltas.items()]
        tables = (
            ResultTable("Ours, in the layout of LINK's tables 8 and 9", columns, rows),
            ResultTable("Ours: the mean of what LINK's figure 6 shows", ("variant", "mean delta"), deltas),
        )
        figures = {"cells": self.cells, "deltas": self.deltas, "log_likelihoods": self.log_likelihoods}
        return ExperimentResult(tables, figures)


@checked
@extras_named()
def evaluate_ablation(
    rules: Library,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Watcher | None = None,
) -> Evaluation[AblationReport]:
    """Search without critic, without likelihood gate and without both: LINK's tables 8 and 9 and figure 6.

    Facts are judged by the embedded model's atlas. `progress`: as for `search`. The budget of the models holds for all
    variants together; `value.reports` says which of them it ended.
    """
    atlas, settings = load_atlas(), settings or SearchSettings()
    experiment = Experiment(rules, chosen_rules(rules, only), models, settings)
    journal = journal_of(kb, models)
    # One after the other on one journal: what two variants ask alike is sent once.
    reports = {variant.name: search_variant(experiment, variant, kb, journal, progress) for variant in VARIANTS}
    # The user's store has the given facts, and none that an ablated variant accepted.
    judge = TruthJudge(rules, GroundTruth(atlas.truth, atlas.type_truth), KnownFacts(kb, rules))
    cells = []
    for name, report in reports.items():
        cells += [_cell(name, distribution, report, judge) for distribution in settings.distributions]
    measured = AblationReport(
        cells=tuple(cells),
        deltas={name: report.mean_delta for name, report in reports.items()},
        log_likelihoods={name: _likelihoods(report, settings.distributions) for name, report in reports.items()},
        reports=reports,
    )
    return Evaluation.of(measured)


def draw_ablation(evaluation: Evaluation[AblationReport], models: Models, folder: Path) -> None:
    """Write LINK's figure 6 as PNG, SVG and CSV files."""
    write(ablation_plot(evaluation.value.reports, models.evaluator.identity.title), folder)


def search_variant(
    experiment: Experiment,
    variant: AblationVariant,
    kb: KnowledgeBase,
    journal: Journal,
    progress: Watcher | None,
) -> SearchReport:
    """Search with the variant's settings; facts go to a temporary store that begins with the given facts of `kb`."""
    # "random" keeps as many beams as the likelihood gate would, so that the variants' statements can be compared.
    # The tables compare ends by LINK's measure, unless another is asked for.
    settings = replace(
        experiment.settings,
        critic=variant.critic,
        likelihood="model" if variant.likelihood else "random",
        measure=experiment.settings.measure or Measure.PAPER.value,
    )
    # In memory, and gone with the block.
    with KnowledgeBase(None) as temporary:
        temporary.add_facts(fact for fact in kb.facts() if fact.source is Source.GIVEN)
        job = SearchJob(experiment.library, experiment.rules, temporary, experiment.models, settings, journal, progress)
        report = search(job)
        # Statements only: facts that no critic has judged stay in the temporary store.
        if experiment.keep:
            _keep(temporary, report, kb, experiment.models.evaluator.identity.title)
    return report


def _keep(temporary: KnowledgeBase, report: SearchReport, kb: KnowledgeBase, evaluator: str) -> None:
    """Copy a run with its rules, statements and their scores to the user's knowledge base."""
    texts = [statement.text for statement in report.statements]
    # One transaction: after a kill, a run is there with all its statements or not at all.
    with kb.transaction():
        for run in temporary.runs():
            kb.add(RUNS, [run])
        kb.add(RULES, temporary.select(RULES))
        kb.add(PREDICATES, temporary.select(PREDICATES))
        kb.add_statements(report.statements)
        kb.add(ASSESSMENTS, temporary.assessments(texts, "log_likelihood", evaluator).values())


def _cell(variant: str, distribution: Distribution, report: SearchReport, judge: TruthJudge) -> AblationCell:
    statements = [statement for statement in report.statements if statement.distribution is distribution]
    accuracies = accuracy(statements, judge)
    # Statements share facts; each counts once, or frequent ones would weigh more.
    facts = set(chain.from_iterable(map(judge.facts, statements)))
    return AblationCell(
        variant,
        distribution,
        len(statements),
        accuracies.data_type,
        accuracies.factuality,
        accuracies.overall,
        Share.of(map(judge.is_true, facts)),
    )


def _likelihoods(
    report: SearchReport, distributions: Sequence[Distribution]
) -> dict[Distribution, dict[str, tuple[float, ...]]]:
    """Finite log-likelihoods by distribution and rule, ascending."""
    likelihoods: dict[Distribution, dict[str, tuple[float, ...]]] = {}
    for distribution in distributions:
        likelihoods[distribution] = {}
        for rule in report.searched:
            scores = [statement.log_likelihood for statement in rule.statements.get(distribution, ())]
            # An empty text has a log-likelihood of minus infinity, which no axis can show.
            finite = [score for score in scores if score is not None and math.isfinite(score)]
            likelihoods[distribution][rule.rule] = tuple(sorted(finite))
    return likelihoods
