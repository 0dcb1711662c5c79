"""Likelihood from word frequencies alone: independent of every language model, so it can judge what one has ranked.

It sees how rare the words of a text are and nothing else: neither their order nor whether the text is true.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llm_oracle.protocols import LogLikelihood, ModelIdentity

FLOOR = 1e-9
"""Relative frequency of a word that the list does not know: one in a thousand million, just below its rarest words."""


class FrequencyLikelihood:
    """Sum of ln relative word frequency over all words of a text, by the `wordfreq` list of its language.

    Each word stands alone, so the first one counts too. A text without words has no tokens.
    """

    def __init__(self, language: str = "en") -> None:
        from importlib.metadata import version

        from wordfreq import word_frequency
        from wordfreq.tokens import tokenize

        self._language = language
        self._tokenize = tokenize
        self._word_frequency = word_frequency
        self.identity = ModelIdentity("frequency", f"wordfreq {version('wordfreq')} {language}")

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [self._log_likelihood(text) for text in texts]

    def _log_likelihood(self, text: str) -> LogLikelihood:
        words = self._tokenize(text, self._language)
        frequencies = (self._word_frequency(word, self._language, minimum=FLOOR) for word in words)
        return LogLikelihood(math.fsum(math.log(frequency) for frequency in frequencies), len(words))
