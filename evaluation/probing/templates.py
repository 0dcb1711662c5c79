"""The 13 questions of LINK's table 12, and the right answer to each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from evaluation.probing.items import ProbeItem
from grammar.rules import Polarity


class AnswerPair(Enum):
    """The two answers that a question leaves, the positive one first."""

    YES_NO = ("Yes", "No")
    TRUE_FALSE = ("True", "False")
    RIGHT_WRONG = ("Right", "Wrong")

    def word(self, positive: bool) -> str:
        return self.value[0 if positive else 1]

    @property
    def spoken(self) -> str:
        return " or ".join(self.value).lower()


@dataclass(frozen=True, slots=True)
class Template:
    """A question with its slots. `positive`: the right answer where premise entails conclusion; None: it depends."""

    number: int
    text: str
    pair: AnswerPair
    positive: bool | None

    def question(self, item: ProbeItem) -> str:
        return self.text.format(
            premise=item.premise,
            conclusion=item.conclusion,
            conclusion_negation=item.negation,
            conclusion_question=item.question,
        )

    def label(self, item: ProbeItem) -> bool:
        """Whether the right answer is the positive one.

        Template 7 asks the positive form of the conclusion, so a denying conclusion makes its answer No. All answers
        turn where people found that the premise contradicts the conclusion (section 4).
        """
        positive = item.polarity is Polarity.POSITIVE if self.positive is None else self.positive
        return positive == item.entailed


_YES_NO, _TRUE_FALSE, _RIGHT_WRONG = AnswerPair

TEMPLATES = (
    Template(1, "Is it true that if {premise}, {conclusion}.", _YES_NO, True),
    Template(2, "Yes or no: if {premise}, {conclusion}.", _YES_NO, True),
    Template(3, "True or false: if {premise}, {conclusion}.", _TRUE_FALSE, True),
    Template(4, "Right or Wrong: if {premise}, {conclusion}.", _RIGHT_WRONG, True),
    Template(5, "Premise: {premise}. Conclusion: {conclusion}. Does premise entail conclusion?", _YES_NO, True),
    Template(
        6,
        "Premise: {premise}. Conclusion: {conclusion_negation}. Does premise contradict the conclusion?",
        _YES_NO,
        True,
    ),
    Template(7, "Answer the question with yes or no: if {premise}, {conclusion_question}?", _YES_NO, None),
    Template(8, "Is it true that if {premise}, {conclusion_negation}.", _YES_NO, False),
    Template(9, "Yes or no: if {premise}, {conclusion_negation}.", _YES_NO, False),
    Template(10, "True or false: if {premise}, {conclusion_negation}.", _TRUE_FALSE, False),
    Template(11, "Right or Wrong: if {premise}, {conclusion_negation}.", _RIGHT_WRONG, False),
    Template(
        12, "Premise: {premise}. Conclusion: {conclusion_negation}. Does premise entail conclusion?", _YES_NO, False
    ),
    Template(
        13, "Premise: {premise}. Conclusion: {conclusion}. Does premise contradict the conclusion?", _YES_NO, False
    ),
)


@dataclass(frozen=True, slots=True)
class LabelCount:
    """How many right answers are positive and negative, over all 13 questions of the statements."""

    positive: int
    negative: int

    @property
    def negative_share(self) -> float:
        total = self.positive + self.negative
        return self.negative / total if total else float("nan")


def count_labels(items: Iterable[ProbeItem]) -> LabelCount:
    """The right answers to all 13 questions about each item."""
    labels = [template.label(item) for item in items for template in TEMPLATES]
    return LabelCount(sum(labels), len(labels) - sum(labels))


def positive_share_implied(negative_share: float) -> float:
    """The share of statements with 7 positive labels and 6 negative ones that a share of negative labels implies.

    The others have 6 and 7. LINK's 51.58 % of negative labels implies 29.5 % positive conclusions.
    """
    return 7 - 13 * negative_share
