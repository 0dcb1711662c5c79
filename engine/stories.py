"""Explanations as trees of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Record = TypeVar("Record")

SHOWN = 10
"""Lines of one kind below a line; how many more there are is said."""

_INDENTED = 20
"""Depth up to which lines are indented; deeper ones begin with it as a number."""


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """A line of an explanation with the lines that support it. `kind` is for programs: goal, call, gate ...

    `more`: the number of lines of this kind that the line stands for, where not all are shown. `words` and `by`: what
    the line says to a reader without atoms and ids, and why it holds; empty where `text` alone says it.
    """

    text: str
    kind: str
    children: tuple[Story, ...] = ()
    more: int = 0
    words: str = ""
    by: str = ""

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
        return [
            {"depth": depth, "kind": part.kind, "text": part.text} | ({"more": part.more} if part.more else {})
            for depth, part in self.lines()
        ]


def first_of(records: Sequence[Record], story_of: Callable[[Record], Story], kind: str) -> Iterator[Story]:
    """The stories of the first records, and the number of the others."""
    yield from map(story_of, records[:SHOWN])
    if len(records) > SHOWN:
        yield Story(f"and {len(records) - SHOWN:,} more", kind, more=len(records) - SHOWN)


def story_text(story: Story) -> str:
    """The story as indented lines."""
    return "\n".join(indented(depth, part.text) for depth, part in story.lines())


def indented(depth: int, text: str) -> str:
    """A line of a tree: indented, or with its depth as a number where it is deep."""
    return "  " * depth + text if depth <= _INDENTED else f"{'  ' * _INDENTED}[depth {depth:,}] {text}"
