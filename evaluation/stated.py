"""Statements that no search derived: their values are stated by somebody, and nothing here has checked them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.proof import By, Proof
from grammar.rules import Library, Rule
from grammar.terms import Constant, Literal, Substitution, Value
from grammar.verbalize import literal_text, statement_text
from kb.records import Distribution, StatementRecord


@dataclass(frozen=True, slots=True)
class Stated:
    """Whose statements, of which rule and distribution."""

    library: Library
    rule: Rule
    distribution: Distribution
    run_id: str

    def statement(self, values: Mapping[str, Value]) -> StatementRecord:
        """The rule with these values in words. A generic variable that has a value keeps it as its name."""
        bound = {name: Constant(value) for name, value in values.items()}
        rule, library = self.rule, self.library
        told = statement_text(rule, library, bound)
        literals = (*rule.literals, rule.conclusion)
        return StatementRecord(
            rule.name,
            self.distribution,
            self.run_id,
            tuple(values.items()),
            told.premise,
            told.conclusion,
            " and ".join(literal_text(one, library, bound, rule.generic) for one in literals),
            _proof(rule, bound).to_json(),
        )


def _proof(rule: Rule, bound: Mapping[str, Constant]) -> Proof:
    """What the rule says of the values."""
    searched = Substitution(tuple((name, value) for name, value in bound.items() if name not in rule.generic))

    def told(literal: Literal) -> Literal:
        return Literal(searched.apply(literal.atom), literal.negated)

    premises = tuple(Proof(told(one), By.ASSUMPTION if rule.is_information(one) else By.GIVEN) for one in rule.literals)
    return Proof(told(rule.conclusion), By.RULE, rule.name, premises)
