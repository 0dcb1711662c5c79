"""LINK's likelihood figures 3 to 13, each as PNG, SVG and the CSV of its data.

The data are those of `measures.py`. If the knowledge base lacks the data of a figure, the message names the command
that adds them. Files depend on the data alone: equal knowledge bases give equal bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, pairwise, product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from hapax.evaluation.link.likelihood_measures import (
    CRITIC_MODEL,
    KNOWLEDGE_MODEL,
    LIKELIHOOD_MODEL,
    Delta,
    LikelihoodReport,
    Sample,
    Samples,
    SearchMethod,
    measure,
    reranked,
)
from hapax.evaluation.shared.estimates import NOTHING
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.result_tables import (
    COLOURS,
    Evaluation,
    ExperimentResult,
    ResultTable,
    bin_counts,
    bin_edges,
    write_figure,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import EVALUATOR, LikelihoodModel
from hapax.llm_oracle.registry import open_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_RULES = 6
"""Most rules side by side in one figure, as in the paper."""
BINS = 30

_SHADES = {Distribution.HEAD: (COLOURS[0], "head"), Distribution.LONG_TAIL: (COLOURS[1], "long tail")}
_LINE_STYLES = ("o-", "s--", "^:")
_AXIS = "mean token log-likelihood, nats"
_LEGEND_WIDTH = 80
"""Characters that fit on a line of the legend in the narrowest figure."""
_LABEL_WIDTH = 28
"""Characters that fit on a line of a row's label, beside its panel."""


class FigureUnavailable(HapaxError):  # noqa: N818  # an expected outcome: the other figures are drawn
    """The knowledge base lacks the data of a figure; the message says how to add them."""


