"""The grid of tables 7 to 10: its file and the file's faults, every cell filled, going on, and who judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.judgements import Judgements, judgements
from hapax.evaluation.link.baselines.config import ConfigRejected, GridConfig, read_config
from hapax.evaluation.link.baselines.paper import GRID, TABLE_3
from hapax.evaluation.link.judging import GroundTruth, Share, TruthJudge, VoteJudge, accuracy, critic_truth
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.scripted import ScriptedModel

ROOT = Path(__file__).parent.parent
RULES = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "?" / "?".
oracle is_one_type_of(Ingredient, Allergen): "[1] is one type of [2]" / "?" / "?".
@name allergy
is_allergic_to(Person X, Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Allergen A)
  -> cannot_eat(Person X, Dish B).
"""
GRID_FILE = """
files: [test.rules]
models:
  - {name: LINK, knowledge: "simulated:1"}
  - {name: LINK with another, knowledge: "simulated:2"}
temperatures: [0.5, 0.7]
search: {beam: 10, calls: 1, values: 10}
baseline: {count: 10, values: 10, calls: 2}
evaluator: simulated:3
"""
VARIANTS = ("full", "w/o critic", "w/o critic+likelihood")


def filled(folder: Path) -> Path:
    (folder / "test.rules").write_text(RULES, encoding="utf-8")
    (folder / "grid.yaml").write_text(GRID_FILE, encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A grid that never ran."""
    return filled(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid that ran; what its first run printed as JSON is in `first.json`."""
    folder = filled(tmp_path_factory.mktemp("grid"))
    result = evaluate_grid(folder, "--json")
    assert result.exit_code == 0, result.output
    (folder / "first.json").write_text(result.stdout, encoding="utf-8")
    return folder


def first_run(folder: Path) -> Any:
    return json.loads((folder / "first.json").read_text(encoding="utf-8"))


def evaluate_grid(folder: Path, *options: str) -> Result:
    arguments = ["evaluate", "grid", str(folder / "grid.yaml"), "--db", str(folder / "grid.db"), *options]
    return invoke(*arguments)


def said(result: Result) -> str:
    return " ".join(result.stderr.split())


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# -- the file


def config(tmp_path: Path, text: str) -> GridConfig:
    path = tmp_path / "grid.yaml"
    path.write_text(text, encoding="utf-8")
    return read_config(path)


def test_a_short_file_is_the_papers_grid(tmp_path: Path) -> None:
    """Without more than a model, variants, temperatures and the baseline are the paper's."""
    found = config(tmp_path, "models: [{name: LINK, knowledge: embedded}]")

    assert tuple(variant.name for variant in found.variants) == VARIANTS
    assert found.temperatures == (0.5, 0.7, 1.0)
    assert found.baseline is not None
    assert (found.baseline.count, found.baseline.values, found.baseline.wordings) == (200, 50, (1,))
    assert found.distributions == tuple(Distribution)


def test_the_shipped_file_is_read() -> None:
    """docs/grid.yaml names models that need no network, and rules that ship."""
    found = read_config(ROOT / "docs" / "grid.yaml")

    assert [model.knowledge for model in found.models] == ["embedded", "simulated:7"]
    assert found.search.settings() == {"beam": 50, "calls_per_question": 2, "values_per_call": 50}


MODEL = "models: [{name: a, knowledge: embedded}]\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"{MODEL}temperaturs: [0.5]", 2, "the grid has no field 'temperaturs'; did you mean temperatures?"),
        (f"{MODEL}temperatures: [0.5, hot]", 2, "not [0.5, 'hot']"),
        (f"{MODEL}temperatures: [0.5, 0.5]", 2, "each once"),
        (f"{MODEL}temperatures: [.nan]", 2, "a list of numbers from 0"),
        (f"{MODEL}variants: [full, without critic]", 2, "w/o critic+likelihood"),
        (f"{MODEL}distributions: [tail]", 2, "head, long_tail"),
        (f"{MODEL}\nsearch:\n  beam: 0", 4, "beam should be a whole number from 1, not 0"),
        (f"{MODEL}\nsearch:\n  temperature: 1", 4, "search has no field 'temperature'"),
        (f"{MODEL}baseline: {{wordings: [11]}}", 2, "from 1 to 10"),
        (f"{MODEL}baseline: yes", 2, "false, or wordings"),
        (f"{MODEL}seed: true", 2, "seed should be a whole number"),
        ("models: [{name: a}]", 1, "models[0] needs knowledge: a model such as embedded"),
        (
            "models:\n  - {name: a, knowledge: embedded}\n  - {name: a, knowledge: embedded}",
            3,
            "models[1].name is 'a', the name of an earlier model",
        ),
        ("models:\n  - {name: a, knowledg: embedded}", 2, "did you mean knowledge?"),
        ("models: []", 1, "a list of models"),
        ("models: [embedded]", 1, "models[0] should be a mapping"),
        ("seed: 1", 1, "the grid needs models: a list of models"),
        ("[1, 2]", 1, "the grid should be a mapping"),
        ("", 1, "the grid should be a mapping"),
        ("a: &a [*a, *a]\n" + MODEL, 1, "has no field 'a'"),
        ("models: &m [*m]", 1, "models[0] should be a mapping"),
    ],
)
def test_a_fault_of_the_file_is_told_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    """Each fault names file, line, what is wanted, and the nearest name."""
    with pytest.raises(ConfigRejected) as caught:
        config(tmp_path, text)

    fault = caught.value.faults[0]
    assert fault.startswith(f"{tmp_path / 'grid.yaml'}:{line}: ")
    assert message in fault


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """A file with three faults lists three."""
    with pytest.raises(ConfigRejected) as caught:
        config(tmp_path, "models: [{name: 3, knowledge: embedded}]\nseeed: 1\njudge: [a]")

    assert len(caught.value.faults) == 3


