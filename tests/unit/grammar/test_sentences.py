"""Two answers that agree within a tolerance, and the forms of a sentence."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hapax.grammar.rules import Tolerance
from hapax.grammar.verbalize import negated_template, question_template, text_errors


@pytest.mark.parametrize(
    ("tolerance", "values", "agree"),
    [
        ("2", ("a", "a"), True),
        ("2", ("a", "b"), False),
        ("2", ("1", 1), False),
        ("2", (1, 3), True),
        ("2", (1, 4, 2), False),
        ("2", (1, Decimal("3.01")), False),
        ("5%", (95, 100), True),
        ("5%", (-100, -95), True),
        ("5%", (94, 100, 97), False),
        ("0%", ("a", "a", 1), False),
        ("2", (Decimal("1e1000"), 10**1000 + 2), True),
        ("2", (Decimal("1e99999999"), Decimal("10e99999998")), True),
        ("50%", (Decimal("1e99999999"), Decimal("1.1e99999999")), False),
    ],
)
def test_values_agree_within_a_tolerance(tolerance: str, values: tuple[str | int | Decimal, ...], agree: bool) -> None:
    """Up to a difference, or a share of the larger one; texts, and numbers that are too large, only if they are equal."""
    assert Tolerance.parsed(tolerance).covers_all(values) is agree


@pytest.mark.parametrize(
    ("affirmative", "negated", "question"),
    [
        ("[1] can plant [2]", "[1] cannot plant [2]", "can [1] plant [2]?"),
        ("[1] cannot plant [2]", "[1] can plant [2]", "is it true that [1] cannot plant [2]?"),
        ("[1] is not able to eat [2]", "[1] is able to eat [2]", "is it true that [1] is not able to eat [2]?"),
        ("[1] was born in [2]", "[1] was not born in [2]", "was [1] born in [2]?"),
        ("[1] lived in [2]", "it is not true that [1] lived in [2]", "is it true that [1] lived in [2]?"),
    ],
)
def test_forms_follow_the_verb(affirmative: str, negated: str, question: str) -> None:
    """Auxiliaries take "not" and move to the front; other verbs are denied and asked as a whole."""
    assert (negated_template(affirmative), question_template(affirmative)) == (negated, question)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("an uninhabited island", "a uninhabited island"),
        ("an onerous task", "a onerous task"),
        ("a unilateral treaty", "an unilateral treaty"),
        ("a utopia", "an utopia"),
        ("an urban area", "a urban area"),
        ("an hour", "a hour"),
    ],
)
def test_the_article_follows_the_sound(right: str, wrong: str) -> None:
    """Words that begin with the letter of a vowel and the sound of a consonant, and the other way round, are known."""
    assert list(text_errors(f"PersonX saw {right} of vitamin A in it")) == []
    assert list(text_errors(f"PersonX saw {wrong} of vitamin A in it")) != []
