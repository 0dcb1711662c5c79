"""Probabilities of the statements of a bulk derivation: of everything that their premises need, without hypotheses.

The rows that SQL joined are a ground program already. Rules that Prolog derived, and rules above a negation, which may
hold in worlds that SQL does not look at, are grounded by Prolog.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from hapax.engine.inference.derive import BULK_LIMITS, relevant_library
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.derive import JoinedRows, joined_rows, read_statements
from hapax.engine.logic.goals import GOAL, rule_of
from hapax.engine.probability.answers import Evaluator, Probability, chances_of, grounded
from hapax.engine.probability.ground import GroundProgram
from hapax.engine.probability.grounding import Chances, hidden_event, refuse_aggregates
from hapax.engine.probability.options import ProbabilityOptions
from hapax.grammar.dependencies import evaluation_layers
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import Atom, Constant, Literal, Value, variable_names
from hapax.kb.records import FactRecord
from hapax.kb.store import KnowledgeBase


def statement_probabilities(
    kb: KnowledgeBase, library: Library, rule: Rule, options: ProbabilityOptions
) -> list[Probability]:
    """The probabilities of a rule's stored statements, in the order of `read_statements`. Raises as that does."""
    needed = relevant_library(library, rule)
    refuse_aggregates(needed)
    rules = (rule, *needed.rules)
    negates = any(literal.negated for literal in literals_of(rules))
    joined = None if negates else joined_rows(kb, library, rule)
    if joined is None:
        return _by_prolog(kb, library, rule, options)
    return _by_rows(kb, library, joined, options)


def _by_rows(kb: KnowledgeBase, library: Library, joined: JoinedRows, options: ProbabilityOptions) -> list[Probability]:
    chances = chances_of(kb, options.together)
    facts = _facts(kb, joined)
    # All statements of a rule join the same tables. Where none is derived, each statement is one conjunction of
    # independent facts, so that its probability is their product.
    tables = {table for table, _ in joined.statements[0]} if joined.statements else set[str]()
    if not options.together and tables.isdisjoint(joined.derived):
        return _products(joined, {row: _weight(fact, chances) for row, fact in facts.items()}, options)
    program = GroundProgram()
    layer_of: dict[str, int] = {}
    for number, layer in enumerate(evaluation_layers(library.with_closure()), 1):
        layer_of |= dict.fromkeys(layer, number)

    def node(key: tuple[str, int]) -> int:
        return program.node(key, layer_of.get(joined.derived.get(key[0], ""), 0))

    groups: dict[Hashable, list[int]] = {}
    for row, key in [*((fact, key) for key, fact in joined.facts), *((key[1], key) for key in _leaf_rows(joined))]:
        program.weights[node(key)] = _weight(facts[row], chances)
        group = chances.group_of(facts[row])
        if group is not None:
            groups.setdefault(group, []).append(node(key))
    # Facts of rule files are certain.
    for key in joined.stated:
        program.weights[node(key)] = 1.0
    for rule, head, premises in joined.instances:
        program.add(node(head), (*map(node, premises), *hidden_event(program, rule)))
    for group, members in groups.items():
        program.couple(group, members)
    # Statements stand above all layers: nothing depends on them.
    top = len(layer_of) + 1
    roots = [program.node(("statement", number), top) for number in range(len(joined.statements))]
    for root, premises in zip(roots, joined.statements, strict=True):
        program.add(root, map(node, premises))
    evaluator = Evaluator(program, options)
    return [evaluator.probability(root) for root in roots]


def _leaf_rows(joined: JoinedRows) -> set[tuple[str, int]]:
    """The rows of stored facts that statements and instances join."""
    found: set[tuple[str, int]] = set()
    for premises in (*joined.statements, *(premises for _, _, premises in joined.instances)):
        found.update(key for key in premises if key[0] not in joined.derived)
    return found


def _facts(kb: KnowledgeBase, joined: JoinedRows) -> dict[int, FactRecord]:
    """The facts behind the rows, by number and without their values."""
    wanted: dict[str, set[int]] = {}
    for table, row in _leaf_rows(joined):
        wanted.setdefault(joined.relations[table], set()).add(row)
    for (table, _), fact in joined.facts:
        wanted.setdefault(joined.derived[table], set()).add(fact)
    found: dict[int, FactRecord] = {}
    for indicator, refs in wanted.items():
        found |= kb.relations.scores(indicator, refs)
    return found


def _weight(fact: FactRecord, chances: Chances) -> float:
    probability = chances.of_fact(fact)
    return 1.0 if probability is None else probability


def _products(joined: JoinedRows, weights: Mapping[int, float], options: ProbabilityOptions) -> list[Probability]:
    """Probabilities of statements with a single proof: a product over distinct facts."""
    found: list[Probability] = []
    for premises in joined.statements:
        # A fact that the statement joins twice counts once.
        rows = {row for _, row in premises}
        value = math.prod(weights[row] for row in rows)
        exact = options.method != "best"
        found.append(Probability(value, value if exact else 1.0, "exact" if exact else "best proof"))
    return found


def _by_prolog(kb: KnowledgeBase, library: Library, rule: Rule, options: ProbabilityOptions) -> list[Probability]:
    constraints = [item for item in rule.premise if not rule.is_information(item)]
    bound = variable_names(item for item in constraints if not (isinstance(item, Literal) and item.negated))
    shown = [variable for variable in rule.searched if variable.name in bound]
    goal = rule_of(constraints, Atom(GOAL, tuple(shown)))
    program, nodes = grounded(Theory(library, kb), [goal], options, BULK_LIMITS)
    evaluator = Evaluator(program, options)
    by_values: dict[tuple[Value, ...], int] = {}
    for node, atom in nodes:
        by_values[tuple(term.value for term in atom.arguments if isinstance(term, Constant))] = node
    found: list[Probability] = []
    for record in read_statements(kb, library, rule):
        values = dict(record.substitution)
        found.append(evaluator.probability(by_values[tuple(values[variable.name] for variable in shown)]))
    return found
