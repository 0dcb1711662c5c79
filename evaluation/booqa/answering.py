"""Answers to BoOQA questions by the premises of their slice, and their scores."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice, product
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from hapax.evaluation.booqa.corpus import Mention, Proposition, Sentence, read_set, sentences
from hapax.evaluation.entailment import entailment_report as report
from hapax.evaluation.entailment.entailment_report import refuse_one_label, write_curves
from hapax.evaluation.entailment.pairs import (
    ANYTHING,
    EntailmentPair,
    Triple,
    VisibleSides,
    predicate_words,
    write_levy_holt,
)
from hapax.evaluation.entailment.published_graphs import NEIGHBOURS, GraphScorer, Neighbours, Smoothing, read_neighbours
from hapax.evaluation.entailment.scorers import (
    SCORERS,
    Language,
    ScorerOptions,
    ScorerSession,
)
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, file_name
from hapax.grammar.arguments import ArgumentRejected, checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.options import Option
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.files.unfinished import replace_file
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import DeferralCollector


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
    frequency: float
    """1 - 1/n for a predicate that the corpus has n times with the same types, else 0: a baseline for artefacts."""


@dataclass(frozen=True, slots=True)
class PremiseSettings:
    """Settings for collecting premises: at most `most` of them, and `documents` retrieved for each question."""

    language: str = "EN"
    context: Context = Context.TRIPLE
    most: int = MOST
    documents: int = DOCUMENTS
    seed: int = 0


def ask(
    questions: Sequence[Proposition], corpus: Iterable[Sentence], settings: PremiseSettings
) -> list[QuestionWithPremises]:
    """The questions with their premises, collected in one pass over the corpus.

    A premise is about the same two entities, in either order, in the same slice, with another predicate and in another
    sentence. For `Context.DOCUMENTS` all sentences of the questions' slices are kept in memory.
    """
    numbers = _by_entities(questions)
    predicates = [_predicate(question.mention, settings.language) for question in questions]
    by_slice: dict[str, list[Sentence]] = {question.slice: [] for question in questions}
    premises: list[list[Triple]] = [[] for _ in questions]
    occurrences: Counter[tuple[str, ...]] = Counter()
    for sentence in corpus:
        if settings.context is Context.DOCUMENTS and sentence.slice in by_slice:
            by_slice[sentence.slice].append(sentence)
        for mention in sentence.triples:
            predicate = _predicate(mention, settings.language)
            occurrences[predicate] += 1
            for number in numbers.get((sentence.slice, *_entities(mention)), ()):
                # The same words about the same entities would be the question itself.
                is_reworded = predicate[2:] != predicates[number][2:]
                if is_reworded and sentence.index != questions[number].sentence:
                    premises[number].append(_premise(mention, sentence, settings))
    if settings.context is Context.DOCUMENTS:
        premises = _retrieved(questions, by_slice, settings)
    with_premises = []
    for number, (question, found) in enumerate(zip(questions, premises, strict=True)):
        distinct = list(dict.fromkeys(found))
        # Seeded by question, so that a question has the same premises whatever precedes it.
        if len(distinct) > settings.most:
            distinct = random.Random(f"{settings.seed} {number}").sample(distinct, settings.most)  # noqa: S311  # no secret
        alone = EntailmentPair(ANYTHING, question.mention.triple(settings.language), question.label, settings.language)
        pairs = tuple(replace(alone, premise=premise) for premise in distinct)
        count = occurrences[predicates[number]]
        with_premises.append(QuestionWithPremises(question, alone, pairs, 1 - 1 / count if count else 0.0))
    return with_premises


def _by_entities(questions: Sequence[Proposition]) -> dict[tuple[str, str, str], list[int]]:
    """Numbers of the questions by slice and entities, in either order."""
    numbers: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, question in enumerate(questions):
        # Only once if the entities are equal.
        for pair in dict.fromkeys((_entities(question.mention), _entities(question.mention)[::-1])):
            numbers[question.slice, *pair].append(number)
    return numbers


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
        index = indexes[question.slice]
        for document in index.like(question.proposition(settings.language), settings.documents):
            for sentence in document[:LONGEST_DOCUMENT]:
                if sentence.index != question.sentence:
                    premises[-1].append(whole(sentence.text))
    return premises


class AnswerScorer(NamedTuple):
    """A scorer of questions by its name in tables; only the order of the scores matters."""

    name: str
    answers: Callable[[Sequence[QuestionWithPremises]], list[float]]


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """The scores of a method on a set, and its figures."""

    result: report.SubsetResult
    truth: tuple[bool, ...]
    scores: tuple[float, ...]


@checked
def write_question_pairs(sets: Mapping[str, Sequence[QuestionWithPremises]], folder: str | Path) -> int:
    """Write each premise with its question in LevyHolt's format, a file for each set; return the number of pairs.

    Commas, tabs and line breaks in arguments, which the format cannot represent, become blanks.
    """
    count = 0
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, questions in sets.items():
        pairs = []
        for pair in chain.from_iterable(question.pairs for question in questions):
            sides = _plain(pair.premise), _plain(pair.hypothesis)
            pairs.append(EntailmentPair(*sides, pair.entailed, pair.language))
        write_levy_holt(pairs, Path(folder) / f"pairs-{name}.txt")
        count += len(pairs)
    return count


def _plain(triple: Triple) -> Triple:
    parts = (triple.subject, triple.predicate, triple.object)
    return Triple(*(" ".join(part.replace(",", " ").split()) for part in parts))


@checked
@dataclass(frozen=True)
class AnswerOptions(ScorerOptions):
    """Scorers by name, their options, and the premises that they see.

    `premises`: most of a question. `smooth_premise` and `smooth_hypothesis`: stand-ins (hypernym, hyponym, lm:FILE),
    at most `neighbours` of each, for predicates that are missing from a graph. `lexicon`: the WordNet of these.
    """

    training: Annotated[
        tuple[Path, ...],
        Option("Pairs that prior counts; required by this scorer.", name="train", path="file", exists=True),
    ] = ()
    scorers: Annotated[
        tuple[str, ...],
        Option(f"frequency (of the corpus), null, {SCORERS}; repeat the option to compare scorers.", name="scorer"),
    ] = ("frequency", "null")
    context: Annotated[
        Literal["triple", "sentence", "documents"],
        Option("Premises: triples of the same entities, their sentences, or similar documents."),
    ] = "triple"
    chosen: Annotated[
        Literal["dev", "test", "both"],
        Option("Set of questions; both: every set in the folder.", name="set"),
    ] = "both"
    premises: Annotated[int, Option("Most premises of a question.", least=1)] = MOST
    smooth_premise: Annotated[
        str, Option("Stand-ins for premises missing from a graph: hypernym, hyponym, or lm:FILE.")
    ] = ""
    smooth_hypothesis: Annotated[str, Option("Stand-ins for missing hypotheses, as above.")] = ""
    neighbours: Annotated[int, Option("Most stand-ins of a predicate.", least=1)] = NEIGHBOURS
    lexicon: Annotated[str, Option("WordNet such as oewn:2024; default: the only one for the language.")] = ""
    language: Language = "EN"


@checked
def read_questions(
    folder: str | Path, corpus: Sequence[str | Path], options: AnswerOptions | None = None, *, seed: int = 0
) -> Mapping[str, Sequence[QuestionWithPremises]]:
    """The questions of a folder by set, with what the corpus states of the same two entities in the same slice."""
    folder, options = Path(folder), options or AnswerOptions()
    sets = {name: questions for name, questions in read_set(folder).items() if options.chosen in (name, "both")}
    if not sets:
        raise ArgumentRejected(
            f"{folder} contains no set {options.chosen}.", Remedy("Choose another with {}.", Setting("options.chosen"))
        )
    for name, questions in sets.items():  # before the corpus is read and any model is asked
        refuse_one_label([question.label for question in questions], f"{folder}, set {name}")
    settings = PremiseSettings(options.language, Context(options.context), options.premises, seed=seed)
    stated = sentences([Path(path) for path in corpus], Counter())
    # The answers come in the order of the questions, so each set takes as many as it has.
    with_premises = iter(ask(list(chain.from_iterable(sets.values())), stated, settings))
    return {name: list(islice(with_premises, len(questions))) for name, questions in sets.items()}


def answer_scorer(name: str, session: ScorerSession, options: AnswerOptions) -> AnswerScorer:
    """The scorer of questions with this name. Raises ArgumentRejected for an unknown name or a missing option."""
    # Before the scorers of pairs, whose frequency counts training pairs; this one counts the corpus.
    if name == "null":
        return AnswerScorer(name, lambda questions: [0.0] * len(questions))
    if name == "frequency":
        return AnswerScorer(name, lambda questions: [question.frequency for question in questions])
    scorer = session.scorer(name)
    if isinstance(scorer, GraphScorer):
        if options.context != "triple":
            raise ArgumentRejected(
                "Entailment graphs contain predicates, not sentences.",
                Remedy("Use {} triple.", Setting("options.context")),
            )
        premise = _neighbours(options.smooth_premise, options)
        hypothesis = _neighbours(options.smooth_hypothesis, options)
        scorer = replace(scorer, smoothing=Smoothing(premise, hypothesis))
    title = scorer.name if options.context == "triple" else f"{scorer.name}, {options.context}"
    if scorer.sees is VisibleSides.HYPOTHESIS:
        # It scores the questions themselves.
        return AnswerScorer(title, lambda questions: scorer.scores([question.alone for question in questions]))
    return AnswerScorer(title, lambda questions: scorer.grouped([question.pairs for question in questions]))


def _neighbours(name: str, options: AnswerOptions) -> Neighbours | None:
    from hapax.evaluation.entailment.published_graphs import Lexicon, ReplacementDirection, neighbours

    if not name:
        return None
    if name.startswith("lm:"):
        return read_neighbours(Path(name.removeprefix("lm:")), options.neighbours)
    if name not in tuple(ReplacementDirection):
        raise ArgumentRejected(f"There is no stand-in {name}. Choose hypernym, hyponym or lm:FILE.")
    return neighbours(Lexicon.open(options.lexicon, options.language), ReplacementDirection(name), options.neighbours)


@dataclass(frozen=True)
class AnsweredQuestions:
    """The scored answers of each method on each set, and the questions with their premises by set."""

    answers: tuple[ScoredAnswers, ...]
    sets: Mapping[str, Sequence[QuestionWithPremises]]


@checked
def answer_questions(
    kb: KnowledgeBase,
    sets: Mapping[str, Sequence[QuestionWithPremises]],
    options: AnswerOptions | None = None,
    opening: OpeningOptions | None = None,
) -> Evaluation[AnsweredQuestions]:
    """Answer each question of `read_questions` by the premise that most entails it, and measure the answers.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    """
    options = options or AnswerOptions()
    session = ScorerSession(kb, options, opening)
    # Each scorer once, in the order in which they are named.
    methods = [answer_scorer(name, session, options) for name in dict.fromkeys(options.scorers)]
    deferrals = DeferralCollector()
    answers, rows = [], []
    for method, (name, questions) in product(methods, sets.items()):
        with deferrals:
            scores = method.answers(questions)
        # Once a request waits in a queue, nothing is measured, but later methods add their requests to it, too.
        if deferrals.first is None:
            truth = [question.question.label for question in questions]
            # A positive and its negatives share slice, sentence and entities; they are resampled together.
            of = [question.question for question in questions]
            clusters = [(asked.slice, asked.sentence, asked.mention.pair) for asked in of]
            result = report.subset_result((method.name, name, None), truth, [scores], clusters, session.seed)
            answers.append(ScoredAnswers(result, tuple(truth), tuple(scores)))
            rows.append((result.scorer, result.subset, result.pairs, *report.figure_cells(result)))
    deferrals.raise_first()
    counts = [len(question.pairs) for question in chain.from_iterable(sets.values())]
    note = f"{sum(counts) / len(counts):.1f} premises per question; {counts.count(0)} of {len(counts)} have none."
    table = ResultTable("", ("scorer", "set", "questions", *report.FIGURE_COLUMNS), rows)
    figures = [report.main_figures(scored.result) for scored in answers]
    return Evaluation(AnsweredQuestions(tuple(answers), sets), [table], figures, notes=[note])


@checked
def write_answers(evaluation: Evaluation[AnsweredQuestions], folder: str | Path) -> list[Path]:
    """Write curves, and each method's scores as lines of `truth score`; return the paths."""
    answers, folder = evaluation.value.answers, Path(folder)
    written = write_curves([scored.result for scored in answers], folder)
    for scored in answers:
        path = folder / f"scores-{file_name(scored.result.scorer)}-{scored.result.subset}.txt"
        lines = zip(scored.truth, scored.scores, strict=True)
        replace_file(path, "".join(f"{int(truth)} {score!r}\n" for truth, score in lines))
        written.append(path)
    return written
