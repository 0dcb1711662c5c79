"""Statements as they were written: the parser's output, in which `assemble.py` settles names, types and values.

Nodes carry `at`, their range in the text, so that later diagnostics can point at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Spot: TypeAlias = tuple[int, int, int, int]
"""1-based line and column of the first character, and of the first one behind the last."""


@dataclass(frozen=True, slots=True)
class WordSequence:
    """Words outside quotes: a data type, a data type with a variable's name, or only a name."""

    words: tuple[str, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class RawText:
    """A text constant with its quotes and escapes."""

    source: str
    at: Spot


@dataclass(frozen=True, slots=True)
class RawNumber:
    """A number with its sign."""

    source: str
    at: Spot


RawArgument: TypeAlias = WordSequence | RawText | RawNumber


@dataclass(frozen=True, slots=True)
class RawOperation:
    """Two expressions joined by `+`, `-`, `*` or `/`."""

    operator: str
    left: RawExpression
    right: RawExpression
    at: Spot


RawExpression: TypeAlias = WordSequence | RawText | RawNumber | RawOperation


@dataclass(frozen=True, slots=True)
class RawComparison:
    """Two expressions and the operator between them. `defined`: the left side, if it is a variable with its type."""

    operator: str
    left: RawExpression
    right: RawExpression
    at: Spot
    defined: WordSequence | None = None


@dataclass(frozen=True, slots=True)
class RawAtom:
    """A predicate's name, in which blanks are possible, and its arguments."""

    name: WordSequence
    arguments: tuple[RawArgument, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class RawLiteral:
    """An atom or its negation."""

    atom: RawAtom
    negated: bool


RawItem: TypeAlias = RawLiteral | RawComparison


@dataclass(frozen=True, slots=True)
class ImportLine:
    """`import "file.rules"` and `import "file.rules" as name`."""

    path: RawText
    name: str
    at: Spot


@dataclass(frozen=True, slots=True)
class SubtypeLine:
    """`type lower < upper`."""

    lower: WordSequence
    upper: WordSequence
    at: Spot


@dataclass(frozen=True, slots=True)
class DeclarationLine:
    """`oracle atom: templates` and the like. `kind` is the keyword; only computed predicates have a `definition`.

    `tolerance`: the text behind `within`, such as `2` or `5%`.
    """

    kind: str
    atom: RawAtom
    templates: tuple[RawText, ...]
    definition: RawComparison | None
    at: Spot
    tolerance: str | None = None


@dataclass(frozen=True, slots=True)
class AggregateLine:
    """`aggregate atom := K = count(Dish D: premise)`. `counted`: the variables before the colon.

    `result` is the variable before the sign `operator`, `function` the word behind it.
    """

    atom: RawAtom
    result: str
    operator: str
    function: str
    counted: tuple[WordSequence, ...]
    premise: tuple[RawItem, ...]
    templates: tuple[RawText, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class OppositeLine:
    """`opposite first second`."""

    names: tuple[str, str]
    at: Spot


@dataclass(frozen=True, slots=True)
class PropertyLine:
    """`symmetric name/2` and the like; `keyword` is the property."""

    keyword: str
    name: str
    arity: str
    at: Spot


@dataclass(frozen=True, slots=True)
class ClosedLine:
    """`closed name/2` and, with a `position`, `closed name/2 by 1`."""

    name: str
    arity: str
    position: str | None
    at: Spot


@dataclass(frozen=True, slots=True)
class DisjointLine:
    """`disjoint Type, Type`. Without a comma, `first` contains both types and `second` is None."""

    first: WordSequence
    second: WordSequence | None
    at: Spot


@dataclass(frozen=True, slots=True)
class NeverLine:
    """`never premise & premise`."""

    premise: tuple[RawItem, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class FactLine:
    """`fact atom`."""

    atom: RawAtom
    at: Spot


@dataclass(frozen=True, slots=True)
class ExampleLine:
    """`@example atom`."""

    atom: RawAtom
    at: Spot


@dataclass(frozen=True, slots=True)
class AttributeLine:
    """`@name value ...`; the values keep their quotes."""

    name: str
    values: tuple[str, ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class RuleLine:
    """`premise -> conclusion` or `conclusion :- premise`. `exceptions`: the premises behind `unless`."""

    premise: tuple[RawItem, ...]
    conclusion: RawAtom
    at: Spot
    exceptions: tuple[tuple[RawItem, ...], ...] = ()


MISSPELT = "misspelt"
"""Kind of a statement that begins with a misspelt keyword."""


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A statement or a whole file that cannot be read. Its kind tells `assemble.py` which diagnostics may only follow
    from it.
    """

    kind: str
    """The keyword of the statement, "@" for an attribute, "" for a rule, "file" for a whole file, or MISSPELT."""
    name: tuple[str, ...] = ()
    """The words of a declared predicate's name, if they can be read."""


SourceLine: TypeAlias = (
    ImportLine
    | SubtypeLine
    | DeclarationLine
    | AggregateLine
    | OppositeLine
    | PropertyLine
    | ClosedLine
    | DisjointLine
    | NeverLine
    | FactLine
    | ExampleLine
    | AttributeLine
    | RuleLine
    | BrokenLine
)
