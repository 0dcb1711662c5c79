"""Merging two knowledge bases."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.grammar.errors import HapaxError
from hapax.kb import rows
from hapax.kb.merge import merge
from hapax.kb.records import (
    Assessment,
    AtomPattern,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    PredicateRecord,
    ProfileRecord,
    Question,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase

FACT = FactRecord("is_old", ("Ur",), (), Source.GIVEN)

# Few texts and numbers, so that the two sides often speak of the same things and contradict each other.
T = st.sampled_from(["a", "b"])
N = st.none() | T
S = st.sampled_from([0.25, 0.5])
C = st.sampled_from([0, 1])
RECORDS = {
    rows.RULES: st.builds(RuleRecord, T, T, N),
    rows.PREDICATES: st.builds(PredicateRecord, T, st.just(("A", "B")), st.sampled_from(["oracle", "functional"]), N),
    rows.TYPE_FACTS: st.builds(TypeFact, T, T, st.none() | S),
    rows.QUESTIONS: st.builds(
        rows.QuestionRow, st.just((AtomPattern("p", (None, "a")),)), T, st.booleans(), C, C, st.booleans()
    ),
    rows.CALLS: st.builds(CallRecord, T, T, T, st.just({}), st.builds(dict, text=T), C, C, st.none() | S, T),
    rows.CANDIDATES: st.builds(Candidate, T, T, T, T, C, N),
    rows.ASSESSMENTS: st.builds(Assessment, T, T, T, S, C, N),
    rows.DECISIONS: st.builds(Decision, T, T, T, st.booleans(), st.none() | S, st.none() | S, T, N),
    rows.FACTS: st.builds(FactRecord, T, st.tuples(T, T), st.just(()), st.sampled_from(Source), st.none() | S, N, N),
    rows.STATEMENTS: st.builds(
        StatementRecord, T, st.sampled_from(Distribution), T, st.just(()), T, T, T, st.builds(dict, x=T), st.none() | S
    ),
    rows.RUNS: st.builds(RunRecord, T, T, st.just({}), T, T, N, T),
    rows.VOTES: st.builds(VoteRecord, T, T, T, T, T),
    rows.PROFILES: st.builds(ProfileRecord, T, T, st.just({})),
}
CONTENTS = st.fixed_dictionaries({table: st.lists(records, max_size=3) for table, records in RECORDS.items()})


def filled(path: Path, contents: dict[rows.TableSchema[object], list[object]]) -> Path:
    with KnowledgeBase(path) as kb:
        for table, records in contents.items():
            kb.add(table, records, rows.OnConflict.REPLACE)
    return path


def content(kb: KnowledgeBase) -> dict[str, set[tuple[object, ...]]]:
    """All rows of all tables, without their order."""
    return {table.name: {tuple(row.values()) for row in kb.database.table(table.name).rows} for table in rows.TABLES}


@given(CONTENTS, CONTENTS, CONTENTS)
@settings(max_examples=cases(5), deadline=None)
def test_merging_is_idempotent_commutative_and_associative(first_records, second_records, third_records):
    """Whichever file takes over the other, and however often, the content is the same."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            filled(Path(folder) / f"{n}.db", records)
            for n, records in enumerate((first_records, second_records, third_records))
        ]
        merged = []
        reports = []
        for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0, 1, 2)):
            with KnowledgeBase() as kb:
                reports.append([merge(kb, paths[n]) for n in order])
                merged.append(content(kb))

    assert merged[0] == merged[1] == merged[2]
    assert all(report.added == report.replaced == {} for report in reports[2][3:])


@given(CONTENTS, CONTENTS)
@settings(max_examples=cases(3), deadline=None)
def test_both_sides_report_the_same_conflicts(first_records, second_records):
    """Contradictions between two files do not depend on the direction of the merge."""
    conflicts = []
    for first, second in ((first_records, second_records), (second_records, first_records)):
        with tempfile.TemporaryDirectory() as folder:
            path = filled(Path(folder) / "other.db", second)
            with KnowledgeBase(filled(Path(folder) / "this.db", first)) as kb:
                conflicts.append(sorted(map(str, merge(kb, path).conflicts)))

    assert conflicts[0] == conflicts[1]


def test_the_report_counts_what_is_new(fresh_kb, tmp_path):
    """Rows are counted by table: the new ones and those that gave way."""
    path = filled(
        tmp_path / "other.db",
        {rows.FACTS: [FACT, replace(FACT, arguments=("Troy",))], rows.TYPE_FACTS: [TypeFact("Ur", "City")]},
    )
    fresh_kb.add_facts([replace(FACT, source=Source.MODEL)])
    first, second = merge(fresh_kb, path), merge(fresh_kb, str(path))

    assert first.added == {"facts": 1, "type_facts": 1, "constants": 1}
    assert first.replaced == {"facts": 1}
    assert (second.added, second.replaced, second.conflicts) == ({}, {}, ())
    assert fresh_kb.fact("is_old", ("Ur",)) == FACT


