"""Servers that answer strangely: nothing is made up, nothing is paid twice, and one bad question stops no other."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from click.testing import Result
from money_fixture import WORLD
from openai_fake import FAULTS, Asked, Changed, FakeServer, Reply
from served import flat, found, is_judging, models_file, prompt_of, search

import hapax

NOTHING = {"choices": [{"message": {"content": None}}]}
CALL = {"id": "t", "type": "function", "function": {"name": "web_search", "arguments": "{}"}}
BAD: dict[str, Reply] = {
    "content: null": (200, NOTHING, {}),  # as vLLM, where a parser takes the whole text for a thought
    "choices: []": (200, {"choices": []}, {}),  # as Azure and OpenRouter, where a filter took the answer
    "a tool call": (200, {"choices": [{"message": {"content": None, "tool_calls": [CALL]}}]}, {}),
    "an error with status 200": (200, {"error": {"message": "Provider returned error", "code": 502}}, {}),
    "an error as a text": (200, {"choices": [{"message": {"content": "The model is currently overloaded"}}]}, {}),
    "a page as a text": (200, {"choices": [{"message": {"content": "<!doctype html><title>Sign in</title>"}}]}, {}),
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


@pytest.mark.parametrize("said", ["Service unavailable\nRate limit exceeded", "1. Rate limit exceeded."])
def test_a_list_of_the_words_of_failing_servers_is_a_list(said: str, tmp_path: Path) -> None:
    """Values are read whatever they say: only a sentence that stands alone is a server's own."""
    reply = (200, {"choices": [{"message": {"content": said}}]}, {})
    with FakeServer(WORLD, misbehave=about("'The Gambia uses the [B]", reply)) as fake:
        result = asked_of(tmp_path, fake)

    assert result.exit_code == 0, result.output
    assert "without a usable reply" not in flat(result)
    assert not without_answer(tmp_path)


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


Fault = Reply | Changed | bytes | str

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def each_choice(change: Callable[[dict[str, Any]], object]) -> Changed:
    def changed(body: Any) -> Any:
        for choice in body.get("choices", []):
            change(choice)
        return body

    return changed


