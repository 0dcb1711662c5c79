"""Rule mining: the rules by which facts were made are mined with the right figures, and go through the review sheet."""

from __future__ import annotations

import csv
import itertools
import json
import random
import re
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.expansion.rule_file import Sources, file_text
from hapax.engine.mining import mine as mining
from hapax.engine.mining import screening
from hapax.engine.mining.measuring import RuleMeasures
from hapax.engine.mining.mine import MinedRule, MiningOptions, mine
from hapax.engine.mining.review import mined_review, summary, without_output
from hapax.engine.mining.shapes import RuleShape, shapes, ways_to_match
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library, parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Value, Variable
from hapax.kb import connection
from hapax.kb.records import (
    AtomPattern,
    Candidate,
    Decision,
    DenialRecord,
    FactRecord,
    PredicateRecord,
    Question,
    RunRecord,
    Source,
)
from hapax.kb.store import KnowledgeBase

NO_RULES = Library()
ALL = MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0, examples=0)
"""Every rule with any support."""

TYPES = {
    "lives_in": ("Person", "City"),
    "lies_in": ("City", "Country"),
    "citizen_of": ("Person", "Country"),
    "born_in": ("Person", "City"),
    "parent_of": ("Person", "Person"),
    "child_of": ("Person", "Person"),
    "sibling_of": ("Person", "Person"),
    "speaks": ("Person", "Language"),
    "spoken_in": ("Language", "Country"),
    "is_adult": ("Person",),
    "may_vote_in": ("Person", "Country"),
    "works_for": ("Person", "Firm"),
    "seated_in": ("Firm", "City"),
    "commutes_to": ("Person", "City"),
    "uses_currency": ("Country", "Currency"),
    "pays_with": ("Person", "Currency"),
    "colleague_of": ("Person", "Person"),
    "drives_on": ("Country", "Side"),
    "drives_left": ("Country",),
}

RULES = """
parent_of(Person Y, Person X) -> child_of(Person X, Person Y)
lives_in(Person X, City Z) & lies_in(City Z, Country Y) -> citizen_of(Person X, Country Y)
parent_of(Person Z, Person X) & parent_of(Person Z, Person Y) -> sibling_of(Person X, Person Y)
lives_in(Person X, City Z) & lies_in(City Z, Country W) & spoken_in(Language Y, Country W) -> speaks(Person X, Language Y)
works_for(Person X, Firm Z) & seated_in(Firm Z, City Y) -> commutes_to(Person X, City Y)
citizen_of(Person X, Country Z) & uses_currency(Country Z, Currency Y) -> pays_with(Person X, Currency Y)
citizen_of(Person X, Country Y) & is_adult(Person X) -> may_vote_in(Person X, Country Y)
works_for(Person X, Firm Z) & works_for(Person Y, Firm Z) -> colleague_of(Person X, Person Y)
drives_on(Country X, "left") -> drives_left(Country X)
child_of(Person X, Person Y) -> parent_of(Person Y, Person X)
"""
"""Rules of several shapes: inverse, chains of two and three, shared subject and object, condition, constant."""


def stored(facts: Iterable[tuple[str, tuple[Value, ...]]], types: dict[str, tuple[str, ...]]) -> KnowledgeBase:
    """A knowledge base in memory with these facts."""
    kb = KnowledgeBase()
    kb.add_facts(FactRecord(name, values, types.get(name, ()), Source.GIVEN) for name, values in facts)
    return kb


