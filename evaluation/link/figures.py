"""LINK's likelihood figures 3 to 13, each as PNG, SVG and the CSV of its data.

If the knowledge base lacks the data of a figure, the message names the command that adds them. Files depend on the data
alone: equal knowledge bases give equal bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from hapax.evaluation.link.likelihood import (
    CRITIC_MODEL,
    KNOWLEDGE_MODEL,
    LIKELIHOOD_MODEL,
    Delta,
    LikelihoodReport,
    SamplePair,
    SearchMethod,
    measure,
    pairs_of,
)
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.result_tables import (
    COLOURS,
    Evaluation,
    ResultTable,
    bin_counts,
    bin_edges,
    grouped,
    write_figure,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import EVALUATOR, LikelihoodModel
from hapax.llm_oracle.registry import open_model

if TYPE_CHECKING:
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


# --- the two kinds of figure ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeltaLines:
    """Delta by rule, a line for each method; rules in descending order of the first method's deltas.

    `lines`: method -> rule -> delta; no line is empty. `means`: mean delta of each method.
    """

    title: str
    lines: Mapping[str, Mapping[str, Delta]]
    means: Mapping[str, float]

    @property
    def rules(self) -> list[str]:
        first = next(iter(self.lines.values()))
        rules = dict.fromkeys(chain.from_iterable(self.lines.values()))
        # Rules that the first method lacks come last.
        return sorted(rules, key=lambda rule: -first[rule].delta.value if rule in first else math.inf)

    def table(self) -> ResultTable:
        columns = ("rule", "method", "evaluator", "head", "long_tail", "delta", "low", "high")
        rows: list[tuple[object, ...]] = []
        for rule, (method, line) in product(self.rules, self.lines.items()):
            if rule in line:
                delta = line[rule]
                numbers = [None if math.isnan(number) else number for number in _interval(delta)]
                rows.append((rule, method, delta.evaluator, delta.head, delta.long_tail, *numbers))
        return ResultTable("", columns, rows)

    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        rules = self.rules
        legend = [fill(f"{method}, mean {self.means[method]:.2f}", _LEGEND_WIDTH) for method in self.lines]
        legend_lines = "\n".join(legend).count("\n") + 1
        # In inches: room for a label under each rule, and for the legend below the axes.
        size = (max(6.0, 1.5 + 0.17 * len(rules)), 4.2 + 0.2 * legend_lines)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(0.0, color="0.6", linewidth=0.8)
        for place, (label, line) in enumerate(zip(legend, self.lines.values(), strict=True)):
            # A colour that is used again is dashed, then dotted.
            colour = COLOURS[place % len(COLOURS)]
            style = _LINE_STYLES[place // len(COLOURS) % len(_LINE_STYLES)]
            # nan leaves a gap in the line.
            values = np.array([_interval(line[rule]) if rule in line else (math.nan,) * 3 for rule in rules])
            axes.plot(range(len(rules)), values[:, 0], style, color=colour, markersize=3, label=label)
            # The interval as a vertical line through the point.
            axes.vlines(range(len(rules)), values[:, 1], values[:, 2], color=colour, alpha=0.4)
        axes.set_xticks(range(len(rules)), rules, rotation=90, fontsize=6)
        axes.set_ylabel("delta, nats per token")
        axes.set_title(self.title)
        figure.legend(loc="outside lower left", frameon=False)
        return figure


def _interval(delta: Delta) -> tuple[float, float, float]:
    return delta.delta.value, delta.delta.low, delta.delta.high


@dataclass(frozen=True, slots=True)
class Panels:
    """Histograms of head and long tail: a column for each rule, a row for each method or evaluator.

    `rows`: by label, the evaluator and the samples by rule.
    """

    title: str
    rules: tuple[str, ...]
    rows: Mapping[str, tuple[str, Mapping[str, SamplePair]]]

    def edges(self, rule: str, evaluator: str) -> list[float]:
        """Edges of a rule's bins: equal in all rows of one evaluator, so that the rows can be compared."""
        scores: list[float] = []
        for row_evaluator, pairs in self.rows.values():
            if row_evaluator == evaluator:
                scores += chain.from_iterable(sample.scores for sample in pairs[rule])
        return bin_edges(min(scores), max(scores), BINS)

    def table(self) -> ResultTable:
        columns = ("rule", "row", "evaluator", "distribution", "low", "high", "statements", "share")
        rows: list[tuple[object, ...]] = []
        for rule, (label, (evaluator, pairs)) in product(self.rules, self.rows.items()):
            edges = self.edges(rule, evaluator)
            for sample in pairs[rule]:
                place = (rule, label, evaluator, sample.distribution.value)
                for (low, high), count in zip(pairwise(edges), bin_counts(sample.scores, edges), strict=True):
                    # Shares beside counts, because samples differ in size.
                    rows.append((*place, low, high, count, count / len(sample.scored)))
        return ResultTable("", columns, rows)

    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        size = (1.2 + 2.6 * len(self.rules), 1.0 + 1.7 * len(self.rows))
        figure = Figure(figsize=size, layout="constrained")
        # A matrix of axes, even for a single row or column.
        grid = figure.subplots(len(self.rows), len(self.rules), squeeze=False)
        for (label, (evaluator, pairs)), line in zip(self.rows.items(), grid, strict=True):
            for rule, axes in zip(self.rules, line, strict=True):
                edges = self.edges(rule, evaluator)
                for sample in pairs[rule]:
                    colour, name = _SHADES[sample.distribution]
                    shares = [count / len(sample.scored) for count in bin_counts(sample.scores, edges)]
                    axes.stairs(shares, edges, fill=True, alpha=0.45, color=colour, label=name)
                    axes.axvline(sample.mean, color=colour, linestyle="--", linewidth=1.0)
                axes.locator_params(axis="x", nbins=4)
                head, long_tail = pairs[rule]
                above = f"{rule}\n" if line is grid[0] else ""
                axes.set_title(f"{above}delta {head.mean - long_tail.mean:.2f}")
            line[0].set_ylabel(f"{fill(label, _LABEL_WIDTH)}\nshare of statements")
        grid[0][0].legend(frameon=False)
        figure.suptitle(self.title)
        figure.supxlabel(_AXIS)
        return figure


