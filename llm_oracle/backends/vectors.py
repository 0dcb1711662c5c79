"""Ranking by word vectors: how closely a text's words belong together, a cheap stand-in for a language model.

Beyond what LINK's paper reports; its released code lets word vectors rank in place of a model, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grammar.errors import HapaxError
from llm_oracle.protocols import LogLikelihood, ModelIdentity

HASHED_BYTES = 1 << 20
"""How much of the file's beginning tells one file from another, beside its size."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class VectorLikelihood:
    """Mean cosine similarity of all pairs of different words of a text, as `per_token`, in [-1, 1].

    That is no log-likelihood, but ranks as one does. A word stands as it is written or else in small letters; words
    without a vector, or with one of zeros, are left out. A text with fewer than two words that have one has no tokens.
    """

    def __init__(self, vectors: Any, identity: ModelIdentity) -> None:
        self._vectors = vectors
        self.identity = identity

    @classmethod
    def from_file(cls, path: str | Path) -> VectorLikelihood:
        """Vectors in word2vec's format, as fastText (`.vec`) and GloVe offer it: text, or binary where named `.bin`.

        Raises HapaxError where the file is not there or holds something else.
        """
        from gensim.models import KeyedVectors

        path = Path(path)
        try:
            vectors = KeyedVectors.load_word2vec_format(str(path), binary=path.suffix == ".bin")
            with path.open("rb") as stream:
                beginning = stream.read(HASHED_BYTES)
        except (OSError, ValueError, EOFError) as fault:
            raise HapaxError(
                f"{path}: no word vectors in word2vec's format ({fault}). The first line of such a file holds the "
                "number of words and of dimensions, as in fastText's `.vec` files."
            ) from None
        digest = hashlib.sha256(beginning + str(path.stat().st_size).encode()).hexdigest()[:16]
        return cls(vectors, ModelIdentity(f"vectors/{path.name}", digest))

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [self._similarity(text) for text in texts]

    def _similarity(self, text: str) -> LogLikelihood:
        """The pairs' sum follows from the length of the sum of all unit vectors."""
        words = dict.fromkeys(known for word in _WORD.findall(text) if (known := self._known(word)) is not None)
        count = len(words)
        if count < 2:
            return LogLikelihood(0.0, 0)
        total = sum(self._vectors.get_vector(word, norm=True).astype("float64") for word in words)
        return LogLikelihood((float(total @ total) - count) / (count - 1), count)

    def _known(self, word: str) -> str | None:
        forms = (form for form in (word, word.lower()) if form in self._vectors)
        return next((form for form in forms if self._vectors.get_vector(form).any()), None)
