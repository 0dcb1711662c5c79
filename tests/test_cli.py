"""The commands as people type them: output, exit codes and messages."""

import io
import json
import re
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import RULES, SCRIPT
from rich.console import Console

from hapax import cli
from hapax.commands import console
from hapax.commands.options import search_settings
from hapax.commands.search import search as search_command
from hapax.engine.search.progress import ProgressCounter
from hapax.kb.records import TypeFact
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle import registry, simulated
from hapax.llm_oracle.backend import Backend
from hapax.llm_oracle.backends import checkpoints
from hapax.llm_oracle.scripted import ScriptedModel

ROOT = Path(__file__).parent.parent


def commands() -> list[str]:
    return sorted(cli.main.commands)


@pytest.mark.parametrize("command", commands())
def test_every_command_helps_with_an_example(command: str) -> None:
    """`--help` explains the command and shows a line to paste."""
    result = invoke(command, "--help")

    assert result.exit_code == 0
    assert f"  hapax {command}" in result.output


def test_check_passes_the_shipped_rules() -> None:
    """The library that ships has no errors."""
    assert invoke("check").exit_code == 0


def test_check_refuses_faulty_rules_with_place_and_remedy(tmp_path: Path) -> None:
    """A misprinted variable is exit code 4, and the message names file, line and column."""
    path = tmp_path / "bad.rules"
    path.write_text(
        "likes(Person X, Dish A) & is_made_of(Dish A, Food B) -> can_eat(Person P, Food B)\n", encoding="utf-8"
    )

    result = invoke("check", path)

    assert result.exit_code == 4
    assert "bad.rules:1:" in result.output


def test_syntax_errors_come_without_traceback(tmp_path: Path) -> None:
    """A file that cannot be read as rules is exit code 4 and diagnostics."""
    path = tmp_path / "worse.rules"
    path.write_text("p(Person X, Dish A) -> -> q(\n\0", encoding="utf-8")

    result = invoke("check", path)

    assert result.exit_code == 4
    assert "Traceback" not in result.output


def test_check_prints_json(tmp_path: Path) -> None:
    """`--json` gives each diagnostic with code, severity, place and remedy."""
    path = tmp_path / "bad.rules"
    path.write_text("p(Person X, Dish A) -> q(Person X, Dish A)\n", encoding="utf-8")

    shown = json.loads(invoke("check", path, "--json").stdout)

    assert {"code", "severity", "place", "remedy"} <= set(shown[0])


def test_compile_prints_prolog_that_swipl_loads(tmp_path: Path) -> None:
    """The printed program loads in SWI-Prolog without a word."""
    program = tmp_path / "program.pl"
    program.write_text(invoke("compile").stdout, encoding="utf-8")

    loaded = subprocess.run(
        ["swipl", "-q", "-g", "halt", program], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )

    assert (loaded.returncode, loaded.stdout, loaded.stderr) == (0, "", "")


@pytest.mark.parametrize(("form", "begins"), [("text", ""), ("mermaid", "graph LR"), ("dot", "graph ")])
def test_plan_draws_the_graph(form: str, begins: str) -> None:
    """The dependency graph comes as text, Mermaid and DOT."""
    result = invoke("plan", "--rule", "allergy", "--graph", form)

    assert result.exit_code == 0
    assert result.stdout.startswith(begins)
    assert "is_ingredient_in" in result.stdout


def test_plan_says_what_a_run_costs(rules: Path, tmp_path: Path) -> None:
    """Before anything is asked, calls, tokens and money by role are shown, and no knowledge base is made."""
    database = tmp_path / "none.db"

    result = invoke("plan", rules, "-m", "simulated", "--db", database)

    assert result.exit_code == 0
    assert all(word in result.stdout for word in ("calls", "tokens", "money", "knowledge", "critic"))
    assert not database.exists()


@pytest.mark.parametrize(
    ("attribute", "kind", "shown"),
    [
        ("", "Person", "Person X (by default, a person)"),
        ("@generic X A\n", "Person", "Person X, City A (@generic)"),
        ("", "Firm", "Firm X (by default, first argument)"),
    ],
)
def test_plan_says_who_is_generic_and_why(rules: Path, tmp_path: Path, attribute: str, kind: str, shown: str) -> None:
    """Each rule's line names the variables that nobody searches, and the convention where @generic is not written."""
    text = RULES.replace("@name", f"{attribute}@name").replace("Person", kind)
    rules.write_text(text, encoding="utf-8")

    result = invoke("plan", rules, "-m", "simulated", "--db", tmp_path / "none.db")
    as_json = invoke("plan", rules, "-m", "simulated", "--db", tmp_path / "none.db", "--json")

    assert any(line.startswith("currency") and shown in line for line in result.stdout.splitlines())
    assert json.loads(as_json.stdout)["rules"][0]["generic"] == shown


