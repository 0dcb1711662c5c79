"""Rules, predicate signatures and the library that holds them: what a rule file says, as data.

A `Library` is what `parser.parse_library` returns for one or several files and what every later room takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache

from grammar.errors import HapaxError
from grammar.terms import Atom, BodyLiteral, Comparison, Literal, Term, Variable

NUMBER = "Number"
"""The root of all numeric types; computed predicates and comparisons of order need it."""

OBJECT = "Object"
"""The root of all types that are no person: LINK expands types under Person and under Object (paper, appendix B)."""

PERSON = "Person"

BUILT_IN_SUBTYPES: tuple[tuple[str, str], ...] = (("Year", NUMBER), ("Age", NUMBER))

BUILT_IN_OPPOSITES: tuple[tuple[str, str], ...] = (("can_", "cannot_"), ("is_able_to_", "is_not_able_to_"))
"""Name beginnings that are each other's opposite when the rest of the name is the same."""


class PredicateKind(StrEnum):
    """Where the truth of a predicate comes from."""

    ORACLE = "oracle"  # a model proposes values and a critic judges them
    FUNCTIONAL = "functional"  # an oracle predicate whose last argument has one right value for the rest
    COMPUTED = "computed"  # decided by Prolog arithmetic, never asked
    GIVEN = "given"  # asserted by the user, never asked


class Principle(StrEnum):
    """The paper's two principles (section 2.2): what goes together, and what excludes each other."""

    COMPATIBILITY = "compatibility"
    EXCLUSION = "exclusion"


class Polarity(StrEnum):
    """Whether a conclusion affirms or denies; template 7 of the probing takes its label from it."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class GenericBy(StrEnum):
    """How a rule's generic variables came to be generic, in the words that `plan` prints."""

    ATTRIBUTE = "@generic"
    PERSON = "by default, a person"
    POSITION = "by default, first argument"
    NOTHING = "by default"


class Domain(StrEnum):
    """The paper's four domains (section 2.2), as the rule files write them."""

    TEMPORAL = "temporal"
    OUTCOMES = "outcomes and effects"
    NATURAL = "natural properties"
    LOCATIONAL = "locational"


@dataclass(frozen=True, slots=True)
class Templates:
    """Three sentences with slots `[1]`, `[2]` ... for the arguments: affirmative, negated and question form."""

    affirmative: str
    negated: str | None = None
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: file, 1-based line and column. Never part of equality."""

    file: str = "<text>"
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class PredicateSignature:
    """A predicate's name, argument types, kind and templates.

    `definition` belongs to computed predicates: `parameters` are its formal variables and the definition a comparison
    over them.
    """

    name: str
    argument_types: tuple[str, ...]
    kind: PredicateKind = PredicateKind.ORACLE
    templates: Templates | None = None
    parameters: tuple[Variable, ...] = ()
    definition: Comparison | None = None
    declared: bool = True
    place: Place = field(default=Place(), compare=False)

    @property
    def indicator(self) -> str:
        return f"{self.name}/{len(self.argument_types)}"


@dataclass(frozen=True, slots=True)
class Rule:
    """Premise -> conclusion, with what the paper says about it.

    `generic` holds the names of the variables a statement speaks about (the Person X); they are never searched.
    """

    name: str
    premise: tuple[BodyLiteral, ...]
    conclusion: Literal
    domain: str | None = None
    principle: Principle | None = None
    polarity: Polarity | None = None
    generic: tuple[str, ...] = ()
    generic_by: GenericBy = field(default=GenericBy.ATTRIBUTE, compare=False)
    place: Place = field(default=Place(), compare=False)

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The premise's literals without its comparisons."""
        return tuple(item for item in self.premise if isinstance(item, Literal))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return tuple(item for item in self.premise if isinstance(item, Comparison))

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Every atom, the conclusion last."""
        return (*(literal.atom for literal in self.literals), self.conclusion.atom)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables in order of first occurrence, each once, with the type of `Library.variable_types`' making."""
        seen: dict[str, Variable] = {}
        for item in (*self.premise, self.conclusion):
            for variable in item.variables:
                seen.setdefault(variable.name, variable)
        return tuple(seen.values())

    @property
    def searched(self) -> tuple[Variable, ...]:
        """The variables a search binds: all but the generic ones."""
        return tuple(variable for variable in self.variables if variable.name not in self.generic)

    @property
    def spoken_of(self) -> str:
        """The generic variables with their types, and how they came to be generic."""
        names = ", ".join(str(variable) for variable in self.variables if variable.name in self.generic)
        return f"{names or 'none'} ({self.generic_by})"

    @property
    def unbound(self) -> tuple[Variable, ...]:
        """Variables of the conclusion that the premise does not hold: a fault."""
        held = {variable.name for item in self.premise for variable in item.variables}
        return tuple(variable for variable in self.conclusion.variables if variable.name not in held)

    def is_information(self, item: BodyLiteral) -> bool:
        """Whether the literal speaks about a generic variable (it is told in the statement) or only constrains."""
        return any(variable.name in self.generic for variable in item.variables)

    def named(self, name: str) -> Rule:
        return replace(self, name=name)

    @property
    def sentence(self) -> str:
        """The rule without its attributes, on one line."""
        return f"{' & '.join(map(str, self.premise))} -> {self.conclusion}"

    def __str__(self) -> str:
        """The rule as rule text that parses back to this rule."""
        from grammar.printing import rule_text  # printing needs this module

        return rule_text(self)


