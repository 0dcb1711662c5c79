"""Probing as LINK's released code does it (`link/probing.py` of INK-USC/LINK): words, chance, limits and scoring.

A model writes the negation and the question of each conclusion. There are 13 questions, in the order of the release;
with a chain of thought two worked examples come before each, in forms that one random stream draws over the whole run.
Only the first word of a reply counts, and it is right or wrong: the release knows no reply off format.

The release is meant to ask about positive conclusions in other forms, but its option never reaches the function that
asks, so that all conclusions are asked about in the negative form. This is repeated here; `POSITIVE_FORM` is the
intended way.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hapax.evaluation.link.probing_questions import (
    TEMPLATES,
    ParsedReply,
    ProbeAnswer,
    ProbeItem,
    ProbeQuestion,
    Template,
)
from hapax.grammar.parsing.declarations import Polarity
from hapax.kb.records import Distribution
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest

PREFIX = "For the following question, please answer in a normal life scenario with no special consideration:\n"
STEP_BY_STEP = "\nLet's think step by step.\n"
QUESTION_PROMPT = "Convert the statement to a question with minimal edits: "
NEGATION_PROMPT = "Negate the statement with minimal edits: "

TEMPERATURE = 0.9
HELPER_TOKENS = 32
ANSWER_TOKENS = 16
EXPLANATION_TOKENS = 256
EXAMPLE_SEED = 42


class ReleasedVariant(StrEnum):
    """A switch of the released code that differs from its published runs."""

    NO_RATIONALE = "no-rationale"
    """No explanation is asked for, and a chain of thought ends after 16 tokens."""
    NO_EXAMPLES = "no-examples"
    """A chain of thought without worked examples."""
    POSITIVE_FORM = "positive-form"
    """Positive conclusions are asked about in the positive form, which the release intends and never uses."""


@dataclass(frozen=True, slots=True)
class ReleasedSettings:
    """Settings of a released probing. `chain`: with a chain of thought; `seed`: of sampling, not of the examples."""

    chain: bool = False
    variants: frozenset[ReleasedVariant] = frozenset()
    seed: int = 0

    @property
    def explains(self) -> bool:
        """True if the model is asked for an explanation, or has room for its chain of thought."""
        return ReleasedVariant.NO_RATIONALE not in self.variants

    @property
    def has_examples(self) -> bool:
        """True if worked examples come before a chain of thought."""
        return self.chain and ReleasedVariant.NO_EXAMPLES not in self.variants

    def is_positive(self, item: ProbeItem) -> bool:
        """True if the item's conclusion is asked about in the positive form."""
        return ReleasedVariant.POSITIVE_FORM in self.variants and item.polarity is Polarity.POSITIVE


@dataclass(frozen=True, slots=True)
class ReleasedQuestion:
    """A question with the paper's template of the same content, and its right answer in words."""

    template: Template
    text: str
    answer: str

    @property
    def closing(self) -> str:
        """Text after a chain of thought that asks for the answer."""
        return f"Therefore, the answer ({self.template.pair.spoken}) is:"


_YES_NO_SUFFIX = " Answer yes or no:"
_YES_NO_EXPLAINED = " Answer yes or no, and then give an explanation to your answer:"
_EXPLAINED = " Also give an explanation to the answer."

NEGATIVE_ORDER = (1, 2, 3, 4, 5, 6, 8, 9, 7, 10, 11, 12, 13)
"""Numbers of the paper's templates in the release's order, for a conclusion such as `PersonX cannot eat fondue`."""

POSITIVE_ORDER = (1, 2, 7, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13)
"""The same for a conclusion such as `PersonX can cook fondue`."""


