"""The atlas: its file format, its closed world and its faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.llm_oracle.embedded.atlas import LONGEST_VALUE, AtlasRejected, load_atlas, parse_atlas, popularity
from tools.embedded.wording import load_wording

SMALL = """\
# Cheese and time.
predicate is_made_from_milk_of(Cheese, Animal) key 1
feta: sheep; goat
parmesan: cow

predicate is_ingredient_in(Ingredient, Dish) key 2
paella: rice; saffron

predicate was_invented_in(Invention, Year) key 1 functional
telephone: 1876
"""


def faults_of(text: str) -> list[str]:
    with pytest.raises(AtlasRejected) as rejected:
        parse_atlas([("some.atlas", text)])
    return str(rejected.value).splitlines()


def test_facts_stand_in_order_of_arguments() -> None:
    """The key may be either argument; a fact always has the arguments in the predicate's order."""
    atlas = parse_atlas([("some.atlas", SMALL)])

    assert [fact.arguments for fact in atlas.facts] == [
        ("feta", "sheep"),
        ("feta", "goat"),
        ("parmesan", "cow"),
        ("rice", "paella"),
        ("saffron", "paella"),
        ("telephone", "1876"),
    ]


def test_what_a_key_does_not_list_is_false() -> None:
    """The world is closed: an unlisted pair does not hold, and neither does anything of an unknown predicate."""
    atlas = parse_atlas([("some.atlas", SMALL)])

    assert atlas.holds("is_ingredient_in", ("rice", "paella"))
    assert not atlas.holds("is_ingredient_in", ("paella", "rice"))
    assert not atlas.holds("is_ingredient_in", ("butter", "paella"))
    assert not atlas.holds("no_such_predicate", ("rice", "paella"))


def test_numbers_hold_as_numbers_and_as_digits() -> None:
    """A year may be asked for as 1876 or as its digits."""
    atlas = parse_atlas([("some.atlas", SMALL)])

    assert atlas.holds("was_invented_in", ("telephone", 1876))
    assert atlas.holds("was_invented_in", ("telephone", "1876"))


def test_an_unknown_key_is_told_from_a_false_fact() -> None:
    """Only for keys with a line is the atlas an answer about the world."""
    atlas = parse_atlas([("some.atlas", SMALL)])

    assert atlas.knows("is_ingredient_in")
    assert not atlas.knows("treats")
    assert atlas.knows_key("is_ingredient_in", ("butter", "paella"))
    assert not atlas.knows_key("is_ingredient_in", ("rice", "risotto"))


def test_true_values_of_either_side() -> None:
    """Values are found from the key, from the other side, and with both open."""
    atlas = parse_atlas([("some.atlas", SMALL)])

    assert atlas.true_values("is_made_from_milk_of", 1, "feta") == ("sheep", "goat")
    assert atlas.true_values("is_made_from_milk_of", 0, "cow") == ("parmesan",)
    assert atlas.true_values("is_made_from_milk_of", 0) == ("feta", "parmesan")
    assert atlas.true_values("no_such_predicate", 0) == ()


def test_entities_stand_under_their_types() -> None:
    """A type's entities are all arguments of that type, each once."""
    atlas = parse_atlas([("some.atlas", SMALL)])

    assert atlas.entities("Animal") == ("sheep", "goat", "cow")
    assert atlas.entities("Robot") == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("predicate Bad(A) key 3", "malformed header"),
        ("brie cow", "no colon"),
        ("brie: cow; cow", "repeated"),
        ("brie:", "an empty value"),
        (": cow", "an empty value"),
        ("feta: cow", "already a key"),
        ("brie: 12", "numeric types"),
        ("brie: cow (brown)", "would end a value"),
        (f"brie: {'c' * (LONGEST_VALUE + 1)}", "more than"),
    ],
)
def test_a_faulty_line_is_named_with_file_and_line(line: str, words: str) -> None:
    """Each fault comes with file, line and remedy."""
    found = faults_of(f"predicate is_made_from_milk_of(Cheese, Animal) key 1\nfeta: sheep\n{line}\n")

    assert any(fault.startswith("some.atlas:3: ") and words in fault for fault in found)


def test_a_functional_predicate_takes_one_value() -> None:
    """Two values for a functional predicate are a fault."""
    assert "is functional" in faults_of("predicate died_in(Person, Year) key 1 functional\nAda: 1852; 1853\n")[0]


def test_all_faults_come_at_once() -> None:
    """A file with several faults is told whole."""
    found = faults_of("lost: line\npredicate a_b(C, D) key 1\nno colon here\nx: y\npredicate a_b(C, D) key 1\n")

    assert [fault.split(":")[1] for fault in found] == ["1", "3", "5"]


def test_an_empty_atlas_is_a_fault() -> None:
    """Nothing to learn from is refused."""
    assert faults_of("# nothing\n")


@given(st.text(max_size=200))
def test_hostile_text_gives_faults_and_nothing_worse(text: str) -> None:
    """Whatever stands in a file, reading it ends in an atlas with the facts before it, or in faults with places."""
    try:
        atlas = parse_atlas([("hostile.atlas", f"predicate p(A, B) key 1\nk: v\n{text}")])
    except AtlasRejected as rejected:
        assert "hostile.atlas:" in str(rejected)  # noqa: PT017  # not every text is rejected
    else:
        assert atlas.holds("p", ("k", "v"))


def test_household_words_are_more_popular_than_rare_ones() -> None:
    """Popularity follows word frequency, and an unknown name stands at the floor."""
    assert popularity("butter") > popularity("saffron") > popularity("asafoetida")
    assert popularity("qzxqzx") == 1.0


def test_the_shipped_atlas_is_sound_and_worded() -> None:
    """Every shipped fact reads without fault, and the rule library has words for every predicate."""
    atlas = load_atlas()

    assert len(atlas.facts) > 4000
    assert set(load_wording(atlas).predicates) == set(atlas.relations)
