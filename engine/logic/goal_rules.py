"""Goals as rules: the answers of a goal become atoms of a predicate of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count, product
from typing import TypeAlias

from hapax.grammar.data_types import OBJECT
from hapax.grammar.errors import HapaxError, Place
from hapax.grammar.goal_language import Compound, Goal, GoalTerm, GoalVariable, answered_names, is_test, needs_rules
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    TRUE,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    variable_names,
)
from hapax.grammar.values.functions import FUNCTIONS
from hapax.grammar.writing.prolog_text import type_of

GOAL = "the goal"
"""The predicate of a goal's answers; no rule file can name one with a blank."""

_COMPARISONS = {
    "<": "<", "=<": "=<", ">": ">", ">=": ">=", "=": "=", "==": "=", "=:=": "=", "is": "=",
    "\\=": "\\=", "\\==": "\\=", "=\\=": "\\=",
}  # fmt: skip
"""The comparisons of goals, and how rules write them."""

_OPERATIONS = {"rdiv": "/", "^": "**"}
"""The operations of goals that rules write otherwise."""


class NotRules(HapaxError):  # noqa: N818  named after the situation, as all our errors are
    """A goal that rules cannot conclude."""


def rule_of(premise: Sequence[BodyLiteral], head: Atom, name: str = GOAL) -> Rule:
    """A rule without generic variables."""
    return Rule(name=name, premise=tuple(premise), conclusion=Literal(head), place=Place(GOAL, 1, 1), generic=())


def with_rules(library: Library, rules: Iterable[Rule]) -> Library:
    """The library with further rules and their conclusions' predicates."""
    rules = tuple(rules)
    heads = {rule.conclusion.atom.indicator: rule.conclusion.atom for rule in rules}
    new = [
        PredicateSignature(head.predicate, (OBJECT,) * len(head.arguments), PredicateKind.GIVEN)
        for head in heads.values()
    ]
    return replace(library, rules=(*library.rules, *rules), signatures=(*library.signatures, *new))


def goal_rules(goal: Goal, library: Library, *, by_failure: bool = False) -> tuple[Rule, ...]:
    """Rules that conclude the answers of a goal as atoms of GOAL, with an argument for each of its variables.

    `by_failure`: a negation holds of what does not follow, also where nobody knows that it is false.

    Raises NotRules for a part that only Prolog can answer, such as a list of all answers.
    """
    reader = _GoalReader(library, _bound(goal.term), by_failure)
    reader.note_types(goal.term)
    head = Atom(GOAL, tuple(map(reader.variable, goal.variables)))
    reader.conclude(head, goal.term)
    return tuple(reader.rules)


def column_kinds(goal: Goal, library: Library) -> tuple[str, ...]:
    """The kind of each variable's values: Number, Text, Date ..., or Object where it is not known."""
    reader = _GoalReader(library, frozenset(), by_failure=True)
    reader.note_types(goal.term)
    return tuple(library.kind_of(reader.types.get(name, OBJECT)) for name in goal.variables)


_MOST_WAYS = 100

# By built-in, the places of its arguments that are goals.
_INNER = {
    "\\+/1": (0,),
    "forall/2": (0, 1),
    "findall/3": (1,),
    "aggregate_all/3": (1,),
    "setof/3": (1,),
    "bagof/3": (1,),
}

Way: TypeAlias = tuple[GoalTerm, ...]
"""Parts of a goal that are reached one after the other."""


