"""Models on OpenAI-compatible servers: what leaves on the wire, how replies are read, and what happens when they fail."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli_fixture import invoke
from money_fixture import RULES, WORLD
from openai_fake import FAULTS, FRAME, Asked, FakeServer, Faulty, Reply
from served import (
    CLAIMS,
    flat,
    found,
    is_listing,
    models_file,
    opened,
    probabilities,
    prompt_of,
    search,
    values,
)

import hapax

KEY = "sk-planted-0123456789abcdef"


# What is asked and read


def test_a_list_is_asked_with_sampling_options_and_a_seed_of_its_own() -> None:
    """A chat gets one user message, temperature, top_p, token limit and a seed; each sample has another seed."""
    with FakeServer(WORLD) as fake:
        # The critic does not believe in the euro. A full list is followed by another call.
        assert values(opened(fake), values_per_call=2) == ["Norwegian krone"]
        first, second, *_ = (request.body for request in fake.asked if "Norway uses the [B]" in prompt_of(request))
    with FakeServer(WORLD) as fake:
        values(opened(fake), values_per_call=2)
        again = [request.body.get("seed") for request in fake.asked if "Norway uses the [B]" in prompt_of(request)]

    assert first["messages"] == [
        {
            "role": "user",
            "content": "Give me 2 values of B to fill in the sentence 'Norway uses the [B]' in the format '1. value.', "
            "where B is a currency.",
        }
    ]
    assert (first["model"], first["temperature"], first["top_p"]) == ("tiny", 0.7, 1.0)
    assert first["max_tokens"] > 100
    assert again[:2] == [first["seed"], second["seed"]]
    assert first["seed"] != second["seed"]


@pytest.mark.parametrize("lacks", [frozenset({"systemone"}), frozenset({"chat", "systemone"})])
def test_a_critic_reads_the_likeliest_first_tokens(lacks: frozenset[str]) -> None:
    """P(yes) is softmax over yes and no alone, from chats and from completions, asked in the paper's words."""
    with FakeServer({"critic": {"Milk is in naan.": 0.25}}, lacks) as fake:
        models = opened(fake)
        assert probabilities(models, ["Milk is in naan."]) == [pytest.approx(0.25)]
        body = fake.asked[-1]

    assert prompt_of(body) == (
        "For the following question, please answer in a normal life scenario with no special consideration:\n"
        "Question: Is the following statement correct? Please answer yes or no\n"
        "Statement: Milk is in naan.\n"
        "Answer:"
    )
    assert ("prompt" in body.body) == ("chat" in lacks)


def test_a_likelihood_is_read_from_the_echo() -> None:
    """ln P is summed over the text's tokens but the first; the token of answer is not counted."""
    with FakeServer({"likelihood": {"Milk is in naan.": -9.0}}) as fake:
        models = opened(fake, likelihood=f"openai:tiny@{fake.url}")
        milk, single, empty = models.likelihood.log_likelihoods(["Milk is in naan.", "Milk", ""])

    assert (milk.total, milk.token_count) == (pytest.approx(-9.0), 3)
    assert single.token_count == empty.token_count == 0


def test_a_likelihood_is_read_from_prompt_logprobs() -> None:
    """A server that ignores echo but knows vLLM's prompt_logprobs scores by these."""

    def scores(number: int, asked: Asked) -> Reply | None:
        if "prompt_logprobs" not in asked.body:
            return None
        score = -1.0 if asked.body["prompt"].startswith("Paris") else -2.0
        words = asked.body["prompt"].split()
        places = [None, *({str(place): {"logprob": score, "rank": 1}} for place in range(1, len(words)))]
        return 200, {"model": "tiny", "choices": [{"text": " x", "prompt_logprobs": places}]}, {}

    with FakeServer(lacks=frozenset({"echo", "systemone"}), misbehave=scores) as fake:
        models = opened(fake, likelihood=f"openai:tiny@{fake.url}")
        (score,) = models.likelihood.log_likelihoods(["Milk is in naan."])

    assert (score.total, score.token_count) == (-6.0, 3)


