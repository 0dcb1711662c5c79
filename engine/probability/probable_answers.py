"""Probabilities of the answers of goals and of statements, by the method that a person chooses.

Proofs are those of the world in which every fact holds. A negated atom that is uncertain is false in some worlds, so
the instances are looked up without these negations, and the ground program has them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hapax.engine.answers.derivation import stored_values
from hapax.engine.gates.score_maps import ScoreMaps, denial_probabilities, fact_probabilities
from hapax.engine.inference.derive import BULK_LIMITS, RuleInstance, fact_key
from hapax.engine.inference.theory import QueryResult, Theory, sort_key
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.goal_rules import GOAL, goal_rules, rule_of, with_rules
from hapax.engine.logic.proofs import reading, time_limit
from hapax.engine.probability.ground import GroundProgram, TooLarge, bounds, exact, supports
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import AnswerCell
from hapax.engine.query_options import ProbabilityOptions
from hapax.grammar.dependencies import evaluation_layers, refuse_negative_cycles
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import SAME_AS, Chance, PredicateKind
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Value, Variable, variable_names
from hapax.grammar.writing.words import counted
from hapax.kb.records import DenialRecord, FactRecord
from hapax.kb.store import KnowledgeBase

EVIDENCE = "the evidence"
"""The predicate of the evidence together."""

# --- ground programs of goals -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chances:
    """The probabilities of stored facts; a fact without one is certain.

    `of_denial`: the probability that an atom is true although a critic denied it.
    """

    of_fact: Callable[[FactRecord], float | None]
    of_denial: Callable[[DenialRecord], float] = lambda denial: denial.probability


def choice_events(program: GroundProgram, chance: Chance, bindings: Mapping[str, Value]) -> list[int]:
    """The random events behind an outcome of a choice: its own, the last one, happens and those before do not.

    Raises HapaxError for values that are no probabilities.
    """
    shares = chance.shares(bindings)
    if shares is None:
        raise HapaxError(f"The probabilities of {chance} are no numbers from 0 to 1 with a sum of 1 at most.")
    nodes = []
    left = Fraction(1)
    for place, share in enumerate(shares[: chance.place + 1]):
        outcome = chance.outcomes[place][1].replaced({name: Constant(value) for name, value in bindings.items()})
        name = chance.choice if chance.is_shared else (*chance.choice, outcome, place, *bindings.items())
        nodes.append(program.node(name))
        program.weights[nodes[-1]] = float(share / left) if left else 0.0
        left -= share
    return nodes


def relaxed(library: Library) -> Library:
    """The library without the negations of closed predicates that are not computed; rules keep their places.

    Raises HapaxError for an aggregate, whose value differs from world to world.
    """
    rules: list[Rule] = []
    for rule in library.rules:
        if rule.aggregate is not None:
            raise HapaxError(
                f"{rule.place}: {rule.aggregate.atom.indicator} is an aggregate, of which there are no probabilities. "
                "Ask without them."
            )
        kept: list[BodyLiteral] = []
        for item in rule.premise:
            indicator = item.atom.indicator if isinstance(item, Literal) and item.negated else ""
            if not indicator or library.is_open(indicator) or library.kind(indicator) is PredicateKind.COMPUTED:
                kept.append(item)
        rules.append(replace(rule, premise=tuple(kept)))
    return replace(library, rules=tuple(rules))


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
    part = replace(part, library=relaxed(original))
    root = part.library.concluding[goal][0].conclusion.atom
    free = Atom(root.predicate, tuple(Variable(f"A{place}", "Object") for place in range(len(root.arguments))))
    part.index()
    with reading(theory.kb), time_limit(theory.kb, limits.seconds):
        demand = Demand(part.source(), part.library, finds_instances=True)
        if demand.names.representatives:
            raise HapaxError(
                f"{SAME_AS} joins names below this goal, and no probability follows from joined names.",
                Remedy("Ask without probabilities."),
            )
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
        if rule.chance is not None:
            bindings = {name: constant.value for name, constant in instance.substitution.bindings}
            *earlier, own = choice_events(self.program, rule.chance, bindings)
            signed[False].append(own)
            signed[True] += earlier
        self.program.add(self._node(head), signed[False], signed[True])

    def _node(self, atom: Atom) -> int:
        return self.program.node(atom, self._layer_of.get(atom.indicator, 0))

    def weigh(self, facts: Iterable[FactRecord], theory: Theory) -> None:
        """Give the nodes that are facts, assumptions or denials their probabilities."""
        atoms = {fact_key(name): number for number, name in enumerate(self.program.names) if isinstance(name, Atom)}
        for fact in facts:
            node = atoms.get((fact.predicate, fact.arguments))
            if node is None:
                continue
            probability = self.chances.of_fact(fact)
            self.program.weights[node] = 1.0 if probability is None else probability
        stated = list(self.library.chances)
        certain = Counter(self.library.facts) - Counter(atom for atom, _ in stated)
        for atom, chance in (*stated, *((atom, None) for atom in (*certain, *theory.assumed))):
            node = atoms.get(fact_key(atom))
            if node is not None:
                # One of several statements of an atom is enough.
                own = 1.0 if chance is None else float(sum(chance.shares({}) or ()))
                self.program.weights[node] = 1 - (1 - self.program.weights.get(node, 0.0)) * (1 - own)
        # A critic's sure no has P(yes) near 0; the node is the event that the atom is false.
        denied = {fact_key(atom): self.program.node(("denial", atom)) for atom in self._denied}
        for denial in theory.denied():
            node = denied.get((denial.predicate, denial.arguments))
            if node is not None:
                self.program.weights[node] = 1.0 - self.chances.of_denial(denial)


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probability:
    """A probability, or two numbers between which it lies. `method`: `exact`, `bounds` or `best proof`."""

    lower: float
    upper: float
    method: str

    def __str__(self) -> str:
        if self.method == "bounds":
            return f"{self.lower:.4f} to {self.upper:.4f}"
        return f"{self.lower:.4f}" if self.method == "exact" else f"at least {self.lower:.4f}"

    def to_json(self) -> dict[str, float | str]:
        """The probability, or its lower bound, with the upper bound and the method, as a JSON object."""
        return {"probability": self.lower, "at_most": self.upper, "method": self.method}


@dataclass(frozen=True, slots=True)
class ProofSupport:
    """A proof as the facts that it needs, each with its probability, and their product."""

    probability: float
    facts: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ProbableAnswers:
    """Distinct answers of a goal that hold in some world, the most probable first, with their probabilities."""

    result: QueryResult
    probabilities: list[Probability]
    basis: str
    """Where the facts' probabilities come from."""


