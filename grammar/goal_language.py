"""Goals that users type for `query`: what they may call, and how they are written for Prolog.

Prolog never reads a goal as it was typed: `allowed_goal` checks its term, and only `goal_text` writes it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import chain, count
from typing import TypeAlias, TypeGuard

from hapax.grammar.data_types import NUMBER, OBJECT, TEXT
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.parsing.hints import hint
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import IS_MISSING, MISSING, OPERATIONS, TESTS, TRUTHS, Constant, printed_range
from hapax.grammar.values.functions import FUNCTIONS
from hapax.grammar.values.moments import DATE, moment_of
from hapax.grammar.writing.prolog_text import has_clause, prolog_atom, prolog_value
from hapax.grammar.writing.words import counted


@dataclass(frozen=True, slots=True)
class GoalVariable:
    """A Prolog variable; `_` is a new one at each occurrence."""

    name: str


@dataclass(frozen=True, slots=True)
class GoalList:
    """A list; `tail` is the T of `[H|T]`."""

    items: tuple[GoalTerm, ...]
    tail: GoalTerm | None = None


@dataclass(frozen=True, slots=True)
class Compound:
    """A functor, or an operator, with arguments. `,` and `;` may have more than two."""

    functor: str
    arguments: tuple[GoalTerm, ...]
    place: Place

    @property
    def indicator(self) -> str:
        return f"{self.functor}/{len(self.arguments)}"


CUT = "_Cut"
"""Beginning of the names of variables that stand for numbers with as many digits as are printed."""

COLUMN = ":"
"""The functor of an argument with the name of its column, until it is checked."""

GoalTerm: TypeAlias = GoalVariable | Constant | GoalList | Compound


@dataclass(frozen=True, slots=True)
class Goal:
    """An allowed goal. `variables` are those that a solution binds, in order of occurrence, without `_` and `_Name`."""

    term: GoalTerm
    variables: tuple[str, ...]

    def __str__(self) -> str:
        return goal_text(self)


BUILT_INS: dict[str, str] = {
    "findall/3": "dgd",
    "aggregate_all/3": "agd",
    "setof/3": "dqd",
    "bagof/3": "dqd",
    "forall/2": "gg",
    "once/1": "g",
    "member/2": "dd",
    "length/2": "ln",
    "between/3": "iii",
    "sort/2": "ld",
    "msort/2": "ld",
    "sum_list/2": "ld",
    "max_list/2": "ld",
    "min_list/2": "ld",
    "nth1/3": "nld",
    ",": "g",
    ";": "g",
    "->/2": "gg",
    "\\+/1": "g",
    "is/2": "de",
    "=/2": "dd",
    "\\=/2": "dd",
    "==/2": "dd",
    "\\==/2": "dd",
    "</2": "vv",
    "=</2": "vv",
    ">/2": "vv",
    ">=/2": "vv",
    "=:=/2": "vv",
    "=\\=/2": "vv",
}
"""Predicates that a goal may call besides the library's, with a letter per argument: d for data, g for a goal, q for a
goal that may be quantified (`V^p(V)`), e for an arithmetic expression, v for one or a text, a for an aggregate, l for a
list, i for a whole number, n for one from 0 on. `,` and `;` take any number of goals."""

AGGREGATES = {"sum/1": "e", "max/1": "e", "min/1": "e", "bag/1": "d", "set/1": "d", "max/2": "ed", "min/2": "ed"}
"""First arguments of aggregate_all/3 besides `count`, with letters as in BUILT_INS."""

ARITHMETIC = frozenset(("+/2", "-/2", "*/2", "rdiv/2", "///2", "mod/2", "abs/1", "min/2", "max/2"))

LARGEST_EXPONENT = 1000
"""Largest exponent of `**` in a goal, which is written in digits."""

INFIX = frozenset(
    (
        ",",
        ";",
        "->",
        "is",
        "=",
        "\\=",
        "==",
        "\\==",
        "<",
        "=<",
        ">",
        ">=",
        "=:=",
        "=\\=",
        "+",
        "-",
        "*",
        "/",
        "//",
        "mod",
        "rdiv",
        "^",
        "**",
    )
)


Elsewhere: TypeAlias = Callable[[str], str]
"""A remedy for an indicator that the library does not know, such as where it is declared; "" if there is none.

