"""People's judgements: the questions that they answer, the one place where their votes are counted, and draws of items.

The sheets of `votes`, the page of `serve --judge` and the import of LINT all store votes. Whoever wants to know what
people think of a statement asks `Judgements`; only LINK's tables, which are about single questions, count ballots.

Draws are priority sampling (Duffield, Lund, Thorup 2007, Journal of the ACM 54): each item has a weight and a random
number, and items are judged in the order of number / weight. However far people get, each item was as probable to be
reached as its weight says, so that a draw can go on at any time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hapax.kb.judgement_records import DRAWN_ITEMS, JUDGING_DRAWS, DrawnItem, JudgingDraw, VoteRecord
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase

# --- judgements on statements -----------------------------------------------------------------------------------------

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
    def stored(cls, kb: KnowledgeBase) -> Judgements:
        """The judgements by the stored votes."""
        rows: dict[str, str] = {}
        for identities in kb.voted_texts():
            rows |= dict.fromkeys(identities, min(identities))
        votes = []
        for vote in kb.votes():
            votes.append(replace(vote, statement_id=rows.get(vote.statement_id, vote.statement_id)))
        return cls(judgements(votes), rows)

    def of(self, identity: str) -> Judgement:
        """The judgement on a statement."""
        return self.texts.get(self.row(identity), UNJUDGED)

    def row(self, identity: str) -> str:
        """The smallest id of the statements that read as this one."""
        return self.rows.get(identity, identity)


def judgements(votes: Iterable[VoteRecord]) -> dict[str, Judgement]:
    """The judgement on each statement that votes are on, by majority."""
    answers: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for vote in votes:
        answers[vote.statement_id][folded(vote.question)][vote.voter] = folded(vote.answer)
    found = {}
    for statement, by_question in answers.items():
        judgement = _judgement(by_question)
        if judgement != UNJUDGED:
            found[statement] = judgement
    return found


def folded(text: str) -> str:
    """A question or an answer as it is compared: other programs may have stored blanks and capitals."""
    return text.strip().casefold()


def _ballots(by_question: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Each voter's answer to the question of truth."""
    opinions = {}
    for voter, answer in by_question.get(ENTAILMENT_QUESTION, {}).items():
        if answer in (SOUND, "no"):
            opinions[voter] = SOUND if answer == SOUND else UNSOUND_RULE
    # Asked directly, a voter has said more than by LINK's question.
    opinions |= by_question.get(SOUNDNESS_QUESTION, {})
    return opinions


def _judgement(by_question: Mapping[str, Mapping[str, str]]) -> Judgement:
    ballots = _ballots(by_question)
    types = [_majority(own) for question, own in by_question.items() if question.startswith(DATA_TYPE_QUESTION)]
    typed = None if not types or (None in types and False not in types) else False not in types
    return Judgement(
        _truth(ballots.values()) if ballots else None,
        typed,
        _majority(by_question.get(SOUNDNESS_WORDING, {})),
        "yes" in by_question.get(HARMFUL, {}).values(),
        frozenset(ballots),
    )


def _majority(answers: Mapping[str, str]) -> bool | None:
    """True if more voters said yes than no; None after a tie, and where nobody said either."""
    counts = Counter(answers.values())
    return None if counts["yes"] == counts["no"] else counts["yes"] > counts["no"]


def _truth(answers: Iterable[str]) -> str:
    """The verdict on a statement by the majority."""
    counts = Counter(answers)
    sound = counts[SOUND]
    against = Counter({answer: count for answer, count in counts.items() if answer not in (SOUND, UNSURE)})
    if sound == against.total():
        return UNSURE
    # Of those who deny, the commonest reason; in alphabetical order if there are two.
    return SOUND if sound > against.total() else min(against, key=lambda answer: (-against[answer], answer))


def shared_judgements(found: Judgements, identities: Iterable[str]) -> Iterator[Judgement]:
    """The judgements on these statements, of each text once."""
    for row in dict.fromkeys(map(found.row, identities)):
        if row in found.texts:
            yield found.texts[row]


# --- draws of items to judge ------------------------------------------------------------------------------------------

DrawKind = Literal["predicates", "soundness", "derived"]
"""The items that are drawn: facts, statements of searches (both are kinds of sheets), or statements of `derive`."""

NEVER = 2.0
"""Random number of a label that no draw brought: above every probability."""


LOW_PART = 0.2
"""Part of a draw's items below the cut, by which the share of true values of the whole pool is estimated."""

LEAST_UNCERTAINTY = 0.2
"""Weight of the surest value below the cut, relative to one of probability one half."""


