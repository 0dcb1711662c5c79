"""Critics in a row: the first that covers a claim decides it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hapax.llm_oracle.budget import Price, estimated_tokens
from hapax.llm_oracle.journaled_models import TokenReserving
from hapax.llm_oracle.protocols import (
    Critic,
    CriticScore,
    ModelIdentity,
    Stream,
    Streaming,
    Usage,
    declared_union,
    reads_origins,
)

BATCH = 128
"""Claims that a critic without batching of its own gets at once."""


class CriticChain:
    """A critic made of several. A claim that none of them covers stays uncovered, which is neither yes nor no."""

    def __init__(self, critics: Sequence[Critic], price: Price | None = None) -> None:
        self.critics = tuple(critics)
        self.price = price
        self.reads_origins = any(map(reads_origins, critics))
        names = [critic.identity.name for critic in critics]
        revisions = [critic.identity.revision for critic in critics]
        self.identity = ModelIdentity(
            ",".join(names),
            "; ".join(revisions),
            declared_union(critic.identity.knows for critic in critics),
            declared_union(critic.identity.types for critic in critics),
        )

    def identify(self, newest_revision: str | None) -> None:
        """Take the revision of the newest stored answers where a forecast does not know that of each critic."""
        if newest_revision and not all(critic.identity.revision for critic in self.critics):
            self.identity = replace(self.identity, revision=newest_revision)

    def reserved(self, claim: str) -> Usage:
        """The most that one of the critics uses for a claim."""
        usages = [
            critic.reserved(claim) if isinstance(critic, TokenReserving) else Usage(estimated_tokens(claim), 1)
            for critic in self.critics
        ]
        return max(usages, key=lambda usage: (usage.requests, usage.tokens))

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        scores: dict[int, CriticScore] = {}
        for group in self.stream(claims):
            scores.update(group)
        return [scores[position] for position in range(len(claims))]

    def stream(self, asked: Sequence[str]) -> Stream[CriticScore]:
        """Scores as the critics decide; each is asked for what those before it do not cover."""
        # Positions of the claims that no critic has covered so far.
        waiting = list(range(len(asked)))
        last = len(self.critics) - 1
        for number, critic in enumerate(self.critics):
            uncovered: list[int] = []
            for group in self._scored(critic, [asked[position] for position in waiting]):
                decided: list[tuple[int, CriticScore]] = []
                for place, score in group:
                    position = waiting[place]
                    # The last critic's score stays even if it covers nothing, so that each claim has one.
                    if score.covered or number == last:
                        decided.append((position, replace(score, judge=critic.identity.title if score.covered else "")))
                    else:
                        uncovered.append(position)
                if decided:
                    yield decided
            # Sorted, because a streaming critic answers in any order.
            waiting = sorted(uncovered)
            if not waiting:
                return

    @staticmethod
    def _scored(critic: Critic, claims: Sequence[str]) -> Iterator[Sequence[tuple[int, CriticScore]]]:
        if isinstance(critic, Streaming):
            yield from critic.stream(claims)
            return
        for start in range(0, len(claims), BATCH):
            yield list(enumerate(critic.probabilities(claims[start : start + BATCH]), start))
