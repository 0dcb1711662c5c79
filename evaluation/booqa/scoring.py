"""Scorers on BoOQA: the best premise answers a question (section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from evaluation.booqa.premises import Asked, Context
from evaluation.entailment import report
from evaluation.entailment.metrics import curve, estimate, normalised_area
from evaluation.entailment.pairs import EntailmentPair, Triple, write_levy_holt
from evaluation.entailment.scorers import Scorer, Shown
from evaluation.estimates import NOTHING
from llm_oracle.calls import GoingOn


class Method(Protocol):
    """Answers questions; only the order of the scores counts."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def answers(self, asked: Sequence[Asked]) -> list[float]:
        """One finite number for each question, in order."""


@runtime_checkable
class GroupScorer(Protocol):
    """A scorer that looks at all premises of a hypothesis at once."""

    def grouped(self, groups: Sequence[Sequence[EntailmentPair]]) -> list[float]:
        """One number for each group."""


@dataclass(frozen=True, slots=True)
class BestPremise:
    """The most that any premise gives by a scorer. A question without premises stands with the lowest.

    A scorer that sees hypotheses alone is asked without premises.
    """

    scorer: Scorer
    context: Context = Context.TRIPLE

    @property
    def name(self) -> str:
        return self.scorer.name if self.context is Context.TRIPLE else f"{self.scorer.name}, {self.context}"

    def answers(self, asked: Sequence[Asked]) -> list[float]:
        if isinstance(self.scorer, GroupScorer):
            return self.scorer.grouped([one.pairs for one in asked])
        if self.scorer.sees is Shown.HYPOTHESIS:
            return self.scorer.scores([one.alone for one in asked])
        scores = iter(self.scorer.scores([pair for one in asked for pair in one.pairs]))
        told = [[next(scores) for _ in one.pairs] for one in asked]
        lowest = min((score for some in told for score in some), default=0.0)
        return [max(some, default=lowest) for some in told]


@dataclass(frozen=True, slots=True)
class Frequency:
    """1 - 1/n for a predicate that the corpus has n times with the same types: what a set must not give away."""

    name: str = "frequency"

    def answers(self, asked: Sequence[Asked]) -> list[float]:
        return [1 - 1 / one.occurrences if one.occurrences else 0.0 for one in asked]


@dataclass(frozen=True, slots=True)
class Null:
    """Says the same of every question."""

    name: str = "null"

    def answers(self, asked: Sequence[Asked]) -> list[float]:
        return [0.0] * len(asked)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a method said of one set, and how it did."""

    result: report.SubsetResult
    truth: tuple[bool, ...]
    scores: tuple[float, ...]


def measure(methods: Sequence[Method], sets: Mapping[str, Sequence[Asked]], seed: int = 0) -> Iterator[Answers]:
    """Each method on each set. A positive and its negatives are resampled together."""
    going_on = GoingOn()
    for method in methods:
        for name, asked in sets.items():
            truth = [one.question.label for one in asked]
            with going_on:
                scores = method.answers(asked)
            if going_on.first is not None:
                continue
            clusters = [(one.question.slice, one.question.sentence, one.question.mention.pair) for one in asked]
            norm = estimate(truth, scores, normalised_area, clusters, seed)
            shape = curve(truth, scores)
            result = report.SubsetResult(method.name, name, None, len(asked), shape, None, norm, NOTHING, NOTHING)
            yield Answers(result, tuple(truth), tuple(scores))
    going_on.settle()


COLUMNS = ("scorer", "set", "questions", *report.COLUMNS[3:8])


def rows(found: Sequence[Answers]) -> Iterator[tuple[str, ...]]:
    """The table's rows under `COLUMNS`."""
    yield from (row[: len(COLUMNS)] for row in report.rows([one.result for one in found]))


def to_json(found: Sequence[Answers]) -> list[dict[str, Any]]:
    """Every figure."""
    names = ("scorer", "subset", "pairs", "true", "auc50", "auc_rel", "f1", "auc_norm")
    return [{name: one[name] for name in names} for one in report.to_json([each.result for each in found])]


def write_answers(found: Sequence[Answers], folder: Path) -> list[Path]:
    """The curves, and each method's scores as lines of `truth score`."""
    written = report.write_curves([one.result for one in found], folder)
    for one in found:
        path = folder / f"scores-{report.file_name(one.result.scorer)}-{one.result.subset}.txt"
        lines = zip(one.truth, one.scores, strict=True)
        path.write_text("".join(f"{int(truth)} {score!r}\n" for truth, score in lines), "utf-8")
        written.append(path)
    return written


def write_pairs(asked: Sequence[Asked], path: Path) -> int:
    """Every premise with its question in LevyHolt's form, for scorers elsewhere; how many there are.

    Commas, tabs and line breaks in arguments become blanks, since the form has no place for them.
    """
    pairs = [
        EntailmentPair(_plain(pair.premise), _plain(pair.hypothesis), pair.entailed, pair.language)
        for one in asked
        for pair in one.pairs
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_levy_holt(pairs, path)
    return len(pairs)


def premises_told(sets: Mapping[str, Sequence[Asked]]) -> str:
    """How many premises the questions have."""
    counts = [len(one.pairs) for asked in sets.values() for one in asked]
    none = counts.count(0)
    return f"{sum(counts) / len(counts):.1f} premises a question; {none} of {len(counts)} have none."


def _plain(one: Triple) -> Triple:
    return Triple(*(" ".join(part.replace(",", " ").split()) for part in (one.subject, one.predicate, one.object)))
