"""Goals of `query`, by the command line, `import hapax` and the Prolog text of `compile`."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cli_fixture import invoke, run
from click.testing import CliRunner

import hapax
from hapax.cli import main

PLACES = """
given lives_in(Person, City)
given works_in(Person, City)
given earns(Person, Number)
@name a
@generic none
lives_in(Person X, City Y) -> is_at(Person X, City Y)
@name b
@generic none
works_in(Person X, City Y) -> is_at(Person X, City Y)
@name c
@generic none
is_at(Person X, City Y) & earns(Person X, Number K) -> pays_tax(Person X, Number K)
@name d
@generic none
lives_in(Person X, City Y) -> lives(Person X)
aggregate payers(Number N) := N = count(Person X: pays_tax(Person X, Number K))
fact lives_in("ann", "rome")
fact works_in("ann", "rome")
fact lives_in("bob", "oslo")
fact works_in("bob", "rome")
fact lives_in("bob", "pisa")
fact earns("ann", 100)
fact earns("bob", 50)
fact is_at("ann", "rome")
fact lives("bob")
"""


def write(folder: Path, text: str, name: str = "my.rules") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def rows(goal: str, rules: Path, database: Path, *options: str) -> list[list[Any]]:
    """The answers of a goal by the command line."""
    output = run("query", goal, "--rules", rules, "--db", database, "--json", *options).stdout
    return [list(answer.values()) for answer in json.loads(output)["answers"]]


def stored(folder: Path, table: str = "predicate,a1,a2\n") -> Path:
    """A knowledge base with the facts of a table."""
    database = folder / "kb.db"
    with hapax.KnowledgeBase(database) as kb:
        if table.count("\n") > 1:
            hapax.import_facts(kb, write(folder, table, "facts.csv"))
    return database


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("aggregate_all(count, is_at(X, Y), N)", [[4]]),
        ("aggregate_all(count, lives(bob), N)", [[1]]),
        ("aggregate_all(sum(K), pays_tax(X, K), S)", [[150]]),
        ("findall(X, is_at(X, rome), L), length(L, N)", [[["ann", "bob"], 2]]),
        ("findall(K, pays_tax(X, K), L), sum_list(L, S), msort(L, M)", [[[100, 50], 150, [50, 100]]]),
        ("bagof(X, is_at(X, rome), L), nth1(2, L, X2)", [[["ann", "bob"], "bob"]]),
        ("setof(Y, is_at(bob, Y), L)", [[["oslo", "pisa", "rome"]]]),
        ("aggregate_all(count, (lives_in(X, rome) ; works_in(X, rome)), N)", [[2]]),
        ("payers(N)", [[2]]),
    ],
)
def test_goals_collect_answers(tmp_path: Path, goal: str, expected: list[list[Any]]) -> None:
    """Counts, sums and lists in a goal have each atom once, however many rules and facts give it."""
    assert rows(goal, write(tmp_path, PLACES), stored(tmp_path)) == expected


def test_an_atom_that_several_give_is_counted_once(tmp_path: Path) -> None:
    """Bob works in Rome: it is the same atom if he also lives there, is assumed to be there, or if both are stored."""
    rules = write(tmp_path, PLACES)
    database = stored(tmp_path, "predicate,a1,a2\nis_at,ann,rome\nlives_in,ann,rome\n")

    for assumed in ((), ("lives_in(bob, rome)",), ("is_at(bob, rome)",), ("is_at(ann, rome)",)):
        options = [word for atom in assumed for word in ("--assume", atom)]
        assert rows("aggregate_all(count, is_at(X, Y), N)", rules, database, *options) == [[4]]


def test_facts_that_are_read_on_demand_are_counted_once(tmp_path: Path) -> None:
    """Of a large table a goal reads only the facts that it needs: each once."""
    lines = "".join(
        f"lives_in,p{number},c{number % 50}\nworks_in,p{number},c{number % 50}\n" for number in range(3_000)
    )
    database = stored(tmp_path, "predicate,a1,a2\n" + lines)
    rules = write(tmp_path, PLACES.partition("fact ")[0])

    assert rows("aggregate_all(count, is_at(X, c7), N)", rules, database) == [[60]]
    assert rows("aggregate_all(count, is_at(p7, X), N)", rules, database) == [[1]]
    assert rows("aggregate_all(count, (lives_in(X, c7), is_at(X, Y)), N)", rules, database) == [[60]]
    assert rows("aggregate_all(count, (lives_in(X, Y), works_in(X, Z), is_at(X, A)), N)", rules, database) == [[3_000]]


@pytest.mark.skipif(shutil.which("swipl") is None, reason="needs the program swipl")
def test_compiled_rules_have_the_same_answers_in_prolog_alone(tmp_path: Path) -> None:
    """`compile` writes a program whose predicates give each answer once, also after a fact is added."""
    program = write(tmp_path, run("rules", "compile", write(tmp_path, PLACES)).stdout, "program.pl")
    goal = (
        "forall(member(G, [is_at(_, _), lives(bob), pays_tax(_, _)]), "
        "(aggregate_all(count, hapax:G, N), writeln(N))), assertz(hapax:lives_in(cleo, oslo)), "
        "aggregate_all(count, hapax:is_at(_, _), M), writeln(M)"
    )
    output = subprocess.run(
        ["swipl", "-q", "-g", goal, "-t", "halt", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout

    assert output.split() == ["4", "1", "2", "5"]


NAMES = """
given Edge(Thing, Thing)
given 2nd_of(Thing, Thing)
given _own(Thing)
given mod(Thing)
@generic none
Edge(Thing X, Thing Y) -> Reach(Thing X, Thing Y)
fact Edge("a", "b")
fact 2nd_of("a", "b")
fact _own("a")
fact mod("a")
"""


@pytest.mark.parametrize(
    "goal",
    [
        "'Reach'(X, b)",
        "Reach(X, 'b')",
        "aggregate_all(bag(Y), 'Reach'(Y, _), [X])",
        "\\+ 'Reach'(b, a), X = a",
        "'2nd_of'(X, b)",
        "'_own'(X)",
        "'mod'(X)",
    ],
)
def test_every_predicate_of_rules_can_be_asked_for(tmp_path: Path, goal: str) -> None:
    """A name that is no word with a small initial is quoted, as in Prolog."""
    assert rows(goal, write(tmp_path, NAMES), stored(tmp_path)) == [["a"]]


def test_capitalised_atoms_can_be_assumed_and_explained(tmp_path: Path) -> None:
    """An atom is understood as `why` prints it, and quoted, as a suggestion names it."""
    rules, database = write(tmp_path, NAMES), stored(tmp_path)

    assert "'Reach'/2" in invoke("query", "reach(X, Y)", "--rules", rules, "--db", database).output
    assert rows("'Reach'(c, X)", rules, database, "--assume", "'Edge'(c, d)") == [["d"]]
    for atom in ('Reach("a", "b")', "'Reach'(a, b)"):
        assert 'Edge("a", "b")' in run("why", atom, "--rules", rules, "--db", database).stdout
    assert "does not hold" in run("why-not", "'Reach'(b, a)", "--rules", rules, "--db", database).stdout


CLOSING = {
    "itself": ["linked(X, Y) & linked(Y, Z)"],
    "a step after it": ["linked(X, Y) & road(Y, Z)"],
    "a step before it": ["road(X, Y) & linked(Y, Z)"],
    "steps on both sides": ["road(X, Y) & linked(Y, Z)", "linked(X, Y) & ferry(Y, Z)"],
}
"""Premises of rules that conclude linked(X, Z)."""
LINKS = """
road(X, Y) -> linked(X, Y).
ferry(X, Y) & not closed(X) -> linked(Y, X).
"""
DEPOT = 'linked(X, X) & inspected(X) -> linked(X, "depot").'
"""A rule that asks for all pairs, whatever a goal binds."""


def joined(left: set[tuple[str, str]], right: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(a, c) for a, b in left for d, c in right if b == d}


@pytest.mark.parametrize("joins", CLOSING)
@pytest.mark.parametrize("seed", range(4))
def test_goals_of_a_closure_have_the_pairs_that_rounds_find(seed: int, joins: str) -> None:
    """Goals that bind one argument, the other, both or none have the answers of all rounds, each with a proof."""
    draw = Random(seed)
    places = [f"v{number}" for number in range(8)]
    drawn = {
        name: {(draw.choice(places), draw.choice(places)) for _ in range(5)} for name in ("road", "ferry", "linked")
    }
    shut, inspected = draw.sample(places, 2), draw.sample(places, 3)
    facts = [f"{name}({a}, {b})." for name, pairs in drawn.items() for a, b in pairs]
    facts += [f"closed({place})." for place in shut] + [f"inspected({place})." for place in inspected]
    closing = [premise.split(" & ") for premise in CLOSING[joins]]
    rules = [f"{first} & {then} -> linked(X, Z)." for first, then in closing]
    asks_all = seed % 2 == 0
    program = hapax.program("\n".join([*facts, LINKS, *rules, DEPOT if asks_all else ""]))

    linked = drawn["linked"] | drawn["road"] | {(b, a) for a, b in drawn["ferry"] if a not in shut}
    known = {**drawn, "linked": linked}
    for _ in range(len(places) ** 2):
        for first, then in closing:
            linked |= joined(known[first.partition("(")[0]], known[then.partition("(")[0]])
        linked |= {(a, "depot") for a in inspected if asks_all and (a, a) in linked}

    assert {(row["X"], row["Y"]) for row in program.query("linked(X, Y)")} == linked
    for place in places:
        assert {row["Y"] for row in program.query(f"linked({place}, Y)")} == {b for a, b in linked if a == place}
        assert {row["X"] for row in program.query(f"linked(X, {place})")} == {a for a, b in linked if b == place}
        assert {row["X"] for row in program.query(f"linked({place}, X), linked(X, {place})")} == {
            b for a, b in linked if a == place and (b, a) in linked
        }
        ends, starts = {b for a, b in linked if a == place}, {a for a, b in linked if b == "v0"}
        found = program.query(f"linked({place}, X), linked(Y, v0)")
        assert {(row["X"], row["Y"]) for row in found} == set(product(ends, starts))
    for a, b in sorted(linked)[:5]:
        assert program.why(f"linked({a}, {b})").lines  # raises HapaxError for what has no proof


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("?- stop(X, A, B), (A, B) > (1, 2).", [("b",), ("c",)]),
        ("stop(X, A, B), (A, B) = (1, 2)", [("a",)]),
        ("stop(X, A, B), (A, B) \\= (1, 2)", [("b",), ("c",), ("d",)]),
        ("stop(X, A, B), (A, B) =< (1, 2)", [("a",), ("d",)]),
        ("stop(X, A, B), \\+ (A, B) < (1, 3)", [("b",), ("c",)]),
        ("stop(X, A, B), (A, B) < (1, 2, 3)", "HPX081"),
        ("stop(X, A, B), (A, B) < 3", "HPX081"),
    ],
)
def test_columns_are_compared_from_the_left(goal: str, rows: list[tuple[str]] | str) -> None:
    """As in rules; Prolog's prompt before the goal says nothing."""
    program = hapax.program("stop(a, 1, 2). stop(b, 1, 3). stop(c, 2, 1). stop(d, 0, 9).")

    if isinstance(rows, str):
        with pytest.raises(hapax.HapaxError, match=rows):
            program.query(goal)
    else:
        assert [(row["X"],) for row in program.query(goal)] == rows


