"""Decoding of lists: sampling that does not depend on the batch, and a stop after the last item or in a loop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria

from hapax.llm_oracle.questions.list_requests import BIAS
from hapax.llm_oracle.reading.link_replies import is_entry

LOOP_ITEMS = 5
"""Number of successive repeated items after which a list is taken to loop."""

LOOP_TOKENS, LOOP_PERIOD = 32, 8
"""A line loops if its last 32 tokens repeat a group of at most 8 tokens."""

_LIST_NUMBER = re.compile(r"\W*\d*\W*")


class ListTracker:
    """For each row of a batch: the text of the current line, the number of finished items, and whether it loops.

    `repeated`: items since the last one that no earlier line of the row has.
    """

    def __init__(self, tokenizer: Any, prompt_length: int, rows: int) -> None:
        self._tokenizer = tokenizer
        self._seen = prompt_length
        self._begun = [""] * rows
        self._tokens: list[list[int]] = [[] for _ in range(rows)]
        self.lines = [""] * rows
        self.finished = [0] * rows
        self.repeated = [0] * rows
        self._items: list[set[str]] = [set() for _ in range(rows)]

    def is_looping(self, row: int) -> bool:
        """True if the row only repeats items, or its line only repeats a group of tokens."""
        if self.repeated[row] >= LOOP_ITEMS:
            return True
        last = self._tokens[row][-LOOP_TOKENS:]
        # A text repeats with a period if it is equal to itself shifted by it.
        return len(last) == LOOP_TOKENS and any(last[period:] == last[:-period] for period in range(1, LOOP_PERIOD + 1))

    def update(self, input_ids: torch.Tensor) -> None:
        """Read the columns that are new since the last call."""
        new = input_ids[:, self._seen :].tolist()
        self._seen = input_ids.shape[1]
        for row, tokens in enumerate(new):
            if tokens:
                self._tokens[row].extend(tokens)
                self._read(row)

    def _read(self, row: int) -> None:
        text = self._tokenizer.decode(self._tokens[row], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        *whole, line = (self._begun[row] + text).split("\n")
        if whole:
            for entry in filter(is_entry, whole):
                self._count(row, entry)
            # Finished lines are not decoded again, or the time would grow with the square of the list.
            self._begun[row], self._tokens[row] = line, []
        self.lines[row] = line

    def _count(self, row: int, entry: str) -> None:
        self.finished[row] += 1
        name = _LIST_NUMBER.sub("", entry, count=1).casefold().strip(" .*")
        self.repeated[row] = self.repeated[row] + 1 if name in self._items[row] else 0
        self._items[row].add(name)


class BannedTokens(LogitsProcessor):
    """A bias on a row's tokens, as servers apply `logit_bias`."""

    def __init__(self, banned: Sequence[Sequence[int]]) -> None:
        self._banned = [list(tokens) for tokens in banned]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002  # given by generate
        scores = scores.clone()  # `generate` may still need the original ones
        for row, tokens in enumerate(self._banned):
            scores[row, tokens] += BIAS
        return scores


class SampledByRow(LogitsProcessor):
    """Turns greedy decoding into sampling at a temperature, with a random stream for each row.

    Thus a request's answer does not depend on the other requests in its batch.
    """

    def __init__(self, temperature: float, seeds: Sequence[int], device: torch.device) -> None:
        self._temperature = temperature
        self._streams = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002  # given by generate
        waits = torch.empty_like(scores)
        for row, stream in enumerate(self._streams):
            waits[row].exponential_(generator=stream)
        smallest = torch.finfo(scores.dtype).tiny
        # -log of an exponential variable is Gumbel noise; the argmax of noisy log-probabilities is a sample of them.
        return scores / self._temperature - waits.clamp_min(smallest).log()


class ListEnd(StoppingCriteria):
    """Ends a row when it has all its items, loops or has used up its tokens.

    A small model that knows no more values repeats those that it has until its tokens are used up.

    `counts`: items per row; None if the prompt does not ask for a list. `room`: tokens per row. `ended_at`: tokens that
    each ended row had written; the rest of its output is padding.
    """

    def __init__(self, tracker: ListTracker, counts: Sequence[int | None], room: Sequence[int], start: int) -> None:
        self._tracker = tracker
        self._counts = counts
        self._room = room
        self._start = start
        self.ended_at: list[int | None] = [None] * len(room)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002  # given by generate
        self._tracker.update(input_ids)
        written = input_ids.shape[1] - self._start
        done = [
            written >= room or (count is not None and (finished >= count or self._tracker.is_looping(row)))
            for row, (room, count, finished) in enumerate(
                zip(self._room, self._counts, self._tracker.finished, strict=True)
            )
        ]
        for row, is_done in enumerate(done):
            if is_done and self.ended_at[row] is None:
                self.ended_at[row] = written
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)
