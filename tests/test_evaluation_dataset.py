"""`dataset`: a knowledge base as rows in six formats, with a card that says what was made and left out."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_fixture import invoke
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from random_cases import cases

import hapax
import hapax.evaluation.dataset.parquet as shards
from hapax import cli
from hapax.engine.inference.proof import By, Proof
from hapax.evaluation.dataset import selection, shipped_lm_eval
from hapax.evaluation.dataset.build import build
from hapax.evaluation.dataset.columns import ANNOTATIONS, FACTS, PROBES, STATEMENTS, DatasetTable
from hapax.evaluation.dataset.formats import FORMATS, DatasetFormat, Target
from hapax.evaluation.dataset.frequency import rarest_word
from hapax.evaluation.dataset.rows import DatasetSource, Entry
from hapax.evaluation.dataset.selection import SelectionOptions
from hapax.evaluation.dataset.sinks import Sink
from hapax.evaluation.link.lint import LintReader
from hapax.evaluation.link.probing.asking import ProbeAnswer
from hapax.evaluation.link.probing.items import ProbeItem
from hapax.evaluation.link.probing.metrics import measure
from hapax.evaluation.link.probing.reading import ParsedReply
from hapax.evaluation.link.probing.templates import TEMPLATES
from hapax.evaluation.shared.domains import TOTAL
from hapax.grammar.attributes import Polarity
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library, parse_library
from hapax.grammar.terms import Atom, Constant, Literal, Value, Variable
from hapax.kb.records import (
    Assessment,
    Decision,
    Distribution,
    FactRecord,
    PredicateRecord,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase

RULES = """
type Dish < Food

given is_allergic_to(Person, Allergen): "[1] is allergic to [2]"
given is_not_able_to_eat(Person, Food): "[1] is not able to eat [2]"
given was_in(Person, Year): "[1] was in [2]"
oracle is_made_from(Dish, Allergen): "[1] is made from [2]"
functional was_invented_in(Dish, Year): "[1] was invented in [2]"
computed is_earlier_than(Year A, Year B) := A < B: "[1] is earlier than [2]"

@name allergy
@domain "outcomes and effects"
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> is_not_able_to_eat(Person X, Dish B).

@name before
@domain temporal
was_in(Person X, Year A) & was_invented_in(Dish B, Year Y) & is_earlier_than(Year A, Year Y)
  -> is_not_able_to_eat(Person X, Dish B).
"""
HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL
KITCHEN = (
    (HEAD, "milk", "mashed potatoes", -4.0),
    (HEAD, "milk", "guacamole", -5.0),
    (HEAD, "milk", "fondue", -6.0),
    (TAIL, "milk", "fondue", -6.0),
    (TAIL, "nuts", "gianduja", -9.0),
    (TAIL, "nuts", "marzipan", -8.0),
)


def allergy(distribution: Distribution, allergen: str, dish: str, score: float | None) -> StatementRecord:
    assumed = Literal(Atom("is_allergic_to", (Variable("X", "Person"), Constant(allergen))))
    fact = FactRecord("is_made_from", (dish, allergen), (), Source.MODEL)
    accepted = Proof(Literal(Atom("is_made_from", (Constant(dish), Constant(allergen)))), By.FACT, fact_id=fact.id)
    goal = Literal(Atom("is_not_able_to_eat", (Variable("X", "Person"), Constant(dish))))
    return StatementRecord(
        "allergy",
        distribution,
        "run",
        (("A", allergen), ("B", dish)),
        f"PersonX is allergic to {allergen}",
        f"PersonX is not able to eat {dish}",
        "",
        Proof(goal, By.RULE, "allergy", (Proof(assumed, By.ASSUMPTION), accepted)).to_json(),
        score,
    )


def before(distribution: Distribution, year: int, dish: str, invented: Value) -> StatementRecord:
    goal = Literal(Atom("is_not_able_to_eat", (Variable("X", "Person"), Constant(dish))))
    compared = Literal(Atom("is_earlier_than", (Constant(year), Constant(invented))))
    return StatementRecord(
        "before",
        distribution,
        "import",
        (("A", year), ("B", dish), ("Y", invented)),
        f"PersonX was in {year}",
        f"PersonX is not able to eat {dish}",
        "",
        Proof(goal, By.RULE, "before", (Proof(compared, By.COMPUTED),)).to_json(),
    )


def fill(kb: KnowledgeBase, statements: Sequence[StatementRecord] | None = None) -> None:
    """A search's traces for the kitchen, and statements of another run."""
    library = parse_library([("kitchen.rules", RULES)])
    models = ["writer@1", "judge@2", "writer@1", "counter@3"]
    run_settings = {"models": models, "likelihood": "model", "critic": True}
    kb.start_run(RunRecord("run", "search", run_settings, "run", "2026-01-01T00:00:00+00:00"))
    kb.finish_run("run")
    kb.start_run(RunRecord("import", "evaluate lint", {"evaluator": "counter"}, "import", "2026-01-02T00:00:00+00:00"))
    kb.add_predicates(map(PredicateRecord.of, library.signatures))
    kb.add_rules(RuleRecord(rule.name, str(rule), rule.domain, rule.principle, rule.polarity) for rule in library.rules)
    if statements is None:
        statements = [*(allergy(*dish) for dish in KITCHEN), before(TAIL, 1876, "sushi burrito", Decimal("2005.5"))]
    kb.add_statements(statements)
    made = {
        (dict(record.substitution)["B"], dict(record.substitution)["A"])
        for record in statements
        if record.rule == "allergy"
    }
    for number, (dish, allergen) in enumerate(sorted(made)):
        fact = FactRecord("is_made_from", (dish, allergen), ("Dish", "Allergen"), Source.MODEL, 0.9 + number / 100)
        kb.add_facts([fact])
        kb.add_decisions([Decision("run", "critic", fact.id, True, 0.9, 0.85, "P(true) reaches it")])
        ranked = f"{dish[:1].upper()}{dish[1:]} is made from {allergen}."
        kb.add_assessments([Assessment(ranked, "log_likelihood", "writer@1", -12.0, 6)])
    kb.add_decisions([Decision("run", "critic", "soup", False, 0.1, 0.85, "P(true) is below it")])
    kb.add_assessments(
        Assessment(record.text, "log_likelihood", "counter@3", -40.0, 10)
        for record in statements
        if record.rule == "allergy"
    )


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    path = tmp_path / "kitchen.db"
    with KnowledgeBase(path) as kb:
        fill(kb)
    return path


