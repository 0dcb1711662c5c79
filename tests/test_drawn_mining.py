"""Rules mined from drawn facts under drawn declarations and options, by checksums in `tests/golden/`."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from golden_fixture import compared
from kb_contents import checksum
from test_rule_mining import mined_text

from hapax.engine.mining.mine import MiningOptions, mine
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Value
from hapax.kb.records import DenialRecord, FactRecord, Source
from hapax.kb.store import KnowledgeBase

DECLARATIONS = (
    "type Twin < Person", "symmetric knows/2", "functional lives_in(Person, City)", "given knows(Person, Person)",
    'oracle likes(Person, Dish): "[1] likes [2]" / "[1] dislikes [2]" / "does [1] like [2]?"', "asymmetric leads/2",
    "closed likes/2", "closed likes/2 by 1", "transitive leads/2", "disjoint Person, City",
    '@generic none\nlikes(Person A, "soup") -> is_warm(Person A)',
    "@generic none\nknows(Person A, Person B) & lives_in(Person B, City C) -> visits(Person A, City C)",
    "@generic none\nvisits(Person A, City C) & not lives_in(Person A, City C) -> travels(Person A, City C)",
    "@generic none\nweighs(Person A, Number N) & M = N * 2 -> doubles(Person A, Number M)",
    "likes(Person X, Dish B) & serves(City C, Dish B) -> may_move_to(Person X, City C)",
)  # fmt: skip
WEIGHTS: tuple[Value, ...] = (50, Decimal("60.5"), 70)


def drawn_facts(chance: random.Random) -> list[FactRecord]:
    """People who know each other, live in cities, and like what is served there, with exceptions."""
    people, cities, dishes = ([f"{kind}{k}" for k in range(count)] for kind, count in (("p", 9), ("c", 4), ("d", 3)))
    dishes.append("soup")
    home = {person: chance.choice(cities) for person in people}
    menu = {city: chance.choice(dishes) for city in cities}
    rows: list[tuple[str, tuple[Value, ...], tuple[str, ...]]] = []
    for person in people:
        rows.append(("lives_in", (person, home[person]), ("Person", "City")))
        rows += [
            ("knows", (person, other), ("Person", "Person"))
            for other in people
            if home[other] == home[person] and chance.random() < 0.7
        ]
        liked = menu[home[person]] if chance.random() < 0.8 else chance.choice(dishes)
        rows.append(("likes", (person, liked), chance.choice([("Person", "Dish"), ("Twin", "Dish"), ()])))
        rows.append(("weighs", (person, chance.choice(WEIGHTS)), ("Person", "Number")))
        if chance.random() < 0.5:
            rows.append(("leads", (person, chance.choice(people)), ("Person", "Person")))
        if chance.random() < 0.3:
            rows.append(("is_warm", (person,), ("Person",)))
    rows += [("serves", (city, menu[city]), ("City", "Dish")) for city in cities]
    return [FactRecord(name, values, types, Source.GIVEN) for name, values, types in rows]


def mined_lines(seed: int) -> list[str]:
    """All that is mined from drawn facts, or why the declarations are refused."""
    chance = random.Random(f"mining {seed}")
    options = MiningOptions(
        premises=chance.choice([1, 2, 2, 3]), min_support=chance.choice([1, 2, 3, 5]),
        min_coverage=chance.choice([0.01, 0.5]), min_confidence=chance.choice([0.0, 0.1, 0.6]),
        min_pca=chance.choice([0.0, 0.5, 0.8]), constants=chance.random() < 0.4, derived=chance.random() < 0.5,
        sample=chance.choice([0, 3, 2000]), examples=chance.randrange(3),
    )  # fmt: skip
    rules = "\n".join(line for line in DECLARATIONS if chance.random() < 0.5)
    try:
        library = parse_library([("f", rules)])
    except HapaxError as refusal:
        return str(refusal).splitlines()
    with KnowledgeBase() as kb:
        kb.add_facts(drawn_facts(chance))
        kb.add_denials(
            DenialRecord("likes", (f"p{k}", chance.choice(["soup", "d1"])), 0.02) for k in range(chance.randrange(5))
        )
        return mined_text(str(seed), mine(kb, library, options)).splitlines()


@pytest.mark.parametrize("part", range(4))
def test_drawn_facts_are_mined_as_before(part: int) -> None:
    """The number of rules, the first of them and a checksum of all with their figures are those that were read over."""
    shown = []
    for seed in range(part * 12, part * 12 + 12):
        lines = mined_lines(seed)
        shown += [f"{seed}: {len(lines)} lines, {checksum(lines)}", *(f"  {line}" for line in lines[1:5])]
    compared(f"mined/drawn_{part}", "\n".join(shown) + "\n")
