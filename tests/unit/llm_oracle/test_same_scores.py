"""One P(yes) from every kind of back end: a causal network, a sequence-to-sequence one, and a server that tells logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from openai_fake import FRAME, Asked, FakeServer, Reply
from tiny_models import CLAIMS, first_token_logits, network

import hapax
from hapax.llm_oracle.answers import yes_probability
from hapax.llm_oracle.backends.huggingface import HuggingFaceCritic, answer_tokens
from hapax.llm_oracle.backends.loading import LoadedModel


class LogitServer(FakeServer):
    """Tells the 20 likeliest first tokens by stored logits of each claim."""

    def __init__(self, model: LoadedModel, stored: Mapping[str, torch.Tensor], lacks: frozenset[str]) -> None:
        super().__init__(misbehave=self.told, lacks=frozenset({"systemone", *lacks}))
        self.loaded, self.stored = model, stored

    def told(self, number: int, asked: Asked) -> Reply | None:
        is_chat = "messages" in asked.body
        if not asked.body.get("logprobs") or ("chat" in self.lacks and is_chat):
            return None
        prompt = asked.body["messages"][0]["content"] if is_chat else asked.body["prompt"]
        logits = self.stored.get(prompt.removeprefix(FRAME[0]).removesuffix(FRAME[1]))
        if logits is None:  # a probe
            return None
        scores, tokens = logits.log_softmax(-1).topk(20)
        names = [self.loaded.tokenizer.decode([token]) for token in tokens.tolist()]
        listed = dict(zip(names, scores.tolist(), strict=True))
        entries = [{"token": name, "logprob": score} for name, score in listed.items()]
        logprobs = {"content": [{"top_logprobs": entries}]} if is_chat else {"top_logprobs": [listed]}
        return 200, {"choices": [{"message": {"content": "?"}, "text": "?", "logprobs": logprobs}]}, {}


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
@pytest.mark.parametrize("lacks", [frozenset(), frozenset({"chat"})], ids=["chat", "completions"])
def test_stored_logits_give_one_score_in_every_back_end(kind: str, lacks: frozenset[str]) -> None:
    """The same logits in this process and as a server's 20 likeliest tokens are one P(yes), within 1e-5."""
    model = network(kind)
    yes, no = answer_tokens(model)

    def says_yes_or_no(module: Any, given: Any, logits: torch.Tensor) -> torch.Tensor:
        """A random network says anything; one that was asked has both answers among its likeliest."""
        raised = logits.clone()
        raised[..., [*yes, *no]] += 20.0
        return raised

    hook = model.network.lm_head.register_forward_hook(says_yes_or_no)
    try:
        stored = {claim: first_token_logits(model, claim).double() for claim in CLAIMS}
        own = [score.probability for score in HuggingFaceCritic(model).probabilities(CLAIMS)]
    finally:
        hook.remove()
    with LogitServer(model, stored, lacks) as fake:
        critic = hapax.open_models(f"openai:tiny@{fake.url}", likelihood="frequency", claims=1).critic
        served = [score.probability for score in critic.probabilities(CLAIMS)]

    expected = [yes_probability(stored[claim][yes].tolist(), stored[claim][no].tolist()) for claim in CLAIMS]
    assert critic.identity.revision.endswith("logprobs")
    assert own == pytest.approx(expected, abs=1e-5)
    assert served == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 6) for score in served}) == len(CLAIMS)
