"""The content of the page of a statement: the story of its proof, its votes and promises, and near misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from hapax.api.browser import table_pages as tables
from hapax.api.browser.table_pages import Page, StoredTable
from hapax.engine.answers.derivation import statement_by_id
from hapax.engine.explain import Explainer, refuse_withdrawn, what_fell
from hapax.engine.inference.theory import Theory
from hapax.engine.judgements import Judgements
from hapax.engine.run_memory import with_stored_predicates
from hapax.engine.search.promises import StoredCertificate, certificates_of, certificates_of_statement
from hapax.engine.stories import Story
from hapax.evaluation.shared.stored_statements import judgement_text
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.kb.judgement_records import VoteRecord
from hapax.kb.records import CANDIDATES, QUESTIONS, STATEMENTS, Distribution, StatementRecord
from hapax.kb.store import STANDING, KnowledgeBase

MOST_LINES = 300
"""Lines of one story on a page; `hapax why` prints all."""
MOST_DEPTH = 40
"""Deepest nesting of a story's lists; deeper lines are shown at this depth. Browsers stop at 512 nested elements."""


class NotStored(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """The knowledge base holds nothing of this name."""


class Fallen(NotStored):
    """A statement that was stored and no longer holds, with the reason."""


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of a story. `opens`: the next line is its first child; `closes`: number of lists that end after it."""

    text: str
    kind: str
    words: str
    by: str
    opens: bool
    unfolded: bool
    closes: int


def nested(story: Story) -> tuple[list[StoryLine], int]:
    """The first lines of a story, which open and close lists, and the number of the others.

    Without recursion, because a proof may be deeper than Python's stack.
    """
    # Lazily: only the first lines of a long proof are put into words.
    lines = [(min(depth, MOST_DEPTH), part) for depth, part in islice(story.lines(), MOST_LINES)]
    # After the last line all lists end.
    next_depths = [*(depth for depth, _ in lines[1:]), 0]
    nested_lines = []
    for (depth, part), next_depth in zip(lines, next_depths, strict=True):
        # A conclusion shows its premises at once; whatever is behind a fact unfolds with one click.
        unfolded = part.kind not in ("goal", "ranking") or any(child.kind == "goal" for child in part.children)
        opens, closes = next_depth > depth, max(0, depth - next_depth)
        nested_lines.append(StoryLine(part.text, part.kind, part.words, part.by, opens, unfolded, closes))
    # Counted without keeping them: a proof may have millions of lines.
    return nested_lines, sum(1 for _ in story.lines()) - len(nested_lines)


@dataclass(frozen=True, slots=True)
class ShownStatement:
    """A statement with its story and votes. `lines`: the first of its proof; `more`: number of the others.

    `ranking`: how its values were chosen and ranked, if a search did it.
    """

    record: StatementRecord
    story: Story
    lines: list[StoryLine]
    more: int
    ranking: list[StoryLine]
    votes: tuple[tuple[str, str, int], ...]
    judgement: str

    @classmethod
    def of(
        cls, theory: Theory, statement: StatementRecord, votes: Iterable[VoteRecord], judged: Judgements
    ) -> ShownStatement:
        """A statement as pages show it. `votes`: those on its text."""
        story = Explainer(theory).statement(statement)
        # The proof comes last.
        *ranked, proof = story.children
        ranking, _ = nested(Story("How its values were chosen and ranked", "ranking", tuple(ranked)))
        counts, judgement = vote_counts(votes), judgement_text(judged.of(statement.id))
        return cls(statement, story, *nested(proof), ranking if ranked else [], counts, judgement)


@dataclass(frozen=True, slots=True)
class StatementPage:
    """A statement with its proof and votes, its ends and values. One that `derive` concluded has no ends.

    `certificates`: promises on the statement and on the facts of its proof; `misses`: claims that failed a gate where
    its facts passed.
    """

    statement: ShownStatement
    ends: list[Distribution]
    values: list[tuple[str, str]]
    certificates: list[StoredCertificate]
    misses: list[NearMiss]

    def tables(self, kb: KnowledgeBase) -> dict[str, StoredTable]:
        """The tables behind the page by name."""
        record = self.statement.record
        return {
            "statement": tables.statement_rows(record, self.ends),
            "proof": story_table(self.statement.story),
            "facts": tables.proof_facts(kb, record.id),
            "votes": tables.votes(kb, record.id),
        }


@dataclass(frozen=True)
class StatementReader:
    """Reads the pages of statements. Votes and rules are read once for all of them."""

    kb: KnowledgeBase
    library: Library

    @cached_property
    def _theory(self) -> Theory:
        # In the sentences that the knowledge base has for its predicates.
        return with_stored_predicates(Theory(self.library, self.kb))

    @cached_property
    def _judged(self) -> Judgements:
        return Judgements.stored(self.kb)

    @cached_property
    def _votes(self) -> dict[str, list[VoteRecord]]:
        """Votes by the row of their statement; statements that read the same share a row."""
        votes: dict[str, list[VoteRecord]] = {}
        for vote in self.kb.votes():
            votes.setdefault(self._judged.row(vote.statement_id), []).append(vote)
        return votes

    def page(self, identity: str) -> StatementPage:
        """The page of a statement. Raises NotStored for an unknown id, and Fallen for one that no longer holds."""
        kb = self.kb
        stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [identity])
        # Of the rows of a statement at several ends or of several runs, the newest.
        record = stored[-1] if stored else statement_by_id(kb, self.library, identity)
        if record is None:
            for fallen in kb.matching(STATEMENTS, id=identity):
                if reason := what_fell(self._theory, fallen):
                    raise Fallen(reason.message)
            try:
                refuse_withdrawn(self._theory, identity)
            except HapaxError as gone:
                raise Fallen(str(gone)) from None
            raise NotStored(f"No statement has the id {identity}.")
        votes = self._votes.get(self._judged.row(record.id), [])
        shown = ShownStatement.of(self._theory, record, votes, self._judged)
        values = [(name, str(value)) for name, value in record.substitution]
        ends = sorted({statement.distribution for statement in stored})
        facts = kb.facts_by_id(text for (text,) in kb.sql(_PROOF_FACTS, (record.id,))).values()
        certificates = [*certificates_of_statement(kb, record), *certificates_of(kb, facts)]
        misses = rejected_rivals(kb, [fact.candidate_id for fact in facts if fact.candidate_id])
        return StatementPage(shown, ends, values, certificates, misses)


_PROOF_FACTS = "SELECT fact_id FROM statement_facts WHERE key IN (SELECT key FROM statements WHERE id = ?)"

_RIVALS = """
SELECT DISTINCT rivals.question_id, rivals.id, decisions.gate, decisions.score, decisions.threshold, decisions.reason
FROM candidates JOIN candidates AS rivals ON rivals.question_id = candidates.question_id
JOIN decisions ON decisions.subject = rivals.id
WHERE candidates.id = ? AND decisions.accepted = 0 AND decisions.score < decisions.threshold
AND rivals.value <> candidates.value
ORDER BY decisions.threshold - decisions.score LIMIT ?
"""
"""Other answers to the question of a candidate that a gate rejected by their score, the closest first."""
MISSES = 5


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A claim that a gate rejected by its score, beside facts that passed it."""

    atom: str
    gate: str
    score: float
    threshold: float
    reason: str


def rejected_rivals(kb: KnowledgeBase, candidate_ids: Iterable[str]) -> list[NearMiss]:
    """Rejected answers to the questions of these candidates that are not facts all the same, the closest first."""
    closest: dict[str, NearMiss] = {}
    for candidate_id in candidate_ids:
        # Twice as many as are shown, since some are facts by another question.
        rivals = kb.sql(_RIVALS, (candidate_id, 2 * MISSES))
        question_ids = {question_id for question_id, *_ in rivals}
        rival_ids = {rival_id for _, rival_id, *_ in rivals}
        questions = {row.question.id: row.question for row in kb.select_in(QUESTIONS, "id", question_ids)}
        candidates = {record.id: record for record in kb.select_in(CANDIDATES, "id", rival_ids)}
        for question_id, rival_id, *decision in rivals:
            if question_id in questions and rival_id in candidates:
                # More than one pattern comes from `--compat` alone; the first one names the claim.
                pattern, value = questions[question_id].patterns[0], candidates[rival_id].value
                arguments = tuple(value if argument is None else argument for argument in pattern.arguments)
                if kb.fact(pattern.predicate, arguments) is None:
                    atom = str(Atom(pattern.predicate, tuple(map(Constant, arguments))))
                    closest.setdefault(atom, NearMiss(atom, *decision))
    return sorted(closest.values(), key=lambda miss: miss.threshold - miss.score)[:MISSES]


def story_table(story: Story) -> StoredTable:
    """The lines of a story with their depths, from 0."""
    rows = [(depth, part.text) for depth, part in islice(story.lines(), tables.MOST_ROWS)]
    return StoredTable(("depth", "line"), rows, "", Page(rows=tables.MOST_ROWS))


def vote_counts(votes: Iterable[VoteRecord]) -> tuple[tuple[str, str, int], ...]:
    """Question, answer and number of votes, sorted."""
    counts = Counter((vote.question, vote.answer) for vote in votes)
    return tuple((question, answer, count) for (question, answer), count in sorted(counts.items()))
