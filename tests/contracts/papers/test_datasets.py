"""`dataset`: a knowledge base as rows in four formats, with a card that says what was made and left out."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_fixture import run
from papers_fixture import KITCHEN, bring, fault, inspected, judge, lines, loaded, python, script, search, told
from pyarrow import parquet

import hapax

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bring(tmp_path_factory.mktemp("kitchen") / "kb.db")


@pytest.fixture
def kitchen(brought: Path, tmp_path: Path) -> Path:
    """Seven imported statements of two rules; fondue is in both distributions."""
    shutil.copy(brought, tmp_path / "kb.db")
    return tmp_path / "kb.db"


@pytest.fixture(scope="module")
def whole(brought: Path) -> Path:
    """A dataset of all of them, in all formats."""
    return made(brought, folder="whole")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base with a search of two rules."""
    database = tmp_path_factory.mktemp("searched") / "kb.db"
    search(database)
    return database


def made(database: Path, *options: object, folder: str = "out") -> Path:
    """A dataset with statements of both distributions kept, unless the options say otherwise."""
    both = () if "--in-both" in options else ("--in-both", "keep")
    run("data", "dataset", database.parent / folder, "--db", database, *both, *options)
    return database.parent / folder


def refused(database: Path, *options: object, folder: str = "out") -> str:
    return fault("data", "dataset", database.parent / folder, "--db", database, "--in-both", "keep", *options)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("jsonl/statements-*.jsonl")) for row in lines(path)]


def dishes(folder: Path) -> dict[str, dict[str, Any]]:
    """Rows by the dish that they are about."""
    return {
        next(value["value"] for value in row["substitution"] if value["variable"] == "B"): row for row in rows(folder)
    }


def metadata(folder: Path) -> Any:
    return json.loads((folder / "metadata.json").read_text("utf-8"))


def card(folder: Path) -> str:
    return (folder / "README.md").read_text("utf-8")


def front_matter(folder: Path) -> Any:
    return yaml.safe_load(card(folder).split("---\n", 2)[1])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Rows


def test_a_row_says_everything_of_its_statement(searched: Path) -> None:
    """Words, label, values, scores, P(yes) of each fact, proof, word frequency and who did it."""
    row = next(row for row in rows(made(searched)) if "dalasi" in row["conclusion"])
    expected = {
        "premise": "PersonX lives in Banjul",
        "conclusion": "PersonX can pay with the dalasi",
        "negation": "PersonX cannot pay with the dalasi",
        "question": "can PersonX pay with the dalasi",
        "rule": "currency",
        "domain": "locational",
        "polarity": "positive",
        "label": "entailment",
        "label_source": "rule",
        "judgement": None,
        "least_probability": 0.95,
        "sources": ["assumption", "fact"],
    }

    assert expected.items() <= row.items()
    values = {value["variable"]: (value["data_type"], value["value"], value["kind"]) for value in row["substitution"]}
    assert values["B"] == ("Currency", "dalasi", "text")
    facts = ["Banjul is a city in The Gambia", "The Gambia uses the dalasi"]
    assert [(fact["fact"], fact["source"], fact["probability"]) for fact in row["facts"]] == [
        (fact, "model", 0.95) for fact in facts
    ]
    assert "The Gambia uses the dalasi  [fact]" in row["proof_text"]
    roles = ("knowledge", "critic", "likelihood", "evaluator")
    assert {row[f"{role}_model"].partition("@")[0] for role in roles} == {"scripted/script.json"}
    assert row["rarest_word_zipf"] < 2


