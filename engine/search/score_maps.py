"""Calibrated probabilities: what a critic's score is worth by the calibration that the knowledge base stores.

A map is learned by `hapax calibrate` and applied here without NumPy, as every search and query needs it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hapax.kb.records import DenialRecord, FactRecord, Source, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.combined_critic import logit, sigmoid

REVISION_SHOWN = 20
"""Characters of each part of a revision that people are shown: enough to tell hashes apart. The journal has all."""

TYPES = "types"
"""Name of the map of claims about data types among the parameters of a calibration."""


@dataclass(frozen=True, slots=True)
class ScoreMap:
    """The probability that a claim is true, given a critic's score and the claim's predicate.

    Either `points` of an isotonic regression (scores, probabilities), between which lines are drawn, or slope and
    intercept on the logit. `shifts`: by predicate indicator, what is added to the logit of the common map. `weights`:
    of the logits of a combined critic's members, by their titles; the slope is their sum, so that the combined score
    alone counts as if each member had given it.
    """

    slope: float = 1.0
    intercept: float = 0.0
    points: tuple[Sequence[float], Sequence[float]] | None = None
    shifts: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> ScoreMap:
        """The map that a calibration stores as its parameters."""
        points = stored.get("points")
        return cls(
            stored.get("slope", 1.0),
            stored.get("intercept", 0.0),
            (points[0], points[1]) if points else None,
            stored.get("shifts", {}),
            stored.get("weights", {}),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The map as it is stored."""
        own: dict[str, Any] = {"slope": self.slope, "intercept": self.intercept}
        if self.points:
            own = {"points": [list(axis) for axis in self.points]}
        if self.weights:
            own["weights"] = dict(self.weights)
        return {**own, "shifts": dict(self.shifts)}

    def probability(self, score: float, indicator: str = "", members: Mapping[str, float] | None = None) -> float:
        """P(true) of a claim with this score about a predicate. `members`: raw scores of those of a combined critic."""
        if members and self.weights:
            # A member that has not judged the claim counts as undecided, whose logit is 0.
            known = (weight * logit(members[title]) for title, weight in self.weights.items() if title in members)
            common = sigmoid(self.intercept + math.fsum(known))
        else:
            common = self._common(score)
        shift = self.shifts.get(indicator)
        return common if shift is None else sigmoid(logit(common) + shift)

    def _common(self, score: float) -> float:
        if self.points is None:
            return sigmoid(self.slope * logit(score) + self.intercept)
        scores, probabilities = self.points
        place = bisect_right(scores, score)
        # Below the first point and above the last one the map is level.
        if place == 0:
            return probabilities[0]
        if place == len(scores):
            return probabilities[-1]
        low, high = scores[place - 1], scores[place]
        part = (score - low) / (high - low)
        return probabilities[place - 1] + part * (probabilities[place] - probabilities[place - 1])


@dataclass(frozen=True, slots=True)
class ScoreMaps:
    """The maps of the critics that a knowledge base has calibrated, by NAME@REVISION."""

    maps: Mapping[str, ScoreMap]
    checksum: str = ""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Checksum of each critic's own calibration."""
    types: Mapping[str, ScoreMap] = field(default_factory=dict)
    """Maps of scores of claims about data types, whose shifts are by type."""

    @classmethod
    def stored(cls, kb: KnowledgeBase) -> ScoreMaps:
        """All maps of a knowledge base."""
        records = sorted(kb.calibrations(), key=lambda record: record.critic)
        checksum = content_id("calibrations", [record.checksum for record in records])
        checksums = {record.critic: record.checksum for record in records}
        maps = {record.critic: ScoreMap.of(record.parameters) for record in records}
        stored = {record.critic: record.parameters.get(TYPES) for record in records}
        types = {critic: ScoreMap.of(parameters) for critic, parameters in stored.items() if parameters}
        return cls(maps, checksum, checksums, types)

    def probability(
        self, critic: str, score: float, indicator: str, members: Mapping[str, float] | None = None
    ) -> float:
        """P(true) by the critic's map; the score itself for a critic without one."""
        known = self.maps.get(critic)
        return score if known is None else known.probability(score, indicator, members)

    def type_probability(self, critic: str, score: float, data_type: str, members: Mapping[str, float]) -> float:
        """P(a value is of the type) by the critic's map of types; the score itself for a critic without one."""
        known = self.types.get(critic)
        return score if known is None else known.probability(score, data_type, members)

    def of_claims(
        self, kb: KnowledgeBase, critic: str, scores: Mapping[str, float], indicators: Mapping[str, str]
    ) -> dict[str, float]:
        """P(true) of claims with these scores, by the stored scores of the members if the critic combines several.

        `indicators`: of the claims' predicates.
        """
        known = self.maps.get(critic)
        if known is None:
            return dict(scores)
        members: dict[str, dict[str, float]] = {}
        for member in known.weights:
            for claim, assessment in kb.assessments(scores, "probability", member).items():
                members.setdefault(claim, {})[member] = assessment.score
        return {
            claim: known.probability(score, indicators[claim], members.get(claim)) for claim, score in scores.items()
        }


