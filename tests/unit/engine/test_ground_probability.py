"""Probabilities of ground programs: exact ones equal a sum over all worlds, and bounds contain it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import hapax
from hapax.engine.probability.ground import GroundProgram, TooLarge, bounds, exact, supports, upper_bounds
from hapax.engine.probability.probable_answers import Evaluator
from hapax.engine.query_options import ProbabilityOptions
from hapax.kb.judgement_records import CALIBRATIONS, CalibrationRecord
from hapax.kb.records import RUNS, FactRecord, RunRecord, Source

pytest.importorskip("pysdd", reason="exact probabilities need the extra `probability`")

SEEDS = range(40)


def random_program(seed: int, layers: int = 2, negation: bool = True) -> GroundProgram:
    """A program of up to seven facts and two layers of rules, cyclic within a layer, the upper one with negation."""
    draw = random.Random(seed)
    program = GroundProgram()
    known = [program.node(f"f{number}") for number in range(draw.randint(3, 7))]
    for node in known:
        program.weights[node] = round(draw.uniform(0.05, 0.95), 3)
    for layer in range(1, layers + 1):
        own = [program.node(f"a{layer}{number}", layer) for number in range(3)]
        if draw.random() < 0.4:
            program.weights[own[0]] = 0.3  # a fact that rules conclude as well
        for head in own:
            for _ in range(draw.randint(1, 3)):
                positive = draw.sample([*known, *own], draw.randint(1, 3))
                negative = draw.sample(known, draw.randint(0, 1)) if negation and layer == 2 else []
                program.add(head, positive, negative)
        known += own
    return program


def true_nodes(program: GroundProgram, happens: frozenset[int]) -> set[int]:
    """The nodes that are true in a world, by naive iteration, layer after layer."""
    true = set(happens)
    for layer in program.by_layer(sorted(range(len(program.names)), key=lambda node: program.layers.get(node, 0))):
        before = -1
        while before != len(true):
            before = len(true)
            for node in layer:
                for instance in program.instances.get(node, ()):
                    if true.issuperset(instance.positive) and true.isdisjoint(instance.negative):
                        true.add(node)
    return true


def by_worlds(program: GroundProgram) -> list[float]:
    """The probability of each node as the sum over all worlds."""
    events = list(program.weights)
    totals = [0.0] * len(program.names)
    for choice in itertools.product((True, False), repeat=len(events)):
        pairs = list(zip(events, choice, strict=True))
        weight = math.prod(program.weights[node] if happens else 1 - program.weights[node] for node, happens in pairs)
        for node in true_nodes(program, frozenset(node for node, happens in pairs if happens)):
            totals[node] += weight
    return totals


def test_exact_probabilities_are_sums_over_worlds() -> None:
    """On random programs with cycles, negation and facts that rules conclude, exact probabilities are exact."""
    for seed in SEEDS:
        program = random_program(seed)

        expected = by_worlds(program)

        for node, value in enumerate(expected):
            assert exact(program, node) == pytest.approx(value, abs=1e-9), (seed, program.names[node])


@pytest.mark.parametrize("most", [1, 3, 20])
def test_bounds_contain_the_probability(most: int) -> None:
    """The best proofs of a node are less probable than the node, and the upper bound is never below it."""
    for seed in SEEDS:
        program = random_program(seed)

        for node, value in enumerate(by_worlds(program)):
            lower, upper = bounds(program, node, most)
            assert lower <= value + 1e-9, (seed, program.names[node])
            assert upper >= value - 1e-9, (seed, program.names[node])
            assert all(best <= value + 1e-9 for _, best in supports(program, node, most)), (seed, program.names[node])


def test_a_proof_lists_what_it_needs_with_probabilities() -> None:
    """The probability of a proof is the product of its facts', of which those that must not hold have the rest to 1."""
    negated = 0
    for seed in SEEDS:
        program = random_program(seed)
        weights = {str(program.names[node]): weight for node, weight in program.weights.items()}
        weights |= {f"not {name}": 1 - weight for name, weight in weights.items()}
        for node in range(len(program.names)):
            for proof in Evaluator(program, ProbabilityOptions()).proofs(node):
                assert dict(proof.facts) == pytest.approx({name: weights[name] for name, _ in proof.facts})
                assert proof.probability == pytest.approx(math.prod(weight for _, weight in proof.facts))
                negated += any(name.startswith("not ") for name, _ in proof.facts)
    assert negated > 0


