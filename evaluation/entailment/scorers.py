"""Scorers of entailments behind one protocol: models, baselines, and files of scores."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from hapax.evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple, read_scores
from hapax.evaluation.entailment.prompts import Direction, Filled, chinese_sentence, filled
from hapax.grammar.errors import HapaxError

Measure = Callable[[Sequence[str]], list[float]]
"""Returns a number for each sentence: P(yes), or log-likelihood per token."""


class VisibleSides(StrEnum):
    """The sides of a pair that a scorer sees."""

    BOTH = "both"
    HYPOTHESIS = "hypothesis"
    PREMISE = "premise"

    def of(self, pair: EntailmentPair) -> EntailmentPair:
        """The pair without the side that is not shown."""
        if self is VisibleSides.HYPOTHESIS:
            return pair.hypothesis_only
        return replace(pair, hypothesis=ANYTHING) if self is VisibleSides.PREMISE else pair


class EntailmentScorer(Protocol):
    """Scores how certain it is that a premise entails a hypothesis; only the order of the scores matters."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def sees(self) -> VisibleSides | None:
        """The sides of a pair that it uses; None if unknown, because the scores come from elsewhere."""

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        """One finite number for each pair, in order."""


@dataclass(frozen=True, slots=True)
class PatternScorer:
    """Scores a pair by a model's measure of its best pattern minus that of its best antipattern (S&S, section 2)."""

    name: str
    measure: Measure
    direction: Direction = Direction.DIRECTIONAL
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return best_difference([filled(pair, self.direction) for pair in pairs], self.measure)


def best_difference(filled_pairs: Sequence[Filled], measure: Measure) -> list[float]:
    """The best pattern's measure minus the best antipattern's, for each pair. Equal sentences are measured once."""
    # With symmetric patterns, for instance, a pair and its converse give the same sentences.
    unique: dict[str, None] = {}
    for pair in filled_pairs:
        unique.update(dict.fromkeys((*pair.patterns, *pair.antipatterns)))
    sentences = list(unique)
    measured = dict(zip(sentences, measure(sentences), strict=True))

    def best(texts: Sequence[str]) -> float:
        return max(measured[text] for text in texts)

    return [best(pair.patterns) - best(pair.antipatterns) for pair in filled_pairs]


@dataclass(frozen=True, slots=True)
class LikenessScorer:
    """Scores a pair by the similarity of an encoder's vectors for the two predicates, or for whole sentences.

    `measure` takes both sides separated by a tab; it compares the parts between `marks`.
    """

    name: str
    measure: Measure
    marks: tuple[str, str]
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        texts = [f"{self._side(pair.premise, pair)}\t{self._side(pair.hypothesis, pair)}" for pair in pairs]
        unique = list(dict.fromkeys(texts))
        measured = dict(zip(unique, self.measure(unique), strict=True))
        return [measured[text] for text in texts]

    def _side(self, triple: Triple, pair: EntailmentPair) -> str:
        """The triple as a sentence with its predicate marked; unmarked if the premise is a whole sentence."""
        plain = Triple(self._plain(triple.subject), self._plain(triple.predicate), self._plain(triple.object))
        if pair.premise.predicate:
            # A Chinese predicate is marked in two parts, around the object's place.
            parts = plain.predicate.split("·X·")
            plain = replace(plain, predicate="·X·".join(part.join(self.marks) for part in parts))
        return chinese_sentence(plain) if pair.language == "ZH" else plain.sentence

    def _plain(self, text: str) -> str:
        """The text without marks of its own."""
        return " ".join(text.translate(dict.fromkeys(map(ord, self.marks), " ")).split())


@dataclass(frozen=True, slots=True)
class RandomScorer:
    """Draws a number for each pair. It depends on the seed and the pair alone, not on the order of pairs."""

    seed: int = 0
    name: str = "random"
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [random.Random(f"{self.seed} {pair.key}").random() for pair in pairs]  # noqa: S311  # no secret


@dataclass(frozen=True, slots=True)
class FrequencyScorer:
    """Scores 1 - 1/n if the hypothesis' predicate occurs n times in a corpus, 0 if it does not (BoOQA's baseline)."""

    counts: Counter[str]
    name: str = "frequency"
    sees: VisibleSides = VisibleSides.HYPOTHESIS

    @classmethod
    def of(cls, corpus: Sequence[EntailmentPair]) -> FrequencyScorer:
        """Count the predicates of premises and hypotheses alike."""
        counts: Counter[str] = Counter()
        for pair in corpus:
            counts.update((pair.premise.key[1], pair.hypothesis.key[1]))
        return cls(counts)

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [1 - 1 / n if (n := self.counts[pair.hypothesis.key[1]]) else 0.0 for pair in pairs]


@dataclass(frozen=True, slots=True)
class PriorScorer:
    """Scores (true + 1) / (all + 2) over the training pairs with the hypothesis' predicate.

    It measures how much a data set reveals by its hypotheses alone.
    """

    labels: Mapping[str, Sequence[bool]]
    name: str = "prior"
    sees: VisibleSides = VisibleSides.HYPOTHESIS

    @classmethod
    def of(cls, training: Sequence[EntailmentPair]) -> PriorScorer:
        """Collect the training labels by the hypothesis' predicate."""
        labels: defaultdict[str, list[bool]] = defaultdict(list)
        for pair in training:
            labels[pair.hypothesis.key[1]].append(pair.entailed)
        return cls(labels)

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        # One true and one false pair are added (Laplace), so an unseen predicate scores one half.
        of_pairs = (self.labels.get(pair.hypothesis.key[1], []) for pair in pairs)
        return [(sum(labels) + 1) / (len(labels) + 2) for labels in of_pairs]


@dataclass(frozen=True, slots=True)
class FileScorer:
    """Reads scores from a file of `truth score` lines, one for each pair, in the same order.

    `twin`: the file of the same pairs' scores by hypotheses alone.
    """

    path: Path
    twin: Path | None = None

    @property
    def sees(self) -> VisibleSides | None:
        """Unknown, unless scores by hypotheses alone show that the others are by both sides."""
        return None if self.twin is None else VisibleSides.BOTH

    @property
    def name(self) -> str:
        return self.path.stem

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        """The scores in the file. Raises HapaxError if its labels are not those of the pairs."""
        # Only the pairs tell which of the two files is asked for.
        is_twin = self.twin is not None and all(pair.premise == ANYTHING for pair in pairs)
        path = self.twin if self.twin is not None and is_twin else self.path
        rows = read_scores(path)
        if [truth for truth, _ in rows] != [pair.entailed for pair in pairs]:
            raise HapaxError(
                f"{path}: its {len(rows)} labels differ from those of the {len(pairs)} pairs. Name the file of "
                "pairs that was scored."
            )
        return [score for _, score in rows]
