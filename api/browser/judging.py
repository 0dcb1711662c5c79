"""Judging in the browser: the next question for a voter, and the vote, as the sheets of `hapax votes` have them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from time import monotonic

import numpy as np

from hapax.api.browser.facets import RememberedCounts
from hapax.api.browser.judging_sheets import SHEETS, ItemPool, JudgingSheet, item_pool
from hapax.api.browser.table_pages import Wanted
from hapax.engine.judgements import (
    FALSE_FACTS,
    SOUND,
    UNJUDGED,
    UNSOUND_RULE,
    UNSURE,
    DrawKind,
    Judgements,
)
from hapax.engine.questions.score_maps import AUDIT_QUESTION
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
from hapax.evaluation.votes.voting_questions import ItemQuestion, SheetKind, VotingItem, predicate_item
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.judgement_records import DRAWN_ITEMS, JUDGING_DRAWS, VOTES, VoteRecord
from hapax.kb.records import STATEMENTS
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.llm_oracle.questions.prompts import sentence

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


@dataclass(frozen=True, slots=True)
class VoterAgreement:
    """Agreement of voters on the last question of a kind, over items with two votes or more.

    `equal`: share of equal pairs of votes, averaged over items; `alpha`: Krippendorff's, None where it is undefined.
    """

    voters: int
    items: int
    equal: float
    alpha: float | None


@dataclass(frozen=True, slots=True)
class Cells:
    """An answer with its comment. `marked`: keys of questions that may stay open, answered with their first choice.

    `facts`: ids of the facts that could be struck beside it; `struck`: of those that are wrong.
    """

    answer: str
    comment: str = ""
    marked: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    struck: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemToJudge:
    """A question about an item. `judged`: items that the voter has judged; `items`: all there are, None if unknown yet.

    `optional`: questions beside it that may stay open; `skip`: items that the voter has skipped; `struck`: ids of the
    facts beside it that the voter has found wrong.
    """

    item: VotingItem
    question: ItemQuestion
    optional: list[ItemQuestion]
    judged: int
    items: int | None
    skip: int
    struck: frozenset[str]


@dataclass(frozen=True)
class Judging:
    """Votes on the items of one knowledge base.

    `rules`: reads the rules of its derived statements; `schemas`: Winograd schemas to judge, by id; `shown`: voters
    with the items that they are looking at, and since when, by sheet and item.
    """

    database: Path
    counts: RememberedCounts
    rules: Callable[[KnowledgeBase], Library] = lambda _: Library()
    schemas: Mapping[str, VotingItem] = field(default_factory=dict)
    shown: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    @property
    def sheets(self) -> Mapping[str, JudgingSheet]:
        """The sheets that have items here, by name."""
        return {name: sheet for name, sheet in SHEETS.items() if self.schemas or sheet.kind is not SheetKind.SCHEMAS}

    def sheet(self, name: str) -> JudgingSheet:
        """The sheet of a name. Raises HapaxError for any other name."""
        if name in self.sheets:
            return self.sheets[name]
        if name in SHEETS:
            raise HapaxError(
                "This server has no schemas to judge.", Remedy("Start it with {} and their file.", Setting("schemas"))
            )
        raise HapaxError(f"There is no kind {name!r}. Choose one of {', '.join(self.sheets)}.")

    def next(
        self, kb: KnowledgeBase, name: str, voter: str, wanted: Wanted, *, skip: int = 0, again: str = ""
    ) -> ItemToJudge | None:
        """The next question about a readable item that the voter has not judged; None when there is none left.

        Items that others are looking at are left to them. `again`: the id of an item that is asked about anew.
        """
        check_voter_names((voter,))
        sheet, pool = self.sheet(name), item_pool(kb, name, self.schemas, wanted)
        judged = _judged(kb, sheet, voter)
        counts = len(pool.having(kb, judged)), self._items(name, wanted)
        if again.startswith(sheet.prefix) and (item := self._item(kb, sheet, subject_id(again))):
            return self._asked(kb, sheet, item, voter, sheet.asked(item.questions)[0], counts=(*counts, skip))
        subjects = (subject for subject in _subjects(kb, sheet, voter, pool) if subject not in judged)
        now = monotonic()
        for place, subject in enumerate(_distinct(subjects)):
            looking, since = self.shown.get((name, subject), (voter, now))
            is_free = looking == voter or now - since > SHOWN_SECONDS
            if place >= skip and is_free and (item := self._item(kb, sheet, subject)):
                # A voter looks at one item of a sheet.
                for key in [key for key, (whose, _) in self.shown.items() if (key[0], whose) == (name, voter)]:
                    self.shown.pop(key, None)
                self.shown[name, subject] = (voter, now)
                question = self._open_question(kb, sheet, item, voter)
                return self._asked(kb, sheet, item, voter, question, counts=(*counts, place))
        return None

    @staticmethod
    def _asked(
        kb: KnowledgeBase,
        sheet: JudgingSheet,
        item: VotingItem,
        voter: str,
        question: ItemQuestion,
        *,
        counts: tuple[int, int | None, int],
    ) -> ItemToJudge:
        """A question with what stands beside the last one of its item. `counts`: of judged, all and skipped items."""
        is_last = question.key == sheet.last
        optional = sheet.optional(item.questions) if is_last else []
        struck = {fact for fact in item.facts if is_last and (voter, "no") in _truths(kb, fact)}
        return ItemToJudge(item, question, optional, *counts, struck=frozenset(struck))

    def outcome(self, kb: KnowledgeBase, item_id: str) -> str:
        """The judgement that the votes on a statement have come to, in words; empty for other items."""
        judgement = Judgements.stored(kb).of(subject_id(item_id)) if item_id.startswith(STATEMENT) else UNJUDGED
        return f"{judgement_text(judgement)}{' Datasets leave it out.' if judgement.is_wrong else ''}"

    def vote(self, name: str, voter: str, item_id: str, question_key: str, cells: Cells) -> str:
        """Store a vote in place of the same voter's; returns the answer that it replaces.

        Raises HapaxError for what is not on the sheet.
        """
        check_voter_names((voter,))
        sheet = self.sheet(name)
        with KnowledgeBase(self.database) as kb:
            item = self._item(kb, sheet, subject_id(item_id)) if item_id.startswith(sheet.prefix) else None
            if item is None:
                raise HapaxError("The item of this vote is not in the knowledge base any more. Judge the next.")
            asked = question_key or sheet.last
            question = next((question for question in item.questions if question.key == asked), None)
            if question is None:
                raise HapaxError(f"{question_key!r} is not a question about this item. Judge the next.")
            if cells.answer not in question.choices:
                raise HapaxError(f"{cells.answer!r} is not an answer. Choose one of {', '.join(question.choices)}.")
            vote = VoteRecord(subject_id(item_id), question.key, voter, cells.answer, cells.comment.strip())
            marks = [
                VoteRecord(vote.statement_id, optional.key, voter, optional.choices[0])
                for optional in sheet.optional(item.questions)
                if optional.key in cells.marked
            ]
            if foreign := {*cells.facts, *cells.struck} - {*item.facts}:
                raise HapaxError(f"{min(foreign)!r} is no fact of this item. Judge the next.")
            if cells.struck and cells.answer == question.choices[0]:
                raise HapaxError("The statement is said to be true, and a fact of it to be wrong. Answer again.")
            marks += [VoteRecord(fact, AUDIT_QUESTION, voter, "no") for fact in cells.struck]
            taken_back = [(fact, AUDIT_QUESTION, voter) for fact in cells.facts if fact not in cells.struck]
            with kb.transaction():
                kb.write(
                    "DELETE FROM votes WHERE statement_id = ? AND question = ? AND voter = ? AND answer = 'no'",
                    taken_back,
                )
                earlier = next((found for found in kb.votes(vote.statement_id) if found.id == vote.id), None)
                # A second tab shows no comment of the first, so an empty one takes nothing back.
                if earlier is not None and not vote.comment:
                    vote = replace(vote, comment=earlier.comment)
                kb.add(VOTES, [vote, *marks])
        return earlier.answer if earlier is not None and earlier.answer != cells.answer else ""

    def unjudged(self, kb: KnowledgeBase, name: str) -> int | None:
        """The number of items of a sheet that nobody has judged; None while they are being counted."""
        judged = kb.sql("SELECT count(DISTINCT statement_id) FROM votes WHERE question = ?", (self.sheet(name).last,))
        items = self._items(name, Wanted())
        return None if items is None else max(0, items - int(judged[0][0]))

    def _items(self, name: str, wanted: Wanted) -> int | None:
        """The number of items of a sheet, counted beside the pages."""
        return self.counts.of((name, wanted), lambda kb: item_pool(kb, name, self.schemas, wanted).count(kb))[0]

    def agreement(self, kb: KnowledgeBase, name: str) -> VoterAgreement | None:
        """Agreement of people on the last question of a sheet; None where no item has two votes."""
        question = self.sheet(name).last
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
        return VoterAgreement(voters, len(twice), agreeing_pairs(counts), None if math.isnan(alpha) else alpha)

    def _item(self, kb: KnowledgeBase, sheet: JudgingSheet, subject: str) -> VotingItem | None:
        """The item about a statement, fact or schema; None if it does not stand or cannot be read."""
        if sheet.kind is SheetKind.SCHEMAS:
            return self.schemas.get(sheet.prefix + subject)
        source = ItemSource(kb, sheet.kind, derived_by=self.rules(kb))
        if sheet.kind is not SheetKind.PREDICATES:
            stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [subject])
            records = stored[-1:]
            if not records:
                records = derived_records(kb, self.rules(kb), [subject])
            return next(iter(source.items(records)), None)
        if (fact := kb.facts_by_id([subject]).get(subject)) is None:
            # One that a gate has rejected, which `votes next` gives out, too.
            return source.by_id({FACT + subject}).get(FACT + subject)
        claim = sentence(atom_text(fact.ground_atom, stored_library(kb, ())))
        return predicate_item(FACT + subject, claim, list(zip(map(str, fact.arguments), fact.types, strict=True)))

    @staticmethod
    def _open_question(kb: KnowledgeBase, sheet: JudgingSheet, item: VotingItem, voter: str) -> ItemQuestion:
        """The first question that the voter has not answered."""
        answered = {vote.question for vote in kb.votes(subject_id(item.id)) if vote.voter == voter}
        return next(question for question in sheet.asked(item.questions) if question.key not in answered)


def _judged(kb: KnowledgeBase, sheet: JudgingSheet, voter: str) -> set[str]:
    sql = "SELECT statement_id FROM votes WHERE voter = ? AND question = ?"
    return {subject for (subject,) in kb.sql(sql, (voter, sheet.last))}


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


def _truths(kb: KnowledgeBase, fact: str) -> set[tuple[str, str]]:
    """Voters on the truth of a fact, with their answers."""
    return {(vote.voter, vote.answer) for vote in kb.votes(fact) if vote.question == AUDIT_QUESTION}


def _distinct(subjects: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for subject in subjects:
        if subject not in seen:
            seen.add(subject)
            yield subject
