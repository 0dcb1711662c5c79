"""LINK's grid of searches and its baseline by instructions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from papers_fixture import fault, notes, script, sent, statements, told
from test_likelihoods import WORLD

import hapax

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


RULES = """
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
    (tmp_path / "allergy.rules").write_text(RULES, "utf-8")
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