@dataclass(frozen=True)
class Library:
    """Everything one or several rule files say."""

    rules: tuple[Rule, ...] = ()
    signatures: tuple[PredicateSignature, ...] = ()
    subtypes: tuple[tuple[str, str], ...] = ()
    """Pairs (subtype, supertype) as declared; `is_subtype` closes them and adds the built-in ones."""
    opposites: tuple[tuple[str, str], ...] = ()
    """Pairs of predicate names, as declared."""
    facts: tuple[Atom, ...] = ()
    """Ground atoms that the files state; they become given facts."""

    @cached_property
    def _signatures(self) -> dict[str, PredicateSignature]:
        index: dict[str, PredicateSignature] = {}
        for signature in (*self.signatures, *self._inferred):
            index.setdefault(signature.indicator, signature)
        return index

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        index: dict[str, Rule] = {}
        for rule in self.rules:
            index.setdefault(rule.name, rule)
        return index

    @cached_property
    def _inferred(self) -> tuple[PredicateSignature, ...]:
        """Signatures of the predicates that are used but not declared, in order of first use."""
        known = {signature.indicator for signature in self.signatures}
        used: dict[str, list[Atom]] = {}
        places: dict[str, Place] = {}
        for atom, place in self._used_atoms():
            if atom.indicator not in known:
                used.setdefault(atom.indicator, []).append(atom)
                places.setdefault(atom.indicator, place)
        return tuple(
            PredicateSignature(atoms[0].predicate, _argument_types(atoms), declared=False, place=places[indicator])
            for indicator, atoms in used.items()
        )

    def _used_atoms(self) -> Iterator[tuple[Atom, Place]]:
        for rule in self.rules:
            for atom in rule.atoms:
                yield atom, rule.place
        for fact in self.facts:
            yield fact, Place()

    def completed(self) -> Library:
        """This library with inferred signatures (`declared=False`) for the predicates that no file declares."""
        return replace(self, signatures=(*self.signatures, *self._inferred))

    def signature(self, indicator: str) -> PredicateSignature:
        """The signature of `name/arity`: the first declaration, else what its first use implies."""
        found = self._signatures.get(indicator)
        if found is None:
            near = _suggestion(indicator, self._signatures) or " `hapax compile` shows what the files say."
            raise HapaxError(f"No predicate {indicator} in the rules.{near}")
        return found

    @cached_property
    def _declared_names(self) -> dict[str, PredicateSignature]:
        return {one.name: one for one in reversed(self.signatures) if one.declared}

    def declared_as(self, name: str) -> PredicateSignature | None:
        """The first declaration of a predicate of that name, whatever its number of arguments."""
        return self._declared_names.get(name)

    def knows(self, indicator: str) -> bool:
        """Whether a rule, fact or declaration speaks of the predicate."""
        return indicator in self._signatures

    def rule(self, name: str) -> Rule:
        """The rule of that name (the first, where a name was given twice)."""
        found = self._rules.get(name)
        if found is None:
            files = _some(dict.fromkeys(rule.place.file for rule in self.rules if rule.place.file), 3)
            near = _suggestion(name, self._rules) or (f" There are {_some(self._rules, 5)}." if self._rules else "")
            raise HapaxError(f"No rule is named {name}{f' in {files}' if files else ''}.{near}")
        return found

    @cached_property
    def derived(self) -> frozenset[str]:
        """Indicators of the predicates that some rule concludes."""
        return frozenset(self.concluding)

    @cached_property
    def concluding(self) -> dict[str, tuple[Rule, ...]]:
        """By indicator, the rules that conclude the predicate."""
        index: dict[str, list[Rule]] = {}
        for rule in self.rules:
            index.setdefault(rule.conclusion.atom.indicator, []).append(rule)
        return {indicator: tuple(rules) for indicator, rules in index.items()}

    @cached_property
    def in_premises(self) -> frozenset[str]:
        """Indicators of the predicates that stand in premises."""
        return frozenset(literal.atom.indicator for rule in self.rules for literal in rule.literals)

    def is_definition(self, rule: Rule) -> bool:
        """Whether the rule only defines a predicate for others: it is used in a premise and speaks about nobody."""
        return not rule.generic and rule.conclusion.atom.indicator in self.in_premises

    @cached_property
    def _supertypes(self) -> dict[str, frozenset[str]]:
        """Type key -> keys of everything above it. A circle of declarations makes its members equal; `check` tells."""
        parents: dict[str, set[str]] = {}
        for lower, upper in (*BUILT_IN_SUBTYPES, *self.subtypes):
            parents.setdefault(type_key(lower), set()).add(type_key(upper))
        closed: dict[str, frozenset[str]] = {}
        for lower in parents:
            above: set[str] = set()
            waiting = [lower]
            while waiting:
                new = parents.get(waiting.pop(), set()) - above
                above |= new
                waiting.extend(new)
            closed[lower] = frozenset(above)
        return closed

    def is_subtype(self, lower: str, upper: str) -> bool:
        """Whether every `lower` is an `upper`; each type is a subtype of itself, and all but persons are objects."""
        if type_key(lower) == type_key(upper) or self.is_declared_subtype(lower, upper):
            return True
        return type_key(upper) == type_key(OBJECT) and not self.is_person(lower)

    def is_declared_subtype(self, lower: str, upper: str) -> bool:
        """Whether the declarations, and not the rule about objects, put one type below the other."""
        return type_key(upper) in self._supertypes.get(type_key(lower), ())

    def same_types(self, data_type: str) -> frozenset[str]:
        """Keys of the types that lie in one circle of declarations with this one."""
        key = type_key(data_type)
        return frozenset(one for one in self._supertypes.get(key, ()) if key in self._supertypes.get(one, ()))

    def is_numeric(self, data_type: str) -> bool:
        """Whether values of the type are numbers: Number itself, Year, Age and what is declared below them."""
        return type_key(NUMBER) in (type_key(data_type), *self._supertypes.get(type_key(data_type), ()))

    def may_be_numeric(self, data_type: str) -> bool:
        """Whether some values of the type can be numbers: numeric types and all above one, such as Time above Year."""
        return self.is_numeric(data_type) or any(self.is_subtype(numeric, data_type) for numeric in self._numeric)

    @cached_property
    def _numeric(self) -> tuple[str, ...]:
        """Number and the keys of the types below it."""
        return (NUMBER, *(one for one in self._supertypes if self.is_numeric(one)))

    def is_person(self, data_type: str) -> bool:
        return type_key(PERSON) in (type_key(data_type), *self._supertypes.get(type_key(data_type), ()))

    def most_specific(self, data_types: tuple[str, ...]) -> str | None:
        """The one of these types that is a subtype of all of them, or None where they are on no single chain."""
        if len(set(data_types)) == 1:
            return data_types[0]
        ordered = [one for one in data_types if all(self.is_subtype(one, other) for other in data_types)]
        chained = all(self.is_subtype(a, b) or self.is_subtype(b, a) for a in data_types for b in data_types)
        return ordered[0] if ordered and chained else None

    @cached_property
    def _opposites(self) -> dict[str, str]:
        """As declared; of two declarations of one predicate the first."""
        index: dict[str, str] = {}
        for first, second in self.opposites:
            index.setdefault(first, second)
            index.setdefault(second, first)
        return index

    def opposite_of(self, predicate: str) -> str | None:
        """The name of the predicate that says the contrary: as declared, else by the built-in name beginnings."""
        if declared := self._opposites.get(predicate):
            return declared
        for positive, negative in BUILT_IN_OPPOSITES:
            for here, there in ((negative, positive), (positive, negative)):
                if predicate.startswith(here) and len(predicate) > len(here):
                    return there + predicate.removeprefix(here)
        return None


@lru_cache(maxsize=10_000)  # asked for every argument of every rule, again and again
def type_key(data_type: str) -> str:
    """What decides whether two spellings name one type: case and runs of blanks do not."""
    return " ".join(data_type.casefold().split())


def _argument_types(atoms: list[Atom]) -> tuple[str, ...]:
    """Per position the first variable's type; where only constants stand, Number or Object."""
    return tuple(_position_type([atom.arguments[i] for atom in atoms]) for i in range(len(atoms[0].arguments)))


def _position_type(terms: list[Term]) -> str:
    for term in terms:
        if isinstance(term, Variable):
            return term.data_type
    return OBJECT if any(isinstance(term.value, str) for term in terms if not isinstance(term, Variable)) else NUMBER


def _some(names: Iterable[str], most: int) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (" ..." if len(listed) > most else "")


def _suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest known names, as a remedy, or nothing; difflib is imported here because only failures need it."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""
