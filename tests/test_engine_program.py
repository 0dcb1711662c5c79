"""The generated program: what it holds, and that Prolog's answers over it equal a plain Python evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.program import DemandState, build_program, is_asked, join_order
from hapax.engine.inference.proof import By, Proof, instantiated, proof_from_json
from hapax.engine.inference.session import PrologSession
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Substitution,
    Value,
    Variable,
)
from hapax.kb.records import Distribution, FactRecord, Source, TypeFact

FAMILY = """
oracle is_parent_of(Person, Person).
is_parent_of(Person A, Person B) -> is_ancestor_of(Person A, Person B).
is_parent_of(Person A, Person B) & is_ancestor_of(Person B, Person C) -> is_ancestor_of(Person A, Person C).
computed is_before(Year A, Year B) := A < B.
fact is_parent_of("eve", "abel").
"""


def fact(predicate: str, *values: Value) -> FactRecord:
    return FactRecord(predicate, values, tuple("Thing" for _ in values), Source.MODEL, 0.9)


def family() -> Library:
    return parse_library([("family.rules", FAMILY)])


def test_facts_rules_and_definitions_work_together(prolog: PrologSession) -> None:
    """Stored facts, facts of rule files, recursive rules and computed predicates are one program."""
    prolog.load(build_program(family(), [fact("is_parent_of", "abel", "tom")]))

    assert sorted(prolog.solutions("is_ancestor_of(eve, X)", ["X"]).rows) == [("abel",), ("tom",)]
    assert prolog.solutions("is_before(1, 2)", []).rows == [()]
    assert prolog.solutions("is_before(2, 1)", []).rows == []


def test_facts_of_other_libraries_are_left_out(prolog: PrologSession) -> None:
    """A knowledge base may hold facts that these rules do not know."""
    prolog.load(build_program(family(), [fact("is_unheard_of", "x"), fact("is_parent_of", "x")]))

    assert prolog.solutions("is_parent_of(X, Y)", ["X", "Y"]).rows == [("eve", "abel")]


def test_a_fact_stated_twice_is_there_once(prolog: PrologSession) -> None:
    """The same fact in the store and in a rule file counts once."""
    prolog.load(build_program(family(), [fact("is_parent_of", "eve", "abel")]))

    assert len(prolog.solutions("is_parent_of(X, Y)", ["X", "Y"]).rows) == 1


def test_assumptions_count_as_facts(prolog: PrologSession) -> None:
    """Assumed atoms hold in the program."""
    assumed = Atom("is_parent_of", (Constant("abel"), Constant("tom")))
    prolog.load(build_program(family(), [], assumed=[assumed]))

    assert prolog.solutions("is_ancestor_of(eve, tom)", []).rows == [()]


def test_assumptions_are_ground_and_known() -> None:
    """A variable or an unknown predicate in an assumption is refused with the atom named."""
    with pytest.raises(HapaxError, match="contains a variable"):
        build_program(family(), [], assumed=[Atom("is_parent_of", (Constant("a"), Variable("B", "Person")))])
    with pytest.raises(HapaxError, match="is_unheard_of"):
        build_program(family(), [], assumed=[Atom("is_unheard_of", (Constant("a"),))])


def test_instances_follow_the_subtypes(prolog: PrologSession) -> None:
    """In demand mode a value of a subtype is an instance of what stands above it, in the library's spelling."""
    library = parse_library([("f.rules", "type Cheese < Food.\noracle is_from(Food, Place).")])
    types = [TypeFact("brie", "cheese"), TypeFact("oslo", "PLACE")]
    prolog.load(build_program(library, [], state=DemandState(type_facts=types)))

    found = set(prolog.solutions("hapax_instance(X, Y)", ["X", "Y"], trusted=True).rows)

    assert found >= {("brie", "Food"), ("oslo", "Place")}
    assert ("oslo", "Food") not in found


def test_values_of_stated_facts_are_instances(prolog: PrologSession) -> None:
    """In demand mode a value of a fact in a rule file is of the types that its predicate declares."""
    library = parse_library([("f.rules", 'given is_from(Food, Place)\nfact is_from("brie", "Meaux")')])
    prolog.load(build_program(library, [], state=DemandState()))

    found = set(prolog.solutions("hapax_instance(X, Y)", ["X", "Y"], trusted=True).rows)

    assert found >= {("brie", "Food"), ("Meaux", "Place")}


