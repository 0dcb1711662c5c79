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
from openai_fake import Asked, FakeServer, Reply
from test_oracle_huggingface import loaded, tiny_llama, tiny_tokenizer
from test_oracle_openai import opened

from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.backends.huggingface import HuggingFaceLikelihood
from hapax.llm_oracle.calls import JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.measures import NEUTRAL_FRAME, Measure, RankedText, measured, measures_of, mentions
from hapax.llm_oracle.pair_frames import pair_frames
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


def test_a_measure_does_not_depend_on_the_others_that_are_wanted() -> None:
    """Each measure alone has the value that it has among all."""
    (together,) = measured(ByLetter(), [SENTENCE], ALL)

    assert together is not None
    for measure in ALL:
        (alone,) = measured(ByLetter(), [SENTENCE], [measure])
        assert alone is not None
        assert alone.scores[measure] == together.scores[measure]


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


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("defg")), max_size=12, unique=True))
def test_frames_have_the_own_name_beside_other_ones(pairs: list[tuple[str, str]]) -> None:
    """Each name stands beside each other name, and beside the other one's counterparts, of which neither is its own."""
    texts = [
        (SpannedText(f"{left} is in {right}.", ((0, 1), (8, 9))), (left, right))
        for left, right in pairs
        if left != right
    ]

    frames = pair_frames(texts)

    for text, (left, right) in texts:
        for frame, other, name, place in zip(frames[text], (left, right), (right, left), (0, 1), strict=True):
            assert frame.name == name
            assert frame.beside.text.strip() == f"{other} has to do with {name}."
            counterparts = {names[place] for _, names in texts} - {left, right}
            assert {beside.text for beside in frame.beside_others} == {
                frame.beside.text.replace(f"{other} has", f"{counterpart} has") for counterpart in counterparts
            }
            for beside in (frame.beside, *frame.beside_others):
                assert all(beside.text[slice(*span)] == name for span in beside.spans)


def test_a_text_without_a_second_name_has_no_pair() -> None:
    """Nothing is known of the pairs of a text with one name: its measure of pairs is 0."""
    (alone,) = measured(ByLetter(), [RankedText("milk is old", ("milk",))], [Measure.PAIR])

    assert alone is not None
    assert alone.scores[Measure.PAIR] == 0


def test_a_name_is_scored_alone_once() -> None:
    """Names that many sentences share are put into the neutral frame once."""
    model = ByLetter()
    measured(model, [SENTENCE, RankedText("naan is in soy milk", ("naan", "soy milk"))], [Measure.PRIOR])

    assert sorted(model.seen) == [NEUTRAL_FRAME.format(name) for name in ("buttermilk", "naan", "soy milk")]


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


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=4))
def test_a_rewritten_text_keeps_its_spans(parts: list[tuple[str, str]]) -> None:
    """A rewriting that shortens words moves the spans along with them."""
    text, spans = "", []
    for before, inside in parts:
        start = len(text) + len(before)
        text += before + inside
        spans.append((start, start + len(inside)))
    shorter = SpannedText(text, tuple(spans)).rewritten(lambda piece: piece.replace("a", ""))

    assert shorter.text == text.replace("a", "")
    kept = [shorter.text[start:end] for start, end in shorter.spans]
    assert kept == [inside.replace("a", "") for _, inside in parts]


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


def test_a_server_that_echoes_scores_names() -> None:
    """The measures of names come from the places of tokens in an echo."""
    with FakeServer({"likelihood": {"\nMilk is in naan.": -9.0, "They talked about naan.": -8.0}}) as fake:
        (scores,) = measured(opened(fake).likelihood(), [RankedText("Milk is in naan.", ("naan",))], [Measure.SPAN])

    assert scores is not None
    assert scores.scores == {Measure.PAPER: -3.0, Measure.TOTAL: -9.0, Measure.SPAN: -3.0}


def test_a_server_without_places_names_the_remedy() -> None:
    """Log-probabilities without the place of each token give whole sentences only, and an error says so."""

    def scores(number: int, asked: Asked) -> Reply | None:
        if "prompt_logprobs" not in asked.body:
            return None
        score = -1.0 if asked.body["prompt"].startswith("Paris") else -2.0
        places = [None, *({"7": {"logprob": score}} for _ in asked.body["prompt"].split()[1:])]
        return 200, {"model": "tiny", "choices": [{"text": " x", "prompt_logprobs": places}]}, {}

    with FakeServer(lacks=frozenset({"echo"}), misbehave=scores) as fake:
        model = opened(fake).likelihood()
        with pytest.raises(HapaxError, match="a server that gives text_offset or decoded_token"):
            measured(model, [SENTENCE], [Measure.SPAN])


def test_decoded_tokens_tell_places() -> None:
    """vLLM's decoded tokens, put together, give the place of each token."""

    def scores(number: int, asked: Asked) -> Reply | None:
        if "prompt_logprobs" not in asked.body:
            return None
        words = asked.body["prompt"].split(" ")
        score = -1.0 if words[0] == "Paris" else -2.0
        rest = [{"7": {"logprob": score, "decoded_token": f" {word}"}} for word in words[1:]]
        return 200, {"model": "tiny", "choices": [{"text": " x", "prompt_logprobs": [None, *rest]}]}, {}

    with FakeServer(lacks=frozenset({"echo"}), misbehave=scores) as fake:
        (score,) = opened(fake).likelihood().span_log_likelihoods([SpannedText("soy milk is in naan", ((15, 19),))])

    assert score.spans == ((-2.0, 1),)


def test_the_journal_keeps_the_parts() -> None:
    """The parts of a text are asked once: afterwards all measures of names come from the journal."""
    model = ByLetter()
    with KnowledgeBase() as kb:
        journaled = JournaledLikelihood(model, Journal(kb))
        first = measured(journaled, [SENTENCE], ALL)
        asked = len(model.seen)
        again = measured(journaled, [SENTENCE], ALL)

    assert again == first
    assert len(model.seen) == asked


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


def test_rare_names_are_no_common_pair() -> None:
    """Names too rare to be expected together have a pair measure of 0; common names that never meet are a rare pair."""

    class Folder:
        identity = ModelIdentity("folder")

        def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
            known = {(): 1000.0, ("milk",): 200.0, ("iron",): 100.0, ("soy",): 1.0}
            return [known.get(group, 0.0) for group in names]

    texts = [RankedText("x", ("soy", "naan")), RankedText("y", ("milk", "iron"))]
    rare, never = measured(Folder(), texts, [Measure.PAIR])

    assert rare is not None
    assert never is not None
    assert rare.scores[Measure.PAIR] == 0
    assert never.scores[Measure.PAIR] == pytest.approx(-math.log(21))


class Similar:
    """A model that tells how similar two names are, as word vectors do, and not the likelihood of a name in a text."""

    identity = ModelIdentity("similar")

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(0.0, 1) for _ in texts]

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return [0.0 for _ in pairs]


def test_a_measure_that_a_model_lacks_is_named() -> None:
    """A popularity model has no likelihood of a sentence, a word list no pairs, word vectors no likelihood of words."""
    with pytest.raises(HapaxError, match=r"table does not give the measure paper\. Its measures are span, prior, pair"):
        measured(ByCount(), [SENTENCE], [Measure.PAPER])
    with pytest.raises(HapaxError, match=r"frequency does not give the measure pair\. .* slor, span, prior; choose"):
        measured(FrequencyLikelihood(), [SENTENCE], [Measure.PAIR])
    assert measures_of(Similar()) == {Measure.PAPER, Measure.TOTAL, Measure.PAIR}
