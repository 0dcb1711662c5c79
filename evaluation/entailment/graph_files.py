"""Typed entailment graphs from files (Hosseini et al. 2018), looked up with type back-off and smoothing.

One graph of a folder is in memory at a time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from evaluation.entailment.pairs import EntailmentPair, Triple, TypedTriple
from evaluation.entailment.scorers import Shown
from evaluation.entailment.wording import predicate_words, surface
from grammar.errors import HapaxError

GLOBAL, LOCAL, BINC = "global", "local", "binc"
PREFERRED = (GLOBAL, BINC)
"""The similarities that are taken where none is asked for: the globally consistent ones, else BInc."""

NEIGHBOURS = 4
"""How many predicates of the graph stand in for one."""

Neighbour = tuple[str, float]
"""The words of a predicate, and how similar it is, from 0 to 1."""

Neighbours = Callable[[str, Collection[str]], Sequence[Neighbour]]
"""Those of a predicate, in words, among the predicates of a graph, in words; the nearest first."""

_TYPES = re.compile(r"(?:types:\s*)?([^\s#,:()]+?)(?:_1)?#([^\s#,:()]+?)(?:_2)?(?:[\s,].*)?")


@dataclass
class TypedGraph:
    """The entailments between the predicates whose arguments have two types.

    `edges`: by premise and hypothesis, each `(shop.1,shop.in.2)#person#location`. Arguments of one type are told apart
    as `person_1` and `person_2`.
    """

    types: tuple[str, str]
    edges: Mapping[str, Mapping[str, float]]
    language: str = "EN"

    @cached_property
    def nodes(self) -> frozenset[str]:
        """Every predicate with its types, also what only is entailed."""
        return frozenset(self.edges).union(*self.edges.values())

    @cached_property
    def by_words(self) -> Mapping[str, tuple[str, ...]]:
        """The predicates as parsed, without types, by their words."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for relation in sorted({node.rpartition("#")[0].rpartition("#")[0] for node in self.nodes}):
            found[surface(predicate_words(relation, self.language), self.language)].append(relation)
        return {words: tuple(relations) for words, relations in found.items()}

    def fits(self, types: tuple[str, str]) -> bool:
        """Whether it is the graph of these types, in either order."""
        return sorted(types) == sorted(self.types)

    def score(self, premise: str, hypothesis: str) -> float | None:
        """Of two nodes: 1 for one and the same, 0 where no edge joins them, None where one is not there."""
        if premise not in self.nodes or hypothesis not in self.nodes:
            return None
        return 1.0 if premise == hypothesis else self.edges.get(premise, {}).get(hypothesis, 0.0)


def graph_paths(name: str) -> list[Path]:
    """A file, the `.txt` files of a folder, or what a pattern such as `graphs/*_gsim.txt` finds."""
    path = Path(name)
    found = sorted(path.glob("*.txt")) if path.is_dir() else sorted(path.parent.glob(path.name)) or [path]
    if not found:
        raise HapaxError(f"{name}: holds no `.txt` file. Name a folder of entailment graphs.")
    return found


def read_graph(path: Path, block: str = "", language: str = "EN") -> TypedGraph:
    """One file: its types, then by predicate blocks such as `local sims` and `global sims`, lines of `PREDICATE SCORE`.

    `block` is in the name of the similarities wanted; without it the global ones are taken, else BInc's, else the only
    ones. Other lines that are no score are passed over, as the released reader does. Raises HapaxError for a file that
    holds no graph, or none of these similarities.
    """
    lines = _lines(path)
    types = _TYPES.fullmatch(next(lines, ""))
    blocks: defaultdict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    predicates: dict[str, dict[str, float]] = {}
    scores: dict[str, float] = {}
    predicate = ""
    for line in lines:
        if line.startswith("predicate:"):
            predicate = line.removeprefix("predicate:").strip()
            scores = predicates.setdefault(predicate, {})
        elif line.endswith(("sims", "sim")):
            scores = blocks[line.casefold()].setdefault(predicate, {})
        elif (found := _scored(line)) is not None:
            scores[found[0]] = found[1]
    if types is None or not predicates:
        raise HapaxError(
            f"{path}: no entailment graph. It begins `types: person#location, num preds: 129`; then, for each "
            "predicate, comes a line `predicate: (shop.1,shop.in.2)#person#location` and its similarities."
        )
    chosen = blocks[_wanted(path, block, list(blocks))]
    return TypedGraph((types[1], types[2]), {**predicates, **chosen}, language)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as stream:
            yield from (stripped for line in stream if (stripped := line.replace("` ", "").strip()))
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name an entailment graph.") from None


