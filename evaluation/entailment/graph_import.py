"""Typed entailment graphs imported as facts `entails(P, Q, Score)`, line by line.

Read are the files of entGraph (Hosseini et al. 2018), and those of CNCE (Hosseini et al. 2021) and EGT2 (Chen et al.
2022), which are written for the same evaluation. A node such as `(shop.1,shop.in.2)#person#location` becomes the atom
`shop_in(Person A, Location B)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from hapax.engine.entailment.graph import DECLARATION, ENTAILS
from hapax.evaluation.entailment.graph_files import block_to_read, graph_paths, header_types, numbered_lines
from hapax.evaluation.entailment.wording import predicate_words
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.prolog_text import OWN_NAMES, SYSTEM_NAMES
from hapax.kb.intake import FactFault, FactIntake
from hapax.kb.records import PREDICATES
from hapax.kb.store import KnowledgeBase

# Prefix, and for each argument the words and the number of its slot: `try__(visit.1,visit.2)`.
_RELATION = re.compile(r"([^()]*)\((.+)\.(\d),(.+)\.(\d)\)")

_NOT_IN_NAMES = re.compile(r"\W+")

NODES_REMEMBERED = 200_000
"""Size of the cache of parsed nodes. Nodes beyond it are parsed again, so that memory stays bounded."""


@checked
@dataclass(frozen=True)
class GraphImportOptions:
    """Options of an import of graphs.

    `similarity`: part of the name of the similarities to read, by default the global ones, else BInc's, else the only
    ones. `at_least`: lowest score that is imported. `skip_faulty`: leave faulty lines out instead of refusing all.
    """

    similarity: Annotated[str, Option("Part of the name of the similarities to read.", metavariable="NAME")] = ""
    at_least: Annotated[float, Option("Lowest score that is imported.", least=0, most=1)] = 0.0
    skip_faulty: Annotated[bool, Option("Leave out faulty lines instead of refusing a file.")] = False


@dataclass(frozen=True)
class GraphImport:
    """Result of an import: `added` and `known` entailments, and how many lines were `weak`, `trivial` or faulty.

    `weak`: below the lowest score. `trivial`: a node entails itself.
    """

    files: int
    added: int
    known: int
    weak: int
    trivial: int
    faults: tuple[FactFault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All numbers, with every faulty line."""
        return asdict(self)


class GraphNode(NamedTuple):
    """A predicate of a graph: its name in rules, and the labels of its arguments' types, such as `person_1`."""

    name: str
    labels: tuple[str, str]

    @property
    def premise(self) -> str:
        """The atom over A and B in rule notation."""
        return self._atom("AB")

    def entailed_by(self, premise: GraphNode) -> str:
        """The atom over the premise's variables, matched by type. Raises ValueError for other types."""
        if self.labels == premise.labels:
            return self._atom("AB")
        if self.labels == premise.labels[::-1]:
            return self._atom("BA")
        raise ValueError(f"the types {'#'.join(self.labels)} are not those of the premise, {'#'.join(premise.labels)}")

    def _atom(self, variables: str) -> str:
        arguments = (f"{type_name(label)} {name}" for label, name in zip(self.labels, variables, strict=True))
        return f"{self.name}({', '.join(arguments)})"


@lru_cache(maxsize=NODES_REMEMBERED)
def graph_node(text: str) -> GraphNode:
    """Read a node such as `(shop.1,shop.in.2)#person#location`. Raises ValueError for any other text.

    The argument in the lower slot comes first. If the slots are not 1 and 2, as in a passive, they are in the name.
    """
    relation, first, second = ("", "", "") if text.count("#") < 2 else text.rsplit("#", 2)
    found = _RELATION.fullmatch(relation.strip())
    labels = first.strip(), second.strip()
    if found is None or not all(map(type_name, labels)):
        raise ValueError(f"{text[:80]} is not a predicate such as (shop.1,shop.in.2)#person#location")
    prefix, *slots = found.groups()
    words, place, other_words, other_place = slots
    # Slots are single digits, so they compare as texts.
    if place > other_place:
        words, place, other_words, other_place = other_words, other_place, words, place
        labels = labels[::-1]
    # The usual shape: the second half repeats the first, with a preposition: `shop`, `shop.in`.
    if (place, other_place) == ("1", "2") and f"{other_words}.".startswith(f"{words}."):
        spoken: Sequence[str] = predicate_words(f"{prefix}({words}.1,{other_words}.2)")
    else:
        spoken = (*predicate_words(f"{prefix}({words}.1,{words}.2)"), place, *other_words.split("."), other_place)
    return GraphNode(predicate_name(spoken, text), labels)


def predicate_name(words: Sequence[str], text: str) -> str:
    """The name in rules of a predicate in words, such as `shop_in`. Raises ValueError with `text` if no word fits."""
    name = _NOT_IN_NAMES.sub("_", "_".join(words).casefold()).strip("_")
    if not name:
        raise ValueError(f"{text[:80]} has no word that can be the name of a predicate")
    # A rule cannot define Prolog's `write/2`, and a name begins with a small letter.
    if f"{name}/2" in SYSTEM_NAMES or name.startswith(OWN_NAMES) or not (name[0].islower() and name[0].isascii()):
        return f"does_{name}"
    return name


