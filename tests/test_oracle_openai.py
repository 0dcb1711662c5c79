"""Models on OpenAI-compatible servers: what they are asked, how replies are read, and what happens when they fail."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import WORLD
from openai_fake import FAULTS, Asked, FakeServer, Faulty, Reply

from hapax import cli
from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends import openai_aliases, openai_models, openai_tokens, openai_transport
from hapax.llm_oracle.backends.openai_aliases import ServedModel, served_model
from hapax.llm_oracle.backends.openai_models import OpenAIModel
from hapax.llm_oracle.backends.openai_probing import Prober
from hapax.llm_oracle.backends.openai_transport import Concurrency, HttpTransport, Limits, RetryPolicy, Server, Throttle
from hapax.llm_oracle.budget import Budget, BudgetReached, Price
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.prompts import critic_prompt, knowledge_prompt
from hapax.llm_oracle.protocols import Critic, GenerationParameters, GenerationRequest, Generator, LikelihoodModel
from hapax.llm_oracle.registry import open_model, open_models, price_table

KEY = "sk-planted-0123456789abcdef"
PROMPT = knowledge_prompt("B", "milk is in [B]", "Food", 2)
AT_ONCE = RetryPolicy(first_pause=0.0, timeout=5.0)
PARAMETERS = GenerationParameters(max_tokens=50, seed=3)


def opened(fake: FakeServer, patience: RetryPolicy = AT_ONCE, sleep: Any = asyncio.sleep, **own: Any) -> OpenAIModel:
    served = ServedModel("tiny", Server(fake.url, fake.place, KEY), retries=patience, **own)
    return OpenAIModel(Prober(served, HttpTransport(served.server, served.limits, patience, sleep)))


# What is asked and read


def test_a_chat_is_asked_with_sampling_options_and_a_seed() -> None:
    """A server that chats gets one user message, temperature, top_p, token limit and a seed; the list is its content."""
    with FakeServer() as fake:
        generator = opened(fake).generator()
        (generation,) = generator.generate([GenerationRequest(PROMPT)], PARAMETERS)

        asked = fake.asked[-1]

    assert isinstance(generator, Generator)
    assert generation.text.startswith("1. alpha.")
    assert (generation.usage.prompt_tokens, generation.usage.completion_tokens) == (len(PROMPT.split()), 6)
    assert asked.path == "/v1/chat/completions"
    assert asked.body["messages"] == [{"role": "user", "content": PROMPT}]
    assert (asked.body["temperature"], asked.body["top_p"], asked.body["max_tokens"]) == (0.7, 1.0, 50)
    assert 0 <= asked.body["seed"] < 2**31
    assert (asked.body["top_k"], asked.body["min_p"], asked.body["repeat_penalty"]) == (0, 0, 1)


def test_samples_of_one_question_have_seeds_of_their_own() -> None:
    """The same request has the same seed, another sample of it or another run's seed another."""
    requests = [GenerationRequest(PROMPT), GenerationRequest(PROMPT), GenerationRequest(PROMPT, sample_index=1)]
    with FakeServer() as fake:
        generator = opened(fake).generator()
        seeds = [generator.request(request, PARAMETERS).body["seed"] for request in requests]
        other_seed = generator.request(requests[0], GenerationParameters(seed=4)).body["seed"]

    assert seeds[0] == seeds[1]
    assert len({*seeds, other_seed}) == 3


def test_a_list_ends_where_it_was_asked_to() -> None:
    """Text after the requested items is cut, and the generation counts as finished."""
    with FakeServer() as fake:
        (generation,) = opened(fake).generator().generate([GenerationRequest(PROMPT)], PARAMETERS)

    assert generation.text == "1. alpha.\n2. beta.\n"
    assert generation.finish_reason == "stop"


@pytest.mark.parametrize("lacks", [frozenset(), frozenset({"chat"})])
def test_excluded_values_do_not_come_again(lacks: frozenset[str]) -> None:
    """A chat is told what not to give, a completion goes on with the list; whatever still comes is dropped."""
    request = GenerationRequest(PROMPT, excluded_values=("alpha",))
    with FakeServer(lacks=lacks) as fake:
        (generation,) = opened(fake).generator().generate([request], PARAMETERS)
        body = fake.asked[-1].body

    assert "alpha" not in generation.text
    assert "beta" in generation.text
    shown = body["prompt"] if lacks else body["messages"][0]["content"]
    assert shown == PROMPT + ("\n1. alpha." if lacks else " Do not generate these values: alpha.")


def test_tokens_of_rejected_values_get_a_bias() -> None:
    """Where the server tells its tokens, LINK's logit bias is sent, but never against what a list is written with."""
    request = GenerationRequest(PROMPT, banned_tokens_of=("zap1",))
    with FakeServer(lacks=frozenset()) as fake:
        opened(fake).generator().generate([request], PARAMETERS)
        bias = fake.asked[-1].body["logit_bias"]
    with FakeServer() as fake:
        opened(fake).generator().generate([request], PARAMETERS)
        untold = fake.asked[-1].body

    assert bias == {str(ord(letter)): -100 for letter in "zap"}
    assert "logit_bias" not in untold


