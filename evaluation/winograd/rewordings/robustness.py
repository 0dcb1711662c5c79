"""Robustness under rewording: accuracy of each rewording beside the originals, and the answers that stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.resolving import resolve_schemas
from hapax.evaluation.winograd.runs import StoredRun, stored_runs
from hapax.evaluation.winograd.scores import McNemar, SentenceAnswer, mcnemar
from hapax.evaluation.winograd.tables import shortened
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.store import KnowledgeBase

ORIGINAL = "original"
Answers = Mapping[str, int | None]
"""Answers by item id: 0 or 1, the option chosen, or None."""


@dataclass(frozen=True, slots=True)
class RobustnessRow:
    """A method on the sentences of one rewording, or on the originals.

    `accuracy` is the share of right answers among the answered sentences, `pairs` that of pairs with two right answers
    among all pairs. `kept`: share of answered originals whose rewording has the same answer. `test`: originals against
    their rewordings, an unanswered sentence not being right. The last two are None for the originals.
    """

    method: str
    source: str
    rewording: str
    coverage: Estimate
    accuracy: Estimate
    pairs: Estimate
    kept: Estimate | None
    test: McNemar | None


@checked
@extras_named()
def measure_robustness(
    items: Sequence[WinogradItem], methods: Sequence[str] = ("patterns",), *, kb: KnowledgeBase | None = None
) -> Evaluation[list[RobustnessRow]]:
    """Accuracy and kept answers under rewording, by method, with McNemar's test against the originals.

    `items`: originals and rewordings, of `reword_schemas` or of a perturbed set. `methods`: those of `resolve_schemas`,
    which are asked now. `kb`: the answers of models that `ask_schemas` stored there are measured, too. Raises
    HapaxError if no item is a rewording.
    """
    # Before any sentence is resolved, which takes a while.
    if not any(item.rewording for item in items):
        raise HapaxError(
            "None of the sentences is a rewording.", Remedy("Make some with {}.", Operation("reword_schemas", "FILE"))
        )
    answers: dict[str, dict[str, int | None]] = {}
    for method in methods:
        resolved = resolve_schemas(items, method=method).value
        answers[method] = {answer.item.id: answer.resolution.answer for answer in resolved}
    if kb is not None:
        answers |= stored_answers(shortened(stored_runs(kb)), items)
    rows = robustness(items, answers)
    return Evaluation(rows, _result(rows))


def robustness(items: Sequence[WinogradItem], answers: Mapping[str, Answers]) -> list[RobustnessRow]:
    """A row for each method, source and rewording, the originals first. `answers`: those of each method.

    A method is measured on the sentences that it has an entry for.
    """
    groups: dict[tuple[str, str], list[WinogradItem]] = {}
    for item in items:
        groups.setdefault((item.source, item.rewording), []).append(item)
    rows = []
    for method, by_id in answers.items():
        for source in dict.fromkeys(item.source for item in items):
            originals = _answered(groups.get((source, ""), []), by_id)
            for (group_source, rewording), group in groups.items():
                if group_source == source and (reworded := _answered(group, by_id)):
                    rows.append(_row(method, originals, reworded, source, rewording))
    return rows


def _answered(items: Iterable[WinogradItem], answers: Answers) -> dict[str, SentenceAnswer]:
    """Answers of the method to these items, by the identity that a sentence shares with its rewordings."""
    by_base = {}
    for item in items:
        if item.id in answers:
            answer = answers[item.id]
            released = -1 if answer is None else answer
            base = item.base or item.id
            by_base[base] = SentenceAnswer(base, item.pair, item.family, item.answer, answer, released)
    return by_base


def _row(
    method: str,
    originals: Mapping[str, SentenceAnswer],
    reworded: Mapping[str, SentenceAnswer],
    source: str,
    rewording: str,
) -> RobustnessRow:
    answered = [answer for answer in reworded.values() if answer.strict is not None]
    pairs: dict[str, list[bool]] = {}
    for answer in reworded.values():
        pairs.setdefault(answer.pair, []).append(answer.right)
    kept, test = None, None
    if rewording:
        # Paired by the original, because McNemar's test compares answers to the same sentence.
        counterparts = [(originals[base], answer) for base, answer in reworded.items() if base in originals]
        kept = share([new.strict == old.strict for old, new in counterparts if old.strict is not None])
        test = mcnemar([old for old, _ in counterparts], [new for _, new in counterparts])
    return RobustnessRow(
        method,
        source,
        rewording or ORIGINAL,
        coverage=share([answer.strict is not None for answer in reworded.values()]),
        accuracy=share([answer.right for answer in answered]),
        # A sentence whose partner could not be reworded is not a pair.
        pairs=share([all(right) for right in pairs.values() if len(right) == 2]),
        kept=kept,
        test=test,
    )


def stored_answers(runs: Iterable[StoredRun], items: Sequence[WinogradItem]) -> dict[str, dict[str, int | None]]:
    """Answers of finished runs to these items, by model and method. Runs on other sentences are left out."""
    labels = {item.id: item.answer for item in items}
    by_method: dict[str, dict[str, int | None]] = {}
    for run in runs:
        known = {answer.item: answer.strict for answer in run.answers if labels.get(answer.item) == answer.gold}
        if run.status == "done" and known:
            by_method.setdefault(f"{run.name}, {run.label}", {}).update(known)
    return by_method


COLUMNS = ("method", "source", "rewording", "answered", "right of answered", "pairs right", "same answer", "p")


def _result(rows: Sequence[RobustnessRow]) -> ExperimentResult:
    """The rows as one table, with 95 % intervals and McNemar's test against the originals."""
    cells = []
    for row in rows:
        shares = [_percent(estimate) for estimate in (row.coverage, row.accuracy, row.pairs, row.kept)]
        p_value = "" if row.test is None else f"{row.test.p_value:.3g}"
        cells.append((row.method, row.source, row.rewording, *shares, p_value))
    notes = [
        "Same answer: of the answered originals, those whose rewording has the same answer. p: McNemar's exact test of "
        "right answers, originals against rewordings."
    ]
    return ExperimentResult([ResultTable("", COLUMNS, cells)], list(rows), notes=notes)


def _percent(estimate: Estimate | None) -> str:
    return "" if estimate is None else estimate.text(1, 0, scale=100, empty="-")
