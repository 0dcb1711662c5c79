"""Declarations of predicates and types: signatures, closedness, properties, constraints; and attributes of rules.

`symmetric` and `transitive` give facts, as the rules of `Library.closure_rules`. `asymmetric`, `irreflexive`,
`disjoint` and `never` forbid facts together, as the constraints of `Library.constraints`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from itertools import chain, count
from typing import Any, TypeAlias, TypeGuard

from hapax.grammar.data_types import NUMBER, OBJECT
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.terms import (
    ANY,
    IS_MISSING,
    MAXIMUM_POWER,
    MISSING,
    TRUE,
    VERSION_MARK,
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
    expression_text,
    variable_names,
)
from hapax.grammar.values.functions import evaluated


class Closedness(StrEnum):
    """Extent to which absent facts of a predicate are false."""

    CLOSED = "closed"  # every fact that is not known is false
    CLOSED_FOR_FIRST = "closed for each first argument"  # so are those about a first argument of a known fact
    OPEN = "open"  # a fact that is not known may be true


class Property(StrEnum):
    """A property of a predicate of two arguments, by its keyword."""

    SYMMETRIC = "symmetric"
    ASYMMETRIC = "asymmetric"
    IRREFLEXIVE = "irreflexive"
    TRANSITIVE = "transitive"


def _is_calculable(value: Value) -> TypeGuard[int | Decimal]:
    return isinstance(value, int) or (isinstance(value, Decimal) and abs(value.adjusted()) <= MAXIMUM_POWER)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The difference within which two quantities agree: `amount` itself, or `amount` percent of the larger one."""

    amount: Decimal
    is_relative: bool = False

    @classmethod
    def parsed(cls, text: str) -> Tolerance:
        """The tolerance of a text such as `2` or `5%`."""
        return cls(Decimal(text.removesuffix("%").strip()), text.endswith("%"))

    def __str__(self) -> str:
        return f"{self.amount:f}%" if self.is_relative else f"{self.amount:f}"

    def covers(self, first: Value, second: Value) -> bool:
        """Tell if two values agree. Texts do only if they are equal, and so do numbers that no rule can name."""
        if not (_is_calculable(first) and _is_calculable(second)):
            return first == second
        # As fractions: a float could round a difference to the other side of the limit.
        numbers = Fraction(first), Fraction(second)
        limit = Fraction(self.amount)
        if self.is_relative:
            limit *= max(map(abs, numbers)) / 100
        return abs(numbers[0] - numbers[1]) <= limit

    def covers_all(self, values: Sequence[Value]) -> bool:
        """Tell if each two of the values agree."""
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) < len(values):
            return len(set(values)) == 1
        # If the two that lie farthest apart agree, all do.
        return self.covers(min(numbers), max(numbers))


class PredicateKind(StrEnum):
    """The source of a predicate's facts."""

    ORACLE = "oracle"  # a model proposes values and a critic judges them
    FUNCTIONAL = "functional"  # an oracle predicate with a single right last argument, given the others
    COMPUTED = "computed"  # decided by Prolog arithmetic, never asked
    GIVEN = "given"  # asserted by the user, never asked
    DERIVED = "derived"  # concluded by rules alone, never asked


ASKED_KINDS = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
"""Kinds of predicates whose facts a model is asked for."""


@dataclass(frozen=True, slots=True)
class Templates:
    """Sentences with slots `[1]`, `[2]` ... for the arguments: affirmative, negated and question form."""

    affirmative: str
    negated: str | None = None
    question: str | None = None


