"""Sheets that people can choose on the page for judging: their items, and the questions about each item."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from hapax.api.browser import table_pages as tables
from hapax.api.browser.table_pages import DERIVED, Wanted
from hapax.engine.judgements import (
    DATA_TYPE_QUESTION,
    ENTAILMENT_QUESTION,
    SOUNDNESS_QUESTION,
    SOUNDNESS_WORDING,
)
from hapax.evaluation.votes.voting_items import FACT, STATEMENT
from hapax.evaluation.votes.voting_questions import (
    AUDIT,
    SCHEMA,
    SCHEMA_AVAILABLE,
    ItemQuestion,
    SheetKind,
)
from hapax.grammar.errors import HapaxError
from hapax.kb.atoms.derived_ids import DerivedIds
from hapax.kb.store import KnowledgeBase

SCHEMA_PREFIX = "schema:"
"""Prefix of the ids of Winograd schemas."""

DISPUTED = "schemas-disputed"
"""The sheet of the schemas on which annotators differ."""

_DERIVED = "SELECT DISTINCT id FROM derived_ids WHERE id NOT IN (SELECT id FROM statements)"
_VALUES = "(SELECT value FROM json_each(?))"
_LISTED = "SELECT id FROM (SELECT value AS id FROM json_each(?)) WHERE 1"
_DIFFERENT = (
    "SELECT statement_id FROM votes WHERE question LIKE ? GROUP BY statement_id, question "
    "HAVING count(DISTINCT answer) > 1"
)


@dataclass(frozen=True, slots=True)
class JudgingSheet:
    """A sheet as people choose it on the page.

    `last`: key of the question that ends an item; `others`: beginning of the keys of the questions before it, empty if
    there are none.
    """

    kind: SheetKind
    label: str
    last: str
    others: str = ""

    @property
    def prefix(self) -> str:
        """Prefix of the ids of its items."""
        return {SheetKind.PREDICATES: FACT, SheetKind.SCHEMAS: SCHEMA_PREFIX}.get(self.kind, STATEMENT)

    def asked(self, questions: Iterable[ItemQuestion]) -> list[ItemQuestion]:
        """The questions about an item that must be answered, in order."""
        before = [question for question in questions if question.required and self._is_before(question)]
        return [*before, *(question for question in questions if question.key == self.last)]

    def optional(self, questions: Iterable[ItemQuestion]) -> list[ItemQuestion]:
        """The questions that may stay open; they are asked beside the last one."""
        return [question for question in questions if not question.required]

    def _is_before(self, question: ItemQuestion) -> bool:
        return bool(self.others) and question.key.startswith(self.others) and question.key != self.last


def _schemas(label: str) -> JudgingSheet:
    return JudgingSheet(SheetKind.SCHEMAS, label, f"{SCHEMA} {list(SCHEMA_AVAILABLE)[-1]}", f"{SCHEMA} ")


SHEETS: Mapping[str, JudgingSheet] = {
    "soundness": JudgingSheet(SheetKind.SOUNDNESS, "statements: is it true?", SOUNDNESS_QUESTION),
    "wording": JudgingSheet(SheetKind.SOUNDNESS, "statements: is it good English?", SOUNDNESS_WORDING),
    "statements": JudgingSheet(
        SheetKind.STATEMENTS,
        "statements as in LINK: types, then whether the premise entails the conclusion",
        ENTAILMENT_QUESTION,
        f"{DATA_TYPE_QUESTION} ",
    ),
    "predicates": JudgingSheet(
        SheetKind.PREDICATES, "facts of models: references, types, truth", f"{AUDIT} Q3", f"{AUDIT} "
    ),
    "schemas": _schemas("Winograd schemas: what the pronouns mean, whether the schema can be used"),
    DISPUTED: _schemas("Winograd schemas on which annotators differ"),
}
"""The sheets by the names that stand in an address; the first one is the default."""


@dataclass(frozen=True, slots=True)
class ItemPool:
    """A SELECT of the ids of all items of a sheet, which ends in a condition, with its parameters.

    `is_part`: votes and draws may be of other items.
    """

    sql: str
    parameters: tuple[object, ...] = ()
    is_part: bool = False

    def count(self, kb: KnowledgeBase) -> int:
        """The number of items."""
        return int(kb.sql(f"SELECT count(*) FROM ({self.sql})", self.parameters)[0][0])  # noqa: S608  ours

    def having(self, kb: KnowledgeBase, identities: Collection[str]) -> set[str]:
        """The items that are in the pool; all of them if the pool has every item."""
        if not self.is_part:
            return set(identities)
        listed = json.dumps(list(identities))
        return {found for (found,) in kb.sql(f"{self.sql} AND id IN {_VALUES}", (*self.parameters, listed))}


def item_pool(kb: KnowledgeBase, name: str, schemas: Iterable[str], wanted: Wanted) -> ItemPool:
    """The wanted items of the sheet of this name. `schemas`: the ids of the schemas that the server has.

    Raises HapaxError for conditions that such items do not have.
    """
    kind, is_part = SHEETS[name].kind, wanted != Wanted()
    if kind is SheetKind.PREDICATES:
        if wanted.rule or wanted.end:
            raise HapaxError("Facts have no rule and no end. Choose them by predicate or probability.")
        return ItemPool(*tables.chosen_ids(kb, "facts", replace(wanted, source="model")), is_part=is_part)
    if kind is SheetKind.SCHEMAS:
        if is_part:
            raise HapaxError("Schemas have no rule, end, predicate or probability. Choose none of them.")
        listed = (json.dumps([identity.removeprefix(SCHEMA_PREFIX) for identity in schemas]),)
        if name != DISPUTED:
            return ItemPool(_LISTED, listed, is_part=True)
        return ItemPool(f"{_LISTED} AND id IN ({_DIFFERENT})", (*listed, f"{SCHEMA} %"), is_part=True)
    searched = ItemPool(*tables.chosen_ids(kb, "statements", wanted), is_part=is_part)
    derived = _derived_pool(kb, wanted)
    if derived is None:
        return searched
    both = f"SELECT id FROM ({searched.sql} UNION ALL {derived.sql}) WHERE 1"  # noqa: S608  ours
    return ItemPool(both, (*searched.parameters, *derived.parameters), is_part)


def _derived_pool(kb: KnowledgeBase, wanted: Wanted) -> ItemPool | None:
    """The wanted statements of `derive`; None if there are none. The probabilities of their facts are not stored."""
    is_left_out = wanted.end not in ("", DERIVED) or wanted.most is not None
    if is_left_out or not any(kb.derived_counts().values()) or not DerivedIds(kb).prepare():
        return None
    sql, parameters = _DERIVED, list[object]()
    for condition, value in (("name = ?", wanted.rule), (f"name IN ({tables.WITH_PREDICATE})", wanted.predicate)):
        if value:
            sql += f" AND number IN (SELECT number FROM derivations WHERE kind = 'rule' AND {condition})"  # noqa: S608
            parameters.append(value)
    return ItemPool(sql, tuple(parameters))
