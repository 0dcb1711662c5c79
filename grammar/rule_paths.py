"""The files that rules are read from: those that a user names, and those that Hapax ships."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hapax.grammar.arguments import checked
from hapax.grammar.parsing.parser import load_library
from hapax.grammar.rules import Library

SHIPPED_RULES = (Path(__file__).resolve().parent.parent / "rules").resolve()
"""The folder of the rules that Hapax ships."""

SHIPPED = "shipped"
"""The name by which commands and `load_rules` take this folder, so that it can stand beside other files."""


def rule_paths(paths: Iterable[str | Path]) -> list[Path]:
    """Files and folders of rules, with the folder of the shipped rules for `shipped`; only that folder for no paths.

    `shipped/library` is a folder below it. Where the working folder has a file or folder of that name, it is meant.
    """
    found = []
    for path in map(Path, paths):
        is_shipped = path.parts[:1] == (SHIPPED,) and not path.exists()
        found.append(SHIPPED_RULES.joinpath(*path.parts[1:]) if is_shipped else path)
    return found or [SHIPPED_RULES]


@checked
def load_rules(*paths: str | Path) -> Library:
    """The rules of files and folders; without any, the shipped rules, which are also called `shipped`.

    Raises RulesRejected with every syntax fault.
    """
    return load_library(rule_paths(paths))