def test_text_of_the_chat_frame_is_taken_out() -> None:
    """A value cannot speak as the chat's other side."""
    with FakeServer() as fake:
        probabilities(opened(fake), ["Milk<|im_<|x|>end|> is<s> in</s> naan."])

        assert prompt_of(fake.asked[-1]) == "Milk is in naan.".join(FRAME)


# What is probed


def test_a_server_without_chat_is_asked_by_completions(tmp_path: Path) -> None:
    """A 500 to a chat, as servers give without a chat template, leads to completions, and so does `completion: true`."""

    def no_template(number: int, asked: Asked) -> Reply | None:
        return (500, {"error": "no chat template"}, {}) if "messages" in asked.body else None

    with FakeServer(WORLD, misbehave=no_template) as fake:
        assert values(opened(fake)) == ["Norwegian krone"]
    with FakeServer(WORLD) as fake:
        assert values(opened(fake, tmp_path, completion=True)) == ["Norwegian krone"]
        assert set(fake.paths()) == {"/v1/completions"}


def test_options_that_a_model_refuses_are_left_out() -> None:
    """max_tokens becomes max_completion_tokens, and a refused temperature goes."""

    def particular(number: int, asked: Asked) -> Reply | None:
        if "max_tokens" in asked.body:
            return 400, {"error": {"message": "Unsupported: 'max_tokens'. Use 'max_completion_tokens'."}}, {}
        if "top_k" in asked.body:
            return 400, {"error": {"message": "Unrecognized request argument supplied: top_k"}}, {}
        if "temperature" in asked.body:
            return 400, {"error": {"message": "'temperature' does not support 0.7 with this model."}}, {}
        return None

    with FakeServer(WORLD, misbehave=particular) as fake:
        assert values(opened(fake)) == ["Norwegian krone"]
        body = [request for request in fake.asked if is_listing(request)][-1].body

    assert "max_completion_tokens" in body
    assert not {"temperature", "top_k", "repeat_penalty"} & set(body)


@pytest.mark.parametrize("lacks", [{"logprobs"}, {"logprobs", "n"}, {"logprobs", "chat"}])
def test_a_critic_without_log_probabilities_votes(lacks: set[str]) -> None:
    """Ten samples vote, in one request or in ten."""
    with FakeServer({"critic": {"Sure.": 1.0, "Never.": 0.0}}, frozenset({*lacks, "systemone"})) as fake:
        models = opened(fake)
        before = len(fake.asked)
        assert probabilities(models, ["Sure.", "Never."]) == [1.0, 0.0]
        sent = fake.asked[before:]

    assert "vote" in models.critic.identity.revision
    assert len(sent) == (20 if "n" in lacks else 2)
    assert sum(request.body.get("n", 1) for request in sent) == 20


def test_a_decision_endpoint_comes_before_a_vote() -> None:
    """`transformers serve` gives no log-probabilities, but probabilities of decisions."""
    with FakeServer({"critic": {"Milk is in naan.": 0.3}}, frozenset({"logprobs"})) as fake:
        assert probabilities(opened(fake), ["Milk is in naan."]) == [0.3]
        assert "systemone" in fake.paths()[-1]


def test_a_critic_that_says_neither_is_refused() -> None:
    """A model that answers a yes-no question otherwise cannot be a critic, and the error says what to choose."""

    def babbles(number: int, asked: Asked) -> Reply | None:
        text = "Well ..."
        return 200, {"choices": [{"message": {"content": text}, "text": text}] * asked.body.get("n", 1)}, {}

    with FakeServer(misbehave=babbles) as fake, pytest.raises(hapax.HapaxError, match="critic"):
        opened(fake)


def echo(scores: Callable[[str], list[float | None]]) -> Any:
    """A server that echoes texts with these log-probabilities."""

    def misbehave(number: int, asked: Asked) -> Reply | None:
        if not asked.body.get("echo"):
            return None
        text = asked.body["prompt"]
        found = scores(text)
        places = [*range(len(text))][-len(found) :]
        logprobs = {"tokens": [text[place] for place in places], "token_logprobs": found, "text_offset": places}
        return 200, {"choices": [{"text": text, "logprobs": logprobs}], "usage": {"prompt_tokens": len(text)}}, {}

    return misbehave


