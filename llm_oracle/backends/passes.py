"""Passes of a causal network: pieces of texts that continue others from the key-value cache, and logits by the slice.

What a network can do of this is tried on a handful of tokens before it is relied upon. An architecture that keeps or
numbers its past in another way than a cache by positions is run plainly, with the same results.
"""

from __future__ import annotations

import copy
import inspect
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from llm_oracle.backends import prefixes
from llm_oracle.backends.batching import is_memory_fault
from llm_oracle.backends.loading import LoadedModel
from llm_oracle.backends.prefixes import Level, Piece, Tokens

FAULTS = (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What an architecture that cannot be run in parts raises when it is tried."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What passes cost on a device, beside their tokens.

    `waiting`: tokens that could be computed while all weights are read once. `starting`: while a layer is started, so
    many tokens times weights could be. `widest`: tokens of a pass, padding counted, beyond which each takes longer.
    `slice`: positions whose logits are made at once; fewer would wait for the head's weights.
    """

    waiting: int
    starting: int
    widest: int
    slice: int


PROCESSOR = Pace(waiting=16, starting=25_000_000, widest=2048, slice=128)
"""Measured by the embedded model and by a Llama of 768 x 12, on one core: what is wider leaves the core's caches."""

GPU = Pace(waiting=300, starting=40_000_000_000, widest=2**31, slice=512)
"""Reckoned, not measured: 600 operations for each byte read, and 0.2 ms a layer at 400 TFLOP/s."""


@dataclass(frozen=True)
class Pass:
    """What one pass has computed. `states[row, :len(piece.tokens)]` belongs to `pieces[row]`.

    `places`: the pieces' places in their level. `before`: per row, the state of the last token in front of the piece
    (which is anything where there is none); None in the first level.
    """

    level: int
    places: Sequence[int]
    pieces: Sequence[Piece]
    states: torch.Tensor
    before: torch.Tensor | None


@dataclass(frozen=True)
class _Context:
    """The pieces of a level once they are computed: what later pieces continue.

    Each row of `cache` and `mask` is a piece with all in front of it; `ends` counts the row's slots up to its last
    token, `states` has the state of that token.
    """

    cache: Any
    mask: torch.Tensor
    ends: Sequence[int]
    states: torch.Tensor

    def of(self, parents: Sequence[int]) -> tuple[Any, torch.Tensor]:
        """Cache and mask with a row for each of the parents, copied, and without slots that none of them fills.

        One slot stays, filled or not: an empty cache cannot be indexed.
        """
        width = max(1, *(self.ends[parent] for parent in parents))
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        rows = torch.tensor(parents, device=self.mask.device)
        cache.crop(width - self.mask.shape[1])
        cache.batch_select_indices(rows)
        return cache, self.mask[rows, :width]


@dataclass(frozen=True)
class _Run:
    """What the network gave in one pass: states [rows, width, size], and the cache and mask of all that it has seen."""

    states: torch.Tensor
    before: torch.Tensor | None
    cache: Any
    mask: torch.Tensor

    def context(self, level: Level, above: _Context | None) -> _Context:
        """The level's pieces for those that go on from them. A piece without tokens ends where its parent ends."""
        in_front = self.mask.shape[1] - self.states.shape[1]
        ends = [
            in_front + len(piece.tokens) if piece.tokens or above is None else above.ends[piece.parent]
            for piece in level
        ]
        final = [max(0, len(piece.tokens) - 1) for piece in level]
        last = self.states[torch.arange(len(level), device=self.mask.device), final]
        if self.before is not None:
            empty = torch.tensor([not piece.tokens for piece in level], device=self.mask.device)
            last = torch.where(empty[:, None], self.before, last)
        return _Context(self.cache, self.mask, ends, last)


class Passes:
    """Carries out plans over one network, and reads logits from what comes out."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._network = loaded.network
        self._body: Any = getattr(loaded.network, "base_model", None)
        self._config = loaded.network.config.get_text_config()
        self._padding = loaded.padding
        self._pace = PROCESSOR if loaded.device.type == "cpu" else GPU
        weights = sum(one.numel() for one in self._network.parameters())
        layer = (weights - self._network.get_input_embeddings().weight.numel()) // self._config.num_hidden_layers
        self.pass_cost = self._pace.waiting + self._pace.starting // max(1, layer)
        """Tokens that are as dear as one more pass."""
        self.runs_body = False
        """Whether the network's body and its head, run one after the other, give the network's own logits."""
        self.shares = False
        """Whether texts that go on from a cache get the logits that they get by themselves."""
        self._find_ways()

    @cached_property
    def window(self) -> int:
        """Tokens that every layer sees, counted in slots of the cache, which has holes where texts differ in length."""
        named = (getattr(self._config, name, None) for name in ("sliding_window", "attention_chunk_size"))
        return min((limit for limit in named if isinstance(limit, int) and limit > 0), default=2**31)

    @property
    def state_bytes(self) -> int:
        """What the states of a token take where they are logits, else 0."""
        return 0 if self.runs_body else int(self._config.vocab_size) * self._network.dtype.itemsize

    def carried_out(self, plan: Sequence[Level]) -> Iterator[Pass]:
        """Carries out a plan. A level that others go on from is one pass, the last one as many as its lengths need."""
        context: _Context | None = None
        for number, level in enumerate(plan[:-1]):
            run = self._run(level, context, keep=True)
            yield Pass(number, range(len(level)), level, run.states, run.before)
            context = run.context(level, context)
        for places in self._by_length(plan[-1]):
            pieces = [plan[-1][place] for place in places]
            run = self._run(pieces, context, keep=False)
            yield Pass(len(plan) - 1, places, pieces, run.states, run.before)

    def _by_length(self, level: Level) -> Iterator[list[int]]:
        """Batches of like length, longest first: a batch ends where its padding would cost more than another pass."""
        batch: list[int] = []
        padding = width = 0
        for place in sorted(range(len(level)), key=lambda place: -len(level[place].tokens)):
            length = len(level[place].tokens)
            if batch and (padding + width - length > self.pass_cost or (len(batch) + 1) * width > self._pace.widest):
                yield batch
                batch, padding = [], 0
            width = width if batch else length
            padding += width - length
            batch.append(place)
        yield batch

    def chosen_logits(self, states: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
        """The logits [n, tokens] of these tokens alone, in float32, of states [n, size]."""
        return torch.cat([self.logits(part)[:, tokens] for part in torch.split(states, self._pace.slice)])

    def log_probabilities(self, states: torch.Tensor, at: Sequence[int], targets: Sequence[int]) -> torch.Tensor:
        """ln P of each target token in the state that it is `at`, in float32. `at` ascends.

        The logits of all states [n, size] would take n times the vocabulary; they are made a slice at a time.
        """
        where = torch.tensor(at, device=states.device)
        wanted = torch.tensor(targets, device=states.device)
        found = []
        begin = 0
        for offset in range(0, len(states), self._pace.slice):
            logits = self.logits(states[offset : offset + self._pace.slice])
            end = bisect_left(at, offset + len(logits))
            rows = where[begin:end] - offset
            found.append(logits[rows, wanted[begin:end]] - logits.logsumexp(-1)[rows])
            begin = end
        return torch.cat(found)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocabulary] in float32 of states [n, size]. For many states, see `log_probabilities`."""
        if not self.runs_body:
            return states.float()
        logits: torch.Tensor = self._network.get_output_embeddings()(states).float()
        if factor := getattr(self._config, "logit_scale", None):  # Cohere's
            logits = logits * factor
        if divisor := getattr(self._config, "logits_scaling", None):  # Granite's
            logits = logits / divisor
        cap = getattr(self._config, "final_logit_softcapping", None)  # Gemma's
        return cap * torch.tanh(logits / cap) if cap else logits

    def _run(self, pieces: Sequence[Piece], context: _Context | None, keep: bool) -> _Run:
        """One pass of the network; with `keep`, its cache can be gone on from."""
        device = self._network.device
        width = max(len(piece.tokens) for piece in pieces)
        padded = [[*piece.tokens, *[self._padding] * (width - len(piece.tokens))] for piece in pieces]
        lengths = torch.tensor([len(piece.tokens) for piece in pieces], device=device)[:, None]
        slots = torch.arange(width, device=device)[None]
        mask = (slots < lengths).long()
        # A piece without tokens sees its first padding, because a row that sees nothing may turn into NaN.
        visible = (slots < lengths.clamp(min=1)).long()
        asked: dict[str, Any] = {"input_ids": torch.tensor(padded, device=device), "attention_mask": visible}
        before = None
        if context is not None:
            parents = [piece.parent for piece in pieces]
            cache, seen = context.of(parents)
            before = context.states[parents]
            mask = torch.cat([seen, mask], 1)
            asked |= {"attention_mask": torch.cat([seen, visible], 1), "past_key_values": cache}
        if context is not None or keep:
            starts = torch.tensor([piece.start for piece in pieces], device=device)[:, None]
            # Padding repeats the last position: one more might lie outside a table of positions.
            asked |= {"position_ids": starts + torch.minimum(slots, (lengths - 1).clamp(min=0)), "use_cache": True}
        states, cache = self._states(asked)
        return _Run(states, before, cache, mask)

    def _states(self, asked: dict[str, Any]) -> tuple[torch.Tensor, Any]:
        """States of all positions and the cache. Where the head cannot be run by itself, logits are the states."""
        runner = self._body if self.runs_body else self._network
        names = inspect.signature(runner.forward).parameters
        if "use_cache" not in asked and "use_cache" in names:
            asked = {**asked, "use_cache": False}
        output = runner(**asked)
        states = output.last_hidden_state if self.runs_body else output.logits
        return states, getattr(output, "past_key_values", None)

    @torch.inference_mode()
    def _find_ways(self) -> None:
        """Tries on a few tokens what gives the network's own logits."""
        trial = _trial(self._config.vocab_size)
        texts = [torch.tensor([text], device=self._network.device) for text in trial]
        logits = [self._network(input_ids=text, attention_mask=torch.ones_like(text)).logits[0] for text in texts]
        self.runs_body = self._body is not None
        self.runs_body = self.runs_body and self._gives(logits, prefixes.whole(trial))
        self.shares = self._gives(logits, prefixes.shared(trial, 0))

    def _gives(self, logits: Sequence[torch.Tensor], plan: Sequence[Level]) -> bool:
        """Whether a plan gives these logits [length, vocabulary] of its texts, as far as its last level goes."""
        rounding = 1e-4 if self._network.dtype == torch.float32 else 0.05
        try:
            last = [done for done in self.carried_out(plan) if done.level == len(plan) - 1]
            for done in last:
                for row, (place, piece) in enumerate(zip(done.places, done.pieces, strict=True)):
                    expected = logits[place].float()
                    off = self.logits(done.states[row, : len(piece.tokens)]) - expected[piece.start :]
                    if not off.abs().max() <= rounding * expected.abs().max():  # not: NaN is no agreement either
                        return False
        except FAULTS as fault:
            if is_memory_fault(fault):
                raise
            return False
        return True


def _trial(vocabulary: int) -> list[Tokens]:
    """Texts that share two levels of beginnings, differ in length, and of which one shares nothing."""
    begin, fork = tuple(range(3, 9)), tuple(range(9, 12))
    texts = [(*begin, 20), (*begin, *fork, 21), (*begin, *fork, 22, 23, 24), (*begin, 25, 26), (27, 28, 29)]
    return [tuple(token % vocabulary for token in text) for text in texts]
