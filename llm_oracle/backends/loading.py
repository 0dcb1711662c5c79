"""Loads a Hugging Face checkpoint once for all its roles, and turns prompts into its tokens.

Prompts go through the tokenizer's chat template if it has one; texts to be scored never do. Special tokens inside a
prompt or text are removed, so that a value cannot speak for the other side of a chat.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.llm_oracle.backends.weights import check_sums, checkpoint_identity, content_revision, quiet_transformers
from hapax.llm_oracle.egress import HUB, is_offline, permit
from hapax.llm_oracle.protocols import ModelIdentity
from hapax.llm_oracle.questions.chat_settings import ChatSettings

LONGEST_INPUT = 4096
"""Tokens, for models without a limit in their configuration."""

DTYPES = {"auto": None, "float32": torch.float32, "bfloat16": torch.bfloat16}
"""The number formats by name; None: the fastest."""

NARROWEST = 512
"""Width from which a network on a processor runs in bfloat16: narrower ones spend little time in matrix products."""


@dataclass(frozen=True)
class LoadedModel:
    """A network with its tokenizer, in evaluation mode on its device."""

    network: Any
    tokenizer: Any
    identity: ModelIdentity
    chat: ChatSettings = field(default_factory=ChatSettings)

    def with_chat(self, chat: ChatSettings) -> LoadedModel:
        """The model with other chat settings, which are part of its identity."""
        return replace(self, chat=chat, identity=chat.of(self.identity))

    @property
    def device(self) -> torch.device:
        return torch.device(self.network.device)

    @property
    def is_seq2seq(self) -> bool:
        return bool(self.network.config.is_encoder_decoder)

    @property
    def context(self) -> int:
        """Longest input in tokens; LONGEST_INPUT for models without a limit, such as T5 (relative positions)."""
        limit = getattr(self.network.config, "max_position_embeddings", None)
        return limit if isinstance(limit, int) and limit > 0 else LONGEST_INPUT

    @property
    def padding(self) -> int:
        """The padding token, or another one if there is none."""
        token = self.tokenizer.pad_token_id
        # Any token will do, because the attention mask hides it.
        return int(token if token is not None else self.tokenizer.eos_token_id or 0)

    @cached_property
    def _special_tokens(self) -> tuple[str, ...]:
        """The tokens that a text must not contain: those with a role, and others that are special, as in chats."""
        added = [token.content for token in self.tokenizer.added_tokens_decoder.values() if token.special]
        return tuple(dict.fromkeys([*self.tokenizer.all_special_tokens, *added]))

    def harmless(self, text: str) -> str:
        """The text without strings that the tokenizer would read as special tokens."""
        for special in self._special_tokens:
            while special in text:  # removing one may join two halves of another
                text = text.replace(special, "")
        return text

    def prompt_tokens(self, prompt: str) -> list[int]:
        """The tokens of a prompt, in the chat template if there is one."""
        prompt = self.harmless(prompt)
        chat = self.chat
        if not self.tokenizer.chat_template and not chat.template:
            return list(self.tokenizer(f"{chat.system_prompt}\n\n{prompt}" if chat.system_prompt else prompt).input_ids)
        template = {"chat_template": chat.template} if chat.template else {}
        try:
            framed = self.tokenizer.apply_chat_template(
                chat.messages(prompt), tokenize=False, add_generation_prompt=True, **template, **chat.variables
            )
        except Exception as fault:  # a template may raise anything
            if chat.is_default:
                raise
            raise HapaxError(
                f"The chat template of {self.identity.name} cannot take the settings of its alias: {fault}. Change "
                "system_prompt, chat_template or chat_template_kwargs."
            ) from fault
        return list(self.tokenizer(framed, add_special_tokens=False).input_ids)


def load_model(
    source: str | Path,
    device: str = "auto",
    name: str | None = None,
    dtype: str = "auto",
    headless: bool = False,
    *,
    revision: str | None = None,
) -> LoadedModel:
    """Load a checkpoint from a folder or the Hugging Face hub (its cache first).

    `device`: `auto` uses the GPU if there is one. `dtype`: `float32`, `bfloat16`, or `auto`, which is bfloat16 on a GPU
    that supports it and, for language models of a certain width, on a processor with instructions for it. `headless`:
    without the head that predicts tokens, for encoders. `revision`: what to call the weights; None: as their files or
    the hub say. A folder may contain `hapax.json` with the predicates and data types that the model knows, and
    `SHA256SUMS` with hashes that its files must have.
    """
    quiet_transformers()
    place = device_of(device)
    if dtype not in DTYPES:
        raise HapaxError(f"Unknown dtype {dtype!r}.", Remedy("Use {} auto, float32 or bfloat16.", Setting("dtype")))
    check_sums(Path(source))
    here = is_offline()
    if not here and not Path(source).exists():
        # HF_ENDPOINT names a mirror of the hub; `localhost` stands for none, since it is always permitted.
        permit(*HUB, urlsplit(os.environ.get("HF_ENDPOINT", "")).hostname or "localhost")
    try:
        config = AutoConfig.from_pretrained(source, local_files_only=here)
        with_head = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        kind = AutoModel if headless else with_head
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=here)
        torch_dtype = DTYPES[dtype] or _fastest(place, config, headless)
        # A `pytorch_model.bin` is a pickle, and reading a pickle can run programs.
        settings = {"config": config, "dtype": torch_dtype, "local_files_only": here}
        network = kind.from_pretrained(source, use_safetensors=True, **settings)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as fault:
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
        raise HapaxError(
            f"The Hugging Face model {source} cannot be loaded: {reason} "
            "Give the folder of a checkpoint with weights as safetensors, or a name from https://huggingface.co "
            "that is cached or can be downloaded."
        ) from fault
    network.to(place)  # type: ignore[arg-type]  # typed for the class, not for its instances
    commit = getattr(config, "_commit_hash", None)
    revision = content_revision(source, commit) if revision is None else revision
    precision = str(torch_dtype).removeprefix("torch.")
    identity = checkpoint_identity(source, name or f"hf/{source}", revision, precision)
    return LoadedModel(network.eval(), tokenizer, identity)


def device_of(device: str) -> torch.device:
    """The device of this name; `auto`: the GPU if there is one. Raises HapaxError if it is not on this machine."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        # Allocating is the test: a name may be known and its device absent.
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as fault:
        raise HapaxError(
            f"There is no device {device} on this machine.",
            Remedy("Use {} auto or cpu.", Setting("device")),
        ) from fault


def _fastest(place: torch.device, config: Any, headless: bool) -> torch.dtype:
    """The number format of `--dtype auto`."""
    if place.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    width = getattr(config.get_text_config(), "hidden_size", None) or 0
    # The cosines of an encoder need more digits than bfloat16 has.
    if headless or place.type != "cpu" or width < NARROWEST:
        return torch.float32
    return torch.bfloat16 if multiplies_bfloat16() else torch.float32


def multiplies_bfloat16() -> bool:
    """True if this processor has instructions for products in bfloat16."""
    # Older versions of torch do not tell.
    able: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))