def test_votes_turn_labels_and_leave_statements_out(kitchen: Path) -> None:
    """A denied entailment turns the label and its answers; wrong types and harm leave the statement out, counted."""
    answers = {"entailment": "guacamole", "data type B": "mashed potatoes", "harmful": "gianduja"}
    no = {(dish, question): "yes" if question == "harmful" else "no" for question, dish in answers.items()}
    judge(kitchen, "AnnSmith", no)
    folder = made(kitchen, "--judged", "mark")
    labels = {dish: (row["label"], row["label_source"]) for dish, row in dishes(folder).items()}
    probes = {row["question"]: row["answers"][row["label"]] for row in lines(folder / "jsonl" / "probes-head.jsonl")}

    assert labels.keys() == {"guacamole", "fondue", "marzipan", "sushi burrito"}
    assert labels["guacamole"] == ("contradiction", "votes")
    assert labels["marzipan"] == ("entailment", "votes")
    asked = "Is it true that if PersonX is allergic to milk, PersonX is not able to eat {}."
    assert (probes[asked.format("guacamole")], probes[asked.format("fondue")]) == ("No", "Yes")
    assert {"wrong_type": 1, "harmful": 1}.items() <= metadata(folder)["left_out"].items()
    assert {vote["annotator"] for vote in lines(folder / "jsonl" / "annotations.jsonl")} == {1}
    assert b"AnnSmith" not in b"".join(files(folder).values())


def test_statements_with_one_text_are_one_row_with_all_proofs(tmp_path: Path) -> None:
    """The row has the other proofs, a vote on any of the statements is one on the text, and questions are not doubled.
    A year is an integer and 2005.5 a decimal, told as texts; models that nobody asked are null."""
    values = {("before", "longtail"): [("1876", "sushi", year) for year in ("2005.5", "1990", "2000")]}
    database = bring(tmp_path / "kb.db", values)
    judge(database, "ann", {("sushi", "entailment"): "no"})
    folder = made(database, "--judged", "mark")
    (row,) = rows(folder)
    years = [proof["substitution"][3] for proof in (row, *row["other_proofs"])]

    kinds = {"1990": "integer", "2000": "integer", "2005.5": "decimal"}
    assert {year["value"]: year["kind"] for year in years} == kinds
    assert row["label"] == "contradiction"
    assert len(lines(folder / "jsonl" / "probes-long_tail.jsonl")) == 13
    assert metadata(folder)["repeats"] == 2
    assert row["evaluator_model"].startswith("scripted/evaluator.json")
    assert (row["critic_model"], row["facts"]) == (None, [])


# What is taken


def test_rules_runs_and_samples_are_chosen(kitchen: Path, whole: Path) -> None:
    """A sample depends on the seed alone, and a split's first rows are the smaller sample; `--rule` and `--run` choose,
    and what the knowledge base does not hold is an error. Texts of both distributions are left out unless they are
    kept."""
    smaller, larger = (made(kitchen, "--sample", n, "--seed", 7, folder=f"sample{n}") for n in (1, 2))
    head = [lines(folder / "jsonl" / "statements-head.jsonl") for folder in (smaller, larger)]
    before = made(kitchen, "--rule", "before", "--format", "jsonl")
    neither = made(kitchen, "--in-both", "leave-out", folder="neither")
    hapax.KnowledgeBase(kitchen.parent / "empty.db").close()

    assert head[1][:1] == head[0]
    assert len(rows(larger)) == 4
    assert metadata(larger)["left_out"]["not_in_the_sample"] == 3
    assert rows(made(kitchen, "--sample", 0, folder="all")) == rows(whole)
    assert set(dishes(before)) == {"sushi burrito"}
    assert not (before / "jsonl" / "statements-head.jsonl").exists()
    assert "nonesuch" in refused(kitchen, "--rule", "nonesuch", folder="x")
    assert "'x'" in refused(kitchen, "--run", "x", folder="x")
    assert "no statement" in refused(kitchen.parent / "empty.db", folder="x")
    assert {row["distribution"] for row in rows(whole) if row["in_both"]} == {"head", "long_tail"}
    assert "fondue" not in dishes(neither)
    assert (metadata(neither)["left_out"]["shared"], metadata(whole)["in_both"]) == (2, 1)


def test_experiments_are_left_out_unless_named(searched: Path, tmp_path: Path) -> None:
    """Statements that a search without its critic alone has are no part of a dataset; `--run` brings them."""
    database = Path(shutil.copy(searched, tmp_path / "kb.db"))
    before = {row["conclusion"] for row in rows(made(database, folder="before"))}
    known = json.loads((searched.parent / "script.json").read_text("utf-8"))
    del known["generate"]["'Kyoto is a city in [B]'"]  # so that an even number of statements is left
    said = search(database, known, "--no-critic")
    plain, named = made(database, folder="plain"), made(database, "--run", said["run"][:8], folder="named")

    assert {row["conclusion"] for row in rows(plain)} == before
    assert metadata(plain)["left_out"]["other_runs"] > 0
    assert "PersonX can pay with the euro" in {row["conclusion"] for row in rows(named) if "Oslo" in row["premise"]}