@pytest.mark.parametrize("is_at_hand", [True, False])
def test_openais_own_models_get_a_bias_from_their_tokenizer(is_at_hand: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's server has no tokenizer: tiktoken tells the tokens if it can without a download, else a line says why."""
    load = SimpleNamespace(read_file=lambda path: b"")

    def encoding_for_model(model: str) -> Any:
        if not is_at_hand:
            load.read_file("https://elsewhere/o200k_base.tiktoken")
        return SimpleNamespace(encode=lambda text, disallowed_special: [ord(letter) for letter in text])

    tiktoken = SimpleNamespace(encoding_for_model=encoding_for_model, load=load)
    monkeypatch.setattr(openai_tokens, "missing_of", lambda extra: "")
    monkeypatch.setitem(sys.modules, "tiktoken", tiktoken)
    with FakeServer() as fake:
        monkeypatch.setattr(openai_models, "OPENAI", fake.url)
        generator = opened(fake).generator()
        generator.generate([GenerationRequest(PROMPT, banned_tokens_of=("zap1",))], PARAMETERS)

        assert not any("tokenize" in path for path in fake.paths())
        bias = fake.asked[-1].body.get("logit_bias")

    assert bias == ({str(ord(letter)): -100 for letter in "zap"} if is_at_hand else None)
    assert ("not on this machine" in generator.bias_refused) == (not is_at_hand)


@pytest.mark.parametrize("lacks", [frozenset(), frozenset({"chat"})])
def test_a_critic_reads_the_likeliest_first_tokens(lacks: frozenset[str]) -> None:
    """P(yes) is softmax over yes and no alone, from chats and from completions."""
    with FakeServer({"critic": {"Milk is in naan.": 0.25}}, lacks) as fake:
        critic = opened(fake).critic()
        (score,) = critic.probabilities(["Milk is in naan."])
        body = fake.asked[-1].body

    assert isinstance(critic, Critic)
    assert score.probability == pytest.approx(0.25)
    assert critic.identity.revision.endswith("; logprobs")
    assert (body["prompt"] if lacks else body["messages"][0]["content"]) == critic_prompt("Milk is in naan.")


def test_a_likelihood_is_read_from_the_echo() -> None:
    """ln P is summed over the text's tokens but the first; the token of answer is not counted."""
    with FakeServer({"likelihood": {"Milk is in naan.": -9.0}}) as fake:
        model = opened(fake).likelihood()
        milk, single, empty = model.log_likelihoods(["Milk is in naan.", "Milk", ""])

    assert isinstance(model, LikelihoodModel)
    assert (milk.total, milk.token_count) == (pytest.approx(-9.0), 3)
    assert single.token_count == empty.token_count == 0
    assert model.identity.revision == "echo"


def test_a_likelihood_is_read_from_prompt_logprobs() -> None:
    """A server that ignores echo but knows vLLM's prompt_logprobs scores by these."""

    def scores(number: int, asked: Asked) -> Reply | None:
        if "prompt_logprobs" not in asked.body:
            return None
        score = -1.0 if asked.body["prompt"].startswith("Paris") else -2.0
        words = asked.body["prompt"].split()
        places = [None, *({str(place): {"logprob": score, "rank": 1}} for place in range(1, len(words)))]
        return 200, {"model": "tiny", "choices": [{"text": " x", "prompt_logprobs": places}]}, {}

    with FakeServer(lacks=frozenset({"echo"}), misbehave=scores) as fake:
        model = opened(fake).likelihood()
        (score,) = model.log_likelihoods(["Milk is in naan."])

    assert (score.total, score.token_count) == (-6.0, 3)
    assert model.identity.revision == "prompt_logprobs"


# What is probed


def test_a_server_without_chat_is_asked_by_completions() -> None:
    """A 500 to a chat, as servers give without a chat template, leads to completions."""

    def no_template(number: int, asked: Asked) -> Reply | None:
        return (500, {"error": "no chat template"}, {}) if "messages" in asked.body else None

    with FakeServer(misbehave=no_template) as fake:
        generator = opened(fake).generator()

    assert generator.identity.revision == "completions"


def test_an_alias_may_say_that_completions_are_asked() -> None:
    """A base model behind a server that would make up a chat template is asked as it stands."""
    with FakeServer() as fake:
        assert opened(fake, completion=True).generator().identity.revision == "completions"
        assert set(fake.paths()) == {"/v1/completions"}


def test_options_that_a_model_refuses_are_left_out() -> None:
    """max_tokens becomes max_completion_tokens, a refused temperature goes; the identity says so."""

    def particular(number: int, asked: Asked) -> Reply | None:
        if "max_tokens" in asked.body:
            return 400, {"error": {"message": "Unsupported: 'max_tokens'. Use 'max_completion_tokens'."}}, {}
        if "top_k" in asked.body:
            return 400, {"error": {"message": "Unrecognized request argument supplied: top_k"}}, {}
        if "temperature" in asked.body:
            return 400, {"error": {"message": "'temperature' does not support 0.7 with this model."}}, {}
        return None

    with FakeServer(misbehave=particular) as fake:
        generator = opened(fake).generator()
        (generation,) = generator.generate([GenerationRequest(PROMPT)], PARAMETERS)
        body = fake.asked[-1].body

    assert generation.text
    assert body["max_completion_tokens"] == 50
    assert not {"temperature", "top_k", "repeat_penalty"} & set(body)
    assert generator.identity.revision == "chat; without temperature"


@pytest.mark.parametrize("lacks", [{"logprobs"}, {"logprobs", "n"}, {"logprobs", "chat"}])
def test_a_critic_without_logprobs_votes_and_says_so(lacks: set[str]) -> None:
    """Ten samples vote, in one request or in ten, and the identity marks them as votes."""
    world = {"critic": {"Sure.": 1.0, "Never.": 0.0}}
    with FakeServer(world, frozenset({*lacks, "systemone"})) as fake:
        critic = opened(fake).critic()
        before = len(fake.asked)
        sure, never = critic.probabilities(["Sure.", "Never."])
        sent = fake.asked[before:]

    assert (sure.probability, never.probability) == (1.0, 0.0)
    assert critic.identity.revision.endswith("vote of 10")
    assert len(sent) == (20 if "n" in lacks else 2)
    assert sum(request.body.get("n", 1) for request in sent) == 20
    assert sure.usage.completion_tokens == 10


def test_a_decision_endpoint_comes_before_a_vote() -> None:
    """`transformers serve` gives no log-probabilities, but probabilities of decisions."""
    with FakeServer({"critic": {"Milk is in naan.": 0.3}}, frozenset({"logprobs"})) as fake:
        critic = opened(fake).critic()
        (score,) = critic.probabilities(["Milk is in naan."])

    assert score.probability == 0.3
    assert critic.identity.revision.endswith("systemone")


def test_a_critic_that_says_neither_is_refused() -> None:
    """A model that answers a yes-no question otherwise cannot be a critic, and the error says what to choose."""

    def babbles(number: int, asked: Asked) -> Reply | None:
        text = "Well ..."
        return 200, {"choices": [{"message": {"content": text}, "text": text}] * asked.body.get("n", 1)}, {}

    with FakeServer(misbehave=babbles) as fake, pytest.raises(HapaxError, match="Choose another --critic"):
        opened(fake).critic()


def flat(number: int, asked: Asked) -> Reply | None:
    """Echoes every text with the same score a token, whatever it says."""
    if not asked.body.get("echo"):
        return None
    text = asked.body["prompt"]
    logprobs = {
        "tokens": [*text],
        "token_logprobs": [None, *[0.0] * (len(text) - 1)],
        "text_offset": [*range(len(text))],
    }
    return 200, {"choices": [{"text": text, "logprobs": logprobs}]}, {}


def short(number: int, asked: Asked) -> Reply | None:
    """Echoes the text but scores its last token alone."""
    if not asked.body.get("echo"):
        return None
    text = asked.body["prompt"]
    logprobs = {"tokens": ["."], "token_logprobs": [-float(len(text))], "text_offset": [len(text) - 1]}
    return 200, {"choices": [{"text": text, "logprobs": logprobs}], "usage": {"prompt_tokens": 7}}, {}


@pytest.mark.parametrize(
    ("lacks", "misbehave"),
    [({"echo"}, None), ({"completions"}, None), (set(), flat), (set(), short)],
    ids=["echo ignored", "chat alone", "chance scores", "part of the text"],
)
def test_a_server_that_scores_no_text_is_refused_at_start(lacks: set[str], misbehave: Any) -> None:
    """Echo ignored, no completions, equal scores or scores of a part: found out by two known texts, with the remedy."""
    options = {} if misbehave is None else {"misbehave": misbehave}
    with (
        FakeServer(lacks=frozenset(lacks), **options) as fake,
        pytest.raises(HapaxError, match="--likelihood frequency"),
    ):
        opened(fake).likelihood()


def test_a_wrong_key_is_said_at_start() -> None:
    """A refused key names the variable, and no other way of asking is tried."""
    with (
        FakeServer(misbehave=lambda number, asked: (401, {"error": {"message": f"Bad key {KEY}"}}, {})) as fake,
        pytest.raises(HapaxError, match="OPENAI_API_KEY") as caught,
    ):
        opened(fake).critic()

    assert KEY not in str(caught.value)
    assert len(fake.asked) == 1


def test_a_server_that_is_not_there_is_said_at_start() -> None:
    """Without a server there is one message with its place."""
    with FakeServer() as fake:
        model = opened(fake)

    with pytest.raises(HapaxError, match=fake.place):
        model.generator()


# Faults


def every(count: int, fault: Reply | str) -> Any:
    return lambda number, asked: fault if number % count == 2 else None


async def no_pause(seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_asked_again(fault: Reply | str) -> None:
    """Every fifth reply faulty, in whatever way, gives the same answers as none."""
    requests = [GenerationRequest(f"{PROMPT}{number}") for number in range(12)]
    with FakeServer() as fake:
        expected = opened(fake).generator().generate(requests, PARAMETERS)
    with FakeServer(misbehave=every(5, fault)) as fake:
        actual = opened(fake, sleep=no_pause).generator().generate(requests, PARAMETERS)

    assert actual == expected
    assert len(fake.asked) > 14


def test_a_reply_that_never_comes_is_asked_again() -> None:
    """An attempt ends at the time-out."""
    patience = RetryPolicy(first_pause=0.0, timeout=0.3)
    with FakeServer(misbehave=lambda number, asked: "hang" if number == 2 else None) as fake:
        (generation,) = opened(fake, patience).generator().generate([GenerationRequest(PROMPT)], PARAMETERS)

    assert generation.text
    assert len(fake.asked) == 3


@pytest.mark.parametrize(("fault", "keys"), [("drop", 1), (FAULTS["500"], 1), (FAULTS["no JSON"], 2)])
def test_attempts_of_a_request_have_one_idempotency_key(fault: Reply | str, keys: int) -> None:
    """A lost or failed attempt is repeated under its key, so that no server charges it twice; a useless reply is not."""
    with FakeServer() as fake:
        generator = opened(fake, sleep=no_pause).generator()
        fake.misbehave = lambda number, asked: fault if number == first else None
        first = len(fake.asked) + 1
        generator.generate([GenerationRequest(PROMPT)], PARAMETERS)
        generator.generate([GenerationRequest(f"{PROMPT}!")], PARAMETERS)
        asked = [request.idempotency_key for request in fake.asked[first - 1 :]]

    assert None not in asked
    assert len(asked) == 3
    assert len(set(asked[:2])) == keys
    assert asked[2] not in asked[:2]


def test_attempts_are_bounded() -> None:
    """A server that fails always is left after as many attempts as allowed, with place, fact and remedy."""
    patience = RetryPolicy(attempts=3, first_pause=0.0)
    with FakeServer(misbehave=lambda number, asked: (500, b"", {}) if number > 1 else None) as fake:
        generator = opened(fake, patience, no_pause).generator()
        with pytest.raises(HapaxError, match=r"HTTP 500.*run the same command"):
            generator.generate([GenerationRequest(PROMPT)], PARAMETERS)

    assert len(fake.asked) == 4


def test_a_busy_server_is_waited_for_as_long_as_it_says() -> None:
    """429s are no attempts: each is waited out by its Retry-After, here oftener than attempts are allowed."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    def busy(number: int, asked: Asked) -> Reply | None:
        return (429, {}, {"Retry-After": "7"}) if 1 < number < 6 else None

    patience = RetryPolicy(attempts=2, first_pause=0.0)
    with FakeServer(misbehave=busy) as fake:
        (generation,) = opened(fake, patience, sleep).generator().generate([GenerationRequest(PROMPT)], PARAMETERS)

    assert generation.text
    assert pauses.count(7.0) == 4


@pytest.mark.parametrize("wish", ["86400", "1e300"])
def test_a_server_that_wants_too_long_a_pause_is_left(wish: str) -> None:
    """Nobody waits a day for one reply; the message says that the same command goes on."""
    late = (429, {}, {"Retry-After": wish})
    with FakeServer(misbehave=lambda number, asked: late) as fake, pytest.raises(HapaxError, match="429"):
        opened(fake).generator()

    assert len(fake.asked) == 1


def test_an_empty_account_is_not_waited_for() -> None:
    """A 429 that says that the quota is spent is final."""
    spent = (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, {})
    with FakeServer(misbehave=lambda number, asked: spent) as fake, pytest.raises(HapaxError, match="money or quota"):
        opened(fake).generator()

    assert len(fake.asked) == 1


def test_logprobs_that_stop_coming_are_no_answer() -> None:
    """A server that was probed well and then leaves log-probabilities out is no critic any more: no score is made up."""
    patience = RetryPolicy(attempts=2, first_pause=0.0)
    with FakeServer() as fake:
        critic = opened(fake, patience).critic()
        fake.lacks = frozenset({"logprobs"})
        (score,) = critic.probabilities(["Milk is in naan."])

    assert (score.probability, "log-probabilities" in score.refused) == (0.5, True)


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", "5", '"0"', "null", "true", "1" * 400])
def test_scores_that_are_none_are_never_believed(score: str) -> None:
    """Log-probabilities that are no numbers up to 0 count as missing, in critic and likelihood alike."""
    bad = json.loads(score) if score != "1" * 400 else int(score)
    tokens = {" yes": bad, " no": bad}
    echo = {"tokens": ["a", "b"], "token_logprobs": [None, bad], "text_offset": [0, 5]}

    def lies(number: int, asked: Asked) -> Reply | None:
        logprobs = echo if asked.body.get("echo") else {"top_logprobs": [tokens]}
        text = asked.body.get("prompt", "")
        return 200, {"choices": [{"text": text, "logprobs": logprobs}]}, {}

    patience = RetryPolicy(attempts=1, first_pause=0.0)
    with FakeServer(misbehave=lies) as fake:
        model = opened(fake, patience, completion=True)
        with pytest.raises(HapaxError, match="--critic"):
            model.critic()
        with pytest.raises(HapaxError, match="--likelihood"):
            model.likelihood()


def test_counts_of_tokens_that_are_none_are_guessed() -> None:
    """Usage that is missing or absurd is replaced by a guess from the text's length."""
    usage = {"prompt_tokens": 10**30, "completion_tokens": -4}
    reply = {"choices": [{"message": {"content": "1. a.\n"}}], "usage": usage}
    with FakeServer(misbehave=lambda number, asked: (200, reply, {})) as fake:
        (generation,) = opened(fake).generator().generate([GenerationRequest(PROMPT)], PARAMETERS)

    assert 0 < generation.usage.prompt_tokens < 1000
    assert 0 < generation.usage.completion_tokens < 1000


def test_text_of_the_chat_frame_is_taken_out() -> None:
    """A value cannot speak as the chat's other side."""
    with FakeServer() as fake:
        opened(fake).critic().probabilities(["Milk<|im_<|x|>end|> is<s> in</s> naan."])
        shown = fake.asked[-1].body["messages"][0]["content"]

    assert shown == critic_prompt("Milk is in naan.")


# Limits


def test_concurrency_adapts() -> None:
    """Twice as many at a time each round until a refusal, then one more after 25 successes; a refusal takes a quarter,
    once per cool-down, and never the last one."""
    now = [0.0]
    concurrency = Concurrency(14, lambda: now[0])
    for expected in (8, 14):
        for _ in range(int(concurrency.allowed)):
            concurrency.succeeded()
        assert concurrency.allowed == expected

    concurrency.refused()
    concurrency.refused()
    assert concurrency.allowed == 10.5
    assert concurrency.pause == 0
    for _ in range(50):
        concurrency.succeeded()
    assert concurrency.allowed == 12.5

    for _ in range(40):
        now[0] += 10
        concurrency.refused(5.0)
    assert concurrency.allowed == 1
    assert concurrency.pause == 5.0


def test_no_more_requests_at_a_time_than_allowed() -> None:
    """`max_concurrency` holds."""
    requests = [GenerationRequest(f"{PROMPT}{number}") for number in range(20)]
    with FakeServer() as fake:
        served = ServedModel("tiny", Server(fake.url, fake.place), Limits(max_concurrency=2))
        OpenAIModel(Prober(served, HttpTransport(served.server, served.limits))).generator().generate(
            requests, PARAMETERS
        )

    assert fake.most_at_once <= 2


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        select = self._selector.select

        def jump(timeout: float | None = None) -> Any:
            self.now += (timeout or 0) + 1e-6  # a clock that stands still would wait for ever for rounding errors
            return select(0)

        self._selector.select = jump

    def time(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("limits", "tokens", "seconds"),
    [
        (Limits(rpm=60), 1, 10),
        (Limits(tpm=600), 300, 270),
        (Limits(rpm=600, tpm=6000), 100, 1),
        (Limits(tpm=100), 10**6, 600),
    ],
)
def test_requests_and_tokens_per_minute(limits: Limits, tokens: int, seconds: float) -> None:
    """Eleven requests take as long as the tighter limit says, by a clock that jumps; too big a request still goes."""

    async def eleven() -> float:
        throttle = Throttle(limits, Concurrency(11, start=11))

        async def one() -> None:
            async with throttle.slot(tokens):
                pass

        await asyncio.gather(*(one() for _ in range(11)))
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        taken = runner.run(eleven())

    assert taken == pytest.approx(seconds, abs=0.01)


# Names and the key


def test_the_environment_names_server_and_key() -> None:
    """OPENAI_BASE_URL and OPENAI_API_KEY mean what they mean everywhere; without a base URL it is OpenAI."""
    own = served_model("m", None, {"OPENAI_BASE_URL": "http://Localhost:8000/v1/", "OPENAI_API_KEY": KEY})
    openai = served_model("gpt-x", None, {"OPENAI_API_KEY": KEY})

    assert (own.server.base_url, own.server.key, own.name) == (
        "http://localhost:8000/v1",
        KEY,
        "openai/localhost:8000/m",
    )
    assert (openai.server.base_url, openai.name) == ("https://api.openai.com/v1", "openai/api.openai.com/gpt-x")
    assert KEY not in repr(own)


def test_the_key_goes_to_no_other_server() -> None:
    """A model at a URL of its own, or an alias at a base of its own, does not get OPENAI_API_KEY."""
    environment = {"OPENAI_API_KEY": KEY}

    assert served_model("m@http://elsewhere/v1", None, environment).server.key == ""
    assert served_model("@cf/m@http://elsewhere/api", None, environment).name == "openai/elsewhere/api/@cf/m"


@pytest.mark.parametrize(
    "name",
    [
        "x@localhost:8000",
        "x@localhost:8000/v1",
        "org/x@gpu-box",
        "x@10.0.0.7:8000/v1",
        "x@ftp://host/v1",
        "x@ http://host/v1",
        "http://localhost:8000/v1",
        "@http://localhost:8000/v1",
        "localhost:8000",
        "myhost:8000",
        "myhost:8000/v1",
        "api.example.org/v1",
        "127.0.0.1:8000/v1",
    ],
)
def test_an_address_without_http_is_refused(name: str) -> None:
    """`openai:x@localhost:8000` is no model of the default server, which would get the name and the key."""
    with pytest.raises(HapaxError, match=r"Write it like openai:my-model@http://localhost:8000/v1"):
        served_model(name, None, {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize("name", ["claude-3-5-sonnet@20241022", "@cf/meta/llama-3.1-8b", "llama3:8b", "ft:gpt:org::id"])
def test_names_of_models_with_marks_of_addresses_are_names(name: str) -> None:
    """A version after @, a namespace before it, and colons are parts of names that providers use."""
    assert served_model(name, None, {"OPENAI_API_KEY": KEY}).model == name
    assert served_model("x@HTTP://Host/v1", None, {}).server.base_url == "http://host/v1"


PROXY = "http://proxy.example:3128"


def test_proxies_of_the_environment_get_nothing(environment: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY and ALL_PROXY are ignored: a request, and its key, goes to the server itself."""
    with FakeServer() as fake, FakeServer() as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            environment.setenv(variable, proxy.url)
        environment.delenv("NO_PROXY", raising=False)
        opened(fake).generator().generate([GenerationRequest(PROMPT)], PARAMETERS)

        assert fake.asked[-1].key == f"Bearer {KEY}"
        assert proxy.asked == []


def test_a_named_proxy_is_used_for_other_machines_alone() -> None:
    """With --proxy a request to another machine goes through it; one to this machine never does."""

    def answer(_: int, asked: Asked) -> Reply:
        return 200, {"model": "tiny", "choices": [{"message": {"content": asked.path}}]}, {}

    with FakeServer(misbehave=answer) as proxy:
        address = proxy.url.removesuffix("/v1")
        far = served_model("tiny@http://models.example/v1", None, {}, proxy=address)
        method = Prober(far, HttpTransport(far.server, far.limits, AT_ONCE)).answer_method()
        assert method.reported == "tiny"
        assert proxy.asked[0].path == "http://models.example/v1/chat/completions"

    for place in (
        "localhost:1",
        "127.0.0.1:1",
        "127.1:1",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
        "gpu.localhost:1",
        "0.0.0.0:1",
        f"{socket.gethostname()}:1",
    ):
        assert served_model(f"tiny@http://{place}/v1", None, {}, proxy=PROXY).server.proxy == ""


def test_an_alias_names_its_proxy(tmp_path: Path) -> None:
    """`proxy` in an alias is a URL or a variable with one, which may hold a password; it goes before --proxy."""
    path = tmp_path / "models.yaml"
    alias = "- {model_id: far, model_name: m, api_base: 'http://h/v1', proxy: FAR_PROXY}"
    path.write_text(alias, encoding="utf-8")
    secret = "http://me:sk-planted-secret@gate:3128"  # noqa: S105  # planted

    far = served_model("far", path, {"FAR_PROXY": secret}, proxy=PROXY)

    assert far.server.proxy == secret
    assert "planted" not in repr(far)
    with pytest.raises(HapaxError, match="neither a URL nor an environment variable"):
        served_model("far", path, {})


ALIASES = """
- model_id: big
  model_name: org/big-70b
  api_base: http://big:8000/v1
  api_key_name: BIG_KEY
  completion: true
  max_concurrency: 3
  rpm: 100
  tpm: 5000
  timeout: 30
  attempts: 2
  votes: 5
  price_in: 0.5
  price_out: 1.5
  revision: "2026-08"
- {model_id: plain, model_name: gpt-x}
"""


def test_an_alias_says_everything_about_a_model(tmp_path: Path) -> None:
    """Server, key's variable, limits, patience, price and revision come from the file."""
    path = tmp_path / "models.yaml"
    path.write_text(ALIASES, encoding="utf-8")
    environment = {"BIG_KEY": "big-key", "OPENAI_API_KEY": KEY}

    big = served_model("big", path, environment)

    assert (big.model, big.server.key, big.server.key_name) == ("org/big-70b", "big-key", "BIG_KEY")
    assert big.limits == Limits(3, 100, 5000)
    assert (big.retries.timeout, big.retries.attempts, big.votes) == (30, 2, 5)
    assert (big.price, big.completion, big.revision) == (Price(0.5, 1.5), True, "2026-08")
    assert served_model("plain", path, environment).server.key == KEY
    assert served_model("other", path, environment).model == "other"
    with pytest.raises(HapaxError, match=r"has no alias bgi, .* Name one of big, plain, or set OPENAI_API_KEY"):
        served_model("bgi", path, {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model_id: x", "list of mappings"),
        ("- [x]", "list of mappings"),
        ("- {model_id: x}", "models.yaml: alias 1: model_name is missing"),
        ("- {model_id: x, model_name: y, api_key: sk-planted-secret}", "unknown field 'api_key'"),
        ("- {model_id: x, model_name: y, rpm: 0}", "rpm should be"),
        ("- {model_id: x, model_name: y, rpm: .nan}", "rpm should be"),
        ("- {model_id: x, model_name: y, votes: true}", "votes should be"),
        ("- {model_id: x, model_name: y, rpm: true}", "rpm should be"),
        (
            "- {model_id: x, model_name: y, votes: 2, tpm: 0}\n- {model_id: z}",
            "tpm should be tokens per minute, from 1.",
        ),
        ("- {model_id: x, model_name: ' '}", "model_name should be"),
        ("- {model_id: x, model_name: y, logprobs: yes}", "logprobs should be none, output, echo or prompt"),
        ("- {model_id: x, model_name: y, 7: 8}", "alias 1"),
        ("- {model_id: x, model_name: y, price_in: 1}", "Give both price_in and price_out"),
        ("- {model_id: x, model_name: y}\n- {model_id: x, model_name: z}", "alias 2: model_id x is already taken"),
        ("- {model_id: x, api_key: sk-planted-secret", "line 1"),
        ("- !!python/object/apply:os.getcwd []", "cannot be read"),
        ("- {model_id: x, model_name: y, api_base: 'ftp://h'}", "base URL"),
        ("- {model_id: x, model_name: y, api_base: 'http://u:sk-planted-secret@h/v1'}", "api_key_name"),
        ("- {model_id: x, model_name: y, api_base: 'http://h/v1?key=sk-planted-secret'}", "api_key_name"),
        ("- {model_id: x, model_name: y, api_base: 'http://h:port/v1'}", "base URL"),
        (
            "- {model_id: x, model_name: y, api_base: 'http://h', proxy: 'http://u:sk-planted@h'}",
            "environment variable",
        ),
        ("- {model_id: x, model_name: y, api_base: 'http://h', proxy: 'socks://h'}", "URL of the proxy is not valid"),
        ("- {model_id: x, model_name: y, api_base: 'http://127.0.0.1', proxy: 'http://h'}", "Remove `proxy`"),
    ],
)
def test_a_faulty_alias_says_where_and_shows_no_secret(text: str, says: str, tmp_path: Path) -> None:
    """Every fault of the file is one message with its place, and quotes nothing that may be a key."""
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(HapaxError) as caught:
        served_model("x", path, {"OPENAI_API_KEY": KEY})

    assert says in str(caught.value)
    assert "planted" not in str(caught.value)


def test_openai_without_a_key_says_what_to_set() -> None:
    """Nothing is sent to OpenAI without a key."""
    with pytest.raises(HapaxError, match="Set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        served_model("gpt-x", None, {})
    with pytest.raises(HapaxError, match="OPENAI_API_KEY contains") as caught:
        served_model("gpt-x", None, {"OPENAI_API_KEY": "sk-planted\nsecond"})
    assert "planted" not in str(caught.value)


# Whole searches


def searched(rules: Path, database: Path, model: str, *options: str) -> Result:
    return invoke("search", rules, "-m", model, "--db", database, "--no-progress", *EVERY_END, *options)


def facts(database: Path) -> set[str]:
    """Everything known, without what names the model."""
    return set(invoke("export", "--db", database, "--format", "csv").stdout.splitlines())


def statements(database: Path) -> set[tuple[str, ...]]:
    with sqlite3.connect(database) as connection:
        return set(connection.execute("select distribution, premise, conclusion from statements"))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return monkeypatch


def test_a_search_over_http_finds_what_the_script_finds(
    rules: Path, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    """All four roles on one server give the facts and statements that the same answers give in this process."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(WORLD), encoding="utf-8")
    assert (
        searched(rules, tmp_path / "own.db", f"scripted:{script}", "--evaluator", f"scripted:{script}").exit_code == 0
    )

    with FakeServer(WORLD) as fake:
        environment.setenv("OPENAI_BASE_URL", fake.url)
        result = searched(rules, tmp_path / "http.db", "openai:tiny", "--evaluator", "openai:tiny")

    assert result.exit_code == 0, result.output
    assert facts(tmp_path / "http.db") == facts(tmp_path / "own.db")
    assert statements(tmp_path / "http.db") == statements(tmp_path / "own.db")
    assert len(facts(tmp_path / "http.db")) > 5


CITIES = [f"{name}{end}" for name in ("Os", "Ly", "Ban", "Tal", "Vi", "Qui") for end in ("lo", "on", "jul")]
LARGE_WORLD = {
    "generate": {
        "'[A] is a city in [B]'": CITIES,
        **{f"'{city} is a city in [B]'": [f"{city}land"] for city in CITIES},
        **{f"'{city}land uses the [B]'": [f"{city[:2]}mark", f"{city} crown", "shell"] for city in CITIES},
    },
    "critic": {f"{city}land uses the shell.": 0.1 + number / 50 for number, city in enumerate(CITIES)},
    "likelihood": {f"{city} is a city in {city}land.": -10.0 - number for number, city in enumerate(CITIES)},
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}


def stored(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a search leaves behind but the times of its calls, and the counts of what was sent."""
    left_out = {"created", "started", "finished", "applied_at"}
    found = {}
    with sqlite3.connect(database) as connection:
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            if table == "attempts":
                continue
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})") if row[1] not in left_out]
            if table == "runs":
                columns[columns.index("summary")] = "json_remove(summary, '$.calls')"
            rows = connection.execute(f"select {', '.join(columns)} from {table}").fetchall()  # noqa: S608
            found[table] = sorted(rows, key=repr)
    return found


def test_faults_change_nothing_that_a_search_finds(
    rules: Path, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    """One reply in ten faulty, of all kinds: facts, statements, decisions and scores are those of a run without."""
    environment.setattr(openai_aliases, "RetryPolicy", partial(RetryPolicy, first_pause=0.01))
    faulty = Faulty(seed=5)
    with FakeServer(LARGE_WORLD) as fake:
        aliases = tmp_path / "models.yaml"
        alias = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, "timeout": 2, "attempts": 5}
        aliases.write_text(json.dumps([alias]), encoding="utf-8")
        options = ("--aliases", str(aliases), "--evaluator", "openai:small")
        good = searched(rules, tmp_path / "good.db", "openai:small", *options)
        sent = len(fake.asked)
        fake.misbehave = faulty
        bad = searched(rules, tmp_path / "bad.db", "openai:small", *options)
        before, left = len(fake.asked), stored(tmp_path / "bad.db")
        again = searched(rules, tmp_path / "bad.db", "openai:small", *options)

    assert (good.exit_code, bad.exit_code, again.exit_code) == (0, 0, 0), bad.output
    assert left == stored(tmp_path / "good.db")
    assert len(statements(tmp_path / "bad.db")) > 20
    assert set(faulty.made) == {*FAULTS, "never"}
    assert max(faulty.answered.values()) == 1  # what was answered is not asked again
    assert len(faulty.answered) == sent
    assert max(faulty.asked.values()) <= 5
    assert len(fake.asked) == before


def test_the_key_is_nowhere_but_in_its_header(rules: Path, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    """A server that says the key back, in answers and in errors, finds it neither in the KB nor on the screen."""
    world = {**WORLD, "generate": {**WORLD["generate"], "'[A] is a city in [B]'": ["Oslo", KEY, f"Lyon {KEY}"]}}
    database = tmp_path / "kb.db"
    with FakeServer(world) as fake:
        environment.setenv("OPENAI_BASE_URL", fake.url)
        first = searched(rules, database, "openai:tiny", "--json")
        assert {request.key for request in fake.asked} == {f"Bearer {KEY}"}
        assert not any(KEY in json.dumps(request.body) for request in fake.asked)
        fake.misbehave = lambda number, asked: (418, {"error": {"message": f"no {KEY} tea"}}, {})
        second = searched(rules, tmp_path / "other.db", "openai:tiny")
    exports = [invoke("export", "--db", database, "--format", form).output for form in ("prolog", "csv", "jsonl")]
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))

    assert first.exit_code == 0
    assert second.exit_code == 1
    assert "[key] tea" in second.output
    assert KEY.encode() not in stored
    assert b"127.0.0.1" in stored
    assert not any(KEY in text for text in (first.output, second.output, *exports))


def test_the_environment_names_the_aliases(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    """HAPAX_ALIASES is the file of aliases for every command that opens a model."""
    aliases = tmp_path / "models.yaml"
    environment.setenv("HAPAX_ALIASES", str(aliases))
    with FakeServer() as fake:
        entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url}
        aliases.write_text(json.dumps([entry]), encoding="utf-8")

        assert open_model("openai:small", "critic").identity.name == f"openai/{fake.place}/tiny"


def test_an_endless_reply_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply longer than anybody reads is a fault."""
    monkeypatch.setattr(openai_transport, "MOST_REPLY_BYTES", 2**20)
    endless = (200, b" " * 2**21, {})
    patience = RetryPolicy(attempts=2, first_pause=0.0)
    with (
        FakeServer(misbehave=lambda number, asked: endless) as fake,
        pytest.raises(HapaxError, match="more than 1 MiB"),
    ):
        opened(fake, patience).generator()


def test_prices_of_an_alias_limit_the_money(rules: Path, tmp_path: Path) -> None:
    """With prices `--max-cost` stops a search; without, it is refused."""
    database = tmp_path / "kb.db"
    with FakeServer(WORLD) as fake:
        aliases = tmp_path / "models.yaml"
        entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url, "price_in": 1.0, "price_out": 2.0}
        aliases.write_text(json.dumps([entry]), encoding="utf-8")
        stopped = searched(rules, database, "openai:small", "--aliases", str(aliases), "--max-cost", "0.002")
        unpriced = searched(rules, database, f"openai:tiny@{fake.url}", "--max-cost", "1")
        models = open_models("openai:small", options=OpeningOptions(aliases=aliases))

    assert stopped.exit_code == 3
    assert unpriced.exit_code == 1
    assert "price" in unpriced.output
    assert price_table(models)[models.knowledge.identity.name] == Price(1.0, 2.0)


def test_votes_stay_within_the_budget(fresh_kb: KnowledgeBase) -> None:
    """Ten votes are reserved as ten, so that a limit on tokens is never passed."""
    claims = [f"Milk is in naan {number}." for number in range(40)]
    with FakeServer(WORLD, frozenset({"logprobs", "n", "systemone"})) as fake:
        journal = Journal(fresh_kb, Budget(max_tokens=4_000))
        critic = JournaledCritic(opened(fake).critic(), journal)
        with pytest.raises(BudgetReached):
            critic.probabilities(claims)

    assert 0 < journal.total.calls < 400
    assert journal.total.calls % 10 == 0
    assert 0 < journal.total.tokens <= 4_000


def test_opening_a_served_model_imports_no_torch() -> None:
    """A machine that only asks servers needs no torch."""
    with FakeServer() as fake:
        code = (
            "import sys; from hapax.llm_oracle.registry import open_models;"
            f"open_models('openai:tiny@{fake.url}');"
            "print([m for m in ('torch', 'transformers') if m in sys.modules])"
        )
        root = Path(cli.__file__).parent
        done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_roles_share_one_opened_model(environment: pytest.MonkeyPatch) -> None:
    """Ranker and evaluator on one server are one model, so that they share the journal's answers."""
    with FakeServer() as fake:
        environment.setenv("OPENAI_BASE_URL", fake.url)
        models = open_models("openai:tiny", evaluator="openai:tiny")

    assert models.likelihood is models.evaluator


def test_a_chat_alone_needs_another_likelihood(rules: Path, tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    """Without a likelihood a search ends at start with the option that helps, and works with it."""
    with FakeServer(WORLD, frozenset({"completions", "systemone"})) as fake:
        environment.setenv("OPENAI_BASE_URL", fake.url)
        refused = searched(rules, tmp_path / "kb.db", "openai:tiny")
        helped = searched(rules, tmp_path / "kb.db", "openai:tiny", "--likelihood", "frequency")

    assert refused.exit_code == 1
    assert "--likelihood frequency" in " ".join(refused.output.split())
    assert helped.exit_code == 0
