"""GGUF files as models: converted once into the cache, and the same model wherever they lie."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from embedded_gguf import write_gguf

import hapax

pytestmark = pytest.mark.embedded

EMBEDDED = Path(__file__).parents[3] / "llm_oracle" / "embedded" / "model"
TEXTS = ["Butter, naan and paneer.", "Paris: France, 1987."]
"""Texts without the phrases that are tokens of the embedded model, and that no other model has."""


def test_a_gguf_file_scores_as_the_checkpoint_that_it_was_made_of(tmp_path: Path) -> None:
    """`gguf:PATH` gives the log-likelihoods of the same weights, is converted once, and keeps its identity elsewhere."""
    write_gguf(EMBEDDED, tmp_path / "tiny.gguf", "{% for m in messages %}{{ m['content'] }}{% endfor %}")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "tiny.gguf", tmp_path / "elsewhere")
    notices: list[str] = []
    options = {"device": "cpu", "dtype": "float32", "notice": notices.append}
    original = hapax.open_models("embedded", device="cpu", dtype="float32").likelihood.log_likelihoods(TEXTS)

    model = hapax.open_models(f"gguf:{tmp_path / 'tiny.gguf'}", **options).likelihood
    scores = model.log_likelihoods(TEXTS)
    said = len(notices)
    moved = hapax.open_models(f"gguf:{tmp_path / 'elsewhere' / 'tiny.gguf'}", **options).likelihood

    assert [score.total for score in scores] == pytest.approx([score.total for score in original], abs=1e-3)
    assert moved.identity == model.identity
    assert 0 < said == len(notices)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    """Another format and a damaged file are errors that name the file."""
    (tmp_path / "weights.gguf").write_bytes(b"PK\x03\x04")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF and nothing of use")

    for name in ("weights.gguf", "cut.gguf"):
        with pytest.raises(hapax.HapaxError, match=name):
            hapax.open_models(f"gguf:{tmp_path / name}")
