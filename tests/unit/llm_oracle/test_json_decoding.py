"""Decoding in this process keeps to the form of the profile json."""

from __future__ import annotations

import json

import pytest
from tiny_models import loaded, tiny_llama, tiny_tokenizer

from hapax.llm_oracle.backends.huggingface import HuggingFaceGenerator
from hapax.llm_oracle.profiles import JSON, ValueQuestion
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_local_decoding_permits_json_alone(temperature: float) -> None:
    """A random network, held to the form, writes an object of at most so many texts; other rows are free."""
    tokenizer = tiny_tokenizer()
    generator = HuggingFaceGenerator(loaded(tiny_llama(tokenizer), tokenizer))
    question = ValueQuestion("B", "milk is in [B]", (), "Food", 3)
    request = GenerationRequest(JSON.word(question), form=JSON.reply_form(question))
    free = GenerationRequest("1. butter.")
    answers = generator.generate([request, free, request], GenerationParameters(temperature, max_tokens=300))
    for answer in (answers[0], answers[2]):
        values = json.loads(answer.text)["values"]
        assert len(values) <= 3
        assert all(isinstance(value, str) for value in values)
        assert answer.finish_reason == "stop"
    assert not answers[1].text.startswith('{"values"')
    assert generator.structures
