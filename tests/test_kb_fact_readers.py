"""Readers of fact files from other packages, by entry points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hapax.grammar.errors import HapaxError
from hapax.kb.exchange import import_facts
from hapax.kb.intake import FactsRejected, short, some
from hapax.kb.store import KnowledgeBase

PAGE = Path(__file__).parent.parent / "docs" / "knowledge-base.md"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the import path, with the reader that the page shows."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (code,) = re.findall(r"```python\n(def read_triples.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (folder / "my_package.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    return folder


def register(packages: Path, name: str, entry: str) -> None:
    """Install the metadata of a distribution with an entry point."""
    metadata = packages / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text(f"[hapax.fact_readers]\n{entry}\n", "utf-8")


def test_the_reader_of_the_page_is_used(packages: Path, tmp_path: Path, fresh_kb: KnowledgeBase) -> None:
    """A file with the ending of a registered reader is imported by it."""
    register(packages, "triples", "triples = my_package:read_triples")
    (tmp_path / "facts.triples").write_text("milk is_in tea\nmilk is_in cake\n", "utf-8")

    report = import_facts(fresh_kb, tmp_path / "facts.triples")

    assert report.added == 2
    assert {fact.arguments for fact in fresh_kb.facts("is_in")} == {("milk", "tea"), ("milk", "cake")}


def test_faulty_facts_of_a_reader_are_reported_with_their_lines(
    packages: Path, tmp_path: Path, fresh_kb: KnowledgeBase
) -> None:
    """Facts from a reader are checked like rows of CSV."""
    register(packages, "triples", "triples = my_package:read_triples")
    (tmp_path / "facts.triples").write_text("milk is_in tea\nmilk is-in cake\n", "utf-8")

    with pytest.raises(FactsRejected, match=r"facts.triples:2: .*is-in"):
        import_facts(fresh_kb, tmp_path / "facts.triples")

    assert fresh_kb.facts() == []


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("triples = my_package:nothing", "broken: the fact reader `triples` .* cannot be loaded"),
        ("triples = my_package:__name__", "broken: the fact reader `triples` .* failed on"),
    ],
)
def test_a_broken_reader_names_its_package(
    packages: Path, tmp_path: Path, fresh_kb: KnowledgeBase, entry: str, fault: str
) -> None:
    """A reader that cannot be loaded, or fails, is an error with its package and the remedy."""
    register(packages, "broken", entry)
    (tmp_path / "facts.triples").write_text("milk is_in tea\n", "utf-8")

    with pytest.raises(HapaxError, match=f"{fault}.*pip uninstall broken"):
        import_facts(fresh_kb, tmp_path / "facts.triples")


def test_two_readers_of_one_ending_are_refused(packages: Path, tmp_path: Path, fresh_kb: KnowledgeBase) -> None:
    """Which of two packages reads a file is not left to chance."""
    register(packages, "first", "triples = my_package:read_triples")
    register(packages, "second", "triples = my_package:read_triples")
    (tmp_path / "facts.triples").write_text("milk is_in tea\n", "utf-8")

    with pytest.raises(HapaxError, match="first and second: these packages each read facts"):
        import_facts(fresh_kb, tmp_path / "facts.triples")


def test_an_unknown_ending_is_refused(tmp_path: Path, fresh_kb: KnowledgeBase) -> None:
    """A file that nobody reads is an error that names the endings."""
    with pytest.raises(HapaxError, match="imported from csv or jsonl, not from 'xyz'"):
        import_facts(fresh_kb, tmp_path / "facts.xyz")


def test_messages_shorten_long_values_and_lists() -> None:
    """A message shows 40 characters of a value and the first five of many names, and says that there are more."""
    assert (short("x" * 38), short("x" * 39)) == (repr("x" * 38), "'" + "x" * 36 + "...")
    assert (some("abcde"), some("abcdef"), some("abc", most=2)) == ("a, b, c, d, e", "a, b, c, d, e ...", "a, b ...")