If it ends with a blank, the usual remedy is appended."""


def allowed_goal(
    term: GoalTerm, library: Library, elsewhere: Elsewhere = lambda _: ""
) -> tuple[Goal, tuple[Diagnostic, ...]]:
    """The goal, and diagnostics for everything in it that is not allowed."""
    checker = _GoalChecker(library, elsewhere)
    written = list(all_names(term))
    term = _with_missing(checker.goal(term))
    term = _with_cut_numbers(term, library, set(_called_variables(term, library)), count(1))
    names = {name for name in answered_names(term) if not name.startswith("_")}
    # As written, which named columns need not be.
    return Goal(term, tuple(sorted(names, key=written.index))), tuple(checker.diagnostics)


def _with_missing(term: GoalTerm) -> GoalTerm:
    """The goal with MISSING in the calls of a conjunction for each variable that it says is missing, as in rules."""
    if not isinstance(term, Compound):
        return term
    parts = tuple(map(_with_missing, term.arguments))
    if term.functor == ",":
        calls = [part for part in parts if isinstance(part, Compound) and not is_test(part)]
        names = {name for part in calls for name in _parts(part) if isinstance(name, GoalVariable)}
        tests = [part for part in parts if isinstance(part, Compound) and part.functor == IS_MISSING]
        tests = [part for part in tests if part.arguments[0] in names]
        terms = {part.arguments[0]: Constant(MISSING) for part in tests}
        parts = tuple(
            replace(part, arguments=tuple(terms.get(argument, argument) for argument in part.arguments))
            if part in calls
            else part
            for part in parts
            if part not in tests
        )
        if len(parts) == 1:
            return parts[0]
    return Compound(term.functor, parts, term.place)


def _with_cut_numbers(term: GoalTerm, library: Library, bound: Collection[GoalTerm], new: Iterator[int]) -> GoalTerm:
    """The goal with ranges in the place of numbers of so many digits as are printed of a number without an end.

    Only the exact number is in an atom, and these are its first digits. `bound`: variables to which atoms give values.
    """
    if not isinstance(term, Compound):
        return term
    parts = [_with_cut_numbers(part, library, bound, new) for part in term.arguments]
    if term.indicator in ("=/2", "==/2", "=:=/2") and parts[0] in bound and (tests := _range(parts[0], parts[1], term)):
        return Compound(",", tests, term.place)
    found: list[GoalTerm] = []
    types = library.signature(term.indicator).argument_types if library.knows(term.indicator) else ()
    for place, data_type in enumerate(types):
        variable = GoalVariable(f"{CUT}{next(new)}")
        if library.kind_of(data_type) in (NUMBER, OBJECT) and (tests := _range(variable, parts[place], term)):
            parts[place] = variable
            found += tests
    whole = Compound(term.functor, tuple(parts), term.place)
    return Compound(",", (whole, *found), term.place) if found else whole


def _range(variable: GoalTerm, number: GoalTerm, near: Compound) -> tuple[GoalTerm, ...]:
    """The tests that a variable is one of the numbers that are printed like this one; none for other terms."""
    ends = printed_range(number.value) if isinstance(number, Constant) else None
    if ends is None:
        return ()
    least, most = map(Constant, ends)
    return Compound(">=", (variable, least), near.place), Compound("=<", (variable, most), near.place)


def _called_variables(term: GoalTerm, library: Library) -> Iterator[GoalTerm]:
    for part in _compounds(term):
        if library.knows(part.indicator):
            yield from part.arguments


def with_present(term: GoalTerm, called: Collection[str]) -> GoalTerm:
    """The goal in which the variables of calls, by indicator, have values that are not missing."""
    if not isinstance(term, Compound):
        return term
    if term.indicator not in called:
        return Compound(term.functor, tuple(with_present(part, called) for part in term.arguments), term.place)
    names = [part for part in term.arguments if isinstance(part, GoalVariable) and part.name != "_"]
    tests = [Compound("\\==", (name, Constant(MISSING)), term.place) for name in dict.fromkeys(names)]
    return Compound(",", (term, *tests), term.place) if tests else term


def wrong_column(predicate: str, column: str, columns: Sequence[str], others: Iterable[str]) -> dict[str, str]:
    """Problem and remedy of a call by columns, of which one is wrong. `others`: names of predicates with columns."""
    problem = f"{predicate} has no column {column}"
    if column in columns:
        problem = f"{predicate} has {column} twice, or other arguments without the name of a column"
        return {"problem": problem, "remedy": "Name each argument once."}
    near = get_close_matches(column.casefold(), columns or (), n=1, cutoff=0.6)
    question = f"Did you mean {near[0]}? " if near else ""
    if columns:
        return {"problem": problem, "remedy": f"{question}The columns are {', '.join(columns)}."}
    named = get_close_matches(predicate, dict.fromkeys(others), n=1, cutoff=0.6)
    question = f"Did you mean {named[0]}? If not, declare" if named else "Declare"
    return {"problem": problem, "remedy": f"{question} them, such as given {predicate}(id: Trip, air_time: Minutes)."}


_BARE_NAME = re.compile(r"(?!(?:not|is|mod)$)(?![A-Z_])[^\W\d]\w*")


def goal_name(predicate: str) -> str:
    """A predicate's name as a goal has it: quoted unless it is a word that begins with a small letter."""
    return predicate if _BARE_NAME.fullmatch(predicate) else prolog_atom(predicate)


