"""Training documents, in the exact words of a search (`llm_oracle.prompts`), one prompt a document.

Lists of values train the knowledge model; questions about facts and types train the critic; statements without a
prompt train the likelihood model. Popular names are in more statements, so that within a predicate or rule the mean
token log-likelihood of a sentence follows the popularity of its names.
"""

from __future__ import annotations

import itertools
import math
import random
import string
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import hapax
from hapax.grammar.rules import Library
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, AtlasFact, popularity
from hapax.llm_oracle.questions.prompts import (
    critic_prompt,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
    sentence,
    type_claim,
)
from tools.embedded.facts import AtlasWording, Falsehoods

LONGEST_LIST = 24
"""Most values in an answer; a search asks again for more."""
YES, NO = " yes", " no"
LIST_ALPHA = 0.3
"""The chance of a value to come first in a list grows with this power of its frequency: low, to include rare values."""
NUMERIC_BOOST = 1.6
"""Factor by which facts with numbers are asked more often: a number with one wrong digit is the hardest falsehood."""
EXCLUSION_SHARE = 0.08
"""Share of list prompts that end in LINK's exclusion sentence."""
MOST_EXCLUDED = 6


class DocumentKind(StrEnum):
    """Kinds of training documents."""

    QUESTION = "question"
    LIST = "list"
    STATEMENT = "statement"
    RULE_STATEMENT = "rule statement"
    TYPE_QUESTION = "type question"


EARLY_SHARES = {
    DocumentKind.QUESTION: 0.48,
    DocumentKind.LIST: 0.26,
    DocumentKind.STATEMENT: 0.15,
    DocumentKind.RULE_STATEMENT: 0.04,
    DocumentKind.TYPE_QUESTION: 0.07,
}
LATE_SHARES = {
    DocumentKind.QUESTION: 0.31,
    DocumentKind.LIST: 0.38,
    DocumentKind.STATEMENT: 0.18,
    DocumentKind.RULE_STATEMENT: 0.06,
    DocumentKind.TYPE_QUESTION: 0.07,
}
"""Share of each kind in the training tokens: first more for the critic, which stays at chance for long, then lists."""


@dataclass(frozen=True, slots=True)
class Document:
    """A prompt and the answer to learn; `ends` adds the end-of-text token to the answer."""

    kind: DocumentKind
    prompt: str
    answer: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """A question for the values at `position` (0 or 1) of a predicate; `given` is the other argument, None if open."""

    predicate: str
    position: int
    given: str | None
    functional: bool = False


