"""Servers that answer strangely: nothing is made up, nothing is paid twice, and one bad question stops no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import WORLD
from openai_fake import Asked, FakeServer, Reply
from served import flat, is_judging, models_file, prompt_of, search

import hapax

NOTHING = {"choices": [{"message": {"content": None}}]}
CALL = {"id": "t", "type": "function", "function": {"name": "web_search", "arguments": "{}"}}
BAD: dict[str, Reply] = {
    "content: null": (200, NOTHING, {}),  # as vLLM, where a parser takes the whole text for a thought
    "choices: []": (200, {"choices": []}, {}),  # as Azure and OpenRouter, where a filter took the answer
    "a tool call": (200, {"choices": [{"message": {"content": None, "tool_calls": [CALL]}}]}, {}),
    "an error with status 200": (200, {"error": {"message": "Provider returned error", "code": 502}}, {}),
    "status 500": (500, {"error": {"message": "worker died"}}, {}),
}


def about(words: str, reply: Reply) -> Callable[[int, Asked], Reply | None]:
    """Answers so where the question has these words."""
    return lambda number, asked: reply if words in prompt_of(asked) else None


def asked_of(folder: Path, fake: FakeServer, *options: str, **alias: Any) -> Result:
    """A search of the server's model with two attempts a request."""
    aliases = models_file(folder, fake, **{"attempts": 2, **alias})
    plain = ("--profile", "hapax", "--likelihood", "frequency", "--aliases", aliases)
    return search(folder, "openai:small", *plain, *options)


def without_answer(folder: Path) -> list[dict[str, Any]]:
    """Roles and reasons of the requests without an answer, by `stats`."""
    return list(json.loads(invoke("data", "stats", "--db", folder / "kb.db", "--json").stdout)["refused"])


def currencies(folder: Path) -> set[str]:
    """The currencies that a model gave."""
    with hapax.KnowledgeBase(folder / "kb.db", read_only=True) as kb:
        return {str(fact.arguments[1]) for fact in kb.facts("uses_currency")}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
def test_a_list_that_is_never_answered_stops_no_other_and_is_paid_for_once(reply: Reply, tmp_path: Path) -> None:
    """A question without a usable reply is passed over and counted; the same command does not ask it again."""
    question = "'The Gambia uses the [B]"
    with FakeServer(WORLD, misbehave=about(question, reply)) as fake:
        first = asked_of(tmp_path, fake)
        sent = len(fake.asked)
        again = asked_of(tmp_path, fake)

        assert (first.exit_code, again.exit_code) == (0, 0), first.output
        assert currencies(tmp_path) == {"Norwegian krone", "euro"}
        assert sum(question in prompt_of(asked) for asked in fake.asked) == 2  # as many as the attempts
        assert len(fake.asked) == sent
    last = first.output.strip().splitlines()[-1]
    assert [word for word in ("unusable", "knowledge 1", "--retry-unusable") if word not in last] == []
    (answer,) = without_answer(tmp_path)
    assert (answer["role"], answer["count"]) == ("knowledge", 1)


def test_what_had_no_usable_reply_is_asked_again_by_an_option(tmp_path: Path) -> None:
    """`--retry-unusable` and `retry_unusable=True` ask once more; the answer takes the place of the reason."""
    rules = tmp_path / "money.rules"
    with FakeServer(WORLD, misbehave=about("'The Gambia uses the [B]", BAD["a tool call"])) as fake:
        asked_of(tmp_path, fake)
        fake.misbehave = lambda number, asked: None
        sent, aliases = len(fake.asked), tmp_path / "models.yaml"
        line = ("plan", rules, "-m", "openai:small", "--aliases", aliases, "--db", tmp_path / "kb.db")
        foreseen = invoke(*line, "--likelihood", "frequency", "--profile", "hapax", "--retry-unusable")
        assert (foreseen.exit_code, len(fake.asked)) == (0, sent), foreseen.output
        options = hapax.QueryOptions(settings=hapax.SearchSettings(profile="hapax"))
        answers = []
        with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
            for retry in (False, True):
                models = hapax.open_models(
                    "openai:small", likelihood="frequency", aliases=aliases, retry_unusable=retry
                )
                goal = "uses_currency('The Gambia', X)"
                found_rows = hapax.query(goal, hapax.load_rules(rules), kb, models=models, options=options)
                answers.append([row["X"] for row in found_rows])
        again = asked_of(tmp_path, fake, "--retry-unusable")

    assert answers == [[], ["dalasi"]]
    assert again.exit_code == 0, again.output
    assert "without a usable reply" not in again.output
    assert not without_answer(tmp_path)


