"""Training and measuring the critic `smollm2-critic`: data that stay apart, claims of known truth, and figures."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backends.adapters import Adapter, read_adapter
from hapax.llm_oracle.embedded.atlas import load_atlas
from tools.critic.averaging import mean
from tools.critic.claims import ClaimSampler, Wrong
from tools.critic.data import FREE, OUTSIDE, SHARES, CriticData, load_data
from tools.critic.measuring import auc, measured_area
from tools.critic.relations import ATLAS
from tools.critic.split import CLASS_SIZE, ClaimPart, entity_part, folded, held_out_predicates, outside_entities
from tools.critic.wordnet import Wordnet

NOUNS = """  1 This software and database is being provided to you, the LICENSEE, by
00000010 05 n 01 animal 0 000 | a living organism that moves about
00000020 05 n 02 dog 0 domestic_dog 0 001 @ 00000010 n 0000 | a tame animal that barks; "he walked the dog"
00000030 05 n 01 cat 0 001 @ 00000010 n 0000 | a tame feline that purrs
00000040 05 n 01 poodle 0 002 @ 00000020 n 0000 #p 00000030 n 0000 | a curly breed of hound
"""
VERBS = "00000050 38 v 01 walk 0 000 01 + 02 00 | go on foot, step by step\n"
ADJECTIVES = (
    "00000060 00 a 01 hot 0 001 ! 00000070 a 0101 | of a high temperature\n"
    "00000070 00 a 01 cold 0 001 ! 00000060 a 0101 | of a low temperature\n"
)
SIMILAR = (
    "00000060 00 a 01 hot 0 002 & 00000080 a 0000 & 00000090 a 0000 | of a high temperature\n"
    "00000080 00 s 01 boiling 0 001 & 00000060 a 0000 | so hot that it bubbles\n"
    "00000090 00 s 01 glowing 0 001 & 00000060 a 0000 | so hot that it shines\n"
)


@pytest.fixture(scope="module")
def data() -> CriticData:
    return load_data()


@pytest.fixture
def wordnet(tmp_path: Path) -> Wordnet:
    for name, text in (("noun", NOUNS), ("verb", VERBS), ("adj", ADJECTIVES)):
        (tmp_path / f"data.{name}").write_text(text, encoding="ascii")
    return Wordnet(tmp_path)


def test_no_held_out_entity_predicate_or_outside_fact_is_trained_on(data: CriticData) -> None:
    """Training facts have no held-out key, no held-out name beside classes, no held-out predicate, no outside entity."""
    atlas = load_atlas()
    test, dev = held_out_predicates(atlas)
    outside = outside_entities(atlas)
    train = data.relations.parts[ClaimPart.TRAIN]

    assert not {relation.name for relation in train} & (test | dev)
    for relation in train:
        whole = [
            value
            for part in ClaimPart
            for own in data.relations.parts[part]
            if (own.name, own.source) == (relation.name, relation.source)
            for _, value in own.pairs
        ]
        for key, value in relation.pairs:
            assert entity_part(key) is ClaimPart.TRAIN
            assert entity_part(value) is ClaimPart.TRAIN or whole.count(value) >= CLASS_SIZE
            assert folded(key) not in outside
            assert folded(value) not in outside


def test_no_measured_sentence_is_drawn_for_training(data: CriticData) -> None:
    """Of many drawn training claims none is a claim of another part, and none a hand-written one."""
    sampler = ClaimSampler(data.relations.parts[ClaimPart.TRAIN], SHARES)
    rng = random.Random(5)
    drawn = {claim.sentence for _ in range(4000) for claim in sampler.twins(rng)}

    measured = {
        claim.sentence
        for part in ClaimPart
        if part is not ClaimPart.TRAIN
        for claim in data.measured(part, 40)
        if not claim.kind
    }
    handwritten = data.handwritten()
    assert len(measured) > 500
    assert not drawn & measured
    assert not drawn & {claim.sentence for name in (OUTSIDE, FREE) for claim in handwritten[name]}


def test_test_and_development_parts_do_not_overlap(data: CriticData) -> None:
    """No predicate and no key is in a test part and in a development part."""
    test, dev = data.relations.test_predicates, data.relations.dev_predicates
    keys = {
        part: {key for relation in data.relations.parts[part] for key in relation.values}
        for part in (ClaimPart.TEST_ENTITIES, ClaimPart.DEV_ENTITIES)
    }

    assert not test & dev
    assert not keys[ClaimPart.TEST_ENTITIES] & keys[ClaimPart.DEV_ENTITIES]
    assert all(keys.values())


def test_twins_have_one_truth_each_by_the_atlas(data: CriticData) -> None:
    """Of a pair of claims in the library's words, the true one is a fact of the atlas and the false one is not."""
    atlas = load_atlas()
    facts = {data.words[fact.predicate].words(*fact.arguments).casefold() for fact in atlas.facts}
    sampler = ClaimSampler(
        [
            relation
            for relation in data.relations.parts[ClaimPart.TRAIN]
            if relation.source == ATLAS and relation.name != "type"
        ],
        SHARES,
    )
    rng = random.Random(3)
    kinds = set()

    for _ in range(600):
        fact, falsehood = sampler.twins(rng)
        assert fact.is_true is not falsehood.is_true
        true, false = (fact, falsehood) if fact.is_true else (falsehood, fact)
        kinds.add(falsehood.kind)
        assert false.sentence.rstrip(".").casefold() not in facts
        assert true.sentence != false.sentence

    assert kinds == set(Wrong)


