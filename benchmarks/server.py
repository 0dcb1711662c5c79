"""A search on a server with a latency, beside plain requests and other ways to ask; and that server, a simulated model.

    python -m benchmarks.server --latency 0.2

It answers chats as OpenAI-compatible servers do. It prints its base URL and answers until it is stopped. A request
takes the latency from arrival to reply, including the time of the model itself.
"""

from __future__ import annotations

import argparse
import json
import math
import random
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
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import hapax
from benchmarks.measuring import ROOT, Figure, Size, Turn, compared, seconds_of
from benchmarks.search import RULES, chosen
from hapax.grammar.terms import Value
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.questions.prompts import (
    critic_batch_prompt,
    critic_prompt,
    exclusion_clause,
    knowledge_prompt,
    stated_claim,
)
from hapax.llm_oracle.reading.link_replies import without_numbering
from hapax.llm_oracle.scripts.simulated import SimulatedModel, SimulatedWorld

MODEL = "simulated"
ALLERGY = ROOT / "examples" / "allergy" / "my.rules"
WORLD = 7

TRUE_JUDGED_TRUE, FALSE_JUDGED_TRUE, KNOWN = 0.95, 0.03, 0.75
"""Of the naive way's model: how often its critic says yes, and how often it knows a value that fits."""

ROW_TOKENS, FACT_TOKENS, QUESTION_TOKENS = 22, 13, 120

LATENCY, IN_FLIGHT = 0.2, 32
"""Seconds of a request, and how many a client has under way at most."""

_ASKED = critic_prompt("").partition("Statement: ")[0]
_ASKED_TOGETHER, _LISTED, _ = critic_batch_prompt(()).partition("Statements:\n")
_SENTENCE = re.compile(r"^\d+\. (.*___.*) \(___: an? (.+)\)$", re.MULTILINE)
"""A numbered sentence of a `lists_prompt`."""
_EXCLUDED = exclusion_clause(("{}",)).partition("{}")[0]

Reply = Mapping[str, Any]


class SimulatedServer(ThreadingHTTPServer):
    """Serves the model. `usages`: what each request used, in tokens of 4.2 bytes."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, model: SimulatedModel, latency: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model, self.latency = model, latency
        self.usages: list[Mapping[str, int]] = []

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
        reply: dict[str, Any] = {"error": {"message": "no such page"}}
        if is_chat := self.path == "/v1/chat/completions":
            reply = chat_reply(self.server.model, body)
            self.server.usages.append(reply["usage"])
        text = json.dumps(reply).encode()
        time.sleep(max(0.0, due - time.monotonic()))
        self.send_response(200 if is_chat else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print nothing; a line for each request would be most of the output."""


def chat_reply(model: SimulatedModel, body: Reply) -> dict[str, Any]:
    """The reply to a chat: verdicts with their log-probabilities, or lists of values."""
    prompt: str = body["messages"][0]["content"]
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if prompt.startswith(_ASKED):
        said, choice["logprobs"] = _verdicts(model, [stated_claim(prompt)], numbered=False)
    elif (listed := prompt.partition(_LISTED)[2]) and prompt.startswith(_ASKED_TOGETHER):
        claims = [line.partition(". ")[2] for line in listed.splitlines()[:-1]]
        said, choice["logprobs"] = _verdicts(model, claims, numbered=True)
    else:
        parameters = GenerationParameters(body.get("temperature", 1.0), seed=body.get("seed", 0))
        said = _lists(model, prompt, parameters, has_schema="response_format" in body)
    usage = {"prompt_tokens": _tokens(prompt), "completion_tokens": _tokens(said)}
    return {"model": MODEL, "choices": [{**choice, "message": {"content": said}}], "usage": usage}


def _lists(model: SimulatedModel, prompt: str, parameters: GenerationParameters, *, has_schema: bool) -> str:
    """The model's lists: one, or under a schema one for each sentence of a prompt."""
    if not has_schema:
        return model.generate([_request(prompt)], parameters)[0].text
    prompts = []
    for sentence, data_type in _SENTENCE.findall(prompt):
        prompts.append(knowledge_prompt("V", sentence.replace("___", "[V]"), data_type))
    lists: list[list[str]] = []
    for generation in model.generate([_request(asked) for asked in prompts or [prompt]], parameters):
        lists.append([without_numbering(line).removesuffix(".") for line in generation.text.splitlines()])
    if not prompts:
        return json.dumps({"values": lists[0]})
    return json.dumps({"lists": [{"number": number, "values": values} for number, values in enumerate(lists, 1)]})


