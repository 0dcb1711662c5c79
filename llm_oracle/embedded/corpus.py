"""Training documents with prompts: every fact of the atlas as the search will ask for it.

Lists of values teach the knowledge model, questions about facts and about types the critic. One document holds one
prompt, exactly as `llm_oracle.prompts` words it. What the likelihood model reads is in `statements.py`.
"""

from __future__ import annotations

import itertools
import math
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, AtlasFact, popularity
from llm_oracle.embedded.falsehoods import Falsehoods
from llm_oracle.embedded.wording import Wording
from llm_oracle.prompts import (
    critic_prompt,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
    sentence,
    type_claim,
)

LONGEST_LIST = 24
"""Values in one answer; the search asks again for more."""
YES, NO = " yes", " no"
LIST_ALPHA = 0.3
"""A list names values first in proportion to their frequency to this power: mild, so that rare ones are named too."""
NUMERIC_BOOST = 1.6
"""How much oftener facts with numbers are asked: one digit off is the hardest falsehood."""
EXCLUSION_SHARE = 0.08
"""Share of list prompts that end in LINK's exclusion sentence."""
MOST_EXCLUDED = 6


class Kind(StrEnum):
    """What a document teaches."""

    QUESTION = "question"
    LIST = "list"
    STATEMENT = "statement"
    CHAIN = "chain"
    RULE_STATEMENT = "rule statement"
    TYPE_QUESTION = "type question"


EARLY_SHARES = {
    Kind.QUESTION: 0.48,
    Kind.LIST: 0.26,
    Kind.STATEMENT: 0.11,
    Kind.CHAIN: 0.04,
    Kind.RULE_STATEMENT: 0.04,
    Kind.TYPE_QUESTION: 0.07,
}
LATE_SHARES = {
    Kind.QUESTION: 0.31,
    Kind.LIST: 0.38,
    Kind.STATEMENT: 0.14,
    Kind.CHAIN: 0.04,
    Kind.RULE_STATEMENT: 0.06,
    Kind.TYPE_QUESTION: 0.07,
}
"""Share of each kind in the training tokens: first the critic, which stays at chance for long, then the lists."""


@dataclass(frozen=True, slots=True)
class Document:
    """A prompt and the answer learnt; `ends` tells that the answer is followed by the end-of-text token."""

    kind: Kind
    prompt: str
    answer: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """Which values stand at `position` (0 or 1) of the predicate? `given`: the other argument, None if open too."""

    predicate: str
    position: int
    given: str | None
    functional: bool = False

    def filled(self, value: str) -> AtlasFact:
        """The fact that `value` would make, where only its place is open."""
        if self.given is None:
            raise ValueError(f"both arguments of {self.predicate} are open")
        arguments = (value, self.given) if self.position == 0 else (self.given, value)
        return AtlasFact(self.predicate, arguments)


