"""Batches that fit the memory: cut by what they weigh, and halved, for good, where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from grammar.errors import HapaxError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Text = TypeVar("Text", bound=tuple[int, ...])

MEMORY_FAULTS = ("out of memory", "not enough memory", "can't allocate memory", "alloc_failed")
"""How CUDA, torch's allocators for the processor, and cuBLAS say that memory ran out."""


@dataclass
class Room:
    """What a batch may weigh. It shrinks when a batch did not fit, and stays so."""

    size: int


def in_batches(
    items: Sequence[Item],
    order: Sequence[int],
    weight: Callable[[Item], int],
    room: Room,
    run: Callable[[Sequence[Item]], Sequence[Answer]],
) -> list[Answer]:
    """The answers to all items, in their order, from batches taken in `order`.

    A batch weighs its number of items times the `weight` of its first. One that runs out of memory is tried again in
    half the room. Raises HapaxError where a single item does not fit.
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
                    "There is too little memory for a single request. Choose a smaller model, --dtype bfloat16 "
                    "if it runs in float32, or --device cpu if it runs on a GPU."
                ) from fault
            done = None
        if done is None:  # outside the except block, so that the failed batch's tensors are free by now
            torch.cuda.empty_cache()
            room.size = len(batch) * heaviest // 2
            continue
        answers.update(zip(batch, done, strict=True))
        waiting = waiting[len(batch) :]
    return [answers[position] for position in range(len(items))]


def distinct_in_batches(
    texts: Sequence[Text], room: Room, run: Callable[[Sequence[Text]], Sequence[Answer]]
) -> list[Answer]:
    """The answers to token sequences, in their order. Equal ones are asked once, the longest first.

    So what does not fit shows at once. A batch has at most `room` tokens, each text counted as long as the longest.
    """
    distinct = list(dict.fromkeys(texts))
    longest_first = sorted(range(len(distinct)), key=lambda place: -len(distinct[place]))
    answers = dict(zip(distinct, in_batches(distinct, longest_first, len, room, run), strict=True))
    return [answers[text] for text in texts]


def is_memory_fault(fault: BaseException) -> bool:
    """Whether an exception says that memory ran out: a class for GPUs, words for processors."""
    said = str(fault).lower()
    return isinstance(fault, torch.OutOfMemoryError | MemoryError) or any(words in said for words in MEMORY_FAULTS)
