"""Losses of a search: any decisions add up, and the last step's commonest loss decides the remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.commands.console import CommandLine
from hapax.engine.search.account import (
    DroppedLines,
    GateLoss,
    PremiseLoss,
    StepAccount,
    question_account,
    shortage,
)
from hapax.engine.search.gates import CRITIC, FACT_FLOOR, QuestionGates
from hapax.grammar.remedies import worded_for
from hapax.kb.records import Candidate, Decision, Distribution

HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL
VERDICTS = st.tuples(
    st.integers(0, 5), st.sampled_from(["parser", "agreement", "type", "critic"]), st.booleans(), st.floats(0, 1)
)


@given(st.lists(VERDICTS, max_size=12), st.integers(0, 3))
def test_any_decisions_add_up(verdicts: list[tuple[int, str, bool, float]], unjudged: int) -> None:
    """Whatever the gates decide on whatever candidates, no line is lost or counted twice, also by a stored account."""
    pairs = []
    for number, gate, accepted, score in verdicts:
        candidate = Candidate("question", f"value{number}", f"{number}. value{number}", "call", number)
        decision = Decision("run", gate, candidate.id, accepted and gate != "parser", score, 0.9, "reason 7")
        pairs.append((candidate, decision))
    step = StepAccount(1, "Food A", "model")
    step.add(question_account(2, pairs, unjudged, 0))

    assert step.lines == len({candidate.id for candidate, _ in pairs}) + unjudged
    assert step.lines == step.dropped_count + step.unjudged + step.rejected + step.accepted
    assert StepAccount.from_json(step.to_json()) == step


FIRST = StepAccount(1, "Dish D", "model", questions=1, calls=1)
SECOND = StepAccount(2, "Dish D", "model")
REMARKS = {"is a remark": DroppedLines(2, "")}
CUT_OFF = {"is cut off": DroppedLines(2, "pi"), "is a remark": DroppedLines(1, "")}
REPEAT = {"repeats line N": DroppedLines(1, "pizza")}
BY_CRITIC, BY_TYPE = GateLoss(1, 0.4, 0.85), GateLoss(1, 0.8, 0.85)
UNLIKELY = GateLoss(1, 0.29, 0.85)


@pytest.mark.parametrize(
    ("step", "fact", "remedy"),
    [
        (replace(FIRST, calls=2), "2 calls", "--calls"),
        (replace(FIRST, lines=1, dropped=REPEAT), "1 line", "--temperature"),
        (replace(FIRST, lines=3, unjudged=2, losses={"critic": BY_CRITIC}), "unjudged", "higher budget"),
        (replace(FIRST, lines=2, unjudged=1, losses={"critic": BY_CRITIC}), "critic", "--fact-threshold 0.4"),
        (replace(FIRST, lines=4, dropped=CUT_OFF, losses={"type": BY_TYPE}), "3 of 4 lines", "--values"),
        (replace(FIRST, lines=2, losses={"type": BY_TYPE}), "type", "--type-threshold 0.8"),
        (replace(FIRST, lines=2, dropped=REMARKS, listable=True), "2 of 2 lines", "--plan premise-first"),
        (replace(FIRST, lines=2, dropped=REMARKS), "2 of 2 lines", "--knowledge"),
        (replace(FIRST, lines=1, losses={"agreement": GateLoss(1)}), "samples", "--temperature"),
        (replace(FIRST, lines=2, losses={"agreement": GateLoss(2)}, listable=True), "samples", "--plan premise-first"),
        (replace(FIRST, lines=1, losses={"critic": UNLIKELY}), "0.29", "--knowledge or --critic"),
        (replace(FIRST, lines=1, losses={"consistency": GateLoss(1)}), "consistency", "--knowledge"),
        (replace(SECOND, origin="given"), "no fact", "hapax import"),
        (replace(SECOND, origin="derived"), "no fact", "hapax why-not"),
        (replace(SECOND, origin="computed"), "no fact", "equation"),
        (replace(SECOND, extended=1, kept=1), "Prolog derives no statement", "hapax why-not"),
        (replace(SECOND, extended=3, unranked=2), "likelihood", "--likelihood"),
        (
            replace(SECOND, extended=4, failed={"q": PremiseLoss(1, "given"), "p": PremiseLoss(2, "critic", 0.8)}),
            "2 of 4 substitutions fail p",
            "--fact-threshold 0.8",
        ),
        (replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "given")}), "fails q", "hapax import"),
        (replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "computed")}), "fails q", "--beam"),
    ],
)
def test_the_last_step_names_its_commonest_loss_and_a_remedy(step: StepAccount, fact: str, remedy: str) -> None:
    """Where values ran out is said of the last step: most of its lines, values or substitutions, and what helps."""
    before = StepAccount(1, "Person X", "given", extended=1, kept=1)
    with worded_for(CommandLine()):
        lost = shortage([before, step])
        worded = "" if lost is None else str(lost.remedy)

    assert lost is not None
    assert fact in lost.fact
    assert remedy in worded
    assert str(lost).startswith(f"Step {step.step}, Dish D: ")


def test_a_compatible_search_has_to_be_left_for_another_threshold() -> None:
    """A threshold is no option of a search with --compat, so the remedy leaves that out."""
    lost = replace(FIRST, lines=1, losses={"critic": BY_CRITIC})

    with worded_for(CommandLine()):
        assert "no --compat and --fact-threshold 0.4" in str(shortage([lost], "released"))


@given(st.lists(st.lists(st.integers(0, 100).map(lambda p: p / 100), max_size=4), max_size=4))
def test_a_threshold_falls_at_the_end_to_the_best_step_but_not_below_the_floor(batches: list[list[float]]) -> None:
    """Nothing accepted so far: all that reach the highest step that any reaches; never anything below the floor."""
    gates = QuestionGates()
    for number, batch in enumerate(batches):
        gates.add({Candidate("q", f"{number}.{i}", "", "call", i): {CRITIC.name: p} for i, p in enumerate(batch)})
    before, scores = list(gates.accepted), [score for batch in batches for score in batch]
    gates.end()
    accepted = [gates.scores[candidate][CRITIC.name] for candidate in gates.accepted]

    if before:
        assert gates.accepted == before
    else:
        assert bool(accepted) == any(score >= FACT_FLOOR for score in scores)
        assert all(max(scores) - score <= 0.05 for score in accepted)
