"""Terms, atoms, literals, comparisons and substitutions: the immutable trees that every other room works on.

Trees compare by value; the places in files that they carry for diagnostics do not count, so a rule read from a file,
from LINK's JSON and from its own printed form are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import chain
from typing import TypeAlias, TypeGuard, TypeVar

from hapax.grammar.errors import Place
from hapax.grammar.values.moments import written_duration

Name = TypeVar("Name")
Item = TypeVar("Item")

Value: TypeAlias = str | int | Decimal
"""The value of a constant. Texts are never numbers: `"1876"` and `1876` are two constants."""


class EmptyCell(str):
    """The value of an empty cell in a row of a table. No text equals it, and no variable of a rule has it."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __repr__(self) -> str:
        return "nothing"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = EmptyCell("null")


def is_text(value: Value) -> TypeGuard[str]:
    """True for a text, and not for a missing value."""
    return isinstance(value, str) and value is not MISSING


IS_MISSING = "is_missing"
"""The test that an argument is MISSING: where it stands alone, the atom with its variable has that value."""

ANY = "Any"
"""The data type of a variable that is written without one, and of whose predicates no declaration gives one."""

ANONYMOUS = re.compile(r"_\d+")
"""The name of a variable that is written `_`."""

CUT_DIGITS = 28
"""Digits of a number whose decimal form does not end."""

MAXIMUM_POWER = 1000
"""Largest power of ten of a decimal: beyond it the exact fraction would fill memory."""

MOST_PLACES = 4300
"""Decimal places of a number at most, as many as Python reads digits; with more it is cut as well."""


class CutDecimal(Decimal):
    """A number without a decimal form that ends, such as a third: it is written with its first digits.

    It calculates and compares as the exact number, so that it equals no other decimal, and no fact has it.
    """

    exact: Fraction

    def __new__(cls, exact: Fraction) -> CutDecimal:
        cut = Context(prec=CUT_DIGITS).divide(Decimal(exact.numerator), Decimal(exact.denominator))
        self = super().__new__(cls, cut)
        self.exact = exact
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CutDecimal) and self.exact == other.exact

    def __hash__(self) -> int:
        return hash(self.exact)

    def __reduce__(self) -> tuple[type[CutDecimal], tuple[Fraction]]:  # type: ignore[override]  # made of the fraction
        return CutDecimal, (self.exact,)

    def __deepcopy__(self, memo: object) -> CutDecimal:
        return self  # a Decimal would copy its digits alone

    def as_integer_ratio(self) -> tuple[int, int]:
        """Numerator and denominator of the exact number; `Fraction` reads them too."""
        return self.exact.numerator, self.exact.denominator


def decimal_of(exact: Fraction) -> Decimal:
    """A fraction as a decimal: with all digits if they end and are not too many, else cut at CUT_DIGITS."""
    # They end if the denominator has no prime factors but 2 and 5.
    rest = exact.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or exact.denominator.bit_length() > MOST_PLACES:
        return CutDecimal(exact)
    # Digits of the exact quotient, at the most.
    enough = exact.numerator.bit_length() // 3 + exact.denominator.bit_length() + 2
    return Context(prec=enough).divide(Decimal(exact.numerator), Decimal(exact.denominator))


def printed_range(value: Value) -> tuple[Decimal, Decimal] | None:
    """Least and greatest of the numbers that are printed with these digits, if it has as many as a cut number."""
    if not isinstance(value, Decimal) or isinstance(value, CutDecimal):
        return None
    _, digits, exponent = value.as_tuple()
    if len(digits) != CUT_DIGITS or not isinstance(exponent, int):
        return None
    half = Decimal((0, (5,), exponent - 1))
    exact = Context(prec=CUT_DIGITS + 2)
    return exact.subtract(value, half), exact.add(value, half)


def number_of(exact: Fraction) -> int | Decimal:
    """A fraction as an integer if it is one, else as a decimal."""
    return exact.numerator if exact.denominator == 1 else decimal_of(exact)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable with its data type, as in `Food Allergen A`. Inside one rule the name identifies it."""

    name: str
    data_type: str

    @property
    def is_anonymous(self) -> bool:
        """True for `_`, which also matches an empty cell."""
        return ANONYMOUS.fullmatch(self.name) is not None

    def __str__(self) -> str:
        name = "_" if self.is_anonymous else self.name
        return name if self.data_type == ANY else f"{self.data_type} {name}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A ground term: a text such as `saag chicken`, or a number such as the year 1876."""

    value: Value

    @property
    def is_number(self) -> bool:
        return not isinstance(self.value, str)

    def __str__(self) -> str:
        """The constant as rule text; a missing one as the `_` that matches it."""
        if self.value is MISSING:
            return "_"
        return quoted(self.value) if isinstance(self.value, str) else str(self.value)


