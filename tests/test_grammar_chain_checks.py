"""Rules that other rules imply together: they are found, and all that are reported can be removed."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar import chain_checks
from hapax.grammar.chain_checks import rules_implied_by_others
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Rule

STEP = "@generic none\n@name step\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
FURTHER = (
    "@generic none\n@name further\nreaches(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C)\n"
)
TWICE = "@generic none\n@name twice\nroad(Place A, Place B) & road(Place B, Place C) -> reaches(Place A, Place C)\n"


def reported(text: str) -> list[str]:
    """Names of the rules that are reported with the names of those that imply them."""
    return [fault.message for fault in rules_implied_by_others.find(parse_library([("t", text)]))]


@pytest.mark.parametrize(
    ("text", "rule", "others"),
    [
        (STEP + FURTHER + TWICE, "twice", "step and further"),
        (STEP + "transitive reaches/2\n" + FURTHER, "further", 'step and "transitive reaches/2"'),
        (
            "@name a\np(T X, T Y) -> q(T X, T Y)\n@name b\nq(T X, T Y) & not s(T X, T Y) -> r(T X, T Y)\n"
            "@name c\np(T X, T Y) & not s(T X, T Y) -> r(T X, T Y)\n",
            "c",
            "a and b",
        ),
        (
            "type N < Number\n@name a\np(T X, N K) & K > 3 -> q(T X, N K)\n@name b\nq(T X, N K) -> r(T X, N K)\n"
            "@name c\np(T X, N K) & K > 5 -> r(T X, N K)\n",
            "c",
            "a and b",
        ),
        (
            "type Cheese < Food\n@name a\np(Food X) -> q(Food X)\n@name b\nq(Food X) -> r(Food X)\n"
            "@name c\np(Cheese X) -> r(Cheese X)\n",
            "c",
            "a and b",
        ),
    ],
)
def test_a_rule_that_two_others_imply_is_found(text: str, rule: str, others: str) -> None:
    """Recursion, properties, negation, stronger comparisons and subtypes count as they do between two rules."""
    assert reported(text) == [f"everything that rule {rule} concludes already follows from {others}"]


@pytest.mark.parametrize(
    "text",
    [
        STEP + FURTHER,
        "p(T X, T Y) -> q(T X, T Y)\nq(T X, T Y) & not s(T X) -> r(T X, T Y)\np(T X, T Y) -> r(T X, T Y)\n",
        "p(T X) -> q(T X)\nq(T X) -> r(T X)\np(U X) -> r(U X)\n",
        "p(T X, T Y) -> q(T X, T Y)\nq(T X, T Y) -> r(T X, T Y)\np(T X, T Y) -> r(T Y, T X)\n",
    ],
)
def test_a_rule_that_says_more_is_not_reported(text: str) -> None:
    """A missing condition, another type or another order of arguments is no implication."""
    assert reported(text) == []


def test_a_premise_from_which_too_much_follows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving up is a note on the rule, and used up tries are one note for all rules after it."""
    monkeypatch.setattr(chain_checks, "MAXIMUM_ATOMS", 2)
    assert "rule twice was given up" in "\n".join(reported(STEP + FURTHER + TWICE))
    monkeypatch.setattr(chain_checks, "MAXIMUM_TRIES", 1)
    assert "from rule twice on" in "\n".join(reported(STEP + FURTHER + TWICE))


@pytest.mark.parametrize(("first", "second", "is_found"), [("a", "b", True), ("x", "b", False), ("a", "x", False)])
def test_a_constant_in_a_chain_is_matched_by_itself_alone(first: str, second: str, is_found: bool) -> None:
    """Rules with constants imply a rule that has the same ones."""
    steps = f'@generic none\np(T X, "{first}") -> q(T X, "{second}")\n@generic none\nq(T X, "b") -> r(T X, "c")\n'
    direct = '@name twice\n@generic none\np(T X, "a") -> r(T X, "c")\n'

    assert any("rule twice" in message for message in reported(steps + direct)) is is_found


@pytest.mark.parametrize(("most", "told"), [(4, "already follows"), (3, "given up")])
def test_as_many_consequences_as_the_limit_are_looked_at(monkeypatch: pytest.MonkeyPatch, most: int, told: str) -> None:
    """The atoms of the premise count as those that follow from it."""
    steps = "".join(f"@generic none\n{a}(T X, T Y) -> {b}(T X, T Y)\n" for a, b in ("pq", "qr", "rs"))
    monkeypatch.setattr(chain_checks, "MAXIMUM_ATOMS", most)

    (message,) = reported(steps + "@name far\n@generic none\np(T X, T Y) -> s(T X, T Y)\n")
    assert told in message


VARIABLES = st.sampled_from(["T X", "T Y", "T Z"])
ATOMS = st.builds("{}({}, {})".format, st.sampled_from(["a", "b", "c", "d"]), VARIABLES, VARIABLES)
RULES = st.builds(
    lambda premise, conclusion: f"@generic none\n{' & '.join(premise)} -> {conclusion}",
    st.lists(ATOMS, min_size=1, max_size=3),
    st.builds("{}({}, {})".format, st.sampled_from(["b", "c", "d"]), VARIABLES, VARIABLES),
)
ROWS = st.frozensets(st.tuples(st.sampled_from("ab"), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 3])))


def concluded(rules: list[Rule], facts: frozenset[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
    """All atoms that follow from facts, by trying all values for all variables until nothing is new."""
    known = set(facts)
    while True:
        new = set()
        for rule in rules:
            names = [variable.name for variable in rule.variables]
            for values in product([1, 2, 3], repeat=len(names)):
                bound = dict(zip(names, values, strict=True))
                rows = [
                    (atom.predicate, *(bound[term.name] for term in atom.arguments))  # type: ignore[union-attr]
                    for atom in rule.atoms
                ]
                if known.issuperset(rows[:-1]):
                    new.add(rows[-1])
        if new <= known:
            return known
        known |= new  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(RULES, min_size=2, max_size=6), ROWS)
def test_without_all_reported_rules_the_same_follows(texts: list[str], facts: frozenset[tuple[str, int, int]]) -> None:
    """Obeying every remedy at once loses no conclusion, whatever the facts are."""
    library: Library = parse_library([("t", "\n".join(texts))])
    rules = [rule for rule in library.rules if not rule.unbound]
    lines = {fault.place.line for fault in rules_implied_by_others.find(library) if fault.code == "HPX222"}
    kept = [rule for rule in rules if rule.place.line not in lines]

    assert concluded(kept, facts) == concluded(rules, facts)
