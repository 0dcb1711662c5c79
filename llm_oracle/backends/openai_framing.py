"""A transport that adds the chat settings of an alias to every chat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hapax.llm_oracle.backends.openai_outcomes import Refused
from hapax.llm_oracle.backends.openai_transport import Answer, ReadReply, ServerRequest, Transport
from hapax.llm_oracle.backends.openai_wire import CHAT
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.chat_settings import ChatSettings
from hapax.llm_oracle.protocols import Stream


@dataclass(frozen=True, slots=True)
class FramedTransport:
    """Adds system prompt, template and reasoning switches to chats; other requests pass unchanged."""

    transport: Transport
    chat: ChatSettings

    def ask(self, requests: Sequence[ServerRequest], read: ReadReply[Answer]) -> list[Answer | Refused]:
        return self.transport.ask([self._framed(request) for request in requests], read)

    def stream(self, requests: Iterable[ServerRequest], read: ReadReply[Answer]) -> Stream[Answer | Refused]:
        return self.transport.stream(map(self._framed, requests), read)

    def _framed(self, request: ServerRequest) -> ServerRequest:
        if request.path != CHAT:
            return request
        chat = self.chat
        options: dict[str, Any] = {
            "chat_template": chat.template,
            "chat_template_kwargs": dict(chat.template_options),
            "reasoning_effort": chat.reasoning_effort,
        }
        # Servers may reject options that they do not know, so only those that are set are sent.
        given = {name: value for name, value in options.items() if value}
        body = {**request.body, "messages": chat.messages(request.prompt), **given}
        most = request.most
        # Only a charged request has a prompt that becomes longer.
        added = estimated_tokens(chat.system_prompt) if request.is_charged else 0
        return replace(request, body=body, most=replace(most, prompt_tokens=most.prompt_tokens + added))


def framed(transport: Transport, chat: ChatSettings) -> Transport:
    """The transport with these settings; unchanged without any."""
    return transport if chat.is_default else FramedTransport(transport, chat)
