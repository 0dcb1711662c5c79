"""Imports: the files that rule files name in `import "food.rules"`, and the names that these get by `as`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from hapax.grammar.errors import Diagnostic, HapaxError, Place
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.hints import UNREADABLE, hint
from hapax.grammar.remedies import Remedy
from hapax.grammar.writing.texts import NoConstant, unquoted

MAXIMUM_IMPORTS = 1000
"""Files that are imported in one reading, the same file under several names counted each time."""


@dataclass(slots=True)
class RuleSource:
    """The statements and the diagnostics of one file."""

    file: str
    lines: list[syntax.RawNode] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    suffix: str = ""
    """Ends the names of its predicates and rules."""
    importers: tuple[str, ...] = ()
    """Keys of the files that led to it, and its own; see `file_key`."""
    text: str = ""


class UnreadableFile(HapaxError):  # noqa: N818 - never leaves the reading of rules
    """A rule file that cannot be read. `spot`: where, as line and column and perhaps those of the end."""

    def __init__(self, reason: str, remedy: Remedy | str, spot: tuple[int, ...] = ()) -> None:
        super().__init__(f"{reason}.", remedy)
        self.reason = reason
        self.spot = spot

    def at(self, place: Place) -> Diagnostic:
        """The diagnostic of the file, or of the line that imports it."""
        return UNREADABLE.at(place, reason=self.reason, remedy=str(self.remedy))


Opener: TypeAlias = Callable[[str], RuleSource]
"""The file of a path. Raises UnreadableFile."""


def with_imports(sources: Iterable[RuleSource], opened: Opener) -> list[RuleSource]:
    """The sources, and after them the files that they import, each once under each name.

    A fault of an import becomes a diagnostic of the importing file.
    """
    found = [replace(source, importers=(file_key(source.file),)) for source in sources]
    originals = {file_key(source.file): source for source in found}
    # A file under another name counts as another file, with predicates of its own.
    known = {(key, "") for key in originals}
    last = len(found) + MAXIMUM_IMPORTS
    for source in found:  # grows while it is read
        for line in source.lines:
            if not isinstance(line, syntax.RawLine) or line.keyword != "import":
                continue
            place, (written, name) = Place(source.file, *line.at), line.parts
            try:
                # Relative to the folder of the importing file.
                path = os.path.normpath(Path(source.file).parent / unquoted(written))
            except NoConstant as error:
                source.diagnostics.append(hint(error.label).at(place, **error.words))
                continue
            # Names add up on the way: what a file known as `food` imports as `eu` ends with `_eu_food`.
            key, suffix = file_key(path), (f"_{name}" if name else "") + source.suffix
            if (key, suffix) in known:
                continue
            known.add((key, suffix))
            if key in source.importers:
                # Its name has become longer on the way, and would each time that it is read.
                source.diagnostics.append(hint("import of itself").at(place, file=path))
                continue
            if len(found) == last:
                fault = UnreadableFile(f"{MAXIMUM_IMPORTS} others are imported", "Import each file under one name.")
                source.diagnostics.append(fault.at(place))
                return found
            first = key not in originals
            if first:
                try:
                    originals[key] = opened(path)
                except UnreadableFile as error:
                    source.diagnostics.append(error.at(place))
                    # The next line that imports the file is to be reported, too.
                    known.remove((key, suffix))
                    continue
            original = originals[key]
            # What has no names to change, and each fault, counts where the file is read first.
            nameless = () if first else ("type", "disjoint")
            lines = [line for line in original.lines if getattr(line, "keyword", "") not in nameless]
            diagnostics = original.diagnostics if first else []
            found.append(RuleSource(original.file, lines, diagnostics, suffix, (*source.importers, key), original.text))
    return found


def file_key(path: str) -> str:
    """The same text for all spellings of a file's path. The file need not exist."""
    # Rules from elsewhere, such as a knowledge base, have names with any characters, which are not paths.
    return path if "\0" in path else os.path.realpath(path)
