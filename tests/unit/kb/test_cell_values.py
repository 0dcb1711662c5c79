"""Values in cells of SQLite, and the identities that rest on how they are written."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import CutDecimal, Value, decimal_of
from hapax.kb import judgement_records, records, schema
from hapax.kb.atoms.sql_arithmetic import Calculated, Cell, ExactArithmetic
from hapax.kb.atoms.symbols import Symbols
from hapax.kb.exchange import values
from hapax.kb.records import content_id
from hapax.kb.rows import OnConflict
from hapax.kb.store import KnowledgeBase

DECIMAL = st.decimals(allow_nan=False, allow_infinity=False)
ANY_VALUE = st.one_of(st.text(), st.integers(), st.integers(-(2**200), 2**200), DECIMAL)
NO_THIRDS = [json.dumps({"decimal": "0.3333333333333333333333333333", "exact": text}) for text in ("1/2", "1/0", "x")]
JSON_TREE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(ANY_VALUE | st.none()))
def test_values_come_back_exactly(items: list[Value | None]) -> None:
    """Texts, integers of any size and decimals come back as what they were, None as the free position."""
    encoded = values.encode_values(tuple(items))

    assert [repr(item) for item in values.decode_values(encoded)] == [repr(item) for item in items]


@given(st.fractions())
def test_a_number_that_never_ends_comes_back_exactly(exact: Any) -> None:
    """A third is written with its first digits and its fraction, and no fact can have it."""
    number = decimal_of(exact)
    cell = values.encode_value(number)

    assert values.decode_value(cell) == number
    if isinstance(number, CutDecimal):
        assert json.loads(cell) == {"decimal": str(number), "exact": str(exact)}
        assert values.refusal(number)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("half \ud83d", "U+D83D"),
        ("caf\udce9", "0xE9"),
        (1 << 20_000, "bits"),
        (Decimal("NaN"), "finite"),
        (Decimal("-Infinity"), "finite"),
        (True, "bool"),
        (1.5, "float"),
        (b"bytes", "bytes"),
    ],
    ids=["surrogate", "byte", "long integer", "nan", "infinity", "bool", "float", "bytes"],
)
def test_what_cannot_be_held_is_refused_with_a_reason(value: Any, reason: str) -> None:
    """A value that would not come back exactly is an expected error that says why."""
    assert reason in values.refusal(value)
    with pytest.raises(HapaxError, match=reason.replace("+", r"\+")):
        values.encode_value(value)


@pytest.mark.parametrize(
    "cell",
    ["true", "[1]", "{}", "null", '{"decimal":"x"}', '{"decimal":"NaN"}', "NaN", *NO_THIRDS, "[" * 10**5],
    ids=lambda cell: cell[:20],
)
def test_cells_that_hold_no_value_are_errors(cell: str) -> None:
    """A cell that another program wrote never becomes a value, and never ends the process."""
    with pytest.raises(ValueError, match=r"."):
        values.decode_value(cell)


@given(st.dictionaries(st.text(), JSON_TREE, max_size=3))
@settings(max_examples=30)
def test_trees_come_back_exactly(tree: dict[str, Any]) -> None:
    """A server's response is read back unchanged, maps that look like a decimal included."""
    assert values.decode_tree(values.encode_tree(tree, decimals=False), decimals=False) == tree


