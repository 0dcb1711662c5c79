"""System prompt, chat template and reasoning switches of an alias reach servers and models in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openai_fake import FakeServer
from test_oracle_huggingface import loaded, tiny_llama, tiny_tokenizer

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends.huggingface import HuggingFaceGenerator
from hapax.llm_oracle.backends.json_decoding import JsonTokens
from hapax.llm_oracle.backends.openai_aliases import local_model
from hapax.llm_oracle.chat_settings import ChatSettings
from hapax.llm_oracle.profiles import JSON, ValueQuestion
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.registry import open_model

TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{{ mood }}>"


def alias_file(folder: Path, **fields: Any) -> Path:
    path = folder / "models.yaml"
    path.write_text(json.dumps([{"model_id": "mine", "model_name": "tiny", **fields}]), "utf-8")
    return path


def opened(server: FakeServer, folder: Path, **fields: Any) -> Any:
    aliases = alias_file(folder, api_base=server.url, **fields)
    return open_model("openai:mine", "knowledge", OpeningOptions(aliases=aliases))


def test_chats_carry_the_settings(tmp_path: Path) -> None:
    """Every chat has the system prompt first, and the template's variables and the effort as options."""
    (tmp_path / "my.jinja").write_text(TEMPLATE, "utf-8")
    with FakeServer() as server:
        model = opened(
            server,
            tmp_path,
            system_prompt="Answer briefly.\nIn English.",
            chat_template="my.jinja",
            chat_template_kwargs={"enable_thinking": False},
            reasoning_effort="low",
        )
        model.generate([GenerationRequest("Name a dish.")], GenerationParameters(max_tokens=20))
        for request in server.asked:
            assert request.path.endswith("chat/completions")
            assert request.body["messages"][0] == {"role": "system", "content": "Answer briefly.\nIn English."}
            assert request.body["chat_template"] == TEMPLATE
            assert request.body["chat_template_kwargs"] == {"enable_thinking": False}
            assert request.body["reasoning_effort"] == "low"


def test_the_settings_are_part_of_the_identity(tmp_path: Path) -> None:
    """A model with other settings is another one for the journal; without any it keeps its identity."""
    with FakeServer() as server:
        plain = opened(server, tmp_path).identity
        brief = opened(server, tmp_path, system_prompt="Briefly.").identity
        long = opened(server, tmp_path, system_prompt="At length.").identity
        assert len({plain.revision, brief.revision, long.revision}) == 3
        assert "chat " not in plain.revision.replace("chat;", "")
        bodies = [request.body for request in server.asked if len(request.body.get("messages", ())) == 1]
        assert all("reasoning_effort" not in body for body in bodies)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"sytem_prompt": "x"}, "unknown field 'sytem_prompt'"),
        ({"system_prompt": ""}, "system_prompt should be a text"),
        ({"chat_template_kwargs": {"a": [1]}}, "chat_template_kwargs should be a mapping"),
        ({"chat_template_kwargs": "off"}, "chat_template_kwargs should be a mapping"),
        ({"system_prompt": "x", "completion": True}, "need a chat, but completion is true"),
        ({"chat_template": "no_such.jinja"}, "the chat template .*no_such.jinja cannot be read"),
    ],
)
def test_faults_name_place_and_remedy(tmp_path: Path, fields: dict[str, Any], fault: str) -> None:
    """A malformed setting is refused with file or alias, field and remedy."""
    with FakeServer() as server, pytest.raises(HapaxError, match=fault):
        opened(server, tmp_path, **fields)


def test_local_models_take_the_chat_settings_of_an_alias(tmp_path: Path) -> None:
    """`hf:ALIAS` opens the alias's checkpoint; settings of servers are refused there."""
    aliases = alias_file(tmp_path, system_prompt="Briefly.")
    assert local_model("mine", aliases) == ("tiny", ChatSettings("Briefly."))
    assert local_model("other/model", aliases) == ("other/model", ChatSettings())
    with pytest.raises(HapaxError, match="rpm cannot be set for a model in this process"):
        local_model("mine", alias_file(tmp_path, rpm=10))


def test_a_local_prompt_is_framed() -> None:
    """System prompt, template and its variables frame the prompt of a model in this process, and name it anew."""
    tokenizer = tiny_tokenizer(begin=False)
    bare = loaded(tiny_llama(tokenizer), tokenizer)
    model = bare.with_chat(ChatSettings("Briefly.", TEMPLATE, {"mood": "gladly"}))
    assert tokenizer.decode(model.prompt_tokens("Hi")) == "[system] Briefly.\n[user] Hi\ngladly>"
    assert tokenizer.decode(bare.with_chat(ChatSettings("Briefly.")).prompt_tokens("Hi")) == "Briefly.\n\nHi"
    assert model.identity.revision.startswith("chat ")
    assert bare.with_chat(ChatSettings()) is bare
    strict = bare.with_chat(ChatSettings("x", "{{ raise_exception('no system role') }}"))
    with pytest.raises(HapaxError, match=r"chat template of hf/tiny cannot take .*no system role"):
        strict.prompt_tokens("Hi")


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


@pytest.mark.parametrize(
    ("text", "is_permitted"),
    [
        ('{"values": ["a", "b\\"c"]}', True),
        ('{"values": []}', True),
        ('{"values":["a"]}', False),
        ('{"values": ["a",]}', False),
        ('{"values": ["a" "b"]}', False),
        ('{"values": ["a\n"]}', False),
        ('{"values": [1]}', False),
    ],
)
def test_the_form_is_that_of_the_profile(text: str, is_permitted: bool) -> None:
    """Exactly the objects that the profile `json` asks for are permitted, in one spelling of blanks."""
    tokenizer = tiny_tokenizer(begin=False)
    tokens = JsonTokens(tokenizer, [1])
    state = 0
    for token in tokenizer(text).input_ids:
        after, _ = tokens.effects(state)
        state = int(after[token])
        if state < 0:
            break
    assert (state >= 0) is is_permitted
