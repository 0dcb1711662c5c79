"""LINK's tables: likelihoods of statements, the grid of its ablations, and its baseline by instructions."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from papers_fixture import bring, fault, notes, script, sent, statements, told

import hapax

# --- likelihoods ------------------------------------------------------------------------------------------------------


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


# --- grid -------------------------------------------------------------------------------------------------------------


# --- grid -------------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[3]
SMALL = """
files: [test.rules]
models: [{name: LINK, knowledge: "simulated:1"}]
temperatures: [0.7]
search: {beam: 10, calls: 1, values: 10}
baseline: false
evaluator: simulated:3
"""
GRID = (
    SMALL.replace("}]", '}, {name: LINK with another, knowledge: "simulated:2"}]')
    .replace("[0.7]", "[0.5, 0.7]")
    .replace("baseline: false", "baseline: {count: 10, values: 10, calls: 2}")
)
MODEL = "models: [{name: a, knowledge: embedded}]\n"
PRINTED: Mapping[str, Any] = {
    "8": ["w/o", "critic", "52.58", "52.08", "33.00"],
    "10": ["Zero-shot", "GPT4", "85.44", "88.42", "74.39"],
}
"""A line of each of two tables of the paper."""


def filled(folder: Path, text: str) -> Path:
    """A grid that never ran."""
    (folder / "test.rules").write_text(WORLD, "utf-8")
    (folder / "grid.yaml").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A grid that ran, and what its first run printed as JSON."""
    folder = filled(tmp_path_factory.mktemp("grid"), GRID)
    return folder, told(*grid(folder))


def grid(folder: Path) -> tuple[object, ...]:
    return ("evaluate", "grid", folder / "grid.yaml", "--db", folder / "grid.db")


def test_a_short_file_is_the_papers_grid(tmp_path: Path) -> None:
    """Without more than a model, variants, temperatures and the baseline are the paper's."""
    (tmp_path / "grid.yaml").write_text(MODEL, "utf-8")
    found = hapax.read_grid(tmp_path / "grid.yaml")

    assert list(found.variants) == ["full", "w/o critic", "w/o critic+likelihood"]
    assert found.temperatures == (0.5, 0.7, 1.0)
    assert found.baseline is not None
    assert (found.baseline.count, found.baseline.values, found.baseline.wordings) == (200, 50, (1,))
    assert [model.knowledge for model in hapax.read_grid(ROOT / "docs" / "papers" / "grid.yaml").models] == [
        "embedded",
        "simulated:7",
    ]


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (f"{MODEL}temperaturs: [0.5]", "temperaturs", "not permitted"),
        (f"{MODEL}temperatures: [0.5, hot]", "temperatures.1", "valid"),
        (f"{MODEL}temperatures: []", "temperatures", "at least one"),
        (f"{MODEL}variants: [full, without critic]", "variants.1", "w/o critic+likelihood"),
        (f"{MODEL}\nsearch:\n  beam: 0", "search.beam", "greater than"),
        (f"{MODEL}\nsearch:\n  temperature: 1", "search.temperature", "not permitted"),
        (f"{MODEL}baseline: {{wordings: [11]}}", "baseline.wordings.0", "equal to 10"),
        ("models: [{name: a}]", "models.0.knowledge", "required"),
        ("models:\n  - {name: a, knowledge: embedded}\n  - {name: a, knowledge: embedded}", "models", "name"),
        ("seed: 1", "models", "required"),
        ("models: &m [*m]", "models.0", "valid"),
    ],
)
def test_a_fault_of_the_file_is_told_with_its_key(tmp_path: Path, text: str, key: str, words: str) -> None:
    """Each fault names file, key, and what is wanted."""
    said = fault(*grid(filled(tmp_path, text)))

    assert f"grid.yaml: {key}" in said
    assert words in said


@pytest.mark.parametrize(
    "text", ["models: [", "a: !!python/object:os.system {}", "\0", "{[1]: 2}", "a: b: c", "[1]", ""]
)
def test_what_is_no_grid_is_refused(tmp_path: Path, text: str) -> None:
    """Broken or harmful YAML ends the command with exit code 1 and the way to an example; faults come all at once."""
    three = "models: [{name: 3, knowledge: embedded}]\nseeed: 1\njudge: [a]"

    assert "mapping" in fault(*grid(filled(tmp_path, text)))
    assert fault(*grid(filled(tmp_path, three))).count("grid.yaml:") == 3