def vote(path: Path, dish: str, question: str, *answers: str) -> None:
    with KnowledgeBase(path) as kb:
        ids = {record.id for record in kb.statements() if dict(record.substitution)["B"] == dish}
        kb.add_votes(
            VoteRecord(identity, question, f"Ann {n}", answer) for identity in ids for n, answer in enumerate(answers)
        )


def run(database: Path, *more: str, folder: str = "out") -> Result:
    """`hapax dataset` with statements of both distributions kept, unless the options say otherwise."""
    shared = () if "--in-both" in more else ("--in-both", "keep")
    return invoke("dataset", database.parent / folder, "--db", database, *shared, *more)


def made(database: Path, *more: str, folder: str = "out") -> Path:
    result = run(database, *more, folder=folder)
    assert result.exit_code == 0, result.output
    return database.parent / folder


def fault(database: Path, *more: str, folder: str = "out") -> str:
    """The message of a command that fails, in one line."""
    result = run(database, *more, folder=folder)
    assert result.exit_code == 1, result.output
    return " ".join(result.stderr.split())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def statements(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for distribution in Distribution
        for row in lines(folder / "jsonl" / f"statements-{distribution.value}.jsonl")
    ]


def dishes(folder: Path) -> set[tuple[str, str]]:
    return {(row["distribution"], row["substitution"][1]["value"]) for row in statements(folder)}


