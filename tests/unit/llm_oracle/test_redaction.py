"""Keys are removed from what servers say."""

from __future__ import annotations

import pytest

from hapax.llm_oracle.backends.redaction import redacted

OWN, ALIAS = "sk-planted-own-0123456789abcdef", "sk-planted-alias-fedcba9876543210"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (ALIAS, "[key]"),
        (ALIAS[::-1], "[key]"),
        (f"first {ALIAS[:24]} and then {ALIAS[24:]}", "first [key] and then 876543210"),
        (" ".join(ALIAS), "[key]"),
        (
            f"it ends with {ALIAS[-14:]}, it begins with sk-planted-alias",
            "it ends with [key], it begins with [key]",
        ),
        ("nine8765, dcba and planted alias trees", "nine8765, dcba and planted alias trees"),
    ],
)
def test_pieces_of_a_key_are_removed(said: str, kept: str) -> None:
    """A key is found reversed, with signs in between and in parts of twelve signs with a digit; shorter ones stay."""
    assert redacted(said, ALIAS) == kept
