"""The embedded model's atlas: a closed world whose facts the reference tables confirm."""

from __future__ import annotations

import pytest

import hapax
from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.embedded.atlas import load_atlas, parse_atlas
from hapax.llm_oracle.registry import open_model

TABLES = {"is_the_capital_of": "is the capital of", "shares_a_border_with": "shares a border with"}
DIFFERENCES = {"Ngerulmud is the capital of Palau.": "GeoNames has the state's name, Melekeok"}
"""Facts of the atlas that the tables do not confirm, with the reason."""


def test_what_a_key_does_not_list_is_false() -> None:
    """An unlisted pair does not hold, and neither does anything of an unknown predicate."""
    text = "predicate is_ingredient_in(Ingredient, Dish) key 2\npaella: rice; saffron\n"
    atlas = parse_atlas([("test.atlas", text)])

    assert atlas.holds("is_ingredient_in", ("rice", "paella"))
    assert not atlas.holds("is_ingredient_in", ("milk", "paella"))
    assert not atlas.holds("lies_in", ("rice", "paella"))


def test_the_shipped_rules_have_words_for_every_predicate_of_the_atlas() -> None:
    """Every shipped fact reads without fault, and can be asked for."""
    atlas, library = load_atlas(), hapax.load_rules()

    assert len(atlas.facts) > 4000
    assert set(atlas.relations) <= {signature.name for signature in library.signatures}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_of("references")), reason=missing_of("references"))
@pytest.mark.parametrize("predicate", TABLES)
def test_the_atlas_agrees_with_the_references(predicate: str) -> None:
    """Every fact of the atlas that the tables could know is confirmed by a row, but for the known differences."""
    critic, atlas = open_model("reference:geo", "critic", OpeningOptions(library=hapax.load_rules())), load_atlas()
    claims = [
        f"{str(first)[0].upper()}{str(first)[1:]} {TABLES[predicate]} {second}."
        for first in atlas.true_values(predicate, 0)
        for second in atlas.true_values(predicate, 1, first)
    ]
    wrong = {
        claim for claim, score in zip(claims, critic.probabilities(claims), strict=True) if score.probability < 0.5
    }

    assert len(claims) > 50
    assert wrong <= set(DIFFERENCES)