@dataclass
class GoalParts:
    """The parts of a goal that only Prolog can answer, to call its atoms by rules.

    What is inside a condition or a collection counts as a part, too, behind what stands before it.
    """

    goal: Goal
    library: Library
    _ends: list[Way] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = _GoalReader(self.library, _bound(self.goal.term), by_failure=True)
        self._reader.note_types(self.goal.term)

    @property
    def rules(self) -> list[Rule]:
        """The rules below the items: those of negations."""
        return self._reader.rules

    def ways(self) -> list[Way]:
        """The ways through the goal, by its disjunctions."""
        self._ends += self._after(self.goal.term, [()])
        return list(dict.fromkeys(self._ends))

    def item(self, part: GoalTerm) -> BodyLiteral | None:
        """A part as the item of a premise; None for one that rules cannot have."""
        try:
            return self._reader.item(part) if isinstance(part, Compound) else None
        except NotRules:
            return None

    def variables(self, names: Iterable[str]) -> tuple[Variable, ...]:
        """Variables of the goal by their names."""
        return tuple(map(self._reader.variable, names))

    def _after(self, term: GoalTerm, before: list[Way]) -> list[Way]:
        """The ways that end behind a part of the goal that stands behind others."""
        if not isinstance(term, Compound):
            return before
        if term.functor in (",", "->", "*->") or term.indicator == "once/1":
            for part in term.arguments:
                before = self._after(part, before)
            return before
        if term.functor == ";":
            found = [way for part in term.arguments for way in self._after(part, before)]
            if len(found) <= _MOST_WAYS:
                return found
            self._ends += found
            return before
        if term.functor == "^":
            return self._after(term.arguments[-1], before)
        inner = before
        for place in _INNER.get(term.indicator, ()):
            inner = self._after(term.arguments[place], inner)
        self._ends += inner if inner is not before else []
        return [(*way, term) for way in before]


@dataclass
class _GoalReader:
    """Turns a goal into rules. `bound`: the variables to which the goal, or the negation at work, gives values."""

    library: Library
    bound: frozenset[str]
    by_failure: bool
    rules: list[Rule] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def note_types(self, term: GoalTerm) -> None:
        """Note the data type of each variable: at its first place in an atom, or of what is calculated for it."""
        if not isinstance(term, Compound):
            return
        types: Sequence[str] = ()
        if self.library.knows(term.indicator):
            types = self.library.signature(term.indicator).argument_types
        for argument, data_type in zip(term.arguments, types, strict=False):
            if isinstance(argument, GoalVariable):
                self.types.setdefault(argument.name, data_type)
        for argument in term.arguments:
            self.note_types(argument)
        if term.functor in ("=", "is") and isinstance(term.arguments[0], GoalVariable):
            with suppress(NotRules):
                calculated = type_of(self.expression(term.arguments[-1]), self.library)
                if self.library.kind_of(calculated) != OBJECT:
                    self.types.setdefault(term.arguments[0].name, calculated)

    def variable(self, name: str) -> Variable:
        # Each `_` is a variable of its own.
        written = f"_{next(self.numbers)}" if name == "_" else name
        return Variable(written, self.types.get(name, "Object"))

    def conclude(self, head: Atom, term: GoalTerm) -> None:
        """Add a rule for each way in which the disjunctions of a goal can go."""
        for premise in self.premises(term):
            bound = variable_names(premise)
            free = [variable.name for variable in head.variables if variable.name not in bound]
            if free:
                raise NotRules(f"{', '.join(free)} has no value in a part of the goal. Ask for that part alone.")
            self.rules.append(rule_of(premise, head, f"{GOAL} {len(self.rules) + 1}"))

    def premises(self, term: GoalTerm) -> list[tuple[BodyLiteral, ...]]:
        if not isinstance(term, Compound):
            raise _no_probability("this goal")
        # Each part may go several ways by its disjunctions: every combination is a premise.
        if term.functor == ",":
            ways = product(*map(self.premises, term.arguments))
            return [tuple(chain.from_iterable(way)) for way in ways]
        if term.functor == ";":
            return list(chain.from_iterable(map(self.premises, term.arguments)))
        return [(self.item(term),)]

    def item(self, term: Compound) -> BodyLiteral:
        if self.library.knows(term.indicator):
            return Literal(self.atom(term))
        if term.indicator == "\\+/1":
            return self.negation(term.arguments[0])
        if is_test(term):
            return Comparison("=", self.expression(term), Constant(TRUE))
        if term.functor in _COMPARISONS and len(term.arguments) == 2:
            left, right = map(self.expression, term.arguments)
            return Comparison(_COMPARISONS[term.functor], left, right)
        raise _no_probability(term.indicator)

    def negation(self, inner: GoalTerm) -> Literal:
        """The negation of an atom, or of a new predicate if the goal is not an atom or binds variables of its own."""
        # Any other variable is the negation's own: `\+ fell_in(C, N)` says that C fell in no year.
        outer, names = self.bound, list(dict.fromkeys(_names(inner)))
        shared = [name for name in names if name in outer]
        # The atoms of a new predicate are those that follow, and no others.
        if (
            isinstance(inner, Compound)
            and self.library.knows(inner.indicator)
            and shared == names
            and not (self.by_failure and self.library.is_open(inner.indicator))
        ):
            return Literal(self.atom(inner), negated=True)
        head = Atom(f"{GOAL}, negation {next(self.numbers)}", tuple(map(self.variable, shared)))
        self.bound = outer | _bound(inner)
        self.conclude(head, inner)
        self.bound = outer
        return Literal(head, negated=True)

    def atom(self, term: Compound) -> Atom:
        return Atom(term.functor, tuple(map(self.term, term.arguments)))

    def term(self, term: GoalTerm) -> Term:
        found = self.expression(term)
        if isinstance(found, Arithmetic):
            raise _no_probability("a calculation as an argument")
        return found

    def expression(self, term: GoalTerm) -> Expression:
        if isinstance(term, GoalVariable):
            return self.variable(term.name)
        if isinstance(term, Constant):
            return term
        if isinstance(term, Compound):
            name = _OPERATIONS.get(term.functor, term.functor)
            function = FUNCTIONS.get(name)
            if function is not None and function.least <= len(term.arguments) <= function.most:
                return Arithmetic(name, tuple(map(self.expression, term.arguments)))
        raise _no_probability(term.indicator if isinstance(term, Compound) else "a list")


