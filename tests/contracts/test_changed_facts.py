"""Derived statements follow the facts: after each change they are those of a fresh derivation, or they are not read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run

import hapax

ROUTES = """
given road(Place, Place)
given closed(Place)
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
reaches(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@name onward
@generic none
road(Place A, Place B) & reaches(Place B, Place C) & C \\= A & not closed(Place C) -> serves(Place A, Place C)
"""
PRICES = """
given price(Thing, Number)
@name twice
@generic none
price(Thing X, Number P) & Number Q = P * 1.5 -> twice(Thing X, Number Q)
@name dear
@generic none
twice(Thing X, Number Q) & Q > 2 & Number R = Q * 1.1 -> dear(Thing X, Number R)
"""
SQUARES = """
given size(Thing, Number)
@name square
@generic none
size(Thing X, Number N) & Number M = N * N & M > 3 -> square_of(Thing X, Number M)
"""


@pytest.fixture
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as opened:
        yield opened


def give(kb: hapax.KnowledgeBase, rules: hapax.Library, predicate: str, *rows: Any) -> None:
    hapax.add_facts(kb, predicate, [tuple(row) for row in rows], rules)


def take(kb: hapax.KnowledgeBase, rules: hapax.Library, *atoms: str) -> None:
    hapax.retract(atoms, rules, kb, reason="wrong")


def texts(rules: hapax.Library, kb: hapax.KnowledgeBase) -> dict[str, list[str]]:
    """The statements of each rule after a derivation."""
    found: dict[str, list[str]] = {rule.name: [] for rule in rules.rules}
    for statement in hapax.derive(rules, kb, only=list(found)).statements:
        found[statement.rule].append(str(statement.proof.to_json()) + statement.text)
    return {name: sorted(lines) for name, lines in found.items()}


def assert_as_anew(rules: hapax.Library, kb: hapax.KnowledgeBase) -> dict[str, int]:
    """Fail unless the statements and proofs are those of a knowledge base that never had other facts."""
    followed = texts(rules, kb)
    with hapax.KnowledgeBase() as fresh:
        fresh.add_facts(kb.facts())
        assert followed == texts(rules, fresh)
    return {name: len(lines) for name, lines in followed.items()}


def test_recursion_follows_the_last_fact_of_a_closed_key(kb: hapax.KnowledgeBase) -> None:
    """Closed by its first argument, a predicate denies no pair of `b` once no fact about `b` is left."""
    free = "road(Place A, Place B) & not toll(Place A, Place B)"
    rules = hapax.parse_rules(
        "given road(Place, Place)\noracle toll(Place, Place)\nclosed toll/2 by 1\n"
        f"@name one\n@generic none\n{free} -> reaches(Place A, Place B)\n"
        f"@name more\n@generic none\nreaches(Place Z, Place A) & {free} -> reaches(Place Z, Place B)\n"
    )
    give(kb, rules, "road", "ab", "bc", "cd")
    give(kb, rules, "toll", "ax", "bx", "cx")
    assert assert_as_anew(rules, kb) == {"one": 3, "more": 3}

    take(kb, rules, "toll(b, x)")
    assert assert_as_anew(rules, kb) == {"one": 2, "more": 0}


def test_an_atom_that_a_rule_file_states_outlives_what_it_followed_from(kb: hapax.KnowledgeBase) -> None:
    """A derived predicate keeps the facts that a file states of it, also those that rules concluded as well."""
    rules = hapax.parse_rules(
        'given road(Place, Place)\nfact reaches("a", "b")\n'
        "@name one\n@generic none\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
        "@name more\n@generic none\nreaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C)\n"
    )
    give(kb, rules, "road", "ab", "bc", "xy")
    assert assert_as_anew(rules, kb) == {"one": 3, "more": 1}

    take(kb, rules, "road(a, b)")
    assert assert_as_anew(rules, kb) == {"one": 2, "more": 1}


def test_what_rests_on_two_atoms_that_fall_together_falls_with_them(kb: hapax.KnowledgeBase) -> None:
    """Both premises of a recursive rule are lost at once, and so is its conclusion; the chain beside it stays."""
    rules = hapax.parse_rules(ROUTES)
    give(kb, rules, "road", "ab", "bc", "xy", "yz")
    assert_as_anew(rules, kb)
    take(kb, rules, "road(a, b)", "road(b, c)")

    assert assert_as_anew(rules, kb) == {"step": 2, "further": 1, "onward": 1}


def test_a_fact_that_returns_while_another_is_lost_keeps_its_statement(kb: hapax.KnowledgeBase) -> None:
    """One fact is lost, another comes back, and a third is contradicted, between two derivations."""
    rules = hapax.parse_rules(
        "given road(Place, Place)\ngiven toll(Place)\n"
        "@name open\n@generic none\nroad(Place A, Place B) & not toll(Place B) -> open(Place A, Place B)"
    )
    give(kb, rules, "road", "ef", "ab", "cd")
    texts(rules, kb)
    take(kb, rules, "road(a, b)", "road(c, d)")
    give(kb, rules, "toll", "f")
    hapax.restore("road(a, b)", rules, kb)

    assert assert_as_anew(rules, kb) == {"open": 1}


def test_of_equal_numbers_the_proof_names_one_that_is_there(kb: hapax.KnowledgeBase) -> None:
    """2 and 2.0 give one statement; when the fact in its proof is withdrawn, the other takes its place."""
    rules = hapax.parse_rules(
        "given a(Thing, Number)\ngiven b(Number, Thing)\n"
        "@name join\n@generic none\na(Thing X, Number Y) & b(Number Y, Thing Z) -> c(Thing X, Thing Z)"
    )
    give(kb, rules, "a", ("x", 2), ("x", Decimal("2.0")))
    give(kb, rules, "b", (2, "z"))
    while facts := [fact for fact in kb.facts() if fact.predicate == "a"]:
        (statement,) = hapax.derive(rules, kb).statements
        named = set(statement.proof.fact_ids()) & {fact.id for fact in facts}
        assert len(named) == 1
        take(kb, rules, *named)
    assert not hapax.derive(rules, kb).statements


@pytest.mark.parametrize("huge", [2**40, 2**61, Decimal("1e-20")])
def test_a_number_too_large_for_a_column_comes_and_goes(huge: Any, kb: hapax.KnowledgeBase) -> None:
    """While it is there its square is exact, and afterwards nothing of it is left."""
    rules = hapax.parse_rules(SQUARES)
    give(kb, rules, "size", ("a", 1), ("b", 2), ("huge", huge))
    before = assert_as_anew(rules, kb)["square"]
    take(kb, rules, *(fact.id for fact in kb.facts() if fact.arguments[0] == "huge"))

    assert before == (2 if isinstance(huge, int) else 1)
    assert assert_as_anew(rules, kb)["square"] == 1


def test_a_number_that_a_rule_calculates_anew_is_compared_by_the_next(kb: hapax.KnowledgeBase) -> None:
    """A decimal that no fact has is known to the rules above it at once."""
    rules = hapax.parse_rules(PRICES)
    give(kb, rules, "price", ("a", Decimal("1.5")), *((f"x{number}", Decimal("0.5")) for number in range(40)))
    assert_as_anew(rules, kb)
    give(kb, rules, "price", ("b", Decimal("2.7")), ("c", Decimal("1.25")))

    assert assert_as_anew(rules, kb)["dear"] == 2


def test_a_rule_derived_alone_leaves_the_statements_of_others(kb: hapax.KnowledgeBase) -> None:
    """And after a change those of the others are out of date until they are derived as well."""
    rules = hapax.parse_rules(
        ROUTES + "@name far\n@generic none\nroad(Place A, Place B) -> is_far_from(Place A, Place B)"
    )
    give(kb, rules, "road", "ab", "bc", "ca")
    onward = hapax.derive(rules, kb, only="onward")
    before = len(list(onward.read()))
    hapax.derive(rules, kb, only="far")
    assert len(list(onward.read())) == before

    give(kb, rules, "road", "cd")
    hapax.derive(rules, kb, only="far")
    with pytest.raises(hapax.HapaxError, match=r"onward.*hapax derive"):
        list(onward.read())


def test_statements_belong_to_the_rules_that_derived_them(kb: hapax.KnowledgeBase) -> None:
    """After other rules define a predicate, statements over it are out of date, not wrong."""
    rules = hapax.parse_rules(ROUTES)
    other = hapax.parse_rules(ROUTES.replace("road(Place A, Place B) -> reaches", "road(Place B, Place A) -> reaches"))
    give(kb, rules, "road", "ab", "bc", "cd")
    first = hapax.derive(rules, kb, only="onward")
    hapax.derive(other, kb, only="onward")

    with pytest.raises(hapax.HapaxError, match="hapax derive"):
        list(first.read())
    assert assert_as_anew(rules, kb)["onward"] == 3


# --- other programs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def routes(tmp_path: Path) -> Path:
    """A file of rules beside a knowledge base with a chain of nine places."""
    (tmp_path / "routes.rules").write_text(ROUTES, "utf-8")
    rules = hapax.parse_rules(ROUTES)
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        give(kb, rules, "road", *((f"p{n}", f"p{n + 1}") for n in range(8)))
    run("derive", tmp_path / "routes.rules", "--db", tmp_path / "kb.db")
    return tmp_path / "kb.db"


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM facts WHERE rowid IN (3, 7)",
        "UPDATE facts SET rowid = 100 - rowid",
        "VACUUM",
    ],
)
def test_what_another_program_changes_is_seen(change: str, routes: Path) -> None:
    """Rows that go, and rows with other numbers, such as after VACUUM: goals and statements are those of the facts."""
    with closing(sqlite3.connect(routes, isolation_level=None)) as connection:
        connection.execute(change)
    rules = hapax.parse_rules(ROUTES)
    with hapax.KnowledgeBase(routes) as kb:
        roads = len(kb.facts())
        assert len(hapax.query("road(X, Y)", rules, kb)) == roads == (6 if "DELETE" in change else 8)
        assert assert_as_anew(rules, kb)["step"] == roads


@pytest.mark.parametrize("damage", ['["x", "y', '["x",null]', '["x",["y"]]', '{"x": "y"}', "7", '["x","y"],["z"'])
def test_a_damaged_fact_is_refused(damage: str, routes: Path) -> None:
    """A cell that Hapax did not write is named by goals and derivations, and nothing is concluded from it."""
    with closing(sqlite3.connect(routes)) as connection:
        connection.execute("UPDATE facts SET arguments = ? WHERE rowid = 2", (damage,))
        connection.commit()
    rules = routes.with_name("routes.rules")
    for command in (("derive", rules), ("query", "road(X, Y)", "--rules", rules)):
        ended = invoke(*command, "--db", routes)
        assert ended.exit_code == 1
        assert damage[:8] in ended.stderr


def test_a_large_table_is_asked_as_it_is_now(tmp_path: Path) -> None:
    """Goals with a known argument find what came and went since the last goal, at each argument, numbers by value."""
    rules = hapax.parse_rules("given road(Place, Place)\ngiven trip(Place, Place, Place, Place, Number)\n")
    path = tmp_path / "large.db"
    with hapax.KnowledgeBase(path) as kb:
        give(kb, rules, "road", *((f"p{n}", f"p{n + 1}") for n in range(3000)))
        give(kb, rules, "trip", *(("a", "b", "c", f"d{n}", n) for n in range(2500)))
        assert hapax.query("road(p5, Y)", rules, kb).rows == [("p6",)]
        give(kb, rules, "road", ("p5", "x"))
        take(kb, rules, "road(p5, p6)")
        give(kb, rules, "trip", ("a", "b", "c", "e", Decimal("9.0")))
        assert hapax.query("road(p5, Y)", rules, kb).rows == [("x",)]
        assert {row[0] for row in hapax.query("trip(A, B, C, D, 9), D \\= A", rules, kb).rows} == {"a"}
        assert {row[3] for row in hapax.query("trip(A, B, C, D, 9)", rules, kb).rows} == {"d9", "e"}
        kb.connection.execute("VACUUM")
        assert hapax.query("road(X, x)", rules, kb).rows == [("p5",)]
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        assert hapax.query("road(X, p9)", rules, kb).rows == [("p8",)]


def test_a_new_fact_is_compared_with_a_large_table(tmp_path: Path) -> None:
    """A model's road that breaks a declaration with one of 3,000 is no answer and is not stored; another one is."""
    rules = hapax.parse_rules(
        'oracle road(Place, Place): "[1] leads to [2]" / "[1] does not lead to [2]" / "does [1] lead to [2]?"\n'
        "given far(Place, Place)\nnever road(Place A, Place B) & road(Place B, Place C) & far(Place A, Place C)\n"
    )
    script = {"generate": {"'x leads to [B]'": ["p7", "p9"]}, "defaults": {"critic": 0.95, "generate": []}}
    (tmp_path / "script.json").write_text(json.dumps(script), "utf-8")
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        give(kb, rules, "road", *((f"p{n}", f"p{n + 1}") for n in range(3000)))
        give(kb, rules, "far", ("x", "p8"))
        models = hapax.open_models(f"scripted:{tmp_path / 'script.json'}", library=rules)

        assert hapax.query("road(x, Y)", rules, kb, models=models).rows == [("p9",)]
        assert hapax.query("road(x, Y)", rules, kb).rows == [("p9",)]
        assert "far" in str(hapax.why_not("road(x, p7)", rules, kb))


def test_reachability_in_a_large_table_is_found_and_explained(tmp_path: Path) -> None:
    """From a place near the end of a chain of 3,000, over its circle, with the reason where a negation fails."""
    (tmp_path / "r.rules").write_text(ROUTES.replace("not closed(Place C)", "not reaches(Place C, Place A)"), "utf-8")
    rules = hapax.load_rules(tmp_path / "r.rules")
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        give(kb, rules, "road", *((f"p{n}", f"p{n + 1}") for n in range(3000)), ("p3000", "p2990"))
        found = hapax.query("reaches(p2950, Y)", rules, kb)

        assert {row[0] for row in found.rows} == {f"p{n}" for n in range(2951, 3001)}
        assert hapax.query("serves(p2985, p2999)", rules, kb).holds
        assert not hapax.query("serves(p2995, p2999)", rules, kb).holds
        assert "reaches" in str(hapax.why_not("serves(p2995, p2997)", rules, kb))


def test_a_derivation_that_fails_leaves_the_last_one(routes: Path) -> None:
    """Ended by its time limit: the statements before are there, and are listed."""
    before = run("export", "--statements", "--db", routes).stdout
    endless = routes.with_name("endless.rules")
    endless.write_text(
        'given road(Place, Place)\ngiven starts(Place, Number)\nfact starts("a", 1)\n'
        "@generic none\nstarts(Place A, Number N) -> counts(Place A, Number N)\n"
        "@generic none\ncounts(Place A, Number N) & Number M = N + 1 -> counts(Place A, Number M)\n"
        "@name many\n@generic none\ncounts(Place A, Number N) & N > 9 -> has_many(Place A, Number N)\n",
        "utf-8",
    )
    ended = invoke("derive", endless, "--db", routes, "--seconds", "0.5")

    assert ended.exit_code == 1
    assert "rule many" in " ".join(ended.stderr.split())
    assert before
    assert run("export", "--statements", "--db", routes).stdout == before
