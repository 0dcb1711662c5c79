"""A rule's premise as one SQL SELECT over tagged integers (`kb/symbols.py`), with exactly the meaning of its Prolog.

Pure text: nothing is run here. What SQL would decide otherwise than Prolog, or not exactly, is refused with the reason,
and stays with Prolog. No text of a rule or fact ever enters the SQL: constants are their tags, names are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from grammar.errors import HapaxError
from grammar.prolog_text import assignment, definition_of, evaluation_order, is_numeric
from grammar.rules import Library, PredicateSignature
from grammar.terms import (
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Value,
    Variable,
)
from kb.symbols import TAGGED_BITS, Extent

MOST_JOINED = 60
"""Relations in one SELECT; SQLite joins at most 64."""

MOST_CONDITIONS = 400
"""Conditions of one SELECT; SQLite takes expressions 1,000 levels deep, and each further condition is a level."""

_LONGEST = 2_000
"""Characters of one calculation, which stay far from that depth."""

_EXACT_BITS = 62
"""Results of arithmetic stay below two to this power; beyond 64 bits SQLite would go on with rounded numbers."""

_ORDERS = {"<": "<", "=<": "<=", ">": ">", ">=": ">=", "=": "=", "\\=": "<>"}


class NotCompiled(HapaxError):  # noqa: N818  named after the situation, as all our errors are
    """A premise that SQL would not decide exactly as Prolog does; the message says what in it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a premise is compiled against: tables by indicator, tags of constants, and the numbers there are."""

    library: Library
    tables: Mapping[str, str]
    tag: Callable[[Value], int]
    extent: Extent


@dataclass(frozen=True, slots=True)
class Cell:
    """SQL that gives a constant's tag; `largest`: no whole number it stands for is larger in size."""

    text: str
    largest: int


@dataclass(frozen=True)
class Body:
    """A compiled premise: tables with aliases t0, t1, ... in the order of the positive literals, conditions, values."""

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    values: Mapping[str, Cell]
    largest: int = 0
    """No whole number among the values is larger in size."""
    calculates: bool = False
    """Whether a value is none that a table or rule holds."""

    @property
    def references(self) -> tuple[str, ...]:
        """SQL for what each positive literal rests on."""
        return tuple(f"t{number}.ref" for number in range(len(self.tables)))

    def select(self, columns: Sequence[str], conditions: Sequence[str] = ()) -> str:
        """The SELECT; in which order the tables are joined is SQLite's choice."""
        joined = ", ".join(f"{table} AS t{number}" for number, table in enumerate(self.tables))
        return _select(columns, joined, (*self.conditions, *conditions))

    def select_from(self, outer: Sequence[str], columns: Sequence[str], conditions: Sequence[str]) -> str:
        """The SELECT that goes through the tables `outer` (`TABLE AS ALIAS`) first, and from there along shared values.

        An alias of the body in `outer` takes that table's place in it.
        """
        every = (*self.conditions, *conditions)
        placed = [one.rpartition(" ")[2] for one in outer]
        order = list(outer)
        waiting = [f"t{number}" for number in range(len(self.tables)) if f"t{number}" not in placed]
        while waiting:
            alias = max(waiting, key=lambda one: _connected(one, placed, every))
            waiting.remove(alias)
            placed.append(alias)
            order.append(f"{self.tables[int(alias[1:])]} AS {alias}")
        return _select(columns, " CROSS JOIN ".join(order), every)


def _connected(alias: str, placed: Iterable[str], conditions: Iterable[str]) -> int:
    """How many equations lead from what is placed to the alias."""
    known = {*placed, alias}
    names = (set(_ALIAS.findall(one)) for one in conditions if " = " in one)
    return sum(alias in each and len(each) > 1 and each <= known for each in names)


_ALIAS = re.compile(r"\b([a-z]\d*)\.")


def _select(columns: Sequence[str], joined: str, conditions: Sequence[str]) -> str:
    source = f" FROM {joined}" if joined else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)}{source}{where}"


