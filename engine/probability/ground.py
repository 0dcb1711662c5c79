"""Ground programs: the rule instances below some atoms, and the random events on which these atoms rest.

Every event is independent of the others (the distribution semantics: Sato, "A statistical learning method for logic
programs with distribution semantics", ICLP 1995, section 3). A node is true if its own event happens or an instance
with this conclusion has a true premise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


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

    def couple(self, group: Hashable, members: Iterable[int]) -> None:
        """Couple the events of these nodes: where an event happens, all more probable ones happen, too.

        Each keeps its own probability. With p1 >= p2 >= ... event n happens exactly where event n - 1 does and an
        independent event of probability pn / p(n-1) happens as well.
        """
        random = [node for node in members if 0 < self.weights.get(node, 1.0) < 1]
        order = sorted(random, key=lambda node: -self.weights[node])
        last: tuple[int, ...] = ()
        share = 1.0
        for rank, member in enumerate(order if len(order) > 1 else ()):
            # The links take the place of its own event.
            weight = self.weights.pop(member)
            if weight < share:
                link = self.node(("link", group, rank))
                self.weights[link] = weight / share
                last, share = (*last, link), weight
            self.add(member, last)

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
        groups: dict[int, list[int]] = {}
        for node in nodes:
            groups.setdefault(self.layers.get(node, 0), []).append(node)
        return [groups[layer] for layer in sorted(groups)]

    def users(self, nodes: Sequence[int]) -> Mapping[int, list[GroundInstance]]:
        """The instances that conclude one of these nodes, by each of their positive premises."""
        found: dict[int, list[GroundInstance]] = {}
        for node in nodes:
            for instance in self.instances.get(node, ()):
                for premise in instance.positive:
                    found.setdefault(premise, []).append(instance)
        return found
