"""Scoring of token sequences: the scores of one plain pass each, in less memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases
from tiny_models import CLAIMS, VALUES, loaded, tiny_llama, tiny_tokenizer
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MptConfig,
    MptForCausalLM,
)
from transformers.modeling_outputs import CausalLMOutputWithPast

from hapax.llm_oracle.backends import sequence_scores
from hapax.llm_oracle.backends.huggingface import HuggingFaceGenerator, HuggingFaceLikelihood
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.sequence_scores import CausalScorer
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, ModelIdentity
from hapax.llm_oracle.questions.list_requests import MOST_GIVEN_VALUES
from hapax.llm_oracle.questions.profiles import JSON, ValueQuestion
from hapax.llm_oracle.questions.prompts import knowledge_prompt, read_prompt
from hapax.llm_oracle.reading.link_replies import parse_values, without_values

VOCABULARY = 40
CONTEXT = 48
ASKED = [5, 6, 7]
ENDS: dict[str, Any] = {"initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
LLAMA_LIKE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": CONTEXT,
    **ENDS,
}


class Warped(LlamaForCausalLM):
    """Does to its logits what nobody knows of."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = super().forward(*args, **kwargs)
        output.logits = output.logits.sin() * 3
        return output


NETWORKS: dict[str, Any] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA_LIKE)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=16, n_layer=2, n_head=2, **ENDS)
    ),
    "gemma": lambda: Gemma2ForCausalLM(
        Gemma2Config(**LLAMA_LIKE, head_dim=8, sliding_window=20, final_logit_softcapping=3.0)
    ),
    "warped logits": lambda: Warped(LlamaConfig(**LLAMA_LIKE)),
    "recurrent": lambda: MambaForCausalLM(
        MambaConfig(vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=2, **ENDS)
    ),
    "slots as positions": lambda: MptForCausalLM(
        MptConfig(vocab_size=VOCABULARY, d_model=16, n_heads=2, n_layers=2, max_seq_len=CONTEXT, **ENDS)
    ),
}
MADE: dict[str, LoadedModel] = {}


def network(name: str) -> LoadedModel:
    if name not in MADE:
        torch.manual_seed(1)
        MADE[name] = LoadedModel(NETWORKS[name]().eval(), SimpleNamespace(pad_token_id=2), ModelIdentity(name))
    return MADE[name]


@pytest.fixture
def short_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device on which sharing pays at once and passes are narrow."""
    monkeypatch.setattr(sequence_scores, "PROCESSOR", sequence_scores.Pace(3, 64, 2**20))


def tokens(smallest: int, largest: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Tokens from few kinds, so that texts often begin alike."""
    return st.lists(st.integers(3, 5), min_size=smallest, max_size=largest).map(tuple)


