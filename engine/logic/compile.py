"""Compile a rule's premise to one SQL SELECT over tagged constants (`kb/atoms/symbols.py`).

Only text is made here; nothing runs. No text from a rule or fact enters the SQL: constants become integer tags, and all
names are generated. Exact arithmetic is SQL functions (`kb/atoms/sql_arithmetic.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import AggregateDeclaration, Closedness, PredicateKind, PredicateSignature
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rules import Library, Rule
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
    variable_names,
)
from hapax.grammar.writing.prolog_text import assignment, compares_numbers, definition_of, evaluation_order
from hapax.kb.atoms.sql_arithmetic import Calculated, Cell, ExactArithmetic, Operand
from hapax.kb.atoms.symbols import MISSING_TAG

_MOST_JOINED = 60
"""Tables joined in one SELECT; SQLite allows 64."""

Tables = Mapping[str, str]
"""The tables of predicates by indicator, with the columns a1, a2, ... and `ref`, the number of a row."""


@dataclass(frozen=True, slots=True)
class CompileContext:
    """The context of a compilation: tables, tags of constants, and the table of a predicate's denials."""

    library: Library
    tables: Tables
    tag: Callable[[Value], int]
    arithmetic: ExactArithmetic
    denials: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class AbsentAtom:
    """A negated literal: it is not among the rows, and known to be false.

    `cells`: None where any value counts, but no empty cell in the other places. `covered`: a row with as many of its
    first cells makes the others false; 0 if none does. `denials`: the table of atoms that are known to be false, if the
    predicate is open.
    """

    indicator: str
    cells: tuple[str | None, ...]
    covered: int = 0
    denials: str = ""

    def known_false(self, table: str) -> str:
        """SQL of the condition that an atom which is not in a predicate's table is false; empty if every one is."""
        known = []
        if self.denials:
            known.append(f"EXISTS (SELECT 1 FROM {self.denials} AS k WHERE {self.matches('k')})")  # noqa: S608  ours
        if self.covered:
            known.append(f"EXISTS (SELECT 1 FROM {table} AS k WHERE {self.matches('k', self.covered)})")  # noqa: S608
        return f"({' OR '.join(known)})" if known else ""

    def matches(self, alias: str, places: int | None = None) -> str:
        """SQL of the condition that a row has the cells, or the first ones."""
        given = {place: cell for place, cell in enumerate(self.cells[:places], 1) if cell is not None}
        whole = [f"{alias}.a{place} <> {MISSING_TAG}" for place in given if None in self.cells]
        return conjunction([*(f"{alias}.a{place} = {cell}" for place, cell in given.items()), *whole])


@dataclass(frozen=True)
class CompiledPremise:
    """A compiled premise. The tables have the aliases t0, t1, ... in the order of the positive literals."""

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    values: Mapping[str, str]
    """SQL of the tag of each variable."""
    absent: tuple[AbsentAtom, ...] = ()
    """The negated literals that the conditions test, other than computed predicates."""

    @property
    def references(self) -> tuple[str, ...]:
        """SQL for the ref of the row that each positive literal matches."""
        return tuple(f"t{number}.ref" for number in range(len(self.tables)))

    def looked_up(self, cells: Iterable[str]) -> set[tuple[int, int]]:
        """The places of tables, and of their arguments from 1, by which a join or these cells find rows."""
        equations = (condition for condition in self.conditions if " = " in condition)
        found = chain.from_iterable(map(_COLUMN.findall, (*equations, *cells)))
        return {(int(alias[1:]), int(column[1:])) for alias, column in found if alias[0] == "t" and column != "ref"}

    def select(self, columns: Sequence[str], conditions: Sequence[str] = ()) -> str:
        """The SELECT. SQLite chooses the order of the join."""
        sources = [f"{table} AS t{number}" for number, table in enumerate(self.tables)]
        return _select(columns, sources, ", ", (*self.conditions, *conditions))

    def select_from(self, outer: Sequence[str], columns: Sequence[str], conditions: Sequence[str]) -> str:
        """The SELECT that starts with the tables `outer` (`TABLE AS ALIAS`) and joins the others along equations.

        An alias of this premise in `outer` stands for that table of it.
        """
        every = (*self.conditions, *conditions)
        # By equation, the aliases that are not placed yet. One that is the last of some is looked up by these.
        open_equations = [set(_ALIAS.findall(condition)) for condition in every if " = " in condition]
        order = list(outer)
        waiting = [f"t{number}" for number in range(len(self.tables))]
        for alias in [source.rpartition(" ")[2] for source in outer]:
            _place(alias, waiting, open_equations)
        while waiting:
            decided = Counter(chain.from_iterable(names for names in open_equations if len(names) == 1))
            alias = max(waiting, key=lambda name: decided[name])
            _place(alias, waiting, open_equations)
            order.append(f"{self.tables[int(alias[1:])]} AS {alias}")
        return _select(columns, order, " CROSS JOIN ", every)  # SQLite keeps the order of a CROSS JOIN


