"""People's judgements on statements: the questions that they answer, and the one place where their votes are counted.

The sheets of `votes`, the page of `serve --judge` and the import of LINT all store votes. Whoever wants to know what
people think of a statement asks `Judgements`; only LINK's tables, which are about single questions, count ballots.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hapax.engine.voter_errors import Vote, weigh_shared
from hapax.kb.records import VoteRecord
from hapax.kb.store import KnowledgeBase

SOUNDNESS_QUESTION = "soundness"
"""Question of a vote on whether a statement is true."""

SOUND, FALSE_FACTS, UNSOUND_RULE, UNSURE = "yes", "facts", "rule", "unsure"
"""Answers: true; false because of a fact; false although its facts are true; undecided."""

DENIALS = ("no", FALSE_FACTS, UNSOUND_RULE)
"""Answers by which a voter denies what a question asks."""

SOUNDNESS_WORDING = f"{SOUNDNESS_QUESTION} wording"
"""Question on the English of a statement whose truth is asked."""

ENTAILMENT_QUESTION = "entailment"
"""LINK's question on whether the premise entails the conclusion. Its no means the same as the answer `rule`."""

DATA_TYPE_QUESTION = "data type"
"""LINK's question on a value's data type; a variable may follow: `data type B`."""

HARMFUL = "harmful"
"""Question that marks a statement as harmful. It may stay open, and one mark is enough."""

MODEL_VOTER = "model "
"""Beginning of the names of models that judge. A person's vote on a statement outweighs theirs."""

LINK_ANNOTATORS = "LINK's annotators, by majority"
"""Voter who stands for LINK's annotators. Only their noes are published, so that no share may count them."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The voters' opinion of a statement.

    `truth`: an answer to the question of truth, `unsure` after a tie or doubt, None if nobody was asked. `typed`: False
    if a majority found a value of a wrong type, True if all types were affirmed. `reads_well`: the same of its English.
    `voters`: those whose answers decide on the truth.
    """

    truth: str | None = None
    typed: bool | None = None
    reads_well: bool | None = None
    is_harmful: bool = False
    voters: frozenset[str] = frozenset()

    @property
    def is_true(self) -> bool | None:
        """None if the votes decide nothing."""
        return None if self.truth in (None, UNSURE) else self.truth == SOUND

    @property
    def word(self) -> str | None:
        """`true`, `false` or `undecided`; None if nobody was asked whether the statement is true."""
        if self.truth is None:
            return None
        return {True: "true", False: "false", None: "undecided"}[self.is_true]

    @property
    def is_wrong(self) -> bool:
        """True if the statement is false, or a value in it is of a wrong type."""
        return self.is_true is False or self.typed is False

    @property
    def in_shares(self) -> bool:
        """True if somebody was asked of whom every answer is known: see `LINK_ANNOTATORS`."""
        return bool(self.voters - {LINK_ANNOTATORS})


UNJUDGED = Judgement()


@dataclass(frozen=True)
class Judgements:
    """The judgements of a knowledge base. Voters saw the text alone, so a vote counts for all statements that read so.

    `texts`: by the smallest id of the statements with one text; `rows`: that id, by the id of each of them.
    """

    texts: Mapping[str, Judgement] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def stored(cls, kb: KnowledgeBase, models: bool = False) -> Judgements:
        """The judgements by the stored votes; `models`: by those of models, too, where no person voted."""
        rows: dict[str, str] = {}
        for identities in kb.voted_texts():
            rows |= dict.fromkeys(identities, min(identities))
        votes = []
        for vote in kb.votes():
            if models or not vote.voter.startswith(MODEL_VOTER):
                votes.append(replace(vote, statement_id=rows.get(vote.statement_id, vote.statement_id)))
        return cls(judgements(votes), rows)

    def of(self, identity: str) -> Judgement:
        """The judgement on a statement."""
        return self.texts.get(self.row(identity), UNJUDGED)

    def row(self, identity: str) -> str:
        """The smallest id of the statements that read as this one."""
        return self.rows.get(identity, identity)


