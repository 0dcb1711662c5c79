"""Searches of drawn rules with drawn settings, by checksums in `tests/golden/`: reports, forecasts and what is stored."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents
from recorded_searches import job_of, planned, searched

from hapax.engine.explain import story_text, why, why_not
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError, Severity
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.records import Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase

DECLARATIONS = """
type Isle < Place
type Metre < Number
oracle lies_near(Isle, Place): "[1] lies near [2]" / "[1] does not lie near [2]" / "does [1] lie near [2]?"
oracle faces(Place, Place): "[1] faces [2]" / "[1] does not face [2]" / "does [1] face [2]?"
oracle has_harbour(Place): "[1] has a harbour" / "[1] has no harbour" / "does [1] have a harbour?"
oracle grows_on(Plant, Isle): "[1] grows on [2]" / "[1] does not grow on [2]" / "does [1] grow on [2]?"
functional was_settled_in(Isle, Year): "[1] was settled in [2]" / "[1] was not settled in [2]" / "?"
functional rises_to(Isle, Metre) within 10%: "[1] rises to [2] metres" / "[1] does not rise to [2] metres" / "?"
given sails(Ship, Place): "[1] sails to [2]" / "[1] does not sail to [2]" / "does [1] sail to [2]?"
given needs(Plant, Metre): "[1] needs [2] metres" / "[1] does not need [2] metres" / "?"
computed is_early(Year Y) := Y < 1500
computed is_above(Metre A, Metre B) := A > B
"""
PROPERTIES = (
    "symmetric faces/2",
    "asymmetric faces/2",
    "irreflexive faces/2",
    "transitive faces/2",
    "symmetric lies_near/2",
)
CLOSED = "closed was_settled_in/2"
DERIVED = """
@name reaching
@generic none
sails(Ship S, Place B) & faces(Place B, Place C) -> reaches(Ship S, Place C)
@name green
@generic none
grows_on(Plant P, Isle A) & lies_near(Isle A, Place B) -> is_green(Place B)
"""
AGGREGATE = "aggregate ports(Ship S, Number N) := N = count(Place B: sails(Ship S, Place B))\n"
NEVER = "never grows_on(Plant P, Isle A) & was_settled_in(Isle A, Year Y) & Y > 1900\n"

ATOMS: Sequence[tuple[str, tuple[str, ...]]] = [
    ("lies_near", ("Isle", "Place")),
    ("lies_near", ("Isle", "Place")),
    ("faces", ("Place", "Place")),
    ("has_harbour", ("Place",)),
    ("grows_on", ("Plant", "Isle")),
    ("grows_on", ("Plant", "Isle")),
    ("was_settled_in", ("Isle", "Year")),
    ("rises_to", ("Isle", "Metre")),
    ("sails", ("Ship", "Place")),
    ("needs", ("Plant", "Metre")),
    ("reaches", ("Ship", "Place")),
    ("is_green", ("Place",)),
    ("ports", ("Ship", "Number")),
]
NAMES = {"Isle": "AB", "Place": "PQ", "Plant": "FG", "Year": "Y", "Metre": "MN", "Ship": "S", "Number": "K"}
PERSONAL = ("owns", "likes", "studies", "visits")
SETTINGS: Sequence[tuple[str, Sequence[Any]]] = [
    ("compat", (None, None, None, "paper", "released")),
    ("ends", ("disjoint", "disjoint", "overlapping")),
    ("likelihood", ("model", "model", "random", "none")),
    ("beam", (2, 5, 20, None)),
    ("calls_per_question", (1, 2, 3)),
    ("values_per_call", (3, 8)),
    ("rules_together", (1, 2, 8)),
    ("plan", ("cheapest", "cheapest", "link", "premise-first", "conclusion-first")),
    ("distributions", ((Distribution.HEAD, Distribution.LONG_TAIL), (Distribution.LONG_TAIL,), (Distribution.HEAD,))),
    ("keep_share", (0.75, 0.5, 0.25)),
    ("max_statements", (None, None, 3)),
    ("seed", (0, 1)),
    ("critic", (True, True, True, False)),
    ("fact_threshold", (None, None, CriticRule.parse("0.9"))),
    ("names", (False, False, True)),
]
"""Settings of a search with the values from which one is drawn."""


def drawn_rule(chance: random.Random, number: int) -> str:
    """A rule of two to four atoms, each of which shares a variable with those before it, and perhaps a comparison."""
    items: list[str] = []
    used: dict[str, str] = {}

    def atom(name: str, types: Sequence[str]) -> str:
        terms = []
        for data_type in types:
            known = [variable for variable, other in used.items() if other == data_type]
            if data_type == "Isle" and chance.random() < 0.05:
                terms.append('"isle 1"')
                continue
            variable = chance.choice(known) if known and chance.random() < 0.8 else chance.choice(NAMES[data_type])
            used.setdefault(variable, data_type)
            terms.append(f"{used[variable]} {variable}")
        return f"{name}({', '.join(terms)})"

    for _ in range(chance.randrange(2, 5)):
        near = [entry for entry in ATOMS if not used or set(entry[1]) & set(used.values())]
        name, types = chance.choice(near or ATOMS)
        known = set(used)
        made = atom(name, types)
        is_negated = chance.random() < 0.2 and set(used) == known
        items.append(f"not {made}" if is_negated else made)
    numbers = [variable for variable in used if used[variable] in ("Year", "Metre", "Number")]
    if numbers and chance.random() < 0.5:
        first = chance.choice(numbers)
        tests = {
            "Year": ("{} > 1500", "{} < 1900"),
            "Metre": ("{} > 100", "{} + 50 < 900"),
            "Number": ("{} > 1", "{} = 2"),
        }
        items.append(chance.choice(tests[used[first]]).format(first))
    free = list(used)
    head = [f"{used[name]} {name}" for name in chance.sample(free, min(len(free), chance.randrange(1, 3)))]
    if chance.random() < 0.5:
        subject = next((name for name in free if used[name] in ("Isle", "Place", "Plant", "Ship")), None)
        if subject is not None:
            items.insert(0, f"{chance.choice(PERSONAL)}(Person X, {used[subject]} {subject})")
            return f"@name r{number}\n{' & '.join(items)} -> concludes_{number}(Person X, {', '.join(head)})\n"
    most = chance.choice(["", "", f"@most 2 per {free[0]}\n"])
    return f"@name r{number}\n@generic none\n{most}{' & '.join(items)} -> concludes_{number}({', '.join(head)})\n"


def drawn_library(chance: random.Random) -> tuple[str, Library]:
    """Rules in which `hapax check` finds no error, with drawn declarations."""
    text = DECLARATIONS + DERIVED + AGGREGATE
    text += "".join(f"{line}\n" for line in chance.sample(PROPERTIES, chance.randrange(3)))
    text += chance.choice(["", f"{CLOSED}\n"]) + chance.choice(["", NEVER])
    for number in range(4):
        for _ in range(30):
            longer = text + drawn_rule(chance, number)
            try:
                library = parse_library([("drawn.rules", longer)])
            except HapaxError:
                continue
            if not any(item.severity is Severity.ERROR for item in check_library(library)):
                text = longer
                break
    return text, parse_library([("drawn.rules", text)])


def drawn_settings(chance: random.Random) -> dict[str, Any]:
    drawn = {name: chance.choice(values) for name, values in SETTINGS}
    if drawn["compat"]:
        drawn["ends"] = "overlapping"
    elif drawn["ends"] == "disjoint":
        drawn["keep_share"] = min(drawn["keep_share"], 0.5)
    return drawn


def given_facts(chance: random.Random) -> list[FactRecord]:
    facts = [("sails", (f"ship {ship}", f"place {chance.randrange(14)}"), ("Ship", "Place")) for ship in range(4)]
    needs = [("needs", (f"plant {plant}", chance.randrange(50, 400)), ("Plant", "Metre")) for plant in range(14)]
    return [FactRecord(name, values, types, Source.GIVEN) for name, values, types in (*facts, *needs)]


def stories(kb: KnowledgeBase, library: Library, prolog: PrologSession) -> list[str]:
    theory = Theory(library, kb)
    statements = sorted(kb.statements(), key=lambda statement: statement.id)
    told = [story_text(why(theory, statement.id, prolog)) for statement in statements[:3]]
    for rule in library.rules:
        terms = [variable.data_type.lower() + " 3" for variable in rule.conclusion.atom.variables]
        named = ["PersonX" if term.startswith("person") else term for term in terms]
        atom = f"{rule.conclusion.atom.predicate}({', '.join(map(json.dumps, named))})"
        try:
            told.append(story_text(why_not(theory, atom, prolog)))
        except HapaxError as refusal:
            told.append(str(refusal))
    return told


@pytest.mark.parametrize("part", range(4))
def test_drawn_rules_are_searched_as_before(part: int, prolog: PrologSession) -> None:
    """The forecast, report, stored rows and stories of each search are those of the version that was read over."""
    lines = []
    for seed in range(part * 8, part * 8 + 8):
        chance = random.Random(seed)
        rules, library = drawn_library(chance)
        settings = drawn_settings(chance)
        with KnowledgeBase() as kb:
            kb.add_facts(given_facts(chance))
            try:
                job = replace(job_of(kb, settings, rules=rules), rules=library.rules)
                forecast = planned(job)
            except HapaxError as refusal:
                lines.append(f"{seed} {json.dumps(settings, default=str)}: {refusal}")
                continue
            report = searched(job)
            figures = Counter(statement.rule for statement in kb.statements())
            texts = (forecast, report, contents(kb, shown=0), *stories(kb, library, prolog))
            sums = [checksum(text.splitlines()) for text in texts]
            lines += [f"{seed} {json.dumps(settings, default=str)}", f"  {sorted(figures.items())} {' '.join(sums)}"]
    compared(f"search/drawn_{part}", "\n".join(lines) + "\n")
