"""Print and draw an entailment graph: text, Mermaid, DOT, and a plot with general predicates above specific ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hapax.engine.entailment.closure import Chain, EntailmentGraph
from hapax.evaluation.shared.drawing import COLOURS, single, write_figure
from hapax.evaluation.shared.results import ResultTable
from hapax.grammar.remedies import Operation
from hapax.grammar.terms import Atom


def lines(graph: EntailmentGraph) -> Iterator[str]:
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


def chain_lines(graph: EntailmentGraph, of: str, at_least: float) -> Iterator[str]:
    """Lines of text: the strongest chain from the predicate to each one that it entails, the strongest chain first."""
    for chain in _chains_of(graph, of, at_least):
        yield f"{chain} ({' x '.join(f'{score:.2f}' for score in chain.scores)} = {chain.score:.4g})"


def chains_json(graph: EntailmentGraph, of: str, at_least: float) -> dict[str, Any]:
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


def to_json(graph: EntailmentGraph) -> dict[str, Any]:
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


def drawing_text(graph: EntailmentGraph, form: str) -> str:
    """The stored entailments in Mermaid or DOT (`form`), each an arrow from premise to hypothesis with its score."""
    names = {atom.indicator: f"n{number}" for number, atom in enumerate(graph.atoms)}
    # A double quote ends a label in Mermaid, even after a backslash; DOT reads backslashes as escapes.
    texts = {names[atom.indicator]: str(atom).replace("\\", "\\\\").replace('"', "'") for atom in graph.atoms}
    arrows = []
    for edge in graph.edges:
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


def _arrow(hypothesis: Atom, score: float) -> str:
    """The label of an arrow: the score, and the order of the arguments unless it is A, B, ..."""
    order = "".join(str(term).rpartition(" ")[2] for term in hypothesis.arguments)
    return f"{score:.2f}" if order == "".join(sorted(order)) else f"{score:.2f}, {order}"


def write_plot(graph: EntailmentGraph, folder: Path) -> tuple[Path, ...]:
    """Write `entailments.png`, `entailments.svg` and `entailments.csv` (the edges), and return their paths."""
    rows: list[tuple[object, ...]] = [(str(edge.premise), str(edge.hypothesis), edge.score) for edge in graph.edges]
    levels = _levels(graph)
    # In inches: 0.9 for a level, 1.7 for a predicate on it.
    height = max(2.0, 0.9 * (1 + max((level for level, _ in levels.values()), default=0)))
    width = max(4.0, 1.7 * (1 + max((place for _, place in levels.values()), default=0)))
    draw = single((width, height), partial(_draw, graph, levels))
    return write_figure(folder / "entailments", draw, ResultTable("", ("premise", "hypothesis", "score"), list(rows)))


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
