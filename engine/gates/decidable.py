"""Premises that need no model: given facts, arithmetic, and what follows from them by rules.

A search tests them before it ranks or cuts anything: a partial substitution stays only if these premises can still
hold for some values of the other variables. So a beam never fills up with values that a given fact excludes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from operator import attrgetter

from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.inference.theory import FactSource
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.proofs import reading, time_limit
from hapax.engine.prolog.session import LimitExceeded
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.rules import Library, Rule, comparison_of, literals_of
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Term,
    Value,
    Variable,
    connected,
    grouped,
    variable_names,
)
from hapax.grammar.writing.prolog_text import assignment
from hapax.kb.schema import GIVEN


class Origin(StrEnum):
    """Source of a step's values."""

    MODEL = "model"
    GIVEN = "given"
    DERIVED = "derived"
    COMPUTED = "computed"


def origin_of(literal: Literal, library: Library) -> Origin:
    """Source of the literal's truth. A predicate that is both asked and derived is asked."""
    indicator = literal.atom.indicator
    if library.is_asked(indicator):
        return Origin.MODEL
    if indicator not in library.derived and library.kind(indicator) is PredicateKind.COMPUTED:
        return Origin.COMPUTED
    # Declared properties, aggregates and exceptions give facts, too.
    return Origin.DERIVED if indicator in library.derived | library.standing else Origin.GIVEN


TEST_SECONDS = 60.0
"""Processor time that one test of a step's partial substitutions may take; then later steps test them."""

KEYS = "keys of a search"
"""The predicate of the values that a step has, each row after its number."""

_NUMBER = Variable("Number of a row", "Number")


class GivenFacts:
    """Given facts, and what follows from them alone: by declared properties, and by rules that need no model.

    `seconds`: processor time for the values of a step; beyond it LimitExceeded is raised.
    """

    def __init__(self, known: RunFacts, library: Library, seconds: float) -> None:
        self.known, self._library, self._seconds = known, library, seconds
        self._needs_no_model: dict[str, bool] = {}
        self._newest: tuple[str, dict[Atom, None], dict[Atom, list[Value]]] = ("", {}, {})
        """The variable and the atoms whose values were asked for last, with these; the next step may ask again."""

    def needs_no_model(self, literal: Literal) -> bool:
        """True if rules over given facts and arithmetic decide a derived literal."""
        indicator = literal.atom.indicator
        if indicator not in self._needs_no_model:
            rules = relevant_library(self._library, goals=[indicator]).rules
            self._needs_no_model[indicator] = all(
                origin_of(premise, self._library) is not Origin.MODEL for premise in literals_of(rules)
            )
        return self._needs_no_model[indicator]

    def decide(self, literal: Literal) -> bool:
        """True if the literal is of a given predicate, or of one derived from given facts."""
        origin = origin_of(literal, self._library)
        return origin is Origin.GIVEN or (origin is Origin.DERIVED and self.needs_no_model(literal))

    def values(self, atoms: Iterable[Atom], name: str) -> dict[Atom, list[Value]]:
        """By atom, the values of the variable `name` for which it holds, sorted, whatever its other variables are."""
        wanted = dict.fromkeys(atoms)
        if (name, wanted) != self._newest[:2]:
            found: dict[Atom, list[Value]] = {atom: [] for atom in wanted}
            for shape, own in grouped(wanted, shape_of).items():
                # A predicate without given facts that nothing else derives has no values.
                is_derived = origin_of(Literal(shape), self._library) is Origin.DERIVED
                if is_derived or self.known.has_given(shape.indicator):
                    places = [place for place, term in enumerate(own[0].arguments) if isinstance(term, Constant)]
                    terms = [shape.arguments[place] for place in places]
                    rows = [atom.values for atom in own]
                    for number, value in self._joined(terms, rows, [Literal(shape)], [name]):
                        found[own[int(number)]].append(value)
            for values in found.values():
                values.sort(key=lambda value: (isinstance(value, str), value))
            self._newest = name, wanted, found
        return self._newest[2]

    def truths(self, atoms: Iterable[Atom]) -> dict[Atom, float | None]:
        """The truth of ground atoms, as `RunFacts.truth` has it, and 1 for those that follow by declared properties."""
        truths = {atom: self.known.truth(atom) for atom in atoms}
        generating = self._library.generating
        unknown = [atom for atom, truth in truths.items() if truth != 1.0 and atom.indicator in generating]
        for indicator, own in grouped(unknown, attrgetter("indicator")).items():
            if not self.known.has_given(indicator):
                continue
            shape, rows = shape_of(own[0]), [atom.values for atom in own]
            for (number,) in self._joined(shape.arguments, rows, [Literal(shape)]):
                truths[own[int(number)]] = 1.0
        return truths

    def passing(self, part: PremisePart, rows: Sequence[Mapping[str, Value]]) -> list[bool]:
        """For each partial substitution, whether the part holds for some values of its other variables.

        All pass if finding out takes too long.
        """
        keys = [tuple(row[name] for name in part.keys) for row in rows]
        # Substitutions that agree in these values pass or fail together.
        distinct = list(dict.fromkeys(keys))
        terms = [next(item for item in part.variables if item.name == name) for name in part.keys]
        try:
            found = self._joined(terms, distinct, part.items, seconds=TEST_SECONDS)
        except LimitExceeded:
            return [True] * len(rows)
        passed = {distinct[int(number)] for (number,) in found}
        return [key in passed for key in keys]

    def _joined(
        self,
        terms: Sequence[Term],
        rows: Sequence[Sequence[Value]],
        items: Sequence[BodyLiteral],
        names: Sequence[str] = (),
        *,
        seconds: float | None = None,
    ) -> list[tuple[Value, ...]]:
        """The numbers of the rows, as values of these terms, for which premises hold, with the values of `names`."""
        indicators = [item.atom.indicator for item in items if isinstance(item, Literal)]
        library = self._library
        # Only given facts count of a predicate of which models are asked, and what declarations make of them.
        if any(isinstance(item, Literal) and origin_of(item, library) is Origin.MODEL for item in items):
            library = replace(library, rules=())
        part, kb = relevant_library(library, goals=indicators), self.known.kb
        if not kb.connection.in_transaction:
            kb.index_facts(signature.indicator for signature in part.completed().signatures)
        keys, given = numbered(terms, rows)
        source = FactSource(kb, self.known.given, self.known.denials, stored=lambda _: GIVEN)
        with reading(kb), time_limit(kb, seconds or self._seconds):
            demand = Demand(source, part, given=given)
            return list(demand.answers([Literal(keys), *items], [_NUMBER.name, *names]))


