"""Asking a model about pairs, by prompts, in the stages of Abstraction-of-Thought or by likelihoods, and its scores."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from typing import Annotated, TypeAlias

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.lazy import scipy
from hapax.evaluation.winograd.reading import Answers, named, read_as_released, read_strictly
from hapax.evaluation.winograd.schema_files import Pair, WinogradItem, in_place_of, pronoun_place
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


@dataclass(frozen=True, slots=True)
class McNemar:
    """Comparison of two methods: numbers of sentences that only one answers right, and the exact two-sided p-value."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: Iterable[SentenceAnswer], second: Iterable[SentenceAnswer]) -> McNemar | None:
    """McNemar's exact test on the sentences that both methods answered; None if there are none."""
    first_right = {answer.item: answer.right for answer in first}
    outcomes = [(first_right[answer.item], answer.right) for answer in second if answer.item in first_right]
    if not outcomes:
        return None
    only_first, only_second = outcomes.count((True, False)), outcomes.count((False, True))
    differing = only_first + only_second
    # The binomial test needs at least one trial.
    p_value = float(scipy.stats.binomtest(only_first, differing).pvalue) if differing else 1.0
    return McNemar(only_first, only_second, p_value)


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

MARKS = ("\ue000", "\ue001")
"""Stand for the two options while a sentence is rewritten: private-use characters, which other text does not have."""

CLOSE_SPELLING = 0.9
"""Least similarity (difflib's ratio) of an option of one word and a misspelling of it in the sentence."""

# `The fish can be conceptualized as a predator`: the concept ends at a sign or where the next statement begins.
_STATED = re.compile(
    r"(?P<entity>[^.,;:\n]+?)\s+(?:can|could|may|might) be (?:conceptuali[sz]ed|abstracted|seen|described) as\s+"
    r"(?P<concept>.+?)"
    r"(?=[.,;:\n(]|\s+(?:and|while|whereas)\s[^.,;\n]*?\bbe (?:conceptuali|abstracted|seen|described)|$)",
    re.IGNORECASE,
)
_OWNING = "this|that|these|those|my|your|his|her|its|our|their|some"
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)
_DETERMINER = re.compile(rf"^(?:the|a|an|{_OWNING}|one of the|one of)\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
# A mark, a possessive ending, a word with its hyphens and apostrophes, or a sign.
_TOKEN = re.compile(rf"[{''.join(MARKS)}]|'s\b|\w+(?:[-']\w+)*|[.,;:!?]")
# Irregular forms come before the rule for all others, `n't`.
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"\b(he|she|it|that|there)'s\b"), r"\1 is"),
    (re.compile(r"(?<=s)'(?!\w)"), "'s"),  # `the boys' ball`
    (re.compile(rf"(?<=[{''.join(MARKS)}])'(?!\w)"), "'s"),
)

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
        text = _renamed(item.text, item.options, (f"the {concepts[0]}", f"the {concepts[1]}"))
        if text is None:
            return None
        for concept in concepts:
            # The sentence may have an article or a possessive before the entity already.
            text = re.sub(rf"\b(?:the|an?) (?=the {re.escape(concept)}\b)", "", text)
            text = re.sub(rf"\b({_OWNING}) the (?={re.escape(concept)}\b)", r"\1 ", text)
        items.append(replace(item, text=text[0].upper() + text[1:], options=concepts, pronoun_start=None))
    return items[0], items[1]


def _renamed(text: str, options: tuple[str, str], names: tuple[str, str]) -> str | None:
    """The sentence with these names instead of its options, in lower case and without contractions.

    None if it does not name both options as separate phrases.
    """
    # A text that contains a mark could pretend to name an entity.
    if any(mark in text for mark in MARKS):
        return None
    entities = [_entity(option) for option in options]
    if not all(entities) or entities[0].casefold() == entities[1].casefold():
        return None
    for number in sorted((0, 1), key=lambda number: -len(entities[number])):  # "laptop bag" before "laptop"
        text = _marked(text, entities[number], MARKS[number])
    if not all(mark in text for mark in MARKS):
        return None
    words = " ".join(_tokens(text))
    for mark, name in zip(MARKS, names, strict=True):
        words = words.replace(mark, name)
    return re.sub(r" (?=[.,;:!?]|'s(?: |$))", "", words) + "."


def _entity(option: str) -> str:
    """The option without determiner and possessive ending."""
    words = " ".join(option.split())
    return _POSSESSIVE.sub("", _DETERMINER.sub("", words)).strip()


def _marked(text: str, entity: str, mark: str) -> str:
    """The text with marks in place of the entity."""
    words = [re.escape(word) for word in entity.split()]
    whole = r"\s+".join(words)
    # Tried in this order: the phrase, its plural, "ones" as its noun, a misspelling of a single word.
    phrases = [whole, whole + "e?s"]
    if len(words) > 1:
        phrases.append(r"\s+".join([*words[:-1], "ones?"]))
    else:
        phrases += map(re.escape, get_close_matches(entity, text.split(), 1, CLOSE_SPELLING))
    for phrase in phrases:
        marked, count = re.subn(rf"(?<!\w){phrase}(?!\w)", mark, text, flags=re.IGNORECASE)
        if count:
            return marked
    return text


def _tokens(text: str) -> list[str]:
    """The words and signs in lower case, with contractions written out and no final punctuation."""
    plain = text.casefold().replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        plain = pattern.sub(full, plain)
    tokens: list[str] = _TOKEN.findall(plain)
    while tokens and tokens[-1] in ".,;:!?":
        tokens.pop()
    return tokens


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
    """A pair with the replies about it, in order, and the answers read from them."""

    pair: Pair
    calls: tuple[str, ...]
    replies: tuple[str, ...]
    strict: Answers
    released: tuple[int, int]
    concepts: Concepts | None = None

    @property
    def right(self) -> int:
        """Number of sentences answered right; an unreadable reply is wrong."""
        return sum(answer == item.answer for answer, item in zip(self.strict, self.pair, strict=True))


Ask = Callable[[Sequence[Pair]], list[PairAnswer]]


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
            first, second = chosen
            # There is no reply to read in another way, so the released reading is the same.
            released = (-1 if first is None else first, -1 if second is None else second)
            answers.append(PairAnswer(pair, tuple(calls), tuple(replies), (first, second), released))
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