def _request(prompt: str) -> GenerationRequest:
    """The request, with the values that the prompt's exclusion clauses name excluded."""
    asked, *clauses = prompt.split(_EXCLUDED)
    return GenerationRequest(asked, tuple(name for clause in clauses for name in clause.removesuffix(".").split(", ")))


def _verdicts(model: SimulatedModel, claims: Sequence[str], *, numbered: bool) -> tuple[str, Reply]:
    """Yes or no to each claim with its log-probabilities, in numbered lines if there may be several."""
    lines: list[str] = []
    content: list[Reply] = []
    for number, score in enumerate(model.probabilities(claims), 1):
        yes = min(max(score.probability, 1e-9), 1 - 1e-9)
        likeliest = [{"token": "yes", "logprob": math.log(yes)}, {"token": "no", "logprob": math.log1p(-yes)}]
        before = f"{number}. " if numbered else ""
        lines.append(f"{before}{'yes' if yes >= 0.5 else 'no'}")
        if numbered:
            content.append({"token": before, "top_logprobs": []})
        content += [{**likeliest[0], "top_logprobs": likeliest}, {"token": "\n", "top_logprobs": []}]
    return "\n".join(lines), {"content": content}


def _tokens(text: str) -> int:
    """Tokens of a text, as many models cut it."""
    return max(1, round(len(text.encode()) / 4.2))


@contextmanager
def simulated_server(library: hapax.Library, world: int, latency: float) -> Iterator[SimulatedServer]:
    """A server in this process, of the simulated model that knows the world of this seed."""
    with SimulatedServer(SimulatedModel(SimulatedWorld(library, world)), latency) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


# --- the benchmark ----------------------------------------------------------------------------------------------------


def figures(size: Size) -> Iterator[Figure]:
    """Time by the clock and processor time of a search beside as many plain requests, and the cost of a statement."""
    rules, beam, latency = size.pick(1, 2, 32), size.pick(2, 10, 200), size.pick(0.01, LATENCY, LATENCY)
    library = hapax.load_rules(*RULES)
    names, settings = chosen(library, rules), hapax.SearchSettings(beam=beam)
    calls: list[int] = []

    def timed(task: Callable[[], object]) -> Turn:
        began = time.perf_counter()
        processor = seconds_of(task)
        return Turn({"s": processor, "s by the clock": time.perf_counter() - began})

    def search(url: str) -> Turn:
        with tempfile.TemporaryDirectory() as folder, hapax.KnowledgeBase(Path(folder) / "search.db") as kb:
            turn = timed(partial(hapax.search, library, kb, opened(url, library, Path(folder)), settings, only=names))
            calls.append(kb.counts()["calls"])
        return turn

    with served(latency) as url:
        ways = {
            "hapax": lambda: search(url),
            "http.client": lambda: timed(lambda: plain_requests(url, calls[-1])),
        }
        found = compared(f"search on a server, {rules} rules, requests of {latency} s", ways, size)
    yield from found
    beam = size.pick(4, 50, 200)
    yield from billed("hapax", hapax.SearchSettings(beam=beam), {"calls": 0.6, "tokens in": 100, "tokens out": 30})
    yield from billed("LINK's schedule", hapax.SearchSettings(beam=beam, compat="released"), {})
    yield from naive(size.pick(2, 20, 100))


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


def opened(url: str, library: hapax.Library, folder: Path) -> hapax.Models:
    """The model on the server proposes and judges; word frequency ranks."""
    aliases = folder / "aliases.yaml"
    alias = {"model_id": MODEL, "model_name": MODEL, "api_base": url, "max_concurrency": IN_FLIGHT}
    aliases.write_text(json.dumps([alias]), "utf-8")  # JSON is YAML
    return hapax.open_models(f"openai:{MODEL}", library=library, aliases=aliases, likelihood="frequency")


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


