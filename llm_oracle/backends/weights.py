"""Files of weights: hashes and identities of checkpoints, read without loading them, and the conversion of GGUF files.

A GGUF file, the format of llama.cpp, is converted once, into a checkpoint folder in the cache. The folder is named
after the content of its file and appears as a whole or not at all. Nothing that names an answer depends on where the
file or the cache is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hapax.grammar.errors import HapaxError
from hapax.kb.files import system
from hapax.kb.files.unfinished import exchange, unfinished
from hapax.llm_oracle.protocols import ModelIdentity

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


Notice = Callable[[str], None]
"""Receives a line for the user while something slow is prepared."""

CACHE_VARIABLE = "HAPAX_CACHE"
"""Environment variable that names another folder."""


def cache_folder() -> Path:
    """The folder, which may not exist yet: HAPAX_CACHE, else the platform's place for caches. Safe to delete."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hapax"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG base directory specification says to ignore relative paths.
    return (base if base.is_absolute() else Path.home() / ".cache") / "hapax"


@contextmanager
def alone(folder: Path, notice: Notice, work: str) -> Iterator[None]:
    """Hold the lock on making this folder of the cache, after waiting for another process that `work` says."""
    lock = system.file_lock(folder.with_suffix(".lock"))
    try:
        # Tried without waiting first, so that the user learns why nothing happens.
        lock.acquire(timeout=0)
    except system.LockTimeout:
        notice(f"Waiting for another process that {work}.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


MAGIC = b"GGUF"
"""First bytes of every GGUF file."""

CONVERSION = 1
"""Version of the conversion, part of names and revisions: increase it when the converted weights change."""


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """A checkpoint folder in the cache, and the revision of its model, which follows from the GGUF file's content."""

    folder: Path
    revision: str


def converted(path: Path, notice: Notice | None = None, expected: str = "") -> ConvertedModel:
    """The checkpoint folder of a GGUF file, converted first if the cache does not have it.

    `expected`: the SHA-256 that the file must have; empty: any. Raises HapaxError if the file has another or cannot be
    read or converted, or the cache cannot be written.
    """
    digest = _content_hash(path)
    if expected and digest != expected:
        raise changed_weights(path, digest, expected, "in this version of Hapax")
    folder = cache_folder() / "gguf" / f"{digest[:32]}-{CONVERSION}"
    if not folder.is_dir():
        inform = notice or (lambda _: None)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with alone(folder, inform, "converts the same model"):
                if not folder.is_dir():  # another process may have converted it meanwhile
                    _convert(path, folder, inform)
        except OSError as fault:
            reason = fault.strerror or fault
            raise HapaxError(
                f"{path} cannot be converted into {folder.parent}: {reason}. Make room there (twice the file's size "
                f"or more), or name another folder in the environment variable {CACHE_VARIABLE}."
            ) from fault
    return ConvertedModel(folder, f"{digest[:16]}-{CONVERSION}")


def check_file(path: Path) -> None:
    """Raise HapaxError for a file that cannot be read, is no GGUF file, or is cut off. Its weights are not read."""
    _check_begin(path)
    _check_tensors(path)


def _check_begin(path: Path) -> None:
    """Raise HapaxError for a file that cannot be read, or does not begin like a GGUF file."""
    try:
        with path.open("rb") as stream:
            begin = stream.read(len(MAGIC))
    except OSError as fault:
        raise HapaxError(f"{path} cannot be read: {fault.strerror}. Give the path of a GGUF file.") from fault
    if begin != MAGIC:
        raise HapaxError(
            f"{path} is not a GGUF file: it begins with {begin!r} instead of {MAGIC!r}. Give the path of a "
            "model file as llama.cpp uses it, or hf:FOLDER for a checkpoint folder."
        )


def _check_tensors(path: Path) -> None:
    """Raise HapaxError for a file that does not hold the tensors that it lists."""
    from gguf import GGUFReader

    try:
        GGUFReader(path)  # maps every tensor, so that it notices a missing end
    except Exception as fault:  # the reader raises whatever its arithmetic does on missing or wrong bytes
        size = path.stat().st_size
        raise HapaxError(
            f"{path} is cut off or damaged: its {size:,} bytes do not hold the tensors that it lists. Download or copy "
            "it again, and compare its size with that of the original."
        ) from fault


def _content_hash(path: Path) -> str:
    """SHA-256 of the file's content. Raises HapaxError if it cannot be read or is no GGUF file."""
    _check_begin(path)
    try:
        return file_hash(path)
    except OSError as fault:
        raise HapaxError(f"{path} cannot be read: {fault.strerror}. Give the path of a GGUF file.") from fault


def _convert(path: Path, folder: Path, notice: Notice) -> None:
    """Write the checkpoint folder beside its place, then rename it: a killed conversion leaves no half model."""
    size = path.stat().st_size / 1e6
    notice(f"Converting {path.name} ({size:.0f} MB) for its first use. This takes about a second per 4 MB, once.")
    began = system.monotonic()
    try:
        with unfinished(folder) as new:
            # Linked into an empty folder, because transformers also reads the files beside a GGUF file.
            source = new.with_name("source")
            new.mkdir()
            source.mkdir()
            (source / path.name).symlink_to(path.absolute())
            _save(source, path.name, new)
            weights = [file.name for file in new.glob("*.safetensors")]
            if not weights:  # transformers saves nothing in a later process of a distributed group
                raise RuntimeError(
                    "transformers saved no weights; convert the checkpoint outside a distributed group first"
                )
            write_sums(new, weights)
            exchange(new, folder)
    except Exception as fault:  # the readers of gguf and transformers raise anything for a damaged file
        if isinstance(fault, HapaxError) or (isinstance(fault, OSError) and fault.errno is not None):
            raise
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
        raise HapaxError(
            f"{path} cannot be converted: {reason.rstrip('.')}. Check that the file is complete, that transformers "
            f"supports its architecture, and that {folder.parent} has room. llama.cpp can serve other architectures: "
            "openai:MODEL@URL."
        ) from fault
    notice(f"Converted in {system.monotonic() - began:.0f} s; kept in {folder}.")


def quiet_transformers() -> None:
    """Keep the progress bars and notices of transformers off the user's screen."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers types it in part
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def _save(source: Path, name: str, target: Path) -> None:
    """Save the GGUF file `name` of the folder `source` as a checkpoint with its tokenizer and chat template."""
    from gguf import GGUFReader
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer, GgufConfig

    _check_tensors((source / name).readlink())
    quiet_transformers()
    config = AutoConfig.from_pretrained(source, gguf_file=name)
    kind: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    # Packed weights could neither be saved nor run in bfloat16.
    weights = GgufConfig(dequantize=True)
    # The progress bar of transformers' GGUF reader, which its own switch does not reach, stays off the screen.
    with redirect_stderr(StringIO()):
        network = kind.from_pretrained(source, gguf_file=name, quantization_config=weights)
    network.to(_stored_format(GGUFReader(source / name))).save_pretrained(target)
    AutoTokenizer.from_pretrained(source, gguf_file=name).save_pretrained(target)


def _stored_format(reader: GGUFReader) -> torch.dtype:
    """The smallest number format that holds the file's weights without a loss that matters."""
    import torch
    from gguf import GGMLQuantizationType

    # Vectors, such as norms, are float32 in most files; what counts is the format of the matrices.
    formats = {tensor.tensor_type for tensor in reader.tensors if len(tensor.shape) > 1}
    if GGMLQuantizationType.F32 in formats:
        return torch.float32
    if GGMLQuantizationType.BF16 in formats:
        return torch.bfloat16
    # Quantised weights have steps a hundred times coarser than float16's.
    return torch.float16
