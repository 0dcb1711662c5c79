"""Critics' scores: their worth by the calibration of a knowledge base, and the facts that have them, with labels.

A map is learned by `hapax model calibrate` and applied here without NumPy, as every search and query needs it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hapax.engine.gates.inquiry import opened_atom
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Value, grouped
from hapax.kb.judgement_records import FactLabel
from hapax.kb.records import AtomPattern, DenialRecord, FactRecord, Source, content_id, fact_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.critics.combined_critic import logit, sigmoid
from hapax.llm_oracle.questions.prompts import fact_claim, type_claim

REVISION_SHOWN = 20
"""Characters of each part of a revision that people are shown: enough to distinguish hashes. The journal has all."""

TYPES = "types"
"""Name of the map of claims about data types among the parameters of a calibration."""

REPLIES = "replies"
"""Name of the map of facts by all scores of their replies, among the parameters of a calibration."""

OWN, OTHERS, COUNT = "own score", "other values", "number of values"
"""What is known of a fact from its reply, as members of a map."""


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
    replies: Mapping[str, ScoreMap] = field(default_factory=dict)
    """Maps of facts by all scores of their replies."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """Number of labels that taught each critic's maps."""

    @classmethod
    def stored(cls, kb: KnowledgeBase) -> ScoreMaps:
        """All maps of a knowledge base."""
        records = sorted(kb.calibrations(), key=lambda record: record.critic)
        checksum = content_id("calibrations", [record.checksum for record in records])
        checksums = {record.critic: record.checksum for record in records}
        maps = {record.critic: ScoreMap.of(record.parameters) for record in records}
        types, replies = (
            {record.critic: ScoreMap.of(record.parameters[part]) for record in records if record.parameters.get(part)}
            for part in (TYPES, REPLIES)
        )
        labels = {record.critic: len(record.sample) for record in records}
        return cls(maps, checksum, checksums, types, replies, labels)

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


def fact_probabilities(kb: KnowledgeBase, library: Library) -> Callable[[FactRecord], float | None]:
    """A function that gives the calibrated probability of a stored fact; None where nothing is known about it.

    A given fact has 1. A model's fact has that of the map of the critic that judged in its run, by all scores of its
    reply where that is calibrated; else a fact of a calibrated search has its stored probability, and that of a critic
    without a map the critic's own score.
    """
    maps = ScoreMaps.stored(kb)
    calibrated = _run_maps(kb, maps)
    known: dict[str, dict[str, float]] = {}
    if maps.replies:
        atoms = proposed_atoms(kb, library)
        for critic, own in maps.replies.items():
            members = reply_members(stored_scores(kb, atoms, critic), atoms)
            known[critic] = {
                fact: own.probability(found[OWN], atoms[fact].indicator, found) for fact, found in members.items()
            }

    def probability(fact: FactRecord) -> float | None:
        if fact.source is Source.GIVEN:
            return 1.0
        # The probability of a fact that a source states is no critic's score.
        if fact.probability is None or fact.basis:
            return fact.probability
        critic, worth = calibrated(fact.run_id, fact.probability, fact.indicator)
        return known.get(critic, {}).get(fact.id, worth)

    return probability


def denial_probabilities(kb: KnowledgeBase) -> Callable[[DenialRecord], float]:
    """A function that gives the calibrated probability of an atom that a critic denied, as `fact_probabilities`."""
    calibrated = _run_maps(kb, ScoreMaps.stored(kb))
    return lambda denial: calibrated(denial.run_id, denial.probability, denial.indicator)[1]


def _run_maps(kb: KnowledgeBase, maps: ScoreMaps) -> Callable[[str | None, float, str], tuple[str, float]]:
    """A function from a run, a stored score and a predicate to the critic and the calibrated probability."""
    runs = {run.id: run.settings for run in kb.runs()}

    def probability(run_id: str | None, score: float, indicator: str) -> tuple[str, float]:
        settings = runs.get(run_id or "", {})
        models = settings.get("models") or ("", "")
        # A chain is named by all its critics; a fact without a source was judged by the last of them.
        critic = next((name for name in maps.maps if name == models[1]), last_critic(models[1]))
        return critic, score if settings.get("calibrated") else maps.probability(critic, score, indicator)

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


# --- proposed facts with their scores and labels ----------------------------------------------------------------------

AUDIT_QUESTION = "audit Q3"
"""Question of a vote on whether a fact is true (LINK, appendix C)."""

VOTES = "votes"
"""Source of labels that are people's votes."""


@dataclass(frozen=True, slots=True)
class ProposedAtom:
    """A fact to be judged. `key`: the known argument of the question, by which held-out facts are kept apart."""

    predicate: str
    arguments: tuple[Value, ...]
    claim: str
    key: str = ""

    @property
    def id(self) -> str:
        """Id of the fact."""
        return fact_id(self.predicate, self.arguments)

    @property
    def indicator(self) -> str:
        return f"{self.predicate}/{len(self.arguments)}"

    @property
    def question(self) -> str:
        """The key, apart for each predicate: facts of one question have it in common."""
        return f"{self.indicator}|{self.key}"


