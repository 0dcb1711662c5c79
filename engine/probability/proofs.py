"""Probabilities from single proofs: the best proof, the best few, and bounds of a probability that is not computed.

A negated atom counts as a fact that is absent. Where rules conclude it, an instance that negates it is left out of
proofs, which only lowers their number.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from hapax.engine.probability.exact import TooLarge, exact
from hapax.engine.probability.ground import GroundInstance, GroundProgram

Support: TypeAlias = frozenset[tuple[int, bool]]
"""The events of a proof, as nodes: True for one that must happen, False for one that must not."""

MOST_ROUNDS = 100
"""Rounds in which upper bounds of atoms that rest on each other are raised; those that still move become 1."""


def best_proofs(program: GroundProgram) -> dict[int, float]:
    """The probability of the best proof of every node that has one without uncertain negations: the largest product
    over its tree.

    Knuth, "A generalization of Dijkstra's algorithm", Information Processing Letters 6(1), 1977, section 2. A fact that
    a proof uses twice counts twice, so that the product is a lower bound of the node's probability.
    """
    best: dict[int, float] = {}
    # Negated weights, because the heap gives the smallest first.
    heap = [(-weight, node) for node, weight in program.weights.items() if weight > 0]
    missing: dict[int, int] = {}
    users: dict[int, list[GroundInstance]] = {}
    for group in program.instances.values():
        for instance in group:
            # A negated fact could be one that the proof needs: then the product would be too high.
            if absent(program, instance) == 1.0:
                missing[id(instance)] = len(instance.positive)
                for premise in instance.positive:
                    users.setdefault(premise, []).append(instance)
                if not instance.positive:
                    heap.append((-1.0, instance.head))
    heapq.heapify(heap)
    while heap:
        value, node = heapq.heappop(heap)
        if node in best:
            continue
        best[node] = -value
        for instance in users.get(node, ()):
            missing[id(instance)] -= 1
            if missing[id(instance)] == 0 and instance.head not in best:
                product = math.prod(best[premise] for premise in instance.positive)
                heapq.heappush(heap, (-product, instance.head))
    return best


def best_proof(program: GroundProgram, root: int, best: Mapping[int, float], most: int) -> float:
    """The probability of the best proof of a node: that of `best_proofs`, or a better one that needs a fact's absence.

    `most`: the proofs of each node among which that one is looked for.
    """
    instances = chain.from_iterable(program.instances.get(node, ()) for node in program.below(root))
    if not any(instance.negative for instance in instances):
        return best.get(root, 0.0)
    return max([best.get(root, 0.0), *(value for _, value in supports(program, root, most)[:1])])


def absent(program: GroundProgram, instance: GroundInstance) -> float:
    """The probability that none of an instance's negated facts holds; 0 if rules conclude one of them."""
    product = 1.0
    for node in instance.negative:
        product *= 0.0 if program.instances.get(node) else 1.0 - program.weights.get(node, 0.0)
    return product


def supports(program: GroundProgram, root: int, most: int) -> list[tuple[Support, float]]:
    """At most `most` proofs of a node of high probability, the best first, each with its probability.

    A set of facts counts once, however many trees it has, and a fact that a proof uses twice counts once.
    """
    nodes = program.below(root)
    found: dict[int, dict[Support, float]] = {node: _own(program, node) for node in nodes}
    for layer in program.by_layer(nodes):
        users = program.users(layer)
        waiting = dict.fromkeys(layer)
        while waiting:
            node = next(iter(waiting))
            del waiting[node]
            # With those of before, so that no order of evaluation forgets a proof again.
            new = found[node] | _own(program, node)
            for instance in program.instances.get(node, ()):
                new |= _joined(program, instance, found, most)
            kept = _highest(new, most)
            if kept.keys() != found[node].keys():
                found[node] = kept
                waiting |= dict.fromkeys(user.head for user in users.get(node, ()))
    return sorted(found[root].items(), key=lambda pair: (-pair[1], sorted(pair[0])))


def _own(program: GroundProgram, node: int) -> dict[Support, float]:
    weight = program.weights.get(node, 0.0)
    return {frozenset({(node, True)}): weight} if weight > 0 else {}


