"""Ways of real servers beyond OpenAI's page: each is understood, or what it says is told with what helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from money_fixture import WORLD
from openai_fake import Asked, FakeServer, Reply
from served import (
    CLAIMS,
    flat,
    found,
    is_judging,
    is_listing,
    models_file,
    opened,
    probabilities,
    prompt_of,
    search,
    values,
)

import hapax

PLAIN = ("top_k", "min_p", "repeat_penalty", "repetition_penalty")
"""Options of llama.cpp and vLLM."""


def refused(status: int, message: str, **fields: Any) -> Reply:
    return status, {"error": {"message": message, "type": "invalid_request_error", **fields}}, {}


def in_parts(body: Any) -> Any:
    """As Mistral's reasoning models: thoughts and text are parts of a list."""
    for message in (choice["message"] for choice in body["choices"] if "message" in choice):
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "1. Euro, I think."}]}
        message["content"] = [thought, {"type": "text", "text": message["content"]}]
    return body


def as_stream(body: Any) -> bytes:
    """The reply as events, each with a few letters."""
    events = []
    for choice in body["choices"]:
        text = choice["message"]["content"]
        parts = [text[start : start + 7] for start in range(0, len(text), 7)]
        for part in parts:
            delta = {"index": choice["index"], "delta": {"content": part}, "finish_reason": None}
            events.append({"model": body["model"], "choices": [delta]})
        last = {"index": choice["index"], "delta": {}, "finish_reason": "stop", "logprobs": choice.get("logprobs")}
        events.append({"model": body["model"], "choices": [last]})
    events.append({"choices": [], "usage": body["usage"]})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([": ping\n\n", *lines, "data: [DONE]\n\n"]).encode()


def thinking(tokens: int, by_error: bool) -> Callable[[int, Asked], Any]:
    """As OpenAI's reasoning models: few options, no log-probabilities, and so many tokens of thought."""

    def misbehave(number: int, asked: Asked) -> Any:
        body = asked.body
        if "messages" not in body:
            return refused(404, "no such path")
        if "max_tokens" in body:
            return refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if unknown := [name for name in PLAIN if name in body]:
            return refused(400, f"Unrecognized request argument supplied: {unknown[0]}")
        if body.get("temperature", 1) != 1:
            return refused(400, "Unsupported value: 'temperature' does not support 0.7 with this model.")
        if "top_p" in body:
            return refused(400, "Unsupported parameter: 'top_p' is not supported with this model.")
        if "logprobs" in body:
            return refused(403, "You are not allowed to request logprobs from this model")
        if body["max_completion_tokens"] >= tokens:
            return None
        if by_error:
            return refused(400, "Could not finish the message because max_tokens or model output limit was reached.")
        used = body["max_completion_tokens"]
        usage = {"completion_tokens": used, "completion_tokens_details": {"reasoning_tokens": used}}
        return 200, {"choices": [{"message": {"content": ""}, "finish_reason": "length"}], "usage": usage}, {}

    return misbehave


def without(names: tuple[str, ...], reply_for: Callable[[list[str]], Reply]) -> Callable[[int, Asked], Any]:
    """Refuses requests that have one of these options."""

    def misbehave(number: int, asked: Asked) -> Any:
        found = [name for name in names if name in asked.body]
        return reply_for(found) if found else None

    return misbehave


def not_both(number: int, asked: Asked) -> Any:
    if {"temperature", "top_p"} <= asked.body.keys():
        return refused(400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    return None


def raw_error(found: list[str]) -> Reply:
    raw = json.dumps({"error": {"message": f"Unsupported parameter: {found[0]}"}})
    return refused(400, "Provider returned error", code=400, metadata={"raw": raw, "provider_name": "Crux"})


def list_of_errors(found: list[str]) -> Reply:
    said = "\n".join(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in found)
    return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}], {}


def stream_only(number: int, asked: Asked) -> Any:
    if not asked.body.get("stream"):
        return refused(400, "This model only supports streaming. Please set `stream` to true.")
    return as_stream


def at_least_16(number: int, asked: Asked) -> Any:
    if asked.body.get("max_tokens", 99) < 16:
        return refused(400, "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.")
    return None


def with_commas(number: int, asked: Asked) -> Any:
    def changed(body: Any) -> Any:
        for choice in body["choices"]:
            for entry in ((choice.get("logprobs") or {}).get("content") or [{}])[0].get("top_logprobs", ()):
                entry["token"] = f"**{entry['token'].strip().title()},"
        return body

    return changed


