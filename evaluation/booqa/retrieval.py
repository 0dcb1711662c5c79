"""Documents like a question, by TF-IDF."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib.util import find_spec

from evaluation.booqa.corpus import Sentence
from grammar.errors import HapaxError


class Library:
    """The documents of one slice, searched by words and pairs of words; Chinese ones by signs and pairs of signs."""

    def __init__(self, found: Sequence[Sentence], language: str) -> None:
        if find_spec("sklearn") is None:
            raise HapaxError(
                "scikit-learn is not installed. Run `pip install scikit-learn`, or take another --context."
            )
        from sklearn.feature_extraction.text import TfidfVectorizer

        documents: defaultdict[str, list[Sentence]] = defaultdict(list)
        for sentence in found:
            if sentence.text.strip():
                documents[sentence.document].append(sentence)
        self._documents = list(documents.values())
        self._vectors = TfidfVectorizer(ngram_range=(1, 2), analyzer="char" if language == "ZH" else "word")
        texts = [" ".join(sentence.text for sentence in document) for document in self._documents]
        try:
            self._matrix = self._vectors.fit_transform(texts)
        except ValueError:  # no text, or none with a word
            self._matrix = None

    def like(self, text: str, count: int) -> list[list[Sentence]]:
        """So many documents that share a word with the text, the most similar first; equal ones as they came."""
        if self._matrix is None:
            return []
        scores = (self._matrix @ self._vectors.transform([text]).T).toarray().ravel()
        places = sorted(range(len(scores)), key=lambda place: -scores[place])
        return [self._documents[place] for place in places[:count] if scores[place] > 0]
