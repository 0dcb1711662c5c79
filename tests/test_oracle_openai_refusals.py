"""Requests that a server refuses for good, one or all of them, and what had been answered by then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from money_fixture import RULES, WORLD
from openai_fake import Asked, FakeServer, Reply
from test_oracle_openai import PARAMETERS, PROMPT, facts, no_pause, opened, searched

from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.openai_transport import RetryPolicy
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import GenerationRequest

CLAIMS = [f"Milk is in naan {number}." for number in range(10)]
FILTERED = {
    "error": {"message": "The response was filtered", "type": None, "param": "prompt", "code": "content_filter"}
}
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


@pytest.mark.parametrize(("status", "body"), OF_ONE.values(), ids=OF_ONE)
def test_a_refusal_of_one_request_stops_no_other(status: int, body: Any, fresh_kb: KnowledgeBase) -> None:
    """A filtered or too long claim gets no score but its reason, is stored, and is not sent again; the others score."""
    with FakeServer() as fake:
        critic = opened(fake).critic()
        fake.misbehave = refusing("naan 4.", status, body)
        journal = Journal(fresh_kb)
        first = JournaledCritic(critic, journal).probabilities(CLAIMS)
        sent = len(fake.asked)
        again = JournaledCritic(critic, Journal(fresh_kb)).probabilities(CLAIMS)

    assert [score.probability for score in first] == pytest.approx([0.9] * 4 + [0.5] + [0.9] * 5)
    assert [place for place, score in enumerate(first) if score.refused] == [4]
    assert first[4].refused.isprintable()
    assert again == first
    assert len(fake.asked) == sent
    assert journal.total.refused == 1
    assert fresh_kb.refusals() == [("critic", first[4].refused, 1)]


def test_a_refused_list_is_empty_and_says_why(fresh_kb: KnowledgeBase) -> None:
    """A question that the server filters has no values, and the journal its reason."""
    requests = [GenerationRequest(PROMPT), GenerationRequest(PROMPT.replace("milk", "poison"))]
    with FakeServer() as fake:
        generator = opened(fake).generator()
        fake.misbehave = refusing("poison", 400, FILTERED)
        good, refused = JournaledGenerator(generator, Journal(fresh_kb)).generate(requests, PARAMETERS)

    assert good.text
    assert not good.refused
    assert (refused.text, refused.finish_reason, refused.refused) == ("", "refused", "The response was filtered")


def test_a_refused_text_is_not_ranked(fresh_kb: KnowledgeBase) -> None:
    """A text longer than the context has no likelihood, and no token that one could be made of."""
    with FakeServer() as fake:
        model = opened(fake).likelihood()
        fake.misbehave = refusing("long", 400, VLLM)
        short, long, empty = JournaledLikelihood(model, Journal(fresh_kb)).log_likelihoods(["a b", "a long b", ""])

    assert (short.token_count, short.refused) == (1, "")
    assert long.token_count == 0
    assert "maximum context length" in long.refused
    assert not empty.refused


def test_votes_of_a_refused_claim_are_none() -> None:
    """Where every vote is refused, the claim is; one that gets through counts alone."""
    turns = iter([True] * 9 + [False])

    def nine_of_ten(number: int, asked: Asked) -> Reply | None:
        refused = "poison" in json.dumps(asked.body) or ("naan" in json.dumps(asked.body) and next(turns))
        return (400, FILTERED, {}) if refused else None

    with FakeServer({"defaults": {"critic": 1.0}}, frozenset({"logprobs", "n", "systemone"})) as fake:
        critic = opened(fake).critic()
        fake.misbehave = nine_of_ten
        accepted, none = critic.probabilities(["Milk is in naan.", "Milk is in poison."])

    assert (accepted.probability, accepted.refused) == (1.0, "")
    assert (none.probability, none.refused) == (0.5, "The response was filtered")


@pytest.mark.parametrize(("status", "body"), OF_ALL.values(), ids=OF_ALL)
def test_a_refusal_of_all_requests_ends_the_run_and_keeps_what_came(
    status: int, body: Any, fresh_kb: KnowledgeBase
) -> None:
    """A wrong key, model or parameter is one error; answers of the same batch stay and are not paid again."""
    with FakeServer() as fake:
        critic = opened(fake).critic()
        before = len(fake.asked)
        fake.misbehave = lambda number, asked: (status, body, {}) if number > before + 5 else None
        with pytest.raises(HapaxError, match=f"{fake.place} refused"):
            JournaledCritic(critic, Journal(fresh_kb)).probabilities(CLAIMS)
        fake.misbehave = lambda number, asked: None
        answered = len(fresh_kb.calls())
        journal = Journal(fresh_kb)
        scores = JournaledCritic(critic, journal).probabilities(CLAIMS)

    assert 0 < answered <= 5
    assert (journal.total.hits, journal.total.calls) == (answered, len(CLAIMS) - answered)
    assert not any(score.refused for score in scores)


@pytest.mark.parametrize("role", ["generator", "likelihood", "votes"])
def test_what_came_before_patience_ended_is_kept(role: str, fresh_kb: KnowledgeBase) -> None:
    """A server that dies amidst a batch costs only the answers that had not come, in every role."""
    lacks = frozenset({"systemone", "tokenize", *({"logprobs", "n"} if role == "votes" else ())})
    with FakeServer(lacks=lacks) as fake:
        model = opened(fake, RetryPolicy(attempts=1, first_pause=0.0), no_pause)
        own = getattr(model, "critic" if role == "votes" else role)()
        before = len(fake.asked)
        fake.misbehave = lambda number, asked: "drop" if number > before + 20 else None
        journal = Journal(fresh_kb)
        texts = [f"Milk is in naan {number}." for number in range(30)] + [""]
        with pytest.raises(HapaxError, match="nothing that was answered is lost"):
            _asked(role, own, journal, texts)
        kept = len(fresh_kb.calls())
        fake.misbehave = lambda number, asked: None
        later = Journal(fresh_kb)
        _asked(role, own, later, texts)

    assert 0 < kept < len(texts)
    assert later.total.hits == kept
    assert journal.total.calls >= kept - 1  # an empty text is scored without a request
    votes = 10 if role == "votes" else 1
    empty = role == "likelihood"
    assert later.total.calls == votes * (len(texts) - empty - (kept - empty))


def _asked(role: str, model: Any, journal: Journal, texts: list[str]) -> None:
    if role == "generator":
        requests = [GenerationRequest(f"{PROMPT}{text}") for text in texts]
        JournaledGenerator(model, journal, batch_size=100).generate(requests, PARAMETERS)
    elif role == "likelihood":
        JournaledLikelihood(model, journal).log_likelihoods(texts)
    else:
        JournaledCritic(model, journal).probabilities(texts)


def test_a_search_goes_on_behind_refusals_and_tells_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filtered claim leaves its value out; search counts it, stats gives the reason, why-not the claim."""
    rules, database = tmp_path / "money.rules", tmp_path / "kb.db"
    rules.write_text(RULES, encoding="utf-8")
    with FakeServer(WORLD) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        fake.misbehave = refusing("The Gambia uses the dalasi", 400, FILTERED)
        result = searched(rules, database, "openai:tiny")
        again = json.loads(searched(rules, database, "openai:tiny", "--json").stdout)
    stats = invoke("stats", "--db", database)
    counted = json.loads(invoke("stats", "--db", database, "--json").stdout)["refused"]
    story = invoke("why-not", 'uses_currency("The Gambia", dalasi)', "--rules", rules, "--db", database)

    assert result.exit_code == 0, result.output
    assert "1 request was refused" in result.output
    assert not any(role["calls"] for role in again["calls"].values())
    assert again["calls"]["critic"]["refused"] == 1
    assert "1 call to the critic model refused: The response was filtered" in stats.output
    assert counted == [{"role": "critic", "reason": "The response was filtered", "count": 1}]
    assert "which refused it: 'The response was filtered'" in story.output
    assert any("euro" in fact for fact in facts(database))
    assert not any("dalasi" in fact for fact in facts(database))


def test_a_search_leaves_a_text_out_that_cannot_be_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that the ranker refuses is no long tail: its beam falls out, and the rule counts as cut."""
    rules, database = tmp_path / "money.rules", tmp_path / "kb.db"
    rules.write_text(RULES, encoding="utf-8")
    with FakeServer(WORLD) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)

        def too_long(number: int, asked: Asked) -> Reply | None:
            is_long = asked.body.get("echo") and "Banjul" in asked.body["prompt"]
            return (400, VLLM, {}) if is_long else None

        fake.misbehave = too_long
        result = searched(rules, database, "openai:tiny")

    assert result.exit_code == 0, result.output
    assert "currency (cut)" in result.output
    assert "dalasi" not in result.output
    assert "krone" in result.output
