"""Rule texts of all kinds, with all that the grammar makes of them, stand in one golden file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rule_texts import told

TEXTS = Path(__file__).parent / "golden" / "rule_texts.txt"
"""A text, a line of dashes, what is told of it, and a line of equals signs; HAPAX_RENEW_GOLDEN=1 tells it anew."""

BETWEEN, AFTER = "\n-----\n", "\n=====\n"


def blocks() -> list[tuple[str, str]]:
    """The texts with what is told of them."""
    found = []
    # As bytes, because a text may have the line ends of Windows.
    for block in TEXTS.read_bytes().decode().split(AFTER)[:-1]:
        text, _, expected = block.partition(BETWEEN)
        found.append((text, expected))
    return found


@pytest.mark.skipif(not os.environ.get("HAPAX_RENEW_GOLDEN"), reason="HAPAX_RENEW_GOLDEN=1 writes the file anew")
def test_the_golden_file_is_written_anew() -> None:
    """Every text of the file gets what is told of it now."""
    TEXTS.write_bytes("".join(f"{text}{BETWEEN}{told(text)}{AFTER}" for text, _ in blocks()).encode())


@pytest.mark.parametrize("number", range(len(blocks())))
def test_a_rule_text_is_read_checked_printed_and_planned_alike(number: int) -> None:
    """Diagnostics, names, layout, program, graph, orders and sentences of a text are those that were read over."""
    text, expected = blocks()[number]

    assert told(text) == expected