def test_plan_says_where_the_price_is_unknown(rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of a backend without a price costs an unknown amount, never nothing; the others stay free."""
    monkeypatch.setattr(simulated, "BACKEND", replace(simulated.BACKEND, price=None))

    result = invoke("plan", rules, "-m", "simulated", "--db", tmp_path / "none.db")

    money = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "price unknown" in money["knowledge"]
    assert "0.00 to 0.00" in money["evaluator"]


@pytest.fixture
def searched(rules: Path, tmp_path: Path) -> Path:
    """A knowledge base after a search with a scripted model."""
    script, database = tmp_path / "script.json", tmp_path / "kb.db"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    result = invoke("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress")
    assert result.exit_code == 0, result.output
    return database


def test_query_writes_decimals_exactly_as_json(tmp_path: Path) -> None:
    """Decimals that a float would make equal stay two answers, inside lists, too."""
    rules, database = tmp_path / "sizes.rules", tmp_path / "kb.db"
    rules.write_text('fact size("a", 2.0000000000000000001). fact size("b", 2). fact size("c", 0.10).', "utf-8")
    KnowledgeBase(database).close()

    rows = json.loads(invoke("query", "size(_, N)", "--rules", rules, "--db", database, "--json").stdout)["answers"]
    bag = invoke("query", "findall(N, size(a, N), L)", "--rules", rules, "--db", database, "--json")

    assert rows == [{"N": {"decimal": "0.1"}}, {"N": 2}, {"N": {"decimal": "2.0000000000000000001"}}]
    assert json.loads(bag.stdout)["answers"] == [{"L": [{"decimal": "2.0000000000000000001"}]}]


def test_search_stores_statements_that_query_and_why_explain(searched: Path, rules: Path) -> None:
    """Search, query, why and why-not agree on what is known and why."""
    asked = invoke("query", "uses_currency(Country, Currency)", "--rules", rules, "--db", searched, "--json")
    assumed = invoke(
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
    why = invoke("why", 'uses_currency("Norway", "Norwegian krone")', "--rules", rules, "--db", searched)
    why_not = invoke("why-not", 'uses_currency("Norway", euro)', "--rules", rules, "--db", searched)

    assert {"Country": "France", "Currency": "euro"} in json.loads(asked.stdout)["answers"]
    assert json.loads(assumed.stdout)["answers"] == [{"B": "Norwegian krone"}]
    assert "0.95" in why.output
    assert "0.1" in why_not.output


def test_nothing_assumed_is_stored(searched: Path, rules: Path) -> None:
    """An assumption of `--assume` is gone after the query."""
    invoke("query", "can_pay_with(eva, B)", "--assume", 'lives_in(eva, "Oslo")', "--rules", rules, "--db", searched)

    result = invoke("query", "lives_in(eva, A)", "--rules", rules, "--db", searched, "--json")

    assert json.loads(result.stdout)["answers"] == []


def test_the_same_search_again_asks_nothing(searched: Path, rules: Path, tmp_path: Path) -> None:
    """A second search with an empty script finds everything in the journal."""
    script = tmp_path / "script.json"

    again = invoke("search", rules, "-m", f"scripted:{script}", "--db", searched, "--no-progress", "--json")

    assert [one["calls"] for one in json.loads(again.stdout)["calls"].values() if one["calls"]] == []


def search_with(tmp_path: Path, text: str, *options: str) -> Result:
    """A search of these rules with the scripted model in a fresh knowledge base."""
    script, rules = tmp_path / "script.json", tmp_path / "own.rules"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    rules.write_text(text, encoding="utf-8")
    return invoke("search", rules, "-m", f"scripted:{script}", "--db", tmp_path / "kb.db", *options)


def test_search_counts_what_head_and_long_tail_share(tmp_path: Path) -> None:
    """Statements in both overlapping ends are counted by rule and in all, and a sentence says why there are any."""
    result = search_with(tmp_path, RULES, "--ends", "overlapping", "--no-progress")
    told = json.loads(search_with(tmp_path, RULES, "--ends", "overlapping", "--json").stdout)

    header, line = (row.split() for row in result.stdout.splitlines() if row.startswith(("rule ", "currency ")))
    assert header[:6] == ["rule", "head", "long", "tail", "in", "both"]
    assert line[:4] == ["currency", "3", "3", "3"]
    assert f"3 head and 3 long-tail statements in {tmp_path / 'kb.db'}, 3 of them in both;" in result.stdout
    assert "each distribution keeps 75% of them (--keep-share; LINK's paper: 75%)" in result.stdout
    assert told["statements"] == {"head": 3, "long_tail": 3, "in_both": 3}


def test_search_says_how_the_ends_were_cut(tmp_path: Path) -> None:
    """The closing lines count the statements that were divided, and name the rules that have few of them."""
    shown = search_with(tmp_path, RULES, "--no-progress")

    assert shown.exit_code == 0
    assert "1 head and 1 long-tail statement in" in shown.stdout
    assert "0 of them in both" in shown.stdout
    assert "The ends are cut from 3 statements and share none" in shown.stdout
    assert "too few for meaningful ends: currency (3)" in shown.stdout


def test_a_measure_that_the_ranker_lacks_is_refused(tmp_path: Path) -> None:
    """The error names the ranker's measures, and comes before anything is asked."""
    shown = search_with(tmp_path, RULES, "--measure", "span", "--no-progress")

    assert shown.exit_code == 1
    assert "does not give the measure span. Its measures are paper, total, slor" in " ".join(shown.stderr.split())


def test_search_of_one_end_says_nothing_of_both(tmp_path: Path) -> None:
    """With a single distribution there is nothing to share."""
    shown = search_with(tmp_path, RULES, "--distribution", "head", "--no-progress").stdout

    assert "of them in both" not in shown
    assert "Statements are in both" not in shown


def test_search_and_stats_agree_on_calls(tmp_path: Path) -> None:
    """The calls of a first run are all that the journal holds; both are told by role, and a second run sends none."""
    first = search_with(tmp_path, RULES, "--no-progress").stdout
    again = search_with(tmp_path, RULES, "--no-progress").stdout
    counts = json.loads(invoke("stats", "--db", tmp_path / "kb.db", "--json").stdout)
    shown = invoke("stats", "--db", tmp_path / "kb.db").stdout

    roles = counts["calls_by_role"]
    by_role = [f"{role} {roles[role]}" for role in ("knowledge", "critic", "likelihood", "evaluator")]
    assert sum(roles.values()) == counts["calls"]
    assert f"{counts['calls']} requests answered in this process: " in first
    assert "Nothing was sent. " in first
    assert all(one in first and one in shown for one in by_role)
    assert "\n0 requests sent in this run, retries and votes included. " in again


def test_progress_without_a_terminal_is_lines_on_stderr(tmp_path: Path) -> None:
    """A log gets a line at the start and one at the end, and JSON on stdout stays JSON."""
    result = search_with(tmp_path, RULES, "--json")

    first, last = result.stderr.splitlines()
    counts = json.loads(result.stdout)["calls"]["knowledge"]
    assert first.startswith("rule 1 of 1: 0 calls, 0 hits, 0 accepted, 0 rejected")
    assert last.startswith("searched in 0:")
    assert f": {counts['calls']} calls, " in last
    assert search_with(tmp_path, RULES, "--json", "--no-progress").stderr == ""


def test_progress_lines_come_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """Between the first line and the last there is one in ten seconds at most, with the time left."""
    now = [0.0]
    tally = ProgressCounter(clock=lambda: now[0])
    with console._lines(tally) as show:
        tally.started(2, 40)
        tally.searching(["a"], 20)
        for _ in range(4):
            show(tally)
            now[0] += 6
            tally.advanced(5, 0, 4, 1)

    assert capsys.readouterr().err.splitlines() == [
        "rule 1 of 2: 0 calls, 0 hits, 0 accepted, 0 rejected",
        "rule 1 of 2: 10 calls, 0 hits, 8 accepted, 2 rejected, 0:00:36 left",
        "searched in 0:00:24: 20 calls, 0 hits, 16 accepted, 4 rejected",
    ]


def test_progress_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar takes what large counts leave of the line; nothing is cut."""
    screen = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=screen, force_terminal=True, width=80, _environ={}))

    with console.progress_display(True) as progress:
        assert progress is not None
        progress.started(60, 90_000)
        progress.searching(["a", "b"], 60_000)
        progress.advanced(43_210, 12_345, 54_321, 32_109)

    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "43210 calls, 12345 hits, 54321 accepted, 32109 rejected, 0:00:0" in drawn
    assert " left" in drawn
    assert "…" not in drawn
    assert max(len(line) for line in re.split(r"[\r\n]", drawn)) <= 80


def test_skipped_rules_share_one_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each skipped rule is listed with what is unknown; what helps is said once, in a search and in its estimate."""
    opened = ScriptedModel.from_file

    def limited(path: Path) -> ScriptedModel:
        model = opened(path)
        model.identity = replace(model.identity, name="limited", knows=("is_a_city_in/2",))
        return model

    monkeypatch.setattr(ScriptedModel, "from_file", limited)
    twice = RULES + RULES[RULES.index("@name") :].replace("currency\n", "money\n")
    for option in ("--no-progress", "--dry-run"):
        result = search_with(tmp_path, twice, option)

        assert result.stderr.splitlines() == [
            "skipped 2 rules that ask for what limited does not know. Choose a model that knows them with --knowledge and --critic.",
            "  currency: uses_currency/2",
            "  money: uses_currency/2",
        ]


def test_a_rule_that_finds_nothing_says_what_may_be_missing(tmp_path: Path) -> None:
    """Undeclared predicates are named where a rule has no statement, because a model was asked in words made of names."""
    result = search_with(tmp_path, RULES[RULES.index("@name") :], "--no-progress")

    assert result.exit_code == 0
    assert "empty currency has no statement" in result.stderr
    assert "is_a_city_in/2, lives_in/2, uses_currency/2 have no template" in result.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--no-critic",), "accepts every value as true"), (("--compat", "released"), "however low it is"), ((), None)],
)
def test_a_search_that_keeps_what_may_be_false_warns(
    tmp_path: Path, options: tuple[str, ...], reason: str | None
) -> None:
    """A search without a real critic warns that its facts stay in the knowledge base, and names --db."""
    stderr = search_with(tmp_path, RULES, "--no-progress", *options).stderr

    assert ("warning" in stderr and "--db" in stderr and reason in stderr) if reason else "warning" not in stderr


