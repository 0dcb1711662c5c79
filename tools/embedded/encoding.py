"""The embedded model's tokenizer: byte-level BPE with single digits, and whole phrases of the prompts as tokens.

The fixed phrases of prompts and templates carry no information, so each is a single token: a critic's question is a
dozen tokens instead of fifty, and training sees four times as many facts. Any other text can be tokenized, too, byte by
byte at worst.

Documents are packed into rows of tokens. Documents in a row do not see each other, and the positions of each begin at
0: in training a prompt is at the start of an otherwise empty context, as in a search.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.rules import Library
from hapax.llm_oracle.questions.prompts import (
    CRITIC_PROMPT,
    VALUES_PER_CALL,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
)
from tools.embedded.corpus import (
    EARLY_SHARES,
    LATE_SHARES,
    LONGEST_LIST,
    NO,
    YES,
    Corpus,
    Document,
    DocumentKind,
    StatementSampler,
)

BEGIN, END, PADDING = "<|begin|>", "<|end|>", "<|pad|>"
VOCABULARY_SIZE = 6144
ANSWER_REPEATS = 500
"""Number of times that the critic's two answers are in the training text: enough to make each a single token."""
TYPE_REPEATS = 20
"""The same for the words of type names, which are in all list prompts."""

_SLOT = re.compile(r"\[[12]\]")


def build_tokenizer(corpus: Corpus, vocabulary_size: int = VOCABULARY_SIZE) -> Tokenizer:
    """A tokenizer for the corpus, trained on each name and word once.

    Without weights by popularity, popular names do not get fewer tokens: only the likelihood is to reflect popularity.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    frames = phrases(corpus)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - len(frames),  # the phrases are added after the training
        special_tokens=[BEGIN, END, PADDING],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_listing(corpus), trainer)
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in frames])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, token_id(tokenizer, BEGIN))]
    )
    return tokenizer


def token_id(tokenizer: Tokenizer, text: str) -> int:
    """The id of a text that is a single token. Raises ValueError for any other text."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if len(ids) != 1:
        raise ValueError(f"{text!r} is {len(ids)} tokens")
    return int(ids[0])


def phrases(corpus: Corpus) -> list[str]:
    """The fixed phrases of prompts and templates and the numbering of lists; no phrase ends in a blank."""
    found = CRITIC_PROMPT.split("{claim}")
    # No prompt contains a NUL, so it can mark the slots.
    for prompt in (knowledge_prompt("\0", "\0", "\0"), functional_prompt("\0", "\0", "\0")):
        found += prompt.split("\0")[:3]
    found.append(exclusion_clause(("\0",)).partition("\0")[0])
    found += [f"\n{place}." for place in range(1, max(VALUES_PER_CALL, LONGEST_LIST) + 1)]
    found += [wording.middle for wording in corpus.wording.predicates.values()]
    found += _statement_frames(corpus.wording.library)
    return list(dict.fromkeys(phrase.rstrip(" ") for phrase in found if len(phrase.strip()) > 1))


def _statement_frames(library: Library) -> Iterator[str]:
    """The phrases of more than a word around the names in statements of rules."""
    used = {literal.atom.indicator for rule in library.rules for literal in (*rule.literals, rule.conclusion)}
    for signature in library.signatures:
        if signature.kind is PredicateKind.GIVEN and signature.templates and signature.indicator in used:
            pieces = (piece.rstrip() for piece in _SLOT.split(signature.templates.affirmative))
            yield from (piece for piece in pieces if " " in piece.strip())
    yield from ("If PersonX", ", then PersonX")


def _listing(corpus: Corpus) -> Iterator[str]:
    names = [name for data_type in corpus.atlas.types for name in corpus.atlas.entities(data_type)]
    for name in dict.fromkeys(names):
        # At the start of a sentence, inside a sentence, and after the quotation mark of a prompt.
        yield name[:1].upper() + name[1:]
        yield f" {name}"
        yield name
    for wording in corpus.wording.predicates.values():
        yield f" {_SLOT.sub('', wording.template)}"
        for types in wording.data_types:
            yield from (f" is a {data_type.lower()}." for data_type in types for _ in range(TYPE_REPEATS))
    for _ in range(ANSWER_REPEATS):
        yield from (YES, NO, " is", " an", " a", " the", " The", " where", " and")


