"""Judging in the browser: the next question for a voter, and the vote, as the sheets of `hapax votes` have them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean

from hapax.engine.judging_draw import DrawKind
from hapax.engine.search.demand import fact_atom
from hapax.engine.soundness import MODEL_VOTER, SOUNDNESS_QUESTION
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.evaluation.shared.verdicts import DATA_TYPE_QUESTION, ENTAILMENT_QUESTION
from hapax.evaluation.votes.derived import derived_records
from hapax.evaluation.votes.exporting import check_voter_names
from hapax.evaluation.votes.items import FACT, STATEMENT, ItemSource, subject_id
from hapax.evaluation.votes.questions import AUDIT, ItemQuestion, SheetKind, VotingItem, predicate_item
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.rules import Library
from hapax.grammar.verbalize import atom_text
from hapax.kb.derived_ids import DerivedIds
from hapax.kb.records import VoteRecord
from hapax.kb.rows import STATEMENTS
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.llm_oracle.prompts import sentence

KINDS: Mapping[SheetKind, str] = {
    SheetKind.SOUNDNESS: "statements: is it true?",
    SheetKind.STATEMENTS: "statements as in LINK: types, then whether the premise entails the conclusion",
    SheetKind.PREDICATES: "facts of models: references, types, truth",
}
"""The sheets whose items the knowledge base holds, as people choose them."""

_MAIN: Mapping[SheetKind, str] = {
    SheetKind.SOUNDNESS: SOUNDNESS_QUESTION,
    SheetKind.STATEMENTS: ENTAILMENT_QUESTION,
    SheetKind.PREDICATES: f"{AUDIT} Q3",
}
"""The question that is asked last about an item, and whose answer ends it."""

_BEFORE = {SheetKind.STATEMENTS: f"{DATA_TYPE_QUESTION} %", SheetKind.PREDICATES: f"{AUDIT} %"}
"""Patterns of the questions before the last one."""

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

_POOLS = {
    STATEMENT: f"SELECT DISTINCT id FROM statements WHERE {STANDING}",  # noqa: S608  ours
    FACT: "SELECT id FROM facts WHERE source = 'model'",
}
"""The items that are not given out by anybody, by the prefix of their ids."""
_FRESH = "{pool} AND id > ? AND id NOT IN (SELECT statement_id FROM votes WHERE question = ?) ORDER BY id LIMIT 50"
_VOTED = (
    "SELECT statement_id FROM votes WHERE question = ? GROUP BY statement_id "
    "ORDER BY count(DISTINCT voter), statement_id"
)
_COUNTS = "SELECT statement_id, answer, count(*) FROM votes WHERE question = ? AND voter NOT LIKE ? GROUP BY 1, 2"


@dataclass(frozen=True, slots=True)
class VoterAgreement:
    """Agreement of voters on the last question of a kind, over items with two votes or more.

    `equal`: share of equal pairs of votes, averaged over items; `alpha`: Krippendorff's, None where it is undefined or
    the extra `evaluation` is not installed.
    """

    voters: int
    items: int
    equal: float
    alpha: float | None


@dataclass(frozen=True, slots=True)
class ItemToJudge:
    """A question about an item. `judged`: items that the voter has judged; `items`: all there are.

    `skip`: items that the voter has passed over.
    """

    item: VotingItem
    question: ItemQuestion
    judged: int
    items: int
    skip: int


@dataclass(frozen=True)
class Judging:
    """Votes on the items of one knowledge base. `rules`: reads the rules of its derived statements."""

    database: Path
    rules: Callable[[KnowledgeBase], Library] = lambda _: Library()

    def next(self, kb: KnowledgeBase, kind: SheetKind, voter: str, skip: int) -> ItemToJudge | None:
        """The next question about a readable item that the voter has not judged; None when there is none left."""
        check_voter_names((voter,))
        judged = _judged(kb, kind, voter)
        pool = _pool(kb, kind)
        ((count,),) = kb.query(f"SELECT count(*) FROM ({pool})")  # noqa: S608  ours
        subjects = (subject for subject in _subjects(kb, kind, voter, pool) if subject not in judged)
        for place, subject in enumerate(_distinct(subjects)):
            if place >= skip and (item := self._item(kb, kind, subject)):
                question = self._open_question(kb, kind, item, voter)
                return ItemToJudge(item, question, len(judged), count, place)
        return None

    def vote(self, kind: SheetKind, voter: str, item_id: str, question_key: str, cells: tuple[str, str]) -> str:
        """Store a vote, an answer and a comment, in place of the same voter's; returns the answer that it replaces.

        Raises HapaxError for what is not on the sheet.
        """
        check_voter_names((voter,))
        answer, comment = cells
        with KnowledgeBase(self.database) as kb:
            item = self._item(kb, kind, subject_id(item_id)) if item_id.startswith(_prefix(kind)) else None
            if item is None:
                raise HapaxError("The item of this vote is not in the knowledge base any more. Judge the next.")
            asked = question_key or _MAIN[kind]
            question = next((question for question in item.questions if question.key == asked), None)
            if question is None:
                raise HapaxError(f"{question_key!r} is not a question about this item. Judge the next.")
            if answer not in question.choices:
                raise HapaxError(f"{answer!r} is not an answer. Choose one of {', '.join(question.choices)}.")
            vote = VoteRecord(subject_id(item_id), question.key, voter, answer, comment.strip())
            with kb.transaction():
                earlier = next((found for found in kb.votes(vote.statement_id) if found.id == vote.id), None)
                # A second tab shows no comment of the first, so an empty one takes nothing back.
                if earlier is not None and not vote.comment:
                    vote = replace(vote, comment=earlier.comment)
                kb.add_votes([vote])
        return earlier.answer if earlier is not None and earlier.answer != answer else ""

    def agreement(self, kb: KnowledgeBase, kind: SheetKind) -> VoterAgreement | None:
        """Agreement of people on the last question of a kind; None where no item has two votes."""
        by_item: dict[str, dict[str, int]] = defaultdict(dict)
        for item, answer, count in kb.query(_COUNTS, (_MAIN[kind], f"{MODEL_VOTER}%")):
            by_item[item][answer] = count
        twice = [counts for counts in by_item.values() if sum(counts.values()) > 1]
        if not twice:
            return None
        ((voters,),) = kb.query(
            "SELECT count(DISTINCT voter) FROM votes WHERE question = ? AND voter NOT LIKE ?",
            (_MAIN[kind], f"{MODEL_VOTER}%"),
        )
        shares = [
            sum(count * (count - 1) for count in counts.values()) / (votes * (votes - 1))
            for counts in twice
            if (votes := sum(counts.values()))
        ]
        return VoterAgreement(voters, len(twice), fmean(shares), _alpha(twice))

    def _item(self, kb: KnowledgeBase, kind: SheetKind, subject: str) -> VotingItem | None:
        """The item about a statement or fact; None if it does not stand or cannot be read."""
        source = ItemSource(kb, kind, derived_by=self.rules(kb))
        if kind is not SheetKind.PREDICATES:
            stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [subject])
            records = stored[-1:] or derived_records(kb, self.rules(kb), [subject])
            return next(iter(source.items(records)), None)
        if (fact := kb.facts_by_id([subject]).get(subject)) is None:
            # One that a gate has rejected, which `votes next` gives out, too.
            return source.by_id({FACT + subject}).get(FACT + subject)
        claim = sentence(atom_text(fact_atom(fact), stored_library(kb)))
        return predicate_item(FACT + subject, claim, list(zip(map(str, fact.arguments), fact.types, strict=True)))

    @staticmethod
    def _open_question(kb: KnowledgeBase, kind: SheetKind, item: VotingItem, voter: str) -> ItemQuestion:
        """The first question that the voter has not answered, the one that ends the item last."""
        answered = {vote.question for vote in kb.votes(subject_id(item.id)) if vote.voter == voter}
        # One key judges a statement; a comment can say that its English is bad.
        asked = [question for question in item.questions if question.main or kind is not SheetKind.SOUNDNESS]
        asked = sorted((question for question in asked if question.required), key=lambda question: question.main)
        return next(question for question in asked if question.key not in answered)


def _prefix(kind: SheetKind) -> str:
    return FACT if kind is SheetKind.PREDICATES else STATEMENT


def _judged(kb: KnowledgeBase, kind: SheetKind, voter: str) -> set[str]:
    sql = "SELECT statement_id FROM votes WHERE voter = ? AND question = ?"
    return {subject for (subject,) in kb.query(sql, (voter, _MAIN[kind]))}


def _pool(kb: KnowledgeBase, kind: SheetKind) -> str:
    """The SELECT of the ids of all items: of statements, those that `derive` concluded are among them."""
    pool = _POOLS[_prefix(kind)]
    if kind is SheetKind.PREDICATES or not any(kb.derived_counts().values()) or not DerivedIds(kb).prepare():
        return pool
    derived = "SELECT DISTINCT id FROM derived_ids WHERE id NOT IN (SELECT id FROM statements)"
    return f"SELECT id FROM ({pool} UNION ALL {derived}) WHERE 1"  # noqa: S608  ours


def _subjects(kb: KnowledgeBase, kind: SheetKind, voter: str, pool: str) -> Iterator[str]:
    """Ids of items, perhaps repeated: begun by the voter, given out by `votes next`, and with the fewest votes first.

    Those that nobody has judged come in the order of their ids, which is in no order of the search.
    """
    if kind in _BEFORE:
        yield from (subject for (subject,) in kb.query(_BEGUN, (voter, _BEFORE[kind])))
    for draw in _DRAWS.get(kind, ()):
        yield from (subject for (subject,) in kb.query(_DRAWN, (draw,)))
    last, fresh = "", _FRESH.format(pool=pool)
    while found := kb.query(fresh, (last, _MAIN[kind])):
        yield from (subject for (subject,) in found)
        ((last,),) = found[-1:]
    yield from (subject for (subject,) in kb.query(_VOTED, (_MAIN[kind],)))


def _distinct(subjects: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for subject in subjects:
        if subject not in seen:
            seen.add(subject)
            yield subject


def _alpha(counts: Sequence[Mapping[str, int]]) -> float | None:
    """Krippendorff's alpha over these counts of answers."""
    if missing_of("evaluation"):
        return None
    import numpy as np

    from hapax.evaluation.votes.agreement import krippendorff_alpha

    answers = sorted(set(chain.from_iterable(counts)))
    alpha = krippendorff_alpha(np.array([[of_item.get(answer, 0) for answer in answers] for of_item in counts]))
    return None if math.isnan(alpha) else alpha
