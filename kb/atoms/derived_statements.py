"""The view `derived_statements`: what `derive` concluded as sentences, beside the table `statements` of searches.

`derive` stores instances of rules as rows of numbers (`kb/atoms/derived_relations.py`). The view words them by the
pieces of each rule's sentence, for pages, exports and other programs. It is empty while facts have changed since the
derivation.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.terms import Value
from hapax.kb.records import statement_id
from hapax.kb.rows import BINDINGS
from hapax.kb.schema import literal, union

if TYPE_CHECKING:
    from hapax.kb.store import KnowledgeBase

VIEW = "derived_statements"

UP_TO_DATE = "(SELECT last = derived FROM fact_numbers)"
"""SQL condition: `derive` has derived from all facts as they are."""

_TEXTS = "symbol_texts"
"""View of the symbols as they are printed."""


def _texts() -> str:
    """SQL for the symbols with their texts.

    The file may come from a stranger, so SQLite allows no JSON function in its views.
    """
    short = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
    # No symbol contains a bare control character, so char(1) can stand for backslashes meanwhile.
    changes = [(r"'\\'", "char(1)")]
    changes += [(f"'\\{short.get(code, f'u{code:04x}')}'", f"char({code})") for code in range(2, 32)]
    changes += [("'\\\"'", "'\"'"), ("char(1)", "'\\'")]
    steps = ["step_0 AS (SELECT id, symbol, substr(symbol, 2, length(symbol) - 2) AS text FROM symbols)"]
    for start in range(0, len(changes), 8):  # SQLite's parser allows few nested calls
        text = "text"
        for written, meant in changes[start : start + 8]:
            text = f"replace({text}, {written}, {meant})"
        last = f"step_{len(steps) - 1}"
        steps.append(f"step_{len(steps)} AS (SELECT id, symbol, {text} AS text FROM {last})")  # noqa: S608  ours
    decimal = len('{"decimal":"')
    value = (
        """CASE substr(symbol, 1, 1) WHEN '"' THEN text """
        # Of a number like a third the exact one follows its digits.
        f"WHEN '{{' THEN substr(symbol, {decimal + 1}, instr(substr(symbol, {decimal + 1}), '\"') - 1) ELSE symbol END"
    )
    return f"WITH {', '.join(steps)} SELECT id, {value} AS text FROM step_{len(steps) - 1}"  # noqa: S608  ours


@dataclass(frozen=True, slots=True)
class RuleWords:
    """The sentence of a rule's statements in pieces; every second one is the name of a searched variable."""

    variables: tuple[str, ...]
    """Names of the searched variables, in the order of the columns of the rule's instances."""
    premise: tuple[str, ...]
    conclusion: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps([self.variables, self.premise, self.conclusion], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> RuleWords:
        variables, premise, conclusion = (tuple(map(str, part)) for part in json.loads(text))
        return cls(variables, premise, conclusion)


@dataclass(frozen=True, slots=True)
class DerivedStatement:
    """A statement that `derive` concluded, without its proof. `number`: its row among the rule's instances."""

    rule: str
    number: int
    premise: str
    conclusion: str
    substitution: tuple[tuple[str, Value], ...]

    @property
    def id(self) -> str:
        """The identity that the same statement of a search has."""
        return statement_id(self.rule, self.substitution)

    @property
    def text(self) -> str:
        return f"If {self.premise}, then {self.conclusion}."


def store_words(connection: sqlite3.Connection, words: dict[str, RuleWords]) -> None:
    """Store the words of rules with stored instances, and word all instances by them."""
    changes = [(text.to_json(), rule) for rule, text in words.items()]
    connection.executemany("UPDATE derivations SET words = ? WHERE kind = 'rule' AND name = ?", changes)
    for view in (VIEW, _TEXTS):
        connection.execute(f"DROP VIEW IF EXISTS {view}")
    for sql in views(connection).values():
        connection.execute(sql)


def views(connection: sqlite3.Connection) -> dict[str, str]:
    """SQL of the views that word the stored instances, by name; that of the symbols alone if no rule has words.

    Raises ValueError or TypeError for words that another program wrote.
    """
    sql = "SELECT name, number, words FROM derivations WHERE words IS NOT NULL ORDER BY number"
    selects = [_select(rule, number, RuleWords.from_json(text)) for rule, number, text in connection.execute(sql)]
    found = {_TEXTS: f"CREATE VIEW {_TEXTS} AS {_texts()}"}
    if selects:
        found[VIEW] = f"CREATE VIEW {VIEW} AS {union(selects)}"
    return found


def _select(rule: str, number: int, words: RuleWords) -> str:
    columns = {name: f"i.v{place}" for place, name in enumerate(words.variables, 1)}
    cells = []
    for name, column in columns.items():
        json_text = _cell(column, "symbols", "symbol")
        cells.append(
            f"CASE WHEN {column} IS NULL THEN '' ELSE {literal(f',[{json.dumps(name)},')} || {json_text} || ']' END"
        )
    # Each cell begins with a comma, and the first one is cut off.
    substitution = f"'[' || substr({' || '.join(cells)}, 2) || ']'" if cells else "'[]'"
    return (
        f"SELECT {literal(rule)} AS rule, i.id AS number, {_sentence(words.premise, columns)} AS premise, "  # noqa: S608
        f"{_sentence(words.conclusion, columns)} AS conclusion, {substitution} AS substitution "
        f"FROM _instances_{number} AS i WHERE {UP_TO_DATE} "
        f"AND (SELECT stale FROM derivations WHERE number = {number}) = 0"
    )


def _sentence(pieces: Sequence[str], columns: dict[str, str]) -> str:
    """SQL for the text of pieces."""
    parts = [literal(pieces[0])]
    # Pieces alternate: text, variable, text, variable, text.
    for name, following in zip(pieces[1::2], pieces[2::2], strict=True):
        column = columns.get(name)
        unknown = literal(f"[{name}]")
        parts.append(unknown if column is None else f"coalesce({_cell(column, _TEXTS, 'text')}, {unknown})")
        parts.append(literal(following))
    return " || ".join(part for part in parts if part != "''") or "''"


def _cell(column: str, table: str, text: str) -> str:
    """SQL for the value of a tag: a whole number, or the text of its symbol."""
    symbol = f"(SELECT s.{text} FROM {table} AS s WHERE s.id = {column})"  # noqa: S608  ours
    return f"CASE {column} & 1 WHEN 1 THEN CAST({column} >> 1 AS TEXT) WHEN 0 THEN {symbol} END"


def has_derived(kb: KnowledgeBase) -> bool:
    """True if `derive` has stored statements that the view words. Raises HapaxError for another program's view."""
    names = (VIEW, _TEXTS)
    found = dict(kb.sql("SELECT name, sql FROM sqlite_master WHERE type = 'view' AND name IN (?, ?)", names))
    if VIEW not in found:
        return False
    try:
        expected = views(kb.connection)
    except (TypeError, ValueError):
        expected = {}
    if strange := [name for name in names if found.get(name) != expected.get(name)]:
        raise HapaxError(
            f"{kb.place}: the view {strange[0]} is not as this version of Hapax makes it.",
            Remedy("Run {} again.", Operation("derive")),
        )
    return True


def derived_statements(
    kb: KnowledgeBase, *, rule: str | None = None, most: int | None = None
) -> Iterator[DerivedStatement]:
    """The statements that `derive` concluded, all or those of a rule; none while facts have changed since."""
    if not has_derived(kb):
        return
    condition, values = ("WHERE rule = ?", (rule,)) if rule is not None else ("", ())
    sql = f"SELECT rule, number, premise, conclusion, substitution FROM {VIEW} {condition} LIMIT ?"  # noqa: S608  ours
    for name, number, premise, conclusion, cell in kb.sql(sql, (*values, -1 if most is None else most)):
        yield DerivedStatement(name, number, premise, conclusion, BINDINGS.decode(cell))
