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


class ListEnd(StoppingCriteria):
    """Ends a row when it has all its items, loops or has used up its tokens.

    A small model that knows no more values repeats those that it has until its tokens are used up.

    `start`: length of the prompts. `counts`: items per row; None if the prompt does not ask for a list. `room`: tokens
    per row. `ended_at`: tokens that each ended row had written; the rest of its output is padding.
    """

    def __init__(self, tokenizer: Any, start: int, counts: Sequence[int | None], room: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._start = self._seen = start
        self._counts = counts
        self._room = room
        # Of each row the text of its last line, without the tokens after it, and its finished items; `repeated`: those
        # since the last one that no earlier line of the row has.
        self._begun = [""] * len(room)
        self._tokens: list[list[int]] = [[] for _ in room]
        self._finished = [0] * len(room)
        self._repeated = [0] * len(room)
        self._items: list[set[str]] = [set() for _ in room]
        self.ended_at: list[int | None] = [None] * len(room)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002  # given by generate
        written = input_ids.shape[1] - self._start
        done = []
        for row, tokens in enumerate(input_ids[:, self._seen :].tolist()):
            self._read(row, tokens)
            count = self._counts[row]
            is_whole = count is not None and (self._finished[row] >= count or self._is_looping(row))
            done.append(is_whole or written >= self._room[row])
            if done[row] and self.ended_at[row] is None:
                self.ended_at[row] = written
        self._seen = input_ids.shape[1]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)

    def _is_looping(self, row: int) -> bool:
        """True if the row only repeats items, or its line only repeats a group of tokens."""
        last = self._tokens[row][-LOOP_TOKENS:]
        # A text repeats with a period if it is equal to itself shifted by it.
        periods = range(1, LOOP_PERIOD + 1) if len(last) == LOOP_TOKENS else ()
        return self._repeated[row] >= LOOP_ITEMS or any(last[period:] == last[:-period] for period in periods)

    def _read(self, row: int, tokens: Sequence[int]) -> None:
        """Take the new tokens of a row."""
        self._tokens[row].extend(tokens)
        text = self._tokenizer.decode(self._tokens[row], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        *whole, line = (self._begun[row] + text).split("\n")
        for entry in filter(is_entry, whole):
            self._finished[row] += 1
            name = _LIST_NUMBER.sub("", entry, count=1).casefold().strip(" .*")
            self._repeated[row] = self._repeated[row] + 1 if name in self._items[row] else 0
            self._items[row].add(name)
        if whole:
            # Finished lines are not decoded again, or the time would grow with the square of the list.
            self._begun[row], self._tokens[row] = line, []


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
    """Turns greedy decoding into sampling, with a random stream for each row.

    Thus a request's answer does not depend on the other requests in its batch.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self._streams = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002  # given by generate
        waits = torch.empty_like(scores)
        for row, stream in enumerate(self._streams):
            waits[row].exponential_(generator=stream)
        smallest = torch.finfo(scores.dtype).tiny
        # -log of an exponential variable is Gumbel noise; the argmax of noisy log-probabilities is a sample of them.
        return scores - waits.clamp_min(smallest).log()


OPENING = '{"values": ['
"""Beginning of the object. The states 0 to its length wait for its characters; the last one is after the bracket."""

FIRST = len(OPENING)
TEXT, ESCAPED, AFTER_TEXT, AFTER_COMMA, AFTER_BLANK, CLOSED, DONE = range(FIRST + 1, FIRST + 8)
REFUSED = -1

LONGEST_TEXT = 24
"""Tokens of a text, after which it has to end. A value has at most 64 characters."""

_TRANSITIONS = {
    **{(state, character): state + 1 for state, character in enumerate(OPENING)},
    (FIRST, '"'): TEXT,
    (FIRST, "]"): CLOSED,
    (TEXT, '"'): AFTER_TEXT,
    (TEXT, "\\"): ESCAPED,
    **{(ESCAPED, character): TEXT for character in '"\\/bfnrt'},
    (AFTER_TEXT, ","): AFTER_COMMA,
    (AFTER_TEXT, "]"): CLOSED,
    (AFTER_COMMA, " "): AFTER_BLANK,
    (AFTER_COMMA, '"'): TEXT,
    (AFTER_BLANK, '"'): TEXT,
    (CLOSED, "}"): DONE,
}


def _walk(state: int, text: str) -> tuple[int, int]:
    """The state after a token, or REFUSED, and the number of texts that it ends with a comma."""
    commas = 0
    for character in text:
        is_plain = state == TEXT and character not in '"\\' and (character.isprintable() or character == "\ufffd")
        state = TEXT if is_plain else _TRANSITIONS.get((state, character), REFUSED)
        commas += state == AFTER_COMMA
        if state == REFUSED:
            return REFUSED, 0
    return (state, commas) if text else (REFUSED, 0)


class JsonTokens:
    """The effect of every token in every state, worked out when a state first occurs."""

    def __init__(self, tokenizer: Any, ends: Sequence[int]) -> None:
        # Decoded after a letter, because tokenizers drop a blank at the beginning of a text.
        anchor = tokenizer("a", add_special_tokens=False).input_ids
        after_anchor = [[*anchor, token] for token in range(len(tokenizer))]
        decoded = tokenizer.batch_decode(after_anchor, clean_up_tokenization_spaces=False)
        before = len(tokenizer.decode(anchor, clean_up_tokenization_spaces=False))
        special = set(tokenizer.all_special_ids)
        self._texts = ["" if token in special else text[before:] for token, text in enumerate(decoded)]
        self._ends = [end for end in ends if end < len(decoded)]
        self._effects: dict[int, torch.Tensor] = {}

    def effects(self, state: int) -> torch.Tensor:
        """For each token the state that it leads to, and the number of texts that it ends with a comma: [2, tokens]."""
        if state not in self._effects:
            walked = [_walk(state, text) for text in self._texts]
            for end in self._ends if state == DONE else ():
                walked[end] = (DONE, 0)
            self._effects[state] = torch.tensor(walked).T
        return self._effects[state]


class JsonValues(LogitsProcessor):
    """Permits only tokens that go on with the object. `counts`: most texts by row; None: a row of any form."""

    def __init__(self, tokens: JsonTokens, counts: Sequence[int | None]) -> None:
        self._tokens = tokens
        self._counts = counts
        # Of each row its state, the texts that a comma ended, and the tokens of the open text.
        self._rows = [(0, 0, 0)] * len(counts)
        self._seen: int | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        # One column for each step of decoding, a token of each row in it.
        for column in [] if self._seen is None else input_ids[:, self._seen :].T.tolist():
            self._rows = [self._after(*row, token) for row, token in zip(self._rows, column, strict=True)]
        self._seen = input_ids.shape[1]
        scores = scores.clone()  # `generate` may still need the original ones
        for number, (count, row) in enumerate(zip(self._counts, self._rows, strict=True)):
            if count is not None:
                allowed = self._permitted(*row, count).to(scores.device)
                # The network may have more outputs than the tokenizer has tokens.
                scores[number, : len(allowed)].masked_fill_(~allowed, float("-inf"))
                scores[number, len(allowed) :] = float("-inf")
        return scores

    def _after(self, state: int, commas: int, length: int, token: int) -> tuple[int, int, int]:
        """State, commas and length of a row after one more token; unchanged by padding after its end."""
        effects = self._tokens.effects(state)
        after, more = effects[:, token].tolist() if token < effects.shape[1] else (REFUSED, 0)
        if after == REFUSED:
            return state, commas, length
        return after, commas + more, length + 1 if state == after == TEXT else 0

    def _permitted(self, state: int, commas: int, length: int, count: int) -> torch.Tensor:
        after, more = self._tokens.effects(state)
        allowed = (after != REFUSED) & (commas + more < count)
        if state == TEXT and length >= LONGEST_TEXT:
            ending = allowed & (after != TEXT) & (after != ESCAPED)
            allowed = ending if bool(ending.any()) else allowed
        # A vocabulary without a needed token, or a network without an end token: anything is better than nothing.
        return allowed if bool(allowed.any()) else torch.ones_like(allowed)
