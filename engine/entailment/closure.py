"""The transitive closure of entailments: chains between predicates, and paraphrases, which are its cycles.

A *position* in the closure is a predicate over the terms of the atom where the walk began, as numbers: from a(X, Y),
the position `b, (1, 0)` is b(Y, X). An edge leads on from every position that its premise matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import NamedTuple

import networkx as nx

from hapax.engine.entailment.graph import Edge
from hapax.grammar.terms import Atom, Variable


@dataclass(frozen=True, slots=True)
class Chain:
    """The strongest path from an atom to one that it entails. `before` is the chain to the atom before the last."""

    end: Atom
    before: Chain | None = None
    score: float = 1.0
    """Product of the scores along the path: ten steps of .5 are .001."""

    length: int = 1
    """Number of atoms."""

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Every atom on the way, from the first."""
        reversed_atoms: list[Atom] = []
        chain: Chain | None = self
        while chain is not None:
            reversed_atoms.append(chain.end)
            chain = chain.before
        return tuple(reversed(reversed_atoms))

    @property
    def scores(self) -> tuple[float, ...]:
        """The score of each step, from the first."""
        steps: list[float] = []
        chain = self
        while chain.before is not None:
            steps.append(chain.score / chain.before.score if chain.before.score else 0.0)
            chain = chain.before
        return tuple(round(step, 6) for step in reversed(steps))

    def __str__(self) -> str:
        # `a(A) entails b(A), which entails c(A)`
        return ", which entails ".join(map(str, self.atoms)).replace(", which entails ", " entails ", 1)


class _Position(NamedTuple):
    predicate: str
    numbers: tuple[int, ...]

    @property
    def order(self) -> tuple[int, str, tuple[int, ...]]:
        """Sorts positions by arity, name and terms, so that of equally short chains always the same one is given."""
        return len(self.numbers), self.predicate, self.numbers


class _Arrow(NamedTuple):
    """An edge with numbers for variables: `premise` repeats a number where the premise repeats a variable."""

    premise: tuple[int, ...]
    predicate: str
    hypothesis: tuple[int, ...]
    score: float

    def leads_to(self, position: _Position) -> _Position | None:
        """The next position; None if the premise repeats a variable where this position has different terms."""
        terms: dict[int, int] = {}
        for variable, term in zip(self.premise, position.numbers, strict=True):
            if terms.setdefault(variable, term) != term:
                return None
        return _Position(self.predicate, tuple(terms[variable] for variable in self.hypothesis))


class EntailmentGraph:
    """The transitive closure of entailments, in time and memory linear in what is reached."""

    def __init__(self, entailments: Iterable[Edge]) -> None:
        self.edges = tuple(entailments)
        self._arrows: dict[tuple[str, int], list[_Arrow]] = {}
        for edge in self.edges:
            # By name, because the hypothesis may give a variable a wider type than the premise.
            names = [term.name for term in edge.premise.arguments if isinstance(term, Variable)]
            entailed = [term.name for term in edge.hypothesis.arguments if isinstance(term, Variable)]
            premise, hypothesis = tuple(map(names.index, names)), tuple(map(names.index, entailed))
            arrow = _Arrow(premise, edge.hypothesis.predicate, hypothesis, edge.score)
            self._arrows.setdefault((edge.premise.predicate, len(names)), []).append(arrow)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Every predicate as an atom over A, B, ..., in order of names."""
        named: dict[str, Atom] = {}
        for edge in self.edges:
            named |= {atom.indicator: atom for atom in (edge.premise, edge.hypothesis)}
        return tuple(_plain(named[indicator]) for indicator in sorted(named))

    def chains(self, starts: Iterable[Atom], at_least: float = 0.0) -> dict[Atom, list[Chain]]:
        """The strongest chain from each atom to every other atom that it entails, over the terms of the start.

        Of equally strong chains the shortest is given. Chains with a lower score than `at_least` are left out.
        """
        return {atom: self._from(atom, at_least) for atom in dict.fromkeys(starts)}

    @cached_property
    def closure(self) -> dict[Atom, list[Chain]]:
        """The chains from every predicate."""
        return self.chains(self.atoms)

    @cached_property
    def paraphrases(self) -> tuple[tuple[Atom, ...], ...]:
        """Groups of atoms that entail each other, with the arguments in matching places."""
        component_of: dict[_Position, set[_Position]] = {}
        for component in self._components():
            component_of |= dict.fromkeys(component, component)
        groups: list[tuple[Atom, ...]] = []
        grouped: set[str] = set()
        for atom in self.atoms:
            # It came up as a member of an earlier atom's group.
            if atom.indicator in grouped:
                continue
            start = _position_of(atom)
            others = [_atom(position, atom) for position in component_of[start] if position != start]
            if others:
                grouped |= {member.indicator for member in (atom, *others)}
                groups.append((atom, *sorted(others, key=str)))
        return tuple(groups)

    def _from(self, atom: Atom, at_least: float) -> list[Chain]:
        """The chains from an atom, the shortest first, by Dijkstra's algorithm: a longer path is never stronger."""
        start = _position_of(atom)
        chains: dict[_Position, Chain] = {}
        # Strongest first, then shortest, then in the order of the paths, so that the same chain is always given.
        waiting: list[tuple[float, int, int, tuple[int, str, tuple[int, ...]], _Position, Chain]] = []
        waiting.append((-1.0, 1, 0, start.order, start, Chain(atom)))
        while waiting:
            _, _, _, _, position, chain = heappop(waiting)
            if position in chains:
                continue
            chains[position] = chain
            for arrow, successor in self._steps(position):
                score = chain.score * arrow.score
                if successor not in chains and score >= at_least:
                    longer = Chain(_atom(successor, atom), chain, score, chain.length + 1)
                    heappush(waiting, (-score, longer.length, len(chains), successor.order, successor, longer))
        # The start was the first to be reached; an atom's entailment of itself is no chain.
        del chains[start]
        return sorted(chains.values(), key=lambda chain: (chain.length, str(chain.end)))

    def _steps(self, position: _Position) -> Iterator[tuple[_Arrow, _Position]]:
        """The edges that lead on from a position, each with the position after it."""
        for arrow in self._arrows.get((position.predicate, len(position.numbers)), ()):
            successor = arrow.leads_to(position)
            if successor is not None:
                yield arrow, successor

    def _components(self) -> Iterator[set[_Position]]:
        """The strongly connected components of all positions that the atoms reach."""
        positions: nx.DiGraph[_Position] = nx.DiGraph()
        waiting = [_position_of(atom) for atom in self.atoms]
        positions.add_nodes_from(waiting)
        while waiting:
            position = waiting.pop()
            for _, successor in self._steps(position):
                if successor not in positions:
                    waiting.append(successor)
                positions.add_edge(position, successor)
        yield from nx.strongly_connected_components(positions)


def _position_of(atom: Atom) -> _Position:
    """The position of an atom: its distinct terms are numbered in their order."""
    terms = list(dict.fromkeys(atom.arguments))
    return _Position(atom.predicate, tuple(map(terms.index, atom.arguments)))


def _atom(position: _Position, start: Atom) -> Atom:
    """The atom of a position, over the terms of the atom where the walk began."""
    terms = list(dict.fromkeys(start.arguments))
    return Atom(position.predicate, tuple(terms[number] for number in position.numbers))


def _plain(atom: Atom) -> Atom:
    """The atom over the variables A, B, ..., with its types."""
    variables = []
    for number, term in enumerate(atom.arguments):
        variables.append(Variable(chr(ord("A") + number), term.data_type if isinstance(term, Variable) else ""))
    return Atom(atom.predicate, tuple(variables))
