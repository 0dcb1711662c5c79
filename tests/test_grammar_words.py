"""Numbers with their nouns."""

import pytest

from hapax.grammar.words import counted


@pytest.mark.parametrize(
    ("number", "words", "shown"),
    [
        (0, ("call",), "0 calls"),
        (1, ("call",), "1 call"),
        (1.0, ("second",), "1 second"),
        (2.5, ("second",), "2.5 seconds"),
        (50_000_000, ("inference",), "50000000 inferences"),
        (1, ("constant lies", "constants lie"), "1 constant lies"),
        (2, ("constant lies", "constants lie"), "2 constants lie"),
    ],
)
def test_only_one_is_singular(number: float, words: tuple[str, ...], shown: str) -> None:
    """One is singular, all other numbers are plural, with an s or with the given plural."""
    assert counted(number, *words) == shown
