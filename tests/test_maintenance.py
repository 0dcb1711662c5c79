"""Derived statements follow changes of facts: after each change they are those of a fresh derivation."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from cli_fixture import invoke
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases
from test_bulk_inference import ROUTES, fact, facts, library_of, programs, stored

import hapax
from hapax.engine.inference import bulk_derivation
from hapax.engine.inference.bulk_derivation import derive_all, read_statements
from hapax.engine.inference.derive import BULK_LIMITS
from hapax.engine.inference.session import LimitExceeded, PrologSession
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.kb.records import FactRecord, Source
from hapax.kb.relations import Relations
from hapax.kb.store import KnowledgeBase

PARTS = ("a", "b", "c")
ATOMS = ("edge({0}, {1})", "link({0}, {1})", "mark({0})", "known({0}, {1})", "open({0}, {1})")
VARIABLES = ("A", "B", "C", "D")


def random_premise(rng: random.Random, positive: tuple[str, ...], negative: tuple[str, ...]) -> tuple[str, list[str]]:
    """A premise of atoms, negations and inequalities, and its variables."""
    items, names = [], []
    for number in range(rng.randint(1, 3)):
        pair = [rng.choice(VARIABLES[: number + 2]) for _ in range(2)]
        items.append(rng.choice(positive).format(*pair))
        names += pair if "{1}" in items[-1] or "," in items[-1] else pair[:1]
    names = sorted(set(names))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        items.append("not " + rng.choice(negative).format(rng.choice(names), rng.choice(names)))
    if rng.random() < 0.2 and len(names) > 1:
        items.append(f"{names[0]} \\= {names[1]}")
    return " & ".join(typed(item) for item in items), names


def typed(item: str) -> str:
    if "\\=" in item:
        return item
    name, _, rest = item.partition("(")
    return f"{name}({', '.join(f'Thing {term}' for term in rest[:-1].split(', '))})"


def random_program(rng: random.Random) -> str:
    """Rules in layers: joins, recursion of each kind, negation of lower layers, and facts of derived predicates."""
    lines = [f"given {name}(Thing, Thing)." for name in ("edge", "link", "known", "open", "low", "far", "high")]
    lines += ["given mark(Thing).", "closed known/2 by 1."]
    base = tuple(name for name in ATOMS if not name.startswith(("known", "open")))
    negative = ("edge({0}, {1})", "link({0}, {1})", "mark({0})", "known({0}, {1})")
    below, denied = base, negative
    number = 0
    for layer in ("low", "far", "high"):
        for _ in range(rng.randint(1, 2)):
            positive = (*below, f"{layer}({{0}}, {{1}})") if rng.random() < 0.6 else below
            premise, names = random_premise(rng, positive, denied)
            head = f"{layer}(Thing {rng.choice(names)}, Thing {rng.choice(names)})"
            lines.append(f"@name r{number}\n@generic none\n{premise} -> {head}.")
            number += 1
        below = (*below, f"{layer}({{0}}, {{1}})", f"{layer}({{0}}, {{1}})")
        denied = (*denied, f"{layer}({{0}}, {{1}})")
    premise, names = random_premise(rng, below, denied)
    lines.append(f"@name top\n@generic none\n{premise} -> top(Thing {rng.choice(names)}, Thing {rng.choice(names)}).")
    if rng.random() < 0.3:
        lines.append('fact low("a", "b").')
    return "\n".join(lines)


def random_fact(rng: random.Random) -> FactRecord:
    name = rng.choice(("edge", "edge", "link", "mark", "known", "low", "far"))
    values = [rng.choice(("a", "b", "c", "d", 1, 2)) for _ in range(1 if name == "mark" else 2)]
    return fact(name, *values, source=Source.GIVEN)


def contents(kb: KnowledgeBase, library: Library, prolog: PrologSession | None = None) -> dict[str, object]:
    """All that is stored: statements with their proofs, counts, and the derived atoms."""
    counts = kb.derived_counts()
    found: dict[str, object] = {name: stored(kb, library, name, prolog) for name in sorted(counts)}
    found["counts"] = sorted(counts.items())
    conn = kb.database.conn
    symbols = dict(conn.execute("SELECT id, symbol FROM symbols"))
    for indicator, number in conn.execute("SELECT indicator, number FROM derived_predicates").fetchall():
        atoms = conn.execute(f"SELECT a1, a2 FROM _atoms_{number}").fetchall()  # noqa: S608
        found[indicator] = sorted(json.dumps([symbols.get(tag, tag) for tag in row]) for row in atoms)
    return found


def changes_of(kb: KnowledgeBase, rng: random.Random) -> Iterator[None]:
    """Changes of a few facts: some are added, some withdrawn, and some withdrawn and brought back under new numbers."""
    kb.add_facts([random_fact(rng) for _ in range(rng.randint(6, 24))])
    yield
    for _ in range(3):
        there = kb.facts()
        gone = rng.sample(there, min(len(there), rng.choice((0, 1, 1, 2, 4))))
        if gone:
            kb.withdraw([record.id for record in gone], "wrong", "user")
        if rng.random() < 0.3:
            kb.restore([record.id for record in gone])
        kb.add_facts([random_fact(rng) for _ in range(rng.choice((0, 1, 2, 3)))])
        yield


def assert_as_derived_anew(kb: KnowledgeBase, library: Library, prolog: PrologSession | None = None) -> None:
    with KnowledgeBase() as fresh:
        fresh.add_facts(kb.facts())
        derive_all(fresh, library, [library.rule(name) for name in kb.derived_counts()], session=prolog)
        assert contents(kb, library, prolog) == contents(fresh, library, prolog)


@pytest.mark.parametrize("seed", range(cases(50)))
def test_changes_are_followed(seed: int) -> None:
    """Facts come and go below joins, recursion and negation: statements, proofs and atoms are those derived anew."""
    rng = random.Random(seed)
    library = library_of(random_program(rng))
    with KnowledgeBase() as kb:
        for _ in changes_of(kb, rng):
            report = derive_all(kb, library, library.rules, "sql")

            assert not any(rule.anew for rule in report.rules)
            assert_as_derived_anew(kb, library)


@settings(max_examples=cases(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), earlier=facts(), later=facts(), most=st.sampled_from((0, 1000)))
def test_rules_of_all_kinds_follow(
    program: str, earlier: list[FactRecord], later: list[FactRecord], most: int, prolog: PrologSession
) -> None:
    """With arithmetic, equal numbers of other digits, rules of Prolog's and predicates filled again as well."""
    library = library_of(program)
    with KnowledgeBase() as kb, pytest.MonkeyPatch.context() as patch:
        patch.setattr("hapax.engine.inference.maintenance._FEW", most)
        kb.add_facts(earlier)
        derive_all(kb, library, library.rules, session=prolog)
        kb.withdraw([record.id for record in earlier[1::3]], "wrong", "user")
        kb.add_facts(later[:5])
        derive_all(kb, library, library.rules, session=prolog)
        kb.restore([record.id for record in earlier[4::6]])
        kb.withdraw([record.id for record in (*earlier[2::3], *later[:2])], "wrong", "user")
        derive_all(kb, library, library.rules, session=prolog)

        assert_as_derived_anew(kb, library, prolog)


