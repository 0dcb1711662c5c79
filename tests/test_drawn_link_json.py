"""LINK's JSON with drawn slips of the pen: what is read of each file, by checksums in `tests/golden/`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

import pytest
from golden_fixture import compared
from kb_contents import checksum
from test_drawn_rule_texts import slipped
from test_grammar_link_json import ENTRY

from hapax.grammar.errors import HapaxError
from hapax.grammar.link_json import to_link_json
from hapax.grammar.parser import read_texts
from hapax.grammar.printing import format_library

OTHER = {
    "premise_map": {"is_near(A, B)": None, "is_at (B, D)": "[B] lies at [D]", "is_near(D,A)": "[D] is near [A]"},
    "conclusion_map": {"can_see(C, D)": "[C] can see [D]"},
    "variables": {
        "A": ["A", "Place", False, None], "B": ["B", "Town", False, ""], "C": ["C", "Person", True, None],
        "D": ["D", "Height", False, "factual"],
    },
    "domain": "spatial",
}  # fmt: skip
WORDS: Sequence[str] = (
    '"A"', '"B"', '"r"', "null", "true", "false", "3", "{", "}", "[", "]", ":", ",", '"p(A)"', '"p(A, B)"', '"[A] is [B]"',
    '"variables"', '"premise_map"', '"conclusion_map"', '"domain"', '"factual"', '""', '"Town B"', '"not p(A)"', '"\\u0000"',
)  # fmt: skip
"""Words that a slip may put in place of another."""


def told(text: str) -> list[str]:
    """The diagnostics with their places, the library, and the library as LINK's JSON; or why the file is refused."""
    try:
        read = read_texts([("f.json", text)])
    except HapaxError as refusal:
        # Versions of Python have different words for a fault of JSON.
        return re.sub(r"not valid JSON \([^:]*: ", "not valid JSON (", str(refusal)).splitlines()
    lines = [f"{found} ({found.place.end_line}:{found.place.end_column})" for found in read.diagnostics]
    lines += format_library(read.library).splitlines()
    for rule in read.library.rules:
        lines += [f"{atom} {atom.place} {atom.argument_places}" for atom in rule.atoms]
    return lines if read.diagnostics else [*lines, to_link_json(read.library)]


@pytest.mark.parametrize("slips", range(3))
def test_drawn_files_of_link_are_read_alike(slips: int) -> None:
    """Of each file the first line of what is told stands in the golden file, with a checksum of all."""
    chance, lines = random.Random(slips), []
    for number in range(60):
        entries = {"r": {**ENTRY, "domain": chance.choice(["need", "", None, 7])}, "s": OTHER}
        text = json.dumps(entries if number % 2 else {"s": OTHER}, indent=chance.choice([None, 1]))
        for _ in range(slips):
            text = slipped(chance, text, WORDS)
        found = told(text)
        lines.append(f"{number} {checksum([text])}: {len(found)} lines, {checksum(found)}  {found[0][:120]}")
    compared(f"drawn_texts/link_{slips}_slips", "\n".join(lines) + "\n")
