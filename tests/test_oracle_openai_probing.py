"""Probes of servers: journaled once, counted, found out to be stale; and what every command says of such models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import WORLD
from openai_fake import Asked, FakeServer, Reply
from test_oracle_openai import facts, opened, searched

from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, BudgetReached, Price
from hapax.llm_oracle.journal import PROBE, Journal
from hapax.llm_oracle.registry import open_model, open_models


@pytest.fixture
def aliases(tmp_path: Path) -> Path:
    return tmp_path / "models.yaml"


def name(aliases: Path, fake: FakeServer, **more: Any) -> None:
    """Name the server's model `small`."""
    entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, **more}
    aliases.write_text(json.dumps([entry]), encoding="utf-8")


def search(rules: Path, database: Path, fake: FakeServer, *options: str) -> Result:
    return searched(rules, database, f"openai:tiny@{fake.url}", *options)


def calls(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)["calls"]
    return found


def answering_as(version: str) -> Any:
    """A server that says that another version answers, with the answers of before."""
    second = FakeServer(WORLD)

    def misbehave(number: int, asked: Asked) -> Reply | None:
        status, body, headers = second.reply(asked)
        return status, ({**body, "model": version} if status == 200 else body), headers

    return misbehave


# The journal


def test_probes_are_asked_once_and_a_resumed_run_needs_no_server(rules: Path, tmp_path: Path) -> None:
    """The findings of probes are in the knowledge base: the same search again runs with the server switched off."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        first = search(rules, database, fake, "--evaluator", f"openai:tiny@{fake.url}", "--json", "--profile", "hapax")
        sent = len(fake.asked)
    again = search(rules, database, fake, "--evaluator", f"openai:tiny@{fake.url}", "--json", "--profile", "hapax")

    assert (first.exit_code, again.exit_code) == (0, 0), again.output
    assert calls(first)[PROBE]["calls"] == 5  # manner, critic with two claims, likelihood with two texts
    assert sum(role["calls"] for role in calls(first).values()) == sent
    assert calls(first)[PROBE]["prompt_tokens"] > 20
    assert calls(again)[PROBE] == {
        **dict.fromkeys(calls(again)[PROBE], 0),
        "hits": 3,
        "cost": calls(again)[PROBE]["cost"],
    }
    assert not any(role["calls"] for role in calls(again).values())


@pytest.mark.parametrize("budget", [Budget(max_calls=0), Budget(max_tokens=1000), Budget(max_cost=0.0001)])
def test_the_budget_counts_probes(budget: Budget, fresh_kb: KnowledgeBase) -> None:
    """Nothing is sent where calls, tokens or money do not suffice for probing."""
    with FakeServer(WORLD) as fake:
        price = {f"openai:tiny@{fake.url}": Price(1.0, 1.0)}
        options = OpeningOptions(journal=Journal(fresh_kb, budget), prices=price)
        with pytest.raises(BudgetReached):
            open_model(f"openai:tiny@{fake.url}", "critic", options)

    assert fake.asked == []


def test_a_search_without_calls_left_ends_before_it_probes(rules: Path, tmp_path: Path) -> None:
    """--max-calls 0 sends nothing and exits with 3; what is journaled is still there for it."""
    with FakeServer(WORLD) as fake:
        stopped = search(rules, tmp_path / "kb.db", fake, "--max-calls", "0")
        sent = len(fake.asked)
        done = search(rules, tmp_path / "kb.db", fake)
        again = search(rules, tmp_path / "kb.db", fake, "--max-calls", "0")

    assert (stopped.exit_code, done.exit_code, again.exit_code) == (3, 0, 0), again.output
    assert sent == 0


def test_a_plan_probes_and_writes_nothing(rules: Path, tmp_path: Path) -> None:
    """A plan of a new knowledge base makes no file; one of a known one takes what its journal holds."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        planned = invoke("plan", rules, "-m", f"openai:tiny@{fake.url}", "--db", database)
        made = database.exists()
        probed = len(fake.asked)
        search(rules, database, fake)
        sent = len(fake.asked)
        known = invoke("plan", rules, "-m", f"openai:tiny@{fake.url}", "--db", database)

    assert (planned.exit_code, known.exit_code) == (0, 0), known.output
    assert not made
    assert probed > 0
    assert len(fake.asked) == sent


