"""Training: packing, the schedule, resuming, the gate, and a model folder that loads like any other checkpoint."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from hapax.evaluation.shared.estimates import auc
from hapax.grammar.parser import parse_library
from hapax.llm_oracle.embedded.atlas import parse_atlas
from hapax.llm_oracle.prompts import critic_prompt, knowledge_prompt
from tools.embedded.batches import ANSWER_WEIGHT, BatchMaker, EncodedDocument, packed
from tools.embedded.corpus import Corpus, Document, DocumentKind
from tools.embedded.exam import Exam, Examiner
from tools.embedded.export import CARD_PROSE, export_model
from tools.embedded.gate import ExaminationReport
from tools.embedded.statements import StatementSampler
from tools.embedded.tokenizer import BEGIN, build_tokenizer, token_id
from tools.embedded.train import RunOptions, TrainingRun, TrainingSettings
from tools.embedded.wording import AtlasWording

ATLAS = """\
predicate is_ingredient_in(Ingredient, Dish) key 2
paella: rice; saffron; chicken; olive oil
risotto: rice; butter; parmesan
ratatouille: eggplant; zucchini; tomato; onion
hummus: chickpea; tahini; lemon; garlic
tiramisu: mascarpone; egg; sugar; coffee
predicate was_invented_in(Invention, Year) key 1 functional
telephone: 1876
laser: 1960
airplane: 1903
dynamite: 1867
nylon: 1935
predicate is_made_from_milk_of(Cheese, Animal) key 1
feta: sheep; goat
parmesan: cow
brie: cow
manchego: sheep
chevre: goat
"""
RULES = """\
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]".
functional was_invented_in(Invention, Year): "the [1] was invented in [2]".
oracle is_made_from_milk_of(Cheese, Animal): "[1] is made from the milk of the [2]".
given likes(Person, Dish): "[1] likes [2]".
given could_buy(Person, Ingredient): "[1] could buy [2]".
likes(Person X, Dish A) & is_ingredient_in(Ingredient B, Dish A) -> could_buy(Person X, Ingredient B).
"""
TINY = TrainingSettings(steps=20, rows=2, width=32, layers=1, heads=2, vocabulary=700)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    atlas = parse_atlas([("some.atlas", ATLAS)])
    return Corpus(atlas, AtlasWording(atlas, parse_library([("some.rules", RULES)])))


@pytest.fixture(scope="module")
def tokenizer(corpus: Corpus) -> Tokenizer:
    return build_tokenizer(corpus, TINY.vocabulary)


@pytest.fixture(scope="module")
def trained(corpus: Corpus) -> TrainingRun:
    training = TrainingRun(corpus, TINY, RunOptions(say=lambda words: None))
    training.run()
    return training


def one_of_each_kind(corpus: Corpus, rng: random.Random) -> list[Document]:
    sources = {kind: source for source in (corpus, StatementSampler(corpus, len)) for kind in source.kinds}
    return [sources[kind].document(kind, rng) for kind in DocumentKind]


def silent(checkpoints: Path) -> RunOptions:
    return RunOptions(checkpoints, checkpoint_every=5, examine_every=1000, say=lambda words: None)


def test_tokens_give_the_text_back(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """Every document, and any other text, survives the tokenizer unchanged."""
    rng = random.Random(1)  # reproducible, not secret
    texts = [document.prompt + document.answer for _ in range(50) for document in one_of_each_kind(corpus, rng)]
    for text in [*texts, "naïve 東京\t\x00 \\ ' \"", "\n1. Saint-Émilion.\n"]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids

        assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_prompt_and_answer_are_tokenized_as_their_whole(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """Training joins the tokens of prompt and answer; the search tokenizes the prompt alone. Both agree."""
    rng = random.Random(2)  # reproducible, not secret
    for document in one_of_each_kind(corpus, rng):
        parts = [tokenizer.encode(part, add_special_tokens=False).ids for part in (document.prompt, document.answer)]

        whole = tokenizer.encode(document.prompt + document.answer, add_special_tokens=False).ids

        assert whole == [*parts[0], *parts[1]]


def test_the_critics_question_is_short(tokenizer: Tokenizer) -> None:
    """The fixed words of a prompt are one token each, and so are digits and the two answers."""
    around = len(tokenizer.encode(critic_prompt("Rice"), add_special_tokens=False).ids)

    assert around == 2 + len(tokenizer.encode(" Rice", add_special_tokens=False).ids)
    assert [len(tokenizer.encode(answer, add_special_tokens=False).ids) for answer in (" yes", " no")] == [1, 1]
    assert len(tokenizer.encode("1876", add_special_tokens=False).ids) == 4


def test_documents_in_a_row_do_not_see_each_other() -> None:
    """A packed document attends to itself and its past only, and counts its positions from 0."""
    first = EncodedDocument((5, 6, 7), (0.0, 0.0, 1.0))
    second = EncodedDocument((8, 9), (0.0, 8.0))

    batch = packed([[first, second]], 6)

    assert batch.positions[0].tolist() == [0, 1, 2, 0, 1, 0]
    assert batch.visible[0, 0].nonzero().tolist() == [
        [0, 0],
        [1, 0],
        [1, 1],
        [2, 0],
        [2, 1],
        [2, 2],
        [3, 3],
        [4, 3],
        [4, 4],
        [5, 5],
    ]


def test_only_answers_are_learnt() -> None:
    """Each learnt token is predicted from the place before it, with its weight."""
    first = EncodedDocument((5, 6, 7), (0.0, 0.0, 1.0))
    second = EncodedDocument((8, 9), (0.0, 8.0))

    batch = packed([[first], [second]], 4)

    assert (batch.sources.tolist(), batch.targets.tolist(), batch.weights.tolist()) == ([1, 4], [7, 9], [1.0, 8.0])


def test_a_packed_row_answers_as_a_row_alone(corpus: Corpus, tokenizer: Tokenizer, trained: TrainingRun) -> None:
    """The model computes the same for a packed document as for the prompt alone."""
    maker = BatchMaker(corpus, tokenizer, seed=0, rows=1)
    rng = random.Random(3)  # reproducible, not secret
    documents = [
        maker.encoded(StatementSampler(corpus, len).document(DocumentKind.CHAIN, rng)),
        maker.encoded(corpus.document(DocumentKind.QUESTION, rng)),
    ]
    batch = packed([documents], 256)
    start, end = len(documents[0].ids), len(documents[0].ids) + len(documents[1].ids)
    model = trained.model.eval()
    with torch.no_grad():
        together = model(input_ids=batch.ids, attention_mask=batch.visible, position_ids=batch.positions).logits
        alone = model(input_ids=torch.tensor([documents[1].ids])).logits

    torch.testing.assert_close(together[0, start:end], alone[0], atol=1e-4, rtol=1e-3)


def test_batches_hold_full_rows_of_every_kind(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """Rows are nearly full, and critic answers weigh more than other tokens."""
    batch = BatchMaker(corpus, tokenizer, seed=0, rows=4).batch(0)

    assert batch.ids.shape == (4, 256)
    assert (batch.visible.any(-1) & (batch.ids.unsqueeze(1) > 0)).float().mean() > 0.8
    assert {1.0, ANSWER_WEIGHT} == set(batch.weights.tolist())


def test_a_batch_depends_on_seed_and_step_alone(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """The same step gives the same batch in another process; another step another one."""
    first, second = (BatchMaker(corpus, tokenizer, seed=0, rows=2) for _ in range(2))
    first.batch(0)

    assert first.batch(7).ids.equal(second.batch(7).ids)
    assert not first.batch(7).ids.equal(first.batch(8).ids)


def test_the_learning_rate_rises_stays_and_falls() -> None:
    """Flat until the critic has had time to leave chance, then down to a fiftieth."""
    settings = TrainingSettings(steps=1000)
    rates = [settings.rate(step) for step in range(1000)]

    assert rates[0] < rates[10] < rates[20] == rates[499] == settings.learning_rate
    assert rates[500:] == sorted(rates[500:], reverse=True)
    assert rates[-1] == pytest.approx(settings.learning_rate * settings.final, rel=0.01)


def test_a_resumed_run_ends_like_an_uninterrupted_one(corpus: Corpus, trained: TrainingRun, tmp_path: Path) -> None:
    """Killed after a checkpoint and started again, a run reaches the same weights."""
    first = TrainingRun(corpus, replace(TINY), silent(tmp_path))
    batch = first._batches.batch  # the run dies here, in the middle of step 13
    first._batches.batch = lambda step, late=False: batch(step, late) if step < 13 else pytest.fail("killed")  # type: ignore[method-assign]
    with pytest.raises(pytest.fail.Exception):
        first.run()

    second = TrainingRun(corpus, TINY, silent(tmp_path))
    second.run()

    for name, weight in trained.model.state_dict().items():
        torch.testing.assert_close(second.model.state_dict()[name], weight, atol=1e-5, rtol=1e-4)


def test_a_checkpoint_of_another_run_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    """A run does not go on from weights of other settings."""
    TrainingRun(corpus, replace(TINY, steps=5), silent(tmp_path)).run()

    with pytest.raises(SystemExit, match="another run"):
        TrainingRun(corpus, replace(TINY, layers=2), silent(tmp_path)).run()


def test_training_lowers_the_loss(corpus: Corpus) -> None:
    """Twenty steps on twenty-six facts already teach something."""
    said: list[str] = []
    options = RunOptions(log_every=5, say=said.append)
    TrainingRun(corpus, TINY, options).run()
    losses = [float(words.split("loss ")[1].split()[0]) for words in said if "loss" in words]

    assert losses[-1] < losses[0]


def test_the_exported_folder_loads_as_any_checkpoint(corpus: Corpus, trained: TrainingRun, tmp_path: Path) -> None:
    """Auto classes load it; chat and completion requests see the same tokens; weights are fp16 and the same."""
    record = {"settings": {"steps": 20}, "minutes": 0.1}
    export_model(trained.model, trained.tokenizer, corpus, record, tmp_path)

    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    prompt = knowledge_prompt("B", "rice is an ingredient in [B]", "Dish")
    turn = [{"role": "user", "content": prompt}]

    assert loaded(prompt).input_ids == trained.tokenizer.encode(prompt).ids
    assert loaded.apply_chat_template(turn, add_generation_prompt=True, tokenize=False) == BEGIN + prompt
    assert loaded(prompt).input_ids[0] == token_id(trained.tokenizer, BEGIN) == model.config.bos_token_id
    for name, weight in trained.model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], weight, atol=1e-3, rtol=1e-2)
    assert "chat_template" in json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    abilities = json.loads((tmp_path / "hapax.json").read_text("utf-8"))
    assert "is_ingredient_in/2" in abilities["predicates"]
    assert abilities["types"] == list(corpus.atlas.types)
    assert abilities["training"] == record
    assert (tmp_path / "README.md").read_text("utf-8") == CARD_PROSE.read_text("utf-8")


def test_the_examiner_measures_a_model(corpus: Corpus, trained: TrainingRun) -> None:
    """An examination gives shares between 0 and 1, the same ones for the same seed, and fails an untrained model."""
    examiner = Examiner(trained.model, trained.tokenizer, corpus)

    report = examiner.examine(Exam(facts=10, lists=4))

    assert 0 <= report.critic_auc <= 1
    assert 0 <= report.lines_parsed <= 1
    assert str(report) == str(examiner.examine(Exam(facts=10, lists=4)))
    assert report.failures


def test_likelihoods_do_not_depend_on_the_batch(corpus: Corpus, trained: TrainingRun) -> None:
    """Padding changes no score."""
    examiner = Examiner(trained.model.eval(), trained.tokenizer, corpus)
    texts = ["Rice is an ingredient in paella.", "The laser was invented in 1960 and rice is an ingredient in risotto."]

    together = examiner.log_likelihoods(texts)

    assert together == pytest.approx([examiner.log_likelihoods([text])[0] for text in texts], abs=1e-4)


def test_area_under_the_curve() -> None:
    """1 for perfect order, 0 for reversed order, a half for ties."""
    assert auc([0.9, 0.8], [0.2, 0.1]) == 1
    assert auc([0.1], [0.2, 0.3]) == 0
    assert auc([0.5, 0.5], [0.5]) == 0.5


def test_the_gate_names_what_falls_short() -> None:
    """A release needs every measurement; a missing one counts as failed."""
    good = ExaminationReport(0.98, 0.02, 0.99, 1, 0.01, 1, 0.99, 0.8, 0.97, 0.6, 0.9)

    assert good.failures == ()
    assert [words.split()[0] for words in replace(good, critic_auc=0.9).failures] == ["critic_auc"]
    assert replace(good, accepted_precision=float("nan")).failures
