"""Entailment graphs in published files and WordNet: look-ups, with stand-ins for predicates that a graph lacks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

from hapax.evaluation.entailment.pairs import (
    UNPARSED,
    EntailmentPair,
    Triple,
    TypedTriple,
    VisibleSides,
    predicate_words,
    surface,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of

if TYPE_CHECKING:
    import wn

PREFERRED = ("global", "binc")
"""The similarities used by default: the globally consistent ones, else BInc."""

NEIGHBOURS = 4
"""Default number of predicates of a graph that stand in for one that it lacks."""

Neighbour = tuple[str, float]
"""A predicate in words, and its similarity from 0 to 1."""

Neighbours = Callable[[str, Collection[str]], Sequence[Neighbour]]
"""Maps a predicate and the predicates of a graph, all in words, to its neighbours in the graph, the nearest first."""

# `types: person#location, num preds: 129`; the suffixes _1 and _2 of equal types are dropped.
_TYPES = re.compile(r"(?:types:\s*)?([^\s#,:()]+?)(?:_1)?#([^\s#,:()]+?)(?:_2)?(?:[\s,].*)?")

# --- files ------------------------------------------------------------------------------------------------------------


@dataclass
class TypedGraph:
    """The entailments between predicates whose arguments have two given types.

    `edges` maps premise to hypothesis to score; a node reads `(shop.1,shop.in.2)#person#location`. If both arguments
    have the same type, they are distinguished as `person_1` and `person_2`.
    """

    types: tuple[str, str]
    edges: Mapping[str, Mapping[str, float]]
    language: str = "EN"

    @cached_property
    def nodes(self) -> frozenset[str]:
        """All predicates with their types, including those that are only entailed."""
        return frozenset(self.edges).union(*self.edges.values())

    @cached_property
    def by_words(self) -> Mapping[str, tuple[str, ...]]:
        """The predicates as parsed, without types, by their words."""
        by_words: defaultdict[str, list[str]] = defaultdict(list)
        # A node without its last two parts, the types: `(shop.1,shop.in.2)#person#location`.
        for relation in sorted({node.rpartition("#")[0].rpartition("#")[0] for node in self.nodes}):
            by_words[surface(predicate_words(relation, self.language), self.language)].append(relation)
        return {words: tuple(relations) for words, relations in by_words.items()}

    def fits(self, types: tuple[str, str]) -> bool:
        """True if this is the graph of these types, in either order."""
        return sorted(types) == sorted(self.types)

    def score(self, premise: str, hypothesis: str) -> float | None:
        """The score of an edge; 1 from a node to itself, 0 without an edge, None if either node is missing."""
        if premise not in self.nodes or hypothesis not in self.nodes:
            return None
        return 1.0 if premise == hypothesis else self.edges.get(premise, {}).get(hypothesis, 0.0)


def graph_paths(name: str) -> list[Path]:
    """The file itself, the `.txt` files of a folder, or the files that match a pattern such as `graphs/*_gsim.txt`."""
    path = Path(name)
    paths = sorted(path.glob("*.txt")) if path.is_dir() else sorted(path.parent.glob(path.name)) or [path]
    if not paths:
        raise HapaxError(f"{name}: this folder contains no `.txt` file. Name a folder of entailment graphs.")
    return paths


def read_graph(path: Path, block: str = "", language: str = "EN") -> TypedGraph:
    """Read a file: its types, then blocks such as `local sims` and `global sims` of each predicate, in lines of
    `PREDICATE SCORE`.

    `block` is part of the name of the similarities to read; by default the global ones, else BInc's, else the only
    ones. Raises HapaxError for a file without a graph or without these similarities.
    """
    lines = _numbered_lines(path)
    types = _TYPES.fullmatch(next(lines, (0, ""))[1])
    blocks: defaultdict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    predicate, name = "", ""
    for _, line in lines if types else ():
        entailed, _, score = line.rpartition(" ")
        if line.startswith("predicate:"):
            predicate, name = line.removeprefix("predicate:").strip(), ""
        # A heading such as `global sims`; lines of entailments end in a number.
        elif line.endswith(("sims", "sim")):
            name = line.casefold()
        scores = blocks[name].setdefault(predicate, {})
        with suppress(ValueError):  # the released reader, too, skips any other line
            if "#" in entailed and not line.startswith("predicate:"):
                scores[entailed] = float(score)
    if types is None or not predicate:
        raise HapaxError(
            f"{path}: not an entailment graph. Name a file that begins `types: person#location, num preds: 129` and "
            "has, for each predicate, a line `predicate: (shop.1,shop.in.2)#person#location` and its similarities."
        )
    # Predicates without the block stay as nodes, with the scores that stand directly below their names.
    predicates = blocks.pop("", {})
    chosen = blocks[_block_to_read(path, block, list(blocks))]
    return TypedGraph((types[1], types[2]), {**predicates, **chosen}, language)


def _numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not empty, with their numbers. Raises HapaxError for a file that cannot be read."""
    try:
        with path.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if stripped := line.replace("` ", "").strip():
                    yield number, stripped
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name an entailment graph.") from None


