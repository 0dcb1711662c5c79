"""`why` and `why-not`: the story of a statement or an atom down to prompt, verdict, fact and missing premise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from money_fixture import RULES, WORLD
from random_cases import cases

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


def test_computed_premises_stand_with_their_values(kb: hapax.KnowledgeBase) -> None:
    """A quotient that no fact has is in the proof of what rests on it."""
    rules = hapax.parse_rules(
        "given weighs(Thing, Number)\n"
        "@generic none\nweighs(Thing X, Number W) & Number K = W / 2 & K > 1 -> is_heavy(Thing X)\n"
        "@generic none\nis_heavy(Thing X) & weighs(Thing X, Number W) -> needs_two(Thing X, Number W)\n"
    )
    with hapax.KnowledgeBase() as own:
        hapax.add_facts(own, "weighs", [("piano", 7), ("pen", 1)], rules)
        assert "3.5 = 7 / 2" in str(hapax.why("needs_two(piano, 7)", rules, own))


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


def test_the_premise_without_a_fact_is_named_with_its_values(kb: hapax.KnowledgeBase) -> None:
    """Behind the rule stands the atom that would have made it hold, and that nobody was asked about it."""
    told = str(hapax.why_not("is_not_able_to_eat(tom, bisque)", LIBRARY, kb, assume=ALLERGIC))

    assert "is_in(Ingredient Z, Dish B) has no fact" in told
    assert 'is_in("shrimp", "bisque")' in told
    assert "`assume`" not in told


def test_a_negation_that_fails_names_what_holds() -> None:
    """A recalled ingredient keeps the rule from its conclusion."""
    with hapax.KnowledgeBase() as own:
        for predicate, rows in FACTS.items():
            hapax.add_facts(own, predicate, rows, LIBRARY)
        hapax.add_facts(own, "is_recalled", [("shrimp",)], LIBRARY)
        told = str(hapax.why_not("is_not_able_to_eat(tom, paella)", LIBRARY, own, assume=ALLERGIC))

    assert 'is_recalled("shrimp") holds' in told


@pytest.mark.parametrize(
    ("asked", "text", "words"),
    [
        (hapax.why, "is_in(chalk, paella)", ["why_not"]),
        (hapax.why_not, "borders(a, b)", ["hapax.why"]),
        (hapax.why, "The moon is made of cheese", ["statement"]),
        (hapax.why, "reaches(a, X)", ["X"]),
        (hapax.why, "river(a, b)", ["river/2"]),
        (hapax.why_not, "river(a)", ["river/1"]),
    ],
)
def test_what_cannot_be_explained_names_what_can(
    asked: Any, text: str, words: list[str], kb: hapax.KnowledgeBase
) -> None:
    """An atom that does not hold belongs to `why-not`, one that holds to `why`, and an atom is ground and of a known predicate."""
    with pytest.raises(hapax.HapaxError) as told:
        asked(text, LIBRARY, kb)
    assert all(word in str(told.value) for word in words)


@pytest.mark.parametrize(
    "assumption",
    ["is_allergic_to(tom, X)", "is_allergic_to(tom, a), true", "is_unheard_of(tom)", "3", "", "weighs(a, -b)"],
)
def test_an_assumption_is_a_ground_atom_of_a_known_predicate(assumption: str, kb: hapax.KnowledgeBase) -> None:
    """Everything else is refused; a negative number is a value."""
    with pytest.raises(hapax.HapaxError):
        hapax.query("is_in(X, Y)", LIBRARY, kb, assume=assumption)
    assert hapax.query("weighs(a, X)", LIBRARY, kb, assume="weighs(a, -0.5)").rows == [(Decimal("-0.5"),)]


def test_an_explanation_ends_at_its_time(kb: hapax.KnowledgeBase) -> None:
    """A proof that counts for ever is given up with LimitExceeded."""
    rules = hapax.parse_rules(
        'given starts(Thing, Number)\nfact starts("a", 1)\n'
        "@generic none\nstarts(Thing A, Number N) -> counts(Thing A, Number N)\n"
        "@generic none\ncounts(Thing A, Number N) & Number M = N + 1 -> counts(Thing A, Number M)\n"
    )
    for asked in (hapax.why, hapax.why_not):
        with hapax.KnowledgeBase() as own, pytest.raises(hapax.LimitExceeded):
            asked("counts(a, 0.5)", rules, own, seconds=0.3)


def test_a_long_chain_is_proved_and_written() -> None:
    """Of hundreds of steps each fact is in the proof once, and text and JSON have all of them."""
    rules = hapax.parse_rules(
        "given road(Place, Place)\n@generic none\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
        "@generic none\nroad(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)\n"
        '@name far\n@generic none\nreaches("n0", Place B) & not road(Place B, "n0") & B = "n300" -> is_far(Place B)\n'
    )
    with hapax.KnowledgeBase() as own:
        hapax.add_facts(own, "road", [(f"n{i}", f"n{i + 1}") for i in range(300)], rules)
        (statement,) = hapax.derive(rules, own, only="far").statements

        assert len(statement.proof.fact_ids()) == 300
        assert len(json.loads(json.dumps(statement.proof.to_json()))["steps"]) > 600
        assert str(hapax.why("reaches(n0, n300)", rules, own)).count("[given]") == 300


# --- after a search ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search with a scripted model."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency", "--no-progress", *EVERY_END)
    run("search", folder / "money.rules", *models, "--db", folder / "kb.db")
    return folder


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


def test_a_value_that_a_gate_stopped_is_told_with_its_score(world: Path) -> None:
    """A rejected value has score and threshold; one that no model proposed has the question that was asked."""
    rejected = run("why-not", "uses_currency('Norway', euro)", "--db", world / "kb.db").stdout
    unknown = run("why-not", "uses_currency('Norway', dollar)", "--db", world / "kb.db").stdout

    assert "rejected" in rejected
    assert "0.100" in rejected
    assert "threshold" in rejected
    assert "no model proposed it" in unknown
    assert 'uses_currency("Norway", ?)' in unknown


def test_a_story_as_json_is_flat(world: Path) -> None:
    """Each line has its depth, its kind and its text."""
    lines = json.loads(run("why", "uses_currency('France', euro)", "--db", world / "kb.db", "--json").stdout)
    lines = lines["story"] if isinstance(lines, dict) else lines

    assert lines[0]["depth"] == 0
    assert {"goal", "call", "gate"} <= {line["kind"] for line in lines}


# --- values -----------------------------------------------------------------------------------------------------------

CELLS = st.one_of(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), st.integers()).map(
    lambda value: value.strip() or "x" if isinstance(value, str) else value
)


@settings(max_examples=cases(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(CELLS, max_size=12, unique_by=repr))
def test_any_value_comes_back_as_it_went_in(values: list[str | int]) -> None:
    """Any text and any whole number is the same in an answer, in a statement and in its proof."""
    rules = hapax.parse_rules(
        "given v(Number, Thing)\ngiven n(Number, Number)\n"
        "@generic none\nv(Number I, Thing X) -> named(Number I, Thing X)\n"
        "@generic none\nn(Number I, Number X) -> counted(Number I, Number X)\n"
    )
    rows = list(enumerate(values))
    with hapax.KnowledgeBase() as own:
        hapax.add_facts(own, "v", [row for row in rows if isinstance(row[1], str)], rules)
        hapax.add_facts(own, "n", [row for row in rows if not isinstance(row[1], str)], rules)
        answers = {tuple(row) for row in hapax.query("named(I, X) ; counted(I, X)", rules, own).rows}
        statements = hapax.derive(rules, own).statements

        assert answers == set(rows)
        assert {(statement.values["I"], statement.values["X"]) for statement in statements} == set(rows)
