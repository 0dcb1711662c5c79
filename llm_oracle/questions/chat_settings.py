"""Settings of a chat that the user's alias makes: system prompt, chat template, and switches of reasoning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hapax.kb.records import content_id
from hapax.llm_oracle.protocols import ModelIdentity


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Frame of every prompt to a model. All of it is part of the model's identity.

    `template`: a Jinja chat template instead of the model's own. `template_options`: variables of the template, such as
    `enable_thinking`. `reasoning_effort`: how long a model reasons, in the server's words.
    """

    system_prompt: str = ""
    template: str = ""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    reasoning_effort: str = ""

    @property
    def is_default(self) -> bool:
        return self == ChatSettings()

    @property
    def revision(self) -> str:
        """Part of the model's revision; empty without any setting."""
        if self.is_default:
            return ""
        parts = (self.system_prompt, self.template, dict(self.template_options), self.reasoning_effort)
        return f"chat {content_id('chat', *parts)[:12]}"

    def of(self, identity: ModelIdentity) -> ModelIdentity:
        """The identity of a model with these settings."""
        return replace(identity, revision=f"{identity.revision} {self.revision}".strip())

    @property
    def variables(self) -> dict[str, Any]:
        """Variables for a template that is filled in here, where the effort is one of them."""
        effort = {"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {}
        return {**effort, **self.template_options}

    def messages(self, prompt: str) -> list[dict[str, str]]:
        """The turns of a chat that asks a prompt."""
        system = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        return [*system, {"role": "user", "content": prompt}]
