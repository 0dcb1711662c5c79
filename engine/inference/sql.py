"""Compile a rule's premise to one SQL SELECT over tagged integers (`kb/symbols.py`), with the meaning of its Prolog.

Only text is made here; nothing runs. A premise that SQL would decide differently from Prolog, or not exactly, raises
NotCompiled with the reason and is left to Prolog. No text from a rule or fact enters the SQL: constants become integer
tags, and all names are generated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm, prod

from hapax.grammar.closedness import Closedness
from hapax.grammar.declarations import AggregateDeclaration
from hapax.grammar.errors import HapaxError
from hapax.grammar.prolog_text import assignment, definition_of, evaluation_order, is_numeric
from hapax.grammar.rules import Library, PredicateSignature
from hapax.grammar.terms import (
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
from hapax.kb.symbols import TAGGED_BITS, NumberExtent, exact_extent

MAX_JOINED = 60
"""Tables joined in one SELECT; SQLite allows 64."""

MAX_CONDITIONS = 400
"""Conditions of one SELECT. Each adds a level to the expression, and SQLite allows 1,000 levels."""

_MAX_CALCULATION = 2_000
"""Characters of one calculation, which keep it far from that depth."""

_EXACT_BITS = 62
"""Results of arithmetic stay below two to this power; beyond 64 bits SQLite would continue with rounded floats."""

_SQL_OPERATORS = {"<": "<", "=<": "<=", ">": ">", ">=": ">=", "=": "=", "\\=": "<>"}


class NotCompiled(HapaxError):  # noqa: N818  named after the situation, as all our errors are
    """A premise that SQL would not decide exactly as Prolog does; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class CompileContext:
    """Context of a compilation: tables by indicator, tags of constants, and bounds of all numbers.

    `numbers` gives the table of the numbers among the symbols, times ten to the power of some decimal places.
    """

    library: Library
    tables: Mapping[str, str]
    tag: Callable[[Value], int]
    extent: NumberExtent
    numbers: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class TagExpression:
    """SQL whose value is a constant's tag. A number there has an absolute value and decimal places up to these."""

    text: str
    largest: int
    places: int = 0


@dataclass(frozen=True, slots=True)
class AbsentAtom:
    """A negated literal: there is no row with these cells (SQL), and if `covered` some row has the first of them."""

    indicator: str
    cells: tuple[str, ...]
    covered: bool = False


@dataclass(frozen=True)
class CompiledPremise:
    """A compiled premise. The tables have the aliases t0, t1, ... in the order of the positive literals."""

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    values: Mapping[str, TagExpression]
    """By variable."""
    extent: NumberExtent = field(default_factory=NumberExtent)
    """A bound of the numbers among the values."""
    calculates: bool = False
    """True if arithmetic produces a value, which may be in no table."""
    absent: tuple[AbsentAtom, ...] = ()
    """The negated literals that the conditions test, other than computed predicates."""

    @property
    def references(self) -> tuple[str, ...]:
        """SQL for the ref of the row that each positive literal matches."""
        return tuple(f"t{number}.ref" for number in range(len(self.tables)))

    def select(self, columns: Sequence[str], conditions: Sequence[str] = ()) -> str:
        """The SELECT. SQLite chooses the order of the join."""
        joined = ", ".join(f"{table} AS t{number}" for number, table in enumerate(self.tables))
        return _select(columns, joined, (*self.conditions, *conditions))

    def select_from(self, outer: Sequence[str], columns: Sequence[str], conditions: Sequence[str]) -> str:
        """The SELECT that starts with the tables `outer` (`TABLE AS ALIAS`) and joins the others along equations.

        An alias of this premise in `outer` stands for that table of it.
        """
        every = (*self.conditions, *conditions)
        placed = [table.rpartition(" ")[2] for table in outer]
        order = list(outer)
        waiting = [f"t{number}" for number in range(len(self.tables)) if f"t{number}" not in placed]
        while waiting:
            alias = max(waiting, key=lambda name: _equations_to(name, placed, every))
            waiting.remove(alias)
            placed.append(alias)
            order.append(f"{self.tables[int(alias[1:])]} AS {alias}")
        return _select(columns, " CROSS JOIN ".join(order), every)  # SQLite keeps the order of a CROSS JOIN


