"""Probabilities of goals and statements by every method, with their proofs, are in `tests/golden/`."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from golden_fixture import compared

from hapax.engine.inference.bulk_derivation import derive_all
from hapax.engine.inference.session import QueryLimits
from hapax.engine.inference.theory import Theory
from hapax.engine.probability.answers import METHODS, TOGETHER, ProbabilityOptions, probable_answers, probable_atom
from hapax.engine.probability.goals import goal_rules
from hapax.engine.probability.statements import statement_probabilities
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_goal, parse_library
from hapax.kb.derived_statements import derived_statements
from hapax.kb.records import Candidate, DenialRecord, FactRecord, Source
from hapax.kb.store import KnowledgeBase

RULES = """
oracle eats(Animal, Animal): "[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?".
oracle lives_in(Animal, Place)
given is_tame(Animal)
computed is_heavy(Number N) := N > 10
given weighs(Animal, Number)
symmetric meets/2
@generic none
@name meets
lives_in(Animal A, Place P) & lives_in(Animal B, Place P) & A \\= B -> meets(Animal A, Animal B)
@generic none
@name chain
eats(Animal A, Animal B) -> feeds_on(Animal A, Animal B)
@generic none
@name long_chain
eats(Animal A, Animal B) & feeds_on(Animal B, Animal C) -> feeds_on(Animal A, Animal C)
@generic none
@name threat
feeds_on(Animal A, Animal B) & meets(Animal A, Animal B) & not is_tame(Animal A) -> threatens(Animal A, Animal B)
@generic none
@name safe
lives_in(Animal A, Place P) & not eats(Animal B, Animal A) & lives_in(Animal B, Place P) -> is_safe_from(Animal A, Animal B)
@generic none
@name heavy
weighs(Animal A, Number N) & is_heavy(Number N) -> is_big(Animal A)
"""
FACTS = [
    ("eats", "fox", "hen", 0.9, "c1"), ("eats", "hen", "worm", 0.8, "c1"), ("eats", "wolf", "fox", 0.7, "c2"),
    ("eats", "fox", "worm", 0.3, "c2"), ("eats", "cat", "hen", 0.2, None), ("lives_in", "fox", "wood", 0.6, "c1"),
    ("lives_in", "wolf", "wood", 0.5, "c3"), ("lives_in", "hen", "farm", None, None), ("lives_in", "cat", "farm", 1.0, "c3"),
    ("lives_in", "fox", "farm", 0.4, "c3"), ("lives_in", "hen", "wood", 0.1, "c2"),
]  # fmt: skip
GOALS = [
    "eats(A, B)", "feeds_on(wolf, B)", "threatens(A, B)", "meets(A, B)", "is_safe_from(A, B)", "is_big(A)",
    "eats(fox, hen), eats(hen, worm)", "eats(fox, hen) ; eats(cat, hen)", "threatens(A, _)", "\\+ eats(cat, hen)",
    "lives_in(A, P), \\+ is_tame(A)", "feeds_on(A, B), A \\= fox", "eats(A, B), \\+ lives_in(A, wood)",
    "eats(cat, A), weighs(A, N), N > 1", "findall(A, eats(A, hen), L)", "threatens(ant, B)", "is_tame(A)",
    "weighs(A, N), N * 2 > 20", "eats(A, B), eats(B, C)",
]  # fmt: skip


def zoo() -> KnowledgeBase:
    kb = KnowledgeBase()
    candidates = {call: Candidate("q", call, call, call, 0) for *_, call in FACTS if call}
    kb.add_candidates(candidates.values())
    kb.add_facts(
        FactRecord(name, (first, second), (), Source.GIVEN if chance is None else Source.MODEL, chance,
                   candidates[call].id if call else None, f"run {call}")
        for name, first, second, chance, call in FACTS
    )  # fmt: skip
    kb.add_facts([FactRecord("is_tame", ("cat",), (), Source.GIVEN)])
    kb.add_facts(FactRecord("weighs", (name, number), (), Source.GIVEN) for name, number in (("wolf", 40), ("hen", 2)))
    kb.add_denials([DenialRecord("eats", ("hen", "fox"), 0.05), DenialRecord("eats", ("cat", "cat"), 0.2)])
    return kb


def test_goals_have_these_probabilities_by_every_method() -> None:
    """Answers, bounds and order of each goal are those read over, also where facts come together."""
    lines = []
    with zoo() as kb:
        theory = Theory(parse_library([("zoo.rules", RULES)]), kb)
        for goal, method, together in product(GOALS, METHODS, TOGETHER):
            if together and method != "exact":
                continue
            lines.append(f"# {goal}, {method}, {together or 'each'}")
            try:
                found = probable_answers(theory, goal, ProbabilityOptions(method, together=together, proofs=3))
            except HapaxError as refusal:
                lines.append(str(refusal))
                continue
            rows = zip(found.result.rows, found.probabilities, strict=True)
            lines += [f"  {row}: {chance} {chance.lower:.6f} {chance.upper:.6f}" for row, chance in rows]
            lines.append(f"  {found.result.columns} {found.result.truncated} {found.basis}")
        few = probable_answers(theory, "eats(A, B)", ProbabilityOptions(at_least=0.7), QueryLimits(answers=2))
        lines.append(f"{few.result.rows} {few.result.truncated}")
        for options in (
            ProbabilityOptions(nodes=2),
            ProbabilityOptions("exact", nodes=2),
            ProbabilityOptions("bounds", proofs=1),
        ):
            try:
                lines.append(
                    str([str(chance) for chance in probable_answers(theory, "threatens(A, B)", options).probabilities])
                )
            except HapaxError as refusal:
                lines.append(str(refusal))

    compared("probability/goals", "\n".join(lines) + "\n")


def test_atoms_have_these_proofs() -> None:
    """Each atom's probability, and its proofs with the facts that they need, are those read over."""
    lines = []
    with zoo() as kb:
        theory = Theory(parse_library([("zoo.rules", RULES)]), kb)
        atoms = [
            "threatens(fox, hen)",
            "threatens(wolf, fox)",
            "feeds_on(wolf, worm)",
            "is_safe_from(hen, cat)",
            "meets(hen, cat)",
        ]
        atoms += ["is_safe_from(fox, hen)", "is_big(wolf)", "is_big(hen)", "eats(hen, fox)"]
        for text, method in product(atoms, METHODS):
            chance, proofs = probable_atom(theory, theory.atom(text), ProbabilityOptions(method, proofs=2))
            lines.append(f"# {text}, {method}: {chance}")
            lines += [f"  {proof.probability:.6f}: {proof.facts}" for proof in proofs]

    compared("probability/atoms", "\n".join(lines) + "\n")


