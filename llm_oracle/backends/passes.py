"""Passes of a causal network: pieces of texts that continue others from the key-value cache, and logits in slices.

Each ability of a network is tried on a few tokens before it is used. An architecture whose cache is not indexed by
positions is run plainly, with the same results.
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

from hapax.llm_oracle.backends import prefixes
from hapax.llm_oracle.backends.batching import is_memory_fault
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.prefixes import Level, Piece, Tokens

FAULTS = (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""Exceptions of an architecture that cannot be run in parts."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Costs of a pass on a device, beside those of its tokens.

    `waiting`: tokens that could be computed in the time it takes to read all weights once.
    `starting`: tokens times weights that could be computed in the time it takes to start a layer.
    `widest`: tokens of a pass, including padding, above which each token takes longer.
    `slice`: positions whose logits are computed together; with fewer, reading the head's weights dominates.
    """

    waiting: int
    starting: int
    widest: int
    slice: int


PROCESSOR = Pace(waiting=16, starting=25_000_000, widest=2048, slice=128)
"""Measured with the embedded model and a Llama of 768 x 12 on one core. A wider pass exceeds the core's caches."""

GPU = Pace(waiting=300, starting=40_000_000_000, widest=2**31, slice=512)
"""Calculated, not measured: 600 operations per byte read, and 0.2 ms per layer at 400 TFLOP/s."""


@dataclass(frozen=True)
class Pass:
    """Result of one pass. `states[row, :len(piece.tokens)]` belongs to `pieces[row]`.

    `places`: the pieces' indices in their level. `before`: for each row, the state of the last token before the piece
    (undefined if there is none); None in the first level.
    """

    level: int
    places: Sequence[int]
    pieces: Sequence[Piece]
    states: torch.Tensor
    before: torch.Tensor | None


@dataclass(frozen=True)
class _ComputedLevel:
    """The computed pieces of a level, which later pieces continue.

    Each row of `cache` and `mask` is a piece with everything before it. `ends`: number of the row's slots up to its
    last token. `states`: the state of that token.
    """

    cache: Any
    mask: torch.Tensor
    ends: Sequence[int]
    states: torch.Tensor

    def of(self, parents: Sequence[int]) -> tuple[Any, torch.Tensor]:
        """A copy of cache and mask with a row for each of the parents, without slots that none of them fills."""
        # At least one slot, even if it is not filled: an empty cache cannot be indexed.
        width = max(1, *(self.ends[parent] for parent in parents))
        # Shallow copies suffice: cropping and selecting replace the layers' tensors and do not write into them.
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        rows = torch.tensor(parents, device=self.mask.device)
        # Negative: `crop` removes so many slots from the end.
        cache.crop(width - self.mask.shape[1])
        cache.batch_select_indices(rows)
        return cache, self.mask[rows, :width]


@dataclass(frozen=True)
class _NetworkOutput:
    """Output of the network in one pass: states [rows, width, size], and cache and mask with everything before."""

    states: torch.Tensor
    before: torch.Tensor | None
    cache: Any
    mask: torch.Tensor

    def context(self, level: Level, above: _ComputedLevel | None) -> _ComputedLevel:
        """The level's pieces for those that continue them. A piece without tokens ends where its parent ends."""
        in_front = self.mask.shape[1] - self.states.shape[1]
        ends: list[int] = []
        for piece in level:
            if above is not None and not piece.tokens:
                ends.append(above.ends[piece.parent])
            else:
                ends.append(in_front + len(piece.tokens))
        # An empty piece has no last token; its row is replaced below.
        final = [max(0, len(piece.tokens) - 1) for piece in level]
        last = self.states[torch.arange(len(level), device=self.mask.device), final]
        if self.before is not None:
            empty = torch.tensor([not piece.tokens for piece in level], device=self.mask.device)
            last = torch.where(empty[:, None], self.before, last)
        return _ComputedLevel(self.cache, self.mask, ends, last)


