"""The shipped theories on the published schemas: what they cover, that it is right, and that they know no entity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.files import read_items
from hapax.evaluation.winograd.theories.abstraction import entity_name
from hapax.evaluation.winograd.theories.measure import RuleAnswer, answer_all, figures, uncovered, wrong
from hapax.evaluation.winograd.theories.patterns import PatternBook
from hapax.evaluation.winograd.theories.proving import FOLDER, Referee, shipped_patterns

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "cr_wsc"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the published schemas lie beside the repository, not in it")


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.casefold()))


FUNCTION_WORDS = words(
    "a an the of in on at to by for with and or not no is are be being was were it he she they his her its their who "
    "which that this one some all so up down out off under where may other my"
)
ROLE_WORDS = frozenset({"lifter", "eater", "player", "players"})
"""Nouns for whoever lifts, eats or plays; published entities have them in them ("weight lifter")."""

PROPERTY_WORDS = frozenset({"kind", "big", "little", "thin", "poor", "success", "envy"})
"""Properties that any theory of sizes, kindness or contest has to name; published entities carry some of them."""


@cache
def published() -> list[WinogradItem]:
    files = ("wsc_273_annotated_final.csv", "generated_modify_tq.csv")
    return [item for name in files for item in read_items(DATA / name)]


@pytest.fixture(scope="module")
def answers() -> Iterator[list[RuleAnswer]]:
    with Referee() as referee:
        yield answer_all(published(), lambda item: referee.resolve(item.text, item.options, item.pronoun))


def test_coverage_accuracy_and_consistency(answers: list[RuleAnswer]) -> None:
    """50 of CR-WSC-H's 51 pairs and 186 of CR-WSC-M's 205 are answered, all of them right, whoever stands where."""
    found = {source.source: source for source in figures(answers)}
    human, machine, original = (found[source] for source in ("CR-WSC-H", "CR-WSC-M", "WSC273"))

    assert [round(source.pair_coverage.value * source.pair_coverage.count) for source in (human, machine)] == [50, 186]
    assert [source.pair_coverage.count for source in (human, machine, original)] == [51, 205, 136]
    assert {source.pair_accuracy.value for source in found.values()} == {1}
    assert {source.consistency.value for source in found.values()} == {1}
    assert {source.invariance.value for source in found.values()} == {1}
    assert (human.accuracy.value, original.accuracy.value) == (1, 1)


def test_answers_that_differ_are_mislabelled_rows(answers: list[RuleAnswer]) -> None:
    """The only answers that differ say of the one who is stopped from cruelty that he is cruel; the rows say the other."""
    texts = {answer.item.text for answer in wrong(answers)}

    assert all("had to stop" in text and text.endswith("He is very cruel.") for text in texts)
    assert len(texts) == 5


def test_every_open_family_has_its_reason(answers: list[RuleAnswer]) -> None:
    """The families that are not covered are listed, each with why."""
    gaps = uncovered(answers)

    assert [family.family for family in gaps if family.source == "CR-WSC-H"] == ["WSC273:265"]
    assert all(family.reasons for family in gaps)


def frame(item: WinogradItem) -> set[str]:
    """The words of a sentence beside its entities."""
    text = item.text.casefold()
    for option in item.options:
        text = text.replace(entity_name(option).casefold(), " ")
    return words(text)


def test_theories_name_no_published_entity() -> None:
    """No word of a published option stands in a theory or pattern file, but for the words that are listed above.

    A word that published sentences also have beside their entities ("hungry", "tree") describes what happens there.
    """
    entities = {word for item in published() for option in item.options for word in words(option) if len(word) > 1}
    entities -= {word for item in published() for word in frame(item)}
    written = [path.read_text(encoding="utf-8") for path in (*FOLDER.glob("*.rules"), *FOLDER.glob("*.toml"))]
    uncommented = (re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE).replace("_", " ") for text in written)
    found = {word for text in uncommented for word in words(text)} & entities

    assert found - FUNCTION_WORDS - ROLE_WORDS - PROPERTY_WORDS == set()


def test_examples_are_our_own() -> None:
    """No example of a pattern file has an entity of a published item, and none is a published sentence."""
    book: PatternBook = shipped_patterns()
    entities = {word for item in published() for option in item.options for word in words(option)}
    own = {word for example in book.examples for option in example.options for word in words(option)}
    texts = {item.text.casefold() for item in published()}

    assert own & entities <= FUNCTION_WORDS
    assert not any(sentence.casefold() in texts for example in book.examples for sentence in example.sentences)
