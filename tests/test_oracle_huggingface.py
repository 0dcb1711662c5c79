"""Hugging Face checkpoints in their roles, on tiny models that the tests build."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from tokenizers import decoders as decoding
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import CausalLMOutputWithPast

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle import answers
from hapax.llm_oracle.answers import first_items, parse_values, without_values, yes_probability
from hapax.llm_oracle.backends.huggingface import (
    MOST_GIVEN_VALUES,
    HuggingFaceCritic,
    HuggingFaceGenerator,
    HuggingFaceLikelihood,
    answer_tokens,
)
from hapax.llm_oracle.backends.list_decoding import ListTracker
from hapax.llm_oracle.backends.loading import LoadedModel, load_model
from hapax.llm_oracle.prompts import critic_prompt, functional_prompt, knowledge_prompt, read_prompt
from hapax.llm_oracle.protocols import (
    Critic,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    ModelIdentity,
)

CLAIMS = ["Butter is in naan.", "Soy sauce is an ingredient.", "A.", "Buttermilk is in butter, and butter is in naan."]
VALUES = ["butter", "buttermilk", "soy sauce", "soy milk", "naan"]
PROMPT = knowledge_prompt("B", "milk is in [B]", "Food", 4)
LISTING = [
    *(f" {value}." for value in VALUES * 20),
    *(f"\n{number}. {value}." for number in range(1, 9) for value in VALUES),
    PROMPT,
    *["Answer: yes", "Answer: no", "yes", "no"] * 20,
    *CLAIMS,
]


def tiny_tokenizer(begin: bool = True) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of a few hundred tokens, with a begin token in front if asked for."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoding.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "</s>", "<pad>"]
    tokenizer.train_from_iterator(
        LISTING,
        trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=alphabet, show_progress=False),
    )
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **dict(zip(("bos_token", "eos_token", "pad_token"), specials, strict=True)),
        clean_up_tokenization_spaces=False,
    )


def tiny_llama(tokenizer: Any, context: int = 512) -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


def loaded(network: Any, tokenizer: Any) -> LoadedModel:
    return LoadedModel(network, tokenizer, ModelIdentity("hf/tiny"))


@pytest.fixture(scope="module")
def causal() -> LoadedModel:
    """A random Llama."""
    tokenizer = tiny_tokenizer()
    return loaded(tiny_llama(tokenizer), tokenizer)


@pytest.fixture(scope="module")
def seq2seq() -> LoadedModel:
    """A random T5."""
    tokenizer = tiny_tokenizer(begin=False)
    torch.manual_seed(2)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=2
    )
    return loaded(T5ForConditionalGeneration(config).eval(), tokenizer)


@pytest.fixture(scope="module")
def lister() -> LoadedModel:
    """A Llama that has learned to answer one prompt with lists of the five values."""
    tokenizer = tiny_tokenizer()
    network = tiny_llama(tokenizer)
    torch.manual_seed(3)
    prompt = tokenizer(PROMPT).input_ids
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    for _ in range(90):
        order = torch.randint(len(VALUES), (8, 6)).tolist()
        lists = ["".join(f"\n{place}. {VALUES[index]}." for place, index in enumerate(row, 1)) for row in order]
        answers = [tokenizer(text + "\n", add_special_tokens=False).input_ids for text in lists]
        width = max(map(len, answers))
        ids = torch.tensor([prompt + answer + [2] * (width - len(answer)) for answer in answers])
        labels = torch.tensor([[-100] * len(prompt) + answer + [-100] * (width - len(answer)) for answer in answers])
        loss = network.train()(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loaded(network.eval(), tokenizer)


class StoredLogits:
    """A critic that reads its logits from a table, as a server's log-probabilities would be."""

    identity = ModelIdentity("stored")

    def __init__(self, rows: Sequence[tuple[list[float], list[float]]]) -> None:
        self._rows = rows

    def probabilities(self, claims: Sequence[str]) -> list[float]:
        return [yes_probability(yes, no) for (yes, no), _ in zip(self._rows, claims, strict=True)]