def test_a_changed_server_is_found_out_by_its_first_answer(rules: Path, tmp_path: Path) -> None:
    """Another version than the probed one ends the run unless it is asked anew; answers of two versions never mix."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        fake.misbehave = lambda number, asked: (503, {}, {"Retry-After": "9999"}) if number > 15 else None
        cut = search(rules, database, fake)
        answered = len(stored_models(database))
        fake.misbehave = answering_as("tiny-2")
        moved = search(rules, database, fake)
        between = stored_models(database)
        anew = search(rules, database, fake, "--probe-again")
        done = search(rules, database, fake, "--json")

    assert (cut.exit_code, moved.exit_code, anew.exit_code) == (1, 1, 0), anew.output
    assert "now answers with tiny-2" in " ".join(moved.output.split())
    assert "--probe-again" in moved.output
    assert answered == len(between)
    assert {"tiny-2" in model for model in stored_models(database)} == {True, False}
    assert not any(role["calls"] for role in calls(done).values())
    assert any("dalasi" in fact for fact in facts(database))


def stored_models(database: Path) -> list[str]:
    with KnowledgeBase(database, read_only=True) as kb:
        return [call.model for call in kb.calls().values() if call.role != PROBE]


def test_a_named_revision_is_taken_at_its_word(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """With `revision` in the alias, what the server calls itself does not matter; a new one probes and asks anew."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        name(aliases, fake, revision="2026-08")
        options = ("--aliases", str(aliases), "--json")
        first = searched(rules, database, "openai:small", *options)
        fake.misbehave = answering_as("tiny-2")
        same = searched(rules, database, "openai:small", *options)
        name(aliases, fake, revision="2026-09")
        renewed = searched(rules, database, "openai:small", *options)

    assert not any(role["calls"] for role in calls(same).values())
    asked = (PROBE, "knowledge", "critic", "likelihood")
    assert [calls(renewed)[role]["calls"] for role in asked] == [calls(first)[role]["calls"] for role in asked]
    assert all(calls(renewed)[role]["calls"] for role in asked)


def test_a_server_that_learnt_something_is_probed_again(fresh_kb: KnowledgeBase) -> None:
    """A vote stays a vote until --probe-again finds log-probabilities; from then on these stay."""

    def way(again: bool = False) -> str:
        options = OpeningOptions(journal=Journal(fresh_kb), probe_again=again)
        revision = open_model(f"openai:tiny@{fake.url}", "critic", options).identity.revision
        return str(revision.rpartition("; ")[2])

    with FakeServer(WORLD, frozenset({"logprobs", "systemone"})) as fake:
        before = way()
        fake.lacks = frozenset()
        ways = [way(), way(again=True), way()]

    assert before == "vote of 10"
    assert ways == ["vote of 10", "logprobs", "logprobs"]


def test_a_probe_that_failed_is_no_finding(fresh_kb: KnowledgeBase) -> None:
    """A model that was not there, or a likelihood that the server could not give, is looked for again."""
    options = OpeningOptions(journal=Journal(fresh_kb))
    missing = (404, {"error": {"message": "model not found"}}, {})
    with FakeServer(WORLD, misbehave=lambda number, asked: missing) as fake:
        with pytest.raises(Exception, match="model not found"):
            open_model(f"openai:tiny@{fake.url}", "knowledge", options)
        fake.misbehave = lambda number, asked: None
        model = open_model(f"openai:tiny@{fake.url}", "knowledge", options)

    assert model.identity.revision == "chat"


def test_models_without_a_journal_are_probed_all_the_same() -> None:
    """Opening a model from Python needs no knowledge base."""
    with FakeServer() as fake:
        assert opened(fake).critic().identity.revision.endswith("logprobs")