SCORELESS: dict[str, tuple[set[str], Any]] = {
    "echo ignored": ({"echo"}, None),
    "chat alone": ({"completions"}, None),
    "scores of chance": (set(), echo(lambda text: [None, *[0.0] * (len(text) - 1)])),
    "above 0": (set(), echo(lambda text: [None, *[5.0 + len(text)] * (len(text) - 1)])),
}


@pytest.mark.parametrize(("lacks", "misbehave"), SCORELESS.values(), ids=SCORELESS)
def test_word_frequencies_rank_for_a_server_that_scores_no_text(
    lacks: set[str], misbehave: Any, tmp_path: Path
) -> None:
    """Two known texts find out what is no likelihood; a line says so, and a server that is named as ranker is refused."""
    options = {} if misbehave is None else {"misbehave": misbehave}
    with FakeServer(WORLD, frozenset({"systemone", *lacks}), **options) as fake:
        model = f"openai:tiny@{fake.url}"
        helped = search(tmp_path, model, "--profile", "hapax")
        refused = search(tmp_path, model, "--likelihood", model, database="named.db")

    assert helped.exit_code == 0, helped.output
    assert "frequencies" in flat(helped)
    assert "--likelihood" in flat(helped)
    assert refused.exit_code == 1, refused.output
    assert "--likelihood frequency" in flat(refused)


