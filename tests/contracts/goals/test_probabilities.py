"""Probabilities of answers, statements and explanations over the scores that a search stored."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from cli_fixture import invoke, run
from money_fixture import RULES, WORLD, search_world

import hapax

pytest.importorskip("pysdd", reason="exact probabilities need the extra `probability`")

REACH = """
closed is_a_city_in/2
given trades(Country, Country)
@name spent
@generic none
is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> is_spent_in(Currency B, City A)
@name foreign
@generic none
is_a_city_in(City A, Country C) & uses_currency(Country D, Currency B) & C \\= D & not uses_currency(Country C, Currency B)
  -> is_foreign_in(Currency B, City A)
@name outside
@generic none
city(City A) & uses_currency(Country C, Currency B) & not is_a_city_in(City A, Country C) -> is_outside(Currency B, City A)
fact city("Lyon")
fact city("Oslo")
fact city("Banjul")
given city(City)
@name direct
@generic none
trades(Country A, Country B) -> deals(Country A, Country B)
@name onward
@generic none
deals(Country A, Country B) & trades(Country B, Country C) -> deals(Country A, Country C)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base whose facts about three cities and their currencies have P(yes) 0.95."""
    return search_world(tmp_path_factory.mktemp("world"), RULES + REACH, WORLD).parent


@pytest.fixture
def kb(world: Path) -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase(world / "kb.db") as opened:
        yield opened


def chances(goal: str, world: Path, kb: hapax.KnowledgeBase, **options: object) -> dict[tuple[object, ...], float]:
    """The lower bounds by answer."""
    chosen = hapax.QueryOptions(probability=hapax.ProbabilityOptions(**options))  # type: ignore[arg-type]
    found = hapax.query(goal, hapax.load_rules(world / "money.rules"), kb, options=chosen)
    return {tuple(row[:-1]): row[-1] for row in found.rows}


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("uses_currency('France', X)", {("euro",): 0.95}),
        ("is_spent_in(euro, X)", {("Lyon",): 0.95**2}),
        ("is_a_city_in(X, 'France'), \\+ uses_currency('Norway', euro)", {("Lyon",): 0.95 * 0.9}),
        ("is_a_city_in(X, 'France'), \\+ uses_currency('France', euro)", {}),
        ("is_a_city_in('Lyon', 'France') ; is_a_city_in('Oslo', 'Norway')", {(): 1 - 0.05**2}),
        ("uses_currency(C, X), X \\= euro", {("Norway", "Norwegian krone"): 0.95, ("The Gambia", "dalasi"): 0.95}),
        ("is_foreign_in(euro, 'Oslo')", {(): 0.95**2 * 0.9}),
        ("uses_currency(X, euro), \\+ is_a_city_in('Lyon', X)", {("France",): 0.95 * 0.05}),
        ("is_outside(euro, X)", {("Lyon",): 0.95 * 0.05, ("Oslo",): 0.95, ("Banjul",): 0.95}),
        ("deals(norway, X)", {}),
    ],
)
def test_an_answer_has_the_probability_of_its_worlds(
    goal: str, expected: dict[tuple[object, ...], float], world: Path, kb: hapax.KnowledgeBase
) -> None:
    """Joins, disjunction, comparisons, and denials by the critic, who gave Norway's euro 0.1; no world, no answer."""
    assert chances(goal, world, kb) == pytest.approx(expected)
    best = {(): 0.95} if ";" in goal else expected  # the best of two proofs, or the only one
    assert chances(goal, world, kb, method="best") == pytest.approx(best)


def test_facts_given_assumed_or_stated_are_certain(world: Path) -> None:
    """Over a circle of given facts, an assumption and a fact of the rule file P is 1."""
    rules = hapax.parse_rules(
        REACH.partition("@name spent")[0] + REACH[REACH.index("@name direct") :] + 'fact trades("c", "d")'
    )
    options = hapax.QueryOptions(probability=hapax.ProbabilityOptions())
    with hapax.KnowledgeBase() as own:
        hapax.add_facts(own, "trades", [("a", "b")], rules)
        found = hapax.query("deals(X, Y)", rules, own, assume=["trades(b, c)", "trades(d, a)"], options=options)

    assert len(found) == 16
    assert {row[-1] for row in found.rows} == {1.0}


