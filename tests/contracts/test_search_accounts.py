"""The account of a search: where values are lost, what helps, thresholds as options, and ties at the cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from search_fixture import ALLERGY, OLDER, rows, rules_of, scripted, searched, simulated, texts

import hapax

FOODS = [f"food{number}" for number in range(8)]
RULES = """
oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?".
functional was_first_cooked_in(Dish, Year): "[1] was first cooked in [2]" / "[1] was not first cooked in [2]" / "?".
given is_allergic_to(Person, Food): "[1] is allergic to [2]" / "[1] is not allergic to [2]" / "is [1] allergic to [2]?".
given cannot_eat(Person, Dish): "[1] cannot eat [2]" / "[1] can eat [2]" / "can [1] not eat [2]?".
@name allergy
is_allergic_to(Person X, Food A) & is_in(Food A, Dish B) -> cannot_eat(Person X, Dish B).
"""
FOOD = hapax.parse_rules(RULES)
RuleFile = tuple[Path, Path, Path]


def believed(probability: float, **more: Any) -> Any:
    """A model that lists the foods for everything and believes all claims alike."""
    return scripted({**more, "defaults": {"generate": FOODS, "critic": probability, "likelihood": -4}})


def test_the_numbers_of_a_step_add_up_and_stored_answers_repeat_them() -> None:
    """Lines are dropped, repeated or judged, values rejected or accepted, substitutions lost, cut or kept."""
    library, kb = rules_of(ALLERGY, OLDER), hapax.KnowledgeBase()
    models = simulated(library)
    first = searched(library, models, kb)
    account = rows(first.account)

    assert sum(row["lines"] for row in account) > 100
    assert sum(row["repeated"] for row in account) > 0
    for row in account:
        judged = row["below_type"] + row["below_fact"] + row["accepted"]
        agreeing = row["rejected"] - row["below_type"] - row["below_fact"]
        assert row["lines"] == row["dropped"] + row["repeated"] + row["unjudged"] + judged + agreeing
        assert row["substitutions"] == row["failed"] + row["unranked"] + row["cut"] + row["kept"]
    assert rows(searched(library, models, kb).account) == account


def test_a_modest_critic_gets_somewhere() -> None:
    """By default P(yes) of 0.7, the floor, gives statements, 0.69 none; and 0.74 none under the paper's rules."""
    assert texts(searched(FOOD, believed(0.7)))
    assert not texts(searched(FOOD, believed(0.69)))
    assert not texts(searched(FOOD, believed(0.74), compat="paper", profile=None))


def test_the_remedy_for_low_probabilities_is_a_threshold_and_costs_no_call() -> None:
    """Each remedy that an empty rule names is followed; the last brings statements from the stored answers alone."""
    models, kb, rule = believed(0.6), hapax.KnowledgeBase(), hapax.CriticRule.parse("0.6")
    first = searched(FOOD, models, kb).shortages["allergy"]
    second = searched(FOOD, models, kb, type_threshold=rule).shortages["allergy"]
    third = searched(FOOD, models, kb, type_threshold=rule, fact_threshold=rule)

    assert "0.60" in first
    assert "0.65" in first
    assert "type_threshold` 0.6" in first
    assert "0.70" in second
    assert "fact_threshold` 0.6" in second
    assert third.shortages == {}
    assert [row["calls"] for row in rows(third)] == [0]
    assert texts(third)


@pytest.mark.parametrize(
    ("generate", "critic", "fact", "remedy"),
    [
        ("", 1.0, "no line", "calls_per_question"),
        ("Here is a list:\nI cannot help with that.", 1.0, "2 of 2 lines", "knowledge"),
        (FOODS, 0.2, "0.20", "critic"),
    ],
)
def test_an_empty_rule_names_the_first_remedy(generate: Any, critic: float, fact: str, remedy: str) -> None:
    """Nothing proposed, nothing readable, nothing believed: each has its own fact and remedy."""
    models = scripted({"defaults": {"generate": generate, "critic": critic, "likelihood": -4}})
    lost = searched(FOOD, models).shortages["allergy"]

    assert fact in lost
    assert remedy in lost


# --- thresholds as options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0.75", "floor=0.5", "start=0.6, cap=.9", "cap=0.8,step=0.1", "floor=0.9"])
def test_a_threshold_is_written_as_it_is_read(text: str) -> None:
    """A fixed or a moving threshold in words reads back as the same one, and a run stores these words."""
    rule = hapax.CriticRule.parse(text)
    kb = hapax.KnowledgeBase()
    searched(FOOD, believed(0.9), kb, fact_threshold=rule)

    assert hapax.CriticRule.parse(str(rule)) == rule
    assert kb.runs()[0].settings["fact_threshold"] == str(rule)


