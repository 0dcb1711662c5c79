"""Documents packed into rows of tokens, with what the loss counts and what attention may see.

Documents in one row do not see each other and each counts its positions from 0: training meets a prompt just as the
search puts it, at the start of an otherwise empty context.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from llm_oracle.embedded.corpus import EARLY_SHARES, LATE_SHARES, Corpus, Document, Kind
from llm_oracle.embedded.statements import Statements
from llm_oracle.embedded.tokenizer import BEGIN, END, token_id

ROW_TOKENS = 256
ANSWER_WEIGHT = 8.0
"""What a yes or no counts in the loss; every other learnt token counts 1."""
MISFITS = 6
"""Documents in a row that fit nowhere before a batch is closed."""
LENGTH_SAMPLE = 400
"""Documents of each kind drawn to learn how long they are."""


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """Token ids with the weight that predicting each of them has in the loss (0: it is only read)."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """`ids`, `positions`: rows x tokens; `visible`: rows x 1 x tokens x tokens, true where attention may look.

    `sources` are the flat places whose next token is learnt, `targets` those tokens and `weights` what they count.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    visible: torch.Tensor
    sources: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor


class BatchMaker:
    """Makes the batch of a step from the seed and the step's number alone, so that a resumed run goes on unchanged."""

    def __init__(
        self, corpus: Corpus, tokenizer: Tokenizer, seed: int, rows: int, row_tokens: int = ROW_TOKENS
    ) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        statements = Statements(corpus, lambda text: len(self._ids(text)))
        self._sources = {kind: source for source in (corpus, statements) for kind in source.kinds}
        self._rows, self._row_tokens = rows, row_tokens
        self._begin, self._end = token_id(tokenizer, BEGIN), token_id(tokenizer, END)
        rng = _randomness(f"{seed} lengths")
        lengths = {
            kind: sum(len(self.encoded(source.document(kind, rng)).ids) for _ in range(LENGTH_SAMPLE)) / LENGTH_SAMPLE
            for kind, source in self._sources.items()
        }
        self._early, self._late = (
            {kind: shares[kind] / length for kind, length in lengths.items()} for shares in (EARLY_SHARES, LATE_SHARES)
        )

    def encoded(self, document: Document) -> EncodedDocument:
        prompt = self._ids(document.prompt)
        answer = self._ids(document.answer) + ([self._end] if document.ends else [])
        weight = ANSWER_WEIGHT if document.kind in (Kind.QUESTION, Kind.TYPE_QUESTION) else 1.0
        return EncodedDocument((self._begin, *prompt, *answer), (0.0,) * (1 + len(prompt)) + (weight,) * len(answer))

    def batch(self, step: int, late: bool = False) -> Batch:
        """The batch of a step; `late` chooses the mix for the later part of a run."""
        rng = _randomness(f"{self._seed} step {step}")
        rows: list[list[EncodedDocument]] = [[] for _ in range(self._rows)]
        room = [self._row_tokens] * self._rows
        frequencies = self._late if late else self._early
        misfits = 0
        while misfits < MISFITS:
            kind = rng.choices(list(frequencies), weights=list(frequencies.values()))[0]
            document = self.encoded(self._sources[kind].document(kind, rng))
            # Into the fullest row that has room: rows fill up one after another and little is left over.
            fitting = [row for row in range(self._rows) if room[row] >= len(document.ids)]
            if not fitting:
                misfits += 1
                continue
            row = min(fitting, key=room.__getitem__)
            rows[row].append(document)
            room[row] -= len(document.ids)
        return packed(rows, self._row_tokens)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids) if text else []


def packed(rows: list[list[EncodedDocument]], row_tokens: int) -> Batch:
    """The rows as tensors. Left-over places are a document of their own, from which nothing is learnt."""
    ids: list[list[int]] = []
    positions: list[list[int]] = []
    owners: list[list[int]] = []
    sources: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    for row, documents in enumerate(rows):
        ids.append([token for document in documents for token in document.ids])
        positions.append([place for document in documents for place in range(len(document.ids))])
        owners.append([owner for owner, document in enumerate(documents) for _ in document.ids])
        learnt = [weight for document in documents for weight in document.weights]
        for place, weight in enumerate(learnt):
            if weight:
                sources.append(row * row_tokens + place - 1)
                targets.append(ids[row][place])
                weights.append(weight)
        left = row_tokens - len(ids[row])
        ids[row] += [0] * left
        positions[row] += range(left)
        owners[row] += [-1] * left
    owner = torch.tensor(owners)
    earlier = torch.ones(row_tokens, row_tokens, dtype=torch.bool).tril()
    visible = (owner[:, :, None] == owner[:, None, :]) & earlier
    return Batch(
        torch.tensor(ids),
        torch.tensor(positions),
        visible[:, None],
        torch.tensor(sources),
        torch.tensor(targets),
        torch.tensor(weights),
    )


def _randomness(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311  # reproducible, not secret
