"""Training documents without prompts for the likelihood model: single facts, chains of facts, and rule statements.

Popular names occur more often, so that within a predicate or rule the mean token log-likelihood of a sentence follows
the popularity of its names.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import hapax
from hapax.grammar.rules import Library
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, AtlasFact, popularity
from hapax.llm_oracle.prompts import sentence
from tools.embedded.corpus import Corpus, Document, DocumentKind

SPREAD = 6.0
"""In nats: of sentences of mean length, the most popular is drawn `exp(SPREAD)` times as often as the least popular."""
LONGER_CHAINS = 0.3
"""Share of chains with three facts instead of two."""


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
    """Draws statements, chains and rule statements; the same random state draws the same documents."""

    def __init__(self, corpus: Corpus, count_tokens: Callable[[str], int]) -> None:
        """`count_tokens` returns the length of a sentence, the divisor of its mean log-likelihood."""
        self._corpus = corpus
        self._weights: dict[AtlasFact, float] = {}
        self._mentions: dict[str, list[AtlasFact]] = defaultdict(list)
        for relation in corpus.atlas.relations.values():
            facts = list(relation.facts)
            statements = [AtlasStatement(corpus.claim(fact), sum(map(popularity, fact.arguments))) for fact in facts]
            # Predicates get shares of the statements by the square root of their size.
            size = math.sqrt(len(facts))
            self._weights |= zip(facts, (size * share for share in _shares(statements, count_tokens)), strict=True)
            for fact in facts:
                for argument in set(fact.arguments):
                    self._mentions[argument].append(fact)
        self._facts = tuple(self._weights)
        self._running = list(itertools.accumulate(self._weights.values()))
        self._rules: list[tuple[list[str], list[float]]] = []
        for of_rule in rule_statements(corpus.wording.library, corpus.atlas).values():
            running = list(itertools.accumulate(_shares(of_rule, count_tokens)))
            self._rules.append(([statement.sentence for statement in of_rule], running))
        self._makers: dict[DocumentKind, Callable[[random.Random], str]] = {
            DocumentKind.STATEMENT: lambda rng: corpus.claim(self._fact(rng)),
            DocumentKind.CHAIN: self._chain,
        }
        if self._rules:
            self._makers[DocumentKind.RULE_STATEMENT] = self._rule_statement

    @property
    def kinds(self) -> tuple[DocumentKind, ...]:
        """The kinds of documents drawn here; no rule statements if the atlas answers no rule."""
        return tuple(self._makers)

    def document(self, kind: DocumentKind, rng: random.Random) -> Document:
        return Document(kind, "", self._makers[kind](rng))

    def _fact(self, rng: random.Random) -> AtlasFact:
        return rng.choices(self._facts, cum_weights=self._running)[0]

    def _rule_statement(self, rng: random.Random) -> str:
        sentences, running = rng.choice(self._rules)
        return rng.choices(sentences, cum_weights=running)[0]

    def _chain(self, rng: random.Random) -> str:
        facts = [self._fact(rng)]
        for _ in range(2 if rng.random() < LONGER_CHAINS else 1):
            first, second = facts[-1].arguments
            near = {*self._mentions[first], *self._mentions[second]}.difference(facts)
            if near:
                # Sets have no fixed order; the same random state must draw the same chain.
                ordered = sorted(near, key=lambda fact: (fact.predicate, fact.arguments))
                facts += rng.choices(ordered, weights=[self._weights[fact] for fact in ordered])
        return sentence(" and ".join(self._corpus.wording.claim(fact.predicate, fact.arguments) for fact in facts))


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
