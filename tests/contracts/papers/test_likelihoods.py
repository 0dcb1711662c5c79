"""Likelihoods of finished statements: delta, reranking, agreement of evaluators, and LINK's figures as files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from papers_fixture import bring, fault, notes, script, sent, statements, told

import hapax

RULES = """
oracle is_made_from(Dish, Allergen): "[1] is made from [2]" / "?" / "?".
@name allergy
@domain "outcomes and effects"
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> cannot_eat(Person X, Dish B).
@name currency
@domain locational
lives_in(Person X, Place A) & is_made_from(Dish B, Place A) -> can_buy(Person X, Dish B).
"""
SCORES = {
    ("allergy", "head"): (-1.0, -2.0, -3.0),
    ("allergy", "longtail"): (-3.0, -4.0, -5.0),
    ("currency", "head"): (-2.0, -2.0),
    ("currency", "longtail"): (-1.0, -2.0, -1.5),
}
"""Mean token log-likelihoods: delta is 2 for the first rule and -0.5 for the second."""

WORLD = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "?" / "?".
oracle is_one_type_of(Ingredient, Allergen): "[1] is one type of [2]" / "?" / "?".
@name allergy
is_allergic_to(Person X, Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Allergen A)
  -> cannot_eat(Person X, Dish B).
"""
SEARCH = ("--beam", "10", "--calls", "1", "--values", "10")


def measured(database: Path) -> Path:
    """Eleven imported statements and an evaluator that scored them."""
    names = {part: [f"{' '.join(part)} {place}" for place in range(len(scores))] for part, scores in SCORES.items()}
    values = {part: [("milk", name) for name in some] for part, some in names.items()}
    bring(database, values, rules=RULES, columns=dict.fromkeys(("allergy", "currency"), "X,A,B"))
    by_name = {name: score for part, some in names.items() for name, score in zip(some, SCORES[part], strict=True)}
    totals = {text: [4 * score, 4] for text in statements(database) for name, score in by_name.items() if name in text}
    judge = script(database.parent / "judge.json", likelihood=totals)
    run("evaluate", "likelihood", "--evaluator", judge, "--db", database)
    return database


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("likelihoods") / "kb.db")


@pytest.fixture
def database(stored: Path, tmp_path: Path) -> Path:
    (tmp_path / "kb.db").write_bytes(stored.read_bytes())
    return tmp_path / "kb.db"


def deltas(report: Mapping[str, Any]) -> dict[str, float]:
    return {delta["rule"]: delta["delta"]["value"] for delta in report["deltas"]}


LIKELIHOOD = ("evaluate", "likelihood", "--db")


def test_delta_is_the_difference_of_the_means(database: Path) -> None:
    """Delta by rule and their mean are exact on known log-likelihoods, with intervals, and nothing is asked."""
    before = len(sent(database, "evaluator"))
    report = told(*LIKELIHOOD, database)
    (mean,) = report["mean_deltas"]
    allergy = next(delta for delta in report["deltas"] if delta["rule"] == "allergy")

    assert deltas(report) == {"allergy": 2.0, "currency": -0.5}
    assert deltas(told(*LIKELIHOOD, database, "--rule", "currency")) == {"currency": -0.5}
    assert " x" in fault(*LIKELIHOOD, database, "--rule", "x")
    assert mean["delta"]["value"] == 0.75
    assert (allergy["head"], allergy["long_tail"]) == (3, 3)
    assert allergy["delta"]["low"] < 2.0 < allergy["delta"]["high"]
    assert len(sent(database, "evaluator")) == before
    assert "2.000 (" in run(*LIKELIHOOD, database).stdout


def test_without_statements_scores_or_judges_the_remedy_is_named(tmp_path: Path) -> None:
    """A search, an evaluator, a second judge; a mistyped --db leaves no file."""
    hapax.KnowledgeBase(tmp_path / "empty.db").close()
    unscored = bring(tmp_path / "unscored.db", {("before", "longtail"): [("1876", "sushi", "2005")]})
    study = ("evaluate", "long-tail", "--judge", "frequency", "--db")

    assert "hapax search" in fault(*LIKELIHOOD, tmp_path / "empty.db")
    assert "--evaluator" in fault(*LIKELIHOOD, unscored)
    assert "no such knowledge base" in fault(*LIKELIHOOD, tmp_path / "typo.db", "--evaluator", "frequency")
    assert not (tmp_path / "typo.db").exists()
    assert "0 of 0" in run(*LIKELIHOOD, unscored, "--evaluator", "frequency").stdout
    assert "--judge" in fault(*study, unscored)
    assert "hapax search" in fault(*study, tmp_path / "empty.db", "--judge", "simulated:1")


