"""From a corpus of triples to dev and test, step by step, with what each step dropped and why (section 5)."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.booqa.corpus import DAYS, Pair, Sentence, SlicedCorpus, sentences
from evaluation.booqa.filters import Between, Positive, Predicate, Unit, pair_faults, positives, predicate_of
from evaluation.booqa.negatives import PredicateIndex, Replacer
from evaluation.booqa.records import DEV, REPORT, TEST, Question, write_questions
from evaluation.booqa.sampling import Item, allotments, drawn, halves, mapped, with_negatives
from evaluation.entailment.lexicon import Lexicon, SenseChoice
from grammar.errors import HapaxError

NO_NEGATIVE, SAME_SENTENCE = "no negative found", "another question from its sentence"


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """The release's, by reading its code and README."""

    language: str = "EN"
    days: int = DAYS
    unit: Unit = Unit.DOCUMENT
    pair: Between = field(default_factory=lambda: Between(15, 30))
    predicate: Between = field(default_factory=lambda: Between(30, 0))
    negatives: int = 2
    sample: int = 40_000
    frequency_map: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """Where hyponyms come from, and which sense of a word is meant."""

    lexicon: Lexicon
    choose: SenseChoice


class Step(NamedTuple):
    """One step's outcome: how many of what are left, and how many it dropped for which reason."""

    name: str
    kept: int
    noun: str
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Built:
    """The questions of dev and test, and the steps that led there."""

    sets: Mapping[str, Sequence[Question]]
    slices: Mapping[str, str]
    steps: Sequence[Step]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Step, what is left, and what was dropped."""
        for step in self.steps:
            told = ", ".join(f"{count} {reason}" for reason, count in step.dropped.items())
            yield step.name, f"{step.kept} {step.noun}", told

    def to_json(self, settings: BuildSettings) -> dict[str, Any]:
        """Settings, steps, and how many questions each set has."""
        return {
            "settings": {**asdict(settings), "pair": list(settings.pair), "predicate": list(settings.predicate)},
            "steps": [{**step._asdict(), "dropped": dict(step.dropped)} for step in self.steps],
            "sets": {
                name: {
                    "positives": sum(one.label for one in questions),
                    "negatives": sum(not one.label for one in questions),
                    "slices": sum(home == name for home in self.slices.values()),
                }
                for name, questions in self.sets.items()
            },
        }


def build(paths: Sequence[Path], words: Words, settings: BuildSettings, scratch: Path) -> Built:
    """Read the corpus once into a file for each slice below `scratch`, then work slice by slice.

    In memory are one slice, the occurrences of predicates, and what the filters leave. Raises HapaxError for a corpus
    without a triple that has a date.
    """
    dropped: Counter[str] = Counter()
    occurrences: Counter[Predicate] = Counter()
    corpus = SlicedCorpus.of(_counting(sentences(paths, settings.days, dropped), occurrences), scratch)
    if not occurrences:
        raise HapaxError(_nothing_to_build_from(paths, dropped))
    found, filtered = _positives(corpus, occurrences, settings)
    index = PredicateIndex(occurrences, words.lexicon)
    replacer = Replacer(
        words.lexicon, words.choose, index, _said(corpus, found, index, words.lexicon), settings.predicate
    )
    with_some = {key: _items(some, replacer, settings) for key, some in found.items()}
    sampled, beyond = _sampled({key: items for key, (items, _) in with_some.items()}, settings)
    homes = halves({key: len(items) for key, items in sampled.items()}, random.Random(f"{settings.seed} halves"))  # noqa: S311  # no secret
    sets = {
        name: [one for key in sorted(sampled) if homes[key] == name for item in sampled[key] for one in item.questions]
        for name in (DEV, TEST)
    }
    steps = (
        Step("time slices", occurrences.total(), "triples", dict(dropped)),
        Step("entity pairs and predicates", sum(map(len, found.values())), "positives", dict(filtered)),
        Step(
            "WordNet", sum(len(items) for items, _ in with_some.values()), "positives with negatives", _sum(with_some)
        ),
        Step("replacements", sum(map(_negatives, with_some.values())), "negatives", dict(replacer.dropped)),
        Step("sample", sum(map(len, sampled.values())), "positives", dict(beyond)),
        *(Step(name, sum(one.label for one in some), "positives", {}) for name, some in sets.items()),
    )
    return Built(sets, homes, steps)


def build_into(folder: Path, paths: Sequence[Path], words: Words, settings: BuildSettings) -> Built:
    """Build, and write `dev.jsonl`, `test.jsonl` and `report.json`. The slices are on disk only meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="slices-") as scratch:
        built = build(paths, words, settings, Path(scratch))
    for name, questions in built.sets.items():
        write_questions(questions, folder / f"{name}.jsonl", settings.language)
    text = json.dumps(built.to_json(settings), ensure_ascii=False, indent=2)
    (folder / REPORT).write_text(text + "\n", "utf-8")
    return built


