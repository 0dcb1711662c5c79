"""The embedded model's scores against its atlas: as critic and as likelihood model.

It is asked through the protocols, so what is measured is what a search meets.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from engine.gates import START, TYPE_FLOOR
from evaluation.claims import FreeClaim, OutsideFact
from evaluation.estimates import Estimate, area, area_under_curve, rank_correlation, share, spearman
from llm_oracle.embedded.atlas import AtlasFact, popularity
from llm_oracle.embedded.corpus import Corpus
from llm_oracle.prompts import sentence
from llm_oracle.protocols import Critic, LikelihoodModel

SEED = 0
WRONG_PER_FACT = 2
LEAST_FACTS = 40
"""Facts from which a predicate's rank correlation means something."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is asked; the defaults are for the card. None: all."""

    facts: int | None = None
    lists: int = 200
    rules: int | None = None


@dataclass(frozen=True, slots=True)
class CriticMeasurements:
    """The critic on all facts of the atlas and on wrong facts that training never showed."""

    auc: Estimate
    auc_by_predicate: dict[str, float]
    true_accepted: Estimate
    """Share above the factual threshold at its start, .85."""
    wrong_accepted: Estimate
    wrong_accepted_by_kind: dict[str, Estimate]
    true_types_accepted: Estimate
    """Share above the data-type threshold, .65."""
    wrong_types_accepted: Estimate

    @property
    def worst(self) -> str:
        """The predicate with the lowest AUC."""
        return min(self.auc_by_predicate, key=self.auc_by_predicate.__getitem__)


@dataclass(frozen=True, slots=True)
class LikelihoodMeasurements:
    """Spearman's correlation of mean-token log-likelihood with popularity (wordfreq), all facts and by predicate."""

    pooled: Estimate
    by_predicate: dict[str, float]
    """Only predicates of at least `LEAST_FACTS` facts."""

    @property
    def median(self) -> float:
        return median(self.by_predicate.values())

    @property
    def worst(self) -> str:
        return min(self.by_predicate, key=self.by_predicate.__getitem__)


@dataclass(frozen=True, slots=True)
class OutsideMeasurements:
    """The critic on claims that it was never taught."""

    auc: Estimate
    true_accepted: Estimate
    false_accepted: Estimate


def measure_critic(critic: Critic, corpus: Corpus, extent: Extent) -> CriticMeasurements:
    """Every fact with `WRONG_PER_FACT` held-out falsehoods, and every type of every entity with as many wrong ones."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    facts = _sample(corpus.atlas.facts, extent, rng)
    drawn = [corpus.falsehoods.wrong_fact(fact, rng, held_out=True) for fact in facts for _ in range(WRONG_PER_FACT)]
    wrong = list(dict.fromkeys(item for item in drawn if item is not None))
    types = _sample(corpus.true_type_claims(), extent, rng)
    wrong_types = [claim for _ in types if (claim := corpus.falsehoods.wrong_type(rng, held_out=True)) is not None]
    yes = _probabilities(critic, [corpus.claim(fact) for fact in facts])
    no = _probabilities(critic, [corpus.claim(item.fact) for item in wrong])
    by_predicate: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for fact, score in zip(facts, yes, strict=True):
        by_predicate[fact.predicate][0].append(score)
    for item, score in zip(wrong, no, strict=True):
        by_predicate[item.fact.predicate][1].append(score)
        by_kind[item.kind.value].append(score >= START)
    return CriticMeasurements(
        area_under_curve(yes, no),
        {name: area(*scores) for name, scores in sorted(by_predicate.items()) if all(scores)},
        share([score >= START for score in yes]),
        share([score >= START for score in no]),
        {kind: share(hits) for kind, hits in sorted(by_kind.items())},
        share([score >= TYPE_FLOOR for score in _probabilities(critic, types)]),
        share([score >= TYPE_FLOOR for score in _probabilities(critic, list(dict.fromkeys(wrong_types)))]),
    )


def measure_likelihood(model: LikelihoodModel, corpus: Corpus, extent: Extent) -> LikelihoodMeasurements:
    """Every fact as a sentence, against the popularity of its two names."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    facts = _sample(corpus.atlas.facts, extent, rng)
    scores = model.log_likelihoods([corpus.claim(fact) for fact in facts])
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for fact, score in zip(facts, scores, strict=True):
        pairs[fact.predicate].append((score.per_token, _popularity(fact)))
    every = [pair for several in pairs.values() for pair in several]
    found = {
        name: spearman([one for one, _ in several], [other for _, other in several])
        for name, several in sorted(pairs.items())
        if len(several) >= LEAST_FACTS
    }
    return LikelihoodMeasurements(rank_correlation([one for one, _ in every], [other for _, other in every]), found)


def measure_outside(critic: Critic, corpus: Corpus, facts: Sequence[OutsideFact]) -> OutsideMeasurements:
    """The facts in the words of their predicates' templates."""
    claims = [sentence(corpus.wording.claim(fact.predicate, fact.arguments)) for fact in facts]
    return measure_free(critic, [FreeClaim(fact.is_true, claim) for fact, claim in zip(facts, claims, strict=True)])


def measure_free(critic: Critic, claims: Sequence[FreeClaim]) -> OutsideMeasurements:
    """How well the critic tells the true sentences from the false ones."""
    yes = _probabilities(critic, [claim.sentence for claim in claims if claim.is_true])
    no = _probabilities(critic, [claim.sentence for claim in claims if not claim.is_true])
    return OutsideMeasurements(
        area_under_curve(yes, no),
        share([score >= START for score in yes]),
        share([score >= START for score in no]),
    )


def _probabilities(critic: Critic, claims: Sequence[str]) -> list[float]:
    return [score.probability for score in critic.probabilities(claims)]


def _sample(items: Sequence[Item], extent: Extent, rng: random.Random) -> Sequence[Item]:
    return items if extent.facts is None or extent.facts >= len(items) else rng.sample(items, extent.facts)


def _popularity(fact: AtlasFact) -> float:
    return sum(map(popularity, fact.arguments))
