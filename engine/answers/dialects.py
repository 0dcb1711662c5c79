"""The library as SQL of another database: a table of facts for each predicate, and a view for what rules conclude.

Columns are plain: texts, or numbers as DECIMAL. sqlglot writes each statement, so that it quotes all names and values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import chain, count
from typing import NamedTuple

from sqlglot import exp

from hapax.engine.logic.evaluate import constraints, left_out, open_variables
from hapax.grammar.dependencies import evaluation_layers, refuse_negative_cycles
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import AggregateDeclaration, Closedness, PredicateKind, PredicateSignature
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    IS_MISSING,
    MISSING,
    TESTS,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
)
from hapax.grammar.values.moments import DATE, DATE_TIME, DURATION, TIME
from hapax.grammar.writing.prolog_text import (
    assignment,
    definition_of,
    evaluation_order,
    may_have_empty_cells,
    present,
    type_of,
)
from hapax.kb.atoms.facts import columns_of

_PLACES = 12
"""Decimal places of a number in a column."""

_LARGEST_EXPONENT = 8
"""Exponent of a power that is written as a product, which keeps decimals exact."""

_LONGEST_NAME = 40
"""Characters of a predicate's or rule's name that a table's name keeps. PostgreSQL cuts names at 63 bytes."""

_KNOWN, _STEPS, _ROWS = "known", "steps", "found"
"""The rows of a recursive view so far, those of a transitive relation before its closure, and those of an aggregate.

The name of a predicate's table ends with its arity, so it is never one of these.
"""


class _Dialect(NamedTuple):
    """A database. `digits`: of a number, the decimal places included. `no_recursion`: why views cannot be recursive."""

    title: str
    digits: int
    no_recursion: str = ""


_DIALECTS = {
    "duckdb": _Dialect("DuckDB", 38),
    "postgres": _Dialect("PostgreSQL", 38),
    # A product or quotient of more digits than 24 keeps fewer decimal places than 12.
    "spark": _Dialect("Spark", 24, "Spark's WITH RECURSIVE keeps repeated rows, so that a cycle of facts never ends"),
}


def sql_text(library: Library, rules: Sequence[Rule], dialect: str) -> str:
    """SQL that creates the tables of facts, the views of derived predicates, and one of the statements of each rule.

    `dialect`: `duckdb`, `postgres` or `spark`. Raises HapaxError, with every reason, for what the database cannot do.
    """
    library = library.with_closure()
    refuse_negative_cycles(library)
    if bare := [item.indicator for item in library.completed().signatures if not item.argument_types]:
        raise HapaxError(f"{', '.join(bare)} would be a table without columns, which SQL lacks. Add an argument.")
    writer = _ScriptWriter(library, dialect)
    writer.write(rules)
    if writer.refused:
        raise HapaxError(
            "\n".join([f"{_DIALECTS[dialect].title} cannot run all of these rules.", *writer.refused])
            + "\nChoose others with the option `--rule` or the argument `only`."
        )
    return "\n".join(writer.lines) + "\n"


_CALCULATIONS: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}

_COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "<": exp.LT,
    "=<": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "=": exp.EQ,
    "\\=": exp.NEQ,
}


@dataclass(frozen=True, slots=True)
class _Cell:
    """SQL of a value, and whether it is a number or a text."""

    expression: exp.Expr
    is_number: bool

    @property
    def sql(self) -> exp.Expr:
        """A copy, because a part of one statement cannot be a part of another."""
        return self.expression.copy()


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _column(table: str, name: str) -> exp.Column:
    return exp.Column(this=_identifier(name), table=_identifier(table))


def _alias(name: str, columns: Sequence[str] = ()) -> exp.TableAlias:
    return exp.TableAlias(this=_identifier(name), columns=list(map(_identifier, columns)))


def _table(name: str, alias: str = "") -> exp.Table:
    return exp.Table(this=_identifier(name), alias=_alias(alias) if alias else None)


def _named(cells: Iterable[exp.Expr], names: Iterable[str]) -> list[exp.Alias]:
    return [exp.Alias(this=cell, alias=_identifier(name)) for cell, name in zip(cells, names, strict=True)]


