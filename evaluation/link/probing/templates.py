"""The questions of LINK's table 12, and the right answer to each.

To add a question, add a `Template` here; metrics, tables, datasets and their tasks follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import product

from hapax.evaluation.link.probing.items import ProbeItem
from hapax.grammar.attributes import Polarity


class AnswerPair(Enum):
    """The two answers to choose from, the positive one first."""

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
    """A question with slots. `positive`: the right answer if the premise entails the conclusion; None: it depends."""

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
        """True if the right answer is the positive one.

        Template 7 asks about the positive side of the conclusion, so its answer is No for a negative conclusion. All
        answers flip if people found that the premise contradicts the conclusion (section 4).
        """
        # Equality flips the label where `entailed` is False.
        positive = item.polarity is Polarity.POSITIVE if self.positive is None else self.positive
        return positive == item.entailed


# An enum yields its members in the order of their definition.
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
    """Numbers of positive and negative right answers."""

    positive: int
    negative: int

    @property
    def negative_share(self) -> float:
        total = self.positive + self.negative
        return self.negative / total if total else float("nan")


def count_labels(items: Iterable[ProbeItem]) -> LabelCount:
    """Count the right answers to all questions about each item."""
    labels = [template.label(item) for item, template in product(items, TEMPLATES)]
    return LabelCount(sum(labels), len(labels) - sum(labels))