def test_kinds_of_a_noun_are_never_false_of_it(wordnet: Wordnet) -> None:
    """All kinds above a word count as true, near ones are claimed, and definitions lose their examples."""
    tables = wordnet.tables(lambda word: True)

    assert tables["is_a_kind"].values["poodle"] == ("a dog", "an animal")
    assert {"a domestic dog", "an animal"} <= tables["is_a_kind"].listed["poodle"]
    assert tables["is_defined_as"].values["dog"] == ("a tame animal that barks",)
    assert tables["is_the_opposite_of"].values == {"hot": ("cold",), "cold": ("hot",)}
    assert tables["is_part_of"].values == {"poodle": ("cat",)}


def test_a_noun_has_to_do_with_the_nouns_of_its_definition_alone(wordnet: Wordnet) -> None:
    """A definition's nouns are associated with its word, examples are not, and what names each other is not false."""
    table = wordnet.tables(lambda word: True)["has_to_do_with"]

    assert table.values["dog"] == ("animal",)
    assert "dog" not in table.values.get("cat", ())
    assert "dog" in table.listed["animal"]
    assert "animal" in table.listed["poodle"]


def test_nouns_of_one_hypernym_are_of_one_sort(wordnet: Wordnet) -> None:
    """Nouns next to each other under a kind are of one sort; a word is never false of another under the same kinds."""
    table = wordnet.tables(lambda word: True)["is_of_the_sort_of"]

    assert set(table.values["dog"]) == {"domestic dog", "cat"}
    assert {"dog", "poodle"} <= table.listed["domestic dog"]


def test_adjectives_that_wordnet_calls_similar_are_not_false_of_each_other(tmp_path: Path) -> None:
    """Similar adjectives are claimed, and those that are similar to one third are no falsehoods of each other."""
    for name, text in (("noun", NOUNS), ("verb", VERBS), ("adj", SIMILAR)):
        (tmp_path / f"data.{name}").write_text(text, encoding="ascii")

    table = Wordnet(tmp_path).tables(lambda word: True)["means_nearly_the_same_as"]

    assert table.values["boiling"] == ("hot",)
    assert {"boiling", "glowing", "hot"} <= table.listed["glowing"]


def test_the_mean_of_adapters_is_the_mean_of_their_products(tmp_path: Path) -> None:
    """With the sum of the ranks the mean is exact; adapters of different layers are refused with their names."""
    adapters = [_adapter(tmp_path / f"{name}.safetensors", ("x", "y"), seed) for seed, name in enumerate("ab")]

    tensors = mean(adapters, rank=4)

    for layer in ("x", "y"):
        products = [
            adapter.tensors[f"{layer}.up"].float() @ adapter.tensors[f"{layer}.down"].float() for adapter in adapters
        ]
        found = tensors[f"{layer}.up"].float() @ tensors[f"{layer}.down"].float()
        assert torch.allclose(found, torch.stack(products).mean(0), atol=0.02)
    with pytest.raises(
        HapaxError, match=r"c\.safetensors adapts another network or other layers than .*a\.safetensors"
    ):
        mean([adapters[0], _adapter(tmp_path / "c.safetensors", ("x",), 2)], rank=4)


def _adapter(path: Path, layers: tuple[str, ...], seed: int) -> Adapter:
    random_state = torch.Generator().manual_seed(seed)
    tensors = {
        name: torch.randn(shape, generator=random_state).half()
        for layer in layers
        for name, shape in ((f"{layer}.down", (2, 6)), (f"{layer}.up", (5, 2)))
    }
    save_file(tensors, path, {"scale": "2.0", "base": "a small network", "claims": "10"})
    return read_adapter(path)


def test_area_under_the_curve() -> None:
    """AUC is the share of pairs in order, ties are halves, and its interval narrows with more claims."""
    truths = [True, False, True, False]

    assert auc(truths, [0.9, 0.1, 0.8, 0.2]) == 1.0
    assert auc(truths, [0.5, 0.5, 0.5, 0.5]) == 0.5
    assert auc(truths, [0.9, 0.8, 0.1, 0.2]) == 0.5
    few, many = measured_area(truths, [0.9, 0.8, 0.1, 0.2]), measured_area(truths * 50, [0.9, 0.8, 0.1, 0.2] * 50)
    assert few.interval[0] < many.interval[0] < 0.5 < many.interval[1] < few.interval[1]
