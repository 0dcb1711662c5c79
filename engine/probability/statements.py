"""Probabilities of the statements of a bulk derivation: of everything that their premises need, without hypotheses."""

from __future__ import annotations

from hapax.engine.inference.derive import BULK_LIMITS
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.derive import stored_values
from hapax.engine.logic.goals import GOAL, rule_of
from hapax.engine.probability.answers import Evaluator, Probability, grounded
from hapax.engine.probability.options import ProbabilityOptions
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Literal, Value, variable_names
from hapax.kb.store import KnowledgeBase


def statement_probabilities(
    kb: KnowledgeBase, library: Library, rule: Rule, options: ProbabilityOptions
) -> list[Probability]:
    """The probabilities of a rule's stored statements, in the order of `read_statements`. Raises as that does."""
    constraints = [item for item in rule.premise if not rule.is_information(item)]
    bound = variable_names(item for item in constraints if not (isinstance(item, Literal) and item.negated))
    shown = [variable for variable in rule.searched if variable.name in bound]
    stored = list(stored_values(kb, library, rule))
    program, nodes = grounded(
        Theory(library, kb), [rule_of(constraints, Atom(GOAL, tuple(shown)))], options, BULK_LIMITS
    )
    by_values: dict[tuple[Value, ...], int] = {}
    for node, atom in nodes:
        by_values[tuple(term.value for term in atom.arguments if isinstance(term, Constant))] = node
    evaluator = Evaluator(program, options)
    return [
        evaluator.probability(by_values[tuple(values[variable.name].value for variable in shown)]) for values in stored
    ]
