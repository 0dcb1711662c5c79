"""Opening a Hugging Face checkpoint once for several roles, and how it is asked.

Prompts go through the tokenizer's chat template where it has one; likelihoods never do. Special tokens inside a prompt
or text are taken out, so that a value cannot speak as the chat's other side.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from grammar.errors import HapaxError
from llm_oracle.protocols import ModelIdentity

LONGEST_INPUT = 4096
"""Tokens, for models that name no limit of their own."""

TELLING = frozenset({"README.md", "measurements.json"})
"""Files of a folder that tell about its model and change none of its answers."""

HASHED_BYTES = 200 * 2**20
"""A checkpoint folder up to this size is known by its content, a larger one by names, sizes and dates."""


@dataclass(frozen=True)
class LoadedModel:
    """A network with its tokenizer, in evaluation mode on its device."""

    network: Any
    tokenizer: Any
    identity: ModelIdentity

    @property
    def device(self) -> torch.device:
        return torch.device(self.network.device)

    @property
    def is_seq2seq(self) -> bool:
        return bool(self.network.config.is_encoder_decoder)

    @property
    def context(self) -> int:
        """The longest input in tokens. Relative positions, as T5 has them, set no limit; LONGEST_INPUT then does."""
        limit = getattr(self.network.config, "max_position_embeddings", None)
        return limit if isinstance(limit, int) and limit > 0 else LONGEST_INPUT

    @property
    def padding(self) -> int:
        """Any token will do where there is no padding token: the attention mask hides it."""
        token = self.tokenizer.pad_token_id
        return int(token if token is not None else self.tokenizer.eos_token_id or 0)

    def harmless(self, text: str) -> str:
        """The text without the strings that the tokenizer would read as special tokens."""
        for special in self.tokenizer.all_special_tokens:
            while special in text:
                text = text.replace(special, "")
        return text

    def prompt_tokens(self, prompt: str) -> list[int]:
        """A prompt as the model expects to be asked."""
        prompt = self.harmless(prompt)
        if not self.tokenizer.chat_template:
            return list(self.tokenizer(prompt).input_ids)
        turn = [{"role": "user", "content": prompt}]
        framed = self.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer(framed, add_special_tokens=False).input_ids)


def load_model(
    source: str | Path, device: str = "auto", name: str | None = None, dtype: str = "auto", headless: bool = False
) -> LoadedModel:
    """A checkpoint from a folder or the Hugging Face hub (its cache first).

    `device`: `auto` takes the GPU if there is one. `dtype`: `float32`, `bfloat16`, or `auto`: a GPU that can runs
    bfloat16, everything else float32; the revision names what is not float32, since its scores differ. A folder may
    hold `hapax.json` with the predicates and data types that the model knows. `headless`: without what predicts tokens,
    for its vectors.
    """
    _quieten()
    place = _device(device)
    numbers = _dtype(dtype, place)
    try:
        config = AutoConfig.from_pretrained(source)
        talking = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        kind = AutoModel if headless else talking
        tokenizer = AutoTokenizer.from_pretrained(source)
        network = kind.from_pretrained(source, config=config, dtype=numbers)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as fault:
        raise HapaxError(_why_not_loaded(source, fault)) from fault
    network.to(place)  # type: ignore[arg-type]  # typed for the class, not for its instances
    revision = _revision(Path(source), config)
    if numbers != torch.float32:
        revision = f"{revision} {str(numbers).removeprefix('torch.')}".strip()
    identity = ModelIdentity(name or f"hf/{source}", revision, *_abilities(Path(source)))
    return LoadedModel(network.eval(), tokenizer, identity)


def _quieten() -> None:
    """No progress bars and notices of transformers on the user's screen."""
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers types it in part
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def _device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as fault:
        raise HapaxError(f"No device {device} on this machine. Use --device auto or --device cpu.") from fault


def _dtype(dtype: str, place: torch.device) -> torch.dtype:
    if dtype == "auto":
        return torch.bfloat16 if place.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if dtype not in known:
        raise HapaxError(f"No dtype {dtype!r}. Use --dtype auto, float32 or bfloat16.")
    return known[dtype]


def _why_not_loaded(source: str | Path, fault: Exception) -> str:
    reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
    return (
        f"The Hugging Face model {source} cannot be loaded: {reason} "
        "Give the folder of a checkpoint, or a name from https://huggingface.co that is cached or can be downloaded."
    )


def _abilities(folder: Path) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The predicates and the data types that a folder's model claims to know; None: no limit is claimed."""
    listing = folder / "hapax.json"
    if not listing.is_file():
        return None, None
    try:
        said = json.loads(listing.read_text("utf-8"))
        predicates, types = said["predicates"], said.get("types")
        return tuple(map(str, predicates)), None if types is None else tuple(map(str, types))
    except (ValueError, KeyError, TypeError) as fault:
        raise HapaxError(
            f'{listing} should read {{"predicates": ["name/arity", ...], "types": [...]}}. Rebuild the model.'
        ) from fault


def _revision(folder: Path, config: Any) -> str:
    """What changes when the weights may have changed: the hub's commit, or a hash over a local folder."""
    if not folder.is_dir():
        return str(getattr(config, "_commit_hash", None) or "")
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in TELLING)
    by_content = sum(path.stat().st_size for path in files) <= HASHED_BYTES
    digest = hashlib.sha256()
    for path in files:
        status = path.stat()
        digest.update(f"{path.name} {status.st_size}\n".encode())
        digest.update(path.read_bytes() if by_content else str(status.st_mtime_ns).encode())
    return digest.hexdigest()[:16]
