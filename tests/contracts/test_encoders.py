"""Texts compared by an encoder, on a tiny BERT that the tests build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from cli_fixture import invoke
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

_TEXT = "[PAD] [CLS] [SEP] [UNK] ann bob paris rome visits tours a long story"
WORDS = _TEXT.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of twelve words."""
    path = tmp_path_factory.mktemp("bert")
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token=WORDS[3]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(path)
    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config).save_pretrained(path)
    return path


def test_encoder_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    """`encoder` with `-m hf:` scores pairs through the journal; another kind of model is refused."""
    pairs = tmp_path / "dev.txt"
    pairs.write_text("ann,visits,paris\tann,tours,paris\tTrue\nann,tours,paris\tann,visits,paris\tFalse\n", "utf-8")
    words = (
        "evaluate",
        "entailment",
        "score",
        str(pairs),
        "--scorer",
        "encoder",
        "--db",
        str(tmp_path / "x.db"),
        "--json",
    )

    def run(*more: str) -> object:
        result = invoke(*words, *more)
        assert result.exit_code == 0, result.output
        return [(row["subset"], round(row["auc_norm"]["value"], 6)) for row in json.loads(result.stdout)]

    first = run("-m", f"hf:{folder}", "--device", "cpu")
    again = run("-m", f"hf:{folder}", "--device", "cpu", "--max-calls", "0", "--max-cost", "0")

    assert first == again == [("full", 0.0), ("DirTrue-DirFalse", 0.0)]  # symmetric: no idea of the direction
    assert invoke(*words, "-m", "frequency").exit_code == 2
