"""Puts the questions to a model, through the journal, and takes its answers.

Three ways. The critic is asked for P(yes) and must choose; a text is read for its first word; a chain of thought is
written first, and the answer asked for behind it. Only texts can break the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evaluation.probing.chain import STEP_BY_STEP, closing, examples, without_answer
from evaluation.probing.items import ProbeItem
from evaluation.probing.reading import Verdict, read_verdict
from evaluation.probing.templates import TEMPLATES, Template
from llm_oracle.calls import BudgetReached, Journal, JournaledCritic, JournaledGenerator, PutOff
from llm_oracle.protocols import Critic, CriticScore, Generation, GenerationParameters, GenerationRequest, Generator

PREFIX = "For the following question, please answer in a normal life scenario with no special consideration:"
"""What LINK puts before each question. The critic's prompt begins with it already."""

ANSWER_TOKENS, RATIONALE_TOKENS = 16, 256
ROLE = "probe"
"""Whose calls these are in the statistics."""

STATEMENTS_TOGETHER = 16
"""Statements whose questions share batches, and are lost together when a budget ends."""


class Way(StrEnum):
    """How a model is asked."""

    CRITIC = "critic"
    TEXT = "text"
    CHAIN = "cot"


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """How the questions are put. `temperature` 0: the likeliest reply."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """One question with its right answer and what the model said. `rationale`: its chain of thought."""

    item: ProbeItem
    template: Template
    question: str
    verdict: Verdict
    reply: str
    rationale: str | None = None
    probability: float | None = None

    @property
    def label(self) -> bool:
        return self.template.label(self.item)

    @property
    def right(self) -> bool:
        """A reply that breaks the format is not right."""
        return self.verdict.positive == self.label


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """All 13 answers to each statement that was finished. `stopped`: what the budget says, if it ended the run."""

    answers: tuple[ProbeAnswer, ...]
    stopped: str | None = None


Asked = tuple[ProbeItem, Template]
Ask = Callable[[Sequence[Asked]], list[ProbeAnswer]]


def probe(items: Sequence[ProbeItem], ask: Ask, finished: Callable[[int], None] | None = None) -> ProbeRun:
    """Ask all 13 questions about each item. `finished` is told how many statements are done."""
    answers: list[ProbeAnswer] = []
    stopped: BudgetReached | None = None
    for start in range(0, len(items), STATEMENTS_TOGETHER):
        together = items[start : start + STATEMENTS_TOGETHER]
        try:
            answers += ask([(item, template) for item in together for template in TEMPLATES])
        except BudgetReached as reached:
            stopped = stopped or reached
            if not isinstance(reached, PutOff):
                break
        if finished is not None:
            finished(start + len(together))
    return ProbeRun(tuple(answers), str(stopped) if stopped else None)


def asking(way: Way, model: Any, journal: Journal, settings: ProbeSettings) -> Ask:
    """The way to ask. `model` is a Critic for `critic` and a Generator for the others."""
    if way is Way.CRITIC:
        return asking_critic(model, journal)
    return asking_chain(model, journal, settings) if way is Way.CHAIN else asking_text(model, journal, settings)


def asking_critic(model: Critic, journal: Journal) -> Ask:
    """The question as the statement that a critic judges; P(yes) above one half is the positive answer."""
    critic = JournaledCritic(model, journal, role=ROLE)

    def ask(asked: Sequence[Asked]) -> list[ProbeAnswer]:
        questions = _questions(asked)
        scores = critic.probabilities(questions)
        return [_judged(one, question, score) for one, question, score in zip(asked, questions, scores, strict=True)]

    return ask


def _judged(asked: Asked, question: str, score: CriticScore) -> ProbeAnswer:
    """The answer that a P(yes) is; a refusal is none, though it has a P(yes) to go on with."""
    item, template = asked
    if score.refused:
        return ProbeAnswer(item, template, question, Verdict(None, refusal=score.refused), "")
    positive = score.probability > 0.5
    word = template.pair.word(positive)
    return ProbeAnswer(item, template, question, Verdict(positive), word, probability=score.probability)


def asking_text(model: Generator, journal: Journal, settings: ProbeSettings) -> Ask:
    """The bare question; the reply's first word is the answer."""
    generator = JournaledGenerator(model, journal, role=ROLE)

    def ask(asked: Sequence[Asked]) -> list[ProbeAnswer]:
        questions = _questions(asked)
        prompts = (f"{PREFIX}\n{question}" for question in questions)
        replies = _replies(generator, prompts, settings, ANSWER_TOKENS)
        return [
            ProbeAnswer(item, template, question, _verdict(reply, template), reply.text)
            for (item, template), question, reply in zip(asked, questions, replies, strict=True)
        ]

    return ask


def asking_chain(model: Generator, journal: Journal, settings: ProbeSettings) -> Ask:
    """Two worked examples, the question and a rationale by the model; behind it the answer is asked for."""
    generator = JournaledGenerator(model, journal, role=ROLE)

    def ask(asked: Sequence[Asked]) -> list[ProbeAnswer]:
        questions = _questions(asked)
        prompts = [
            f"{PREFIX}\n{examples(settings.seed, *one)}{question}\n{STEP_BY_STEP}\n"
            for one, question in zip(asked, questions, strict=True)
        ]
        thoughts = _replies(generator, prompts, settings, RATIONALE_TOKENS)
        rationales = [without_answer(one.text) for one in thoughts]
        closed = (
            f"{prompt}{rationale}\n{closing(template)}"
            for (_, template), prompt, rationale in zip(asked, prompts, rationales, strict=True)
        )
        replies = _replies(generator, closed, settings, ANSWER_TOKENS)
        return [
            ProbeAnswer(item, template, question, _verdict(reply, template), reply.text, rationale)
            for (item, template), question, reply, rationale in zip(asked, questions, replies, rationales, strict=True)
        ]

    return ask


def _questions(asked: Iterable[Asked]) -> list[str]:
    return [template.question(item) for item, template in asked]


def _verdict(reply: Generation, template: Template) -> Verdict:
    return Verdict(None, refusal=reply.refused) if reply.refused else read_verdict(reply.text, template.pair)


def _replies(
    generator: Generator, prompts: Iterable[str], settings: ProbeSettings, max_tokens: int
) -> list[Generation]:
    parameters = GenerationParameters(settings.temperature, max_tokens=max_tokens, seed=settings.seed)
    requests = [GenerationRequest(prompt) for prompt in prompts]
    return generator.generate(requests, parameters)
