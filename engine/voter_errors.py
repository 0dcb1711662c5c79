"""Truth by the votes of people who err at rates of their own, by expectation maximisation. Pure arithmetic.

Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied Statistics 28
(1979), section 3, for two classes: from the shares of yes each voter's rates of error are estimated, from these the
truth of each item, and so on. Each rate is smoothed by a prior of a few right votes, so that little is concluded from
few votes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

RIGHT, WRONG = 4.0, 1.0
"""Votes that a voter counts as having given before, by class: right and wrong ones."""

FEWEST_VOTERS, FEWEST_SHARED = 3, 20
"""Voters' rates of error are estimated where so many people judged each of so many items; else the majority decides."""

ROUNDS = 200
SETTLED = 1e-7
"""Largest change of a probability in the last round."""


class Vote(NamedTuple):
    """An answer of yes or no about an item."""

    item: str
    voter: str
    is_yes: bool


@dataclass(frozen=True, slots=True)
class VoterRates:
    """The estimated share of right votes on true items and on false ones."""

    on_true: float
    on_false: float
    votes: int

    def log_odds(self, is_yes: bool) -> float:
        """The log odds that a vote of this voter adds to the item being true."""
        if is_yes:
            return math.log(self.on_true) - math.log(1.0 - self.on_false)
        return math.log(1.0 - self.on_true) - math.log(self.on_false)


@dataclass(frozen=True, slots=True)
class WeighedVotes:
    """The probability that each item is true, the rates of each voter, and the share of true items."""

    probabilities: Mapping[str, float]
    voters: Mapping[str, VoterRates]
    share: float


def weigh_shared(votes: Collection[Vote]) -> WeighedVotes | None:
    """As `weigh`; None if too few people judged the same items."""
    counts = Counter(vote.item for vote in votes)
    shared = sum(count >= FEWEST_VOTERS for count in counts.values())
    return weigh(votes) if shared >= FEWEST_SHARED else None


def weigh(votes: Iterable[Vote]) -> WeighedVotes:
    """Estimate truth and voters' rates from votes, of which there is at least one. A voter has one vote an item."""
    by_item: dict[str, list[Vote]] = {}
    by_voter: dict[str, list[Vote]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote)
        by_voter.setdefault(vote.voter, []).append(vote)
    # The first guess is the share of yes among an item's votes.
    probabilities: dict[str, float] = {}
    for item, own in by_item.items():
        probabilities[item] = sum(vote.is_yes for vote in own) / len(own)
    for _ in range(ROUNDS):
        voters = {voter: _rates(own, probabilities) for voter, own in by_voter.items()}
        # One more of each kind (Laplace): a share of 0 or 1 would have no finite log odds.
        share = (math.fsum(probabilities.values()) + 1.0) / (len(probabilities) + 2.0)
        prior = math.log(share) - math.log1p(-share)
        new = {}
        for item, own in by_item.items():
            log_odds = prior + math.fsum(voters[vote.voter].log_odds(vote.is_yes) for vote in own)
            new[item] = 1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, log_odds))))  # exp(709) is the largest float
        change = max(abs(new[item] - probabilities[item]) for item in new)
        probabilities = new
        if change < SETTLED:
            break
    return WeighedVotes(probabilities, voters, share)


def _rates(votes: Iterable[Vote], probabilities: Mapping[str, float]) -> VoterRates:
    # Rates on true items and on false ones, both beginning with the votes of the prior.
    right = {True: RIGHT, False: RIGHT}
    total = dict.fromkeys(right, RIGHT + WRONG)
    count = 0
    for vote in votes:
        count += 1
        true = probabilities[vote.item]
        right[vote.is_yes] += true if vote.is_yes else 1.0 - true
        total[True] += true
        total[False] += 1.0 - true
    return VoterRates(right[True] / total[True], right[False] / total[False], count)