def test_a_list_without_end_is_told_briefly(tmp_path: Path) -> None:
    """Names that stand for lists of lists of lists do not fill the memory when they are refused."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    with pytest.raises(ConfigRejected) as caught:
        config(tmp_path, f"{bomb}{MODEL}rules: *i")

    assert max(map(len, caught.value.faults)) < 500


@pytest.mark.parametrize("text", ["models: [", "a: !!python/object:os.system {}", "\0", "{[1]: 2}", "a: b: c"])
def test_what_is_no_yaml_is_refused(folder: Path, text: str) -> None:
    """Broken or harmful YAML ends the command with exit code 1 and one line."""
    (folder / "grid.yaml").write_text(text, encoding="utf-8")
    result = evaluate_grid(folder)

    assert result.exit_code == 1
    assert "A grid is a YAML mapping such as docs/grid.yaml" in said(result)


SCALARS = st.none() | st.text(max_size=5) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(["models", "rules", "search", "baseline", "temperatures", "judge", "seed", "sead", ""])


@settings(max_examples=cases(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=3), max_size=4))
def test_no_mapping_raises_anything_else(tmp_path: Path, told: Mapping[str, Any]) -> None:
    """Whatever a file holds, it is a grid or a list of faults."""
    with pytest.raises(ConfigRejected):
        config(tmp_path, json.dumps(told))


# -- the run


def test_every_cell_is_filled(whole: Path) -> None:
    """Tables 7 to 10 have a figure in each cell, in the paper's layout; what they share runs once."""
    report = first_run(whole)

    tables = report["tables"]
    assert [row["Temperature"] for row in tables["7"]] == ["0.5", "0.7"]
    rows = ["LINK", "    w/o critic", "    w/o critic+likelihood"]
    assert [row[""] for row in tables["8"]] == [*rows, "LINK with another", *rows[1:]]
    assert [row[""] for row in tables["9"]] == [row[""] for row in tables["8"]]
    zero_shot = ["Zero-shot simulated:1", "Zero-shot simulated:2"]
    assert [row[""] for row in tables["10"]] == [*zero_shot, "LINK", "LINK with another"]
    assert len(report["cells"]) == 9
    for rows in tables.values():
        for row in rows:
            assert [name for name in ("Data Type", "Factuality", "Overall") if "of" not in row[name]] == []


def test_the_critic_is_what_makes_statements_true(whole: Path) -> None:
    """Figures are of each cell's own statements: without the critic fewer are right."""
    cells = {(cell["model"]["name"], cell["variant"], cell["temperature"]): cell for cell in first_run(whole)["cells"]}

    def right(variant: str) -> float:
        found = cells["LINK", variant, 0.7]["accuracy"]["all"]["overall"]
        return float(found["right"]) / float(found["known"])

    assert right("full") > right("w/o critic+likelihood")
    assert {cell["accuracy"]["all"]["judge"] for cell in cells.values()} == {
        "the simulated world 1",
        "the simulated world 2",
    }


