"""A real model as critic: how well P(yes) separates facts from falsehoods, raw and calibrated."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hapax.engine.search.gates import START
from hapax.evaluation.shared.estimates import auc_estimate, mean, share
from hapax.evaluation.shared.results import ResultTable
from hapax.grammar.parser import load_library
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.prompts import sentence
from tools.embedded.corpus import Corpus
from tools.embedded.handwritten_claims import free_claims, outside_facts
from tools.embedded.wording import RULES_FOLDER, AtlasWording
from tools.results.measuring import SEED, Findings, ResultsRun

FACTS = 1200
"""Facts of the atlas that are judged, each beside one falsehood about the same key."""

FOLDS = 5
LEAST_LOG_ODDS = 20.0
"""Bound of log-odds, so that a probability of 0 or 1 remains a number."""


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A sentence that is true or false. `key`: what it is about; claims of one key are calibrated together."""

    text: str
    is_true: bool
    predicate: str
    key: str


def measure_critic(run: ResultsRun) -> Findings:
    """AUC, Brier's score, and what a threshold of .85 accepts, on the atlas and on claims outside it."""
    corpus = _corpus()
    claims = {
        "atlas": _atlas_claims(corpus, run.sample(FACTS)),
        "facts outside the atlas": _outside_claims(corpus),
        "other predicates": [JudgedClaim(claim.sentence, claim.is_true, "", claim.sentence) for claim in free_claims()],
    }
    critic = JournaledCritic(run.models.critic, run.journal)
    raw = {}
    for name, group in claims.items():
        raw[name] = [score.probability for score in critic.probabilities([claim.text for claim in group])]
    atlas, atlas_scores = claims["atlas"], raw["atlas"]
    calibration = _Calibration.fit(atlas, atlas_scores)
    rows = [_row(f"{name}, raw", group, raw[name]) for name, group in claims.items()]
    rows.append(_row("atlas, calibrated on other keys", atlas, _cross_fitted(atlas, atlas_scores)))
    for name in ("facts outside the atlas", "other predicates"):
        rows.append(_row(f"{name}, calibrated on the atlas", claims[name], calibration.of(claims[name], raw[name])))
    columns = ("claims", "true", "false", "AUC", "Brier", "true at .85", "false at .85", "highest P(yes)")
    # Facts and falsehoods take turns.
    won = share([fact > falsehood for fact, falsehood in zip(atlas_scores[::2], atlas_scores[1::2], strict=True)])
    note = (
        f"Of an atlas fact and the falsehood about the same key, the fact has the higher P(yes) in {won} of "
        f"{won.count} pairs."
    )
    return Findings([ResultTable("", columns, rows)], notes=[note])


def _corpus() -> Corpus:
    atlas = load_atlas()
    return Corpus(atlas, AtlasWording(atlas, load_library([RULES_FOLDER])))


def _atlas_claims(corpus: Corpus, count: int) -> list[JudgedClaim]:
    """Facts in a seeded order, each followed by a falsehood with another value of the same type for the same key."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    facts = rng.sample(corpus.atlas.facts, min(count, len(corpus.atlas.facts)))
    claims = []
    for fact in facts:
        relation = corpus.atlas.relations[fact.predicate]
        key = fact.arguments[0]
        pairs = [listed.arguments for listed in relation.facts]
        true = {value for entity, value in pairs if entity == key}
        values = sorted({value for _, value in pairs} - true)
        if not values:
            continue  # every value of the predicate is true of this key
        wrong = corpus.wording.claim(fact.predicate, (key, rng.choice(values)))
        claims.append(JudgedClaim(corpus.claim(fact), True, fact.predicate, key))
        claims.append(JudgedClaim(sentence(wrong), False, fact.predicate, key))
    return claims


def _outside_claims(corpus: Corpus) -> list[JudgedClaim]:
    claims = []
    for fact in outside_facts():
        text = sentence(corpus.wording.claim(fact.predicate, fact.arguments))
        claims.append(JudgedClaim(text, fact.is_true, fact.predicate, fact.arguments[0]))
    return claims


def _row(name: str, claims: Sequence[JudgedClaim], scores: Sequence[float]) -> Sequence[str]:
    true = [score for claim, score in zip(claims, scores, strict=True) if claim.is_true]
    false = [score for claim, score in zip(claims, scores, strict=True) if not claim.is_true]
    brier = mean([(score - claim.is_true) ** 2 for claim, score in zip(claims, scores, strict=True)])
    accepted = [str(share([score >= START for score in group])) for group in (true, false)]
    counts = (str(len(true)), str(len(false)))
    return (name, *counts, str(auc_estimate(true, false)), str(brier), *accepted, f"{max(scores):.3f}")


@dataclass(frozen=True, slots=True)
class _Calibration:
    """Platt's scaling (1999) of log-odds, with an intercept for each predicate that is shrunk towards 0."""

    regression: Any
    predicates: tuple[str, ...]

    @classmethod
    def fit(cls, claims: Sequence[JudgedClaim], scores: Sequence[float]) -> _Calibration:
        from sklearn.linear_model import LogisticRegression

        predicates = tuple(sorted({claim.predicate for claim in claims}))
        regression = LogisticRegression(max_iter=1000)
        regression.fit(_features(claims, scores, predicates), [claim.is_true for claim in claims])
        return cls(regression, predicates)

    def of(self, claims: Sequence[JudgedClaim], scores: Sequence[float]) -> list[float]:
        """Calibrated probabilities. A predicate that was not fitted has no intercept of its own."""
        fitted = self.regression.predict_proba(_features(claims, scores, self.predicates))
        return [float(probability) for probability in fitted[:, 1]]


def _features(claims: Sequence[JudgedClaim], scores: Sequence[float], predicates: Sequence[str]) -> Any:
    places = {predicate: place for place, predicate in enumerate(predicates, start=1)}
    features = np.zeros((len(claims), len(predicates) + 1))
    for row, (claim, score) in enumerate(zip(claims, scores, strict=True)):
        features[row, 0] = _log_odds(score)
        if claim.predicate in places:
            features[row, places[claim.predicate]] = 1.0
    return features


def _log_odds(probability: float) -> float:
    if not 0 < probability < 1:
        return math.copysign(LEAST_LOG_ODDS, probability - 0.5)
    return max(-LEAST_LOG_ODDS, min(LEAST_LOG_ODDS, math.log(probability / (1 - probability))))


def _cross_fitted(claims: Sequence[JudgedClaim], scores: Sequence[float]) -> list[float]:
    """Calibrated probabilities of claims, each by a calibration that has not seen its key."""
    from sklearn.model_selection import GroupKFold

    calibrated = [math.nan] * len(claims)
    folds = GroupKFold(n_splits=FOLDS)
    for fitted, measured in folds.split(claims, groups=[claim.key for claim in claims]):
        calibration = _Calibration.fit([claims[place] for place in fitted], [scores[place] for place in fitted])
        held_out = [claims[place] for place in measured]
        results = calibration.of(held_out, [scores[place] for place in measured])
        for place, probability in zip(measured, results, strict=True):
            calibrated[place] = probability
    return calibrated
