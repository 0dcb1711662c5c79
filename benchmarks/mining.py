"""Rule mining over a million facts: time, memory, and how many of the rules that made the facts are mined.

python -m benchmarks.mining -o mining.json
python -m benchmarks.mining --facts 20000
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import hapax
from benchmarks.common import machine, write_figures
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

RULES = """
lives_in(Person X, City Z) & lies_in(City Z, Country Y) -> citizen_of(Person X, Country Y)
works_for(Person X, Firm Z) & seated_in(Firm Z, City Y) -> commutes_to(Person X, City Y)
married_to(Person Y, Person X) -> married_to(Person X, Person Y)
married_to(Person X, Person Z) & lives_in(Person Z, City Y) -> lives_in(Person X, City Y)
lives_in(Person X, City Z) & lies_in(City Z, Country W) & spoken_in(Language Y, Country W)
  -> speaks(Person X, Language Y)
citizen_of(Person X, Country Z) & uses_currency(Country Z, Currency Y) -> pays_with(Person X, Currency Y)
"""

_FACTS_A_PERSON = 9


def facts(count: int, seed: int) -> Iterator[FactRecord]:
    """About this many facts made by RULES: a tenth of the conclusions is missing, two facts in a hundred are noise."""
    rng = random.Random(seed)  # noqa: S311  a sample, no secret
    people = max(40, count // _FACTS_A_PERSON)
    persons = [f"person {number}" for number in range(people)]
    cities = [f"city {number}" for number in range(max(20, people // 100))]
    firms = [f"firm {number}" for number in range(max(20, people // 20))]
    countries = [f"country {number}" for number in range(150)]
    lies, seats = ({name: rng.choice(pool) for name in names} for names, pool in ((cities, countries), (firms, cities)))
    spoken = {country: f"language {number % 90}" for number, country in enumerate(countries)}
    money = {country: f"currency {number % 70}" for number, country in enumerate(countries)}
    types = {"lies_in": ("City", "Country"), "seated_in": ("Firm", "City")}

    def fact(name: str, first: str, second: str, *argument_types: str) -> FactRecord:
        return FactRecord(name, (first, second), types.setdefault(name, argument_types), Source.GIVEN)

    for table, name in ((lies, "lies_in"), (seats, "seated_in")):
        yield from (fact(name, first, second) for first, second in table.items())
    for country in countries:
        yield fact("spoken_in", spoken[country], country, "Language", "Country")
        yield fact("uses_currency", country, money[country], "Country", "Currency")
    home = {}
    for number, person in enumerate(persons):
        spouse = persons[number ^ 1] if number ^ 1 < people else None
        home[person] = home[spouse] if spouse in home and rng.random() < 0.9 else rng.choice(cities)
        country, firm = lies[home[person]], rng.choice(firms)
        yield fact("lives_in", person, home[person], "Person", "City")
        yield fact("works_for", person, firm, "Person", "Firm")
        yield fact("born_in", person, rng.choice(cities), "Person", "City")
        concluded = [
            ("citizen_of", country, "Country"),
            ("commutes_to", seats[firm], "City"),
            ("speaks", spoken[country], "Language"),
            ("pays_with", money[country], "Currency"),
        ]
        if spouse is not None:
            concluded.append(("married_to", spouse, "Person"))
        for name, value, data_type in concluded:
            if rng.random() < 0.9:
                yield fact(name, person, value, "Person", data_type)
        for _ in range(2):
            yield fact("knows", person, rng.choice(persons), "Person", "Person")
        if rng.random() < 0.2:
            yield fact("citizen_of", person, rng.choice(countries), "Person", "Country")


def mining(count: int, seed: int, seconds: float) -> dict[str, Any]:
    """Figures of one mining."""
    expected = {rule.sentence for rule in hapax.parse_rules(RULES).rules}
    with tempfile.TemporaryDirectory() as folder, KnowledgeBase(Path(folder) / "kb.db") as kb:
        waiting = facts(count, seed)
        while batch := list(islice(waiting, 50_000)):
            kb.add_facts(batch)
        stored = kb.counts()["facts"]
        began = time.perf_counter()
        mined = hapax.mine_rules(hapax.parse_rules(""), kb, hapax.MiningOptions(seconds=seconds))
        took = time.perf_counter() - began
    found = {item.rule.sentence for item in mined.rules}
    return {
        "facts": stored,
        "seconds": round(took, 1),
        "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "rules": len(found),
        "planted": len(expected),
        "mined": len(expected & found),
        "missing": sorted(expected - found),
        "notes": list(mined.notes),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; write with -o."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1200.0, help="time limit of the mining")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="JSON file for all of it")
    options = parser.parse_args(arguments)
    figures = mining(options.facts, options.seed, options.seconds)
    table = Table("figure", "", box=None)
    for name in ("facts", "seconds", "memory_mb", "rules", "planted", "mined"):
        table.add_row(name, str(figures[name]))
    console = Console()
    console.print(table)
    for note in (*(f"missing: {rule}" for rule in figures["missing"]), *figures["notes"]):
        console.print(note, soft_wrap=True, highlight=False)
    write_figures(options.output, {"machine": machine(), **figures})


if __name__ == "__main__":
    main()