BOOKS = """
given book(id: Number, title: Text, year: Number, day: Date)
book(1, "Emma", 1815, "1815-12-23").
book(2, "1984", 1949, "1949-06-08").
given penguin(Bird)
penguin(pingu). bird(tweety). bird(pingu).
book(id: I, title: T) -> is_read(I) unless is_baned(I)
bird(X) -> flies(X) unless penguin(X)
bird(X) & not pengin(X) -> swims(X)
book(id: I, title: Emma) -> is_emma(I)
oracle likes(Person, Dish)
"""


@pytest.mark.parametrize(
    ("goal", "place", "near"),
    [
        ("book(title: T), U = uper(T)", "1:21", "upper"),
        ("book(title: T), lowr(T) = emma", "1:17", "lower"),
        ("book(year: Y), Y > absolute(3) + flor(Y)", "1:34", "floor"),
        ("book(title: T), U == lower(T, 2)", "1:22", "takes 1 argument"),
        ("book(title: T), start_with(T, a)", "1:17", "starts_with/2"),
        ("book(title: T), not is_red(T)", "1:21", "is_read/1"),
        ("book(tite: T)", "1:1", "title"),
        ("book(1, T)", "1:1", "book/4"),
        ("book(Title: T)", "1:1", "Did you mean title?"),
        ("bok(title: T)", "1:1", "book/4"),
        ("bird(X) plus flies(X)", "1:9", '"&"'),
        ("N = count(bird(X))", "1:5", "aggregate_all(count"),
    ],
)
def test_a_misspelt_name_in_a_goal_has_its_place_and_the_nearest_name(goal: str, place: str, near: str) -> None:
    """Functions, tests, predicates, columns, and numbers of arguments."""
    with pytest.raises(hapax.HapaxError) as refused:
        hapax.program(BOOKS).query(goal)

    assert f"{place}: error" in str(refused.value)
    assert near in str(refused.value)


