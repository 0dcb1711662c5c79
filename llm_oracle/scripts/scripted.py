"""A model that answers from a script, for tests, for examples in the documentation, and for trying rules by hand.

A script is a JSON object; every part is optional:

    {"generate": {"is an ingredient in [B]": ["saag chicken", "butter chicken"],
                  "was invented in": "1. 1876."},
     "critic": {"Butter is an ingredient in saag chicken.": 0.97},
     "likelihood": {"Butter is an ingredient in saag chicken.": -31.5},
     "defaults": {"generate": [], "critic": 0.02, "likelihood": -40}}

- `generate`: a prompt, or any part of one, and its answer. The longest part that a prompt contains wins. A list of
  values becomes a numbered list without the values that the request excludes; a text is returned unchanged.
- `critic`: a claim and P(yes).
- `likelihood`: a text and its total ln P. Its tokens are its words but the first; `[total, tokens]` sets both.
- `defaults`: the answers to all other requests. Without them, an unknown request raises an error that quotes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.kb.records import content_id
from hapax.llm_oracle.backend import ALL_ROLES, Backend
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Usage,
)
from hapax.llm_oracle.questions.prompts import sentence, stated_claim
from hapax.llm_oracle.reading.link_replies import render_values

_PARTS = ("generate", "critic", "likelihood")


class ScriptedModel:
    """All roles from one script. `prompts`, `claims` and `texts` record the requests, in order."""

    def __init__(self, script: Mapping[str, Any], name: str = "scripted") -> None:
        _check(script, name)
        self.identity = ModelIdentity(name, content_id("script", script)[:16])
        self._name = name
        self._generate: Mapping[str, Any] = script.get("generate", {})
        self._critic: Mapping[str, float] = script.get("critic", {})
        self._likelihood: Mapping[str, Any] = script.get("likelihood", {})
        self._defaults: Mapping[str, Any] = script.get("defaults", {})
        self.prompts: list[str] = []
        self.claims: list[str] = []
        self.texts: list[str] = []

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedModel:
        """The model of a script file. Raises HapaxError for an unreadable or malformed one."""
        try:
            script = json.loads(Path(path).read_text("utf-8"))
        except OSError as fault:
            reason = fault.strerror or str(fault)
            raise HapaxError(f"{path}: the script cannot be read: {reason}. Name an existing file.") from fault
        except (ValueError, RecursionError) as fault:
            raise HapaxError(f"{path}: the script cannot be read: {fault}. Write it as a JSON object.") from fault
        return cls(script, f"scripted/{Path(path).name}")

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:  # noqa: ARG002  # a script does not sample
        return [self._generation(request) for request in requests]

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self.claims += claims
        return [CriticScore(float(self._answer("critic", self._critic, claim))) for claim in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self.texts += texts
        scores = [self._answer("likelihood", self._likelihood, text) for text in texts]
        likelihoods: list[LogLikelihood] = []
        for score, text in zip(scores, texts, strict=True):
            total, tokens = score if isinstance(score, list) else (score, max(1, len(text.split()) - 1))
            likelihoods.append(LogLikelihood(float(total), int(tokens)))
        return likelihoods

    def _generation(self, request: GenerationRequest) -> Generation:
        self.prompts.append(request.prompt)
        parts = [part for part in self._generate if part in request.prompt]
        key = max(parts, key=len) if parts else request.prompt  # the longest part is the most specific
        answer = self._answer("generate", self._generate, key)
        if not isinstance(answer, str):
            excluded = {value.casefold() for value in request.excluded_values}
            answer = render_values([value for value in answer if str(value).casefold() not in excluded])
        # Words count as tokens, since a script has no tokenizer.
        return Generation(answer, usage=Usage(len(request.prompt.split()), len(answer.split())))

    def _answer(self, part: str, answers: Mapping[str, Any], asked: str) -> Any:
        # A script names a claim as a sentence, whatever the words in which a search puts it.
        for text in (asked, sentence(stated_claim(asked))):
            if text in answers:
                return answers[text]
        if part in self._defaults:
            return self._defaults[part]
        raise HapaxError(
            f'{self._name} has no answer in "{part}" to: {asked[:300]!r}. Add it to the script, or add a default.'
        )


def _check(script: Any, name: str) -> None:
    """Raise HapaxError for a malformed script, before anything is asked."""
    if not isinstance(script, Mapping) or not all(isinstance(part, Mapping) for part in script.values()):
        raise HapaxError(
            f"{name}: the script is not a JSON object of objects. Write it like the example in docs/how-to/models.md."
        )
    unknown = [part for part in script if part not in (*_PARTS, "defaults")]
    if unknown:
        raise HapaxError(f"{name}: unknown part {unknown[0]!r}. Use only {', '.join(_PARTS)} and defaults.")
    for part in _PARTS:
        entries = dict(script.get(part, {}))
        if part in script.get("defaults", {}):
            entries["the default"] = script["defaults"][part]
        for asked, answer in entries.items():
            if not _ANSWERS[part](answer):
                raise HapaxError(f'{name}: the answer in "{part}" to {asked[:300]!r} should be {_WANTED[part]}.')


def _is_number(answer: Any) -> bool:
    return isinstance(answer, int | float) and not isinstance(answer, bool)  # a bool is an int in Python


def _is_values(answer: Any) -> bool:
    return isinstance(answer, str) or (
        isinstance(answer, list) and all(isinstance(value, str) or _is_number(value) for value in answer)
    )


def _is_score(answer: Any) -> bool:
    pair = isinstance(answer, list) and len(answer) == 2 and all(map(_is_number, answer))
    return pair or _is_number(answer)


_ANSWERS = {"generate": _is_values, "critic": _is_number, "likelihood": _is_score}
_WANTED = {
    "generate": "a list of values or a text",
    "critic": "a number",
    "likelihood": "a number, or a pair of total and token count",
}


BACKEND = Backend(
    open=lambda request: request.once(lambda: ScriptedModel.from_file(request.argument)),
    argument="PATH",
    roles=ALL_ROLES,
    abilities="answers from a JSON file, for tests and examples",
    price=FREE,
)
