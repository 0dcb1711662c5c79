"""Parse replies such as `1. A=milk, B=paneer, Z=butter` into rows of values, with a reason for each dropped line.

A reply is untrusted text of any length. Nothing here raises: each line becomes a row, or is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Value
from hapax.llm_oracle.answers import MOST_LINES, parse_values, without_numbering

LONGEST_ROW = 1000
"""Characters of a line that are parsed."""

RAW_SHOWN = 200
"""Characters of a line that are kept with its row."""

_ENDS = " \t.,;|"


class Drop(StrEnum):
    """Reason why a line was dropped."""

    NO_ROW = "no row"
    """It names no variable: chatter, or another format."""
    INCOMPLETE = "incomplete"
    """A variable has no value, or two."""
    UNUSABLE = "unusable value"
    """A value that a search would also drop: too long, a list, or not a number where one is needed."""
    REPEATED = "repeated"
    """The row equals an earlier one."""
    CUT = "cut off"
    """The token limit ended the reply within this line."""


@dataclass(frozen=True, slots=True)
class RowVariable:
    """A variable that has a value in each row. `numeric`: its values are numbers."""

    name: str
    data_type: str
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class GeneratedRow:
    """A line of a reply: the values in the order of the variables, or the reason why there are none."""

    values: tuple[Value, ...]
    raw: str
    dropped: Drop | None = None
    reason: str = ""


def row_variables(rule: Rule, library: Library) -> tuple[RowVariable, ...]:
    """The searched variables of a rule, sorted by name as in the paper."""
    variables = sorted(rule.searched, key=lambda variable: variable.name)
    return tuple(
        RowVariable(variable.name, variable.data_type, library.is_numeric(variable.data_type)) for variable in variables
    )


def row_text(variables: Sequence[RowVariable], values: Sequence[Value]) -> str:
    """A row as in the requested format, without its number: `A=milk, B=paneer`."""
    return ", ".join(f"{variable.name}={value}" for variable, value in zip(variables, values, strict=True))


def row_key(values: Sequence[Value]) -> tuple[Value, ...]:
    """Key by which rows are equal: the case of letters is ignored."""
    return tuple(value.casefold() if isinstance(value, str) else value for value in values)


def parse_rows(text: str, variables: Sequence[RowVariable], cut: bool = False) -> list[GeneratedRow]:
    """Parse each non-empty line of a reply. `cut`: the token limit ended the reply, so its last line is incomplete.

    Values are cleaned as in a search (`llm_oracle/answers.py`).
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A hostile reply may have millions of lines.
    rows = [_row(line, variables) for line in lines[:MOST_LINES]]
    # A line with its newline is complete, and so is the last of those that are parsed if more follow.
    if cut and rows and len(lines) <= MOST_LINES and not text.endswith("\n"):
        rows[-1] = GeneratedRow((), rows[-1].raw, Drop.CUT, "the token limit ended it")
    return rows


def _row(line: str, variables: Sequence[RowVariable]) -> GeneratedRow:
    raw = line[:RAW_SHOWN]
    pieces = _pieces(without_numbering(line[:LONGEST_ROW]), variables)
    if not pieces:
        return GeneratedRow((), raw, Drop.NO_ROW, f"has no {variables[0].name}=" if variables else "has no variable")
    values: list[Value] = []
    for variable in variables:
        # A variable named twice is a fault: nobody can say which value is meant.
        texts = [text for name, text in pieces if name == variable.name]
        if len(texts) != 1 or not texts[0]:
            fault = f"has {variable.name} twice" if len(texts) > 1 else f"has no value for {variable.name}"
            return GeneratedRow((), raw, Drop.INCOMPLETE, fault)
        # A search parses numbered lists, so the value is dressed as one.
        (parsed,) = parse_values(f"1. {texts[0]}.", variable.name, variable.data_type, variable.numeric)
        if parsed.rejected is not None:
            return GeneratedRow((), raw, Drop.UNUSABLE, f"{variable.name} {parsed.rejected}")
        values.append(parsed.value)
    return GeneratedRow(tuple(values), raw)


def _pieces(line: str, variables: Sequence[RowVariable]) -> list[tuple[str, str]]:
    """The variables that a line names, each with the text up to the next one. `A: milk` counts if there is no `A=`."""
    # Longest first: in `AB=milk`, the variable is AB, not A.
    names = "|".join(sorted((re.escape(variable.name) for variable in variables), key=len, reverse=True))
    if not names:
        return []
    for sign in "=:":
        # A name after the start of the line or a separator, perhaps in brackets or quotes: `[A]=`, `**B** :`, `"Z"=`.
        marks = list(
            re.finditer(rf"(?:^|(?<=[\s,;|]))[\[(*\"']{{0,2}}(?P<name>{names})[\])*\"']{{0,2}}\s{{0,3}}{sign}", line)
        )
        if marks:
            # A value ends where the next variable begins, so commas inside it do no harm.
            ends = [*(mark.start() for mark in marks[1:]), len(line)]
            return [(mark["name"], line[mark.end() : end].strip(_ENDS)) for mark, end in zip(marks, ends, strict=True)]
    return []