def _scored(line: str) -> tuple[str, float] | None:
    predicate, _, score = line.rpartition(" ")
    try:
        return (predicate, float(score)) if "#" in predicate else None
    except ValueError:
        return None


def _wanted(path: Path, block: str, names: Sequence[str]) -> str:
    for part in (block.casefold(),) if block else PREFERRED:
        fitting = [name for name in names if part in name]
        if fitting:
            return min(fitting, key=len)
    if not block and len(names) == 1:
        return names[0]
    raise HapaxError(
        f"{path}: holds {', '.join(names) or 'no similarities'}"
        + (f", and none named {block}" if block else "")
        + ". Name one: graph:PATH@NAME."
    )


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Whose neighbours stand in, so that predicates which no graph holds get a score, too; None: nobody's."""

    premise: Neighbours | None = None
    hypothesis: Neighbours | None = None


@dataclass
class Found:
    """What the graphs say about one hypothesis: in the graph of its types, in all graphs, by neighbours."""

    typed: float = 0.0
    any_type: list[float] = field(default_factory=list)
    smoothed: float = 0.0

    @property
    def score(self) -> float:
        """The typed score, else the mean over the graphs that hold both predicates; a smoothed one that is higher."""
        plain = self.typed or (sum(self.any_type) / len(self.any_type) if self.any_type else 0.0)
        return max(plain, self.smoothed)


@dataclass(frozen=True, slots=True)
class GraphScorer:
    """Looks entailments up in typed graphs.

    Where the graph of the hypothesis' types says nothing, the mean over all graphs counts, zeros included. A predicate
    that a graph does not hold as parsed is looked for by its words. Triples without a parse are found by words alone.
    """

    path: str
    block: str = ""
    smoothing: Smoothing = Smoothing()
    sees: Shown = Shown.BOTH

    @property
    def name(self) -> str:
        return f"graph {Path(self.path).name}" + (f" {self.block}" if self.block else "")

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return self.grouped([[pair] for pair in pairs])

    def grouped(self, groups: Sequence[Sequence[EntailmentPair]]) -> list[float]:
        """One score for each group of pairs with one hypothesis: the best premise counts, in each graph anew."""
        found = [Found() for _ in groups]
        language = next((pair.language for group in groups for pair in group), "EN")
        seen: dict[tuple[str, ...], Path] = {}
        for path in graph_paths(self.path):
            graph = read_graph(path, self.block, language)
            _refuse_twice(graph, path, seen)
            for group, one in zip(groups, found, strict=True):
                self._look_up(graph, group, one)
        return [one.score for one in found]

    def _look_up(self, graph: TypedGraph, group: Sequence[EntailmentPair], found: Found) -> None:
        typed = [(pair, _types(pair.hypothesis)) for pair in group]
        own = [_Sides.of(pair, _told_apart(types)) for pair, types in typed if graph.fits(types)]
        found.typed = max([found.typed, *(one.score(graph) or 0.0 for one in own)])
        found.smoothed = max([found.smoothed, *(one.smoothed(graph, self.smoothing) for one in own)])
        names = _told_apart(graph.types)
        told = (_Sides.of(pair, order).score(graph) for pair in group for order in (names, names[::-1]))
        known = [score for score in told if score is not None]
        if known:
            found.any_type.append(max(known))


def _refuse_twice(graph: TypedGraph, path: Path, seen: dict[tuple[str, ...], Path]) -> None:
    other = seen.setdefault(tuple(sorted(graph.types)), path)
    if other != path:
        raise HapaxError(
            f"{other} and {path} are graphs of the same types. Name those that belong together by a pattern, such as "
            "'graph:graphs/*_gsim.txt'."
        )