def test_every_cell_is_filled(whole: tuple[Path, Any]) -> None:
    """Tables 7 to 10 have a figure in each cell, in the paper's layout; what they share runs once. Figures are of each
    cell's own statements: without the critic fewer are right, by the world that knows."""
    tables, cells = whole[1]["tables"], whole[1]["cells"]
    rows, columns = ["LINK", "    w/o critic", "    w/o critic+likelihood"], ("Data Type", "Factuality", "Overall")

    assert [row["Temperature"] for row in tables["7"]] == ["0.5", "0.7"]
    assert [row[""] for row in tables["8"]] == [*rows, "LINK with another", *rows[1:]]
    assert [row[""] for row in tables["9"]] == [row[""] for row in tables["8"]]
    zero_shot = ["Zero-shot simulated:1", "Zero-shot simulated:2"]
    assert [row[""] for row in tables["10"]] == [*zero_shot, "LINK", "LINK with another"]
    assert len(cells) == 9
    assert [row for rows in tables.values() for row in rows for name in columns if "of" not in row[name]] == []
    own = [cell for cell in cells if cell["model"]["name"] == "LINK" and cell["temperature"] == 0.7]
    right = {cell["variant"]: cell["accuracy"]["all"]["overall"] for cell in own}
    share = {variant: figures["right"] / figures["known"] for variant, figures in right.items()}
    assert share["full"] > share["w/o critic+likelihood"]
    assert {cell["accuracy"]["all"]["judge"] for cell in own} == {"the simulated world 1"}


def test_the_papers_figures_stand_apart_and_a_whole_grid_asks_nothing(whole: tuple[Path, Any]) -> None:
    """Each of its tables follows ours under its own name; the same command again sends no call."""
    folder, first = whole
    shown, again = run(*grid(folder)).stdout, told(*grid(folder))
    with hapax.KnowledgeBase(folder / "grid.db", read_only=True) as kb:
        assert kb.facts() == []

    for number, printed in PRINTED.items():
        _, _, theirs = shown.partition(f"LINK's paper, table {number}")
        assert printed in [line.split() for line in theirs.partition("\n\n")[0].splitlines()]
        assert printed[-1] not in json.dumps(first["tables"])
    assert sum(cell["calls"] for cell in again["cells"]) == 0
    assert again["tables"] == first["tables"]
    assert statements(folder / "grid.db")


def test_a_grid_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """A budget ends it with exit code 3 and no half figure; the same command asks only for what is missing."""
    folder = filled(tmp_path, SMALL)
    wanted = told("evaluate", "grid", folder / "grid.yaml", "--db", folder / "whole.db")
    allowed = wanted["cells"][0]["calls"] + 20
    cut = invoke(*grid(folder), "--json", "--max-calls", allowed)
    stopped, rest = json.loads(cut.stdout), told(*grid(folder))
    sent = [sum(cell["calls"] for cell in report["cells"]) for report in (stopped, rest, wanted)]

    assert cut.exit_code == 3
    assert all(cell["accuracy"] == {} for cell in stopped["cells"] if cell["outcome"] != "done")
    assert rest["tables"] == wanted["tables"]
    assert sent[0] <= allowed
    assert sent[0] + sent[1] == sent[2]


def test_a_cell_that_cannot_run_says_why_and_the_others_go_on(tmp_path: Path) -> None:
    """An unknown model fails in its own cells; the rest is filled, and the exit code is 1."""
    broken = SMALL.replace("models: [", 'models: [{name: LINK with another, knowledge: "scripted:missing.json"}, ')
    result = invoke(*grid(filled(tmp_path, broken)), "--json")
    report = json.loads(result.stdout)
    failed = [cell for cell in report["cells"] if cell["failed"]]

    assert result.exit_code == 1
    assert {cell["model"]["name"] for cell in failed} == {"LINK with another"}
    assert "missing.json" in failed[0]["failed"]
    assert "missing.json" in notes(result)
    assert all(cell["outcome"] == "done" for cell in report["cells"] if cell not in failed)
    assert [row[""] for row in report["tables"]["10"]] == ["LINK with another", "LINK"]


