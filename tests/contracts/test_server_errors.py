"""Errors of servers in the place of an answer: each is told in their words, and treated by what it means."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from money_fixture import WORLD
from openai_fake import Asked, FakeServer, Reply
from served import flat, found, models_file, opened, prompt_of, search, values

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
