"""Chains of entailments, and rules that they show to be reversed, redundant, or in contradiction with each other.

A *position* in the closure is a predicate over the terms of the atom where the walk began, as numbers: from a(X, Y),
the position `b, (1, 0)` is b(Y, X). An edge leads on from every position that its premise matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

from hapax.engine.entailment.graph import ENTAILS, STRONG, Edge
from hapax.grammar.arguments import checked
from hapax.grammar.checking import faults
from hapax.grammar.checking.pair_checks import (
    NOT_COMPARED,
    duplicate_and_subsumed_rules,
    opposite_conclusions,
    rules_implied_by_others,
)
from hapax.grammar.errors import Diagnostic
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Variable, variable_names


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
    def rule(self) -> Rule:
        """The rule that the first atom implies the last."""
        rule = Edge(self.atoms[0], self.end, self.score).rule
        return replace(rule, name=str(self), chance=None, by_declaration=True)

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

    def chains(self, starts: Iterable[Atom], at_least: float = 0.0) -> dict[Atom, list[Chain]]:
        """The strongest chain from each atom to every other atom that it entails, over the terms of the start.

        Of equally strong chains the shortest is given. Chains with a lower score than `at_least` are left out.
        """
        return {atom: self._from(atom, at_least) for atom in dict.fromkeys(starts)}

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


def _position_of(atom: Atom) -> _Position:
    """The position of an atom: its distinct terms are numbered in their order."""
    terms = list(dict.fromkeys(atom.arguments))
    return _Position(atom.predicate, tuple(map(terms.index, atom.arguments)))


def _atom(position: _Position, start: Atom) -> Atom:
    """The atom of a position, over the terms of the atom where the walk began."""
    terms = list(dict.fromkeys(start.arguments))
    return Atom(position.predicate, tuple(terms[number] for number in position.numbers))


# --- checks of rules --------------------------------------------------------------------------------------------------

MARGIN = 0.2
"""Lead of an entailment's score over that of its way back, from which on its direction counts."""


@checked
@dataclass(frozen=True, slots=True)
class EntailmentLimits:
    """Limits of entailments that count against rules, from 0 to 1. `at_least`: score of a chain, the product of its
    steps' scores; `margin`: its lead over the score of the way back, from which on its direction counts.
    """

    at_least: float = STRONG
    margin: float = MARGIN


def entailment_faults(
    library: Library, found: Sequence[Edge], limits: EntailmentLimits | None = None
) -> Iterator[Diagnostic]:
    """Yield the faults of rules that entailments show, each with the chain that shows it."""
    limits = limits or EntailmentLimits()
    if not found:
        return
    atoms: list[Atom] = []
    for rule in library.rules:
        atoms += [literal.atom for literal in (*_positive(rule), rule.conclusion)]
    chains = EntailmentGraph(found).chains(atoms, limits.at_least)
    reversed_faults = list(reversed_rules(library.rules, chains, limits.margin))
    yield from reversed_faults
    places = {fault.place for fault in reversed_faults}
    # A reversed rule is not called redundant as well: once turned round it is another rule. Neither is one that the
    # rules alone make redundant: who removes it and the rule that follows only by it would lose the conclusion.
    places |= {fault.place for fault in (*duplicate_and_subsumed_rules(library), *rules_implied_by_others(library))}
    yield from redundant_rules([rule for rule in library.rules if rule.place not in places], chains, library)
    yield from contradicted_rules(library.rules, chains, library)


Chains = Mapping[Atom, Sequence[Chain]]
"""From each atom of the rules, over its rule's variables, to all that it entails."""