def released_questions(
    premise: str, conclusion: str, negation: str, question: str, settings: ReleasedSettings, *, positive: bool = False
) -> list[ReleasedQuestion]:
    """The 13 questions of the release, in its order. `negation`, `question`: of the conclusion, as a model wrote them.

    `conclusion` and `negation` end in a full stop (`completed`), of which a question mark takes the place.
    """
    suffix, explained, asked = _YES_NO_SUFFIX, "", "Answer the question with yes or no: if"
    if settings.chain:
        suffix, asked = "", "Answer the question: if"
    elif settings.explains:
        suffix, explained = _YES_NO_EXPLAINED, _EXPLAINED
        asked = "Answer the question with yes or no, and then give an explanation to your answer: if"
    # By the number of the paper's template that asks the same.
    texts = {
        1: f"Is it true that if {premise}, {conclusion[:-1]}?{suffix}",
        2: f"Yes or no: if {premise}, {conclusion}{explained}",
        3: f"True or false: if {premise}, {conclusion}{explained}",
        4: f"Right or Wrong: if {premise}, {conclusion}{explained}",
        5: f"Premise: {premise}. Conclusion: {conclusion} Does premise entail conclusion?{suffix}",
        6: f"Premise: {premise}. Conclusion: {negation} Does premise contradict the conclusion?{suffix}",
        7: f"{asked} {premise}, {question}",
        8: f"Is it true that if {premise}, {negation[:-1]}?{suffix}",
        9: f"Yes or no: if {premise}, {negation}{explained}",
        10: f"True or false: if {premise}, {negation}{explained}",
        11: f"Right or Wrong: if {premise}, {negation}{explained}",
        12: f"Premise: {premise}. Conclusion: {negation} Does premise entail conclusion?{suffix}",
        13: f"Premise: {premise}. Conclusion: {conclusion} Does premise contradict the conclusion?{suffix}",
    }
    templates = {template.number: template for template in TEMPLATES}
    questions = []
    for number in POSITIVE_ORDER if positive else NEGATIVE_ORDER:
        template = templates[number]
        label = positive if template.positive is None else template.positive
        # As the release does where a premise begins with `if`.
        questions.append(ReleasedQuestion(template, texts[number].replace("if if ", "if "), template.pair.word(label)))
    return questions


def completed(clause: str) -> str:
    """The clause with a full stop, if it ends in none."""
    return clause if clause.strip().endswith(".") else clause + "."


def released_order(items: Iterable[ProbeItem]) -> tuple[ProbeItem, ...]:
    """The items in the order in which the release probes them: rule by rule, the long tail first."""
    by_rule: dict[str, list[ProbeItem]] = {}
    for item in items:
        by_rule.setdefault(item.rule, []).append(item)
    ordered: list[ProbeItem] = []
    for of_rule in by_rule.values():
        for distribution in (Distribution.LONG_TAIL, Distribution.HEAD):
            ordered += [item for item in of_rule if item.distribution is distribution]
    return tuple(ordered)


def read_released(reply: Generation, question: ReleasedQuestion) -> ParsedReply:
    """The reply as right or wrong by its first word. A wrong one that is not an answer is also named as off format."""
    if reply.refused:
        return ParsedReply(None, refusal=reply.refused)
    word = first_word(reply.text)
    # True if the positive word is right.
    label = question.template.pair.word(True) == question.answer
    if word.casefold() == question.answer.casefold():
        return ParsedReply(label)
    words = [answer.casefold() for answer in question.template.pair.value]
    violation = None if word.casefold() in words else f"no answer: {' '.join(reply.text.split())[:60]}"
    # Without a third possibility, a wrong reply becomes a right one where people flipped the label.
    return ParsedReply(not label, violation)


_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|\S")


def first_word(text: str) -> str:
    """The first word of a reply, or the sign that it begins with; empty for an empty reply."""
    match = _TOKEN.match(text.strip())
    return match[0] if match else ""


def explanation(text: str) -> str:
    """The reply after its first two tokens, which are the answer and its full stop or comma."""
    rest = text.strip()
    for _ in range(2):
        rest = _TOKEN.sub("", rest, count=1).strip()
    return rest


EXAMPLES = (
    (
        "PersonX was born in Roman Republic",
        "PersonX was not able to use tractor",
        "The Roman Republic existed around 509-27 BC. Tractor was invented in 1892. The Roman Republic was long before "
        "when tractor was invented.",
    ),
    (
        "PersonX is allergic to mango",
        "PersonX is not able to eat mango rice pudding",
        "Mango is an ingredient in mango rice pudding.",
    ),
)
"""Premise, conclusion and reason of the release's two worked examples."""


