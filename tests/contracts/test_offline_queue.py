"""The offline queue: nothing is sent, and files answer in rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import WORLD
from openai_fake import NOWHERE, FakeServer, answered
from openai_fake import queue_files as files
from served import found, spending


@pytest.fixture
def aliases(tmp_path: Path) -> Path:
    path = tmp_path / "models.yaml"
    entry = {"model_id": "small", "model_name": "tiny", "api_base": NOWHERE, "logprobs": "echo"}
    path.write_text(json.dumps([entry, {**entry, "model_id": "chat", "logprobs": "none"}]), encoding="utf-8")
    return path


def search(rules: Path, aliases: Path, database: Path, *options: str | Path) -> Result:
    given = ("search", rules, "-m", "openai:small", "--aliases", aliases, "--db", database, "--no-progress")
    return invoke(*given, *EVERY_END, *options)


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
        given = ["-m", f"openai:tiny@{server.url}", "--db", tmp_path / "http.db"]
        assert invoke("search", rules, *given, "--no-progress", *EVERY_END).exit_code == 0

    assert result.exit_code == 0, result.output
    assert found(tmp_path) == found(tmp_path, "http.db")
    assert len(found(tmp_path)[1]) > 1
    assert len(asked) == len(set(asked)) > 10
    assert files(queue) == []
    assert "0 requests in" in result.output


def test_the_ledger_has_what_batches_charge(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """Requests are queued in it before their file lands; each result that is still asked for is counted, unusable ones,
    too."""
    queue, results, database = tmp_path / "next.jsonl", tmp_path / "answered.jsonl", tmp_path / "kb.db"
    fake, given, charged, most_queued = FakeServer(WORLD), list[str | Path](), list[int](), 0
    for number in range(20):
        ended = search(rules, aliases, database, "--queue", queue, *given)
        if ended.exit_code == 0:
            break
        most_queued = max(most_queued, spending(tmp_path)["queued"])
        assert spending(tmp_path)["queued"] == len(answered(queue, results, fake))
        lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
        for place, line in enumerate(lines):
            charged.append(sum(line["response"]["body"]["usage"].values()))
            if (number + place) % 5 == 0:
                line["response"]["body"].pop("choices")
        results.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        given = ["--results", results]

    assert ended.exit_code == 0, ended.output
    found = spending(tmp_path)
    # Asked ahead of answers that then led elsewhere.
    unneeded = len(charged) - found["requests"]
    assert 0 <= unneeded < 5
    assert sum(charged) - found["prompt_tokens"] - found["completion_tokens"] <= unneeded * max(charged)
    assert found["unusable"] > 2
    assert found["queued"] == found["perhaps"] == 0 < most_queued


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
    assert f"{len(lines)} request in {queue}: /v1/chat/completions of tiny at 127.0.0.1:9" in said
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


FILTERED = {"error": {"message": "The response was filtered", "code": "content_filter"}}
BLOCKED = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}


@pytest.mark.parametrize(("status", "body"), [(400, FILTERED), (200, BLOCKED)])
def test_a_refused_result_is_not_queued_again(
    status: int, body: Any, rules: Path, aliases: Path, tmp_path: Path
) -> None:
    """A request that a filter stopped is answered by its refusal, as over HTTP; the search goes on."""
    queue, results, database = tmp_path / "next.jsonl", tmp_path / "answered.jsonl", tmp_path / "kb.db"
    search(rules, aliases, database, "--queue", queue)
    (first,) = [json.loads(line)["custom_id"] for line in queue.read_text("utf-8").splitlines()]
    line = {"custom_id": first, "response": {"status_code": status, "body": body}}
    results.write_text(json.dumps(line) + "\n", encoding="utf-8")

    result = search(rules, aliases, database, "--queue", queue, "--results", results)

    assert first not in queue.read_text("utf-8")
    assert "1 request was refused" in result.output


@pytest.mark.parametrize("last", ["answered", "refused"])
def test_of_two_results_the_later_one_counts(last: str, rules: Path, aliases: Path, tmp_path: Path) -> None:
    """Of files with different results of one request that which the command line names last has its result."""
    queue, database = tmp_path / "next.jsonl", tmp_path / "kb.db"
    search(rules, aliases, database, "--queue", queue)
    (request,) = answered(queue, tmp_path / "answered", FakeServer(WORLD))
    line = {"custom_id": request["custom_id"], "response": {"status_code": 400, "body": FILTERED}}
    (tmp_path / "refused").write_text(json.dumps(line) + "\n", encoding="utf-8")
    first = "refused" if last == "answered" else "answered"
    results = ("--results", tmp_path / first, "--results", tmp_path / last)

    said = search(rules, aliases, database, "--queue", queue, *results).output

    assert ("1 request was refused" in said) == (last == "refused")
