"""LINK's likelihood figures 3 to 13, each as PNG, SVG and the CSV of what it draws.

Data comes from `evaluation/distributions.py`. A figure whose data the knowledge base lacks says which command brings
it. Files depend on the data alone: the same knowledge base gives the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from engine.report import SearchReport
from evaluation.distributions import (
    CRITIC_MODEL,
    KNOWLEDGE_MODEL,
    LIKELIHOOD_MODEL,
    Delta,
    LikelihoodReport,
    Method,
    Sample,
    Samples,
    reranked,
    samples_of,
)
from evaluation.drawing import COLOURS, Table, write_figure, write_table
from grammar.errors import HapaxError
from kb.records import Distribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_RULES = 6
"""Rules side by side in one figure, as in the paper."""
BINS = 30

_SHADES = {Distribution.HEAD: (COLOURS[0], "head"), Distribution.LONG_TAIL: (COLOURS[1], "long tail")}
_AXIS = "mean token log-likelihood, nats"
_LEGEND_WIDTH = 80
"""Characters of a legend's line in the narrowest figure."""
_LABEL_WIDTH = 28
"""Characters of a row's label on one line: what fits beside its panel."""


class Lacking(HapaxError):  # noqa: N818  # an outcome that is planned for: the other figures are drawn
    """A figure cannot be drawn from what is stored; the message says what brings it."""


@dataclass(frozen=True, slots=True)
class DeltaLines:
    """Delta by rule, a line for each method; the rules are in falling order of the first method's deltas."""

    number: int
    title: str
    lines: Mapping[str, Mapping[str, Delta]]
    """Method -> rule -> delta."""
    legend: Mapping[str, str]

    @property
    def rules(self) -> tuple[str, ...]:
        first = next(iter(self.lines.values()))
        named = dict.fromkeys(rule for line in self.lines.values() for rule in line)
        return tuple(sorted(named, key=lambda rule: -first[rule].delta.value if rule in first else math.inf))

    def table(self) -> Table:
        columns = ("rule", "method", "evaluator", "head", "long_tail", "delta", "low", "high")
        rows = [
            (rule, method, one.evaluator, one.head, one.long_tail, *map(_cell, _interval(one)))
            for rule in self.rules
            for method, line in self.lines.items()
            if (one := line.get(rule))
        ]
        return columns, list(rows)

    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        rules = self.rules
        legend = {method: fill(told, _LEGEND_WIDTH) for method, told in self.legend.items()}
        told = sum(legend[method].count("\n") + 1 for method in self.lines)
        size = (max(6.0, 1.5 + 0.17 * len(rules)), 4.2 + 0.2 * told)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(0.0, color="0.6", linewidth=0.8)
        for (colour, style), (method, line) in zip(_cycle(len(self.lines)), self.lines.items(), strict=True):
            values = np.array([_interval(line[rule]) if rule in line else (math.nan,) * 3 for rule in rules])
            axes.plot(range(len(rules)), values[:, 0], style, color=colour, markersize=3, label=legend[method])
            axes.vlines(range(len(rules)), values[:, 1], values[:, 2], color=colour, alpha=0.4)
        axes.set_xticks(range(len(rules)), rules, rotation=90, fontsize=6)
        axes.set_ylabel("delta, nats a token")
        axes.set_title(self.title)
        figure.legend(loc="outside lower left", frameon=False)
        return figure


@dataclass(frozen=True, slots=True)
class Row:
    """One row of panels: head and long tail by rule."""

    label: str
    evaluator: str
    pairs: Mapping[str, tuple[Sample, Sample]]


