"""Reference tables as knowledge model, critic and ranker, and chains of critics."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from cli_fixture import invoke

from hapax.commands.options import read_library
from hapax.engine.search.job import SearchJob
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.records import FactRecord, Source
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends.reference import covering_references
from hapax.llm_oracle.critic_chain import CriticChain
from hapax.llm_oracle.prompts import knowledge_prompt
from hapax.llm_oracle.protocols import (
    CRITIC,
    Critic,
    CriticScore,
    GenerationParameters,
    GenerationRequest,
    ModelIdentity,
)
from hapax.llm_oracle.references.mapping import SHIPPED, TableSection, read_mapping, shipped_names
from hapax.llm_oracle.references.model import ReferenceModel
from hapax.llm_oracle.references.tables import read_table
from hapax.llm_oracle.registry import chain_parts, open_model, open_models

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "airports"
LIBRARY = parse_library([("airports.rules", (EXAMPLE / "airports.rules").read_text(encoding="utf-8"))])


@pytest.fixture
def airports() -> ReferenceModel:
    """The example's reference."""
    return ReferenceModel("airports", [EXAMPLE / "airports.yaml"], LIBRARY)


class SureCritic:
    """Says the same of every claim, and remembers what it was asked."""

    identity = ModelIdentity("sure", "1")

    def __init__(self, probability: float) -> None:
        self.probability = probability
        self.asked: list[str] = []

    def probabilities(self, claims):
        self.asked += claims
        return [CriticScore(self.probability) for _ in claims]


def truths(model, *claims):
    return [model.verdict(claim).truth for claim in claims]


def test_a_row_makes_a_claim_true_and_cites_its_source(airports):
    """A claim that the table states is true, and the verdict names source, table, row and fact."""
    verdict = airports.verdict("Heathrow lies at 83 feet.")

    assert verdict.truth is True
    assert verdict.basis == "Airport list of the example 2026, airports row 2: lies_at(Heathrow, 83)"


def test_closedness_decides_between_false_and_not_covered(airports):
    """Where the first argument is closed other values are false; an unknown first argument and an open table say nothing."""
    assert truths(
        airports, "Heathrow lies at 90 feet.", "Stansted lies at 90 feet.", "Heathrow serves Paris.", "It rains."
    ) == [False, None, None, None]


def test_a_denied_claim_has_the_opposite_truth(airports):
    """A negated sentence is true where the fact is false."""
    assert truths(airports, "Heathrow does not lie at 90 feet.", "Orly does not serve Paris.") == [True, False]


def test_aliases_and_spellings_mean_the_same(airports):
    """Aliases, case and diacritics do not change a verdict, and have one canonical name."""
    assert truths(airports, "LHR lies at 83 feet.", "roissy serves Paris.", "El Dorado serves Bogotá.") == [True] * 3
    assert airports.canonical("london heathrow", "Airport") == "Heathrow"
    assert airports.canonical("Stansted", "Airport") is None


def test_types_are_judged_by_lists(airports):
    """A closed list denies what it lacks; arguments of rows have their predicate's type, which stays open."""
    assert truths(airports, "Orly is an airport.", "Paris is an airport.", "Paris is a city.", "Oslo is a city.") == [
        True,
        False,
        True,
        None,
    ]


def test_values_come_by_popularity_and_without_the_excluded(airports):
    """A question is answered with the most popular values first, and the next call goes on where the last ended."""
    prompt = knowledge_prompt("A", "[A] serves London", "Airport", 5)
    first, rest = airports.generate(
        [GenerationRequest(prompt), GenerationRequest(prompt, excluded_values=("Heathrow",))], GenerationParameters()
    )

    assert first.text == "1. Heathrow.\n2. Gatwick."
    assert rest.text == "1. Gatwick."
    assert airports.proposals(prompt) == {"Heathrow": 83900000.0, "Gatwick": 43200000.0}


def test_popular_names_are_likelier(airports):
    """Texts rank by the popularity of the names in them, and a text without a name ranks last."""
    heathrow, orly, nothing = airports.log_likelihoods(["PersonX may be at Heathrow.", "He is at Orly.", "It rains."])

    assert heathrow.per_token > orly.per_token > nothing.per_token
    assert airports.counts([("Orly",), ("Oslo",)]) == [33100000.0, 0.0]


def test_another_process_opens_the_files_itself(airports):
    """A model that is sent to another process judges there as here."""
    assert pickle.loads(pickle.dumps(airports)).verdict("Orly serves Paris.").truth is True  # noqa: S301  # our own


def test_the_first_critic_that_covers_a_claim_decides(airports):
    """A chain asks the next critic only for what the ones before do not cover, and names who decided."""
    sure = SureCritic(0.9)
    chain = CriticChain([airports, sure])
    false, true, other = chain.probabilities(["Heathrow lies at 90 feet.", "Orly serves Paris.", "Orly serves Berlin."])

    assert [false.probability, true.probability, other.probability] == [0.0, 1.0, 0.9]
    assert [score.judge.partition("@")[0] for score in (false, true, other)] == ["reference/airports"] * 2 + ["sure"]
    assert sure.asked == ["Orly serves Berlin."]


