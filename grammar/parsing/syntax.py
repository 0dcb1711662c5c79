"""Statements as they were written: the parser's output, in which `assemble.py` settles names, types and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from hapax.grammar.writing.texts import is_variable_word

Spot: TypeAlias = tuple[int, int, int, int]
"""1-based line and column of the first character, and of the first one after the last."""

IN, RANGE, LIST, TAIL, CELLS = "in", "..", "[]", "[|]", "()"
"""Signs of terms: `X in (a, b)`, `1..3`, `[a, b]`, `[a|B]`, and `(A, B)` beside a sign of comparison."""

ALL, ANY_OF, NONE_OF, NOT, THEN = "&", "|", "not", "\\+", "->"
"""Signs of terms in premises: all parts hold, one of them does, not all of them do, the negation of one atom, and in a
goal, what holds for the first answer of its condition."""

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

SIGNS = ("<", "=<", ">", ">=", "=", "\\=")
"""The comparisons of rules."""

ASSIGN = ":="
"""The sign of `X is N + 1` in a goal, where `=` takes lists and records, too."""


@dataclass
class RawNode:
    """A part of a statement. `at`: its range in the text, for diagnostics."""

    at: Spot = field(default=(1, 1, 1, 1), kw_only=True, repr=False, compare=False)


RawPremise: TypeAlias = tuple[RawNode, ...]
"""Items that hold together: atoms, and terms with the signs above or those of comparisons."""


@dataclass
class RawWords(RawNode):
    """Words outside quotes: a data type, a data type with a variable's name, or only a name."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass
class RawValue(RawNode):
    """A text with its quotes and escapes, a number with its sign, or with a `unit` of time: `30 days`."""

    source: str
    unit: str = ""

    @property
    def is_text(self) -> bool:
        return self.source[0] in "\"'"

    def __str__(self) -> str:
        return f"{self.source} {self.unit}".rstrip()


@dataclass
class RawTerm(RawNode):
    """Parts with the sign that joins them: an operation, a comparison, a range, a list, or a part of a premise."""

    sign: str
    parts: tuple[RawNode, ...]


@dataclass
class RawNamed(RawNode):
    """`column: argument`."""

    column: str
    argument: RawNode


@dataclass
class RawAtom(RawNode):
    """A predicate's name, in which blanks are possible, and its arguments; in an expression a function.

    `pools`: the groups of arguments of `p(a; b)`, if there are several; `arguments` are then those of the first.
    `rows`: the premise of `sum P : { premise }`, a function over the rows that hold, of which the arguments are
    counted; with `is_set` these alone, as in `#sum{ P, X : premise }` and `sum(P, X: premise)`.
    """

    name: RawWords
    arguments: tuple[RawNode, ...]
    pools: tuple[tuple[RawNode, ...], ...] = ()
    rows: RawPremise | None = None
    is_set: bool = False


@dataclass
class RawHead(RawNode):
    """A conclusion, perhaps with its probability: `0.3::atom`."""

    atom: RawAtom
    share: RawNode | None = None


@dataclass
class RawClause(RawNode):
    """A rule, a fact, which has no premise, or a constraint, which has no conclusion.

    Of several conclusions with a probability one holds, or none. `exceptions`: the premises after `unless`.
    `keyword`: "fact", "@example" or "never"; empty for a rule and a choice.
    """

    heads: tuple[RawHead, ...]
    premise: RawPremise = ()
    exceptions: tuple[RawPremise, ...] = ()
    keyword: str = ""

    @property
    def is_choice(self) -> bool:
        return any(head.share is not None for head in self.heads)


@dataclass
class RawDeclaration(RawNode):
    """`oracle atom: templates` and the like.

    `tolerance`: such as `within 2` or `within 5%`. `key`: names of columns. `definition`: of a computed predicate and
    of an aggregate, the latter a comparison with an atom that has `rows`.
    """

    keyword: str
    atom: RawAtom
    tolerance: str | None = None
    key: tuple[str, ...] | None = None
    templates: tuple[RawValue, ...] | None = None
    definition: RawTerm | None = None


@dataclass
class RawLine(RawNode):
    """Another statement: its keyword, or `@name` of an attribute, and its parts: words, or texts as they were written.

    `?-` has the text of a goal. BROKEN stands for a statement that could not be read.
    """

    keyword: str
    parts: tuple[Any, ...]


BROKEN = RawLine("broken", ())
"""Stands for a statement that cannot be read: the attributes before it may be its own."""


def parts_of(node: object) -> Iterator[RawNode]:
    """The nodes directly inside of a node, or of a tuple."""
    inside = node if isinstance(node, tuple) else (getattr(node, entry.name) for entry in fields(node))  # type: ignore[arg-type]
    for part in inside:
        if isinstance(part, RawNode):
            yield part
        elif isinstance(part, tuple):
            yield from parts_of(part)


def all_parts(node: RawNode) -> Iterator[RawNode]:
    """The node and all nodes inside of it."""
    yield node
    for part in parts_of(node):
        yield from all_parts(part)


def variables(*nodes: RawNode) -> Iterator[RawWords]:
    """The variables of nodes with their types, at each of their places, and `_`."""
    for node in nodes:
        if isinstance(node, RawWords):
            if is_variable_word(node.words[-1]):
                yield node
        elif isinstance(node, RawTerm):
            yield from variables(*node.parts)
        elif isinstance(node, RawAtom):
            # The name of a predicate is no variable.
            yield from variables(*node.arguments, *node.rows or ())
        else:
            yield from variables(*parts_of(node))


def names(*nodes: RawNode) -> Iterator[str]:
    """The names of the variables of nodes, at each of their places, without `_`."""
    return (node.words[-1] for node in variables(*nodes) if node.words[-1] != "_")


def is_anything(argument: RawNode) -> bool:
    """True for `_`, perhaps with a type."""
    return isinstance(argument, RawWords) and argument.words[-1] == "_"


def unnamed(argument: RawNode) -> RawNode:
    """An argument without the name of its column."""
    return argument.argument if isinstance(argument, RawNamed) else argument