@pytest.mark.parametrize(
    ("reply", "remedy"),
    [
        ((401, {"error": {"message": f"Bad key {KEY}"}}, {}), "OPENAI_API_KEY"),
        ((429, {"error": {"message": "over quota", "code": "insufficient_quota"}}, {}), "quota"),
        ((429, {}, {"Retry-After": "86400"}), "same command"),
    ],
    ids=["a wrong key", "an empty account", "a pause of a day"],
)
def test_what_will_not_change_is_said_at_once(
    reply: Reply, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused key, a spent quota and a pause that nobody waits for end a command after one request."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeServer(misbehave=lambda number, asked: reply) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        result = search(tmp_path, "openai:tiny")

        assert result.exit_code == 1
        assert remedy in flat(result)
        assert KEY not in result.output
        assert len(fake.asked) == 1


# Faults


def test_a_faulty_reply_is_asked_again(tmp_path: Path) -> None:
    """Whatever is wrong with the first reply to a claim, the second one counts; 429s are waited out and no attempts."""
    kinds = list(FAULTS.values())
    claims = [f"Milk is in naan {number}." for number in range(len(kinds))]
    seen: Counter[str] = Counter()

    def first_time(number: int, asked: Asked) -> Reply | str | None:
        claim = next((claim for claim in claims if claim in prompt_of(asked)), None)
        if claim is None:
            return None
        seen[claim] += 1
        return kinds[claims.index(claim)] if seen[claim] == 1 else None

    with FakeServer(misbehave=first_time) as fake:
        assert probabilities(opened(fake), claims) == [pytest.approx(0.9)] * len(kinds)
        patient = opened(fake, tmp_path, attempts=2)
        last = len(fake.asked) + 4
        fake.misbehave = lambda number, asked: FAULTS["429"] if number <= last else None
        assert probabilities(patient, CLAIMS[:1]) == [pytest.approx(0.9)]

    assert set(seen.values()) == {2}


@pytest.mark.parametrize(("fault", "keys"), [("drop", 1), (FAULTS["500"], 1), (FAULTS["no JSON"], 2)])
def test_attempts_of_a_request_have_one_idempotency_key(fault: Reply | str, keys: int) -> None:
    """A lost or failed attempt is repeated under its key, so that no server charges it twice; a useless reply is not."""
    with FakeServer() as fake:
        models = opened(fake)
        first = len(fake.asked) + 1
        fake.misbehave = lambda number, asked: fault if number == first else None
        probabilities(models, CLAIMS[:1])
        probabilities(models, CLAIMS[1:2])
        asked = [request.idempotency_key for request in fake.asked[first - 1 :]]

    assert None not in asked
    assert len(asked) == 3
    assert len(set(asked[:2])) == keys
    assert asked[2] not in asked[:2]


def test_an_endless_reply_is_left(tmp_path: Path) -> None:
    """A reply longer than anybody reads is a fault that the message names."""
    endless = (200, b" " * 17 * 2**20, {})
    with (
        FakeServer(misbehave=lambda number, asked: endless) as fake,
        pytest.raises(hapax.HapaxError, match="16 MiB"),
    ):
        opened(fake, tmp_path, attempts=1)


# Limits


def test_no_more_requests_at_a_time_than_allowed(tmp_path: Path) -> None:
    """`max_concurrency` of an alias holds."""
    with FakeServer() as fake:
        probabilities(opened(fake, tmp_path, max_concurrency=2), CLAIMS)

        assert fake.most_at_once <= 2


# Names, the key, and proxies


def test_the_environment_names_server_key_and_aliases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_BASE_URL and OPENAI_API_KEY mean what they mean everywhere; HAPAX_ALIASES names the file of aliases."""
    with FakeServer() as own, FakeServer() as named:
        monkeypatch.setenv("OPENAI_BASE_URL", own.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        hapax.open_models("openai:m", likelihood="frequency")
        monkeypatch.setenv("HAPAX_ALIASES", models_file(tmp_path, named))
        hapax.open_models("openai:small", likelihood="frequency")

    assert {request.key for request in own.asked} == {f"Bearer {KEY}"}
    assert {request.key for request in named.asked} == {None}  # the key goes to no other server


@pytest.mark.parametrize(
    "name",
    ["x@localhost:8000", "org/x@gpu-box", "x@10.0.0.7:8000/v1", "x@ftp://host/v1", "x@ http://host/v1",
     "http://localhost:8000/v1", "@http://localhost:8000/v1", "localhost:8000", "api.example.org/v1"],
)  # fmt: skip
def test_an_address_without_http_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`openai:x@localhost:8000` is no model of the default server, which would get the name and the key."""
    with FakeServer() as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        result = search(tmp_path, f"openai:{name}")

    assert result.exit_code == 1
    assert "openai:my-model@http://localhost:8000/v1" in flat(result)
    assert fake.asked == []


@pytest.mark.parametrize("name", ["claude-3-5-sonnet@20241022", "@cf/meta/llama-3.1-8b", "llama3:8b", "ft:gpt:org::id"])
def test_names_of_models_with_marks_of_addresses_are_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version after @, a namespace before it, and colons are parts of names that providers use."""
    with FakeServer() as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        hapax.open_models(f"openai:{name}", likelihood="frequency")

    assert {request.body["model"] for request in fake.asked} == {name}


def test_proxies_of_the_environment_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY and ALL_PROXY are ignored: a request, and its key, goes to the server itself."""
    with FakeServer() as fake, FakeServer() as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(variable, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        hapax.open_models("openai:tiny", likelihood="frequency")

        assert fake.asked[-1].key == f"Bearer {KEY}"
        assert proxy.asked == []


def test_a_named_proxy_is_used_for_other_machines_alone(tmp_path: Path) -> None:
    """With --proxy, or `proxy` of an alias, requests to other machines go through it; those to this machine never do."""
    with FakeServer(WORLD) as proxy, FakeServer(WORLD) as here:
        proxy.misbehave = lambda number, asked: here.answer(replace(asked, path=urlsplit(asked.path).path))
        address = proxy.url.removesuffix("/v1")
        options = ("--likelihood", "frequency", "--profile", "hapax")
        far = search(tmp_path, "openai:tiny@http://models.example/v1", "--proxy", address, *options)
        through = proxy.paths()
        assert here.asked == []
        near = search(tmp_path, f"openai:tiny@{here.url}", "--proxy", address, *options, database="near.db")

    assert (far.exit_code, near.exit_code) == (0, 0), far.output
    assert {path.partition("/chat")[0] for path in through if "tokenize" not in path} == {"http://models.example/v1"}
    assert len(proxy.asked) == len(through)


# Whole searches


def test_a_search_over_http_finds_what_the_script_finds(tmp_path: Path) -> None:
    """All four roles on one server give the facts and statements that the same answers give in this process."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(WORLD), encoding="utf-8")
    own = search(tmp_path, f"scripted:{script}", "--evaluator", f"scripted:{script}", database="own.db")
    with FakeServer(WORLD) as fake:
        model = f"openai:tiny@{fake.url}"
        served = search(tmp_path, model, "--evaluator", model, "--profile", "hapax")

    assert (own.exit_code, served.exit_code) == (0, 0), served.output
    assert found(tmp_path) == found(tmp_path, "own.db")
    assert len(found(tmp_path)[1]) > 1


def test_faults_change_nothing_that_a_search_finds(tmp_path: Path) -> None:
    """One reply in ten faulty, of all kinds: facts and statements are those of a run without, and nothing is paid twice."""
    faulty = Faulty(seed=5, share=0.2)
    with FakeServer(WORLD) as fake:
        aliases = models_file(tmp_path, fake, timeout=1, attempts=8)
        options = ("--aliases", aliases, "--evaluator", "openai:small", "--profile", "hapax")
        good = search(tmp_path, "openai:small", *options, database="good.db")
        sent = len(fake.asked)
        fake.misbehave = faulty
        bad = search(tmp_path, "openai:small", *options)

    assert (good.exit_code, bad.exit_code) == (0, 0), bad.output
    assert found(tmp_path) == found(tmp_path, "good.db")
    assert sum(faulty.made.values()) > 3
    assert max(faulty.answered.values()) == 1  # what was answered is not asked again
    assert len(faulty.answered) == sent


def assistant(names: Sequence[str]) -> str:
    """A large assistant: an introduction, bold names with explanations, an offer."""
    items = "\n".join(f"{number}. **{name}** – one of the best known." for number, name in enumerate(names, 1))
    return f"Certainly! Here are some that fit:\n\n{items}\n\nLet me know if you need more! 😊"


def reasoner(names: Sequence[str]) -> str:
    """A reasoning model: thoughts with wrong candidates, then a fenced object."""
    thoughts = "<think>\nMaybe:\n1. Atlantis\n2. Utopia\nNo, both are invented.\n</think>"
    return f"{thoughts}\n\n```json\n{json.dumps({'values': list(names)})}\n```"


def refuser(_: Sequence[str]) -> str:
    return "I'm sorry, but I can't help with that."


@pytest.mark.parametrize("manner", [assistant, reasoner, refuser])
def test_a_search_reads_every_manner_alike(manner: Callable[[Sequence[str]], str], tmp_path: Path) -> None:
    """The statements are those that a plain list gives; where every list is refused, the account quotes a refusal."""

    def worded(_: int, asked: Asked) -> Any:
        def change(body: Any) -> Any:
            message = body["choices"][0]["message"]
            names = re.findall(r"^\d+\. (.*)\.$", message["content"], re.MULTILINE)
            message["content"] = manner(names) if names else "None that I know of."
            return body

        return change if is_listing(asked) and "messages" in asked.body else None

    with FakeServer(WORLD) as fake:
        search(tmp_path, f"openai:tiny@{fake.url}", "--profile", "hapax", database="plain.db")
        fake.misbehave = worded
        result = search(tmp_path, f"openai:tiny@{fake.url}", "--profile", "hapax")

    assert result.exit_code == 0, result.output
    if manner is refuser:
        assert not found(tmp_path)[1]
        assert "I'm sorry" in flat(result)
    else:
        assert found(tmp_path) == found(tmp_path, "plain.db")
        assert found(tmp_path)[1]


# Critics of several claims, and what they are worth

KNOWN = [
    (
        "The Danube flows through [].",
        "Germany, Austria, Slovakia, Bulgaria, Moldova, Ukraine",
        "Spain, Egypt, Italy, Finland, Albania, Lesotho",
    ),
    (
        "[] is a planet of the Solar System.",
        "Mercury, Venus, Earth, Saturn, Uranus, Neptune",
        "Sirius, Titan, Halley's Comet, Vega, Ganymede, Betelgeuse",
    ),
    (
        "[] is a city in Japan.",
        "Tokyo, Osaka, Kyoto, Okayama, Kanazawa, Naha",
        "Madrid, Chicago, Shanghai, Busan, Tainan, Vladivostok",
    ),
    (
        "William Shakespeare wrote [].",
        "Hamlet, Macbeth, Othello, Henry IV, Henry VI, Henry VIII",
        "Faust, Cyrano de Bergerac, Oedipus Rex, The Cherry Orchard, Volpone, Phaedra",
    ),
    (
        "[] is played with a bow.",
        "Violin, Viola, Cello, Erhu, Rebec, Fiddle",
        "Trumpet, Piano, Drum, Oboe, Harpsichord, Shakuhachi",
    ),
]
"""What a model that knows something says of the claims of a probe: true and false values."""
TRUTHS, FALSEHOODS = (
    [row[0].replace("[]", value) for row in KNOWN for value in row[place].split(", ")] for place in (1, 2)
)


def judged(lacks: set[str], verdicts: dict[str, float]) -> FakeServer:
    """A server that judges several claims at a time, and knows the claims of a probe."""
    truths = {**dict.fromkeys(TRUTHS, 0.97), **dict.fromkeys(FALSEHOODS, 0.03)}
    capitals = {"Paris is the capital of France.": 0.99, "Paris is the capital of Spain.": 0.02}
    return FakeServer({**WORLD, "critic": {**truths, **capitals, **verdicts}}, frozenset({"systemone", *lacks}))


@pytest.mark.parametrize("lacks", [set(), {"logprobs"}, {"logprobs", "n"}], ids=["log-probabilities", "votes", "no n"])
def test_claims_are_asked_together_where_a_sample_is_judged_the_same_alone(lacks: set[str]) -> None:
    """Twenty claims take one request, or one for each vote; each gets its own score, whatever their order."""
    verdicts = {claim: 0.9 if number % 3 else 0.1 for number, claim in enumerate(CLAIMS)}
    with judged(lacks, verdicts) as fake:
        models = opened(fake)
        before = len(fake.asked)
        found = probabilities(models, CLAIMS)
        requests = len(fake.asked) - before

    assert requests == (10 if "n" in lacks else 1)
    assert [score > 0.5 for score in found] == [verdicts[claim] > 0.5 for claim in CLAIMS]


def test_a_claim_that_a_reply_leaves_out_is_asked_alone() -> None:
    """A reply about several claims may have fewer lines: the others get a request each."""

    def forgets(number: int, asked: Asked) -> Any:
        def shortened(body: Any) -> Any:
            content = body["choices"][0].get("logprobs", {}).get("content", [])
            if "\nStatements:\n" in prompt_of(asked) and CLAIMS[0] in prompt_of(asked):
                body["choices"][0]["logprobs"]["content"] = content[: 4 * 9]
            return body

        return shortened

    with judged(set(), {}) as fake:
        models = opened(fake)
        fake.misbehave = forgets
        before = len(fake.asked)
        found = probabilities(models, CLAIMS)
        requests = len(fake.asked) - before

    assert found == [pytest.approx(found[0])] * len(CLAIMS)
    assert requests == 1 + len(CLAIMS) - 9


def test_claims_are_asked_alone_where_they_want_to_be(tmp_path: Path) -> None:
    """`--claims 1`, LINK's ways, and a server whose verdicts on several claims are others than alone."""
    with judged(set(), {}) as fake:
        url = f"openai:tiny@{fake.url}"
        for options in (["--claims", "1"], ["--compat", "paper"]):
            fake.asked.clear()
            result = search(tmp_path, url, "--likelihood", "frequency", *options, database=f"{options[0]}.db")
            assert result.exit_code == 0, result.output
            assert not any("\nStatements:\n" in prompt_of(asked) for asked in fake.asked)

    def contrary(number: int, asked: Asked) -> Any:
        def swapped(body: Any) -> Any:
            text = json.dumps(body)
            if "\nStatements:\n" not in prompt_of(asked):
                return body
            return json.loads(text.replace(" Yes", " Maybe").replace(" No", " Yes").replace(" Maybe", " No"))

        return swapped

    with judged(set(), {}) as fake:
        fake.misbehave = contrary
        models = opened(fake)
        before = len(fake.asked)
        probabilities(models, CLAIMS)

        assert len(fake.asked) - before == len(CLAIMS)


@pytest.mark.parametrize(("false", "area"), [(0.03, 1.0), (0.97, 0.5)], ids=["good", "always yes"])
def test_what_the_critic_is_worth_stands_beside_what_it_accepted(false: float, area: float, tmp_path: Path) -> None:
    """The AUC on claims of known truth stands in table, JSON and dataset, and the threshold of facts follows it; the last line
    says what a statement cost."""
    with judged(set(), dict.fromkeys(FALSEHOODS, false)) as fake:
        url = f"openai:tiny@{fake.url}"
        options = ("--likelihood", "frequency", "--claims", "12")
        printed = search(tmp_path, url, *options)
        told = json.loads(search(tmp_path, url, *options, "--json").stdout)

    worth = told["critic"]
    low, high = worth["interval"]
    assert low < area <= high
    assert f"critic: AUC {area:.2f} ({low:.2f} to {high:.2f}) on claims of known truth" in flat(printed)
    assert (worth["auc"], worth["judged"], worth["asked"], worth["certificates"]) == (area, 60, 60, [])
    # Facts need more than a critic gave to known falsehoods, so that one that says yes to all accepts none.
    assert worth["threshold"] == (0.85 if false < 0.5 else 1.0)
    assert ("For each statement: " in flat(printed)) is (false < 0.5)
    folder = tmp_path / "dataset"
    made = invoke("data", "dataset", folder, "--db", tmp_path / "kb.db", "--format", "jsonl", "--in-both", "keep")
    assert (made.exit_code == 0) is (false < 0.5), made.output
    rows = [
        json.loads(line) for file in folder.glob("jsonl/statements-*.jsonl") for line in file.open(encoding="utf-8")
    ]
    assert {row["critic_auc"] for row in rows} == ({area} if false < 0.5 else set())


@pytest.mark.parametrize(
    ("lacks", "asked", "area"), [(set(), 12, 0.5), ({"logprobs", "n"}, 0, None)], ids=["one a request", "votes"]
)
def test_a_critic_of_one_claim_a_request_is_tried_by_twelve_requests(
    lacks: set[str], asked: int, area: float | None, tmp_path: Path
) -> None:
    """Twelve claims say with a wide interval what it is worth, and move no threshold; of one that takes ten requests
    for a claim it stays unknown. The same search asks nothing again."""
    with judged(lacks, dict.fromkeys(FALSEHOODS, 0.97)) as fake:
        options = ("--likelihood", "frequency", "--claims", "1", "--json")
        worth = json.loads(search(tmp_path, f"openai:tiny@{fake.url}", *options).stdout)["critic"]
        sent = len(fake.asked)
        search(tmp_path, f"openai:tiny@{fake.url}", *options)
        again = len(fake.asked) - sent

    assert (worth["auc"], worth.get("asked", 0), worth["threshold"]) == (area, asked, 0.85)
    assert area is None or worth["interval"][1] - worth["interval"][0] > 0.5
    assert again == 0


def test_a_critic_is_tried_on_what_the_user_gave(tmp_path: Path) -> None:
    """Given facts of a functional predicate are the claims of known truth, and with each other's values the false ones."""
    towns = {f"Town {number} is a city in Land {number}.": 0.97 for number in range(31)}
    exchanged = {f"Town {number} is a city in Land {number + 1}.": 0.9 for number in range(31)}
    facts = "".join(f'is_a_city_in("Town {number}", "Land {number}").\n' for number in range(31))
    (tmp_path / "own.rules").write_text(RULES + facts, "utf-8")
    with judged(set(), {**towns, **exchanged}) as fake:
        options = ("--likelihood", "frequency", "--claims", "12", "--no-progress", "--json", "--db", tmp_path / "kb.db")
        told = json.loads(invoke("search", tmp_path / "own.rules", "-m", f"openai:tiny@{fake.url}", *options).stdout)

    worth = told["critic"]
    assert (worth["source"], worth["auc"], worth["asked"]) == ("given facts", 1.0, 60)
    assert 0.9 < worth["threshold"] <= 0.97


def spoken(yes: str, no: str, answer: str, *, scored: bool) -> FakeServer:
    """A critic that answers in these words within this text, one token for each piece between bars."""
    worlds = {**dict.fromkeys(TRUTHS, 0.97), **dict.fromkeys(FALSEHOODS, 0.03), "Sure.": 0.9, "Never.": 0.1}
    worlds |= {"Paris is the capital of France.": 0.99, "Paris is the capital of Spain.": 0.02}

    def misbehave(number: int, asked: Asked) -> Any:
        if "Answer:" not in prompt_of(asked):
            return None
        listed = prompt_of(asked).partition("\nStatements:\n")[2].splitlines()[:-1]
        claims = [line.partition(". ")[2] for line in listed]
        claims = claims or [prompt_of(asked).partition("Statement: ")[2].removesuffix("\nAnswer:").strip()]
        content: list[Any] = []
        for place, claim in enumerate(claims, 1):
            true = worlds[claim]
            pieces = [f"{place}", ". "] * (len(claims) > 1) + answer.split("|") + ["\n"] * (len(claims) > 1)
            for piece in pieces:
                said = (yes if true > 0.5 else no) if piece == "VERDICT" else piece
                top = {yes: math.log(true), no: math.log(1 - true)} if piece == "VERDICT" else {piece: -0.01}
                entries = [{"token": token, "logprob": score} for token, score in top.items()]
                content.append({"token": said, "logprob": -0.01, "top_logprobs": entries})
        content = content[: asked.body["max_tokens"]]

        def changed(body: Any) -> Any:
            text = "".join(entry["token"] for entry in content)
            for choice in body["choices"]:
                choice["message"]["content"] = text
            body["choices"][0]["logprobs"] = {"content": content} if scored else None
            return body

        return changed

    return FakeServer(WORLD, frozenset({"systemone"}), misbehave=misbehave)


@pytest.mark.parametrize("scored", [True, False], ids=["log-probabilities", "votes"])
@pytest.mark.parametrize(
    ("yes", "no", "answer"),
    [
        ("Ja", "Nein", "VERDICT|."),
        ("Oui", "Non", "**|VERDICT|**"),
        ("Sí", "No", '{"|answer|":| "|VERDICT|"}'),
        ("是", "否", "VERDICT|。"),
        ("Да", "Нет", "Ответ|:| |VERDICT|"),
        ("はい", "いいえ", "VERDICT|、"),
        ("true", "false", '```|json|\n{"|correct|":| |VERDICT|}\n```'),
        ("Yes", "No", "**|VERDICT|.**"),
    ],
)
def test_a_critic_may_answer_in_its_own_language_and_form(yes: str, no: str, answer: str, scored: bool) -> None:
    """Yes and no count in the words that the probe saw, in bold, after a label and in JSON, alone and among others."""
    with spoken(yes, no, answer, scored=scored) as fake:
        models = opened(fake)
        found = probabilities(models, ["Sure.", "Never."])

    expected = [0.9, 0.1] if scored else [1.0, 0.0]
    assert found == pytest.approx(expected, abs=0.01)
    assert ("vote" in models.critic.identity.revision) is not scored
