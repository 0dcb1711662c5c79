"""Replacements in the texts of rule files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hapax.grammar.errors import TextRepair

_LINE_END = re.compile(r"(\r\n|\r|\n)")


def with_replacements(text: str, replacements: Iterable[TextRepair]) -> tuple[str, list[TextRepair]]:
    """The text with the replacements, line ends as they were, and those that were made.

    A replacement is left out where the text at its place is not the one that it replaces.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    parts = _LINE_END.split(text.removeprefix(mark))  # lines at even positions, their ends between them
    made: list[TextRepair] = []
    # From the right, so that the columns of the others stay.
    for replacement in sorted(set(replacements), key=lambda each: (-each.place.line, -each.place.column)):
        index, start = 2 * (replacement.place.line - 1), replacement.place.column - 1
        if index < len(parts) and parts[index].startswith(replacement.old, start):
            line = parts[index]
            parts[index] = line[:start] + replacement.new + line[start + len(replacement.old) :]
            made.append(replacement)
    return mark + "".join(parts), made[::-1]