def test_a_term_with_a_name_of_its_own_is_a_record() -> None:
    """As Prolog has it."""
    assert hapax.program(BOOKS).query("book(id: 1, title: T), X = point(T, 1)")[0]["X"] == "point(Emma, 1)"


@pytest.mark.parametrize(
    ("goal", "told", "never"),
    [
        ('book(id: I, year: "1949")', "type of numbers", "No fact has"),
        ("book(id: I, day: 1815)", "2012-12-01", "--ask"),
        ('book(id: I, day: D), D > "1815-02-30"', "2012-12-01", "No fact has"),
        ("book(id: I, title: emma)", "Did you mean 'Emma'?", "--ask"),
        ('book(id: I, title: "Émmá")', "Did you mean 'Emma'?", "--ask"),
        ("is_emma(I)", "books.rules:10:1: Emma is a variable here; the stored name is written 'Emma'", "No answer"),
        ('book(title: T), starts_with(T, "X")', "No answer", "No fact has"),
        ("likes(ann, X)", "--ask asks a model for facts of likes/2", "No fact has"),
        ("swims(X)", "Did you mean penguin/1?", "--ask"),
        ("is_read(I)", "is_baned/1 has neither facts nor rules", "No answer"),
    ],
)
def test_notes_on_a_goal_say_what_may_be_meant(tmp_path: Path, goal: str, told: str, never: str) -> None:
    """Values of another kind, names near those of the facts, misspelt negations; --ask where a model has facts."""
    path = tmp_path / "books.rules"
    path.write_text(BOOKS, "utf-8")
    found = invoke("query", goal, path)

    assert found.exit_code == 0
    assert told in found.stderr
    assert never not in found.stderr


