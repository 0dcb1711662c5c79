"""What critic and likelihood gate are good for: the same rules searched with and without each (LINK, appendix D).

The four variants share one journal, so that only what a variant alone needs is asked for it; each keeps its facts in a
store of its own, because what no critic has judged must not reach the user's. With a truth to compare with, the result
has the columns of the paper's tables 8 and 9; the likelihoods by variant are its figure 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.known import KnownFacts
from engine.oracle import model_name
from engine.report import SearchProgress, SearchReport, SearchSettings
from engine.search import search
from evaluation.judging import GroundTruth, Share, TruthJudge, accuracy
from grammar.rules import Library, Rule
from kb.records import Distribution, Source
from kb.store import KnowledgeBase
from llm_oracle.calls import Journal
from llm_oracle.protocols import Models


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is searched, by which models and how: the same for all variants.

    `keep`: whether the searches' statements, but none of their facts, are kept in the knowledge base.
    """

    library: Library
    rules: Sequence[Rule]
    models: Models
    settings: SearchSettings = field(default_factory=SearchSettings)
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of the tables, with the settings that make it."""

    name: str
    critic: bool
    likelihood: bool


VARIANTS = (
    Variant("full", critic=True, likelihood=True),
    Variant("w/o critic", critic=False, likelihood=True),
    Variant("w/o likelihood", critic=True, likelihood=False),
    Variant("w/o critic+likelihood", critic=False, likelihood=False),
)


@dataclass(frozen=True, slots=True)
class AblationCell:
    """One variant and distribution. A statement is factual if all the facts behind it are true, typed if all its values
    are of their variables' types, and overall right if both; `facts` counts each distinct fact once."""

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
        return next(one for one in self.cells if one.variant == variant and one.distribution is distribution)


def ablation(
    experiment: Experiment,
    kb: KnowledgeBase,
    truth: GroundTruth,
    progress: SearchProgress | None = None,
    journal: Journal | None = None,
) -> AblationReport:
    """Search the rules in all four variants. `kb` gives the journal and the given facts."""
    library, settings = experiment.library, experiment.settings
    journal = journal or Journal(kb)
    reports = {one.name: search_variant(experiment, one, kb, journal, progress) for one in VARIANTS}
    judge = TruthJudge(library, truth, KnownFacts(kb, library))
    return AblationReport(
        cells=tuple(
            _cell(name, distribution, report, judge)
            for name, report in reports.items()
            for distribution in settings.distributions
        ),
        deltas={name: report.mean_delta for name, report in reports.items()},
        log_likelihoods={name: _likelihoods(report, settings.distributions) for name, report in reports.items()},
        reports=reports,
    )


def search_variant(
    experiment: Experiment, variant: Variant, kb: KnowledgeBase, journal: Journal, progress: SearchProgress | None
) -> SearchReport:
    """Search as the variant does, its facts in a store of its own that knows the given facts of `kb`."""
    settings = replace(
        experiment.settings, critic=variant.critic, likelihood="model" if variant.likelihood else "random"
    )
    with KnowledgeBase(None) as own:
        own.add_facts(fact for fact in kb.facts() if fact.source is Source.GIVEN)
        report = search(
            experiment.library, experiment.rules, own, experiment.models, settings, progress=progress, journal=journal
        )
        if experiment.keep:
            _keep(own, report, kb, model_name(experiment.models.evaluator))
    return report


def _keep(own: KnowledgeBase, report: SearchReport, kb: KnowledgeBase, evaluator: str) -> None:
    """Take a run over with its rules, statements and their scores."""
    texts = [one.text for one in report.statements]
    with kb.transaction():
        for run in own.runs():
            kb.start_run(run)
        kb.add_rules(own.rules())
        kb.add_predicates(own.predicates())
        kb.add_statements(report.statements)
        kb.add_assessments(own.assessments(texts, "log_likelihood", evaluator).values())


def _cell(variant: str, distribution: Distribution, report: SearchReport, judge: TruthJudge) -> AblationCell:
    statements = [one for one in report.statements if one.distribution is distribution]
    found = accuracy(statements, judge)
    distinct = {atom for one in statements for atom in judge.facts(one)}
    return AblationCell(
        variant,
        distribution,
        len(statements),
        found.data_type,
        found.factuality,
        found.overall,
        Share.of(judge.is_true(atom) for atom in distinct),
    )


def _likelihoods(
    report: SearchReport, distributions: Sequence[Distribution]
) -> dict[Distribution, dict[str, tuple[float, ...]]]:
    return {
        distribution: {
            one.rule: tuple(
                sorted(
                    each.log_likelihood
                    for each in one.statements.get(distribution, ())
                    if each.log_likelihood is not None and math.isfinite(each.log_likelihood)
                )
            )
            for one in report.searched
        }
        for distribution in distributions
    }
