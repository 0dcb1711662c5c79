"""A search on a server with a latency, beside plain requests; and that server, an OpenAI-compatible simulated model.

    python -m benchmarks.server --latency 0.2

It answers chats, and completions that echo a text. It prints its base URL and answers until it is stopped. A request
takes the latency from arrival to reply, including the time of the model itself.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hapax
from benchmarks.measuring import Figure, Size, seconds_of, summarised
from benchmarks.search import RULES, chosen
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
)
from hapax.llm_oracle.questions.prompts import (
    critic_batch_prompt,
    critic_prompt,
    exclusion_clause,
    knowledge_prompt,
    stated_claim,
)
from hapax.llm_oracle.reading.link_replies import without_numbering
from hapax.llm_oracle.scripts.simulated import SimulatedModel, SimulatedWorld
from hapax.llm_oracle.servers.openai_abilities import KNOWN_UNLIKELY

MODEL = "simulated"

LATENCY, IN_FLIGHT = 0.2, 32
"""Seconds of a request, and how many a client has under way at most."""

_ASKED = critic_prompt("").partition("Statement: ")[0]
_ASKED_TOGETHER, _LISTED, _ = critic_batch_prompt(()).partition("Statements:\n")
_SENTENCE = re.compile(r"^\d+\. (.*___.*) \(___: an? (.+)\)$", re.MULTILINE)
"""A numbered sentence of a `lists_prompt`."""
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
    """Serves the model."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, model: ExclusionReader, latency: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model, self.latency = model, latency
        self.usages: list[Mapping[str, int]] = []
        """What each request used, in tokens of bytes / 4.2."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: SimulatedServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:  # the name that http.server calls
        due = time.monotonic() + self.server.latency
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = reply_to(self.server.model, self.path, body)
        time.sleep(max(0.0, due - time.monotonic()))
        if reply is None:
            self._send(404, {"error": {"message": "no such page"}})
        else:
            self.server.usages.append(reply["usage"])
            self._send(200, reply)

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
        return _verdicts(model, prompt, [stated_claim(prompt)], numbered=False)
    if (listed := prompt.partition(_LISTED)[2]) and prompt.startswith(_ASKED_TOGETHER):
        claims = [line.partition(". ")[2] for line in listed.splitlines()[:-1]]
        return _verdicts(model, prompt, claims, numbered=True)
    parameters = GenerationParameters(body.get("temperature", 1.0), seed=body.get("seed", 0))
    said = _said(model, prompt, parameters, has_schema="response_format" in body)
    return _reply({"message": {"content": said}}, tokens(prompt), tokens(said))


def _said(model: ExclusionReader, prompt: str, parameters: GenerationParameters, *, has_schema: bool) -> str:
    """The model's lists: one, or under a schema one for each sentence of a prompt."""
    sentences = _SENTENCE.findall(prompt) if has_schema else []
    if not sentences:
        (generation,) = model.generate([GenerationRequest(prompt)], parameters)
        return json.dumps({"values": _items(generation)}) if has_schema else generation.text
    requests = []
    for sentence, data_type in sentences:
        requests.append(GenerationRequest(knowledge_prompt("V", sentence.replace("___", "[V]"), data_type)))
    lists = []
    for number, generation in enumerate(model.generate(requests, parameters), 1):
        lists.append({"number": number, "values": _items(generation)})
    return json.dumps({"lists": lists})


def _items(generation: Generation) -> list[str]:
    return [without_numbering(line).removesuffix(".") for line in generation.text.splitlines()]


def tokens(text: str) -> int:
    """Tokens of a text, as many models cut it."""
    return max(1, round(len(text.encode()) / 4.2))


def _verdicts(model: ExclusionReader, prompt: str, claims: Sequence[str], *, numbered: bool) -> Any:
    """Yes or no to each claim with its log-probabilities, in numbered lines if there may be several."""
    lines: list[str] = []
    content: list[Mapping[str, Any]] = []
    for number, score in enumerate(model.probabilities(claims), 1):
        yes = min(max(score.probability, 1e-9), 1 - 1e-9)
        likeliest = [{"token": "yes", "logprob": math.log(yes)}, {"token": "no", "logprob": math.log1p(-yes)}]
        before = f"{number}. " if numbered else ""
        lines.append(f"{before}{'yes' if yes >= 0.5 else 'no'}")
        if numbered:
            content.append({"token": before, "top_logprobs": []})
        content += [{**likeliest[0], "top_logprobs": likeliest}, {"token": "\n", "top_logprobs": []}]
    said = "\n".join(lines)
    return _reply({"message": {"content": said}, "logprobs": {"content": content}}, tokens(prompt), tokens(said))


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
    return _reply({"text": text, "logprobs": logprobs}, len(words), 0)  # a client finds the prompt's end by them


