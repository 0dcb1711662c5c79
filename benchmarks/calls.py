"""The cost of a true statement: calls and tokens that a server of a simulated world counts, for several ways to ask it.

The peer is the naive way: ask for fifty rows, name the newest ones to leave out, have all new facts judged in one call,
and repeat. Its model has the same rates of errors as the simulated one; its lists lean to the head.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import hapax
from benchmarks.measuring import ROOT, Figure, Size
from benchmarks.server import opened, simulated_server
from hapax.grammar.terms import Value
from hapax.kb.records import StatementRecord
from hapax.llm_oracle.scripts.simulated import SimulatedWorld

RULES = ROOT / "examples" / "allergy" / "my.rules"
WORLD = 7

TRUE_JUDGED_TRUE, FALSE_JUDGED_TRUE, KNOWN = 0.95, 0.03, 0.75
"""Of the naive way's model: how often its critic says yes, and how often it knows a value that fits."""

ROW_TOKENS, FACT_TOKENS, QUESTION_TOKENS = 22, 13, 120


@dataclass
class Bill:
    """The calls and tokens that a way used, and the truth of what it stored."""

    way: str
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    stored: int = 0
    true: int = 0
    notes: list[str] = field(default_factory=list)

    def figures(self) -> Iterator[Figure]:
        """Each of these for a true statement, and the share of true ones."""
        note = "; ".join([f"{self.true:,} of {self.stored:,} statements are true", *self.notes])
        targets = {"calls": 0.6, "tokens in": 100.0, "tokens out": 30.0} if self.way == "hapax" else {}
        for unit, used in (("calls", self.calls), ("tokens in", self.tokens_in), ("tokens out", self.tokens_out)):
            value = used / self.true if self.true else None
            yield Figure("a true statement", self.way, unit, value, target=targets.get(unit), note=note)


def figures(size: Size) -> Iterator[Figure]:
    """All figures of costs; each way runs once, as nothing in them depends on the machine."""
    library, beam = hapax.load_rules(RULES), size.pick(4, 50, 200)
    usual, link = hapax.SearchSettings(beam=beam), hapax.SearchSettings(beam=beam, compat="released")
    ways = (("hapax", usual, None), ("hapax, claims one by one", usual, 1), ("LINK's schedule", link, None))
    for way, settings, claims in ways:
        yield from searched(way, library, settings, claims).figures()
    yield from naive(library, size.pick(2, 20, 100)).figures()


def searched(way: str, library: hapax.Library, settings: hapax.SearchSettings, claims: int | None) -> Bill:
    """A search on a server of the world, billed by the server's own count."""
    world = SimulatedWorld(library, WORLD)
    bill = Bill(way)
    with (
        simulated_server(library, WORLD, 0.0) as server,
        tempfile.TemporaryDirectory() as name,
        hapax.KnowledgeBase(Path(name) / "search.db") as kb,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        models = opened(server.url, library, Path(name), likelihood="frequency", claims=claims)
        hapax.search(library, kb, models, settings)
        for usage in server.usages:
            bill.calls += 1
            bill.tokens_in += usage["prompt_tokens"]
            bill.tokens_out += usage["completion_tokens"]
        for statement in kb.statements():
            bill.stored += 1
            bill.true += is_true(world, library, statement)
        ends = Counter(statement.distribution for statement in kb.statements())
        bill.notes += [f"{count} {end}" for end, count in sorted(ends.items())]
        server.shutdown()
    return bill


def is_true(world: SimulatedWorld, library: hapax.Library, statement: StatementRecord) -> bool:
    """True if the world has each fact of the statement's premise that does not speak of its generic variable."""
    rule = library.rule(statement.rule)
    values = dict(statement.substitution)
    known = [item.atom for item in rule.literals if not rule.is_information(item)]
    return all(world.holds(atom.indicator, [values[variable.name] for variable in atom.variables]) for atom in known)


def naive(library: hapax.Library, rounds: int) -> Bill:
    """Rows of three values, asked for fifty at a time, each new fact judged once."""
    world, rng = SimulatedWorld(library, WORLD), random.Random(1)  # noqa: S311  a sample, no secret
    ingredients, allergens, dishes = map(world.entities, ("Ingredient", "Food Allergen", "Dish"))
    bill = Bill("naive prompting", notes=["head only"])
    seen: set[tuple[Value, ...]] = set()
    judged: dict[tuple[str, Value, Value], bool] = {}

    def chosen(values: Sequence[Value]) -> Value:
        return rng.choices(values, [1 / place for place in range(1, len(values) + 1)])[0]

    def fitting(indicator: str, first: Value, values: Sequence[Value]) -> Value:
        good = [value for value in values if world.holds(indicator, (first, value))]
        return chosen(good) if good and rng.random() < KNOWN else chosen(values)

    for _ in range(rounds):
        rows = []
        for _ in range(50):
            ingredient = chosen(ingredients)
            allergen = fitting("is_one_type_of/2", ingredient, allergens)
            rows.append((ingredient, allergen, fitting("is_ingredient_in/2", ingredient, dishes)))
        bill.calls += 1
        bill.tokens_in += QUESTION_TOKENS + min(bill.stored, 50) * ROW_TOKENS
        bill.tokens_out += 50 * ROW_TOKENS
        new = [row for row in dict.fromkeys(rows) if row not in seen]
        seen.update(new)
        facts = {
            fact: None
            for ingredient, allergen, dish in new
            for fact in (("is_one_type_of/2", ingredient, allergen), ("is_ingredient_in/2", ingredient, dish))
            if fact not in judged
        }
        if facts:
            bill.calls += 1
            bill.tokens_in += QUESTION_TOKENS // 2 + len(facts) * FACT_TOKENS
            bill.tokens_out += len(facts) * 3
        for fact in facts:
            holds = world.holds(fact[0], fact[1:])
            judged[fact] = rng.random() < (TRUE_JUDGED_TRUE if holds else FALSE_JUDGED_TRUE)
        for ingredient, allergen, dish in new:
            pairs = (("is_one_type_of/2", ingredient, allergen), ("is_ingredient_in/2", ingredient, dish))
            if all(judged[pair] for pair in pairs):
                bill.stored += 1
                bill.true += all(world.holds(pair[0], pair[1:]) for pair in pairs)
    return bill