@pytest.mark.parametrize(
    ("goal", "part"),
    [("findall(X, uses_currency(_, X), L)", "findall/3"), ("uses_currency(X, _), X \\= [a]", "a list")],
)
def test_a_goal_without_a_probability_names_the_part(
    goal: str, part: str, world: Path, kb: hapax.KnowledgeBase
) -> None:
    """A list of all answers is another one in each world, and other terms are no values."""
    with pytest.raises(hapax.HapaxError, match=re.escape(part)):
        chances(goal, world, kb)


def test_why_begins_with_the_probability_and_lists_the_proofs(world: Path, kb: hapax.KnowledgeBase) -> None:
    """Of an atom and of a searched statement, whose hypothesis about Person X is assumed."""
    rules = hapax.load_rules(world / "money.rules")
    options = hapax.ProbabilityOptions()
    atom = [text for _, _, text in hapax.why("is_spent_in(euro, 'Lyon')", rules, kb, probability=options).lines]
    statement = next(iter(kb.statements()))
    told = str(hapax.why(statement.id, rules, kb, probability=options))

    assert atom[1].startswith("P 0.9025, exact")
    assert [word in atom[2] for word in ("proof 1", 'uses_currency("France", "euro") 0.95')] == [True, True]
    assert "P 0.9025" in told


def test_commands_rank_filter_and_add_up(world: Path) -> None:
    """`query --probability` begins with the most probable; `derive --probability` has the expected number of each rule."""
    place = ["--rules", world / "money.rules", "--db", world / "kb.db"]
    goal = "uses_currency('France', X) ; is_spent_in(X, 'Lyon'), X = euro ; is_spent_in(X, 'Oslo')"
    shown = run("query", goal, "--probability", *place)
    filtered = json.loads(run("query", goal, "--probability", "--at-least", "0.92", "--json", *place).stdout)
    refused = invoke("query", goal, "--at-least", "0.9", *place)
    derive = ("derive", world / "money.rules", "--rule", "spent", "--probability", "--json", "--db", world / "kb.db")
    derived = json.loads(run(*derive).stdout)

    assert shown.stdout.split()[:4] == ["X", "probability", "euro", "0.9525"] or shown.stdout.split()[2] == "euro"
    assert "calibration" in shown.stderr
    assert [answer["X"] for answer in filtered["answers"]] == ["euro"]
    assert filtered["answers"][0]["method"] == "exact"
    assert refused.exit_code == 2
    assert "--probability" in refused.stderr
    assert derived["rules"][0]["expected"] == pytest.approx(3 * 0.95**2)


def test_derived_statements_are_ranked_filtered_and_written(
    world: Path, kb: hapax.KnowledgeBase, tmp_path: Path
) -> None:
    """The most probable come first, those below a bound are left out, and the file has the probabilities, too."""
    rules = hapax.load_rules(world / "money.rules")
    likely = hapax.ProbabilityOptions(at_least=0.9)
    derivation = hapax.derive(rules, kb, only=["spent"], probability=likely)
    assert derivation.write(tmp_path / "out.jsonl") == 3
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [line["probability"] for line in lines] == pytest.approx([0.95**2] * 3)
    none = hapax.derive(rules, kb, only="spent", probability=hapax.ProbabilityOptions(at_least=0.91))
    assert list(none.probabilities) == []


