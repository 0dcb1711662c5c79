"""Merging knowledge bases: the order and the number of merges change nothing, and contradictions are told."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.kb import records, rows
from hapax.kb.merge import merge
from hapax.kb.store import KnowledgeBase

# Few texts and numbers, so that the two sides often speak of the same things and contradict each other.
T = st.sampled_from(["a", "b"])
N = st.none() | T
S = st.sampled_from([0.25, 0.5])
C = st.sampled_from([0, 1])
B = st.booleans()
RECORDS: dict[Any, Any] = {
    records.RULES: st.builds(records.RuleRecord, T, T, N),
    records.PREDICATES: st.builds(
        records.PredicateRecord, T, st.just(("A", "B")), st.sampled_from(["oracle", "functional"]), N
    ),
    records.TYPE_FACTS: st.builds(records.TypeFact, T, T, st.none() | S),
    records.QUESTIONS: st.builds(records.QuestionRow, st.just((records.AtomPattern("p", (None, "a")),)), T, B, C, C, B),
    records.CALLS: st.builds(records.CallRecord, T, T, T, st.just({}), st.builds(dict, text=T), C, C, st.none() | S, T),
    records.CANDIDATES: st.builds(records.Candidate, T, T, T, T, C, N),
    records.ASSESSMENTS: st.builds(records.Assessment, T, T, T, S, C, N),
    records.DECISIONS: st.builds(records.Decision, T, T, T, B, st.none() | S, st.none() | S, T, N),
    records.FACTS: st.builds(
        records.FactRecord, T, st.tuples(T, T), st.just(()), st.sampled_from(records.Source), st.none() | S, N, N
    ),
    records.STATEMENTS: st.builds(
        records.StatementRecord,
        T,
        st.sampled_from(records.Distribution),
        T,
        st.just(()),
        T,
        T,
        st.builds(dict, x=T),
        st.none() | S,
    ),
    records.RUNS: st.builds(records.RunRecord, T, T, st.just({}), T, T, N, T),
    records.VOTES: st.builds(records.VoteRecord, T, T, T, T, T),
    records.MODEL_PROFILES: st.builds(records.ProfileRecord, T, T, st.just({})),
}
CONTENTS = st.fixed_dictionaries({table: st.lists(strategy, max_size=3) for table, strategy in RECORDS.items()})


def filled(path: Path, contents: dict[Any, list[Any]]) -> Path:
    with KnowledgeBase(path) as kb:
        for table, held in contents.items():
            kb.add(table, held, rows.OnConflict.REPLACE)
    return path


def content(kb: KnowledgeBase) -> dict[str, set[tuple[object, ...]]]:
    """All rows of all tables, without their order."""
    tables = [table for table in records.TABLES if kb.has(table.name)]
    selects = {table.name: f"SELECT {', '.join(table.all_columns)} FROM {table.name}" for table in tables}  # noqa: S608
    return {name: found for name, select in selects.items() if (found := set(kb.sql(select)))}


@given(CONTENTS, CONTENTS, CONTENTS)
@settings(max_examples=cases(4), deadline=None)
def test_merging_is_idempotent_commutative_and_associative(first: Any, second: Any, third: Any) -> None:
    """Whichever file takes over the others, and however often, content and reported conflicts are the same."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [filled(Path(folder) / f"{n}.db", held) for n, held in enumerate((first, second, third))]
        merged, reports = [], []
        for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0, 1, 2), (0, 1), (1, 0)):
            with KnowledgeBase() as kb:
                reports.append([merge(kb, paths[n]) for n in order])
                merged.append(content(kb))

    assert merged[0] == merged[1] == merged[2]
    assert all(report.added == report.replaced == {} for report in reports[2][3:])
    # A file that contradicts itself is told of at each merge that it has been in.
    conflicts = [{conflict for report in both for conflict in report.conflicts} for both in reports[3:]]
    if any(conflict.kind == "predicates" for conflict in conflicts[0]):
        # Two values of a predicate are one conflict only where, by then, the predicate is functional.
        conflicts = [{conflict for conflict in found if conflict.kind != "functional"} for found in conflicts]
    assert set(map(str, conflicts[0])) == set(map(str, conflicts[1]))


def test_contradictions_are_reported(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """A functional fact with two values, and one request, score or vote told in two ways, are conflicts; a last digit is none."""
    born = records.FactRecord("was_born_in", ("Ada", 1815), (), records.Source.MODEL)
    call = records.CallRecord("r1", "knowledge", "m", {}, {"text": "yes"})
    score = records.Assessment("x", "probability", "m", 0.5)
    likelihood = records.Assessment("x", "log_likelihood", "m", -29.3844666)
    vote = records.VoteRecord("s", "entailed?", "ann", "yes")
    here: dict[Any, list[Any]] = {
        records.FACTS: [born],
        records.PREDICATES: [records.PredicateRecord("was_born_in", ("Person", "Year"), "functional")],
        records.CALLS: [call],
        records.ASSESSMENTS: [score, likelihood],
        records.VOTES: [vote],
    }
    there: dict[Any, list[Any]] = {
        records.FACTS: [replace(born, arguments=("Ada", 1816))],
        records.CALLS: [replace(call, response={"text": "no"})],
        records.ASSESSMENTS: [replace(score, score=0.6), replace(likelihood, score=-29.3844686)],
        records.VOTES: [replace(vote, answer="no")],
    }
    for table, held in here.items():
        fresh_kb.add(table, held)
    conflicts = merge(fresh_kb, filled(tmp_path / "other.db", there)).conflicts

    assert [conflict.kind for conflict in conflicts] == ["calls", "assessments", "votes", "functional"]
    assert all(word in str(conflicts[3]) for word in ("Ada", "1815", "1816"))


def test_a_fact_that_the_other_rejected_is_reported(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """Held here and rejected there: the fact stays, and the report names the reason."""
    candidate = records.Candidate(
        records.Question((records.AtomPattern("is_old", (None,)),), "City").id, "Ur", "Ur", "r1", 1
    )
    fact = records.FactRecord("is_old", ("Ur",), (), records.Source.MODEL, candidate_id=candidate.id)
    fresh_kb.add_facts([fact])
    rejected = records.Decision("run", "critic", candidate.id, False, 0.2, 0.65, "below the threshold")
    report = merge(
        fresh_kb, filled(tmp_path / "o.db", {records.CANDIDATES: [candidate], records.DECISIONS: [rejected]})
    )

    (conflict,) = report.conflicts
    assert conflict.kind == "rejected"
    assert "below the threshold" in str(conflict)
    assert fresh_kb.facts() == [fact]
