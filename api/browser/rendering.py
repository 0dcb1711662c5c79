"""The template engine of the pages, and texts, figures and values of plots as they are written there.

The engine escapes all texts of models and people. `plots.js` draws plots in the reader's browser with Observable Plot.
Tried against it: a histogram of two series takes 45 ms and 11 kB with Vega-Lite in vl-convert, which adds 84 MB of
packages, and 41 ms and 11 kB with matplotlib, whose `style` attributes the page's policy blocks. Observable Plot adds
270 kB to a page once and 1 kB for each histogram, takes its colours from the style sheet, and needs no package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import resources
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from hapax.api.browser.table_pages import rules_with_sides
from hapax.engine.gates.score_maps import short_model_name
from hapax.engine.search.progress import duration
from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.result_tables import bin_counts, bin_edges
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import variable_names
from hapax.grammar.writing.printing import graph_text
from hapax.grammar.writing.words import counted

SHORT, SHOWN = 800, 240
"""A text of more than SHORT characters is cut to SHOWN, and is shown in full where it can be unfolded."""
MOST_CHARACTERS = 20_000
"""Longest text on a page, even in full; the knowledge base holds the rest."""

WRITTEN_OUT = 1e12
"""Numbers from here on are written as powers of ten."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # The last two characters of each plane above the first, which are not characters.
    + "|["
    + "".join(f"{chr(0x10000 * plane + 0xFFFE)}{chr(0x10000 * plane + 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
"""Invisible characters, which can reverse a line or make two values look alike, and characters that HTML forbids."""


def static_text(*names: str) -> str:
    """Files of the folder `static`, one after the other."""
    folder = resources.files("hapax.api.browser").joinpath("static")
    return "".join(folder.joinpath(name).read_text("utf-8") for name in names)


def plot_script() -> str:
    """The script that draws plots: Observable Plot, as tools/plots bundles it, and the code that calls it."""
    return static_text("observable-plot.js", "plots.js")


def page_environment(layout: str) -> Environment:
    """The template engine with the filters of pages. `layout`: the template around the content of each page."""
    environment = Environment(
        loader=PackageLoader("hapax.api.browser"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name fails instead of leaving a gap
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "pieces": pieces,
        "plain": plain,
        "plotted": plotted,
        "brief": brief,
        "full": full,
        "number": number,
        "share": share,
        "interval": interval,
        "money": money,
        "model": short_model_name,
        "duration": duration,
        "instant": moment,
    }
    # Available to every macro without being passed along.
    environment.tests["long"] = is_long
    environment.globals |= {"counted": grouped, "layout": layout}
    return environment


# -- texts


def pieces(text: object) -> Iterator[tuple[str, bool]]:
    """Split a text into parts with a flag that is True for the name of a hidden character, such as `U+202E`."""
    words, end = str(text), 0
    for match in _HIDDEN.finditer(words):
        if match.start() > end:
            yield words[end : match.start()], False
        yield f"U+{ord(match[0]):04X}", True
        end = match.end()
    if end < len(words):
        yield words[end:], False


def grouped(count: int, noun: str, plural: str = "") -> str:
    """Like `counted`, with the digits in groups, like every number of a page."""
    return counted(count, noun, plural).replace(str(count), f"{count:,}", 1)


def plain(text: object) -> str:
    """The text for an attribute, with the names of hidden characters in brackets."""
    return "".join(f"[{part}]" if hidden else part for part, hidden in pieces(text))


def plotted(values: object) -> Markup:
    """The values of a plot as JSON for an attribute in single quotes, with the names of hidden characters in texts."""
    return htmlsafe_json_dumps(_plain_texts(values))


def _plain_texts(values: object) -> object:
    if isinstance(values, str):
        return plain(values)
    if isinstance(values, Mapping):
        return {name: _plain_texts(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return list(map(_plain_texts, values))
    return values


def is_long(text: object) -> bool:
    """Return True if the text is cut where it first appears."""
    return len(str(text)) > SHORT


def brief(text: object) -> str:
    """The text, or the beginning of a long one."""
    words = str(text)
    return words if len(words) <= SHORT else f"{words[:SHOWN]}\u2026"


def full(text: object) -> str:
    """The whole text, up to MOST_CHARACTERS."""
    words = str(text)
    if len(words) <= MOST_CHARACTERS:
        return words
    return f"{words[:MOST_CHARACTERS]}\u2026 and {counted(len(words) - MOST_CHARACTERS, 'more character')}"


def moment(text: str) -> str:
    """A stored time in the form `2026-01-31 09:05 UTC`, or the text itself if it is not a time."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return text


# -- figures


def number(value: float | None, digits: int = 0) -> str:
    """`5,148`, `-1.25`, `1e+300`, `n/a`."""
    if value is None or math.isnan(value):
        return "n/a"
    text = f"{value:,.{digits}f}" if abs(value) < WRITTEN_OUT else f"{value:g}"
    # The minus sign is as wide as a digit, so that columns align.
    return text.replace("-", "\u2212")


def money(cost: float | None) -> str:
    """A cost in the currency of the price table: `0`, `0.0042`, `unknown`."""
    if cost is None:
        return "unknown"
    return number(cost, 4) if cost else "0"  # a price list may say 0; four decimals would suggest rounding


def share(value: float | None) -> str:
    """`97.5 %`, `n/a`."""
    return "n/a" if value is None else f"{100 * value:.1f} %"


def interval(estimate: Estimate) -> str:
    """`0.12 to 0.25`, or an empty text if the interval is unknown."""
    return "" if math.isnan(estimate.low) else f"{number(estimate.low, 2)} to {number(estimate.high, 2)}"


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


def histogram(values: Mapping[str, Sequence[float]], labels: Mapping[str, str]) -> dict[str, Any] | None:
    """Bars of values by kind over BINS common bins of equal width from `low` to `high`; None without values.

    `left_out`: number of values beyond LARGEST. Of a kind without values `mean` is None.
    """
    drawn = {kind: [value for value in values[kind] if abs(value) <= LARGEST] for kind in values}
    pooled = [value for finite in drawn.values() for value in finite]
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
        counts = bin_counts(finite, edges) if finite else ()
        series.append({"kind": kind, "label": labels[kind], "count": len(finite), "mean": mean, "counts": list(counts)})
    left_out = sum(map(len, values.values())) - len(pooled)
    return {"form": "histogram", "series": series, "low": low, "high": high, "left_out": left_out}


def evenly_spread(ranked: Sequence[Item]) -> list[Item]:
    """At most DOTS of ranked items, evenly spread over their ranks, the first and the last among them."""
    most = min(DOTS, len(ranked))
    # Ranks in equal steps from 0 to the last.
    return [ranked[number * (len(ranked) - 1) // max(1, most - 1)] for number in range(most)]


def graph(rule: Rule, library: Library) -> dict[str, Any]:
    """The dependency graph of a rule (paper, section 2.3): variables on the left, literals on the right.

    `column` of a node counts from the left, `kind` is its CSS class, and edges are pairs of positions of nodes.
    `description` is the graph in words, for readers without the drawing.
    """
    nodes, edges = [], []
    for variable in rule.variables:
        kind = "generic" if variable.name in rule.generic else "searched"
        nodes.append({"column": 0, "text": _cut(str(variable)), "kind": kind})
    for item in (*rule.premise, rule.conclusion):
        kind = "information" if rule.is_information(item) else "premise"
        names = variable_names([item])
        edges += [(place, len(nodes)) for place, variable in enumerate(rule.variables) if variable.name in names]
        kind = "conclusion" if item is rule.conclusion else kind
        nodes.append({"column": 1, "text": _cut(item.untyped), "kind": kind})
    return {"form": "graph", "nodes": nodes, "edges": edges, "description": graph_text(rule, library)}


def _cut(text: str) -> str:
    return text if len(text) <= LABEL else text[:LABEL] + "\u2026"


def rule_map(library: Library, rule_url: Address, predicate_url: Address) -> dict[str, Any]:
    """The map of a library: rules between the predicates of their premises and those of their conclusions.

    A predicate stands among the premises and among the conclusions if it is both.

    `rule_url` and `predicate_url` give the pages of a rule by name and of a predicate by indicator.
    """
    # The columns of the nodes, each text once.
    columns: tuple[dict[str, None], ...] = ({}, {}, {})
    words = []
    for rule in rules_with_sides(library):
        columns[0].update(dict.fromkeys(rule[1]))
        columns[1][rule[0]] = columns[2][rule[2]] = None
        words.append(f"{rule[0]}: {', '.join(rule[1])} -> {rule[2]}")
    kinds = (("predicate", predicate_url), ("rule", rule_url), ("predicate", predicate_url))
    nodes = [
        {"column": column, "text": name, "kind": kind, "href": url(name)}
        for column, (kind, url) in enumerate(kinds)
        for name in columns[column]
    ]
    # By column and text: a predicate may stand on both sides.
    place = {(node["column"], node["text"]): position for position, node in enumerate(nodes)}
    edges = []
    for name, premises, conclusion in rules_with_sides(library):
        edges += [(place[0, premise], place[1, name]) for premise in premises]
        edges.append((place[1, name], place[2, conclusion]))
    return {"form": "graph", "nodes": nodes, "edges": edges, "description": "\n".join(words)}