def billed(way: str, settings: hapax.SearchSettings, targets: Mapping[str, float]) -> Iterator[Figure]:
    """Calls and tokens for each true statement, as the server counts them. Nothing here depends on the machine."""
    library = hapax.load_rules(ALLERGY)
    world = SimulatedWorld(library, WORLD)
    true = stored = 0
    with (
        simulated_server(library, WORLD, 0.0) as server,
        tempfile.TemporaryDirectory() as folder,
        hapax.KnowledgeBase(Path(folder) / "search.db") as kb,
    ):
        hapax.search(library, kb, opened(server.url, library, Path(folder)), settings)
        for statement in kb.statements():
            rule, values = library.rule(statement.rule), dict(statement.substitution)
            known = [item.atom for item in rule.literals if not rule.is_information(item)]
            stored += 1
            true += all(world.holds(atom.indicator, [values[term.name] for term in atom.variables]) for atom in known)
        tokens_in, tokens_out = (
            sum(usage[name] for usage in server.usages) for name in ("prompt_tokens", "completion_tokens")
        )
    yield from bill(way, (len(server.usages), tokens_in, tokens_out), true, stored, targets)


def bill(
    way: str, used: tuple[int, int, int], true: int, stored: int, targets: Mapping[str, float]
) -> Iterator[Figure]:
    """Calls, tokens in and tokens out for each true statement."""
    note = f"{true:,} of {stored:,} statements are true"
    for unit, count in zip(("calls", "tokens in", "tokens out"), used, strict=True):
        value = count / true if true else None
        yield Figure("a true statement", way, unit, value, target=targets.get(unit), note=note)


def naive(rounds: int) -> Iterator[Figure]:
    """Rows of three values, asked for fifty at a time without the newest ones, and all new facts judged in one call.

    The model has the rates of errors of the simulated one, and leans to the head.
    """
    world, rng = SimulatedWorld(hapax.load_rules(ALLERGY), WORLD), random.Random(1)  # noqa: S311  a sample, no secret
    ingredients, allergens, dishes = map(world.entities, ("Ingredient", "Food Allergen", "Dish"))
    calls = tokens_in = tokens_out = stored = true = 0
    seen: set[tuple[Value, ...]] = set()
    judged: dict[tuple[str, Value, Value], bool] = {}

    def chosen(values: Sequence[Value]) -> Value:
        return rng.choices(values, [1 / place for place in range(1, len(values) + 1)])[0]

    def fitting(indicator: str, first: Value, values: Sequence[Value]) -> Value:
        good = [value for value in values if world.holds(indicator, (first, value))]
        return chosen(good) if good and rng.random() < KNOWN else chosen(values)

    for _ in range(rounds):
        rows = []
        for _ in range(50):
            ingredient = chosen(ingredients)
            allergen = fitting("is_one_type_of/2", ingredient, allergens)
            rows.append((ingredient, allergen, fitting("is_ingredient_in/2", ingredient, dishes)))
        tokens_in += QUESTION_TOKENS + min(stored, 50) * ROW_TOKENS
        tokens_out += 50 * ROW_TOKENS
        premises = {}
        for row in (row for row in dict.fromkeys(rows) if row not in seen):
            premises[row] = (("is_one_type_of/2", row[0], row[1]), ("is_ingredient_in/2", row[0], row[2]))
        seen.update(premises)
        facts = [fact for fact in dict.fromkeys(chain.from_iterable(premises.values())) if fact not in judged]
        calls += 2 if facts else 1
        tokens_in += QUESTION_TOKENS // 2 + len(facts) * FACT_TOKENS if facts else 0
        tokens_out += len(facts) * 3
        for fact in facts:
            judged[fact] = rng.random() < (TRUE_JUDGED_TRUE if world.holds(fact[0], fact[1:]) else FALSE_JUDGED_TRUE)
        for premise in premises.values():
            if all(judged[fact] for fact in premise):
                stored += 1
                true += all(world.holds(fact[0], fact[1:]) for fact in premise)
    yield from bill("naive prompting", (calls, tokens_in, tokens_out), true, stored, {})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--latency", type=float, default=LATENCY, help="seconds of a request (default: %(default)s)")
    latency = parser.parse_args().latency
    with SimulatedServer(SimulatedModel(SimulatedWorld(hapax.load_rules(*RULES), 1)), latency) as server:
        print(server.url, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