def metadata(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metadata.json").read_text("utf-8"))
    return found


def front_matter(folder: Path) -> dict[str, Any]:
    _, head, _ = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(head)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- rows -------------------------------------------------------------------------------------------------------------


def test_a_row_says_everything_of_its_statement(kitchen: Path) -> None:
    """Words, label, values, both models' scores, P(yes) of each fact, proof, word frequency and who did it."""
    (row,) = (row for row in statements(made(kitchen)) if "gianduja" in row["conclusion"])
    proof_steps = row["proof"]["steps"]

    assert list(row) == [column.name for column in STATEMENTS.columns]
    assert (row["premise"], row["conclusion"]) == ("PersonX is allergic to nuts", "PersonX is not able to eat gianduja")
    assert (row["rule"], row["domain"], row["principle"], row["polarity"]) == (
        "allergy",
        "outcomes and effects",
        "exclusion",
        "negative",
    )
    assert (row["distribution"], row["in_both"], row["label"], row["label_source"]) == (
        "long_tail",
        False,
        "entailment",
        "rule",
    )
    assert row["substitution"][1] == {"variable": "B", "data_type": "Dish", "value": "gianduja", "kind": "text"}
    assert row["log_likelihoods"] == [
        {"role": "ranker", "model": "writer@1", "per_token": -2.0, "tokens": 6},
        {"role": "evaluator", "model": "counter@3", "per_token": -4.0, "tokens": 10},
    ]
    assert row["log_likelihood"] == -9.0
    assert [(fact["fact"], fact["source"]) for fact in row["facts"]] == [("gianduja is made from nuts", "model")]
    assert row["least_probability"] == row["facts"][0]["probability"] > 0.9
    assert proof_steps[2]["fact"] == row["facts"][0]["id"]
    assert "gianduja is made from nuts  [fact]" in row["proof_text"]
    assert row["sources"] == ["assumption", "fact"]
    assert (row["knowledge_model"], row["critic_model"], row["likelihood_model"], row["evaluator_model"]) == (
        "writer@1",
        "judge@2",
        "writer@1",
        "counter@3",
    )
    assert row["rarest_word_zipf"] == 0


def test_numbers_keep_their_kind_and_an_import_names_its_evaluator(kitchen: Path) -> None:
    """A year is an integer and 2005.5 a decimal, told as texts; models that nobody asked are null."""
    (row,) = (row for row in statements(made(kitchen)) if row["rule"] == "before")

    assert [(binding["value"], binding["kind"]) for binding in row["substitution"]] == [
        ("1876", "integer"),
        ("sushi burrito", "text"),
        ("2005.5", "decimal"),
    ]
    assert (row["evaluator_model"], row["critic_model"], row["log_likelihood"], row["facts"]) == (
        "counter",
        None,
        None,
        [],
    )


def test_rarest_word_is_that_of_the_values() -> None:
    """The rarest word counts, an unknown one as 0, and digits are no words."""
    assert rarest_word(["the potato", "guacamole"]) == rarest_word(["guacamole"])
    assert rarest_word(["the xqzvorp"]) == 0
    assert rarest_word(["1876", "..."]) is None


def test_votes_turn_labels_and_leave_statements_out(kitchen: Path) -> None:
    """A denied entailment turns the label and all 13 answers; wrong types and harm leave the statement out, counted."""
    vote(kitchen, "guacamole", "entailment", "no", "no", "yes")
    vote(kitchen, "marzipan", "entailment", "yes")
    vote(kitchen, "mashed potatoes", "data type B", "no")
    vote(kitchen, "gianduja", "harmful", "yes")
    folder = made(kitchen, "--judged", "mark")
    rows = {row["substitution"][1]["value"]: row for row in statements(folder)}
    probes = [row for row in lines(folder / "jsonl" / "probes-head.jsonl") if "guacamole" in row["question"]]
    votes = lines(folder / "jsonl" / "annotations.jsonl")

    assert (rows["guacamole"]["label"], rows["guacamole"]["label_source"]) == ("contradiction", "votes")
    assert (rows["marzipan"]["label"], rows["marzipan"]["label_source"]) == ("entailment", "votes")
    assert rows.keys() == {"guacamole", "fondue", "marzipan", "sushi burrito"}
    assert [probes[0]["answers"][row["label"]] for row in probes[:1]] == ["No"]
    assert {"wrong_type": 1, "harmful": 1}.items() <= metadata(folder)["left_out"].items()
    assert sorted(vote["annotator"] for vote in votes) == [1, 1, 2, 3]
    assert "Ann" not in "".join(map(json.dumps, votes))
    card = (folder / "README.md").read_text("utf-8")
    assert "3 people have judged 2 statements: by majority 1 true, 1 false, 0 undecided." in card
    assert "- 1 were marked as harmful by people" in card


def test_both_distributions_are_told_and_can_be_left_out(kitchen: Path, tmp_path: Path) -> None:
    """A statement of head and long tail is left out by default; with `--in-both keep`, both rows say that it is."""
    both = made(kitchen, folder="both")
    result = invoke("dataset", tmp_path / "neither", "--db", kitchen)
    neither = tmp_path / "neither"

    assert {(row["distribution"], row["in_both"]) for row in statements(both) if "fondue" in row["conclusion"]} == {
        ("head", True),
        ("long_tail", True),
    }
    assert not any("fondue" in row["conclusion"] for row in statements(neither))
    assert result.exit_code == 0
    assert metadata(neither)["left_out"]["shared"] == 2
    assert metadata(both)["in_both"] == 1


def hidden(distribution: Distribution, year: int) -> StatementRecord:
    """A statement with a value that its text does not mention."""
    return before(distribution, 1876, "sushi burrito", year)


def test_statements_with_one_text_are_one_row_with_all_proofs(kitchen: Path) -> None:
    """The row has the other proofs, a vote on any of the statements is one on the text, and questions are not asked
    twice."""
    with KnowledgeBase(kitchen) as kb:
        kb.add_statements([hidden(TAIL, 1990), hidden(TAIL, 2000)])
        other = hidden(TAIL, 2000)
        kb.add_votes([VoteRecord(other.id, "entailment", "Ann", "no")])
    folder = made(kitchen, "--judged", "mark")
    (row,) = (row for row in statements(folder) if "sushi burrito" in row["conclusion"])
    ids = {row["id"], *(proof["id"] for proof in row["other_proofs"])}
    questions = [line for line in lines(folder / "jsonl" / "probes-long_tail.jsonl") if line["statement"] == row["id"]]

    assert len(row["other_proofs"]) == 2
    assert other.id in ids
    assert {proof["substitution"][2]["value"] for proof in row["other_proofs"]} < {"1990", "2000", "2005.5"}
    assert row["label"] == "contradiction"
    assert len(questions) == len(TEMPLATES)
    assert metadata(folder)["repeats"] == 2
    assert [vote["statement"] for vote in lines(folder / "jsonl" / "annotations.jsonl")] == [row["id"]]


def test_no_text_is_in_both_splits(kitchen: Path, tmp_path: Path) -> None:
    """By default a text of head and long tail is left out, though its statements have other hidden values."""
    with KnowledgeBase(kitchen) as kb:
        kb.add_statements([hidden(HEAD, 1990)])
    invoke("dataset", tmp_path / "split", "--db", kitchen)
    texts = [(row["premise"], row["conclusion"]) for row in statements(tmp_path / "split")]

    assert len(set(texts)) == len(texts)
    assert not any("sushi burrito" in conclusion for _, conclusion in texts)
    assert metadata(tmp_path / "split")["left_out"]["shared"] == 4


# --- frozen -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "hf"])
def test_a_dataset_is_loaded_with_its_checksum(kitchen: Path, kind: str) -> None:
    """Every format of tables gives the same frozen statements, and the checksum that metadata and card state."""
    vote(kitchen, "guacamole", "entailment", "no")
    folder = made(kitchen, "--format", kind, "--version", "2.1")
    whole = hapax.load_dataset(made(kitchen, folder="whole"))
    frozen = hapax.load_dataset(folder)

    assert frozen.statements == whole.statements
    assert (frozen.version, frozen.checksum) == ("2.1", metadata(folder)["checksum"])
    assert frozen.checksum == whole.checksum
    assert Decimal("2005.5") in {value for statement in frozen.statements for value in statement.values}
    assert [ranker.name for ranker in frozen.rankers] == ["writer"]


@pytest.mark.parametrize("name", ["statements-head", "probes-long_tail"])
def test_a_changed_dataset_is_refused(kitchen: Path, name: str) -> None:
    """A word changed in a statement or a question no longer fits the checksum."""
    path = made(kitchen, "--format", "jsonl") / "jsonl" / f"{name}.jsonl"
    path.write_text(path.read_text("utf-8").replace("allergic", "averse", 1), encoding="utf-8")

    with pytest.raises(HapaxError, match="have changed since the dataset was written"):
        hapax.load_dataset(kitchen.parent / "out")


def test_changed_metadata_are_refused(kitchen: Path) -> None:
    """Rankers that were taken out of the metadata are noticed; another layout of the file and a missing checksum are not."""
    folder = made(kitchen, "--format", "jsonl")
    whole = metadata(folder)
    path = folder / "metadata.json"
    path.write_text(json.dumps(whole, sort_keys=True), encoding="utf-8")
    assert hapax.load_dataset(folder).rankers
    path.write_text(json.dumps({**whole, "rankers": []}), encoding="utf-8")

    with pytest.raises(HapaxError, match="the metadata have changed since the dataset was written"):
        hapax.load_dataset(folder)
    path.write_text(json.dumps({key: whole[key] for key in whole if key != "metadata_checksum"}), encoding="utf-8")
    assert hapax.load_dataset(folder).rankers


def test_a_dataset_carries_the_seal_of_its_knowledge_base(kitchen: Path, tmp_path: Path) -> None:
    """The root is in the metadata, and seal and signature lie beside them, unless rows came later."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with KnowledgeBase(kitchen, read_only=True) as kb:
        hapax.seal(kb, key)
    folder = made(kitchen, "--format", "jsonl")
    whole = metadata(folder)
    command = ["ssh-keygen", "-Y", "check-novalidate", "-n", "hapax", "-s", str(folder / "seal.sig")]
    said = subprocess.run(command, input=(folder / "seal").read_bytes(), capture_output=True, check=True).stdout

    assert f"root {whole['root']}\n" in (folder / "seal").read_text()
    assert whole["sealed_by"] in said.decode()
    with KnowledgeBase(kitchen) as kb:
        kb.start_run(RunRecord("later", "search", {}, "later", "2026-01-01"))
    later = made(kitchen, "--format", "jsonl", folder="later")
    assert metadata(later)["sealed_by"] is None
    assert not (later / "seal").exists()


def test_a_dataset_of_an_older_version_is_refused(kitchen: Path) -> None:
    """It has repeats and no checksum; the message says so and what to do."""
    folder = made(kitchen, "--format", "jsonl")
    older = {key: value for key, value in metadata(folder).items() if key not in ("layout", "checksum", "version")}
    (folder / "metadata.json").write_text(json.dumps(older), encoding="utf-8")

    with pytest.raises(HapaxError, match="an older version of Hapax wrote this dataset"):
        hapax.load_dataset(folder)


def test_a_fresh_dataset_shares_nothing_with_the_frozen(kitchen: Path) -> None:
    """It takes other texts and values of the frozen dataset's rules; without any, the message says how to find some."""
    frozen = made(kitchen, "--rule", "allergy", folder="frozen")
    assert "has all statements of its rules already" in fault(kitchen, "--fresh-from", str(frozen), folder="fresh")
    with KnowledgeBase(kitchen) as kb:
        kb.add_statements([allergy(TAIL, "nuts", "bakewell tart", -8.0), before(HEAD, 1900, "soup", 1950)])
    fresh = made(kitchen, "--fresh-from", str(frozen), "--version", "2", folder="fresh")

    (row,) = lines(fresh / "jsonl" / "statements-long_tail.jsonl")
    assert row["substitution"][1]["value"] == "bakewell tart"
    assert metadata(fresh)["fresh_from"] == {"version": "1", "checksum": metadata(frozen)["checksum"]}
    assert metadata(fresh)["left_out"]["not_fresh"] == 6


def test_a_larger_sample_holds_the_smaller(kitchen: Path) -> None:
    """A sample depends on the seed alone, and a split's first rows are the smaller sample."""
    smaller, larger = (made(kitchen, "--sample", str(n), "--seed", "7", folder=f"sample{n}") for n in (1, 2))
    first = lines(smaller / "jsonl" / "statements-head.jsonl")

    assert lines(larger / "jsonl" / "statements-head.jsonl")[:1] == first
    assert len(statements(larger)) == 4
    assert metadata(larger)["left_out"]["not_in_the_sample"] == 3


def test_a_sample_of_0_takes_all(kitchen: Path) -> None:
    """As for probing and for sheets."""
    every, without = (made(kitchen, *options, folder=f"all{len(options)}") for options in (("--sample", "0"), ()))

    assert metadata(every) == metadata(without)


def test_only_the_rules_named_are_taken(kitchen: Path) -> None:
    """`--rule` chooses; one that the knowledge base does not hold is an error."""
    folder = made(kitchen, "--rule", "before", "--format", "jsonl")

    assert {row["rule"] for row in lines(folder / "jsonl" / "statements-long_tail.jsonl")} == {"before"}
    assert not (folder / "jsonl" / "statements-head.jsonl").exists()
    assert "no rule 'nonesuch'" in fault(kitchen, "--rule", "nonesuch", folder="x")


def test_experiments_are_left_out_unless_named(kitchen: Path) -> None:
    """Statements that a search without its critic alone has are no part of a dataset; `--run` brings them."""
    with KnowledgeBase(kitchen) as kb:
        kb.start_run(RunRecord("loose", "search", {"critic": False, "likelihood": "model"}, "loose", "2026-01-03"))
        loose = (replace(allergy(HEAD, "milk", dish, -1.0), run_id="loose") for dish in ("guacamole", "gravel"))
        kb.add_statements(loose)
    whole, named = made(kitchen, folder="whole"), made(kitchen, "--run", "loo", folder="named")

    assert ("head", "gravel") not in dishes(whole)
    assert metadata(whole)["left_out"]["other_runs"] == 1
    assert {row["run"] for row in statements(whole) if row["rule"] == "allergy"} == {"run"}
    assert {row["substitution"][1]["value"] for row in statements_of(named)} == {"guacamole", "gravel"}
    assert "no run whose id begins with 'x'" in fault(kitchen, "--run", "x", folder="x")


def test_rows_do_not_depend_on_how_many_are_read_at_a_time(kitchen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small chunks, shards and row groups give the same rows, in several shards with one total in their names."""
    whole = made(kitchen, folder="whole")
    monkeypatch.setattr(selection, "CHUNK", 2)
    monkeypatch.setattr(shards, "ROWS_PER_GROUP", 1)
    monkeypatch.setattr(shards, "ROWS_PER_SHARD", 2)
    parts = made(kitchen, folder="parts")
    names = sorted(path.name for path in (parts / "data").iterdir())

    assert statements(parts) == statements(whole)
    assert "long_tail-00000-of-00002.parquet" in names
    assert "long_tail-00001-of-00002.parquet" in names
    assert parquet.read_table(parts / "data").num_rows == parquet.read_table(whole / "data").num_rows == 7


# --- what is left out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "blocked"),
    [
        ("# a comment\n\nFONDUE\n", {"fondue"}),
        ("potato\n", set()),
        ("mashed   potatoes\n", {"mashed potatoes"}),
        ("/potato/\n", {"mashed potatoes"}),
        ("/^g.*[ea]$/\n", {"guacamole", "gianduja"}),
        ("ｆｏｎｄｕｅ\n", {"fondue"}),
        ("person\n", set()),
        ("nuts\n", {"gianduja", "marzipan"}),
    ],
)
def test_block_list_leaves_out_what_it_names(kitchen: Path, listed: str, blocked: set[str]) -> None:
    """Terms match whole words whatever their case, patterns anything; the card counts what went."""
    (kitchen.parent / "blocked.txt").write_text(listed, encoding="utf-8")
    everything = dishes(made(kitchen, "--format", "jsonl", folder="all"))
    folder = made(kitchen, "--format", "jsonl", "--format", "hf", "--blocked", str(kitchen.parent / "blocked.txt"))
    gone = everything - dishes(folder)

    assert {dish for _, dish in gone} == blocked
    assert metadata(folder)["left_out"]["blocked"] == len(gone)
    assert (f"- {len(gone)} contain a term of the block list" in (folder / "README.md").read_text("utf-8")) == bool(
        gone
    )


def test_facts_of_blocked_statements_go_with_them(kitchen: Path) -> None:
    """No file of the dataset holds a blocked word."""
    (kitchen.parent / "blocked.txt").write_text("gianduja\n", encoding="utf-8")
    folder = made(kitchen, "--blocked", str(kitchen.parent / "blocked.txt"), "--format", "jsonl", "--format", "lint")

    assert [name for name, content in files(folder).items() if b"gianduja" in content] == []


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (b"fine\n/(/\n", "blocked.txt:2: /(/ is not a valid regular expression"),
        (b"\xff\xfe\n", "this is not UTF-8"),
    ],
)
def test_faulty_block_list_is_told(kitchen: Path, listed: bytes, message: str) -> None:
    """Place, fact and remedy; nothing is written."""
    (kitchen.parent / "blocked.txt").write_bytes(listed)

    assert message in fault(kitchen, "--blocked", str(kitchen.parent / "blocked.txt"))
    assert not (kitchen.parent / "out").exists()


def test_nothing_left_is_an_error(kitchen: Path, tmp_path: Path) -> None:
    """A list that blocks everything, a knowledge base without statements, and one that is not there."""
    (tmp_path / "blocked.txt").write_text("/./\n", encoding="utf-8")
    with KnowledgeBase(tmp_path / "empty.db"):
        pass

    assert "all 7 statements were left out" in fault(kitchen, "--blocked", str(tmp_path / "blocked.txt"))
    assert "holds no statement for a dataset" in fault(tmp_path / "empty.db")
    assert "there is no such knowledge base" in fault(tmp_path / "absent.db")


# --- Parquet and the card ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [STATEMENTS, PROBES, FACTS, ANNOTATIONS], ids=lambda table: table.name)
def test_parquet_and_jsonl_hold_the_same(kitchen: Path, table: DatasetTable) -> None:
    """Row for row; only proofs, whose shape no column can have, are JSON text in Parquet."""
    vote(kitchen, "fondue", "entailment", "yes")
    folder = made(kitchen)
    place = folder / ("data" if table is STATEMENTS else table.name)
    splits = ["train"] if table in (FACTS, ANNOTATIONS) else ["head", "long_tail"]
    for split in splits:
        found = parquet.read_table(place / f"{split}-00000-of-00001.parquet").to_pylist()
        for row in found:
            row |= {name: json.loads(row[name]) for name in ("proof", "other_proofs") if name in row}
        name = table.name if split == "train" else f"{table.name}-{split}"
        assert found == lines(folder / "jsonl" / f"{name}.jsonl")
        assert [list(row) for row in found[:1]] == [[column.name for column in table.columns]]


def test_card_names_every_file_and_counts_every_row(kitchen: Path) -> None:
    """Each configuration's files are there and hold as many rows as its head says; an empty table is left out."""
    folder = made(kitchen, "--format", "hf")
    head = front_matter(folder)
    counts = {
        (config["config_name"], split["name"]): split["num_examples"]
        for config in head["dataset_info"]
        for split in config["splits"]
    }
    row_counts = {
        (config["config_name"], part["split"]): sum(
            parquet.read_metadata(path).num_rows for path in folder.glob(part["path"])
        )
        for config in head["configs"]
        for part in config["data_files"]
    }

    assert row_counts == counts
    assert {config for config, _ in counts} == {"statements", "facts", "probes"}
    assert counts["probes", "head"] == 13 * counts["statements", "head"] == 39
    assert "license" not in head
    assert head["size_categories"] == ["n<1K"]


def test_card_tells_what_was_measured_and_nothing_else(kitchen: Path) -> None:
    """Table 16's layout, delta, what the critic refused, the models, and that nobody has judged the statements."""
    text = (made(kitchen, "--format", "hf") / "README.md").read_text("utf-8")

    assert "| temporal | 1 | 0 | 1 | n/a |" in text
    assert "| outcomes and effects | 1 | 3 | 3 | 2.67 |" in text
    assert "| total | 2 | 3 | 4 | 2.67 |" in text
    assert "| critic | 6 | 16.67 (3.0 to 56.4) |" in text
    assert "| run | search | done | writer@1 | judge@2 | writer@1 | counter@3 |" in text
    assert "Nobody has judged these statements." in text
    assert "# license: the owner of the data chooses one" in text
    assert "Do not use these statements as advice." in text


def test_hostile_names_stay_text_on_the_card(tmp_path: Path) -> None:
    """A model's name or a value with Markdown, HTML or a line of dashes changes nothing of the page around it."""
    with KnowledgeBase(tmp_path / "hostile.db") as kb:
        fill(kb, [allergy(HEAD, "milk\n---\n<b>", "x|y](http://e.vil)\n# big", -1.0)])
        names = ["a|b", "<script>", "[c](d)", "`e`\n---"]
        kb.start_run(RunRecord("run", "search", {"models": names, "likelihood": "model"}, "run", "2026"))
    folder = made(tmp_path / "hostile.db")
    text = (folder / "README.md").read_text("utf-8")
    page = [line for line in text.splitlines() if "script" in line]

    assert "\n# big" not in text
    assert "<script>" not in text
    assert "a\\|b | &lt;script> | \\[c\\](d) | \\`e\\` ---" in page[0]
    assert front_matter(folder)["pretty_name"] == "out"
    assert statements_of(folder)[0]["substitution"][1]["value"] == "x|y](http://e.vil)\n# big"


def statements_of(folder: Path) -> list[dict[str, Any]]:
    return lines(folder / "jsonl" / "statements-head.jsonl")


def test_rules_come_along_and_can_be_read(kitchen: Path) -> None:
    """The rules with predicates and types load and pass `check`; a computed predicate, whose comparison is lost, is given."""
    folder = made(kitchen, "--format", "hf")
    library = load_library([folder / "rules.rules"])
    original = parse_library([("kitchen.rules", RULES)])

    assert [str(rule) for rule in library.rules] == [str(rule) for rule in original.rules]
    assert library.subtypes == (("Dish", "Food"),)
    assert [finding for finding in check_library(library) if finding.severity == "error"] == []
    assert library.signature("is_earlier_than/2").kind.value == "given"
    assert "# is_earlier_than/2 was computed" in (folder / "rules.rules").read_text("utf-8")


# --- formats ----------------------------------------------------------------------------------------------------------


class ConclusionSink(Sink):
    """A format of its own: the conclusions, a line each."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.conclusions: list[str] = []

    def take(self, entry: Entry) -> None:
        self.conclusions.append(entry.record.conclusion)

    def finish(self, source: DatasetSource) -> None:
        (self.folder / f"{self.name}.txt").write_text("\n".join(self.conclusions), encoding="utf-8")
        self.notes.append("conclusions without premises")


def test_a_format_is_a_sink_and_a_line(kitchen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that is named in FORMATS is opened, gets every statement, and its notes are reported."""
    monkeypatch.setitem(FORMATS, "conclusions", DatasetFormat(f"{__name__}:ConclusionSink"))
    with KnowledgeBase(kitchen) as kb:
        summary = build(kb, Target(kitchen.parent / "out", ("conclusions",), "mine"), SelectionOptions(shared=True))
        conclusions = {record.conclusion for record in kb.statements()}

    assert set((kitchen.parent / "out" / "mine.txt").read_text("utf-8").splitlines()) == conclusions
    assert metadata(kitchen.parent / "out")["formats"] == ["conclusions"]
    assert "conclusions without premises" in summary.notes


def test_the_page_describes_every_format() -> None:
    """docs/dataset.md has a row for each choice of --format, and the command offers them all."""
    page = (Path(__file__).parent.parent / "docs" / "dataset.md").read_text("utf-8")
    (option,) = (parameter for parameter in cli.dataset.dataset.params if parameter.name == "formats")

    assert set(option.type.choices) == set(FORMATS)
    assert [name for name in FORMATS if f"| `{name}` |" not in page] == []


# --- LINT -------------------------------------------------------------------------------------------------------------


def test_lint_files_come_back_by_the_import(kitchen: Path, tmp_path: Path) -> None:
    """`evaluate lint` reads rules, values and turned labels, and has the same statements."""
    vote(kitchen, "guacamole", "entailment", "no")
    folder = made(kitchen, "--format", "lint", "--judged", "mark")
    result = invoke(
        "evaluate", "lint", folder / "lint", "--rules", folder / "lint" / "rules.json", "--db", tmp_path / "again.db"
    )
    with KnowledgeBase(kitchen) as before_, KnowledgeBase(tmp_path / "again.db") as after:
        texts_by_kb = [
            sorted((record.rule, record.distribution, record.text) for record in kb.statements())
            for kb in (before_, after)
        ]
        (turned,) = {vote.statement_id for vote in after.votes()}
        texts = {record.id: record.text for record in after.statements()}

    assert result.exit_code == 0, result.output
    assert texts_by_kb[0] == texts_by_kb[1]
    assert texts[turned].endswith("not able to eat guacamole.")
    assert "P,A,B" not in (folder / "lint" / "allergy_value_cache.csv_head").read_text("utf-8")


COMPARED = """
@name elsewhere
was_in(Person X, Year A) & was_in(Person X, Year B) & A \\= B -> is_not_able_to_eat(Person X, Year B).
"""


def test_the_commands_of_the_page_read_lint_back(
    kitchen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/dataset.md writes LINT and reads it back, with rules that LINK's JSON cannot hold."""
    library = parse_library([("compared.rules", RULES + COMPARED)])
    with KnowledgeBase(kitchen) as kb:
        rule = library.rule("elsewhere")
        kb.add_rules([RuleRecord(rule.name, str(rule))])
        record = before(HEAD, 1900, "unused", 1901)
        kb.add_statements([replace(record, rule="elsewhere", substitution=(("A", 1900), ("B", 1901)))])
        written = {(record.rule, record.distribution, record.substitution) for record in kb.statements()}
    page = (Path(__file__).parent.parent / "docs" / "dataset.md").read_text("utf-8")
    section = page.partition("## LINT's files")[2]
    commands = section.split("```")[1].strip().splitlines()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAPAX_DB", str(kitchen))
    for command in commands:
        result = invoke(*shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
    with KnowledgeBase(tmp_path / "again.db") as kb:
        read = {(record.rule, record.distribution, record.substitution) for record in kb.statements()}

    assert len(commands) == 2
    assert "elsewhere" not in (tmp_path / "csv_lint" / "lint" / "rules.json").read_text("utf-8")
    assert {key[:2] for key in read} == {key[:2] for key in written}
    assert len(read) == len(written)


VALUE = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="_"), min_size=1, max_size=12)


@settings(max_examples=cases(6), deadline=None)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=5, unique=True))
def test_any_value_comes_back_from_lint(pairs: list[tuple[str, str]]) -> None:
    """Commas, quotation marks and letters of any script; LINT's form itself has no underscores and single blanks."""
    with KnowledgeBase() as kb, tempfile.TemporaryDirectory() as place:
        fill(kb, [allergy(HEAD, allergen, dish, None) for allergen, dish in pairs])
        folder = Path(place) / "out"
        build(kb, Target(folder, ("lint",)), SelectionOptions())
        (read,) = LintReader(load_library([folder / "lint" / "rules.json"]), folder / "lint").files()

        assert sorted(record.text for record in read.statements) == sorted(record.text for record in kb.statements())


