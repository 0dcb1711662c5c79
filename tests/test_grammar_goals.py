"""Goals for `query`: reading, refusals and the text for Prolog."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar.errors import RulesRejected
from hapax.grammar.goals import called_indicators, goal_text
from hapax.grammar.hints import GOAL_HINTS, Hint
from hapax.grammar.parser import parse_goal, parse_library
from hapax.grammar.rules import Library

LIBRARY = parse_library([("test.rules", 'fact p("a")')])
TWO = parse_library([("test.rules", 'fact likes("a", "b")\nfact p("a")')])


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("p(X), \\+ p(tom); p('saag \\'chicken')", "((p(X) , (\\+ p(tom))) ; p('saag \\'chicken'))"),
        ("not p(X).", "(\\+ p(X))"),
        ("not(p(X))", "(\\+ p(X))"),
        ('p("Ada"), p(-3), p(1.5)', "(p('Ada') , p((-3)) , p(3r2))"),
        ("X is -3 + abs(Y) mod 2 / 4", "(X is ((-3) + ((abs(Y) mod 2) rdiv 4)))"),
        ("X is 2 * 1.5 ** 2", "(X is (2 * (3r2 ^ 2)))"),
        ("aggregate_all(max(X, Y), likes(X, Y), max(A, B))", "aggregate_all(max(X, Y), likes(X, Y), max(A, B))"),
        ("setof(X-Y, Z^(p(X), likes(Y, Z)), [H|T])", "setof((X - Y), (Z ^ (p(X) , likes(Y, Z))), [H|T])"),
        ("findall(X, p(X), L), length(L, N), nth1(1, L, E)", "(findall(X, p(X), L) , length(L, N) , nth1(1, L, E))"),
        ("p(X) -> p(Y); p(Z) -> p(A) ; p(B)", "((p(X) -> p(Y)) ; (p(Z) -> p(A)) ; p(B))"),
        ("(p(X) -> p(Y) ; p(Z)) ; p(A)", "(((p(X) -> p(Y)) ; p(Z)) ; p(A))"),
        ("once((p(X) ; p(Y))), p(X), p(Y) -> p(Z)", "((once((p(X) ; p(Y))) , p(X) , p(Y)) -> p(Z))"),
        ("forall(p(X), (p(X) ; X = []))", "forall(p(X), (p(X) ; (X = [])))"),
    ],
)
def test_goals_are_written_bracketed_and_quoted(text: str, written: str) -> None:
    """Operators are bracketed, texts quoted, decimals and division exact; variable names stay."""
    goal = parse_goal(text, TWO)

    assert goal_text(goal) == written
    assert goal_text(parse_goal(written.replace("rdiv", "/").replace("3r2", "1.5"), TWO)) == written


@pytest.mark.parametrize(
    ("entry", "example"),
    [(entry, example) for entry in GOAL_HINTS for example in entry.examples],
    ids=lambda value: value.label if isinstance(value, Hint) else "",
)
def test_every_malformed_goal_gets_its_own_diagnostic(entry: Hint, example: str) -> None:
    """Each example of a hint gives exactly its diagnostic."""
    with pytest.raises(RulesRejected) as caught:
        parse_goal(example, LIBRARY)

    assert [fault.code for fault in caught.value.diagnostics] == [entry.code]


@pytest.mark.parametrize(
    "text",
    [
        "shell('rm -rf /')",
        "system:shell(x)",
        "call(p, X)",
        "X = p, X",
        "findall(X, shell(X), L)",
        "\\+ halt",
        "p(X), !",
        "catch(p(X), _, shell(x))",
        "assertz(p(b))",
        "forall(p(X), assertz(p(b)))",
        "p(X) :- shell(x)",
        "{p(X)}",
        "@(p(X), m)",
        "aggregate_all(count, shell(x), N)",
        "setof(X, Y^shell(Y), L)",
        "X is shell(1)",
        "X < f(shell(1))",
        "likes(a)",
    ],
)
def test_nothing_else_can_be_called(text: str) -> None:
    """Only predicates of the library and the listed built-ins pass, at any depth."""
    with pytest.raises(RulesRejected):
        parse_goal(text, TWO)


def test_a_goal_knows_what_it_answers() -> None:
    """A goal has no answers for variables in findall or negation or before ^; called predicates are listed."""
    goal = parse_goal("findall(X, p(X), L), setof(A, B^likes(A, B), M), \\+ p(C), likes(_, _D), likes(E, E)", TWO)

    assert goal.variables == ("L", "M", "E")
    assert called_indicators(goal, TWO) == ("p/1", "likes/2")


@pytest.mark.parametrize("text", ["(" * 15_000, "[" * 15_000, "p(" * 15_000, "\\+ " * 30_000, "- " * 30_000 + "1 < X"])
def test_nesting_is_refused_not_followed(text: str) -> None:
    """30 kB of brackets, which would crash Prolog's reader, give a diagnostic."""
    with pytest.raises(RulesRejected) as caught:
        parse_goal(text, LIBRARY)

    assert [fault.code for fault in caught.value.diagnostics] == ["HPX075"]


def test_a_long_conjunction_is_no_nesting() -> None:
    """A thousand literals side by side are fine."""
    assert goal_text(parse_goal(", ".join(["p(X)"] * 1000), LIBRARY)).count("p(X)") == 1000


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("pXab_(),;[]|'\"\\+-*/<>=^.~@ \n0é→is"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is read or rejected with diagnostics."""
    library: Library = LIBRARY
    try:
        goal = parse_goal(text, library)
    except RulesRejected as fault:
        handled = len(fault.diagnostics) > 0
    else:
        handled = goal_text(goal) != ""

    assert handled


@pytest.mark.parametrize("collecting", ["setof", "bagof"])
def test_free_variables_of_a_collected_goal_are_answers(collecting: str) -> None:
    """Those of its template and those before `^` are not, however many there are."""
    library = parse_library([("t", "given p(T, T, T)")])

    assert parse_goal(f"{collecting}(X, Y^p(X, Y, W), L)", library).variables == ("W", "L")
    assert parse_goal(f"{collecting}(X, Y^W^p(X, Y, W), L)", library).variables == ("L",)
    assert parse_goal(f"{collecting}(X, p(X, Y, W), L)", library).variables == ("Y", "W", "L")
