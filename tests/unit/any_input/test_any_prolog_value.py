"""Texts and numbers to Prolog and back. A value is rejected, or comes back from Prolog unchanged.

Bytes that a goal's process writes are decoded as rows or rejected.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache

from any_input import assert_explained, check_any_input, text_of

from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import PrologError, PrologSession, _decoded
from hapax.grammar.errors import HapaxError
from hapax.grammar.writing.prolog_text import prolog_atom, prolog_value

SEEDS = (
    b"rl2:a3:abci42;q3/2;f1.5;e1:a4:donea0:",
    b"rc1:a1:fl2:v2:_Gs3:x\ny",
    b"it's \\ \"x\" \t\r\n'), halt, ('",
    b"-1876.50",
    "\U0001f600é\u202e\x00\x7f".encode(),
)
_NUMBER = re.compile(r"-?[0-9]{1,1000}(?:\.[0-9]{1,20})?(?:[eE]-?[0-9]{1,4})?")
MOST_TEXT = 200
"""Characters of the longest input that also goes through Prolog, which takes longer than all the rest."""


def check(data: bytes) -> None:
    """Raise if the contract is broken."""
    check_decoding(data)
    check_quoting(text_of(data))


def check_decoding(data: bytes) -> None:
    """Decode bytes that a goal's process might write in the host's place."""
    try:
        rows, end = _decoded(data)
    except PrologError as error:
        if error.kind != "size":
            raise
        return
    assert isinstance(rows, list)
    assert end is None or all(isinstance(part, str) for part in end)


def check_quoting(text: str) -> None:
    """Quote the text as a value and, if it is a number, as this number."""
    values: list[str | int | Decimal] = [text]
    if _NUMBER.fullmatch(text):
        values.append(int(text) if text.lstrip("-").isdigit() else Decimal(text))
    for value in values:
        try:
            written = prolog_value(value)
        except HapaxError as error:
            assert_explained(error)
            continue
        assert "\n" not in written
        assert "\0" not in written
        if len(text) <= MOST_TEXT:
            assert _through_prolog(written) == value
    try:
        assert prolog_atom(text)
    except HapaxError as error:
        assert_explained(error)


def _through_prolog(written: str) -> object:
    ((value,),) = _session().solutions(f"X = {written}", ("X",), QueryLimits(seconds=5)).rows
    return value


@cache
def _session() -> PrologSession:
    session = PrologSession()
    session.load(":- dynamic e/1.\ne(alive).\n")
    return session


def test_any_prolog_value() -> None:
    """A value is rejected or comes back from Prolog unchanged, and bytes of a goal's process are rows or rejected."""
    check_any_input(check, SEEDS, "prolog_codec", 30)
