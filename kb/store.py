"""The knowledge base: one SQLite file with every answer, score, verdict, fact and statement.

All methods take and return frozen records, and all writing is idempotent: writing a record twice leaves one row.
"""

from __future__ import annotations

import html
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Value
from hapax.grammar.writing.notebook import html_table
from hapax.grammar.writing.words import counted
from hapax.kb import rows
from hapax.kb.atoms.facts import FactRelations
from hapax.kb.call_journal import CallJournal
from hapax.kb.exchange.values import check_fact, encode_value, refusal
from hapax.kb.files import asking, spill, system, unfinished
from hapax.kb.judgement_records import (
    CALIBRATIONS,
    CERTIFICATES,
    DRAWN_ITEMS,
    JUDGING_DRAWS,
    LABELS,
    VOTES,
    CalibrationRecord,
    CertificateRecord,
    DrawnItem,
    FactLabel,
    JudgingDraw,
    VoteRecord,
)
from hapax.kb.record_store import R
from hapax.kb.records import (
    ASSESSMENTS,
    CANDIDATES,
    DECISIONS,
    DENIALS,
    FACTS,
    LEFT_OUT_ROWS,
    QUESTIONS,
    RULE_TEXTS,
    RUNS,
    STATEMENTS,
    WITHDRAWALS,
    Assessment,
    Candidate,
    Decision,
    DenialRecord,
    Distribution,
    FactRecord,
    LeftOutRow,
    Outcome,
    Question,
    QuestionRow,
    QuestionState,
    RuleTextRecord,
    RunRecord,
    Source,
    StatementRecord,
    Withdrawal,
    content_id,
    text_id,
)
from hapax.kb.rows import OnConflict, TableSchema
from hapax.kb.schema import FACTS_STATE, INDEX_PROOFS, TABLES

_EXPERIMENT = (
    "(runs.command = 'evaluate instruct' OR coalesce(json_extract(runs.settings, '$.critic'), 1) = 0 "
    "OR coalesce(json_extract(runs.settings, '$.likelihood'), 'model') <> 'model')"
)
"""SQL condition: in this run a gate was changed or left out on purpose."""

# Other runs' gates do not decide on the statements of an experiment.
_FALLEN = (
    "SELECT rests.key AS key, rests.fact_id AS fact_id "  # noqa: S608  ours
    # CROSS JOIN keeps this order: SQLite would read the facts of all statements, and withdrawals are few.
    "FROM withdrawals CROSS JOIN statement_facts AS rests ON rests.fact_id = withdrawals.fact_id "
    "CROSS JOIN statements ON statements.key = rests.key LEFT JOIN runs ON runs.id = statements.run_id "
    "WHERE withdrawals.restored IS NULL "
    f"AND (withdrawals.author = 'user' OR runs.id IS NULL OR NOT {_EXPERIMENT})"
)

_LAPSED = "SELECT key FROM statement_facts WHERE fact_id = '' AND lapsed IS NOT NULL"

_GONE = f"SELECT key FROM ({_FALLEN}) UNION {_LAPSED}"  # noqa: S608  ours

STANDS = f"key NOT IN ({_GONE})"
"""As STANDING, in a query with rows of `statements` alone."""

STANDING = f"statements.{STANDS}"
"""SQL condition on rows of `statements`: all facts of the proof stand, and no later fact refutes it."""

GONE_ROWS = f"SELECT rowid FROM statements WHERE key IN ({_GONE})"  # noqa: S608  ours
"""SQL for the numbers of the rows of `statements` that do not stand."""

_REPEATED = (
    "SELECT later.rowid FROM (SELECT id, min(rowid) AS first FROM statements "  # noqa: S608  ours
    f"WHERE rowid NOT IN ({GONE_ROWS}) GROUP BY id HAVING count(*) > 1) AS found "
    "CROSS JOIN statements AS later ON later.id = found.id WHERE later.rowid > found.first"
)

FIRST_STANDING = f"statements.rowid NOT IN ({_REPEATED} UNION ALL {GONE_ROWS})"
"""SQL condition like STANDING that also leaves out all rows of a statement but the first.

It reads the index of ids once instead of a row of the table for each statement, so that a page far down is found soon.
"""

