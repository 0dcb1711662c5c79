"""Scores of token sequences under a causal network, with little work.

Equal texts run once, common beginnings run once (`prefixes.py`, `passes.py`), texts of similar length run together, and
logits are computed only for the positions that are read, a slice at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch

from hapax.llm_oracle.backends import prefixes
from hapax.llm_oracle.backends.batching import BatchLimit, distinct_in_batches
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.passes import Pass, Passes
from hapax.llm_oracle.backends.prefixes import Level, Tokens

Answer = TypeVar("Answer")

ROOM = 16_384
"""Tokens of a batch, including padding."""

LOGIT_BYTES = 512 * 2**20
"""Bytes of logits kept at a time, for a network whose head cannot be run separately."""


class CausalScorer:
    """Next-token logits and log-likelihoods of token sequences under a causal network. Not thread-safe.

    `room`: tokens of a batch, halved if they do not fit. `sharing`: compute common beginnings once; without it, scores
    are the same up to rounding.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM, sharing: bool = True) -> None:
        self._loaded = loaded
        self._sharing = sharing
        self.room = BatchLimit(room)

    @cached_property
    def _passes(self) -> Passes:
        return Passes(self._loaded)  # made when it is first needed, because it tries the network

    def next_logits(self, texts: Sequence[Tokens], tokens: Sequence[int], total: bool = False) -> list[list[float]]:
        """For each text, none of them empty, the logits of these tokens after its end.

        `total`: and the log of the sum over the whole vocabulary.
        """

        def read(plan: Sequence[Level]) -> list[list[float]]:
            places: list[int] = []
            found: list[torch.Tensor] = []
            for done in self._passes.carried_out(plan):
                if done.level == len(plan) - 1:
                    final = [len(piece.tokens) - 1 for piece in done.pieces]
                    states = done.states[range(len(final)), final]
                    found.append(self._passes.chosen_logits(states, tokens, total))
                    places.extend(done.places)
            # The passes return the texts in any order.
            by_place = dict(zip(places, torch.cat(found).tolist(), strict=True))
            return [by_place[place] for place in range(len(places))]

        return self._answers(texts, read)

    def log_likelihoods(self, texts: Sequence[Tokens], lead: int = 1) -> list[tuple[float, ...]]:
        """For each text, longer than `lead` tokens, ln P of each of its tokens after the first `lead` (1 or more).

        Each piece of a plan is scored once, and a text's scores are those of its pieces.
        """

        def read(plan: Sequence[Level]) -> list[tuple[float, ...]]:
            owners: list[tuple[int, int]] = []
            found: list[torch.Tensor] = []
            for done in self._passes.carried_out(plan):
                wanted = _scored(done, lead)
                if wanted.rows:
                    found.append(self._passes.log_probabilities(wanted.states(done), wanted.at, wanted.tokens))
                    owners.extend((done.level, done.places[row]) for row in wanted.rows)
            scores: list[list[list[float]]] = []  # by level and piece
            for pieces in plan:
                scores.append([[] for _ in pieces])
            # `_scored` lists the tokens of a piece in their order in the text.
            for (level, place), value in zip(owners, torch.cat(found).tolist(), strict=True):
                scores[level][place].append(value)
            for level, pieces in enumerate(plan[1:]):
                for place, piece in enumerate(pieces):
                    scores[level + 1][place] = scores[level][piece.parent] + scores[level + 1][place]
            return [tuple(tokens) for tokens in scores[-1]]

        return self._answers(texts, read)

    def _answers(self, texts: Sequence[Tokens], read: Callable[[Sequence[Level]], list[Answer]]) -> list[Answer]:
        """The results of `read` for plans over all texts, in batches."""
        if self._passes.state_bytes:
            # Such a network returns the logits of all positions at once.
            self.room.size = min(self.room.size, LOGIT_BYTES // self._passes.state_bytes)

        @torch.inference_mode()
        def run(batch: Sequence[Tokens]) -> list[Answer]:
            return read(self._plan(batch))

        return distinct_in_batches(texts, self.room, run)

    def _plan(self, batch: Sequence[Tokens]) -> list[Level]:
        """Share common beginnings if the network supports it and no layer's window is narrower than the texts."""
        if not (self._sharing and self._passes.shares):
            return prefixes.whole(batch)
        plan = prefixes.shared(batch, self._passes.pass_cost)
        # In the cache every level is as wide as its longest piece.
        slots = 0
        for level in plan:
            slots += max(len(piece.tokens) for piece in level)
        return plan if slots <= self._passes.window else prefixes.whole(batch)


@dataclass
class _Scored:
    """The scored tokens of a pass, each with the row of its piece and the state that predicts it.

    A token is predicted by the one before it in its piece (`inner`) or, at the beginning of a piece, by the last one of
    its parent. All children of a parent share that state, so that its logits are computed once: `parents` has one row
    of a child for each parent.
    """

    parents: list[int]
    inner: list[int]
    at: list[int]
    tokens: list[int]
    rows: list[int]

    def states(self, done: Pass) -> torch.Tensor:
        """The states that `at` indexes: first those of parents, then those inside pieces."""
        inner = done.states.flatten(0, 1)[self.inner]
        return inner if done.before is None else torch.cat([done.before[self.parents], inner])


def _scored(done: Pass, lead: int) -> _Scored:
    children: dict[int, list[int]] = {}
    if done.before is not None:
        for row, piece in enumerate(done.pieces):
            if piece.tokens and piece.start >= lead:
                children.setdefault(piece.parent, []).append(row)
    scored = _Scored(parents=[rows[0] for rows in children.values()], inner=[], at=[], tokens=[], rows=[])
    for at, rows in enumerate(children.values()):
        for row in rows:
            scored.at.append(at)
            scored.tokens.append(done.pieces[row].tokens[0])
            scored.rows.append(row)
    width = done.states.shape[1]
    for row, piece in enumerate(done.pieces):
        for place in range(max(1, lead - piece.start), len(piece.tokens)):
            scored.at.append(len(children) + len(scored.inner))
            scored.inner.append(row * width + place - 1)
            scored.tokens.append(piece.tokens[place])
            scored.rows.append(row)
    return scored