def with_scores(score: float) -> Changed:
    """Every log-probability is this one."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: score if name == "logprob" else spoilt(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [score if type(inner) is float else spoilt(inner) for inner in value]
        return value

    return each_choice(lambda choice: choice.update(logprobs=spoilt(choice["logprobs"])) if "logprobs" in choice else 0)


def with_decoy(body: Any) -> Any:
    """A second choice that nobody asked for, sent before the first."""
    choice = {"message": {"content": "1. nowhere."}, "text": "nowhere", "finish_reason": "stop", "index": 1}
    return {**body, "choices": [choice, *body["choices"]]} if "choices" in body else body


OVER_SOON: dict[str, Fault] = {
    **{name: fault for name, fault in FAULTS.items() if name != "no text"},
    "408": (408, {}, {}),
    "409": (409, {}, {}),
    "425": (425, {}, {}),
    "502": (502, b"<html><h1>Bad Gateway</h1></html>", {"Content-Type": "text/html"}),
    "504": (504, b"", {}),
    "529": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, {}),
    "429 until a date that is past": (429, {}, {"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}),
    "429 with a time that is none": (429, {}, {"Retry-After": "soon"}),
    "429 with a negative time": (429, {}, {"Retry-After": "-5"}),
    "429 for nan seconds": (429, {}, {"Retry-After": "nan"}),
    "no reply in time": "hang",
    "a reply that drips": "drip",
    "reset within the body": "reset",
    "plain garbage": b"\x00\xff garbage\r\n\r\n",
    "garbage of TLS": b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "broken chunks": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "chunks that end early": OK + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"choices"',
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    "gzip that is none": (200, b"not gzip at all", {"Content-Encoding": "gzip"}),
    "a gzip bomb": (200, gzip.compress(b" " * 20_000_000), {"Content-Encoding": "gzip"}),
    "an endless reply": (200, b" " * 20_000_000, {}),
    "a list": (200, [], {}),
    "null": (200, None, {}),
    "UTF-16": (200, json.dumps({"choices": []}).encode("utf-16"), {}),
    "a reply in Latin-1": (200, b'{"choices": [{"text": "\xe9"}]}', {}),
    "an error with status 200": (200, {"error": {"message": "try again", "code": 500}}, {}),
    "no choice of several": lambda body: {**body, "choices": []},
}
"""Faults that are over at the next attempt."""

HARMLESS: dict[str, Fault] = {
    "choices out of order": with_decoy,
    "another model's name": lambda body: {**body, "model": "another"},
    "absurd counts of tokens": lambda body: {**body, "usage": {**body.get("usage", {}), "completion_tokens": -7}},
    "fields nobody knows": lambda body: {**body, "choices ": None, "x": [[[[]]]]},
    "a header twice": (429, {}, {"Retry-After": "0", "retry-after": "0"}),
}
"""Faults that change no answer."""

LACKING: dict[str, Fault] = {
    "nan": with_scores(math.nan),
    "infinite": with_scores(-math.inf),
    "positive": with_scores(2.5),
    "no text": FAULTS["no text"],
    "choices that are none": (200, {"choices": [None]}, {}),
}
"""Faults by which a probe decides that the server lacks a feature; after a success they are over at the next attempt."""

FINAL: dict[str, Fault] = {
    "401": (401, {"error": {"message": "invalid key"}}, {}),
    "402": (402, {}, {}),
    "403": (403, {}, {}),
    "a quota that is spent": (429, {"error": {"code": "insufficient_quota", "message": "no money"}}, {}),
    "429 for a year": (429, {}, {"Retry-After": "31536000"}),
    "429 until a date far off": (429, {}, {"Retry-After": "Fri, 31 Dec 2999 23:59:59 GMT"}),
    "501": (501, {}, {}),
    "a redirection": (302, b"", {"Location": "http://127.0.0.1:9/"}),
}
"""Faults that no further attempt would mend."""

STRIDE = 16
"""A normal run refuses one request of so many."""


@dataclass
class InTurn:
    """Each request that is no probe, or with `probes` any, meets the next of these faults at its first attempt."""

    faults: list[Fault]
    probes: bool = True
    met: dict[str, Fault] = field(default_factory=dict)

    def __call__(self, number: int, asked: Asked) -> Fault | None:
        name = json.dumps([asked.path, asked.body], sort_keys=True)
        if name in self.met or (is_probe(asked) and not self.probes):
            return None
        self.met[name] = self.faults[len(self.met) % len(self.faults)]
        return self.met[name]


def is_probe(asked: Asked) -> bool:
    """True for a question of which the answer only shows what the server can do."""
    return not re.search("is a city in (?!Japan)|uses the", prompt_of(asked))


def ask(fake: FakeServer, folder: Path, *more: str, **fields: Any) -> Result:
    """A search that asks the server for lists, judgements and scores."""
    aliases = models_file(folder, fake, revision="1", **fields)
    options = (*more, "--evaluator", "openai:small", "--aliases", aliases, "--profile", "hapax", "--calls", "1")
    return search(folder, "openai:small", *options)


def answers(folder: Path) -> set[tuple[str, str]]:
    """Requests and responses of the journal, without probes; none where there is no knowledge base."""
    if not (folder / "kb.db").exists():
        return set()
    with hapax.KnowledgeBase(folder / "kb.db", read_only=True) as kb:
        calls = [call for call in kb.calls().values() if call.role != "probe"]
    return {(json.dumps(dict(call.request), sort_keys=True), json.dumps(dict(call.response))) for call in calls}


@dataclass
class Chaos:
    """Most requests meet up to three faults, drawn by seed, and then an answer; few meet one that ends the run."""

    seed: int
    met: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    """Requests that count in `--max-calls`."""

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.share = self.draw.choice([0.3, 0.6, 0.9])

    def __call__(self, number: int, asked: Asked) -> Fault | None:
        name = json.dumps([asked.path, asked.body], sort_keys=True)
        faults = OVER_SOON | HARMLESS if self.draw.random() < 0.97 else FINAL
        fault = self.draw.choice([*faults.values()])
        if self.met[name] == 3 or self.draw.random() > self.share or (faults is FINAL and is_probe(asked)):
            fault = None
        self.met[name] += fault is not None
        self.counted += not (isinstance(fault, tuple) and fault[0] == 429)
        return fault


Good = tuple[set[tuple[str, str]], list[Asked], Any]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Good:
    """The answers without a fault, and the requests."""
    folder = tmp_path_factory.mktemp("good")
    with FakeServer(WORLD) as fake:
        ended = ask(fake, folder)
        assert ended.exit_code == 0, ended.output
        return answers(folder), fake.asked, found(folder)


def turned(faults: dict[str, Fault], first: int) -> list[Fault]:
    """The faults, beginning with this one."""
    return [*faults.values()][first:] + [*faults.values()][:first]


def some(count: int, step: int) -> list[Any]:
    """All numbers below a count, of which every `step`th is one of the normal run."""
    return [number if number % step == 0 else pytest.param(number, marks=pytest.mark.slow) for number in range(count)]


@pytest.mark.parametrize("first", some(len(OVER_SOON | HARMLESS), 24))
def test_a_fault_at_every_request_changes_no_answer(first: int, good: Good, tmp_path: Path) -> None:
    """With every request answered wrongly the first time, all answers are those of a server without faults."""
    in_turn = InTurn(turned(OVER_SOON | HARMLESS, first))
    with FakeServer(WORLD, misbehave=in_turn) as fake:
        ended = ask(fake, tmp_path, timeout=2)

    assert ended.exit_code == 0, ended.output
    assert answers(tmp_path) == good[0]
    assert len(in_turn.met) >= len(good[1]) >= 24


@pytest.mark.parametrize("first", some(len(LACKING), len(LACKING)))
def test_a_reply_that_lacks_something_is_asked_for_again(first: int, good: Good, tmp_path: Path) -> None:
    """A score that is no log-probability, or a choice that is none, is not believed at any request behind the probes."""
    with FakeServer(WORLD, misbehave=InTurn(turned(LACKING, first), probes=False)) as fake:
        ended = ask(fake, tmp_path)

    assert ended.exit_code == 0, ended.output
    assert answers(tmp_path) == good[0]


@pytest.mark.parametrize("step", some(STRIDE, STRIDE))
@pytest.mark.parametrize("name", FINAL)
def test_a_refusal_at_any_request_is_a_clean_stop(name: str, step: int, good: Good, tmp_path: Path) -> None:
    """Whichever request is refused for good, that is said, what came is kept, and the next run asks for the rest."""
    for number in range(1 + (step + list(FINAL).index(name)) % STRIDE, len(good[1]) + 1, STRIDE):
        folder = tmp_path / str(number)
        folder.mkdir()
        with FakeServer(WORLD, misbehave=lambda place, asked, at=number: FINAL[name] if place == at else None) as fake:
            ended = ask(fake, folder)
            refused = fake.asked[number - 1]
            kept = answers(folder)
            fake.misbehave = lambda number, asked: None
            before = len(fake.asked)
            again = ask(fake, folder)
            assert again.exit_code == 0, again.output
            sent = len(fake.asked) - before

        assert kept <= answers(folder)
        # A run without the server's likelihoods has those of word frequencies beside.
        assert sent <= len(good[1]) - len(kept & good[0])
        if not is_probe(refused):  # some probes have another way to find the same out
            assert ended.exit_code == 1
            assert answers(folder) == good[0]


@pytest.mark.parametrize("seed", some(40, 20))
def test_chaos_ends_in_the_undisturbed_base(seed: int, good: Good, tmp_path: Path) -> None:
    """Faults at most requests, and runs that end by a limit or for good: facts, statements and answers are the same."""
    chaos = Chaos(seed)
    with FakeServer(WORLD, misbehave=chaos) as fake:
        for most in chaos.draw.sample(range(1, 40), 2):
            before = chaos.counted
            ask(fake, tmp_path, "--max-calls", str(most), timeout=1)
            assert chaos.counted - before <= most
        for _ in range(12):
            ended = ask(fake, tmp_path, timeout=1)
            if ended.exit_code == 0:
                break

    assert ended.exit_code == 0, ended.output
    assert answers(tmp_path) == good[0]
    assert found(tmp_path) == good[2]


RULES = """
oracle plays_in(Club A, City B): "[1] plays in [2]"
oracle lies_in(City B, Country C): "[1] lies in [2]"

