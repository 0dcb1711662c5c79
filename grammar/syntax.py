"""Statements as they were written: what the parser hands to `assemble.py`, before names, types and values are settled.

Everything carries `at`, its (line, column) in the file, because later faults must still be able to point at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Spot: TypeAlias = tuple[int, int]
"""1-based line and column."""


@dataclass(frozen=True, slots=True)
class Words:
    """Words outside quotes: a data type, a data type with a variable's name, or a name alone."""

    words: tuple[str, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class RawText:
    """A quoted text, quotes and escapes still in it."""

    source: str
    at: Spot


@dataclass(frozen=True, slots=True)
class RawNumber:
    """A number with its sign."""

    source: str
    at: Spot


RawArgument: TypeAlias = Words | RawText | RawNumber


@dataclass(frozen=True, slots=True)
class RawOperation:
    """Arithmetic."""

    operator: str
    left: RawExpression
    right: RawExpression


RawExpression: TypeAlias = Words | RawText | RawNumber | RawOperation


@dataclass(frozen=True, slots=True)
class RawComparison:
    """Two expressions and the sign between them; `at` is the sign's."""

    operator: str
    left: RawExpression
    right: RawExpression
    at: Spot


@dataclass(frozen=True, slots=True)
class RawAtom:
    """A name, perhaps with blanks in it, and its arguments."""

    name: Words
    arguments: tuple[RawArgument, ...]

    @property
    def at(self) -> Spot:
        return self.name.at


@dataclass(frozen=True, slots=True)
class RawLiteral:
    """An atom or its negation."""

    atom: RawAtom
    negated: bool


RawItem: TypeAlias = RawLiteral | RawComparison


@dataclass(frozen=True, slots=True)
class SubtypeLine:
    """`type lower < upper`."""

    lower: Words
    upper: Words
    at: Spot


@dataclass(frozen=True, slots=True)
class DeclarationLine:
    """`kind` is the keyword; `definition` is set for computed predicates alone."""

    kind: str
    atom: RawAtom
    templates: tuple[RawText, ...]
    definition: RawComparison | None
    at: Spot


@dataclass(frozen=True, slots=True)
class OppositeLine:
    """`opposite first second`."""

    names: tuple[str, str]
    at: Spot


@dataclass(frozen=True, slots=True)
class FactLine:
    """`fact atom`."""

    atom: RawAtom
    at: Spot


@dataclass(frozen=True, slots=True)
class AttributeLine:
    """`@name value ...`; values keep their quotes."""

    name: str
    values: tuple[str, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule of either form."""

    premise: tuple[RawItem, ...]
    conclusion: RawAtom
    at: Spot


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A statement or a whole file that cannot be read, so that nothing else is blamed for what it would have said."""

    kind: str
    """The word or sign it begins with, as in `parser.KEYWORDS`; "@" for attributes, "" for rules, "file" for files."""
    name: tuple[str, ...] = ()
    """The words of a declared predicate's name, where they can be read."""


Line: TypeAlias = SubtypeLine | DeclarationLine | OppositeLine | FactLine | AttributeLine | RuleLine | BrokenLine
