"""Goals that ask models: in batches and words, judged, stored with reasons, shared, and within a budget."""

from __future__ import annotations

from typing import Any

import pytest
from search_fixture import scripted

import hapax

TEXT = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "?".
functional was_invented_in(Object, Year): "[1] was invented in [2]" / "[1] was not invented in [2]" / "?".
computed is_earlier(Year A, Year B) := A < B: "[1] is earlier than [2]" / "[1] is not earlier than [2]" / "?".
given was_born_in(Person, Year): "[1] was born in [2]" / "[1] was not born in [2]" / "?".
fact was_born_in("Ada", 1815).
"""
RULES = hapax.parse_rules(TEXT)
BUTTER, PHONE = "is_ingredient_in(butter, X)", "was_invented_in(telephone, X)"
PROMPT = (
    "Give me 50 values of B to fill in the sentence 'butter is an ingredient in [B]' in the format '1. value.', "
    "where B is a dish."
)


def models(dishes: Any = ("paella", "toast", "soap"), critic: dict[str, float] | None = None, **options: Any) -> Any:
    """Butter is in three dishes, of which soap is none, by a critic who is sure of most."""
    script = {
        "generate": {
            "butter is an ingredient in [B]": dishes if isinstance(dishes, str) else list(dishes),
            "telephone was invented in [B]": [1876],
        },
        "critic": {
            "Butter is an ingredient in soap.": 0.1,
            "Soap is a dish.": 0.2,
            "Butter is an ingredient in paella.": 0.86,
            **(critic or {}),
        },
        "defaults": {"critic": 0.9, "likelihood": -10, "generate": []},
    }
    return scripted(script, **options)


def found(
    goal: str, using: Any, kb: hapax.KnowledgeBase | None = None, rules: hapax.Library = RULES, **chosen: Any
) -> Any:
    """The values of X."""
    settings = hapax.SearchSettings(**{"profile": "hapax", **chosen})
    options = hapax.QueryOptions(settings=settings)
    return [row["X"] for row in hapax.query(goal, rules, kb or hapax.KnowledgeBase(), models=using, options=options)]


def holds(goal: str, using: Any, kb: hapax.KnowledgeBase | None = None) -> bool:
    options = hapax.QueryOptions(settings=hapax.SearchSettings(profile="hapax"))
    return hapax.query(goal, RULES, kb or hapax.KnowledgeBase(), models=using, options=options).holds


def facts(kb: hapax.KnowledgeBase) -> set[tuple[Any, ...]]:
    return {(fact.predicate, *fact.arguments, fact.probability) for fact in kb.facts() if fact.probability}


def test_accepted_values_become_facts_and_all_else_is_kept_with_its_reason() -> None:
    """Facts have their probability; what the parser, the type or the critic refused has its gate."""
    kb = hapax.KnowledgeBase()
    values = found(BUTTER, models("1. paella.\n2. soap.\n3. [B].\n"), kb)
    (candidates,) = kb.candidates_of([question.id for question in kb.questions()]).values()
    by_id = {candidate.id: candidate.value for candidate in candidates}

    assert values == ["paella"]
    assert facts(kb) == {("is_ingredient_in", "butter", "paella", 0.86)}
    assert {(by_id[item.subject], item.gate, item.accepted) for item in kb.decisions()} == {
        ("paella", "critic", True),
        ("soap", "type", False),
        ("[B]", "parser", False),
    }


def test_a_list_that_is_shorter_than_asked_ends_its_question() -> None:
    """The prompt is LINK's, byte for byte; a full list is followed by another call, until one is shorter."""
    short, full = models(), models()
    found(BUTTER, short)
    found(BUTTER, full, values_per_call=2)

    assert short.knowledge.prompts == [PROMPT]
    assert full.knowledge.prompts == [PROMPT.replace("50 values", "2 values")] * 2


def test_link_names_accepted_values_in_the_prompt() -> None:
    """Under LINK's ways the accepted values stand in the prompt and the rejected ones' tokens are banned."""
    using, kb = models(), hapax.KnowledgeBase()
    found(BUTTER, using, kb, compat="paper")
    banned = [list(call.request.get("banned_tokens_of", ())) for call in kb.calls().values()]

    assert using.knowledge.prompts[1].endswith("Do not generate these values: paella, toast.")
    assert ["soap"] in banned


