"""Goals of queries with drawn slips of the pen: what the parser makes of each, by checksums in `tests/golden/`."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from golden_fixture import compared
from kb_contents import checksum
from test_drawn_rule_texts import TOKENS, slipped
from test_query_records import GOALS, RULES

from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_goal, parse_library
from hapax.grammar.rules import Library

WORDS: Sequence[str] = (
    "near", "size", "wet", "A", "B", "_", "_N", "capri", "'it'", '"x"', "10", "-5", "0.5", ",", ";", "->", "\\+", "not",
    "(", ")", "[", "]", "|", "=", "\\=", "<", ">=", "=:=", "is", "+", "-", "*", "/", "//", "mod", "@<", "^", ":-", ".", "findall",
    "count", "forall", "{", "}", "!", "once",
)  # fmt: skip
"""Words that a slip may put in place of another."""


def told(goal: str, library: Library) -> list[str]:
    """The variables, the text for Prolog and the term with its places; or why the goal is refused."""
    try:
        parsed = parse_goal(goal, library, lambda indicator: f"<{indicator} is elsewhere>" if "z" in indicator else "")
        return [str(parsed.variables), str(parsed), repr(parsed.term)]
    except HapaxError as refusal:
        return str(refusal).splitlines()


@pytest.mark.parametrize("slips", range(1, 4))
def test_drawn_goals_are_read_or_refused_alike(slips: int) -> None:
    """Each goal stands in the golden file with the first line of what is made of it, and a checksum of all."""
    library, chance = parse_library([("isles.rules", RULES)]), random.Random(slips)
    lines = []
    for goal in GOALS:
        for _ in range(8):
            text = goal
            for _ in range(slips):
                text = (
                    slipped(chance, text, WORDS) if len(TOKENS.findall(text)) > 2 else f"{text} {chance.choice(WORDS)}"
                )
            found = told(text, library)
            lines.append(f"{text}\n  {found[0][:110]} {checksum(found)}")
    compared(f"drawn_texts/goals_{slips}_slips", "\n".join(lines) + "\n")