def _block_to_read(path: Path, block: str, names: Sequence[str]) -> str:
    """The name of the similarities that `block` is part of, or the preferred ones. Raises HapaxError without any."""
    for part in (block.casefold(),) if block else PREFERRED:
        fitting = [name for name in names if part in name]
        if fitting:
            # The name nearest to the part: `global sims` before a longer name that contains it.
            return min(fitting, key=len)
    if not block and len(names) == 1:
        return names[0]
    raise HapaxError(
        f"{path}: the file contains {', '.join(names) or 'no similarities'}"
        + (f", but none named {block}" if block else "")
        + ". Name one: graph:PATH@NAME."
    )


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Neighbours that replace a premise or a hypothesis missing from a graph; None: no replacement on that side."""

    premise: Neighbours | None = None
    hypothesis: Neighbours | None = None


@dataclass(frozen=True, slots=True)
class GraphScorer:
    """Looks up entailments in typed graphs.

    If the graph of the hypothesis' types has no score, the mean over all graphs counts, zeros included. A predicate
    that a graph does not contain as parsed, or that has no parse, is looked up by its words.
    """

    path: str
    block: str = ""
    smoothing: Smoothing = Smoothing()
    sees: VisibleSides = VisibleSides.BOTH

    @property
    def name(self) -> str:
        return f"graph {Path(self.path).name}" + (f" {self.block}" if self.block else "")

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return self.grouped([[pair] for pair in pairs])

    def grouped(self, groups: Sequence[Sequence[EntailmentPair]]) -> list[float]:
        """One score for each group of pairs that share a hypothesis; in each graph the best premise counts."""
        findings = [_GraphEvidence(self.smoothing) for _ in groups]
        language = next((pair.language for pair in chain.from_iterable(groups)), "EN")
        paths: dict[tuple[str, ...], Path] = {}
        for path in graph_paths(self.path):  # graph by graph, because all of them may not fit in memory
            graph = read_graph(path, self.block, language)
            earlier = paths.setdefault(tuple(sorted(graph.types)), path)
            if earlier != path:
                raise HapaxError(
                    f"{earlier} and {path} are graphs of the same types. Select the graphs that belong together with a "
                    "pattern, such as 'graph:graphs/*_gsim.txt'."
                )
            for group, evidence in zip(groups, findings, strict=True):
                evidence.add(graph, group)
        return [evidence.score for evidence in findings]


@dataclass
class _GraphEvidence:
    """The scores of one hypothesis, collected graph by graph.

    `typed`: from the graph of its types; `smoothed`: by way of neighbours there; `any_type`: one for each graph that
    contains both predicates, zeros included.
    """

    smoothing: Smoothing
    typed: float = 0.0
    smoothed: float = 0.0
    any_type: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The typed score, else the mean over all graphs with both predicates, or the smoothed score if higher."""
        plain = self.typed or (sum(self.any_type) / len(self.any_type) if self.any_type else 0.0)
        return max(plain, self.smoothed)

    def add(self, graph: TypedGraph, group: Iterable[EntailmentPair]) -> None:
        """Look up the pairs of a hypothesis in a graph."""
        names = _numbered(graph.types)
        scores: list[float] = []
        for pair in group:
            if UNPARSED in (pair.premise, pair.hypothesis):
                continue  # scores 0
            types = pair.hypothesis.types if isinstance(pair.hypothesis, TypedTriple) else ("", "")
            if graph.fits(types):
                self.typed = max(self.typed, _score(graph, pair, _numbered(types)) or 0.0)
                self.smoothed = max(self.smoothed, _smoothed(graph, pair, _numbered(types), self.smoothing))
            # The pair's own types do not count here, so both orders of the graph's types are tried.
            found = (_score(graph, pair, order) for order in (names, names[::-1]))
            scores += [score for score in found if score is not None]
        if scores:
            # One score for each graph, that of the best premise.
            self.any_type.append(max(scores))