def _select(
    columns: Sequence[exp.Expr],
    sources: Sequence[exp.Expr] = (),
    conditions: Sequence[exp.Expr] = (),
) -> exp.Select:
    query = exp.select(*columns)
    for place, source in enumerate(sources):
        query = query.join(source, join_type="cross") if place else query.from_(source)
    return query.where(*conditions)


def _digits(number: int | Decimal) -> exp.Expr:
    """A number as a literal."""
    size = abs(number)
    digits = exp.Literal.number(size if isinstance(size, int) else f"{size:f}")
    return exp.Neg(this=digits) if number < 0 else digits


def _union(queries: Sequence[exp.Query], distinct: bool = True) -> exp.Query:
    return reduce(lambda whole, query: exp.Union(this=whole, expression=query, distinct=distinct), queries)


def _joined(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.DPipe(this=left, expression=right, safe=False)


def _comment(text: str) -> str:
    # A line break would end the comment, and the rest would be SQL.
    return "-- " + "".join(character if character.isprintable() else " " for character in text)


def _unique(wanted: str, taken: set[str]) -> str:
    """The name, with a number after it if it is taken: databases ignore case."""
    names = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
    name = next(name for name in names if name.casefold() not in taken)
    taken.add(name.casefold())
    return name


class _ScriptWriter:
    """Writes statements in an order in which a database can run them; collects what it cannot run, with the reasons."""

    def __init__(self, library: Library, dialect: str) -> None:
        self.library, self._dialect, self._sql = library, dialect, _DIALECTS[dialect]
        self.refused: list[str] = []
        self.tables: dict[str, str] = {}
        """The table or view that a premise reads, by indicator."""
        self.denials: dict[str, str] = {}
        """The table of the facts that are known to be false, by indicator of an open predicate."""
        self._facts: dict[str, str] = {}
        self._taken: set[str] = set()
        self.lines = list(map(_comment, self._head()))

    def _head(self) -> Iterator[str]:
        yield f"Rules of Hapax for {self._sql.title}: fill the tables with facts, and read the views."
        yield (
            f"Numbers are DECIMAL({self._sql.digits}, {_PLACES}). Hapax calculates exactly; here a number has "
            f"{_PLACES} decimal places, and the rest is lost, so that three thirds are not one."
        )
        yield "A number that is too large for its column ends a statement with an error."
        yield "A column holds texts or numbers, as its type says; among texts, 2 and the text 2 are the same."
        yield from map(str, self.library.left_out or ())

    def write(self, rules: Sequence[Rule]) -> None:
        """Write everything: tables first, then views from the lowest layer up, then the statements of these rules."""
        library = self.library
        signatures = {signature.indicator: signature for signature in library.completed().signatures}
        stored = [name for name, item in signatures.items() if item.definition is None or name in library.derived]
        # Before all other names, so that those of predicates do not depend on the rest.
        for indicator in stored:
            self.tables[indicator] = self._free_of(indicator)
        for indicator in stored:
            is_derived = indicator in library.derived
            self._facts[indicator] = self._free_of(indicator, "_facts") if is_derived else self.tables[indicator]
            self._create_table(self._facts[indicator], indicator, f"facts of {indicator}")
            self._insert_facts(indicator)
        for indicator in sorted(library.open_negations & set(stored)):
            self.denials[indicator] = self._free_of(indicator, "_denied")
            self._create_table(self.denials[indicator], indicator, f"facts of {indicator} that are known to be false")
        for layer in evaluation_layers(library):
            self._create_views(sorted(layer & library.derived))
        for rule in rules:
            if names := open_variables(rule, self.library):
                self.lines.append(f"\n{_comment(f'{rule.name} was left out: {left_out(rule, names)}.')}")
                continue
            with self._refusals(f"rule {rule.name}"):
                query = self._statements(rule)
                self._create("VIEW", self._free(f"rule_{rule.name}"), query, f"statements of rule {rule.name}")

    @contextmanager
    def _refusals(self, subject: str) -> Iterator[None]:
        """Collect the reason for which something has no SQL."""
        try:
            yield
        except HapaxError as reason:
            self.refused.append(f"{subject}: {reason}")

    def _free(self, name: str, ending: str = "") -> str:
        """A table's name that is not taken, of the letters that each database allows."""
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII)[:_LONGEST_NAME]
        return _unique(plain + ending, self._taken)

    def _free_of(self, indicator: str, ending: str = "") -> str:
        """A table's name for a predicate, as `road_2`: no database has one like it."""
        name, _, arity = indicator.rpartition("/")
        return self._free(name, f"_{arity}{ending}")

    def _create(self, kind: str, name: str, query: exp.Expr, comment: str) -> None:
        self._add(exp.Create(this=_table(name), kind=kind, expression=query), comment)

    def _add(self, statement: exp.Expr, comment: str = "") -> None:
        lines = ["", _comment(comment)] if comment else []
        self.lines += [*lines, statement.sql(self._dialect, pretty=True) + ";"]

    def _create_table(self, name: str, indicator: str, comment: str) -> None:
        columns = []
        # Rows of a table may have empty cells.
        always = [] if may_have_empty_cells(indicator, self.library) else [exp.NotNullColumnConstraint()]
        for column, is_number in zip(columns_of(indicator), self.kinds(indicator), strict=True):
            given = [exp.ColumnConstraint(kind=kind) for kind in always]
            columns.append(exp.ColumnDef(this=_identifier(column), kind=self._type(is_number), constraints=given))
        types = ", ".join(self.library.signature(indicator).argument_types)
        schema = exp.Schema(this=_table(name), expressions=columns)
        self._add(exp.Create(this=schema, kind="TABLE"), f"{comment}: {types}")

    def _insert_facts(self, indicator: str) -> None:
        rows = []
        for fact in self.library.facts:
            if fact.indicator == indicator:
                with self._refusals(f"{fact.place or ''} fact {fact}".strip()):
                    cells = _Premise(self, self.library, {}).cells(fact)
                    rows.append(exp.Tuple(expressions=self._values(cells, indicator)))
        if rows:
            self._add(exp.Insert(this=_table(self._facts[indicator]), expression=exp.Values(expressions=rows)))

    def _create_views(self, members: Sequence[str]) -> None:
        """Create the view of a layer's predicate."""
        for indicator in members:
            with self._refusals(indicator):
                others = [name for name in members if name != indicator]
                if others:
                    raise HapaxError(
                        f"it and {' and '.join(others)} depend on each other, and WITH RECURSIVE defines one relation."
                    )
                self._create("VIEW", self.tables[indicator], self._atoms(indicator), f"atoms of {indicator}")

    def _atoms(self, indicator: str) -> exp.Query:
        """The atoms of a derived predicate: its facts, and the conclusions of its rules."""
        columns = [exp.column(_identifier(name)) for name in columns_of(indicator)]
        parts: list[exp.Query] = [_select(columns, [_table(self._facts[indicator])], [])]
        recursive = []
        for rule in self.library.concluding[indicator]:
            if rule.aggregate is not None and rule.aggregate.is_recursive:
                raise HapaxError("it is an aggregate that depends on itself.")
            if any(literal.atom.indicator == indicator for literal in rule.literals):
                recursive.append(rule)
            else:
                premise = _Premise(self, self.library, self.tables).read(rule.premise)
                aggregate = rule.aggregate
                parts.append(self._aggregate(aggregate, premise) if aggregate else self._conclusions(rule, premise))
        if not recursive:
            return _union(parts)
        if self._sql.no_recursion:
            raise HapaxError(f"it is recursive, and {self._sql.no_recursion}.")
        return self._closure(indicator, _union(parts), recursive)

    def _closure(self, indicator: str, base: exp.Query, rules: Sequence[Rule]) -> exp.Query:
        """The atoms of a recursive predicate: each step of WITH RECURSIVE starts from the rows that the last one added.

        So a rule may have the predicate in its premise once: with two, it would miss joins of rows of different steps.
        A transitive relation needs one, since each path is a path and a step. PostgreSQL allows one `known` in all.
        """
        columns = columns_of(indicator)
        whole = exp.select("*").from_(_table(_KNOWN))
        tables = self.tables
        if len(rules) == 1 and rules[0].joins_itself:
            whole = whole.with_(_alias(_STEPS, columns), as_=base)
            base, tables = exp.select("*").from_(_table(_STEPS)), {**tables, indicator: _STEPS}
        branches = []
        for rule in rules:
            own = [literal for literal in rule.literals if literal.atom.indicator == indicator]
            if len(own) > 1 and tables is self.tables:
                raise HapaxError(
                    f"rule {rule.name} has it {len(own)} times in its premise, and a step of WITH RECURSIVE joins only "
                    "the rows that the last step added. Write the rule with one."
                )
            sources: list[exp.Expr] = [] if len(rules) > 1 else [_table(_KNOWN)]
            premise = _Premise(self, self.library, tables, sources, own[0]).read(rule.premise)
            branches.append(self._conclusions(rule, premise))
        step = branches[0]
        if len(branches) > 1:
            steps = exp.Lateral(this=exp.Subquery(this=_union(branches, False)), alias=_alias("new"))
            step = _select([_column("new", name) for name in columns], [_table(_KNOWN), steps])
        return whole.with_(_alias(_KNOWN, columns), as_=_union([base, step]), recursive=True)

    def _conclusions(self, rule: Rule, premise: _Premise) -> exp.Select:
        """The conclusions of a rule by its compiled premise."""
        atom = rule.conclusion.atom
        return premise.select(self._row(premise.cells(atom), atom.indicator))

    def _statements(self, rule: Rule) -> exp.Select:
        """The values of a rule's variables in its statements, whose hypotheses are assumed."""
        premise = _Premise(self, self.library, self.tables).read(constraints(rule))
        taken: set[str] = set()
        names = [_unique(variable.name, taken) for variable in rule.searched]
        columns = _named([premise.cell(variable).sql for variable in rule.searched], names)
        # A rule without such variables has one statement, if any.
        return premise.select(columns or _named([exp.true()], ["holds"])).distinct()

    def _aggregate(self, aggregate: AggregateDeclaration, premise: _Premise) -> exp.Select:
        """The atoms of an aggregate, over the distinct rows of its counted variables in each group."""
        if aggregate.is_arg or len(aggregate.cases) > 1:
            raise HapaxError(f"{aggregate.function} of rows, or of cases joined by |, has no form that they share.")
        cells = {variable.name: premise.cell(variable) for variable in (*aggregate.counted, *aggregate.group)}
        places = {name: f"a{place}" for place, name in enumerate(cells, 1)}
        first = aggregate.counted[0].name
        if aggregate.function in ("min", "max") and not cells[first].is_number:
            raise HapaxError(f"{aggregate.function} may be of texts, which databases order otherwise.")
        if aggregate.function != "count" and not cells[first].is_number:
            cells[first] = _Cell(self.number(cells[first]), True)
            premise.conditions.append(_not_null(cells[first].sql))
        rows = premise.select(_named([cell.sql for cell in cells.values()], places.values())).distinct()
        groups = [_column(_ROWS, places[variable.name]) for variable in aggregate.group]
        count = exp.Count(this=exp.Star())
        result: exp.Expr = count
        if aggregate.function != "count":
            column = _column(_ROWS, places[first])
            total = exp.Sum(this=column)
            smallest, largest = exp.Min(this=column.copy()), exp.Max(this=column.copy())
            average = self.calculated("/", total.copy(), count.copy())
            result = {"sum": total, "min": smallest, "max": largest, "avg": average}[aggregate.function]
        values = {name: _Cell(_column(_ROWS, place), cells[name].is_number) for name, place in places.items()}
        values[aggregate.result] = _Cell(result, True)
        heads = [values[variable.name] for variable in aggregate.atom.variables]
        source = exp.Subquery(this=rows, alias=_alias(_ROWS))
        query = _select(self._row(heads, aggregate.atom.indicator), [source])
        # Without groups there is one, unless it is empty.
        return query.group_by(*groups) if groups else query.having(exp.GT(this=count.copy(), expression=_digits(0)))

    def _row(self, cells: Iterable[_Cell], indicator: str) -> list[exp.Alias]:
        """Cells as the columns of a predicate's table."""
        return _named(self._values(cells, indicator), columns_of(indicator))

    def _values(self, cells: Iterable[_Cell], indicator: str) -> list[exp.Expr]:
        """Cells in the types of a predicate's columns. Raises HapaxError for a text among numbers."""
        values = []
        for cell, is_number in zip(cells, self.kinds(indicator), strict=True):
            value = self._typed(cell.sql, cell.is_number)
            if is_number and not cell.is_number:
                raise HapaxError(f"it puts a text into {indicator}, whose type is one of numbers.")
            values.append(self.text(cell) if cell.is_number and not is_number else value)
        return values

    def text(self, cell: _Cell) -> exp.Expr:
        """A cell as a text."""
        if not cell.is_number:
            return cell.sql
        value: exp.Expr = exp.Cast(this=self._typed(cell.sql, True), to=self._type(False))
        # 1990.000000000000 is 1990 among texts.
        for end in "0.":
            value = exp.Trim(this=value, expression=exp.Literal.string(end), position="TRAILING")
        return value

    def kinds(self, indicator: str) -> tuple[bool, ...]:
        """By argument of a predicate, True if its column holds numbers."""
        return tuple(map(self.library.is_numeric, self.library.signature(indicator).argument_types))

    def _typed(self, value: exp.Expr, is_number: bool) -> exp.Expr:
        """A value in the type of a column."""
        if isinstance(value, exp.Column | exp.Cast):
            return value
        return exp.Cast(this=value, to=self._type(is_number))

    def _type(self, is_number: bool) -> exp.DataType:
        digits = f"DECIMAL({self._sql.digits}, {_PLACES})"
        return exp.DataType.build(digits if is_number else "TEXT")

    def constant(self, constant: Constant) -> _Cell:
        """A constant. Raises HapaxError for one that a column cannot hold."""
        value = constant.value
        if isinstance(value, str):
            if "\0" in value:
                raise HapaxError(f"{constant} has a character that SQL cannot hold, U+0000.")
            return _Cell(exp.Literal.string(value), False)
        is_held = (Fraction(value) * 10**_PLACES).denominator == 1
        if not is_held or abs(Fraction(value)) >= 10 ** (self._sql.digits - _PLACES):
            raise HapaxError(
                f"{constant} has more digits than DECIMAL({self._sql.digits}, {_PLACES}), which the database holds.",
                "Write it with fewer.",
            )
        return _Cell(_digits(value), True)

    def compared(self, sign: str, first: _Cell, second: _Cell) -> exp.Expr:
        """The condition that two values compare so. A number and a text that states none have no order."""
        if first.is_number == second.is_number and (first.is_number or sign in ("=", "\\=")):
            return _COMPARISONS[sign](this=first.sql, expression=second.sql)
        if sign == "\\=":
            return _denied([self.compared("=", first, second)])
        numbers = _COMPARISONS[sign](this=self.number(first), expression=self.number(second))
        if first.is_number or second.is_number or sign == "=":
            return numbers
        states = [exp.Is(this=self.number(cell), expression=exp.null()) for cell in (first, second)]
        texts = _COMPARISONS[sign](this=self._ordered(first), expression=self._ordered(second))
        neither = exp.If(this=exp.and_(*states), true=texts)
        return exp.Case(ifs=[neither], default=exp.Coalesce(this=numbers, expressions=[exp.false()]))

    def _ordered(self, cell: _Cell) -> exp.Expr:
        """A text in the order of its characters, which PostgreSQL has in one collation alone."""
        if self._dialect != "postgres":
            return cell.sql
        return exp.Collate(this=cell.sql, expression=_identifier("C"))

    def test(self, test: Arithmetic, values: Sequence[_Cell]) -> exp.Expr:
        """The condition of a test of texts. Raises HapaxError for a regular expression: databases have others."""
        if test.operator == IS_MISSING:
            return exp.false()
        whole, part = map(self.text, values)
        size = exp.Length(this=part.copy())
        if test.operator == "contains":
            return exp.GT(this=exp.StrPosition(this=whole, substr=part), expression=_digits(0))
        ends = {"starts_with": exp.Left, "ends_with": exp.Right}
        if test.operator not in ends:
            raise HapaxError(f'"{test}" has another meaning in each database.')
        return exp.EQ(this=ends[test.operator](this=whole, expression=size), expression=part)

    def function(self, call: Arithmetic, values: Sequence[_Cell]) -> _Cell:
        """The value of an operation or a function. Raises HapaxError for one that the databases do not share."""
        name = call.operator
        if name in TESTS:
            yes, no = exp.Literal.string("true"), exp.Literal.string("false")
            return _Cell(exp.Case(ifs=[exp.If(this=self.test(call, values), true=yes)], default=no), False)
        if name in ("substring", "replace"):
            return _Cell(self._part(call, values), False)
        if name in ("lower", "upper", "concat"):
            texts = list(map(self.text, values))
            cased = {"lower": exp.Lower, "upper": exp.Upper}
            return _Cell(cased[name](this=texts[0]) if name in cased else reduce(_joined, texts), False)
        if name == "length":
            return _Cell(self._typed(exp.Length(this=self.text(values[0])), True), True)
        if name in ("min", "max") and not all(value.is_number for value in values):
            raise HapaxError(f'"{call}" may be of texts, which databases order otherwise.')
        numbers = list(map(self.number, values))
        if name in ("+", "-", "*", "/"):
            return _Cell(self.calculated(name, *numbers), True)
        return _Cell(self._typed(self._number_function(call, numbers), True), True)

    def _part(self, call: Arithmetic, values: Sequence[_Cell]) -> exp.Expr:
        """A part of a text, or the text with a part exchanged: what is taken out is written in the rule."""
        stated = [operand.value for operand in call.operands[1:] if isinstance(operand, Constant)]
        text, numbers = self.text(values[0]), [value for value in stated if isinstance(value, int)]
        if call.operator == "replace":
            if isinstance(call.operands[1], Constant) and stated[0] != "":
                return exp.func("REPLACE", text, *map(self.text, values[1:]), dialect=self._dialect)
            wanted = "the text that is replaced into the rule; it has a character at least"
        else:
            if len(numbers) == 2 and numbers[0] >= 1 and numbers[1] >= 0:
                return exp.func("SUBSTRING", text, *map(self.number, values[1:]), dialect=self._dialect)
            wanted = "both numbers into the rule; characters are counted from 1"
        raise HapaxError(f'"{call}" has another meaning in each database.', f"Write {wanted}.")

    def _number_function(self, call: Arithmetic, numbers: Sequence[exp.Expr]) -> exp.Expr:
        name, first, last = call.operator, numbers[0], call.operands[-1]
        if name in ("//", "mod"):
            quotient = self.calculated("/", first.copy(), numbers[1].copy())
            down, up = exp.Floor(this=quotient), exp.Ceil(this=quotient.copy())
            if name == "mod":
                return self.calculated("-", first, self.calculated("*", numbers[1], self._typed(down, True)))
            is_negative = exp.LT(this=quotient.copy(), expression=_digits(0))
            return exp.Case(ifs=[exp.If(this=is_negative, true=up)], default=down)
        whole = last.value if isinstance(last, Constant) and isinstance(last.value, int) else -1
        if name == "**" and 1 <= whole <= _LARGEST_EXPONENT:
            return reduce(lambda power, base: self.calculated("*", power, base.copy()), [first] * (whole - 1), first)
        if name == "round" and (len(numbers) == 1 or 0 <= whole <= _PLACES):
            return exp.Round(this=first, decimals=_digits(whole if len(numbers) > 1 else 0))
        unary = {"abs": exp.Abs, "floor": exp.Floor}
        if name in unary:
            return unary[name](this=first)
        extremes = {"min": exp.Least, "max": exp.Greatest}
        if name in extremes:
            return extremes[name](this=first, expressions=list(numbers[1:]), ignore_nulls=False)
        raise HapaxError(f'"{call}" has no form that the databases share.')

    def number(self, cell: _Cell) -> exp.Expr:
        """The number of a cell, or that which a text states; NULL for another text."""
        if cell.is_number:
            return cell.sql
        digits = f"^-?[0-9]{{1,{self._sql.digits - _PLACES}}}([.][0-9]{{1,{_PLACES}}})?$"
        states = exp.RegexpLike(this=cell.sql, expression=exp.Literal.string(digits))
        return exp.Case(ifs=[exp.If(this=states, true=exp.TryCast(this=cell.sql, to=self._type(True)))])

    def calculated(self, operator: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """A calculation on two numbers, with the decimal places of a column; NULL where the divisor is zero."""
        first, second = (self._typed(side, True) for side in (left, right))
        if operator != "/":
            return self._typed(_CALCULATIONS[operator](this=first, expression=second), True)
        if self._dialect != "duckdb":
            quotient = exp.Div(this=first, expression=exp.Nullif(this=second, expression=_digits(0)), typed=True)
            return self._typed(quotient, True)
        # DuckDB divides decimals as floats. Both sides times a power of ten are whole, and divided as such.
        power = exp.Literal.number(10**_PLACES)
        wholes = [
            exp.Cast(this=exp.Mul(this=side, expression=power.copy()), to=exp.DataType.build("INT128"))
            for side in (first, second)
        ]
        divisor = exp.Nullif(this=wholes[1], expression=_digits(0))
        product = exp.Paren(this=exp.Mul(this=wholes[0], expression=power))
        whole = exp.Cast(this=exp.IntDiv(this=product, expression=divisor), to=exp.DataType.build("DECIMAL(38, 0)"))
        return self._typed(exp.Mul(this=whole, expression=_digits(Decimal(1).scaleb(-_PLACES))), True)


@dataclass
class _Premise:
    """A premise as the parts of a SELECT."""

    writer: _ScriptWriter
    library: Library
    tables: Mapping[str, str]
    sources: list[exp.Expr] = field(default_factory=list)
    known: Literal | None = None
    """The literal that a row of the recursive view matches."""
    conditions: list[exp.Expr] = field(default_factory=list)
    values: dict[str, _Cell] = field(default_factory=dict)

    def read(self, premise: Iterable[BodyLiteral]) -> _Premise:
        """Read the items in an order in which each finds its variables bound; returns this premise."""
        for item in evaluation_order(premise, self.library):
            if isinstance(item, Comparison):
                self._compare(item)
                continue
            signature = definition_of(item, self.library)
            if signature is not None:
                conditions = self._computed(item.atom, signature)
                self.conditions += [_denied(conditions)] if item.negated else conditions
            elif item.negated:
                self._deny(item.atom)
            elif item is self.known:
                self.bind(item.atom, _KNOWN)
            else:
                alias = f"t{len(self.sources)}"
                self.sources.append(_table(self.tables[item.atom.indicator], alias))
                self.bind(item.atom, alias)
        return self

    def select(self, columns: Sequence[exp.Expr]) -> exp.Select:
        """The SELECT of these columns."""
        return _select(columns, self.sources, self.conditions)

    def bind(self, atom: Atom, alias: str) -> None:
        """Match the atom with a row of a table in the query."""
        for name, is_number, term in zip(
            columns_of(atom.indicator), self.writer.kinds(atom.indicator), atom.arguments, strict=True
        ):
            cell = _Cell(_column(alias, name), is_number)
            if term == Constant(MISSING):
                self.conditions.append(exp.Is(this=cell.sql, expression=exp.null()))
            elif isinstance(term, Variable) and term.name not in self.values:
                self.values[term.name] = cell
                if term in present(Literal(atom), self.library):
                    self.conditions.append(_not_null(cell.sql))
            else:
                self.conditions.append(self.writer.compared("=", cell, self.cell(term)))

    def cell(self, term: Term) -> _Cell:
        """A constant, or a variable that has a value by now."""
        if isinstance(term, Constant):
            return self.writer.constant(term)
        if term.name not in self.values:
            raise HapaxError(f"Nothing gives {term.name} a value. Add an atom with it to the premise.")
        return self.values[term.name]

    def cells(self, atom: Atom) -> list[_Cell]:
        """The arguments of an atom."""
        return list(map(self.cell, atom.arguments))

    def _value(self, expression: Expression) -> _Cell:
        """A side of a comparison."""
        if not isinstance(expression, Arithmetic):
            return self.cell(expression)
        for operand in expression.operands:
            self._refuse_moment(operand, expression)
        return self.writer.function(expression, list(map(self._value, expression.operands)))

    def _refuse_moment(self, side: Expression, whole: Expression | Comparison) -> None:
        kind = self.library.kind_of(type_of(side, self.library))
        if kind in (TIME, DATE_TIME, DURATION) or (kind == DATE and isinstance(whole, Arithmetic)):
            raise HapaxError(f'"{whole}" is about values of {kind}, which are texts in the columns.')

    def _compare(self, comparison: Comparison) -> None:
        left, right = comparison.sides
        if comparison.test is not None:
            condition = self.writer.test(comparison.test, list(map(self._value, comparison.test.operands)))
            self.conditions.append(condition if comparison.operator == "=" else exp.not_(condition))
            return
        if comparison.operator not in ("=", "\\="):
            for side in comparison.sides:
                self._refuse_moment(side, comparison)
        target = assignment(comparison, set(self.values))
        if target is None or target in self.values:
            self.conditions.append(self.writer.compared(comparison.operator, self._value(left), self._value(right)))
            return
        value = self._value(right if isinstance(left, Variable) and left.name == target else left)
        self.values[target] = value
        # A quotient by zero is NULL, and so is a number that no text states.
        if value.expression.find(exp.Nullif, exp.Case):
            self.conditions.append(_not_null(value.sql))

    def _computed(self, atom: Atom, signature: PredicateSignature) -> list[exp.Expr]:
        """The conditions of a computed predicate, whose equation gives an argument without a value one."""
        definition = signature.definition
        assert definition is not None  # noqa: S101  of a computed predicate
        names = [parameter.name for parameter in signature.parameters]
        target = assignment(definition, set(names))
        inner = _Premise(self.writer, self.library, {})
        given = dict(zip(names, atom.arguments, strict=True))
        inner.values = {name: self.cell(term) for name, term in given.items() if name != target}
        inner._compare(definition)
        if target is not None:
            term, value = given[target], inner.values[target]
            if isinstance(term, Variable) and term.name not in self.values:
                self.values[term.name] = value
            else:
                inner.conditions.append(self.writer.compared("=", value, self.cell(term)))
        return inner.conditions

    def _deny(self, atom: Atom) -> None:
        """Add the conditions that an atom is not there, and known to be false."""
        indicator = atom.indicator
        table, cells, known, covered = self.tables[indicator], self.cells(atom), [], 0
        self.conditions.append(exp.not_(self._exists(table, indicator, cells)))
        if self.library.is_open(indicator):
            known.append(self._exists(self.writer.denials[indicator], indicator, cells))
            if self.library.kind(indicator) is PredicateKind.FUNCTIONAL:
                covered = len(cells) - 1
        elif self.library.closedness(indicator) is Closedness.CLOSED_FOR_FIRST:
            covered = 1
        if covered:
            known.append(self._exists(table, indicator, cells[:covered]))
        if known:
            self.conditions.append(exp.or_(*known))

    def _exists(self, table: str, indicator: str, cells: Sequence[_Cell]) -> exp.Exists:
        """The condition that a row of a table begins with these cells."""
        row = zip(columns_of(indicator), self.writer.kinds(indicator), cells, strict=False)
        same = [self.writer.compared("=", _Cell(_column("n", name), is_number), cell) for name, is_number, cell in row]
        return exp.Exists(this=_select([_digits(1)], [_table(table, "n")], same))


def _not_null(value: exp.Expr) -> exp.Expr:
    return exp.not_(exp.Is(this=value, expression=exp.null()))


def _denied(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """The condition that others do not hold together; one with a quotient by zero does not."""
    return exp.not_(exp.Coalesce(this=exp.and_(*conditions), expressions=[exp.false()]))