def goal_text(goal: Goal) -> str:
    """The goal as Prolog text, fully bracketed and quoted, with the variables' names."""
    return _text(goal.term)


def called_indicators(goal: Goal, library: Library) -> tuple[str, ...]:
    """Indicators of the library's predicates that the goal calls, in order of occurrence."""
    called = (term.indicator for term in _compounds(goal.term) if library.knows(term.indicator))
    return tuple(dict.fromkeys(called))


def has_constants(goal: Goal) -> bool:
    """True if a call of the goal names a value."""
    return any(isinstance(argument, Constant) for term in _compounds(goal.term) for argument in term.arguments)


def calls(goal: Goal, indicator: str) -> Iterator[Compound]:
    """The calls of a predicate in the goal."""
    return (term for term in _compounds(goal.term) if term.indicator == indicator)


def _is_columns(term: GoalTerm) -> TypeGuard[Compound]:
    return isinstance(term, Compound) and term.functor == ","


def is_test(term: Compound) -> bool:
    """True for a test such as `contains(C, x)`; a predicate of the rules comes before it."""
    return term.functor in TESTS and len(term.arguments) == FUNCTIONS[term.functor].most


def is_function(term: Compound) -> bool:
    """True for a function of rules that Prolog lacks."""
    function = FUNCTIONS.get(term.functor)
    is_plain = term.functor in OPERATIONS or term.indicator in ARITHMETIC
    return not is_plain and function is not None and function.least <= len(term.arguments) <= function.most


def is_moment(term: GoalTerm) -> bool:
    """True for a text that states a date, a time or a duration."""
    return isinstance(term, Constant) and isinstance(term.value, str) and moment_of(term.value) is not None