@dataclass(frozen=True, slots=True)
class PredicateSignature:
    """A predicate's name, argument types, kind and templates.

    Computed predicates have `parameters`, their formal variables, and `definition`, a comparison over these.
    `declared` is false for a signature inferred from the predicate's uses. `tolerance`: of two answers about a
    functional predicate; None: they have to be equal.
    """

    name: str
    argument_types: tuple[str, ...]
    kind: PredicateKind = PredicateKind.ORACLE
    templates: Templates | None = None
    parameters: tuple[Variable, ...] = ()
    definition: Comparison | None = None
    declared: bool = True
    place: Place = field(default=Place(), compare=False)
    # Not in the representation, which identifies runs: those of before tolerances stay the same runs.
    tolerance: Tolerance | None = field(default=None, repr=False)
    key: tuple[int, ...] = field(default=(), repr=False)
    """The places of the columns of which no two facts have the same values; empty if none are declared."""
    columns: tuple[str, ...] = field(default=(), repr=False)
    """The names of the arguments, by which rules may call them; empty if the declaration names none."""

    @property
    def indicator(self) -> str:
        return f"{self.name}/{len(self.argument_types)}"

    @property
    def keys(self) -> list[tuple[tuple[int, ...], str]]:
        """The places of the arguments that decide all others, each with the declaration that says so, in words."""
        found = []
        if self.kind is PredicateKind.FUNCTIONAL:
            found.append((tuple(range(len(self.argument_types) - 1)), "is functional"))
        if self.key:
            found.append((self.key, f"has the key {', '.join(self.columns[place] for place in self.key)}"))
        return found

    @property
    def is_by_function(self) -> bool:
        """True for a computed predicate that a Python function decides."""
        sides = self.definition.sides if self.definition is not None else ()
        return any(isinstance(side, Arithmetic) and VERSION_MARK in side.operator for side in sides)


def argument_types(atoms: Sequence[Atom]) -> tuple[str, ...]:
    """The type at each position: the first that is written; of constants alone, Number, or Object if there is a text.

    Any, if variables stand there without a type.
    """
    types = []
    for terms in zip(*(atom.arguments for atom in atoms), strict=True):
        variables = [term.data_type for term in terms if isinstance(term, Variable)]
        written = [data_type for data_type in variables if data_type != ANY]
        has_text = any(isinstance(term, Constant) and not term.is_number for term in terms)
        of_constants = OBJECT if has_text else NUMBER
        types.append(written[0] if written else ANY if variables else of_constants)
    return tuple(types)


def exception_templates(arity: int) -> Templates:
    """The sentences of a predicate that stands for an exception."""
    slots = " and ".join(f"[{position}]" for position in range(1, arity + 1))
    affirmative, negated = f"there is an exception for {slots}", f"no exception is known for {slots}"
    return Templates(affirmative, negated, f"is there an exception for {slots}?")


SAME_AS = "same_as/2"
"""The predicate of names that stand for one entity: rules see one of them."""

GENERATING = (Property.SYMMETRIC, Property.TRANSITIVE)
"""Properties from which facts follow; the others forbid facts."""


@dataclass(frozen=True, slots=True)
class PropertyDeclaration:
    """`symmetric p/2` and the like."""

    property: Property
    indicator: str
    place: Place = field(default=Place(), compare=False, repr=False)

    def literals(self, *pairs: tuple[Variable, Variable]) -> tuple[Literal, ...]:
        """Literals over the predicate with these arguments."""
        name = self.indicator.rpartition("/")[0]
        return tuple(Literal(Atom(name, pair)) for pair in pairs)

    def __str__(self) -> str:
        return f"{self.property} {self.indicator}"


@dataclass(frozen=True, slots=True)
class ClosedDeclaration:
    """`closed p/2` or, closed for each first argument, `closed p/2 by 1`."""

    indicator: str
    closedness: Closedness = Closedness.CLOSED
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"closed {self.indicator}{' by 1' if self.closedness is Closedness.CLOSED_FOR_FIRST else ''}"


