"""Measure the embedded model's lists of values against its atlas, call by call, with the prompts of a search."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hapax.engine.search.inquiry import FUNCTIONAL_SAMPLES, question_words, slot_name
from hapax.evaluation.shared.estimates import Estimate, mean, share
from hapax.grammar.rules import Library
from hapax.kb.records import AtomPattern, Question
from hapax.llm_oracle.answers import ParsedValue, parse_values
from hapax.llm_oracle.prompts import functional_prompt, knowledge_prompt
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator
from tools.embedded.corpus import Corpus, ListQuestion
from tools.embedded.score_measurements import SEED, CardSize

CALLS = 4
"""Most calls for a question in a search (`SearchSettings.calls_per_question`)."""


@dataclass(frozen=True, slots=True)
class CallMeasurements:
    """The lists of a call. Values of earlier calls are excluded, so the true values run out."""

    parsed: Estimate
    """Share of lines that contain a value."""
    new: Estimate
    """Share of these values that are in neither this list so far nor an earlier one."""
    of_type: Estimate
    """Share of new values that the atlas has for this argument of the predicate."""
    true: Estimate
    """Share of new values that are true."""
    recall: Estimate
    """Mean share of a question's true values found up to this call."""


@dataclass(frozen=True, slots=True)
class ListMeasurements:
    """Questions with several values, call by call, and functional questions, each asked twice."""

    questions: int
    calls: tuple[CallMeasurements, ...]
    functional_agreed: Estimate
    """Share of functional questions with the same first value both times; a search accepts only such values."""
    functional_true: Estimate
    """Share of these values that are true."""


def measure_lists(generator: Generator, corpus: Corpus, library: Library, extent: CardSize) -> ListMeasurements:
    """Measure a seeded sample of the questions with one open argument."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    keyed = [question for question in corpus.list_questions if question.given is not None]
    many_valued = [_QuestionProgress.of(question, corpus, library) for question in keyed if not question.functional]
    functional = [_QuestionProgress.of(question, corpus, library) for question in keyed if question.functional]
    asked = rng.sample(many_valued, min(extent.lists, len(many_valued)))
    calls = tuple(_call(generator, asked) for _ in range(CALLS))
    answers = _functional(generator, rng.sample(functional, min(extent.lists, len(functional))))
    agreed = [truth for truth in answers if truth is not None]
    return ListMeasurements(len(asked), calls, share([truth is not None for truth in answers]), share(agreed))


@dataclass(slots=True)
class _QuestionProgress:
    """A question and the values given so far."""

    question: Question
    prompt: str
    numeric: bool
    right: frozenset[str]
    known: frozenset[str]
    """All values that the atlas has for this argument of the predicate, true for this question or not."""
    given: dict[str, None] = field(default_factory=dict)
    """An ordered set."""

    @classmethod
    def of(cls, asked: ListQuestion, corpus: Corpus, library: Library) -> _QuestionProgress:
        relation = corpus.atlas.relations[asked.predicate]
        data_type = relation.argument_types[asked.position]
        arguments = (None, asked.given) if asked.position == 0 else (asked.given, None)
        question = Question((AtomPattern(asked.predicate, arguments),), data_type, asked.functional)
        variable, words = question_words(question, library)
        ask = functional_prompt if asked.functional else knowledge_prompt
        right = frozenset(corpus.values(asked))
        known = frozenset(corpus.atlas.true_values(asked.predicate, asked.position))
        return cls(question, ask(variable, words, data_type), library.is_numeric(data_type), right, known)

    def parsed(self, text: str) -> list[ParsedValue]:
        return parse_values(text, slot_name(self.question.patterns[0]), self.question.data_type, self.numeric)


def _call(generator: Generator, asked: Sequence[_QuestionProgress]) -> CallMeasurements:
    """Ask each question again, excluding the values given before."""
    requests = [GenerationRequest(progress.prompt, tuple(progress.given)) for progress in asked]
    replies = generator.generate(requests, GenerationParameters(seed=SEED))
    parsed: list[bool] = []
    new: list[bool] = []
    of_type: list[bool] = []
    true: list[bool] = []
    for progress, reply in zip(asked, replies, strict=True):
        lines = progress.parsed(reply.text)
        values = {str(line.value).casefold() for line in lines if line.rejected is None}
        for line in lines:
            text = str(line.value)
            is_value = text.casefold() in values  # includes repeats, which the parser rejects
            parsed.append(is_value)
            if is_value:
                new.append(line.rejected is None and text not in progress.given)
            if line.rejected is None and text not in progress.given:
                of_type.append(text in progress.known)
                true.append(text in progress.right)
                progress.given[text] = None
    recall = [len(progress.right.intersection(progress.given)) / len(progress.right) for progress in asked]
    return CallMeasurements(share(parsed), share(new), share(of_type), share(true), mean(recall))


def _functional(generator: Generator, asked: Sequence[_QuestionProgress]) -> list[bool | None]:
    """The truth of the value of each question; None if its samples disagree or contain no value."""
    # As in a search; the index makes each sample a request of its own.
    samples = range(FUNCTIONAL_SAMPLES)
    requests = [GenerationRequest(progress.prompt, sample_index=index) for progress in asked for index in samples]
    replies = iter(generator.generate(requests, GenerationParameters(seed=SEED)))
    truths: list[bool | None] = []
    for progress in asked:
        first_values = set()
        for _ in samples:
            lines = progress.parsed(next(replies).text)
            first_values.add(next((str(line.value) for line in lines if line.rejected is None), None))
        value = first_values.pop() if len(first_values) == 1 else None
        truths.append(None if value is None else value in progress.right)
    return truths
