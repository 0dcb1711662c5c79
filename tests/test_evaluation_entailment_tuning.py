"""Fine-tuning on entailment prompts, and the protocol around it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from cli_fixture import invoke
from click.testing import Result
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hapax.evaluation.entailment import pairs
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.llm_oracle.finetuning import Hyperparameters, LabelledCase, SentenceClassifier, TuningSettings, draws

VERBS = ("bought", "owned", "wrote", "read", "killed", "harmed", "composed", "heard")
FILLERS = [
    "is",
    "not",
    "the",
    "case",
    "that",
    "let",
    "alone",
    "because",
    "which",
    "means",
    "It",
    "sure",
    "just",
    "does",
    "mean",
    "This",
    "The",
    "fact",
    "necessarily",
    "Even",
    "if",
    "maybe",
    "Just",
    "might",
    "still",
    "be",
    "true",
    ".",
    ",",
    "ann",
    "bob",
]
SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def written_pairs() -> list[EntailmentPair]:
    """The first verb of each two entails the second, never the reverse."""
    rows = []
    for special, general in zip(VERBS[::2], VERBS[1::2], strict=True):
        first, second = Triple("ann", special, "bob"), Triple("ann", general, "bob")
        rows += [EntailmentPair(first, second, True), EntailmentPair(second, first, False)]
    return rows


def checkpoint(folder: Path, kind: str) -> Path:
    """A random tiny encoder or decoder over the words above."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *VERBS, *FILLERS]
    core = Tokenizer(models.WordLevel({word: number for number, word in enumerate(dict.fromkeys(words))}, "[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind == "encoder":
        core.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    special = (
        {"pad_token": "[PAD]", "unk_token": "[UNK]"}
        if kind == "encoder"
        else {"eos_token": "[SEP]", "unk_token": "[UNK]"}
    )
    PreTrainedTokenizerFast(tokenizer_object=core, **special).save_pretrained(folder)
    torch.manual_seed(0)
    count = core.get_vocab_size()
    if kind == "encoder":
        BertForMaskedLM(
            BertConfig(
                vocab_size=count,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                initializer_range=0.1,
                **SIZE,
            )
        ).save_pretrained(folder)
    else:
        LlamaForCausalLM(LlamaConfig(vocab_size=count, **SIZE)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("base") / "encoder", "encoder")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("base") / "decoder", "decoder")


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The same pairs as train and dev in another order, and a part of them as test."""
    rows = written_pairs()
    files = tuple(tmp_path / f"{name}.txt" for name in ("train", "dev", "test"))
    for path, some in zip(files, (rows, rows[::-1], rows[:6]), strict=True):
        pairs.write_levy_holt(some, path)
    return files  # type: ignore[return-value]  # three files


def run(*arguments: object) -> Result:
    return invoke("evaluate", "entailment", *arguments)


def case(text: str, label: bool) -> LabelledCase:
    return LabelledCase(
        (f"ann {text} bob, which means that bob.",), (f"ann {text} bob. This does not mean that bob.",), label
    )


# Learning


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_classifier_learns_what_it_is_shown(request: pytest.FixtureRequest, kind: str) -> None:
    """Encoders and decoders tell true cases from false ones after training, with patterns and antipatterns turned round."""
    cases = [case(verb, number % 2 == 0) for number, verb in enumerate(VERBS)]
    model = SentenceClassifier.load(request.getfixturevalue(kind))
    model.train(cases, Hyperparameters(5e-3, 1e-4, 1), TuningSettings(epochs=60, rows=8), lambda line: None)
    labelled, turned = (
        [text for case in cases for text in side(case)] for side in (lambda c: c.patterns, lambda c: c.antipatterns)
    )

    assert [p > 0.5 for p in model.probabilities(labelled)] == [case.label for case in cases]
    assert [p < 0.5 for p in model.probabilities(turned)] == [case.label for case in cases]


def test_a_frozen_body_stays(encoder: Path) -> None:
    """Only the head changes when the language model is frozen."""
    model = SentenceClassifier.load(encoder)
    before = {name: weights.detach().clone() for name, weights in model.network.named_parameters()}
    model.train(
        [case("bought", True), case("read", False)],
        Hyperparameters(1e-2, 1e-4, 1),
        TuningSettings(epochs=1, frozen=True),
        lambda line: None,
    )
    changed = {name for name, weights in model.network.named_parameters() if not torch.equal(weights, before[name])}

    assert changed == {"classifier.weight", "classifier.bias"}


def test_training_repeats(encoder: Path) -> None:
    """The same seed gives the same scores, also from the saved weights; accumulating batches changes them."""
    cases = [case(verb, number % 2 == 0) for number, verb in enumerate(VERBS)]
    scores = []
    for accumulated in (1, 1, 2):
        model = SentenceClassifier.load(encoder)
        model.train(
            cases, Hyperparameters(1e-3, 1e-4, accumulated), TuningSettings(epochs=2, rows=2), lambda line: None
        )
        scores.append(model.probabilities(["ann bought bob", "ann read bob because bob"]))

    assert scores[0] == scores[1] != scores[2]


def test_saved_weights_score_the_same(encoder: Path, tmp_path: Path) -> None:
    """A model that was saved and opened again gives the same answers, whatever batch a sentence is in."""
    model = SentenceClassifier.load(encoder, seed=3)
    model.save(tmp_path / "kept")
    sentences = ["ann bought bob", "bob read ann because ann might still be true", "ann"]
    again = SentenceClassifier.load(tmp_path / "kept")

    assert again.probabilities(sentences) == pytest.approx(model.probabilities(sentences), abs=1e-6)
    assert [again.probabilities([text])[0] for text in sentences] == pytest.approx(
        again.probabilities(sentences), abs=1e-5
    )


def test_draws_are_the_releases() -> None:
    """Within its ranges, and a longer search begins with the shorter one."""
    found = list(draws(200, seed=1))

    assert found[:5] == list(draws(5, seed=1)) != list(draws(5, seed=2))
    assert all(1e-8 <= draw.learning_rate <= 0.05 and 1e-5 <= draw.weight_decay <= 0.1 for draw in found)
    assert {draw.accumulated for draw in found} == set(range(1, 18))


# The protocol


def test_the_best_on_dev_is_tested_once(encoder: Path, data: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Draws, selection and test through the command; no test before the last draw, none on dev, none on a second set."""
    train, dev, test = data
    out = tmp_path / "gauge"
    words = ("train", train, dev, "--base", encoder, "--out", out, "--epochs", 2)

    assert run(*words, "--draws", 2).exit_code == 0
    early = json.loads((out / "draws" / "0.json").read_text("utf-8"))
    assert run(*words, "--draws", 3).exit_code == 0
    assert json.loads((out / "draws" / "0.json").read_text("utf-8")) == early
    (out / "draws" / "2.json").unlink()
    assert "1 of 3 draws are missing" in " ".join(run("test", out, test).stderr.split())
    assert run(*words, "--draws", 3).exit_code == 0
    assert "trained or selected on" in " ".join(run("test", out, dev).stderr.split())

    first, second = run("test", out, test, "--json"), run("test", out, test, "--json")
    assert first.exit_code == 0
    assert first.stdout == second.stdout
    tested = json.loads(first.stdout)
    results = [json.loads(path.read_text("utf-8")) for path in (out / "draws").iterdir()]
    assert tested["dev"]["auc50"] == max(result["auc50"] for result in results)
    second_set = tmp_path / "other.txt"
    pairs.write_levy_holt(written_pairs()[:2], second_set)
    assert "tested only once" in " ".join(run("test", out, second_set).stderr.split())
    assert "has been tested" in " ".join(run(*words, "--draws", 4).stderr.split())
    scored = run("score", test, "--scorer", f"scores:{out / 'test-scores.txt'}", "--db", tmp_path / "x.db", "--json")
    assert json.loads(scored.stdout)[0]["auc50"] == pytest.approx(tested["auc50"])


def test_another_training_needs_another_folder(encoder: Path, data: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A folder does not mix prompts, settings or data; each says what differs."""
    train, dev, test = data
    words = ("train", train, dev, "--base", encoder, "--out", tmp_path / "one", "--draws", 1, "--epochs", 1)

    assert run(*words, "--patterns", "symmetric").exit_code == 0
    assert "a different direction" in " ".join(run(*words).stderr.split())
    assert "a different hypothesis_only" in " ".join(
        run(*words, "--patterns", "symmetric", "--hypothesis-only").stderr.split()
    )
    swapped = ("train", test, dev, *words[3:], "--patterns", "symmetric")
    assert "a different train" in " ".join(run(*swapped).stderr.split())


def test_a_symmetric_gauge_knows_no_direction(encoder: Path, data: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Trained on prompts both ways round, a pair and its converse get one score, so AUCnorm is 0."""
    train, dev, test = data
    out = tmp_path / "symmetric"
    run("train", train, dev, "--base", encoder, "--out", out, "--draws", 1, "--epochs", 2, "--patterns", "symmetric")

    assert json.loads(run("test", out, test, "--json").stdout)["auc_norm"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_what_is_no_checkpoint_is_told(
    data: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A base that cannot be loaded, and a folder without a training, are errors with a remedy."""
    train, dev, test = data
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    base = tmp_path / folder
    result = run("train", train, dev, "--base", base, "--out", tmp_path / "out", "--draws", 1)

    assert result.exit_code == 1
    assert "cannot be loaded as a classifier" in " ".join(result.stderr.split())
    assert "contains no training" in " ".join(run("test", tmp_path, test).stderr.split())