def each_text(change: Callable[[str], str]) -> Callable[[Any], Any]:
    """A change to all texts of a reply."""

    def changed(body: Any) -> Any:
        for message in (choice["message"] for choice in body["choices"] if "message" in choice):
            message["content"] = change(message["content"])
        return body

    return changed


def as_together(body: Any) -> Any:
    """A chat's log-probabilities in the shape of completions."""
    for choice in body["choices"]:
        if entries := (choice.get("logprobs") or {}).get("content"):
            top = {entry["token"]: entry["logprob"] for entry in entries[0]["top_logprobs"]}
            choice["logprobs"] = {"tokens": [entries[0]["token"]], "token_logprobs": [-0.1], "top_logprobs": [top]}
    return body


def as_delta(body: Any) -> Any:
    for choice in body.get("choices", ()):
        choice["delta"] = choice.pop("message")
    return body


def with_likeliest(pairs: list[tuple[str, float]]) -> Callable[[Any], Any]:
    """The first tokens of answers are these."""
    top = [{"token": token, "logprob": score, "bytes": []} for token, score in pairs]

    def changed(body: Any) -> Any:
        for choice in body.get("choices", ()):
            if (choice.get("logprobs") or {}).get("content"):
                choice["logprobs"]["content"] = [{"token": "?", "logprob": -0.1, "top_logprobs": top}]
        return body

    return changed


def as_loose_stream(body: Any) -> bytes:
    """Lines without blanks, empty reasons amid the stream and none at its end, comments, and the line ends of HTTP."""
    lines = [": OPENROUTER PROCESSING", "event: message"]
    for choice in body["choices"]:
        text = choice["message"]["content"]
        for letter in text:
            lines.append(
                f"data:{json.dumps({'choices': [{'index': choice['index'], 'delta': {'content': letter}, 'finish_reason': ''}]})}"
            )
        lines.append(
            f"data:{json.dumps({'choices': [{'index': choice['index'], 'delta': {}, 'logprobs': choice.get('logprobs')}]})}"
        )
    return "\r\n".join([*lines, "data:", "data: [DONE]"]).encode()


def extra_inputs(found: list[str]) -> Reply:
    """Mistral's validation, as an object in the place of a message."""
    detail = [
        {"type": "extra_forbidden", "loc": ["body", found[0]], "msg": "Extra inputs are not permitted", "input": 0}
    ]
    return 422, {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "code": None}, {}


def extra_inputs_as_text(found: list[str]) -> Reply:
    status, body, headers = extra_inputs(found)
    return status, {**body, "message": json.dumps(body["message"])}, headers


def not_whole(number: int, asked: Asked) -> Any:
    """As DashScope, for models that may think."""
    if asked.body.get("stream"):
        return as_stream
    return refused(400, "parameter.enable_thinking must be set to false for non-streaming calls")


def with_status_246(number: int, asked: Asked) -> Any:
    status, body, headers = FakeServer(WORLD_OF_YES).answer(asked)
    return (246 if status == 200 else status), body, headers


WORLD_OF_YES = {**WORLD, "defaults": {"critic": 0.9, "likelihood": -10.0, "generate": []}}

