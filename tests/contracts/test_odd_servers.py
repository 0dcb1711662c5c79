"""Servers that answer strangely: nothing is made up, nothing is paid twice, and one bad question stops no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import servers
from cli_fixture import invoke
from click.testing import Result
from servers import OddServer, about

import hapax

BAD = {
    "content: null": servers.null_content,
    "choices: []": servers.no_choices,
    "a tool call": servers.tool_call,
    "an error with status 200": servers.error_in_body,
    "status 500": servers.server_error,
}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HAPAX_ALIASES"):
        monkeypatch.delenv(name, raising=False)


def command(folder: Path, server: OddServer, *options: str, **alias: Any) -> list[str]:
    """A command's options for the rules, a knowledge base and the model of the server, with two attempts a request."""
    (folder / "dishes.rules").write_text(servers.RULES, "utf-8")
    model = {"model_id": "m", "model_name": "m", "api_base": server.url, "attempts": 2, **alias}
    (folder / "models.yaml").write_text(json.dumps([model]), "utf-8")
    places = ("--db", str(folder / "kb.db"), "--aliases", str(folder / "models.yaml"))
    return [*places, "-m", "openai:m", "--likelihood", "frequency", "--profile", "hapax", *options]


def search(folder: Path, server: OddServer, *options: str, **alias: Any) -> Result:
    options = tuple(command(folder, server, *options, **alias))
    return invoke("search", folder / "dishes.rules", *options)


def facts(folder: Path) -> set[tuple[Any, ...]]:
    """The arguments of the facts that a model gave."""
    with hapax.KnowledgeBase(folder / "kb.db", read_only=True) as kb:
        return {fact.arguments for fact in kb.facts() if fact.predicate == "is_eaten_in"}


def statistics(result: Result) -> dict[str, Any]:
    return dict(json.loads(result.stdout)["calls"])


def without_answer(folder: Path) -> list[dict[str, Any]]:
    """Roles and reasons of the requests without an answer, by `stats`."""
    return list(json.loads(invoke("stats", "--db", folder / "kb.db", "--json").stdout)["refused"])


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
def test_a_list_that_is_never_answered_stops_no_other_and_is_paid_for_once(
    reply: servers.Behaviour, tmp_path: Path
) -> None:
    """A question without a usable reply is passed over and counted; the same command does not ask it again."""
    with OddServer(about("eaten in Lima", reply)) as server:
        first = search(tmp_path, server)
        sent, about_lima = len(server.asked), server.asked_about("eaten in Lima'")
        again = search(tmp_path, server)

        assert first.exit_code == 0, first.output
        assert facts(tmp_path) == {(dish, city) for city, dish in servers.DISHES.items() if city != "Lima"}
        assert about_lima == 2  # as many as the attempts
        last = first.output.strip().splitlines()[-1]
        assert "unusable" in last
        assert "knowledge 1" in last
        assert "--retry-unusable" in last
        assert again.exit_code == 0
        assert len(server.asked) == sent
    ((answer),) = without_answer(tmp_path)
    assert (answer["role"], answer["count"]) == ("knowledge", 1)
    assert answer["reason"].startswith("no usable reply")


def test_what_had_no_usable_reply_is_asked_again_by_an_option(tmp_path: Path) -> None:
    """`--retry-unusable` asks for it once more, and keeps the answer in place of the reason."""
    with OddServer(about("eaten in Lima", servers.null_content)) as server:
        search(tmp_path, server)
        server.behave = lambda body, reply: reply
        sent = len(server.asked)
        foreseen = invoke("plan", tmp_path / "dishes.rules", *command(tmp_path, server, "--retry-unusable"))
        assert (foreseen.exit_code, len(server.asked)) == (0, sent), foreseen.output
        again = search(tmp_path, server, "--retry-unusable")

    assert again.exit_code == 0, again.output
    assert "unusable" not in again.output
    assert ("ceviche", "Lima") in facts(tmp_path)
    assert not without_answer(tmp_path)


