"""`evaluate_likelihood`: how likely head and long-tail statements are, with the figures written on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hapax.evaluation.link.likelihood import figures
from hapax.evaluation.link.likelihood.measures import Delta, LikelihoodReport, measure
from hapax.evaluation.shared.estimates import NOTHING
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Setting
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import EVALUATOR, LikelihoodModel
from hapax.llm_oracle.registry import open_model

PAPER_DELTAS = (
    "LINK's paper, on 200 rules and with InstructGPT as evaluator: mean delta 0.48 for LINK, -0.14 for ChatGPT and "
    "-0.02 for GPT-4 by instruction only. Its models, rules and evaluator differ from these."
)
"""Section 3.2, for comparison."""


@checked
@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """Options of a measurement; see `measure` for the first three.

    `figure_numbers`: LINK's numbers of the figures to write to the folder `out`, if one is given.
    """

    evaluators: Sequence[LikelihoodModel] = ()
    rules: Sequence[str] = ()
    reranker: LikelihoodModel | None = None
    figure_numbers: Sequence[int] = figures.NUMBERS
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class LikelihoodResult:
    """Measures, the files written for each figure, and the reasons why other figures could not be drawn."""

    report: LikelihoodReport
    written: Mapping[int, tuple[Path, ...]]
    unavailable: Mapping[int, str]

    def to_result(self) -> ExperimentResult:
        """Tables of deltas, rerankings and agreement, with all measures as figures."""
        report = self.report
        tables = [_deltas(report), _mean_deltas(report)]
        if report.rerankings:
            tables.append(_rerankings(report))
        if report.agreements:
            tables.append(_agreements(report))
        return ExperimentResult(tables, self._figures(), notes=tuple(self._notes()))

    def _figures(self) -> dict[str, Any]:
        report = self.report
        agreements = []
        for agreement in report.agreements:
            measures = asdict(agreement)
            # "one" and "other" are the keys of the JSON that was always written.
            names = {"one": measures.pop("first"), "other": measures.pop("second")}
            agreements.append({**names, **measures})
        return {
            "evaluators": report.evaluators,
            "own_rankers": report.own_rankers,
            "methods": [{"name": method.name, **method.traits} for method in report.methods],
            "deltas": report.deltas,
            "mean_deltas": report.mean_deltas,
            "rerankings": report.rerankings,
            "agreements": agreements,
            "figures": {str(number): list(map(str, paths)) for number, paths in self.written.items()},
            "lacking": {str(number): reason for number, reason in self.unavailable.items()},
        }

    def _notes(self) -> Iterator[str]:
        if any(mean.circular for mean in self.report.mean_deltas):
            yield (
                "*: circular. The evaluator ranked the search, or taught the ranker or learned from it: no evidence of "
                "a long tail."
            )
        if self.report.mean_deltas and all(mean.circular for mean in self.report.mean_deltas):
            yield (
                f"No evaluator is independent of the ranker. Name one by {Setting('options.evaluators')}, such as "
                "smollm2."
            )
        if any(method.is_instruction for method in self.report.methods):
            yield PAPER_DELTAS
        yield from self.unavailable.values()


def open_evaluators(names: Iterable[str], opening: OpeningOptions) -> list[LikelihoodModel]:
    """The models of these strings in the role of the evaluator, each once, for `LikelihoodOptions`."""
    return [open_model(name, EVALUATOR, opening) for name in dict.fromkeys(names)]


@checked
@extras_named()
def evaluate_likelihood(
    kb: KnowledgeBase, options: LikelihoodOptions | None = None, *, journal: Journal | None = None
) -> Evaluation[LikelihoodResult]:
    """Compare how likely head and long-tail statements are: LINK's delta by rule and evaluator, and its figures.

    Without options the stored scores are compared and no model is asked. `options`: evaluators (models, such as
    `open_models(...).evaluator`), names of rules, and the folder for figures and the scores behind them. Raises
    BudgetReached if the journal's budget ends the requests; answers so far are kept. Needs the extra `evaluation`.
    """
    options = options or LikelihoodOptions()
    report = measure(kb, options.evaluators, options.rules, journal, options.reranker)
    written: dict[int, tuple[Path, ...]] = {}
    unavailable: dict[int, str] = {}
    if options.out is not None:
        # Written in any case: they are the scores behind all figures.
        figures.write_samples(report.samples, options.out)
        for number in options.figure_numbers:
            try:
                written[number] = figures.write(figures.plot(report, number, options.rules), options.out)
            except figures.FigureUnavailable as fault:
                # Most knowledge bases lack the searches that some figures compare; the notes say how to add them.
                unavailable[number] = str(fault)
    return Evaluation.of(LikelihoodResult(report, written, unavailable))


def _deltas(report: LikelihoodReport) -> ResultTable:
    by_place: dict[tuple[str, str], dict[str, Delta]] = {}
    for delta in report.deltas:
        by_place.setdefault((delta.method, delta.rule), {})[delta.evaluator] = delta
    with_method = len(report.methods) > 1
    rows = []
    for (method, rule), by_evaluator in by_place.items():
        # All evaluators score the same statements, apart from a few without a finite score.
        sizes = next(iter(by_evaluator.values()))
        deltas = [by_evaluator[name].delta if name in by_evaluator else NOTHING for name in report.evaluators]
        place = (rule, method) if with_method else (rule,)
        rows.append((*place, str(sizes.head), str(sizes.long_tail), *map(str, deltas)))
    place_columns = ("rule", "method") if with_method else ("rule",)
    columns = (*place_columns, "head", "long tail", *map(report.short_name, report.evaluators))
    return ResultTable("Delta by rule, in nats per token (LINK, figure 3)", columns, rows)


def _mean_deltas(report: LikelihoodReport) -> ResultTable:
    """A row for each method and evaluator, with the independent evaluators first."""
    rows = []
    for mean in report.headlines:
        name = report.short_name(mean.evaluator) + "*" * mean.circular
        count = mean.positive.count
        # Without a rule that has both ends there is no share.
        positive = f"{round(mean.positive.value * count) if count else 0} of {count}"
        p_value = "<.001" if mean.p_value < 0.001 else f"{mean.p_value:.3f}"
        rows.append((mean.method, name, str(mean.delta), str(mean.auc), str(mean.effect), positive, p_value))
    columns = ("method", "evaluator", "delta", "AUC", "Cohen's d", "delta > 0", "p")
    return ResultTable("Mean delta over rules", columns, rows)


def _rerankings(report: LikelihoodReport) -> ResultTable:
    rows = []
    for reranking in report.rerankings:
        models = map(report.short_name, (reranking.evaluator, reranking.reranker))
        rows.append((reranking.method, *models, str(reranking.before), str(reranking.after)))
    columns = ("method", "evaluator", "reranked by", "delta", "delta of the reranked 75 %")
    return ResultTable("Mean delta when finished statements are reranked (LINK, D.4)", columns, rows)


def _agreements(report: LikelihoodReport) -> ResultTable:
    columns = ("evaluators", "statements", "within rules", "deltas", "same sign of delta", "low for both", "rules")
    rows = []
    for pair in report.agreements:
        names = f"{report.short_name(pair.first)} and {report.short_name(pair.second)}"
        measures = (pair.statements, pair.within_rules, pair.deltas, pair.signs, pair.low)
        rows.append((names, *map(str, measures), str(pair.signs.count)))
    return ResultTable("Agreement: rank correlations, and the share of rules (LINK, E.2)", columns, rows)
