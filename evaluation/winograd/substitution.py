"""Answers by likelihood alone: each option takes the pronoun's place, and the likelier sentence wins.

Trinh and Le, A Simple Method for Commonsense Reasoning (2018), section 3. The full score is log P(sentence). The
partial score is log P(rest of the sentence | beginning up to the option), which does not prefer a common option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hapax.evaluation.winograd.asking import ROLE, Ask, PairAnswer
from hapax.evaluation.winograd.data import Pair, WinogradItem, in_place_of, pronoun_place
from hapax.evaluation.winograd.prompts import PromptMethod
from hapax.llm_oracle.calls import JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import LikelihoodModel


@dataclass(frozen=True, slots=True)
class Substituted:
    """A sentence with an option in the pronoun's place. `beginning` ends with the option."""

    sentence: str
    beginning: str

    @classmethod
    def of(cls, item: WinogradItem, option: str) -> Substituted | None:
        """None if the sentence does not have the pronoun."""
        pronoun = pronoun_place(item)
        if pronoun is None:
            return None
        beginning = f"{item.text[: pronoun.start()]}{in_place_of(pronoun, option)}"
        return cls(f"{beginning}{item.text[pronoun.end() :]}", beginning)


def substituting(model: LikelihoodModel, journal: Journal, method: PromptMethod) -> Ask:
    """The function that answers a batch of pairs by the full or the partial score."""
    likelihood = JournaledLikelihood(model, journal, role=ROLE)
    partial = method is PromptMethod.LIKELIHOOD_PARTIAL

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        texts: dict[str, None] = {}
        for pair in pairs:
            for item in pair:
                for substituted in _both(item):
                    texts[substituted.sentence] = None
                    if partial:
                        texts[substituted.beginning] = None
        scores = likelihood.log_likelihoods(list(texts))
        totals = {text: score.total for text, score in zip(texts, scores, strict=True)}
        call_ids = dict(zip(texts, likelihood.call_ids(list(texts)), strict=True))
        return [_answer(pair, totals, call_ids, partial) for pair in pairs]

    return ask


def _both(item: WinogradItem) -> list[Substituted]:
    """The sentence with each option; empty if it does not have the pronoun."""
    return [substituted for option in item.options if (substituted := Substituted.of(item, option)) is not None]


def _answer(pair: Pair, totals: dict[str, float], call_ids: dict[str, str], partial: bool) -> PairAnswer:
    """The options with the higher scores; None where they are equal or the sentence does not have the pronoun."""
    chosen: list[int | None] = []
    calls: list[str] = []
    replies: list[str] = []
    for item in pair:
        scores = []
        for substituted in _both(item):
            condition = totals[substituted.beginning] if partial else 0.0
            scores.append(totals[substituted.sentence] - condition)
            calls += [call_ids[text] for text in (substituted.sentence, substituted.beginning) if text in call_ids]
        differ = len(scores) == 2 and scores[0] != scores[1]
        chosen.append(scores.index(max(scores)) if differ else None)
        replies.append(", ".join(f"{option}: {score:.3f}" for option, score in zip(item.options, scores, strict=False)))
    first, second = chosen
    # There is no reply to read in another way, so the released reading is the same.
    released = (-1 if first is None else first, -1 if second is None else second)
    return PairAnswer(pair, tuple(calls), tuple(replies), (first, second), released)