def test_compat_searches_in_links_order(tmp_path: Path) -> None:
    """LINK's order of variables comes with --compat unless --plan names another; without it the cheapest is taken."""
    found = []
    for number, options in enumerate([(), ("--compat", "paper"), ("--compat", "paper", "--plan", "cheapest")]):
        database = tmp_path / f"{number}.db"
        search_with(tmp_path, RULES, "--no-progress", *options, "--db", str(database))
        with KnowledgeBase(database, read_only=True) as kb:
            found.append({run.settings["plan"] for run in kb.runs()})

    assert found == [{"cheapest"}, {"link"}, {"cheapest"}]


def test_lists_in_answers_are_lists_in_json(searched: Path, rules: Path) -> None:
    """`findall` gives a JSON list."""
    result = invoke("query", "findall(C, is_a_city_in(_, C), L)", "--rules", rules, "--db", searched, "--json")

    assert sorted(json.loads(result.stdout)["answers"][0]["L"]) == ["France", "Norway", "The Gambia"]


def test_rules_without_a_domain_have_a_heading_only_beside_others(tmp_path: Path) -> None:
    """Rules of no domain stand under words that say so, or under none if there is no domain at all."""
    bare = RULES.replace("@domain locational\n", "")
    mixed = RULES + bare[bare.index("@name") :].replace("currency\n", "money\n")

    assert "rules without a domain" not in search_with(tmp_path, bare, "--no-progress").stdout
    shown = search_with(tmp_path, mixed, "--no-progress").stdout.splitlines()
    assert shown.index("locational") < shown.index("rules without a domain")


