"""Rules against each other: the index of large libraries finds all pairs, and comparing ends in time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar import pair_checks, subsumption
from hapax.grammar.checks import check_library
from hapax.grammar.errors import Diagnostic, RulesRejected
from hapax.grammar.pair_checks import can_meet, duplicate_and_subsumed_rules, opposite_conclusions
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.satisfiable import contradiction
from hapax.grammar.subsumption import subsumes

VARIABLES = st.sampled_from(["Food X", "Cheese Y", "Food Z", "Year T", '"brie"', "7"])
ATOMS = st.builds(lambda name, left, right: f"{name}({left}, {right})", st.sampled_from("pqr"), VARIABLES, VARIABLES)
ITEMS = st.one_of(
    ATOMS,
    ATOMS.map("not {}".format),
    st.sampled_from(["X = Z", "Z \\= X", "T < 7", "7 > T", "T + 1 = 8", "T >= 7"]),
)
CONCLUSIONS = st.builds(
    lambda name, argument: f"{name}({argument}, Year T)", st.sampled_from(["c", "can_c", "cannot_c"]), VARIABLES
)
PREMISES = st.lists(ITEMS, min_size=1, max_size=4).map(lambda items: " & ".join(["s(Food X, Food Z, Year T)", *items]))
LIBRARIES = st.lists(st.builds("{} -> {}".format, PREMISES, CONCLUSIONS), min_size=2, max_size=8).map(
    lambda rules: parse_library([("t", "\n".join(["type Cheese < Food", *rules]))])
)

Finding = tuple[str, int, tuple[int, ...]]


def findings(found: Sequence[Diagnostic]) -> list[Finding]:
    return sorted(
        (diagnostic.code, diagnostic.place.line, tuple(place.line for place in diagnostic.related))
        for diagnostic in found
    )


def all_pairs(library: Library) -> list[Finding]:
    """The findings of comparing every two rules; a rule that repeats an earlier one has no other finding."""
    kept: list[Rule] = []
    found: list[Finding] = []
    for rule in library.rules:
        ways = [(known, subsumes(known, rule, library), subsumes(rule, known, library)) for known in kept]
        twins = [known for known, forward, backward in ways if forward and backward]
        if twins:
            found.append(("HPX205", rule.place.line, (twins[0].place.line,)))
            continue
        kept.append(rule)
        # What never holds has a fault of its own.
        ways = [way for way in ways if not any(contradiction(part.premise, library) for part in (rule, way[0]))]
        found += [("HPX206", rule.place.line, (known.place.line,)) for known, forward, _ in ways if forward]
        found += [("HPX206", known.place.line, (rule.place.line,)) for known, _, backward in ways if backward]
    return sorted(found)


@settings(deadline=None)
@given(LIBRARIES)
def test_the_index_finds_what_comparing_all_pairs_finds(library: Library) -> None:
    """The index finds the same duplicate and subsumed rules as comparing every pair."""
    assert findings(list(duplicate_and_subsumed_rules(library))) == all_pairs(library)


@settings(deadline=None)
@given(LIBRARIES)
def test_contrary_conclusions_are_found_among_all_pairs(library: Library) -> None:
    """Every two rules with contrary conclusions that can meet are reported, at the later one."""
    pairs = [
        ("HPX207", second.place.line, (first.place.line,))
        for first, second in combinations(library.rules, 2)
        if library.opposite_of(first.conclusion.atom.predicate) == second.conclusion.atom.predicate
        and can_meet(first, second, library)
    ]

    assert findings(list(opposite_conclusions(library))) == sorted(pairs)


@pytest.mark.parametrize(
    ("conclusion", "codes"), [("cannot_go(Thing T)", ["HPX207"]), ("cannot_go(Thing T, Year N)", [])]
)
def test_opposites_have_the_same_number_of_arguments(conclusion: str, codes: list[str]) -> None:
    """A thing that cannot go in a year may well go at another time."""
    lines = ["n(Thing T, Year N) -> can_go(Thing T)", f"n(Thing T, Year N) -> {conclusion}"]
    library = parse_library([("t", "\n".join(["opposite can_go cannot_go", *lines]))])

    assert [fault.code for fault in opposite_conclusions(library)] == codes


def test_a_premise_that_never_holds_is_compared_with_no_other() -> None:
    """A rule that divides by zero, or whose comparisons exclude each other, has that fault alone."""
    lines = ["n(Thing T, Year N) & N > 3 -> can_go(Thing T)", "n(Thing T, Year N) & N / 0 > 1 -> cannot_go(Thing T)"]
    lines += ["n(Thing T, Year N) & N * N < 0 -> cannot_go(Thing T)", "n(Thing T, Year N) & N < N -> can_go(Thing T)"]
    library = parse_library([("t", "\n".join(["opposite can_go cannot_go", *lines]))])

    assert findings([*duplicate_and_subsumed_rules(library), *opposite_conclusions(library)]) == []


def copies(count: int) -> Library:
    return parse_library([("t", "\n".join(count * ["likes(A X, B Y) & is_in(C Z, B Y) -> can_eat(A X, C Z)"]))])


def test_each_copy_of_a_rule_is_reported_once() -> None:
    """Of five equal rules, four are reported, each against the first."""
    assert findings(list(duplicate_and_subsumed_rules(copies(5)))) == [("HPX205", line, (1,)) for line in range(2, 6)]


WHEEL = " & ".join(f"p(A V{i}, A V{(i + 1) % 61})" for i in range(61))
COMPLETE = " & ".join(f"p(A W{i}, A W{1 - j % 2})" for i in (0, 1) for j in (0, 1) if i != 1 - j % 2)
HARD = (
    f"{WHEEL} & s(A V0) -> c(A V0)\n"
    f"{COMPLETE} & p(A W0, A W2) & p(A W2, A W0) & p(A W2, A W3) & p(A W3, A W2) & p(A W1, A W3) & p(A W3, A W1)"
    " & s(A W0) -> c(A W0)\n"
)


def test_a_pair_that_is_too_hard_is_reported() -> None:
    """With sixty literals over one predicate the comparison is given up, and a note names both rules."""
    (note,) = duplicate_and_subsumed_rules(parse_library([("t", HARD)]))

    assert (note.code, note.place.line, note.related[0].line) == ("HPX303", 2, 1)
    assert f"after {subsumption.MAXIMUM_TRIES:,} tries" in note.message


def test_comparing_ends_for_a_library_of_hard_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All comparisons together have a limit; a note names the rule at which they end."""
    monkeypatch.setattr(pair_checks, "MAXIMUM_TRIES_OF_ALL", 100)

    *_, last = duplicate_and_subsumed_rules(copies(200))

    assert last.code == "HPX303"
    assert "from rule" in last.message