def test_rules_that_lint_cannot_hold_are_told(tmp_path: Path) -> None:
    """A comparison does not fit LINK's JSON, and a name with a slash no file: nothing is written outside the folder."""
    rules = """
@name years
was_in(Person X, Year A) & was_in(Person X, Year B) & A < B -> likes(Person X, Year B).
@name "../../escaped"
was_in(Person X, Year A) & is_after(Year B, Year A) -> likes(Person X, Year B).
"""
    library = parse_library([("odd.rules", rules)])
    with KnowledgeBase(tmp_path / "odd.db") as kb:
        kb.add_rules(RuleRecord(rule.name, str(rule)) for rule in library.rules)
        kb.add_predicates(map(PredicateRecord.of, library.completed().signatures))
        proof = Proof(Literal(Atom("likes", (Constant("a"), Constant(2)))), By.GIVEN).to_json()
        kb.add_statements(
            StatementRecord(rule.name, HEAD, "run", (("A", 1), ("B", 2)), f"p {rule.name}", "c", "", proof)
            for rule in library.rules
        )
    result = run(tmp_path / "odd.db", "--format", "lint")
    names = set(files(tmp_path / "out"))

    assert result.exit_code == 0, result.output
    assert "lint/rules.json cannot hold 1 rule: years (a comparison)." in result.stderr
    assert "rule ../../escaped is left out, because no file can have its name" in result.stderr
    assert names == {"metadata.json", "rules.rules", "lint/rules.json", "lint/years_value_cache.csv_head"}
    assert sorted(path.name for path in tmp_path.iterdir() if "escaped" in path.name) == []