class Passes:
    """Executes plans with one network, and computes logits from its states."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._network = loaded.network
        self._body: Any = getattr(loaded.network, "base_model", None)
        self._config = loaded.network.config.get_text_config()
        self._padding = loaded.padding
        self._pace = PROCESSOR if loaded.device.type == "cpu" else GPU
        weights = sum(parameter.numel() for parameter in self._network.parameters())
        layer = (weights - self._network.get_input_embeddings().weight.numel()) // self._config.num_hidden_layers
        self.pass_cost = self._pace.waiting + self._pace.starting // max(1, layer)
        """Number of tokens that cost as much as another pass."""
        self.runs_body = False
        """True if the network's body and head, run one after the other, give the network's own logits."""
        self.shares = False
        """True if texts that continue a cache get the logits that they get by themselves."""
        self._try_abilities()

    @cached_property
    def window(self) -> int:
        """Number of tokens that every layer sees, in slots of the cache, which has gaps if texts differ in length."""
        named = (getattr(self._config, name, None) for name in ("sliding_window", "attention_chunk_size"))
        return min((limit for limit in named if isinstance(limit, int) and limit > 0), default=2**31)

    @property
    def state_bytes(self) -> int:
        """Size of a token's states if they are logits, else 0."""
        return 0 if self.runs_body else int(self._config.vocab_size) * self._network.dtype.itemsize

    def carried_out(self, plan: Sequence[Level]) -> Iterator[Pass]:
        """Execute a plan. A level that others continue takes one pass; the last level, as many as its lengths need."""
        context: _ComputedLevel | None = None
        for number, level in enumerate(plan[:-1]):
            run = self._run(level, context, keep=True)
            yield Pass(number, range(len(level)), level, run.states, run.before)
            context = run.context(level, context)
        for places in self._by_length(plan[-1]):
            pieces = [plan[-1][place] for place in places]
            run = self._run(pieces, context, keep=False)
            yield Pass(len(plan) - 1, places, pieces, run.states, run.before)

    def _by_length(self, level: Level) -> Iterator[list[int]]:
        """Batches of similar length, longest first. A batch ends when its padding would cost more than another pass."""
        batch: list[int] = []
        padding = width = 0
        for place in sorted(range(len(level)), key=lambda place: -len(level[place].tokens)):
            length = len(level[place].tokens)
            if batch and (padding + width - length > self.pass_cost or (len(batch) + 1) * width > self._pace.widest):
                yield batch
                batch, padding = [], 0
            # Longest first, so the first text of a batch sets its width.
            width = width if batch else length
            padding += width - length
            batch.append(place)
        yield batch

    def chosen_logits(self, states: torch.Tensor, tokens: Sequence[int], total: bool = False) -> torch.Tensor:
        """Logits [n, tokens] of these tokens alone, in float32, from states [n, size].

        `total`: with another column, the log of the sum over the whole vocabulary.
        """
        return torch.cat(
            [chosen_columns(self.logits(part), tokens, total) for part in torch.split(states, self._pace.slice)]
        )

    def log_probabilities(self, states: torch.Tensor, at: Sequence[int], targets: Sequence[int]) -> torch.Tensor:
        """ln P of each target token, in float32, by the state with the index in `at`, which is in ascending order.

        The logits are computed a slice at a time, because those of all states [n, size] would take too much memory.
        """
        where = torch.tensor(at, device=states.device)
        wanted = torch.tensor(targets, device=states.device)
        found = []
        begin = 0
        for offset in range(0, len(states), self._pace.slice):
            logits = self.logits(states[offset : offset + self._pace.slice])
            end = bisect_left(at, offset + len(logits))
            # `at` ascends, so the states of this slice are the next ones in it.
            rows = where[begin:end] - offset
            found.append(logits[rows, wanted[begin:end]] - logits.logsumexp(-1)[rows])
            begin = end
        return torch.cat(found)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocabulary] in float32 from states [n, size]. For many states, use `log_probabilities`."""
        if not self.runs_body:
            return states.float()
        logits: torch.Tensor = self._network.get_output_embeddings()(states).float()
        if factor := getattr(self._config, "logit_scale", None):  # Cohere's
            logits = logits * factor
        if divisor := getattr(self._config, "logits_scaling", None):  # Granite's
            logits = logits / divisor
        cap = getattr(self._config, "final_logit_softcapping", None)  # Gemma's
        return cap * torch.tanh(logits / cap) if cap else logits

    def _run(self, pieces: Sequence[Piece], context: _ComputedLevel | None, keep: bool) -> _NetworkOutput:
        """One pass of the network. `keep`: return a cache that other pieces can continue."""
        device = self._network.device
        width = max(len(piece.tokens) for piece in pieces)
        padded = [[*piece.tokens, *[self._padding] * (width - len(piece.tokens))] for piece in pieces]
        lengths = torch.tensor([len(piece.tokens) for piece in pieces], device=device)[:, None]
        slots = torch.arange(width, device=device)[None]
        mask = (slots < lengths).long()
        # A piece without tokens sees its first padding, because a row that sees nothing may turn into NaN.
        visible = (slots < lengths.clamp(min=1)).long()
        inputs: dict[str, Any] = {"input_ids": torch.tensor(padded, device=device), "attention_mask": visible}
        before = None
        if context is not None:
            parents = [piece.parent for piece in pieces]
            cache, seen = context.of(parents)
            before = context.states[parents]
            mask = torch.cat([seen, mask], 1)
            inputs |= {"attention_mask": torch.cat([seen, visible], 1), "past_key_values": cache}
        if context is not None or keep:
            starts = torch.tensor([piece.start for piece in pieces], device=device)[:, None]
            # Padding repeats the last position: one more might lie outside a table of positions.
            inputs |= {"position_ids": starts + torch.minimum(slots, (lengths - 1).clamp(min=0)), "use_cache": True}
        states, cache = self._states(inputs)
        return _NetworkOutput(states, before, cache, mask)

    def _states(self, inputs: dict[str, Any]) -> tuple[torch.Tensor, Any]:
        """States of all positions, and the cache. If the head cannot be run separately, the states are logits."""
        runner = self._body if self.runs_body else self._network
        names = inspect.signature(runner.forward).parameters
        if "use_cache" not in inputs and "use_cache" in names:
            inputs = {**inputs, "use_cache": False}
        output = runner(**inputs)
        states = output.last_hidden_state if self.runs_body else output.logits
        return states, getattr(output, "past_key_values", None)

    @torch.inference_mode()
    def _try_abilities(self) -> None:
        """Try on a few tokens which methods give the network's own logits."""
        trial = _trial(self._config.vocab_size)
        texts = [torch.tensor([text], device=self._network.device) for text in trial]
        logits = [self._network(input_ids=text, attention_mask=torch.ones_like(text)).logits[0] for text in texts]
        self.runs_body = self._body is not None
        self.runs_body = self.runs_body and self._gives(logits, prefixes.whole(trial))
        self.shares = self._gives(logits, prefixes.shared(trial, 0))

    def _gives(self, logits: Sequence[torch.Tensor], plan: Sequence[Level]) -> bool:
        """True if the last level of a plan gives these logits [length, vocabulary] of its texts."""
        rounding = 1e-4 if self._network.dtype == torch.float32 else 0.05  # bfloat16 has 8 bits
        try:
            last = [done for done in self.carried_out(plan) if done.level == len(plan) - 1]
            for done in last:
                for row, (place, piece) in enumerate(zip(done.places, done.pieces, strict=True)):
                    expected = logits[place].float()
                    off = self.logits(done.states[row, : len(piece.tokens)]) - expected[piece.start :]
                    if (
                        not off.abs().max() <= rounding * expected.abs().max()
                    ):  # written with `not`, so that NaN counts as a difference
                        return False
        except FAULTS as fault:
            if is_memory_fault(fault):
                raise
            return False
        return True


def _trial(vocabulary: int) -> list[Tokens]:
    """Texts of different lengths with two levels of common beginnings, and one text that shares nothing."""
    begin, fork = tuple(range(3, 9)), tuple(range(9, 12))
    texts = [(*begin, 20), (*begin, *fork, 21), (*begin, *fork, 22, 23, 24), (*begin, 25, 26), (27, 28, 29)]
    trial: list[Tokens] = []
    for text in texts:
        trial.append(tuple(token % vocabulary for token in text))
    return trial


def chosen_columns(logits: torch.Tensor, tokens: Sequence[int], total: bool) -> torch.Tensor:
    """The columns of these tokens, and if `total` is wanted one with the log of the sum over all tokens."""
    chosen = logits[:, tokens]
    return torch.cat([chosen, logits.logsumexp(-1, keepdim=True)], 1) if total else chosen
