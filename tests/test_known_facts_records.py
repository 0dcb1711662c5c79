"""Known facts through additions, rejections, withdrawals and denials in random order, as texts in `tests/golden/`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents

from hapax.engine.inference.known_facts import KnownFacts
from hapax.grammar.parser import parse_library
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.kb import argument_index
from hapax.kb.argument_index import ArgumentIndex
from hapax.kb.records import USER, DenialRecord, FactRecord, Source, TypeFact
from hapax.kb.store import KnowledgeBase

RULES = """
oracle road(Place, Place)
oracle borders(Place, Place)
symmetric borders/2
transitive borders/2
oracle precedes(Place, Place)
asymmetric precedes/2
transitive precedes/2
oracle differs(Place, Place)
irreflexive differs/2
functional lies_at(Place, Number)
oracle has(Place, Place)
closed has/2 by 1
computed exceeds(Number A, Number B) := A > B
fact road("a", "z")
fact borders("a", "c")
@name far
@generic none
road(Place A, Place B) & road(Place B, Place C) -> is_far(Place A, Place C)
"""
LIBRARY = parse_library([("known.rules", RULES)])
PREDICATES = ("road", "borders", "precedes", "differs", "has", "lies_at", "is_far")
VALUES: Sequence[Value] = ("a", "b", "c", "z")
NUMBERS: Sequence[Value] = (1, 2, Decimal("2.5"))
CANDIDATES = ("first", "second", None)
OPERATIONS = ("add", "add", "add", "reject", "reject", "retract", "deny", "types", "keep")


def drawn(chance: random.Random, source: Source | None = None) -> FactRecord:
    name = chance.choice(PREDICATES[:-1])
    arguments = (chance.choice(VALUES), chance.choice(NUMBERS if name == "lies_at" else VALUES))
    source = source or chance.choice([Source.GIVEN, Source.MODEL, Source.MODEL])
    candidate = chance.choice(CANDIDATES)
    return FactRecord(name, arguments, ("Place", "Place"), source, chance.choice([0.5, 0.9]), candidate, "run")


def answers(known: KnownFacts) -> Iterator[str]:
    first, second = Variable("V", "Place"), Variable("W", "Place")
    for name in PREDICATES:
        others = NUMBERS if name == "lies_at" else VALUES
        for pair in ((first, second), (first, first), *((Constant(value), first) for value in VALUES[:2])):
            yield f"{name}{tuple(map(str, pair))}: {known.given(Atom(name, pair), 'V')}"
        yield f"{name}, second: {known.given(Atom(name, (first, Constant(others[0]))), 'V')}"
        for left, right in product(VALUES, others):
            atom = Atom(name, (Constant(left), Constant(right)))
            yield f"{atom}: {known.truth(atom)} {known.is_covered(atom)}"
        indicator = f"{name}/2"
        yield f"rows {sorted(known.given_rows(indicator), key=str)}"
        yield f"table {sorted(known.table(indicator).rows((0,), ('a',)), key=str)}"
        for facts in (known.of_run(indicator), known.found_of(indicator), known.with_values(indicator, ["a", 1])):
            yield str([(fact.arguments, fact.source.value, fact.candidate_id, fact.probability) for fact in facts])
        yield f"denied {[(item.arguments, item.probability) for item in known.denials(indicator)]}"
    for left, right in product(NUMBERS, NUMBERS):
        yield f"{left} > {right}: {known.truth(Atom('exceeds', (Constant(left), Constant(right))))}"
    yield f"types {known.types()}"


def operated(chance: random.Random, known: KnownFacts, operation: str) -> str:
    facts = [drawn(chance) for _ in range(chance.randrange(1, 5))]
    match operation:
        case "add":
            known.add(facts)
        case "reject":
            known.reject(facts)
        case "retract":
            known.retract(dict.fromkeys(facts, "it is not so"), "somebody")
        case "deny":
            known.deny([DenialRecord(fact.predicate, fact.arguments, 0.04) for fact in facts])
        case "types":
            known.add_types([TypeFact(fact.arguments[0], "Place", 0.8) for fact in facts])
        case "keep":
            known.keep_only([f"{name}/2" for name in chance.sample(PREDICATES, 5)])
    return f"{operation} {[(fact.predicate, fact.arguments, fact.source.value, fact.candidate_id) for fact in facts]}"


@pytest.mark.parametrize("looks_up", [False, True])
def test_facts_come_and_go_as_read_over(looks_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of eight operations, values, truths, closures, tables, denials and stored rows are those recorded."""
    lines = []
    for seed in range(14):
        chance = random.Random(seed)
        with KnowledgeBase() as kb, monkeypatch.context() as patch:
            kb.add_facts([drawn(chance) for _ in range(12)])
            withdrawn = drawn(chance, Source.MODEL)
            kb.add_facts([withdrawn])
            kb.withdraw([withdrawn.id], "wrong", USER)
            if looks_up:
                patch.setattr(argument_index, "FEW_FACTS", 0)
                ArgumentIndex(kb).prepare(f"{name}/2" for name in PREDICATES)
            known = KnownFacts(kb, LIBRARY)
            known.looks_up = looks_up
            for operation in ["", *chance.choices(OPERATIONS, k=8)]:
                words = operated(chance, known, operation)
                told = list(answers(known))
                lines += [f"{seed} {words}: {checksum(told)}", *(told if seed == 0 and not operation else ())]
            lines.append(f"  stored: {checksum(contents(kb).splitlines())}")
    compared(f"known/{'looked_up' if looks_up else 'read'}", "\n".join(lines) + "\n")
