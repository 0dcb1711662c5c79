"""Several critics, or several wordings of one critic's question, whose scores are combined into one.

Without a calibration the combined score has the mean of the members' log odds (a logarithmic opinion pool with equal
weights: Genest and Zidek 1986, Statistical Science 1, section 2.2), which `hapax model calibrate` learns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.budget import Price, estimated_tokens
from hapax.llm_oracle.journaled_models import TokenReserving
from hapax.llm_oracle.protocols import (
    NO_USAGE,
    Critic,
    CriticScore,
    ModelIdentity,
    Usage,
    declared_union,
    reads_origins,
)
from hapax.llm_oracle.questions.prompts import stated_claim

EXTREME = 1e-6
"""Scores nearer to 0 or 1 than this count as this near: their log odds would be infinite."""


def logit(probability: float) -> float:
    """Log odds, finite for 0 and 1, too."""
    inner = min(max(probability, EXTREME), 1.0 - EXTREME)
    return math.log(inner / (1.0 - inner))


def sigmoid(log_odds: float) -> float:
    """The probability of these log odds."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    return math.exp(log_odds) / (1.0 + math.exp(log_odds))


class CombinedCritic:
    """A critic made of members that all judge each claim. A member that does not cover a claim has no part in it."""

    def __init__(self, members: Sequence[Critic], price: Price | None = None) -> None:
        """Raises HapaxError if two members are the same."""
        self.members, self.price = tuple(members), price
        self._titles = [member.identity.title for member in members]
        for title in self._titles:
            if self._titles.count(title) > 1:
                raise HapaxError(f"{title} is combined with itself. Name each critic once between the signs +.")
        self.reads_origins = any(map(reads_origins, members))
        identities = [member.identity for member in members]
        self.identity = ModelIdentity(
            "+".join(identity.name for identity in identities),
            " + ".join(identity.revision for identity in identities),
            declared_union(identity.knows for identity in identities),
            declared_union(identity.types for identity in identities),
            tuple(dict.fromkeys(chain.from_iterable(identity.taught_by for identity in identities))),
        )

    def reserved(self, claim: str) -> Usage:
        """The most that all members together use for a claim."""
        return sum((_reserved(member, claim) for member in self.members), NO_USAGE)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        columns = [member.probabilities(claims) for member in self.members]
        for title, column in zip(self._titles, columns, strict=True):
            if len(column) != len(claims):
                answers = f"{len(column)} answers to {len(claims)} requests"
                raise HapaxError(f"{title} gave {answers}. Choose another critic.")
        return [self._combined(scores) for scores in zip(*columns, strict=True)]

    def _combined(self, scores: Sequence[CriticScore]) -> CriticScore:
        usage = sum((score.usage for score in scores), NO_USAGE)
        judged = {
            title: score.probability
            for title, score in zip(self._titles, scores, strict=True)
            if score.covered and not score.refused
        }
        if not judged:
            # A refusal counts as an answer; only without any does the claim stay uncovered, with the members' reasons.
            refused = next((score.refused for score in scores if score.refused), "")
            reasons = "; ".join(dict.fromkeys(score.basis for score in scores if score.basis))
            return CriticScore(0.5, usage, refused, covered=bool(refused), basis="" if refused else reasons)
        mean = math.fsum(map(logit, judged.values())) / len(judged)
        return CriticScore(sigmoid(mean), usage, members=judged)


def _reserved(critic: Critic, claim: str) -> Usage:
    return critic.reserved(claim) if isinstance(critic, TokenReserving) else Usage(estimated_tokens(claim), 1)


def highest_price(prices: Sequence[Price | None]) -> Price | None:
    """A price that is too low for no member, whose tokens are counted together; None if one of them has no price."""
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    return Price(max(price.prompt for price in known), max(price.completion for price in known))


# --- wordings of one critic's question --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimWording:
    """A form in which a claim is put to a critic. `name`: empty for the claim itself.

    `affirms` False: yes to the form is no to the claim.
    """

    name: str
    words: Callable[[str], str]
    affirms: bool = True


WORDINGS = (
    ClaimWording("", str),
    ClaimWording("stressed", lambda claim: f"It is a well-known fact: {claim}"),
    ClaimWording("denied", lambda claim: f"The following is false: {claim}", affirms=False),
)
"""A model that tends to yes says it to a claim and to its denial; the mean of both log odds removes the tendency."""


class WordedCritic:
    """A critic that reads each claim in another wording."""

    def __init__(self, critic: Critic, wording: ClaimWording) -> None:
        self.critic, self.wording = critic, wording
        name = f"{critic.identity.name}/{wording.name}".removesuffix("/")
        self.identity = replace(critic.identity, name=name)

    def reserved(self, claim: str) -> Usage:
        """The most that the critic uses for the claim in these words."""
        words = self._worded(claim)
        return _reserved(self.critic, words)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        scores = self.critic.probabilities([self._worded(claim) for claim in claims])
        if self.wording.affirms:
            return scores
        # The wording denies the claim, so that a no is a yes to the claim.
        return [replace(score, probability=1.0 - score.probability) for score in scores]

    def _worded(self, claim: str) -> str:
        stated = stated_claim(claim)
        # Within a whole question only the claim has other words.
        return claim.replace(stated, self.wording.words(stated))


def paraphrased(critic: Critic) -> list[Critic]:
    """The critic in all wordings. Raises HapaxError for a critic that knows the words of its training alone."""
    if critic.identity.knows is not None:
        raise HapaxError(
            f"{critic.identity.name} reads only the sentences that it was trained on, so that no paraphrase helps. "
            "Leave out paraphrased:."
        )
    return [WordedCritic(critic, wording) for wording in WORDINGS]
