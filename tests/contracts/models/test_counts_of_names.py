"""Counts of names in a folder of texts."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases
from served import evaluator

import hapax

pytest.importorskip("tantivy", reason="the extra `counts` is not installed")

PARIS = "Paris is in France.\nThe Seine flows through Paris.\n\nCôte d'Ivoire borders Ghana, and PARIS does not.\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAPAX_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text(PARIS, "utf-8")
    with gzip.open(folder / "deep" / "b.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps({"text": "Ghana and France.\n\nNew York, Paris"}) + "\n" + json.dumps({"text": "York"}))
    (folder / "picture.png").write_bytes(b"Paris\x00")
    return folder


def test_names_are_counted_by_passage(texts: Path) -> None:
    """A name counts once a passage, whatever its case and accents; two names count where one passage has both."""
    model = evaluator(f"counts:{texts}")
    names = [("paris",), ("Cote d’Ivoire",), ("York",), ("New York",), ("Paris", "France"), ("France", "Ghana"), ("?",)]

    assert model.counts([(), *names]) == [5, 3, 1, 2, 1, 1, 1, 0]


def test_an_index_is_made_once_and_again_after_a_change(texts: Path) -> None:
    """The index is kept between runs; another text gives another revision, because the answers may differ."""
    notices: list[str] = []
    first = evaluator(f"counts:{texts}", notice=notices.append)
    evaluator(f"counts:{texts}", notice=notices.append)
    assert len(notices) == 2  # it began and it is done

    (texts / "c.md").write_text("Paris", "utf-8")
    changed = evaluator(f"counts:{texts}", notice=notices.append)
    assert changed.counts([("paris",)]) == [4]
    assert changed.identity.name == first.identity.name == "counts/texts"
    assert changed.identity.revision != first.identity.revision


def test_scripts_without_blanks_are_counted(tmp_path: Path) -> None:
    """A name in Chinese, Japanese or Thai letters is found inside a sentence, and only in this order."""
    (tmp_path / "a.txt").write_text("東京は日本の首都です。\n\nกรุงเทพเป็นเมืองหลวง Tokyo\n", "utf-8")
    model = evaluator(f"counts:{tmp_path}")

    assert model.counts([("東京",), ("日本", "東京"), ("京東",), ("กรุงเทพ", "tokyo")]) == [1, 1, 0, 1]


WORD = st.sampled_from(["a", "b", "É", "d'x", "12"])


@settings(max_examples=cases(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORD, min_size=1, max_size=6), min_size=1, max_size=5), st.lists(WORD, min_size=1, max_size=3))
def test_counts_are_exact(tmp_path_factory: pytest.TempPathFactory, passages: list[list[str]], name: list[str]) -> None:
    """The count of a name equals a plain search for its words in every passage."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text("\n\n".join(map(" ".join, passages)), "utf-8")
    model = evaluator(f"counts:{folder}")

    def words(text: str) -> str:
        return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower().replace('é', 'e')))} "

    expected = sum(words(" ".join(name)) in words(" ".join(passage)) for passage in passages)
    assert model.counts([(" ".join(name),)]) == [expected]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"body": "x"}\n', r'a\.jsonl:2 is not a JSON object with "text"'),
        ("a.jsonl", b"[[[", r"a\.jsonl:1 is not a JSON object"),
        ("a.txt.gz", b"no gzip", r"a\.txt\.gz cannot be read"),
        ("a.pdf", b"x", r"holds no texts\. Their names should end in \.txt"),
    ],
)
def test_faulty_folders_are_told(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """A file that cannot be read is named, and nothing half made stays in the cache."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / name).write_bytes(content)

    with pytest.raises(hapax.HapaxError, match=message):
        evaluator(f"counts:{folder}")
    made = tmp_path / "cache" / "counts"
    assert not made.exists() or [path.name for path in made.iterdir() if path.is_dir()] == []
