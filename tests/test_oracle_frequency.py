"""Word frequency as a likelihood."""

from __future__ import annotations

import math

import pytest

from hapax.llm_oracle.backends.frequency import FLOOR, FrequencyLikelihood
from hapax.llm_oracle.protocols import LikelihoodModel, SpannedText


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


def test_a_name_of_several_words_is_not_rare_for_its_length_alone() -> None:
    """A span's score is its words' sum by the root of their number; a sum alone ranks long names as rare."""
    from wordfreq import word_frequency

    def log(word: str) -> float:
        return math.log(word_frequency(word, "en"))

    text = SpannedText("They saw New York State and galangal ?!.", ((9, 23), (28, 36), (37, 39)))
    (score,) = FrequencyLikelihood().span_log_likelihoods([text])
    (place, count), (root, _), wordless = score.spans

    assert count == 3
    assert place == pytest.approx((log("new") + log("york") + log("state")) / math.sqrt(3))
    assert root == pytest.approx(log("galangal"))
    assert 3 * log("york") < root < place
    assert wordless == (0.0, 0)
