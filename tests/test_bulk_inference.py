"""Bulk inference: rules as SQL over the knowledge base give what Prolog gives, proofs included, and never stale answers."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest
from cli_fixture import invoke
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.inference.bulk_derivation import RUN_ID, Engine, derive_all, read_statements
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.statement_lines import statement_lines
from hapax.engine.inference.theory import Theory, run_query
from hapax.evaluation.dataset.derived import derived_line, write_tables
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Substitution, Value
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord
from hapax.kb.relations import Relations
from hapax.kb.store import KnowledgeBase

DECLARED = """
given first(Object, Object).
given second(Object, Object).
given marked(Object).
given deduced(Object, Object).
given reached(Object, Object).
computed is_below(Number A, Number B) := A < B: "[1] is below [2]" / "[1] is not below [2]" / "is [1] below [2]?".
computed is_after(Number A, Number B) := A = B + 1: "[1] is after [2]" / "[1] is not after [2]" / "is [1] after [2]?".
"""
ROUTES = """
@generic none
@name onward
road(Place A, Place B) & reaches(Place B, Place C) & C \\= A & not closed(Place C) -> serves(Place A, Place C).
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B).
@name further
@generic none
reaches(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C).
"""
JOIN = "@name join\n@generic none\na(Thing X, Thing Y) & b(Thing Y, Thing Z) -> c(Thing X, Thing Z)."
VALUES: Sequence[Value] = (
    "a", "b", "2", "", "caf\u00e9", "cafe\u0301", "it's \\ \"here\"\n\t", "a\0b",
    2, 3, 7, -1, 0, Decimal("2.0"), Decimal("2.50"), 2**61,
)  # fmt: skip
DECIMALS: Sequence[Value] = (
    "a", "0.1", 2, 3, -1, 0, Decimal("0.1"), Decimal("0.2"), Decimal("0.30"), Decimal("2.50"), Decimal("-0.05"), Decimal("0.125"),
)  # fmt: skip
WHOLE: Sequence[Value] = ("a", "b", "2", 2, 3, 7, -1, 0, 2**30)


def library_of(text: str) -> Library:
    return parse_library([("f.rules", text)])


def fact(predicate: str, *values: Value, source: Source = Source.MODEL) -> FactRecord:
    return FactRecord(predicate, values, tuple("Thing" for _ in values), source, 0.9)


def in_content_order(found: Sequence[StatementRecord]) -> list[str]:
    return sorted(map(repr, found))


def by_prolog(prolog: PrologSession, kb: KnowledgeBase, library: Library, rule: str) -> list[str]:
    """The reference: one empty substitution, over the facts that the knowledge base holds."""
    wanted = library.rule(rule)
    facts = Theory(library, kb).relevant_to(wanted).facts()
    kept = KeptSubstitutions(wanted, {Distribution.HEAD: [Substitution()]}, RUN_ID)
    return in_content_order(derive_statements(prolog, library, facts, kept))


def stored(kb: KnowledgeBase, library: Library, rule: str, prolog: PrologSession | None = None) -> list[str]:
    return in_content_order(list(read_statements(kb, library, library.rule(rule), prolog)))


# --- random programs --------------------------------------------------------------------------------------------------

THINGS, NUMBERS = ("X", "Y", "Z"), ("K", "M", "N")
TYPED = {**{name: f"Thing {name}" for name in THINGS}, **{name: f"Number {name}" for name in NUMBERS}}
constants = st.sampled_from(['"a"', '"2"', "2", "3", '"caf\u00e9"'])


@st.composite
def atoms(draw: st.DrawFn, predicates: Sequence[str]) -> tuple[str, set[str]]:
    """A positive literal and its variables."""
    predicate = draw(st.sampled_from(predicates))
    terms = []
    for _ in range(1 if predicate == "marked" else 2):
        terms.append(
            draw(
                st.sampled_from((*THINGS, *NUMBERS)) | constants
                if draw(st.integers(0, 2)) == 0
                else st.sampled_from(THINGS)
            )
        )
    written = ", ".join(TYPED.get(term, term) for term in terms)
    return f"{predicate}({written})", {term for term in terms if term in TYPED}


@st.composite
def conditions(draw: st.DrawFn, bound: Sequence[str], negatable: Sequence[str]) -> str:
    """A premise item that only tests."""
    first, second = draw(st.sampled_from(bound)), draw(st.sampled_from(bound))
    kind = draw(st.sampled_from(("order", "equal", "sum", "not", "computed", "not computed", "quotient", "square")))
    if kind == "not":
        predicate = draw(st.sampled_from(negatable))
        arguments = TYPED[first] if predicate == "marked" else f"{TYPED[first]}, {TYPED[second]}"
        return f"not {predicate}({arguments})"
    if kind.endswith("computed"):
        name = draw(st.sampled_from(("is_below", "is_after")))
        return f"{'not ' if kind != 'computed' else ''}{name}({TYPED[first]}, {TYPED[second]})"
    operator = draw(st.sampled_from(("<", "=<", ">", ">=", "=", "\\=")))
    right = draw(st.sampled_from(("2", "2.5", "-1", second)))
    if kind == "equal":
        return f"{first} {draw(st.sampled_from(('=', chr(92) + '=')))} {second}"
    if kind == "sum":
        return f"{first} + {right} * {second} {operator} {second} - 1"
    if kind == "square":
        return f"{first} * {first} + 1 {operator} {second} * {second}"
    return f"{first} / 2 {operator} {right}" if kind == "quotient" else f"{first} {operator} {right}"


@st.composite
def rules(draw: st.DrawFn, name: str, head: str, below: Sequence[str], negatable: Sequence[str]) -> str:
    drawn = draw(st.lists(atoms(below), min_size=1, max_size=3))
    bound = sorted(set().union(*(variables for _, variables in drawn)))
    items = [text for text, _ in drawn]
    if bound:
        items += draw(st.lists(conditions(bound, negatable), max_size=1 if name != "told" else 2))
        if name != "r2" and "K" not in bound and draw(st.booleans()):
            factor = draw(st.sampled_from(("2", "3", "1000000000")))
            items.append(f"Number K = {draw(st.sampled_from(bound))} {draw(st.sampled_from('+-*/'))} {factor}")
            if draw(st.booleans()):
                items.append(f"K {draw(st.sampled_from(('<', '>=', '=')))} {draw(st.sampled_from(('3', *bound)))}")
            if draw(st.booleans()):
                chained = draw(st.sampled_from(("K", "K / 4", f"K - {bound[0]}")))
                items += [f"Number L = {chained}", f"L {draw(st.sampled_from(('<', '>=', chr(92) + '=')))} 0.5"]
            is_concluded = draw(st.booleans())
            bound += ["K"] if is_concluded else []
    items = draw(st.permutations(items))
    terms = (
        [TYPED["K"]] * 2
        if "K" in bound
        else [TYPED[draw(st.sampled_from(bound))] if bound else draw(constants) for _ in range(2)]
    )
    person = head == "told" and draw(st.booleans())
    hypotheses = [f"likes(Person P, {TYPED[bound[0]]})"] if person and bound else []
    conclusion = f"told(Person P, {terms[1]})" if hypotheses else f"{head}({', '.join(terms)})"
    generic = "@generic P" if hypotheses else "@generic none"
    return f"@name {name}\n{generic}\n{' & '.join((*hypotheses, *items))} -> {conclusion}."


BASE = ("first", "second", "marked")


@st.composite
def aggregates(draw: st.DrawFn) -> str:
    """An aggregate over facts or deduced atoms, with a group or without."""
    function = draw(st.sampled_from(("count", "count", "sum", "min", "max", "avg")))
    counted = draw(st.sampled_from(("Number N", "Number N, Thing Y")))
    items = [
        draw(st.sampled_from(("first(Thing X, Number N)", "second(Number N, Thing X)", "deduced(Thing X, Number N)")))
    ]
    items += ["second(Thing X, Thing Y)"] if "Y" in counted or draw(st.booleans()) else []
    items += draw(
        st.lists(
            st.sampled_from(("not marked(Thing X)", "N > 1", "N \\= 2.5", "not deduced(Number N, Thing X)")), max_size=2
        )
    )
    premise = " & ".join(draw(st.permutations(items)))
    group = draw(st.sampled_from(("Thing X", "Thing X", "Number G")))
    premise += " & G = 2" if group == "Number G" else ""
    return f"aggregate tallied({group}, Number K) := K = {function}({counted}: {premise})."


@st.composite
def programs(draw: st.DrawFn) -> str:
    parts = [
        draw(aggregates()),
        draw(rules("d1", "deduced", BASE, BASE)),
        draw(rules("r1", "reached", (*BASE, "deduced", "tallied"), (*BASE, "deduced", "tallied"))),
        draw(rules("r2", "reached", (*BASE, "deduced", "reached", "reached"), (*BASE, "deduced"))),
        draw(rules("told", "told", (*BASE, "deduced", "reached", "tallied"), (*BASE, "deduced", "reached"))),
    ]
    if draw(st.booleans()):
        parts.append('fact first("a", 2).')
    return DECLARED + "\n".join(draw(st.permutations(parts)))


@st.composite
def facts(draw: st.DrawFn) -> list[FactRecord]:
    pool = draw(st.sampled_from((VALUES, WHOLE, DECIMALS)))
    values = st.sampled_from(draw(st.lists(st.sampled_from(pool), min_size=2, max_size=4)))
    pairs = st.tuples(st.sampled_from(("first", "second", "first", "second", "reached")), values, values)
    found = [fact(*pair) for pair in draw(st.lists(pairs, min_size=6, max_size=16))]
    return found + [fact("marked", value, source=Source.GIVEN) for value in draw(st.lists(values, max_size=4))]


@settings(max_examples=cases(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), earlier=facts(), later=facts())
def test_sql_gives_what_prolog_gives(
    program: str, earlier: list[FactRecord], later: list[FactRecord], prolog: PrologSession
) -> None:
    """Random joins, tests, negation, aggregates, chains and recursion: equal statements and proofs, also after facts changed."""
    library = library_of(program)
    with KnowledgeBase() as kb:
        for change in (earlier, later):
            kb.add_facts(change)
            kb.withdraw([earlier[0].id], "wrong", "user")
            derive_all(kb, library, [library.rule("told"), library.rule("r2")], session=prolog)
            for rule in ("told", "r2"):
                assert stored(kb, library, rule, prolog) == by_prolog(prolog, kb, library, rule)


EXPRESSIONS = (
    "N + K",
    "N - K",
    "N * K",
    "N / 4",
    "N / 0.3 * 3",
    "N * 0.1 + K",
    "K",
    "N - N / 8",
    "(N + K) / 2 - 0.25",
    "N / -4",
    "1 - K / -0.5",
    "N * -0.1",
    "0.3",
)


@settings(max_examples=cases(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    expressions=st.tuples(*[st.sampled_from(EXPRESSIONS)] * 3),
    operator=st.sampled_from(("<", "=<", ">", ">=", "=", "\\=")),
    cells=st.lists(st.tuples(*[st.sampled_from(DECIMALS)] * 2), min_size=3, max_size=8),
)
def test_decimals_are_exact_in_sql(
    expressions: tuple[str, str, str], operator: str, cells: list[tuple[Value, Value]], prolog: PrologSession
) -> None:
    """Sums, products and quotients of decimals, as values and in comparisons, are to the digit those of Prolog."""
    made, left, right = expressions
    library = library_of(
        f"given size(Number, Number).\ngiven made(Number, Number).\n@name made\n@generic none\n"
        f"size(Number N, Number K) & made(Number N, Number M) & M = {made} -> again(Number M).\n"
        f"@name sum\n@generic none\nsize(Number N, Number K) & size(Number K, Number L) & {left} {operator} {right} "
        f"& not below(Number N, Number L) -> found(Number N, Number L).\n@name new\n@generic none\n"
        f"size(Number N, Number K) & plus(Number N, Number K, Number M) -> sums(Number N, Number M).\n"
        f"@name new2\n@generic none\nsize(Number N, Number K) & after(Number N, Number M) & size(Number M, Number L) -> sums(Number N, Number L).\n"
        'computed below(Number A, Number B) := A * 2 < B: "[1] is below [2]" / "no" / "?".\n'
        f'computed plus(Number N, Number K, Number M) := M = {made}: "[3] is made" / "no" / "?".\n'
        'computed after(Number A, Number B) := B = A + 0.1: "[2] is after [1]" / "no" / "?".\n'
        "@name chain\n@generic none\nsize(Number N, Number K) & plus(Number N, Number K, Number M) -> held(Number M, Number N).\n"
        "@name use\n@generic none\nheld(Number M, Number N) & held(Number N, Number K) & M + N > K -> told(Number M)."
    )
    with KnowledgeBase() as kb:
        kb.add_facts([fact("size", *pair) for pair in cells] + [fact("made", *pair) for pair in cells[::-1]])
        rules = [library.rule(name) for name in ("made", "sum", "new2", "chain", "use")]
        derived = {rule.rule: rule.engine for rule in derive_all(kb, library, rules, session=prolog).rules}
        assert derived["new2"] == "sql"
        for rule in rules:
            assert stored(kb, library, rule.name, prolog) == by_prolog(prolog, kb, library, rule.name)


@pytest.mark.parametrize(
    "condition", ["less(Number M, 0.00002)", "not less(Number M, 0.00002)", "less(0.00002, Number M)"]
)
def test_a_decimal_of_the_rule_alone_is_compared(condition: str, prolog: PrologSession) -> None:
    """A computed predicate compares a calculated number with a decimal that no fact has, as Prolog does."""
    library = library_of(
        'given size(Thing, Number).\ncomputed less(Number A, Number B) := A < B: "yes" / "no" / "?".\n'
        f"@name r\n@generic none\nsize(Thing T, Number N) & Number M = N * 0.00001 & {condition} -> small(Thing T)."
    )
    with KnowledgeBase() as kb:
        kb.add_facts([fact("size", name, value) for name, value in [("a", 1), ("b", 2), ("c", Decimal("2.5"))]])
        derive_all(kb, library, [library.rule("r")], "sql", session=prolog)

        assert stored(kb, library, "r", prolog) == by_prolog(prolog, kb, library, "r") != []


@pytest.mark.parametrize(
    "condition", ["N / -4 < -0.5", "-0.5 >= N / -0.5", "N / -4 = -0.25", "N / 0 < 1", "N / 4 < 0.5"]
)
def test_a_negative_divisor_turns_no_comparison_round(condition: str, prolog: PrologSession) -> None:
    """A number divided by a negative one compares as in Prolog; division by zero holds of nothing."""
    library = library_of(
        f"given size(Thing, Number).\n@name r\n@generic none\nsize(Thing T, Number N) & {condition} -> small(Thing T)."
    )
    with KnowledgeBase() as kb:
        kb.add_facts([fact("size", str(value), value) for value in (-1, 0, 1, 2, Decimal("2.5"), 3)])
        derive_all(kb, library, [library.rule("r")], "sql", session=prolog)

        assert stored(kb, library, "r", prolog) == by_prolog(prolog, kb, library, "r")
        assert bool(stored(kb, library, "r", prolog)) == ("/ 0" not in condition)


TWINS = """
@name twins
@generic P
wants(Person P, Thing X, "50% \\"off\\"") & first(Thing X, Thing Y) & first(Thing Z, Thing Y) & not marked(Thing Z) & second(Thing Y, Number N) & Z \\= "b"
  -> tells(Person P, Thing Z).
