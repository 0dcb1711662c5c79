"""The plan of a search: calls, claims and money before anything is asked, beside what the search then takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from search_fixture import ALLERGY, OLDER, SILENT, rows, rules_of, scripted, searched, simulated, texts

import hapax
from benchmarks.server import simulated_server

SETTINGS = hapax.SearchSettings(profile="hapax", beam=8, calls_per_question=2, values_per_call=15)
SAME: dict[str, Any] = {"beam": 8, "calls_per_question": 2, "values_per_call": 15}
OLD = """
@name old
owns(Person X, Tool A) & was_invented_in("telescope", Year V) & was_invented_in(Tool A, Year V) -> is_old(Person X, Tool A).
"""
BOXES = """
type Gram < Number
type Kilogram < Number
given weighs(Box, Gram)
oracle is_printed_on(Label, Box): "[1] is printed on [2]" / "[1] is not printed on [2]" / "?".
@name heavy
@generic none
weighs(Box A, Gram G) & K = G / 1000 & K > 1 -> is_heavy(Box A, Kilogram K).
"""

DISHES = """
given is_in(Cheese, Dish)
given hates(Person, Cheese): "[1] hates [2]"
@name within
@generic none
is_in(Cheese C, Dish D) -> contains(Dish D, Cheese C).
@name avoids
hates(Person X, Cheese C) & contains(Dish D, Cheese C) -> avoids(Person X, Dish D).
"""


class Reluctant:
    """A model that answers questions with one right value with 1608, and only each tenth time that one is asked."""

    def __init__(self, model: Any) -> None:
        self.identity, self._model = model.identity, model
        self._asked: Counter[str] = Counter()

    def generate(self, requests: Any, parameters: Any) -> Any:
        replies = []
        for request, reply in zip(requests, self._model.generate(requests, parameters), strict=True):
            self._asked[request.prompt] += 1
            text = "" if self._asked[request.prompt] % 10 else "1. 1608."
            replies.append(replace(reply, text=text) if "correct value" in request.prompt else reply)
        return replies


def calls(estimate: Any) -> dict[str, int]:
    return {role: estimated.calls for role, estimated in estimate.roles.items()}


@pytest.mark.parametrize("way", [{"profile": "hapax"}, {"compat": "paper"}, {"compat": "released"}], ids=str)
@pytest.mark.parametrize("knowledge", [lambda model: model, Reluctant], ids=["ready", "reluctant"])
@pytest.mark.parametrize("text", [ALLERGY, OLDER, OLD])
def test_a_plan_asks_and_writes_nothing_and_is_free_after_the_search(
    text: str, way: dict[str, Any], knowledge: Any
) -> None:
    """Calls are expected before the search, none is sent, and afterwards the same plan is free."""
    library, kb = rules_of(text), hapax.KnowledgeBase()
    world, settings = simulated(library), hapax.SearchSettings(**SAME, **way)
    models = hapax.Models(knowledge(world.knowledge), world.critic, world.likelihood, world.evaluator)
    estimate = hapax.plan(library, kb, models, settings)
    empty = not any(hapax.stats(kb).counts.values())
    spent = hapax.search(library, kb, models, settings).report.statistics
    again = hapax.plan(library, kb, models, settings)

    assert empty
    assert estimate.calls > 0
    assert spent["knowledge"].calls > 0
    assert {count for role, count in calls(again).items() if role != "evaluator"} == {0}


def test_a_plan_over_given_facts_and_equations_is_exact() -> None:
    """Where given facts and arithmetic decide every step, the plan has what the search then does."""
    rules, kb = hapax.parse_rules(BOXES), hapax.KnowledgeBase()
    hapax.add_facts(kb, "weighs", [("crate", 2000), ("bag", 900), ("trunk", 1500)], rules)
    estimate = hapax.plan(rules, kb, scripted(SILENT), SETTINGS)
    (rule,) = estimate.rules
    result = searched(rules, scripted(SILENT), kb, **SAME)

    assert [(step.variable, step.values) for step in rule.steps] == [("A", 2), ("G", 2), ("K", 2)]
    assert rule.statements == 2 == len(result.statements)
    assert {count for role, count in calls(estimate).items() if role in ("knowledge", "critic")} <= {0}


def test_a_plan_knows_what_follows_from_given_facts() -> None:
    """Rows that rules derive from given facts bound a plan, not all that a goal might ever return."""
    rules, kb = hapax.parse_rules(DISHES), hapax.KnowledgeBase()
    hapax.add_facts(kb, "is_in", [("brie", "toast"), ("cheddar", "toast"), ("brie", "tart")], rules)
    (rule,) = hapax.plan(rules, kb, scripted(SILENT), SETTINGS, only=["avoids"]).rules

    assert [(step.variable, step.values) for step in rule.steps] == [("C", 2), ("D", 3)]


def test_a_forecast_needs_no_server_key_or_library(tmp_path: Path) -> None:
    """An alias that states its abilities is believed; what is not stated is said to be assumed."""
    served = "model_name: m, api_base: 'http://127.0.0.1:9/v1', latency: 0.5, max_concurrency: 10"
    aliases, rules = tmp_path / "models.yaml", tmp_path / "a.rules"
    aliases.write_text(
        f"- {{model_id: big, {served}, logprobs: output, price_in: 1, price_out: 2}}\n"
        f"- {{model_id: voting, {served}, logprobs: none, rpm: 60}}\n"
        f"- {{model_id: unstated, {served}, attempts: 1}}\n",
        encoding="utf-8",
    )
    rules.write_text(ALLERGY, encoding="utf-8")
    options = (rules, "--aliases", aliases, "--db", tmp_path / "none.db", "--json", "--likelihood", "frequency")

    knowledge = json.loads(invoke("plan", *options, "-m", "openai:big").stdout)["roles"]["knowledge"]
    voting = invoke("plan", *options, "-m", "openai:big", "--critic", "openai:voting")
    critic = json.loads(voting.stdout)["roles"]["critic"]
    unstated = json.loads(invoke("plan", *options, "-m", "openai:unstated").stdout)["roles"]["critic"]

    assert knowledge["cost"] > 0
    # Ten at a time, half a second each, and no faster than the rounds of the calls allow.
    assert knowledge["calls"] * 0.05 <= knowledge["seconds"] <= knowledge["calls"] * 0.5
    assert critic["seconds"] == critic["calls"]  # one a second
    assert unstated["assumed"]


def test_the_plan_of_a_new_server_is_near_what_the_search_sends(tmp_path: Path) -> None:
    """Requests, tokens and money of paid roles, with claims and lists together, though the server was never asked."""
    rules, aliases = tmp_path / "allergy.rules", tmp_path / "models.yaml"
    rules.write_text(ALLERGY, "utf-8")
    with simulated_server(hapax.load_rules(rules), 7, 0.0) as server:
        alias = {"model_id": "small", "model_name": "simulated", "api_base": server.url, "price_in": 1, "price_out": 4}
        aliases.write_text(json.dumps([alias]), "utf-8")
        common = ("--likelihood", "frequency", "--db", tmp_path / "kb.db", "--beam", "30", "--json")
        options = (rules, "-m", "openai:small", "--aliases", aliases, *common)
        planned = json.loads(invoke("plan", *options).stdout)["roles"]
        assert not server.usages
        result = invoke("search", *options)
        assert result.exit_code == 0, result.output
    spending = json.loads(invoke("model", "ledger", "--db", tmp_path / "kb.db", "--json").stdout)["spending"]

    for row in spending:
        if row["role"] in planned:
            expected = planned[row["role"]]
            tokens = row["prompt_tokens"] + row["completion_tokens"]
            figures = [
                (expected["calls"], row["requests"]),
                (expected["tokens"], tokens),
                (expected["cost"], row["cost"]),
            ]
            for figure, used in figures:
                assert used / 1.3 <= figure <= 1.3 * used, (row["role"], figures)


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


class Denier:
    """A critic of any words that believes nothing."""

    def __init__(self, model: Any) -> None:
        self.identity, self._critic = replace(model.critic.identity, name="mine/denier"), model.critic

    def probabilities(self, claims: Any) -> Any:
        return [replace(score, probability=0.05) for score in self._critic.probabilities(claims)]


def test_a_critic_that_says_no_to_known_truths_is_found_out() -> None:
    """It is tried on claims of known truth, and none of its values is accepted."""
    models = believed(0.9)
    result = searched(FOOD, replace(models, critic=Denier(models)))

    assert not texts(result)
    assert result.report.critic_probe.says_no(0.7)


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


LIBRARY = hapax.parse_rules("""
given is_made(Thing, Year)
given is_found(Object, Year)
given touches(Place, Place)
type Year < Number
@name pair
@generic none
is_made(Thing A, Year B) & is_found(Object C, Year D) -> may_match(Thing A, Object C)
@name early
@generic none
is_made(Thing A, Year B) & is_found(Object C, Year D) & B * D < 0 -> is_early(Thing A)
@name first
@generic none
touches(Place A, Place B) -> meets(Place A, Place B)
@name again
@generic none
meets(Place A, Place B) & meets(Place B, Place C) -> meets(Place A, Place C)
""")


@pytest.fixture(scope="module")
def kb() -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as opened:
        hapax.add_facts(opened, "is_made", [(f"thing {number}", number) for number in range(4000)], LIBRARY)
        hapax.add_facts(opened, "is_found", [(f"object {number}", number) for number in range(5000)], LIBRARY)
        hapax.add_facts(opened, "touches", [(f"p{number}", f"p{number + 1}") for number in range(200)], LIBRARY)
        yield opened


def found(code: str, kb: hapax.KnowledgeBase | None = None) -> list[str]:
    """The texts of the diagnostics of a kind."""
    return [item.text for item in hapax.check_rules(LIBRARY, kb) if item.code == code]


def test_an_accidental_product_is_a_warning_with_its_sizes(kb: hapax.KnowledgeBase) -> None:
    """A product that reaches the conclusion is no fault; without facts nothing is said."""
    (accidental,) = found("HPX418", kb)

    assert "rule early joins 4,000 rows of is_made/2 with 5,000 rows of is_found/2" in accidental
    assert "20,000,000 combinations" in accidental
    assert [text.split(" joins ")[0] for text in found("HPX423", kb)] == ["rule pair"]
    assert found("HPX103") == found("HPX418") == []


def test_a_closure_that_joins_itself_says_what_it_costs() -> None:
    """By its shape, with the linear rule as the remedy."""
    (shape,) = found("HPX223")

    assert "n^3/6 statements" in shape
    assert "Write touches/2 in place of the first meets/2" in shape


def test_a_time_limit_amidst_a_product_names_it(kb: hapax.KnowledgeBase) -> None:
    """Of a derivation, of a goal over a rule, and of a goal of its own; the next question is answered."""
    limits = hapax.QueryOptions(hapax.QueryLimits(seconds=2))
    hapax.derive(LIBRARY, kb, only=["first"])
    errors = []
    for work in (
        lambda: hapax.derive(LIBRARY, kb, only=["early"], seconds=2),
        lambda: hapax.query("is_early(X)", LIBRARY, kb, options=limits),
        lambda: hapax.query("is_made(A, B), is_found(C, D), B * D < 0", LIBRARY, kb, options=limits),
    ):
        with pytest.raises(hapax.LimitExceeded) as caught:
            work()
        errors.append(str(caught.value))

    assert all("joins 4,000 rows of is_made/2 with 5,000 rows of is_found/2" in error for error in errors)
    assert [error.count("Rule early joins") for error in errors] == [1, 1, 0]
    assert hapax.query("is_made('thing 7', 7)", LIBRARY, kb).holds


def test_a_part_that_a_constant_makes_small_is_no_product(kb: hapax.KnowledgeBase) -> None:
    """Of 4,000 facts one matches the constant, so that nothing is multiplied."""
    rules = "@name one\n@generic none\nis_made(Thing A, 7) & is_found(Object C, Year D) & 5 < D -> is_early(Thing A)\n"
    library = hapax.parse_rules(
        f"given is_made(Thing, Year)\ngiven is_found(Object, Year)\ntype Year < Number\n{rules}"
    )

    assert "HPX418" not in [item.code for item in hapax.check_rules(library, kb)]
