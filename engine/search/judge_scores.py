"""Scores of the models that judge: asked within the budget, stored, and compared as calibration and promises say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from hapax.engine.gates.gates import TYPE_MEASURE, CriticRule
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.search.promises import BELOW_CERTAIN, Promises
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import ASKED_KINDS, PredicateKind
from hapax.grammar.terms import Atom, Constant
from hapax.kb.records import ASSESSMENTS, Assessment
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.critics.critic_probing import CriticProbe, KnownClaims, probe_claims, reads_any_words
from hapax.llm_oracle.critics.measures import Measure, RankedText, TextMeasures, measured
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledLikelihood
from hapax.llm_oracle.protocols import Critic, CriticScore, LogLikelihood, ModelIdentity, Models, Scored, SpannedText
from hapax.llm_oracle.questions.prompts import fact_claim

GIVEN_CLAIMS = 30
"""True claims of given facts by which a critic is probed, and as many false ones."""

NOT_COVERED = "no critic covers it"
"""Basis of the score of a claim that is neither true nor false by any critic."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class CriticClaim:
    """A sentence for the critic. `measure`: name under which its score is stored.

    `about`: the indicator of its fact's predicate, or the data type, by which its score is calibrated.
    """

    text: str
    measure: str = "probability"
    about: str = field(default="", compare=False)