def test_a_predicate_on_its_own_negation_is_refused() -> None:
    """Unstratified rules have no one meaning."""
    library = parse_library(
        [("f.rules", "is_in(Thing A, Thing B) & not is_out(Thing A, Thing B) -> is_out(Thing A, Thing B).")]
    )

    with pytest.raises(HapaxError):
        build_program(library, [])


def test_premises_join_along_shared_variables() -> None:
    """No cross product where the atoms can be met one after the other; what is told comes first."""
    library = parse_library(
        [
            (
                "f.rules",
                "@generic X\np(Thing A, Thing B) & q(Thing C, Thing D) & r(Thing B, Thing C) & h(Person X, Thing A)\n"
                "-> z(Person X, Thing D).",
            )
        ]
    )

    ordered = join_order(library.rules[0])

    assert [literal.atom.predicate for literal in ordered.literals] == ["h", "p", "r", "q"]


def test_what_a_model_may_be_asked() -> None:
    """Oracle predicates are asked; derived, given, computed ones and hypotheses about a person are not."""
    library = parse_library(
        [
            (
                "f.rules",
                "given was_born_in(Person, Year).\noracle is_in(Ingredient, Dish).\n"
                "computed is_before(Year A, Year B) := A < B.\n"
                "is_allergic_to(Person X, Ingredient A) & is_in(Ingredient A, Dish B)\n"
                "-> is_not_able_to_eat(Person X, Dish B).",
            )
        ]
    )

    asked = {signature.name for signature in library.completed().signatures if is_asked(library, signature)}

    assert asked == {"is_in"}


def test_numbers_that_are_equal_join(prolog: PrologSession) -> None:
    """1.50 and 1.5 are one value; the text 2 and the number 2 are two."""
    library = parse_library([("f.rules", "oracle a(Thing, Number).\noracle b(Number, Thing).")])
    facts = [fact("a", "x", Decimal("1.50")), fact("b", Decimal("1.5"), "y"), fact("a", "z", "2"), fact("b", 2, "w")]
    prolog.load(build_program(library, facts))

    assert prolog.solutions("a(X, N), b(N, Y)", ["X", "Y"]).rows == [("x", "y")]


# --- Prolog equals Python, on random rules and facts ----------------------------------------------------------------

THINGS: tuple[Value, ...] = ("a", "b", "it's", "1")
NUMBERS: tuple[Value, ...] = (1, 2, Decimal("2.5"))
EXTENSIONAL = {"edge": ("Thing", "Thing"), "mark": ("Thing",), "size": ("Thing", "Number")}
INTENSIONAL = ("low", "middle", "high")
VARIABLES = {name: Variable(name, "Thing") for name in "ABCD"} | {name: Variable(name, "Number") for name in "MN"}
Model = dict[str, set[tuple[Value, ...]]]


@st.composite
def atoms(draw: st.DrawFn, predicates: Sequence[str]) -> Atom:
    predicate = draw(st.sampled_from(predicates))
    types = EXTENSIONAL.get(predicate, ("Thing", "Thing"))
    return Atom(predicate, tuple(draw(terms(data_type)) for data_type in types))


def terms(data_type: str) -> st.SearchStrategy[Variable | Constant]:
    names = [variable for variable in VARIABLES.values() if variable.data_type == data_type]
    values = THINGS if data_type == "Thing" else NUMBERS
    constants = [Constant(value) for value in values]
    return st.one_of(st.sampled_from(names), st.sampled_from(names), st.sampled_from(constants))


