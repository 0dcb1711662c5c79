"""Measures on claims of known truth what a critic is worth: whether it tells true from false, and where it says yes.

The P(yes) of a small or badly prompted model can lie below every usable threshold, for true claims and for false ones.
Such a critic is not a judge; all that its scores can do is to order the values of a question. Another one says yes to
falsehoods, so that a threshold has to lie above what it gave to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hapax.llm_oracle.protocols import CriticScore, ModelIdentity
from hapax.llm_oracle.questions.profile_probing import known_questions
from hapax.llm_oracle.questions.prompts import sentence
from hapax.llm_oracle.registry import find_backend

CLAIMS_OF_END = 3
"""Known answers from each end of a question's list that are probed, the best known and the least; it has as many wrong
values."""

CHANCE = 0.6
"""AUC below which a critic does no better than chance on so few claims."""

SHARE_TRUE = 0.9
"""Share of the accepted claims that has to be true."""

MOST_REQUESTS = 12
"""Requests to a server by which its critic is probed."""

FEWEST, ENOUGH = 3, 10
"""Claims of each kind without which nothing is probed, and without which no threshold follows."""

CERTAINTY = 1.96
"""Standard deviations from the AUC to the ends of its 95 % interval."""


@dataclass(frozen=True, slots=True)
class KnownClaims:
    """As many true claims as false ones, and where their truth comes from."""

    truths: tuple[str, ...]
    falsehoods: tuple[str, ...]
    source: str = "claims of known truth"

    @property
    def are_enough(self) -> bool:
        """False for so few that a single one that passes by luck would decide on a threshold."""
        return len(self.truths) >= ENOUGH

    def askable(self, critic: Any) -> KnownClaims | None:
        """All claims, or evenly chosen ones where a critic on a server takes too many requests for all of them.

        None if it takes so many that hardly any are left.
        """
        count = len(self.truths)
        if each := _requests(critic, self.truths[0]):
            count = min(count, int(MOST_REQUESTS / each) // 2)
        places = [place * len(self.truths) // max(count, 1) for place in range(count)]
        truths, falsehoods = (tuple(own[place] for place in places) for own in (self.truths, self.falsehoods))
        return KnownClaims(truths, falsehoods, self.source) if count >= FEWEST else None


def _requests(critic: Any, claim: str) -> float:
    """Requests to servers that a claim takes; a part of one where a request has several claims."""
    # The critics of a chain, the members of a combined one, or the one that is asked in other words.
    parts = [*getattr(critic, "critics", ()), *getattr(critic, "members", ())]
    parts += [critic.critic] if hasattr(critic, "critic") else []
    if parts:
        return sum(_requests(part, claim) for part in parts)
    together: int = getattr(critic, "claims_together", 0)
    if not together:
        return 0.0
    # A server whose abilities are not known yet is expected to need no votes.
    return (1 if getattr(critic, "is_assumed", False) else critic.reserved(claim).requests) / together


@dataclass(frozen=True, slots=True)
class CriticProbe:
    """A critic's scores of claims that are known to be true, and of claims that are known to be false.

    Claims that it does not judge are left out of `truths` and `falsehoods`, its P(yes) of the others.
    """

    claims: KnownClaims
    scores: Sequence[CriticScore]
    truths: tuple[float, ...] = field(init=False)
    falsehoods: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.claims.truths)
        for name, own in (("truths", self.scores[:count]), ("falsehoods", self.scores[count:])):
            object.__setattr__(self, name, tuple(score.probability for score in own if score.covered))

    @property
    def preference(self) -> float | None:
        """Share of pairs of a truth and a falsehood in which the truth has the higher P(yes); equal ones are halves.

        This is the area under the ROC curve: .5 is chance. None where it judged no truth, or no falsehood.
        """
        wins = 0.0
        for truth in self.truths:
            for falsehood in self.falsehoods:
                wins += 1.0 if truth > falsehood else 0.5 if truth == falsehood else 0.0
        pairs = len(self.truths) * len(self.falsehoods)
        return wins / pairs if pairs else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the AUC: method 5 of Newcombe 2006, Statistics in Medicine 25, which also holds at 0
        and 1. None without an AUC.
        """
        area, pairs = self.preference, len(self.truths) * len(self.falsehoods)
        if area is None:
            return None
        ends = []
        for end in (0.0, 1.0):
            inner, outer = area, end
            # Halved between a value that agrees with the AUC and one that does not.
            for _ in range(30):
                middle = (inner + outer) / 2
                more = (self.judged / 2 - 1) * ((1 - middle) / (2 - middle) + middle / (1 + middle))
                deviation = math.sqrt(middle * (1 - middle) * (1 + more) / pairs)
                inner, outer = (middle, outer) if abs(middle - area) <= CERTAINTY * deviation else (inner, middle)
            ends.append(inner)
        return ends[0], ends[1]

    @property
    def is_chance(self) -> bool:
        """True if no threshold tells the true claims from the false ones."""
        return self.claims.are_enough and self.preference is not None and self.preference < CHANCE

    @property
    def judged(self) -> int:
        """Number of the claims that it judged."""
        return len(self.truths) + len(self.falsehoods)

    def accepted(self, threshold: float) -> tuple[int, int]:
        """Numbers of the true claims and of the false ones that reach a threshold."""
        return sum(score >= threshold for score in self.truths), sum(score >= threshold for score in self.falsehoods)

    def least_threshold(self, floor: float) -> float:
        """The lowest threshold from the floor on that accepts nine truths for a falsehood; 1 if none does.

        A critic that gave no falsehood as much as the floor keeps it.
        """
        for cut in sorted({floor, *(score for score in (*self.truths, *self.falsehoods) if score > floor)}):
            true, false = self.accepted(cut)
            if not false or true >= SHARE_TRUE * (true + false):
                return cut
        return 1.0

    def says_no(self, threshold: float) -> bool:
        """True if it judged claims, and none that is known to be true reaches this P(yes)."""
        return max(self.truths, default=threshold) < threshold

    def to_json(self) -> dict[str, Any]:
        """The worth of the critic, as a run's record has it."""
        asked, source = len(self.scores), self.claims.source
        interval = None if self.interval is None else list(self.interval)
        return {"auc": self.preference, "interval": interval, "judged": self.judged, "asked": asked, "source": source}

    def __str__(self) -> str:
        return (
            f"P(yes) is at most {max(self.truths):.2f} for {len(self.truths)} claims that are known to be true, and "
            f"{max(self.falsehoods, default=0):.2f} for {len(self.falsehoods)} false ones; the true one of a pair is "
            f"preferred in {100 * (self.preference or 0):.0f} % (chance: 50)"
        )


def probe_claims() -> KnownClaims:
    """The claims by which critics are probed where nobody gave facts: of both ends of lists with known answers."""
    truths: list[str] = []
    falsehoods: list[str] = []
    for known in known_questions():
        if known.question.functional:
            continue
        slot = f"[{known.question.variable}]"
        right = (*known.answers[:CLAIMS_OF_END], *known.answers[-CLAIMS_OF_END:])
        truths += [_claim(known.question.sentence, slot, value) for value in right]
        falsehoods += [_claim(known.question.sentence, slot, value) for value in known.wrong[: 2 * CLAIMS_OF_END]]
    return KnownClaims(tuple(truths), tuple(falsehoods))


def reads_any_words(identity: ModelIdentity) -> bool:
    """False for a model that is made for Hapax's own words and predicates, such as a script or the embedded model."""
    if identity.knows is not None:
        return False
    # By convention, the name of a model begins with the name of its backend.
    backend = find_backend(identity.name.partition("/")[0])
    return backend is None or backend.reads_any_words


def _claim(words: str, slot: str, value: str) -> str:
    return sentence(words.replace(slot, value))
