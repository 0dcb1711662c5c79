"""Asking a model about pairs, by prompts, in the stages of Abstraction-of-Thought or by likelihoods, and its scores."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, TypeAlias

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.lazy import scipy
from hapax.evaluation.winograd.reply_reading import Answers, named, read_as_released, read_strictly
from hapax.evaluation.winograd.schema_files import (
    Pair,
    WinogradItem,
    in_place_of,
    occurs_in,
    options_as_named,
    pronoun_place,
    replaced,
)
from hapax.evaluation.winograd.schema_prompts import (
    OwnPrompt,
    PromptMethod,
    PromptWording,
    abstract_prompt,
    abstraction_prompt,
    prompt,
)
from hapax.grammar.arguments import checked
from hapax.grammar.options import Option, Seed, Temperature
from hapax.kb.exchange.values import refusal
from hapax.kb.records import FactRecord, PredicateRecord, Source
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator, LikelihoodModel


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """Answer to a sentence. `strict`: the option read, or None if none was; `released`: 0, 1 or -1."""

    item: str
    pair: str
    family: str
    gold: int
    strict: int | None
    released: int

    @property
    def right(self) -> bool:
        return self.strict == self.gold

    @property
    def right_as_released(self) -> bool:
        return self.released == self.gold


Right = Callable[[SentenceAnswer], bool]


@dataclass(frozen=True, slots=True)
class Scores:
    """The paper's three scores, with Wilson intervals over sentences, pairs and families."""

    single: Estimate
    pair: Estimate
    consistency: Estimate

    @classmethod
    def of(cls, answers: Sequence[SentenceAnswer], right: Right) -> Scores:
        """Scores of the answers. `right` says which answers count as right."""
        pairs: dict[str, bool] = {}
        families: dict[str, bool] = {}
        for answer in answers:
            # One wrong sentence makes its pair and its family wrong.
            pairs[answer.pair] = pairs.get(answer.pair, True) and right(answer)
            families[answer.family] = families.get(answer.family, True) and right(answer)
        single = [right(answer) for answer in answers]
        return cls(share(single), share(list(pairs.values())), share(list(families.values())))


@dataclass(frozen=True, slots=True)
class ReadingScores:
    """Scores of the same replies by the strict and by the released reading, and the share without a strict answer."""

    strict: Scores
    released: Scores
    unparsed: Estimate


def measure(answers: Sequence[SentenceAnswer]) -> ReadingScores:
    """Scores of one method on one source.

    Consistency is the share of families with right answers to all sentences, 1/m sum floor(C/N) (section 3.3).
    """
    return ReadingScores(
        Scores.of(answers, lambda answer: answer.right),
        Scores.of(answers, lambda answer: answer.right_as_released),
        share([answer.strict is None for answer in answers]),
    )


def mcnemar(first: Iterable[SentenceAnswer], second: Iterable[SentenceAnswer]) -> tuple[int, int, float] | None:
    """McNemar's exact test on the sentences that both methods answered; None if there are none.

    Numbers of sentences that only the first and only the second answers right, and the two-sided p-value.
    """
    first_right = {answer.item: answer.right for answer in first}
    outcomes = [(first_right[answer.item], answer.right) for answer in second if answer.item in first_right]
    only_first, only_second = outcomes.count((True, False)), outcomes.count((False, True))
    differing = only_first + only_second
    # The binomial test needs at least one trial.
    p_value = float(scipy.stats.binomtest(only_first, differing).pvalue) if differing else 1.0
    return (only_first, only_second, p_value) if outcomes else None


ABSTRACTS_TO = PredicateRecord(
    "abstracts_to",
    ("Entity", "Concept"),
    "oracle",
    "[1] can be conceptualized as [2]",
    "[1] cannot be conceptualized as [2]",
    "can [1] be conceptualized as [2]?",
)
"""Predicate of the facts that store mappings."""

MOST_CHARACTERS = 80
"""Longest concept; longer texts are whole sentences."""

# `The fish can be conceptualized as a predator`: the concept ends at a sign or where the next statement begins.
_STATED = re.compile(
    r"(?P<entity>[^.,;:\n]+?)\s+(?:can|could|may|might) be (?:conceptuali[sz]ed|abstracted|seen|described) as\s+"
    r"(?P<concept>.+?)"
    r"(?=[.,;:\n(]|\s+(?:and|while|whereas)\s[^.,;\n]*?\bbe (?:conceptuali|abstracted|seen|described)|$)",
    re.IGNORECASE,
)
_OWNING = "this|that|these|those|my|your|his|her|its|our|their|some"
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)

Concepts = tuple[str, str]
"""The concepts of the two options, in their order."""