class Corpus:
    """Draws training documents; the same random state draws the same documents."""

    def __init__(self, atlas: Atlas, wording: AtlasWording) -> None:
        self.atlas, self.wording = atlas, wording
        self.falsehoods = Falsehoods(atlas, wording)
        self.list_questions = tuple(_list_questions(atlas, wording))
        # Running sums, because `random.choices` would add up plain weights again on each draw.
        self._fact_weights = _running([_question_weight(atlas, fact) for fact in atlas.facts])
        self.typed = tuple(dict.fromkeys(_typed_entities(atlas, wording)))
        self._values = {
            question: atlas.true_values(question.predicate, question.position, question.given)
            for question in self.list_questions
        }
        self._list_weights = _running([_list_weight(question, values) for question, values in self._values.items()])
        self._makers: dict[DocumentKind, Callable[[random.Random], Document]] = {
            DocumentKind.QUESTION: self._question,
            DocumentKind.LIST: self._list,
            DocumentKind.TYPE_QUESTION: self._type_question,
        }

    @property
    def kinds(self) -> tuple[DocumentKind, ...]:
        """The kinds of documents drawn here."""
        return tuple(self._makers)

    def document(self, kind: DocumentKind, rng: random.Random) -> Document:
        return self._makers[kind](rng)

    def values(self, question: ListQuestion) -> tuple[str, ...]:
        """All true answers."""
        return self._values[question]

    def prompt(self, question: ListQuestion, rng: random.Random, excluded: tuple[str, ...] = ()) -> str:
        """The question in the words of a search, with random variable names."""
        wording = self.wording.predicates[question.predicate]
        names = rng.sample(string.ascii_uppercase, 2)
        slots = [f"[{name}]" for name in names]
        if question.given is not None:
            slots[1 - question.position] = question.given
        variable, words = names[question.position], wording.words(*slots)
        types = wording.data_types[question.position]
        # The atlas's own type comes first and is asked for most; rules use the others, too.
        data_type = types[0] if rng.random() < 0.7 else rng.choice(types)
        ask = functional_prompt if question.functional else knowledge_prompt
        return ask(variable, words, data_type) + exclusion_clause(excluded)

    def claim(self, fact: AtlasFact) -> str:
        """The fact as a sentence for the critic."""
        return sentence(self.wording.claim(fact.predicate, fact.arguments))

    def _question(self, rng: random.Random) -> Document:
        fact = rng.choices(self.atlas.facts, cum_weights=self._fact_weights)[0]
        # As many falsehoods as truths; where no falsehood is found, the truth takes its place.
        wrong = self.falsehoods.wrong_fact(fact, rng) if rng.random() < 0.5 else None
        if wrong is not None:
            return Document(DocumentKind.QUESTION, critic_prompt(self.claim(wrong)), NO)
        return Document(DocumentKind.QUESTION, critic_prompt(self.claim(fact)), YES)

    def _type_question(self, rng: random.Random) -> Document:
        wrong = self.falsehoods.wrong_type(rng) if rng.random() < 0.5 else None
        if wrong is not None:
            return Document(DocumentKind.TYPE_QUESTION, critic_prompt(wrong), NO)
        return Document(DocumentKind.TYPE_QUESTION, critic_prompt(type_claim(*rng.choice(self.typed))), YES)

    def _list(self, rng: random.Random) -> Document:
        question = rng.choices(self.list_questions, cum_weights=self._list_weights)[0]
        values = _by_popularity(self.values(question), rng)
        excluded: tuple[str, ...] = ()
        if len(values) > 2 and rng.random() < EXCLUSION_SHARE:
            count = rng.randint(1, min(MOST_EXCLUDED, len(values) - 1))
            excluded, values = tuple(values[:count]), values[count:]
        lines = (f"\n{place}. {value}." for place, value in enumerate(values[:LONGEST_LIST], start=1))
        return Document(DocumentKind.LIST, self.prompt(question, rng, excluded), "".join(lines) + "\n", ends=True)


def _list_questions(atlas: Atlas, wording: AtlasWording) -> list[ListQuestion]:
    """All lists that a search can ask for: both positions, with the other argument given or open."""
    questions = []
    for predicate in atlas.relations:
        for position in (0, 1):
            # Only the last argument of a functional predicate has a single right value, and only for a given first.
            functional = wording.predicates[predicate].functional and position == 1
            questions.append(ListQuestion(predicate, position, None))
            for given in atlas.true_values(predicate, 1 - position):
                questions.append(ListQuestion(predicate, position, given, functional))
    return questions


def _list_weight(question: ListQuestion, values: Sequence[str]) -> float:
    """Relative frequency of a question: the square root of its length, less if both arguments are open."""
    return math.sqrt(min(len(values), 2 * LONGEST_LIST)) * (0.7 if question.given is None else 1.0)


def _question_weight(atlas: Atlas, fact: AtlasFact) -> float:
    numeric = NUMERIC_TYPES.intersection(atlas.relations[fact.predicate].argument_types)
    return NUMERIC_BOOST if numeric else 1.0


def _typed_entities(atlas: Atlas, wording: AtlasWording) -> list[tuple[str, str]]:
    """All entities with all types that rules may use for them."""
    typed = []
    for predicate, position in itertools.product(atlas.relations, (0, 1)):
        entities = atlas.true_values(predicate, position)
        for data_type in wording.predicates[predicate].data_types[position]:
            typed += [(entity, data_type) for entity in entities]
    return typed


def _by_popularity(values: Sequence[str], rng: random.Random) -> list[str]:
    """The values in a random order in which popular ones tend to come first (Gumbel trick)."""
    tilt = LIST_ALPHA * math.log(10)
    # `random` may return 0, which has no logarithm.
    scores = {value: tilt * popularity(value) - math.log(-math.log(rng.random() or 1e-12)) for value in values}
    return sorted(values, key=scores.__getitem__, reverse=True)


def _running(weights: Sequence[float]) -> list[float]:
    return list(itertools.accumulate(weights))


SPREAD = 6.0
"""In nats: of sentences of mean length, the most popular is drawn `exp(SPREAD)` times as often as the least popular."""


