"""Scoring of token sequences: the scores of one plain pass each, in less memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases
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

from hapax.llm_oracle.backends import passes, prefixes
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.scoring import CausalScorer
from hapax.llm_oracle.protocols import ModelIdentity

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
    """A device on which sharing pays at once, passes are narrow, and slices of logits have five positions."""
    monkeypatch.setattr(passes, "PROCESSOR", passes.Pace(3, 0, 64, 5))


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
def test_plan_puts_texts_together_again(texts: list[tuple[int, ...]], cost: int) -> None:
    """Pieces joined from the first level on are the texts; each level saves more than it costs; ends are their own."""
    plan = prefixes.shared(texts, cost)
    joined = [piece.tokens for piece in plan[0]]
    for level in plan[1:]:
        assert all(piece.start == len(joined[piece.parent]) for piece in level)
        joined = [joined[piece.parent] + piece.tokens for piece in level]
    computed = sum(len(piece.tokens) for level in plan for piece in level)

    assert joined == texts
    assert all(piece.tokens for piece in plan[-1])
    assert sum(map(len, texts)) - computed >= (cost + 1) * (len(plan) - 1)
