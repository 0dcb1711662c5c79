"""Probabilities of drawn programs by every method and limit, and their proofs, as texts in `tests/golden/`."""

from __future__ import annotations

import random

import pytest
from golden_fixture import compared
from kb_contents import checksum

import hapax
from hapax.engine.explain import story_text, why
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.engine.probability.answers import ProbabilityOptions, probable_answers
from hapax.grammar.errors import HapaxError
from tools.probable_programs import LEAST_CHAIN, drawn_goal, drawn_program, store_program

OPTIONS = {
    "exact": ProbabilityOptions(method="exact"),
    "few nodes": ProbabilityOptions(nodes=4, proofs=2),
    "one proof": ProbabilityOptions(method="bounds", proofs=1),
    "three proofs": ProbabilityOptions(method="bounds", proofs=3, at_least=0.3),
    "best": ProbabilityOptions(method="best"),
    "by run": ProbabilityOptions(method="exact", together="run"),
}


@pytest.mark.parametrize("part", range(3))
def test_drawn_programs_have_these_probabilities(part: int, prolog: PrologSession) -> None:
    """Answers with their probabilities, refusals at small limits, and the proofs of the first answers are recorded."""
    lines = []
    for seed in range(part * 3, part * 3 + 3):
        chance = random.Random(f"recorded {seed}")
        program = drawn_program(chance)
        with hapax.KnowledgeBase() as kb:
            store_program(kb, program)
            rules = hapax.with_entailments(hapax.parse_rules(program.text), kb, LEAST_CHAIN)
            theory = Theory(rules, kb)
            goals = [f"{name}({', '.join('AB'[: program.arities[name]])})" for name in program.derived]
            for goal in [*goals[-2:], drawn_goal(chance, program)]:
                for name, options in OPTIONS.items():
                    try:
                        found = probable_answers(theory, goal, options)
                    except HapaxError as refusal:
                        lines.append(f"{seed} {goal} {name}: {refusal}")
                        continue
                    pairs = zip(found.result.rows, found.probabilities, strict=True)
                    told = [f"{row} {chance} {chance.lower:.9f} {chance.upper:.9f}" for row, chance in pairs]
                    lines.append(f"{seed} {goal} {name}: {checksum(told)} {'; '.join(told)[:120]}")
            for row in run_query(theory, goals[-1], session=prolog).rows[:2]:
                atom = f"{program.derived[-1]}({', '.join(map(str, row))})"
                story = story_text(why(theory, atom, prolog, probability=ProbabilityOptions()))
                lines += [f"{seed} why {atom}: {checksum(story.splitlines())}"]
    compared(f"drawn_chances/{part}", "\n".join(lines) + "\n")
