"""Evaluation of answers by rules: coverage, accuracy, and the reasons for unanswered items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.results import ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import WinogradItem, pairs_of
from hapax.evaluation.winograd.theories.abstraction import abstracted, entity_name
from hapax.evaluation.winograd.theories.proving import Resolution

Resolve = Callable[[WinogradItem], Resolution]


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """An item with its resolution, and the resolution of its sentence with the two entities exchanged."""

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
        """True if the same role is meant after exchanging the entities, so that the answer is the other entity."""
        answer = self.resolution.answer
        return self.exchanged is not None and answer is not None and self.exchanged.answer == 1 - answer


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """Figures of a source. Accuracies are shares of answered items or pairs, coverages of all."""

    source: str
    coverage: Estimate
    accuracy: Estimate
    pair_coverage: Estimate
    pair_accuracy: Estimate
    consistency: Estimate
    """Share of families with only right answers among those with an answered pair: the paper's score, where covered."""
    invariance: Estimate
    """Share of answered items whose answer follows its entity when the entities are exchanged."""

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
    """A family with unanswered items: their number, the reasons, most frequent first, and an example."""

    source: str
    family: str
    unanswered: int
    items: int
    reasons: tuple[str, ...]
    example: WinogradItem


@dataclass(frozen=True, slots=True)
class RuleUse:
    """Sources and number of families whose answers a rule helped to prove, and how many of the answers are right."""

    rule: str
    sources: tuple[str, ...]
    families: int
    answers: int
    right: int


def answer_all(items: Iterable[WinogradItem], resolve: Resolve) -> list[RuleAnswer]:
    """Resolve every item, and answered items again with their entities exchanged."""
    answers = []
    for item in items:
        resolution = resolve(item)
        # Only an answer can follow its entity.
        counterpart = None if resolution.answer is None else exchanged(item)
        answers.append(RuleAnswer(item, resolution, None if counterpart is None else resolve(counterpart)))
    return answers


def exchanged(item: WinogradItem) -> WinogradItem | None:
    """The item with the entities exchanged in its sentence; its options keep their order."""
    sentence = abstracted(item.text, item.options)
    if sentence is None:
        return None
    first, second = map(entity_name, item.options)
    # The pronoun keeps its role, so after the exchange it means the other entity.
    return replace(item, text=sentence.shown((second, first)), answer=1 - item.answer, pronoun_start=None)


def figures(answers: Sequence[RuleAnswer]) -> list[SourceFigures]:
    """Figures of each source, in the order of the answers."""
    by_source: dict[str, list[RuleAnswer]] = {}
    for answer in answers:
        by_source.setdefault(answer.item.source, []).append(answer)
    return [_source_figures(source, group) for source, group in by_source.items()]


def _source_figures(source: str, answers: Sequence[RuleAnswer]) -> SourceFigures:
    by_id = {answer.item.id: answer for answer in answers}
    pairs_answered, pairs_right = [], []
    families: dict[str, bool] = {}
    for first_item, second_item in pairs_of([answer.item for answer in answers]):
        first, second = by_id[first_item.id], by_id[second_item.id]
        is_answered, is_right = first.answered and second.answered, first.right and second.right
        pairs_answered.append(is_answered)
        if is_answered:
            pairs_right.append(is_right)
            # One wrong pair makes its whole family wrong.
            families[first_item.family] = families.get(first_item.family, True) and is_right
    answered = [answer for answer in answers if answer.answered]
    return SourceFigures(
        source,
        coverage=share([answer.answered for answer in answers]),
        accuracy=share([answer.right for answer in answered]),
        pair_coverage=share(pairs_answered),
        pair_accuracy=share(pairs_right),
        consistency=share(list(families.values())),
        invariance=share([answer.kept for answer in answered]),
    )


def uncovered(answers: Sequence[RuleAnswer]) -> list[Uncovered]:
    """Families with unanswered items, in the order of the items."""
    families: dict[tuple[str, str], list[RuleAnswer]] = {}
    for answer in answers:
        families.setdefault((answer.item.source, answer.item.family), []).append(answer)
    gaps = []
    for (source, family), group in families.items():
        missing = [answer for answer in group if not answer.answered]
        if missing:
            counts = Counter(_reason(answer.resolution) for answer in missing)
            reasons = tuple(reason for reason, _ in counts.most_common())
            gaps.append(Uncovered(source, family, len(missing), len(group), reasons, missing[0].item))
    return gaps