def _equations_to(alias: str, placed: Iterable[str], conditions: Iterable[str]) -> int:
    """The number of equations between the alias and tables that are placed already."""
    known = {*placed, alias}
    count = 0
    for condition in conditions:
        if " = " in condition:
            names = set(_ALIAS.findall(condition))
            count += alias in names and len(names) > 1 and names <= known
    return count


# `t0.` or `h.`: the alias before a column
_ALIAS = re.compile(r"\b([a-z]\d*)\.")


def _select(columns: Sequence[str], joined: str, conditions: Sequence[str]) -> str:
    source = f" FROM {joined}" if joined else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)}{source}{where}"


def compile_premise(premise: Iterable[BodyLiteral], context: CompileContext) -> CompiledPremise:
    """Compile a premise, item by item in the order of the generated Prolog. Raises NotCompiled."""
    return _PremiseCompiler(context).read(premise).compiled()


@dataclass(frozen=True)
class CompiledAggregate:
    """An aggregate as SQL: the SELECT of its atoms; and its premise and the atom's cells for a row `h` of these."""

    select: str
    premise: CompiledPremise
    cells: tuple[str, ...]


def compile_aggregate(
    aggregate: AggregateDeclaration,
    premise: Iterable[BodyLiteral],
    context: CompileContext,
    row_count: Callable[[str], int],
) -> CompiledAggregate:
    """Compile an aggregate. `row_count` gives the number of a table's rows. Raises NotCompiled."""
    if aggregate.function == "avg":
        raise NotCompiled("an average may not be a finite decimal")
    compiler = _PremiseCompiler(context).read(premise)
    number = None if aggregate.function == "count" else compiler.number_of(aggregate.counted[0])
    # No group has more rows than all combinations of the tables' rows.
    rows = prod(max(1, row_count(table)) for table in compiler.tables)
    value = _value_of_group(aggregate.function, number, rows)
    columns = [f"{compiler.cell(variable).text} AS c{place}" for place, variable in enumerate(aggregate.counted, 1)]
    columns += [f"{number.text} AS v"] if number is not None else []
    names: dict[str, str] = {}
    for place, variable in enumerate(aggregate.group, 1):
        names[variable.name] = f"g{place}"
        columns.append(f"{compiler.cell(variable).text} AS g{place}")
    inner = compiler.compiled()
    # Rows that agree in all counted values count once.
    distinct = inner.select(columns).replace("SELECT ", "SELECT DISTINCT ", 1)
    result = compiler.tag_of(value)
    terms = [term for term in aggregate.atom.arguments if isinstance(term, Variable)]
    cells = [names.get(term.name, result.text) for term in terms]
    # Without groups there is one, unless it is empty.
    grouping = f"GROUP BY {', '.join(names.values())}" if names else "HAVING count(*) > 0"
    select = f"SELECT {', '.join(cells)} FROM ({distinct}) {grouping}"  # noqa: S608  ours
    position = 1 + [term.name for term in terms].index(aggregate.result)
    compiler.values[aggregate.result] = replace(result, text=f"h.a{position}")
    premise_with_result = compiler.compiled()
    return CompiledAggregate(select, premise_with_result, tuple(compiler.cell(term).text for term in terms))


def _value_of_group(function: str, number: _NumberExpression | None, rows: int) -> _NumberExpression:
    """SQL for the value of an aggregate over a group of at most so many rows, in which `v` is `number`."""
    if number is None:
        return _NumberExpression("count(*)", rows)
    largest = number.largest * rows if function == "sum" else number.largest
    return _NumberExpression(f"{function}(v)", largest, number.over)


def conclusion_cells(atom: Atom, body: CompiledPremise, context: CompileContext) -> tuple[str, ...]:
    """SQL for the arguments of a rule's conclusion. Raises NotCompiled for a variable that the premise leaves open."""
    cells = []
    for term in atom.arguments:
        if isinstance(term, Variable) and term.name not in body.values:
            raise NotCompiled(f"its premise leaves {term.name} open")
        cells.append(body.values[term.name].text if isinstance(term, Variable) else str(context.tag(term.value)))
    return tuple(cells)


