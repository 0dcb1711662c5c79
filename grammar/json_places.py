"""The places of keys and values in a JSON text, and texts made of its parts that remember these places."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hapax.grammar import syntax

JsonPath: TypeAlias = tuple[str | int, ...]
"""Keys and positions in lists that lead to a value."""

Span: TypeAlias = tuple[int, int]
"""Offsets of the first character and of the one behind the last."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(frozen=True, slots=True)
class JsonSpans:
    """Spans of the keys of objects, and of the values that are no objects or lists, by path."""

    text: str
    keys: Mapping[JsonPath, Span]
    values: Mapping[JsonPath, Span]

    @classmethod
    def of(cls, text: str) -> JsonSpans:
        """The spans of a text that is valid JSON."""
        keys: dict[JsonPath, Span] = {}
        values: dict[JsonPath, Span] = {}
        path: list[str | int] = []  # of the innermost object or list, the key or position that is read
        awaits_key = False
        for match in _TOKEN.finditer(text):
            sign, span = match[0], match.span()
            if sign in ("{", "["):
                path.append("" if sign == "{" else 0)
                awaits_key = sign == "{"
            elif sign in ("}", "]"):
                path.pop()
                awaits_key = False  # an empty object has none
            elif sign == "," and isinstance(path[-1], int):
                path[-1] += 1
            elif sign == ",":
                awaits_key = True
            elif sign == ":":
                awaits_key = False
            elif awaits_key:
                path[-1] = json.loads(sign)
                keys[tuple(path)] = span
            else:
                values[tuple(path)] = span
        return cls(text, keys, values)

    def inside(self, span: Span) -> Span | None:
        """The span of a text without its quotation marks; None if it has escapes, by which offsets would differ."""
        start, end = span
        return None if "\\" in self.text[start:end] else (start + 1, end - 1)


@dataclass
class PlacedText:
    """A text made of parts, each of which stands for a span of an original text."""

    original: str
    parts: list[str] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _spans: list[Span] = field(default_factory=list)
    _length: int = 0

    def __post_init__(self) -> None:
        self._lines = [0, *(match.end() for match in re.finditer("\n", self.original))]

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def add(self, part: str, span: Span) -> None:
        """Append a part that stands for a span of the original."""
        self.parts.append(part)
        self._starts.append(self._length)
        self._spans.append(span)
        self._length += len(part)

    def spot(self, offset: int) -> syntax.Spot:
        """The place in the original of the part with this character, as `spot_of` gives it."""
        return self.spot_of(self._spans[bisect_right(self._starts, offset) - 1])

    def spot_of(self, span: Span) -> syntax.Spot:
        """Line and column, from 1, of the first character of a span of the original, and of the one behind its last."""
        start, end = span
        return (*self._position(start), *self._position(end))

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1
