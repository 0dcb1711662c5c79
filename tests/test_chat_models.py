"""Searches on servers that answer as different chat models do: each gives statements, or a line says why not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from money_fixture import RULES, WORLD
from openai_fake import FRAME, Asked, FakeServer
from test_oracle_openai import searched, statements

from hapax.llm_oracle.answers import parse_values

Manner = Callable[[Sequence[str]], str]


def assistant(values: Sequence[str]) -> str:
    """A large assistant: an introduction, bold names with explanations, an offer."""
    items = "\n".join(f"{number}. **{value}** – one of the best known." for number, value in enumerate(values, 1))
    return f"Certainly! Here are some that fit:\n\n{items}\n\nLet me know if you need more! 😊"


def reasoner(values: Sequence[str]) -> str:
    """A reasoning model: thoughts with wrong candidates, then a fenced object."""
    return (
        f"<think>\nMaybe:\n1. Atlantis\n2. Utopia\nNo, both are invented.\n</think>\n\n"
        f"```json\n{json.dumps({'values': list(values)})}\n```"
    )


def small(values: Sequence[str]) -> str:
    """A small model: a sentence instead of a list."""
    if len(values) == 1:
        return f"The correct answer is {values[0]}. I hope this helps!"
    return f"Some examples include {', '.join(values[:-1])} and {values[-1]}."


def refusing(_: Sequence[str]) -> str:
    return "I'm sorry, but I can't help with that."


def changed(manner: Manner, _: int, asked: Asked) -> Any:
    """The server's list in another manner; its verdicts stay."""
    prompt = str(asked.body.get("messages", [{"content": asked.body.get("prompt")}])[-1]["content"])
    if asked.body.get("echo") or prompt.startswith(FRAME[0]):
        return None

    def worded(body: Any) -> Any:
        for choice in body["choices"]:
            carrier = choice.get("message", choice)
            name = "content" if "message" in choice else "text"
            values = [str(line.value) for line in parse_values(carrier[name], "B", "Name") if line.rejected is None]
            carrier[name] = manner(values) if values else "None that I know of."
        return body

    return worded


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    path = tmp_path / "money.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.mark.parametrize("manner", [assistant, reasoner, small])
def test_a_search_reads_every_manner_alike(manner: Manner, rules: Path, tmp_path: Path) -> None:
    """Whatever the manner of the chat model, the search derives the statements that a plain list gives."""
    found = []
    for name, change in (("plain", None), ("manner", partial(changed, manner))):
        with FakeServer(WORLD, **({"misbehave": change} if change else {})) as fake:
            result = searched(rules, tmp_path / f"{name}.db", f"openai:tiny@{fake.url}", "--profile", "hapax")
        assert result.exit_code == 0, result.output
        found.append(statements(tmp_path / f"{name}.db"))

    assert found[0] == found[1] != set()


def test_a_search_of_a_refusing_model_says_why_it_is_empty(rules: Path, tmp_path: Path) -> None:
    """A model that refuses every list gives no statement, and the account names the refusals with one of them."""
    with FakeServer(WORLD, misbehave=partial(changed, refusing)) as fake:
        result = searched(rules, tmp_path / "refused.db", f"openai:tiny@{fake.url}", "--profile", "hapax")

    output = " ".join(result.output.split())
    assert result.exit_code == 0, result.output
    assert not statements(tmp_path / "refused.db")
    assert "currency has no statement" in output
    assert "says that there is no answer" in output
    assert "I'm sorry" in output, result.output
