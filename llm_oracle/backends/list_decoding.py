"""Decoding of numbered lists: sampling that a batch cannot disturb, exclusion of whole values, a stop at the last item.

A bias on single tokens would also forbid innocent values that share a token with an excluded one (`butter` and
`buttermilk`), and small models do not obey "Do not generate these values". So exclusion acts on the sequence: where a
list item says exactly an excluded value, it may go on as a longer word or phrase, but it may not end there.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria

from llm_oracle.answers import value_of_line

_ITEM_START = re.compile(r"\s*(?:\(?\d{1,4}[.)]\s*|[-*•]\s+)?[\"'“”‘«`*]*")
_WORD_GOES_ON = frozenset("-'’&")
_LONGER_VALUE_DISCOUNT = math.log(10)
"""Taken from the logit of a token that completes an excluded value: most of its probability belonged to ending there,
and would otherwise go to the first odd continuation that the ban leaves."""


@dataclass(frozen=True)
class TokenTexts:
    """What each token adds to a line, in lower case; made once a tokenizer."""

    texts: tuple[str, ...]
    special: frozenset[int]

    @classmethod
    def of(cls, tokenizer: Any) -> TokenTexts:
        """Each token is decoded behind another one, because tokenizers drop the blank of a first token."""
        anchor = tokenizer("a", add_special_tokens=False).input_ids[:1]
        before = tokenizer.decode(anchor, clean_up_tokenization_spaces=False)
        pairs = [[*anchor, token] for token in range(len(tokenizer))]
        decoded = tokenizer.batch_decode(pairs, clean_up_tokenization_spaces=False)
        texts = tuple(text.removeprefix(before).casefold() for text in decoded)
        return cls(texts, frozenset(tokenizer.all_special_ids))

    @cached_property
    def enders(self) -> list[int]:
        """Tokens that cannot go on with a word: stops, commas, brackets, line ends, end of sequence."""
        return [token for token, text in enumerate(self.texts) if token in self.special or _ends(text)]

    @cached_property
    def _ordered(self) -> tuple[list[str], list[int]]:
        order = sorted(range(len(self.texts)), key=self.texts.__getitem__)
        return [self.texts[token] for token in order], order

    @cached_property
    def _completions(self) -> dict[str, tuple[list[int], list[int]]]:
        return {}

    def completions(self, rest: str) -> tuple[list[int], list[int]]:
        """Tokens that complete a value of which `rest` is missing: those that end it too, and those that may go on."""
        found = self._completions.get(rest)
        if found is None:
            texts, tokens = self._ordered
            first, last = bisect_left(texts, rest), bisect_left(texts, rest + "\U0010ffff")
            ending = [tokens[i] for i in range(first, last) if _ends(texts[i][len(rest) :])]
            exact = [tokens[i] for i in range(first, last) if texts[i] == rest]
            found = self._completions[rest] = (ending, exact)
        return found


def _ends(text: str) -> bool:
    """Whether this text, set behind a whole word, begins with something other than more of a word or phrase."""
    bare = text.lstrip(" ")
    return bool(bare) and not (bare[0].isalnum() or bare[0] in _WORD_GOES_ON)


class ListTracker:
    """Per row of a batch: the text of the line being written and how many items are finished."""

    def __init__(self, tokenizer: Any, prompt_length: int, rows: int) -> None:
        self._tokenizer = tokenizer
        self._seen = prompt_length
        self._begun = [""] * rows
        self._tokens: list[list[int]] = [[] for _ in range(rows)]
        self.lines = [""] * rows
        self.finished = [0] * rows

    def update(self, input_ids: torch.Tensor) -> None:
        """Takes in the columns that are new since the last call."""
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
            self.finished[row] += sum(1 for one in whole if one.strip())
            self._begun[row], self._tokens[row] = line, []
        self.lines[row] = line


class ExcludedValues(LogitsProcessor):
    """Keeps list items from being one of a row's excluded values, in whatever case.

    An item that says a whole excluded value cannot end or be punctuated there. The price: an excluded `St` also hides
    `St. Louis`.
    """

    def __init__(self, tracker: ListTracker, tokens: TokenTexts, excluded: Sequence[Sequence[str]]) -> None:
        self._tracker = tracker
        self._tokens = tokens
        self._excluded = [
            frozenset(" ".join(value.casefold().split()) for value in values if value.strip()) for values in excluded
        ]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._tracker.update(input_ids)
        scores = scores.clone()
        for row, excluded in enumerate(self._excluded):
            if excluded:
                banned, discounted = self._verdict(self._tracker.lines[row], excluded)
                scores[row, discounted] -= _LONGER_VALUE_DISCOUNT
                scores[row, banned] = float("-inf")
        return scores

    def _verdict(self, line: str, excluded: frozenset[str]) -> tuple[list[int], list[int]]:
        """Tokens that this line must not, and should rarely, be followed by."""
        value = value_of_line(line.rstrip() + ".")
        if value is not None and value.casefold() in excluded:
            return self._tokens.enders, []
        match = _ITEM_START.match(line)
        item = line[match.end() :].casefold() if match else line.casefold()
        banned: list[int] = []
        discounted: list[int] = []
        for whole in excluded:
            if whole.startswith(item):
                rest = whole[len(item) :]
                for spelled in (rest, " " + rest) if not item else (rest,):
                    ending, exact = self._tokens.completions(spelled)
                    banned += ending
                    discounted += exact
        return banned, discounted


class BannedTokens(LogitsProcessor):
    """A bias of -100 on a row's tokens, as servers apply `logit_bias`."""

    BIAS = -100.0

    def __init__(self, banned: Sequence[Sequence[int]]) -> None:
        self._banned = [list(tokens) for tokens in banned]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002  # given by generate
        scores = scores.clone()
        for row, tokens in enumerate(self._banned):
            scores[row, tokens] += self.BIAS
        return scores


class SampledByRow(LogitsProcessor):
    """Turns greedy decoding into sampling at a temperature, with a random stream for each row.

    Adding Gumbel noise to log-probabilities and taking the largest is sampling from them. With a stream a row, a
    request's answer does not depend on what else is in its batch.
    """

    def __init__(self, temperature: float, seeds: Sequence[int], device: torch.device) -> None:
        self._temperature = temperature
        self._streams = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002  # given by generate
        waits = torch.empty_like(scores)
        for row, stream in enumerate(self._streams):
            waits[row].exponential_(generator=stream)
        smallest = torch.finfo(scores.dtype).tiny
        return scores / self._temperature - waits.clamp_min(smallest).log()


class ListEnd(StoppingCriteria):
    """Ends a row when it has its items or has used up its room.

    `counts`: items per row, None where the prompt asks for no list; `room`: tokens per row. `ended_at` tells how many
    tokens each ended row had written; what follows in the output is padding.
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
            written >= room or (count is not None and finished >= count)
            for room, count, finished in zip(self._room, self._counts, self._tracker.finished, strict=True)
        ]
        for row, is_done in enumerate(done):
            if is_done and self.ended_at[row] is None:
                self.ended_at[row] = written
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)


def first_items(text: str, count: int | None) -> str | None:
    """The text up to its `count`-th finished item; None if it has not so many or no list was asked for."""
    end = 0
    finished = 0
    for line in text.split("\n")[:-1]:
        if finished == count:
            break
        end += len(line) + 1
        finished += bool(line.strip())
    return text[:end] if finished == count else None
