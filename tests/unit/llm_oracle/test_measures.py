"""Measures of likelihood: the same numbers from every kind of model, names and pairs apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import loaded, tiny_llama, tiny_tokenizer

from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.backends.huggingface import HuggingFaceLikelihood
from hapax.llm_oracle.measures import Measure, RankedText, measured, mentions
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity, SpannedText

SENTENCE = RankedText("soy milk is in buttermilk", ("buttermilk", "soy milk"))
ALL = list(Measure)


class ByLetter:
    """A likelihood model whose tokens are letters: each costs 1 nat, and 2 in a name that it has not just read."""

    identity = ModelIdentity("letters")

    def __init__(self) -> None:
        self.seen: list[str] = []

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self.seen += texts
        return [LogLikelihood(-float(len(text) - 1), len(text) - 1) for text in texts]

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        self.seen += [text.text for text in texts]
        answers = []
        for text in texts:
            places = [(place, place + 1) for place in range(1, len(text.text))]
            cost = 2.0 if text.text.startswith("They talked") else 1.0
            answers.append(LogLikelihood.of_tokens([-cost] * len(places), places, text.spans))
        return answers


class ByCount:
    """A popularity model with a table of counts."""

    identity = ModelIdentity("table")

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        table = {(): 1000, ("milk",): 99, ("naan",): 9, ("milk", "naan"): 4}
        return [table.get(tuple(sorted(together)), 0) for together in names]


def test_each_measure_by_hand() -> None:
    """With one nat a letter, and two in the neutral frame, all measures can be told by counting letters."""
    model = ByLetter()
    (scores,) = measured(model, [SENTENCE], ALL)
    words = FrequencyLikelihood().log_likelihoods([SENTENCE.text])[0].total

    assert scores is not None
    assert scores.name_tokens == 18
    assert scores.scores == {
        Measure.PAPER: -1.0,
        Measure.TOTAL: -25.0,
        Measure.SLOR: pytest.approx((-25.0 - words) / 25),
        Measure.SPAN: -18.0,  # soy milk, buttermilk
        Measure.PRIOR: -36.0,
        Measure.PAIR: (10.0 + 8.0) / 2,  # each name beside the other one, less its prior
    }


class ByCompany(ByLetter):
    """As `ByLetter`, but butter and naan cost nothing beside each other."""

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        answers = super().span_log_likelihoods(texts)
        for place, text in enumerate(texts):
            if "butter" in text.text and "naan" in text.text:
                answers[place] = replace(answers[place], spans=tuple((0.0, count) for _, count in answers[place].spans))
        return answers


def test_a_pair_is_compared_with_other_values_of_its_sentence() -> None:
    """Butter and naan are likelier together than beside other values of the rule, by the letters that they cost."""
    texts = [
        RankedText(f"{left} is in {right}", (left, right))
        for left, right in (("butter", "naan"), ("milk", "naan"), ("salt", "toast"))
    ]

    scored = measured(ByCompany(), texts, [Measure.PAIR])

    assert [text.scores[Measure.PAIR] for text in scored if text is not None] == [
        (4 + 6) / 2,  # naan costs four letters beside milk and salt, butter six beside toast
        (-4 + (4 + 0) / 2 + 0) / 2,  # naan costs four beside milk, nothing beside butter; milk always the same
        0,  # toast and salt cost the same everywhere
    ]


@pytest.mark.parametrize(
    ("text", "values", "places"),
    [
        ("Butter is in naan.", ("naan", "butter"), ((13, 17), (0, 6))),
        ("The Republic of the Congo borders Congo.", ("Congo", "Republic of the Congo"), ((34, 39), (4, 25))),
        ("An anaan is in naan", ("naan",), ((15, 19),)),
        ("C++ (the language) is old", ("C++", "Rust", ""), ((0, 3), None, None)),
    ],
    ids=["a capital", "a name in a name", "whole words", "not mentioned"],
)
def test_the_first_mention_of_a_value(
    text: str, values: tuple[str, ...], places: tuple[tuple[int, int] | None, ...]
) -> None:
    """A value is found where it stands as whole words, the longer value first."""
    assert mentions(text, values) == places


@given(st.lists(st.text(min_size=1, max_size=8), max_size=4), st.text(max_size=10))
def test_mentions_never_overlap(values: list[str], between: str) -> None:
    """Whatever the values are, their places do not overlap and hold the value, in any case of letters."""
    text = between.join(values)
    places = [place for place in mentions(text, values) if place is not None]

    taken = sorted(set(places))
    assert all(left[1] <= right[0] for left, right in pairwise(taken))


def test_a_causal_network_scores_the_tokens_of_a_span() -> None:
    """The spans of a text have the sums of plain log-probabilities of their tokens; the text has its whole sum."""
    tokenizer = tiny_tokenizer()
    model = HuggingFaceLikelihood(loaded(tiny_llama(tokenizer), tokenizer))
    text = "soy milk is in naan"
    (answer,) = model.span_log_likelihoods([SpannedText(text, ((0, 8), (15, 19)))])

    encoded = tokenizer(text, return_offsets_mapping=True)
    ids = torch.tensor([encoded.input_ids])
    with torch.no_grad():
        logs = tiny_llama(tokenizer)(input_ids=ids).logits[0].log_softmax(-1)
    scores = [float(logs[place, token]) for place, token in enumerate(encoded.input_ids[1:])]
    places = encoded.offset_mapping[1:]
    expected = [sum(s for s, (a, b) in zip(scores, places, strict=True) if a < end and b > start)
                for start, end in ((0, 8), (15, 19))]  # fmt: skip
    assert [total for total, _ in answer.spans] == pytest.approx(expected, abs=1e-4)
    assert answer.total == pytest.approx(sum(scores), abs=1e-4)
    assert answer.token_count == len(scores)


def test_counts_give_the_measures_of_names() -> None:
    """Counts give how often all names occur together, how common each is, and their mutual information."""
    (both, none) = measured(
        ByCount(), [RankedText("x", ("milk", "naan")), RankedText("y", ("soy",))], [Measure.SPAN, Measure.PAIR]
    )

    assert both is not None
    assert none is not None
    assert both.scores == {
        Measure.SPAN: pytest.approx(math.log(5)),
        Measure.PRIOR: pytest.approx(math.log(100) + math.log(10)),
        Measure.PAIR: pytest.approx(math.log(5 / (1 + 99 * 9 / 1000))),
    }
    assert none.scores == {Measure.SPAN: 0.0, Measure.PRIOR: 0.0, Measure.PAIR: 0.0}
