"""The page as HTML: one file without any external resource, whose policy lets nothing run but its own script.

Whatever a model or a person wrote is escaped by the template engine; nothing but the style sheet and the script of this
folder enters the page as it stands.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from engine.oracle import short_model_name
from evaluation.estimates import Estimate
from evaluation.report.build import Report
from evaluation.report.sections import Line
from grammar.words import counted

SHORT, SHOWN = 800, 240
"""A text of more than SHORT characters is cut to SHOWN, and stands in full where it can be unfolded."""
MOST_CHARACTERS = 20_000
"""Of a text in full; the knowledge base holds all of it."""

WRITTEN_OUT = 1e12
"""From here on numbers are told by their power of ten."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    + "|["
    + "".join(f"{chr(0x10000 * plane + 0xFFFE)}{chr(0x10000 * plane + 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
"""Characters that nobody sees, though they can turn a line about or make two values look alike; and those that HTML
forbids."""


def page(report: Report) -> str:
    """The whole page. The same report gives the same text."""
    style, script = (_own(name) for name in ("style.css", "script.js"))
    template = _environment().get_template("page.html.jinja")
    return template.render(
        report=report, style=style, script=script, style_hash=_hash(style), script_hash=_hash(script)
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evaluation.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "pieces": pieces,
        "plain": plain,
        "brief": brief,
        "full": full,
        "number": number,
        "share": share,
        "interval": interval,
        "money": money,
        "model": short_model_name,
        "ended": ended,
    }
    environment.tests["long"] = is_long
    environment.globals |= {"counted": counted}
    return environment


def _own(name: str) -> str:
    return resources.files("evaluation.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """What the page's policy knows the text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# -- texts


def pieces(text: object) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is the name of a hidden character: `U+202E`."""
    words, end = str(text), 0
    for found in _HIDDEN.finditer(words):
        if found.start() > end:
            yield words[end : found.start()], False
        yield f"U+{ord(found[0]):04X}", True
        end = found.end()
    if end < len(words):
        yield words[end:], False


def plain(text: object) -> str:
    """The text for an attribute, hidden characters in brackets."""
    return "".join(f"[{part}]" if hidden else part for part, hidden in pieces(text))


def is_long(text: object) -> bool:
    """Whether the text is cut where it first stands."""
    return len(str(text)) > SHORT


def brief(text: object) -> str:
    """The text, or its beginning."""
    words = str(text)
    return words if len(words) <= SHORT else f"{words[:SHOWN]}\u2026"


def full(text: object) -> str:
    """The whole text, or as much of it as a page should bear."""
    words = str(text)
    if len(words) <= MOST_CHARACTERS:
        return words
    return f"{words[:MOST_CHARACTERS]}\u2026 and {counted(len(words) - MOST_CHARACTERS, 'more character')}"


def ended(lines: tuple[Line, ...]) -> Iterator[tuple[Line, range]]:
    """Lines with how many lists end behind each."""
    return ((line, range(line.closes)) for line in lines)


# -- figures


def number(value: float | None, digits: int = 0) -> str:
    """`5,148`, `-1.25`, `1e+300`, `n/a`."""
    if value is None or math.isnan(value):
        return "n/a"
    told = f"{value:,.{digits}f}" if abs(value) < WRITTEN_OUT else f"{value:g}"
    return told.replace("-", "\u2212")


def money(cost: float | None) -> str:
    """In the currency of the price table: `0`, `0.0042`, `unknown`."""
    if cost is None:
        return "unknown"
    return number(cost, 4) if cost else "0"


def share(value: float | None) -> str:
    """`97.5 %`, `n/a`."""
    return "n/a" if value is None else f"{100 * value:.1f} %"


def interval(estimate: Estimate) -> str:
    """`0.12 to 0.25`, or nothing where chance cannot be told."""
    return "" if math.isnan(estimate.low) else f"{number(estimate.low, 2)} to {number(estimate.high, 2)}"