@dataclass(frozen=True, slots=True)
class DeltaLines:
    """Delta by rule, a line for each method; rules in descending order of the first method's deltas."""

    number: int
    title: str
    lines: Mapping[str, Mapping[str, Delta]]
    """Method -> rule -> delta."""
    legend: Mapping[str, str]

    @property
    def rules(self) -> tuple[str, ...]:
        first = next(iter(self.lines.values()))
        rules = dict.fromkeys(chain.from_iterable(self.lines.values()))
        # Rules that the first method lacks come last.
        return tuple(sorted(rules, key=lambda rule: -first[rule].delta.value if rule in first else math.inf))

    def table(self) -> ResultTable:
        columns = ("rule", "method", "evaluator", "head", "long_tail", "delta", "low", "high")
        rows: list[tuple[object, ...]] = []
        for rule in self.rules:
            for method, line in self.lines.items():
                if rule in line:
                    delta = line[rule]
                    numbers = [None if math.isnan(number) else number for number in _interval(delta)]
                    rows.append((rule, method, delta.evaluator, delta.head, delta.long_tail, *numbers))
        return ResultTable("", columns, rows)

    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        rules = self.rules
        legend = {method: fill(text, _LEGEND_WIDTH) for method, text in self.legend.items()}
        legend_lines = sum(legend[method].count("\n") + 1 for method in self.lines)
        # In inches: room for a label under each rule, and for the legend below the axes.
        size = (max(6.0, 1.5 + 0.17 * len(rules)), 4.2 + 0.2 * legend_lines)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(0.0, color="0.6", linewidth=0.8)
        for place, (method, line) in enumerate(self.lines.items()):
            # A colour that is used again is dashed, then dotted.
            colour = COLOURS[place % len(COLOURS)]
            style = _LINE_STYLES[place // len(COLOURS) % len(_LINE_STYLES)]
            # nan leaves a gap in the line.
            values = np.array([_interval(line[rule]) if rule in line else (math.nan,) * 3 for rule in rules])
            axes.plot(range(len(rules)), values[:, 0], style, color=colour, markersize=3, label=legend[method])
            # The interval as a vertical line through the point.
            axes.vlines(range(len(rules)), values[:, 1], values[:, 2], color=colour, alpha=0.4)
        axes.set_xticks(range(len(rules)), rules, rotation=90, fontsize=6)
        axes.set_ylabel("delta, nats per token")
        axes.set_title(self.title)
        figure.legend(loc="outside lower left", frameon=False)
        return figure


@dataclass(frozen=True, slots=True)
class PanelRow:
    """A row of panels: head and long tail by rule."""

    label: str
    evaluator: str
    pairs: Mapping[str, tuple[Sample, Sample]]


@dataclass(frozen=True, slots=True)
class Panels:
    """Histograms of head and long tail: a column for each rule, a row for each method or evaluator."""

    number: int
    title: str
    rules: tuple[str, ...]
    rows: tuple[PanelRow, ...]

    def edges(self, rule: str, evaluator: str) -> list[float]:
        """Edges of a rule's bins: equal in all rows of one evaluator, so that the rows can be compared."""
        samples: list[Sample] = []
        for row in self.rows:
            if row.evaluator == evaluator:
                samples += row.pairs[rule]
        # The scores of a sample are in ascending order.
        low, high = min(sample.scores[0] for sample in samples), max(sample.scores[-1] for sample in samples)
        return bin_edges(low, high, BINS)

    def table(self) -> ResultTable:
        columns = ("rule", "row", "evaluator", "distribution", "low", "high", "statements", "share")
        rows: list[tuple[object, ...]] = []
        for rule, row in product(self.rules, self.rows):
            edges = self.edges(rule, row.evaluator)
            for sample in row.pairs[rule]:
                place = (rule, row.label, row.evaluator, sample.distribution.value)
                for (low, high), count in zip(pairwise(edges), bin_counts(sample.scores, edges), strict=True):
                    # Shares beside counts, because samples differ in size.
                    rows.append((*place, low, high, count, count / len(sample.scores)))
        return ResultTable("", columns, rows)

    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        size = (1.2 + 2.6 * len(self.rules), 1.0 + 1.7 * len(self.rows))
        figure = Figure(figsize=size, layout="constrained")
        # A matrix of axes, even for a single row or column.
        grid = figure.subplots(len(self.rows), len(self.rules), squeeze=False)
        for row, line in zip(self.rows, grid, strict=True):
            for rule, axes in zip(self.rules, line, strict=True):
                # Read back below: the first row's titles get the rule's name above their delta.
                _draw_pair(axes, row.pairs[rule], self.edges(rule, row.evaluator))
            line[0].set_ylabel(f"{fill(row.label, _LABEL_WIDTH)}\nshare of statements")
        for rule, axes in zip(self.rules, grid[0], strict=True):
            axes.set_title(f"{rule}\n{axes.get_title()}")
        grid[0][0].legend(frameon=False)
        figure.suptitle(self.title)
        figure.supxlabel(_AXIS)
        return figure


Plot = DeltaLines | Panels


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure of the paper: the methods that it compares, and what to run where the knowledge base lacks them."""

    title: str
    """With a slot for the evaluator."""
    methods: Callable[[LikelihoodReport], Sequence[SearchMethod]]
    needs: str = ""
    remedy: Remedy | str = ""
    as_lines: bool = False
    """Delta by rule, in place of histograms."""
    most_rules: int = MOST_RULES
    only_right: bool = False
    """Without the statements that people judged wrong."""


def plot(report: LikelihoodReport, number: int, rules: Sequence[str] = ()) -> Plot:
    """A figure by its number in the paper. `rules`: those to show in panels; without any, those with most statements.

    Raises FigureUnavailable if the knowledge base lacks the data.
    """
    if number in EVALUATOR_PAIRS:
        return _evaluators(report, number, rules)
    spec = _SPECS[number]
    methods = spec.methods(report)
    if not methods:
        raise FigureUnavailable(f"Figure {number} needs {spec.needs}.", spec.remedy)
    title = spec.title.format(report.short_name(report.evaluators[0]))
    if spec.as_lines:
        return _lines(report, number, title, methods)
    if spec.only_right:
        report = replace(report, samples=report.samples.without(report.denied))
    rows = _rows(report, methods)
    if number == POST_HOC:
        rows = _with_reranked(rows, methods)
    return _panels(number, title, rows, rules, spec.most_rules)


def _lines(report: LikelihoodReport, number: int, title: str, methods: Sequence[SearchMethod]) -> DeltaLines:
    evaluator = report.evaluators[0]
    lines: dict[str, dict[str, Delta]] = {method.name: {} for method in methods}
    for delta in report.deltas:
        if delta.evaluator == evaluator and delta.method in lines:
            lines[delta.method][delta.rule] = delta
    # Methods without a rule at both ends have no line.
    lines = {method: line for method, line in lines.items() if line}
    if not lines:
        raise FigureUnavailable(
            f"Figure {number} needs rules with head and long-tail statements. Search both distributions."
        )
    means = {mean.method: mean.delta for mean in report.mean_deltas if mean.evaluator == evaluator}
    legend = {method: f"{method}, mean {means[method].value:.2f}" for method in lines}
    return DeltaLines(number, title, lines, legend)


def _with_reranked(rows: Sequence[PanelRow], methods: Sequence[SearchMethod]) -> list[PanelRow]:
    """The rows, and below each of an unranked method those of its statements that reranking keeps."""
    shown = []
    for row, method in zip(rows, methods, strict=True):
        shown.append(row)
        if method.is_unranked:
            pairs = {rule: (reranked(head), reranked(long_tail)) for rule, (head, long_tail) in row.pairs.items()}
            shown.append(PanelRow(f"{row.label}, reranked afterwards", row.evaluator, pairs))
    return shown


def _evaluators(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Panels:
    """The first evaluator beside the second, third or fourth."""
    place = number - 9
    if place >= len(report.evaluators):
        raise FigureUnavailable(
            f"Figure {number} needs {place + 1} evaluators, but there {'is' if place == 1 else 'are'} "
            f"only {len(report.evaluators)}.",
            Remedy("Name all of them by {}.", Setting("options.evaluators")),
        )
    rows = []
    for evaluator in (report.evaluators[0], report.evaluators[place]):
        row = _row(report.samples, report.methods[0].name, evaluator)
        rows.append(replace(row, label=report.short_name(evaluator)))
    return _panels(number, " and ".join(row.label for row in rows), rows, rules)


# -- the methods that a figure compares; none where it cannot be drawn


def _compared(report: LikelihoodReport) -> list[SearchMethod]:
    """All methods; of instructions that differ only in wording, the first in table 11."""
    # Panels need rules that all methods have, so a model that cannot follow the instruction would empty the figure.
    paired = {delta.method for delta in report.deltas if delta.evaluator == report.evaluators[0]}
    first: dict[str, SearchMethod] = {}
    for method in report.methods:
        if method.is_instruction and method.name in paired:
            first.setdefault(_traits_besides(method, ("wording",)), method)
    return [method for method in report.methods if not method.is_instruction or method in first.values()]


def _temperatures(report: LikelihoodReport) -> list[SearchMethod]:
    methods = _varied(report, ("temperature",))
    return sorted(methods, key=lambda method: float(method.traits["temperature"])) if len(methods) > 1 else []


def _gated_and_ungated(report: LikelihoodReport) -> list[SearchMethod]:
    methods = _varied(report, ("likelihood",))
    # A search with the gate stands first, if there is one (`ordered_methods`).
    return methods if len(methods) > 1 and methods[0].traits["likelihood"] == "model" else []


def _ranked_and_unranked(report: LikelihoodReport) -> list[SearchMethod]:
    """A ranked search, and unranked methods. Instructions alone are enough."""
    instructions = [method for method in _compared(report) if method.is_instruction]
    if pair := _gated_and_ungated(report)[:2]:
        return [pair[0], *instructions, pair[1]]
    ranked = [method for method in report.methods if method.is_search and not method.is_unranked]
    return [*ranked[:1], *instructions] if instructions else []


def _knowledge_models(report: LikelihoodReport) -> list[SearchMethod]:
    methods = _varied(report, (KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL))
    return methods if len({method.traits[KNOWLEDGE_MODEL] for method in methods}) > 1 else []


def _wordings(report: LikelihoodReport) -> list[SearchMethod]:
    """The first search, and one model's instructions in several wordings."""
    groups: dict[str, list[SearchMethod]] = {}
    for method in report.methods:
        if method.is_instruction:
            groups.setdefault(_traits_besides(method, ("wording",)), []).append(method)
    wordings = max(groups.values(), key=len, default=[])
    searches = [method for method in report.methods if method.is_search]
    return [*searches[:1], *wordings] if len(wordings) > 1 else []


def _gate_remedy(alternative: Remedy) -> Remedy:
    return Remedy(
        "Run {} with the same other settings and {}, or {}.",
        Operation("search", **{"settings.likelihood": True}),
        Setting("kb"),
        alternative,
    )


POST_HOC = 7
EVALUATOR_PAIRS = (10, 11, 12)
"""Figures that compare the first evaluator with the second, third and fourth."""

_UNGATED = "a search without the likelihood gate besides the one with it"
_SPECS: Mapping[int, FigureSpec] = {
    3: FigureSpec("Delta by rule, by {}", _compared, as_lines=True),
    4: FigureSpec("Log-likelihoods by {}", _compared, most_rules=1, only_right=True),
    5: FigureSpec(
        "Temperatures, by {}",
        _temperatures,
        "searches that differ only in temperature",
        Remedy(
            "Run {} with the same other settings and {}.",
            Operation("search", **{"settings.temperature": 0.5}),
            Setting("kb"),
        ),
    ),
    6: FigureSpec(
        "Without likelihood gate, by {}",
        _gated_and_ungated,
        _UNGATED,
        _gate_remedy(Remedy("{}", Operation("evaluate_grid"))),
    ),
    POST_HOC: FigureSpec(
        "Reranking finished statements, by {}",
        _ranked_and_unranked,
        _UNGATED,
        _gate_remedy(Remedy("{} for statements by instruction only", Operation("evaluate_instruction"))),
    ),
    8: FigureSpec(
        "Knowledge models, by {}",
        _knowledge_models,
        "searches with two knowledge models",
        Remedy("Run {} with another {}.", Operation("search"), Setting("knowledge")),
    ),
    9: FigureSpec("Log-likelihoods by {}", _compared),
    13: FigureSpec(
        "Delta by rule, by {}",
        _wordings,
        "statements of one model by several wordings of the instruction",
        Remedy(
            "Run {} with the same {}.", Operation("evaluate_instruction", **{"options.wordings": "all"}), Setting("kb")
        ),
        as_lines=True,
    ),
}
NUMBERS: tuple[int, ...] = (*range(3, 10), *EVALUATOR_PAIRS, 13)


def _varied(report: LikelihoodReport, traits: Sequence[str]) -> list[SearchMethod]:
    """The largest group of searches that differ only in these traits."""
    groups: dict[str, list[SearchMethod]] = {}
    for method in report.methods:
        if method.is_search and all(trait in method.traits for trait in traits):
            # Equal in all other traits: only then does a figure show the effect of these.
            groups.setdefault(_traits_besides(method, traits), []).append(method)
    return max(groups.values(), key=len, default=[])


def _traits_besides(method: SearchMethod, traits: Sequence[str]) -> str:
    """All other traits of a method, as a key to group methods by."""
    return json.dumps({name: value for name, value in method.traits.items() if name not in traits}, sort_keys=True)


def _rows(report: LikelihoodReport, methods: Sequence[SearchMethod]) -> list[PanelRow]:
    return [_row(report.samples, method.name, report.evaluators[0]) for method in methods]


def _row(samples: Samples, method: str, evaluator: str) -> PanelRow:
    return PanelRow(method, evaluator, samples.pairs(method, evaluator))


def _panels(
    number: int, title: str, rows: Sequence[PanelRow], rules: Sequence[str] = (), most: int = MOST_RULES
) -> Panels:
    """Panels of the rules that have both distributions in all rows."""
    common = [rule for rule in rules or rows[0].pairs if all(rule in row.pairs for row in rows)]
    if not common:
        labels = "; ".join(row.label for row in rows)
        raise FigureUnavailable(
            f"Figure {number} needs a rule with head and long-tail statements in each of: {labels}. "
            f"Search the same rules with each."
        )
    if not rules:
        # The smallest sample decides: a histogram of a few statements shows nothing. The rules keep their order.
        sizes = {}
        for rule in common:
            samples = chain.from_iterable(row.pairs[rule] for row in rows)
            sizes[rule] = min(len(sample.scores) for sample in samples)
        largest = sorted(common, key=lambda rule: -sizes[rule])[:most]
        common = [rule for rule in common if rule in largest]
    return Panels(number, title, tuple(common[:most]), tuple(rows))


def write(figure: Plot, folder: Path) -> tuple[Path, ...]:
    """Write a figure as `figure-N.png`, `.svg` and `.csv`."""
    return write_figure(folder / f"figure-{figure.number}", figure.draw, figure.table())


def write_samples(samples: Samples, folder: Path) -> Path:
    """Write the log-likelihood of every statement as `likelihoods.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[object, ...]] = []
    for sample in samples:
        place = (sample.rule, sample.method, sample.evaluator, sample.distribution.value)
        for score, text in zip(sample.scores, sample.texts, strict=True):
            rows.append((*place, score, text))
    path = folder / "likelihoods.csv"
    columns = ("rule", "method", "evaluator", "distribution", "log_likelihood", "statement")
    ResultTable("", columns, rows).write_csv(path)
    return path


def _draw_pair(axes: Axes, pair: Iterable[Sample], edges: Sequence[float]) -> None:
    means = []
    for sample in pair:
        colour, label = _SHADES[sample.distribution]
        shares = [count / len(sample.scores) for count in bin_counts(sample.scores, edges)]
        axes.stairs(shares, edges, fill=True, alpha=0.45, color=colour, label=label)
        axes.axvline(sample.mean, color=colour, linestyle="--", linewidth=1.0)
        means.append(sample.mean)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title(f"delta {means[0] - means[1]:.2f}")


def _interval(delta: Delta) -> tuple[float, float, float]:
    return delta.delta.value, delta.delta.low, delta.delta.high


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
    figure_numbers: Sequence[int] = NUMBERS
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
    report = measure(kb, options.evaluators, options.rules, journal)
    written: dict[int, tuple[Path, ...]] = {}
    unavailable: dict[int, str] = {}
    if options.out is not None:
        # Written in any case: they are the scores behind all figures.
        write_samples(report.samples, options.out)
        for number in options.figure_numbers:
            try:
                written[number] = write(plot(report, number, options.rules), options.out)
            except FigureUnavailable as fault:
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
        rows.append((mean.method, name, str(mean.delta), str(mean.auc), positive))
    columns = ("method", "evaluator", "delta", "AUC", "delta > 0")
    return ResultTable("Mean delta over rules", columns, rows)


def _rerankings(report: LikelihoodReport) -> ResultTable:
    rows = []
    for reranking in report.rerankings:
        name = report.short_name(reranking.evaluator)
        rows.append((reranking.method, name, str(reranking.before), str(reranking.after)))
    columns = ("method", "evaluator", "delta", "delta of the reranked 75 %")
    return ResultTable("Mean delta when finished statements are reranked (LINK, D.4)", columns, rows)


def _agreements(report: LikelihoodReport) -> ResultTable:
    columns = ("evaluators", "statements", "deltas", "same sign of delta", "low for both", "rules")
    rows = []
    for pair in report.agreements:
        names = f"{report.short_name(pair.first)} and {report.short_name(pair.second)}"
        measures = (pair.statements, pair.deltas, pair.signs, pair.low)
        rows.append((names, *map(str, measures), str(pair.signs.count)))
    return ResultTable("Agreement: rank correlations, and the share of rules (LINK, E.2)", columns, rows)
