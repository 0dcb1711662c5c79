"""Replies become values by LINK's clean-up rules, or rejections with a reason."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.llm_oracle.answers import (
    LONGEST_VALUE,
    MOST_LINES,
    parse_number,
    parse_values,
    parse_yes_no,
    render_values,
    yes_probability,
)

KEPT = [
    ("1. butter.", "butter"),
    ("12) butter.", "butter"),
    ("(3) butter.", "butter"),
    ("4.butter.", "butter"),
    ("- butter.", "butter"),
    ("• butter.", "butter"),
    ("butter.", "butter"),
    ('5. "butter".', "butter"),
    ('5. "butter."', "butter"),
    ('"5. butter."', "butter"),
    ("5. “butter”.", "butter"),
    ("5. 'butter'.", "butter"),
    ("5. **butter**.", "butter"),
    ("6. St. John's wort.", "St. John's wort"),
    ("7. 7 Up.", "7 Up"),
    ("8. U.S.A..", "U.S.A."),
    ("9. butter, salted.", "butter"),
    ("10. butter (salted).", "butter"),
    ("10. butter (salted (Irish)).", "butter"),
    ("10. butter (salted.", "butter"),
    ("11. Dairy: butter.", "butter"),
    ("11. Dairy product - butter.", "butter"),
    ("12. saag   chicken.", "saag chicken"),
    ("13. Vitamin B.", "Vitamin B"),
    ("14. café au lait.", "café au lait"),
    ("15. cafe\u0301.", "café"),
    ("16. بامية.", "بامية"),
    ("17. butter'); DROP TABLE facts;--.", "butter'; DROP TABLE facts;--"),
    ("18. " + "x" * LONGEST_VALUE + ".", "x" * LONGEST_VALUE),
]

DROPPED = [
    ("1. butter", "full stop"),
    ("Here are 50 values:", "full stop"),
    ("2. butter...", "trails off"),
    ("3. " + "x" * (LONGEST_VALUE + 1) + ".", "more than 64"),
    ("4. " + "x" * 10_000 + ".", "more than 64"),
    ("5. butter/ghee.", "slash"),
    ("6. butter, ghee, lard.", "two commas"),
    ("7. B.", "names the variable"),
    ("7. [B].", "names the variable"),
    ("7. B is a dish.", "names the variable"),
    ("7. B = saag.", "names the variable"),
    ("8. dish.", "repeats the data type"),
    ("8. A  Dish.", "repeats the data type"),
    ("9. (nothing).", "empty"),
    ("10. ?!.", "empty"),
    ("11.", "list number without a value"),
    ("12. a\x00b.", "control character"),
    ("13. a\u202eb.", "control character"),
    ("14. a\ud800b.", "control character"),
]


@pytest.mark.parametrize(("line", "value"), KEPT)
def test_line_becomes_value(line: str, value: str) -> None:
    """A list item keeps its words and loses numbering, quotes, parentheses, labels and full stop."""
    (parsed,) = parse_values(line, "B", "Dish")

    assert (parsed.value, parsed.rejected, parsed.raw) == (value, None, line)


@pytest.mark.parametrize(("line", "reason"), DROPPED)
def test_line_is_dropped_with_its_reason(line: str, reason: str) -> None:
    """A line that is not a value says why, and which line it was."""
    lines = parse_values(f"10. first.\n\n{line}", "B", "Dish")

    assert len(lines) == 2
    assert lines[1].position == 1
    assert reason in (lines[1].rejected or "")


def test_repeated_value_is_dropped() -> None:
    """The second mention of a value in one reply is a rejection that points to the first."""
    lines = parse_values("1. butter.\n2. ghee.\n3. Butter.", "B", "Ingredient")

    assert [line.rejected for line in lines] == [None, None, "repeats line 1"]


NUMBERS = [
    ("1. 1876.", 1876),
    ("1876.", 1876),
    ("1. 1,876.", 1876),
    ("1. 3.50.", Decimal("3.5")),
    ("1. 5.0.", 5),
    ("1. -40.", -40),
    ("1. −40.", -40),
    ("1. 44 BC.", -44),
    ("1. 79 A.D..", 79),
    ("1. about 5 kilograms.", 5),
    ("1. 0.00000000010.", Decimal("0.0000000001")),
    ("1. c. 1500.", 1500),
    ("1. Weight: 70 kilogram.", 70),
    ("1. 30 (on average).", 30),
    ("1. " + "9" * 40 + ".", int("9" * 40)),
]


@pytest.mark.parametrize(("line", "number"), NUMBERS)
def test_numeric_type_yields_numbers(line: str, number: int | Decimal) -> None:
    """A numeric type's values are integers or decimals in one form each."""
    (parsed,) = parse_values(line, "Y", "Kilograms", numeric=True)

    assert parsed.rejected is None
    assert parsed.value == number
    assert type(parsed.value) is type(number)