def fact_probabilities(kb: KnowledgeBase) -> Callable[[FactRecord], float | None]:
    """A function that gives the calibrated probability of a stored fact; None where nothing is known about it.

    A given fact has 1. A fact of a calibrated search has its stored probability; any other has that of the map of the
    critic that judged in its run, or the critic's own score where that critic is not calibrated.
    """
    calibrated = _run_maps(kb)

    def probability(fact: FactRecord) -> float | None:
        if fact.source is Source.GIVEN:
            return 1.0
        # The probability of a fact that a source states is no critic's score.
        if fact.probability is None or fact.basis:
            return fact.probability
        return calibrated(fact.run_id, fact.probability, f"{fact.predicate}/{len(fact.arguments)}")

    return probability


def denial_probabilities(kb: KnowledgeBase) -> Callable[[DenialRecord], float]:
    """A function that gives the calibrated probability of an atom that a critic denied, as `fact_probabilities`."""
    calibrated = _run_maps(kb)
    return lambda denial: calibrated(denial.run_id, denial.probability, f"{denial.predicate}/{len(denial.arguments)}")


def _run_maps(kb: KnowledgeBase) -> Callable[[str | None, float, str], float]:
    """A function from a run, a stored score and a predicate to the calibrated probability."""
    maps, runs = ScoreMaps.stored(kb), {run.id: run.settings for run in kb.runs()}

    def probability(run_id: str | None, score: float, indicator: str) -> float:
        settings = runs.get(run_id or "", {})
        if settings.get("calibrated"):
            return score
        models = settings.get("models") or ("", "")
        # A chain is named by all its critics; a fact without a source was judged by the last of them.
        critic = next((name for name in maps.maps if name == models[1]), last_critic(models[1]))
        return maps.probability(critic, score, indicator)

    return probability


def chained_critics(chain: str) -> list[str]:
    """NAME@REVISION of the critics of a chain, or of its last one alone if a name of theirs has a comma."""
    names, _, revisions = chain.partition("@")
    members, parts = names.split(","), revisions.split("; ")
    if len(members) != len(parts):
        return [last_critic(chain)]
    return [f"{name}@{part}" if part else name for name, part in zip(members, parts, strict=True)]


def last_critic(chain: str) -> str:
    """NAME@REVISION of the last critic of a chain, whose own name lists the names and then the revisions."""
    names, _, revisions = chain.partition("@")
    revision = revisions.rpartition("; ")[2]
    return f"{names.rpartition(',')[2]}@{revision}" if revision else names.rpartition(",")[2]


def short_model_name(name: str) -> str:
    """A name from `model_name`, shortened for people: the revision up to its first comma, with each part shortened."""
    model, at, revision = name.rpartition("@")
    # Parts are separated by semicolons. The last may say that P(yes) is a vote, so the revision is not cut as a whole.
    parts = (part[:REVISION_SHOWN] for part in revision.partition(",")[0].split("; "))
    return f"{model}{at}{'; '.join(parts)}" if at else name
