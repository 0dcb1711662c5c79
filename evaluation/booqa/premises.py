"""What a corpus says of a question's two entities in its slice: the premises that may entail it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from evaluation.booqa.corpus import Mention, Sentence
from evaluation.booqa.records import Question
from evaluation.booqa.retrieval import Library
from evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple
from evaluation.entailment.wording import predicate_words
from grammar.errors import HapaxError

MOST = 3200
"""Premises of a question at most, as in the release; of more, so many are drawn."""

DOCUMENTS = 5
"""Documents that are searched for a question, as the release's English runs do."""

LONGEST_DOCUMENT = 100
"""Sentences of such a document."""


class Context(StrEnum):
    """What a premise is: a proposition about the same entities, the sentence it is from, or sentences of documents like
    the question (the released bert3A, bert2A and bert1A)."""

    TRIPLE = "triple"
    SENTENCE = "sentence"
    DOCUMENTS = "documents"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its premises, and how often its predicate occurs in the corpus with these types.

    `alone`: what is asked without a premise.
    """

    question: Question
    alone: EntailmentPair
    pairs: tuple[EntailmentPair, ...]
    occurrences: int


@dataclass(frozen=True, slots=True)
class Asking:
    """How premises are found."""

    language: str = "EN"
    context: Context = Context.TRIPLE
    most: int = MOST
    documents: int = DOCUMENTS
    seed: int = 0


@dataclass
class _Gathered:
    """What one pass over the corpus finds for the questions."""

    premises: defaultdict[int, list[Triple]] = field(default_factory=lambda: defaultdict(list))
    occurrences: Counter[tuple[str, ...]] = field(default_factory=Counter)
    sentences: defaultdict[str, list[Sentence]] = field(default_factory=lambda: defaultdict(list))


def ask(questions: Sequence[Question], corpus: Iterable[Sentence], asking: Asking) -> list[Asked]:
    """The questions with their premises, by one pass over the corpus.

    A premise speaks of the same two entities in the same slice, in either order, by other words and in another sentence
    than the question's. For `documents` all sentences of the questions' slices are kept in memory.
    """
    gathered = _gathered(questions, corpus, asking)
    retrieved = _retrieved(questions, gathered.sentences, asking) if asking.context is Context.DOCUMENTS else None
    found = []
    for number, one in enumerate(questions):
        premises = list(dict.fromkeys(gathered.premises[number] if retrieved is None else retrieved[number]))
        if len(premises) > asking.most:
            premises = random.Random(f"{asking.seed} {number}").sample(premises, asking.most)  # noqa: S311  # no secret
        alone = EntailmentPair(ANYTHING, one.mention.told(asking.language), one.label, asking.language)
        pairs = tuple(replace(alone, premise=premise) for premise in premises)
        found.append(Asked(one, alone, pairs, gathered.occurrences[_predicate(one.mention, asking.language)]))
    return found


def _gathered(questions: Sequence[Question], corpus: Iterable[Sentence], asking: Asking) -> _Gathered:
    wanted: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, one in enumerate(questions):
        for pair in dict.fromkeys((_entities(one.mention), _entities(one.mention)[::-1])):
            wanted[(one.slice, *pair)].append(number)
    own = [predicate_words(one.mention.relation, asking.language) for one in questions]
    slices = {one.slice for one in questions} if asking.context is Context.DOCUMENTS else set()
    found = _Gathered()
    for sentence in corpus:
        if sentence.slice in slices:
            found.sentences[sentence.slice].append(sentence)
        for mention in sentence.triples:
            found.occurrences[_predicate(mention, asking.language)] += 1
            for number in wanted.get((sentence.slice, *_entities(mention)), ()):
                other = predicate_words(mention.relation, asking.language) != own[number]
                if other and sentence.index != questions[number].sentence:
                    found.premises[number].append(_premise(mention, sentence, asking))
    return found


def _premise(one: Mention, sentence: Sentence, asking: Asking) -> Triple:
    if asking.context is Context.TRIPLE:
        return one.told(asking.language)
    if not sentence.text:
        raise HapaxError(
            f"A sentence of document {sentence.document} has no text, so it cannot be a premise. Give each line of the "
            'corpus its "sentence", or leave --context at triple.'
        )
    return whole(sentence.text)


def whole(text: str) -> Triple:
    """A sentence in the place of a triple, as the release hands it to a model."""
    return Triple(text, "", "")


def _entities(one: Mention) -> tuple[str, str]:
    return one.subject.casefold(), one.object.casefold()


def _predicate(one: Mention, language: str) -> tuple[str, ...]:
    return (*one.types, *predicate_words(one.relation, language))


def _retrieved(
    questions: Sequence[Question], by_slice: Mapping[str, Sequence[Sentence]], asking: Asking
) -> list[list[Triple]]:
    """The sentences of the documents most like each question, the question's own left out."""
    libraries = {key: Library(some, asking.language) for key, some in by_slice.items()}
    return [
        [
            whole(sentence.text)
            for document in libraries[one.slice].like(one.proposition(asking.language), asking.documents)
            for sentence in document[:LONGEST_DOCUMENT]
            if sentence.index != one.sentence
        ]
        if one.slice in libraries
        else []
        for one in questions
    ]
