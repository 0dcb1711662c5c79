"""The shipped mappings over their installed data, and the atlas of the embedded model compared with them."""

from __future__ import annotations

import pytest

from hapax.commands.options import read_library
from hapax.grammar.extras import missing_of
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.verbalize import atom_text
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.prompts import sentence
from hapax.llm_oracle.protocols import CRITIC
from hapax.llm_oracle.registry import open_model

pytestmark = pytest.mark.skipif(bool(missing_of("references")), reason=missing_of("references"))

PREDICATES = (
    "is_the_capital_of",
    "lies_in",
    "shares_a_border_with",
    "uses_currency",
    "is_a_city_in",
    "has_official_language",
    "has_atomic_number",
)

KNOWN_DIFFERENCES = {
    "Ngerulmud is the capital of Palau.": "GeoNames has the state's name, Melekeok",
    "East Timor lies in Asia.": "GeoNames counts it to Oceania",
    "Singapore has the official language Mandarin.": "CLDR names the language Chinese",
    "Algeria has the official language Tamazight.": "CLDR has the standard varieties by other names",
    "Morocco has the official language Tamazight.": "CLDR has the standard varieties by other names",
    "Longyearbyen is a city in Norway.": "GeoNames lists Svalbard as a territory of its own",
    "Pevek is a city in Russia.": "has fewer than 5,000 inhabitants",
    "Utqiagvik is a city in the United States.": "has fewer than 5,000 inhabitants",
}
"""Facts of the atlas that the tables do not confirm, with the reason: names and conventions."""


@pytest.fixture(scope="module")
def shipped():
    """The references about geography and the elements, for the shipped rules."""
    return open_model("reference:geo,elements", CRITIC, OpeningOptions(library=read_library(())))


@pytest.mark.slow
def test_the_atlas_agrees_with_the_references(shipped):
    """Every fact of the atlas that the tables could know is confirmed by a row, but for the known differences."""
    library, atlas = shipped.library, load_atlas()
    differences = {}
    for predicate in PREDICATES:
        for first in atlas.true_values(predicate, 0):
            for second in atlas.true_values(predicate, 1, first):
                claim = sentence(atom_text(Atom(predicate, (Constant(first), Constant(second))), library))
                verdict = shipped.verdict(claim)
                if verdict.truth is not True:
                    differences[claim] = verdict.basis

    assert differences.keys() == KNOWN_DIFFERENCES.keys(), differences


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        ("Côte d'Ivoire shares a border with Ghana.", True),
        ("IVORY COAST shares a border with Ghana.", True),
        ("Russia shares a border with Russia.", False),
        ("Norway has the official language Swedish.", False),
        ("Paris is a city in the United States.", True),
        ("London is a city in Germany.", False),
        ("France is a country.", True),
        ("Paris is a country.", False),
        ("Gold has the atomic number 80.", False),
        ("Rigel lies in the constellation Orion.", None),
    ],
)
def test_shipped_tables_judge_claims(shipped, claim, truth):
    """Names in any spelling are judged by the tables; claims that share words with another predicate are not covered."""
    assert shipped.verdict(claim).truth is truth


def test_names_are_those_of_english_prose(shipped):
    """Names get the form of the shipped rules, by type where types share a name."""
    assert shipped.canonical("Côte d'Ivoire", "Country") == "Ivory Coast"
    assert shipped.canonical("Holland", "Country") == "the Netherlands"
    assert shipped.canonical("georgia", "Country") == "Georgia"
    assert shipped.canonical("Bogotá", "City") == "Bogota"
    assert shipped.canonical("Detroit", "City") == "Detroit"
    assert shipped.canonical("D", "City") is None  # a city of the table has "The D" as another name
