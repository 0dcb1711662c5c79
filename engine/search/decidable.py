"""Premises that need no model: given facts, arithmetic, and what follows from them by rules.

A search tests them before it ranks or cuts anything: a partial substitution stays only if these premises can still
hold for some values of the other variables. So a beam never fills up with values that a given fact excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.known_facts import FactTable, KnownFacts, Row
from hapax.grammar.arithmetic import assigned, holds
from hapax.grammar.rules import ASKED_KINDS, Library, PredicateKind, Rule, comparison_of, literals_of
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Value,
    Variable,
    expression_variables,
    variable_names,
)


class Origin(StrEnum):
    """Source of a step's values."""

    MODEL = "model"
    GIVEN = "given"
    DERIVED = "derived"
    COMPUTED = "computed"


def origin_of(literal: Literal, library: Library) -> Origin:
    """Source of the literal's truth. A predicate that is both asked and derived is asked."""
    indicator = literal.atom.indicator
    signature = library.signature(indicator)
    if indicator in library.derived and not (signature.declared and signature.kind in ASKED_KINDS):
        return Origin.DERIVED
    if signature.kind is PredicateKind.COMPUTED:
        return Origin.COMPUTED
    if signature.kind is PredicateKind.GIVEN and indicator in library.standing:
        return Origin.DERIVED  # facts follow by its declared properties, an aggregate or an exception
    return Origin.GIVEN if signature.kind is PredicateKind.GIVEN else Origin.MODEL


LOOKUPS = 2_000_000
"""Rows that one step of a rule looks up at most to test its premises; then the others are tested by later steps."""

Bindings = dict[str, Value]


class DecidableFacts:
    """Given facts, and the atoms that follow from them alone, by the values at some of their positions.

    `derive` gives all rows of a predicate that rules derive from given facts; None: they are too many. `derived`: its
    tables so far, by indicator, which others with the same facts may share.
    """

    def __init__(
        self,
        known: KnownFacts,
        library: Library,
        derive: Callable[[str], Sequence[Row] | None],
        derived: dict[str, FactTable | None] | None = None,
    ) -> None:
        self._known, self._library, self._derive = known, library, derive
        self._derived = {} if derived is None else derived
        self._needs_no_model: dict[str, bool] = {}

    def needs_no_model(self, literal: Literal) -> bool:
        """True if rules over given facts and arithmetic decide a derived literal. Its table may still be too large."""
        indicator = literal.atom.indicator
        if indicator not in self._needs_no_model:
            rules = relevant_library(self._library, goals=[indicator]).rules
            self._needs_no_model[indicator] = all(
                origin_of(premise, self._library) is not Origin.MODEL for premise in literals_of(rules)
            )
        return self._needs_no_model[indicator]

    def is_tabled(self, literal: Literal) -> bool:
        """True if all rows of the literal's predicate are known: it is given, or derived from given facts."""
        match origin_of(literal, self._library):
            case Origin.GIVEN:
                return True
            case Origin.DERIVED:
                return self.needs_no_model(literal) and self._table(literal) is not None
        return False

    def values(self, literal: Literal, atom: Atom, name: str) -> list[Value]:
        """Values of the variable `name` for which the atom, of a tabled literal, holds for any other variables."""
        table = self._table(literal)
        return [] if table is None else table.values(atom, name)

    def rows(self, literal: Literal, positions: tuple[int, ...], key: Row) -> Collection[Row]:
        """Rows of a tabled literal's predicate with these values at these positions."""
        table = self._table(literal)
        return () if table is None else table.rows(positions, key)

    def size(self, literal: Literal) -> int:
        """Number of rows of a tabled literal's predicate."""
        table = self._table(literal)
        return 0 if table is None else len(table)

    def _table(self, literal: Literal) -> FactTable | None:
        indicator = literal.atom.indicator
        if origin_of(literal, self._library) is Origin.GIVEN:
            return self._known.table(indicator)
        if indicator not in self._derived:
            rows = self._derive(indicator)
            self._derived[indicator] = None if rows is None else FactTable(rows)
        return self._derived[indicator]


# --- testing a partial substitution ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PremisePart:
    """Premises that share variables without a value, so that they hold or fail together.

    `keys`: names of the bound variables on which they depend.
    """

    items: tuple[BodyLiteral, ...]
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return " & ".join(map(str, self.items))


def open_parts(rule: Rule, names: Sequence[str], facts: DecidableFacts, library: Library) -> list[PremisePart]:
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
        part = _connected(waiting, bound)
        waiting = [item for item in waiting if item not in part]
        used = variable_names(part)
        keys = tuple(name for name in names if name in used)
        # Without the newest variable the part is as it was after the step before.
        if names[-1] in used or not before:
            parts.append(PremisePart(tuple(part), keys))
    return parts


def _is_testable(item: BodyLiteral, rule: Rule, facts: DecidableFacts, library: Library) -> bool:
    if any(variable.name in rule.generic for variable in item.variables):
        return False
    if isinstance(item, Comparison):
        return True
    return facts.is_tabled(item) or _definition(item, library) is not None


def _definition(item: BodyLiteral, library: Library) -> Comparison | None:
    """The comparison that a premise is, or that its computed predicate stands for; None for any other premise."""
    if isinstance(item, Comparison):
        return item
    if origin_of(item, library) is not Origin.COMPUTED:
        return None
    return comparison_of(Literal(item.atom), library)


