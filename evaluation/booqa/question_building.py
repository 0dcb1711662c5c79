"""Building a BoOQA dataset from triples: filters, negatives and samples."""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from hapax.evaluation.booqa.corpus import (
    DEV,
    REPORT,
    TEST,
    Mention,
    Pair,
    Proposition,
    Sentence,
    SlicedCorpus,
    sentences,
    write_questions,
)
from hapax.evaluation.entailment.pairs import predicate_words
from hapax.evaluation.entailment.published_graphs import (
    Lexicon,
    ReplacementDirection,
    Sense,
    SenseChoice,
    first_sense,
    replacements,
    spans,
)
from hapax.evaluation.entailment.scorers import Language, Measure, ScorerOptions, ScorerSession
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, Seed
from hapax.kb.files.unfinished import replace_file, unfinished
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.protocols import CRITIC

SAID = "said of these two"
UNUSUAL = "predicate too rare"


class PredicateIndex:
    """The predicates of a corpus by lemmas and types."""

    def __init__(self, occurrences: Mapping[Predicate, int], lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._forms: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        for (relation, *types), count in occurrences.items():
            # One predicate may stand in the corpus in several forms: `shops in`, `shopped in`.
            self._forms[(self.key(lexicon.words(relation)), types[0], types[1])][relation] += count

    def key(self, words: Iterable[str]) -> str:
        """The lemmas of a predicate, which all its forms have in common."""
        return self._lexicon.joint.join(map(self._lexicon.lemma, words))

    def forms(self, key: str, types: tuple[str, str]) -> Counter[str]:
        """The forms of a predicate with these types, with their numbers of occurrences; empty without any."""
        return self._forms.get((key, *types), Counter())

    def count(self, mention: Mention) -> int:
        """Number of occurrences of a mention's predicate with these types, in any form."""
        return self.forms(self.key(self._lexicon.words(mention.relation)), mention.types).total()


@dataclass(frozen=True, slots=True)
class Replacer:
    """Finds the negatives of a positive.

    `said` maps an entity pair to the keys of all predicates that the corpus has for it, in any slice. `dropped`: number
    of replacements that were dropped, by reason: `SAID` or `UNUSUAL`.
    """

    lexicon: Lexicon
    choose: SenseChoice
    index: PredicateIndex
    said: Mapping[Pair, frozenset[str]]
    settings: BuildSettings
    dropped: Counter[str] = field(default_factory=Counter)

    def negatives(self, mention: Mention) -> tuple[list[str], dict[str, tuple[str, ...]]]:
        """The negatives of a mention by replacing each run of its words, the longest first.

        Relations that replace the mention's, and the chosen senses by the words that were replaced.
        """
        words = self.lexicon.words(mention.relation)
        relations: dict[str, None] = {}
        senses: dict[str, tuple[str, ...]] = {}
        replaced: list[tuple[int, int]] = []
        for span in spans(len(words)):
            candidates = self.lexicon.of(words, span)
            # Words inside a run that was replaced are not replaced again.
            if not candidates or any(start <= span[0] and span[1] <= end for start, end in replaced):
                continue
            chosen = self.choose(words, span, candidates)
            senses[self.lexicon.joint.join(words[slice(*span)])] = tuple(sense.id for sense in chosen)
            fitting = self._fitting(mention, words, span, chosen)
            # Words without a usable hyponym stay free for the shorter runs inside them.
            if fitting:
                replaced.append(span)
                relations |= dict.fromkeys(fitting)
        return list(relations), senses

    def _fitting(
        self, mention: Mention, words: tuple[str, ...], span: tuple[int, int], chosen: Sequence[Sense]
    ) -> list[str]:
        """Narrower relations that the corpus has often enough, but not for this pair, nor a synonym of them."""
        relations: list[str] = []
        least, below = self.settings.predicate_from, self.settings.predicate_below
        for wordings in replacements(words, span, chosen, ReplacementDirection.NARROWER, self.lexicon):
            # All synonyms together: the corpus may state the same with another lemma of the sense.
            keys = list(dict.fromkeys(map(self.index.key, wordings)))
            if not self.said[mention.pair].isdisjoint(keys):
                self.dropped[SAID] += 1
                continue
            forms = [self.index.forms(key, mention.types) for key in keys]
            # The usual form stands for all; ties go by the alphabet.
            fitting = [
                min(own, key=lambda form: (-own[form], form))
                for own in forms
                if own and not count_fault(own.total(), least, below, "")
            ]
            # A bool counts as 0 or 1.
            self.dropped[UNUSUAL] += not fitting
            relations += fitting
        return relations


def senses_by_critic(measure: Measure) -> SenseChoice:
    """Choose the sense whose definition a critic finds most likely; among equals, the lexicon's first."""

    # The same words stand in many predicates' positives, and each question to a critic costs.
    @cache
    def choose(words: tuple[str, ...], span: tuple[int, int], senses: tuple[Sense, ...]) -> Sequence[Sense]:
        if len(senses) < 2:
            return senses
        phrase, predicate = " ".join(words[slice(*span)]), " ".join(words)
        context = f'In "Someone {predicate} something", "{phrase}" means'
        scores = measure([f"{context}: {sense.definition}." for sense in senses])
        return (senses[scores.index(max(scores))],)

    return lambda words, span, senses: choose(words, span, tuple(senses))  # a list cannot be cached


PRONOUN, VAGUE = "pronoun", "vague predicate"

_PRONOUNS = """
    我 你 他 她 它 他们 她们 它们 有人 自己 人
    i you he she it them someone somebody one myself yourself yourselves himself herself themselves people man woman her
    him his hers our ours your yours their theirs its anyone anybody every everyone everybody
"""
PRONOUNS = frozenset(_PRONOUNS.split())
"""Entities that are not asked about, as in the release."""

_VAGUE_WORDS = "是 还是 也是 都是 有 的 X x 's ' has have had is are was were of in on at be for with"
VAGUE_WORDS = frozenset(_VAGUE_WORDS.split())
"""Words that by themselves make no useful predicate, as in the release. X is the place of a Chinese object."""


def count_fault(count: int, least: int, below: int, noun: str) -> str:
    """`too few NOUN`, `too many NOUN`, or an empty text for at least `least` and less than `below`; 0 is no limit."""
    if count < least:
        return f"too few {noun}"
    return f"too many {noun}" if 0 < below <= count else ""


Predicate = tuple[str, str, str]
"""A relation with the types of its arguments."""


def predicate_of(mention: Mention) -> Predicate:
    """The typed predicate of a mention, by which occurrences are counted."""
    return (mention.relation, *mention.types)


def pair_faults(sentences: Sequence[Sentence], settings: BuildSettings) -> dict[Pair, str]:
    """By documents, the reason why each entity pair of a slice is not asked about, or an empty text if it is."""
    documents: defaultdict[Pair, set[str]] = defaultdict(set)
    predicates: defaultdict[Pair, set[str]] = defaultdict(set)
    for sentence in sentences:
        for mention in sentence.triples:
            documents[mention.pair].add(sentence.document)
            predicates[mention.pair].add(mention.relation.casefold())
    faults: dict[Pair, str] = {}
    for pair, counted in documents.items():
        # The first two parts are the entities, the others their types.
        if not PRONOUNS.isdisjoint(pair[:2]):
            faults[pair] = PRONOUN
            continue
        # The range holds for different predicates, too: many mentions of a single predicate give little to judge by.
        faults[pair] = ""
        for count, noun in ((len(counted), "mentions"), (len(predicates[pair]), "different predicates")):
            fault = count_fault(count, settings.pair_from, settings.pair_below, noun)
            faults[pair] = faults[pair] or fault
    return faults


class Positive(NamedTuple):
    """A mention that can be asked about, with its slice and the index of its sentence."""

    mention: Mention
    slice: str
    sentence: int


BARS = (
    *(30, 60, 100, 300, 500, 700, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 10_000, 15_000, 20_000),
    *(30_000, 50_000, 100_000, 100_000_000),
)
"""Bounds of the frequency buckets of the release."""

SPARE = 0.95
"""Share of the negatives of a frequency bucket that may be used: 1.9 for 2 negatives a positive, as in the release."""

BEYOND, MAPPED = "beyond the sample", "negatives of another frequency"


@dataclass(frozen=True, slots=True)
class BalancedPositive:
    """A positive with its negatives, and the frequencies of their predicates."""

    positive: Proposition
    negatives: tuple[Proposition, ...]
    frequency: int
    negative_frequencies: tuple[int, ...]


def allotments(sizes: Mapping[str, int], sample: int) -> dict[str, int]:
    """Number of items to take from each slice, in proportion to its size, so that the total is at most `sample`."""
    total = sum(sizes.values())
    if total <= sample:
        return dict(sizes)
    shares: dict[str, int] = {}
    passed = allotted = 0
    for key in sorted(sizes):
        # Rounding the running total instead of each share makes the shares add up to `sample` exactly.
        passed += sizes[key]
        shares[key] = passed * sample // total - allotted
        allotted += shares[key]
    return shares


def mapped(
    items: Sequence[BalancedPositive], allotment: int, draw: random.Random
) -> tuple[list[BalancedPositive], Counter[str]]:
    """`allotment` items drawn at random so that their negatives are as frequent as the slice's positives.

    Otherwise the frequency of a hypothesis alone would separate positives, which are general, from their hyponyms. An
    item whose negatives no longer fit into their frequency buckets is dropped.
    """
    most = max((len(item.negatives) for item in items), default=0)
    shares = Counter(_bucket(item.frequency) for item in items)
    room: dict[int, int] = {}
    for bucket, count in sorted(shares.items()):  # sorted, because rounding draws random numbers
        # The bucket's share of the positives, times all negatives that the sample can have.
        expected = count / len(items) * allotment * most * SPARE
        # Rounded up or down at random, so that the expectation stays the same.
        room[bucket] = math.floor(expected) + (draw.random() < expected % 1)
    sample: list[BalancedPositive] = []
    dropped: Counter[str] = Counter()
    # A random order, because the buckets fill up and items that come late find no room.
    for item in draw.sample(list(items), len(items)):
        needed = Counter(map(_bucket, item.negative_frequencies))
        if len(sample) == allotment:
            dropped[BEYOND] += 1
        elif any(count > room.get(bucket, 0) for bucket, count in needed.items()):  # all its negatives or none
            dropped[MAPPED] += 1
        else:
            sample.append(item)
            for bucket, count in needed.items():
                room[bucket] -= count
    return sample, dropped


def halves(sizes: Mapping[str, int], draw: random.Random) -> dict[str, str]:
    """The set of each slice: in random order, slices go to dev as long as it stays within half of all items."""
    homes: dict[str, str] = {}
    in_dev = 0
    total = sum(sizes.values())
    for key in draw.sample(sorted(sizes), len(sizes)):
        homes[key] = DEV if in_dev + sizes[key] <= total / 2 else TEST
        in_dev += sizes[key] if homes[key] == DEV else 0
    return homes


def _bucket(frequency: int) -> int:
    # Number of the bucket: a frequency equal to a bar belongs above it.
    return bisect_right(BARS, frequency)


NO_NEGATIVE, SAME_SENTENCE = "no negative found", "another question from its sentence"


@checked
@dataclass(frozen=True)
class BuildSettings:
    """Settings of a build. The defaults are the release's, according to its code and README."""

    language: Language = "EN"
    pair_from: Annotated[int, Option("Fewest mentions of an entity pair in a slice.", least=1)] = 15
    pair_below: Annotated[int, Option("Keep pairs with fewer mentions than this; 0: no limit.", least=0)] = 30
    predicate_from: Annotated[int, Option("Fewest occurrences of a predicate in the corpus.", least=1)] = 30
    predicate_below: Annotated[
        int, Option("Keep predicates with fewer occurrences than this; 0: no limit.", least=0)
    ] = 0
    negatives: Annotated[int, Option("Most negatives of a positive.", least=1)] = 2
    sample: Annotated[int, Option("Number of positives in dev and test together.", least=1)] = 40_000
    frequency_map: Annotated[bool, Option("Draw negatives that are as frequent as positives.", switch=True)] = True
    seed: Seed = 0


@checked
@dataclass(frozen=True)
class QuestionWords:
    """WordNet and the choice of a word's sense, for the negatives of `build_questions`.

    `lexicon`: a WordNet such as oewn:2024; empty: the only one for the language. `senses`: `first` (in WordNet),
    or `critic` (the best fit in the sentence, by `model`).
    """

    lexicon: str = ""
    senses: Annotated[
        Literal["first", "critic"],
        Option("Sense of a word to replace: first (in WordNet), or the one that a critic (-m) chooses."),
    ] = "first"
    model: str = "embedded"


class Step(NamedTuple):
    """The outcome of a step: the number of items kept, the noun for them, and the number dropped by reason."""

    name: str
    kept: int
    noun: str
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Built:
    """The questions of dev and test, the set of each slice, and the steps of the build."""

    sets: Mapping[str, Sequence[Proposition]]
    slices: Mapping[str, str]
    steps: Sequence[Step]

    def evaluation(self, settings: BuildSettings) -> Evaluation[Built]:
        """The steps as a table; the settings, the steps, and the number of questions in each set as figures."""
        rows = []
        for step in self.steps:
            dropped = ", ".join(f"{count} {reason}" for reason, count in step.dropped.items())
            rows.append((step.name, f"{step.kept} {step.noun}", dropped))
        sets = {}
        for name, questions in self.sets.items():
            sets[name] = {
                "positives": sum(question.label for question in questions),
                "negatives": sum(not question.label for question in questions),
                "slices": sum(home == name for home in self.slices.values()),
            }
        figures = {"settings": settings, "steps": [step._asdict() for step in self.steps], "sets": sets}
        return Evaluation(self, [ResultTable("", ("step", "left", "dropped"), rows)], figures)


def build(
    paths: Sequence[Path], lexicon: Lexicon, choose: SenseChoice, settings: BuildSettings, scratch: Path
) -> Built:
    """Copy the corpus into a file for each slice below `scratch`, then work slice by slice.

    Memory holds one slice, the predicate counts, and the mentions that pass the filters. Raises HapaxError for a corpus
    without a dated triple.
    """
    dropped: Counter[str] = Counter()
    occurrences: Counter[Predicate] = Counter()
    # A generator: nothing is read before `SlicedCorpus.of` asks for it.
    used = sentences(paths, dropped)
    corpus = SlicedCorpus.of(_counting(used, occurrences), scratch)
    if not occurrences:
        reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        left_out = f" that can be used (left out: {reasons})" if reasons else ""
        names = ", ".join(map(str, paths))
        raise HapaxError(f"{names}: no triple{left_out}. Name a corpus; docs/papers/booqa.md describes its format.")
    positives_by_slice, filtered = _positives(corpus, occurrences, settings)
    index = PredicateIndex(occurrences, lexicon)
    replacer = Replacer(lexicon, choose, index, _said(corpus, positives_by_slice, index, lexicon), settings)
    balanced_by_slice, unused = _balanced(positives_by_slice, replacer, settings)
    sampled, beyond = _sampled(balanced_by_slice, settings)
    sizes = {key: len(in_slice) for key, in_slice in sampled.items()}
    # Whole slices go to dev or test, so that no question has premises in the other set.
    homes = halves(sizes, random.Random(f"{settings.seed} halves"))  # noqa: S311  # no secret
    sets: dict[str, list[Proposition]] = {DEV: [], TEST: []}
    for key in sorted(sampled):
        for positive in sampled[key]:
            sets[homes[key]] += (positive.positive, *positive.negatives)
    balanced = list(chain.from_iterable(balanced_by_slice.values()))
    negatives = sum(len(positive.negatives) for positive in balanced)
    of_sets = (Step(name, sum(item.label for item in chosen), "positives", {}) for name, chosen in sets.items())
    steps = (
        Step("time slices", occurrences.total(), "triples", dict(dropped)),
        Step("entity pairs and predicates", sum(map(len, positives_by_slice.values())), "positives", dict(filtered)),
        Step("WordNet", len(balanced), "positives with negatives", dict(unused)),
        Step("replacements", negatives, "negatives", dict(replacer.dropped)),
        Step("sample", sum(map(len, sampled.values())), "positives", dict(beyond)),
        *of_sets,
    )
    return Built(sets, homes, steps)


@checked
def build_questions(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    folder: str | Path,
    settings: BuildSettings | None = None,
    *,
    words: QuestionWords | None = None,
    opening: OpeningOptions | None = None,
) -> Evaluation[Built]:
    """Build questions: positives that the corpus states, and negatives with a hyponym that it never states.

    Writes `dev.jsonl`, `test.jsonl` and `report.json` into the folder. `opening`: options of opening the model that
    chooses senses; its journal, if any, has the budget. Needs the extra `wordnet`.
    """
    settings, words, folder = settings or BuildSettings(), words or QuestionWords(), Path(folder)
    lexicon = Lexicon.open(words.lexicon, settings.language)
    choose: SenseChoice = first_sense
    if words.senses == "critic":
        choose = senses_by_critic(ScorerSession(kb, ScorerOptions(words.model), opening).measure(CRITIC))
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the output: a corpus may be too large for the system's temporary folder.
    with unfinished(folder / "slices") as scratch:
        scratch.mkdir()
        built = build([Path(path) for path in paths], lexicon, choose, settings, scratch)
    for name, questions in built.sets.items():
        write_questions(questions, folder / f"{name}.jsonl", settings.language)
    evaluation = built.evaluation(settings)
    replace_file(folder / REPORT, json.dumps(evaluation.to_json(), ensure_ascii=False, indent=2) + "\n")
    return evaluation


def _counting(corpus: Iterable[Sentence], occurrences: Counter[Predicate]) -> Iterator[Sentence]:
    """The sentences of the corpus, which `occurrences` counts as they pass."""
    for sentence in corpus:  # passes on while it counts, so that the corpus is read only once
        occurrences.update(map(predicate_of, sentence.triples))
        yield sentence


def _positives(
    corpus: SlicedCorpus, occurrences: Mapping[Predicate, int], settings: BuildSettings
) -> tuple[dict[str, list[Positive]], Counter[str]]:
    """The mentions of each slice that pass all filters, and the number dropped for each reason."""
    by_slice: dict[str, list[Positive]] = {}
    dropped: Counter[str] = Counter()
    for key in corpus.slices:
        by_slice[key] = []
        in_slice = corpus.read(key)
        faults = pair_faults(in_slice, settings)
        for sentence in in_slice:
            for mention in sentence.triples:
                # The first fault found is the one that is counted.
                is_vague = VAGUE_WORDS.issuperset(predicate_words(mention.relation, settings.language))
                fault = faults[mention.pair] or (VAGUE if is_vague else "")
                count, limits = occurrences[predicate_of(mention)], (settings.predicate_from, settings.predicate_below)
                fault = fault or count_fault(count, *limits, "occurrences of the predicate")
                if fault:
                    dropped[fault] += 1
                else:
                    by_slice[key].append(Positive(mention, sentence.slice, sentence.index))
    return by_slice, dropped


def _said(
    corpus: SlicedCorpus, by_slice: Mapping[str, Sequence[Positive]], index: PredicateIndex, lexicon: Lexicon
) -> dict[Pair, frozenset[str]]:
    """Keys of all predicates that the whole corpus has for each entity pair of a positive."""
    pairs = {positive.mention.pair for positive in chain.from_iterable(by_slice.values())}
    said: defaultdict[Pair, set[str]] = defaultdict(set)
    for key in corpus.slices:
        for sentence in corpus.read(key):
            for mention in sentence.triples:
                if mention.pair in pairs:
                    said[mention.pair].add(index.key(lexicon.words(mention.relation)))
    return {pair: frozenset(keys) for pair, keys in said.items()}


def _balanced(
    by_slice: Mapping[str, Sequence[Positive]], replacer: Replacer, settings: BuildSettings
) -> tuple[dict[str, list[BalancedPositive]], Counter[str]]:
    """The positives of each slice that have negatives, at most one a sentence, in random order."""
    balanced_by_slice: dict[str, list[BalancedPositive]] = {}
    dropped: Counter[str] = Counter()
    for key, in_slice in by_slice.items():
        balanced_by_slice[key] = []
        used_sentences: set[int] = set()
        draw = random.Random(f"{settings.seed} {key if in_slice else ''}")  # noqa: S311  # no secret
        for positive in draw.sample(list(in_slice), len(in_slice)):
            if positive.sentence in used_sentences:
                dropped[SAME_SENTENCE] += 1
                continue
            relations, senses = replacer.negatives(positive.mention)
            if not relations:
                # The sentence stays free for another positive of it.
                dropped[NO_NEGATIVE] += 1
                continue
            used_sentences.add(positive.sentence)
            question = partial(Proposition, slice=positive.slice, sentence=positive.sentence, senses=senses)
            if len(relations) > settings.negatives:
                relations = draw.sample(relations, settings.negatives)
            mentions = [positive.mention._replace(relation=relation) for relation in relations]
            balanced = BalancedPositive(
                question(positive.mention, label=True),
                tuple(question(mention, label=False, positive=positive.mention.relation) for mention in mentions),
                replacer.index.count(positive.mention),
                tuple(map(replacer.index.count, mentions)),
            )
            balanced_by_slice[key].append(balanced)
    return balanced_by_slice, dropped


def _sampled(
    items: Mapping[str, Sequence[BalancedPositive]], settings: BuildSettings
) -> tuple[dict[str, list[BalancedPositive]], Counter[str]]:
    shares = allotments({key: len(in_slice) for key, in_slice in items.items()}, settings.sample)
    sampled: dict[str, list[BalancedPositive]] = {}
    dropped: Counter[str] = Counter()
    for key, in_slice in items.items():
        draw = random.Random(f"{settings.seed} sample {key}")  # noqa: S311  # no secret
        if settings.frequency_map:
            sampled[key], beyond = mapped(in_slice, shares[key], draw)
            dropped += beyond
        else:
            sampled[key] = draw.sample(list(in_slice), min(shares[key], len(in_slice)))
            dropped[BEYOND] += len(in_slice) - len(sampled[key])
    return sampled, dropped