@st.composite
def text_sets(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Texts of 2 to 40 tokens: some equal, some beginning alike, one way or two deep, some the beginnings of others."""
    begins = [(), *draw(st.lists(tokens(1, 18), max_size=3))]
    texts = st.tuples(st.sampled_from(begins), tokens(2, 22)).map(lambda pair: pair[0] + pair[1])
    return draw(st.lists(texts, min_size=1, max_size=12))


def alone(model: LoadedModel, text: Sequence[int]) -> torch.Tensor:
    """All logits of one text by one plain pass."""
    with torch.no_grad():
        logits: torch.Tensor = model.network(input_ids=torch.tensor([text])).logits[0]
    return logits


def summed(logits: torch.Tensor, text: Sequence[int], lead: int = 1) -> float:
    scores = logits[:-1].double().log_softmax(-1).gather(1, torch.tensor(text[1:])[:, None])
    return float(scores[lead - 1 :].sum())


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.usefixtures("short_passes")
def test_scores_are_those_of_plain_passes(name: str) -> None:
    """Whatever texts come together, in batches of any size: logits and ln P of each text are those of it alone."""
    model = network(name)

    @settings(max_examples=cases(10), deadline=None)
    @given(text_sets(), st.sampled_from([40, 150, 10_000]), st.integers(1, 2))
    def check(texts: list[tuple[int, ...]], room: int, lead: int) -> None:
        logits = [alone(model, text) for text in texts]
        found = CausalScorer(model, room).next_logits(texts, ASKED)
        longer = [place for place, text in enumerate(texts) if len(text) > lead]
        scored = CausalScorer(model, room).log_likelihoods([texts[place] for place in longer], lead)

        assert torch.allclose(torch.tensor(found), torch.stack([rows[-1, ASKED] for rows in logits]), atol=1e-5)
        assert [sum(scores) / len(texts[place]) for place, scores in zip(longer, scored, strict=True)] == pytest.approx(
            [summed(logits[place], texts[place], lead) / len(texts[place]) for place in longer], abs=1e-5
        )

    check()


def tried(model: LoadedModel, **options: Any) -> CausalScorer:
    """A scorer that has tried its network, so that only what is asked counts."""
    scorer = CausalScorer(model, **options)
    scorer.next_logits([(3, 4)], ASKED)
    return scorer


BEGIN = tuple(range(3, 23))
FORKS = [(*BEGIN, *fork) for fork in ((30, 31, 32, 33), (31, 30, 33, 32))]
TEXTS = [(*fork, end) for fork in FORKS for end in range(10, 16)]


def sums(scores: Sequence[tuple[float, ...]]) -> list[float]:
    return [sum(tokens) for tokens in scores]


OUT_OF_MEMORY = [
    torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to"),
    RuntimeError("[enforce fail at CPUAllocator.cpp:67] DefaultCPUAllocator: not enough memory: you tried to allocate"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    MemoryError(),
]


@contextmanager
def crowded(module: Any, most: int, fault: BaseException) -> Iterator[list[int]]:
    """A module that has memory for so many tokens of input, cached ones and padding counted; and what it was asked."""
    asked: list[int] = []

    def full(module: Any, given: Any, named: dict[str, Any]) -> None:
        asked.append(named["attention_mask"].numel())
        if asked[-1] > most:
            raise fault

    hook = module.register_forward_pre_hook(full, with_kwargs=True)
    yield asked
    hook.remove()


@pytest.mark.parametrize("fault", OUT_OF_MEMORY, ids=lambda fault: type(fault).__name__)
@pytest.mark.usefixtures("short_passes")
def test_out_of_memory_halves_the_batches(fault: BaseException) -> None:
    """A batch that does not fit is tried again in half the room, with the same scores, and later batches start there."""
    model = network("llama")
    scorer = tried(model)
    expected = sums(scorer.log_likelihoods(TEXTS))
    with crowded(model.network.base_model, 80, fault) as asked:
        assert sums(scorer.log_likelihoods(TEXTS)) == pytest.approx(expected, abs=1e-4)
        refused = sum(size > 80 for size in asked)
        again = len(asked)
        assert sums(scorer.log_likelihoods(TEXTS)) == pytest.approx(expected, abs=1e-4)

    assert refused
    assert all(size <= 80 for size in asked[again:])


@settings(max_examples=cases(100), deadline=None)
@given(text_sets(), st.integers(0, 12))
def test_beginnings_and_rests_are_the_texts(texts: list[tuple[int, ...]], another: int) -> None:
    """A beginning and a rest that continues it are a text; what is shared saves more than it costs; ends are own."""
    beginnings, pieces = sequence_scores.shared(texts, another)
    begun = [beginnings[piece.parent].tokens if piece.start else () for piece in pieces]
    computed = sum(len(piece.tokens) for piece in (*beginnings, *pieces))

    assert [begin + piece.tokens for begin, piece in zip(begun, pieces, strict=True)] == texts
    assert all(piece.start == len(begin) for begin, piece in zip(begun, pieces, strict=True))
    assert all(piece.tokens for piece in (*beginnings, *pieces))
    assert not beginnings or sum(map(len, texts)) - computed > another


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_local_decoding_permits_json_alone(temperature: float) -> None:
    """A random network, held to the form, writes an object of at most so many texts; other rows are free."""
    tokenizer = tiny_tokenizer()
    generator = HuggingFaceGenerator(loaded(tiny_llama(tokenizer), tokenizer))
    question = ValueQuestion("B", "milk is in [B]", (), "Food", 3)
    request = GenerationRequest(JSON.word(question), form=JSON.reply_form(question))
    free = GenerationRequest("1. butter.")
    answers = generator.generate([request, free, request], GenerationParameters(temperature, max_tokens=300))
    for answer in (answers[0], answers[2]):
        values = json.loads(answer.text)["values"]
        assert len(values) <= 3
        assert all(isinstance(value, str) for value in values)
        assert answer.finish_reason == "stop"
    assert not answers[1].text.startswith('{"values"')
    assert generator.structures


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


def test_chat_template_frames_prompts_and_keeps_values_inside() -> None:
    """A prompt goes through the chat template, and special tokens inside it cannot leave it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{{ bos_token }}{% for message in messages %}[{{ message['content'] }}]{% endfor %}"
    model = loaded(tiny_llama(tokenizer), tokenizer)

    tokens = model.prompt_tokens("na</s></<s>s>an")

    assert tokenizer.decode(tokens) == "<s>[naan]"
    assert tokens.count(0) == 1


def test_excluded_numbers_are_left_out_in_every_form() -> None:
    """A number is one value however it is written; words of the data type are units, and other numbers stay."""
    said = "1. about 1,900.\n2. 1900 grams.\n3. 19.\n4. 1900 tons.\n5. 44 BC.\n6. 1. FC Bern.\n"

    assert without_values(said, ("1900", "-44", "1. FC Bern"), "Grams") == "3. 19.\n4. 1900 tons.\n"