def read_concepts(reply: str, options: tuple[str, str]) -> Concepts | None:
    """The first concept that the reply states for each option; None unless it states a concept for both.

    Two equal concepts become `person X` and `person Y`, as in the paper's figure 1.
    """
    concepts: dict[int, str] = {}
    for match in _STATED.finditer(reply.replace("*", "")):  # without Markdown emphasis
        entity = re.sub(r"^\s*(?:and|while|whereas)\s+", "", match["entity"], flags=re.IGNORECASE)
        option = named(entity, options)
        concept = _ARTICLE.sub("", " ".join(match["concept"].split()).strip("\"'“” "))
        # A concept that the knowledge base cannot store is not a concept.
        if option is not None and concept and len(concept) <= MOST_CHARACTERS and not refusal(concept):
            concepts.setdefault(option, concept)
    if len(concepts) < 2:
        return None
    if concepts[0].casefold() == concepts[1].casefold():
        return f"{concepts[0]} X", f"{concepts[1]} Y"
    return concepts[0], concepts[1]


def abstract_pair(pair: Pair, concepts: Concepts) -> Pair | None:
    """The pair with concepts instead of entities; None if a sentence does not name both entities."""
    items = []
    for item in pair:
        named_options = options_as_named(item)
        if named_options is None:
            return None
        text = replaced(item.text, named_options, (f"the {concepts[0]}", f"the {concepts[1]}"))
        for concept in concepts:
            # The sentence may have an article or a possessive before the entity already.
            text = re.sub(rf"\b(?:the|an?) (?=the {re.escape(concept)}\b)", "", text, flags=re.IGNORECASE)
            text = re.sub(rf"\b({_OWNING}) the (?={re.escape(concept)}\b)", r"\1 ", text, flags=re.IGNORECASE)
            # One entity may be a part of the other's name.
            if not occurs_in(concept, text):
                return None
        items.append(replace(item, text=text[0].upper() + text[1:], options=concepts, pronoun_start=None))
    return items[0], items[1]


def mapping_facts(options: tuple[str, str], concepts: Concepts, run_id: str) -> list[FactRecord]:
    """Mapping of a reply as facts `abstracts_to(Entity, Concept)`."""
    name, types = ABSTRACTS_TO.name, ABSTRACTS_TO.argument_types
    facts = []
    for entity, concept in zip(options, concepts, strict=True):
        if not refusal(entity):
            facts.append(FactRecord(name, (entity, concept), types, Source.MODEL, run_id=run_id))
    return facts


ROLE = "winograd"
"""Role under which these calls are counted."""


Sources: TypeAlias = Annotated[tuple[str, ...], Option("Use only these sources, such as CR-WSC-H.", name="source")]
WordingVariant: TypeAlias = Annotated[
    PromptWording, Option("Prompts as the paper prints them, or as its notebooks send them.")
]


@checked
@dataclass(frozen=True, slots=True)
class AskSettings:
    """Settings of asking. `temperature` 0 asks for the likeliest reply; `tokens` limits its length."""

    method: PromptMethod = PromptMethod.ZERO_SHOT
    variant: WordingVariant = PromptWording.PAPER
    own: OwnPrompt | None = None
    temperature: Temperature = 0.0
    tokens: Annotated[int, Option("Maximum tokens of a reply.", name="reply-tokens", least=1)] = 512
    seed: Seed = 0

    @property
    def name(self) -> str:
        """The method's name in tables."""
        return self.own.name if self.own is not None else self.method.value


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """A pair with the replies about it, in order, and the answers read from them.

    `released`: by the released reading; None where there is no reply to read in another way.
    """

    pair: Pair
    calls: tuple[str, ...]
    replies: tuple[str, ...]
    strict: Answers
    released: tuple[int, int] | None = None
    concepts: Concepts | None = None

    @property
    def right(self) -> int:
        """Number of sentences answered right; an unreadable reply is wrong."""
        return sum(answer == item.answer for answer, item in zip(self.strict, self.pair, strict=True))

    @property
    def cells(self) -> list[list[Any]]:
        """The answers to both sentences, as a run stores them: the fields of `SentenceAnswer`."""
        released = self.released or tuple(-1 if option is None else option for option in self.strict)
        rows = zip(self.pair, self.strict, released, strict=True)
        return [[item.id, item.pair, item.family, item.answer, *answers] for item, *answers in rows]


Ask = Callable[[Sequence[Pair]], list[PairAnswer]]


