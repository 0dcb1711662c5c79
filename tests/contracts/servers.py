"""A model on a loopback server that knows a few dishes, and the ways in which real servers answer strangely."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

RULES = """
oracle is_eaten_in(Dish, City): "[1] is eaten in [2]" / "[1] is not eaten in [2]" / "is [1] eaten in [2]?"
given visits(Person, City): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
given may_try(Person, Dish): "[1] may try [2]" / "[1] may not try [2]" / "may [1] try [2]?"

@name dish_of
visits(Person X, City C) & is_eaten_in(Dish D, City C) -> may_try(Person X, Dish D)
"""

DISHES = {"Valencia": "paella", "Edinburgh": "haggis", "Lima": "ceviche", "Hanoi": "pho"}
TRUE: set[str] = set()
for _city, _dish in DISHES.items():
    TRUE |= {f"{_dish} is eaten in {_city}".casefold(), f"{_dish} is a dish", f"{_city} is a city".casefold()}

Body = dict[str, Any]
Behaviour = Callable[[Body, Body], Any]
"""Makes what a server sends of the request and the right reply: a reply, or its status and the reply."""


def prompt_of(body: Body) -> str:
    """The last message of a chat, or the prompt of another request."""
    return str(body["messages"][-1]["content"] if "messages" in body else body.get("prompt", body.get("state")))


def claim_of(body: Body) -> str | None:
    """The claim that a critic is asked about; None for another question."""
    found = re.search(r"Statement: (.*?)\.?\s*\n.*Answer:\s*$", prompt_of(body), re.DOTALL)
    return found[1] if found else None


def is_true(claim: str) -> bool:
    """Truth of a claim in this small world. A sentence begins with a capital, whatever its first name has."""
    of_type = re.fullmatch(r"(.+) is an? (dish|city)", claim)
    if of_type or " is eaten in " in claim:
        return claim.casefold() in TRUE
    return claim != "Paris is the capital of Spain"


def right_reply(body: Body) -> Body:
    """The reply of a server without faults."""
    claim = claim_of(body)
    if claim is None:
        asked, _, excluded = prompt_of(body).partition("Do not generate these values:")
        known = DISHES if "is a city" in asked else [DISHES[city] for city in DISHES if f"eaten in {city}'" in asked]
        return numbered(value for value in known if value not in excluded)
    probability = 0.97 if is_true(claim) else 0.04
    likeliest = {"Yes": math.log(probability), "No": math.log(1 - probability)}
    said = "Yes" if is_true(claim) else "No"
    reply = chat(said, count=body.get("n", 1))
    return with_first_tokens(reply, likeliest) if body.get("logprobs") else reply


def numbered(values: Iterable[str]) -> Body:
    """A reply with a list."""
    return chat("\n".join(f"{number}. {value}" for number, value in enumerate(values, 1)) or "None")


def chat(content: str | None, finish_reason: str = "stop", count: int = 1) -> Body:
    """A reply with this text in each of its choices."""
    choices = []
    for index in range(count):
        message = {"role": "assistant", "content": content}
        choices.append({"index": index, "message": message, "finish_reason": finish_reason})
    usage = {"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50}
    return {"model": "m", "choices": choices, "usage": usage}


def with_first_tokens(reply: Body, likeliest: dict[str, float]) -> Body:
    """The reply with log-probabilities of its first token."""
    entries = [{"token": token, "logprob": score} for token, score in likeliest.items()]
    first, *others = reply["choices"]
    return {**reply, "choices": [{**first, "logprobs": {"content": [{"top_logprobs": entries}]}}, *others]}


def about(words: str, behave: Behaviour) -> Behaviour:
    """Behaves so where the question has these words, and rightly otherwise."""
    return lambda body, reply: behave(body, reply) if words in prompt_of(body) else reply


# Replies of real servers without an answer


def null_content(body: Body, reply: Body) -> Body:
    """As vLLM does where a parser takes the whole text for a thought."""
    return chat(None)


def no_choices(body: Body, reply: Body) -> Body:
    """As Azure and OpenRouter do where a filter took the answer."""
    return {**reply, "choices": []}


def tool_call(body: Body, reply: Body) -> Body:
    """As a model that has tools does."""
    called = chat(None, finish_reason="tool_calls")
    call = {"id": "t", "type": "function", "function": {"name": "web_search", "arguments": "{}"}}
    called["choices"][0]["message"]["tool_calls"] = [call]
    return called


def error_in_body(body: Body, reply: Body) -> Body:
    """As OpenRouter does: status 200, with an error in it."""
    return {"error": {"message": "Provider returned error", "code": 502}}


def server_error(body: Body, reply: Body) -> tuple[int, Body]:
    """As a server whose worker dies of one prompt."""
    return 500, {"error": {"message": "worker died"}}


# Strange first tokens and counts


def first_tokens(true: dict[str, float], false: dict[str, float] | None = None) -> Behaviour:
    """Replies to a critic's question with these log-probabilities, those of `false` for a claim that is false."""

    def behave(body: Body, reply: Body) -> Body:
        claim = claim_of(body)
        if claim is None or not body.get("logprobs"):
            return reply
        return with_first_tokens(reply, true if false is None or is_true(claim) else false)

    return behave


def thoughts_in_total(body: Body, reply: Body) -> Body:
    """As Gemini does: 900 tokens of thoughts are in the total alone."""
    usage = {**reply["usage"], "total_tokens": reply["usage"]["total_tokens"] + 900}
    return {**reply, "usage": usage}


class OddServer:
    """An OpenAI-compatible server that behaves as told. `asked`: the bodies of the requests that came."""

    def __init__(self, behave: Behaviour = lambda body, reply: reply) -> None:
        self.behave = behave
        self.asked: list[Body] = []

    def __enter__(self) -> OddServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name that http.server calls
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, reply = 404, {"error": {"message": "no such path"}}
                server.asked.append(body)
                if self.path.endswith("/chat/completions"):
                    sent = server.behave(body, right_reply(body))
                    status, reply = sent if isinstance(sent, tuple) else (200, sent)
                text = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def asked_about(self, words: str) -> int:
        """Number of requests with these words."""
        return sum(words in prompt_of(body) for body in self.asked)