@dataclass(frozen=True, slots=True)
class DisjointTypes:
    """`disjoint Person, Dish`: no constant is of both types."""

    first: str
    second: str
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"disjoint {self.first}, {self.second}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """`never A & B`: premises that do not hold together. `origin`: the declaration that forbids them."""

    premise: tuple[BodyLiteral, ...]
    origin: str = field(default="", compare=False, repr=False)
    place: Place = field(default=Place(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"never {premise_text(self.premise, ())}"


@dataclass(frozen=True, slots=True)
class Chance:
    """The random choice of which a rule's conclusion is one outcome: `0.3::first; 0.5::second :- premise`.

    `choice`: what identifies it. It is made once for all values of the rule's variables if it `is_shared`, else once
    for each. `outcomes`: the probability of each conclusion; that of the rule has the place `place`.
    """

    choice: tuple[object, ...]
    outcomes: tuple[tuple[Expression, Atom], ...]
    place: int = 0
    is_shared: bool = False

    def shares(self, bindings: Mapping[str, Value]) -> list[Fraction] | None:
        """The probabilities of all outcomes; None if one is no probability, or their sum is above 1."""
        values = [evaluated(share, bindings) for share, _ in self.outcomes]
        shares = [value for value in values if isinstance(value, Fraction) and 0 <= value <= 1]
        return shares if len(shares) == len(values) and sum(shares) <= 1 else None

    def __str__(self) -> str:
        return "; ".join(f"{expression_text(share)}::{atom}" for share, atom in self.outcomes)


AGGREGATE_FUNCTIONS = ("count", "sum", "min", "max", "avg", "argmin", "argmax")
"""The functions of aggregates. All but `count` are of the first counted variable; `argmin` and `argmax` give its values
where the second one is smallest or largest."""

_RECURSIVE = ("sum", "min", "max")
"""The functions of aggregates that may depend on themselves."""


@dataclass(frozen=True, slots=True)
class AggregateDeclaration:
    """`aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))`.

    The atom holds for each group of bindings that agree in the atom's other variables, with the function's value over
    the distinct values of the `counted` variables as `result`. Each of the `cases`, premises joined by `|`, gives
    bindings.
    """

    atom: Atom
    result: str
    function: str
    counted: tuple[Variable, ...]
    cases: tuple[tuple[BodyLiteral, ...], ...]
    place: Place = field(default=Place(), compare=False, repr=False)

    @property
    def premise(self) -> tuple[BodyLiteral, ...]:
        """The items of all cases."""
        return tuple(chain.from_iterable(self.cases))

    @property
    def group(self) -> tuple[Variable, ...]:
        """The variables of the atom without the result."""
        return tuple(variable for variable in self.atom.variables if variable.name != self.result)

    @property
    def is_arg(self) -> bool:
        """True for `argmin` and `argmax`."""
        return self.function in ("argmin", "argmax")

    @property
    def is_evaluable(self) -> bool:
        """True if the function is known and the result is a variable of the atom alone; `check` reports the rest."""
        given = variable_names(self.premise) - ({self.counted[0].name} if self.is_arg else set())
        is_own = self.result in variable_names([self.atom]) and self.result not in given
        return self.function in AGGREGATE_FUNCTIONS and is_own

    def is_own(self, literal: Literal) -> bool:
        """True for a literal of a case by which the aggregate may depend on itself."""
        return literal.atom.indicator == self.atom.indicator and not literal.negated and self.function in _RECURSIVE

    @property
    def is_recursive(self) -> bool:
        return any(isinstance(item, Literal) and self.is_own(item) for item in self.premise)

    @property
    def is_improved(self) -> bool:
        """True for a smallest or largest value that further rows can only improve: it needs no whole groups."""
        return self.function in ("min", "max") and (self.is_recursive or len(self.cases) > 1)

    @property
    def counts_derivations(self) -> bool:
        """True for a sum whose rows differ by the values of all variables: each derivation counts."""
        return self.function == "sum" and (self.is_recursive or len(self.cases) > 1)

    def __str__(self) -> str:
        counted = ", ".join(map(str, self.counted))
        cases = " | ".join(premise_text(case, ()) for case in self.cases)
        return f"aggregate {self.atom} := {self.result} = {self.function}({counted}: {cases})"


# unless_is_penguin_1a2b3c4d, as `ExceptionClause.of` makes it
_EXCEPTION_NAME = re.compile(r"unless_\w+_[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class ExceptionClause:
    """`unless is_penguin(Animal X)` after a rule, or `not (A & B)` in its premise, and the predicate for it.

    The rule's premise has the negated atom. The atom holds where the premise does, as far as facts and rules show: what
    is not known is not an exception, also of predicates that are open elsewhere.
    """

    atom: Atom
    premise: tuple[BodyLiteral, ...]
    """The conditions of the exception; they begin with the rule's premise where the exception alone binds no values."""
    stated: tuple[BodyLiteral, ...]
    """The premise as it was written."""
    place: Place = field(default=Place(), compare=False, repr=False)
    in_premise: bool = False
    """True if it is written `not (A & B)`."""
    inner: tuple[ExceptionClause, ...] = ()
    """Negations inside the premise."""

    @classmethod
    def of(
        cls,
        premise: tuple[BodyLiteral, ...],
        stated: tuple[BodyLiteral, ...],
        place: Place,
        in_premise: bool = False,
        inner: tuple[ExceptionClause, ...] = (),
    ) -> ExceptionClause:
        """The clause of a rule with this premise. Its atom has the variables that the two share."""
        shared = variable_names(premise) & variable_names(stated)
        bound = variable_names(item for item in stated if isinstance(item, Literal) and not item.negated)
        whole = stated if variable_names(stated) <= bound else (*premise, *stated)
        variables = dict.fromkeys(chain.from_iterable(item.variables for item in premise))
        arguments = tuple(variable for variable in variables if variable.name in shared)
        # Two rules share a name only if conditions and arguments agree, and both except or both negate: proofs tell
        # which. The rule's name is no part of it, because a stored rule can have another one.
        text = " & ".join(map(str, (*whole, *arguments))) + (" negated" if in_premise else "")
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        word = next((item.atom.predicate for item in stated if isinstance(item, Literal)), "comparison")
        name = f"unless_{word}_{digest}"
        return cls(Atom(name, arguments, place), whole, stated, place, in_premise, inner)

    @property
    def literal(self) -> Literal:
        """The item of the rule's premise: no exception is known."""
        return Literal(self.atom, negated=True)

    @property
    def whole(self) -> tuple[ExceptionClause, ...]:
        """The clause, after those that its premise has."""
        return (*chain.from_iterable(clause.whole for clause in self.inner), self)

    def replaced(self, terms: Mapping[str, Term]) -> ExceptionClause:
        """The clause as it was written, with terms in the place of the variables of these names."""
        stated = tuple(item.replaced(terms) for item in self.stated)
        inner = tuple(clause.replaced(terms) for clause in self.inner)
        return replace(self, atom=self.atom.replaced(terms), stated=stated, inner=inner)

    def __str__(self) -> str:
        stated = premise_text(self.stated, self.inner)
        if not self.in_premise:
            return f"unless {stated}"
        item = self.stated[0]
        # `not p(X, _)` needs no parentheses: what `_` stands for is no variable of the rule.
        is_open = (
            len(self.stated) == 1
            and isinstance(item, Literal)
            and not item.negated
            and not item.atom.has_missing
            and any(variable.is_anonymous for variable in item.variables)
        )
        return f"not {stated}" if is_open else f"not ({stated})"


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated conjunction whose variables are settled, before it becomes an exception of its rule.

    `premise`: the items of a rule, or of a goal.
    """

    premise: tuple[Any, ...]
    place: Place


Item: TypeAlias = BodyLiteral | Negation


def settled(
    premise: Sequence[Item], outer: tuple[BodyLiteral, ...] = ()
) -> tuple[tuple[BodyLiteral, ...], tuple[ExceptionClause, ...]]:
    """The premise with an atom in place of each negated conjunction, and the exceptions that these stand for.

    `outer`: the premise around this one. The negation of a single atom over bound variables stays as it is.
    """
    base = (*outer, *(item for item in premise if not isinstance(item, Negation)))
    items: list[BodyLiteral] = []
    clauses: dict[ExceptionClause, None] = {}
    for item in premise:
        if not isinstance(item, Negation):
            items.append(item)
            continue
        stated, inner = settled(item.premise, base)
        (first, *others) = stated
        is_bound = variable_names(stated) <= variable_names(base)
        if isinstance(first, Literal) and not first.negated and not others and is_bound:
            items.append(Literal(first.atom, negated=True))
            continue
        clause = ExceptionClause.of(base, stated, item.place, in_premise=True, inner=inner)
        clauses[clause] = None
        items.append(clause.literal)
    return tuple(items), tuple(clauses)


def premise_text(premise: Sequence[BodyLiteral], exceptions: Sequence[ExceptionClause]) -> str:
    """The premise as rule text; an atom that stands for one of the exceptions is written as this."""
    written: dict[BodyLiteral, str] = {clause.literal: str(clause) for clause in exceptions if clause.in_premise}
    taken = variable_names(premise)
    names = (name for number in count(1) if (name := f"Missing{number}") not in taken)
    return " & ".join(written.get(item) or _item_text(item, names) for item in premise)


def _item_text(item: BodyLiteral, names: Iterator[str]) -> str:
    """An item as rule text; a missing argument is a variable of one of the names, with the test that it is missing."""
    if isinstance(item, Comparison) or not item.atom.has_missing:
        return str(item)
    terms = [Variable(next(names), ANY) if term == Constant(MISSING) else term for term in item.atom.arguments]
    new = [term for term in terms if term not in item.atom.arguments]
    tests = [Comparison("=", Arithmetic(IS_MISSING, (term,)), Constant(TRUE)) for term in new]
    text = " & ".join(map(str, (Literal(Atom(item.atom.predicate, tuple(terms))), *tests)))
    return f"not ({text})" if item.negated else text


def is_exception(item: Atom | BodyLiteral) -> bool:
    """True for the atom that stands for an exception, by its name."""
    return isinstance(item, Atom) and _EXCEPTION_NAME.fullmatch(item.predicate) is not None


Declaration: TypeAlias = PropertyDeclaration | ClosedDeclaration | DisjointTypes | Constraint | AggregateDeclaration


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A rule, aggregate or constraint that is not evaluated.

    `indicator`: the predicate that it concludes, or "". `errors`: the faults that are the reason, which may be those of
    a rule that this one needs.
    """

    name: str
    indicator: str
    errors: tuple[Diagnostic, ...]
    reason: str

    def __str__(self) -> str:
        refused = f" Goals that need {self.indicator} are refused." if self.indicator else ""
        return f"{self.errors[0].place}: {self.name} is left out: {self.reason}{refused}"


