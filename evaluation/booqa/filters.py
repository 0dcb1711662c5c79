"""Which mentions become questions: entity pairs, vague predicates, rare ones. Each drop has its reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from evaluation.booqa.corpus import Mention, Pair, Sentence
from evaluation.entailment.wording import predicate_words

PRONOUN, VAGUE = "pronoun", "vague predicate"

_PRONOUNS = """
    我 你 他 她 它 他们 她们 它们 有人 自己 人
    i you he she it them someone somebody one myself yourself yourselves himself herself themselves people man woman her
    him his hers our ours your yours their theirs its anyone anybody every everyone everybody
"""
PRONOUNS = frozenset(_PRONOUNS.split())
"""As in the release."""

_VAGUE_WORDS = "是 还是 也是 都是 有 的 X x 's ' has have had is are was were of in on at be for with"
VAGUE_WORDS = frozenset(_VAGUE_WORDS.split())
"""As in the release: a predicate of such words alone asks nothing. X is the place of a Chinese object."""


class Unit(StrEnum):
    """What mentions are counted by: each once, once a sentence, or once a document."""

    TRIPLE = "triple"
    SENTENCE = "sentence"
    DOCUMENT = "document"


class Between(NamedTuple):
    """A count from `start`, and below `below`; 0: without limit."""

    start: int
    below: int

    def fault(self, count: int, noun: str) -> str:
        """`too few mentions`, `too many mentions`, or nothing."""
        if count < self.start:
            return f"too few {noun}"
        return f"too many {noun}" if 0 < self.below <= count else ""


Predicate = tuple[str, str, str]
"""A relation with the types of its arguments."""


def predicate_of(one: Mention) -> Predicate:
    """What occurrences are counted by."""
    return (one.relation, *one.types)


def pair_faults(found: Sequence[Sentence], wanted: Between, unit: Unit) -> dict[Pair, str]:
    """Of each entity pair in a slice, why it is not asked about; empty where it is.

    It takes so many mentions, and as many different predicates, or else there is too little to judge by. A pair with a
    pronoun is none.
    """
    mentions: defaultdict[Pair, set[object]] = defaultdict(set)
    predicates: defaultdict[Pair, set[str]] = defaultdict(set)
    for sentence in found:
        for number, one in enumerate(sentence.triples):
            marks = {Unit.TRIPLE: (sentence.index, number), Unit.SENTENCE: sentence.index}
            mentions[one.pair].add(marks.get(unit, sentence.document))
            predicates[one.pair].add(one.relation.casefold())
    return {
        pair: PRONOUN
        if not PRONOUNS.isdisjoint(pair[:2])
        else wanted.fault(len(marks), "mentions") or wanted.fault(len(predicates[pair]), "different predicates")
        for pair, marks in mentions.items()
    }


def is_vague(relation: str, language: str) -> bool:
    """Whether every word is one of `VAGUE_WORDS`."""
    return VAGUE_WORDS.issuperset(predicate_words(relation, language))


class Positive(NamedTuple):
    """A mention that can be asked about, and where it stands."""

    mention: Mention
    slice: str
    sentence: int


def positives(
    found: Sequence[Sentence],
    faults: Mapping[Pair, str],
    occurrences: Mapping[Predicate, int],
    wanted: Between,
    language: str,
) -> tuple[list[Positive], Counter[str]]:
    """The mentions of a slice that no filter drops, and how many each one dropped."""
    kept: list[Positive] = []
    dropped: Counter[str] = Counter()
    for sentence in found:
        for one in sentence.triples:
            fault = faults[one.pair]
            if not fault and is_vague(one.relation, language):
                fault = VAGUE
            fault = fault or wanted.fault(occurrences[predicate_of(one)], "occurrences of the predicate")
            if fault:
                dropped[fault] += 1
            else:
                kept.append(Positive(one, sentence.slice, sentence.index))
    return kept, dropped
