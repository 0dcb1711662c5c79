"""The embedded model's lists against its atlas, asked for in the search's words, call by call."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.inquiry import FUNCTIONAL_SAMPLES, question_words, slot_name
from evaluation.embedded_roles import SEED, Extent
from evaluation.estimates import Estimate, mean, share
from grammar.rules import Library
from kb.records import Pattern, Question
from llm_oracle.answers import ParsedValue, parse_values
from llm_oracle.embedded.corpus import Corpus, ListQuestion
from llm_oracle.prompts import functional_prompt, knowledge_prompt
from llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator

CALLS = 4
"""A question's calls in a search at most (`SearchSettings.calls_per_question`)."""


@dataclass(frozen=True, slots=True)
class CallMeasurements:
    """One call's lists. Later calls may not repeat the values of earlier ones, so the true ones run out."""

    parsed: Estimate
    """Share of lines that are a value."""
    new: Estimate
    """Share of those that neither this list nor an earlier one held."""
    of_type: Estimate
    """Share of new values that the atlas has where this argument stands."""
    true: Estimate
    """Share of new values that are true."""
    recall: Estimate
    """Mean share of a question's true values that came up to this call."""


@dataclass(frozen=True, slots=True)
class ListMeasurements:
    """Questions with several values over their calls, and questions with one right value, asked twice."""

    questions: int
    calls: tuple[CallMeasurements, ...]
    functional_agreed: Estimate
    """Share of functional questions whose first value was the same both times; only such a value is believed."""
    functional_true: Estimate
    """Share of those values that are true."""


def measure_lists(generator: Generator, corpus: Corpus, library: Library, extent: Extent) -> ListMeasurements:
    """A seeded sample of the questions with one open argument."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    keyed = [question for question in corpus.list_questions if question.given is not None]
    several = [_Asked.of(one, corpus, library) for one in keyed if not one.functional]
    single = [_Asked.of(one, corpus, library) for one in keyed if one.functional]
    asked = rng.sample(several, min(extent.lists, len(several)))
    calls = tuple(_call(generator, asked) for _ in range(CALLS))
    answers = _functional(generator, rng.sample(single, min(extent.lists, len(single))))
    believed = [truth for truth in answers if truth is not None]
    return ListMeasurements(len(asked), calls, share([one is not None for one in answers]), share(believed))


@dataclass(slots=True)
class _Asked:
    """One question with the values that came so far, in the order they came."""

    question: Question
    prompt: str
    numeric: bool
    right: frozenset[str]
    known: frozenset[str]
    """Everything the atlas has at the open place, true here or not."""
    given: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: ListQuestion, corpus: Corpus, library: Library) -> _Asked:
        relation = corpus.atlas.relations[asked.predicate]
        data_type = relation.argument_types[asked.position]
        arguments = (None, asked.given) if asked.position == 0 else (asked.given, None)
        question = Question((Pattern(asked.predicate, arguments),), data_type, asked.functional)
        variable, words = question_words(question, library)
        ask = functional_prompt if asked.functional else knowledge_prompt
        right = frozenset(corpus.values(asked))
        known = frozenset(corpus.atlas.true_values(asked.predicate, asked.position))
        return cls(question, ask(variable, words, data_type), library.is_numeric(data_type), right, known)

    def parsed(self, text: str) -> list[ParsedValue]:
        return parse_values(text, slot_name(self.question.patterns[0]), self.question.data_type, self.numeric)


def _call(generator: Generator, asked: Sequence[_Asked]) -> CallMeasurements:
    """Every question once more, without the values that came before."""
    requests = [GenerationRequest(one.prompt, tuple(one.given)) for one in asked]
    replies = generator.generate(requests, GenerationParameters(seed=SEED))
    parsed: list[bool] = []
    new: list[bool] = []
    of_type: list[bool] = []
    true: list[bool] = []
    for one, reply in zip(asked, replies, strict=True):
        lines = one.parsed(reply.text)
        values = {str(line.value).casefold() for line in lines if line.rejected is None}
        for line in lines:
            text = str(line.value)
            is_value = text.casefold() in values  # a repeat is a value too, though the parser drops it
            parsed.append(is_value)
            if is_value:
                new.append(line.rejected is None and text not in one.given)
            if line.rejected is None and text not in one.given:
                of_type.append(text in one.known)
                true.append(text in one.right)
                one.given[text] = None
    recall = [len(one.right.intersection(one.given)) / len(one.right) for one in asked]
    return CallMeasurements(share(parsed), share(new), share(of_type), share(true), mean(recall))


def _functional(generator: Generator, asked: Sequence[_Asked]) -> list[bool | None]:
    """Whether each question's value is true; None where its samples disagree or hold none."""
    samples = range(FUNCTIONAL_SAMPLES)
    requests = [GenerationRequest(one.prompt, sample_index=index) for one in asked for index in samples]
    replies = iter(generator.generate(requests, GenerationParameters(seed=SEED)))
    found: list[bool | None] = []
    for one in asked:
        lines = [one.parsed(next(replies).text) for _ in samples]
        first = {next((str(line.value) for line in several if line.rejected is None), None) for several in lines}
        value = first.pop() if len(first) == 1 else None
        found.append(None if value is None else value in one.right)
    return found
