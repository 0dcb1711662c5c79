"""Questions from the first call to the last verdict, for random replies and scores, as texts in `tests/golden/`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import pytest
from golden_fixture import compared
from kb_contents import checksum

from hapax.engine.search.gates import CRITIC, TYPE, Scores, gates_in_order
from hapax.engine.search.inquiry import Inquiry, ParsedGeneration, slot_name
from hapax.engine.search.oracle import OracleSettings, asked_question
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.rules import Tolerance
from hapax.grammar.terms import Value
from hapax.kb.records import AtomPattern, Candidate, Decision, Question, QuestionState
from hapax.llm_oracle.answers import ParsedValue

PATTERN = AtomPattern("is_in", ("butter", None))
MANY = Question((PATTERN,), "Dish")
ONE = Question((PATTERN,), "Year", functional=True)
TEXTS: Sequence[Value] = ("soup", "Soup", "pie", "stew", "bread", "cake", "tea", "roll")
YEARS: Sequence[Value] = (1900, 1901, 1903, Decimal("1900.5"), "1900", 1950)

LOWEST = {CRITIC.name: CriticRule(0.9, floor=0.3, falls_at_end=True), TYPE.name: CriticRule(0.8, floor=0.65, cap=0.9)}
SETTINGS: Mapping[str, OracleSettings] = {
    "usual": OracleSettings(),
    "one call": OracleSettings(calls_per_question=1),
    "nine calls": OracleSettings(calls_per_question=9),
    "own thresholds": OracleSettings(rules=LOWEST),
    "fixed threshold": OracleSettings(rules={CRITIC.name: CriticRule.at(0.6)}),
    "published": OracleSettings(link_exclusion=True, gates=gates_in_order("paper")),
    "released": OracleSettings(link_exclusion=True, released=True, gates=gates_in_order("released")),
    "released thresholds": OracleSettings(
        link_exclusion=True,
        released=True,
        gates=gates_in_order("released"),
        rules={CRITIC.name: CriticRule(released=True, floor=0.65), TYPE.name: CriticRule(floor=0.65)},
    ),
}
TOLERANCES = {"": None, "within 2": Tolerance.parsed("2"), "within 1%": Tolerance.parsed("1%")}
INQUIRIES = {
    "values": Inquiry(MANY, (PATTERN,)),
    "values after others": Inquiry(MANY, (PATTERN,), prior=((CRITIC.name, (0.9, 0.7)), (TYPE.name, (0.95,)))),
    "few calls": Inquiry(MANY, (PATTERN,), calls=2),
    "no claim": Inquiry(MANY, ()),
    "one value": Inquiry(ONE, (PATTERN,)),
}


def replies(chance: random.Random, values: Sequence[Value], call: int, count: int) -> Iterator[ParsedGeneration]:
    for number in range(count):
        parsed = []
        for place in range(chance.randrange(4)):
            value = chance.choice(values)
            reason = chance.choice([None, None, None, None, "has a colon"])
            parsed.append(ParsedValue(value, f"- {value}", place, reason))
        yield ParsedGeneration(f"call {call}.{number}", parsed)


def scored(chance: random.Random, new: Sequence[Candidate], level: float, step: float) -> dict[Candidate, Scores]:
    return {
        candidate: {
            gate: round(step * round(min(1, level + chance.random() * (1 - level)) / step), 3)
            for gate in (TYPE.name, CRITIC.name)
            if chance.random() > 0.1
        }
        for candidate in new
    }


def verdict(candidate: Candidate, decision: Decision) -> str:
    found = "accepted" if decision.accepted else "rejected"
    return (
        f"    {candidate.value!r} ({candidate.raw}, {candidate.call_id}): {found} by {decision.gate}, {decision.reason}"
    )


def told(settings: OracleSettings, inquiry: Inquiry, tolerance: Tolerance | None, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    level = chance.choice([0.0, 0.3, 0.6, 0.8])
    # In coarse steps, which many scores share with the thresholds, after the first seeds.
    step = 0.001 if seed < 12 else 0.05
    values = YEARS if inquiry.question.functional else TEXTS
    asked = asked_question(inquiry, settings, tolerance)
    asked.first_sample = 5 * (seed % 2)
    call = 0
    while asked.is_open:
        samples = asked.next_samples if inquiry.question.functional else ()
        new = asked.take(list(replies(chance, values, call, max(1, len(samples)))))
        asked.sent += seed % 2
        call += 1
        asked.cut = chance.random() < 0.05
        if new and chance.random() < 0.1:
            asked.gates.inconsistent[new[0]] = "breaks a declaration"
        # A budget may leave values without scores.
        asked.judge(scored(chance, new[:-1] if asked.cut else new, level, step))
        thresholds = {
            name: f"{threshold.value:.9g} {threshold.is_set}" for name, threshold in asked.gates.thresholds.items()
        }
        yield f"  call {call}: new {[candidate.value for candidate in new]}, {asked.state}, {thresholds}"
        request = chance.randrange(2)
        yield (
            f"    samples {samples}; index of {request}: {asked.sample_index(request)}; change {asked.change()};"
            f" unstored {len(asked.unstored())}; empty {asked.empty}; cut {asked.cut}; agreed {asked.gates.agreed},"
            f" taken {asked.gates.taken!r}; forbidden {[candidate.value for candidate in asked.gates.forbidden]}"
        )
    asked.end()
    yield f"  starved {asked.is_starved}"
    yield from (verdict(*each) for each in asked.decisions("run"))
    given = values[:1] if seed % 3 == 0 else ()
    answer = asked.answer(given, asked.decisions("run"), judged_again=seed % 2 == 1)
    yield f"  answer {dict(answer.accepted)}, types {dict(answer.types)}, {dict(answer.gates)}, {len(answer.verdicts)} verdicts"
    yield f"  complete {answer.complete}, calls {answer.calls}, sent {answer.sent}; {answer.account}"
    asked.gates.rank()
    yield "  ranked:"
    yield from (verdict(*each) for each in asked.decisions("run"))
    yield from restored(
        settings, inquiry, tolerance, asked.state.calls_without_acceptance, [*asked.values, *asked.unread]
    )


def restored(
    settings: OracleSettings, inquiry: Inquiry, tolerance: Tolerance | None, empty: int, candidates: Sequence[Candidate]
) -> Iterator[str]:
    asked = asked_question(inquiry, settings, tolerance)
    asked.restore(QuestionState(3, empty, exhausted=True), candidates)
    yield (
        f"  restored: {asked.state}, {len(asked.values)} and {len(asked.unread)} candidates, agreed {asked.gates.agreed},"
        f" taken {asked.gates.taken!r}, open {asked.is_open}"
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_question_goes_from_its_first_call_to_its_verdicts_as_read_over(name: str) -> None:
    """New values, thresholds, limits of calls, verdicts, counts and what a later run restores are recorded."""
    lines = []
    for title, inquiry in INQUIRIES.items():
        for words, tolerance in TOLERANCES.items() if inquiry.question.functional else [("", None)]:
            for seed in range(18):
                story = list(told(SETTINGS[name], inquiry, tolerance, seed))
                lines += [f"# {title} {words} {seed}, {checksum(story)}", *(story if seed < 2 else ())]
    compared(f"questions/{name.replace(' ', '_')}", "\n".join(lines) + "\n")


@pytest.mark.parametrize(("place", "name"), [(0, "A"), (25, "Z"), (26, "A1"), (52, "A2")])
def test_the_asked_variable_is_named_by_its_place(place, name):
    """The letters A to Z stand for the first 26 arguments; a number follows them from the 27th on."""
    assert slot_name(AtomPattern("p", (*["x"] * place, None))) == name
