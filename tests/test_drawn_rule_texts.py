"""Drawn rules with drawn slips of the pen: what the grammar makes of each text, by checksums in `tests/golden/`."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest
from drawn_rules import AGGREGATE, DERIVED, drawn_library
from golden_fixture import compared
from kb_contents import checksum
from rule_texts import told

TOKENS = re.compile(r'"[^"\n]*"|\w+|[^\w\s]+|\n')
WORDS: Sequence[str] = (
    "not", "&", "->", ",", "(", ")", ":=", "<", "=", "\\=", "1500", "0", "2.5", '"isle 1"', "type", "given", "oracle",
    "functional", "computed", "aggregate", "count", "sum", "@name", "@generic", "@most", "none", "closed", "never",
    "within", "Isle A", "Year Y", "Person X", "Q", "sails", "faces", "is_above", "/2", ".", "#", "|", "min", "max",
)  # fmt: skip
"""Words that a slip may put in place of another."""


def slipped(chance: random.Random, text: str, words: Sequence[str] = WORDS) -> str:
    """The text with a token dropped, doubled, exchanged with the next one, or replaced by one of the words."""
    places = [match.span() for match in TOKENS.finditer(text)]
    place = chance.randrange(len(places) - 1)
    (start, end), (after, last) = places[place], places[place + 1]
    token, following = text[start:end], text[after:last]
    match chance.randrange(4):
        case 0:
            new = text[end:after] + following
        case 1:
            new = f"{token} {token}{text[end:after]}{following}"
        case 2:
            new = f"{following}{text[end:after]}{token}"
        case _:
            new = f"{chance.choice(words)}{text[end:after]}{following}"
    return text[:start] + new + text[last:]


def drawn_text(chance: random.Random, slips: int) -> str:
    """Rules without errors and their declarations, with this number of slips."""
    text, _ = drawn_library(chance)
    if not chance.randrange(3):
        text = text.replace(DERIVED, "").replace(AGGREGATE, "")  # the rules may use what these define
    for _ in range(slips):
        text = slipped(chance, text)
    return text


@pytest.mark.parametrize("slips", range(4))
def test_drawn_texts_are_read_checked_printed_and_planned_alike(slips: int) -> None:
    """Of each text the first lines of what is told stand in the golden file, with a checksum of all."""
    lines = []
    for seed in range(15):
        text = drawn_text(random.Random(f"{seed} {slips}"), slips)
        words = told(text).splitlines()
        lines.append(f"{seed} {checksum(text.splitlines())} {len(words)} lines, {checksum(words)}")
        lines += [f"  {line[:160]}" for line in words if re.match(r"\S*:\d+:\d+: error", line)][:2]
    compared(f"drawn_texts/{slips}_slips", "\n".join(lines) + "\n")
