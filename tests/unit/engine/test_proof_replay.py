"""Replay of stored proofs: each step has to be one of the knowledge base and of its rule."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

import hapax
from hapax.engine.inference.proof import By, Proof, proof_from_json
from hapax.engine.inference.replay import StepChecker, StepFault
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Variable
from hapax.kb.records import DENIALS, RULES, RUNS, DenialRecord, FactRecord, RuleRecord, RunRecord, Source
from hapax.kb.rows import BINDINGS, TREE
from hapax.kb.store import KnowledgeBase

TOUR = """
given visits(Person, Town)
oracle borders(Town, Town)
oracle is_closed(Town)
aggregate ways(Town X, Number N) := N = count(Town Y: borders(Town X, Town Y))
@name tour
visits(Person X, Town A) & borders(Town A, Town B) & not is_closed(Town B) & ways(Town A, Number N) & Number M = N * 2
  -> tours(Person X, Town B)
"""
BORDERS = FactRecord("borders", ("Ghent", "Lille"), ("Town", "Town"), Source.MODEL, 0.9)


def literal(text: str, *, negated: bool = False) -> Literal:
    """`borders(Ghent, Lille)`: words and numbers are values, and X is the person."""
    name, _, cells = text.removesuffix(")").partition("(")
    terms: list[Constant | Variable] = []
    for cell in cells.split(", "):
        terms.append(Variable("X", "Person") if cell == "X" else Constant(int(cell) if cell.isdecimal() else cell))
    return Literal(Atom(name, tuple(terms)), negated)


def product(left: int, right: int, total: int, operator: str = "=") -> Comparison:
    return Comparison(operator, Constant(total), Arithmetic("*", (Constant(left), Constant(right))))


FACT = Proof(literal("borders(Ghent, Lille)"), By.FACT, fact_id=BORDERS.id)
WAYS = Proof(literal("ways(Ghent, 1)"), By.DECLARATION, "aggregate ways/2", (FACT,))
VISIT = Proof(literal("visits(X, Ghent)"), By.ASSUMPTION)
OPEN = Proof(literal("is_closed(Lille)", negated=True), By.DENIAL)
TWICE = Proof(product(1, 2, 2), By.COMPUTED)
STEPS = (VISIT, FACT, OPEN, WAYS, TWICE)


@pytest.mark.parametrize(
    ("place", "step", "reason"),
    [
        (0, VISIT, None),
        (0, replace(VISIT, by=By.GIVEN), "(given) names no fact"),
        (0, replace(VISIT, goal=literal("visits(Ann, Ghent)")), "is not the premise"),
        (0, replace(VISIT, children=(FACT,)), "has premises, which only a step by a rule can have"),
        (1, replace(FACT, by=By.GIVEN), None),  # facts of rule files are stored nowhere
        (1, replace(FACT, by=By.NEGATION), "cannot justify the premise"),
        (1, replace(FACT, fact_id=None), "names no fact"),
        (1, replace(FACT, goal=literal("borders(Lille, Ghent)")), "names a fact of other content"),
        (1, replace(FACT, goal=literal("borders(Ghent, Lille)", negated=True)), "names no fact"),
        (2, replace(OPEN, by=By.NEGATION), None),
        (2, replace(OPEN, goal=literal("is_closed(Lille)")), "is not negated"),
        (2, replace(OPEN, goal=literal("is_closed(Bruges)", negated=True)), 'no critic denied is_closed("Bruges")'),
        (2, replace(OPEN, by=By.ASSUMPTION), "cannot justify the premise"),
        (3, replace(WAYS, children=(OPEN,)), "is not a premise of rule aggregate ways/2"),
        (3, replace(WAYS, goal=literal("ways(Ghent, 3)")), "is not the premise"),
        (4, replace(TWICE, goal=product(1, 2, 3)), "does not hold"),
        (4, replace(TWICE, goal=product(2, 1, 2)), "is not the premise"),
        (4, replace(TWICE, goal=product(1, 2, 2, "=<")), "is not the premise"),
        (4, replace(TWICE, goal=Comparison("=", Constant(2), Constant(2))), "is not the premise"),
        (4, Proof(literal("visits(X, Ghent)"), By.COMPUTED), "is not a computed predicate"),
        (4, Proof(literal("visits(X, Ghent)"), By.ASSUMPTION), "is not the premise"),
    ],
)
def test_each_step_of_a_proof_is_checked(fresh_kb: KnowledgeBase, place: int, step: Proof, reason: str | None) -> None:
    """Facts, denials, comparisons, rows of aggregates and premises have to be those of the knowledge base and the rule."""
    library = hapax.parse_rules(TOUR)
    fresh_kb.add_facts([BORDERS])
    fresh_kb.add(DENIALS, [DenialRecord("is_closed", ("Lille",), 0.05)])
    steps = [*STEPS[:place], step, *STEPS[place + 1 :]]
    proof = Proof(literal("tours(X, Lille)"), By.RULE, "tour", tuple(steps))
    values = BINDINGS.encode((("A", "Ghent"), ("B", "Lille"), ("N", 1), ("M", 2)))

    try:
        misfit = StepChecker(fresh_kb, library).misfit("tour", "run", values, TREE.encode(proof.to_json()))
    except StepFault as fault:
        found: str | None = str(fault)
    else:
        found = None if misfit is None else misfit[1]

    assert (found is None) == (reason is None), found
    assert (reason or "") in (found or "")


def test_a_proof_without_a_premise_or_of_another_conclusion_does_not_follow(fresh_kb: KnowledgeBase) -> None:
    """All premises have to be there, and the conclusion has to have the statement's values."""
    fresh_kb.add_facts([BORDERS])
    fresh_kb.add(DENIALS, [DenialRecord("is_closed", ("Lille",), 0.05)])
    checker = StepChecker(fresh_kb, hapax.parse_rules(TOUR))

    def reason(goal: str, steps: tuple[Proof, ...], town: str = "Lille") -> str | None:
        proof = Proof(literal(goal), By.RULE, "tour", steps)
        values = BINDINGS.encode((("A", "Ghent"), ("B", town), ("N", 1), ("M", 2)))
        misfit = checker.misfit("tour", "run", values, TREE.encode(proof.to_json()))
        assert misfit is None or misfit[0] == ("run", "tour")
        return misfit and misfit[1]

    assert reason("tours(X, Lille)", STEPS) is None
    assert reason("tours(X, Lille)", STEPS[:4]) == "4 of the 5 premises of rule tour are there"
    assert reason("tours(X, Ghent)", STEPS) == 'tours(Person X, "Ghent") is not what rule tour concludes'
    assert reason("tours(X, Lille)", STEPS, "Bruges") == 'tours(Person X, "Lille") is not what rule tour concludes'
    of_ann = (replace(VISIT, goal=literal("visits(Ann, Ghent)")), *STEPS[1:])  # a statement speaks of nobody
    assert reason("tours(Ann, Lille)", of_ann) == 'tours("Ann", "Lille") is not what rule tour concludes'
    both = (*STEPS[:3], replace(WAYS, children=(OPEN,)))  # a premise of the aggregate is wrong, too
    assert reason("tours(X, Lille)", both) == "4 of the 5 premises of rule tour are there"
    with pytest.raises(StepFault, match="its proof cannot be read"):
        checker.misfit("tour", "run", BINDINGS.encode(()), None)