def test_without_the_library_the_best_proof_remains(
    world: Path, kb: hapax.KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two proofs together need the extra `probability`, which the error names; the best proof needs nothing."""
    monkeypatch.setitem(__import__("sys").modules, "pysdd.sdd", None)
    goal = "is_a_city_in('Lyon', 'France') ; is_a_city_in('Oslo', 'Norway')"

    assert chances(goal, world, kb, method="best") == {(): 0.95}
    with pytest.raises(hapax.HapaxError, match=r"hapax-kb\[probability\]"):
        chances(goal, world, kb)


def test_the_example_of_the_page_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files and commands of docs/how-to/probabilities.md give the outputs that it shows."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "probabilities.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"`([\w.]+)`:\n\n```\n(.*?)```", page, re.DOTALL):
        Path(name).write_text(text, "utf-8")
    sessions = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    steps = [step for session in sessions for step in session.split("$ hapax ")[1:]]
    for step in steps:
        command, _, shown = step.partition("\n")
        result = invoke(*shlex.split(command))

        assert result.exit_code == 0, result.output
        words = (result.stdout + result.stderr).split()
        assert [word for word in shown.split() if word not in words] == [], command
    assert len(steps) >= 4


LANDS = {f"land {first}{second}": place for place, (first, second) in enumerate(product("bfghjknr", "aeiou"))}
RIVERS = {name: [f"{name[5:]} river {n}" for n in range(6 if place % 2 else 2)] for name, place in LANDS.items()}
"""Of every other land a model names two rivers, which are right, and of the others six, which are wrong."""


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search for these rivers, whose critic affirms them all alike, with labels of the first 24 lands."""
    folder = tmp_path_factory.mktemp("replies")
    (folder / "my.rules").write_text(
        'oracle flows_through(River, Land): "[1] flows through [2]" / "[1] does not flow through [2]" / "?".\n'
        "lives_in(Person X, Land A) & flows_through(River B, Land A) -> can_swim_in(Person X, River B).\n"
    )
    generate = {"flows through [B]": list(LANDS), **{f"flows through {name}": found for name, found in RIVERS.items()}}
    script = {"generate": generate, "defaults": {"generate": [], "critic": 0.9, "likelihood": -10}}
    (folder / "script.json").write_text(json.dumps(script))
    rows = [(river, name) for name in LANDS for river in RIVERS[name]]
    labels = ["\t".join((str(LANDS[name] % 2 == 0).lower(), "flows_through", river, name)) for river, name in rows]
    (folder / "labels.tsv").write_text("\n".join(labels[:96]))
    right = [f"{river},{name}" for river, name in rows if LANDS[name] % 2 == 0]
    (folder / "rivers.csv").write_text("\n".join(["river,land", *right]))
    (folder / "rivers.yaml").write_text(
        "source: {name: rivers, version: '1', licence: none}\ntables:\n  rivers: {file: rivers.csv}\npredicates:\n"
        "  flows_through/2: {table: rivers, arguments: [river, land], closedness: closed, typed: false}\n"
    )
    run("search", *files(folder), "-m", f"scripted:{folder / 'script.json'}", "--no-progress", "--profile", "hapax")
    return folder


def files(folder: Path) -> list[object]:
    return ["--rules", folder / "my.rules", "--db", folder / "kb.db"]


def learned(folder: Path, labels: object) -> str:
    """The JSON that a calibration by these labels prints."""
    critic = f"scripted:{folder / 'script.json'}"
    return run("model", "calibrate", "--critic", critic, "--labels", labels, "--json", *files(folder)).stdout


def test_a_probability_knows_what_else_its_reply_says(replies: Path) -> None:
    """Where a critic affirms short true replies and long false ones alike, labels of some tell all others apart."""
    goal = ("query", "flows_through(River, Land)", "--probability", "--json", *files(replies))
    before = json.loads(run(*goal).stdout)["answers"]
    told = learned(replies, replies / "labels.tsv")
    after = json.loads(run(*goal).stdout)

    assert {answer["probability"] for answer in before} == {0.9}
    assert "replies" in told
    assert "96 labels" in after["basis"]
    fresh = [row for row in after["answers"] if LANDS[row["Land"]] >= 24]
    assert len(fresh) == 64
    assert all((row["probability"] > 0.7) == (LANDS[row["Land"]] % 2 == 0) for row in fresh)
    assert all((row["probability"] < 0.3) == (LANDS[row["Land"]] % 2 == 1) for row in fresh)


def test_a_value_of_a_half_open_question_is_no_label(replies: Path) -> None:
    """A reference labels the rivers of lands, not the lands that answered `[A] flows through [B]`."""
    told = json.loads(learned(replies, f"reference:{replies / 'rivers.yaml'}"))

    assert (told["labels"], told["true"]) == (160, 40)


def test_a_new_knowledge_base_keeps_rules_with_probabilities(tmp_path: Path) -> None:
    """A goal over a file of probabilities makes the base that is named, which then answers without the file."""
    rules, database = tmp_path / "my.rules", tmp_path / "new.db"
    rules.write_text("0.5::h(c1, z). coin(c1). coin(c2). coin(X) & not h(X, _) -> n(X)\n", "utf-8")

    first = run("query", "n(X)", "--rules", rules, "--db", database, "--json").stdout

    assert first == run("query", "n(X)", "--db", database, "--json").stdout
    answers = json.loads(first)["answers"]
    assert sorted((answer["X"], answer["probability"]) for answer in answers) == [("c1", 0.5), ("c2", 1)]
