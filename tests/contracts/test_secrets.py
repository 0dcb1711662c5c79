"""Keys reach no file and no screen, whatever servers, results and commands say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer, Reply, answered

OWN, ALIAS = "sk-planted-own-0123456789abcdef", "sk-planted-alias-fedcba9876543210"


def world(key: str) -> dict[str, object]:
    """A server that says the key back among its values, in a text that is kept, and in one that is not."""
    values = ["Oslo", "Lyon", key, f"Banjul {key}", f"{key}\x1b"]
    return {**WORLD, "generate": {**WORLD["generate"], "'[A] is a city in [B]'": values}}


def filtering(key: str) -> object:
    """Refuses what is about Lyon, for its own sake, and quotes the key; no reply is the same twice."""

    def misbehave(number: int, asked: Asked) -> Reply | None:
        refused = {"error": {"message": f"filtered {number} for {key}", "code": "content_filter", key: key}}
        return (400, refused, {"X-Key": key}) if "Lyon is" in json.dumps(asked.body) else None

    return misbehave


@pytest.fixture
def own() -> Iterator[FakeServer]:
    with FakeServer(world(OWN), misbehave=filtering(OWN)) as server:
        yield server


@pytest.fixture
def alias_server() -> Iterator[FakeServer]:
    with FakeServer(world(ALIAS), misbehave=filtering(ALIAS)) as server:
        yield server


@pytest.fixture
def planted(own: FakeServer, alias_server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rules and aliases; both keys are where users put them."""
    monkeypatch.setenv("OPENAI_API_KEY", OWN)
    monkeypatch.setenv("OPENAI_BASE_URL", own.url)
    monkeypatch.setenv("BIG_KEY", ALIAS)
    monkeypatch.chdir(tmp_path)
    entry = {
        "model_id": "big",
        "model_name": "tiny",
        "api_base": alias_server.url,
        "api_key_name": "BIG_KEY",
        "attempts": 1,
    }
    (tmp_path / "models.yaml").write_text(json.dumps([entry]), encoding="utf-8")
    (tmp_path / "money.rules").write_text(RULES, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> Result:
    result = invoke(*arguments)
    if result.exit_code:
        assert isinstance(result.exception, SystemExit)
    return result


def leaks(folder: Path, results: list[Result]) -> list[str]:
    """Where a key stands: files under their names, what was printed under its beginning."""
    keys = (OWN, ALIAS)
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = [str(path) for path in files if any(key.encode() in path.read_bytes() for key in keys)]
    return found + [result.output[:200] for result in results if any(key in result.output for key in keys)]


SEARCH = ("search", "money.rules", "--aliases", "models.yaml", "--no-progress", "--db")


def test_what_commands_write_holds_no_key(planted: Path, own: FakeServer, alias_server: FakeServer) -> None:
    """Two servers quote their keys in answers and refusals: knowledge base, exports, sheets, datasets, pages and output
    hold neither."""
    results = [
        run(*SEARCH, "own.db", "-m", "openai:tiny", "--evaluator", "openai:tiny", "--json"),
        run(*SEARCH, "own.db", "-m", "openai:tiny", "--evaluator", "openai:tiny", "--probe-again"),
        run(*SEARCH, "alias.db", "-m", "openai:big", "--critic", "openai:tiny"),
        run("evaluate", "probe", "--db", "own.db", "-m", "openai:tiny", "--ask", "text", "-o", "probe.jsonl", "--json"),
        run("query", "is_a_city_in(X, Y)", "--rules", "money.rules", "--db", "own.db", "--json"),
        run("why-not", "is_a_city_in('Oslo', 'France')", "--rules", "money.rules", "--db", "own.db"),
        run("report", "--db", "own.db", "-o", "report.html"),
        run("data", "dataset", "dataset", "--db", "own.db", "--in-both", "keep", "--json"),
        run("votes", "export", "statements", "--db", "own.db", "--out", "sheets"),
        run("data", "merge", "alias.db", "--db", "own.db"),
        *(
            run("export", "--db", "own.db", "--format", form, "-o", f"facts.{form}")
            for form in ("csv", "jsonl", "prolog")
        ),
        *(run("data", "stats", "--db", name, "--json") for name in ("own.db", "alias.db")),
        run("model", "list", "--json"),
        run("doctor", "--json"),
    ]

    assert {request.key for request in own.asked} == {f"Bearer {OWN}"}
    assert {request.key for request in alias_server.asked} == {f"Bearer {ALIAS}"}
    assert [result.output for result in results[:12] if result.exit_code] == []
    assert b"[key]" in (planted / "own.db").read_bytes()
    assert len([path for path in planted.rglob("*") if path.is_file()]) > 20
    assert leaks(planted, results) == []


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": "Incorrect API key provided: {key}. Find it at ..."}}),
        (401, "<html>{key}</html>"),
        (401, " " * 1180 + "{key}"),
        (403, {"detail": [{"loc": ["{key}"], "msg": "{key}"}]}),
        (404, {"{key}": "{key}"}),
        (429, {"error": {"message": "no money on {key}", "code": "insufficient_quota"}}),
        (500, "traceback with Bearer {key}"),
        (302, "moved to https://elsewhere/{key}"),
        (200, "{key}"),
        (200, {"choices": [{"message": {"content": None, "refusal": "not for {key}"}}], "model": "{key}"}),
    ],
)
def test_errors_quote_no_key(planted: Path, alias_server: FakeServer, status: int, body: object) -> None:
    """Errors of all kinds that quote the key are told without it."""
    text = (body if isinstance(body, str) else json.dumps(body)).replace("{key}", ALIAS).encode()
    alias_server.misbehave = lambda number, asked: (status, text, {"Location": f"http://127.0.0.1:9/{ALIAS}"})
    result = run(*SEARCH, "alias.db", "-m", "openai:big")

    assert result.exit_code in (0, 1)
    assert leaks(planted, [result]) == []


def test_the_offline_queue_holds_no_key(planted: Path, alias_server: FakeServer) -> None:
    """Neither the files of requests nor what is taken in from results, answers and refusals, that quote the key."""
    queue, given, results = planted / "next.jsonl", list[str](), list[Result]()
    entry = json.loads((planted / "models.yaml").read_text("utf-8"))[0]
    (planted / "models.yaml").write_text(json.dumps([{**entry, "logprobs": "echo"}]), encoding="utf-8")
    for number in range(12):
        results.append(run(*SEARCH, "queue.db", "-m", "openai:big", "--queue", "next.jsonl", *given))
        if results[-1].exit_code != 3:
            break
        file = planted.with_name(f"{planted.name}-{number}.jsonl")  # what the server wrote does hold the key
        answered(queue, file, alias_server)
        given = ["--results", str(file)]

    assert results[-1].exit_code == 0, results[-1].output
    assert b"[key]" in (planted / "queue.db").read_bytes()
    assert leaks(planted, results) == []
