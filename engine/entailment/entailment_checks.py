"""Chains of entailments, and rules that they show to be reversed, redundant, or in contradiction with each other.

A *position* in the closure is a predicate over the terms of the atom where the walk began, as numbers: from a(X, Y),
the position `b, (1, 0)` is b(Y, X). An edge leads on from every position that its premise matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

from hapax.engine.entailment.graph import STRONG, Edge
from hapax.grammar.arguments import checked
from hapax.grammar.checking import faults
from hapax.grammar.checking.pair_checks import (
    CONTRARIES_SHOWN,
    MAXIMUM_MEETINGS,
    can_meet,
    contraries_given_up,
    duplicate_and_subsumed_rules,
    given_up,
)
from hapax.grammar.checking.subsumption import MAXIMUM_TRIES_OF_ALL, Matcher
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
    places |= {fault.place for fault in duplicate_and_subsumed_rules(library)}
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
    matcher = Matcher(library, MAXIMUM_TRIES_OF_ALL)
    generals = _Generals(rules, chains)
    for special in rules:
        # The budget of comparisons is for the whole library, so that `check` stays fast.
        if matcher.left <= 0:
            yield given_up(special)
            return
        for general in generals.of(special):
            if {special.name, general.name} & reported or matcher.subsumes(general, special):
                continue
            way = _way(general, special, chains, matcher)
            if way is not None:
                reported.add(special.name)
                yield faults.REDUNDANT.at(
                    special.place,
                    f"the conclusion of rule {special.name} already follows by rule {general.name}: {_joined(way)}",
                    f"Remove rule {special.name}",
                    general.place,
                )


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
    yield from _contradicting_pairs(rules, chains, library)


def _contradicting_pairs(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    earlier: dict[str, list[int]] = {}
    variants = [tuple(_variants(rule, chains)) for rule in rules]
    left = MAXIMUM_MEETINGS
    for number, second in enumerate(rules):
        concluded = dict.fromkeys(variant.rule.conclusion.atom.predicate for variant in variants[number])
        partners = set().union(*(earlier.get(predicate, ()) for predicate in concluded))
        reported = 0
        for partner in sorted(partners):
            if reported == CONTRARIES_SHOWN or left == 0:
                yield contraries_given_up(second, reported)
                if left == 0:
                    return
                break
            left -= 1
            first = rules[partner]
            meeting = next(_contraries(variants[partner], variants[number], library), None)
            if meeting is not None:
                reported += 1
                yield faults.CONTRADICTED.at(
                    second.place,
                    f"rule {second.name} and rule {first.name} conclude contraries under premises that can hold "
                    f"together: {_joined(meeting)}",
                    "Add a condition to one premise that excludes the other, or correct the entailment",
                    first.place,
                )
        # Filed under the opposite, where later rules that contradict this one look.
        for predicate in concluded:
            if opposite := library.opposite_of(predicate):
                earlier.setdefault(opposite, []).append(number)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A rule whose conclusion is replaced by one that it entails along `chain`; without a chain the rule itself."""

    rule: Rule
    chain: Chain | None = None


def _variants(rule: Rule, chains: Chains) -> Iterator[_Variant]:
    yield _Variant(rule)
    for chain in chains[rule.conclusion.atom]:
        yield _Variant(replace(rule, conclusion=Literal(chain.end)), chain)


class _Generals:
    """An index of rules by which the possible generalisations of a rule are found.

    A general rule concludes what the special one does, perhaps by an entailment, and each atom of its premise is in the
    premise of the special one or entailed there. So it is filed under each predicate that it concludes together with
    the rarest predicate of its premise.
    """

    def __init__(self, rules: Sequence[Rule], chains: Chains) -> None:
        self._rules, self._chains = rules, chains
        counts: Counter[str] = Counter()
        for rule in rules:
            counts.update(literal.atom.indicator for literal in _positive(rule))
        self._filed: dict[tuple[str, str], list[int]] = {}
        for number, rule in enumerate(rules):
            rarest = min((literal.atom.indicator for literal in _positive(rule)), key=counts.__getitem__, default="")
            for concluded in self._entailed([rule.conclusion]):
                self._filed.setdefault((concluded, rarest), []).append(number)

    def of(self, special: Rule) -> Iterator[Rule]:
        """The rules, in order, that may be more general than this one."""
        concluded = special.conclusion.atom.indicator
        found: set[int] = set()
        # Rules without a positive premise are filed under "".
        for given in {"", *self._entailed(_positive(special))}:
            found.update(self._filed.get((concluded, given), ()))
        return (self._rules[number] for number in sorted(found) if self._rules[number] is not special)

    def _entailed(self, literals: Sequence[Literal]) -> set[str]:
        """Predicates of the literals and of all atoms that they entail."""
        found: set[str] = set()
        for literal in literals:
            found.add(literal.atom.indicator)
            found.update(chain.end.indicator for chain in self._chains[literal.atom])
        return found


def _contraries(first: Sequence[_Variant], second: Sequence[_Variant], library: Library) -> Iterator[tuple[Chain, ...]]:
    """The chains by which variants of two rules conclude contraries. `rule_pairs` finds contraries without a chain."""
    for left in first:
        opposite = library.opposite_of(left.rule.conclusion.atom.predicate)
        for right in second:
            used = tuple(chain for chain in (left.chain, right.chain) if chain is not None)
            if used and opposite == right.rule.conclusion.atom.predicate and can_meet(left.rule, right.rule, library):
                yield used


def _way(general: Rule, special: Rule, chains: Chains, matcher: Matcher) -> tuple[Chain, ...] | None:
    """The chains by which the special rule's conclusion follows by the general one; None if it does not."""
    wanted = {literal.atom.indicator for literal in _positive(general)}
    added: list[Chain] = []
    for literal in _positive(special):
        added += [chain for chain in chains[literal.atom] if chain.end.indicator in wanted]
    # With everything that its premise entails the special rule may be an instance of the general one.
    richer = replace(special, premise=(*special.premise, *(Literal(chain.end) for chain in added)))
    for variant in _variants(general, chains):
        if matcher.subsumes(variant.rule, richer):
            needed = _needed(variant.rule, special, added, matcher)
            return (*needed, *((variant.chain,) if variant.chain is not None else ()))
    return None


def _needed(general: Rule, special: Rule, added: Sequence[Chain], matcher: Matcher) -> list[Chain]:
    """A minimal part of the added chains with which the general rule still subsumes the special one."""
    needed = list(added)
    for chain in added:
        fewer = [kept for kept in needed if kept is not chain]
        premise = (*special.premise, *(Literal(kept.end) for kept in fewer))
        if matcher.subsumes(general, replace(special, premise=premise)):
            needed = fewer
    return needed


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


def _joined(chains: Sequence[Chain]) -> str:
    return "; ".join(map(str, chains))
