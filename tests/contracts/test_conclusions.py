"""Conclusions of SQL and Prolog against loops over the facts, before and after facts came and went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hapax

Row = tuple[Any, ...]
Facts = dict[str, set[Row]]

MENU = hapax.parse_rules("""
given is_in(Ingredient, Dish)
given has_price(Dish, Number)
aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))
aggregate cost(Ingredient Z, Number K) := K = sum(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate prices(Ingredient Z, Number K) := K = sum(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate least(Ingredient Z, Number K) := K = min(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate most(Ingredient Z, Number K) := K = max(Number P: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate mean(Ingredient Z, Number K) := K = avg(Number P, Dish D: is_in(Ingredient Z, Dish D) & has_price(Dish D, Number P))
aggregate dishes(Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D) & not has_price(Dish D, 2))
aggregate busiest(Number K) := K = max(Number N: dishes_with(Ingredient Z, Number N))
@generic none
dishes_with(Ingredient Z, Number K) & cost(Ingredient Z, Number C) & prices(Ingredient Z, Number M) & K + 1 > 1 -> is_common(Ingredient Z, Number C, Number M, Number K)
@generic none
least(Ingredient Z, Number A) & most(Ingredient Z, Number B) -> spans(Ingredient Z, Number A, Number B)
@generic none
mean(Ingredient Z, Number M) & M >= 2 & M * 4 < 40 -> is_dear(Ingredient Z)
@generic none
dishes(Number K) & busiest(Number N) & K >= N -> counts(Number K, Number N)
""")
PRICES = st.sampled_from((1, 2, 3, 7, -4, "2.5", "0.1"))
DISHES = st.sampled_from(("soup", "pie", "tart", "stew"))
MENUS = st.fixed_dictionaries(
    {
        "is_in": st.sets(st.tuples(st.sampled_from(("salt", "leek", "rice")), DISHES), min_size=1, max_size=8),
        "has_price": st.sets(st.tuples(DISHES, PRICES), max_size=6),
    }
)


def of_menu(facts: Facts) -> Facts:
    """The conclusions by loops, in fractions."""
    prices: dict[str, set[Fraction]] = {}
    for dish, price in facts["has_price"]:
        prices.setdefault(dish, set()).add(Fraction(price))
    found: Facts = {"is_common/4": set(), "spans/3": set(), "is_dear/1": set(), "counts/2": set()}
    sizes = []
    for ingredient in {row[0] for row in facts["is_in"]}:
        dishes = {dish for other, dish in facts["is_in"] if other == ingredient}
        sizes.append(len(dishes))
        values = [price for dish in dishes for price in prices.get(dish, ())]
        if values:
            found["is_common/4"].add((ingredient, sum(values), sum(set(values)), len(dishes)))
            found["spans/3"].add((ingredient, min(values), max(values)))
            if 2 <= sum(values) / Fraction(len(values)) < 10:
                found["is_dear/1"].add((ingredient,))
    counted = {dish for _, dish in facts["is_in"] if Fraction(2) not in prices.get(dish, ())}
    if counted and len(counted) >= max(sizes):
        found["counts/2"].add((len(counted), max(sizes)))
    return found


BIRDS = hapax.parse_rules("""
given is_bird(Animal)
given is_penguin(Animal)
given weighs(Animal, Number)
given has_illness(Animal, Illness)
given is_serious(Illness)
@generic none
is_bird(Animal X) & weighs(Animal X, Number K) -> can_fly(Animal X, Number K)
  unless is_penguin(Animal X)
  unless has_illness(Animal X, Illness I) & is_serious(Illness I)
  unless K * 2 > 5 & not is_serious("flu")
@generic none
is_bird(Animal X) -> stays(Animal X) unless can_fly(Animal X, Number K)
""")
ANIMALS, ILLNESSES = st.sampled_from(("tit", "rhea", "auk")), st.sampled_from(("flu", "cold"))
AVIARIES = st.fixed_dictionaries(
    {
        "is_bird": st.sets(st.tuples(ANIMALS), min_size=1),
        "is_penguin": st.sets(st.tuples(ANIMALS), max_size=1),
        "weighs": st.sets(st.tuples(ANIMALS, st.sampled_from((1, 2, 3, "2.5", "2.51"))), max_size=4),
        "has_illness": st.sets(st.tuples(ANIMALS, ILLNESSES), max_size=2),
        "is_serious": st.sets(st.tuples(ILLNESSES)),
    }
)


def of_birds(facts: Facts) -> Facts:
    """The conclusions by loops."""
    ill = {animal for animal, illness in facts["has_illness"] if (illness,) in facts["is_serious"]}
    flying = set()
    for animal, weight in facts["weighs"]:
        is_heavy = Fraction(weight) * 2 > 5 and ("flu",) not in facts["is_serious"]
        excepted = (animal,) in facts["is_penguin"] or animal in ill or is_heavy
        if (animal,) in facts["is_bird"] and not excepted:
            flying.add((animal, Fraction(weight)))
    return {"can_fly/2": flying, "stays/1": facts["is_bird"] - {row[:1] for row in flying}}


def nearness(symmetric: bool, transitive: bool, by_first: bool) -> hapax.Library:
    return hapax.parse_rules(f"""
given near(Node, Node)
oracle blocked(Node, Node)
{"symmetric near/2" if symmetric else ""}
{"transitive near/2" if transitive else ""}
closed blocked/2{" by 1" if by_first else ""}
@generic none
near(Node A, Node B) & not blocked(Node A, Node B) -> goes(Node A, Node B)
""")


def of_nearness(facts: Facts, symmetric: bool, transitive: bool, by_first: bool) -> Facts:
    """The closure by repeated steps, without what is blocked; unknown where nothing is known of the first node."""
    near = set(facts["near"])
    while True:
        more = {(b, a) for a, b in near} if symmetric else set()
        if transitive:
            more |= {(a, d) for (a, b), (c, d) in product(near, near) if b == c}
        if more <= near:
            break
        near |= more
    covered = {row[0] for row in facts["blocked"]}
    return {"goes/2": {row for row in near - facts["blocked"] if not by_first or row[0] in covered}}


PAIRS = st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=6)
MAPS = st.fixed_dictionaries({"near": PAIRS, "blocked": PAIRS})


def exact(row: Iterable[Any]) -> Row:
    return tuple(value if isinstance(value, str) else Fraction(value) for value in row)


def held(indicators: Iterable[str], rules: hapax.Library, kb: hapax.KnowledgeBase) -> Facts:
    """The atoms that hold of each predicate, by one goal."""
    goals = []
    for place, indicator in enumerate(indicators):
        name, _, arity = indicator.partition("/")
        names = ", ".join(f"A{number}" for number in range(int(arity)))
        goals.append(f"findall([{names}], {name}({names}), L{place})")
    (found,) = hapax.query(", ".join(goals), rules, kb).rows
    return {indicator: set(map(exact, rows)) for indicator, rows in zip(indicators, found, strict=True)}


def check(rules: hapax.Library, stages: Sequence[Facts], expected: Any) -> None:
    """At each stage facts are added, one of the first is withdrawn, and both engines derive what loops conclude."""
    known: Facts = {name: set() for name in stages[0]}
    first = next(((name, min(rows, key=repr)) for name, rows in stages[0].items() if rows), ("", ()))
    with hapax.KnowledgeBase() as kb:
        for stage in stages:
            for name, rows in stage.items():
                known[name] |= rows
                hapax.add_facts(kb, name, [tuple(map(number, row)) for row in sorted(rows, key=repr)], rules)
            name, row = first
            if row in known.get(name, ()):
                atom = f"{name}({', '.join(map(str, row))})"
                hapax.retract(atom, rules, kb, reason="wrong")
                known[name].discard(row)
            right = {indicator: set(map(exact, rows)) for indicator, rows in expected(known).items()}
            derived = {}
            for engine in ("auto", "prolog"):
                derived[engine] = sorted(str(item) for item in hapax.derive(rules, kb, engine=engine).statements)  # type: ignore[arg-type]
            assert held(right, rules, kb) == right
            assert derived["auto"] == derived["prolog"]


def number(value: Any) -> Any:
    """Decimals are written as texts above, so that they are exact."""
    return Decimal(value) if isinstance(value, str) and value[0].isdigit() else value


quick = settings(max_examples=4, deadline=None)


@quick
@given(earlier=MENUS, later=MENUS)
def test_aggregates_are_what_loops_count(earlier: Facts, later: Facts) -> None:
    """Five functions with and without groups, over decimals, with negation and aggregates of aggregates."""
    check(MENU, (earlier, later), of_menu)


@quick
@given(earlier=AVIARIES, later=AVIARIES)
def test_exceptions_except_what_loops_except(earlier: Facts, later: Facts) -> None:
    """By a fact, a join, arithmetic with a negation, and another rule."""
    check(BIRDS, (earlier, later), of_birds)


@quick
@given(earlier=MAPS, later=MAPS, declared=st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_properties_and_closedness_close_what_steps_close(
    earlier: Facts, later: Facts, declared: tuple[bool, bool, bool]
) -> None:
    """Symmetric, transitive, closed, and closed for the first arguments that are known."""
    check(nearness(*declared), (earlier, later), lambda facts: of_nearness(facts, *declared))


def test_a_group_without_rows_has_no_value() -> None:
    """Not even 0; a dish without a price counts, and adds nothing."""
    with hapax.KnowledgeBase() as kb:
        assert hapax.query("dishes(K)", MENU, kb).rows == []
        hapax.add_facts(kb, "is_in", [("salt", "soup"), ("salt", "gift")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3)], MENU)

        assert hapax.query("dishes_with(salt, K), cost(salt, C)", MENU, kb).rows == [(2, 3)]


def test_a_proof_has_every_row_of_its_group_and_names_declarations_and_exceptions() -> None:
    """`why` shows the facts of the group and no others, the declaration by which a fact follows, and what excepts nothing."""
    rules = nearness(True, False, False)
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", [("salt", "soup"), ("salt", "pie"), ("leek", "tart")], MENU)
        hapax.add_facts(kb, "has_price", [("soup", 3), ("pie", 2), ("tart", 9)], MENU)
        hapax.add_facts(kb, "near", [("a", "b")], rules)
        hapax.add_facts(kb, "is_bird", [("tit",), ("auk",)], BIRDS)
        hapax.add_facts(kb, "weighs", [("tit", 1), ("auk", 1)], BIRDS)
        hapax.add_facts(kb, "is_penguin", [("auk",)], BIRDS)

        least = str(hapax.why("least(salt, 2)", MENU, kb))
        goes = str(hapax.why("goes(b, a)", rules, kb))
        flies = str(hapax.why("can_fly(tit, 1)", BIRDS, kb))
        stays = str(hapax.why_not("can_fly(auk, 1)", BIRDS, kb))

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
