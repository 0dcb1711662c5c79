"""Source lines with marked ranges, printed below diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rich.cells import cell_len
from rich.markup import escape

from hapax.grammar.errors import Diagnostic, Place, Severity

MARKED_PLACES = 3
"""Related places whose lines are printed; the message names all of them."""
WIDEST = 160
"""Columns of a source line that are printed on either side of a marked range."""

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


class Excerpts:
    """The marked source lines of diagnostics. Every file is read once.

    `texts`: sources that are not files, by the name in their places. `visible`: replaces control characters.
    """

    def __init__(self, visible: Callable[[str], str], texts: Mapping[str, str] | None = None) -> None:
        self._visible = visible
        self._lines = {name: text.split("\n") for name, text in (texts or {}).items()}

    def of(self, diagnostic: Diagnostic) -> Iterator[str]:
        """Lines of console markup; none where the source cannot be read as a rule file."""
        colour = _COLOURS[diagnostic.severity]
        # Place, style, sign and label of each excerpt.
        marks = [(diagnostic.place, f"[{colour}]", "^", "")]
        for place in diagnostic.related[:MARKED_PLACES]:
            marks.append((place, "[blue]", "-", f" see also {place}"))
        width = len(str(max(place.line for place, *_ in marks)))
        for place, style, sign, label in marks:
            line = self._line(place)
            if line is None:
                continue
            before, marked, after = line
            # In cells of the terminal, of which a wide character takes two; an empty range gets one sign.
            count = max(1, cell_len(marked))
            yield f"{place.line:>{width}} | {escape(before + marked + after)}"
            yield f"{' ' * width} | {' ' * cell_len(before)}{style}{sign * count}{escape(label)}[/]"

    def _line(self, place: Place) -> tuple[str, str, str] | None:
        """The printed line before, inside and behind the range. Of a range of several lines the first is printed."""
        lines = self._source(place.file)
        if place.end_column is None or not 0 < place.line <= len(lines):
            return None
        line = lines[place.line - 1]
        start = min(place.column - 1, len(line))
        end = min(place.end_column - 1, len(line)) if place.end_line == place.line else len(line.rstrip())
        before, marked, after = line[:start], line[start : max(start, end)], line[max(start, end) :]
        if len(before) > WIDEST:
            before = f"...{before[-WIDEST:]}"
        if len(after) > WIDEST:
            after = f"{after[:WIDEST]}..."
        if len(marked) > WIDEST:
            marked, after = f"{marked[:WIDEST]}...", ""
        return self._shown(before), self._shown(marked), self._shown(after)

    def _shown(self, text: str) -> str:
        # A tab takes one cell, so that the signs stand below their range.
        return self._visible(text.replace("\t", " "))

    def _source(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = _lines_of(Path(file))
        return self._lines[file]


def _lines_of(path: Path) -> list[str]:
    """The lines as the parser counts them."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError):
        return []
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
