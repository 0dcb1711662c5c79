"""Target: texts and numbers to Prolog and back. A value is refused, or comes back from Prolog as it was.

Any bytes that a goal's process writes are rows or nothing.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache

from fuzz.common import instrumented, run, text_of, told

with instrumented(__name__):
    from engine.session import PrologError, PrologSession, QueryLimits, _decoded
    from grammar.errors import HapaxError
    from grammar.prolog_text import prolog_atom, prolog_value

SEEDS = (
    b"rl2:a3:abci42;q3/2;f1.5;e1:a4:donea0:",
    b"rc1:a1:fl2:v2:_Gs3:x\ny",
    b"it's \\ \"x\" \t\r\n'), halt, ('",
    b"-1876.50",
    "\U0001f600é\u202e\x00\x7f".encode(),
)
_NUMBER = re.compile(r"-?[0-9]{1,1000}(?:\.[0-9]{1,20})?(?:[eE]-?[0-9]{1,4})?")
MOST_TEXT = 200
"""Characters of an input that go through Prolog itself, which costs more than all the rest."""


def check(data: bytes) -> None:
    """Raises for anything but the contract."""
    check_decoding(data)
    check_quoting(text_of(data))


def check_decoding(data: bytes) -> None:
    """Bytes that a goal's process wrote in the host's place."""
    try:
        rows, end = _decoded(data)
    except PrologError as refused:
        if refused.kind != "size":
            raise
        return
    assert isinstance(rows, list)
    assert end is None or all(isinstance(part, str) for part in end)


def check_quoting(text: str) -> None:
    """One text as a value of its own, and as the number that it may be."""
    values: list[str | int | Decimal] = [text]
    if _NUMBER.fullmatch(text):
        values.append(int(text) if text.lstrip("-").isdigit() else Decimal(text))
    for value in values:
        try:
            written = prolog_value(value)
        except HapaxError as refused:
            told(refused)
            continue
        assert "\n" not in written
        assert "\0" not in written
        if len(text) <= MOST_TEXT:
            assert _through_prolog(written) == value
    try:
        assert prolog_atom(text)
    except HapaxError as refused:
        told(refused)


def _through_prolog(written: str) -> object:
    ((value,),) = _session().solutions(f"X = {written}", ("X",), QueryLimits(seconds=5)).rows
    return value


@cache
def _session() -> PrologSession:
    session = PrologSession()
    session.load(":- dynamic e/1.\ne(alive).\n")
    return session


if __name__ == "__main__":
    run("prolog_codec", check, SEEDS)