def test_derived_statements_have_these_probabilities() -> None:
    """The probabilities of the statements of each rule, by every method, are those read over."""
    library = parse_library([("zoo.rules", RULES)])
    lines = []
    with zoo() as kb:
        derive_all(kb, library, library.rules)
        for rule in library.rules:
            texts = [item.text for item in derived_statements(kb, rule=rule.name)]
            for method, together in product(METHODS, TOGETHER):
                options = ProbabilityOptions(method, together=together, proofs=2)
                chances = statement_probabilities(kb, library, rule, options)
                lines.append(f"# {rule.name}, {method}, {together or 'each'}")
                lines += [f"  {text}: {chance}" for text, chance in zip(texts, chances, strict=True)]

    compared("probability/statements", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proofs": 0}, "proofs and nodes must be at least 1."),
        ({"nodes": 0}, "proofs and nodes must be at least 1."),
        ({"at_least": 1.01}, "at_least is 1.01. Write a probability from 0 to 1."),
        ({"at_least": -0.01}, "at_least is -0.01. Write a probability from 0 to 1."),
        ({"method": "guess"}, "There is no method 'guess'. Choose auto, exact, bounds, best."),
        ({"together": "call"}, "Facts cannot be taken together by 'call'. Choose reply or run."),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    """Each option has its least and largest value, which are allowed."""
    ProbabilityOptions(proofs=1, nodes=1, at_least=0.0)
    ProbabilityOptions(at_least=1.0)

    with pytest.raises(HapaxError) as refused:
        ProbabilityOptions(**options)
    assert str(refused.value) == message


READ_GOALS = [
    *GOALS, "\\+ (eats(A, hen), eats(hen, _))", "eats(A, B), \\+ (eats(B, C), \\+ eats(C, _))", "eats(A, _), eats(_, A)",
    "(eats(A, B) ; eats(B, A)), (is_big(A) ; is_tame(A))", "\\+ (eats(fox, hen) ; eats(cat, hen))", "eats(A, B) ; is_big(C)",
    "weighs(A, N), N >= -3 + 2 * 4 - 1", "weighs(A, N), N =< 10 / 4, N \\= -1", "weighs(A, N), weighs(B, N), A \\= B, N = 3",
    "eats(A, B), \\+ \\+ eats(B, A)", "eats('a b', \"x\")", "weighs(A, -2)", "weighs(A, 1.50)", "eats(A, A)", "N < 3",
    "weighs(A, N), M is N + 1, M > 3", "weighs(A, N), -N < 3", "not_known(A)", "call(eats(A, B))", "eats(A, B), !", "member(A, [1])",
]  # fmt: skip


def test_goals_become_rules_as_read_over() -> None:
    """Disjunctions, negations, comparisons and types of variables become the recorded rules, or the goal is refused."""
    library = parse_library([("zoo.rules", RULES)])
    lines = []
    for text in READ_GOALS:
        lines.append(f"# {text}")
        try:
            for rule in goal_rules(parse_goal(text, library), library):
                lines.append(f"  {rule.name}: {rule.sentence}")
        except HapaxError as refusal:
            lines.append(f"  {refusal}")
    compared("probability/goals_as_rules", "\n".join(lines) + "\n")


def test_what_rule_files_and_rules_both_conclude_is_certain() -> None:
    """A statement that rests on an atom of a rule file has the probability of its other premises, in bulk as alone."""
    library = parse_library([("zoo.rules", RULES + 'fact feeds_on("hen", "bee")\n')])
    with zoo() as kb:
        rule = library.rule("long_chain")
        derive_all(kb, library, [rule], "sql")
        texts = [item.text for item in derived_statements(kb, rule=rule.name)]
        found = statement_probabilities(kb, library, rule, ProbabilityOptions("exact"))
        chances = {str(fact.arguments[0]): fact.probability for fact in kb.facts("eats") if fact.arguments[1] == "hen"}
    on_bees = {
        text.split()[1]: chance.lower for text, chance in zip(texts, found, strict=True) if "hen feeds on bee" in text
    }

    assert on_bees == pytest.approx({name: 1.0 if chance is None else chance for name, chance in chances.items()})
    assert len(on_bees) > 1
