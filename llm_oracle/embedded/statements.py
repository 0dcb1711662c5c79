"""Training documents without prompts: what the likelihood model reads, the well known oftener than the rare.

Single facts, chains of facts joined as the search ranks them, and whole statements of the shipped rules. How often each
is told makes its mean token log-likelihood follow the popularity of its names, within its predicate or rule.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from llm_oracle.embedded.atlas import AtlasFact, popularity
from llm_oracle.embedded.corpus import Corpus, Document, Kind
from llm_oracle.embedded.groundings import Told, rule_statements
from llm_oracle.prompts import sentence

SPREAD = 6.0
"""Nats: of two sentences of middling length, the best known is told `exp(SPREAD)` times as often as the least known."""
LONGER_CHAINS = 0.3
"""Share of chains of three facts; the others have two."""


class Statements:
    """Draws statements, chains and rule statements; the same random state draws the same documents."""

    def __init__(self, corpus: Corpus, count_tokens: Callable[[str], int]) -> None:
        """`count_tokens`: the length of a sentence, which its mean log-likelihood is divided by."""
        self._corpus = corpus
        self._weights: dict[AtlasFact, float] = {}
        self._mentions: dict[str, list[AtlasFact]] = defaultdict(list)
        for relation in corpus.atlas.relations.values():
            facts = list(relation.facts)
            told = [Told(corpus.claim(fact), sum(map(popularity, fact.arguments))) for fact in facts]
            # Predicates share the statements by the square root of their size.
            size = math.sqrt(len(facts))
            self._weights |= zip(facts, (size * share for share in _shares(told, count_tokens)), strict=True)
            for fact in facts:
                for argument in set(fact.arguments):
                    self._mentions[argument].append(fact)
        self._facts = tuple(self._weights)
        self._running = list(itertools.accumulate(self._weights.values()))
        self._rules = [
            ([each.sentence for each in told], list(itertools.accumulate(_shares(told, count_tokens))))
            for told in rule_statements(corpus.wording.library, corpus.atlas).values()
        ]
        self._makers: dict[Kind, Callable[[random.Random], str]] = {
            Kind.STATEMENT: lambda rng: corpus.claim(self._fact(rng)),
            Kind.CHAIN: self._chain,
        }
        if self._rules:
            self._makers[Kind.RULE_STATEMENT] = self._rule_statement

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of documents drawn here; no rule statements where the atlas answers no rule."""
        return tuple(self._makers)

    def document(self, kind: Kind, rng: random.Random) -> Document:
        return Document(kind, "", self._makers[kind](rng))

    def _fact(self, rng: random.Random) -> AtlasFact:
        return rng.choices(self._facts, cum_weights=self._running)[0]

    def _rule_statement(self, rng: random.Random) -> str:
        sentences, running = rng.choice(self._rules)
        return rng.choices(sentences, cum_weights=running)[0]

    def _chain(self, rng: random.Random) -> str:
        facts = [self._fact(rng)]
        for _ in range(2 if rng.random() < LONGER_CHAINS else 1):
            near = {other for argument in facts[-1].arguments for other in self._mentions[argument]}.difference(facts)
            if near:
                ordered = sorted(near, key=lambda fact: (fact.predicate, fact.arguments))
                facts += rng.choices(ordered, weights=[self._weights[fact] for fact in ordered])
        return sentence(" and ".join(self._corpus.wording.claim(fact.predicate, fact.arguments) for fact in facts))


def _shares(told: Sequence[Told], count_tokens: Callable[[str], int]) -> list[float]:
    return telling_shares([count_tokens(each.sentence) for each in told], [each.popularity for each in told])


def telling_shares(lengths: Sequence[int], popularities: Sequence[float]) -> list[float]:
    """Shares that add up to 1 and whose logarithm per token is linear in popularity.

    A model that learns them has a mean token log-likelihood which ranks the sentences as popularity does, however long
    their names are; the mean would otherwise flatter long rare names, all but whose first tokens are certain.
    """
    lowest, highest = min(popularities), max(popularities)
    slope = SPREAD * len(lengths) / (sum(lengths) * (highest - lowest)) if highest > lowest else 0.0

    def logs(level: float) -> list[float]:
        return [
            length * (slope * (known - highest) - level) for length, known in zip(lengths, popularities, strict=True)
        ]

    low, high = 0.0, math.log(len(lengths)) + 1.0  # at 0 the best known alone has 1; every length is 1 at least
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if math.fsum(map(math.exp, logs(middle))) > 1 else (low, middle)
    shares = [math.exp(log) for log in logs(high)]
    whole = math.fsum(shares)
    return [share / whole for share in shares]