def needs_rules(term: GoalTerm, library: Library) -> bool:
    """True for a part of a goal with functions, or an order of texts, that Prolog lacks."""
    for part in _compounds(term):
        is_order = BUILT_INS.get(part.indicator) == "vv"
        has_text = any(isinstance(side, Constant) and not side.is_number for side in part.arguments)
        is_dated = part.indicator in ARITHMETIC and any(map(is_moment, part.arguments))
        is_computed = library.knows(part.indicator) and not has_clause(library.signature(part.indicator))
        if is_computed or is_test(part) or is_function(part) or is_dated or (is_order and has_text):
            return True
    return False


def _each_member(term: Compound) -> Compound:
    """An equation for each value of a list, in the place of `member/2`: rules have no lists."""
    if term.indicator != "member/2" or not isinstance(term.arguments[1], GoalList):
        return term
    target, values = term.arguments[0], term.arguments[1]
    is_plain = isinstance(target, GoalVariable) and values.tail is None and len(values.items) > 1
    if not is_plain or not all(isinstance(value, Constant) for value in values.items):
        return term
    return Compound(";", tuple(Compound("=", (target, value), term.place) for value in values.items), term.place)


class _GoalChecker:
    """Walks a goal by the kinds of its arguments and collects diagnostics. Replaces `/` by exact division."""

    def __init__(self, library: Library, elsewhere: Elsewhere) -> None:
        self.library = library
        self.elsewhere = elsewhere
        self.diagnostics: list[Diagnostic] = []

    def goal(self, term: GoalTerm) -> GoalTerm:
        """The term, checked as something to call."""
        if isinstance(term, Constant) and term.value in TRUTHS:
            return Compound("=", (Constant(1), Constant(int(TRUTHS[str(term.value)]))), Place("<goal>"))
        if isinstance(term, Constant) and self.library.knows(f"{term.value}/0"):
            return Compound(str(term.value), (), Place("<goal>"))
        if not isinstance(term, Compound):
            found, remedy = self._with_arguments(term)
            self._refuse("not callable", Place("<goal>"), remedy, found=found)
            return term
        term = _calculated(self._positional(_each_member(term)))
        if term.indicator in _EQUATIONS and any(map(self._is_misspelt, term.arguments)):
            return term
        if term.functor in _BY_COLUMNS and any(map(_is_columns, term.arguments)):
            columns = self._by_columns(term)
            return self.goal(columns) if columns is not None else term
        if term.functor in (",", ";"):
            kinds = "g" * len(term.arguments)
        elif term.indicator in BUILT_INS:
            kinds = BUILT_INS[term.indicator]
        elif self.library.knows(term.indicator):
            kinds = "c" * len(term.arguments)
        elif is_test(term):
            kinds = "v" * len(term.arguments)
        else:
            self._unknown(term)
            return term
        checked = self._arguments(term, kinds)
        return _extreme_of_sorted(checked) if self._is_of_texts(checked) else checked

    def _is_of_texts(self, term: Compound) -> bool:
        """True for `min(X)` and `max(X)` of a column of texts or dates, which Prolog cannot calculate with."""
        extreme, inner, *_ = (*term.arguments, None, None) if term.indicator == "aggregate_all/3" else (None, None)
        if not isinstance(extreme, Compound) or extreme.indicator not in ("min/1", "max/1") or inner is None:
            return False
        kinds: dict[GoalTerm, str] = {}
        for call in _compounds(inner):
            if self.library.knows(call.indicator):
                types = self.library.signature(call.indicator).argument_types
                kinds.update(zip(call.arguments, map(self.library.kind_of, types), strict=True))
        return kinds.get(extreme.arguments[0]) in (TEXT, DATE)

    def _with_arguments(self, term: GoalTerm) -> tuple[str, str]:
        """A term that is no goal, and the remedy: of the name of a predicate its arguments."""
        bare = f"{_text(term)} without arguments"
        for known in self.library.completed().signatures:
            if term == Constant(known.name) and known.columns:
                example = f"{goal_name(known.name)}({known.columns[0]}: X)"
                return bare, f"Name the columns that you need, as in {example}: {', '.join(known.columns)}."
            if term == Constant(known.name):
                arguments = ", ".join(f"A{place}" for place in range(1, len(known.argument_types) + 1))
                return bare, f"Write its arguments: {goal_name(known.name)}({arguments})."
        return _text(term), "Write a predicate with its arguments, such as is_allergic_to(Who, What)."

    def _by_columns(self, term: Compound) -> GoalTerm | None:
        """`(A, B) < (C, D)` by columns, as rules have it: A < C, or A = C and B < D. None if one side has more."""
        sides = [side.arguments if _is_columns(side) else (side,) for side in term.arguments]
        if len(sides[0]) != len(sides[1]):
            self._refuse("columns compared", term.place)
            return None
        single = [Compound(term.functor, pair, term.place) for pair in zip(*sides, strict=True)]
        if term.functor == "=":
            return Compound(",", tuple(single), term.place)
        ways: list[GoalTerm] = []
        for place, comparison in enumerate(single):
            is_last = place == len(single) - 1
            if term.functor == "\\=":
                ways.append(comparison)
                continue
            equal = [replace(before, functor="=") for before in single[:place]]
            strict = comparison if is_last else replace(comparison, functor=term.functor.strip("="))
            ways.append(Compound(",", (*equal, strict), term.place) if equal else strict)
        return Compound(";", tuple(ways), term.place)

    def _positional(self, term: Compound) -> Compound:
        """The call with its arguments in the order of the declared columns, `_` for those that it does not name."""
        named: dict[str, GoalTerm] = {}
        for part in term.arguments:
            if isinstance(part, Compound) and part.functor == COLUMN and isinstance(part.arguments[0], Constant):
                named[str(part.arguments[0].value)] = part.arguments[1]
        if not named or all(term.functor != known.name for known in self.library.completed().signatures):
            return term if not named else Compound(term.functor, tuple(named.values()), term.place)
        columns = self.library.columns_of(term.functor)
        unknown = [column for column in named if column not in columns]
        if unknown or len(named) < len(term.arguments):
            words = wrong_column(term.functor, (unknown or list(named))[0], columns, ())
            self._refuse("column", term.place, words.pop("remedy"), **words)
        arguments = tuple(named.get(column, GoalVariable("_")) for column in columns) or tuple(named.values())
        return Compound(term.functor, arguments, term.place)

    def _arguments(self, term: Compound, kinds: str) -> Compound:
        """The term with its arguments checked; `kinds` has a letter for each, as in BUILT_INS, or c for a constant."""
        checks = {"g": self.goal, "q": self._quantified, "e": self._expression, "a": self._aggregate, "c": self._simple}
        checks["v"] = self._value_of
        arguments: list[GoalTerm] = []
        for kind, argument in zip(kinds, term.arguments, strict=True):
            if kind in _WANTED:
                self._value(term, kind, argument)
            arguments.append(checks[kind](argument) if kind in checks else argument)  # data may be any term
        return Compound(term.functor, tuple(arguments), term.place)

    def _value(self, term: Compound, kind: str, argument: GoalTerm) -> None:
        """Refuse an argument that is not of the kind, which Prolog would raise an error about."""
        if isinstance(argument, GoalVariable):
            return
        number = _number(argument) if isinstance(argument, Constant) else None
        is_list = isinstance(argument, GoalList) and not isinstance(argument.tail, Constant | Compound)
        is_whole = number is not None and number.denominator == 1 and (kind == "i" or number >= 0)
        if not (is_list if kind == "l" else is_whole):
            # A constant as it was written: Prolog's text would have 3r2 for 1.5.
            found = str(argument.value) if isinstance(argument, Constant) else _text(argument)
            self._refuse("wrong argument", term.place, name=term.indicator, wanted=_WANTED[kind], found=found)

    def _quantified(self, term: GoalTerm) -> GoalTerm:
        if isinstance(term, Compound) and term.indicator == "^/2":
            return Compound("^", (term.arguments[0], self._quantified(term.arguments[1])), term.place)
        return self.goal(term)

    def _aggregate(self, term: GoalTerm) -> GoalTerm:
        if term == Constant("count"):
            return term
        if isinstance(term, Compound) and term.indicator in AGGREGATES:
            return self._arguments(term, AGGREGATES[term.indicator])
        self._refuse("aggregate", _place(term), found=_text(term))
        return term

    def _expression(self, term: GoalTerm) -> GoalTerm:
        if isinstance(term, Compound):
            if term.functor in ("/", "rdiv", "//", "mod") and _number(term.arguments[-1]) == 0:
                self._refuse("division by zero", term.place, found=_text(term).removeprefix("(").removesuffix(")"))
            if term.functor == "/":
                # Prolog's own division would round to a float.
                term = Compound("rdiv", term.arguments, term.place)
            if term.indicator in ("**/2", "^/2"):
                return self._power(term)
            if term.indicator in ARITHMETIC:
                for number in term.arguments if term.functor in ("//", "mod") else ():
                    # An inner expression may have a whole number as its value.
                    if isinstance(number, Constant) and number.is_number:
                        self._value(term, "i", number)
                # A date is added to and subtracted from.
                kind = "e" if term.functor not in ("+", "-") or not any(map(is_moment, term.arguments)) else "v"
                return self._arguments(term, kind * len(term.arguments))
            if is_function(term):
                return self._arguments(term, "v" * len(term.arguments))
        is_simple = isinstance(term, GoalVariable) or (isinstance(term, Constant) and term.is_number)
        return term if is_simple else self._no_number(term)

    def _no_number(self, term: GoalTerm) -> GoalTerm:
        if not self._is_misspelt(term):
            self._refuse("not a number", _place(term), found=_text(term))
        return term

    def _is_misspelt(self, term: GoalTerm) -> bool:
        """True, and refused, for a term like a function: of a name like one, or with another number of arguments."""
        if not isinstance(term, Compound) or is_function(term) or term.indicator in ARITHMETIC or is_test(term):
            return False
        if term.functor in _AGGREGATED and len(term.arguments) == 1:
            self._refuse("unknown function", term.place, _COUNTED, name=term.functor)
            return True
        names = [name for name in FUNCTIONS if name[0].isalpha() and name != "mod"]
        near = get_close_matches(term.functor.casefold(), names, n=3, cutoff=_ALIKE)
        if not near or not term.arguments:
            return False
        if near[0] == term.functor:
            wanted, count = FUNCTIONS[term.functor].wanted, counted(len(term.arguments), "argument")
            self._refuse("arguments of a function", term.place, name=term.functor, wanted=wanted, count=count)
        else:
            remedy = f"Did you mean {' or '.join(near)}?"
            self._refuse("unknown function", term.place, remedy, name=term.functor)
        return True

    def _value_of(self, term: GoalTerm) -> GoalTerm:
        """The term, checked as an expression or a text."""
        return term if isinstance(term, Constant) else self._expression(term)

    def _power(self, term: Compound) -> GoalTerm:
        """The power, with a written exponent: a calculated one could make a number that no memory holds."""
        base, exponent = term.arguments
        value = exponent.value if isinstance(exponent, Constant) else None
        if not isinstance(value, int) or not 0 <= value <= LARGEST_EXPONENT:
            self._refuse("not a number", _place(term), found=_text(term))
        # Exact for decimals as well, which are rationals in Prolog.
        return Compound("^", (self._expression(base), exponent), term.place)

    def _simple(self, term: GoalTerm) -> GoalTerm:
        if not isinstance(term, GoalVariable | Constant):
            self._refuse("structured argument", _place(term), found=_text(term))
        return term

    def _unknown(self, term: Compound) -> None:
        self._refuse("unknown predicate", term.place, self._remedy(term), name=term.indicator)

    def _remedy(self, term: Compound) -> str:
        """The remedy for a call of no predicate."""
        name = term.functor
        if name in _AGGREGATED:
            return _COUNTED
        if name in TESTS:
            test = "is_missing(N)" if name == IS_MISSING else f'{name}(N, "A")'
            return f"Test the variable of a column, as in person(name: N), {test}."
        if columns := self.library.columns_of(name):
            return f"Did you mean {name}/{len(columns)}? Name the columns that you need, as in {name}({columns[0]}: X)."
        for signature in self.library.signatures:
            if name in signature.columns:
                return f"{name} is a column of {signature.name}: {signature.name}({name}: X)."
        stored = self.elsewhere(term.indicator)
        if stored and not stored.endswith(" "):
            return stored
        if near := self._near_names(name):
            return f"Did you mean {' or '.join(near[:3])}?"
        return f"{stored}Goals call predicates of rule files; name other files with {Setting('rules')}."

    def _near_names(self, name: str) -> list[str]:
        """Indicators that a goal can call, of names like this one, the likest first."""
        by_name: dict[str, list[str]] = {}
        known = (known.indicator for known in self.library.completed().signatures)
        callable_ones = (indicator for indicator in known if indicator not in self.library.excepted)
        for indicator in (*callable_ones, *BUILT_INS, *(f"{test}/{FUNCTIONS[test].most}" for test in TESTS)):
            own, _, arity = indicator.rpartition("/")
            if own not in INFIX and own != "\\+":  # operators resemble nothing
                by_name.setdefault(own.casefold(), []).append(f"{goal_name(own)}/{arity}")
        names = get_close_matches(name.casefold(), by_name, n=3, cutoff=0.6)
        return list(chain.from_iterable(by_name[name] for name in names))

    def _refuse(self, label: str, place: Place, remedy: str = "", **words: str) -> None:
        shortened = {key: value if len(value) <= 80 else value[:77] + "..." for key, value in words.items()}
        self.diagnostics.append(hint(label).at(place, fix=(), remedy=remedy, **shortened))


