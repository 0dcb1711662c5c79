"""`why` and `why-not`: the story of a statement or an atom down to prompt, verdict, fact and missing premise."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hapax

LIBRARY = hapax.parse_rules("""
given falls_under(Ingredient, Allergen)
oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"
given is_recalled(Ingredient)
given was_made_in(Thing, Year)
given was_born_in(Person, Year)
given weighs(Thing, Number)
functional has_height(Mountain, Height)
type Year < Number
type Height < Number
computed is_before(Year A, Year B) := A < B
computed is_older(Year A, Year B) := A + 10 < B * 1
@name century
@generic none
was_made_in(Thing A, Year D) & was_born_in(Person Q, Year Y) & is_before(Year D, Year Y) -> could_have_seen(Person Q, Thing A)
@name decade
@generic none
was_made_in(Thing A, Year D) & was_born_in(Person Q, Year Y) & D + 10 < Y -> may_have_seen(Person Q, Thing A)
@name allergy
is_allergic_to(Person X, Allergen A) & falls_under(Ingredient Z, Allergen A) & is_in(Ingredient Z, Dish B)
  & not is_recalled(Ingredient Z) -> is_not_able_to_eat(Person X, Dish B)
@name shared
@generic none
falls_under(Ingredient Z, Allergen B) & falls_under(Ingredient Z, Allergen C) & B \\= C -> resembles(Allergen B, Allergen C)
oracle borders(Place, Place)
@name direct
@generic none
borders(Place A, Place B) -> reaches(Place A, Place B)
@name onward
@generic none
borders(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
@name third
@generic none
weighs(Thing T, Number X) & Number Y = X / 3 -> share(Thing T, Number Y)
@name nothing
@generic none
weighs(Thing A, Number M) & Number N = M / 0 & Number K = N + 1 -> tends_to(Thing A, Number K)
aggregate is_weighed(Number X, Number N) := N = count(Thing T: weighs(Thing T, Number X))
fact has_height("Ararat", 5137)
""")
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "falls_under": [("shrimp", "shellfish"), ("crab", "shellfish")],
    "is_in": [("shrimp", "paella")],
    "was_made_in": [("pager", 1989)],
    "was_born_in": [("Burns", 1796)],
    "weighs": [("stone", 1)],
    "has_height": [("Elbrus", 5642)],
    "borders": [("a", "b"), ("b", "c"), ("c", "a")],
}
ALLERGIC = "is_allergic_to(tom, shellfish)"


@pytest.fixture(scope="module")
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as opened:
        for predicate, rows in FACTS.items():
            hapax.add_facts(opened, predicate, rows, LIBRARY)
        yield opened


def test_a_derived_atom_is_proved_down_to_its_facts(kb: hapax.KnowledgeBase) -> None:
    """On cyclic data, too: two steps by a rule, three facts, and no step that rests on itself."""
    told = str(hapax.why("reaches(a, a)", LIBRARY, kb))

    assert told.count("[by rule onward]") == 2
    assert told.count("[given]") == 3


def test_a_proof_names_assumptions_facts_and_what_was_not_provable(kb: hapax.KnowledgeBase) -> None:
    """Each premise has its reason; the assumption is stored nowhere."""
    told = str(hapax.why("is_not_able_to_eat(tom, paella)", LIBRARY, kb, assume=ALLERGIC))

    assert 'is_allergic_to("tom", "shellfish")  [assumed]' in told
    assert 'is_recalled("shrimp") was not provable' in told
    assert told.count("[given]") == 2
    assert not hapax.query(ALLERGIC, LIBRARY, kb).holds


@pytest.mark.parametrize(
    ("atom", "words"),
    [
        ("is_in(chalk, paella)", ["no model was asked", "hapax.query"]),
        ("is_recalled(shrimp)", ["given facts"]),
        ("is_before(1989, 1796)", ["1989 < 1796 is false"]),
        ("is_older(1989, 1796)", ["1989 + 10 < 1796 * 1", "1999 < 1796"]),
        (ALLERGIC, ["`assume`"]),
        ("has_height('Elbrus', 5000)", ["another value", 'has_height("Elbrus", 5642)']),
        ("has_height('Ararat', 5000)", ["another value", 'has_height("Ararat", 5137)']),
        ("has_height('Kazbek', 5642)", ["no model was asked"]),
        ("could_have_seen('Burns', pager)", ["rule century", "is_before(Year D, Year Y) is false", "1989 < 1796"]),
        ("may_have_seen('Burns', pager)", ["rule decade", "D + 10 < Y is false", "1999 < 1796"]),
        ("resembles(shellfish, shellfish)", ["rule shared", '"shellfish" \\= "shellfish" is false']),
        ("share(stone, 0.3333333333333333333333333333)", ["first digits of 1/3"]),
        ("tends_to(stone, 5)", ["rule nothing", "1 / 0"]),
        ("is_not_able_to_eat(tom, paella)", ["is_allergic_to(Person X, Allergen A) has no fact", "`assume`"]),
    ],
)
def test_the_reason_why_an_atom_does_not_hold(atom: str, words: list[str], kb: hapax.KnowledgeBase) -> None:
    """The premise, comparison, value or option at which it fails is named, with the values so far."""
    told = str(hapax.why_not(atom, LIBRARY, kb))

    assert [word for word in words if word not in told] == [], told


def test_what_holds_and_what_is_missing_is_named_with_its_values() -> None:
    """A recalled ingredient keeps the rule from its conclusion; of another dish the atom that nobody knows is named."""
    with hapax.KnowledgeBase() as own:
        for predicate, rows in FACTS.items():
            hapax.add_facts(own, predicate, rows, LIBRARY)
        hapax.add_facts(own, "is_recalled", [("shrimp",)], LIBRARY)
        recalled, unknown = (
            str(hapax.why_not(f"is_not_able_to_eat(tom, {dish})", LIBRARY, own, assume=ALLERGIC))
            for dish in ("paella", "bisque")
        )

    assert 'is_recalled("shrimp") holds' in recalled
    assert 'is_in("shrimp", "bisque")' in unknown


@pytest.mark.parametrize(
    "assumption",
    ["is_allergic_to(tom, X)", "is_allergic_to(tom, a), true", "is_unheard_of(tom)", "3", "", "weighs(a, -b)"],
)
def test_an_assumption_is_a_ground_atom_of_a_known_predicate(assumption: str, kb: hapax.KnowledgeBase) -> None:
    """Everything else is refused; a negative number is a value."""
    with pytest.raises(hapax.HapaxError):
        hapax.query("is_in(X, Y)", LIBRARY, kb, assume=assumption)
    assert hapax.query("weighs(a, X)", LIBRARY, kb, assume="weighs(a, -0.5)").rows == [(Decimal("-0.5"),)]


# --- after a search ---------------------------------------------------------------------------------------------------


@pytest.fixture
def world(searched: Path) -> Path:
    return searched.parent


def test_a_statement_is_told_down_to_its_calls(world: Path) -> None:
    """Statement, gate, rule, assumption, prompt, reply, P(yes), threshold and evaluator, with and without the rule file."""
    with hapax.KnowledgeBase(world / "kb.db") as kb:
        statement = next(iter(kb.statements()))
        for rules in (hapax.load_rules(world / "money.rules"), hapax.parse_rules("given p(Thing)\n")):
            told = str(hapax.why(statement.id, rules, kb))
            for word in (
                statement.text, "likelihood", "[by rule currency]", "[assumed]", "call", "proposed as", "critic",
                "0.950", "threshold", "log-likelihood", "frequency", "scripted",
            ):  # fmt: skip
                assert word in told, word
            # Case, blanks and the full stop do not matter.
            assert str(hapax.why(f"  {statement.text.upper().rstrip('.')}", rules, kb)) == told


# --- values -----------------------------------------------------------------------------------------------------------


def test_many_rows_and_deep_proofs_are_short() -> None:
    """Of a group of 1,000 rows ten are shown and the others counted, and a deep line begins with its depth."""
    with hapax.KnowledgeBase() as own:
        hapax.add_facts(own, "weighs", [(f"stone {number}", 3) for number in range(1000)], LIBRARY)
        hapax.add_facts(own, "borders", [(f"p{number}", f"p{number + 1}") for number in range(300)], LIBRARY)
        group = hapax.why("is_weighed(3, 1000)", LIBRARY, own)
        deep = str(hapax.why("reaches(p0, p300)", LIBRARY, own)).splitlines()

    assert [line["more"] for line in group.to_json() if "more" in line] == [990]
    assert (len(group.to_json()), "and 990 more rows of the group" in str(group)) == (12, True)
    assert (len(deep), max(map(len, deep)) < 150) == (600, True)
    assert deep[-1].lstrip().startswith("[depth 300]")