def test_many_notes_of_a_kind_are_grouped(tmp_path: Path) -> None:
    """`check --db` prints the first few notes about a knowledge base and counts the others; --all and JSON have all."""
    rules, database = tmp_path / "own.rules", tmp_path / "kb.db"
    rules.write_text(RULES + "".join(f"type Thing {letter} < Stuff\n" for letter in "ABCD"), encoding="utf-8")
    with KnowledgeBase(database) as kb:
        kb.add_type_facts(TypeFact("jam", f"Thing {letter}") for letter in "ABCD")

    grouped = invoke("check", rules, "--db", database)
    every = invoke("check", rules, "--db", database, "--all")
    as_json = json.loads(invoke("check", rules, "--db", database, "--json").stdout)

    assert grouped.stdout.count("1 constant has the unrelated types") == console.NOTES_SHOWN
    assert f"{database}:1:1: 3 more notes HPX421; --all prints all." in grouped.stdout
    assert every.stdout.count("1 constant has the unrelated types") == 6
    assert "more notes" not in every.stdout
    assert sum(one["code"] == "HPX421" for one in as_json) == 6
    assert grouped.stderr.startswith("1 rule, 0 errors, ")


def test_a_budget_ends_a_search_with_exit_code_3(rules: Path, tmp_path: Path) -> None:
    """`--max-calls` stops before the limit is passed and says how to go on."""
    result = invoke("search", rules, "-m", "simulated", "--db", tmp_path / "kb.db", "--max-calls", "1", "--no-progress")

    assert result.exit_code == 3
    assert "same command" in result.output


