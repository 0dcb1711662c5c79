"""The knowledge base: one SQLite file that holds every answer, every score, every verdict and what followed from them.

All methods take and give frozen records, and all writing is idempotent: the same record twice is one row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from grammar.errors import HapaxError
from grammar.terms import Value
from kb import asking, exchange, merge, rows, story, values
from kb.connection import open_database, sweep, translated
from kb.records import (
    Assessment,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    PredicateRecord,
    Question,
    QuestionState,
    RuleRecord,
    RunRecord,
    StatementPlace,
    StatementRecord,
    TypeFact,
    VoteRecord,
    content_id,
)
from kb.rows import OnConflict, Table

R = TypeVar("R")

_IDS_PER_QUERY = 500
"""Below SQLite's limit on parameters in every build."""


class KnowledgeBase:
    """An open knowledge base; `path` None keeps it in memory. Use it as a context manager or `close` it.

    One object belongs to one thread, as SQLite connections do; several processes may write to one file. Raises
    HapaxError when the file is none, is of a later version, or may not be read or written.
    """

    def __init__(self, path: str | Path | None = None, *, read_only: bool = False) -> None:
        self.path = Path(path) if path is not None else None
        self.database = open_database(self.path, read_only)
        self._read_only = read_only

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def place(self) -> str:
        """What messages call this knowledge base."""
        return str(self.path) if self.path else "the knowledge base in memory"

    def close(self) -> None:
        """Leaves nothing beside the file that was not there, as far as others that use it allow."""
        self.database.close()
        if self._read_only and self.path is not None:
            sweep(self.path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writing inside becomes visible at once, or, when an exception leaves the block, not at all. Nests.

        Takes the write lock at its beginning, so what is read inside is still true when it is written.
        """
        with translated(self.place):
            if self.database.conn.in_transaction:
                with self.database.atomic():
                    yield
                return
            self.database.conn.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.database.conn.execute("COMMIT")
            except BaseException:
                self.database.rollback()
                raise

    # -- calls

    def asking(self) -> AbstractContextManager[None]:
        """Within it no other process asks models for this file; see `asking.asking`."""
        return asking.asking(self.path) if self.path else nullcontext()

    def writes_elsewhere(self) -> int:
        """Another number than before once another process, or another connection, has written to the file."""
        with translated(self.place):
            return int(self.database.conn.execute("PRAGMA data_version").fetchone()[0])

    def record_call(self, call: CallRecord) -> None:
        """Keep a paid answer; when this returns, it is on the disk. The first answer to a request stays."""
        self.record_calls([call])

    def record_calls(self, calls: Iterable[CallRecord]) -> None:
        """Keep the answers of one batch in one commit."""
        if self.database.conn.in_transaction:
            raise RuntimeError("an answer recorded inside a transaction is not safe yet; record it outside")
        self.add(rows.CALLS, calls)

    def call_counts(self) -> dict[str, int]:
        """How many requests the journal holds, by the role of the model that was asked first."""
        with translated(self.place):
            return dict(self.database.conn.execute("SELECT role, count(*) FROM calls GROUP BY 1 ORDER BY min(rowid)"))

    def refusals(self) -> list[tuple[str, str, int]]:
        """How many requests models refused for good, by role and by the reason they gave."""
        sql = (
            "SELECT role, json_extract(response, '$.refused'), count(*) FROM calls "
            "WHERE json_extract(response, '$.refused') IS NOT NULL GROUP BY 1, 2 ORDER BY min(rowid)"
        )
        with translated(self.place):
            return [(role, str(reason), number) for role, reason, number in self.database.conn.execute(sql)]

    def call(self, request_id: str) -> CallRecord | None:
        return self.calls([request_id]).get(request_id)

    def calls(self, request_ids: Iterable[str] | None = None) -> dict[str, CallRecord]:
        """The answered ones among the requests by id; None: all."""
        if request_ids is None:
            found = self.select(rows.CALLS)
        else:
            found = self.select_in(rows.CALLS, "request_id", request_ids)
        return {call.request_id: call for call in found}

    def last_call_row(self) -> int:
        """The journal's last row, as for `calls_after`; 0: it is empty."""
        with translated(self.place):
            return int(self.database.conn.execute("SELECT coalesce(max(rowid), 0) FROM calls").fetchone()[0])

    def calls_after(self, row: int, most: int) -> tuple[list[CallRecord], int]:
        """The calls in the next `most` rows of the journal behind this one (0: from its beginning), and the last row.

        Where there are no more, the row is the one given.
        """
        with translated(self.place):
            (last,) = self.database.conn.execute(
                "SELECT max(rowid) FROM (SELECT rowid FROM calls WHERE rowid > ? ORDER BY rowid LIMIT ?)", (row, most)
            ).fetchone()
        if last is None:
            return [], row
        return self.select(rows.CALLS, "WHERE calls.rowid > ? AND calls.rowid <= ?", (row, last)), last

    # -- questions and candidates

    def add_questions(self, questions: Iterable[Question]) -> None:
        """Make questions known; the state of a known one stays."""
        self._write_questions(((question, QuestionState()) for question in questions), OnConflict.KEEP)

    def set_question_state(self, question: Question, state: QuestionState) -> None:
        self.set_question_states([(question, state)])

    def set_question_states(self, states: Iterable[tuple[Question, QuestionState]]) -> None:
        """Set the journal lines of several questions at once."""
        self._write_questions(states, OnConflict.REPLACE)

    def question_state(self, question: Question) -> QuestionState:
        """The question's journal line; a question never asked has no calls."""
        return self.question_states([question]).get(question.id, QuestionState())

    def question_states(self, questions: Iterable[Question]) -> dict[str, QuestionState]:
        """The journal lines of the known ones among the questions, by question id."""
        found = self.select_in(rows.QUESTIONS, "id", (question.id for question in questions))
        return {row.question.id: row.state for row in found}

    def question(self, question_id: str) -> Question | None:
        row = self._one(rows.QUESTIONS, id=question_id)
        return row.question if row else None

    def add_candidates(self, candidates: Iterable[Candidate]) -> int:
        """Keep what models proposed; gives the number of new ones."""
        return self.add(rows.CANDIDATES, candidates)

    def candidates(self, question: Question | str) -> list[Candidate]:
        """All candidates of a question (or question id) in the order they came."""
        return self.matching(rows.CANDIDATES, question_id=question if isinstance(question, str) else question.id)

    def candidates_of(self, question_ids: Iterable[str]) -> dict[str, list[Candidate]]:
        """All candidates of these questions by question id, of each in the order they came."""
        found: dict[str, list[Candidate]] = {}
        for candidate in self.select_in(rows.CANDIDATES, "question_id", question_ids):
            found.setdefault(candidate.question_id, []).append(candidate)
        return found

    def candidate(self, candidate_id: str) -> Candidate | None:
        return self._one(rows.CANDIDATES, id=candidate_id)

    # -- scores and verdicts

    def add_assessments(self, assessments: Iterable[Assessment]) -> int:
        return self.add(rows.ASSESSMENTS, assessments)

    def assessments(self, texts: Iterable[str], measure: str, model: str) -> dict[str, Assessment]:
        """The known scores of the texts under one model, by text."""
        identities = [content_id("assessment", text, measure, model) for text in dict.fromkeys(texts)]
        return {found.text: found for found in self.select_in(rows.ASSESSMENTS, "id", identities)}

    def assessors(self, measure: str) -> list[str]:
        """The models of which scores of this measure are kept, by name."""
        with translated(self.place):
            sql = "SELECT DISTINCT model FROM assessments WHERE measure = ? ORDER BY model"
            return [model for (model,) in self.database.conn.execute(sql, (measure,))]

    def add_decisions(self, decisions: Iterable[Decision]) -> int:
        return self.add(rows.DECISIONS, decisions)

    def decisions(
        self, *, subject: str | None = None, run_id: str | None = None, gate: str | None = None
    ) -> list[Decision]:
        """The verdicts in the order they were given; the last one on a subject is the one that holds."""
        return self.matching(rows.DECISIONS, subject=subject, run_id=run_id, gate=gate)

    def verdict_counts(self, gates: Iterable[str], run_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
        """How many subjects these gates accepted and judged in these runs, by gate; of each subject the last verdict.

        A gate that judged nothing is left out.
        """
        asked, runs = list(gates), list(run_ids)
        last = (
            "SELECT gate, accepted, max(rowid) FROM decisions "  # noqa: S608 - marks only
            f"WHERE gate IN ({','.join('?' * len(asked))}) AND run_id IN (SELECT value FROM json_each(?)) "
            "GROUP BY gate, subject"
        )
        sql = f"SELECT gate, sum(accepted), count(*) FROM ({last}) GROUP BY gate"  # noqa: S608 - ours
        with translated(self.place):
            found = self.database.conn.execute(sql, (*asked, json.dumps(runs))).fetchall()
        return {gate: (accepted, judged) for gate, accepted, judged in found}

    # -- facts

    def add_facts(self, facts: Iterable[FactRecord]) -> int:
        """Hold facts true; gives how many rows changed. A given fact beats a model's, a surer one a less sure one."""
        return self.add(rows.FACTS, facts, OnConflict.BEST)

    def facts(self, predicate: str | None = None) -> list[FactRecord]:
        """All facts, or those of a predicate by name (`is_spicy`) or indicator (`is_spicy/1`)."""
        name, _, arity = (predicate or "").partition("/")
        found = self.matching(rows.FACTS, predicate=name or None)
        return [fact for fact in found if not arity or str(len(fact.arguments)) == arity]

    def fact_counts(self) -> dict[str, int]:
        """How many facts are held of each predicate, by indicator."""
        sql = "SELECT predicate, json_array_length(arguments), count(*) FROM facts GROUP BY 1, 2 ORDER BY 1, 2"
        with translated(self.place):
            return {f"{name}/{arity}": count for name, arity, count in self.database.conn.execute(sql)}

    def fact(self, predicate: str, arguments: Sequence[Value]) -> FactRecord | None:
        """The fact, if it is held. Raises `ValueRefused` for arguments that no fact can have."""
        rows.VALUES.encode(tuple(arguments))
        return self._one(rows.FACTS, id=content_id("fact", predicate, list(arguments)))

    def facts_by_id(self, fact_ids: Iterable[str]) -> dict[str, FactRecord]:
        """The held ones among the facts by id."""
        return {fact.id: fact for fact in self.select_in(rows.FACTS, "id", fact_ids)}

    def retract_fact(self, fact_id: str) -> bool:
        """No longer hold a fact true; its candidate and the decisions on it stay. False: there was none."""
        return bool(self._write("DELETE FROM facts WHERE id = ?", [(fact_id,)]))

    def add_type_facts(self, type_facts: Iterable[TypeFact]) -> int:
        return self.add(rows.TYPE_FACTS, type_facts, OnConflict.BEST)

    def type_facts(self, constant: Value | None = None, data_type: str | None = None) -> list[TypeFact]:
        identity = None if constant is None else content_id("constant", constant)
        return self.matching(rows.TYPE_FACTS, constant_id=identity, data_type=data_type)

    # -- rules, statements, runs, votes

    def add_rules(self, rules: Iterable[RuleRecord]) -> None:
        """Keep rules as their library writes them now; an earlier wording of the same name goes."""
        self.add(rows.RULES, rules, OnConflict.REPLACE)

    def rules(self) -> list[RuleRecord]:
        return self.select(rows.RULES)

    def add_predicates(self, predicates: Iterable[PredicateRecord]) -> None:
        """Keep predicates as their library declares them now."""
        self.add(rows.PREDICATES, predicates, OnConflict.REPLACE)

    def predicates(self) -> list[PredicateRecord]:
        return self.select(rows.PREDICATES)

    def add_statements(self, statements: Iterable[StatementRecord]) -> int:
        """Keep derived statements, once for each run and distribution; a later record of the same replaces."""
        return self.add(rows.STATEMENTS, statements, OnConflict.REPLACE)

    def statements(
        self, *, run_id: str | None = None, rule: str | None = None, distribution: Distribution | None = None
    ) -> list[StatementRecord]:
        return self.matching(rows.STATEMENTS, run_id=run_id, rule=rule, distribution=distribution)

    def statement_places(self) -> list[StatementPlace]:
        """Which statements are kept, without their texts and proofs, in the order they were first written."""
        sql = "SELECT key, id, rule, distribution, run_id FROM statements ORDER BY rowid"
        with translated(self.place):
            found = self.database.conn.execute(sql).fetchall()
        return [StatementPlace(key, id_, rule, Distribution(end), run) for key, id_, rule, end, run in found]

    def statements_at(self, places: Sequence[StatementPlace]) -> list[StatementRecord]:
        """The statements at these places, in their order. Raises KeyError for a place that is gone."""
        found = self.select_in(rows.STATEMENTS, "key", (one.key for one in places))
        by_key = {rows.statement_key(one): one for one in found}
        return [by_key[one.key] for one in places]

    def start_run(self, run: RunRecord) -> None:
        """Note that a run began, or goes on."""
        self.add(rows.RUNS, [run], OnConflict.REPLACE)

    def finish_run(self, run_id: str, status: str = "done", summary: Mapping[str, Any] | None = None) -> None:
        """Note how a run ended. Raises HapaxError for a run that was never started."""
        summary_text = rows.TREE.encode(summary or {})
        finished = datetime.now(UTC).isoformat(timespec="milliseconds")
        # A clock may be set back meanwhile; no run ends before it began.
        update = "UPDATE runs SET finished = max(?, started), status = ?, summary = ? WHERE id = ?"
        if not self._write(update, [(finished, status, summary_text, run_id)]):
            raise HapaxError(f"{self.place}: there is no run {run_id!r}. Start it before it is finished.")

    def runs(self, fingerprint: str | None = None) -> list[RunRecord]:
        """The runs in the order they were started first."""
        return self.matching(rows.RUNS, fingerprint=fingerprint)

    def run(self, run_id: str) -> RunRecord | None:
        return self._one(rows.RUNS, id=run_id)

    def add_votes(self, votes: Iterable[VoteRecord]) -> None:
        self.add(rows.VOTES, votes, OnConflict.REPLACE)

    def votes(self, statement_id: str | None = None) -> list[VoteRecord]:
        return self.matching(rows.VOTES, statement_id=statement_id)

    # -- the whole

    def counts(self) -> dict[str, int]:
        """Rows by table."""
        with translated(self.place):
            return {table.name: self.database.table(table.name).count for table in rows.TABLES}

    def derived_counts(self) -> dict[str, int]:
        """How many statements `hapax derive` has stored, by rule."""
        with translated(self.place):
            return dict(self.database.conn.execute("SELECT rule, statements FROM derivations ORDER BY rowid"))

    def derived_predicates(self) -> frozenset[str]:
        """Indicators of the predicates whose derived atoms are stored: those that other rules rest on."""
        with translated(self.place):
            return frozenset(one for (one,) in self.database.conn.execute("SELECT indicator FROM derived_predicates"))

    def story(self, predicate: str, arguments: Sequence[Value], texts: Iterable[str] = ()) -> story.FactStory:
        """Everything known about a fact, held or not. `texts`: claims about it whose scores belong to the story."""
        return story.tell(self, predicate, tuple(arguments), tuple(texts))

    def merge(self, other: str | Path) -> merge.MergeReport:
        """Take over everything that another knowledge base knows, all or nothing."""
        return merge.merge(self, Path(other))

    def import_facts(
        self, source: str | Path | IO[str], *, form: str | None = None, skip_faulty: bool = False
    ) -> exchange.ImportReport:
        """Given facts from CSV or JSONL; see `exchange.import_facts`."""
        return exchange.import_facts(self, source, form=form, skip_faulty=skip_faulty)

    def export_facts(self, form: str, stream: IO[str], predicate: str | None = None) -> exchange.ExportReport:
        """Facts as `prolog`, `csv` or `jsonl`; see `exchange.export_facts`."""
        return exchange.export_facts(self, form, stream, predicate)

    # -- by table, for this room

    def add(self, table: Table[R], records: Iterable[R], on_conflict: OnConflict = OnConflict.KEEP) -> int:
        """Write records in one transaction; gives how many rows of the main table are new or changed."""
        records = list(records)
        if not records:
            return 0
        with self.transaction():
            changed = [
                self._write(part.insert(on_conflict), [part.row(record) for record in records]) for part in table.tables
            ]
        return changed[0]

    def select(self, table: Table[R], condition: str = "", parameters: Sequence[object] = ()) -> list[R]:
        """Records in the order they were first written. `condition` begins with WHERE and holds no value."""
        sql = f"{table.select} {condition} ORDER BY {table.name}.rowid"
        with translated(self.place):
            found = self.database.conn.execute(sql, tuple(parameters)).fetchall()
        return [table.read(row) for row in found]

    def select_in(self, table: Table[R], column: str, wanted: Iterable[str]) -> list[R]:
        """Records whose `column` is one of the wanted texts."""
        # A half character is in no cell, and SQLite would not take it.
        keys = [key for key in dict.fromkeys(wanted) if values.refusal(key) is None]
        found: list[R] = []
        for start in range(0, len(keys), _IDS_PER_QUERY):
            chunk = keys[start : start + _IDS_PER_QUERY]
            found += self.select(table, f"WHERE {table.name}.{column} IN ({','.join('?' * len(chunk))})", chunk)
        return found

    def matching(self, table: Table[R], **columns: str | None) -> list[R]:
        """Records with these texts in these columns; None does not ask."""
        asked = {name: value for name, value in columns.items() if value is not None}
        if any(values.refusal(value) for value in asked.values()):
            return []
        condition = " AND ".join(f"{table.name}.{name} = ?" for name in asked)
        return self.select(table, f"WHERE {condition}" if condition else "", list(asked.values()))

    def _one(self, table: Table[R], **columns: str) -> R | None:
        found = self.matching(table, **columns)
        return found[0] if found else None

    def _write_questions(self, questions: Iterable[tuple[Question, QuestionState]], on_conflict: OnConflict) -> None:
        pairs = list(questions)
        with self.transaction():
            self.add(rows.QUESTIONS, [rows.QuestionRow.of(*pair) for pair in pairs], on_conflict)
            self.add(rows.PATTERN_INDEX, [entry for question, _ in pairs for entry in rows.pattern_index(question)])

    def _write(self, sql: str, parameters: Sequence[Sequence[object]]) -> int:
        with translated(self.place):
            return self.database.conn.executemany(sql, parameters).rowcount
