"""Derived statements follow the facts: after each change they are those of a fresh derivation, or they are not read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run

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


def test_statements_belong_to_the_rules_that_derived_them(kb: hapax.KnowledgeBase) -> None:
    """A rule derived alone leaves those of others; after facts or rules have changed these are out of date, not wrong."""
    text = ROUTES + "@name far\n@generic none\nroad(Place A, Place B) -> is_far_from(Place A, Place B)"
    rules = hapax.parse_rules(text)
    other = hapax.parse_rules(text.replace("road(Place A, Place B) -> reaches", "road(Place B, Place A) -> reaches"))
    give(kb, rules, "road", "ab", "bc", "ca")
    onward = hapax.derive(rules, kb, only="onward")
    before = len(list(onward.read()))
    hapax.derive(rules, kb, only="far")
    assert len(list(onward.read())) == before

    give(kb, rules, "road", "cd")
    hapax.derive(rules, kb, only="far")
    with pytest.raises(hapax.HapaxError, match=r"onward.*hapax\.derive"):
        list(onward.read())
    first = hapax.derive(rules, kb, only="onward")
    hapax.derive(other, kb, only="onward")
    with pytest.raises(hapax.HapaxError, match=r"hapax\.derive"):
        list(first.read())
    assert_as_anew(rules, kb)


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


def test_other_programs_change_no_facts(routes: Path) -> None:
    """What they read as `facts` is a view, which SQLite does not change; a file that was copied or packed answers as before."""
    with closing(sqlite3.connect(routes, isolation_level=None)) as connection:
        for sql in ("DELETE FROM facts", "UPDATE facts SET predicate = 'owns'"):
            with pytest.raises(sqlite3.OperationalError, match="view"):
                connection.execute(sql)
        connection.execute("VACUUM")
    rules = hapax.parse_rules(ROUTES)
    with hapax.KnowledgeBase(routes) as kb:
        roads = len(kb.facts())
        assert len(hapax.query("road(X, Y)", rules, kb)) == roads == 8
        assert assert_as_anew(rules, kb)["step"] == roads


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


def test_an_open_base_answers_by_what_another_connection_left(tmp_path: Path) -> None:
    """Goals, also of a first predicate's facts and of stored conclusions, follow another connection, and an undone write not."""
    rules, path = hapax.parse_rules(ROUTES), tmp_path / "kb.db"
    with hapax.KnowledgeBase(path) as reader, hapax.KnowledgeBase(path) as writer:
        assert not hapax.query("road(a, b)", rules, reader).holds
        with suppress(ZeroDivisionError), writer.transaction():
            give(writer, rules, "road", ("a", "b"))
            assert hapax.query("serves(X, Y) ; road(X, Y)", rules, writer).rows == [("a", "b")]
            _ = 1 / 0
        for kb in (reader, writer):
            assert not hapax.query("road(X, Y)", rules, kb).holds
        give(writer, rules, "closed", ("z",))
        give(writer, rules, "road", ("a", "b"), ("b", "c"))
        for kb in (reader, writer):
            assert hapax.query("reaches(a, X)", rules, kb).rows == [("b",), ("c",)]
        hapax.derive(rules, writer)
        assert hapax.query("serves(a, X)", rules, reader).rows == [("c",)]
        give(writer, rules, "closed", ("c",))
        assert not hapax.query("serves(a, X)", rules, reader).holds
        take(writer, rules, "closed(c)")
        assert hapax.query("serves(a, X)", rules, reader).rows == [("c",)]