def test_python_asks_again_for_what_had_no_usable_reply(tmp_path: Path) -> None:
    """`open_models(retry_unusable=True)` does as `--retry-unusable`; by default the goal goes without."""
    rules = hapax.parse_rules(servers.RULES)
    goal = "is_eaten_in(Dish, 'Lima')"

    with OddServer(about("eaten in Lima", servers.tool_call)) as server, hapax.KnowledgeBase() as kb:
        command(tmp_path, server)
        aliases = tmp_path / "models.yaml"

        def asked(retry: bool) -> list[Any]:
            models = hapax.open_models("openai:m", likelihood="frequency", aliases=aliases, retry_unusable=retry)
            settings = hapax.QueryOptions(settings=hapax.SearchSettings(profile="hapax"))
            return [dict(row) for row in hapax.query(goal, rules, kb, models=models, options=settings)]

        assert asked(False) == []
        server.behave = lambda body, reply: reply
        assert asked(False) == []
        assert asked(True) == [{"Dish": "ceviche"}]


@pytest.mark.parametrize("logprobs", [True, False], ids=["log-probabilities", "votes"])
def test_a_claim_that_is_never_judged_stops_no_other(logprobs: bool, tmp_path: Path) -> None:
    """A critic's question without a usable reply leaves its value out, however low the threshold, and no other."""

    def behave(body: servers.Body, reply: servers.Body) -> Any:
        if not logprobs and body.get("logprobs"):
            return 400, {"error": {"message": "logprobs are not supported"}}
        claim = servers.claim_of(body)
        return servers.null_content(body, reply) if claim == "Haggis is eaten in Edinburgh" else reply

    with OddServer(behave) as server:
        result = search(tmp_path, server, "--fact-threshold", "0.5")
    story = invoke(
        "why-not", 'is_eaten_in(haggis, "Edinburgh")', "--rules", tmp_path / "dishes.rules", "--db", tmp_path / "kb.db"
    )

    assert result.exit_code == 0, result.output
    assert "critic 1" in result.output.strip().splitlines()[-1]
    assert facts(tmp_path) == {(dish, city) for city, dish in servers.DISHES.items() if city != "Edinburgh"}
    assert "no usable reply" in " ".join(story.output.split())


def test_a_server_that_answers_nothing_ends_the_run(tmp_path: Path) -> None:
    """After five different questions in a row without a usable reply the run ends, with place and remedy."""
    cities = [f"City {number}" for number in range(40)]

    def behave(body: servers.Body, reply: servers.Body) -> Any:
        claim = servers.claim_of(body)
        if claim is not None:
            return (
                servers.first_tokens({"Yes": -0.1, "No": -2.4})(body, reply) if claim.endswith("is a city") else reply
            )
        if "is a city" in servers.prompt_of(body):
            return servers.numbered(city for city in cities if city not in servers.prompt_of(body))
        return servers.null_content(body, reply)

    with OddServer(behave) as server:
        ended = search(tmp_path, server)
        asked = server.asked_about("is eaten in City")

    assert ended.exit_code == 1, ended.output
    text = " ".join(ended.output.split())
    assert "no usable reply" in text
    assert "--retry-unusable" in text
    assert 5 * 2 <= asked < 40 * 2


def test_a_server_that_is_gone_ends_the_run_and_marks_nothing(tmp_path: Path) -> None:
    """Where no connection is made, the run ends, and no question counts as unusable."""
    with OddServer() as server:
        assert search(tmp_path, server, "--max-calls", "3").exit_code == 3
    gone = search(tmp_path, server)

    assert gone.exit_code == 1
    assert "run the same command" in " ".join(gone.output.split())
    assert not without_answer(tmp_path)


