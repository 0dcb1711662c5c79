"""The words of the house: the glossary fits the code, class names are unique, and names say something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.house import ROOMS, ROOT, Figures, measure

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
MOST_VAGUE_NAMES = 20


@pytest.fixture(scope="module")
def figures() -> Figures:
    """The figures of all production code."""
    paths = [ROOT / name for name in (*ROOMS, "tools")]
    return measure(sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])))


def rows() -> list[tuple[str, str, str]]:
    """Word, class and refused words of each line of the glossary."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in GLOSSARY.splitlines() if line[:2] == "| "
    ]
    return [(word, name.strip("`"), refused) for word, _, name, refused in cells[1:]]


def test_the_glossary_names_each_class_where_it_is(figures: Figures) -> None:
    """Each class of the glossary is defined once, in the module that the glossary names."""
    expected = {}
    for _, name, _ in rows():
        if name:
            module, _, class_name = name.rpartition(".")
            expected[class_name] = [module.replace(".", "/") + ".py"]

    places = {name: [place.partition(":")[0] for place in figures.classes.get(name, [])] for name in expected}

    assert places == expected
    assert len(expected) > 20


def test_a_word_stands_once_in_the_glossary() -> None:
    """No word is explained twice."""
    words = [word for word, _, _ in rows()]

    assert len(set(words)) == len(words)


def test_refused_words_are_in_no_class_name(figures: Figures) -> None:
    """Synonyms that the glossary refuses name no class."""
    refused = {word for _, _, cell in rows() for word in cell.replace(",", " ").split()}
    found = {name for name in figures.classes if refused.intersection(re.findall(r"[A-Z][a-z]*", name))}

    assert found == set()
    assert len(refused) > 5


def test_a_class_name_means_one_thing(figures: Figures) -> None:
    """No class name is defined twice."""
    assert figures.repeated_classes == {}


def test_docstrings_say_what_a_thing_is(figures: Figures) -> None:
    """No docstring begins with What, Whether, How or Whose."""
    assert figures.riddles == []


def test_names_are_nouns_of_the_field(figures: Figures) -> None:
    """Next to no variable is called one, told, held, several, each, other, thing or what."""
    assert len(figures.vague) <= MOST_VAGUE_NAMES, figures.vague[:10]


def test_the_pages_link_the_glossary() -> None:
    """A reader of the README and the architecture page finds it."""
    for page in ("README.md", "docs/architecture.md"):
        assert "glossary.md" in Path(ROOT / page).read_text("utf-8")


def test_no_function_takes_more_than_six_parameters(figures: Figures) -> None:
    """Outside the command line, whose functions take an argument for each option."""
    assert [place for place in figures.many_parameters if not place.startswith("commands/")] == []
