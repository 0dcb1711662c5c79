"""Smallest, largest and added values that depend on themselves: against graph algorithms and plain SWI-Prolog."""

from __future__ import annotations

import random
import subprocess
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

import hapax

SHORTEST = """
given road(Place, Place, Number)
aggregate d(Place A, Place B, Number K) :=
  K = min(Number N: road(A, B, N) | d(A, Place C, Number L) & road(C, B, Number M) & N = L + M)
@generic none
d(Place A, Place B, Number K) & K =< 9 -> is_near(Place A, Place B)
"""
PARTS = """
given part(Thing, Thing, Number)
aggregate total(Thing A, Thing C, Number K) :=
  K = sum(Number N: part(A, C, N) | part(A, Thing B, Number M) & total(B, C, Number L) & N = M * L)
"""


def loaded(rules: hapax.Library, predicate: str, rows: list[tuple[str, str, int]]) -> hapax.KnowledgeBase:
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, predicate, rows, rules)
    return kb


def by_prolog(rules: hapax.Library, rows: list[tuple[str, str, int]], fact: str, goal: str, folder: Path) -> set[str]:
    """The answers of a goal, as SWI-Prolog writes them when it consults the compiled rules."""
    program, facts = folder / "rules.pl", folder / "facts.pl"
    program.write_text(hapax.compile_rules(rules), "utf-8")
    facts.write_text("".join(f":- assertz(hapax:{fact}({a}, {b}, {n})).\n" for a, b, n in rows), "utf-8")
    show = f"forall((Goal = {goal}, hapax:Goal), (writeq(Goal), nl)), halt"
    command = ["swipl", "-q", "-f", "none", "-g", show, str(program), str(facts)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stderr == ""
    return set(ended.stdout.split())


@pytest.mark.parametrize("seed", range(6))
def test_shortest_paths_are_those_of_dijkstra_and_of_prolog(seed: int, tmp_path: Path) -> None:
    """By goal, by part of the arguments, by derivation, and after a change of facts; on cyclic graphs."""
    draw = random.Random(seed)
    pairs = {(f"p{draw.randrange(9)}", f"p{draw.randrange(9)}") for _ in range(20)}
    roads = [(a, b, draw.choice((0, 1, 2, 5))) for a, b in sorted(pairs) if a != b]
    rules = hapax.parse_rules(SHORTEST)
    with loaded(rules, "road", roads) as kb:
        for edges in (roads, roads[:-3]):
            expected = shortest(edges)
            by_goal = set(hapax.query("d(A, B, K)", rules, kb).rows)
            start = edges[0][0]
            from_one = {(start, *row) for row in hapax.query(f"d({start}, B, K)", rules, kb).rows}
            report = hapax.derive(rules, kb).report
            stored = set(hapax.query("d(A, B, K)", rules, kb).rows)
            near = [row for row in expected if row[2] <= 9]

            assert by_goal == stored == expected
            assert from_one == {row for row in expected if row[0] == start}
            assert report.rules[0].statements == len(near)
            for a, b, k in sorted(expected)[:5]:
                assert f"{k}" in str(hapax.why(f"d({a}, {b}, {k})", rules, kb))
            for a, b, n in roads[-3:] if edges is roads else ():
                hapax.retract(f"road({a}, {b}, {n})", rules, kb, reason="closed")

    assert by_prolog(rules, roads, "road", "d(_, _, _)", tmp_path) == {f"d({a},{b},{k})" for a, b, k in shortest(roads)}


def shortest(roads: list[tuple[str, str, int]]) -> set[tuple[str, str, int]]:
    """The least sums of one road and more."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(roads)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    found: dict[tuple[str, str], int] = {}
    for a, b, n in roads:
        for c, rest in lengths[b].items():
            found[a, c] = min(n + rest, found.get((a, c), n + rest))
    return {(a, c, k) for (a, c), k in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_counted_once_for_each_path(seed: int, tmp_path: Path) -> None:
    """By goal, by derivation and in Prolog; on graphs without a cycle."""
    draw = random.Random(seed)
    pairs = {tuple(sorted(draw.sample(range(8), 2))) for _ in range(14)}
    parts = [(f"t{a}", f"t{b}", draw.choice((1, 2, 2, 3))) for a, b in sorted(pairs)]
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(parts)
    totals: dict[tuple[str, str], int] = {}
    for a in graph:
        for b in graph:
            for path in nx.all_simple_paths(graph, a, b) if a != b else ():
                product = 1
                for step in pairwise(path):
                    product *= graph.edges[step]["weight"]
                totals[a, b] = totals.get((a, b), 0) + product
    expected = {(a, b, n) for (a, b), n in totals.items()}
    rules = hapax.parse_rules(PARTS)
    with loaded(rules, "part", parts) as kb:
        by_goal = set(hapax.query("total(A, B, K)", rules, kb).rows)
        of_one = {("t0", *row) for row in hapax.query("total(t0, B, K)", rules, kb).rows}
        hapax.derive(rules, kb)
        stored = set(hapax.query("total(A, B, K)", rules, kb).rows)

    assert by_goal == stored == expected
    assert of_one == {row for row in expected if row[0] == "t0"}
    assert by_prolog(rules, parts, "part", "total(_, _, _)", tmp_path) == {
        f"total({a},{b},{n})" for a, b, n in expected
    }


@pytest.mark.parametrize("ask", [lambda rules, kb: hapax.query("d(A, B, K)", rules, kb), hapax.derive])
def test_a_value_that_falls_for_ever_ends_with_the_reason(ask: object) -> None:
    """A cycle whose sum is negative has no shortest path; nothing hangs."""
    rules = hapax.parse_rules(SHORTEST)
    with loaded(rules, "road", [("a", "b", 1), ("b", "a", -2)]) as kb, pytest.raises(hapax.HapaxError, match="cycle"):
        ask(rules, kb)  # type: ignore[operator]


def test_a_thing_that_is_a_part_of_itself_is_told() -> None:
    """A sum over a cycle has no value."""
    rules = hapax.parse_rules(PARTS)
    rows = [("a", "b", 1), ("b", "a", 1)]
    with loaded(rules, "part", rows) as kb, pytest.raises(hapax.HapaxError, match="part of itself along a cycle"):
        hapax.query("total(A, B, K)", rules, kb)


def test_quarters_and_negative_steps_without_a_cycle_are_exact() -> None:
    """Values may fall, and need not be whole."""
    rules = hapax.parse_rules(SHORTEST)
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "road", [("a", "b", 3), ("b", "c", -1), ("a", "c", 2.5)], rules)
        found = hapax.query("d(a, c, K)", rules, kb).rows

    assert found == [(2,)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_databases_refuse_what_they_cannot_run(dialect: str) -> None:
    """WITH RECURSIVE has no smallest value of the rows so far."""
    with pytest.raises(hapax.HapaxError, match=r"d/3: it is an aggregate that depends on itself"):
        hapax.compile_rules(hapax.parse_rules(SHORTEST), dialect)
