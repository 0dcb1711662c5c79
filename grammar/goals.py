"""Goals that users type for `query`: what may be called, and how a goal is written for Prolog.

A goal is a term. It is never handed to Prolog as typed: only an allowed tree gets here and only `goal_text` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from grammar.errors import Diagnostic, hint
from grammar.prolog_text import prolog_atom, prolog_value
from grammar.rules import Library, Place
from grammar.terms import Constant


@dataclass(frozen=True, slots=True)
class GoalVariable:
    """A Prolog variable; `_` is a new one at each occurrence."""

    name: str


@dataclass(frozen=True, slots=True)
class GoalList:
    """A list; `tail` stands after the bar in `[H|T]`."""

    items: tuple[GoalTerm, ...]
    tail: GoalTerm | None = None


@dataclass(frozen=True, slots=True)
class Compound:
    """A functor with arguments; also operators. Conjunctions and disjunctions (`,` and `;`) may have more than two."""

    functor: str
    arguments: tuple[GoalTerm, ...]
    place: Place

    @property
    def indicator(self) -> str:
        return f"{self.functor}/{len(self.arguments)}"


GoalTerm: TypeAlias = GoalVariable | Constant | GoalList | Compound


@dataclass(frozen=True, slots=True)
class Goal:
    """An allowed goal. `variables` are the ones it answers about, in order of occurrence; `_` and `_Name` are not."""

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
    "member/2": "dd",
    "length/2": "dd",
    "between/3": "eed",
    "sort/2": "dd",
    "msort/2": "dd",
    "sum_list/2": "dd",
    "max_list/2": "dd",
    "min_list/2": "dd",
    "nth1/3": "ddd",
    ",": "g",
    ";": "g",
    "\\+/1": "g",
    "is/2": "de",
    "=/2": "dd",
    "\\=/2": "dd",
    "==/2": "dd",
    "\\==/2": "dd",
    "</2": "ee",
    "=</2": "ee",
    ">/2": "ee",
    ">=/2": "ee",
    "=:=/2": "ee",
    "=\\=/2": "ee",
}
"""What a goal may call beside the library's predicates. One letter an argument: data, goal, goal after `V^`, arithmetic
expression, aggregate. `,` and `;` take goals only, as many as there are."""

AGGREGATES = {"sum/1": "e", "max/1": "e", "min/1": "e", "bag/1": "d", "set/1": "d", "max/2": "ed", "min/2": "ed"}
"""First arguments of aggregate_all/3, beside `count`."""

ARITHMETIC = frozenset(("+/2", "-/2", "*/2", "rdiv/2", "///2", "mod/2", "-/1", "abs/1", "min/2", "max/2"))

INFIX = frozenset(
    (
        ",",
        ";",
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
    )
)


Elsewhere: TypeAlias = Callable[[str], str]
"""Says of an indicator that the library lacks where it is known and what to do about it, or nothing.

What ends with a blank may be of another predicate; the usual remedy follows it."""


def allowed_goal(
    term: GoalTerm, library: Library, elsewhere: Elsewhere = lambda _: ""
) -> tuple[Goal, tuple[Diagnostic, ...]]:
    """The goal and the faults of everything in it that may not be called."""
    check = _Check(library, elsewhere)
    term = check.goal(term)
    names = (name for name in _answered(term) if not name.startswith("_"))
    return Goal(term, tuple(dict.fromkeys(names))), tuple(check.faults)


def goal_text(goal: Goal) -> str:
    """The goal as Prolog text, variable names kept, fully bracketed and quoted."""
    return _text(goal.term)


def called_indicators(goal: Goal, library: Library) -> tuple[str, ...]:
    """Indicators of the library's predicates that the goal calls, in order of occurrence."""
    called = (term.indicator for term in _compounds(goal.term) if library.knows(term.indicator))
    return tuple(dict.fromkeys(called))