def test_contradictions_are_reported(fresh_kb, tmp_path):
    """A functional fact with two values, and one request, score, vote or rule told in two ways, are conflicts."""
    born = FactRecord("was_born_in", ("Ada", 1815), (), Source.MODEL)
    functional = PredicateRecord("was_born_in", ("Person", "Year"), "functional")
    call = CallRecord("r1", "knowledge", "m", {}, {"text": "yes"})
    score = Assessment("x", "probability", "m", 0.5)
    vote = VoteRecord("s", "entailed?", "ann", "yes")
    here = {
        rows.FACTS: [born],
        rows.PREDICATES: [functional],
        rows.CALLS: [call],
        rows.ASSESSMENTS: [score],
        rows.VOTES: [vote],
    }
    there = {
        rows.FACTS: [replace(born, arguments=("Ada", 1816))],
        rows.CALLS: [replace(call, response={"text": "no"})],
        rows.ASSESSMENTS: [replace(score, score=0.6)],
        rows.VOTES: [replace(vote, answer="no")],
    }
    for table, records in here.items():
        fresh_kb.add(table, records)
    conflicts = merge(fresh_kb, filled(tmp_path / "other.db", there)).conflicts

    assert [conflict.kind for conflict in conflicts] == ["calls", "assessments", "votes", "functional"]
    assert str(conflicts[0]) == 'calls r1: {"text":"no"} / {"text":"yes"}'
    assert str(conflicts[3]) == 'functional was_born_in("Ada", _): 1815 / 1816'


def test_scores_that_differ_in_their_last_digits_are_no_conflict(fresh_kb, tmp_path):
    """Two machines compute the same score slightly differently."""
    ours = [Assessment("x", "probability", "m", 0.5), Assessment("x", "log_likelihood", "m", -29.3844666)]
    theirs = [replace(ours[0], score=0.5000001), replace(ours[1], score=-29.3844686)]
    fresh_kb.add_assessments(ours)

    assert merge(fresh_kb, filled(tmp_path / "o.db", {rows.ASSESSMENTS: theirs})).conflicts == ()


def test_a_fact_that_the_other_rejected_is_reported(fresh_kb, tmp_path):
    """Held here and rejected there: the fact stays, and the report names the reason."""
    candidate = Candidate(Question((AtomPattern("is_old", (None,)),), "City").id, "Ur", "Ur", "r1", 1)
    fact = replace(FACT, source=Source.MODEL, candidate_id=candidate.id)
    fresh_kb.add_facts([fact])
    rejected = Decision("run", "critic", candidate.id, False, 0.2, 0.65, "below the threshold")
    report = merge(fresh_kb, filled(tmp_path / "o.db", {rows.CANDIDATES: [candidate], rows.DECISIONS: [rejected]}))

    assert [str(conflict) for conflict in report.conflicts] == [
        'rejected is_old("Ur"): held / rejected: below the threshold'
    ]
    assert fresh_kb.facts() == [fact]


def test_merging_a_file_with_itself_changes_nothing(tmp_path):
    """The file's own path, written in another way, is recognised."""
    path = filled(tmp_path / "hapax.db", {rows.FACTS: [FACT]})
    with KnowledgeBase(path) as kb:
        report = merge(kb, tmp_path / ".." / tmp_path.name / "hapax.db")

        assert (report.added, report.replaced) == ({}, {})
        assert kb.facts() == [FACT]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE facts SET arguments = '5'", "facts.arguments: the cell '5' was not written"),
        ("UPDATE facts SET arguments = '[\"Troy\"]'", "the identity belongs to other content"),
        ("UPDATE facts SET id = 'x'", "the identity belongs to other content"),
    ],
)
def test_a_file_that_was_tampered_with_is_not_merged(fresh_kb, tmp_path, statement, message):
    """A strange cell or a forged identity stops the merge before anything is taken over."""
    path = filled(tmp_path / "other.db", {rows.FACTS: [FACT], rows.RULES: [RuleRecord("r", "text")]})
    with KnowledgeBase(path) as kb:
        kb.database.execute(statement)
    with pytest.raises(HapaxError) as caught:
        merge(fresh_kb, path)

    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert not any(fresh_kb.counts().values())


def test_a_merge_that_fails_changes_nothing(fresh_kb, tmp_path):
    """A missing file is told, and afterwards the knowledge base still works."""
    with pytest.raises(HapaxError, match="there is no such knowledge base"):
        merge(fresh_kb, tmp_path / "none.db")
    fresh_kb.add_facts([FACT])

    assert merge(fresh_kb, filled(tmp_path / "o.db", {rows.FACTS: [FACT]})).added == {}