def first_token_logits(model: LoadedModel, claim: str) -> torch.Tensor:
    """The logits of the answer's first token, by one plain forward pass without any batch."""
    ids = torch.tensor([model.tokenizer(critic_prompt(claim)).input_ids])
    with torch.no_grad():
        if model.is_seq2seq:
            return model.network(input_ids=ids, decoder_input_ids=torch.tensor([[2]])).logits[0, 0]
        return model.network(input_ids=ids).logits[0, -1]


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_p_yes_is_the_softmax_over_yes_and_no(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Causal, sequence-to-sequence and stored logits give one number, batched or not."""
    monkeypatch.setattr(answers, "LEAST_MASS", 0.0)  # a random network says anything
    model: LoadedModel = request.getfixturevalue(kind)
    critic = HuggingFaceCritic(model, room=300)
    yes, no = answer_tokens(model)
    logits = [first_token_logits(model, claim) for claim in CLAIMS]
    expected = [
        float(row[yes].exp().sum() / torch.cat([row[yes], row[no]]).exp().sum())
        for row in (row_logits.double() for row_logits in logits)
    ]

    scores = [score.probability for score in critic.probabilities(CLAIMS)]
    stored = StoredLogits([(row[yes].tolist(), row[no].tolist()) for row in logits]).probabilities(CLAIMS)

    assert isinstance(critic, Critic)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert stored == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 6) for score in scores}) == len(CLAIMS)


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_order_of_claims_is_irrelevant(kind: str, request: pytest.FixtureRequest) -> None:
    """A claim's score does not depend on its batch, and answers align with the input."""
    critic = HuggingFaceCritic(request.getfixturevalue(kind), room=200)
    forward = [score.probability for score in critic.probabilities(CLAIMS)]
    backward = [score.probability for score in critic.probabilities(CLAIMS[::-1])]

    assert forward == pytest.approx(backward[::-1], abs=1e-5)


def test_yes_tokens_cover_spellings_that_are_one_token(causal: LoadedModel) -> None:
    """`yes` and ` yes` both count, each beside its own `no`."""
    yes, no = answer_tokens(causal)

    assert {causal.tokenizer.decode([token]) for token in yes} == {"yes", " yes"}
    assert {causal.tokenizer.decode([token]) for token in no} == {"no", " no"}


def test_claim_beyond_the_context_is_refused(causal: LoadedModel) -> None:
    """A question that would lose its end is not asked."""
    with pytest.raises(HapaxError, match=r"claim of .* tokens does not fit"):
        HuggingFaceCritic(causal).probabilities(["naan " * 1000])


@pytest.mark.parametrize("begin", [True, False])
def test_likelihood_is_that_of_teacher_forcing(begin: bool) -> None:
    """ln P sums over all tokens but the first, whatever the batch; behind a begin token the text's first one counts."""
    tokenizer = tiny_tokenizer(begin)
    model = loaded(tiny_llama(tokenizer), tokenizer)
    scores = HuggingFaceLikelihood(model, room=50).log_likelihoods(CLAIMS)

    for claim, score in zip(CLAIMS, scores, strict=True):
        ids = torch.tensor([tokenizer(claim).input_ids])
        with torch.no_grad():
            loss = model.network(input_ids=ids, labels=ids).loss
        assert score.token_count == ids.shape[1] - 1
        assert score.per_token == pytest.approx(-float(loss), abs=1e-4)
        assert score.token_count == len(tokenizer(claim, add_special_tokens=False).input_ids) - (not begin)


def test_likelihood_of_odd_texts(causal: LoadedModel) -> None:
    """An empty text has no tokens; a text beyond the context is cut; special tokens in a text are taken out."""
    model = HuggingFaceLikelihood(causal)
    empty, long, clean, hostile = model.log_likelihoods(["", "naan " * 1000, "naan", "na<s></s>an"])

    assert isinstance(model, LikelihoodModel)
    assert (empty.token_count, empty.per_token) == (0, float("-inf"))
    assert long.token_count == causal.context - 1
    assert hostile.total == pytest.approx(clean.total, abs=1e-4)


def test_seq2seq_plays_the_critic_only(seq2seq: LoadedModel) -> None:
    """A sequence-to-sequence model is refused where it cannot serve, with what to do instead."""
    with pytest.raises(HapaxError, match="--knowledge"):
        HuggingFaceGenerator(seq2seq)
    with pytest.raises(HapaxError, match="--likelihood"):
        HuggingFaceLikelihood(seq2seq)


def items(text: str) -> list[str]:
    return [
        str(item.value)
        for item in parse_values(text, "B", "Food")
        if item.rejected is None or "repeats" in item.rejected
    ]


def test_list_ends_with_the_count_asked_for(lister: LoadedModel) -> None:
    """A list stops after its last item; a functional prompt gets one; usage counts both sides."""
    generator = HuggingFaceGenerator(lister)
    parameters = GenerationParameters(max_tokens=200)
    four, single = generator.generate(
        [GenerationRequest(PROMPT), GenerationRequest(functional_prompt("B", "milk is in [B]", "Food"))], parameters
    )

    assert isinstance(generator, Generator)
    assert four.finish_reason == "stop"
    assert len(items(four.text)) == 4
    assert single.finish_reason == "stop"
    assert len(single.text.strip().splitlines()) == 1
    assert four.usage.prompt_tokens == len(lister.tokenizer(PROMPT).input_ids)
    assert 0 < four.usage.completion_tokens < 200


def test_answers_do_not_depend_on_the_batch(lister: LoadedModel) -> None:
    """Sampling is by request: order, batch size and a second run change nothing, a new seed does."""
    requests = [GenerationRequest(PROMPT, sample_index=index) for index in range(5)]
    parameters = GenerationParameters(max_tokens=60)
    expected = HuggingFaceGenerator(lister).generate(requests, parameters)

    assert HuggingFaceGenerator(lister, batch_size=2).generate(requests, parameters) == expected
    assert HuggingFaceGenerator(lister).generate(requests[::-1], parameters) == expected[::-1]
    assert HuggingFaceGenerator(lister).generate(requests, replace(parameters, seed=7)) != expected
    assert len({answer.text for answer in expected}) > 1


def test_sampling_has_the_distribution_of_the_logits(lister: LoadedModel) -> None:
    """All five values come at temperature 1, and one alone without temperature."""
    requests = [GenerationRequest(PROMPT, sample_index=index) for index in range(12)]
    warm = HuggingFaceGenerator(lister).generate(requests, GenerationParameters(1.0, 1.0, 60))
    cold = HuggingFaceGenerator(lister).generate(requests, GenerationParameters(0.0, 1.0, 60))
    narrow = HuggingFaceGenerator(lister).generate(requests, GenerationParameters(1.0, 1e-6, 60))

    assert set(VALUES) <= {item for answer in warm for item in items(answer.text)}
    assert len({answer.text for answer in cold}) == 1
    assert narrow[0].text == cold[0].text


@pytest.mark.parametrize("excluded", [("butter",), ("Soy Sauce", "naan"), ("butter", "soy milk", "naan", "NAAN")])
def test_excluded_values_never_come(lister: LoadedModel, excluded: tuple[str, ...]) -> None:
    """No item is an excluded value, in whatever case, while all others still come, those with its beginning, too."""
    requests = [GenerationRequest(PROMPT, excluded, sample_index=index) for index in range(64)]
    answers = HuggingFaceGenerator(lister, batch_size=64).generate(requests, GenerationParameters(1.0, 1.0, 60))
    found = {item.casefold() for answer in answers for item in items(answer.text)}

    assert found & set(VALUES) == set(VALUES) - {value.casefold() for value in excluded}
    assert found.isdisjoint(value.casefold() for value in excluded)


FOODS = (*VALUES, "rye bread", "oat milk", "malt", "curd", "kefir", "whey", "ghee")
KNOWN: dict[str, tuple[str, ...]] = {
    knowledge_prompt("B", "milk is in [B]", "Food", 24): (*FOODS, *map(str.upper, FOODS)),
    knowledge_prompt("B", "soy is in [B]", "Food", 12): tuple(FOODS[::-1]),
    knowledge_prompt("Y", "naan was baked in [Y]", "Year", 12): tuple(
        form for year in (1900, 1911, 1922, 1933) for form in (str(year), f"about {year}", f"{year} AD")
    ),
    knowledge_prompt("N", "[N] of salt are in naan", "Grams", 6): (
        "1,000",
        "1000 grams",
        "200",
        "200 grams",
        "30",
        "4",
    ),
}
"""Questions and the lists that `Reciter` has for them."""


class Reciter(LlamaForCausalLM):
    """Knows lists by heart and says them in order, from the number that is due, whatever was said or excluded."""

    tokenizer: Any

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:
        return {"input_ids": input_ids}

    def forward(self, input_ids: torch.Tensor, attention_mask: Any = None, **kwargs: Any) -> CausalLMOutputWithPast:
        logits = torch.full((*input_ids.shape, self.config.vocab_size), -1e4)
        for row, tokens in enumerate(input_ids.tolist()):
            logits[row, -1, self.next_token(self.tokenizer.decode(tokens, skip_special_tokens=True))] = 0.0
        return CausalLMOutputWithPast(logits=logits)

    def next_token(self, text: str) -> int:
        (question,) = (known for known in KNOWN if text.startswith(known))
        number, line = text.count("\n"), text.rpartition("\n")[2]
        due = f"{number}. {KNOWN[question][(number - 1) % len(KNOWN[question])]}."
        going_on = number and due.startswith(line)
        rest = due.removeprefix(line) if going_on else ""
        return int(self.tokenizer(rest or "\n", add_special_tokens=False).input_ids[0])


@pytest.mark.parametrize("question", KNOWN)
@pytest.mark.parametrize("count", [1, MOST_GIVEN_VALUES, MOST_GIVEN_VALUES + 3])
def test_a_model_that_insists_on_excluded_values_is_not_heard(question: str, count: int) -> None:
    """More values may be excluded than a list is begun with: none comes in the reply's values, all others do."""
    tokenizer = tiny_tokenizer()
    network = Reciter(tiny_llama(tokenizer, context=2048).config).eval()
    network.tokenizer = tokenizer
    asked = read_prompt(question)
    assert asked is not None
    numeric = asked.data_type != "food"

    def values(excluded: Sequence[str]) -> list[str]:
        request = GenerationRequest(question, tuple(excluded))
        (answer,) = HuggingFaceGenerator(loaded(network, tokenizer)).generate([request], GenerationParameters())
        parsed = parse_values(answer.text, asked.variable, asked.data_type, numeric)
        assert len(answer.text.splitlines()) <= 1 + asked.count
        return [str(item.value).casefold() for item in parsed if item.rejected is None]

    everything = values(())
    excluded = everything[-count:]

    assert len(everything) >= 4
    assert set(values(excluded)) == set(everything) - set(excluded)
    assert values([value.upper() for value in excluded]) == values(excluded)


def test_exclusion_is_by_request(lister: LoadedModel) -> None:
    """A value that one row of a batch must not contain may be in another."""
    requests = [
        GenerationRequest(PROMPT, ("butter", "naan", " ") if index % 2 else (), (), index) for index in range(16)
    ]
    answers = HuggingFaceGenerator(lister).generate(requests, GenerationParameters(1.0, 1.0, 60))

    assert "naan" in {item for answer in answers[::2] for item in items(answer.text)}
    assert "naan" not in {item for answer in answers[1::2] for item in items(answer.text)}


def test_banned_tokens_get_the_bias(lister: LoadedModel) -> None:
    """A text's tokens do not come any more, those that the list needs do."""
    requests = [GenerationRequest(PROMPT, (), ("naan", "1. 2."), index) for index in range(8)]
    answers = HuggingFaceGenerator(lister).generate(requests, GenerationParameters(1.0, 1.0, 60))

    assert not any("naan" in answer.text for answer in answers)
    assert all(len(items(answer.text)) >= 2 for answer in answers)


def test_prompt_that_leaves_no_room_is_refused(causal: LoadedModel) -> None:
    """A prompt as long as the context has no answer; a shorter one gets what room there is."""
    small = loaded(tiny_llama(causal.tokenizer, context=96), causal.tokenizer)
    generator = HuggingFaceGenerator(small)
    with pytest.raises(HapaxError, match=r"prompt of .* tokens does not fit"):
        generator.generate([GenerationRequest("naan " * 1000)], GenerationParameters())

    prompt = "naan " * 30
    (answer,) = generator.generate([GenerationRequest(prompt)], GenerationParameters(max_tokens=100_000))
    assert answer.usage.prompt_tokens + answer.usage.completion_tokens <= small.context


def test_chat_template_frames_prompts_and_keeps_values_inside(causal: LoadedModel) -> None:
    """A prompt goes through the chat template, and special tokens inside it cannot leave it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{{ bos_token }}{% for message in messages %}[{{ message['content'] }}]{% endfor %}"
    model = LoadedModel(causal.network, tokenizer, causal.identity)

    tokens = model.prompt_tokens("na</s></<s>s>an")

    assert tokenizer.decode(tokens) == "<s>[naan]"
    assert tokens.count(0) == 1


def test_full_gpu_halves_the_lists_decoded_at_once(lister: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory, fewer lists are decoded at a time, then and later, with the same answers."""
    requests = [GenerationRequest(PROMPT, sample_index=index) for index in range(5)]
    parameters = GenerationParameters(max_tokens=30)
    expected = HuggingFaceGenerator(lister).generate(requests, parameters)
    generator = HuggingFaceGenerator(lister)
    sizes: list[int] = []
    generate = lister.network.generate

    def crowded(input_ids: torch.Tensor, **kwargs: Any) -> Any:
        sizes.append(len(input_ids))
        if len(input_ids) > 2:
            raise torch.OutOfMemoryError("full")
        return generate(input_ids=input_ids, **kwargs)

    monkeypatch.setattr(lister.network, "generate", crowded)

    assert generator.generate(requests, parameters) == expected
    assert generator.generate(requests[:2], parameters) == expected[:2]
    assert sizes == [5, 2, 2, 1, 2]


def test_folder_is_loaded_with_what_it_knows(causal: LoadedModel, tmp_path: Path) -> None:
    """A saved checkpoint opens under its name, scores the same, and carries its revision and predicates."""
    causal.network.save_pretrained(tmp_path)
    causal.tokenizer.save_pretrained(tmp_path)
    unlisted = load_model(tmp_path, "cpu")
    (tmp_path / "hapax.json").write_text(json.dumps({"predicates": ["is_in/2"], "types": ["Food"]}))
    listed = load_model(tmp_path, name="embedded")

    assert unlisted.identity.knows is None
    assert unlisted.identity.name == f"hf/{tmp_path}"
    assert (listed.identity.name, listed.identity.knows, listed.identity.types) == ("embedded", ("is_in/2",), ("Food",))
    assert listed.identity.revision != unlisted.identity.revision
    assert load_model(tmp_path, "cpu", dtype="float32").identity.revision == listed.identity.revision
    assert [score.probability for score in HuggingFaceCritic(listed).probabilities(CLAIMS)] == pytest.approx(
        [score.probability for score in HuggingFaceCritic(causal).probabilities(CLAIMS)], abs=1e-5
    )

    (tmp_path / "hapax.json").write_text("[]")
    with pytest.raises(HapaxError, match=r"hapax\.json"):
        load_model(tmp_path, "cpu")


def test_bfloat16_is_another_revision_with_like_scores(causal: LoadedModel, tmp_path: Path) -> None:
    """Scores in bfloat16 are near those in float32, and the journal keeps the two apart."""
    causal.network.save_pretrained(tmp_path)
    causal.tokenizer.save_pretrained(tmp_path)
    exact, rounded = load_model(tmp_path, "cpu"), load_model(tmp_path, "cpu", dtype="bfloat16")

    assert rounded.network.dtype == torch.bfloat16
    assert rounded.identity.revision == f"{exact.identity.revision} bfloat16"
    assert [score.per_token for score in HuggingFaceLikelihood(rounded).log_likelihoods(CLAIMS)] == pytest.approx(
        [score.per_token for score in HuggingFaceLikelihood(exact).log_likelihoods(CLAIMS)], abs=0.1
    )


def test_missing_checkpoint_and_device_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a model, a device that is not there and an unknown dtype are errors with a remedy."""
    with pytest.raises(HapaxError, match="cannot be loaded"):
        load_model(tmp_path)
    with pytest.raises(HapaxError, match="no device toaster"):
        load_model(tmp_path, "toaster")
    with pytest.raises(HapaxError, match=r"Unknown dtype 'int4'.*float32 or bfloat16"):
        load_model(tmp_path, "cpu", dtype="int4")


def test_large_folder_is_known_by_names_and_dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the size that is hashed, a changed date changes the revision."""
    from hapax.llm_oracle.backends import identities

    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"12345")
    by_content = identities.content_revision(tmp_path)
    monkeypatch.setattr(identities, "HASHED_BYTES", 4)

    assert identities.content_revision(tmp_path) != by_content


