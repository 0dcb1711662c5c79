"""Ranking by the similarity of a text's word vectors, a cheap substitute for a language model.

LINK's paper does not report this, but its released code can rank by word vectors, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import SCORING_ROLES, Backend
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity

HASHED_BYTES = 1 << 20
"""Bytes at the beginning of the file that identify it, together with its size: hashing all of it takes too long."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class VectorLikelihood:
    """Mean cosine similarity of all pairs of different words of a text, as `per_token`, in [-1, 1].

    That is not a log-likelihood, but ranks like one. A word is looked up as written, then in lower case; words without
    a vector, or with a zero vector, are left out. A text with fewer than two remaining words has no tokens.
    """

    def __init__(self, vectors: Any, identity: ModelIdentity) -> None:
        self._vectors = vectors
        self.identity = identity

    @classmethod
    def from_file(cls, path: str | Path) -> VectorLikelihood:
        """Vectors in word2vec's format, as fastText (`.vec`) and GloVe offer it: text, or binary where named `.bin`.

        Raises HapaxError if the file is missing or in another format.
        """
        from gensim.models import KeyedVectors

        path = Path(path)
        try:
            vectors = KeyedVectors.load_word2vec_format(str(path), binary=path.suffix == ".bin")
            with path.open("rb") as stream:
                beginning = stream.read(HASHED_BYTES)
        except (OSError, ValueError, EOFError) as fault:
            raise HapaxError(
                f"{path}: not word vectors in word2vec's format ({fault}). Give a file whose first line "
                "holds the numbers of words and dimensions, such as fastText's `.vec` files."
            ) from None
        digest = hashlib.sha256(beginning + str(path.stat().st_size).encode()).hexdigest()[:16]
        return cls(vectors, ModelIdentity(f"vectors/{path.name}", digest))

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [self._similarity(text) for text in texts]

    def _similarity(self, text: str) -> LogLikelihood:
        # Different words only: a repeated word would be perfectly similar to itself.
        words = dict.fromkeys(known for word in _WORD.findall(text) if (known := self._known(word)) is not None)
        count = len(words)
        if count < 2:
            return LogLikelihood(0.0, 0)
        # |sum of n unit vectors|^2 = n + 2 * sum of the cosines of all pairs, so no loop over pairs is needed.
        total = sum(self._vectors.get_vector(word, norm=True).astype("float64") for word in words)
        return LogLikelihood((float(total @ total) - count) / (count - 1), count)

    def _known(self, word: str) -> str | None:
        forms = (form for form in (word, word.lower()) if form in self._vectors)
        return next((form for form in forms if self._vectors.get_vector(form).any()), None)


BACKEND = Backend(
    open=lambda request: request.once(lambda: VectorLikelihood.from_file(request.argument)),
    argument="PATH",
    roles=SCORING_ROLES,
    abilities="similarity of a text's words, by word vectors such as fastText's",
    missing=lambda: missing_of("vectors"),
    price=FREE,
)
