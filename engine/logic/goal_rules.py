"""Goals as rules: the answers of a goal become atoms of a predicate of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, product

from hapax.grammar.data_types import OBJECT
from hapax.grammar.errors import HapaxError, Place
from hapax.grammar.goals import (
    Either,
    Goal,
    GoalItem,
    GoalPremise,
    PrologCall,
    answered,
    variables_of,
)
from hapax.grammar.parsing.declarations import Negation, PredicateKind, PredicateSignature
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Expression,
    Literal,
    Variable,
    variable_names,
)
from hapax.grammar.values.functions import FUNCTIONS
from hapax.grammar.writing.prolog_text import GoalText

GOAL = "the goal"
"""The predicate of a goal's answers; no rule file can name one with a blank."""


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
    writer = _GoalWriter(library, by_failure)
    writer.conclude(Atom(GOAL, goal.columns), goal.premise)
    return tuple(writer.rules)


def names_of(variables: Iterable[Variable]) -> frozenset[str]:
    """The names of variables that are not written `_`."""
    return frozenset(variable.name for variable in variables if not variable.is_anonymous)


@dataclass
class _GoalWriter:
    """Writes goals as rules."""

    library: Library
    by_failure: bool
    rules: list[Rule] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def conclude(self, head: Atom, premise: GoalPremise, outer: frozenset[str] = frozenset()) -> None:
        """Add a rule for each way in which the disjunctions of a goal can go. `outer`: names that have values."""
        known = outer | names_of(answered(premise))
        for way in _ways(premise):
            items = [self.item(item, known) for item in way]
            bound = variable_names(items)
            free = [variable.name for variable in head.variables if variable.name not in bound]
            if free:
                raise NotRules(f"{', '.join(free)} has no value in a part of the goal. Ask for that part alone.")
            self.rules.append(rule_of(items, head, f"{GOAL} {len(self.rules) + 1}"))

    def item(self, item: GoalItem, known: frozenset[str]) -> BodyLiteral:
        """The item of a premise. Raises NotRules."""
        match item:
            case Negation(premise):
                return self._negation(premise, known)
            case Comparison():
                for side in item.sides:
                    _refuse_terms(side)
                return item
            case Literal():
                return item
            case PrologCall():
                raise _no_probability(item.indicator)
        raise _no_probability("this goal")

    def _negation(self, inner: GoalPremise, known: frozenset[str]) -> Literal:
        """The negation of an atom, or of a new predicate if the goal is not an atom or binds variables of its own."""
        # Any other variable is the negation's own: `\\+ fell_in(C, N)` says that C fell in no year.
        variables = dict.fromkeys(variables_of(inner))
        shared = tuple(variable for variable in variables if variable.name in known)
        # The atoms of a new predicate are those that follow, and no others.
        match inner:
            case (Literal(atom),) if len(shared) == len(variables):
                if not (self.by_failure and self.library.is_open(atom.indicator)):
                    return Literal(atom, negated=True)
        head = Atom(f"{GOAL}, negation {next(self.numbers)}", shared)
        self.conclude(head, inner, known)
        return Literal(head, negated=True)

    def part(self, premise: GoalPremise, known: frozenset[str]) -> GoalPremise:
        """An inner goal, as the call of a predicate that rules conclude if Prolog lacks its functions."""
        if not _lacks(premise, self.library):
            return premise
        if isinstance(premise[0], PrologCall) and premise[0].name == "^":
            # `V^G` says for which variables of G there is one list.
            return (self._with_parts(premise[0], known),)
        named = (variable for variable in variables_of(premise) if not variable.is_anonymous)
        head = Atom(f"{GOAL}, part {next(self.numbers)}", tuple(dict.fromkeys(named)))
        self.conclude(head, premise, known)
        return (Literal(head),)

    def without_functions(self, premise: GoalPremise, known: frozenset[str]) -> GoalPremise:
        """The goal with calls in the place of the goals inside of it that need functions of rules."""
        return tuple(self._with_parts(item, known) for item in premise)

    def _with_parts(self, item: GoalItem, known: frozenset[str]) -> GoalItem:
        match item:
            case Either(ways):
                return Either(tuple(self.without_functions(way, known) for way in ways))
            case Negation(premise):
                return replace(item, premise=self.part(premise, known))
            case PrologCall(name, arguments):
                read = self.without_functions if name in ("->", "once") else self.part
                inner = (read(part, known) if isinstance(part, tuple) else part for part in arguments)
                return PrologCall(name, tuple(inner))
        return item


def _ways(premise: GoalPremise) -> Iterator[GoalPremise]:
    """The conjunctions of which one must hold: every combination of the ways of the items."""
    alternatives = [
        list(chain.from_iterable(map(_ways, item.ways))) if isinstance(item, Either) else [(item,)] for item in premise
    ]
    for way in product(*alternatives):
        yield tuple(chain.from_iterable(way))


def _refuse_terms(expression: Expression) -> None:
    """Raise NotRules for lists and records, which rules lack."""
    if isinstance(expression, Arithmetic):
        if expression.operator not in FUNCTIONS:
            raise _no_probability("a list" if expression.operator[0] == "[" else expression.operator)
        for operand in expression.operands:
            _refuse_terms(operand)


def parts_by_rules(goal: Goal, library: Library) -> tuple[Goal, tuple[Rule, ...]]:
    """The goal with predicates in the place of inner goals that need functions of rules, and the rules of these."""
    if not _lacks(goal.premise, library):
        return goal, ()
    writer = _GoalWriter(library, by_failure=True)
    premise = writer.without_functions(goal.premise, names_of(answered(goal.premise)))
    return replace(goal, premise=premise), tuple(writer.rules)


def _lacks(premise: GoalPremise, library: Library) -> bool:
    """True for a part of a goal with functions, or an order of texts, that Prolog lacks."""
    try:
        return not GoalText(library).of(premise)
    except HapaxError:
        return True


def _no_probability(part: str) -> NotRules:
    return NotRules(
        f"{part} has no probability. Ask for atoms, joined by `,` and `;`, negations of them, and comparisons."
    )