@dataclass(frozen=True, slots=True)
class _NumberExpression:
    """SQL whose value is `over` times an exact number, whose absolute value is at most `largest` / `over`."""

    text: str
    largest: int
    over: int = 1

    def __post_init__(self) -> None:
        if self.largest >= 1 << _EXACT_BITS or self.over >= 1 << _EXACT_BITS:
            raise NotCompiled("its arithmetic could need more than 64 bits")
        if len(self.text) > _MAX_CALCULATION:
            raise NotCompiled(f"a calculation in it is longer than {_MAX_CALCULATION} characters of SQL")

    def with_denominator(self, over: int) -> _NumberExpression:
        """The same number with this denominator, a multiple of its own."""
        factor = over // self.over
        return self if factor == 1 else _NumberExpression(f"({self.text} * {factor})", self.largest * factor, over)


def _over_same(left: _NumberExpression, right: _NumberExpression) -> tuple[_NumberExpression, _NumberExpression]:
    """The same numbers over a common denominator."""
    over = lcm(left.over, right.over)
    return left.with_denominator(over), right.with_denominator(over)


def _decimal_places(over: int) -> int | None:
    """The decimal places of fractions with this denominator; None if some have no end."""
    for places in range(_EXACT_BITS):
        if 10**places % over == 0:
            return places
    return None


