"""Call patterns: which arguments are bound when a goal, and the rules below it, call a predicate.

They decide only how facts are loaded and in which order premises are joined, never what holds: an estimate is enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from hapax.engine.inference.program import join_order
from hapax.grammar.goals import Compound, Goal, GoalList, GoalTerm, GoalVariable
from hapax.grammar.prolog_text import evaluation_order
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Comparison, Constant, Variable, variable_names

MOST_PATTERNS = 16
"""Patterns of a predicate that are followed into its rules; further ones count as calls with nothing bound."""

# By built-in, the places of its arguments that are goals.
_INNER = {
    "\\+/1": (0,),
    "forall/2": (0, 1),
    "findall/3": (1,),
    "aggregate_all/3": (1,),
    "setof/3": (1,),
    "bagof/3": (1,),
}


@dataclass
class CallPatterns:
    """Patterns by indicator: the sets of places, counted from 0, that are bound in its calls."""

    library: Library
    proofs: bool = False
    """True if each rule is also called with its whole conclusion bound, as a search for proofs does."""
    places: dict[str, set[frozenset[int]]] = field(default_factory=dict)
    _waiting: list[tuple[str, frozenset[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in self.library.rules:
            self._rules.setdefault(rule.conclusion.atom.indicator, []).append(rule)

    def add_goal(self, goal: Goal) -> None:
        """Add the calls of a goal."""
        self._goal(goal.term, set())
        self._follow()

    def add_atom(self, atom: Atom) -> None:
        """Add the call of an atom."""
        self._call(atom, set())
        self._follow()

    def add_premise(self, premise: Iterable[BodyLiteral], names: Iterable[str]) -> None:
        """Add the calls of a premise in the order of `clause_text`, with these variables bound."""
        self._premise(premise, set(names))
        self._follow()

    @property
    def open(self) -> frozenset[str]:
        """Indicators of the predicates that are called with no argument bound."""
        return frozenset(indicator for indicator, found in self.places.items() if frozenset() in found)

    @property
    def looked_up(self) -> frozenset[str]:
        """Indicators of the predicates that are always called with an argument bound."""
        return frozenset(self.places) - self.open

    def bound_variables(self, rule: Rule) -> list[frozenset[str]]:
        """Names of the conclusion's variables that are bound in calls of the rule, a set for each pattern."""
        return [
            _names(rule, places) for places in sorted(self.places.get(rule.conclusion.atom.indicator, ()), key=sorted)
        ]

    def _follow(self) -> None:
        while self._waiting:
            indicator, places = self._waiting.pop()
            for rule in self._rules.get(indicator, ()):
                self._body(rule, _names(rule, places))

    def _body(self, rule: Rule, names: frozenset[str]) -> None:
        self._premise(join_order(rule, names).premise, set(names))

    def _premise(self, premise: Iterable[BodyLiteral], bound: set[str]) -> None:
        for item in evaluation_order(premise, self.library):
            if not isinstance(item, Comparison):
                self._call(item.atom, bound)
            bound |= variable_names([item])

    def _call(self, atom: Atom, bound: Collection[str]) -> None:
        terms = enumerate(atom.arguments)
        self._add(atom.indicator, (place for place, term in terms if isinstance(term, Constant) or term.name in bound))

    def _add(self, indicator: str, places: Iterable[int]) -> None:
        known = self.places.setdefault(indicator, set())
        pattern = frozenset(places)
        # A call that binds nothing covers all others.
        if len(known) >= MOST_PATTERNS:
            pattern = frozenset()
        if pattern not in known:
            known.add(pattern)
            self._waiting.append((indicator, pattern))
            # A proof looks each atom up again, with all its arguments.
            if self.proofs:
                self._add(indicator, range(int(indicator.rpartition("/")[2])))

    # Goals: `bound` has the names of the variables that have values by then, and grows.

    def _goal(self, term: GoalTerm, bound: set[str]) -> None:
        if not isinstance(term, Compound):
            return
        if term.functor in (",", "->") or term.indicator == "once/1":
            for part in term.arguments:
                self._goal(part, bound)
        elif term.functor == ";":
            # Behind a disjunction only the variables that every branch binds have values for sure.
            ends = [set(bound) for _ in term.arguments]
            for part, end in zip(term.arguments, ends, strict=True):
                self._goal(part, end)
            bound |= set.intersection(*ends)
        elif term.functor == "^":
            self._goal(term.arguments[-1], bound)
        elif term.indicator in _INNER:
            # Bindings of an inner goal, as in findall/3, do not leave it.
            inner = set(bound)
            for place in _INNER[term.indicator]:
                self._goal(term.arguments[place], inner)
            bound |= _variables(term.arguments[-1])
        else:
            if self.library.knows(term.indicator):
                self._add(
                    term.indicator, (place for place, part in enumerate(term.arguments) if _variables(part) <= bound)
                )
            bound |= _variables(term)


def _names(rule: Rule, places: Iterable[int]) -> frozenset[str]:
    """Names of the variables at these places of a rule's conclusion."""
    arguments = rule.conclusion.atom.arguments
    terms = (arguments[place] for place in places)
    return frozenset(term.name for term in terms if isinstance(term, Variable))


def _variables(term: GoalTerm) -> set[str]:
    if isinstance(term, GoalVariable):
        # Each `_` is a variable of its own, which nothing binds.
        return {term.name} if term.name != "_" else {"_ "}
    found: set[str] = set()
    if isinstance(term, Compound):
        found.update(*map(_variables, term.arguments))
    elif isinstance(term, GoalList):
        found.update(*map(_variables, term.items))
        found |= _variables(term.tail) if term.tail is not None else set()
    return found