def compile_body(premise: Iterable[BodyLiteral], setting: Setting) -> Body:
    """The premise, its items taken in the order in which the generated Prolog takes them. Raises NotCompiled."""
    compiler = _Compiler(setting)
    for item in evaluation_order(premise, setting.library):
        compiler.item(item)
    if len(compiler.tables) > MOST_JOINED:
        raise NotCompiled(f"it joins more than {MOST_JOINED} atoms")
    if len(compiler.conditions) > MOST_CONDITIONS:
        raise NotCompiled(f"it sets more than {MOST_CONDITIONS} conditions")
    largest = max((cell.largest for cell in compiler.values.values()), default=0)
    conditions = tuple(dict.fromkeys(compiler.conditions))
    return Body(tuple(compiler.tables), conditions, compiler.values, largest, compiler.calculates)


def head_cells(atom: Atom, body: Body, setting: Setting) -> tuple[str, ...]:
    """SQL for the arguments of a rule's conclusion. Raises NotCompiled for one that the premise leaves open."""
    cells = []
    for term in atom.arguments:
        if isinstance(term, Variable) and term.name not in body.values:
            raise NotCompiled(f"its premise leaves {term.name} open")
        cells.append(body.values[term.name].text if isinstance(term, Variable) else str(setting.tag(term.value)))
    return tuple(cells)


@dataclass(frozen=True, slots=True)
class _Number:
    """SQL that gives `over` times an exact number of at most `largest` / `over` in size."""

    text: str
    largest: int
    over: int = 1

    def __post_init__(self) -> None:
        if self.largest >= 1 << _EXACT_BITS or self.over >= 1 << _EXACT_BITS:
            raise NotCompiled("its arithmetic could need more than 64 bits")
        if len(self.text) > _LONGEST:
            raise NotCompiled(f"a calculation in it is longer than {_LONGEST} characters of SQL")

    def times(self, factor: int) -> _Number:
        """The same number over a `factor` times larger denominator."""
        return self if factor == 1 else _Number(f"({self.text} * {factor})", self.largest * factor, self.over * factor)


