"""Aggregates, exceptions, declarations and unknown facts: what follows, and what a proof of it shows."""

from __future__ import annotations

import pytest

import hapax

MENU = hapax.parse_rules("""
given is_in(Ingredient, Dish)
given has_price(Dish, Number)
aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))
aggregate cost(Ingredient Z, Number K) := K = sum(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate least(Ingredient Z, Number K) := K = min(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate dishes(Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D) & not has_price(Dish D, 2))
@generic none
dishes_with(Ingredient Z, Number K) & cost(Ingredient Z, Number C) -> is_common(Ingredient Z, Number C, Number K)
""")
BIRDS = hapax.parse_rules("""
given is_bird(Animal)
given is_penguin(Animal)
@generic none
is_bird(Animal X) -> can_fly(Animal X) unless is_penguin(Animal X)
""")
NEAR = hapax.parse_rules("""
given near(Node, Node)
symmetric near/2
@generic none
near(Node A, Node B) -> goes(Node A, Node B)
""")


def test_a_group_without_rows_has_no_value() -> None:
    """Not even 0; a dish without a price counts, and adds nothing."""
    with hapax.KnowledgeBase() as kb:
        assert hapax.query("dishes(K)", MENU, kb).rows == []
        hapax.add_facts(kb, "is_in", [("salt", "soup"), ("salt", "gift")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3)], MENU)

        assert hapax.query("dishes_with(salt, K), cost(salt, C)", MENU, kb).rows == [(2, 3)]


def test_a_proof_has_every_row_of_its_group_and_names_declarations_and_exceptions() -> None:
    """`why` shows the facts of the group and no others, the declaration by which a fact follows, and what excepts nothing."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", [("salt", "soup"), ("salt", "pie"), ("leek", "tart")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3), ("pie", 2), ("tart", 9)], MENU)
        hapax.add_facts(kb, "near", [("a", "b")], NEAR)
        hapax.add_facts(kb, "is_bird", [("tit",), ("auk",)], BIRDS)
        hapax.add_facts(kb, "is_penguin", [("auk",)], BIRDS)

        least = str(hapax.why("least(salt, 2)", MENU, kb))
        goes = str(hapax.why("goes(b, a)", NEAR, kb))
        flies = str(hapax.why("can_fly(tit)", BIRDS, kb))
        stays = str(hapax.why_not("can_fly(auk)", BIRDS, kb))

    assert all(row in least for row in ('is_in("salt", "pie")', 'has_price("soup", 3)', "aggregate least/2"))
    assert "tart" not in least
    assert "symmetric near/2" in goes
    assert 'near("a", "b")' in goes
    assert "exception" in flies
    assert 'is_penguin("auk")' in stays


OPEN = """
oracle is_ill(Animal)
given is_bird(Animal)
@generic none
is_bird(Animal X) -> flies(Animal X) unless is_ill(Animal X)
@generic none
is_bird(Animal X) & not is_ill(Animal X) -> is_fit(Animal X)
"""


def test_an_exception_that_becomes_known_overturns_a_default() -> None:
    """An unknown fact is no exception, and no denial either; `why-not` names the unknown fact and both remedies."""
    rules = hapax.parse_rules(OPEN)
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_bird", [("tit",)], rules)
        before = [hapax.query(goal, rules, kb).holds for goal in ("flies(tit)", "is_fit(tit)")]
        unknown = str(hapax.why_not("is_fit(tit)", rules, kb))
        statements = len(list(hapax.derive(rules, kb).statements))
        hapax.add_facts(kb, "is_ill", [("tit",)], rules)

        assert (before, statements) == ([True, False], 1)
        assert 'is_ill("tit") is unknown' in unknown
        assert "closed is_ill/1" in unknown
        assert not hapax.query("flies(tit)", rules, kb).holds
        assert len(list(hapax.derive(rules, kb).statements)) == 0


def test_there_are_no_probabilities_of_aggregates() -> None:
    """The value differs from world to world, so that a probability is refused instead of given wrongly."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", [("salt", "soup")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3)], MENU)
        with pytest.raises(hapax.HapaxError, match="aggregate"):
            list(hapax.derive(MENU, kb, probability=hapax.ProbabilityOptions()).statements)
