"""Every command that asks models can be answered by files, and one that fails leaves the queue as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result
from command_lines import commands
from money_fixture import RULES, WORLD
from openai_fake import NOWHERE, FakeServer, answered
from openai_fake import queue_files as files

PAIRS = "A,buys,B\tA,owns,B\tTrue\nA,owns,B\tA,buys,B\tFalse\nA,sees,B\tA,owns,B\tFalse\n"
SCHEMAS = """text,pronoun,entity1,entity2,label
The uncle could not lift his nephew because he was so weak.,he,The uncle,The nephew,0
The uncle could not lift his nephew because he was so heavy.,he,The uncle,The nephew,1
"""

ASKING = {
    "query": """query uses_currency("Norway",Currency),uses_currency("Peru",Currency) --ask --rules money.rules""",
    "search": "search money.rules --no-progress",
    "calibrate": "calibrate --rules money.rules --labels labels.tsv --critic openai:small",
    "instruct": "evaluate instruct money.rules --calls 1",
    "grid": "evaluate grid grid.yaml",
    "likelihood": "evaluate likelihood --rules money.rules --evaluator openai:small --evaluator openai:other",
    "long-tail": "evaluate long-tail --rules money.rules --judge openai:small --judge openai:other",
    "probe": "evaluate probe --sample 2",
    "probe cot": "evaluate probe --sample 2 --ask cot",
    "soundness": "evaluate soundness",
    "winograd ask": "evaluate winograd ask schemas.csv --method zero-shot --method cot",
    "entailment score": "evaluate entailment score dev.txt --scorer critic --scorer likelihood",
    "entailment predicates": "evaluate entailment predicates --rules buying.rules",
    "rules lint": "rules lint money.rules",
    "rules verbalise": "rules verbalise wordless.rules",
}
"""A command line for each command that asks; `-m` and what goes with it comes behind."""
NO_MODEL_OPTION = ("calibrate", "grid", "likelihood", "long-tail")
UNQUEUED = {"evaluate booqa build", "evaluate entailment consistency", "kb mcp", "serve"}
"""They ask step by step: about one word after the other, under one condition after the other, as an agent wants it."""


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
    frozen = ("dataset", folder / "frozen", "--db", folder / "kb.db", "--format", "jsonl", "--in-both", "keep")
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
    assert len(tried & queued) > 12


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
