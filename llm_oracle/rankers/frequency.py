"""Likelihood from word frequencies alone: independent of every language model, so it can evaluate a model's ranking.

It depends only on how rare the words of a text are, neither on their order nor on the truth of the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hapax.llm_oracle.backend import SCORING_ROLES, Backend
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity, SpannedText
from hapax.llm_oracle.rankers.word_frequency import word_frequencies

# Its revision names the score of a span, so that no span's score of an earlier version is taken from a journal.
IDENTITY = ModelIdentity("frequency", "wordfreq 3.1.1 words, names by root of words")


class FrequencyLikelihood:
    """Sum of ln relative word frequency over all words of a text, by the shipped table.

    Words are independent, so the first one counts too. A text without words has no tokens.
    """

    words_are_independent = True
    """So it has no pointwise mutual information, `Measure.PAIR`."""

    identity = IDENTITY

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        scores: list[LogLikelihood] = []
        for text in texts:
            frequencies = word_frequencies(text)
            scores.append(LogLikelihood(math.fsum(map(math.log, frequencies)), len(frequencies)))
        return scores

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        """A span has the score that it would have alone: the sum over its words, divided by the root of their number.

        The words of a name go together, so the name is likelier than their sum says. By the sum, long names of common
        words pass for rare ones (docs/papers/long_tail.md compares the two).
        """
        wholes = self.log_likelihoods([text.text for text in texts])
        scores = []
        for text, whole in zip(texts, wholes, strict=True):
            parts = self.log_likelihoods([text.text[start:end] for start, end in text.spans])
            # A span without words has the score 0.
            spans = tuple((part.total / math.sqrt(part.token_count or 1), part.token_count) for part in parts)
            scores.append(replace(whole, spans=spans))
        return scores


BACKEND = Backend(
    open=lambda request: request.once(FrequencyLikelihood),
    roles=SCORING_ROLES,
    abilities="mean log word frequency; independent of every language model",
    price=FREE,
)