@dataclass
class _PremiseCompiler:
    """Compiles the items of a premise one by one; collects tables, conditions and the values of variables."""

    context: CompileContext
    tables: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    values: dict[str, TagExpression] = field(default_factory=dict)
    numbers: dict[str, _NumberExpression] = field(default_factory=dict)
    """The values of variables that arithmetic gives: their tags are in no table before the statement ends."""
    calculates: bool = False
    absent: list[AbsentAtom] = field(default_factory=list)

    def read(self, premise: Iterable[BodyLiteral]) -> _PremiseCompiler:
        """Compile the items in the order of the generated Prolog; returns this compiler."""
        for item in evaluation_order(premise, self.context.library):
            self.item(item)
        return self

    def compiled(self) -> CompiledPremise:
        """The result. Raises NotCompiled if SQLite would refuse it."""
        if len(self.tables) > MAX_JOINED:
            raise NotCompiled(f"it joins more than {MAX_JOINED} atoms")
        if len(self.conditions) > MAX_CONDITIONS:
            raise NotCompiled(f"it sets more than {MAX_CONDITIONS} conditions")
        largest = max((cell.largest for cell in self.values.values()), default=0)
        places = max((cell.places for cell in self.values.values()), default=0)
        conditions, extent = tuple(dict.fromkeys(self.conditions)), NumberExtent(largest, places=places)
        return CompiledPremise(tuple(self.tables), conditions, self.values, extent, self.calculates, tuple(self.absent))

    def item(self, item: BodyLiteral) -> None:
        if isinstance(item, Comparison):
            self._comparison(item)
            return
        signature = definition_of(item, self.context.library)
        if item.negated:
            self._absent(item, signature)
        elif signature is not None:
            self._computed(item.atom, signature)
        else:
            self._source(item.atom)

    def _source(self, atom: Atom) -> None:
        alias = f"t{len(self.tables)}"
        self.tables.append(self.context.tables[atom.indicator])
        for place, term in enumerate(atom.arguments, 1):
            cell = TagExpression(f"{alias}.a{place}", self.context.extent.largest, self.context.extent.places)
            if isinstance(term, Variable) and term.name not in self.values:
                self.values[term.name] = cell
            else:
                self.conditions.append(f"{cell.text} = {self.cell(term).text}")

    def _absent(self, literal: Literal, signature: PredicateSignature | None) -> None:
        """Compile a negated literal: there is no such row, or the computed predicate is false."""
        cells = [self.cell(term) for term in literal.atom.arguments]
        if signature is None:
            closedness = self.context.library.closedness(literal.atom.indicator)
            if self.context.library.is_open(literal.atom.indicator):
                raise NotCompiled(f"it negates the open predicate {literal.atom.indicator}")
            table = self.context.tables[literal.atom.indicator]
            same = " AND ".join(f"n.a{place} = {cell.text}" for place, cell in enumerate(cells, 1))
            self.conditions.append(f"NOT EXISTS (SELECT 1 FROM {table} AS n WHERE {same})")  # noqa: S608  ours
            is_covered = closedness is Closedness.CLOSED_FOR_FIRST and bool(cells)
            self.absent.append(AbsentAtom(literal.atom.indicator, tuple(cell.text for cell in cells), is_covered))
            # Closed for each first argument: some row must have this one.
            if is_covered:
                covered = f"SELECT 1 FROM {table} AS k WHERE k.a1 = {cells[0].text}"  # noqa: S608  ours
                self.conditions.append(f"EXISTS ({covered})")
            return
        # Apart from the others, because its conditions are denied together.
        inner = _PremiseCompiler(self.context, values=dict(self.values), numbers=dict(self.numbers))
        inner._computed(literal.atom, signature)
        self.conditions.append(f"NOT ({' AND '.join(inner.conditions) or '1 = 1'})")

    def cell(self, term: Term) -> TagExpression:
        """The tag of a constant, or of a variable that has a value by now."""
        if isinstance(term, Constant):
            tag = self.context.tag(term.value)
            extent = exact_extent([term.value])
            return TagExpression(str(tag), extent.largest, extent.places)
        if term.name not in self.values:
            raise NotCompiled(f"it uses {term.name} before anything gives it a value")
        return self.values[term.name]

    # Computed predicates and comparisons, as `definition_text` and `comparison_goal` write them

    def _computed(self, atom: Atom, signature: PredicateSignature) -> None:
        definition = signature.definition
        assert definition is not None  # noqa: S101  of a computed predicate
        target = assignment(definition, {parameter.name for parameter in signature.parameters})
        # Without the library, as in `definition_text`: parameters have no types but those that the definition gives.
        inner = _PremiseCompiler(replace(self.context, library=Library()))
        given: dict[str, Term] = {}
        for parameter, term in zip(signature.parameters, atom.arguments, strict=True):
            given[parameter.name] = term
            if parameter.name != target:
                inner.values[parameter.name] = self.cell(term)
                if isinstance(term, Variable) and term.name in self.numbers:
                    inner.numbers[parameter.name] = self.numbers[term.name]
        inner._comparison(definition)
        self.conditions += inner.conditions
        self.calculates |= inner.calculates
        if target is None:
            return
        term = given[target]
        if isinstance(term, Variable) and term.name not in self.values:
            self.values[term.name] = inner.values[target]
            if target in inner.numbers:
                self.numbers[term.name] = inner.numbers[target]
        else:
            self.conditions.append(f"{inner.values[target].text} = {self.cell(term).text}")

    def _comparison(self, comparison: Comparison) -> None:
        target = assignment(comparison, set(self.values))
        numeric = all(is_numeric(side, self.context.library) for side in (comparison.left, comparison.right))
        if target is not None and target not in self.values:
            left, right = comparison.left, comparison.right
            source = right if isinstance(left, Variable) and left.name == target else left
            self.values[target] = self._assigned(target, source, numeric)
            return
        if comparison.operator in ("=", "\\=") and not numeric:
            left_cell, right_cell = self._same(comparison.left), self._same(comparison.right)
            self.conditions.append(f"{left_cell.text} {_SQL_OPERATORS[comparison.operator]} {right_cell.text}")
            return
        left_number, right_number = self._number(comparison.left), self._number(comparison.right)
        # Over a common denominator, so that only whole numbers are compared.
        left_number, right_number = _over_same(left_number, right_number)
        self.conditions.append(f"{left_number.text} {_SQL_OPERATORS[comparison.operator]} {right_number.text}")

    def number_of(self, variable: Variable) -> _NumberExpression:
        """The number that a variable has. Adds the condition that it is one."""
        return self._number(variable)

    def tag_of(self, number: _NumberExpression) -> TagExpression:
        """The tag of a calculated number. Raises NotCompiled if it may be too long for one."""
        # `largest` bounds the numerator; the value is at most this, rounded up.
        places, largest = _decimal_places(number.over), number.largest // number.over + 1
        if places is None or largest >= 1 << TAGGED_BITS:
            raise NotCompiled("it calculates a value that may not be a decimal, or a number of 60 bits")
        self.calculates = True
        # The tag of a whole number n is 2n + 1.
        text = f"(2 * {number.text} + 1)"
        if places:
            # Makes the table of the numbers with so many decimal places, with which SQL may call `decimal_tag`.
            self.context.numbers(places)
            text = f"decimal_tag({number.text}, {number.over})"
        return TagExpression(text, largest, places)

    def _assigned(self, target: str, source: Expression, numeric: bool) -> TagExpression:
        if not isinstance(source, Arithmetic):
            if numeric and isinstance(source, Variable):
                self._number(source)  # adds the condition that it is a number
            if isinstance(source, Variable) and source.name in self.numbers:
                self.numbers[target] = self.numbers[source.name]
            return self.cell(source)
        number = self.numbers[target] = self._number(source)
        return self.tag_of(number)

    def _same(self, expression: Expression) -> TagExpression:
        """A side of an equation between terms: terms are equal if their tags are."""
        if isinstance(expression, Arithmetic):
            raise NotCompiled("it compares a calculation with a term that need not be a number")
        return self.cell(expression)

    def _number(self, expression: Expression) -> _NumberExpression:
        """A side of a comparison of numbers. Adds the condition that it is a number."""
        if self.context.extent.inexact:
            raise NotCompiled(
                "it calculates or compares where there are numbers of more than 60 bits or 17 decimal places"
            )
        if isinstance(expression, Arithmetic):
            return self._calculated(expression)
        if isinstance(expression, Variable):
            return self.numbers.get(expression.name) or self._value(self.cell(expression))
        if isinstance(expression.value, str):
            self.conditions.append("1 = 0")  # a text has no order, so the comparison is false
            return _NumberExpression("0", 0)
        exact = Fraction(expression.value)
        return _NumberExpression(f"({exact.numerator})", abs(exact.numerator), exact.denominator)

    def _value(self, cell: TagExpression) -> _NumberExpression:
        """The number that has a tag. Adds the condition that it is a number."""
        if not cell.places:
            self.conditions.append(f"({cell.text} & 1) = 1")  # a whole number's tag is odd
            return _NumberExpression(f"({cell.text} >> 1)", cell.largest)
        table, over = self.context.numbers(cell.places), 10**cell.places
        self.conditions.append(f"(({cell.text} & 1) = 1 OR {cell.text} IN (SELECT id FROM {table}))")  # noqa: S608  ours
        symbol = f"(SELECT e.value FROM {table} AS e WHERE e.id = {cell.text})"  # noqa: S608  ours
        text = f"(CASE WHEN ({cell.text} & 1) = 1 THEN ({cell.text} >> 1) * {over} ELSE {symbol} END)"
        return _NumberExpression(text, cell.largest * over, over)

    def _calculated(self, expression: Arithmetic) -> _NumberExpression:
        left, operator = self._number(expression.left), expression.operator
        right = self._number(expression.right)
        if operator == "/":
            return self._divided(left, expression.right)
        if operator == "*":
            return _NumberExpression(
                f"({left.text} * {right.text})", left.largest * right.largest, left.over * right.over
            )
        left, right = _over_same(left, right)
        return _NumberExpression(f"({left.text} {operator} {right.text})", left.largest + right.largest, left.over)

    def _divided(self, left: _NumberExpression, divisor: Expression) -> _NumberExpression:
        if not isinstance(divisor, Constant):
            raise NotCompiled("it divides by a value that is not written as a number")
        if isinstance(divisor.value, str) or not divisor.value:
            self.conditions.append("1 = 0")  # division by a text or by zero: false, as in the generated Prolog
            return left
        exact = Fraction(divisor.value)
        above, below = exact.denominator, exact.numerator
        # A negative denominator would turn the comparison round.
        sign = -1 if below < 0 else 1
        return _NumberExpression(f"({left.text} * {sign * above})", left.largest * above, left.over * abs(below))