# --- the methods that a figure compares; none where it cannot be drawn ------------------------------------------------

MethodChoice = Callable[[LikelihoodReport], Sequence[SearchMethod]]


def _compared(report: LikelihoodReport) -> list[SearchMethod]:
    """All methods; of instructions that differ only in wording, the first in table 11."""
    # Panels need rules that all methods have, so a model that cannot follow the instruction would empty the figure.
    paired = {delta.method for delta in report.deltas if delta.evaluator == report.evaluators[0]}
    first: dict[str, SearchMethod] = {}
    for method in report.methods:
        if method.is_instruction and method.name in paired:
            first.setdefault(_traits_besides(method, ("wording",)), method)
    return [method for method in report.methods if not method.is_instruction or method in first.values()]


def _varying(*traits: str) -> MethodChoice:
    """The largest group of searches, or of instructions, that differ in the first of these traits and only in them."""

    def chosen(report: LikelihoodReport) -> list[SearchMethod]:
        fitting = []
        for method in report.methods:
            if method.is_instruction == ("wording" in traits) and all(trait in method.traits for trait in traits):
                fitting.append(method)
        # Equal in all other traits: only then does a figure show the effect of these.
        groups = grouped(fitting, lambda method: _traits_besides(method, traits))
        largest = max(groups.values(), key=len, default=[])
        if len({method.traits[traits[0]] for method in largest}) < 2:
            return []
        return sorted(largest, key=lambda method: method.traits[traits[0]])

    return chosen


def _traits_besides(method: SearchMethod, traits: Sequence[str]) -> str:
    """All other traits of a method, as a key to group methods by."""
    return json.dumps({name: value for name, value in method.traits.items() if name not in traits}, sort_keys=True)


_gated_and_ungated = _varying("likelihood")


def _ranked_and_unranked(report: LikelihoodReport) -> list[SearchMethod]:
    """A ranked search, and unranked methods. Instructions alone are enough."""
    instructions = [method for method in _compared(report) if method.is_instruction]
    if pair := _gated_and_ungated(report)[:2]:
        return [pair[0], *instructions, pair[1]]
    ranked = [method for method in report.methods if method.is_search and not method.is_unranked]
    return [*ranked[:1], *instructions] if instructions else []


def _wordings(report: LikelihoodReport) -> list[SearchMethod]:
    """The first search, and one model's instructions in several wordings."""
    wordings = _varying("wording")(report)
    searches = [method for method in report.methods if method.is_search]
    return [*searches[:1], *wordings] if wordings else []