@dataclass
class _Compiler:
    """Goes through a premise and gathers tables, conditions and, by variable, the SQL of its value."""

    setting: Setting
    tables: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    values: dict[str, Cell] = field(default_factory=dict)
    calculates: bool = False

    def item(self, item: BodyLiteral) -> None:
        if isinstance(item, Comparison):
            self._comparison(item)
            return
        signature = definition_of(item, self.setting.library)
        if item.negated:
            self._absent(item, signature)
        elif signature is not None:
            self._computed(item.atom, signature)
        else:
            self._source(item.atom)

    def _source(self, atom: Atom) -> None:
        alias = f"t{len(self.tables)}"
        self.tables.append(self.setting.tables[atom.indicator])
        for place, term in enumerate(atom.arguments, 1):
            cell = Cell(f"{alias}.a{place}", self.setting.extent.largest)
            if isinstance(term, Variable) and term.name not in self.values:
                self.values[term.name] = cell
            else:
                self.conditions.append(f"{cell.text} = {self._cell(term).text}")

    def _absent(self, literal: Literal, signature: PredicateSignature | None) -> None:
        """`not`: no such row, or, for a computed predicate, arithmetic that does not hold."""
        cells = [self._cell(term) for term in literal.atom.arguments]
        if signature is None:
            table = self.setting.tables[literal.atom.indicator]
            same = " AND ".join(f"n.a{place} = {cell.text}" for place, cell in enumerate(cells, 1))
            self.conditions.append(f"NOT EXISTS (SELECT 1 FROM {table} AS n WHERE {same})")  # noqa: S608  ours
            return
        inner = _Compiler(self.setting, values=dict(self.values))
        inner._computed(literal.atom, signature)
        self.conditions.append(f"NOT ({' AND '.join(inner.conditions) or '1 = 1'})")

    def _cell(self, term: Term) -> Cell:
        """A term whose value is known by now."""
        if isinstance(term, Constant):
            tag = self.setting.tag(term.value)
            return Cell(str(tag), abs(tag >> 1) if tag & 1 else 0)
        if term.name not in self.values:
            raise NotCompiled(f"it tests {term.name} before anything gives it a value")
        return self.values[term.name]

    # Computed predicates and comparisons, as `definition_text` and `comparison_goal` write them

    def _computed(self, atom: Atom, signature: PredicateSignature) -> None:
        definition = signature.definition
        assert definition is not None  # noqa: S101  of a computed predicate
        target = assignment(definition, {one.name for one in signature.parameters})
        inner = _Compiler(replace(self.setting, library=Library()))
        given: dict[str, Term] = dict(zip((one.name for one in signature.parameters), atom.arguments, strict=True))
        for name, term in given.items():
            if name != target:
                inner.values[name] = self._cell(term)
        inner._comparison(definition)
        self.conditions += inner.conditions
        self.calculates |= inner.calculates
        if target is None:
            return
        term = given[target]
        if isinstance(term, Variable) and term.name not in self.values:
            self.values[term.name] = inner.values[target]
        else:
            self.conditions.append(f"{inner.values[target].text} = {self._cell(term).text}")

    def _comparison(self, comparison: Comparison) -> None:
        target = assignment(comparison, set(self.values))
        if target is not None and target not in self.values:
            left, right = comparison.left, comparison.right
            source = right if isinstance(left, Variable) and left.name == target else left
            self.values[target] = self._assigned(source)
            return
        numeric = all(is_numeric(one, self.setting.library) for one in (comparison.left, comparison.right))
        if comparison.operator in ("=", "\\=") and not numeric:
            left_cell, right_cell = (self._same(one) for one in (comparison.left, comparison.right))
            self.conditions.append(f"{left_cell.text} {_ORDERS[comparison.operator]} {right_cell.text}")
            return
        left_number, right_number = self._number(comparison.left), self._number(comparison.right)
        left_number, right_number = left_number.times(right_number.over), right_number.times(left_number.over)
        self.conditions.append(f"{left_number.text} {_ORDERS[comparison.operator]} {right_number.text}")

    def _assigned(self, source: Expression) -> Cell:
        if not isinstance(source, Arithmetic):
            return self._cell(source)
        number = self._number(source)
        if number.over != 1 or number.largest >= 1 << TAGGED_BITS:
            raise NotCompiled("it calculates a value that may be no whole number of 60 bits")
        self.calculates = True
        return Cell(f"(2 * {number.text} + 1)", number.largest)

    def _same(self, expression: Expression) -> Cell:
        """A side of an equation between terms: equal tags are equal terms."""
        if isinstance(expression, Arithmetic):
            raise NotCompiled("it compares a calculation with what need not be a number")
        return self._cell(expression)

    def _number(self, expression: Expression) -> _Number:
        """A side of a comparison of numbers, with the conditions under which it is one."""
        if self.setting.extent.inexact:
            raise NotCompiled("it calculates or compares where there are decimals or numbers of more than 60 bits")
        if isinstance(expression, Arithmetic):
            return self._calculated(expression)
        if isinstance(expression, Variable):
            cell = self._cell(expression)
            self.conditions.append(f"({cell.text} & 1) = 1")
            return _Number(f"({cell.text} >> 1)", cell.largest)
        if isinstance(expression.value, str):
            self.conditions.append("1 = 0")
            return _Number("0", 0)
        exact = Fraction(expression.value)
        return _Number(f"({exact.numerator})", abs(exact.numerator), exact.denominator)

    def _calculated(self, expression: Arithmetic) -> _Number:
        left, operator = self._number(expression.left), expression.operator
        right = self._number(expression.right)
        if operator == "/":
            return self._divided(left, expression.right)
        if operator == "*":
            return _Number(f"({left.text} * {right.text})", left.largest * right.largest, left.over * right.over)
        over = left.over
        left, right = left.times(right.over), right.times(over)
        return _Number(f"({left.text} {operator} {right.text})", left.largest + right.largest, left.over)

    def _divided(self, left: _Number, divisor: Expression) -> _Number:
        if not isinstance(divisor, Constant):
            raise NotCompiled("it divides by what is not written as a number")
        if isinstance(divisor.value, str) or not divisor.value:
            self.conditions.append("1 = 0")
            return left
        exact = Fraction(divisor.value)
        above, below = exact.denominator, exact.numerator
        sign = -1 if below < 0 else 1
        return _Number(f"({left.text} * {sign * above})", left.largest * above, left.over * abs(below))