def test_a_proof_that_needs_more_than_another_is_none() -> None:
    """Of proofs by `a` and by `a` and `b` only the first is listed, whichever rule comes first."""
    for order in ((1, 2), (2, 1)):
        program = GroundProgram()
        facts = [program.node(name) for name in "ab"]
        program.weights = dict.fromkeys(facts, 0.5)
        root = program.node("root", 1)
        for length in order:
            program.add(root, facts[:length])

        assert [value for _, value in supports(program, root, 5)] == [0.5]


def test_a_diagram_that_grows_too_large_is_given_up() -> None:
    """Beyond the limit there is an error instead of a long wait; the bounds remain."""
    draw = random.Random(1)
    program = GroundProgram()
    facts = [program.node(f"f{number}") for number in range(60)]
    program.weights = dict.fromkeys(facts, 0.5)
    root = program.node("root", 1)
    for _ in range(200):
        program.add(root, draw.sample(facts, 3))

    with pytest.raises(TooLarge):
        exact(program, root, most_nodes=2000)
    lower, upper = bounds(program, root, 20)
    assert 0 < lower <= upper <= 1


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_rests_on_itself_alone_is_impossible(length: int) -> None:
    """Nodes that prove each other in a circle have no proof, whatever else they need."""
    program = GroundProgram()
    fact = program.node("fact")
    program.weights[fact] = 0.5
    circle = [program.node(f"a{place}", 1) for place in range(length)]
    for place, node in enumerate(circle):
        program.add(node, [circle[place - 1], fact], [])

    assert exact(program, circle[0]) == 0.0


def test_an_impossible_event_proves_nothing() -> None:
    """A fact of probability 0 has no best proof, and neither has what rests on it."""
    program = GroundProgram()
    never, sure, both, either = (program.node(name, layer) for name, layer in (("n", 0), ("s", 0), ("b", 1), ("e", 1)))
    program.weights |= {never: 0.0, sure: 0.5}
    program.add(both, [never, sure])
    program.add(either, [never])
    program.add(either, [sure])

    best = {node: [value for _, value in supports(program, node, 1)] for node in (never, sure, both, either)}
    assert best == {never: [], sure: [0.5], both: [], either: [0.5]}


def test_a_bound_that_still_moves_after_the_last_round_is_one() -> None:
    """In a circle of more nodes than rounds, nodes that rest on rules have the bound 1, and facts their own."""
    for size, bound in ((60, 0.5), (150, 1.0)):
        program = GroundProgram()
        fact = program.node("fact")
        program.weights[fact] = 0.5
        circle = [program.node(f"a{place}", 1) for place in range(size)]
        program.add(circle[0], [fact], [])
        for place in range(1, size):
            program.add(circle[place], [circle[place - 1]], [])
        program.add(circle[0], [circle[-1]], [])
        bounds = upper_bounds(program, program.below(circle[-1]))

        assert bounds[fact] == 0.5
        assert bounds[circle[-1]] >= bound


pytest.importorskip("pysdd", reason="exact probabilities need the extra `probability`")

RULES = """
given edge(Thing, Thing).
given bad(Thing).
@generic none
path(X, Y) :- edge(Thing X, Thing Y)
@generic none
path(X, Z) :- edge(Thing X, Thing Y), path(Thing Y, Thing Z)
@generic none
good(X, Y) :- path(Thing X, Thing Y), not bad(Y)
@generic none
safe(X) :- edge(Thing X, Thing Y), not good(X, Y)
"""

Facts = Mapping[tuple[str, tuple[str, ...]], float]


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase(str(tmp_path / "t.db")) as opened:
        yield opened