def test_query_refuses_what_is_not_a_goal_of_the_rules(searched: Path, rules: Path) -> None:
    """A call outside the allow-list is refused before Prolog sees it."""
    result = invoke("query", 'shell("touch /tmp/hapax-was-here")', "--rules", rules, "--db", searched)

    assert result.exit_code == 1
    assert not Path("/tmp/hapax-was-here").exists()


@pytest.mark.parametrize("atom", ["frobs(butter, hummus)", "uses(Norway,", "uses(Norway)"])
def test_goals_that_cannot_be_asked_fail_alike(searched: Path, rules: Path, atom: str) -> None:
    """An unknown predicate, or no goal at all, is exit code 1 in each command: the rules are not at fault."""
    told = [invoke(command, atom, "--rules", rules, "--db", searched) for command in ("query", "why", "why-not")]
    assumed = invoke("query", "true", "--assume", atom, "--rules", rules, "--db", searched)

    assert [one.exit_code for one in (*told, assumed)] == [1] * 4


def test_a_price_without_effect_is_told(rules: Path, tmp_path: Path) -> None:
    """A price of a model that is not asked, or that costs nothing, warns and names the models that are asked."""
    (tmp_path / "grid.yaml").write_text("models:\n  - {name: a, knowledge: simulated}\nfiles: [no.rules]\n", "utf-8")
    models = ("-m", "simulated", "--likelihood", "frequency", "--db", tmp_path / "x.db")
    planned = invoke("plan", rules, *models, "--price", "openai:typo=1,2", "--price", "simulated=1,2")
    silent = invoke("plan", rules, *models)
    grid = invoke("evaluate", "grid", tmp_path / "grid.yaml", "--price", "openai:typo=1,2", "--db", tmp_path / "x.db")

    assert planned.exit_code == 0
    assert "--price of openai:typo, simulated has no effect. Asked: frequency, simulated." in planned.stderr
    assert "--price of openai:typo has no effect. Asked: frequency, simulated." in grid.stderr
    assert "--price" not in silent.stderr


def test_a_text_in_a_fact_is_shown_as_it_is_written(tmp_path: Path) -> None:
    """The remedy of a bare name in a fact is the name in quotes, ready to be copied."""
    path = tmp_path / "facts.rules"
    path.write_text("fact was_born_in(ann, 1815)\n", encoding="utf-8")

    assert 'If it is a text, quote it: "ann".' in invoke("check", path).stdout


def test_import_and_export_round_trip(tmp_path: Path) -> None:
    """Facts that are imported come out again in every format."""
    given, database = tmp_path / "facts.csv", tmp_path / "kb.db"
    given.write_text('predicate,arg1,arg2\nlives_in,"Tom ""the cat""",Oslo\n', encoding="utf-8")

    assert invoke("import", given, "--db", database).exit_code == 0

    exported = invoke("export", "--db", database, "--format", "prolog")
    assert "lives_in" in exported.stdout
    assert exported.stderr == "1 fact exported\n"
    assert json.loads(invoke("export", "--db", database, "--format", "jsonl").stdout)["arguments"][0] == 'Tom "the cat"'


