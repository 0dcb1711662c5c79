"""Terms, atoms, literals, comparisons and substitutions: the immutable trees every other room works on.

Trees compare by value. They carry no search state and no text positions that take part in equality, so a rule read from
a file, from LINK's JSON and from its own printed form are one and the same object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = str | int | Decimal
"""What a constant holds. Text is never a number: `"1876"` and `1876` are two constants."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable with its data type, as in `Food Allergen A`. Inside one rule the name identifies it."""

    name: str
    data_type: str

    def __str__(self) -> str:
        return f"{self.data_type} {self.name}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A ground term: a text such as `saag chicken`, or a number such as the year 1876."""

    value: Value

    @property
    def is_number(self) -> bool:
        return not isinstance(self.value, str)

    def __str__(self) -> str:
        """The constant as rule text; `quoted` is the one place that escapes."""
        return quoted(self.value) if isinstance(self.value, str) else str(self.value)


Term: TypeAlias = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms."""

    predicate: str
    arguments: tuple[Term, ...]

    @property
    def indicator(self) -> str:
        """Name and arity, as Prolog writes it: `is_allergic_to/2`."""
        return f"{self.predicate}/{len(self.arguments)}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables in order of first occurrence, each once."""
        return tuple(dict.fromkeys(term for term in self.arguments if isinstance(term, Variable)))

    @property
    def is_ground(self) -> bool:
        return not self.variables

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Literal:
    """An atom or its negation (`not p(X)`, negation as failure)."""

    atom: Atom
    negated: bool = False

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.atom.variables

    def __str__(self) -> str:
        return f"not {self.atom}" if self.negated else str(self.atom)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A sum, difference, product or quotient inside a comparison. `operator` is one of `+ - * /`."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{_operand(self.left, self, False)} {self.operator} {_operand(self.right, self, True)}"


Expression: TypeAlias = Variable | Constant | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, operator one of `< =< > >= = \\=`. The two equalities also compare texts."""

    operator: str
    left: Expression
    right: Expression

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys((*expression_variables(self.left), *expression_variables(self.right))))

    def __str__(self) -> str:
        return f"{_expression_text(self.left)} {self.operator} {_expression_text(self.right)}"


BodyLiteral: TypeAlias = Literal | Comparison
"""What a premise is made of."""


@dataclass(frozen=True)
class Substitution(Mapping[str, Constant]):
    """An immutable map from variable name to constant; extending it gives a new one."""

    bindings: tuple[tuple[str, Constant], ...] = ()
    _index: dict[str, Constant] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", dict(self.bindings))

    def __getitem__(self, name: str) -> Constant:
        return self._index[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __hash__(self) -> int:
        return hash(self.bindings)

    def extended(self, name: str, constant: Constant) -> Substitution:
        """This substitution with one more binding; rebinding a name is a programming error."""
        if name in self._index:
            raise ValueError(f"{name} is already bound to {self._index[name]}")
        return Substitution((*self.bindings, (name, constant)))

    def term(self, term: Term) -> Term:
        return self._index.get(term.name, term) if isinstance(term, Variable) else term

    def apply(self, atom: Atom) -> Atom:
        """The atom with every bound variable replaced."""
        return Atom(atom.predicate, tuple(self.term(term) for term in atom.arguments))


def expression_variables(expression: Expression) -> tuple[Variable, ...]:
    """The variables of an expression, left to right, repeats included."""
    if isinstance(expression, Variable):
        return (expression,)
    if isinstance(expression, Constant):
        return ()
    return (*expression_variables(expression.left), *expression_variables(expression.right))


def quoted(text: str) -> str:
    """A text constant as rule text: double quotes, with backslash escapes for what would end or break the line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in escaped) + '"'


def _expression_text(expression: Expression) -> str:
    """Variables inside a comparison print without their type: an atom of the rule has already said it."""
    return expression.name if isinstance(expression, Variable) else str(expression)


def _operand(expression: Expression, parent: Arithmetic, right: bool) -> str:
    text = _expression_text(expression)
    if not isinstance(expression, Arithmetic):
        return text
    strength = {"+": 1, "-": 1, "*": 2, "/": 2}
    inner, outer = strength[expression.operator], strength[parent.operator]
    return f"({text})" if inner < outer or (right and inner == outer) else text