"""


cells_of_lines = st.sampled_from((*VALUES, "100%", "%s", "\\u0000v0\\u0000", "\u2028")) | st.text(max_size=5)


@settings(max_examples=cases(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(found=facts(), values=st.lists(cells_of_lines, min_size=2, max_size=4, unique_by=repr))
def test_lines_are_those_of_the_records(found: list[FactRecord], values: list[Value], prolog: PrologSession) -> None:
    """Statements written in batches are, byte for byte, the records written one by one, equal facts included."""
    library = library_of(DECLARED + TWINS)
    rule = library.rule("twins")
    with KnowledgeBase() as kb:
        kb.add_facts([*found, *(fact("first", *pair) for pair in permutations(values, 2))])
        kb.add_facts(fact("second", value, number) for value in values for number in (1, Decimal("1.50"), 2**70))
        derive_all(kb, library, [rule], "sql")

        lines = [line for batch in statement_lines(kb, library, rule, derived_line) for line in batch]

        assert lines == [derived_line(record) for record in read_statements(kb, library, rule, prolog)]


@pytest.mark.parametrize("premise", ['first("a", "b")', 'first("a", "b") & not second("b", 7)'])
def test_statement_of_a_rule_without_variables_has_its_line(premise: str, prolog: PrologSession) -> None:
    """A rule about constants alone has one statement, whose line is that of its record."""
    library = library_of(f'{DECLARED}@name it\n@generic none\n{premise} -> marked("a").')
    rule = library.rule("it")
    with KnowledgeBase() as kb:
        kb.add_facts([fact("first", "a", "b"), fact("first", "b", "a")])
        derive_all(kb, library, [rule], "sql")

        lines = [line for batch in statement_lines(kb, library, rule, derived_line) for line in batch]

        assert lines == [derived_line(record) for record in read_statements(kb, library, rule, prolog)]
        assert len(lines) == 1


cells = st.sampled_from(VALUES) | st.text() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False)


@settings(max_examples=cases(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(found=st.lists(st.tuples(st.sampled_from("ab"), st.lists(cells, max_size=3)), max_size=12))
def test_facts_read_together_are_as_read_one_by_one(found: list[tuple[str, list[Value]]]) -> None:
    """Whatever values facts have, a batch that is read at once gives the same relations as its facts one by one."""
    contents = []
    for patched in (False, True):
        with KnowledgeBase() as kb, pytest.MonkeyPatch.context() as patch:
            kb.add_facts([fact(name, *values) for name, values in found])
            if patched:
                patch.setattr("hapax.kb.loading._columns", lambda _: None)
            derive_all(kb, library_of(JOIN), [])
            numbers = [row[0] for row in kb.database.conn.execute("SELECT number FROM relations")]
            tables = ["symbols", "relations", *(f"_relation_{number}" for number in numbers)]
            contents.append([kb.database.conn.execute(f"SELECT * FROM {table}").fetchall() for table in tables])  # noqa: S608

    assert contents[0] == contents[1]


def relations_of(kb: KnowledgeBase) -> dict[str, list[tuple[Value, ...]]]:
    """The rows of each relation by the predicate's indicator; empty relations are left out."""
    conn = kb.database.conn
    rows = {}
    for indicator, number in conn.execute("SELECT indicator, number FROM relations").fetchall():
        rows[indicator] = sorted(conn.execute(f"SELECT * FROM _relation_{number}").fetchall())  # noqa: S608
    return {indicator: found for indicator, found in rows.items() if found}