def basis_of(kb: KnowledgeBase, library: Library) -> str:
    """A sentence about the scores that count as probabilities."""
    if library.is_uncertain:
        return "The rules state the probabilities; facts from models have their critics' scores."
    maps = ScoreMaps.stored(kb)
    if maps.maps:
        named = (f"{name} ({counted(maps.labels[name], 'label')})" for name in sorted(maps.maps))
        replies = ", each by all scores of its reply" if maps.replies else ""
        return f"Calibrated scores of {', '.join(named)}{replies}; other critics' scores as they are."
    return "Critics' scores as they are: this knowledge base has no calibration."


class Evaluator:
    """Computes the probabilities of nodes of a ground program, each of which holds only where the evidence does."""

    def __init__(self, program: GroundProgram, options: ProbabilityOptions) -> None:
        self.program, self.options = program, options
        self._evidence: Probability | None = None
        if Atom(EVIDENCE, ()) in program.names:
            self._evidence = self._probability(program.names.index(Atom(EVIDENCE, ())))
            if self._evidence.upper <= 0:
                raise HapaxError("What is stated as evidence cannot hold together. Correct the evidence.")

    def probability(self, node: int) -> Probability:
        """The probability of a node, given the evidence. Raises HapaxError where `exact` is asked for and too large."""
        found, known = self._probability(node), self._evidence
        if known is None:
            return found
        method = found.method if known.method == found.method else "bounds"
        upper = min(1.0, found.upper / known.lower) if known.lower else 1.0
        return Probability(min(upper, found.lower / known.upper), upper, method)

    def _probability(self, node: int) -> Probability:
        options = self.options
        if options.method == "best":
            best = max((value for _, value in supports(self.program, node, options.proofs)), default=0.0)
            return Probability(best, 1.0, "best proof")
        if options.method != "bounds":
            try:
                value = exact(self.program, node, options.nodes)
                return Probability(value, value, "exact")
            # With `auto`, the bounds below take the place of a number that is too large to compute.
            except TooLarge:
                if options.method == "exact":
                    raise HapaxError(
                        f"The exact probability of {self.program.names[node]} needs a diagram of more than "
                        f"{options.nodes} nodes. Ask for bounds, or raise the limit."
                    ) from None
        return Probability(*bounds(self.program, node, options.proofs), "bounds")

    def proofs(self, node: int) -> list[ProofSupport]:
        """The best proofs of a node as the facts that they need."""
        best = []
        for support, value in supports(self.program, node, self.options.proofs):
            events = tuple(self._event(event, happens) for event, happens in sorted(support))
            best.append(ProofSupport(value, events))
        return best

    def _event(self, node: int, happens: bool) -> tuple[str, float]:
        name, weight = self.program.names[node], self.program.weights[node]
        # Events that are no atoms: a denial or an entailment.
        if isinstance(name, tuple):
            kind, *atoms = name
            if kind == "choice":
                return (f"{atoms[1]} by chance", weight) if happens else (f"not {atoms[1]} by chance", 1.0 - weight)
            return f"not {atoms[0]}, denied" if kind == "denial" else " entails ".join(map(str, atoms)), weight
        return (str(name), weight) if happens else (f"not {name}", 1.0 - weight)


