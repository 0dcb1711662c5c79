"""Asks a model about pairs through the journal, with one prompt or in the stages of Abstraction-of-Thought."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from hapax.evaluation.shared.batches import for_batches
from hapax.evaluation.winograd.abstraction import Concepts, abstract_pair, read_concepts
from hapax.evaluation.winograd.data import Pair
from hapax.evaluation.winograd.prompts import (
    OwnPrompt,
    PromptMethod,
    PromptWording,
    abstract_prompt,
    abstraction_prompt,
    prompt,
)
from hapax.evaluation.winograd.reading import Answers, read_as_released, read_strictly
from hapax.evaluation.winograd.scores import SentenceAnswer
from hapax.grammar.arguments import checked
from hapax.grammar.options import Option, Seed, Temperature
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator

ROLE = "winograd"
"""Role under which these calls are counted."""

PAIRS_TOGETHER = 16
"""Pairs asked in one batch; when a budget ends, all pairs of its batch stay unanswered."""


Sources: TypeAlias = Annotated[tuple[str, ...], Option("Use only these sources, such as CR-WSC-H.", name="source")]
SkipLeaked: TypeAlias = Annotated[
    bool,
    Option("Leave out pairs of another source word for word, and those that a prompt shows as its example."),
]
SkipFaulty: TypeAlias = Annotated[bool, Option("Leave out rows that cannot be read, instead of refusing the file.")]
WordingVariant: TypeAlias = Annotated[
    PromptWording, Option("Wording of prompts: as the paper prints them, or as its notebooks send them.")
]


@checked
@dataclass(frozen=True, slots=True)
class AskSettings:
    """Settings of asking. `temperature` 0 asks for the likeliest reply; `tokens` limits its length; `consistent`: the
    two sentences of a pair get different answers, for methods that score.
    """

    method: PromptMethod = PromptMethod.ZERO_SHOT
    variant: WordingVariant = PromptWording.PAPER
    own: OwnPrompt | None = None
    temperature: Temperature = 0.0
    tokens: Annotated[int, Option("Maximum tokens of a reply.", name="reply-tokens", least=1)] = 512
    seed: Seed = 0
    consistent: Annotated[
        bool,
        Option(
            "For methods of likelihood: give the two sentences of a pair different answers, the likelier way.",
            name="pair-consistent",
        ),
    ] = False

    @property
    def name(self) -> str:
        """The method's name in tables."""
        return self.own.name if self.own is not None else self.method.value


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """A pair with the replies about it, in order, and the answers read from them."""

    pair: Pair
    calls: tuple[str, ...]
    replies: tuple[str, ...]
    strict: Answers
    released: tuple[int, int]
    concepts: Concepts | None = None
    margins: tuple[float, ...] = ()
    """For methods that score: by sentence, the score of the chosen option less that of the other, in nats."""

    @property
    def answers(self) -> tuple[SentenceAnswer, SentenceAnswer]:
        return self._answer(0), self._answer(1)

    def _answer(self, place: int) -> SentenceAnswer:
        item = self.pair[place]
        return SentenceAnswer(item.id, item.pair, item.family, item.answer, self.strict[place], self.released[place])


@dataclass(frozen=True, slots=True)
class AskRun:
    """Answered pairs. `stopped`: the budget or queue that left the others unanswered."""

    answers: tuple[PairAnswer, ...]
    stopped: BudgetReached | None = None


Ask = Callable[[Sequence[Pair]], list[PairAnswer]]


def ask_pairs(pairs: Sequence[Pair], ask: Ask, finished: Callable[[int], None] | None = None) -> AskRun:
    """Ask about the pairs in batches. `finished` is called with the number of pairs done."""
    answers: list[PairAnswer] = []
    stopped = for_batches(pairs, PAIRS_TOGETHER, lambda batch: answers.extend(ask(batch)), finished)
    return AskRun(tuple(answers), stopped)


def asking(model: Generator, journal: Journal, settings: AskSettings) -> Ask:
    """The function that asks a batch of pairs by the method of the settings."""
    asker = _PairAsker(JournaledGenerator(model, journal, role=ROLE), settings)
    return asker.ask_in_stages if settings.method is PromptMethod.AOT_STAGED else asker.ask


class _PairAsker:
    """Asks a model about pairs, always with the same method and parameters."""

    def __init__(self, generator: JournaledGenerator, settings: AskSettings) -> None:
        self._generator, self._settings = generator, settings
        self._parameters = GenerationParameters(settings.temperature, max_tokens=settings.tokens, seed=settings.seed)

    def _replies(self, prompts: Sequence[str]) -> list[tuple[str, str]]:
        """Journal ids and texts of the replies to the prompts."""
        requests = [GenerationRequest(text) for text in prompts]
        replies = self._generator.generate(requests, self._parameters)
        calls = self._generator.call_ids(requests, self._parameters)
        return [(call, reply.text) for call, reply in zip(calls, replies, strict=True)]

    def ask(self, pairs: Sequence[Pair]) -> list[PairAnswer]:
        """Ask by a single prompt."""
        method, variant = self._settings.method, self._settings.variant
        own = self._settings.own.text if self._settings.own is not None else ""
        replies = self._replies([prompt(pair, method, variant, own) for pair in pairs])
        answers = []
        for pair, (call, reply) in zip(pairs, replies, strict=True):
            options = pair[0].options
            released = read_as_released(reply, options, zero_shot=method is PromptMethod.ZERO_SHOT)
            concepts = read_concepts(reply, options) if method in (PromptMethod.AOT, PromptMethod.OWN) else None
            strict = read_strictly(reply, options)
            answers.append(PairAnswer(pair, (call,), (reply,), strict, released, concepts))
        return answers

    def ask_in_stages(self, pairs: Sequence[Pair]) -> list[PairAnswer]:
        """Abstract, answer about the concepts, and map the answer back to entities without a model.

        The second question names no entity, so associations of the entities cannot influence the answer.
        """
        first = self._replies([abstraction_prompt(pair) for pair in pairs])
        mappings: list[Concepts | None] = []
        abstract_pairs: list[Pair | None] = []
        for pair, (_, reply) in zip(pairs, first, strict=True):
            concepts = read_concepts(reply, pair[0].options)
            mappings.append(concepts)
            # None stays None: without concepts there is no second question.
            abstract_pairs.append(concepts and abstract_pair(pair, concepts))
        # Replies in the order of the pairs that have a second question.
        second = iter(self._replies([abstract_prompt(pair) for pair in abstract_pairs if pair is not None]))
        answers = []
        for pair, (call, reply), mapping, abstract in zip(pairs, first, mappings, abstract_pairs, strict=True):
            if abstract is None:
                # Without concepts there is no second question; the answer counts as unreadable by both readings.
                answers.append(PairAnswer(pair, (call,), (reply,), (None, None), (-1, -1), mapping))
                continue
            call_2, reply_2 = next(second)
            # Options and concepts have the same order, so the answer needs no translation.
            strict = read_strictly(reply_2, abstract[0].options)
            released = tuple(-1 if option is None else option for option in strict)
            calls, texts = (call, call_2), (reply, reply_2)
            answers.append(PairAnswer(pair, calls, texts, strict, (released[0], released[1]), mapping))
        return answers