def _score(graph: TypedGraph, pair: EntailmentPair, types: tuple[str, str]) -> float | None:
    """The score of the predicates as parsed, else the best among predicates with the same words.

    `types`: those that the nodes of the hypothesis have in the graph.
    """
    exact = _best(graph, pair, types, _relations(pair.premise), _relations(pair.hypothesis))
    if exact:  # neither None nor 0: an edge was found
        return exact
    premises, hypotheses = (
        graph.by_words.get(side.predicate.casefold(), ()) for side in (pair.premise, pair.hypothesis)
    )
    by_words = _best(graph, pair, types, premises, hypotheses)
    return exact if by_words is None else by_words


def _smoothed(graph: TypedGraph, pair: EntailmentPair, types: tuple[str, str], smoothing: Smoothing) -> float:
    """The best score times similarity by way of neighbours; both sides may be replaced at once."""
    premises = _with_stand_ins(pair.premise, graph, smoothing.premise)
    hypotheses = _with_stand_ins(pair.hypothesis, graph, smoothing.hypothesis)
    ways = list(product(premises, hypotheses))[1:]  # the first replaces neither side
    best = 0.0
    for (starts, premise_similarity), (ends, hypothesis_similarity) in ways:
        score = _best(graph, pair, types, starts, ends) or 0.0
        best = max(best, score * premise_similarity * hypothesis_similarity)
    return best


def _best(
    graph: TypedGraph, pair: EntailmentPair, types: tuple[str, str], premises: Iterable[str], hypotheses: Iterable[str]
) -> float | None:
    first, second = types
    # A premise that names the hypothesis' arguments in the other order has its types in the other order, too.
    aligned, crosswise = f"#{first}#{second}", f"#{second}#{first}"
    starts = [relation + (crosswise if pair.swapped else aligned) for relation in premises]
    ends = [relation + aligned for relation in hypotheses]
    scores = (graph.score(start, end) for start, end in product(starts, ends))
    return max((score for score in scores if score is not None), default=None)


def _with_stand_ins(
    triple: Triple, graph: TypedGraph, neighbours: Neighbours | None
) -> list[tuple[tuple[str, ...], float]]:
    """The relations of the triple's own predicate, then those of its neighbours, each with their similarity."""
    words = triple.predicate.casefold()
    stand_ins = [(graph.by_words.get(words, _relations(triple)), 1.0)]
    for neighbour, similarity in [] if neighbours is None else neighbours(words, graph.by_words):
        stand_ins.append((graph.by_words[neighbour], similarity))
    return stand_ins


def _relations(triple: Triple) -> tuple[str, ...]:
    return (triple.relation,) if isinstance(triple, TypedTriple) else ()


def _numbered(types: tuple[str, str]) -> tuple[str, str]:
    """The types as nodes have them: two equal types are numbered."""
    return (f"{types[0]}_1", f"{types[1]}_2") if types[0] == types[1] else types


def read_neighbours(path: Path, count: int = NEIGHBOURS) -> Neighbours:
    """Read the neighbours that a language model found: lines of `predicate TAB neighbour TAB similarity`, in words.

    Raises HapaxError for any other line, and for a similarity outside 0 to 1.
    """
    near: defaultdict[str, list[Neighbour]] = defaultdict(list)
    for number, line in _numbered_lines(path):
        parts = line.split("\t")
        try:
            words, neighbour, similarity = parts[0], parts[1], float(parts[2])
        except (IndexError, ValueError):
            similarity = -1.0  # out of range, so that the error below names the line
        if not 0 <= similarity <= 1 or len(parts) != 3:
            raise HapaxError(
                f"{path}:{number}: write a predicate, a neighbour and a similarity from 0 to 1, separated by tabs."
            )
        near[words.casefold()].append((neighbour.casefold(), similarity))

    def nearest(words: str, among: Collection[str]) -> list[Neighbour]:
        in_graph = (neighbour for neighbour in near.get(words, []) if neighbour[0] in among)
        return sorted(in_graph, key=lambda neighbour: (-neighbour[1], neighbour[0]))[:count]

    return nearest