@st.composite
def rules(draw: st.DrawFn, layer: int, number: int) -> Rule:
    """A safe rule of a layer: positive atoms of this layer or below, negated ones of layers below only."""
    below = [*EXTENSIONAL, *INTENSIONAL[:layer]]
    positive = draw(st.lists(atoms([*below, INTENSIONAL[layer]]), min_size=1, max_size=3))
    bound = list(dict.fromkeys(variable for atom in positive for variable in atom.variables))
    things: list[Variable | Constant] = [variable for variable in bound if variable.data_type == "Thing"]
    things = things or [Constant("a")]
    numbers = [variable for variable in bound if variable.data_type == "Number"]
    premise: list[BodyLiteral] = [Literal(atom) for atom in positive]
    if draw(st.booleans()):
        arguments = tuple(draw(st.sampled_from(things)) for _ in range(2))
        predicate = draw(st.sampled_from([indicator for indicator in below if indicator not in ("mark", "size")]))
        premise.append(Literal(Atom(predicate, arguments), negated=True))
    if draw(st.booleans()):
        premise.append(
            Comparison(draw(st.sampled_from(["=", "\\="])), *draw(st.tuples(*[st.sampled_from(things)] * 2)))
        )
    with_numbers: bool = draw(st.booleans())
    if numbers and with_numbers:
        operator = draw(st.sampled_from(["<", "=<", ">", ">=", "=", "\\="]))
        sign = draw(st.sampled_from("+-*/"))
        right = Arithmetic(sign, Constant(draw(st.sampled_from(NUMBERS))), draw(st.sampled_from(numbers)))
        premise.append(Comparison(operator, draw(st.sampled_from(numbers)), right))
    conclusion = Atom(INTENSIONAL[layer], tuple(draw(st.sampled_from(things)) for _ in range(2)))
    shuffled = tuple(draw(st.permutations(premise)))
    return Rule(f"rule{number}", shuffled, Literal(conclusion))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Library, list[FactRecord]]:
    written = [
        draw(rules(layer, 3 * layer + number)) for layer in range(3) for number in range(draw(st.integers(1, 3)))
    ]
    facts: set[tuple[str, tuple[Value, ...]]] = set()
    for predicate, types in EXTENSIONAL.items():
        cells = [st.sampled_from(THINGS if data_type == "Thing" else NUMBERS) for data_type in types]
        facts |= {(predicate, row) for row in draw(st.lists(st.tuples(*cells), max_size=6))}
    return Library(rules=tuple(written)).completed(), [
        fact(predicate, *row) for predicate, row in sorted(facts, key=repr)
    ]


def evaluated(library: Library, facts: Sequence[FactRecord]) -> Model:
    """The model by naive stratified evaluation: every rule over every assignment, layer by layer, to the fixpoint."""
    model: Model = {name: set() for name in (*EXTENSIONAL, *INTENSIONAL)}
    for record in facts:
        model[record.predicate].add(record.arguments)
    for layer in INTENSIONAL:
        own = [rule for rule in library.rules if rule.conclusion.atom.predicate == layer]
        size = -1
        while size != len(model[layer]):
            size = len(model[layer])
            for rule in own:
                found = [values_of(rule.conclusion.atom, bindings) for bindings in joined(rule, model)]
                model[layer].update(found)
    return model


def joined(rule: Rule, model: Model) -> Iterator[dict[str, Value]]:
    """Every assignment under which the premise holds."""
    assignments: list[dict[str, Value]] = [{}]
    for literal in (item for item in rule.literals if not item.negated):
        assignments = [
            matched
            for assignment in assignments
            for row in model[literal.atom.predicate]
            if (matched := match(literal.atom, row, assignment)) is not None
        ]
    for assignment in assignments:
        if all(holds_in(item, assignment, model) for item in rule.premise):
            yield assignment


def match(atom: Atom, row: Sequence[Value], assignment: Mapping[str, Value]) -> dict[str, Value] | None:
    extended = dict(assignment)
    for term, value in zip(atom.arguments, row, strict=True):
        wanted = term.value if isinstance(term, Constant) else extended.setdefault(term.name, value)
        if wanted != value:
            return None
    return extended


def holds_in(item: BodyLiteral, assignment: Mapping[str, Value], model: Model) -> bool:
    if isinstance(item, Literal):
        return (values_of(item.atom, assignment) in model[item.atom.predicate]) is not item.negated
    left, right = number_of(item.left, assignment), number_of(item.right, assignment)
    if item.operator in ("=", "\\="):
        return (left == right) is (item.operator == "=")
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    return {"<": left < right, "=<": left <= right, ">": left > right, ">=": left >= right}[item.operator]