@lru_cache(maxsize=4096)
def type_name(label: str) -> str:
    """The type of a label in rule notation: `Written Work` for `written_work_1`; empty if it has no letter."""
    plain = re.sub(r"_[12]$", "", label)
    words = [word for word in re.split(r"[\W_]+", plain) if word]
    return " ".join(word[0].upper() + word[1:] for word in words) if words and words[0][0].isalpha() else ""


class _GraphLine(NamedTuple):
    """A line of the chosen similarities. `premise` is the node that the last `predicate:` line names."""

    number: int
    premise: GraphNode | None
    text: str


@checked
def import_entailment_graphs(
    kb: KnowledgeBase, *paths: str | Path, options: GraphImportOptions | None = None
) -> GraphImport:
    """Store the entailments of typed graphs, as entGraph, CNCE and EGT2 write them, as facts `entails(P, Q, Score)`.

    A path is a file, a folder of `.txt` files, or a pattern such as `graphs/*_sim.txt`. Files are streamed, and facts
    wait on disk until all are read, so that a refused import stores nothing. Raises HapaxError for a file without a
    graph, and FactsRejected with every faulty line unless these are to be skipped.
    """
    chosen = options or GraphImportOptions()
    files: dict[Path, None] = {}
    for name in paths:
        files.update(dict.fromkeys(graph_paths(str(name))))
    counts = {"weak": 0, "trivial": 0}
    with FactIntake(kb, "") as intake:
        for path in files:
            intake.file = str(path)
            _read(path, intake, chosen, counts)
        report = intake.store(chosen.skip_faulty)
    kb.add(PREDICATES, [DECLARATION])
    known = report.known + report.promoted
    return GraphImport(len(files), report.added, known, counts["weak"], counts["trivial"], report.faults)


def _read(path: Path, intake: FactIntake, options: GraphImportOptions, counts: dict[str, int]) -> None:
    for line in _lines_of_block(path, options.similarity, intake):
        if line.premise is None:
            continue  # below a `predicate:` line that is a fault already
        try:
            score, hypothesis = _edge(line)
        except ValueError as fault:
            intake.add_fault(line.number, str(fault), "not an entailment")
            continue
        if hypothesis == line.premise.premise:
            counts["trivial"] += 1
        elif score < options.at_least:
            counts["weak"] += 1
        else:
            # Through `repr`: the shortest decimal that is this float, not its binary expansion.
            arguments = [line.premise.premise, hypothesis, Decimal(repr(score))]
            intake.add_fact(line.number, ENTAILS, arguments, list(DECLARATION.argument_types))


def _edge(line: _GraphLine) -> tuple[float, str]:
    """Score and entailed atom of a line `NODE SCORE`. Raises ValueError for any other line."""
    assert line.premise is not None  # noqa: S101  by the caller
    node, _, number = line.text.rpartition(" ")
    try:
        score = float(number)
    except ValueError:
        # Fails the comparison below, so that one message serves all faults of a line.
        score = math.nan
    if not node or not 0 <= score <= 1:
        raise ValueError(f"{line.text[:80]} does not hold a predicate and a score from 0 to 1")
    return score, graph_node(node.strip()).entailed_by(line.premise)


def _lines_of_block(path: Path, similarity: str, intake: FactIntake) -> Iterator[_GraphLine]:
    """The lines of the chosen similarities. Adds a fault for each predicate that cannot be read."""
    # A first pass over the file: which block to read depends on the names of all.
    block = block_to_read(path, similarity, _blocks(path))
    premise: GraphNode | None = None
    inside = False
    for number, line in numbered_lines(path):
        if line.startswith("predicate:"):
            inside = False
            premise = None
            try:
                premise = graph_node(line.removeprefix("predicate:").strip())
            except ValueError as fault:
                intake.add_fault(number, f"{fault}; the lines below it are left out", "not a predicate")
        # A heading such as `global sims`; lines of entailments end in a number.
        elif line.endswith(("sims", "sim")):
            inside = line.casefold() == block
        elif inside:
            yield _GraphLine(number, premise, line)


def _blocks(path: Path) -> list[str]:
    """The names of the similarities in a file. Raises HapaxError for a file that is not a graph."""
    names: dict[str, None] = {}
    predicates = 0
    lines = numbered_lines(path)
    _, header = next(lines, (0, ""))
    for _, line in lines:
        if line.startswith("predicate:"):
            predicates += 1
        elif line.endswith(("sims", "sim")):
            names[line.casefold()] = None
    if header_types(header) is None or not predicates:
        raise HapaxError(
            f"{path}: not an entailment graph. Name a file that begins `types: person#location, num preds: 129` and "
            "has, for each predicate, a line `predicate: (shop.1,shop.in.2)#person#location` and its similarities."
        )
    return list(names)
