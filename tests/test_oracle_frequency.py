"""Word frequency as a likelihood."""

from __future__ import annotations

import math

import pytest

from hapax.llm_oracle.backends.frequency import FLOOR, FrequencyLikelihood
from hapax.llm_oracle.protocols import LikelihoodModel


def test_mean_ln_word_frequency() -> None:
    """A text's score is the sum of its words' ln frequencies, each word a token, order and case indifferent."""
    from wordfreq import word_frequency

    model = FrequencyLikelihood()
    score, swapped = model.log_likelihoods(["Butter in soup.", "soup in butter"])

    assert isinstance(model, LikelihoodModel)
    assert score.per_token == pytest.approx(
        sum(math.log(word_frequency(word, "en")) for word in ("butter", "in", "soup")) / 3
    )
    assert score.total == pytest.approx(swapped.total)


def test_rarer_words_are_less_likely_and_unknown_ones_have_the_floor() -> None:
    """Common beats rare beats unknown; an unknown word has the floor's frequency."""
    common, rare, unknown = FrequencyLikelihood().log_likelihoods(["butter", "galangal", "zxqvwkj"])

    assert common.per_token > rare.per_token > unknown.per_token == pytest.approx(math.log(FLOOR))


@pytest.mark.parametrize("text", ["", "...", "\x00", "?!"])
def test_text_without_words_ranks_below_everything(text: str) -> None:
    """Nothing to count gives no tokens, and so the lowest rank."""
    (score,) = FrequencyLikelihood().log_likelihoods([text])

    assert score.token_count == 0
    assert score.per_token == float("-inf")
