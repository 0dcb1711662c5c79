"""An entailment graph to look at: as text, for Mermaid and Graphviz, and plotted with the general above the special."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from engine.entailment import EntailmentGraph
from evaluation.drawing import COLOURS, single, write_figure
from grammar.terms import Atom


def lines(graph: EntailmentGraph) -> Iterator[str]:
    """Each predicate with all that it entails by its shortest chain, then the sets of paraphrases."""
    if not graph.edges:
        yield "No entailment of this score is stored. `hapax evaluate entailment facts` stores some."
        return
    for atom, chains in graph.closure.items():
        yield from (str(chain) for chain in chains)
        if not chains:
            yield f"{atom} entails nothing"
    for same in graph.paraphrases:
        yield f"paraphrases: {', '.join(map(str, same))}"


def to_json(graph: EntailmentGraph) -> dict[str, Any]:
    """Edges, the closure with its chains, and paraphrases."""
    return {
        "edges": [
            {"premise": str(one.premise), "hypothesis": str(one.hypothesis), "score": one.score} for one in graph.edges
        ],
        "closure": {
            str(atom): {str(chain.end): [str(step) for step in chain.atoms] for chain in chains}
            for atom, chains in graph.closure.items()
        },
        "paraphrases": [[str(atom) for atom in same] for same in graph.paraphrases],
    }


def drawing_text(graph: EntailmentGraph, form: str) -> str:
    """The stored entailments for `mermaid` or `dot`, an arrow from premise to hypothesis with its score."""
    names = {atom.indicator: f"n{number}" for number, atom in enumerate(graph.atoms)}
    if form == "mermaid":
        nodes = [f'  {names[atom.indicator]}["{_escaped(str(atom))}"]' for atom in graph.atoms]
        arrows = [
            f'  {names[one.premise.indicator]} -->|"{_arrow(one.hypothesis, one.score)}"| '
            f"{names[one.hypothesis.indicator]}"
            for one in graph.edges
        ]
        return "\n".join(["graph BT", *nodes, *arrows])
    nodes = [f'  {names[atom.indicator]} [label="{_escaped(str(atom))}"];' for atom in graph.atoms]
    arrows = [
        f"  {names[one.premise.indicator]} -> {names[one.hypothesis.indicator]} "
        f'[label="{_arrow(one.hypothesis, one.score)}"];'
        for one in graph.edges
    ]
    return "\n".join(["digraph entailments {", "  rankdir=BT;", *nodes, *arrows, "}"])


def _arrow(hypothesis: Atom, score: float) -> str:
    """The score, and the order of the arguments where it is not A, B, ..."""
    order = "".join(str(term).rpartition(" ")[2] for term in hypothesis.arguments)
    return f"{score:.2f}" if order == "".join(sorted(order)) else f"{score:.2f}, {order}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")


def write_plot(graph: EntailmentGraph, folder: Path) -> tuple[Path, ...]:
    """`entailments.png`, `.svg` and `.csv`; the CSV has the edges."""
    rows: list[tuple[object, ...]] = [(str(one.premise), str(one.hypothesis), one.score) for one in graph.edges]
    levels = _levels(graph)
    height = max(2.0, 0.9 * (1 + max((level for level, _ in levels.values()), default=0)))
    width = max(4.0, 1.7 * (1 + max((place for _, place in levels.values()), default=0)))
    draw = single((width, height), partial(_draw, graph, levels))
    return write_figure(folder / "entailments", draw, (("premise", "hypothesis", "score"), list(rows)))


def _levels(graph: EntailmentGraph) -> Mapping[str, tuple[int, int]]:
    """Where each predicate stands: how many others it is reached from, made dense, and its place in that row."""
    ends = [chain.end.indicator for chains in graph.closure.values() for chain in chains]
    reached = {atom.indicator: ends.count(atom.indicator) for atom in graph.atoms}
    ranks = {count: rank for rank, count in enumerate(sorted(set(reached.values())))}
    found: dict[str, tuple[int, int]] = {}
    for name, count in reached.items():
        place = sum(level == ranks[count] for level, _ in found.values())
        found[name] = (ranks[count], place)
    return found


def _draw(graph: EntailmentGraph, levels: Mapping[str, tuple[int, int]], axes: Any) -> None:
    boxes = {
        name: axes.text(
            place,
            level,
            name.rpartition("/")[0].replace("_", " "),
            ha="center",
            va="center",
            bbox={"boxstyle": "round", "fc": "white", "ec": "0.7"},
        ).get_bbox_patch()
        for name, (level, place) in levels.items()
    }
    for one in graph.edges:
        start, end = one.premise.indicator, one.hypothesis.indicator
        style = {
            "arrowstyle": "-|>",
            "color": COLOURS[0],
            "alpha": max(0.15, one.score),
            "patchA": boxes[start],
            "patchB": boxes[end],
            "connectionstyle": "arc3,rad=0.12",
        }
        axes.annotate("", levels[end][::-1], levels[start][::-1], arrowprops=style)
    axes.set_xlim(-0.7, max((place for _, place in levels.values()), default=0) + 0.7)
    axes.set_ylim(-0.5, max((level for level, _ in levels.values()), default=0) + 0.5)
    axes.set_axis_off()
