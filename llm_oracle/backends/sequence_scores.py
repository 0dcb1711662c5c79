"""Scores of token sequences under a causal network, with little work.

Equal texts run once, a common beginning of texts runs once and its key-value cache is continued, texts of similar
length run together, and logits are computed only for the positions that are read, a slice at a time.

Each ability of a network is tried on a few tokens before it is used. An architecture whose cache is not indexed by
positions is run plainly, with the same results.
"""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar

import torch

from hapax.llm_oracle.backends.batching import BatchLimit, distinct_in_batches, is_memory_fault
from hapax.llm_oracle.backends.loading import LoadedModel

Answer = TypeVar("Answer")
Tokens = tuple[int, ...]

ROOM = 16_384
"""Tokens of a batch, including padding."""
LOGIT_BYTES = 512 * 2**20
"""Bytes of logits kept at a time, for a network whose head cannot be run separately."""
FAULTS = (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""Exceptions of an architecture that cannot be run in parts."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Costs of passes on a device.

    `another`: tokens that cost as much as another pass. `widest`: tokens of a pass, including padding, above which each
    token takes longer. `slice`: positions whose logits are computed together.
    """

    another: int
    widest: int
    slice: int


PROCESSOR = Pace(another=32, widest=2048, slice=128)
"""Measured with the embedded model and a Llama of 768 x 12 on one core. A wider pass exceeds the core's caches."""
GPU = Pace(another=1_000, widest=2**31, slice=512)
"""Calculated, not measured: 600 operations per byte read, and 0.2 ms per layer at 400 TFLOP/s."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that are computed together. `texts`: the texts, by index, that they belong to.

    `start`: number of tokens before it, which are those of the beginning with the index `parent`.
    """

    texts: tuple[int, ...]
    tokens: Tokens
    start: int = 0
    parent: int = 0


@dataclass(frozen=True)
class Pass:
    """Result of one pass. `states[row, :len(piece.tokens)]` belongs to `pieces[row]`.

    `before`: for each row, the state of the last token before the piece; None at the beginning of texts.
    """

    pieces: Sequence[Piece]
    states: torch.Tensor
    before: torch.Tensor | None = None
    cache: Any = None

    def of(self, pieces: Sequence[Piece]) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """A copy of the cache with the row that each piece continues, the mask of its slots, and the last states."""
        starts = [piece.start for piece in pieces]
        rows = torch.tensor([piece.parent for piece in pieces], device=self.states.device)
        # Shallow copies suffice: cropping and selecting replace the layers' tensors and do not write into them.
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        # Negative: `crop` removes so many slots from the end.
        cache.crop(max(starts) - self.states.shape[1])
        cache.batch_select_indices(rows)
        ends = torch.tensor(starts, device=self.states.device)
        mask = torch.arange(max(starts), device=self.states.device) < ends[:, None]
        return cache, mask.long(), self.states[rows, ends - 1]


def shared(texts: Sequence[Tokens], another: int) -> tuple[list[Piece], list[Piece]]:
    """Common beginnings of texts, and a piece for each text: its rest, or the whole of one that shares nothing.

    Nothing is shared if that saves no more than `another` tokens. The last token of a text is never shared.
    """
    keys = [text[:-1] for text in texts]
    saved, cuts = _best_cuts(sorted(range(len(texts)), key=keys.__getitem__), keys)
    beginnings: list[Piece] = []
    pieces = [Piece((place,), text) for place, text in enumerate(texts)]
    for places, length in cuts if saved > another else ():
        for place in places:
            pieces[place] = Piece((place,), texts[place][length:], length, len(beginnings))
        beginnings.append(Piece(tuple(places), texts[places[0]][:length]))
    return beginnings, pieces


def _best_cuts(ordered: Sequence[int], keys: Sequence[Tokens]) -> tuple[int, list[tuple[Sequence[int], int]]]:
    """The saved tokens, and groups of these texts with the length of their beginnings, which save most in total.

    It is one group of all, or separate groups with longer beginnings.
    """
    if len(ordered) < 2:
        return 0, []
    # In lexical order, a beginning that the first and the last share is shared by all.
    first, last = keys[ordered[0]], keys[ordered[-1]]
    length = next((place for place in range(min(len(first), len(last))) if first[place] != last[place]), len(first))
    together = (len(ordered) - 1) * length
    branches = [list(branch) for _, branch in groupby(ordered, lambda place: keys[place][length : length + 1])]
    apart = [_best_cuts(branch, keys) for branch in branches] if len(branches) > 1 else []
    saved = sum(gain for gain, _ in apart)
    if saved <= together:
        return together, [(ordered, length)] if length else []
    groups: list[tuple[Sequence[int], int]] = []
    for _, cuts in apart:
        groups += cuts
    return saved, groups


class CausalScorer:
    """Next-token logits and log-likelihoods of token sequences under a causal network. Not thread-safe.

    `room`: tokens of a batch, halved if they do not fit.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM) -> None:
        self.room = BatchLimit(room)
        self._network = loaded.network
        self._body: Any = getattr(loaded.network, "base_model", None)
        self._config = loaded.network.config.get_text_config()
        self._padding = loaded.padding
        self._pace = PROCESSOR if loaded.device.type == "cpu" else GPU
        self._runs_body = False
        """True if the network's body and head, run one after the other, give the network's own logits."""

    def next_logits(self, texts: Sequence[Tokens], tokens: Sequence[int], total: bool = False) -> list[list[float]]:
        """For each text, none of them empty, the logits of these tokens after its end.

        `total`: and the log of the sum over the whole vocabulary.
        """

        def read(batch: Sequence[Tokens]) -> list[list[float]]:
            found: dict[int, list[float]] = {}
            for done in self._passes(batch):
                final = [len(piece.tokens) - 1 for piece in done.pieces]
                states = done.states[range(len(final)), final]
                parts = [
                    chosen_columns(self._logits(part), tokens, total) for part in torch.split(states, self._pace.slice)
                ]
                for piece, row in zip(done.pieces, torch.cat(parts).tolist(), strict=True):
                    # The rest of a text comes after its beginning.
                    found.update(dict.fromkeys(piece.texts, row))
            return [found[place] for place in range(len(batch))]

        return self._answers(texts, read)

    def log_likelihoods(self, texts: Sequence[Tokens], lead: int = 1) -> list[tuple[float, ...]]:
        """For each text, longer than `lead` tokens, ln P of each of its tokens after the first `lead` (1 or more)."""

        def read(batch: Sequence[Tokens]) -> list[tuple[float, ...]]:
            scores: list[list[float]] = [[] for _ in batch]
            for done in self._passes(batch):
                for piece, found in zip(done.pieces, self._scored(done, lead), strict=True):
                    for place in piece.texts:
                        scores[place] += found
            return [tuple(tokens) for tokens in scores]

        return self._answers(texts, read)

    def _scored(self, done: Pass, lead: int) -> list[list[float]]:
        """For each piece of a pass, ln P of its tokens after the text's first `lead`."""
        width = done.states.shape[1]
        states = done.states.flatten(0, 1)
        if done.before is not None:
            states = torch.cat([states, done.before])
        at: list[int] = []
        targets: list[int] = []
        counts: list[int] = []
        siblings: dict[int, int] = {}
        for row, piece in enumerate(done.pieces):
            first = max(lead - piece.start, int(done.before is None), 0)
            # The state before a piece is the same for all that continue one beginning.
            before = len(done.pieces) * width + siblings.setdefault(piece.parent, row)
            for place in range(first, len(piece.tokens)):
                at.append(row * width + place - 1 if place else before)
            targets += piece.tokens[first:]
            counts.append(max(0, len(piece.tokens) - first))
        found = iter(self._log_probabilities(states, at, targets))
        return [[next(found) for _ in range(count)] for count in counts]

    def _log_probabilities(self, states: torch.Tensor, at: Sequence[int], targets: Sequence[int]) -> list[float]:
        """ln P of each target token by the state with the index in `at`, computed a slice of the states at a time.

        The logits of all states [n, size] would take too much memory.
        """
        used = list(dict.fromkeys(at))
        numbers = dict(zip(used, range(len(used)), strict=True))
        by_slice: dict[int, list[int]] = defaultdict(list)
        for place, state in enumerate(at):
            by_slice[numbers[state] // self._pace.slice].append(place)
        found = [0.0] * len(at)
        for number, places in by_slice.items():
            begin = number * self._pace.slice
            logits = self._logits(states[used[begin : begin + self._pace.slice]])
            rows = [numbers[at[place]] - begin for place in places]
            scores = logits[rows, [targets[place] for place in places]] - logits.logsumexp(-1)[rows]
            for place, score in zip(places, scores.tolist(), strict=True):
                found[place] = score
        return found

    def _answers(self, texts: Sequence[Tokens], read: Callable[[Sequence[Tokens]], list[Answer]]) -> list[Answer]:
        """The results of `read` for all texts, in batches."""
        self._shares  # noqa: B018  # tried before the room is known
        if not self._runs_body:
            # Such a network returns the logits of all positions at once.
            size = int(self._config.vocab_size) * self._network.dtype.itemsize
            self.room.size = min(self.room.size, LOGIT_BYTES // size)
        return distinct_in_batches(texts, self.room, torch.inference_mode()(read))

    def _passes(self, texts: Sequence[Tokens], another: int | None = None) -> Iterator[Pass]:
        """Passes over all pieces of these texts, those of beginnings first. `another`: as for `shared`."""
        beginnings, pieces = shared(texts, self._pace.another if another is None else another)
        whole = [Piece((place,), text) for place, text in enumerate(texts)]
        slots = max(piece.start for piece in pieces) + max(len(piece.tokens) for piece in pieces)
        # In the cache all beginnings are as wide as the longest of them.
        if slots > self._window or (another is None and not self._shares):
            beginnings, pieces = [], whole
        for batch in self._by_length([piece for piece in pieces if not piece.start]):
            yield self._run(batch)
        if beginnings:
            begun = self._run(beginnings, keep=True)
            yield begun
            for batch in self._by_length([piece for piece in pieces if piece.start]):
                yield self._run(batch, begun)

    def _by_length(self, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
        """Batches of similar length, longest first. A batch ends when its padding would cost more than another pass."""
        batch: list[Piece] = []
        padding = 0
        for piece in sorted(pieces, key=lambda piece: -len(piece.tokens)):
            # Longest first, so the first piece of a batch sets its width.
            width = len((batch or [piece])[0].tokens)
            padding += width - len(piece.tokens)
            if batch and (padding > self._pace.another or (len(batch) + 1) * width > self._pace.widest):
                yield batch
                batch, padding = [], 0
            batch.append(piece)
        if batch:
            yield batch

    def _run(self, pieces: Sequence[Piece], begun: Pass | None = None, keep: bool = False) -> Pass:
        """One pass of the network. `begun`: the pass that the pieces continue. `keep`: with the cache."""
        device = self._network.device
        width = max(len(piece.tokens) for piece in pieces)
        padded = [[*piece.tokens, *[self._padding] * (width - len(piece.tokens))] for piece in pieces]
        lengths = torch.tensor([len(piece.tokens) for piece in pieces], device=device)[:, None]
        slots = torch.arange(width, device=device)[None]
        mask = (slots < lengths).long()
        inputs: dict[str, Any] = {"input_ids": torch.tensor(padded, device=device), "attention_mask": mask}
        before = None
        if begun is not None:
            cache, seen, before = begun.of(pieces)
            inputs |= {"attention_mask": torch.cat([seen, mask], 1), "past_key_values": cache}
        if begun is not None or keep:
            starts = torch.tensor([piece.start for piece in pieces], device=device)[:, None]
            # Padding repeats the last position: one more might lie outside a table of positions.
            inputs |= {"position_ids": starts + torch.minimum(slots, lengths - 1), "use_cache": True}
        runner = self._body if self._runs_body else self._network
        if "use_cache" not in inputs and "use_cache" in inspect.signature(runner.forward).parameters:
            inputs["use_cache"] = False
        output = runner(**inputs)
        # If the head cannot be run separately, the states are logits.
        states = output.last_hidden_state if self._runs_body else output.logits
        return Pass(pieces, states, before, getattr(output, "past_key_values", None) if keep else None)

    def _logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocabulary] in float32 from states [n, size]."""
        if not self._runs_body:
            return states.float()
        logits: torch.Tensor = self._network.get_output_embeddings()(states).float()
        if factor := getattr(self._config, "logit_scale", None):  # Cohere's
            logits = logits * factor
        if divisor := getattr(self._config, "logits_scaling", None):  # Granite's
            logits = logits / divisor
        cap = getattr(self._config, "final_logit_softcapping", None)  # Gemma's
        return cap * torch.tanh(logits / cap) if cap else logits

    # Abilities of the network

    @cached_property
    def _window(self) -> int:
        """Number of tokens that every layer sees, in slots of the cache, which has gaps if texts differ in length."""
        named = (getattr(self._config, name, None) for name in ("sliding_window", "attention_chunk_size"))
        return min((limit for limit in named if isinstance(limit, int) and limit > 0), default=2**31)

    @cached_property
    @torch.inference_mode()
    def _shares(self) -> bool:
        """True if texts that continue a cache get the logits that they get by themselves. Tries the body, too."""
        begin = tuple(range(3, 9))
        # A second beginning, which is shorter, leaves a gap in the cache: a network may take its slots for positions.
        texts = [(*begin, 20), (*begin, 9, 10, 11, 22, 23, 24), (*begin, 25, 26), (27, 28, 29, 30), (27, 28, 31)]
        trial = [tuple(token % self._config.vocab_size for token in text) for text in texts]
        tensors = [torch.tensor([text], device=self._network.device) for text in trial]
        logits = [self._network(input_ids=text, attention_mask=torch.ones_like(text)).logits[0] for text in tensors]
        self._runs_body = self._body is not None
        self._runs_body = self._runs_body and self._gives(logits, trial, another=2**31)
        return self._gives(logits, trial, another=0)

    def _gives(self, logits: Sequence[torch.Tensor], texts: Sequence[Tokens], another: int) -> bool:
        """True if passes over these texts give these logits [length, vocabulary]. `another`: as for `shared`."""
        rounding = 1e-4 if self._network.dtype == torch.float32 else 0.05  # bfloat16 has 8 bits
        try:
            for done in self._passes(texts, another):
                for row, piece in enumerate(done.pieces):
                    expected = logits[piece.texts[0]].float()[piece.start : piece.start + len(piece.tokens)]
                    off = self._logits(done.states[row, : len(piece.tokens)]) - expected
                    # Written with `not`, so that NaN counts as a difference.
                    if not off.abs().max() <= rounding * expected.abs().max():
                        return False
        except FAULTS as fault:
            if is_memory_fault(fault):
                raise
            return False
        return True


def chosen_columns(logits: torch.Tensor, tokens: Sequence[int], total: bool) -> torch.Tensor:
    """The columns of these tokens, and if `total` is wanted one with the log of the sum over all tokens."""
    chosen = logits[:, tokens]
    return torch.cat([chosen, logits.logsumexp(-1, keepdim=True)], 1) if total else chosen
