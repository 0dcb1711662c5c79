"""The embedded model's tokenizer: byte-level BPE with single digits, and whole phrases of the prompts as tokens.

The fixed phrases of prompts and templates carry no information, so each is a single token: a critic's question is a
dozen tokens instead of fifty, and training sees four times as many facts. Any other text can be tokenized, too, byte by
byte at worst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from hapax.grammar.rules import Library, PredicateKind
from hapax.llm_oracle.prompts import (
    CRITIC_PROMPT,
    VALUES_PER_CALL,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
)
from tools.embedded.corpus import LONGEST_LIST, NO, YES, Corpus

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
