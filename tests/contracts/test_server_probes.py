"""A model on a server is probed once: for what it can do, for the words that it understands, and for its critic's bias."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer, Reply
from served import flat, found, models_file, prompt_of, search

import hapax

PLAIN = ("--profile", "hapax", "--likelihood", "frequency")


def calls(result: Result) -> dict[str, int]:
    """Calls by role, of a search with --json."""
    return {role: sent["calls"] for role, sent in json.loads(result.stdout)["calls"].items() if sent["calls"]}


def answering_as(version: str) -> Any:
    """A server that says that another version answers, with the answers of before."""
    second = FakeServer(WORLD)

    def misbehave(number: int, asked: Asked) -> Reply | None:
        status, body, headers = second.answer(asked)
        return status, ({**body, "model": version} if status == 200 else body), headers

    return misbehave


# What it can do


def test_a_resumed_run_needs_no_server(tmp_path: Path) -> None:
    """Findings of probes are in the knowledge base: the search runs again with the server off, also in chosen words."""
    with FakeServer(WORLD) as fake:
        url = f"openai:tiny@{fake.url}"
        fake.misbehave = lambda number, asked: (404, {"error": {"message": "model not found"}}, {})
        failed = search(tmp_path, url, "--evaluator", url, "--json", "--profile", "hapax")
        fake.misbehave, before = (lambda number, asked: None), len(fake.asked)
        first = search(tmp_path, url, "--evaluator", url, "--json", "--profile", "hapax")
        sent = len(fake.asked) - before
    again = search(tmp_path, url, "--evaluator", url, "--json", "--profile", "hapax")
    unnamed = search(tmp_path, url, "--evaluator", url)

    assert (failed.exit_code, first.exit_code, again.exit_code, unnamed.exit_code) == (1, 0, 0, 0), again.output
    assert "model not found" in flat(failed)
    assert sum(calls(first).values()) == sent
    assert calls(first)["probe"] > 0
    assert calls(again) == {}
    assert "profile hapax" in flat(unnamed)


def test_a_plan_asks_and_writes_nothing(tmp_path: Path) -> None:
    """A plan of a new knowledge base makes no file and probes no server; one of a known one takes what is stored."""
    (tmp_path / "money.rules").write_text(RULES, "utf-8")
    with FakeServer(WORLD) as fake:
        line = ("plan", tmp_path / "money.rules", "-m", f"openai:tiny@{fake.url}", "--db", tmp_path / "kb.db")
        planned = invoke(*line)
        asked = len(fake.asked)
        assert not (tmp_path / "kb.db").exists()
        search(tmp_path, f"openai:tiny@{fake.url}")
        sent = len(fake.asked)
        known = invoke(*line)

    assert (planned.exit_code, known.exit_code) == (0, 0), known.output
    assert asked == 0
    assert "By default" in planned.output
    assert "By default" not in known.output
    assert len(fake.asked) == sent


def test_a_changed_server_is_found_out_by_its_first_answer(tmp_path: Path) -> None:
    """Another version than the probed one ends the run unless it is asked anew; answers of two versions never mix."""
    with FakeServer(WORLD) as fake:
        url = f"openai:tiny@{fake.url}"
        fake.misbehave = lambda number, asked: (503, {}, {"Retry-After": "9999"}) if number > 12 else None
        cut = search(tmp_path, url, *PLAIN)
        fake.misbehave = answering_as("tiny-2")
        moved = search(tmp_path, url, *PLAIN)
        anew = search(tmp_path, url, *PLAIN, "--probe-again")
        done = search(tmp_path, url, *PLAIN, "--json")
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        versions = [call.model for call in kb.calls().values() if call.role in ("knowledge", "critic")]

    assert (cut.exit_code, moved.exit_code, anew.exit_code) == (1, 1, 0), anew.output
    assert "tiny-2" in flat(moved)
    assert "--probe-again" in flat(moved)
    assert {"tiny-2" in version for version in versions} == {True, False}
    assert not set(calls(done)) - {"likelihood"}


def test_a_named_revision_is_taken_at_its_word(tmp_path: Path) -> None:
    """With `revision` in the alias, what the server calls itself does not matter; a new one probes and asks anew."""
    with FakeServer(WORLD) as fake:
        options = (*PLAIN, "--json", "--aliases", models_file(tmp_path, fake, revision="2026-08"))
        first = search(tmp_path, "openai:small", *options)
        fake.misbehave = answering_as("tiny-2")
        same = search(tmp_path, "openai:small", *options)
        models_file(tmp_path, fake, revision="2026-09")
        renewed = search(tmp_path, "openai:small", *options)

    asked = ("probe", "knowledge", "critic")
    assert not set(calls(same)) & set(asked)
    assert [calls(renewed)[role] for role in asked] == [calls(first)[role] for role in asked]


# The words that it understands


def worded(word: str) -> FakeServer:
    """A server that lists well-known answers only where its question holds this word."""
    known = ("Germany", "Austria", "Hungary", "Serbia", "Romania", "Slovakia", "Croatia", "Bulgaria")

    def misbehave(number: int, asked: Asked) -> Any:
        prompt = prompt_of(asked)

        def change(body: Any) -> Any:
            values = list(known) if word in prompt else []
            text = "\n".join(f"{place}. {value}" for place, value in enumerate(values, 1)) or "I do not know"
            if "JSON" in prompt and values:
                text = json.dumps({"values": values})
            body["choices"][0]["message"]["content"] = text
            return body

        is_listing = "Danube" in prompt and "messages" in asked.body and not asked.body.get("logprobs")
        return change if is_listing else None

    return FakeServer({**WORLD, "defaults": {**WORLD["defaults"], "generate": []}}, misbehave=misbehave)


@pytest.mark.parametrize(("word", "profile"), [("JSON object", "json"), ("in the format “", "paper")])
def test_the_profile_that_the_model_understands_is_chosen_and_kept(word: str, profile: str, tmp_path: Path) -> None:
    """The profile with most known answers is told with its score and not probed again; all probes are a dozen at most."""
    with worded(word) as fake:
        first = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency")
        asked = len(fake.asked)
        again = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency")
        sent = len(fake.asked)
        anew = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency", "--probe-again")

    assert (first.exit_code, again.exit_code) == (0, 0), first.output
    assert f"profile {profile}:" in flat(first)
    assert "known answers" in flat(first)
    told = re.search(r"(\d+) probes of this model in all", flat(first))
    assert told is not None
    assert int(told[1]) <= 12
    assert f"profile {profile}" in flat(again)
    assert "known answers" not in flat(again)
    assert sent == asked
    assert "known answers" in flat(anew)


def test_a_model_that_knows_the_first_answers_needs_few_probes(tmp_path: Path) -> None:
    """Two lists are enough to keep the usual words; abilities and words together take at most a dozen requests."""
    danube = ["Germany", "Austria", "Slovakia", "Hungary", "Serbia"]
    planets = ["Mercury", "Venus", "Earth", "Mars", "Jupiter"]
    known = {**WORLD["generate"], "the Danube flows through": danube, "is a planet of the Solar System": planets}
    with FakeServer({**WORLD, "generate": known}) as fake:
        result = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency")

    assert result.exit_code == 0, result.output
    assert "profile hapax: 10 of 10 known answers (2 calls)" in flat(result)
    probes = re.search(r"probe (\d+)", flat(result))
    assert probes is not None
    assert int(probes[1]) <= 12


def test_a_model_that_knows_little_is_searched_premise_first(tmp_path: Path) -> None:
    """Below three quarters of the known answers the order changes, also when the choice is stored; --plan goes first."""
    with worded("Give me") as fake:
        model = f"openai:tiny@{fake.url}"
        results = [search(tmp_path, model, "--likelihood", "frequency") for _ in range(2)]
        search(tmp_path, model, "--likelihood", "frequency", "--plan", "conclusion-first")
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        plans = [str(run.settings["plan"]) for run in kb.runs()]

    assert all("premise first" in flat(result) for result in results)
    assert set(plans) == {"premise-first", "conclusion-first"}


def test_json_is_demanded_only_of_a_server_that_can(tmp_path: Path) -> None:
    """A JSON schema goes to a server whose reply follows one; otherwise words alone ask, and the report says so."""

    def obedient(number: int, asked: Asked) -> Any:
        def structured(body: Any) -> Any:
            body["choices"][0]["message"]["content"] = '{"values": ["red", "green"]}'
            return body

        return structured if "response_format" in asked.body else None

    formats: list[list[Any]] = []
    said = []
    for number, misbehave in enumerate((obedient, lambda number, asked: None)):
        with FakeServer(WORLD, misbehave=misbehave) as fake:
            options = ("--likelihood", "frequency", "--profile", "json")
            said.append(flat(search(tmp_path, f"openai:tiny@{fake.url}", *options, database=f"{number}.db")))
            lists = [asked.body for asked in fake.asked if prompt_of(asked).startswith("List ")]
            formats.append([body.get("response_format") for body in lists])

    assert formats[0]
    assert all(form["json_schema"]["schema"]["required"] == ["values"] for form in formats[0])
    assert set(formats[1]) == {None}
    assert "structured output" not in said[0]
    assert "structured output" in said[1]


def test_chats_carry_system_prompt_template_and_effort(tmp_path: Path) -> None:
    """The chat settings of an alias are in every request, and a model with other settings is asked anew."""
    (tmp_path / "my.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}", "utf-8")
    with FakeServer(WORLD) as fake:
        settings = {"chat_template": "my.jinja", "reasoning_effort": "low"}
        aliases = models_file(tmp_path, fake, system_prompt="Briefly.", **settings)
        first = search(tmp_path, "openai:small", *PLAIN, "--aliases", aliases, "--json")
        bodies = [asked.body for asked in fake.asked]
        models_file(tmp_path, fake, system_prompt="At length.", **settings)
        other = search(tmp_path, "openai:small", *PLAIN, "--aliases", aliases, "--json")

    assert all(body["messages"][0] == {"role": "system", "content": "Briefly."} for body in bodies)
    assert {body["reasoning_effort"] for body in bodies} == {"low"}
    assert all("m.content" in body["chat_template"] for body in bodies)
    assert calls(other)["knowledge"] == calls(first)["knowledge"]


# A critic that says no to everything


@pytest.mark.parametrize(("truths", "accepted"), [(0.05, True), (0.9, False)], ids=["says no", "knows truths"])
def test_a_critic_that_says_no_to_known_truths_accepts_guesses_only_if_wanted(
    truths: float, accepted: bool, tmp_path: Path
) -> None:
    """By --accept-by-rank, of one that denies known truths, too, the better half of a question's values is accepted."""
    world = {**WORLD, "critic": {"Oslo is a city in Norway.": 0.06}, "defaults": {**WORLD["defaults"], "critic": 0.05}}

    def truthful(number: int, asked: Asked) -> Any:
        def change(body: Any) -> Any:
            entries = [{"token": " yes", "logprob": -0.1}, {"token": " no", "logprob": -2.4}]
            body["choices"][0]["logprobs"] = {"content": [{"top_logprobs": entries}]}
            return body

        prompt = prompt_of(asked)
        return (
            change
            if truths > 0.5 and "Danube" in prompt and "Germany" in prompt and asked.body.get("logprobs")
            else None
        )

    world["critic"] |= {"Paris is the capital of France.": 0.99}
    with FakeServer(world, misbehave=truthful) as fake:
        usual = search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN, database="usual.db")
        result = search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN, "--accept-by-rank")
        stated = search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN, "--fact-threshold", "0.5", database="own.db")

    assert (usual.exit_code, result.exit_code, stated.exit_code) == (0, 0, 0), result.output
    assert len(found(tmp_path, "usual.db")[0]) == 1
    assert ("--accept-by-rank" in flat(usual)) is accepted
    assert (len(found(tmp_path)[0]) > 1) is accepted
    assert len(found(tmp_path, "own.db")[0]) == 1  # a threshold of the user's holds
