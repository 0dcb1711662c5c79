"""WordNet, by the library `wn`: senses, what is narrower and broader, and a scorer that follows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from evaluation.entailment.graph_files import NEIGHBOURS, Neighbour, Neighbours
from evaluation.entailment.pairs import EntailmentPair
from evaluation.entailment.scorers import Shown
from evaluation.entailment.wording import predicate_words, surface
from grammar.errors import HapaxError

if TYPE_CHECKING:
    import wn

_FUNCTION_WORDS = """
    about above across after against along amid among around as at before behind below beneath beside between beyond by
    down during for from in inside into like near of off on onto out outside over past per since than through throughout
    till to toward towards under until up upon via with within without x 's 的 地 得 【介宾】
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Prepositions, particles and markers: nothing alone that WordNet could replace."""

_NEGATIONS = frozenset({"not", "never", "n't", "no", "没有", "没", "不", "否"})
_CODES = {"cmn": "ZH", "cmn-Hans": "ZH", "zh": "ZH", "zh-Hans": "ZH"}
"""Languages that a lexicon calls otherwise than pairs do."""

_ORDER = {"v": 0, "n": 1}
"""A predicate is a verb where it can be one, else a noun."""


class Way(StrEnum):
    """Which way a word is replaced: by what it entails, or by what entails it."""

    BROADER = "hypernym"
    NARROWER = "hyponym"


@dataclass(frozen=True, slots=True)
class Sense:
    """One meaning of some words: its id in the lexicon, its definition, and the lemmas that share it."""

    id: str
    definition: str
    lemmas: tuple[str, ...]


class Lexicon:
    """One WordNet of those in `wn`'s database, which `python -m wn download oewn:2024` and `wn.add` fill."""

    def __init__(self, wordnet: wn.Wordnet, language: str) -> None:
        self._wordnet = wordnet
        self.language = language
        self.senses = cache(self._senses)
        self.lemma = cache(self._lemma)
        self.related = cache(self._related)

    @classmethod
    def open(cls, name: str = "", language: str = "EN") -> Lexicon:
        """By its specifier such as `oewn:2024`, in its own language; without one, the only one of `language`.

        Raises HapaxError where `wn` or the lexicon is not installed, or several could be meant.
        """
        if find_spec("wn") is None:
            raise HapaxError("wn is not installed. Run `pip install wn`, then `python -m wn download oewn:2024`.")
        import wn
        from wn.morphy import Morphy

        there = {one.specifier(): one for one in wn.lexicons()}
        fitting = {key: _CODES.get(one.language, one.language.upper()) for key, one in there.items()}
        chosen = [key for key in there if (name in (key, there[key].id) if name else fitting[key] == language)]
        if len(chosen) != 1:
            raise HapaxError(_why_none(name or f"of language {language}", chosen or list(there), bool(chosen)))
        wordnet = wn.Wordnet(chosen[0])
        if fitting[chosen[0]] == "EN":
            wordnet.lemmatizer = Morphy(wordnet)
        return cls(wordnet, fitting[chosen[0]])

    @property
    def joint(self) -> str:
        """What stands between the words of a lemma."""
        return "" if self.language == "ZH" else " "

    def of(self, words: tuple[str, ...], span: tuple[int, int]) -> tuple[Sense, ...]:
        """The senses of the words from start to end; prepositions and particles alone have none."""
        some = words[slice(*span)]
        return () if all(word in FUNCTION_WORDS for word in some) else self.senses(self.joint.join(some))

    def words(self, predicate: str) -> tuple[str, ...]:
        """A predicate's words as lemmas."""
        return tuple(map(self.lemma, predicate_words(predicate, self.language)))

    def narrower(self, sense: str) -> tuple[Sense, ...]:
        """Hyponyms, troponyms among them, and instances."""
        return self.related(sense, Way.NARROWER)

    def broader(self, sense: str) -> tuple[Sense, ...]:
        """Hypernyms, and for a verb what else it entails."""
        return self.related(sense, Way.BROADER)

    def _senses(self, text: str) -> tuple[Sense, ...]:
        """Of a word or several, in the lexicon's order: verbs first, then nouns."""
        entries = sorted(self._wordnet.words(text), key=lambda word: _ORDER.get(word.pos, len(_ORDER)))
        return tuple(dict.fromkeys(self._sense(sense.synset()) for word in entries for sense in word.senses()))

    def _lemma(self, word: str) -> str:
        """As a verb where it can be one, else as a noun; a form that is a lemma itself stays."""
        if self._wordnet.lemmatizer is None:
            return word
        forms = self._wordnet.lemmatizer(word, None)
        return next((word if word in forms[pos] else min(forms[pos]) for pos in ("v", "n") if forms.get(pos)), word)

    def _related(self, sense: str, way: Way) -> tuple[Sense, ...]:
        names = ("hyponym", "instance_hyponym") if way is Way.NARROWER else ("hypernym", "instance_hypernym", "entails")
        return tuple(map(self._sense, self._wordnet.synset(sense).get_related(*names)))

    def _sense(self, synset: wn.Synset) -> Sense:
        lemmas = (lemma.replace("_", " ").replace("+", "") for lemma in synset.lemmas())
        return Sense(synset.id, synset.definition() or "", tuple(dict.fromkeys(lemmas)))


