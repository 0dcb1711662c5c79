"""The commands as people type them: output, exit codes and messages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import cli

ROOT = Path(__file__).parent.parent

RULES = """
type City < Location
functional is_a_city_in(City, Country): "[1] is a city in [2]" / "[1] is not a city in [2]" / "is [1] a city in [2]?"
oracle uses_currency(Country, Currency): "[1] uses the [2]" / "[1] does not use the [2]" / "does [1] use the [2]?"
given lives_in(Person, City): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given can_pay_with(Person, Currency): "[1] can pay with the [2]" / "[1] cannot pay with the [2]" / "can [1] pay with the [2]?"
@name currency
@domain locational
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> can_pay_with(Person X, Currency B)
"""

SCRIPT = {
    "generate": {
        "'[A] is a city in [B]'": ["Oslo", "Lyon", "Banjul"],
        "'Oslo is a city in [B]'": ["Norway"],
        "'Lyon is a city in [B]'": ["France"],
        "'Banjul is a city in [B]'": ["The Gambia"],
        "'Norway uses the [B]'": ["Norwegian krone", "euro"],
        "'France uses the [B]'": ["euro"],
        "'The Gambia uses the [B]'": ["dalasi"],
    },
    "critic": {"Norway uses the euro.": 0.1},
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "money.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.main, [str(one) for one in arguments])


def commands() -> list[str]:
    return sorted(cli.main.commands)


@pytest.mark.parametrize("command", commands())
def test_every_command_helps_with_an_example(command: str) -> None:
    """`--help` explains the command and shows a line to paste."""
    result = run(command, "--help")

    assert result.exit_code == 0
    assert f"  hapax {command}" in result.output


def test_check_passes_the_shipped_rules() -> None:
    """The library that ships has no errors."""
    assert run("check").exit_code == 0


def test_check_refuses_faulty_rules_with_place_and_remedy(tmp_path: Path) -> None:
    """A misprinted variable is exit code 4, and the message names file, line and column."""
    path = tmp_path / "bad.rules"
    path.write_text(
        "likes(Person X, Dish A) & is_made_of(Dish A, Food B) -> can_eat(Person P, Food B)\n", encoding="utf-8"
    )

    result = run("check", path)

    assert result.exit_code == 4
    assert "bad.rules:1:" in result.output


def test_syntax_errors_come_without_traceback(tmp_path: Path) -> None:
    """A file that cannot be read as rules is exit code 4 and diagnostics."""
    path = tmp_path / "worse.rules"
    path.write_text("p(Person X, Dish A) -> -> q(\n\0", encoding="utf-8")

    result = run("check", path)

    assert result.exit_code == 4
    assert "Traceback" not in result.output


def test_check_prints_json(tmp_path: Path) -> None:
    """`--json` gives each diagnostic with code, severity, place and remedy."""
    path = tmp_path / "bad.rules"
    path.write_text("p(Person X, Dish A) -> q(Person X, Dish A)\n", encoding="utf-8")

    shown = json.loads(run("check", path, "--json").stdout)

    assert {"code", "severity", "place", "remedy"} <= set(shown[0])


def test_compile_prints_prolog_that_swipl_loads(tmp_path: Path) -> None:
    """The printed program loads in SWI-Prolog without a word."""
    program = tmp_path / "program.pl"
    program.write_text(run("compile").stdout, encoding="utf-8")

    loaded = subprocess.run(
        ["swipl", "-q", "-g", "halt", program], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )

    assert (loaded.returncode, loaded.stdout, loaded.stderr) == (0, "", "")


@pytest.mark.parametrize(("form", "begins"), [("text", ""), ("mermaid", "graph LR"), ("dot", "graph ")])
def test_plan_draws_the_graph(form: str, begins: str) -> None:
    """The dependency graph comes as text, Mermaid and DOT."""
    result = run("plan", "--rule", "allergy", "--graph", form)

    assert result.exit_code == 0
    assert result.stdout.startswith(begins)
    assert "is_ingredient_in" in result.stdout


def test_plan_says_what_a_run_costs(rules: Path, tmp_path: Path) -> None:
    """Before anything is asked, calls, tokens and money by role are shown, and no knowledge base is made."""
    database = tmp_path / "none.db"

    result = run("plan", rules, "-m", "simulated", "--db", database)

    assert result.exit_code == 0
    assert all(word in result.stdout for word in ("calls", "tokens", "money", "knowledge", "critic"))
    assert not database.exists()


@pytest.fixture
def searched(rules: Path, tmp_path: Path) -> Path:
    """A knowledge base after a search with a scripted model."""
    script, database = tmp_path / "script.json", tmp_path / "kb.db"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    result = run("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress")
    assert result.exit_code == 0, result.output
    return database


def test_search_stores_statements_that_query_and_why_explain(searched: Path, rules: Path) -> None:
    """Search, query, why and why-not agree on what is known and why."""
    asked = run("query", "uses_currency(Country, Currency)", "--rules", rules, "--db", searched, "--json")
    assumed = run(
        "query",
        "can_pay_with(eva, B)",
        "--assume",
        'lives_in(eva, "Oslo")',
        "--rules",
        rules,
        "--db",
        searched,
        "--json",
    )
    why = run("why", 'uses_currency("Norway", "Norwegian krone")', "--rules", rules, "--db", searched)
    why_not = run("why-not", 'uses_currency("Norway", euro)', "--rules", rules, "--db", searched)

    assert {"Country": "France", "Currency": "euro"} in json.loads(asked.stdout)["answers"]
    assert json.loads(assumed.stdout)["answers"] == [{"B": "Norwegian krone"}]
    assert "0.95" in why.output
    assert "0.1" in why_not.output


def test_nothing_assumed_is_stored(searched: Path, rules: Path) -> None:
    """What `--assume` says is gone after the query."""
    run("query", "can_pay_with(eva, B)", "--assume", 'lives_in(eva, "Oslo")', "--rules", rules, "--db", searched)

    result = run("query", "lives_in(eva, A)", "--rules", rules, "--db", searched, "--json")

    assert json.loads(result.stdout)["answers"] == []


def test_the_same_search_again_asks_nothing(searched: Path, rules: Path, tmp_path: Path) -> None:
    """A second search with an empty script finds everything in the journal."""
    script = tmp_path / "script.json"

    again = run("search", rules, "-m", f"scripted:{script}", "--db", searched, "--no-progress", "--json")

    assert [one["calls"] for one in json.loads(again.stdout)["calls"].values() if one["calls"]] == []


def test_a_budget_ends_a_search_with_exit_code_3(rules: Path, tmp_path: Path) -> None:
    """`--max-calls` stops before the limit is passed and says how to go on."""
    result = run("search", rules, "-m", "simulated", "--db", tmp_path / "kb.db", "--max-calls", "1", "--no-progress")

    assert result.exit_code == 3
    assert "same command" in result.output


def test_query_refuses_what_is_not_a_goal_of_the_rules(searched: Path, rules: Path) -> None:
    """A call outside the allow-list is refused before Prolog sees it."""
    result = run("query", 'shell("touch /tmp/hapax-was-here")', "--rules", rules, "--db", searched)

    assert result.exit_code in (1, 4)
    assert not Path("/tmp/hapax-was-here").exists()


def test_import_and_export_round_trip(tmp_path: Path) -> None:
    """Facts that are imported come out again in every format."""
    given, database = tmp_path / "facts.csv", tmp_path / "kb.db"
    given.write_text('predicate,arg1,arg2\nlives_in,"Tom ""the cat""",Oslo\n', encoding="utf-8")

    assert run("import", given, "--db", database).exit_code == 0

    assert "lives_in" in run("export", "--db", database, "--format", "prolog").stdout
    assert json.loads(run("export", "--db", database, "--format", "jsonl").stdout)["arguments"][0] == 'Tom "the cat"'


