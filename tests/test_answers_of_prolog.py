"""The text of the Prolog process is read as rows, calls for facts and the ends of goals, as in `tests/golden/`."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from golden_fixture import compared

from hapax.engine.inference import session
from hapax.engine.inference.session import AnswerCell, LimitExceeded, PrologError, PrologTerm, QueryLimits

LIMITS = QueryLimits(seconds=7.0, answers=50, inferences=900, memory_mb=1000)

ENDS: Sequence[tuple[str, str]] = [
    ("done", ""),
    ("truncated", ""),
    ("limit", "seconds"),
    ("limit", "inferences"),
    ("limit", "memory"),
    ("refused", "shell/1"),
    ("type_error", "is/2\tacyclic_term\tf(_)"),
    ("not_a_number", "a  text\nof two lines"),
    ("not_a_number", "x" * 500),
    ("evaluation_error", "zero_divisor"),
    ("evaluation_error", "undefined"),
    ("instantiation_error", "atom_length/2: Arguments are not sufficiently instantiated"),
    ("instantiation_error", "Arguments are not sufficiently instantiated"),
    ("type_error", "length\tlist\t[1|_123]"),
    ("type_error", "length\tlist\t[1|_G12]"),
    ("type_error", "length\tlist\t[1|_]"),
    ("type_error", "length\tlist\t[1|x_1]"),
    ("type_error", "nth0\tinteger\t5r2"),
    ("type_error", "between\tinteger\t-1r3 and 7r2"),
    ("domain_error", "length\tnot_less_than_zero\t-1"),
    ("domain_error", "nobody\tnonneg\t-1"),
    ("type_error", "\tevaluable\tfoo/0"),
    ("type_error", f"succ\tinteger\t{'y' * 500}"),
    ("syntax_error", "operator expected"),
]
REPLIES: Sequence[Mapping[str, Any]] = [
    {"kind": "seconds"},
    {"kind": "memory"},
    {"kind": "cancelled"},
    {"kind": "closed", "signal": signal.SIGXCPU},
    {"kind": "closed", "signal": signal.SIGABRT, "resident_mb": 0},
    {"kind": "closed", "signal": signal.SIGABRT},
    {"kind": "closed", "signal": signal.SIGABRT, "resident_mb": 999},
    {"kind": "closed", "signal": signal.SIGKILL, "resident_mb": 999},
    {"kind": "closed"},
]
MALFORMED = [
    "", ".", "a", "a3", "a3:", "a3:ab", "a-1:ab", "ax:ab", "i", "i12", "ix;", "i-7;", "q", "q1/0;", "q1/-2;", "q1/3;",
    "q1;", "q1/2/3;", "f1.5;", "f1.0Inf;", "f-1.0Inf;", "f1.5NaN;", "fx;", "v2:_1", "z", "l0:", "l-1:", "l1:", "c0:",
    "c0:a1:p", "c1:a1:pi1;", "c2:a1:pi1;", "c1:a1:pl2:i1;a1:x", "e", "ea4:donea0:", "ra", "ri1;ea4:donea0:",
]  # fmt: skip
"""Beginnings of cells and rows, of which some are whole."""


def written(cell: AnswerCell) -> str:
    """A cell in the code of `host.pl`."""
    match cell:
        case PrologTerm("[]", parts):
            return f"l{len(parts)}:{''.join(map(written, parts))}"
        case PrologTerm(name, parts):
            return f"c{len(parts)}:{written(name)}{''.join(map(written, parts))}"
        case str():
            return f"a{len(cell)}:{cell}"
        case int():
            return f"i{cell};"
        case _:
            ratio = Fraction(cell)
            return f"q{ratio.numerator}/{ratio.denominator};"


def drawn(chance: random.Random, depth: int = 0) -> AnswerCell:
    plain: list[AnswerCell] = ["", "a", "ä;:", "c1:", 7, -3, Decimal("2.5"), Decimal("-0.125")]
    if depth == 3 or chance.random() < 0.5:
        return chance.choice(plain)
    parts = tuple(drawn(chance, depth + 1) for _ in range(chance.randrange(4)))
    return PrologTerm(chance.choice(["[]", "f", "end"]), parts)


def row(cells: Sequence[AnswerCell]) -> str:
    return "r" + written(PrologTerm("row", tuple(cells)))


def test_rows_before_a_cut_are_whole() -> None:
    """Of a text that ends anywhere, exactly the rows that are complete by then are read, and no end."""
    chance = random.Random(1)
    for _ in range(20):
        rows = [tuple(drawn(chance) for _ in range(chance.randrange(1, 4))) for _ in range(3)]
        texts = list(map(row, rows))
        whole = "".join(texts)
        ends = [len("".join(texts[:number])) for number in range(1, 4)]
        for cut in range(len(whole) + 1):
            read, end = session._decoded(whole[:cut].encode())
            assert read == rows[: sum(place <= cut for place in ends)]
            assert end is None
        assert session._decoded(f"{whole}ea4:donea0:".encode()) == (rows, ("done", ""))


def test_call_for_facts_is_read_when_it_is_whole() -> None:
    """A call that has come in part is waited for, and one that is no term is none."""
    call = "t" + written(PrologTerm("call", ("road", "a", 7, PrologTerm("f", (".",))))) + "."

    assert session._call(call.encode()) == ("road", "a", 7, PrologTerm("f", (".",)))
    assert [session._call(call[:cut].encode()) for cut in range(len(call))] == [None] * len(call)
    assert session._call(b"ta1:x.") is None
    assert session._call(b"tx.") is None
    assert session._call((call[:-1] + "x.").encode()) is None


def tried(read: Any) -> str:
    try:
        return repr(read())
    except PrologError as error:
        return f"{type(error).__name__} {error.kind}: {error}"
    except LimitExceeded as error:
        return f"limit {error.limit}: {error}"


def ends() -> Iterator[str]:
    rows = row(["a", 1]).encode()
    for kind, message in ENDS:
        text = rows + f"e{written(kind)}{written(message)}".encode()
        yield f"# {kind} {message[:40]!r}"
        yield tried(lambda text=text: session._answers(text, {"kind": "closed"}, LIMITS))
    for reply in REPLIES:
        for text in (b"", rows, rows + b"ea4:donea0:"):
            yield f"# {dict(reply)} {text!r}"
            yield tried(lambda text=text, reply=reply: session._answers(text, dict(reply), LIMITS))
    for text in MALFORMED:
        yield f"# {text}"
        yield tried(lambda text=text: session._decoded(f"r{text}".encode()))


def refusals() -> Iterator[str]:
    places = [
        [("p", 3, "bad  thing in /tmp/hapax-prolog-x1/hapax_2.pl:3:7: here")],
        [("p", 0, "no line"), ("p", 1, "other"), ("p", 2, "third")],
        [("p", "x", "y" * 500)],
    ]
    for faults in places:
        error = session._load_error(faults)
        yield f"{error.kind} {error.line} {error}"
    for text in ("p(X).", "p(\ud800)", "p(\0)", "ä" * 3, "[" * 120 + "]" * 120, "a" * 200_000, "p(" * 3 + ")" * 9):
        yield f"{text[:9]!r} {tried(lambda text=text: session._check_goal(text))}"
    for name in ("X", "_x", "x", "", "X y", "Ä", "X1", "X\n"):
        yield f"{name!r} {tried(lambda name=name: session._variable(name))}"
    for digits in (1, session.MAX_NUMBER_DIGITS, session.MAX_NUMBER_DIGITS + 1):
        yield f"{digits} {tried(lambda digits=digits: session._integer('7' * digits))[:200]}"


def test_ends_of_goals_are_told_as_read_over() -> None:
    """Limits, signals, errors of every kind and malformed texts give these rows or these words."""
    compared("prolog/ends", "\n".join([*ends(), "# refused", *refusals()]) + "\n")


@pytest.mark.parametrize("depth", [10_000])
def test_answers_nest_deeper_than_python(depth: int) -> None:
    """A term of any depth is read without recursion."""
    ((cell,),), end = session._decoded(f"rc1:a3:row{'c1:a1:f' * depth}i1;".encode())

    assert end is None
    for _ in range(depth):
        assert isinstance(cell, PrologTerm)
        (cell,) = cell.arguments
    assert cell == 1
