"""The shipped rules: they pass their own checks, cover the paper, and say more than LINK could."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hapax.grammar.attributes import Domain, Principle
from hapax.grammar.checks import check_library
from hapax.grammar.dependencies import plan, recursive_predicates, search_plans
from hapax.grammar.errors import Severity
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library, PredicateKind, Rule

ROOT = Path(__file__).parent.parent
RULES = load_library([ROOT / "rules"])

PAPER = {
    "plant_by_climate": "section 2.2", "plant_by_period": "section 2.2", "allergy": "table 2",
    "driving_age": "table 5", "operating_age": "table 5",
    "rule0": "table 18", "rule32": "table 18", "rule46": "table 18", "rule88": "table 18", "rule112": "table 18",
    "rule122": "table 18", "rule172": "table 20", "rule371": "table 20", "rule274": "table 20", "rule204": "table 20",
}  # fmt: skip


def beyond_link(rule: Rule, library: Library) -> frozenset[str]:
    """The reasons why LINK could not run a rule: it has only positive binary atoms in a chain, all asked of a model."""
    signatures = [library.signature(literal.atom.indicator) for literal in rule.literals]
    reasons = {
        "arity": any(len(atom.arguments) != 2 for atom in rule.atoms),
        "constant": any(len(atom.variables) < len(atom.arguments) for atom in rule.atoms),
        "negation": any(literal.negated for literal in rule.literals),
        "arithmetic": bool(rule.comparisons)
        or any(signature.kind is PredicateKind.COMPUTED for signature in signatures),
        "recursion": bool({signature.indicator for signature in signatures} & recursive_predicates(library)),
        "shape": not is_chain(rule),
    }
    return frozenset(reason for reason, holds in reasons.items() if holds)


def is_chain(rule: Rule) -> bool:
    """True if the constraints lead from variable to variable without a fork or a cycle."""
    constraints = [item for item in rule.premise if not rule.is_information(item)]
    pairs = [tuple(sorted(variable.name for variable in item.variables)) for item in constraints]
    degree = Counter(name for pair in pairs for name in pair)
    information = [literal for literal in rule.literals if rule.is_information(literal)]
    forks = max(degree.values(), default=0) > 2
    circles = len(set(pairs)) >= max(len(degree), 1)
    return not (forks or circles or len(information) > 1 or len(pairs) != len(set(pairs)))


def test_the_shipped_rules_pass_their_checks() -> None:
    """No error, one warning about two rules of the paper that contradict each other, and notes on generic variables."""
    found = check_library(RULES)

    assert [diagnostic for diagnostic in found if diagnostic.severity is Severity.ERROR] == []
    codes = [(diagnostic.code, Path(diagnostic.place.file).name) for diagnostic in found]
    assert codes == [("HPX207", "paper.rules"), *4 * [("HPX302", "paper.rules")]]


def test_there_are_rules_enough_in_every_domain() -> None:
    """At least forty rules, all four domains, both principles; every rule says which."""
    domains = Counter(rule.domain for rule in RULES.rules)

    assert len(RULES.rules) >= 40
    assert set(domains) == {domain.value for domain in Domain}
    assert min(domains.values()) >= 8
    assert {rule.principle for rule in RULES.rules} == set(Principle)


def test_every_rule_of_the_paper_is_there() -> None:
    """Section 2.2, tables 2, 5, 18 and 20."""
    names = [rule.name for rule in RULES.rules if Path(rule.place.file).name == "paper.rules"]

    assert sorted(names) == sorted(PAPER)
    assert Counter(PAPER.values()) == {"section 2.2": 2, "table 2": 1, "table 5": 2, "table 18": 6, "table 20": 4}


def test_link_could_not_have_run_many_of_them() -> None:
    """At least eight rules go beyond LINK, and together in every way."""
    beyond = {rule.name: reasons for rule in RULES.rules if (reasons := beyond_link(rule, RULES))}

    assert len(beyond) >= 8
    assert set().union(*beyond.values()) == {"arity", "constant", "negation", "arithmetic", "recursion", "shape"}
    assert not {"allergy", "rule46", "rule32"} & set(beyond)


@pytest.mark.parametrize(("name", "order"), [("allergy", "XAZB"), ("rule0", "PADYC"), ("rule46", "AXB")])
def test_the_papers_orders_hold_in_the_shipped_library(name: str, order: str) -> None:
    """Under LINK's preset, although the library declares years functional."""
    assert plan(RULES.rule(name), RULES, "link").order == tuple(order)


def test_every_shipped_rule_can_be_searched() -> None:
    """Each has at least one order, and its year is never asked for before the thing it is the year of."""
    for rule in RULES.rules:
        steps = search_plans(rule, RULES)[0].steps
        years = [step for step in steps if step.variable.data_type == "Year"]

        assert steps
        assert all(step.functional for step in years), rule.name


def test_every_predicate_has_its_three_sentences() -> None:
    """Every predicate has templates for statements, negations and questions."""
    for signature in RULES.signatures:
        assert signature.declared
        assert signature.templates is not None
        assert signature.templates.negated
        assert signature.templates.question
