"""A lesson: weights and acquired rules from labelled sentences, with the learning curve on held-out families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hapax.evaluation.shared.estimates import percent
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.reasoner.acquiring import (
    AcquiredRule,
    AcquiredRuleRecord,
    induced,
    judged,
    proposed,
    rules_text,
    with_rules,
)
from hapax.evaluation.winograd.reasoner.learning import (
    CURVE,
    Covered,
    HeldOutAnswer,
    Observation,
    answered,
    calibrated,
    confidence_of,
    covered,
    fitted,
    folds_of,
    least_probability,
    observed,
    weights_text,
)
from hapax.evaluation.winograd.reasoner.reasoning import RULES, Reasoner, shipped_theory
from hapax.evaluation.winograd.reasoner.reviewing import SHEET, RuleReview, read_review, review_sheet
from hapax.evaluation.winograd.reasoner.weighing import RuleWeights, evidence_priors
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.parser import load_library
from hapax.grammar.words import counted
from hapax.kb.whole_files import atomic_folder
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.protocols import KNOWLEDGE, GenerationParameters
from hapax.llm_oracle.registry import open_instructed

ROLE = "rule proposer"
REPLY_TOKENS = 200
LEVELS = (0.6, 0.7, 0.8, 0.9)
"""Least probabilities of the risk-coverage table."""

LEAST = 0.8
"""Least probability that is written to the weights; the levels show what others would give."""

INDUCTION = "induction"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Held-out figures with a share of the training families, with and without acquired rules."""

    share: float
    acquired: bool
    rules: int
    figures: Covered


@dataclass(slots=True)
class Lesson:
    """Learned weights and rules. `levels`: held-out figures by probability; `refused`: lines of a model without a rule.

    `review`: a person's answers, which kept some rules from being proposed.
    """

    weights: RuleWeights
    records: list[AcquiredRuleRecord]
    observations: list[Observation]
    levels: list[tuple[float, Covered]] = field(default_factory=list)
    curve: list[CurvePoint] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    review: RuleReview = field(default_factory=RuleReview)

    @property
    def accepted(self) -> list[AcquiredRuleRecord]:
        """Rules that were taken."""
        return [record for record in self.records if record.accepted]

    def to_result(self) -> ExperimentResult:
        """Figures on held-out families, and the proposed rules."""
        columns = ("answered", "right of answered")
        levels = [(f"{least:.3f}", *_shares(figures)) for least, figures in self.levels]
        curve = [
            (f"{point.share:.1%}", "yes" if point.acquired else "no", point.rules, *_shares(point.figures))
            for point in self.curve
        ]
        accepted = [
            (record.rule.name, record.proposed_by, record.support, record.exceptions, record.example)
            for record in self.accepted
        ]
        tables = [
            ResultTable("Held-out families, by least probability", ("least probability", *columns), levels),
            ResultTable(
                f"Learning curve at least probability {self.weights.least:.3f}",
                ("training families", "acquired rules", "rules taken", *columns),
                curve,
            ),
            ResultTable("Acquired rules", ("rule", "proposed by", "right", "wrong", "example"), accepted),
        ]
        notes = [
            f"{counted(len(self.observations), 'sentence')}; {counted(len(self.records), 'proposed rule')}, "
            f"{len(self.accepted)} taken; {counted(len(self.refused), 'line')} of replies refused."
        ]
        if self.review.refused:
            notes.append(f"{counted(len(self.review.refused), 'rule')} left out by a person's verdict no.")
        return ExperimentResult(
            tables, {"levels": self.levels, "curve": self.curve, "rules": self.records}, notes=notes
        )


def _shares(figures: Covered) -> tuple[str, str]:
    return percent(figures.answered), percent(figures.right)


@extras_named()
def learn_from_schemas(
    items: Sequence[WinogradItem],
    *,
    opening: OpeningOptions | None = None,
    proposer: str | None = None,
    review: str | Path | None = None,
) -> Evaluation[Lesson]:
    """Weights and rules of the reasoner from labelled schemas, with figures on families that a fit did not see.

    `proposer`: model that proposes rules for sentences without proof, beside induction; `opening` has its journal.
    `review`: a sheet of `write_lesson` with a person's verdicts, or the folder of a lesson, which may have one; rules
    with the verdict `no` are not taken.
    """
    sheet = None if review is None else Path(review)
    if sheet is not None and sheet.is_dir():
        # The folder of a lesson has its sheet under this name, or none if nobody has judged yet.
        sheet = sheet / SHEET if (sheet / SHEET).exists() else None
    answers = RuleReview() if sheet is None else read_review(sheet)
    generator = None
    if proposer is not None:
        if opening is None or opening.journal is None:
            raise HapaxError("A proposer needs a journal for its answers. Give `opening` with one.")
        generator = JournaledGenerator(open_instructed(proposer, KNOWLEDGE, opening), opening.journal, role=ROLE)
    # What was acquired before is not evidence for itself.
    with Reasoner(library=load_library([RULES]), weights=RuleWeights({}, 0.5)) as reasoner:
        return Evaluation.of(_learned(items, reasoner, generator, 0 if opening is None else opening.seed, answers))


