"""Retrieval of documents similar to a question, by TF-IDF."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hapax.evaluation.booqa.corpus import Sentence
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.remedies import Remedy, Setting


class DocumentIndex:
    """A TF-IDF index of the documents of a slice: unigrams and bigrams of words, or of characters in Chinese."""

    def __init__(self, sentences: Sequence[Sentence], language: str) -> None:
        if missing := missing_of("retrieval"):
            raise HapaxError(missing, Remedy("Or choose another {}.", Setting("options.context")))
        from sklearn.feature_extraction.text import TfidfVectorizer

        documents: defaultdict[str, list[Sentence]] = defaultdict(list)
        for sentence in sentences:
            if sentence.text.strip():
                documents[sentence.document].append(sentence)
        self._documents = list(documents.values())
        # Chinese is written without blanks, so words cannot be told by a pattern.
        self._vectors = TfidfVectorizer(ngram_range=(1, 2), analyzer="char" if language == "ZH" else "word")
        texts = []
        for document in self._documents:
            texts.append(" ".join(sentence.text for sentence in document))
        try:
            self._matrix = self._vectors.fit_transform(texts)
        except ValueError:  # no document has a word
            self._matrix = None

    def like(self, text: str, count: int) -> list[list[Sentence]]:
        """At most `count` documents that share a word with the text, the most similar first, ties in corpus order."""
        if self._matrix is None:
            return []
        # Rows have length 1, so the product is the cosine similarity.
        scores = (self._matrix @ self._vectors.transform([text]).T).toarray().ravel()
        places = sorted(range(len(scores)), key=lambda place: -scores[place])
        return [self._documents[place] for place in places[:count] if scores[place] > 0]
