"""Ground programs: the rule instances below some atoms, and the random events on which these atoms rest.

Every event is independent of the others (the distribution semantics: Sato, "A statistical learning method for logic
programs with distribution semantics", ICLP 1995, section 3). A node is true if its own event happens or an instance
with this conclusion has a true premise.

Exact probabilities come from sentential decision diagrams of the worlds in which a node is true, and their weighted
counts: Darwiche, "SDD: a new canonical representation of propositional knowledge bases", IJCAI 2011; cyclic programs by
the fixpoint of Vlasselaer et al., "Anytime inference in probabilistic logic programs with Tp-compilation", IJCAI 2015,
section 3, layer after layer because of negation. In single proofs and bounds a negated atom counts as a fact that is
absent. Where rules conclude it, an instance that negates it is left out of proofs, which only lowers their number.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from hapax.engine.query_options import MOST_NODES
from hapax.grammar.terms import grouped

if TYPE_CHECKING:
    from pysdd.sdd import SddManager, SddNode


@dataclass(frozen=True, slots=True)
class GroundInstance:
    """A ground rule: the nodes of its conclusion, of its positive premises and of those that it negates."""

    head: int
    positive: tuple[int, ...]
    negative: tuple[int, ...] = ()


@dataclass
class GroundProgram:
    """Nodes, numbered from 0, with the probability of their own events, and the instances that conclude them."""

    names: list[Hashable] = field(default_factory=list)
    """The name of each node: an atom, or the name of an event that is not an atom."""
    weights: dict[int, float] = field(default_factory=dict)
    """The probability of a node's own event, for nodes that have one."""
    instances: dict[int, list[GroundInstance]] = field(default_factory=dict)
    """Instances by conclusion."""
    layers: dict[int, int] = field(default_factory=dict)
    """The layer of a node, 0 where it is absent. A premise is in no higher layer, a negated one in a lower layer."""
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def node(self, name: Hashable, layer: int = 0) -> int:
        """The number of a node, which is new if the name is."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
            if layer:
                self.layers[number] = layer
        return number

    def add(self, head: int, positive: Iterable[int], negative: Iterable[int] = ()) -> None:
        """Add an instance, unless its conclusion is among its own premises."""
        premises = tuple(dict.fromkeys(positive))
        # An instance that needs its own conclusion proves nothing.
        if head not in premises:
            instance = GroundInstance(head, premises, tuple(dict.fromkeys(negative)))
            self.instances.setdefault(head, []).append(instance)

    def below(self, root: int) -> list[int]:
        """The nodes on which a node rests, itself included, in the order of their layers."""
        seen = {root}
        waiting = [root]
        while waiting:
            for instance in self.instances.get(waiting.pop(), ()):
                for node in (*instance.positive, *instance.negative):
                    if node not in seen:
                        seen.add(node)
                        waiting.append(node)
        return sorted(seen, key=lambda node: (self.layers.get(node, 0), node))

    def by_layer(self, nodes: Iterable[int]) -> list[list[int]]:
        """These nodes, which come in the order of their layers, as a list for each layer."""
        return list(grouped(nodes, lambda node: self.layers.get(node, 0)).values())

    def users(self, nodes: Sequence[int]) -> Mapping[int, list[GroundInstance]]:
        """The instances that conclude one of these nodes, by each of their positive premises."""
        found: dict[int, list[GroundInstance]] = {}
        for node in nodes:
            for instance in self.instances.get(node, ()):
                for premise in instance.positive:
                    found.setdefault(premise, []).append(instance)
        return found


# --- exact probabilities ----------------------------------------------------------------------------------------------

MOST_EVENTS = 500
"""Random events below a node up to which its diagram is tried."""


class TooLarge(Exception):  # noqa: N818  named after the situation
    """A diagram outgrew its limit."""


def exact(program: GroundProgram, root: int, most_nodes: int = MOST_NODES) -> float:
    """The probability of a node. Raises TooLarge, and ModuleNotFoundError where `pysdd` is needed but missing."""
    nodes = program.below(root)
    single = _single_proof(program, nodes)
    if single is not None:
        return single
    events = [node for node in nodes if 0.0 < program.weights.get(node, 0.0) < 1.0]
    if len(events) > MOST_EVENTS:
        raise TooLarge
    return _Diagrams(program, events, most_nodes).probability(root, nodes)


def _single_proof(program: GroundProgram, nodes: Sequence[int]) -> float | None:
    """The probability of a node that has one proof and rests on no negation; None for any other node."""
    weights = []
    for node in nodes:
        reasons = program.instances.get(node, [])
        own = node in program.weights
        if len(reasons) + own != 1 or any(reason.negative for reason in reasons):
            return None
        if own:
            weights.append(program.weights[node])
    # The leaf of a cycle without a way out would be missing here: such a node is in its own proof.
    return None if _is_cyclic(program, nodes) else math.prod(weights)


def _is_cyclic(program: GroundProgram, nodes: Sequence[int]) -> bool:
    """True if nodes with at most one instance each rest on each other."""
    rests_on = TopologicalSorter[int]()
    for node in nodes:
        for reason in program.instances.get(node, ()):
            rests_on.add(node, *reason.positive)
    try:
        rests_on.prepare()
    except CycleError:
        return True
    return False


class _Diagrams:
    """The diagrams of a program's nodes over these events."""

    def __init__(self, program: GroundProgram, events: Sequence[int], most_nodes: int) -> None:
        from pysdd.sdd import SddManager

        self.program, self.events, self.most_nodes = program, events, most_nodes
        self.manager: SddManager = SddManager(var_count=max(1, len(events)), auto_gc_and_minimize=False)
        self.diagrams: dict[int, SddNode] = {}

    def probability(self, root: int, nodes: Sequence[int]) -> float:
        """The weighted model count of the root, whose `nodes` are in the order of their layers."""
        literals = {node: number for number, node in enumerate(self.events, 1)}
        for node in nodes:
            weight = self.program.weights.get(node, 0.0)
            # An event that is certain or impossible needs no variable.
            certain = self.manager.true() if weight >= 1.0 else self.manager.false()
            self.diagrams[node] = self.manager.literal(literals[node]) if node in literals else certain
        for layer in self.program.by_layer(nodes):
            self._close(layer)
        diagram = self.diagrams[root]
        if diagram.is_true() or diagram.is_false():
            return float(diagram.is_true())
        counter = diagram.wmc(log_mode=False)
        for node, number in literals.items():
            counter.set_literal_weight(self.manager.literal(number), self.program.weights[node])
            counter.set_literal_weight(self.manager.literal(-number), 1.0 - self.program.weights[node])
        return float(counter.propagate())

    def _close(self, layer: Sequence[int]) -> None:
        """The least fixpoint of a layer: every instance again whenever a premise of its layer has changed."""
        users = self.program.users(layer)
        waiting = deque(chain.from_iterable(self.program.instances.get(node, ()) for node in layer))
        queued = set(map(id, waiting))
        while waiting:
            instance = waiting.popleft()
            queued.discard(id(instance))
            known = self.diagrams[instance.head]
            new = self.manager.disjoin(known, self._premise(instance))
            if self.manager.count() > self.most_nodes:
                raise TooLarge
            # Diagrams are canonical: the same function is the same node.
            if new.id == known.id:
                continue
            self.diagrams[instance.head] = new
            for user in users.get(instance.head, ()):
                if id(user) not in queued:
                    queued.add(id(user))
                    waiting.append(user)

    def _premise(self, instance: GroundInstance) -> SddNode:
        premise = self.manager.true()
        for node in instance.positive:
            premise = self.manager.conjoin(premise, self.diagrams[node])
        for node in instance.negative:
            premise = self.manager.conjoin(premise, self.manager.negate(self.diagrams[node]))
        return premise


# --- single proofs and bounds -----------------------------------------------------------------------------------------

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
