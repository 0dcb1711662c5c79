"""Texts compared by an encoder, on a tiny BERT that the tests build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from cli_fixture import invoke
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.evaluation.entailment.scorers import LikenessScorer
from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backends.encoder import CLOSE, OPEN, EncoderSimilarity

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


def test_marked_words_count(folder: Path) -> None:
    """Vectors of the marked words are averaged; without marks the first token speaks for the text."""
    model = EncoderSimilarity.load(folder, "cpu")
    marked = f"ann {OPEN}visits{CLOSE} paris\tbob {OPEN}tours a{CLOSE} rome"
    both = [model._loaded.tokenizer(text, return_tensors="pt") for text in ("ann visits paris", "bob tours a rome")]
    states = [model._loaded.network(**tokens).last_hidden_state[0].detach() for tokens in both]
    wanted = torch.cosine_similarity(states[0][2], states[1][2:4].mean(dim=0), dim=0)
    first = torch.cosine_similarity(states[0][0], states[1][0], dim=0)
    found = model.log_likelihoods([marked, "ann visits paris\tbob tours a rome", "ann tours rome\tann tours rome"])

    assert [score.per_token for score in found] == pytest.approx([float(wanted), float(first), 1.0], abs=1e-5)
    assert model.identity.name == f"encoder/{folder}"


def test_long_texts_are_cut(folder: Path) -> None:
    """A text beyond the context is read as far as it goes, and special tokens in it are none."""
    model = EncoderSimilarity.load(folder, "cpu")
    (score,) = model.log_likelihoods([f"{'a long story ' * 30}\t[SEP] {'a long story ' * 8}"])

    assert score.per_token == pytest.approx(1.0)


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    """A folder without a checkpoint is told."""
    with pytest.raises(HapaxError, match="cannot be loaded"):
        EncoderSimilarity.load(tmp_path, "cpu")


def test_scorer_marks_predicates() -> None:
    """Propositions are compared by their predicates, sentences as wholes; marks in the text itself are taken out."""
    asked: list[str] = []

    def measure(texts: object) -> list[float]:
        asked.extend(texts)  # type: ignore[call-overload]
        return [0.5] * len(asked)

    hypothesis, sentence = Triple("a", "h", "b"), Triple("A <sentence>.", "", "")
    chinese = EntailmentPair(Triple("明", "在·X·教", "京"), Triple("明", "去", "京"), True, "ZH")
    pairs = [
        EntailmentPair(Triple("a<", "p q", "b"), hypothesis, True),
        EntailmentPair(sentence, hypothesis, True),
        chinese,
    ]

    assert LikenessScorer("e", measure, ("<", ">")).scores([*pairs, pairs[0]]) == [0.5] * 4
    assert asked == ["a <p q> b\ta <h> b", "A sentence .\ta h b", "明<在>京<教>\t明<去>京"]


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