BEHAVIOURS: dict[str, Callable[[int, Asked], Any]] = {
    "content in parts": lambda number, asked: in_parts,
    "a stream that nobody asked for": lambda number, asked: as_stream,
    "streams alone": stream_only,
    "thoughts of 300 tokens, else an error": thinking(300, by_error=True),
    "thoughts of 1,500 tokens, else nothing": thinking(1_500, by_error=False),
    "not temperature and top_p": not_both,
    "no log-probabilities by 403": without(("logprobs",), lambda _: refused(403, "You may not request logprobs")),
    "unknown options in a list of errors": without((*PLAIN, "seed", "logprobs"), list_of_errors),
    "unknown options in the words of another server": without(PLAIN, raw_error),
    "no fewer than 16 tokens": at_least_16,
    "yes and no with marks": with_commas,
    "9router: the end of a stream behind a reply": lambda number, asked: (
        lambda body: f"{json.dumps(body)}data: [DONE]\n\n".encode()
    ),
    "the reply twice": lambda number, asked: lambda body: (json.dumps(body) * 2).encode(),
    "Portkey: status 246": with_status_246,
    "R1: thoughts without a beginning": lambda number, asked: each_text(
        lambda text: f"No, it is not so.\n</think>\n\n{text}"
    ),
    "Qwen: thoughts in the text": lambda number, asked: each_text(
        lambda text: f"<think>\nNo, not so.\n</think>\n\n{text}"
    ),
    "gpt-oss: its channels in the text": lambda number, asked: each_text(
        lambda text: f"<|channel|>analysis<|message|>No?<|end|><|start|>assistant<|channel|>final<|message|>{text}"
    ),
    "Together: log-probabilities of another shape": lambda number, asked: as_together,
    "no usage": lambda number, asked: lambda body: {**body, "usage": None},
    "usage as text": lambda number, asked: lambda body: {**body, "usage": {"prompt_tokens": "7", "total_tokens": 9.5}},
    "Mistral: a validation for a message": without((*PLAIN, "seed"), extra_inputs),
    "Mistral: a validation in a text": without((*PLAIN, "seed"), extra_inputs_as_text),
    "DashScope: thinks by streams alone": not_whole,
    "nenya: a delta where a message should be": lambda number, asked: as_delta,
    "TGI: no likeliest tokens though asked": lambda number, asked: with_likeliest([]),
    "vLLM: likeliest tokens without letters": lambda number, asked: with_likeliest([("", -0.0001), ("", -16.0)]),
    "SGLang: log-probabilities of thoughts": lambda number, asked: with_likeliest(
        [("<think>", -0.0001), ("Yes", -9.0)]
    ),
    "LM Studio: counts nothing": lambda number, asked: (
        lambda body: {**body, "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
    ),
    "a loose stream": lambda number, asked: as_loose_stream,
}


@pytest.mark.parametrize("misbehave", BEHAVIOURS.values(), ids=BEHAVIOURS)
def test_a_server_with_ways_of_its_own_is_asked_as_it_wants(misbehave: Any) -> None:
    """Lists and claims are answered as by any other server."""
    with FakeServer(WORLD_OF_YES, misbehave=misbehave) as fake:
        models = opened(fake)
        found = values(models)
        (probability,) = probabilities(models, CLAIMS[:1])

    assert "Norwegian krone" in found
    assert probability > 0.5


def test_a_model_that_thinks_has_room_for_it_in_every_question() -> None:
    """Its thoughts are no part of the answer's limit: votes and lists get what the probe needed, and more."""
    with FakeServer(WORLD, misbehave=thinking(400, by_error=False)) as fake:
        models = opened(fake)
        start = len(fake.asked)
        values(models)
        limits = [asked.body["max_completion_tokens"] for asked in fake.asked[start:]]

    assert limits
    assert min(limits) >= 800


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"message": "Insufficient credits", "code": 402}, "Insufficient credits"),
        ("Unexpected endpoint or method. (POST /chat/completions)", "/v1"),
        ({"message": "Access denied", "code": "403", "innererror": {"message": "tenant blocked"}}, "tenant blocked"),
    ],
    ids=["no money", "no such path", "an inner error"],
)
def test_an_error_in_a_reply_that_seems_good_is_told_in_the_servers_words(
    error: Any, told: str, tmp_path: Path
) -> None:
    """An error object with status 200 ends the command at once, after one request, with what helps."""
    with FakeServer(misbehave=lambda number, asked: (200, {"error": error}, {})) as fake:
        result = search(tmp_path, f"openai:tiny@{fake.url.removesuffix('/v1')}")

        assert result.exit_code == 1
        assert told in flat(result)
        assert len(fake.asked) <= 2


@pytest.mark.parametrize(
    ("body", "headers", "least"),
    [
        ({"error": {"message": "Rate limit reached. Please try again in 0.4s."}}, {}, 0.4),
        ({"error": {"details": [{"retryDelay": "0.4s"}]}}, {}, 0.4),
        ({}, {"retry-after-ms": "400"}, 0.4),
        ({}, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "400ms"}, 0.4),
    ],
    ids=["in words", "a delay", "milliseconds", "a reset"],
)
def test_a_wait_is_kept_wherever_the_server_states_it(
    body: Any, headers: dict[str, str], least: float, tmp_path: Path
) -> None:
    """The request is sent again after the wait, as one attempt, and counts once in the budget's calls."""
    with FakeServer(WORLD) as fake:
        models = opened(fake, tmp_path, attempts=1)
        first = len(fake.asked) + 1
        fake.misbehave = lambda number, asked: (429, body, headers) if number == first else None
        began = hapax.kb.files.system.monotonic()
        assert probabilities(models, CLAIMS[:1])
        waited = hapax.kb.files.system.monotonic() - began

    assert waited >= least