@name abroad
plays_in(Club A, City B) & lies_in(City B, Country C) -> plays_in_country(Club A, Country C).
"""
CLUBS = "1. FK Bodø/Glimt.\n2. Molde FK.\n3. 1. FC Köln.\n4. Amoxicillin/clavulanate.\n5. Viking / Vikings.\n6. Brann/Molde FK."


def bomb() -> str:
    """YAML of nine lines that stand for 387 million values."""
    lines = ["- &- [apple,pear,pear,pear,pear,pear,pear,pear,pear]"]
    for depth in range(1, 9):
        lines.append(f"- &{'-' * (depth + 1)} [{','.join([f'*{chr(45) * depth} '] * 9)}]")
    return "```yaml\n" + "\n".join(lines) + "\n```"


HOSTILE = {
    "bomb": bomb(),
    "blanks": " " * 160_000 + "x",
    "empty lines": "[" + "\r\n" * 80_000 + "]",
    "points": "." * 160_000,
    "rows": "<tr>" * 40_000,
    "elements": "".join(f"<t{number}>a" for number in range(20_000)),
    "lines": "\r\n" * 80_000 + "x",
    "sentences": "The pizza is a dish.\n" * 8_000,
    "marks": "<|x|>" * 32_000,
    "brackets": "[" * 900 + '"a"' + "]" * 900,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a rule file."""
    monkeypatch.chdir(tmp_path)
    Path("clubs.rules").write_text(RULES, "utf-8")
    return tmp_path


