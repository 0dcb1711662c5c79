"""Geometry of the page's drawings, in pixels; the template makes SVG of it. Pure: no I/O, no markup."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grammar.dependencies import dependency_graph, graph_text
from grammar.rules import Library, Rule
from grammar.terms import BodyLiteral, Literal, Variable

BINS = 24
PLOT_WIDTH, PLOT_HEIGHT = 480.0, 96.0
MARGIN, AXIS = 12.0, 20.0
"""Left and right of a plot, and below it, where the ticks are told."""
HEADROOM = 2.0
"""Above the highest bar, for its outline."""
TICKS = 6
LARGEST = 1e9
"""Beyond it, a value is not drawn: no log-likelihood of a sentence is there, and the axis would show nothing else."""

NODE_HEIGHT, ROW = 26.0, 36.0
CHARACTER = 7.3
"""The width of a letter of the graph's font, 12 px monospace."""
PADDING, GAP = 18.0, 90.0
LABEL = 70
"""How many characters of a label are drawn."""


@dataclass(frozen=True, slots=True)
class Series:
    """One outline of a histogram. `mean_at`: where its mean stands, None for a series without values."""

    kind: str
    label: str
    count: int
    mean: float | None
    outline: str
    mean_at: float | None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Outlines over one axis; `ticks` are places with their labels. `left_out`: values beyond what is drawn."""

    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int = 0
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
    """Values by kind as outlines, each of the share of its own values, or else of their number; None without values.

    `limits`: the axis; without it the range of the values.
    """
    drawn = {kind: [one for one in several if abs(one) <= LARGEST] for kind, several in values.items()}
    every = [one for several in drawn.values() for one in several]
    if not every:
        return None
    low, high = limits or (min(every), max(every))
    if low == high:
        low, high = low - 0.5, high + 0.5
    heights = {
        kind: [count / (len(several) if shares else 1) for count in _counts(several, low, high)] if several else []
        for kind, several in drawn.items()
    }
    top = max(max(several, default=0.0) for several in heights.values())
    series = []
    for kind, several in drawn.items():
        mean = math.fsum(several) / len(several) if several else None
        place = None if mean is None else _at(mean, low, high)
        series.append(Series(kind, labels[kind], len(several), mean, _outline(heights[kind], top), place))
    left_out = sum(map(len, values.values())) - len(every)
    return Histogram(tuple(series), tuple((_at(one, low, high), label) for one, label in _ticks(low, high)), left_out)


def _counts(values: Sequence[float], low: float, high: float) -> list[int]:
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, max(0, int((value - low) / (high - low) * BINS)))] += 1
    return counts


def _outline(heights: Sequence[float], top: float) -> str:
    """A path around the bars, from the base and back to it."""
    step = PLOT_WIDTH / BINS
    parts = [f"M{MARGIN:g} {PLOT_HEIGHT:g}"]
    for place, height in enumerate(heights):
        level = _rounded(PLOT_HEIGHT - (PLOT_HEIGHT - HEADROOM) * height / top)
        parts.append(f"V{level}H{_rounded(MARGIN + step * (place + 1))}")
    return "".join([*parts, f"V{PLOT_HEIGHT:g}Z"]) if heights else ""


def _at(value: float, low: float, high: float) -> float:
    return round(MARGIN + PLOT_WIDTH * (value - low) / (high - low), 1)


def _rounded(value: float) -> str:
    return f"{round(value, 1):g}"


def _ticks(low: float, high: float) -> Iterator[tuple[float, str]]:
    """Round numbers inside the range, about as many as there is room for."""
    raw = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    digits = max(0, -math.floor(math.log10(step)))
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield number * step, f"{number * step:.{digits}f}".replace("-", "\u2212")


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the dependency graph."""

    x: float
    y: float
    width: float
    text: str
    kind: str
    height: float = NODE_HEIGHT


@dataclass(frozen=True, slots=True)
class Graph:
    """Variables on the left, literals on the right, lines between a literal and its variables. `told`: as text."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[float, float, float, float], ...]
    width: float
    height: float
    told: str


def graph(rule: Rule, library: Library) -> Graph:
    """The dependency graph of a rule (paper, section 2.3), laid out in two columns."""
    joined = dependency_graph(rule)
    variables = [node for node in joined if isinstance(node, str)]
    items = [node for node in joined if isinstance(node, int)]
    left = [(str(joined.nodes[name]["variable"]), _variable_kind(rule, name)) for name in variables]
    right = [(_plain(joined.nodes[number]["item"]), _item_kind(rule, joined.nodes[number])) for number in items]
    height = ROW * max(len(left), len(right))
    first = _column(left, 0.0, height)
    second = _column(right, GAP + max((one.width for one in first), default=0.0), height)
    edges = tuple(
        (one.x + one.width, one.y + NODE_HEIGHT / 2, other.x, other.y + NODE_HEIGHT / 2)
        for one, name in zip(first, variables, strict=True)
        for other, number in zip(second, items, strict=True)
        if joined.has_edge(number, name)
    )
    width = max((one.x + one.width for one in (*first, *second)), default=0.0)
    return Graph((*first, *second), edges, round(width + 1, 1), height, graph_text(rule, library))


def _column(labels: Sequence[tuple[str, str]], x: float, height: float) -> list[Node]:
    """Boxes of one width, spread evenly over the height."""
    texts = [text if len(text) <= LABEL else text[:LABEL] + "\u2026" for text, _ in labels]
    width = round(max(map(len, texts), default=0) * CHARACTER + PADDING, 1)
    row = height / max(1, len(labels))
    return [
        Node(round(x, 1), round(row * (place + 0.5) - NODE_HEIGHT / 2, 1), width, text, kind)
        for place, (text, (_, kind)) in enumerate(zip(texts, labels, strict=True))
    ]


def _variable_kind(rule: Rule, name: str) -> str:
    return "generic" if name in rule.generic else "searched"


def _item_kind(rule: Rule, node: Mapping[str, object]) -> str:
    if node["conclusion"]:
        return "conclusion"
    item = node["item"]
    assert not isinstance(item, str)  # noqa: S101  the graph holds premise items
    return "told" if rule.is_information(item) else "premise"  # type: ignore[arg-type]  # what the graph was made of


def _plain(item: BodyLiteral) -> str:
    """An item without data types, which the variables bear."""
    if not isinstance(item, Literal):
        return str(item)
    arguments = (term.name if isinstance(term, Variable) else str(term) for term in item.atom.arguments)
    return f"{'not ' if item.negated else ''}{item.atom.predicate}({', '.join(arguments)})"