Term: TypeAlias = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms. `argument_places`: one for each argument of an atom that was read, else none."""

    predicate: str
    arguments: tuple[Term, ...]
    place: Place | None = field(default=None, compare=False, repr=False)
    argument_places: tuple[Place, ...] = field(default=(), compare=False, repr=False)

    @property
    def indicator(self) -> str:
        """Name and arity, as Prolog writes it: `is_allergic_to/2`."""
        return f"{self.predicate}/{len(self.arguments)}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables in order of first occurrence, each once."""
        return tuple(dict.fromkeys(term for term in self.arguments if isinstance(term, Variable)))

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of its constants, in order: of a ground atom, its arguments."""
        return tuple(term.value for term in self.arguments if isinstance(term, Constant))

    @property
    def bound(self) -> dict[int, Value]:
        """The values of its constants, by place."""
        return {place: term.value for place, term in enumerate(self.arguments) if isinstance(term, Constant)}

    @property
    def is_ground(self) -> bool:
        return not self.variables

    @property
    def has_missing(self) -> bool:
        """True if an argument is MISSING."""
        return Constant(MISSING) in self.arguments

    def place_at(self, position: int) -> Place | None:
        """The range of an argument; of the whole atom, if it was not read from a text."""
        return self.argument_places[position] if self.argument_places else self.place

    def place_of(self, variable: str) -> Place | None:
        """The range of the first argument that is the variable of this name."""
        for position, term in enumerate(self.arguments):
            if isinstance(term, Variable) and term.name == variable:
                return self.place_at(position)
        return self.place

    @property
    def untyped(self) -> str:
        """The atom without data types: `is_one_type_of(Z, A)`."""
        return f"{self.predicate}({', '.join(map(expression_text, self.arguments))})"

    def replaced(self, terms: Mapping[str, Term]) -> Atom:
        """The atom with terms in the place of the variables of these names, without its places."""
        new = (terms.get(term.name, term) if isinstance(term, Variable) else term for term in self.arguments)
        return Atom(self.predicate, tuple(new))

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

    def replaced(self, terms: Mapping[str, Term]) -> Literal:
        """The literal with terms in the place of the variables of these names."""
        return Literal(self.atom.replaced(terms), self.negated)

    @property
    def untyped(self) -> str:
        """The literal without data types."""
        return f"not {self.atom.untyped}" if self.negated else self.atom.untyped

    def __str__(self) -> str:
        return f"not {self.atom}" if self.negated else str(self.atom)


OPERATIONS = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "mod": 2, "**": 3}
"""The operations and how strongly they bind. All but `**` are read from left to right."""

TESTS = frozenset(("starts_with", "ends_with", "contains", "matches", "like", IS_MISSING))
"""The functions whose value is `true` or `false`. One stands alone for an equation with `true`."""

INFIX_TESTS = TESTS - {IS_MISSING}
"""Tests that may stand between their two arguments."""

TRUE = "true"

TRUTHS = {"true": True, "false": False, "fail": False}
"""Items of premises and goals that always or never hold."""

VERSION_MARK = " version "
"""Between name and version of a Python function in the name of its operation, which no rule can write."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An operation or a function of `functions.py`, by its sign or name, applied to expressions."""

    operator: str
    operands: tuple[Expression, ...]

    def __str__(self) -> str:
        if self.operator not in OPERATIONS:
            return f"{self.operator}({', '.join(map(expression_text, self.operands))})"
        left, right = self.operands
        return f"{_operand(left, self, False)} {self.operator} {_operand(right, self, True)}"