# --- instruction ------------------------------------------------------------------------------------------------------


GRID_RULES = """
type Food Allergen < Object.
given is_allergic_to(Person, Food Allergen): "[1] is allergic to [2]" / "?" / "?".
oracle is_ingredient_in(Ingredient, Dish): "[1] is a ingredient in [2]" / "?" / "?".
oracle is_one_type_of(Ingredient, Food Allergen): "[1] is one type of [2]" / "?" / "?".
given is_not_able_to_eat(Person, Dish): "[1] is not able to eat [2]" / "?" / "?".
@name allergy
is_allergic_to(Person X, Food Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Food Allergen A)
  -> is_not_able_to_eat(Person X, Dish B).
"""
MEASURED = """
functional weighs(Animal, Kilograms): "the [1] weighs [2] kilograms" / "?" / "?".
type Kilograms < Number.
@name lifting
has_trouble_carrying(Person X, Animal A) & weighs(Animal A, Kilograms V) & weighs(Animal B, Kilograms W) & 2 * V < W & A \\= B
  -> cannot_carry(Person X, Animal B).
"""
HEAD = "1. A=milk, B=paneer, Z=butter\n2. A=egg, B=omelette, Z=yolk"
TAIL = "1. A=milk, B=quark, Z=whey\n2. A=egg, B=eggnog, Z=rum"
TABLE_2 = (
    "In the following sentence, A is a Food Allergen, B is a Dish, Z is a Ingredient. Find values of A, B, Z to fill in "
    "the blank in the sentence ‘If Person X is allergic to [A] and [Z] is a ingredient in [B] and [Z] is one type of [A], "
    "then Person X is not able to eat [B].’ and make it a grammatical and correct sentence. {}Give me 50 values in the "
    "format ‘1. A=, B=, Z=’."
)
"""The prompt that the paper's table 2 prints, with the data types of these rules."""