def numbered(terms: Sequence[Term], rows: Sequence[Sequence[Value]]) -> tuple[Atom, list[Atom]]:
    """The atom of rows of values for these terms, each after its number, and the atoms of the rows."""
    given = [Atom(KEYS, tuple(map(Constant, (number, *row)))) for number, row in enumerate(rows)]
    return Atom(KEYS, (_NUMBER, *terms)), given


def shape_of(atom: Atom) -> Atom:
    """The atom with variables in place of its constants."""
    terms = (
        Variable(f"Value {place}", "") if isinstance(term, Constant) else term
        for place, term in enumerate(atom.arguments)
    )
    return replace(atom, arguments=tuple(terms))


# --- testing a partial substitution ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PremisePart:
    """Premises that share variables without a value, so that they hold or fail together.

    `keys`: names of the bound variables on which they depend.
    """

    items: tuple[BodyLiteral, ...]
    keys: tuple[str, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(dict.fromkeys(chain.from_iterable(item.variables for item in self.items)))

    def __str__(self) -> str:
        return " & ".join(map(str, self.items))


def open_parts(rule: Rule, names: Sequence[str], facts: GivenFacts, library: Library) -> list[PremisePart]:
    """The parts of the premise that need no model and are to be tested once the newest of the named variables is bound.

    Premises whose variables all had values before are left out: an earlier step has tested them. So are those with a
    variable that only a model can give a value.
    """
    bound, before = set(names), set(names[:-1])
    testable = [item for item in rule.premise if _is_testable(item, rule, facts, library)]
    reached = bound | _reached(testable, bound, facts, library)
    waiting = []
    for item in testable:
        own = variable_names([item])
        # An earlier step has tested what had all its values then; the first step tests everything.
        if own <= reached and (not own <= before or not before):
            waiting.append(item)
    parts: list[PremisePart] = []
    while waiting:
        # The first, and all that variables without a value connect with it, in their order.
        first, free = waiting[0], variable_names(waiting[:1]) - bound
        joined = connected(waiting[1:], lambda item: variable_names([item]) - bound, free)
        part = [item for item in waiting if item is first or item in joined]
        waiting = [item for item in waiting if item not in part]
        used = variable_names(part)
        keys = tuple(name for name in names if name in used)
        # Without the newest variable the part is as it was after the step before.
        if names[-1] in used or not before:
            parts.append(PremisePart(tuple(part), keys))
    return parts


def _is_testable(item: BodyLiteral, rule: Rule, facts: GivenFacts, library: Library) -> bool:
    if any(variable.name in rule.generic for variable in item.variables):
        return False
    if isinstance(item, Comparison):
        return True
    return facts.decide(item) or _definition(item, library) is not None


def _definition(item: BodyLiteral, library: Library) -> Comparison | None:
    """The comparison that a premise is, or that its computed predicate stands for; None for any other premise."""
    if isinstance(item, Comparison):
        return item
    if origin_of(item, library) is not Origin.COMPUTED:
        return None
    return comparison_of(Literal(item.atom), library)


def _reached(items: Iterable[BodyLiteral], bound: set[str], facts: GivenFacts, library: Library) -> set[str]:
    """The variables that these premises can give values."""
    reached = set(bound)
    for item in items:
        if isinstance(item, Literal) and not item.negated and facts.decide(item):
            reached |= variable_names([item])
    stated = [item for item in items if not (isinstance(item, Literal) and item.negated)]
    found = list(filter(None, (_definition(item, library) for item in stated)))
    # An equation may need a variable that a later one assigns, so they are tried until none adds a variable.
    while new := set(filter(None, (assignment(comparison, reached) for comparison in found))) - reached:
        reached |= new
    return reached