@pytest.mark.parametrize(
    "text", ["5 million", "1914-1918", "19th", "٣", "five", "5 tons", "1e9", "NaN", "1" * 10_000, ""]
)
def test_other_texts_are_no_number(text: str) -> None:
    """Ranges, factors, foreign units and words are no numbers, and a numeric value says so."""
    (parsed,) = parse_values(f"1. x{text}x.", "Y", "Kilograms", numeric=True)

    assert parse_number(text, "Kilograms") is None
    assert parsed.rejected


def test_text_after_the_last_item_is_no_number() -> None:
    """A list cut behind its last number leaves no value `2`."""
    lines = parse_values("1. 1876.\n2.", "Y", "Year", numeric=True)

    assert [(line.value, line.rejected is None) for line in lines] == [(1876, True), ("", False)]


WORDS = st.text(
    alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd"], include_characters=" '-.&"),
    min_size=1,
    max_size=LONGEST_VALUE,
)


def _is_plain(value: str) -> bool:
    """A value that says one thing: nothing in it that the clean-up takes for mark-up."""
    import unicodedata

    return (
        value == " ".join(unicodedata.normalize("NFC", value).split())
        and len(value) <= LONGEST_VALUE
        and value[:1].isalpha()
        and value[-1:].isalpha()
        and " - " not in value
        and value.casefold() not in ("dish", "a dish", "the dish", "an dish")
        and not value.startswith(("BB ", "BB="))
        and value != "BB"
        and "values of BB" not in value
        and "value of BB" not in value
    )


@given(st.lists(WORDS.filter(_is_plain), max_size=12, unique_by=str.casefold))
def test_rendered_values_are_read_back(values: list[str]) -> None:
    """Parsing a rendered list gives the values themselves, all kept, in order."""
    parsed = parse_values(render_values(values), "BB", "Dish")

    assert [item.value for item in parsed] == values
    assert not any(item.rejected for item in parsed)


@given(st.lists(st.integers(-(10**20), 10**20) | st.decimals(-1000, 1000, places=3), max_size=12))
def test_rendered_numbers_are_read_back(numbers: list[int | Decimal]) -> None:
    """Numbers survive rendering and parsing; equal ones count once."""
    parsed = parse_values(render_values(numbers), "Y", "Year", numeric=True)

    assert [item.value for item in parsed if item.rejected is None] == list(dict.fromkeys(numbers))


@given(st.text(max_size=300), st.booleans())
def test_any_text_is_parsed_without_a_fault(text: str, numeric: bool) -> None:
    """No reply raises, and no kept value is longer than the limit or holds a control character."""
    for parsed in parse_values(text, "B", "Dish", numeric):
        if parsed.rejected is None:
            assert 0 < len(str(parsed.value)) <= LONGEST_VALUE
            assert "\x00" not in str(parsed.value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10**6 + ".",
        "a" * 10**6,
        "1. a.\n" * 200_000,
        "9" * 10**6 + ".",
        ":" * 10**6 + ".",
        ("(" * 390 + ".\n") * 2500,
        ("the year " * 40 + ".\n") * 2500,
        "\x00" * 10**6,
    ],
)
def test_a_megabyte_is_survived(text: str) -> None:
    """A huge reply is read up to the limit and the rest is reported as not read."""
    for numeric in (False, True):
        parsed = parse_values(text, "B", "Dish", numeric)
        assert len(parsed) <= MOST_LINES + 1
        assert all(len(item.raw) < 1000 for item in parsed)


YES_NO = [
    ("Yes", True),
    (" yes, it is.", True),
    ("No.", False),
    ("True", True),
    ("wrong", False),
    ("The answer is no.", False),
    ("The statement is correct.", True),
    ("It is not true.", None),
    ("It isn't right.", None),
    ("yesterday", None),
    ("Is it true or false?", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "verdict"), YES_NO)
def test_free_answer_is_read(text: str, verdict: bool | None) -> None:
    """A free answer counts by its first word, else by its only verdict word, else not at all."""
    assert parse_yes_no(text) is verdict


@given(st.floats(-800, 800), st.floats(-800, 800))
def test_yes_probability_is_a_softmax(yes: float, no: float) -> None:
    """P(yes) lies in [0, 1], does not change when all logits shift, and mirrors P(no)."""
    probability = yes_probability([yes], [no])

    assert 0 <= probability <= 1
    assert probability == pytest.approx(1 - yes_probability([no], [yes]), abs=1e-9)
    assert probability == pytest.approx(yes_probability([yes - 5], [no - 5]), abs=1e-9)


def test_spellings_add_up() -> None:
    """Several spellings of one answer count together."""
    assert yes_probability([0.0, 0.0], [0.0, 0.0]) == pytest.approx(0.5)
    assert yes_probability([0.0, 0.0, 0.0], [0.0]) == pytest.approx(0.75)