def _place(alias: str, waiting: list[str], open_equations: list[set[str]]) -> None:
    """Take an alias out of what is waiting."""
    if alias in waiting:
        waiting.remove(alias)
    for names in open_equations:
        names.discard(alias)


# `t0.` or `h.`: the alias before a column
_ALIAS = re.compile(r"\b([a-z]\d*)\.")
_COLUMN = re.compile(r"\b([a-z]\d*)\.(a\d+|ref)\b")


def conjunction(conditions: Sequence[str]) -> str:
    """SQL of conditions that hold together, in halves: SQLite limits the depth of an expression, not its length."""
    if len(conditions) <= 1:
        return conditions[0] if conditions else "1"
    if len(conditions) <= _MOST_JOINED:
        return " AND ".join(conditions)
    half = len(conditions) // 2
    return f"({conjunction(conditions[:half])}) AND ({conjunction(conditions[half:])})"


def _select(columns: Sequence[str], sources: Sequence[str], comma: str, conditions: Sequence[str]) -> str:
    if len(sources) > _MOST_JOINED:
        return _select_in_parts(columns, sources, comma, conditions)
    source = f" FROM {comma.join(sources)}" if sources else ""
    where = f" WHERE {conjunction(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)}{source}{where}"


def _select_in_parts(columns: Sequence[str], sources: Sequence[str], comma: str, conditions: Sequence[str]) -> str:
    """The SELECT of a join that is too wide for SQLite: its first tables are joined in a query of their own."""
    inner = sources[: _MOST_JOINED - 1]
    joined = {source.rpartition(" ")[2] for source in inner}
    whole = [item for item in conditions if joined.issuperset(_ALIAS.findall(item))]
    rest = [item for item in conditions if item not in whole]
    used = dict.fromkeys(chain.from_iterable(_COLUMN.findall(text) for text in (*columns, *rest)))
    cells = [f"{alias}.{column} AS {alias}_{column}" for alias, column in used if alias in joined]
    # SQLite does not take a query with a LIMIT apart to join its tables with the others.
    part = f"({_select(cells or ['1'], inner, comma, whole)} LIMIT -1)"

    def outside(text: str) -> str:
        return _COLUMN.sub(lambda found: f"s.{found[1]}_{found[2]}" if found[1] in joined else found[0], text)

    outer = [f"{part} AS s", *sources[_MOST_JOINED - 1 :]]
    return _select([*map(outside, columns)], outer, comma, [*map(outside, rest)])


def join_order(rule: Rule, known: Collection[str] = ()) -> Rule:
    """The rule with its positive atoms ordered to join along shared variables, beginning with its hypotheses.

    `known` are variables that have values before. `clause_text` decides where the tests go: each as soon as its
    variables are bound.
    """
    waiting = list(rule.premise)
    bound = set(known)
    ordered: list[BodyLiteral] = []
    while waiting:
        chosen = max(waiting, key=lambda item: _eagerness(rule, item, bound))
        waiting.remove(chosen)
        bound |= variable_names([chosen])
        ordered.append(chosen)
    return replace(rule, premise=tuple(ordered))