TABLE_11 = (
    "Use less frequent terms of A and B and Z.",
    "Use terms of A and B and Z that are less common.",
    "Use terms with lower frequency for A and B and Z.",
    "Use terms of A and B and Z that have lower probability in language model distribution.",
    "Use less frequent words of A and B and Z.",
    "Use words of A and B and Z that are less common.",
    "Use words with lower frequency for A and B and Z.",
    "Use less frequent entities of A and B and Z.",
    "Use entities of A and B and Z that are less common.",
    "Use entities with lower frequency for A and B and Z.",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rules, and a model that writes two rows for the head and two for the long tail."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "allergy.rules").write_text(GRID_RULES, "utf-8")
    replies()
    return tmp_path


def replies(head: str = HEAD, tail: str = TAIL) -> None:
    claims = {"Butter is one type of milk.": 0.9, "Butter is a ingredient in paneer.": 0.9}
    generate = {"Give me 50 values": head, "Z. Give me 50 values": tail}
    script(Path("s.json"), yes=0.1, says=head, generate=generate, critic=claims)


INSTRUCT = ("evaluate", "instruct", "allergy.rules", "-m", "scripted:s.json", "--evaluator", "scripted:s.json")


def instruct(*more: object) -> Any:
    return told(*INSTRUCT, "--db", "kb.db", *more)


def prompts() -> list[str]:
    return [request["prompt"] for request in sent(Path("kb.db"), "knowledge")]


def test_the_prompts_of_tables_2_and_11_byte_for_byte(place: Path) -> None:
    """The head is asked for as table 2 prints it; each of the ten wordings of table 11 stands before the number of
    values. The released code joins variables by "and", quotes plainly, and asks for the long tail before the format."""
    instruct("--wording", "all", "--calls", 1)
    assert set(prompts()) == {TABLE_2.format(""), *(TABLE_2.format(f"{wording} ") for wording in TABLE_11)}

    instruct("--released", "--calls", 1)
    released = TABLE_2.replace("A, B, Z to", "A and B and Z to").replace("‘", "'").replace("’", "'")
    assert prompts()[-1] == released.format("Use less frequent terms of A and B and Z. ")


def test_comparisons_are_told_in_words(place: Path) -> None:
    """A premise that calculates is told, too, so that a model is asked for the whole rule."""
    (place / "allergy.rules").write_text(MEASURED, "utf-8")
    invoke(*INSTRUCT, "--db", "kb.db", "--calls", 1)

    assert (
        "‘If Person X has trouble carrying [A] and the [A] weighs [V] kilograms and the [B] weighs [W] kilograms and "
        "2 * [V] is less than [W] and [A] is not [B], then Person X cannot carry [B].’"
    ) in prompts()[0]


def test_head_and_long_tail_are_stored_as_statements_and_none_as_a_fact(place: Path) -> None:
    """The default instruction gives the head, the wording the long tail."""
    report = instruct()
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        ends = {statement.text.rpartition(" ")[2]: statement.distribution for statement in kb.statements()}
        facts = kb.facts()

    head, tail = hapax.Distribution.HEAD, hapax.Distribution.LONG_TAIL
    assert ends == {"paneer.": head, "omelette.": head, "quark.": tail, "eggnog.": tail}
    assert "If PersonX is allergic to milk, then PersonX is not able to eat paneer." in statements(place / "kb.db")
    assert facts == []
    assert [wording["wording"] for wording in report["wordings"]] == [1]


def test_later_calls_exclude_what_came_and_end_without_new_rows(place: Path) -> None:
    """Each call names the rows before; two calls without a new row end the asking."""
    report = instruct()
    asked = [request for request in sent(place / "kb.db", "knowledge") if "Use " not in request["prompt"]]

    rows = ["A=milk, B=paneer, Z=butter", "A=egg, B=omelette, Z=yolk"]
    assert [request["excluded_values"] for request in asked[:2]] == [[], rows]
    assert len(asked) == 3
    assert report["wordings"][0]["rules"][0]["dropped"]["repeated"] == 8


def test_rows_that_make_no_statement_are_counted_by_reason(place: Path) -> None:
    """Rows without all values, with a variable's name or a control character, or in no format are dropped and counted.
    No row at all is no failure, but it is said; eleven is no wording of table 11."""
    faulty = (
        "Sure! Here are 50 values:\n1. A=milk, B=paneer\n2. A=, B=paneer, Z=butter\n3. A=[A], B=[B], Z=[Z]\n"
        "4. A=milk\u202e, B=paneer, Z=butter\n5) A = milk; B = Paris, France; Z = “butter” (clarified).\n"
    )
    replies(faulty, faulty)
    dropped = instruct("--calls", 1)["wordings"][0]["rules"][0]["dropped"]
    replies("No.", "No.")

    assert [text.rpartition("eat ")[2] for text in statements(place / "kb.db")] == ["Paris."]
    counts = {reason: count for reason, count in dropped.items() if count}
    assert counts == {"no row": 2, "incomplete": 4, "unusable value": 4}
    assert "does not follow the format of the instruction" in notes(run(*INSTRUCT, "--db", "none.db"))
    assert "11" in fault(*INSTRUCT, "--wording", "11", code=2)


def test_a_critic_judges_statements_and_the_papers_table_stands_apart(place: Path) -> None:
    """A statement is right if the critic affirms its every claim; its data types are judged apart. Tables of ours come
    first, LINK's own table 3 stands apart; statements are shown."""
    critic = ("--critic", "scripted:s.json")
    (wording,) = instruct(*critic)["wordings"]
    result = run(*INSTRUCT, "--db", "kb.db", *critic)

    right = {kind: share["right"] for kind, share in wording["accuracy"]["head"].items() if isinstance(share, dict)}
    assert right == {"factuality": 1, "data_type": 0, "overall": 0}
    assert wording["accuracy"]["head"]["overall"]["known"] == 2
    ours, _, theirs = result.stdout.partition("LINK's paper, table 3")
    assert "If PersonX is allergic to milk, then PersonX is not able to eat quark." in result.stdout
    assert "judged by the critic scripted/s.json" in " ".join(ours.split())
    assert "56.44" not in ours
    rows = [line.split() for line in theirs.splitlines()]
    assert ["ChatGPT", "85.40", "67.50", "56.44"] in rows
    assert ["LINK", "94.23", "88.71", "83.95"] in rows
    assert "none is a fact" in notes(result)