def test_excluded_lines_are_left_out_whole() -> None:
    """A line that says an excluded value goes, in whatever case and spacing; longer values stay."""
    said = "\n4. Butter.\n5. buttermilk.\n6. soy  sauce.\nnothing"

    assert without_values(said, ("butter", "Soy Sauce")) == "\n5. buttermilk.\nnothing"
    assert without_values(said, ()) == without_values(said, (" ",)) == said


def test_excluded_numbers_are_left_out_in_every_form() -> None:
    """A number is one value however it is written; words of the data type are units, and other numbers stay."""
    said = "1. about 1,900.\n2. 1900 grams.\n3. 19.\n4. 1900 tons.\n5. 44 BC.\n6. 1. FC Bern.\n"

    assert without_values(said, ("1900", "-44", "1. FC Bern"), "Grams") == "3. 19.\n4. 1900 tons.\n"


def test_tracker_splits_lines_inside_tokens(causal: LoadedModel) -> None:
    """The tracker keeps the line being written and counts the items before it."""
    tokenizer = causal.tokenizer
    tokens = tokenizer("\n1. butter.\n\n2. na", add_special_tokens=False).input_ids
    tracker = ListTracker(tokenizer, 1, 1)
    for length in range(1, len(tokens) + 1):
        tracker.update(torch.tensor([[0, *tokens[:length]]]))

    assert tracker.lines == ["2. na"]
    assert tracker.finished == [1]


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("\n".join(f"{number}. butter" for number in range(1, 7)) + "\n", True),
        ("\n".join(f"{number}. value {number}" for number in range(1, 30)) + "\n", False),
        ("1. a\n2. b\n3. a\n4. b\n5. A\n6. b.\n7. **a**\n", True),
        ("1. a\n2. a\n3. a\n4. b\n5. a\n6. b\n", False),
        ("1." + " na" * 40, True),
        ("1. butter", False),
    ],
)
def test_a_list_that_goes_round_is_known(causal: LoadedModel, text: str, loops: bool) -> None:
    """Five items in a row that were there before, or a line of one group of tokens again and again, are a loop."""
    tokens = causal.tokenizer(text, add_special_tokens=False).input_ids
    tracker = ListTracker(causal.tokenizer, 1, 1)
    tracker.update(torch.tensor([[0, *tokens]]))

    assert tracker.is_looping(0) == loops


@pytest.mark.parametrize(
    ("text", "count", "items_"),
    [
        ("1. a.\n2. b.\n3.", 2, "1. a.\n2. b.\n"),
        ("\n1. a.\n2.", 1, "\n1. a.\n"),
        ("1. a.", 1, None),
        ("1. a.\n", None, None),
    ],
)
def test_first_items(text: str, count: int | None, items_: str | None) -> None:
    """A list is cut behind the items asked for, and left alone where it has fewer."""
    assert first_items(text, count) == items_


def test_long_value_never_traps_a_list(lister: LoadedModel) -> None:
    """With everything excluded the list still ends, and nothing excluded is in it."""
    request = GenerationRequest(PROMPT, tuple(VALUES))
    (answer,) = HuggingFaceGenerator(lister).generate([request], GenerationParameters(1.0, 1.0, 120))

    assert not set(VALUES) & {item.casefold() for item in items(answer.text)}
    assert answer.finish_reason in ("stop", "length")