class Domain(StrEnum):
    """The paper's four domains (section 2.2), as the rule files write them."""

    TEMPORAL = "temporal"
    OUTCOMES = "outcomes and effects"
    NATURAL = "natural properties"
    LOCATIONAL = "locational"


class Principle(StrEnum):
    """The paper's two principles (section 2.2): conditions that agree with each other, or rule each other out."""

    COMPATIBILITY = "compatibility"
    EXCLUSION = "exclusion"


class Polarity(StrEnum):
    """Affirming or denying conclusion; template 7 of the probing takes its label from it."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class GenericBy(StrEnum):
    """The convention that chose a rule's generic variables, in the words that `plan` prints."""

    ATTRIBUTE = "@generic"
    PERSON = "by default, a person"
    POSITION = "by default, first argument"
    NOTHING = "by default"
    FACTS = "over facts, of which no model is asked"


PRINCIPLE_SPELLINGS = {
    "compatibility": Principle.COMPATIBILITY,
    "exclusion": Principle.EXCLUSION,
    "mutual exclusivity": Principle.EXCLUSION,  # the paper's name
}

# A whole word of the name: cannot_plant, has_no_use_for, but neither is_known_by nor is_notable.
_NEGATIVE_NAME = re.compile(r"(?:^|_)(?:not|no|never|cannot)(?:_|$)")


