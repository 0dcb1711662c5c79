"""A file of aliases says everything about a model on a server; its faults have place and remedy and show no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

import hapax

FAULTS = {
    "model_id: x": "mappings",
    "- {model_id: x}": "model_name",
    "- {model_id: x, model_name: y, api_key: sk-planted-secret}": "api_key",
    "- {model_id: x, model_name: y, rpm: 0}": "rpm",
    "- {model_id: x, model_name: y, rpm: .nan}": "rpm",
    "- {model_id: x, model_name: y, votes: true}": "votes",
    "- {model_id: x, model_name: ' '}": "model_name",
    "- {model_id: x, model_name: y, logprobs: yes}": "logprobs",
    "- {model_id: x, model_name: y, price_in: 1}": "price_out",
    "- {model_id: x, model_name: y}\n- {model_id: x, model_name: z}": "alias 2",
    "- {model_id: x, api_key: sk-planted-secret": "line 1",
    "- !!python/object/apply:os.getcwd []": "models.yaml",
    "- {model_id: x, model_name: y, api_base: 'ftp://h'}": "URL",
    "- {model_id: x, model_name: y, api_base: 'http://u:sk-planted-secret@h/v1'}": "api_key_name",
    "- {model_id: x, model_name: y, api_base: 'http://h/v1?key=sk-planted-secret'}": "api_key_name",
    "- {model_id: x, model_name: y, api_base: 'http://h', proxy: 'http://u:sk-planted@h'}": "environment variable",
    "- {model_id: x, model_name: y, api_base: 'http://127.0.0.1', proxy: 'http://h'}": "proxy",
    "- {model_id: x, model_name: y, sytem_prompt: z}": "sytem_prompt",
    "- {model_id: x, model_name: y, chat_template_kwargs: off}": "chat_template_kwargs",
    "- {model_id: x, model_name: y, system_prompt: z, completion: true}": "completion",
    "- {model_id: x, model_name: y, chat_template: none.jinja}": "none.jinja",
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-own")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(("text", "place"), FAULTS.items(), ids=FAULTS.values())
def test_a_faulty_alias_says_where_and_shows_no_secret(text: str, place: str, tmp_path: Path) -> None:
    """Every fault of the file is one message with its place, and quotes nothing that may be a key."""
    (tmp_path / "models.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(hapax.HapaxError) as caught:
        hapax.open_models("openai:x", likelihood="frequency", aliases=tmp_path / "models.yaml")

    assert "models.yaml" in str(caught.value) or "alias x" in str(caught.value)
    assert place in str(caught.value)
    assert "planted" not in str(caught.value)


def test_an_unknown_alias_is_named_with_those_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server to ask for it, a name that is no alias is answered with the names of the file."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    (tmp_path / "models.yaml").write_text("- {model_id: big, model_name: y, api_base: 'http://h/v1'}", "utf-8")

    with pytest.raises(hapax.HapaxError, match=r"bgi.*big.*OPENAI_API_KEY"):
        hapax.open_models("openai:bgi", aliases=tmp_path / "models.yaml")


@pytest.mark.parametrize("key", ["", "sk-planted\nsecond"])
def test_openai_without_a_usable_key_gets_nothing(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key, or one with a line end in it, ends the command with the variable's name, and is not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.delenv("OPENAI_BASE_URL")

    with pytest.raises(hapax.HapaxError, match="OPENAI_API_KEY") as caught:
        hapax.open_models("openai:gpt-x")

    assert "planted" not in str(caught.value)


def test_a_limit_of_requests_in_this_process_is_refused(tmp_path: Path) -> None:
    """`hf:ALIAS` opens the alias's checkpoint; settings of servers are refused there."""
    (tmp_path / "models.yaml").write_text("- {model_id: mine, model_name: tiny, rpm: 10}", "utf-8")

    with pytest.raises(hapax.HapaxError, match="rpm"):
        hapax.open_models("hf:mine", aliases=tmp_path / "models.yaml")