def probable_answers(
    theory: Theory, text: str, options: ProbabilityOptions, limits: QueryLimits | None = None
) -> ProbableAnswers:
    """The answers of a goal that hold in some world, with their probabilities, the most probable first.

    `limits`: those of the search for proofs; only the most probable answers up to their number are given. Raises
    GoalRejected and LimitExceeded, and HapaxError for a goal or a part of it that has no probability.
    """
    goal = theory.goal(text)
    limits = limits or QueryLimits()
    program, nodes = grounded(theory, goal_rules(goal, theory.library), limits)
    evaluator = Evaluator(program, options)
    pairs: list[tuple[Probability, tuple[AnswerCell, ...]]] = []
    for node, atom in nodes:
        probability = evaluator.probability(node)
        # What holds in no world is no answer.
        if probability.upper > 0 and probability.lower >= options.at_least:
            pairs.append((probability, atom.values))
    pairs.sort(key=lambda pair: (-pair[0].lower, -pair[0].upper, sort_key(pair[1])))
    kept = pairs[: limits.answers]
    result = QueryResult(goal.variables, [row for _, row in kept], len(kept) < len(pairs))
    return ProbableAnswers(result, [found for found, _ in kept], basis_of(theory.kb, theory.library))


def probable_conjunction(
    theory: Theory, items: Sequence[BodyLiteral], options: ProbabilityOptions
) -> tuple[Probability, list[ProofSupport]]:
    """The probability that items of a premise without variables hold together, and the best proofs of that."""
    program, nodes = grounded(theory, [rule_of(items, Atom(GOAL, ()))], BULK_LIMITS)
    evaluator = Evaluator(program, options)
    # One node at most, since the goal has no variables.
    for node, _ in nodes:
        return evaluator.probability(node), evaluator.proofs(node)
    return Probability(0.0, 0.0, "exact"), []


def grounded(
    theory: Theory, rules: Sequence[Rule], limits: QueryLimits
) -> tuple[GroundProgram, list[tuple[int, Atom]]]:
    """The ground program of rules that conclude GOAL, and the nodes of its atoms."""
    goal = next(rule.conclusion.atom for rule in rules if rule.conclusion.atom.predicate == GOAL)
    # Only the answers are counted by the user's limit, not the rule instances.
    endless = replace(limits, answers=BULK_LIMITS.answers)
    if theory.library.evidence:
        known, both = Atom(EVIDENCE, ()), replace(goal, predicate=f"{GOAL} and {EVIDENCE}")
        rules = [*rules, rule_of(theory.library.evidence, known), rule_of([Literal(goal), Literal(known)], both)]
        goal = both
    widened = replace(theory, library=with_rules(theory.library, rules), assume=theory.assumed)
    # Calibrated where the knowledge base stores a calibration.
    chances = Chances(fact_probabilities(theory.kb, theory.library), denial_probabilities(theory.kb))
    program = ground(widened, goal.indicator, chances, endless)
    named = enumerate(program.names)
    answers = [(number, name) for number, name in named if isinstance(name, Atom) and name.predicate == goal.predicate]
    return program, answers


# --- statements of a derivation ---------------------------------------------------------------------------------------


def statement_probabilities(
    kb: KnowledgeBase, library: Library, rule: Rule, options: ProbabilityOptions
) -> list[Probability]:
    """The probabilities of a rule's stored statements, in the order of `read_statements`. Raises as that does."""
    constraints = [item for item in rule.premise if not rule.is_information(item)]
    bound = variable_names(item for item in constraints if not (isinstance(item, Literal) and item.negated))
    shown = [variable for variable in rule.searched if variable.name in bound]
    stored = list(stored_values(kb, library, rule))
    program, nodes = grounded(Theory(library, kb), [rule_of(constraints, Atom(GOAL, tuple(shown)))], BULK_LIMITS)
    by_values = {atom.values: node for node, atom in nodes}
    evaluator = Evaluator(program, options)
    return [
        evaluator.probability(by_values[tuple(values[variable.name].value for variable in shown)]) for values in stored
    ]
