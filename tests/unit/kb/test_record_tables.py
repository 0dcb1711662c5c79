"""The tables of a knowledge base: each record comes back as it was, and no answer that was paid for is lost."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.grammar.errors import HapaxError
from hapax.kb import records
from hapax.kb.rows import OnConflict
from hapax.kb.store import KnowledgeBase

CALL = records.CallRecord(
    "r1", "knowledge", "embedded", {"prompt": "Give me"}, {"text": "1. saffron"}, 7, 3, 0.5, "2026-01-01"
)


def some_fact(value: Any, source: records.Source = records.Source.MODEL, **other: Any) -> records.FactRecord:
    return records.FactRecord("is_old", (value,), ("City",), source, **other)


TEXT = st.text(max_size=5)
VALUE = st.one_of(TEXT, st.integers(), st.decimals(allow_nan=False, allow_infinity=False))
PROBABILITY = st.floats(0, 1)
NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.just(float("-inf"))
SCORE = st.none() | NUMBER
NAMES = st.lists(TEXT).map(tuple)
COUNT = st.integers(-(2**63), 2**63 - 1)
TREE = st.dictionaries(TEXT, VALUE | st.lists(SCORE))
PATTERN = st.builds(records.AtomPattern, TEXT, st.lists(VALUE | st.none(), max_size=3).map(tuple))
PLAIN = st.dictionaries(TEXT, TEXT | st.lists(SCORE))
SOME_TEXT = st.none() | TEXT
VALUES = st.lists(VALUE).map(tuple)
RECORDS: list[tuple[Any, Any]] = [
    (records.RULE_TEXTS, st.builds(records.RuleTextRecord, TEXT, TEXT, TEXT)),
    (records.RULES, st.builds(records.RuleRecord, TEXT, TEXT, SOME_TEXT, SOME_TEXT, SOME_TEXT)),
    (records.PREDICATES, st.builds(records.PredicateRecord, TEXT, NAMES, TEXT, SOME_TEXT)),
    (records.TYPE_FACTS, st.builds(records.TypeFact, VALUE, TEXT, st.none() | PROBABILITY)),
    (records.QUESTIONS, st.builds(records.QuestionRow, st.lists(PATTERN).map(tuple), TEXT, st.booleans(), COUNT, COUNT, st.booleans())),
    (records.CALLS, st.builds(records.CallRecord, TEXT, TEXT, TEXT, PLAIN, PLAIN, COUNT, COUNT, SCORE, TEXT)),
    (records.ATTEMPTS, st.builds(records.AttemptRecord, TEXT, TEXT, TEXT, TEXT, TEXT, SOME_TEXT, st.none() | st.sampled_from(records.Outcome), COUNT, COUNT, SCORE)),
    (records.CANDIDATES, st.builds(records.Candidate, TEXT, VALUE, TEXT, TEXT, COUNT, SOME_TEXT)),
    (records.ASSESSMENTS, st.builds(records.Assessment, TEXT, TEXT, TEXT, NUMBER, COUNT, SOME_TEXT)),
    (records.DECISIONS, st.builds(records.Decision, TEXT, TEXT, TEXT, st.booleans(), SCORE, SCORE, TEXT, SOME_TEXT, st.none() | st.sampled_from(records.Distribution), st.none() | COUNT, NAMES)),
    (records.FACTS, st.builds(records.FactRecord, TEXT, VALUES.filter(bool), NAMES, st.sampled_from(records.Source), st.none() | PROBABILITY, SOME_TEXT, SOME_TEXT)),
    (records.STATEMENTS, st.builds(records.StatementRecord, TEXT, st.sampled_from(records.Distribution), TEXT, st.lists(st.tuples(TEXT, VALUE)).map(tuple), TEXT, TEXT, TREE, SCORE)),
    (records.RUNS, st.builds(records.RunRecord, TEXT, TEXT, TREE, TEXT, TEXT, SOME_TEXT, TEXT, TREE)),
    (records.VOTES, st.builds(records.VoteRecord, TEXT, TEXT, TEXT, TEXT, TEXT)),
    (records.DENIALS, st.builds(records.DenialRecord, TEXT, VALUES, PROBABILITY, SOME_TEXT)),
    (records.CONFLICTS, st.builds(records.ConflictRecord, TEXT, NAMES, NAMES, TEXT, TEXT)),
    (records.WITHDRAWALS, st.builds(records.Withdrawal, TEXT, VALUES, NAMES, st.sampled_from(records.Source), st.none() | PROBABILITY, SOME_TEXT, SOME_TEXT, SOME_TEXT, reason=TEXT, author=TEXT, withdrawn=TEXT, restored=SOME_TEXT)),
    (records.LABELS, st.builds(records.FactLabel, TEXT, VALUES, st.booleans(), TEXT)),
    (records.CALIBRATIONS, st.builds(records.CalibrationRecord, TEXT, TEXT, PLAIN, NAMES, NAMES, PLAIN, TEXT)),
    (records.CERTIFICATES, st.builds(records.CertificateRecord, TEXT, PROBABILITY, PROBABILITY, TEXT, PLAIN, SCORE, COUNT, COUNT, PROBABILITY, COUNT, COUNT, TEXT, SCORE, TEXT, TEXT, TEXT, TEXT, PLAIN)),
    (records.JUDGING_DRAWS, st.builds(records.JudgingDraw, TEXT, TEXT, PLAIN, PROBABILITY, TEXT)),
    (records.DRAWN_ITEMS, st.builds(records.DrawnItem, TEXT, TEXT, PROBABILITY, PROBABILITY, PROBABILITY)),
    (records.MODEL_PROFILES, st.builds(records.ProfileRecord, TEXT, TEXT, st.dictionaries(TEXT, st.integers(0, 99)))),
]  # fmt: skip


@pytest.mark.parametrize(("table", "strategy"), RECORDS, ids=[table.name for table, _ in RECORDS])
@given(data=st.data())
@settings(max_examples=cases(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_record_comes_back_as_it_was(table: Any, strategy: Any, data: st.DataObject) -> None:
    """Records of every table are read back equal, and writing them twice changes nothing."""
    record = data.draw(strategy)
    with KnowledgeBase() as kb:
        for _ in range(2):
            kb.add(table, [record])
        assert kb.add(table, [record], OnConflict.KEEP) == 0
        assert kb.select(table) == [record]


def test_every_table_of_records_is_among_them() -> None:
    """No table is left out of the round trip."""
    assert {table.name for table, _ in RECORDS} == {table.name for table in records.TABLES}


@pytest.mark.parametrize(
    ("table", "record", "place"),
    [
        (records.FACTS, some_fact("half \ud83d"), "facts.arguments"),
        (records.FACTS, some_fact(1 << 20_000), "facts.arguments"),
        (records.FACTS, some_fact("x", probability=math.nan), "facts.probability"),
        (records.CANDIDATES, records.Candidate("q", "x", "\udcff", "c", 1), "candidates.raw"),
        (records.CANDIDATES, records.Candidate("q", "x", "x", "c", 2**63), "candidates.position"),
        (records.CALLS, replace(CALL, request={"x": Decimal(1)}), "calls.request"),
    ],
    ids=range(6),
)
def test_what_cannot_be_stored_is_refused_with_its_whole_batch(
    fresh_kb: KnowledgeBase, table: Any, record: Any, place: str
) -> None:
    """A refusal names table and column; the records beside the refused one are not written either."""
    with pytest.raises(HapaxError, match=f"^{place}: "):
        fresh_kb.add(table, [record])
    with pytest.raises(HapaxError, match="argument 1 of is_old"):
        fresh_kb.add_facts([some_fact("fine"), some_fact("\ud83d")])

    assert not any(fresh_kb.counts().values())


def test_a_paid_answer_stays_as_it_came(fresh_kb: KnowledgeBase) -> None:
    """With half a character, or maps that look like numbers; a second answer to a request does not replace it."""
    call = replace(CALL, request={"price": {"decimal": "1"}}, response={"text": "half \ud83d"})
    fresh_kb.record_calls([call])
    fresh_kb.record_calls([replace(call, response={"text": "another"})])

    assert fresh_kb.calls(["r1", "none", "\ud83d"]) == {"r1": call}
    with pytest.raises(RuntimeError, match="not safe"), fresh_kb.transaction():
        fresh_kb.record_calls([replace(call, request_id="r2")])


def test_the_better_fact_stays(fresh_kb: KnowledgeBase) -> None:
    """A given fact beats a model's and a surer one a less sure one, in whatever order they come."""
    weak, strong = some_fact("Ur", probability=0.7), some_fact("Ur", probability=0.9)
    for fact in (weak, strong, weak):
        fresh_kb.add_facts([fact])
    assert fresh_kb.facts() == [strong]

    asserted = some_fact("Ur", records.Source.GIVEN)
    fresh_kb.add_facts([asserted])
    fresh_kb.add_facts([strong])
    assert fresh_kb.facts() == [asserted]


def add_and_fail(kb: KnowledgeBase, value: str) -> None:
    with kb.transaction():
        kb.add_facts([some_fact(value)])
        raise ZeroDivisionError


def test_a_transaction_is_all_or_nothing(fresh_kb: KnowledgeBase) -> None:
    """An exception undoes its transaction; an inner transaction can fail alone."""
    with pytest.raises(ZeroDivisionError):
        add_and_fail(fresh_kb, "Ur")
    assert fresh_kb.facts() == []

    with fresh_kb.transaction():
        fresh_kb.add_facts([some_fact("Ur")])
        with pytest.raises(ZeroDivisionError):
            add_and_fail(fresh_kb, "Troy")
    assert fresh_kb.facts() == [some_fact("Ur")]
