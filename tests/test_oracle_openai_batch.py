"""The offline queue: a search that sends nothing, answered in rounds by files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import WORLD
from openai_fake import Asked, FakeServer
from test_oracle_openai import facts, statements

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backends import openai_batch
from hapax.llm_oracle.backends.openai_batch import BatchQueue, Queued
from hapax.llm_oracle.backends.openai_transport import Server, ServerRequest

HERE, THERE = Server("http://here/v1", "here"), Server("http://there/v1", "there")

NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing listens there, so whatever is sent fails."""

ASK = ServerRequest("completions", {"model": "tiny", "prompt": "a"})


@pytest.fixture
def aliases(tmp_path: Path) -> Path:
    path = tmp_path / "models.yaml"
    entry = {"model_id": "small", "model_name": "tiny", "api_base": NOWHERE, "logprobs": "echo"}
    path.write_text(json.dumps([entry, {**entry, "model_id": "chat", "logprobs": "none"}]), encoding="utf-8")
    return path


def search(rules: Path, aliases: Path, database: Path, *options: str | Path) -> Result:
    given = ("search", rules, "-m", "openai:small", "--aliases", aliases, "--db", database, "--no-progress")
    return invoke(*given, *EVERY_END, *options)


def files(queue: Path) -> list[Path]:
    """The files of a queue that hold requests."""
    numbered = sorted(queue.parent.glob(f"{queue.stem}-*{queue.suffix}"))
    return [file for file in (queue, *numbered) if file.read_text("utf-8")]


def answered(queue: Path, results: Path, fake: FakeServer) -> list[dict[str, Any]]:
    """Answers a queue as a batch service does, in another order, and gives its requests."""
    requests = [json.loads(line) for file in files(queue) for line in file.read_text("utf-8").splitlines()]
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
        arguments = [
            "search",
            str(rules),
            "-m",
            "openai:tiny",
            "--db",
            str(tmp_path / "http.db"),
            "--no-progress",
            *EVERY_END,
        ]
        assert invoke(*arguments, environment=environment).exit_code == 0

    assert result.exit_code == 0, result.output
    assert facts(database) == facts(tmp_path / "http.db")
    assert statements(database) == statements(tmp_path / "http.db")
    assert len(statements(database)) > 2
    assert len(asked) == len(set(asked)) > 10
    assert files(queue) == []
    assert "0 requests in" in result.output


