"""The words of the pages for settings and operations that messages name: a visitor of the browser can type neither."""

from __future__ import annotations

from hapax.grammar.remedies import Operation, Setting

SERVER_OPTIONS = {"models": "--ask", "control": "--control", "judge": "--judge", "schemas": "--schemas"}
"""Options of `hapax serve` that allow what the server refuses by itself."""


class Pages:
    """Words for readers of a page."""

    call = "request"

    def setting(self, setting: Setting) -> str:
        return SERVER_OPTIONS.get(setting.name) or f"the setting “{_words(setting.name.rpartition('.')[2])}”"

    def operation(self, operation: Operation) -> str:
        return f"“{_words(operation.name)}” of Hapax"


def _words(name: str) -> str:
    return name.replace("_", " ")