def reversed_rules(rules: Sequence[Rule], chains: Chains, margin: float) -> Iterator[Diagnostic]:
    """Rules that infer the specific from the general: the conclusion entails a premise more surely than the reverse.

    Rules whose other premises also connect the arguments of the conclusion are left out: those premises may justify it.
    """
    for rule in rules:
        for literal in _positive(rule):
            chain = _to(literal.atom, chains[rule.conclusion.atom])
            if chain is None or not _rests_on(rule, literal):
                continue
            back = _to(rule.conclusion.atom, chains[literal.atom])
            if back is not None and chain.score - back.score < margin:
                continue  # paraphrases
            yield faults.REVERSED.at(
                rule.place,
                f"rule {rule.name} concludes {chain.atoms[0]} from {chain.end}, but the entailment runs the other way: "
                f"{chain}",
                "Reverse the rule, or add the premise that makes the difference",
            )


def redundant_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose conclusion follows without them: from one of their premises, or by another rule and entailments."""
    reported: set[str] = set()
    for rule in rules:
        if len(rule.premise) == 1:
            continue  # the rule states an entailment, for queries without --entail
        by_itself = (_to(rule.conclusion.atom, chains[literal.atom]) for literal in _positive(rule))
        chain = next(filter(None, by_itself), None)
        if chain is not None:
            reported.add(rule.name)
            yield faults.REDUNDANT.at(
                rule.place, f"rule {rule.name} says nothing new: {chain}", f"Remove rule {rule.name}"
            )
    entailed = [chain.rule for ends in chains.values() for chain in ends]
    left = [rule for rule in rules if rule.name not in reported]
    for fault in rules_implied_by_others.find(
        replace(library, rules=(*left, *entailed)), faults.REDUNDANT, NOT_COMPARED
    ):
        yield replace(fault, related=tuple(place for place in fault.related if place.file != ENTAILS))


def contradicted_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose premise entails the contrary of the conclusion, and pairs whose conclusions entail contraries."""
    for rule in rules:
        ends: list[Chain] = []
        for literal in _positive(rule):
            ends += chains[literal.atom]
        opposite = library.opposite_of(rule.conclusion.atom.predicate)
        # No atom has the predicate "", which stands for no opposite.
        contrary = replace(rule.conclusion.atom, predicate=opposite or "")
        chain = next((chain for chain in ends if chain.end == contrary), None)
        if chain is not None:
            yield faults.CONTRADICTED.at(
                rule.place,
                f"rule {rule.name} concludes {rule.conclusion.atom}, but {chain}",
                "Negate the conclusion, or correct the entailment",
            )
    # Those that contradict each other already without entailments have another fault.
    seen = {(fault.place, fault.related) for fault in opposite_conclusions(library)}
    varied = replace(library, rules=tuple(variant for rule in rules for variant in _variants(rule, chains)))
    for fault in opposite_conclusions.find(varied, faults.CONTRADICTED, NOT_COMPARED):
        if (fault.place, fault.related) not in seen and fault.place not in fault.related:
            seen.add((fault.place, fault.related))
            yield fault


def _variants(rule: Rule, chains: Chains) -> Iterator[Rule]:
    """The rule, and with each conclusion that its own one entails."""
    yield rule
    for chain in chains[rule.conclusion.atom]:
        yield replace(rule, name=f"{rule.name} ({chain})", conclusion=Literal(chain.end))


def _positive(rule: Rule) -> list[Literal]:
    return [literal for literal in rule.literals if not literal.negated]


def _to(atom: Atom, chains: Sequence[Chain]) -> Chain | None:
    return next((chain for chain in chains if chain.end == atom), None)


def _rests_on(rule: Rule, literal: Literal) -> bool:
    """True if without the literal the premise does not connect the variables of the conclusion."""
    wanted = {term.name for term in rule.conclusion.atom.arguments if isinstance(term, Variable)}
    rest = [variable_names([item]) for item in rule.premise if item != literal]
    # A conclusion about one variable needs the literal unless another item is about that variable alone.
    if len(wanted) < 2:
        return wanted not in rest
    # From one of the variables to all that the other items connect with it.
    reached = {min(wanted)} if any(min(wanted) in names for names in rest) else set()
    while any(names & reached and not names <= reached for names in rest):
        reached = reached.union(*(names for names in rest if names & reached))
    return not wanted <= reached
