"""Probabilities from single proofs: the best proof, the best few, and bounds of a probability that is not computed.

A negated atom counts as a fact that is absent. Where rules conclude it, an instance that negates it is left out of
proofs, which only lowers their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from hapax.engine.probability.exact import TooLarge, exact
from hapax.engine.probability.ground import GroundInstance, GroundProgram

Support: TypeAlias = frozenset[tuple[int, bool]]
"""The events of a proof, as nodes: True for one that must happen, False for one that must not."""

MOST_ROUNDS = 100
"""Rounds in which upper bounds of atoms that rest on each other are raised; those that still move become 1."""


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
