"""LINT's CSV files: read as statements, counted, measured, and ready to be probed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result

from hapax.engine.inference.proof import proof_from_json, proof_text
from hapax.evaluation.link.probing.items import probe_items
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase

LINK_RULES = Path(__file__).parent.parent.parent / "shared" / "data" / "link" / "rules_example.json"

RULES = {
    "rule2": {
        "premise_map": {
            "is_allergic_to(P, A)": "[P] is allergic to [A]",
            "is_ingredient_in(Z, B)": "[Z] is an ingredient in [B]",
            "is_one_type_of(Z, A)": "[Z] is one type of [A]",
        },
        "conclusion_map": {"is_not_able_to_eat(P, B)": "[P] is not able to eat [B]"},
        "variables": {
            "P": ["P", "Person", True, None],
            "A": ["A", "Food Allergen", False, None],
            "B": ["B", "Dish", False, None],
            "Z": ["Z", "Ingredient", False, None],
        },
        "domain": "outcomes and effects",
    },
    "rule7": {
        "premise_map": {
            "was_born_in(P, B)": "[P] was born in [B]",
            "was_invented_in(A, Y)": "[A] was invented in [Y]",
            "is_earlier_than(B, Y)": "[B] is earlier than [Y]",
        },
        "conclusion_map": {"could_not_use(P, A)": "[P] could not use [A]"},
        "variables": {
            "P": ["P", "Person", True, None],
            "A": ["A", "Product", False, None],
            "B": ["B", "Historical Time Period", False, None],
            "Y": ["Y", "Year", False, "factual"],
        },
        "domain": "temporal",
    },
}

FILES = {
    "rule2_value_cache.csv_head": "P,A,Z,B\nPersonX,dairy,butter,mashed_potatoes\nPersonX,dairy,butter,mashed_potatoes\nPersonX,gluten,flour,bread\nPersonX,,x,y\n",
    "rule2_value_cache.csv_longtail": 'P,A,Z,B\nPersonX,dairy,ghee,mysore pak\nPersonX,gluten,seitan,"tofu, fried"\n',
    "rule7_value_cache.csv_head": "P,A,Y,B\nPersonX,tractor,1892,Roman Empire\n",
    "rule7_value_cache.csv_longtail": "P,A,Y,B\nPersonX,theremin,1920,Hittite Empire\n",
    "flip_label_data.json": json.dumps({"LINK": {"rule2": {"head": [1], "longtail": []}}}),
    "rule2_gpt-4_probe_results.json": "{}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "probing_set"
    place.mkdir()
    for name, text in FILES.items():
        (place / name).write_text(text, encoding="utf-8")
    (tmp_path / "rules.json").write_text(json.dumps(RULES), encoding="utf-8")
    return place


def imported(folder: Path, *more: str) -> Result:
    rules, database = folder.parent / "rules.json", folder.parent / "lint.db"
    return invoke("evaluate", "lint", folder, "--rules", rules, "--db", database, *more)


def test_csvs_become_statements(folder: Path) -> None:
    """Each distinct complete row is a statement in LINK's words, with its year as a number and underscores as blanks."""
    result = imported(folder)
    with KnowledgeBase(folder.parent / "lint.db") as kb:
        texts = {statement.text for statement in kb.statements(distribution=Distribution.HEAD)}
        (theremin,) = kb.statements(rule="rule7", distribution=Distribution.LONG_TAIL)

    assert result.exit_code == 0, result.output
    assert texts == {
        "If PersonX is allergic to dairy, then PersonX is not able to eat mashed potatoes.",
        "If PersonX is allergic to gluten, then PersonX is not able to eat bread.",
        "If PersonX was born in Roman Empire, then PersonX could not use tractor.",
    }
    assert dict(theremin.substitution) == {"P": "PersonX", "B": "Hittite Empire", "A": "theremin", "Y": 1920}
    assert theremin.ranking_text == (
        "PersonX was born in Hittite Empire and theremin was invented in 1920 and Hittite Empire is earlier than 1920 "
        "and PersonX could not use theremin"
    )
    assert "left out: 1 repeated row and 1 row with an empty cell; people flipped" in " ".join(result.stderr.split())