def _joined(
    program: GroundProgram, instance: GroundInstance, found: Mapping[int, Mapping[Support, float]], most: int
) -> dict[Support, float]:
    """The supports of an instance's premise."""
    if absent(program, instance) == 0.0:
        return {}
    begin = frozenset((node, False) for node in instance.negative if node in program.weights)
    joined: dict[Support, float] = {begin: _product(program, begin)}
    for premise in instance.positive:
        longer: dict[Support, float] = {}
        for left in joined:
            for right in found[premise]:
                both = left | right
                # A fact cannot be there and absent in one world.
                if not any((node, not happens) in both for node, happens in both):
                    longer[both] = _product(program, both)
        joined = _highest(longer, most)
    return joined


def _product(program: GroundProgram, support: Support) -> float:
    weights = program.weights
    return math.prod(weights[node] if happens else 1.0 - weights[node] for node, happens in sorted(support))


def _highest(found: Mapping[Support, float], most: int) -> dict[Support, float]:
    """The most probable supports, without those that contain another."""
    kept: dict[Support, float] = {}
    for support, value in sorted(found.items(), key=lambda pair: (-pair[1], len(pair[0]), sorted(pair[0]))):
        if len(kept) == most:
            break
        if not any(smaller <= support for smaller in kept):
            kept[support] = value
    return kept


def bounds(program: GroundProgram, root: int, most: int) -> tuple[float, float]:
    """Two numbers between which the probability of a node lies: from its best proofs, and from all of its instances."""
    upper = upper_bounds(program, program.below(root))[root]
    lower = _any_of(program, [support for support, _ in supports(program, root, most)])
    return min(lower, upper), upper


def _any_of(program: GroundProgram, found: Sequence[Support]) -> float:
    """The probability that one of these proofs holds, or of fewer of them where that is too much to compute."""
    while found:
        # A program of their events alone, with an instance of the root for each proof.
        small = GroundProgram()
        root = small.node("root", layer=1)
        for support in found:
            signed: dict[bool, list[int]] = {True: [], False: []}
            for node, happens in support:
                event = small.node(node)
                small.weights[event] = program.weights[node]
                signed[happens].append(event)
            small.add(root, signed[True], signed[False])
        try:
            return exact(small, root)
        except TooLarge:
            found = found[: len(found) // 2]
    return 0.0


def upper_bounds(program: GroundProgram, nodes: Sequence[int]) -> dict[int, float]:
    """A number for each node that its probability does not exceed. `nodes` come in the order of their layers.

    A premise is at most as probable as its least probable part (Frechet). Without negation below it, a node is at most
    1 - (1 - u1)(1 - u2)...: such events help each other (Harris, "A lower bound for the critical probability in a
    certain percolation process", 1960, lemma 4.1). With negation it is at most u1 + u2 + ...
    """
    bound: dict[int, float] = {}
    negated: set[int] = set()
    for layer in program.by_layer(nodes):
        bound |= {node: program.weights.get(node, 0.0) for node in layer}
        negated |= _with_negation(program, layer, negated)
        moving = True
        # After as many rounds as there are nodes, every proof without a repeated node is counted.
        for _ in range(min(MOST_ROUNDS, len(layer) + 1)):
            raised = {node: _raised(program, node, bound, node in negated) for node in layer}
            moving = any(raised[node] > bound[node] for node in layer)
            if not moving:
                break
            bound |= {node: max(raised[node], bound[node]) for node in layer}
        if moving and len(layer) + 1 > MOST_ROUNDS:
            bound |= {node: 1.0 for node in layer if program.instances.get(node)}
    return bound


def _with_negation(program: GroundProgram, layer: Iterable[int], lower: set[int]) -> set[int]:
    """The nodes of a layer that rest on a negation; all of a layer that rest on rules, if one of them does."""
    concluded = [node for node in layer if program.instances.get(node)]
    for node in concluded:
        for instance in program.instances[node]:
            if instance.negative or not lower.isdisjoint(instance.positive):
                return set(concluded)
    return set()


def _raised(program: GroundProgram, node: int, bound: Mapping[int, float], sums: bool) -> float:
    own = program.weights.get(node, 0.0)
    parts = [own] if own else []
    for instance in program.instances.get(node, ()):
        facts = 1.0
        least = 1.0
        for premise in instance.positive:
            if program.instances.get(premise):
                least = min(least, bound[premise])
            else:
                facts *= bound[premise]  # distinct facts are independent
        for premise in instance.negative:
            if not program.instances.get(premise):
                least = min(least, 1.0 - bound[premise])
        parts.append(min(facts, least))
    if sums:
        return min(1.0, math.fsum(parts))
    return 1.0 - math.prod(1.0 - part for part in parts)