def judgements(votes: Iterable[VoteRecord]) -> dict[str, Judgement]:
    """The judgement on each statement that votes are on.

    The truth is decided by the voters' rates of error (Dawid and Skene 1979) where enough of them judged the same
    statements, otherwise by the majority. LINK's question alone is always decided by the majority, as in the paper.
    """
    answers: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for vote in votes:
        answers[vote.statement_id][folded(vote.question)][vote.voter] = folded(vote.answer)
    ballots = {statement: _ballots(by_question) for statement, by_question in answers.items()}
    decided: list[Vote] = []
    for statement, own in ballots.items():
        for voter, answer in own.items():
            # Who is known by noes alone has no rate of error.
            if answer != UNSURE and voter != LINK_ANNOTATORS:
                decided.append(Vote(statement, voter, answer == SOUND))
    weighed = weigh_shared(decided)
    found = {}
    for statement, by_question in answers.items():
        is_weighed = SOUNDNESS_QUESTION in by_question
        probability = weighed.probabilities.get(statement) if weighed and is_weighed else None
        judgement = _judgement(by_question, ballots[statement], probability)
        if judgement != UNJUDGED:
            found[statement] = judgement
    return found


def folded(text: str) -> str:
    """A question or an answer as it is compared: other programs may have stored blanks and capitals."""
    return text.strip().casefold()


def _ballots(by_question: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Each voter's answer to the question of truth; those of models only if no person answered."""
    opinions = {}
    for voter, answer in by_question.get(ENTAILMENT_QUESTION, {}).items():
        if answer in (SOUND, "no"):
            opinions[voter] = SOUND if answer == SOUND else UNSOUND_RULE
    # Asked directly, a voter has said more than by LINK's question.
    opinions |= by_question.get(SOUNDNESS_QUESTION, {})
    people = {voter: answer for voter, answer in opinions.items() if not voter.startswith(MODEL_VOTER)}
    return people or opinions


def _judgement(
    by_question: Mapping[str, Mapping[str, str]], ballots: Mapping[str, str], probability: float | None
) -> Judgement:
    types = [_majority(own) for question, own in by_question.items() if question.startswith(DATA_TYPE_QUESTION)]
    typed = None if not types or (None in types and False not in types) else False not in types
    return Judgement(
        _truth(ballots.values(), probability) if ballots else None,
        typed,
        _majority(by_question.get(SOUNDNESS_WORDING, {})),
        "yes" in by_question.get(HARMFUL, {}).values(),
        frozenset(ballots),
    )


def _majority(answers: Mapping[str, str]) -> bool | None:
    """True if more voters said yes than no; None after a tie, and where nobody said either."""
    counts = Counter(answers.values())
    return None if counts["yes"] == counts["no"] else counts["yes"] > counts["no"]


def _truth(answers: Iterable[str], probability: float | None) -> str:
    """The verdict on a statement by its probability of being true, or by the majority if that is None."""
    counts = Counter(answers)
    sound = counts[SOUND]
    against = Counter({answer: count for answer, count in counts.items() if answer not in (SOUND, UNSURE)})
    # No weight makes an answer that nobody gave.
    if probability is None or probability == 0.5 or not sound or not against:
        balance = float(sound - against.total())
    else:
        balance = probability - 0.5
    if balance == 0:
        return UNSURE
    # Of those who deny, the commonest reason; in alphabetical order if there are two.
    return SOUND if balance > 0 else min(against, key=lambda answer: (-against[answer], answer))


def shared_judgements(found: Judgements, identities: Iterable[str]) -> Iterator[Judgement]:
    """The judgements on these statements, of each text once."""
    for row in dict.fromkeys(map(found.row, identities)):
        if row in found.texts:
            yield found.texts[row]