@pytest.mark.parametrize(
    ("listed", "blocked"),
    [
        ("# a comment\n\nFONDUE\n", {"fondue"}),
        ("potato\n", set()),
        ("/potato/\n", {"mashed potatoes"}),
        ("/^g.*[ea]$/\n", {"guacamole", "gianduja"}),
        ("ｆｏｎｄｕｅ\n", {"fondue"}),
        ("person\n", set()),
        ("nuts\n", {"gianduja", "marzipan"}),
    ],
)
def test_a_block_list_leaves_out_what_it_names(kitchen: Path, whole: Path, listed: str, blocked: set[str]) -> None:
    """Terms match whole words whatever their case, patterns anything; no file holds a blocked word, the card counts."""
    (kitchen.parent / "blocked.txt").write_text(listed, "utf-8")
    folder = made(kitchen, "--format", "jsonl", "--format", "hf", "--blocked", kitchen.parent / "blocked.txt")
    gone = len(rows(whole)) - len(rows(folder))

    assert set(dishes(whole)) - set(dishes(folder)) == blocked
    assert metadata(folder)["left_out"]["blocked"] == gone
    assert (f"- {gone} contain a term of the block list" in card(folder)) == bool(gone)
    assert not [name for name, content in files(folder).items() for dish in blocked if dish.encode() in content]


@pytest.mark.parametrize(
    ("listed", "words"), [(b"fine\n/(/\n", "blocked.txt:2:"), (b"\xff\xfe\n", "UTF-8"), (b"/./\n", "7 statements")]
)
def test_faulty_block_lists_are_told_and_nothing_is_written(kitchen: Path, listed: bytes, words: str) -> None:
    """Place and fact; a list that blocks everything is an error, too. An older dataset stays whole."""
    old = files(made(kitchen, "--format", "jsonl"))
    (kitchen.parent / "blocked.txt").write_bytes(listed)

    assert words in refused(kitchen, "--blocked", kitchen.parent / "blocked.txt", folder="new")
    assert words in refused(kitchen, "--force", "--blocked", kitchen.parent / "blocked.txt")
    assert files(kitchen.parent / "out") == old
    assert [path.name for path in kitchen.parent.iterdir() if path.is_dir()] == ["out"]


# Tables and the card


def test_a_large_dataset_holds_every_statement_once(tmp_path: Path) -> None:
    """More statements than are read, or written into a group, at a time."""
    database = bring(tmp_path / "kb.db", {("allergy", "head"): [("milk", f"dish {number}") for number in range(1_050)]})
    folder = made(database, "--format", "jsonl", "--format", "hf")
    found = lines(folder / "jsonl" / "statements-head.jsonl")

    assert len({row["conclusion"] for row in found}) == len(found) == 1_050
    assert [row["id"] for row in parquet.read_table(folder / "data").to_pylist()] == [row["id"] for row in found]


def sizes(folder: Path) -> dict[tuple[str, str], int]:
    """Rows of each split of each configuration, as the card's head tells them."""
    return {
        (config["config_name"], split["name"]): split["num_examples"]
        for config in front_matter(folder)["dataset_info"]
        for split in config["splits"]
    }


def test_the_card_names_every_file_and_counts_every_row(whole: Path) -> None:
    """Each configuration's files are there and hold as many rows as its head says."""
    head, counts = front_matter(whole), sizes(whole)
    found = {
        (config["config_name"], part["split"]): sum(parquet.read_metadata(p).num_rows for p in whole.glob(part["path"]))
        for config in head["configs"]
        for part in config["data_files"]
    }

    assert found == counts
    assert counts["probes", "head"] == 13 * counts["statements", "head"] == 39
    assert "license" not in head


