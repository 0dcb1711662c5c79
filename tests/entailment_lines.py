"""Lines about entailments, their chains and look-ups, which tests compare with `tests/golden/entailments/`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hapax.engine.entailment.closure import EntailmentGraph
from hapax.engine.entailment.graph import Edge, edges
from hapax.engine.entailment.lookup import StoredEdges, called_names, edges_into, edges_out_of, strongest, strongest_of
from hapax.grammar.rules import Library
from hapax.kb.store import KnowledgeBase

GOAL = r"went_to(X, Y), \+ p(X) ; findall(A, q(A), _)"


def lines_of(kb: KnowledgeBase, library: Library, found: list[Edge]) -> Iterator[str]:
    for edge in found:
        yield f"{edge.name}; {edge.is_trivial}; {edge.rule.sentence}; {edge.fact.id}"
    for least in (0.0, 0.2, 0.5, 0.6, 0.9, 0.95, 1.0):
        yield f"at least {least}: {[edge.name for edge in edges(kb, least)]}"
    lookup = StoredEdges(kb)
    lookup.prepare()
    yield f"{sorted(lookup.names())}, {lookup.count()}"
    for name, least in product(("went_to", "was_at", "killed", "met", "nothing"), (0.0, 0.6, 0.9)):
        into, out_of = lookup.into(name, least), lookup.out_of(name, least)
        yield f"{name}, {least}: {[edge.name for edge in into]}; {[edge.name for edge in out_of]}"
        yield f"  goals {[edge.name for edge in edges_into(kb, library, [name], least)]}"
        yield f"  starts {[edge.name for edge in edges_out_of(kb, [name], least)]}; {strongest(kb, f'{name}/2')}"
    yield f"{[edge.name for edge in strongest_of([*found, *found[::-1]])]}"
    yield str(called_names(GOAL))


def chain_lines(found: list[Edge]) -> Iterator[str]:
    graph = EntailmentGraph(found)
    yield f"{[str(atom) for atom in graph.atoms]}"
    for least in (0.0, 0.5, 0.9):
        for start, chains in graph.chains(graph.atoms, least).items():
            told = [(*map(str, chain.atoms), chain.score, chain.length, chain.scores) for chain in chains]
            yield f"{start}, {least}: {told}"
    yield f"{[[str(atom) for atom in group] for group in graph.paraphrases]}"
    yield f"{sum(map(len, graph.closure.values()))}"