def _gate_remedy(alternative: Remedy) -> Remedy:
    return Remedy(
        "Run {} with the same other settings and {}, or {}.",
        Operation("search", **{"settings.likelihood": True}),
        Setting("kb"),
        alternative,
    )


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure of the paper: the methods that it compares, and what to run where the knowledge base lacks them.

    `title`: with a slot for the evaluator. `as_lines`: delta by rule in place of histograms.
    """

    title: str
    methods: MethodChoice
    needs: str = ""
    remedy: Remedy | str = ""
    as_lines: bool = False


ONE_RULE, POST_HOC = 4, 7
"""The figure of one rule, without statements that people denied, and that of reranking afterwards."""

EVALUATOR_PAIRS = (10, 11, 12)
"""Figures that compare the first evaluator with the second, third and fourth."""

_UNGATED = "a search without the likelihood gate besides the one with it"
_SPECS: Mapping[int, FigureSpec] = {
    3: FigureSpec("Delta by rule, by {}", _compared, as_lines=True),
    ONE_RULE: FigureSpec("Log-likelihoods by {}", _compared),
    5: FigureSpec(
        "Temperatures, by {}",
        _varying("temperature"),
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
        _varying(KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL),
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


def plot(report: LikelihoodReport, number: int, rules: Sequence[str] = ()) -> DeltaLines | Panels:
    """A figure by its number in the paper. `rules`: those to show in panels; without any, those with most statements.

    Raises FigureUnavailable if the knowledge base lacks the data.
    """
    rows: dict[str, tuple[str, Mapping[str, SamplePair]]] = {}
    if number in EVALUATOR_PAIRS:
        place = number - 9
        if place >= len(report.evaluators):
            raise FigureUnavailable(
                f"Figure {number} needs {place + 1} evaluators, but there {'is' if place == 1 else 'are'} "
                f"only {len(report.evaluators)}.",
                Remedy("Name all of them by {}.", Setting("options.evaluators")),
            )
        for name in (report.evaluators[0], report.evaluators[place]):
            rows[report.short_name(name)] = name, pairs_of(report.samples, report.methods[0].name, name)
        return _panels(number, " and ".join(rows), rows, rules)
    spec, evaluator = _SPECS[number], report.evaluators[0]
    title = spec.title.format(report.short_name(evaluator))
    methods = spec.methods(report)
    if not methods:
        raise FigureUnavailable(f"Figure {number} needs {spec.needs}.", spec.remedy)
    if spec.as_lines:
        return _lines(report, number, title, methods)
    samples = [sample.without(report.denied) for sample in report.samples] if number == ONE_RULE else report.samples
    for method in methods:
        pairs = pairs_of((sample for sample in samples if sample.scored), method.name, evaluator)
        rows[method.name] = evaluator, pairs
        if number == POST_HOC and method.is_unranked:
            afterwards = {rule: (head.reranked, long_tail.reranked) for rule, (head, long_tail) in pairs.items()}
            rows[f"{method.name}, reranked afterwards"] = evaluator, afterwards
    return _panels(number, title, rows, rules)


def _lines(report: LikelihoodReport, number: int, title: str, methods: Iterable[SearchMethod]) -> DeltaLines:
    lines: dict[str, dict[str, Delta]] = {}
    for method, delta in product(methods, report.deltas):
        if (delta.method, delta.evaluator) == (method.name, report.evaluators[0]):
            lines.setdefault(method.name, {})[delta.rule] = delta
    if not lines:
        raise FigureUnavailable(
            f"Figure {number} needs rules with head and long-tail statements. Search both distributions."
        )
    means = {mean.method: mean.delta.value for mean in report.mean_deltas if mean.evaluator == report.evaluators[0]}
    return DeltaLines(title, lines, means)


def _panels(
    number: int, title: str, rows: Mapping[str, tuple[str, Mapping[str, SamplePair]]], rules: Sequence[str]
) -> Panels:
    """Panels of the rules that have both distributions in all rows."""
    by_row = [pairs for _, pairs in rows.values()]
    common = [rule for rule in rules or by_row[0] if all(rule in pairs for pairs in by_row)]
    if not common:
        raise FigureUnavailable(
            f"Figure {number} needs a rule with head and long-tail statements in each of: {'; '.join(rows)}. "
            f"Search the same rules with each."
        )
    most = 1 if number == ONE_RULE else MOST_RULES
    if not rules:
        # The smallest sample decides: a histogram of a few statements shows nothing. The rules keep their order.
        sizes = {}
        for rule in common:
            sizes[rule] = min(len(sample.scored) for sample in chain.from_iterable(pairs[rule] for pairs in by_row))
        largest = sorted(common, key=lambda rule: -sizes[rule])[:most]
        common = [rule for rule in common if rule in largest]
    return Panels(title, tuple(common[:most]), rows)


# --- the experiment ---------------------------------------------------------------------------------------------------


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


def open_evaluators(names: Iterable[str], opening: OpeningOptions) -> list[LikelihoodModel]:
    """The models of these strings in the role of the evaluator, each once, for `LikelihoodOptions`."""
    return [open_model(name, EVALUATOR, opening) for name in dict.fromkeys(names)]


@checked
def evaluate_likelihood(
    kb: KnowledgeBase, options: LikelihoodOptions | None = None, *, journal: Journal | None = None
) -> Evaluation[LikelihoodReport]:
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
        _write_scores(report, options.out)
        for number in options.figure_numbers:
            try:
                figure = plot(report, number, options.rules)
                written[number] = write_figure(options.out / f"figure-{number}", figure.draw, figure.table())
            except FigureUnavailable as fault:
                # Most knowledge bases lack the searches that some figures compare; the notes say how to add them.
                unavailable[number] = str(fault)
    return replace(report, written=written, unavailable=unavailable).evaluation()


def _write_scores(report: LikelihoodReport, folder: Path) -> None:
    """Write the log-likelihood of every statement as `likelihoods.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[object, ...]] = []
    for sample in report.samples:
        place = (sample.rule, sample.method, sample.evaluator, sample.distribution.value)
        rows += [(*place, score, text) for score, text in sample.scored]
    columns = ("rule", "method", "evaluator", "distribution", "log_likelihood", "statement")
    ResultTable("", columns, rows).write_csv(folder / "likelihoods.csv")
