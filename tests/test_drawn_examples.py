"""Examples of faults in drawn company: what the grammar makes of several together, by checksums in `tests/golden/`."""

from __future__ import annotations

import random

import pytest
from golden_fixture import compared
from kb_contents import checksum
from rule_texts import told
from test_drawn_rule_texts import slipped

from hapax.grammar.checks import FAULTS
from hapax.grammar.hints import FORM_HINTS, UNREADABLE

EXAMPLES = {fault.code: fault.example for fault in FAULTS}
BROKEN = {hint.code: hint.examples[0] for hint in FORM_HINTS if hint is not UNREADABLE}
"""Examples of statements that cannot be read."""


def accompanied(code: str, chance: random.Random, slips: int) -> tuple[str, str]:
    """The example of a fault between two others, and the codes. With slips, one of the three may be unreadable."""
    before, after = chance.sample(sorted(EXAMPLES.keys() - {code}), 2)
    texts = [EXAMPLES[before], EXAMPLES[code], EXAMPLES[after]]
    if slips and not chance.randrange(4):
        after = chance.choice(sorted(BROKEN))
        texts[2] = BROKEN[after]
    text = "\n".join(texts) + "\n"
    for _ in range(slips):
        text = slipped(chance, text)
    return f"{before} {code} {after}", text


@pytest.mark.parametrize("draw", range(9))
def test_faults_are_told_alike_in_any_company(draw: int) -> None:
    """Of each three examples the codes that are told stand in the golden file, with a checksum of all that is told."""
    lines = []
    for code in sorted(EXAMPLES):
        codes, text = accompanied(code, random.Random(f"{code} {draw}"), slips=draw % 3)
        words = told(text).splitlines()
        found = [line.split(":", 3)[3].split()[1].rstrip(":") for line in words if line.startswith("f.rules:")]
        lines.append(f"{codes}: {' '.join(found)}; {len(words)} lines, {checksum(words)}")
    compared(f"drawn_texts/examples_{draw}", "\n".join(lines) + "\n")