def test_requests_to_wait_cost_no_calls(tmp_path: Path) -> None:
    """A limit on calls is for answers: a server that asks for pauses uses none of it."""
    with FakeServer(WORLD) as fake:
        whole = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency", "--profile", "hapax")
        calls = len(fake.asked)
    assert whole.exit_code == 0
    seen: set[str] = set()

    def first_time(number: int, asked: Asked) -> Reply | None:
        name = json.dumps(asked.body, sort_keys=True)
        if name in seen:
            return None
        seen.add(name)
        return 429, {"error": {"message": "Please try again in 1ms."}}, {}

    with FakeServer(WORLD, misbehave=first_time) as fake:
        limited = search(
            tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency", "--profile", "hapax",
            "--max-calls", str(calls + 40), database="limited.db",
        )  # fmt: skip

    assert limited.exit_code == 0, limited.output


def test_a_question_that_the_server_does_not_accept_stops_no_other(tmp_path: Path) -> None:
    """One list of several is refused for no reason that Hapax knows: the others are answered, and the reason is told."""

    def one(number: int, asked: Asked) -> Reply | None:
        bad = is_listing(asked) and "The Gambia uses" in prompt_of(asked)
        return refused(400, "I do not like this one") if bad else None

    with FakeServer(WORLD, misbehave=one) as fake:
        result = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency", "--profile", "hapax")
        with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
            facts = kb.facts("uses_currency")

    assert result.exit_code == 0, result.output
    assert facts
    assert "without a usable reply" in flat(result)


