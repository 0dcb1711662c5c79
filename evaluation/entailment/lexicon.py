"""WordNet, through the library `wn`: senses, narrower and broader words, and stand-ins for predicates by these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from hapax.evaluation.entailment.pairs import predicate_words, surface
from hapax.evaluation.entailment.published_graphs import NEIGHBOURS, Neighbour, Neighbours
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of

if TYPE_CHECKING:
    import wn

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


@dataclass(frozen=True, slots=True)
class Replacement:
    """A sense that can replace the words from start to end."""

    span: tuple[int, int]
    wordings: tuple[tuple[str, ...], ...]
    """The words of the whole predicate, once for each lemma of the sense."""


def replacements(
    words: tuple[str, ...], span: tuple[int, int], senses: Iterable[Sense], way: ReplacementDirection, lexicon: Lexicon
) -> list[Replacement]:
    """Replacements of the words from start to end by senses narrower or broader than those given."""
    start, end = span
    joint = lexicon.joint
    text = joint.join(words[start:end])
    same = {text, lexicon.lemma(text)}
    by_sense: dict[str, Replacement] = {}
    for sense in senses:
        for related in lexicon.related(sense.id, way):
            # A sense that shares a lemma with the words would replace them by themselves.
            if same.isdisjoint(related.lemmas):
                # Chinese words have no separator, by which `split` could divide them.
                parts = (lemma.split(joint) if joint else [lemma] for lemma in related.lemmas)
                wordings = tuple((*words[:start], *part, *words[end:]) for part in parts)
                by_sense.setdefault(related.id, Replacement(span, wordings))
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
            for replacement in replacements(words, span, senses, way, lexicon):
                texts += (surface(wording, lexicon.language) for wording in replacement.wordings)
        return [(text, 1.0) for text in dict.fromkeys(texts) if text in among][:count]

    return nearest
