"""Checks of properties, closedness, disjoint types, constraints and aggregates, and of what breaks them.

A check declares its faults in its decorator and gets them as arguments. A new check is a function and a line in
DECLARATION_CHECKS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain

from hapax.grammar.checking.faults import Check, RuleFault, check
from hapax.grammar.checking.subsumption import Matcher, subsumes
from hapax.grammar.dependencies import cycle_text, negative_cycles
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.parsing.declarations import (
    AGGREGATE_FUNCTIONS,
    AggregateDeclaration,
    ClosedDeclaration,
    Closedness,
    Constraint,
    PredicateKind,
    Property,
    PropertyDeclaration,
)
from hapax.grammar.rules import Library, Rule, comparison_of
from hapax.grammar.terms import (
    ANY,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    expression_names,
    item_place,
    variable_names,
)
from hapax.grammar.values.functions import holds
from hapax.grammar.writing.prolog_text import assignment, definition_of, evaluation_order

_BROKEN = Literal(Atom("broken", ()))
"""Conclusion that makes a rule of a constraint, so that rules can be compared with it."""


@check(
    RuleFault.error(
        "HPX118", "constraint with an unbound variable",
        "oracle owns(Person, Pet)\nnever owns(Person X, Pet A) & not is_tame(Pet B)",
        "oracle owns(Person, Pet)\n"
        "never owns(Person X, Pet A) & not is_tame(Pet A)",
    ),
)  # fmt: skip
def unbound_in_constraint(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Variables of a constraint's negated literals and comparisons that no positive literal binds."""
    for constraint in library.constraints:
        positive = (item for item in constraint.premise if isinstance(item, Literal) and not item.negated)
        for name in sorted(variable_names(constraint.premise) - variable_names(positive)):
            using = next(item for item in constraint.premise if name in variable_names([item]))
            yield fault.at(
                item_place(using) or constraint.place,
                f"{name} in the constraint is not in a literal without a negation",
                f"Add a premise about {name}",
            )