@given(JSON_TREE, st.booleans())
def test_the_writer_writes_what_the_encoder_of_json_writes(tree: Any, ascii_only: bool) -> None:
    """Identities rest on it, so it may differ in no character."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, separators=(",", ":"), sort_keys=True)

    assert values.writer(encoder)(tree) == encoder.encode(tree)


def test_proofs_hold_decimals_and_answers_half_characters() -> None:
    """A proof may hold decimals; an answer with half a character is kept, for it was paid for."""
    tree = {"value": Decimal("1.50"), "text": "half \ud83d", "looks like one": {"decimal": "no"}}

    assert values.decode_tree(values.encode_tree(tree)) == tree
    with pytest.raises(values.ValueRefused):
        values.encode_tree({"a": Decimal(1)}, decimals=False)


def test_trees_refuse_what_json_cannot_hold() -> None:
    """An object, a nesting without end, and a text that is no map are refused."""
    endless: dict[str, object] = {}
    endless["self"] = endless
    for tree in ({"x": object()}, {"x": {1, 2}}, endless):
        with pytest.raises(HapaxError, match="JSON"):
            values.encode_tree(tree)
    for text in ("[1]", "[" * 10**5):
        with pytest.raises((TypeError, ValueError)):
            values.decode_tree(text)


@given(DECIMAL, DECIMAL)
def test_identities_of_decimals_agree_with_equality(first: Decimal, second: Decimal) -> None:
    """Two decimals have one identity exactly when they are equal."""
    assert (content_id("x", first) == content_id("x", second)) == (first == second)


LARGEST = (1 << 60) - 1
"""The largest whole number that is its own tag."""
NUMBERS: list[int | Decimal] = [0, 1, -3, LARGEST, -LARGEST, LARGEST + 1, 1 << 70, Decimal("0.1"), Decimal("-2.75")]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as opened:
        opened.execute("CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE)")
        yield opened
    opened.close()


def test_tags_of_numbers_are_odd_and_those_of_symbols_even(connection: sqlite3.Connection) -> None:
    """A whole number n has the tag 2n + 1; others have rows, in the order in which they come, and equal ones share one."""
    held = Symbols(connection)

    assert held.tags([0, -1, LARGEST, Decimal("3.0")]) == [1, -1, 2 * LARGEST + 1, 7]
    assert held.last_tag == 0
    assert held.tags(["b", "a", Decimal("0.50"), Decimal("0.5")]) == [2, 4, 6, 6]
    assert held.tag(LARGEST + 1) == 8
    assert held.last_tag == 8
    # Another process reads the rows, and goes on behind them.
    other = Symbols(connection)
    assert other.tags(["c", "b"]) == [10, 2]
    assert other.values([1, 2, 6, 8, 10, -7, 9]) == {
        1: 0, 2: "b", 6: Decimal("0.5"), 8: LARGEST + 1, 10: "c", -7: -4, 9: 4,
    }  # fmt: skip
    assert dict(other.encoded([9, 2, 10])) == {9: "4", 2: '"b"', 10: '"c"'}


def test_calculated_numbers_have_the_tags_of_equal_constants(connection: sqlite3.Connection) -> None:
    """A whole result is its own tag; another has the tag that it has, or a new one, which is stored afterwards."""
    held = Symbols(connection)
    half = held.tag(Decimal("0.5"))
    function = ExactArithmetic(held).value(Calculated("/", (Cell("?1"), Cell("?2"))))

    def tag(above: Value, below: Value) -> object:
        return connection.execute(f"SELECT {function}", (held.tag(above), held.tag(below))).fetchone()[0]

    assert (tag(6, 2), tag(-6, 2), tag(1, 2), tag(1, 0), tag("x", 2)) == (7, -5, half, None, None)
    quarter, third = tag(1, 4), tag(1, 3)
    assert tag(2, 8) == quarter
    held.store_made()
    other = Symbols(connection)
    assert other.tag(Decimal("0.25")) == quarter
    assert other.exact(int(str(third))) == Fraction(1, 3)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
@pytest.mark.parametrize("left", NUMBERS)
@pytest.mark.parametrize("right", NUMBERS)
def test_sql_calculates_exactly(connection: sqlite3.Connection, sign: str, left: Value, right: Value) -> None:
    """At the ends of machine words and beyond, and with decimals, results are those of fractions."""
    held = Symbols(connection)
    cells = [Cell(str(held.tag(value))) for value in (left, right)]
    (found,) = connection.execute(f"SELECT {ExactArithmetic(held).value(Calculated(sign, tuple(cells)))}").fetchone()
    one, other = Fraction(left), Fraction(right)
    results = {"+": one + other, "-": one - other, "*": one * other, "/": one / other if other else None}

    assert (None if found is None else held.exact(found)) == results[sign]


@pytest.mark.parametrize("left", [*NUMBERS, "x"])
@pytest.mark.parametrize("right", [*NUMBERS, "1"])
def test_sql_compares_exactly(connection: sqlite3.Connection, left: Value, right: Value) -> None:
    """Numbers are ordered as fractions are, texts by their characters, and a number and a text not at all."""
    held = Symbols(connection)
    arithmetic = ExactArithmetic(held)
    cells = [Cell(str(held.tag(value))) for value in (left, right)]
    signs = ["<", "=<", ">", ">=", "=", "\\="]
    (*found,) = connection.execute(f"SELECT {', '.join(arithmetic.comparison(s, *cells) for s in signs)}").fetchone()
    if isinstance(left, str) != isinstance(right, str):
        assert found == [0] * 6
    else:
        one, other = (side if isinstance(side, str) else Fraction(side) for side in (left, right))
        assert found == [one < other, one <= other, one > other, one >= other, one == other, one != other]


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
    (judgement_records.VOTES, st.builds(judgement_records.VoteRecord, TEXT, TEXT, TEXT, TEXT, TEXT)),
    (records.DENIALS, st.builds(records.DenialRecord, TEXT, VALUES, PROBABILITY, SOME_TEXT)),
    (records.CONFLICTS, st.builds(records.ConflictRecord, TEXT, NAMES, NAMES, TEXT, TEXT)),
    (records.WITHDRAWALS, st.builds(records.Withdrawal, TEXT, VALUES, NAMES, st.sampled_from(records.Source), st.none() | PROBABILITY, SOME_TEXT, SOME_TEXT, SOME_TEXT, reason=TEXT, author=TEXT, withdrawn=TEXT, restored=SOME_TEXT)),
    (judgement_records.LABELS, st.builds(judgement_records.FactLabel, TEXT, VALUES, st.booleans(), TEXT)),
    (judgement_records.CALIBRATIONS, st.builds(judgement_records.CalibrationRecord, TEXT, TEXT, PLAIN, NAMES, NAMES, PLAIN, TEXT)),
    (judgement_records.CERTIFICATES, st.builds(judgement_records.CertificateRecord, TEXT, PROBABILITY, PROBABILITY, TEXT, PLAIN, SCORE, COUNT, COUNT, PROBABILITY, COUNT, COUNT, TEXT, SCORE, TEXT, TEXT, TEXT, TEXT)),
    (judgement_records.JUDGING_DRAWS, st.builds(judgement_records.JudgingDraw, TEXT, TEXT, PLAIN, PROBABILITY, TEXT)),
    (judgement_records.DRAWN_ITEMS, st.builds(judgement_records.DrawnItem, TEXT, TEXT, PROBABILITY, PROBABILITY, PROBABILITY)),
    (records.LEFT_OUT_ROWS, st.builds(records.LeftOutRow, TEXT, COUNT, TEXT, NAMES, TEXT)),
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
    assert {table.name for table, _ in RECORDS} == {table.name for table in schema.TABLES}


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


def test_known_symbols_are_looked_up_without_writing(connection: sqlite3.Connection) -> None:
    """A connection that only reads gets the tags of symbols that are there."""
    Symbols(connection).tags(["a", "b"])
    connection.execute("PRAGMA query_only = ON")

    assert Symbols(connection).tags(["b", "a"]) == [4, 2]