def test_a_second_evaluator_is_asked_once_and_compared(database: Path) -> None:
    """Missing scores are asked for and stored, until a budget ends the asking with exit code 3; the table of agreement
    has signs of delta."""
    before = len(sent(database, "evaluator"))
    other = script(database.parent / "other.json", likelihood=dict.fromkeys(statements(database), -3.0))
    command = (*LIKELIHOOD, database, "--evaluator", other)
    cut = invoke(*command, "--max-calls", 4)
    first = run(*command, "--max-calls", 7)
    asked = len(sent(database, "evaluator"))
    report = told(*LIKELIHOOD, database)
    told(*command)

    assert (cut.exit_code, "4" in notes(cut)) == (3, True)
    assert asked == before + 11
    assert len(sent(database, "evaluator")) == asked
    assert "Agreement" not in first.stdout
    assert len(report["evaluators"]) == 2
    (agreement,) = report["agreements"]
    assert agreement["signs"]["count"] == 2
    assert agreement["statements"]["count"] == 11
    assert agreement["low"]["count"] == 5  # the less likely halves of rules with five and six statements
    assert "Agreement" in run(*LIKELIHOOD, database).stdout


def test_instructions_are_reranked_and_the_papers_deltas_stand_apart(tmp_path: Path) -> None:
    """The delta of the best three quarters is measured for what no likelihood ranked, beside LINK's means as a remark."""
    (tmp_path / "world.rules").write_text(WORLD, "utf-8")
    rows = {end: "\n".join(f"{n}. A=milk, B={end} {n}, Z=whey" for n in range(1, 5)) for end in ("head", "tail")}
    model = script(
        tmp_path / "s.json", generate={"Give me 50 values": rows["head"], "Z. Give me 50 values": rows["tail"]}
    )
    command = ("evaluate", "instruct", tmp_path / "world.rules", "-m", model, "--evaluator", model, "--calls", 1)
    run(*command, "--db", tmp_path / "kb.db")
    texts = {request["text"] for request in sent(tmp_path / "kb.db", "evaluator")}
    # Of the head -1 to -4, of the long tail -2 to -5; four tokens each.
    score = {text: -4.0 * (int(text.rstrip(".").split()[-1]) + ("tail" in text)) for text in texts}
    judge = script(tmp_path / "judge.json", likelihood={text: [total, 4] for text, total in score.items()})
    plain = told(*LIKELIHOOD, tmp_path / "kb.db", "--evaluator", judge)
    shown = run(*LIKELIHOOD, tmp_path / "kb.db", "--evaluator", judge)

    (reranking,) = [row for row in plain["rerankings"] if row["evaluator"].startswith("scripted/judge")]
    assert (reranking["before"]["value"], reranking["after"]["value"]) == (1.0, 2.0)
    assert "0.48" not in shown.stdout
    assert "mean delta 0.48 for LINK, -0.14 for ChatGPT and -0.02 for GPT-4" in notes(shown)


# Figures


