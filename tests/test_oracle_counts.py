"""Counts of names in a folder of texts."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends import cache, counts
from hapax.llm_oracle.measures import Measure, RankedText, measured
from hapax.llm_oracle.registry import open_model

pytest.importorskip("tantivy", reason="the extra `counts` is not installed")

PARIS = "Paris is in France.\nThe Seine flows through Paris.\n\nCôte d'Ivoire borders Ghana, and PARIS does not.\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))


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
    model = open_model(f"counts:{texts}", "likelihood")
    names = [("paris",), ("Cote d’Ivoire",), ("York",), ("New York",), ("Paris", "France"), ("France", "Ghana"), ("?",)]

    assert model.counts([(), *names]) == [5, 3, 1, 2, 1, 1, 1, 0]


def test_an_index_is_made_once_and_again_after_a_change(texts: Path) -> None:
    """The index is kept between runs; another text gives another revision, because the answers may differ."""
    notices: list[str] = []
    options = OpeningOptions(notice=notices.append)
    first = open_model(f"counts:{texts}", "evaluator", options)
    open_model(f"counts:{texts}", "evaluator", options)
    assert len(notices) == 2  # it began and it is done

    (texts / "c.md").write_text("Paris", "utf-8")
    changed = open_model(f"counts:{texts}", "evaluator", options)
    assert changed.counts([("paris",)]) == [4]
    assert changed.identity.name == first.identity.name == "counts/texts"
    assert changed.identity.revision != first.identity.revision


def test_a_long_paragraph_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names far apart in one paragraph are not near each other."""
    monkeypatch.setattr(counts, "PASSAGE_WORDS", 5)
    (tmp_path / "a.txt").write_text("milk one two\nthree four naan", "utf-8")
    model = open_model(f"counts:{tmp_path}", "likelihood")

    assert model.counts([("milk", "four"), ("milk", "naan")]) == [1, 0]


@pytest.mark.parametrize("mark", [".", "!”", ","])
def test_a_name_is_cut_only_where_nothing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    """A paragraph is cut after a sentence or a clause, and so not within a name."""
    monkeypatch.setattr(counts, "PASSAGE_WORDS", 6)
    (tmp_path / "a.txt").write_text(f"Many people live there{mark} We like\nNew York, St. Petersburg. Rome", "utf-8")
    model = open_model(f"counts:{tmp_path}", "likelihood")

    assert model.counts([("New York",), ("like York",), ("St Petersburg",)]) == [1, 0, 1]
    assert model.counts([("people", "York")]) == [0]


def test_words_without_marks_are_cut_after_the_last_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve words without an end of a sentence are two passages of six, and thirteen a third."""
    monkeypatch.setattr(counts, "PASSAGE_WORDS", 6)
    (tmp_path / "a.txt").write_text("a b c d e f a b c d e f\n\na. b. c. d. e. f. g.", "utf-8")

    assert open_model(f"counts:{tmp_path}", "likelihood").counts([(), ("f",), ("a", "f")]) == [4, 3, 3]


def test_signs_at_the_end_of_a_name_count(tmp_path: Path) -> None:
    """C++ and C# are other names than C; a sign between words or before one is none of a name."""
    (tmp_path / "a.txt").write_text("He writes C++, not C#.\n\nvitamin C + zinc\n\n1+1 #C\n\ng++", "utf-8")
    model = open_model(f"counts:{tmp_path}", "likelihood")

    assert model.counts([("c",), ("C++",), ("c#",), ("C+",), ("1",), ("zinc",), ("g",)]) == [2, 1, 1, 0, 1, 1, 0]


def test_decomposed_letters_are_those_of_the_name(tmp_path: Path) -> None:
    """A text whose letters and accents are characters of their own holds the name that has them as one."""
    (tmp_path / "a.txt").write_text(unicodedata.normalize("NFD", "Müller lives in Köln."), "utf-8")

    assert open_model(f"counts:{tmp_path}", "likelihood").counts([("Müller",), ("Köln", "Muller")]) == [1, 1]


def test_scripts_without_blanks_are_counted(tmp_path: Path) -> None:
    """A name in Chinese, Japanese or Thai letters is found inside a sentence, and only in this order."""
    (tmp_path / "a.txt").write_text("東京は日本の首都です。\n\nกรุงเทพเป็นเมืองหลวง Tokyo\n", "utf-8")
    model = open_model(f"counts:{tmp_path}", "likelihood")

    assert model.counts([("東京",), ("日本", "東京"), ("京東",), ("กรุงเทพ", "tokyo")]) == [1, 1, 0, 1]


def test_texts_that_are_not_utf_8_are_told(tmp_path: Path) -> None:
    """Texts in another encoding are indexed as far as they can be read, with their number and a place."""
    notices: list[str] = []
    (tmp_path / "a.txt").write_bytes("Paris\nMüller in Köln\nÉ\n".encode("latin-1"))

    model = open_model(f"counts:{tmp_path}", "likelihood", OpeningOptions(notice=notices.append))

    assert model.counts([("paris",)]) == [1]
    assert any(f"1 text is not in UTF-8, see {tmp_path / 'a.txt'}:2:" in notice for notice in notices)


WORD = st.sampled_from(["a", "b", "É", "d'x", "12"])


@settings(max_examples=cases(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORD, min_size=1, max_size=6), min_size=1, max_size=5), st.lists(WORD, min_size=1, max_size=3))
def test_counts_are_exact(tmp_path_factory: pytest.TempPathFactory, passages: list[list[str]], name: list[str]) -> None:
    """The count of a name equals a plain search for its words in every passage."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text("\n\n".join(map(" ".join, passages)), "utf-8")
    model = open_model(f"counts:{folder}", "likelihood")

    def words(text: str) -> str:
        return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower().replace('é', 'e')))} "

    expected = sum(words(" ".join(name)) in words(" ".join(passage)) for passage in passages)
    assert model.counts([(" ".join(name),)]) == [expected]


def test_counts_rank_names(texts: Path) -> None:
    """A sentence about common names ranks above a sentence about rare ones."""
    model = open_model(f"counts:{texts}", "likelihood")
    common, rare = measured(model, [RankedText("", ("Paris",)), RankedText("", ("York",))], [Measure.PRIOR])

    assert common is not None
    assert rare is not None
    assert common.scores[Measure.PRIOR] > rare.scores[Measure.PRIOR]


def test_no_likelihood_of_a_whole_text(texts: Path) -> None:
    """Where a whole text is to be scored, the error names the measures that can be had."""
    with pytest.raises(HapaxError, match="judge of `hapax evaluate long-tail`"):
        open_model(f"counts:{texts}", "likelihood").log_likelihoods(["Paris"])


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

    with pytest.raises(HapaxError, match=message):
        open_model(f"counts:{folder}", "likelihood")
    made = tmp_path / "cache" / "counts"
    assert not made.exists() or [path.name for path in made.iterdir() if path.is_dir()] == []
