"""Ground programs of goals over the facts of a theory.

Proofs are those of the world in which every fact holds. A negated atom that is uncertain is false in some
worlds, so the instances are looked up without these negations, and the ground program has them again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from hapax.engine.inference.derive import BULK_LIMITS, RuleInstance, fact_key
from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.limits import time_limit
from hapax.engine.logic.proofs import reading
from hapax.engine.probability.ground import GroundProgram
from hapax.grammar.dependencies import evaluation_layers, refuse_negative_cycles
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Literal, Variable
from hapax.kb.records import DenialRecord, FactRecord


@dataclass(frozen=True)
class Chances:
    """The probabilities of stored facts; a fact without one is certain.

    `group_of`: the name of the random event that a fact shares with others. `of_denial`: the probability that an atom
    is true although a critic denied it.
    """

    of_fact: Callable[[FactRecord], float | None]
    group_of: Callable[[FactRecord], Hashable | None] = lambda _: None
    of_denial: Callable[[DenialRecord], float] = lambda denial: denial.probability


def hidden_event(program: GroundProgram, rule: Rule) -> tuple[int, ...]:
    """The random event on which a rule rests that stands for an entailment; none for other rules."""
    if rule.probability is None:
        return ()
    node = program.node(("entailment", rule.literals[0].atom, rule.conclusion.atom))
    program.weights[node] = rule.probability
    return (node,)


def relaxed(library: Library) -> Library:
    """The library without the negations of closed predicates, whose rules keep their places."""
    rules: list[Rule] = []
    for rule in library.rules:
        premise = tuple(item for item in rule.premise if not is_dropped(item, library))
        rules.append(replace(rule, premise=premise))
    return replace(library, rules=tuple(rules))


def is_dropped(item: BodyLiteral, library: Library) -> bool:
    """True for the negation of a closed predicate that is not computed."""
    if not isinstance(item, Literal) or not item.negated or library.is_open(item.atom.indicator):
        return False
    return library.kind(item.atom.indicator) is not PredicateKind.COMPUTED


def refuse_aggregates(library: Library) -> None:
    """Raise HapaxError if a rule of the library is an aggregate, whose value differs from world to world."""
    for rule in library.rules:
        if rule.aggregate is not None:
            raise HapaxError(
                f"{rule.place}: {rule.aggregate.atom.indicator} is an aggregate, of which there are no probabilities. "
                "Ask without them."
            )


def ground(
    theory: Theory,
    goal: str,
    chances: Chances,
    limits: QueryLimits = BULK_LIMITS,
) -> GroundProgram:
    """The ground program below the atoms of a derived predicate, given by its indicator.

    Raises HapaxError for a negated atom that has variables left, and LimitExceeded for a program too large.
    """
    part = theory.relevant_to(goals=[goal])
    refuse_negative_cycles(part.library)
    original = part.library.with_closure()
    refuse_aggregates(original)
    part = replace(part, library=relaxed(original))
    root = part.library.concluding[goal][0].conclusion.atom
    free = Atom(root.predicate, tuple(Variable(f"A{place}", "Object") for place in range(len(root.arguments))))
    part.index()
    with reading(theory.kb), time_limit(theory.kb, limits.seconds):
        demand = Demand(part.source(), part.library)
        builder = _Builder(original, demand.library, chances)
        waiting = [free]
        # Negated atoms have instances of their own, below which there may be further negations.
        while waiting:
            waiting = builder.add(demand.instances(waiting))
        builder.weigh(demand.records(), theory)
    return builder.program


class _Builder:
    """Builds a ground program from the instances of a relaxed library."""

    def __init__(self, original: Library, library: Library, chances: Chances) -> None:
        self.library, self.chances = original, chances
        self.program = GroundProgram()
        # Layer 0 is left for facts, which no rule concludes.
        self._layer_of: dict[str, int] = {}
        for number, layer in enumerate(evaluation_layers(original), 1):
            self._layer_of |= dict.fromkeys(layer, number)
        # Relaxed rules keep their places; an instance names its relaxed rule, and its negations are in the original.
        self._original = {id(rule): whole for rule, whole in zip(library.rules, original.rules, strict=True)}
        self._seen: set[tuple[int, tuple[object, ...]]] = set()
        self._negated: set[Atom] = set()
        self._denied: set[Atom] = set()

    def add(self, found: Mapping[Atom, Iterable[RuleInstance]]) -> list[Atom]:
        """Add instances, and return the atoms that are negated for the first time."""
        before = set(self._negated)
        for head, group in found.items():
            for instance in group:
                rule = self._original[id(instance.rule)]
                key = (id(rule), instance.substitution.bindings)
                if key not in self._seen:
                    self._seen.add(key)
                    self._add(head, rule, instance)
        return sorted(self._negated - before, key=str)

    def _add(self, head: Atom, rule: Rule, instance: RuleInstance) -> None:
        signed: dict[bool, list[int]] = {False: [], True: []}
        for literal in rule.literals:
            atom = instance.substitution.apply(literal.atom)
            # Arithmetic is the same in every world.
            if self.library.kind(atom.indicator) is PredicateKind.COMPUTED:
                continue
            if not atom.is_ground:
                raise HapaxError(
                    f"{literal} in rule {rule.name} has no probability: nothing gives "
                    f"{atom.variables[0].name} a value.",
                    Remedy("Run {}: it names the rule.", Operation("check_rules")),
                )
            # A critic's sure no is an event, and the literal needs that it happens.
            if literal.negated and self.library.is_open(atom.indicator):
                self._denied.add(atom)
                signed[False].append(self.program.node(("denial", atom)))
            else:
                signed[literal.negated].append(self._node(atom))
                if literal.negated:
                    self._negated.add(atom)
        signed[False] += hidden_event(self.program, rule)
        self.program.add(self._node(head), signed[False], signed[True])

    def _node(self, atom: Atom) -> int:
        return self.program.node(atom, self._layer_of.get(atom.indicator, 0))

    def weigh(self, facts: Iterable[FactRecord], theory: Theory) -> None:
        """Give the nodes that are facts, assumptions or denials their probabilities."""
        atoms = {fact_key(name): number for number, name in enumerate(self.program.names) if isinstance(name, Atom)}
        groups: dict[Hashable, list[int]] = {}
        for fact in facts:
            node = atoms.get((fact.predicate, fact.arguments))
            if node is None:
                continue
            probability = self.chances.of_fact(fact)
            self.program.weights[node] = 1.0 if probability is None else probability
            group = self.chances.group_of(fact)
            if group is not None:
                groups.setdefault(group, []).append(node)
        for atom in (*self.library.facts, *theory.assumed):
            node = atoms.get(fact_key(atom))
            if node is not None:
                self.program.weights[node] = 1.0
        # A critic's sure no has P(yes) near 0; the node is the event that the atom is false.
        denied = {fact_key(atom): self.program.node(("denial", atom)) for atom in self._denied}
        for denial in theory.denied():
            node = denied.get((denial.predicate, denial.arguments))
            if node is not None:
                self.program.weights[node] = 1.0 - self.chances.of_denial(denial)
        for group, members in groups.items():
            self.program.couple(group, members)
