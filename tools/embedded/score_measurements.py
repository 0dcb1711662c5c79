"""Measure the embedded model's scores, as critic and as likelihood model, against its atlas.

The model is asked through the protocols, as a search does.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import TypeVar

from hapax.engine.search.gates import START, TYPE_FLOOR
from hapax.evaluation.shared.estimates import (
    Estimate,
    auc,
    auc_estimate,
    rank_correlation,
    share,
    spearman,
)
from hapax.llm_oracle.embedded.atlas import popularity
from hapax.llm_oracle.prompts import sentence
from hapax.llm_oracle.protocols import Critic, LikelihoodModel
from tools.embedded.corpus import Corpus
from tools.embedded.falsehoods import WrongFact
from tools.embedded.handwritten_claims import FreeClaim, OutsideFact

SEED = 0
WRONG_PER_FACT = 2
LEAST_FACTS = 40
"""Fewest facts of a predicate for a meaningful rank correlation."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class CardSize:
    """Number of facts, lists and rules to measure (None: all). The defaults are those of the card."""

    facts: int | None = None
    lists: int = 200
    rules: int | None = None


@dataclass(frozen=True, slots=True)
class CriticMeasurements:
    """The critic on facts of the atlas and on wrong facts that were held out of training."""

    auc: Estimate
    auc_by_predicate: dict[str, float]
    true_accepted: Estimate
    """Share at or above the initial factual threshold, .85."""
    wrong_accepted: Estimate
    wrong_accepted_by_kind: dict[str, Estimate]
    true_types_accepted: Estimate
    """Share at or above the data-type threshold, .65."""
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
    """Only predicates with at least `LEAST_FACTS` facts."""

    @property
    def median(self) -> float:
        return median(self.by_predicate.values())

    @property
    def worst(self) -> str:
        return min(self.by_predicate, key=self.by_predicate.__getitem__)


@dataclass(frozen=True, slots=True)
class OutsideMeasurements:
    """The critic on claims outside its training data."""

    auc: Estimate
    true_accepted: Estimate
    false_accepted: Estimate


def measure_critic(critic: Critic, corpus: Corpus, extent: CardSize) -> CriticMeasurements:
    """Measure facts against `WRONG_PER_FACT` held-out falsehoods each, and true types against as many wrong ones."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    facts = _sample(corpus.atlas.facts, extent, rng)
    # A dictionary, so that a falsehood that is drawn twice counts once, in the order of drawing.
    drawn: dict[WrongFact | None, None] = {}
    for fact in facts:
        for _ in range(WRONG_PER_FACT):
            drawn[corpus.falsehoods.wrong_fact(fact, rng, held_out=True)] = None
    wrong = [item for item in drawn if item is not None]
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
        auc_estimate(yes, no),
        # An AUC needs scores of true and of wrong facts.
        {name: auc(*scores) for name, scores in sorted(by_predicate.items()) if all(scores)},
        share([score >= START for score in yes]),
        share([score >= START for score in no]),
        {kind: share(hits) for kind, hits in sorted(by_kind.items())},
        share([score >= TYPE_FLOOR for score in _probabilities(critic, types)]),
        share([score >= TYPE_FLOOR for score in _probabilities(critic, list(dict.fromkeys(wrong_types)))]),
    )


def measure_likelihood(model: LikelihoodModel, corpus: Corpus, extent: CardSize) -> LikelihoodMeasurements:
    """Correlate the log-likelihood of facts as sentences with the popularity of their names."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    facts = _sample(corpus.atlas.facts, extent, rng)
    scores = model.log_likelihoods([corpus.claim(fact) for fact in facts])
    by_predicate: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for fact, score in zip(facts, scores, strict=True):
        columns = by_predicate[fact.predicate]
        columns[0].append(score.per_token)
        columns[1].append(sum(map(popularity, fact.arguments)))
    likelihoods = list(chain.from_iterable(columns[0] for columns in by_predicate.values()))
    popularities = list(chain.from_iterable(columns[1] for columns in by_predicate.values()))
    correlations = {
        name: spearman(*columns) for name, columns in sorted(by_predicate.items()) if len(columns[0]) >= LEAST_FACTS
    }
    return LikelihoodMeasurements(rank_correlation(likelihoods, popularities), correlations)


def measure_outside(critic: Critic, corpus: Corpus, facts: Sequence[OutsideFact]) -> OutsideMeasurements:
    """Measure the critic on facts in the words of their predicates' templates."""
    claims = [sentence(corpus.wording.claim(fact.predicate, fact.arguments)) for fact in facts]
    return measure_free(critic, [FreeClaim(fact.is_true, claim) for fact, claim in zip(facts, claims, strict=True)])


def measure_free(critic: Critic, claims: Sequence[FreeClaim]) -> OutsideMeasurements:
    """Measure how well the critic separates true sentences from false ones."""
    yes = _probabilities(critic, [claim.sentence for claim in claims if claim.is_true])
    no = _probabilities(critic, [claim.sentence for claim in claims if not claim.is_true])
    return OutsideMeasurements(
        auc_estimate(yes, no),
        share([score >= START for score in yes]),
        share([score >= START for score in no]),
    )


def _probabilities(critic: Critic, claims: Sequence[str]) -> list[float]:
    return [score.probability for score in critic.probabilities(claims)]


def _sample(items: Sequence[Item], extent: CardSize, rng: random.Random) -> Sequence[Item]:
    return items if extent.facts is None or extent.facts >= len(items) else rng.sample(items, extent.facts)
