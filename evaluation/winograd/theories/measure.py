"""What the method `rules` answers, how much of it is right, and what it leaves unanswered and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evaluation.estimates import Estimate, share
from evaluation.winograd.data import WinogradItem, pairs_of
from evaluation.winograd.theories.abstraction import abstracted, entity_name
from evaluation.winograd.theories.proving import Resolution

Resolve = Callable[[WinogradItem], Resolution]


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """An item with its resolution, and with that of the sentence in which the two entities change places."""

    item: WinogradItem
    resolution: Resolution
    exchanged: Resolution | None = None

    @property
    def answered(self) -> bool:
        return self.resolution.answer is not None

    @property
    def right(self) -> bool:
        return self.resolution.answer == self.item.answer

    @property
    def kept(self) -> bool:
        """Whether the same role is meant when the entities change places, so that the other entity is the answer."""
        answer = self.resolution.answer
        return self.exchanged is not None and answer is not None and self.exchanged.answer == 1 - answer


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """The figures of one source. Accuracies are over what was answered, coverages over everything."""

    source: str
    coverage: Estimate
    accuracy: Estimate
    pair_coverage: Estimate
    pair_accuracy: Estimate
    consistency: Estimate
    """Families with an answered pair of whose answered pairs all are right: the paper's score, on what is covered."""
    invariance: Estimate
    """Answered items whose answer goes along when the entities change places."""

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of a printed table: each share as percent with hits and cases."""
        return (self.source, *map(percent, self.shares))

    @property
    def shares(self) -> tuple[Estimate, ...]:
        return (
            self.coverage,
            self.accuracy,
            self.pair_coverage,
            self.pair_accuracy,
            self.consistency,
            self.invariance,
        )


COLUMNS = (
    "source",
    "answered",
    "right of answered",
    "pairs answered",
    "right of these pairs",
    "families all right",
    "same role if exchanged",
)


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A family with items that have no answer: how many, why, and one of them."""

    source: str
    family: str
    unanswered: int
    items: int
    reasons: tuple[str, ...]
    example: WinogradItem


def answer_all(items: Iterable[WinogradItem], resolve: Resolve) -> list[RuleAnswer]:
    """Every item resolved, and again with its entities exchanged where it has an answer."""
    answers = []
    for item in items:
        resolution = resolve(item)
        other = None if resolution.answer is None else exchanged(item)
        answers.append(RuleAnswer(item, resolution, None if other is None else resolve(other)))
    return answers


def exchanged(item: WinogradItem) -> WinogradItem | None:
    """The item whose sentence has the entities in each other's place; its options stay in their order."""
    sentence = abstracted(item.text, item.options)
    if sentence is None:
        return None
    first, second = map(entity_name, item.options)
    return replace(item, text=sentence.shown((second, first)), answer=1 - item.answer)


def figures(answers: Sequence[RuleAnswer]) -> list[SourceFigures]:
    """The figures of each source, in the order of the answers."""
    by_source: dict[str, list[RuleAnswer]] = {}
    for one in answers:
        by_source.setdefault(one.item.source, []).append(one)
    return [_source_figures(source, group) for source, group in by_source.items()]


def _source_figures(source: str, answers: Sequence[RuleAnswer]) -> SourceFigures:
    by_id = {one.item.id: one for one in answers}
    pairs = [(by_id[first.id], by_id[second.id]) for first, second in pairs_of([one.item for one in answers])]
    whole = [pair for pair in pairs if all(one.answered for one in pair)]
    families: dict[str, list[bool]] = {}
    for pair in whole:
        families.setdefault(pair[0].item.family, []).append(all(one.right for one in pair))
    answered = [one for one in answers if one.answered]
    return SourceFigures(
        source,
        coverage=share([one.answered for one in answers]),
        accuracy=share([one.right for one in answered]),
        pair_coverage=share([all(one.answered for one in pair) for pair in pairs]),
        pair_accuracy=share([all(one.right for one in pair) for pair in whole]),
        consistency=share([all(rights) for rights in families.values()]),
        invariance=share([one.kept for one in answered]),
    )


def uncovered(answers: Sequence[RuleAnswer]) -> list[Uncovered]:
    """The families with items that have no answer, in the order of the items; the commonest reason first."""
    families: dict[tuple[str, str], list[RuleAnswer]] = {}
    for one in answers:
        families.setdefault((one.item.source, one.item.family), []).append(one)
    found = []
    for (source, family), group in families.items():
        missing = [one for one in group if not one.answered]
        if missing:
            reasons = Counter(_reason(one.resolution) for one in missing)
            told = tuple(reason for reason, _ in reasons.most_common())
            found.append(Uncovered(source, family, len(missing), len(group), told, missing[0].item))
    return found


def wrong(answers: Sequence[RuleAnswer]) -> list[RuleAnswer]:
    """The answers that do not agree with the item's label."""
    return [one for one in answers if one.answered and not one.right]


def _reason(resolution: Resolution) -> str:
    return f"{resolution.lack}: {resolution.detail}" if resolution.detail else str(resolution.lack)


def percent(one: Estimate) -> str:
    """`95.10 % (97/102)`; `none` without cases."""
    return f"{100 * one.value:.2f} % ({round(one.value * one.count)}/{one.count})" if one.count else "none"


def to_json(answers: Sequence[RuleAnswer]) -> dict[str, Any]:
    """Figures, uncovered families and every answer, for programs."""
    return {
        "figures": [
            {
                "source": one.source,
                **{
                    name.replace(" ", "_"): asdict(part) if part.count else None
                    for name, part in zip(COLUMNS[1:], one.shares, strict=True)
                },
            }
            for one in figures(answers)
        ],
        "uncovered": [
            {
                "source": one.source,
                "family": one.family,
                "unanswered": one.unanswered,
                "items": one.items,
                "reasons": list(one.reasons),
                "example": one.example.text,
            }
            for one in uncovered(answers)
        ],
        "answers": [_answer_json(one) for one in answers],
    }


def _answer_json(one: RuleAnswer) -> dict[str, Any]:
    judged = one.resolution.judgement
    return {
        "id": one.item.id,
        "source": one.item.source,
        "answer": one.resolution.answer,
        "label": one.item.answer,
        "lack": None if one.resolution.lack is None else _reason(one.resolution),
        "roles": None if judged is None else list(judged.roles),
        "stated": None if judged is None else list(judged.assumed),
        "proofs": None if judged is None else list(judged.proofs),
    }