def _extreme_of_sorted(term: Compound) -> Compound:
    """`aggregate_all(max(X), G, M)` by the order of texts: M is the last of the sorted list of each X."""
    extreme, inner, found = term.arguments
    every, ordered, place = map(GoalVariable, ("_Each", "_Sorted", "_Last"))
    assert isinstance(extreme, Compound)  # noqa: S101  the caller has looked
    first: tuple[GoalTerm, GoalTerm] = (GoalList((found,), GoalVariable("_")), ordered)
    parts = [
        Compound("findall", (extreme.arguments[0], inner, every), term.place),
        Compound("msort", (every, ordered), term.place),
        Compound("=", first, term.place),
    ]
    if extreme.functor == "max":
        last = Compound("nth1", (place, ordered, found), term.place)
        parts[2:] = [Compound("length", (ordered, place), term.place), last]
    return Compound(",", tuple(parts), term.place)


_EQUATIONS = ("=/2", "==/2", "\\=/2", "\\==/2")

_AGGREGATED = ("count", "sum", "avg", "max", "min", "argmax", "argmin")

_COUNTED = "A goal counts by aggregate_all(count, likes(ann, _), N), and adds by aggregate_all(sum(P), costs(_, P), N)."
"""The remedy for an aggregate as rules have it."""