def test_a_question_is_asked_once_for_everybody() -> None:
    """A later goal with another seed asks nothing; another knowledge model is asked itself."""
    using, kb = models(), hapax.KnowledgeBase()
    first = found(BUTTER, using, kb)
    asked = len(using.knowledge.prompts)
    again = found(BUTTER, using, kb, seed=7)

    assert first == again == ["paella", "toast"]
    assert len(using.knowledge.prompts) == asked
    assert "curry" in found(BUTTER, models(("curry",)), kb)


def answering(*years: int) -> Any:
    """A model with another answer in each sample."""
    using = models()
    answers = iter([f"1. {year}.\n" for year in years])
    generate = using.knowledge.generate

    def wavering(requests: Any, parameters: Any) -> list[Any]:
        return [type(reply)(next(answers)) for reply in generate(requests, parameters)]

    using.knowledge.generate = wavering
    return using


@pytest.mark.parametrize(
    ("tolerance", "years", "taken"),
    [
        ("", (1876, 1876), [1876]),
        ("", (1876, 1877), []),
        (" within 2", (1878, 1876), [1878]),
        (" within 2", (1876, 1879), []),
        (" within 0.5", (1876, 1877), []),
        (" within 0.1%", (1876, 1877), [1876]),
        (" within 0.1 %", (1876, 1879), []),
    ],
)
def test_functional_samples_must_agree(tolerance: str, years: tuple[int, ...], taken: list[int]) -> None:
    """Of a right value two samples are asked; the first is taken if they agree within the tolerance of the rules.

    Nobody is asked to judge samples that differ.
    """
    kb, using = hapax.KnowledgeBase(), answering(*years)
    rules, wide = (
        hapax.parse_rules(TEXT.replace("(Object, Year)", f"(Object, Year){within}"))
        for within in (tolerance, " within 9")
    )
    first = found(PHONE, using, kb, rules)

    assert first == taken
    assert bool(using.critic.claims) == bool(taken)
    assert "the correct value of B" in using.knowledge.prompts[0]
    assert found(PHONE, using, kb, rules) == taken
    assert found(PHONE, using, kb, wide)  # stored answers are judged by the tolerance of the rules that ask


def test_the_critic_is_asked_only_where_nothing_else_decides() -> None:
    """Computed and given atoms cost no claim; judged ones that hold become facts."""
    using, kb = models(), hapax.KnowledgeBase()
    goals = {
        "is_earlier(1800, 1900)": True,
        "is_earlier(1900, 1800)": False,
        'was_born_in("Ada", 1815)': True,
        'was_born_in("Ada", 1816)': False,
        "is_ingredient_in(butter, toast)": True,
        "is_ingredient_in(butter, soap)": False,
    }

    assert {goal: holds(goal, using, kb) for goal in goals} == goals
    assert len(using.critic.claims) == 2
    assert facts(kb) == {("is_ingredient_in", "butter", "toast", 0.9)}


@pytest.mark.parametrize(("role", "calls"), [("knowledge", 1), ("critic", 0)])
def test_a_budget_keeps_what_was_answered(role: str, calls: int) -> None:
    """Replies are kept, what could not be judged is neither accepted nor refused, and a later goal goes on from there."""
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, "is_ingredient_in", [("butter", "Soap")], RULES)  # given: an answer whatever models say
    options = hapax.QueryOptions(settings=hapax.SearchSettings(profile="hapax", values_per_call=2))
    short = models(budget=hapax.Budget(max_calls=calls, roles=frozenset({role})))
    cut = hapax.query(BUTTER, RULES, kb, models=short, options=options)
    kept = sum(call.role == role for call in kb.calls().values())

    assert (cut.complete, kept) == (False, calls)
    assert role == "knowledge" or kb.decisions() == []
    assert sorted(found(BUTTER, models(), kb)) == ["Soap", "paella", "toast"]