def test_figures_are_written_as_png_svg_and_csv_that_depend_on_the_data_alone(database: Path) -> None:
    """All figures that can be drawn are no failure; each comes in three formats, the same bytes in a second run. Figure
    3 has each rule's delta from the largest; 9 counts every statement once; 4 shows one rule."""
    one, two = (database.parent / name for name in ("one", "two"))
    report = told(*LIKELIHOOD, database, "--figure", "all", "--out", one)
    run(*LIKELIHOOD, database, "--figure", 3, "--out", two)
    run(*LIKELIHOOD, database, "--figure", 4, "--rule", "currency", "--out", two)

    assert sorted(report["figures"]) == ["3", "4", "9"]
    assert sorted(report["lacking"], key=int) == ["5", "6", "7", "8", "10", "11", "12", "13"]
    written = {f"figure-{number}.{form}" for number in (3, 4, 9) for form in ("png", "svg", "csv")}
    assert written < {path.name for path in one.iterdir()}
    assert (one / "figure-3.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert b"<svg" in (one / "figure-3.svg").read_bytes()
    for form in ("png", "svg", "csv"):
        assert (one / f"figure-3.{form}").read_bytes() == (two / f"figure-3.{form}").read_bytes()
    shown = [(row["rule"], float(row["delta"])) for row in cells(one / "figure-3.csv")]
    assert shown == [("allergy", 2.0), ("currency", -0.5)]
    counted = Counter[tuple[str, str]]()
    for row in cells(one / "figure-9.csv"):
        counted[row["rule"], row["distribution"].replace("_", "")] += int(row["statements"])
    assert counted == {part: len(scores) for part, scores in SCORES.items()}
    assert {row["rule"] for row in cells(one / "figure-4.csv")} == {"allergy"}
    assert {row["rule"] for row in cells(two / "figure-4.csv")} == {"currency"}


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (5, "--temperature"),
        (6, "--no-likelihood"),
        (7, "--no-likelihood"),
        (8, "--knowledge"),
        (10, "--evaluator"),
        (13, "--wording all"),
    ],
)
def test_a_figure_that_lacks_data_says_what_brings_it(database: Path, number: int, remedy: str) -> None:
    """A figure that is asked for by number and cannot be drawn fails with the command that helps."""
    said = fault(*LIKELIHOOD, database, "--figure", number, "--out", database.parent / "figures")

    assert f"Figure {number} " in said
    assert remedy in said
    assert "--out" in fault(*LIKELIHOOD, database, "--figure", number, code=2)


@pytest.mark.slow
def test_all_figures_come_of_searches_wordings_and_evaluators(tmp_path: Path) -> None:
    """With searches of other temperature, model and ranker, all wordings and four evaluators, 3 to 13 are drawn."""
    rules, database = tmp_path / "world.rules", tmp_path / "kb.db"
    rules.write_text(WORLD, "utf-8")
    asked = (rules, "-m", "simulated:1", "--evaluator", "simulated:9", "--db", database)
    searches = (*SEARCH, "--no-progress")
    for more in ((), ("--temperature", 0.5), ("-m", "simulated:2"), ("--no-likelihood",)):
        run("search", *asked, *searches, *more)
    run("evaluate", "instruct", *asked, "--wording", "all", "--count", 10, "--values", 10, "--calls", 2)
    evaluators = [word for seed in (9, 3, 4, 5) for word in ("--evaluator", f"simulated:{seed}")]
    report = told(*LIKELIHOOD, database, *evaluators, "--figure", "all", "--out", tmp_path / "figures")

    assert sorted(report["figures"], key=int) == [str(number) for number in range(3, 14)]
    methods = list(dict.fromkeys(row["method"] for row in cells(tmp_path / "figures" / "figure-13.csv")))
    assert len(methods) == 11
    assert "instruction" not in methods[0]


# The study of the long tail


def test_judges_measure_the_splits_of_others(database: Path) -> None:
    """Each ranker's split, and the stored one, is judged by each model; a model that judges itself is marked circular."""
    report = told("evaluate", "long-tail", "--db", database, "--judge", "simulated:1", "--judge", "frequency")
    judged = report["judged"]

    assert report["statements"] == 11
    assert all(split["circular"] == (split["ranker"] == split["judge"]) for split in judged)
    assert {"as stored", "frequency"} <= {split["ranker"] for split in judged}


def test_statements_with_equal_scores_are_at_no_end(database: Path) -> None:
    """A ranker to which all statements are equally likely parts them into no head and long tail, not by chance."""
    judges = ("--judge", "frequency", "--judge", script(database.parent / "even.json"))
    sizes = told("evaluate", "long-tail", "--db", database, *judges)["sizes"]
    ends = {row["ranker"]: (row["head"], row["long_tail"]) for row in sizes if row["measure"] == "paper"}

    assert ends == {"frequency": (3, 3), "scripted/even.json": (0, 0)}