def _why_none(wanted: str, there: Sequence[str], several: bool) -> str:
    if several:
        return f"Several WordNets {wanted} are installed: {', '.join(there)}. Name one, such as wordnet:{there[0]}."
    known = f"those there are {', '.join(there)}" if there else "there is none at all"
    return (
        f"No WordNet {wanted} is installed; {known}. Run `python -m wn download oewn:2024` (English) or "
        "`python -m wn download omw-cmn:1.4 omw-en:1.4` (Chinese), or add a file by `wn.add`."
    )


SenseChoice = Callable[[tuple[str, ...], tuple[int, int], Sequence[Sense]], Sequence[Sense]]
"""Chooses among the senses of a predicate's words from start to end (excluded)."""


def first_sense(words: tuple[str, ...], span: tuple[int, int], senses: Sequence[Sense]) -> Sequence[Sense]:  # noqa: ARG001  # one shape for all
    """The lexicon's first: the most frequent one, in WordNet."""
    return senses[:1]


def every_sense(words: tuple[str, ...], span: tuple[int, int], senses: Sequence[Sense]) -> Sequence[Sense]:  # noqa: ARG001  # one shape for all
    """All of them."""
    return senses


@dataclass(frozen=True, slots=True)
class Replacement:
    """What can stand for the words from start to end: one sense, in each of its wordings."""

    span: tuple[int, int]
    wordings: tuple[tuple[str, ...], ...]
    """The whole predicate's words, once for each lemma of the sense."""


def replacements(
    words: tuple[str, ...], span: tuple[int, int], senses: Iterable[Sense], way: Way, lexicon: Lexicon
) -> list[Replacement]:
    """The words from start to end by what is narrower or broader than these senses of theirs.

    A sense that shares a lemma with the words is none.
    """
    start, end = span
    joint = lexicon.joint
    text = joint.join(words[start:end])
    same = {text, lexicon.lemma(text)}
    found: dict[str, Replacement] = {}
    for sense in senses:
        for other in lexicon.related(sense.id, way):
            if same.isdisjoint(other.lemmas):
                parts = ((lemma.split(joint) if joint else [lemma]) for lemma in other.lemmas)
                wordings = tuple((*words[:start], *part, *words[end:]) for part in parts)
                found.setdefault(other.id, Replacement(span, wordings))
    return list(found.values())


def spans(count: int) -> Iterable[tuple[int, int]]:
    """All runs of words by their beginning, the longest first."""
    return ((start, end) for start in range(count) for end in range(count, start, -1))


def neighbours(lexicon: Lexicon, way: Way, count: int = NEIGHBOURS) -> Neighbours:
    """Predicates of a graph that WordNet puts one step broader or narrower, by first senses; all equally similar."""

    def nearest(predicate: str, among: Collection[str]) -> list[Neighbour]:
        words = lexicon.words(predicate)
        told = (
            surface(wording, lexicon.language)
            for span in spans(len(words))
            for one in replacements(words, span, first_sense(words, span, lexicon.of(words, span)), way, lexicon)
            for wording in one.wordings
        )
        return [(text, 1.0) for text in dict.fromkeys(told) if text in among][:count]

    return nearest


@dataclass(frozen=True, slots=True)
class WordNetScorer:
    """1 / (1 + steps) where WordNet leads up from a sense of the premise's head word to one of the hypothesis', else 0.

    Steps are hypernyms and, for verbs, entailments. The head is the first run of words that the lexicon knows, the
    longest of those that begin there; auxiliaries alone are none where there is another. 0 where only one side is
    negated, or where arguments change places and voice does not (`owns`, `is owned by`).
    """

    lexicon: Lexicon
    name: str = "wordnet"
    sees: Shown = Shown.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [self._score(pair) for pair in pairs]

    def _score(self, pair: EntailmentPair) -> float:
        premise, hypothesis = (self.lexicon.words(one.predicate) for one in (pair.premise, pair.hypothesis))
        if pair.swapped != (_passive(premise) != _passive(hypothesis)) or _negated(premise) != _negated(hypothesis):
            return 0.0
        if premise == hypothesis:
            return 1.0
        start, goal = (self._head(words) for words in (premise, hypothesis))
        steps = self._steps(start, {sense.id for sense in goal})
        return 0.0 if steps is None else 1 / (1 + steps)

    def _head(self, words: tuple[str, ...]) -> tuple[Sense, ...]:
        told = tuple(word for word in words if word not in _NEGATIONS)
        runs = list(spans(len(told)))
        telling = (span for span in runs if not _AUXILIARIES.issuperset(told[slice(*span)]))
        return next(filter(None, (self.lexicon.of(told, span) for span in (*telling, *runs))), ())

    def _steps(self, start: Iterable[Sense], goal: set[str]) -> int | None:
        reached = {sense.id for sense in start}
        edge, steps = reached, 0
        while edge:
            if edge & goal:
                return steps
            edge = {up.id for one in edge for up in self.lexicon.broader(one)} - reached
            reached |= edge
            steps += 1
        return None


_AUXILIARIES = frozenset({"be", "is", "are", "was", "were", "been", "have", "has", "had", "do", "does", "did", "will"})


def _passive(words: Sequence[str]) -> bool:
    return words[-1:] == ("by",)


def _negated(words: Sequence[str]) -> bool:
    return not _NEGATIONS.isdisjoint(words)


def _parts(lemma: str, joint: str) -> list[str]:
    return lemma.split(joint) if joint else [lemma]
