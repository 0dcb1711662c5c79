"""Judging statements in the browser: the next one for a voter, and the vote, as `hapax votes` has them."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from starlette.datastructures import FormData

from hapax.api.browser import table_pages as tables
from hapax.api.browser.table_pages import DERIVED, Wanted
from hapax.engine.judgements import (
    FALSE_FACTS,
    SOUND,
    SOUNDNESS_QUESTION,
    SOUNDNESS_WORDING,
    UNSOUND_RULE,
    UNSURE,
    Judgements,
)
from hapax.engine.questions.score_maps import AUDIT_QUESTION
from hapax.evaluation.shared.estimates import agreeing_pairs, krippendorff_alpha
from hapax.evaluation.shared.stored_statements import judgement_text
from hapax.evaluation.votes.sheets import check_voter_names
from hapax.evaluation.votes.voting_items import (
    ENOUGH,
    STATEMENT,
    ItemSource,
    NextOptions,
    derived_records,
    next_items,
    subject_id,
)
from hapax.evaluation.votes.voting_questions import ItemQuestion, SheetKind, VotingItem
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.atoms.derived_ids import DerivedIds
from hapax.kb.judgement_records import DRAWN_ITEMS, JUDGING_DRAWS, VOTES, VoteRecord
from hapax.kb.records import STATEMENTS
from hapax.kb.store import STANDING, KnowledgeBase

SHEETS: Mapping[str, tuple[str, str]] = {
    "soundness": ("is it true?", SOUNDNESS_QUESTION),
    "wording": ("is it good English?", SOUNDNESS_WORDING),
}
"""The questions about statements, with their keys in votes, by the names that stand in an address."""


@dataclass(frozen=True, slots=True)
class ItemPool:
    """A SELECT of the ids of all chosen statements, which ends in a condition, with its parameters.

    `is_part`: votes and draws may be of other statements.
    """

    sql: str
    parameters: tuple[object, ...]
    is_part: bool

    @classmethod
    def of(cls, kb: KnowledgeBase, wanted: Wanted) -> ItemPool:
        """The wanted statements of searches and of `derive`."""
        sql, parameters = tables.chosen_ids(kb, wanted)
        # The probabilities of the facts of derived statements are not stored.
        is_searched = wanted.end not in ("", DERIVED) or wanted.most is not None
        if not is_searched and any(kb.derived_counts().values()) and DerivedIds(kb).prepare():
            derived = _DERIVED
            for condition, value in (
                ("name = ?", wanted.rule),
                (f"name IN ({tables.WITH_PREDICATE})", wanted.predicate),
            ):
                if value:
                    derived += f" AND number IN (SELECT number FROM derivations WHERE kind = 'rule' AND {condition})"  # noqa: S608
                    parameters = (*parameters, value)
            sql = f"SELECT id FROM ({sql} UNION ALL {derived}) WHERE 1"  # noqa: S608  ours
        return cls(sql, parameters, wanted != Wanted())

    def having(self, kb: KnowledgeBase, identities: Collection[str]) -> set[str]:
        """The statements that are in the pool; all of them if the pool has every statement."""
        if not self.is_part:
            return set(identities)
        listed = json.dumps(list(identities))
        among = f"{self.sql} AND id IN (SELECT value FROM json_each(?))"  # noqa: S608  ours
        return {found for (found,) in kb.sql(among, (*self.parameters, listed))}


_DERIVED = "SELECT DISTINCT id FROM derived_ids WHERE id NOT IN (SELECT id FROM statements)"
_VOTED = (
    "SELECT statement_id FROM votes WHERE question = ? GROUP BY statement_id "
    "ORDER BY count(DISTINCT voter), statement_id"
)
_DRAWN = """
SELECT items.item_id FROM judging_draws AS draws JOIN drawn_items AS items USING (salt)
WHERE draws.kind = ? AND items.draw < draws.reach * items.weight ORDER BY items.draw / items.weight
"""
"""Items that `votes next` has given out."""

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


def question_key(kind: str) -> str:
    """The key of a question in votes. Raises HapaxError for another name."""
    if kind not in SHEETS:
        raise HapaxError(f"There is no kind {kind!r}. Choose {' or '.join(SHEETS)}.")
    return SHEETS[kind][1]


@dataclass(frozen=True)
class Judging:
    """Votes on the statements of one knowledge base.

    `rules`: reads the rules of its derived statements; `shown`: the statement that each voter looks at, and since when,
    by question and voter.
    """

    database: Path
    rules: Callable[[KnowledgeBase], Library] = lambda _: Library()
    shown: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    def next(
        self, kb: KnowledgeBase, kind: str, voter: str, wanted: Wanted, *, skip: int = 0, again: str = ""
    ) -> dict[str, Any] | None:
        """The next readable statement that the voter has not judged; None when there is none left.

        Statements that others are looking at are left to them. `again`: the id of an item that is asked about anew.
        With the `item` and the `question` come the numbers of `judged` and of skipped items; `struck`: ids of the facts
        beside it that the voter has found wrong.
        """
        check_voter_names((voter,))
        key, pool = question_key(kind), ItemPool.of(kb, wanted)
        voted = "SELECT statement_id FROM votes WHERE voter = ? AND question = ?"
        judged = {subject for (subject,) in kb.sql(voted, (voter, key))}
        counts = {"judged": len(pool.having(kb, judged)), "skip": skip}
        if item := self._item(kb, again):
            return counts | _asked(kb, key, item, voter)
        now, met = monotonic(), dict[str, int]()
        self.shown.pop((kind, voter), None)
        taken = set()
        for (question, _), (subject, since) in list(self.shown.items()):
            if question == kind and now - since <= SHOWN_SECONDS:
                taken.add(subject)
        for subject in _subjects(kb, key, pool):
            if subject in judged or subject in met:
                continue
            met[subject] = place = len(met)
            if place >= skip and subject not in taken and (item := self._item(kb, STATEMENT + subject)):
                self.shown[kind, voter] = subject, now
                return counts | {"skip": place} | _asked(kb, key, item, voter)
        return None

    def outcome(self, kb: KnowledgeBase, item_id: str) -> str:
        """The judgement that the votes on a statement have come to, in words."""
        judgement = Judgements.stored(kb).of(subject_id(item_id))
        return f"{judgement_text(judgement)}{' Datasets leave it out.' if judgement.is_wrong else ''}"

    def vote(self, kind: str, form: FormData) -> str:
        """Store the vote of a form in place of the same voter's; returns the answer that it replaces.

        `fact`: ids of the facts that could be struck beside the answer; `struck`: of those that are wrong. Raises
        HapaxError for what is not on the sheet.
        """
        voter, item_id, answer, comment = (
            str(form.get(key, "")).strip() for key in ("voter", "item", "answer", "comment")
        )
        facts, struck = (set(map(str, form.getlist(key))) for key in ("fact", "struck"))
        check_voter_names((voter,))
        key = question_key(kind)
        with KnowledgeBase(self.database) as kb:
            item = self._item(kb, item_id)
            if item is None:
                raise HapaxError("The item of this vote is not in the knowledge base any more. Judge the next.")
            choices = _question(item, key).choices
            if answer not in choices:
                raise HapaxError(f"{answer!r} is not an answer. Choose one of {', '.join(choices)}.")
            if foreign := (facts | struck) - {*item.facts}:
                raise HapaxError(f"{min(foreign)!r} is no fact of this item. Judge the next.")
            if struck and answer == choices[0]:
                raise HapaxError("The statement is said to be true, and a fact of it to be wrong. Answer again.")
            vote = VoteRecord(subject_id(item_id), key, voter, answer, comment)
            denials = [VoteRecord(fact, AUDIT_QUESTION, voter, "no") for fact in sorted(struck)]
            with kb.transaction():
                kb.write(
                    "DELETE FROM votes WHERE statement_id = ? AND question = ? AND voter = ? AND answer = 'no'",
                    [(fact, AUDIT_QUESTION, voter) for fact in facts - struck],
                )
                earlier = next((found for found in kb.votes(vote.statement_id) if found.id == vote.id), None)
                # A second tab shows no comment of the first, so an empty one takes nothing back.
                if earlier is not None and not comment:
                    vote = replace(vote, comment=earlier.comment)
                kb.add(VOTES, [vote, *denials])
        return earlier.answer if earlier is not None and earlier.answer != answer else ""

    def agreement(self, kb: KnowledgeBase, kind: str) -> dict[str, Any] | None:
        """Agreement of people on a question, over `items` with two votes or more; None without any.

        `equal`: share of equal pairs of votes, averaged over items; `alpha`: Krippendorff's, None if it is undefined.
        """
        question = question_key(kind)
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

    def _item(self, kb: KnowledgeBase, item_id: str) -> VotingItem | None:
        """The item about a statement; None if the statement does not stand or cannot be read."""
        if not item_id.startswith(STATEMENT):
            return None
        subject, rules = subject_id(item_id), self.rules(kb)
        stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [subject])
        records = stored[-1:] or derived_records(kb, rules, [subject])
        return next(iter(ItemSource(kb, SheetKind.SOUNDNESS, derived_by=rules).items(records)), None)


def _question(item: VotingItem, key: str) -> ItemQuestion:
    return next(question for question in item.questions if question.key == key)


def _asked(kb: KnowledgeBase, key: str, item: VotingItem, voter: str) -> dict[str, Any]:
    """A question with what stands beside it."""
    struck = set()
    for fact in item.facts:
        if any((vote.voter, vote.question, vote.answer) == (voter, AUDIT_QUESTION, "no") for vote in kb.votes(fact)):
            struck.add(fact)
    return {"item": item, "question": _question(item, key), "struck": struck}


def _subjects(kb: KnowledgeBase, key: str, pool: ItemPool) -> Iterator[str]:
    """Ids of statements, perhaps repeated: those of draws by `votes next`, then those with the fewest votes.

    Those that nobody has judged come in the order of their ids, which is in no order of the search.
    """
    for draw in ("soundness", "derived") if kb.has(DRAWN_ITEMS.name) else ():
        yield from _in_pool(kb, pool, _DRAWN, (draw,))
        begun = None if pool.is_part else kb.first(JUDGING_DRAWS, kind=draw)
        if begun is not None and begun.reach < ENOUGH and kb.path is not None:
            # A draw goes on, so that each further label moves the promise. Its items may be gone meanwhile.
            with suppress(HapaxError), KnowledgeBase(kb.path) as writable:
                yield from next_items(writable, NextOptions(draw)).ids
    last, fresh = "", _FRESH.format(pool=pool.sql)
    while found := kb.sql(fresh, (*pool.parameters, last, key)):
        yield from (subject for (subject,) in found)
        ((last,),) = found[-1:]
    yield from _in_pool(kb, pool, _VOTED, (key,))


def _in_pool(kb: KnowledgeBase, pool: ItemPool, sql: str, parameters: Sequence[object]) -> Iterator[str]:
    """The ids that a query of votes or draws gives, without those of statements that were not chosen."""
    found = [subject for (subject,) in kb.sql(sql, parameters)]
    # Those that are gone are found missing when they are read.
    chosen = pool.having(kb, found)
    yield from (subject for subject in found if subject in chosen)