_FUNCTION_WORDS = """
    about above across after against along amid among around as at before behind below beneath beside between beyond by
    down during for from in inside into like near of off on onto out outside over past per since than through throughout
    till to toward towards under until up upon via with within without x 's 的 地 得 【介宾】
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Prepositions, particles and markers. A run of such words alone is never replaced."""

_LIGHT_VERBS = "be have do get give take make go come put let keep"
LIGHT_VERBS = frozenset(_LIGHT_VERBS.split())
"""Verbs that say too little by themselves to have a stand-in: a graph's `take in` is not about taking."""

_CODES = {"cmn": "ZH", "cmn-Hans": "ZH", "zh": "ZH", "zh-Hans": "ZH"}
"""Language codes of lexicons that differ from those of pairs."""

_ORDER = {"v": 0, "n": 1}
"""Parts of speech in order of preference: a predicate is a verb if it can be one, else a noun."""


class ReplacementDirection(StrEnum):
    """Replacement of a word by a broader one, which it entails, or by a narrower one, which entails it."""

    BROADER = "hypernym"
    NARROWER = "hyponym"


@dataclass(frozen=True, slots=True)
class Sense:
    """A meaning of a word or phrase: its id in the lexicon, its definition, and the lemmas that share it."""

    id: str
    definition: str
    lemmas: tuple[str, ...]


class Lexicon:
    """A WordNet in `wn`'s database. Install one with `python -m wn download oewn:2024` or `wn.add`."""

    def __init__(self, wordnet: wn.Wordnet, language: str) -> None:
        self._wordnet = wordnet
        self.language = language
        # Caches of this object: `cache` on a method would keep the object alive.
        self.senses = cache(self._senses)
        self.lemma = cache(self._lemma)
        self.related = cache(self._related)

    @classmethod
    def open(cls, name: str = "", language: str = "EN") -> Lexicon:
        """Open a lexicon by its specifier, such as `oewn:2024`, or by default the only one of `language`.

        Raises HapaxError if `wn` or the lexicon is not installed, or if several lexicons match.
        """
        if missing := missing_of("wordnet"):
            raise HapaxError(f"{missing} Then run `python -m wn download oewn:2024`.")
        import wn
        from wn.morphy import Morphy

        known: dict[str, str] = {}
        chosen = []
        for lexicon in wn.lexicons():
            key, code = lexicon.specifier(), _CODES.get(lexicon.language, lexicon.language.upper())
            known[key] = code
            if name in (key, lexicon.id) if name else code == language:
                chosen.append(key)
        if len(chosen) != 1:
            raise HapaxError(_why_none(name or f"of language {language}", chosen or list(known), bool(chosen)))
        wordnet = wn.Wordnet(chosen[0])
        if known[chosen[0]] == "EN":
            wordnet.lemmatizer = Morphy(wordnet)  # Morphy knows English only
        return cls(wordnet, known[chosen[0]])

    @property
    def joint(self) -> str:
        """The separator between the words of a lemma."""
        return "" if self.language == "ZH" else " "

    def of(self, words: tuple[str, ...], span: tuple[int, int]) -> tuple[Sense, ...]:
        """The senses of the words from start to end; prepositions and particles alone have none."""
        phrase = words[slice(*span)]
        return () if all(word in FUNCTION_WORDS for word in phrase) else self.senses(self.joint.join(phrase))

    def words(self, predicate: str) -> tuple[str, ...]:
        """A predicate's words as lemmas."""
        return tuple(map(self.lemma, predicate_words(predicate, self.language)))

    def _senses(self, text: str) -> tuple[Sense, ...]:
        """The senses of a word or phrase in the lexicon's order, verbs before nouns."""
        # The sort is stable: within a part of speech the lexicon's order stays, the most frequent sense first.
        entries = sorted(self._wordnet.words(text), key=lambda word: _ORDER.get(word.pos, len(_ORDER)))
        senses: dict[Sense, None] = {}  # a set that keeps its order
        for word in entries:
            senses |= dict.fromkeys(self._sense(sense.synset()) for sense in word.senses())
        return tuple(senses)

    def _lemma(self, word: str) -> str:
        """The lemma of a word as a verb, else as a noun; a word that is itself a lemma is unchanged."""
        if self._wordnet.lemmatizer is None:
            return word
        forms = self._wordnet.lemmatizer(word, None)
        for part_of_speech in ("v", "n"):
            lemmas = forms.get(part_of_speech)
            if lemmas:
                return word if word in lemmas else min(lemmas)  # a set: `min` makes the choice deterministic
        return word

    def _related(self, sense: str, way: ReplacementDirection) -> tuple[Sense, ...]:
        names = (
            ("hyponym", "instance_hyponym")  # WordNet files troponyms under hyponyms
            if way is ReplacementDirection.NARROWER
            else ("hypernym", "instance_hypernym", "entails")
        )
        return tuple(map(self._sense, self._wordnet.synset(sense).get_related(*names)))

    def _sense(self, synset: wn.Synset) -> Sense:
        lemmas = (lemma.replace("_", " ").replace("+", "") for lemma in synset.lemmas())
        return Sense(synset.id, synset.definition() or "", tuple(dict.fromkeys(lemmas)))


