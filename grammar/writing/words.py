"""Numbers, names and values in messages."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: float, noun: str, plural: str = "") -> str:
    """`1 call`, `2.5 calls`; `plural` is for nouns that need more than an s: `counted(2, "call is", "calls are")`."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few names."""
    listed = list(names)
    return ", ".join(listed[:most]) + (" ..." if len(listed) > most else "")


def short(item: object) -> str:
    """The item as Python writes it, cut to 40 characters."""
    text = repr(item)
    return text if len(text) <= 40 else text[:37] + "..."
