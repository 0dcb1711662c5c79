"""Numbers with their nouns, for messages that count."""

from __future__ import annotations


def counted(number: float, noun: str, plural: str = "") -> str:
    """`1 call`, `2.5 calls`; `plural` is for nouns that need more than an s: `counted(2, "call is", "calls are")`."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"
