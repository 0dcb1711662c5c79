"""Errors of servers in the place of an answer: each is told in their words, and treated by what it means."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer, Reply
from served import CLAIMS, FILTERED, flat, found, models_file, opened, prompt_of, search, values

import hapax


def said(status: int, body: Any, **headers: str) -> Reply:
    return status, body, headers


def finished(reason: str, **message: Any) -> Reply:
    """A reply without an answer that says why it ended."""
    return 200, {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}]}, {}


AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
INNER = {"code": "ResponsibleAIPolicyViolation", "content_filter_results": {"jailbreak": {"filtered": True}}}
CONTEXT = "This model's maximum context length is 2048 tokens. However, you requested 3583 tokens."

ONE_QUESTION: dict[str, tuple[Reply, str]] = {
    "Azure: inner_error": (said(400, {"error": {"inner_error": INNER, "code": "content_filter", "message": AZURE}}), "filtered"),
    "LiteLLM: Azure's filter": (
        said(400, {"error": {"message": f"litellm.BadRequestError: {AZURE}", "code": "400",
                             "provider_specific_fields": {"innererror": INNER}}}),
        "content management policy",
    ),
    "Gemini: SAFETY": (finished("SAFETY"), "SAFETY"),
    "Gemini: PROHIBITED_CONTENT": (finished("content_filter: PROHIBITED_CONTENT"), "PROHIBITED_CONTENT"),
    "GLM: sensitive": (finished("sensitive", content=""), "sensitive"),
    "Claude: refusal": (finished("refusal", content=None), "refusal"),
    "Portkey: guardrails": (
        said(446, {"error": {"message": "The guardrail checks defined in the config failed.", "type": "hooks_failed"}}),
        "guardrail checks",
    ),
    "LM Studio: context in a 200": (
        said(200, {"error": "Trying to keep the first 15857 tokens when context the overflows. However, the model is "
                            "loaded with context length of only 4096 tokens, which is not enough."}),
        "context length of only 4096",
    ),
    "FastChat: context": (said(400, {"object": "error", "message": CONTEXT, "code": 40303}), "2048 tokens"),
    "TGI: context": (
        said(422, {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
                   "error_type": "validation"}),
        "4095 tokens",
    ),
    "Ollama: context by 500": (
        said(500, {"error": {"message": "input length exceeds maximum context length", "type": "api_error"}}),
        "maximum context length",
    ),
    "Claude: context": (
        said(400, {"type": "error", "error": {"type": "invalid_request_error",
                                              "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        "210000 tokens",
    ),
    "OpenAI: too large for any minute": (
        said(429, {"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested "
                                        "342389.", "type": "tokens", "code": "rate_limit_exceeded"}}),
        "Requested 342389",
    ),
    "nginx: 413": (said(413, b"<html>\r\n<head><title>413 Request Entity Too Large</title></head></html>"), "413 Request Entity"),
    "Ollama: all in reasoning": (finished("stop", content="", reasoning="The krone, I think."), "reasoning"),
    "vLLM: cut off in its thoughts": (finished("length", content=None, reasoning="Let me see."), "reasoning"),
    "Bedrock: choices: null": (said(200, {"id": None, "choices": None, "usage": None}), "without choices"),
}  # fmt: skip
"""Ways in which servers do not answer one question, with the words of the reason that is told."""


@pytest.mark.parametrize(("reply", "told"), ONE_QUESTION.values(), ids=ONE_QUESTION)
def test_a_question_that_is_not_answered_is_told_with_its_reason(reply: Reply, told: str, tmp_path: Path) -> None:
    """The other questions are answered, and `stats` has the reason in the server's words."""

    def one(number: int, asked: Asked) -> Reply | None:
        return reply if "'The Gambia uses the [B]" in prompt_of(asked) else None

    with FakeServer(WORLD, misbehave=one) as fake:
        result = search(tmp_path, f"openai:tiny@{fake.url}", "--likelihood", "frequency", "--profile", "hapax")
    (answer,) = json.loads(invoke("data", "stats", "--db", tmp_path / "kb.db", "--json").stdout)["refused"]
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        found = {fact.arguments[1] for fact in kb.facts("uses_currency")}

    assert result.exit_code == 0, result.output
    assert found == {"Norwegian krone", "euro"}
    assert told in answer["reason"]


def events(*parts: Any, end: str = "data:[DONE]") -> bytes:
    """A stream with the line ends and comments of real ones."""
    lines = [": OPENROUTER PROCESSING", *(f"data:{json.dumps(part)}" for part in parts), end]
    return "\r\n".join(lines).encode()


def part(text: str, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}], **fields}


