"""Measures of likelihood: the same numbers from every kind of model, names and pairs apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from openai_fake import FRAME, Asked, FakeServer, Reply
from safetensors.torch import save_file
from tiny_models import CLAIMS, first_token_logits, loaded, network, tiny_llama, tiny_tokenizer

import hapax
from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends.adapters import merge, read_adapter
from hapax.llm_oracle.backends.huggingface import HuggingFaceCritic, HuggingFaceLikelihood, answer_tokens
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.sequence_scores import CausalScorer
from hapax.llm_oracle.backends.trained_critic import CriticCard, MeasuredPredicate
from hapax.llm_oracle.critics.combined_critic import CombinedCritic, paraphrased, sigmoid
from hapax.llm_oracle.critics.measures import Measure, RankedText, measured, mentions
from hapax.llm_oracle.embedded.atlas import load_atlas, parse_atlas
from hapax.llm_oracle.protocols import CriticScore, LogLikelihood, ModelIdentity, SpannedText, Usage
from hapax.llm_oracle.rankers.frequency import FrequencyLikelihood
from hapax.llm_oracle.reading.link_replies import yes_probability
from hapax.llm_oracle.registry import open_model

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


TABLES = {"is_the_capital_of": "is the capital of", "shares_a_border_with": "shares a border with"}
DIFFERENCES = {"Ngerulmud is the capital of Palau.": "GeoNames has the state's name, Melekeok"}
"""Facts of the atlas that the tables do not confirm, with the reason."""


def test_what_a_key_does_not_list_is_false() -> None:
    """An unlisted pair does not hold, and neither does anything of an unknown predicate."""
    text = "predicate is_ingredient_in(Ingredient, Dish) key 2\npaella: rice; saffron\n"
    atlas = parse_atlas([("test.atlas", text)])

    assert atlas.holds("is_ingredient_in", ("rice", "paella"))
    assert not atlas.holds("is_ingredient_in", ("milk", "paella"))
    assert not atlas.holds("lies_in", ("rice", "paella"))


def test_the_shipped_rules_have_words_for_every_predicate_of_the_atlas() -> None:
    """Every shipped fact reads without fault, and can be asked for."""
    atlas, library = load_atlas(), hapax.load_rules()

    assert len(atlas.facts) > 4000
    assert set(atlas.relations) <= {signature.name for signature in library.signatures}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_of("references")), reason=missing_of("references"))
@pytest.mark.parametrize("predicate", TABLES)
def test_the_atlas_agrees_with_the_references(predicate: str) -> None:
    """Every fact of the atlas that the tables could know is confirmed by a row, but for the known differences."""
    critic, atlas = open_model("reference:geo", "critic", OpeningOptions(library=hapax.load_rules())), load_atlas()
    claims = [
        f"{str(first)[0].upper()}{str(first)[1:]} {TABLES[predicate]} {second}."
        for first in atlas.true_values(predicate, 0)
        for second in atlas.true_values(predicate, 1, first)
    ]
    wrong = {
        claim for claim, score in zip(claims, critic.probabilities(claims), strict=True) if score.probability < 0.5
    }

    assert len(claims) > 50
    assert wrong <= set(DIFFERENCES)


class SettledCritic:
    """A critic with one answer to every claim, which remembers the claims."""

    def __init__(self, name: str, score: CriticScore, knows: tuple[str, ...] | None = None) -> None:
        self.identity = ModelIdentity(name, "1", knows)
        self.score = score
        self.claims: list[str] = []

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self.claims += claims
        return [self.score] * len(claims)


def test_a_combined_score_is_the_mean_of_the_log_odds() -> None:
    """Members that do not cover a claim, or refuse it, have no part in the score; the raw scores are kept."""
    yes = SettledCritic("a", CriticScore(0.9, Usage(10, 1)))
    doubt = SettledCritic("b", CriticScore(0.5, Usage(20, 1)))
    silent = SettledCritic("c", CriticScore(0.5, covered=False, basis="no row"))
    refusing = SettledCritic("d", CriticScore(0.5, refused="filter"))

    (score,) = CombinedCritic([yes, doubt, silent, refusing]).probabilities(["Butter is a fat."])

    assert score.probability == pytest.approx(sigmoid(math.log(9) / 2))
    assert score.members == {"a@1": 0.9, "b@1": 0.5}
    assert (score.usage.prompt_tokens, score.covered, score.refused) == (30, True, "")
    assert not CombinedCritic([silent, silent_too()]).probabilities(["x"])[0].covered
    assert CombinedCritic([silent, refusing]).probabilities(["x"])[0].refused == "filter"


def silent_too() -> SettledCritic:
    return SettledCritic("e", CriticScore(0.5, covered=False))


def test_a_paraphrased_critic_is_asked_in_several_words() -> None:
    """A tendency to yes cancels out between a claim and its denial."""
    yes_sayer = SettledCritic("a", CriticScore(0.9))
    critic = CombinedCritic(paraphrased(yes_sayer))

    (score,) = critic.probabilities(["Butter is a fat."])

    assert yes_sayer.claims[:3] == [
        "Butter is a fat.",
        "It is a well-known fact: Butter is a fat.",
        "The following is false: Butter is a fat.",
    ]
    assert score.probability == pytest.approx(sigmoid(math.log(9) / 3))
    assert score.members == pytest.approx({"a@1": 0.9, "a/stressed@1": 0.9, "a/denied@1": 0.1})


def test_a_merged_weight_is_the_sum_of_base_and_product(tmp_path: Path) -> None:
    """The product of both halves of an adapter is added to its layer, and to no other."""
    network = tiny_llama(tiny_tokenizer())
    name = "model.layers.1.self_attn.q_proj"
    down, up = (torch.randint(-100, 100, (3, 32), dtype=torch.int8) for _ in range(2))
    scale = torch.tensor([0.001, 0.0005, 0.0002])
    save_file(
        {f"{name}.down": down, f"{name}.up": up, f"{name}.scale": scale}, tmp_path / "a.safetensors", {"base": "tiny"}
    )
    before = {key: value.clone() for key, value in network.state_dict().items()}

    merge(network, read_adapter(tmp_path / "a.safetensors"))

    changed = {key for key, value in network.state_dict().items() if not torch.equal(value, before[key])}
    assert changed == {f"{name}.weight"}
    found = network.state_dict()[f"{name}.weight"]
    assert torch.allclose(found, before[f"{name}.weight"] + (up.T * scale) @ down.float(), atol=1e-4)


def test_the_longest_template_that_fits_is_the_claims() -> None:
    """Of two predicates in whose words a claim is, the one with the longer template is its own; other words are of none."""
    births = MeasuredPredicate("was_born_in", ("[1] was born in [2]",), 0.5, 40, judged=False)
    places = MeasuredPredicate("was_born_in_the_city_of", ("[1] was born in the city of [2]",), 0.9, 40, judged=True)
    card = CriticCard((births, places), bar=0.65)

    assert card.entry("Marie Curie was born in 1867.") == births
    assert card.entry("Marie Curie was born in the city of Warsaw.") == places
    assert card.entry("Marie Curie won two prizes.") is None


class LogitServer(FakeServer):
    """Tells the 20 likeliest first tokens by stored logits of each claim."""

    def __init__(self, model: LoadedModel, stored: Mapping[str, torch.Tensor], lacks: frozenset[str]) -> None:
        super().__init__(misbehave=self.told, lacks=frozenset({"systemone", *lacks}))
        self.loaded, self.stored = model, stored

    def told(self, number: int, asked: Asked) -> Reply | None:
        is_chat = "messages" in asked.body
        if not asked.body.get("logprobs") or ("chat" in self.lacks and is_chat):
            return None
        prompt = asked.body["messages"][0]["content"] if is_chat else asked.body["prompt"]
        logits = self.stored.get(prompt.removeprefix(FRAME[0]).removesuffix(FRAME[1]))
        if logits is None:  # a probe
            return None
        scores, tokens = logits.log_softmax(-1).topk(20)
        names = [self.loaded.tokenizer.decode([token]) for token in tokens.tolist()]
        listed = dict(zip(names, scores.tolist(), strict=True))
        entries = [{"token": name, "logprob": score} for name, score in listed.items()]
        logprobs = {"content": [{"top_logprobs": entries}]} if is_chat else {"top_logprobs": [listed]}
        return 200, {"choices": [{"message": {"content": "?"}, "text": "?", "logprobs": logprobs}]}, {}


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
@pytest.mark.parametrize("lacks", [frozenset(), frozenset({"chat"})], ids=["chat", "completions"])
def test_stored_logits_give_one_score_in_every_back_end(kind: str, lacks: frozenset[str]) -> None:
    """The same logits in this process and as a server's 20 likeliest tokens are one P(yes), within 1e-5."""
    model = network(kind)
    yes, no = answer_tokens(model, "yes/no") or ([], [])

    def says_yes_or_no(module: Any, given: Any, logits: torch.Tensor) -> torch.Tensor:
        """A random network says anything; one that was asked has both answers among its likeliest."""
        raised = logits.clone()
        raised[..., [*yes, *no]] += 20.0
        return raised

    hook = model.network.lm_head.register_forward_hook(says_yes_or_no)
    try:
        stored = {claim: first_token_logits(model, claim).double() for claim in CLAIMS}
        own = [score.probability for score in HuggingFaceCritic(model).probabilities(CLAIMS)]
    finally:
        hook.remove()
    with LogitServer(model, stored, lacks) as fake:
        critic = hapax.open_models(f"openai:tiny@{fake.url}", likelihood="frequency", claims=1).critic
        served = [score.probability for score in critic.probabilities(CLAIMS)]

    expected = [yes_probability(stored[claim][yes].tolist(), stored[claim][no].tolist()) for claim in CLAIMS]
    assert critic.identity.revision.endswith("logprobs")
    assert own == pytest.approx(expected, abs=1e-5)
    assert served == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 6) for score in served}) == len(CLAIMS)


