"""Size, components and paraphrases of stored entailments, in time and memory linear in their number."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hapax.engine.entailment import STRONG
from hapax.engine.entailment.graph import INDICATOR, Edge, stored_edge
from hapax.evaluation.shared.lazy import np, scipy
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.terms import Atom
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class EntailmentSummary:
    """Counts of the stored entailments of at least a score.

    `atoms`: predicates with their types. `components`: the strongly connected ones, in which atoms entail each other;
    `paraphrases`: those of two atoms and more. `largest`: atoms of the largest one, the first ten by name.
    """

    entailments: int
    atoms: int
    components: int
    paraphrases: int
    largest_size: int
    largest: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """All counts."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.entailments:,} entailments between {self.atoms:,} typed predicates\n"
            f"{self.components:,} strongly connected components, {self.paraphrases:,} of them sets of paraphrases"
        )
        more = self.largest_size - len(self.largest)
        if self.largest_size > 1:
            rest = f" and {more:,} more" if more else ""
            text += f"\nthe largest set of paraphrases has {self.largest_size:,}: {', '.join(self.largest)}{rest}"
        return text


@checked
@extras_named()
def summarise_entailments(kb: KnowledgeBase, at_least: float = STRONG) -> EntailmentSummary:
    """Count the stored entailments of at least this score, their strongly connected components, and paraphrases.

    Linear in their number, so that it also fits graphs whose closure does not. Needs the extra `evaluation`.

    Each atom is a vertex, with its arguments in either order a vertex of its own where an entailment swaps them: A
    married to B and B married to A are two statements.
    """
    numbers: dict[str, int] = {}
    starts, ends = array("i"), array("i")
    entailments = 0
    for edge in _edges(kb):
        if edge.score < at_least:
            continue
        entailments += 1
        for premise, hypothesis in _instances(edge):
            starts.append(numbers.setdefault(premise, len(numbers)))
            ends.append(numbers.setdefault(hypothesis, len(numbers)))
    size = len(numbers)
    if not size:
        return EntailmentSummary(0, 0, 0, 0, 0, ())
    cells = np.ones(len(starts), dtype=np.int8), (np.asarray(starts), np.asarray(ends))
    links = scipy.sparse.coo_matrix(cells, (size, size))
    count, labels = scipy.sparse.csgraph.connected_components(links, directed=True, connection="strong")
    sizes = np.bincount(labels, minlength=count)
    largest = int(sizes.argmax())
    members = sorted(text for text, number in numbers.items() if labels[number] == largest)
    atoms = len({text.replace(" B", " A") for text in numbers})
    return EntailmentSummary(
        entailments, atoms, int(count), int((sizes > 1).sum()), int(sizes[largest]), tuple(members[:10])
    )


def _edges(kb: KnowledgeBase) -> Iterator[Edge]:
    """The stored entailments, read in batches."""
    relation = kb.relations.get(INDICATOR)
    for _, fact in kb.relations.records(relation) if relation else ():
        yield stored_edge(fact.arguments)


def _instances(edge: Edge) -> Iterator[tuple[str, str]]:
    """The entailment as it stands, and with its two variables exchanged, where there are two."""
    premise, hypothesis = str(edge.premise), str(edge.hypothesis)
    yield premise, hypothesis
    if {term.name for term in edge.premise.variables} == {"A", "B"}:
        yield _exchanged(edge.premise), _exchanged(edge.hypothesis)


def _exchanged(atom: Atom) -> str:
    arguments = []
    for term in map(str, atom.arguments):
        kind, _, name = term.rpartition(" ")
        arguments.append(f"{kind} {'B' if name == 'A' else 'A'}")
    return f"{atom.predicate}({', '.join(arguments)})"
