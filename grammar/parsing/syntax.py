"""Statements as they were written: the parser's output, in which `assemble.py` settles names, types and values.

`parser.py` makes a node of each rule of `rule.lark` that it is named after; its fields are the rule's parts in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Spot: TypeAlias = tuple[int, int, int, int]
"""1-based line and column of the first character, and of the first one behind the last."""


@dataclass
class RawNode:
    """A part of a statement. `at`: its range in the text, for diagnostics."""

    at: Spot = field(default=(1, 1, 1, 1), kw_only=True, repr=False)


@dataclass
class RawWords(RawNode):
    """Words outside quotes: a data type, a data type with a variable's name, or only a name."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass
class RawText(RawNode):
    """A text constant with its quotes and escapes."""

    source: str


@dataclass
class RawNumber(RawNode):
    """A number with its sign."""

    source: str


@dataclass
class RawQuantity(RawNode):
    """A number and a unit of time: `30 days`."""

    number: str
    unit: str


@dataclass
class RawNamed(RawNode):
    """`column: argument`."""

    column: str
    argument: RawExpression


RawPlainArgument: TypeAlias = RawWords | RawText | RawNumber


@dataclass
class RawOperation(RawNode):
    """Two expressions joined by an operation such as `+`, or by `..`, which makes a range."""

    left: RawExpression
    operator: str
    right: RawExpression


@dataclass
class RawAtom(RawNode):
    """A predicate's name, in which blanks are possible, and its arguments; in an expression a function.

    `pools`: the groups of arguments of `p(a; b)`, if there are several; `arguments` are then those of the first.
    """

    name: RawWords
    arguments: tuple[RawArgument, ...]
    pools: tuple[tuple[RawArgument, ...], ...] = ()


@dataclass
class RawLiteral(RawNode):
    """An atom or its negation."""

    atom: RawAtom
    negated: bool


@dataclass
class RawCollected(RawAtom):
    """`sum P : { premise }`: a function of what is counted, its arguments, over the rows of a premise.

    `is_set`: `#sum{ P, X : premise }`, which counts what is listed alone.
    """

    premise: RawPremise = ()
    is_set: bool = False


@dataclass
class RawListed(RawNode):
    """`[a, b]`, and `(a, b)` behind `in`."""

    items: tuple[RawExpression, ...]


RawExpression: TypeAlias = RawPlainArgument | RawQuantity | RawOperation | RawAtom | RawLiteral | RawListed
RawArgument: TypeAlias = RawExpression | RawNamed


@dataclass
class RawComparison(RawNode):
    """Two expressions and the operator between them. `defined`: the left side, if it is a variable with its type."""

    left: RawExpression
    operator: str
    right: RawExpression
    defined: RawWords | None = None


@dataclass
class RawColumns(RawNode):
    """`(A, B) < (C, D)`."""

    left: tuple[RawExpression, ...]
    operator: str
    right: tuple[RawExpression, ...]


@dataclass
class RawAlternatives(RawNode):
    """Premises of which one holds: `(A | B & C)`."""

    branches: tuple[RawPremise, ...]


@dataclass
class RawNegation(RawNode):
    """`not (A & B)`."""

    premise: RawPremise


RawItem: TypeAlias = RawLiteral | RawComparison | RawColumns | RawAlternatives | RawNegation
RawPremise: TypeAlias = tuple[RawItem, ...]


@dataclass
class RawStatement(RawNode):
    """A statement that begins with a keyword."""

    keyword: str


@dataclass
class RawImport(RawStatement):
    """`import "file.rules"` and `import "file.rules" as name`."""

    path: str
    """With its quotes and escapes."""
    name: str | None


@dataclass
class RawSubtype(RawStatement):
    """`type lower < upper`."""

    lower: RawWords
    upper: RawWords


@dataclass
class RawDeclaration(RawStatement):
    """`oracle atom: templates` and the like. Only computed predicates have a `definition`.

    `tolerance`: such as `within 2` or `within 5%`. `key`: names of columns.
    """

    atom: RawAtom
    tolerance: str | None = None
    key: tuple[str, ...] | None = None
    templates: tuple[RawText, ...] | None = None
    definition: RawComparison | None = None


@dataclass
class RawAggregate(RawStatement):
    """`aggregate atom := K = count(Dish D: premise)`. `counted`: the variables before the colon.

    `result` is the variable before the sign `operator`, `function` what stands behind it.
    """

    atom: RawAtom
    result: str
    operator: str
    function: RawWords
    counted: tuple[RawWords, ...]
    premise: RawPremise
    templates: tuple[RawText, ...] | None


@dataclass
class RawOpposite(RawStatement):
    """`opposite first second`."""

    first: str
    second: str


@dataclass
class RawProperty(RawStatement):
    """`symmetric name/2`, `closed name/2` and the like; with a `position`, `closed name/2 by 1`."""

    name: str
    arity: str
    position: str | None = None


@dataclass
class RawDisjoint(RawStatement):
    """`disjoint Type, Type`. Without a comma, `first` contains both types and `second` is None."""

    first: RawWords
    second: RawWords | None


@dataclass
class RawNever(RawStatement):
    """`never premise & premise`."""

    premise: RawPremise


@dataclass
class RawFact(RawStatement):
    """`fact atom` and `@example atom`."""

    atom: RawAtom


@dataclass
class RawAttribute(RawNode):
    """`@name value ...`; the values keep their quotes."""

    name: str
    values: tuple[str, ...]


@dataclass
class RawRule(RawNode):
    """`premise -> conclusion` or `conclusion :- premise`. `exceptions`: the premises behind `unless`."""

    premise: RawPremise
    conclusion: RawAtom
    exceptions: tuple[RawPremise, ...]


@dataclass
class RawWeighted(RawNode):
    """`0.3::atom`: a conclusion with its probability."""

    share: RawExpression
    atom: RawAtom


@dataclass
class RawChoice(RawNode):
    """`0.3::first; 0.5::second :- premise`: one of the conclusions holds, or none. A fact has no premise."""

    heads: tuple[RawWeighted, ...]
    premise: RawPremise
    exceptions: tuple[RawPremise, ...]


COMPARISONS = {
    "<=": "=<",
    "≤": "=<",
    "≥": ">=",
    "==": "=",
    "=:=": "=",
    "is": "=",
    "!=": "\\=",
    "<>": "\\=",
    "≠": "\\=",
    "\\==": "\\=",
    "=\\=": "\\=",
}
"""Spellings of comparisons, each with the one that rules are printed with."""


@dataclass
class RawGoal(RawNode):
    """`?- goal.`, as it was written."""

    text: str


RANGE = ".."
IN = "in"

MISSPELT = "misspelt"
"""Kind of a statement that begins with a misspelt keyword."""


@dataclass
class RawBroken(RawNode):
    """A statement or a whole file that cannot be read. Its kind tells `assemble.py` which diagnostics may only follow
    from it.
    """

    kind: str
    """The keyword of the statement, "@" for an attribute, "" for a rule, "file" for a whole file, or MISSPELT."""
