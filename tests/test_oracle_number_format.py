"""The number format of models in this process: measured, kept with a knowledge base's answers, told by `doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from test_oracle_huggingface import tiny_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from hapax.engine.doctor import examine
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends import loading, processor
from hapax.llm_oracle.backends.cache import CACHE_VARIABLE
from hapax.llm_oracle.backends.loading import NARROWEST, load_model
from hapax.llm_oracle.backends.processor import ProcessorSpeed, processor_speed
from hapax.llm_oracle.calls import JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.registry import open_model

TEXTS = ["Butter is in naan.", "Soy sauce is an ingredient."]


@pytest.fixture
def unmeasured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a process that has measured nothing."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    processor_speed.cache_clear()
    yield tmp_path / "cache"
    processor_speed.cache_clear()


@pytest.fixture
def fast_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that is twice as fast in bfloat16."""
    monkeypatch.setattr(loading, "processor_speed", lambda: ProcessorSpeed("any", "any", 2.0, 1.0))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint of one layer, wide enough for bfloat16."""
    folder = tmp_path_factory.mktemp("wide")
    save_llama(folder, NARROWEST)
    return folder


def save_llama(folder: Path, width: int) -> None:
    tokenizer = tiny_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    torch.manual_seed(1)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.usefixtures("fast_bfloat16")
def test_wide_networks_use_the_faster_format(wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor, `auto` is bfloat16 where that is clearly faster, except for narrow networks and encoders."""
    save_llama(tmp_path, 32)

    assert load_model(wide, "cpu").network.dtype == torch.bfloat16
    assert load_model(wide, "cpu", headless=True).network.dtype == torch.float32
    assert load_model(wide, "cpu", dtype="float32").network.dtype == torch.float32
    assert load_model(tmp_path, "cpu").network.dtype == torch.float32
    monkeypatch.setattr(loading, "processor_speed", lambda: ProcessorSpeed("any", "any", 1.2, 1.0))
    assert load_model(wide, "cpu").network.dtype == torch.float32


@pytest.mark.usefixtures("fast_bfloat16")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_knowledge_base_keeps_the_format_of_its_answers(
    wide: Path, fresh_kb: KnowledgeBase, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` opens a model in the format in which it answered before, so that its answers replay on any processor."""
    journal = Journal(fresh_kb)

    def log_likelihoods(dtype: str) -> list[float]:
        options = OpeningOptions(device="cpu", dtype=dtype, journal=journal)
        model = JournaledLikelihood(open_model(f"hf:{wide}", "likelihood", options), journal, 16, "likelihood")
        return [score.total for score in model.log_likelihoods(TEXTS)]

    first = log_likelihoods(dtype)
    sent = journal.total.calls
    again = log_likelihoods("auto")
    monkeypatch.setattr(loading, "processor_speed", lambda: ProcessorSpeed("any", "any", 1.0, 2.0))

    assert log_likelihoods("auto") == again == first
    assert journal.total.calls == sent == len(TEXTS)


def test_another_models_answers_do_not_decide(fresh_kb: KnowledgeBase) -> None:
    """The newest revision is that of the model of exactly this name."""
    journal = Journal(fresh_kb)
    assert journal.newest_revision("hf/a") is None
    for number, model in enumerate(("hf/a@1", "hf/a@1 bfloat16", "hf/ab@2", "hf/b")):
        fresh_kb.query(
            "INSERT INTO calls (request_id, role, model, request, response, prompt_tokens, completion_tokens, created) "
            "VALUES (?, 'critic', ?, '{}', '{}', 0, 0, '2026-01-01')",
            (str(number), model),
        )

    assert journal.newest_revision("hf/a") == "1 bfloat16"
    assert journal.newest_revision("hf/b") == ""
    assert journal.newest_revision("hf/") is None


def test_the_processor_is_measured_once(unmeasured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later process reads the measurement from the cache; another processor, or a damaged file, is measured anew."""
    measured = processor_speed()
    processor_speed.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(processor, "_race", lambda: pytest.fail("measured again"))
        assert processor_speed() == measured

    monkeypatch.setattr(processor, "_race", lambda: (3.0, 1.0))
    processor_speed.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(processor, "_processor", lambda: "another")
        assert processor_speed().ratio == 3
    (unmeasured / "processor.json").write_text("[]")
    processor_speed.cache_clear()
    assert processor_speed().ratio == 3


def test_without_a_cache_the_processor_is_measured_all_the_same(
    unmeasured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that cannot be written is no fault."""
    unmeasured.touch()
    monkeypatch.setattr(processor, "_race", lambda: (3.0, 1.0))

    assert processor_speed().prefers_bfloat16


def test_doctor_tells_the_number_format(unmeasured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` says which format models on this processor use, and by what measurement."""
    monkeypatch.setattr(processor, "_race", lambda: (3.0, 1.0))

    (finding,) = [finding for finding in examine() if finding.name == "number format"]

    assert finding.ok
    assert finding.found == "bfloat16 (bfloat16 is 3.0 times as fast as float32)"