@dataclass(frozen=True, slots=True)
class StatementCap:
    """The most statements of each end of a search that share a value of one of these variables (`@most 2 per A B`).

    Without it, a rule that only compares two years fills a list with one war and every invention.
    """

    count: int
    variables: tuple[str, ...]

    @classmethod
    def parsed(cls, text: str) -> StatementCap | None:
        """The cap that a text such as `2 per A B` states; None for any other text."""
        match text.split():
            case [count, "per", *names] if count.isdecimal() and int(count) > 0 and names:
                return cls(int(count), tuple(dict.fromkeys(names)))
        return None

    def __str__(self) -> str:
        return f"{self.count} per {' '.join(self.variables)}"


def default_polarity(conclusion: Literal) -> Polarity:
    """Negative if the predicate's name denies (`cannot_plant`, `is_not_able_to_eat`, `has_no_use_for`)."""
    return Polarity.NEGATIVE if _NEGATIVE_NAME.search(conclusion.atom.predicate) else Polarity.POSITIVE


def default_principle(polarity: Polarity) -> Principle:
    """The paper ties the two: compatible conditions allow something, excluding ones forbid it."""
    return Principle.EXCLUSION if polarity is Polarity.NEGATIVE else Principle.COMPATIBILITY


def default_generic(
    premise: Sequence[BodyLiteral], conclusion: Literal, is_person: Callable[[str], bool]
) -> tuple[tuple[str, ...], GenericBy]:
    """Names of the variables that are generic without `@generic`, and the convention that chose them.

    These are the persons that premise and conclusion share; without any, the first argument of the premise's first
    atom, if the conclusion mentions it.
    """
    atoms = [item.atom for item in premise if isinstance(item, Literal)]
    in_premise = variable_names(atoms)
    persons = [
        variable.name
        for variable in conclusion.variables
        if is_person(variable.data_type) and variable.name in in_premise
    ]
    if persons:
        return tuple(dict.fromkeys(persons)), GenericBy.PERSON
    first = atoms[0].arguments[0] if atoms and atoms[0].arguments else None
    if isinstance(first, Variable) and first.name in variable_names([conclusion]):
        return (first.name,), GenericBy.POSITION
    return (), GenericBy.NOTHING