_ALIKE = 0.75
"""Least likeness of a term's name to that of a function (difflib's ratio): a term with another name is a record."""


def _calculated(term: Compound) -> Compound:
    """An equation or inequation with arithmetic as one of values, where Prolog's would be of terms."""
    if term.indicator not in _EQUATIONS:
        return term
    left, right = sorted(term.arguments, key=_is_arithmetic)
    if not _is_arithmetic(right):
        return term
    if not term.functor.startswith("="):
        return Compound("=\\=", (left, right), term.place)
    return Compound("is" if isinstance(left, GoalVariable) else "=:=", (left, right), term.place)


def _is_arithmetic(term: GoalTerm) -> bool:
    return isinstance(term, Compound) and (term.functor in OPERATIONS or term.indicator in ARITHMETIC)


_BY_COLUMNS = ("<", "=<", ">", ">=", "=", "\\=")

_WANTED = {"l": "a list", "i": "a whole number", "n": "a whole number from 0 on"}
"""Kinds of values in BUILT_INS that Prolog raises an error about, in words."""


def _number(term: GoalTerm) -> Fraction | None:
    """The value of an expression of written numbers; None if it has variables, or another operator than + - *."""
    if isinstance(term, Constant):
        return Fraction(term.value) if not isinstance(term.value, str) else None
    if not isinstance(term, Compound) or term.indicator not in _CALCULATED:
        return None
    numbers = [number for number in map(_number, term.arguments) if number is not None]
    return _CALCULATED[term.indicator](*numbers) if len(numbers) == len(term.arguments) else None


