"""Soundness of rules: how many of a rule's statements readers found true, from the votes of a knowledge base."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hapax.engine.voter_errors import Vote, weigh_shared
from hapax.kb.records import VoteRecord
from hapax.kb.store import KnowledgeBase

SOUNDNESS_QUESTION = "soundness"
"""Question of a vote on whether a statement is true."""

SOUND, FALSE_FACTS, UNSOUND_RULE, UNSURE = "yes", "facts", "rule", "unsure"
"""Answers: true; false because of a fact; false although its facts are true; undecided."""

MODEL_VOTER = "model "
"""Beginning of the names of models that judge. A person's vote on a statement outweighs theirs."""

RULE_BAR = 0.9
"""Share of true statements below which a rule is reported."""


@dataclass(frozen=True, slots=True)
class RuleSoundness:
    """Verdicts on the judged statements of a rule. `sound`: number of true ones; `unsure`: undecided, not in `judged`.

    `reasons`: number of false statements by answer, such as `facts` and `rule`.
    """

    rule: str
    sound: int = 0
    judged: int = 0
    unsure: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    def is_below(self, bar: float) -> bool:
        """True if statements were judged, and fewer than this share are true."""
        return self.judged > 0 and self.sound < bar * self.judged


def soundness_verdicts(votes: Iterable[VoteRecord]) -> dict[str, str]:
    """By statement the answer of the voters; `unsure` after a tie between true and false.

    Whether it is true is decided by the voters' rates of error (Dawid and Skene 1979) where enough of them judged the
    same statements, otherwise by the majority.
    """
    by_statement: dict[str, dict[str, str]] = defaultdict(dict)
    for vote in votes:
        if vote.question == SOUNDNESS_QUESTION:
            by_statement[vote.statement_id][vote.voter] = vote.answer
    ballots = {statement: _counted_ballots(answers) for statement, answers in by_statement.items()}
    decided: list[Vote] = []
    for statement, answers in ballots.items():
        decided += [Vote(statement, voter, answer == SOUND) for voter, answer in answers.items() if answer != UNSURE]
    weighed = weigh_shared(decided)
    probabilities = {} if weighed is None else weighed.probabilities
    return {
        statement: _verdict(answers.values(), probabilities.get(statement)) for statement, answers in ballots.items()
    }


def _counted_ballots(answers: Mapping[str, str]) -> Mapping[str, str]:
    """People's answers by voter; those of models if no person judged the statement."""
    people = {voter: answer for voter, answer in answers.items() if not voter.startswith(MODEL_VOTER)}
    return people or answers


def _verdict(answers: Iterable[str], probability: float | None) -> str:
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


def rule_soundness(rules: Mapping[str, str], verdicts: Mapping[str, str]) -> dict[str, RuleSoundness]:
    """Counts by rule. `rules`: the rule of each statement; `verdicts` as `soundness_verdicts` returns them."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for statement, answer in verdicts.items():
        if statement in rules:
            answers[rules[statement]][answer] += 1
    counts = {}
    for rule, by_answer in sorted(answers.items()):
        reasons = {answer: count for answer, count in by_answer.items() if answer not in (SOUND, UNSURE)}
        judged = by_answer[SOUND] + sum(reasons.values())
        counts[rule] = RuleSoundness(rule, by_answer[SOUND], judged, by_answer[UNSURE], reasons)
    return counts


def unsound_rules(kb: KnowledgeBase, bar: float = RULE_BAR) -> Iterator[RuleSoundness]:
    """Rules of which fewer than `bar` of the judged statements are true."""
    verdicts = soundness_verdicts(kb.votes())
    if not verdicts:
        return
    rules = {statement.id: statement.rule for statement in kb.statements()}
    for counts in rule_soundness(rules, verdicts).values():
        if counts.is_below(bar):
            yield counts
