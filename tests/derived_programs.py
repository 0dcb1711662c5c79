"""Facts, and programs of rules of every kind over them."""

from __future__ import annotations

from decimal import Decimal

from hapax.grammar.terms import Value
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

FACTS: list[tuple[str, tuple[Value, ...]]] = [
    *(("road", (f"p{k}", f"p{k + 1}")) for k in range(5)),
    ("road", ("p5", "p2")),
    *(("height", (f"p{k}", 100 * k)) for k in range(5)),
    ("height", ("p5", Decimal("0.5"))),
    ("height", ("p6", "high")),
    *(("owner", (f"p{k}", name)) for k, name in enumerate(("ann", "bob", "ann", 'c"d', "it's"))),
    ("closed", ("p3",)),
    ("kin", ("ann", "bob")),
    ("kin", ("bob", "ann")),
    ("kin", ("cid", "ann")),
    ("year", ("p0", 1900)),
    ("year", ("p1", 1901)),
    ("year", ("p2", 1900)),
]

PROGRAMS = {
    "join": "@name it\nroad(Place A, Place B) & owner(Place B, Person X) -> leads_to(Place A, Person X)",
    "generic": "visits(Person X, Place A) & road(Place A, Place B) -> may_go(Person X, Place B)",
    "constant": '@name it\nroad(Place A, "p2") & owner(Place A, Person X) -> is_near(Place A, "the lake")',
    "recursive": (
        "@name direct\nroad(Place A, Place B) -> reaches(Place A, Place B)\n@name onward\n"
        "road(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)\n"
        "@name owned\nreaches(Place A, Place B) & owner(Place B, Person X) -> served_from(Person X, Place A)"
    ),
    "negation": (
        "@name open\nroad(Place A, Place B) & not closed(Place B) -> passes(Place A, Place B)\n"
        "@name way\npasses(Place A, Place B) & passes(Place B, Place C) & not road(Place A, Place C) -> skips(Place A, Place C)"
    ),
    "numbers": (
        "@name higher\nroad(Place A, Place B) & height(Place A, Number M) & height(Place B, Number N) & N > M + 50\n"
        " -> climbs(Place A, Place B)\n@name half\nheight(Place A, Number M) & N = M / 3 & N >= 0.1 -> third(Place A, Number N)"
        "\n@name same\nheight(Place A, Number M) & height(Place B, Number N) & M * 2 = N -> doubles(Place B, Place A)"
        "\n@name other\nheight(Place A, Number M) & M \\= 100 & M =< 300.0 -> low(Place A)"
    ),
    "aggregates": (
        "aggregate ways(Place A, Number N) := N = count(Place B: road(Place A, Place B))\n"
        "aggregate total(Number N) := N = sum(Number M, Place A: height(Place A, Number M))\n"
        "aggregate top(Number N) := N = max(Number M: height(Place A, Number M))\n"
        "aggregate least(Number N) := N = min(Number M: height(Place A, Number M))\n"
        "@name busy\nways(Place A, Number N) & N >= 1 & owner(Place A, Person X) -> is_busy(Person X, Number N)\n"
        "@name peak\nheight(Place A, Number N) & top(Number N) -> is_peak(Place A)\n"
        "@name sum\ntotal(Number N) & least(Number M) -> spans(Number M, Number N)"
    ),
    "properties": (
        "given kin(Person, Person)\nsymmetric kin/2\ntransitive kin/2\n"
        "@name family\nkin(Person X, Person Y) & owner(Place A, Person Y) -> may_enter(Person X, Place A)"
    ),
    "exceptions": (
        "@name default\nroad(Place A, Place B) -> is_safe(Place A, Place B) unless closed(B)\n"
        "@name then\nis_safe(Place A, Place B) & owner(Place B, Person X) -> trusts(Person X, Place A)"
    ),
    "closed": (
        "given owner(Place, Person)\nclosed owner/2 by 1\noracle closed(Place)\n"
        '@name free\nroad(Place A, Place B) & not owner(Place B, "ann") -> free(Place B)\n'
        "@name shut\nroad(Place A, Place B) & not closed(Place A) -> is_open(Place A)"
    ),
    "functional": (
        "functional year(Place, Year) within 1\nopposite is_old is_new\ncomputed is_early(Year Y) := Y < 1901\n"
        "@name old\nyear(Place A, Year Y) & is_early(Year Y) -> is_old(Place A)\n"
        "@name apart\nyear(Place A, Year Y) & year(Place B, Year Z) & Y < Z -> is_new(Place B)"
    ),
    "facts": 'fact road("p9", "p0")\n\n@name back\nroad(Place A, Place B) -> back(Place B, Place A)',
    "cycle": "@name it\nroad(Place A, Place B) & not off(Place B) -> off(Place A)",
    "wide": "@name it\nroad(Place A, Place B) & road(Place C, Place D) & height(Place E, Number N) -> mixes(Place A, Place C, Place E, Number N)",
    "arithmetic": "\n".join(
        f"@name c{k}\nheight(Place A, Number M) & height(Place B, Number N) & {test} -> c{k}(Place A, Place B)"
        for k, test in enumerate(
            (
                "N = M / 4", "M * 0.25 > N", "(M - 50) * (N + 1) >= 0", "M / 8 > N", "0.1 * M =< N / 2", "0 - M < N - 150",
                "M + N = 300", "M \\= N & N < 0.75", "M * M > N * 3", "N / 2.5 = M", "M - N - 100 = 0", "M * 0 = N", "M > 10 * 10",
                "M < N & N < M + 150 & M > 99.5", "N * 1.5 = M + 50", "M / 3 = N / 3 & M \\= N", "M = 0.5", "N = 1 / 2 & M = 100",
            )
        )
    ),
    "texts": "\n".join(
        f"@name t{k}\nowner(Place A, Person X) & road(Place A, Place B) & height(Place B, Number N) & {test} -> t{k}(Place A, Person X)"
        for k, test in enumerate(
            ("X = \"ann\"", "X \\= \"ann\"", "A \\= B & N = \"high\"", "N \\= \"high\"", "A = \"p1\" & N > 0")
        )
    ),
    "repeats": (
        "@name loop\nroad(Place A, Place A) -> loops(Place A)\n@name twice\nkin(Person X, Person Y) & kin(Person Y, Person X) -> is_mutual(Person X)"
        "\n@name number\nheight(Place A, 100) & road(Place A, Place B) -> is_at(Place B, 100)\n@name decimal\nheight(Place A, 0.50) -> is_at(Place A, 0.5)"
        "\n@name swapped\nroad(Place A, Place B) & road(Place B, Place C) & road(Place C, Place D) & A \\= D -> ends(Place D, Place A)"
    ),
}  # fmt: skip


def stored(kb: KnowledgeBase, *facts: tuple[str, tuple[Value, ...]]) -> None:
    kb.add_facts(FactRecord(name, values, (), Source.GIVEN) for name, values in facts)


def without_generic(name: str) -> str:
    """The text of a program, whose conclusions are derived for all values of their variables."""
    return PROGRAMS[name] if name == "generic" else PROGRAMS[name].replace("@name ", "@generic none\n@name ")