def test_a_step_may_fit_any_rule_of_its_name(fresh_kb: KnowledgeBase) -> None:
    """A rule that was changed since is known by the text that its search stored; only one search makes that certain."""
    old, new = hapax.parse_rules(TOUR), hapax.parse_rules(TOUR.replace("N * 2", "N * 3"))
    fresh_kb.add_facts([BORDERS])
    fresh_kb.add(DENIALS, [DenialRecord("is_closed", ("Lille",), 0.05)])
    fresh_kb.add(RULES, [RuleRecord.of(old.rule("tour"))])
    fresh_kb.add(RUNS, [RunRecord.now("first", "search", {"rules": ["tour", "walk"]})])
    fresh_kb.add(RUNS, [RunRecord.now("second", "search", {"rules": ["walk"]})])
    fresh_kb.add(RUNS, [RunRecord.now("third", "calibrate", {"rules": ["ride"]})])
    checker = StepChecker(fresh_kb, new)

    def misfit(total: int, factor: int) -> tuple[tuple[str, str], str] | None:
        last = replace(TWICE, goal=product(1, factor, total))
        proof = Proof(literal("tours(X, Lille)"), By.RULE, "tour", (*STEPS[:4], last))
        values = BINDINGS.encode((("A", "Ghent"), ("B", "Lille"), ("N", 1), ("M", total)))
        return checker.misfit("tour", "first", values, TREE.encode(proof.to_json()))

    assert misfit(2, 2) is None  # as stored
    assert misfit(3, 3) is None  # as the library has it
    found = misfit(4, 4)
    assert found is not None
    assert found[0] == ("first", "tour")
    assert "M = N * 2" in found[1]  # the reason of the text that was stored
    assert [checker.is_certain(rule) for rule in ("tour", "walk", "ride")] == [True, False, False]


def goal(predicate: str, *values: str | int | Decimal) -> Literal:
    return Literal(Atom(predicate, tuple(map(Constant, values))))


def example() -> Proof:
    shared = Proof(goal("is_in", "saffron", "paella"), By.FACT, fact_id="f1")
    inner = Proof(goal("is_found_in", "paella"), By.RULE, "inner", (shared,))
    earlier = Comparison("<", Constant(Decimal("1.50")), Arithmetic("+", (Constant(2), Constant(1))))
    return Proof(
        Literal(Atom("is_not_able_to_eat", (Variable("X", "Person"), Constant("paella")))),
        By.RULE,
        "allergy",
        (
            Proof(Literal(Atom("is_allergic_to", (Variable("X", "Person"), Constant("saffron")))), By.ASSUMPTION),
            shared,
            inner,
            inner,
            Proof(earlier, By.COMPUTED),
            Proof(Literal(goal("is_safe", "paella").atom, negated=True), By.NEGATION),
        ),
    )


def test_json_round_trip() -> None:
    """A proof written as JSON text and read back writes the same JSON."""
    written = json.loads(json.dumps(example().to_json()))

    assert proof_from_json(written).to_json() == example().to_json()


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"steps": []},
        {"steps": [{}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": []}, "by": "magic"}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": []}, "by": "rule", "premises": [0]}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": []}, "by": "rule", "premises": [7]}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": [None]}, "by": "fact"}]},
        {"steps": [{"goal": {"predicate": "p", "arguments": [{"decimal": "x"}]}, "by": "fact"}]},
        {"steps": "nonsense"},
    ],
)
def test_a_damaged_proof_is_told(tree: dict[str, object]) -> None:
    """Malformed JSON, and a step that is its own premise, are refused with a reason."""
    with pytest.raises(HapaxError, match="cannot be read"):
        proof_from_json(tree)