def _reached(items: Iterable[BodyLiteral], bound: set[str], facts: DecidableFacts, library: Library) -> set[str]:
    """The variables that these premises can give values."""
    reached = set(bound)
    for item in items:
        if isinstance(item, Literal) and not item.negated and facts.is_tabled(item):
            reached |= variable_names([item])
    equations: list[tuple[str, Expression]] = []
    for item in items:
        equations += _equations(item, library)
    # An equation may need a variable that a later one assigns, so they are tried until none adds a variable.
    grown = True
    while grown:
        new = {name for name, right in equations if name not in reached and _names(right) <= reached}
        reached |= new
        grown = bool(new)
    return reached


def _equations(item: BodyLiteral, library: Library) -> list[tuple[str, Expression]]:
    """Variables that the premise sets equal to an expression."""
    comparison = None if isinstance(item, Literal) and item.negated else _definition(item, library)
    if comparison is None or comparison.operator != "=":
        return []
    sides = ((comparison.left, comparison.right), (comparison.right, comparison.left))
    return [(left.name, right) for left, right in sides if isinstance(left, Variable)]


def _names(expression: Expression) -> set[str]:
    return {variable.name for variable in expression_variables(expression)}


def _connected(items: Sequence[BodyLiteral], bound: set[str]) -> list[BodyLiteral]:
    """The first of the premises, and all that variables without a value connect with it, in their order."""
    chosen = {items[0]}
    grown = True
    while grown:
        free = variable_names(chosen) - bound
        new = {item for item in items if free & variable_names([item])} - chosen
        chosen |= new
        grown = bool(new)
    return [item for item in items if item in chosen]


@dataclass(slots=True)
class Lookups:
    """Number of rows that may still be looked up."""

    left: int = LOOKUPS


class PartTest:
    """Test whether a part of a premise can hold. Compiled once for all partial substitutions of a step."""

    def __init__(self, part: PremisePart, facts: DecidableFacts, library: Library) -> None:
        self.part, self._facts, self._library = part, facts, library
        self._known: dict[Row, bool] = {}
        self._operations = self._compiled()

    def passes(self, values: Mapping[str, Value], lookups: Lookups) -> bool:
        """True if the part holds for some values of its other variables, or if no lookup is left to find that out."""
        key = tuple(values[name] for name in self.part.keys)
        # Substitutions that agree in these values pass or fail together.
        if key not in self._known:
            bindings = dict(zip(self.part.keys, key, strict=True))
            self._known[key] = self._holds(0, bindings, lookups) or lookups.left <= 0
        return self._known[key]

    def _compiled(self) -> list[_Operation]:
        """The part's premises in the order of their evaluation: tests first, then equations, then the fewest rows."""
        bound, waiting = set(self.part.keys), list(self.part.items)
        operations: list[_Operation] = []
        while waiting:
            item = next((item for item in waiting if variable_names([item]) <= bound), None)
            if item is not None:
                operations.append(_Operation(item))
            else:
                item, assigns = self._next(waiting, bound)
                if item is None:  # a premise whose variables nothing binds: a later step tests it
                    break
                operations.append(_Operation(item, assigns))
                bound |= variable_names([item])
            waiting.remove(item)
        return operations

    def _next(
        self, waiting: Sequence[BodyLiteral], bound: set[str]
    ) -> tuple[BodyLiteral | None, tuple[str, Expression] | None]:
        for item in waiting:
            for name, right in _equations(item, self._library):
                if name not in bound and _names(right) <= bound:
                    return item, (name, right)
        tables = [item for item in waiting if isinstance(item, Literal) and not item.negated]
        tables = [item for item in tables if self._facts.is_tabled(item)]

        def cost(literal: Literal) -> tuple[int, int]:
            return len(variable_names([literal]) - bound), self._facts.size(literal)

        return min(tables, key=cost, default=None), None

    def _holds(self, number: int, bindings: Bindings, lookups: Lookups) -> bool:
        """True if the operations from this one on succeed for the bindings."""
        if number == len(self._operations):
            return True
        item, assigns = self._operations[number].item, self._operations[number].assigns
        lookups.left -= 1
        # `passes` reads a false result with no lookup left as unknown, so the substitution stays.
        if lookups.left <= 0:
            return False
        if assigns is not None:
            name, right = assigns
            value = assigned(right, bindings)
            return value is not None and self._holds(number + 1, {**bindings, name: value}, lookups)
        definition = _definition(item, self._library)
        if definition is not None:
            negated = isinstance(item, Literal) and item.negated
            return holds(definition, bindings) is not negated and self._holds(number + 1, bindings, lookups)
        assert isinstance(item, Literal)  # noqa: S101  a comparison is its own definition
        matches = self._matches(item, bindings)
        if item.negated:
            return not any(True for _ in matches) and self._holds(number + 1, bindings, lookups)
        for more in matches:
            lookups.left -= 1
            if self._holds(number + 1, {**bindings, **more}, lookups):
                return True
            if lookups.left <= 0:
                break
        return False

    def _matches(self, literal: Literal, bindings: Bindings) -> Iterator[Bindings]:
        """Values of the literal's free variables under which it is a row of its table."""
        positions: list[int] = []
        key: list[Value] = []
        for place, term in enumerate(literal.atom.arguments):
            if isinstance(term, Constant) or term.name in bindings:
                positions.append(place)
                key.append(term.value if isinstance(term, Constant) else bindings[term.name])
        for row in self._facts.rows(literal, tuple(positions), tuple(key)):
            more: Bindings = {}
            for term, value in zip(literal.atom.arguments, row, strict=True):
                # A variable may stand at several places.
                if isinstance(term, Constant) or term.name in bindings:
                    continue
                if more.setdefault(term.name, value) != value:
                    break
            else:
                yield more


@dataclass(frozen=True, slots=True)
class _Operation:
    """A premise to evaluate; `assigns`: the variable that its equation gives a value, with the expression."""

    item: BodyLiteral
    assigns: tuple[str, Expression] | None = None
