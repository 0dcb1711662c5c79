"""Goals as they were written to premises: what they may call, and with what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import chain
from typing import TypeAlias

from hapax.grammar.data_types import NUMBER, OBJECT
from hapax.grammar.errors import Diagnostic
from hapax.grammar.goals import (
    AGGREGATES,
    BUILT_INS,
    GOAL_PLACE,
    Either,
    Goal,
    GoalItem,
    GoalPremise,
    PrologCall,
    answered,
    every_item,
)
from hapax.grammar.parsing.declarations import Negation
from hapax.grammar.parsing.shorthand import branches
from hapax.grammar.parsing.syntax import (
    ALL,
    ANY_OF,
    ASSIGN,
    CELLS,
    IN,
    LIST,
    NONE_OF,
    NOT,
    RANGE,
    SIGNS,
    TAIL,
    THEN,
    RawAtom,
    RawNamed,
    RawNode,
    RawPremise,
    RawTerm,
    RawValue,
    RawWords,
    names,
    unnamed,
)
from hapax.grammar.parsing.term_reader import Scope, TermReader, with_missing, with_types
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import (
    OPERATIONS,
    TESTS,
    TRUE,
    TRUTHS,
    Arithmetic,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    expression_variables,
    grouped,
    printed_range,
)
from hapax.grammar.values.functions import FUNCTIONS, LARGEST_EXPONENT, evaluated
from hapax.grammar.values.moments import moment_of
from hapax.grammar.writing.prolog_text import goal_name

CUT = "_Cut"
"""Beginning of the names of variables that stand for numbers with as many digits as are printed."""

MOST_LISTED = 1000
"""Numbers of a range that are written out."""

Elsewhere: TypeAlias = Callable[[str], str]
"""A remedy for an indicator that the library does not know, such as where it is declared; "" if there is none.

