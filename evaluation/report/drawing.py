"""Geometry of the page's histograms and dependency graphs, in pixels, from which the template writes SVG.

matplotlib writes SVG too, but not for this page: it sets colours in `style` attributes, which the page's policy blocks
and which cannot follow dark mode. A histogram of two series takes 41 ms and 11 kB there, 0.7 ms and 1.2 kB here, and a
page may have a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hapax.evaluation.shared.histograms import bin_counts, bin_edges
from hapax.grammar.dependencies import dependency_graph, graph_text
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import BodyLiteral, Literal, Variable

BINS = 24
PLOT_WIDTH, PLOT_HEIGHT = 480.0, 96.0
MARGIN, AXIS = 12.0, 20.0
"""Space at the left and right of a plot, and below it for the labels of the axis."""
HEADROOM = 2.0
"""Space above the highest bar, so that its outline is not clipped."""
TICKS = 6
LARGEST = 1e9
"""Values beyond this are not drawn: no sentence has such a log-likelihood, and it would flatten all other bars."""
NARROWEST = 1e-6
"""Ranges narrower than this share of their values are widened: floats are too coarse to bin them."""

NODE_HEIGHT, ROW = 26.0, 36.0
CHARACTER = 7.3
"""Width of a letter in the graph's font, 12 px monospace."""
PADDING, GAP = 18.0, 90.0
LABEL = 70
"""Characters of a node's label that are drawn."""


@dataclass(frozen=True, slots=True)
class Series:
    """One outline of a histogram. A series without values has no `mean`, no `mean_at` and an empty `outline`."""

    kind: str
    label: str
    count: int
    mean: float | None
    outline: str
    mean_at: float | None
    """Horizontal position of the mean."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Outlines over a common axis, whose `ticks` are positions with labels."""

    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int = 0
    """Number of values beyond LARGEST."""
    width: float = PLOT_WIDTH + 2 * MARGIN
    height: float = PLOT_HEIGHT + AXIS
    base: float = PLOT_HEIGHT


def histogram(
    values: Mapping[str, Sequence[float]],
    labels: Mapping[str, str],
    *,
    limits: tuple[float, float] | None = None,
    shares: bool = True,
) -> Histogram | None:
    """Draw values by kind, or return None if there are none.

    `limits`: ends of the axis, by default the range of the values. `shares`: bars are shares of their own series
    instead of counts.
    """
    drawn: dict[str, list[float]] = {}
    pooled: list[float] = []
    # A value beyond LARGEST is left out of the bars, and counted in `left_out`.
    for kind in values:
        drawn[kind] = [value for value in values[kind] if abs(value) <= LARGEST]
        pooled += drawn[kind]
    if not pooled:
        return None
    low, high = limits or (min(pooled), max(pooled))
    # Equal values, or nearly equal ones, get a bar in the middle of the plot.
    if high - low <= NARROWEST * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    edges = bin_edges(low, high, BINS)
    heights = {}
    for kind, finite in drawn.items():
        heights[kind] = [count / (max(1, len(finite)) if shares else 1) for count in bin_counts(finite, edges)]
    top = max(max(bars) for bars in heights.values())
    series = []
    for kind, finite in drawn.items():
        if finite:
            mean = math.fsum(finite) / len(finite)
            outline = _outline([height / top for height in heights[kind]])
            series.append(Series(kind, labels[kind], len(finite), mean, outline, _position(mean, low, high)))
        else:
            series.append(Series(kind, labels[kind], 0, None, "", None))
    ticks = tuple((_position(value, low, high), label) for value, label in _ticks(low, high))
    return Histogram(tuple(series), ticks, sum(map(len, values.values())) - len(pooled))


