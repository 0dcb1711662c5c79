"""Tables of a knowledge base for the pages of the browser: each with the SQL that made it, page by page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.kb.atoms.derived_statements import UP_TO_DATE, VIEW, has_derived
from hapax.kb.exchange.values import decode_values, encode_value, refusal
from hapax.kb.records import FACTS, Distribution, Source, StatementRecord, statement_id
from hapax.kb.rows import BINDINGS
from hapax.kb.store import GONE_ROWS, STANDING, STANDS, KnowledgeBase

ROWS = 50
"""Rows of one page of a table."""
MOST_ROWS = 100_000
"""Rows of a table as JSON or CSV, and on all of its pages."""
MOST_CHOICES = 200
"""Values of a facet, those with the most rows."""

SENTENCE = "'If ' || premise || ', then ' || conclusion || '.'"
"""SQL for the text of a statement."""

# In a rule's text a predicate stands between a blank, or the end of a line, and a bracket.
WITH_PREDICATE = "SELECT name FROM rules WHERE instr(' ' || replace(text, char(10), ' '), ' ' || ? || '(') > 0"
"""SELECT of the rules that have a predicate."""

_FACT = "predicate, arguments, probability, source, basis, id"
"""Columns of a fact in a table, then its id."""
_STATEMENT = ("id", "rule", "end", "statement", "log-likelihood")
"""Columns of a statement in a table."""

MINUS = "-"
"""Before the name of a column: from the greatest down."""


def whole_number(text: str) -> int | None:
    """The number of up to nine digits in an address; None for any other text, such as one that no cell can hold."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


