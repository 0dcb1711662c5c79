"""Searches of rules in a simulated world and with scripted models."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from search_fixture import (
    ALLERGY,
    OLDER,
    RECURSIVE,
    rows,
    rules_of,
    scripted,
    searched,
    sentences,
    simulated,
    texts,
)

import hapax

ENDS = ("head", "long_tail")
FOREIGN = """
@name foreign
repairs(Person X, Part A) & is_part_of(Part A, Part B) & not belongs_to(Part B, Part A) -> leaves_alone(Person X, Part B).
"""
Found = tuple[hapax.SearchResult, hapax.KnowledgeBase, hapax.Library]


@pytest.fixture(scope="module")
def allergy() -> Found:
    """A search of one rule, with its knowledge base."""
    library, kb = rules_of(ALLERGY), hapax.KnowledgeBase()
    return searched(library, simulated(library), kb, beam=12), kb, library


def knowledge_only(calls: int) -> hapax.Budget:
    return hapax.Budget(max_calls=calls, roles=frozenset({"knowledge"}))


def test_head_is_likelier_than_long_tail_and_all_is_stored(allergy: Found) -> None:
    """Both ends get statements in words, the head's are likelier, and the knowledge base has the same."""
    result, kb, _ = allergy
    (row,) = rows(result)

    assert row["head"] > 3 < row["long_tail"]
    assert row["delta"] > 0
    assert all(text.startswith("If PersonX is allergic to ") for text in texts(result))
    assert {item.text for item in kb.statements()} == sentences(result)
    assert [run.status for run in kb.runs()] == ["done"]


def test_every_statement_rests_on_stored_facts(allergy: Found) -> None:
    """Each premise of a statement that is no information about PersonX is a fact."""
    result, kb, _ = allergy
    facts = {(fact.predicate, fact.arguments) for fact in kb.facts()}
    values = [item.values for item in result.statements]

    assert values
    assert all(("is_ingredient_in", (row["Z"], row["B"])) in facts for row in values)
    assert all(("is_one_type_of", (row["Z"], row["A"])) in facts for row in values)


def test_the_same_search_again_asks_nothing_and_is_the_same_run(allergy: Found) -> None:
    """All answers come from the store; other settings are another run."""
    result, kb, library = allergy
    again = searched(library, simulated(library), kb, beam=12)
    runs = len(kb.runs())
    searched(library, simulated(library), kb, beam=11)

    assert [row["calls"] for row in rows(again)] == [0]
    assert texts(again) == texts(result)
    assert (runs, len(kb.runs())) == (1, 2)


def test_rules_share_their_questions_and_do_not_change_each_other(allergy: Found) -> None:
    """A rule that asks what another has asked sends nothing, and a rule among others gives what it gives alone."""
    library = rules_of(OLDER, ALLERGY, ALLERGY.replace("@name allergy", "@name twin"))
    result = searched(library, simulated(library), beam=12)
    _, first, twin = rows(result)

    assert first["calls"] > 0 == twin["calls"]
    alone = set(texts(allergy[0]))
    assert {item.text for item in result.statements if item.rule == "allergy"} == alone
    assert twin["head"] == first["head"]


def test_the_ranker_is_what_parts_head_and_long_tail() -> None:
    """Ranked at random the ends lie closer together."""
    library = rules_of(ALLERGY)
    models, kb = simulated(library), hapax.KnowledgeBase()
    options: dict[str, Any] = {"beam": 20}
    full, chance = (
        rows(searched(library, models, kb, likelihood=ranker, **options))[0]["delta"] for ranker in ("model", "random")
    )

    assert abs(chance) < full


@pytest.mark.parametrize("compat", ["paper", "released"])
def test_links_ways_exclude_earlier_values_and_ask_in_its_words(compat: Any) -> None:
    """LINK's two behaviours give statements; the released one asks for twice the values at first."""
    library, kb = rules_of(ALLERGY), hapax.KnowledgeBase()
    result = searched(library, simulated(library), kb, compat=compat, plan="link", profile=None, values_per_call=15)
    prompts = [call.request["prompt"] for call in kb.calls().values() if call.role == "knowledge"]

    assert texts(result)
    assert prompts[0].startswith(f"Give me {'30 diverse' if compat == 'released' else 15} values of ")
    assert any("Do not generate these values: " in prompt for prompt in prompts)