@dataclass(frozen=True, slots=True)
class Panels:
    """Histograms of head and long tail: a column for each rule, a row for each method or evaluator."""

    number: int
    title: str
    rules: tuple[str, ...]
    rows: tuple[Row, ...]

    def edges(self, rule: str, evaluator: str) -> list[float]:
        """The bins of a rule: the same for all rows of one evaluator, so that they can be compared."""
        samples = [one for row in self.rows if row.evaluator == evaluator for one in row.pairs[rule]]
        low, high = min(one.scores[0] for one in samples), max(one.scores[-1] for one in samples)
        return [float(edge) for edge in np.histogram_bin_edges([low, high], BINS)]

    def table(self) -> Table:
        columns = ("rule", "row", "evaluator", "distribution", "low", "high", "statements", "share")
        rows: list[Sequence[object]] = [
            (rule, row.label, row.evaluator, sample.distribution.value, low, high, count, count / len(sample.scores))
            for rule in self.rules
            for row in self.rows
            for sample in row.pairs[rule]
            for (low, high), count in zip(
                pairwise(self.edges(rule, row.evaluator)),
                _counts(sample, self.edges(rule, row.evaluator)),
                strict=True,
            )
        ]
        return columns, rows

    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        size = (1.2 + 2.6 * len(self.rules), 1.0 + 1.7 * len(self.rows))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(self.rows), len(self.rules), squeeze=False)
        for row, line in zip(self.rows, grid, strict=True):
            for rule, axes in zip(self.rules, line, strict=True):
                _draw_pair(axes, row.pairs[rule], self.edges(rule, row.evaluator))
            line[0].set_ylabel(f"{fill(row.label, _LABEL_WIDTH)}\nshare of statements")
        for rule, axes in zip(self.rules, grid[0], strict=True):
            axes.set_title(f"{rule}\n{axes.get_title()}")
        grid[0][0].legend(frameon=False)
        figure.suptitle(self.title)
        figure.supxlabel(_AXIS)
        return figure


Plot = DeltaLines | Panels


# -- which figure shows what


def plot(report: LikelihoodReport, number: int, rules: Sequence[str] = ()) -> Plot:
    """A figure by its number in the paper. `rules`: which to show in panels; without any, those with most statements.

    Raises Lacking where the data is not there.
    """
    return _FIGURES[number](report, number, rules)


def ablation_plot(reports: Mapping[str, SearchReport], evaluator: str) -> Panels:
    """Figure 6 from the searches of an ablation, by variant."""
    samples = samples_of(reports, evaluator)
    rows = [_row(samples, variant, evaluator) for variant in reports]
    return _panels(6, f"Without critic and likelihood gate, by {evaluator}", rows)


