"""Models in this process, on tiny networks: scores of one plain pass, lists that end and leave values out, whatever the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from tiny_models import CLAIMS, VALUES, loaded, tiny_llama, tiny_tokenizer
from transformers import LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast

from hapax.llm_oracle.answers import parse_values, without_values
from hapax.llm_oracle.backends.huggingface import HuggingFaceGenerator, HuggingFaceLikelihood
from hapax.llm_oracle.list_requests import MOST_GIVEN_VALUES
from hapax.llm_oracle.prompts import knowledge_prompt, read_prompt
from hapax.llm_oracle.protocols import (
    GenerationParameters,
    GenerationRequest,
)


@pytest.mark.parametrize("begin", [True, False])
def test_likelihood_is_that_of_teacher_forcing(begin: bool) -> None:
    """ln P sums over all tokens but the first, whatever the batch; behind a begin token the text's first one counts."""
    tokenizer = tiny_tokenizer(begin)
    model = loaded(tiny_llama(tokenizer), tokenizer)
    scores = HuggingFaceLikelihood(model, room=50).log_likelihoods(CLAIMS)

    for claim, score in zip(CLAIMS, scores, strict=True):
        ids = torch.tensor([tokenizer(claim).input_ids])
        with torch.no_grad():
            loss = model.network(input_ids=ids, labels=ids).loss
        assert score.token_count == ids.shape[1] - 1
        assert score.per_token == pytest.approx(-float(loss), abs=1e-4)
        assert score.token_count == len(tokenizer(claim, add_special_tokens=False).input_ids) - (not begin)


FOODS = (*VALUES, "rye bread", "oat milk", "malt", "curd", "kefir", "whey", "ghee")
KNOWN: dict[str, tuple[str, ...]] = {
    knowledge_prompt("B", "milk is in [B]", "Food", 24): (*FOODS, *map(str.upper, FOODS)),
    knowledge_prompt("B", "soy is in [B]", "Food", 12): tuple(FOODS[::-1]),
    knowledge_prompt("Y", "naan was baked in [Y]", "Year", 12): tuple(
        form for year in (1900, 1911, 1922, 1933) for form in (str(year), f"about {year}", f"{year} AD")
    ),
    knowledge_prompt("N", "[N] of salt are in naan", "Grams", 6): (
        "1,000",
        "1000 grams",
        "200",
        "200 grams",
        "30",
        "4",
    ),
}
"""Questions and the lists that `Reciter` has for them."""


class Reciter(LlamaForCausalLM):
    """Knows lists by heart and says them in order, from the number that is due, whatever was said or excluded."""

    tokenizer: Any

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:
        return {"input_ids": input_ids}

    def forward(self, input_ids: torch.Tensor, attention_mask: Any = None, **kwargs: Any) -> CausalLMOutputWithPast:
        logits = torch.full((*input_ids.shape, self.config.vocab_size), -1e4)
        for row, tokens in enumerate(input_ids.tolist()):
            logits[row, -1, self.next_token(self.tokenizer.decode(tokens, skip_special_tokens=True))] = 0.0
        return CausalLMOutputWithPast(logits=logits)

    def next_token(self, text: str) -> int:
        (question,) = (known for known in KNOWN if text.startswith(known))
        number, line = text.count("\n"), text.rpartition("\n")[2]
        due = f"{number}. {KNOWN[question][(number - 1) % len(KNOWN[question])]}."
        going_on = number and due.startswith(line)
        rest = due.removeprefix(line) if going_on else ""
        return int(self.tokenizer(rest or "\n", add_special_tokens=False).input_ids[0])


@pytest.mark.parametrize("question", KNOWN)
@pytest.mark.parametrize("count", [1, MOST_GIVEN_VALUES, MOST_GIVEN_VALUES + 3])
def test_a_model_that_insists_on_excluded_values_is_not_heard(question: str, count: int) -> None:
    """More values may be excluded than a list is begun with: none comes in the reply's values, all others do."""
    tokenizer = tiny_tokenizer()
    network = Reciter(tiny_llama(tokenizer, context=2048).config).eval()
    network.tokenizer = tokenizer
    asked = read_prompt(question)
    assert asked is not None
    numeric = asked.data_type != "food"

    def values(excluded: Sequence[str]) -> list[str]:
        request = GenerationRequest(question, tuple(excluded))
        (answer,) = HuggingFaceGenerator(loaded(network, tokenizer)).generate([request], GenerationParameters())
        parsed = parse_values(answer.text, asked.variable, asked.data_type, numeric)
        assert len(answer.text.splitlines()) <= 1 + asked.count
        return [str(item.value).casefold() for item in parsed if item.rejected is None]

    everything = values(())
    excluded = everything[-count:]

    assert len(everything) >= 4
    assert set(values(excluded)) == set(everything) - set(excluded)
    assert values([value.upper() for value in excluded]) == values(excluded)


def test_chat_template_frames_prompts_and_keeps_values_inside() -> None:
    """A prompt goes through the chat template, and special tokens inside it cannot leave it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{{ bos_token }}{% for message in messages %}[{{ message['content'] }}]{% endfor %}"
    model = loaded(tiny_llama(tokenizer), tokenizer)

    tokens = model.prompt_tokens("na</s></<s>s>an")

    assert tokenizer.decode(tokens) == "<s>[naan]"
    assert tokens.count(0) == 1


def test_excluded_numbers_are_left_out_in_every_form() -> None:
    """A number is one value however it is written; words of the data type are units, and other numbers stay."""
    said = "1. about 1,900.\n2. 1900 grams.\n3. 19.\n4. 1900 tons.\n5. 44 BC.\n6. 1. FC Bern.\n"

    assert without_values(said, ("1900", "-44", "1. FC Bern"), "Grams") == "3. 19.\n4. 1900 tons.\n"
