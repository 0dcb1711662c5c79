"""Puts pairs to a model, by one prompt or in the three stages of Abstraction-of-Thought, through the journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluation.winograd.abstraction import Concepts, abstract_pair, read_concepts
from evaluation.winograd.data import Pair
from evaluation.winograd.prompts import Method, OwnPrompt, Variant, abstract_prompt, abstraction_prompt, prompt
from evaluation.winograd.reading import Answers, read_as_released, read_strictly
from evaluation.winograd.scores import Answer
from llm_oracle.calls import BudgetReached, Journal, JournaledGenerator, PutOff
from llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator

ROLE = "winograd"
"""Whose calls these are in the statistics."""

PAIRS_TOGETHER = 16
"""Pairs whose questions share batches, and are lost together when a budget ends."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How pairs are asked. `temperature` 0: the likeliest reply. `tokens`: the most of a reply."""

    method: Method = Method.ZERO_SHOT
    variant: Variant = Variant.PAPER
    own: OwnPrompt | None = None
    temperature: float = 0.0
    tokens: int = 512
    seed: int = 0

    @property
    def name(self) -> str:
        """What tables call the method."""
        return self.own.name if self.own is not None else self.method.value


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """A pair with the replies to it, in order, and what was read from them."""

    pair: Pair
    calls: tuple[str, ...]
    replies: tuple[str, ...]
    strict: Answers
    released: tuple[int, int]
    concepts: Concepts | None = None

    @property
    def answers(self) -> tuple[Answer, Answer]:
        one, other = (
            Answer(item.id, item.pair, item.family, item.answer, strict, released)
            for item, strict, released in zip(self.pair, self.strict, self.released, strict=True)
        )
        return one, other


@dataclass(frozen=True, slots=True)
class AskRun:
    """The pairs that were finished. `stopped`: what kept the others from it, a budget or a queue."""

    answers: tuple[PairAnswer, ...]
    stopped: BudgetReached | None = None


Ask = Callable[[Sequence[Pair]], list[PairAnswer]]


def ask_pairs(pairs: Sequence[Pair], ask: Ask, finished: Callable[[int], None] | None = None) -> AskRun:
    """Ask about each pair. `finished` is told how many are done."""
    answers: list[PairAnswer] = []
    stopped: BudgetReached | None = None
    for start in range(0, len(pairs), PAIRS_TOGETHER):
        together = pairs[start : start + PAIRS_TOGETHER]
        try:
            answers += ask(together)
        except BudgetReached as reached:
            stopped = stopped or reached
            if not isinstance(reached, PutOff):
                break
        if finished is not None:
            finished(start + len(together))
    return AskRun(tuple(answers), stopped)


def asking(model: Generator, journal: Journal, settings: AskSettings) -> Ask:
    """The way to ask that the settings name."""
    replies = _Replies(JournaledGenerator(model, journal, role=ROLE), settings)
    return _staged(replies) if settings.method is Method.AOT_STAGED else _prompted(replies, settings)


class _Replies:
    """Prompts in, replies and their places in the journal out."""

    def __init__(self, generator: JournaledGenerator, settings: AskSettings) -> None:
        self._generator = generator
        self._parameters = GenerationParameters(settings.temperature, max_tokens=settings.tokens, seed=settings.seed)

    def to(self, prompts: Sequence[str]) -> list[tuple[str, str]]:
        requests = [GenerationRequest(one) for one in prompts]
        replies = self._generator.generate(requests, self._parameters)
        calls = self._generator.call_ids(requests, self._parameters)
        return [(call, reply.text) for call, reply in zip(calls, replies, strict=True)]


def _prompted(replies: _Replies, settings: AskSettings) -> Ask:
    own = settings.own.text if settings.own is not None else ""

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        told = replies.to([prompt(pair, settings.method, settings.variant, own) for pair in pairs])
        return [_read(pair, call, reply, settings.method) for pair, (call, reply) in zip(pairs, told, strict=True)]

    return ask


def _read(pair: Pair, call: str, reply: str, method: Method) -> PairAnswer:
    options = pair[0].options
    released = read_as_released(reply, options, zero_shot=method is Method.ZERO_SHOT)
    concepts = read_concepts(reply, options) if method in (Method.AOT, Method.OWN) else None
    return PairAnswer(pair, (call,), (reply,), read_strictly(reply, options), released, concepts)


def _staged(replies: _Replies) -> Ask:
    """Abstract, answer about the concepts, and go back by the mapping, which needs no model.

    The second question holds no entity, so what the entities are associated with cannot reach the answer.
    """

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        first = replies.to([abstraction_prompt(pair) for pair in pairs])
        concepts = [read_concepts(reply, pair[0].options) for pair, (_, reply) in zip(pairs, first, strict=True)]
        abstract = [one and abstract_pair(pair, one) for pair, one in zip(pairs, concepts, strict=True)]
        second = iter(replies.to([abstract_prompt(pair) for pair in abstract if pair is not None]))
        made = []
        for pair, (call, reply), mapping, asked in zip(pairs, first, concepts, abstract, strict=True):
            if asked is None:
                made.append(PairAnswer(pair, (call,), (reply,), (None, None), (-1, -1), mapping))
                continue
            call_2, reply_2 = next(second)
            strict = read_strictly(reply_2, asked[0].options)
            released = tuple(-1 if one is None else one for one in strict)
            made.append(PairAnswer(pair, (call, call_2), (reply, reply_2), strict, (released[0], released[1]), mapping))
        return made

    return ask
