"""Word vectors as a ranker."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.measures import Measure, RankedText, measured
from hapax.llm_oracle.protocols import LikelihoodModel, PairModel
from hapax.llm_oracle.registry import open_model

VECTORS = """5 2
butter 1 0
naan 0.8 0.6
truck -1 0
odd 0 2
void 0 0
"""


@pytest.fixture
def ranker(tmp_path: Path) -> LikelihoodModel:
    path = tmp_path / "small.vec"
    path.write_text(VECTORS, "utf-8")
    model = open_model(f"vectors:{path}", "likelihood")
    assert isinstance(model, LikelihoodModel)
    return model


def test_mean_cosine_of_all_pairs(ranker: LikelihoodModel) -> None:
    """Three words have three pairs; length, case, order, repetition and words without a vector do not matter."""
    pair, three, same = ranker.log_likelihoods(["Butter, naan", "butter naan odd", "The naan: odd? Butter naan!"])

    assert pair.per_token == pytest.approx(0.8)
    assert three.per_token == pytest.approx((0.8 + 0.6 + 0) / 3)
    assert same.per_token == pytest.approx(three.per_token)
    assert three.token_count == 3


def test_what_belongs_together_ranks_above_what_does_not(ranker: LikelihoodModel) -> None:
    """Butter and naan beat butter and trucks, and a text with nothing to compare ranks below everything."""
    near, far, alone, empty = ranker.log_likelihoods(["butter naan", "butter truck", "butter", ""])

    assert near.per_token > far.per_token > alone.per_token == empty.per_token == float("-inf")


def test_a_word_of_zeros_compares_with_nothing(ranker: LikelihoodModel) -> None:
    """A vector without direction counts as none."""
    with_it, without = ranker.log_likelihoods(["butter void naan", "butter naan"])

    assert with_it == without


def test_names_that_belong_together_are_alike(ranker: LikelihoodModel) -> None:
    """The similarity of two names is the cosine of the sums of their words; a name without known words has none."""
    assert isinstance(ranker, PairModel)

    near, far, compound, unknown = ranker.similarities(
        [("butter", "Naan"), ("butter", "truck"), ("odd-butter", "naan"), ("butter", "zyzzyva")]
    )

    assert near == pytest.approx(0.8)
    assert far == pytest.approx(-1.0)
    assert compound is not None
    assert 0.6 < compound < 1  # between odd and butter
    assert unknown is None


def test_a_text_has_the_similarity_of_its_names_as_pair(ranker: LikelihoodModel) -> None:
    """`pair` is the mean over the names of a text; a text with fewer than two known names has none."""
    texts = [
        RankedText("Butter is in naan.", ("butter", "naan")),
        RankedText("Butter is in zyzzyva.", ("butter", "zyzzyva")),
    ]

    both, single = measured(ranker, texts, [Measure.PAIR, Measure.TOTAL])

    assert both is not None
    assert single is not None
    assert both.scores[Measure.PAIR] == pytest.approx(0.8)
    assert Measure.PAIR not in single.scores
    assert Measure.TOTAL in both.scores


def test_vectors_of_an_npm_package_are_read(tmp_path: Path) -> None:
    """A JSON file as wink's has the same words as a file in word2vec's format."""
    vectors = {"butter": [1, 0, 0.5, 7], "naan": [0.8, 0.6, 0.5, 8]}
    path = tmp_path / "small.json"
    path.write_text(json.dumps({"dimensions": 2, "words": list(vectors), "vectors": vectors}), "utf-8")

    (text,) = open_model(f"vectors:{path}", "likelihood").log_likelihoods(["butter naan"])

    assert text.per_token == pytest.approx(0.8)


@pytest.mark.parametrize(
    "form", ["headless.txt", "spaced.vec", "binary.bin", "lines.bin", "small.vec.gz", "small.bin.gz"]
)
def test_every_form_of_word_vectors_is_read(form: str, tmp_path: Path) -> None:
    """GloVe's text without a first line, fastText's with blanks at the end, word2vec's bytes, and compressed ones."""
    words = {"butter": (1.0, 0.0), "naan": (0.8, 0.6), "Zürich": (0.0, 1.0)}
    end = b"\n" if form == "lines.bin" else b""
    binary = b"3 2\n" + b"".join(f"{word} ".encode() + struct.pack("<2f", *row) + end for word, row in words.items())
    headless = "".join(f"{word} {first} {second}\n" for word, (first, second) in words.items())
    spaced = "3 2\n" + headless.replace("\n", " \n")
    content = binary if ".bin" in form else (headless if form == "headless.txt" else spaced).encode()
    (tmp_path / form).write_bytes(gzip.compress(content) if form.endswith(".gz") else content)

    near, far = open_model(f"vectors:{tmp_path / form}", "likelihood").log_likelihoods(
        ["butter naan", "zürich Zürich butter"]
    )

    assert near.per_token == pytest.approx(0.8)
    assert (far.per_token, far.token_count) == (0.0, 2)


def test_identity_follows_the_content(tmp_path: Path) -> None:
    """Another file of the same name answers for itself in the journal."""
    identities = []
    for text in (VECTORS, VECTORS.replace("0.8", "0.7")):
        (tmp_path / "small.vec").write_text(text, "utf-8")
        identities.append(open_model(f"vectors:{tmp_path / 'small.vec'}", "evaluator").identity)

    assert identities[0].name == identities[1].name == "vectors/small.vec"
    assert identities[0] != identities[1]


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "butter\n",
        "butter 1 nan\n",
        "butter 1 0\nnaan 1\n",
        "2 2\nbutter 1\n",
        "1 2\nbutter x y\n",
        "9 2\nbutter 1 0\n",
    ],
)
def test_what_holds_no_vectors_is_told(tmp_path: Path, content: str | None) -> None:
    """A missing, empty, headless or broken file is an error with its name and the form that is read."""
    path = tmp_path / "faulty.vec"
    if content is not None:
        path.write_text(content, "utf-8")

    with pytest.raises(HapaxError, match=r"faulty\.vec: not word vectors in word2vec's format"):
        open_model(f"vectors:{path}", "likelihood")