@dataclass(frozen=True, slots=True)
class Page:
    """The wanted part of a table: a page from 1 with `rows` rows, in an order.

    `order`: a column, or `-column` from the greatest down; empty: as stored.
    """

    number: int = 1
    rows: int = ROWS
    order: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.number <= MOST_ROWS // ROWS:
            raise HapaxError(
                f"There is no page {self.number}. Pages go from 1 to {MOST_ROWS // ROWS:,}: choose fewer rows, or sort "
                "them the other way."
            )

    @property
    def column(self) -> str:
        """The column of the order."""
        return self.order.removeprefix(MINUS)

    @property
    def is_descending(self) -> bool:
        """True if the greatest value comes first."""
        return self.order.startswith(MINUS)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Rows of a knowledge base with the SQL, as anybody can run it, that gives all of them; empty for rows from rules.

    `more`: there is a next page. `sortable`: columns that can order it.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    sql: str
    page: Page
    more: bool = False
    sortable: tuple[str, ...] = ()

    def to_json(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Conditions on the rows of a table; empty ones hold for all. Not every table knows all of them.

    `end`: of a statement, or DERIVED for those that `derive` concluded. `words`: all are in the sentence or the
    arguments. `about`: a value that is substituted or an argument. `judge`: a voter on statements, `nobody`, or the
    model that scored a value. `least` and `most`: of the probability or score; of a statement, `least` is that of each
    fact of its proof, and `most` that of one of them.
    """

    words: str = ""
    about: str = ""
    rule: str = ""
    run: str = ""
    predicate: str = ""
    end: str = ""
    source: str = ""
    gate: str = ""
    verdict: str = ""
    judge: str = ""
    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        if self.end and self.end not in ENDS:
            raise HapaxError(f"There is no end {self.end!r}. Choose {', '.join(ENDS[:-1])} or {ENDS[-1]}.")
        if self.verdict and self.verdict not in VERDICTS:
            raise HapaxError(f"There is no verdict {self.verdict!r}. Choose {' or '.join(VERDICTS)}.")


DERIVED = "derived"
"""In place of an end: statements that `derive` concluded."""
ENDS = (*map(str, Distribution), DERIVED)
VERDICTS = ("rejected", "accepted")
NOBODY = "nobody"
"""The judge of statements without a vote."""


@dataclass
class _Select:
    """A query in the making. `orders`: terms of SQL by the columns that can order it; `stored`: as rows came.

    `first`: the order that nobody chose, if it is not that. `number`: the column by which rows are chosen before their
    texts are made. `among`: numbers of all rows that can have the wanted properties, where an index knows them.
    """

    columns: str
    source: str
    stored: str
    orders: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    first: str = ""
    number: str = ""
    among: Sequence[int] | None = None
    conditions: list[str] = field(default_factory=list)
    parameters: list[object] = field(default_factory=list)

    def where(self, condition: str, *parameters: object) -> None:
        self.conditions.append(condition)
        self.parameters += parameters

    def between(self, expression: str, least: float | None, most: float | None) -> None:
        if least is not None:
            self.where(f"{expression} >= ?", least)
        if most is not None:
            self.where(f"{expression} <= ?", most)

    def table(self, kb: KnowledgeBase, columns: Sequence[str], page: Page) -> StoredTable:
        """The rows of the page. A text that no cell can hold gives none."""
        rows, more, printed = self.window(kb, page, (page.number - 1) * page.rows, page.rows)
        return StoredTable(tuple(columns), rows, printed, page, more, tuple(self.orders))

    def counts(self, kb: KnowledgeBase, column: str) -> Counter[str]:
        """The numbers of rows by the values of a column, for its commonest values."""
        if self._is_empty:
            return Counter()
        sql = f"SELECT {column}, count(*) FROM {self._narrowed} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST_CHOICES}"  # noqa: S608  ours
        return Counter({str(value): count for value, count in kb.sql(sql, self.parameters)})

    @property
    def where_text(self) -> str:
        """The source with its conditions."""
        return f"{self.source} WHERE {' AND '.join(self.conditions)}" if self.conditions else self.source

    @property
    def _narrowed(self) -> str:
        """Like `where_text`, for quick reading: with the numbers that an index knows."""
        if self.among is None:
            return self.where_text
        numbers = f"{self.number} IN (SELECT value FROM json_each({literal(json.dumps(self.among))}))"  # noqa: S608  ours
        return f"{self.source} WHERE {' AND '.join([*self.conditions, numbers])}"

    @property
    def _is_empty(self) -> bool:
        """True if no cell can hold one of the wanted texts."""
        return any(isinstance(value, str) and refusal(value) for value in self.parameters)

    def window(self, kb: KnowledgeBase, page: Page, start: int, most: int) -> tuple[list[tuple[Any, ...]], bool, str]:
        """Rows from a place on in the order of the page, True if there are more, and the SQL that gives all."""
        order = self._order(page)
        printed = self._printed(f"SELECT {self.columns} FROM {self.where_text} ORDER BY {order}")  # noqa: S608  ours
        if self._is_empty:
            return [], False, printed
        # One row more, to know whether there is another page.
        limits = (*self.parameters, most + 1, start)
        if not self.number:
            sql = f"SELECT {self.columns} FROM {self._narrowed} ORDER BY {order} LIMIT ? OFFSET ?"  # noqa: S608  ours
            rows = kb.sql(sql, limits)
            return rows[:most], len(rows) > most, printed
        # SQLite merges what is ordered by columns of the result, and makes no other columns for that.
        term = order.split(" ", 1)[0].rstrip(",")
        chosen = f"SELECT {self.number}, {term} FROM {self._narrowed} ORDER BY {order} LIMIT ? OFFSET ?"  # noqa: S608  ours
        numbers = [number for number, _ in kb.sql(chosen, limits)]
        read = (
            f"SELECT {self.columns}, {self.number} FROM {self.source} "  # noqa: S608  ours
            f"WHERE {self.number} IN (SELECT value FROM json_each(?))"
        )
        found = {row[-1]: row[:-1] for row in kb.sql(read, (json.dumps(numbers[:most]),))}
        return [found[number] for number in numbers[:most]], len(numbers) > most, printed

    def _order(self, page: Page) -> str:
        if page.column in ("", "stored"):
            return self.stored if page.order else self.first or self.stored
        if page.column not in self.orders:
            raise HapaxError(f"There is no order {page.order!r}. Choose one of {', '.join(self.orders)}.")
        chosen = self.orders[page.column]
        first, *others = [chosen] if isinstance(chosen, str) else chosen
        way = " DESC" if page.is_descending else ""
        # SQLite reads an index from its end for DESC, and with it equal rows from the last to the first.
        ties = [f"{term}{way}" for term in (*others, self.stored)]
        # What has no value comes last either way.
        return ", ".join([f"{first}{way} NULLS LAST", *ties])

    def _printed(self, sql: str) -> str:
        """The SQL with its parameters as literals, for reading and for other programs."""
        # Our SQL has question marks for parameters only.
        parts = sql.split("?")
        texts = [literal(value) for value in self.parameters]
        return "".join(part + text for part, text in zip(parts, [*texts, ""], strict=True)) + ";"


def literal(value: object) -> str:
    """A value as SQL has it."""
    # chr(39) is a quotation mark, which SQL doubles inside a text.
    return str(value) if isinstance(value, int | float) else f"'{str(value).replace(chr(39), chr(39) * 2)}'"


def statements(
    kb: KnowledgeBase, wanted: Wanted, page: Page, among: Callable[[str], Sequence[int] | None] = lambda _: None
) -> StoredTable:
    """Id, rule, end, text and log-likelihood of the statements that stand: those of searches, then those of `derive`.

    Each is there once, the least likely one first. `among`: the rows that can have a value, by its JSON text; None if
    no index knows them.
    """
    if wanted.end == DERIVED:
        return _derived(kb, wanted, page)
    found = searched(kb, wanted, page, among)
    # Statements of `derive` follow behind the last ones of searches, in the order that nobody chose only.
    if found.more or wanted.end or page.order or not has_derived(kb):
        return found
    start = (page.number - 1) * page.rows
    before = len(found.rows) + start
    if start and not found.rows:  # count how many pages the statements of searches take
        every = Page(rows=10**9)
        before = kb.standing_count() if wanted == Wanted() else len(searched(kb, wanted, every, among).rows)
    # Statements of `derive` fill the rest of the page.
    rest = _derived(
        kb, wanted, replace(page, number=1), skipped=max(0, start - before), room=page.rows - len(found.rows)
    )
    return replace(
        found,
        rows=[*found.rows, *(_padded(row, len(found.columns)) for row in rest.rows)],
        sql=f"{found.sql}\n{rest.sql}",
        more=rest.more,
    )


def _padded(row: tuple[Any, ...], width: int) -> tuple[Any, ...]:
    return (*row, *(None for _ in range(width - len(row))))


def _derived(
    kb: KnowledgeBase, wanted: Wanted, page: Page, skipped: int | None = None, room: int | None = None
) -> StoredTable:
    """The statements of `derive`, which have no likelihood. `skipped` and `room`: rows to leave out and to show."""
    if not has_derived(kb):
        return StoredTable(_STATEMENT, [], f"-- {VIEW}: hapax derive has stored nothing", page)
    select = derived_rows(wanted)
    start = (page.number - 1) * page.rows if skipped is None else skipped
    rows, more, sql = select.window(kb, page, start, page.rows if room is None else room)
    listed = [(statement_id(rule, BINDINGS.decode(cell)), rule, DERIVED, text, None) for rule, text, cell in rows]
    return StoredTable(_STATEMENT, listed, sql, page, more, ("rule",))


def derived_rows(wanted: Wanted) -> _Select:
    """The statements of `derive` that have the wanted properties."""
    select = _Select(f"rule, {SENTENCE}, substitution", VIEW, "rule, number", {"rule": "rule"})
    _add_conditions(select, wanted)
    if wanted.run or wanted.judge or wanted.least is not None or wanted.most is not None:
        select.where("0")  # they are of no run, nobody judged them, and their proofs are made when they are read
    return select


def _add_conditions(select: _Select, wanted: Wanted) -> None:
    """The conditions that statements of searches and of `derive` share."""
    for word in wanted.words.split():
        select.where("instr(lower(premise || ' ' || conclusion), lower(?)) > 0", word)
    if wanted.rule:
        select.where("rule = ?", wanted.rule)
    if wanted.predicate:
        select.where(f"rule IN ({WITH_PREDICATE})", wanted.predicate)
    if wanted.about:
        texts = _json_texts(wanted.about)
        # The pair of a substitution ends with the value's JSON text.
        pairs = ["instr(substitution, ',' || ? || ']') > 0"] * len(texts)
        select.where(f"({' OR '.join(pairs)})", *texts)


def searched(
    kb: KnowledgeBase, wanted: Wanted, page: Page, among: Callable[[str], Sequence[int] | None] = lambda _: None
) -> StoredTable:
    """The statements of searches. `among` as in `statements`."""
    select = searched_rows(kb, wanted)
    known = [among(text) for text in _json_texts(wanted.about)] if wanted.about else [None]
    if None not in known:
        select.among = sorted({row for rows in known for row in rows or ()})
    select.where(f"NOT EXISTS ({repeated(wanted)})")
    select.where(STANDING)
    return select.table(kb, _STATEMENT, page)


def repeated(wanted: Wanted, by: str = "") -> str:
    """SELECT of an earlier row of the same statement: one at both ends, or of several runs, is listed by its first."""
    same = "AND earlier.distribution = statements.distribution " if wanted.end or by == "end" else ""
    same += "AND earlier.run_id = statements.run_id " if wanted.run else ""
    return (
        f"SELECT 1 FROM statements AS earlier WHERE earlier.id = statements.id {same}"  # noqa: S608  ours
        f"AND earlier.rowid < statements.rowid AND earlier.{STANDS}"
    )


_DOUBTFUL = "IN (SELECT id FROM facts WHERE probability < ?)"
# + keeps SQLite from looking for each doubtful fact among those of a statement.
_RESTS_ON = (
    f"EXISTS (SELECT 1 FROM statement_facts AS rests WHERE rests.key = statements.key AND +rests.fact_id {_DOUBTFUL})"  # noqa: S608
)
_OF_FACTS = f"statements.key IN (SELECT key FROM statement_facts WHERE fact_id {_DOUBTFUL})"  # noqa: S608  ours
MANY_OF_RULES = 5_000
"""Statements of rules from which on one that is wanted is looked for among all ids."""
FEW_DOUBTFUL = 1_000
"""Facts below a probability up to which their statements are looked up one by one."""


def searched_rows(kb: KnowledgeBase, wanted: Wanted) -> _Select:
    """The rows of statements of searches that have the wanted properties, withdrawn and repeated ones among them."""
    select = _Select(
        f"id, rule, distribution, {SENTENCE}, log_likelihood",
        "statements",
        "statements.rowid",
        {
            "rule": ("rule", "log_likelihood"),
            "end": ("distribution", "log_likelihood"),
            "statement": ("premise", "conclusion"),
            "log-likelihood": "log_likelihood",
        },
        # Words are looked for in each text, and texts are read fastest as they lie.
        "" if wanted.words else "log_likelihood NULLS LAST, statements.rowid",
        number="statements.rowid",
    )
    _add_conditions(select, wanted)
    if wanted.end:
        # Each end has a good part of all rows, and a rule few: + keeps the index of ends away.
        select.where(f"{'+' if wanted.rule else ''}distribution = ?", wanted.end)
    if wanted.run:
        select.where("run_id = ?", wanted.run)
    if wanted.judge == NOBODY:
        select.where("id NOT IN (SELECT statement_id FROM votes)")
    elif wanted.judge:
        select.where("id IN (SELECT statement_id FROM votes WHERE voter = ?)", wanted.judge)
    if wanted.least is not None:
        select.where(f"NOT {_RESTS_ON}", wanted.least)
    if wanted.most is not None:
        # Where there are few doubtful facts, their statements are few, too; else one comes soon in any order.
        few = f"SELECT count(*) FROM (SELECT 1 FROM facts WHERE probability <= ? LIMIT {FEW_DOUBTFUL})"  # noqa: S608  ours
        is_rare = kb.sql(few, (wanted.most,))[0][0] < FEW_DOUBTFUL
        select.where((_OF_FACTS if is_rare else _RESTS_ON).replace("< ?", "<= ?"), wanted.most)
    return select


def chosen_ids(kb: KnowledgeBase, name: str, wanted: Wanted) -> tuple[str, tuple[object, ...]]:
    """SELECT, with its parameters, of the ids of the statements of searches, or of the facts, that are wanted."""
    if name == "statements":
        select, of_rules = searched_rows(kb, wanted), _Select("1", "statements", "")
        _add_conditions(of_rules, Wanted(rule=wanted.rule, predicate=wanted.predicate))
        rows = kb.sql(f"SELECT 1 FROM {of_rules.where_text} LIMIT {MANY_OF_RULES}", of_rules.parameters)  # noqa: S608  ours
        # Ids are in no order of the search, so that one of many comes soon: + keeps SQLite from sorting them first.
        by_id = "+" if len(rows) == MANY_OF_RULES else ""
        select.conditions = [
            f"{by_id}{condition}" if condition.startswith(("rule", "distribution")) else condition
            for condition in select.conditions
        ]
        select.where(STANDING)
        # A statement has a row for each run and end; a fact has one, and DISTINCT would make the texts of all facts.
        distinct = "DISTINCT "
    else:
        select, distinct = fact_rows(kb, wanted), ""
        select.where("1")
    return f"SELECT {distinct}id FROM {select.where_text}", tuple(select.parameters)  # noqa: S608  ours


def facts(kb: KnowledgeBase, wanted: Wanted, page: Page) -> StoredTable:
    """Arguments, probability, source and basis of facts. A wanted predicate may have its arity, `name/2`."""
    table = fact_rows(kb, wanted).table(kb, _FACT.split(", ")[:-1], page)
    return replace(table, rows=[_fact_row(kb, row) for row in table.rows])


def fact_rows(kb: KnowledgeBase, wanted: Wanted) -> _Select:
    """The facts that have the wanted properties."""
    # The columns of the table itself order it by their names.
    orders = {name: name for name in _FACT.split(", ")[:-1]}
    select = _Select(_FACT, "facts", "facts.ref", orders, number="facts.ref")
    # `is_a_cheese_from/2`, or the name alone for all arities.
    name, slash, arity = wanted.predicate.rpartition("/")
    if slash:
        select.where("predicate = ?", name)
        # A row that another program spoiled has no arity, and is shown as it is.
        length = "CASE WHEN json_valid(arguments) THEN json_array_length(arguments) END"
        number = whole_number(arity)
        select.where(f"coalesce({length} = ?, 1)", -1 if number is None else number)
    elif wanted.predicate:
        select.where("predicate = ?", wanted.predicate)
    for word in wanted.words.split():
        select.where("instr(lower(arguments), lower(?)) > 0", word)
    if wanted.about:
        condition, parameters = _mention("arguments", wanted.about)
        select.where(condition, *parameters)
        select.among = kb.relations.refs_with(list(_values(wanted.about)))
    if wanted.source:
        select.where("source = ?", wanted.source)
    if wanted.judge:
        select.where(f"candidate_id IN (SELECT subject FROM decisions WHERE {_JUDGED_BY})", wanted.judge)  # noqa: S608
    select.between("probability", wanted.least, wanted.most)
    return select


def statement_rows(statement: StatementRecord, ends: Sequence[str]) -> StoredTable:
    """A statement, once for each of its ends; one without ends was concluded by `derive`."""
    rows = [(statement.id, statement.rule, str(end), statement.text, statement.log_likelihood) for end in ends]
    if not rows:
        return StoredTable(_STATEMENT, [(statement.id, statement.rule, DERIVED, statement.text, None)], "", Page())
    sql = f"SELECT * FROM statements WHERE id = {literal(statement.id)};"  # noqa: S608  for reading only
    return StoredTable(_STATEMENT, rows, sql, Page())


def proof_facts(kb: KnowledgeBase, statement: str) -> StoredTable:
    """The facts of the proofs of a statement, given by its id."""
    select = _Select(_FACT, "facts", "facts.ref")
    keys = "SELECT key FROM statements WHERE id = ?"
    select.where(f"id IN (SELECT fact_id FROM statement_facts WHERE key IN ({keys}))", statement)  # noqa: S608  ours
    table = select.table(kb, _FACT.split(", ")[:-1], Page(rows=MOST_ROWS))
    return replace(table, rows=[_fact_row(kb, row) for row in table.rows])


def votes(kb: KnowledgeBase, statement: str) -> StoredTable:
    """The votes on a statement, given by its id."""
    select = _Select("question, voter, answer, comment", "votes", "question, voter")
    select.where("statement_id = ?", statement)
    return select.table(kb, ("question", "voter", "answer", "comment"), Page(rows=MOST_ROWS))


def types_of(kb: KnowledgeBase, name: str) -> StoredTable:
    """The types of a value with their probabilities."""
    if not kb.has("type_facts"):
        return StoredTable(("type", "probability"), [], "", Page())
    select = _Select("data_type, probability", "type_facts", "type_facts.rowid")
    texts = _json_texts(name)
    marks = ", ".join("?" * len(texts))
    select.where(f"constant IN ({marks})", *texts)
    return select.table(kb, ("type", "probability"), Page(rows=MOST_ROWS))


def _fact_row(kb: KnowledgeBase, row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of a table of facts, from one that ends with the fact's id; one that another program changed is named."""
    name, arguments, *rest, identity = row
    texts = _texts(arguments)
    try:
        FACTS.read((identity, name, arguments, "[]", Source.GIVEN, *[None] * 4))
    except HapaxError as fault:
        kb.leave_out(fault)
        texts = (_unreadable(arguments),)
    return (name, texts, *rest)


VERDICT = "CASE decisions.accepted WHEN 1 THEN 'accepted' ELSE 'rejected' END"
_JUDGES = "SELECT model FROM assessments WHERE id IN (SELECT value FROM json_each(decisions.assessment_ids))"
_JUDGED_BY = f"? IN ({_JUDGES})"


def claims(kb: KnowledgeBase, wanted: Wanted, page: Page) -> StoredTable:
    """Values that models proposed, with what was asked and the verdict, score, threshold and reason of each gate."""
    verdicts = [] if wanted.verdict else ["verdict"]
    columns = ("asked", "value", "gate", *verdicts, "score", "threshold", "reason")
    table = claim_rows(wanted).table(kb, columns, page)
    return replace(table, rows=[claim_row(row) for row in table.rows])


def claim_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of a table of claims, from one that begins with the cells of question and value."""
    return (_asked(row[0]), _value(row[1]), *row[2:])


def claim_rows(wanted: Wanted) -> _Select:
    """The decisions of gates on values that have the wanted properties."""
    # One verdict alone needs no column.
    verdict = "" if wanted.verdict else f"{VERDICT}, "
    select = _Select(
        f"questions.patterns, candidates.value, decisions.gate, {verdict}decisions.score, decisions.threshold, "
        "decisions.reason",
        "decisions JOIN candidates ON candidates.id = decisions.subject "
        "JOIN questions ON questions.id = candidates.question_id",
        "decisions.rowid",
        {
            "asked": "questions.patterns",
            "value": "candidates.value",
            **{name: f"decisions.{name}" for name in ("gate", "score", "threshold")},
        },
    )
    if wanted.verdict:
        select.where("decisions.accepted = ?", int(wanted.verdict == "accepted"))
    if wanted.run:
        select.where("decisions.run_id = ?", wanted.run)
    if wanted.gate:
        select.where("decisions.gate = ?", wanted.gate)
    if wanted.predicate:
        asked = "candidates.question_id IN (SELECT id FROM questions WHERE instr(patterns, ?))"
        select.where(asked, f"[{encode_value(wanted.predicate)},[")
    if wanted.about:
        texts = _json_texts(wanted.about)
        marks = ", ".join("?" * len(texts))
        condition, parameters = _mention("questions.patterns", wanted.about)
        select.where(f"(candidates.value IN ({marks}) OR {condition})", *texts, *parameters)
    for word in wanted.words.split():
        select.where("instr(lower(candidates.value || ' ' || questions.patterns), lower(?)) > 0", word)
    if wanted.judge:
        select.where(_JUDGED_BY, wanted.judge)
    select.between("decisions.score", wanted.least, wanted.most)
    return select


def predicates(kb: KnowledgeBase, labels: Mapping[str, str], derived: Mapping[str, int], page: Page) -> StoredTable:
    """All predicates with facts or a declaration, what they say, and their numbers of facts and of derived atoms."""
    columns, counts = ("predicate", "says", "facts", "derived"), kb.fact_counts()
    names = sorted({*counts, *labels})
    listed = [(name, labels.get(name, ""), counts.get(name, 0), derived.get(name, 0)) for name in names]
    order = page if page.column else Page(order=f"{MINUS}facts")
    if order.column in columns:
        place = columns.index(order.column)
        # In Python: the labels come from the rules, not from a table.
        listed.sort(key=lambda row: row[place], reverse=order.is_descending)
    else:
        raise HapaxError(f"There is no order {page.order!r}. Choose one of {', '.join(columns)}.")
    sql = "SELECT predicate, count(*) FROM facts GROUP BY predicate;"
    # All on one page.
    return StoredTable(columns, listed, sql, Page(order=page.order), sortable=columns)


def rules(kb: KnowledgeBase, page: Page = Page()) -> StoredTable:
    """The stored rules with the numbers of their statements that stand, of all runs and both ends."""
    # Counted by the index alone: with millions of statements every look at a row would show.
    # Rules that only `derive` has used are not in the table `rules`.
    others = "SELECT name, '' FROM derivations WHERE kind = 'rule' AND name NOT IN (SELECT name FROM rules)"
    named = f"SELECT name, domain FROM rules UNION ALL {others}"  # noqa: S608  ours
    counted = "(SELECT rule, count(*) AS statements FROM statements GROUP BY rule)"
    gone = f"(SELECT rule, count(*) AS statements FROM statements WHERE rowid IN ({GONE_ROWS}) GROUP BY rule)"  # noqa: S608  ours
    number = "coalesce(counted.statements, 0) - coalesce(gone.statements, 0) + coalesce(derived.statements, 0)"
    select = _Select(
        "rules.name, coalesce(rules.domain, ''), " + number,
        f"({named}) AS rules LEFT JOIN {counted} AS counted ON counted.rule = rules.name "  # noqa: S608  ours
        f"LEFT JOIN {gone} AS gone ON gone.rule = rules.name "
        "LEFT JOIN (SELECT name AS rule, count AS statements FROM derivations "
        f"WHERE kind = 'rule' AND stale = 0 AND {UP_TO_DATE}) AS derived ON derived.rule = rules.name",
        "rules.name",
        {"rule": "rules.name", "domain": "rules.domain", "statements": number},
    )
    return select.table(kb, ("rule", "domain", "statements"), Page(rows=MOST_ROWS, order=page.order))


def rule_links(library: Library) -> StoredTable:
    """Each rule with each predicate of its premise, and with that of its conclusion."""
    rows: list[tuple[str, ...]] = []
    for name, premises, conclusion in rules_with_sides(library):
        rows += [(name, "premise", premise) for premise in premises]
        rows.append((name, "conclusion", conclusion))
    return StoredTable(("rule", "side", "predicate"), rows, "", Page(rows=len(rows)))


def rules_with_sides(library: Library) -> list[tuple[str, list[str], str]]:
    """The name of each rule with the predicates of its premise, each once, and that of its conclusion."""
    found = []
    for rule in library.rules:
        if not rule.by_declaration:
            premises = list(dict.fromkeys(literal.atom.indicator for literal in rule.literals))
            found.append((rule.name, premises, rule.conclusion.atom.indicator))
    return found


def runs(kb: KnowledgeBase, page: Page) -> StoredTable:
    """The runs, newest first."""
    columns = ("id", "command", "status", "started", "finished")
    orders = {name: name for name in columns[1:]}
    select = _Select("id, command, status, started, coalesce(finished, '')", "runs", "started DESC, runs.rowid", orders)
    return select.table(kb, columns, page)


# `5` and `-12`, but not `007`; and with them `1.50` and `1E+3`.
_WHOLE = re.compile("-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]+)?")


def _json_texts(name: str) -> list[str]:
    """The JSON texts of the values that are printed as this name: the text, the decimal and the whole number."""
    texts = [json.dumps(name, ensure_ascii=False)]
    if _NUMBER.fullmatch(name):
        texts.append(f'{{"decimal":{texts[0]}}}')
    if _WHOLE.fullmatch(name):
        texts.append(name)
    return texts


def _values(name: str) -> Iterator[Value]:
    """The values that are printed as this name, without those that no fact can have."""
    for text in _json_texts(name):
        with suppress(ValueError, HapaxError):
            yield from (value for value in decode_values(f"[{text}]") if value is not None)


def _mention(column: str, name: str) -> tuple[str, list[str]]:
    """SQL condition, with its parameters, that a cell of JSON has a value that is printed as this name."""
    # Only cells with the text are parsed.
    atoms = f"SELECT CAST(atom AS TEXT) FROM json_tree(CASE WHEN json_valid({column}) THEN {column} END)"  # noqa: S608  ours
    return f"(instr({column}, ?) > 0 AND ? IN ({atoms}))", [json.dumps(name, ensure_ascii=False)[1:-1], name]


def _value(cell: str) -> str:
    """The text of a value's cell; of one that another program spoiled, the cell itself."""
    try:
        return _text(json.loads(cell))
    except ValueError:
        return _unreadable(cell)


def _unreadable(cell: str) -> str:
    return f"{cell} (unreadable)"


def _text(value: object) -> str:
    """The text of a value; none of an empty cell."""
    if value is None:
        return ""
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
