"""Answer BoOQA questions with entailment scorers, by the best premise, and measure the answers (section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from hapax.evaluation.booqa.premises import Context, QuestionWithPremises
from hapax.evaluation.entailment import report
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple, write_levy_holt
from hapax.evaluation.entailment.scorers import EntailmentScorer, VisibleSides
from hapax.evaluation.shared.results import ExperimentResult, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.llm_oracle.budget import DeferralCollector


class AnswerScorer(Protocol):
    """Scores questions; only the order of the scores matters."""

    @property
    def name(self) -> str:
        """The name in tables."""

    def answers(self, questions: Sequence[QuestionWithPremises]) -> list[float]:
        """One finite number for each question, in order."""


@runtime_checkable
class GroupScorer(Protocol):
    """A scorer that takes all premises of a hypothesis at once."""

    def grouped(self, groups: Sequence[Sequence[EntailmentPair]]) -> list[float]:
        """One number for each group of pairs with the same hypothesis."""


@dataclass(frozen=True, slots=True)
class BestPremise:
    """Scores a question by the highest score of its premises; a question without premises gets the lowest of all.

    A scorer that sees only hypotheses scores the question itself.
    """

    scorer: EntailmentScorer
    context: Context = Context.TRIPLE

    @property
    def name(self) -> str:
        return self.scorer.name if self.context is Context.TRIPLE else f"{self.scorer.name}, {self.context}"

    def answers(self, questions: Sequence[QuestionWithPremises]) -> list[float]:
        if isinstance(self.scorer, GroupScorer):
            return self.scorer.grouped([question.pairs for question in questions])
        if self.scorer.sees is VisibleSides.HYPOTHESIS:
            return self.scorer.scores([question.alone for question in questions])
        scores = self.scorer.scores(list(chain.from_iterable(question.pairs for question in questions)))
        # A question without premises ranks with the least entailed one; 0 may lie above other scores.
        lowest = min(scores, default=0.0)
        # The scores of all questions follow each other, so each question takes as many as it has premises.
        remaining = iter(scores)
        return [max(islice(remaining, len(question.pairs)), default=lowest) for question in questions]


@dataclass(frozen=True, slots=True)
class Frequency:
    """Scores 1 - 1/n for a predicate that the corpus has n times with the same types, a baseline for artefacts."""

    name: str = "frequency"

    def answers(self, questions: Sequence[QuestionWithPremises]) -> list[float]:
        return [1 - 1 / question.occurrences if question.occurrences else 0.0 for question in questions]


@dataclass(frozen=True, slots=True)
class Null:
    """Scores all questions the same."""

    name: str = "null"

    def answers(self, questions: Sequence[QuestionWithPremises]) -> list[float]:
        return [0.0] * len(questions)


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """The scores of a method on a set, and its figures."""

    result: report.SubsetResult
    truth: tuple[bool, ...]
    scores: tuple[float, ...]


def measure(
    methods: Sequence[AnswerScorer], sets: Mapping[str, Sequence[QuestionWithPremises]], seed: int = 0
) -> Iterator[ScoredAnswers]:
    """The scored answers of each method on each set. A positive and its negatives are resampled together."""
    deferrals = DeferralCollector()
    for method in methods:
        for name, questions in sets.items():
            truth = [question.question.label for question in questions]
            with deferrals:
                scores = method.answers(questions)
            # Once a request waits in a queue, nothing is measured, but later methods add their requests to it, too.
            if deferrals.first is not None:
                continue
            clusters = []  # a positive and its negatives share slice, sentence and entities
            for question in questions:
                proposition = question.question
                clusters.append((proposition.slice, proposition.sentence, proposition.mention.pair))
            how = report.Measuring(seed=seed)
            result = report.subset_result((method.name, name, None), truth, [scores], clusters, how)
            yield ScoredAnswers(result, tuple(truth), tuple(scores))
    deferrals.raise_first()


def experiment_result(
    scored: Sequence[ScoredAnswers], sets: Mapping[str, Sequence[QuestionWithPremises]]
) -> ExperimentResult:
    """The scored answers as a table, all figures, and a note on the number of premises."""
    columns = ("scorer", "set", "questions", *report.FIGURE_COLUMNS)
    results = [answers.result for answers in scored]
    rows = [(result.scorer, result.subset, str(result.pairs), *report.figure_cells(result)) for result in results]
    figures = [report.main_figures(result) for result in results]
    return ExperimentResult([ResultTable("", columns, rows)], figures, notes=[premise_summary(sets)])


@checked
@extras_named()
def write_question_pairs(sets: Mapping[str, Sequence[QuestionWithPremises]], folder: str | Path) -> int:
    """Write each premise with its question in LevyHolt's format, a file for each set; return the number of pairs."""
    return sum(_write_pairs(questions, Path(folder) / f"pairs-{name}.txt") for name, questions in sets.items())


def _write_pairs(questions: Sequence[QuestionWithPremises], path: Path) -> int:
    """Write each premise with its question in LevyHolt's format, for external scorers; return the number of pairs.

    Commas, tabs and line breaks in arguments, which the format cannot represent, become blanks.
    """
    pairs = []
    for question in questions:
        for pair in question.pairs:
            premise, hypothesis = _plain(pair.premise), _plain(pair.hypothesis)
            pairs.append(EntailmentPair(premise, hypothesis, pair.entailed, pair.language))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_levy_holt(pairs, path)
    return len(pairs)


def premise_summary(sets: Mapping[str, Sequence[QuestionWithPremises]]) -> str:
    """A sentence on the number of premises of the questions."""
    counts = [len(question.pairs) for question in chain.from_iterable(sets.values())]
    return f"{sum(counts) / len(counts):.1f} premises per question; {counts.count(0)} of {len(counts)} have none."


def _plain(triple: Triple) -> Triple:
    parts = (triple.subject, triple.predicate, triple.object)
    return Triple(*(" ".join(part.replace(",", " ").split()) for part in parts))