def _eagerness(rule: Rule, item: BodyLiteral, bound: set[str]) -> tuple[bool, int, bool]:
    """Sort key: atoms before tests, then by the number of variables that are bound. `max` keeps the order of ties."""
    is_generator = isinstance(item, Literal) and not item.negated
    return is_generator, len({v.name for v in item.variables} & bound), not bound and rule.is_information(item)


def compile_premise(premise: Iterable[BodyLiteral], context: CompileContext) -> CompiledPremise:
    """Compile a premise. Raises HapaxError if an item uses a variable that nothing gives a value."""
    return PremiseCompiler(context).read(premise).compiled()


@dataclass(frozen=True)
class CompiledCase:
    """A case of an aggregate: its premise, and the cells of the aggregate's atom, of which a row `h` has the result.

    Of a smallest or largest value that rows only improve, the result is the row's own.
    """

    premise: CompiledPremise
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CompiledAggregate:
    """An aggregate as SQL: the SELECT of its atoms, and its cases."""

    select: str
    cases: tuple[CompiledCase, ...]


def compile_aggregate(
    aggregate: AggregateDeclaration, cases: Iterable[Iterable[BodyLiteral]], context: CompileContext
) -> CompiledAggregate:
    """Compile an aggregate over the distinct rows of its counted variables in each group, or over its derivations."""
    compilers = [PremiseCompiler(context).read(case) for case in cases]
    names = {variable.name: f"g{place}" for place, variable in enumerate(aggregate.group, 1)}
    # By derivation, rows differ by the values of all variables, of which one case has more than another.
    keys = max(len(compiler.values) for compiler in compilers) if aggregate.counts_derivations else 0
    rows: list[str] = []
    compiled: list[CompiledCase] = []
    first = aggregate.counted[0]
    for number, compiler in enumerate(compilers):
        if aggregate.function in ("sum", "avg") or (
            aggregate.function in ("min", "max") and context.library.is_numeric(first.data_type)
        ):
            # A text has no value, and a row with one is not a row.
            compiler.conditions.append(context.arithmetic.is_number(compiler.cell(first)))
        columns = [f"{compiler.cell(variable)} AS c{place}" for place, variable in enumerate(aggregate.counted, 1)]
        columns += [f"{compiler.cell(variable)} AS {names[variable.name]}" for variable in aggregate.group]
        values = [*compiler.values.values(), *("0" for _ in range(keys - len(compiler.values)))] if keys else []
        columns += [f"{value} AS k{place}" for place, value in enumerate([str(number), *values])] if keys else []
        rows.append(compiler.compiled().select(columns).replace("SELECT ", "SELECT DISTINCT ", 1))
        compiled.append(_compiled_case(aggregate, compiler))
    whole = (" UNION ALL " if keys else " UNION ").join(rows)
    return CompiledAggregate(_aggregated(aggregate, whole, names), tuple(compiled))


def _compiled_case(aggregate: AggregateDeclaration, compiler: PremiseCompiler) -> CompiledCase:
    terms = [term for term in aggregate.atom.arguments if isinstance(term, Variable)]
    if aggregate.is_improved:
        compiler.values[aggregate.result] = compiler.cell(aggregate.counted[0])
    elif aggregate.result not in compiler.values:
        compiler.values[aggregate.result] = f"h.a{1 + [term.name for term in terms].index(aggregate.result)}"
    return CompiledCase(compiler.compiled(), tuple(map(compiler.cell, terms)))


