"""Weights of the theory's rules: a reading is supported by the sum of the weights of the rules that speak for it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from hapax.engine.logic.proofs import EveryDerivation
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom

FILE = Path(__file__).with_name("weights.toml")

READINGS = ("is_meant_by_type", "is_meant_by_knowledge", "is_meant_by_default", "is_meant_by_induction")
"""Goals of the theory: the candidate is meant, by ever weaker kinds of reasons."""

PRIORS = {"is_meant_by_type": 2.0, "is_meant_by_knowledge": 1.3, "is_meant_by_default": 0.6}
"""Weight, in nats, of a rule of each kind before any sentence is counted; rules by induction start from 0."""


@dataclass(frozen=True, slots=True)
class RuleWeights:
    """Weight of each rule by name, and the least probability at which an answer is given.

    `confidence`: weight of each sign of how sure an answer is, in log odds; without, the margin alone tells.
    """

    weights: Mapping[str, float]
    least: float
    confidence: Mapping[str, float] = field(default_factory=lambda: MARGIN_ALONE)

    def support(self, evidence: Iterable[str]) -> float:
        """Sum of the weights of these rules."""
        return sum(self.weights.get(rule, 0.0) for rule in evidence)

    def signs(self, evidence: tuple[Iterable[str], Iterable[str]], is_earlier: bool) -> dict[str, float]:
        """Signs of how sure the better of two readings is, by the rules for either.

        `is_earlier`: what is said of the pronoun comes before the event, or is its condition.
        """
        first, second = map(set, evidence)
        # What speaks for both readings tells nothing.
        own = [sorted(self.weights.get(rule, 0.0) for rule in rules) for rules in (first - second, second - first)]
        losing, winning = sorted(own, key=lambda weights: (math.fsum(weights), weights))
        return {
            "constant": 1.0,
            "margin": math.fsum(winning) - math.fsum(losing),
            "opposition": math.fsum(weight for weight in losing if weight > 0),
            "is_earlier": float(is_earlier),
        }

    def sureness(self, signs: Mapping[str, float]) -> float:
        """Probability that the better reading is right; 0.5 where neither is better."""
        if signs["margin"] == 0:
            return 0.5
        return probability(sum(self.confidence.get(name, 0.0) * value for name, value in signs.items()))


MARGIN_ALONE: Mapping[str, float] = {"constant": 0.0, "margin": 1.0, "opposition": 0.0, "is_earlier": 0.0}
"""Confidence by the difference of the supports alone, from which fits start."""


def probability(log_odds: float) -> float:
    """Probability of these log odds."""
    return 1 / (1 + math.exp(-log_odds))


@lru_cache(maxsize=8)
def evidence_priors(library: Library) -> Mapping[str, float]:
    """Prior weights of the rules that are evidence, by name."""
    grades: dict[str, str] = {}
    alone: dict[str, float] = {}
    for rule in library.rules:
        reading = rule.conclusion.atom.predicate
        if reading not in READINGS:
            continue
        grounds = [item.atom.predicate for item in rule.literals if item.atom.predicate in GROUNDS]
        for ground in grounds:
            grades[ground] = reading
        # A rule that concludes a reading by itself is evidence of its own.
        if not grounds:
            alone[rule.name] = PRIORS.get(reading, 0.0)
    for rule in library.rules:
        if (ground := rule.conclusion.atom.predicate) in grades:
            alone[rule.name] = PRIORS.get(grades[ground], 0.0)
    return alone


GROUNDS = frozenset(
    {
        "accounts_for_it",
        "accounts_for_it_by_default",
        "follows_from_it",
        "follows_from_it_by_default",
        "frustrates_it",
        "frustrates_it_by_default",
        "speaks_against_it",
        "is_what_is_told",
    }
)
"""Predicates by which an event and what is said go together, before the relation of the clauses is looked at."""


def evidence(derivation: EveryDerivation, goals: Iterable[Atom]) -> tuple[str, ...]:
    """Names of the rules that speak for the goals, each once."""
    priors = evidence_priors(derivation.library)
    found: dict[str, None] = {}
    for goal in goals:
        for instance in derivation.instances.get(goal, ()):
            if instance.rule.name in priors:
                found[instance.rule.name] = None
            # One step below: the ground on which the reading rests may be concluded by several rules.
            for item in instance.rule.literals:
                ground = instance.substitution.apply(item.atom)
                for inner in derivation.instances.get(ground, ()):
                    if inner.rule.name in priors:
                        found[inner.rule.name] = None
    return tuple(sorted(found))


def read_weights(path: Path = FILE) -> RuleWeights:
    """Weights of a TOML file."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    weights, confidence = (
        {name: float(weight) for name, weight in data.get(section, {}).items()} for section in ("weights", "confidence")
    )
    return RuleWeights(weights, float(data["least"]), confidence or MARGIN_ALONE)


@lru_cache(maxsize=1)
def shipped_weights() -> RuleWeights:
    """Weights of this folder, read at the first call."""
    return read_weights()
