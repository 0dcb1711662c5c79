"""Identities of checkpoints, read from their files without loading them, and models of which only that is known."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.protocols import ModelIdentity
from hapax.llm_oracle.weights.weight_hashes import SUMS_FILE

TEACHERS_FILE = "teachers.json"
"""File of a folder with the names of the models on whose scores its model was trained: `{"taught_by": [...]}`."""

DESCRIBING = frozenset({"README.md", "measurements.json", SUMS_FILE, TEACHERS_FILE})
"""Files of a folder that describe its model and change none of its answers."""

HASHED_BYTES = 200 * 2**20
"""A folder up to this size is identified by its content, a larger one by names, sizes and dates."""


@dataclass(frozen=True, slots=True)
class ForecastModel:
    """A model that is not loaded: a forecast needs its identity alone. It answers nothing."""

    identity: ModelIdentity

    def generate(self, *_: object) -> NoReturn:
        self._refuse()

    def probabilities(self, *_: object) -> NoReturn:
        self._refuse()

    def log_likelihoods(self, *_: object) -> NoReturn:
        self._refuse()

    def span_log_likelihoods(self, *_: object) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise HapaxError(f"{self.identity.name} was opened for a forecast. Open it without `forecast` to ask it.")


def checkpoint_identity(source: str | Path, name: str, revision: str, precision: str) -> ModelIdentity:
    """The identity of a checkpoint. `precision`: its number format, such as `bfloat16`.

    Scores in another format than float32 differ, so that the journal must keep them apart.
    """
    if precision != "float32":
        revision = f"{revision} {precision}".strip()
    folder = Path(source)
    return ModelIdentity(name, revision, *_abilities(folder), teachers_of(folder))


def forecast_identity(source: str | Path, name: str, dtype: str, newest_revision: str | None) -> ModelIdentity:
    """The identity that loading the checkpoint would give it. `newest_revision`: that of its newest stored answers.

    Without stored answers the number format makes no difference to a forecast, so `auto` is not looked into.
    """
    # As `checkpoint_identity` writes it: without a format, the answers are in float32.
    stored = "bfloat16" if "bfloat16" in (newest_revision or "").split() else "float32"
    revision = content_revision(source, _cached_commit(str(source)))
    return checkpoint_identity(source, name, revision, stored if dtype == "auto" else dtype)


def _cached_commit(name: str) -> str:
    """The commit of a model's main branch in the cache of the Hugging Face hub; empty if it is not there."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    # Layout of the cache of huggingface_hub.
    reference = cache / f"models--{name.replace('/', '--')}" / "refs" / "main"
    try:
        return reference.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def _abilities(folder: Path) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The predicates and data types that a folder's model declares in `hapax.json`; None: no declared limit."""
    listing = folder / "hapax.json"
    if not listing.is_file():
        return None, None
    try:
        declared = json.loads(listing.read_text("utf-8"))
        predicates, types = declared["predicates"], declared.get("types")
        return tuple(map(str, predicates)), None if types is None else tuple(map(str, types))
    except (ValueError, KeyError, TypeError) as fault:
        raise HapaxError(
            f'{listing} is malformed. Write {{"predicates": ["name/arity", ...], "types": [...]}}, or rebuild the '
            "model."
        ) from fault


def teachers_of(folder: Path) -> tuple[str, ...]:
    """Names of the models that taught the model of a folder, by its TEACHERS_FILE; none without the file."""
    listing = folder / TEACHERS_FILE
    if not listing.is_file():
        return ()
    try:
        return tuple(map(str, json.loads(listing.read_text("utf-8"))["taught_by"]))
    except (ValueError, KeyError, TypeError) as fault:
        raise HapaxError(f'{listing} is malformed. Write {{"taught_by": ["name", ...]}}.') from fault


def content_revision(source: str | Path, commit: str | None = None) -> str:
    """Version of the weights: a hash of a local folder, or the hub's commit."""
    folder = Path(source)
    if not folder.is_dir():
        return commit or ""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in DESCRIBING)
    by_content = sum(path.stat().st_size for path in files) <= HASHED_BYTES
    digest = hashlib.sha256()
    for path in files:
        status = path.stat()
        # Name and size go first: the same bytes divided among other files give another hash.
        digest.update(f"{path.name} {status.st_size}\n".encode())
        digest.update(path.read_bytes() if by_content else str(status.st_mtime_ns).encode())
    return digest.hexdigest()[:16]
