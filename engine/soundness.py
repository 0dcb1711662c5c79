"""Soundness of rules: how many of a rule's statements readers found true, from the votes of a knowledge base."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hapax.engine.judgements import SOUND, UNSURE, Judgements
from hapax.kb.store import KnowledgeBase

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


def unsound_rules(kb: KnowledgeBase, bar: float = RULE_BAR) -> Iterator[RuleSoundness]:
    """Rules of which fewer than `bar` of the judged statements are true, by people and models."""
    verdicts = share_verdicts(Judgements.stored(kb, models=True))
    if not verdicts:
        return
    rules = {statement.id: statement.rule for statement in kb.statements()}
    for counts in rule_soundness(rules, verdicts).values():
        if counts.is_below(bar):
            yield counts