@pytest.mark.parametrize("kind", ["log-probabilities", "votes", "neither word"])
def test_a_claim_that_is_never_judged_stops_no_other(kind: str, tmp_path: Path) -> None:
    """A critic's question without a usable reply leaves its value out, however low the threshold, and no other."""

    def misbehave(number: int, asked: Asked) -> Any:
        if not is_judging(asked) or "The Gambia uses the dalasi" not in prompt_of(asked):
            return None
        return with_first_token({"\n\n": -0.0001, "Yes": -9.5}) if kind == "neither word" else (200, NOTHING, {})

    lacks = frozenset({"systemone", "claims", *(("logprobs",) if kind == "votes" else ())})
    with FakeServer(WORLD, lacks, misbehave=misbehave) as fake:
        result = asked_of(tmp_path, fake, "--fact-threshold", "0.5")
    goal = ("why-not", "uses_currency('The Gambia', dalasi)", "--rules", tmp_path / "money.rules")
    story = invoke(*goal, "--db", tmp_path / "kb.db")

    assert result.exit_code == 0, result.output
    assert "critic 1" in result.output.strip().splitlines()[-1]
    assert currencies(tmp_path) == {"Norwegian krone", "euro"}
    assert "no usable reply" in flat(story)


def with_first_token(scores: dict[str, float]) -> Any:
    """Changes the log-probabilities of the first token."""

    def change(body: Any) -> Any:
        entries = [{"token": token, "logprob": score} for token, score in scores.items()]
        body["choices"][0]["logprobs"] = {"content": [{"top_logprobs": entries}]}
        return body

    return change


@pytest.mark.parametrize(
    ("truth", "falsehood"),
    [
        ({"<think>": -0.0001, "Yes": -9.8, "No": -9.9}, None),
        ({"The": -0.2, "Yes": -2.5, "No": -2.6}, None),
        ({"Yes": -0.1, "No": -2.4}, {"Yes": -0.1, "No": -2.4}),
        ({"Yes": -0.1, "No": -2.4}, {"No": -2.4, "Yes": -0.05}),
        *(({"Yes": bad, "No": bad}, None) for bad in (float("nan"), float("inf"), 5, "0", None, True)),
    ],
)
def test_a_critic_by_first_tokens_has_to_tell_a_truth_from_a_falsehood(truth: Any, falsehood: Any) -> None:
    """Thoughts, other words, what are no numbers up to 0, and scores as high for a known falsehood: the model votes."""

    def misbehave(number: int, asked: Asked) -> Any:
        is_scored = is_judging(asked) and asked.body.get("logprobs")
        is_false = falsehood and "Paris is the capital of France" not in prompt_of(asked)
        return with_first_token(falsehood if is_false else truth) if is_scored else None

    with FakeServer({"critic": {"Sure.": 1.0}}, misbehave=misbehave) as fake:
        models = hapax.open_models(f"openai:tiny@{fake.url}", likelihood="frequency")

    assert "vote" in models.critic.identity.revision