def _aggregated(aggregate: AggregateDeclaration, rows: str, names: Mapping[str, str]) -> str:
    """The SELECT of an aggregate's atoms from rows with the columns c1 ... of what is counted and g1 ... of groups."""
    groups = list(names.values())
    function = f"{aggregate.function.removeprefix('arg')}_of_tags"
    result = "c1" if aggregate.is_arg else f"{function}(c1)"
    if aggregate.function == "count":
        result = "2 * count(*) + 1"  # the tag of a whole number n is 2n + 1
    terms = [term for term in aggregate.atom.arguments if isinstance(term, Variable)]
    cells = [names.get(term.name, result) for term in terms]
    if aggregate.is_arg:
        # Several rows may have the best value.
        best = [*(f"{name} AS b{name}" for name in groups), f"{function}(c2) AS best"]
        grouping = f" GROUP BY {', '.join(groups)}" if groups else ""
        same = ["c2 = best", *(f"{name} = b{name}" for name in groups)]
        return (
            f"SELECT DISTINCT {', '.join(cells)} FROM ({rows}) CROSS JOIN "  # noqa: S608  ours
            f"(SELECT {', '.join(best)} FROM ({rows}){grouping}) WHERE {' AND '.join(same)}"
        )
    # Without groups there is one, unless it is empty.
    grouping = f"GROUP BY {', '.join(groups)}" if groups else "HAVING count(*) > 0"
    return f"SELECT {', '.join(cells)} FROM ({rows}) {grouping}"  # noqa: S608  ours


def conclusion_cells(atom: Atom, body: CompiledPremise, context: CompileContext) -> tuple[str, ...]:
    """SQL for the arguments of a rule's conclusion. Raises HapaxError for a variable that the premise leaves open."""
    compiler = PremiseCompiler(context, values=dict(body.values))
    return tuple(map(compiler.cell, atom.arguments))


def covering_places(atom: Atom, library: Library) -> int:
    """The number of first arguments with which another atom makes this one false; 0 if none does."""
    if library.is_open(atom.indicator):
        return len(atom.arguments) - 1 if library.kind(atom.indicator) is PredicateKind.FUNCTIONAL else 0
    return int(library.closedness(atom.indicator) is Closedness.CLOSED_FOR_FIRST)


