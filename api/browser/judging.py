"""Judging in the browser: the next statement for a voter, and the vote, as the sheets of `hapax votes` have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hapax.engine.soundness import SOUNDNESS_QUESTION
from hapax.evaluation.votes.exporting import check_voter_names
from hapax.evaluation.votes.items import STATEMENT, ItemSource, subject_id
from hapax.evaluation.votes.questions import SheetKind, VotingItem
from hapax.grammar.errors import HapaxError
from hapax.kb.records import VoteRecord
from hapax.kb.rows import STATEMENTS
from hapax.kb.store import STANDING, KnowledgeBase

_UNJUDGED = f"""
SELECT min(statements.rowid) FROM statements
WHERE {STANDING} AND NOT EXISTS (
    SELECT 1 FROM votes WHERE votes.statement_id = statements.id AND votes.voter = ? AND votes.question = ?
)
GROUP BY statements.id
ORDER BY coalesce((
    SELECT items.draw / items.weight FROM judging_draws AS draws JOIN drawn_items AS items USING (salt)
    WHERE draws.kind = 'soundness' AND items.item_id = statements.id AND items.draw < draws.reach * items.weight
), 1e300), (SELECT count(DISTINCT voter) FROM votes WHERE votes.statement_id = statements.id), statements.id
LIMIT 1 OFFSET ?
"""  # noqa: S608  ours
"""Those that `votes next` has given out first, then statements with the fewest voters, otherwise by their content ids,
which are in no order of the search.
"""


@dataclass(frozen=True, slots=True)
class ItemToJudge:
    """An item, how many this voter has judged, and how many there are. `skip`: items that the voter has passed over."""

    item: VotingItem
    judged: int
    statements: int
    skip: int


@dataclass(frozen=True)
class Judging:
    """Votes on the soundness of statements in one knowledge base."""

    database: Path

    def next(self, kb: KnowledgeBase, voter: str, skip: int) -> ItemToJudge | None:
        """The next readable statement that the voter has not judged; None when there is none left."""
        check_voter_names((voter,))
        ((judged,),) = kb.query(
            "SELECT count(*) FROM votes WHERE voter = ? AND question = ?", (voter, SOUNDNESS_QUESTION)
        )
        ((statements,),) = kb.query("SELECT count(DISTINCT id) FROM statements")
        while chosen := kb.query(_UNJUDGED, (voter, SOUNDNESS_QUESTION, skip)):
            if stored := kb.select(STATEMENTS, "WHERE statements.rowid = ?", [chosen[0][0]]):
                (item,) = ItemSource(kb, SheetKind.SOUNDNESS).items(stored)
                return ItemToJudge(item, judged, statements, skip)
            skip += 1  # a statement that cannot be read is passed over
        return None

    def vote(self, voter: str, item_id: str, answer: str, comment: str) -> None:
        """Store a vote; a second one of the same voter replaces it. Raises HapaxError for what is not on the sheet."""
        check_voter_names((voter,))
        with KnowledgeBase(self.database) as kb:
            stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [subject_id(item_id)])
            if not stored or not item_id.startswith(STATEMENT):
                raise HapaxError("The statement of this vote is not in the knowledge base any more. Judge the next.")
            (item,) = ItemSource(kb, SheetKind.SOUNDNESS).items(stored[-1:])
            question = next(question for question in item.questions if question.main)
            if answer not in question.choices:
                raise HapaxError(f"{answer!r} is not an answer. Choose one of {', '.join(question.choices)}.")
            kb.add_votes([VoteRecord(subject_id(item_id), question.key, voter, answer, comment.strip())])
