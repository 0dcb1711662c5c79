"""Aggregates in rules: their values in SQL and in Prolog, their proofs, their text and the faults of `check`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.bulk_derivation import RUN_ID, derive_all, read_statements
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.proof import proof_from_json
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.engine.probability.answers import ProbabilityOptions
from hapax.engine.probability.statements import statement_probabilities
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError
from hapax.grammar.formatting import formatted_rules
from hapax.grammar.parser import parse_library
from hapax.grammar.printing import format_library
from hapax.grammar.prolog_text import program_text
from hapax.grammar.rules import Library
from hapax.grammar.terms import Substitution, Value
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase

MENU = """
given is_in(Ingredient, Dish).
given has_price(Dish, Number).
aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D)).
aggregate cost(Ingredient Z, Number K) := K = sum(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P)).
aggregate prices(Ingredient Z, Number K) := K = sum(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P)).
aggregate least(Ingredient Z, Number K) := K = min(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P)).
aggregate most(Ingredient Z, Number K) := K = max(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P)).
aggregate mean(Ingredient Z, Number K) := K = avg(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P)).
aggregate dishes(Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D) & not has_price(Dish D, 2)).
aggregate busiest(Number K) := K = max(Number N: dishes_with(Ingredient Z, Number N)).
@name often
@generic none
dishes_with(Ingredient Z, Number K) & cost(Ingredient Z, Number C) & prices(Ingredient Z, Number M) & K + 1 > 1 -> is_common(Ingredient Z, Number C, Number M, Number K).
@name range
@generic none
least(Ingredient Z, Number A) & most(Ingredient Z, Number B) -> spans(Ingredient Z, Number A, Number B).
@name means
@generic none
mean(Ingredient Z, Number M) & M >= 2 & M * 4 < 40 -> is_dear(Ingredient Z).
@name all
@generic none
dishes(Number K) & busiest(Number N) & K >= N -> counts(Number K, Number N).
"""
RULES = ("often", "range", "means", "all")


def library_of(text: str) -> Library:
    return parse_library([("f.rules", text)])


def fact(predicate: str, *values: Value) -> FactRecord:
    return FactRecord(predicate, values, tuple("Thing" for _ in values), Source.GIVEN, 1.0)


def expected(found: Sequence[FactRecord]) -> dict[str, set[tuple[Value | Fraction, ...]]]:
    """The conclusions by rule, by another way than the engines': loops over the facts in fractions."""
    is_in = {record.arguments for record in found if record.predicate == "is_in"}
    prices: dict[Value, set[Fraction]] = {}
    for record in found:
        if record.predicate == "has_price" and not isinstance(record.arguments[1], str):
            prices.setdefault(record.arguments[0], set()).add(Fraction(record.arguments[1]))
    result: dict[str, set[tuple[Value | Fraction, ...]]] = {name: set() for name in RULES}
    counts = []
    for ingredient in {pair[0] for pair in is_in}:
        dishes = {dish for other, dish in is_in if other == ingredient}
        counts.append(len(dishes))
        pairs = {(price, dish) for dish in dishes for price in prices.get(dish, ())}
        values = [price for price, _ in pairs]
        if values:
            result["often"].add((ingredient, sum(values), sum(set(values)), len(dishes)))
            result["range"].add((ingredient, min(values), max(values)))
            mean = sum(values) / len(values)
            if 2 <= mean < 10:
                result["means"].add((ingredient,))
    counted = {dish for _, dish in is_in if Fraction(2) not in prices.get(dish, ())}
    if counted and len(counted) >= max(counts):
        result["all"].add((len(counted), max(counts)))
    return result


def concluded(records: Sequence[StatementRecord]) -> set[tuple[Value | Fraction, ...]]:
    """The arguments of the statements' conclusions, numbers as fractions."""
    rows = set()
    for record in records:
        terms = proof_from_json(record.proof).goal.atom.arguments
        rows.add(tuple(t.value if isinstance(t.value, str) else Fraction(t.value) for t in terms))
    return rows


INGREDIENTS, DISHES = ("salt", "leek", "rice"), ("soup", "pie", "tart", "stew")
PRICES = st.sampled_from((1, 2, 3, 7, -4, Decimal("2.5"), Decimal("0.1"), "free"))


@st.composite
def menus(draw: st.DrawFn) -> list[FactRecord]:
    pairs = draw(st.lists(st.tuples(st.sampled_from(INGREDIENTS), st.sampled_from(DISHES)), min_size=1, max_size=8))
    priced = draw(st.lists(st.tuples(st.sampled_from(DISHES), PRICES), max_size=6))
    return [fact("is_in", *pair) for pair in pairs] + [fact("has_price", *pair) for pair in priced]