class Scorer:
    """Scores claims and texts for one run. `models`: behind the journal.

    `budget_reached`: the first exception of a budget that left a score open. It is raised, unless parts are taken.
    `unanswered`: by claim without an answer, the reason; no threshold may accept it. `sources`: by claim, the source
    that states it. `known_claims`: those of known truth that the user's given facts make, if they are enough.
    """

    def __init__(
        self, kb: KnowledgeBase, models: Models, settings: SearchSettings, promises: Promises, takes_parts: bool
    ) -> None:
        self._kb, self._models, self._settings, self._promises = kb, models, settings, promises
        self.takes_parts = takes_parts
        self.budget_reached: BudgetReached | None = None
        self.unanswered: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.known_claims: Callable[[], KnownClaims | None] = lambda: None
        self._probe: CriticProbe | None = None

    def within_budget(self, ask: Callable[[], Sequence[A]], count: int) -> Sequence[A | None]:
        """The answers, with None where the budget stopped them; the journal's answers come in any case."""
        if not count:
            return []
        try:
            return ask()
        except BudgetReached as reached:
            self.budget_reached = self.budget_reached or reached  # the first one is reported
            return list(reached.answers)

    def require(self, is_whole: bool) -> None:
        """Raise BudgetReached unless a batch is whole, or parts are taken."""
        if not is_whole and not self.takes_parts and self.budget_reached is not None:
            raise self.budget_reached

    # -- the critic

    def probabilities(self, claims: Iterable[CriticClaim]) -> dict[CriticClaim, float]:
        """P(yes) of claims, scored as one batch and stored. Claims that the budget cut are missing."""
        critic = self._critic
        # Claims about types first, whichever gate decides first, so that a budget cuts the batch at the same place.
        batch = sorted(dict.fromkeys(claims), key=lambda claim: claim.measure != TYPE_MEASURE)
        replies = self.within_budget(lambda: critic.probabilities([claim.text for claim in batch]), len(batch))
        known = {claim: score for claim, score in zip(batch, replies, strict=False) if score is not None}
        refused = [claim.text for claim, score in known.items() if score.refused]
        call_ids = dict(zip(refused, critic.call_ids(refused), strict=True))  # `why` finds the reason there
        assessed: list[Assessment] = []
        for claim, score in known.items():
            assessed += assessments_of(
                claim.text, claim.measure, score, critic.identity.title, call_ids.get(claim.text)
            )
            if score.refused:
                self.unanswered[claim.text] = score.refused
            if score.basis and score.probability == 1.0:
                self.sources[claim.text] = score.basis
        self._kb.add(ASSESSMENTS, assessed)
        return {claim: self._worth(claim, score) for claim, score in known.items()}

    def _worth(self, claim: CriticClaim, score: CriticScore) -> float:
        """The score that gates compare: calibrated, if the search is, and below 1 unless a source states the claim.

        The assessment keeps the critic's own score.
        """
        probability, maps = score.probability, self._promises.maps
        # What a source states or nobody covers is not a score that could be calibrated.
        if score.basis or not score.covered:
            return probability
        critic = score.judge or self._models.critic.identity.title
        if claim.measure == TYPE_MEASURE and maps is not None:
            return maps.type_probability(critic, probability, claim.about, score.members)
        if claim.measure != "probability":
            return probability
        if maps is not None:
            probability = maps.probability(critic, probability, claim.about, score.members)
        is_bounded = maps is not None or self._promises.facts is not None
        return min(probability, BELOW_CERTAIN) if is_bounded else probability

    def critic_probe(self) -> CriticProbe | None:
        """The worth of the critic on claims of known truth.

        None if it was not measured: for want of a critic, of budget or of claims, and for servers that take several
        requests for a claim.
        """
        critic, claims = self._critic, self._probed_claims
        if self._probe is None and claims is not None:
            # The statements are complete without it, and a script may have no answers to them.
            with suppress(BudgetReached if reads_any_words(critic.identity) else HapaxError):
                self._probe = CriticProbe(claims, critic.probabilities([*claims.truths, *claims.falsehoods]))
        return self._probe

    @cached_property
    def _probed_claims(self) -> KnownClaims | None:
        """Given facts or, for critics that read any words, well-known ones; as many as its requests may be."""
        if not self._settings.critic or self._settings.compat is not None:
            return None
        known = self.known_claims() or (probe_claims() if reads_any_words(self._critic.identity) else None)
        return None if known is None else known.askable(self._critic.model)

    @property
    def _critic(self) -> JournaledCritic:
        critic = self._models.critic
        assert isinstance(critic, JournaledCritic)  # noqa: S101  `journaled` saw to it
        return critic

    def rule_of_facts(self, usual: CriticRule) -> CriticRule:
        """The usual rule of the threshold of facts, or one above what the critic gave to known falsehoods.

        What the user sets or promises is kept, and calibrated scores mean what they say.
        """
        if not self._settings.has_own_thresholds or self._settings.calibrated:
            return usual
        # A few claims move no threshold, so that they are asked about after the search.
        is_telling = self._probed_claims is not None and self._probed_claims.are_enough
        probe = self.critic_probe() if is_telling else None
        least = usual.floor if probe is None else probe.least_threshold(usual.floor)
        return replace(usual, start=max(usual.start, least), floor=least)

    # -- likelihood

    def log_likelihoods(self, texts: Iterable[str], *, evaluator: bool = False) -> dict[str, float]:
        """Mean token log-likelihood of each text, in nats. Texts that the model refused are missing.

        Raises BudgetReached where the budget left a text unscored.
        """
        model = self._models.evaluator if evaluator else self._models.likelihood
        unique = list(dict.fromkeys(texts))
        scores = self.within_budget(lambda: model.log_likelihoods(unique), len(unique))
        self.require(None not in scores)
        name = model.identity.title
        known = {text: score for text, score in zip(unique, scores, strict=True) if score and not score.refused}
        self._kb.add(
            ASSESSMENTS,
            (Assessment(text, "log_likelihood", name, item.total, item.token_count) for text, item in known.items()),
        )
        return {text: score.per_token for text, score in known.items()}

    def measures(self, texts: Iterable[RankedText], measures: Sequence[Measure]) -> dict[str, TextMeasures]:
        """The ranker's measures of each text. Texts that the model refused are missing.

        Every measure is stored, so that a search by another one asks nothing again. Raises BudgetReached.
        """
        unique = list({ranked.text: ranked for ranked in texts}.values())
        ranker = _BudgetedRanker(self, self._models.likelihood)
        answers = measured(ranker, unique, measures) if unique else []
        self.require(ranker.is_whole)
        known: dict[str, TextMeasures] = {}
        assessed: list[Assessment] = []
        for ranked, answer in zip(unique, answers, strict=True):
            # The count of a name that was refused is NaN.
            if answer is not None and all(map(math.isfinite, answer.scores.values())):
                known[ranked.text] = answer
                for measure, score in answer.scores.items():
                    name = ranker.identity.title
                    assessed.append(Assessment(ranked.text, measure.value, name, score, answer.name_tokens))
        self._kb.add(ASSESSMENTS, assessed)
        return known