def test_the_card_tells_what_was_measured_and_nothing_else(whole: Path, searched: Path) -> None:
    """Table 16's layout, delta, the models, and that nobody has judged the statements."""
    text, other = card(whole), card(made(searched, "--format", "hf", folder="card"))

    assert "| temporal | 1 | 0 | 1 | n/a |" in text
    assert re.search(r"\| total \| 2 \| 3 \| 4 \| -?[\d.]+ \|", text)
    assert "Nobody has judged these statements." in text
    assert "# license: the owner of the data chooses one" in text
    assert "Do not use these statements as advice." in text
    assert "scripted/script.json" in other
    assert "**Circular:**" in other  # the script ranked and judged


def test_hostile_names_stay_text_on_the_card(tmp_path: Path) -> None:
    """A value with Markdown, HTML or a line of dashes changes nothing of the page around it."""
    database = bring(tmp_path / "kb.db", {("allergy", "head"): [("milk --- <b>", "x|y](http://e.vil) <script>")]})
    folder = made(database)
    page = [line for line in card(folder).splitlines() if not line.startswith("    ")]  # without blocks of code

    assert not [line for line in page if "<script>" in line or "<b>" in line or line.startswith("--- <")]
    assert front_matter(folder)["pretty_name"] == "out"
    assert list(dishes(folder)) == ["x|y](http://e.vil) <script>"]


def test_rules_come_along_and_can_be_read(whole: Path) -> None:
    """The rules with predicates and types load and pass `check`; a computed predicate, whose comparison is lost, is given."""
    library = hapax.load_rules(whole / "rules.rules")
    original = hapax.parse_rules(KITCHEN)

    assert {str(rule) for rule in library.rules} == {str(rule) for rule in original.rules if rule.name != "cook"}
    assert library.subtypes == (("Dish", "Food"),)
    assert "0 errors" in run("check", whole / "rules.rules").output
    assert "# is_earlier_than/2 was computed" in (whole / "rules.rules").read_text("utf-8")


# Tasks for other programs


class Tagged(yaml.SafeLoader):
    """Reads `!function` as the harness does, as a name."""


Tagged.add_constructor("!function", lambda loader, node: f"!{loader.construct_scalar(node)}")


def test_harness_tasks_name_files_and_functions_that_are_there(kitchen: Path) -> None:
    """Groups name their tasks, tasks the questions beside them, and every function is in utils.py."""
    folder = made(kitchen, "--format", "lm-eval", "--name", "kitchen") / "lm_eval"
    trees = {
        path.name: yaml.load(path.read_text("utf-8"), Tagged)  # noqa: S506 - a SafeLoader of our own
        for path in folder.iterdir()
        if "yaml" in path.name
    }
    base, utils = trees["_base_yaml"], loaded(folder / "utils.py")
    metrics = [metric["aggregation"] for metric in base["metric_list"]]
    tasks = [task for group in ("kitchen", "kitchen_critic") for task in trees[f"{group}.yaml"]["task"]]

    assert tasks[:2] == ["kitchen_head", "kitchen_long_tail"]
    assert {f"{task}.yaml" for task in tasks} < set(trees)
    assert (folder / trees["kitchen_head.yaml"]["dataset_kwargs"]["data_file"]).exists()
    for name in (base["custom_dataset"], base["process_results"], *metrics):
        assert not name.startswith("!") or hasattr(utils, name.removeprefix("!utils."))
    assert "'../x'" in refused(kitchen, "--name", "../x", folder="y")


def test_harness_metrics_are_those_of_the_probing(whole: Path, brought: Path, tmp_path: Path) -> None:
    """All 13, positive, negative, accuracy and each template give what `evaluate probe` gives of the same answers."""
    module = loaded(whole / "lm_eval" / "utils.py")
    documents, questions = lines(whole / "lm_eval" / "head.jsonl"), lines(whole / "jsonl" / "probes-head.jsonl")
    results, critic = [], {}
    for number, (document, row) in enumerate(zip(documents, questions, strict=True)):
        is_right, scores = number % 5 > 0 or number < 13, [(-1.0, True), (-2.0, False)]
        given = scores if is_right == (document["label"] == 0) else scores[::-1]
        results.append(module.process_results(document, given))
        critic[row["question"]] = 0.9 if (row["label"] == 0) == is_right else 0.1
    database = Path(shutil.copy(brought, tmp_path / "kb.db"))
    model = script(tmp_path / "s.json", yes=0.1, critic=critic)
    probed = told("evaluate", "probe", "-m", model, "--sample", 0, "--db", database)
    ours = next(row for row in probed["table_4"] if (row["domain"], row["distribution"]) == ("total", "head"))

    def theirs(name: str) -> float:
        return float(getattr(module, name)([result[name] for result in results]))

    assert theirs("all_13") == pytest.approx(ours["every"]["value"]) == pytest.approx(1 / 3)
    assert theirs("positive") == pytest.approx(ours["positive"]["value"])
    assert theirs("negative") == pytest.approx(ours["negative"]["value"])
    assert sum(result["acc"] for result in results) / len(results) == pytest.approx(ours["accuracy"]["value"])
    for row in probed["templates"]:
        if row["distribution"] == "head":
            assert theirs(f"template_{row['template']:02}") == pytest.approx(row["accuracy"]["value"])
    assert str(module.all_13([("a", 1, 0, True)])) == "nan"  # a limit left no whole statement


