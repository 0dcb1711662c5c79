"""Hashes and identities of checkpoints, read from their files without loading them, and models that are not loaded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.protocols import ModelIdentity

SUMS_FILE = "SHA256SUMS"


def file_hash(path: Path) -> str:
    """SHA-256 of the file's content, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Write SHA256SUMS for these files of the folder."""
    # Two blanks, as `sha256sum` writes them for files that are read as text.
    lines = [f"{file_hash(folder / name)}  {name}\n" for name in sorted(names)]
    (folder / SUMS_FILE).write_text("".join(lines), encoding="utf-8")


def check_sums(folder: Path) -> None:
    """Compare the files of the folder with its SHA256SUMS, if it has one.

    Raises HapaxError for a file that is missing or whose content has another hash.
    """
    sums = folder / SUMS_FILE
    if not sums.is_file():
        return
    try:
        for number, line in enumerate(sums.read_text(encoding="utf-8").splitlines(), 1):
            expected, _, name = line.partition("  ")
            # A name of a file in this folder: a path would let the listing have other files read.
            if len(expected) != 64 or Path(name).name != name:
                raise HapaxError(f"{sums}:{number} is malformed. Write it with: sha256sum *.safetensors > {SUMS_FILE}")
            found = file_hash(folder / name)
            if found != expected:
                raise changed_weights(folder / name, found, expected, f"in {sums}")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{sums} cannot be compared with the files: {fault}. Install the model anew.") from fault


def changed_weights(path: Path, found: str, expected: str, stated: str) -> HapaxError:
    """The error for a file whose hash is not the expected one. `stated`: where the expected one stands."""
    return HapaxError(
        f"The weights in {path} are damaged or were changed: their SHA-256 is {found[:16]}..., and {expected[:16]}... "
        f"stands {stated}. Install the model anew."
    )


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
        raise HapaxError(f"{self.identity.name} was opened for a forecast. Open it without `forecast` to ask it.")

    probabilities = log_likelihoods = span_log_likelihoods = generate


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
    form = '{"predicates": ["name/arity", ...], "types": [...]}'
    predicates, types = _declared(folder / "hapax.json", ("predicates", "types"), f"{form}, or rebuild the model")
    return predicates, types


def teachers_of(folder: Path) -> tuple[str, ...]:
    """Names of the models that taught the model of a folder, by its TEACHERS_FILE; none without the file."""
    (teachers,) = _declared(folder / TEACHERS_FILE, ("taught_by",), '{"taught_by": ["name", ...]}')
    return teachers or ()


def _declared(listing: Path, fields: Sequence[str], form: str) -> list[tuple[str, ...] | None]:
    """Lists of texts that a file declares; None for those that it lacks. The first is there if there is a file."""
    if not listing.is_file():
        return [None for _ in fields]
    try:
        declared = json.loads(listing.read_text("utf-8"))
        lists = [declared[fields[0]], *map(declared.get, fields[1:])]
        return [None if names is None else tuple(map(str, names)) for names in lists]
    except (ValueError, LookupError, TypeError, AttributeError) as fault:
        raise HapaxError(f"{listing} is malformed. Write {form}.") from fault


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