def test_import_warns_of_columns_without_a_use(tmp_path: Path) -> None:
    """Columns that an import ignores are named with their place, and the facts of each predicate are counted."""
    given = tmp_path / "facts.csv"
    given.write_text("note,predicate,argument1,argument2\nsure,lives_in,Ada,Oslo\n", encoding="utf-8")

    result = invoke("import", given, "--db", tmp_path / "kb.db")

    told = " ".join(result.stderr.split())
    assert result.exit_code == 0
    assert "facts.csv:1: ignored: 'note'." in told
    assert "1 of lives_in/2 1 fact read, 1 of them new" in told


def test_export_refuses_an_unknown_predicate_and_leaves_the_file_alone(searched: Path, tmp_path: Path) -> None:
    """A slip in a predicate's name is an error with near matches; what the output file held stays."""
    output = tmp_path / "facts.pl"
    output.write_text("mine", encoding="utf-8")

    result = invoke("export", "--db", searched, "--predicate", "uses_curency", "-o", output)

    assert result.exit_code == 1
    assert "Did you mean uses_currency/2?" in " ".join(result.stderr.split())
    assert output.read_text(encoding="utf-8") == "mine"


def test_stories_need_no_rule_files(searched: Path, tmp_path: Path) -> None:
    """Without `--rules`, a statement of one's own rules is told in their words, with the models of the search."""
    (first, *_) = KnowledgeBase(searched, read_only=True).statements()

    result = invoke("why", first.text, "--db", searched)

    assert result.exit_code == 0, result.output
    assert "the knowledge model scripted/script.json@" in result.stdout
    assert "the critic scripted/script.json@" in result.stdout
    assert "the likelihood model scripted/script.json@" in result.stdout
    assert "the evaluator frequency@wordfreq" in result.stdout
    assert "is a city in" in result.stdout


@pytest.mark.parametrize(
    ("goal", "remedy"),
    [
        ("lives_inn(X, Y)", "name other files with --rules."),
        ("owns(X, Y)", "declares it: name one with --rules. The line `given owns(Object, Object)` is enough."),
        ("can_pay_with(X, Y)", "from a search with other rule files: name them with --rules."),
    ],
)
def test_query_says_where_an_unknown_predicate_may_come_from(
    searched: Path, tmp_path: Path, goal: str, remedy: str
) -> None:
    """A predicate that the loaded rules lack points to --rules, and to what the knowledge base has of it."""
    other, given = tmp_path / "other.rules", tmp_path / "owns.csv"
    other.write_text("given likes(Person, Dish).\n", encoding="utf-8")
    given.write_text("owns,Ada,boat\n", encoding="utf-8")
    invoke("import", given, "--db", searched)

    result = invoke("query", goal, "--db", searched, "--rules", other)

    assert result.exit_code == 1
    assert remedy in " ".join(result.output.split())


def test_merge_adds_what_the_other_knows(searched: Path, tmp_path: Path) -> None:
    """Merging into an empty knowledge base brings all facts along."""
    mine = tmp_path / "mine.db"

    assert invoke("merge", searched, "--db", mine).exit_code == 0

    count = json.loads(invoke("stats", "--db", mine, "--json").stdout)["facts"]
    assert count == json.loads(invoke("stats", "--db", searched, "--json").stdout)["facts"] > 0


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
    """An impossible request ends with a message and an exit code."""
    monkeypatch.chdir(tmp_path)

    result = invoke(*arguments)

    assert result.exit_code in (1, 2, 4)
    assert isinstance(result.exception, SystemExit)
    assert result.output.strip()