def test_answers_have_the_columns_in_the_order_of_the_goal() -> None:
    """Whatever the order of the declaration."""
    assert hapax.program(BOOKS).query("book(year: Y, title: T)").columns == ("Y", "T")


def test_no_name_of_an_exception_is_shown(tmp_path: Path) -> None:
    """Neither by `derive`, `why` and `why-not`, nor among the predicates of the shell or the near ones of a goal."""
    path, kb = tmp_path / "books.rules", tmp_path / "books.db"
    path.write_text(BOOKS, "utf-8")
    shown = [
        invoke("derive", path, "--db", kb),
        invoke("why", "flies(tweety)", "--db", kb),
        invoke("why-not", "flies(pingu)", "--db", kb),
        invoke("query", "unless_penguin(X)", "--db", kb),
        CliRunner().invoke(main, ["shell", str(path)], input="predicates\n"),
    ]

    assert not any("unless_penguin_" in result.output for result in shown)
    assert 'unless penguin("tweety")' in shown[1].stdout
    assert "flies/1" in shown[-1].stdout


@pytest.mark.parametrize(
    ("goal", "answers"),
    [
        ("n(X), X in 1..50", [[12]]),
        ("n(X), not X in 1..50", [[0], [1.5], [800]]),
        ("n(X), X in 0..900", [[0], [12], [800]]),
        ('n(X), X in 0..900, V = concat(X, "a")', [[0, "0a"], [12, "12a"], [800, "800a"]]),
        ("X = 1..2, Y in X..2000, Y < 3", [[1, 1], [1, 2], [2, 2]]),
        ("X in 2..1", []),
        ("n(X), X > 5, Y in (X, X + 1)", [[12, 12], [12, 13], [800, 800], [800, 801]]),
    ],
)
def test_a_range_and_calculated_members_give_values_in_goals_as_in_rules(
    goal: str, answers: list[list[Any]], tmp_path: Path
) -> None:
    """`X in 1..50` is about each whole number, whatever else X may be, and members are calculated."""
    rules = write(tmp_path, "n(0). n(1.5). n(12). n(800).")
    found = [
        [float(value["decimal"]) if isinstance(value, dict) else value for value in row]
        for row in rows(goal, rules, tmp_path / "n.db")
    ]

    assert sorted(found) == answers


def test_a_range_stands_behind_no_other_comparison(tmp_path: Path) -> None:
    """A goal that compares with a range is refused as in a rule, with what to write."""
    result = invoke("query", "X < 1..3", "--rules", write(tmp_path, "n(0)."), "--db", tmp_path / "n.db")

    assert (result.exit_code, "HPX087" in result.output) == (1, True)


def test_more_rules_than_a_database_joins_at_once_conclude_one_predicate(tmp_path: Path) -> None:
    """A predicate of 600 rules is asked, derived and asked again."""
    rules = write(tmp_path, "n(30).\n" + "\n".join(f"n(X) & X > {i} & X < {i + 2} -> p(X)" for i in range(600)))
    database = tmp_path / "n.db"

    before = rows("p(X)", rules, database)
    run("derive", rules, "--db", database)

    assert before == rows("p(X)", rules, database) == [[30]]