def _outline(heights: Sequence[float]) -> str:
    """SVG path around bars, from the base and back to it. Heights are shares of the highest bar."""
    path = f"M{MARGIN:g} {PLOT_HEIGHT:g}"
    for place, height in enumerate(heights, 1):
        top = PLOT_HEIGHT - (PLOT_HEIGHT - HEADROOM) * height
        right = MARGIN + PLOT_WIDTH / BINS * place
        # A tenth of a pixel is enough, and halves the page.
        path += f"V{round(top, 1):g}H{round(right, 1):g}"
    return f"{path}V{PLOT_HEIGHT:g}Z"


def _position(value: float, low: float, high: float) -> float:
    return round(MARGIN + PLOT_WIDTH * (value - low) / (high - low), 1)


def _ticks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """Round numbers inside the range with their labels, at most TICKS steps apart."""
    narrowest = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(narrowest))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= narrowest)
    # As many decimals as the step needs: 0.5 has one, 20 none.
    digits = max(0, -math.floor(math.log10(step)))
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield number * step, f"{number * step:.{digits}f}".replace("-", "\u2212")


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the dependency graph; `kind` is its CSS class."""

    x: float
    y: float
    width: float
    text: str
    kind: str
    height: float = NODE_HEIGHT


@dataclass(frozen=True, slots=True)
class Graph:
    """Variables on the left, literals on the right, and lines from each literal to its variables.

    `edges` are the ends of the lines as x1, y1, x2, y2; `description` is the graph in words, for screen readers.
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[float, float, float, float], ...]
    width: float
    height: float
    description: str


def graph(rule: Rule, library: Library) -> Graph:
    """Lay out the dependency graph of a rule (paper, section 2.3) in two columns."""
    joined = dependency_graph(rule)
    variables: dict[str, tuple[str, str]] = {}
    literals: dict[int, tuple[str, str]] = {}
    for key, node in joined.nodes.items():
        if isinstance(key, str):
            variables[key] = str(node["variable"]), "generic" if key in rule.generic else "searched"
        else:
            information = not node["conclusion"] and rule.is_information(node["item"])
            kind = "conclusion" if node["conclusion"] else "information" if information else "premise"
            literals[key] = _label(node["item"]), kind
    height = ROW * max(len(variables), len(literals))
    variable_nodes = _column(list(variables.values()), 0.0, height)
    literals_start = GAP + max((node.width for node in variable_nodes), default=0.0)
    literal_nodes = _column(list(literals.values()), literals_start, height)
    edges = []
    for name, variable in zip(variables, variable_nodes, strict=True):
        for number, literal in zip(literals, literal_nodes, strict=True):
            if joined.has_edge(number, name):
                # From the right side of the variable's box to the left side of the literal's.
                start, end = variable.y + NODE_HEIGHT / 2, literal.y + NODE_HEIGHT / 2
                edges.append((variable.x + variable.width, start, literal.x, end))
    nodes = (*variable_nodes, *literal_nodes)
    width = max((node.x + node.width for node in nodes), default=0.0)
    # One pixel more, for the outline of the widest box.
    return Graph(nodes, tuple(edges), round(width + 1, 1), height, graph_text(rule, library))


def _column(labels: Sequence[tuple[str, str]], x: float, height: float) -> list[Node]:
    """Boxes of equal width for texts with their kinds, spread evenly over the height."""
    texts = [text if len(text) <= LABEL else text[:LABEL] + "\u2026" for text, _ in labels]
    width = round(max(map(len, texts), default=0) * CHARACTER + PADDING, 1)
    row = height / max(1, len(labels))
    nodes = []
    for place, (text, (_, kind)) in enumerate(zip(texts, labels, strict=True)):
        y = row * (place + 0.5) - NODE_HEIGHT / 2
        nodes.append(Node(round(x, 1), round(y, 1), width, text, kind))
    return nodes


def _label(condition: BodyLiteral) -> str:
    """A literal without data types, which stand at its variables."""
    if not isinstance(condition, Literal):
        return str(condition)
    arguments = (term.name if isinstance(term, Variable) else str(term) for term in condition.atom.arguments)
    return f"{'not ' if condition.negated else ''}{condition.atom.predicate}({', '.join(arguments)})"
