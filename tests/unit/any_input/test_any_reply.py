"""Any reply of a model is read without an error; accepted values are short and have no control characters."""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from decimal import Decimal

from any_input import check_any_input, text_of

from hapax.engine.expansion.propose import UnusableReply, read_conclusions, read_predicate, read_types
from hapax.llm_oracle.reading.link_replies import (
    LONGEST_LINE,
    LONGEST_VALUE,
    MOST_LINES,
    first_items,
    parse_number,
    parse_values,
    parse_yes_no,
    without_values,
)
from hapax.llm_oracle.reading.replies import read_reply
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyQuestion

SEEDS = (
    b'1. Crohn\'s disease.\n2. asthma.\n3) "type 2 diabetes".\n- *shellfish* (all kinds).',
    b'```json\n["a", "b"]\n```\nSure! Here are the values of A:\n1. the year 1,876 BC.',
    b"Yes, it isn't wrong.",
    b"or",
    "1. ‘Über’ — “quoted”.\n2. \u202eevil.\n3. −1876.\n4. ½.".encode(),
    b"<![if x]><li>asthma</li><item>hay fever</item><!-- x -->\nName,Kind\nasthma,lung",
)


def check(data: bytes) -> None:
    """Raise if the contract is broken."""
    text = text_of(data)
    for numeric in (False, True):
        parsed = parse_values(text, "A", "Number" if numeric else "Food Allergen", numeric)
        assert len(parsed) <= MOST_LINES + 1
        for item in parsed:
            assert len(item.raw) <= LONGEST_LINE + 1
            assert len(str(item.value)) <= LONGEST_LINE
            if item.rejected is None:
                assert isinstance(item.value, int | Decimal) if numeric else _is_plain(item.value)
        question = ReplyQuestion("A", "Number" if numeric else "Food Allergen", "PersonX is allergic to [A]", numeric)
        reply = read_reply(text, question, "length" if len(text) % 2 else "stop")
        assert len(reply.entries) <= MOST_LINES + 1
        assert all(isinstance(value, int | Decimal) if numeric else _is_plain(value) for value in reply.values)
        assert all(isinstance(entry.rejected, DropReason) for entry in reply.dropped)
    parse_number(text)
    parse_yes_no(text)
    without_values(text, text.splitlines()[:3])
    first_items(text, 2)
    list(read_types(text))
    list(read_conclusions(text, ("A", "B")))
    with suppress(UnusableReply):
        read_predicate(text)


def _is_plain(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_VALUE:
        return False
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in value)


def test_any_reply() -> None:
    """Reading a reply never raises, but for its refusal where a verb is wanted, and what is accepted is short and printable."""
    check_any_input(check, SEEDS)