# --- tasks for other programs -----------------------------------------------------------------------------------------


class Tagged(yaml.SafeLoader):
    """Reads `!function` as the harness does, as a name."""


Tagged.add_constructor("!function", lambda loader, node: f"!{loader.construct_scalar(node)}")


def test_harness_tasks_name_files_and_functions_that_are_there(kitchen: Path) -> None:
    """Groups name their tasks, tasks the questions beside them, and every function is in utils.py."""
    folder = made(kitchen, "--format", "lm-eval", "--name", "kitchen") / "lm_eval"
    texts = {path.name: path.read_text("utf-8") for path in folder.iterdir() if "yaml" in path.name}
    trees = {name: yaml.load(text, Tagged) for name, text in texts.items()}  # noqa: S506 - a SafeLoader of our own
    base = trees["_base_yaml"]
    named = [
        base["custom_dataset"],
        base["process_results"],
        *(metric["aggregation"] for metric in base["metric_list"]),
    ]
    spec = importlib.util.spec_from_file_location("utils", folder / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)

    assert trees["kitchen.yaml"]["task"] == ["kitchen_head", "kitchen_long_tail"]
    assert {f"{task}.yaml" for group in ("kitchen", "kitchen_critic") for task in trees[f"{group}.yaml"]["task"]} < set(
        trees
    )
    assert (folder / trees["kitchen_head.yaml"]["dataset_kwargs"]["data_file"]).exists()
    assert all(hasattr(utils, name.removeprefix("!utils.")) for name in named if name.startswith("!"))
    assert trees["kitchen_critic_head.yaml"]["doc_to_choice"] == ["yes", "no"]
    assert base["metadata"] == {"version": 1.0}


