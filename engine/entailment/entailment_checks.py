"""Rules that chains of entailments show to be reversed, redundant, or in contradiction with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.engine.entailment.graph import ENTAILS, STRONG, Chain, Edge, names_of, strongest_chains
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
from hapax.grammar.terms import Atom, Literal, Term, Variable, variable_names

Chains = Mapping[Atom, Sequence[Chain[Atom]]]
"""From each atom of the rules, over its rule's variables, to all that it entails."""


def entailment_chains(
    starts: Iterable[Atom], edges_of: Callable[[str], Iterable[Edge]], at_least: float = 0.0
) -> dict[Atom, list[Chain[Atom]]]:
    """The strongest chain from each atom to every other atom that it entails, over the terms of the start.

    Shorter chains come first. Of equally strong chains the shortest is given; those with a lower score than `at_least`
    are left out. `edges_of` gives the entailments whose premise has this indicator.
    """

    def entailed(chain: Chain[Atom]) -> Iterator[tuple[float, Atom]]:
        for edge in edges_of(chain.end.indicator):
            names, terms = names_of(edge.premise), dict[str, Term]()
            # A premise that repeats a variable needs equal terms.
            if all(terms.setdefault(*pair) == pair[1] for pair in zip(names, chain.end.arguments, strict=True)):
                arguments = map(terms.__getitem__, names_of(edge.hypothesis))
                yield edge.score, Atom(edge.hypothesis.predicate, tuple(arguments))

    found = {}
    for start in dict.fromkeys(starts):
        # An atom's entailment of itself is no chain.
        _, *chains = strongest_chains([start], entailed, at_least)
        found[start] = sorted(chains, key=lambda chain: (chain.length, str(chain.end)))
    return found


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
    library: Library, edges_of: Callable[[str], Iterable[Edge]], limits: EntailmentLimits | None = None
) -> Iterator[Diagnostic]:
    """Yield the faults of rules that entailments show, each with the chain that shows it."""
    limits = limits or EntailmentLimits()
    atoms: list[Atom] = []
    for rule in library.rules:
        atoms += [literal.atom for literal in (*_positive(rule), rule.conclusion)]
    chains = entailment_chains(atoms, edges_of, limits.at_least)
    if not any(chains.values()):
        return
    reversed_faults = list(reversed_rules(library.rules, chains, limits.margin))
    yield from reversed_faults
    places = {fault.place for fault in reversed_faults}
    # A reversed rule is not called redundant as well: once turned round it is another rule. Neither is one that the
    # rules alone make redundant: who removes it and the rule that follows only by it would lose the conclusion.
    places |= {fault.place for fault in (*duplicate_and_subsumed_rules(library), *rules_implied_by_others(library))}
    yield from redundant_rules([rule for rule in library.rules if rule.place not in places], chains, library)
    yield from contradicted_rules(library.rules, chains, library)


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
                f"rule {rule.name} concludes {rule.conclusion.atom} from {chain.end}, but the entailment runs the "
                f"other way: {chain}",
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
    entailed = []
    for start, ends in chains.items():
        for chain in ends:
            rule = Edge(start, chain.end, chain.score).rule
            entailed.append(replace(rule, name=str(chain), chance=None, by_declaration=True))
    left = [rule for rule in rules if rule.name not in reported]
    for fault in rules_implied_by_others.find(
        replace(library, rules=(*left, *entailed)), faults.REDUNDANT, NOT_COMPARED
    ):
        yield replace(fault, related=tuple(place for place in fault.related if place.file != ENTAILS))


def contradicted_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose premise entails the contrary of the conclusion, and pairs whose conclusions entail contraries."""
    for rule in rules:
        ends: list[Chain[Atom]] = []
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


def _to(atom: Atom, chains: Sequence[Chain[Atom]]) -> Chain[Atom] | None:
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