Expression: TypeAlias = Variable | Constant | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, with one of the operators `< =< > >= = \\=`. `=` and `\\=` also compare texts.

    `typed`: the left side was written with its data type, as in `Number K = A + 1`.
    """

    operator: str
    left: Expression
    right: Expression
    place: Place | None = field(default=None, compare=False, repr=False)
    typed: bool = field(default=False, compare=False, repr=False)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys((*expression_variables(self.left), *expression_variables(self.right))))

    @property
    def sides(self) -> tuple[Expression, Expression]:
        return self.left, self.right

    @property
    def untyped(self) -> str:
        return str(self)

    @property
    def test(self) -> Arithmetic | None:
        """The test that the comparison stands for: its function is true, or with `\\=`, is not."""
        is_test = isinstance(self.left, Arithmetic) and self.left.operator in TESTS and self.operator in ("=", "\\=")
        return self.left if is_test and self.right == Constant(TRUE) else None  # type: ignore[return-value]  # see above

    @property
    def tests_missing(self) -> str:
        """The name of the variable that the comparison says is missing; empty for another one."""
        test = self.test if self.operator == "=" else None
        argument = test.operands[0] if test is not None and test.operator == IS_MISSING else None
        return argument.name if isinstance(argument, Variable) else ""

    @property
    def equations(self) -> Iterator[tuple[Variable, Expression]]:
        """Each variable that is equated with an expression without it, and this expression."""
        if self.operator == "=":
            for target, source in ((self.left, self.right), (self.right, self.left)):
                # `A = A + 1` gives no value.
                if isinstance(target, Variable) and target not in expression_variables(source):
                    yield target, source

    def replaced(self, terms: Mapping[str, Term]) -> Comparison:
        """The comparison with terms in the place of the variables of these names, without its place."""
        return Comparison(self.operator, replaced(self.left, terms), replaced(self.right, terms))

    def __str__(self) -> str:
        if self.test is not None:
            return f"{'' if self.operator == '=' else 'not '}{self.test}"
        left = str(self.left) if self.typed else expression_text(self.left)
        return f"{left} {self.operator} {expression_text(self.right)}"


BodyLiteral: TypeAlias = Literal | Comparison
"""An item of a premise."""


@dataclass(frozen=True)
class Substitution(Mapping[str, Constant]):
    """An immutable map from variable name to constant."""

    bindings: tuple[tuple[str, Constant], ...] = ()
    # Only the tuple is compared and hashed.
    _index: dict[str, Constant] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", dict(self.bindings))  # the way to set a field of a frozen dataclass

    @classmethod
    def of(cls, values: Iterable[tuple[str, Value]]) -> Substitution:
        """The substitution of values by name."""
        return cls(tuple((name, Constant(value)) for name, value in values))

    def __getitem__(self, name: str) -> Constant:
        return self._index[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __hash__(self) -> int:
        return hash(self.bindings)

    def apply(self, atom: Atom) -> Atom:
        """The atom with every bound variable replaced."""
        return atom.replaced(self._index)


def expression_variables(expression: Expression) -> tuple[Variable, ...]:
    """The variables of an expression, left to right, repeats included."""
    if isinstance(expression, Variable):
        return (expression,)
    if isinstance(expression, Constant):
        return ()
    return tuple(chain.from_iterable(map(expression_variables, expression.operands)))


def expression_names(expression: Expression) -> set[str]:
    """The names of the variables of an expression."""
    return {variable.name for variable in expression_variables(expression)}


def replaced(expression: Expression, terms: Mapping[str, Term]) -> Expression:
    """The expression with terms in the place of the variables of these names."""
    if isinstance(expression, Variable):
        return terms.get(expression.name, expression)
    if isinstance(expression, Constant):
        return expression
    return Arithmetic(expression.operator, tuple(replaced(operand, terms) for operand in expression.operands))


def item_place(item: BodyLiteral) -> Place | None:
    """The range of an item of a premise, if it was read from a text."""
    return item.place if isinstance(item, Comparison) else item.atom.place


def distinct_variables(items: Iterable[Atom | BodyLiteral]) -> tuple[Variable, ...]:
    """The variables of all items in order of first occurrence, each name once."""
    seen: dict[str, Variable] = {}
    for variable in chain.from_iterable(item.variables for item in items):
        seen.setdefault(variable.name, variable)
    return tuple(seen.values())


def variable_names(items: Iterable[Atom | BodyLiteral]) -> set[str]:
    """The names of the variables of all items."""
    return {variable.name for variable in chain.from_iterable(item.variables for item in items)}


def reached(starts: Iterable[Name], following: Callable[[Name], Iterable[Name]]) -> list[Name]:
    """All names reachable from `starts` by `following`, the starts included, each once."""
    found = dict.fromkeys(starts)
    waiting = list(found)
    while waiting:
        for name in following(waiting.pop()):
            if name not in found:
                found[name] = None
                waiting.append(name)
    return list(found)


def connected(items: Iterable[Item], names: Callable[[Item], Collection[Name]], start: Iterable[Name]) -> list[Item]:
    """The items that share a name with the start or with an item before them in the result."""
    found: list[Item] = []
    reached_names, waiting = set(start), list(items)
    while near := next((item for item in waiting if not reached_names.isdisjoint(names(item))), None):
        waiting.remove(near)
        found.append(near)
        reached_names.update(names(near))
    return found


def grouped(items: Iterable[Item], key: Callable[[Item], Name]) -> dict[Name, list[Item]]:
    """The items by their key, in their order."""
    groups: dict[Name, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def quoted(text: str) -> str:
    """A text constant as rule text: in double quotes, with escapes for characters that would end or break it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    # Unprintable characters could break the line, or show it in another order.
    return '"' + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in escaped) + '"'


def expression_text(expression: Expression) -> str:
    """The expression as rule text; variables are printed without their type, which an atom of the rule states."""
    if isinstance(expression, Constant) and isinstance(expression.value, str):
        return written_duration(expression.value) or str(expression)
    return expression.name if isinstance(expression, Variable) else str(expression)


def _operand(expression: Expression, parent: Arithmetic, right: bool) -> str:
    """The operand of an operation, in parentheses if it would be read otherwise without them."""
    text = expression_text(expression)
    if parent.operator == "**" and not right and text.startswith("-"):
        return f"({text})"  # `-2 ** 2` is the negative of a square
    if not isinstance(expression, Arithmetic) or expression.operator not in OPERATIONS:
        return text
    inner, outer = OPERATIONS[expression.operator], OPERATIONS[parent.operator]
    # Of two operations of equal strength the one on the right needs them; on the left of `**`.
    is_apart = inner == outer and right == (parent.operator != "**")
    return f"({text})" if inner < outer or is_apart else text
