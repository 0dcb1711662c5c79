"""Ask a model the questions about each statement, through the journal, and parse its answers.

There are three methods. A critic gives P(yes), so it cannot break the answer format. A generator replies with text,
whose first word is parsed. A chain of thought is a rationale by the generator, after which the answer is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from hapax.evaluation.link.probing.chain import STEP_BY_STEP, closing, examples, without_answer
from hapax.evaluation.link.probing.items import ProbeItem
from hapax.evaluation.link.probing.reading import ParsedReply, parse_reply
from hapax.evaluation.link.probing.templates import TEMPLATES, Template
from hapax.evaluation.shared.batches import for_batches
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import (
    Critic,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
)

PREFIX = "For the following question, please answer in a normal life scenario with no special consideration:"
"""Text that LINK puts before each question; the critic's prompt contains it already."""

# The paper names no limits. An answer is one word, perhaps after a few others; a rationale is a paragraph.
ANSWER_TOKENS = 16
RATIONALE_TOKENS = 256
ROLE = "probe"
"""Role under which probing calls are counted."""

STATEMENTS_PER_BATCH = 16
"""Statements whose questions share batches; a budget that ends within a batch loses all of them."""


class ProbeMethod(StrEnum):
    """The method of asking a model."""

    CRITIC = "critic"
    TEXT = "text"
    CHAIN = "cot"


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """Sampling settings; temperature 0 takes the likeliest reply."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A model's answer to one question. `rationale`: its chain of thought; `probability`: a critic's P(yes)."""

    item: ProbeItem
    template: Template
    question: str
    verdict: ParsedReply
    reply: str
    rationale: str | None = None
    probability: float | None = None

    @property
    def label(self) -> bool:
        """True if the positive answer is the right one."""
        return self.template.label(self.item)

    @property
    def right(self) -> bool:
        """True if the answer matches the label; a reply off format or refused never does."""
        return self.verdict.positive == self.label


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """Answers to all questions about each finished statement. `stopped`: the message of the budget that ended it."""

    answers: tuple[ProbeAnswer, ...]
    stopped: str | None = None


ProbeQuestion = tuple[ProbeItem, Template]
Asker = Callable[[Sequence[ProbeQuestion]], list[ProbeAnswer]]


def probe(items: Sequence[ProbeItem], ask: Asker, finished: Callable[[int], None] | None = None) -> ProbeRun:
    """Ask every question about each item. `finished` is called with the number of statements done so far."""
    answers: list[ProbeAnswer] = []

    def ask_batch(batch: Sequence[ProbeItem]) -> None:
        # All questions about a statement in one batch, so that a budget leaves none half asked.
        answers.extend(ask(list(product(batch, TEMPLATES))))

    stopped = for_batches(items, STATEMENTS_PER_BATCH, ask_batch, finished)
    return ProbeRun(tuple(answers), str(stopped) if stopped else None)


def open_asker(method: ProbeMethod, model: Any, journal: Journal, settings: ProbeSettings) -> Asker:
    """The asker of a method. `model` is a Critic for `critic`, and a Generator for the other methods."""
    match method:
        case ProbeMethod.CRITIC:
            return critic_asker(model, journal)
        case ProbeMethod.TEXT:
            return text_asker(model, journal, settings)
        case ProbeMethod.CHAIN:
            return chain_asker(model, journal, settings)


def critic_asker(model: Critic, journal: Journal) -> Asker:
    """Put each question to a critic as the claim to judge; P(yes) above one half is the positive answer."""
    critic = JournaledCritic(model, journal, role=ROLE)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = _texts(questions)
        scores = critic.probabilities(texts)
        answers = []
        for (item, template), text, score in zip(questions, texts, scores, strict=True):
            if score.refused:
                # A refused claim has a P(yes), which lets a search go on; as an answer it would be made up.
                refused = ParsedReply(None, refusal=score.refused)
                answers.append(ProbeAnswer(item, template, text, refused, ""))
                continue
            # Exactly one half counts as the negative answer.
            positive = score.probability > 0.5
            # The reply in words, although the critic gave a number, so that all methods are reported alike.
            word = template.pair.word(positive)
            answers.append(ProbeAnswer(item, template, text, ParsedReply(positive), word, None, score.probability))
        return answers

    return ask


def text_asker(model: Generator, journal: Journal, settings: ProbeSettings) -> Asker:
    """Put the bare question to a generator and parse the first word of its reply."""
    generator = JournaledGenerator(model, journal, role=ROLE)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = _texts(questions)
        replies = _replies(generator, [f"{PREFIX}\n{text}" for text in texts], settings, ANSWER_TOKENS)
        answers = []
        for (item, template), text, reply in zip(questions, texts, replies, strict=True):
            answers.append(ProbeAnswer(item, template, text, _verdict(reply, template), reply.text))
        return answers

    return ask


def chain_asker(model: Generator, journal: Journal, settings: ProbeSettings) -> Asker:
    """Show two worked examples and the question, let the model write a rationale, and then request its answer."""
    generator = JournaledGenerator(model, journal, role=ROLE)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = _texts(questions)
        prompts = []
        for (item, template), text in zip(questions, texts, strict=True):
            prompts.append(f"{PREFIX}\n{examples(settings.seed, item, template)}{text}\n{STEP_BY_STEP}\n")
        thoughts = _replies(generator, prompts, settings, RATIONALE_TOKENS)
        rationales = [without_answer(thought.text) for thought in thoughts]
        closed = []
        for (_, template), prompt, rationale in zip(questions, prompts, rationales, strict=True):
            # The whole first prompt again with its rationale: a request has no memory of another.
            closed.append(f"{prompt}{rationale}\n{closing(template)}")
        replies = _replies(generator, closed, settings, ANSWER_TOKENS)
        answers = []
        for (item, template), text, reply, rationale in zip(questions, texts, replies, rationales, strict=True):
            answers.append(ProbeAnswer(item, template, text, _verdict(reply, template), reply.text, rationale))
        return answers

    return ask


def _texts(questions: Iterable[ProbeQuestion]) -> list[str]:
    return [template.question(item) for item, template in questions]


def _verdict(reply: Generation, template: Template) -> ParsedReply:
    return ParsedReply(None, refusal=reply.refused) if reply.refused else parse_reply(reply.text, template.pair)


def _replies(
    generator: Generator, prompts: Sequence[str], settings: ProbeSettings, max_tokens: int
) -> list[Generation]:
    parameters = GenerationParameters(settings.temperature, max_tokens=max_tokens, seed=settings.seed)
    return generator.generate([GenerationRequest(prompt) for prompt in prompts], parameters)
