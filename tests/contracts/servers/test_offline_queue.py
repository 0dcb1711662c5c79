"""The offline queue: nothing is sent, and files answer in rounds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, commands, invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import NOWHERE, Asked, FakeServer, Reply, answered
from openai_fake import queue_files as files
from served import found, spending

import hapax


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


PAIRS = "A,buys,B\tA,owns,B\tTrue\nA,owns,B\tA,buys,B\tFalse\nA,sees,B\tA,owns,B\tFalse\n"
SCHEMAS = """text,pronoun,entity1,entity2,label
The uncle could not lift his nephew because he was so weak.,he,The uncle,The nephew,0
The uncle could not lift his nephew because he was so heavy.,he,The uncle,The nephew,1
"""

ASKING = {
    "query": """query uses_currency("Norway",Currency),uses_currency("Peru",Currency) --ask --rules money.rules""",
    "search": "search money.rules --no-progress",
    "calibrate": "model calibrate --rules money.rules --labels labels.tsv --critic openai:small",
    "instruct": "evaluate instruct money.rules --calls 1",
    "grid": "evaluate grid grid.yaml",
    "likelihood": "evaluate likelihood --rules money.rules --evaluator openai:small --evaluator openai:other",
    "long-tail": "evaluate long-tail --rules money.rules --judge openai:small --judge openai:other",
    "probe": "evaluate probe --sample 2",
    "probe cot": "evaluate probe --sample 2 --ask cot",
    "winograd ask": "evaluate winograd ask schemas.csv --method zero-shot --method cot",
    "entailment score": "evaluate entailment score dev.txt --scorer critic --scorer likelihood",
    "entailment predicates": "evaluate entailment predicates --rules buying.rules",
    "rules lint": "rules lint money.rules",
    "rules verbalise": "rules verbalise wordless.rules",
}
"""A command line for each command that asks; `-m` and what goes with it comes behind."""
NO_MODEL_OPTION = ("calibrate", "grid", "likelihood", "long-tail")
UNQUEUED = {"ask", "evaluate booqa build", "kb mcp", "serve"}
"""They ask step by step: about one word after the other, under one condition after the other, as an agent or a person wants it."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base with a search in it, and a file of each kind."""
    folder = tmp_path_factory.mktemp("asking")
    entry = {"model_name": "tiny", "api_base": NOWHERE, "logprobs": "echo", "revision": "1"}
    (folder / "models.yaml").write_text(
        json.dumps([{**entry, "model_id": "small"}, {**entry, "model_id": "other", "model_name": "tiny2"}]), "utf-8"
    )
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "labels.tsv").write_text("true\tuses_currency\tNorway\tkrone\n", "utf-8")
    (folder / "wordless.rules").write_text(
        "grokked(Person X, Book B) & is_in(Book B, Language L) -> zorked(Person X, Language L)\n", "utf-8"
    )
    buying = ('oracle buys(Person, Thing): "[1] buys [2]"', 'oracle owns(Person, Thing): "[1] owns [2]"')
    (folder / "buying.rules").write_text("\n".join(buying), "utf-8")
    (folder / "dev.txt").write_text(PAIRS, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    model = {"name": "one", "knowledge": "openai:small"}
    content = {"models": [model], "files": ["money.rules"], "temperatures": [0.7], "evaluator": "openai:small"}
    (folder / "grid.yaml").write_text(
        json.dumps({**content, "judge": "openai:other", "baseline": {"calls": 1}}), "utf-8"
    )
    (folder / "schemas.csv").write_text(SCHEMAS, "utf-8")
    given = ("search", folder / "money.rules", "-m", f"scripted:{folder / 'script.json'}", "--db", folder / "kb.db")
    assert invoke(*given, "--no-progress").exit_code == 0
    frozen = ("data", "dataset", folder / "frozen", "--db", folder / "kb.db", "--format", "jsonl", "--in-both", "keep")
    assert invoke(*frozen).exit_code == 0
    return folder


@pytest.fixture
def place(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work in."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str, *more: str) -> Result:
    line = ASKING[name].split()
    model = [] if name in NO_MODEL_OPTION else ["-m", "openai:small"]
    asked = [*line, *model, "--aliases", "models.yaml", "--db", "kb.db", *more]
    return invoke(*asked)


@pytest.mark.parametrize("name", ASKING)
def test_every_command_that_asks_can_be_answered_by_files(name: str, place: Path) -> None:
    """Nothing is sent; what is missing stands in files; round by round the results bring the command to its end."""
    fake = FakeServer(WORLD)
    queue, given, asked = place / "next.jsonl", list[str](), list[str]()
    for number in range(20):
        result = run(name, "--queue", "next.jsonl", *given)
        if result.exit_code != 3:
            break
        requests = answered(queue, place / f"answered{number}.jsonl", fake)
        assert requests, result.output
        assert f"request{'s' * (len(requests) > 1)} in" in result.output
        asked += [request["custom_id"] for request in requests]
        given += ["--results", f"answered{number}.jsonl"]

    assert result.exit_code == 0, result.output
    assert "0 requests in next.jsonl" in result.output
    assert len(asked) == len(set(asked)) > 0
    assert files(queue) == []


def test_no_command_that_asks_lacks_a_queue() -> None:
    """Every command with a budget has a queue, but for those that ask step by step."""
    budgeted = {
        words: {option.name for option in command.params}
        for words, command in commands()
        if any(option.name == "max_calls" for option in command.params)
    }
    tried = {words for words in budgeted if any(line.startswith(words) for line in ASKING.values())}

    queued = {words for words, names in budgeted.items() if {"queue", "results"} <= names}
    assert set(budgeted) - queued == UNQUEUED
    assert len(tried & queued) > 10


def test_partial_results_ask_only_for_the_rest(place: Path) -> None:
    """Answers of a batch are used and kept; the next file has only the other requests, and no budget is named."""
    first = run("probe", "--queue", "next.jsonl")
    requests = [json.loads(line) for line in (place / "next.jsonl").read_text("utf-8").splitlines()]
    answered(place / "next.jsonl", place / "all.jsonl", FakeServer(WORLD))
    half = (place / "all.jsonl").read_text("utf-8").splitlines(keepends=True)[: len(requests) // 2]
    (place / "half.jsonl").write_text("".join(half), "utf-8")

    second = run("probe", "--queue", "next.jsonl", "--results", "half.jsonl")
    third = run("probe", "--queue", "next.jsonl")  # the answers are in the journal now

    assert [first.exit_code, second.exit_code, third.exit_code] == [3, 3, 3]
    assert f"{len(requests) - len(half)} requests in next.jsonl" in second.output
    assert f"{len(requests) - len(half)} requests in next.jsonl" in third.output
    assert "run the same command with the results (--results FILE)" in second.output
    assert "Raise the limit" not in second.output


FAILING = {
    "rules": (("search", "faulty.rules"), 4),
    "aliases": (("search", "money.rules", "--aliases", "none.yaml"), 1),
    "model": (("search", "money.rules", "-m", "nonsense"), 1),
    "likelihood": (("search", "money.rules", "--likelihood", "openai:chat"), 1),
    "results": (("search", "money.rules", "--results", "schemas.csv"), 1),
    "database": (("search", "money.rules", "--db", "money.rules"), 1),
    "usage": (("search", "money.rules", "--beam", "0"), 2),
    "goal": (("query", "nosuch(", "--ask"), 1),
}


@pytest.mark.parametrize(("fault", "there"), [("rules", False), *((fault, True) for fault in FAILING)])
def test_a_command_that_fails_leaves_the_queue_byte_for_byte(fault: str, there: bool, place: Path) -> None:
    """Whatever goes wrong, the requests of before stay in their files, and no new file is made."""
    earlier = [place / "next.jsonl", place / "next-2.jsonl"]
    for path in earlier if there else ():
        path.write_text('{"custom_id": "of before"}\n', "utf-8")
    (place / "faulty.rules").write_text("no rule", "utf-8")
    chat = {"model_id": "chat", "model_name": "tiny", "api_base": NOWHERE, "logprobs": "none"}
    aliases = json.loads((place / "models.yaml").read_text("utf-8"))
    (place / "models.yaml").write_text(json.dumps([*aliases, chat]), "utf-8")
    words, code = FAILING[fault]
    given = ["-m", "openai:small", "--aliases", "models.yaml", "--db", "kb.db", "--queue", "next.jsonl"]

    result = invoke(words[0], *given, *words[1:])

    assert result.exit_code == code, result.output
    assert [path.exists() for path in earlier] == [there, there]
    assert all("of before" in path.read_text("utf-8") for path in earlier if there)
    assert not [file for file in place.iterdir() if file.name.startswith((".next", "next")) and file not in earlier]


@pytest.mark.parametrize("model", ["openai:gpt-x", f"openai:tiny@{NOWHERE}"])
def test_without_key_or_server_the_way_out_is_named(model: str, place: Path) -> None:
    """Probes are all that a queue sends; an alias that states `logprobs` needs none, nor a key."""
    entry = {"model_id": "mine", "model_name": "gpt-x", "logprobs": "output", "attempts": 1}
    (place / "mine.yaml").write_text(json.dumps([entry]), "utf-8")
    given = ["--likelihood", "frequency", "--db", "new.db", "--queue", "next.jsonl"]

    probing = invoke("search", "money.rules", "-m", model, *given)
    stating = invoke("search", "money.rules", "-m", "openai:mine", "--aliases", "mine.yaml", *given)

    assert probing.exit_code == 1
    assert "state `logprobs` in an alias of the model (--aliases)" in " ".join(probing.output.split())
    assert stating.exit_code == 3, stating.output


ROOT = Path(__file__).parents[3]


def test_offline_refuses_servers_elsewhere() -> None:
    """A model on another machine is refused before anything is sent; one on this machine is not."""
    found = invoke("search", "-m", "openai:m@http://models.example/v1", "--offline")

    assert found.exit_code == 1
    assert "models.example" in found.output
    assert "--offline" in found.output
    with pytest.raises(hapax.HapaxError, match="ConnectError"):
        hapax.open_models("openai:m@http://127.0.0.1:9/v1", offline=True)


@pytest.mark.embedded
def test_offline_loads_checkpoints_of_this_machine_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkpoint's folder is loaded, and a name that is not cached is refused without a request."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = ROOT / "llm_oracle" / "embedded" / "model"

    assert hapax.open_models(f"hf:{folder}", offline=True).critic.identity.name.startswith("hf/")
    with pytest.raises(hapax.HapaxError, match="nobody/nothing"):
        hapax.open_models("hf:nobody/nothing", offline=True)


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


def secrets_run(*arguments: str) -> Result:
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
        secrets_run(*SEARCH, "own.db", "-m", "openai:tiny", "--evaluator", "openai:tiny", "--json"),
        secrets_run(*SEARCH, "own.db", "-m", "openai:tiny", "--evaluator", "openai:tiny", "--probe-again"),
        secrets_run(*SEARCH, "alias.db", "-m", "openai:big", "--critic", "openai:tiny"),
        secrets_run(
            "evaluate", "probe", "--db", "own.db", "-m", "openai:tiny", "--ask", "text", "-o", "probe.jsonl", "--json"
        ),
        secrets_run("query", "is_a_city_in(X, Y)", "--rules", "money.rules", "--db", "own.db", "--json"),
        secrets_run("why-not", "is_a_city_in('Oslo', 'France')", "--rules", "money.rules", "--db", "own.db"),
        secrets_run("report", "--db", "own.db", "-o", "report.html"),
        secrets_run("data", "dataset", "dataset", "--db", "own.db", "--in-both", "keep", "--json"),
        secrets_run("votes", "export", "statements", "--db", "own.db", "--out", "sheets"),
        secrets_run("data", "merge", "alias.db", "--db", "own.db"),
        *(
            secrets_run("export", "--db", "own.db", "--format", form, "-o", f"facts.{form}")
            for form in ("csv", "jsonl", "prolog")
        ),
        *(secrets_run("data", "stats", "--db", name, "--json") for name in ("own.db", "alias.db")),
        secrets_run("model", "list", "--json"),
        secrets_run("doctor", "--json"),
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
    result = secrets_run(*SEARCH, "alias.db", "-m", "openai:big")

    assert result.exit_code in (0, 1)
    assert leaks(planted, [result]) == []


def test_the_offline_queue_holds_no_key(planted: Path, alias_server: FakeServer) -> None:
    """Neither the files of requests nor what is taken in from results, answers and refusals, that quote the key."""
    queue, given, results = planted / "next.jsonl", list[str](), list[Result]()
    entry = json.loads((planted / "models.yaml").read_text("utf-8"))[0]
    (planted / "models.yaml").write_text(json.dumps([{**entry, "logprobs": "echo"}]), encoding="utf-8")
    for number in range(12):
        results.append(secrets_run(*SEARCH, "queue.db", "-m", "openai:big", "--queue", "next.jsonl", *given))
        if results[-1].exit_code != 3:
            break
        file = planted.with_name(f"{planted.name}-{number}.jsonl")  # what the server wrote does hold the key
        answered(queue, file, alias_server)
        given = ["--results", str(file)]

    assert results[-1].exit_code == 0, results[-1].output
    assert b"[key]" in (planted / "queue.db").read_bytes()
    assert leaks(planted, results) == []
