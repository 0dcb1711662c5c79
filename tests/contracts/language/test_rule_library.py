"""The shipped rules and the large library: without faults, as large as LINT's, and saying more than LINK could."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run

import hapax

FOLDER = Path(__file__).parents[3] / "rules"
SHIPPED = hapax.load_rules("shipped")
LARGE = hapax.load_rules(FOLDER / "library")
PAPER = {
    *("plant_by_climate", "plant_by_period", "allergy", "driving_age", "operating_age"),  # section 2.2, tables 2 and 5
    *("rule0", "rule32", "rule46", "rule88", "rule112", "rule122"),  # table 18
    *("rule172", "rule371", "rule274", "rule204"),  # table 20
}
RULES_OF_LINT = {"temporal": 81, "outcomes and effects": 132, "natural properties": 139, "locational": 65}
"""Symbolic rules by domain (paper, appendix H, table 16)."""


def orders(rules: hapax.Library, preset: str = "cheapest") -> dict[str, tuple[str, ...]]:
    """The order of the variables of each rule, by a plan for a search."""
    models = hapax.open_models("simulated", library=rules)
    with hapax.KnowledgeBase() as kb:
        planned = hapax.plan(rules, kb, models, hapax.SearchSettings(plan=preset))  # type: ignore[arg-type]
    return {rule.rule: tuple(rule.order) for rule in planned.rules}


def is_about_a_person(rule: Any, rules: hapax.Library) -> bool:
    return any(rules.is_person(variable.data_type) for variable in rule.variables if variable.name in rule.generic)


def test_the_shipped_rules_pass_their_checks() -> None:
    """One warning about two rules of the paper that contradict each other, and notes; nothing about the library."""
    found = json.loads(run("check", "--json").stdout)

    assert {fault["severity"] for fault in found} == {"warning", "note"}
    assert Counter(fault["code"] for fault in found if fault["severity"] == "warning") == {"HPX207": 1}
    assert {Path(fault["file"]).name for fault in found} == {"paper.rules"}
    assert {Path(rule.place.file).parent for rule in SHIPPED.rules} == {FOLDER}  # the library is no part of them
    assert json.loads(run("check", FOLDER / "library", "--json").stdout) == []


def test_every_rule_of_the_paper_is_there() -> None:
    """Section 2.2, tables 2, 5, 18 and 20."""
    assert {rule.name for rule in SHIPPED.rules if Path(rule.place.file).name == "paper.rules"} == PAPER


def test_the_papers_orders_hold_in_the_shipped_rules() -> None:
    """Under LINK's preset, although the library declares years functional; every rule has an order."""
    found = orders(SHIPPED, "link")

    assert {name: "".join(found[name]) for name in ("allergy", "rule0", "rule46")} == {
        "allergy": "XAZB", "rule0": "PADYC", "rule46": "AXB",
    }  # fmt: skip


def test_the_library_is_as_large_as_lint() -> None:
    """By domain, by rules about a person (at least 149, section 2.2), and with rules about things in every domain."""
    domains = Counter(str(rule.domain) for rule in LARGE.rules)
    persons = [rule for rule in LARGE.rules if is_about_a_person(rule, LARGE)]
    things = {str(rule.domain) for rule in LARGE.rules if not is_about_a_person(rule, LARGE)}

    assert {domain: domains[domain] for domain, least in RULES_OF_LINT.items() if domains[domain] < least} == {}
    assert set(domains) == things == set(RULES_OF_LINT)
    assert len(persons) >= 149
    assert len({Path(rule.place.file).name for rule in LARGE.rules}) == 4


def test_every_rule_has_a_name_of_its_own() -> None:
    """So that `--rule` chooses one rule; at least three variables and a principle make it a rule of the paper's kind."""
    names = Counter(rule.name for rule in (*LARGE.rules, *SHIPPED.rules))

    assert [name for name, count in names.items() if count > 1] == []
    assert [name for name in names if re.fullmatch(r"\w+_rule\d+", name)] == []
    assert [rule.name for rule in LARGE.rules if len(rule.variables) < 3 or rule.principle is None] == []


@pytest.mark.parametrize("rules", [SHIPPED, LARGE], ids=["shipped", "library"])
def test_every_predicate_has_three_sentences(rules: hapax.Library) -> None:
    """Affirmative, negated and question form, each with a slot for every argument, and each different."""
    for signature in rules.signatures:
        texts = signature.templates and (
            signature.templates.affirmative, signature.templates.negated, signature.templates.question,
        )  # fmt: skip
        assert texts is not None, signature.name
        assert all(texts), signature.name
        assert len(set(texts)) == 3, signature.name
        slots = [f"[{number}]" for number in range(1, len(signature.argument_types) + 1)]
        assert [text for text in texts for slot in slots if slot not in str(text)] == [], signature.name
        assert str(texts[2]).endswith("?"), signature.name


def test_the_library_says_more_than_chains_of_two_place_predicates() -> None:
    """Two persons, things as generic variables, three arguments, negation and arithmetic occur in it, at least five times."""
    computed = {signature.indicator for signature in LARGE.signatures if str(signature.kind) == "computed"}
    shapes = {
        "two persons": [rule for rule in LARGE.rules if len(rule.generic) > 1],
        "generic thing": [rule for rule in LARGE.rules if rule.generic and not is_about_a_person(rule, LARGE)],
        "nothing generic": [rule for rule in LARGE.rules if not rule.generic],
        "three arguments": [rule for rule in LARGE.rules if any(len(atom.arguments) > 2 for atom in rule.atoms)],
        "negation": [rule for rule in LARGE.rules if any(literal.negated for literal in rule.literals)],
        "comparison": [rule for rule in LARGE.rules if rule.comparisons],
        "computed": [rule for rule in LARGE.rules if computed & {atom.indicator for atom in rule.atoms}],
    }

    assert {shape: len(found) for shape, found in shapes.items() if len(found) < 5} == {}


@pytest.mark.slow
def test_every_rule_can_be_searched() -> None:
    """Each has an order that binds all its variables: no variable stands in given atoms and denials alone."""
    found = orders(LARGE)

    assert [rule.name for rule in LARGE.rules if {v.name for v in rule.searched} - set(found[rule.name])] == []
