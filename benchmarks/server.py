"""The simulated model as an OpenAI-compatible server with a latency: chats, and completions that echo a text.

    python -m benchmarks.server --latency 0.2

It prints its base URL and answers until it is stopped. A request takes the latency from arrival to reply, including the
time of the model itself.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.common import chosen_rules, simulated
from hapax.llm_oracle.backends.openai_probing import KNOWN_UNLIKELY
from hapax.llm_oracle.prompts import critic_prompt, exclusion_clause, stated_claim
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
)
from hapax.llm_oracle.simulated import SimulatedModel

MODEL = "simulated"

_ASKED = critic_prompt("").partition("Statement: ")[0]
_EXCLUDED = exclusion_clause(("{}",)).partition("{}")[0]


class ExclusionReader:
    """The simulated model, excluding also the values that the text of a prompt excludes."""

    def __init__(self, model: SimulatedModel) -> None:
        self.identity: ModelIdentity = model.identity
        self._model = model

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return self._model.generate([_with_exclusions(request) for request in requests], parameters)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return self._model.probabilities(claims)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self._model.log_likelihoods(texts)


def _with_exclusions(request: GenerationRequest) -> GenerationRequest:
    """The request with the exclusion clauses of its prompt as excluded values."""
    prompt, *clauses = request.prompt.split(_EXCLUDED)
    named: list[str] = []
    for clause in clauses:
        named += clause.removesuffix(".").split(", ")
    return GenerationRequest(prompt, (*request.excluded_values, *named), sample_index=request.sample_index)


class SimulatedServer(ThreadingHTTPServer):
    """Serves the model. `asked` and `most_at_once` count requests; `busy_seconds` is their total duration."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, model: ExclusionReader, latency: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model, self.latency = model, latency
        self.asked = self.most_at_once = self._at_once = 0
        self.busy_seconds = 0.0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and reply, after the latency."""
        begun = time.monotonic()
        due = begun + self.latency
        with self._lock:
            self.asked += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = reply_to(self.model, path, body)
            time.sleep(max(0.0, due - time.monotonic()))
        finally:
            with self._lock:
                self._at_once -= 1
                self.busy_seconds += time.monotonic() - begun
        return (404, {"error": {"message": "no such page"}}) if reply is None else (200, reply)


class _Handler(BaseHTTPRequestHandler):
    server: SimulatedServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:  # the name that http.server calls
        server = self.server
        counted = {"asked": server.asked, "most_at_once": server.most_at_once, "busy_seconds": server.busy_seconds}
        self._send(200, counted)

    def do_POST(self) -> None:  # the same
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self._send(*self.server.answer(self.path, json.loads(content)))

    def _send(self, status: int, reply: Any) -> None:
        text = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print nothing; a line for each request would be most of the output."""


def reply_to(model: ExclusionReader, path: str, body: Mapping[str, Any]) -> Any:
    """The reply to a chat, or to a completion that only echoes; None for any other request."""
    if path == "/v1/completions" and body.get("echo"):
        return _echo(model, body["prompt"])
    if path != "/v1/chat/completions":
        return None
    prompt: str = body["messages"][0]["content"]
    if prompt.startswith(_ASKED):
        return _verdict(model, stated_claim(prompt))
    parameters = GenerationParameters(body.get("temperature", 1.0), seed=body.get("seed", 0))
    (generation,) = model.generate([GenerationRequest(prompt)], parameters)
    usage = generation.usage
    return _reply({"message": {"content": generation.text}}, usage.prompt_tokens, usage.completion_tokens)


def _verdict(model: ExclusionReader, claim: str) -> Any:
    (score,) = model.probabilities([claim])
    yes = min(max(score.probability, 1e-9), 1 - 1e-9)
    likeliest = [{"token": "yes", "logprob": math.log(yes)}, {"token": "no", "logprob": math.log1p(-yes)}]
    content = [{**likeliest[0], "top_logprobs": likeliest}]
    said = {"message": {"content": "yes" if yes >= 0.5 else "no"}, "logprobs": {"content": content}}
    return _reply(said, score.usage.prompt_tokens, 1)


def _echo(model: ExclusionReader, text: str) -> Any:
    """The words of the text with the model's total spread over them evenly."""
    (score,) = model.log_likelihoods([text])
    words = text.split(" ")
    tokens = [words[0], *(f" {word}" for word in words[1:])]
    # A client probes with a text in disorder, which must score less than the same text in order.
    total = score.total * (2 if text == KNOWN_UNLIKELY else 1)
    per_word = total / max(1, len(words) - 1)
    logprobs = {
        "tokens": tokens,
        "token_logprobs": [None, *[per_word] * (len(words) - 1)],
        "text_offset": [sum(map(len, tokens[:place])) for place in range(len(tokens))],
    }
    return _reply({"text": text, "logprobs": logprobs}, len(words), 0)


def _reply(choice: Mapping[str, Any], prompt_tokens: int, completion_tokens: int) -> Any:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return {"model": MODEL, "choices": [{"index": 0, "finish_reason": "stop", **choice}], "usage": usage}


@contextmanager
def served(paths: Sequence[Path], world: int, latency: float) -> Iterator[str]:
    """The base URL of a server in a new process, which shares no interpreter with its client."""
    command = [sys.executable, "-m", "benchmarks.server", *map(str, paths)]
    options = ["--world", str(world), "--latency", str(latency)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101  # it was asked for
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def counts(url: str) -> dict[str, Any]:
    """The number of requests to a server, the most at once, and their total duration in seconds."""
    with urlopen(url) as reply:  # noqa: S310  # our own address
        found: dict[str, Any] = json.load(reply)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="rule files and folders (default: rules/library)")
    parser.add_argument("--world", type=int, default=1, help="seed of the simulated world (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of a request (default: %(default)s)")
    options = parser.parse_args(arguments)
    library, _ = chosen_rules(options.paths)
    with SimulatedServer(ExclusionReader(simulated(library, options.world)), options.latency) as server:
        print(server.url, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
