"""Libraries of drawn rules about isles, in which `hapax check` finds no error."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError, Severity
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library

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
@example lies_near("Capri", "Naples")
fact sails("the Argo", "place 3")
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
TESTS = {
    "Year": ("{} > 1500", "{} < 1900", "is_early(Year {})", "not is_early(Year {})"),
    "Metre": ("{} > 100", "{} + 50 < 900", "{} \\= 300"),
    "Number": ("{} > 1", "{} = 2"),
}
"""Tests of a number, by its type."""
NAMES = {"Isle": "AB", "Place": "PQ", "Plant": "FG", "Year": "Y", "Metre": "MN", "Ship": "S", "Number": "K"}
PERSONAL = ("owns", "likes", "studies", "visits")


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
        items.append(chance.choice(TESTS[used[first]]).format(first))
    if used.get("M") == used.get("N") == "Metre":
        items.append(chance.choice(["is_above(Metre M, Metre N)", "M < N * 2", "not is_above(Metre N, Metre M)"]))
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