def values(reply: str) -> set[str]:
    """The values of the facts that a search stores when the model answers every question so."""
    script = {"defaults": {"generate": reply, "critic": 0.95, "likelihood": -60}}
    Path("script.json").write_text(json.dumps(script), "utf-8")
    run("search", "clubs.rules", "-m", "scripted:script.json", "--calls", "1", "--profile", "hapax")
    facts = map(json.loads, run("export", "--format", "jsonl").stdout.splitlines())
    return {value for fact in facts for value in fact["arguments"]}


@pytest.mark.usefixtures("folder")
def test_names_keep_their_slashes_and_numbers() -> None:
    """A slash parts alternatives only with blanks around it, or where one half is an item of its own."""
    names = {"1. FC Köln", "Amoxicillin/clavulanate", "Brann", "FK Bodø/Glimt", "Molde FK", "Viking"}

    assert values(CLUBS) == names


@pytest.mark.usefixtures("folder")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_reply_is_passed_over(name: str) -> None:
    """A search whose model answers with a bomb ends, and so does the next one, which reads the stored reply."""
    for _ in range(2):
        assert len(values(HOSTILE[name])) <= 1


EXAMPLES_IN_PROMPTS_RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?"
oracle borders(Country, Country): "[1] borders [2]" / "[1] does not border [2]" / "does [1] border [2]?"
@example flows_through("the Danube", "Austria")
@example flows_through("the Danube", "Germany")
"""


def prompts(folder: Path, goal: str, *facts: tuple[str, str, str]) -> str:
    """The first question that leaves for a server when a goal is asked with these facts given."""
    (folder / "my.rules").write_text(EXAMPLES_IN_PROMPTS_RULES, "utf-8")
    rules = hapax.parse_rules(EXAMPLES_IN_PROMPTS_RULES)
    with hapax.KnowledgeBase(folder / "kb.db") as kb:
        for predicate, first, second in facts:
            hapax.add_facts(kb, predicate, [(first, second)], rules)
    asking = ("--ask", "-m", "openai:m", "--profile", "few-shot", "--likelihood", "frequency")
    with FakeServer() as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        given = ("--rules", folder / "my.rules", "--db", folder / "kb.db")
        invoke("query", goal, *asking, *given, environment=environment)
        return next(prompt for prompt in map(prompt_of, server.asked) if "List" in prompt)


def test_examples_of_the_rule_file_are_answered_questions(tmp_path: Path) -> None:
    """They come before the question, with all their values."""
    prompt = prompts(tmp_path, "flows_through('the Po', C)")

    assert 'such that "the Danube flows through ___" is true.\nAnswer:\n1. Austria\n2. Germany\n' in prompt
    assert prompt.rstrip().endswith("Answer:")
    assert prompt.index("the Danube") < prompt.index("the Po")


def test_given_facts_are_examples(tmp_path: Path) -> None:
    """At most three keys, those with most values first; a value that rules and facts both give is shown once."""
    rivers = [("flows_through", f"river {number}", f"land {number}") for number in range(5)]
    prompt = prompts(
        *(tmp_path, "flows_through('the Po', C)", *rivers),
        *(("flows_through", "river 4", "land 9"), ("flows_through", "the Danube", "Austria")),
    )

    assert [number for number in range(5) if f"river {number} flows" in prompt] == [0, 4]
    assert prompt.count("Austria") == 1


@pytest.mark.parametrize(
    ("goal", "facts", "shown", "hidden"),
    [
        # neither the row of the asked river nor countries that are known to answer
        (
            "flows_through('the Danube', C)",
            [("flows_through", "the Rhine", "Austria"), ("flows_through", "the Rhine", "France")],
            ["France"],
            ["Austria", "Germany"],
        ),
        # a row of another country that names the asked one states an answer
        (
            "borders('France', C)",
            [("borders", "Spain", "France"), ("borders", "Spain", "Portugal"), ("borders", "Chile", "Peru")],
            ["Chile borders ___"],
            ["Spain"],
        ),
    ],
)
def test_no_example_gives_an_answer_away(
    tmp_path: Path, goal: str, facts: list[tuple[str, str, str]], shown: list[str], hidden: list[str]
) -> None:
    """Known values of the asked key are shown in no row."""
    prompt = prompts(tmp_path, goal, *facts)

    assert [text for text in shown if text not in prompt] == []
    assert [text for text in hidden if text in prompt] == []