def by_prolog(prolog: PrologSession, kb: KnowledgeBase, library: Library, name: str) -> list[StatementRecord]:
    rule = library.rule(name)
    kept = KeptSubstitutions(rule, {Distribution.HEAD: [Substitution()]}, RUN_ID)
    return derive_statements(prolog, library, Theory(library, kb).relevant_to(rule).facts(), kept)


@settings(max_examples=cases(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(earlier=menus(), later=menus())
def test_both_engines_give_the_values_of_loops_over_the_facts(
    earlier: list[FactRecord], later: list[FactRecord], prolog: PrologSession
) -> None:
    """Five functions with and without groups, over decimals and texts, also after facts came and went."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        for change in (earlier, later):
            kb.add_facts(change)
            kb.withdraw([earlier[0].id], "wrong", "user")
            derive_all(kb, library, [library.rule(name) for name in RULES], session=prolog)
            right = expected(list(kb.facts()))
            for name in RULES:
                records = list(read_statements(kb, library, library.rule(name), prolog))
                assert concluded(records) == right[name], name
                assert sorted(map(repr, records)) == sorted(map(repr, by_prolog(prolog, kb, library, name)))


SOUPS = [fact("is_in", "salt", dish) for dish in ("soup", "pie")] + [
    fact("has_price", "soup", 3),
    fact("has_price", "pie", Decimal("2.5")),
]


def test_sql_decides_all_but_averages(prolog: PrologSession) -> None:
    """Counts, sums and extremes are derived in SQL; an average is left to Prolog, with the reason."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        kb.add_facts(SOUPS)
        report = derive_all(kb, library, [library.rule(name) for name in RULES], session=prolog)
        assert {rule.rule: rule.engine for rule in report.rules} == {
            "often": "sql", "range": "sql", "means": "prolog", "all": "sql",
        }  # fmt: skip
        assert "an average may not be a finite decimal" in report.rules[2].reason


def test_sums_stay_in_sql_when_facts_change(prolog: PrologSession) -> None:
    """A sum is filled again by SQL after a change, and the report says why it was not maintained."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        kb.add_facts(SOUPS)
        derive_all(kb, library, [library.rule("often")], session=prolog)
        kb.add_facts([fact("is_in", "leek", "pie")])
        (changed,) = derive_all(kb, library, [library.rule("often")], session=prolog).rules
        assert (changed.engine, changed.statements) == ("sql", 2)
        assert changed.anew.endswith("was derived anew (it is an aggregate)")


def test_an_empty_group_has_no_value(prolog: PrologSession) -> None:
    """Without facts there is no count of 0, for a group or for all."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        assert derive_all(kb, library, [library.rule("all")], session=prolog).rules[0].statements == 0
        assert run_query(Theory(library, kb), "dishes(K)", session=prolog).rows == []


def test_goals_may_bind_the_group_or_the_value(prolog: PrologSession) -> None:
    """A query finds the value of a group, the groups of a value, and tests a value."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        kb.add_facts([*SOUPS, fact("is_in", "leek", "pie")])
        theory = Theory(library, kb)
        assert run_query(theory, "cost(salt, K)", session=prolog).rows == [(Decimal("5.5"),)]
        assert run_query(theory, "dishes_with(Z, 1)", session=prolog).rows == [("leek",)]
        assert run_query(theory, "mean(salt, 3)", session=prolog).rows == []


def test_a_proof_names_every_row_of_the_group(prolog: PrologSession) -> None:
    """The proof of an aggregate's atom has the facts of its group as premises, and no others."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        kb.add_facts([*SOUPS, fact("is_in", "leek", "pie")])
        derive_all(kb, library, [library.rule("range")], session=prolog)
        record = next(
            r for r in read_statements(kb, library, library.rule("range"), prolog) if "salt" in str(r.substitution)
        )
        step = next(part for part in proof_from_json(record.proof).parts() if part.rule == "aggregate least/2")
        assert sorted(str(child.goal) for child in step.children) == [
            'has_price("pie", 2.5)', 'has_price("soup", 3)', 'is_in("salt", "pie")', 'is_in("salt", "soup")',
        ]  # fmt: skip


def test_the_text_of_an_aggregate_parses_to_the_same(prolog: PrologSession) -> None:
    """Reading, printing and the one layout keep aggregates as they are; the Prolog program has their clauses."""
    library = library_of(MENU)
    text = format_library(library)
    assert library_of(text).declarations == library.declarations
    assert "K = count(Dish D: is_in(Ingredient Z, Dish D))" in formatted_rules(MENU)
    assert library_of(formatted_rules(MENU)).declarations == library.declarations
    assert "setof(row(D), 'hapax_rows aggregate dishes_with(" in program_text(library)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("aggregate n(T A, Number K) := K = count(T B: p(T A, T B))", []),
        ("aggregate n(T A, Number K) := K > count(T B: p(T A, T B))", ["HPX127"]),
        ("aggregate n(T A, Number K) := K = total(T B: p(T A, T B))", ["HPX127"]),
        ("aggregate n(T A, Number K) := K = count(T C: p(T A, T B))", ["HPX128"]),
        ("aggregate n(T C, Number K) := K = count(T B: p(T A, T B))", ["HPX128"]),
        ("aggregate n(T A, Number K) := L = count(T B: p(T A, T B))", ["HPX128", "HPX128"]),
        ("aggregate n(T A, T B) := B = count(T B: p(T A, T B))", ["HPX128", "HPX129"]),
        ("aggregate n(T A, Number K) := K = max(T B: p(T A, T B))", ["HPX129"]),
        ("aggregate n(T A, T K) := K = count(T B: p(T A, T B))", ["HPX129"]),
        ("aggregate n(T A, Number K) := K = count(T B: p(T A, T B) & not n(T B, 2))", ["HPX130"]),
        ("aggregate n(T A, Number K) := K = count(T B: q(T A, T B))", ["HPX131"]),
        (
            "aggregate n(T A, Number K) := K = count(T B: d(T A, T B))\nq(T A, T B) & p(T B, T C) -> d(T A, T C)",
            ["HPX131"],
        ),
        ("closed q/2\naggregate n(T A, Number K) := K = count(T B: q(T A, T B))", []),
        ("aggregate n(T A, Number K) := K = count(Year B: p(T A, Year B))", ["HPX107"]),
        (
            "given r(T, Number)\ncomputed d(Number A, Number B) := B = A * 2\n"
            "aggregate n(Number K) := K = sum(Number B, T C: r(T C, Number A) & d(Number A, Number B))",
            [],
        ),
        (
            "given r(T, Number)\ncomputed d(Number A, Number B) := A < B\n"
            "aggregate n(Number K) := K = sum(Number B, T C: r(T C, Number A) & d(Number A, Number B))",
            ["HPX128"],
        ),
    ],
)
def test_faults_of_aggregates_are_reported(text: str, codes: list[str]) -> None:
    """Unknown functions, variables without values, texts, cycles, open predicates and clashing types are errors."""
    library = library_of(f"given p(T, T)\noracle q(T, T)\n{text}")
    assert [found.code for found in check_library(library) if found.code < "HPX2"] == codes


