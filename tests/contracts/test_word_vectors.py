"""Word vectors as a ranker."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import pytest
from served import evaluator

import hapax

VECTORS = """5 2
butter 1 0
naan 0.8 0.6
truck -1 0
odd 0 2
void 0 0
"""


@pytest.fixture
def ranker(tmp_path: Path) -> Any:
    path = tmp_path / "small.vec"
    path.write_text(VECTORS, "utf-8")
    return evaluator(f"vectors:{path}")


def test_mean_cosine_of_all_pairs(ranker: Any) -> None:
    """Three words have three pairs; length, case, order, repetition and words without a vector do not matter."""
    pair, three, same = ranker.log_likelihoods(["Butter, naan", "butter naan odd", "The naan: odd? Butter naan!"])

    assert pair.per_token == pytest.approx(0.8)
    assert three.per_token == pytest.approx((0.8 + 0.6 + 0) / 3)
    assert same.per_token == pytest.approx(three.per_token)
    assert three.token_count == 3


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

    near, far = evaluator(f"vectors:{tmp_path / form}").log_likelihoods(["butter naan", "zürich Zürich butter"])

    assert near.per_token == pytest.approx(0.8)
    assert (far.per_token, far.token_count) == (0.0, 2)


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

    with pytest.raises(hapax.HapaxError, match=r"faulty\.vec: not word vectors in word2vec's format"):
        evaluator(f"vectors:{path}")