def script(critic: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """Butter is a type of dairy, and in two dishes."""
    return {
        "generate": {
            "[A] is one type of [B]": ["dairy"],
            "[A] is one type of dairy": ["butter"],
            "butter is an ingredient in [B]": ["toast", "peanut butter"],
            "PersonX": ["dairy"],
        },
        "critic": critic or {},
        "defaults": {"critic": 0.95, "likelihood": -12, "generate": ["dairy"]},
        **more,
    }


WHOLE: dict[str, Any] = {"keep_share": 0.5, "plan": "premise-first"}


def test_scripted_models_make_a_search_that_can_be_followed() -> None:
    """One allergen, one ingredient, two dishes: exactly these statements come out, one at each end."""
    result = searched(rules_of(ALLERGY), scripted(script()), **WHOLE)
    expected = {
        f"If PersonX is allergic to dairy, then PersonX cannot eat {dish}." for dish in ("toast", "peanut butter")
    }

    assert sentences(result) == expected
    assert [len(sentences(result, end)) for end in ENDS] == [1, 1]


def test_hapax_ranks_what_models_are_asked_and_the_paper_all_it_knows() -> None:
    """Hapax's texts have the atoms that a model decides; the paper's have each atom, generic ones and the conclusion."""
    own, link = scripted(script()), scripted(script())
    searched(rules_of(ALLERGY), own, measure="paper", **WHOLE)
    searched(rules_of(ALLERGY), link, compat="paper", plan="premise-first", profile="hapax")
    whole = "Butter is an ingredient in toast and butter is one type of dairy."

    assert whole in own.likelihood.texts
    assert not any("PersonX" in text for text in own.likelihood.texts if not text.startswith("If "))
    assert (
        "PersonX is allergic to dairy and butter is an ingredient in toast and butter is one type of dairy and "
        "PersonX cannot eat toast."
    ) in link.likelihood.texts


def test_the_paper_has_no_penalty_for_repeated_words() -> None:
    """Two equally likely dishes are equal under `compat="paper"`, although one repeats a word."""
    known = script()
    known["defaults"]["likelihood"] = [-12, 6]
    kb = hapax.KnowledgeBase()
    searched(rules_of(ALLERGY), scripted(known), kb, compat="paper", plan="premise-first")

    assert {decision.score for decision in kb.decisions(gate="likelihood")} == {-2.0}


# --- derived premises -------------------------------------------------------------------------------------------------

PARTS: dict[str, Any] = {"beam": 4, "values_per_call": 4, "calls_per_question": 1}


def test_derived_predicates_are_searched_by_their_rules() -> None:
    """Values of a recursive predicate come from the rules, and facts that they lack are asked for, and counted.

    What an earlier run left changes nothing.
    """
    library, kb, other = rules_of(RECURSIVE), hapax.KnowledgeBase(), hapax.KnowledgeBase()
    first = searched(library, simulated(library), kb, "repair", **PARTS)
    pattern = kb.facts()[0]
    parts = sorted({value for fact in kb.facts() for value in fact.arguments})
    other.add_facts(replace(pattern, arguments=(part, parts[0]), run_id="earlier") for part in parts[1:])
    among = searched(library, simulated(library), other, "repair", **PARTS)

    assert len(first.statements) > 0
    assert {fact.predicate for fact in kb.facts()} == {"is_part_of"}
    assert "part" in {step.get("rule") for step in first.statements[0].record.proof["steps"]}
    assert rows(first)[0]["calls"] > 0
    assert texts(among) == texts(first)


def test_a_budget_that_ends_a_derivation_denies_nothing() -> None:
    """Where the facts of a derived predicate could not be asked to the end, `not` does not hold for want of them."""
    library = rules_of(RECURSIVE, FOREIGN)
    wholes = {"wheel": "car", "car": "fleet"}
    true = {f"{part.capitalize()} is part of {whole}.": 0.95 for part, whole in wholes.items()}
    true |= {f"{part.capitalize()} is a part.": 0.95 for part in ("wheel", "car", "fleet")}
    lists = {f"'{part} is part of [B]'": [whole] for part, whole in wholes.items()}
    known = {
        "generate": {"'[A] is part of [B]'": ["wheel", "car", "fleet"], **lists},
        "critic": true,
        "defaults": {"critic": 0.05, "likelihood": -9, "generate": []},
    }
    before = hapax.KnowledgeBase()
    whole = searched(library, scripted(known), before, "foreign", **WHOLE)
    cut = searched(library, scripted(known, budget=knowledge_only(asked(before) - 1)), None, "foreign", **WHOLE)

    assert {item.values["A"] for item in whole.statements} == set(wholes)
    assert not cut.complete
    assert len(cut.statements) < len(whole.statements)


# --- budgets and interruptions ----------------------------------------------------------------------------------------


def asked(kb: hapax.KnowledgeBase) -> int:
    """Calls of the knowledge model that the knowledge base holds."""
    return sum(call.role == "knowledge" for call in kb.calls().values())


def test_calls_and_questions_of_a_rule_that_no_model_knows_are_not_spent() -> None:
    """A model that states its predicates is not asked for others; the rule is skipped, with what is unknown."""
    library = rules_of(ALLERGY)
    models = scripted(script())
    models.knowledge.identity = type(models.knowledge.identity)("limited", "1", knows=frozenset({"is_ingredient_in/2"}))
    (row,) = rows(searched(library, models))

    assert row["skipped"] == "is_one_type_of/2"
    assert (row["calls"], models.knowledge.prompts) == (0, [])


# --- settings ---------------------------------------------------------------------------------------------------------


RULE = hapax.CriticRule(0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"values_per_call": 10**9}, ["values_per_call", "at most"]),
        ({"beam": 0}, ["beam", "0", "1"]),
        ({"temperature": math.nan}, ["temperature", "nan"]),
        ({"keep_share": 0.0}, ["keep_share", "above 0"]),
        ({"keep_share": 0.51}, ["half"]),
        ({"distributions": ()}, ["distribution", "long_tail"]),
        ({"profile": "none of these"}, ["none of these", "hapax"]),
        ({"measure": "weight"}, ["weight", "paper"]),
        ({"compat": "paper", "measure": "slor"}, ["compat paper", "measure"]),
        ({"compat": "released", "calibrated": True}, ["compat released", "raw scores"]),
        ({"compat": "paper", "promise": hapax.Promise()}, ["compat paper", "raw scores"]),
        ({"promise": hapax.Promise(), "fact_threshold": RULE}, ["promise", "thresholds"]),
        ({"promise": hapax.Promise(), "critic": False}, ["critic", "promised"]),
        ({"statement_promise": hapax.Promise(), "critic": False}, ["critic", "promised"]),
        ({"likelihood": "most"}, ["likelihood", "random"]),
    ],
)
def test_settings_refuse_what_makes_no_search(settings: dict[str, Any], words: list[str]) -> None:
    """Nonsense, and options that exclude each other, are refused with a remedy."""
    with pytest.raises(hapax.HapaxError) as error:
        hapax.SearchSettings(**settings)

    assert [word for word in words if word not in str(error.value)] == []