If it ends with a blank, the usual remedy is appended."""

_AGGREGATED = ("count", "sum", "avg", "max", "min", "argmax", "argmin")

_COUNTED = "A goal counts by aggregate_all(count, likes(ann, _), N), and adds by aggregate_all(sum(P), costs(_, P), N)."
"""The remedy for an aggregate as rules have it."""

_ALIKE = 0.75
"""Least likeness of a term's name to that of a function (difflib's ratio): a term with another name is a record."""

_WANTED = {"l": "a list", "i": "a whole number", "n": "a whole number from 0 on"}
"""Kinds of values in BUILT_INS that Prolog raises an error about, in words."""


def allowed_goal(
    items: RawPremise, text: str, library: Library, elsewhere: Elsewhere
) -> tuple[Goal, tuple[Diagnostic, ...]]:
    """The goal with these items, and diagnostics for everything in it that is not allowed."""
    reader = GoalReader(text, library.completed(), elsewhere)
    scope = reader.scope(*items)
    premise = reader.conjunction(items, scope)
    if reader.diagnostics:
        return Goal((), ()), tuple(reader.diagnostics)
    plain = (item for item in every_item(premise) if isinstance(item, Literal | Comparison))
    typed = reader.typed(plain)
    premise = tuple(with_types(item, typed) for item in premise)
    columns = {variable.name: variable for variable in answered(premise) if variable.name[0] != "_"}
    # As written, which named columns need not be.
    written = dict.fromkeys(name for name in names(*items) if name in columns)
    return Goal(premise, tuple(columns[name] for name in written)), ()


class GoalReader(TermReader):
    """Reads the items of one goal over the predicates of a library."""

    def __init__(self, text: str, library: Library, elsewhere: Elsewhere) -> None:
        super().__init__(library)
        self.lines, self.elsewhere, self.file = text.split("\n"), elsewhere, GOAL_PLACE

    def _is_type_alone(self, name: str, scope: Scope) -> bool:  # noqa: ARG002  in a goal `Person` is a variable
        return False

    def _refuse(self, label: str, node: RawNode, **words: str) -> None:
        """Report a part of the goal in the words of its text."""
        line, column, last, end = node.at
        lines = self.lines[line - 1 : last]
        lines[-1] = lines[-1][: end - 1]
        lines[0] = lines[0][column - 1 :]
        self.report(label, node.at, **{"found": " ".join(lines), **words})

    # Items

    def conjunction(self, items: RawPremise, scope: Scope) -> GoalPremise:
        """The items, checked as something to call."""
        read: list[GoalItem] = []
        for item in items:
            read += self._items(item, scope)
        return with_missing(read)

    def _items(self, item: RawNode, scope: Scope) -> Iterator[GoalItem]:
        """The items that a written one stands for; none if a fault was reported."""
        match item:
            case RawAtom():
                yield from self._call_of(item, scope)
            case RawWords((name,)) if not (name[0].isupper() or name[0] == "_"):
                yield from self._call_of(RawAtom(item, (), at=item.at), scope)
            case RawTerm(sign, parts) if sign == ALL:
                yield from self.conjunction(parts, scope)
            case RawTerm(sign, (way,)) if sign == ANY_OF:
                yield from self._items(way, scope)
            case RawTerm(sign, ways) if sign == ANY_OF:
                yield self._either(((way,) for way in ways), scope)
            case RawTerm(sign, (condition, then)) if sign == THEN:
                yield PrologCall(THEN, (self.conjunction((condition,), scope), self.conjunction((then,), scope)))
            case RawTerm(sign, parts) if sign in (NOT, NONE_OF):
                yield Negation(self.conjunction(parts, scope), self.place(item))
            case RawTerm(sign, (left, right)) if sign in (IN, ASSIGN, *SIGNS):
                yield from self._comparison(item, left, right, scope)
            case _:
                self._not_callable(item)

    def _either(self, ways: Iterable[RawPremise], scope: Scope) -> GoalItem:
        return Either(tuple(self.conjunction(way, scope) for way in ways))

    def _call_of(self, atom: RawAtom, scope: Scope) -> Iterator[GoalItem]:
        name, indicator = str(atom.name), self.indicator(atom)
        # A predicate of the rules may have a name that Prolog knows.
        kinds = None if indicator in self.declared else BUILT_INS.get(indicator)
        if atom.pools:
            self.report("misplaced shorthand", atom.at)
        elif name in TRUTHS and not atom.arguments:
            yield Comparison("=", Constant(1), Constant(int(TRUTHS[name])))
        elif kinds is not None:
            yield from self._built_in(atom, kinds, scope)
        elif self._is_test(atom):
            yield Comparison("=", self.expression(atom, scope), Constant(TRUE), self.place(atom))
        elif indicator in self.declared or self._names_columns(atom):
            yield from self._cut(Literal(self.atom(atom, scope)), scope)
        else:
            self._unknown(atom)

    def _names_columns(self, atom: RawAtom) -> bool:
        is_named = any(isinstance(argument, RawNamed) for argument in atom.arguments)
        return is_named and any(known.name == str(atom.name) for known in self.known.signatures)

    def _cut(self, literal: Literal, scope: Scope) -> Iterator[GoalItem]:
        """The call with a range in the place of a number of so many digits as are printed of one without an end.

        Only the exact number is in an atom, and these are its first digits.
        """
        signature = self.declared.get(literal.atom.indicator)
        types = signature.argument_types if signature is not None else ()
        terms: list[Term] = list(literal.atom.arguments)
        tests: list[Comparison] = []
        for place, data_type in enumerate(types):
            variable = Variable(f"{CUT}{next(scope.anonymous)}", data_type)
            if self.known.kind_of(data_type) in (NUMBER, OBJECT) and (found := _range(variable, terms[place])):
                terms[place] = variable
                tests += found
        yield Literal(replace(literal.atom, arguments=tuple(terms)))
        yield from tests

    def _comparison(self, item: RawTerm, left: RawNode, right: RawNode, scope: Scope) -> Iterator[GoalItem]:
        sign, place = item.sign, self.place(item)
        match left, right:
            case (RawTerm(cells), _) if cells == CELLS:
                try:
                    yield self._either(branches((item,)), scope)
                except ValueError:
                    self.report("columns compared", item.at)
            case (_, RawTerm(_, values)) if sign == IN:
                equations = ((RawTerm("=", (left, value), at=item.at),) for value in values)
                yield self._either(equations, scope)
            case (_, RawTerm(numbers, ends)) if numbers == RANGE:
                if sign not in ("=", ASSIGN):
                    self.report("range compared", item.at)
                low, high = (self._term_of("between/3", "i", end, scope) for end in ends)
                target, listed = self.expression(left, scope), _listed(low, high)
                ways = tuple((Comparison("=", target, value, place),) for value in listed)
                yield Either(ways) if ways else PrologCall("between", (low, high, target))
            case _ if sign == ASSIGN or (sign in ("=", "\\=") and (_is_arithmetic(left) or _is_arithmetic(right))):
                sides = (self._calculated(left, scope), self._calculated(right, scope))
                yield Comparison("=" if sign == ASSIGN else sign, *sides, place)
            case _ if sign in ("=", "\\="):
                sides = (self._data(left, scope), self._data(right, scope))
                is_given = isinstance(sides[0], Variable) and scope.counts[sides[0].name] > 1
                tests = _range(*sides) if is_given and sign == "=" else []
                yield from tests or [Comparison(sign, *sides, place)]
            case _:
                yield Comparison(sign, self.expression(left, scope), self.expression(right, scope), place)

    # Predicates of Prolog

    def _built_in(self, atom: RawAtom, kinds: str, scope: Scope) -> Iterator[GoalItem]:
        name, raw = str(atom.name), tuple(map(unnamed, atom.arguments))
        if name == "member" and isinstance(raw[0], RawWords) and isinstance(raw[1], RawTerm) and raw[1].sign == LIST:
            # Rules have no lists, but equations.
            values = raw[1].parts
            if len(values) > 1 and all(isinstance(value, RawWords | RawValue) for value in values):
                yield from self._items(RawTerm(IN, raw, at=atom.at), scope)
                return
        indicator = self.indicator(atom)
        arguments = [self._argument(indicator, kind, part, scope) for kind, part in zip(kinds, raw, strict=True)]
        yield PrologCall(name, tuple(arguments))

    def _argument(self, name: str, kind: str, raw: RawNode, scope: Scope) -> Expression | GoalPremise:
        """An argument of a kind that BUILT_INS has for the predicate."""
        if kind == "q" and isinstance(raw, RawTerm) and raw.sign == "^":
            quantified = self._argument(name, kind, raw.parts[1], scope)
            return (PrologCall("^", (self._data(raw.parts[0], scope), quantified)),)
        return self.conjunction((raw,), scope) if kind in "gq" else self._term_of(name, kind, raw, scope)

    def _term_of(self, name: str, kind: str, raw: RawNode, scope: Scope) -> Expression:
        if kind in "eva":
            return {"e": self._calculated, "v": self.expression, "a": self._aggregate}[kind](raw, scope)
        found = self._data(raw, scope)
        if kind in _WANTED and not isinstance(found, Variable) and not _is_of_kind(found, kind):
            self._refuse("wrong argument", raw, name=name, wanted=_WANTED[kind])
        return found

    def _aggregate(self, raw: RawNode, scope: Scope) -> Expression:
        if isinstance(raw, RawAtom) and (kinds := AGGREGATES.get(self.indicator(raw))):
            parts = zip(kinds, raw.arguments, strict=True)
            return Arithmetic(str(raw.name), tuple(self._term_of("", kind, part, scope) for kind, part in parts))
        if self._data(raw, scope) != Constant("count"):
            self._refuse("aggregate", raw)
        return Constant("count")

    # Values

    def _data(self, raw: RawNode, scope: Scope) -> Expression:
        """A value, a list or a record."""
        match raw:
            case RawAtom(name, arguments) if raw.rows is None and not self._is_function(raw):
                parts = tuple(self._data(unnamed(part), scope) for part in arguments)
                return Arithmetic(str(name), parts) if parts else Constant(str(name))
            case RawTerm(sign, parts) if sign in (LIST, TAIL, CELLS, "^", *OPERATIONS):
                return Arithmetic(sign, tuple(self._data(part, scope) for part in parts))
        return self.expression(raw, scope)

    def _is_function(self, raw: RawAtom) -> bool:
        """True for a term like a function: of a name like one, or of an aggregate as rules have it."""
        name = str(raw.name)
        known = [name for name in FUNCTIONS if name not in OPERATIONS]
        is_near = bool(get_close_matches(name.casefold(), known, n=1, cutoff=_ALIKE))
        return bool(raw.arguments) and (is_near or (name in _AGGREGATED and len(raw.arguments) == 1))

    def expression(self, raw: RawNode, scope: Scope) -> Expression:
        """A value, or a calculation."""
        if isinstance(raw, RawTerm) and raw.sign in ("^", *OPERATIONS):
            return self._operation(raw, scope)
        found = super().expression(raw, scope)
        return Variable(f"_{next(scope.anonymous)}", "") if found == Variable("_", "") else found

    def _call(self, call: RawAtom, scope: Scope) -> Arithmetic:
        if str(call.name) in _AGGREGATED and (len(call.arguments) == 1 or call.rows is not None):
            self.report("unknown function", call.name.at, name=str(call.name), remedy=_COUNTED)
            return Arithmetic("abs", ())
        return super()._call(call, scope)

    def _operation(self, raw: RawTerm, scope: Scope) -> Arithmetic:
        sign = "**" if raw.sign == "^" else raw.sign
        left, right = (self._calculated(part, scope) for part in raw.parts)
        if sign == "**":
            # A calculated exponent could make a number that no memory holds.
            value = right.value if isinstance(right, Constant) else None
            if not isinstance(value, int) or not 0 <= value <= LARGEST_EXPONENT:
                self._refuse("not a number", raw)
        elif sign in ("/", "//", "mod") and not expression_variables(right) and evaluated(right, {}) == 0:
            self._refuse("division by zero", raw)
        return Arithmetic(sign, (left, right))

    def _calculated(self, raw: RawNode, scope: Scope) -> Expression:
        """A part of a calculation: no text but one of a date, a time or a duration."""
        found = self.expression(raw, scope)
        if isinstance(found, Constant) and isinstance(found.value, str) and moment_of(found.value) is None:
            self._refuse("not a number", raw)
        return found

    # Unknown predicates

    def _unknown(self, atom: RawAtom) -> None:
        name, count = str(atom.name), len(atom.arguments)
        if not count:
            self._not_callable(atom, name)
            return
        self.report(
            "unknown predicate", atom.name.at, name=f"{name}/{count}", remedy=self._remedy(name, f"{name}/{count}")
        )

    def _not_callable(self, item: RawNode, name: str = "") -> None:
        """Report a term that is no goal, or the name of a predicate without its arguments."""
        known = next((known for known in self.known.signatures if known.name == name), None)
        if known is None:
            self._refuse(
                "not callable", item, remedy="Write a predicate with arguments, as in is_allergic_to(Who, What)."
            )
            return
        numbered = ", ".join(f"A{place}" for place, _ in enumerate(known.argument_types, 1))
        remedy = f"Write its arguments: {goal_name(name)}({f'{known.columns[0]}: X' if known.columns else numbered})."
        if known.columns:
            remedy += f" The columns are {', '.join(known.columns)}."
        self._refuse("not callable", item, found=f"{name} without arguments", remedy=remedy)

    def _remedy(self, name: str, indicator: str) -> str:
        """The remedy for a call of no predicate."""
        if name in _AGGREGATED:
            return _COUNTED
        if columns := self.known.columns_of(name):
            return f"Did you mean {name}/{len(columns)}? Name the columns that you need, as in {name}({columns[0]}: X)."
        for signature in self.known.signatures:
            if name in signature.columns:
                return f"{name} is a column of {signature.name}: {signature.name}({name}: X)."
        stored = self.elsewhere(indicator)
        if stored and not stored.endswith(" "):
            return stored
        if near := self._near_names(name):
            return f"Did you mean {' or '.join(near[:3])}?"
        return f"{stored}Goals call predicates of rule files; name other files with {Setting('rules')}."

    def _near_names(self, name: str) -> list[str]:
        """Indicators that a goal can call, of names like this one, the likest first."""
        own = [known for known in self.known.signatures if known.indicator not in self.known.excepted]
        known = [f"{goal_name(known.name)}/{len(known.argument_types)}" for known in own]
        # Operators resemble nothing.
        known += filter(lambda indicator: indicator[0].isalpha(), BUILT_INS)
        known += [f"{test}/{FUNCTIONS[test].most}" for test in TESTS]
        by_name = grouped(known, lambda indicator: indicator.rpartition("/")[0].casefold())
        found = get_close_matches(name.casefold(), by_name, n=3, cutoff=0.6)
        return list(chain.from_iterable(by_name[name] for name in found))


def _range(variable: Expression, number: Expression) -> list[Comparison]:
    """The tests that a variable is one of the numbers that are printed like this one; none for other terms."""
    ends = printed_range(number.value) if isinstance(number, Constant) else None
    if ends is None:
        return []
    return [Comparison(">=", variable, Constant(ends[0])), Comparison("=<", variable, Constant(ends[1]))]


def _listed(low: Expression, high: Expression) -> list[Constant]:
    """The numbers of a range if they are written, and not too many."""
    ends = [end.value for end in (low, high) if isinstance(end, Constant)]
    if len(ends) < 2 or not all(isinstance(end, int) for end in ends):
        return []
    values = range(ends[0], min(ends[1], ends[0] + MOST_LISTED) + 1)  # type: ignore[arg-type,operator]
    return [Constant(value) for value in values] if len(values) <= MOST_LISTED else []


def _is_arithmetic(raw: RawNode) -> bool:
    is_function = isinstance(raw, RawAtom) and str(raw.name) in ("abs", "min", "max")
    return is_function or (isinstance(raw, RawTerm) and raw.sign in OPERATIONS)


def _is_of_kind(found: Expression, kind: str) -> bool:
    """True for a list, or for a whole number, as `kind` says."""
    if kind == "l":
        tail = found.operands[-1] if isinstance(found, Arithmetic) and found.operator == TAIL else None
        is_open = isinstance(tail, Variable) or (isinstance(tail, Arithmetic) and _is_of_kind(tail, kind))
        return is_open or (isinstance(found, Arithmetic) and found.operator == LIST)
    value = found.value if isinstance(found, Constant) and found.is_number else None
    return value is not None and Fraction(value).denominator == 1 and (kind == "i" or value >= 0)  # type: ignore[operator]