@settings(max_examples=cases(5), deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=13, max_size=13), min_size=1, max_size=6), st.integers(0, 12))
def test_harness_metrics_are_those_of_the_probing(rights: list[list[bool]], cut: int) -> None:
    """All 13, positive, negative, accuracy and each template give what `evaluate probe` gives; a cut statement is none."""
    answers, results = [], []
    for number, row in enumerate(rights):
        polarity = Polarity.POSITIVE if number % 2 else Polarity.NEGATIVE
        item = ProbeItem(str(number), "r", "temporal", HEAD, "p", "c", "n", "q", polarity, entailed=number % 3 != 0)
        for template, right in zip(TEMPLATES, row, strict=True):
            label = template.label(item)
            answers.append(ProbeAnswer(item, template, "", ParsedReply(label == right), ""))
            doc = {"statement": str(number), "template": template.number, "label": 0 if label else 1}
            scores = [(-1.0, False), (-2.0, False)]
            results.append(shipped_lm_eval.process_results(doc, scores if label == right else scores[::-1]))
    part = measure(answers)
    cell = part.cell(TOTAL, HEAD)
    extra = [{**result, "all_13": ("cut", 1, 0, False)} for result in results[:cut]]

    def figure(name: str) -> float:
        found: float = getattr(shipped_lm_eval, name)([result[name] for result in results])
        return found

    assert figure("all_13") == pytest.approx(cell.every.value)
    assert figure("positive") == pytest.approx(cell.positive.value)
    assert figure("negative") == pytest.approx(cell.negative.value)
    assert sum(result["acc"] for result in results) / len(results) == pytest.approx(cell.accuracy.value)
    for asked in part.templates[::2]:
        assert figure(f"template_{asked.template:02}") == pytest.approx(asked.accuracy.value)
    assert shipped_lm_eval.all_13([result["all_13"] for result in [*results, *extra]]) == figure("all_13")


