"""Rules and the `Library`: the content of rule files as immutable data. `parser.parse_library` makes one of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, permutations
from pathlib import Path

from hapax.grammar.data_types import TypeLattice
from hapax.grammar.errors import HapaxError, Place, RulesRejected
from hapax.grammar.parsing.declarations import (
    ASKED_KINDS,
    GENERATING,
    SAME_AS,
    AggregateDeclaration,
    Chance,
    ClosedDeclaration,
    Closedness,
    Constraint,
    Declaration,
    DisjointTypes,
    ExceptionClause,
    GenericBy,
    LeftOut,
    Polarity,
    PredicateKind,
    PredicateSignature,
    Principle,
    Property,
    PropertyDeclaration,
    StatementCap,
    argument_types,
    default_generic,
    default_polarity,
    default_principle,
    exception_templates,
    is_exception,
    premise_text,
)
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.terms import (
    ANY,
    Atom,
    BodyLiteral,
    Comparison,
    Literal,
    Variable,
    distinct_variables,
    grouped,
    quoted,
    reached,
    variable_names,
)
from hapax.grammar.writing.notebook import html_table
from hapax.grammar.writing.words import counted, did_you_mean, some

BUILT_IN_OPPOSITES = (
    ("cannot_", "can_"),
    ("can_", "cannot_"),
    ("is_not_able_to_", "is_able_to_"),
    ("is_able_to_", "is_not_able_to_"),
)
"""Prefixes of predicates, each with that of the opposite: the rest of the name is the same."""

_PLAIN_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Rule:
    """Premise -> conclusion, with the attributes of LINK's paper.

    `generic` are the names of the variables that a statement speaks about (the Person X); they are never searched.
    `withdrawn`: why the rule is only searched when it is named; None: it is always searched.
    Raises HapaxError for a negated conclusion, which the grammar excludes.
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
    cap: StatementCap | None = None
    withdrawn: str | None = None
    by_declaration: bool = field(default=False, compare=False, repr=False)
    """A property's declaration stands for the rule, which proofs name (`Library.closure_rules`)."""
    aggregate: AggregateDeclaration | None = field(default=None, compare=False, repr=False)
    """The aggregate that the rule stands for: its conclusion holds once for each group of the premise's bindings."""
    exceptions: tuple[ExceptionClause, ...] = ()
    """The exceptions after `unless` and the negated conjunctions; the premise has their negated atoms."""
    chance: Chance | None = field(default=None, repr=False)
    """The random choice on which the conclusion rests beside the premise."""

    def __post_init__(self) -> None:
        if self.conclusion.negated:
            raise HapaxError(
                f"{self.place}: rule {self.name} concludes the negation {self.conclusion}. "
                "Conclude the opposite predicate."
            )

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The premise without its comparisons."""
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
        """The variables in order of first occurrence, each once."""
        return distinct_variables((*self.premise, self.conclusion))

    @property
    def chain(self) -> tuple[Atom, Atom] | None:
        """The atoms p(A, B) and q(B, C), in this order, of a rule that concludes r(A, C) from them; None of another."""
        atoms = [item.atom for item in self.literals if not item.negated]
        if self.aggregate is not None or len(self.premise) != 2 or len(atoms) != 2 or len(self.variables) != 3:
            return None
        for first, then in permutations(atoms):
            begin, end = first.arguments[:1], then.arguments[1:]
            is_chain = len(first.arguments) == 2 and first.arguments[1:] == then.arguments[:1]
            if is_chain and (*begin, *end) == self.conclusion.atom.arguments:
                return first, then
        return None

    @property
    def joins_itself(self) -> bool:
        """True for r(A, B) & r(B, C) -> r(A, C)."""
        return self.chain is not None and {atom.indicator for atom in self.atoms} == {self.conclusion.atom.indicator}

    @property
    def searched(self) -> tuple[Variable, ...]:
        """The variables that a search binds: all but the generic ones."""
        return tuple(variable for variable in self.variables if variable.name not in self.generic)

    @property
    def generic_text(self) -> str:
        """The generic variables with their types, and the convention that chose them."""
        return f"{self.generic_names or 'none'} ({self.generic_by})"

    @property
    def generic_names(self) -> str:
        """The generic variables with their types."""
        return ", ".join(str(variable) for variable in self.variables if variable.name in self.generic)

    @property
    def unbound(self) -> tuple[Variable, ...]:
        """Variables of the conclusion that the premise does not contain, which `check` reports."""
        in_premise = variable_names(self.premise)
        return tuple(variable for variable in self.conclusion.variables if variable.name not in in_premise)

    def at(self, place: Place | None) -> Place:
        """The place of a part of this rule; the rule's own where the part was not read from the rule's file."""
        return place if place is not None and place.file == self.place.file else self.place

    def is_information(self, item: BodyLiteral) -> bool:
        """True if the literal has a generic variable, so that statements mention it; the others only constrain."""
        return any(variable.name in self.generic for variable in item.variables)

    @property
    def sentence(self) -> str:
        """The rule without its attributes, on one line."""
        if self.aggregate is not None:
            return str(self.aggregate)
        premise = premise_text(self.stated_premise, self.exceptions) or "true"
        is_chosen = self.chance is not None and not self.chance.is_shared
        rule = f"{premise} -> {self.chance if is_chosen else self.conclusion}"
        return " ".join([rule, *(str(exception) for exception in self.exceptions if not exception.in_premise)])

    @property
    def whole_exceptions(self) -> tuple[ExceptionClause, ...]:
        """The exceptions, and those that their premises have in turn."""
        return tuple(chain.from_iterable(clause.whole for clause in self.exceptions))

    @property
    def stated_premise(self) -> tuple[BodyLiteral, ...]:
        """The premise without the literals that stand for exceptions to the rule."""
        standing = [exception.literal for exception in self.exceptions if not exception.in_premise]
        return tuple(item for item in self.premise if item not in standing)

    def text(self, default_name: str | None = None, inferred_generic: tuple[str, ...] | None = None) -> str:
        """The rule as rule text, without attributes that a reader infers.

        `inferred_generic`: the variables that are generic by default; without it `@generic` is written.
        """
        lines = [] if self.name == default_name else [f"@name {_attribute_value(self.name)}"]
        if self.domain is not None:
            lines.append(f"@domain {_attribute_value(self.domain)}")
        polarity = default_polarity(self.conclusion)
        if self.polarity not in (None, polarity):
            lines.append(f"@polarity {self.polarity}")
        if self.principle not in (None, default_principle(self.polarity or polarity)):
            lines.append(f"@principle {self.principle}")
        # Without any type, no model is asked for a fact of the premise.
        inferred = () if all(variable.data_type == ANY for variable in self.variables) else inferred_generic
        if self.generic_by is GenericBy.ATTRIBUTE or self.generic != inferred:
            lines.append(f"@generic {' '.join(self.generic) or 'none'}")
        if self.cap is not None:
            lines.append(f"@most {self.cap}")
        if self.withdrawn is not None:
            lines.append(f"@withdrawn {quoted(self.withdrawn)}")
        return "\n".join([*lines, self.sentence])

    def __str__(self) -> str:
        """Rule text that parses back to this rule, whichever types are declared."""
        return self.text()


def literals_of(rules: Iterable[Rule]) -> Iterator[Literal]:
    """The literals in the premises of rules, in order."""
    for rule in rules:
        yield from rule.literals


def atoms_of(rules: Iterable[Rule]) -> Iterator[Atom]:
    """Every atom of rules, in order."""
    for rule in rules:
        yield from rule.atoms


@dataclass(frozen=True, repr=False)
class Library(TypeLattice):
    """The content of one or more rule files."""

    rules: tuple[Rule, ...] = ()
    signatures: tuple[PredicateSignature, ...] = ()
    subtypes: tuple[tuple[str, str], ...] = ()
    """Pairs (subtype, supertype) as declared; `is_subtype` adds the transitive and the built-in ones."""
    opposites: tuple[tuple[str, str], ...] = ()
    """Pairs of predicate names, as declared."""
    facts: tuple[Atom, ...] = ()
    """Ground atoms that the files state, which become given facts."""
    examples: tuple[Atom, ...] = ()
    """Ground atoms that the prompt profile `few-shot` may show to a model; they are not facts."""
    declarations: tuple[Declaration, ...] = ()
    """Properties and closedness of predicates, disjoint types and constraints."""
    places: Mapping[tuple[str, str], Place] = field(default_factory=dict, compare=False)
    """Where a pair of subtypes or opposites is declared; pairs that were not read from a file have no place."""
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Texts of the files that it was read from, by their names; imported files are among them."""
    goals: tuple[str, ...] = ()
    """Goals that the files ask after `?-`."""
    chances: tuple[tuple[Atom, Chance], ...] = ()
    """The stated facts that are not certain."""
    evidence: tuple[Literal, ...] = ()
    """What is known to hold, or not to hold, of what is not certain."""
    is_closed: bool = field(default=False, compare=False)
    """True if the closure rules are among the rules, also of a part of a closed library."""
    left_out: tuple[LeftOut, ...] | None = field(default=None, compare=False)
    """Rules and predicates that `sound_part` has left out of this library; None for a library that may have errors."""

    def __repr__(self) -> str:
        rules, signatures = counted(len(self.rules), "rule"), counted(len(self.signatures), "declared predicate")
        return f"<library of {rules}, {signatures}>"

    def _repr_html_(self) -> str:
        """A table of the rules, for notebooks."""
        return html_table(("name", "domain", "rule"), [(rule.name, rule.domain, rule.sentence) for rule in self.rules])

    @cached_property
    def _signatures(self) -> dict[str, PredicateSignature]:
        """The first signature of each predicate."""
        return {signature.indicator: signature for signature in reversed((*self.signatures, *self._inferred))}

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        """The first rule with each name."""
        return {rule.name: rule for rule in reversed(self.rules)}

    @cached_property
    def _inferred(self) -> tuple[PredicateSignature, ...]:
        """Signatures of the predicates used without a declaration, in order of first use."""
        known = {signature.indicator for signature in self.signatures}
        used: dict[str, list[Atom]] = {}
        places: dict[str, Place] = {}
        for atom, place in self._uses():
            if atom.indicator not in known:
                used.setdefault(atom.indicator, []).append(atom)
                places.setdefault(atom.indicator, place)
        inferred = []
        for indicator, atoms in used.items():
            types, place = argument_types(atoms), places[indicator]
            is_exception = indicator in self.excepted
            # LINK's files declare nothing and write every type: there a model is asked.
            is_typed = any(
                isinstance(term, Variable) and term.data_type != ANY for atom in atoms for term in atom.arguments
            )
            is_asked = is_typed and not is_exception and indicator not in self.stated
            kind = PredicateKind.ORACLE if is_asked else PredicateKind.GIVEN
            templates = exception_templates(len(types)) if is_exception else None
            inferred.append(PredicateSignature(atoms[0].predicate, types, kind, templates, declared=False, place=place))
        return tuple(inferred)

    def _uses(self) -> Iterator[tuple[Atom, Place]]:
        for rule in (*self.rules, *self.exception_rules):
            yield from ((atom, rule.at(atom.place)) for atom in rule.atoms)
        yield from ((atom, atom.place or Place()) for atom in (*self.facts, *self.examples))
        for item in self.declarations:
            for part in item.premise if isinstance(item, Constraint | AggregateDeclaration) else ():
                if isinstance(part, Literal):
                    yield part.atom, part.atom.place or item.place

    def completed(self) -> Library:
        """This library with inferred signatures for the predicates that no file declares."""
        return self._completed

    @cached_property
    def _completed(self) -> Library:
        return replace(self, signatures=(*self.signatures, *self._inferred)) if self._inferred else self

    def signature(self, indicator: str) -> PredicateSignature:
        """The signature of `name/arity`: its first declaration, else inferred from its uses. Raises HapaxError."""
        signature = self._signatures.get(indicator)
        if signature is None:
            near = (
                did_you_mean(indicator, self._signatures) or f" List the predicates with {Operation('compile_rules')}."
            )
            raise HapaxError(f"No predicate {indicator} in the rules.{near}")
        return signature

    @cached_property
    def _declared_names(self) -> dict[str, PredicateSignature]:
        return {signature.name: signature for signature in reversed(self.signatures) if signature.declared}

    def declared_as(self, name: str) -> PredicateSignature | None:
        """The first declaration of a predicate with this name, whatever its number of arguments."""
        return self._declared_names.get(name)

    def columns_of(self, name: str) -> tuple[str, ...]:
        """The names of the arguments of a predicate, by its first declaration that names them."""
        named = (signature.columns for signature in self.signatures if signature.name == name and signature.columns)
        return next(named, ())

    def knows(self, indicator: str) -> bool:
        """True if a rule, fact or declaration mentions the predicate."""
        return indicator in self._signatures

    def kind(self, indicator: str) -> PredicateKind | None:
        """The predicate's kind; None if nothing mentions the predicate."""
        signature = self._signatures.get(indicator)
        return signature.kind if signature is not None else None

    def is_asked(self, indicator: str) -> bool:
        """True if a model supplies its facts, as of a predicate that nothing mentions.

        Undeclared predicates that rules conclude are only derived.
        """
        signature = self._signatures.get(indicator)
        if signature is None:
            return True
        return signature.kind in ASKED_KINDS and (signature.declared or indicator not in self.derived)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Every atom of rules, facts and examples."""
        return (*atoms_of(self.rules), *self.facts, *self.examples)

    @cached_property
    def is_uncertain(self) -> bool:
        """True if the files state probabilities."""
        return bool(self.chances) or any(rule.chance is not None and not rule.chance.is_shared for rule in self.rules)

    def refuse_uncertain(self) -> None:
        """Raise HapaxError if what follows from the library is not certain."""
        if self.is_uncertain:
            chances = (*(rule.chance for rule in self.rules), *(chance for _, chance in self.chances))
            share, atom = next(chance.outcomes[0] for chance in chances if chance is not None and not chance.is_shared)
            raise HapaxError(
                f"{atom.place}: {share}::{atom} has a probability, and what follows is not certain.",
                Remedy("{} gives the probability of an answer.", Operation("query")),
            )

    def refuse_left_out(self, indicators: Iterable[str] = (), rules: Iterable[str] = ()) -> None:
        """Raise RulesRejected with the errors for which these predicates, or rules of these names, are left out."""
        wanted, named = set(indicators), {f"rule {name}" for name in rules}
        items = [item for item in self.left_out or () if item.indicator in wanted or item.name in named]
        if errors := dict.fromkeys(chain.from_iterable(item.errors for item in items)):
            raise RulesRejected(errors)

    def rule(self, name: str) -> Rule:
        """The rule with this name, the first if the name is repeated.

        Raises HapaxError, and RulesRejected for a rule that was left out.
        """
        rule = self._rules.get(name)
        if rule is None:
            self.refuse_left_out(rules=[name])
            files_of_rules = dict.fromkeys(rule.place.file for rule in self.rules if rule.place.file)
            # The folder of an absolute path is long, and the same for all the files that ship.
            files = some((Path(file).name if Path(file).is_absolute() else file for file in files_of_rules), 3)
            known = f" Known rules: {some(dict.fromkeys(rule.name for rule in self.rules), 5)}."
            near = did_you_mean(name, self._rules) or (known if self.rules else "")
            raise HapaxError(f"No rule is named {name}{f' in {files}' if files else ''}.{near}")
        return rule

    @cached_property
    def stated(self) -> frozenset[str]:
        """Indicators of the predicates of which the files state facts."""
        return frozenset(fact.indicator for fact in self.facts)

    @cached_property
    def derived(self) -> frozenset[str]:
        """Indicators of the predicates that some rule concludes."""
        return frozenset(self.concluding)

    @cached_property
    def searched(self) -> frozenset[str]:
        """Indicators of the predicates that a model is asked for, and of those that rules conclude from them."""
        return frozenset(self.resting_on(filter(self.is_asked, self._signatures)))

    @cached_property
    def _users(self) -> dict[str, set[str]]:
        users: dict[str, set[str]] = {}
        for rule in self.written_rules:
            for literal in rule.literals:
                users.setdefault(literal.atom.indicator, set()).add(rule.conclusion.atom.indicator)
        return users

    def resting_on(self, indicators: Iterable[str]) -> list[str]:
        """Indicators of these predicates, and of those that rules conclude from them."""
        return reached(indicators, lambda indicator: self._users.get(indicator, ()))

    def needed_for(self, indicators: Iterable[str]) -> list[str]:
        """Indicators of these predicates, and of those from which rules conclude them."""
        rules = self.concluding
        return reached(indicators, lambda name: (item.atom.indicator for item in literals_of(rules.get(name, ()))))

    def is_searched(self, rule: Rule) -> bool:
        """True if a search of the rule asks a model: another rule is over given facts and what follows from them."""
        return any(literal.atom.indicator in self.searched for literal in rule.literals)

    def with_default_generic(self, rule: Rule) -> Rule:
        """The rule with the generic variables that it has without `@generic`; unchanged if this is written."""
        if rule.generic_by is GenericBy.ATTRIBUTE:
            return rule
        names, convention = default_generic(rule.stated_premise, rule.conclusion, self.is_person)
        if not self.is_searched(rule) and not (convention is GenericBy.PERSON and self._is_about_anybody(rule, names)):
            names, convention = (), GenericBy.FACTS
        return replace(rule, generic=names, generic_by=convention)

    def _is_about_anybody(self, rule: Rule, names: tuple[str, ...]) -> bool:
        """True if what the rule says of these persons is worded for statements, and no fact about one is stated."""
        hypotheses = [literal.atom for literal in rule.literals if variable_names([literal]) & set(names)]
        return all(
            self.signature(atom.indicator).templates is not None and atom.indicator not in self.stated
            for atom in hypotheses
        )

    @cached_property
    def sound_parts(self) -> dict[str, Library]:
        """The sound parts of this library, as `sound_part` found them, by the file that it trusts."""
        return {}

    @cached_property
    def parts(self) -> dict[frozenset[str], Library]:
        """The parts of this library that predicates depend on, as `relevant_library` found them, by indicators."""
        return {}

    @cached_property
    def concluding(self) -> dict[str, tuple[Rule, ...]]:
        """The rules that conclude a predicate, by indicator."""
        index = grouped(self.rules, lambda rule: rule.conclusion.atom.indicator)
        return {indicator: tuple(rules) for indicator, rules in index.items()}

    # Declarations

    def has_property(self, indicator: str, wanted: Property) -> bool:
        """True if the predicate is declared to have the property."""
        return any(item.property is wanted and item.indicator == indicator for item in self.properties)

    @cached_property
    def properties(self) -> tuple[PropertyDeclaration, ...]:
        """The declared properties of predicates, each once."""
        found = (item for item in self.declarations if isinstance(item, PropertyDeclaration))
        return tuple(dict.fromkeys(found))

    @cached_property
    def disjoint_types(self) -> tuple[DisjointTypes, ...]:
        return tuple(item for item in self.declarations if isinstance(item, DisjointTypes))

    @cached_property
    def _closedness(self) -> dict[str, Closedness]:
        closed = (item for item in self.declarations if isinstance(item, ClosedDeclaration))
        # Of two declarations the stronger one counts, which comes last here.
        ordered = sorted(closed, key=lambda item: item.closedness is Closedness.CLOSED)
        return {item.indicator: item.closedness for item in ordered}

    def closedness(self, indicator: str) -> Closedness:
        """The predicate's declared closedness, `OPEN` without a declaration."""
        return self._closedness.get(indicator, Closedness.OPEN)

    def is_open(self, indicator: str) -> bool:
        """True for an oracle predicate, declared as such, that is neither closed nor concluded by rules.

        An absent fact of it may be true: nobody has asked for it, or a gate was not sure. A functional predicate is
        open too, but for the values of which another one is known.
        """
        signature = self._signatures.get(indicator)
        is_asked = signature is not None and signature.declared and signature.kind in ASKED_KINDS
        if not is_asked or self.closedness(indicator) is not Closedness.OPEN:
            return False
        # Symmetry and transitivity conclude from facts that are not all known either.
        return all(rule.by_declaration for rule in self.concluding.get(indicator, ()))

    @cached_property
    def open_negations(self) -> frozenset[str]:
        """Indicators of the open predicates that rules or constraints negate."""
        premises = [rule.premise for rule in self.written_rules] + [item.premise for item in self.constraints]
        items = chain.from_iterable(premises)
        negated = {item.atom.indicator for item in items if isinstance(item, Literal) and item.negated}
        return frozenset(filter(self.is_open, negated))

    @cached_property
    def generating(self) -> frozenset[str]:
        """Indicators of the predicates of which facts follow by a declared property."""
        return frozenset(item.indicator for item in self.properties if item.property in GENERATING)

    @cached_property
    def aggregates(self) -> tuple[AggregateDeclaration, ...]:
        """The declared aggregates, each once."""
        return tuple(dict.fromkeys(item for item in self.declarations if isinstance(item, AggregateDeclaration)))

    @cached_property
    def written_rules(self) -> tuple[Rule, ...]:
        """The rules, and those that aggregates and exceptions stand for."""
        return self.rules if self.is_closed else (*self.rules, *self.aggregate_rules, *self.exception_rules)

    @cached_property
    def exceptions(self) -> dict[str, ExceptionClause]:
        """The exceptions of rules and negated conjunctions, by the indicators of the predicates that stand for them."""
        clauses = chain.from_iterable(rule.whole_exceptions for rule in self.rules)
        return {clause.atom.indicator: clause for clause in clauses}

    @cached_property
    def exception_rules(self) -> tuple[Rule, ...]:
        """A rule for each exception, from its premise to the atom that the excepted rule negates."""
        rules: dict[str, Rule] = {}
        for rule in self.rules:
            clauses = rule.whole_exceptions
            for number, exception in enumerate(clauses, 1):
                name = f"exception {number} to {rule.name}" if len(clauses) > 1 else f"exception to {rule.name}"
                concluding = Rule(
                    name, exception.premise, Literal(exception.atom), place=exception.place, by_declaration=True
                )
                rules.setdefault(exception.atom.indicator, concluding)
        return tuple(rules.values())

    @cached_property
    def excepted(self) -> frozenset[str]:
        """Indicators of the predicates that stand for exceptions."""
        return frozenset(rule.conclusion.atom.indicator for rule in self.exception_rules)

    def projected(self, atom: Atom) -> Atom | None:
        """The atom that forbids an exception, if this is one atom over values of the rule and `_`, else None.

        Evaluation looks for such an atom, and needs none that stand for the exception.
        """
        rules = self.concluding.get(atom.indicator, ()) if is_exception(atom) else ()
        item = rules[0].premise[0] if [len(rule.premise) for rule in rules] == [1] else None
        if not isinstance(item, Literal) or item.negated or item.atom.has_missing:
            return None
        inner, head = item.atom, rules[0].conclusion.atom
        is_computed = self.knows(inner.indicator) and self.signature(inner.indicator).definition is not None
        given = {variable.name: term for variable, term in zip(head.variables, atom.arguments, strict=True)}
        is_open = any(variable.name not in given and not variable.is_anonymous for variable in inner.variables)
        return None if is_computed or is_open or inner.indicator == SAME_AS else inner.replaced(given)

    @cached_property
    def standing(self) -> frozenset[str]:
        """Indicators of the predicates whose facts follow from declarations or exceptions instead of rules."""
        return self.generating | self.aggregated | self.excepted

    @cached_property
    def aggregated(self) -> frozenset[str]:
        """Indicators of the predicates that aggregates define."""
        return frozenset(item.atom.indicator for item in self.aggregates)

    @cached_property
    def aggregate_rules(self) -> tuple[Rule, ...]:
        """A rule for each case of each aggregate that can be evaluated, from its premise to its atom."""
        rules = []
        for item in filter(lambda item: item.is_evaluable, self.aggregates):
            for number, case in enumerate(item.cases, 1):
                name = f"aggregate {item.atom.indicator}{f', case {number}' if number > 1 else ''}"
                conclusion = Literal(item.atom)
                rules.append(Rule(name, case, conclusion, place=item.place, by_declaration=True, aggregate=item))
        return tuple(rules)

    @cached_property
    def closure_rules(self) -> tuple[Rule, ...]:
        """The rules that symmetric and transitive predicates, aggregates and exceptions stand for.

        The conclusion of an aggregate's rule has a variable that its premise lacks: `Rule.aggregate` gives the value.
        """
        rules = [*self.aggregate_rules, *self.exception_rules]
        for item in self.properties:
            types = self._types_of_two(item)
            if item.property in GENERATING and types is not None:
                a, b, c = Variable("A", types[0]), Variable("B", types[1]), Variable("C", types[1])
                is_symmetric = item.property is Property.SYMMETRIC
                premise = item.literals((b, a)) if is_symmetric else item.literals((a, b), (b, c))
                (conclusion,) = item.literals((a, b) if is_symmetric else (a, c))
                rules.append(Rule(str(item), premise, conclusion, place=item.place, by_declaration=True))
        return tuple(rules)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The declarations that forbid facts, but for disjoint types: `never` and such properties."""
        found = [replace(item, origin=str(item)) for item in self.declarations if isinstance(item, Constraint)]
        for item in self.properties:
            types = self._types_of_two(item)
            if item.property not in GENERATING and types is not None:
                a, b = Variable("A", types[0]), Variable("B", types[1])
                is_asymmetric = item.property is Property.ASYMMETRIC
                premise = item.literals((a, b), (b, a)) if is_asymmetric else item.literals((a, a))
                found.append(Constraint(premise, str(item), item.place))
        return tuple(found)

    def _types_of_two(self, item: PropertyDeclaration) -> tuple[str, ...] | None:
        """The argument types of a property's predicate; None if it is unknown or does not have two arguments."""
        signature = self._signatures.get(item.indicator)
        return signature.argument_types if signature is not None and len(signature.argument_types) == 2 else None

    def with_identity(self) -> Library:
        """This library with `same_as` as identity, as premises see one name of each entity."""
        if not self.knows(SAME_AS):
            return self
        known = self.signature(SAME_AS)
        first, second = map(Variable, "AB", known.argument_types)
        definition = Comparison("=", first, second)
        kind = PredicateKind.COMPUTED
        identity = replace(known, kind=kind, parameters=(first, second), definition=definition, declared=True)
        return replace(self, signatures=(identity, *self.signatures))

    def with_closure(self) -> Library:
        """This library with the closure rules among its rules, for inference."""
        return self._closure

    @cached_property
    def _closure(self) -> Library:
        # Kept, so that its indices are made once for everybody.
        if self.is_closed or not self.closure_rules:
            return self
        return replace(self, rules=(*self.rules, *self.closure_rules), is_closed=True)

    @cached_property
    def in_premises(self) -> frozenset[str]:
        """Indicators of the predicates used in premises."""
        return frozenset(literal.atom.indicator for literal in literals_of(self.written_rules))

    def is_definition(self, rule: Rule) -> bool:
        """True if the rule only defines a predicate: it has no generic variable, and premises use its conclusion."""
        return not rule.generic and rule.conclusion.atom.indicator in self.in_premises

    @cached_property
    def _opposites(self) -> dict[str, str]:
        """The declared opposite by predicate name; the first where several are declared."""
        declared = [*self.opposites, *((second, first) for first, second in self.opposites)]
        return dict(reversed(declared))

    def opposite_of(self, predicate: str) -> str | None:
        """The name of the opposite predicate, as declared or else by its prefix; None if it has none."""
        if declared := self._opposites.get(predicate):
            return declared
        for prefix, opposite in BUILT_IN_OPPOSITES:
            if predicate.startswith(prefix) and len(predicate) > len(prefix):
                return opposite + predicate.removeprefix(prefix)
        return None


def comparison_of(literal: Literal, library: Library) -> Comparison | None:
    """The comparison that a literal over a computed predicate stands for; None for other and for negated literals."""
    if literal.negated or not library.knows(literal.atom.indicator):
        return None
    signature = library.signature(literal.atom.indicator)
    if signature.definition is None or len(signature.parameters) != len(literal.atom.arguments):
        return None
    names = (parameter.name for parameter in signature.parameters)
    return signature.definition.replaced(dict(zip(names, literal.atom.arguments, strict=True)))


def _attribute_value(text: str) -> str:
    return text if _PLAIN_WORD.fullmatch(text) else quoted(text)