def test_a_message_stays_one_line_where_no_terminal_shows_it(tmp_path: Path) -> None:
    """A long path in it can be copied, and what the system says comes as place and fact."""
    missing = tmp_path / "folder that is not there, with a name of some length" / "next.jsonl"

    command = [sys.executable, "cli.py", "search", "--queue", missing, "--db", tmp_path / "kb.db"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert told.returncode == 1
    remedy = "Create it, or name another file for --queue."
    assert told.stderr == f"error: {missing}: no such folder {missing.parent}. {remedy}\n"


def test_models_and_doctor_print_json() -> None:
    """Both listings can be read by a program."""
    assert "embedded" in [one["name"] for one in json.loads(invoke("models", "--json").stdout)]
    assert "SWI-Prolog" in [one["name"] for one in json.loads(invoke("doctor", "--json").stdout)]


@pytest.mark.parametrize(("version", "code"), [((3, 36, 9), 1), ((3, 37, 0), 0)])
def test_doctor_refuses_an_sqlite_without_strict_tables(
    version: tuple[int, int, int], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has STRICT tables from 3.37 on; an older one is told with a remedy and exit code 1."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    result = invoke("doctor")

    assert result.exit_code == code, result.output
    assert ("install a Python built with SQLite 3.37" in result.output) == bool(code)


def test_commands_without_a_model_import_no_torch() -> None:
    """`check` imports neither torch nor transformers nor pyswip."""
    code = "import sys\nfrom hapax import cli\ntry:\n cli.main(['check'])\nexcept SystemExit: pass\nprint([m for m in ('torch', 'transformers', 'pyswip', 'wordfreq') if m in sys.modules])"

    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert shown.stdout.strip().endswith("[]")


def test_a_goal_over_facts_imports_no_graphs(searched: Path, rules: Path) -> None:
    """`query` imports networkx only where predicates rest on themselves or on derived ones."""
    code = "import sys\nfrom hapax import cli\ntry:\n cli.main(sys.argv[1:])\nexcept SystemExit: pass\nprint('networkx' in sys.modules)"
    goal = ("query", "uses(norway, X)", "--rules", rules, "--db", searched)

    shown = subprocess.run([sys.executable, "-c", code, *goal], cwd=ROOT, capture_output=True, text=True, check=True)

    assert shown.stdout.strip().endswith("False")


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
    assert invoke(*option).exit_code == 2


def test_a_search_says_what_the_default_model_is(rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for which no model is named says that it uses the embedded model, and how to name another."""
    monkeypatch.setattr(checkpoints, "EMBEDDED_FOLDER", tmp_path / "none")  # no need to load it
    command = ("search", rules, "--db", tmp_path / "kb.db")

    unnamed, named = invoke(*command), invoke(*command, "-m", "embedded")

    assert re.search(r"embedded model: .*only the facts of its atlas.* -m, such as smollm2", unnamed.stderr)
    assert "atlas" not in named.stderr
    assert "atlas" not in unnamed.stdout


@pytest.mark.parametrize(
    ("missing", "ranker"),
    [
        ([], "Ranker: smollm2, by how common the names are."),
        (["smollm2"], "Ranker: frequency, by how common the names are."),
        (["smollm2", "frequency"], "hardly knows what is rare"),
    ],
)
def test_the_default_ranker_knows_which_names_are_common(
    rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str], ranker: str
) -> None:
    """Beside the embedded model the first installed of SmolLM2 and word frequency ranks, and the search says which."""
    monkeypatch.setattr(checkpoints, "EMBEDDED_FOLDER", tmp_path / "none")  # no need to load it
    find = registry.find_backend

    def found(name: str) -> Backend | None:
        backend = find(name)
        absent = "it is not installed" if name in missing else ""
        return backend and replace(backend, missing=lambda: absent)

    monkeypatch.setattr(registry, "find_backend", found)

    assert ranker in invoke("search", rules, "--db", tmp_path / "kb.db").stderr


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        (("-m", "smollm2"), (10, 250)),
        (("-m", "gguf:small.gguf", "--values", "4"), (4, 100)),
        (("-m", "smollm2", "--answer-tokens", "900"), (10, 900)),
        (("-m", "smollm2", "--compat", "paper"), (50, 1000)),
        (("-m", "simulated"), (50, 1000)),
    ],
)
def test_small_models_are_asked_for_short_lists(arguments: tuple[str, ...], sizes: tuple[int, int]) -> None:
    """A small model on a processor repeats itself in long lists; what the user says holds for every model."""
    context = search_command.make_context("search", list(arguments))
    settings = search_settings(context.params)

    assert (settings.values_per_call, settings.answer_tokens) == sizes


@pytest.mark.parametrize("words", [("query", "r(X, A)"), ("why", "r(x, 1)"), ("why-not", "r(x, 1)")])
def test_goals_refuse_rules_that_check_rejects(tmp_path: Path, words: tuple[str, str]) -> None:
    """Answers over a rejected rule would turn on the order of its premises; exit code 4, as of derive."""
    rules = tmp_path / "r.rules"
    rules.write_text("oracle p(Thing)\np(Thing X) & not q(Thing Y) & q(Thing X) -> r(Thing X, Thing Y)\n", "utf-8")
    with KnowledgeBase(tmp_path / "x.db"):
        pass
    result = invoke(*words, "--rules", rules, "--db", tmp_path / "x.db")

    assert result.exit_code == 4, result.output
    assert "error HPX" in result.stdout + result.stderr
