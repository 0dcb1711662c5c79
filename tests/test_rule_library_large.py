"""The rule library in rules/library: as large as LINT's, without faults, and apart from what is searched by default."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_fixture import invoke

from hapax.api.rule_paths import SHIPPED_RULES
from hapax.grammar.attributes import Domain
from hapax.grammar.checks import check_library
from hapax.grammar.dependencies import search_plans
from hapax.grammar.errors import Severity
from hapax.grammar.parser import load_library
from hapax.grammar.rules import PredicateKind, PredicateSignature, Rule, Templates

ROOT = Path(__file__).parent.parent
SHIPPED_FOLDER = ROOT / "rules"
LARGE_FOLDER = SHIPPED_FOLDER / "library"
LARGE = load_library([LARGE_FOLDER])
SHIPPED = load_library([SHIPPED_FOLDER])
TOGETHER = load_library([SHIPPED_FOLDER, LARGE_FOLDER])

RULES_OF_LINT = {Domain.TEMPORAL: 81, Domain.OUTCOMES: 132, Domain.NATURAL: 139, Domain.LOCATIONAL: 65}
"""Symbolic rules by domain (paper, appendix H, table 16)."""
PERSON_RULES_OF_LINT = 149
"""Rules about a person (paper, section 2.2)."""
FILES = {
    "temporal.rules": Domain.TEMPORAL,
    "outcomes.rules": Domain.OUTCOMES,
    "natural.rules": Domain.NATURAL,
    "locational.rules": Domain.LOCATIONAL,
}


def is_about_a_person(rule: Rule) -> bool:
    """True if statements speak about a PersonX."""
    return any(LARGE.is_person(variable.data_type) for variable in rule.variables if variable.name in rule.generic)


@pytest.mark.parametrize(("domain", "least"), RULES_OF_LINT.items())
def test_each_domain_has_at_least_as_many_rules_as_lint(domain: Domain, least: int) -> None:
    """Temporal 81, outcomes and effects 132, natural properties 139, locational 65."""
    assert sum(rule.domain == domain for rule in LARGE.rules) >= least


def test_there_are_at_least_as_many_rules_about_persons_as_in_lint() -> None:
    """At least 149 rules are about a PersonX; every domain also has rules about things."""
    about_persons = [rule for rule in LARGE.rules if is_about_a_person(rule)]
    about_things = Counter(rule.domain for rule in LARGE.rules if not is_about_a_person(rule))

    assert len(about_persons) >= PERSON_RULES_OF_LINT
    assert set(about_things) == set(Domain)


def test_each_file_holds_the_rules_of_its_domain() -> None:
    """All rules of a domain are in one file."""
    assert {(Path(rule.place.file).name, rule.domain) for rule in LARGE.rules} == set(FILES.items())


def test_check_finds_nothing_in_the_folder() -> None:
    """No error, no warning, no note, and the exit code of rules that can be searched."""
    result = invoke("check", LARGE_FOLDER, "--json")

    assert json.loads(result.stdout) == []
    assert result.exit_code == 0


def test_every_rule_has_a_name_of_its_own() -> None:
    """Names are unique in the library and among the shipped rules, so that `--rule` chooses one rule."""
    names = Counter(rule.name for rule in (*LARGE.rules, *SHIPPED.rules))

    assert [name for name, count in names.items() if count > 1] == []


def test_every_predicate_has_three_sentences() -> None:
    """Affirmative, negated and question form, each with a slot for every argument, and each different."""
    assert {
        signature.indicator: faults
        for signature in LARGE.signatures
        if (faults := list(faults_of_sentences(signature)))
    } == {}


def faults_of_sentences(signature: PredicateSignature) -> Iterator[str]:
    templates = signature.templates or Templates("")
    texts = [templates.affirmative, templates.negated or "", templates.question or ""]
    slots = [f"[{number}]" for number in range(1, len(signature.argument_types) + 1)]
    yield from (f"no {slot} in {text!r}" for text in texts for slot in slots if slot not in text)
    yield from (f"{text!r} is no clause" for text in texts[:2] if text.endswith(("?", ".")))
    if not texts[2].endswith("?"):
        yield f"{texts[2]!r} is no question"
    if len(set(texts)) < 3:
        yield "two forms are the same"


def test_every_rule_is_one_that_the_paper_would_call_a_rule() -> None:
    """At least three variables, a name and a principle of its own, and an order in which a search can bind them."""
    assert [rule.name for rule in LARGE.rules if len(rule.variables) < 3] == []
    assert [rule.name for rule in LARGE.rules if re.fullmatch(r"(\w+_)?rule\d+", rule.name)] == []
    assert [rule.name for rule in LARGE.rules if rule.principle is None] == []
    assert [rule.name for rule in LARGE.rules if not search_plans(rule, LARGE)] == []


def test_the_library_says_more_than_chains_of_two_place_predicates() -> None:
    """Two persons, things as generic variables, three arguments, negation, arithmetic and circles occur in it."""
    computed = {signature.indicator for signature in LARGE.signatures if signature.kind is PredicateKind.COMPUTED}
    shapes = {
        "two persons": [rule for rule in LARGE.rules if len(rule.generic) > 1],
        "generic thing": [rule for rule in LARGE.rules if rule.generic and not is_about_a_person(rule)],
        "nothing generic": [rule for rule in LARGE.rules if not rule.generic],
        "three arguments": [rule for rule in LARGE.rules if any(len(atom.arguments) > 2 for atom in rule.atoms)],
        "negation": [rule for rule in LARGE.rules if any(literal.negated for literal in rule.literals)],
        "comparison": [rule for rule in LARGE.rules if rule.comparisons],
        "computed": [rule for rule in LARGE.rules if computed & {atom.indicator for atom in rule.atoms}],
        "circle": [rule for rule in LARGE.rules if has_a_circle(rule)],
    }

    assert {shape: len(found) for shape, found in shapes.items() if len(found) < 5} == {}


def has_a_circle(rule: Rule) -> bool:
    """True if constraints over two variables lead from a variable back to it."""
    constraints = [literal for literal in rule.literals if not rule.is_information(literal)]
    edges = {
        frozenset(variable.name for variable in literal.variables)
        for literal in constraints
        if len(set(literal.variables)) == 2
    }
    groups: list[frozenset[str]] = []
    for edge in edges:
        touching = [group for group in groups if group & edge]
        if any(edge <= group for group in touching):
            return True
        groups = [group for group in groups if not group & edge] + [edge.union(*touching)]
    return False


def test_the_library_loads_together_with_the_shipped_rules() -> None:
    """No declaration of one contradicts the other, and no new warning arises between their rules."""
    found = check_library(TOGETHER)
    alone = set(check_library(SHIPPED))

    assert [diagnostic for diagnostic in found if diagnostic.severity is Severity.ERROR] == []
    assert [
        diagnostic for diagnostic in found if diagnostic.severity is Severity.WARNING and diagnostic not in alone
    ] == []
    assert len(TOGETHER.rules) == len(LARGE.rules) + len(SHIPPED.rules)


def test_the_shipped_rules_leave_the_library_out() -> None:
    """A search without `--rules` takes about a minute, so it stays with the small set."""
    files = {Path(rule.place.file).parent for rule in SHIPPED.rules}

    assert files == {SHIPPED_FOLDER}
    assert SHIPPED_RULES == SHIPPED_FOLDER


def test_every_searched_variable_gets_values_from_a_model_or_from_arithmetic() -> None:
    """No variable of a rule stands in given atoms and denials alone: a search could never fill it."""

    def filled(rule: Rule) -> set[str]:
        asked = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
        atoms = [literal.atom for literal in rule.literals if not literal.negated]
        asked_atoms = [atom for atom in atoms if LARGE.signature(atom.indicator).kind in asked]
        equations = [comparison for comparison in rule.comparisons if comparison.operator == "="]
        return {variable.name for item in (*asked_atoms, *equations) for variable in item.variables}

    unfilled = {rule.name: {v.name for v in rule.searched} - filled(rule) for rule in LARGE.rules}

    assert {name: missing for name, missing in unfilled.items() if missing} == {}