def world(seed: int = 1, people: int = 400) -> list[tuple[str, tuple[str, ...]]]:
    """Facts made by RULES: a tenth of the conclusions is missing, and a twentieth of the facts is noise."""
    rng = random.Random(seed)
    persons = [f"person {number}" for number in range(people)]
    cities = [f"city {number}" for number in range(60)]
    countries = [f"country {number}" for number in range(30)]
    languages = [f"language {number}" for number in range(25)]
    firms = [f"firm {number}" for number in range(80)]
    currencies = [f"currency {number}" for number in range(20)]
    made: set[tuple[str, tuple[str, ...]]] = set()

    def each(name: str, subjects: list[str], values: list[str]) -> dict[str, str]:
        chosen = {subject: rng.choice(values) for subject in subjects}
        made.update((name, pair) for pair in chosen.items())
        return chosen

    lies, lives = each("lies_in", cities, countries), each("lives_in", persons, cities)
    each("born_in", persons, cities)
    spoken = each("spoken_in", languages, countries)
    works, seats = each("works_for", persons, firms), each("seated_in", firms, cities)
    money, sides = each("uses_currency", countries, currencies), each("drives_on", countries, ["left", "right"])
    adults = {person for person in persons if rng.random() < 0.6}
    made.update(("is_adult", (person,)) for person in adults)
    parents = {child: rng.sample(persons[: people // 4], 1)[0] for child in persons[people // 4 :]}
    concluded: list[tuple[str, tuple[str, ...]]] = []
    for child, parent in parents.items():
        made.add(("parent_of", (parent, child)))
        concluded.append(("child_of", (child, parent)))
        concluded += [("sibling_of", (child, other)) for other in parents if parents[other] == parent != child != other]
    for person in persons:
        country = lies[lives[person]]
        concluded.append(("citizen_of", (person, country)))
        concluded.append(("pays_with", (person, money[country])))
        concluded.append(("commutes_to", (person, seats[works[person]])))
        concluded += [("speaks", (person, language)) for language in languages if spoken[language] == country]
        concluded += [("may_vote_in", (person, country))] if person in adults else []
        concluded += [
            ("colleague_of", (person, other)) for other in persons if works[other] == works[person] and other != person
        ]
    concluded += [("drives_left", (country,)) for country in countries if sides[country] == "left"]
    made.update(fact for fact in concluded if rng.random() < 0.9)
    pools = {"Person": persons, "City": cities, "Country": countries, "Language": languages, "Currency": currencies}
    for name in ("citizen_of", "speaks", "commutes_to", "pays_with", "may_vote_in"):
        for _ in range(people // 20):
            made.add((name, tuple(rng.choice(pools[data_type]) for data_type in TYPES[name])))
    return sorted(made)


def spelled(rule: Rule) -> str:
    """The rule with variables named by first occurrence, its premises in the order that makes this the least text."""
    texts = []
    for order in itertools.permutations(rule.premise):
        names: dict[str, str] = {}
        text = " & ".join(map(str, order)) + f" -> {rule.conclusion}"
        for variable in Rule("", tuple(order), rule.conclusion).variables:
            names[str(variable)] = f"{variable.data_type} V{len(names)}"
        for old, new in names.items():
            text = text.replace(old, f"<{new}>")
        texts.append(text)
    return min(texts)


def test_the_rules_that_made_the_facts_are_mined() -> None:
    """At least nine of the ten rules that made a noisy world are mined, and no reversal that its facts deny."""
    mined = mine(stored(world(people=100), TYPES), NO_RULES, MiningOptions(constants=True, examples=0))
    found = {spelled(item.rule) for item in mined.rules}
    expected = {spelled(rule) for rule in hapax.parse_rules(RULES).rules}
    reversed_rules = hapax.parse_rules(
        """
        citizen_of(Person X, Country Z) & lies_in(City Y, Country Z) -> lives_in(Person X, City Y)
        commutes_to(Person X, City Z) & seated_in(Firm Y, City Z) -> works_for(Person X, Firm Y)
        pays_with(Person X, Currency Z) & uses_currency(Country Y, Currency Z) -> citizen_of(Person X, Country Y)
        sibling_of(Person X, Person Y) -> parent_of(Person X, Person Y)
        sibling_of(Person X, Person Y) -> colleague_of(Person X, Person Y)
        born_in(Person X, City Y) -> lives_in(Person X, City Y)
        """
    )

    assert len(expected & found) >= 9, expected - found
    assert not {spelled(rule) for rule in reversed_rules.rules} & found


def test_measures_on_a_small_example() -> None:
    """Support, head coverage, standard and PCA confidence agree with figures worked out by hand.

    Of four who live in a city two were born there, one was born elsewhere, and of one no birthplace is known.
    """
    facts = [("lives_in", (name, "Rome")) for name in ("ann", "bob", "cem", "dan")]
    facts += [("born_in", ("ann", "Rome")), ("born_in", ("bob", "Rome")), ("born_in", ("cem", "Oslo"))]
    facts += [("born_in", ("eva", "Oslo"))]
    with stored(facts, TYPES) as kb:
        (before,) = (item for item in mine(kb, NO_RULES, ALL).rules if is_born_where_they_live(item.rule))
        kb.add_denials([DenialRecord("born_in", ("dan", "Rome"), 0.01)])
        (after,) = (item for item in mine(kb, NO_RULES, ALL).rules if is_born_where_they_live(item.rule))

    assert before.measures.support == 2
    assert before.measures.head_coverage == 2 / 4
    assert before.measures.confidence == 2 / 4
    assert before.measures.pca_confidence == 2 / 3
    assert (after.measures.pca_confidence, after.measures.rejected) == (2 / 4, 1)
    assert after.measures.confidence == before.measures.confidence


def is_born_where_they_live(rule: Rule) -> bool:
    return rule.sentence == "lives_in(Person X, City Y) -> born_in(Person X, City Y)"


def test_values_that_the_critic_gate_rejected_are_counter_examples() -> None:
    """A prediction whose value the critic rejected last counts against a rule, and is its first counter-example."""
    facts = [("lives_in", (name, "Rome")) for name in ("ann", "bob", "cem", "dan")]
    facts += [("born_in", ("ann", "Rome")), ("born_in", ("bob", "Rome"))]
    with stored(facts, TYPES) as kb:
        judged(kb, "cem", [True, False], "is_mayor_of")  # of a predicate without facts
        judged(kb, "cem", verdicts=[True, False])
        judged(kb, "dan", verdicts=[False, True])
        mined = mine(kb, NO_RULES, MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0))
    (rule,) = (item for item in mined.rules if is_born_where_they_live(item.rule))

    assert rule.measures.rejected == 1
    assert rule.measures.pca_confidence == 2 / 3
    assert rule.counter_examples == ("cem lives in Rome: cem born in Rome",)
    assert rule.examples[0] == "ann lives in Rome: ann born in Rome"


def test_a_value_that_two_atoms_were_asked_about_is_no_counter_example() -> None:
    """Nobody knows which of them the critic denied."""
    facts = [("lives_in", (name, "Rome")) for name in ("ann", "bob", "cem")] + [("born_in", ("ann", "Rome"))]
    with stored(facts, TYPES) as kb:
        judged(kb, "cem", [False], "born_in", "is_mayor_of")
        judged(kb, "bob", verdicts=[False])
        mined = mine(kb, NO_RULES, MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0))
    (rule,) = (item for item in mined.rules if is_born_where_they_live(item.rule))

    assert rule.measures.rejected == 1


def judged(kb: KnowledgeBase, name: str, verdicts: list[bool], *predicates: str) -> None:
    """Store a candidate of `born_in(NAME, ?)` with these decisions of the critic gate, one in each run."""
    patterns = tuple(AtomPattern(predicate, (name, None)) for predicate in predicates or ("born_in",))
    question = Question(patterns, "City")
    candidate = Candidate(question.id, "Rome", "Rome", "call", 0)
    kb.add_questions([question])
    kb.add_candidates([candidate])
    for number, accepted in enumerate(verdicts):
        run = RunRecord(f"run {number}", "search", {}, "", "2026-01-01")
        kb.start_run(run)
        kb.add_decisions([Decision(run.id, "critic", candidate.id, accepted, 0.5, 0.6, "a reason")])


# --- against a brute-force evaluator


def brute_force(rule: Rule, facts: set[tuple[str, tuple[Value, ...]]], rejected: set[Any], by_second: bool) -> Any:
    """Support, facts of the head, predictions and predictions that count, by trying all values for all variables."""
    values = sorted({value for _, arguments in facts for value in arguments}, key=repr)
    names = [variable.name for variable in rule.variables]
    head_names = {variable.name for variable in rule.conclusion.variables}
    supported, predicted = set(), set()
    for chosen in itertools.product(values, repeat=len(names)):
        binding = dict(zip(names, chosen, strict=True))

        def ground(atom: Any, binding: dict[str, Value] = binding) -> tuple[str, tuple[Value, ...]]:
            terms = (binding[t.name] if isinstance(t, Variable) else t.value for t in atom.arguments)
            return atom.predicate, tuple(terms)

        head = ground(rule.conclusion.atom)
        body = [ground(literal.atom) for literal in rule.literals]
        if head in body or not all(atom in facts for atom in body):
            continue
        predicted.add(head)
        inner = [binding[name] for name in names if name not in head_names]
        others = [binding[name] for name in names]
        if head in facts and all(others.count(value) == 1 for value in inner):
            supported.add(head)
    name = rule.conclusion.atom.predicate
    constants = {
        place: term.value for place, term in enumerate(rule.conclusion.atom.arguments) if isinstance(term, Constant)
    }
    of_head = {
        arguments
        for other, arguments in facts
        if other == name and all(arguments[place] == value for place, value in constants.items())
    }
    given_place = next(iter({0, 1} - set(constants)), 0) if constants else int(by_second)
    known = {arguments[given_place] for other, arguments in facts if other == name}
    counts = {head for head in predicted if head[1][given_place] in known or head in rejected}
    if len(rule.conclusion.atom.arguments) == 1:
        counts = predicted
    return len(supported), len(of_head), len(predicted), len(counts), len(predicted & rejected)


NODES = st.sampled_from(["a", "b", "c", 3])
SMALL = st.sets(
    st.one_of(
        st.tuples(st.sampled_from(["p", "q", "r"]), st.tuples(NODES, NODES)), st.tuples(st.just("u"), st.tuples(NODES))
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=cases(6), deadline=None)
@given(SMALL, st.sets(st.tuples(st.sampled_from(["p", "q"]), st.tuples(NODES, NODES)), max_size=3), st.booleans())
def test_measures_equal_those_of_brute_force(facts: set[Any], rejected: set[Any], constants: bool) -> None:
    """On random knowledge bases every mined rule has the figures that trying all values for all variables gives."""
    options = MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0, constants=constants, examples=0)
    with stored(facts, {}) as kb:
        kb.add_denials(DenialRecord(name, arguments, 0.0) for name, arguments in sorted(rejected, key=repr))
        mined = mine(kb, NO_RULES, options)
    for item in mined.rules:
        name = item.rule.conclusion.atom.predicate
        pairs = [arguments for other, arguments in facts if other == name]
        by_second = len(pairs[0]) == 2 and len({pair[1] for pair in pairs}) > len({pair[0] for pair in pairs})
        measures = item.measures
        found = (measures.support, measures.facts, measures.predictions, measures.counted, measures.rejected)

        assert found == brute_force(item.rule, facts, rejected - facts, by_second), item.rule.sentence


def closed_rules(most: int) -> Iterator[Rule]:
    """All closed rules over p and q with two variables of the head and up to this many premises of a chain."""
    for premises in range(1, most + 1):
        ends = ["X", *"ZW"[: premises - 1], "Y"]
        for names in itertools.product("pq", repeat=premises):
            for turned in itertools.product((False, True), repeat=premises):
                atoms = []
                for place, (name, is_turned) in enumerate(zip(names, turned, strict=True)):
                    pair = (ends[place], ends[place + 1])
                    first, second = reversed(pair) if is_turned else pair
                    atoms.append(f"{name}(Object {first}, Object {second})")
                for head in "pq":
                    yield hapax.parse_rules(f"{' & '.join(atoms)} -> {head}(Object X, Object Y)").rules[0]


@settings(max_examples=cases(6), deadline=None)
@given(st.sets(st.tuples(st.sampled_from(["p", "q"]), st.tuples(NODES, NODES)), min_size=4, max_size=12))
def test_no_supported_chain_is_lost(facts: set[Any]) -> None:
    """Each chain with support is mined, or a rule is that subsumes it or predicts the same with no less confidence."""
    with stored(facts, {}) as kb:
        mined = mine(kb, NO_RULES, ALL)
    best = {name: [item for item in mined.rules if item.rule.conclusion.atom.predicate == name] for name in "pq"}
    for rule in closed_rules(2):
        head = rule.conclusion.atom.predicate
        pairs = [arguments for other, arguments in facts if other == head]
        if not pairs or str(rule.conclusion) in map(str, rule.premise):
            continue
        by_second = len({pair[1] for pair in pairs}) > len({pair[0] for pair in pairs})
        support, _, _, counted, _ = brute_force(rule, facts, set(), by_second)

        if support:
            assert any(item.measures.pca_confidence >= support / counted for item in best[head]), rule.sentence


# --- what is left out


@pytest.mark.parametrize(
    ("text", "types", "declared"),
    [
        (
            "",
            {"near": ("Place", "Place"), "beside": ("Place", "Place")},
            ["beside(Place, Place)", "near(Place, Place)"],
        ),
        (
            "given near(Place, Place)",
            {"near": ("Place", "Place"), "beside": ("Place", "Place")},
            ["beside(Place, Place)"],
        ),
        ("", {"near": ("Place", "Place")}, ["near(Place, Place)"]),
        ("", {}, []),
    ],
)
def test_a_mined_rule_brings_the_declarations_it_needs(
    text: str, types: dict[str, tuple[str, ...]], declared: list[str]
) -> None:
    """A predicate that the library does not declare is given with the types of the facts, if they have types at all places."""
    facts = [(name, (f"a{number}", f"b{number}")) for number in range(20) for name in ("near", "beside")]
    with stored(facts, types) as kb:
        found = mine(kb, hapax.parse_rules(text), MiningOptions(examples=0)).rules
    rule = next(item for item in found if item.rule.conclusion.atom.predicate == "beside")

    assert sorted(f"{each.name}({', '.join(each.argument_types)})" for each in rule.signatures) == declared
    assert all(each.kind.value == "given" for each in rule.signatures)


def test_rules_that_say_nothing_new_are_left_out() -> None:
    """A conclusion among the premises, mirrored by `symmetric` too, special cases, and rules of the library are left out."""
    pairs = [(f"a{number}", f"b{number}") for number in range(20)]
    facts = [(name, pair) for pair in pairs for name in ("near", "beside")]
    facts += [("blue", (pair[0],)) for pair in pairs]
    types = {"near": ("Place", "Place"), "beside": ("Place", "Place"), "blue": ("Place",)}
    declared = hapax.parse_rules("given near(Place, Place)\nsymmetric near/2")
    known = hapax.parse_rules("near(Place X, Place Y) -> beside(Place X, Place Y)")
    with stored(facts, types) as kb:
        plain = [item.rule.sentence for item in mine(kb, NO_RULES, MiningOptions(examples=0)).rules]
        symmetric = mine(kb, declared, MiningOptions(examples=0))
        stated = mine(kb, known, MiningOptions(examples=0))

    assert "near(Place X, Place Y) -> beside(Place X, Place Y)" in plain
    assert not [sentence for sentence in plain if "blue" in sentence.partition("->")[0]]
    assert "near(Place X, Place Y) -> near(Place Y, Place X)" not in [item.rule.sentence for item in symmetric.rules]
    assert all(item.rule.premise != (item.rule.conclusion,) for item in symmetric.rules)
    assert "near(Place X, Place Y) -> beside(Place X, Place Y)" not in [item.rule.sentence for item in stated.rules]
    assert any("the library states as much" in note for note in stated.notes)


def test_only_places_of_one_type_join() -> None:
    """Equal values of types that have nothing in common do not join; those of a subtype do."""
    facts: list[tuple[str, tuple[Value, ...]]] = [("founded_in", (f"firm {n}", 1900 + n)) for n in range(20)]
    facts += [("weighs", (f"firm {n}", 1900 + n)) for n in range(20)]
    apart = {"founded_in": ("Firm", "Year"), "weighs": ("Firm", "Weight")}
    below = hapax.parse_rules("type Startup < Firm")
    with stored(facts, apart) as kb:
        assert mine(kb, NO_RULES, MiningOptions(examples=0)).rules == ()
    with stored(facts, {"founded_in": ("Startup", "Year"), "weighs": ("Firm", "Year")}) as kb:
        sentences = [item.rule.sentence for item in mine(kb, below, MiningOptions(examples=0)).rules]

    assert "founded_in(Startup X, Year Y) -> weighs(Startup X, Year Y)" in sentences


def test_the_time_limit_names_what_was_not_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time limit notes name each shape with the conclusions for which it was not explored."""
    # A clock that goes on by a second whenever it is read.
    ticks = itertools.count(time.monotonic())
    monkeypatch.setattr("hapax.engine.mining.mine.system.monotonic", lambda: next(ticks))
    # SQLite asks for the time only in long statements, so the screening does here.
    real = screening.Screening.screened

    def slow(self: screening.Screening, shape: Any) -> Any:
        self._tables._check_time()
        return real(self, shape)

    monkeypatch.setattr(screening.Screening, "screened", slow)
    with stored(world(people=40), TYPES) as kb:
        mined = mine(kb, NO_RULES, MiningOptions(seconds=30.0, examples=0))

    notes = [note for note in mined.notes if note.startswith("not explored within 30 seconds: h(X, Y) <- ")]
    assert notes


def test_a_sample_is_named_and_the_measures_stay_exact() -> None:
    """Screening by few facts says so; rules that pass have the figures of all facts."""
    with stored(world(), TYPES) as kb:
        sampled = mine(kb, NO_RULES, MiningOptions(sample=50, premises=2, examples=0))
        whole = mine(kb, NO_RULES, MiningOptions(sample=0, premises=2, examples=0))
    exact = {item.rule.sentence: item.measures for item in whole.rules}
    common = [item for item in sampled.rules if item.rule.sentence in exact]

    assert any(note.startswith("screened by 50 of ") for note in sampled.notes)
    assert not any(note.startswith("screened by") for note in whole.notes)
    assert len(common) >= 6
    assert all(exact[item.rule.sentence] == item.measures for item in common)


def test_shapes_are_closed_and_connected() -> None:
    """Each variable of a shape occurs twice, and no two shapes differ only in names."""
    for premises in (1, 2, 3):
        found = shapes(premises)
        for shape in found:
            used = [*range(shape.head), *itertools.chain(*shape.premises)]
            assert min(map(used.count, used)) > 1
        assert len(set(found)) == len(found)
    assert [len(shapes(premises)) for premises in (1, 2, 3)] == [2, 7, 26]
    assert [str(shape) for shape in shapes(2)] == [
        "h(X, Y) <- p(X, Y) & p(X, Y)",
        "h(X, Y) <- p(X, Z) & p(Y, Z)",
        "h(X, Y) <- p(X, Y) & p(X)",
        "h(X, Y) <- p(X, Y) & p(Y)",
        "h(X) <- p(X) & p(X)",
        "h(X) <- p(X, Z) & p(X, Z)",
        "h(X) <- p(X, Z) & p(Z)",
    ]


# --- hostile values, the sheet, the command


def test_hostile_values_are_quoted() -> None:
    """Constants with quotation marks, backslashes, rule text or SQL stand in rules that read back as they were."""
    hostile: list[Value] = ['x"), halt(', "a\\", "'; DROP TABLE facts; --", "new\nline", Decimal("1.50"), "%_", "[1]"]
    facts: list[tuple[str, tuple[Value, ...]]] = []
    for number, value in enumerate(hostile):
        names = [f"thing {number} {part}" for part in range(12)]
        facts += [("p", (name, value)) for name in names] + [("q", (name, value)) for name in names]
        facts += [("noise", (name, f"other {name}")) for name in names]
    with stored(facts, {}) as kb:
        mined = hapax.mine_rules(NO_RULES, kb, MiningOptions(constants=True, min_coverage=0, premises=1))
    with_constants = [item.rule for item in mined.rules if item.rule.conclusion.atom.arguments[1:2] != ()]
    read = hapax.parse_rules(mined.text)

    assert [rule.sentence for rule in read.rules] == [item.rule.sentence for item in mined.rules]
    assert with_constants


@pytest.mark.parametrize("premises", [1, 2])
def test_rules_have_up_to_two_constants(premises: int) -> None:
    """Where one premise or two decide, the conclusion and a premise may have a constant each."""
    facts: list[tuple[str, tuple[Value, ...]]] = []
    for number in range(40):
        person, is_parisian, is_adult = f"person {number}", number % 2 == 0, number % 4 < 2
        facts.append(("lives_in", (person, "Paris" if is_parisian else "Rome")))
        facts += [("is_adult", (person,))] if is_adult else []
        speaks = is_parisian and (is_adult or premises == 1)
        facts.append(("speaks", (person, "French" if speaks else "Italian")))
    mined = mine(stored(facts, TYPES), NO_RULES, MiningOptions(premises=premises, constants=True, examples=0)).rules

    conditions = ['lives_in(Person X, "Paris")', *(["is_adult(Person X)"] if premises == 2 else [])]
    found = [str(item.rule).splitlines()[-1].split(" -> ") for item in mined]
    assert any(
        end == 'speaks(Person X, "French")' and sorted(start.split(" & ")) == sorted(conditions) for start, end in found
    )


def test_constants_are_mined_when_asked() -> None:
    """A rule about a constant is mined with --constants alone, whatever text the constant is."""
    value = 'the "left"\\ side'
    facts: list[tuple[str, tuple[Value, ...]]] = []
    for number in range(30):
        side = value if number % 2 else f"side {number}"
        facts.append(("drives_on", (f"country {number}", side)))
        facts += [("drives_left", (f"country {number}",))] if number % 2 else []
    with stored(facts, TYPES) as kb:
        assert mine(kb, NO_RULES, MiningOptions(premises=1, examples=0)).rules == ()
        mined = mine(kb, NO_RULES, MiningOptions(premises=1, constants=True, examples=0)).rules
    (rule,) = (item for item in mined if item.rule.conclusion.atom.predicate == "drives_left")

    (atom,) = (literal.atom for literal in rule.rule.literals)
    assert atom.arguments[1] == Constant(value)
    assert rule.measures.confidence == 1.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a knowledge base of people, cities and countries, as the working folder."""
    monkeypatch.chdir(tmp_path)
    with KnowledgeBase("x.db") as kb:
        facts = [(name, values) for name, values in world(people=120) if name in ("lives_in", "lies_in", "citizen_of")]
        kb.add_facts(FactRecord(name, values, TYPES[name], Source.GIVEN) for name, values in facts)
    (tmp_path / "words.rules").write_text(
        'given lives_in(Person, City): "[1] has a home in [2]"\ngiven lies_in(City, Country): "[1] lies in [2]"\n'
        'given citizen_of(Person, Country): "[1] is a citizen of [2]"\n',
        encoding="utf-8",
    )
    return tmp_path


MINE = ("rules", "mine", "--db", "x.db", "--rules", "words.rules")
RULE = "lives_in(Person X, City Z) & lies_in(City Z, Country Y) -> citizen_of(Person X, Country Y)"


def test_accepted_rules_are_written_and_pass_check(place: Path) -> None:
    """A rule that is accepted in the sheet is written to the output by the next run, and `check` accepts the file."""
    first = invoke(*MINE, "-o", "mined.rules", "--review", "later")
    rows = sheet_rows()
    row = next(row for row in rows if RULE in row["rules"])

    assert first.exit_code == 0
    assert not Path("mined.rules").exists()
    # Sheets of earlier versions have this id for the rule.
    assert row["proposal"] == "7106e7eaad3c"
    assert "has a home in" in row["statement"]
    assert "has a home in" in row["examples"]
    assert float(row["pca_confidence"]) > 0.8

    for other in rows:
        other["decision"] = "accept" if other is row else "reject"
    with Path("mined.decisions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    second = invoke(*MINE, "-o", "mined.rules")
    text = Path("mined.rules").read_text("utf-8")

    assert second.exit_code == 0
    assert text.startswith("# Written by `hapax rules mine`")
    assert RULE in text
    assert invoke("check", "mined.rules", "words.rules").exit_code == 0
    # Its own output does not make the rule known.
    assert invoke(*MINE, "--rules", "mined.rules", "-o", "mined.rules").exit_code == 0
    assert RULE in Path("mined.rules").read_text("utf-8")


def sheet_rows() -> list[dict[str, str]]:
    with Path("mined.decisions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_mined_rule_gets_no_other_verb(place: Path) -> None:
    """A verb in the sheet of a mined rule is refused with the reason."""
    invoke(*MINE, "-o", "mined.rules", "--review", "later")
    sheet = Path("mined.decisions.csv")
    rows = sheet_rows()
    rows[0] |= {"decision": "accept", "verb": "belongs to"}
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    again = invoke(*MINE, "-o", "mined.rules", "--review", "later")

    assert again.exit_code == 1
    assert "keeps its predicates" in again.stderr


def test_the_table_and_json_say_the_same(place: Path) -> None:
    """The table has a row for each rule of --json, which has all figures, and two runs are equal."""
    table = invoke(*MINE)
    mined = json.loads(invoke(*MINE, "--json").stdout)

    assert RULE in table.stdout
    assert invoke(*MINE, "--json").stdout == json.dumps(mined, ensure_ascii=False) + "\n"
    assert set(mined["rules"][0]) >= {"support", "head_coverage", "confidence", "pca_confidence", "examples"}


def test_derived_conclusions_are_mined_when_asked(place: Path) -> None:
    """With --derived the conclusions of the library's rules are facts like others."""
    Path("more.rules").write_text(
        "@generic none\nlies_in(City X, Country Y) -> belongs_to(City X, Country Y)\n", encoding="utf-8"
    )
    arguments = (*MINE, "--rules", "more.rules", "--json")
    plain = json.loads(invoke(*arguments).stdout)
    derived = json.loads(invoke(*arguments, "--derived").stdout)

    assert not any("belongs_to" in rule["rule"] for rule in plain["rules"])
    assert any("belongs_to" in rule["rule"] for rule in derived["rules"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--review", "later"), "Name it with -o"),
        (("--premises", "4"), "4 is not in the range"),
        (("--json", "-o", "new.rules", "--review", "ask"), "--json prints no questions"),
    ],
)
def test_bad_usage_is_refused(place: Path, arguments: tuple[str, ...], message: str) -> None:
    """Options that do not fit together, or are out of range, end the command with exit code 2."""
    refused = invoke(*MINE, *arguments)

    assert refused.exit_code == 2
    assert message in refused.stderr


def test_options_out_of_range_are_refused() -> None:
    """The Python call refuses a threshold out of range with the name and the range."""
    with pytest.raises(hapax.HapaxError, match=r"min_pca is 1\.5\. Set it to a number between 0 and 1\."):
        hapax.MiningOptions(min_pca=1.5)


def test_premises_are_matched_from_the_head_outwards() -> None:
    """Each premise of an order has a variable that is bound before it, and one with bound variables alone comes at once."""
    chain = RuleShape(2, ((0, 2), (2, 1)))
    labelled = RuleShape(2, ((0, 2), (2, 1), (0,)))
    both = RuleShape(2, ((0, 1), (0, 2), (1,)))

    assert list(ways_to_match(chain)) == [(0, 1), (1, 0)]
    assert list(ways_to_match(labelled)) == [(2, 0, 1), (2, 1, 0)]
    assert list(ways_to_match(both)) == [(0, 2, 1)]


def test_mined_rules_that_a_person_changed_are_not_overwritten(place: Path) -> None:
    """A file that was written or changed by hand stays as it is, and the error says how to go on."""
    written = "# my own rules\nis_red(Thing A) -> is_warm(Thing A)\n"
    Path("mined.rules").write_text(written, "utf-8")

    refused = invoke(*MINE, "-o", "mined.rules", "--review", "accept-all")

    assert refused.exit_code == 1
    assert refused.stderr == (
        "error: mined.rules was written or changed by hand and is not overwritten. Name another file with -o.\n"
    )
    assert Path("mined.rules").read_text("utf-8") == written


def test_rules_that_are_not_compared_in_time_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time for comparisons is over, every measured rule stays, and a note gives their number."""
    options = MiningOptions(min_support=2, premises=1, examples=0)
    with stored(world(people=30), TYPES) as kb:
        compared_rules = mine(kb, NO_RULES, options)
        monkeypatch.setattr(mining, "_SECONDS_TO_COMPARE", -1.0)
        every = mine(kb, NO_RULES, options)
    kept = {item.rule.sentence for item in every.rules}

    assert {item.rule.sentence for item in compared_rules.rules} <= kept
    assert f"{len(kept)} rules not compared with the others: there are too many" in every.notes
    assert not any("not compared" in note for note in compared_rules.notes)


def test_rules_that_cannot_be_measured_in_time_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule whose measuring takes too long is left out and named; one whose examples do is kept without them."""
    options = MiningOptions(min_support=2, premises=1, examples=1)
    # SQLite asks for the time at every step.
    monkeypatch.setattr(connection, "_STEPS", 1)
    with stored(world(people=30), TYPES) as kb:
        usual = mine(kb, NO_RULES, options)
        with monkeypatch.context() as changed:
            changed.setattr(mining, "_SECONDS_OF_A_RULE", -1.0)
            hurried = mine(kb, NO_RULES, options)
        for method in ("_examples", "_repeats"):
            monkeypatch.setattr(mining._Miner, method, hurrying(getattr(mining._Miner, method), monkeypatch))
        bare = mine(kb, NO_RULES, options)
    texts = [item.rule.sentence for item in usual.rules]

    assert hurried.rules == ()
    (note,) = [note for note in hurried.notes if note.startswith("not measured in time: ")]
    assert " rules: " in note
    assert any(item.examples for item in usual.rules)
    assert {*texts} <= {item.rule.sentence for item in bare.rules}
    assert [(item.examples, item.counter_examples) for item in bare.rules] == [((), ())] * len(bare.rules)


def hurrying(method: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The method, with no time for a rule while it runs."""

    def hurried(*arguments: Any) -> Any:
        with monkeypatch.context() as changed:
            changed.setattr(mining, "_SECONDS_OF_A_RULE", -1.0)
            return method(*arguments)

    return hurried


def test_hubs_are_left_out_of_the_screening_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of a town where everybody lives are not followed, and counted by their predicate."""
    facts: list[tuple[str, tuple[Value, ...]]] = [("lives_in", (f"p{number}", "town")) for number in range(60)]
    facts += [("born_in", (f"p{number}", "town" if number % 2 else f"t{number}")) for number in range(60)]
    facts += [("parent_of", (f"p{number}", f"p{number + 1}")) for number in range(59)]
    monkeypatch.setattr(screening, "_MOST_LOOKUPS_OF_A_FACT", 3)
    with stored(facts, TYPES) as kb:
        mined = mine(kb, NO_RULES, MiningOptions(min_support=2, premises=2, examples=0))

    (note,) = [note for note in mined.notes if "too many neighbours" in note]
    assert note == (
        "sampled facts left out of the screening because they have too many neighbours: "
        "born_in/2 (29); lives_in/2 (58); parent_of/2 (57)"
    )


def test_what_an_earlier_run_wrote_is_no_part_of_the_library(place: Path, tmp_path: Path) -> None:
    """Rules and declarations of the output are left out, wherever else its predicates are used; a changed file is refused."""
    output, other = tmp_path / "mined.rules", tmp_path / "other.rules"
    library = parse_library(
        [("a", "given drives(Person, Car)\n@generic none\ndrives(Person A, Car B) -> owns(Person A, Car B)\n")]
    )
    output.write_text(file_text([(library, "one")], Sources(Library(), Library(), None, output)), "utf-8")
    other.write_text(
        "given rides(Person, Car)\n@generic none\nrides(Person A, Car B) -> sees(Person A, Car B)\n", "utf-8"
    )
    left = without_output(load_library([output, other]), output)

    assert [rule.conclusion.atom.predicate for rule in left.rules] == ["sees"]
    assert [signature.name for signature in left.signatures if signature.declared] == ["rides"]
    output.write_text(output.read_text("utf-8") + "# mine\n", "utf-8")
    with pytest.raises(HapaxError, match="was written or changed by hand"):
        without_output(left, output)


def test_tables_that_a_mining_left_are_replaced() -> None:
    """After one that an interruption ended, the next on the same connection begins anew."""
    with stored(world(people=30), TYPES) as kb:
        before = mine(kb, NO_RULES, MiningOptions(premises=1, examples=0))
        kb.database.conn.execute("CREATE TEMP TABLE mining_nodes (kind)")
        assert mine(kb, NO_RULES, MiningOptions(premises=1, examples=0)).rules == before.rules != ()


def test_figures_of_a_mined_rule_tell_rejected_predictions() -> None:
    """A sheet's note counts the predictions that a critic rejected, where there are any."""
    (rule,) = parse_library([("a.rules", "near(Place X, Place Y) -> beside(Place X, Place Y)")]).rules
    notes = [summary(MinedRule(rule, RuleMeasures(2, 8, 4, 3, rejected))) for rejected in (0, 1, 2)]

    figures = "support 2, head coverage 0.25, confidence 0.50, PCA confidence 0.67"
    assert notes == [figures, f"{figures}, 1 prediction rejected", f"{figures}, 2 predictions rejected"]


def test_mining_tells_where_it_is() -> None:
    """Facts are read first; then come the rules with one premise, and those with more."""
    told: list[str] = []
    with stored([("likes", (name, "tea")) for name in ("ann", "bob")], TYPES) as kb:
        mine(kb, NO_RULES, MiningOptions(min_support=1, premises=2, examples=0), told.append)

    assert told[0] == "reading facts"
    premises = [int(number) for text in told for number in re.findall(r"(\d) premise", text)]
    assert premises == sorted(premises)
    assert set(premises) == {1, 2}


def test_examples_of_a_mined_rule_are_one_cell_of_the_sheet(tmp_path: Path) -> None:
    """Several stand behind each other, with a semicolon between them."""
    library = parse_library([("a.rules", "near(Place X, Place Y) -> beside(Place X, Place Y)")])
    mined = MinedRule(library.rules[0], RuleMeasures(2, 8, 4, 3, 0), examples=("a: b", "c: d"))
    review = mined_review([mined], NO_RULES, tmp_path / "new.rules", None)

    (row,) = review.sheet.rows
    assert (row.additional["support"], row.additional["examples"]) == ("2", "a: b; c: d")
    assert row.additional["counter_examples"] == ""


def test_types_that_a_search_stored_outrank_those_of_facts() -> None:
    """A predicate's stored types are those of its mined rules, whatever its facts say."""
    facts = [(name, (f"a{number}", f"b{number}")) for number in range(20) for name in ("near", "beside")]
    with stored(facts, {"near": ("Place", "Place"), "beside": ("Place", "Place")}) as kb:
        kb.add_predicates(
            PredicateRecord(name, ("Town", "Port"), "given", None, None, None) for name in ("near", "beside")
        )
        found = {item.rule.sentence for item in mine(kb, NO_RULES, MiningOptions(examples=0)).rules}

    assert "near(Town X, Port Y) -> beside(Town X, Port Y)" in found