@dataclass(frozen=True, slots=True)
class AtlasStatement:
    """A sentence that is true by the atlas, and the total popularity of the names in it."""

    sentence: str
    popularity: float


def rule_statements(library: Library, atlas: Atlas) -> dict[str, list[AtlasStatement]]:
    """The distinct statements that the rules conclude from the atlas, by rule."""
    with hapax.KnowledgeBase() as kb:
        for name, relation in atlas.relations.items():
            rows = []
            for fact in relation.facts:
                typed = zip(fact.arguments, relation.argument_types, strict=True)
                rows.append(tuple(Decimal(value) if kind in NUMERIC_TYPES else value for value, kind in typed))
            hapax.add_facts(kb, name, rows, library)
        by_rule: dict[str, dict[str, AtlasStatement]] = defaultdict(dict)
        for statement in hapax.derive(library, kb).statements:
            names = set(map(str, statement.values.values()))
            known = sum(popularity(name) for name in names if name in statement.text)
            by_rule[statement.rule][statement.text] = AtlasStatement(statement.text, known)
    return {name: list(statements.values()) for name, statements in by_rule.items()}


class StatementSampler:
    """Draws statements of facts and of rules; the same random state draws the same documents."""

    def __init__(self, corpus: Corpus, count_tokens: Callable[[str], int]) -> None:
        """`count_tokens` returns the length of a sentence, the divisor of its mean log-likelihood."""
        self._corpus = corpus
        weights: dict[AtlasFact, float] = {}
        for relation in corpus.atlas.relations.values():
            facts = list(relation.facts)
            statements = [AtlasStatement(corpus.claim(fact), sum(map(popularity, fact.arguments))) for fact in facts]
            # Predicates get shares of the statements by the square root of their size.
            size = math.sqrt(len(facts))
            weights |= zip(facts, (size * share for share in _shares(statements, count_tokens)), strict=True)
        self._facts = tuple(weights)
        self._running = list(itertools.accumulate(weights.values()))
        self._rules: list[tuple[list[str], list[float]]] = []
        for of_rule in rule_statements(corpus.wording.library, corpus.atlas).values():
            running = list(itertools.accumulate(_shares(of_rule, count_tokens)))
            self._rules.append(([statement.sentence for statement in of_rule], running))
        self._makers: dict[DocumentKind, Callable[[random.Random], str]] = {
            DocumentKind.STATEMENT: self._fact,
            DocumentKind.RULE_STATEMENT: self._rule_statement,
        }

    @property
    def kinds(self) -> tuple[DocumentKind, ...]:
        """The kinds of documents drawn here."""
        return tuple(self._makers)

    def document(self, kind: DocumentKind, rng: random.Random) -> Document:
        return Document(kind, "", self._makers[kind](rng))

    def _fact(self, rng: random.Random) -> str:
        return self._corpus.claim(rng.choices(self._facts, cum_weights=self._running)[0])

    def _rule_statement(self, rng: random.Random) -> str:
        sentences, running = rng.choice(self._rules)
        return rng.choices(sentences, cum_weights=running)[0]


def _shares(statements: Sequence[AtlasStatement], count_tokens: Callable[[str], int]) -> list[float]:
    lengths = [count_tokens(statement.sentence) for statement in statements]
    return sampling_shares(lengths, [statement.popularity for statement in statements])


def sampling_shares(lengths: Sequence[int], popularities: Sequence[float]) -> list[float]:
    """Sampling shares that add up to 1 and whose logarithm per token is linear in popularity.

    A model that learns them ranks the sentences by popularity, however long their names are. With other shares the mean
    over tokens would favour long rare names, in which all tokens but the first are certain.
    """
    lowest, highest = min(popularities), max(popularities)
    slope = SPREAD * len(lengths) / (sum(lengths) * (highest - lowest)) if highest > lowest else 0.0

    def logs(level: float) -> list[float]:
        return [
            length * (slope * (known - highest) - level) for length, known in zip(lengths, popularities, strict=True)
        ]

    # Bisection over the level. At 0 the most popular sentence alone has share 1; at the upper bound the shares add up
    # to less than 1, since every length is at least 1.
    low, high = 0.0, math.log(len(lengths)) + 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(map(math.exp, logs(middle))) > 1 else (low, middle)
    shares = [math.exp(log) for log in logs(high)]
    whole = math.fsum(shares)
    return [share / whole for share in shares]