def test_the_papers_figures_stand_apart(whole: Path) -> None:
    """Each of its tables follows ours under its own name, and none of its figures is in ours."""
    result = evaluate_grid(whole)

    assert result.exit_code == 0, result.output
    for number, printed in GRID.items():
        _, _, after = result.stdout.partition(f"LINK's paper, table {number}")
        theirs, _, _ = after.partition("\n\n")
        assert [line.split()[-3:] for line in theirs.splitlines()[2:]] == [
            [f"{figure:.2f}" for figure in figures] for _, *figures in printed.rows
        ]


def test_the_printed_tables_are_the_papers() -> None:
    """A few cells that its text speaks of, and sizes."""
    assert [len(table.rows) for table in GRID.values()] == [3, 6, 6, 3]
    assert GRID[8].rows[1] == ("    w/o critic", 52.58, 52.08, 33.0)
    assert GRID[10].rows[0] == ("Zero-shot GPT4", 85.44, 88.42, 74.39)
    assert TABLE_3.rows[2] == ("LINK", 94.23, 88.71, 83.95)


def test_a_grid_goes_on_where_it_was_stopped(whole: Path, folder: Path) -> None:
    """A budget ends it with exit code 3 and no half figure; the same command asks only for what is missing."""
    wanted = first_run(whole)
    allowed = wanted["cells"][0]["calls"] + 20
    cut = evaluate_grid(folder, "--max-calls", str(allowed), "--json")
    rest = told(evaluate_grid(folder, "--json"))

    assert cut.exit_code == 3
    stopped = json.loads(cut.stdout)
    outcomes = [cell["outcome"] for cell in stopped["cells"]]
    assert (outcomes[0], outcomes[1]) == ("done", "cut by the budget")
    assert all(cell["accuracy"] == {} for cell in stopped["cells"] if cell["outcome"] != "done")
    assert rest["tables"] == wanted["tables"]
    sent = [sum(cell["calls"] for cell in report["cells"]) for report in (stopped, rest, wanted)]
    assert sent[0] <= allowed
    assert sent[0] + sent[1] == sent[2]


def test_a_grid_that_is_whole_asks_nothing(whole: Path) -> None:
    """The same command again sends no call and prints the same tables."""
    again = told(evaluate_grid(whole, "--json"))

    assert sum(cell["calls"] for cell in again["cells"]) == 0
    assert again["tables"] == first_run(whole)["tables"]


def test_facts_of_a_grid_stay_out_of_the_knowledge_base(whole: Path) -> None:
    """A cell without critic takes every value for true, so statements are kept and facts are not."""
    with KnowledgeBase(whole / "grid.db") as kb:
        assert kb.facts() == []
        assert kb.statements()
        assert {run.command for run in kb.runs()} == {"search", "evaluate instruct"}


def test_a_cell_that_cannot_run_says_why_and_the_others_go_on(folder: Path) -> None:
    """An unknown model fails in its own cells; the rest is filled, and the exit code is 1."""
    broken = GRID_FILE.replace('"simulated:2"', '"scripted:missing.json"')
    (folder / "grid.yaml").write_text(broken, encoding="utf-8")

    result = evaluate_grid(folder, "--json")

    assert result.exit_code == 1
    report = json.loads(result.stdout)
    failed = [cell for cell in report["cells"] if cell["failed"]]
    assert {one["model"]["name"] for one in failed} == {"LINK with another"}
    assert len(failed) == 4
    assert "missing.json" in failed[0]["failed"]
    assert all(cell["outcome"] == "done" for cell in report["cells"] if cell not in failed)
    assert "LINK with another, full, temperature 0.7: missing.json" in said(result)


def test_the_baseline_can_be_left_out(folder: Path) -> None:
    """`baseline: false` runs searches alone."""
    text = GRID_FILE.replace("baseline: {count: 10, values: 10, calls: 2}", "baseline: false")
    (folder / "grid.yaml").write_text(text, encoding="utf-8")

    assert [row[""] for row in told(evaluate_grid(folder, "--json"))["tables"]["10"]] == ["LINK", "LINK with another"]


