"""Probabilities of ground programs: exact ones equal a sum over all worlds, and bounds contain it."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from hapax.engine.probability.answers import Evaluator, ProbabilityOptions
from hapax.engine.probability.exact import TooLarge, exact
from hapax.engine.probability.ground import GroundProgram
from hapax.engine.probability.proofs import best_proof, best_proofs, bounds, supports

pytest.importorskip("pysdd", reason="exact probabilities need the extra `probability`")

SEEDS = range(60)


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
        best = best_proofs(program)

        for node, value in enumerate(by_worlds(program)):
            lower, upper = bounds(program, node, most)
            assert lower <= value + 1e-9, (seed, program.names[node])
            assert upper >= value - 1e-9, (seed, program.names[node])
            assert best_proof(program, node, best, most) <= value + 1e-9, (seed, program.names[node])


def test_enough_proofs_are_exact_without_negation() -> None:
    """Without negation all proofs together give the exact probability as the lower bound."""
    for seed in SEEDS:
        program = random_program(seed, negation=False)

        for node, value in enumerate(by_worlds(program)):
            assert bounds(program, node, 10_000)[0] == pytest.approx(value, abs=1e-9), (seed, program.names[node])


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


def test_the_best_proof_is_the_most_probable_tree() -> None:
    """Of proofs of .5 and of .9 * .8 the second is the best; the first is listed after it."""
    program = GroundProgram()
    low, left, right = (program.node(name) for name in ("low", "left", "right"))
    program.weights = {low: 0.5, left: 0.9, right: 0.8}
    root = program.node("root", 1)
    program.add(root, [low])
    program.add(root, [left, right])

    assert best_proofs(program)[root] == pytest.approx(0.72)
    assert [value for _, value in supports(program, root, 5)] == pytest.approx([0.72, 0.5])


def test_coupled_facts_are_one_event() -> None:
    """Facts of one group happen together: the conjunction of .8 and .6 has .6 and their disjunction .8."""
    program = GroundProgram()
    first, second = program.node("first"), program.node("second")
    program.weights = {first: 0.8, second: 0.6}
    both, either = program.node("both", 1), program.node("either", 1)
    program.add(both, [first, second])
    program.add(either, [first])
    program.add(either, [second])

    program.couple("reply", [first, second])

    assert [exact(program, node) for node in (first, second, both, either)] == pytest.approx([0.8, 0.6, 0.6, 0.8])
    for node, value in enumerate(by_worlds(program)):
        lower, upper = bounds(program, node, 5)
        assert lower - 1e-9 <= value <= upper + 1e-9


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


def test_a_single_proof_needs_no_diagram() -> None:
    """A node with one proof has the product of its facts, however many nodes lie between."""
    program = GroundProgram()
    facts = [program.node(f"f{number}") for number in range(3)]
    program.weights = dict.fromkeys(facts, 0.5)
    nodes = [program.node(f"a{number}", 1) for number in range(4)]
    program.add(nodes[0], facts)
    for below, node in itertools.pairwise(nodes):
        program.add(node, [below, facts[0]])

    assert exact(program, nodes[-1], most_nodes=0) == 0.125


def test_exact_probabilities_equal_those_of_problog() -> None:
    """On 200 random programs the exact probabilities are those of ProbLog 2, and the bounds contain them."""
    problog = pytest.importorskip("problog", reason="ProbLog 2 is not installed: `pip install problog`")
    program_text = pytest.importorskip("problog.program").PrologString

    for seed in range(1000, 1200):
        program = random_program(seed)
        roots = list(program.instances)
        # ProbLog knows only predicates with a clause.
        lines = [f"{name} :- fail." for name in program.names]
        lines += [f"{weight}::{program.names[node]}." for node, weight in program.weights.items()]
        for group in program.instances.values():
            for instance in group:
                body = [str(program.names[node]) for node in instance.positive]
                body += [f"\\+{program.names[node]}" for node in instance.negative]
                lines.append(f"{program.names[instance.head]} :- {', '.join(body)}.")
        lines += [f"query({program.names[node]})." for node in roots]

        found = problog.get_evaluatable("sdd").create_from(program_text("\n".join(lines))).evaluate()
        expected = {str(name): value for name, value in found.items()}

        for node in roots:
            value = expected[str(program.names[node])]
            assert exact(program, node) == pytest.approx(value, abs=1e-9), (seed, program.names[node])
            lower, upper = bounds(program, node, 3)
            assert lower - 1e-9 <= value <= upper + 1e-9, (seed, program.names[node])


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


def test_coupled_events_happen_together_as_often_as_the_rarest() -> None:
    """Each keeps its probability, equal ones are one event, and certain or impossible members are left as they are."""
    weights = {"a": 0.8, "b": 0.3, "c": 0.3, "sure": 1.0, "never": 0.0, "free": 0.5}
    program = GroundProgram()
    nodes = {name: program.node(name) for name in weights}
    program.weights.update({nodes[name]: weight for name, weight in weights.items()})
    program.couple("reply", [nodes[name] for name in ("b", "sure", "a", "never", "c")])
    program.couple("alone", [nodes["free"]])
    pairs = [*itertools.combinations(weights, 2), ("a", "b", "c"), ("a", "c", "free")]
    both = {names: program.node(names, 1) for names in pairs}
    for names, node in both.items():
        program.add(node, [nodes[name] for name in names])

    for name, weight in weights.items():
        assert exact(program, nodes[name]) == pytest.approx(weight)
    for names, node in both.items():
        coupled = [weights[name] for name in names if name in ("a", "b", "c")]
        others = [weights[name] for name in names if name not in ("a", "b", "c")]
        assert exact(program, node) == pytest.approx(min(coupled, default=1.0) * math.prod(others))


def test_an_impossible_event_proves_nothing() -> None:
    """A fact of probability 0 has no best proof, and neither has what rests on it."""
    program = GroundProgram()
    never, sure, both, either = (program.node(name, layer) for name, layer in (("n", 0), ("s", 0), ("b", 1), ("e", 1)))
    program.weights |= {never: 0.0, sure: 0.5}
    program.add(both, [never, sure])
    program.add(either, [never])
    program.add(either, [sure])

    assert best_proofs(program) == {sure: 0.5, either: 0.5}
