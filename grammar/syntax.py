"""Statements as they were written: the parser's output, in which `assemble.py` settles names, types and values.

`parser.py` makes a node of each rule of `rule.lark` that has the node's name; its fields are the rule's parts in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Spot: TypeAlias = tuple[int, int, int, int]
"""1-based line and column of the first character, and of the first one behind the last."""


@dataclass
class Node:
    """A part of a statement. `at`: its range in the text, for diagnostics."""

    at: Spot = field(default=(1, 1, 1, 1), kw_only=True)


@dataclass
class Words(Node):
    """Words outside quotes: a data type, a data type with a variable's name, or only a name."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass
class Text(Node):
    """A text constant with its quotes and escapes."""

    source: str


@dataclass
class Number(Node):
    """A number with its sign."""

    source: str


Argument: TypeAlias = Words | Text | Number


@dataclass
class Operation(Node):
    """Two expressions joined by `+`, `-`, `*` or `/`."""

    left: Expression
    operator: str
    right: Expression


Expression: TypeAlias = Argument | Operation


@dataclass
class Comparison(Node):
    """Two expressions and the operator between them. `defined`: the left side, if it is a variable with its type."""

    left: Expression
    operator: str
    right: Expression
    defined: Words | None = None


@dataclass
class Atom(Node):
    """A predicate's name, in which blanks are possible, and its arguments."""

    name: Words
    arguments: tuple[Argument, ...]


@dataclass
class Literal(Node):
    """An atom or its negation."""

    atom: Atom
    negated: bool


Item: TypeAlias = Literal | Comparison


@dataclass
class Statement(Node):
    """A statement that begins with a keyword or with the name of an attribute."""

    keyword: str


@dataclass
class Import(Statement):
    """`import "file.rules"` and `import "file.rules" as name`."""

    path: Text
    name: str | None


@dataclass
class Subtype(Statement):
    """`type lower < upper`."""

    lower: Words
    upper: Words


@dataclass
class Declaration(Statement):
    """`oracle atom: templates` and the like. Only computed predicates have a `definition`.

    `tolerance`: such as `within 2` or `within 5%`.
    """

    atom: Atom
    tolerance: str | None = None
    templates: tuple[Text, ...] | None = None
    definition: Comparison | None = None


@dataclass
class Aggregate(Statement):
    """`aggregate atom := K = count(Dish D: premise)`. `counted`: the variables before the colon.

    `result` is the variable before the sign `operator`, `function` the word behind it.
    """

    atom: Atom
    result: str
    operator: str
    function: str
    counted: tuple[Words, ...]
    premise: tuple[Item, ...]
    templates: tuple[Text, ...] | None


@dataclass
class Opposite(Statement):
    """`opposite first second`."""

    first: str
    second: str


@dataclass
class Property(Statement):
    """`symmetric name/2` and the like."""

    name: str
    arity: str


@dataclass
class Closed(Statement):
    """`closed name/2` and, with a `position`, `closed name/2 by 1`."""

    name: str
    arity: str
    position: str | None


@dataclass
class Disjoint(Statement):
    """`disjoint Type, Type`. Without a comma, `first` contains both types and `second` is None."""

    first: Words
    second: Words | None


@dataclass
class Never(Statement):
    """`never premise & premise`."""

    premise: tuple[Item, ...]


@dataclass
class Fact(Statement):
    """`fact atom`."""

    atom: Atom


@dataclass
class Example(Statement):
    """`@example atom`."""

    atom: Atom


@dataclass
class Attribute(Statement):
    """`@name value ...`; the values keep their quotes."""

    values: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.keyword[1:]


@dataclass
class Rule(Node):
    """`premise -> conclusion` or `conclusion :- premise`. `exceptions`: the premises behind `unless`."""

    premise: tuple[Item, ...]
    conclusion: Atom
    exceptions: tuple[tuple[Item, ...], ...]


MISSPELT = "misspelt"
"""Kind of a statement that begins with a misspelt keyword."""


@dataclass
class Broken(Node):
    """A statement or a whole file that cannot be read. Its kind tells `assemble.py` which diagnostics may only follow
    from it.
    """

    kind: str
    """The keyword of the statement, "@" for an attribute, "" for a rule, "file" for a whole file, or MISSPELT."""
    name: tuple[str, ...] = ()
    """The words of a declared predicate's name, if they can be read."""
