"""Probabilities of the answers of goals and of statements, by the method that a person chooses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from hapax.engine.inference.derive import BULK_LIMITS
from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.proof import instantiated
from hapax.engine.inference.session import AnswerCell
from hapax.engine.inference.theory import QueryResult, Theory, sort_key
from hapax.engine.logic.goals import GOAL, goal_rules, rule_of, with_rules
from hapax.engine.probability.exact import TooLarge, exact
from hapax.engine.probability.ground import GroundProgram
from hapax.engine.probability.grounding import Chances, ground
from hapax.engine.probability.options import ProbabilityOptions, Together
from hapax.engine.probability.proofs import bounds, supports
from hapax.engine.search.score_maps import ScoreMaps, denial_probabilities, fact_probabilities
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Rule
from hapax.grammar.terms import Atom, Constant, Literal, Substitution
from hapax.kb.records import FactRecord
from hapax.kb.store import KnowledgeBase


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


def chances_of(kb: KnowledgeBase, together: Together = "") -> Chances:
    """The chances of a knowledge base's facts, calibrated where it stores a calibration."""
    return Chances(fact_probabilities(kb), _groups(kb, together), denial_probabilities(kb))


def _groups(kb: KnowledgeBase, together: Together) -> Callable[[FactRecord], Hashable | None]:
    if together == "run":
        return lambda fact: fact.run_id
    if together == "reply":
        # A statement of the database, not of each fact: a search has as many candidates as facts.
        calls = dict(kb.connection.execute("SELECT id, call_id FROM candidates").fetchall())
        return lambda fact: calls.get(fact.candidate_id or "")
    return lambda _: None


def basis_of(kb: KnowledgeBase) -> str:
    """A sentence about the scores that count as probabilities."""
    critics = sorted(ScoreMaps.stored(kb).maps)
    if critics:
        return f"Calibrated scores of {', '.join(critics)}; other critics' scores as they are."
    return "Critics' scores as they are: this knowledge base has no calibration."


class Evaluator:
    """Computes the probabilities of nodes of a ground program."""

    def __init__(self, program: GroundProgram, options: ProbabilityOptions) -> None:
        self.program, self.options = program, options

    def probability(self, node: int) -> Probability:
        """The probability of a node. Raises HapaxError where `exact` is asked for and too large."""
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
        # Events that are no atoms: a denial, an entailment, or a link between facts that come together.
        if isinstance(name, tuple):
            kind, *atoms = name
            words = f"not {atoms[0]}, denied" if kind == "denial" else " entails ".join(map(str, atoms))
            return words if kind != "link" else f"the facts of {atoms[0]} together", weight
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
    program, nodes = grounded(theory, goal_rules(goal, theory.library), options, limits)
    evaluator = Evaluator(program, options)
    pairs: list[tuple[Probability, tuple[AnswerCell, ...]]] = []
    for node, atom in nodes:
        probability = evaluator.probability(node)
        # What holds in no world is no answer.
        if probability.upper > 0 and probability.lower >= options.at_least:
            values = (term.value for term in atom.arguments if isinstance(term, Constant))
            pairs.append((probability, tuple(values)))
    pairs.sort(key=lambda pair: (-pair[0].lower, -pair[0].upper, sort_key(pair[1])))
    kept = pairs[: limits.answers]
    result = QueryResult(goal.variables, [row for _, row in kept], len(kept) < len(pairs))
    return ProbableAnswers(result, [found for found, _ in kept], basis_of(theory.kb))


def probable_premise(
    theory: Theory, rule: Rule, substitution: Substitution, options: ProbabilityOptions
) -> tuple[Probability, list[ProofSupport]]:
    """The probability of what a statement's rule needs, without its hypotheses, and its best proofs."""
    premise = [instantiated(item, substitution) for item in rule.premise if not rule.is_information(item)]
    return _probable_rule(theory, rule_of(premise, Atom(GOAL, ())), options)


def probable_atom(theory: Theory, atom: Atom, options: ProbabilityOptions) -> tuple[Probability, list[ProofSupport]]:
    """The probability of a ground atom, and its best proofs."""
    return _probable_rule(theory, rule_of([Literal(atom)], Atom(GOAL, ())), options)


def _probable_rule(theory: Theory, rule: Rule, options: ProbabilityOptions) -> tuple[Probability, list[ProofSupport]]:
    program, nodes = grounded(theory, [rule], options, BULK_LIMITS)
    evaluator = Evaluator(program, options)
    # One node at most, since the goal has no variables.
    for node, _ in nodes:
        return evaluator.probability(node), evaluator.proofs(node)
    return Probability(0.0, 0.0, "exact"), []


def grounded(
    theory: Theory, rules: Sequence[Rule], options: ProbabilityOptions, limits: QueryLimits
) -> tuple[GroundProgram, list[tuple[int, Atom]]]:
    """The ground program of rules that conclude GOAL, and the nodes of its atoms."""
    widened = replace(theory, library=with_rules(theory.library, rules), assume=theory.assumed)
    indicator = next(rule.conclusion.atom.indicator for rule in rules if rule.conclusion.atom.predicate == GOAL)
    # Only the answers are counted by the user's limit, not the rule instances.
    endless = replace(limits, answers=BULK_LIMITS.answers)
    program = ground(widened, indicator, chances_of(theory.kb, options.together), endless)
    named = enumerate(program.names)
    return program, [(number, name) for number, name in named if isinstance(name, Atom) and name.predicate == GOAL]