_STANDING_COUNT = (
    "SELECT (SELECT count(DISTINCT id) FROM statements) - (SELECT count(DISTINCT gone.id) FROM statements AS gone "  # noqa: S608  ours
    f"WHERE gone.key IN ({_GONE}) "
    f"AND NOT EXISTS (SELECT 1 FROM statements WHERE statements.id = gone.id AND {STANDING}))"
)

INTERRUPTED_SECONDS = 0.1
"""Seconds that an interrupted command waits for another process's lock."""


def _now() -> str:
    return system.now().isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """Key of a stored statement. The same statement has a key for each run and distribution that derived it."""

    key: str
    id: str
    rule: str
    distribution: Distribution
    run_id: str
    text_id: str
    """See `text_id`."""


@checked
class KnowledgeBase(CallJournal):
    """An open knowledge base, with methods to add and read the records of each table.

    One object belongs to one thread, as SQLite connections do; several processes may write to one file. Files of facts
    are read in `tables` and written in `export`, merging is in `merge`, the history of one fact in `story`.
    """

    def __init__(self, path: str | Path | None = None, *, read_only: bool = False) -> None:
        began = path is not None and not Path(path).exists()
        super().__init__(path, read_only=read_only)
        self._began = began
        self.progress: Callable[[int, int], None] | None = None
        """Called during an import with how much of the file is read, and of how much: bytes of a text, else rows."""
        if self.path is not None and not read_only:
            unfinished.sweep(self.path.resolve().parent)
            # If the file is locked again, or a process is asking for it, they come home later.
            with suppress(HapaxError):
                self.bring_home(0.0)

    def __exit__(self, *fault: object) -> None:
        if self._attempt_log is not None and any(isinstance(part, KeyboardInterrupt) for part in fault):
            self._attempt_log.close(INTERRUPTED_SECONDS)
        if self._began and fault[0] is not None:
            self._take_back()
        self.close()

    def _take_back(self) -> None:
        """Remove the file that this object has made, if nothing is in it and no other process has it open.

        A command that fails at its start leaves no file, so that a later one says that there is none.
        """
        if self._attempt_log is not None:
            self._attempt_log.close()
        assert self.path is not None  # noqa: S101  only a file is begun
        with suppress(HapaxError, sqlite3.Error, OSError):
            counts = self.row_counts()
            # What did not leave, or was answered by an error, cost nothing.
            outcomes = self.attempt_counts()
            counts["attempts"] -= outcomes.get(Outcome.UNSENT, 0) + outcomes.get(Outcome.ERROR, 0)
            self._check_place()
            if any(counts.values()) or spill.spill_path(self.path).exists():
                return
            # SQLite ends the log only for the sole connection to a file.
            self.sql("PRAGMA busy_timeout = 0")
            self.sql("PRAGMA journal_mode = DELETE")
            with asking.asking(self.path, 0.0):
                system.remove(self.path.resolve())

    def close(self) -> None:
        """Close the file, and remove its -wal and -shm files unless another process uses them."""
        if self._attempt_log is not None:
            self._attempt_log.close()
        super().close()

    def __repr__(self) -> str:
        try:
            counts = self.counts()
        except HapaxError:
            return f"<knowledge base {self.path or 'in memory'}, closed>"
        facts, statements = counted(counts["facts"], "fact"), counted(counts["statements"], "statement")
        return f"<knowledge base {self.path or 'in memory'}: {facts}, {statements}>"

    def _repr_html_(self) -> str:
        """A table of the predicates with their numbers of facts, for notebooks."""
        return f"<p>{html.escape(repr(self))}</p>" + html_table(
            ("predicate", "facts"), list(self.fact_counts().items())
        )

    def add(self, table: TableSchema[R], records: Iterable[R], on_conflict: OnConflict | None = None) -> int:
        """Like `RecordStore.add`; of two facts with the same arguments the better one stays."""
        if table is not FACTS:
            return super().add(table, records, on_conflict)
        with self.transaction():
            return self.relations.add(record for record in records if isinstance(record, FactRecord))

    # -- runs

    def finish_run(self, run_id: str, status: str = "done", summary: Mapping[str, Any] | None = None) -> None:
        """Record how a run ended. Raises HapaxError for a run that was never started."""
        summary_text = rows.TREE.encode(summary or {})
        finished = system.now().isoformat(timespec="milliseconds")
        # The clock may have been set back; no run may end before it began.
        update = "UPDATE runs SET finished = max(?, started), status = ?, summary = ? WHERE id = ?"
        # Whoever was interrupted does not wait for another process.
        with self.transaction(INTERRUPTED_SECONDS if status == "interrupted" else None):
            is_known = self.write(update, [(finished, status, summary_text, run_id)])
        if not is_known:
            raise HapaxError(f"{self.place}: there is no run {run_id!r}. Start the run before finishing it.")
        if self.path is not None and status != "interrupted":
            # The file may have been locked whenever they could have come home; a process that asks brings them home.
            with suppress(HapaxError), asking.asking(self.path, 0.0):
                self.bring_home()

    def runs(self, fingerprint: str | None = None) -> list[RunRecord]:
        """Runs in the order they were first started."""
        return self.matching(RUNS, fingerprint=fingerprint)

    # -- rules and predicates

    def set_rule_texts(self, texts: Iterable[RuleTextRecord]) -> None:
        """Store the rule files that are used from now on, instead of those before."""
        with self.transaction():
            # Every row; `write` executes a statement once for each set of parameters.
            self.write("DELETE FROM rule_texts WHERE name IS NOT ?", [(None,)])
            self.add(RULE_TEXTS, texts)

    def rule_texts(self) -> list[RuleTextRecord]:
        """The rule files that were last used on the knowledge base, in the order of their command."""
        return self.select(RULE_TEXTS)

    def set_left_out(self, file: str, left_out: Sequence[LeftOutRow]) -> None:
        """Store the rows of a file that its import left out, instead of those of an earlier import."""
        with self.transaction():
            if self.has(LEFT_OUT_ROWS.name) and not refusal(file):
                self.write("DELETE FROM left_out_rows WHERE file = ?", [(file,)])
            self.add(LEFT_OUT_ROWS, left_out)

    # -- calls to models

    def asking(self) -> AbstractContextManager[None]:
        """Exclusive lock on asking models for this file; see `asking.asking`."""
        return asking.asking(self.path) if self.path else nullcontext()

    def writes_elsewhere(self) -> int:
        """Counter that changes when another connection or process writes to the file."""
        return int(self.sql("PRAGMA data_version")[0][0])

    # -- questions and candidates

    def add_questions(self, questions: Iterable[Question]) -> None:
        """Store questions; one that is known keeps its state."""
        self.set_question_states(((question, QuestionState()) for question in questions), OnConflict.KEEP)

    def set_question_states(
        self, states: Iterable[tuple[Question, QuestionState]], on_conflict: OnConflict = OnConflict.REPLACE
    ) -> None:
        """Store questions with their states, replacing earlier states."""
        records = []
        for question, state in states:
            asked = (question.patterns, question.data_type, question.functional)
            records.append(QuestionRow(*asked, state.calls, state.calls_without_acceptance, state.exhausted))
        self.add(QUESTIONS, records, on_conflict)

    def question_state(self, question: Question) -> QuestionState:
        """State of a question; one never asked has no calls."""
        return self.question_states([question]).get(question.id, QuestionState())

    def question_states(self, questions: Iterable[Question]) -> dict[str, QuestionState]:
        """States of the known questions among these, by question id."""
        found = self.select_in(QUESTIONS, "id", (question.id for question in questions))
        return {row.question.id: row.state for row in found}

    def question(self, question_id: str) -> Question | None:
        row = self.first(QUESTIONS, id=question_id)
        return row.question if row else None

    def questions(self) -> list[Question]:
        """All questions, in the order they were first asked."""
        return [row.question for row in self.select(QUESTIONS)]

    def candidates(self, question: Question | str) -> list[Candidate]:
        """All candidates of a question (or question id), in the order they were proposed."""
        return self.matching(CANDIDATES, question_id=question if isinstance(question, str) else question.id)

    def candidates_of(self, question_ids: Iterable[str]) -> dict[str, list[Candidate]]:
        """All candidates of these questions by question id, each list in the order they were proposed."""
        found: dict[str, list[Candidate]] = {}
        for candidate in self.select_in(CANDIDATES, "question_id", question_ids):
            found.setdefault(candidate.question_id, []).append(candidate)
        return found

    # -- assessments and decisions

    def assessments(self, texts: Iterable[str], measure: str, model: str) -> dict[str, Assessment]:
        """Known scores of the texts under one model, by text."""
        identities = [content_id("assessment", text, measure, model) for text in dict.fromkeys(texts)]
        return {assessment.text: assessment for assessment in self.select_in(ASSESSMENTS, "id", identities)}

    def assessors(self, measure: str) -> list[str]:
        """Names of the models with stored scores of this measure."""
        sql = "SELECT DISTINCT model FROM assessments WHERE measure = ? ORDER BY model"
        return [model for (model,) in self.sql(sql, (measure,))]

    def decisions(
        self, *, subject: str | None = None, run_id: str | None = None, gate: str | None = None
    ) -> list[Decision]:
        """Decisions in the order they were made; the last one on a subject is valid."""
        return self.matching(DECISIONS, subject=subject, run_id=run_id, gate=gate)

    # -- facts

    @cached_property
    def relations(self) -> FactRelations:
        """The tables of facts."""
        return FactRelations(self)

    def index_facts(self, indicators: Iterable[str]) -> None:
        """Index the facts of large predicates by each argument, so that a question may begin anywhere.

        Does nothing if the file may not be written, or if another process is writing to it.
        """
        waiting = [name for name in dict.fromkeys(indicators) if self.relations.lacks_index(name)]
        if not waiting:
            return
        if self.path is None or not self.is_read_only:
            with self.transaction():
                self.relations.index(waiting)
            return
        # A second connection writes, and gives up at once where it cannot: without the index a goal is only slower.
        with suppress(HapaxError), KnowledgeBase(self.path) as writer, writer.transaction(seconds=0):
            writer.relations.index(waiting)

    def add_facts(self, facts: Iterable[FactRecord]) -> int:
        """Store facts; a given fact replaces a model's, a likelier one a less likely. Returns the number of changes.

        A fact that was withdrawn stands again, unless it is a model's and the user withdrew it. Raises FactRefused, and
        then stores nothing, for a record that cannot be a fact.
        """
        facts = list(facts)
        for fact in facts:
            check_fact(fact.predicate, fact.arguments, fact.types)
        with self.transaction():
            refused = self.withdrawn_by_user()
            added = [fact for fact in facts if fact.source is Source.GIVEN or not refused or fact.id not in refused]
            self._restored(fact.id for fact in added)
            return self.add(FACTS, added)

    def facts(self, predicate: str | None = None) -> list[FactRecord]:
        """All facts, or those of a predicate by name (`is_spicy`) or indicator (`is_spicy/1`)."""
        relations = self.relations.all() if predicate is None else self.relations.named(predicate)
        found = chain.from_iterable(map(self.relations.records, relations))
        return [fact for _, fact in sorted(found, key=itemgetter(0))]

    def fact_counts(self) -> dict[str, int]:
        """Number of facts by predicate indicator."""
        counts = {relation.indicator: self.relations.count(relation) for relation in self.relations.all()}
        return {name: counts[name] for name in sorted(counts) if counts[name]}

    def fact_count(self, indicator: str, at_most: int) -> int:
        """Number of facts of a predicate, counted up to this many."""
        relation = self.relations.get(indicator)
        return self.relations.count(relation, at_most) if relation else 0

    def texts_beginning(self, start: str, most: int = 50) -> list[str]:
        """The first texts among all stored values that begin so."""
        if refusal(start):
            return []
        # As JSON; GLOB tells capital letters from small ones, and an index finds the beginning.
        begin = encode_value(start)[:-1].translate({ord(sign): f"[{sign}]" for sign in "*?["})
        sql = "SELECT symbol FROM symbols WHERE symbol GLOB ? ORDER BY symbol LIMIT ?"
        return [str(rows.VALUE.decode(text)) for (text,) in self.sql(sql, (f"{begin}*", most))]

    def fact_indicators(self, without: Collection[str] = ()) -> list[str]:
        """Indicators of the predicates that have facts, but for the names `without`."""
        filled = (relation for relation in self.relations.all() if self.relations.count(relation, 1))
        return [relation.indicator for relation in filled if relation.predicate not in without]

    def fact(self, predicate: str, arguments: Sequence[Value]) -> FactRecord | None:
        """The fact, if it is stored. Raises `ValueRefused` for arguments that no fact can have."""
        # For its error alone.
        rows.VALUES.encode(tuple(arguments))
        return next(self.relations.at(f"{predicate}/{len(arguments)}", dict(enumerate(arguments))), None)

    def facts_by_id(self, fact_ids: Iterable[str]) -> dict[str, FactRecord]:
        """The stored facts among these ids."""
        return {fact.id: fact for fact in self.relations.by_id(list(fact_ids))}

    # -- withdrawn facts

    def withdraw(self, facts: Iterable[FactRecord], reason: str, author: str) -> int:
        """Withdraw facts with the reason, and return their number; candidates, decisions and proofs stay.

        `author`: see `Withdrawal`. Statements that rest on a withdrawn fact are no longer among `statements()`.
        """
        with self.transaction():
            stored = [found for fact in facts if (found := self.fact(fact.predicate, fact.arguments)) is not None]
            now = _now()
            self.add(WITHDRAWALS, [Withdrawal.of(fact, reason, author, now) for fact in stored])
            return self.relations.remove(stored)

    def restore(self, fact_ids: Iterable[str]) -> int:
        """Undo withdrawals: the facts stand again as they were. Returns the number of facts that were withdrawn."""
        with self.transaction():
            wanted = set(fact_ids)
            facts = {item.id: item.fact for item in self.withdrawals() if item.id in wanted}
            self._restored(facts)
            self.add(FACTS, facts.values())
        return len(facts)

    def settle_withdrawals(self) -> None:
        """End the withdrawals of facts that stand."""
        self._restored(item.fact_id for item in self.withdrawals() if self.fact(item.predicate, item.arguments))

    def _restored(self, fact_ids: Iterable[str]) -> None:
        now = _now()
        update = "UPDATE withdrawals SET restored = ? WHERE fact_id = ? AND restored IS NULL"
        self.write(update, [(now, fact_id) for fact_id in fact_ids])

    def withdrawals(self, fact_id: str | None = None, *, undone: bool = False) -> list[Withdrawal]:
        """Withdrawals in the order they were made, or those of one fact; `undone`: with those that were undone."""
        found = self.matching(WITHDRAWALS, fact_id=fact_id)
        return [item for item in found if undone or item.restored is None]

    def withdrawn_by_user(self) -> frozenset[str]:
        """Ids of the facts that the user withdrew, which no search brings back."""
        sql = "SELECT fact_id FROM withdrawals WHERE restored IS NULL AND author = 'user'"
        return frozenset(fact_id for (fact_id,) in self.sql(sql))

    def fallen(self, statement: StatementRecord) -> list[Withdrawal]:
        """The withdrawals of facts that a stored statement's proof rests on; none if the statement stands."""
        sql = f"SELECT DISTINCT fact_id FROM ({_FALLEN}) WHERE key = ?"  # noqa: S608  ours
        found: list[Withdrawal] = []
        for (fact_id,) in self.sql(sql, (statement.key,)):
            found += self.withdrawals(fact_id)
        return found

    def standing_count(self) -> int:
        """Number of statements of searches that stand, each once, by the index of ids alone where none is gone."""
        return int(self.sql(_STANDING_COUNT)[0][0])

    def fallen_statements(self) -> list[StatementRecord]:
        """Stored statements that do not stand: proofs rest on facts that were withdrawn, or later facts refute them."""
        return self.select(STATEMENTS, f"WHERE NOT ({STANDING})")

    def lapsed_since(self, statement: StatementRecord) -> str | None:
        """Since when facts that were added refute a stored statement (ISO 8601); None if none do."""
        sql = "SELECT lapsed FROM statement_facts WHERE fact_id = '' AND key = ?"
        return next((lapsed for (lapsed,) in self.sql(sql, (statement.key,))), None)

    def unrevised_statements(self) -> list[StatementRecord]:
        """Statements that later facts could refute, or no longer refute, and which were not proved since facts changed.

        Not those of experiments, whose facts other runs may not have.
        """
        keys = (
            "SELECT rests.key FROM statement_facts AS rests JOIN statements USING (key) "  # noqa: S608
            "LEFT JOIN runs ON runs.id = statements.run_id "
            f"WHERE rests.fact_id = '' AND rests.checked IS NOT {FACTS_STATE} "
            f"AND (runs.id IS NULL OR NOT {_EXPERIMENT})"
        )
        return self.select(STATEMENTS, f"WHERE statements.key IN ({keys})")

    def lapse(self, statements: Iterable[StatementRecord]) -> None:
        """Store that statements cannot be proved from the facts that stand now; storing them again ends that."""
        now = _now()
        self.write(
            # A statement that had lapsed before keeps its first time.
            f"UPDATE statement_facts SET checked = {FACTS_STATE}, lapsed = coalesce(lapsed, ?) "  # noqa: S608  ours
            "WHERE fact_id = '' AND key = ?",
            [(now, statement.key) for statement in statements],
        )

    # -- denials and conflicts

    def denials(self, predicate: str | None = None) -> list[DenialRecord]:
        """The denied atoms, or those of a predicate by indicator."""
        name, _, arity = (predicate or "").partition("/")
        found = self.matching(DENIALS, predicate=name or None)
        return [denial for denial in found if not arity or str(len(denial.arguments)) == arity]

    # -- statements and votes on them

    def add_statements(self, statements: Iterable[StatementRecord]) -> int:
        """Store derived statements, one row for each run and distribution; a later record replaces an earlier one."""
        records = list(statements)
        with self.transaction():
            changed = self.add(STATEMENTS, records)
            self._index_proofs([record.key for record in records])
        return changed

    def replace_statements(self, run_id: str, rule: str, statements: Sequence[StatementRecord]) -> None:
        """Store all statements of a rule in a run, in the place of those that an earlier pass of the run stored."""
        kept = {record.key for record in statements}
        with self.transaction():
            stored = self.sql("SELECT key FROM statements WHERE run_id = ? AND rule = ?", (run_id, rule))
            gone = [(key,) for (key,) in stored if key not in kept]
            for table in ("statement_facts", "statements"):
                self.write(f"DELETE FROM {table} WHERE key = ?", gone)  # noqa: S608  ours
            self.add_statements(statements)

    def _index_proofs(self, keys: Iterable[str]) -> None:
        """Store what the proofs of these statements rest on."""
        wanted = [(key,) for key in keys]
        self.write("DELETE FROM statement_facts WHERE key = ?", wanted)
        for index in INDEX_PROOFS:
            self.write(f"{index} AND statements.key = ?", wanted)

    def statements(
        self, *, run_id: str | None = None, rule: str | None = None, distribution: Distribution | None = None
    ) -> list[StatementRecord]:
        """The statements that stand: all facts of their proofs do. See `fallen_statements` for the others."""
        wanted = {"run_id": run_id, "rule": rule, "distribution": distribution}
        columns = {name: value for name, value in wanted.items() if value is not None}
        if any(refusal(value) for value in columns.values()):
            return []
        condition = " AND ".join([STANDING, *(f"statements.{name} = ?" for name in columns)])
        return self.select(STATEMENTS, f"WHERE {condition}", list(columns.values()))

    def statement_places(self) -> list[StatementPlace]:
        """Keys of the statements that stand, without texts and proofs, in the order they were first written."""
        columns = "key, id, rule, distribution, run_id, premise, conclusion"
        found = self.sql(f"SELECT {columns} FROM statements WHERE {STANDING} ORDER BY rowid")  # noqa: S608  ours
        places = []
        for key, identity, rule, distribution, run, *clauses in found:
            places.append(StatementPlace(key, identity, rule, Distribution(distribution), run, text_id(*clauses)))
        return places

    def statements_at(self, places: Sequence[StatementPlace]) -> list[StatementRecord]:
        """Statements at these places, in their order. Raises KeyError for a place that no longer exists."""
        found = self.select_in(STATEMENTS, "key", (place.key for place in places))
        by_key = {statement.key: statement for statement in found}
        return [by_key[place.key] for place in places]

    def votes(self, statement_id: str | None = None) -> list[VoteRecord]:
        return self.matching(VOTES, statement_id=statement_id)

    def voted_texts(self) -> list[list[str]]:
        """The ids of the statements that stand and read like one with votes, in a list for each text."""
        voted = "SELECT premise, conclusion FROM statements WHERE id IN (SELECT statement_id FROM votes)"
        found = self.sql(
            f"SELECT json_group_array(DISTINCT id) FROM statements WHERE {STANDING} "  # noqa: S608  ours
            f"AND (premise, conclusion) IN ({voted}) GROUP BY premise, conclusion"
        )
        return [json.loads(identities) for (identities,) in found]

    # -- results of `hapax derive`, see `relations`

    def derived_counts(self) -> dict[str, int]:
        """Number of stored derived statements by rule."""
        return dict(self.sql("SELECT name, coalesce(count, 0) FROM derivations WHERE kind = 'rule' ORDER BY number"))

    def derived_predicates(self) -> dict[str, int]:
        """Number of stored derived atoms of the predicates that other rules use as premises, by indicator."""
        return dict(self.sql("SELECT name, coalesce(count, 0) FROM derivations WHERE kind = 'predicate'"))

    # -- labels, calibrations and certificates

    def replace_labels(self, source: str, labels: Sequence[FactLabel], asked: Collection[str] | None = None) -> None:
        """Store the labels of a source in the place of its earlier ones; only of the facts `asked` about, if given."""
        known = {label.id for label in labels}
        with self.transaction():
            for label in self.labels(source):
                if label.id not in known and (asked is None or label.fact_id in asked):
                    self.write("DELETE FROM fact_labels WHERE id = ?", [(label.id,)])
            self.add(LABELS, labels)

    def labels(self, source: str | None = None) -> list[FactLabel]:
        """The labels of facts, or those of one source."""
        return self.matching(LABELS, source=source)

    def calibrations(self) -> list[CalibrationRecord]:
        return self.select(CALIBRATIONS)

    def certificates(self, run_id: str | None = None) -> list[CertificateRecord]:
        """All certificates, or those of a run."""
        return self.matching(CERTIFICATES, run_id=run_id)

    # -- draws of items to judge

    def set_judging_draw(self, draw: JudgingDraw, items: Iterable[DrawnItem]) -> None:
        """Store a draw in the place of an earlier one of its kind; items that it has already stay as they are."""
        with self.transaction():
            self.make(JUDGING_DRAWS.name)
            self.make(DRAWN_ITEMS.name)
            self.sql(
                "DELETE FROM drawn_items WHERE salt NOT IN (SELECT salt FROM judging_draws WHERE kind <> ?)"
                " AND salt <> ?",
                (draw.kind, draw.salt),
            )
            self.add(JUDGING_DRAWS, [draw])
            self.add(DRAWN_ITEMS, items)

    # -- all tables

    def counts(self) -> dict[str, int]:
        """Number of rows by table; of statements those that stand."""
        ((fallen,),) = self.sql(f"SELECT count(*) FROM statements WHERE NOT ({STANDING})")  # noqa: S608  ours
        counts = self.row_counts()
        return {**counts, "statements": counts["statements"] - fallen}

    def row_counts(self) -> dict[str, int]:
        """Number of rows by table."""
        counts = {}
        for table in TABLES:
            # Through the view each fact would be made a text to be counted.
            if table is FACTS:
                counts[table.name] = sum(map(self.relations.count, self.relations.all()))
            elif table.is_late and not self.has(table.name):
                counts[table.name] = 0
            else:
                counts[table.name] = self.sql(f"SELECT count(*) FROM {table.name}")[0][0]  # noqa: S608  ours
        return counts
