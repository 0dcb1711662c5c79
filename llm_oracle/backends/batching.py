"""Batches that fit into memory: limited by weight, and permanently halved when memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Text = TypeVar("Text", bound=tuple[int, ...])

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
    texts: Sequence[Text], room: BatchLimit, run: Callable[[Sequence[Text]], Sequence[Answer]]
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