# What commands say of models


def test_every_experiment_takes_aliases(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """`evaluate probe` and `evaluate likelihood` ask a model by its alias, and again without a request."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        name(aliases, fake)
        given = ("--aliases", aliases, "--db", database)
        assert invoke("search", rules, "-m", "openai:small", *given, "--no-progress").exit_code == 0
        commands: list[tuple[str | Path, ...]] = [
            ("evaluate", "probe", "-m", "openai:small", *given, "--sample", "2"),
            ("evaluate", "likelihood", "--rules", rules, "--evaluator", "openai:small", *given),
            ("query", "uses_currency(X, Y)", "--rules", rules, "--ask", "-m", "openai:small", *given),
        ]
        results = [invoke(*command) for command in commands]
        sent = len(fake.asked)
        again = [invoke(*command) for command in commands]

    assert [result.exit_code for result in (*results, *again)] == [0] * 6, [
        result.output for result in (*results, *again)
    ]
    assert len(fake.asked) == sent


def test_a_price_on_the_command_line_limits_the_money(rules: Path, tmp_path: Path) -> None:
    """--price says what an openai model costs, before its alias; without any, --max-cost says how to give one."""
    with FakeServer(WORLD) as fake:
        model = f"openai:tiny@{fake.url}"
        planned = invoke("plan", rules, "-m", model, "--price", f"{model}=1000,2000", "--likelihood", "frequency")
        unpriced = search(rules, tmp_path / "kb.db", fake, "--max-cost", "1")
        stopped = search(rules, tmp_path / "kb.db", fake, "--max-cost", "25", "--price", f"{model}=10000,20000")
        spent = json.loads(invoke("stats", "--db", tmp_path / "kb.db", "--json").stdout)["calls_by_role"]
        done = search(rules, tmp_path / "kb.db", fake, "--max-cost", "1000", "--price", f"{model}=10000,20000")

    assert "price unknown" not in planned.output
    assert unpriced.exit_code == 1
    assert "--price MODEL=IN,OUT" in " ".join(unpriced.output.split())
    assert (stopped.exit_code, done.exit_code) == (3, 0), stopped.output
    assert spent


@pytest.mark.parametrize(
    "price", ["5", "=1,2", "openai:m=1", "openai:m=1,x", "openai:m=1,-2", "openai:m=nan,1", "openai:m=1,2,3"]
)
def test_a_price_that_is_none_is_wrong_usage(price: str, rules: Path) -> None:
    """A model string and two numbers from 0, or exit code 2 with the form."""
    result = invoke("plan", rules, "--price", price)

    assert result.exit_code == 2
    assert "price" in result.output


def test_the_price_of_a_command_comes_before_the_aliass(aliases: Path) -> None:
    """A price given by hand is the newer word."""
    with FakeServer() as fake:
        name(aliases, fake, price_in=1.0, price_out=1.0)
        options = OpeningOptions(aliases=aliases, prices={"openai:small": Price(2.0, 3.0)})
        models = open_models("openai:small", options=options)

    assert models.knowledge.price == Price(2.0, 3.0)  # type: ignore[attr-defined]


def test_findings_keep_the_field_names_of_older_journals(fresh_kb: KnowledgeBase) -> None:
    """The journal stores a critic's method by the names that it has always had, and reads them back."""
    with FakeServer(WORLD, lacks=frozenset({"logprobs", "systemone", "n"})) as fake:
        options = OpeningOptions(journal=Journal(fresh_kb))
        first = open_model(f"openai:tiny@{fake.url}", "critic", options)
        again = open_model(f"openai:tiny@{fake.url}", "critic", options)

    (stored,) = [call.response for call in fresh_kb.calls().values() if call.request.get("ability") == "critic"]
    assert stored == {"kind": "vote", "top": 20, "several": False}
    assert again.reserved("A.") == first.reserved("A.")
