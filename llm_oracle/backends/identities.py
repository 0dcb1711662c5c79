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

DESCRIBING = frozenset({"README.md", "measurements.json"})
"""Files of a folder that describe its model and change none of its answers."""

HASHED_BYTES = 200 * 2**20
"""A folder up to this size is identified by its content, a larger one by names, sizes and dates."""

GPU = Path("/dev/nvidiactl")


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

    def _refuse(self) -> NoReturn:
        raise HapaxError(f"{self.identity.name} was opened for a forecast. Open it without `forecast` to ask it.")


def checkpoint_identity(source: str | Path, name: str, precision: str, commit: str | None = None) -> ModelIdentity:
    """The identity of a checkpoint in a folder or, with `commit`, of the Hugging Face hub.

    `precision`: as `loading` uses it, such as `bfloat16`. Scores in another one than float32 differ, so that the
    journal must keep them apart.
    """
    folder = Path(source)
    revision = _content_revision(folder) if folder.is_dir() else commit or ""
    if precision != "float32":
        revision = f"{revision} {precision}".strip()
    return ModelIdentity(name, revision, *_abilities(folder))


def forecast_identity(source: str | Path, name: str, device: str, dtype: str) -> ModelIdentity:
    """The identity that loading the checkpoint would give it, without torch where there is no GPU."""
    return checkpoint_identity(source, name, _precision(device, dtype), _cached_commit(str(source)))


def _precision(device: str, dtype: str) -> str:
    if dtype != "auto" or device == "cpu" or not GPU.exists():
        return "float32" if dtype == "auto" else dtype
    from hapax.llm_oracle.backends import loading

    return str(loading.precision(dtype, loading.place_of(device))).removeprefix("torch.")


def _cached_commit(name: str) -> str:
    """The commit of a model's main branch in the cache of the Hugging Face hub; empty if it is not there."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
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


def _content_revision(folder: Path) -> str:
    """A hash of the files of a folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in DESCRIBING)
    by_content = sum(path.stat().st_size for path in files) <= HASHED_BYTES
    digest = hashlib.sha256()
    for path in files:
        status = path.stat()
        digest.update(f"{path.name} {status.st_size}\n".encode())
        digest.update(path.read_bytes() if by_content else str(status.st_mtime_ns).encode())
    return digest.hexdigest()[:16]