@pytest.fixture
def roads(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """A road through eight places, with a way round."""
    fresh_kb.add_facts([fact("road", *pair) for pair in ("ab", "bc", "cd", "de", "ef", "fg", "gh", "cx", "xd")])
    fresh_kb.add_facts([fact("closed", "h")])
    return fresh_kb


def test_a_recursion_follows_the_last_fact_of_a_closed_key(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Closed by its first argument, a predicate denies no pair of `a` once no fact about `a` is left."""
    text = "road(Place A, Place B) & not toll(Place A, Place B)"
    library = library_of(
        "closed toll/2 by 1\n"
        f"@name one\n@generic none\n{text} -> reaches(Place A, Place B)\n"
        f"@name more\n@generic none\nreaches(Place Z, Place A) & {text} -> reaches(Place Z, Place B)\n"
    )
    fresh_kb.add_facts([fact("road", *pair) for pair in ("ab", "bc", "cd")])
    tolls = [fact("toll", first, "x") for first in "abc"]
    fresh_kb.add_facts(tolls)
    derive_all(fresh_kb, library, library.rules)
    assert fresh_kb.derived_counts() == {"one": 3, "more": 3}

    fresh_kb.withdraw([tolls[1].id], "wrong", "user")
    derive_all(fresh_kb, library, library.rules)

    assert fresh_kb.derived_counts() == {"one": 2, "more": 0}
    assert_as_derived_anew(fresh_kb, library, prolog)


def test_an_atom_that_a_rule_file_states_outlives_what_it_followed_from(fresh_kb: KnowledgeBase) -> None:
    """A derived predicate keeps the facts that a file states of it, also those that rules concluded as well."""
    library = library_of(
        'fact reaches("a", "b")\n'
        "@name one\n@generic none\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
        "@name more\n@generic none\nreaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C)\n"
        "@name told\n@generic none\nreaches(Place A, Place B) -> is_told(Place A, Place B)\n"
    )
    roads = [fact("road", *pair) for pair in ("ab", "bc", "xy")]
    fresh_kb.add_facts(roads)
    derive_all(fresh_kb, library, library.rules, "sql")
    assert fresh_kb.derived_counts() == {"one": 3, "more": 1, "told": 4}

    fresh_kb.withdraw([roads[0].id], "wrong", "user")
    report = derive_all(fresh_kb, library, library.rules, "sql")

    assert not any(rule.anew for rule in report.rules)
    assert fresh_kb.derived_counts() == {"one": 2, "more": 1, "told": 4}
    assert_as_derived_anew(fresh_kb, library)


def test_a_fact_that_returns_under_the_number_of_a_lost_one_stays(
    fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """One fact is lost, another comes back under its number, and a third is contradicted: the second's statement stays."""
    library = library_of(
        "@name open\n@generic none\nroad(Place A, Place B) & not toll(Place B) -> open(Place A, Place B)"
    )
    roads = [fact("road", *pair) for pair in ("ef", "ab", "cd")]
    fresh_kb.add_facts(roads)
    derive_all(fresh_kb, library, library.rules)

    fresh_kb.withdraw([record.id for record in roads[1:]], "wrong", "user")
    fresh_kb.add_facts([fact("toll", "f")])
    fresh_kb.restore([roads[1].id])
    derive_all(fresh_kb, library, library.rules)

    assert fresh_kb.derived_counts() == {"open": 1}
    assert_as_derived_anew(fresh_kb, library, prolog)


def test_only_what_changes_is_written(roads: KnowledgeBase) -> None:
    """Statements that a change leaves alone keep their rows, and those of an atom with another derivation too."""
    library = library_of(ROUTES)
    derive_all(roads, library, [library.rule("onward")])
    before = set(roads.database.conn.execute("SELECT * FROM _instances_1"))
    roads.withdraw([fact("road", *"xd").id], "wrong", "user")

    derive_all(roads, library, [library.rule("onward")])

    after = set(roads.database.conn.execute("SELECT * FROM _instances_1"))
    assert after < before


def test_a_rule_that_was_not_derived_again_is_out_of_date(roads: KnowledgeBase) -> None:
    """A derivation of some rules leaves the others as those of earlier facts; the next one derives them anew."""
    library = library_of(ROUTES + "@name far\n@generic none\nroad(Place A, Place B) -> is_far_from(Place A, Place B).")
    far, onward = library.rule("far"), library.rule("onward")
    derive_all(roads, library, [onward, far])
    roads.add_facts([fact("road", "h", "i")])
    derive_all(roads, library, [onward])

    with pytest.raises(HapaxError, match="facts or rules have changed since rule far was derived"):
        next(read_statements(roads, library, far))
    derive_all(roads, library, [far, onward])
    assert len(list(read_statements(roads, library, far))) == 10


def test_statements_of_other_rules_never_name_atoms_by_old_numbers(roads: KnowledgeBase) -> None:
    """After other rules define a predicate, statements over its maintained atoms are out of date, not wrong."""
    library = library_of(ROUTES)
    other = library_of(ROUTES.replace("road(Place A, Place B) -> reaches", "road(Place B, Place A) -> reaches"))
    derive_all(roads, library, [library.rule("onward")])
    roads.withdraw([fact("road", *"ab").id], "wrong", "user")
    roads.add_facts([fact("road", *"ha")])
    derive_all(roads, library, [library.rule("onward")])
    derive_all(roads, other, [])

    with pytest.raises(HapaxError, match="Run `hapax derive` again"):
        next(read_statements(roads, library, library.rule("onward")))


def test_a_reason_is_given_for_statements_that_are_derived_anew(roads: KnowledgeBase, prolog: PrologSession) -> None:
    """Rules of Prolog's that a change affects say that they were derived anew; others keep their statements."""
    library = library_of(
        ROUTES + "@name half\n@generic none\nis_long(Place A, Number N) & M = N / 3 -> third(Place A, Number M)."
    )
    rules = [library.rule("onward"), library.rule("half")]
    roads.add_facts([fact("is_long", "a", 5)])
    derive_all(roads, library, rules, session=prolog)
    roads.add_facts([fact("is_long", "b", 7)])

    onward, half = derive_all(roads, library, rules, session=prolog).rules
    assert (half.anew, half.statements, onward.anew) == ("Prolog derives all statements of a rule", 2, "")
    onward, half = derive_all(roads, library, rules, session=prolog).rules
    assert (half.anew, half.statements, half.engine) == ("", 2, "prolog")


COUNTING = """
given starts(Thing, Number).
@name base
@generic none
starts(Thing A, Number N) -> counts(Thing A, Number N).
@name count
@generic none
counts(Thing A, Number N) & M = N + 1 -> counts(Thing A, Number M).
@name many
@generic none
counts(Thing A, Number N) & N > 9 -> has_many(Thing A, Number N).
"""
CLIQUE = """
given n(Thing, Thing).
@name all
@generic none
n(Thing A, Thing G) & n(Thing B, Thing G) & n(Thing C, Thing G) & n(Thing D, Thing G) -> four(Thing A, Thing B, Thing C, Thing D).
"""


@pytest.mark.parametrize(("rules", "subject"), [(COUNTING, "rule many"), (CLIQUE, "The derivation")])
def test_a_time_limit_ends_a_derivation(rules: str, subject: str, tmp_path: Path) -> None:
    """Recursion that counts for ever in Prolog, and a join too large in SQL, end with a message and store nothing."""
    path, file = tmp_path / "kb.db", tmp_path / "f.rules"
    file.write_text(rules, "utf-8")
    with KnowledgeBase(path) as kb:
        kb.add_facts([fact("starts", "a", 1), *(fact("n", f"v{number}", "g") for number in range(300))])

    ended = invoke("derive", str(file), "--db", str(path), "--seconds", "0.5")

    assert ended.exit_code == 1
    message = " ".join(ended.stderr.split())
    assert f"{subject} needs more than 0.5 seconds" in message
    assert "may count for ever" in message
    with KnowledgeBase(path) as kb:
        assert kb.derived_counts() == {}


class Clock:
    """A clock in place of the module `system`, which moves on by `step` seconds with each look at it."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


def test_a_derivation_in_sql_has_a_time_limit_by_default(
    fresh_kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit of its own a join too large in SQL ends when Prolog would, and the message says how to go on."""
    fresh_kb.add_facts([fact("n", f"v{number}", "g") for number in range(300)])
    monkeypatch.setattr(bulk_derivation, "system", Clock(10))

    with pytest.raises(LimitExceeded, match=rf"more than {BULK_LIMITS.seconds:g} seconds.*argument `seconds`") as ended:
        hapax.derive(library_of(CLIQUE), fresh_kb, engine="sql")

    assert ended.value.limit == "seconds"
    assert fresh_kb.derived_counts() == {}


def test_a_fact_that_takes_a_used_number_is_read(roads: KnowledgeBase) -> None:
    """A new fact may get a number below the last one read, one that was given up before; it is read all the same."""
    library = library_of(ROUTES)
    roads.add_facts([fact("closed", "p"), fact("closed", "q")])
    roads.withdraw([fact("closed", "p").id], "wrong", "user")
    derive_all(roads, library, [library.rule("onward")])
    roads.withdraw([fact("closed", "q").id], "wrong", "user")
    roads.add_facts([fact("road", "h", "i")])
    derive_all(roads, library, [library.rule("onward")])

    assert_as_derived_anew(roads, library)


@pytest.mark.parametrize("huge", [2**40, 2**61, Decimal("1e-20")])
def test_a_rule_returns_to_sql_once_the_number_too_large_for_it_is_gone(huge: Value, prolog: PrologSession) -> None:
    """A fact whose number SQL cannot calculate with leaves a rule with Prolog only while it is there."""
    library = library_of(
        "given size(Thing, Number).\n@name square\n@generic none\n"
        "size(Thing X, Number N) & Number M = N * N & M > 3 -> square_of(Thing X, Number M)."
    )
    with KnowledgeBase() as kb:
        kb.add_facts([fact("size", "a", 1), fact("size", "b", 2), fact("size", "huge", huge)])
        engines = [derive_all(kb, library, library.rules, session=prolog).rules[0].engine]
        (gone,) = (record for record in kb.facts() if record.arguments[0] == "huge")
        kb.withdraw([gone.id], "wrong", "user")
        engines.append(derive_all(kb, library, library.rules, session=prolog).rules[0].engine)

        assert engines == ["prolog", "sql"]
        assert_as_derived_anew(kb, library, prolog)


def test_large_numbers_are_decided_alike_with_and_without_maintenance(
    fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """Numbers of an upper layer do not keep SQL from filling a lower one again, whose product just fits."""
    library = library_of(
        "given first(Object, Object).\n"
        "@name product\n@generic none\n"
        "first(Thing X, Thing X) & Number K = X * 1000000000 & K < 3 -> deduced(Thing X, Thing X).\n"
        "@name quarter\n@generic none\n"
        "first(Thing Y, Thing Y) & Number K = Y + 2 & Number L = K / 4 & L < 0.5 -> reached(Thing Y, Thing Y).\n"
        "@name both\n@generic none\n"
        "deduced(Thing X, Thing X) & reached(Thing Y, Thing Y) -> told(Thing X, Thing Y).\n"
    )
    fresh_kb.add_facts([fact("first", "a", "a")])
    derive_all(fresh_kb, library, library.rules, session=prolog)
    fresh_kb.add_facts([fact("first", "a", 2**30)])
    followed = derive_all(fresh_kb, library, library.rules, session=prolog)
    with KnowledgeBase() as kb:
        kb.add_facts(fresh_kb.facts())
        anew = derive_all(kb, library, library.rules, session=prolog)

    assert followed.atoms == anew.atoms == {"deduced/2": 0, "reached/2": 0}
    assert_as_derived_anew(fresh_kb, library, prolog)


PRICES = """
given price(T, Number): "[1] costs [2]" / "[1] does not cost [2]" / "does [1] cost [2]?"
given twice(T, Number): "two of [1] cost [2]" / "two of [1] do not cost [2]" / "do two of [1] cost [2]?"
given dear(T, Number): "[1] is dear at [2]" / "[1] is not dear at [2]" / "is [1] dear at [2]?"
@name twice
@generic none
price(T X, Number P) & Q = P * 1.5 -> twice(T X, Number Q)
@name dear
@generic none
twice(T X, Number Q) & Q > 2 & R = Q * 1.1 -> dear(T X, Number R)
"""


def test_a_number_that_a_maintained_rule_calculates_is_compared_by_the_next(fresh_kb: KnowledgeBase) -> None:
    """A decimal that no fact has is known to the rules above it at once, as in a derivation from the beginning."""
    library = library_of(PRICES)

    def price(name: str, value: str) -> FactRecord:
        return FactRecord("price", (name, Decimal(value)), ("T", "Number"), Source.GIVEN)

    def statements(kb: KnowledgeBase) -> list[str]:
        return sorted(record.text for rule in library.rules for record in read_statements(kb, library, rule))

    fresh_kb.add_facts([price("a", "1.5"), *(price(f"x{number}", "0.5") for number in range(40))])
    derive_all(fresh_kb, library, library.rules, "sql")
    fresh_kb.add_facts([price("b", "2.7"), price("c", "1.25")])
    derive_all(fresh_kb, library, library.rules, "sql")
    with KnowledgeBase() as anew:
        anew.add_facts(fresh_kb.facts())
        derive_all(anew, library, library.rules, "sql")

        assert statements(fresh_kb) == statements(anew)
    assert sum("is dear" in text for text in statements(fresh_kb)) == 2


def test_what_rests_on_two_atoms_that_fall_together_falls_with_them(fresh_kb: KnowledgeBase) -> None:
    """Where both premises of a recursive rule are lost in one round, its conclusion is looked for among the atoms before."""
    library = library_of(
        "@name step\n@generic none\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
        "@name joined\n@generic none\nreaches(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)\n"
    )
    fresh_kb.add_facts([fact("road", *pair) for pair in ("ab", "bc", "xy", "yz")])
    derive_all(fresh_kb, library, library.rules, "sql")
    gone = [record.id for record in fresh_kb.facts() if record.arguments[1] in ("b", "c")]
    fresh_kb.withdraw(gone, "closed", "user")
    derive_all(fresh_kb, library, library.rules, "sql")
    found = {record.substitution for rule in library.rules for record in read_statements(fresh_kb, library, rule)}

    assert sorted(found) == [(("A", "x"), ("B", "y")), (("A", "x"), ("B", "y"), ("C", "z")), (("A", "y"), ("B", "z"))]
    assert Relations(fresh_kb).atom_count("reaches/2") == 3
