"""Sheets that people can choose on the page for judging: their items, and the questions about each item."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hapax.engine.judgements import (
    DATA_TYPE_QUESTION,
    ENTAILMENT_QUESTION,
    SOUNDNESS_QUESTION,
    SOUNDNESS_WORDING,
    Judgements,
)
from hapax.evaluation.link.probing_questions import TEMPLATES, Template
from hapax.evaluation.votes.items import FACT, PREMISE_AND_CONCLUSION, STATEMENT
from hapax.evaluation.votes.questions import (
    AUDIT,
    BASELINE,
    SCHEMA,
    SCHEMA_AVAILABLE,
    ItemQuestion,
    SheetKind,
)
from hapax.kb.derived_ids import DerivedIds
from hapax.kb.store import STANDING, KnowledgeBase

SCHEMA_PREFIX = "schema:"
"""Prefix of the ids of Winograd schemas."""

DISPUTED = "schemas-disputed"
"""The sheet of the schemas on which annotators differ."""

_STATEMENTS = f"SELECT DISTINCT id FROM statements WHERE {STANDING}"  # noqa: S608  ours
_FACTS = "SELECT id FROM facts WHERE source = 'model'"
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
    there are none; `template`: number of the template of a baseline.
    """

    kind: SheetKind
    label: str
    last: str
    others: str = ""
    template: int = PREMISE_AND_CONCLUSION

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


def _baseline(template: Template) -> JudgingSheet:
    label = f"question {template.number} of LINK's table 12: {template.text}"
    return JudgingSheet(SheetKind.BASELINE, label, f"{BASELINE} {template.number}", template=template.number)


def _baseline_name(template: Template) -> str:
    # The default of `votes export baseline` has the bare name.
    return BASELINE if template.number == PREMISE_AND_CONCLUSION else f"{BASELINE}-{template.number}"


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
    **{_baseline_name(template): _baseline(template) for template in TEMPLATES},
    "schemas": _schemas("Winograd schemas: what the pronouns mean, whether the schema can be used"),
    DISPUTED: _schemas("Winograd schemas on which annotators differ"),
}
"""The sheets by the names that stand in an address; the first one is the default."""


@dataclass(frozen=True, slots=True)
class ItemPool:
    """A SELECT of the ids of all items of a sheet, which ends in a condition, with its parameters.

    `size`: their number where it is known without reading them.
    """

    sql: str
    parameters: tuple[object, ...] = ()
    size: int | None = None

    def count(self, kb: KnowledgeBase) -> int:
        """The number of items."""
        if self.size is not None:
            return self.size
        return int(kb.sql(f"SELECT count(*) FROM ({self.sql})", self.parameters)[0][0])  # noqa: S608  ours

    def has(self, kb: KnowledgeBase, identity: str) -> bool:
        """True if the item is in the pool."""
        return bool(kb.sql(f"{self.sql} AND id = ? LIMIT 1", (*self.parameters, identity)))


def item_pool(kb: KnowledgeBase, name: str, schemas: Iterable[str]) -> ItemPool:
    """The items of the sheet of this name. `schemas`: the ids of the schemas that the server has."""
    kind = SHEETS[name].kind
    if kind is SheetKind.PREDICATES:
        return ItemPool(_FACTS)
    if kind is SheetKind.SCHEMAS:
        listed = ItemPool(_LISTED, (json.dumps([identity.removeprefix(SCHEMA_PREFIX) for identity in schemas]),))
        if name != DISPUTED:
            return listed
        return ItemPool(f"{listed.sql} AND id IN ({_DIFFERENT})", (*listed.parameters, f"{SCHEMA} %"))
    if kind is SheetKind.BASELINE:
        return _baseline_pool(kb)
    size = kb.standing_count()
    if not any(kb.derived_counts().values()) or not DerivedIds(kb).prepare():
        return ItemPool(_STATEMENTS, size=size)
    size += ItemPool(_DERIVED).count(kb)
    return ItemPool(f"SELECT id FROM ({_STATEMENTS} UNION ALL {_DERIVED}) WHERE 1", size=size)  # noqa: S608  ours


def _baseline_pool(kb: KnowledgeBase) -> ItemPool:
    """As `votes export baseline` draws: of statements with labels, if there are any, without values of wrong types."""
    judged = Judgements.stored(kb).texts
    wrong = {identity for identity, judgement in judged.items() if judgement.typed is False}
    labelled = {identity for identity, judgement in judged.items() if judgement.truth} - wrong
    chosen = ItemPool(f"{_STATEMENTS} AND id IN {_VALUES}", (json.dumps(sorted(labelled)),))
    if labelled and kb.sql(f"{chosen.sql} LIMIT 1", chosen.parameters):
        return chosen
    return ItemPool(f"{_STATEMENTS} AND id NOT IN {_VALUES}", (json.dumps(sorted(wrong)),))