@dataclass
class PremiseCompiler:
    """Compiles the items of a premise one by one; collects tables, conditions and the values of variables."""

    context: CompileContext
    tables: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, Operand] = field(default_factory=dict)
    """The variables that a calculation gives a value."""
    absent: list[AbsentAtom] = field(default_factory=list)

    def read(self, premise: Iterable[BodyLiteral]) -> PremiseCompiler:
        """Compile the items in an order in which each finds its variables bound; returns this compiler."""
        for item in evaluation_order(premise, self.context.library):
            self.item(item)
        return self

    def compiled(self) -> CompiledPremise:
        # SQLite tests conditions in their order: those that call a function come last. A comparison does not hold of
        # what has no value, so that values are looked at where comparisons hold.
        order = {"compared": 1, "calculated": 2}
        conditions = sorted(dict.fromkeys(self.conditions), key=lambda text: order.get(text.partition("(")[0], 0))
        return CompiledPremise(tuple(self.tables), tuple(conditions), self.values, tuple(self.absent))

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

    def cell(self, term: Term) -> str:
        """SQL of the tag of a constant, or of a variable that has a value by now."""
        if isinstance(term, Constant):
            return str(self.context.tag(term.value))
        if term.name not in self.values:
            raise HapaxError(
                f"Nothing gives the variable {term.name} a value.",
                Remedy("Add an atom with it; {} names a rule.", Operation("check_rules")),
            )
        return self.values[term.name]

    def _source(self, atom: Atom) -> None:
        alias = f"t{len(self.tables)}"
        self.tables.append(self.context.tables[atom.indicator])
        for place, term in enumerate(atom.arguments, 1):
            cell = f"{alias}.a{place}"
            if isinstance(term, Variable) and term.name not in self.values:
                self.values[term.name] = cell
                if not term.is_anonymous and len(atom.arguments) > 1:
                    self.conditions.append(f"{cell} <> {MISSING_TAG}")
            else:
                self.conditions.append(f"{cell} = {self.cell(term)}")

    def _absent(self, literal: Literal, signature: PredicateSignature | None) -> None:
        """Compile a negated literal: there is no such row, or the computed predicate is false."""
        atom = literal.atom
        if signature is not None:
            # Apart from the others, because its conditions are denied together.
            inner = PremiseCompiler(self.context, values=dict(self.values), numbers=dict(self.numbers))
            inner._computed(atom, signature)
            self.conditions.append(f"NOT ({conjunction(inner.conditions)})")
            return
        library = self.context.library
        if (projected := library.projected(atom)) is not None:
            is_any = [isinstance(term, Variable) and term.is_anonymous for term in projected.arguments]
            terms = zip(projected.arguments, is_any, strict=True)
            absent = AbsentAtom(projected.indicator, tuple(None if free else self.cell(term) for term, free in terms))
        else:
            denials = self.context.denials(atom.indicator) if library.is_open(atom.indicator) else ""
            cells = tuple(map(self.cell, atom.arguments))
            absent = AbsentAtom(atom.indicator, cells, covering_places(atom, library), denials)
        table = self.context.tables[absent.indicator]
        self.absent.append(absent)
        self.conditions.append(f"NOT EXISTS (SELECT 1 FROM {table} AS n WHERE {absent.matches('n')})")  # noqa: S608
        if known := absent.known_false(table):
            self.conditions.append(known)

    # Computed predicates and comparisons, as `definition_text` and `comparison_goal` write them

    def _computed(self, atom: Atom, signature: PredicateSignature) -> None:
        definition = signature.definition
        assert definition is not None  # noqa: S101  of a computed predicate
        given = {parameter.name: term for parameter, term in zip(signature.parameters, atom.arguments, strict=True)}
        known = {name for name, term in given.items() if isinstance(term, Constant) or term.name in self.values}
        target = assignment(definition, known)
        # Without the library, as in `definition_text`: parameters have no types but those that the definition gives.
        inner = PremiseCompiler(replace(self.context, library=Library()))
        for parameter, term in zip(signature.parameters, atom.arguments, strict=True):
            if parameter.name != target:
                inner.values[parameter.name] = self.cell(term)
                if isinstance(term, Variable) and term.name in self.numbers:
                    inner.numbers[parameter.name] = self.numbers[term.name]
        inner._comparison(definition)
        self.conditions += inner.conditions
        if target is None:
            return
        term = given[target]
        if isinstance(term, Variable) and term.name not in self.values:
            self.values[term.name] = inner.values[target]
            if target in inner.numbers:
                self.numbers[term.name] = inner.numbers[target]
        else:
            self.conditions.append(f"{inner.values[target]} = {self.cell(term)}")

    def _comparison(self, comparison: Comparison) -> None:
        left, right, sign = comparison.left, comparison.right, comparison.operator
        target = assignment(comparison, set(self.values))
        if target is not None and target not in self.values:
            source = right if isinstance(left, Variable) and left.name == target else left
            self._assign(target, source, compares_numbers(comparison, self.context.library))
        elif sign in ("=", "\\=") and not compares_numbers(comparison, self.context.library):
            operator = "=" if sign == "=" else "<>"
            self.conditions.append(f"{self._same(left)} {operator} {self._same(right)}")
        else:
            self.conditions.append(self.context.arithmetic.comparison(sign, self.operand(left), self.operand(right)))

    def _assign(self, target: str, source: Expression, numeric: bool) -> None:
        arithmetic = self.context.arithmetic
        if isinstance(source, Arithmetic):
            self.numbers[target] = self.operand(source)
            self.values[target] = arithmetic.value(self.numbers[target])
            self.conditions.append(f"{self.values[target]} IS NOT NULL")
            return
        self.values[target] = self.cell(source)
        if isinstance(source, Variable):
            if source.name in self.numbers:
                self.numbers[target] = self.numbers[source.name]
            elif numeric:
                self.conditions.append(arithmetic.is_number(self.values[target]))

    def _same(self, expression: Expression) -> str:
        """A side of an equation between terms: terms are equal if their tags are."""
        assert not isinstance(expression, Arithmetic)  # noqa: S101  numbers are compared as numbers
        return self.cell(expression)

    def operand(self, expression: Expression) -> Operand:
        """A side of a comparison of values."""
        if isinstance(expression, Variable):
            return self.numbers.get(expression.name) or Cell(self.cell(expression))
        if isinstance(expression, Arithmetic):
            return Calculated(expression.operator, tuple(map(self.operand, expression.operands)))
        if isinstance(expression.value, str):
            return expression.value
        exact = Fraction(expression.value)
        return exact.numerator if exact.denominator == 1 else exact