def values_of(atom: Atom, assignment: Mapping[str, Value]) -> tuple[Value, ...]:
    return tuple(term.value if isinstance(term, Constant) else assignment[term.name] for term in atom.arguments)


def number_of(expression: Expression, assignment: Mapping[str, Value]) -> str | Fraction:
    if not isinstance(expression, Arithmetic):
        value = expression.value if isinstance(expression, Constant) else assignment[expression.name]
        return value if isinstance(value, str) else Fraction(value)
    left, right = number_of(expression.left, assignment), number_of(expression.right, assignment)
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    return {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[expression.operator]


@settings(
    max_examples=cases(25), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(world=worlds())
def test_prolog_equals_python(prolog: PrologSession, world: tuple[Library, list[FactRecord]]) -> None:
    """Answers equal a naive evaluation, over random rules with negation, comparisons, arithmetic and recursion."""
    library, facts = world
    expected = evaluated(library, facts)

    prolog.load(build_program(library, facts))
    found = {name: set(prolog.solutions(f"{name}(X, Y)", ["X", "Y"]).rows) for name in INTENSIONAL}

    assert found == {name: expected[name] for name in INTENSIONAL}


@settings(
    max_examples=cases(12), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(world=worlds(), data=st.data())
def test_statements_equal_python_and_their_proofs_hold(
    prolog: PrologSession, world: tuple[Library, list[FactRecord]], data: st.DataObject
) -> None:
    """Exactly those substitutions become statements whose premise holds, and each proof stands on facts alone."""
    library, facts = world
    rule = data.draw(st.sampled_from(library.rules))
    model = evaluated(library, facts)
    domains = [THINGS if variable.data_type == "Thing" else NUMBERS for variable in rule.variables]
    kept = [
        Substitution(
            tuple((variable.name, Constant(value)) for variable, value in zip(rule.variables, row, strict=True))
        )
        for row in product(*domains)
    ]
    bindings = [{name: constant.value for name, constant in substitution.items()} for substitution in kept]
    wanted = [tuple(row.items()) for row in bindings if all(holds_in(item, row, model) for item in rule.premise)]

    kept_by_run = KeptSubstitutions(rule, {Distribution.HEAD: kept}, "run")
    statements = derive_statements(prolog, library, facts, kept_by_run)

    assert [statement.substitution for statement in statements] == wanted
    for statement in statements:
        check_proof(proof_from_json(statement.proof), library, facts, model)


def check_proof(proof: Proof, library: Library, facts: Sequence[FactRecord], model: Model) -> None:
    """Every part follows from its children, facts are facts, and no part rests on itself."""
    known = {record.id: record for record in facts}
    done: set[int] = set()
    for part in reversed(proof.parts()):
        done.add(id(part))
    assert len(done) == len(proof.parts())
    for part in proof.parts():
        if part.by is By.RULE:
            rule = library.rule(part.rule or "")
            assert len(part.children) == len(rule.premise)
            assert follows(rule, part)
        elif part.by is By.FACT:
            assert isinstance(part.goal, Literal)
            assert values_of(part.goal.atom, {}) == known[part.fact_id or ""].arguments
        else:
            assert part.by in (By.COMPUTED, By.NEGATION)
            assert holds_in(part.goal, {}, model)


def follows(rule: Rule, part: Proof) -> bool:
    """True if one substitution turns the rule's premise and conclusion into the goals of the children and the part."""
    assert isinstance(part.goal, Literal)
    assignment: dict[str, Value] | None = match(rule.conclusion.atom, values_of(part.goal.atom, {}), {})
    for item, child in zip(rule.premise, part.children, strict=True):
        if isinstance(item, Literal) and isinstance(child.goal, Literal) and assignment is not None:
            assignment = match(item.atom, values_of(child.goal.atom, {}), assignment)
    if assignment is None:
        return False
    substitution = Substitution(tuple((name, Constant(value)) for name, value in assignment.items()))
    return all(
        instantiated(item, substitution) == child.goal for item, child in zip(rule.premise, part.children, strict=True)
    )
