"""A logit bias against the tokens of texts, where the server tells its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llm_oracle.backends.openai_transport import Ask, Exhausted, Refused, Transport

MOST_BANNED_TOKENS = 300
"""LINK's limit, which is OpenAI's."""

BIAS = -100
NEEDED = "1. 2.\n3.\n"
"""What every list is written with is never banned."""

PATHS = ("/tokenize", "/extras/tokenize")
"""vLLM's and llama.cpp's way, and that of llama-cpp-python."""


class TokenBias:
    """Token ids of texts, asked of the server once each. A server without a tokenizer endpoint biases nothing."""

    def __init__(self, model: str, transport: Transport) -> None:
        self._model = model
        self._transport = transport
        self._path: str | None = None
        self._known: dict[str, list[int]] = {}

    def against(self, texts: Sequence[str]) -> dict[str, int]:
        """A bias of -100 on each token of the texts, at a line's start and inside it, but on none that a list needs."""
        spelled = [form for text in texts for form in (" " + text, text)]
        if not self._tokenizes(spelled):
            return {}
        kept = {*self._known[NEEDED], *self._known[""]}
        banned = dict.fromkeys(token for form in spelled for token in self._known[form] if token not in kept)
        return {str(token): BIAS for token in list(banned)[:MOST_BANNED_TOKENS]}

    def _tokenizes(self, texts: Sequence[str]) -> bool:
        unknown = [text for text in dict.fromkeys(["", NEEDED, *texts]) if text not in self._known]
        paths = PATHS if self._path is None else (self._path,)
        for path in paths if unknown else ():
            try:
                found = self._transport.ask([self._ask(path, text) for text in unknown], _tokens)
            except (Refused, Exhausted):
                continue
            listed = [one for one in found if isinstance(one, list)]
            if len(listed) == len(unknown):
                self._path = path
                self._known.update(zip(unknown, listed, strict=True))
                return True
        return not unknown

    def _ask(self, path: str, text: str) -> Ask:
        spellings = dict.fromkeys(("prompt", "content", "input"), text)
        return Ask(path, {"model": self._model, **spellings, "add_special_tokens": False, "add_special": False})


def _tokens(reply: Any, ask: Ask) -> list[int] | None:  # noqa: ARG001  # one shape for all readers
    tokens = reply.get("tokens") if isinstance(reply, dict) else None
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        return None
    return tokens