def _delta_figure(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:  # noqa: ARG001  # all rules
    return _lines(report, number, _compared(report))


def _lines(report: LikelihoodReport, number: int, methods: Sequence[Method]) -> DeltaLines:
    evaluator = report.evaluators[0]
    lines: dict[str, dict[str, Delta]] = {one.name: {} for one in methods}
    for one in report.deltas:
        if one.evaluator == evaluator and one.method in lines:
            lines[one.method][one.rule] = one
    lines = {method: line for method, line in lines.items() if line}
    if not lines:
        raise Lacking(f"Figure {number} needs rules with head and long-tail statements. Search both distributions.")
    means = {one.method: one.delta for one in report.mean_deltas if one.evaluator == evaluator}
    legend = {method: f"{method}, mean {means[method].value:.2f}" for method in lines}
    return DeltaLines(number, f"Delta by rule, by {report.shown(evaluator)}", lines, legend)


def _one_rule(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:
    """Without the statements that people judged wrong, as in the paper."""
    return _methods_figure(replace(report, samples=report.samples.without(report.denied)), number, rules, most=1)


def _methods_figure(report: LikelihoodReport, number: int, rules: Sequence[str], most: int = MOST_RULES) -> Plot:
    return _panels(
        number,
        f"Log-likelihoods by {report.shown(report.evaluators[0])}",
        _rows(report, _compared(report)),
        rules,
        most,
    )


def _compared(report: LikelihoodReport) -> list[Method]:
    """What figures 3, 4, 7 and 9 compare: of instructions that differ in wording alone the first of table 11.

    Instructions without a rule that has both distributions are left out: a model that cannot follow them would keep
    all others from being drawn.
    """
    paired = {one.method for one in report.deltas if one.evaluator == report.evaluators[0]}
    first: dict[str, Method] = {}
    for one in report.methods:
        if one.is_instruction and one.name in paired:
            first.setdefault(_alike(one, ("wording",)), one)
    return [one for one in report.methods if not one.is_instruction or one in first.values()]


def _temperatures(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:
    methods = _varied(report, ("temperature",))
    if len(methods) < 2:
        raise Lacking(
            f"Figure {number} needs searches that differ in temperature alone. Run `hapax search --temperature 0.5` "
            f"with the same other options and --db."
        )
    methods = sorted(methods, key=lambda one: float(one.traits["temperature"]))
    return _panels(number, f"Temperatures, by {report.shown(report.evaluators[0])}", _rows(report, methods), rules)


def _ungated(report: LikelihoodReport, number: int) -> list[Method]:
    methods = _varied(report, ("likelihood",))
    if not methods or methods[0].traits["likelihood"] != "model" or len(methods) < 2:
        otherwise = (
            ", or `hapax evaluate ablation --out figures`"
            if number == 6
            else ", or `hapax evaluate instruct` for statements by instruction only"
        )
        raise Lacking(
            f"Figure {number} needs a search without the likelihood gate beside the one with it. Run "
            f"`hapax search --no-likelihood` with the same other options and --db{otherwise}."
        )
    return methods


def _without_gate(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:
    rows = _rows(report, _ungated(report, number))
    return _panels(number, f"Without likelihood gate, by {report.shown(report.evaluators[0])}", rows, rules)


def _post_hoc(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:
    """A ranked search, and what was written by instruction or found without the gate, as it is and reranked."""
    evaluator = report.evaluators[0]
    ranked = [one for one in report.methods if one.is_search and not one.is_unranked][:1]
    unranked = [one for one in _compared(report) if one.is_instruction]
    try:
        full, drawn = _ungated(report, number)[:2]
        ranked, unranked = [full], [*unranked, drawn]
    except Lacking:
        if not unranked:
            raise
    rows = _rows(report, ranked)
    for one in _rows(report, unranked):
        kept = {rule: (reranked(head), reranked(long_tail)) for rule, (head, long_tail) in one.pairs.items()}
        rows += [one, Row(f"{one.label}, reranked afterwards", evaluator, kept)]
    return _panels(number, f"Reranking finished statements, by {report.shown(evaluator)}", rows, rules)


def _knowledge_models(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:
    methods = _varied(report, (KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL))
    if len({one.traits[KNOWLEDGE_MODEL] for one in methods}) < 2:
        raise Lacking(
            f"Figure {number} needs searches with two knowledge models. Run `hapax search --knowledge` with another "
            f"model and the same other options and --db."
        )
    return _panels(number, f"Knowledge models, by {report.shown(report.evaluators[0])}", _rows(report, methods), rules)


def _evaluators(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:
    first, *others = report.evaluators
    place = number - 10
    if place >= len(others):
        raise Lacking(
            f"Figure {number} needs {place + 2} evaluators; here {'is' if not others else 'are'} {len(others) + 1}. "
            f"Name them all, such as `--evaluator frequency --evaluator embedded`."
        )
    method = report.methods[0].name
    found = (_row(report.samples, method, evaluator) for evaluator in (first, others[place]))
    rows = [replace(one, label=report.shown(one.evaluator)) for one in found]
    return _panels(number, " and ".join(row.label for row in rows), rows, rules)


def _instructions(report: LikelihoodReport, number: int, rules: Sequence[str]) -> Plot:  # noqa: ARG001  # all rules
    """The first search beside one model's instructions in several wordings."""
    groups: dict[str, list[Method]] = {}
    for one in report.methods:
        if one.is_instruction:
            groups.setdefault(_alike(one, ("wording",)), []).append(one)
    wordings = max(groups.values(), key=len, default=[])
    if len(wordings) < 2:
        raise Lacking(
            f"Figure {number} needs statements that a model wrote after several wordings of an instruction. Run "
            "`hapax evaluate instruct --wording all` with the same --db."
        )
    return _lines(report, number, [*[one for one in report.methods if one.is_search][:1], *wordings])


_FIGURES: Mapping[int, Callable[[LikelihoodReport, int, Sequence[str]], Plot]] = {
    3: _delta_figure,
    4: _one_rule,
    5: _temperatures,
    6: _without_gate,
    7: _post_hoc,
    8: _knowledge_models,
    9: _methods_figure,
    10: _evaluators,
    11: _evaluators,
    12: _evaluators,
    13: _instructions,
}
NUMBERS = tuple(_FIGURES)


def _varied(report: LikelihoodReport, traits: Sequence[str]) -> list[Method]:
    """The largest group of searches that differ in these traits alone."""
    groups: dict[str, list[Method]] = {}
    for one in report.methods:
        if one.is_search and all(trait in one.traits for trait in traits):
            groups.setdefault(_alike(one, traits), []).append(one)
    return max(groups.values(), key=len, default=[])


def _alike(method: Method, traits: Sequence[str]) -> str:
    """What methods share that differ in these traits alone."""
    return json.dumps({name: value for name, value in method.traits.items() if name not in traits}, sort_keys=True)


def _rows(report: LikelihoodReport, methods: Sequence[Method]) -> list[Row]:
    return [_row(report.samples, one.name, report.evaluators[0]) for one in methods]


def _row(samples: Samples, method: str, evaluator: str) -> Row:
    pairs = {rule: pair for rule in samples.rules if (pair := samples.pair(method, rule, evaluator))}
    return Row(method, evaluator, pairs)


def _panels(number: int, title: str, rows: Sequence[Row], rules: Sequence[str] = (), most: int = MOST_RULES) -> Panels:
    """Panels over the rules that have both distributions in all rows."""
    common = [rule for rule in rules or rows[0].pairs if all(rule in row.pairs for row in rows)]
    if not common:
        named = "; ".join(row.label for row in rows)
        raise Lacking(
            f"Figure {number} needs a rule with head and long-tail statements in each of: {named}. "
            f"Search the same rules with each."
        )
    if not rules:
        sizes = {rule: min(len(one.scores) for row in rows for one in row.pairs[rule]) for rule in common}
        largest = sorted(common, key=lambda rule: -sizes[rule])[:most]
        common = [rule for rule in common if rule in largest]
    chosen = tuple(common[:most])
    return Panels(number, title, chosen, tuple(rows))


# -- drawing and writing


def write(one: Plot, folder: Path) -> tuple[Path, ...]:
    """Write a figure as `figure-N.png`, `.svg` and `.csv`."""
    return write_figure(folder / f"figure-{one.number}", one.draw, one.table())


def write_samples(samples: Samples, folder: Path) -> Path:
    """Write every statement's log-likelihood as `likelihoods.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        (one.rule, one.method, one.evaluator, one.distribution.value, score, text)
        for one in samples
        for score, text in zip(one.scores, one.texts, strict=True)
    ]
    path = folder / "likelihoods.csv"
    write_table((("rule", "method", "evaluator", "distribution", "log_likelihood", "statement"), list(rows)), path)
    return path


def _draw_pair(axes: Axes, pair: Iterable[Sample], edges: Sequence[float]) -> None:
    means = []
    for sample in pair:
        colour, label = _SHADES[sample.distribution]
        shares = [count / len(sample.scores) for count in _counts(sample, edges)]
        axes.stairs(shares, edges, fill=True, alpha=0.45, color=colour, label=label)
        axes.axvline(sample.mean, color=colour, linestyle="--", linewidth=1.0)
        means.append(sample.mean)
    axes.locator_params(axis="x", nbins=4)
    axes.set_title(f"delta {means[0] - means[1]:.2f}")


def _counts(sample: Sample, edges: Sequence[float]) -> list[int]:
    return [int(count) for count in np.histogram(sample.scores, edges)[0]]


def _interval(one: Delta) -> tuple[float, float, float]:
    return one.delta.value, one.delta.low, one.delta.high


def _cell(value: float) -> float | None:
    return None if math.isnan(value) else value


def _cycle(count: int) -> list[tuple[str, str]]:
    """Colours and line styles; a colour that comes again is dashed."""
    styles = ("o-", "s--", "^:")
    return [(COLOURS[place % len(COLOURS)], styles[place // len(COLOURS) % len(styles)]) for place in range(count)]
