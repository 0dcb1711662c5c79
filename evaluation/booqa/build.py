"""Build the dev and test questions from a corpus of triples, and count what each step drops (section 5)."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple

from hapax.evaluation.booqa.corpus import DAYS, Pair, Sentence, SliceDays, SlicedCorpus, sentences
from hapax.evaluation.booqa.filters import (
    CountedUnit,
    CountRange,
    Positive,
    Predicate,
    pair_faults,
    positives,
    predicate_of,
)
from hapax.evaluation.booqa.negatives import PredicateIndex, Replacer, senses_by_critic, senses_from_file
from hapax.evaluation.booqa.records import DEV, REPORT, TEST, Proposition, write_questions
from hapax.evaluation.booqa.sampling import BalancedPositive, allotments, drawn, halves, mapped, with_negatives
from hapax.evaluation.entailment.lexicon import Lexicon, SenseChoice, every_sense, first_sense
from hapax.evaluation.entailment.opening import Language, ScorerOptions, ScorerSession
from hapax.evaluation.entailment.wordnet_folder import open_lexicon
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, Seed
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import replace_file, unfinished
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.protocols import CRITIC

NO_NEGATIVE, SAME_SENTENCE = "no negative found", "another question from its sentence"
UNLIKE = "negative of a far other frequency"


@checked
@dataclass(frozen=True)
class BuildSettings:
    """Settings of a build. The defaults are the release's, according to its code and README.

    `frequency_ratio` is the release's `freq_multiples_cap`, which was 10 for Chinese. `left_out`: corpora whose
    sentences are no part of this one, such as that from which a graph was built that is to answer the questions.
    """

    language: Language = "EN"
    days: SliceDays = DAYS
    unit: Annotated[CountedUnit, Option("Unit in which mentions of an entity pair are counted.")] = CountedUnit.DOCUMENT
    pair: CountRange = field(default_factory=lambda: CountRange(15, 30))
    predicate: CountRange = field(default_factory=lambda: CountRange(30, 0))
    negatives: Annotated[int, Option("Most negatives of a positive.", least=1)] = 2
    sample: Annotated[int, Option("Number of positives in dev and test together.", least=1)] = 40_000
    frequency_map: Annotated[bool, Option("Draw negatives that are as frequent as positives.", switch=True)] = True
    seed: Seed = 0
    frequency_ratio: Annotated[
        float,
        Option(
            "Most times that a positive's predicate may be as frequent as a negative's, or the reverse; 0: no limit.",
            least=0,
        ),
    ] = 0.0
    left_out: Annotated[
        tuple[Path, ...],
        Option(
            "Triples whose sentences are not used, such as the corpus of a graph that is to answer; repeatable.",
            path="file",
            exists=True,
        ),
    ] = ()


@checked
@dataclass(frozen=True)
class QuestionWords:
    """WordNet and the choice of a word's sense, for the negatives of `build_questions`.

    `lexicon`: a WordNet such as oewn:2024; empty: the only one for the language. `senses`: `first` (in WordNet), `all`,
    `critic` (the best fit in the sentence, by `model`), or a file.
    """

    lexicon: str = ""
    senses: str = "first"
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

    def result(self, settings: BuildSettings) -> ExperimentResult:
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
        return ExperimentResult([ResultTable("", ("step", "left", "dropped"), rows)], figures)


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
    used = sentences(paths, settings.days, dropped, settings.left_out)
    corpus = SlicedCorpus.of(_counting(used, occurrences), scratch)
    if not occurrences:
        reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        left_out = f" that can be used (left out: {reasons})" if reasons else ""
        names = ", ".join(map(str, paths))
        raise HapaxError(f"{names}: no triple{left_out}. Name a corpus; docs/booqa.md describes its format.")
    positives_by_slice, filtered = _positives(corpus, occurrences, settings)
    index = PredicateIndex(occurrences, lexicon)
    replacer = Replacer(lexicon, choose, index, _said(corpus, positives_by_slice, index, lexicon), settings.predicate)
    balanced_by_slice, unused = _balanced(positives_by_slice, replacer, settings)
    sampled, beyond = _sampled(balanced_by_slice, settings)
    sizes = {key: len(in_slice) for key, in_slice in sampled.items()}
    # Whole slices go to dev or test, so that no question has premises in the other set.
    homes = halves(sizes, random.Random(f"{settings.seed} halves"))  # noqa: S311  # no secret
    sets: dict[str, list[Proposition]] = {DEV: [], TEST: []}
    for key in sorted(sampled):
        for positive in sampled[key]:
            sets[homes[key]] += positive.questions
    balanced = list(chain.from_iterable(balanced_by_slice.values()))
    negatives = sum(len(positive.negatives) for positive in balanced)
    set_steps = []
    for name, chosen in sets.items():
        labels = [question.label for question in chosen]
        set_steps.append(Step(name, sum(labels), "positives", {}))
    steps = (
        Step("time slices", occurrences.total(), "triples", dict(dropped)),
        Step("entity pairs and predicates", sum(map(len, positives_by_slice.values())), "positives", dict(filtered)),
        Step("WordNet", len(balanced), "positives with negatives", dict(unused)),
        Step("replacements", negatives, "negatives", dict(replacer.dropped)),
        Step("sample", sum(map(len, sampled.values())), "positives", dict(beyond)),
        *set_steps,
    )
    return Built(sets, homes, steps)


@checked
@extras_named()
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
    lexicon = open_lexicon(words.lexicon, settings.language)
    choose = _sense_choice(words, kb, opening)
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the output: a corpus may be too large for the system's temporary folder.
    with unfinished(folder / "slices") as scratch:
        scratch.mkdir()
        built = build([Path(path) for path in paths], lexicon, choose, settings, scratch)
    for name, questions in built.sets.items():
        write_questions(questions, folder / f"{name}.jsonl", settings.language)
    evaluation = Evaluation(built, built.result(settings))
    replace_file(folder / REPORT, json.dumps(evaluation.to_json(), ensure_ascii=False, indent=2) + "\n")
    return evaluation


def _sense_choice(words: QuestionWords, kb: KnowledgeBase, opening: OpeningOptions | None) -> SenseChoice:
    choices: dict[str, SenseChoice] = {"first": first_sense, "all": every_sense}
    # Apart from the others, since only this choice opens a model.
    if words.senses == "critic":
        return senses_by_critic(ScorerSession(kb, ScorerOptions(words.model), opening).measure(CRITIC))
    # Any other name is that of a file.
    return choices[words.senses] if words.senses in choices else senses_from_file(Path(words.senses))


def _counting(corpus: Iterable[Sentence], occurrences: Counter[Predicate]) -> Iterator[Sentence]:
    """The sentences of the corpus, which `occurrences` counts as they pass."""
    for sentence in corpus:  # passes on while it counts, so that the corpus is read only once
        occurrences.update(map(predicate_of, sentence.triples))
        yield sentence


def _positives(
    corpus: SlicedCorpus, occurrences: Mapping[Predicate, int], settings: BuildSettings
) -> tuple[dict[str, list[Positive]], Counter[str]]:
    by_slice: dict[str, list[Positive]] = {}
    dropped: Counter[str] = Counter()
    for key in corpus.slices:
        in_slice = corpus.read(key)
        faults = pair_faults(in_slice, settings.pair, settings.unit)
        by_slice[key], filtered = positives(in_slice, faults, occurrences, settings.predicate, settings.language)
        dropped += filtered
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
            negatives = replacer.negatives(positive.mention)
            if not negatives.relations:
                # The sentence stays free for another positive of it.
                dropped[NO_NEGATIVE] += 1
                continue
            # Taken even if the item is dropped below: the sentence had its chance.
            used_sentences.add(positive.sentence)
            question = partial(Proposition, slice=positive.slice, sentence=positive.sentence, senses=negatives.senses)
            mentions = [positive.mention._replace(relation=relation) for relation in negatives.relations]
            balanced = BalancedPositive(
                question(positive.mention, label=True),
                tuple(question(mention, label=False, positive=positive.mention.relation) for mention in mentions),
                replacer.index.count(positive.mention),
                tuple(map(replacer.index.count, mentions)),
            )
            # Before the ratio is checked, which is of the negatives that are really used.
            chosen = with_negatives(balanced, settings.negatives, draw)
            if settings.frequency_ratio and chosen.frequency_ratio > settings.frequency_ratio:
                dropped[UNLIKE] += 1
            else:
                balanced_by_slice[key].append(chosen)
    return balanced_by_slice, dropped


def _sampled(
    items: Mapping[str, Sequence[BalancedPositive]], settings: BuildSettings
) -> tuple[dict[str, list[BalancedPositive]], Counter[str]]:
    shares = allotments({key: len(in_slice) for key, in_slice in items.items()}, settings.sample)
    take = mapped if settings.frequency_map else drawn
    sampled: dict[str, list[BalancedPositive]] = {}
    dropped: Counter[str] = Counter()
    for key, in_slice in items.items():
        draw = random.Random(f"{settings.seed} sample {key}")  # noqa: S311  # no secret
        sampled[key], beyond = take(in_slice, shares[key], draw)
        dropped += beyond
    return sampled, dropped