def test_inspect_samples_have_its_fields(whole: Path) -> None:
    """Input, two choices, the letter of the right one, an id of its own, and what groups the samples."""
    samples, questions = lines(whole / "inspect" / "head.jsonl"), lines(whole / "jsonl" / "probes-head.jsonl")

    assert {tuple(sample) for sample in samples} == {("input", "choices", "target", "id", "metadata")}
    assert len({sample["id"] for sample in samples}) == len(samples) == 39
    for sample, row in zip(samples, questions, strict=True):
        assert sample["input"].endswith(row["question"])
        assert sample["choices"]["AB".index(sample["target"])] == row["answers"][row["label"]]
    assert (whole / "inspect" / "task.py").exists()


# The folder


def test_a_folder_with_something_in_it_is_left_alone(kitchen: Path) -> None:
    """A file, a folder of other things, and another dataset without --force are refused; --force replaces a dataset
    whole. The same command again, such as after a kill at the very end, is no fault and writes the same bytes."""
    (kitchen.parent / "file").write_text("mine", "utf-8")
    for name in ("mine", "empty"):
        (kitchen.parent / name).mkdir()
    (kitchen.parent / "mine" / "note").write_text("mine", "utf-8")

    assert "file" in refused(kitchen, folder="file")
    assert "no dataset" in refused(kitchen, "--force", folder="mine")
    assert files(kitchen.parent / "mine") == {"note": b"mine"}
    assert "does not exist" in refused(kitchen, folder="a/b")
    first, second, again = (files(made(kitchen, "--name", "x", folder=name)) for name in ("one", "empty", "empty"))
    assert first == second == again
    assert "another dataset" in refused(kitchen, "--rule", "before", folder="empty")
    replaced = files(made(kitchen, "--force", "--format", "jsonl", "--rule", "before", folder="empty"))
    tables = {f"jsonl/{table}-long_tail.jsonl" for table in ("statements", "probes")}
    assert set(replaced) == {"metadata.json", "rules.rules", *tables}


# As others read it


LOAD = """
import sys, datasets
for name in datasets.get_dataset_config_names(sys.argv[1]):
    loaded = datasets.load_dataset(sys.argv[1], name)
    for split, rows in loaded.items():
        print("loaded", name, split, rows.num_rows)
"""


@pytest.mark.harness
def test_datasets_loads_every_configuration(kitchen: Path) -> None:
    """The Hugging Face library reads the folder by its card, with the sizes that the card tells."""
    judge(kitchen, "ann", {})
    folder = made(kitchen)
    printed = python(kitchen.parent, "-c", LOAD, folder)
    found = {line for line in printed.splitlines() if line.startswith("loaded")}

    assert "Ignoring part of dataset_info" not in printed
    assert found == {f"loaded {config} {split} {rows}" for (config, split), rows in sizes(folder).items()}


@pytest.mark.harness
def test_inspect_runs_its_tasks(kitchen: Path) -> None:
    """A model that always says the positive answer is right where it is, and right on no whole statement."""
    printed = inspected(made(kitchen) / "inspect", "head", "ANSWER: A")

    assert printed.startswith("success")
    for name, value in (("template 1", 1.0), ("template 8", 0.0), ("all_13", 0.0)):
        assert f"/{name}': {value}" in printed
