"""Explanations as trees of lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """A line of an explanation with the lines that support it. `kind` is for programs: goal, call, gate ..."""

    text: str
    kind: str
    children: tuple[Story, ...] = ()

    def lines(self) -> Iterator[tuple[int, Story]]:
        """Every line with its depth, from the top."""
        # Not recursive: a proof may be deeper than Python's stack.
        waiting = [(0, self)]
        while waiting:
            depth, part = waiting.pop()
            yield depth, part
            # Reversed, because the last one that is pushed is the first one that is shown.
            waiting.extend((depth + 1, child) for child in reversed(part.children))

    def to_json(self) -> list[dict[str, Any]]:
        """A flat list of the lines with their depths, which can be read without recursion."""
        return [{"depth": depth, "kind": part.kind, "text": part.text} for depth, part in self.lines()]


def story_text(story: Story) -> str:
    """The story as indented lines."""
    return "\n".join("  " * depth + part.text for depth, part in story.lines())
