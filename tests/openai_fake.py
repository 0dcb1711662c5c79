"""An OpenAI-compatible server on loopback that answers from a script or for another server, and fails as servers fail."""

from __future__ import annotations

import json
import math
import random
import socket
import struct
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

Reply = tuple[int, Any, Mapping[str, str]]
"""Status, body (JSON if it is no bytes), headers."""

Changed = Callable[[Any], Any]
"""Makes another body of the right one."""

FRAME = (
    "For the following question, please answer in a normal life scenario with no special consideration:\n"
    "Question: Is the following statement correct? Please answer yes or no\nStatement: ",
    "\nAnswer:",
)
"""The words before and behind a claim in a question to a critic."""
SCRIPT = {
    "critic": {"Paris is the capital of France.": 0.99},
    "likelihood": {"Paris is the capital of France.": -5.0, "France capital the of is Paris.": -30.0},
    "defaults": {"critic": 0.9, "likelihood": -12.5, "generate": ["alpha", "beta", "gamma"]},
}

FAULTS: dict[str, Reply | str] = {
    "429": (429, {"error": {"message": "slow down"}}, {"Retry-After": "0"}),
    "429 without a time": (429, {}, {}),
    "500": (500, b"<html>sorry</html>", {}),
    "503": (503, {"error": "busy"}, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    "dropped": "drop",
    "cut off": "cut",
    "empty": (200, b"", {}),
    "no JSON": (200, b"<html>welcome</html>", {}),
    "deep JSON": (200, b"[" * 100_000, {}),
    "no choices": (200, {"choices": []}, {}),
    "another shape": (200, {"object": "list", "data": [{"id": "tiny"}]}, {}),
    "a number": (200, 7, {}),
    "no text": (200, {"choices": [{"message": {"content": 7}, "text": 7}]}, {}),
}
"""Faults that are over at the next attempt."""


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    body: dict[str, Any]
    key: str | None
    idempotency_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Faulty:
    """A share of the replies is faulty, of every kind, and one never comes.

    Which depends on the seed, the request, and how often it came, and not on the order in which requests arrive.
    """

    seed: int = 0
    share: float = 0.1
    made: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, number: int, asked: Asked) -> Reply | str | None:
        body = {name: value for name, value in asked.body.items() if name != "model"}  # which may be a path
        name = json.dumps([asked.path, body], sort_keys=True)
        with self._lock:
            self.asked[name] += 1
            stream = random.Random(f"{self.seed} {self.asked[name]} {name}")
            if stream.random() >= self.share:
                self.answered[name] += 1
                return None
            kind = "never" if not self.made["never"] else stream.choice(list(FAULTS))
            self.made[kind] += 1
        return "hang" if kind == "never" else FAULTS[kind]


class Unusable:
    """Spoils every third reply, and adds up what all of them charge."""

    def __init__(self) -> None:
        self.tokens = 0

    def __call__(self, number: int, _: Asked) -> Any:
        def charged(body: Any) -> Any:
            self.tokens += sum(body.get("usage", {}).values())
            return {**body, "choices": []} if number % 3 == 0 else body

        return charged


