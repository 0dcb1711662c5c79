"""The engine's gates with the sign turned round: what favours the wrong answer, and what a base model fails on, stays.

The likelihood gate of a search keeps what a model finds least likely (LINK, section 2.3). Here it keeps the schemas
whose right answer is least associated with what the sentence says of it; the critic's threshold becomes one that a base
model must not reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from engine.gates import kept
from evaluation.winograd.asking import Ask
from evaluation.winograd.data import Pair, WinogradItem, clause_with
from kb.records import Distribution
from llm_oracle.calls import JournaledCritic, JournaledLikelihood

ASSOCIATION, NON_LLM_PROOF, SHARE = "winograd association", "winograd non-llm-proof", "winograd share"
"""The gates' names in stored decisions."""


@dataclass(frozen=True, slots=True)
class Association:
    """How much more the two sentences' predicates go with the wrong entity than with the right one, in nats.

    Of a sentence: [log P(clause about wrong) - log P(wrong)] - [log P(clause about right) - log P(right)], the
    difference of two pointwise mutual informations, so that long and rare names weigh nothing. `mean`: of both.
    """

    by_sentence: tuple[float, float]

    @property
    def mean(self) -> float:
        return fmean(self.by_sentence)


def associations(pairs: Sequence[Pair], model: JournaledLikelihood) -> list[Association | None]:
    """The association of each pair; None where a sentence has no clause with its pronoun."""
    wanted = [_texts(pair) for pair in pairs]
    texts = list(dict.fromkeys(text for several in wanted if several for text in several))
    totals = {text: one.total for text, one in zip(texts, model.log_likelihoods(texts), strict=True)}
    return [None if several is None else _association(several, totals) for several in wanted]


_Texts = tuple[str, ...]
"""Of each sentence: the clause about the wrong entity, that entity, the clause about the right one, that entity."""


def _texts(pair: Pair) -> _Texts | None:
    texts: list[str] = []
    for item in pair:
        for entity in (item.options[1 - item.answer], item.options[item.answer]):
            clause = clause_with(item, entity)
            if clause is None:
                return None
            texts += [clause, f"{entity[0].upper()}{entity[1:]}."]
    return tuple(texts)


def _association(texts: _Texts, totals: dict[str, float]) -> Association:
    scores = []
    for start in (0, 4):
        wrong, wrong_alone, right, right_alone = (totals[text] for text in texts[start : start + 4])
        scores.append((wrong - wrong_alone) - (right - right_alone))
    return Association((scores[0], scores[1]))


def keep_most_adversarial(scores: Sequence[float], ties: Sequence[str], share: float, most: int) -> list[int]:
    """The positions that stay, most adversarial first: the engine's likelihood gate on the negated scores."""
    return kept([-score for score in scores], ties, Distribution.LONG_TAIL, share, most)


def meaning_claim(item: WinogradItem, option: int) -> str:
    """The claim that the pronoun means this option, for a critic."""
    return f"In the sentence “{item.text}” the word “{item.pronoun.lower()}” means {item.options[option]}."


def critic_rights(pairs: Sequence[Pair], critic: JournaledCritic) -> list[int]:
    """How many of the two sentences of each pair a critic finds right: the right meaning is the likelier of the two."""
    items = [item for pair in pairs for item in pair]
    claims = [meaning_claim(item, option) for item in items for option in (item.answer, 1 - item.answer)]
    scores = iter([score.probability for score in critic.probabilities(claims)])
    rights = [right > wrong for right, wrong in zip(scores, scores, strict=True)]
    return [rights[place] + rights[place + 1] for place in range(0, len(rights), 2)]


def base_rights(pairs: Sequence[Pair], ask: Ask) -> list[int]:
    """How many of the two sentences of each pair the base model answers right, a reply that is not read being wrong."""
    return [sum(one.right for one in answer.answers) for answer in ask(pairs)]
