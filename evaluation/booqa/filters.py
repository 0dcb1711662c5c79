"""Filters that decide which mentions become questions, and the reasons for dropping the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from hapax.evaluation.booqa.corpus import Mention, Pair, Sentence
from hapax.evaluation.entailment.wording import predicate_words
from hapax.grammar.arguments import checked

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


class CountedUnit(StrEnum):
    """The unit in which mentions of an entity pair are counted."""

    TRIPLE = "triple"
    SENTENCE = "sentence"
    DOCUMENT = "document"


@checked
@dataclass(frozen=True)
class CountRange:
    """A range of counts: at least `start` and less than `below`, where 0 means no limit."""

    start: int
    below: int

    def fault(self, count: int, noun: str) -> str:
        """`too few NOUN`, `too many NOUN`, or an empty text if the count is in the range."""
        if count < self.start:
            return f"too few {noun}"
        return f"too many {noun}" if 0 < self.below <= count else ""


Predicate = tuple[str, str, str]
"""A relation with the types of its arguments."""


def predicate_of(mention: Mention) -> Predicate:
    """The typed predicate of a mention, by which occurrences are counted."""
    return (mention.relation, *mention.types)


def pair_faults(sentences: Sequence[Sentence], limits: CountRange, unit: CountedUnit) -> dict[Pair, str]:
    """The reason why each entity pair of a slice is not asked about, or an empty text if it is."""
    mentions: defaultdict[Pair, set[object]] = defaultdict(set)
    predicates: defaultdict[Pair, set[str]] = defaultdict(set)
    for sentence in sentences:
        for number, mention in enumerate(sentence.triples):
            # What is counted once: the occurrence, its sentence, or its document.
            mark_by_unit: dict[CountedUnit, object] = {
                CountedUnit.TRIPLE: (sentence.index, number),
                CountedUnit.SENTENCE: sentence.index,
            }
            mentions[mention.pair].add(mark_by_unit.get(unit, sentence.document))
            predicates[mention.pair].add(mention.relation.casefold())
    faults: dict[Pair, str] = {}
    for pair, counted in mentions.items():
        # The first two parts are the entities, the others their types.
        if not PRONOUNS.isdisjoint(pair[:2]):
            faults[pair] = PRONOUN
            continue
        # The range holds for different predicates, too: many mentions of a single predicate give little to judge by.
        count_fault = limits.fault(len(counted), "mentions")
        faults[pair] = count_fault or limits.fault(len(predicates[pair]), "different predicates")
    return faults


def is_vague(relation: str, language: str) -> bool:
    """True if all words of the relation are in `VAGUE_WORDS`."""
    return VAGUE_WORDS.issuperset(predicate_words(relation, language))


class Positive(NamedTuple):
    """A mention that can be asked about, with its slice and the index of its sentence."""

    mention: Mention
    slice: str
    sentence: int


def positives(
    sentences: Sequence[Sentence],
    faults: Mapping[Pair, str],
    occurrences: Mapping[Predicate, int],
    limits: CountRange,
    language: str,
) -> tuple[list[Positive], Counter[str]]:
    """The mentions of a slice that pass all filters, and the number dropped for each reason."""
    passed: list[Positive] = []
    dropped: Counter[str] = Counter()
    for sentence in sentences:
        for mention in sentence.triples:
            fault = faults[mention.pair]
            # The first fault found is the one that is counted.
            if not fault and is_vague(mention.relation, language):
                fault = VAGUE
            fault = fault or limits.fault(occurrences[predicate_of(mention)], "occurrences of the predicate")
            if fault:
                dropped[fault] += 1
            else:
                passed.append(Positive(mention, sentence.slice, sentence.index))
    return passed, dropped
