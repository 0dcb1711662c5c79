"""Values of the plots, which `plots.js` draws in the reader's browser with Observable Plot.

Tried against it: a histogram of two series takes 45 ms and 11 kB with Vega-Lite in vl-convert, which adds 84 MB of
packages, and 41 ms and 11 kB with matplotlib, whose `style` attributes the page's policy blocks. Observable Plot adds
270 kB to a page once and 1 kB for each histogram, takes its colours from the style sheet, and needs no package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, TypeVar

from hapax.evaluation.shared.result_tables import bin_counts, bin_edges
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import variable_names
from hapax.grammar.writing.printing import graph_text

Item = TypeVar("Item")

Address = Callable[[object], str]

BINS = 24
LARGEST = 1e9
"""Values beyond this are not drawn: no sentence has such a log-likelihood, and it would flatten all other bars."""
NARROWEST = 1e-6
"""Ranges narrower than this share of their values are widened: floats are too coarse to bin them."""
LABEL = 70
"""Characters of a node's label that are drawn."""
DOTS = 300
"""Most statements of a distribution that are drawn as dots."""


@dataclass(frozen=True, slots=True)
class Series:
    """The bars of one kind of values: `counts` by bin, empty without values, when `mean` is None."""

    kind: str
    label: str
    count: int
    mean: float | None
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bars of series, each as a share of its series, over BINS common bins of equal width from `low` to `high`."""

    series: tuple[Series, ...]
    low: float
    high: float
    left_out: int = 0
    """Number of values beyond LARGEST."""

    @property
    def values(self) -> dict[str, Any]:
        """The values for the browser."""
        return {"form": "histogram", **asdict(self)}


def histogram(values: Mapping[str, Sequence[float]], labels: Mapping[str, str]) -> Histogram | None:
    """Bin values by kind, or return None if there are none."""
    drawn: dict[str, list[float]] = {}
    pooled: list[float] = []
    # A value beyond LARGEST is left out of the bars, and counted in `left_out`.
    for kind in values:
        drawn[kind] = [value for value in values[kind] if abs(value) <= LARGEST]
        pooled += drawn[kind]
    if not pooled:
        return None
    low, high = min(pooled), max(pooled)
    # Equal values, or nearly equal ones, get a bar in the middle of the plot.
    if high - low <= NARROWEST * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    edges = bin_edges(low, high, BINS)
    series = []
    for kind, finite in drawn.items():
        mean = math.fsum(finite) / len(finite) if finite else None
        counts = tuple(bin_counts(finite, edges)) if finite else ()
        series.append(Series(kind, labels[kind], len(finite), mean, counts))
    return Histogram(tuple(series), low, high, sum(map(len, values.values())) - len(pooled))


@dataclass(frozen=True, slots=True)
class Dot:
    """A statement in a plot of likelihoods; `score` in nats per token."""

    kind: str
    score: float
    text: str
    href: str


@dataclass(frozen=True, slots=True)
class DotPlot:
    """Statements by likelihood, in a row for each distribution; `count`: of all statements with a score."""

    dots: tuple[Dot, ...]
    count: int

    @property
    def values(self) -> dict[str, Any]:
        """The values for the browser."""
        return {"form": "dots", **asdict(self)}


def evenly_spread(ranked: Sequence[Item]) -> list[Item]:
    """At most DOTS of ranked items, evenly spread over their ranks, the first and the last among them."""
    most = min(DOTS, len(ranked))
    # Ranks in equal steps from 0 to the last.
    return [ranked[number * (len(ranked) - 1) // max(1, most - 1)] for number in range(most)]


@dataclass(frozen=True, slots=True)
class Funnel:
    """Verdicts of gates in their order: name, number accepted, number rejected."""

    bars: tuple[tuple[str, int, int], ...]

    @property
    def values(self) -> dict[str, Any]:
        """The values for the browser."""
        return {"form": "funnel", **asdict(self)}


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph. `column`: from the left; `kind`: its CSS class; `href`: the page that it leads to, or ""."""

    column: int
    text: str
    kind: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in columns, and lines between them as pairs of positions in `nodes`.

    `description` is the graph in words, for readers without the drawing.
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]
    description: str

    @property
    def values(self) -> dict[str, Any]:
        """The values for the browser."""
        return {"form": "graph", "nodes": list(map(asdict, self.nodes)), "edges": self.edges}


def graph(rule: Rule, library: Library) -> Graph:
    """The dependency graph of a rule (paper, section 2.3): variables on the left, literals on the right."""
    nodes, edges = [], []
    for variable in rule.variables:
        kind = "generic" if variable.name in rule.generic else "searched"
        nodes.append(Node(0, _cut(str(variable)), kind))
    for item in (*rule.premise, rule.conclusion):
        kind = "information" if rule.is_information(item) else "premise"
        names = variable_names([item])
        edges += [(place, len(nodes)) for place, variable in enumerate(rule.variables) if variable.name in names]
        nodes.append(Node(1, _cut(item.untyped), "conclusion" if item is rule.conclusion else kind))
    return Graph(tuple(nodes), tuple(edges), graph_text(rule, library))


def _cut(text: str) -> str:
    return text if len(text) <= LABEL else text[:LABEL] + "\u2026"


def rule_map(library: Library, rule_url: Address, predicate_url: Address) -> Graph:
    """The map of a library: rules between the predicates of their premises and those of their conclusions.

    A predicate stands among the premises and among the conclusions if it is both.

    `rule_url` and `predicate_url` give the pages of a rule by name and of a predicate by indicator.
    """
    rules = [rule for rule in library.rules if not rule.by_declaration]
    premises = list(dict.fromkeys(literal.atom.indicator for literal in literals_of(rules)))
    conclusions = list(dict.fromkeys(rule.conclusion.atom.indicator for rule in rules))
    columns = (
        [Node(0, name, "predicate", predicate_url(name)) for name in premises],
        [Node(1, rule.name, "rule", rule_url(rule.name)) for rule in rules],
        [Node(2, name, "predicate", predicate_url(name)) for name in conclusions],
    )
    nodes = list(chain.from_iterable(columns))
    # By column and text: a predicate may stand on both sides.
    place = {(node.column, node.text): position for position, node in enumerate(nodes)}
    edges = []
    words = []
    for rule in rules:
        conditions = conditions_of(rule)
        conclusion = rule.conclusion.atom.indicator
        edges += [(place[0, name], place[1, rule.name]) for name in conditions]
        edges.append((place[1, rule.name], place[2, conclusion]))
        words.append(f"{rule.name}: {', '.join(conditions)} -> {conclusion}")
    return Graph(tuple(nodes), tuple(edges), "\n".join(words))


def conditions_of(rule: Rule) -> list[str]:
    """Indicators of the predicates of a rule's premise, each once."""
    return list(dict.fromkeys(literal.atom.indicator for literal in rule.literals))
