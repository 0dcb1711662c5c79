"""Exact probabilities: sentential decision diagrams of the worlds in which a node is true, and their weighted counts.

Darwiche, "SDD: a new canonical representation of propositional knowledge bases", IJCAI 2011; cyclic programs by the
fixpoint of Vlasselaer et al., "Anytime inference in probabilistic logic programs with Tp-compilation", IJCAI 2015,
section 3, layer after layer because of negation.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hapax.engine.probability.ground import GroundInstance, GroundProgram
from hapax.engine.probability.options import MOST_NODES

if TYPE_CHECKING:
    from pysdd.sdd import SddManager, SddNode

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
    # Topological sorting: what never becomes ready rests on a cycle.
    waits_for: dict[int, int] = {}
    for node in nodes:
        waits_for[node] = sum(len(reason.positive) for reason in program.instances.get(node, ()))
    users = program.users(nodes)
    ready = [node for node, count in waits_for.items() if count == 0]
    done = 0
    while ready:
        done += 1
        for instance in users.get(ready.pop(), ()):
            waits_for[instance.head] -= 1
            if waits_for[instance.head] == 0:
                ready.append(instance.head)
    return done < len(waits_for)


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
