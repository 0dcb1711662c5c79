"""The study of the long tail on small knowledge bases with known scores."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hapax.evaluation.link.longtail import LongTailStudy, evaluate_long_tail
from hapax.kb.records import RUNS, Distribution, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.measures import Measure
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity, SpannedText


class ByNumber:
    """A likelihood model to which a name is as likely as its number is small: `dish 3` has -3 nats."""

    def __init__(self, name: str = "numbers", sign: float = 1.0, taught_by: tuple[str, ...] = ()) -> None:
        self.identity = ModelIdentity(name, taught_by=taught_by)
        self._sign = sign

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-1.0 * len(text), 1) for text in texts]

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        answers = []
        for text in texts:
            numbers = [int(text.text[start:end].split()[-1]) for start, end in text.spans]
            spans = tuple((-self._sign * number, 1) for number in numbers)
            answers.append(LogLikelihood(sum(total for total, _ in spans), len(spans), spans=spans))
        return answers


@pytest.fixture
def kb() -> KnowledgeBase:
    """Two rules with nine statements each, all of them in both ends, as a search with a wide beam leaves them."""
    store = KnowledgeBase()
    store.add(RUNS, [RunRecord("run", "search", {}, "run", "2026-01-01")])
    statements = [
        StatementRecord(
            rule, distribution, "run", (("D", f"dish {number}"),), f"{rule} dish {number} is hot", "all is well", {}
        )
        for rule in ("soup", "cake")
        for number in range(9)
        for distribution in Distribution
    ]
    store.add_statements(statements)
    return store


def judged(found: LongTailStudy, ranker: str, judge: str, measure: str) -> tuple[float, bool]:
    (split,) = [
        split
        for split in found.judged
        if (split.ranker, split.judge, split.measure) == (ranker, judge, measure) and split.judged_by == Measure.SPAN
    ]
    return split.auc.value, split.circular


def test_a_judge_measures_the_split_of_another(kb: KnowledgeBase) -> None:
    """An agreeing judge finds every head likelier than every long tail, a contrary judge none, the stored ends half."""
    found = evaluate_long_tail(kb, [ByNumber(), ByNumber("twin"), ByNumber("contrary", -1.0)]).value

    assert judged(found, "numbers", "twin", "span") == (1.0, False)
    assert judged(found, "numbers", "contrary", "span") == (0.0, False)
    assert judged(found, "as stored", "twin", "") == (0.5, False)
    assert (found.statements, found.rules) == (18, 2)


class ByDifference(ByNumber):
    """As `ByNumber`, but beside another name, a name is as likely as their numbers are near."""

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        answers = super().span_log_likelihoods(texts)
        for place, text in enumerate(texts):
            first, _, second = text.text.strip().partition(" has to do with ")
            if second:
                difference = int(first.split()[-1]) - int(second.strip(".").split()[-1])
                answers[place] = LogLikelihood(0.0, 1, spans=((-float(abs(difference)), 1),))
        return answers


def test_rare_pairs_are_those_of_the_commoner_names() -> None:
    """The measure of pairs divides the half of the statements with the commoner names; pairs judge what a search by it found."""
    store = KnowledgeBase()
    store.add(RUNS, [RunRecord("run", "search", {"likelihood": "model", "measure": "pair"}, "run", "2026-01-01")])
    store.add_statements(
        StatementRecord(
            "soup",
            Distribution.LONG_TAIL if number % 3 else Distribution.HEAD,
            "run",
            (("D", f"dish {number}"), ("S", f"sauce {number + number % 3}")),
            f"dish {number} has sauce {number + number % 3}",
            "all is well",
            {},
        )
        for number in range(12)
    )

    found = evaluate_long_tail(store, [ByDifference(), ByDifference("twin")]).value

    sizes = {size.measure: size for size in found.sizes if size.ranker == "numbers"}
    assert (sizes["pair"].head, sizes["pair"].long_tail) == (2, 2)
    assert (sizes["prior"].head, sizes["prior"].long_tail) == (4, 4)
    stored = {split.judged_by: split for split in found.judged if (split.ranker, split.judge) == ("as stored", "twin")}
    assert set(stored) == {Measure.SPAN, Measure.PAIR}
    # The names of the head are nearer to each other, which their own numbers do not show.
    assert stored[Measure.PAIR].auc.value > stored[Measure.SPAN].auc.value


def test_a_circular_judge_is_marked(kb: KnowledgeBase) -> None:
    """The ranker itself and its teacher are marked in every table and are no evidence."""
    pupil = ByNumber("pupil", taught_by=("numbers",))
    found = evaluate_long_tail(kb, [ByNumber(), pupil, ByNumber("stranger")]).value

    assert judged(found, "pupil", "numbers", "span") == (1.0, True)
    assert judged(found, "numbers", "pupil", "span") == (1.0, True)
    assert judged(found, "pupil", "stranger", "span") == (1.0, False)
    cells = next(row for row in found.to_result().tables[0].rows if row[:2] == ("pupil", "span"))
    assert cells[2:5] == ("1.00 (2/2)*", "1.00 (2/2)*", "1.00 (2/2)")
