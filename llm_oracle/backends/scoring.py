"""Scores of token sequences under a causal network, with as little work as they need.

Equal texts run once, common beginnings run once (`prefixes.py`, `passes.py`), texts of like length run together, and
logits are computed for the positions that are read, a slice at a time. An encoder reads both ways, so that a
sequence-to-sequence network shares nothing but equal texts and batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch

from llm_oracle.backends import prefixes
from llm_oracle.backends.batching import Room, distinct_in_batches
from llm_oracle.backends.loading import LoadedModel
from llm_oracle.backends.passes import Pass, Passes
from llm_oracle.backends.prefixes import Level, Tokens

Answer = TypeVar("Answer")

ROOM = 16_384
"""Tokens of a batch, padding counted."""

LOGIT_BYTES = 512 * 2**20
"""Of logits kept at once, for a network whose head cannot be run by itself."""


class Scorer:
    """What a causal network says of texts given as tokens. Not for several threads at a time.

    `room`: tokens of a batch, halved where they do not fit. `sharing`: whether common beginnings may be computed once;
    without it, scores are the same up to rounding.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM, sharing: bool = True) -> None:
        self._loaded = loaded
        self._sharing = sharing
        self.room = Room(room)

    @cached_property
    def _passes(self) -> Passes:
        """Made when it is first needed, for it tries the network."""
        return Passes(self._loaded)

    def next_logits(self, texts: Sequence[Tokens], tokens: Sequence[int]) -> list[list[float]]:
        """Per text, none of them empty, the logits of these tokens behind its end."""

        def read(plan: Sequence[Level]) -> list[list[float]]:
            places: list[int] = []
            found: list[torch.Tensor] = []
            for done in self._passes.carried_out(plan):
                if done.level == len(plan) - 1:
                    final = [len(piece.tokens) - 1 for piece in done.pieces]
                    found.append(self._passes.chosen_logits(done.states[range(len(final)), final], tokens))
                    places.extend(done.places)
            return _in_order(places, torch.cat(found).tolist())

        return self._answers(texts, read)

    def log_likelihoods(self, texts: Sequence[Tokens], lead: int = 1) -> list[float]:
        """Per text, longer than `lead` tokens, the sum of ln P over its tokens behind the first `lead` (1 or more).

        Each piece of a plan is scored once, and a text's sum is that of its pieces.
        """

        def read(plan: Sequence[Level]) -> list[float]:
            owners: list[tuple[int, int]] = []
            found: list[torch.Tensor] = []
            for done in self._passes.carried_out(plan):
                wanted = _scored(done, lead)
                if wanted.rows:
                    found.append(self._passes.log_probabilities(wanted.states(done), wanted.at, wanted.tokens))
                    owners.extend((done.level, done.places[row]) for row in wanted.rows)
            totals = [[0.0] * len(level) for level in plan]
            for (level, place), value in zip(owners, torch.cat(found).tolist(), strict=True):
                totals[level][place] += value
            for level, pieces in enumerate(plan[1:]):
                for place, piece in enumerate(pieces):
                    totals[level + 1][place] += totals[level][piece.parent]
            return totals[-1]

        return self._answers(texts, read)

    def _answers(self, texts: Sequence[Tokens], read: Callable[[Sequence[Level]], list[Answer]]) -> list[Answer]:
        """What `read` gives for the last level of plans over all texts."""
        if self._passes.state_bytes:
            self.room.size = min(self.room.size, LOGIT_BYTES // self._passes.state_bytes)

        @torch.inference_mode()
        def run(batch: Sequence[Tokens]) -> list[Answer]:
            return read(self._plan(batch))

        return distinct_in_batches(texts, self.room, run)

    def _plan(self, batch: Sequence[Tokens]) -> list[Level]:
        """Common beginnings are shared where the network can do it and no layer's window is narrower than the texts."""
        if not (self._sharing and self._passes.shares):
            return prefixes.whole(batch)
        plan = prefixes.shared(batch, self._passes.pass_cost)
        slots = sum(max(len(piece.tokens) for piece in level) for level in plan)
        return plan if slots <= self._passes.window else prefixes.whole(batch)


@dataclass
class _Scored:
    """The tokens of a pass whose probability counts, each with the row of its piece and the state that predicts it.

    A token is predicted by the one before it in its piece, `inner`, or at the piece's beginning by its parent. All
    children of a parent read one state, so that its logits are made once: `parents` are rows that have it in front.
    """

    parents: list[int]
    inner: list[int]
    at: list[int]
    tokens: list[int]
    rows: list[int]

    def states(self, done: Pass) -> torch.Tensor:
        """The states that `at` counts: first those of parents, then those inside pieces."""
        inner = done.states.flatten(0, 1)[self.inner]
        return inner if done.before is None else torch.cat([done.before[self.parents], inner])


def _scored(done: Pass, lead: int) -> _Scored:
    children: dict[int, list[int]] = {}
    if done.before is not None:
        for row, piece in enumerate(done.pieces):
            if piece.tokens and piece.start >= lead:
                children.setdefault(piece.parent, []).append(row)
    begun = [(at, done.pieces[row].tokens[0], row) for at, rows in enumerate(children.values()) for row in rows]
    width = done.states.shape[1]
    found = [
        (row * width + place - 1, piece.tokens[place], row)
        for row, piece in enumerate(done.pieces)
        for place in range(max(1, lead - piece.start), len(piece.tokens))
    ]
    return _Scored(
        parents=[rows[0] for rows in children.values()],
        inner=[state for state, _, _ in found],
        at=[at for at, _, _ in begun] + [len(children) + number for number in range(len(found))],
        tokens=[token for _, token, _ in (*begun, *found)],
        rows=[row for _, _, row in (*begun, *found)],
    )


def _in_order(places: Sequence[int], values: Sequence[Answer]) -> list[Answer]:
    """Values whose places are all of 0, 1, 2, ..., by place."""
    by_place = dict(zip(places, values, strict=True))
    return [by_place[place] for place in range(len(places))]
