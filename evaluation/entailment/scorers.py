"""Whatever scores an entailment, behind one protocol: models, baselines, and files of scores."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple, read_scores
from evaluation.entailment.prompts import Direction, Filled, chinese_sentence, filled
from grammar.errors import HapaxError

Measure = Callable[[Sequence[str]], list[float]]
"""A number for each sentence: P(yes), or log-likelihood per token."""


class Shown(StrEnum):
    """What a scorer gets to see of a pair."""

    BOTH = "both"
    HYPOTHESIS = "hypothesis"
    PREMISE = "premise"

    def of(self, pair: EntailmentPair) -> EntailmentPair:
        """The pair without the side that is not shown."""
        if self is Shown.HYPOTHESIS:
            return pair.hypothesis_only
        return replace(pair, hypothesis=ANYTHING) if self is Shown.PREMISE else pair


class Scorer(Protocol):
    """How sure it is that each premise entails its hypothesis; only the order of the scores counts."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def sees(self) -> Shown | None:
        """What it looks at; None: not known, because the scores came from elsewhere."""

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        """One finite number for each pair, in order."""


@dataclass(frozen=True, slots=True)
class PatternScorer:
    """A model judges a pair's prompts: the best pattern's measure less the best antipattern's (S&S, section 2)."""

    name: str
    measure: Measure
    direction: Direction = Direction.DIRECTIONAL
    sees: Shown = Shown.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return best_difference([filled(pair, self.direction) for pair in pairs], self.measure)


def best_difference(told: Sequence[Filled], measure: Measure) -> list[float]:
    """For each the best pattern's measure less the best antipattern's; equal sentences are measured once."""
    asked = list(dict.fromkeys(text for one in told for text in (*one.patterns, *one.antipatterns)))
    found = dict(zip(asked, measure(asked), strict=True))
    return [max(found[text] for text in one.patterns) - max(found[text] for text in one.antipatterns) for one in told]


@dataclass(frozen=True, slots=True)
class LikenessScorer:
    """How alike an encoder finds premise and hypothesis: the vectors of their predicates, or of whole sentences.

    `measure` takes both sides with a tab between, and what counts of them between `marks`.
    """

    name: str
    measure: Measure
    marks: tuple[str, str]
    sees: Shown = Shown.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        texts = ["\t".join(self._side(one, pair) for one in (pair.premise, pair.hypothesis)) for pair in pairs]
        found = dict(zip(dict.fromkeys(texts), self.measure(list(dict.fromkeys(texts))), strict=True))
        return [found[text] for text in texts]

    def _side(self, one: Triple, pair: EntailmentPair) -> str:
        """A proposition with its predicate marked; unmarked where the premise is a sentence."""
        plain = Triple(*(self._plain(part) for part in (one.subject, one.predicate, one.object)))
        if pair.premise.predicate:
            parts = plain.predicate.split("·X·")
            plain = replace(plain, predicate="·X·".join(part.join(self.marks) for part in parts))
        return chinese_sentence(plain) if pair.language == "ZH" else plain.sentence

    def _plain(self, text: str) -> str:
        return " ".join(text.translate(dict.fromkeys(map(ord, self.marks), " ")).split())


@dataclass(frozen=True, slots=True)
class RandomScorer:
    """Draws a number for each pair from the seed and the pair itself."""

    seed: int = 0
    name: str = "random"
    sees: Shown = Shown.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [random.Random(f"{self.seed} {pair.key}").random() for pair in pairs]  # noqa: S311  # no secret


@dataclass(frozen=True, slots=True)
class FrequencyScorer:
    """1 - 1/n for a hypothesis whose predicate occurs n times in `corpus`, 0 where it does not (BoOQA's baseline)."""

    counts: Counter[str]
    name: str = "frequency"
    sees: Shown = Shown.HYPOTHESIS

    @classmethod
    def of(cls, corpus: Sequence[EntailmentPair]) -> FrequencyScorer:
        """Counts premises and hypotheses alike."""
        return cls(Counter(one.key[1] for pair in corpus for one in (pair.premise, pair.hypothesis)))

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [1 - 1 / n if (n := self.counts[pair.hypothesis.key[1]]) else 0.0 for pair in pairs]


@dataclass(frozen=True, slots=True)
class PriorScorer:
    """How often a predicate was entailed in training, whatever by: what a data set gives away by its hypotheses alone.

    (true + 1) / (all + 2) of the training pairs with the hypothesis' predicate.
    """

    seen: defaultdict[str, list[bool]]
    name: str = "prior"
    sees: Shown = Shown.HYPOTHESIS

    @classmethod
    def of(cls, training: Sequence[EntailmentPair]) -> PriorScorer:
        """Counts labels by the hypothesis' predicate."""
        seen: defaultdict[str, list[bool]] = defaultdict(list)
        for pair in training:
            seen[pair.hypothesis.key[1]].append(pair.entailed)
        return cls(seen)

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        labels = (self.seen.get(pair.hypothesis.key[1], []) for pair in pairs)
        return [(sum(some) + 1) / (len(some) + 2) for some in labels]


@dataclass(frozen=True, slots=True)
class FileScorer:
    """Scores from a file of `truth score` lines, one for each pair, in the same order."""

    path: Path
    sees: None = None

    @property
    def name(self) -> str:
        return self.path.stem

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        """Raises HapaxError where the file does not belong to these pairs."""
        read = read_scores(self.path)
        if [truth for truth, _ in read] != [pair.entailed for pair in pairs]:
            raise HapaxError(
                f"{self.path}: its {len(read)} labels are not those of these {len(pairs)} pairs, in their order. Name "
                "the file that was scored, and no other."
            )
        return [score for _, score in read]