def test_what_nobody_covers_is_unknown(airports):
    """A claim without a covering critic is neither true nor false."""
    (score,) = CriticChain([airports]).probabilities(["Stansted lies at 90 feet."])

    assert (score.probability, score.covered, score.basis) == (0.5, False, "")


def test_chains_are_model_strings():
    """A comma begins a further critic only before the name of a backend."""
    assert chain_parts("reference:geo,smollm2") == ["reference:geo", "smollm2"]
    assert chain_parts("reference:geo,elements,hf:a,b") == ["reference:geo,elements", "hf:a,b"]
    critic = open_model(f"reference:{EXAMPLE / 'airports.yaml'},simulated:3", CRITIC, OpeningOptions(library=LIBRARY))
    assert isinstance(critic, Critic)
    assert len(critic.critics) == 2


def test_a_search_stores_facts_with_their_source(fresh_kb):
    """A search by a reference alone finds what the table says, under canonical names, each fact with its row."""
    models = open_models(f"reference:{EXAMPLE / 'airports.yaml'}", options=OpeningOptions(library=LIBRARY))
    fresh_kb.add_facts([FactRecord("lands_in", ("Ann", "La Paz"), ("Person", "City"), Source.GIVEN)])
    report = search(SearchJob(LIBRARY, LIBRARY.rules, fresh_kb, models, SearchSettings()))

    fact = fresh_kb.fact("lies_at", ("El Alto", 13325))
    assert fact is not None
    assert fact.basis == "Airport list of the example 2026, airports row 6: lies_at(El Alto, 13325)"
    assert report.sourced == report.proposed > 0
    assert {statement.text for statement in report.statements} >= {
        "If PersonX lands in La Paz, then PersonX may feel the height at El Alto."
    }


# --- hostile tables and mappings

ONE_TABLE = """
source: {name: test}
tables: {t: {file: t.csv}}
predicates:
  lies_at/2: {table: t, arguments: [a, b], popularity: p}
"""


def opened(folder: Path, table: bytes, mapping: str = ONE_TABLE) -> ReferenceModel:
    (folder / "m.yaml").write_text(mapping, encoding="utf-8")
    (folder / "t.csv").write_bytes(table)
    return ReferenceModel("m", [folder / "m.yaml"], LIBRARY)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"", "has no header"),
        (b"a,b,p\n", "has no rows"),
        (b"a,a,p\nx,1,2\n", r"t.csv:1: repeats the columns 'a'"),
        (b"a,p\nx,1\n", "has no column 'b'; its columns are 'a', 'p'"),
        (b"a,b,p\nx,1\n", r"t.csv:2: has 2 cells, the header 3"),
        (b"a,b,p\nx,eighty,1\n", r"t.csv:2: column 'b' has 'eighty', which is not a Feet"),
        (b"a,b,p\nx,1,many\n", r"t.csv:2: column 'p' has 'many', which is not a popularity"),
        (b"a,b,p\nx,1,2\nx,2,2\n", r"t.csv:3: says 2 of x, row 2 says 1, but lies_at/2 has one right value"),
        (b'a,b,p\n"x,1,2\n', "Correct the quotation marks"),
        (b'a,b,p\n"x"y,1,2\n', "Correct the quotation marks"),
        (b"a,b,p\nx\0y,1,2\n", r"t.csv:2: column 'a' has a control character"),
        (b"a,b,p\n" + b"x" * 30_000 + b",1,2\n", r"t.csv:2: column 'a' has 30000 characters"),
        (b"a,b,p\n" + b"x" * 1_000 + b",1,2\n", r"t.csv:2: column 'a' has a name of 1000 characters"),
        (b"a,b,p\n\xff,1,2\n", "is not UTF-8 text"),
    ],
)
def test_faulty_tables_are_refused_with_their_row(tmp_path, table, message):
    """A table that cannot be believed is an error with file, row and remedy, not a wrong verdict."""
    with pytest.raises(HapaxError, match=message):
        opened(tmp_path, table).verdict("Orly lies at 1 feet.")


def test_blank_cells_and_repeated_rows_are_no_faults(tmp_path):
    """A row without an argument says nothing, blank lines are skipped, and a repeated row counts once."""
    model = opened(tmp_path, b'\xef\xbb\xbfa,b,p\nx,1,2\n\nx,1,9\n,1,2\n"y, z",,\n"y, z",7,\n')

    assert truths(model, "X lies at 1 feet.", "Y, z lies at 7 feet.") == [True, True]
    assert model.proposals(knowledge_prompt("A", "[A] lies at 1 feet", "Airport")) == {"x": 9.0}


