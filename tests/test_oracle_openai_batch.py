"""The offline queue: a search that sends nothing, answered in rounds by files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from openai_fake import Asked, FakeServer
from test_oracle_openai import RULES, WORLD, facts, statements

import cli
from llm_oracle.backends.openai_batch import BatchQueue

NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing listens there, so whatever is sent fails."""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "money.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture
def aliases(tmp_path: Path) -> Path:
    path = tmp_path / "models.yaml"
    entry = {"model_id": "small", "model_name": "tiny", "api_base": NOWHERE, "logprobs": "echo"}
    path.write_text(json.dumps([entry, {**entry, "model_id": "chat", "logprobs": "none"}]), encoding="utf-8")
    return path


def search(rules: Path, aliases: Path, database: Path, *options: str | Path) -> Result:
    given = ("search", rules, "-m", "openai:small", "--aliases", aliases, "--db", database, "--no-progress", *options)
    return CliRunner().invoke(cli.main, [str(one) for one in given])


def answered(queue: Path, results: Path, fake: FakeServer) -> list[dict[str, Any]]:
    """Answers a queue as a batch service does, in another order, and gives its requests."""
    requests = [json.loads(line) for line in queue.read_text("utf-8").splitlines()]
    lines = []
    for request in reversed(requests):
        status, body, _ = fake.reply(Asked(request["url"], request["body"], None))
        response = {"status_code": status, "request_id": "r", "body": body}
        lines.append({"id": "b", "custom_id": request["custom_id"], "response": response, "error": None})
    results.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return requests


def test_a_search_by_batches_finds_what_one_over_http_finds(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """Round by round, what is missing is written to a file and its results are taken in, until nothing is missing."""
    queue, database = tmp_path / "next.jsonl", tmp_path / "kb.db"
    given: list[str | Path] = []
    asked: list[str] = []
    fake = FakeServer(WORLD)
    for number in range(12):
        result = search(rules, aliases, database, "--queue", queue, *given)
        if result.exit_code == 0:
            break
        assert result.exit_code == 3, result.output
        results = tmp_path / f"answered{number}.jsonl"
        asked += [request["custom_id"] for request in answered(queue, results, fake)]
        given = ["--results", results]
    with FakeServer(WORLD) as server:
        environment = {"OPENAI_BASE_URL": server.url}
        arguments = ["search", str(rules), "-m", "openai:tiny", "--db", str(tmp_path / "http.db"), "--no-progress"]
        assert CliRunner(env=environment).invoke(cli.main, arguments).exit_code == 0

    assert result.exit_code == 0, result.output
    assert facts(database) == facts(tmp_path / "http.db")
    assert statements(database) == statements(tmp_path / "http.db")
    assert len(statements(database)) > 2
    assert len(asked) == len(set(asked)) > 10
    assert queue.read_text("utf-8") == ""


def test_the_queue_is_in_openais_format(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """Each line has a name of its own, method, URL and body; the rerun names the same requests the same."""
    queue = tmp_path / "next.jsonl"
    said = search(rules, aliases, tmp_path / "kb.db", "--queue", queue).output
    first = queue.read_text("utf-8")
    search(rules, aliases, tmp_path / "kb.db", "--queue", queue)

    lines = [json.loads(line) for line in first.splitlines()]
    assert lines
    assert all(set(line) == {"custom_id", "method", "url", "body"} for line in lines)
    assert {(line["method"], line["url"], line["body"]["model"]) for line in lines} == {
        ("POST", "/v1/chat/completions", "tiny")
    }
    assert f"{len(lines)} requests in" in said
    assert queue.read_text("utf-8") == first


@pytest.mark.parametrize(
    "response",
    [
        {"status_code": 500, "body": {"error": "sorry"}},
        None,
        {"status_code": 200, "body": {"choices": []}},
        {"status_code": 200, "body": 7},
    ],
)
def test_a_failed_result_is_queued_again(response: Any, rules: Path, aliases: Path, tmp_path: Path) -> None:
    """A request that the batch did not answer, or answered badly, stands in the next queue."""
    queue, results = tmp_path / "next.jsonl", tmp_path / "answered.jsonl"
    search(rules, aliases, tmp_path / "kb.db", "--queue", queue)
    first = [json.loads(line)["custom_id"] for line in queue.read_text("utf-8").splitlines()]
    results.write_text(json.dumps({"custom_id": first[0], "response": response}) + "\n", encoding="utf-8")

    result = search(rules, aliases, tmp_path / "kb.db", "--queue", queue, "--results", results)

    assert result.exit_code == 3
    assert [json.loads(line)["custom_id"] for line in queue.read_text("utf-8").splitlines()] == first


@pytest.mark.parametrize("line", ["no JSON", "[]", "{}", '{"custom_id": "a", "response": 7}', "[" * 100_000])
def test_a_file_that_holds_no_results_is_refused_with_its_line(
    line: str, rules: Path, aliases: Path, tmp_path: Path
) -> None:
    """A wrong file is one message with file and line, and the queue of before stays."""
    results = tmp_path / "wrong.jsonl"
    results.write_text('\n{"custom_id": "a", "response": null}\n' + line, encoding="utf-8")

    result = search(rules, aliases, tmp_path / "kb.db", "--queue", tmp_path / "next.jsonl", "--results", results)

    assert result.exit_code == 1
    assert "wrong.jsonl:3" in result.output.replace("\n", "")
    assert "Traceback" not in result.output


def test_a_queue_overwrites_no_other_file(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """A slip of the file's name costs nothing, and results need a queue."""
    before = rules.read_text("utf-8")

    over = search(rules, aliases, tmp_path / "kb.db", "--queue", rules)
    alone = search(rules, aliases, tmp_path / "kb.db", "--results", rules)

    assert over.exit_code == 1
    assert rules.read_text("utf-8") == before
    assert alone.exit_code == 2


def test_an_alias_without_likelihood_is_refused_unsent(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """What the alias states is believed where nothing can be probed."""
    options = ("--likelihood", "openai:chat", "--queue", tmp_path / "next.jsonl")

    result = search(rules, aliases, tmp_path / "kb.db", *options)

    assert result.exit_code == 1
    assert "logprobs: none" in " ".join(result.output.split())


def test_one_request_is_queued_once(tmp_path: Path) -> None:
    """However often it comes up."""
    from llm_oracle.backends.openai_batch import Queued
    from llm_oracle.backends.openai_transport import Ask

    queue = BatchQueue(tmp_path / "next.jsonl")
    for _ in range(2):
        with pytest.raises(Queued, match=r"next\.jsonl"):
            queue.ask([Ask("completions", {"prompt": "a"})] * 2, lambda reply, ask: reply)

    assert queue.count == 1
