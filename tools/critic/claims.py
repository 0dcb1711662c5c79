"""Claims of known truth: facts in several sentence forms, and falsehoods that are near in type, fame or spelling."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hapax.llm_oracle.embedded.atlas import popularity
from hapax.llm_oracle.prompts import sentence
from tools.critic.relations import Form, TrainingRelation

ATTEMPTS = 12
"""Most draws for a falsehood of a kind."""
NEIGHBOURS = 12
"""Values on both sides in the order of fame or spelling among which a near falsehood is drawn."""
DENIED_SHARE = 0.3
"""Share of the drawn negated sentence forms that are used."""
OWN_FORM_SHARE = 0.4
"""Share of training claims in the library's own sentence form."""


class Wrong(StrEnum):
    """Ways of making a falsehood from a fact. All of them keep the type."""

    OTHER_FACT = "value of another fact"
    FAME = "value of about the same fame"
    SPELLING = "value of similar spelling"
    RELATED = "value of a related key"
    OTHER_KEY = "other key"


TRAINING_KINDS = {
    Wrong.OTHER_FACT: 0.35,
    Wrong.FAME: 0.15,
    Wrong.SPELLING: 0.1,
    Wrong.RELATED: 0.15,
    Wrong.OTHER_KEY: 0.25,
}


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A sentence of known truth, with its relation, its source, and how it was made (empty: it is a fact)."""

    sentence: str
    is_true: bool
    relation: str
    source: str
    key: str
    numeric: bool = False
    kind: str = ""


class Falsifier:
    """Draws values and keys that make a relation's facts false."""

    def __init__(self, relation: TrainingRelation, pool: TrainingRelation | None = None) -> None:
        """`pool`: where the wrong values come from, so that they are as common among truths as among falsehoods."""
        self._relation = relation
        source = pool or relation
        self._values = [value for _, value in source.pairs]
        distinct = sorted(set(self._values))
        self._spelling = sorted(distinct, key=str.casefold)
        self._endings = sorted(distinct, key=lambda value: value.casefold()[::-1])
        self._fame = sorted(distinct, key=lambda value: (popularity(value), value))
        self._fame_scores = [popularity(value) for value in self._fame]
        self._places = {
            kind: {value: place for place, value in enumerate(order)}
            for kind, order in (("spelling", self._spelling), ("endings", self._endings))
        }
        self._keys = list(relation.values)
        self._by_value: dict[str, list[str]] = defaultdict(list)
        self._by_key = source.values
        for key, value in source.pairs:
            self._by_value[value].append(key)

    def drawn(self, key: str, value: str, kind: Wrong, rng: random.Random) -> tuple[str, str] | None:
        """A false pair of key and value, None if `ATTEMPTS` draws find none."""
        for _ in range(ATTEMPTS):
            if kind is Wrong.OTHER_KEY:
                pair = (rng.choice(self._keys), value)
            else:
                pair = (key, self._wrong_value(value, kind, rng))
            if not self._relation.is_true(*pair):
                return pair
        return None

    def _wrong_value(self, value: str, kind: Wrong, rng: random.Random) -> str:
        if kind is Wrong.FAME:
            return _near(self._fame, bisect_left(self._fame_scores, popularity(value)), rng)
        if kind is Wrong.SPELLING:
            order, name = rng.choice(((self._spelling, "spelling"), (self._endings, "endings")))
            return _near(order, self._places[name].get(value, rng.randrange(len(order))), rng)
        related = self._by_value.get(value, ())
        if kind is Wrong.RELATED and related:
            other = self._by_key.get(rng.choice(related), ())
            farther = [key for own in other for key in self._by_value.get(own, ())]
            if farther:
                return rng.choice(self._by_key[rng.choice(farther)])
        return rng.choice(self._values)


def _near(order: Sequence[str], place: int, rng: random.Random) -> str:
    return order[max(0, min(len(order) - 1, place + rng.randint(-NEIGHBOURS, NEIGHBOURS)))]


class ClaimSampler:
    """Draws training claims, as many true as false; the same random state draws the same claims."""

    def __init__(self, relations: Sequence[TrainingRelation], weights: dict[str, float]) -> None:
        """`weights`: share of each source; its relations share it by the 0.6th power of their sizes."""
        self._relations = list(relations)
        self._falsifiers = [Falsifier(relation) for relation in relations]
        self._pairs = [list(relation.pairs) for relation in relations]
        sizes = [len(pairs) ** 0.6 * (0.4 if relation.numeric else 1.0) for pairs, relation in self._zipped()]
        total: dict[str, float] = defaultdict(float)
        for size, relation in zip(sizes, relations, strict=True):
            total[relation.source] += size
        shares = [
            weights[relation.source] * size / total[relation.source]
            for size, relation in zip(sizes, relations, strict=True)
        ]
        self._running = list(itertools.accumulate(shares))

    def _zipped(self) -> Iterator[tuple[list[tuple[str, str]], TrainingRelation]]:
        yield from zip(self._pairs, self._relations, strict=True)

    def twins(self, rng: random.Random) -> tuple[KnownClaim, KnownClaim]:
        """A fact and a falsehood made from it, in the same sentence form."""
        while True:
            place = rng.choices(range(len(self._relations)), cum_weights=self._running)[0]
            relation = self._relations[place]
            key, value = rng.choice(self._pairs[place])
            kind = rng.choices(list(TRAINING_KINDS), weights=list(TRAINING_KINDS.values()))[0]
            wrong = self._falsifiers[place].drawn(key, value, kind, rng)
            if wrong is not None:
                form = _drawn_form(relation, rng)
                return worded(relation, (key, value), form, ""), worded(relation, wrong, form, kind)


def _drawn_form(relation: TrainingRelation, rng: random.Random) -> Form:
    if rng.random() < OWN_FORM_SHARE:
        return relation.forms[0]
    form = rng.choice(relation.forms)
    # Few denials: a small network learns slowly to turn its judgement round.
    return form if form.affirms or rng.random() < DENIED_SHARE else relation.forms[0]


def worded(relation: TrainingRelation, pair: tuple[str, str], form: Form, kind: str) -> KnownClaim:
    """The claim of a key and a value; `kind` empty: the pair is a fact."""
    words = sentence(form.words(*relation.arguments(*pair)))
    is_true = (kind == "") is form.affirms
    return KnownClaim(words, is_true, relation.name, relation.source, pair[0], relation.numeric, kind)


def measured_claims(
    relation: TrainingRelation, pool: TrainingRelation, count: int, rng: random.Random
) -> list[KnownClaim]:
    """At most `count` facts in the library's words, each with a falsehood, half of them of the harder kinds."""
    falsifier = Falsifier(relation, pool)
    pairs = list(relation.pairs)
    rng.shuffle(pairs)
    claims: list[KnownClaim] = []
    for number, pair in enumerate(pairs[:count]):
        hard = (Wrong.FAME, Wrong.SPELLING, Wrong.RELATED)[number // 2 % 3]
        kind = Wrong.OTHER_FACT if number % 2 else hard
        wrong = falsifier.drawn(*pair, kind, rng) or falsifier.drawn(*pair, Wrong.OTHER_FACT, rng)
        if wrong is not None:
            claims += [
                worded(relation, pair, relation.forms[0], ""),
                worded(relation, wrong, relation.forms[0], kind),
            ]
    return claims
