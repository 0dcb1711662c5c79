"""Drawn entailments and the rules that are held against them, by checksums in `tests/golden/`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from entailment_lines import chain_lines, lines_of
from golden_fixture import compared
from kb_contents import checksum

from hapax.engine.entailment.checks import EntailmentLimits, entailment_faults
from hapax.engine.entailment.graph import read_edges, store_edges, with_entailments
from hapax.engine.entailment.suggestions import suggestions
from hapax.grammar.parser import parse_library
from hapax.kb.store import KnowledgeBase

NAMES = ("went_to", "was_at", "saw", "knows", "met", "owns")
SHAPES = ("(Person X, Person Y)", "(Person Y, Person X)", "(Person X, Child Y)")


def drawn_edges(chance: random.Random) -> str:
    lines = []
    for _ in range(chance.randrange(4, 16)):
        first, second = chance.choice(NAMES), chance.choice(NAMES)
        shape = chance.choice(SHAPES[:2])
        left = f"{first}{SHAPES[0]}" if chance.random() < 0.8 else f"{first}{SHAPES[2]}"
        right = f"{second}{shape if left.endswith(SHAPES[0]) else SHAPES[2]}"
        lines.append(f"{left}\t{right}\t{chance.choice([0.2, 0.5, 0.6, 0.8, 0.85, 0.9, 0.95, 1])}\n")
    return "".join(dict.fromkeys(lines))


def drawn_rules(chance: random.Random) -> str:
    lines = [
        "type Child < Person",
        chance.choice(["", "opposite met owns", "symmetric knows/2", "opposite saw was_at"]),
    ]
    for number in range(chance.randrange(2, 6)):
        items = []
        for _ in range(chance.randrange(1, 4)):
            first, second = chance.choice([("X", "Y"), ("Y", "X"), ("Y", "Z"), ("X", "Z")])
            items.append(f"{chance.choice(NAMES)}(Person {first}, Person {second})")
        if chance.random() < 0.3:
            items.append(chance.choice(["X \\= Y", "lives_in(Person Y, City C)", "not is_old(Person X)"]))
        head = f"{chance.choice(NAMES)}(Person {chance.choice(['X, Person Y', 'Y, Person X'])})"
        lines.append(f"@name r{number}\n@generic none\n{' & '.join(items)} -> {head}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("part", range(3))
def test_drawn_rules_are_held_against_drawn_entailments_as_before(part: int, tmp_path: Path) -> None:
    """Faults at each limit, chains, paraphrases, look-ups, suggestions and the rules of entailments are recorded."""
    lines = []
    path = tmp_path / "edges.tsv"
    for seed in range(part * 40, part * 40 + 40):
        chance = random.Random(f"entailments {seed}")
        path.write_text(drawn_edges(chance), "utf-8")
        library = parse_library([("r.rules", drawn_rules(chance))])
        found = read_edges(path)
        faults = []
        for least in (0.0, 0.5, 0.85):
            for margin in (0.0, 0.1, 0.3):
                told = entailment_faults(library, found, EntailmentLimits(least, margin))
                faults += [f"{least}, {margin}: {fault}" for fault in told]
        with KnowledgeBase() as kb:
            store_edges(kb, found)
            stored = [line.replace(str(path), "edges.tsv") for line in lines_of(kb, library, found)]
        rules = [str(rule) for rule in with_entailments(library, found).rules]
        proposed = [item.text for least in (0.0, 0.8) for item in suggestions(found, library, least, 0.1)]
        parts = (faults, stored, list(chain_lines(found)), rules, proposed)
        lines.append(f"{seed}: {len(faults)} faults, {len(proposed)} suggestions, {' '.join(map(checksum, parts))}")
        lines += [f"  {fault[:180]}" for fault in faults[:1]]
    compared(f"entailments/drawn_{part}", "\n".join(lines) + "\n")