def test_premises_may_be_longer_than_the_stack_is_deep() -> None:
    """Two equal rules of 1,100 literals are reported as duplicates."""
    chain = " & ".join(f"p{i}(A V{i}, A V0)" for i in range(1100))
    library = parse_library([("t", f"{chain} -> c(A V0)\n{chain} -> c(A V0)\n")])

    assert findings(list(duplicate_and_subsumed_rules(library))) == [("HPX205", 2, (1,))]


def test_a_rule_gets_some_contraries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thirty opposite rules twenty are reported with a note about the rest; the search for more is limited."""
    contrary = "likes(A X, B Y) & is_in(C Z, B Y) -> cannot_eat(A X, C Z)"
    rules = [f"likes(A X, B Y) & is_in(C Z, B Y) & has{number}(B Y) -> can_eat(A X, C Z)" for number in range(30)]
    library = parse_library([("t", "\n".join([*rules, contrary]))])

    assert [diagnostic.code for diagnostic in opposite_conclusions(library)] == [*20 * ["HPX207"], "HPX303"]

    monkeypatch.setattr(pair_checks, "MAXIMUM_MEETINGS", 5)

    assert [diagnostic.code for diagnostic in opposite_conclusions(library)] == [*5 * ["HPX207"], "HPX303"]


def test_the_check_names_what_it_gave_up() -> None:
    """`check` gives a hard pair a note, not an error."""
    assert "HPX303" in {diagnostic.code for diagnostic in check_library(parse_library([("t", HARD)]))}


def test_a_name_given_twice_is_reported_with_both_places() -> None:
    """HPX053 points at the second name and gives the place of the first, even in another file."""
    first = "@name twin\nlikes(A X, B Y) & is_in(C Z, B Y) -> eats(A X, C Z)"

    with pytest.raises(RulesRejected) as rejected:
        parse_library([("one.rules", first), ("two.rules", first)])

    (fault,) = rejected.value.diagnostics
    assert (fault.code, str(fault.place)) == ("HPX053", "two.rules:1:1")
    assert list(map(str, fault.related)) == ["one.rules:2:1"]
    assert "see also one.rules:2:1" in str(fault)


def test_giving_up_on_contraries_tells_the_reason() -> None:
    """The note says whether one rule has too many opposites, or the rules have too many pairs."""
    (rule,) = parse_library([("t", "@name last\np(A X) -> cannot_q(A X)")]).rules

    enough = pair_checks.contraries_given_up(rule, pair_checks.CONTRARIES_SHOWN)
    pairs = pair_checks.contraries_given_up(rule, pair_checks.CONTRARIES_SHOWN - 1)

    assert enough.message == (
        f"rule last concludes the opposite of more than {pair_checks.CONTRARIES_SHOWN} rules; the rest were not compared"
    )
    assert enough.remedy == "Fix the reported ones, then check again"
    assert pairs.message.startswith("from rule last on, opposite conclusions were not looked for: ")
    assert pairs.remedy == "Check fewer rules together"