def test_azure_is_asked_by_deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of its interface is part of every address, and the key goes into its header; so do other headers."""
    monkeypatch.setenv("AZURE_KEY", "azure-key-0123456789")
    monkeypatch.setenv("TENANT", "tenant-0123456789")

    def deployed(number: int, asked: Asked) -> Any:
        if "?api-version=2024-10-21" not in asked.path or asked.headers.get("api-key") != "azure-key-0123456789":
            return refused(401, "Access denied due to invalid subscription key or wrong API endpoint.")
        path, _, _ = asked.path.partition("?")
        return fake.answer(replace(asked, path=path.replace("/v1/openai/deployments/tiny", "/v1")))

    with FakeServer(WORLD, misbehave=deployed) as fake:
        base = f"{fake.url}/openai/deployments/tiny?api-version=2024-10-21"
        named: dict[str, Any] = {
            "api_base": base,
            "api_key_name": "AZURE_KEY",
            "headers": {"X-Tenant": "$TENANT", "X-Title": "Hapax"},
        }
        models = opened(fake, tmp_path, **named)
        assert values(models) == ["Norwegian krone"]
        headers = fake.asked[-1].headers

    assert (headers["x-tenant"], headers["x-title"]) == ("tenant-0123456789", "Hapax")


def test_a_server_that_wants_a_key_says_how_to_give_one(tmp_path: Path) -> None:
    """The key of OpenAI goes to no other server, so the message names the alias and its field."""
    with FakeServer(misbehave=lambda number, asked: refused(401, "No auth credentials found")) as fake:
        result = search(tmp_path, f"openai:tiny@{fake.url}")

    assert result.exit_code == 1
    assert "api_key_name" in flat(result)
    assert "--aliases" in flat(result)


def test_an_address_that_ends_in_the_path_of_a_request_is_its_base(tmp_path: Path) -> None:
    """`.../v1/chat/completions` is read as `.../v1`."""
    with FakeServer(WORLD) as fake:
        models = opened(fake, tmp_path, api_base=f"{fake.url}/chat/completions")
        assert probabilities(models, CLAIMS[:1])
        assert any(is_judging(asked) for asked in fake.asked)
    assert models_file(tmp_path)


CITIES = [f"Town {number}" for number in range(12)]
TOWNS = {
    "'[A] is a city in [B]'": CITIES,
    **{f"'{city} is a city in [B]'": [f"Land {number}"] for number, city in enumerate(CITIES)},
    **{f"'Land {number} uses the [B]'": [f"dollar {number}", "euro"] for number in range(12)},
}
"""Twelve cities, each in a country of its own."""


def lists(body: Any, values: dict[str, list[str]] = TOWNS) -> dict[int, list[str]]:
    """The lists for the numbered sentences of a prompt."""
    found: dict[int, list[str]] = {}
    for line in body["messages"][-1]["content"].partition("\nSentences:\n")[2].splitlines():
        number, _, sentence = line.partition(". ")
        found[int(number)] = values[f"'{sentence.partition(' (___')[0].replace('___', '[B]')}'"]
    return found


def listing(change: Callable[[dict[int, list[str]]], dict[int, list[str]]]) -> FakeServer:
    """A server that follows a schema, and changes the lists of requests for several."""

    def structured(number: int, asked: Asked) -> Any:
        if "response_format" not in asked.body:
            return None
        told = change(lists(asked.body))
        entries = [{"number": place, "values": listed} for place, listed in told.items()]
        said = {"lists": entries} if entries else {"values": ["red", "blue"]}
        return 200, {"model": "tiny", "choices": [{"message": {"content": json.dumps(said)}}]}, {}

    return FakeServer({**WORLD, "generate": TOWNS}, misbehave=structured)


@pytest.mark.parametrize(
    ("change", "alone"),
    [
        (lambda told: told, 3),
        (lambda told: {place: values for place, values in told.items() if place != 7}, 3 + 3),
        (lambda told: dict(zip(told, reversed(told.values()), strict=True)), 36),
    ],
    ids=["all", "the seventh is missing", "in disorder"],
)
def test_lists_are_asked_together_where_a_sample_is_the_same_alone(
    change: Callable[[dict[int, list[str]]], dict[int, list[str]]], alone: int, tmp_path: Path
) -> None:
    """Ten lists take one request under a schema; a missing one is asked alone, and all are where they differ."""
    with listing(change) as fake:
        url = f"openai:tiny@{fake.url}"
        for name, options in (("together", ()), ("alone", ("--profile", "released-nl"))):
            result = search(tmp_path, url, "--likelihood", "frequency", *options, database=f"{name}.db")
            assert result.exit_code == 0, result.output
            if name == "together":
                asked = [prompt_of(request) for request in fake.asked]

    assert sum(prompt.startswith("Give me") and ("Town" in prompt or "Land" in prompt) for prompt in asked) == alone
    assert found(tmp_path, "together.db") == found(tmp_path, "alone.db")


def test_links_ways_ask_for_one_list_at_a_time(tmp_path: Path) -> None:
    """Under `--compat` no request has several sentences."""
    with listing(lambda told: told) as fake:
        url = f"openai:tiny@{fake.url}"
        result = search(tmp_path, url, "--likelihood", "frequency", "--compat", "paper")
        assert result.exit_code == 0, result.output

    assert not any("\nSentences:\n" in prompt_of(asked) for asked in fake.asked)


def test_a_system_prompt_stands_before_the_question_where_a_template_has_no_place_for_it(tmp_path: Path) -> None:
    """As Gemma's: after a refusal, the words of the system prompt are in the turn of the user."""

    def without_system(number: int, asked: Asked) -> Reply | None:
        if asked.body.get("messages", [{}])[0].get("role") == "system":
            return 400, {"object": "error", "message": "System role not supported", "type": "BadRequestError"}, {}
        question = prompt_of(asked).removeprefix("Be brief.\n\n")
        turns = [{"role": "user", "content": question}]
        return FakeServer(WORLD_OF_YES).answer(replace(asked, body={**asked.body, "messages": turns}))

    with FakeServer(WORLD_OF_YES, misbehave=without_system) as fake:
        models = opened(fake, tmp_path, system_prompt="Be brief.")
        assert probabilities(models, CLAIMS[:1])
    assert prompt_of(fake.asked[-1]).startswith("Be brief.\n\n")


def test_a_model_that_thinks_is_not_given_more_room_than_it_may_have() -> None:
    """The room of a probe that was enough is kept where the model's limit forbids more."""

    def limited(number: int, asked: Asked) -> Reply | None:
        most = asked.body.get("max_tokens", 0)
        if most > 2048:
            return refused(400, "Range of max_tokens should be [1, 2048]")
        if most < 500:
            message = {"role": "assistant", "content": None, "reasoning_content": "Well."}
            return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "length"}]}, {}
        return None

    with FakeServer(WORLD_OF_YES, misbehave=limited) as fake:
        assert values(opened(fake)) == ["Norwegian krone"]
