"""Rule mining against a brute-force evaluator, on random knowledge bases; shapes of rules; rejected predictions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.mining.mine import mine
from hapax.engine.mining.tables import MiningOptions, RuleShape, shapes, ways_to_match
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Value, Variable
from hapax.kb.records import (
    CANDIDATES,
    DECISIONS,
    DENIALS,
    RUNS,
    AtomPattern,
    Candidate,
    Decision,
    DenialRecord,
    FactRecord,
    Question,
    RunRecord,
    Source,
)
from hapax.kb.store import KnowledgeBase

NO_RULES = Library()
ALL = MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0, examples=1)
"""Every rule with any support."""
TYPES = {"lives_in": ("Person", "City"), "born_in": ("Person", "City")}


def stored(facts: Iterable[tuple[str, tuple[Value, ...]]], types: dict[str, tuple[str, ...]]) -> KnowledgeBase:
    """A knowledge base in memory with these facts."""
    kb = KnowledgeBase()
    kb.add_facts(FactRecord(name, values, types.get(name, ()), Source.GIVEN) for name, values in facts)
    return kb


def born_where_they_live(kb: KnowledgeBase) -> Any:
    found = mine(kb, NO_RULES, ALL).rules
    return next(
        item for item in found if item.rule.sentence == "lives_in(Person X, City Y) -> born_in(Person X, City Y)"
    )


def test_predictions_that_a_critic_rejected_are_counter_examples() -> None:
    """The last verdict on a value counts; a denied fact counts; a value that two atoms were asked about does not."""
    facts = [("lives_in", (name, "Rome")) for name in ("ann", "bob", "cem", "dan", "eva")] + [
        ("born_in", ("ann", "Rome"))
    ]
    with stored(facts, TYPES) as kb:
        before = born_where_they_live(kb).measures
        judged(kb, "bob", [False], "born_in", "is_mayor_of")
        judged(kb, "cem", verdicts=[True, False])
        judged(kb, "dan", verdicts=[False, True])
        rejected = born_where_they_live(kb)
        kb.add(DENIALS, [DenialRecord("born_in", ("eva", "Rome"), 0.01)])
        denied = born_where_they_live(kb).measures

    assert (before.rejected, before.pca_confidence) == (0, 1.0)
    assert (rejected.measures.rejected, rejected.measures.pca_confidence) == (1, 1 / 2)
    assert rejected.counter_examples == ("cem lives in Rome: cem born in Rome",)
    assert (denied.rejected, denied.pca_confidence) == (2, 1 / 3)
    assert denied.confidence == before.confidence


def judged(kb: KnowledgeBase, name: str, verdicts: list[bool], *predicates: str) -> None:
    """Store a candidate of `born_in(NAME, ?)` with these decisions of the critic gate, one in each run."""
    patterns = tuple(AtomPattern(predicate, (name, None)) for predicate in predicates or ("born_in",))
    question = Question(patterns, "City")
    candidate = Candidate(question.id, "Rome", "Rome", "call", 0)
    kb.add_questions([question])
    kb.add(CANDIDATES, [candidate])
    for number, accepted in enumerate(verdicts):
        run = RunRecord(f"run {number}", "search", {}, "", "2026-01-01")
        kb.add(RUNS, [run])
        kb.add(DECISIONS, [Decision(run.id, "critic", candidate.id, accepted, 0.5, 0.6, "a reason")])


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
        kb.add(DENIALS, (DenialRecord(name, arguments, 0.0) for name, arguments in sorted(rejected, key=repr)))
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


def test_shapes_are_closed_and_connected() -> None:
    """Each variable of a shape occurs twice, and no two shapes differ only in names."""
    for premises in (1, 2, 3):
        found = shapes(premises)
        for shape in found:
            used = [*range(shape.head), *itertools.chain(*shape.premises)]
            assert min(map(used.count, used)) > 1
        assert len(set(found)) == len(found)
    assert [len(shapes(premises)) for premises in (1, 2, 3)] == [2, 7, 26]


def test_premises_are_matched_from_the_head_outwards() -> None:
    """Each premise of an order has a variable that is bound before it; one with bound variables alone comes at once."""
    assert list(ways_to_match(RuleShape(2, ((0, 2), (2, 1))))) == [(0, 1), (1, 0)]
    assert list(ways_to_match(RuleShape(2, ((0, 2), (2, 1), (0,))))) == [(2, 0, 1), (2, 1, 0)]
    assert list(ways_to_match(RuleShape(2, ((0, 1), (0, 2), (1,))))) == [(0, 2, 1)]
