"""The page as one HTML file without external resources; its policy allows no script and no style but its own.

The template engine escapes all texts of models and people. Only the style sheet and the script of this folder, and the
HTML of sections that other packages add, enter the page as they are.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from hapax.engine.search.oracle import short_model_name
from hapax.evaluation.report.build import Report, ReportOptions, build
from hapax.evaluation.report.sections import StoryLine
from hapax.evaluation.shared.estimates import Estimate
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.rule_paths import load_rules
from hapax.grammar.rules import Library
from hapax.grammar.words import counted
from hapax.kb.store import KnowledgeBase
from hapax.kb.whole_files import atomic_path

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


@dataclass(frozen=True)
class ReportPage:
    """The HTML page about a run: `html` is its text, `content` its figures and statements as values."""

    content: Report
    html: str

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all. Raises HapaxError if it cannot be written."""
        with atomic_path(path) as file:
            file.write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<report of run {self.content.heading.run_id}, {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style stays inside."""
        # The plots need scripts. Without `allow-same-origin` these cannot reach the notebook around the frame.
        style = "width:100%;height:40em"
        # Escaped, since the page stands in an attribute.
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


@checked
@extras_named()
def report(kb: KnowledgeBase, rules: Library | None = None, options: ReportOptions | None = None) -> ReportPage:
    """The HTML page about a run: statements with their proofs, gates, rejected values with the reasons, and cost.

    `rules`: those that derive premises, as for `why`; None: the shipped ones. Needs the extra `evaluation`.
    """
    content = build(kb, load_rules() if rules is None else rules, options or ReportOptions(kb.place))
    return ReportPage(content, page(content))


def page(report: Report) -> str:
    """Render the page. Equal reports give equal texts."""
    style = report_style()
    script = plot_script() + resources.files("hapax.evaluation.report").joinpath("script.js").read_text("utf-8")
    template = page_environment().get_template("page.html.jinja")
    return template.render(
        report=report, style=style, script=script, style_hash=_hash(style), script_hash=_hash(script)
    )


def report_style() -> str:
    """The style sheet of the report."""
    return resources.files("hapax.evaluation.report").joinpath("style.css").read_text("utf-8")


def plot_script() -> str:
    """The script that draws plots: Observable Plot, as tools/plots bundles it, and the code that calls it."""
    folder = resources.files("hapax.evaluation.report")
    return "".join(folder.joinpath(name).read_text("utf-8") for name in ("observable-plot.js", "plots.js"))


def page_environment(*folders: tuple[str, str]) -> Environment:
    """The template engine with the filters and macros of the report. `folders`: of further templates, by package."""
    packages = (*folders, ("hapax.evaluation.report", "."))
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(*folder) for folder in packages]),
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
        "ended": ended,
    }
    # Available to every macro without being passed along.
    environment.tests["long"] = is_long
    environment.globals |= {"counted": counted}
    return environment


def _hash(text: str) -> str:
    """Source expression of the page's policy for a style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


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


def ended(lines: tuple[StoryLine, ...]) -> Iterator[tuple[StoryLine, range]]:
    """Lines, each with a range over the lists that end after it."""
    return ((line, range(line.closes)) for line in lines)


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