def parts_by_rules(goal: Goal, library: Library) -> tuple[Goal, tuple[Rule, ...]]:
    """The goal with predicates in the place of inner goals that need functions of rules, and the rules of these.

    Raises HapaxError for a part outside of them that Prolog cannot calculate.
    """
    if not needs_rules(goal.term, library):
        return goal, ()
    reader = _GoalReader(library, _bound(goal.term), by_failure=True)
    reader.note_types(goal.term)
    term = _without_functions(goal.term, reader)
    if needs_rules(term, library):
        raise HapaxError(
            "Part of the goal needs a function of rules beside what only Prolog answers. Write that part as a rule, "
            "and call the predicate that it concludes."
        )
    return replace(goal, term=term), tuple(reader.rules)


def _without_functions(term: GoalTerm, reader: _GoalReader) -> GoalTerm:
    if not isinstance(term, Compound) or not needs_rules(term, reader.library):
        return term
    arguments = list(term.arguments)
    for place in _INNER.get(term.indicator, range(len(arguments))):
        read = _concluded if term.indicator in _INNER else _without_functions
        arguments[place] = read(arguments[place], reader)
    return Compound(term.functor, tuple(arguments), term.place)


def _concluded(part: GoalTerm, reader: _GoalReader) -> GoalTerm:
    """An inner goal as the call of a predicate that rules conclude."""
    if not isinstance(part, Compound) or not needs_rules(part, reader.library):
        return part
    if part.functor == "^":  # `V^G` says for which variables of G there is one list
        return Compound("^", (part.arguments[0], _concluded(part.arguments[1], reader)), part.place)
    names = [name for name in dict.fromkeys(_names(part)) if name != "_"]
    head = Atom(f"{GOAL}, part {next(reader.numbers)}", tuple(map(reader.variable, names)))
    reader.bound |= _bound(part)
    reader.conclude(head, part)
    return Compound(head.predicate, tuple(map(GoalVariable, names)), part.place)


def _bound(term: GoalTerm) -> frozenset[str]:
    """Names of the variables to which a part of a goal gives values."""
    return frozenset(answered_names(term)) - {"_"}


def _names(term: GoalTerm) -> list[str]:
    if isinstance(term, GoalVariable):
        return [term.name]
    names: list[str] = []
    for part in term.arguments if isinstance(term, Compound) else ():
        names += _names(part)
    return names


def _no_probability(part: str) -> NotRules:
    return NotRules(
        f"{part} has no probability. Ask for atoms, joined by `,` and `;`, negations of them, and comparisons."
    )
