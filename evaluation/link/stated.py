"""Statements whose values come from outside a search, such as an import; nothing has checked them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hapax.engine.inference.proof import By, Proof
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Literal, Substitution, Value
from hapax.grammar.verbalize import statement_text
from hapax.kb.records import Distribution, StatementRecord


@dataclass(frozen=True, slots=True)
class GivenStatementWriter:
    """Writes the statements of one rule, distribution and run."""

    library: Library
    rule: Rule
    distribution: Distribution
    run_id: str

    def statement(self, values: Mapping[str, Value]) -> StatementRecord:
        """The rule with these values, in words. A generic variable that has a value is named by it."""
        bound = {name: Constant(value) for name, value in values.items()}
        rule, library = self.rule, self.library
        words = statement_text(rule, library, bound)
        return StatementRecord(
            rule.name,
            self.distribution,
            self.run_id,
            tuple(values.items()),
            words.premise,
            words.conclusion,
            _proof(rule, bound).to_json(),
        )


def _proof(rule: Rule, bound: Mapping[str, Constant]) -> Proof:
    """A proof by the rule itself: information is assumed, constraints are taken as given."""
    # Generic variables stay variables: the proof holds for any person.
    searched = Substitution(tuple((name, value) for name, value in bound.items() if name not in rule.generic))

    def substituted(literal: Literal) -> Literal:
        return Literal(searched.apply(literal.atom), literal.negated)

    premises = []
    for literal in rule.literals:
        # Information is the premise that a reader supposes; constraints are facts from elsewhere.
        source = By.ASSUMPTION if rule.is_information(literal) else By.GIVEN
        premises.append(Proof(substituted(literal), source))
    return Proof(substituted(rule.conclusion), By.RULE, rule.name, tuple(premises))
