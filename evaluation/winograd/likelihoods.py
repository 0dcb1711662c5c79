"""Answers by likelihood alone: the option with the higher score wins, and no reply is read.

`likelihood` and `likelihood-partial` are the full and the partial score of Trinh and Le, A Simple Method for
Commonsense Reasoning (2018), section 3: log P of the sentence with the option in the pronoun's place, and log P of the
rest of the sentence after the option, which does not prefer a common option. `likelihood-pmi` takes the option's own
log P from the full score (Holtzman et al., Surface Form Competition, 2021). `likelihood-choice` asks for an option's
number and compares log P of the two numbers, in both orders of the options, since models prefer a position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hapax.evaluation.winograd.asking import ROLE, Ask, AskSettings, PairAnswer
from hapax.evaluation.winograd.data import Pair, WinogradItem, in_place_of, is_schema, pronoun_place
from hapax.evaluation.winograd.prompts import PromptMethod
from hapax.llm_oracle.calls import JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import LikelihoodModel

QUESTION = '{text}\nQuestion: What does "{pronoun}" refer to?\n1. {first}\n2. {second}\nAnswer: {number}'

Terms = Sequence[tuple[str, int]]
"""Texts, and the factor of each one's log-likelihood in a score."""


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


def _full(item: WinogradItem, option: int) -> Terms:
    substituted = Substituted.of(item, item.options[option])
    return [] if substituted is None else [(substituted.sentence, 1)]


def _partial(item: WinogradItem, option: int) -> Terms:
    substituted = Substituted.of(item, item.options[option])
    # log P(rest | beginning) = log P(sentence) - log P(beginning).
    return [] if substituted is None else [(substituted.sentence, 1), (substituted.beginning, -1)]


def _pmi(item: WinogradItem, option: int) -> Terms:
    name = item.options[option]
    full = _full(item, option)
    return [*full, (f"{name[0].upper()}{name[1:]}.", -1)] if full else []


def _choice(item: WinogradItem, option: int) -> Terms:
    first, second = item.options
    fields = {"text": item.text, "pronoun": item.pronoun}
    ahead = QUESTION.format(**fields, first=first, second=second, number=1 + option)
    # The options exchanged: option 0 now has number 2.
    behind = QUESTION.format(**fields, first=second, second=first, number=2 - option)
    return [(ahead, 1), (behind, 1)]


SCORES: Mapping[PromptMethod, Callable[[WinogradItem, int], Terms]] = {
    PromptMethod.LIKELIHOOD: _full,
    PromptMethod.LIKELIHOOD_PARTIAL: _partial,
    PromptMethod.LIKELIHOOD_PMI: _pmi,
    PromptMethod.LIKELIHOOD_CHOICE: _choice,
}
"""Terms of an option's score, by method; empty if the sentence does not have the pronoun."""


def scoring(model: LikelihoodModel, journal: Journal, settings: AskSettings) -> Ask:
    """The function that answers a batch of pairs by the scores of the settings' method."""
    likelihood = JournaledLikelihood(model, journal, role=ROLE)
    terms_of = SCORES[settings.method]

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        texts: dict[str, None] = {}
        for pair in pairs:
            for item in pair:
                for option in (0, 1):
                    texts |= dict.fromkeys(text for text, _ in terms_of(item, option))
        scores = likelihood.log_likelihoods(list(texts))
        # A text that the model refuses has no likelihood, and its sentence no answer.
        totals = {text: score.total for text, score in zip(texts, scores, strict=True) if not score.refused}
        call_ids = dict(zip(texts, likelihood.call_ids(list(texts)), strict=True))
        answers = []
        for pair in pairs:
            terms = [(terms_of(item, 0), terms_of(item, 1)) for item in pair]
            calls: dict[str, None] = {}
            for by_option in terms:
                for option_terms in by_option:
                    calls |= dict.fromkeys(call_ids[text] for text, _ in option_terms)
            preferences = [_preference(by_option, totals) for by_option in terms]
            answers.append(_answer(pair, preferences, tuple(calls), settings.consistent))
        return answers

    return ask


@dataclass(frozen=True, slots=True)
class _Preference:
    """Scores of a sentence's two options, in nats; empty if it cannot be scored."""

    scores: tuple[float, ...]

    @property
    def margin(self) -> float:
        """Score of the second option less that of the first; 0 without scores."""
        return self.scores[1] - self.scores[0] if self.scores else 0.0


def _preference(by_option: Sequence[Terms], totals: Mapping[str, float]) -> _Preference:
    scores = []
    for terms in by_option:
        if not terms or any(text not in totals for text, _ in terms):
            return _Preference(())
        scores.append(math.fsum(factor * totals[text] for text, factor in terms))
    return _Preference(tuple(scores))


def _answer(pair: Pair, preferences: Sequence[_Preference], calls: tuple[str, ...], consistent: bool) -> PairAnswer:
    """The options with the higher scores; None where they are equal or there are none.

    `consistent`: the sentences of a pair mean different options, so the two ways of answering both are compared.
    """
    margins = [preference.margin for preference in preferences]
    if consistent and is_schema(pair) and all(preference.scores for preference in preferences):
        joint = (margins[0] - margins[1]) / 2  # nats that (second, first) is ahead of (first, second), by sentence
        margins = [joint, -joint]
    chosen = [None if not margin else int(margin > 0) for margin in margins]
    replies = []
    for item, preference in zip(pair, preferences, strict=True):
        named = zip(item.options, preference.scores, strict=False)
        replies.append(", ".join(f"{option}: {score:.3f}" for option, score in named))
    first, second = chosen
    # There is no reply to read in another way, so the released reading is the same.
    released = (-1 if first is None else first, -1 if second is None else second)
    sizes = tuple(map(abs, margins))
    return PairAnswer(pair, calls, tuple(replies), (first, second), released, margins=sizes)
