"""Replies become values by LINK's clean-up rules, or rejections with a reason; answers become yes, no or a probability."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.llm_oracle.answers import (
    LONGEST_VALUE,
    parse_number,
    parse_values,
    parse_yes_no,
    render_values,
    yes_probability,
)

KEPT = [
    ("1. butter.", "butter"),
    ("4.butter.", "butter"),
    ("butter.", "butter"),
    ('5. "butter".', "butter"),
    ("5. **butter**.", "butter"),
    ("7. 7 Up.", "7 Up"),
    ("8. U.S.A..", "U.S.A."),
    ("10. butter (salted).", "butter"),
    ("10. butter (salted.", "butter"),
    ("11. Dairy product - butter.", "butter"),
    ("14. café au lait.", "café au lait"),
    ("16. بامية.", "بامية"),
    ("18. " + "x" * LONGEST_VALUE + ".", "x" * LONGEST_VALUE),
]
DROPPED = [
    "1. butter",
    "2. butter...",
    "3. " + "x" * (LONGEST_VALUE + 1) + ".",
    "5. butter/ghee.",
    "6. butter, ghee, lard.",
    "7. B.",
    "7. [B].",
    "8. dish.",
    "9. (nothing).",
    "11.",
    "12. a\x00b.",
    "14. a\ud800b.",
]


@pytest.mark.parametrize(("line", "value"), KEPT)
def test_line_becomes_value(line: str, value: str) -> None:
    """A list item keeps its words and loses numbering, quotes, parentheses, labels and full stop."""
    (parsed,) = parse_values(line, "B", "Dish")

    assert (parsed.value, parsed.rejected, parsed.raw) == (value, None, line)


@pytest.mark.parametrize("line", DROPPED)
def test_line_is_dropped_with_a_reason(line: str) -> None:
    """A line that is not a value is dropped with a reason, and the lines before it stay."""
    lines = parse_values(f"10. first.\n\n{line}", "B", "Dish")

    assert len(lines) == 2
    assert lines[1].position == 1
    assert lines[1].rejected


NUMBERS = [
    ("1. 1876.", 1876),
    ("1. 1,876.", 1876),
    ("1. 3.50.", Decimal("3.5")),
    ("1. -40.", -40),
    ("1. 44 BC.", -44),
    ("1. 79 A.D..", 79),
    ("1. about 5 kilograms.", 5),
    ("1. c. 1500.", 1500),
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


WORDS = st.text(
    alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd"], include_characters=" '-.&"),
    min_size=1,
    max_size=LONGEST_VALUE,
)


def is_plain(value: str) -> bool:
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


@given(st.lists(WORDS.filter(is_plain), max_size=12, unique_by=str.casefold))
def test_rendered_values_are_read_back(values: list[str]) -> None:
    """Parsing a rendered list gives the values themselves, all kept, in order."""
    parsed = parse_values(render_values(values), "BB", "Dish")

    assert [item.value for item in parsed] == values
    assert not any(item.rejected for item in parsed)


YES_NO = [
    ("Yes", True),
    (" yes, it is.", True),
    ("No.", False),
    ("wrong", False),
    ("The answer is no.", False),
    ("It is not true.", None),
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
