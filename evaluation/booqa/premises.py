"""Premises for the questions: other statements about the same entities, and documents like a question."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hapax.evaluation.booqa.corpus import Mention, Proposition, Sentence
from hapax.evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple, predicate_words
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.remedies import Remedy, Setting


class DocumentIndex:
    """A TF-IDF index of the documents of a slice: unigrams and bigrams of words, or of characters in Chinese."""

    def __init__(self, sentences: Sequence[Sentence], language: str) -> None:
        if missing := missing_of("retrieval"):
            raise HapaxError(missing, Remedy("Or choose another {}.", Setting("options.context")))
        from sklearn.feature_extraction.text import TfidfVectorizer

        documents: defaultdict[str, list[Sentence]] = defaultdict(list)
        for sentence in sentences:
            if sentence.text.strip():
                documents[sentence.document].append(sentence)
        self._documents = list(documents.values())
        # Chinese is written without blanks, so words cannot be told by a pattern.
        self._vectors = TfidfVectorizer(ngram_range=(1, 2), analyzer="char" if language == "ZH" else "word")
        texts = []
        for document in self._documents:
            texts.append(" ".join(sentence.text for sentence in document))
        try:
            self._matrix = self._vectors.fit_transform(texts)
        except ValueError:  # no document has a word
            self._matrix = None

    def like(self, text: str, count: int) -> list[list[Sentence]]:
        """At most `count` documents that share a word with the text, the most similar first, ties in corpus order."""
        if self._matrix is None:
            return []
        # Rows have length 1, so the product is the cosine similarity.
        scores = (self._matrix @ self._vectors.transform([text]).T).toarray().ravel()
        places = sorted(range(len(scores)), key=lambda place: -scores[place])
        return [self._documents[place] for place in places[:count] if scores[place] > 0]


MOST = 3200
"""Most premises of a question, as in the release. From more, this many are drawn at random."""

DOCUMENTS = 5
"""Number of documents retrieved for a question, as in the release's English runs."""

LONGEST_DOCUMENT = 100
"""Most sentences used of a retrieved document."""


class Context(StrEnum):
    """The kind of premises."""

    TRIPLE = "triple"
    """A proposition about the same entities (bert3A in the release)."""

    SENTENCE = "sentence"
    """The sentence that contains it (bert2A)."""

    DOCUMENTS = "documents"
    """The sentences of documents similar to the question (bert1A)."""


@dataclass(frozen=True, slots=True)
class QuestionWithPremises:
    """A question with its premises."""

    question: Proposition
    alone: EntailmentPair
    """The question without a premise."""

    pairs: tuple[EntailmentPair, ...]
    occurrences: int
    """Number of occurrences of its predicate in the corpus with the same types."""


@dataclass(frozen=True, slots=True)
class PremiseSettings:
    """Settings for collecting premises: at most `most` of them, and `documents` retrieved for each question."""

    language: str = "EN"
    context: Context = Context.TRIPLE
    most: int = MOST
    documents: int = DOCUMENTS
    seed: int = 0


@dataclass
class _Gathered:
    """Results of a pass over the corpus: premises by question number, predicate counts, and sentences by slice."""

    premises: defaultdict[int, list[Triple]] = field(default_factory=lambda: defaultdict(list))
    occurrences: Counter[tuple[str, ...]] = field(default_factory=Counter)
    sentences: defaultdict[str, list[Sentence]] = field(default_factory=lambda: defaultdict(list))


def ask(
    questions: Sequence[Proposition], corpus: Iterable[Sentence], settings: PremiseSettings
) -> list[QuestionWithPremises]:
    """The questions with their premises, collected in one pass over the corpus.

    A premise is about the same two entities, in either order, in the same slice, with another predicate and in another
    sentence. For `Context.DOCUMENTS` all sentences of the questions' slices are kept in memory.
    """
    gathered = _gathered(questions, corpus, settings)
    retrieved = _retrieved(questions, gathered.sentences, settings) if settings.context is Context.DOCUMENTS else None
    with_premises = []
    for number, question in enumerate(questions):
        premises = list(dict.fromkeys(gathered.premises[number] if retrieved is None else retrieved[number]))
        # Seeded by question, so that a question has the same premises whatever precedes it.
        if len(premises) > settings.most:
            premises = random.Random(f"{settings.seed} {number}").sample(premises, settings.most)  # noqa: S311  # no secret
        alone = EntailmentPair(ANYTHING, question.mention.triple(settings.language), question.label, settings.language)
        pairs = tuple(replace(alone, premise=premise) for premise in premises)
        with_premises.append(
            QuestionWithPremises(
                question, alone, pairs, gathered.occurrences[_predicate(question.mention, settings.language)]
            )
        )
    return with_premises


def _gathered(questions: Sequence[Proposition], corpus: Iterable[Sentence], settings: PremiseSettings) -> _Gathered:
    numbers: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, question in enumerate(questions):
        # Both orders, but only once if the entities are equal.
        for pair in dict.fromkeys((_entities(question.mention), _entities(question.mention)[::-1])):
            numbers[(question.slice, *pair)].append(number)
    predicates = [predicate_words(question.mention.relation, settings.language) for question in questions]
    slices = {question.slice for question in questions} if settings.context is Context.DOCUMENTS else set()
    gathered = _Gathered()
    for sentence in corpus:
        if sentence.slice in slices:
            gathered.sentences[sentence.slice].append(sentence)
        for mention in sentence.triples:
            gathered.occurrences[_predicate(mention, settings.language)] += 1
            for number in numbers.get((sentence.slice, *_entities(mention)), ()):
                # The same predicate about the same entities would be the question itself.
                is_reworded = predicate_words(mention.relation, settings.language) != predicates[number]
                if is_reworded and sentence.index != questions[number].sentence:
                    gathered.premises[number].append(_premise(mention, sentence, settings))
    return gathered


def _premise(mention: Mention, sentence: Sentence, settings: PremiseSettings) -> Triple:
    if settings.context is Context.TRIPLE:
        return mention.triple(settings.language)
    if not sentence.text:
        raise HapaxError(
            f"A sentence of document {sentence.document} has no text, so it cannot be a premise.",
            Remedy('Give each line of the corpus a "sentence", or use {} triple.', Setting("options.context")),
        )
    return whole(sentence.text)


def whole(text: str) -> Triple:
    """A sentence in place of a triple, as the release passes it to a model."""
    return Triple(text, "", "")


def _entities(mention: Mention) -> tuple[str, str]:
    return mention.subject.casefold(), mention.object.casefold()


def _predicate(mention: Mention, language: str) -> tuple[str, ...]:
    return (*mention.types, *predicate_words(mention.relation, language))


def _retrieved(
    questions: Sequence[Proposition], by_slice: Mapping[str, Sequence[Sentence]], settings: PremiseSettings
) -> list[list[Triple]]:
    """The sentences of the documents most similar to each question, without the question's own sentence."""
    # One index for each slice: documents of other days are no premises.
    indexes = {key: DocumentIndex(sentences, settings.language) for key, sentences in by_slice.items()}
    premises: list[list[Triple]] = []
    for question in questions:
        premises.append([])
        index = indexes.get(question.slice)
        if index is None:
            continue
        for document in index.like(question.proposition(settings.language), settings.documents):
            for sentence in document[:LONGEST_DOCUMENT]:
                if sentence.index != question.sentence:
                    premises[-1].append(whole(sentence.text))
    return premises