def write_lesson(evaluation: Evaluation[Lesson], folder: str | Path) -> None:
    """Write `weights.toml`, `acquired.rules` and the sheet `review.csv` for a person into a folder."""
    lesson = evaluation.value
    texts = {
        "weights.toml": weights_text(lesson.weights, lesson.observations),
        "acquired.rules": rules_text(lesson.records),
        SHEET: review_sheet(lesson.records, shipped_theory(), lesson.review),
    }
    with atomic_folder(folder) as new:
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")


def _learned(
    items: Sequence[WinogradItem],
    reasoner: Reasoner,
    generator: JournaledGenerator | None,
    seed: int,
    review: RuleReview,
) -> Lesson:
    """Weights and rules from the sentences. `reasoner`: with the theory alone; `generator`: proposes rules, too.

    `review`: a person's answers; rules that it refuses are not taken, and the held-out figures are without them.
    """
    observations = observed(items, reasoner)
    priors = evidence_priors(reasoner.library)
    proposals = []
    refused: list[str] = []
    if generator is not None:
        parameters = GenerationParameters(temperature=0.0, max_tokens=REPLY_TOKENS, seed=seed)
        rules, refused = proposed(generator, observations, reasoner.library, parameters)
        proposals = [(rule, "model") for rule in rules if rule.name not in review.refused]
    plain = [_held_out(observations, priors, size, None) for size in CURVE]
    taught = [_held_out(observations, priors, size, review) for size in CURVE]
    # The level comes from held-out answers of the largest size, which the final weights resemble most.
    confidence = confidence_of(taught[-1][0])
    plain, taught = ([(calibrated(answers), count) for answers, count in curve] for curve in (plain, taught))
    target = least_probability(taught[-1][0])
    # A rule that the model proposed as well counts as the model's.
    known = {rule for rule, _ in proposals}
    records = judged(
        [*proposals, *((rule, by) for rule, by in _induced(observations, review) if rule not in known)], observations
    )
    taken = [record.rule for record in records if record.accepted]
    extended = with_rules(observations, taken)
    weights = fitted(extended, {**priors, **{rule.name: 0.0 for rule in taken}})
    lesson = Lesson(RuleWeights(weights, LEAST, confidence), records, extended, refused=refused, review=review)
    lesson.levels = [(level, covered(taught[-1][0], level)) for level in sorted({*LEVELS, target})]
    for size, without, with_them in zip(CURVE, plain, taught, strict=True):
        for acquired, (answers, count) in ((False, without), (True, with_them)):
            lesson.curve.append(CurvePoint(size, acquired, count, covered(answers, LEAST)))
    return lesson


def _induced(observations: Sequence[Observation], review: RuleReview) -> list[tuple[AcquiredRule, str]]:
    """Rules that are proposed by induction and not refused by a person."""
    return [(rule, INDUCTION) for rule in induced(observations) if rule.name not in review.refused]


def _held_out(
    observations: Sequence[Observation], priors: Mapping[str, float], size: float, review: RuleReview | None
) -> tuple[list[HeldOutAnswer], int]:
    """Answers to every sentence by what the other folds taught, and the mean number of rules taken there.

    `review`: answers to acquired rules; None: no rules are acquired.
    """
    answers: list[HeldOutAnswer] = []
    counts = []
    for training, tested in folds_of(observations, size):
        rules = []
        if review is not None:
            # Induced anew in each fold, so that no rule has seen the tested sentences.
            rules = [record.rule for record in judged(_induced(training, review), training) if record.accepted]
        weights = fitted(with_rules(training, rules), {**priors, **{rule.name: 0.0 for rule in rules}})
        answers += answered(with_rules(tested, rules), weights)
        counts.append(len(rules))
    return answers, round(sum(counts) / len(counts))