NOISE = {
    "a thought": {"<think>": -0.0001, "Yes": -9.8, "No": -9.9},
    "blank lines": {"\n\n": -0.0001, "Yes": -9.5, "No": -11.0},
    "another word": {"The": -0.2, "Yes": -2.5, "No": -2.6},
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_first_tokens_without_yes_or_no_are_no_probabilities(noise: dict[str, float], tmp_path: Path) -> None:
    """A model that begins its answers in another way votes, so that true and false claims are told apart."""

    def behave(body: servers.Body, reply: servers.Body) -> Any:
        if servers.claim_of(body) is None and "eaten in Lima" in servers.prompt_of(body):
            return servers.numbered(["pizza", "ceviche"])
        return servers.first_tokens(noise)(body, reply)

    with OddServer(behave) as server:
        result = search(tmp_path, server)

    assert result.exit_code == 0, result.output
    assert facts(tmp_path) == {(dish, city) for city, dish in servers.DISHES.items()}
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        judges = {call.model for call in kb.calls().values() if call.role == "critic"}
    assert all("vote" in judge for judge in judges)


@pytest.mark.parametrize("false", [{"Yes": -0.1, "No": -2.4}, {"No": -2.4, "Yes": -0.05}], ids=["equal", "reversed"])
def test_a_critic_by_first_tokens_has_to_tell_a_truth_from_a_falsehood(false: dict[str, float], tmp_path: Path) -> None:
    """Log-probabilities that are as high for a known falsehood as for a truth are not used."""
    with OddServer(servers.first_tokens({"Yes": -0.1, "No": -2.4}, false)) as server:
        result = search(tmp_path, server)

    assert result.exit_code == 0, result.output
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        assert all("vote" in call.model for call in kb.calls().values() if call.role == "critic")


def test_a_claim_whose_first_token_is_neither_has_no_answer(tmp_path: Path) -> None:
    """Later noise of a critic that was probed well accepts nothing, and is counted."""
    noise = servers.first_tokens(NOISE["blank lines"])
    with OddServer(about("Haggis is", noise)) as server:
        result = search(tmp_path, server, "--fact-threshold", "0.5", "--type-threshold", "0.5")

    assert result.exit_code == 0, result.output
    assert facts(tmp_path) == {(dish, city) for city, dish in servers.DISHES.items() if city != "Edinburgh"}
    assert "critic 2" in result.output.strip().splitlines()[-1]  # the type and the fact


def test_thoughts_that_are_in_the_total_alone_count_in_ledger_and_limit(tmp_path: Path) -> None:
    """Tokens and money of thoughts that a server leaves out of `completion_tokens` are those of the answer."""
    with OddServer(servers.thoughts_in_total) as server:
        result = search(tmp_path, server, "--max-tokens", "5000", price_in=1.0, price_out=1.0)
        sent = len(server.asked)
    (*_,) = listed = json.loads(invoke("ledger", "--db", tmp_path / "kb.db", "--json").stdout)["spending"]

    assert result.exit_code == 3, result.output
    assert sum(row["requests"] for row in listed) == sent
    assert sum(row["completion_tokens"] for row in listed) == 910 * sent
    assert sum(row["cost"] for row in listed) == pytest.approx(950e-6 * sent)
    assert sent < 10


def test_probes_at_the_start_count_in_the_limit_of_a_server_of_goals(tmp_path: Path) -> None:
    """All requests that a server of tools sends, those at its start included, stay within --max-calls."""
    pytest.importorskip("mcp")
    with OddServer() as server:
        options = command(tmp_path, server, "--ask", "--max-calls", "5")
        with hapax.KnowledgeBase(tmp_path / "kb.db"):
            pass
        line = [sys.executable, "-m", "hapax.cli", "mcp", "--rules", str(tmp_path / "dishes.rules"), *options]
        tools = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with tools:
            for goal in ("is_eaten_in(D, 'Lima')", "is_eaten_in(D, 'Hanoi')", "is_eaten_in(D, 'Valencia')"):
                answer = called(tools, "ask", {"goal": goal})
            tools.terminate()

    assert "Budget reached" in json.dumps(answer)
    assert len(server.asked) <= 5


def called(tools: subprocess.Popen[str], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool, by the Model Context Protocol over stdin and stdout."""
    assert tools.stdin is not None
    assert tools.stdout is not None
    client = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
    ]
    for message in messages:
        tools.stdin.write(json.dumps(message) + "\n")
        tools.stdin.flush()
        if message.get("id") == 1:
            tools.stdout.readline()
    while True:
        reply = json.loads(tools.stdout.readline())
        if reply.get("id") == 2:
            return dict(reply)