class _Check:
    """Walks a goal by what each position may hold, collecting faults; `/` in arithmetic becomes exact division."""

    def __init__(self, library: Library, elsewhere: Elsewhere) -> None:
        self.library = library
        self.elsewhere = elsewhere
        self.faults: list[Diagnostic] = []

    def goal(self, term: GoalTerm) -> GoalTerm:
        if not isinstance(term, Compound):
            self._refuse("not callable", Place("<goal>"), found=_text(term))
            return term
        if term.functor in (",", ";"):
            return self._arguments(term, "g" * len(term.arguments))
        if term.indicator in BUILT_INS:
            return self._arguments(term, BUILT_INS[term.indicator])
        if not self.library.knows(term.indicator):
            self._unknown(term)
            return term
        return self._arguments(term, "c" * len(term.arguments))

    def _arguments(self, term: Compound, kinds: str) -> Compound:
        arguments = tuple(self._argument(kind, one) for kind, one in zip(kinds, term.arguments, strict=True))
        return Compound(term.functor, arguments, term.place)

    def _argument(self, kind: str, term: GoalTerm) -> GoalTerm:
        checks = {"g": self.goal, "q": self._quantified, "e": self._expression, "a": self._aggregate, "c": self._plain}
        return checks[kind](term) if kind in checks else term

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
            if term.functor == "/":
                term = Compound("rdiv", term.arguments, term.place)
            if term.indicator in ARITHMETIC:
                return self._arguments(term, "e" * len(term.arguments))
        elif isinstance(term, GoalVariable) or (isinstance(term, Constant) and term.is_number):
            return term
        self._refuse("no number", _place(term), found=_text(term))
        return term

    def _plain(self, term: GoalTerm) -> GoalTerm:
        if isinstance(term, Compound) and term.indicator == "-/1" and isinstance(term.arguments[0], Constant):
            return term
        if not isinstance(term, GoalVariable | Constant):
            self._refuse("structured argument", _place(term), found=_text(term))
        return term

    def _unknown(self, term: Compound) -> None:
        known: dict[str, list[str]] = {}
        for indicator in (*(one.indicator for one in self.library.completed().signatures), *BUILT_INS):
            name, _, arity = indicator.rpartition("/")
            if name.isidentifier():
                known.setdefault(name, []).append(f"{name}/{arity}")
        near = [one for name in get_close_matches(term.functor, known, n=3, cutoff=0.6) for one in known[name]]
        question = f"Did you mean {' or '.join(near[:3])}? " if near else ""
        usual = question + "Goals call predicates of rule files; --rules names other files."
        told = self.elsewhere(term.indicator)
        remedy = told + usual if not told or told.endswith(" ") else told
        self._refuse("unknown predicate", term.place, remedy, name=term.indicator)

    def _refuse(self, label: str, place: Place, remedy: str = "", **words: str) -> None:
        shortened = {key: value if len(value) <= 80 else value[:77] + "..." for key, value in words.items()}
        self.faults.append(hint(label).at(place, remedy=remedy, **shortened))


def _place(term: GoalTerm) -> Place:
    return term.place if isinstance(term, Compound) else Place("<goal>")


def _compounds(term: GoalTerm) -> Iterator[Compound]:
    if isinstance(term, Compound):
        yield term
    for part in _parts(term):
        yield from _compounds(part)


def _answered(term: GoalTerm) -> Iterator[str]:
    """Names of the variables a solution can bind: not those inside findall, forall, a negation or before `^`."""
    if isinstance(term, GoalVariable):
        yield term.name
        return
    indicator = term.indicator if isinstance(term, Compound) else ""
    parts = _parts(term)
    if indicator in ("\\+/1", "forall/2"):
        return
    if indicator in ("findall/3", "aggregate_all/3"):
        parts = parts[2:]
    elif indicator in ("setof/3", "bagof/3"):
        hidden, inner = set(_answered(parts[0])), parts[1]
        while isinstance(inner, Compound) and inner.indicator == "^/2":
            hidden.update(_answered(inner.arguments[0]))
            inner = inner.arguments[1]
        yield from (name for name in _answered(inner) if name not in hidden)
        parts = parts[2:]
    for part in parts:
        yield from _answered(part)


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
        return f"({text})" if text.startswith("-") else text
    parts = [_text(part) for part in _parts(term)]
    if isinstance(term, GoalList):
        if term.tail is None:
            return f"[{', '.join(parts)}]"
        return f"[{', '.join(parts[:-1])}|{parts[-1]}]"
    if term.functor in INFIX and len(parts) >= 2:
        return f"({f' {term.functor} '.join(parts)})"
    if term.functor in ("\\+", "-") and len(parts) == 1:
        return f"({term.functor} {parts[0]})"
    return f"{prolog_atom(term.functor)}({', '.join(parts)})"