ONCE: dict[str, Reply] = {
    "OpenRouter: 429 in a 200": said(
        200, {"choices": None, "error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "Too Many Requests"}}}
    ),
    "OpenRouter: finish_reason error": said(
        200, {"choices": [{"message": {"content": ""}, "finish_reason": "error"}], "error": {"code": 502, "message": "gone"}}
    ),
    "OpenRouter: an error amid a stream": said(
        200, events(part("1. Norw"), {"choices": [], "error": {"code": 502, "message": "Worker limit reached (33/32)"}}, end="")
    ),
    "Claude: overloaded amid a stream": said(
        200, b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    ),
    "a stream that breaks off": said(200, events(part("1. Norw"), end="")),
    "a stream that breaks off in an event": said(200, b'data: {"choices": [{"index": 0, "del'),
    "MiniMax: an error in base_resp": said(200, {"choices": None, "base_resp": {"status_code": 1000, "status_msg": "unknown"}}),
    "Groq: no room": said(498, {"error": {"message": "Flex tier capacity exceeded", "type": "capacity_exceeded"}}),
    "Claude: 529": said(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "Cloudflare: 524": said(524, b"<html><head><title>524: A timeout occurred</title></head></html>"),
    "Azure: retry after seconds": said(429, {"error": {"code": "429", "message": "Please retry after 0.2 seconds."}}),
    "Hugging Face: loading": said(503, {"error": "Model is currently loading", "estimated_time": 0.2}),
    "OpenRouter: the time of the reset in the body": said(
        429,
        {"error": {"message": "Rate limit exceeded: free-models-per-min.", "code": 429, "metadata": {"headers": {
            "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(1000 * time.time()))}}}},
    ),
    "Cerebras: seconds until the reset": said(
        429, {"message": "Tokens per minute limit exceeded", "type": "too_many_tokens_error"},
        **{"x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "0.2"},
    ),
    "Codex: seconds in the body": said(429, {"error": {"type": "usage_limit_reached", "resets_in_seconds": 0}}),
    "Antigravity: a quota that resets": said(429, {"error": {"message": "Your quota will reset after about 0.1s."}}),
    "Moonshot: after seconds": said(429, {"error": {"message": "max request: 3, please try again after 0.1 seconds"}}),
}  # fmt: skip
"""Faults that are over at the next attempt."""


@pytest.mark.parametrize("reply", ONCE.values(), ids=ONCE)
def test_a_fault_of_the_moment_changes_nothing(reply: Reply) -> None:
    """The request is sent once more, and its answer is that of a server without faults."""
    with FakeServer(WORLD) as fake:
        models = opened(fake)
        before = len(fake.asked)
        assert values(models) == ["Norwegian krone"]
        wanted = len(fake.asked) - before
        first = len(fake.asked) + 1
        fake.misbehave = lambda number, asked: reply if number == first else None
        assert values(models) == ["Norwegian krone"]
        assert len(fake.asked) - before == 2 * wanted + 1


ENDINGS: dict[str, tuple[Reply, tuple[str, ...]]] = {
    "xAI: a wrong key by 400": (
        said(400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: na***ys."}),
        ("Incorrect API key", "api_key_name"),
    ),
    "Gemini: a wrong key in an error in an error": (
        said(400, {"error": {"code": 400, "message": json.dumps({"error": {"code": 400, "message": "API key not valid."}})}}),
        ("API key not valid", "api_key_name"),
    ),
    "MiniMax: no money by 500": (
        said(500, {"type": "error", "error": {"type": "api_error", "message": "insufficient balance (1008)"}}),
        ("insufficient balance (1008)", "run out of money"),
    ),
    "no money by 403": (
        said(403, {"code": "INSUFFICIENT_BALANCE", "message": "Insufficient account balance"}),
        ("Insufficient account balance", "run out of money"),
    ),
    "Cloudflare: a list of errors": (
        said(404, {"result": None, "success": False, "errors": [{"code": 7003, "message": "Could not route to /ai/v1"}]}),
        ("Could not route to /ai/v1", "base URL"),
    ),
    "OpenRouter: no such model": (
        said(400, {"error": {"message": "google/gemini-2.5 is not a valid model ID", "code": 400}}),
        ("not a valid model ID", "Check the model's name"),
    ),
    "a page of a proxy": (
        said(502, b"<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>"),
        ("HTTP 502 502 Bad Gateway",),
    ),
    "Claude: no credit by 400": (
        said(400, {"type": "error", "error": {"type": "invalid_request_error",
                                              "message": "Your credit balance is too low to access the Anthropic API."}}),
        ("credit balance is too low", "run out of money"),
    ),
    "Moonshot: no money by 403": (
        said(403, {"error": {"message": "Your account is not active, organization exceeded current quota",
                             "type": "exceeded_current_quota_error"}}),
        ("exceeded current quota", "run out of money"),
    ),
    "DashScope: an account in arrears": (
        said(400, {"error": {"message": "Access denied, please make sure your account is in good standing.",
                             "code": "Arrearage"}}),
        ("good standing", "run out of money"),
    ),
    "RunPod: no such model by 200": (
        said(200, {"code": 404, "message": "The model `x` does not exist.", "object": "error", "type": "NotFoundError"}),
        ("The model `x` does not exist", "Check the model's name"),
    ),
    "Bedrock: no such model": (
        said(400, {"error": {"message": "ValidationException: The provided model identifier is invalid."}}),
        ("model identifier is invalid", "Check the model's name"),
    ),
    "a problem in the words of RFC 9457": (
        said(400, {"type": "about:blank", "title": "The deployment is not ready for requests", "status": 400}),
        ("The deployment is not ready for requests",),
    ),
    "AWS: a capital message": (
        said(403, {"Message": "User is not authorized to access this resource"}),
        ("User is not authorized to access this resource", "api_key_name"),
    ),
    "a model that is gone": (
        said(410, {"error": {"message": "The model has reached its end of life."}}),
        ("end of life", "Check the model's name"),
    ),
    "a server that has moved": (
        said(308, b"", Location="https://api.example.org/v1/chat/completions"),
        ("see https://api.example.org/v1/chat/completions", "give its new base URL"),
    ),
    "OpenAI: too many tokens of answer": (
        said(400, {"error": {"message": "max_tokens is too large: 16. This model supports at most 8 completion tokens."}}),
        ("at most 8 completion tokens", "Allow fewer tokens"),
    ),
}  # fmt: skip
"""Faults of all requests, with what is told."""


@pytest.mark.parametrize(("reply", "told"), ENDINGS.values(), ids=ENDINGS)
def test_a_fault_of_the_server_is_told_with_what_helps(reply: Reply, told: tuple[str, ...], tmp_path: Path) -> None:
    """The command ends by the server's words and a remedy."""
    with FakeServer(misbehave=lambda number, asked: reply) as fake:
        aliases = models_file(tmp_path, fake, attempts=2)
        result = search(tmp_path, "openai:small", "--aliases", aliases)

    assert result.exit_code == 1
    assert [words for words in told if words not in flat(result)] == []


@pytest.mark.parametrize(
    "words",
    [
        "Range of max_tokens should be [1, 300]",
        "max_tokens is too large: 1000. This model supports at most 300 completion tokens, whereas you provided 1000.",
        "This model's maximum context length is 512 tokens. However, you requested 1031 tokens (31 in the messages, "
        "1000 in the completion).",
    ],
)
def test_lists_that_are_longer_than_the_model_may_write_are_asked_with_fewer_tokens(words: str, tmp_path: Path) -> None:
    """The refusal of a number of tokens is answered with half of it, which nobody has to state."""

    def limited(number: int, asked: Asked) -> Reply | None:
        too_long = asked.body.get("max_tokens", 0) > 300
        return said(400, {"error": {"message": words}}) if too_long else None

    with FakeServer(WORLD, misbehave=limited) as fake:
        model = f"openai:tiny@{fake.url}"
        result = search(tmp_path, model, "--likelihood", "frequency", "--profile", "hapax")

    assert result.exit_code == 0, result.output
    assert "refused" not in flat(result)
    assert len(found(tmp_path)[0]) > 0


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


def test_a_server_that_scores_no_text_is_asked_for_it_once(tmp_path: Path) -> None:
    """That word frequency ranks in its place is kept as well: the search runs again with the server off."""
    with FakeServer(WORLD, frozenset({"systemone", "completions"})) as fake:
        line = (f"openai:tiny@{fake.url}", "--profile", "hapax", "--json")
        first = search(tmp_path, *line)
    again = search(tmp_path, *line)

    assert (first.exit_code, again.exit_code) == (0, 0), again.output
    assert calls(first)["probe"] > 0
    assert calls(again) == {}
    assert "frequencies" in flat(again)


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


GIVEN = """
given lives_in(Person X, City B): "[1] lives in [2]"
given lies_in(City B, Country C): "[1] lies in [2]"
lives_in(Person X, City B) & lies_in(City B, Country C) -> is_at_home_in(Person X, Country C).
lies_in("Oslo", "Norway").
"""
"""A rule of which no model is asked."""


def test_a_plan_counts_the_claims_by_which_the_critic_is_tried(tmp_path: Path) -> None:
    """Sixty claims of known truth in requests of twelve are five calls of the critic, with their price, until they are
    answered."""
    (tmp_path / "given.rules").write_text(GIVEN, "utf-8")
    with FakeServer(WORLD, frozenset({"systemone"})) as fake:
        aliases = models_file(tmp_path, fake, price_in=1e6, price_out=1e6)
        options = ("-m", "openai:small", "--aliases", aliases, *PLAIN, "--claims", "12", "--db", tmp_path / "kb.db")
        line = (tmp_path / "given.rules", *options, "--json")
        before = json.loads(invoke("plan", *line).stdout)["roles"]["critic"]
        searched = invoke("search", *line, "--no-progress")
        after = json.loads(invoke("plan", *line).stdout)["roles"]["critic"]

    assert calls(searched)["critic"] == before["calls"] == 5
    assert before["cost"] > 60
    assert after["calls"] == 0


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