class ReleasedAsker:
    """Asks the 13 questions about each statement as the release does. Call it with statements in `released_order`.

    `writer` writes negations and questions. A repeated request is sampled anew, as in the release.
    """

    def __init__(self, model: JournaledGenerator, writer: JournaledGenerator, settings: ReleasedSettings) -> None:
        self._model, self._writer, self._settings = model, writer, settings
        self._chance = random.Random(EXAMPLE_SEED)  # noqa: S311  # the release's seed
        self._samples: Counter[tuple[str, str]] = Counter()
        self._examples: dict[tuple[str, Distribution], list[list[ReleasedQuestion]]] = {}

    def __call__(self, questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        """The answers to all questions about the statements that occur here."""
        items = list(dict.fromkeys(item for item, _ in questions))
        # Before anything is asked: a queue that waits for the writer must not change the draws of later statements.
        draws = iter([self._draw() for _ in range(len(items) * len(NEGATIVE_ORDER))])
        clauses = []
        for item in items:
            # The release joins the words of a value by underscores, and shows blanks.
            texts = (item.premise.replace("_", " "), item.conclusion.replace("_", " "))
            clauses.append((*texts, self._settings.is_positive(item)))
        asked: list[tuple[ProbeItem, ReleasedQuestion]] = []
        prompts: list[str] = []
        for item, of_item in zip(items, self._worded(clauses), strict=True):
            for question in of_item:
                asked.append((item, question))
                prompts.append(self._prompt(item, question, next(draws)))
        explains = self._settings.explains
        replies = self._replies(self._model, prompts, EXPLANATION_TOKENS if explains else ANSWER_TOKENS)
        rationales: list[str | None] = [explanation(reply.text) if explains else None for reply in replies]
        if self._settings.chain:
            for place, ((_, question), reply) in enumerate(zip(asked, replies, strict=True)):
                thought = reply.text.strip()
                if self._settings.has_examples:
                    # The worked examples teach the model to write the closing itself, which is added again below.
                    thought = thought.partition("\nTherefore")[0]
                rationales[place] = thought
                prompts[place] += f"\n{thought}\n{question.closing}"
            # After a chain of thought, the answers are asked for in a second prompt.
            replies = self._replies(self._model, prompts, ANSWER_TOKENS)
        answers = []
        for (item, question), reply, rationale in zip(asked, replies, rationales, strict=True):
            # The label of template 7 follows the form in which it was asked, whatever the rule's polarity is.
            polarity = Polarity.POSITIVE if self._settings.is_positive(item) else Polarity.NEGATIVE
            verdict = read_released(reply, question)
            as_asked = replace(item, polarity=polarity)
            answers.append(ProbeAnswer(as_asked, question.template, question.text, verdict, reply.text, rationale))
        return answers

    def _worded(self, clauses: Sequence[tuple[str, str, bool]]) -> list[list[ReleasedQuestion]]:
        """The questions of premises and conclusions, whose other forms the writer writes. True: the positive form."""
        conclusions = [completed(conclusion) for _, conclusion, _ in clauses]
        prompts: list[str] = []
        for conclusion in conclusions:
            prompts += [QUESTION_PROMPT + conclusion, NEGATION_PROMPT + conclusion]
        written = [reply.text.strip() for reply in self._replies(self._writer, prompts, HELPER_TOKENS)]
        worded = []
        for number, ((premise, _, positive), conclusion) in enumerate(zip(clauses, conclusions, strict=True)):
            # Two prompts for each conclusion, in this order.
            question, negation = written[2 * number : 2 * number + 2]
            worded.append(
                released_questions(
                    premise, conclusion, completed(negation), question, self._settings, positive=positive
                )
            )
        return worded

    def _draw(self) -> tuple[int, ...]:
        """Places of the forms in which the worked examples of one question are shown; their labels are opposite."""
        if not self._settings.has_examples:
            return ()
        # The first six questions in the negative form have the positive answer, the other seven the negative one.
        half = len(NEGATIVE_ORDER) // 2
        places = []
        is_negative = self._chance.sample([0, 1], 1)[0]
        for _ in EXAMPLES:
            labelled = range(half, len(NEGATIVE_ORDER)) if is_negative else range(half)
            places.append(self._chance.sample(labelled, 1)[0])
            is_negative = 1 - is_negative
        return tuple(places)

    def _prompt(self, item: ProbeItem, question: ReleasedQuestion, places: Sequence[int]) -> str:
        if not self._settings.chain:
            return PREFIX + question.text
        return PREFIX + (self._worked(item, places) if places else "") + question.text + STEP_BY_STEP

    def _worked(self, item: ProbeItem, places: Sequence[int]) -> str:
        """Both worked examples in the forms at these places."""
        group = (item.rule, item.distribution)
        if group not in self._examples:
            self._examples[group] = self._worded([(premise, conclusion, False) for premise, conclusion, _ in EXAMPLES])
        text = ""
        for forms, place, (_, _, reason) in zip(self._examples[group], places, EXAMPLES, strict=True):
            form = forms[place]
            text += f"{form.text}{STEP_BY_STEP}{reason}\n{form.closing} {form.answer}\n"
        return text

    def _replies(self, model: JournaledGenerator, prompts: Sequence[str], most_tokens: int) -> list[Generation]:
        requests = []
        for prompt in prompts:
            sample = (model.role, prompt)
            requests.append(GenerationRequest(prompt, sample_index=self._samples[sample]))
            # Equal requests, such as those for the examples of every rule, get samples of their own.
            self._samples[sample] += 1
        parameters = GenerationParameters(TEMPERATURE, max_tokens=most_tokens, seed=self._settings.seed)
        return model.generate(requests, parameters)