def _nothing_to_build_from(paths: Sequence[Path], dropped: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
    left_out = f" that can be used (left out: {told})" if told else ""
    return f"{', '.join(map(str, paths))}: no triple{left_out}. Name a corpus; docs/booqa.md tells its form."


def _counting(found: Iterable[Sentence], occurrences: Counter[Predicate]) -> Iterator[Sentence]:
    for sentence in found:
        occurrences.update(map(predicate_of, sentence.triples))
        yield sentence


def _positives(
    corpus: SlicedCorpus, occurrences: Mapping[Predicate, int], settings: BuildSettings
) -> tuple[dict[str, list[Positive]], Counter[str]]:
    found: dict[str, list[Positive]] = {}
    dropped: Counter[str] = Counter()
    for key in corpus.slices:
        some = corpus.read(key)
        faults = pair_faults(some, settings.pair, settings.unit)
        found[key], filtered = positives(some, faults, occurrences, settings.predicate, settings.language)
        dropped += filtered
    return found, dropped


def _said(
    corpus: SlicedCorpus, found: Mapping[str, Sequence[Positive]], index: PredicateIndex, lexicon: Lexicon
) -> dict[Pair, frozenset[str]]:
    """What the whole corpus says of the pairs that are asked about."""
    pairs = {one.mention.pair for some in found.values() for one in some}
    said: defaultdict[Pair, set[str]] = defaultdict(set)
    for key in corpus.slices:
        for one in (one for sentence in corpus.read(key) for one in sentence.triples):
            if one.pair in pairs:
                said[one.pair].add(index.key(lexicon.words(one.relation)))
    return {pair: frozenset(keys) for pair, keys in said.items()}


def _items(found: Sequence[Positive], replacer: Replacer, settings: BuildSettings) -> tuple[list[Item], Counter[str]]:
    """The positives of one slice that have negatives, one for each sentence, in an order drawn."""
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    taken: set[int] = set()
    draw = random.Random(f"{settings.seed} {found[0].slice if found else ''}")  # noqa: S311  # no secret
    for one in draw.sample(list(found), len(found)):
        if one.sentence in taken:
            dropped[SAME_SENTENCE] += 1
            continue
        item = _item(one, replacer)
        if item is None:
            dropped[NO_NEGATIVE] += 1
            continue
        taken.add(one.sentence)
        items.append(with_negatives(item, settings.negatives, draw))
    return items, dropped


def _item(one: Positive, replacer: Replacer) -> Item | None:
    negatives = replacer.negatives(one.mention)
    if not negatives.relations:
        return None
    question = partial(Question, slice=one.slice, sentence=one.sentence, senses=negatives.senses)
    mentions = [one.mention._replace(relation=relation) for relation in negatives.relations]
    return Item(
        question(one.mention, label=True),
        tuple(question(each, label=False, positive=one.mention.relation) for each in mentions),
        replacer.index.count(one.mention),
        tuple(map(replacer.index.count, mentions)),
    )


def _sampled(
    items: Mapping[str, Sequence[Item]], settings: BuildSettings
) -> tuple[dict[str, list[Item]], Counter[str]]:
    shares = allotments({key: len(some) for key, some in items.items()}, settings.sample)
    take = mapped if settings.frequency_map else drawn
    sampled: dict[str, list[Item]] = {}
    dropped: Counter[str] = Counter()
    for key, some in items.items():
        draw = random.Random(f"{settings.seed} sample {key}")  # noqa: S311  # no secret
        sampled[key], beyond = take(some, shares[key], draw)
        dropped += beyond
    return sampled, dropped


def _sum(with_some: Mapping[str, tuple[Sequence[Item], Counter[str]]]) -> dict[str, int]:
    return dict(sum((dropped for _, dropped in with_some.values()), Counter[str]()))


def _negatives(found: tuple[Sequence[Item], Counter[str]]) -> int:
    return sum(len(item.negatives) for item in found[0])
