"""Answers to the two sentences of a pair together.

The sentences of a schema mean different options, so what speaks for an option in the one speaks against it in the
other: the log odds of both sentences are added, as for independent evidence of a single question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hapax.evaluation.winograd.data import WinogradItem, is_schema, pairs_of
from hapax.evaluation.winograd.theories.measure import Resolve, RuleAnswer, exchanged
from hapax.evaluation.winograd.theories.proving import Lack, Resolution

PARTNER = "with the other sentence of its pair"


def answer_pairs(items: Iterable[WinogradItem], resolve: Resolve, least: float) -> list[RuleAnswer]:
    """Resolve every item together with the other one of its pair, and answered pairs again with entities exchanged.

    `resolve` gives the probability of the better reading, answered or not. `least`: the least probability at which a
    pair is answered. Items without a partner that has the same options have the answers of `resolve`.
    """
    items = list(items)
    resolutions = pair_consistent(items, [resolve(item) for item in items], least)
    answered = {item.pair for item in items if resolutions[item.id].answer is not None}
    turned = [turned for item in items if item.pair in answered and (turned := exchanged(item)) is not None]
    counterparts = pair_consistent(turned, [resolve(item) for item in turned], least)
    answers = []
    for item in items:
        resolution = resolutions[item.id]
        # Only an answer can follow its entity.
        counterpart = None if resolution.answer is None else counterparts.get(item.id)
        answers.append(RuleAnswer(item, resolution, counterpart))
    return answers


def pair_consistent(
    items: Sequence[WinogradItem], resolutions: Sequence[Resolution], least: float
) -> Mapping[str, Resolution]:
    """By id of the item, its resolution with different answers to the two sentences of each pair."""
    found = {item.id: resolution for item, resolution in zip(items, resolutions, strict=True)}
    for pair in filter(is_schema, pairs_of(items)):
        first, second = (found[item.id] for item in pair)
        # Log odds that the pair means its first and its second option, in this order.
        log_odds = _log_odds(first) - _log_odds(second)
        probability = 1 / (1 + math.exp(-abs(log_odds)))
        for item, number in zip(pair, (0, 1) if log_odds > 0 else (1, 0), strict=True):
            found[item.id] = _joint(
                found[item.id], number, probability, is_sure=bool(log_odds) and probability >= least
            )
    return found


def _log_odds(resolution: Resolution) -> float:
    """Log odds that the first option is meant; 0 for a sentence of which nothing is known."""
    if resolution.probability is None or resolution.preferred is None:
        return 0.0
    # No proof is surer than this, and certainty would have no log odds.
    probability = min(resolution.probability, 1 - 1e-9)
    return math.log(probability / (1 - probability)) * (1 if resolution.preferred == 0 else -1)


def _joint(own: Resolution, number: int, probability: float, *, is_sure: bool) -> Resolution:
    """A sentence's resolution with the answer of its pair."""
    if own.judgement is None:
        return own  # an option is not in the sentence, so there is nothing to answer
    if is_sure and own.barred[number]:
        return replace(own, answer=None, lack=Lack.NO_AGREEMENT, probability=probability, detail=PARTNER)
    if is_sure:
        return replace(own, answer=number, lack=None, probability=probability, detail=PARTNER)
    return replace(own, answer=None, lack=own.lack or Lack.NO_MARGIN, probability=probability)
