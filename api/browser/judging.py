"""Judging in the browser: its sheets, the next question for a voter, and the vote, as `hapax votes` has them."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from starlette.datastructures import FormData

from hapax.api.browser import table_pages as tables
from hapax.api.browser.facets import RememberedCounts
from hapax.api.browser.table_pages import DERIVED, Wanted
from hapax.engine.gates.score_maps import AUDIT_QUESTION
from hapax.engine.judgements import (
    DATA_TYPE_QUESTION,
    ENTAILMENT_QUESTION,
    FALSE_FACTS,
    SOUND,
    SOUNDNESS_QUESTION,
    SOUNDNESS_WORDING,
    UNJUDGED,
    UNSOUND_RULE,
    UNSURE,
    DrawKind,
    Judgements,
)
from hapax.evaluation.shared.estimates import agreeing_pairs, krippendorff_alpha
from hapax.evaluation.shared.stored_statements import judgement_text, stored_library
from hapax.evaluation.votes.sheets import check_voter_names
from hapax.evaluation.votes.voting_items import (
    ENOUGH,
    FACT,
    STATEMENT,
    ItemSource,
    NextOptions,
    derived_records,
    next_items,
    subject_id,
)
from hapax.evaluation.votes.voting_questions import (
    AUDIT,
    ItemQuestion,
    SheetKind,
    VotingItem,
    predicate_item,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.atoms.derived_ids import DerivedIds
from hapax.kb.judgement_records import DRAWN_ITEMS, JUDGING_DRAWS, VOTES, VoteRecord
from hapax.kb.records import STATEMENTS
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.llm_oracle.questions.prompts import sentence

_DERIVED = "SELECT DISTINCT id FROM derived_ids WHERE id NOT IN (SELECT id FROM statements)"
_VALUES = "(SELECT value FROM json_each(?))"


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
        return FACT if self.kind is SheetKind.PREDICATES else STATEMENT

    def asked(self, questions: Iterable[ItemQuestion]) -> list[ItemQuestion]:
        """The questions about an item that must be answered, in order."""
        before = []
        for question in questions if self.others else ():
            if question.required and question.key.startswith(self.others) and question.key != self.last:
                before.append(question)
        return [*before, *(question for question in questions if question.key == self.last)]

    def optional(self, questions: Iterable[ItemQuestion]) -> list[ItemQuestion]:
        """The questions that may stay open; they are asked beside the last one."""
        return [question for question in questions if not question.required]


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
}
"""The sheets by the names that stand in an address; the first one is the default."""


def sheet_of(name: str) -> JudgingSheet:
    """The sheet of a name. Raises HapaxError for any other name."""
    if name not in SHEETS:
        raise HapaxError(f"There is no kind {name!r}. Choose one of {', '.join(SHEETS)}.")
    return SHEETS[name]


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


def item_pool(kb: KnowledgeBase, name: str, wanted: Wanted) -> ItemPool:
    """The wanted items of the sheet of this name. Raises HapaxError for conditions that such items do not have."""
    kind, is_part = SHEETS[name].kind, wanted != Wanted()
    if kind is SheetKind.PREDICATES:
        if wanted.rule or wanted.end:
            raise HapaxError("Facts have no rule and no end. Choose them by predicate or probability.")
        return ItemPool(*tables.chosen_ids(kb, "facts", replace(wanted, source="model")), is_part=is_part)
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


_VOTED = (
    "SELECT statement_id FROM votes WHERE question = ? GROUP BY statement_id "
    "ORDER BY count(DISTINCT voter), statement_id"
)
_BEGUN = "SELECT DISTINCT statement_id FROM votes WHERE voter = ? AND question LIKE ? ORDER BY statement_id"
_DRAWN = """
SELECT items.item_id FROM judging_draws AS draws JOIN drawn_items AS items USING (salt)
WHERE draws.kind = ? AND items.draw < draws.reach * items.weight ORDER BY items.draw / items.weight
"""
"""Items that `votes next` has given out."""
_DRAWS: Mapping[SheetKind, Sequence[DrawKind]] = {
    SheetKind.SOUNDNESS: ("soundness", "derived"),
    SheetKind.PREDICATES: ("predicates",),
}
"""The draws of `votes next` whose items are on sheets of a kind."""

SHOWN_SECONDS = 600.0
"""Seconds for which an item is left to the voter who looks at it."""

ANSWER_LABELS = {
    SOUND: "Yes",
    "no": "No",
    FALSE_FACTS: "No: a fact is wrong",
    UNSOUND_RULE: "No: it does not follow",
    UNSURE: "I cannot tell",
}
"""What the buttons of answers say, where that is not the answer itself."""

_FRESH = "{pool} AND id > ? AND id NOT IN (SELECT statement_id FROM votes WHERE question = ?) ORDER BY id LIMIT 50"
_COUNTS = "SELECT statement_id, answer, count(*) FROM votes WHERE question = ? GROUP BY 1, 2"


@dataclass(frozen=True)
class Judging:
    """Votes on the items of one knowledge base.

    `rules`: reads the rules of its derived statements; `shown`: the item that each voter looks at, and since when, by
    sheet and voter.
    """

    database: Path
    counts: RememberedCounts
    rules: Callable[[KnowledgeBase], Library] = lambda _: Library()
    shown: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    def next(
        self, kb: KnowledgeBase, name: str, voter: str, wanted: Wanted, *, skip: int = 0, again: str = ""
    ) -> dict[str, Any] | None:
        """The next question about a readable item that the voter has not judged; None when there is none left.

        Items that others are looking at are left to them. `again`: the id of an item that is asked about anew. With the
        `item` and the `question` come the numbers of `judged` and of all `items`, None if unknown yet, and of the
        skipped; `optional`: questions beside it that may stay open; `struck`: ids of the facts beside it that the voter
        has found wrong.
        """
        check_voter_names((voter,))
        sheet, pool = sheet_of(name), item_pool(kb, name, wanted)
        voted = "SELECT statement_id FROM votes WHERE voter = ? AND question = ?"
        judged = {subject for (subject,) in kb.sql(voted, (voter, sheet.last))}
        counts = {"judged": len(pool.having(kb, judged)), "items": self._items(name, wanted), "skip": skip}
        if again.startswith(sheet.prefix) and (item := self._item(kb, sheet, subject_id(again))):
            return counts | _asked(kb, sheet, item, voter, sheet.asked(item.questions)[0])
        subjects = (subject for subject in _subjects(kb, sheet, voter, pool) if subject not in judged)
        now, met = monotonic(), dict[str, int]()
        self.shown.pop((name, voter), None)
        taken = set()
        for (sheet_name, _), (subject, since) in list(self.shown.items()):
            if sheet_name == name and now - since <= SHOWN_SECONDS:
                taken.add(subject)
        for subject in subjects:
            if subject in met:
                continue
            met[subject] = place = len(met)
            if place >= skip and subject not in taken and (item := self._item(kb, sheet, subject)):
                self.shown[name, voter] = subject, now
                answered = {vote.question for vote in kb.votes(subject_id(item.id)) if vote.voter == voter}
                open_ones = (question for question in sheet.asked(item.questions) if question.key not in answered)
                return counts | {"skip": place} | _asked(kb, sheet, item, voter, next(open_ones))
        return None

    def outcome(self, kb: KnowledgeBase, item_id: str) -> str:
        """The judgement that the votes on a statement have come to, in words; empty for other items."""
        judgement = Judgements.stored(kb).of(subject_id(item_id)) if item_id.startswith(STATEMENT) else UNJUDGED
        return f"{judgement_text(judgement)}{' Datasets leave it out.' if judgement.is_wrong else ''}"

    def vote(self, name: str, form: FormData) -> str:
        """Store the vote of a form in place of the same voter's; returns the answer that it replaces.

        `marked`: keys of questions that may stay open, answered with their first choice. `fact`: ids of the facts that
        could be struck beside the answer; `struck`: of those that are wrong. Raises HapaxError for what is not on the
        sheet.
        """
        voter, item_id, asked, answer = (str(form.get(key, "")) for key in ("voter", "item", "question", "answer"))
        marked, facts, struck = (set(map(str, form.getlist(key))) for key in ("marked", "fact", "struck"))
        check_voter_names((voter,))
        sheet = sheet_of(name)
        with KnowledgeBase(self.database) as kb:
            item = self._item(kb, sheet, subject_id(item_id)) if item_id.startswith(sheet.prefix) else None
            if item is None:
                raise HapaxError("The item of this vote is not in the knowledge base any more. Judge the next.")
            question = next((found for found in item.questions if found.key == (asked or sheet.last)), None)
            if question is None:
                raise HapaxError(f"{asked!r} is not a question about this item. Judge the next.")
            if answer not in question.choices:
                raise HapaxError(f"{answer!r} is not an answer. Choose one of {', '.join(question.choices)}.")
            if foreign := (facts | struck) - {*item.facts}:
                raise HapaxError(f"{min(foreign)!r} is no fact of this item. Judge the next.")
            if struck and answer == question.choices[0]:
                raise HapaxError("The statement is said to be true, and a fact of it to be wrong. Answer again.")
            subject, comment = subject_id(item_id), str(form.get("comment", "")).strip()
            vote = VoteRecord(subject, question.key, voter, answer, comment)
            marks = [
                VoteRecord(subject, optional.key, voter, optional.choices[0])
                for optional in sheet.optional(item.questions)
                if optional.key in marked
            ]
            marks += [VoteRecord(fact, AUDIT_QUESTION, voter, "no") for fact in sorted(struck)]
            with kb.transaction():
                kb.write(
                    "DELETE FROM votes WHERE statement_id = ? AND question = ? AND voter = ? AND answer = 'no'",
                    [(fact, AUDIT_QUESTION, voter) for fact in facts - struck],
                )
                earlier = next((found for found in kb.votes(subject) if found.id == vote.id), None)
                # A second tab shows no comment of the first, so an empty one takes nothing back.
                if earlier is not None and not comment:
                    vote = replace(vote, comment=earlier.comment)
                kb.add(VOTES, [vote, *marks])
        return earlier.answer if earlier is not None and earlier.answer != answer else ""

    def unjudged(self, kb: KnowledgeBase, name: str) -> int | None:
        """The number of items of a sheet that nobody has judged; None while they are being counted."""
        judged = kb.sql("SELECT count(DISTINCT statement_id) FROM votes WHERE question = ?", (sheet_of(name).last,))
        items = self._items(name, Wanted())
        return None if items is None else max(0, items - int(judged[0][0]))

    def _items(self, name: str, wanted: Wanted) -> int | None:
        """The number of items of a sheet, counted beside the pages."""
        return self.counts.of((name, wanted), lambda kb: item_pool(kb, name, wanted).count(kb))[0]

    def agreement(self, kb: KnowledgeBase, name: str) -> dict[str, Any] | None:
        """Agreement of people on the last question of a sheet, over `items` with two votes or more; None without any.

        `equal`: share of equal pairs of votes, averaged over items; `alpha`: Krippendorff's, None if it is undefined.
        """
        question = sheet_of(name).last
        by_item: dict[str, Counter[str]] = defaultdict(Counter)
        for item, answer, count in kb.sql(_COUNTS, (question,)):
            by_item[item][answer] = count
        twice = [counts for counts in by_item.values() if counts.total() > 1]
        if not twice:
            return None
        answers = sorted(set(chain.from_iterable(twice)))
        counts = np.array([[of_item[answer] for answer in answers] for of_item in twice])
        alpha = krippendorff_alpha(counts)
        ((voters,),) = kb.sql("SELECT count(DISTINCT voter) FROM votes WHERE question = ?", (question,))
        agreed = {"equal": agreeing_pairs(counts), "alpha": None if math.isnan(alpha) else alpha}
        return {"voters": voters, "items": len(twice), **agreed}

    def _item(self, kb: KnowledgeBase, sheet: JudgingSheet, subject: str) -> VotingItem | None:
        """The item about a statement or fact; None if it does not stand or cannot be read."""
        source = ItemSource(kb, sheet.kind, derived_by=self.rules(kb))
        if sheet.kind is not SheetKind.PREDICATES:
            stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [subject])
            records = stored[-1:] or derived_records(kb, self.rules(kb), [subject])
            return next(iter(source.items(records)), None)
        if (fact := kb.facts_by_id([subject]).get(subject)) is None:
            # One that a gate has rejected, which `votes next` gives out, too.
            return source.by_id({FACT + subject}).get(FACT + subject)
        claim = sentence(atom_text(fact.ground_atom, stored_library(kb, ())))
        return predicate_item(FACT + subject, claim, list(zip(map(str, fact.arguments), fact.types, strict=True)))


def _asked(
    kb: KnowledgeBase, sheet: JudgingSheet, item: VotingItem, voter: str, question: ItemQuestion
) -> dict[str, Any]:
    """A question with what stands beside the last one of its item."""
    is_last = question.key == sheet.last
    struck = set()
    for fact in item.facts if is_last else ():
        if any((vote.voter, vote.question, vote.answer) == (voter, AUDIT_QUESTION, "no") for vote in kb.votes(fact)):
            struck.add(fact)
    optional = sheet.optional(item.questions) if is_last else []
    return {"item": item, "question": question, "optional": optional, "struck": struck}


def _subjects(kb: KnowledgeBase, sheet: JudgingSheet, voter: str, pool: ItemPool) -> Iterator[str]:
    """Ids of items, perhaps repeated: begun by the voter, of draws by `votes next`, and with the fewest votes first.

    Those that nobody has judged come in the order of their ids, which is in no order of the search.
    """
    if sheet.others:
        yield from _in_pool(kb, pool, _BEGUN, (voter, f"{sheet.others}%"))
    for draw in _DRAWS.get(sheet.kind, ()) if kb.has(DRAWN_ITEMS.name) else ():
        yield from _in_pool(kb, pool, _DRAWN, (draw,))
        begun = None if pool.is_part else kb.first(JUDGING_DRAWS, kind=draw)
        if begun is not None and begun.reach < ENOUGH and kb.path is not None:
            # A draw goes on, so that each further label moves the promise. Its items may be gone meanwhile.
            with suppress(HapaxError), KnowledgeBase(kb.path) as writable:
                yield from next_items(writable, NextOptions(draw)).ids
    last, fresh = "", _FRESH.format(pool=pool.sql)
    while found := kb.sql(fresh, (*pool.parameters, last, sheet.last)):
        yield from (subject for (subject,) in found)
        ((last,),) = found[-1:]
    yield from _in_pool(kb, pool, _VOTED, (sheet.last,))


def _in_pool(kb: KnowledgeBase, pool: ItemPool, sql: str, parameters: Sequence[object]) -> Iterator[str]:
    """The ids that a query of votes or draws gives, without those of items that were not chosen."""
    found = [subject for (subject,) in kb.sql(sql, parameters)]
    # Other statements and facts are found missing when they are read.
    chosen = pool.having(kb, found)
    yield from (subject for subject in found if subject in chosen)