def test_harness_metrics_of_nothing_are_not_a_number() -> None:
    """A limit below 13 leaves no whole statement, so there is nothing to say."""
    assert str(shipped_lm_eval.all_13([("a", 1, 0, True)])) == "nan"
    assert str(shipped_lm_eval.template_05([])) == "nan"


def test_inspect_samples_have_its_fields(kitchen: Path) -> None:
    """Input, two choices, the letter of the right one, an id of its own, and what groups the samples."""
    folder = made(kitchen, "--format", "inspect") / "inspect"
    samples = lines(folder / "head.jsonl")
    questions = lines(made(kitchen, "--format", "jsonl", folder="rows") / "jsonl" / "probes-head.jsonl")

    assert {tuple(sample) for sample in samples} == {("input", "choices", "target", "id", "metadata")}
    assert len({sample["id"] for sample in samples}) == len(samples) == 39
    assert [sample["input"].endswith(row["question"]) for sample, row in zip(samples, questions, strict=True)] == [
        True
    ] * 39
    assert [sample["choices"]["AB".index(sample["target"])] for sample in samples] == [
        r["answers"][r["label"]] for r in questions
    ]
    assert {sample["metadata"]["template"] for sample in samples} == set(range(1, 14))
    assert (folder / "task.py").exists()


# --- the folder -------------------------------------------------------------------------------------------------------


def test_the_same_knowledge_base_gives_the_same_bytes(kitchen: Path) -> None:
    """All formats, byte for byte; the order of writing into the knowledge base does not show in rows."""
    with KnowledgeBase(kitchen.parent / "other.db") as kb:
        fill(kb, [*(allergy(*dish) for dish in KITCHEN[::-1]), before(TAIL, 1876, "sushi burrito", Decimal("2005.5"))])
    first, second = (made(kitchen, "--name", "same", folder=folder) for folder in ("one", "two"))

    assert files(first) == files(second)
    assert statements(made(kitchen.parent / "other.db", folder="three")) == statements(first)


def test_a_folder_with_something_in_it_is_left_alone(kitchen: Path) -> None:
    """A file, a folder of other things, and a dataset without --force are refused; an empty folder will do."""
    (kitchen.parent / "file").write_text("mine", encoding="utf-8")
    (kitchen.parent / "mine").mkdir()
    (kitchen.parent / "mine" / "note").write_text("mine", encoding="utf-8")
    (kitchen.parent / "empty").mkdir()

    assert "this is a file" in fault(kitchen, folder="file")
    assert "holds no dataset" in fault(kitchen, "--force", folder="mine")
    assert files(kitchen.parent / "mine") == {"note": b"mine"}
    assert made(kitchen, folder="empty")
    assert "already holds another dataset" in fault(kitchen, "--rule", "before", folder="empty")
    assert "its folder does not exist" in fault(kitchen, folder="a/b")