ROW_TOKENS = 256
ANSWER_WEIGHT = 8.0
"""Weight of a yes or no in the loss; any other learnt token has weight 1."""
MISFITS = 6
"""Number of successive documents that fit into no row, after which a batch is closed."""
LENGTH_SAMPLE = 400
"""Number of documents of each kind drawn to estimate their mean length."""


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """Token ids, with the weight of predicting each of them in the loss (0: the token is only read)."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The tensors of a training step.

    `ids` and `positions`: rows x tokens. `visible`: rows x 1 x tokens x tokens, true where attention may look.
    `sources`: flat places whose next token is learnt; `targets`: these tokens; `weights`: their weights in the loss.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    visible: torch.Tensor
    sources: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor


class BatchMaker:
    """Makes the batch of a step from the seed and the step number alone, so that a resumed run continues unchanged."""

    def __init__(
        self, corpus: Corpus, tokenizer: Tokenizer, seed: int, rows: int, row_tokens: int = ROW_TOKENS
    ) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        statements = StatementSampler(corpus, lambda text: len(self._ids(text)))
        self._sources = {kind: source for source in (corpus, statements) for kind in source.kinds}
        self._rows, self._row_tokens = rows, row_tokens
        self._begin, self._end = token_id(tokenizer, BEGIN), token_id(tokenizer, END)
        rng = _randomness(f"{seed} lengths")
        lengths = {}
        for kind, source in self._sources.items():
            total = sum(len(self.encoded(source.document(kind, rng)).ids) for _ in range(LENGTH_SAMPLE))
            lengths[kind] = total / LENGTH_SAMPLE
        # Shares are of tokens, draws are of documents.
        self._early = {kind: EARLY_SHARES[kind] / length for kind, length in lengths.items()}
        self._late = {kind: LATE_SHARES[kind] / length for kind, length in lengths.items()}

    def encoded(self, document: Document) -> EncodedDocument:
        prompt = self._ids(document.prompt)
        answer = self._ids(document.answer) + ([self._end] if document.ends else [])
        weight = ANSWER_WEIGHT if document.kind in (DocumentKind.QUESTION, DocumentKind.TYPE_QUESTION) else 1.0
        return EncodedDocument((self._begin, *prompt, *answer), (0.0,) * (1 + len(prompt)) + (weight,) * len(answer))

    def batch(self, step: int, late: bool = False) -> Batch:
        """The batch of a step; `late` selects the mix of documents for the later part of a run."""
        rng = _randomness(f"{self._seed} step {step}")
        rows: list[list[EncodedDocument]] = [[] for _ in range(self._rows)]
        room = [self._row_tokens] * self._rows
        frequencies = self._late if late else self._early
        misfits = 0
        while misfits < MISFITS:
            kind = rng.choices(list(frequencies), weights=list(frequencies.values()))[0]
            document = self.encoded(self._sources[kind].document(kind, rng))
            # Into the fullest row with room: rows fill up one after another, and little space is left over.
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
    """The rows as tensors. Padding is a document of its own, from which nothing is learnt."""
    ids: list[list[int]] = []
    positions: list[list[int]] = []
    owners: list[list[int]] = []
    sources: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    for row, documents in enumerate(rows):
        row_ids, row_positions, row_owners, learnt = list[int](), list[int](), list[int](), list[float]()
        for number, document in enumerate(documents):
            row_ids += document.ids
            row_positions += range(len(document.ids))
            row_owners += [number] * len(document.ids)
            learnt += document.weights
        for place, weight in enumerate(learnt):
            if weight:
                sources.append(row * row_tokens + place - 1)  # the token before predicts it
                targets.append(row_ids[place])
                weights.append(weight)
        left = row_tokens - len(row_ids)
        ids.append(row_ids + [0] * left)
        positions.append([*row_positions, *range(left)])
        owners.append(row_owners + [-1] * left)
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
