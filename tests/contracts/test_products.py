"""Joins of parts that share no variable, and closures that join themselves: said with sizes, by `check` and by limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hapax

LIBRARY = hapax.parse_rules("""
given is_made(Thing, Year)
given is_found(Object, Year)
given touches(Place, Place)
type Year < Number
@name pair
@generic none
is_made(Thing A, Year B) & is_found(Object C, Year D) -> may_match(Thing A, Object C)
@name early
@generic none
is_made(Thing A, Year B) & is_found(Object C, Year D) & B * D < 0 -> is_early(Thing A)
@name first
@generic none
touches(Place A, Place B) -> meets(Place A, Place B)
@name again
@generic none
meets(Place A, Place B) & meets(Place B, Place C) -> meets(Place A, Place C)
""")


@pytest.fixture(scope="module")
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as opened:
        hapax.add_facts(opened, "is_made", [(f"thing {number}", number) for number in range(4000)], LIBRARY)
        hapax.add_facts(opened, "is_found", [(f"object {number}", number) for number in range(5000)], LIBRARY)
        hapax.add_facts(opened, "touches", [(f"p{number}", f"p{number + 1}") for number in range(200)], LIBRARY)
        yield opened


def found(code: str, kb: hapax.KnowledgeBase | None = None) -> list[str]:
    """The texts of the diagnostics of a kind."""
    return [item.text for item in hapax.check_rules(LIBRARY, kb) if item.code == code]


def test_an_accidental_product_is_a_warning_with_its_sizes(kb: hapax.KnowledgeBase) -> None:
    """A product that reaches the conclusion is no fault; without facts nothing is said."""
    (accidental,) = found("HPX418", kb)

    assert "rule early joins 4,000 rows of is_made/2 with 5,000 rows of is_found/2" in accidental
    assert "20,000,000 combinations" in accidental
    assert [text.split(" joins ")[0] for text in found("HPX423", kb)] == ["rule pair", "rule again"]
    assert found("HPX103") == found("HPX418") == []


def test_a_closure_that_joins_itself_says_what_it_costs(kb: hapax.KnowledgeBase) -> None:
    """By its shape without facts, with numbers over a knowledge base; the linear rule is the remedy."""
    (shape,) = found("HPX223")
    sized = found("HPX423", kb)[-1]

    assert all("Write touches/2 in place of the first meets/2" in text for text in (shape, sized))
    assert "n^3/6 = 1,333,333 statements" in sized


def test_a_time_limit_amidst_a_product_names_it(kb: hapax.KnowledgeBase) -> None:
    """Of a derivation, of a goal over a rule, and of a goal of its own; the next question is answered."""
    limits = hapax.QueryOptions(hapax.QueryLimits(seconds=2))
    hapax.derive(LIBRARY, kb, only=["first"])
    errors = []
    for work in (
        lambda: hapax.derive(LIBRARY, kb, only=["early"], seconds=2),
        lambda: hapax.query("is_early(X)", LIBRARY, kb, options=limits),
        lambda: hapax.query("is_made(A, B), is_found(C, D), B * D < 0", LIBRARY, kb, options=limits),
    ):
        with pytest.raises(hapax.LimitExceeded) as caught:
            work()
        errors.append(str(caught.value))

    assert all("joins 4,000 rows of is_made/2 with 5,000 rows of is_found/2" in error for error in errors)
    assert [error.count("Rule early joins") for error in errors] == [1, 1, 0]
    assert hapax.query("is_made('thing 7', 7)", LIBRARY, kb).holds


def test_a_part_that_a_constant_makes_small_is_no_product(kb: hapax.KnowledgeBase) -> None:
    """Of 4,000 facts one matches the constant, so that nothing is multiplied."""
    rules = "@name one\n@generic none\nis_made(Thing A, 7) & is_found(Object C, Year D) & 5 < D -> is_early(Thing A)\n"
    library = hapax.parse_rules(
        f"given is_made(Thing, Year)\ngiven is_found(Object, Year)\ntype Year < Number\n{rules}"
    )

    assert "HPX418" not in [item.code for item in hapax.check_rules(library, kb)]
