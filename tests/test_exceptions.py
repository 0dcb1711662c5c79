"""Exceptions of rules, `unless`: what they except in SQL and in Prolog, their text, proofs and faults."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.explain import story_text, why_not
from hapax.engine.inference.bulk_derivation import RUN_ID, derive_all, read_statements
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.proof import proof_from_json, proof_text
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.grammar.checks import check_library
from hapax.grammar.errors import RulesRejected
from hapax.grammar.formatting import formatted_rules
from hapax.grammar.parser import parse_library
from hapax.grammar.printing import format_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Substitution, Value
from hapax.kb.records import Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase

BIRDS = """
given is_bird(Animal)
given is_penguin(Animal)
given weighs(Animal, Number)
given has_illness(Animal, Illness)
given is_serious(Illness)
@name flies
@generic none
is_bird(Animal X) & weighs(Animal X, Number K) -> can_fly(Animal X, Number K)
  unless is_penguin(Animal X)
  unless has_illness(Animal X, Illness I) & is_serious(Illness I)
  unless K * 2 > 5 & not is_serious("flu")
@name stays
@generic none
is_bird(Animal X) -> stays(Animal X) unless can_fly(Animal X, Number K)
"""
RULES = ("flies", "stays")
ANIMALS, ILLNESSES = ("tit", "rhea", "auk"), ("flu", "cold")


def library_of(text: str) -> Library:
    return parse_library([("f.rules", text)])


def fact(predicate: str, *values: Value) -> FactRecord:
    return FactRecord(predicate, values, tuple("Thing" for _ in values), Source.GIVEN, 1.0)


@st.composite
def aviaries(draw: st.DrawFn) -> list[FactRecord]:
    """Random facts of all predicates."""
    animal, illness = st.sampled_from(ANIMALS), st.sampled_from(ILLNESSES)
    weights = st.sampled_from((1, 2, 3, Decimal("2.5"), Decimal("2.51"), "light"))
    found = [fact("is_bird", name) for name in draw(st.sets(animal, min_size=1))]
    found += [fact("is_penguin", name) for name in draw(st.sets(animal, max_size=1))]
    found += [fact("weighs", *pair) for pair in draw(st.sets(st.tuples(animal, weights), max_size=4))]
    found += [fact("has_illness", *pair) for pair in draw(st.sets(st.tuples(animal, illness), max_size=2))]
    return found + [fact("is_serious", name) for name in draw(st.sets(illness))]


def expected(found: Sequence[FactRecord]) -> dict[str, set[tuple[Value, ...]]]:
    """The conclusions by rule, by loops over the facts."""
    rows: dict[str, set[tuple[Value, ...]]] = {"is_bird": set()}
    for record in found:
        rows.setdefault(record.predicate, set()).add(record.arguments)
    serious = {name for (name,) in rows.get("is_serious", ())}
    ill = {animal for animal, illness in rows.get("has_illness", ()) if illness in serious}
    flying = set()
    for animal, weight in rows.get("weighs", ()):
        is_heavy = not isinstance(weight, str) and weight * 2 > 5 and "flu" not in serious
        excepted = (animal,) in rows.get("is_penguin", ()) or animal in ill or is_heavy
        if (animal,) in rows["is_bird"] and not excepted:
            flying.add((animal, weight))
    return {"flies": flying, "stays": {row for row in rows["is_bird"] if row[0] not in {name for name, _ in flying}}}


def conclusions(records: Sequence[object]) -> set[tuple[Value, ...]]:
    found = set()
    for record in records:
        atom = proof_from_json(record.proof).goal.atom  # type: ignore[attr-defined,union-attr]
        found.add(tuple(term.value for term in atom.arguments))
    return found


@settings(max_examples=cases(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(earlier=aviaries(), later=aviaries())
def test_both_engines_except_what_loops_over_the_facts_do(
    earlier: list[FactRecord], later: list[FactRecord], prolog: PrologSession
) -> None:
    """Exceptions by a fact, by a join, by arithmetic and by another rule agree, also after facts came and went."""
    library = library_of(BIRDS)
    with KnowledgeBase() as kb:
        for change in (earlier, later):
            kb.add_facts(change)
            kb.withdraw([earlier[-1].id], "wrong", "user")
            derive_all(kb, library, [library.rule(name) for name in RULES], session=prolog)
            right = expected(list(kb.facts()))
            for name in RULES:
                rule = library.rule(name)
                kept = KeptSubstitutions(rule, {Distribution.HEAD: [Substitution()]}, RUN_ID)
                facts = Theory(library, kb).relevant_to(rule).facts()
                assert conclusions(derive_statements(prolog, library, facts, kept)) == right[name], name
                assert conclusions(list(read_statements(kb, library, rule, prolog))) == right[name], name


def test_rules_with_exceptions_are_derived_in_sql(prolog: PrologSession) -> None:
    """SQL decides exceptions, and a later exception withdraws what the rule concluded."""
    library = library_of(BIRDS)
    with KnowledgeBase() as kb:
        kb.add_facts([fact("is_bird", "tit"), fact("weighs", "tit", 1)])
        first = derive_all(kb, library, [library.rule("flies")], session=prolog).rules[0]
        kb.add_facts([fact("is_penguin", "tit")])
        later = derive_all(kb, library, [library.rule("flies")], session=prolog).rules[0]
    assert [(rule.engine, rule.statements) for rule in (first, later)] == [("sql", 1), ("sql", 0)]


def test_the_unknown_is_no_exception(prolog: PrologSession) -> None:
    """Over an open predicate a default holds until an exception is known, while `not` needs a known denial."""
    text = "given is_bird(Animal)\noracle is_ill(Animal)\n@generic none\nis_bird(Animal X) -> {} {}\n"
    with KnowledgeBase() as kb:
        kb.add_facts([fact("is_bird", "tit")])
        default = library_of(text.format("flies(Animal X)", "unless is_ill(Animal X)"))
        strict = library_of(text.format("", "").replace("->", "& not is_ill(Animal X) -> flies(Animal X)"))
        assert run_query(Theory(default, kb), "flies(X)", session=prolog).rows == [("tit",)]
        assert run_query(Theory(strict, kb), "flies(X)", session=prolog).rows == []
        kb.add_facts([fact("is_ill", "tit")])
        assert run_query(Theory(default, kb), "flies(X)", session=prolog).rows == []


def test_proofs_and_reasons_name_exceptions(prolog: PrologSession) -> None:
    """A proof says that no exception is known; `why-not` says that one applies, and proves it."""
    library = library_of(BIRDS)
    with KnowledgeBase() as kb:
        kb.add_facts(
            [fact("is_bird", "tit"), fact("weighs", "tit", 1), fact("is_bird", "auk"), fact("weighs", "auk", 1)]
        )
        kb.add_facts([fact("is_penguin", "auk")])
        derive_all(kb, library, [library.rule("flies")], session=prolog)
        (record,) = read_statements(kb, library, library.rule("flies"), prolog)
        assert proof_text(proof_from_json(record.proof)).count("[none was provable]") == 3
        story = why_not(Theory(library, kb), "can_fly(auk, 1)", session=prolog)
        told = story_text(story)
        assert "an exception applies: there is an exception for auk" in told
        assert 'is_penguin("auk")  [' in told


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("p(T X) -> q(T X) unless r(T X)", "p(T X) -> q(T X) unless r(T X)"),
        ("p(T X) -> q(T X)\n  unless r(T X)\n  unless s(T X) & t(T X)", "p(T X) -> q(T X) unless r(T X) unless s(T X) & t(T X)"),
        ("q(T X) :- p(X) unless r(X), s(X) unless\n t(X)", "p(T X) -> q(T X) unless r(T X) & s(T X) unless t(T X)"),
        ("p(T X) & n(T X, Number K) -> q(T X)\nunless K > 3\nunless not r(T X)", "p(T X) & n(T X, Number K) -> q(T X) unless K > 3 unless not r(T X)"),
        ("p(T X) -> q(T X) unless unless(T X)", "p(T X) -> q(T X) unless unless(T X)"),
        ("unless(T X) & p(T X) -> unless(T X)", "unless(T X) & p(T X) -> unless(T X)"),
    ],
)  # fmt: skip
def test_exceptions_are_read_and_written(written: str, read: str) -> None:
    """One line or several, forward or backward, beside a predicate called `unless`; the text parses to the same rule."""
    library = library_of(written)
    assert library.rules[0].sentence == read
    assert library_of(format_library(library)) == library
    assert library_of(formatted_rules(written)) == library


def test_exceptions_have_the_same_name_in_every_reading() -> None:
    """The predicate of an exception follows from its text, so a kept rule under another name still has it."""
    first, second = (library_of(f"@name {name}\np(T X) -> q(T X) unless r(T X)").rules[0] for name in ("a", "b"))
    assert first.premise == second.premise
    assert first.premise != library_of("p(T X) -> q(T X) unless s(T X)").rules[0].premise


def test_a_rule_may_be_called_like_the_one_that_an_exception_stands_for() -> None:
    """A rule of the user's with that name is one more rule, and the exception holds."""
    text = 'given p(T)\n@name a\np(T X) -> q(T X) unless r(T X)\n@name "exception to a"\np(T X) -> s(T X)'

    closed = library_of(text).with_closure()

    concluded = [rule.conclusion.atom.predicate for rule in closed.rules if rule.name == "exception to a"]
    assert concluded[0] == "s"
    assert len(concluded) == 2
    assert closed.with_closure().rules == closed.rules


def test_faults_of_exceptions() -> None:
    """An exception without a shared variable is rejected; one that rests on its own rule is an error of `check`."""
    for exception in ("r(T Y)", "r(T Y) & s(T Y)"):  # shown where it begins
        with pytest.raises(RulesRejected, match=":1:25: error HPX062"):
            library_of(f"p(T X) -> q(T X) unless {exception}")
    with pytest.raises(RulesRejected, match="HPX001"):
        library_of("p(T X) -> q(T X) unless")
    cycle = library_of(
        "given p(T)\n@generic none\np(T X) -> q(T X) unless r(T X)\n@generic none\np(T X) & q(T X) -> r(T X)"
    )
    assert "HPX109" in [diagnostic.code for diagnostic in check_library(cycle)]
    plain = library_of(BIRDS)
    assert {diagnostic.code for diagnostic in check_library(plain)} <= {"HPX202", "HPX203", "HPX201", "HPX302"}