def test_parquet_tables_keep_the_digits_of_short_floats(tmp_path: Path) -> None:
    """A float of 32 bits in a Parquet file is the decimal that it shows; other columns come in as they are."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"name": ["Orly", "Tegel"], "height": pa.array([3.1, None], pa.float32()), "rank": [1, 2]})
    parquet.write_table(table, tmp_path / "t.parquet")
    rows = read_table("t", TableSection(file=Path("t.parquet")), tmp_path)

    expected = [{"name": "Orly", "height": 3.1, "rank": 1}, {"name": "Tegel", "height": None, "rank": 2}]
    assert [(row.number, dict(row.cells)) for row in rows] == list(enumerate(expected, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("t.csv", "missing.csv"), "cannot be read: No such file"),
        (("t.csv", "t.xls"), r"tables end in \.csv, \.tsv, \.jsonl, \.parquet"),
        (("{file: t.csv}", "{loader: nowhere}"), "no loader 'nowhere' is registered"),
        (("{file: t.csv}", "{}"), "a table has either `file` or `loader`"),
        (("[a, b]", "[a]"), "lies_at/2 needs 2 argument columns, not 1"),
        (("table: t,", "table: u,"), "names the table 'u'"),
        (("lies_at/2", "lies at"), "String should match pattern"),
        (("popularity: p", "popular: p"), "Extra inputs are not permitted"),
        (("source:", "source: ["), "is not YAML"),
    ],
)
def test_faulty_mappings_are_refused_with_their_place(tmp_path, change, message):
    """A mapping that is wrong is an error that names the file and the place in it."""
    with pytest.raises(HapaxError, match=message):
        opened(tmp_path, b"a,b,p\nx,1,2\n", ONE_TABLE.replace(*change)).verdict("Orly lies at 1 feet.")


def test_unknown_references_are_named():
    """A reference that neither ships nor is a file is an error that lists what ships."""
    with pytest.raises(HapaxError, match=r"reference:nowhere: there is no such file.*geo"):
        open_model("reference:nowhere", CRITIC, OpeningOptions(library=LIBRARY))
    with pytest.raises(HapaxError, match="the rules use none of its predicates"):
        open_model(f"reference:{SHIPPED / 'elements.yaml'}", CRITIC, OpeningOptions(library=LIBRARY))


def test_homonyms_and_ambiguous_aliases(tmp_path):
    """A claim is true of any bearer of a name and false of none; an ambiguous alias has no canonical name."""
    model = opened(
        tmp_path,
        b"a,b,p,n\nParis,1,9,City of Light\nParis,2,5,\nSpringfield,3,1,City of Light\n",
        ONE_TABLE.replace("popularity: p", "popularity: p, homonyms: true, closedness: closed for each first argument")
        + "types: {Airport: {table: t, name: a, aliases: n}}\n",
    )

    assert truths(model, "Paris lies at 1 feet.", "Paris lies at 2 feet.", "Paris lies at 3 feet.") == [
        True,
        True,
        False,
    ]
    assert truths(model, "City of Light lies at 3 feet.", "City of Light lies at 4 feet.") == [True, False]
    assert model.canonical("city of light", "Airport") is None


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_mappings_are_well_formed(name):
    """Each mapping that ships can be read, and names its source and licence."""
    mapping = read_mapping(SHIPPED / f"{name}.yaml")

    assert mapping.source.name
    assert mapping.source.licence


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        ("Milk is a food allergen.", True),
        ("Tree nut is a food allergen.", True),
        ("Vegetables is a food allergen.", False),
        ("Herbs and spices is a food allergen.", False),
        ("Carrot falls under the allergen vegetables.", None),
    ],
)
def test_a_closed_list_of_a_type_refuses_other_values(claim, truth):
    """The shipped list of allergens says which values are of the type, and leaves facts about them to other critics."""
    model = open_model("reference:allergens", CRITIC, OpeningOptions(library=read_library(())))

    assert model.verdict(claim).truth is truth


def test_default_critics_are_those_with_predicates_or_closed_types_of_the_rules():
    """The list of allergens judges beside a default model where the rules have the type, and not elsewhere."""
    assert "allergens" in covering_references(read_library(()))
    assert "allergens" not in covering_references(LIBRARY)


# --- the page


def test_the_mapping_of_the_page_is_that_of_the_example():
    """The references page shows the example's mapping as it is."""
    page = (EXAMPLE.parents[1] / "references.md").read_text(encoding="utf-8")

    assert (EXAMPLE / "airports.yaml").read_text(encoding="utf-8") in page


def test_the_search_of_the_page_finds_the_high_airports(tmp_path):
    """The page's search over the example's rules tells who may feel the height where."""
    result = invoke(
        "search",
        EXAMPLE / "airports.rules",
        "-m",
        f"reference:{EXAMPLE / 'airports.yaml'}",
        "--db",
        tmp_path / "kb.db",
        "--no-progress",
    )

    assert result.exit_code == 0
    assert "may feel the height at El Alto" in result.stdout
    assert "have a source" in result.stdout