def proposed_atoms(kb: KnowledgeBase, library: Library) -> dict[str, ProposedAtom]:
    """The facts that the knowledge base's candidates would make, accepted or not, by fact id."""
    known = {signature.indicator for signature in library.completed().signatures}
    proposed: dict[str, ProposedAtom] = {}
    questions = kb.questions()
    candidates = kb.candidates_of(question.id for question in questions)
    for question in questions:
        if len(question.patterns) != 1:
            continue
        pattern = question.patterns[0]
        if pattern.indicator not in known:
            continue
        for candidate in candidates.get(question.id, ()):
            # With another open position, as in "[A] makes cheese", it is no fact yet.
            if candidate.rejected_by_parser is None and opened_atom(pattern, Constant(candidate.value)).is_ground:
                atom = _proposed(pattern, candidate.value, library)
                proposed[atom.id] = atom
    return proposed


def denied_atoms(kb: KnowledgeBase, library: Library) -> dict[str, ProposedAtom]:
    """The atoms that a critic denied, where rules negate open predicates, by fact id."""
    atoms: dict[str, ProposedAtom] = {}
    for indicator in sorted(library.open_negations):
        for denial in kb.denials(indicator):
            key = entity_key(denial.arguments[:1])
            denied = ProposedAtom(denial.predicate, denial.arguments, fact_claim(denial.ground_atom, library), key)
            atoms[denied.id] = denied
    return atoms


@dataclass(frozen=True, slots=True)
class ProposedType:
    """A value with the data type for which a model proposed it, and the claim by which a critic judges it."""

    value: Value
    data_type: str
    claim: str


def proposed_types(kb: KnowledgeBase, library: Library) -> list[ProposedType]:
    """The values that models proposed, each once for each type; numbers are left out, which no critic judges."""
    questions = [question for question in kb.questions() if not library.is_numeric(question.data_type)]
    candidates = kb.candidates_of(question.id for question in questions)
    found: dict[str, ProposedType] = {}
    for question in questions:
        for candidate in candidates.get(question.id, ()):
            if candidate.rejected_by_parser is None:
                claim = type_claim(str(candidate.value), question.data_type)
                found[claim] = ProposedType(candidate.value, question.data_type, claim)
    return list(found.values())


def _proposed(pattern: AtomPattern, value: Value, library: Library) -> ProposedAtom:
    atom = pattern.filled(Constant(value))
    return ProposedAtom(pattern.predicate, atom.values, fact_claim(atom, library), entity_key(pattern.arguments))


def entity_key(arguments: Iterable[Value | None]) -> str:
    """The known arguments of a pattern as text: facts with equal keys are held out together."""
    return "|".join(str(argument) for argument in arguments if argument is not None)


def stored_scores(kb: KnowledgeBase, atoms: Mapping[str, ProposedAtom], critic: str) -> dict[str, float]:
    """The critic's raw scores of these facts, by fact id; facts without a score are left out."""
    assessments = kb.assessments((atom.claim for atom in atoms.values()), "probability", critic)
    return {key: assessments[atom.claim].score for key, atom in atoms.items() if atom.claim in assessments}


def reply_members(scores: Mapping[str, float], atoms: Mapping[str, ProposedAtom]) -> dict[str, dict[str, float]]:
    """By fact id, what its reply says of it: its own score, the mean of the other values' scores, and their number.

    Facts of one reply are wrong together: a model that knows nothing of a thing says much that is false about it, and
    a critic to whom it sounds right affirms all of that.
    """
    by_question = grouped(scores, lambda fact: atoms[fact].question)
    sums = {question: math.fsum(logit(scores[fact]) for fact in own) for question, own in by_question.items()}
    members = {}
    for fact, score in scores.items():
        question = atoms[fact].question
        count = len(by_question[question]) - 1
        # As if two undecided values were there, so that one other value says little.
        mean = (sums[question] - logit(score)) / (count + 2)
        members[fact] = {OWN: score, OTHERS: sigmoid(mean), COUNT: sigmoid(math.log1p(count))}
    return members


def fact_truths(kb: KnowledgeBase) -> dict[str, bool]:
    """Truth by fact id, by people's votes and by the stored labels.

    Votes outweigh every other source. A fact on which sources or votes tie is left out.
    """
    balance: Counter[str] = Counter()
    for label in kb.labels():
        balance[label.fact_id] += 1 if label.is_true else -1
    # Last, so that votes replace what other sources say.
    return {fact: total > 0 for fact, total in balance.items() if total} | voted_truths(kb)


def voted_truths(kb: KnowledgeBase) -> dict[str, bool]:
    """Truth by fact id, by the majority of people's votes in the audit of facts; no ties."""
    balance: Counter[str] = Counter()
    for vote in kb.votes():
        if vote.question == AUDIT_QUESTION:
            balance[vote.statement_id] += {"yes": 1, "no": -1}.get(vote.answer.strip().casefold(), 0)
    return {fact: total > 0 for fact, total in balance.items() if total}


def labels_of(truths: Mapping[str, bool], atoms: Mapping[str, ProposedAtom], source: str) -> list[FactLabel]:
    """Labels of these facts, as the knowledge base stores them."""
    return [
        FactLabel(atoms[fact].predicate, atoms[fact].arguments, is_true, source)
        for fact, is_true in truths.items()
        if fact in atoms
    ]