def _why_none(description: str, installed: Sequence[str], is_ambiguous: bool) -> str:
    if is_ambiguous:
        names = ", ".join(installed)
        return f"Several WordNets {description} are installed: {names}. Name one, such as wordnet:{installed[0]}."
    others = f"installed: {', '.join(installed)}" if installed else "none is installed at all"
    return (
        f"No WordNet {description} is installed ({others}). Run `python -m wn download oewn:2024` (English) or "
        "`python -m wn download omw-cmn:1.4 omw-en:1.4` (Chinese), or add a file with `wn.add`."
    )


SenseChoice = Callable[[tuple[str, ...], tuple[int, int], Sequence[Sense]], Sequence[Sense]]
"""Chooses among the senses of a predicate's words from start to end (exclusive)."""


def first_sense(words: tuple[str, ...], span: tuple[int, int], senses: Sequence[Sense]) -> Sequence[Sense]:  # noqa: ARG001  # one shape for all
    """The lexicon's first sense, which in WordNet is the most frequent one."""
    return senses[:1]


Wordings = tuple[tuple[str, ...], ...]
"""The words of a whole predicate, once for each lemma of the sense that replaces some of them."""


def replacements(
    words: tuple[str, ...], span: tuple[int, int], senses: Iterable[Sense], way: ReplacementDirection, lexicon: Lexicon
) -> list[Wordings]:
    """Replacements of the words from start to end by senses narrower or broader than those given."""
    start, end = span
    joint = lexicon.joint
    text = joint.join(words[start:end])
    same = {text, lexicon.lemma(text)}
    by_sense: dict[str, Wordings] = {}
    for related in chain.from_iterable(lexicon.related(sense.id, way) for sense in senses):
        # A sense that shares a lemma with the words would replace them by themselves.
        if same.isdisjoint(related.lemmas):
            # Chinese words have no separator, by which `split` could divide them.
            parts = (lemma.split(joint) if joint else [lemma] for lemma in related.lemmas)
            by_sense.setdefault(related.id, tuple((*words[:start], *part, *words[end:]) for part in parts))
    return list(by_sense.values())


def spans(count: int) -> Iterator[tuple[int, int]]:
    """All runs of words as (start, end), by their start; the longest first."""
    for start in range(count):
        for end in range(count, start, -1):
            yield start, end


def neighbours(lexicon: Lexicon, way: ReplacementDirection, count: int = NEIGHBOURS) -> Neighbours:
    """Predicates of a graph that are one step broader or narrower in WordNet, by first senses; all of similarity 1."""

    def nearest(predicate: str, among: Collection[str]) -> list[Neighbour]:
        words = lexicon.words(predicate)
        texts: list[str] = []
        for span in spans(len(words)):
            # A light verb alone; as part of a longer run, as in `take part in`, it is replaced.
            if words[slice(*span)] in {(verb,) for verb in LIGHT_VERBS}:
                continue
            senses = first_sense(words, span, lexicon.of(words, span))
            for wordings in replacements(words, span, senses, way, lexicon):
                texts += (surface(wording, lexicon.language) for wording in wordings)
        return [(text, 1.0) for text in dict.fromkeys(texts) if text in among][:count]

    return nearest