def test_import_counts_as_table_16_and_measures_delta(folder: Path) -> None:
    """Rules and statements by domain, and how much likelier the head is; a second import changes nothing."""
    first, second = imported(folder, "--json"), imported(folder, "--json")
    counts = json.loads(first.stdout)["table_16"]

    assert [(count["domain"], count["rules"], count["head"], count["long_tail"]) for count in counts] == [
        ("temporal", 1, 1, 1),
        ("outcomes and effects", 1, 2, 2),
        ("total", 2, 3, 3),
    ]
    assert all(count["delta"] > 0 for count in counts)
    assert json.loads(first.stdout)["rules_about_persons"] == 2
    assert "2 of LINT's 417 rules: 2 of its 149 about persons and 0 of its 268 about objects" in first.stderr
    assert "released" not in first.stderr
    assert second.stdout == first.stdout
    with KnowledgeBase(folder.parent / "lint.db") as kb:
        assert kb.counts()["statements"] == 6


def test_imported_statements_can_be_probed_and_explained(folder: Path) -> None:
    """The probing takes them with LINK's turned labels and without a rule file; the proof shows what LINT states."""
    imported(folder)
    with KnowledgeBase(folder.parent / "lint.db") as kb:
        found = probe_items(kb)
        (ghee,) = (statement for statement in kb.statements() if "mysore pak" in statement.conclusion)
    proof = proof_text(proof_from_json(ghee.proof))

    assert len(found.items) == 6
    assert [item.conclusion for item in found.items if not item.entailed] == ["PersonX is not able to eat bread"]
    assert {item.question for item in found.items if item.rule == "rule7"} == {
        "could PersonX use tractor",
        "could PersonX use theremin",
    }
    assert 'is_ingredient_in("ghee", "mysore pak")  [given]' in proof
    assert 'is_allergic_to(Person P, "dairy")  [assumed]' in proof


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "rule2_value_cache.csv_head",
            "P,A,B\nPersonX,dairy,bread\n",
            "no column Z, a variable that rule rule2 searches",
        ),
        ("rule99_value_cache.csv_head", "P,A\nPersonX,dairy\n", "No rule is named rule99"),
        ("rule2_value_cache.csv_head", 'P,A,Z,B\nPersonX,"dairy\n', "not valid CSV in UTF-8"),
        ("flip_label_data.json", "[]", "not a file of flipped labels for LINK"),
        ("flip_label_data.json", '{"LINK": {"rule2": {"head": [7]}}}', "has no row 7"),
        ("flip_label_data.json", '{"LINK": {"rule2": {"head": [Infinity]}}}', "not a file of flipped labels for LINK"),
    ],
)
def test_faulty_files_are_told_and_nothing_is_stored(folder: Path, name: str, text: str, message: str) -> None:
    """Place, fact and remedy; the knowledge base stays as it was."""
    (folder / name).write_text(text, encoding="utf-8")
    result = imported(folder)

    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
    with KnowledgeBase(folder.parent / "lint.db") as kb:
        assert kb.statements() == []


def test_folder_without_lint_is_told(folder: Path, tmp_path: Path) -> None:
    """A folder that holds none of LINT's files is an error that names one."""
    (tmp_path / "empty").mkdir()
    result = invoke(
        "evaluate", "lint", tmp_path / "empty", "--rules", tmp_path / "rules.json", "--db", tmp_path / "x.db"
    )

    assert result.exit_code == 1
    assert "rule2_value_cache.csv_head" in result.stderr


@pytest.mark.skipif(not LINK_RULES.exists(), reason="LINK's example rules lie beside the repository, not in it")
def test_links_own_rules_serve(folder: Path) -> None:
    """The rules that LINK's README prints read its CSV columns as they are."""
    (folder / "flip_label_data.json").unlink()
    (folder.parent / "rules.json").write_bytes(LINK_RULES.read_bytes())

    assert imported(folder).exit_code == 0