def test_a_computed_predicate_may_give_the_counted_value(prolog: PrologSession) -> None:
    """Both engines sum the values that an equation of a computed predicate gives."""
    library = library_of(
        "given has_price(Dish, Number)\ncomputed is_half_of(Number A, Number B) := B = A * 2\n"
        "aggregate total(Number K) :=\n"
        "  K = sum(Number B, Dish D: has_price(Dish D, Number A) & is_half_of(Number A, Number B))\n"
        "@name sum\n@generic none\ntotal(Number K) & has_price(Dish D, K) -> costs_all(Dish D, Number K)"
    )
    with KnowledgeBase() as kb:
        kb.add_facts([fact("has_price", "soup", 3), fact("has_price", "pie", 4), fact("has_price", "feast", -14)])
        kb.add_facts([fact("has_price", "menu", 14)])
        report = derive_all(kb, library, [library.rule("sum")], session=prolog)
        records = list(read_statements(kb, library, library.rule("sum"), prolog))

        assert report.rules[0].engine == "sql"
        assert concluded(records) == {("menu", Fraction(14))}
        assert records == by_prolog(prolog, kb, library, "sum")


def test_there_are_no_probabilities_of_aggregates(prolog: PrologSession) -> None:
    """The value differs from world to world, so that a probability is refused instead of given wrongly."""
    library = library_of(MENU)
    with KnowledgeBase() as kb:
        kb.add_facts(SOUPS)
        derive_all(kb, library, [library.rule("range")], session=prolog)
        with pytest.raises(HapaxError, match="is an aggregate, of which there are no probabilities"):
            statement_probabilities(kb, library, library.rule("range"), ProbabilityOptions())