def store(kb: hapax.KnowledgeBase, facts: Facts, **fields: str) -> None:
    kb.add_facts(
        [
            FactRecord(name, values, ("Thing",) * len(values), Source.MODEL, probability=probability, **fields)
            for (name, values), probability in facts.items()
        ]
    )


def table(answers: hapax.Answers) -> dict[tuple[object, ...], float]:
    return {tuple(row[:-1]): row[-1] for row in answers.rows}


def asked(goal: str, rules: Any, kb: hapax.KnowledgeBase, *method: str, **options: Any) -> hapax.Answers:
    """The answers to a goal with their probabilities."""
    chosen = hapax.ProbabilityOptions(*method, **options)  # type: ignore[arg-type]
    return hapax.query(goal, rules, kb, options=hapax.QueryOptions(probability=chosen))


def test_a_statement_has_the_probability_of_its_facts(kb: hapax.KnowledgeBase) -> None:
    """A derived statement of two facts has the product of their probabilities."""
    store(kb, {("edge", ("a", "b")): 0.8, ("edge", ("b", "c")): 0.6, ("edge", ("c", "d")): 0.5})
    rules = hapax.parse_rules(
        "given edge(Thing, Thing).\nlikes(Person P, Thing X) & edge(Thing X, Thing Y) & edge(Thing Y, Thing Z)"
        " -> likes_too(Person P, Thing Z)"
    )
    found = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions())
    pairs = zip(found.statements, found.probabilities, strict=True)

    assert {statement.values["Y"]: chance.lower for statement, chance in pairs} == pytest.approx({"b": 0.48, "c": 0.3})


def test_a_limit_on_nodes_gives_bounds(kb: hapax.KnowledgeBase) -> None:
    """`auto` falls back to bounds, and `exact` says that the diagram is too large."""
    store(kb, {("edge", pair): 0.5 for pair in itertools.permutations("abcde", 2)})
    rules = hapax.parse_rules(RULES)
    found = asked("path(a, b)", rules, kb, nodes=200)

    assert found.probabilities[0].method == "bounds"
    assert 0.5 <= found.probabilities[0].lower <= found.probabilities[0].upper <= 1
    with pytest.raises(hapax.HapaxError, match="more than 200 nodes"):
        asked("path(a, b)", rules, kb, "exact", nodes=200)


def test_calibrated_scores_are_used_and_named(kb: hapax.KnowledgeBase) -> None:
    """Where the knowledge base has a calibration, facts have calibrated probabilities, and the basis names the critics."""
    kb.add(RUNS, [RunRecord("r", "search", {"models": ["k@1", "c@1"]}, "f", "2026")])
    store(kb, {("bad", ("a",)): 0.5}, run_id="r")
    before = asked("bad(X)", hapax.parse_rules(RULES), kb)
    points = {"points": [[0.0, 1.0], [0.0, 0.4]]}
    kb.add(CALIBRATIONS, [CalibrationRecord("c@1", "isotonic", points, (), (), {}, "2026")])
    after = asked("bad(X)", hapax.parse_rules(RULES), kb)

    assert "no calibration" in before.basis
    assert after.basis.startswith("Calibrated scores of c@1")
    assert (table(before), table(after)) == ({("a",): 0.5}, {("a",): 0.2})


def test_a_fact_that_no_critic_judged_is_certain(kb: hapax.KnowledgeBase) -> None:
    """As after a search without a critic: goals and derived statements take such a fact as it stands."""
    rules = hapax.parse_rules(
        f"{RULES}likes(Person P, Thing X) & edge(Thing X, Thing Y) & edge(Thing Y, Thing Z) -> likes_too(Person P, Thing Z)"
    )
    kb.add_facts([FactRecord("edge", ends, ("Thing", "Thing"), Source.MODEL) for ends in (("a", "b"), ("b", "c"))])
    derived = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions())

    assert table(asked("path(a, X)", rules, kb)) == {("b",): 1.0, ("c",): 1.0}
    assert [probability.lower for probability in derived.probabilities] == [1.0]