def _reply(choice: Mapping[str, Any], prompt_tokens: int, completion_tokens: int) -> Any:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return {"model": MODEL, "choices": [{"index": 0, "finish_reason": "stop", **choice}], "usage": usage}


# --- the benchmark ----------------------------------------------------------------------------------------------------


@contextmanager
def served(latency: float) -> Iterator[str]:
    """The base URL of a server in a new process, which shares no interpreter with its client."""
    command = [sys.executable, "-m", "benchmarks.server", "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101  it was asked for
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def figures(size: Size) -> Iterator[Figure]:
    """Time by the clock and processor time of a search on the server, beside as many plain requests."""
    rules, beam, latency = size.pick(1, 2, 32), size.pick(2, 10, 200), size.pick(0.01, LATENCY, LATENCY)
    library = hapax.load_rules(*RULES)
    names, settings = chosen(library, rules), hapax.SearchSettings(beam=beam)
    clock: dict[str, list[float]] = {"hapax": [], "http.client": []}
    processor: dict[str, list[float]] = {"hapax": [], "http.client": []}

    def measure(name: str, task: Callable[[], object]) -> None:
        began = time.perf_counter()
        processor[name].append(seconds_of(task))
        clock[name].append(time.perf_counter() - began)

    with served(latency) as url:
        for _ in range(size.turns):
            with tempfile.TemporaryDirectory() as folder, hapax.KnowledgeBase(Path(folder) / "search.db") as kb:
                models = opened(url, library, Path(folder))
                measure("hapax", partial(hapax.search, library, kb, models, settings, only=names))
                calls = kb.counts()["calls"]
            measure("http.client", partial(plain_requests, url, calls))
    work = f"search on a server, {rules} rules, {calls:,} calls of {latency} s"
    yield from summarised(f"{work}, by the clock", "s", clock, {})
    yield from summarised(f"{work}, processor time", "s", processor, {})


def opened(url: str, library: hapax.Library, folder: Path, **options: Any) -> hapax.Models:
    """The model on the server in all roles. `options`: further ones of `open_models`."""
    aliases = folder / "aliases.yaml"
    alias = {"model_id": MODEL, "model_name": MODEL, "api_base": url, "max_concurrency": IN_FLIGHT}
    aliases.write_text(json.dumps([alias]), "utf-8")  # JSON is YAML
    return hapax.open_models(f"openai:{MODEL}", library=library, aliases=aliases, **options)


def plain_requests(url: str, count: int) -> None:
    """So many chats, with as many under way at a time as the search may have."""
    address = urlsplit(url)
    message = {"role": "user", "content": critic_prompt("Rice is in risotto.")}
    body = json.dumps({"model": MODEL, "messages": [message]})

    def share(requests: int) -> None:
        with closing(HTTPConnection(address.hostname or "", address.port)) as connection:
            for _ in range(requests):
                connection.request("POST", f"{address.path}/chat/completions", body)
                connection.getresponse().read()

    with ThreadPoolExecutor(IN_FLIGHT) as threads:
        list(threads.map(share, [len(range(first, count, IN_FLIGHT)) for first in range(IN_FLIGHT)]))


def simulated_server(library: hapax.Library, world: int, latency: float) -> SimulatedServer:
    """A server of the simulated model that knows the world of this seed."""
    return SimulatedServer(ExclusionReader(SimulatedModel(SimulatedWorld(library, world))), latency)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", help="rule files and folders (default: all that come with Hapax)")
    parser.add_argument("--world", type=int, default=1, help="seed of the simulated world (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=LATENCY, help="seconds of a request (default: %(default)s)")
    options = parser.parse_args(arguments)
    library = hapax.load_rules(*(options.paths or RULES))
    with simulated_server(library, options.world, options.latency) as server:
        print(server.url, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