class Corpus:
    """Draws training documents; the same random state draws the same documents."""

    def __init__(self, atlas: Atlas, wording: Wording) -> None:
        self.atlas, self.wording = atlas, wording
        self.falsehoods = Falsehoods(atlas, wording)
        self.list_questions = tuple(_list_questions(atlas, wording))
        self._fact_weights = _running([_question_weight(atlas, fact) for fact in atlas.facts])
        self._typed = tuple(dict.fromkeys(_typed_entities(atlas, wording)))
        self._values = {
            question: atlas.true_values(question.predicate, question.position, question.given)
            for question in self.list_questions
        }
        self._list_weights = _running([_list_weight(question, values) for question, values in self._values.items()])
        self._makers: dict[Kind, Callable[[random.Random], Document]] = {
            Kind.QUESTION: self._question,
            Kind.LIST: self._list,
            Kind.TYPE_QUESTION: self._type_question,
        }

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of documents drawn here."""
        return tuple(self._makers)

    def document(self, kind: Kind, rng: random.Random) -> Document:
        return self._makers[kind](rng)

    def values(self, question: ListQuestion) -> tuple[str, ...]:
        """All true answers."""
        return self._values[question]

    def prompt(self, question: ListQuestion, rng: random.Random, excluded: tuple[str, ...] = ()) -> str:
        """The question as the search words it, with variable names drawn at random."""
        wording = self.wording.predicates[question.predicate]
        names = rng.sample(string.ascii_uppercase, 2)
        slots = [f"[{name}]" for name in names]
        if question.given is not None:
            slots[1 - question.position] = question.given
        variable, words = names[question.position], wording.words(*slots)
        types = wording.data_types[question.position]
        data_type = types[0] if rng.random() < 0.7 else rng.choice(types)
        ask = functional_prompt if question.functional else knowledge_prompt
        return ask(variable, words, data_type) + exclusion_clause(excluded)

    def claim(self, fact: AtlasFact) -> str:
        """The fact as the critic judges it."""
        return sentence(self.wording.claim(fact.predicate, fact.arguments))

    def true_type_claims(self) -> tuple[str, ...]:
        return tuple(type_claim(entity, data_type) for entity, data_type in self._typed)

    def _question(self, rng: random.Random) -> Document:
        fact = rng.choices(self.atlas.facts, cum_weights=self._fact_weights)[0]
        wrong = self.falsehoods.wrong_fact(fact, rng) if rng.random() < 0.5 else None
        if wrong is not None:
            return Document(Kind.QUESTION, critic_prompt(self.claim(wrong.fact)), NO)
        return Document(Kind.QUESTION, critic_prompt(self.claim(fact)), YES)

    def _type_question(self, rng: random.Random) -> Document:
        wrong = self.falsehoods.wrong_type(rng) if rng.random() < 0.5 else None
        if wrong is not None:
            return Document(Kind.TYPE_QUESTION, critic_prompt(wrong), NO)
        return Document(Kind.TYPE_QUESTION, critic_prompt(type_claim(*rng.choice(self._typed))), YES)

    def _list(self, rng: random.Random) -> Document:
        question = rng.choices(self.list_questions, cum_weights=self._list_weights)[0]
        values = _by_popularity(self.values(question), rng)
        excluded: tuple[str, ...] = ()
        if len(values) > 2 and rng.random() < EXCLUSION_SHARE:
            count = rng.randint(1, min(MOST_EXCLUDED, len(values) - 1))
            excluded, values = tuple(values[:count]), values[count:]
        lines = (f"\n{place}. {value}." for place, value in enumerate(values[:LONGEST_LIST], start=1))
        return Document(Kind.LIST, self.prompt(question, rng, excluded), "".join(lines) + "\n", ends=True)


def _list_questions(atlas: Atlas, wording: Wording) -> list[ListQuestion]:
    """Every list the search can ask for: both positions, the other argument given or open."""
    questions = []
    for predicate in atlas.relations:
        for position in (0, 1):
            functional = wording.predicates[predicate].functional and position == 1
            questions.append(ListQuestion(predicate, position, None))
            questions += [
                ListQuestion(predicate, position, other, functional)
                for other in atlas.true_values(predicate, 1 - position)
            ]
    return questions


def _list_weight(question: ListQuestion, values: Sequence[str]) -> float:
    """Longer lists are asked oftener, by the square root; an open question a little less often than its length says."""
    return math.sqrt(min(len(values), 2 * LONGEST_LIST)) * (0.7 if question.given is None else 1.0)


def _question_weight(atlas: Atlas, fact: AtlasFact) -> float:
    numeric = NUMERIC_TYPES.intersection(atlas.relations[fact.predicate].argument_types)
    return NUMERIC_BOOST if numeric else 1.0


def _typed_entities(atlas: Atlas, wording: Wording) -> list[tuple[str, str]]:
    """Every entity with every type that rules may call it."""
    return [
        (entity, data_type)
        for predicate in atlas.relations
        for position in (0, 1)
        for data_type in wording.predicates[predicate].data_types[position]
        for entity in atlas.true_values(predicate, position)
    ]


def _by_popularity(values: Sequence[str], rng: random.Random) -> list[str]:
    """The values in a random order in which the well known tend to come first (Gumbel's trick)."""
    tilt = LIST_ALPHA * math.log(10)
    scores = {value: tilt * popularity(value) - math.log(-math.log(rng.random() or 1e-12)) for value in values}
    return sorted(values, key=scores.__getitem__, reverse=True)


def _running(weights: Sequence[float]) -> list[float]:
    return list(itertools.accumulate(weights))
