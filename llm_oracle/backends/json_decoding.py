"""Constrained decoding: a row is held to `{"values": ["...", "..."]}`, with a limited number of texts.

A small automaton reads the object character by character. For each of its states, every token of the vocabulary either
leads to another state or is not permitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor

OPENING = '{"values": ['
"""Beginning of the object. The states 0 to its length wait for its characters; the last one is after the bracket."""

FIRST = len(OPENING)
TEXT, ESCAPED, AFTER_TEXT, AFTER_COMMA, AFTER_BLANK, CLOSED, DONE = range(FIRST + 1, FIRST + 8)
REFUSED = -1

LONGEST_TEXT = 24
"""Tokens of a text, after which it has to end. A value has at most 64 characters."""

_ESCAPES = frozenset('"\\/bfnrt')


def advance(state: int, character: str) -> int:
    """The state after a character; REFUSED if it is not permitted."""
    if state < FIRST:
        return state + 1 if character == OPENING[state] else REFUSED
    if state == TEXT:
        if character == '"':
            return AFTER_TEXT
        return ESCAPED if character == "\\" else TEXT if character.isprintable() or character == "\ufffd" else REFUSED
    if state == ESCAPED:
        return TEXT if character in _ESCAPES else REFUSED
    return _TRANSITIONS.get((state, character), REFUSED)


_TRANSITIONS = {
    (FIRST, '"'): TEXT,
    (FIRST, "]"): CLOSED,
    (AFTER_TEXT, ","): AFTER_COMMA,
    (AFTER_TEXT, "]"): CLOSED,
    (AFTER_COMMA, " "): AFTER_BLANK,
    (AFTER_COMMA, '"'): TEXT,
    (AFTER_BLANK, '"'): TEXT,
    (CLOSED, "}"): DONE,
}


class JsonTokens:
    """The effect of every token in every state, worked out when a state first occurs."""

    def __init__(self, tokenizer: Any, ends: Sequence[int]) -> None:
        # Decoded after a letter, because tokenizers drop a blank at the beginning of a text.
        anchor = tokenizer("a", add_special_tokens=False).input_ids
        size = len(tokenizer)
        decoded = tokenizer.batch_decode(
            [[*anchor, token] for token in range(size)], clean_up_tokenization_spaces=False
        )
        before = len(tokenizer.decode(anchor, clean_up_tokenization_spaces=False))
        special = set(tokenizer.all_special_ids)
        self._texts = ["" if token in special else text[before:] for token, text in enumerate(decoded)]
        self.ends = [end for end in ends if end < size]
        self._effects: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def effects(self, state: int) -> tuple[torch.Tensor, torch.Tensor]:
        """For each token the state that it leads to, and the number of texts that it ends with a comma."""
        if state not in self._effects:
            walked = [self._walk(state, text) for text in self._texts]
            if state == DONE:
                for end in self.ends:
                    walked[end] = (DONE, 0)
            self._effects[state] = (
                torch.tensor([after for after, _ in walked]),
                torch.tensor([commas for _, commas in walked]),
            )
        return self._effects[state]

    @staticmethod
    def _walk(state: int, text: str) -> tuple[int, int]:
        commas = 0
        for character in text:
            state = advance(state, character)
            if state == REFUSED:
                return REFUSED, 0
            commas += state == AFTER_COMMA
        return (state, commas) if text else (REFUSED, 0)


class JsonValues(LogitsProcessor):
    """Permits only tokens that go on with the object. `counts`: most texts by row; None: a row of any form."""

    def __init__(self, tokens: JsonTokens, counts: Sequence[int | None]) -> None:
        self._tokens = tokens
        self._counts = counts
        self._states = [0] * len(counts)
        self._commas = [0] * len(counts)
        self._lengths = [0] * len(counts)
        self._seen: int | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if self._seen is not None:
            # One column for each step of decoding, a token of each row in it.
            for token_column in input_ids[:, self._seen :].T.tolist():
                self._read(token_column)
        self._seen = input_ids.shape[1]
        scores = scores.clone()  # `generate` may still need the original ones
        for row, count in enumerate(self._counts):
            if count is not None:
                allowed = self._permitted(row, count).to(scores.device)
                # The network may have more outputs than the tokenizer has tokens.
                scores[row, : len(allowed)].masked_fill_(~allowed, float("-inf"))
                scores[row, len(allowed) :] = float("-inf")
        return scores

    def _read(self, tokens: Sequence[int]) -> None:
        """Take one new token of each row."""
        for row, token in enumerate(tokens):
            if self._counts[row] is None:
                continue
            after, commas = self._tokens.effects(self._states[row])
            state = int(after[token]) if token < len(after) else REFUSED
            if state == REFUSED:  # padding behind the end of the row
                continue
            inside = self._states[row] == TEXT and state == TEXT
            self._lengths[row] = self._lengths[row] + 1 if inside else 0
            self._states[row] = state
            self._commas[row] += int(commas[token])

    def _permitted(self, row: int, count: int) -> torch.Tensor:
        state = self._states[row]
        after, commas = self._tokens.effects(state)
        allowed = (after != REFUSED) & (self._commas[row] + commas < count)
        if state == TEXT and self._lengths[row] >= LONGEST_TEXT:
            ending = allowed & (after != TEXT) & (after != ESCAPED)
            allowed = ending if bool(ending.any()) else allowed
        # A vocabulary without a needed token, or a network without an end token: anything is better than nothing.
        return allowed if bool(allowed.any()) else torch.ones_like(allowed)
