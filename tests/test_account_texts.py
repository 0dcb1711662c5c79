"""Accounts of drawn steps in words: lines, values, substitutions, cuts, and where a rule ran out of values."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence

from golden_fixture import compared
from kb_contents import checksum

from hapax.engine.search.account import (
    DistributionCut,
    PremiseLoss,
    StepAccount,
    cut_text,
    equal_scores,
    excerpt,
    question_account,
    shortage,
    step_text,
)
from hapax.engine.search.gates import AGREEMENT, COMPUTED, CRITIC, GIVEN, PARSER, TYPE
from hapax.kb.records import Candidate, Decision

REASONS = (
    "repeats line 3",
    "repeats an earlier value",
    "the question excludes it",
    "does not end in a full stop",
    "the reply is cut off",
    "no answer to the question",
    "reasoning without an answer",
    "has 14 words",
)
SHOWN = 40
"""Drawn accounts that are shown whole; of the others the file has a checksum."""


def decided(chance: random.Random, place: int) -> tuple[Candidate, Decision]:
    gate = chance.choice([PARSER, PARSER, TYPE, CRITIC, CRITIC, AGREEMENT])
    accepted = gate is not PARSER and chance.random() < 0.3
    reason = chance.choice(REASONS) if gate is PARSER else "P(true) is low"
    candidate = Candidate(
        "q", f"v{place % 7}", f"{place % 7}. value\n {place % 3}", "call", place, reason if gate is PARSER else None
    )
    score = round(chance.random(), 2) if gate in (TYPE, CRITIC) else None
    threshold = None if score is None else chance.choice([0.65, 0.7, 0.85])
    return candidate, Decision("run", gate.name, candidate.id, accepted, score, threshold, reason)


def drawn(seed: int) -> StepAccount:
    chance = random.Random(seed)
    step = StepAccount(seed % 4 + 1, "Dish B", chance.choice(["model", "given", "derived", "computed"]))
    for _ in range(chance.choice([0, 1, 1, 3])):
        values = [decided(chance, place) for place in range(chance.choice([0, 1, 2, 12]))]
        if chance.random() < 0.5:
            values = [each for each in values if not each[1].accepted]
        step.add(
            question_account(chance.randrange(1, 4), values, chance.choice([0, 0, 1, 9]), chance.choice([0, 0, 2]))
        )
    step.extended = chance.choice([0, 0, 1, 20])
    for premise in ("is_in(Dish B, Place A)", "not shut(Place A)"):
        gate = chance.choice([CRITIC, GIVEN, COMPUTED, TYPE])
        count = min(step.extended, chance.choice([0, 1, 7]))
        for _ in range(2):
            step.fail(premise, PremiseLoss(count, gate.name, chance.choice([None, 0.05, 0.29, 0.31, 0.8, 0.849])))
    step.unranked = min(step.extended, chance.choice([0, 0, 3]))
    step.cut, step.kept = (chance.choice([0, 1, 4321]), chance.choice([0, 0, 1, 400])) if step.extended else (0, 0)
    for name in ("head", "long_tail")[: chance.randrange(3)]:
        step.cuts[name] = DistributionCut(step.cut, step.kept, chance.choice([None, -2.5]))
    step.texts = chance.choice([0, 8, 9, 10])
    step.equal = min(step.texts, chance.choice([0, 5, 8]))
    step.listable = chance.random() < 0.3
    return step


def told(step: StepAccount) -> Iterator[str]:
    yield f"  {step_text(step)}"
    yield f"  {cut_text(step)}"
    yield f"  {shortage([step])}"
    yield f"  with --compat: {shortage([StepAccount(9, 'X', 'model'), step], 'paper')}"
    yield (
        f"  dropped {step.dropped_count}, repeated {step.repeated}, failed {step.failed_count}, judged {step.judged},"
        f" rejected {step.rejected}, commonest {step.commonest_drop}, type {step.loss(TYPE.name)}; equal {equal_scores([step])}"
    )


def test_accounts_of_steps_are_told_as_read_over() -> None:
    """Counts, reasons, examples, the place where values ran out and the remedy are recorded for drawn steps."""
    lines = []
    for seed in range(400):
        step = drawn(seed)
        found = [*told(step), json.dumps(step.to_json(), sort_keys=True)]
        lines += [f"# {seed} {checksum(found)}", *(found[:-1] if seed < SHOWN else ())]
    compared("account_texts", "\n".join(lines) + "\n")


def test_a_stored_account_is_read_back() -> None:
    """The run record gives back each count, reason, loss and cut of a step."""
    steps: Sequence[StepAccount] = [drawn(seed) for seed in range(100)]

    assert [StepAccount.from_json(json.loads(json.dumps(step.to_json()))) for step in steps] == steps


def test_an_example_is_at_most_sixty_characters_in_one_line() -> None:
    """A longer line ends in an ellipsis within that width; what a terminal would obey becomes a blank."""
    assert excerpt("a" * 60) == "a" * 60
    assert excerpt("a" * 61) == "a" * 59 + "…"
    assert excerpt(" 1.\x1b[2J\n Soup\t") == "1. [2J Soup"


def test_equal_scores_are_told_from_more_than_half_of_the_texts() -> None:
    """A ranker is named where more than half of the texts of all steps share their score."""
    half, more = StepAccount(1, "X", "model"), StepAccount(2, "Y", "model")
    half.texts, half.equal, more.texts, more.equal = 8, 4, 2, 2

    assert equal_scores([half]) is None
    assert equal_scores([half, more]) == (6, 10)
    assert equal_scores([]) is None
