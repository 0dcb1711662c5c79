"""Rules against entailments: one that points the wrong way, one that is redundant, two that contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.entailment import Chain, Edge, EntailmentGraph
from engine.session import PrologSession
from grammar import faults
from grammar.errors import Diagnostic
from grammar.rule_pairs import CONTRARIES_TOLD, MAXIMUM_MEETINGS, can_meet, given_up, not_all_contraries
from grammar.rules import Library, Rule
from grammar.subsumption import MAXIMUM_TRIES_OF_ALL, Matcher
from grammar.terms import Atom, Literal, Variable


def entailment_faults(library: Library, found: Sequence[Edge], session: PrologSession) -> Iterator[Diagnostic]:
    """Everything that the entailments say against the rules, each with the chain that shows it."""
    if not found:
        return
    rules = [rule for rule in library.rules if not rule.conclusion.negated]
    atoms = [literal.atom for rule in rules for literal in (*_positive(rule), rule.conclusion)]
    chains = EntailmentGraph(found, session).chains(atoms)
    turned = list(reversed_rules(rules, chains))
    yield from turned
    places = {one.place for one in turned}
    yield from redundant_rules([rule for rule in rules if rule.place not in places], chains, library)
    yield from contradicted_rules(rules, chains, library)


Chains = Mapping[Atom, Sequence[Chain]]
"""From each atom of the rules, over its rule's variables, to all that it entails."""


def reversed_rules(rules: Sequence[Rule], chains: Chains) -> Iterator[Diagnostic]:
    """Rules that conclude the special from the general: the conclusion entails a premise, and not the reverse.

    A rule is not accused where its other premises, too, tell something that ties the conclusion's arguments together.
    """
    for rule in rules:
        for literal in _positive(rule):
            chain = _to(literal.atom, chains[rule.conclusion.atom])
            if chain is None or _to(rule.conclusion.atom, chains[literal.atom]) or not _rests_on(rule, literal):
                continue
            yield faults.REVERSED.at(
                rule.place,
                f"rule {rule.name} concludes {chain.atoms[0]} from {chain.end}, but it is {chain}, not the reverse",
                "Turn the rule round, or add the premise that makes the difference",
            )


def redundant_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose conclusion follows without them: from one of their premises, or by another rule and entailments."""
    told: set[str] = set()
    for rule in rules:
        if len(rule.premise) == 1:
            continue  # it states an entailment, for goals that are asked without --entail
        by_itself = (_to(rule.conclusion.atom, chains[literal.atom]) for literal in _positive(rule))
        chain = next((one for one in by_itself if one), None)
        if chain is not None:
            told.add(rule.name)
            yield faults.REDUNDANT.at(
                rule.place, f"rule {rule.name} says nothing new: {chain}", f"Take rule {rule.name} out"
            )
    matcher = Matcher(library, MAXIMUM_TRIES_OF_ALL)
    generals = _Generals(rules, chains)
    for special in rules:
        if matcher.left <= 0:
            yield given_up(special)
            return
        for general in generals.of(special):
            if {special.name, general.name} & told or matcher.subsumes(general, special):
                continue
            way = _way(general, special, chains, matcher)
            if way is not None:
                told.add(special.name)
                yield faults.REDUNDANT.at(
                    special.place,
                    f"all that rule {special.name} concludes follows by rule {general.name} already: {_told(way)}",
                    f"Take rule {special.name} out",
                    general.place,
                )


def contradicted_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose premise entails the contrary of the conclusion, and pairs whose conclusions entail contraries."""
    for rule in rules:
        ends = (chain for literal in _positive(rule) for chain in chains[literal.atom])
        opposite = library.opposite_of(rule.conclusion.atom.predicate)
        chain = next((one for one in ends if one.end == replace(rule.conclusion.atom, predicate=opposite or "")), None)
        if chain is not None:
            yield faults.CONTRADICTED.at(
                rule.place,
                f"rule {rule.name} concludes {rule.conclusion.atom}, but {chain}",
                "Turn the conclusion round, or correct the entailment",
            )
    yield from _contradicting_pairs(rules, chains, library)