@check(
    RuleFault.error(
        "HPX119", "properties that exclude each other",
        "oracle borders(Country, Country)\nsymmetric borders/2\nasymmetric borders/2",
        "oracle borders(Country, Country)\n"
        "symmetric borders/2",
    ),
)  # fmt: skip
def excluding_properties(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Predicates that are declared symmetric and asymmetric."""
    for item in library.properties:
        if item.property is Property.ASYMMETRIC and library.has_property(item.indicator, Property.SYMMETRIC):
            yield fault.at(
                item.place,
                f"{item.indicator} is declared symmetric and asymmetric, so that no fact of it is possible",
                "Remove one of the declarations",
            )


@check(
    RuleFault.error(
        "HPX120", "property of a predicate without two arguments of one type",
        "oracle gives(Person, Present, Person)\nsymmetric gives/3",
        "oracle knows(Person, Person)\n"
        "symmetric knows/2",
    ),
    RuleFault.warning(
        "HPX214",
        "declaration of an unknown predicate",
        "oracle borders(Country, Country)\nclosed boarders/2",
        "oracle borders(Country, Country)\nclosed borders/2",
    ),
)  # fmt: skip
def misplaced_declarations(
    library: Library, misplaced_property: RuleFault, unknown_predicate: RuleFault
) -> Iterator[Diagnostic]:
    """Properties of predicates that cannot have them, and declarations of predicates that nothing else mentions."""
    for item in library.declarations:
        if isinstance(item, PropertyDeclaration | ClosedDeclaration) and not library.knows(item.indicator):
            yield unknown_predicate.at(
                item.place,
                f"{item.indicator} is declared {str(item).partition(' ')[0]}, but no rule or declaration mentions it",
                "Correct the name or the number of arguments, or remove the line",
            )
        elif isinstance(item, PropertyDeclaration):
            # A value must be able to stand at both arguments.
            types = library.signature(item.indicator).argument_types
            if len(types) != 2 or library.most_specific(types) is None:
                problem = f"{item.indicator} cannot be {item.property}: it does not have two arguments of one type"
                yield misplaced_property.at(item.place, problem, "Remove the line")


@check(
    RuleFault.error(
        "HPX121",
        "disjoint types that overlap",
        "type Tomato < Fruit\ntype Tomato < Vegetable\ndisjoint Fruit, Vegetable",
        "type Tomato < Fruit\ndisjoint Fruit, Vegetable",
    ),
)  # fmt: skip
def overlapping_types(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Types declared disjoint of which one contains the other, or a third type is below both."""
    declared = dict.fromkeys(chain.from_iterable(library.subtypes))
    for item in library.disjoint_types:
        types = (item.first, item.second)
        is_both = (name for name in (*types, *declared) if all(library.is_subtype(name, upper) for upper in types))
        if data_type := next(is_both, None):
            yield fault.at(
                item.place,
                f"{item.first} and {item.second} are declared disjoint, but {data_type} is of both types",
                "Remove the declaration, or one of the subtypes",
            )


@check(
    RuleFault.error(
        "HPX122", "rule that breaks a declaration",
        "irreflexive borders/2\n"
        "is_in(City B, Country A) & lives_in(Person X, Country A) & borders(Country A, Country A)\n"
        "  -> likes(Person X, City B)",
        "irreflexive borders/2\n"
        "is_in(City B, Country C) & lives_in(Person X, Country A) & borders(Country A, Country C)\n"
        "  -> likes(Person X, City B)",
    ),
    RuleFault.error(
        "HPX123", "stated facts that break a declaration",
        'given is_parent_of(Person, Person)\nasymmetric is_parent_of/2\n'
        'fact is_parent_of("Ann", "Bob")\nfact is_parent_of("Bob", "Ann")',
        "given is_parent_of(Person, Person)\n"
        "asymmetric is_parent_of/2\n"
        'fact is_parent_of("Ann", "Bob")',
    ),
)  # fmt: skip
def broken_declarations(library: Library, breaking_rule: RuleFault, breaking_facts: RuleFault) -> Iterator[Diagnostic]:
    """Rules whose premise, or premise and conclusion, are what a constraint forbids; stated facts that break one."""
    stated = _as_rule(tuple(Literal(fact) for fact in library.facts))
    for constraint in library.constraints:
        forbidden = _as_rule(constraint.premise)
        if breaking := _breaking(constraint, stated, library):
            yield breaking_facts.at(
                constraint.place,
                f'{_verb_of(breaking)} "{constraint.origin}"',
                "Remove a fact, or the declaration",
                *(fact.place for fact in breaking if fact.place is not None),
            )
        for rule in library.rules:
            broken = ""
            if subsumes(forbidden, _as_rule(rule.premise), library):
                broken = "its premise"
            elif subsumes(forbidden, _as_rule((*rule.premise, rule.conclusion)), library):
                broken = "its premise and its conclusion together"
            if broken:
                problem = f'rule {rule.name} breaks "{constraint.origin}": {broken} cannot hold'
                remedy = "Correct the rule, or remove the declaration"
                yield breaking_rule.at(rule.place, problem, remedy, constraint.place)
    for item in library.disjoint_types:
        of_first, of_second = (_stated_texts(library, data_type) for data_type in (item.first, item.second))
        for text in filter(of_second.__contains__, of_first):
            facts = list(dict.fromkeys((of_first[text], of_second[text])))
            yield breaking_facts.at(
                item.place,
                f'{_verb_of(facts)} "{item}"',
                "Remove a fact, or the declaration",
                *(fact.place for fact in facts if fact.place is not None),
            )


def _stated_texts(library: Library, data_type: str) -> dict[str, Atom]:
    """The texts that stated facts have under a type or its subtypes, each with the first such fact."""
    found: dict[str, Atom] = {}
    for fact in library.facts:
        for term, argument_type in zip(fact.arguments, library.signature(fact.indicator).argument_types, strict=True):
            # Numbers are left out: a year and a height may be the same number.
            if isinstance(term, Constant) and not term.is_number and library.is_subtype(argument_type, data_type):
                found.setdefault(str(term), fact)
    return found


def _verb_of(facts: Sequence[Atom]) -> str:
    """`p(1) breaks`, or `p(1) and q(2) break`."""
    return f"{' and '.join(map(str, facts))} {'breaks' if len(facts) == 1 else 'break'}"


def _breaking(constraint: Constraint, stated: Rule, library: Library) -> list[Atom]:
    """The first facts among the premise of `stated` that the constraint forbids together; none if it forbids none."""
    facts = {str(literal.atom): literal.atom for literal in stated.literals}
    whole = _as_rule(constraint.premise)
    # Facts have no variables, so that the comparisons are calculated rather than deduced from all facts together.
    for binding in Matcher(library).bindings(whole.literals, stated):
        values = {name: term.value for name, term in binding.items() if isinstance(term, Constant)}
        if all(variable_names([item]) <= values.keys() and holds(item, values) for item in whole.comparisons):
            found = (str(item.replaced(binding).atom) for item in whole.literals)
            return [facts[text] for text in dict.fromkeys(found) if text in facts]
    return []


def _as_rule(premise: tuple[BodyLiteral, ...]) -> Rule:
    return Rule("", premise, _BROKEN)


@check(
    RuleFault.error(
        "HPX124", "stated facts that contradict each other",
        'functional was_built_in(Tower, Year)\nfact was_built_in("Eiffel Tower", 1887)\n'
        'fact was_built_in("Eiffel Tower", 1889)',
        "functional was_built_in(Tower, Year)\n"
        'fact was_built_in("Eiffel Tower", 1889)',
    ),
)  # fmt: skip
def contrary_facts(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Two values of a functional predicate or a key, and both of two opposites, stated as facts."""
    values: dict[tuple[str, str, tuple[Term, ...]], Atom] = {}
    stated = {fact: fact for fact in reversed(library.facts)}  # the first of equal facts
    for fact in dict.fromkeys(library.facts):
        signature = library.signature(fact.indicator)
        remedy, place = "Remove one of the facts", stated[fact].place or signature.place
        for places, words in signature.keys:
            key = tuple(fact.arguments[number] for number in places)
            first = values.setdefault((fact.indicator, words, key), fact)
            if first != fact:
                problem = f"{fact.predicate} {words}, but two of its values are stated: {first} and {fact}"
                yield fault.at(place, problem, remedy, first.place or signature.place)
        opposite = library.opposite_of(fact.predicate)
        # Of a pair only the fact with the earlier name reports it.
        contrary = stated.get(replace(fact, predicate=opposite)) if opposite and fact.predicate < opposite else None
        if contrary is not None:
            problem = f"{fact.predicate} and {opposite} are opposites, but both are stated: {fact}"
            yield fault.at(place, problem, remedy, contrary.place or signature.place)


@check(
    RuleFault.error(
        "HPX114", "computed predicate as a conclusion or fact",
        "computed is_before(Year A, Year B) := A < B\nfact is_before(1815, 1876)",
        "given is_before(Year, Year)\n"
        "fact is_before(1815, 1876)",
    ),
)  # fmt: skip
def computed_predicate_concluded(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Conclusions and facts over computed predicates, which only arithmetic decides."""
    concluded = [(rule.conclusion.atom, rule.at(rule.conclusion.atom.place)) for rule in library.rules]
    for atom, place in (*concluded, *((fact, fact.place) for fact in library.facts)):
        signature = library.signature(atom.indicator)
        if signature.kind is PredicateKind.COMPUTED:
            problem = f"{atom} is concluded or stated, but {atom.predicate} is computed"
            yield fault.at(place or signature.place, problem, "Remove it, or declare the predicate as given")


# Aggregates


@check(
    RuleFault.error(
        "HPX127", "unknown aggregate",
        "given is_in(Ingredient, Dish)\n"
        "aggregate dishes_with(Ingredient Z, Number K) := K = counts(Dish D: is_in(Ingredient Z, Dish D))",
        "given is_in(Ingredient, Dish)\n"
        "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
    ),
)  # fmt: skip
def unknown_functions(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Aggregates by an unknown function, by another sign than an equation, or without a value to compare."""
    for item in library.aggregates:
        if item.function not in AGGREGATE_FUNCTIONS:
            near = get_close_matches(item.function, AGGREGATE_FUNCTIONS, 1)
            yield fault.at(
                item.place,
                f'"{item.function}" is not an aggregate',
                f"Did you mean {near[0]}?" if near else f"Write K = and one of {', '.join(AGGREGATE_FUNCTIONS)}",
            )
        elif item.is_arg and len(item.counted) < 2:
            yield fault.at(
                item.place,
                f"{item.function} needs a value to give and one to compare",
                f"Write both before the colon: S = {item.function}(Shop S, Number P: ...)",
            )


@check(
    RuleFault.error(
        "HPX128", "aggregate with an unbound variable",
        "given is_in(Ingredient, Dish)\n"
        "aggregate dishes_of(Person X, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
        "given is_in(Ingredient, Dish)\n"
        "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
    ),
)  # fmt: skip
def unbound_in_aggregates(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Variables of the group, the counted ones and those of tests to which the premise gives no value; and a result
    that is not a variable of the atom alone.
    """
    for item in library.aggregates:
        if item.function in AGGREGATE_FUNCTIONS and not item.is_evaluable:
            yield fault.at(
                _place(item, item.result),
                f"the result {item.result} of an aggregate is a variable of {item.atom.predicate}(...) alone",
                f"Write {item.result} among the arguments of {item.atom.predicate}, and nowhere in the premise",
            )
        unbound: set[str] = set()
        for case in item.cases:
            used = variable_names(case).union(v.name for v in (*item.group, *item.counted))
            unbound |= used - _bound(case, library)
        # The aggregate gives the result its value; a premise that uses it was reported above.
        for name in sorted(unbound - {item.result}):
            yield fault.at(
                _place(item, name),
                f"nothing in the premise of the aggregate gives {name} a value",
                f"Add a literal with {name} to the premise",
            )


def _place(item: AggregateDeclaration, name: str) -> Place:
    """The range of a variable in the aggregate's atom, else that of the declaration."""
    place = item.atom.place_of(name) if name in variable_names([item.atom]) else None
    return place or item.place


def _bound(case: Sequence[BodyLiteral], library: Library) -> set[str]:
    """Names of the variables to which a premise gives values, in its order of evaluation."""
    bound: set[str] = set()
    for part in evaluation_order(case, library):
        # A computed predicate gives a value if its definition is an equation; a negation gives none.
        comparison = part if isinstance(part, Comparison) else comparison_of(part, library)
        if isinstance(part, Literal) and not part.negated and definition_of(part, library) is None:
            bound |= variable_names([part])
        elif comparison is not None and (target := assignment(comparison, bound)):
            bound.add(target)
    return bound


@check(
    RuleFault.error(
        "HPX129", "aggregate of texts",
        "given is_in(Ingredient, Dish)\n"
        "aggregate dishes_with(Ingredient Z, Number K) := K = sum(Dish D: is_in(Ingredient Z, Dish D))",
        "given has_price(Dish, Number)\n"
        "aggregate price_of_all(Number K) := K = sum(Number P, Dish D: has_price(Dish D, Number P))",
    ),
)  # fmt: skip
def aggregates_of_texts(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Sums and averages of values that are not numbers, and results of another kind than the value."""
    for item in library.aggregates:
        numbers = [variable for variable in item.atom.variables if variable.name == item.result]
        if item.function in ("sum", "avg"):
            numbers += item.counted[:1]
        elif item.function != "count" and not library.is_numeric(item.counted[0].data_type):
            numbers = []
        for variable in numbers:
            if variable.data_type != ANY and not library.is_numeric(variable.data_type):
                yield fault.at(
                    _place(item, variable.name),
                    f"{variable} is not a number, so that it is neither value nor result of {item.function}",
                    f'Write "Number {variable.name}", or declare "type {variable.data_type} < Number"',
                )


@check(
    RuleFault.error(
        "HPX130", "aggregate that depends on itself",
        "given sells(Town, Town)\n"
        "aggregate size(Town A, Number K) := K = count(Town B: sells(Town A, Town B) & size(Town B, Number N))",
        "given sells(Town, Town)\n"
        "aggregate size(Town A, Number K) := K = count(Town B: sells(Town A, Town B))",
    ),
)  # fmt: skip
def aggregates_of_themselves(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Aggregates whose premise depends on their own atoms, so that they have no value."""
    # With the closure rules: a cycle may run over a predicate that is declared symmetric or transitive.
    for cycle in negative_cycles(library.with_closure()):
        item = next((item for item in library.aggregates if item.atom.indicator in cycle), None)
        if item is not None:
            problem = f"the aggregate {item.atom.indicator} depends on itself: {cycle_text(cycle)}"
            yield fault.at(item.place, problem, "Remove the aggregate from the cycle")


@check(
    RuleFault.error(
        "HPX131", "aggregate over an open predicate",
        "oracle is_in(Ingredient, Dish)\n"
        "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
        "oracle is_in(Ingredient, Dish)\n"
        "closed is_in/2\n"
        "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
    ),
)  # fmt: skip
def aggregates_over_open_predicates(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Aggregates over predicates of which a model supplies facts: never all there are, so that no count is true."""
    closed = library.with_closure()
    for item in library.aggregates:
        for indicator in closed.needed_for([item.atom.indicator]):
            if library.is_asked(indicator) and library.closedness(indicator) is not Closedness.CLOSED:
                yield fault.at(
                    item.place,
                    f"the aggregate {item.atom.indicator} rests on {indicator}, of which a model supplies facts, "
                    "never all there are",
                    f'Declare the predicate as given, or "closed {indicator}" if all its facts are known',
                )


@check(
    RuleFault.error(
        "HPX132", "recursive aggregate that is not monotone",
        "given e(Place, Place, Number)\n"
        "aggregate d(Place A, Place B, Number K) :=\n"
        "  K = min(Number N: e(A, B, N) | d(A, Place C, Number L) & e(C, B, Number M) & N = M - L)",
        "given e(Place, Place, Number)\n"
        "aggregate d(Place A, Place B, Number K) :=\n"
        "  K = min(Number N: e(A, B, N) | d(A, Place C, Number L) & e(C, B, Number M) & N = M + L)",
    ),
)  # fmt: skip
def aggregates_that_are_not_monotone(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Smallest and largest values that depend on themselves in such a way that a better one can make another worse."""
    for item in (item for item in library.aggregates if item.is_improved and item.is_evaluable):
        for part in chain.from_iterable(_against(item, case) for case in item.cases):
            yield fault.at(
                item_place(part) or item.place,
                f"{item.atom.predicate} depends on itself, and with a better value {part} need not be better, or hold",
                "Let the value grow with the one it rests on, N = L + M, or N = L * M with the premise M >= 0",
            )


def _against(item: AggregateDeclaration, case: Sequence[BodyLiteral]) -> Iterator[BodyLiteral]:
    """The parts of a case that do not follow the values of the aggregate's own atoms."""
    place = [variable.name for variable in item.atom.variables].index(item.result)
    own = [part for part in case if isinstance(part, Literal) and item.is_own(part)]
    growing = variable_names(Atom("value", part.atom.arguments[place : place + 1]) for part in own)
    comparisons = _as_rule(tuple(case)).comparisons
    # The values of `M >= 0` and the like.
    floors = {
        part.left.name
        for part in comparisons
        if part.operator in (">", ">=") and isinstance(part.left, Variable) and _sign(part.right) >= 0
    }
    for _ in comparisons:  # an equation may use a value that another one gives
        equations = chain.from_iterable(comparison.equations for comparison in comparisons)
        growing |= {target.name for target, source in equations if _grows(source, growing, floors)}
    # A comparison gives a growing value, or goes on to hold with a better one.
    better = ("<", "=<") if item.function == "min" else (">", ">=")
    for part in case:
        if isinstance(part, Comparison):
            gives = any(target.name in growing and _grows(source, growing, floors) for target, source in part.equations)
            holds_on = part.operator in better and _grows(part.left, growing, floors)
            is_safe = gives or (holds_on and not expression_names(part.right) & growing)
            used = variable_names([part])
        else:
            others = [term for number, term in enumerate(part.atom.arguments) if part not in own or number != place]
            is_safe, used = False, variable_names([Atom("others", tuple(others))])
        if used & growing and not is_safe:
            yield part


def _grows(source: Expression, growing: set[str], floors: set[str]) -> bool:
    """True if an expression grows with the variables that do."""
    if not isinstance(source, Arithmetic):
        return isinstance(source, Variable) and source.name in growing
    first, *others = source.operands
    parts = [part for part in source.operands if expression_names(part) & growing]
    if not parts or not all(_grows(part, growing, floors) for part in parts):
        return False
    if source.operator in ("+", "min", "max", "floor", "round"):
        return True
    if source.operator in ("-", "/", "//"):
        return parts == [first] and (source.operator == "-" or all(_sign(part) > 0 for part in others))
    factors = [part for part in source.operands if part not in parts]
    return source.operator == "*" and all(
        part.name in floors if isinstance(part, Variable) else _sign(part) > 0 for part in factors
    )


def _sign(part: Expression) -> int:
    """The sign of a written number: 1, 0 or -1; that of anything else may be -1."""
    if not isinstance(part, Constant) or isinstance(part.value, str):
        return -1
    return (part.value > 0) - (part.value < 0)


@check(
    RuleFault.warning(
        "HPX224", "equal amounts that count once",
        "given sold(id: Sale, day: Text, price: Number)\n"
        "aggregate sum_of(Text D, Number N) := N = sum(Number P: sold(day: D, price: P))",
        "given sold(id: Sale, day: Text, price: Number)\n"
        "aggregate sum_of(Text D, Number N) := N = sum(Number P, Sale I: sold(id: I, day: D, price: P))",
    ),
)  # fmt: skip
def equal_amounts(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Sums and means over a table in which two rows with the same amount are one."""
    summed = (item for item in library.aggregates if item.function in ("sum", "avg") and not item.counts_derivations)
    for item in summed:
        kept = {variable.name for variable in (*item.counted, *item.group)}
        for literal in (part for part in item.premise if isinstance(part, Literal) and not part.negated):
            signature = library.signature(literal.atom.indicator)
            places = signature.key or range(len(signature.columns)) if len(item.counted) == 1 or signature.key else ()
            terms = ((place, literal.atom.arguments[place]) for place in places)
            left = [place for place, term in terms if isinstance(term, Variable) and term.name not in kept]
            if signature.columns and left:
                column, table = signature.columns[left[0]], literal.atom.predicate
                collected = ", ".join(map(str, item.counted))
                yield fault.at(
                    item.place,
                    f"{item.atom.predicate} counts rows of {table} with equal {item.counted[0].name} once",
                    f"Where each row counts, name what tells rows apart, such as {column}: "
                    f"{item.function}({collected}, X: {table}({column}: X, ...))",
                )


DECLARATION_CHECKS: tuple[Check, ...] = (
    unbound_in_constraint,
    excluding_properties,
    misplaced_declarations,
    overlapping_types,
    broken_declarations,
    contrary_facts,
    computed_predicate_concluded,
    unknown_functions,
    unbound_in_aggregates,
    aggregates_of_texts,
    aggregates_of_themselves,
    aggregates_that_are_not_monotone,
    aggregates_over_open_predicates,
    equal_amounts,
)