class Server(ThreadingHTTPServer):
    """Takes a burst of connections, which would be tried again after a second if it did not."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is none of the server's errors."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@dataclass
class FakeServer:
    """Answers chats and completions from a script, or, with `upstream`, as the server of that base URL does.

    `lacks`: abilities that it ignores or refuses: chat, completions, logprobs, echo, n, systemone, tokenize, claims.
    `misbehave` sees the number of a request and the request, and may answer in the server's place: with a reply, with
    the bytes that go over the wire, or with a change to the right reply.
    """

    script: Mapping[str, Any] = field(default_factory=lambda: SCRIPT)
    lacks: frozenset[str] = frozenset({"systemone", "tokenize", "claims"})
    misbehave: Callable[[int, Asked], Reply | Changed | bytes | str | None] = lambda number, asked: None
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0
    upstream: str = ""

    def __post_init__(self) -> None:
        parts = {"generate", *SCRIPT, *self.script}
        self._world = {part: {**SCRIPT.get(part, {}), **self.script.get(part, {})} for part in parts}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._at_once = 0

    def __enter__(self) -> FakeServer:
        self._server = Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    def reply(self, asked: Asked) -> Reply | bytes | str:
        with self._lock:
            self.asked.append(asked)
            number = len(self.asked)
        fault = self.misbehave(number, asked)
        if callable(fault):
            status, body, headers = self.answer(asked)
            return status, fault(body), headers
        return self.answer(asked) if fault is None else fault

    def answer(self, asked: Asked) -> Reply:
        if self.upstream:
            return _forwarded(asked, self.upstream)
        kind = asked.path.removeprefix("/v1/").removeprefix("/")
        answer = {
            "chat/completions": self._completion,
            "completions": self._completion,
            "systemone": self._decision,
            "tokenize": self._tokens,
        }.get(kind)
        ability = "chat" if kind.startswith("chat") else kind
        if answer is None or ability in self.lacks:
            return 404, {"error": {"message": "no such page"}}, {}
        return 200, answer(asked.body, kind.startswith("chat")), {}

    def _completion(self, body: dict[str, Any], is_chat: bool) -> Any:
        prompt = body["messages"][-1]["content"] if is_chat else body["prompt"]
        if body.get("echo") and "echo" not in self.lacks and not is_chat:
            return self._echo(prompt)
        if prompt.startswith(FRAME[0]):
            return self._verdict(body, prompt.removeprefix(FRAME[0]).removesuffix(FRAME[1]), is_chat)
        if "\nStatements:\n1. " in prompt and "claims" not in self.lacks:
            return self._verdicts(body, prompt, is_chat)
        known = self._world["generate"]
        longest = max((part for part in known if part in prompt), key=len, default=None)
        said = self._world["defaults"]["generate"] if longest is None else known[longest]
        text = said if isinstance(said, str) else "\n".join(f"{place}. {value}." for place, value in enumerate(said, 1))
        return self._choices([text], is_chat, prompt)

    def _verdict(self, body: dict[str, Any], claim: str, is_chat: bool) -> Any:
        yes = min(max(self._probability(claim), 1e-9), 1 - 1e-9)
        count = body.get("n", 1) if "n" not in self.lacks else 1
        stream = random.Random(f"{body.get('seed')} {claim}")
        said = [" Yes." if stream.random() < yes else " No." for _ in range(count)]
        reply = self._choices(said, is_chat, claim)
        if body.get("logprobs") and "logprobs" not in self.lacks:
            likeliest = {" yes": math.log(yes), " no": math.log(1 - yes), " maybe": -25.0}
            entries = [{"token": token, "logprob": score} for token, score in likeliest.items()]
            reply["choices"][0]["logprobs"] = (
                {"content": [{"token": " yes", "logprob": likeliest[" yes"], "top_logprobs": entries}]}
                if is_chat
                else {"tokens": [" yes"], "token_logprobs": [likeliest[" yes"]], "top_logprobs": [likeliest]}
            )
        return reply

    def _verdicts(self, body: dict[str, Any], prompt: str, is_chat: bool) -> Any:
        """The verdicts on several claims, in lines with their numbers."""
        listed = prompt.partition("\nStatements:\n")[2].removesuffix(FRAME[1]).splitlines()
        claims = [line.partition(". ")[2] for line in listed]
        samples, content = [], []
        for number in range(body.get("n", 1)):
            stream = random.Random(f"{body.get('seed')} {number} {prompt}")
            said = [stream.random() < self._probability(claim) for claim in claims]
            samples.append("\n".join(f"{place}. {'Yes' if yes else 'No'}" for place, yes in enumerate(said, 1)))
        reply = self._choices(samples, is_chat, prompt)
        if body.get("logprobs") and "logprobs" not in self.lacks:
            for place, claim in enumerate(claims, 1):
                yes = min(max(self._probability(claim), 1e-9), 1 - 1e-9)
                top = [{"token": " Yes", "logprob": math.log(yes)}, {"token": " No", "logprob": math.log(1 - yes)}]
                content += [
                    {"token": str(place), "logprob": 0.0, "top_logprobs": [{"token": str(place), "logprob": 0.0}]},
                    {"token": ".", "logprob": 0.0, "top_logprobs": [{"token": ".", "logprob": 0.0}]},
                    {"token": " Yes", "logprob": math.log(yes), "top_logprobs": top},
                    {"token": "\n", "logprob": 0.0, "top_logprobs": [{"token": "\n", "logprob": 0.0}]},
                ]
            reply["choices"][0]["logprobs"] = {"content": content}
        return reply

    def _echo(self, text: str) -> Any:
        words = text.split(" ")
        tokens = [words[0], *(" " + word for word in words[1:]), " more"]
        offsets = [sum(map(len, tokens[:place])) for place in range(len(tokens))]
        total = self._world["likelihood"].get(text, self._world["defaults"]["likelihood"])
        mean = total / max(1, len(words) - 1)
        reply = self._choices(["".join(tokens)], False, text)
        reply["usage"]["prompt_tokens"] = len(words)
        reply["choices"][0]["logprobs"] = {
            "tokens": tokens,
            "token_logprobs": [None, *[mean] * (len(words) - 1), -1.0],
            "text_offset": offsets,
        }
        return reply

    def _decision(self, body: dict[str, Any], _: bool) -> Any:
        claim = body["state"].removeprefix(FRAME[0]).removesuffix(FRAME[1])
        holds = {"type": "noul", "noul": self._probability(claim)}
        return {"answers": {"holds": holds}, "usage": {"input_tokens": 9}}

    def _probability(self, claim: str) -> float:
        return float(self._world["critic"].get(claim, self._world["defaults"]["critic"]))

    def _tokens(self, body: dict[str, Any], _: bool) -> Any:
        return {"tokens": [ord(letter) for letter in body["prompt"]]}

    def _choices(self, texts: list[str], is_chat: bool, prompt: str) -> Any:
        choices = [
            {"index": place, **({"message": {"content": text}} if is_chat else {"text": text}), "finish_reason": "stop"}
            for place, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": sum(len(text.split()) for text in texts)}
        return {"model": "tiny", "choices": choices, "usage": usage}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name that http.server calls
                with fake._lock:
                    fake._at_once += 1
                    fake.most_at_once = max(fake.most_at_once, fake._at_once)
                content = self.rfile.read(int(self.headers["Content-Length"]))
                asked = Asked(
                    self.path,
                    json.loads(content),
                    self.headers["Authorization"],
                    self.headers["Idempotency-Key"],
                    {name.lower(): value for name, value in self.headers.items()},
                )
                answer = fake.reply(asked)
                with fake._lock:
                    fake._at_once -= 1
                if isinstance(answer, bytes) or answer in UNFINISHED:
                    _left_unfinished(self, answer, fake._over)
                    return
                status, body, headers = ("cut", b"", {}) if isinstance(answer, str) else answer
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(200 if answer == "cut" else status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if answer == "cut":
                    text = b'{"choices": [{"te'
                self.send_header("Content-Length", str(len(text) + (50 if answer == "cut" else 0)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


UNFINISHED = ("hang", "drop", "reset", "drip")


def _left_unfinished(handler: BaseHTTPRequestHandler, answer: object, over: threading.Event) -> None:
    """Not a reply: bytes of another kind, or none, or the beginning of some and a break, or far too few."""
    if isinstance(answer, bytes):
        handler.wfile.write(answer)
    elif answer == "hang":
        over.wait(60)
    elif answer == "reset":
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
        handler.connection.close()
    elif answer == "drip":
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        while not over.wait(0.02):
            handler.wfile.write(b" ")


def _forwarded(asked: Asked, upstream: str) -> Reply:
    """The reply of the other server to the request."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(urljoin(upstream, asked.path), json.dumps(asked.body).encode(), headers)  # noqa: S310  # loopback
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            return response.status, response.read(), {}
    except urllib.error.HTTPError as fault:
        return fault.code, fault.read(), {}


# Batches

NOWHERE = "http://127.0.0.1:9/v1"
"""Nothing listens there, so whatever is sent fails."""


def queue_files(queue: Path) -> list[Path]:
    """The files of an offline queue that hold requests."""
    numbered = sorted(queue.parent.glob(f"{queue.stem}-*{queue.suffix}"))
    return [file for file in (queue, *numbered) if file.read_text("utf-8")]


def answered(queue: Path, results: Path, fake: FakeServer) -> list[dict[str, Any]]:
    """Answers a queue as a batch service does, in another order, and gives its requests."""
    requests = [json.loads(line) for file in queue_files(queue) for line in file.read_text("utf-8").splitlines()]
    lines = []
    for request in reversed(requests):
        status, body, _ = fake.reply(Asked(request["url"], request["body"], None))
        response = {"status_code": status, "request_id": "r", "body": body}
        lines.append({"id": "b", "custom_id": request["custom_id"], "response": response, "error": None})
    results.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return requests