@dataclass(frozen=True, slots=True)
class _Sides:
    """Premise and hypothesis of a pair, as a graph of these types may hold them."""

    premise: Triple
    hypothesis: Triple
    premise_types: str
    hypothesis_types: str

    @classmethod
    def of(cls, pair: EntailmentPair, types: tuple[str, str]) -> _Sides:
        first, second = types
        aligned, crosswise = f"#{first}#{second}", f"#{second}#{first}"
        return cls(pair.premise, pair.hypothesis, crosswise if pair.swapped else aligned, aligned)

    def score(self, graph: TypedGraph) -> float | None:
        """As parsed; where that gives nothing, the best of what has the same words."""
        exact = self._best(graph, _relations(self.premise), _relations(self.hypothesis))
        if exact:
            return exact
        by_words = self._best(graph, *(graph.by_words.get(one.predicate.casefold(), ()) for one in self._both))
        return exact if by_words is None else by_words

    def smoothed(self, graph: TypedGraph, smoothing: Smoothing) -> float:
        """The best of what neighbours say, times how similar they are; both sides may be replaced at once."""
        premises = _stand_ins(self.premise, graph, smoothing.premise)
        hypotheses = _stand_ins(self.hypothesis, graph, smoothing.hypothesis)
        own = [(graph.by_words.get(one.predicate.casefold(), _relations(one)), 1.0) for one in self._both]
        ways = [(one, other) for one in (own[0], *premises) for other in (own[1], *hypotheses)][1:]
        scores = ((self._best(graph, one[0], other[0]) or 0.0) * one[1] * other[1] for one, other in ways)
        return max(scores, default=0.0)

    @property
    def _both(self) -> tuple[Triple, Triple]:
        return self.premise, self.hypothesis

    def _best(self, graph: TypedGraph, premises: Iterable[str], hypotheses: Iterable[str]) -> float | None:
        ends = [one + self.hypothesis_types for one in hypotheses]
        told = (graph.score(one + self.premise_types, end) for one in premises for end in ends)
        return max((score for score in told if score is not None), default=None)


def _stand_ins(triple: Triple, graph: TypedGraph, neighbours: Neighbours | None) -> list[tuple[tuple[str, ...], float]]:
    if neighbours is None:
        return []
    return [(graph.by_words[words], near) for words, near in neighbours(triple.predicate.casefold(), graph.by_words)]


def _relations(triple: Triple) -> tuple[str, ...]:
    return (triple.relation,) if isinstance(triple, TypedTriple) else ()


def _told_apart(types: tuple[str, str]) -> tuple[str, str]:
    return (f"{types[0]}_1", f"{types[1]}_2") if types[0] == types[1] else types


def _types(triple: Triple) -> tuple[str, str]:
    return triple.types if isinstance(triple, TypedTriple) else ("", "")


def read_neighbours(path: Path, count: int = NEIGHBOURS) -> Neighbours:
    """Those that a language model found: lines of `predicate TAB neighbour TAB similarity`, in words.

    Raises HapaxError for a line that reads otherwise or a similarity outside 0 to 1.
    """
    near: defaultdict[str, list[Neighbour]] = defaultdict(list)
    for number, line in enumerate(_lines(path), 1):
        parts = line.split("\t")
        try:
            words, neighbour, similarity = parts[0], parts[1], float(parts[2])
        except (IndexError, ValueError):
            similarity = -1.0
        if not 0 <= similarity <= 1 or len(parts) != 3:
            raise HapaxError(
                f"{path}:{number}: write predicate, neighbour and a similarity from 0 to 1, with tabs between."
            )
        near[words.casefold()].append((neighbour.casefold(), similarity))

    def nearest(words: str, among: Collection[str]) -> list[Neighbour]:
        known = (one for one in near.get(words, []) if one[0] in among)
        return sorted(known, key=lambda one: (-one[1], one[0]))[:count]

    return nearest