_CALCULATED: dict[str, Callable[..., Fraction]] = {
    "+/2": operator.add,
    "-/2": operator.sub,
    "*/2": operator.mul,
}


def _place(term: GoalTerm) -> Place:
    return term.place if isinstance(term, Compound) else Place("<goal>")


def _compounds(term: GoalTerm) -> Iterator[Compound]:
    if isinstance(term, Compound):
        yield term
    for part in _parts(term):
        yield from _compounds(part)


def answered_names(term: GoalTerm) -> Iterator[str]:
    """Names of the variables that a solution can bind: not those in findall, forall or a negation, or before `^`."""
    if isinstance(term, GoalVariable):
        yield term.name
        return
    indicator = term.indicator if isinstance(term, Compound) else ""
    parts = _parts(term)
    if indicator in ("\\+/1", "forall/2"):
        return
    if indicator in ("findall/3", "aggregate_all/3"):
        parts = parts[2:]  # only the result
    elif indicator in ("setof/3", "bagof/3"):
        # Free variables of the goal are bound, except those of the template and those before `^`.
        hidden, inner = set(answered_names(parts[0])), parts[1]
        while isinstance(inner, Compound) and inner.indicator == "^/2":
            hidden.update(answered_names(inner.arguments[0]))
            inner = inner.arguments[1]
        yield from (name for name in answered_names(inner) if name not in hidden)
        parts = parts[2:]
    for part in parts:
        yield from answered_names(part)