def test_merge_adds_what_the_other_knows(searched: Path, tmp_path: Path) -> None:
    """Merging into an empty knowledge base brings all facts along."""
    mine = tmp_path / "mine.db"

    assert run("merge", searched, "--db", mine).exit_code == 0

    count = json.loads(run("stats", "--db", mine, "--json").stdout)["facts"]
    assert count == json.loads(run("stats", "--db", searched, "--json").stdout)["facts"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "p(X)", "--db", "/nonexistent/kb.db"),
        ("search", "--rule", "no_such_rule"),
        ("search", "-m", "no_such_model"),
        ("why", "no such statement", "--db", "/nonexistent/kb.db"),
        ("import", "/nonexistent/facts.csv"),
    ],
)
def test_bad_input_is_one_message_and_no_traceback(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be done is said in a message with an exit code."""
    monkeypatch.chdir(tmp_path)

    result = run(*arguments)

    assert result.exit_code in (1, 2, 4)
    assert isinstance(result.exception, SystemExit)
    assert result.output.strip()


def test_models_and_doctor_print_json() -> None:
    """Both listings can be read by a program."""
    assert "embedded" in [one["name"] for one in json.loads(run("models", "--json").stdout)]
    assert "SWI-Prolog" in [one["name"] for one in json.loads(run("doctor", "--json").stdout)]


def test_commands_without_a_model_import_no_torch() -> None:
    """`check` imports neither torch nor transformers nor pyswip."""
    code = "import sys, cli\ntry:\n cli.main(['check'])\nexcept SystemExit: pass\nprint([m for m in ('torch', 'transformers', 'pyswip', 'wordfreq') if m in sys.modules])"

    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert shown.stdout.strip().endswith("[]")


@pytest.mark.parametrize(
    "option",
    [
        ("search", "--beam", "0"),
        ("search", "--temperature", "nan"),
        ("search", "--keep-share", "7"),
        ("search", "--max-cost", "nan"),
        ("search", "--plan", "nonsense"),
        ("query", "p(X)", "--seconds", "inf"),
        ("query", "p(X)", "--answers", "0"),
        ("query", "p(X)", "--memory", "-1"),
    ],
)
def test_numbers_out_of_range_are_wrong_usage(option: tuple[str, ...]) -> None:
    """An option that cannot mean anything is refused at once, before a model is loaded."""
    assert run(*option).exit_code == 2