def test_peoples_votes_judge_where_there_are_some(folder: Path) -> None:
    """After votes on a cell's statements people are its judge; the others keep theirs."""
    told(evaluate_grid(folder, "--json"))
    with KnowledgeBase(folder / "grid.db") as kb:
        run = next(run for run in kb.runs() if run.command == "evaluate instruct")
        one = kb.statements(run_id=run.id, distribution=Distribution.LONG_TAIL)[0]
        kb.add_votes(VoteRecord(one.id, "entailment", voter, "yes") for voter in ("ada", "ben"))
        kb.add_votes(VoteRecord(one.id, f"data type {name}", "ada", "yes") for name in "ABZ")

    cells = told(evaluate_grid(folder, "--json"))["cells"]

    judged = next(cell for cell in cells if cell["variant"] == "instruction only" and cell["model"]["name"] == "LINK")
    assert judged["accuracy"]["long_tail"]["judge"] == "people's votes"
    assert judged["accuracy"]["long_tail"]["overall"] == {"right": 1, "known": 1}


# -- judges


def statement(**values: str) -> StatementRecord:
    told = f"If PersonX is allergic to {values['A']}"
    return StatementRecord("allergy", Distribution.HEAD, "run", tuple(values.items()), told, values["B"], "", {})


BUTTER = statement(A="milk", B="naan", Z="butter")
STONE = statement(A="milk", B="naan", Z="stone")


def test_votes_decide_by_majority() -> None:
    """Each question by itself; a tie or no vote is unknown, and one wrong type makes a statement wrong."""
    answers = [
        ("entailment", "ada", "yes"),
        ("entailment", "ben", "no"),
        ("entailment", "cy", "yes"),
        ("data type A", "ada", "yes"),
        ("Data type B", "ada", "no"),
    ]
    votes = [VoteRecord(BUTTER.id, question, voter, answer) for question, voter, answer in answers]
    judge = VoteJudge(Judgements(judgements(votes)))

    found = judge.verdict(BUTTER)

    assert (found.typed, found.factual, found.overall) == (False, True, False)
    assert judge.verdict(STONE).overall is None
    assert accuracy([BUTTER, STONE], judge).overall == Share(0, 1)


def test_a_critic_knows_what_it_was_asked(fresh_kb: KnowledgeBase) -> None:
    """Facts and types are claims of their own; an even chance decides nothing, and a budget leaves the rest unknown."""
    library = parse_library([("test.rules", RULES)])
    claims = {
        "Butter is an ingredient in naan.": 0.9,
        "Butter is one type of milk.": 0.8,
        "Stone is an ingredient in naan.": 0.1,
        "Stone is one type of milk.": 0.5,
        "Butter is an ingredient.": 0.7,
        "Milk is an allergen.": 0.7,
        "Naan is a dish.": 0.7,
        "Stone is an ingredient.": 0.2,
    }
    critic = ScriptedModel({"critic": claims})
    cut = JournaledCritic(critic, Journal(KnowledgeBase(), Budget(max_calls=2)))
    whole = JournaledCritic(critic, Journal(fresh_kb))
    known = KnownFacts(fresh_kb, library)

    partly, reached = critic_truth([BUTTER, STONE], library, cut)
    truth, nothing = critic_truth([BUTTER, STONE], library, whole)

    found = accuracy([BUTTER, STONE], TruthJudge(library, truth, known, searched=False))
    assert (found.factuality, found.data_type, found.overall) == (Share(1, 2), Share(1, 2), Share(1, 2))
    assert nothing is None
    assert reached is not None
    assert accuracy([BUTTER], TruthJudge(library, partly, known, searched=False)).data_type == Share(0, 0)
    assert truth.facts("is_one_type_of/2", ["stone", "milk"]) is None


def test_what_rules_calculate_and_derive_is_judged(fresh_kb: KnowledgeBase) -> None:
    """Numbers must compare as the rule says; what only other rules derive is unknown of statements nobody derived."""
    library = parse_library(
        [
            (
                "test.rules",
                "functional weighs(Animal, Number).\n"
                "@name lifting\nlifts(Person X, Animal A) & weighs(Animal A, Number V) & V > 3 & is_tame(Animal A)"
                " -> can_keep(Person X, Animal A).\n"
                "lives_with(Person P, Animal A) & eats(Animal A, Food F) -> is_tame(Animal A).\n",
            )
        ]
    )
    truth = GroundTruth(lambda *_: True)
    light, heavy = (
        StatementRecord("lifting", Distribution.HEAD, "run", (("A", "cat"), ("V", weight)), "", "", "", {})
        for weight in (2, 5)
    )

    def verdicts(searched: bool) -> list[bool | None]:
        judge = TruthJudge(library, truth, KnownFacts(fresh_kb, library), searched=searched)
        return [judge.verdict(one).factual for one in (light, heavy)]

    assert verdicts(searched=True) == [False, True]
    assert verdicts(searched=False) == [False, None]