def test_the_ledger_has_what_batches_charge(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """Requests are queued in it before their file lands; each result is counted, unusable ones, too."""
    queue, results, database = tmp_path / "next.jsonl", tmp_path / "answered.jsonl", tmp_path / "kb.db"
    fake, given, charged, most_queued = FakeServer(WORLD), list[str | Path](), list[int](), 0
    for number in range(20):
        ended = search(rules, aliases, database, "--queue", queue, *given)
        if ended.exit_code == 0:
            break
        most_queued = max(most_queued, spent(database)["queued"])
        assert spent(database)["queued"] == len(answered(queue, results, fake))
        lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
        for place, line in enumerate(lines):
            charged.append(sum(line["response"]["body"]["usage"].values()))
            if (number + place) % 5 == 0:
                line["response"]["body"].pop("choices")
        results.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        given = ["--results", results]

    assert ended.exit_code == 0, ended.output
    found = spent(database)
    assert (found["requests"], found["prompt_tokens"] + found["completion_tokens"]) == (len(charged), sum(charged))
    assert found["unusable"] > 2
    assert found["queued"] == found["perhaps"] == 0 < most_queued


def spent(database: Path) -> dict[str, Any]:
    """The sums of the ledger."""
    rows = json.loads(invoke("ledger", "--db", database, "--json").stdout)["spending"]
    return {name: sum(row[name] for row in rows) for name in rows[0] if name not in ("model", "role", "cost")}


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


def test_an_alias_without_likelihood_is_refused_unsent(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """The alias is believed if nothing can be probed."""
    options = ("--likelihood", "openai:chat", "--queue", tmp_path / "next.jsonl")

    result = search(rules, aliases, tmp_path / "kb.db", *options)

    assert result.exit_code == 1
    assert "logprobs: none" in " ".join(result.output.split())


def test_one_request_is_queued_once(tmp_path: Path) -> None:
    """However often it comes up."""
    queue = BatchQueue(tmp_path / "next.jsonl")
    for _ in range(2):
        with pytest.raises(Queued, match=r"next\.jsonl"):
            queue.to(HERE).ask([ServerRequest("completions", {"prompt": "a"})] * 2, lambda reply, ask: reply)

    assert queue.count == 1


def test_a_batch_is_of_one_endpoint_and_model(rules: Path, aliases: Path, tmp_path: Path) -> None:
    """Questions to a chat and texts to a completions endpoint go to a file each, which stderr names with its content."""
    queue = tmp_path / "next.jsonl"
    fake = FakeServer(WORLD)
    given: list[str | Path] = []
    urls: list[set[str]] = []
    for number in range(3):
        said = search(rules, aliases, tmp_path / "kb.db", "--queue", queue, *given).output
        given += ["--results", tmp_path / f"answered{number}.jsonl"]
        answered(queue, tmp_path / f"answered{number}.jsonl", fake)
        urls += [{json.loads(line)["url"] for line in file.read_text("utf-8").splitlines()} for file in files(queue)]

    assert [file.name for file in files(queue)] == ["next.jsonl", "next-2.jsonl"]
    assert all(len(distinct) == 1 for distinct in urls)
    assert {"/v1/chat/completions", "/v1/completions"} == set.union(*urls)
    assert f"in {queue}: /v1/chat/completions of tiny at 127.0.0.1:9" in said
    assert f"in {queue.with_name('next-2.jsonl')}: /v1/completions of tiny at 127.0.0.1:9" in said


def test_files_of_an_earlier_round_go(tmp_path: Path) -> None:
    """Numbered queues of before are removed, so that nobody sends them twice; files of other people and results stay."""
    old, foreign, lettered, given = (tmp_path / f"next-{name}.jsonl" for name in ("2", "8", "b", "9"))
    for path in (old, lettered, given):
        path.write_text('{"custom_id": "x", "response": null}\n', encoding="utf-8")
    foreign.write_text("not ours\n", encoding="utf-8")

    BatchQueue(tmp_path / "next.jsonl", [given]).land()

    assert [path.exists() for path in (old, foreign, lettered, given)] == [False, True, True, True]


def test_requests_of_two_servers_do_not_share_an_answer(tmp_path: Path) -> None:
    """The same body for two servers is two requests, in two files."""
    queue = BatchQueue(tmp_path / "next.jsonl")
    for server in (HERE, THERE):
        with pytest.raises(Queued):
            queue.to(server).ask([ASK], lambda reply, ask: reply)
    queue.land()

    assert [str(file).partition(":")[2] for file in queue.files] == [
        " /v1/completions of tiny at here",
        " /v1/completions of tiny at there",
    ]
    assert len({json.loads(file.path.read_text("utf-8"))["custom_id"] for file in queue.files}) == 2


@pytest.mark.parametrize(("limit", "most"), [("MOST_REQUESTS", 3), ("MOST_BYTES", 500)])
def test_a_batch_is_no_larger_than_openai_takes(
    limit: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 50,000 requests or 200 MB another file begins, here at a few."""
    monkeypatch.setattr(openai_batch, limit, most)
    queue = BatchQueue(tmp_path / "next.jsonl")
    asks = [ServerRequest("completions", {"model": "tiny", "prompt": f"{number}"}) for number in range(8)]
    with pytest.raises(Queued):
        queue.to(HERE).ask(asks, lambda reply, ask: reply)
    queue.land()

    assert [file.path.name for file in queue.files] == ["next.jsonl", "next-2.jsonl", "next-3.jsonl"]
    assert sum(file.count for file in queue.files) == 8
    for file in queue.files:
        written = file.path.read_bytes()
        assert file.size == len(written) <= openai_batch.MOST_BYTES
        assert file.count == written.count(b"\n") <= openai_batch.MOST_REQUESTS


def test_a_numbered_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    """A second batch that would fall on a foreign file is one error that names it."""
    (tmp_path / "next-2.jsonl").write_text("mine\n", encoding="utf-8")
    queue = BatchQueue(tmp_path / "next.jsonl")
    with pytest.raises(Queued):
        queue.to(HERE).ask([ASK], lambda reply, ask: reply)

    with pytest.raises(HapaxError, match=r"next-2\.jsonl would be overwritten"):
        queue.to(THERE).ask([ASK], lambda reply, ask: reply)
    assert (tmp_path / "next-2.jsonl").read_text("utf-8") == "mine\n"


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


def test_a_queue_lands_whole_or_not_at_all(tmp_path: Path) -> None:
    """Until it lands the earlier queue stays; one that is discarded leaves no file."""
    earlier = tmp_path / "next.jsonl"
    earlier.write_text('{"custom_id": "of before"}\n', "utf-8")
    queues = [BatchQueue(earlier), BatchQueue(earlier)]
    for queue in queues:
        with pytest.raises(Queued):
            queue.to(HERE).ask([ASK], lambda reply, ask: reply)
        assert "of before" in earlier.read_text("utf-8")
        (queue.discard if queue is queues[0] else queue.land)()

    assert json.loads(earlier.read_text("utf-8"))["body"] == ASK.body
    assert list(tmp_path.iterdir()) == [earlier]


def test_a_queue_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    """A folder that is not there is an error before anything is asked."""
    with pytest.raises(HapaxError, match="no such folder"):
        BatchQueue(tmp_path / "nowhere" / "next.jsonl")
