"""Scores of token sequences under a causal network, with little work, and batches that fit into memory.

Equal texts run once, a common beginning of texts runs once and its key-value cache is continued, texts of similar
length run together, and logits are computed only for the positions that are read.

Continuing a cache is tried on a few tokens before it is used. An architecture whose cache is not indexed by positions
is run plainly, with the same results.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

import torch

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.llm_oracle.backends.loading import LoadedModel

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Tokens = tuple[int, ...]

MEMORY_FAULTS = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")
"""Messages of CUDA, torch's processor allocators and cuBLAS when memory runs out."""


@dataclass
class BatchLimit:
    """Maximum weight of a batch. It is reduced when a batch does not fit, and stays reduced."""

    size: int


def in_batches(
    items: Sequence[Item],
    order: Sequence[int],
    weight: Callable[[Item], int],
    room: BatchLimit,
    run: Callable[[Sequence[Item]], Sequence[Answer]],
) -> list[Answer]:
    """Answers to all items, in their order, from batches taken in `order`.

    The weight of a batch is its number of items times the `weight` of its first. A batch that runs out of memory is
    tried again at half the size. Raises HapaxError if a single item does not fit.
    """
    waiting = list(order)
    answers: dict[int, Answer] = {}
    while waiting:
        heaviest = max(1, weight(items[waiting[0]]))
        batch = waiting[: max(1, room.size // heaviest)]
        try:
            done: Sequence[Answer] | None = run([items[position] for position in batch])
        except (RuntimeError, MemoryError) as fault:
            if not is_memory_fault(fault):
                raise
            if len(batch) == 1:
                raise HapaxError(
                    "There is not enough memory for a single request.",
                    Remedy(
                        "Choose a smaller model, {} bfloat16 if it runs in float32, or {} cpu if it runs on a GPU.",
                        Setting("dtype"),
                        Setting("device"),
                    ),
                ) from fault
            done = None
        if done is None:  # outside the except block, so that the failed batch's tensors are free by now
            torch.cuda.empty_cache()
            room.size = len(batch) * heaviest // 2  # of what this batch weighed, which may be less than the room
            continue
        answers.update(zip(batch, done, strict=True))
        waiting = waiting[len(batch) :]
    return [answers[position] for position in range(len(items))]


def distinct_in_batches(
    texts: Sequence[Tokens], room: BatchLimit, run: Callable[[Sequence[Tokens]], Sequence[Answer]]
) -> list[Answer]:
    """Answers to token sequences, in their order. Equal sequences are asked once.

    A batch has at most `room` tokens, with each text counted as long as the longest.
    """
    distinct = list(dict.fromkeys(texts))
    # The longest first, so that a text that does not fit fails at once.
    longest_first = sorted(range(len(distinct)), key=lambda place: -len(distinct[place]))
    answers = dict(zip(distinct, in_batches(distinct, longest_first, len, room, run), strict=True))
    return [answers[text] for text in texts]


def is_memory_fault(fault: BaseException) -> bool:
    """True if an exception says that memory ran out."""
    if isinstance(fault, torch.OutOfMemoryError | MemoryError):
        return True
    # For processors torch raises a plain RuntimeError, which only its message identifies.
    message = str(fault).lower()
    return any(words in message for words in MEMORY_FAULTS)


ROOM = 16_384
"""Tokens of a batch, including padding."""
FAULTS = (AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""Exceptions of an architecture that cannot be run in parts."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Costs of passes on a device.

    `another`: tokens that cost as much as another pass. `widest`: tokens of a pass, including padding, above which each
    token takes longer. `logits`: bytes of the logits of a pass.
    """

    another: int
    widest: int
    logits: int


PROCESSOR = Pace(another=32, widest=2048, logits=2**28)
"""Measured with the embedded model and a Llama of 768 x 12 on one core. A wider pass exceeds the core's caches."""
GPU = Pace(another=1_000, widest=2**31, logits=2**32)
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


ScoredPiece: TypeAlias = tuple[Piece, torch.Tensor, torch.Tensor]
"""A piece, the logits of its tokens [length, vocabulary], and those of the token before it, [1 or 0, vocabulary]."""


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
        self._config = loaded.network.config.get_text_config()
        self._options = inspect.signature(loaded.network.forward).parameters
        self._padding = loaded.padding
        self._pace = PROCESSOR if loaded.device.type == "cpu" else GPU

    def next_logits(self, texts: Sequence[Tokens], tokens: Sequence[int], total: bool = False) -> list[list[float]]:
        """For each text, none of them empty, the logits of these tokens after its end.

        `total`: and the log of the sum over the whole vocabulary.
        """

        @torch.inference_mode()
        def read(batch: Sequence[Tokens]) -> list[list[float]]:
            found: dict[int, list[float]] = {}
            for piece, logits, _ in self._run(batch, last=True):
                # The rest of a text comes after its beginning.
                found.update(dict.fromkeys(piece.texts, chosen_columns(logits, tokens, total)[0].tolist()))
            return [found[place] for place in range(len(batch))]

        return distinct_in_batches(texts, self.room, read)

    def log_likelihoods(self, texts: Sequence[Tokens], lead: int = 1) -> list[tuple[float, ...]]:
        """For each text, longer than `lead` tokens, ln P of each of its tokens after the first `lead` (1 or more)."""

        @torch.inference_mode()
        def read(batch: Sequence[Tokens]) -> list[tuple[float, ...]]:
            scores: list[list[float]] = [[] for _ in batch]
            for piece, logits, before in self._run(batch):
                predicting = torch.cat([before, logits[:-1]])
                targets = piece.tokens[len(piece.tokens) - len(predicting) :]
                unscored = max(0, lead - (piece.start + len(piece.tokens) - len(targets)))
                chosen = predicting[range(len(targets)), targets] - predicting.logsumexp(-1)
                for place in piece.texts:
                    scores[place] += chosen[unscored:].tolist()
            return list(map(tuple, scores))

        return distinct_in_batches(texts, self.room, read)

    def _run(self, texts: Sequence[Tokens], last: bool = False, another: int | None = None) -> Iterator[ScoredPiece]:
        """All pieces of these texts, beginnings first, with their logits. `last`: those of the last token alone.

        `another`: as for `shared`, for a trial.
        """
        beginnings, pieces = shared(texts, self._pace.another if another is None else another)
        slots = max(piece.start for piece in pieces) + max(len(piece.tokens) for piece in pieces)
        # In the cache all beginnings are as wide as the longest of them.
        if slots > self._window or (another is None and not self._shares):
            beginnings, pieces = [], [Piece((place,), text) for place, text in enumerate(texts)]
        for batch in self._by_length([piece for piece in pieces if not piece.start]):
            yield from self._pass(batch, last)[0]
        if beginnings:
            scored, cache = self._pass(beginnings, last)
            yield from scored
            ends = torch.stack([logits[-1:] for _, logits, _ in scored])
            for batch in self._by_length([piece for piece in pieces if piece.start]):
                yield from self._pass(batch, last, (cache, beginnings, ends))[0]

    def _by_length(self, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
        """Batches of similar length, longest first. A batch ends when its padding would cost more than another pass."""
        widest = min(self._pace.widest, self._pace.logits // (self._config.vocab_size * self._network.dtype.itemsize))
        batch: list[Piece] = []
        padding = 0
        for piece in sorted(pieces, key=lambda piece: -len(piece.tokens)):
            # Longest first, so the first piece of a batch sets its width.
            width = len((batch or [piece])[0].tokens)
            padding += width - len(piece.tokens)
            if batch and (padding > self._pace.another or (len(batch) + 1) * width > widest):
                yield batch
                batch, padding = [], 0
            batch.append(piece)
        if batch:
            yield batch

    def _pass(
        self, pieces: Sequence[Piece], last: bool, begun: tuple[Any, Sequence[Piece], torch.Tensor] | None = None
    ) -> tuple[list[ScoredPiece], Any]:
        """One pass of the network, and its cache. `begun`: the cache, pieces and last logits that these continue."""
        device = self._network.device
        width = max(len(piece.tokens) for piece in pieces)
        padded = [[*piece.tokens, *[self._padding] * (width - len(piece.tokens))] for piece in pieces]
        lengths = torch.tensor([len(piece.tokens) for piece in pieces], device=device)[:, None]
        slots = torch.arange(width, device=device)[None]
        mask = (slots < lengths).long()
        inputs: dict[str, Any] = {"input_ids": torch.tensor(padded, device=device), "attention_mask": mask}
        keeps = len(pieces[0].texts) > 1  # a beginning
        before = [torch.empty(0, self._config.vocab_size, device=device)] * len(pieces)
        if begun is not None:
            cache, beginnings, ends = begun
            cache, seen = _continued(cache, beginnings, pieces, device)
            inputs |= {"attention_mask": torch.cat([seen, mask], 1), "past_key_values": cache}
            before = [ends[piece.parent] for piece in pieces]
        if begun is not None or keeps:
            starts = torch.tensor([piece.start for piece in pieces], device=device)[:, None]
            # Padding repeats the last position: one more might lie outside a table of positions.
            inputs |= {"position_ids": starts + torch.minimum(slots, lengths - 1), "use_cache": True}
        elif "use_cache" in self._options:
            inputs["use_cache"] = False
        # Of each piece all positions, or its last one, computed for all pieces that have one there.
        kept = sorted({len(piece.tokens) - 1 for piece in pieces}) if last else list(range(width))
        if last and "logits_to_keep" in self._options:
            inputs["logits_to_keep"] = torch.tensor(kept, device=device)
        output = self._network(**inputs)
        if output.logits.shape[1] != len(kept):
            kept = list(range(width))
        scored = []
        for row, (piece, end) in enumerate(zip(pieces, before, strict=True)):
            place = kept.index(len(piece.tokens) - 1)
            scored.append((piece, output.logits[row, place if last else 0 : place + 1].float(), end))
        return scored, getattr(output, "past_key_values", None)

    # Abilities of the network

    @cached_property
    def _window(self) -> int:
        """Number of tokens that every layer sees, in slots of the cache, which has gaps if texts differ in length."""
        named = (getattr(self._config, name, None) for name in ("sliding_window", "attention_chunk_size"))
        return min((limit for limit in named if isinstance(limit, int) and limit > 0), default=2**31)

    @cached_property
    @torch.inference_mode()
    def _shares(self) -> bool:
        """True if texts that continue a cache get the logits that they get by themselves."""
        begin = tuple(range(3, 9))
        # A second beginning, which is shorter, leaves a gap in the cache: a network may take its slots for positions.
        texts = [(*begin, 20), (*begin, 9, 10, 11, 22, 23, 24), (*begin, 25, 26), (27, 28, 29, 30), (27, 28, 31)]
        trial = [tuple(token % self._config.vocab_size for token in text) for text in texts]
        tensors = [torch.tensor([text], device=self._network.device) for text in trial]
        plain = [self._network(input_ids=text, attention_mask=torch.ones_like(text)).logits[0] for text in tensors]
        rounding = 1e-4 if self._network.dtype == torch.float32 else 0.05  # bfloat16 has 8 bits
        try:
            for piece, logits, _ in self._run(trial, another=0):
                expected = plain[piece.texts[0]].float()[piece.start : piece.start + len(piece.tokens)]
                # Written with `not`, so that NaN counts as a difference.
                if not (logits - expected).abs().max() <= rounding * expected.abs().max():
                    return False
        except FAULTS as fault:
            if is_memory_fault(fault):
                raise
            return False
        return True


def _continued(
    cache: Any, beginnings: Sequence[Piece], pieces: Sequence[Piece], device: torch.device
) -> tuple[Any, torch.Tensor]:
    """A copy of the cache of beginnings with the row that each piece continues, and the mask of its slots."""
    starts = [piece.start for piece in pieces]
    # Shallow copies suffice: cropping and selecting replace the layers' tensors and do not write into them.
    copied = copy.copy(cache)
    copied.layers = [copy.copy(layer) for layer in cache.layers]
    # Negative: `crop` removes so many slots from the end.
    copied.crop(max(starts) - max(len(beginning.tokens) for beginning in beginnings))
    copied.batch_select_indices(torch.tensor([piece.parent for piece in pieces], device=device))
    mask = torch.arange(max(starts), device=device) < torch.tensor(starts, device=device)[:, None]
    return copied, mask.long()


def chosen_columns(logits: torch.Tensor, tokens: Sequence[int], total: bool) -> torch.Tensor:
    """The columns of these tokens, and if `total` is wanted one with the log of the sum over all tokens."""
    chosen = logits[:, tokens]
    return torch.cat([chosen, logits.logsumexp(-1, keepdim=True)], 1) if total else chosen