@pytest.mark.parametrize(("words", "said"), [("yes/no", "yes no"), ("ja/nein nee nej nei", "ja nein")])
def test_a_critic_in_this_process_answers_in_its_own_language(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P(yes) is over the tokens of yes and no in the language in which a model tells a truth from a falsehood."""
    model = network("causal")
    yes, no = (model.tokenizer(word, add_special_tokens=False).input_ids[:1] for word in said.split())

    def logits(_: object, prompts: Any, tokens: Any, total: bool = False) -> list[list[float]]:
        """The answer about France is yes, and any other is no."""
        found = []
        for prompt in prompts:
            is_true = "France" in model.tokenizer.decode(list(prompt))
            likely, other = (yes, no) if is_true else (no, yes)
            found.append([3.0 if token in likely else 1.0 if token in other else -20.0 for token in tokens] + [3.2])
        return found

    monkeypatch.setattr(CausalScorer, "next_logits", logits)
    true, false = HuggingFaceCritic(model).probabilities(["It is in France.", "It is in Spain."])

    expected = 1 / (1 + math.exp(-2))
    assert (true.refused, false.refused) == ("", "")
    assert true.probability == pytest.approx(expected, abs=1e-6)
    assert false.probability == pytest.approx(1 - expected, abs=1e-6)
