"""Knowledge bases of drawn rows, read in every way and merged, by checksums in `tests/golden/`."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents

from hapax.grammar.errors import HapaxError
from hapax.kb.merge import merge
from hapax.kb.records import (
    USER,
    Assessment,
    AtomPattern,
    AttemptRecord,
    CallRecord,
    Candidate,
    Decision,
    DenialRecord,
    Distribution,
    FactLabel,
    FactRecord,
    ProfileRecord,
    Question,
    QuestionState,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase
from hapax.kb.story import fact_story
from hapax.kb.verification import damages

NAMES = ("a", "b", "is_in")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")


def fill(kb: KnowledgeBase, chance: random.Random) -> None:
    """Add rows of each kind with few names and numbers, so that they often speak of the same things."""

    def name() -> str:
        return chance.choice(NAMES)

    def score() -> float:
        return chance.choice([0.25, 0.5, 0.9])

    questions = ask(kb, chance, name)
    facts = judge(kb, chance, name, score, questions)
    conclude(kb, chance, name, score, facts)


def ask(kb: KnowledgeBase, chance: random.Random, name: Callable[[], str]) -> list[Question]:
    """Add runs, rules, questions and requests."""
    for number in range(3):
        kb.start_run(
            RunRecord(name(), chance.choice(["search", "import"]), {"x": number}, name(), f"2026-01-0{number + 1}")
        )
    kb.add_rules(RuleRecord(name(), name()) for _ in range(2))
    questions = [
        Question((AtomPattern(name(), (None, name())),), name(), functional=chance.random() < 0.3) for _ in range(4)
    ]
    kb.set_question_states(
        (question, QuestionState(chance.randrange(3), chance.randrange(2), chance.random() < 0.5))
        for question in questions
    )
    times = [f"2026-01-0{1 + number % 3}T00:00:{number:02}+00:00" for number in range(12)]
    kb.record_calls(
        CallRecord(
            f"c{number}", chance.choice(["knowledge", "critic"]), chance.choice(["m@1", "m@2", "n"]),
            {"prompt": name()}, chance.choice([{"text": name()}, {"text": name(), "refused": "policy"}]),
            chance.randrange(9), chance.randrange(9), chance.choice([None, 0.5]), times[number],
        )
        for number in range(8)
    )  # fmt: skip
    for number in range(5):
        kb.attempt_log.write(
            AttemptRecord(
                f"t{number}", "critic", chance.choice(["m", "n"]), "chat/completions", times[number], None,
                chance.choice([None, "answered", "error", "unsent"]), chance.randrange(9), chance.randrange(9),
            )
        ).result()  # fmt: skip
    return questions


def judge(
    kb: KnowledgeBase,
    chance: random.Random,
    name: Callable[[], str],
    score: Callable[[], float],
    questions: Sequence[Question],
) -> list[FactRecord]:
    """Add candidates, scores, verdicts and facts, of which some are withdrawn."""
    candidates = [
        Candidate(
            chance.choice(questions).id,
            name(),
            name(),
            f"c{number}",
            number,
            chance.choice([None, None, "has a colon"]),
        )
        for number in range(6)
    ]
    kb.add_candidates(candidates)
    kb.add_assessments(
        Assessment(name(), chance.choice(["probability", "loss"]), chance.choice("mn"), score()) for _ in range(6)
    )
    kb.add_decisions(
        Decision(
            name(),
            chance.choice(["critic", "type"]),
            chance.choice(candidates).id,
            chance.random() < 0.6,
            score(),
            0.5,
            name(),
        )
        for _ in range(8)
    )
    facts = [
        FactRecord(
            name(),
            (name(), name()),
            ("T", "T"),
            chance.choice(list(Source)),
            score(),
            chance.choice(candidates).id,
            name(),
        )
        for _ in range(8)
    ]
    kb.add_facts(facts)
    kb.withdraw([fact.id for fact in facts[:2]], "wrong", chance.choice([USER, "a search"]))
    kb.restore([facts[0].id] if chance.random() < 0.5 else [])
    return facts


def conclude(
    kb: KnowledgeBase,
    chance: random.Random,
    name: Callable[[], str],
    score: Callable[[], float],
    facts: Sequence[FactRecord],
) -> None:
    """Add types, denials, statements that rest on the facts, votes and labels."""
    kb.add_type_facts(TypeFact(name(), name(), score()) for _ in range(4))
    kb.add_denials(DenialRecord(name(), (name(), name()), 0.02) for _ in range(3))
    kb.add_statements(
        StatementRecord(
            name(), chance.choice(list(Distribution)), name(), (("A", name()),), name(), name(), name(),
            {"steps": [{"goal": {"atom": ["p"]}, "by": "fact", "fact": chance.choice(facts).id}]}, score(),
        )
        for _ in range(5)
    )  # fmt: skip
    kb.add_votes(VoteRecord(name(), name(), name(), chance.choice(["yes", "no"])) for _ in range(4))
    kb.add_labels(FactLabel(name(), (name(), name()), chance.random() < 0.5, name()) for _ in range(4))
    kb.replace_labels(
        "b", [FactLabel("is_in", ("a", "b"), True, "b")], None if chance.random() < 0.5 else [facts[0].id]
    )
    kb.set_profile(ProfileRecord("m@1", "plain", {"plain": 3, "json": 1}))


def read(kb: KnowledgeBase) -> Iterator[str]:
    """The answer of every method that reads."""
    plain = (
        "runs", "rules", "predicates", "rule_texts", "attempts", "attempt_counts", "attempt_sums", "attempt_totals",
        "calls", "last_call_row", "call_counts", "refusals", "questions", "most_candidates", "facts", "fact_counts",
        "fact_indicators", "sourced_facts", "withdrawals", "withdrawn_by_user", "standing_count", "fallen_statements",
        "unrevised_statements", "type_facts", "denials", "conflicts", "statements", "statement_places", "votes",
        "derived_counts", "derived_predicates", "labels", "calibrations", "certificates", "counts", "row_counts",
        "opening_notice", "__repr__",
    )  # fmt: skip
    for name in plain:
        found = getattr(kb, name)()
        yield f"{name}: {sorted(found) if isinstance(found, frozenset) else found!r}"
    for name in NAMES:
        for method in (
            "facts",
            "denials",
            "labels",
            "votes",
            "run",
            "runs",
            "assessors",
            "candidates",
            "candidate",
            "call",
        ):
            yield f"{method} {name}: {getattr(kb, method)(name)!r}"
        yield f"{name}: {kb.fact_count(f'{name}/2', 2)} {kb.fact(name, ('a', 'b'))} {kb.type_facts(name)} {kb.type_facts(None, name)}"
        yield f"{name}: {kb.assessments(NAMES, 'probability', 'm')} {kb.decisions(run_id=name)} {kb.verdict_counts([name, 'a'])}"
        yield f"{name}: {kb.statements(run_id=name)} {kb.statements(rule=name)} {kb.statements_with([name, 'a'], most=2)}"
        yield f"story {fact_story(kb, name, ('a', 'b'))}"
    for model in ("m", "m@1", "n", "nobody"):
        found = (
            kb.newest_revision(model),
            kb.seconds_per_answer("critic", model),
            kb.profile(model),
            kb.first_knowledge_call(model),
        )
        yield f"{model}: {found}"
    for end in Distribution:
        yield f"{end}: {kb.statements(distribution=end)} {kb.statements_with(['a'], distribution=end, most=9)}"
    for question in kb.questions():
        yield f"{question.id}: {kb.question_state(question)} {kb.candidates(question)} {kb.question(question.id)}"
    yield f"{kb.candidates_of([question.id for question in kb.questions()])}"
    for statement in kb.statements():
        yield f"{statement.id}: {kb.fallen(statement)} {kb.lapsed_since(statement)}"
    yield f"{kb.calls_after(2, 3)} {kb.statements_at(kb.statement_places()[:2])} {list(damages(kb))}"


@pytest.mark.parametrize("part", range(3))
def test_drawn_knowledge_bases_are_read_and_merged_as_before(part: int, tmp_path: Path) -> None:
    """Every reading method, the report of a merge and what it leaves give what was read over."""
    lines = []
    for seed in range(part * 4, part * 4 + 4):
        chance = random.Random(f"store {seed}")
        paths = tmp_path / f"{seed}.db", tmp_path / f"{seed} other.db"
        for path in paths:
            with KnowledgeBase(path) as kb:
                fill(kb, chance)
        with KnowledgeBase(paths[0]) as kb:
            before = [TIME.sub("TIME", line).replace(str(tmp_path), "") for line in read(kb)]
            try:
                report = str(merge(kb, paths[1])).replace(str(tmp_path), "")
            except HapaxError as refusal:
                report = str(refusal).replace(str(tmp_path), "")
            after = [TIME.sub("TIME", line).replace(str(tmp_path), "") for line in read(kb)]
            lines.append(f"{seed}: {checksum(before)} {checksum(after)} {checksum(contents(kb, shown=0).splitlines())}")
        lines += [f"  {line}" for line in report.splitlines()]
        lines += [f"  {line[:200]}" for line in before] if seed == 0 else ()
    compared(f"stores/{part}", "\n".join(lines) + "\n")