def test_a_server_that_answers_nothing_ends_the_run(tmp_path: Path) -> None:
    """After five different questions in a row without a usable reply the run ends, with place and remedy."""
    cities = {"'[A] is a city in [B]'": [f"City {number}" for number in range(40)]}
    with FakeServer({**WORLD, "generate": cities}, misbehave=about("'City ", (200, NOTHING, {}))) as fake:
        ended = asked_of(tmp_path, fake)
        asked = sum("'City " in prompt_of(asked) for asked in fake.asked)

    assert ended.exit_code == 1, ended.output
    assert "no usable reply" in flat(ended)
    assert "--retry-unusable" in flat(ended)
    assert 5 * 2 <= asked < 40 * 2


def test_a_server_that_is_gone_ends_the_run_and_marks_nothing(tmp_path: Path) -> None:
    """Where no connection is made the run ends with the server's place, and no question counts as unusable."""
    with FakeServer(WORLD) as fake:
        assert asked_of(tmp_path, fake, "--max-calls", "8").exit_code == 3
    gone = asked_of(tmp_path, fake)

    assert gone.exit_code == 1
    assert fake.place in flat(gone)
    assert "run the same command" in flat(gone)
    assert not without_answer(tmp_path)


def test_thoughts_that_are_in_the_total_alone_count_in_ledger_and_limit(tmp_path: Path) -> None:
    """Tokens and money of thoughts that a server leaves out of `completion_tokens` are those of the answer."""

    def thinking(number: int, asked: Asked) -> Any:
        usage = {"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 950}
        return lambda body: {**body, "usage": usage}

    with FakeServer(WORLD, misbehave=thinking) as fake:
        result = asked_of(tmp_path, fake, "--max-tokens", "5000", price_in=1.0, price_out=1.0)
        sent = len(fake.asked)
    listed = json.loads(invoke("model", "ledger", "--db", tmp_path / "kb.db", "--json").stdout)["spending"]

    assert result.exit_code == 3, result.output
    assert sum(row["requests"] for row in listed) == sent < 10
    assert sum(row["completion_tokens"] for row in listed) == 910 * sent
    assert sum(row["cost"] for row in listed) == pytest.approx(950e-6 * sent)


def _in_object(body: Any) -> Any:
    message = body["choices"][0].get("message")
    if message:
        message["content"] = {"type": "text", "text": message["content"]}
    return body


def _in_texts(body: Any) -> Any:
    message = body["choices"][0].get("message")
    if message:
        message["content"] = [message["content"]]
    return body


def _over_the_wire(begin: str, *, twice: bool) -> Callable[[FakeServer, int, Asked], bytes]:
    """A reply as bytes, after this text, perhaps as JSON within a text of JSON."""

    def reply(fake: FakeServer, number: int, asked: Asked) -> bytes:
        status, body, _ = fake.answer(asked)
        text = json.dumps(json.dumps(body) if twice else body)
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        return f"{head}{begin}{text}".encode()

    return reply


def _no_zero(fake: FakeServer, number: int, asked: Asked) -> Reply | None:
    said = {"error": "Input validation error: `temperature` must be strictly positive"}
    return (422, said, {}) if asked.body.get("temperature") == 0 else None


ODD: dict[str, Callable[[FakeServer, int, Asked], Any]] = {
    "comments before JSON": _over_the_wire(": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n", twice=False),
    "JSON in JSON": _over_the_wire("", twice=True),
    "content in an object": lambda fake, number, asked: _in_object,
    "content in a list of texts": lambda fake, number, asked: _in_texts,
    "no temperature of 0": _no_zero,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_replies_in_odd_forms_are_read(odd: Callable[[FakeServer, int, Asked], Any], tmp_path: Path) -> None:
    """A search of such a server has the facts of a plain one, whatever the form of its replies."""
    with FakeServer(WORLD) as fake:
        fake.misbehave = lambda number, asked: odd(fake, number, asked)
        result = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency")

    assert result.exit_code == 0, result.output
    assert {"Norwegian krone", "euro"} <= currencies(tmp_path)