def asking(model: Generator, journal: Journal, settings: AskSettings) -> Ask:
    """The function that asks a batch of pairs by the method of the settings."""
    generator, method = JournaledGenerator(model, journal, role=ROLE), settings.method
    parameters = GenerationParameters(settings.temperature, max_tokens=settings.tokens, seed=settings.seed)
    own = settings.own.text if settings.own is not None else ""

    def replies_to(prompts: Sequence[str]) -> list[tuple[str, str]]:
        """Journal ids and texts of the replies."""
        requests = [GenerationRequest(text) for text in prompts]
        replies = generator.generate(requests, parameters)
        calls = generator.call_ids(requests, parameters)
        return [(call, reply.text) for call, reply in zip(calls, replies, strict=True)]

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        """Ask by a single prompt."""
        replies = replies_to([prompt(pair, method, settings.variant, own) for pair in pairs])
        answers = []
        for pair, (call, reply) in zip(pairs, replies, strict=True):
            options = pair[0].options
            released = read_as_released(reply, options, zero_shot=method is PromptMethod.ZERO_SHOT)
            concepts = read_concepts(reply, options) if method in (PromptMethod.AOT, PromptMethod.OWN) else None
            answers.append(PairAnswer(pair, (call,), (reply,), read_strictly(reply, options), released, concepts))
        return answers

    def ask_in_stages(pairs: Sequence[Pair]) -> list[PairAnswer]:
        """Abstract, answer about the concepts, and map the answer back to entities without a model.

        The second question names no entity, so associations of the entities cannot influence the answer.
        """
        first = replies_to([abstraction_prompt(pair) for pair in pairs])
        mappings = [read_concepts(reply, pair[0].options) for pair, (_, reply) in zip(pairs, first, strict=True)]
        # None stays None: without concepts there is no second question, and the answer counts as unreadable.
        abstract = [known and abstract_pair(pair, known) for pair, known in zip(pairs, mappings, strict=True)]
        second = iter(replies_to([abstract_prompt(pair) for pair in abstract if pair is not None]))
        answers = []
        for pair, asked, mapping, rewritten in zip(pairs, first, mappings, abstract, strict=True):
            strict: Answers = (None, None)
            exchange = [asked]
            if rewritten is not None:
                exchange.append(next(second))
                # Options and concepts have the same order, so the answer needs no translation.
                strict = read_strictly(exchange[1][1], rewritten[0].options)
            calls, texts = zip(*exchange, strict=True)
            answers.append(PairAnswer(pair, calls, texts, strict, concepts=mapping))
        return answers

    return ask_in_stages if method is PromptMethod.AOT_STAGED else ask


QUESTION = '{text}\nQuestion: What does "{pronoun}" refer to?\n1. {first}\n2. {second}\nAnswer: {number}'


def _terms(item: WinogradItem, option: int, method: PromptMethod) -> dict[str, int]:
    """Texts with the factors of their log-likelihoods in an option's score; none if the sentence lacks the pronoun."""
    name = item.options[option]
    if method is PromptMethod.LIKELIHOOD_CHOICE:
        rival = item.options[1 - option]
        fields = {"text": item.text, "pronoun": item.pronoun}
        # In both orders, because models prefer a position.
        ahead = QUESTION.format(**fields, first=name, second=rival, number=1)
        behind = QUESTION.format(**fields, first=rival, second=name, number=2)
        return {ahead: 1, behind: 1}
    pronoun = pronoun_place(item)
    if pronoun is None:
        return {}
    beginning = f"{item.text[: pronoun.start()]}{in_place_of(pronoun, name)}"
    terms = {f"{beginning}{item.text[pronoun.end() :]}": 1}
    if method is PromptMethod.LIKELIHOOD_PARTIAL:
        # log P(rest | beginning) = log P(sentence) - log P(beginning).
        terms[beginning] = -1
    elif method is PromptMethod.LIKELIHOOD_PMI:
        terms[f"{name[0].upper()}{name[1:]}."] = -1
    return terms


def scoring(model: LikelihoodModel, journal: Journal, settings: AskSettings) -> Ask:
    """The function that answers a batch of pairs by the scores of the settings' method."""
    likelihood = JournaledLikelihood(model, journal, role=ROLE)

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        terms = {}
        for item in chain.from_iterable(pairs):
            terms[item.id] = [_terms(item, option, settings.method) for option in (0, 1)]
        texts = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(terms.values()))))
        scores = likelihood.log_likelihoods(texts)
        # A text that the model refuses has no likelihood, and its sentence no answer.
        totals = {text: score.total for text, score in zip(texts, scores, strict=True) if not score.refused}
        call_ids = dict(zip(texts, likelihood.call_ids(texts), strict=True))
        answers = []
        for pair in pairs:
            calls: dict[str, None] = {}
            chosen, replies = [], []
            for item in pair:
                calls |= dict.fromkeys(call_ids[text] for text in chain.from_iterable(terms[item.id]))
                option_scores = _option_scores(terms[item.id], totals)
                chosen.append(_likelier(option_scores))
                named = zip(item.options, option_scores, strict=False)
                replies.append(", ".join(f"{option}: {score:.3f}" for option, score in named))
            answers.append(PairAnswer(pair, tuple(calls), tuple(replies), (chosen[0], chosen[1])))
        return answers

    return ask


def _option_scores(by_option: Sequence[Mapping[str, int]], totals: Mapping[str, float]) -> list[float]:
    """Scores of a sentence's two options, in nats; empty if it cannot be scored."""
    scores = []
    for terms in by_option:
        if not terms or not terms.keys() <= totals.keys():
            return []
        scores.append(math.fsum(factor * totals[text] for text, factor in terms.items()))
    return scores


def _likelier(scores: Sequence[float]) -> int | None:
    """The option with the higher score; None where they are equal or there are none."""
    return None if len(set(scores)) < 2 else scores.index(max(scores))
