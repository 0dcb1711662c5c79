"""Backends for checkpoints in this process: `embedded` and `hf:NAME_OR_PATH`. Loads torch when one is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE

if TYPE_CHECKING:
    from hapax.llm_oracle.backends.loading import LoadedModel

EMBEDDED_FOLDER = Path(__file__).parents[1] / "embedded" / "model"


def _libraries_missing() -> str:
    return missing_of("local")


def _embedded_missing() -> str:
    if not (EMBEDDED_FOLDER / "config.json").is_file():
        return f"The embedded model is missing: {EMBEDDED_FOLDER} holds no checkpoint. Run `make model` to train it."
    return _libraries_missing()


def _open_embedded(request: ModelRequest) -> Any:
    # The fixed name keeps the folder's path out of the journal.
    return _in_role(request.once(lambda: _load(EMBEDDED_FOLDER, "embedded", request)), request)


def _open_hugging_face(request: ModelRequest) -> Any:
    return _in_role(request.once(lambda: _load(request.argument, f"hf/{request.argument}", request)), request)


def _load(source: str | Path, name: str, request: ModelRequest) -> LoadedModel:
    from hapax.llm_oracle.backends.loading import load_model

    return load_model(source, request.options.device, name, request.options.dtype)


def _in_role(loaded: LoadedModel, request: ModelRequest) -> Any:
    from hapax.llm_oracle.backends.huggingface import HuggingFaceCritic, HuggingFaceGenerator, HuggingFaceLikelihood

    if request.role == KNOWLEDGE:
        return HuggingFaceGenerator(loaded, request.options.batch_size)
    return HuggingFaceCritic(loaded) if request.role == CRITIC else HuggingFaceLikelihood(loaded)


EMBEDDED = Backend(
    open=_open_embedded,
    roles=ALL_ROLES,
    abilities="Hapax's own small model of its atlas; excludes given values while decoding; no network",
    missing=_embedded_missing,
    price=FREE,
)

HUGGING_FACE = Backend(
    open=_open_hugging_face,
    argument="NAME_OR_PATH",
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="a Hugging Face checkpoint in this process: causal in all roles, sequence-to-sequence as critic",
    missing=_libraries_missing,
    price=FREE,
)