def test_thresholds_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    """Each faulty threshold is an error of usage that names its option, and no file is begun."""
    for text in ("", "nan", "-0.1", "1.1", "floor=x", "top=1", "step=0", "0.8,0.9", "cap=0.5,start=0.6"):
        result = invoke("search", "--fact-threshold", text, "--db", tmp_path / "kb.db")

        assert (result.exit_code, "--fact-threshold" in result.stderr) == (2, True), text
        assert not (tmp_path / "kb.db").exists()


# --- where people read it ---------------------------------------------------------------------------------------------


@pytest.fixture
def food(tmp_path: Path) -> RuleFile:
    """A rule file, a script whose critic says 0.5 to everything, and the place of a knowledge base."""
    rules, script = tmp_path / "food.rules", tmp_path / "script.json"
    rules.write_text(RULES, encoding="utf-8")
    hostile = "1. <b>bold</b>/\x1b[31mred.\n" + "".join(f"{n}. {food}.\n" for n, food in enumerate(FOODS, 2))
    script.write_text(
        json.dumps({"defaults": {"generate": hostile, "critic": 0.5, "likelihood": -4}}), encoding="utf-8"
    )
    return rules, script, tmp_path / "kb.db"


def test_every_room_says_where_values_ran_out(food: RuleFile, tmp_path: Path) -> None:
    """The closing output, its JSON, the HTML report, why-not and Python name the same shortage, and obey no reply."""
    rules, script, database = food
    command = ("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress")
    closing, told = invoke(*command), json.loads(invoke(*command, "--json").stdout)
    page = tmp_path / "page.html"
    report = invoke("report", "--db", database, "--rules", rules, "-o", page)
    story = invoke("why-not", "cannot_eat(tom, salt)", "--rules", rules, "--db", database)
    with hapax.KnowledgeBase(database) as kb:
        result = hapax.search(hapax.load_rules(rules), kb, hapax.open_models(f"scripted:{script}"))
    text = page.read_text("utf-8")
    row = rows(result.account)[0]

    assert report.exit_code == story.exit_code == 0
    for shown in (closing.stderr, story.stdout, text, result.shortages["allergy"]):
        assert "8 of 8 values were rejected" in " ".join(shown.split())
    assert "--type-threshold 0.5" in closing.stderr
    assert told["rules"][0]["account"][0]["losses"]["type"] == {"count": 8, "highest": 0.5, "threshold": 0.65}
    assert (row["lines"], row["dropped"], row["below_type"], row["highest_type"]) == (9, 1, 8, 0.5)
    assert "\x1b" not in closing.stdout + story.stdout
    assert "<b>bold" not in text


def test_account_prints_all_rules_on_demand(food: RuleFile) -> None:
    """A rule with statements has its account with --account only; a ranker that ties everything is named either way."""
    rules, script, database = food
    lenient = ("--fact-threshold", "0.5", "--type-threshold", "0.5")
    command = ("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress", *lenient, *EVERY_END)
    short, full = invoke(*command), invoke(*command, "--account")
    equal, ranked = json.loads(invoke(*command, "--json").stdout)["rules"][0]["equal_scores"]

    assert "Account of allergy" not in short.stdout
    assert "Account of allergy" in full.stdout
    assert all("a score that another text has" in result.stderr for result in (short, full))
    assert 0 < equal <= ranked


def test_what_a_search_prints_fits_a_screen(tmp_path: Path) -> None:
    """Thirty rules, two without a statement, print at most 40 lines of 100 characters, statements first."""
    rules, script = tmp_path / "many.rules", tmp_path / "script.json"
    dishes = "".join(
        f'oracle is_in{n}(Food, Dish{n}): "[1] is in the very long name of kind {n} of [2]".\n'
        f'given cannot_eat{n}(Person, Dish{n}): "[1] cannot eat anything at all of kind {n} that is called [2]".\n'
        f"@name allergy{n}\nis_allergic_to(Person X, Food A) & is_in{n}(Food A, Dish{n} B) -> cannot_eat{n}(Person X, Dish{n} B).\n"
        for n in range(30)
    )
    rules.write_text(f'given is_allergic_to(Person, Food): "[1] is allergic to [2]".\n{dishes}', "utf-8")
    nothing = {f"in the very long name of kind {n} of [B]'": "Here is a list:" for n in (3, 4)}
    script.write_text(json.dumps({"generate": nothing, "defaults": {"generate": FOODS, "critic": 0.9}}), "utf-8")
    command = ("search", rules, "-m", f"scripted:{script}", "--likelihood", "frequency", "--db", tmp_path / "kb.db")
    short, full = invoke(*command, "--no-progress"), invoke(*command, "--no-progress", "--account")
    height = sum(max(1, -(-len(line) // 100)) for line in (short.stdout + short.stderr).splitlines())

    assert height <= 40
    assert short.stdout.splitlines()[0].lstrip().startswith("head ")
    assert "--account" in short.stdout
    assert all(f"allergy{n} " in full.stdout for n in range(30))
    assert len(full.stdout) > 2 * len(short.stdout)