def all_names(term: GoalTerm) -> Iterator[str]:
    """The names of the variables at each of their occurrences."""
    if isinstance(term, GoalVariable):
        yield term.name
    for part in _parts(term):
        yield from all_names(part)


def _parts(term: GoalTerm) -> tuple[GoalTerm, ...]:
    if isinstance(term, Compound):
        return term.arguments
    if isinstance(term, GoalList):
        return term.items if term.tail is None else (*term.items, term.tail)
    return ()


def _text(term: GoalTerm) -> str:
    if isinstance(term, GoalVariable):
        return term.name
    if isinstance(term, Constant):
        text = prolog_value(term.value)
        # In parentheses a minus sign cannot be read as an operator.
        return f"({text})" if text.startswith("-") else text
    parts = [_text(part) for part in _parts(term)]
    if isinstance(term, GoalList):
        if term.tail is None:
            return f"[{', '.join(parts)}]"
        return f"[{', '.join(parts[:-1])}|{parts[-1]}]"
    if term.functor in INFIX and len(parts) >= 2:
        return f"({f' {term.functor} '.join(parts)})"
    # With the blank: `\+(a, b)` would be a call with two arguments.
    if term.functor == "\\+" and len(parts) == 1:
        return f"(\\+ {parts[0]})"
    return f"{prolog_atom(term.functor)}({', '.join(parts)})" if parts else prolog_atom(term.functor)