def cut_of(probabilities: Sequence[float], risk: float) -> float:
    """The probability above which labels decide a promise: where half of the permitted share is expected to be false.

    At least a twentieth of the pool lies above it, and a quarter where nothing is so probable, such as without a
    calibration.
    """
    ordered = sorted(probabilities, reverse=True)
    expected, best = 0.0, 0
    for place, probability in enumerate(ordered, start=1):
        expected += 1.0 - probability
        # The mean expected falseness of the best `place` values is at most half of the permitted share.
        if expected <= place * risk / 2:
            best = place
    if best < max(len(ordered) // 20, 1):
        best = max(len(ordered) // 4, 1)
    return ordered[best - 1]


def draw_weights(probabilities: Sequence[float], cut: float, low: float | None = None) -> tuple[list[float], float]:
    """The weights of a draw, and the weight `low` of the most uncertain value below the cut.

    From the cut on all weights are 1, so that the labels there are an even sample of every threshold above the cut.
    Below it they follow the standard deviation of a value's truth, by which an estimate of the whole gains most
    (Zrnic and Candes 2024, arXiv 2403.03208, section 3).
    """
    relative = [max(LEAST_UNCERTAINTY, 2 * math.sqrt(max(value * (1.0 - value), 0.0))) for value in probabilities]
    if low is None:
        above = sum(value >= cut for value in probabilities)
        below = math.fsum(part for part, value in zip(relative, probabilities, strict=True) if value < cut)
        low = min(1.0, LOW_PART / (1.0 - LOW_PART) * above / below) if below else 1.0
    return [1.0 if value >= cut else low * part for part, value in zip(relative, probabilities, strict=True)], low


def random_number(salt: str, item_id: str) -> float:
    """An even random number between 0 and 1 that depends on the draw and the item alone."""
    # 13 hexadecimal digits are 52 bits, which a float holds; the half keeps the number off 0 and 1.
    return (int(content_id("draw", salt, item_id)[:13], 16) + 0.5) / 16**13


def is_given_out(draw: JudgingDraw, item: DrawnItem) -> bool:
    """True if the item was given to people to judge."""
    return item.draw < draw.reach * item.weight


@dataclass(frozen=True)
class DrawnLabels:
    """The draw of `votes next` as a certificate counts it. `reach` None: there is none.

    Labels of items that the draw gave out are thinned to an even sample; labels that came otherwise, from references or
    sheets of `votes export`, count as they are.
    """

    reach: float | None = None
    items: Mapping[str, DrawnItem] = field(default_factory=dict)
    is_other: bool = False
    """True if the draw was made by the scores of another critic, so that its labels are no sample here."""

    @classmethod
    def stored(cls, kb: KnowledgeBase, kind: DrawKind, critic: str) -> DrawnLabels:
        """The draw of a knowledge base, for a certificate of this critic's scores."""
        draw = kb.first(JUDGING_DRAWS, kind=kind)
        if draw is None:
            return cls()
        items = {item.item_id: item for item in kb.matching(DRAWN_ITEMS, salt=draw.salt)}
        return cls(draw.reach, items, draw.settings.get("critic") != critic)

    def of(self, item_id: str) -> tuple[float | None, float]:
        """Random number and weight of an item; no number for an item that the draw did not give out."""
        item = self.items.get(item_id)
        if item is None or self.reach is None:
            return None, 1.0
        is_drawn = item.draw < self.reach * item.weight
        if self.is_other:
            return (NEVER if is_drawn else None), 1.0
        return (item.draw if is_drawn else None), item.weight


# --- soundness of rules -----------------------------------------------------------------------------------------------

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


def rule_soundness(rules: Mapping[str, str], verdicts: Mapping[str, str]) -> dict[str, RuleSoundness]:
    """Counts by rule. `rules`: the rule of each statement; `verdicts`: its answer to the question of truth."""
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


def share_verdicts(found: Judgements) -> dict[str, str]:
    """The answers to the question of truth that shares of true statements may count, by row."""
    return {
        row: judgement.truth
        for row, judgement in found.texts.items()
        if judgement.truth is not None and judgement.in_shares
    }


def unsound_rules(kb: KnowledgeBase) -> Iterator[RuleSoundness]:
    """Rules of which fewer than RULE_BAR of the judged statements are true."""
    verdicts = share_verdicts(Judgements.stored(kb))
    if not verdicts:
        return
    rules = {statement.id: statement.rule for statement in kb.statements()}
    for counts in rule_soundness(rules, verdicts).values():
        if counts.is_below(RULE_BAR):
            yield counts