def _contradicting_pairs(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    earlier: dict[str, list[int]] = {}
    variants = [tuple(_variants(rule, chains)) for rule in rules]
    left = MAXIMUM_MEETINGS
    for number, second in enumerate(rules):
        concluded = dict.fromkeys(one.rule.conclusion.atom.predicate for one in variants[number])
        told = 0
        for other in sorted({one for predicate in concluded for one in earlier.get(predicate, ())}):
            if told == CONTRARIES_TOLD or left == 0:
                yield not_all_contraries(second, told)
                if left == 0:
                    return
                break
            left -= 1
            first = rules[other]
            meeting = next(_contraries(variants[other], variants[number], library), None)
            if meeting is not None:
                told += 1
                yield faults.CONTRADICTED.at(
                    second.place,
                    f"rule {second.name} and rule {first.name} conclude contraries under premises that can hold "
                    f"together: {_told(meeting)}",
                    "Add to one premise what keeps them apart, or correct the entailment",
                    first.place,
                )
        for predicate in concluded:
            if opposite := library.opposite_of(predicate):
                earlier.setdefault(opposite, []).append(number)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A rule that concludes what its conclusion entails; without a chain the rule itself."""

    rule: Rule
    chain: Chain | None = None


def _variants(rule: Rule, chains: Chains) -> Iterator[_Variant]:
    yield _Variant(rule)
    for chain in chains[rule.conclusion.atom]:
        yield _Variant(replace(rule, conclusion=Literal(chain.end)), chain)


class _Generals:
    """Rules found by what another one must have that they may make redundant.

    That one concludes what they conclude, or what this entails, and each atom of their premises is in its own or is
    entailed there. So each is filed under the predicates of its conclusions and the rarest one of its premise.
    """

    def __init__(self, rules: Sequence[Rule], chains: Chains) -> None:
        self._rules, self._chains = rules, chains
        counts = Counter(literal.atom.indicator for rule in rules for literal in _positive(rule))
        self._filed: dict[tuple[str, str], list[int]] = {}
        for number, rule in enumerate(rules):
            rarest = min((literal.atom.indicator for literal in _positive(rule)), key=counts.__getitem__, default="")
            for concluded in self._entailed([rule.conclusion]):
                self._filed.setdefault((concluded, rarest), []).append(number)

    def of(self, special: Rule) -> Iterator[Rule]:
        """The rules, in order, that are worth comparing with this one."""
        concluded = special.conclusion.atom.indicator
        found = {
            number
            for given in {"", *self._entailed(_positive(special))}
            for number in self._filed.get((concluded, given), ())
        }
        return (self._rules[number] for number in sorted(found) if self._rules[number] is not special)

    def _entailed(self, literals: Sequence[Literal]) -> set[str]:
        atoms = [one.atom for one in literals]
        return {one.indicator for atom in atoms for one in (atom, *(chain.end for chain in self._chains[atom]))}


def _contraries(first: Sequence[_Variant], second: Sequence[_Variant], library: Library) -> Iterator[tuple[Chain, ...]]:
    """The chains by which two rules come to conclude contraries; at least one each time."""
    for one in first:
        opposite = library.opposite_of(one.rule.conclusion.atom.predicate)
        for other in second:
            used = tuple(chain for chain in (one.chain, other.chain) if chain is not None)
            if used and opposite == other.rule.conclusion.atom.predicate and can_meet(one.rule, other.rule, library):
                yield used


def _way(general: Rule, special: Rule, chains: Chains, matcher: Matcher) -> tuple[Chain, ...] | None:
    """The chains by which all that the special rule concludes follows by the general one, if it does."""
    wanted = {literal.atom.indicator for literal in _positive(general)}
    added = [chain for literal in _positive(special) for chain in chains[literal.atom] if chain.end.indicator in wanted]
    richer = replace(special, premise=(*special.premise, *(Literal(chain.end) for chain in added)))
    for variant in _variants(general, chains):
        if matcher.subsumes(variant.rule, richer):
            needed = _needed(variant.rule, special, added, matcher)
            return (*needed, *((variant.chain,) if variant.chain is not None else ()))
    return None


def _needed(general: Rule, special: Rule, added: Sequence[Chain], matcher: Matcher) -> list[Chain]:
    """The chains without which the premises would not do."""
    needed = list(added)
    for chain in added:
        fewer = [one for one in needed if one is not chain]
        if matcher.subsumes(
            general, replace(special, premise=(*special.premise, *(Literal(one.end) for one in fewer)))
        ):
            needed = fewer
    return needed


def _positive(rule: Rule) -> list[Literal]:
    return [literal for literal in rule.literals if not literal.negated]


def _to(atom: Atom, chains: Sequence[Chain]) -> Chain | None:
    return next((chain for chain in chains if chain.end == atom), None)


def _rests_on(rule: Rule, literal: Literal) -> bool:
    """Whether without the literal nothing in the premise ties the conclusion's variables together."""
    wanted = {term.name for term in rule.conclusion.atom.arguments if isinstance(term, Variable)}
    rest = [{one.name for one in item.variables} for item in rule.premise if item != literal]
    if len(wanted) < 2:
        return wanted not in rest
    reached = {min(wanted)} if any(min(wanted) in names for names in rest) else set()
    while any(names & reached and not names <= reached for names in rest):
        reached |= {name for names in rest if names & reached for name in names}
    return not wanted <= reached


def _told(chains: Sequence[Chain]) -> str:
    return "; ".join(map(str, chains))
