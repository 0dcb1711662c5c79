"""Chains of entailments: their closure, look-ups that give the same chains, and remedies that lose no conclusion."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.entailment.checks import EntailmentGraph, entailment_faults
from hapax.engine.entailment.graph import Edge, edges, edges_into, edges_out_of, store_entailments
from hapax.grammar.pair_checks import duplicate_and_subsumed_rules
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Variable
from hapax.kb.store import KnowledgeBase

NODES = [Atom(name, (Variable("A", "T"),)) for name in "pqrst"]


def edge(premise: str, hypothesis: str, score: float = 0.9) -> Edge:
    return Edge.of(premise, hypothesis, score)


def graph(*found: Edge) -> EntailmentGraph:
    return EntailmentGraph(found)


def test_a_chain_is_as_strong_as_the_product_of_its_steps() -> None:
    """Ten steps of .5 are not .5, a long strong way beats a short weak one, and weak chains can be left out."""
    steps = [edge(f"p{number}(T X)", f"p{number + 1}(T X)", 0.5) for number in range(10)]
    start = NODES[0]
    ways = graph(edge("p(T X)", "t(T X)", 0.6), edge("p(T X)", "q(T X)", 0.9), edge("q(T X)", "t(T X)", 0.9))

    (chain,) = (chain for chain in graph(*steps).closure[steps[0].premise] if chain.end == steps[-1].hypothesis)
    assert chain.score == pytest.approx(0.5**10)
    (strong,) = (chain for chain in ways.chains([start])[start] if chain.end.predicate == "t")
    assert (strong.length, strong.score) == (3, pytest.approx(0.81))
    assert [chain.end.predicate for chain in ways.chains([start], 0.85)[start]] == ["q"]


def test_a_premise_with_a_repeated_variable_needs_equal_terms() -> None:
    """Who admires oneself is vain; who admires someone need not be."""
    entailments = graph(
        edge("adores(P X, P Y)", "admires(P X, P Y)"),
        edge("is_narcissist(P X)", "admires(P X, P X)"),
        edge("admires(P X, P X)", "is_vain(P X)"),
    )
    ends = {start.predicate: [str(chain.end) for chain in chains] for start, chains in entailments.closure.items()}

    assert ends["adores"] == ["admires(P A, P B)"]
    assert ends["is_narcissist"] == ["admires(P A, P A)", "is_vain(P A)"]


@settings(deadline=None, max_examples=cases(12))
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_closure_is_transitive(arrows: set[tuple[int, int]]) -> None:
    """The closure reaches what a plain walk reaches, and every chain goes by stored entailments."""
    found = [Edge(NODES[start], NODES[end], 0.9) for start, end in arrows if start != end]
    direct = {(edge.premise, edge.hypothesis) for edge in found}
    reached = set(direct)
    for middle in NODES:
        reached |= {(a, d) for a, b in reached for c, d in reached if b == c == middle}
    chains = EntailmentGraph(found).chains(NODES)

    assert {(start, chain.end) for start, some in chains.items() for chain in some} == {
        (start, end) for start, end in reached if start != end
    }
    for some in chains.values():
        assert all(set(zip(chain.atoms, chain.atoms[1:], strict=False)) <= direct for chain in some)


def random_edges(seed: int) -> list[Edge]:
    """Random entailments between ten predicates, with arguments in either order."""
    draw = random.Random(seed)
    found = []
    for _ in range(draw.randint(1, 30)):
        first, second = draw.sample(range(10), 2)
        order = draw.choice(("Person A, Person B", "Person B, Person A"))
        found.append(Edge.of(f"p{first}(Person A, Person B)", f"p{second}({order})", draw.randint(1, 100) / 100))
    return found


@settings(max_examples=cases(20), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.2, 0.5]))
def test_looked_up_chains_are_those_of_the_whole_graph(seed: int, at_least: float) -> None:
    """Chains over the entailments that a predicate looks up, before or after it, are those over all entailments."""
    with KnowledgeBase() as kb:
        store_entailments(kb, random_edges(seed))
        whole, ahead = EntailmentGraph(edges(kb, 0.0)), EntailmentGraph(edges_out_of(kb, ["p0"], at_least))
        behind = EntailmentGraph(edges_into(kb, Library(), ["p0"], at_least))

    def chains(graph: EntailmentGraph, start: str, end: str) -> set[tuple[str, float]]:
        found = set()
        for atom, reached in graph.chains(graph.atoms, at_least).items():
            for chain in reached:
                if start in atom.predicate and end in chain.end.predicate:
                    found.add((f"{atom} {chain.end}", round(chain.score, 9)))
        return found

    assert chains(ahead, "p0", "p") == chains(whole, "p0", "p")
    assert chains(behind, "p", "p0") == chains(whole, "p", "p0")


NAMES = "pqrst"


@st.composite
def rules_and_edges(draw: st.DrawFn) -> tuple[list[tuple[frozenset[str], str]], list[tuple[str, str]]]:
    """Rules and entailments over predicates of one argument: premises with a conclusion, and pairs."""
    name = st.sampled_from(NAMES)
    rules = draw(st.lists(st.tuples(st.frozensets(name, min_size=1, max_size=3), name), min_size=1, max_size=6))
    pairs = draw(st.lists(st.tuples(name, name), max_size=4))
    return [(premise, head) for premise, head in rules if head not in premise], [
        pair for pair in pairs if len(set(pair)) == 2
    ]


def closure(known: Iterable[str], rules: Sequence[tuple[frozenset[str], str]]) -> set[str]:
    found, size = set(known), -1
    while len(found) > size:
        size = len(found)
        found.update(head for premise, head in rules if premise <= found)
    return found


@given(rules_and_edges())
def test_obeying_all_remedies_loses_no_conclusion(
    generated: tuple[list[tuple[frozenset[str], str]], list[tuple[str, str]]],
) -> None:
    """Whatever rules are named for removal, by rules alone or by entailments, the others conclude the same without them."""
    rules, pairs = generated
    lines = [
        f"@name r{number}\n{' & '.join(f'{name}(Thing X)' for name in sorted(premise))} -> {head}(Thing X)\n"
        for number, (premise, head) in enumerate(rules)
    ]
    library = parse_library([("random.rules", "".join(lines))])
    found = [edge(f"{first}(Thing X)", f"{second}(Thing X)", 0.9) for first, second in pairs]
    faults = [*duplicate_and_subsumed_rules(library), *entailment_faults(library, found)]
    # A remedy may offer a choice; the first is to remove.
    removed = {int(number) for fault in faults for number in re.findall(r"^Remove rule r(\d+)", fault.remedy)}
    stronger = [(frozenset({first}), second) for first, second in pairs]
    kept = [rule for number, rule in enumerate(rules) if number not in removed]

    for size in range(len(NAMES) + 1):
        for known in combinations(NAMES, size):
            assert closure(known, [*kept, *stronger]) == closure(known, [*rules, *stronger])


@pytest.mark.parametrize("negation", ["", "not "])
def test_a_negated_premise_entails_nothing(negation: str) -> None:
    """Only a literal that holds is compared with the conclusion, and makes other premises superfluous."""
    premise = f"lives_in(Person X, City C) & {negation}works(Person X)"
    reversed_rule = parse_library([("r.rules", f"{premise} -> is_a_nurse(Person X)\n")])
    implied = parse_library(
        [("r.rules", f"is_a_nurse(Person X) -> hurries(Person X)\n{premise} -> hurries(Person X)\n")]
    )
    nurse_works, works_nurse = edge("is_a_nurse(P X)", "works(P X)"), edge("works(P X)", "is_a_nurse(P X)")
    told = [entailment_faults(reversed_rule, [nurse_works]), entailment_faults(implied, [works_nurse])]

    expected: list[list[str]] = [[], []] if negation else [["HPX413"], ["HPX414"]]
    assert [[fault.code for fault in faults] for faults in told] == expected