def test_the_same_command_may_be_given_again(kitchen: Path) -> None:
    """Killed when all was written, a dataset does not refuse its own command."""
    old = files(made(kitchen))

    assert files(made(kitchen)) == old


def test_force_replaces_the_whole_dataset(kitchen: Path) -> None:
    """No file of the older one is left."""
    made(kitchen)
    folder = made(kitchen, "--force", "--format", "jsonl", "--rule", "before")

    assert set(files(folder)) == {
        "metadata.json",
        "rules.rules",
        "jsonl/statements-long_tail.jsonl",
        "jsonl/probes-long_tail.jsonl",
    }


@pytest.mark.parametrize("force", [False, True])
def test_a_failure_leaves_everything_as_it_was(kitchen: Path, monkeypatch: pytest.MonkeyPatch, force: bool) -> None:
    """An older dataset stays, and no incomplete one appears."""
    if force:
        made(kitchen)
    old = files(kitchen.parent / "out")

    def fails(*_: object) -> str:
        raise HapaxError("no card today")

    monkeypatch.setattr("hapax.evaluation.dataset.card.card", fails)

    assert "no card today" in fault(kitchen, "--force")
    assert files(kitchen.parent / "out") == old
    assert {path.name for path in kitchen.parent.iterdir() if path.is_dir()} == ({"out"} if force else set())


def test_a_name_that_no_task_can_have_is_refused(kitchen: Path) -> None:
    """Task names become files and command line words."""
    assert "'../x' cannot begin the names of tasks" in fault(kitchen, "--name", "../x")


def test_json_prints_the_metadata(kitchen: Path) -> None:
    """The command prints what the dataset's own file tells."""
    result = run(kitchen, "--json")

    assert json.loads(result.stdout) == metadata(kitchen.parent / "out")
    assert json.loads(result.stdout)["runs"][0]["settings"]["models"][1] == "judge@2"


def test_csv_cells_are_values_in_the_rules_order(kitchen: Path) -> None:
    """A column for each variable, the generic one as statements call it."""
    folder = made(kitchen, "--format", "lint")
    with (folder / "lint" / "before_value_cache.csv_longtail").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [["X", "A", "B", "Y"], ["PersonX", "1876", "sushi burrito", "2005.5"]]


# --- as others read it ------------------------------------------------------------------------------------------------

MODEL = Path(cli.__file__).parent / "llm_oracle" / "embedded" / "model"

LOAD = """
import sys, datasets
for name in datasets.get_dataset_config_names(sys.argv[1]):
    loaded = datasets.load_dataset(sys.argv[1], name)
    for split, rows in loaded.items():
        print("loaded", name, split, rows.num_rows)
"""

ASK = """
import sys
sys.path.insert(0, sys.argv[1])
import task
from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, ModelUsage, get_model
yes = ModelOutput.from_content("mockllm/model", "ANSWER: A")
yes.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
(log,) = run(task.head(), model=get_model("mockllm/model", custom_outputs=[yes] * 100), log_dir=sys.argv[2], display="none")
print(log.status, {name: one.value for score in log.results.scores for name, one in score.metrics.items()})
"""


def python(place: Path, *words: str | Path) -> str:
    """The output of another Python process, without network and with its caches in the test's folder."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(
        command, cwd=place, env={**os.environ, **offline}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.harness
def test_datasets_loads_every_configuration(kitchen: Path) -> None:
    """The Hugging Face library reads the folder by its card, with the sizes that the card tells."""
    vote(kitchen, "fondue", "entailment", "yes")
    folder = made(kitchen)
    printed = python(kitchen.parent, "-c", LOAD, folder)
    sizes = {
        f"loaded {config['config_name']} {split['name']} {split['num_examples']}"
        for config in front_matter(folder)["dataset_info"]
        for split in config["splits"]
    }

    assert "Ignoring part of dataset_info" not in printed
    assert {line for line in printed.splitlines() if line.startswith("loaded")} == sizes
    assert len(sizes) == 6


@pytest.mark.harness
@pytest.mark.embedded
@pytest.mark.timeout(900)
def test_harness_runs_the_tasks_and_agrees_with_the_probing(kitchen: Path) -> None:
    """`lm-eval` takes the folder for valid, runs it offline, and measures of the critic's words what we measure."""
    vote(kitchen, "guacamole", "entailment", "no")
    folder = made(kitchen, "--judged", "mark") / "lm_eval"
    tasks = ("--tasks", "hapax,hapax_critic", "--include_path", folder)
    model = ("--model", "hf", "--model_args", f"pretrained={MODEL},add_bos_token=True", "--device", "cpu")
    valid = python(kitchen.parent, "-m", "lm_eval", "validate", *tasks)
    python(kitchen.parent, "-m", "lm_eval", "run", *model, *tasks, "--output_path", "results", "--batch_size", "16")
    (found,) = (kitchen.parent / "results").rglob("results_*.json")
    theirs = json.loads(found.read_text("utf-8"))["results"]
    command = ["evaluate", "probe", "--sample", "0", "--db", str(kitchen), "--json"]
    ours = json.loads(invoke(*command).stdout)
    total = {line["distribution"]: line for line in ours["table_4"] if line["domain"] == TOTAL}

    assert "All tasks found and valid" in valid
    for distribution in Distribution:
        measured = theirs[f"hapax_critic_{distribution.value}"]
        assert measured["acc,none"] == pytest.approx(total[distribution.value]["accuracy"]["value"])
        assert measured["negative,none"] == pytest.approx(total[distribution.value]["negative"]["value"])
        assert measured["all_13,none"] == pytest.approx(total[distribution.value]["every"]["value"])
        for figures in ours["templates"]:
            if figures["distribution"] == distribution.value:
                assert measured[f"template_{figures['template']:02},none"] == pytest.approx(
                    figures["accuracy"]["value"]
                )
    assert theirs["hapax"].keys() >= {"acc,none", "all_13,none"}


@pytest.mark.harness
def test_inspect_runs_its_tasks(kitchen: Path) -> None:
    """A model that always says the positive answer is right where it is, and right on no whole statement."""
    printed = python(kitchen.parent, "-c", ASK, made(kitchen) / "inspect", "logs")

    assert printed.startswith("success")
    assert "'template 1': 1.0" in printed
    assert "'template 8': 0.0" in printed
    assert "'all_13': 0.0" in printed