def wrong(answers: Sequence[RuleAnswer]) -> list[RuleAnswer]:
    """Answers that differ from the item's label."""
    return [answer for answer in answers if answer.answered and not answer.right]


def _reason(resolution: Resolution) -> str:
    return f"{resolution.lack}: {resolution.detail}" if resolution.detail else str(resolution.lack)


def percent(estimate: Estimate) -> str:
    """`95.10 % (97/102)`; `none` without cases."""
    if not estimate.count:
        return "none"
    # An estimate holds the share; times the count, it is a whole number again.
    return f"{100 * estimate.value:.2f} % ({round(estimate.value * estimate.count)}/{estimate.count})"


# The mark of `proof_text` at a step by rule.
_RULE = re.compile(r"\[by rule (\w+)\]")


def rule_use(answers: Sequence[RuleAnswer]) -> list[RuleUse]:
    """Use of each rule in the proofs of answers, those of the fewest families first."""
    right: Counter[str] = Counter()
    families: dict[str, dict[tuple[str, str], None]] = {}
    used: Counter[str] = Counter()
    for answer in answers:
        number, judged = answer.resolution.answer, answer.resolution.judgement
        proof = None if number is None or judged is None else judged.proofs[number]
        for name in dict.fromkeys(_RULE.findall(proof or "")):
            used[name] += 1
            right[name] += answer.right
            families.setdefault(name, {})[answer.item.source, answer.item.family] = None
    uses = []
    for name, served in families.items():
        sources = tuple(dict.fromkeys(source for source, _ in served))
        uses.append(RuleUse(name, sources, len(served), used[name], right[name]))
    return sorted(uses, key=lambda use: (use.families, use.rule))


def rules_result(answers: Sequence[RuleAnswer], *, pair_consistent: bool = False) -> ExperimentResult:
    """Figures by source, wrong answers and uncovered families; for programs also every answer.

    `pair_consistent`: the answers are those of `answer_pairs`, and the result says so.
    """
    by_source, missing = figures(answers), uncovered(answers)
    tables = [ResultTable("", COLUMNS, [(source.source, *map(percent, source.shares)) for source in by_source])]
    wrong_rows = []
    for answer in wrong(answers):
        item = answer.item
        wrong_rows.append((item.id, item.text, item.options[1 - item.answer], item.options[item.answer]))
    if wrong_rows:
        columns = ("item", "sentence", "answer", "label")
        tables.append(ResultTable("Answers that differ from the label", columns, wrong_rows))
    missing_rows = []
    for family in missing:
        unanswered = f"{family.unanswered} of {family.items}"
        missing_rows.append((family.family, family.source, unanswered, "; ".join(family.reasons), family.example.text))
    if missing_rows:
        columns_missing = ("family", "source", "unanswered", "reasons", "example")
        tables.append(ResultTable("Not covered", columns_missing, missing_rows))
    uses = rule_use(answers)
    served = [(use.rule, ", ".join(use.sources), use.families, use.answers, use.right) for use in uses]
    if served:
        columns_served = ("rule", "sources", "families", "answers", "right")
        tables.append(ResultTable("Sets that each rule serves, those of one family first", columns_served, served))
    source_figures = []
    for source in by_source:
        shares: dict[str, Estimate | None] = {}
        for name, estimate in zip(COLUMNS[1:], source.shares, strict=True):
            shares[name.replace(" ", "_")] = estimate if estimate.count else None  # no cases, no share
        source_figures.append({"source": source.source, **shares})
    notes = ["Accuracies are shares of the answered items or pairs."]
    if pair_consistent:
        notes.append("Pair-consistent: the sentences of a pair have different answers, by what is known of both.")
    for_programs = {
        "pair_consistent": pair_consistent,
        "figures": source_figures,
        "rules": [asdict(use) for use in uses],
        "uncovered": [{**asdict(family), "example": family.example.text} for family in missing],
        "answers": [_answer_json(answer) for answer in answers],
    }
    return ExperimentResult(tables, for_programs, notes=notes)


def _answer_json(answer: RuleAnswer) -> dict[str, Any]:
    judged = answer.resolution.judgement
    return {
        "id": answer.item.id,
        "source": answer.item.source,
        "answer": answer.resolution.answer,
        "label": answer.item.answer,
        "probability": answer.resolution.probability,
        "lack": None if answer.resolution.lack is None else _reason(answer.resolution),
        "roles": None if judged is None else judged.roles,
        "stated": None if judged is None else judged.assumed,
        "proofs": None if judged is None else judged.proofs,
    }
