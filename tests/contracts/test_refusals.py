"""Requests that a server refuses for good, one or all of them, and what had been answered by then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from money_fixture import WORLD
from openai_fake import Asked, FakeServer, Reply
from served import CLAIMS, FILTERED, found, models_file, opened, prompt_of, search

import hapax

VLLM = {
    "object": "error",
    "message": "This model's maximum context length is 64 tokens. However, you asked for 80.",
    "code": 400,
}
LLAMA = {
    "error": {"code": 400, "message": "the request exceeds the available size", "type": "exceed_context_size_error"}
}
ROUTER = {"error": {"code": 403, "message": "Your chosen model requires moderation and your input was flagged"}}
OF_ONE: dict[str, tuple[int, Any]] = {
    "filter": (400, FILTERED),
    "policy": (400, {"error": {"message": "Your request was rejected", "code": "content_policy_violation"}}),
    "context by vLLM": (400, VLLM),
    "context by llama.cpp": (400, LLAMA),
    "moderation": (403, ROUTER),
    "signs that a terminal obeys": (400, {"error": {"message": "content\x1b[2Jfilter\n", "code": "content_filter"}}),
    "too large": (413, b""),
    "filtered answer": (
        200,
        {"model": "tiny", "choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
    ),
    "chat's refusal": (200, {"model": "tiny", "choices": [{"message": {"content": None, "refusal": "I cannot say."}}]}),
}
OF_ALL: dict[str, tuple[int, Any]] = {
    "key": (401, {"error": {"message": "Incorrect API key provided"}}),
    "forbidden": (403, {"error": {"message": "Your account may not use this model"}}),
    "model": (404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}),
    "parameter": (400, {"error": {"message": "Unsupported parameter: 'logit_bias'", "code": "unsupported_parameter"}}),
    "nothing said": (400, b""),
}


def refusing(text: str, status: int, body: Any) -> Any:
    """Refuses whatever holds the text."""

    def misbehave(number: int, asked: Asked) -> Reply | None:
        return (status, body, {}) if text in json.dumps(asked.body) else None

    return misbehave


PLAIN = ("--profile", "hapax", "--likelihood", "frequency")


def test_a_critic_that_refuses_a_claim_has_no_part_in_its_combined_score(tmp_path: Path) -> None:
    """The refused claim has the score of the other critic; every other claim has a score of both."""
    (tmp_path / "critic.json").write_text(json.dumps({"defaults": {"critic": 0.2}}), "utf-8")
    with FakeServer() as fake:
        alone = f"openai:tiny@{fake.url}"
        fake.misbehave = refusing("naan 4.", 400, FILTERED)
        critic = f"{alone}+scripted:{tmp_path / 'critic.json'}"
        models = hapax.open_models(alone, critic=critic, likelihood="frequency")
        scores = models.critic.probabilities(CLAIMS)

    assert scores[4].probability == pytest.approx(0.2)
    assert not any(score.refused for score in scores)
    assert 0.2 not in [round(score.probability, 6) for score in scores[:4] + scores[5:]]


@pytest.mark.parametrize(("status", "body"), OF_ONE.values(), ids=OF_ONE)
def test_a_refusal_of_one_request_stops_no_other(status: int, body: Any) -> None:
    """A filtered or too long claim gets no score but its reason; the others score."""
    with FakeServer() as fake:
        models = opened(fake)
        fake.misbehave = refusing("naan 4.", status, body)
        scores = models.critic.probabilities(CLAIMS)

    assert [place for place, score in enumerate(scores) if score.refused] == [4]
    assert [score.probability for score in scores if not score.refused] == [pytest.approx(0.9)] * 11
    assert scores[4].refused.isprintable()


def test_votes_of_a_refused_claim_are_none() -> None:
    """Where every vote is refused, the claim is; one that gets through counts alone."""
    turns = iter([True] * 9 + [False])

    def nine_of_ten(number: int, asked: Asked) -> Reply | None:
        prompt = prompt_of(asked)
        refused = "poison" in prompt or ("naan" in prompt and next(turns))
        return (400, FILTERED, {}) if refused else None

    with FakeServer({"defaults": {"critic": 1.0}}, frozenset({"logprobs", "n", "systemone"})) as fake:
        models = opened(fake)
        fake.misbehave = nine_of_ten
        accepted, none = models.critic.probabilities(["Milk is in naan.", "Milk is in poison."])

    assert (accepted.probability, accepted.refused) == (1.0, "")
    assert none.refused


@pytest.mark.parametrize(("status", "body"), OF_ALL.values(), ids=OF_ALL)
def test_a_refusal_of_all_requests_ends_the_run_and_keeps_what_came(status: int, body: Any, tmp_path: Path) -> None:
    """A wrong key, model or parameter is one error with the server's place; what had been answered is not paid again."""
    with FakeServer(WORLD) as fake:
        options = (*PLAIN, "--aliases", models_file(tmp_path, fake, max_concurrency=1))
        fake.misbehave = lambda number, asked: (status, body, {}) if number > 12 else None
        ended = search(tmp_path, "openai:small", *options)
        answered = {json.dumps(request.body) for request in fake.asked[:12]}
        before = len(fake.asked)
        fake.misbehave = lambda number, asked: None
        done = search(tmp_path, "openai:small", *options)
        rest = {json.dumps(request.body) for request in fake.asked[before:]}

    assert (ended.exit_code, done.exit_code) == (1, 0), done.output
    assert fake.place in " ".join(ended.output.split())
    assert not rest & answered
    assert found(tmp_path)[1]


def test_a_search_goes_on_behind_refusals_and_tells_of_them(tmp_path: Path) -> None:
    """A filtered claim leaves its value out; search counts it, stats gives the reason, why-not the claim."""
    with FakeServer(WORLD) as fake:
        fake.misbehave = refusing("The Gambia uses the dalasi", 400, FILTERED)
        result = search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN)
        sent = len(fake.asked)
        search(tmp_path, f"openai:tiny@{fake.url}", *PLAIN)
        assert len(fake.asked) == sent
    counted = json.loads(invoke("data", "stats", "--db", tmp_path / "kb.db", "--json").stdout)["refused"]
    goal = ("why-not", 'uses_currency("The Gambia", dalasi)', "--rules", tmp_path / "money.rules")
    story = invoke(*goal, "--db", tmp_path / "kb.db")

    assert result.exit_code == 0, result.output
    assert "1 request was refused" in result.output
    assert counted == [{"role": "critic", "reason": "The response was filtered", "count": 1}]
    assert "The response was filtered" in " ".join(story.output.split())
    assert any("euro" in fact for fact in found(tmp_path)[0])
    assert not any("dalasi" in fact for fact in found(tmp_path)[0])
