"""Entailment graphs printed and drawn: text, Mermaid, DOT, and a plot with general predicates above specific ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hapax.engine.entailment import STRONG
from hapax.engine.entailment.checks import Chain, EntailmentGraph
from hapax.engine.entailment.graph import StoredEdges, edges, edges_out_of
from hapax.evaluation.shared.drawing import COLOURS, single, write_figure
from hapax.evaluation.shared.results import ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.terms import Atom
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class EntailmentChains:
    """The stored entailments and what follows from them. `of`: the predicate from which chains begin; empty: all."""

    graph: EntailmentGraph
    of: str = ""
    at_least: float = 0.0

    @property
    def text(self) -> str:
        """The strongest chain from each predicate to each one that it entails, then the sets of paraphrases."""
        return "\n".join(_chain_lines(self.graph, self.of, self.at_least) if self.of else _lines(self.graph))

    def to_json(self) -> dict[str, Any]:
        """Edges, chains and paraphrases as a JSON object; with `of` the chains alone."""
        return _chains_json(self.graph, self.of, self.at_least) if self.of else _to_json(self.graph)

    def drawing(self, form: str) -> str:
        """The graph in the language of Mermaid or Graphviz, each entailment an arrow with its score.

        `form` is `mermaid` or `dot`.
        """
        names = {atom.indicator: f"n{number}" for number, atom in enumerate(self.graph.atoms)}
        # A double quote ends a label in Mermaid, even after a backslash; DOT reads backslashes as escapes.
        texts = {names[atom.indicator]: str(atom).replace("\\", "\\\\").replace('"', "'") for atom in self.graph.atoms}
        arrows = []
        for edge in self.graph.edges:
            label = _arrow(edge.hypothesis, edge.score)
            arrows.append((names[edge.premise.indicator], names[edge.hypothesis.indicator], label))
        if form == "mermaid":
            lines = [f'  {name}["{text}"]' for name, text in texts.items()]
            lines += [f'  {start} -->|"{label}"| {end}' for start, end, label in arrows]
            # Bottom to top: what is entailed, and so more general, stands above.
            return "\n".join(["graph BT", *lines])
        lines = [f'  {name} [label="{text}"];' for name, text in texts.items()]
        lines += [f'  {start} -> {end} [label="{label}"];' for start, end, label in arrows]
        return "\n".join(["digraph entailments {", "  rankdir=BT;", *lines, "}"])

    @extras_named()
    def write_plot(self, folder: str | Path) -> tuple[Path, ...]:
        """Write `entailments.png`, `entailments.svg` and `entailments.csv` (the edges), and return their paths."""
        rows = [(str(edge.premise), str(edge.hypothesis), edge.score) for edge in self.graph.edges]
        levels = _levels(self.graph)
        # In inches: 0.9 for a level, 1.7 for a predicate on it.
        height = max(2.0, 0.9 * (1 + max((level for level, _ in levels.values()), default=0)))
        width = max(4.0, 1.7 * (1 + max((place for _, place in levels.values()), default=0)))
        draw = single((width, height), partial(_draw, self.graph, levels))
        table = ResultTable("", ("premise", "hypothesis", "score"), rows)
        return write_figure(Path(folder) / "entailments", draw, table)


MOST_CLOSED = 20_000
"""Entailments whose whole closure is computed; that of a larger graph would not fit on any screen, nor in memory."""


@checked
def entailment_chains(kb: KnowledgeBase, at_least: float = STRONG, of: str = "") -> EntailmentChains:
    """The transitive closure of the stored entailments with at least this score, and its paraphrases.

    `of`: the name of a predicate; only the chains from it, whose scores have at least this product. They are looked up.
    Raises HapaxError for more than 20,000 entailments without it, and for a predicate that entails nothing.
    """
    if of:
        found = edges_out_of(kb, [of], at_least)
        if not found:
            raise HapaxError(f"{kb.place} has no entailment of {of} with a score of {at_least:g} or more. Lower it.")
        return EntailmentChains(EntailmentGraph(found), of, at_least)
    if (count := StoredEdges(kb).count()) > MOST_CLOSED:
        raise HapaxError(
            f"{kb.place} has {count:,} entailments, too many for all their chains.",
            Remedy("Name a predicate with {}, or count them with {}.", Setting("predicate"), Setting("summary")),
        )
    return EntailmentChains(EntailmentGraph(edges(kb, at_least)))


def _lines(graph: EntailmentGraph) -> Iterator[str]:
    """Lines of text: the strongest chain from each predicate to each one it entails, then the sets of paraphrases."""
    if not graph.edges:
        yield f"No stored entailment has this score. Store some with {Operation('store_entailments')}."
        return
    for atom, chains in graph.closure.items():
        yield from (f"{chain} ({chain.score:.2f})" for chain in chains)
        if not chains:
            yield f"{atom} entails nothing"
    for same in graph.paraphrases:
        yield f"paraphrases: {', '.join(map(str, same))}"


def _chain_lines(graph: EntailmentGraph, of: str, at_least: float) -> Iterator[str]:
    """Lines of text: the strongest chain from the predicate to each one that it entails, the strongest chain first."""
    for chain in _chains_of(graph, of, at_least):
        yield f"{chain} ({' x '.join(f'{score:.2f}' for score in chain.scores)} = {chain.score:.4g})"


def _chains_json(graph: EntailmentGraph, of: str, at_least: float) -> dict[str, Any]:
    """The chains from the predicate, each with its atoms, the scores of its steps, and their product."""
    chains = []
    for chain in _chains_of(graph, of, at_least):
        chains.append({"atoms": list(map(str, chain.atoms)), "scores": list(chain.scores), "score": chain.score})
    return {"of": of, "chains": chains}


def _chains_of(graph: EntailmentGraph, of: str, at_least: float) -> list[Chain]:
    chains: list[Chain] = []
    for found in graph.chains([atom for atom in graph.atoms if atom.predicate == of], at_least).values():
        chains.extend(found)
    # Ties are broken by length and text, so that the order does not depend on that of the edges.
    return sorted(chains, key=lambda chain: (-chain.score, chain.length, str(chain)))


def _to_json(graph: EntailmentGraph) -> dict[str, Any]:
    """The edges, the closure with its chains and their scores, and the paraphrases."""
    closure: dict[str, dict[str, list[str]]] = {}
    scores: dict[str, dict[str, float]] = {}
    for atom, chains in graph.closure.items():
        closure[str(atom)] = {str(chain.end): list(map(str, chain.atoms)) for chain in chains}
        scores[str(atom)] = {str(chain.end): chain.score for chain in chains}
    return {
        "edges": [
            {"premise": str(edge.premise), "hypothesis": str(edge.hypothesis), "score": edge.score}
            for edge in graph.edges
        ],
        "closure": closure,
        "scores": scores,
        "paraphrases": [list(map(str, same)) for same in graph.paraphrases],
    }


def _arrow(hypothesis: Atom, score: float) -> str:
    """The label of an arrow: the score, and the order of the arguments unless it is A, B, ..."""
    order = "".join(str(term).rpartition(" ")[2] for term in hypothesis.arguments)
    return f"{score:.2f}" if order == "".join(sorted(order)) else f"{score:.2f}, {order}"


def _levels(graph: EntailmentGraph) -> Mapping[str, tuple[int, int]]:
    """Level and place within the level of each predicate. The more predicates entail it, the higher its level."""
    entailed_by: Counter[str] = Counter()
    for chains in graph.closure.values():
        entailed_by.update(chain.end.indicator for chain in chains)
    counts = {atom.indicator: entailed_by[atom.indicator] for atom in graph.atoms}
    # Ranks instead of counts, so that no level of the plot is empty.
    ranks = {count: rank for rank, count in enumerate(sorted(set(counts.values())))}
    sizes: Counter[int] = Counter()
    levels: dict[str, tuple[int, int]] = {}
    for name, count in counts.items():
        level = ranks[count]
        levels[name] = (level, sizes[level])
        sizes[level] += 1
    return levels


def _draw(graph: EntailmentGraph, levels: Mapping[str, tuple[int, int]], axes: Any) -> None:
    boxes = {}
    for name, (level, place) in levels.items():
        words = name.rpartition("/")[0].replace("_", " ")
        frame = {"boxstyle": "round", "fc": "white", "ec": "0.7"}
        boxes[name] = axes.text(place, level, words, ha="center", va="center", bbox=frame).get_bbox_patch()
    for edge in graph.edges:
        start, end = edge.premise.indicator, edge.hypothesis.indicator
        style = {
            "arrowstyle": "-|>",
            "color": COLOURS[0],
            "alpha": max(0.15, edge.score),  # a weak entailment is pale, but never invisible
            "patchA": boxes[start],
            "patchB": boxes[end],
            # Curved, so that the two arrows between paraphrases do not cover each other.
            "connectionstyle": "arc3,rad=0.12",
        }
        # A plot wants x before y: the place within the level, then the level.
        axes.annotate("", levels[end][::-1], levels[start][::-1], arrowprops=style)
    axes.set_xlim(-0.7, max((place for _, place in levels.values()), default=0) + 0.7)
    axes.set_ylim(-0.5, max((level for level, _ in levels.values()), default=0) + 0.5)
    axes.set_axis_off()