def given_claims(known: RunFacts) -> KnownClaims | None:
    """Given facts of predicates that models are asked about, and falsehoods: such facts with each other's last values.

    None where there are too few. Of predicates that are neither functional nor closed nobody can tell that what is not
    given is false, so they have none.
    """
    truths: list[str] = []
    falsehoods: list[str] = []
    for signature in known.library.completed().signatures:
        if signature.kind in ASKED_KINDS and known.has_given(signature.indicator):
            for row, following in pairwise(known.given_rows(signature.indicator)):
                true, false = (
                    Atom(signature.name, tuple(map(Constant, (*row[:-1], last)))) for last in (row[-1], following[-1])
                )
                is_decided = signature.kind is PredicateKind.FUNCTIONAL or known.is_covered(false)
                if is_decided and known.truth(false) != 1.0:
                    truths.append(fact_claim(true, known.library))
                    falsehoods.append(fact_claim(false, known.library))
    # From all predicates and both ends of their rows alike.
    step = max(1, len(truths) // GIVEN_CLAIMS)
    chosen = slice(0, GIVEN_CLAIMS * step, step)
    enough = len(truths) >= GIVEN_CLAIMS
    return KnownClaims(tuple(truths[chosen]), tuple(falsehoods[chosen]), "given facts") if enough else None


@dataclass(slots=True)
class _BudgetedRanker:
    """The ranker as long as the budget lasts. Texts that the budget stops count as refused.

    `is_whole`: False once it stopped one.
    """

    scorer: Scorer
    ranker: Any
    is_whole: bool = True

    @property
    def identity(self) -> ModelIdentity:
        identity: ModelIdentity = self.ranker.identity
        return identity

    @property
    def model(self) -> Any:
        """The ranker behind the journal, by whose abilities measures are chosen."""
        return getattr(self.ranker, "model", self.ranker)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self._scores(texts)

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return self._scores(texts)

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        return [math.nan if answer.refused else answer.total for answer in self._scores(names)]

    def _scores(self, asked: Sequence[Scored]) -> list[LogLikelihood]:
        ranker = self.ranker
        assert isinstance(ranker, JournaledLikelihood)  # noqa: S101  `journaled` made it
        answers = self.scorer.within_budget(lambda: ranker.scores(asked), len(asked))
        self.is_whole = self.is_whole and None not in answers
        return [answer or LogLikelihood(0.0, 0, refused="the budget was reached") for answer in answers]


def assessments_of(
    text: str, measure: str, score: CriticScore, critic: str, call_id: str | None = None
) -> Iterator[Assessment]:
    """A critic's score of a claim as it is stored, and the raw scores of the members of a combined critic.

    `critic`: its title; the score of a chain is that of the critic that decided. `call_id`: of a refusal.
    """
    basis = score.basis or (None if score.covered else NOT_COVERED)
    yield Assessment(text, measure, score.judge or critic, score.probability, 0, call_id, basis)
    for member, probability in score.members.items():
        yield Assessment(text, measure, member, probability)


def critic_names(critic: Critic) -> list[str]:
    """Names of the critics of a chain as `model_name` writes them, or that of a single critic."""
    inner = critic.model if isinstance(critic, JournaledCritic) else critic
    return [member.identity.title for member in getattr(inner, "critics", (inner,))]
