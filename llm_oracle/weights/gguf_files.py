"""GGUF files, the format of llama.cpp, as checkpoint folders: each file is converted once, into the cache.

A converted folder is named after the content of its file and appears in the cache as a whole or not at all. Nothing
that names an answer depends on where the file or the cache is.
"""

from __future__ import annotations

from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.errors import HapaxError
from hapax.kb.files import system
from hapax.kb.files.unfinished import exchange, unfinished
from hapax.llm_oracle.weights.identities import changed_weights, file_hash, write_sums

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with alone(folder, notice or _silent, "converts the same model"):
                if not folder.is_dir():  # another process may have converted it meanwhile
                    _convert(path, folder, notice or _silent)
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


def _silent(_line: str) -> None:
    """Drop the line."""


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
                raise RuntimeError("transformers saved no weights; convert it outside a distributed group first")
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


def _save(source: Path, name: str, target: Path) -> None:
    """Save the GGUF file `name` of the folder `source` as a checkpoint with its tokenizer and chat template."""
    from gguf import GGUFReader
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer, GgufConfig

    from hapax.llm_oracle.backends.loading import quiet_transformers

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
