"""From a reply such as `1. A=milk, B=paneer, Z=butter` to rows of values, with a reason for everything dropped.

A reply is untrusted text of any length. Nothing here raises: a line becomes a row or a drop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grammar.rules import Library, Rule
from grammar.terms import Value
from llm_oracle.answers import MOST_LINES, parse_values, without_numbering

LONGEST_ROW = 1000
"""Characters of a line that are looked at."""

RAW_SHOWN = 200

_ENDS = " \t.,;|"


class Drop(StrEnum):
    """Why a line gives no statement."""

    NO_ROW = "no row"
    """It names no variable: chatter, or another format."""
    INCOMPLETE = "incomplete"
    """A variable has no value, or two."""
    UNUSABLE = "unusable value"
    """A value that a search would drop, too: too long, a list, no number where one is asked for."""
    REPEATED = "repeated"
    """The row was given before."""
    CUT = "cut off"
    """The token limit ended the reply in this line."""


@dataclass(frozen=True, slots=True)
class RowVariable:
    """A variable that rows give a value. `numeric`: only numbers are values of its type."""

    name: str
    data_type: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a reply: the variables' values in their order, or why there are none."""

    values: tuple[Value, ...]
    raw: str
    dropped: Drop | None = None
    reason: str = ""


def row_variables(rule: Rule, library: Library) -> tuple[RowVariable, ...]:
    """The searched variables of a rule by name, as the paper lists them."""
    return tuple(
        RowVariable(one.name, one.data_type, library.is_numeric(one.data_type))
        for one in sorted(rule.searched, key=lambda one: one.name)
    )


def row_text(variables: Sequence[RowVariable], values: Sequence[Value]) -> str:
    """A row as it is asked for, without its number: `A=milk, B=paneer`."""
    return ", ".join(f"{one.name}={value}" for one, value in zip(variables, values, strict=True))


def row_key(values: Sequence[Value]) -> tuple[Value, ...]:
    """What makes two rows one: texts count alike in whatever case."""
    return tuple(value.casefold() if isinstance(value, str) else value for value in values)


def parse_rows(text: str, variables: Sequence[RowVariable], cut: bool = False) -> list[Row]:
    """Every non-empty line of a reply, in order. `cut`: the token limit ended it, so its last line is no whole one.

    A value is cleaned as a search cleans it (`llm_oracle/answers.py`).
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rows = [_row(line, variables) for line in lines[:MOST_LINES]]
    if cut and rows and len(lines) <= MOST_LINES and not text.endswith("\n"):
        rows[-1] = Row((), rows[-1].raw, Drop.CUT, "the token limit ended it")
    return rows


def _row(line: str, variables: Sequence[RowVariable]) -> Row:
    raw = line[:RAW_SHOWN]
    pieces = _pieces(without_numbering(line[:LONGEST_ROW]), variables)
    if not pieces:
        return Row((), raw, Drop.NO_ROW, f"has no {variables[0].name}=" if variables else "has no variable")
    values: list[Value] = []
    for variable in variables:
        given = [piece for name, piece in pieces if name == variable.name]
        if len(given) != 1 or not given[0]:
            fault = f"gives {variable.name} twice" if len(given) > 1 else f"has no value for {variable.name}"
            return Row((), raw, Drop.INCOMPLETE, fault)
        (item,) = parse_values(f"1. {given[0]}.", variable.name, variable.data_type, variable.numeric)
        if item.rejected is not None:
            return Row((), raw, Drop.UNUSABLE, f"{variable.name} {item.rejected}")
        values.append(item.value)
    return Row(tuple(values), raw)


def _pieces(line: str, variables: Sequence[RowVariable]) -> list[tuple[str, str]]:
    """Each variable that the line names, with what follows it up to the next. `A: milk` counts where no `A=` is."""
    names = "|".join(sorted((re.escape(one.name) for one in variables), key=len, reverse=True))
    if not names:
        return []
    for sign in "=:":
        marks = list(
            re.finditer(rf"(?:^|(?<=[\s,;|]))[\[(*\"']{{0,2}}(?P<name>{names})[\])*\"']{{0,2}}\s{{0,3}}{sign}", line)
        )
        if marks:
            ends = [*(mark.start() for mark in marks[1:]), len(line)]
            return [(mark["name"], line[mark.end() : end].strip(_ENDS)) for mark, end in zip(marks, ends, strict=True)]
    return []
