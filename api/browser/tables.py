"""Tables of a knowledge base for the pages of the browser: each with the SQL that made it, page by page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb.records import Distribution
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.kb.values import refusal

ROWS = 50
"""Rows of one page of a table."""
MOST_ROWS = 100_000
"""Rows of a table as JSON or CSV."""

ORDERS = {
    "stored": "statements.rowid",
    "likely": "log_likelihood IS NULL, log_likelihood DESC, statements.rowid",
    "unlikely": "log_likelihood IS NULL, log_likelihood, statements.rowid",
    "rule": "rule, statements.rowid",
}
"""Orders of statements."""


@dataclass(frozen=True, slots=True)
class Page:
    """The wanted part of a table: a page from 1 with `rows` rows."""

    number: int = 1
    rows: int = ROWS

    def __post_init__(self) -> None:
        if not 1 <= self.number <= 10**9:
            raise HapaxError(f"There is no page {self.number}. Pages count from 1.")


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Rows of a knowledge base with the SQL, as anybody can run it, that gives all of them.

    `more`: there is a next page. `count`: rows in all, where counting is quick.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    sql: str
    page: Page
    more: bool = False
    count: int | None = None

    def to_json(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class WantedStatements:
    """Statements that contain all words, of a rule and an end, in an order of `ORDERS`."""

    words: str = ""
    rule: str = ""
    end: str = ""
    order: str = "stored"
    about: str = ""
    """A value that the statement substitutes."""

    def __post_init__(self) -> None:
        if self.end and self.end not in list(Distribution):
            raise HapaxError(f"There is no end {self.end!r}. Choose {' or '.join(Distribution)}.")
        if self.order not in ORDERS:
            raise HapaxError(f"There is no order {self.order!r}. Choose one of {', '.join(ORDERS)}.")


@dataclass
class _Select:
    """A query in the making."""

    columns: str
    source: str
    conditions: list[str] = field(default_factory=list)
    parameters: list[object] = field(default_factory=list)
    order: str = ""

    def where(self, condition: str, *parameters: object) -> None:
        self.conditions.append(condition)
        self.parameters += parameters

    def table(self, kb: KnowledgeBase, columns: Sequence[str], page: Page, count: int | None = None) -> StoredTable:
        """The rows of the page. A text that no cell can hold gives none."""
        sql = f"SELECT {self.columns} FROM {self.source}"  # noqa: S608  ours; values are parameters
        if self.conditions:
            sql += f" WHERE {' AND '.join(self.conditions)}"
        sql += f" ORDER BY {self.order}"
        rows: list[tuple[Any, ...]] = []
        if not any(isinstance(value, str) and refusal(value) for value in self.parameters):
            # One row more, to know whether there is another page.
            window = (*self.parameters, page.rows + 1, (page.number - 1) * page.rows)
            rows = kb.query(f"{sql} LIMIT ? OFFSET ?", window)
        return StoredTable(tuple(columns), rows[: page.rows], self._printed(sql), page, len(rows) > page.rows, count)

    def _printed(self, sql: str) -> str:
        """The SQL with its parameters as literals, for reading and for other programs."""
        parts = sql.split("?")
        texts = [f"'{str(value).replace(chr(39), chr(39) * 2)}'" for value in self.parameters]
        return "".join(part + text for part, text in zip(parts, [*texts, ""], strict=True)) + ";"


def statements(kb: KnowledgeBase, wanted: WantedStatements, page: Page) -> StoredTable:
    """Id, rule, end, text and log-likelihood of the statements that stand; each once, as first stored."""
    select = _Select(
        "id, rule, distribution, 'If ' || premise || ', then ' || conclusion || '.', log_likelihood", "statements"
    )
    for word in wanted.words.split():
        select.where("instr(lower(premise || ' ' || conclusion), lower(?)) > 0", word)
    if wanted.rule:
        select.where("rule = ?", wanted.rule)
    if wanted.end:
        select.where("distribution = ?", wanted.end)
    if wanted.about:
        # The pair of a substitution ends with the value's JSON text.
        select.where("instr(substitution, ',' || ? || ']') > 0", _encoded(wanted.about))
    is_whole = not select.conditions
    same_end = "AND earlier.distribution = statements.distribution" if wanted.end else ""
    repeated = f"earlier.id = statements.id {same_end} AND earlier.rowid < statements.rowid"
    select.where(f"NOT EXISTS (SELECT 1 FROM statements AS earlier WHERE {repeated})")  # noqa: S608  ours
    select.where(STANDING)
    select.order = ORDERS[wanted.order]
    count = kb.query("SELECT count(*) FROM statements")[0][0] if is_whole else None
    return select.table(kb, ("id", "rule", "end", "statement", "log-likelihood"), page, count)


def facts(kb: KnowledgeBase, indicator: str, page: Page, value: str = "") -> StoredTable:
    """Arguments, probability, source and basis of the facts of a predicate, or of all with this value."""
    select = _Select("predicate, arguments, probability, source, basis", "facts")
    if indicator:
        name, _, arity = indicator.rpartition("/")
        select.where("predicate = ?", name)
        # A row that another program spoiled has no arity, and is shown as it is.
        length = "CASE WHEN json_valid(arguments) THEN json_array_length(arguments) END"
        select.where(f"coalesce({length} = ?, 1)", int(arity) if arity.isdecimal() else -1)
    if value:
        select.where("instr(arguments, ?) > 0", _encoded(value))
    select.order = "predicate, facts.rowid"
    table = select.table(kb, ("predicate", "arguments", "probability", "source", "basis"), page)
    rows = [(name, _texts(arguments), *rest) for name, arguments, *rest in table.rows]
    return StoredTable(table.columns, rows, table.sql, page, table.more, table.count)


def rejected(kb: KnowledgeBase, page: Page, *, predicate: str = "", value: str = "") -> StoredTable:
    """Rejected values: what was asked, the value, the gate that stopped it, and its reason."""
    select = _Select(
        "questions.patterns, candidates.value, decisions.gate, decisions.score, decisions.threshold, decisions.reason",
        "decisions JOIN candidates ON candidates.id = decisions.subject "
        "JOIN questions ON questions.id = candidates.question_id",
    )
    select.where("decisions.accepted = 0")
    if predicate:
        select.where(
            "candidates.question_id IN (SELECT question_id FROM question_patterns WHERE predicate = ?)", predicate
        )
    if value:
        encoded = _encoded(value)
        select.where("(candidates.value = ? OR instr(questions.patterns, ?) > 0)", encoded, encoded)
    select.order = "decisions.rowid"
    columns = ("asked", "value", "gate", "score", "threshold", "reason")
    table = select.table(kb, columns, page)
    rows = [(_asked(patterns), _value(text), *rest) for patterns, text, *rest in table.rows]
    return StoredTable(columns, rows, table.sql, page, table.more)


def predicates(kb: KnowledgeBase, labels: Mapping[str, str]) -> StoredTable:
    """All predicates with facts or a declaration, what they say, and their numbers of facts."""
    counts = kb.fact_counts()
    listed = [(name, labels.get(name, ""), counts.get(name, 0)) for name in sorted({*counts, *labels})]
    sql = "SELECT predicate, count(*) FROM facts GROUP BY predicate;"
    return StoredTable(("predicate", "says", "facts"), listed, sql, Page(), count=len(listed))


def rules(kb: KnowledgeBase) -> StoredTable:
    """The stored rules with the numbers of their statements, of all runs and both ends."""
    # Counted by the index alone: with millions of statements every look at a row would show.
    counted = "(SELECT rule, count(*) AS statements FROM statements GROUP BY rule)"
    select = _Select(
        "rules.name, coalesce(rules.domain, ''), coalesce(counted.statements, 0)",
        f"rules LEFT JOIN {counted} AS counted ON counted.rule = rules.name",
        order="rules.name",
    )
    return select.table(kb, ("rule", "domain", "statements"), Page(rows=MOST_ROWS))


def runs(kb: KnowledgeBase, page: Page) -> StoredTable:
    """The runs, newest first."""
    select = _Select("id, command, status, started, coalesce(finished, '')", "runs", order="started DESC, runs.rowid")
    return select.table(kb, ("id", "command", "status", "started", "finished"), page)


def _encoded(value: str) -> str:
    """The JSON text of a value as cells hold it: numbers as such, all else as text."""
    return value if value.lstrip("-").isdecimal() else json.dumps(value, ensure_ascii=False)


def _value(cell: str) -> str:
    """The text of a value's cell; of one that another program spoiled, the cell itself."""
    try:
        return _text(json.loads(cell))
    except ValueError:
        return _unreadable(cell)


def _unreadable(cell: str) -> str:
    return f"{cell} (unreadable)"


def _text(value: object) -> str:
    return str(value["decimal"]) if isinstance(value, dict) and "decimal" in value else str(value)


def _texts(arguments: str) -> tuple[str, ...]:
    """The arguments of a fact; of a cell that another program spoiled, the cell itself."""
    try:
        return tuple(_text(value) for value in json.loads(arguments))
    except (ValueError, TypeError):
        return (_unreadable(arguments),)


def _asked(patterns: str) -> str:
    """A question's patterns as goals with the place of the value as `?`."""
    goals = []
    try:
        for predicate, arguments in json.loads(patterns):
            cells = ["?" if argument is None else _text(argument) for argument in arguments]
            goals.append(f"{predicate}({', '.join(cells)})")
    except (ValueError, TypeError):
        return _unreadable(patterns)
    return " & ".join(goals)