def identify(connection: sqlite3.Connection) -> None:
    """Give each changed row of `facts` the identity of its content, without which it is refused as damaged."""
    for row, identity, predicate, arguments in connection.execute(
        "SELECT rowid, id, predicate, arguments FROM facts"
    ).fetchall():
        own = fact(predicate, *json.loads(arguments)).id
        if own != identity:
            connection.execute("DELETE FROM facts WHERE id = ?", (own,))
            connection.execute("UPDATE facts SET id = ? WHERE rowid = ?", (own, row))


@settings(max_examples=cases(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    updates=st.lists(
        st.tuples(
            st.integers(1, 6),
            st.sampled_from(["rowid = {n}", "predicate = '{p}'", 'arguments = \'["v{n}","w"]\'', "delete"]),
            st.integers(1, 20),
            st.sampled_from("abc"),
        ),
        max_size=8,
    )
)
def test_facts_that_others_changed_are_read_again(updates: list[tuple[int, str, int, str]]) -> None:
    """Whatever another program changes in `facts`, row numbers included, relations become those of a fresh reading."""
    with KnowledgeBase() as kb:
        kb.add_facts([fact("ab"[n % 2], f"v{n}", "w") for n in range(6)])
        relations = Relations(kb)
        relations.bring_up_to_date()
        for row, change, number, predicate in updates:
            change_text = change.format(n=number, p=predicate)
            sql = "DELETE FROM facts" if change == "delete" else f"UPDATE OR IGNORE facts SET {change_text}"  # noqa: S608
            kb.database.conn.execute(f"{sql} WHERE rowid = ?", (row,))
        identify(kb.database.conn)
        relations.bring_up_to_date()
        read = relations_of(kb)
        kb.database.conn.execute("DELETE FROM relation_state")
        relations.bring_up_to_date()

        assert read == relations_of(kb)


@pytest.mark.parametrize(
    "damaged",
    [
        ['["x", "y'],
        ['["x",null]'],
        ['["x",["y"]]'],
        ['["x",true]'],
        ['{"x": "y"}'],
        ["7"],
        ["[]]"],
        ['["x"]\n["y"]'],
        ['["x","y",', 'null,"z","w"]'],
        ['["x","y"],["z"', '"w"]'],
    ],
)
def test_a_damaged_fact_is_named(damaged: list[str], fresh_kb: KnowledgeBase) -> None:
    """Arguments that Hapax did not write are refused with the first such cell, however they would look together."""
    fresh_kb.add_facts([fact("a", "x", "y"), *(fact("a", str(n), "z") for n in range(len(damaged)))])
    for ref, arguments in enumerate(damaged, 2):
        fresh_kb.database.conn.execute("UPDATE facts SET arguments = ? WHERE rowid = ?", (arguments, ref))

    with pytest.raises(HapaxError, match="of a was not written by Hapax") as refusal:
        derive_all(fresh_kb, library_of(JOIN), [])

    assert repr(damaged[0]) in str(refusal.value)


# --- one behaviour each -----------------------------------------------------------------------------------------------


@pytest.fixture
def routes(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """A ring of places with a way out, of which one end is closed."""
    fresh_kb.add_facts([fact("road", *pair) for pair in ("ab", "bd", "ac", "cd", "de", "ea", "ex")])
    fresh_kb.add_facts([fact("closed", "x"), fact("reaches", "z", "a", source=Source.GIVEN)])
    return fresh_kb


@pytest.mark.parametrize(
    "step",
    [
        "reaches(Place A, Place B) & road(Place B, Place C)",
        "road(Place A, Place B) & reaches(Place B, Place C)",
        'reaches(Place A, Place B) & C = "a"',
        "reaches(Place B, Place C) & reaches(Place A, Place B)",
        "road(Place A, Place B) & reaches(Place B, Place C) & A \\= C",
        "reaches(Place A, Place B) & reaches(Place B, Place C) & road(Place B, Place D)",
    ],
)
def test_recursion_gives_what_tabling_gives(step: str, routes: KnowledgeBase, prolog: PrologSession) -> None:
    """Closures of each form and recursion that is none, on a circle: Prolog's atoms and Prolog's proofs."""
    library = library_of(ROUTES.replace("reaches(Place A, Place B) & reaches(Place B, Place C)", step))

    derived = derive_all(routes, library, [library.rule("onward")], "sql", prolog)

    assert derived.rules[0].statements >= 10
    assert stored(routes, library, "onward") == by_prolog(prolog, routes, library, "onward")


def test_what_sql_would_not_decide_exactly_goes_to_prolog(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Decimals in a comparison: `auto` says why it took Prolog and gives the same; `sql` refuses with a remedy."""
    text = "@name taller\n@generic none\nhas(Thing X, Number N) & has(Thing Y, Number M) & N > M -> beats(Thing X, Thing Y)."
    library = library_of(text)
    fresh_kb.add_facts(
        [fact("has", "a", Decimal("1.5")), fact("has", "b", 1), fact("has", "c", 2**62), fact("has", "d", "9")]
    )

    (rule,) = derive_all(fresh_kb, library, library.rules, session=prolog).rules

    assert (rule.engine, rule.statements) == ("prolog", 3)
    assert rule.reason == "it calculates or compares where there are numbers of more than 60 bits or 17 decimal places"
    assert stored(fresh_kb, library, "taller", prolog) == by_prolog(prolog, fresh_kb, library, "taller")
    with pytest.raises(HapaxError, match=r"rule taller cannot be compiled to SQL: .* Omit --engine\."):
        derive_all(fresh_kb, library, library.rules, "sql", prolog)


@pytest.mark.parametrize(
    ("premise", "reason"),
    [
        (
            "p(Thing X, Number N) & q(Number N, Number M) & N / M > 1",
            "it divides by a value that is not written as a number",
        ),
        ("p(Thing X, Number N) & N * N * N > 1", "its arithmetic could need more than 64 bits"),
        ("p(Thing X, Number N) & not q(Number N, Number M)", "it uses M before anything gives it a value"),
        ("p(Thing X, 2.0)", "it writes the number 2 as 2.0"),
    ],
)
def test_the_reason_is_told(premise: str, reason: str, fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Each rule that is left to Prolog comes with what in it SQL would decide otherwise, or not exactly."""
    library = library_of(f"@name one\n@generic none\n{premise} -> told(Thing X).")
    fresh_kb.add_facts([fact("p", "a", 2), fact("p", "b", 2**50), fact("q", 2, 1)])

    (rule,) = derive_all(fresh_kb, library, library.rules, session=prolog).rules

    assert (rule.engine, rule.reason) == ("prolog", reason)
    assert stored(fresh_kb, library, "one", prolog) == by_prolog(prolog, fresh_kb, library, "one")


@pytest.mark.parametrize(
    ("items", "engine", "values"),
    [
        ("Number K = N * 2 & K > 5", "sql", ["a"]),
        ("Number K = N / 4 & Number M = K + N & M =< 2.5", "sql", ["b"]),
        ("Number K = N / 3 & K * 3 = N", "prolog", ["a", "b"]),
    ],
)
def test_intermediate_values_are_computed(
    items: str, engine: str, values: list[str], fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """A variable that only equations give a value and a type; a third, which no decimal equals, is exact in them."""
    library = library_of(f"@name one\n@generic none\np(Thing X, Number N) & {items} -> told(Thing X).")
    fresh_kb.add_facts([fact("p", "a", 4), fact("p", "b", 2)])

    (rule,) = derive_all(fresh_kb, library, library.rules, session=prolog).rules
    found = list(read_statements(fresh_kb, library, library.rule("one"), prolog))

    assert rule.engine == engine
    assert sorted(str(dict(record.substitution)["X"]) for record in found) == values
    assert in_content_order(found) == by_prolog(prolog, fresh_kb, library, "one")


def test_equal_numbers_are_one_constant(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """2 and 2.0 join and "2" does not; the proof names the later fact, or the other when that one is retracted."""
    library = library_of(JOIN)
    later = fact("a", "x", Decimal("2.0"))
    fresh_kb.add_facts([fact("a", "x", 2), later, fact("a", "y", "2"), fact("b", 2, "z"), fact("b", "2", "w")])

    for _ in range(2):
        derive_all(fresh_kb, library, library.rules, "sql")
        found = stored(fresh_kb, library, "join")
        assert len(found) == 2
        assert found == by_prolog(prolog, fresh_kb, library, "join")
        assert (later.id in "".join(found)) == (fresh_kb.fact("a", later.arguments) is not None)
        fresh_kb.withdraw([later.id], "wrong", "user")


def test_strange_facts_do_no_harm(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Numbers that Prolog cannot hold, texts that it cannot, and facts that no rule knows leave the others alone."""
    library = library_of(JOIN)
    strange = [
        fact("a", Decimal("1E+50000"), "y"),
        fact("b", "y\0", "z"),
        fact("z'; DROP TABLE facts", "y", Decimal("1E-9999")),
    ]
    fresh_kb.add_facts([fact("a", "x'y", "y"), fact("b", "y", "--"), *strange])

    for _ in range(2):
        for engine in ("sql", "prolog"):
            (rule,) = derive_all(fresh_kb, library, library.rules, engine, prolog).rules
            assert rule.statements == 1
            found = stored(fresh_kb, library, "join", prolog)
            assert found == by_prolog(prolog, fresh_kb, library, "join")
            assert len(run_query(Theory(library, fresh_kb), "a(X, Y)", session=prolog).rows) == 1
        fresh_kb.withdraw([strange[0].id], "wrong", "user")


LARGE = "@name large\n@generic none\np(Thing X, Number M) & N = M * {factor} -> r(Thing X, Number N).\n"
ROUND = "@name round\n@generic none\nr(Thing X, Number N) & link(Thing X, Thing Y) & N * N + 1 > N * N -> {end}(Thing Y, Number N).\n"
BACK = "@name back\n@generic none\ns(Thing X, Number N) & link(Thing X, Thing Y) -> r(Thing Y, Number N).\n"
USE = "@name use\n@generic none\nr(Thing X, Number N) -> told(Thing X, Number N).\n"
PARTS = [(LARGE, ROUND), (ROUND, LARGE), *permutations((LARGE, ROUND, BACK))]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize(("factor", "engine"), [(10, "sql"), (1_000_000_000_000, "prolog")])
def test_numbers_that_a_circle_meets_are_known_beforehand(
    parts: tuple[str, ...], factor: int, engine: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """In whatever order a recursive predicate's rules are written, squares that 64 bits do not hold go to Prolog."""
    text = "".join(parts).format(factor=factor, end="s" if BACK in parts else "r")
    library = library_of(text + USE)
    fresh_kb.add_facts([fact("p", "s", 1000), *(fact("link", *pair) for pair in ("st", "tu", "uv"))])

    (rule,) = derive_all(fresh_kb, library, [library.rule("use")], session=prolog).rules

    assert rule.engine == engine
    found = stored(fresh_kb, library, "use", prolog)
    assert len(found) == (2 if BACK in parts else 4)
    assert found == by_prolog(prolog, fresh_kb, library, "use")


def test_constants_of_definitions_are_numbers_too(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """A computed predicate that gives a decimal takes part in the comparisons of SQL."""
    library = library_of(
        'computed is_half(Number A) := A = 2.5: "[1] is half" / "[1] is not half" / "is [1] half?".\n'
        "@name more\n@generic none\nis_half(Number A) & p(Thing X, Number N) & N > A -> told(Thing X)."
    )
    fresh_kb.add_facts([fact("p", "a", 2), fact("p", "b", 3)])

    (rule,) = derive_all(fresh_kb, library, library.rules, session=prolog).rules

    assert (rule.engine, rule.statements) == ("sql", 1)


@pytest.mark.parametrize("huge", [2**60, Decimal("1e-18"), Decimal("1e30")])
def test_a_number_too_long_for_sql_matters_where_it_is(
    huge: Value, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """A number that SQL cannot hold sends rules over its predicate to Prolog; alone, others are derived in SQL."""
    text = "@name {0}\n@generic none\n{0}(Thing X, Number N) & N > 0.5 -> is_{0}(Thing X).\n"
    library = library_of(text.format("long") + text.format("short"))
    fresh_kb.add_facts([fact("long", "a", huge), fact("short", "a", Decimal("0.1")), fact("short", "b", 1)])

    for name, engine in (("long", "prolog"), ("short", "sql")):
        (derived,) = derive_all(fresh_kb, library, [library.rule(name)], session=prolog).rules
        assert derived.engine == engine
        assert stored(fresh_kb, library, name, prolog) == by_prolog(prolog, fresh_kb, library, name)


@pytest.mark.parametrize("engine", ["sql", "prolog"])
@pytest.mark.parametrize(
    "premise",
    ["q(Number N) & s(Number M) & N = M", "qq(Number N, Number M) & N = M", "q(Number N) & M = N & s(Number M)"],
)
def test_a_text_in_the_place_of_a_number_equals_nothing(
    engine: Engine, premise: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """An equation between numbers is false for texts, however the premise is written and whichever engine decides."""
    library = library_of(f"@name same\n@generic none\n{premise} -> same(Number N).")
    for value in ("a", 2, Decimal("0.5")):
        fresh_kb.add_facts([fact("q", value), fact("s", value), fact("qq", value, value)])

    (rule,) = derive_all(fresh_kb, library, library.rules, engine, prolog).rules

    assert rule.statements == 2
    rows = run_query(Theory(library, fresh_kb), "same(N)", session=prolog).rows
    assert rows == [(Decimal("0.5"),), (2,)]


TWICE = 'computed is_twice(Number A, Number B) := B = A + A: "[2] is twice [1]" / "[2] is not twice [1]" / "?".\n'
DOUBLED = " & ".join(f"is_twice(Number N{number}, Number N{number + 1})" for number in range(40))


@pytest.mark.parametrize(
    ("premise", "reason"),
    [
        (" & ".join(f'X \\= "c{number}"' for number in range(420)), "it sets more than 400 conditions"),
        (f"zero(Number N0) & {DOUBLED} & N40 < 1", "a calculation in it is longer than 2000 characters of SQL"),
    ],
    ids=["conditions", "calculation"],
)
def test_what_is_too_large_for_sql_goes_to_prolog(
    premise: str, reason: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """More than SQLite takes in one SELECT is left to Prolog, with the reason, above it and as a derived predicate."""
    text = f"{TWICE}@name one\n@generic none\np(Thing X) & {premise} -> mid(Thing X).\n"
    library = library_of(text + "@name two\n@generic none\nmid(Thing X) -> told(Thing X).\n")
    fresh_kb.add_facts([fact("p", "a"), fact("p", "c7"), fact("zero", 0)])

    first, second = derive_all(fresh_kb, library, library.rules, session=prolog).rules

    assert (first.engine, first.reason, second.engine) == ("prolog", reason, "prolog")
    assert reason in second.reason
    for name in ("one", "two"):
        assert stored(fresh_kb, library, name, prolog) == by_prolog(prolog, fresh_kb, library, name)


def test_a_fact_wider_than_a_table_does_no_harm(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """A fact of 2,100 arguments is passed over; rules that name its predicate, or conclude it, go to Prolog."""
    names = [f"X{number}" for number in range(2100)]
    some = ", ".join(f"Thing {name}" for name in names[:150])
    library = library_of(
        f"{JOIN}\n@name widen\n@generic none\nwide({some}) -> wider({some}).\n"
        f"@name narrow\n@generic none\nwider({some}) -> told(Thing X0)."
    )
    fresh_kb.add_facts([fact("a", "x", "y"), fact("b", "y", "z"), fact("unknown", *names)])
    fresh_kb.add_facts([fact("wide", *names[:150]), fact("wide", *names[1:151])])
    refused = "it names a predicate of more than 100 arguments"

    join, narrow = derive_all(fresh_kb, library, [library.rule("join"), library.rule("narrow")], session=prolog).rules
    assert (join.engine, join.statements) == ("sql", 1)
    assert (narrow.engine, narrow.statements, narrow.reason) == ("prolog", 2, refused)
    fresh_kb.withdraw([fact("unknown", *names).id], "wrong", "user")
    fresh_kb.withdraw([fact("wide", *names[1:151]).id], "wrong", "user")

    join, narrow = derive_all(fresh_kb, library, [library.rule("join"), library.rule("narrow")], session=prolog).rules
    assert (join.statements, narrow.statements) == (1, 1)
    assert stored(fresh_kb, library, "narrow", prolog) == by_prolog(prolog, fresh_kb, library, "narrow")


def test_rules_beside_a_wide_predicate_stay_in_sql(fresh_kb: KnowledgeBase) -> None:
    """A predicate with too many arguments for SQL sends its own rules to Prolog, and those of no other predicate."""
    some = ", ".join(f"Thing X{number}" for number in range(150))
    names = [f"{letter}{number}" for number in range(3) for letter in "pz"]
    chains = [
        f"@name {name}\n@generic none\na(Thing X, Thing Y) -> {name}(Thing X, Thing Y).\n"
        f"@name from_{name}\n@generic none\n{name}(Thing X, Thing Y) -> end_{name}(Thing X, Thing Y)."
        for name in names
    ]
    widen = (
        f"@name widen\n@generic none\nwide({some}) -> w({some}).\n"
        f"@name narrow\n@generic none\nw({some}) -> end_w(Thing X0).\n"
    )
    library = library_of(widen + "\n".join(chains))
    fresh_kb.add_facts([fact("a", "x", "y"), fact("wide", *map(str, range(150)))])

    found = {rule.rule: (rule.engine, rule.statements) for rule in derive_all(fresh_kb, library, library.rules).rules}

    assert (found.pop("widen"), found.pop("narrow")) == (("prolog", 1), ("prolog", 1))
    assert found == dict.fromkeys([*names, *(f"from_{name}" for name in names)], ("sql", 1))


def test_answers_are_never_stale(tmp_path: Path, prolog: PrologSession) -> None:
    """Facts that another process deletes, changes, adds or numbers anew are seen; until then reading is refused."""
    library, path = library_of(JOIN), tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts(
            [fact("a", str(n), str(n + 1)) for n in range(20)] + [fact("b", str(n), str(n)) for n in range(20)]
        )
        derive_all(kb, library, library.rules)
    for change in (
        "DELETE FROM facts WHERE rowid IN (3, 40)",
        'UPDATE facts SET arguments = \'["0","7"]\' WHERE rowid = 1',
        "UPDATE facts SET rowid = rowid + 100",
        "INSERT INTO facts (id, predicate, arguments, types, source) SELECT 'new', 'b', '[\"7\",\"new\"]', types, source "
        "FROM facts LIMIT 1",
    ):
        with sqlite3.connect(path) as connection:
            connection.execute(change)
            identify(connection)
        with KnowledgeBase(path) as kb:
            with pytest.raises(HapaxError, match="have changed since rule join was derived"):
                next(read_statements(kb, library, library.rule("join")))
            derive_all(kb, library, library.rules, "sql")
            assert stored(kb, library, "join") == by_prolog(prolog, kb, library, "join")


def test_a_copy_that_numbers_facts_anew_is_read_anew(tmp_path: Path, prolog: PrologSession) -> None:
    """VACUUM, and a restored dump, in which every fact has another number."""
    library, path, copy = library_of(JOIN), tmp_path / "kb.db", tmp_path / "copy.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts([fact("a", str(n), str(n + 1)) for n in range(9)] + [fact("b", str(n), str(n)) for n in range(9)])
        kb.withdraw([fact("a", "1", "2").id], "wrong", "user")
        derive_all(kb, library, library.rules)
        kb.database.conn.execute("VACUUM")
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        target.executescript("\n".join(source.iterdump()))
        target.execute("CREATE TABLE moved AS SELECT * FROM facts ORDER BY id DESC")
        target.executescript("DROP TRIGGER fact_deleted; DELETE FROM facts; INSERT INTO facts SELECT * FROM moved")

    for file in (path, copy):
        with KnowledgeBase(file) as kb:
            derive_all(kb, library, library.rules, "sql")
            assert stored(kb, library, "join") == by_prolog(prolog, kb, library, "join")


def test_other_rules_need_another_derivation(routes: KnowledgeBase) -> None:
    """Stored statements belong to the rules that derived them: with other rules they are not read."""
    library = library_of(ROUTES)
    derive_all(routes, library, [library.rule("onward")], "sql")
    changed = library_of(ROUTES.replace("C \\= A & ", ""))

    with pytest.raises(HapaxError, match="rules have changed since rule onward was derived"):
        next(read_statements(routes, changed, changed.rule("onward")))


def test_a_failed_derivation_leaves_the_last_one(
    routes: KnowledgeBase, prolog: PrologSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended half way, whatever by: the statements before are there, and are read."""
    library = library_of(ROUTES)
    derive_all(routes, library, [library.rule("onward")], "sql")
    before = stored(routes, library, "onward")
    monkeypatch.setattr("hapax.kb.relations.Relations.fill_rows", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        derive_all(routes, library, [library.rule("onward")], "prolog", prolog)

    assert stored(routes, library, "onward") == before


def test_a_rule_by_name_leaves_the_others_as_they_are(routes: KnowledgeBase) -> None:
    """Deriving one rule again keeps what other rules' statements rest on."""
    library = library_of(
        ROUTES + "@name far\n@generic none\nreaches(Place A, Place B) -> is_far_from(Place A, Place B)."
    )
    derive_all(routes, library, [library.rule("onward"), library.rule("far")], "sql")
    before = stored(routes, library, "onward")

    derive_all(routes, library, [library.rule("far")], "sql")

    assert stored(routes, library, "onward") == before


@pytest.fixture
def routes_file(tmp_path: Path) -> tuple[Path, Path]:
    """A file of rules and a knowledge base."""
    rules = tmp_path / "routes.rules"
    rules.write_text(ROUTES, "utf-8")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.add_facts([fact("road", *pair) for pair in ("ab", "bc", "ca")])
    return rules, tmp_path / "kb.db"


@pytest.mark.parametrize("engine", ["sql", "prolog"])
def test_derive_prints_stores_and_writes(routes_file: tuple[Path, Path], engine: str, tmp_path: Path) -> None:
    """`derive` names rule, statements and engine, writes statements with proofs, and `stats` counts them."""
    from pyarrow import parquet

    rules, database = routes_file
    for ending in ("jsonl", "parquet"):
        result = invoke("derive", rules, "--db", database, "--engine", engine, "-o", tmp_path / f"out.{ending}")
        assert result.exit_code == 0, result.output
        assert result.stdout.splitlines()[1].split()[:3] == ["onward", "6", engine]
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()

    assert sorted(line["statement"] for line in lines)[0] == "If a road b and b reaches b, then a serves b."
    assert all(line["proof"]["steps"][0]["premises"] for line in lines)
    assert [json.loads(line["proof"]) for line in rows] == [line["proof"] for line in lines]
    assert json.loads(invoke("stats", "--db", database, "--json").stdout)["derived"] == {"onward": 6}
    assert "6 statements of 1 rule, stored by hapax derive." in invoke("stats", "--db", database).stdout


def test_derive_tells_its_findings_as_json(routes_file: tuple[Path, Path]) -> None:
    """`--json` gives the rules' counts and the derived predicates."""
    rules, database = routes_file

    shown = json.loads(invoke("derive", rules, "--db", database, "--rule", "onward", "--json").stdout)

    assert shown["atoms"] == {"reaches/2": 9}
    assert [(rule["rule"], rule["statements"], rule["engine"]) for rule in shown["rules"]] == [("onward", 6, "sql")]


def test_a_proof_shows_a_decimal_that_nothing_stores() -> None:
    """A quotient inside a rule, which is in no fact and no conclusion, is in the proof of a derived statement."""
    rules = hapax.parse_rules(
        "given weighs(Thing, Number)\n"
        "@name half\n@generic none\nweighs(Thing X, Number W) & Number K = W / 2 & K > 1 -> is_heavy(Thing X).\n"
        "@name lift\n@generic none\nis_heavy(Thing X) & weighs(Thing X, Number W) -> needs_two(Thing X, Number W).\n"
    )
    with KnowledgeBase() as kb:
        hapax.add_facts(kb, "weighs", [("piano", 7), ("pen", 1)], rules)
        (statement,) = hapax.derive(rules, kb).statements

        assert "Decimal('3.5')" in repr(statement.proof)
        assert "3.5 = 7 / 2" in str(hapax.why("needs_two(piano, 7)", rules, kb))


def test_derive_refuses_what_it_cannot_do(routes_file: tuple[Path, Path], tmp_path: Path) -> None:
    """No knowledge base, or a file that is neither JSONL nor Parquet: one line, exit code 1, nothing made."""
    rules, database = routes_file

    absent = invoke("derive", rules, "--db", tmp_path / "none.db")
    ending = invoke("derive", rules, "--db", database, "-o", tmp_path / "out.csv")

    assert (absent.exit_code, ending.exit_code) == (1, 1)
    assert "there is no such knowledge base" in absent.stderr
    assert "written as .jsonl or .parquet" in ending.stderr
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("option", ["out.jsonl", "out.parquet", "bulk"])
def test_a_full_disk_keeps_the_earlier_file(
    option: str, routes_file: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file of `derive` cannot be written whole, the earlier one stays; with space it takes its place."""
    from pyarrow import parquet

    rules, database = routes_file
    place = tmp_path / "written" / option
    place.parent.mkdir()
    arguments = ("derive", rules, "--db", database, "--tables" if option == "bulk" else "-o", place)
    assert invoke(*arguments).exit_code == 0
    files = [place] if place.is_file() else sorted(place.iterdir())
    before = [file.read_bytes() for file in files]
    with KnowledgeBase(database) as kb:
        kb.add_facts([fact("road", "b", "x")])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(parquet.ParquetWriter, "write_table", full)
        patch.setattr("hapax.evaluation.dataset.derived.json_line", full)
        ended = invoke(*arguments)

    assert ended.exit_code == 1
    assert f"{option}: it cannot be written (No space left on device)" in ended.stderr.replace("\n", "")
    assert [file.read_bytes() for file in files] == before
    assert [path.name for path in place.parent.iterdir()] == [option]
    assert invoke(*arguments).exit_code == 0
    assert [file.read_bytes() for file in files] != before


def test_duckdb_joins_the_written_tables(routes: KnowledgeBase, tmp_path: Path) -> None:
    """`rules.sql` over the Parquet of `--tables` gives DuckDB the instances that are stored, arithmetic included."""
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `bulk`")
    text = "@name next\n@generic none\nage(Thing X, Number N) & M = N - 3 & M / 2 < 1.5 & not closed(Thing X) -> was(Thing X, Number M)."
    library = library_of(ROUTES + text)
    rules = [library.rule("onward"), library.rule("next")]
    routes.add_facts([fact("age", name, age) for name, age in (("a", 5), ("b", -7), ("c", "5"), ("d", 50), ("x", 1))])
    derive_all(routes, library, rules, "sql")

    assert write_tables(tmp_path / "bulk", routes, library, rules) == 5
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{tmp_path / 'bulk'}'")
        connection.execute((tmp_path / "bulk" / "rules.sql").read_text("utf-8"))
        for number, count in ((1, 24), (2, 2)):
            rows = routes.database.conn.execute(f"SELECT * FROM _instances_{number}").fetchall()  # noqa: S608
            found = connection.execute(f"SELECT * FROM instances_{number}").fetchall()  # noqa: S608
            assert sorted(row[1:] for row in found) == sorted(row[1:] for row in rows)
            assert len(rows) == count


def test_written_tables_are_the_same_each_time(routes_file: tuple[Path, Path], tmp_path: Path) -> None:
    """`derive --tables` writes the same bytes in another process with another hash seed, and when it runs again."""
    rules, database = routes_file
    written: list[dict[str, bytes]] = []
    for number, seed in enumerate(("1", "2", "3", "3")):
        copy, place = tmp_path / f"{seed}.db", tmp_path / f"tables{number}"
        if not copy.exists():
            copy.write_bytes(database.read_bytes())
        command = [sys.executable, "-m", "hapax.cli", "derive", rules, "--db", copy, "--tables", place]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
        written.append({file.name: file.read_bytes() for file in place.iterdir()})

    assert all(files == written[0] for files in written[1:])


def test_duckdb_compares_decimals(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """A comparison of decimals gives DuckDB what is stored; a rule that calculates some is left out with a comment."""
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `bulk`")
    library = library_of(
        "@name tall\n@generic none\nsize(Thing X, Number N) & size(Thing Y, Number M) & N * 2 > M + 0.1 -> above(Thing X, Thing Y).\n"
        "@name twice\n@generic none\nsize(Thing X, Number N) & M = N * 0.5 -> half(Thing X, Number M).\n"
        "@name small\n@generic none\nsize(Thing X, Number N) & N < 1 -> small(Thing X)."
    )
    sizes: Sequence[Value] = (Decimal("0.1"), Decimal("0.2"), Decimal("-2.25"), 1, "1")
    fresh_kb.add_facts(fact("size", f"t{number}", size) for number, size in enumerate(sizes))
    derive_all(fresh_kb, library, library.rules, "sql")

    write_tables(tmp_path / "bulk", fresh_kb, library, library.rules)
    text = (tmp_path / "bulk" / "rules.sql").read_text("utf-8")
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{tmp_path / 'bulk'}'")
        connection.execute(text)
        found = connection.execute("SELECT v1, v2, v3, v4 FROM instances_1").fetchall()
    kept = fresh_kb.database.conn.execute("SELECT v1, v2, v3, v4 FROM _instances_1").fetchall()

    assert sorted(found) == sorted(kept)
    assert len(kept) > 5
    assert "-- twice calculates decimals" in text
    assert "CREATE TABLE instances_3 AS" in text.partition("-- twice")[2]


def test_a_rule_whose_values_only_hypotheses_could_give_is_left_out(fresh_kb: KnowledgeBase) -> None:
    """Assumptions about a generic person give no variable a value, so that no statement has an empty slot."""
    library = parse_library([("ruins.rules", "conquered(Person X, City A) -> is_lord_of(Person X, City A)")])
    hapax.add_facts(fresh_kb, "conquered", [("Alexander", "Tyre")], library)

    for _ in range(2):  # the second time nothing has changed
        (rule,) = derive_all(fresh_kb, library, library.rules).rules

        assert (rule.statements, rule.reason, rule.anew) == (0, "", "")
        assert rule.left_out == (
            "no fact gives A a value, because only what is assumed about Person X mentions it. "
            "Search the rule, or write `@generic none` before it"
        )
    assert list(read_statements(fresh_kb, library, library.rules[0])) == []


@pytest.mark.parametrize(("count", "engine"), [(100, "sql"), (101, "prolog")])
def test_a_hundred_arguments_fit_into_a_table(
    count: int, engine: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """A derived predicate with as many arguments as a relation may have is filled by SQL; one more is left to Prolog."""
    names = ", ".join(f"Thing X{number}" for number in range(count))
    library = parse_library(
        [
            (
                "wide.rules",
                f"given wide({', '.join(['Thing'] * count)}).\n"
                f"@name middle\n@generic none\nwide({names}) -> carried({names}).\n"
                f"@name upper\n@generic none\ncarried({names}) -> shown(Thing X0, Thing X1).\n",
            )
        ]
    )
    fresh_kb.add_facts([FactRecord("wide", tuple(f"v{number}" for number in range(count)), (), Source.GIVEN)])
    report = derive_all(fresh_kb, library, library.rules, session=prolog)

    assert [(rule.statements, rule.engine) for rule in report.rules] == [(1, engine)] * 2
