"""`evaluate likelihood` from options to result: which evaluators, what is measured, which figures are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation import figures
from evaluation.distributions import Delta, LikelihoodReport, measure
from evaluation.estimates import NOTHING
from evaluation.probing.tables import Page
from kb.store import KnowledgeBase
from llm_oracle.calls import EVALUATOR, Journal
from llm_oracle.protocols import LikelihoodModel
from llm_oracle.registry import OpeningOptions, open_model

PAPER_DELTAS = (
    "LINK's paper, on 200 rules and by InstructGPT: mean delta 0.48 for LINK, -0.14 for ChatGPT and -0.02 for GPT-4 by "
    "instruction only. Its models, rules and evaluator are others than these."
)
"""Section 3.2, for reading beside ours."""


@dataclass(frozen=True, slots=True)
class LikelihoodResult:
    """What was measured, written, and could not be drawn."""

    report: LikelihoodReport
    written: Mapping[int, tuple[Path, ...]]
    lacking: Mapping[int, str]

    def tables(self) -> tuple[Page, ...]:
        agreement = (_agreement(self.report),) if self.report.agreements else ()
        reranking = (_rerankings(self.report),) if self.report.rerankings else ()
        return (_deltas(self.report), _means(self.report), *reranking, *agreement)

    def notes(self) -> Iterator[str]:
        """What a reader of the figures should know besides."""
        for name in self.report.own_rankers:
            yield f"{self.report.shown(name)} also ranked a search: its delta measures by the search's own yardstick."
        if any(one.is_instruction for one in self.report.methods):
            yield PAPER_DELTAS
        yield from self.lacking.values()

    def to_json(self) -> dict[str, Any]:
        return {
            **self.report.to_json(),
            "figures": {str(number): list(map(str, paths)) for number, paths in self.written.items()},
            "lacking": {str(number): reason for number, reason in self.lacking.items()},
        }


def open_evaluators(names: Iterable[str], opening: OpeningOptions) -> list[LikelihoodModel]:
    """The models behind the strings, each opened once."""
    return [open_model(name, EVALUATOR, opening) for name in dict.fromkeys(names)]


def run(
    kb: KnowledgeBase,
    evaluators: Sequence[LikelihoodModel] = (),
    rules: Sequence[str] = (),
    numbers: Sequence[int] = figures.NUMBERS,
    out: Path | None = None,
    *,
    reranker: LikelihoodModel | None = None,
    journal: Journal | None = None,
) -> LikelihoodResult:
    """Measure, and write the figures of these numbers and the scores behind them to the folder, if one is given.

    Raises BudgetReached where the journal's budget ends the asking; what was answered is kept.
    """
    report = measure(kb, evaluators, rules, journal, reranker)
    written: dict[int, tuple[Path, ...]] = {}
    lacking: dict[int, str] = {}
    if out is not None:
        figures.write_samples(report.samples, out)
        for number in numbers:
            try:
                written[number] = figures.write(figures.plot(report, number, rules), out)
            except figures.Lacking as fault:
                lacking[number] = str(fault)
    return LikelihoodResult(report, written, lacking)


def _deltas(report: LikelihoodReport) -> Page:
    by_place: dict[tuple[str, str], dict[str, Delta]] = {}
    for one in report.deltas:
        by_place.setdefault((one.method, one.rule), {})[one.evaluator] = one
    several = len(report.methods) > 1
    rows = []
    for (method, rule), found in by_place.items():
        sizes = next(iter(found.values()))
        estimates = (found[name].delta if name in found else NOTHING for name in report.evaluators)
        rows.append((rule, *([method] if several else []), str(sizes.head), str(sizes.long_tail), *map(str, estimates)))
    columns = ("rule", *(["method"] if several else []), "head", "long tail", *map(report.shown, report.evaluators))
    return Page("Delta by rule, in nats a token (LINK, figure 3)", columns, tuple(rows))


def _means(report: LikelihoodReport) -> Page:
    found = {(one.method, one.evaluator): one.delta for one in report.mean_deltas}
    rows = tuple((one.name, *(str(found[one.name, name]) for name in report.evaluators)) for one in report.methods)
    return Page("Mean delta over rules", ("method", *map(report.shown, report.evaluators)), rows)


def _rerankings(report: LikelihoodReport) -> Page:
    rows = tuple(
        (one.method, report.shown(one.evaluator), report.shown(one.reranker), str(one.before), str(one.after))
        for one in report.rerankings
    )
    columns = ("method", "evaluator", "reranked by", "delta", "delta of the reranked 75 %")
    return Page("Mean delta when finished statements are reranked (LINK, D.4)", columns, rows)


def _agreement(report: LikelihoodReport) -> Page:
    columns = ("evaluators", "statements", "within rules", "deltas", "same sign of delta", "rules")
    rows = tuple(
        (
            f"{report.shown(one.one)} and {report.shown(one.other)}",
            *map(str, (one.statements, one.within_rules, one.deltas, one.signs)),
            str(one.signs.count),
        )
        for one in report.agreements
    )
    return Page("Agreement: rank correlations, and the share of rules (LINK, E.2)", columns, rows)
